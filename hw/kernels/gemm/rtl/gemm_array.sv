// gemm_array: ROWS x COLS multipliers and sums, output stationary. It never stops: nothing here has an
// enable that comes from outside of its row.
//
// A cycle multiplies a byte of a for each row with a row of b for all. Row r works GROUPS cycles after
// row r - 1: the bytes of b pass from row to row through small memories. So the rows finish their
// tiles one after the other. Each keeps its sums in registers beside them, while it begins the next
// tile, and sends LANES of them a cycle; these shift from row to row down to the last one. A bit that
// passes the rows with the tile's last k says when: all wires go from a row to the next.
//
// The rows below DSP_ROWS make two products in a DSP48E1 (25 x 18 bit): the weights share the 25-bit
// operand, 16 bits apart, through its pre-adder. The low product fits 16 bits
// (|-128 * -128| = 2^14) and takes one from the high one where it is negative: its sign bit is added
// again, with the sum. The other rows are made of LUTs: a's digits of base 4, -2 to 2, choose what is
// added up. A negative one takes the complement and adds one, as the carry into its adder; the first
// digit has none, so its one is added with the sum, too.
`default_nettype none

module gemm_array #(
    parameter int unsigned ROWS     = 16,
    parameter int unsigned COLS     = 32,
    parameter int unsigned DSP_ROWS = 12,
    parameter int unsigned LANES    = 4,   // sums drained in a cycle
    parameter int unsigned SUM_BITS = 23   // of DEPTH products: 15 + log2(DEPTH)
) (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic [8*COLS-1:0]         b_i,      // for row 0
    input  wire logic [8*ROWS-1:0]         a_i,      // a cycle after b_i, each row at its own time
    input  wire logic [ROWS-1:0]           first_i,  // with a_i: a new tile
    input  wire logic                      last_i,   // with a_i, for row 0: the last k of its tile
    // the sums of the tile, row by row
    output logic                           drain_o,  // the tile's first ones come with the next cycle
    output logic                           valid_o,
    output logic [$clog2(ROWS) - 1:0]      row_o,
    output logic [$clog2(COLS/LANES)-1:0]  group_o,
    output logic [32*LANES-1:0]            sums_o
);

  localparam int unsigned WORDS = COLS / 4;  // of four bytes, in a row of b
  localparam int unsigned GROUPS = COLS / LANES;
  localparam int unsigned ROW_BITS = $clog2(ROWS);
  localparam int unsigned GROUP_BITS = $clog2(GROUPS);
  localparam int unsigned BAND = ROWS < 4 ? ROWS : 4;  // four choices are a LUT6
  localparam int unsigned BANDS = ROWS / BAND;
  localparam int unsigned BAND_BITS = $clog2(BAND);

  // b passes from row to row; each stage holds it for as long as a row takes to drain. Every row counts
  // for itself, from another number on.
  logic [8*COLS-1:0] b[ROWS];

  assign b[0] = b_i;
  for (genvar r = 1; r < ROWS; ++r) begin : gen_pass
    (* ram_style = "distributed" *) logic [8*COLS-1:0] held[GROUPS];
    logic [GROUP_BITS-1:0] turn_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) turn_q <= GROUP_BITS'(r);
      else turn_q <= turn_q + 1'b1;
    end
    always_ff @(posedge clk_i) held[turn_q] <= b[r-1];
    assign b[r] = held[turn_q];
  end

  // Operands, products (two in 32 bits) and sums. Column 4 w + i of row r is sums_q[i][r][w]: loops
  // over w that stay loops in a simulator's C++ become vector instructions.
  logic [31:0] b_d[ROWS][WORDS], b_q[ROWS][WORDS];
  logic [31:0] products_d[2][ROWS][WORDS], products_q[2][ROWS][WORDS];
  logic [31:0] sums_d[4][ROWS][WORDS], sums_q[4][ROWS][WORDS];
  logic [ROWS-1:0] first_q, low_one_d, low_one_q;

`ifdef SYNTHESIS
  // A digit of a times w, less one if it is negative: a[2j+1:2j-1] stands for 0, 1, 1, 2, -2, -1, -1, 0.
  function automatic logic [9:0] part(input logic [7:0] w, input logic [2:0] digit);
    logic [9:0] size;
    size = digit[1] != digit[0] ? 10'(signed'(w)) : digit[2] != digit[1] ? 10'(signed'({w, 1'b0})) : '0;
    return digit[2] ? ~size : size;
  endfunction
`endif

  // w * a, less one if the first digit of a is negative. Simulators take it by the processor's multiplier;
  // the bench checks both ways.
  function automatic logic [15:0] product(input logic [7:0] w, input logic [7:0] a);
`ifdef SYNTHESIS
    logic [9:0] s0, s1, s2, s3;
    s0 = part(w, {a[1:0], 1'b0});
    s1 = 10'(signed'(s0[9:2])) + part(w, a[3:1]) + 10'(a[3]);
    s2 = 10'(signed'(s1[9:2])) + part(w, a[5:3]) + 10'(a[5]);
    s3 = 10'(signed'(s2[9:2])) + part(w, a[7:5]) + 10'(a[7]);
    return {s3, s2[1:0], s1[1:0], s0[1:0]};
`else
    return 16'(signed'(w)) * 16'(signed'(a)) - 16'(a[1]);
`endif
  endfunction

  for (genvar r = 0; r < ROWS; ++r) begin : gen_words
    assign low_one_d[r] = r >= DSP_ROWS && a_i[8*r+1];
    for (genvar w = 0; w < WORDS; ++w) begin : gen_word
      assign b_d[r][w] = b[r][32*w+:32];
    end
  end

  always_comb begin
    /*verilator unroll_disable*/
    for (int unsigned r = 0; r < DSP_ROWS; ++r) begin
      /*verilator unroll_disable*/
      for (int unsigned w = 0; w < WORDS; ++w) begin
        products_d[0][r][w] = (32'(signed'({b_q[r][w][15:8], 16'b0})) + 32'(signed'(b_q[r][w][7:0])))
            * 32'(signed'(a_i[8*r+:8]));
        products_d[1][r][w] = (32'(signed'({b_q[r][w][31:24], 16'b0})) + 32'(signed'(b_q[r][w][23:16])))
            * 32'(signed'(a_i[8*r+:8]));
      end
    end
    /*verilator unroll_disable*/
    for (int unsigned r = DSP_ROWS; r < ROWS; ++r) begin
      /*verilator unroll_disable*/
      for (int unsigned w = 0; w < WORDS; ++w) begin
        products_d[0][r][w] = {product(b_q[r][w][15:8], a_i[8*r+:8]), product(b_q[r][w][7:0], a_i[8*r+:8])};
        products_d[1][r][w] = {product(b_q[r][w][31:24], a_i[8*r+:8]), product(b_q[r][w][23:16], a_i[8*r+:8])};
      end
    end
  end

  always_comb begin
    /*verilator unroll_disable*/
    for (int unsigned p = 0; p < 2; ++p) begin
      /*verilator unroll_disable*/
      for (int unsigned r = 0; r < ROWS; ++r) begin
        /*verilator unroll_disable*/
        for (int unsigned w = 0; w < WORDS; ++w) begin
          sums_d[2*p][r][w] = 32'(signed'(products_q[p][r][w][15:0]))
              + (sums_q[2*p][r][w] & {32{!first_q[r]}}) + 32'(low_one_q[r]);
          sums_d[2*p+1][r][w] = 32'(signed'(products_q[p][r][w][31:16]))
              + (sums_q[2*p+1][r][w] & {32{!first_q[r]}})
              + 32'(r < DSP_ROWS ? products_q[p][r][w][15] : low_one_q[r]);
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    b_q        <= b_d;
    products_q <= products_d;
    first_q    <= first_i;
    low_one_q  <= low_one_d;
    sums_q     <= sums_d;
  end

  // Bit i is high i + 1 cycles after the tile's last bytes of a have come for row 0. Row r is summed up
  // GROUPS r + 2 cycles after that; the next tile takes its sums from the cycle after on.
  localparam int unsigned LAST_ROW = GROUPS * (ROWS - 1);
  localparam int unsigned PASSES = (LAST_ROW > BANDS + 2 ? LAST_ROW : BANDS + 2) + 1;
  logic [PASSES-1:0] passes_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) passes_q <= '0;
    else passes_q <= {passes_q[PASSES-2:0], last_i};
  end

  logic [32*LANES-1:0] kept_q[BANDS][GROUPS];
  logic [32*LANES-1:0] shift_q[BANDS];

  for (genvar s = 0; s < BANDS; ++s) begin : gen_band
    // A row that is summed up with the next cycle. Each group of columns has a copy of which one it is.
    logic [BAND-1:0] ends;
    logic [BAND_BITS-1:0] row;

    for (genvar i = 0; i < BAND; ++i) begin : gen_row
      assign ends[i] = passes_q[GROUPS*(BAND*s+i)];
    end

    always_comb begin
      row = '0;
      for (int unsigned i = 0; i < BAND; ++i) row = row | (ends[i] ? BAND_BITS'(i) : '0);
    end

    for (genvar g = 0; g < GROUPS; ++g) begin : gen_group
      logic keep;
      logic [BAND_BITS-1:0] kept_row;

      replica #(
          .WIDTH(1 + BAND_BITS)
      ) choice (
          .clk_i,
          .data_i({ends != '0, row}),
          .data_o({keep, kept_row})
      );

      always_ff @(posedge clk_i) begin
        if (keep) begin
          for (int unsigned lane = 0; lane < LANES; ++lane) begin
            kept_q[s][g][32*lane+:32] <= sums_q[(LANES*g+lane)%4][BAND*s+32'(kept_row)][(LANES*g+lane)/4];
          end
        end
      end
    end

    // What is kept goes out group by group, row after row without a gap. The first bands wait for as long as
    // their sums shift less: each sum leaves the last band as many cycles after it was ready.
    logic sends_q;
    logic [BAND_BITS+GROUP_BITS-1:0] place_q;
    logic [32*LANES-1:0] waits_q[s+1];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) sends_q <= 1'b0;
      else if (passes_q[GROUPS*BAND*s+1]) sends_q <= 1'b1;
      else if (place_q == '1) sends_q <= 1'b0;
    end

    always_ff @(posedge clk_i) begin
      place_q    <= passes_q[GROUPS*BAND*s+1] ? '0 : place_q + 1'b1;
      waits_q[0] <= sends_q ? kept_q[s][place_q[GROUP_BITS-1:0]] : '0;
      for (int unsigned i = 1; i <= s; ++i) waits_q[i] <= waits_q[i-1];
    end

    // There is one group at a time, so OR will do.
    if (s == 0) begin : gen_first
      always_ff @(posedge clk_i) shift_q[s] <= waits_q[s];
    end else begin : gen_next
      always_ff @(posedge clk_i) shift_q[s] <= shift_q[s-1] | waits_q[s];
    end
  end

  // What the last band sends. The largest sum, of -128 times -128 alone, is 2^(SUM_BITS-1); no sum is as low
  // as -2^(SUM_BITS-1), so those bits are free for it.
  logic [ROW_BITS+GROUP_BITS-1:0] turn_q;

  assign drain_o          = passes_q[BANDS+2];
  assign {row_o, group_o} = turn_q;
  for (genvar lane = 0; lane < LANES; ++lane) begin : gen_lane
    wire [SUM_BITS-1:0] sum = shift_q[BANDS-1][32*lane+:SUM_BITS];
    wire negative = sum[SUM_BITS-1] && sum[SUM_BITS-2:0] != '0;
    assign sums_o[32*lane+:32] = {{32 - SUM_BITS{negative}}, sum};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_o <= 1'b0;
      turn_q  <= '0;
    end else begin
      if (drain_o) valid_o <= 1'b1;
      else if (turn_q == '1) valid_o <= 1'b0;
      if (valid_o) turn_q <= turn_q + 1'b1;
    end
  end

`ifndef SYNTHESIS
  initial assert (LANES * GROUPS == COLS && 2 ** GROUP_BITS == GROUPS && GROUPS >= 2 && 2 ** ROW_BITS == ROWS)
  else $fatal(1, "gemm_array: %0d columns drained by %0d; expected powers of two", COLS, LANES);
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      drain_o |-> !valid_o || turn_q == '1)
  else $error("gemm_array: a tile ends while the one before is being drained");
`endif

endmodule

`default_nettype wire
