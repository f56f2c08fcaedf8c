// One compute unit: its Verilator model, the ports on it, and the count of its runs.
#pragma once

#include <algorithm>
#include <deque>
#include <dlfcn.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../stream.hpp"
#include "axi_lite.hpp"
#include "axi_port.hpp"
#include "layout.hpp"
#include "pins.hpp"
#include "repeats.hpp"
#include "stream_port.hpp"
#include "waves.hpp"

namespace pynq_torch {
namespace rtl {

// As State in engine.hpp and engine.py, without those of a process.
enum class Doing : uint32_t { kIdle = 1, kRunning = 2, kWaitRead = 3, kWaitWrite = 4 };

struct RunTimeout : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Unit {
  public:
    // Cycles that the reset is held; AXI asks for 16 of the slowest clock (PG164, "Resets").
    static constexpr uint64_t kResetCycles = 16;
    // A unit of which nobody can see that it works gets its cycles until it repeats itself; that is
    // looked for when no port has moved for a while. One that never does, because of a counter,
    // gets so many: after a run that was seen to end, and where no end can be seen.
    static constexpr uint64_t kQuiet = 128, kLate = 1u << 20, kUnseen = 1u << 25;
    static constexpr uint64_t kSettled = 16;
    static constexpr uint64_t kNever = ~uint64_t(0);

    Unit(std::string name, const std::string& library, UnitBox* box, uint32_t seed, uint32_t fill,
         uint32_t history, uint64_t timeout_cycles)
        : name_(std::move(name)), box_(box), timeout_(timeout_cycles) {
        void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) throw std::runtime_error(std::string("the model cannot be loaded: ") + dlerror());
        const auto entry = reinterpret_cast<ModelEntry>(dlsym(handle, kModelEntry));
        if (!entry) throw std::runtime_error(library + " is no model of a kernel");
        api_ = entry();
        if (api_->version != kModelVersion) throw std::runtime_error("the model was built for another engine");
        model_ = api_->create(seed, fill);
        if (!model_) throw std::runtime_error("no memory for the model");
        if (api_->wave_open)
            waves_ = std::make_unique<WaveRecorder>(*api_, model_, reinterpret_cast<WaveBox*>(box->wave_box),
                                                    history, seed, fill);
        const Signal* list = nullptr;
        const size_t count = api_->signals(model_, &list);
        signals_.assign(list, list + count);
        pins_ = std::make_unique<Pins>(signals_.data(), signals_.size());
        start_ = pins_->find(".ap_start"), done_ = pins_->find(".ap_done");
        ap_idle_ = pins_->find(".ap_idle"), ap_ready_ = pins_->find(".ap_ready");
        chain_ = pins_->find(".ap_continue").exists();
        seen_ = start_.exists() && done_.exists() && ap_idle_.exists();
        box_->watched = seen_;
        find_phases(list, count);
    }
    ~Unit() { waves_.reset(); }  // it closes a file; the model goes with the process

    const std::string& name() const { return name_; }
    Pins& pins() { return *pins_; }
    UnitBox& box() { return *box_; }

    // Lets a port be found as `name`, the way the interfaces of the board are called.
    void add_alias(const std::string& name, const std::string& port) {
        for (const Signal& signal : signals_) {
            if (port != signal.name) continue;
            names_.push_back(name);
            Signal alias = signal;
            alias.name = names_.back().c_str();
            signals_.push_back(alias);
            pins_ = std::make_unique<Pins>(signals_.data(), signals_.size());
            return;
        }
        throw std::runtime_error("the model has no signal " + port);
    }
    void set_constant(const std::string& port, uint64_t value) { pins_->need(port).set(value); }
    void set_clock(const std::string& port) {
        clock_name_ = clock_name_.empty() ? port : clock_name_;
        clocks_.push_back(pins_->need(port));
    }
    // `level`: at which the reset is active.
    void add_reset(const std::string& port, bool level) {
        if (!level && reset_name_.empty()) reset_name_ = port;
        resets_.push_back({pins_->need(port), level});
    }
    // Whether outputs depend on what registers held before the reset; once is enough.
    void check_reset() const {
        if (clock_name_.empty() || reset_name_.empty()) return;
        const std::string found = rtl::check_reset(*api_, clock_name_.c_str(), reset_name_.c_str());
        if (!found.empty()) throw ProtocolError(0, name_, found);
    }
    void set_interrupt(const std::string& port) { interrupt_ = pins_->need(port); }
    void set_control(size_t slave) { control_ = int(slave); }
    void add(std::unique_ptr<LiteManager> port, const std::string& label) {
        lites_.push_back(port.get());
        own(std::move(port), label);
    }
    void add(std::unique_ptr<AxiPort> port, const std::string& label) {
        masters_.push_back(port.get());
        own(std::move(port), label);
    }
    void add(std::unique_ptr<StreamPort> port, const std::string& label) {
        streams_.push_back(port.get());
        own(std::move(port), label);
    }
    const std::vector<StreamPort*>& streams() const { return streams_; }
    // A unit without a control register starts with the reset's end and never stops.
    bool free_running() const { return control_ < 0; }
    // Its ap_* nets show when it runs.
    bool seen() const { return seen_; }
    // `since`: the cycle from which on every unit has waited for the program, or kNever.
    void follow(const uint64_t* since) { waiting_since_ = since; }

