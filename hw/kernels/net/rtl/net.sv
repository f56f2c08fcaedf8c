// net: a whole int8 network in one run, in RTL. Registers, program and results are those of ../net.cpp.
//
//   gmem2 -> instruction -> net_plan: may it run, how is it cut
//
//   gmem0 -> net_walk -> patches -.
//                                  net_array -> net_drain -> net_store -> gmem0
//   gmem1 -> net_weights ---------'               gmem2 -> (bias, multiplier)
//
//   gmem0 -> net_sum (addition) -------------------------> net_store
//   gmem0 -> net_sum (where a convolution ends in one) <-> net_store
//
// An instruction begins when the results of the one before are in memory; it has been fetched and checked by then.
// Within one, the next activations and weights arrive and the tile before is finished and written while the array
// multiplies.
`default_nettype none

module net
  import net_types::*;
#(
    parameter int unsigned ROWS        = 16,  // output channels at a time: ROWS x COLS products in a cycle
    parameter int unsigned COLS        = 24,  // pixels at a time
    parameter int unsigned ADDR_WIDTH  = 64,
    parameter int unsigned OUTSTANDING = 8    // bursts; DDR answers after 37 cycles, 85 at worst
) (
    input  wire logic               ap_clk,
    input  wire logic               ap_rst_n,
    /* verilator lint_off SYMRSVDWORD */  // the name Vitis HLS gives it is a macro in some C headers
    output logic                    interrupt,
    /* verilator lint_on SYMRSVDWORD */
    // registers: 0x10 program, 0x1c weights, 0x28 tables, 0x34 arena, 0x40 outcome (64 bits each),
    // 0x4c instructions, 0x54 weights_bytes, 0x5c table_words, 0x64 arena_bytes; in the word behind outcome,
    // which HLS reserves and reads as 0: 0x48, what memory has answered, see axi_responses: bits 1:0 reads of
    // gmem0, 3:2 its writes, 5:4 gmem1, 7:6 reads of gmem2, 9:8 its writes
    input  wire logic               s_axi_control_AWVALID,
    output logic                    s_axi_control_AWREADY,
    input  wire logic [6:0]         s_axi_control_AWADDR,
    input  wire logic               s_axi_control_WVALID,
    output logic                    s_axi_control_WREADY,
    input  wire logic [31:0]        s_axi_control_WDATA,
    input  wire logic [3:0]         s_axi_control_WSTRB,
    output logic                    s_axi_control_BVALID,
    input  wire logic               s_axi_control_BREADY,
    output logic [1:0]              s_axi_control_BRESP,
    input  wire logic               s_axi_control_ARVALID,
    output logic                    s_axi_control_ARREADY,
    input  wire logic [6:0]         s_axi_control_ARADDR,
    output logic                    s_axi_control_RVALID,
    input  wire logic               s_axi_control_RREADY,
    output logic [31:0]             s_axi_control_RDATA,
    output logic [1:0]              s_axi_control_RRESP,
    // activations
    output logic                    m_axi_gmem0_ARVALID,
    input  wire logic               m_axi_gmem0_ARREADY,
    output logic [ADDR_WIDTH-1:0]   m_axi_gmem0_ARADDR,
    output logic [7:0]              m_axi_gmem0_ARLEN,
    output logic [2:0]              m_axi_gmem0_ARSIZE,
    output logic [1:0]              m_axi_gmem0_ARBURST,
    output logic [3:0]              m_axi_gmem0_ARCACHE,
    output logic [2:0]              m_axi_gmem0_ARPROT,
    input  wire logic               m_axi_gmem0_RVALID,
    output logic                    m_axi_gmem0_RREADY,
    input  wire logic [63:0]        m_axi_gmem0_RDATA,
    input  wire logic [1:0]         m_axi_gmem0_RRESP,
    input  wire logic               m_axi_gmem0_RLAST,
    output logic                    m_axi_gmem0_AWVALID,
    input  wire logic               m_axi_gmem0_AWREADY,
    output logic [ADDR_WIDTH-1:0]   m_axi_gmem0_AWADDR,
    output logic [7:0]              m_axi_gmem0_AWLEN,
    output logic [2:0]              m_axi_gmem0_AWSIZE,
    output logic [1:0]              m_axi_gmem0_AWBURST,
    output logic [3:0]              m_axi_gmem0_AWCACHE,
    output logic [2:0]              m_axi_gmem0_AWPROT,
    output logic                    m_axi_gmem0_WVALID,
    input  wire logic               m_axi_gmem0_WREADY,
    output logic [63:0]             m_axi_gmem0_WDATA,
    output logic [7:0]              m_axi_gmem0_WSTRB,
    output logic                    m_axi_gmem0_WLAST,
    input  wire logic               m_axi_gmem0_BVALID,
    output logic                    m_axi_gmem0_BREADY,
    input  wire logic [1:0]         m_axi_gmem0_BRESP,
    // weights
    output logic                    m_axi_gmem1_ARVALID,
    input  wire logic               m_axi_gmem1_ARREADY,
    output logic [ADDR_WIDTH-1:0]   m_axi_gmem1_ARADDR,
    output logic [7:0]              m_axi_gmem1_ARLEN,
    output logic [2:0]              m_axi_gmem1_ARSIZE,
    output logic [1:0]              m_axi_gmem1_ARBURST,
    output logic [3:0]              m_axi_gmem1_ARCACHE,
    output logic [2:0]              m_axi_gmem1_ARPROT,
    input  wire logic               m_axi_gmem1_RVALID,
    output logic                    m_axi_gmem1_RREADY,
    input  wire logic [63:0]        m_axi_gmem1_RDATA,
    input  wire logic [1:0]         m_axi_gmem1_RRESP,
    input  wire logic               m_axi_gmem1_RLAST,
    // program, tables, outcome
    output logic                    m_axi_gmem2_ARVALID,
    input  wire logic               m_axi_gmem2_ARREADY,
    output logic [ADDR_WIDTH-1:0]   m_axi_gmem2_ARADDR,
    output logic [7:0]              m_axi_gmem2_ARLEN,
    output logic [2:0]              m_axi_gmem2_ARSIZE,
    output logic [1:0]              m_axi_gmem2_ARBURST,
    output logic [3:0]              m_axi_gmem2_ARCACHE,
    output logic [2:0]              m_axi_gmem2_ARPROT,
    input  wire logic               m_axi_gmem2_RVALID,
    output logic                    m_axi_gmem2_RREADY,
    input  wire logic [63:0]        m_axi_gmem2_RDATA,
    input  wire logic [1:0]         m_axi_gmem2_RRESP,
    input  wire logic               m_axi_gmem2_RLAST,
    output logic                    m_axi_gmem2_AWVALID,
    input  wire logic               m_axi_gmem2_AWREADY,
    output logic [ADDR_WIDTH-1:0]   m_axi_gmem2_AWADDR,
    output logic [7:0]              m_axi_gmem2_AWLEN,
    output logic [2:0]              m_axi_gmem2_AWSIZE,
    output logic [1:0]              m_axi_gmem2_AWBURST,
    output logic [3:0]              m_axi_gmem2_AWCACHE,
    output logic [2:0]              m_axi_gmem2_AWPROT,
    output logic                    m_axi_gmem2_WVALID,
    input  wire logic               m_axi_gmem2_WREADY,
    output logic [63:0]             m_axi_gmem2_WDATA,
    output logic [7:0]              m_axi_gmem2_WSTRB,
    output logic                    m_axi_gmem2_WLAST,
    input  wire logic               m_axi_gmem2_BVALID,
    output logic                    m_axi_gmem2_BREADY,
    input  wire logic [1:0]         m_axi_gmem2_BRESP
);

  localparam int unsigned WORDS = 22;  // registers from 0x10 on
  localparam int unsigned PROGRAM = 0, WEIGHTS = 3, TABLES = 6, ARENA = 9, OUTCOME = 12, STATUS = 14;
  localparam int unsigned INSTRUCTIONS = 15, WEIGHTS_BYTES = 17, TABLE_WORDS = 19, ARENA_BYTES = 21;

  logic ap_start, ap_done, ap_idle, ap_ready;
  logic [32*WORDS-1:0] regs, args_q;
  logic [9:0] status;

  axil_control #(
      .ADDR_WIDTH(7),
      .WORDS(WORDS),
      .INPUTS(22'b10_1010_1011_0110_1101_1011),  // a hole behind each
      .OUTPUTS(22'b1 << STATUS)
  ) control (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .awvalid_i(s_axi_control_AWVALID),
      .awready_o(s_axi_control_AWREADY),
      .awaddr_i(s_axi_control_AWADDR),
      .wvalid_i(s_axi_control_WVALID),
      .wready_o(s_axi_control_WREADY),
      .wdata_i(s_axi_control_WDATA),
      .wstrb_i(s_axi_control_WSTRB),
      .bvalid_o(s_axi_control_BVALID),
      .bready_i(s_axi_control_BREADY),
      .bresp_o(s_axi_control_BRESP),
      .arvalid_i(s_axi_control_ARVALID),
      .arready_o(s_axi_control_ARREADY),
      .araddr_i(s_axi_control_ARADDR),
      .rvalid_o(s_axi_control_RVALID),
      .rready_i(s_axi_control_RREADY),
      .rdata_o(s_axi_control_RDATA),
      .rresp_o(s_axi_control_RRESP),
      .regs_o(regs),
      .values_i((32 * WORDS)'(status) << 32 * STATUS),
      .ap_start_o(ap_start),
      .ap_done_i(ap_done),
      .ap_idle_i(ap_idle),
      .ap_ready_i(ap_ready),
      .interrupt_o(interrupt)
  );

  wire [ADDR_WIDTH-1:0] program_at = args_q[32*PROGRAM+:ADDR_WIDTH];
  wire [ADDR_WIDTH-1:0] weights_at = args_q[32*WEIGHTS+:ADDR_WIDTH];
  wire [ADDR_WIDTH-1:0] tables_at = args_q[32*TABLES+:ADDR_WIDTH];
  wire [ADDR_WIDTH-1:0] arena_at = args_q[32*ARENA+:ADDR_WIDTH];
  wire [ADDR_WIDTH-1:0] outcome_at = args_q[32*OUTCOME+:ADDR_WIDTH];
  wire [31:0] instructions = args_q[32*INSTRUCTIONS+:32];

  // The run: do, write down the cycles; at the end the report, and 0 for what did not run.
  typedef enum logic [3:0] {IDLE, TAKE, BEGIN_RUN, RUN, COUNT, WRITE_COUNT, REPORT, WRITE_REPORT, REST, WRITE_REST, LAST} state_t;
  state_t state_q;
  item_t item_q, walk_item_q;
  plan_t plan_q, walk_plan_q;
  logic [31:0] index_q, cycles_q, count_q, rest_q;
  logic [4:0] reason_q;
  logic [1:0] words_q;
  logic [1:0] settle_q;
  logic walk_start_q, walk_begin_q, sum_start_q;
  logic walking, multiplying, draining, storing, adding, weighing;
  logic early_q, may_read_q;  // net_walk is at the next instruction
  logic [15:0] may_channels_q;
  logic last_job_q;           // and the array has begun this one's last job
  wire add = item_q.head[7:0] == ADD;
  wire ends_in_sum = item_q.head[9];
  wire none_left = signed'(index_q) >= signed'(instructions);
  wire busy = ((walking || weighing) && !early_q) || multiplying || draining || storing || adding;

  // Ahead of it: fetch the next instruction, check it.
  typedef enum logic [2:0] {OFF, ASK, FETCH, CHECK, READY} ahead_t;
  ahead_t ahead_q;
  item_t next_q;
  plan_t next_plan;
  logic [31:0] next_index_q;
  logic [3:0] reason;
  logic checked, check_start_q, no_next_q;
  wire no_next = signed'(next_index_q) >= signed'(instructions);
  wire takes = state_q == TAKE && ahead_q == READY;
  wire failed = status != '0;  // memory has refused an access: what follows would compute with what is not there
  wire ends = no_next_q || reason != '0 || next_q.head[7:0] == END || (failed && !early_q);

  // net_walk goes ahead: while the array has the last jobs of an instruction, it asks for the next one's weights. When
  // the last one is begun, it prepares the first band, and reads of it what cannot be on its way to memory still. That
  // is all if it is elsewhere. If it is what is written now, there are 16 lines of channels in net_drain, two on their
  // way from there, 32 that wait for b, 32 in net_store and 36 in axi_write at most, behind those of the array's tile.
  // - Rows are written one after the other, for all channels: ten tiles of 16 channels, six of 32, are in the last nine
  //   rows of an image that is wide enough.
  // - Where each channel has its own input channel, 16 of them are written after the other: of one tile each, seven times
  //   16 may be on their way, of two or more tiles four times.
  logic array_queued, elsewhere_q, same_q, written_q;
  logic [15:0] early_channels_q;
  logic [31:0] next_x_end, next_y_end, y_end_q;
  wire two_tiles = item_q.rows[15:0] >= 16'd5 && item_q.columns[15:0] >= 16'd5;
  wire [15:0] on_their_way = two_tiles ? 16'd64 : 16'd112;
  wire many = item_q.columns[15:5] != '0 ? item_q.outs[15:4] != '0 : item_q.columns[4] && item_q.outs[15:5] != '0;
  wire in_rows = plan_q.groups == 16'd1 && plan_q.columns == item_q.columns[8:0] && item_q.columns[15:9] == '0
      && !item_q.head[8];
  wire begins_early = state_q == RUN && !add && !early_q && !walk_begin_q && !walking
      && ahead_q == READY && next_q.head[7:0] != ADD && !ends;

  always_ff @(posedge ap_clk) begin
    elsewhere_q <= next_x_end <= item_q.y || next_q.x >= y_end_q;
    same_q      <= next_q.x == item_q.y && next_q.x_channel == item_q.y_channel && next_q.x_row == item_q.y_row;
    early_channels_q <= plan_q.alone && same_q && !item_q.head[8] && !ends_in_sum
        && item_q.outs[15:0] > on_their_way ? item_q.outs[15:0] - on_their_way : '0;
    written_q   <= many && in_rows && next_plan.seen + 18'd9 <= 18'(item_q.rows[15:0]);
    if (begins_early) begin
      may_read_q     <= elsewhere_q || (same_q && written_q);
      may_channels_q <= early_channels_q;
    end
    if (begins_early || takes) begin
      walk_item_q <= next_q;
      walk_plan_q <= next_plan;
    end
    if (takes) y_end_q <= next_y_end;
    if (!ap_rst_n || walk_start_q) early_q <= 1'b0;
    else if (begins_early) early_q <= 1'b1;
    last_job_q <= early_q && !walk_start_q && (last_job_q || !array_queued);
  end

  // Port 2: tables, instructions, lines of b where a convolution ends in an addition, and some of the weights, one after
  // the other.
  wire starts = state_q == BEGIN_RUN || walk_start_q || sum_start_q;
  logic table_cmd_valid, cmd2_valid, cmd2_ready, word2_valid, word2_last, idle2;
  logic [ADDR_WIDTH-1:0] table_cmd_addr, cmd2_addr;
  logic [13:0] table_cmd_bytes, cmd2_bytes;
  logic [63:0] word2;
  logic [1:0] cmd1_valid, word1_ready;
  logic [ADDR_WIDTH-1:0] cmd1_addr;
  logic [9:0] cmd1_bytes;
  logic kinds_ready, kinds_valid, of_table, of_weights, of_b, line_asks;
  logic [ADDR_WIDTH-1:0] line_addr;
  logic [12:0] drain_bytes;  // of a line
  logic [4:0] kinds;
  wire asks = ahead_q == ASK && !no_next && !table_cmd_valid;
  wire port2_ready = cmd2_ready && kinds_ready;
  wire table_valid = word2_valid && of_table;
  wire fetched = word2_valid && !of_table && !of_weights && !of_b;
  wire line_ready = port2_ready && !table_cmd_valid && !asks;

  assign cmd2_valid = (asks || table_cmd_valid || line_asks || (cmd1_valid[1] && !starts)) && kinds_ready;
  assign cmd2_addr  = table_cmd_valid ? table_cmd_addr
      : asks ? program_at + (ADDR_WIDTH'(next_index_q) << 7) : line_asks ? line_addr : cmd1_addr;
  assign cmd2_bytes = table_cmd_valid ? table_cmd_bytes : asks ? 14'd128 : line_asks ? 14'(drain_bytes) : 14'(cmd1_bytes);

  fifo #(
      .WIDTH(3),
      .DEPTH(16)
  ) order (
      .clk_i  (ap_clk),
      .rst_ni (ap_rst_n),
      .valid_i(cmd2_valid && cmd2_ready),
      .ready_o(kinds_ready),
      .data_i ({table_cmd_valid, !table_cmd_valid && !asks && line_asks,
                !table_cmd_valid && !asks && !line_asks}),
      .valid_o(kinds_valid),
      .ready_i(word2_valid && word2_last && (!of_weights || word1_ready[1])),
      .data_o ({of_table, of_b, of_weights}),
      .count_o(kinds)
  );

  axi_read #(
      .ADDR_WIDTH (ADDR_WIDTH),
      .DATA_WIDTH (64),
      .BYTES_WIDTH(14),
      .OUTSTANDING(OUTSTANDING)
  ) read_2 (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .cmd_valid_i(cmd2_valid),
      .cmd_ready_o(cmd2_ready),
      .cmd_addr_i(cmd2_addr),
      .cmd_bytes_i(cmd2_bytes),
      .valid_o(word2_valid),
      .ready_i(!of_weights || word1_ready[1]),
      .data_o(word2),
      .last_o(word2_last),
      .idle_o(idle2),
      .arvalid_o(m_axi_gmem2_ARVALID),
      .arready_i(m_axi_gmem2_ARREADY),
      .araddr_o(m_axi_gmem2_ARADDR),
      .arlen_o(m_axi_gmem2_ARLEN),
      .arsize_o(m_axi_gmem2_ARSIZE),
      .arburst_o(m_axi_gmem2_ARBURST),
      .rvalid_i(m_axi_gmem2_RVALID),
      .rready_o(m_axi_gmem2_RREADY),
      .rdata_i(m_axi_gmem2_RDATA),
      .rlast_i(m_axi_gmem2_RLAST)
  );

  // The report.
  logic cmd3_ready, word3_ready, written3;
  logic [ADDR_WIDTH-1:0] cmd3_addr;
  logic [34:0] cmd3_bytes;
  logic [63:0] word3;
  wire cmd3_valid = state_q == COUNT || state_q == REPORT || state_q == REST;
  wire word3_valid = state_q == WRITE_COUNT || state_q == WRITE_REPORT || state_q == WRITE_REST;
  wire [31:0] not_run = none_left ? '0 : instructions - index_q;

  always_comb begin
    cmd3_addr  = outcome_at + (ADDR_WIDTH'(index_q) << 2) + ADDR_WIDTH'(32);
    cmd3_bytes = 35'd4;
    if (state_q == REPORT) begin
      cmd3_addr  = outcome_at;
      cmd3_bytes = 35'd32;
    end
    if (state_q == REST) cmd3_bytes = {1'b0, not_run, 2'b00};
    word3 = '0;
    if (state_q == WRITE_COUNT) word3 = 64'(count_q);
    if (state_q == WRITE_REPORT && words_q == 2'd0) word3 = {index_q, 27'b0, reason_q};
    if (state_q == WRITE_REPORT && words_q == 2'd1) word3 = 64'd1;  // the version
  end

  axi_write #(
      .ADDR_WIDTH (ADDR_WIDTH),
      .DATA_WIDTH (64),
      .BYTES_WIDTH(35),
      .OUTSTANDING(2)
  ) write_2 (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .cmd_valid_i(cmd3_valid),
      .cmd_ready_o(cmd3_ready),
      .cmd_addr_i(cmd3_addr),
      .cmd_bytes_i(cmd3_bytes),
      .valid_i(word3_valid),
      .ready_o(word3_ready),
      .data_i(word3),
      .idle_o(written3),
      .awvalid_o(m_axi_gmem2_AWVALID),
      .awready_i(m_axi_gmem2_AWREADY),
      .awaddr_o(m_axi_gmem2_AWADDR),
      .awlen_o(m_axi_gmem2_AWLEN),
      .awsize_o(m_axi_gmem2_AWSIZE),
      .awburst_o(m_axi_gmem2_AWBURST),
      .wvalid_o(m_axi_gmem2_WVALID),
      .wready_i(m_axi_gmem2_WREADY),
      .wdata_o(m_axi_gmem2_WDATA),
      .wstrb_o(m_axi_gmem2_WSTRB),
      .wlast_o(m_axi_gmem2_WLAST),
      .bvalid_i(m_axi_gmem2_BVALID),
      .bready_o(m_axi_gmem2_BREADY)
  );

  assign ap_done  = state_q == LAST && written3;
  assign ap_ready = ap_done;
  assign ap_idle  = state_q == IDLE && !ap_start;

  always_ff @(posedge ap_clk) begin
    check_start_q <= 1'b0;
    if (!ap_rst_n) begin
      ahead_q <= OFF;
    end else begin
      unique case (ahead_q)
        OFF: if (state_q == IDLE && ap_start) begin
          next_index_q <= '0;
          ahead_q      <= ASK;
        end
        ASK: begin
          no_next_q <= no_next;
          if (no_next) ahead_q <= READY;
          else if (asks && port2_ready) ahead_q <= FETCH;
        end
        FETCH: if (fetched) begin
          next_q <= {word2, next_q[1023:64]};
          if (word2_last) begin
            check_start_q <= 1'b1;
            ahead_q       <= CHECK;
          end
        end
        CHECK: if (checked) ahead_q <= READY;
        default: if (takes) begin
          next_index_q <= next_index_q + 1'b1;
          ahead_q      <= ends ? OFF : ASK;
        end
      endcase
    end
  end

  always_ff @(posedge ap_clk) begin
    walk_start_q <= 1'b0;
    walk_begin_q <= begins_early;
    sum_start_q  <= 1'b0;
    cycles_q     <= cycles_q + 1'b1;
    if (!ap_rst_n) begin
      state_q <= IDLE;
    end else begin
      unique case (state_q)
        IDLE: if (ap_start) begin
          args_q   <= regs;
          index_q  <= '0;
          cycles_q <= '0;
          state_q  <= TAKE;
        end
        TAKE: if (takes) begin
          item_q   <= next_q;
          plan_q   <= next_plan;
          reason_q <= failed ? 5'd16 : no_next_q ? 5'd15 : {1'b0, reason};
          words_q  <= '0;
          state_q  <= ends ? REPORT : BEGIN_RUN;
        end
        BEGIN_RUN: begin
          walk_start_q <= !add;
          walk_begin_q <= !add && !early_q;
          sum_start_q  <= add;
          settle_q     <= 2'd3;
          state_q      <= RUN;
        end
        RUN: begin
          // Nothing is on its way from one unit to the next where none has been busy for some cycles.
          settle_q <= busy ? 2'd3 : settle_q - 1'b1;
          if (!busy && settle_q == '0) begin
            count_q  <= cycles_q;
            cycles_q <= 32'd1;
            state_q  <= COUNT;
          end
        end
        COUNT: if (cmd3_ready) state_q <= WRITE_COUNT;
        WRITE_COUNT: if (word3_ready) begin
          if (!failed) index_q <= index_q + 1'b1;
          state_q <= TAKE;
        end
        REPORT: if (cmd3_ready) state_q <= WRITE_REPORT;
        WRITE_REPORT: if (word3_ready) begin
          words_q <= words_q + 1'b1;
          if (words_q == 2'd3) state_q <= REST;
        end
        REST: if (cmd3_ready) begin
          rest_q  <= (not_run + 32'd1) >> 1;
          state_q <= not_run == '0 ? LAST : WRITE_REST;
        end
        WRITE_REST: if (word3_ready) begin
          rest_q <= rest_q - 1'b1;
          if (rest_q == 32'd1) state_q <= LAST;
        end
        default: if (written3) state_q <= IDLE;
      endcase
    end
  end

  net_plan #(
      .COLS(COLS)
  ) planner (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .start_i(check_start_q),
      .item_i(next_q),
      .weights_bytes_i(args_q[32*WEIGHTS_BYTES+:32]),
      .table_words_i(args_q[32*TABLE_WORDS+:32]),
      .arena_bytes_i(args_q[32*ARENA_BYTES+:32]),
      .done_o(checked),
      .reason_o(reason),
      .plan_o(next_plan),
      .x_end_o(next_x_end),
      .y_end_o(next_y_end)
  );

  // Port 0, reads: for the walk or for an addition.
  logic walk_cmd_valid, sum_cmd_valid, cmd0_ready, word0_valid, word0_ready, sum_ready, word0_last, idle0;
  logic [ADDR_WIDTH-1:0] walk_cmd_addr, sum_cmd_addr;
  logic [12:0] walk_cmd_bytes, sum_cmd_bytes;
  logic [63:0] word0;

  assign word0_ready = add ? sum_ready : 1'b1;

  axi_read #(
      .ADDR_WIDTH (ADDR_WIDTH),
      .DATA_WIDTH (64),
      .BYTES_WIDTH(13),
      .OUTSTANDING(2 * OUTSTANDING),  // short ones: a line of a channel each
      .DEPTH      (16 * OUTSTANDING)
  ) read_0 (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .cmd_valid_i(add ? sum_cmd_valid : walk_cmd_valid),
      .cmd_ready_o(cmd0_ready),
      .cmd_addr_i(add ? sum_cmd_addr : walk_cmd_addr),
      .cmd_bytes_i(add ? sum_cmd_bytes : walk_cmd_bytes),
      .valid_o(word0_valid),
      .ready_i(word0_ready),
      .data_o(word0),
      .last_o(word0_last),
      .idle_o(idle0),
      .arvalid_o(m_axi_gmem0_ARVALID),
      .arready_i(m_axi_gmem0_ARREADY),
      .araddr_o(m_axi_gmem0_ARADDR),
      .arlen_o(m_axi_gmem0_ARLEN),
      .arsize_o(m_axi_gmem0_ARSIZE),
      .arburst_o(m_axi_gmem0_ARBURST),
      .rvalid_i(m_axi_gmem0_RVALID),
      .rready_o(m_axi_gmem0_RREADY),
      .rdata_i(m_axi_gmem0_RDATA),
      .rlast_i(m_axi_gmem0_RLAST)
  );

  logic patch_write, loaded, buffer_free, job_valid, job_ready;
  logic [9:0] patch_word;
  job_t job;
  logic request_valid, request_ready, request_again, request_paired;
  logic [31:0] request_at, request_taps;
  wire weighted = walk_item_q.head[7:0] == CONV;

  net_walk #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .COLS(COLS)
  ) walk (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .start_i(walk_begin_q),
      .ahead_i(early_q),
      .may_read_i(may_read_q),
      .channels_i(may_channels_q),
      .may_job_i(last_job_q),
      .item_i(walk_item_q),
      .plan_i(walk_plan_q),
      .arena_i(arena_at),
      .busy_o(walking),
      .cmd_valid_o(walk_cmd_valid),
      .cmd_ready_i(cmd0_ready && !add),
      .cmd_addr_o(walk_cmd_addr),
      .cmd_bytes_o(walk_cmd_bytes),
      .valid_i(word0_valid && !add),
      .last_i(word0_last),
      .write_o(patch_write),
      .word_o(patch_word),
      .loaded_o(loaded),
      .weights_valid_o(request_valid),
      .weights_ready_i(request_ready || !weighted),
      .weights_again_o(request_again),
      .weights_at_o(request_at),
      .weights_taps_o(request_taps),
      .weights_paired_o(request_paired),
      .free_i(buffer_free),
      .job_valid_o(job_valid),
      .job_ready_i(job_ready),
      .job_o(job)
  );

  // Port 1: weights, or half of them.
  logic tile_valid, tile_ready;
  logic cmd1_ready, word1_valid, word1_last, idle1;
  logic [63:0] word1;
  logic weights_valid, weights_take;
  logic [127:0] weights;

  net_weights #(
      .ADDR_WIDTH(ADDR_WIDTH)
  ) weights_of_tiles (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .weights_i(weights_at),
      .resident_i(plan_q.resident),
      .ahead_i(early_q),
      .pause_i(draining),
      .busy_o(weighing),
      .valid_i(request_valid && weighted),
      .ready_o(request_ready),
      .again_i(request_again),
      .at_i(request_at),
      .taps_i(request_taps),
      .skip_i(request_paired ? walk_plan_q.taps[7:4] : '0),
      .vectors_i(walk_plan_q.alone ? request_taps[11:0] : walk_plan_q.vectors[11:0]),
      .alone_i(walk_plan_q.alone),
      .outs_i(walk_plan_q.outs),
      .cmd_valid_o(cmd1_valid),
      .cmd_ready_i({line_ready && !line_asks && !starts, cmd1_ready}),
      .cmd_addr_o(cmd1_addr),
      .cmd_bytes_o(cmd1_bytes),
      .valid_word_i({word2_valid && of_weights, word1_valid}),
      .ready_word_o(word1_ready),
      .word_i({word2, word1}),
      .last_word_i(word1_last),
      .valid_o(weights_valid),
      .take_i(weights_take),
      .weights_o(weights)
  );

  axi_read #(
      .ADDR_WIDTH (ADDR_WIDTH),
      .DATA_WIDTH (64),
      .BYTES_WIDTH(10),
      .OUTSTANDING(OUTSTANDING)
  ) read_1 (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .cmd_valid_i(cmd1_valid[0]),
      .cmd_ready_o(cmd1_ready),
      .cmd_addr_i(cmd1_addr),
      .cmd_bytes_i(cmd1_bytes),
      .valid_o(word1_valid),
      .ready_i(word1_ready[0]),
      .data_o(word1),
      .last_o(word1_last),
      .idle_o(idle1),
      .arvalid_o(m_axi_gmem1_ARVALID),
      .arready_i(m_axi_gmem1_ARREADY),
      .araddr_o(m_axi_gmem1_ARADDR),
      .arlen_o(m_axi_gmem1_ARLEN),
      .arsize_o(m_axi_gmem1_ARSIZE),
      .arburst_o(m_axi_gmem1_ARBURST),
      .rvalid_i(m_axi_gmem1_RVALID),
      .rready_o(m_axi_gmem1_RREADY),
      .rdata_i(m_axi_gmem1_RDATA),
      .rlast_i(m_axi_gmem1_RLAST)
  );

  place_t tile_place;
  logic [32*COLS*ROWS-1:0] tile_sums;

  net_array #(
      .ROWS(ROWS),
      .COLS(COLS)
  ) array (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .hold_i(last_job_q),
      .item_i(item_q),
      .plan_i(plan_q),
      .busy_o(multiplying),
      .queued_o(array_queued),
      .write_i(patch_write),
      .word_i(patch_word),
      .data_i(word0),
      .loaded_i(loaded),
      .free_o(buffer_free),
      .job_valid_i(job_valid),
      .job_ready_o(job_ready),
      .job_i(job),
      .weights_valid_i(weights_valid),
      .weights_take_o(weights_take),
      .weights_i(weights),
      .ready_i(tile_ready),
      .valid_o(tile_valid),
      .place_o(tile_place),
      .sums_o(tile_sums)
  );

  // Groups of results, of a tile or of an addition.
  logic asks_factors, of_factors, from_sum, drain_may, drains_q, few_lines, left_room;
  logic drain_valid, drain_first, drain_last, sum_valid, sum_first, sum_last, store_ready;
  logic [31:0] drain_at, sum_at, bias, factor;
  logic [12:0] sum_bytes;
  logic [3:0] drain_count, sum_count;
  logic [255:0] drain_sums;
  logic [127:0] sum_left, sum_right;
  logic [63:0] factors_q;  // of an addition
  logic [23:0] before_sum_q;
  logic factors_asked_q, factors_known_q, factors_half_q, drain_cmd_valid;
  logic [ADDR_WIDTH-1:0] drain_cmd_addr;
  logic [13:0] drain_cmd_bytes;

  net_drain #(
      .ROWS(ROWS),
      .COLS(COLS),
      .ADDR_WIDTH(ADDR_WIDTH)
  ) drain (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .start_i(walk_start_q),
      .item_i(item_q),
      .plan_i(plan_q),
      .tables_i(tables_at),
      .busy_o(draining),
      .ready_o(tile_ready),
      .valid_i(tile_valid),
      .place_i(tile_place),
      .sums_i(tile_sums),
      .cmd_valid_o(drain_cmd_valid),
      .cmd_ready_i(port2_ready && !add && !asks_factors),
      .cmd_addr_o(drain_cmd_addr),
      .cmd_bytes_o(drain_cmd_bytes),
      .entry_valid_i(table_valid && !of_factors),
      .entry_i(word2),
      .valid_o(drain_valid),
      .ready_i(store_ready && !from_sum && drain_may),
      .first_o(drain_first),
      .last_o(drain_last),
      .at_o(drain_at),
      .bytes_o(drain_bytes),
      .count_o(drain_count),
      .sums_o(drain_sums),
      .bias_o(bias),
      .factor_o(factor)
  );

  // The factors of an addition come before all else of the table, those of a convolution's from its end.
  wire [31:0] factors_entry = item_q.entry + (add ? '0 : {15'b0, item_q.outs[15:0], 1'b0});
  assign asks_factors    = !factors_asked_q;
  assign of_factors      = !factors_known_q;
  assign table_cmd_valid = asks_factors || (!add && drain_cmd_valid);
  assign table_cmd_addr  = asks_factors ? tables_at + ADDR_WIDTH'({factors_entry, 2'b00}) : drain_cmd_addr;
  assign table_cmd_bytes = asks_factors ? (add ? 14'd8 : 14'd16) : drain_cmd_bytes;

  always_ff @(posedge ap_clk) begin
    if (!ap_rst_n) begin
      factors_asked_q <= 1'b1;
      factors_known_q <= 1'b1;
    end else if (sum_start_q || (walk_start_q && ends_in_sum)) begin
      factors_asked_q <= 1'b0;
      factors_known_q <= 1'b0;
      factors_half_q  <= 1'b0;
    end else begin
      if (port2_ready) factors_asked_q <= 1'b1;
      if (table_valid && of_factors) begin
        factors_half_q  <= 1'b1;
        factors_known_q <= word2_last;
        if (factors_half_q) before_sum_q <= word2[23:0];
        else factors_q <= word2;
      end
    end
  end

  // What finishes next. A convolution's elements go first: those of a line as soon as its line of b is asked for.
  logic line_room, leaving_valid, leaving_taken;
  logic [63:0] leaving;
  wire sum_may = sum_valid && factors_known_q;
  wire line_may = factors_known_q && line_room;
  assign drain_may = !ends_in_sum || (line_may && (!drain_first || line_ready));
  assign from_sum  = add || (ends_in_sum && sum_may && !(drain_valid && drain_may && left_room && (drains_q || few_lines)));
  assign line_asks = !from_sum && ends_in_sum && drain_valid && drain_first && line_may && store_ready;

  always_ff @(posedge ap_clk) begin
    if (store_ready) drains_q <= from_sum ? drains_q && !sum_may : drains_q || (drain_valid && drain_may);
  end
  wire [31:0] left_zero = add ? item_q.x_zero : {{24{before_sum_q[7]}}, before_sum_q[7:0]};
  wire [31:0] line_at = drain_at - item_q.y + item_q.b;
  assign line_addr = arena_at + ADDR_WIDTH'(line_at);

  net_sum #(
      .ADDR_WIDTH(ADDR_WIDTH)
  ) sum (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .start_i(sum_start_q),
      .item_i(item_q),
      .plane_i(plan_q.x_plane),
      .arena_i(arena_at),
      .busy_o(adding),
      .ends_in_sum_i(ends_in_sum),
      .line_valid_i(line_asks && line_ready),
      .line_ready_o(line_room),
      .few_lines_o(few_lines),
      .line_at_i(drain_at),
      .line_bytes_i(drain_bytes),
      .result_valid_i(leaving_valid),
      .result_i(leaving),
      .result_taken_o(leaving_taken),
      .cmd_valid_o(sum_cmd_valid),
      .cmd_ready_i(cmd0_ready && add),
      .cmd_addr_o(sum_cmd_addr),
      .cmd_bytes_o(sum_cmd_bytes),
      .valid_i(ends_in_sum ? word2_valid && of_b : word0_valid && add),
      .ready_o(sum_ready),
      .data_i(ends_in_sum ? word2 : word0),
      .last_i(word0_last),
      .valid_o(sum_valid),
      .ready_i(store_ready && from_sum && factors_known_q),
      .first_o(sum_first),
      .last_o(sum_last),
      .at_o(sum_at),
      .bytes_o(sum_bytes),
      .count_o(sum_count),
      .left_o(sum_left),
      .right_o(sum_right)
  );

  net_store #(
      .ADDR_WIDTH (ADDR_WIDTH),
      .OUTSTANDING(4 * OUTSTANDING)
  ) store (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .arena_i(arena_at),
      .pairs_i(add || ends_in_sum),
      .ends_in_sum_i(ends_in_sum),
      .wide_i(item_q.head[8]),
      .zero_i(item_q.head[7:0] == MAX ? '0 : item_q.y_zero[8:0]),
      .low_i(item_q.low[7:0]),
      .high_i(item_q.high[7:0]),
      .before_sum_i(before_sum_q),
      .busy_o(storing),
      .valid_i(from_sum ? sum_may : drain_valid && drain_may),
      .ready_o(store_ready),
      .left_room_o(left_room),
      .both_i(from_sum),
      .first_i(from_sum ? sum_first : drain_first),
      .last_i(from_sum ? sum_last : drain_last),
      .at_i(from_sum ? sum_at : drain_at),
      .bytes_i(from_sum ? sum_bytes : drain_bytes),
      .count_i(from_sum ? sum_count : drain_count),
      .left_i(from_sum ? sum_left : drain_sums[127:0]),
      .left_bias_i(from_sum ? -left_zero : bias),
      .left_factor_i(from_sum ? factors_q[31:0] : factor),
      .right_i(from_sum ? sum_right : drain_sums[255:128]),
      .right_bias_i(from_sum ? -item_q.b_zero : bias),
      .right_factor_i(from_sum ? factors_q[63:32] : factor),
      .leaves_o(leaving_valid),
      .leaving_o(leaving),
      .taken_i(leaving_taken),
      .awvalid_o(m_axi_gmem0_AWVALID),
      .awready_i(m_axi_gmem0_AWREADY),
      .awaddr_o(m_axi_gmem0_AWADDR),
      .awlen_o(m_axi_gmem0_AWLEN),
      .awsize_o(m_axi_gmem0_AWSIZE),
      .awburst_o(m_axi_gmem0_AWBURST),
      .wvalid_o(m_axi_gmem0_WVALID),
      .wready_i(m_axi_gmem0_WREADY),
      .wdata_o(m_axi_gmem0_WDATA),
      .wstrb_o(m_axi_gmem0_WSTRB),
      .wlast_o(m_axi_gmem0_WLAST),
      .bvalid_i(m_axi_gmem0_BVALID),
      .bready_o(m_axi_gmem0_BREADY)
  );

  axi_responses #(
      .CHANNELS(5)
  ) responses (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .clear_i(ap_done),
      .valid_i({m_axi_gmem2_BVALID && m_axi_gmem2_BREADY,
                m_axi_gmem2_RVALID && m_axi_gmem2_RREADY,
                m_axi_gmem1_RVALID && m_axi_gmem1_RREADY,
                m_axi_gmem0_BVALID && m_axi_gmem0_BREADY,
                m_axi_gmem0_RVALID && m_axi_gmem0_RREADY}),
      .resp_i({m_axi_gmem2_BRESP, m_axi_gmem2_RRESP, m_axi_gmem1_RRESP, m_axi_gmem0_BRESP, m_axi_gmem0_RRESP}),
      .status_o(status)
  );

  // As HLS drives them: normal memory that may be buffered, no privilege, secure, data.
  assign m_axi_gmem0_ARCACHE = 4'b0011;
  assign m_axi_gmem0_ARPROT  = 3'b000;
  assign m_axi_gmem0_AWCACHE = 4'b0011;
  assign m_axi_gmem0_AWPROT  = 3'b000;
  assign m_axi_gmem1_ARCACHE = 4'b0011;
  assign m_axi_gmem1_ARPROT  = 3'b000;
  assign m_axi_gmem2_ARCACHE = 4'b0011;
  assign m_axi_gmem2_ARPROT  = 3'b000;
  assign m_axi_gmem2_AWCACHE = 4'b0011;
  assign m_axi_gmem2_AWPROT  = 3'b000;

  // What is done in a cycle, for those who watch; several at once as a rule.
  wire perf_load = walking || weighing;
  wire perf_compute = multiplying;
  wire perf_drain = storing;

  wire unused = &{1'b0, args_q, idle0, idle1, idle2, item_q, plan_q, perf_load, perf_compute, perf_drain,
      kinds, kinds_valid};

endmodule

`default_nettype wire
