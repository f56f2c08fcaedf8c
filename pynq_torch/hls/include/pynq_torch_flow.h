// The processes of a DATAFLOW region, side by side: each is a coroutine with a stack of its own, and
// the FIFOs between them hold as many elements as their directives say.
//
// hls/dataflow.py writes the calls of Region into a copy of the source. One process runs at a time,
// until it has to wait, and the next in order goes on: every run is the same, and nothing needs a lock.
#pragma once

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../board/engines/stream.hpp"  // by path: kernels have headers of that name too

#if defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#endif

// longjmp by its plain name: with _FORTIFY_SOURCE the header's refuses to change stacks.
extern "C" void pynq_torch_jump(__jmp_buf_tag*, int) __asm__("_longjmp") __attribute__((noreturn));

namespace pynq_torch {

// The processes of a region cannot go on, whatever comes from outside.
class Deadlock : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct Process;

// A FIFO between two processes.
struct Channel {
    size_t depth = 0;  // elements it holds; 0: any number, outside of DATAFLOW
    size_t given = 0;  // as the source says
    std::string name;      // `s`, or `s[1]` in an array
    std::string variable;  // what a directive names: the whole array, unless some name its elements
    std::string where;
    const Process* reader = nullptr;  // the last one that took an element
    bool is_full(size_t count) const { return depth != 0 && count >= depth; }
};

// What a process waits for.
struct Condition {
    virtual bool ready() = 0;
    virtual std::string text() const = 0;  // "": the processes within it say more
    virtual Channel* full() { return nullptr; }  // the FIFO that has no room for it
    virtual Port* port() { return nullptr; }     // the connection to the outside
    virtual bool for_data() const { return true; }

  protected:
    ~Condition() = default;
};

class Region;

// A stack, and where it goes on.
struct Place {
    jmp_buf state;
    const void* bottom = nullptr;
    size_t bytes = 0;
    void* fake = nullptr;  // AddressSanitizer's
};

struct Process {
    virtual void body() = 0;
    virtual ~Process() = default;
    std::string name;
    int line = 0;
    int statement = 0;                  // of the region; an unrolled loop is several processes
    std::vector<const Process*> after;  // those that fill the arrays it reads
    Place place;
    Condition* waits = nullptr;
    bool begun = false, ended = false;
};

class Scheduler {
  public:
    Process* current = nullptr;

    // Returns once `condition` holds; meanwhile other processes run.
    void wait(Condition& condition) {
        Process& self = *current;
        self.waits = &condition;
        if (Process* next = pick(); next != &self) leave(self, next);
        self.waits = nullptr;
        if (cancelling_) throw Cancelled{};
    }
    // Lets the others run first; for a process that looks and finds nothing. Where all that is left
    // is looking, and nothing comes from outside, it is as stuck as one that waits.
    void poll(Condition& look) {
        if (look.port()) idle_ = 0;
        else if (++idle_ > (deadlock_.empty() ? kMostPolls : kFewPolls)) {
            idle_ = 0;
            current->waits = &look;
            if (!waits_outside()) settle();
        }
        wait(look);
    }
    // An element has moved, by the process that runs.
    void moved() { idle_ = 0; }
    inline void run(Region& region);
    void add(Process* process) { all_.push_back(process); }
    void remove(const std::vector<Process*>& gone) {
        std::vector<Process*> rest;
        for (Process* process : all_) {
            bool stays = true;
            for (const Process* one : gone) stays = stays && one != process;
            if (stays) rest.push_back(process);
            else if (process->place.bottom) free_.push_back(process->place.bottom);
        }
        all_.swap(rest);
        at_ = 0;
    }

  private:
    struct Cancelled {};
    static constexpr size_t kStackBytes = size_t(64) << 20;  // only what is touched takes memory
    static constexpr size_t kMostDepth = size_t(1) << 20;
    static constexpr size_t kMostPolls = 20'000'000;  // about a second; counters of 24 bits end before
    static constexpr size_t kFewPolls = 1'000;