    // ---- requests of the host --------------------------------------------------------------------

    bool asked() const {
        return box_->request.load(std::memory_order_acquire) != box_->response.load(std::memory_order_relaxed);
    }
    // There is a request that was not taken up.
    bool asked_anew() const { return asked() && !at_work_; }
    // A new request is more than a look.
    bool asked_to_change() const { return asked_anew() && box_->operation != kRead; }
    // Register ports come first: add() them before the others.
    // Takes up a new request or goes on with the current one; true when it was answered.
    bool serve(uint64_t cycle) {
        if (!asked()) return false;
        if (!at_work_) {
            at_work_ = true;
            word_ = 0;
            if (box_->operation == kReset) {
                begin_reset();
                return false;
            }
            if (box_->slave >= lites_.size()) return answer(kNobody);
        }
        if (box_->operation == kReset) return resetting_ ? false : answer(kAnswered);
        LiteManager& lite = *lites_[box_->slave];
        if (lite.answered()) {
            const Result result = lite.result();
            if (box_->operation == kRead) {
                box_->words[word_] = lite.value();
                look_at_control(lite, lite.value(), cycle);
            }
            lite.take();
            if (result != kAnswered) return answer(result);
            if (++word_ >= box_->count) return answer(kAnswered);
        }
        if (lite.idle()) {
            const uint32_t address = box_->offset + 4 * word_;
            if (box_->operation == kRead) lite.read(address, cycle);
            else lite.write(address, box_->words[word_], cycle, box_->operation == kWrite);
        }
        return false;
    }

    void begin_reset() {
        resetting_ = kResetCycles;
        note_dropped();
        for (Port* port : ports_) port->reset();
        begins_.clear();
        repeats_.forget();
        told_ = nullptr;
        armed_ = was_done_ = false;
        box_->started.store(box_->completed.load());
        for (const auto& [pin, level] : resets_) pin.set_bit(level);
    }

    // ---- the clock -------------------------------------------------------------------------------

    void low(uint64_t cycle) {
        if (!resetting_)
            for (Port* port : ports_) port->drive(cycle);
        for (const Pin& clock : clocks_) clock.set_bit(false);
        eval();
        if (waves_) waves_->low(cycle);
    }
    void sample(uint64_t cycle) {
        if (resetting_) {
            const uint64_t n = kResetCycles - resetting_;
            for (Port* port : ports_) port->sample_reset(cycle, n);
            if (--resetting_ == 0) {
                for (const auto& [pin, level] : resets_) pin.set_bit(!level);
                moved_ = stirred_ = cycle;
                stirs_ = false;
                moved_port_ = ~0u;
                for (Port* port : ports_) port->last_handshake = cycle;
            }
            return;
        }
        for (uint32_t i = 0; i < ports_.size(); ++i) {
            ports_[i]->sample(cycle);
            if (ports_[i]->last_handshake != cycle) continue;
            moved_ = cycle, moved_port_ = i;
            // A program that polls must not keep the clock of a unit running that waits.
            if (i >= lites_.size()) stirred_ = cycle, stirs_ = true;
        }
        count(cycle);
        const bool level = interrupt_.high();
        if (level != irq_) irq_ = level, irq_changed_ = true;
    }
    void high(uint64_t cycle) {
        for (const Pin& clock : clocks_) clock.set_bit(true);
        eval();
        if (waves_) waves_->high(cycle);
        look_for_repeats(cycle);
        // Once it is at rest after a run, an access to a register takes the cycles of the access.
        if (!seen_ || running() || stirred_ == cycle) rested_ = false;
        else if (repeats()) rested_ = true;
    }

    // ---- what it is doing ------------------------------------------------------------------------

