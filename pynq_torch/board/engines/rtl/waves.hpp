// Waves of one unit: when they are recorded, into which file, and until when.
//
// The board writes a request into a WaveBox in shared memory; the process that owns the clock calls
// poll() where it looks for requests, and low()/high() in every cycle. Nothing here throws and
// nothing stops the unit: what goes wrong with a file is said in the box, the unit runs on.
//
// A recording can begin some cycles before its trigger. A simulator cannot dump the past, so a
// second model of the same unit follows that many cycles behind, fed with the same inputs: it is in
// every cycle what the first one was, and it is the one that is dumped.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "pins.hpp"

namespace pynq_torch {
namespace rtl {

enum class WaveState : uint32_t {
    kOff = 0,
    kArmed = 1,      // waits for the trigger
    kRecording = 2,
    kFinished = 3,   // the recording ended by its trigger, or by a request
    kLimit = 4,      // it ended because the file reached its limit
    kFailed = 5,     // it ended because the file could not be written: see `error`
};

enum class WaveCommand : uint32_t { kNone = 0, kOpen = 1, kClose = 2 };

inline constexpr uint64_t kNever = ~uint64_t{0};

// Mirrored by pynq_torch/board/rtl/observe/wave_box.py, field by field.
struct WaveBox {
    uint32_t request;       // written last by the board, counted up
    uint32_t answer;        // the request that was dealt with last
    uint32_t command;       // WaveCommand
    uint32_t each;          // not 0: a file for every time the trigger comes, "{n}" its number
    uint32_t before, after; // cycles recorded before the first and after the last event
    uint32_t state;         // WaveState
    uint32_t files;         // written so far
    uint64_t from_cycle;    // nothing is recorded before it
    uint64_t to_cycle;      // nor after it
    uint64_t limit_bytes;   // of one file
    uint64_t period_ps;     // of the clock
    uint64_t first_cycle, last_cycle;  // in the file written last
    uint64_t bytes;                    // of it
    uint64_t trigger_cycle;            // of its first event
    char start[256], stop[256];        // a signal, "!" before it for the falling edge; "" none
    char path[2048];
    char error[512];
};
static_assert(sizeof(WaveBox) == 3168, "pynq_torch/board/rtl/observe/wave_box.py has this layout");

// A signal, and whether its edge came.
class WaveTrigger {
public:
    // False where the unit has no such signal.
    bool set(std::string_view text, const Signal* signals, size_t count) {
        signal_ = nullptr;
        text_ = text;
        if (text.empty()) return true;
        falling_ = text.front() == '!';
        if (falling_) text.remove_prefix(1);
        for (size_t i = 0; i < count; ++i) {
            std::string_view name = signals[i].name;
            if (name == text || (name.front() == '.' && name.substr(1) == text)) {
                signal_ = signals + i;
            }
        }
        if (signal_) last_ = value();
        return signal_ != nullptr;
    }
    bool given() const { return signal_ != nullptr; }
    // Once a cycle, with settled signals.
    bool edge() {
        if (!signal_) return false;
        const bool now = value();
        const bool came = falling_ ? last_ && !now : now && !last_;
        last_ = now;
        return came;
    }

private:
    bool value() const {
        const Pin pin(signal_->data, signal_->width);
        return std::any_of(pin.bytes(), pin.bytes() + pin.stored(), [](uint8_t b) { return b != 0; });
    }
    const Signal* signal_ = nullptr;
    std::string text_;
    bool falling_ = false;
    bool last_ = false;
};

// A second model of the unit that repeats, up to `depth` cycles later, what the first was given.
class WaveShadow {
public:
    WaveShadow(const ModelApi& api, Model* first, uint32_t depth, uint32_t seed, uint32_t fill)
        : api_(api), slots_(depth + 1) {
        model_ = api.create(seed, fill);
        const Signal *from = nullptr, *to = nullptr;
        if (!model_) return;
        api.signals(model_, &to);
        for (size_t i = 0, count = api.signals(first, &from); i < count; ++i) {
            if (from[i].kind != kInput) continue;
            const size_t n = Pin(from[i].data, from[i].width).stored();
            inputs_.push_back({from[i].data, to[i].data, n, std::string_view(from[i].name) == "ap_clk"});
            nbytes_ += n;
        }
        ring_.resize(slots_ * nbytes_);
    }
    ~WaveShadow() {
        if (model_) api_.destroy(model_);
    }
    WaveShadow(const WaveShadow&) = delete;
    WaveShadow& operator=(const WaveShadow&) = delete;

