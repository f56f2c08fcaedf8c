// Pointwise kernels: how tiles of operands are loaded, in bursts where rows are dense, and stored. The
// instances add the functions, one line each.
#pragma once
#include <cstdint>
#include <type_traits>

#include "pointwise_walk.hpp"

namespace pointwise {
// What lies in memory as a value: a bool is any byte that is not 0.
template <class Type, class Memory> Type value_of(Memory value) {
    if constexpr (std::is_same<Type, Memory>::value)
        return value;
    else
        return static_cast<Type>(value != 0);
}

// A piece of a row. Neighbours come in bursts; one element for all is read once.
template <class Type, class Memory>
void load_row(const Memory* row, Type* tile, int count, int step) {
    if (step == 1) {
    burst_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            tile[i] = value_of<Type>(row[i]);
        }
    } else if (step == 0) {
        const Type value = value_of<Type>(row[0]);
    repeat_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            tile[i] = value;
        }
    } else {
    single_loop:
        for (int i = 0, at = 0; i < count; ++i, at += step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            tile[i] = value_of<Type>(row[at]);
        }
    }
}

// Tile t of an operand in memory, in the order of the loops. Where it begins takes one multiplier and
// one divider; from row to row, addresses are sums.
template <class Type, class Memory>
void load(const Memory* memory, Type tile[TILE], int t, Sizes n, Steps s) {
#pragma HLS ALLOCATION operation instances=mul limit=1
#pragma HLS ALLOCATION operation instances=sdiv limit=1
    const int count = count_of(t, n);
    const int rows = t * TILE / n.n3, planes = rows / n.n2;
    int i3 = t * TILE - rows * n.n3, i2 = rows - planes * n.n2, i1 = planes % n.n1;
    int volume = planes / n.n1 * s.s0, plane = volume + i1 * s.s1, row = plane + i2 * s.s2;
    int begin = i3 * s.s3, done = 0;
row_loop:
    while (done < count) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        const int run = n.n3 - i3 < count - done ? n.n3 - i3 : count - done;
        load_row(memory + (row + begin), tile + done, run, s.s3);
        done += run;
        i3 = begin = 0;
        row += s.s2;
        if (++i2 < n.n2) continue;
        i2 = 0;
        row = plane += s.s1;
        if (++i1 < n.n1) continue;
        i1 = 0;
        row = plane = volume += s.s0;
    }
}

// The same for an operand that may be in a register.
template <class Type, class Scalar>
void load_or_fill(const Type* memory, bool in_register, Scalar value, Type tile[TILE], int t, Sizes n,
                  Steps s) {
    const Type fill = static_cast<Type>(value);
    if (in_register)
        load_row(&fill, tile, count_of(t, n), 0);
    else
        load(memory, tile, t, n, s);
}

// The same for one that may be a condition: bytes in memory, of which any but 0 is true.
template <class Type, class Scalar>
void load_condition(const uint8_t* mask, bool is_mask, const Type* memory, bool in_register, Scalar value,
                    Type tile[TILE], int t, Sizes n, Steps s) {
    if (is_mask)
        load(mask, tile, t, n, s);
    else
        load_or_fill(memory, in_register, value, tile, t, n, s);
}

// Tile t of the result, which is dense in the order of the loops.
template <class Type> void store(const Type tile[TILE], Type* memory, int t, Sizes n) {
    const int count = count_of(t, n);
store_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        memory[t * TILE + i] = tile[i];
    }
}
}  // namespace pointwise
