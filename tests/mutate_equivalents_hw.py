"""Mutations of kernels that change nothing, each with its reason, for `make mutate`."""

from __future__ import annotations

_NO_ELEMENTS = "A tile of no elements reads and writes nothing."
_ZERO = "An integer 0 has no sign."
_AMOUNTS = "const int sum = (across < 0 ? -across : across) + (down < 0 ? -down : down);"
_SINGLE = "Single accesses give what bursts give; which of them it is, HLS alone sees."
_WINDOWS = "A pad is at most half of a window, so that each window has a pixel."
_POOL_SIZES = (
    "batch <= 0 || channels <= 0 || rows <= 0 || cols <= 0 || out_rows <= 0 || out_cols <= 0"
)
_DEPTHWISE_TILE = (
    "Tile at = {item / size.batch, item % size.batch, 0, y, x, 1, "
    "at_most(size.rows - y, t.rows), at_most(size.columns - x, t.columns)};"
)
_CUT = "const float cut = value"
_CUT_LOW = "value >= to.lowest ? value : to.lowest;  // NaN ends at the lower bound"
_COLUMNS = "const int depth = depth_of<S>(size, t), columns ="
_PIECES = "template <class C> int pieces_of(int n) { return n > 0 ? (n - 1) / C::TILE + 1 : 0; }"
_LARGEST = (
    "return {%s, at_most(in.rows, at_most(PIXELS / columns, PATCH / cells)), columns, cells};"
)
_SIZE = "How much is on chip at a time changes no result."

