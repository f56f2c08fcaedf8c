"""One pointwise function: what it computes, in C++ and in torch, and how exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ERF", "OPERANDS", "TANH", "Function", "together"]

#: Operations of the longest branch of a routine, counted in fdlibm (Sun, 1993: s_erf.c and s_tanh.c
#: with s_expm1.c). Vitis publishes no figures of its own; a routine within 2 units in the last
#: place needs polynomials of about that length. exp, log, sqrt and division are cores of PG060,
#: and pow is a log, a product and an exp in a row: each takes new operands every cycle.
ERF: Mapping[str, int] = {"fmul": 19, "fadd": 20, "fdiv": 3, "fexp": 2}
TANH: Mapping[str, int] = {"fmul": 15, "fadd": 20, "fdiv": 2}

#: Kind -> names of the operands.
OPERANDS: dict[str, tuple[str, ...]] = {
    "unary": ("x",),
    "binary": ("a", "b"),
    "ternary": ("a", "b", "c"),
}


def together(routine: Mapping[str, int], **more: int) -> dict[str, int]:
    """Return the operations of a routine and of what is around it."""
    return {unit: routine.get(unit, 0) + more.get(unit, 0) for unit in {**routine, **more}}


@dataclass(frozen=True, eq=False)
class Function:
    """A row of the table of pointwise functions.

    Parameters
    ----------
    name : str
        E.g. ``"tanh"``.
    kind : {"unary", "binary", "ternary"}
        By the number of operands.
    opcode : int
        Value of register ``op``.
    torch : str
        The torch expression it has to equal, over the operands, ``p`` and ``q``.
    floating, integer : str
        The same in C++, for float32, and for int8 and int32 (which wrap around); empty where torch
        has none.
    parameters : mapping of str to float
        What ``p`` and ``q`` mean, with the values that tests and widgets begin with.
    ulp : float
        Largest difference from torch's result on the CPU, in units in the last place of float32 at
        the size of the result.
    scale : str
        Torch expression; where it is given, units are those at the size of the larger of this and
        the result. It is the largest term of a sum that may cancel.
    domain : tuple of float
        Where the function is worth looking at.
    example, integer_example : tuple
        Operands and result, for the testbench, with the parameters' values above.
    more, more_integers : tuple of tuple
        Further examples in float32 and in integers. A kernel does without those whose numbers its
        dtype does not hold.
    units : mapping of str to int
        Floating-point cores that the expression takes.
    work : mapping of str to int
        Operations an element needs of these cores, where they are more than the cores: routines of
        the math library share them, and elements follow one another that much more slowly.
    loop : int
        Cycles of an element, at most, where a routine of float32 is a loop whose length depends on
        the operands: such elements cannot overlap. 0 where there is none.
    overloads : tuple of str
        Operators of ATen that it serves; in-place and out variants are served with them.
    interval : int
        Cycles from one integer to the next.
    """

    name: str
    kind: str
    opcode: int
    torch: str
    floating: str = ""
    integer: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)
    ulp: float = 0.0
    scale: str = ""
    domain: tuple[float, float] = (-4.0, 4.0)
    example: tuple[float, ...] = ()
    integer_example: tuple[int, ...] = ()
    more: tuple[tuple[float, ...], ...] = ()
    more_integers: tuple[tuple[int, ...], ...] = ()
    units: Mapping[str, int] = field(default_factory=dict)
    overloads: tuple[str, ...] = ()
    work: Mapping[str, int] = field(default_factory=dict)
    loop: int = 0
    interval: int = 1

    def cycles(self, dtype: str) -> int:
        """Return the cycles from one element to the next, for a dtype ("f32", "i32" or "i8").

        A model: a core of PG060 takes new operands each cycle, so n operations on m cores take
        n / m cycles.
        """
        if dtype != "f32":
            return self.interval
        return max([1, self.loop, *(-(-n // self.units[unit]) for unit, n in self.work.items())])

    def expression(self, dtype: str) -> str:
        """Return the C++ expression for a dtype ("f32", "i32" or "i8"); empty without one."""
        return self.floating if dtype == "f32" else self.integer

    @property
    def opname(self) -> str:
        """Its constant in C++."""
        return self.name.upper()

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of its operands."""
        return OPERANDS[self.kind]

    def examples(self, dtype: str) -> tuple[tuple[float, ...], ...]:
        """Return operands and result of each example that a dtype holds."""
        if dtype == "f32":
            return (self.example, *self.more)
        end = 1 << int(dtype[1:]) - 1
        every = (self.integer_example, *self.more_integers)
        return tuple(e for e in every if all(-end <= value < end for value in e))

    def example_texts(self, dtype: str) -> list[str]:
        """Return the examples as C++ initialises them: ``p, q, {operands}, result``."""
        of = float if dtype == "f32" else int
        p, q = [*map(of, self.parameters.values()), of(0), of(0)][:2]
        texts = []
        for example in self.examples(dtype):
            named = (str(of(value)).replace("nan", "NAN") for value in example)
            *given, result = (text.replace("inf", "INFINITY") for text in named)
            texts.append(f"{p}, {q}, {{{', '.join(given)}}}, {result}")
        return texts

    def reference(self, *operands: Any, p: float | None = None, q: float | None = None) -> Any:
        """Compute the function with torch.

        Parameters
        ----------
        *operands : torch.Tensor
            As many as its kind has.
        p, q : float, optional
            Default: the values in `parameters`.

        Returns
        -------
        torch.Tensor
            On the device of the operands.
        """
        return self._evaluate(self.torch, operands, p, q)

    def spacing(self, *operands: Any, p: float | None = None, q: float | None = None) -> Any:
        """Return the unit that `ulp` counts, for each element of the result.

        Parameters
        ----------
        *operands : torch.Tensor
            float32 on the CPU.
        p, q : float, optional
            As for `reference`.

        Returns
        -------
        torch.Tensor
            float64: the distance from the size of the result to the next float32.
        """
        import torch

        size = self.reference(*operands, p=p, q=q).abs().double()
        if self.scale:
            wide = tuple(operand.double() for operand in operands)
            size = torch.maximum(size, self._evaluate(self.scale, wide, p, q).abs())
        size = size.nan_to_num(0.0, posinf=torch.finfo(torch.float32).max)
        least = torch.finfo(torch.float32).tiny  # below, the distance stays the same
        exponent = torch.frexp(size.clamp(min=least))[1]
        return torch.ldexp(torch.ones_like(size, dtype=torch.float64), exponent - 24)

    def _evaluate(
        self, expression: str, operands: tuple[Any, ...], p: float | None, q: float | None
    ) -> Any:
        import torch

        if len(operands) != len(self.operands):
            raise ValueError(
                f"{self.name} takes {len(self.operands)} operands ({', '.join(self.operands)}); "
                f"found {len(operands)}"
            )
        given = dict(zip(self.operands, operands, strict=True))
        for key, own, value in zip(
            "pq", (p, q), (*self.parameters.values(), 0.0, 0.0), strict=False
        ):
            given[key] = value if own is None else own
        # The expressions are this package's own table.
        return eval(expression, {"torch": torch, "F": torch.nn.functional}, given)
