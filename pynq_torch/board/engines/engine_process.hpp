// The part of engine.hpp that is the same for every kernel: the process, its memory and its signals.
//
// Kernels are linked to one object file of it (hls/compile.py); other engines include it.
#pragma once

#include "engine.hpp"

namespace pynq_torch {

Engine::Engine(int argc, char** argv) {
    if (argc < 9) die("an engine is started by the board, not by hand");
    auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
    mailbox = static_cast<Mailbox*>(map(number(1), number(2)));
    registers = reinterpret_cast<uint8_t*>(mailbox) + kRegistersOffset;
    grants_ = static_cast<Grants*>(map(number(4), number(5)));
    start_fd_ = int(number(6));
    done_fd_ = int(number(7));
    life_fd_ = int(number(8));
    if (mailbox->magic != kMailboxMagic) die("the mailbox has another layout than this engine");
    reserve(int(number(3)));
    ports.resize(size_t(argc - 9));
    for (int i = 9; i < argc; ++i) {
        const int fd = int(number(i));
        struct stat st {};
        if (fstat(fd, &st) != 0) die("cannot stat a stream");
        ports[size_t(i - 9)].attach(map(uint64_t(fd), uint64_t(st.st_size)), i - 9, this);
    }
    g_engine = this;
    note_hook() = [](const char* text) {
        char* noted = g_engine->mailbox->outside;
        if (noted[0] == 0) std::snprintf(noted, sizeof g_engine->mailbox->outside, "%s", text);
    };
    adopt_orphans();
    install_handlers();
    // The board may die without a word (kill -9): the read end then reports end of file.
    pthread_t watcher;
    pthread_create(&watcher, nullptr, [](void* self) -> void* {
        char byte;
        while (read(static_cast<Engine*>(self)->life_fd_, &byte, 1) < 0 && errno == EINTR) {}
        end_with_children(0);
    }, this);
    pthread_detach(watcher);
}

bool Engine::wait_start() {
    const uint64_t begin = now_ns();
    while (!start_pending() && now_ns() - begin < kSpinNs) relax();
    while (!start_pending()) {
        if (!wait_doorbell()) return false;
    }
    return true;
}

bool Engine::wait_doorbell() {
    uint64_t count;
    ssize_t n;
    while ((n = read(start_fd_, &count, sizeof count)) < 0 && errno == EINTR) {}
    return n == sizeof count;
}

void Engine::apply_grants() {
    const uint64_t generation = grants_->generation.load(std::memory_order_acquire);
    if (generation == generation_) return;
    const size_t count = size_t(grants_->count.load(std::memory_order_acquire));
    if (applied_.size() < count) applied_.resize(count, {0, 0});
    // Closing before opening: a page freed by one slot may be granted again through another.
    for (size_t i = 0; i < count; ++i) {
        const auto now = grants_->slots[i];
        auto& was = applied_[i];
        if (was.begin == now.begin && was.end == now.end) continue;
        protect(was.begin, was.end, PROT_NONE);
        std::memset(freed_ + was.begin / 4096, 1, pages_of(was.end) - was.begin / 4096);
        was = {0, 0};
    }
    for (size_t i = 0; i < count; ++i) {
        const auto now = grants_->slots[i];
        auto& was = applied_[i];
        // A range that changed since it was looked at is the next call's, with the generation.
        if (was.end != 0) continue;
        protect(now.begin, now.end, PROT_READ | PROT_WRITE);
        was = {now.begin, now.end};
        // With the page behind it, which is the buffer's own, however it was used before.
        if (now.end) std::memset(freed_ + now.begin / 4096, 0, pages_of(now.end) + 1 - now.begin / 4096);
    }
    generation_ = generation;
}

bool Engine::let_read(uint64_t address, void* context) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
    constexpr uint64_t kReach = 64, kPage = 4096;
    const uint64_t page = address & ~(kPage - 1);
    if (address >= mailbox->windows[0].size || freed_[address / kPage] || opened_count_ == 2) return false;
    const bool near = std::any_of(applied_.begin(), applied_.end(), [&](const Range& r) {
        const uint64_t first = r.begin & ~(kPage - 1), end = (r.end + kPage - 1) & ~(kPage - 1);
        if (r.end == 0 || (address >= first && address < end)) return false;
        return (address >= end && address < end + kReach) || (address < first && address + kReach >= first);
    });
    if (!near || mprotect(window_ + page, kPage, PROT_READ) != 0) return false;
    opened_[opened_count_++] = page;
    uint64_t none = 0;
    mailbox->read_ahead.compare_exchange_strong(none, address);
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
    return true;
#else
    (void)address, (void)context;
    return false;
#endif
}

