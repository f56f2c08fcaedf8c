// The program of kernel net: instructions of WORDS words each, and what makes one invalid.
//
// docs/net.md has the format. pynq_torch/kernels/net/check.py is the same check, in the same order, for the PC.
#pragma once
#include <cstdint>

namespace networks {
constexpr int VERSION = 1;
constexpr int WORDS = 32;    // of an instruction: 128 bytes, one burst of 16 beats on a port of 64 bits
constexpr int HEADER = 8;    // words of the report before the first cycle count
constexpr int PATCH = 4096;  // cells of a channel on chip
constexpr int TAPS = 1024;   // columns of a window
constexpr int64_t MOST_WORK = int64_t(1) << 32;  // products of an instruction: 84 ms at 512 a cycle and 100 MHz

enum Opcode { END = 0, CONV = 1, MAX = 2, MEAN = 3, ADD = 4 };
enum Flag { FLOAT = 1, SUM = 2 };  // the result is float32; a convolution ends in an addition
constexpr int SUM_WORDS = 4;       // of the table, behind those of the channels

// Why a program stops; the numbers are part of the format.
enum Reason {
    OK = 0, BAD_VERSION = 1, BAD_OPCODE = 2, BAD_SIZE = 3, BAD_SHAPE = 4, BAD_WINDOW = 5, TOO_WIDE = 6, BAD_RANGE = 7,
    BAD_STEPS = 8, OUTSIDE_SOURCE = 9, OUTSIDE_RESULT = 10, OVERLAP = 11, OUTSIDE_WEIGHTS = 12, OUTSIDE_TABLE = 13,
    TOO_MUCH = 14, NO_END = 15
};

// A tensor in the arena: bytes to its first element, from channel to channel, and from row to row.
struct Place { uint32_t first, channel, row; };

struct Instruction {
    int version, flags, opcode;
    Place x, y, b;
    // At most 65535 each where the instruction is valid, as `check` finds before anything is computed with them.
    int channels, height, width, outs, rows, columns, groups, k_rows, k_columns;
    int stride_y, stride_x, pad_y, pad_x, step_y, step_x;
    uint32_t weights, table;
    int x_zero, y_zero, low, high, b_zero;
};

struct Limits { int64_t weights, table, arena; };

// What no size may be becomes -1, which `check` refuses.
inline int size(uint32_t word) { return word <= 0xffff ? static_cast<int>(word) : -1; }

inline Instruction decode(const uint32_t w[WORDS]) {
#pragma HLS INLINE
    return {static_cast<int>(w[0] >> 24), static_cast<int>(w[0] >> 8 & 0xffff), static_cast<int>(w[0] & 0xff),
            {w[1], w[2], w[3]}, {w[4], w[5], w[6]}, {w[28], w[29], w[30]},
            size(w[7]), size(w[8]), size(w[9]), size(w[10]), size(w[11]), size(w[12]), size(w[13]), size(w[14]), size(w[15]),
            size(w[16]), size(w[17]), size(w[18]), size(w[19]), size(w[20]), size(w[21]), w[22], w[23],
            static_cast<int32_t>(w[24]), static_cast<int32_t>(w[25]), static_cast<int32_t>(w[26]),
            static_cast<int32_t>(w[27]), static_cast<int32_t>(w[31])};
}

inline bool is_size(int value) { return value >= 1; }
inline bool is_int8(int value) { return value >= -128 && value <= 127; }

// Bytes from the first element to behind the last.
inline int64_t reach(Place p, int channels, int rows, int bytes) {
#pragma HLS INLINE off
    return int64_t(channels - 1) * p.channel + int64_t(rows - 1) * p.row + bytes;
}
// Rows and channels follow each other without meeting.
inline bool are_apart(Place p, int rows, int bytes) {
    return p.row >= static_cast<uint32_t>(bytes) && p.channel >= reach(p, 1, rows, bytes);
}
inline bool meet(int64_t a, int64_t a_end, int64_t b, int64_t b_end) { return a < b_end && b < a_end; }

inline Reason check_shape(const Instruction& in) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    if (!(is_size(in.channels) && is_size(in.height) && is_size(in.width) && is_size(in.outs) && is_size(in.rows) &&
          is_size(in.columns) && is_size(in.groups) && is_size(in.k_rows) && is_size(in.k_columns) && is_size(in.stride_y) &&
          is_size(in.stride_x) && is_size(in.step_y) && is_size(in.step_x) && in.pad_y >= 0 && in.pad_x >= 0)) return BAD_SIZE;
    if (in.opcode == CONV) {
        if (in.channels % in.groups != 0 || in.outs % in.groups != 0) return BAD_SHAPE;
    } else if (in.channels != in.outs || in.groups != in.outs) {
        return BAD_SHAPE;
    }
    if (in.opcode == ADD && (in.rows != in.height || in.columns != in.width)) return BAD_SHAPE;
    if ((in.flags & SUM) != 0 && (in.b.channel != in.y.channel || in.b.row != in.y.row)) return BAD_SHAPE;
    // The first and the last window see the image.
    if (in.pad_y > int64_t(in.k_rows - 1) * in.step_y || in.pad_x > int64_t(in.k_columns - 1) * in.step_x) return BAD_WINDOW;
    if (int64_t(in.rows - 1) * in.stride_y - in.pad_y >= in.height || int64_t(in.columns - 1) * in.stride_x - in.pad_x >= in.width) return BAD_WINDOW;
    if (in.k_columns > TAPS || int64_t(in.k_columns - 1) * in.step_x >= PATCH) return TOO_WIDE;
    if (!(is_int8(in.x_zero) && is_int8(in.y_zero) && is_int8(in.b_zero) && is_int8(in.low) && is_int8(in.high)) || in.low > in.high) return BAD_RANGE;
    return OK;
}