    bool alive() const { return model_ != nullptr && !dead_; }
    Model* model() { return model_; }
    size_t waiting() const { return count_; }
    // Take what the first model is given in this cycle.
    void push() {
        uint8_t* at = ring_.data() + (begin_ + count_) % slots_ * nbytes_;
        for (const Input& input : inputs_) {
            std::memcpy(at, input.from, input.nbytes);
            at += input.nbytes;
        }
        ++count_;
    }
    // The first half of the oldest cycle, then its second half.
    void low() {
        const uint8_t* at = ring_.data() + begin_ * nbytes_;
        for (const Input& input : inputs_) {
            std::memcpy(input.to, at, input.nbytes);
            if (input.clock) std::memset(input.to, 0, input.nbytes);
            at += input.nbytes;
        }
        begin_ = (begin_ + 1) % slots_;
        --count_;
        dead_ = dead_ || api_.eval(model_) != 0;
    }
    void high() {
        for (const Input& input : inputs_) {
            if (input.clock) *static_cast<uint8_t*>(input.to) = 1;
        }
        dead_ = dead_ || api_.eval(model_) != 0;
    }

private:
    struct Input {
        const void* from;
        void* to;
        size_t nbytes;
        bool clock;
    };
    const ModelApi& api_;
    Model* model_ = nullptr;
    bool dead_ = false;
    std::vector<Input> inputs_;
    size_t nbytes_ = 0;
    std::vector<uint8_t> ring_;
    size_t slots_, begin_ = 0, count_ = 0;
};

class WaveRecorder {
public:
    // `history`: the largest `before` that will be asked for, given where the model is created: the
    // second model has to see every cycle from the first one on. 0: there is no second model.
    WaveRecorder(const ModelApi& api, Model* model, WaveBox* box, uint32_t history = 0,
                 uint32_t seed = 0, uint32_t fill = kZeros)
        : api_(api), model_(model), box_(box), history_(history), seen_(box->answer) {
        // A file that reaches the limit of the process gives an error, not the end of the process.
        std::signal(SIGXFSZ, SIG_IGN);
        count_ = api.signals(model, &signals_);
        if (state() == WaveState::kArmed || state() == WaveState::kRecording) {
            fail("the PL ended while they were recorded");  // and this is the one after it
        }
        if (history_) shadow_ = std::make_unique<WaveShadow>(api, model, history_, seed, fill);
    }
    ~WaveRecorder() { finish(); }
    WaveRecorder(const WaveRecorder&) = delete;
    WaveRecorder& operator=(const WaveRecorder&) = delete;

    // Deal with a request of the board, if there is one; also while the clock stands.
    void poll() {
        const uint32_t request = __atomic_load_n(&box_->request, __ATOMIC_ACQUIRE);
        if (request == seen_) return;
        seen_ = request;
        if (box_->command == uint32_t(WaveCommand::kOpen)) arm();
        if (box_->command == uint32_t(WaveCommand::kClose)) close();
        __atomic_store_n(&box_->answer, request, __ATOMIC_RELEASE);
    }
    // After the evaluation with clk = 0: signals are settled, the inputs are those of this cycle.
    void low(uint64_t cycle) {
        poll();
        now_ = cycle;
        if (following()) shadow_->push();
        const bool start = start_.edge(), stop = stop_.edge();
        if (recording_ && end_ != kNever && start && box_->each) {
            // Both want the cycles in between: what led to this start goes into its own file, but
            // the event that ended the run before stays in that one's.
            const uint64_t history = std::min<uint64_t>(cycle, uint64_t{depth_} + 1);
            end_ = std::clamp(cycle - history, end_ - box_->after, end_);
            finish();
        }
        if (state() == WaveState::kArmed && cycle >= box_->from_cycle) {
            if (start || !start_.given()) begin();
        } else if (recording_ && end_ == kNever && stop) {
            end_ = cycle + box_->after;
        }
        if (following()) {
            for (; shadow_->waiting() > depth_ + 1; shadow_->high()) shadow_->low();
            moved_ = shadow_->waiting() > depth_;
            if (moved_) shadow_->low();
        }
        if (recording_ && (!follows_ || moved_)) dump(0);
    }
    // After the evaluation with clk = 1.
    void high(uint64_t cycle) {
        now_ = cycle;
        if (following() && moved_) shadow_->high();
        if (!recording_ || (follows_ && !moved_)) return;
        dump(box_->period_ps / 2);
        if (recording_ && position() >= last()) ended(WaveState::kFinished);
    }

private:
    WaveState state() const { return WaveState(box_->state); }
    void set(WaveState state) { box_->state = uint32_t(state); }
    bool following() const { return shadow_ && shadow_->alive(); }
    uint64_t last() const { return std::min(end_, box_->to_cycle); }
    // The cycle in which the model that is dumped stands.
    uint64_t position() const { return follows_ ? now_ - shadow_->waiting() : now_; }

    void arm() {
        finish();
        box_->files = 0;
        box_->error[0] = '\0';
        box_->bytes = box_->first_cycle = box_->last_cycle = box_->trigger_cycle = 0;
        depth_ = std::min(box_->before, history_);
        if (!api_.wave_open) {
            fail("the model was built without waves");
        } else if (box_->before > history_) {
            fail("the model was loaded without a second one that follows it");
        } else if (!start_.set(box_->start, signals_, count_)) {
            fail(std::string("the unit has no signal '") + box_->start + "' to trigger on");
        } else if (!stop_.set(box_->stop, signals_, count_)) {
            fail(std::string("the unit has no signal '") + box_->stop + "' to trigger on");
        } else {
            set(WaveState::kArmed);
        }
    }
    void close() {
        finish();
        if (state() == WaveState::kArmed) set(WaveState::kFinished);
    }

