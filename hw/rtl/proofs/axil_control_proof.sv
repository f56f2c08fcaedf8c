// axil_control_proof: `axil_control` gives one answer for each access and never two at a time, keeps an
// answer until it is taken, holds AP_START until ap_ready (and for good with auto_restart) and AP_DONE
// until it is read, and gives back what was written, each word its own.
`default_nettype none

module axil_control_proof #(
    parameter int unsigned ADDR_WIDTH = 6,
    parameter int unsigned WORDS      = 2
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
    input wire logic                  which_i  // any of the words, always the same
);

  logic awready_o, wready_o, bvalid_o, arready_o, rvalid_o, ap_start_o, interrupt_o;
  logic [1:0] bresp_o, rresp_o;
  logic [31:0] rdata_o;
  logic [32*WORDS-1:0] regs_o;

  axil_control #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .WORDS(WORDS)
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
  logic [31:0] word_q, rdata_q, read_word_q;  // the word as it was written
  logic start_held_q, restart_q, done_held_q, answer_held_q, write_held_q;
  wire read = arvalid_i && arready_o;
  wire write = wvalid_i && wready_o;
  wire read_done = read && araddr_i[ADDR_WIDTH-1:2] == '0;

  always_ff @(posedge clk_i) begin
    live_q        <= live_q || !rst_ni;
    reads_q       <= rst_ni ? reads_q + 4'(read) - 4'(rvalid_o && rready_i) : '0;
    addresses_q   <= rst_ni ? addresses_q + 4'(awvalid_i && awready_o) - 4'(write) : '0;
    writes_q      <= rst_ni ? writes_q + 4'(write) - 4'(bvalid_o && bready_i) : '0;
    answer_held_q <= rst_ni && rvalid_o && !rready_i;
    write_held_q  <= rst_ni && bvalid_o && !bready_i;
    start_held_q  <= rst_ni && ap_start_o && !ap_ready_i;
    restart_q     <= rst_ni && ap_ready_i && dut.auto_q;
    done_held_q   <= rst_ni && (ap_done_i || (dut.done_q && !read_done));
    rdata_q       <= rdata_o;
    if (awvalid_i && awready_o) address_q <= awaddr_i;
    if (!rst_ni) word_q <= '0;
    else if (write && address_q[ADDR_WIDTH-1:2] == 4'd4 + 4'(which_i)) begin
      for (int unsigned lane = 0; lane < 4; ++lane) begin
        if (wstrb_i[lane]) word_q[8*lane+:8] <= wdata_i[8*lane+:8];
      end
    end
    if (read) begin
      read_address_q <= araddr_i;
      read_word_q    <= word_q;
    end
  end

  wire one_answer_a_read = !live_q || reads_q == 4'(rvalid_o);
  wire one_answer_a_write = !live_q || writes_q == 4'(bvalid_o);
  wire data_after_address = !live_q || (addresses_q <= 4'd1 && addresses_q + writes_q <= 4'd1);
  wire answer_stays = !live_q || !answer_held_q || (rvalid_o && rdata_o == rdata_q);
  wire write_answer_stays = !live_q || !write_held_q || bvalid_o;
  wire start_held = !live_q || !start_held_q || ap_start_o;
  wire restarts = !live_q || !restart_q || ap_start_o;
  wire done_held = !live_q || !done_held_q || dut.done_q;
  wire word_kept = !live_q || regs_o[32*which_i+:32] == word_q;
  wire word_read = !live_q || !rvalid_o || read_address_q[ADDR_WIDTH-1:2] != 4'd4 + 4'(which_i)
      || rdata_o == read_word_q;
  // Invariants, without which induction starts in states that never are.
  wire address_waits = !live_q || addresses_q == 4'(dut.addressed_q);
  wire address_kept = !live_q || !dut.addressed_q || dut.write_index_q == address_q[ADDR_WIDTH-1:2];

  always_comb begin
    assert (one_answer_a_read);
    assert (one_answer_a_write);
    assert (data_after_address);
    assert (answer_stays);
    assert (write_answer_stays);
    assert (start_held);
    assert (restarts);
    assert (done_held);
    assert (word_kept);
    assert (word_read);
    assert (address_waits);
    assert (address_kept);
  end

endmodule

`default_nettype wire
