// Runtime of an engine process: one compute unit of the virtual PL, served over shared memory.
//
// The board starts the process with file descriptors for three shared mappings: the mailbox (commands,
// status, register pages), the DDR (one file covering every physical memory of the board) and the
// grants (which physical ranges belong to a buffer). A kernel sees the whole 4 GB physical address
// space as one reservation; only granted pages are accessible, so a stray access faults and is
// reported with its physical address instead of corrupting a neighbour.
#pragma once

#include "children.hpp"
#include "stream.hpp"
#ifdef PYNQ_TORCH_AXIS_ARRAYS
#include "pynq_torch_beat.h"
#endif

#include <algorithm>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <new>
#include <poll.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <tuple>
#include <type_traits>
#include <ucontext.h>
#include <unistd.h>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace pynq_torch {

// ---- Layout shared with board/engine.py ---------------------------------------------------------

enum State : uint32_t { BOOTING = 0, IDLE = 1, RUNNING = 2, WAIT_READ = 3, WAIT_WRITE = 4, FAULT = 5 };
enum Flag : uint32_t { AUTO_RESTART = 1, FREE_RUNNING = 2, ABORT = 4, CHAIN = 8, RELATCH = 16 };

struct Mailbox {
    uint32_t magic;                  // 0
    uint32_t nrings;                 // 4
    std::atomic<uint32_t> flags;     // 8   host -> engine
    std::atomic<uint32_t> state;     // 12
    std::atomic<uint64_t> started;   // 16  starts asked for (host)
    std::atomic<uint64_t> completed; // 24  runs finished (engine)
    std::atomic<uint64_t> continued; // 32  ap_continue received (host, ap_ctrl_chain)
    uint64_t run_ns;                 // 40  wall clock of the last run
    uint32_t fault_signal;           // 48
    uint32_t fault_access;           // 52  0 unknown, 1 read, 2 write
    uint64_t fault_address;          // 56  physical, or host pointer when fault_physical is 0
    uint32_t fault_physical;         // 64
    uint32_t blocked_port;           // 68  argument port index while WAIT_READ / WAIT_WRITE
    std::atomic<uint64_t> beats_in;  // 72
    std::atomic<uint64_t> beats_out; // 80
    uint32_t nwindows;               // 88  physical memories
    uint32_t guard;                  // 92
    char message[664];               // 96
    char outside[256];               // 760 the first thing that a board would do otherwise; "": none
    std::atomic<uint64_t> read_ahead; // 1016 address of a read just outside a buffer; 0: none
    uint8_t user[1024];              // 1024
    struct Window { uint64_t base, size, file_offset; } windows[16];  // 2048
    struct Offsets { uint32_t data, out, valid, bytes; } offsets[104]; // 2432: by argument, return value last
};
static_assert(offsetof(Mailbox, message) == 96 && offsetof(Mailbox, outside) == 760, "layout");
static_assert(offsetof(Mailbox, user) == 1024, "layout");
static_assert(offsetof(Mailbox, windows) == 2048 && offsetof(Mailbox, offsets) == 2432, "layout");
static_assert(sizeof(Mailbox) == 4096, "layout shared with engine.py");
constexpr uint32_t kMailboxMagic = 0x50594e51;
constexpr size_t kRegistersOffset = sizeof(Mailbox);
constexpr uint32_t kNoOffset = 0xffffffff;

struct Grants {
    std::atomic<uint64_t> generation;
    std::atomic<uint64_t> count;  // slots in use so far
    struct Slot { uint64_t begin, end; } slots[];
};

// ---- The process --------------------------------------------------------------------------------

class Engine;
inline Engine* g_engine = nullptr;

class Engine : public WaitObserver {
  public:
    Mailbox* mailbox = nullptr;
    uint8_t* registers = nullptr;
    std::vector<Port> ports;

    // argv: mailbox_fd mailbox_bytes ddr_fd grants_fd grants_bytes start_fd done_fd life_fd ring_fd...
    Engine(int argc, char** argv);

