// fifo: a queue with valid/ready on both sides. The oldest word is on data_o while valid_o is high.
`default_nettype none

module fifo #(
    parameter int unsigned WIDTH = 32,
    parameter int unsigned DEPTH = 16  // words; a power of two
) (
    input  wire logic                       clk_i,
    input  wire logic                       rst_ni,
    input  wire logic                       valid_i,
    output logic                            ready_o,
    input  wire logic [WIDTH-1:0]           data_i,
    output logic                            valid_o,
    input  wire logic                       ready_i,
    output logic [WIDTH-1:0]                data_o,
    output logic [$clog2(DEPTH + 1) - 1:0]  count_o   // words inside
);

  localparam int unsigned INDEX_BITS = $clog2(DEPTH);
  localparam int unsigned COUNT_BITS = $clog2(DEPTH + 1);

  logic [WIDTH-1:0] words[DEPTH];  // read without a clock, so that it becomes LUT RAM
  logic [INDEX_BITS-1:0] head_q, tail_q;
  logic [COUNT_BITS-1:0] count_q;
  wire push = valid_i && ready_o;
  wire pop = valid_o && ready_i;

  assign ready_o = count_q != COUNT_BITS'(DEPTH);
  assign valid_o = count_q != '0;
  assign data_o  = words[head_q];
  assign count_o = count_q;

  always_ff @(posedge clk_i) begin
    if (push) words[tail_q] <= data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q  <= '0;
      tail_q  <= '0;
      count_q <= '0;
    end else begin
      if (push) tail_q <= tail_q + 1'b1;
      if (pop) head_q <= head_q + 1'b1;
      if (push && !pop) count_q <= count_q + 1'b1;
      if (pop && !push) count_q <= count_q - 1'b1;
    end
  end

`ifndef SYNTHESIS
  initial assert (DEPTH >= 2 && 2 ** INDEX_BITS == DEPTH)
  else $fatal(1, "fifo: DEPTH is %0d, expected a power of two from 2 on", DEPTH);
  assert property (@(posedge clk_i) disable iff (!rst_ni) count_q <= COUNT_BITS'(DEPTH))
  else $error("fifo: %0d words in a queue of %0d", count_q, DEPTH);
`endif

endmodule

`default_nettype wire
