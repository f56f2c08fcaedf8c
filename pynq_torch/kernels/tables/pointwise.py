"""Pointwise functions: the table that kernels, drivers, operators, tests and widgets read.

A function has an opcode, one C++ expression for float32 and one for integers, and says how far its
result may be from that of torch on the CPU. Its operands are ``x``, or ``a`` and ``b``, or ``a``,
``b`` and ``c``; parameters that are no tensors are ``p`` and ``q``. `instance` makes a kernel of
any choice of functions.

Where `ulp` comes from: cores and math libraries round ``exp``, ``tanh`` and the like within one or
two units in the last place, each in its own way; what is made of one rounded operation is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pynq_torch.hls.instance import Instance

from .function import OPERANDS, Function
from .pointwise_binary import BINARY
from .pointwise_ternary import TERNARY
from .pointwise_unary import UNARY

__all__ = [
    "BINARY",
    "FUNCTIONS",
    "INSTANCES",
    "OPERANDS",
    "TERNARY",
    "UNARY",
    "Function",
    "find",
    "instance",
    "registers",
]

#: Kind -> its functions by name.
FUNCTIONS: dict[str, dict[str, Function]] = {
    "unary": {function.name: function for function in UNARY},
    "binary": {function.name: function for function in BINARY},
    "ternary": {function.name: function for function in TERNARY},
}
#: Short name of a dtype -> its type in C++, and that of scalars in registers.
TYPES = {"f32": ("float", "float"), "i32": ("int", "int"), "i8": ("int8_t", "int")}
#: Dimensions that a kernel walks through itself.
DIMENSIONS = 4


def find(kind: str, name: str) -> Function:
    """Return a function by name.

    Parameters
    ----------
    kind : {"unary", "binary", "ternary"}
        By the number of operands.
    name : str
        E.g. ``"tanh"``.

    Raises
    ------
    KeyError
        With the names there are.
    """
    functions = FUNCTIONS[kind]
    if name not in functions:
        raise KeyError(f"no {kind} function is called {name!r}; there are {', '.join(functions)}")
    return functions[name]


def registers(kind: str) -> tuple[str, ...]:
    """Return the scalar arguments of a kernel in order, pointers left out.

    ``op`` is the opcode, ``scalars`` has a bit for each operand that is in a register, ``p`` and
    ``q`` are the function's parameters, ``n0`` to ``n3`` the sizes, and ``x0`` to ``x3`` the steps
    of operand ``x`` in elements.
    """
    operands = OPERANDS[kind]
    given: tuple[str, ...] = ()
    if kind == "binary":
        given = ("scalars", "s")
    elif kind == "ternary":
        given = ("scalars", "sa", "sb", "sc")
    steps = (f"{o}{d}" for o in operands for d in range(DIMENSIONS))
    return ("op", *given, "p", "q", *(f"n{d}" for d in range(DIMENSIONS)), *steps)


def _arguments(kind: str, ctype: str, scalar: str) -> tuple[str, ...]:
    """Return the arguments of the C++ function, a line each: pointers, values, sizes, steps."""
    operands = OPERANDS[kind]
    pointers = [f"const {ctype}* {o}" for o in operands]
    if kind == "ternary":
        pointers.append("const uint8_t* mask")
    lines = [[*pointers, f"{ctype}* y"], []]
    for register in registers(kind):
        whole = register in ("op", "scalars") or register[1:].isdigit()
        if register.endswith("0"):
            lines.append([])
        lines[-1].append(f"{'int' if whole else scalar} {register}")
    return tuple(", ".join(line) for line in lines)


def _cores(kind: str, dtype: str, functions: Sequence[Function]) -> dict[str, int]:
    """Return how many cores of each sort the kernel of these functions has."""
    if dtype == "f32":
        # Only one function is running at a time, so they share their cores.
        sorts = {unit for f in functions for unit in f.units}
        return {unit: max(f.units.get(unit, 0) for f in functions) for unit in sorts}
    if kind == "binary":
        return {"imul32": 2, "idiv32": 1}
    return {"imul32": len(OPERANDS[kind]) - 1}


def instance(name: str, kind: str, dtype: str, functions: Sequence[Function]) -> Instance:
    """Return a kernel that computes any of some functions.

    Parameters
    ----------
    name : str
        Of the kernel.
    kind : {"unary", "binary", "ternary"}
        By the number of operands.
    dtype : {"f32", "i32", "i8"}
        Of operands and result.
    functions : sequence of Function
        Those that have no expression for the dtype are left out.

    Raises
    ------
    ValueError
        None of them has one.
    """
    chosen = [f for f in functions if f.expression(dtype)]
    if not chosen:
        raise ValueError(f"{name}: none of the functions given has an expression for {dtype}")
    ctype, scalar = TYPES[dtype]
    values: dict[str, Any] = {
        "kind": kind,
        "dtype": dtype,
        "type": ctype,
        "scalar": scalar,
        "operands": OPERANDS[kind],
        "functions": chosen,
        "registers": registers(kind),
        "arguments": _arguments(kind, ctype, scalar),
        "units": _cores(kind, dtype, chosen),
        "operators": sorted({overload for f in chosen for overload in f.overloads}),
    }
    return Instance(name, "pointwise", values)


INSTANCES = tuple(
    instance(f"{kind}_{dtype}", kind, dtype, tuple(functions.values()))
    for kind, functions in FUNCTIONS.items()
    for dtype in TYPES
)
