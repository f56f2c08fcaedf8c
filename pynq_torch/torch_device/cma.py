"""CMA memory for tensors of device "pynq": taken from the pool, prepared for torch, used again.

Tensors up to a page share arenas. The memory of a tensor that has gone waits, up to `KEEP_BYTES`,
for the next tensor of the same shape, dtype and strides.
"""

from __future__ import annotations

import collections
import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from pynq_torch.buffers.pool import pool_of
from pynq_torch.errors import CmaExhausted, DeviceLost

from .blocks import ARENA_BYTES, Arena, Block, Idle, Memory
from .dlpack import import_at, is_importable

__all__ = [
    "Owner",
    "allocated_bytes",
    "at_first_use",
    "in_forked_child",
    "lost_by_fork",
    "mark_forked",
    "new_block",
    "peak_bytes",
    "ready",
    "reserved_bytes",
    "reuse",
    "row_major",
    "statistics",
    "tensor_of",
    "trim",
    "used_device",
]

#: A cache line of the Cortex-A9 has 32 bytes; torch's own allocator aligns to 64.
ALIGNMENT = 64
#: Tensors up to a page share arenas: a network has thousands of small ones.
SMALL = 4096
#: Idle memory that is kept ready for tensors of the same shape.
KEEP_BYTES = 16 << 20
#: Kinds of tensors (shape, dtype, strides) remembered at most.
KINDS = 4096


class Owner(torch.UntypedStorage):
    """A storage that owns a block: with the storage the block is free for the next tensor."""

    block: Block

    def __del__(self) -> None:
        # No lock: the collector may run this anywhere, also inside a locked region.
        global _idle_bytes
        block = self.block
        _in_use.discard(block)
        memory = block.memory
        if memory is None or memory.device is not _device_ref():
            return
        if block.idle.open and _idle_bytes + memory.nbytes <= KEEP_BYTES:
            _idle_bytes += memory.nbytes
            block.idle.append(block)


def _no_device() -> Any:
    return None


_forked = False
_lock = threading.RLock()
_device_ref: Any = _no_device
#: Kind of tensors -> blocks that wait for the next one. The kind is (shape, dtype), and the strides
#: where they are not row-major.
ready: dict[Any, Idle] = {}
#: Blocks of live storages. When a storage dies as part of a cycle, the collector finalizes all that
#: it alone reaches: without this the memory of a block that goes to `Idle` would be freed as well.
_in_use: set[Block] = set()
_idle_bytes = 0
_reserved = _peak = 0
#: Sizes that have gone back to CMA. A deque and no lock: finalizers run anywhere.
_returned: collections.deque[int] = collections.deque()
_arenas: dict[int, list[Arena]] = {}
_preparations: list[Callable[[], None]] = []


# ---- taking memory -------------------------------------------------------------------------------


def tensor_of(block: Block, kind: type[Owner]) -> torch.Tensor:
    """Return a new tensor over a block, with a storage of a kind."""
    result = import_at(block.at)
    storage: Any = result.untyped_storage()
    storage.__class__ = kind
    storage.block = block
    _in_use.add(block)
    return result


