// axi_read: reads ranges of bytes through an AXI4 read port and gives them out as a stream of words.
//
// Commands queue up, and the bursts of the next one are asked for while the data of those before are
// still on their way. A burst is asked for only when the queue behind it has room for all of its
// words, so RREADY is always high. With REALIGN the first byte of a command is in the lowest lane of
// its first word, whatever its address; without, the lowest bits of the address are dropped. A
// command of n bytes gives ceil(n / bytes of a word) words, the last one with last_o; bytes in it
// past the end are whatever the memory holds there.
`default_nettype none

module axi_read #(
    parameter int unsigned ADDR_WIDTH  = 64,
    parameter int unsigned DATA_WIDTH  = 32,
    parameter int unsigned BYTES_WIDTH = 32,  // bits of a command's length
    parameter int unsigned MAX_BURST   = 16,  // words
    parameter int unsigned OUTSTANDING = 8,   // bursts on their way; a power of two
    parameter int unsigned DEPTH       = OUTSTANDING * MAX_BURST,  // words of the queue
    parameter bit          REALIGN     = 1'b1
) (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    // what to read
    input  wire logic                   cmd_valid_i,
    output logic                        cmd_ready_o,
    input  wire logic [ADDR_WIDTH-1:0]  cmd_addr_i,   // of the first byte
    input  wire logic [BYTES_WIDTH-1:0] cmd_bytes_i,  // 0 reads nothing
    // what was read
    output logic                        valid_o,
    input  wire logic                   ready_i,
    output logic [DATA_WIDTH-1:0]       data_o,
    output logic                        last_o,       // the last word of its command
    output logic                        idle_o,       // nothing is left to ask for, nothing on its way
    // AXI4
    output logic                        arvalid_o,
    input  wire logic                   arready_i,
    output logic [ADDR_WIDTH-1:0]       araddr_o,
    output logic [7:0]                  arlen_o,
    output logic [2:0]                  arsize_o,
    output logic [1:0]                  arburst_o,
    input  wire logic                   rvalid_i,
    output logic                        rready_o,
    input  wire logic [DATA_WIDTH-1:0]  rdata_i,
    input  wire logic                   rlast_i
);

  localparam int unsigned LANE_BITS = $clog2(DATA_WIDTH / 8);
  localparam int unsigned COUNT_BITS = $clog2(DEPTH + 1);
  localparam int unsigned MARK_BITS = LANE_BITS + 2;

  // Address channel: a burst leaves when its words have room.
  logic burst_valid, burst_last, bursts_left;
  logic [LANE_BITS-1:0] burst_start, burst_end;
  logic [COUNT_BITS-1:0] room_q;  // words of the queue that no burst was promised
  logic marks_ready, marks_valid;
  wire asked = arvalid_o && arready_i;
  wire [ADDR_WIDTH-1:0] first_byte =
      REALIGN ? cmd_addr_i : {cmd_addr_i[ADDR_WIDTH-1:LANE_BITS], LANE_BITS'(0)};

  assign arvalid_o = burst_valid && marks_ready && room_q >= COUNT_BITS'(MAX_BURST);
  assign arsize_o  = 3'(LANE_BITS);
  assign arburst_o = 2'b01;  // INCR

  axi_bursts #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .DATA_WIDTH(DATA_WIDTH),
      .BYTES_WIDTH(BYTES_WIDTH),
      .MAX_BURST(MAX_BURST)
  ) bursts (
      .clk_i,
      .rst_ni,
      .cmd_valid_i,
      .cmd_ready_o,
      .cmd_addr_i(first_byte),
      .cmd_bytes_i,
      .burst_valid_o(burst_valid),
      .burst_ready_i(asked),
      .burst_addr_o(araddr_o),
      .burst_len_o(arlen_o),
      .burst_last_o(burst_last),
      .burst_start_o(burst_start),
      .burst_end_o(burst_end),
      .busy_o(bursts_left)
  );

  // What the data channel must know of each burst on its way. "tail": realigned, the command has as
  // many words as it takes on the bus, so its last bus word gives two.
  wire burst_tail = burst_end >= burst_start;
  logic mark_last, mark_tail;
  logic [LANE_BITS-1:0] mark_start;
  logic [$clog2(OUTSTANDING + 1) - 1:0] on_the_way;

  fifo #(
      .WIDTH(MARK_BITS),
      .DEPTH(OUTSTANDING)
  ) marks (
      .clk_i,
      .rst_ni,
      .valid_i(asked),
      .ready_o(marks_ready),
      .data_i ({burst_last, burst_tail, burst_start}),
      .valid_o(marks_valid),
      .ready_i(rvalid_i && rlast_i),
      .data_o ({mark_last, mark_tail, mark_start}),
      .count_o(on_the_way)
  );

  // Data channel.
  logic word_valid, word_ready, word_last, word_tail, queue_ready;
  logic [LANE_BITS-1:0] word_start;
  logic [DATA_WIDTH-1:0] word;
  logic [COUNT_BITS-1:0] waiting;

  assign rready_o = 1'b1;

  fifo #(
      .WIDTH(DATA_WIDTH + MARK_BITS),
      .DEPTH(DEPTH)
  ) queue (
      .clk_i,
      .rst_ni,
      .valid_i(rvalid_i),
      .ready_o(queue_ready),
      .data_i ({mark_last && rlast_i, mark_tail, mark_start, rdata_i}),
      .valid_o(word_valid),
      .ready_i(word_ready),
      .data_o ({word_last, word_tail, word_start, word}),
      .count_o(waiting)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      room_q <= COUNT_BITS'(DEPTH);
    end else begin
      room_q <= room_q - (asked ? COUNT_BITS'(arlen_o) + 1'b1 : '0)
          + COUNT_BITS'(word_valid && word_ready);
    end
  end

  assign idle_o = !bursts_left && on_the_way == '0 && waiting == '0;

  if (REALIGN) begin : gen_realign
    logic [DATA_WIDTH-1:0] before_q;  // the bus word before this one
    logic have_q, flush_q;  // before_q is of this command; the last word gives its second half
    wire shifted = word_start != '0;
    wire pair = have_q && !flush_q;
    wire two = pair && word_last && word_tail;
    wire step = word_valid && (ready_i || !valid_o);
    wire [2*DATA_WIDTH-1:0] window = pair ? {word, before_q} : {DATA_WIDTH'(0), word};

    assign valid_o    = word_valid && (!shifted || have_q || word_last);
    assign last_o     = word_last && !two;
    assign data_o     = DATA_WIDTH'(window >> {word_start, 3'b0});
    assign word_ready = (ready_i || !valid_o) && !two;

    always_ff @(posedge clk_i) begin
      if (step) before_q <= word;
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        have_q  <= 1'b0;
        flush_q <= 1'b0;
      end else if (step) begin
        have_q  <= shifted && (!word_last || two);
        flush_q <= two;
      end
    end
  end else begin : gen_aligned
    wire unused = &{1'b0, word_start, word_tail};
    assign valid_o    = word_valid;
    assign last_o     = word_last;
    assign data_o     = word;
    assign word_ready = ready_i;
  end

`ifndef SYNTHESIS
  initial assert (DEPTH >= MAX_BURST)
  else $fatal(1, "axi_read: DEPTH is %0d, expected at least a burst, %0d", DEPTH, MAX_BURST);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      arvalid_o && !arready_i |=> arvalid_o && $stable(araddr_o) && $stable(arlen_o))
  else $error("axi_read: the read address changed before it was taken");
  assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid_i |-> marks_valid && queue_ready)
  else $error("axi_read: a word that nobody asked for");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_o && !ready_i |=> valid_o && $stable(data_o) && $stable(last_o))
  else $error("axi_read: a word that was not taken yet has changed");
`endif

endmodule

`default_nettype wire
