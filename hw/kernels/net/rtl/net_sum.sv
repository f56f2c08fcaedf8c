// net_sum: two tensors of one shape as pairs for net_store. For an addition it reads both in turn, a part of a line
// each. Where a convolution ends in one, the first comes from net_store itself, line by line.
`default_nettype none

module net_sum
  import net_types::*;
#(
    parameter int unsigned ADDR_WIDTH = 64,
    parameter int unsigned PART       = 256  // bytes
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  start_i,
    input  wire item_t                 item_i,
    input  wire logic [31:0]           plane_i,   // bytes of a channel of x in memory
    input  wire logic [ADDR_WIDTH-1:0] arena_i,
    output logic                       busy_o,
    // of a convolution: a line, and its results, eight at a time
    input  wire logic                  ends_in_sum_i,
    input  wire logic                  line_valid_i,
    output logic                       line_ready_o,
    output logic                       few_lines_o,  // a tile has room
    input  wire logic [31:0]           line_at_i,
    input  wire logic [12:0]           line_bytes_i,
    input  wire logic                  result_valid_i,
    input  wire logic [63:0]           result_i,
    output logic                       result_taken_o,
    // what to read
    output logic                       cmd_valid_o,
    input  wire logic                  cmd_ready_i,
    output logic [ADDR_WIDTH-1:0]      cmd_addr_o,
    output logic [12:0]                cmd_bytes_o,
    input  wire logic                  valid_i,
    output logic                       ready_o,
    input  wire logic [63:0]           data_i,
    input  wire logic                  last_i,
    // pairs
    output logic                       valid_o,
    input  wire logic                  ready_i,
    output logic                       first_o,
    output logic                       last_o,
    output logic [31:0]                at_o,
    output logic [12:0]                bytes_o,
    output logic [3:0]                 count_o,
    output logic [127:0]               left_o,
    output logic [127:0]               right_o
);

  localparam int unsigned PART_BITS = $clog2(PART + 1);
  localparam int unsigned LINES = 32;  // that wait for b while DDR answers

  // What to read: x, then b.
  logic walking_q, second_q;
  logic [15:0] channel_q, row_q;
  logic [31:0] x_channel_q, b_channel_q, y_channel_q, x_q, b_q, y_q, done_q;
  wire merge = item_i.x_row == item_i.width && item_i.b_row == item_i.width && item_i.y_row == item_i.width;
  wire [31:0] length = merge ? plane_i : item_i.width;
  wire [31:0] left = length - done_q;
  wire last_part = left <= 32'(PART);
  wire [PART_BITS-1:0] bytes = last_part ? left[PART_BITS-1:0] : PART_BITS'(PART);
  wire last_row = merge || row_q + 16'd1 == item_i.height[15:0];
  wire last_channel = channel_q + 16'd1 == item_i.channels[15:0];
  logic part_ready, part_valid, part_end;
  logic [$clog2(LINES + 1) - 1:0] parts;
  logic [31:0] part_at;
  logic [PART_BITS-1:0] part_bytes;
  wire [31:0] from = (second_q ? b_q : x_q) + done_q;
  wire asked = cmd_valid_o && cmd_ready_i;
  wire next = asked && second_q;

  assign line_ready_o = part_ready;
  assign few_lines_o = parts <= 6'd4;
  assign cmd_valid_o = walking_q && part_ready;
  assign cmd_addr_o  = arena_i + ADDR_WIDTH'(from);
  assign cmd_bytes_o = 13'(bytes);
  assign busy_o      = walking_q || part_valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      walking_q <= 1'b0;
    end else if (start_i) begin
      walking_q <= 1'b1;
      second_q  <= 1'b0;
      channel_q <= '0;
      row_q     <= '0;
      done_q    <= '0;
      {x_channel_q, x_q} <= {2{item_i.x}};
      {b_channel_q, b_q} <= {2{item_i.b}};
      {y_channel_q, y_q} <= {2{item_i.y}};
    end else if (asked) begin
      second_q <= !second_q;
      if (next) begin
        done_q <= last_part ? '0 : done_q + 32'(PART);
        if (last_part) begin
          row_q <= last_row ? '0 : row_q + 1'b1;
          x_q   <= last_row ? x_channel_q + item_i.x_channel : x_q + item_i.x_row;
          b_q   <= last_row ? b_channel_q + item_i.b_channel : b_q + item_i.b_row;
          y_q   <= last_row ? y_channel_q + item_i.y_channel : y_q + item_i.y_row;
          if (last_row) begin
            channel_q   <= channel_q + 1'b1;
            x_channel_q <= x_channel_q + item_i.x_channel;
            b_channel_q <= b_channel_q + item_i.b_channel;
            y_channel_q <= y_channel_q + item_i.y_channel;
            if (last_channel) walking_q <= 1'b0;
          end
        end
      end
    end
  end

  fifo #(
      .WIDTH(32 + PART_BITS),
      .DEPTH(LINES)
  ) waiting (
      .clk_i,
      .rst_ni,
      .valid_i(ends_in_sum_i ? line_valid_i : next),
      .ready_o(part_ready),
      .data_i (ends_in_sum_i ? {line_at_i, line_bytes_i[PART_BITS-1:0]} : {y_q + done_q, bytes}),
      .valid_o(part_valid),
      .ready_i(part_end),
      .data_o ({part_at, part_bytes}),
      .count_o(parts)
  );

  // The words of x wait for those of b, which leave at half the speed at which they come: meanwhile the next ones
  // of x arrive.
  logic x_ready, x_valid, b_ready, b_valid, of_b_q, high_q;
  logic [$clog2(PART / 4 + 1) - 1:0] x_words;
  logic [$clog2(PART / 4 + 1) - 1:0] b_words;
  logic [63:0] x_word, b_word;
  logic [PART_BITS-1:0] sent_q;
  wire [PART_BITS-1:0] rest = part_bytes - sent_q;
  wire pair = part_valid && b_valid && x_valid;
  wire send = valid_o && ready_i;
  wire word_ends = send && (high_q || last_o);
  wire of_b = of_b_q || ends_in_sum_i;

  assign valid_o  = pair;
  assign first_o  = sent_q == '0;
  assign last_o   = rest <= PART_BITS'(4);
  assign count_o  = last_o ? rest[3:0] : 4'd4;
  assign at_o     = part_at;
  assign bytes_o  = 13'(part_bytes);
  assign part_end = send && last_o;
  assign ready_o  = of_b ? b_ready : x_ready;
  assign result_taken_o = word_ends && ends_in_sum_i;

  fifo #(
      .WIDTH(64),
      .DEPTH(PART / 4)
  ) xs (
      .clk_i,
      .rst_ni,
      .valid_i(ends_in_sum_i ? result_valid_i : valid_i && !of_b_q),
      .ready_o(x_ready),
      .data_i (ends_in_sum_i ? result_i : data_i),
      .valid_o(x_valid),
      .ready_i(word_ends),
      .data_o (x_word),
      .count_o(x_words)
  );

  fifo #(
      .WIDTH(64),
      .DEPTH(PART / 4)
  ) bs (
      .clk_i,
      .rst_ni,
      .valid_i(valid_i && of_b),
      .ready_o(b_ready),
      .data_i (data_i),
      .valid_o(b_valid),
      .ready_i(word_ends),
      .data_o (b_word),
      .count_o(b_words)
  );

  for (genvar i = 0; i < 4; ++i) begin : gen_pair
    wire [7:0] x = high_q ? x_word[32+8*i+:8] : x_word[8*i+:8];
    wire [7:0] b = high_q ? b_word[32+8*i+:8] : b_word[8*i+:8];
    assign left_o[32*i+:32]  = {{24{x[7]}}, x};
    assign right_o[32*i+:32] = {{24{b[7]}}, b};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      of_b_q <= 1'b0;
      high_q <= 1'b0;
      sent_q <= '0;
    end else begin
      if (valid_i && ready_o && last_i && !ends_in_sum_i) of_b_q <= !of_b_q;
      if (send) begin
        high_q <= !high_q && !last_o;
        sent_q <= last_o ? '0 : sent_q + PART_BITS'(4);
      end
    end
  end

  wire unused = &{1'b0, item_i, parts, x_words, b_words, line_bytes_i};

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) result_valid_i |-> x_ready)
  else $error("net_sum: results for which there is no room");
  assert property (@(posedge clk_i) disable iff (!rst_ni) valid_i && ends_in_sum_i |-> b_ready)
  else $error("net_sum: words of b for which there is no room");
`endif

endmodule

`default_nettype wire
