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

// Piece t of a row of n words.
template <class C> void load_piece(const int* memory, int row[C::TILE], int first, int step, int t, int n) {
    load<C>(memory, row, first + t * C::TILE * step, step, piece<C>(t * C::TILE, n));
}
template <class C> void store_piece(const int row[C::TILE], int* memory, int first, int step, int t, int n) {
    store<C>(row, memory, first + t * C::TILE * step, step, piece<C>(t * C::TILE, n));
}
template <class C> int pieces_of(int n) { return n > 0 ? (n - 1) / C::TILE + 1 : 0; }

// Dataflow over the loop: a piece of a row is loaded while the one before is stored.
template <class C> void copy_row(const int* src, int* dst, int from, int to, int n, int s, int d, int pieces) {
copy_loop:
    for (int t = 0; t < pieces; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
#pragma HLS DATAFLOW
        int row[C::TILE];
        load_piece<C>(src, row, from, s, t, n);
        store_piece<C>(row, dst, to, d, t, n);
    }
}

// Loops 2 and 3 as a matrix whose columns lie in a row at the source and whose rows do at the destination: a square
// block on the chip lets both sides move in bursts. Block t: columns of blocks count first.
struct Block { int row, column, height, width; };
template <class C> Block block_of(const Walk& w, int t) {
    const int across = (w.n[3] - 1) / C::BLOCK + 1;
    const int r = t / across * C::BLOCK, c = t % across * C::BLOCK;
    return {r, c, w.n[2] - r < C::BLOCK ? w.n[2] - r : C::BLOCK, w.n[3] - c < C::BLOCK ? w.n[3] - c : C::BLOCK};
}
template <class C> void load_block(const int* src, int block[C::BLOCK][C::BLOCK], int from, const Walk& w, int t) {
    const Block at = block_of<C>(w, t);
block_load_loop:
    for (int j = 0; j < at.width; ++j) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::BLOCK
        const int first = from + (at.column + j) * w.s[3] + at.row;
        for (int i = 0; i < at.height; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::BLOCK
            block[j][i] = src[first + i];
        }
    }
}
template <class C> void store_block(const int block[C::BLOCK][C::BLOCK], int* dst, int to, const Walk& w, int t) {
    const Block at = block_of<C>(w, t);
block_store_loop:
    for (int i = 0; i < at.height; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::BLOCK
        const int first = to + (at.row + i) * w.d[2] + at.column;
        for (int j = 0; j < at.width; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::BLOCK
            dst[first + j] = block[j][i];
        }
    }
}
template <class C> int blocks_of(const Walk& w) {
    if (w.n[2] <= 0 || w.n[3] <= 0) return 0;
    return ((w.n[2] - 1) / C::BLOCK + 1) * ((w.n[3] - 1) / C::BLOCK + 1);
}

// Dataflow over the loop: a block is loaded while the one before is stored.
template <class C> void transpose(const int* src, int* dst, int from, int to, const Walk& w, int blocks) {
block_loop:
    for (int t = 0; t < blocks; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
#pragma HLS DATAFLOW
        int block[C::BLOCK][C::BLOCK];
        load_block<C>(src, block, from, w, t);
        store_block<C>(block, dst, to, w, t);
    }
}
}  // namespace move
