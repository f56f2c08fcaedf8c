// Adds one to every beat of a packet. The register `mode` (0x10) chooses how it asks for a beat;
// AXI allows all of it.
//
// | mode | TREADY                                                                          |
// |------|---------------------------------------------------------------------------------|
// | 0    | high whenever there is room                                                     |
// | 1    | every other cycle                                                               |
// | 2    | only after TVALID                                                               |
// | 3    | every other cycle, by a counter that runs on                                    |
// | 4    | only after TVALID, and first it computes without touching a port                |
// | 5    | high all the time, while it computes before the last result as well             |
// | 6    | as 0; it is done with the last beat, and computes the last result after that    |
//
// It computes for as many cycles as the register `cycles` (0x18) says.
`default_nettype none

module hesitant (
    input  wire         ap_clk,
    input  wire         ap_rst_n,

    input  wire  [ 5:0] s_axi_control_AWADDR,
    input  wire         s_axi_control_AWVALID,
    output logic        s_axi_control_AWREADY,
    input  wire  [31:0] s_axi_control_WDATA,
    input  wire  [ 3:0] s_axi_control_WSTRB,
    input  wire         s_axi_control_WVALID,
    output logic        s_axi_control_WREADY,
    output logic [ 1:0] s_axi_control_BRESP,
    output logic        s_axi_control_BVALID,
    input  wire         s_axi_control_BREADY,
    input  wire  [ 5:0] s_axi_control_ARADDR,
    input  wire         s_axi_control_ARVALID,
    output logic        s_axi_control_ARREADY,
    output logic [31:0] s_axi_control_RDATA,
    output logic [ 1:0] s_axi_control_RRESP,
    output logic        s_axi_control_RVALID,
    input  wire         s_axi_control_RREADY,

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

  localparam logic [2:0] EAGER = 0, TOGGLES = 1, LATE = 2, COUNTS = 3, COMPUTES = 4;
  localparam logic [2:0] BROODS = 5, BELATED = 6;

  typedef enum logic [1:0] {IDLE, THINK, TAKE, DRAIN} state_t;

  state_t state_q;
  logic [2:0] mode_q;
  logic [31:0] counter_q, thought_q, kept_q, cycles_q;
  logic phase_q, late_q, done_q;

  logic ap_start;
  wire ap_idle = state_q == IDLE && !ap_start;
  wire ap_done = state_q == DRAIN && (mode_q == BELATED || (results_TVALID && results_TREADY));
  wire ap_ready = ap_done;

  // ---- registers -------------------------------------------------------------------------------

  wire write_now = s_axi_control_AWVALID && s_axi_control_WVALID && !s_axi_control_BVALID;
  wire read_now = s_axi_control_ARVALID && !s_axi_control_RVALID;

  assign s_axi_control_AWREADY = write_now;
  assign s_axi_control_WREADY = write_now;
  assign s_axi_control_ARREADY = read_now;
  assign s_axi_control_BRESP = 2'b00;
  assign s_axi_control_RRESP = 2'b00;

  always_ff @(posedge ap_clk) begin
    if (ap_ready) ap_start <= 1'b0;
    if (write_now) begin
      s_axi_control_BVALID <= 1'b1;
      if (s_axi_control_AWADDR == 6'h00 && s_axi_control_WDATA[0]) ap_start <= 1'b1;
      if (s_axi_control_AWADDR == 6'h10) mode_q <= s_axi_control_WDATA[2:0];
      if (s_axi_control_AWADDR == 6'h18) cycles_q <= s_axi_control_WDATA;
    end else if (s_axi_control_BREADY) begin
      s_axi_control_BVALID <= 1'b0;
    end
    if (read_now) begin
      s_axi_control_RVALID <= 1'b1;
      s_axi_control_RDATA <= '0;
      if (s_axi_control_ARADDR == 6'h00) begin
        s_axi_control_RDATA <= {28'd0, 1'b0, ap_idle, done_q, ap_start};
        done_q <= 1'b0;
      end
      if (s_axi_control_ARADDR == 6'h10) s_axi_control_RDATA <= 32'(mode_q);
    end else if (s_axi_control_RREADY) begin
      s_axi_control_RVALID <= 1'b0;
    end
    if (ap_done) done_q <= 1'b1;
    if (!ap_rst_n) begin
      s_axi_control_BVALID <= 1'b0;
      s_axi_control_RVALID <= 1'b0;
      ap_start <= 1'b0;
      done_q <= 1'b0;
      mode_q <= EAGER;
      cycles_q <= '0;
    end
  end

  // ---- the packet ------------------------------------------------------------------------------

  // The last result may be kept back.
  wire broods = mode_q == BROODS && state_q == DRAIN && thought_q != cycles_q;
  logic full_q;
  wire belated = mode_q == BELATED && full_q && results_TLAST && kept_q != cycles_q;
  assign results_TVALID = full_q && !broods && !belated;
  wire room = !full_q || (results_TVALID && results_TREADY);
  wire taken = samples_TVALID && samples_TREADY;
  logic asks;

  always_comb begin
    case (mode_q)
      TOGGLES: asks = phase_q;
      LATE, COMPUTES: asks = late_q;
      COUNTS: asks = counter_q[0];
      default: asks = 1'b1;
    endcase
  end
  assign samples_TREADY = (state_q == TAKE && room && asks) || broods;

  always_ff @(posedge ap_clk) begin
    phase_q <= !phase_q;
    late_q <= samples_TVALID && !taken;
    if (mode_q == COUNTS) counter_q <= counter_q + 1;
    if (room) full_q <= taken;
    kept_q <= taken ? '0 : kept_q + 32'(belated);
    if (taken) begin
      results_TDATA <= samples_TDATA + 32'd1;
      results_TKEEP <= samples_TKEEP;
      results_TSTRB <= samples_TSTRB;
      results_TLAST <= samples_TLAST;
    end
    case (state_q)
      IDLE: begin
        thought_q <= '0;
        if (ap_start) state_q <= mode_q == COMPUTES ? THINK : TAKE;
      end
      THINK: begin
        thought_q <= thought_q + 1;
        if (thought_q == cycles_q) begin
          state_q <= TAKE;
          thought_q <= '0;
        end
      end
      TAKE: if (taken && samples_TLAST) state_q <= DRAIN;
      default: begin
        if (broods) thought_q <= thought_q + 1;
        if (ap_done) state_q <= IDLE;
      end
    endcase
    if (!ap_rst_n) begin
      state_q <= IDLE;
      phase_q <= 1'b0;
      late_q <= 1'b0;
      counter_q <= '0;
      full_q <= 1'b0;
    end
  end

  wire unused = &{1'b0, s_axi_control_WSTRB};

endmodule

`default_nettype wire