    static bool may_run(Process& process) {
        if (process.ended) return false;
        if (process.begun) return process.waits == nullptr || process.waits->ready();
        for (const Process* other : process.after)
            if (!other->ended) return false;
        return true;
    }
    // The next process in order that can go on.
    Process* pick() {
        const size_t count = all_.size();
        for (size_t step = 0; step < count; ++step) {
            if (++at_ >= count) at_ = 0;
            if (may_run(*all_[at_])) return all_[at_];
        }
        return nullptr;
    }

    // ---- Changing stacks ----
    void announce(Place& from, const Place& to) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.bytes);
#endif
        (void)from, (void)to;
    }
    void arrive(Place& here) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(here.fake, nullptr, nullptr);
#endif
        (void)here;
    }
    // From a process to another, or to the loop of `run` where there is none.
    __attribute__((noinline)) void leave(Process& self, Process* next) {
        Place& to = next && next->begun ? next->place : home_;
        wanted_ = next && !next->begun ? next : nullptr;
        current = &to == &home_ ? nullptr : next;
        announce(self.place, to);
        if (_setjmp(self.place.state) == 0) pynq_torch_jump(to.state, 1);
        arrive(self.place);
    }
    __attribute__((noinline)) void resume(Process& process) {
        current = &process;
        if (!process.begun) prepare(process);
        announce(home_, process.place);
        if (_setjmp(home_.state) == 0) {
            if (process.begun) pynq_torch_jump(process.place.state, 1);
            process.begun = true;
            setcontext(&first_);
        }
        arrive(home_);
    }
    void prepare(Process& process) {
        if (free_.empty()) {
            void* made = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
            if (made == MAP_FAILED) throw std::runtime_error("no memory for the stack of a process");
            mprotect(made, size_t(sysconf(_SC_PAGESIZE)), PROT_NONE);  // its end, where it overflows
            free_.push_back(made);
        }
        process.place.bottom = free_.back();
        process.place.bytes = kStackBytes;
        free_.pop_back();
        getcontext(&first_);
        first_.uc_stack.ss_sp = const_cast<void*>(process.place.bottom);
        first_.uc_stack.ss_size = kStackBytes;
        first_.uc_link = nullptr;
        makecontext(&first_, &Scheduler::enter, 0);
    }
    static void enter();

    // ---- When no process can go on ----
    inline void settle();
    inline void describe();
    inline Channel* shortest() const;
    bool waits_outside() const {
        for (const Process* process : all_)
            if (process->begun && !process->ended && process->waits && process->waits->port()) return true;
        return false;
    }
    std::string advice(bool finished) const {
        if (deepened_.empty()) return "No depth helps: what is waited for is never written";
        std::vector<std::pair<const Channel*, size_t>> lines;  // one for an array
        for (const Channel* one : deepened_) {
            bool found = false;
            for (auto& [other, depth] : lines) {
                if (other->variable != one->variable || other->where != one->where) continue;
                depth = depth > one->depth ? depth : one->depth;
                found = true;
            }
            if (!found) lines.push_back({one, one->depth});
        }
        std::string text, places;
        std::vector<std::string> named;
        for (const auto& [one, depth] : lines) {
            text += (text.empty() ? "Write #pragma HLS STREAM variable=" : " and variable=") +
                    one->variable + " depth=" + std::to_string(depth);
            if (std::find(named.begin(), named.end(), one->where) != named.end()) continue;
            places += (places.empty() ? "" : ", ") + one->where;
            named.push_back(one->where);
        }
        return text + " (" + places + ")" + (finished ? "" : " or more");
    }
    void cancel() {
        cancelling_ = true;
        for (size_t at = all_.size(); at-- > 0;) {
            if (at >= all_.size()) continue;  // a region within another has taken its own along
            if (all_[at]->begun && !all_[at]->ended) resume(*all_[at]);
        }
        cancelling_ = false;
    }

    std::vector<Process*> all_;
    std::vector<const void*> free_;  // stacks
    size_t at_ = 0;
    size_t idle_ = 0;  // looks at FIFOs in vain since an element moved
    Place home_;
    Process* wanted_ = nullptr;  // to be begun next
    ucontext_t first_;
    std::exception_ptr error_;
    bool cancelling_ = false;
    std::string deadlock_;             // how it came to one; "": it did not
    std::vector<Channel*> deepened_;  // to find out what depth suffices
};

