// net_drain: takes a tile of sums from the array and gives them to net_store, four pixels of a channel at a time,
// with that channel's bias and multiplier. The tile stays as it is; a channel moves out of it a register ahead.
`default_nettype none

module net_drain
  import net_types::*;
#(
    parameter int unsigned ROWS       = 16,
    parameter int unsigned COLS       = 24,
    parameter int unsigned ADDR_WIDTH = 64
) (
    input  wire logic                     clk_i,
    input  wire logic                     rst_ni,
    input  wire logic                     start_i,
    input  wire item_t                    item_i,
    input  wire plan_t                    plan_i,
    input  wire logic [ADDR_WIDTH-1:0]    tables_i,
    output logic                          busy_o,
    // sums
    output logic                          ready_o,
    input  wire logic                     valid_i,
    input  wire place_t                   place_i,
    input  wire logic [32*COLS*ROWS-1:0]  sums_i,
    // bias and multiplier
    output logic                          cmd_valid_o,
    input  wire logic                     cmd_ready_i,
    output logic [ADDR_WIDTH-1:0]         cmd_addr_o,
    output logic [31:0]                   cmd_bytes_o,
    input  wire logic                     entry_valid_i,
    output logic                          entry_ready_o,
    input  wire logic [63:0]              entry_i,
    // groups of sums
    output logic                          valid_o,
    input  wire logic                     ready_i,
    output logic                          first_o,   // of a line
    output logic                          last_o,
    output logic [31:0]                   at_o,      // the line in the arena, and its bytes
    output logic [12:0]                   bytes_o,
    output logic [2:0]                    count_o,
    output logic [127:0]                  sums_o,
    output logic [31:0]                   bias_o,
    output logic [31:0]                   factor_o
);

  typedef enum logic [1:0] {IDLE, ASK, FILL, SEND} state_t;
  state_t state_q;
  place_t place_q;
  logic [32*COLS-1:0] tile_q[ROWS];
  logic [32*COLS-1:0] sums_q, next_q;
  logic [$clog2(ROWS)-1:0] ahead_q;
  logic [1:0] moves_q;  // until the first channel is there
  logic known_q;
  logic [15:0] known_out_q;
  logic [4:0] entry_q, channel_q;
  logic [5:0] line_q;
  logic [6:0] done_q;
  logic [31:0] channel_at_q, at_q;
  logic [63:0] table_q[ROWS];

  wire conv = item_i.head[7:0] == CONV;
  wire scaled = item_i.head[7:0] != MAX;
  wire wide = item_i.head[8];
  wire [4:0] entries = conv ? place_q.outs : 5'd1;
  wire [31:0] entry_at = item_i.entry + (conv ? {15'b0, place_q.out, 1'b0} : '0);
  wire known = !scaled || (known_q && (!conv || known_out_q == place_q.out));

  wire [11:0] area = place_q.rows * place_q.columns;
  wire [6:0] length = plan_i.y_merge ? area[6:0] : 7'(place_q.columns);
  wire [6:0] left = length - done_q;
  wire last_line = plan_i.y_merge || line_q + 6'd1 == place_q.rows;
  wire last_channel = channel_q + 5'd1 == place_q.outs;
  wire send = valid_o && ready_i;
  wire moves = moves_q != '0 || (send && last_o && last_line);

  assign ready_o       = state_q == IDLE;
  assign busy_o        = state_q != IDLE;
  assign cmd_valid_o   = state_q == ASK && !known;
  assign cmd_addr_o    = tables_i + ADDR_WIDTH'({entry_at, 2'b00});
  assign cmd_bytes_o   = {24'b0, entries, 3'b000};
  assign entry_ready_o = state_q == FILL;
  assign valid_o       = state_q == SEND && moves_q == '0;
  assign first_o       = done_q == '0;
  assign last_o        = left <= 7'd4;
  assign count_o       = last_o ? left[2:0] : 3'd4;
  assign at_o          = at_q;
  assign bytes_o       = wide ? {4'b0, length, 2'b00} : 13'(length);
  assign sums_o        = sums_q[127:0];
  assign {factor_o, bias_o} = !scaled ? {32'h3f80_0000, 32'd0} : table_q[conv ? channel_q[3:0] : 4'd0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= IDLE;
    end else begin
      unique case (state_q)
        IDLE: if (valid_i) state_q <= ASK;
        ASK: begin
          if (known) state_q <= SEND;
          else if (cmd_ready_i) state_q <= FILL;
        end
        FILL: if (entry_valid_i && entry_q + 5'd1 == entries) state_q <= SEND;
        default: if (send && last_o && last_line && last_channel) state_q <= IDLE;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) known_q <= 1'b0;
    if (valid_i && ready_o) begin
      place_q      <= place_i;
      for (int unsigned r = 0; r < ROWS; ++r) tile_q[r] <= sums_i[32*COLS*r+:32*COLS];
      ahead_q      <= '0;
      moves_q      <= 2'd2;
      channel_at_q <= place_i.y;
      at_q         <= place_i.y;
      channel_q    <= '0;
      line_q       <= '0;
      done_q       <= '0;
      entry_q      <= '0;
    end
    if (state_q == FILL && entry_valid_i) begin
      table_q[entry_q[3:0]] <= entry_i;
      entry_q               <= entry_q + 1'b1;
      known_q               <= 1'b1;
      known_out_q           <= place_q.out;
    end
    // A channel's first pixels are lowest; what was sent goes, at its end all that is left of the channel.
    if (moves) begin
      sums_q  <= next_q;
      next_q  <= tile_q[ahead_q];
      ahead_q <= ahead_q + 1'b1;
      moves_q <= moves_q == '0 ? '0 : moves_q - 1'b1;
    end else if (send) begin
      sums_q <= sums_q >> {count_o, 5'b0};
    end
    if (send) begin
      done_q <= done_q + 7'(count_o);
      if (last_o) begin
        done_q <= '0;
        line_q <= line_q + 1'b1;
        at_q   <= at_q + item_i.y_row;
        if (last_line) begin
          line_q       <= '0;
          channel_q    <= channel_q + 1'b1;
          channel_at_q <= channel_at_q + item_i.y_channel;
          at_q         <= channel_at_q + item_i.y_channel;
        end
      end
    end
  end

  wire unused = &{1'b0, item_i, plan_i, place_q, area};

endmodule

`default_nettype wire