bool Engine::close_again(void* context) {
#if defined(__x86_64__)
    if (opened_count_ == 0) return false;
    while (opened_count_ > 0) mprotect(window_ + opened_[--opened_count_], 4096, PROT_NONE);
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
    return true;
#else
    (void)context;
    return false;
#endif
}

void Engine::fault(int signal, const char* text) {
    mailbox->fault_signal = uint32_t(signal);
    std::snprintf(mailbox->message, sizeof mailbox->message, "%s", text);
    set_state(FAULT);
    notify();
    std::fflush(nullptr);
    end_with_children(70);
}

void Engine::blocked(int port, bool waiting_for_data) {
    mailbox->blocked_port = uint32_t(port);
    set_state(waiting_for_data ? WAIT_READ : WAIT_WRITE);
}
void Engine::unblocked() { set_state(RUNNING); }
bool Engine::aborted() { return has(ABORT); }
bool Engine::stale() { return has(RELATCH) && moved() == moved_before_; }

uint64_t Engine::moved() const {
    uint64_t sum = 0;
    for (const Port& p : ports) sum += p.moved();
    return sum;
}
void Engine::latch() {
    mailbox->flags.fetch_and(~uint32_t(RELATCH), std::memory_order_acq_rel);
    moved_before_ = moved();
}

void Engine::die(const char* text) {
    std::fprintf(stderr, "engine: %s\n", text);
    _exit(71);
}

void* Engine::map(uint64_t fd, uint64_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, int(fd), 0);
    if (p == MAP_FAILED) die("cannot map shared memory");
    return p;
}

void Engine::reserve(int ddr_fd) {
    freed_ = static_cast<uint8_t*>(std::calloc((size_t(1) << 20) + 1, 1));
    if (!freed_) die("no memory for a table of pages");
    const size_t bytes = size_t(kSpan + 2 * kMargin);  // margins catch negative and overlong indices
    void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) die("cannot reserve the physical address space");
    reservation_ = static_cast<uint8_t*>(p);
    reservation_bytes_ = bytes;
    window_ = reservation_ + kMargin;
    places_.assign(mailbox->nwindows, nullptr);
    for (uint32_t i = 0; i < mailbox->nwindows; ++i) {
        const auto& w = mailbox->windows[i];
        const int prot = (w.base == 0 && mailbox->guard) ? PROT_NONE : PROT_READ | PROT_WRITE;
        const bool inside = w.base + w.size <= kSpan;
        void* at = mmap(inside ? window_ + w.base : nullptr, w.size, prot,
                        MAP_SHARED | (inside ? MAP_FIXED : 0), ddr_fd, off_t(w.file_offset));
        if (at == MAP_FAILED) die("cannot map a physical memory");
        if (!inside) places_[i] = static_cast<uint8_t*>(at);
    }
}

uint8_t* Engine::beyond(uint64_t address) {
    for (size_t i = 0; i < places_.size(); ++i) {
        const auto& w = mailbox->windows[i];
        if (places_[i] && address >= w.base && address - w.base < w.size)
            return places_[i] + (address - w.base);
    }
    beyond_ = address;  // closed memory stands for it
    return window_ + kSpan;
}

uint64_t Engine::physical_of(const uint8_t* p) const {
    // Negative indices wrap; the board says so.
    if (p < window_ + kSpan) return uint64_t(p - window_);
    return beyond_ + uint64_t(p - window_ - kSpan);
}

