// axi3_memory: the AXI4 masters of kernels on one high-performance port of the Zynq-7000 PS (AXI3, 64
// bits, bursts of at most 16).
//
// Requests take turns; answers go back by their ID, the number of the master, in any order that the
// port likes. Words to write follow their addresses, which is the order without interleaving that
// AXI3 asks for where WID is the ID of the address. A master of 32 bits makes narrow bursts: its words
// change between the halves of the port. Addresses have 32 bits, bursts are INCR, of whole words.
`default_nettype none

module axi3_memory #(
    parameter int unsigned        MASTERS     = 2,
    parameter logic [MASTERS-1:0] NARROW      = '1,  // masters of 32 bits; the others have 64
    parameter int unsigned        OUTSTANDING = 16   // bursts of all writers, and of each narrow reader
) (
    input  wire logic                     clk_i,
    input  wire logic                     rst_ni,
    // the masters; a narrow one has the lower half of a word
    input  wire logic [MASTERS-1:0]       arvalid_i,
    output logic [MASTERS-1:0]            arready_o,
    input  wire logic [MASTERS-1:0][31:0] araddr_i,
    input  wire logic [MASTERS-1:0][7:0]  arlen_i,
    output logic [MASTERS-1:0]            rvalid_o,
    input  wire logic [MASTERS-1:0]       rready_i,
    output logic [MASTERS-1:0][63:0]      rdata_o,
    output logic [1:0]                    rresp_o,
    output logic                          rlast_o,
    input  wire logic [MASTERS-1:0]       awvalid_i,
    output logic [MASTERS-1:0]            awready_o,
    input  wire logic [MASTERS-1:0][31:0] awaddr_i,
    input  wire logic [MASTERS-1:0][7:0]  awlen_i,
    input  wire logic [MASTERS-1:0]       wvalid_i,
    output logic [MASTERS-1:0]            wready_o,
    input  wire logic [MASTERS-1:0][63:0] wdata_i,
    input  wire logic [MASTERS-1:0][7:0]  wstrb_i,
    input  wire logic [MASTERS-1:0]       wlast_i,
    output logic [MASTERS-1:0]            bvalid_o,
    input  wire logic [MASTERS-1:0]       bready_i,
    output logic [1:0]                    bresp_o,
    // the port
    output logic                          ps_arvalid_o,
    input  wire logic                     ps_arready_i,
    output logic [5:0]                    ps_arid_o,
    output logic [31:0]                   ps_araddr_o,
    output logic [3:0]                    ps_arlen_o,
    output logic [1:0]                    ps_arsize_o,
    input  wire logic                     ps_rvalid_i,
    output logic                          ps_rready_o,
    input  wire logic [5:0]               ps_rid_i,
    input  wire logic [63:0]              ps_rdata_i,
    input  wire logic [1:0]               ps_rresp_i,
    input  wire logic                     ps_rlast_i,
    output logic                          ps_awvalid_o,
    input  wire logic                     ps_awready_i,
    output logic [5:0]                    ps_awid_o,
    output logic [31:0]                   ps_awaddr_o,
    output logic [3:0]                    ps_awlen_o,
    output logic [1:0]                    ps_awsize_o,
    output logic                          ps_wvalid_o,
    input  wire logic                     ps_wready_i,
    output logic [5:0]                    ps_wid_o,
    output logic [63:0]                   ps_wdata_o,
    output logic [7:0]                    ps_wstrb_o,
    output logic                          ps_wlast_o,
    input  wire logic                     ps_bvalid_i,
    output logic                          ps_bready_o,
    input  wire logic [5:0]               ps_bid_i,
    input  wire logic [1:0]               ps_bresp_i
);

  localparam int unsigned REQUEST_BITS = 6 + 32 + 4 + 2;

  // The next master in turn that asks; MASTERS of them, the last one served comes last.
  function automatic logic [MASTERS-1:0] next(input logic [MASTERS-1:0] asking, input logic [5:0] last);
    logic found;
    next  = '0;
    found = 1'b0;
    for (int unsigned step = 1; step <= MASTERS; ++step) begin
      for (int unsigned i = 0; i < MASTERS; ++i) begin
        if (i == (32'(last) + step) % MASTERS && asking[i] && !found) begin
          next[i] = 1'b1;
          found   = 1'b1;
        end
      end
    end
  endfunction

  function automatic logic [5:0] number(input logic [MASTERS-1:0] chosen);
    number = '0;
    for (int unsigned i = 0; i < MASTERS; ++i) number |= chosen[i] ? 6'(i) : '0;
  endfunction

  function automatic logic [REQUEST_BITS-1:0] request(
      input logic [MASTERS-1:0] chosen, input logic [MASTERS-1:0][31:0] addr,
      input logic [MASTERS-1:0][7:0] len);
    request = '0;
    for (int unsigned i = 0; i < MASTERS; ++i) begin
      request |= chosen[i] ? {6'(i), addr[i], len[i][3:0], NARROW[i] ? 2'd2 : 2'd3} : '0;
    end
  endfunction

  // Reads.
  logic ar_ready;
  logic [5:0] ar_last_q;
  logic [MASTERS-1:0] half_ready, half;  // in which half of the port a burst begins
  wire [MASTERS-1:0] ar_chosen = next(arvalid_i & half_ready, ar_last_q);

  assign arready_o = ar_ready ? ar_chosen : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ar_last_q <= '0;
    else if (arready_o != '0) ar_last_q <= number(ar_chosen);
  end

  skid #(
      .WIDTH(REQUEST_BITS)
  ) ar_skid (
      .clk_i,
      .rst_ni,
      .valid_i(ar_chosen != '0),
      .ready_o(ar_ready),
      .data_i (request(ar_chosen, araddr_i, arlen_i)),
      .valid_o(ps_arvalid_o),
      .ready_i(ps_arready_i),
      .data_o ({ps_arid_o, ps_araddr_o, ps_arlen_o, ps_arsize_o})
  );

  logic [MASTERS-1:0] rvalid, odd_q;
  assign rvalid_o    = rvalid;
  assign rresp_o     = ps_rresp_i;
  assign rlast_o     = ps_rlast_i;
  assign ps_rready_o = (rvalid & rready_i) != '0;

  for (genvar m = 0; m < MASTERS; ++m) begin : gen_reader
    assign rvalid[m] = ps_rvalid_i && ps_rid_i == 6'(m);
    if (NARROW[m]) begin : gen_narrow
      logic half_valid;
      logic [$clog2(OUTSTANDING + 1)-1:0] halves_count;
      wire upper = half[m] ^ odd_q[m];
      assign rdata_o[m] = {32'd0, upper ? ps_rdata_i[63:32] : ps_rdata_i[31:0]};
      fifo #(
          .WIDTH(1),
          .DEPTH(OUTSTANDING)
      ) halves (
          .clk_i,
          .rst_ni,
          .valid_i(arready_o[m]),
          .ready_o(half_ready[m]),
          .data_i (araddr_i[m][2]),
          .valid_o(half_valid),
          .ready_i(rvalid[m] && rready_i[m] && ps_rlast_i),
          .data_o (half[m]),
          .count_o(halves_count)
      );
      wire unused = &{1'b0, half_valid, halves_count};
      always_ff @(posedge clk_i) begin
        if (!rst_ni) odd_q[m] <= 1'b0;
        else if (rvalid[m] && rready_i[m]) odd_q[m] <= !ps_rlast_i && !odd_q[m];
      end
    end else begin : gen_wide
      assign rdata_o[m]    = ps_rdata_i;
      assign half_ready[m] = 1'b1;
      assign half[m]       = 1'b0;
      assign odd_q[m]      = 1'b0;
    end
  end

  // Writes: an address leaves when the order of the words has room for it.
  logic aw_ready, aw_valid, order_ready, order_valid;
  logic [5:0] aw_last_q;
  logic [$clog2(OUTSTANDING + 1)-1:0] order_count;
  logic order_half, word_odd_q;
  wire [MASTERS-1:0] aw_chosen = next(awvalid_i, aw_last_q);

  assign awready_o = aw_ready ? aw_chosen : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) aw_last_q <= '0;
    else if (awready_o != '0) aw_last_q <= number(aw_chosen);
  end

  skid #(
      .WIDTH(REQUEST_BITS)
  ) aw_skid (
      .clk_i,
      .rst_ni,
      .valid_i(aw_chosen != '0),
      .ready_o(aw_ready),
      .data_i (request(aw_chosen, awaddr_i, awlen_i)),
      .valid_o(aw_valid),
      .ready_i(ps_awready_i && order_ready),
      .data_o ({ps_awid_o, ps_awaddr_o, ps_awlen_o, ps_awsize_o})
  );

  assign ps_awvalid_o = aw_valid && order_ready;

  fifo #(
      .WIDTH(7),
      .DEPTH(OUTSTANDING)
  ) order (
      .clk_i,
      .rst_ni,
      .valid_i(aw_valid && ps_awready_i),
      .ready_o(order_ready),
      .data_i ({ps_awid_o, ps_awaddr_o[2]}),
      .valid_o(order_valid),
      .ready_i(ps_wvalid_o && ps_wready_i && ps_wlast_o),
      .data_o ({ps_wid_o, order_half}),
      .count_o(order_count)
  );

  logic narrow_word;
  logic [63:0] word;
  logic [7:0] strobes;
  wire word_upper = order_half ^ word_odd_q;

  always_comb begin
    ps_wvalid_o = 1'b0;
    ps_wlast_o  = 1'b0;
    narrow_word = 1'b0;
    word        = '0;
    strobes     = '0;
    for (int unsigned i = 0; i < MASTERS; ++i) begin
      wready_o[i] = order_valid && ps_wid_o == 6'(i) && ps_wready_i;
      if (order_valid && ps_wid_o == 6'(i)) begin
        ps_wvalid_o = wvalid_i[i];
        ps_wlast_o  = wlast_i[i];
        narrow_word = NARROW[i];
        word        = wdata_i[i];
        strobes     = wstrb_i[i];
      end
    end
  end

  assign ps_wdata_o = narrow_word ? {word[31:0], word[31:0]} : word;
  assign ps_wstrb_o = !narrow_word ? strobes : word_upper ? {strobes[3:0], 4'd0} : {4'd0, strobes[3:0]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) word_odd_q <= 1'b0;
    else if (ps_wvalid_o && ps_wready_i) word_odd_q <= !ps_wlast_o && !word_odd_q;
  end

  for (genvar m = 0; m < MASTERS; ++m) begin : gen_writer
    assign bvalid_o[m] = ps_bvalid_i && ps_bid_i == 6'(m);
  end
  assign bresp_o     = ps_bresp_i;
  assign ps_bready_o = (bvalid_o & bready_i) != '0;

  wire unused = &{1'b0, order_count, arlen_i, awlen_i};

`ifndef SYNTHESIS
  for (genvar m = 0; m < MASTERS; ++m) begin : gen_checks
    assert property (@(posedge clk_i) disable iff (!rst_ni) arvalid_i[m] |-> arlen_i[m] < 16)
    else $error("axi3_memory: master %0d reads a burst of %0d words", m, 32'(arlen_i[m]) + 1);
    assert property (@(posedge clk_i) disable iff (!rst_ni) awvalid_i[m] |-> awlen_i[m] < 16)
    else $error("axi3_memory: master %0d writes a burst of %0d words", m, 32'(awlen_i[m]) + 1);
  end
  assert property (@(posedge clk_i) disable iff (!rst_ni) ps_wvalid_o && !ps_wready_i |=>
      ps_wvalid_o && $stable(ps_wdata_o) && $stable(ps_wstrb_o) && $stable(ps_wlast_o))
  else $error("axi3_memory: a word that was not taken yet has changed");
`endif

endmodule

`default_nettype wire
