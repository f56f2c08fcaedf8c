"""The CPU does an operator of device "pynq", on the very memory of the tensors."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from .exact import int_mm
from .layouts import SPARSE, alias_sparse, follow_sparse, mapped
from .memory import (
    CmaStorage,
    alias,
    make_room,
    new,
    new_strided,
    note_write,
    resize_storage,
)
from .random import default_generator, swapped_state
from .schema import Plan

__all__ = ["INSTEAD", "NOT_RESIZABLE", "fallback", "place", "reshape", "set_storage"]

#: In torch's error where a kernel wants to resize a tensor over memory of ours.
NOT_RESIZABLE = "resize storage that is not resizable"
#: Only then does the CPU's kernel return what the backward pass reads without a check.
_LOOKS_AT_REQUIRES_GRAD = "aten::_sparse_mm_reduce_impl"
#: What is called in place of torch's operator on the CPU.
INSTEAD = {"aten::_int_mm": int_mm, "aten::_int_mm.out": int_mm}
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


def fallback(plan: Plan, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Do an operator on the CPU, with the arguments as torch dispatched them.

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
    on_cpu = _on_cpu(plan, given)
    if not plan.written:
        return place(_call(plan, on_cpu, given))
    try:
        result = _call(plan, on_cpu, given)
    except BaseException:
        for tensor, _ in _written(plan, given, on_cpu):  # maybe half way
            if tensor.layout is torch.strided:
                note_write(tensor)
        raise
    return _finished(plan, given, on_cpu, result)


def _on_cpu(plan: Plan, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments for the CPU's kernel."""
    on_cpu: dict[str, Any] = {
        name: [_reach(plan, name, v) for v in value]
        if name in plan.lists and value is not None
        else _reach(plan, name, value)
        for name, value in given.items()
    }
    # An operand that is written as well has to be one tensor for the CPU too: only so does torch
    # see that ``out`` is an input, which must not be resized. It adds some sparse layouts only if
    # both are one tensor.
    for name, other in _twice(plan, given):
        on_cpu[other] = on_cpu[name]
    if plan.name == _LOOKS_AT_REQUIRES_GRAD:
        wanted = [v.requires_grad for v in given.values() if isinstance(v, torch.Tensor)]
        on_cpu["self"].requires_grad_(any(wanted))
    if plan.generator and on_cpu.get("generator") is None:
        on_cpu["generator"] = default_generator
    return on_cpu


def _finished(
    plan: Plan, given: dict[str, Any], on_cpu: dict[str, Any], result: Any
) -> torch.Tensor | tuple[Any, ...] | None:
    """Return what an operator that writes to arguments returns; resized ones have been moved."""
    for tensor, view in _written(plan, given, on_cpu):
        if tensor.layout is not torch.strided:
            follow_sparse(tensor, view, place)
            continue
        note_write(tensor)
        if tensor.shape != view.shape or tensor.stride() != view.stride():
            _follow(tensor, view)
        elif tensor.data_ptr() != view.data_ptr():
            alias(tensor).copy_(view)
    results = result if len(plan.returns) > 1 else (result,)
    pairs = zip(plan.returns, results, strict=False)
    placed = tuple(given[name] if name else place(value) for name, value in pairs)
    return placed if len(placed) > 1 else placed[0] if placed else None


def _twice(plan: Plan, given: dict[str, Any]) -> list[tuple[str, str]]:
    """Return pairs of arguments that are the same tensor, the first of them written or sparse."""
    tensors = {name: v for name, v in given.items() if isinstance(v, torch.Tensor)}
    return [
        (name, other)
        for name, value in tensors.items()
        if name in plan.written or value.layout is not torch.strided
        for other in plan.singles
        if other != name and given.get(other) is value
    ]


_seeded_lock = threading.Lock()


