"""Tensors in CMA memory: torch tensor <-> ``PynqBuffer`` without a copy where memory allows.

torch is imported only where a tensor is asked for or given: programs that use numpy alone do not
pay for it.
"""

from __future__ import annotations

import bisect
import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pynq_torch.errors import BufferFreed, DtypeError, PynqTorchError

from .pool import Lease, Pool, PoolStatistics, pool_of

if TYPE_CHECKING:
    import torch

__all__ = [
    "Pool",
    "PoolStatistics",
    "as_tensor",
    "buffer_of",
    "check_alive",
    "empty",
    "empty_tensor",
    "flush",
    "invalidate",
    "is_cma",
    "pool_of",
    "statistics",
    "to_buffer",
    "trim",
]

#: torch dtypes that numpy lacks -> the integers that hold their bits.
_AS_BITS = {
    "bfloat16": "uint16",
    "float8_e4m3fn": "uint8",
    "float8_e5m2": "uint8",
    "float8_e4m3fnuz": "uint8",
    "float8_e5m2fnuz": "uint8",
}
_SAME = (
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)


def _torch() -> Any:
    import torch

    return torch


def _is_tensor(value: Any) -> bool:
    # Without importing torch: a value can only be a tensor if somebody has imported it.
    import sys

    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the numpy dtype that holds `dtype`.

    Parameters
    ----------
    dtype : torch.dtype or numpy dtype
        bfloat16 and the float8 kinds, which numpy lacks, are held as unsigned integers of their
        width: the bits are what the PL reads.

    Raises
    ------
    DtypeError
        Quantised, complex32 and sub-byte dtypes.
    """
    known = _kinds.get(dtype) if type(dtype).__hash__ is not None else None
    if known is None:
        known = _kind_of(dtype)
        if str(dtype).startswith("torch."):  # there are few; dtypes of numpy are without end
            _kinds[dtype] = known
    return known


_kinds: dict[Any, np.dtype[Any]] = {}


def _kind_of(dtype: Any) -> np.dtype[Any]:
    name = str(dtype)
    if not name.startswith("torch."):
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise DtypeError(
                f"dtype {kind} cannot lie in a CMA buffer: the PL reads bytes, not Python objects; "
                "use a numeric dtype"
            )
        return kind
    name = name.removeprefix("torch.")
    if name in _SAME:
        return np.dtype(name)
    if name in _AS_BITS:
        return np.dtype(_AS_BITS[name])
    if name.startswith(("qint", "quint")):
        raise DtypeError(
            f"dtype torch.{name} carries a scale that a buffer cannot hold; pass tensor.int_repr() "
            "and keep scale and zero_point beside it"
        )
    raise DtypeError(
        f"dtype torch.{name} has no equivalent in numpy; expected one of "
        f"{', '.join((*_SAME, *_AS_BITS))}; convert with tensor.to(...)"
    )


# ---- where tensors lie ---------------------------------------------------------------------------


class _Places:
    """Which virtual addresses belong to which live buffer; tensors know only their address."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starts: list[int] = []
        self._buffers: dict[int, weakref.ref[Any]] = {}

    def add(self, buffer: Any) -> None:
        start = int(buffer.virtual_address)
        if not buffer.nbytes:
            return
        with self._lock:
            known = self._buffers.get(start)
            held = known() if known is not None else None
            if held is buffer:
                return
            if held is not None and held.nbytes >= buffer.nbytes and not _freed(held):
                return
            if known is None:
                bisect.insort(self._starts, start)
            self._buffers[start] = weakref.ref(buffer)

    def find(self, address: int, nbytes: int) -> tuple[Any, int]:
        """Return the buffer that holds the bytes, ``None`` without one, and where it starts."""
        with self._lock:
            index = bisect.bisect_right(self._starts, address) - 1
            while index >= 0:
                start = self._starts[index]
                buffer = self._buffers[start]()
                if buffer is None:
                    del self._buffers[start]
                    self._starts.pop(index)
                elif address + nbytes <= start + buffer.nbytes:
                    return buffer, start
                elif address >= start + buffer.nbytes:
                    return None, 0
                index -= 1
        return None, 0


_places = _Places()


