"""From the functional form of an operator to its in-place and out variants, by torch's schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import torch

from .dispatch import Declined

__all__ = [
    "MIXED",
    "NOT_THERE",
    "RESIZED",
    "SHARED",
    "Sharing",
    "into",
    "into_self",
    "overlaps",
    "shares",
    "variants",
]

MIXED = Declined("the operands differ in dtype")
NOT_THERE = Declined("an operand is not on device 'pynq'; torch raises the error on the CPU")
RESIZED = Declined("out has another shape than the result; the CPU resizes it")
#: What operands may have of the memory of a tensor that is written, see `shares`.
Sharing = Literal["same", "none"]
SHARED = Declined(
    "the tensor that is written shares memory with one that is read, or with itself; on the CPU "
    "torch computes it or raises an error"
)
_SHAPE = Declined(
    "the first argument is not of the result's shape; torch raises the error on the CPU"
)


def variants(name: str) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
    """Find the in-place and out variants of an overload in torch's schemas.

    Parameters
    ----------
    name : str
        E.g. ``"aten::add.Tensor"``.

    Returns
    -------
    in_place : str
        E.g. ``"aten::add_.Tensor"``; empty where torch has none.
    outs : list of (str, tuple of str)
        Overload, and the names of the arguments that are written, one for each result.
    """
    base, _, overload = name.partition(".")
    schema = torch._C._get_schema(base, overload)
    own, count = _arguments(schema), len(schema.returns)
    in_place = ""
    for schema in torch._C._jit_get_schemas_for_operator(f"{base}_"):
        if _arguments(schema) == own:
            in_place = _full_name(schema)
    outs = []
    for schema in torch._C._jit_get_schemas_for_operator(base):
        given = _arguments(schema)
        written = schema.arguments[len(own) :]
        added = given[: len(own)] == own and len(written) == count
        if added and all(argument.alias_info is not None for argument in written):
            outs.append((_full_name(schema), tuple(argument.name for argument in written)))
    return in_place, outs


def _arguments(schema: Any) -> list[tuple[str, str]]:
    return [(a.name, str(a.type)) for a in schema.arguments]


def _full_name(schema: Any) -> str:
    return f"{schema.name}.{schema.overload_name}".removesuffix(".")


def into(
    functional: Callable[..., Any], names: Sequence[str] = ("out",), *, sharing: Sharing = "none"
) -> Callable[..., Any]:
    """Return the out variant: tensors are written when the results are there.

    `functional` returns a tensor, a tuple of them or a `Declined`; `names` are the arguments that
    are written, one for each result (``"grad_input"``); `sharing` is that of `shares`.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        outs = [kwargs.pop(name) for name in names]
        if any(out.device.type != "pynq" for out in outs):
            return NOT_THERE
        results = functional(*args, **kwargs)
        if isinstance(results, Declined):
            return results
        several = isinstance(results, tuple)
        pairs = list(zip(outs, results if several else (results,), strict=True))
        if any(out.dtype is not result.dtype for out, result in pairs):
            return MIXED
        if any(out.shape != result.shape for out, result in pairs):
            return RESIZED
        if any(shares(out, args, sharing) for out in outs):
            return SHARED
        copied = tuple(out.copy_(result) for out, result in pairs)
        return copied if several else copied[0]

    return run


def into_self(functional: Callable[..., Any], *, sharing: Sharing = "none") -> Callable[..., Any]:
    """Return the in-place variant: the first argument is written when the result is there.

    A kernel that fails in the middle leaves it as it was. `functional` returns one tensor or a
    `Declined`; `sharing` is that of `shares`.
    """

    def run(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        result = functional(self, *args, **kwargs)
        if isinstance(result, Declined):
            return result
        if self.shape != result.shape or self.dtype is not result.dtype:
            return _SHAPE
        return SHARED if shares(self, args, sharing) else self.copy_(result)

    return run


def shares(written: torch.Tensor, read: Iterable[Any], sharing: Sharing) -> bool:
    """Whether torch forbids writing a tensor that shares memory with an operand, or with itself.

    A kernel reads everything before the result is copied to its place; on the CPU such a call is an
    error, or depends on the order of the elements.

    Parameters
    ----------
    written : torch.Tensor
        On device "pynq".
    read : iterable
        The operator's arguments; what is no tensor, or no list of them, is passed over.
    sharing : {"same", "none"}
        What torch allows: ``"same"``, an operand may be the very view that is written, as
        ``x.add_(x)`` has it (``get_overlap_status`` of ATen/MemoryOverlap.cpp); ``"none"``, none
        may share its memory.
    """
    if overlaps(written):
        return True
    storage = written.untyped_storage()
    for value in read:
        if isinstance(value, torch.Tensor):
            if value is written or value.untyped_storage() is storage:
                alike = value is written or _lies(value) == _lies(written)
                if sharing == "none" if alike else _meet(value, written):
                    return True
        elif isinstance(value, (list, tuple)) and shares(written, value, sharing):
            return True
    return False


def _lies(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


def _meet(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the stretches from first to last element of two tensors have a byte in common."""
    (begin, end), (start, stop) = _stretch(one), _stretch(other)
    return begin < stop and start < end


def _stretch(tensor: torch.Tensor) -> tuple[int, int]:
    begin = tensor.data_ptr()
    if not tensor.numel():
        return begin, begin
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return begin, begin + (last + 1) * tensor.element_size()


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether two elements of a tensor could lie at the same place."""
    if tensor.is_contiguous():
        return False
    reached = 0
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if step <= reached:
                return True
            reached += (size - 1) * step
    return False
