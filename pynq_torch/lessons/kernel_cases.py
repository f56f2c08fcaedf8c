"""Kernels with data to try them on: how to call one, what must come out, what its model takes.

`CASES` is the table that the kernel explorer offers from; a kernel without a row is not offered.
Values are whole numbers where sums are taken, so that the result is exact in any order.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["CASES", "Case", "Trial", "find_case", "shares"]


@dataclass(frozen=True)
class Trial:
    """One call, ready to be made.

    Attributes
    ----------
    run, baseline : callable
        The kernel on operands in CMA memory, and torch on the CPU.
    rtol, atol : float
        How far the results may be apart; 0 for exactly equal.
    """

    run: Callable[[], torch.Tensor]
    baseline: Callable[[], torch.Tensor]
    rtol: float = 0.0
    atol: float = 0.0


@dataclass(frozen=True)
class Case:
    """A function that one or several kernels compute.

    Attributes
    ----------
    function : str
        What kernels are grouped by.
    kernels : str
        Pattern of their names; a group in it is the dtype.
    dtypes : tuple of str
        Types of the result, where the name does not say it.
    sizes : tuple of int
        To choose from.
    size_text : str
        What the size means.
    trial : callable
        Called with the drivers of the units, the size and the dtype.
    symbols : callable
        Called with the size and the number of units; returns the symbols of the latency model, of
        the largest part where units share the work.
    """

    function: str
    kernels: str
    dtypes: tuple[str, ...]
    sizes: tuple[int, ...]
    size_text: str
    trial: Callable[[Sequence[Any], int, str], Trial]
    symbols: Callable[[int, int], dict[str, int]]


def find_case(kernel: str) -> tuple[Case, tuple[str, ...]] | None:
    """Return the first case for a kernel, and the dtypes of results; ``None`` without one."""
    for case in CASES:
        match = re.fullmatch(case.kernels, kernel)
        if match:
            return case, tuple(_DTYPES[word] for word in match.groups()) or case.dtypes
    return None


_DTYPES = {"f32": "float32", "i32": "int32", "i8": "int8"}


def _values(shape: tuple[int, ...], dtype: str, device: Any, limit: int = 8) -> torch.Tensor:
    """Return whole numbers from -limit to limit in CMA memory, always the same."""
    import torch

    from pynq_torch import buffers

    generator = torch.Generator().manual_seed(sum(shape))
    values = torch.randint(-limit, limit + 1, shape, generator=generator)
    buffer = buffers.to_buffer(values.to(getattr(torch, dtype)), device=device)
    return buffers.as_tensor(buffer)


def _of_two(
    compute: Callable[[Any, Any], Any], limits: tuple[int, int], dimensions: int
) -> Callable[[Sequence[Any], int, str], Trial]:
    """Return the trial of a kernel with two operands; further units help the first."""

    def trial(units: Sequence[Any], size: int, dtype: str) -> Trial:
        unit, helpers = units[0], {"helpers": units[1:]} if len(units) > 1 else {}
        shape = (size,) * dimensions
        a, b = (_values(shape, dtype, unit.device, limit) for limit in limits)
        return Trial(lambda: unit(a, b, **helpers), lambda: compute(a, b))

    return trial


def _part(size: int, units: int) -> dict[str, int]:
    from pynq_torch.kernels.ladder import parts

    return {"n": max(count for _, count in parts(size, units))}


def _gemm(units: Sequence[Any], size: int, dtype: str) -> Trial:
    import torch

    from pynq_torch.torch_device.exact import int_mm

    unit = units[0]
    a, b = (_values((size, size), "int8", unit.device, limit) for limit in (127, 126))
    kind = getattr(torch, dtype)
    if kind == torch.int32:
        return Trial(lambda: unit(a, b), lambda: int_mm(a, b))
    scale = torch.full((size,), 2.0**-10)

    def scaled() -> torch.Tensor:
        values = int_mm(a, b).float() * scale
        return values if kind == torch.float32 else values.round().clamp(-128, 127).to(kind)

    return Trial(lambda: unit(a, b, scale=scale, dtype=kind), scaled)


def _cube(size: int, _: int) -> dict[str, int]:
    return {"m": size, "n": size, "k": size, "batch": 1}


def _pointwise(function: str, operands: int) -> Callable[[Sequence[Any], int, str], Trial]:
    def trial(units: Sequence[Any], size: int, dtype: str) -> Trial:
        from pynq_torch.kernels.tables.pointwise import find

        kind, unit = {1: "unary", 2: "binary"}[operands], units[0]
        given = [_values((size,), dtype, unit.device, 60 + 4 * i) for i in range(operands)]
        row = find(kind, function)
        return Trial(lambda: unit(function, *given), lambda: row.reference(*given))

    return trial


def _dense(function: str, operands: int) -> Callable[[int, int], dict[str, int]]:
    def symbols(size: int, _: int) -> dict[str, int]:
        from pynq_torch.kernels.tables.pointwise import find

        row = find({1: "unary", 2: "binary"}[operands], function)
        return {"n": size, "rows": 1, "single": 0, "op": row.opcode}

    return symbols


def _softmax(units: Sequence[Any], size: int, dtype: str) -> Trial:
    unit = units[0]
    x = _values((64, size), dtype, unit.device)
    return Trial(lambda: unit(x), lambda: x.softmax(-1), rtol=1e-5, atol=1e-6)


def _rows(size: int, _: int) -> dict[str, int]:
    return {"rows": 64, "length": size}


_LENGTHS = tuple(2**e for e in range(8, 19, 2))
_EDGES = (16, 32, 64, 128, 256)
_SQUARE = "rows = columns"
_ANY = r"_(f32|i32|i8)"

_vadd = _of_two(operator.add, (1000, 500), 1)
_dot, _matmul = (_of_two(operator.matmul, (8, 4), dimensions) for dimensions in (1, 2))

#: In the order in which they are offered.
CASES = (
    Case("vadd", r"vadd(?:_\d)?", ("float32",), _LENGTHS, "elements", _vadd, _part),
    Case("dot", r"dot(?:_\d)?", ("float32",), _LENGTHS, "elements", _dot, _part),
    Case("gemm", r"gemm(?:_lut)?", ("int32", "int8", "float32"), _EDGES, _SQUARE, _gemm, _cube),
    Case("matmul", r"matmul_(f32)", (), _EDGES, _SQUARE, _matmul, _cube),
    Case(
        "relu", f"unary{_ANY}", (), _LENGTHS, "elements", _pointwise("relu", 1), _dense("relu", 1)
    ),
    Case(
        "maximum",
        f"binary{_ANY}",
        (),
        _LENGTHS,
        "elements",
        _pointwise("maximum", 2),
        _dense("maximum", 2),
    ),
    Case("softmax", r"softmax_(f32)", (), _EDGES, "columns of 64 rows", _softmax, _rows),
)


def shares(kernel: str) -> bool:
    """Whether all units of a kernel share the work: the rungs of a ladder do."""
    return re.fullmatch(r"(vadd|dot)_\d", kernel) is not None
