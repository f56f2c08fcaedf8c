"""Functions of two operands, a and b."""

from __future__ import annotations

import math

from .function import ERF, TANH, Function, together

__all__ = ["BINARY"]


def _row(opcode: int, name: str, torch: str, floating: str = "", **more: object) -> Function:
    return Function(name, "binary", opcode, torch, floating, **more)  # type: ignore[arg-type]


_ALPHA = {"alpha": 2.0}
_ADD = ("aten::add.Tensor", "aten::add.Scalar")
_SUB = ("aten::sub.Tensor", "aten::sub.Scalar", "aten::rsub.Tensor", "aten::rsub.Scalar")
_DIV = ("aten::div.Tensor_mode", "aten::div.Scalar_mode")
_FLOOR = ("aten::floor_divide", "aten::floor_divide.Scalar")
_NAN = ((math.nan, 2.25, math.nan), (1.5, math.nan, math.nan))
_GELU = {"fexp": 1, "fadd": 4, "fmul": 6, "fdiv": 1}
#: fmod takes a bit of the quotient off in each step. The exponents differ by up to 276 (2^127 and
#: the smallest subnormal, 2^-149); 24 cycles are an estimate for taking numbers apart and together.
_FMOD = 276 + 24

#: What no int32 holds wraps around, and no division by -1 traps.
_EXACT = ((7, -1, -7), (-(2**31), -1, -(2**31)))

