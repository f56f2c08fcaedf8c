// The data mover behind an AXI DMA (PG021) and an AXI VDMA (PG020): one thread a channel between DDR
// and a stream.
//
// Registers live in the board's process (board/ip/axi_dma.py, axi_vdma.py). It posts jobs in the mailbox's user
// area and rings the doorbell; this process moves bytes, keeps the counters a diagnosis wants, and
// notifies. Every access is checked against the grants, so a wrong address or length is reported
// with its physical address and never touches a neighbour's buffer.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "burst.hpp"
#include "engine.hpp"

namespace {

using namespace pynq_torch;

// ---- Layout shared with board/ip/dma_channel.py ---------------------------------------------------

enum Mode : uint32_t { DIRECT = 0, CHAIN_START = 1, CHAIN_CONTINUE = 2, FRAME = 3 };
enum Phase : uint32_t { AT_REST = 0, MOVING = 1, NO_DATA = 2, NO_SPACE = 3, NO_TLAST = 4 };
enum Fault : uint32_t { NONE = 0, STRAY = 1, OVERRUN = 2, UNALIGNED = 3, DESCRIPTOR = 4 };

struct Slot {
    std::atomic<uint64_t> posted;    // 0    jobs asked for (host)
    std::atomic<uint64_t> finished;  // 8    jobs done, failed or aborted (engine)
    uint32_t mode;                   // 16
    std::atomic<uint32_t> abort;     // 20
    uint64_t address;                // 24   direct register mode
    uint64_t length;                 // 32   FRAME: of a line
    uint64_t current;                // 40   first descriptor of a chain; FRAME: from line to line
    std::atomic<uint64_t> tail;      // 48   may move while the chain runs; FRAME: lines
    uint32_t cyclic;                 // 56   FRAME: see FrameFlag
    uint32_t length_mask;            // 60
    std::atomic<uint64_t> bytes;     // 64   of this transfer
    std::atomic<uint64_t> beats;     // 72   of this transfer
    std::atomic<uint64_t> packets;   // 80   TLASTs sent or seen since the process started
    std::atomic<uint64_t> events;    // 88   interrupt-on-complete events since then
    std::atomic<uint64_t> descriptor;  // 96  the current one
    std::atomic<uint32_t> phase;     // 104
    std::atomic<uint32_t> error;     // 108  bits of DMASR
    uint32_t fault;                  // 112
    std::atomic<uint32_t> tlast;     // 116  in this transfer
    uint64_t fault_address;          // 120
    uint32_t port;                   // 128  index of the stream, kNoOffset where none is connected
    uint32_t memory_bytes;           // 132  data width of the memory-mapped side
    uint32_t realign;                // 136  the data realignment engine is there
    std::atomic<uint32_t> withdraw;  // 140  the host wants back what was sent and not taken
    std::atomic<uint64_t> total;     // 144  bytes since the process started
};
static_assert(sizeof(Slot) == 152, "layout shared with dma_channel.py");
constexpr size_t kSlotStride = 256;

// DMASR error bits (PG021, tables "MM2S_DMASR" and "S2MM_DMASR").
constexpr uint32_t kIntErr = 1u << 4, kSlvErr = 1u << 5, kDecErr = 1u << 6;
// Errors of lines and frames (PG020, "S2MM_VDMASR"): a VDMA goes on after them.
constexpr uint32_t kSofEarly = 1u << 7, kEolEarly = 1u << 8, kSofLate = 1u << 11, kEolLate = 1u << 15;
enum FrameFlag : uint32_t { kSync = 1, kFresh = 2 };  // starts at TUSER[0]; the first frame of a run
constexpr uint32_t kSgIntErr = 1u << 8, kSgDecErr = 1u << 10;
// Words and bits of a descriptor (PG021, "Scatter Gather Descriptor").
constexpr size_t kDescriptorBytes = 32;
constexpr uint32_t kFrameStart = 1u << 27, kFrameEnd = 1u << 26, kComplete = 1u << 31;
constexpr uint32_t kStatusErrorShift = 24;  // DMASR bits 4..6 are bits 28..30 of the status word

struct Stop {
    uint32_t error;
    uint32_t fault = NONE;
    uint64_t address = 0;
};

// The board's physical memories, and which of DDR's bytes belong to a buffer right now.
class Memory {
  public:
    Memory(const Mailbox& mailbox, int file, Grants* grants) : mailbox_(mailbox), grants_(grants) {
        for (uint32_t i = 0; i < mailbox.nwindows; ++i) {
            const auto& w = mailbox.windows[i];
            void* p = mmap(nullptr, w.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, off_t(w.file_offset));
            if (p == MAP_FAILED) g_engine->fault(0, "cannot map a physical memory");
            bases_.push_back(static_cast<uint8_t*>(p));
        }
    }
    struct Span {
        uint64_t begin = 0, end = 0, generation = ~0ull;
        uint8_t* at = nullptr;  // of `begin`
        bool buffer = false;    // a CMA buffer, not a memory of the PL
        bool mapped = false;    // false: nothing answers there
    };
    uint64_t generation() const { return grants_->generation.load(std::memory_order_acquire); }