def _freed(buffer: Any) -> bool:
    """Whether the memory behind a PynqBuffer was given back explicitly; views follow their base."""
    if isinstance(buffer, Lease):
        # The lease knows for its views as well; what it lies over belongs to the pool alone.
        return buffer.freed or bool(getattr(buffer.bo, "freed", False))  # type: ignore[attr-defined]
    here = buffer
    while here is not None:
        # Not by hasattr on everything: a base may be a memoryview or a mmap.
        if getattr(here, "freed", False):
            return True
        bo = getattr(here, "bo", None)
        if bo is None:
            return False
        if getattr(bo, "freed", False):
            return True
        here = here.base
    return False


def _gone(buffer: Any) -> bool:
    """Whether the buffer's board was closed: the values are there, for the PL it is no memory."""
    return bool(getattr(getattr(buffer, "bo", None), "gone", ""))


def check_alive(buffer: Any) -> None:
    """Raise :class:`BufferFreed` where `buffer` was freed.

    On a board a freed buffer is unmapped: touching it ends the process, so ask before.
    """
    if _freed(buffer):
        raise BufferFreed(
            f"this CMA buffer ({buffer.dtype}[{'x'.join(map(str, buffer.shape))}]) was freed and "
            "is used again; keep it alive as long as it is used: no freebuffer(), no leaving its "
            "`with` block"
        )


def is_cma(data: Any) -> bool:
    """Whether a tensor or array lies in CMA memory, so that the PL can reach it."""
    return buffer_of(data) is not None


def buffer_of(data: Any) -> Any:
    """Return the ``PynqBuffer`` over the very memory of `data`, or ``None``.

    Parameters
    ----------
    data : torch.Tensor or numpy.ndarray
        Any strides; the result has the same shape and strides.

    Returns
    -------
    PynqBuffer or None
        A view, or the buffer itself where `data` is all of it; ``None`` where `data` is ordinary
        memory.

    Raises
    ------
    BufferFreed
        The memory was CMA memory and has been freed.
    """
    from pynq.buffer import PynqBuffer

    if isinstance(data, PynqBuffer):
        check_alive(data)
        return data if data.device_address is not None and not _gone(data) else None
    if not _is_tensor(data) or not data.is_cpu or not data.numel():
        return None
    # What a lazily conjugated or negated tensor shows is not what lies in memory.
    if data.layout is not _torch().strided or data.is_conj() or data.is_neg():
        return None
    item, dense = data.element_size(), data.is_contiguous()
    if dense:
        span = data.numel() * item
    else:
        steps = zip(data.shape, data.stride(), strict=True)
        span = sum((n - 1) * s for n, s in steps) * item + item
    address = data.data_ptr()
    found, begin = _places.find(address, span)
    if found is None:
        return None
    check_alive(found)
    if _gone(found):
        return None
    start = address - begin
    kind = numpy_dtype(data.dtype)
    # Mostly the whole buffer is meant; the views below cost ten times as much as all before.
    whole = not start and dense and found.shape == data.shape and found.dtype == kind
    if whole and found.flags.c_contiguous:
        return found
    strides = tuple(s * item for s in data.stride())
    words = found.reshape(-1).view(np.uint8)[start : start + span].view(kind)
    return np.lib.stride_tricks.as_strided(words, tuple(data.shape), strides, subok=True)


# ---- making buffers ------------------------------------------------------------------------------


def empty(shape: int | Sequence[int], dtype: Any = "float32", *, device: Any = None) -> Any:
    """Allocate a CMA buffer from the pool.

    Parameters
    ----------
    shape : int or sequence of int
        Zero-sized shapes are allowed.
    dtype : torch.dtype or numpy dtype
        See :func:`numpy_dtype`.
    device : pynq.Device, optional
        Default: the active one.

    Returns
    -------
    PynqBuffer
        Uninitialised, starting on a page; its memory returns to the pool when the last reference
        goes (views and tensors over it count), or on ``freebuffer()``.

    Raises
    ------
    CmaExhausted
        With the size asked for and what there is.
    DtypeError
        numpy has no place for the dtype.
    """
    dims = (shape,) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if any(n < 0 for n in dims):
        raise ValueError(f"shape {dims} has a negative dimension")
    buffer = pool_of(device).take(tuple(int(n) for n in dims), numpy_dtype(dtype))
    _places.add(buffer)
    return buffer


