// Pooling, backward: gradients are added up on chip, a chunk of a plane at a time, in torch's order.
#pragma once
#include "pool2d.hpp"

namespace pool2d {
// Pixels first to first + count - 1 of a plane.
struct Chunk { int first, count; };

inline void add_to(float sums[BAND], const Chunk& chunk, int pixel, float gradient) {
#pragma HLS INLINE
    const int at = pixel - chunk.first;
    if (at >= 0 && at < chunk.count) sums[at] += gradient;
}

static void add_maxima(const float gradient[TILE], const int index[TILE], int cols, float sums[BAND], Chunk chunk) {
maxima_loop:
    for (int j = 0; j < cols; ++j) {
#pragma HLS PIPELINE II=UPDATE
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        add_to(sums, chunk, index[j], gradient[j]);
    }
}

static void add_averages(const float gradient[TILE], int i, int col0, int cols, float sums[BAND], Chunk chunk,
                         const Job& job) {
    const int kind = job.op & KIND;
    const Span row = span_of(job.rows, i, kind);
    const int front = row.first * job.cols.size, behind = row.last * job.cols.size;
    if (behind <= chunk.first || front >= chunk.first + chunk.count) return;
averages_loop:
    for (int j = 0; j < cols; ++j) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        const Span col = span_of(job.cols, col0 + j, kind);
        if (row.first >= row.last || col.first >= col.last) continue;
        const float part = averaged(gradient[j], row, col, job);
    window_rows:
        for (int first = front; first < behind; first += job.cols.size) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        window_cols:
            for (int c = col.first; c < col.last; ++c) {
#pragma HLS PIPELINE II=UPDATE
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                add_to(sums, chunk, first + c, part);
            }
        }
    }
}

template <class Memory, class Value>
void load_row(const Memory* memory, Value row[TILE], int from, int step, int cols) {
    if (step == 1) {
    burst_loop:
        for (int j = 0; j < cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            row[j] = static_cast<Value>(memory[from + j]);
        }
    } else {
    single_loop:
        for (int j = 0; j < cols; ++j, from += step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            row[j] = static_cast<Value>(memory[from]);
        }
    }
}

static void store_chunk(const float sums[BAND], float* result, Chunk chunk, int width, int start, Strides strides) {
    if (strides.col == 1 && strides.row == width) {  // a plane without gaps
    burst_loop:
        for (int i = 0; i < chunk.count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=BAND
            result[start + chunk.first + i] = sums[i];
        }
        return;
    }
    const int r = chunk.first / width;
    int c = chunk.first - r * width, row = start + r * strides.row, to = row + c * strides.col;
// Rows with gaps between them: single accesses.
store_loop:
    for (int i = 0; i < chunk.count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=BAND
        result[to] = sums[i];
        to += strides.col;
        if (++c == width) {
            c = 0;
            row += strides.row;
            to = row;
        }
    }
}

// The gradient of one plane from those of its outputs.
static void scatter_plane(const float* source, float* result, const int64_t* indices, int image, int channel,
                          const Job& job, Strides from, Strides to, Strides index_strides) {
    float sums[BAND], gradient[TILE];
    int index[TILE];
    const int pixels = job.rows.size * job.cols.size;
    const bool maxima = (job.op & KIND) == MAX;
    const Tile plane = {image, channel, 0, 0};
    const int start = start_of(from, plane), index_start = start_of(index_strides, plane);
chunk_loop:
    for (int first = 0; first < pixels; first += BAND) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        const Chunk chunk = {first, at_most(pixels - first, BAND)};
    clear_loop:
        for (int i = 0; i < chunk.count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=BAND
            sums[i] = 0.0f;
        }
        int row = start, index_row = index_start;
    rows_loop:
        for (int i = 0; i < job.rows.out; ++i, row += from.row, index_row += index_strides.row) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
        cols_loop:
            for (int col0 = 0; col0 < job.cols.out; col0 += TILE) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=2
                const int cols = at_most(job.cols.out - col0, TILE);
                load_row(source, gradient, row + col0 * from.col, from.col, cols);
                if (maxima) load_row(indices, index, index_row + col0 * index_strides.col, index_strides.col, cols);
                if (maxima) add_maxima(gradient, index, cols, sums, chunk);
                else add_averages(gradient, i, col0, cols, sums, chunk, job);
            }
        }
        store_chunk(sums, result, chunk, job.cols.size, start_of(to, plane), to);
    }
}
}  // namespace pool2d