def _call(plan: Plan, on_cpu: dict[str, Any], given: dict[str, Any]) -> Any:
    # By position up to the first default that torch has left out, by name behind it.
    leading = tuple(itertools.takewhile(on_cpu.__contains__, plan.names[: plan.positional]))
    positional = [on_cpu[name] for name in leading]
    named = {n: on_cpu[n] for n in plan.names[len(leading) :] if n in on_cpu}
    call = INSTEAD.get(plan.name, plan.op._op)
    if plan.seeded:
        with _seeded_lock, swapped_state():
            return call(*positional, **named)
    try:
        return call(*positional, **named)
    except RuntimeError as error:
        written = [n for n in plan.written if on_cpu.get(n) is not None]
        if not written or NOT_RESIZABLE not in str(error):
            raise
        # The result needs more memory than the tensor has: let the CPU make it in memory of its
        # own, then move the tensor there. At first only what is empty, because the CPU keeps the
        # strides of what fits.
        for empty in (True, False):
            _make_room(plan, on_cpu, given, named, empty)
            try:
                return call(*[on_cpu[n] for n in leading], **{n: on_cpu[n] for n in named})
            except RuntimeError as again:
                if NOT_RESIZABLE not in str(again):
                    raise
        raise


def _make_room(
    plan: Plan, on_cpu: dict[str, Any], given: dict[str, Any], named: dict[str, Any], empty: bool
) -> None:
    """Put tensors that can be resized in place of the written ones; `empty`: of those only.

    Those given by name are results, the others are read as well. What was there has been described
    again by the attempt that failed: everything starts from the tensors that were given.
    """

    def own(name: str, tensor: torch.Tensor) -> torch.Tensor:
        view: torch.Tensor = _reach(plan, name, tensor)
        if empty and tensor.numel():
            return view
        own = name in named and view.layout is torch.strided
        return view.new_empty(0) if own else view.clone()

    for name in plan.written:
        value = given.get(name)
        if isinstance(value, torch.Tensor):
            on_cpu[name] = own(name, value)
        elif value is not None:
            on_cpu[name] = [own(name, v) for v in value]
    for _, other in _twice(plan, given):
        if other not in plan.written:
            on_cpu[other] = _reach(plan, other, given[other])


def _reach(plan: Plan, name: str, value: Any) -> Any:
    """Return a tensor argument as the CPU sees it; torch gives plain numbers as numbers."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.layout in SPARSE and value.device.type == "pynq":
        return alias_sparse(value)
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
            f"{plan.name}: argument {name!r} has layout {value.layout}, which device 'pynq' has no "
            "tensors of: pass tensor.to_dense(), or do this on the CPU"
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
        if value.layout in SPARSE:
            return mapped(value, place)
        if value.layout is not torch.strided:
            raise NotImplementedError(
                f"the result has layout {value.layout}, which device 'pynq' has no tensors of: "
                "do this on the CPU (tensor.cpu())"
            )
        # Dense: the elements fill a stretch of memory, in whatever order.
        if value.is_contiguous() or not torch.ops.aten.is_non_overlapping_and_dense(value):
            result = new(value.shape, value.dtype)
        else:
            result = new_strided(value.shape, value.stride(), value.dtype)
        result.untyped_storage().block.cpu.copy_(value)  # type: ignore[attr-defined]
        return result
    if isinstance(value, (tuple, list)):
        return type(value)(map(place, value))
    return value


def _written(
    plan: Plan, given: dict[str, Any], on_cpu: dict[str, Any]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield each tensor of the device that is written, and what the CPU has for it."""
    for name in plan.written:
        values, seen = given.get(name), on_cpu.get(name)
        if values is None or seen is None:
            continue
        if isinstance(values, torch.Tensor):
            values, seen = (values,), (seen,)
        for tensor, view in zip(values, seen, strict=True):
            if tensor.device.type == "pynq":
                yield tensor, view


def _follow(tensor: torch.Tensor, values: torch.Tensor) -> None:
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
