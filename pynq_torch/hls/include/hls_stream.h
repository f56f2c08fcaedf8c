// hls::stream for execution on a PC: the API of UG1399, "HLS Stream Library".
//
// A stream is an unbounded FIFO inside the process, as in C simulation, unless the engine binds it
// to one end of an AXI4-Stream connection; then reads and writes block as they do in hardware. So
// they do in a DATAFLOW region (pynq_torch_flow.h), whose streams have a depth.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pthread.h>
#include <time.h>

#include "pynq_torch_beat.h"
#include "pynq_torch_flow.h"

namespace pynq_torch {

// How many hls::task threads run. While there are any, FIFOs inside the kernel lock and block;
// otherwise they cost nothing, and a read that can never be answered is an error.
inline std::atomic<int>& stream_threads() {
    static std::atomic<int> count{0};
    return count;
}

// Why a FIFO inside a kernel could not be read.
class EmptyStream : public std::runtime_error {
  public:
    explicit EmptyStream(const std::string& name)
        : std::runtime_error(
              "read from empty hls::stream " + (name.empty() ? std::string("(unnamed)") : name) +
              ": C++ runs the functions of a kernel one after another, so nothing can fill it any "
              "more; in hardware this is a deadlock or a producer that writes too little") {}
};

// One lock and one signal for all FIFOs. They are never destroyed: a task that sleeps when the
// process ends must not hold up the destructor of what it sleeps on. (Not <mutex>: it brings
// <chrono>, which does not survive a kernel's own macros called min and max.)
struct StreamLock {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    std::atomic<bool> stopping{false};  // a stream that a task uses is going away
};
inline StreamLock& stream_lock() {
    static StreamLock* lock = new StreamLock;
    return *lock;
}
// True in a thread that runs an hls::task.
inline bool& in_task() {
    static thread_local bool task = false;
    return task;
}
inline void leave_if_stopping() {
    if (in_task() && stream_lock().stopping.load()) throw Aborted{};
}
// Holds the lock while `needed`, which is only when tasks run.
class StreamGuard {
  public:
    explicit StreamGuard(bool needed) : needed_(needed) {
        if (needed_) pthread_mutex_lock(&stream_lock().mutex);
    }
    ~StreamGuard() {
        if (needed_) pthread_mutex_unlock(&stream_lock().mutex);
    }
    StreamGuard(const StreamGuard&) = delete;
    StreamGuard& operator=(const StreamGuard&) = delete;
    void wait() {
        leave_if_stopping();
        pthread_cond_wait(&stream_lock().changed, &stream_lock().mutex);
        leave_if_stopping();
    }

  private:
    bool needed_;
};
// Ends all tasks, as they hold references to a stream whose life is over. A task comes to its end
// at its next access to a stream; one that makes none for a second is left alone.
inline void stop_tasks() {
    StreamGuard lock(true);
    timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 1;
    stream_lock().stopping = true;
    pthread_cond_broadcast(&stream_lock().changed);
    while (stream_threads().load() > 0)
        if (pthread_cond_timedwait(&stream_lock().changed, &stream_lock().mutex, &limit) != 0) return;
    stream_lock().stopping = false;
}
// What the thread of a task does at its end.
inline void task_ended() {
    StreamGuard lock(true);
    stream_threads().fetch_sub(1);
    pthread_cond_broadcast(&stream_lock().changed);
}

// A FIFO that grows by doubling.
template <class Type> class Fifo {
  public:
    bool empty() const { return count_ == 0; }
    size_t size() const { return count_; }
    void push(const Type& value) {
        if (count_ == slots_.size()) grow();
        slots_[(first_ + count_) & (slots_.size() - 1)] = value;
        ++count_;
    }
    Type pop() {
        Type value = std::move(slots_[first_]);
        first_ = (first_ + 1) & (slots_.size() - 1);
        --count_;
        return value;
    }
    const size_t& count() const { return count_; }

  private:
    void grow() {
        std::vector<Slot> larger(slots_.empty() ? 16 : 2 * slots_.size());
        for (size_t i = 0; i < count_; ++i)
            larger[i] = std::move(slots_[(first_ + i) & (slots_.size() - 1)]);
        slots_.swap(larger);
        first_ = 0;
    }
    // std::vector<bool> has no element references: bool needs a box.
    struct Box {
        bool value = false;
        Box& operator=(bool v) { value = v; return *this; }
        operator bool() const { return value; }
    };
    using Slot = typename std::conditional<std::is_same<Type, bool>::value, Box, Type>::type;
    std::vector<Slot> slots_;
    size_t first_ = 0;
    size_t count_ = 0;
};

}  // namespace pynq_torch