inline Scheduler& scheduler() {
    static thread_local Scheduler* own = nullptr;
    if (own == nullptr) own = new Scheduler;  // as long as the thread, like its stacks
    return *own;
}
inline bool in_process() { return scheduler().current != nullptr; }

// A DATAFLOW region while it runs.
class Region {
  public:
    Region(const char* file, int line) : file(file), line(line) {}
    ~Region() {
        scheduler().remove(processes);
        for (Process* process : processes) delete process;
    }
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;

    // A stream that is declared in the region; a depth of 0 is the one of its type, or the tool's.
    template <class Stream>
    void channel(Stream& stream, size_t depth, const std::string& name, int at, std::string array = "") {
        Channel& one = stream.channel();
        one.given = one.depth = depth ? depth : stream.capacity() != size_t(-1) ? stream.capacity() : 2;
        one.name = name;
        one.variable = array.empty() ? name : array;
        one.where = std::string(file) + ":" + std::to_string(at);
        left_.push_back({&one, &stream.count()});
    }
    template <class Stream, size_t Count>
    void channel(Stream (&streams)[Count], size_t depth, const std::string& name, int at,
                 std::string array = "") {
        for (size_t i = 0; i < Count; ++i)
            channel(streams[i], depth, name + "[" + std::to_string(i) + "]", at,
                    array.empty() ? name : array);
    }
    template <class Stream, size_t Count>
    void channel(std::array<Stream, Count>& streams, size_t depth, const std::string& name, int at,
                 std::string array = "") {
        for (size_t i = 0; i < Count; ++i)
            channel(streams[i], depth, name + "[" + std::to_string(i) + "]", at,
                    array.empty() ? name : array);
    }
    // The depth of some elements of an array: of one stream, or of a row.
    void depth(const std::string& name, std::initializer_list<long> indices, size_t depth, int at) {
        std::string element = name;
        for (const long index : indices) element += "[" + std::to_string(index) + "]";
        bool found = false;
        for (const Left& one : left_) {
            Channel& channel = *one.channel;
            if (channel.variable == name) channel.variable = channel.name;
            if (channel.name != element && channel.name.rfind(element + "[", 0) != 0) continue;
            channel.given = channel.depth = depth;
            found = true;
        }
        if (!found)
            throw std::runtime_error(std::string(file) + ":" + std::to_string(at) + ": STREAM names " +
                                     element + ", and the array has no such element");
    }
    template <class Body>
    void process(int statement, const char* name, int at, std::initializer_list<int> after, Body body) {
        struct Made : Process {
            explicit Made(Body&& given) : run(std::move(given)) {}
            void body() override { run(); }
            Body run;
        };
        Process* made = new Made(std::move(body));
        made->name = name;
        made->line = at;
        made->statement = statement;
        for (const Process* earlier : processes)
            for (const int one : after)
                if (earlier->statement == one) made->after.push_back(earlier);
        processes.push_back(made);
    }
    // One iteration of an unrolled loop.
    template <class Body>
    void turn(int statement, const std::string& name, int at, std::initializer_list<int> after, Body body) {
        size_t earlier = 0;
        for (const Process* process : processes) earlier += process->statement == statement;
        process(statement, "", at, after, std::move(body));
        processes.back()->name = name + "[" + std::to_string(earlier) + "]";
    }
    void run() {
        for (Process* process : processes) scheduler().add(process);
        scheduler().run(*this);
        for (const Left& one : left_) {
            if (*one.count == 0) continue;
            const std::string text = "stream " + one.channel->name + " (" + one.channel->where +
                                     ") still holds " + std::to_string(*one.count) +
                                     (*one.count == 1 ? " element" : " elements") +
                                     " at the end of its DATAFLOW region";
            if (note_hook()) note_hook()(text.c_str());
            else std::fprintf(stderr, "WARNING: %s\n", text.c_str());
        }
    }
    bool ended() const {
        for (const Process* process : processes)
            if (!process->ended) return false;
        return true;
    }

