// net_store: finishes groups of elements and writes them to the arena, a line at a time: up to eight of one operand,
// up to four of two operands or as float32. Where a convolution ends in an addition, its elements leave as bytes, eight
// at a time, and come back as the left one of two operands.
`default_nettype none

module net_store #(
    parameter int unsigned ADDR_WIDTH  = 64,
    parameter int unsigned OUTSTANDING = 8
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic [ADDR_WIDTH-1:0] arena_i,
    input  wire logic                  pairs_i,        // what is written are sums of two operands
    input  wire logic                  ends_in_sum_i,  // of a convolution's elements and others
    input  wire logic                  wide_i,
    input  wire logic signed [8:0]     zero_i,
    input  wire logic signed [7:0]     low_i,
    input  wire logic signed [7:0]     high_i,
    input  wire logic [23:0]           before_sum_i,  // zero point and bounds of what leaves
    output logic                       busy_o,
    // groups
    input  wire logic                  valid_i,
    output logic                       ready_o,
    output logic                       left_room_o,    // for one operand that leaves
    input  wire logic                  both_i,         // two operands
    input  wire logic                  first_i,
    input  wire logic                  last_i,
    input  wire logic [31:0]           at_i,
    input  wire logic [12:0]           bytes_i,
    input  wire logic [3:0]            count_i,
    input  wire logic [127:0]          left_i,
    input  wire logic [31:0]           left_bias_i,
    input  wire logic [31:0]           left_factor_i,
    input  wire logic [127:0]          right_i,     // the other operand, or the fifth element and those after it
    input  wire logic [31:0]           right_bias_i,
    input  wire logic [31:0]           right_factor_i,
    // before an addition
    output logic                       leaves_o,
    output logic [63:0]                leaving_o,
    input  wire logic                  taken_i,
    // AXI4
    output logic                       awvalid_o,
    input  wire logic                  awready_i,
    output logic [ADDR_WIDTH-1:0]      awaddr_o,
    output logic [7:0]                 awlen_o,
    output logic [2:0]                 awsize_o,
    output logic [1:0]                 awburst_o,
    output logic                       wvalid_o,
    input  wire logic                  wready_i,
    output logic [63:0]                wdata_o,
    output logic [7:0]                 wstrb_o,
    output logic                       wlast_o,
    input  wire logic                  bvalid_i,
    output logic                       bready_o
);

  localparam int unsigned ALONE   = 10;  // cycles of net_lane
  localparam int unsigned BOTH    = 15;
  localparam int unsigned WAITING = 32;  // groups in the lanes and behind them
  localparam int unsigned LEFT    = 62;  // groups that have left, or are about to; net_sum has room for two more of b

  logic cmd_ready, room, nothing_waits, queue_ready, out_valid, out_last, out_take, written;
  logic left_room, none_left;
  logic [ALONE-1:0] alone_q;
  logic [BOTH-1:0] both_q;
  logic [4:0] shape_q[BOTH];
  logic [127:0] elements, out;
  logic [3:0] out_count;
  logic [5:0] waiting;
  wire fire = valid_i && ready_o;
  wire leaves = ends_in_sum_i && !both_i;
  wire finished = both_q[BOTH-1] || (!ends_in_sum_i && alone_q[ALONE-1]);

  // One operand is rounded five cycles after its product, two as many after their sum: what would meet there waits.
  assign left_room_o = left_room;
  assign ready_o  = leaves ? left_room && !both_q[BOTH-ALONE-1] : room && (!first_i || cmd_ready);
  assign busy_o   = !nothing_waits || !none_left || !written;
  assign leaves_o = ends_in_sum_i && alone_q[ALONE-1];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      alone_q <= '0;
      both_q  <= '0;
    end else begin
      alone_q <= {alone_q[ALONE-2:0], fire && !both_i};
      both_q  <= {both_q[BOTH-2:0], fire && both_i};
    end
  end

  // When they are cut off: those of what leaves, or the result's.
  logic signed [8:0] zero_q;
  logic signed [7:0] lowest_q, highest_q;

  always_ff @(posedge clk_i) begin
    if (ends_in_sum_i && !both_q[BOTH-3]) {highest_q, lowest_q, zero_q} <= {before_sum_i[23:8], before_sum_i[7], before_sum_i[7:0]};
    else {highest_q, lowest_q, zero_q} <= {high_i, low_i, zero_i};
  end

  always_ff @(posedge clk_i) begin
    shape_q[0] <= {last_i, count_i};
    for (int i = 1; i < BOTH; ++i) shape_q[i] <= shape_q[i-1];
  end

  credits #(
      .TOTAL(WAITING),
      .TAKE (1),
      .GIVES(1)
  ) groups (
      .clk_i,
      .rst_ni,
      .take_i(fire && !leaves),
      .give_i(out_take),
      .room_o(room),
      .idle_o(nothing_waits)
  );

  credits #(
      .TOTAL(LEFT),
      .TAKE (1),
      .GIVES(1)
  ) left (
      .clk_i,
      .rst_ni,
      .take_i(fire && leaves),
      .give_i(taken_i),
      .room_o(left_room),
      .idle_o(none_left)
  );

  // A group of eight: the second byte of each element is the fifth one's and those after it.
  for (genvar i = 0; i < 4; ++i) begin : gen_lane
    logic [31:0] element;
    logic [7:0] second;
    assign {leaving_o[32+8*i+:8], leaving_o[8*i+:8]} = {second, element[7:0]};
    assign elements[32*i+:32] = {element[31:16], wide_i ? element[15:8] : second, element[7:0]};

    net_lane lane (
        .clk_i,
        .rst_ni,
        .both_i(both_q[BOTH-4]),
        .wide_i,
        .left_i(left_i[32*i+:32]),
        .left_bias_i,
        .left_factor_i,
        .right_i(right_i[32*i+:32]),
        .right_bias_i,
        .right_factor_i,
        .zero_i(zero_q),
        .low_i(lowest_q),
        .high_i(highest_q),
        .element_o(element),
        .second_o(second)
    );
  end

  fifo #(
      .WIDTH(133),
      .DEPTH(WAITING)
  ) queue (
      .clk_i,
      .rst_ni,
      .valid_i(finished),
      .ready_o(queue_ready),
      .data_i ({elements, both_q[BOTH-1] ? shape_q[BOTH-1] : shape_q[ALONE-1]}),
      .valid_o(out_valid),
      .ready_i(out_take),
      .data_o ({out, out_last, out_count}),
      .count_o(waiting)
  );

  // Words of 64 bits: a group of bytes, two of them where they are four, or half a group of float32. In a line, every
  // group but the last is whole.
  logic half_q;
  logic [31:0] low_q;
  logic word_ready;
  wire [31:0] bytes = {out[103:96], out[71:64], out[39:32], out[7:0]};
  wire [31:0] second_bytes = {out[111:104], out[79:72], out[47:40], out[15:8]};
  wire word_valid = out_valid && (!pairs_i || half_q || out_last);
  wire [63:0] word = wide_i ? (half_q ? out[127:64] : out[63:0]) : half_q ? {bytes, low_q} : {second_bytes, bytes};
  wire ends = wide_i ? half_q || out_count <= 4'd2 : 1'b1;

  assign out_take = out_valid && ends && (word_ready || !word_valid);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) half_q <= 1'b0;
    else if (wide_i) half_q <= word_valid && word_ready ? !ends : half_q;
    else if (out_take) half_q <= pairs_i && !half_q && !out_last;
    if (out_take) low_q <= bytes;
  end

  axi_write #(
      .ADDR_WIDTH (ADDR_WIDTH),
      .DATA_WIDTH (64),
      .BYTES_WIDTH(13),
      .OUTSTANDING(OUTSTANDING)
  ) write (
      .clk_i,
      .rst_ni,
      .cmd_valid_i(valid_i && first_i && room && !leaves),
      .cmd_ready_o(cmd_ready),
      .cmd_addr_i (arena_i + ADDR_WIDTH'(at_i)),
      .cmd_bytes_i(bytes_i),
      .valid_i    (word_valid),
      .ready_o    (word_ready),
      .data_i     (word),
      .idle_o     (written),
      .awvalid_o,
      .awready_i,
      .awaddr_o,
      .awlen_o,
      .awsize_o,
      .awburst_o,
      .wvalid_o,
      .wready_i,
      .wdata_o,
      .wstrb_o,
      .wlast_o,
      .bvalid_i,
      .bready_o
  );

  wire unused = &{1'b0, waiting, queue_ready, out};

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) finished |-> queue_ready)
  else $error("net_store: elements for which there is no room");
`endif

endmodule

`default_nettype wire
