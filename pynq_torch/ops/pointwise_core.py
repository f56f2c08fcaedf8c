"""One pointwise function on tensors of device "pynq": what the kernel can do, and its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from pynq_torch.kernels.launch import BASE_TIMEOUT_S
from pynq_torch.kernels.pointwise_registers import registers_of
from pynq_torch.kernels.pointwise_walk import broadcast, runs, walk_of
from pynq_torch.kernels.tables.pointwise import FUNCTIONS, OPERANDS
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.variants import MIXED, NOT_THERE

from .common import on_cpu, short
from .launch import available, launch, operand

__all__ = ["DTYPE", "KERNELS", "SHORT", "elementwise", "is_served"]

#: Short name of each dtype that kernels take.
SHORT = {torch.float32: "f32", torch.int32: "i32", torch.int8: "i8"}
#: Overlay that has the kernels of a dtype.
_OVERLAY = {"f32": "pointwise", "i32": "pointwise_int", "i8": "pointwise_int"}
#: Elements from which several units share the work: below, a second start costs more than it saves.
_SHARED = 1 << 15
#: Seconds an element may take: pow on a simulated board of several CUs, with a margin.
_ELEMENT_S = 2e-6

_KERNELS = {
    (kind, dtype): f"{kind}_{letters}" for kind in OPERANDS for dtype, letters in SHORT.items()
}
#: All of them.
KERNELS = tuple(_KERNELS.values())
_MISSING = {
    (kind, dtype): Declined(
        f"no kernel {kind}_{letters} is loaded: pynq_torch.load('{_OVERLAY[letters]}')",
        missing=True,
    )
    for kind in OPERANDS
    for dtype, letters in SHORT.items()
}
_NO_EXPRESSION = {
    (kind, name, dtype): Declined(f"torch gives {name} of {dtype} another dtype, or refuses it")
    for kind, functions in FUNCTIONS.items()
    for name, function in functions.items()
    for dtype, letters in SHORT.items()
    if not function.expression(letters)
}
DTYPE = Declined(f"pointwise kernels take {', '.join(map(short, SHORT))}")
_EMPTY = Declined("nothing to compute: an operand has no elements")
_SHAPES = on_cpu("the shapes do not broadcast")
_LARGE = Declined("the result has 2^31 elements or more; a register holds fewer")
_NUMBER = Declined("a number among the operands does not fit the dtype of the tensors")
_NUMBERS_ONLY = Declined("no operand is a tensor of device 'pynq'")
_LIMITS = {
    torch.int8: (-(1 << 7), (1 << 7) - 1),
    torch.int32: (-(1 << 31), (1 << 31) - 1),
}


def is_served(kind: str, dtype: torch.dtype) -> bool:
    """Whether the loaded overlay has the kernel of functions with so many operands for a dtype."""
    return dtype in SHORT and bool(available(_KERNELS[kind, dtype]))


def elementwise(kind: str, name: str, *operands: Any, p: Any = 0, q: Any = 0) -> Any:
    """Return a new tensor with a function of the table, or a `Declined`.

    `kind` is by the number of operands: "unary", "binary", "ternary". The operands are tensors and
    numbers as the operator was given them; `p` and `q` are the function's parameters.
    """
    dtype = _dtype_of(operands)
    if dtype is None:
        return _NUMBERS_ONLY
    key = (kind, dtype)
    if key not in _KERNELS:
        return DTYPE
    slots = available(_KERNELS[key])
    if not slots:
        return _MISSING[key]
    declined = _NO_EXPRESSION.get((kind, name, dtype))
    if declined is not None:
        return declined
    condition = 2 if kind == "ternary" and name == "where" else -1
    given: list[Any] = []
    lie: list[Any] = []
    for index, value in enumerate(operands):
        if isinstance(value, torch.Tensor) and value.device.type == "pynq":
            if value.dtype is not (torch.bool if index == condition else dtype):
                return MIXED
            lie.append((value.shape, value.stride()))
        else:
            value = _number(value, dtype, lie)
            if isinstance(value, Declined):
                return value
            lie.append(None)
        given.append(value)
    if not (_fits(p, dtype) and _fits(q, dtype)):
        return _NUMBER
    shape = broadcast([own[0] for own in lie if own is not None])
    if shape is None:
        return _SHAPES
    if 0 in shape:
        return _EMPTY
    return _run(slots, kind, name, given, tuple(lie), shape, dtype, p, q)


def _run(
    slots: Any,
    kind: str,
    name: str,
    given: list[Any],
    lie: tuple[Any, ...],
    shape: Any,
    dtype: torch.dtype,
    p: Any,
    q: Any,
) -> Any:
    walk = walk_of(shape, lie, name)
    if walk.total >= 1 << 31:
        return _LARGE
    reads = []
    for index, own in enumerate(lie):
        if own is not None:
            given[index] = read = operand(given[index])
            reads.append(read)
            if read.strides != own[1]:  # copied: from another board, or lazily negated
                lie = (*lie[:index], (read.shape, read.strides), *lie[index + 1 :])
                walk = walk_of(shape, lie, name)
    if walk.row_major:
        result = memory.new(shape, dtype)
    else:
        result = memory.new_strided(shape, walk.strides, dtype)
    write = operand(result)
    pointers, scalars = registers_of(kind, FUNCTIONS[kind][name], given, p, q, dtype)
    parts = len(slots) if walk.total >= _SHARED else 1
    launch(
        slots,
        runs(walk, pointers, scalars, write.address, dtype.itemsize, parts),
        reads=reads,
        writes=(write,),
        timeout_s=BASE_TIMEOUT_S + walk.total * _ELEMENT_S,
    )
    return result


def _dtype_of(operands: Sequence[Any]) -> torch.dtype | None:
    """Return the dtype of the first operand on the device that is no condition."""
    for value in operands:
        on_device = isinstance(value, torch.Tensor) and value.device.type == "pynq"
        if on_device and (value.dtype is not torch.bool or value is operands[-1]):
            dtype: torch.dtype = value.dtype
            return dtype
    return None


def _number(value: Any, dtype: torch.dtype, lie: Sequence[Any]) -> Any:
    """Return an operand as a number for a register, or why it cannot be one."""
    if isinstance(value, torch.Tensor):
        if value.dim() or value.device.type != "cpu":
            return NOT_THERE
        if not any(own is not None and own[0] for own in lie) and value.dtype is not dtype:
            return MIXED  # both are scalars: the wider dtype wins
        value = value.item()
    if isinstance(value, bool):
        value = int(value)
    return value if _fits(value, dtype) else _NUMBER


def _fits(value: Any, dtype: torch.dtype) -> bool:
    """Whether torch computes with a number in a dtype, without a warning."""
    if dtype is torch.float32:
        if type(value) is float:
            return abs(value) <= 3.4028235e38 or not math.isfinite(value)
        return type(value) is int and -(1 << 24) <= value <= 1 << 24
    low, high = _LIMITS[dtype]
    return type(value) is int and low <= value <= high
