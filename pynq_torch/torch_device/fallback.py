"""The CPU does an operator of device "pynq", on the very memory of the tensors."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .memory import (
    CmaStorage,
    alias,
    make_room,
    new,
    new_like,
    new_strided,
    note_write,
    resize_storage,
)
from .random import default_generator, swapped_state
from .schema import Plan

__all__ = ["fallback", "fallback_of", "place", "replace", "reshape", "set_storage"]

_FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_NUMBERS = (int, float, bool)
#: What torch gives for a tensor argument beside tensors.
_PLAIN = (*_NUMBERS, complex, type(None))
#: torch lets these take CPU tensors beside tensors of a device.
_CPU_TOO = frozenset(
    f"aten::{name}"
    for name in (
        *("index.Tensor", "index.Tensor_out", "_unsafe_index.Tensor"),
        *("index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put", "index_put.out"),
        *("_copy_from_and_resize", "_foreach_copy_", "_fused_adam_", "_fused_adamw_"),
        *("_fused_sgd_", "_fused_adagrad_"),
    )
)

Run = Callable[..., Any]


def fallback_of(plan: Plan) -> Run:
    """Return the function that does the operator on the CPU, as quick as its schema allows."""
    tensors = [n for n in plan.names if n in plan.singles]
    plain = not (plan.lists or plan.generator or plan.seeded)
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


# ---- the quick way -------------------------------------------------------------------------------
# A Python call costs as much as a small operator, hence functions for the common kinds of schema
# with as little in them as can be.
#
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
            result = fallback(plan, (a, *rest), kwargs)
            if dtype in _FLOATING and _numbers(rest, kwargs) and block.row_major:
                known[key] = result.dtype
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
            result = fallback(plan, (a, b, *rest), kwargs)
            if dtype in _FLOATING and _numbers(rest, kwargs):
                known[key] = result.dtype
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
    """One result with an out variant: the second such call writes it where it is to lie.

    Shape, strides and dtype of the result follow from those of the tensors and from the scalars;
    they are remembered from the first call with the same ones.
    """
    known: dict[Any, Any] = {}
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
        if found is None:
            result = place(call(*on_cpu, *rest, **kwargs))
            if usable and on_cpu[0].dtype in _FLOATING and result.is_contiguous():
                if len(known) >= _REMEMBERED:
                    known.clear()
                known[tuple(key)] = (result.shape, result.dtype)
            return result
        result = new(*found)
        block = result.untyped_storage().block  # type: ignore[attr-defined]
        try:
            write(*on_cpu, *rest, **{**kwargs, out_name: block.cpu})
        except RuntimeError as error:
            block.spoil()
            if _NOT_RESIZABLE not in str(error):
                raise
            # This kernel uses `out` for larger values on the way: never again.
            usable = False
            return place(call(*on_cpu, *rest, **kwargs))
        if block.cpu.shape != found[0]:
            block.spoil()
            return place(call(*on_cpu, *rest, **kwargs))
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


# ---- the general way -----------------------------------------------------------------------------


def fallback(plan: Plan, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Do an operator on the CPU.

    Parameters
    ----------
    plan : Plan
        The operator.
    args, kwargs
        As torch dispatched them.

    Returns
    -------
    Any
        New tensors on device "pynq", the written arguments themselves, or what is no tensor.

    Raises
    ------
    RuntimeError
        Tensors of another device among the arguments; whatever the CPU's kernel raises.
    """
    given = dict(zip(plan.names, args, strict=False))
    given.update(kwargs)
    on_cpu = dict(given)
    for name in plan.singles:
        value = given.get(name)
        if value is not None:
            on_cpu[name] = _reach(plan, name, value)
    for name in plan.lists:
        values = given.get(name)
        if values is not None:
            on_cpu[name] = [None if v is None else _reach(plan, name, v) for v in values]
    # An operand that is written as well has to be one tensor for the CPU too: only so does torch
    # see that ``out`` is an input, which must not be resized.
    for name, other in _twice(plan, given):
        on_cpu[other] = on_cpu[name]
    if plan.generator and on_cpu.get("generator") is None:
        on_cpu["generator"] = default_generator
    if not plan.written:
        return place(_call(plan, on_cpu, given))
    try:
        result = _call(plan, on_cpu, given)
    except BaseException:
        _note_partial_writes(plan, given)
        raise
    _note_writes(plan, given, on_cpu)
    if len(plan.returns) == 1:
        return given[plan.returns[0]] if plan.returns[0] else place(result)
    if not plan.returns:
        return None
    return tuple(
        given[name] if name else place(value)
        for name, value in zip(plan.returns, result, strict=True)
    )