inline Reason check_memory(const Instruction& in, Limits limits) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    const int size = in.flags & FLOAT ? 4 : 1, bytes = in.columns * size;
    const bool adds = in.opcode == ADD || (in.flags & SUM) != 0;
    if (!are_apart(in.x, in.height, in.width) || !are_apart(in.y, in.rows, bytes)) return BAD_STEPS;
    if (adds && !are_apart(in.b, in.rows, in.columns)) return BAD_STEPS;
    if (size == 4 && ((in.y.first | in.y.channel | in.y.row) & 3) != 0) return BAD_STEPS;
    const int64_t x_end = in.x.first + reach(in.x, in.channels, in.height, in.width);
    const int64_t b_end = in.b.first + reach(in.b, in.outs, in.rows, in.columns);
    const int64_t y_end = in.y.first + reach(in.y, in.outs, in.rows, bytes);
    if (x_end > limits.arena || (adds && b_end > limits.arena)) return OUTSIDE_SOURCE;
    if (y_end > limits.arena) return OUTSIDE_RESULT;
    if (meet(in.x.first, x_end, in.y.first, y_end) || (adds && meet(in.b.first, b_end, in.y.first, y_end))) return OVERLAP;
    const int64_t taps = int64_t(in.channels / in.groups) * in.k_rows * in.k_columns;
    if (in.opcode == CONV && in.weights + in.outs * taps > limits.weights) return OUTSIDE_WEIGHTS;
    const int words = in.opcode != CONV ? 2 : 2 * in.outs + ((in.flags & SUM) != 0 ? SUM_WORDS : 0);
    if (int64_t(in.table) + words > limits.table) return OUTSIDE_TABLE;
    return int64_t(in.outs) * in.rows * in.columns * taps > MOST_WORK ? TOO_MUCH : OK;
}

// All that an instruction reads and writes lies within the limits where this returns OK.
inline Reason check(const Instruction& in, Limits limits) {
    if (in.version != VERSION) return BAD_VERSION;
    if (in.opcode > ADD || in.flags > SUM || (in.flags != 0 && in.opcode != CONV)) return BAD_OPCODE;
    if (in.opcode == END) return OK;
    const Reason shape = check_shape(in);
    return shape != OK ? shape : check_memory(in, limits);
}
}  // namespace networks
