// axil_control_proof: `axil_control` gives one answer for each access and never two at a time, keeps an
// answer until it is taken, holds AP_START until ap_ready (and for good with auto_restart) and AP_DONE
// until it is read, interrupts for what is enabled, and gives back what was written, each word its own;
// a word that the kernel gives reads as it was when the kernel was done.
`default_nettype none

module axil_control_proof #(
    parameter int unsigned ADDR_WIDTH = 6,
    parameter int unsigned WORDS      = 4  // two inputs, a hole, an output
) (
    input wire logic                  clk_i,
    input wire logic                  rst_ni,
    input wire logic                  awvalid_i,
    input wire logic [ADDR_WIDTH-1:0] awaddr_i,
    input wire logic                  wvalid_i,
    input wire logic [31:0]           wdata_i,
    input wire logic [3:0]            wstrb_i,
    input wire logic                  bready_i,
    input wire logic                  arvalid_i,
    input wire logic [ADDR_WIDTH-1:0] araddr_i,
    input wire logic                  rready_i,
    input wire logic [32*WORDS-1:0]   values_i,
    input wire logic                  ap_done_i,
    input wire logic                  ap_idle_i,
    input wire logic                  ap_ready_i,
    input wire logic                  which_i  // any of the inputs, always the same
);

  logic awready_o, wready_o, bvalid_o, arready_o, rvalid_o, ap_start_o, interrupt_o;
  logic [1:0] bresp_o, rresp_o;
  logic [31:0] rdata_o;
  logic [32*WORDS-1:0] regs_o;

  axil_control #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .WORDS(WORDS),
      .INPUTS(WORDS'(4'b0011)),
      .OUTPUTS(WORDS'(4'b1000))
  ) dut (
      .*
  );

  logic which_q;
  always_ff @(posedge clk_i) which_q <= which_i;
  always_comb assume (which_i == which_q);

  // Accesses without an answer; a write has an address and data, which come one after the other.
  logic live_q = 1'b0;  // there was a reset
  logic [3:0] reads_q, addresses_q, writes_q;
  logic [ADDR_WIDTH-1:0] address_q, read_address_q;
  logic [31:0] word_q, rdata_q;  // the word as it was written
  // The control registers as UG1399 has them, and what a read has to answer.
  logic start_q, done_q, ready_q, idle_q, auto_q, gie_q, interrupt_q;
  logic [1:0] ier_q, isr_q;
  logic [31:0] output_q, read_word_q;
  logic answer_held_q, write_held_q;
  wire read = arvalid_i && arready_o;
  wire write = wvalid_i && wready_o;
  wire write_low = write && wstrb_i[0];
  wire [ADDR_WIDTH-3:0] written = address_q[ADDR_WIDTH-1:2];
  wire read_done = read && araddr_i[ADDR_WIDTH-1:2] == '0;

  always_ff @(posedge clk_i) begin
    live_q        <= live_q || !rst_ni;
    reads_q       <= rst_ni ? reads_q + 4'(read) - 4'(rvalid_o && rready_i) : '0;
    addresses_q   <= rst_ni ? addresses_q + 4'(awvalid_i && awready_o) - 4'(write) : '0;
    writes_q      <= rst_ni ? writes_q + 4'(write) - 4'(bvalid_o && bready_i) : '0;
    answer_held_q <= rst_ni && rvalid_o && !rready_i;
    write_held_q  <= rst_ni && bvalid_o && !bready_i;
    rdata_q       <= rdata_o;
    if (awvalid_i && awready_o) address_q <= awaddr_i;
    if (!rst_ni) word_q <= '0;
    else if (write && address_q[ADDR_WIDTH-1:2] == 4'd4 + 4'(which_i)) begin
      for (int unsigned lane = 0; lane < 4; ++lane) begin
        if (wstrb_i[lane]) word_q[8*lane+:8] <= wdata_i[8*lane+:8];
      end
    end
    if (!rst_ni) begin
      {start_q, done_q, ready_q, auto_q, gie_q, ier_q, isr_q, interrupt_q} <= '0;
      idle_q   <= 1'b1;
      output_q <= '0;
    end else begin
      start_q     <= write_low && written == '0 && wdata_i[0] || (ap_ready_i ? auto_q : start_q);
      done_q      <= ap_done_i || (done_q && !read_done);
      ready_q     <= ap_ready_i && !auto_q || (ready_q && !read_done);
      idle_q      <= ap_idle_i;
      interrupt_q <= gie_q && isr_q != '0;
      if (write_low && written == 4'd0) auto_q <= wdata_i[7];
      if (write_low && written == 4'd1) gie_q <= wdata_i[0];
      if (write_low && written == 4'd2) ier_q <= wdata_i[1:0];
      isr_q <= (write_low && written == 4'd3 ? isr_q ^ wdata_i[1:0] : isr_q) | {ap_ready_i, ap_done_i} & ier_q;
      if (ap_done_i) output_q <= values_i[32*3+:32];
    end
    if (read) begin
      case (araddr_i[ADDR_WIDTH-1:2])
        4'd0:       read_word_q <= {22'd0, interrupt_q, 1'b0, auto_q, 3'd0, ready_q, idle_q, done_q, start_q};
        4'd1:       read_word_q <= 32'(gie_q);
        4'd2:       read_word_q <= 32'(ier_q);
        4'd3:       read_word_q <= 32'(isr_q);
        4'd4, 4'd5: read_word_q <= word_q;
        4'd7:       read_word_q <= output_q;
        default:    read_word_q <= '0;
      endcase
      read_address_q <= araddr_i;
    end
  end

  wire one_answer_a_read = !live_q || reads_q == 4'(rvalid_o);
  wire one_answer_a_write = !live_q || writes_q == 4'(bvalid_o);
  wire data_after_address = !live_q || (addresses_q <= 4'd1 && addresses_q + writes_q <= 4'd1);
  wire answer_stays = !live_q || !answer_held_q || (rvalid_o && rdata_o == rdata_q);
  wire write_answer_stays = !live_q || !write_held_q || bvalid_o;
  wire word_kept = !live_q || regs_o[32*which_i+:32] == word_q;
  // The input that is not followed may read as anything.
  wire [ADDR_WIDTH-3:0] read_index = read_address_q[ADDR_WIDTH-1:2];
  wire other_input = read_index == 4'd5 - 4'(which_i);
  wire word_read = !live_q || !rvalid_o || other_input || rdata_o == read_word_q;
  wire starts_when_told = !live_q || ap_start_o == start_q;
  wire interrupts = !live_q || interrupt_o == interrupt_q;
  wire answers_okay = bresp_o == 2'b00 && rresp_o == 2'b00;
  wire goes_on = !live_q || ((awready_o || wready_o || bvalid_o) && (arready_o || rvalid_o));
  // An invariant, without which induction starts in states that never are.
  wire registers_match = !live_q || (dut.done_q == done_q && dut.ready_q == ready_q && dut.idle_q == idle_q
      && dut.auto_q == auto_q && dut.gie_q == gie_q && dut.ier_q == ier_q && dut.isr_q == isr_q
      && dut.stored[32*3+:32] == output_q && addresses_q == 4'(dut.addressed_q)
      && (!dut.addressed_q || dut.write_index_q == written));

  always_comb begin
    assert (starts_when_told);
    assert (interrupts);
    assert (answers_okay);
    assert (goes_on);
    assert (registers_match);
    assert (one_answer_a_read);
    assert (one_answer_a_write);
    assert (data_after_address);
    assert (answer_stays);
    assert (write_answer_stays);
    assert (word_kept);
    assert (word_read);
  end

endmodule

`default_nettype wire