namespace hls {

template <typename Type, int Depth = 0> class stream;

template <typename Type> class stream<Type, 0> {
  public:
    using value_type = Type;
    using pynq_torch_stream = void;  // marks the type for the engine

    stream() = default;
    explicit stream(const char* name) : name_(name ? name : "") {}
    explicit stream(const std::string& name) : name_(name) {}
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    ~stream() {
        if (tasked_ && !pynq_torch::in_task()) pynq_torch::stop_tasks();
    }

    // The engine's hook: from now on this is one end of an AXI4-Stream connection.
    void bind(pynq_torch::Port* port) {
        if (port && port->data_bytes < pynq_torch::BeatOf<Type>::min_bytes)
            throw std::runtime_error(
                "hls::stream " + name_ + " carries " +
                std::to_string(pynq_torch::BeatOf<Type>::min_bytes) + " bytes a beat, its port has " +
                std::to_string(port->data_bytes) + ": the hwh and the source disagree");
        port_ = port;
        if (port) scratch_.assign(port->data_bytes, 0);
    }

    Type read() {
        Type value;
        read(value);
        return value;
    }
    void read(Type& value) {
        touch();
        if (port_) {
            pynq_torch::Beat beat;
            beat.data = scratch_.data();
            while (pynq_torch::in_process() && port_->empty()) await<Waits::beat>();
            port_->read(beat);
            pynq_torch::BeatOf<Type>::unpack(beat, port_->data_bytes, value);
            moved();
        } else if (threaded()) {
            pynq_torch::StreamGuard lock(true);
            while (fifo_.empty()) lock.wait();
            value = fifo_.pop();
        } else {
            while (fifo_.empty()) {
                if (!pynq_torch::in_process()) throw pynq_torch::EmptyStream(name_);
                await<Waits::element>();
            }
            value = fifo_.pop();
            taken();
        }
    }
    bool read_nb(Type& value) {
        touch();
        if (port_) {
            pynq_torch::Beat beat;
            beat.data = scratch_.data();
            if (!port_->try_read(beat)) return missed();
            pynq_torch::BeatOf<Type>::unpack(beat, port_->data_bytes, value);
            moved();
            return true;
        }
        if (nothing_yet()) return false;
        pynq_torch::StreamGuard lock(threaded());
        if (fifo_.empty()) return false;
        value = fifo_.pop();
        taken();
        return true;
    }
    void write(const Type& value) {
        touch();
        if (port_) {
            while (pynq_torch::in_process() && port_->full()) await<Waits::space>();
            port_->write(pack(value));
            moved();
            return;
        }
        while (is_full()) await<Waits::room>();
        {
            pynq_torch::StreamGuard lock(threaded());
            fifo_.push(value);
        }
        moved();
        if (threaded()) pthread_cond_broadcast(&pynq_torch::stream_lock().changed);
    }
    bool write_nb(const Type& value) {
        if (port_) return port_->try_write(pack(value)) || missed(true);
        if (is_full()) return missed(true);
        write(value);
        return true;
    }
    // Variants with an ordering token (UG1399: hls::fence): sequential execution is ordered.
    Type read_dep(volatile bool) { return read(); }
    void write_dep(const Type& value, volatile bool) { write(value); }

    void operator>>(Type& value) { read(value); }
    void operator<<(const Type& value) { write(value); }

    bool empty() const {
        touch();
        if (port_) return port_->empty() && !missed();
        if (nothing_yet()) return true;
        pynq_torch::StreamGuard lock(threaded());
        return fifo_.empty();
    }
    bool full() const { return (port_ ? port_->full() : is_full()) && !missed(true); }
    size_t size() const {
        if (port_) return port_->size();
        pynq_torch::StreamGuard lock(threaded());
        return fifo_.size();
    }
    size_t capacity() const { return depth_ ? depth_ : size_t(-1); }
    void set_name(const char* name) { name_ = name ? name : ""; }
    const std::string& get_name() const { return name_; }
    // For the DATAFLOW region that it is declared in.
    pynq_torch::Channel& channel() { return channel_; }
    const size_t& count() const { return fifo_.count(); }

  protected:
    size_t depth_ = 0;

  private:
    enum class Waits { element, room, beat, space };
    // Lets the other processes of a region run until this one can go on.
    template <Waits what> void await() {
        struct Here : pynq_torch::Condition {
            explicit Here(stream& of) : of(of) {}
            bool ready() override {
                switch (what) {
                case Waits::element: return !of.fifo_.empty();
                case Waits::room: return !of.channel_.is_full(of.fifo_.size());
                case Waits::beat: return !of.port_->empty();
                default: return !of.port_->full();
                }
            }
            std::string text() const override {
                switch (what) {
                case Waits::element: return "waits to read " + of.called() + ", which is empty";
                case Waits::room:
                    return "waits to write " + of.called() + ", which is full with " +
                           std::to_string(of.channel_.given);
                case Waits::beat: return "waits for a beat from outside";
                default: return "waits for the outside to take a beat";
                }
            }
            pynq_torch::Channel* full() override { return what == Waits::room ? &of.channel_ : nullptr; }
            pynq_torch::Port* port() override { return of.port_; }
            bool for_data() const override { return what == Waits::beat; }
            stream& of;
        } here(*this);
        pynq_torch::scheduler().wait(here);
    }
    bool is_full() const { return channel_.is_full(fifo_.size()) && pynq_torch::in_process(); }
    // A process that looks and finds nothing lets the others run before it looks again.
    bool missed(bool for_room = false) const {
        struct Look : pynq_torch::Condition {
            Look(const stream& of, bool for_room) : of(of), for_room(for_room) {}
            bool ready() override { return true; }
            std::string text() const override {
                return "polls " + of.called() + ", which is " + (for_room ? "full" : "empty");
            }
            pynq_torch::Port* port() override { return of.port_; }
            pynq_torch::Channel* full() override {
                return for_room ? const_cast<pynq_torch::Channel*>(&of.channel_) : nullptr;
            }
            const stream& of;
            bool for_room;
        } look(*this, for_room);
        if (pynq_torch::in_process()) pynq_torch::scheduler().poll(look);
        return false;
    }
    std::string called() const {
        const auto& named = channel_.name.empty() ? name_ : channel_.name;
        return named.empty() ? "a stream" : named;
    }
    // An element has moved: processes that poll may go on.
    static void moved() {
        if (pynq_torch::in_process()) pynq_torch::scheduler().moved();
    }
    void taken() {
        channel_.reader = pynq_torch::scheduler().current;
        moved();
    }
    bool nothing_yet() const { return pynq_torch::in_process() && fifo_.empty() && !missed(); }
    // Before anything else in the stream is looked at, which may be gone by now.
    void touch() const {
        if (!threaded() || !pynq_torch::in_task()) return;
        pynq_torch::leave_if_stopping();
        tasked_ = true;
    }
    bool threaded() const {
        return pynq_torch::stream_threads().load(std::memory_order_relaxed) > 0;
    }
    pynq_torch::Beat pack(const Type& value) {
        pynq_torch::Beat beat;
        beat.data = scratch_.data();
        std::memset(beat.data, 0, port_->data_bytes);
        pynq_torch::BeatOf<Type>::pack(value, port_->data_bytes, beat);
        return beat;
    }

    pynq_torch::Port* port_ = nullptr;
    std::vector<unsigned char> scratch_;
    pynq_torch::Fifo<Type> fifo_;
    pynq_torch::Channel channel_;
    std::string name_;
    mutable std::atomic<bool> tasked_{false};
};

// A stream with a depth is passed on as hls::stream<T>&, so it derives from it.
template <typename Type, int Depth> class stream : public stream<Type, 0> {
  public:
    stream() { this->depth_ = Depth; }
    explicit stream(const char* name) : stream<Type, 0>(name) { this->depth_ = Depth; }
    explicit stream(const std::string& name) : stream<Type, 0>(name) { this->depth_ = Depth; }
};

}  // namespace hls