    // The kernel's pointer to a physical address. Nothing answers above 4 GB on a Zynq-7000.
    uint8_t* at(uint64_t physical) {
        return physical < kSpan ? window_ + physical : beyond(physical);
    }

    // Waits for the next AP_START; false when the board closes the engine. A short spin comes first:
    // programs start the next run soon after the last, and waking a sleeper costs more than a run.
    bool wait_start();
    // Sleeps until the board rings; false when that can never happen again.
    bool wait_doorbell();
    bool start_pending() const {
        return mailbox->started.load(std::memory_order_acquire) >
               mailbox->completed.load(std::memory_order_relaxed);
    }
    int start_fd() const { return start_fd_; }

    // Ends a child that the kernel forked, and that came back here as if it were the engine.
    void leave_if_child() const {
        if (getpid() != pid_) _exit(0);
    }

    void notify() const {
        const uint64_t one = 1;
        [[maybe_unused]] const ssize_t n = write(done_fd_, &one, sizeof one);
    }
    void set_state(State s) { mailbox->state.store(s, std::memory_order_release); }
    bool has(Flag flag) const { return mailbox->flags.load(std::memory_order_acquire) & flag; }

    // Opens the pages of buffers allocated since the last run and closes those freed.
    void apply_grants();

    // Where an array behind a stream ends.
    struct PastTheEnd {
        uint8_t* at;
        size_t bytes, argument, count;
        bool packet;  // all that came up to TLAST
    };
    std::vector<PastTheEnd> past_the_end;

    // A read of up to kReach bytes outside a buffer, in memory that belonged to none, gives what is
    // there, as on the board. The page is open for this one instruction: the processor's trap flag
    // ends it with a SIGTRAP.
    bool let_read(uint64_t address, void* context);
    // The instruction that read outside a buffer is over; false where there was none.
    bool close_again(void* context);

    [[noreturn]] void fault(int signal, const char* text);

    void blocked(int port, bool waiting_for_data) override;
    void unblocked() override;
    bool aborted() override;
    bool stale() override;

    // Beats that this engine moved, on all its ports.
    uint64_t moved() const;
    // The registers are read now; a write that comes later makes a run that only waits stale.
    void latch();

  private:
    static constexpr uint64_t kSpinNs = 50'000;
    // Physical addresses that have their place in the reservation. A processor of 32 bits has room
    // for DDR only, and each memory of the PL is where the system puts it.
    static constexpr bool kWide = sizeof(void*) >= 8;
    static constexpr uint64_t kSpan = kWide ? uint64_t(1) << 32 : uint64_t(1) << 30;
    static constexpr size_t kMargin = kWide ? size_t(1) << 30 : size_t(1) << 28;
    static constexpr long long kTrapFlag = 0x100;  // of EFLAGS (Intel SDM vol. 3, 2.3)

    struct Range { uint64_t begin, end; };

    [[noreturn]] static void die(const char* text);
    static void* map(uint64_t fd, uint64_t bytes);
    void reserve(int ddr_fd);
    uint8_t* beyond(uint64_t address);
    uint64_t physical_of(const uint8_t* p) const;
    void protect(uint64_t begin, uint64_t end, int prot) const;
    static void on_signal(int signal, siginfo_t* info, void* context);
    void install_handlers();

    const pid_t pid_ = getpid();
    uint64_t moved_before_ = 0;
    Grants* grants_ = nullptr;
    uint64_t generation_ = ~0ull;
    std::vector<Range> applied_;
    static uint64_t pages_of(uint64_t end) { return (std::min(end, uint64_t(1) << 32) + 4095) / 4096; }
    uint8_t* freed_ = nullptr;  // 1: the page belonged to a buffer that was freed
    uint64_t opened_[2] = {};
    unsigned opened_count_ = 0;
    uint8_t* reservation_ = nullptr;
    size_t reservation_bytes_ = 0;
    uint8_t* window_ = nullptr;
    std::vector<uint8_t*> places_;  // of the memories, where they are beyond kSpan
    uint64_t beyond_ = kSpan;       // the last address beyond it that no memory has
    int start_fd_ = -1, done_fd_ = -1, life_fd_ = -1;
};