#: As `mutate_equivalents.EQUIVALENT`.
KERNELS: tuple[tuple[str, str, str, str], ...] = (
    (
        "hw/kernels/reduce_f32/reduce_f32.cpp",
        "{y_k0, y_k1, y_k2}, { {r0, r1, r2}, {x_r0, x_r1, x_r2}, x_k2, column != 0});",
        "{y_k0, y_k1, y_k2}, { {r0, r1, r2}, {x_r0, x_r1, x_r2}, x_k2, column != 1});",
        "A row and a column are two orders of the same walk, with the same results.",
    ),
    *(
        (
            "hw/kernels/activation_f32/activation_f32.cpp",
            "walk(gradient, x, y, op, threshold, n, n > 0 ? (n - 1) / TILE + 1 : 0);",
            f"walk(gradient, x, y, op, threshold, n, n > 0 ? {tiles});",
            _NO_ELEMENTS,
        )
        for tiles in (
            "(n - 1) / TILE + 2 : 0",
            "(n - 1) / TILE + 1 : 1",
            "(n - 0) / TILE + 1 : 0",
            "(n + 1) / TILE + 1 : 0",
        )
    ),
    *(
        (
            "hw/include/pointwise_math.hpp",
            "for (int bit = 0; bit < 31; ++bit) {",
            f"for (int bit = 0; bit {end}; ++bit) {{",
            "An exponent that is not negative has no bit 31.",
        )
        for end in ("<= 31", "< 32")
    ),
    (
        "hw/include/pointwise_math.hpp",
        "if (quotient == 0) return std::copysign(0.0f, a / b);",
        "if (quotient == 0) return std::copysign(0.0f, a * b);",
        "A product has the sign of the quotient.",
    ),
    *(
        (
            "hw/include/pointwise_math.hpp",
            "if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;",
            f"if (rest != 0 && {signs}) quotient -= 1;",
            "Neither of the two is 0 here.",
        )
        for signs in ("(b <= 0) != (rest < 0)", "(b < 0) != (rest <= 0)")
    ),
    *(
        (
            "hw/include/pointwise_math.hpp",
            "return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;",
            f"return rest != 0 && {signs} ? rest + b : rest;",
            "The rest is not 0 here; nor is b, or the rest is NaN.",
        )
        for signs in ("(rest <= 0) != (b < 0)", "(rest < 0) != (b <= 0)")
    ),
    *(
        (
            "hw/include/pointwise_math.hpp",
            "return b != -1 && a % b != 0 && (a < 0) != (b < 0) ? towards_zero - 1 : towards_zero;",
            f"return {condition} ? towards_zero - 1 : towards_zero;",
            "Neither of the two is 0 here, and a remainder by -1 is 0.",
        )
        for condition in (
            "b != -1 && a % b != 0 && (a <= 0) != (b < 0)",
            "b != -1 && a % b != 0 && (a < 0) != (b <= 0)",
            "b != -1 && a % b != 0 && (a < 1) != (b < 0)",
            "b != -1 && a % b != 0 && (a < 0) != (b < 1)",
            "b != -0 && a % b != 0 && (a < 0) != (b < 0)",
        )
    ),
    (
        "hw/include/pointwise_math.hpp",
        "inline float power(float a, float b) { return a == 1 || b == 0 ? 1.0f : std::pow(a, b); }",
        "inline float power(float a, float b) { return a == 1 && b == 0 ? 1.0f : std::pow(a, b); }",
        "std::pow says so, too, but for a signalling NaN, which no literal is.",
    ),
    *(
        (
            "hw/include/conv2d.hpp",
            "for (int t = 0; t < taps.k_rows * taps.k_columns; ++t) {",
            f"for (int t = {loop}; ++t) {{",
            "What rows beyond the outputs add up is never stored.",
        )
        for loop in (
            "0; t < taps.k_rows / taps.k_columns",
            "1; t < taps.k_rows * taps.k_columns",
            "0; t >= taps.k_rows * taps.k_columns",
        )
    ),
    (
        "hw/include/conv2d.hpp",
        "finite = finite && row[t] - row[t] == 0;",
        "finite = finite && row[t] + row[t] == 0;",
        "Finite weights may be taken as those that are not: slower, and the same.",
    ),
    (
        "hw/include/depthwise.hpp",
        "for (int first = 0, row = 0, tap = 0; first < size.k_rows; first += S::LANES) {",
        "for (int first = 0, row = 0, tap = 0; first <= size.k_rows; first += S::LANES) {",
        "Of no lanes nothing is added.",
    ),
    *(
        (
            "hw/kernels/spmv_f32/spmv_f32.hpp",
            "static constexpr int VECTOR = 16384, LANES = 8;",
            f"static constexpr int VECTOR = {n}, LANES = 8;",
            _SIZE,
        )
        for n in (16383, 16385)
    ),
    *(
        (
            f"hw/kernels/{kernel}/{kernel}.hpp",
            "constexpr int ELEMENTS = 256 * 256;  // behind each pointer",
            f"constexpr int ELEMENTS = {n};  // behind each pointer",
            "Room for co-simulation alone.",
        )
        for kernel in ("matrix_mult", "matrix_mult_fabric")
        for n in ("256 * 257", "257 * 256", "256 * 255", "255 * 256", "256 / 256")
    ),
    *(
        (
            f"hw/{file}",
            f"{head}[3][3]{tail}",
            f"{head}[{rows}][3]{tail}",
            "C++ does not look at the first bound of an argument.",
        )
        for file, head, tail in (
            *(
                (f"kernels/{filter}/{filter}.cpp", "static int value_of(const int w", ") {")
                for filter in ("gauss", "gauss_fixed", "sobel", "sobel_fixed")
            ),
            (
                "include/lines3x3.hpp",
                "inline void slide(int window",
                ", unsigned char upper[COLUMNS], unsigned char lower[COLUMNS], int row, int col,",
            ),
        )
        for rows in (2, 4)
    ),
    *(
        (
            f"hw/kernels/{filter}/{filter}.cpp",
            "int window[3][3] = {};",
            "int window[4][3] = {};",
            "A row that nothing reads.",
        )
        for filter in ("gauss", "gauss_fixed", "sobel", "sobel_fixed")
    ),
    *(
        (
            f"hw/kernels/{filter}/{filter}.cpp",
            "if (columns < 1 || columns > lines3x3::MAX_WIDTH || rows < 1) return;",
            f"if (columns < {columns} || columns > lines3x3::MAX_WIDTH || rows < {rows}) return;",
            "Of no columns or no rows no pixel is read, and none is written.",
        )
        for filter in ("gauss", "gauss_fixed", "sobel", "sobel_fixed")
        for columns, rows in ((0, 1), (1, 0))
    ),
    (
        "hw/kernels/cordic/cordic.cpp",
        "if (rest < 0) {",
        "if (rest <= 0) {",
        "From an angle of 0 either direction is as good: the next steps turn back.",
    ),
    (
        "hw/kernels/cordic/cordic.cpp",
        "const bool left = angle < -HALF_PI;",
        "const bool left = angle <= -HALF_PI;",
        "A quarter of the circle is reached with and without the half turn.",
    ),
    *(
        (
            "hw/kernels/cordic/cordic.cpp",
            "3.7252902984619141e-09, 1.862645149230957e-09, 9.3132257461547852e-10, "
            "4.6566128730773926e-10,",
            "3.7252902984619141e-09, 1.862645149230957e-09, 9.3132257461547852e-10, "
            f"4.6566128730773926e-{exponent},",
            "What is left of the angle behind the last step is not used.",
        )
        for exponent in (9, 11)
    ),
    (
        "hw/kernels/histogram/histogram.cpp",
        "int last = 0, before = 1;    // the latest two values ...",
        "int last = 1, before = 1;    // the latest two values ...",
        "Both counts are 0 at first, whichever values they are taken for.",
    ),
    (
        "hw/kernels/fft/fft.cpp",
        "static const Number QUARTER[N / 4 + 1] = {",
        "static const Number QUARTER[N * 4 + 1] = {",
        "Zeros behind the table that nothing reads.",
    ),
    (
        "hw/kernels/cordic/cordic.hpp",
        "using Wide = ap_fixed<40, 3>;",
        "using Wide = ap_fixed<40, 2>;",
        "Angles are counted modulo 4 then, and what is left of one fits, as x and y do.",
    ),
    (
        "hw/include/conv2d_store.hpp",
        "const float value = mode & BIAS ? sum + offset : sum;",
        "const float value = mode | BIAS ? sum + offset : sum;",
        "Without a bias the offset is 0; no sum is -0, since it begins with 0.",
    ),
    (
        "hw/include/move.hpp",
        "if (w.n[2] <= 0 || w.n[3] <= 0) return 0;",
        "if (w.n[2] <= 0 || w.n[3] <= 0) return 1;",
        _NO_ELEMENTS,
    ),
    *(
        (file, f"{name} = {size};", f"{name} = {size + more};", _SIZE)
        for file, name, size in (
            ("hw/include/nll.hpp", "constexpr int TILE", 512),
            ("hw/include/norm.hpp", "constexpr int TILE", 1024),
            ("hw/include/norm.hpp", "constexpr int CHANNELS", 1024),
            ("hw/include/pool2d.hpp", "constexpr int TILE", 1024),
            ("hw/include/pool2d.hpp", "constexpr int BAND", 4096),
            ("hw/kernels/spmm_f32/spmm_f32.hpp", "static constexpr int TILE", 256),
            *(
                (f"hw/kernels/{rung}/{rung}.hpp", "constexpr int TILE", 1024)
                for rung in ("dot_1", "vadd_1")
            ),
        )
        for more in (-1, 1)
    ),
    (
        "hw/include/pool2d_forward.hpp",
        "const int taps = span.first < span.last ? "
        "(span.last - span.first - 1) / job.rows.step + 1 : 0;",
        "const int taps = span.first <= span.last ? "
        "(span.last - span.first - 1) / job.rows.step + 1 : 0;",
        _WINDOWS,
    ),
    (
        "hw/kernels/norm_f32/norm_f32.cpp",
        "if (outer <= 0 || channels <= 0 || inner <= 0) return;",
        "if (outer < 0 || channels <= 0 || inner <= 0) return;",
        _NO_ELEMENTS,
    ),
    *(
        (
            "hw/kernels/gemm/gemm_memory.hpp",
            "constexpr int AHEAD = 8;  // rows; as many bursts as a port may have under way",
            f"constexpr int AHEAD = {n};  // rows; as many bursts as a port may have under way",
            "How early a burst is asked for changes no result.",
        )
        for n in (7, 9)
    ),
    *(
        (
            f"hw/kernels/{kernel}/{kernel}.hpp",
            f"static constexpr bool HOLD = {was};",
            f"static constexpr bool HOLD = {other};",
            "Weights read once or in each row: the same values.",
        )
        for kernel, was, other in (("gemm", "true", "false"), ("gemm_lut", "false", "true"))
    ),
    (
        "hw/include/norm_layer.hpp",
        "float factor = 0;",
        "float factor = 1;",
        "The second pass sets it before the third one uses it.",
    ),
    *(
        (
            "hw/kernels/softmax_f32/softmax_f32.cpp",
            "{b_outer, b_length, b_inner}, {c_outer, c_length, c_inner}, column != 0);",
            f"{{b_outer, b_length, b_inner}}, {{c_outer, c_length, c_inner}}, column {other});",
            "Row by row or many at a time: the results are the same.",
        )
        for other in ("!= 1", "== 0")
    ),
    *(
        (
            "hw/include/softmax.hpp",
            "const int first = backward ? 1 : 0, "
            "tiles = column ? length : (length - 1) / S::TILE + 1;",
            f"const int first = backward ? 1 : 0, tiles = column ? length : {tiles};",
            _NO_ELEMENTS,
        )
        for tiles in (
            "(length + 1) / S::TILE + 1",
            "(length - 0) / S::TILE + 1",
            "(length - 1) / S::TILE + 2",
        )
    ),
    *(
        (
            f"hw/kernels/{kind}_{dtype}/{kind}_{dtype}.cpp",
            "break;",
            ";",
            "Nothing follows in the switch.",
        )
        for kind in ("unary", "binary", "ternary")
        for dtype in ("f32", "i32", "i8")
    ),
    *(
        (
            "hw/kernels/chain/chain.cpp",
            line,
            ";" + line.partition(";")[2],
            "Our ap_axi_sdata.h begins with all bytes valid; that of Vitis does not say.",
        )
        for line in ("beat.keep = -1;  // all bytes count", "beat.strb = -1;")
    ),
    *(
        (
            f"hw/kernels/{filter}/{filter}.hpp",
            f"constexpr int {line};",
            f"constexpr int {other};",
            "For the report of the latency only.",
        )
        for filter in ("gauss", "gauss_fixed", "sobel", "sobel_fixed")
        for line, other in (
            ("ROWS = MAX_HEIGHT + 1", "ROWS = MAX_HEIGHT + 2"),
            ("ROWS = MAX_HEIGHT + 1", "ROWS = MAX_HEIGHT + 0"),
            ("ROWS = MAX_HEIGHT + 1", "ROWS = MAX_HEIGHT - 1"),
            ("MAX_HEIGHT = 1080", "MAX_HEIGHT = 1079"),
            ("MAX_HEIGHT = 1080", "MAX_HEIGHT = 1081"),
        )
    ),
    *(
        (
            "hw/kernels/matmul_f32/matmul_f32.hpp",
            "static constexpr int LANES = 4, TILE_M = 64, TILE_N = 128, TILE_K = 64;",
            f"static constexpr int LANES = 4, TILE_M = {n}, TILE_N = 128, TILE_K = 64;",
            _SIZE,
        )
        for n in (63, 65)
    ),
    *(
        (
            "hw/kernels/pool2d_f32/pool2d_f32.cpp",
            f"if ({_POOL_SIZES}) return;",
            f"if ({_POOL_SIZES.replace(f'{name} <= 0', f'{name} < 0', 1)}) return;",
            _NO_ELEMENTS,
        )
        for name in ("batch", "channels", "out_cols")
    ),
    (
        "hw/include/pool2d.hpp",
        "const int skipped = begin < 0 ? (axis.step - 1 - begin) / axis.step : 0;",
        "const int skipped = begin <= 0 ? (axis.step - 1 - begin) / axis.step : 0;",
        "From 0 on nothing is skipped either way: (step - 1) / step is 0.",
    ),
    (
        "hw/include/pool2d_backward.hpp",
        "for (int col0 = 0; col0 < job.cols.out; col0 += TILE) {",
        "for (int col0 = 0; col0 <= job.cols.out; col0 += TILE) {",
        _NO_ELEMENTS,
    ),
    (
        "hw/include/pool2d_forward.hpp",
        "if (down[i].taps > 0 && across[j].first < across[j].last) {",
        "if (down[i].taps >= 0 && across[j].first < across[j].last) {",
        _WINDOWS,
    ),
    (
        "hw/include/sparse.hpp",
        "for (int first = 0; first < n; first += C::TILE) {",
        "for (int first = 0; first <= n; first += C::TILE) {",
        _NO_ELEMENTS,
    ),
    (
        "hw/include/sparse.hpp",
        "partial[(k - begin) % C::LANES] += values[k] * element(col[k * wide]);",
        "partial[(k + begin) % C::LANES] += values[k] * element(col[k * wide]);",
        "Any lane will do, as long as they take turns.",
    ),
    (
        "hw/include/sparse.hpp",
        "int begin = rows > 0 ? crow[0] : 0;",
        "int begin = rows >= 0 ? crow[0] : 0;",
        "A matrix without rows has a bound, too, which nothing uses.",
    ),
    *(
        (f"hw/kernels/{k}/{k}.cpp", line, line.replace(f"{x} < 0", f"{x} {sign}"), _ZERO)
        for k, x, line in (
            ("unary_i32", "x", "UNARY(ABS, 1, x < 0 ? -x : x)"),
            ("unary_i8", "x", "UNARY(ABS, 1, x < 0 ? -x : x)"),
            ("sobel", "across", _AMOUNTS),
            ("sobel", "down", _AMOUNTS),
            ("sobel_fixed", "across", "const Amount a = across < 0 ? -across : across;"),
            ("sobel_fixed", "down", "const Amount b = down < 0 ? -down : down;"),
        )
        for sign in ("<= 0", "< 1")
    ),
    (
        "hw/kernels/nll_f32/nll_f32.cpp",
        "const Strides targets = {target_image, 0, target_inner};",
        "const Strides targets = {target_image, 1, target_inner};",
        "Nothing reads the stride between the classes of targets: they have none.",
    ),
    *(
        (
            "hw/include/depthwise.hpp",
            "conv2d::load_weights<S>(weight, sw, size, Tiling{1, 1, size.k_rows, size.k_columns}, "
            "at, 0, 1, weights, finite);",
            f"conv2d::load_weights<S>(weight, sw, size, Tiling{{{tile}, size.k_rows, "
            "size.k_columns}, at, 0, 1, weights, finite);",
            "The size of a tile has no part in its weights.",
        )
        for tile in ("0, 1", "2, 1", "1, 0", "1, 2")
    ),
    (
        "hw/include/depthwise.hpp",
        _DEPTHWISE_TILE,
        _DEPTHWISE_TILE.replace("% size.batch, 0,", "% size.batch, 1,"),
        "The loop over channels sets it before it is read.",
    ),
    (
        "hw/include/net_store.hpp",
        "constexpr int PIXELS = 256;  // and pixels",
        "constexpr int PIXELS = 255;  // and pixels",
        _SIZE,
    ),
    (
        "hw/include/net_store.hpp",
        f"{_CUT} > to.highest ? to.highest : {_CUT_LOW}",
        f"{_CUT} >= to.highest ? to.highest : {_CUT_LOW}",
        "What is as large as the bound is the bound either way.",
    ),
    (
        "hw/include/net_window.hpp",
        "const int first = left < 0 ? -left : 0;",
        "const int first = left < 1 ? -left : 0;",
        _ZERO,
    ),
    (
        "hw/kernels/chain/chain.hpp",
        "constexpr int DEPTH = 2;",
        "constexpr int DEPTH = 3;",
        "A longer FIFO passes on the same samples.",
    ),
    (
        "hw/kernels/reduce_f32/reduce_f32.hpp",
        "static constexpr int BLOCK = 64;",
        "static constexpr int BLOCK = 63;",
        "Blocks of a sum are as near to the exact sum in this length.",
    ),
    (
        "hw/include/matmul.hpp",
        "const int least = (MIN_SUMS + chunks - 1) / chunks;",
        "const int least = (MIN_SUMS + chunks - 2) / chunks;",
        "Rows of zeros hide the adder's latency, which C++ does not have.",
    ),
    (
        "hw/include/matmul.hpp",
        f"{_COLUMNS} (at.cols + S::LANES - 1) / S::LANES * S::LANES;",
        f"{_COLUMNS} (at.cols + S::LANES - 2) / S::LANES * S::LANES;",
        "Sums of the columns that pad a tile are not stored, whatever they are.",
    ),
    (
        "hw/include/pool2d.hpp",
        "return kind == ADAPTIVE ? (axis.size + axis.out - 1) / axis.out + 1 : axis.kernel;",
        "return kind == ADAPTIVE ? (axis.size + axis.out - 2) / axis.out + 1 : axis.kernel;",
        "Of k * out + 1 pixels an adaptive window has k + 1 at most.",
    ),
    (
        "hw/include/move.hpp",
        _PIECES,
        _PIECES.replace("- 1", "+ 1"),
        _NO_ELEMENTS,
    ),
    *(
        (
            "hw/include/net_window.hpp",
            _LARGEST % "0, 0, 0, 0, 0",
            _LARGEST % ", ".join("1" if i == field else "0" for i in range(5)),
            "Of the largest tile only rows, columns and cells are read.",
        )
        for field in range(5)
    ),
    *(
        (
            "hw/include/net_window.hpp",
            f"for ({loop}) {{",
            f"for ({loop.replace('<', '<=')}) {{",
            why,
        )
        for loop, why in (
            ("int out = 0; out < outs; out += OUTS", "Of no channels nothing is stored."),
            ("int y = 0; y < in.rows; y += largest.rows", _NO_ELEMENTS),
            ("int x = 0; x < in.columns; x += largest.columns", _NO_ELEMENTS),
        )
    ),
    *(
        (
            "hw/kernels/distance_f32/distance_f32.cpp",
            "{b_batch, b_row, b_step}, {c_batch, c_row, 1}, op, p);",
            f"{{b_batch, b_row, b_step}}, {{c_batch, c_row, {step}}}, op, p);",
            "Nothing reads the step of the results: those of a row lie side by side.",
        )
        for step in (0, 2)
    ),
    *(
        (f"hw/include/{file}.hpp", f"if ({what} == 1) {{", f"if ({what} == 0) {{", _SINGLE)
        for file, what in (
            ("conv2d", "s.column"),
            ("conv2d_store", "step"),
            ("depthwise", "s.column"),
            ("distance", "s.step"),
            ("lanes", "step"),
            ("matmul", "inner_step"),
            ("matmul_store", "step"),
            ("move", "step"),
            ("norm_layer", "step"),
            ("pool2d_backward", "step"),
            ("pool2d_forward", "step"),
            ("reduce_results", "step"),
            ("sparse", "step"),
            ("sparse", "step_b"),
        )
    ),
)