void Engine::protect(uint64_t begin, uint64_t end, int prot) const {
    if (end <= begin || !mailbox->guard) return;
    const uint64_t page = 4096, from = begin & ~(page - 1), to = (end + page - 1) & ~(page - 1);
    if (mprotect(window_ + from, to - from, prot) != 0)
        g_engine->fault(0, "the system refuses more separate buffers (vm.max_map_count)");
#if defined(__SANITIZE_ADDRESS__)
    // With the sanitizer the end of a buffer is exact to the byte, for reads as well.
    if (prot == PROT_NONE) {
        ASAN_UNPOISON_MEMORY_REGION(window_ + from, to - from);
    } else {
        ASAN_POISON_MEMORY_REGION(window_ + end, to - end);
    }
#endif
}

void Engine::on_signal(int signal, siginfo_t* info, void* context) {
    Engine& e = *g_engine;
    Mailbox& m = *e.mailbox;
    if (signal == SIGTRAP && e.close_again(context)) return;
    m.fault_signal = uint32_t(signal);
    m.fault_access = 0;
    m.fault_physical = 0;
    m.fault_address = 0;
    if (signal == SIGSEGV || signal == SIGBUS) {
        const auto* p = static_cast<uint8_t*>(info->si_addr);
        m.fault_address = uint64_t(reinterpret_cast<uintptr_t>(p));
        if (p >= e.reservation_ && p < e.reservation_ + e.reservation_bytes_) {
            m.fault_physical = 1;
            m.fault_address = e.physical_of(p);
        }
        for (const PastTheEnd& end : e.past_the_end) {
            if (p < end.at || p >= end.at + end.bytes) continue;
            const char* found = end.packet ? "read past the %zu beats up to TLAST on argument %zu; on "
                                             "the board it would wait for more"
                                           : "went past the %zu elements of argument %zu, a stream";
            char text[160];
            std::snprintf(text, sizeof text, found, end.count, end.argument + 1);
            e.fault(0, text);
        }
#if defined(__x86_64__)
        // Bit 1 of the page-fault error code is set for a write (Intel SDM vol. 3, 4.7).
        const auto* uc = static_cast<ucontext_t*>(context);
        m.fault_access = (uc->uc_mcontext.gregs[REG_ERR] & 2) ? 2 : 1;
        if (m.fault_physical && m.fault_access == 1 && e.let_read(m.fault_address, context)) return;
#else
        (void)context;
#endif
    }
    m.state.store(FAULT, std::memory_order_release);
    e.notify();
    end_with_children(70);
}

void Engine::install_handlers() {
    constexpr size_t bytes = 64 * 1024;
    stack_t alternate{};
    alternate.ss_sp = std::malloc(bytes);
    alternate.ss_size = bytes;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigaction(s, &action, nullptr);
    // A kernel that prints for ever fills its log, and not the memory of the PC.
    std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit log_limit {16u << 20, 16u << 20};
    setrlimit(RLIMIT_FSIZE, &log_limit);
    std::set_terminate([] {
        const char* text = "the kernel ended by std::terminate";
        std::string message;
        if (auto p = std::current_exception()) {
            try {
                std::rethrow_exception(p);
            } catch (const std::exception& e) {
                message = e.what();
                text = message.c_str();
            } catch (...) {
                text = "the kernel threw an exception that is no std::exception";
            }
        }
        g_engine->fault(SIGABRT, text);
    });
}

// ---- The frame of a run --------------------------------------------------------------------------

Frame::Frame(Engine& engine, const Arg* args, size_t nargs) : engine_(engine), args_(args), nargs_(nargs) {
    ports_of_.resize(nargs);
    size_t next = 0;
    for (size_t i = 0; i < nargs; ++i) {
        ports_of_[i] = next;
        if (args[i].kind == Kind::axis) next += size_t(args[i].length);
        if (args[i].kind == Kind::axis_array) next += 1;
    }
    if (next != engine.ports.size()) {
        char text[160];
        std::snprintf(text, sizeof text, "the kernel has %zu stream ports, the board gave %zu", next,
                      engine.ports.size());
        engine.fault(0, text);
    }
}

void Frame::Holder::finish() {}
Frame::Holder::~Holder() = default;