    // The piece of memory around `address` that may be touched; empty when there is none.
    Span find(uint64_t address) const {
        Span span;
        span.generation = generation();
        for (uint32_t i = 0; i < mailbox_.nwindows; ++i) {
            const auto& w = mailbox_.windows[i];
            if (address < w.base || address >= w.base + w.size) continue;
            span.mapped = true;
            span.begin = w.base;
            span.end = w.base + w.size;
            if (w.base == 0 && mailbox_.guard) narrow(span, address);
            span.at = bases_[i] + (span.begin - w.base);
            return span;
        }
        return span;
    }

  private:
    void narrow(Span& span, uint64_t address) const {
        const size_t count = size_t(grants_->count.load(std::memory_order_acquire));
        span.buffer = true;
        for (size_t i = 0; i < count; ++i) {
            const auto s = grants_->slots[i];
            if (address >= s.begin && address < s.end) {
                span.begin = s.begin;
                span.end = s.end;
                return;
            }
        }
        span.begin = span.end = address;
    }

    const Mailbox& mailbox_;
    Grants* grants_;
    std::vector<uint8_t*> bases_;
};

// A position in memory that moves through one buffer and stops with an error at its end.
class Cursor {
  public:
    Cursor(const Memory& memory, uint64_t address) : memory_(memory), at_(address) {}

    // How many of the next `n` bytes can be touched at once; throws Stop when none can.
    size_t room(size_t n) {
        if (at_ >= span_.end || memory_.generation() != span_.generation) look_up();
        return size_t(std::min<uint64_t>(n, span_.end - at_));
    }
    void read(uint8_t* to, size_t n) {
        while (n > 0) {
            const size_t k = room(n);
            std::memcpy(to, span_.at + (at_ - span_.begin), k);
            to += k, at_ += k, n -= k;
        }
    }
    void write(const uint8_t* from, size_t n) {
        while (n > 0) {
            const size_t k = room(n);
            std::memcpy(span_.at + (at_ - span_.begin), from, k);
            from += k, at_ += k, n -= k;
        }
    }

  private:
    void look_up() {
        const bool was_inside = span_.buffer && span_.end > span_.begin;
        const uint64_t end = span_.end;
        span_ = memory_.find(at_);
        if (!span_.mapped) throw Stop{kDecErr, NONE, at_};
        if (span_.buffer && (span_.end == span_.begin || (was_inside && at_ >= end)))
            throw Stop{kSlvErr, was_inside && at_ >= end ? OVERRUN : STRAY, at_};
    }