    const char* const file;
    const int line;
    std::vector<Process*> processes;

  private:
    struct Left {
        Channel* channel;
        const size_t* count;
    };
    std::vector<Left> left_;
};

inline void Scheduler::enter() {
    Scheduler& self = scheduler();
    Process& process = *self.current;
    self.arrive(process.place);
    try {
        process.body();
    } catch (const Cancelled&) {
    } catch (...) {
        if (!self.error_) self.error_ = std::current_exception();
    }
    process.ended = true;
    self.moved();
    self.leave(process, self.error_ || self.cancelling_ ? nullptr : self.pick());
    __builtin_unreachable();
}

inline void Scheduler::run(Region& region) {
    if (current != nullptr) {  // within a process of another region
        struct Within : Condition {
            explicit Within(Region& region) : region(region) {}
            bool ready() override { return region.ended(); }
            std::string text() const override { return ""; }
            Region& region;
        } within(region);
        wait(within);
        return;
    }
#if defined(__SANITIZE_ADDRESS__)
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    void* bottom;
    pthread_attr_getstack(&attributes, &bottom, &home_.bytes);
    home_.bottom = bottom;
    pthread_attr_destroy(&attributes);
#endif
    error_ = nullptr;
    wanted_ = nullptr;
    idle_ = 0;
    deadlock_.clear();
    deepened_.clear();
    try {
        while (!region.ended()) {
            Process* next = wanted_ ? wanted_ : pick();
            wanted_ = nullptr;
            if (next) resume(*next);
            else settle();
            if (error_) std::rethrow_exception(error_);
        }
        if (!deadlock_.empty()) throw Deadlock(deadlock_ + ". " + advice(true));
    } catch (...) {
        cancel();
        throw;
    }
}

inline void Scheduler::describe() {
    deadlock_ = "deadlock: ";
    size_t told = 0;
    for (const Process* process : all_) {
        if (!process->begun || process->ended || !process->waits) continue;
        const std::string text = process->waits->text();
        if (text.empty() || ++told > 4) continue;
        deadlock_ += (told > 1 ? ", " : "") + process->name + " " + text;
    }
    if (told > 4) deadlock_ += ", and " + std::to_string(told - 4) + " more wait";
}

// The full FIFO with the least room. Not one whose reader waits for room itself: that one goes on
// reading as soon as its own FIFO is deeper (M. Geilen and T. Basten, 2003, "Requirements on the
// Execution of Kahn Process Networks").
inline Channel* Scheduler::shortest() const {
    Channel* least = nullptr;
    bool least_moves = false;  // its reader waits for room
    for (Process* process : all_) {
        Channel* full = process->begun && !process->ended && process->waits ? process->waits->full() : nullptr;
        if (!full) continue;
        bool moves = false;
        for (Process* other : all_)
            moves = moves || (other == full->reader && !other->ended && other->waits && other->waits->full());
        if (!least || moves < least_moves || (moves == least_moves && full->depth < least->depth)) {
            least = full;
            least_moves = moves;
        }
    }
    return least;
}

inline void Scheduler::settle() {
    Process* outside = nullptr;
    size_t waiting = 0;
    for (Process* process : all_) {
        if (!process->begun || process->ended || !process->waits || !process->waits->port()) continue;
        if (!outside) outside = process;
        ++waiting;
    }
    if (outside && deadlock_.empty()) {
        // The other ports wake nobody here, so they are looked at every millisecond.
        outside->waits->port()->wait([this] {
            for (Process* process : all_)
                if (may_run(*process)) return true;
            return false;
        }, outside->waits->for_data(), waiting > 1 ? 1'000'000 : 50'000'000);
        return;
    }
    Channel* least = shortest();
    if (deadlock_.empty()) describe();
    // On with a little more room (T. M. Parks, 1995, "Bounded Scheduling of Process Networks"), only to
    // say what depth suffices: the run has failed.
    if (!least || outside || least->depth >= kMostDepth) throw Deadlock(deadlock_ + ". " + advice(false));
    if (least->depth == least->given) deepened_.push_back(least);
    ++least->depth;
}

}  // namespace pynq_torch
