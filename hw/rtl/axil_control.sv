// axil_control: the AXI4-Lite register file of a Vitis HLS kernel (ap_ctrl_hs; UG1399, "S_AXILITE
// Control Register Map").
//
// | offset | register | bits                                                                        |
// |--------|----------|-----------------------------------------------------------------------------|
// | 0x00   | AP_CTRL  | 0 start, 1 done (cleared by reading), 2 idle, 3 ready (cleared by reading), |
// |        |          | 7 auto-restart, 9 interrupt                                                 |
// | 0x04   | GIE      | 0 drives the interrupt output                                               |
// | 0x08   | IER      | 0 done, 1 ready                                                             |
// | 0x0c   | ISR      | 0 done, 1 ready; writing 1 toggles                                          |
// | 0x10   | word 0   | arguments: word i is at 0x10 + 4 i                                          |
//
// INPUTS and OUTPUTS have a bit a word: inputs are written by the processor and given to the kernel
// in regs_o, outputs are taken from values_i when the kernel is done; a word that is neither is a
// hole and reads 0. Every access is answered OKAY, as HLS does.
`default_nettype none

module axil_control #(
    parameter int unsigned        ADDR_WIDTH = 6,   // bits of a byte address
    parameter int unsigned        WORDS      = 10,  // from 0x10 on, holes included
    parameter logic [WORDS-1:0]   INPUTS     = '1,
    parameter logic [WORDS-1:0]   OUTPUTS    = '0
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    // AXI4-Lite
    input  wire logic                  awvalid_i,
    output logic                       awready_o,
    input  wire logic [ADDR_WIDTH-1:0] awaddr_i,
    input  wire logic                  wvalid_i,
    output logic                       wready_o,
    input  wire logic [31:0]           wdata_i,
    input  wire logic [3:0]            wstrb_i,
    output logic                       bvalid_o,
    input  wire logic                  bready_i,
    output logic [1:0]                 bresp_o,
    input  wire logic                  arvalid_i,
    output logic                       arready_o,
    input  wire logic [ADDR_WIDTH-1:0] araddr_i,
    output logic                       rvalid_o,
    input  wire logic                  rready_i,
    output logic [31:0]                rdata_o,
    output logic [1:0]                 rresp_o,
    // the kernel's side
    output logic [32*WORDS-1:0]        regs_o,      // word i in bits 32 i + 31 : 32 i
    input  wire logic [32*WORDS-1:0]   values_i,
    output logic                       ap_start_o,  // high until ap_ready_i
    input  wire logic                  ap_done_i,
    input  wire logic                  ap_idle_i,
    input  wire logic                  ap_ready_i,
    output logic                       interrupt_o
);

  localparam int unsigned INDEX_BITS = ADDR_WIDTH - 2;
  localparam logic [INDEX_BITS-1:0] AP_CTRL = INDEX_BITS'(0);
  localparam logic [INDEX_BITS-1:0] GIE = INDEX_BITS'(1);
  localparam logic [INDEX_BITS-1:0] IER = INDEX_BITS'(2);
  localparam logic [INDEX_BITS-1:0] ISR = INDEX_BITS'(3);
  localparam int unsigned FIRST = 4;  // index of word 0

  // Write: the address first, then the data, then the answer.
  logic addressed_q;
  logic [INDEX_BITS-1:0] write_index_q;
  wire write = wvalid_i && wready_o;

  assign awready_o = !addressed_q && !bvalid_o;
  assign wready_o  = addressed_q;
  assign bresp_o   = 2'b00;
  assign rresp_o   = 2'b00;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      addressed_q   <= 1'b0;
      write_index_q <= '0;
      bvalid_o      <= 1'b0;
    end else begin
      if (awvalid_i && awready_o) begin
        addressed_q   <= 1'b1;
        write_index_q <= awaddr_i[ADDR_WIDTH-1:2];
      end
      if (write) begin
        addressed_q <= 1'b0;
        bvalid_o    <= 1'b1;
      end else if (bready_i) begin
        bvalid_o <= 1'b0;
      end
    end
  end

  // Control registers.
  logic done_q, ready_q, idle_q, auto_q, gie_q;
  logic [1:0] ier_q, isr_q;
  wire read = arvalid_i && arready_o;
  wire [INDEX_BITS-1:0] read_index = araddr_i[ADDR_WIDTH-1:2];
  wire write_low = write && wstrb_i[0];
  wire read_ctrl = read && read_index == AP_CTRL;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ap_start_o  <= 1'b0;
      done_q      <= 1'b0;
      ready_q     <= 1'b0;
      idle_q      <= 1'b1;
      auto_q      <= 1'b0;
      gie_q       <= 1'b0;
      ier_q       <= '0;
      isr_q       <= '0;
      interrupt_o <= 1'b0;
    end else begin
      if (ap_ready_i) ap_start_o <= auto_q;
      if (read_ctrl) begin
        done_q  <= 1'b0;
        ready_q <= 1'b0;
      end
      if (ap_done_i) done_q <= 1'b1;
      if (ap_ready_i && !auto_q) ready_q <= 1'b1;
      idle_q <= ap_idle_i;
      if (write_low) begin
        case (write_index_q)
          AP_CTRL: begin
            if (wdata_i[0]) ap_start_o <= 1'b1;
            auto_q <= wdata_i[7];
          end
          GIE:     gie_q <= wdata_i[0];
          IER:     ier_q <= wdata_i[1:0];
          ISR:     isr_q <= isr_q ^ wdata_i[1:0];
          default: ;
        endcase
      end
      if (ap_done_i && ier_q[0]) isr_q[0] <= 1'b1;
      if (ap_ready_i && ier_q[1]) isr_q[1] <= 1'b1;
      interrupt_o <= gie_q && isr_q != '0;
    end
  end

  // Arguments.
  logic [32*WORDS-1:0] stored;
  for (genvar i = 0; i < WORDS; ++i) begin : gen_word
    if (INPUTS[i]) begin : gen_input
      logic [31:0] word_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
          word_q <= '0;
        end else if (write && write_index_q == INDEX_BITS'(FIRST + i)) begin
          for (int unsigned lane = 0; lane < 4; ++lane) begin
            if (wstrb_i[lane]) word_q[8*lane+:8] <= wdata_i[8*lane+:8];
          end
        end
      end
      assign stored[32*i+:32] = word_q;
      assign regs_o[32*i+:32] = word_q;
    end else if (OUTPUTS[i]) begin : gen_output
      logic [31:0] word_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) word_q <= '0;
        else if (ap_done_i) word_q <= values_i[32*i+:32];
      end
      assign stored[32*i+:32] = word_q;
      assign regs_o[32*i+:32] = '0;
    end else begin : gen_hole
      assign stored[32*i+:32] = '0;
      assign regs_o[32*i+:32] = '0;
    end
  end

  // Read.
  assign arready_o = !rvalid_o;

  always_ff @(posedge clk_i) begin
    if (read) begin
      rdata_o <= '0;
      case (read_index)
        AP_CTRL: begin
          rdata_o[0] <= ap_start_o;
          rdata_o[1] <= done_q;
          rdata_o[2] <= idle_q;
          rdata_o[3] <= ready_q;
          rdata_o[7] <= auto_q;
          rdata_o[9] <= interrupt_o;
        end
        GIE: rdata_o[0] <= gie_q;
        IER: rdata_o[1:0] <= ier_q;
        ISR: rdata_o[1:0] <= isr_q;
        default: begin
          for (int unsigned i = 0; i < WORDS; ++i) begin
            if (read_index == INDEX_BITS'(FIRST + i)) rdata_o <= stored[32*i+:32];
          end
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) rvalid_o <= 1'b0;
    else if (read) rvalid_o <= 1'b1;
    else if (rready_i) rvalid_o <= 1'b0;
  end

  // Byte addresses end in lanes that a word has no use for; not every design has outputs.
  wire unused = &{1'b0, awaddr_i[1:0], araddr_i[1:0], values_i};

`ifndef SYNTHESIS
  initial assert (4 * (FIRST + WORDS) <= 2 ** ADDR_WIDTH && (INPUTS & OUTPUTS) == '0)
  else $fatal(1, "axil_control: %0d words need more than %0d address bits, or one is both input and output",
              WORDS, ADDR_WIDTH);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      rvalid_o && !rready_i |=> rvalid_o && $stable(rdata_o))
  else $error("axil_control: the answer to a read changed before it was taken");
  assert property (@(posedge clk_i) disable iff (!rst_ni) bvalid_o && !bready_i |=> bvalid_o)
  else $error("axil_control: the answer to a write was withdrawn");
`endif

endmodule

`default_nettype wire
