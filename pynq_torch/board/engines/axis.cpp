// Stream IP between kernels and DMAs (PG085): beats go from the input rings to the output rings.
//
// The board writes the configuration into the mailbox's user area (layout: ip/axis.py); the routes of
// a switch may change at any time. An output takes a beat only while what is behind it has room, so
// that a sender is done no sooner than on the board.
#include "engine.hpp"

#include <mutex>
#include <numeric>
#include <thread>

namespace {

using namespace pynq_torch;

constexpr uint32_t kMaxPorts = 16, kNoRoute = 0xffffffff;
enum Mode : uint32_t { RESIZE = 0, COPY = 1, COMBINE = 2, ROUTE = 3, DECODE = 4 };
enum Set : uint32_t { LAST = 1, KEEP = 2, USER = 4, ID = 8, DEST = 16 };

struct Config {
    uint32_t mode, inputs, outputs;
    uint32_t open;                          // a bit for each output that nothing is connected to
    uint32_t set, last, user, id, dest;     // side channels that are replaced, and their values
    uint32_t every;                         // TLAST on each so-many-th beat; 0: as `set` says
    uint32_t primary;                       // COMBINE: the input whose side channels go on
    uint32_t offset[kMaxPorts];             // COPY: first byte of the input, by output
    std::atomic<uint32_t> route[kMaxPorts]; // ROUTE: output, by input
    uint32_t base[kMaxPorts], high[kMaxPorts];  // DECODE: TDESTs of an output
};
static_assert(sizeof(Config) == 300, "layout shared with ip/axis.py");

// A beat with its own bytes, and TKEEP a byte each.
struct Bytes {
    std::vector<unsigned char> data, keep;
    Beat side;
};

class StreamIp {
  public:
    StreamIp(Engine& engine) : engine_(engine), config_(*reinterpret_cast<Config*>(engine.mailbox->user)) {}

    void start() {
        const bool routes = config_.mode == ROUTE || config_.mode == DECODE;
        for (uint32_t i = 0; i < (routes ? config_.inputs : 1); ++i)
            std::thread([this, i, routes] { routes ? route(i) : pump(); }).detach();
    }

  private:
    Bytes take(uint32_t input) {
        Port& port = engine_.ports[input];
        Bytes taken;
        taken.data.resize(port.data_bytes + 8);
        taken.side.data = taken.data.data();
        port.read(taken.side);
        taken.data.resize(port.data_bytes);
        for (size_t i = 0; i < port.data_bytes; ++i)
            taken.keep.push_back(taken.side.keep[i >> 6] >> (i & 63) & 1);
        return taken;
    }

    void give(uint32_t output, Bytes bytes) {
        if (config_.open >> output & 1) return;
        Port& port = engine_.ports[config_.inputs + output];
        bytes.data.resize(port.data_bytes + 8);
        bytes.keep.resize(port.data_bytes, config_.mode == COPY);  // a wider copy: zeros are bytes
        Beat beat = bytes.side;
        beat.data = bytes.data.data();
        beat.keep[0] = beat.keep[1] = 0;
        for (size_t i = 0; i < port.data_bytes; ++i)
            beat.keep[i >> 6] |= uint64_t(bytes.keep[i]) << (i & 63);
        port.write(beat);
        port.drain();
    }

    void replace(Bytes& bytes) {
        if (config_.set & KEEP) bytes.keep.assign(bytes.keep.size(), 1);
        if (config_.set & USER) bytes.side.user = config_.user;
        if (config_.set & ID) bytes.side.id = config_.id;
        if (config_.set & DEST) bytes.side.dest = config_.dest;
        if (config_.every) bytes.side.last = ++beats_ % config_.every == 0;
        else if (config_.set & LAST) bytes.side.last = config_.last != 0;
    }

    [[noreturn]] void pump() {
        for (;;) {
            Bytes bytes = take(0);
            if (config_.mode == RESIZE) {
                resize(bytes);
                continue;
            }
            for (uint32_t i = 1; config_.mode == COMBINE && i < config_.inputs; ++i) {
                const Bytes next = take(i);
                bytes.data.insert(bytes.data.end(), next.data.begin(), next.data.end());
                bytes.keep.insert(bytes.keep.end(), next.keep.begin(), next.keep.end());
                if (i == config_.primary) bytes.side = next.side;
            }
            replace(bytes);
            for (uint32_t i = 0; i < config_.outputs; ++i) {
                Bytes copy = bytes;
                const size_t skip = std::min<size_t>(config_.offset[i], copy.data.size());
                copy.data.erase(copy.data.begin(), copy.data.begin() + std::ptrdiff_t(skip));
                copy.keep.erase(copy.keep.begin(), copy.keep.begin() + std::ptrdiff_t(skip));
                give(i, std::move(copy));
            }
        }
    }

    // Beats of another width: gathered until they fill whole beats of both widths, or TLAST comes.
    void resize(const Bytes& bytes) {
        const size_t width = engine_.ports[1].data_bytes;
        gathered_.data.insert(gathered_.data.end(), bytes.data.begin(), bytes.data.end());
        gathered_.keep.insert(gathered_.keep.end(), bytes.keep.begin(), bytes.keep.end());
        gathered_.side = bytes.side;
        if (gathered_.data.size() % std::lcm(bytes.data.size(), width) && !bytes.side.last) return;
        // Beats at the end without a single byte are not sent.
        size_t end = gathered_.keep.size();
        while (end > 1 && !gathered_.keep[end - 1]) --end;
        const size_t beats = (end + width - 1) / width;
        gathered_.data.resize(beats * width);
        gathered_.keep.resize(beats * width);
        for (size_t i = 0; i < beats; ++i) {
            const auto from = std::ptrdiff_t(i * width), to = from + std::ptrdiff_t(width);
            Bytes part;
            part.data.assign(gathered_.data.begin() + from, gathered_.data.begin() + to);
            part.keep.assign(gathered_.keep.begin() + from, gathered_.keep.begin() + to);
            part.side = gathered_.side;
            part.side.last = bytes.side.last && i + 1 == beats;
            give(0, std::move(part));
        }
        gathered_ = {};
    }

    // One input of a switch. The one that holds an output keeps it until the packet ends.
    [[noreturn]] void route(uint32_t input) {
        std::unique_lock<std::mutex> held;
        for (;;) {
            Bytes bytes = take(input);
            const bool last = bytes.side.last;
            uint32_t output;
            while ((output = target(input, bytes.side.dest)) == kNoRoute) {
                if (config_.mode == DECODE) break;  // PG085: a beat that no output decodes is dropped
                usleep(100);
            }
            if (output < config_.outputs) {
                if (config_.mode == DECODE && (!held || held.mutex() != &outputs_[output]))
                    held = std::unique_lock(outputs_[output]);
                give(output, std::move(bytes));
            }
            if (last && held) held.unlock(), held.release();
        }
    }

    uint32_t target(uint32_t input, uint32_t dest) const {
        if (config_.mode == ROUTE) return config_.route[input].load(std::memory_order_acquire);
        for (uint32_t i = 0; i < config_.outputs; ++i)
            if (dest >= config_.base[i] && dest <= config_.high[i]) return i;
        return kNoRoute;
    }

    Engine& engine_;
    Config& config_;
    Bytes gathered_;
    uint64_t beats_ = 0;
    std::mutex outputs_[kMaxPorts];
};

}  // namespace

int main(int argc, char** argv) {
    static Engine engine(argc, argv);
    static StreamIp ip(engine);
    engine.set_state(IDLE);
    engine.notify();
    ip.start();
    while (engine.wait_doorbell()) {}
    _exit(0);
}