// ---- From registers to C++ arguments --------------------------------------------------------------

enum class Kind { none, scalar, scalar_ptr, memory, m_axi, burst_maxi, axis, axis_array };

struct Arg {
    Kind kind;
    uint32_t bits = 32;     // of one element; of the value for scalars
    uint64_t length = 1;    // elements, 0: a pointer to packets; streams of an array of streams
};

// Bits <-> value. ap_int and ap_fixed are recognised by their `width` and `range()`; everything else
// that is passed through registers is trivially copyable and its bytes are its bits.
template <class T, class = void> struct HasRange : std::false_type {};
template <class T>
struct HasRange<T, std::void_t<decltype(T::width), decltype(std::declval<T&>().range(0, 0))>>
    : std::true_type {};

template <class T> void load_bits(T& value, const uint8_t* at) {
    if constexpr (HasRange<T>::value) {
        for (int low = 0; low < T::width; low += 32) {
            const int high = low + 31 < T::width ? low + 31 : T::width - 1;
            uint32_t word;
            std::memcpy(&word, at + low / 8, 4);
            const int bits = high - low + 1;
            if (bits < 32) word &= (1u << bits) - 1u;
            value.range(high, low) = word;
        }
    } else if constexpr (std::is_same_v<T, bool>) {
        value = (at[0] & 1) != 0;
    } else {
        std::memcpy(static_cast<void*>(&value), at, sizeof(T));
    }
}

template <class T> void store_bits(const T& value, uint8_t* at) {
    if constexpr (HasRange<T>::value) {
        T copy = value;
        for (int low = 0; low < T::width; low += 32) {
            const int high = low + 31 < T::width ? low + 31 : T::width - 1;
            const uint32_t word = uint32_t(copy.range(high, low).to_uint());
            std::memcpy(at + low / 8, &word, 4);
        }
    } else {
        // The register holds a whole word: bytes above the value read as zero.
        uint64_t word = 0;
        if constexpr (sizeof(T) < 4) {
            std::memcpy(&word, &value, sizeof(T));
            std::memcpy(at, &word, 4);
        } else {
            std::memcpy(at, static_cast<const void*>(&value), sizeof(T));
        }
    }
}

template <class T, class = void> struct IsStream : std::false_type {};
template <class T> struct IsStream<T, std::void_t<typename T::pynq_torch_stream>> : std::true_type {};

template <class T> using Plain = std::remove_cv_t<std::remove_reference_t<T>>;

// One beat of an `axis` array argument, by the rules for hls::stream. Only the build of a kernel
// with one defines PYNQ_TORCH_AXIS_ARRAYS: the rules bring the arbitrary-precision headers along.
#ifdef PYNQ_TORCH_AXIS_ARRAYS
template <class T> struct ArrayBeat {
    // A struct with a TLAST of its own says where packets end.
    static constexpr bool packets = detail::side_channels<T>() && detail::has_last<T>::value;
    static bool read(Port& port, T& value) {
        std::vector<unsigned char> bytes(std::max(port.data_bytes, BeatOf<T>::min_bytes) + 8);
        Beat beat;
        beat.data = bytes.data();
        port.read(beat);
        BeatOf<T>::unpack(beat, port.data_bytes, value);
        return beat.last;
    }
    static bool ends(const T& value) {
        if constexpr (packets) return static_cast<bool>(value.last);
        return false;
    }
    static void write(Port& port, const T& value, bool last) {
        std::vector<unsigned char> bytes(std::max(port.data_bytes, BeatOf<T>::min_bytes) + 8);
        Beat beat;
        beat.data = bytes.data();
        beat.last = last;
        BeatOf<T>::pack(value, port.data_bytes, beat);
        port.write(beat);
    }
};
#endif