    const Memory& memory_;
    uint64_t at_;
    Memory::Span span_;
};

class Channel;
void publish_state(Mailbox& mailbox, const std::vector<Channel*>& channels);

class Channel : public WaitObserver {
  public:
    Channel(Engine& engine, const Memory& memory, Slot& slot, int ring_fd, bool sends)
        : engine_(engine), memory_(memory), slot_(slot), sends_(sends) {
        if (ring_fd >= 0) {
            struct stat st {};
            fstat(ring_fd, &st);
            void* ring = mmap(nullptr, size_t(st.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
            if (ring == MAP_FAILED) engine.fault(0, "cannot map a stream");
            port_.attach(ring, int(slot.port), this);
        }
        width_ = port_.attached() ? port_.data_bytes() : 4;
        data_.resize(width_ + 8);
        beat_.data = data_.data();
    }

    void serve() {
        for (;;) {
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return slot_.posted.load() != slot_.finished.load(); });
            }
            run();
        }
    }
    // The doorbell rang: there is a job, or one to give up.
    void poke() {
        {
            std::lock_guard lock(mutex_);
            wake_.notify_all();
        }
        if (aborted()) port_.wake(true);
        // Asked for between two jobs only, so that nothing is being written.
        if (slot_.withdraw.load(std::memory_order_acquire) != 0) {
            port_.withdraw();
            slot_.withdraw.store(0, std::memory_order_release);
        }
    }
    bool at_rest() const { return slot_.posted.load() == slot_.finished.load(); }
    uint32_t phase() const { return slot_.phase.load(std::memory_order_relaxed); }
    uint32_t port() const { return slot_.port; }
    std::vector<Channel*>* all = nullptr;

    // WaitObserver: what the stream says when it blocks.
    void blocked(int, bool for_data) override {
        set_phase(!for_data ? NO_SPACE : full_ ? NO_TLAST : NO_DATA);
    }
    void unblocked() override { set_phase(MOVING); }
    bool aborted() override { return slot_.abort.load(std::memory_order_acquire) != 0; }

  private:
    void set_phase(Phase phase) {
        slot_.phase.store(phase, std::memory_order_release);
        publish_state(*engine_.mailbox, *all);
    }

    void run() {
        uint64_t job = slot_.posted.load(std::memory_order_acquire);
        slot_.tlast.store(0);
        slot_.bytes.store(0);
        slot_.beats.store(0);
        full_ = false;
        lines_ = 0;
        set_phase(MOVING);
        Stop stop{0};
        try {
            if (slot_.mode == DIRECT) {
                move(Cursor(memory_, start(slot_.address)), slot_.length);
                event();
            } else if (slot_.mode == FRAME) {
                sends_ ? send_frame() : receive_frame();
                event();
            } else {
                job = chain(job);
            }
        } catch (const Stop& s) {
            stop = s;
        } catch (const Aborted&) {
            job = slot_.posted.load(std::memory_order_acquire);
        }
        if (sends_) port_.publish_written();
        else port_.publish_read();
        slot_.fault = stop.fault;
        slot_.fault_address = stop.address;
        slot_.error.store(stop.error | lines_, std::memory_order_release);
        if (stop.error) job = slot_.posted.load(std::memory_order_acquire);
        slot_.phase.store(AT_REST, std::memory_order_release);
        slot_.finished.store(job);
        publish_state(*engine_.mailbox, *all);
        engine_.notify();
    }

    // The address as the memory port sees it. Without the realignment engine an unaligned address is
    // undefined (PG021, "MM2S_SA"): the guarded board refuses it, the unguarded one drops the low bits.
    uint64_t start(uint64_t address) const {
        const uint64_t low = slot_.realign ? 0 : address & (uint64_t(slot_.memory_bytes) - 1);
        if (low && engine_.mailbox->guard) throw Stop{kSlvErr, UNALIGNED, address};
        return address - low;
    }

    void event() { slot_.events.fetch_add(1, std::memory_order_release); }