    // A unit without control is never said to run: it moves when its streams do. So does one whose
    // ap_* nets cannot be seen, which may be done without anybody having read ap_done.
    bool running() const {
        return !free_running() && seen_ &&
               (armed_ || !begins_.empty() || (!resetting_ && !ap_idle_.high()));
    }
    // A run is under way that began once and ends once.
    bool counting() const { return armed_ || !begins_.empty(); }
    bool auto_restarts() const { return seen_ && running() && restarts_; }
    // Cycle of the last handshake that is no register access.
    uint64_t stirred() const { return stirred_; }
    // What is under way goes into the trace, before the process ends.
    void cut(uint64_t cycle) {
        for (AxiPort* port : masters_) port->cut(cycle);
        for (StreamPort* stream : streams_) stream->cut();
    }
    void poll_waves() {
        if (waves_) waves_->poll();
    }
    bool pending() const {
        for (const Port* port : ports_)
            if (port->pending()) return true;
        return false;
    }
    // The stream it waits on, if it can do nothing else; looked at when nothing moved for a while.
    StreamPort* waits_on() const {
        for (StreamPort* stream : streams_)
            if (stream->blocked()) return stream;
        if (!repeats() || (seen_ && !running())) return nullptr;
        for (StreamPort* stream : streams_)
            if (stream->hungry()) return stream;
        return nullptr;
    }
    bool waits(uint64_t cycle) const {
        return (repeats() || cycle - stirred_ >= kQuiet) && waits_on();
    }
    // However many cycles it got, nothing would come of them.
    bool repeats() const { return repeats_.found(); }
    // Cycle in which something came last for it from outside.
    uint64_t news() const {
        uint64_t last = 0;
        for (const StreamPort* stream : streams_) last = std::max(last, stream->news());
        return last;
    }
    bool waits_for_process() const {
        for (StreamPort* stream : streams_)
            if (stream->waits_for_process()) return true;
        return false;
    }
    // One that it waits for is running.
    bool process_works() const {
        for (StreamPort* stream : streams_)
            if (stream->waits_for_process() && stream->process_works()) return true;
        return false;
    }
    bool streams_can_move() const {
        for (StreamPort* stream : streams_)
            if (stream->can_move()) return true;
        // TREADY may come after TVALID.
        if (seen_ && !running()) return false;
        for (StreamPort* stream : streams_)
            if (stream->has_news()) return true;
        return false;
    }
    // Its streams have to be looked at, even if it does nothing.
    bool listens() const { return seen_ ? waits_on() != nullptr : !streams_.empty(); }
    bool quiet(uint64_t cycle) const {
        const uint64_t since = cycle - (seen_ ? stirred_ : moved_);
        return since >= kQuiet && (rested_ || repeats() || since >= (seen_ ? kLate : kUnseen));
    }
    // A clock does something for it.
    bool active(uint64_t cycle) const {
        if (resetting_ || at_work_ || asked() || pending()) return true;
        if (!quiet(cycle)) return true;
        if (running()) return true;
        return streams_can_move();
    }
    // It is active only because nobody can see whether it works, and it does not.
    bool idles() const {
        return !seen_ && repeats() && !resetting_ && !at_work_ && !asked() && !pending() &&
               !streams_can_move();
    }
    void flush() {
        for (StreamPort* stream : streams_) stream->flush();
    }
    // Time that the current run spends waiting for the outside is none of its own: for its limit.
    void excuse(uint64_t cycles) { excused_ += cycles; }
    // And for its count. From here on it waits; so many cycles later it was known that it did.
    void begin_idle() { phases_before_ = phase_counts_; }
    void end_idle(uint64_t cycles) {
        idle_ += cycles;
        phase_counts_ = phases_before_;
    }
    // It did something since the last time this was asked.
    bool stirs() { return std::exchange(stirs_, false); }

