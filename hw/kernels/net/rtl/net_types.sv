// net_types: an instruction of kernel net, word 0 lowest (docs/net.md), and how it is cut into tiles.
`default_nettype none

/* verilator lint_off UNUSEDPARAM */  // each is used by some unit
package net_types;

  localparam logic [7:0] END = 8'd0, CONV = 8'd1, MAX = 8'd2, ADD = 8'd4;

  typedef struct packed {
    logic [31:0] b_zero, b_row, b_channel, b;
    logic [31:0] high, low, y_zero, x_zero, entry, weights;
    logic [31:0] step_x, step_y, pad_x, pad_y, stride_x, stride_y, k_columns, k_rows, groups;
    logic [31:0] columns, rows, outs, width, height, channels;
    logic [31:0] y_row, y_channel, y, x_row, x_channel, x, head;
  } item_t;

  // A group is what shares its input channels; where each channel has its own, 16 of them.
  typedef struct packed {
    logic alone;            // each output channel has one input channel of its own
    logic whole;            // lines of the image are loaded whole
    logic merge;            // and follow each other in memory
    logic flat;             // as do the channels, and the band sees the whole image
    logic by_row;           // a channel's lines do not fit on chip: a row of the window at a time
    logic single;           // all channels fit at once
    logic resident;         // the group's weights fit on chip
    logic fan;              // 16 channels of one result each: side by side, as a tile's pixels
    logic paired;           // of tiles that need half of the columns, two channels may be multiplied at a time
    logic [15:0] groups;    // how many
    logic [15:0] depth;     // input channels of a group
    logic [15:0] outs;      // output channels of a group
    logic [31:0] taps;      // products of an element of the result, in a group
    logic [31:0] vectors;   // of weights, in a group
    logic [31:0] x_group, y_group, w_group;  // bytes from group to group
    logic [31:0] y_band;    // bytes of the result from band to band, down
    logic [6:0]  rows;      // of a band: what is on chip at a time; tiles are cut from it, pixel by pixel
    logic [8:0]  columns;
    logic [12:0] cells;     // that a row of the band sees
    logic [15:0] lines;     // that are on chip at most
    logic [17:0] seen;      // that the band sees, those beside the image included
    logic [12:0] pitch, plane;               // bytes on chip from line to line, from channel to channel
    logic [12:0] chunk;     // channels that are on chip at a time
    logic [11:0] row_step, row_stride;       // step_y * pitch, stride_y * pitch
    logic [31:0] down, across;               // of the image, from band to band
    logic [31:0] x_plane;   // bytes of a channel in memory
  } plan_t;

  // From a tile to its results: side by side in memory.
  typedef struct packed {
    logic [15:0] out;       // its first output channel
    logic [4:0]  outs;
    logic [31:0] y;         // where its first result goes
    logic [4:0]  pixels;
    logic        paired;    // odd channels are in the columns of the upper half
  } place_t;

  // What the array does at a time: some channels of a tile.
  typedef struct packed {
    logic        buffer, load, free;         // load: its bytes have to be waited for
    logic        tile;                       // the first of its tile
    logic        band;                       // and that the first of its band
    logic        first, last;                // of the tile's channels
    logic        there;                      // by_row: this row of the window is within the image
    logic [12:0] channels;
    logic [3:0]  channel;                    // alone: the first one's row of the array
    logic [11:0] cell_at;
    logic signed [17:0] y, x;                // in the image, of the band's first tap
    place_t      place;
  } job_t;

endpackage

`default_nettype wire