def _twice(plan: Plan, given: dict[str, Any]) -> list[tuple[str, str]]:
    """Return pairs of arguments that are the same tensor, the first of them written."""
    return [
        (name, other)
        for name in plan.written
        if isinstance(given.get(name), torch.Tensor)
        for other in plan.singles
        if other != name and given.get(other) is given[name]
    ]


_seeded_lock = threading.Lock()


def _call(plan: Plan, on_cpu: dict[str, Any], given: dict[str, Any]) -> Any:
    # By position up to the first default that torch has left out, by name behind it.
    leading = tuple(itertools.takewhile(on_cpu.__contains__, plan.names[: plan.positional]))
    positional = [on_cpu[name] for name in leading]
    named = {n: on_cpu[n] for n in plan.names[len(leading) :] if n in on_cpu}
    if plan.seeded:
        with _seeded_lock, swapped_state():
            return plan.op._op(*positional, **named)
    try:
        return plan.op._op(*positional, **named)
    except RuntimeError as error:
        written = [n for n in plan.written if on_cpu.get(n) is not None]
        if not written or _NOT_RESIZABLE not in str(error):
            raise
        # The result needs more memory than the tensor has: let the CPU make it in memory of its
        # own, then move the tensor there. At first only what is empty, because the CPU keeps the
        # strides of what fits.
        for empty_only in (True, False):
            _make_room(plan, on_cpu, given, named, empty_only=empty_only)
            try:
                return plan.op._op(*[on_cpu[n] for n in leading], **{n: on_cpu[n] for n in named})
            except RuntimeError as again:
                if _NOT_RESIZABLE not in str(again):
                    raise
        raise


def _make_room(
    plan: Plan,
    on_cpu: dict[str, Any],
    given: dict[str, Any],
    named: dict[str, Any],
    *,
    empty_only: bool,
) -> None:
    """Put tensors that can be resized in place of the written ones.

    Those given by name are results, the others are read as well. What was there has been described
    again by the attempt that failed: everything starts from the tensors that were given.
    """

    def own(name: str, tensor: torch.Tensor) -> torch.Tensor:
        view: torch.Tensor = _reach(plan, name, tensor)
        if empty_only and tensor.numel():
            return view
        return view.new_empty(0) if name in named else view.clone()

    for name in plan.written:
        value = given.get(name)
        if isinstance(value, torch.Tensor):
            on_cpu[name] = own(name, value)
        elif value is not None:
            on_cpu[name] = [own(name, v) for v in value]
    for _, other in _twice(plan, given):
        if other not in plan.written:
            on_cpu[other] = _reach(plan, other, given[other])


_NOT_RESIZABLE = "resize storage that is not resizable"


def _reach(plan: Plan, name: str, value: Any) -> Any:
    """Return a tensor argument as the CPU sees it; torch gives plain numbers as numbers."""
    if not isinstance(value, torch.Tensor):
        return value
    try:
        found = alias(value)
    except (AttributeError, NotImplementedError):
        return _foreign(plan, name, value)
    if name in plan.written:
        # The CPU's kernel may resize it: not the view that the storage keeps.
        found = torch.as_strided(found, found.size(), found.stride(), found.storage_offset())
    return found