    // The stream that the board was told of, if it was told that the unit waits and a run goes on.
    const StreamPort* said_to_wait_on() const {
        return free_running() || counting() ? told_ : nullptr;
    }
    // Tells the board; true when it should be woken for the interrupt output.
    bool publish(uint64_t cycle, const StreamPort* waits) {
        told_ = waits;
        Doing doing = Doing::kIdle;
        if (waits) doing = waits->waits_for_data() ? Doing::kWaitRead : Doing::kWaitWrite;
        else if (running() || resetting_) doing = Doing::kRunning;
        else if ((counting() || free_running()) && !quiet(cycle) && !repeats())
            doing = Doing::kRunning;
        if (waits) box_->blocked.store(uint32_t(waits->index()), std::memory_order_relaxed);
        box_->moved.store(moved_, std::memory_order_relaxed);
        box_->moved_port.store(moved_port_, std::memory_order_relaxed);
        if (counting())
            box_->begun.store(begins_.empty() ? begin_.cycle : begins_.front().cycle,
                              std::memory_order_relaxed);
        box_->started.store(box_->completed.load(std::memory_order_relaxed) + begins_.size() + (armed_ ? 1 : 0),
                            std::memory_order_release);
        box_->state.store(uint32_t(doing), std::memory_order_release);
        box_->irq.store(irq_, std::memory_order_release);
        const bool changed = irq_changed_;
        irq_changed_ = false;
        return changed;
    }
    bool irq_changed() const { return irq_changed_; }
    // The host started it in this cycle.
    bool just_started() { return std::exchange(started_, false); }
    void begin_run() {
        for (Port* port : ports_) port->begin_run(box_->completed.load(std::memory_order_relaxed));
    }
    bool finished() { return std::exchange(finished_, false); }

    void check_time(uint64_t cycle) const {
        if (!timeout_ || !counting() || restarts_) return;
        const uint64_t begin = begins_.empty() ? begin_.cycle : begins_.front().cycle;
        // Where its end cannot be seen it may have come long ago: what counts is when it was still
        // known to be running, by a read of AP_CTRL or what it did on a bus.
        const uint64_t known = seen_ ? cycle : std::max(busy_, stirred_);
        if (known <= begin + timeout_ + excused_) return;
        std::string text = "no ap_done in " + std::to_string(cycle - begin) + " cycles (timeout_cycles = " +
                           std::to_string(timeout_) + "). " + last_activity(cycle);
        throw RunTimeout(text);
    }
    // "The last handshake was ... cycles ago on ...", a port each.
    std::string last_activity(uint64_t cycle) const {
        std::string text;
        for (size_t i = 0; i < ports_.size(); ++i) {
            text += i ? ", " : "Last handshakes: ";
            text += labels_[i] + " " + std::to_string(cycle - ports_[i]->last_handshake) + " cycles ago";
        }
        if (const StreamPort* stream = waits_on())
            text += std::string("; it waits on ") + stream->name() +
                    (stream->waits_for_data() ? " for data" : " for room");
        return text + ".";
    }

  private:
    // Of a run: its cycle, and `idle_` in it.
    struct Begin {
        uint64_t cycle, idle;
    };

    // Bursts on their way are lost with a reset: what asked for them forgets it.
    void note_dropped() {
        box_->dropped = 0;
        for (const AxiPort* master : masters_) {
            const uint32_t n = master->unanswered();
            const auto at = std::find(ports_.begin(), ports_.end(), master);
            if (n && !box_->dropped) box_->dropped_port = uint32_t(at - ports_.begin());
            box_->dropped += n;
        }
    }
    void own(std::unique_ptr<Port> port, const std::string& label) {
        labels_.push_back(label);
        ports_.push_back(port.get());
        kept_.push_back(std::move(port));
    }
    void find_phases(const Signal* list, size_t count) {
        constexpr std::string_view prefix = ".perf_";
        for (size_t i = 0; i < count && phases_.size() < kMaxPhases; ++i) {
            const std::string_view name = list[i].name;
            if (name.substr(0, prefix.size()) != prefix || list[i].width != 1) continue;
            std::snprintf(box_->phase_names[phases_.size()], sizeof box_->phase_names[0], "%s",
                          list[i].name + prefix.size());
            phases_.push_back(Pin(list[i].data, 1));
        }
        phase_counts_.resize(phases_.size());
        box_->nphases = uint32_t(phases_.size());
    }
    // A model may stop by itself: $fatal, an assertion, no convergence.
    void eval() {
        if (api_->eval(model_)) throw std::runtime_error(api_->error(model_));
    }
    bool answer(Result result) {
        at_work_ = false;
        box_->result = result;
        box_->response.store(box_->request.load(std::memory_order_relaxed), std::memory_order_release);
        return true;
    }

    // A unit that has no stream, and whose end can be seen, has nothing to wait for. What was found
    // before its run says nothing of what it does behind it.
    void look_for_repeats(uint64_t cycle) {
        if (seen_ && running() && streams_.empty()) return repeats_.forget();
        bool changed = resetting_ || moved_ == cycle;
        for (StreamPort* stream : streams_) changed |= stream->turned();
        if (changed || pending()) return repeats_.forget();
        if (cycle - (seen_ ? stirred_ : moved_) < kSettled) return;
        size_t nbytes = 0;
        const void* state = api_->state(model_, &nbytes);
        repeats_.look(state, nbytes);
    }