def empty_tensor(
    shape: int | Sequence[int], dtype: Any = None, *, device: Any = None
) -> torch.Tensor:
    """Allocate a CPU tensor whose memory is a CMA buffer.

    Kernels take such a tensor without a copy, and the CPU sees their results in it.

    Parameters
    ----------
    shape : int or sequence of int
        Its shape.
    dtype : torch.dtype, optional
        Default: ``torch.float32``.
    device : pynq.Device, optional
        Default: the active one.
    """
    dtype = dtype if dtype is not None else _torch().float32
    return as_tensor(empty(shape, dtype, device=device), dtype)


def as_tensor(buffer: Any, dtype: Any = None) -> torch.Tensor:
    """Return a tensor over a buffer's memory, without a copy.

    Parameters
    ----------
    buffer : PynqBuffer
        From ``pynq.allocate`` or :func:`empty`. The tensor keeps it alive.
    dtype : torch.dtype, optional
        Reinterprets the bits, e.g. ``torch.bfloat16`` over ``uint16``.

    Raises
    ------
    BufferFreed
        The buffer was freed.
    """
    check_alive(buffer)
    _places.add(buffer)
    tensor: torch.Tensor = _torch().from_numpy(np.asarray(buffer))
    return tensor if dtype is None or tensor.dtype == dtype else tensor.view(dtype)


def to_buffer(data: Any, *, device: Any = None) -> Any:
    """Return a C-contiguous CMA buffer with the values of `data`.

    Parameters
    ----------
    data : torch.Tensor, numpy.ndarray or sequence
        Contiguous data that lie in CMA memory already are returned as they are: no copy. Anything
        else is copied once into a buffer from the pool and flushed; non-contiguous data become
        contiguous on the way.
    device : pynq.Device, optional
        Default: the active one.

    Returns
    -------
    PynqBuffer
        Of the same shape; of the dtype :func:`numpy_dtype` gives.

    Raises
    ------
    CmaExhausted, DtypeError, BufferFreed
        See there.
    """
    own = buffer_of(data)
    if own is not None and own.flags.c_contiguous:
        return own
    values = _as_array(data)
    buffer = empty(values.shape, values.dtype, device=device)
    if buffer.nbytes:
        np.copyto(np.asarray(buffer), values)
        buffer.flush()
    return buffer


def _as_array(data: Any) -> np.ndarray[Any, Any]:
    if not _is_tensor(data):
        values = np.asarray(data)
        numpy_dtype(values.dtype)
        return values
    tensor = data.detach()
    if tensor.device.type != "cpu":
        raise PynqTorchError(
            f"the tensor is on device {str(tensor.device)!r}; expected 'cpu'; pass tensor.cpu()"
        )
    if str(tensor.layout) != "torch.strided":
        raise PynqTorchError(
            f"the tensor's layout is {tensor.layout}; expected torch.strided; "
            "pass tensor.to_dense()"
        )
    kind = numpy_dtype(tensor.dtype)
    name = str(tensor.dtype).removeprefix("torch.")
    if name in _AS_BITS:
        tensor = tensor.contiguous().view(getattr(_torch(), kind.name))
    # A lazily conjugated or negated tensor is made real first: memory holds no such marks.
    array: np.ndarray[Any, Any] = tensor.resolve_conj().resolve_neg().numpy()
    return array


# ---- cache and pool ------------------------------------------------------------------------------


def flush(*buffers: Any) -> None:
    """Write the CPU's cache back, so that the PL sees what the CPU wrote: before a start."""
    for buffer in _present(buffers):
        buffer.flush()


def invalidate(*buffers: Any) -> None:
    """Drop the CPU's cache, so that the CPU sees what the PL wrote: after a run."""
    for buffer in _present(buffers):
        buffer.invalidate()


def _present(items: Iterable[Any]) -> Iterable[Any]:
    for item in items:
        buffer = buffer_of(item)
        if buffer is None:
            if getattr(item, "size", None) == 0 or (_is_tensor(item) and not item.numel()):
                continue
            raise PynqTorchError(
                f"{type(item).__name__} is no CMA memory; expected a PynqBuffer or a tensor over "
                "one; "
                "see buffers.to_buffer and buffers.empty_tensor"
            )
        if buffer.nbytes:
            yield buffer


def trim(device: Any = None) -> int:
    """Give the pool's idle memory back to CMA; return how many bytes."""
    return pool_of(device).trim()


def statistics(device: Any = None) -> PoolStatistics:
    """Return what the pool holds and how often it could serve without allocating."""
    return pool_of(device).statistics()
