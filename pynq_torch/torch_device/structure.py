"""Operators about memory itself: making tensors, copying, views, resizing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .dispatch import Declined, possible
from .fallback import place, reshape, set_storage
from .memory import alias, block_of, new, new_strided, note_write, readable
from .record import counted, current
from .schema import operator

__all__ = ["check_index", "composed_kernels", "own_kernels", "room_of_clone", "view_kernel"]

_CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


def view_kernel(name: str) -> Callable[..., Any]:
    """Return the kernel of an overload whose result shares its argument's memory.

    The CPU's kernels of these look at sizes and strides only, and make the result of the
    argument's own storage and device: torch runs them on tensors of ours as they are.
    """
    redispatch = operator(name).redispatch
    marks = name in ("aten::_conj", "aten::_neg_view")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        return redispatch(_CPU_KEYS, *args, **kwargs)

    def marking(*args: Any, **kwargs: Any) -> Any:
        args[0].untyped_storage().marked = True
        return redispatch(_CPU_KEYS, *args, **kwargs)

    return marking if marks else kernel


def check_index(device: torch.device | None) -> None:
    """Raise RuntimeError for any index but 0, for example ``"pynq:1"``."""
    if device is not None and device.index:
        raise RuntimeError(
            f"invalid device ordinal {device.index}: there is one device, 'pynq' or 'pynq:0'"
        )


def _dtype(
    dtype: torch.dtype | None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> torch.dtype:
    """Return the dtype of a new tensor; refuse what the device has no tensors of."""
    check_index(device)
    if layout is not None and layout is not torch.strided:
        raise NotImplementedError(
            f"device 'pynq' has strided tensors only; found layout {layout}: make it on the CPU"
        )
    if pin_memory:
        raise RuntimeError(
            "Only dense CPU tensors can be pinned: memory of device 'pynq' is contiguous and "
            "never swapped anyway"
        )
    return torch.get_default_dtype() if dtype is None else dtype


def _empty(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    memory_format: Any = None,
    **options: Any,
) -> torch.Tensor:
    kind = _dtype(dtype, **options)
    if memory_format is None or memory_format is torch.contiguous_format:
        return _filled(new(tuple(size), kind))
    strides = torch.empty(size, device="meta", memory_format=memory_format).stride()
    return _filled(new_strided(size, strides, kind))


def _empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    **options: Any,
) -> torch.Tensor:
    return _filled(new_strided(size, stride, _dtype(dtype, **options)))


def _filled(made: torch.Tensor) -> torch.Tensor:
    """Fill memory that nothing was written to where a program wants results that repeat."""
    if torch.are_deterministic_algorithms_enabled():
        cpu = block_of(made).cpu
        reach = 1 + sum((n - 1) * step for n, step in zip(cpu.shape, cpu.stride(), strict=True))
        flat = cpu.as_strided((reach if cpu.numel() else 0,), (1,))
        # torch fills its own, if torch.utils.deterministic says so, with a value for each dtype.
        flat.copy_(torch.empty(flat.shape, dtype=cpu.dtype))
    return made


def _efficientzerotensor(size: Sequence[int], **options: Any) -> torch.Tensor:
    return _empty(size, **options).zero_()


def room_of_clone(self: torch.Tensor, memory_format: Any = None) -> torch.Tensor:
    """Return room for a clone: the shape, and the strides that torch gives it."""
    if memory_format in (None, torch.preserve_format):
        if self.is_contiguous():
            # Where a size is 1, the step there may be any; torch keeps it.
            if 1 in self.shape:
                return new_strided(self.shape, self.stride(), self.dtype)
            return new(self.shape, self.dtype)
        strides = torch.empty_like(alias(self), device="meta").stride()
        return new_strided(self.shape, strides, self.dtype)
    return _empty(self.shape, dtype=self.dtype, memory_format=memory_format)


def _clone(self: torch.Tensor, *, memory_format: Any = None) -> torch.Tensor:
    result = room_of_clone(self, memory_format)
    block_of(result).cpu.copy_(alias(self))
    return result


def _copy_(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    if self.device.type == "pynq":
        alias(self).copy_(_readable(src))
        note_write(self)
    else:
        self.copy_(_readable(src))
    return self


def _readable(tensor: torch.Tensor) -> torch.Tensor:
    return readable(tensor) if tensor.device.type == "pynq" else tensor


def _offered(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that the loaded overlay is asked for first."""

    def run(*args: Any, **kwargs: Any) -> Any:
        ask = possible(name)
        result = ask(*args, **kwargs) if ask is not None else None
        if result is None or isinstance(result, Declined):
            return kernel(*args, **kwargs)
        call = current()
        if call is not None and call.name == name:
            call.where = "PL"
        return result

    return run


