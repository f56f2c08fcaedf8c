// The streams of an AXI4-Stream FIFO (PG080): one thread a direction between a queue and a stream.
//
// The registers, and what they say of packets, are in the board's process (ip/axi_fifo.py). It fills
// the slots of the transmit queue and empties those of the receive queue (ip/fifo_queue.py).
#include <condition_variable>
#include <mutex>
#include <thread>

#include "burst.hpp"
#include "engine.hpp"

namespace {

using namespace pynq_torch;

// ---- Layout shared with ip/fifo_queue.py ----------------------------------------------------------

struct Queue {
    std::atomic<uint64_t> given;    // 0   slots filled, by the host (transmit) or here (receive)
    std::atomic<uint64_t> taken;    // 8   slots emptied, by the other one
    std::atomic<uint64_t> packets;  // 16  TLASTs that passed here
    std::atomic<uint32_t> reset;    // 24  the host wants the queue empty; cleared here
    uint32_t port;                  // 28  index of the stream, kNoOffset where there is none
    uint32_t depth;                 // 32  slots
    uint32_t stride;                // 36  bytes of a slot
    uint64_t at;                    // 40  of the first slot, in the register space
};
struct Slot {
    uint64_t keep, user;
    uint32_t id, dest, last, unused;
    unsigned char data[];
};
static_assert(sizeof(Queue) == 48 && sizeof(Slot) == 32, "layout shared with fifo_queue.py");
constexpr size_t kQueueStride = 64;

class Side : public WaitObserver {
  public:
    Side(Engine& engine, Queue& queue, int ring_fd) : engine_(engine), queue_(queue) {
        struct stat st {};
        fstat(ring_fd, &st);
        void* ring = mmap(nullptr, size_t(st.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
        if (ring == MAP_FAILED) engine.fault(0, "cannot map a stream");
        port_.attach(ring, int(queue.port), this);
        data_.resize(port_.data_bytes() + 8);
        beat_.data = data_.data();
    }

    // The doorbell rang: there is something to send, room, or a reset.
    void poke() {
        {
            std::lock_guard lock(mutex_);
            wake_.notify_all();
        }
        if (aborted()) port_.wake(true);
    }
    void blocked(int, bool) override {}
    void unblocked() override {}
    bool aborted() override { return queue_.reset.load(std::memory_order_acquire) != 0; }

    [[noreturn]] void send() {
        for (;;) {
            if (aborted()) empty(queue_.taken, queue_.given);
            const uint64_t next = queue_.taken.load();
            if (next == queue_.given.load(std::memory_order_acquire)) {
                port_.publish_written();
                rest([&] { return queue_.given.load() != next; });
                continue;
            }
            const Slot& from = slot(next);
            std::memcpy(beat_.data, from.data, port_.data_bytes());
            beat_.keep[0] = from.keep;
            beat_.keep[1] = 0;
            beat_.user = from.user;
            beat_.id = from.id;
            beat_.dest = from.dest;
            beat_.last = from.last != 0;
            try {
                if (beat_.last) {
                    port_.write_last(beat_);
                    port_.drain();
                } else {
                    port_.write(beat_);
                }
            } catch (const Aborted&) {
                continue;
            }
            passed(queue_.taken, next);
        }
    }

    [[noreturn]] void receive() {
        for (;;) {
            if (aborted()) empty(queue_.given, queue_.taken);
            const uint64_t next = queue_.given.load();
            if (next - queue_.taken.load(std::memory_order_acquire) >= queue_.depth) {
                rest([&] { return next - queue_.taken.load() < queue_.depth; });
                continue;
            }
            try {
                port_.read(beat_);
            } catch (const Aborted&) {
                continue;
            }
            port_.publish_read();
            Slot& to = slot(next);
            std::memcpy(to.data, beat_.data, port_.data_bytes());
            to.keep = beat_.keep[0];
            to.user = beat_.user;
            to.id = beat_.id;
            to.dest = beat_.dest;
            to.last = beat_.last;
            passed(queue_.given, next);
        }
    }

  private:
    Slot& slot(uint64_t position) const {
        return *reinterpret_cast<Slot*>(engine_.registers + queue_.at + position % queue_.depth * queue_.stride);
    }
    void passed(std::atomic<uint64_t>& count, uint64_t position) {
        count.store(position + 1, std::memory_order_release);
        if (!beat_.last) return;
        queue_.packets.fetch_add(1);
        engine_.notify();
    }
    void empty(std::atomic<uint64_t>& mine, const std::atomic<uint64_t>& others) {
        mine.store(others.load());
        queue_.reset.store(0, std::memory_order_release);
    }
    template <class Ready> void rest(Ready ready) {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, std::chrono::milliseconds(50), [&] { return aborted() || ready(); });
    }

    Engine& engine_;
    Queue& queue_;
    BurstPort port_;
    Beat beat_;
    std::vector<unsigned char> data_;
    std::mutex mutex_;
    std::condition_variable wake_;
};

}  // namespace

int main(int argc, char** argv) {
    static Engine engine(argc, argv);
    std::vector<Side*> sides;
    for (size_t i = 0; i < 2; ++i) {
        auto& queue = *reinterpret_cast<Queue*>(engine.mailbox->user + i * kQueueStride);
        if (queue.port == kNoOffset || int(queue.port) + 9 >= argc) continue;
        Side* side = new Side(engine, queue, std::atoi(argv[9 + queue.port]));
        std::thread([side, i] { i == 0 ? side->send() : side->receive(); }).detach();
        sides.push_back(side);
    }
    engine.set_state(IDLE);
    engine.notify();
    while (engine.wait_doorbell()) {
        for (Side* side : sides) side->poke();
    }
    _exit(0);
}
