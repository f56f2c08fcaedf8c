"""Tensors in CMA memory: torch tensor <-> ``PynqBuffer`` without a copy where memory allows.

torch is imported only where a tensor is asked for or given: programs that use numpy alone do not
pay for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pynq_torch.errors import PynqTorchError

from .dtypes import AS_BITS, numpy_dtype
from .places import check_alive, gone, places
from .pool import Pool, PoolStatistics, pool_of

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


def _torch() -> Any:
    import torch

    return torch


def _is_tensor(value: Any) -> bool:
    # Without importing torch: a value can only be a tensor if somebody has imported it.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_cma(data: Any) -> bool:
    """Whether a tensor or array is in CMA memory, so that the PL can reach it."""
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
        return data if data.device_address is not None and not gone(data) else None
    if not _is_tensor(data) or not data.is_cpu or not data.numel():
        return None
    return _buffer_of_tensor(data)


def _buffer_of_tensor(data: torch.Tensor) -> Any:
    # What a lazily conjugated or negated tensor shows is not what is in memory.
    if data.layout is not _torch().strided or data.is_conj() or data.is_neg():
        return None
    item, dense = data.element_size(), data.is_contiguous()
    if dense:
        span = data.numel() * item
    else:
        steps = zip(data.shape, data.stride(), strict=True)
        span = sum((n - 1) * s for n, s in steps) * item + item
    found, begin = places.find(data.data_ptr(), span)
    if found is None:
        return None
    check_alive(found)
    if gone(found):
        return None
    start = data.data_ptr() - begin
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
    dims = tuple(map(int, (shape,) if isinstance(shape, (int, np.integer)) else shape))
    if any(n < 0 for n in dims):
        raise ValueError(f"shape {dims} has a negative dimension")
    buffer = pool_of(device).take(dims, numpy_dtype(dtype))
    places.add(buffer)
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
    dtype = _torch().float32 if dtype is None else dtype
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
    places.add(buffer)
    tensor: torch.Tensor = _torch().from_numpy(np.asarray(buffer))
    return tensor if dtype is None or tensor.dtype == dtype else tensor.view(dtype)


def to_buffer(data: Any, *, device: Any = None) -> Any:
    """Return a C-contiguous CMA buffer with the values of `data`.

    Parameters
    ----------
    data : torch.Tensor, numpy.ndarray or sequence
        Contiguous data that are in CMA memory already are returned as they are: no copy. Anything
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
    if str(tensor.dtype).removeprefix("torch.") in AS_BITS:
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
                f"{type(item).__name__} is no CMA memory; expected a PynqBuffer "
                "or a tensor over one; see buffers.to_buffer and buffers.empty_tensor"
            )
        if buffer.nbytes:
            yield buffer


def trim(device: Any = None) -> int:
    """Give the pool's idle memory back to CMA; return how many bytes."""
    return pool_of(device).trim()


def statistics(device: Any = None) -> PoolStatistics:
    """Return what the pool holds and how often it could serve without allocating."""
    return pool_of(device).statistics()
