// axi3_registers: from a general-purpose master of the Zynq-7000 PS (AXI3, 32 bits, IDs) to the
// AXI4-Lite registers of SLAVES units, each of which has 64 KB.
//
// One access at a time in each direction. A burst becomes single accesses and is answered as one,
// with its ID; a write is answered with the first answer that is no OKAY. An address of no unit is
// answered DECERR. Bursts that wrap do not come: the CPU caches no registers.
`default_nettype none

module axi3_registers #(
    parameter int unsigned                 SLAVES = 2,
    parameter logic [SLAVES-1:0][15:0]     PAGES  = {16'h4001, 16'h4000}  // address bits 31:16
) (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    // the PS
    input  wire logic                    arvalid_i,
    output logic                         arready_o,
    input  wire logic [11:0]             arid_i,
    input  wire logic [31:0]             araddr_i,
    input  wire logic [3:0]              arlen_i,
    output logic                         rvalid_o,
    input  wire logic                    rready_i,
    output logic [11:0]                  rid_o,
    output logic [31:0]                  rdata_o,
    output logic [1:0]                   rresp_o,
    output logic                         rlast_o,
    input  wire logic                    awvalid_i,
    output logic                         awready_o,
    input  wire logic [11:0]             awid_i,
    input  wire logic [31:0]             awaddr_i,
    input  wire logic                    wvalid_i,
    output logic                         wready_o,
    input  wire logic [31:0]             wdata_i,
    input  wire logic [3:0]              wstrb_i,
    input  wire logic                    wlast_i,
    output logic                         bvalid_o,
    input  wire logic                    bready_i,
    output logic [11:0]                  bid_o,
    output logic [1:0]                   bresp_o,
    // the units
    output logic [SLAVES-1:0]            lite_arvalid_o,
    input  wire logic [SLAVES-1:0]       lite_arready_i,
    output logic [15:0]                  lite_araddr_o,
    input  wire logic [SLAVES-1:0]       lite_rvalid_i,
    output logic [SLAVES-1:0]            lite_rready_o,
    input  wire logic [SLAVES-1:0][31:0] lite_rdata_i,
    input  wire logic [SLAVES-1:0][1:0]  lite_rresp_i,
    output logic [SLAVES-1:0]            lite_awvalid_o,
    input  wire logic [SLAVES-1:0]       lite_awready_i,
    output logic [15:0]                  lite_awaddr_o,
    output logic [SLAVES-1:0]            lite_wvalid_o,
    input  wire logic [SLAVES-1:0]       lite_wready_i,
    output logic [31:0]                  lite_wdata_o,
    output logic [3:0]                   lite_wstrb_o,
    input  wire logic [SLAVES-1:0]       lite_bvalid_i,
    output logic [SLAVES-1:0]            lite_bready_o,
    input  wire logic [SLAVES-1:0][1:0]  lite_bresp_i
);

  localparam logic [1:0] DECERR = 2'b11;

  function automatic logic [SLAVES-1:0] selected(input logic [15:0] page);
    for (int unsigned i = 0; i < SLAVES; ++i) selected[i] = page == PAGES[i];
  endfunction

  // Reads: the address, then for each word a question, an answer, and the answer passed on.
  typedef enum logic [1:0] {
    READ_IDLE,
    READ_ASK,
    READ_WAIT,
    READ_GIVE
  } read_t;
  read_t read_q;
  logic [SLAVES-1:0] read_of_q;
  logic [15:0] read_addr_q;
  logic [3:0] read_left_q;
  logic [31:0] answer;
  logic [1:0] answer_resp;

  always_comb begin
    answer      = '0;
    answer_resp = read_of_q == '0 ? DECERR : '0;
    for (int unsigned i = 0; i < SLAVES; ++i) begin
      answer      |= read_of_q[i] ? lite_rdata_i[i] : '0;
      answer_resp |= read_of_q[i] ? lite_rresp_i[i] : '0;
    end
  end

  assign arready_o = read_q == READ_IDLE;
  assign lite_arvalid_o = read_q == READ_ASK ? read_of_q : '0;
  assign lite_araddr_o  = read_addr_q;
  assign lite_rready_o  = read_q == READ_WAIT ? read_of_q : '0;
  assign rvalid_o  = read_q == READ_GIVE;
  assign rlast_o   = read_left_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_q <= READ_IDLE;
    end else begin
      unique case (read_q)
        READ_IDLE: if (arvalid_i) read_q <= READ_ASK;
        READ_ASK:  if ((lite_arready_i & read_of_q) == read_of_q) read_q <= READ_WAIT;
        READ_WAIT: if ((lite_rvalid_i & read_of_q) == read_of_q) read_q <= READ_GIVE;
        READ_GIVE: if (rready_i) read_q <= rlast_o ? READ_IDLE : READ_ASK;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (read_q == READ_IDLE) begin
      rid_o       <= arid_i;
      read_of_q   <= selected(araddr_i[31:16]);
      read_addr_q <= araddr_i[15:0];
      read_left_q <= arlen_i;
    end else if (rvalid_o && rready_i) begin
      read_addr_q <= read_addr_q + 16'd4;
      read_left_q <= read_left_q - 1'b1;
    end
    if (read_q == READ_WAIT) begin
      rdata_o <= answer;
      rresp_o <= answer_resp;
    end
  end

  // Writes: the address, then each word to its unit, and one answer for all.
  typedef enum logic [2:0] {
    WRITE_IDLE,
    WRITE_TAKE,
    WRITE_ASK,
    WRITE_WAIT,
    WRITE_GIVE
  } write_t;
  write_t write_q;
  logic [SLAVES-1:0] write_of_q, addr_left_q, word_left_q;
  logic [15:0] write_addr_q;
  logic last_q;
  logic [1:0] reply;

  always_comb begin
    reply = write_of_q == '0 ? DECERR : '0;
    for (int unsigned i = 0; i < SLAVES; ++i) reply |= write_of_q[i] ? lite_bresp_i[i] : '0;
  end

  assign awready_o = write_q == WRITE_IDLE;
  assign wready_o  = write_q == WRITE_TAKE;
  assign lite_awvalid_o = addr_left_q;
  assign lite_awaddr_o  = write_addr_q;
  assign lite_wvalid_o  = word_left_q;
  assign lite_bready_o  = write_q == WRITE_WAIT ? write_of_q : '0;
  assign bvalid_o  = write_q == WRITE_GIVE;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      write_q     <= WRITE_IDLE;
      addr_left_q <= '0;
      word_left_q <= '0;
    end else begin
      addr_left_q <= addr_left_q & ~lite_awready_i;
      word_left_q <= word_left_q & ~lite_wready_i;
      unique case (write_q)
        WRITE_IDLE: if (awvalid_i) write_q <= WRITE_TAKE;
        WRITE_TAKE:
        if (wvalid_i) begin
          write_q     <= WRITE_ASK;
          addr_left_q <= write_of_q;
          word_left_q <= write_of_q;
        end
        WRITE_ASK:  if (addr_left_q == '0 && word_left_q == '0) write_q <= WRITE_WAIT;
        WRITE_WAIT:
        if ((lite_bvalid_i & write_of_q) == write_of_q) write_q <= last_q ? WRITE_GIVE : WRITE_TAKE;
        WRITE_GIVE: if (bready_i) write_q <= WRITE_IDLE;
        default:    write_q <= WRITE_IDLE;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (write_q == WRITE_IDLE) begin
      bid_o        <= awid_i;
      bresp_o      <= '0;
      write_of_q   <= selected(awaddr_i[31:16]);
      write_addr_q <= awaddr_i[15:0];
    end
    if (wready_o) begin
      lite_wdata_o <= wdata_i;
      lite_wstrb_o <= wstrb_i;
      last_q  <= wlast_i;
    end
    if (write_q == WRITE_WAIT && (lite_bvalid_i & write_of_q) == write_of_q) begin
      if (bresp_o == '0) bresp_o <= reply;
      write_addr_q <= write_addr_q + 16'd4;
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      rvalid_o && !rready_i |=> rvalid_o && $stable(rdata_o) && $stable(rid_o) && $stable(rlast_o))
  else $error("axi3_registers: an answer changed before it was taken");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      lite_awvalid_o != '0 && (lite_awready_i & lite_awvalid_o) == '0 |=> $stable(lite_awvalid_o) && $stable(lite_awaddr_o))
  else $error("axi3_registers: an address changed before it was taken");
`endif

endmodule

`default_nettype wire