def _foreign(plan: Plan, name: str, value: torch.Tensor) -> torch.Tensor:
    if value.layout is not torch.strided:
        raise NotImplementedError(
            f"{plan.name}: argument {name!r} has layout {value.layout}; device 'pynq' has strided "
            "tensors only: pass tensor.to_dense(), or do this on the CPU"
        )
    readable = value.device.type == "cpu" and name not in plan.written
    may = plan.name in _CPU_TOO and (name == "indices" or "indices" not in plan.names)
    if readable and (not value.dim() or may):
        return value
    if value.device.type == "pynq":
        raise RuntimeError(
            f"{plan.name}: argument {name!r} is on device 'pynq' with a storage that is not CMA "
            "memory; tensors of this device come from torch's own functions or from .to('pynq')"
        )
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but {plan.name} found at least two "
        f"devices, pynq:0 and {value.device}: argument {name!r} is on {value.device}. Move it with "
        ".to('pynq'), or the others with .cpu()."
    )


def place(value: Any) -> Any:
    """Return results of the CPU on device "pynq": new tensors in CMA memory with their values."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise NotImplementedError(
                f"the result has layout {value.layout}; device 'pynq' has strided tensors only: "
                "do this on the CPU (tensor.cpu())"
            )
        if value.is_contiguous() or not _is_dense(value):
            result = new(value.shape, value.dtype)
        else:
            result = new_strided(value.shape, value.stride(), value.dtype)
        result.untyped_storage().block.cpu.copy_(value)  # type: ignore[attr-defined]
        return result
    if isinstance(value, (tuple, list)):
        return type(value)(map(place, value))
    return value


def _is_dense(value: torch.Tensor) -> bool:
    """Whether the elements fill a stretch of memory, in whatever order."""
    return bool(torch.ops.aten.is_non_overlapping_and_dense(value))


def _note_writes(plan: Plan, given: dict[str, Any], on_cpu: dict[str, Any]) -> None:
    for name in plan.written:
        values, seen = given.get(name), on_cpu.get(name)
        if values is None or seen is None:
            continue
        if isinstance(values, torch.Tensor):
            values, seen = (values,), (seen,)
        for tensor, view in zip(values, seen, strict=True):
            if tensor.device.type != "pynq":
                continue
            note_write(tensor)
            if tensor.shape != view.shape or tensor.stride() != view.stride():
                replace(tensor, view)
            elif tensor.data_ptr() != view.data_ptr():
                alias(tensor).copy_(view)


def _note_partial_writes(plan: Plan, given: dict[str, Any]) -> None:
    """Count writes of an operator that failed, maybe half way; shapes stay as they are."""
    for name in plan.written:
        values = given.get(name)
        for tensor in (values,) if isinstance(values, torch.Tensor) else values or ():
            if tensor.device.type == "pynq":
                note_write(tensor)


def replace(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Make a tensor on device "pynq" show what the CPU's kernel made of it after a resize."""
    shape, strides = values.shape, values.stride()
    if values.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr():
        offset = int(values.storage_offset())
        set_storage(tensor, tensor.untyped_storage(), offset, shape, strides)
    else:
        reshape(tensor, shape, strides)
        alias(tensor).copy_(values)


def reshape(tensor: torch.Tensor, shape: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    """Give a tensor on device "pynq" other sizes and strides; its storage grows where needed."""
    offset = int(tensor.storage_offset())
    room = make_room(tensor, _end(shape, strides, offset) * tensor.element_size())
    return set_storage(tensor, room, offset, shape, strides)


def _end(shape: Sequence[int], strides: Sequence[int], offset: int) -> int:
    """Return the elements of a storage up to the last one of a tensor."""
    steps = [(n - 1) * s for n, s in zip(shape, strides, strict=False)]
    return 0 if 0 in shape else offset + 1 + sum(steps)


_CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


def set_storage(
    tensor: torch.Tensor, storage: Any, offset: int, shape: Sequence[int], strides: Sequence[int]
) -> torch.Tensor:
    """Give a tensor a storage of device "pynq", an offset, sizes and strides.

    As on the CPU, the storage becomes larger where it is too small for them.
    """
    needed = _end(shape, strides, offset) * tensor.element_size()
    if isinstance(storage, CmaStorage) and needed > storage.nbytes():
        resize_storage(storage, needed, tensor.dtype)
    setter = torch.ops.aten.set_.source_Storage_storage_offset
    setter.redispatch(_CPU_KEYS, tensor, storage, offset, list(shape), list(strides))
    return tensor