def _copy_from(self: torch.Tensor, dst: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    return _copy_(dst, self)


def _copy_from_and_resize(self: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    if dst.shape != self.shape:
        dst.resize_(self.shape)
    return _copy_(dst, self)


def _resize_(self: torch.Tensor, size: Sequence[int], *, memory_format: Any = None) -> torch.Tensor:
    if memory_format is None and tuple(size) == tuple(self.shape):
        return self  # whatever its strides
    shape = torch.empty(size, device="meta", memory_format=memory_format or torch.contiguous_format)
    return reshape(self, shape.shape, shape.stride())


def _untyped(source: Any) -> Any:
    return source._untyped_storage if isinstance(source, torch.TypedStorage) else source


def _set_storage(
    self: torch.Tensor,
    source: Any,
    storage_offset: int = 0,
    size: Sequence[int] = (),
    stride: Sequence[int] = (),
) -> torch.Tensor:
    strides = stride or torch.empty(size, device="meta").stride()
    return set_storage(self, _untyped(source), storage_offset, size, strides)


def _set_source_storage(self: torch.Tensor, source: Any) -> torch.Tensor:
    count = _untyped(source).nbytes() // self.element_size()
    return set_storage(self, _untyped(source), 0, (count,), (1,))


def _set_tensor(self: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    shown = (int(source.storage_offset()), source.shape, source.stride())
    return set_storage(self, source.untyped_storage(), *shown)


def _set_nothing(self: torch.Tensor) -> torch.Tensor:
    return _set_tensor(self, new((0,), self.dtype))


def _to_copy(self: torch.Tensor, **options: Any) -> torch.Tensor:
    """Copy to another device or dtype. torch would pin memory of the CPU for ``non_blocking``."""
    options["non_blocking"] = False
    return _TO_COPY.redispatch(_CPU_KEYS, self, **options)  # type: ignore[no-any-return]


_TO_COPY = operator("aten::_to_copy")


def _tensor_split(
    self: torch.Tensor, tensor_indices_or_sections: torch.Tensor, dim: int = 0
) -> list[torch.Tensor]:
    """Split at places that are read here; torch takes them from the CPU only."""
    places = tensor_indices_or_sections.cpu()
    return _TENSOR_SPLIT.redispatch(_CPU_KEYS, self, places, dim)  # type: ignore[no-any-return]


_TENSOR_SPLIT = operator("aten::tensor_split.tensor_indices_or_sections")


def _indices(name: str) -> Callable[..., Any]:
    """Return the kernel of a factory that torch has for the CPU only."""
    make = operator(name)

    def kernel(*sizes: Any, device: Any = None, pin_memory: Any = None, **options: Any) -> Any:
        return place(make(*sizes, **options))

    return kernel


def composed_kernels() -> dict[str, Callable[..., Any]]:
    """Return kernels of operators that torch composes of others, by overload.

    They are for autograd too, which sees what they call.
    """
    return {"aten::tensor_split.tensor_indices_or_sections": _tensor_split}


def own_kernels() -> dict[str, Callable[..., Any]]:
    """Return the kernels of this module by overload."""
    return {
        "aten::empty.memory_format": _empty,
        "aten::empty_strided": _empty_strided,
        "aten::_efficientzerotensor": _efficientzerotensor,
        "aten::clone": counted("aten::clone", _offered("aten::clone", _clone)),
        "aten::copy_": counted("aten::copy_", _offered("aten::copy_", _copy_)),
        "aten::_to_copy": _to_copy,
        "aten::_copy_from": counted("aten::_copy_from", _copy_from),
        "aten::_copy_from_and_resize": _copy_from_and_resize,
        "aten::resize_": _resize_,
        "aten::set_.source_Storage_storage_offset": _set_storage,
        "aten::set_.source_Storage": _set_source_storage,
        "aten::set_.source_Tensor": _set_tensor,
        "aten::set_": _set_nothing,
        "aten::tril_indices": _indices("aten::tril_indices"),
        "aten::triu_indices": _indices("aten::triu_indices"),
    }