    // Direct register mode: one packet.
    void move(Cursor cursor, uint64_t length) {
        if (sends_) {
            send(cursor, length, true);
            port_.drain();
        } else {
            carry_.clear();
            receive_packet(cursor, length);
        }
    }

    void need_stream(bool for_data) {
        if (port_.attached()) return;
        blocked(-1, for_data);
        while (!aborted()) usleep(10'000);
        throw Aborted{};
    }

    void send(Cursor& cursor, uint64_t length, bool last) {
        need_stream(false);
        for (uint64_t left = length; left > 0;) {
            const size_t n = size_t(std::min<uint64_t>(left, width_));
            if (n < width_) std::memset(beat_.data, 0, width_);
            cursor.read(beat_.data, n);
            left -= n;
            beat_.keep[0] = n >= 64 ? ~0ull : (1ull << n) - 1;
            beat_.keep[1] = n >= 128 ? ~0ull : n > 64 ? (1ull << (n - 64)) - 1 : 0;
            beat_.last = last && left == 0;
            beat_.user = std::exchange(start_of_frame_, false);
            if (aborted()) throw Aborted{};
            if (left > 0) {
                port_.write(beat_);
            } else {
                port_.write_last(beat_);
            }
            count(n, beat_.last);
        }
    }

    void count(size_t n, bool last) {
        slot_.bytes.fetch_add(n, std::memory_order_relaxed);
        slot_.total.fetch_add(n, std::memory_order_relaxed);
        slot_.beats.fetch_add(1, std::memory_order_relaxed);
        auto& beats = sends_ ? engine_.mailbox->beats_out : engine_.mailbox->beats_in;
        beats.fetch_add(1, std::memory_order_relaxed);
        if (last) {
            slot_.tlast.store(1, std::memory_order_relaxed);
            slot_.packets.fetch_add(1, std::memory_order_relaxed);
        }
    }

    // Takes one beat, packs its valid bytes to the front and returns their number.
    size_t take() {
        if (aborted()) throw Aborted{};
        port_.read(beat_);
        size_t n = 0;
        const uint64_t all = width_ >= 64 ? ~0ull : (1ull << width_) - 1;
        if (width_ <= 64 && (beat_.keep[0] & all) == all) n = width_;
        for (size_t i = n; i < width_; ++i) {
            if (beat_.keep[i >> 6] >> (i & 63) & 1) beat_.data[n++] = beat_.data[i];
        }
        count(n, beat_.last);
        return n;
    }

    void receive_packet(Cursor& cursor, uint64_t length) {
        need_stream(true);
        uint64_t received = 0;
        for (;;) {
            full_ = received == length;  // complete but for TLAST: the channel stays busy
            const size_t n = take();
            const size_t fits = size_t(std::min<uint64_t>(n, length - received));
            cursor.write(beat_.data, fits);
            received += fits;
            // The packet is bigger than the length register says (PG021, S2MM_DMASR.DMAIntErr).
            if (fits < n) {
                slot_.bytes.store(received);
                throw Stop{kIntErr};
            }
            if (beat_.last) return;
        }
    }

    // A packet for each line; TUSER[0] marks the first beat of the frame (PG020, "AXI4-Stream").
    void send_frame() {
        start_of_frame_ = true;
        for (uint64_t line = 0; line < tail_value(); ++line) {
            Cursor cursor(memory_, start(slot_.address + line * slot_.current));
            send(cursor, slot_.length, true);
        }
        port_.drain();
    }

    // Lines that are too short or too long, and frames out of step, are noted (PG020, "Line and Frame
    // Errors"). A beat with TUSER[0] that comes too early is held for the next frame.
    void receive_frame() {
        need_stream(true);
        const bool sync = slot_.cyclic & kSync;
        if (slot_.cyclic & kFresh) held_ = false;
        bool in_step = !(slot_.cyclic & kFresh);
        while (hold(), sync && !(beat_.user & 1)) {
            if (in_step) lines_ |= kSofLate;
            held_ = false;
        }
        for (uint64_t line = 0; line < tail_value(); ++line) {
            Cursor cursor(memory_, start(slot_.address + line * slot_.current));
            uint64_t received = 0;
            for (bool last = false; !last;) {
                full_ = received == slot_.length;
                hold();
                if (sync && beat_.user & 1 && (line > 0 || received > 0)) {
                    lines_ |= kSofEarly;
                    return;
                }
                held_ = false;
                const size_t fits = size_t(std::min<uint64_t>(held_bytes_, slot_.length - received));
                cursor.write(beat_.data, fits);
                received += fits;
                last = beat_.last;
                if (fits < held_bytes_ || (received == slot_.length && !last)) lines_ |= kEolLate;
            }
            if (received < slot_.length) lines_ |= kEolEarly;
        }
    }
    void hold() {
        if (held_) return;
        held_bytes_ = take();
        held_ = true;
    }

    // Scatter-gather: descriptors from the current one to the tail.
    uint64_t chain(uint64_t job) {
        if (slot_.mode == CHAIN_START) {
            slot_.mode = CHAIN_CONTINUE;
            next_ = slot_.current;
            open_ = false;
            carry_.clear();
        }
        for (;;) {
            if (aborted()) throw Aborted{};
            const uint64_t at = next_ & ~uint64_t(63);
            slot_.descriptor.store(at, std::memory_order_release);
            uint32_t words[8];
            fetch(at, words);
            if (words[7] & kComplete && !slot_.cyclic) throw Stop{kSgIntErr, NONE, at};
            one(at, words);
            next_ = words[0];
            // `posted` before `tail`: a tail that moves in between is then served by the next job.
            job = slot_.posted.load(std::memory_order_acquire);
            if (!slot_.cyclic && at == tail()) return job;
        }
    }

    uint64_t tail_value() const { return slot_.tail.load(std::memory_order_acquire); }
    uint64_t tail() const { return slot_.tail.load(std::memory_order_acquire) & ~uint64_t(63); }

    Memory::Span descriptor_memory(uint64_t at) const {
        const auto span = memory_.find(at);
        if (!span.mapped || (!span.buffer && at + kDescriptorBytes > span.end)) throw Stop{kSgDecErr, NONE, at};
        if (at + kDescriptorBytes > span.end) throw Stop{kSgDecErr, DESCRIPTOR, at};
        return span;
    }
    void fetch(uint64_t at, uint32_t (&words)[8]) const {
        const auto span = descriptor_memory(at);
        std::memcpy(words, span.at + (at - span.begin), sizeof words);
    }
    void update(uint64_t at, uint32_t status) const {
        const auto span = descriptor_memory(at);
        std::memcpy(span.at + (at - span.begin) + 28, &status, 4);
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }

    void one(uint64_t at, const uint32_t (&words)[8]) {
        const uint64_t length = words[6] & slot_.length_mask;
        const uint64_t before = slot_.bytes.load(std::memory_order_relaxed);
        try {
            if (length == 0) throw Stop{kIntErr, NONE, at};
            Cursor cursor(memory_, start(words[2]));
            if (sends_) {
                const bool last = (words[6] & kFrameEnd) != 0;
                send(cursor, length, last);
                // Where the chain goes on within a packet, so do its beats: only a packet that has
                // ended, or a chain, is waited for.
                if (last || at == tail()) port_.drain();
                update(at, uint32_t(length) | kComplete);
                if (last) event();
            } else {
                fill(at, cursor, length);
            }
        } catch (const Stop& stop) {
            const uint64_t moved = slot_.bytes.load(std::memory_order_relaxed) - before;
            const uint32_t errors = stop.error & (kIntErr | kSlvErr | kDecErr);
            update(at, uint32_t(moved & slot_.length_mask) | errors << kStatusErrorShift | kComplete);
            throw;
        }
        engine_.notify();
    }

    // One buffer of a packet: ends at TLAST or when it is full (PG021, "Scatter/Gather Mode").
    void fill(uint64_t at, Cursor& cursor, uint64_t length) {
        need_stream(true);
        uint64_t filled = 0;
        const bool first = !open_;
        bool last = false;
        while (filled < length && !last) {
            if (carry_.empty()) {
                const size_t n = take();
                carry_.assign(beat_.data, beat_.data + n);
                carry_last_ = beat_.last;
            }
            const size_t n = size_t(std::min<uint64_t>(carry_.size(), length - filled));
            cursor.write(carry_.data(), n);
            carry_.erase(carry_.begin(), carry_.begin() + std::ptrdiff_t(n));
            filled += n;
            last = carry_.empty() && carry_last_;
        }
        open_ = !last;
        update(at, uint32_t(filled) | (first ? kFrameStart : 0) | (last ? kFrameEnd : 0) | kComplete);
        if (last) event();
    }

    Engine& engine_;
    const Memory& memory_;
    Slot& slot_;
    const bool sends_;
    BurstPort port_;
    size_t width_ = 4;
    Beat beat_;
    std::vector<unsigned char> data_;
    std::vector<unsigned char> carry_;  // bytes of a beat that did not fit the last buffer
    bool carry_last_ = false;
    bool open_ = false;  // in the middle of a packet
    bool full_ = false;
    bool start_of_frame_ = false;
    bool held_ = false;  // beat_ was taken, and belongs to the next line or frame
    size_t held_bytes_ = 0;
    uint32_t lines_ = 0;  // errors of lines in this frame
    uint64_t next_ = 0;
    std::mutex mutex_;
    std::condition_variable wake_;
};

// One state for the whole DMA: running if a channel is, else blocked if one is, else idle.
void publish_state(Mailbox& mailbox, const std::vector<Channel*>& channels) {
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    State state = IDLE;
    const uint64_t started = mailbox.started.load();  // before looking whether all are at rest
    bool at_rest = true;
    for (const Channel* c : channels) {
        at_rest = at_rest && c->at_rest();
        const uint32_t phase = c->phase();
        if (phase == MOVING) state = RUNNING;
        if (phase > MOVING && state != RUNNING) {
            state = phase == NO_SPACE ? WAIT_WRITE : WAIT_READ;
            mailbox.blocked_port = c->port();
        }
    }
    mailbox.state.store(state, std::memory_order_release);
    if (at_rest) mailbox.completed.store(started, std::memory_order_release);
}

}  // namespace

int main(int argc, char** argv) {
    static Engine engine(argc, argv);
    Mailbox& mailbox = *engine.mailbox;
    const int ddr_fd = std::atoi(argv[3]), grants_fd = std::atoi(argv[4]);
    void* grants = mmap(nullptr, std::strtoull(argv[5], nullptr, 10), PROT_READ, MAP_SHARED, grants_fd, 0);
    if (grants == MAP_FAILED) engine.fault(0, "cannot map the grants");
    static Memory memory(mailbox, ddr_fd, static_cast<Grants*>(grants));

    std::vector<Channel*> channels;
    for (size_t i = 0; i < 2; ++i) {
        auto& slot = *reinterpret_cast<Slot*>(mailbox.user + i * kSlotStride);
        const bool connected = int(slot.port) >= 0 && int(slot.port) + 9 < argc;
        channels.push_back(
            new Channel(engine, memory, slot, connected ? std::atoi(argv[9 + slot.port]) : -1, i == 0));
    }
    for (Channel* c : channels) {
        c->all = &channels;
        std::thread([c] { c->serve(); }).detach();
    }
    engine.set_state(IDLE);
    engine.notify();
    while (engine.wait_doorbell()) {
        for (Channel* c : channels) c->poke();
    }
    _exit(0);
}
