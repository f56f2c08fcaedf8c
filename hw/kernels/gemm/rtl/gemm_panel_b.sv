// gemm_panel_b: two panels of b. A cycle reads a row of one tile, COLS neighbouring bytes, from as
// many banks as it has bus words.
`default_nettype none

module gemm_panel_b #(
    parameter int unsigned DATA_WIDTH = 64,
    parameter int unsigned COLS       = 32,
    parameter int unsigned TILES      = 4,   // columns of the array in a panel's columns
    parameter int unsigned DEPTH      = 256
) (
    input  wire logic                                              clk_i,
    // from memory
    input  wire logic                                              write_i,
    input  wire logic                                              write_buffer_i,
    input  wire logic [$clog2(DEPTH) - 1:0]                        write_row_i,
    input  wire logic [$clog2(8 * COLS * TILES / DATA_WIDTH) - 1:0] write_word_i,
    input  wire logic [DATA_WIDTH-1:0]                             write_data_i,
    // to the array
    input  wire logic                                              buffer_i,
    input  wire logic [$clog2(TILES) - 1:0]                        tile_i,
    input  wire logic [$clog2(DEPTH) - 1:0]                        k_i,
    output logic [8*COLS-1:0]                                      b_o  // a cycle later
);

  localparam int unsigned BANKS = 8 * COLS / DATA_WIDTH;
  localparam int unsigned BANK_BITS = $clog2(BANKS);
  localparam int unsigned TILE_BITS = $clog2(TILES);
  localparam int unsigned INDEX_BITS = 1 + TILE_BITS + $clog2(DEPTH);

  wire [INDEX_BITS-1:0] write_index = {write_buffer_i, write_word_i[BANK_BITS+:TILE_BITS], write_row_i};
  wire [INDEX_BITS-1:0] index = {buffer_i, tile_i, k_i};

  for (genvar i = 0; i < BANKS; ++i) begin : gen_bank
    (* ram_style = "block" *) logic [DATA_WIDTH-1:0] words[2 ** INDEX_BITS];
    logic [DATA_WIDTH-1:0] word_q;
    wire chosen;
    if (BANKS == 1) begin : gen_one
      assign chosen = 1'b1;
    end else begin : gen_several
      assign chosen = write_word_i[BANK_BITS-1:0] == BANK_BITS'(i);
    end

    always_ff @(posedge clk_i) begin
      if (write_i && chosen) words[write_index] <= write_data_i;
    end

    always_ff @(posedge clk_i) begin
      word_q <= words[index];
    end

    assign b_o[DATA_WIDTH*i+:DATA_WIDTH] = word_q;
  end

`ifndef SYNTHESIS
  initial assert (BANKS >= 1 && DATA_WIDTH * BANKS == 8 * COLS && 2 ** TILE_BITS == TILES && TILES >= 2)
  else $fatal(1, "gemm_panel_b: %0d columns of bytes in words of %0d bits", COLS, DATA_WIDTH);
`endif

endmodule

`default_nettype wire