    void begin() {
        path_ = box_->path;
        if (const size_t at = path_.find("{n}"); box_->each && at != std::string::npos) {
            char number[16];
            std::snprintf(number, sizeof number, "%03u", box_->files + 1);
            path_.replace(at, 3, number);
        }
        // Verilator's writers say only that they failed; the reason is the file's own.
        FILE* probe = std::fopen(path_.c_str(), "wb");
        if (!probe) return fail(std::strerror(errno));
        std::fclose(probe);
        struct statvfs disk;
        if (statvfs(path_.c_str(), &disk) == 0 && room(disk) < kSpare) return fail(kNoSpace);
        follows_ = following();
        dumped_ = follows_ ? shadow_->model() : model_;
        if (api_.wave_open(dumped_, path_.c_str()) != 0) {
            const char* why = api_.error(dumped_);
            return fail(why ? why : "the file cannot be opened");
        }
        recording_ = true;
        end_ = kNever;
        box_->trigger_cycle = now_;
        box_->first_cycle = kNever;
        box_->files += 1;
        since_look_ = last_bytes_ = 0;
        interval_ = kFirstLook;
        set(WaveState::kRecording);
    }
    void dump(uint64_t offset_ps) {
        if (follows_ && !shadow_->alive()) return ended(WaveState::kFailed, "the model stopped");
        const uint64_t cycle = position();
        api_.wave_dump(dumped_, cycle * box_->period_ps + offset_ps);
        box_->first_cycle = std::min(box_->first_cycle, cycle);
        box_->last_cycle = cycle;
        if (offset_ps && ++since_look_ >= interval_) look();
    }
    // How large the file is, and what is left of the disk.
    void look() {
        since_look_ = 0;
        api_.wave_flush(dumped_);
        struct stat file;
        struct statvfs disk;
        struct rlimit most;
        if (stat(path_.c_str(), &file) != 0 || statvfs(path_.c_str(), &disk) != 0) {
            return ended(WaveState::kFailed, std::strerror(errno));
        }
        const uint64_t bytes = uint64_t(file.st_size);
        const uint64_t a_cycle = (bytes - std::min(bytes, last_bytes_)) / interval_ + 1;
        last_bytes_ = bytes;
        // Seldom while little comes, often where the file draws near to its limit.
        const uint64_t left = box_->limit_bytes - std::min(bytes, box_->limit_bytes);
        interval_ = std::min({2 * interval_, kLastLook, kLittle / a_cycle, left / a_cycle / 4});
        interval_ = std::max(interval_, kFirstLook);
        const uint64_t more = a_cycle * interval_;
        if (more >= left) {
            ended(WaveState::kLimit);
        } else if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY &&
                   bytes + kSpare / 4 + 2 * more >= most.rlim_cur) {
            ended(WaveState::kFailed, "a file of this process may not become larger (ulimit -f)");
        } else if (room(disk) < kSpare + 2 * more) {
            ended(WaveState::kFailed, kNoSpace);
        }
    }
    static uint64_t room(const struct statvfs& disk) {
        return uint64_t(disk.f_bavail) * disk.f_frsize;
    }

    // End the recording; the second model catches up first, so that the last cycles are in the file.
    void finish() {
        while (recording_ && follows_ && shadow_->waiting() && position() < last()) {
            shadow_->low();
            dump(0);
            shadow_->high();
            if (recording_) dump(box_->period_ps / 2);
        }
        if (recording_) ended(WaveState::kFinished);
    }
    void ended(WaveState how, const char* why = "") {
        recording_ = false;
        api_.wave_close(dumped_);
        struct stat file;
        box_->bytes = stat(path_.c_str(), &file) == 0 ? uint64_t(file.st_size) : 0;
        std::snprintf(box_->error, sizeof box_->error, "%s", why);
        set(how == WaveState::kFinished && box_->each ? WaveState::kArmed : how);
    }
    void fail(const std::string& why) {
        set(WaveState::kFailed);
        std::snprintf(box_->error, sizeof box_->error, "%s", why.c_str());
    }

    // Room that is left for others, bytes that may come unseen, cycles between two looks.
    static constexpr uint64_t kSpare = 1u << 20, kLittle = 64u << 10;
    static constexpr uint64_t kFirstLook = 64, kLastLook = 1024;
    static constexpr const char* kNoSpace = "no space left on the disk";

    const ModelApi& api_;
    Model* model_;
    WaveBox* box_;
    uint32_t history_, depth_ = 0, seen_;
    const Signal* signals_ = nullptr;
    size_t count_ = 0;
    std::unique_ptr<WaveShadow> shadow_;
    Model* dumped_ = nullptr;
    WaveTrigger start_, stop_;
    std::string path_;
    uint64_t now_ = 0, end_ = kNever, last_bytes_ = 0;
    uint64_t since_look_ = 0, interval_ = kFirstLook;
    bool recording_ = false, moved_ = false, follows_ = false;
};

}  // namespace rtl
}  // namespace pynq_torch