#: Opcodes are those of the register: append, never renumber.
BINARY = (
    _row(0, "add", "a + b", "a + b", integer="a + b", example=(1.5, 2.25, 3.75),
         integer_example=(100, -3, 97), units={"fadd": 1}, overloads=_ADD),
    _row(1, "sub", "a - b", "a - b", integer="a - b", example=(1.5, 2.25, -0.75),
         integer_example=(100, -3, 103), units={"fadd": 1}, overloads=_SUB),
    _row(2, "mul", "a * b", "a * b", integer="a * b", example=(1.5, 2.5, 3.75),
         integer_example=(10, -3, -30), units={"fmul": 1},
         overloads=("aten::mul.Tensor", "aten::mul.Scalar")),
    _row(3, "div", "a / b", "a / b", example=(3.75, 2.5, 1.5), units={"fdiv": 1},
         overloads=("aten::div.Tensor", "aten::div.Scalar", *_DIV)),
    _row(4, "div_trunc", "torch.div(a, b, rounding_mode='trunc')", "std::trunc(a / b)",
         integer="quotient(a, b)", example=(-3.75, 2.5, -1.0), integer_example=(-7, 2, -3),
         units={"fdiv": 1, "fadd": 1},
         more=((3.75, -2.5, -1.0), (-3.75, -2.5, 1.0)),
         more_integers=(*_EXACT, (-7, -2, 3), (7, -2, -3), (6, -3, -2), (-7, -1, 7)),
         overloads=_DIV),
    _row(5, "div_floor", "torch.div(a, b, rounding_mode='floor')", "floor_divide(a, b)",
         integer="floor_divide(a, b)", example=(-3.75, 2.5, -2.0), integer_example=(-7, 2, -4),
         units={"fdiv": 1, "fadd": 2, "fcmp": 3}, loop=_FMOD + 40,
         more=((3.75, -2.5, -2.0), (-3.75, -2.5, 1.0), (5.0, 2.5, 2.0), (-5.0, 2.5, -2.0),
               (1.0, 0.0, math.inf), (-0.0, 2.0, -0.0), (0.5, 2.0, 0.0), (9.943, 3.1879954, 3.0),
               (1.75, 0.5, 3.0), (5.0, -2.5, -2.0), (3.0, -2.0, -2.0),
               (73312720.0, 8.774412, 8355284.0)),
         more_integers=(*_EXACT, (7, -2, -4), (-7, -2, 3), (7, 2, 3), (6, -3, -2), (-6, 3, -2),
                        (-7, -1, 7)),
         overloads=(*_DIV, *_FLOOR)),
    # The sign is b's, as in Python. Exact; where a / b leaves float32, torch's vectors give NaN.
    _row(6, "remainder", "torch.remainder(a, b)", "modulo(a, b)", integer="modulo(a, b)",
         example=(-2.75, 2.0, 1.25), integer_example=(-7, 3, 2),
         units={"fdiv": 1, "fadd": 2, "fcmp": 3}, loop=_FMOD + 12,
         more=((2.75, -2.0, -1.25), (2.75, 2.0, 0.75), (-2.75, -2.0, -0.75), (4.0, -2.0, 0.0),
               (1.75, 0.5, 0.25), (3.0, -2.0, -1.0)),
         more_integers=((7, -3, -2), (-7, -3, -1), (7, 3, 1), (6, -3, 0), (7, -1, 0), (7, -2, -1),
                        (-(2**31), -1, 0)),
         overloads=("aten::remainder.Tensor", "aten::remainder.Scalar",
                    "aten::remainder.Scalar_Tensor")),
    # NaN wins, whichever side it is on.
    _row(7, "maximum", "torch.maximum(a, b)", "larger(a, b)", integer="larger(a, b)",
         example=(1.5, 2.25, 2.25), integer_example=(-7, 3, 3), more=(*_NAN, (2.25, 1.5, 2.25)),
         more_integers=((7, -3, 7),), units={"fcmp": 2},
         overloads=("aten::maximum", "aten::clamp_min.Tensor")),
    _row(8, "minimum", "torch.minimum(a, b)", "smaller(a, b)", integer="smaller(a, b)",
         example=(1.5, 2.25, 1.5), integer_example=(-7, 3, -7), more=(*_NAN, (2.25, 1.5, 1.5)),
         more_integers=((7, -3, -3),), units={"fcmp": 2},
         overloads=("aten::minimum", "aten::clamp_max.Tensor")),
    _row(9, "pow", "torch.pow(a, b)", "power(a, b)", integer="power(a, b)", ulp=2,
         domain=(0.01, 4), example=(2.0, 10.0, 1024.0), integer_example=(-3, 3, -27),
         units={"fpow": 1}, interval=32,
         more=((0.5, -2.0, 4.0), (3.0, 1.0, 3.0), (0.0, 2.0, 0.0), (1.0, math.nan, 1.0),
               (math.nan, 0.0, 1.0)),
         more_integers=((2, 6, 64), (3, 1, 3), (3, 0, 1), (0, 0, 1), (1, -2, 1), (-1, -2, 1),
                        (-1, -3, -1), (2, -1, 0), (-2, -2, 0), (0, -2, 0), (2, 30, 2**30),
                        (2, 2**30, 0)),
         overloads=("aten::pow.Tensor_Tensor", "aten::pow.Tensor_Scalar", "aten::pow.Scalar")),
    # torch rounds once here; in integers everything is exact modulo the range.
    _row(10, "add_scaled", "torch.add(a, b, alpha=p)", "std::fma(p, b, a)", integer="a + p * b",
         parameters=_ALPHA, ulp=1, scale="a.abs() + (p * b).abs()", example=(1.5, 2.25, 6.0),
         integer_example=(100, -3, 94), units={"fmul": 1, "fadd": 1}, overloads=(*_ADD, *_SUB)),
    # Gradients: a is the gradient of the result, b what the formula needs of the forward pass.
    _row(11, "threshold_backward", "torch.ops.aten.threshold_backward(a, b, p)",
         "b <= p ? 0 : a", parameters={"threshold": 0.0}, example=(1.5, 2.0, 1.5),
         units={"fcmp": 1},
         more=((1.5, -1.0, 0.0), (1.5, 0.0, 0.0), (1.5, 0.5, 1.5)),
         overloads=("aten::threshold_backward",)),
    _row(12, "sigmoid_backward", "torch.ops.aten.sigmoid_backward(a, b)", "a * (1 - b) * b",
         ulp=3, domain=(0, 1), example=(2.0, 0.25, 0.375), units={"fadd": 1, "fmul": 2},
         overloads=("aten::sigmoid_backward",)),
    _row(13, "tanh_backward", "torch.ops.aten.tanh_backward(a, b)", "a * (1 - b * b)",
         ulp=3, scale="a", domain=(-1, 1), example=(2.0, 0.5, 1.5),
         units={"fadd": 1, "fmul": 2}, overloads=("aten::tanh_backward",)),
    _row(14, "leaky_relu_backward", "torch.ops.aten.leaky_relu_backward(a, b, p, False)",
         "b > 0 ? a : a * p", parameters={"negative_slope": 0.125}, example=(2.0, -1.0, 0.25),
         units={"fcmp": 1, "fmul": 1},
         more=((2.0, 1.0, 2.0), (2.0, 0.0, 0.25)),
         overloads=("aten::leaky_relu_backward",)),
    _row(15, "hardtanh_backward", "torch.ops.aten.hardtanh_backward(a, b, p, q)",
         "b > p && b < q ? a : 0", parameters={"min": -1.0, "max": 1.0}, example=(2.0, -1.5, 0.0),
         units={"fcmp": 2},
         more=((2.0, 0.5, 2.0), (2.0, 1.5, 0.0), (2.0, 1.0, 0.0), (2.0, -1.0, 0.0)),
         overloads=("aten::hardtanh_backward",)),
    _row(16, "silu_backward", "torch.ops.aten.silu_backward(a, b)", "silu_backward(a, b)",
         ulp=6, scale="a * (1 + b.abs())", example=(2.0, 0.0, 1.0),
         more=((2.0, 1.0, 1.85534102), (2.0, -0.75, 0.314800111)),
         units={"fexp": 1, "fadd": 3, "fmul": 3, "fdiv": 1}, overloads=("aten::silu_backward",)),
    _row(17, "gelu_backward", "torch.ops.aten.gelu_backward(a, b)", "gelu_backward(a, b)",
         ulp=6, scale="a * (1 + b.abs())", example=(2.0, 0.0, 1.0), units=_GELU,
         work=together(ERF, fexp=1, fadd=2, fmul=7),
         more=((2.0, 1.0, 2.16663094), (2.0, -0.5, 0.265009751)),
         overloads=("aten::gelu_backward",)),
    _row(18, "gelu_tanh_backward", "torch.ops.aten.gelu_backward(a, b, approximate='tanh')",
         "gelu_tanh_backward(a, b)", ulp=6, scale="a * (1 + b.abs() ** 3)",
         example=(2.0, 0.0, 1.0), units=_GELU, overloads=("aten::gelu_backward",),
         work=together(TANH, fadd=5, fmul=12),
         more=((2.0, 1.0, 2.16592817), (2.0, -0.5, 0.265260193))),
)  # fmt: skip
