// Bench of fifo and skid: nothing lost, nothing twice, in order, with stalls on either side; full,
// empty, a word a cycle.
#include "Vfifo.h"
#include "Vskid.h"

#include <deque>

#include "bench.hpp"

static constexpr unsigned DEPTH = 4;

template <class Model, class Extra>
static uint64_t check(const char* name, unsigned words, double in_stalls, double out_stalls, Extra extra) {
    Bench<Model> bench;
    Random random(11);
    Model& top = *bench.top;
    std::deque<uint32_t> inside;
    bench.clock = &top.clk_i;
    top.valid_i = top.ready_i = 0;
    bench.reset(top.rst_ni);
    const uint64_t from = bench.cycle;
    unsigned sent = 0, received = 0;
    bool waiting = false;
    uint32_t offered = 0;
    while (received < words) {
        CHECK(bench.cycle - from < 1000 + 100 * words, "%s: %u of %u words came out", name, received, words);
        if (!top.valid_i && sent < words && !random.chance(in_stalls)) {
            top.valid_i = 1;
            top.data_i = random.bits();
        }
        // A ready that falls again with nothing taken is allowed, and must not lose a word.
        top.ready_i = !random.chance(out_stalls);
        bench.low();
        extra(top, inside.size());
        if (waiting)
            CHECK(top.valid_o && top.data_o == offered, "%s: a word changed before it was taken", name);
        waiting = top.valid_o && !top.ready_i;
        offered = top.data_o;
        if (top.valid_o) {
            CHECK(!inside.empty(), "%s: a word out of nowhere", name);
            CHECK(top.data_o == inside.front(), "%s: word %u is %08x, expected %08x", name, received,
                  top.data_o, inside.front());
        }
        const bool in = top.valid_i && top.ready_o, out = top.valid_o && top.ready_i;
        bench.high();
        if (out) {
            inside.pop_front();
            ++received;
        }
        if (in) {
            inside.push_back(top.data_i);
            top.valid_i = 0;
            ++sent;
        }
    }
    return bench.cycle - from;
}

int main() {
    for (double in_stalls : {0.0, 0.2, 0.8}) {
        for (double out_stalls : {0.0, 0.2, 0.8}) {
            const unsigned words = 20000;
            bool full = false, empty = false;
            const uint64_t fifo =
                check<Vfifo>("fifo", words, in_stalls, out_stalls, [&](Vfifo& top, size_t inside) {
                    CHECK(top.count_o == inside, "fifo: count %u, %zu inside", top.count_o, inside);
                    CHECK(top.ready_o == (inside < DEPTH) && top.valid_o == (inside > 0), "fifo: %zu inside",
                          inside);
                    full |= inside == DEPTH;
                    empty |= inside == 0;
                });
            const uint64_t skid =
                check<Vskid>("skid", words, in_stalls, out_stalls, [](Vskid& top, size_t inside) {
                    CHECK(inside <= 2 && top.ready_o == (inside < 2), "skid: %zu inside, ready %u", inside,
                          top.ready_o);
                });
            if (in_stalls + out_stalls == 0)
                CHECK(fifo < words + 4 && skid < words + 4, "more than a cycle a word");
            if (in_stalls < out_stalls) CHECK(full, "the fifo was never full");
            CHECK(empty, "the fifo was never empty");
        }
    }
    std::printf("PASS\n");
    return 0;
}
