// Pooling of images over windows, forward and backward: what the two directions share.
//
// | parameter | value | why                                                                     |
// |-----------|-------|-------------------------------------------------------------------------|
// | BAND      | 4096  | floats of one plane on chip, 16 KB: a window may have 64 x 64 pixels     |
// | TILE      | 1024  | outputs at a time: a value and an index each, 8 KB                       |
// | UPDATE    | 8     | cycles from reading a sum to its new value, when two may be the same one |
//
// Windows along one axis come as `Span`; rows and columns are treated alike. A plane is one channel
// of one image, and an index counts the pixels of its plane, row by row, as torch has it.
#pragma once
#include <cstdint>

namespace pool2d {
constexpr int BAND = 4096;
constexpr int TILE = 1024;
constexpr int UPDATE = 8;
static_assert(TILE <= BAND, "a tile of outputs reads at least as many inputs where windows do not overlap");

// Opcode: what is done, and COUNT_PAD where an average counts the padding in its window.
enum Op { MAX = 0, AVERAGE = 1, ADAPTIVE = 2, BACKWARD = 4, COUNT_PAD = 8 };
constexpr int KIND = 3;

struct Strides { int image, channel, row, col; };  // in elements
struct Axis { int size, out, kernel, stride, pad, step, tile; };  // step: dilation; tile: outputs of a tile
struct Job { int op, batch, channels, divisor; Axis rows, cols; };

// The pixels first, first + step, ... below last; size: pixels that an average divides by, with padding.
struct Span { int first, last, size; };

inline int at_most(int value, int limit) { return value < limit ? value : limit; }
inline int at_least(int value, int limit) { return value > limit ? value : limit; }

inline Span span_of(const Axis& axis, int i, int kind) {
#pragma HLS INLINE
    if (kind == ADAPTIVE) {
        const int first = static_cast<int>(static_cast<int64_t>(i) * axis.size / axis.out);
        const int last = static_cast<int>((static_cast<int64_t>(i + 1) * axis.size + axis.out - 1) / axis.out);
        return {first, last, last - first};
    }
    const int begin = i * axis.stride - axis.pad;
    const int end = at_most(begin + (axis.kernel - 1) * axis.step + 1, axis.size + axis.pad);
    const int skipped = begin < 0 ? (axis.step - 1 - begin) / axis.step : 0;
    return {begin + skipped * axis.step, at_most(end, axis.size), end - begin};
}

// No window from i on reads before this pixel; its own first one may lie behind that of window i + 1,
// where it steps over the padding.
inline int front_of(const Axis& axis, int i, int kind) {
    return kind == ADAPTIVE ? span_of(axis, i, kind).first : at_least(i * axis.stride - axis.pad, 0);
}

// Pixels that a window has at most along an axis.
inline int taps_of(const Axis& axis, int kind) {
    return kind == ADAPTIVE ? (axis.size + axis.out - 1) / axis.out + 1 : axis.kernel;
}

// A sum over a window as its average, in the order of torch's divisions.
inline float averaged(float sum, const Span& row, const Span& col, const Job& job) {
#pragma HLS INLINE
#pragma HLS ALLOCATION operation instances=fdiv limit=1
    if ((job.op & KIND) == ADAPTIVE) return sum / static_cast<float>(row.size) / static_cast<float>(col.size);
    int count = job.divisor;
    if (count == 0 && (job.op & COUNT_PAD)) count = row.size * col.size;
    if (count == 0) count = (row.last - row.first) * (col.last - col.first);
    return sum / static_cast<float>(count);
}

// A tile of outputs: where it begins, and how many rows and columns it has.
struct Tile {
    int image, channel, row0, col0;
    int rows(const Job& job) const { return at_most(job.rows.out - row0, job.rows.tile); }
    int cols(const Job& job) const { return at_most(job.cols.out - col0, job.cols.tile); }
};

inline int parts_of(const Axis& axis) { return (axis.out - 1) / axis.tile + 1; }
inline int tiles_of(const Job& job) { return job.batch * job.channels * parts_of(job.rows) * parts_of(job.cols); }

// Tile t: columns count first, then rows, channels and images.
inline Tile tile_of(int t, const Job& job) {
    const int across = parts_of(job.cols), down = parts_of(job.rows);
    const int line = t / across, plane = line / down;
    return {plane / job.channels, plane % job.channels, (line - plane * down) * job.rows.tile, (t - line * across) * job.cols.tile};
}

// The output that comes next in a tile, row by row.
inline void step(int& i, int& j, int cols) {
#pragma HLS INLINE
    if (++j < cols) return;
    j = 0;
    ++i;
}

// Offsets are int: the 512 MB of the board are 2^27 floats. Loops go on by adding a stride, so that their
// addresses take no multipliers.
inline int start_of(const Strides& strides, const Tile& tile) {
    return tile.image * strides.image + tile.channel * strides.channel;
}
}  // namespace pool2d