class Frame {
  public:
    Frame(Engine& engine, const Arg* args, size_t nargs);

    // The objects an argument needs live here until the run's outputs have been stored.
    struct Holder {
        virtual void finish();
        virtual ~Holder();
    };

    template <class P> decltype(auto) get(size_t i) {
        const Arg& arg = args_[i];
        const auto& offset = engine_.mailbox->offsets[i];
        using T = Plain<P>;
        using Value = std::remove_cv_t<std::remove_all_extents_t<std::remove_pointer_t<T>>>;
        static_assert(sizeof(long) == 8 || !(std::is_same_v<Value, long> || std::is_same_v<Value, unsigned long>),
                      "an argument is a long, which has 64 bits in HLS and 32 here: write long long");
        if constexpr (IsStream<T>::value) {
            return static_cast<P>(*streams<T>(i));
        } else if constexpr (std::is_pointer_v<T> &&
                             IsStream<std::remove_cv_t<std::remove_pointer_t<T>>>::value) {
            return static_cast<T>(streams<std::remove_cv_t<std::remove_pointer_t<T>>>(i));
        } else if constexpr (std::is_pointer_v<T>) {
            using Element = std::remove_cv_t<std::remove_all_extents_t<std::remove_pointer_t<T>>>;
            return reinterpret_cast<T>(pointer<Element>(arg, offset, i));
        } else if constexpr (std::is_lvalue_reference_v<P>) {
            using Element = std::remove_all_extents_t<T>;
            if constexpr (std::is_array_v<T>) {
                return static_cast<P>(*reinterpret_cast<std::remove_reference_t<P>*>(
                    pointer<std::remove_cv_t<Element>>(arg, offset, i)));
            } else {
                return static_cast<P>(*pointer<T>(arg, offset, i));
            }
        } else {
            if (arg.kind == Kind::burst_maxi) return from_address<T>(address(offset));
            Room<T> room;  // a burst_maxi, for one, has no default constructor
            if (offset.data != kNoOffset) load(room.value(), offset.data, arg.bits);
            return T(room.value());
        }
    }

    // Forgets the arguments of a run that did not take place.
    void discard();
    void finish();

    template <class R> void store_return(const R& value) {
        const auto& offset = engine_.mailbox->offsets[nargs_];
        if (offset.data == kNoOffset) return;
        store_bits(value, engine_.registers + offset.data);
        set_valid(offset.valid);
    }

    void drain_outputs();

