"""Functions of one operand, x."""

from __future__ import annotations

import math

from .function import ERF, TANH, Function, together

__all__ = ["UNARY"]


def _row(opcode: int, name: str, torch: str, floating: str = "", **more: object) -> Function:
    return Function(name, "unary", opcode, torch, floating, **more)  # type: ignore[arg-type]


#: Parameters of functions that keep a range.
_RANGE = {"min": -1.0, "max": 1.0}
_NAN = (math.nan, math.nan)
_EXP = {"fexp": 1, "fadd": 1, "fdiv": 1}

#: Opcodes are those of the register: append, never renumber.
UNARY = (
    _row(0, "abs", "torch.abs(x)", "std::fabs(x)", integer="x < 0 ? -x : x",
         example=(-2.5, 2.5), integer_example=(-7, 7),
         more_integers=((7, 7),),
         overloads=("aten::abs",)),
    _row(1, "neg", "torch.neg(x)", "-x", integer="-x",
         example=(-2.5, 2.5), integer_example=(-7, 7), overloads=("aten::neg",)),
    _row(2, "relu", "torch.relu(x)", "x < 0 ? 0 : x", integer="x < 0 ? 0 : x",
         example=(-2.5, 0.0), integer_example=(-7, 0), units={"fcmp": 1},
         more=((2.5, 2.5), (-0.0, -0.0), _NAN),
         more_integers=((7, 7), (0, 0)),
         overloads=("aten::relu",)),
    _row(3, "sigmoid", "torch.sigmoid(x)", "1 / (1 + std::exp(-x))", ulp=4, domain=(-10, 10),
         example=(2.0, 0.880797078), units=_EXP,
         more=((-0.5, 0.377540669),),
         overloads=("aten::sigmoid",)),
    _row(4, "tanh", "torch.tanh(x)", "std::tanh(x)", ulp=3,
         example=(0.5, 0.462117157), units={"fadd": 4, "fmul": 6, "fdiv": 1}, work=TANH,
         more=((-0.5, -0.462117157),),
         overloads=("aten::tanh",)),
    _row(5, "exp", "torch.exp(x)", "std::exp(x)", ulp=2, domain=(-10, 10),
         example=(1.0, 2.71828183), units={"fexp": 1}, overloads=("aten::exp",)),
    _row(6, "log", "torch.log(x)", "std::log(x)", ulp=2, domain=(0.01, 10),
         example=(10.0, 2.30258509), units={"flog": 1}, overloads=("aten::log",)),
    _row(7, "sqrt", "torch.sqrt(x)", "std::sqrt(x)", ulp=1, domain=(0, 10),
         example=(6.25, 2.5), units={"fsqrt": 1}, overloads=("aten::sqrt",)),
    _row(8, "rsqrt", "torch.rsqrt(x)", "1 / std::sqrt(x)", ulp=1, domain=(0.01, 10),
         example=(6.25, 0.4), units={"fsqrt": 1, "fdiv": 1}, overloads=("aten::rsqrt",)),
    _row(9, "reciprocal", "torch.reciprocal(x)", "1 / x", ulp=1,
         example=(8.0, 0.125), units={"fdiv": 1}, overloads=("aten::reciprocal",)),
    _row(10, "floor", "torch.floor(x)", "std::floor(x)",
         example=(-2.5, -3.0), units={"fadd": 1},
         more=((2.5, 2.0), (3.0, 3.0)),
         overloads=("aten::floor",)),
    _row(11, "ceil", "torch.ceil(x)", "std::ceil(x)",
         example=(-2.5, -2.0), units={"fadd": 1},
         more=((2.5, 3.0), (3.0, 3.0)),
         overloads=("aten::ceil",)),
    # Half to even, as IEEE 754 rounds.
    _row(12, "round", "torch.round(x)", "std::rint(x)",
         example=(-2.5, -2.0), units={"fadd": 1},
         more=((3.5, 4.0), (2.75, 3.0)),
         overloads=("aten::round",)),
    # Of NaN it is 0, as in torch.
    _row(13, "sign", "torch.sign(x)", "(x > 0) - (x < 0)", integer="(x > 0) - (x < 0)",
         example=(-0.5, -1.0), integer_example=(-1, -1), units={"fcmp": 2},
         more=((0.5, 1.0), (0.0, 0.0), (math.nan, 0.0)),
         more_integers=((1, 1), (0, 0)),
         overloads=("aten::sign",)),
    _row(14, "clamp", "torch.clamp(x, p, q)", "between(x, p, q)", integer="between(x, p, q)",
         parameters=_RANGE, example=(-2.5, -1.0), integer_example=(-7, -1), units={"fcmp": 2},
         more=((2.5, 1.0), (0.5, 0.5), _NAN),
         more_integers=((7, 1), (0, 0)),
         overloads=("aten::clamp", "aten::clamp_min", "aten::clamp_max")),
    _row(15, "threshold", "F.threshold(x, p, q)", "x <= p ? q : x", integer="x <= p ? q : x",
         parameters={"threshold": 1.0, "value": 20.0}, example=(0.5, 20.0),
         integer_example=(-7, 20), units={"fcmp": 1},
         more=((1.0, 20.0), (1.5, 1.5), _NAN),
         more_integers=((1, 20), (2, 2)),
         overloads=("aten::threshold",)),
    # 1 + erf(...) and 1 + tanh(...) cancel where x is negative: the error is one of x.
    _row(16, "gelu", "F.gelu(x)", "gelu(x)", ulp=6, scale="x",
         example=(1.0, 0.841344746), units={"fexp": 1, "fadd": 4, "fmul": 6, "fdiv": 1},
         work=together(ERF, fadd=1, fmul=3),
         more=((-0.5, -0.154268771), (2.0, 1.95449972)),
         overloads=("aten::gelu",)),
    _row(17, "gelu_tanh", "F.gelu(x, approximate='tanh')", "gelu_tanh(x)", ulp=6, scale="x",
         example=(1.0, 0.841191990), units={"fexp": 1, "fadd": 4, "fmul": 6, "fdiv": 1},
         work=together(TANH, fadd=2, fmul=6),
         more=((-0.5, -0.154285997), (2.0, 1.95459768)),
         overloads=("aten::gelu",)),
    _row(18, "silu", "F.silu(x)", "x / (1 + std::exp(-x))", ulp=4, domain=(-10, 10),
         example=(2.0, 1.761594156), units=_EXP,
         more=((-0.5, -0.188770334),),
         overloads=("aten::silu",)),
    _row(19, "hardtanh", "F.hardtanh(x, p, q)", "between(x, p, q)", integer="between(x, p, q)",
         parameters=_RANGE, example=(2.5, 1.0), integer_example=(7, 1), units={"fcmp": 2},
         more=((-2.5, -1.0), (0.5, 0.5), _NAN),
         more_integers=((-7, -1), (0, 0)),
         overloads=("aten::hardtanh",)),
    _row(20, "leaky_relu", "F.leaky_relu(x, p)", "x > 0 ? x : x * p",
         parameters={"negative_slope": 0.125}, example=(-2.0, -0.25),
         units={"fcmp": 1, "fmul": 1},
         more=((2.0, 2.0), (0.0, 0.0), _NAN),
         overloads=("aten::leaky_relu",)),
    _row(21, "square", "torch.square(x)", "x * x", integer="x * x",
         example=(-2.5, 6.25), integer_example=(-7, 49), units={"fmul": 1},
         overloads=("aten::pow.Tensor_Scalar",)),
    # torch squares first and divides then, which overflows where pow would not.
    _row(22, "inverse_square", "torch.pow(x, -2)", "1 / (x * x)", ulp=1,
         example=(-2.0, 0.25), units={"fmul": 1, "fdiv": 1},
         overloads=("aten::pow.Tensor_Scalar",)),
)  # fmt: skip
