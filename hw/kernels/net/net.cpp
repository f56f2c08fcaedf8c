// net: fetch an instruction, check it, do it; the report at the end.
#include "net.hpp"

#include "../../include/net_window.hpp"

using namespace net_config;

static networks::Instruction fetch(const uint32_t* program, int index) {
    uint32_t words[networks::WORDS];
#pragma HLS ARRAY_PARTITION variable=words type=complete
fetch_loop:
    for (int i = 0; i < networks::WORDS; ++i) {
#pragma HLS PIPELINE II=1
        words[i] = program[static_cast<int64_t>(index) * networks::WORDS + i];
    }
    return networks::decode(words);
}

static void write_report(uint32_t* report, networks::Reason reason, int index, int length) {
header_loop:
    for (int i = 0; i < networks::HEADER; ++i) {
#pragma HLS PIPELINE II=1
        report[i] = i == 0 ? static_cast<uint32_t>(reason) : i == 1 ? static_cast<uint32_t>(index) : i == 2 ? networks::VERSION : 0u;
    }
cycle_loop:
    for (int i = 0; i < length; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        report[networks::HEADER + i] = 0;  // C++ has no clock; the words are there for a kernel that counts
    }
}

void net(const uint32_t* program, const int8_t* weights, const int32_t* tables, int8_t* arena, uint32_t* outcome, int instructions,
         uint32_t weights_bytes, uint32_t table_words, uint32_t arena_bytes) {
#pragma HLS INTERFACE m_axi port=program bundle=gmem2 offset=slave depth=COSIM_DEPTH max_widen_bitwidth=PORT_BITS max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=weights bundle=gmem1 offset=slave depth=COSIM_DEPTH max_widen_bitwidth=PORT_BITS max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=tables bundle=gmem2 offset=slave depth=COSIM_DEPTH max_widen_bitwidth=PORT_BITS max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=arena bundle=gmem0 offset=slave depth=COSIM_DEPTH max_widen_bitwidth=PORT_BITS max_read_burst_length=BURST max_write_burst_length=BURST num_read_outstanding=OUTSTANDING num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=outcome bundle=gmem2 offset=slave depth=COSIM_DEPTH max_widen_bitwidth=PORT_BITS max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=program bundle=control
#pragma HLS INTERFACE s_axilite port=weights bundle=control
#pragma HLS INTERFACE s_axilite port=tables bundle=control
#pragma HLS INTERFACE s_axilite port=arena bundle=control
#pragma HLS INTERFACE s_axilite port=outcome bundle=control
#pragma HLS INTERFACE s_axilite port=instructions bundle=control
#pragma HLS INTERFACE s_axilite port=weights_bytes bundle=control
#pragma HLS INTERFACE s_axilite port=table_words bundle=control
#pragma HLS INTERFACE s_axilite port=arena_bytes bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    const networks::Limits limits = {weights_bytes, table_words, arena_bytes};
    networks::Reason reason = networks::NO_END;
    int index = 0;
instruction_loop:
    for (; index < instructions; ++index) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        const networks::Instruction in = fetch(program, index);
        reason = networks::check(in, limits);
        if (reason != networks::OK || in.opcode == networks::END) break;
        reason = networks::NO_END;
        if (in.opcode == networks::ADD) networks::add(tables, arena, in);
        else networks::windows(weights, tables, arena, in);
    }
    write_report(outcome, reason, index, instructions);
}
