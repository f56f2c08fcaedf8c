"""From the functional form of an operator to its in-place and out variants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal

import torch

from .dispatch import kind_of
from .offers import Declined, add_offer

__all__ = [
    "MIXED",
    "NOT_THERE",
    "RESIZED",
    "SHARED",
    "Sharing",
    "into_out",
    "into_self",
    "offer",
    "overlaps",
    "shares",
]

MIXED = Declined("the operands differ in dtype")
NOT_THERE = Declined("an operand is not on device 'pynq'; the CPU's error says more")
RESIZED = Declined("out has another shape than the result; the CPU resizes it")
#: What operands may have of the memory of a tensor that is written, see `shares`.
Sharing = Literal["any", "same", "none"]
SHARED = Declined(
    "what is written shares memory with what is read, or with itself; the CPU has a rule for that, "
    "or an error"
)
_SHAPE = Declined("the first argument is not of the result's shape; the CPU's error says more")


def into_out(
    functional: Callable[..., Any], dtype: torch.dtype | None = None, *, sharing: Sharing = "any"
) -> Callable[..., Any]:
    """Return the out variant: ``out`` is written when the result is there.

    Parameters
    ----------
    functional : callable
        Offer of the functional form: returns one tensor or a `Declined`.
    dtype : torch.dtype, optional
        Of the result; default: that of the last positional argument.
    sharing : {"any", "same", "none"}
        See `shares`.
    """

    def run(*args: Any, out: torch.Tensor, **kwargs: Any) -> Any:
        own = dtype or getattr(args[-1], "dtype", None)
        if out.device.type != "pynq" or out.dtype is not own:
            return MIXED
        result = functional(*args, **kwargs)
        if isinstance(result, Declined):
            return result
        if out.shape != result.shape:
            return RESIZED
        return SHARED if shares(out, args, sharing) else out.copy_(result)

    return run


def into_self(functional: Callable[..., Any], *, sharing: Sharing = "any") -> Callable[..., Any]:
    """Return the in-place variant: the first argument is written when the result is there.

    A kernel that fails in the middle leaves it as it was.

    Parameters
    ----------
    functional : callable
        Offer of the functional form: returns one tensor or a `Declined`.
    sharing : {"any", "same", "none"}
        See `shares`.
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
    """Whether torch forbids that a tensor is written which lies where an operand, or itself, lies.

    A kernel reads everything before the result is copied to its place; on the CPU such a call is an
    error, or depends on the order of the elements.

    Parameters
    ----------
    written : torch.Tensor
        On device "pynq".
    read : iterable
        The operator's arguments; what is no tensor, or no list of them, is passed over.
    sharing : {"any", "same", "none"}
        What torch allows: ``"same"``, an operand may be the very view that is written, as
        ``x.add_(x)`` has it (``get_overlap_status`` of ATen/MemoryOverlap.cpp); ``"none"``, none
        may share its memory; ``"any"``, torch has no rule.
    """
    if sharing == "any":
        return False
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


def offer(name: str, function: Callable[..., Any], kernels: Collection[str] = ()) -> None:
    """Serve an overload with a kernel, after those that serve it already.

    Parameters
    ----------
    name : str
        E.g. ``"aten::mm"``.
    function : callable
        With the operator's arguments; returns the result, or a `Declined` whose reason is shown
        where nobody else does it either.
    kernels : collection of str
        It is asked only while the loaded overlay has one of these; with none given, always.

    Raises
    ------
    ValueError
        torch has no such overload, or one that never arrives here: torch composes it of others, or
        it only describes a tensor anew.
    """
    _check(name)
    add_offer(name, function, kernels)


def _check(name: str) -> None:
    """Refuse what would never be asked, because nobody notices that."""
    hint = "TORCH_PYNQ_DEBUG=1 prints what a program calls"
    if not name.startswith("aten::"):
        raise ValueError(f"{name!r} is no overload of ATen, e.g. 'aten::add.Tensor'; {hint}")
    try:
        kind = kind_of(name)
    except RuntimeError as error:
        raise ValueError(f"torch has no overload {name!r}: {error}; {hint}") from error
    if kind != "value":
        raise ValueError(
            f"{name} never arrives at device 'pynq': torch composes it of others, or it is "
            f"a view. Offer what arrives; {hint}"
        )