    // Without the ap_* nets the end of a run is where the host first reads ap_done.
    void look_at_control(const LiteManager& lite, uint32_t value, uint64_t cycle) {
        if (seen_ || control_ < 0 || &lite != lites_[size_t(control_)] || lite.address() != 0) return;
        if (value & 2 || (value & 5) == 4) {
            if (counting()) end_run(cycle);
        } else {
            busy_ = cycle;
        }
    }

    void count(uint64_t cycle) {
        const LiteManager* control = control_ < 0 ? nullptr : lites_[size_t(control_)];
        if (control && control->accepted_write() && control->address() == 0) {
            restarts_ = control->word() & 0x80;
            if (control->word() & 1 && !armed_) {
                arm(cycle);
                host_ns_ = now_ns();
                started_ = true;
            }
        }
        if (!seen_) return;
        if (start_.high() && !armed_) arm(cycle);
        for (size_t i = 0; i < phases_.size(); ++i) phase_counts_[i] += phases_[i].high();
        if (armed_ && ap_ready_.high()) {
            begins_.push_back(begin_);
            armed_ = false;
        }
        const bool done = done_.high();
        if (done && (!chain_ || !was_done_)) {
            if (begins_.empty() && armed_) {
                begins_.push_back(begin_);
                armed_ = false;
            }
            if (!begins_.empty()) end_run(cycle);
        }
        was_done_ = done;
    }
    void arm(uint64_t cycle) {
        armed_ = true;
        begin_ = {cycle, idle_};
        excused_ = 0;
        if (begins_.empty())
            for (auto& n : phase_counts_) n = 0;
    }
    void end_run(uint64_t cycle) {
        if (begins_.empty()) {
            begins_.push_back(begin_);
            armed_ = false;
        }
        const uint64_t number = box_->completed.load(std::memory_order_relaxed) + 1;
        RunRecord& run = box_->runs[number % kRunsKept];
        run.number = number;
        run.begin = begins_.front().cycle;
        run.end = cycle;
        run.idle = idle_ - begins_.front().idle;
        // It may have been done for long before somebody asked.
        if (!seen_ && *waiting_since_ != kNever) run.idle += cycle - *waiting_since_;
        const uint64_t now = now_ns();
        run.ns = now - host_ns_;
        host_ns_ = now;
        for (size_t i = 0; i < phases_.size(); ++i) run.phases[i] = phase_counts_[i], phase_counts_[i] = 0;
        begins_.pop_front();
        box_->completed.store(number, std::memory_order_release);
        finished_ = true;
    }

    std::string name_, clock_name_, reset_name_;
    UnitBox* box_;
    uint64_t timeout_;
    const ModelApi* api_ = nullptr;
    Model* model_ = nullptr;
    std::unique_ptr<WaveRecorder> waves_;
    std::unique_ptr<Pins> pins_;
    Pin start_, done_, ap_idle_, ap_ready_, interrupt_;
    std::vector<std::pair<Pin, bool>> resets_;
    std::vector<Signal> signals_;
    std::deque<std::string> names_;  // of aliases; a deque does not move them
    std::vector<Pin> clocks_, phases_;
    std::vector<uint64_t> phase_counts_, phases_before_;
    Repeats repeats_;
    std::vector<LiteManager*> lites_;
    std::vector<AxiPort*> masters_;
    std::vector<StreamPort*> streams_;
    std::vector<Port*> ports_;
    std::vector<std::string> labels_;
    std::vector<std::unique_ptr<Port>> kept_;
    std::deque<Begin> begins_;  // of runs that were taken up (ap_ready) and have not ended
    Begin begin_{};
    const uint64_t* waiting_since_ = nullptr;
    const StreamPort* told_ = nullptr;
    bool stirs_ = false;
    bool seen_ = false, chain_ = false, armed_ = false, was_done_ = false;
    bool at_work_ = false, irq_ = false, irq_changed_ = false, finished_ = false, restarts_ = false, started_ = false,
         rested_ = false;
    int control_ = -1;
    uint32_t word_ = 0, moved_port_ = ~0u;
    uint64_t resetting_ = 0, moved_ = 0, stirred_ = 0, busy_ = 0, excused_ = 0, host_ns_ = 0;
    uint64_t idle_ = 0;  // cycles, of all that was waited for the program
};

}  // namespace rtl
}  // namespace pynq_torch
