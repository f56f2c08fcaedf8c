// Adds one to every beat. A beat stays inside for at least DELAY cycles, while the input is ready:
// what a long pipeline looks like from outside.
`default_nettype none

module increment #(
    parameter int unsigned DELAY = 300,
    parameter int unsigned DEPTH = 1024
) (
    input  wire         ap_clk,
    input  wire         ap_rst_n,
    input  wire  [31:0] samples_TDATA,
    input  wire  [ 3:0] samples_TKEEP,
    input  wire  [ 3:0] samples_TSTRB,
    input  wire         samples_TLAST,
    input  wire         samples_TVALID,
    output logic        samples_TREADY,
    output logic [31:0] results_TDATA,
    output logic [ 3:0] results_TKEEP,
    output logic [ 3:0] results_TSTRB,
    output logic        results_TLAST,
    output logic        results_TVALID,
    input  wire         results_TREADY
);
  localparam int unsigned AW = $clog2(DEPTH);

  logic [40:0] beats_q[DEPTH];
  logic [31:0] due_q[DEPTH];
  logic [AW:0] head_q, tail_q;
  logic [31:0] now_q;

  assign samples_TREADY = (head_q - tail_q) != (AW + 1)'(DEPTH);
  // Once due it stays so: the time of day only grows.
  assign results_TVALID = head_q != tail_q && now_q >= due_q[tail_q[AW-1:0]];
  assign {results_TLAST, results_TSTRB, results_TKEEP, results_TDATA} = beats_q[tail_q[AW-1:0]];

  always_ff @(posedge ap_clk) begin
    now_q <= now_q + 1;
    if (samples_TVALID && samples_TREADY) begin
      beats_q[head_q[AW-1:0]] <= {
        samples_TLAST, samples_TSTRB, samples_TKEEP, samples_TDATA + 32'd1
      };
      due_q[head_q[AW-1:0]] <= now_q + DELAY;
      head_q <= head_q + 1;
    end
    if (results_TVALID && results_TREADY) tail_q <= tail_q + 1;
    if (!ap_rst_n) begin
      head_q <= '0;
      tail_q <= '0;
      now_q  <= '0;
    end
  end
endmodule

`default_nettype wire