void Frame::hold(Holder* holder) { holders_.emplace_back(holder); }

void Frame::discard() { holders_.clear(); }

void Frame::finish() {
    for (auto& h : holders_) h->finish();
    holders_.clear();
    // After every value, close together: programs read several flags, each cleared by reading.
    std::atomic_thread_fence(std::memory_order_release);
    const uint32_t one = 1;
    for (const uint32_t at : valid_) std::memcpy(engine_.registers + at, &one, 4);
    valid_.clear();
}

void Frame::drain_outputs() {
    for (Port& p : engine_.ports) p.drain();
}

void Frame::set_valid(uint32_t at) {
    if (at != kNoOffset) valid_.push_back(at);
}

uint64_t Frame::address(const Mailbox::Offsets& offset) const {
    if (offset.data == kNoOffset) return 0;
    uint64_t value = 0;
    std::memcpy(&value, engine_.registers + offset.data, offset.bytes == 8 ? 8 : 4);
    return value;
}

// ---- Runs ----------------------------------------------------------------------------------------

// One run of the kernel with the registers as they stand.
static void run_once(Engine& engine, Frame& frame, Run run) {
    engine.apply_grants();
    const uint64_t begin = now_ns();
    engine.set_state(RUNNING);
    run(frame);
    frame.finish();
    frame.drain_outputs();
    engine.mailbox->run_ns = now_ns() - begin;
}

static void serve_loop(Engine& engine, Frame& frame, Run run) {
    Mailbox& m = *engine.mailbox;
    engine.set_state(IDLE);
    engine.notify();
    while (engine.wait_start()) {
        do {
            const uint64_t moved = engine.moved();
            try {
                engine.latch();
                run_once(engine, frame, run);
            } catch (const Relatch&) {
                // A kernel that runs all the time waits for data with its arguments read. In the PL
                // they are wires: what the program writes before the data come counts.
                frame.discard();
                continue;
            }
            // In this order: who sees that the run is over may start the next one at once.
            engine.set_state(IDLE);
            const uint64_t done = m.completed.fetch_add(1, std::memory_order_acq_rel) + 1;
            engine.notify();
            if (engine.has(CHAIN)) {
                // ap_ctrl_chain holds ap_done until ap_continue (UG1399, block-level protocols).
                while (m.continued.load(std::memory_order_acquire) < done && !engine.has(ABORT))
                    usleep(20);
            }
            if (engine.has(FREE_RUNNING) || engine.has(AUTO_RESTART)) {
                // A kernel without stream traffic would burn a core for nothing.
                if (engine.moved() == moved) usleep(100);
            }
        } while ((engine.has(FREE_RUNNING) || engine.has(AUTO_RESTART)) && !engine.has(ABORT));
    }
}

int serve_runs(int argc, char** argv, const Arg* args, size_t nargs, Run run) {
    static Engine engine(argc, argv);
    static Frame frame(engine, args, nargs);
    static const Run entry = run;
    // Kernels keep whole tiles in local arrays: on the PL those are block RAM, here the stack.
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size_t(256) << 20);
    pthread_t worker;
    const int rc = pthread_create(&worker, &attributes, [](void*) -> void* {
        constexpr size_t bytes = 64 * 1024;  // a signal stack of its own, to report stack overflow
        stack_t alternate{};
        alternate.ss_sp = std::malloc(bytes);
        alternate.ss_size = bytes;
        sigaltstack(&alternate, nullptr);
        try {
            serve_loop(engine, frame, entry);
        } catch (const Aborted&) {
            _exit(0);
        }
        _exit(0);
    }, nullptr);
    if (rc != 0) engine.fault(0, "cannot start the kernel's thread");
    pthread_join(worker, nullptr);
    return 0;
}

int serve_runs_here(int argc, char** argv, Run run) {
    static const Arg none[1] = {{Kind::none}};
    static Engine engine(argc, argv);
    static Frame frame(engine, none, 0);
    try {
        serve_loop(engine, frame, run);
    } catch (const Aborted&) {
    }
    return 0;
}

}  // namespace pynq_torch

#include "indices.hpp"
