"""Functions of three operands, a, b and c."""

from __future__ import annotations

from .function import Function

__all__ = ["TERNARY"]


def _row(opcode: int, name: str, torch: str, floating: str = "", **more: object) -> Function:
    return Function(name, "ternary", opcode, torch, floating, **more)  # type: ignore[arg-type]


_VALUE = {"value": 2.0}

#: Opcodes are those of the register: append, never renumber.
TERNARY = (
    _row(0, "addcmul", "torch.addcmul(a, b, c, value=p)", "std::fma(p * b, c, a)",
         integer="a + p * b * c", parameters=_VALUE, ulp=2,
         scale="a.abs() + (p * b * c).abs()", example=(1.0, 1.5, 2.5, 8.5),
         integer_example=(1, -3, 4, -23), units={"fadd": 1, "fmul": 2},
         overloads=("aten::addcmul",)),
    _row(1, "addcdiv", "torch.addcdiv(a, b, c, value=p)", "a + p * b / c", parameters=_VALUE,
         ulp=2, scale="a.abs() + (p * b / c).abs()", example=(1.0, 1.5, 2.0, 2.5),
         units={"fadd": 1, "fmul": 1, "fdiv": 1}, overloads=("aten::addcdiv",)),
    # c is the condition: a bool in memory, read through a port of its own.
    _row(2, "where", "torch.where(c != 0, a, b)", "c != 0 ? a : b", integer="c != 0 ? a : b",
         example=(1.5, 2.5, 1.0, 1.5), integer_example=(3, 4, 0, 4), units={"fcmp": 1},
         more=((1.5, 2.5, 0.0, 2.5), (1.5, 2.5, 0.5, 1.5)),
         more_integers=((3, 4, 1, 3), (3, 4, -1, 3)),
         overloads=("aten::where.self",)),
    _row(3, "lerp", "torch.lerp(a, b, c)", "lerp(a, b, c)", ulp=3, scale="a.abs() + b.abs()",
         example=(1.0, 3.0, 0.25, 1.5), units={"fadd": 3, "fmul": 1, "fcmp": 1},
         more=((1.0, 3.0, 0.75, 2.5), (1.0, 3.0, -0.75, -0.5), (1e8, 1.0, 1.0, 1.0),
               (0.52489984, -0.4955167, 0.5, 0.014691561)),
         overloads=("aten::lerp.Scalar", "aten::lerp.Tensor")),
    _row(4, "clamp", "torch.clamp(a, b, c)", "smaller(larger(a, b), c)",
         integer="smaller(larger(a, b), c)", example=(5.0, 1.0, 3.0, 3.0),
         integer_example=(-7, -3, 4, -3), units={"fcmp": 4},
         more=((0.5, 1.0, 3.0, 1.0), (2.0, 1.0, 3.0, 2.0), (2.0, 3.0, 1.0, 1.0)),
         more_integers=((7, -3, 4, 4), (2, -3, 4, 2), (2, 4, -3, -3)),
         overloads=("aten::clamp.Tensor",)),
)  # fmt: skip