def reuse(idle: Idle) -> Block | None:
    """Return a block that waits, ``None`` where another thread took the last one."""
    global _idle_bytes
    try:
        block = idle.pop()
    except IndexError:
        return None
    assert block.memory is not None
    _idle_bytes -= block.memory.nbytes
    return block


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a tensor whose elements are in order."""
    steps = itertools.accumulate((max(n, 1) for n in reversed(shape[1:])), int.__mul__, initial=1)
    return tuple(reversed(list(steps))) if shape else ()


def new_block(
    shape: tuple[int, ...], dtype: torch.dtype, strides: tuple[int, ...] | None = None
) -> Block:
    """Return a block in new memory; without strides it is row-major."""
    if not is_importable(dtype):
        raise NotImplementedError(
            f"device 'pynq' has no tensors of dtype {dtype}: DLPack, by which torch takes CMA "
            "memory, does not know it; convert with .to(...), or keep the tensor on the CPU"
        )
    if any(n < 0 for n in shape):
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}"
        )
    steps = row_major(shape) if strides is None else strides
    span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    memory = _take(span * dtype.itemsize, shape, dtype)
    if len(ready) > KINDS:
        _give_up()
    key = (shape, dtype) if strides is None else (shape, dtype, strides)
    return Block(memory, memory.address, shape, steps, dtype, ready.setdefault(key, Idle()))


def _take(nbytes: int, shape: Sequence[int], dtype: torch.dtype) -> Memory:
    """Take memory from CMA; where it is exhausted, also what only a cycle of references holds."""
    if _forked:
        raise lost_by_fork()
    with _lock:
        device = _use_device()
        try:
            return _place(nbytes, device)
        except CmaExhausted:
            gc.collect()
        try:
            return _place(nbytes, device)
        except CmaExhausted as error:
            raise CmaExhausted(
                f"no room in CMA for a tensor {list(shape)} of {dtype} ({nbytes} bytes) on device "
                f"'pynq': its tensors hold {allocated_bytes()} bytes now. {error}"
            ) from error


def _place(nbytes: int, device: Any) -> Memory:
    global _peak
    size = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
    if size > SMALL:
        buffer = _reserve(size, device)
        weakref.finalize(buffer, _returned.append, size).atexit = False
        memory = Memory(buffer, device, 0, size)
    else:
        piece = 1 << (size - 1).bit_length()
        arenas = _arenas.setdefault(piece, [])
        arena = next((a for a in reversed(arenas) if a.free), None)
        if arena is None:
            arena = Arena(_reserve(ARENA_BYTES, device), piece)
            weakref.finalize(arena, _returned.append, ARENA_BYTES).atexit = False
            arenas.append(arena)
        memory = Memory(arena.buffer, device, arena.free.pop(), piece, arena)
    if _reserved - _idle_bytes > _peak:  # tensors hold at most this: the count itself takes long
        _peak = max(_peak, allocated_bytes())
    return memory


def _reserve(nbytes: int, device: Any) -> Any:
    global _reserved
    buffer = pool_of(device).take((nbytes,), np.dtype(np.uint8))
    _reserved += nbytes
    return buffer


# ---- the board, and giving memory back -----------------------------------------------------------


def at_first_use(prepare: Callable[[], None]) -> None:
    """Call `prepare` before the first tensor is made."""
    _preparations.append(prepare)


def _use_device() -> Any:
    """Return the pynq device whose memory new tensors take; forget what an earlier one lent."""
    global _device_ref
    from pynq_torch.board import ensure_board

    while _preparations:
        _preparations.pop()()
    device = ensure_board()
    if getattr(device, "closed", False):
        raise DeviceLost(
            "device 'pynq' has no board: the one it used was closed. Choose one with "
            "pynq_torch.use_board(); tensors that were made before can be read, and used again then"
        )
    if device is not _device_ref():
        _device_ref = weakref.ref(device)
        _forget()
        # Others who ask for CMA memory are to have what only waits here.
        pool_of(device).reclaim = trim
        if hasattr(device, "on_close"):
            device.on_close(_forget)
    return device


def used_device() -> Any:
    """Return the pynq device that tensors took memory from last, or ``None``."""
    return _device_ref()


def _forget() -> None:
    _give_up()
    _arenas.clear()


def _give_up() -> None:
    """Let go of every idle block."""
    global _idle_bytes
    kinds = list(ready.values())
    ready.clear()
    for idle in kinds:
        idle.open = False
        idle.clear()
    _idle_bytes = 0


def trim() -> int:
    """Give idle memory back to CMA; return how many bytes that were."""
    from pynq_torch import buffers

    device = _device_ref()
    with _lock:
        before = reserved_bytes()
        _give_up()
        for arenas in _arenas.values():
            arenas[:] = [a for a in arenas if len(a.free) * a.piece < ARENA_BYTES]
        if device is not None:
            buffers.trim(device)
        return before - reserved_bytes()


# ---- statistics ----------------------------------------------------------------------------------


def allocated_bytes() -> int:
    """Return the bytes that live tensors hold, with rounding."""
    with _lock:
        reserved = reserved_bytes()
        arenas = [arena for of_a_size in list(_arenas.values()) for arena in of_a_size]
        return reserved - _idle_bytes - sum(len(a.free) * a.piece for a in arenas)


def reserved_bytes() -> int:
    """Return the bytes taken from CMA: live tensors, and what is kept ready."""
    global _reserved, _idle_bytes
    with _lock:
        while _returned:
            _reserved -= _returned.popleft()
        # Counted on the way without a lock, so it may have drifted.
        waiting: list[Any] = [block for idle in list(ready.values()) for block in list(idle)]
        _idle_bytes = sum(block.memory.nbytes for block in waiting)
        return _reserved


def peak_bytes(reset: bool = False) -> int:
    """Return the most bytes that tensors held, as seen whenever memory was taken from CMA."""
    global _peak
    with _lock:
        allocated = allocated_bytes()
        peak = max(_peak, allocated)
        if reset:
            _peak = allocated
        return peak


def statistics() -> dict[str, int]:
    """Return the counts behind ``torch.pynq.memory_stats()``."""
    with _lock:
        return {
            "allocated_bytes.all.current": allocated_bytes(),
            "allocated_bytes.all.peak": peak_bytes(),
            "reserved_bytes.all.current": _reserved,
            "inactive_blocks.all.current": sum(map(len, ready.values())),
            "arenas.all.current": sum(map(len, _arenas.values())),
        }


# ---- forked children -----------------------------------------------------------------------------


def mark_forked() -> bool:
    """Note that this process is a forked child; return whether its parent had a board."""
    global _forked, _lock, _device_ref
    from pynq_torch.board import current_board

    if _device_ref() is None and current_board() is None:
        return False
    _forked = True
    _lock = threading.RLock()  # another thread of the parent may have held it
    _device_ref = _no_device
    ready.clear()
    return True


def in_forked_child() -> bool:
    """Whether this process was forked from one that had a board."""
    return _forked


def lost_by_fork() -> DeviceLost:
    """Return the error of a program that uses the device in a forked child."""
    return DeviceLost(
        "this process was forked from one that had chosen a board: a board has one user. Use the "
        "device in the parent, or start workers with multiprocessing's 'spawn' method "
        "(DataLoader: return CPU tensors from the workers); tensors from before the fork can be "
        "read with .cpu()"
    )
