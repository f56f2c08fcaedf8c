"""From the functional form of an operator to its in-place and out variants."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch

from .dispatch import kind_of
from .offers import Declined, add_offer

__all__ = ["MIXED", "NOT_THERE", "RESIZED", "into_out", "into_self", "offer"]

MIXED = Declined("the operands differ in dtype")
NOT_THERE = Declined("an operand is not on device 'pynq'; the CPU's error says more")
RESIZED = Declined("out has another shape than the result; the CPU resizes it")
_SHAPE = Declined("the first argument is not of the result's shape; the CPU's error says more")


def into_out(
    functional: Callable[..., Any], dtype: torch.dtype | None = None
) -> Callable[..., Any]:
    """Return the out variant: ``out`` is written when the result is there.

    Parameters
    ----------
    functional : callable
        Offer of the functional form: returns one tensor or a `Declined`.
    dtype : torch.dtype, optional
        Of the result; default: that of the last positional argument.
    """

    def run(*args: Any, out: torch.Tensor, **kwargs: Any) -> Any:
        if out.device.type != "pynq" or out.dtype is not (dtype or args[-1].dtype):
            return MIXED
        result = functional(*args, **kwargs)
        if isinstance(result, Declined):
            return result
        return RESIZED if out.shape != result.shape else out.copy_(result)

    return run


def into_self(functional: Callable[..., Any]) -> Callable[..., Any]:
    """Return the in-place variant: the first argument is written when the result is there.

    A kernel that fails in the middle leaves it as it was.
    """

    def run(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        result = functional(self, *args, **kwargs)
        if isinstance(result, Declined):
            return result
        if self.shape != result.shape or self.dtype is not result.dtype:
            return _SHAPE
        return self.copy_(result)

    return run


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
