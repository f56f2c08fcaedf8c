"""How gemm's operands lie in memory: strides, addresses, and the copy where it cannot follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from pynq.buffer import PynqBuffer

from pynq_torch import buffers

from .arguments import ArgumentError
from .epilogue import BIAS, FLOAT32, INT8, INT32, KIND, WORD, dtype_name

__all__ = [
    "columns_of",
    "overlap",
    "physical_address",
    "place_of",
    "row_stride",
    "rows_in_cma",
    "vector_in_cma",
    "whole_words",
]

_DTYPES = {mode: np.dtype(dtype_name(mode)) for mode in range(16) if mode & KIND != KIND}


def whole_words(place: Any, n: int, stride: int) -> bool:
    """Whether rows of int8 begin and end with a word: what lies beside them is not ours."""
    return n % WORD == 0 and stride % WORD == 0 and int(place.device_address) % WORD == 0


def row_stride(matrix: Any) -> int | None:
    """Return the row stride in elements; ``None`` where elements of a row are apart."""
    if isinstance(matrix, np.ndarray):
        item = matrix.itemsize
        along, across = matrix.strides
        along, across = along // item, across // item
    else:
        along, across = matrix.stride()
    rows, columns = matrix.shape
    if columns > 1 and across != 1:
        return None
    if rows <= 1:
        return int(columns)
    return int(along) if along >= columns else None


def overlap(place: Any, source: Any) -> bool:
    """Whether the memory of two buffers overlaps, from their first to their last element."""
    return bool(np.may_share_memory(np.asarray(place), np.asarray(source)))


def rows_in_cma(matrix: Any, device: Any) -> tuple[Any, int, int]:
    """Return `matrix` in CMA memory, its address and its row stride; copy it only if need be.

    Returns
    -------
    buffer : PynqBuffer
    address : int
        Physical, in bytes.
    stride : int
        In elements.
    """
    own = matrix if isinstance(matrix, PynqBuffer) else buffers.buffer_of(matrix)
    if own is not None and (stride := row_stride(own)) is not None:
        address = physical_address(own)
        if address is not None:
            return own, address, stride
    own = buffers.to_buffer(matrix, device=device)
    return own, own.physical_address, int(matrix.shape[1])


def vector_in_cma(vector: Any, device: Any) -> tuple[Any, int]:
    """Return `vector` in CMA memory, elements side by side, and its physical address."""
    if isinstance(vector, PynqBuffer) and vector.flags.c_contiguous:
        address = physical_address(vector)
        if address is not None:
            return vector, address
    own = buffers.to_buffer(vector, device=device)
    return own, own.physical_address


def physical_address(buffer: PynqBuffer) -> int | None:
    """Return where a buffer lies; ``None`` for an array that is no CMA memory.

    Raises
    ------
    BufferFreed
        It was freed.
    """
    buffers.check_alive(buffer)
    address: int | None = buffer.physical_address
    return address


def place_of(cu: str, c: Any, m: int, n: int, mode: int) -> tuple[Any, int, int]:
    """Return `c`, its address and ldc, or raise where no such result can be stored there."""
    place = c if isinstance(c, PynqBuffer) else buffers.buffer_of(c)
    address = None if place is None else physical_address(place)
    if address is None:
        raise TypeError(
            f"{cu}: c is {type(c).__name__} in ordinary memory; expected a CMA buffer: "
            "buffers.empty, buffers.empty_tensor"
        )
    dtype = _DTYPES[mode] if mode in _DTYPES else np.dtype(dtype_name(mode))
    fits = place.dtype == dtype and place.shape == (m, n)
    stride = row_stride(place) if fits else None
    if stride is None:
        found = f"{place.dtype} {place.shape} with strides {place.strides}"
        raise ArgumentError(
            f"{cu}: c is {found}; expected {dtype} {(m, n)} with elements of a row side by side",
            cu,
        )
    if mode & KIND != INT8:
        return place, address, stride
    stride = -(-n // WORD) * WORD if m == 1 else stride
    if stride % WORD or address % WORD:
        raise ArgumentError(
            f"{cu}: c has int8 rows {stride} bytes apart from physical address "
            f"0x{address:x} on; expected multiples of {WORD}, since the kernel "
            "stores whole words: buffers.empty((m, -(-n // 4) * 4), 'int8')[:, :n]",
            cu,
        )
    return place, address, stride


def columns_of(
    cu: str, device: Any, n: int, mode: int, bias: Any, scale: Any
) -> Iterator[tuple[Any, int]]:
    """Yield bias and scale with their addresses; none of them where `mode` does without."""
    kind = _DTYPES[FLOAT32] if mode & KIND == FLOAT32 else _DTYPES[INT32]
    for name, value, wanted, dtype in (
        ("bias", bias, mode & BIAS, kind),
        ("scale", scale, mode & KIND, _DTYPES[FLOAT32]),
    ):
        if value is None and not wanted:
            yield None, 0
            continue
        own, address = (value, 0) if value is None else vector_in_cma(value, device)
        if not wanted or own is None or own.shape != (n,) or own.dtype != dtype:
            found = "none" if own is None else f"{own.dtype} {own.shape}"
            expected = f"{dtype} {(n,)}" if wanted else "none"
            raise ArgumentError(f"{cu}: {name} is {found}; mode {mode} takes {expected}", cu)
        yield own, address
