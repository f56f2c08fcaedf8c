// net_array: ROWS output channels times COLS pixels. A tap a cycle: a byte of each pixel's window with the
// weights of all channels.
//
// Where each output channel has its own input channel, the other rows' weights are 0. If such a tile needs half of the
// columns only, the others have the next channel's bytes, and two rows have weights. A maximum is a sum, too:
// of the first byte, and of what each later one is greater by.
//
// The rows below DSP_ROWS make two products in a DSP48E1 (25 x 18 bit): two neighbouring pixels share the
// 25-bit operand, 16 bits apart. The low product fits 16 bits (|-128 * -128| = 2^14; a maximum's are 255 at
// most, with a weight of 1) and takes one from the high one where it is negative: its sign bit is added again,
// with the sum. The other rows are made of LUTs: the weight's digits of base 4, -2 to 2, choose what is added
// up. A negative one takes the complement and adds one; the first digit's one is added with the sum, too.
`default_nettype none

module net_array
  import net_types::*;
#(
    parameter int unsigned ROWS     = 16,
    parameter int unsigned COLS     = 24,
    parameter int unsigned DSP_ROWS = 15
) (
    input  wire logic                     clk_i,
    input  wire logic                     rst_ni,
    input  wire logic                     hold_i,     // jobs in the queue are the next instruction's
    input  wire item_t                    item_i,
    input  wire plan_t                    plan_i,
    output logic                          busy_o,
    output logic                          queued_o,
    // activations
    input  wire logic                     write_i,
    input  wire logic [9:0]               word_i,
    input  wire logic [63:0]              data_i,
    input  wire logic                     loaded_i,
    output logic                          free_o,
    // what to do
    input  wire logic                     job_valid_i,
    output logic                          job_ready_o,
    input  wire job_t                     job_i,
    // weights
    input  wire logic                     weights_valid_i,
    output logic                          weights_take_o,
    input  wire logic [8*ROWS-1:0]        weights_i,
    // sums
    input  wire logic                     ready_i,
    output logic                          valid_o,    // a cycle
    output place_t                        place_o,
    output logic [32*COLS*ROWS-1:0]       sums_o
);

  localparam int unsigned STEPS = 6;  // from the address to the sum
  localparam int unsigned HALF = COLS / 2;

  wire maximum = item_i.head[7:0] == MAX;
  wire weighted = item_i.head[7:0] == CONV;

  // Where each pixel of a tile is, from the band's first one on. The next tile's are found, a pixel a cycle, while
  // this one is multiplied.
  logic [16:0] y_q[COLS], x_q[COLS], next_y_q[COLS], next_x_q[COLS];
  logic [11:0] cell_q[COLS], next_cell_q[COLS];
  logic [4:0] pixels_q;
  logic [8:0] column_q;
  logic [16:0] y_at_q, x_at_q;
  logic [11:0] row_cell_q, cell_at_q;
  logic found_q;
  logic queued, due, take;
  job_t job, job_q;

  always_ff @(posedge clk_i) begin
    if (pixels_q != '0) begin
      pixels_q <= pixels_q - 1'b1;
      found_q  <= pixels_q == 5'd1;
      for (int unsigned i = 0; i < COLS - 1; ++i) begin
        next_y_q[i]    <= next_y_q[i+1];
        next_x_q[i]    <= next_x_q[i+1];
        next_cell_q[i] <= next_cell_q[i+1];
      end
      if (job.place.paired) begin
        next_y_q[HALF-1]    <= y_at_q;
        next_x_q[HALF-1]    <= x_at_q;
        next_cell_q[HALF-1] <= cell_at_q;
      end
      next_y_q[COLS-1]    <= y_at_q;
      next_x_q[COLS-1]    <= x_at_q;
      next_cell_q[COLS-1] <= cell_at_q;
      if (column_q == plan_i.columns) begin
        column_q   <= 9'd1;
        x_at_q     <= '0;
        y_at_q     <= plan_i.fan ? '0 : y_at_q + item_i.stride_y[16:0];
        cell_at_q  <= row_cell_q;
        row_cell_q <= row_cell_q + plan_i.row_stride;
      end else begin
        column_q  <= column_q + 1'b1;
        x_at_q    <= x_at_q + item_i.stride_x[16:0];
        cell_at_q <= cell_at_q + item_i.stride_x[11:0];
      end
    end else if (due && job.tile && !found_q) begin
      pixels_q <= job.place.paired ? 5'(HALF) : 5'(COLS);
      if (job.band) begin
        column_q   <= 9'd1;
        y_at_q     <= '0;
        x_at_q     <= '0;
        row_cell_q <= plan_i.row_stride;
        cell_at_q  <= '0;
      end
    end
    if (take && job.tile) begin
      found_q <= 1'b0;
      y_q     <= next_y_q;
      x_q     <= next_x_q;
      cell_q  <= next_cell_q;
    end
    if (!rst_ni) begin
      pixels_q <= '0;
      found_q  <= 1'b0;
    end
  end

  // Jobs.
  logic [3:0] jobs;

  fifo #(
      .WIDTH($bits(job_t)),
      .DEPTH(8)
  ) queue (
      .clk_i,
      .rst_ni,
      .valid_i(job_valid_i),
      .ready_o(job_ready_o),
      .data_i (job_i),
      .valid_o(queued),
      .ready_i(take),
      .data_o (job),
      .count_o(jobs)
  );

  assign queued_o = queued;
  assign due      = queued && !hold_i;

  typedef enum logic [1:0] {IDLE, RUN, HAND_OVER} state_t;
  state_t state_q;
  logic [1:0] loads_q;    // that are complete and not begun
  logic partial_q;        // this job's is not complete
  logic [9:0] words_q;    // of the load that arrives, that are there: all up to this one
  logic [12:0] needed_q;  // bytes of this channel and those before
  logic [12:0] channel_q;
  logic [15:0] tap_row_q, tap_column_q;
  logic [11:0] channel_at_q, row_at_q, at_q, upper_at_q, next_at, next_channel_at;
  logic signed [17:0] line_q, column_at_q;
  logic first_q;
  logic [3:0] own_q;
  logic pending_q;        // a tile is about to be handed over
  logic [2:0] wait_q;     // until its sums are complete
  logic [2:0] free_q;
  place_t place_q;

  wire last_column = tap_column_q + 16'd1 == item_i.k_columns[15:0];
  wire last_row = plan_i.by_row || tap_row_q + 16'd1 == item_i.k_rows[15:0];
  wire paired = job_q.place.paired;
  wire [1:0] channels = paired ? 2'd2 : 2'd1;  // at a time
  wire last_channel = channel_q + 13'(channels) == job_q.channels;
  // The sums of the next tile may begin when nobody waits for those of the last one.
  wire ends_job = last_column && last_row && last_channel;
  wire there = !partial_q || (!plan_i.fan && !paired && needed_q <= {words_q, 3'b0});
  wire may = state_q == RUN && there && !(ends_job && job_q.last && pending_q);
  wire tap = may && (weights_valid_i || !weighted);
  wire last_tap = tap && ends_job;
  wire hands_over = ready_i && !pending_q && ((last_tap && job_q.last) || state_q == HAND_OVER);

  // The next job follows the last tap without a gap, if its place is known and nothing of this one is awaited.
  wire ends = last_tap && !partial_q && (!job_q.last || hands_over);

  assign take = (state_q == IDLE || ends) && due && (!job.tile || found_q);
  assign weights_take_o = may && weighted;
  assign busy_o = state_q != IDLE || due || pending_q;
  assign free_o = free_q[2];
  assign valid_o = pending_q && wait_q == '0;
  assign place_o = place_q;

  // A load that is begun before it is complete is not counted when it is.
  wire begins = take && job.load && loads_q == '0 && !loaded_i;
  wire completes = loaded_i && partial_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      loads_q   <= '0;
      partial_q <= 1'b0;
      words_q   <= '0;
    end else begin
      loads_q   <= loads_q + 2'(loaded_i && !completes) - 2'(take && job.load && !begins);
      partial_q <= begins || (partial_q && !loaded_i);
      if (loaded_i) words_q <= '0;
      else if (write_i) words_q <= {1'b0, word_i[8:0]} + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
    end else begin
      unique case (state_q)
        IDLE: if (take) state_q <= RUN;
        RUN: if (last_tap && !take) state_q <= !job_q.last || hands_over ? IDLE : HAND_OVER;
        default: if (hands_over) state_q <= IDLE;
      endcase
    end
  end

  always_comb begin
    next_channel_at = channel_at_q + (paired ? {plan_i.plane[10:0], 1'b0} : plan_i.plane[11:0]);
    if (take) next_at = job.cell_at;
    else if (!last_column) next_at = at_q + item_i.step_x[11:0];
    else if (!last_row) next_at = row_at_q + plan_i.row_step;
    else next_at = next_channel_at;
  end

  always_ff @(posedge clk_i) begin
    if (last_tap && job_q.last) wait_q <= 3'(STEPS - 1);
    else if (wait_q != '0) wait_q <= wait_q - 1'b1;
    if (hands_over) place_q <= job_q.place;
    if (!rst_ni || valid_o) pending_q <= 1'b0;
    else if (hands_over) pending_q <= 1'b1;
    // The buffer is free when the last tap has read it.
    free_q <= !rst_ni ? '0 : {free_q[1:0], last_tap && job_q.free};
    if (tap || take) begin
      at_q       <= next_at;
      upper_at_q <= next_at + ((take ? job.place.paired : paired) ? plan_i.plane[11:0] : '0);
    end
    if (tap) begin
      first_q <= 1'b0;
      if (!last_column) begin
        tap_column_q <= tap_column_q + 1'b1;
        column_at_q  <= column_at_q + item_i.step_x[17:0];
      end else begin
        tap_column_q <= '0;
        column_at_q  <= job_q.x;
        if (!last_row) begin
          tap_row_q <= tap_row_q + 1'b1;
          row_at_q  <= row_at_q + plan_i.row_step;
          line_q    <= line_q + item_i.step_y[17:0];
        end else begin
          tap_row_q    <= '0;
          line_q       <= job_q.y;
          channel_q    <= channel_q + 13'(channels);
          own_q        <= own_q + 4'(channels);
          needed_q     <= needed_q + plan_i.plane;
          channel_at_q <= next_channel_at;
          row_at_q     <= next_channel_at;
        end
      end
    end
    if (take) begin
      job_q        <= job;
      channel_q    <= '0;
      tap_row_q    <= '0;
      tap_column_q <= '0;
      channel_at_q <= job.cell_at;
      row_at_q     <= job.cell_at;
      line_q       <= job.y;
      column_at_q  <= job.x;
      first_q      <= job.first;
      needed_q     <= plan_i.plane;
      own_q        <= job.channel;
    end
  end

  // 1: the address. 2, 3: the byte. 4: what is multiplied. 5: the product. 6: the sum.
  logic [5:1] tap_q, start_q;
  logic [3:1] fresh_q;      // a channel's first byte
  logic [3:0] own_before_q;
  wire [7:0] next_channels = weights_i[{plan_i.taps[7:4], 3'b0}+:8];  // behind those of the window
  logic [ROWS-1:0] rows_q1, low_one_q5;
  logic [8*ROWS-1:0] weights_q1, weights_q2, weights_q3, weights_q4;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) tap_q <= '0;
    else tap_q <= {tap_q[4:1], tap};
  end

  always_ff @(posedge clk_i) begin
    start_q <= {start_q[4:1], first_q};
    fresh_q <= {fresh_q[2:1], first_q || own_q != own_before_q};
    if (tap) own_before_q <= own_q;
    rows_q1 <= plan_i.alone ? ROWS'({paired, 1'b1}) << own_q : '1;
    for (int unsigned r = 0; r < ROWS; ++r) begin
      weights_q1[8*r+:8] <= !weighted ? 8'd1 : !plan_i.alone ? weights_i[8*r+:8]
          : r % 2 == 1 && paired ? next_channels : weights_i[7:0];
      weights_q2[8*r+:8] <= rows_q1[r] ? weights_q1[8*r+:8] : '0;
      low_one_q5[r]      <= weights_q4[8*r+1];
    end
    weights_q3 <= weights_q2;
    weights_q4 <= weights_q3;
  end

  wire [7:0] beside = maximum ? 8'h80 : item_i.x_zero[7:0];
  wire signed [17:0] height = 18'(item_i.height[16:0]);
  wire signed [17:0] width = 18'(item_i.width[16:0]);
  logic signed [8:0] seen_q[COLS];

  for (genvar c = 0; c < COLS; ++c) begin : gen_column
    logic [12:0] byte_q;
    logic inside_q1, inside_q2, inside_q3;
    logic [7:0] read;
    logic signed [7:0] most_q;
    wire signed [17:0] y = plan_i.by_row ? '0 : line_q + signed'({1'b0, y_q[c]});
    wire signed [17:0] x = column_at_q + signed'({1'b0, x_q[c]});
    wire signed [7:0] seen = inside_q3 ? read : beside;
    wire signed [8:0] more = 9'(seen) - 9'(most_q);

    always_ff @(posedge clk_i) begin
      byte_q    <= {job_q.buffer, (c < HALF ? at_q : upper_at_q) + cell_q[c]};
      inside_q1 <= job_q.there && !y[17] && y < height && !x[17] && x < width;
      inside_q2 <= inside_q1;
      inside_q3 <= inside_q2;
      if (!maximum || fresh_q[3]) seen_q[c] <= 9'(seen);
      else seen_q[c] <= more[8] ? '0 : more;
      if (tap_q[3] && (fresh_q[3] || !more[8])) most_q <= seen;
    end

    net_patch patch (
        .clk_i,
        .write_i,
        .word_i,
        .data_i,
        .byte_i(byte_q),
        .byte_o(read)
    );
  end

  // A digit of a weight times w, less one if it is negative: a[2j+1:2j-1] stands for 0, 1, 1, 2, -2, -1, -1, 0.
  function automatic logic [10:0] part(input logic [8:0] w, input logic [2:0] digit);
    logic [10:0] size;
    size = digit[1] != digit[0] ? 11'(signed'(w)) : digit[2] != digit[1] ? 11'(signed'({w, 1'b0})) : '0;
    return digit[2] ? ~size : size;
  endfunction

  // w * a, less one if the first digit of a is negative.
  function automatic logic [15:0] product(input logic [8:0] w, input logic [7:0] a);
    logic [10:0] s0, s1, s2;
    logic [9:0] s3;
    s0 = part(w, {a[1:0], 1'b0});
    s1 = 11'(signed'(s0[10:2])) + part(w, a[3:1]) + 11'(a[3]);
    s2 = 11'(signed'(s1[10:2])) + part(w, a[5:3]) + 11'(a[5]);
    s3 = 10'(signed'(s2[10:2])) + 10'(part(w, a[7:5])) + 10'(a[7]);
    return {s3, s2[1:0], s1[1:0], s0[1:0]};
  endfunction

  for (genvar r = 0; r < ROWS; ++r) begin : gen_row
    wire [7:0] weight = weights_q4[8*r+:8];

    for (genvar p = 0; p < COLS / 2; ++p) begin : gen_pair
      logic [31:0] products_q, low_q, high_q;
      wire signed [24:0] both = {seen_q[2*p+1], 16'b0} + 25'(seen_q[2*p]);

      assign sums_o[32*(COLS*r+2*p)+:64] = {high_q, low_q};

      always_ff @(posedge clk_i) begin
        if (r < DSP_ROWS) products_q <= 32'(both * signed'(weight));
        else products_q <= {product(seen_q[2*p+1], weight), product(seen_q[2*p], weight)};
        if (tap_q[5]) begin
          low_q  <= (start_q[5] ? '0 : low_q) + 32'(signed'(products_q[15:0]))
              + 32'(r >= DSP_ROWS && low_one_q5[r]);
          high_q <= (start_q[5] ? '0 : high_q) + 32'(signed'(products_q[31:16]))
              + 32'(r < DSP_ROWS ? products_q[15] : low_one_q5[r]);
        end
      end
    end
  end

  wire unused = &{1'b0, item_i, plan_i, job_q, jobs};

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) valid_o |-> ready_i)
  else $error("net_array: a tile that nobody takes");
`endif

endmodule

`default_nettype wire
