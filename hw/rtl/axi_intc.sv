// axi_intc: up to 32 level interrupts onto one output, with the registers of the AXI INTC (PG099) that
// pynq uses.
//
// | offset | register |                                                                     |
// |--------|----------|---------------------------------------------------------------------|
// | 0x00   | ISR      | inputs that were high; a program may set them before MER bit 1       |
// | 0x04   | IPR      | ISR and IER                                                          |
// | 0x08   | IER      | which inputs drive the output                                        |
// | 0x0c   | IAR      | writing 1 clears a bit of ISR; one whose input is high is set again  |
// | 0x10   | SIE      | sets bits of IER                                                     |
// | 0x14   | CIE      | clears bits of IER                                                   |
// | 0x18   | IVR      | the lowest number that is pending, else all ones                     |
// | 0x1c   | MER      | 0 drives the output; 1 takes the inputs, and stays                   |
//
// Fast interrupts, software's own and edges are left out. Every access is answered OKAY.
`default_nettype none

module axi_intc #(
    parameter int unsigned INPUTS = 1
) (
    input  wire logic              clk_i,
    input  wire logic              rst_ni,
    input  wire logic [INPUTS-1:0] intr_i,
    output logic                   irq_o,
    // AXI4-Lite
    input  wire logic              awvalid_i,
    output logic                   awready_o,
    input  wire logic [4:0]        awaddr_i,
    input  wire logic              wvalid_i,
    output logic                   wready_o,
    input  wire logic [31:0]       wdata_i,
    output logic                   bvalid_o,
    input  wire logic              bready_i,
    input  wire logic              arvalid_i,
    output logic                   arready_o,
    input  wire logic [4:0]        araddr_i,
    output logic                   rvalid_o,
    input  wire logic              rready_i,
    output logic [31:0]            rdata_o
);

  localparam logic [2:0] ISR = 0, IPR = 1, IER = 2, IAR = 3, SIE = 4, CIE = 5, IVR = 6, MER = 7;

  logic [INPUTS-1:0] isr_q, ier_q;
  logic master_q, hardware_q;
  wire [INPUTS-1:0] pending = isr_q & ier_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) irq_o <= 1'b0;
    else irq_o <= master_q && pending != '0;
  end

  // Write: address and data together, then the answer.
  wire write = awvalid_i && wvalid_i && !bvalid_o;
  wire [INPUTS-1:0] bits = wdata_i[INPUTS-1:0];
  assign awready_o = write;
  assign wready_o  = write;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bvalid_o   <= 1'b0;
      isr_q      <= '0;
      ier_q      <= '0;
      master_q   <= 1'b0;
      hardware_q <= 1'b0;
    end else begin
      bvalid_o <= write || (bvalid_o && !bready_i);
      isr_q    <= isr_q | (hardware_q ? intr_i : '0);
      if (write) begin
        unique case (awaddr_i[4:2])
          ISR: if (!hardware_q) isr_q <= bits;
          IER: ier_q <= bits;
          IAR: isr_q <= isr_q & ~bits;  // an input that is high comes back in the next cycle
          SIE: ier_q <= ier_q | bits;
          CIE: ier_q <= ier_q & ~bits;
          MER: begin
            master_q   <= wdata_i[0];
            hardware_q <= hardware_q || wdata_i[1];
          end
          default: ;
        endcase
      end
    end
  end

  // Read.
  logic [31:0] vector;
  always_comb begin
    vector = '1;
    for (int i = int'(INPUTS) - 1; i >= 0; --i) if (pending[i]) vector = 32'(i);
  end
  assign arready_o = !rvalid_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) rvalid_o <= 1'b0;
    else rvalid_o <= arvalid_i || (rvalid_o && !rready_i);
  end

  always_ff @(posedge clk_i) begin
    if (arvalid_i && arready_o) begin
      unique case (araddr_i[4:2])
        ISR:     rdata_o <= 32'(isr_q);
        IPR:     rdata_o <= 32'(pending);
        IER:     rdata_o <= 32'(ier_q);
        IVR:     rdata_o <= vector;
        MER:     rdata_o <= {30'd0, hardware_q, master_q};
        default: rdata_o <= '0;
      endcase
    end
  end

  wire unused = &{1'b0, awaddr_i[1:0], araddr_i[1:0], wdata_i};

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      rvalid_o && !rready_i |=> rvalid_o && $stable(rdata_o))
  else $error("axi_intc: an answer changed before it was taken");
`endif

endmodule

`default_nettype wire
