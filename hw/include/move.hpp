// move: strided copies, gathers and scatter-adds of 32-bit words, four loops deep.
//
// C is a table of constants: TILE, BLOCK and the opcodes COPY, TRANSPOSE, GATHER, SCATTER_ADD.
#pragma once

namespace move {

// What one run walks over: sizes of the four loops, and the step of each operand in each of them, in words.
struct Walk {
    int n[4];  // sizes
    int s[4];  // source
    int x[4];  // index
    int d[4];  // destination
    int step;  // words from one place that the index chooses among to the next
    int skip;  // SCATTER_ADD leaves out what has this index
};

union Word {
    int bits;
    float value;
};

template <class C> int piece(int t, int n) { return n - t < C::TILE ? n - t : C::TILE; }

// Words that lie in a row come in bursts, others one by one.
template <class C> void load(const int* memory, int row[C::TILE], int first, int step, int count) {
    if (step == 1) {
    load_burst_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::TILE
            row[i] = memory[first + i];
        }
    } else {
    load_strided_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::TILE
            row[i] = memory[first + i * step];
        }
    }
}

template <class C> void store(const int row[C::TILE], int* memory, int first, int step, int count) {
    if (step == 1) {
    store_burst_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::TILE
            memory[first + i] = row[i];
        }
    } else {
    store_strided_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::TILE
            memory[first + i * step] = row[i];
        }
    }
}

// A piece of a row is loaded while the one before is stored.
template <class C> void copy_row(const int* src, int* dst, int from, int to, int n, int s, int d) {
copy_loop:
    for (int t = 0; t < n; t += C::TILE) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
#pragma HLS DATAFLOW
        int row[C::TILE];
        load<C>(src, row, from + t * s, s, piece<C>(t, n));
        store<C>(row, dst, to + t * d, d, piece<C>(t, n));
    }
}

// Loops 2 and 3 as a matrix whose columns lie in a row at the source and whose rows do at the destination: a square
// block on the chip lets both sides move in bursts.
template <class C> void transpose(const int* src, int* dst, int from, int to, const Walk& w) {
    const int rows = w.n[2], columns = w.n[3];
block_row_loop:
    for (int r = 0; r < rows; r += C::BLOCK) {
    block_column_loop:
        for (int c = 0; c < columns; c += C::BLOCK) {
#pragma HLS DATAFLOW
            int block[C::BLOCK][C::BLOCK];
            const int height = rows - r < C::BLOCK ? rows - r : C::BLOCK;
            const int width = columns - c < C::BLOCK ? columns - c : C::BLOCK;
        block_load_loop:
            for (int j = 0; j < width; ++j) {
                for (int i = 0; i < height; ++i) {
#pragma HLS PIPELINE II=1
                    block[j][i] = src[from + (c + j) * w.s[3] + r + i];
                }
            }
        block_store_loop:
            for (int i = 0; i < height; ++i) {
                for (int j = 0; j < width; ++j) {
#pragma HLS PIPELINE II=1
                    dst[to + (r + i) * w.d[2] + c + j] = block[j][i];
                }
            }
        }
    }
}

}  // namespace move
