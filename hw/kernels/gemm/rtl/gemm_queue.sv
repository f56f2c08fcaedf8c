// gemm_queue: a deep queue in block RAM. A word needs two cycles to pass it.
`default_nettype none

module gemm_queue #(
    parameter int unsigned WIDTH = 128,
    parameter int unsigned DEPTH = 512  // words; a power of two
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             valid_i,
    output logic                  ready_o,
    input  wire logic [WIDTH-1:0] data_i,
    output logic                  valid_o,
    input  wire logic             ready_i,
    output logic [WIDTH-1:0]      data_o
);

  localparam int unsigned INDEX_BITS = $clog2(DEPTH);

  (* ram_style = "block" *) logic [WIDTH-1:0] words[DEPTH];
  logic [INDEX_BITS-1:0] head_q, tail_q;
  logic [INDEX_BITS:0] count_q;  // words in the memory, without the one on data_o
  logic valid_q;
  logic [WIDTH-1:0] data_q;
  wire push = valid_i && ready_o;
  wire fetch = count_q != '0 && (!valid_q || ready_i);

  assign ready_o = count_q != (INDEX_BITS + 1)'(DEPTH);
  assign valid_o = valid_q;
  assign data_o  = data_q;

  always_ff @(posedge clk_i) begin
    if (push) words[tail_q] <= data_i;
  end

  always_ff @(posedge clk_i) begin
    if (fetch) data_q <= words[head_q];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q  <= '0;
      tail_q  <= '0;
      count_q <= '0;
      valid_q <= 1'b0;
    end else begin
      if (push) tail_q <= tail_q + 1'b1;
      if (fetch) head_q <= head_q + 1'b1;
      count_q <= count_q + (INDEX_BITS + 1)'(push) - (INDEX_BITS + 1)'(fetch);
      if (fetch) valid_q <= 1'b1;
      else if (ready_i) valid_q <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  initial assert (2 ** INDEX_BITS == DEPTH)
  else $fatal(1, "gemm_queue: DEPTH is %0d, expected a power of two", DEPTH);
`endif

endmodule

`default_nettype wire
