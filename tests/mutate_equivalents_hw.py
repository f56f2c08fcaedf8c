"""Mutations of kernels that change nothing, each with its reason, for `make mutate`."""

from __future__ import annotations

_NO_ELEMENTS = "A tile of no elements reads and writes nothing."
_SINGLE = "Single accesses give what bursts give; which of them it is, HLS alone sees."
_SIZE = "How much is on chip at a time changes no result."

#: As `mutate_equivalents.EQUIVALENT`.
KERNELS: tuple[tuple[str, str, str, str], ...] = (
    *(
        (
            "hw/kernels/activation_f32/activation_f32.cpp",
            "walk(gradient, x, y, op, threshold, n, n > 0 ? (n - 1) / TILE + 1 : 0);",
            f"walk(gradient, x, y, op, threshold, n, n > 0 ? (n - 1) / TILE + {ends});",
            _NO_ELEMENTS,
        )
        for ends in ("2 : 0", "1 : 1")
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
    (
        "hw/kernels/cordic/cordic.cpp",
        "if (rest < 0) {",
        "if (rest <= 0) {",
        "From an angle of 0 either direction is as good: the next steps turn back.",
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
        ("hw/include/nll.hpp", "constexpr int TILE = 512;", f"constexpr int TILE = {n};", _SIZE)
        for n in (511, 513)
    ),
    (
        "hw/include/norm_layer.hpp",
        "float factor = 0;",
        "float factor = 1;",
        "The second pass sets it before the third one uses it.",
    ),
    (
        "hw/kernels/softmax_f32/softmax_f32.cpp",
        "{b_outer, b_length, b_inner}, {c_outer, c_length, c_inner}, column != 0);",
        "{b_outer, b_length, b_inner}, {c_outer, c_length, c_inner}, column != 1);",
        "Row by row or many at a time: the results are the same.",
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