  private:
    // A value that starts as zero bits where its type has no default constructor.
    template <class T> struct Room {
        alignas(T) unsigned char bytes[sizeof(T)] = {};
        Room() {
            if constexpr (std::is_default_constructible_v<T>) new (bytes) T();
        }
        T& value() { return *reinterpret_cast<T*>(bytes); }
    };
    template <class T> struct Scalar : Holder {
        Room<T> room;
        T& value = room.value();
        Frame* frame = nullptr;
        uint32_t out = kNoOffset, valid = kNoOffset;
        void finish() override {
            if (out == kNoOffset) return;
            store_bits(value, frame->engine_.registers + out);
            frame->set_valid(valid);
        }
    };
#ifdef PYNQ_TORCH_AXIS_ARRAYS
    // What an array or a pointer behind a stream shows the kernel. It ends where memory
    // does: a kernel that goes past it crashes there, and does not read or write something else.
    template <class T> struct Array : Holder {
        static constexpr size_t most = 1u << 20;  // elements behind a pointer
        T* values = nullptr;
        size_t count = 0;
        Port* out = nullptr;

        Array(size_t index, size_t elements, bool sized, bool packet = false)
            : count(elements), sized_(sized) {
            const size_t page = size_t(sysconf(_SC_PAGESIZE));
            const size_t used = (count * sizeof(T) + page - 1) / page * page;
            nbytes_ = used + page;
            pages_ = static_cast<uint8_t*>(mmap(nullptr, nbytes_, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
            if (pages_ == MAP_FAILED) g_engine->fault(0, "no memory for an array behind a stream");
            mprotect(pages_ + used, page, PROT_NONE);
            values = reinterpret_cast<T*>(pages_ + used - count * sizeof(T));
            // Zeroed memory where a struct has no default constructor.
            if constexpr (std::is_default_constructible_v<T>)
                for (size_t k = 0; sized && k < count; ++k) new (values + k) T();
            const auto* first = reinterpret_cast<const uint8_t*>(values);
            blank_.assign(first, first + sizeof(T));
            g_engine->past_the_end.push_back({pages_ + used, page, index, count, packet});
        }
        ~Array() override {
            auto& ends = g_engine->past_the_end;
            const auto own = [&](const Engine::PastTheEnd& end) { return end.at == pages_ + nbytes_ - end.bytes; };
            ends.erase(std::remove_if(ends.begin(), ends.end(), own), ends.end());
            munmap(pages_, nbytes_);
        }
        void finish() override {
            if (!out) return;
            const size_t used = written();
            for (size_t i = 0; i < used; ++i)
                ArrayBeat<T>::write(*out, values[i], !ArrayBeat<T>::packets && i + 1 == used);
        }

      private:
        // Elements up to the last one that the kernel has touched. Of an array without any TLAST it is
        // all of them.
        size_t written() const {
            if (!ArrayBeat<T>::packets) return count;
            size_t used = count;
            while (used > 0 && std::memcmp(values + used - 1, blank_.data(), sizeof(T)) == 0) --used;
            const bool ends = std::any_of(values, values + used, ArrayBeat<T>::ends);
            return sized_ && !ends ? count : used;
        }

        bool sized_;
        std::vector<uint8_t> blank_;  // an element that nobody has touched
        uint8_t* pages_ = nullptr;
        size_t nbytes_ = 0;
    };

    // Takes a packet, all beats up to TLAST, for a kernel that has a pointer behind the stream.
    template <class T> std::unique_ptr<Array<T>> packet(Port& port, size_t index) {
        std::vector<Room<T>> beats;
        do {
            if (beats.size() == Array<T>::most) {
                engine_.fault(0, "a packet for a pointer behind a stream has more than 1048576 beats");
            }
            beats.emplace_back();
        } while (!ArrayBeat<T>::read(port, beats.back().value()));
        auto array = std::make_unique<Array<T>>(index, beats.size(), true, true);
        for (size_t k = 0; k < beats.size(); ++k) array->values[k] = beats[k].value();
        return array;
    }
#endif

    template <class T> void load(T& value, uint32_t at, uint32_t bits) {
        (void)bits;
        // A small scratch copy: the value may be wider than what is left of the page.
        alignas(8) uint8_t bytes[sizeof(T) + 8] = {};
        const uint32_t n = (uint32_t(sizeof(T)) + 3u) & ~3u;
        std::memcpy(bytes, engine_.registers + at, n < sizeof bytes ? n : sizeof bytes);
        load_bits(value, bytes);
    }

    void hold(Holder* holder);
    void set_valid(uint32_t at);
    uint64_t address(const Mailbox::Offsets& offset) const;

    template <class T> T* pointer(const Arg& arg, const Mailbox::Offsets& offset,
                                  [[maybe_unused]] size_t i) {
        switch (arg.kind) {
        case Kind::m_axi:
        case Kind::burst_maxi:
            return reinterpret_cast<T*>(engine_.at(address(offset)));
        case Kind::memory:
            return reinterpret_cast<T*>(engine_.registers + offset.data);
        case Kind::axis_array: {
#ifdef PYNQ_TORCH_AXIS_ARRAYS
            Port& port = engine_.ports[ports_of_[i]];
            // The board marks an output by giving it an `out` offset; a stream has no register.
            const bool output = offset.out != kNoOffset, sized = arg.length > 0;
            std::unique_ptr<Array<T>> holder;
            if (sized || output) {
                holder = std::make_unique<Array<T>>(i, sized ? size_t(arg.length) : Array<T>::most, sized);
                if (output) holder->out = &port;
                for (size_t k = 0; !output && k < holder->count; ++k)
                    ArrayBeat<T>::read(port, holder->values[k]);
            } else {
                holder = packet<T>(port, i);
            }
            T* p = holder->values;
            hold(holder.release());
            return p;
#else
            engine_.fault(0, "an array behind a stream, and the engine was built without them");
#endif
        }
        default: {
            auto* holder = new Scalar<T>();
            hold(holder);
            holder->frame = this;
            if (offset.data != kNoOffset) load(holder->value, offset.data, arg.bits);
            holder->out = offset.out;
            holder->valid = offset.valid;
            return &holder->value;
        }
        }
    }

    template <class T> T from_address(uint64_t physical) {
        if constexpr (std::is_class_v<T> && std::is_constructible_v<T, uint8_t*>) {
            return T(engine_.at(physical));
        } else if constexpr (std::is_trivially_copyable_v<T> && sizeof(T) == sizeof(uint64_t)) {
            const uint64_t host = uint64_t(reinterpret_cast<uintptr_t>(engine_.at(physical)));
            T value;
            std::memcpy(static_cast<void*>(&value), &host, sizeof host);
            return value;
        } else {
            engine_.fault(0, "an argument marked burst_maxi has another type");
        }
    }

    // Streams keep what they hold between runs, as the FIFO in the PL does.
    template <class S> S* streams(size_t i) {
        auto& slot = stream_arrays_[i < 128 ? i : 127];
        if (!slot) {
            const size_t count = size_t(args_[i].length);
            auto array = std::shared_ptr<S[]>(new S[count]);
            for (size_t s = 0; s < count; ++s) array[s].bind(&engine_.ports[ports_of_[i] + s]);
            slot = std::shared_ptr<void>(array, array.get());
        }
        return static_cast<S*>(slot.get());
    }

    Engine& engine_;
    const Arg* args_;
    size_t nargs_;
    std::vector<size_t> ports_of_;
    std::vector<std::unique_ptr<Holder>> holders_;
    std::vector<uint32_t> valid_;  // ap_vld words of outputs this run has stored
    std::shared_ptr<void> stream_arrays_[128];
};

template <class R, class... A, size_t... I>
void invoke(Frame& frame, R (*top)(A...), std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
        top(frame.get<A>(I)...);
        g_engine->leave_if_child();
    } else {
        const Plain<R> result = static_cast<Plain<R>>(top(frame.get<A>(I)...));
        g_engine->leave_if_child();
        frame.store_return(result);
    }
}

// Calls the kernel once, with the arguments that the frame reads from the registers.
using Run = void (*)(Frame&);

// Runs the kernel as often as the board asks for it, on a thread with room for large local arrays.
int serve_runs(int argc, char** argv, const Arg* args, size_t nargs, Run run);
// The same on the thread that calls, for a kernel without arguments.
int serve_runs_here(int argc, char** argv, Run run);

template <size_t N, class R, class... A>
int serve(int argc, char** argv, R (*top)(A...), const Arg (&args)[N]) {
    static R (*entry)(A...) = top;
    return serve_runs(argc, argv, args, sizeof...(A),
                      [](Frame& frame) { invoke(frame, entry, std::index_sequence_for<A...>{}); });
}

// A kernel without arguments.
template <class R> int serve(int argc, char** argv, R (*top)(), const Arg* = nullptr) {
    static R (*entry)() = top;
    return serve_runs_here(argc, argv,
                           [](Frame& frame) { invoke(frame, entry, std::index_sequence<>{}); });
}

}  // namespace pynq_torch

// What no kernel's types change is compiled once, and linked to the engines of all kernels.
#ifndef PYNQ_TORCH_ENGINE_APART
#include "engine_process.hpp"
#endif
