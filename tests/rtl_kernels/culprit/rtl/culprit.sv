// Copies a word from `source` to `target`; the register `sin` chooses how not to.
//
// Register 0x30 answers reads with SLVERR, 0x34 does not answer them.
`default_nettype none

module culprit (
    input  wire         ap_clk,
    input  wire         ap_rst_n,
    output logic        interrupt,

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

    output logic [63:0] m_axi_gmem_ARADDR,
    output logic [ 7:0] m_axi_gmem_ARLEN,
    output logic [ 2:0] m_axi_gmem_ARSIZE,
    output logic [ 1:0] m_axi_gmem_ARBURST,
    output logic        m_axi_gmem_ARVALID,
    input  wire         m_axi_gmem_ARREADY,
    input  wire  [31:0] m_axi_gmem_RDATA,
    input  wire  [ 1:0] m_axi_gmem_RRESP,
    input  wire         m_axi_gmem_RLAST,
    input  wire         m_axi_gmem_RVALID,
    output logic        m_axi_gmem_RREADY,
    output logic [63:0] m_axi_gmem_AWADDR,
    output logic [ 7:0] m_axi_gmem_AWLEN,
    output logic [ 2:0] m_axi_gmem_AWSIZE,
    output logic [ 1:0] m_axi_gmem_AWBURST,
    output logic        m_axi_gmem_AWVALID,
    input  wire         m_axi_gmem_AWREADY,
    output logic [31:0] m_axi_gmem_WDATA,
    output logic [ 3:0] m_axi_gmem_WSTRB,
    output logic        m_axi_gmem_WLAST,
    output logic        m_axi_gmem_WVALID,
    input  wire         m_axi_gmem_WREADY,
    input  wire  [ 1:0] m_axi_gmem_BRESP,
    input  wire         m_axi_gmem_BVALID,
    output logic        m_axi_gmem_BREADY
);

  localparam logic [31:0] NONE = 0, WLAST_EARLY = 1, VALID_DROPPED = 2, CROSSES_4K = 3;
  localparam logic [31:0] DATA_CHANGES = 4, NEVER_DONE = 5, GIVES_UP = 6, TOO_WIDE = 7;
  localparam logic [31:0] HANGS_ON_READ = 8, RECURSES = 9;

  typedef enum logic [2:0] {IDLE, ADDRESS, READ, WRITE, RESPONSE, DONE} state_t;

  state_t state_q;
  logic [63:0] source_q, target_q;
  logic [31:0] sin_q, word_q, counter_q;
  logic done_q, aw_done_q, w_done_q;

  // Calls itself until the simulator's stack is full.
  function automatic logic [31:0] endless(input logic [31:0] n);
    return n == 0 ? 0 : n ^ (3 * endless(n - 1));
  endfunction

  // By the names of HLS, from which the board counts a run's cycles.
  logic ap_start;
  wire ap_idle = state_q == IDLE;
  wire ap_done = state_q == DONE;
  wire ap_ready = ap_done;

  // ---- registers -------------------------------------------------------------------------------

  wire write_now = s_axi_control_AWVALID && s_axi_control_WVALID && !s_axi_control_BVALID;
  wire read_now = s_axi_control_ARVALID && !s_axi_control_RVALID;
  wire start = write_now && s_axi_control_AWADDR == 6'h00 && s_axi_control_WDATA[0];

  assign s_axi_control_AWREADY = write_now;
  assign s_axi_control_WREADY = write_now;
  assign s_axi_control_ARREADY = read_now;
  assign s_axi_control_BRESP = 2'b00;
  assign interrupt = 1'b0;

  always_ff @(posedge ap_clk) begin
    if (write_now) begin
      s_axi_control_BVALID <= 1'b1;
      unique case (s_axi_control_AWADDR)
        6'h10: source_q[31:0] <= s_axi_control_WDATA;
        6'h14: source_q[63:32] <= s_axi_control_WDATA;
        6'h1c: target_q[31:0] <= s_axi_control_WDATA;
        6'h20: target_q[63:32] <= s_axi_control_WDATA;
        6'h28: sin_q <= s_axi_control_WDATA;
        default: ;
      endcase
    end else if (s_axi_control_BREADY) begin
      s_axi_control_BVALID <= 1'b0;
    end

    if (read_now) begin
      s_axi_control_RVALID <= s_axi_control_ARADDR != 6'h34;
      s_axi_control_RRESP <= s_axi_control_ARADDR == 6'h30 ? 2'b10 : 2'b00;
      unique case (s_axi_control_ARADDR)
        6'h00: s_axi_control_RDATA <= {29'd0, ap_idle, done_q, ap_start};
        6'h10: s_axi_control_RDATA <= source_q[31:0];
        6'h1c: s_axi_control_RDATA <= target_q[31:0];
        6'h28: s_axi_control_RDATA <= sin_q;
        default: s_axi_control_RDATA <= 32'd0;
      endcase
    end else if (s_axi_control_RREADY) begin
      s_axi_control_RVALID <= 1'b0;
    end

    if (!ap_rst_n) begin
      s_axi_control_BVALID <= 1'b0;
      s_axi_control_RVALID <= 1'b0;
      source_q <= 64'd0;
      target_q <= 64'd0;
      sin_q <= NONE;
    end
  end

  // ---- the copy --------------------------------------------------------------------------------

  assign m_axi_gmem_ARSIZE = sin_q == TOO_WIDE ? 3'd3 : 3'd2;
  assign m_axi_gmem_ARBURST = 2'b01;
  assign m_axi_gmem_AWSIZE = 3'd2;
  assign m_axi_gmem_AWBURST = 2'b01;
  assign m_axi_gmem_AWADDR = target_q;
  assign m_axi_gmem_WSTRB = 4'hf;
  assign m_axi_gmem_BREADY = 1'b1;
  assign m_axi_gmem_AWLEN = sin_q == WLAST_EARLY ? 8'd3 : 8'd0;

  always_comb begin
    m_axi_gmem_ARADDR = source_q;
    m_axi_gmem_ARLEN = 8'd0;
    m_axi_gmem_ARVALID = state_q == ADDRESS;
    m_axi_gmem_RREADY = 1'b1;
    m_axi_gmem_AWVALID = state_q == WRITE && !aw_done_q;
    m_axi_gmem_WVALID = state_q == WRITE && !w_done_q;
    m_axi_gmem_WDATA = word_q;
    m_axi_gmem_WLAST = 1'b1;
    if (sin_q == CROSSES_4K) begin
      m_axi_gmem_ARADDR = {source_q[63:12], 12'hffc};
      m_axi_gmem_ARLEN = 8'd1;
    end
    if (sin_q == VALID_DROPPED && state_q != IDLE) begin
      m_axi_gmem_ARVALID = counter_q[0];  // whether it was taken or not
      m_axi_gmem_ARLEN = 8'd255;
      m_axi_gmem_RREADY = 1'b0;
    end
    if (sin_q == HANGS_ON_READ) m_axi_gmem_RREADY = 1'b0;
    if (sin_q == DATA_CHANGES) begin
      m_axi_gmem_AWVALID = 1'b0;
      m_axi_gmem_WDATA = counter_q;
      m_axi_gmem_WVALID = state_q == WRITE;
    end
    if (sin_q == WLAST_EARLY) begin
      m_axi_gmem_WVALID = state_q == WRITE && aw_done_q;
      m_axi_gmem_WLAST = counter_q[1];
    end
  end

  always_ff @(posedge ap_clk) begin
    counter_q <= counter_q + 32'd1;
    if (read_now && s_axi_control_ARADDR == 6'h00) done_q <= 1'b0;
    if (start) ap_start <= 1'b1;
    else if (ap_ready) ap_start <= 1'b0;
    unique case (state_q)
      IDLE: begin
        aw_done_q <= 1'b0;
        w_done_q <= 1'b0;
        counter_q <= 32'd0;
        if (ap_start) state_q <= ADDRESS;
      end
      ADDRESS: begin
        if (sin_q == GIVES_UP) $fatal(1, "culprit gives up");
        if (sin_q == RECURSES) word_q <= endless(32'hffff_ffff);
        if (m_axi_gmem_ARREADY && sin_q != VALID_DROPPED) state_q <= READ;
      end
      READ:
      if (m_axi_gmem_RVALID && m_axi_gmem_RREADY && m_axi_gmem_RLAST) begin
        word_q <= m_axi_gmem_RDATA;
        counter_q <= 32'd0;
        state_q <= WRITE;
      end
      WRITE: begin
        if (m_axi_gmem_AWVALID && m_axi_gmem_AWREADY) aw_done_q <= 1'b1;
        if (m_axi_gmem_WVALID && m_axi_gmem_WREADY) w_done_q <= 1'b1;
        if (aw_done_q && w_done_q) state_q <= RESPONSE;
      end
      RESPONSE: if (sin_q != NEVER_DONE) state_q <= DONE;
      DONE: begin
        done_q <= 1'b1;
        state_q <= IDLE;
      end
      default: state_q <= IDLE;
    endcase
    if (!ap_rst_n) begin
      state_q <= IDLE;
      ap_start <= 1'b0;
      done_q <= 1'b0;
      counter_q <= 32'd0;
    end
  end

  // What a design may well ignore.
  wire unused = &{1'b0, s_axi_control_WSTRB, m_axi_gmem_RRESP, m_axi_gmem_BRESP, m_axi_gmem_BVALID};

endmodule

`default_nettype wire
