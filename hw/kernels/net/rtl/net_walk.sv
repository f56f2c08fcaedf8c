// net_walk: walks through the groups, bands, tiles, blocks of 16 output channels and chunks of input channels of
// an instruction; reads what each needs into a free buffer, and says to the array what to do with it.
//
// A band is some rows of the result; what they see is read once where all channels fit on chip. Its tiles are so
// many of its pixels each, row after row; only the band's last one may have fewer.
`default_nettype none

module net_walk
  import net_types::*;
#(
    parameter int unsigned ADDR_WIDTH = 64,
    parameter int unsigned COLS       = 24  // pixels of a tile
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  start_i,
    input  wire logic                  ahead_i,     // of its turn: the first band only
    input  wire logic                  may_read_i,  // ahead of its turn
    input  wire logic [15:0]           channels_i,  // or only so many of the first channels
    input  wire logic                  may_job_i,
    input  wire item_t                 item_i,
    input  wire plan_t                 plan_i,
    input  wire logic [ADDR_WIDTH-1:0] arena_i,
    output logic                       busy_o,
    // what to read
    output logic                       cmd_valid_o,
    input  wire logic                  cmd_ready_i,
    output logic [ADDR_WIDTH-1:0]      cmd_addr_o,
    output logic [12:0]                cmd_bytes_o,
    // what was read
    input  wire logic                  valid_i,
    input  wire logic                  last_i,
    output logic                       write_o,
    output logic [9:0]                 word_o,      // the buffer is the highest bit
    output logic                       loaded_o,
    // a tile's weights
    output logic                       weights_valid_o,
    input  wire logic                  weights_ready_i,
    output logic                       weights_again_o,  // those of the tile before
    output logic [31:0]                weights_at_o,
    output logic [31:0]                weights_taps_o,
    output logic                       weights_paired_o,
    // to the array
    input  wire logic                  free_i,      // a buffer
    output logic                       job_valid_o,
    input  wire logic                  job_ready_i,
    output job_t                       job_o
);

  typedef enum logic [3:0] {IDLE, GROUP, BAND, MULTIPLY, TILE, WEIGHTS, BLOCK, CHUNK, WINDOW, BUFFER, COMMAND, JOB, NEXT} state_t;
  state_t state_q;

  // Where it is.
  logic [15:0] group_q, y_q, x_q, block_q, chunk_q, row_q;
  logic [31:0] x_base_q, y_base_q, w_base_q, y_down_q, y_tile_q, y_block_q, chunk_at_q, row_at_q, cmd_at_q, line_at_q;
  logic [15:0] out_q, depth_q;
  logic [15:0] pixels_q;                     // of the band, this tile's and those after it
  logic tile_q;                              // the band's first
  logic signed [17:0] down_q, across_q;      // in the image, of the band's first tap
  logic signed [34:0] window_q;              // by_row: the line that is looked at
  logic [1:0] buffers_q;                     // free ones
  logic buffer_q, again_q, first_q;
  logic asks_weights_q, weights_again_q, weights_paired_q;
  logic [15:0] channel_q, line_q;

  wire [15:0] left = item_i.channels[15:0] - out_q;
  wire [15:0] outs = plan_i.alone ? (left < 16'd16 ? left : 16'd16) : plan_i.outs;
  wire [15:0] rows_left = item_i.rows[15:0] - y_q;
  wire [15:0] columns_left = item_i.columns[15:0] - x_q;
  wire [6:0] rows = rows_left < 16'(plan_i.rows) ? rows_left[6:0] : plan_i.rows;
  wire [8:0] columns = columns_left < 16'(plan_i.columns) ? columns_left[8:0] : plan_i.columns;
  wire [15:0] outs_left = outs - block_q;
  wire [15:0] depth_left = depth_q - chunk_q;
  wire [12:0] channels = plan_i.by_row ? 13'd1 : depth_left < 16'(plan_i.chunk) ? depth_left[12:0] : plan_i.chunk;
  wire there = !window_q[34] && window_q < 35'(signed'({1'b0, item_i.height}));

  // The part of the image that the band sees.
  wire signed [18:0] bottom = 19'(down_q) + 19'(signed'({1'b0, plan_i.seen}));
  wire signed [18:0] right = 19'(across_q) + 19'(signed'({1'b0, plan_i.cells}));
  wire [15:0] first_line = plan_i.flat || down_q[17] ? '0 : down_q[15:0];
  wire [15:0] end_line = plan_i.flat || bottom > 19'(signed'({1'b0, item_i.height[15:0]})) ? item_i.height[15:0] : bottom[15:0];
  wire [15:0] lines = end_line - first_line;
  wire [15:0] first_cell = plan_i.whole || across_q[17] ? '0 : across_q[15:0];
  wire [15:0] end_cell = plan_i.whole || right > 19'(signed'({1'b0, item_i.width[15:0]})) ? item_i.width[15:0] : right[15:0];
  wire [15:0] cells = end_cell - first_cell;
  wire [11:0] above = 12'(first_line) - down_q[11:0];

  // Products of the band, one after the other: its first line in memory, bytes of a channel on chip, the lines
  // above the image, its pixels; and the bytes of a chunk.
  logic [2:0] product_q;
  logic [31:0] left_factor, factor_q;
  logic [15:0] right_factor, right_q;
  logic [31:0] made_q, first_at_q;
  logic [12:0] bytes_q, chunk_bytes_q;
  logic [11:0] above_at_q;
  logic [1:0] wait_q;

  always_comb begin
    {left_factor, right_factor} = {item_i.x_row, first_line};
    if (product_q == 3'd1) {left_factor, right_factor} = {32'(item_i.width[15:0]), lines};
    if (product_q == 3'd2) {left_factor, right_factor} = {32'(above), 16'(plan_i.pitch)};
    if (product_q == 3'd3) {left_factor, right_factor} = {32'(rows), 16'(columns)};
    if (state_q == WINDOW) {left_factor, right_factor} = {item_i.x_row, window_q[15:0]};
    if (state_q == CHUNK) {left_factor, right_factor} = {32'(plan_i.plane), 16'(channels)};
  end

  always_ff @(posedge clk_i) begin
    factor_q <= left_factor;
    right_q  <= right_factor;
    made_q   <= factor_q * right_q;
  end

  // Commands: a chunk, a channel, or a line each.
  logic [8:0] to_q, channel_to_q;
  logic place_ready;
  wire last_channel = plan_i.flat || 13'(channel_q) + 13'd1 == channels;
  wire last_line = plan_i.flat || plan_i.merge || plan_i.by_row || line_q + 16'd1 == lines;
  wire reads = plan_i.by_row ? there : (block_q == '0 && tile_q) || !plan_i.single;
  wire last_block = plan_i.fan || outs_left <= 16'd16;
  wire last_tile = pixels_q <= 16'(COLS);
  // Half of the columns are enough for this tile: two channels at a time.
  wire paired = plan_i.paired && !depth_q[0] && pixels_q <= 16'(COLS / 2);
  wire last_chunk = plan_i.by_row ? depth_left == 16'd1 && row_q + 16'd1 == item_i.k_rows[15:0]
      : depth_left <= 16'(plan_i.chunk);
  wire asked = cmd_valid_o && cmd_ready_i;

  wire may_read = !ahead_i || may_read_i || (16'(channel_q) < channels_i && chunk_q == '0 && !plan_i.flat);
  assign cmd_valid_o = state_q == COMMAND && place_ready && may_read;
  assign cmd_addr_o  = arena_i + ADDR_WIDTH'(line_at_q);
  assign cmd_bytes_o = plan_i.flat ? chunk_bytes_q : plan_i.merge ? bytes_q : cells[12:0];
  assign busy_o      = state_q != IDLE || asks_weights_q;

  logic place_valid, place_end;
  logic [9:0] place;
  logic [4:0] places;

  fifo #(
      .WIDTH(11),
      .DEPTH(16)
  ) waiting (
      .clk_i,
      .rst_ni,
      .valid_i(asked),
      .ready_o(place_ready),
      .data_i ({last_channel && last_line, buffer_q, to_q}),
      .valid_o(place_valid),
      .ready_i(valid_i && last_i),
      .data_o ({place_end, place}),
      .count_o(places)
  );

  logic [8:0] offset_q;
  assign write_o  = valid_i && place_valid;
  assign word_o   = {place[9], place[8:0] + offset_q};
  assign loaded_o = valid_i && last_i && place_end;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) offset_q <= '0;
    else if (valid_i) offset_q <= last_i ? '0 : offset_q + 1'b1;
  end

  assign weights_valid_o = asks_weights_q;
  assign weights_again_o = weights_again_q;
  assign weights_paired_o = weights_paired_q;
  assign weights_at_o    = w_base_q;
  assign weights_taps_o  = plan_i.alone ? (plan_i.taps >> 4) * 32'(depth_q[4:0]) : plan_i.taps;

  always_comb begin
    job_o.buffer        = buffer_q;
    job_o.load          = reads;
    job_o.free          = plan_i.single ? last_block && last_tile : reads;
    job_o.tile          = block_q == '0 && chunk_q == '0 && row_q == '0;
    job_o.band          = tile_q;
    job_o.first         = chunk_q == '0 && row_q == '0;
    job_o.last          = last_chunk;
    job_o.there         = !plan_i.by_row || there;
    job_o.channels      = plan_i.fan ? 13'd1 : channels;
    job_o.channel       = chunk_q[3:0];
    job_o.cell_at       = across_q[11:0] - first_cell[11:0] - (plan_i.by_row ? '0 : above_at_q);
    job_o.y             = plan_i.by_row ? '0 : down_q;
    job_o.x             = across_q;
    job_o.place.out     = out_q + block_q;
    job_o.place.outs    = plan_i.fan ? 5'd1 : outs_left < 16'd16 ? outs_left[4:0] : 5'd16;
    job_o.place.y       = y_block_q;
    job_o.place.paired  = paired;
    job_o.place.pixels  = plan_i.fan ? outs[4:0] : last_tile ? pixels_q[4:0] : 5'(COLS);
  end
  assign job_valid_o = state_q == JOB && (!ahead_i || may_job_i);

  wire wide = item_i.head[8];
  wire signed [17:0] top = -18'(item_i.pad_y[16:0]);
  wire signed [17:0] begin_x = -18'(item_i.pad_x[16:0]);
  wire [31:0] x_offset = plan_i.flat ? '0 : first_at_q + 32'(first_cell);
  wire takes = state_q == BUFFER && buffers_q != '0;
  wire last_column = columns_left <= 16'(plan_i.columns);
  wire last_row = rows_left <= 16'(plan_i.rows);
  wire last_group = group_q + 16'd1 == plan_i.groups;

  // Bytes from chunk to chunk: as many channels as were taken.
  logic [31:0] skip_q;
  always_ff @(posedge clk_i) skip_q <= item_i.x_channel * 32'(channels);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) buffers_q <= 2'd2;
    else buffers_q <= buffers_q + 2'(free_i) - 2'(takes);
  end

  always_ff @(posedge clk_i) begin
    wait_q <= wait_q == '0 ? '0 : wait_q - 1'b1;
    if (!rst_ni || weights_ready_i) asks_weights_q <= 1'b0;
    if (!rst_ni) begin
      state_q  <= IDLE;
      buffer_q <= 1'b0;
    end else if (start_i) begin
      state_q  <= GROUP;
      first_q  <= 1'b1;
      group_q  <= '0;
      out_q    <= '0;
      x_base_q <= item_i.x;
      y_base_q <= item_i.y;
      w_base_q <= item_i.weights;
    end else begin
      unique case (state_q)
        GROUP: begin
          depth_q  <= plan_i.alone ? outs : plan_i.depth;
          y_q      <= '0;
          x_q      <= '0;
          down_q   <= top;
          across_q <= begin_x;
          y_down_q <= y_base_q;
          again_q  <= 1'b0;
          state_q  <= BAND;
        end
        BAND: if (first_q || !ahead_i) begin
          first_q   <= 1'b0;
          y_tile_q  <= y_down_q + (wide ? 32'(x_q) << 2 : 32'(x_q));
          tile_q    <= 1'b1;
          product_q <= '0;
          wait_q    <= 2'd2;
          state_q   <= MULTIPLY;
        end
        MULTIPLY: begin
          if (wait_q == '0) begin
            wait_q    <= 2'd2;
            product_q <= product_q + 1'b1;
            unique case (product_q)
              3'd0: first_at_q <= made_q;
              3'd1: bytes_q <= made_q[12:0];
              3'd2: above_at_q <= made_q[11:0];
              default: begin
                pixels_q <= made_q[15:0];
                state_q  <= TILE;
              end
            endcase
          end
        end
        TILE: begin
          y_block_q <= y_tile_q;
          block_q   <= '0;
          state_q   <= WEIGHTS;
        end
        WEIGHTS: if (!asks_weights_q) begin
          asks_weights_q  <= 1'b1;
          weights_again_q <= again_q && plan_i.resident;
          weights_paired_q <= paired;
          again_q         <= 1'b1;
          state_q         <= BLOCK;
        end
        BLOCK: begin
          chunk_q    <= '0;
          chunk_at_q <= x_base_q;
          row_q      <= '0;
          window_q   <= 35'(down_q);
          wait_q     <= 2'd2;
          state_q    <= plan_i.by_row ? WINDOW : CHUNK;
        end
        WINDOW: if (wait_q == '0) begin
          row_at_q <= made_q;
          wait_q   <= 2'd2;
          state_q  <= CHUNK;
        end
        CHUNK: if (wait_q == '0) begin
          chunk_bytes_q <= made_q[12:0];
          state_q       <= reads ? BUFFER : JOB;
        end
        BUFFER: begin
          channel_q    <= '0;
          line_q       <= '0;
          to_q         <= '0;
          channel_to_q <= plan_i.plane[11:3];
          cmd_at_q     <= chunk_at_q + x_offset;
          line_at_q    <= plan_i.by_row ? chunk_at_q + row_at_q + 32'(first_cell) : chunk_at_q + x_offset;
          if (takes) begin
            buffer_q <= !buffer_q;
            state_q  <= JOB;
          end
        end
        COMMAND: if (asked) begin
          line_q    <= last_line ? '0 : line_q + 1'b1;
          line_at_q <= last_line ? cmd_at_q + item_i.x_channel : line_at_q + item_i.x_row;
          to_q      <= last_line ? channel_to_q : to_q + plan_i.pitch[11:3];
          if (last_line) begin
            channel_q    <= channel_q + 1'b1;
            cmd_at_q     <= cmd_at_q + item_i.x_channel;
            channel_to_q <= channel_to_q + plan_i.plane[11:3];
            if (last_channel) state_q <= NEXT;
          end
        end
        // The job is told first: the array begins with the first channel that is there.
        JOB: if (job_ready_i && job_valid_o) state_q <= reads ? COMMAND : NEXT;
        NEXT: begin
          wait_q <= 2'd2;
          if (!last_chunk) begin
            state_q <= plan_i.by_row ? WINDOW : CHUNK;
            if (plan_i.by_row && row_q + 16'd1 != item_i.k_rows[15:0]) begin
              row_q    <= row_q + 1'b1;
              window_q <= window_q + 35'(item_i.step_y);
            end else begin
              row_q      <= '0;
              window_q   <= 35'(down_q);
              chunk_q    <= chunk_q + 16'(channels);
              chunk_at_q <= chunk_at_q + skip_q;
            end
          end else if (!last_block) begin
            block_q   <= block_q + 16'd16;
            y_block_q <= y_block_q + (item_i.y_channel << 4);
            state_q   <= BLOCK;
          end else if (!last_tile) begin
            pixels_q <= pixels_q - 16'(COLS);
            tile_q   <= 1'b0;
            y_tile_q <= y_tile_q + (wide ? 32'(4 * COLS) : 32'(COLS));
            state_q  <= TILE;
          end else if (!last_column) begin
            x_q      <= x_q + 16'(plan_i.columns);
            across_q <= across_q + plan_i.across[17:0];
            state_q  <= BAND;
          end else if (!last_row) begin
            x_q      <= '0;
            across_q <= begin_x;
            y_q      <= y_q + 16'(plan_i.rows);
            down_q   <= down_q + plan_i.down[17:0];
            y_down_q <= y_down_q + plan_i.y_band;
            state_q  <= BAND;
          end else if (!last_group) begin
            if (!asks_weights_q) begin  // of this group
              group_q  <= group_q + 1'b1;
              out_q    <= out_q + plan_i.outs;
              x_base_q <= x_base_q + plan_i.x_group;
              y_base_q <= y_base_q + plan_i.y_group;
              w_base_q <= w_base_q + plan_i.w_group;
              state_q  <= GROUP;
            end
          end else begin
            state_q <= IDLE;
          end
        end
        default: ;
      endcase
    end
  end

  wire unused = &{1'b0, item_i, plan_i, places, bottom, right, cells, made_q};

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) valid_i |-> place_valid)
  else $error("net_walk: a word that nobody asked for");
`endif

endmodule

`default_nettype wire
