"""The quick ways to let the CPU do an operator of device "pynq"; `fallback` is the general one.

A Python call costs as much as a small operator, hence functions for the common kinds of schema
with as little in them as can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .fallback import INSTEAD, NOT_RESIZABLE, fallback, place
from .memory import alias, new, new_like
from .schema import Plan

__all__ = ["fallback_of"]

_FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_NUMBERS = (int, float, bool)
#: What torch gives for a tensor argument beside tensors.
_PLAIN = (*_NUMBERS, complex, type(None))

Run = Callable[..., Any]


def fallback_of(plan: Plan) -> Run:
    """Return the function that does the operator on the CPU, as quick as its schema allows."""
    tensors = [n for n in plan.names if n in plan.singles]
    plain = not (plan.lists or plan.generator or plan.seeded or plan.name in INSTEAD)
    leading = tensors == list(plan.names[: len(tensors)]) and len(tensors) <= plan.positional
    if plain and plan.pointwise and plan.out is not None and leading and len(tensors) in (1, 2):
        return _unary(plan) if len(tensors) == 1 else _binary(plan)
    if plain and leading and not plan.written:
        return _functional(plan)
    if plain and leading and plan.pointwise and plan.written == plan.returns == plan.names[:1]:
        return _in_place(plan)

    def run(*args: Any, **kwargs: Any) -> Any:
        return fallback(plan, args, kwargs)

    return run


# Pointwise operators on row-major tensors of one shape and one floating dtype: the result's shape
# is known, and its dtype depends on nothing but dtypes and the scalars' types. It is remembered
# from the first call, so that the CPU can write the result where it is to lie.


def _unary(plan: Plan) -> Run:
    known: dict[Any, torch.dtype] = {}
    write, out_name = _quickest(plan), plan.out_name

    def run(a: Any, *rest: Any, **kwargs: Any) -> Any:
        try:
            block = a.untyped_storage().block
        except (AttributeError, NotImplementedError):
            return fallback(plan, (a, *rest), kwargs)
        dtype = block.dtype
        if (
            a.shape == block.shape
            and a.dtype is dtype
            and a.is_contiguous()
            and not a.storage_offset()
            and not a.is_neg()
        ):
            key: Any = dtype
            if rest or kwargs:
                key = (dtype, *map(type, rest), *map(type, kwargs.values()))
            kind = known.get(key)
            if kind is not None:
                result = new_like(block) if kind is dtype else new(block.shape, kind)
                kwargs[out_name] = result.untyped_storage().block.cpu  # type: ignore[attr-defined]
                write(block.cpu, *rest, **kwargs)
                return result
            if dtype in _FLOATING and _numbers(rest, kwargs) and block.row_major:
                known[key] = (result := fallback(plan, (a, *rest), kwargs)).dtype
                return result
        return fallback(plan, (a, *rest), kwargs)

    return run


def _binary(plan: Plan) -> Run:
    known: dict[Any, torch.dtype] = {}
    write, out_name = _quickest(plan), plan.out_name

    def run(a: Any, b: Any, *rest: Any, **kwargs: Any) -> Any:
        try:
            block = a.untyped_storage().block
            # torch hands numbers over as they are.
            other = b if type(b) in _NUMBERS else b.untyped_storage().block
        except (AttributeError, NotImplementedError):
            return fallback(plan, (a, b, *rest), kwargs)
        dtype = block.dtype
        if (
            a.shape == block.shape
            and a.dtype is dtype
            and a.is_contiguous()
            and not a.storage_offset()
            and not a.is_neg()
            and (
                other is b
                or (
                    b.shape == block.shape == other.shape
                    and b.dtype is dtype is other.dtype
                    and b.is_contiguous()
                    and not b.storage_offset()
                    and not b.is_neg()
                )
            )
        ):
            right = b if other is b else other.cpu
            key: Any = dtype
            if other is b or rest or kwargs:
                key = (dtype, type(right), *map(type, rest), *map(type, kwargs.values()))
            kind = known.get(key)
            if kind is not None:
                result = new_like(block) if kind is dtype else new(block.shape, kind)
                kwargs[out_name] = result.untyped_storage().block.cpu  # type: ignore[attr-defined]
                write(block.cpu, right, *rest, **kwargs)
                return result
            if dtype in _FLOATING and _numbers(rest, kwargs):
                known[key] = (result := fallback(plan, (a, b, *rest), kwargs)).dtype
                return result
        return fallback(plan, (a, b, *rest), kwargs)

    return run


def _numbers(rest: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    return all(type(v) in _NUMBERS for v in (*rest, *kwargs.values()))


def _quickest(plan: Plan) -> Any:
    """Return the quickest way to call a pointwise operator, or its out variant.

    torch's Python functions parse their arguments in half the time of an OpOverload; where the
    operator has one of the same name, its signature is the union of the same schemas.
    """
    name = plan.name.partition("::")[2].partition(".")[0]
    found = getattr(torch._C._VariableFunctions, name, None)
    if found is not None and not _scaled_number(plan):
        return found
    return plan.op._op if plan.out is None else plan.out._op


def _scaled_number(plan: Plan) -> bool:
    """Whether it is e.g. ``add.Scalar``: Python's function makes ``add.Tensor`` of its arguments.

    That one has other rules for `alpha`.
    """
    return plan.name.endswith(".Scalar") and "alpha" in plan.names


def _functional(plan: Plan) -> Run:
    """Tensors come first, results are new."""
    if plan.out is not None and plan.fixed and plan.name not in _LARGER_ON_THE_WAY:
        return _into_place(plan)
    call = _quickest(plan) if plan.pointwise else plan.op._op
    count = sum(name in plan.singles for name in plan.names)

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            on_cpu = [v if type(v) in _PLAIN else alias(v) for v in args[:count]]
        except (AttributeError, NotImplementedError):
            return fallback(plan, args, kwargs)
        return place(call(*on_cpu, *args[count:], **kwargs))

    return run


#: Kernels that use `out` for values before a reduction, and so resize it.
_LARGER_ON_THE_WAY = frozenset(
    f"aten::{name}" for name in ("binary_cross_entropy", "mse_loss", "smooth_l1_loss", "huber_loss")
)
#: Calls remembered for an operator.
_REMEMBERED = 256


def _into_place(plan: Plan) -> Run:
    """One result with an out variant: the second such call writes it where it is to be."""
    known: dict[Any, Any] = {}  # shape and dtype of the result, by `key` below
    call, write, out_name = plan.op._op, _quickest(plan), plan.out_name
    count = sum(name in plan.singles for name in plan.names)
    usable = True

    def run(*args: Any, **kwargs: Any) -> Any:
        nonlocal usable
        try:
            on_cpu = [alias(v) for v in args[:count]]
        except (AttributeError, NotImplementedError):
            return fallback(plan, args, kwargs)
        rest = args[count:]
        key: list[Any] = [(t.shape, t.stride(), t.dtype) for t in on_cpu]
        key += [tuple(v) if type(v) is list else v for v in rest]
        if kwargs:
            key += kwargs.items()
        found = known.get(tuple(key)) if usable else None
        if found is not None:
            result = new(*found)
            block = result.untyped_storage().block  # type: ignore[attr-defined]
            try:
                write(*on_cpu, *rest, **{**kwargs, out_name: block.cpu})
                if block.cpu.shape == found[0]:
                    return result
            except RuntimeError as error:
                if NOT_RESIZABLE not in str(error):
                    block.spoil()
                    raise
                usable = False  # this kernel uses `out` for larger values on the way
            block.spoil()
        result = place(call(*on_cpu, *rest, **kwargs))
        if found is None and usable and on_cpu[0].dtype in _FLOATING and result.is_contiguous():
            if len(known) >= _REMEMBERED:
                known.clear()
            known[tuple(key)] = (result.shape, result.dtype)
        return result

    return run


def _in_place(plan: Plan) -> Run:
    """Tensors come first, the first one is written and returned."""
    name = plan.name.partition("::")[2].partition(".")[0]
    call = plan.op._op if _scaled_number(plan) else getattr(torch._C.TensorBase, name, plan.op._op)
    count = sum(name in plan.singles for name in plan.names)

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            on_cpu = [v if type(v) in _PLAIN else alias(v) for v in args[:count]]
        except (AttributeError, NotImplementedError):
            return fallback(plan, args, kwargs)
        try:
            call(*on_cpu, *args[count:], **kwargs)
        finally:  # an operator that fails half way has written too
            args[0].untyped_storage().writes += 1
        return args[0]

    return run
