// net_plan: whether an instruction may run, by the rules and in the order of net_program.hpp, and how it is
// cut into bands. A multiplication (3 cycles) or division (19) at a time, while the instruction before runs: some
// 220 cycles, and three for each number of rows or columns that it tries, 600 at worst.
`default_nettype none

module net_plan
  import net_types::*;
#(
    parameter int unsigned COLS  = 24,   // pixels of a tile
    parameter int unsigned PATCH = 4096  // bytes of activations in a buffer
) (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        start_i,
    input  wire item_t       item_i,
    input  wire logic [31:0] weights_bytes_i,
    input  wire logic [31:0] table_words_i,
    input  wire logic [31:0] arena_bytes_i,
    output logic             done_o,     // a cycle
    output logic [3:0]       reason_o,   // 0: it may run
    output plan_t            plan_o,
    output logic [31:0]      x_end_o,    // of what is read, of what is written
    output logic [31:0]      y_end_o
);

  typedef enum logic [5:0] {
    IDLE, HEAD, DEPTH, OUTS, SPAN_Y, SPAN_X, LAST_Y, LAST_X, X_PLANE, X_END, Y_PLANE, Y_END, B_PLANE, B_END,
    WINDOW, TAPS, WEIGHTS, WORK, MOST, SHARE, MOST_LINES, MOST_ROWS, REST, EVEN, CELLS, ROWS, LINES, PLANE, CHUNK, ROW_STEP, ROW_STRIDE, RESIDENT, W_GROUP,
    X_GROUP, Y_GROUP, Y_BAND, DOWN, ACROSS, DONE
  } step_t;

  localparam logic [33:0] MANY = '1;  // more than any limit

  step_t step_q;
  logic [1:0] phase_q;
  logic [33:0] left, left_q;
  logic [15:0] right, right_q;
  logic [49:0] product_q;
  wire [33:0] bounded = product_q[49:34] != '0 ? MANY : product_q[33:0];

  wire [7:0] opcode = item_i.head[7:0];
  wire conv = opcode == CONV;
  wire add = opcode == ADD;
  wire wide = item_i.head[8];
  wire ends_in_sum = item_i.head[9];
  wire flagged = item_i.head[23:10] != '0 || ((wide || ends_in_sum) && !conv) || (wide && ends_in_sum);
  wire [17:0] y_bytes = wide ? {item_i.columns[15:0], 2'b00} : 18'(item_i.columns);

  function automatic logic is_size(input logic [31:0] word);
    return word[31:16] == '0 && word[15:0] != '0;
  endfunction
  function automatic logic is_int8(input logic [31:0] word);
    return word + 32'd128 < 32'd256;
  endfunction

  wire sizes = is_size(item_i.channels) && is_size(item_i.height) && is_size(item_i.width) && is_size(item_i.outs)
      && is_size(item_i.rows) && is_size(item_i.columns) && is_size(item_i.groups) && is_size(item_i.k_rows)
      && is_size(item_i.k_columns) && is_size(item_i.stride_y) && is_size(item_i.stride_x) && is_size(item_i.step_y)
      && is_size(item_i.step_x) && item_i.pad_y[31:16] == '0 && item_i.pad_x[31:16] == '0;
  wire fits = (conv || (item_i.channels == item_i.outs && item_i.groups == item_i.outs))
      && !(add && (item_i.rows != item_i.height || item_i.columns != item_i.width))
      && !(ends_in_sum && (item_i.b_channel != item_i.y_channel || item_i.b_row != item_i.y_row));
  wire in_range = is_int8(item_i.x_zero) && is_int8(item_i.y_zero) && is_int8(item_i.b_zero) && is_int8(item_i.low)
      && is_int8(item_i.high) && signed'(item_i.low) <= signed'(item_i.high);

  // Rows of the result follow each other in memory, lines fit on chip: a band may have all columns and several rows.
  logic full_q, flat_q;
  logic [12:0] share_q;         // bytes on chip for each channel
  logic [4:0] modulo_q, sum_q;  // pixels beyond whole tiles: of a row, of some
  logic [6:0] tried_q, even_q;
  wire follows = item_i.x_row == item_i.width;
  wire [12:0] full_pitch = follows ? item_i.width[12:0] : 13'({13'(item_i.width[12:0]) + 13'd7} & ~13'd7);
  wire full = item_i.y_row == 32'(y_bytes) && item_i.width[15:0] <= 16'(PATCH) && item_i.columns[15:0] <= 16'd511;
  wire [5:0] sum = 6'(sum_q) + 6'(modulo_q);
  wire [4:0] next_sum = sum >= 6'(COLS) ? 5'(sum - 6'(COLS)) : sum[4:0];

  // The window's cells, less one.
  logic [31:0] span_y_q;
  logic [11:0] span_x_q;

  // Division, a bit a cycle.
  logic [16:0] rest_q;
  logic [15:0] dividend_q, quotient_q;
  logic [4:0] bits_q;
  logic [15:0] dividend, divisor;
  wire [16:0] rest = {rest_q[15:0], dividend_q[15]};
  wire divides = step_q == DEPTH || step_q == OUTS || step_q == SHARE || step_q == MOST_LINES || step_q == MOST_ROWS
      || step_q == REST || step_q == CHUNK;

  always_comb begin
    divisor = item_i.groups[15:0];
    unique case (step_q)
      DEPTH: dividend = item_i.channels[15:0];
      OUTS: dividend = item_i.outs[15:0];
      SHARE: begin
        dividend = 16'(PATCH);
        divisor  = plan_o.depth;
      end
      MOST_LINES: begin
        dividend = {3'b0, share_q[12:3], 3'b0};
        divisor  = 16'(full_pitch);
      end
      MOST_ROWS: begin
        dividend = quotient_q - 16'd1 - span_y_q[15:0];
        divisor  = item_i.stride_y[15:0];
      end
      REST: begin
        dividend = 16'(plan_o.columns);
        divisor  = 16'(COLS);
      end
      default: begin
        dividend = 16'(PATCH);
        divisor  = 16'(plan_o.plane);
      end
    endcase
  end

  // What is known so far.
  logic beside_q, apart_q;
  logic [51:0] plane_q, x_end_q, y_end_q, b_end_q;
  logic [33:0] taps_q;
  assign x_end_o = x_end_q[31:0];
  assign y_end_o = y_end_q[31:0];
  wire [31:0] above = item_i.pad_y, aside = item_i.pad_x;
  wire [51:0] bound = 52'(arena_bytes_i);
  wire [51:0] weights_end = 52'(item_i.weights) + 52'(bounded);
  wire [33:0] table_end = 34'(item_i.entry)
      + (conv ? {17'b0, item_i.outs[15:0], 1'b0} + {31'b0, ends_in_sum, 2'b0} : 34'd2);
  wire reads_b = add || ends_in_sum;
  wire meets = (52'(item_i.x) < y_end_q && 52'(item_i.y) < x_end_q)
      || (reads_b && 52'(item_i.b) < y_end_q && 52'(item_i.y) < b_end_q);
  wire [51:0] end_of = 52'(product_q) + plane_q;

  always_comb begin
    left  = '0;
    right = '0;
    unique case (step_q)
      SPAN_Y: {left, right} = {34'(item_i.step_y), item_i.k_rows[15:0] - 16'd1};
      SPAN_X: {left, right} = {34'(item_i.step_x), item_i.k_columns[15:0] - 16'd1};
      LAST_Y: {left, right} = {34'(item_i.stride_y), item_i.rows[15:0] - 16'd1};
      LAST_X: {left, right} = {34'(item_i.stride_x), item_i.columns[15:0] - 16'd1};
      X_PLANE: {left, right} = {34'(item_i.x_row), item_i.height[15:0] - 16'd1};
      X_END: {left, right} = {34'(item_i.x_channel), item_i.channels[15:0] - 16'd1};
      Y_PLANE: {left, right} = {34'(item_i.y_row), item_i.rows[15:0] - 16'd1};
      Y_END: {left, right} = {34'(item_i.y_channel), item_i.outs[15:0] - 16'd1};
      B_PLANE: {left, right} = {34'(item_i.b_row), item_i.rows[15:0] - 16'd1};
      B_END: {left, right} = {34'(item_i.b_channel), item_i.outs[15:0] - 16'd1};
      WINDOW: {left, right} = {34'(plan_o.depth), item_i.k_rows[15:0]};
      TAPS: {left, right} = {taps_q, item_i.k_columns[15:0]};
      WEIGHTS: {left, right} = {taps_q, item_i.outs[15:0]};
      WORK: {left, right} = {bounded, item_i.rows[15:0]};
      MOST: {left, right} = {bounded, item_i.columns[15:0]};
      CELLS: {left, right} = {34'(item_i.stride_x), 16'(plan_o.columns) - 16'd1};
      LINES: {left, right} = {34'(item_i.stride_y), 16'(plan_o.rows) - 16'd1};
      PLANE: {left, right} = {34'(plan_o.lines), 16'(plan_o.pitch)};
      ROW_STEP: {left, right} = {34'(item_i.step_y), 16'(plan_o.pitch)};
      ROW_STRIDE: {left, right} = {34'(item_i.stride_y), 16'(plan_o.pitch)};
      RESIDENT: {left, right} = {34'(plan_o.taps), (plan_o.outs + 16'd15) >> 4};
      W_GROUP: {left, right} = {34'(plan_o.taps), plan_o.alone ? 16'd1 : plan_o.outs};
      X_GROUP: {left, right} = {34'(item_i.x_channel), plan_o.depth};
      Y_GROUP: {left, right} = {34'(item_i.y_channel), plan_o.outs};
      Y_BAND: {left, right} = {34'(item_i.y_row), 16'(plan_o.rows)};
      DOWN: {left, right} = {34'(item_i.stride_y), 16'(plan_o.rows)};
      ACROSS: {left, right} = {34'(item_i.stride_x), 16'(plan_o.columns)};
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (phase_q == 2'd0) begin
      left_q  <= left;
      right_q <= right;
    end
    if (phase_q == 2'd1) product_q <= left_q * right_q;
  end

  // Lines of the image that a tile of plan_o.rows rows sees, and what of them is loaded.
  wire [33:0] lines = 34'(product_q) + 34'(span_y_q) + 34'd1;
  wire whole = 16'(plan_o.columns) == item_i.columns[15:0] && item_i.width[15:0] <= 16'(PATCH);
  wire merge = whole && item_i.x_row == item_i.width;
  wire [6:0] most_rows = item_i.rows[15:0] > 16'd127 ? 7'd127 : item_i.rows[6:0];
  wire fan = !conv && item_i.rows == 32'd1 && item_i.columns == 32'd1 && item_i.y_channel == 32'd1;
  wire [15:0] loaded = whole || item_i.width[15:0] < 16'(plan_o.cells) ? item_i.width[15:0] : 16'(plan_o.cells);
  wire [16:0] rounded = 17'(loaded) + 17'd7;
  wire [33:0] plane = (34'(product_q) + 34'd7) & ~34'd7;
  wire [6:0] more_rows = plan_o.rows + 7'd1;
  wire [15:0] area = more_rows * plan_o.columns;

  always_ff @(posedge clk_i) begin
    done_o <= 1'b0;
    if (!rst_ni) begin
      step_q  <= IDLE;
      phase_q <= '0;
    end else if (start_i) begin
      step_q   <= HEAD;
      phase_q  <= '0;
      beside_q <= 1'b0;
      apart_q  <= 1'b1;
      reason_o <= '0;
    end else if (step_q == DONE) begin
      step_q <= IDLE;
      done_o <= 1'b1;
    end else if (step_q != IDLE) begin
      if (phase_q != 2'd2) begin
        phase_q    <= phase_q + 1'b1;
        dividend_q <= dividend;
        rest_q     <= '0;
        bits_q     <= 5'd16;
      end else if (divides && bits_q != '0) begin
        bits_q     <= bits_q - 1'b1;
        dividend_q <= dividend_q << 1;
        rest_q     <= rest >= 17'(divisor) ? rest - 17'(divisor) : rest;
        quotient_q <= {quotient_q[14:0], rest >= 17'(divisor)};
      end else begin
        phase_q <= '0;
        step_q  <= step_t'(step_q + 6'd1);
        unique case (step_q)
          HEAD: begin
            if (item_i.head[31:24] != 8'd1) reason_o <= 4'd1;
            else if (opcode > ADD || flagged) reason_o <= 4'd2;
            else if (opcode != END) begin
              if (!sizes) reason_o <= 4'd3;
              else if (!fits) reason_o <= 4'd4;
            end
            if (item_i.head[31:24] != 8'd1 || opcode > ADD || flagged || opcode == END || !sizes || !fits) begin
              step_q <= DONE;
            end
          end
          DEPTH: begin
            plan_o.depth <= quotient_q;
            if (rest_q != '0) begin
              reason_o <= 4'd4;
              step_q   <= DONE;
            end
          end
          OUTS: begin
            plan_o.outs <= quotient_q;
            if (rest_q != '0) begin
              reason_o <= 4'd4;
              step_q   <= DONE;
            end
          end
          SPAN_Y: begin
            span_y_q <= product_q[31:0];
            beside_q <= product_q < 50'(above);
          end
          SPAN_X: begin
            span_x_q <= product_q[11:0];
            apart_q  <= product_q < 50'(PATCH);  // until the next check: not too wide
            beside_q <= beside_q || product_q < 50'(aside);
          end
          LAST_Y: beside_q <= beside_q || product_q >= 50'(item_i.height) + 50'(above);
          LAST_X: begin
            apart_q <= 1'b1;
            if (beside_q || product_q >= 50'(item_i.width) + 50'(aside)) reason_o <= 4'd5;
            else if (!apart_q || item_i.k_columns > 32'd1024) reason_o <= 4'd6;
            else if (!in_range) reason_o <= 4'd7;
            if (beside_q || product_q >= 50'(item_i.width) + 50'(aside) || !apart_q
                || item_i.k_columns > 32'd1024 || !in_range) step_q <= DONE;
          end
          X_PLANE: begin
            plane_q        <= 52'(product_q) + 52'(item_i.width);
            plan_o.x_plane <= product_q[49:32] != '0 ? '1 : product_q[31:0] + item_i.width;
          end
          X_END: begin
            x_end_q <= 52'(item_i.x) + end_of;
            apart_q <= apart_q && item_i.x_row >= item_i.width && 52'(item_i.x_channel) >= plane_q;
          end
          Y_PLANE: plane_q <= 52'(product_q) + 52'(y_bytes);
          Y_END: begin
            y_end_q <= 52'(item_i.y) + end_of;
            apart_q <= apart_q && item_i.y_row >= 32'(y_bytes) && 52'(item_i.y_channel) >= plane_q
                && !(wide && (item_i.y[1:0] | item_i.y_channel[1:0] | item_i.y_row[1:0]) != '0);
          end
          B_PLANE: plane_q <= 52'(product_q) + 52'(item_i.columns);
          B_END: begin
            b_end_q <= 52'(item_i.b) + end_of;
            apart_q <= apart_q && !(reads_b && !(item_i.b_row >= item_i.columns && 52'(item_i.b_channel) >= plane_q));
          end
          WINDOW: begin
            taps_q <= bounded;
            if (!apart_q) reason_o <= 4'd8;
            else if (x_end_q > bound || (reads_b && b_end_q > bound)) reason_o <= 4'd9;
            else if (y_end_q > bound) reason_o <= 4'd10;
            else if (meets) reason_o <= 4'd11;
            if (!apart_q || x_end_q > bound || (reads_b && b_end_q > bound) || y_end_q > bound || meets) step_q <= DONE;
          end
          TAPS: taps_q <= bounded;
          WEIGHTS: begin
            if (conv && weights_end > 52'(weights_bytes_i)) reason_o <= 4'd12;
            else if (table_end > 34'(table_words_i)) reason_o <= 4'd13;
            if ((conv && weights_end > 52'(weights_bytes_i)) || table_end > 34'(table_words_i)) step_q <= DONE;
          end
          MOST: begin
            if (bounded > 34'h1_0000_0000) reason_o <= 4'd14;
            if (bounded > 34'h1_0000_0000 || add) step_q <= DONE;
            plan_o.alone   <= plan_o.depth == 16'd1 && plan_o.outs == 16'd1;
            plan_o.groups  <= item_i.groups[15:0];
            plan_o.taps    <= taps_q[31:0];
            plan_o.by_row  <= 1'b0;
            plan_o.columns <= full || item_i.columns[15:0] < 16'(COLS) ? item_i.columns[8:0] : 9'(COLS);
            plan_o.rows    <= 7'd1;
            full_q         <= full;
            flat_q         <= 1'b0;
            if (plan_o.depth == 16'd1 && plan_o.outs == 16'd1) begin
              plan_o.depth  <= item_i.groups[15:0] < 16'd16 ? item_i.groups[15:0] : 16'd16;
              plan_o.outs   <= 16'd16;
              plan_o.groups <= 16'((17'(item_i.groups[15:0]) + 17'd15) >> 4);
              plan_o.taps   <= {taps_q[27:0], 4'b0};
            end
          end
          SHARE: begin
            share_q <= quotient_q[12:0];
            if (!full_q) step_q <= CELLS;
          end
          MOST_LINES: begin
            // A small image at once; or all lines; or as many as fit; or some channels at a time.
            if (follows && item_i.x_channel == plan_o.x_plane && plan_o.x_plane <= 32'(share_q)
                && (item_i.rows == 32'd1 || (plan_o.x_plane <= 32'd64 && item_i.rows[15:0] <= 16'd127))) begin
              plan_o.rows <= item_i.rows[6:0];
              flat_q      <= 1'b1;
              step_q      <= LINES;
            end else if (quotient_q >= item_i.height[15:0]) begin
              plan_o.rows <= most_rows;
              step_q      <= REST;
            end else if (32'(quotient_q) <= span_y_q) begin
              step_q <= CELLS;
              if (plan_o.columns > 9'(COLS)) begin
                plan_o.columns <= 9'(COLS);
                full_q         <= 1'b0;
              end
            end
          end
          MOST_ROWS: plan_o.rows <= quotient_q >= 16'(most_rows) ? most_rows : quotient_q[6:0] + 7'd1;
          REST: begin
            modulo_q <= rest_q[4:0];
            sum_q    <= '0;
            tried_q  <= 7'd1;
            even_q   <= '0;
          end
          EVEN: begin
            // Rows that make whole tiles, if any do. Few, since multiplication waits for the first band; but bands
            // read the lines that they share twice.
            tried_q <= tried_q + 1'b1;
            sum_q   <= next_sum;
            step_q  <= EVEN;
            if (next_sum == '0 && even_q == '0 && 32'(tried_q) > span_y_q && {tried_q, 2'b00} >= 9'(plan_o.rows)) begin
              even_q <= tried_q;
            end
            if (tried_q == plan_o.rows) begin
              step_q <= LINES;
              if (even_q != '0) plan_o.rows <= even_q;
            end
          end
          CELLS: begin
            plan_o.cells <= product_q[12:0] + 13'(span_x_q) + 13'd1;
            step_q       <= full_q ? ROWS : LINES;
            if (product_q + 50'(span_x_q) + 50'd1 > 50'(PATCH)) begin
              plan_o.columns <= plan_o.columns - 1'b1;
              full_q         <= 1'b0;
              step_q         <= CELLS;
            end
          end
          ROWS: begin
            if (area <= 16'(COLS) && 16'(plan_o.rows) < item_i.rows[15:0]) begin
              plan_o.rows <= more_rows;
              step_q      <= ROWS;
            end
          end
          LINES: begin
            plan_o.lines <= lines < 34'(item_i.height) ? lines[15:0] : item_i.height[15:0];
            plan_o.seen  <= lines > 34'h1_ffff ? 18'h1_ffff : lines[17:0];
            plan_o.whole <= whole;
            plan_o.merge <= merge;
            plan_o.flat  <= flat_q;
            plan_o.pitch <= merge ? item_i.width[12:0] : {rounded[12:3], 3'b0};
          end
          PLANE: begin
            plan_o.plane <= flat_q ? plan_o.x_plane[12:0] : plane[12:0];
            if (!flat_q && plane > 34'(PATCH)) begin
              plan_o.rows <= plan_o.rows - 1'b1;
              step_q      <= LINES;
              if (plan_o.rows == 7'd1) begin
                plan_o.rows   <= 7'd1;
                plan_o.by_row <= 1'b1;
                plan_o.whole  <= 1'b0;
                plan_o.merge  <= 1'b0;
                plan_o.plane  <= 13'(PATCH);
                step_q        <= CHUNK;
              end
            end
          end
          CHUNK: begin
            plan_o.chunk  <= plan_o.depth < quotient_q ? plan_o.depth[12:0] : quotient_q[12:0];
            plan_o.single <= !plan_o.by_row && quotient_q >= plan_o.depth;
            plan_o.fan    <= fan && !plan_o.by_row && quotient_q >= plan_o.depth;
            plan_o.paired <= plan_o.alone && !plan_o.by_row && quotient_q >= plan_o.depth && !fan
                && (!conv || plan_o.taps[31:8] == '0);
          end
          ROW_STEP: plan_o.row_step <= product_q[11:0];
          ROW_STRIDE: plan_o.row_stride <= plan_o.fan ? plan_o.plane[11:0] : product_q[11:0];
          RESIDENT: begin
            plan_o.vectors  <= bounded[31:0];
            plan_o.resident <= bounded < 34'd3840;  // of 4096: the next group's first piece has a place, too
          end
          W_GROUP: plan_o.w_group <= product_q[31:0];
          X_GROUP: plan_o.x_group <= product_q[31:0];
          Y_GROUP: plan_o.y_group <= product_q[31:0];
          Y_BAND: plan_o.y_band <= product_q[31:0];
          DOWN: plan_o.down <= product_q[31:0];
          ACROSS: begin
            plan_o.across <= product_q[31:0];
          end
          default: ;
        endcase
      end
    end
  end

  wire unused = &{1'b0, rounded};

endmodule

`default_nettype wire
