// gemm_panel_a: two panels of a, a bank a row of the array, and the control of the rows.
//
// Row r of the array does what row 0 did SKEW * r cycles before: what goes in here for row 0 (buffer,
// tile, k, first) passes by the rows in a shift register and reads the bank of each one in turn.
// A word holds bytes of neighbouring k, so a bank gives a new word every few cycles.
`default_nettype none

module gemm_panel_a #(
    parameter int unsigned DATA_WIDTH = 64,
    parameter int unsigned ROWS       = 16,
    parameter int unsigned TILES      = 8,    // rows of the array in a panel's rows
    parameter int unsigned DEPTH      = 256,
    parameter int unsigned SKEW       = 8
) (
    input  wire logic                                       clk_i,
    // from memory
    input  wire logic                                       write_i,
    input  wire logic                                       write_buffer_i,
    input  wire logic [$clog2(ROWS * TILES) - 1:0]          write_row_i,
    input  wire logic [$clog2(8 * DEPTH / DATA_WIDTH) - 1:0] write_word_i,
    input  wire logic [DATA_WIDTH-1:0]                      write_data_i,
    // to the array
    input  wire logic                                       buffer_i,
    input  wire logic [$clog2(TILES) - 1:0]                 tile_i,
    input  wire logic [$clog2(DEPTH) - 1:0]                 k_i,
    input  wire logic                                       first_i,   // k of a new tile
    output logic [8*ROWS-1:0]                               a_o,       // two cycles later, a byte a row
    output logic [ROWS-1:0]                                 first_o    // with a_o
);

  localparam int unsigned BANK_BITS = $clog2(ROWS);
  localparam int unsigned TILE_BITS = $clog2(TILES);
  localparam int unsigned WORD_BITS = $clog2(8 * DEPTH / DATA_WIDTH);
  localparam int unsigned BYTE_BITS = $clog2(DATA_WIDTH / 8);
  localparam int unsigned INDEX_BITS = 1 + TILE_BITS + WORD_BITS;
  localparam int unsigned CONTROL_BITS = INDEX_BITS + BYTE_BITS + 1;
  localparam int unsigned LENGTH = SKEW * (ROWS - 1);  // cycles from row 0 to the last one

  logic [LENGTH*CONTROL_BITS-1:0] chain_q;
  wire [CONTROL_BITS-1:0] control = {first_i, buffer_i, tile_i, k_i};
  wire [(LENGTH+1)*CONTROL_BITS-1:0] chain = {chain_q, control};

  always_ff @(posedge clk_i) begin
    chain_q <= chain[LENGTH*CONTROL_BITS-1:0];
  end

  wire [BANK_BITS-1:0] bank = write_row_i[BANK_BITS-1:0];
  wire [INDEX_BITS-1:0] write_index = {write_buffer_i, write_row_i[BANK_BITS+:TILE_BITS], write_word_i};

  for (genvar r = 0; r < ROWS; ++r) begin : gen_row
    wire first_r;
    wire [INDEX_BITS-1:0] index_r;
    wire [BYTE_BITS-1:0] byte_r;
    assign {first_r, index_r, byte_r} = chain[r*SKEW*CONTROL_BITS+:CONTROL_BITS];

    (* ram_style = "block" *) logic [DATA_WIDTH-1:0] words[2 ** INDEX_BITS];
    logic [DATA_WIDTH-1:0] word_q;
    logic [BYTE_BITS-1:0] byte_q;
    logic [7:0] a_q;
    logic first_q, first_q2;

    always_ff @(posedge clk_i) begin
      if (write_i && bank == BANK_BITS'(r)) words[write_index] <= write_data_i;
    end

    always_ff @(posedge clk_i) begin
      word_q   <= words[index_r];
      byte_q   <= byte_r;
      first_q  <= first_r;
      a_q      <= word_q[8*byte_q+:8];
      first_q2 <= first_q;
    end

    assign a_o[8*r+:8] = a_q;
    assign first_o[r]  = first_q2;
  end

`ifndef SYNTHESIS
  initial assert (ROWS >= 2 && 2 ** BANK_BITS == ROWS && 2 ** TILE_BITS == TILES && TILES >= 2)
  else $fatal(1, "gemm_panel_a: %0d rows in %0d tiles; expected powers of two from 2 on", ROWS, TILES);
`endif

endmodule

`default_nettype wire
