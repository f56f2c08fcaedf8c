"""A pool of CMA buffers: allocation costs a system call and clears memory, reuse does not."""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pynq_torch.errors import BufferFreed, CmaExhausted, DeviceLost, PynqTorchError

__all__ = ["Lease", "Pool", "PoolStatistics", "pool_of", "size_class"]

PAGE = 4096
#: Idle memory kept by default: a quarter of the 128 MB of CMA on image v3.1.
KEEP_BYTES = 32 << 20


def size_class(nbytes: int) -> int:
    """Return the bytes a request is rounded up to.

    Whole pages up to 64 KB, above that four steps between powers of two: at most a quarter is
    wasted, and few sizes exist, so that a returned buffer fits the next request.
    """
    pages = max(1, -(-nbytes // PAGE))
    if pages <= 16:
        return pages * PAGE
    step = 1 << (pages.bit_length() - 3)
    return -(-pages // step) * step * PAGE


@dataclass(frozen=True)
class PoolStatistics:
    """What a pool holds, in bytes and calls.

    Parameters
    ----------
    used_bytes, used_buffers : int
        Lent out.
    idle_bytes, idle_buffers : int
        Kept for reuse.
    hits, misses : int
        Requests served from the pool, and those that had to allocate.
    """

    used_bytes: int
    used_buffers: int
    idle_bytes: int
    idle_buffers: int
    hits: int
    misses: int

    def __str__(self) -> str:
        return (
            f"{self.used_buffers} buffers lent ({self.used_bytes} bytes), {self.idle_buffers} idle "
            f"({self.idle_bytes} bytes), {self.hits} requests served from the pool, "
            f"{self.misses} allocated"
        )


class Pool:
    """Buffers of one device, by size class.

    Parameters
    ----------
    device : pynq.Device
        Whose CMA memory.
    keep_bytes : int
        Idle bytes kept at most; what comes back beyond that is freed.
    """

    def __init__(self, device: Any, keep_bytes: int = KEEP_BYTES) -> None:
        # Weakly: the pool hangs on the device, and its buffers know the device anyway.
        self._device = weakref.ref(device)
        self.keep_bytes = keep_bytes
        #: Makes others let go of memory that they only keep ready, where CMA is exhausted.
        self.reclaim: Callable[[], object] | None = None
        self._lock = threading.RLock()
        _pools.add(self)
        self._idle: dict[int, list[Any]] = {}
        self._idle_bytes = self._used_bytes = self._used = self._hits = self._misses = 0

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Lend a buffer.

        Raises
        ------
        CmaExhausted
            No room, even after giving all idle memory back.
        """
        nbytes = math.prod(shape) * dtype.itemsize
        size = size_class(nbytes)
        with self._lock:
            idle = self._idle.get(size)
            raw: Any = idle.pop() if idle else None
            if raw is not None:
                self._idle_bytes -= size
                self._hits += 1
        fresh = raw is None
        if fresh:
            raw = self._allocate(size, nbytes, shape, dtype)
        with self._lock:
            self._misses += fresh
            self._used += 1
            self._used_bytes += size
        lease = _lease_type(type(raw))(
            shape,
            dtype,
            buffer=raw,
            device=raw.device,
            device_address=raw.device_address,
            bo=raw.bo,
            coherent=raw.coherent,
        )
        # Asked for several times in a call of a kernel; numpy would make a dict for each answer.
        start = raw.__dict__.get("start")
        if start is None:
            start = raw.start = int(raw.virtual_address)
        lease.start = start
        lease._return = weakref.finalize(lease, _give_back, weakref.ref(self), raw)
        lease._return.atexit = False
        return lease

    def _allocate(
        self, size: int, nbytes: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Any:
        device = self._device()
        if device is None:
            raise PynqTorchError("the device of this buffer pool is gone; choose a board again")
        try:
            return device.allocate((size,), np.uint8)
        except DeviceLost:  # a RuntimeError, but not for want of memory
            raise
        except (RuntimeError, MemoryError) as error:
            held = self.statistics()
            raise CmaExhausted(
                f"no contiguous memory for {dtype}[{'x'.join(map(str, shape))}] ({nbytes} bytes, "
                f"{size} with rounding): {_cma_left(error)}; this pool has lent {held.used_bytes} "
                f"bytes in {held.used_buffers} buffers and keeps none. Drop tensors that are not "
                "needed (del), work in smaller pieces, or enlarge CMA (cma= in the boot arguments "
                "of a board, use_board(..., cma_bytes=...) for a virtual one)."
            ) from error

    def give_back(self, raw: Any) -> None:
        """Take a buffer back; called when the last reference to what was lent has gone."""
        size = int(raw.nbytes)
        with self._lock:
            self._used -= 1
            self._used_bytes -= size
            if self._idle_bytes + size > self.keep_bytes:
                return  # dropped here: its own __del__ frees it
            self._idle.setdefault(size, []).append(raw)
            self._idle_bytes += size

    def drop(self, raw: Any) -> None:
        """Take note that a buffer was freed while views of it may live: it is not lent again."""
        with self._lock:
            self._used -= 1
            self._used_bytes -= int(raw.nbytes)
        if hasattr(raw.bo, "freed"):
            raw.freebuffer()  # a virtual board keeps the views apart from later buffers
        # Elsewhere the lease keeps the memory as long as a view lives; its __del__ frees it.

    def give_up(self) -> None:
        """Let CMA have all memory back that nobody uses."""
        if self.reclaim is not None:
            self.reclaim()
        self.trim()

    def trim(self) -> int:
        """Free every idle buffer; return how many bytes that were."""
        with self._lock:
            freed, self._idle_bytes = self._idle_bytes, 0
            self._idle.clear()
        return freed

    def statistics(self) -> PoolStatistics:
        """Return what the pool holds."""
        with self._lock:
            idle = sum(map(len, self._idle.values()))
            return PoolStatistics(
                self._used_bytes, self._used, self._idle_bytes, idle, self._hits, self._misses
            )


def _give_back(pool: weakref.ref[Pool], raw: Any) -> None:
    alive = pool()
    if alive is not None:
        alive.give_back(raw)


def _cma_left(error: BaseException) -> str:
    """What the system says about CMA; Linux on a board counts it, others only have the message."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        rows = [line.split() for line in lines if line.startswith("Cma")]
    known = {name.rstrip(":"): int(value) * 1024 for name, value, *_ in rows}
    if known.get("CmaTotal"):
        return f"CMA has {known.get('CmaFree', 0)} of {known['CmaTotal']} bytes free"
    text = str(error).partition("; ")[2] or str(error)
    return text.split(". ")[0].removesuffix(".")


_lease_types: dict[type, type] = {}


def _lease_type(base: type) -> type:
    """Return the buffer class of leases over `base`.

    numpy collapses chains of views of one class onto the array that owns the memory. A class of
    its own keeps every view, and every tensor, referring to the lease; when the last one goes, so
    does the lease, and the memory returns to the pool.
    """
    if base not in _lease_types:
        _lease_types[base] = type("PooledBuffer", (Lease, base), {"__module__": __name__})
    return _lease_types[base]


class Lease:
    """What a pooled buffer adds to pynq's: freeing means giving back, and is noticed."""

    _return: Any
    #: Address of a whole lease; views ask numpy.
    start: int | None = None

    @property
    def virtual_address(self) -> Any:
        """Address of the first byte in this process."""
        start = self.start
        return super().virtual_address if start is None else start  # type: ignore[misc]

    def _root(self) -> Any:
        here: Any = self
        while "_return" not in here.__dict__:
            parent = here.base
            if not isinstance(parent, Lease):
                return None
            here = parent
        return here

    def _live(self) -> None:
        if self.freed:
            raise BufferFreed(
                "this CMA buffer was given back with freebuffer() and is used again; keep it as "
                "long as it is used"
            )

    @property
    def physical_address(self) -> Any:
        """Address of the first byte for the PL; raises `BufferFreed` after the end of the lease."""
        self._live()
        return self.device_address  # type: ignore[attr-defined]

    @property
    def freed(self) -> bool:
        """Whether the memory was given back."""
        root = self._root()
        return root is not None and not root._return.alive

    @freed.setter
    def freed(self, value: bool) -> None:
        """Ignore what pynq's constructor sets: the lease decides."""

    def __getitem__(self, key: Any) -> Any:
        self._live()
        return super().__getitem__(key)  # type: ignore[misc]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._live()
        super().__setitem__(key, value)  # type: ignore[misc]

    def flush(self) -> None:
        """Write the CPU's cache back; raises `BufferFreed` after the end of the lease."""
        self._live()
        super().flush()  # type: ignore[misc]

    def invalidate(self) -> None:
        """Drop the CPU's cache; raises `BufferFreed` after the end of the lease."""
        self._live()
        super().invalidate()  # type: ignore[misc]

    def freebuffer(self) -> None:
        """Give the memory back to CMA at once; using it afterwards raises."""
        root = self._root()
        lent = root._return.detach() if root is not None else None
        if lent is None:
            return
        root.flags.writeable = False  # for what writes without an index: ``buffer += 1``
        reference, raw = lent[2]
        pool = reference()
        if pool is not None:
            pool.drop(raw)

    def __del__(self) -> None:
        """Leave the memory alone: a view that goes gives nothing back, the finalizer does."""


def pool_of(device: Any = None) -> Pool:
    """Return the pool of a device (default: the active one)."""
    if device is None:
        from pynq import Device

        device = Device.active_device
    pool: Pool | None = vars(device).get("_pynq_torch_pool")
    if pool is None:
        pool = device._pynq_torch_pool = Pool(device)
        device.allocate = _second_try(device.allocate, pool)
    return pool


def _second_try(allocate: Callable[..., Any], pool: Pool) -> Callable[..., Any]:
    """Return a device's ``allocate`` that gives idle memory back before it says that there is none.

    So ``pynq.allocate`` of a program is not refused memory that only waits for reuse here.
    """

    def allocate_or_trim(*args: Any, **kwargs: Any) -> Any:
        try:
            return allocate(*args, **kwargs)
        except (RuntimeError, MemoryError):
            pool.give_up()
        return allocate(*args, **kwargs)

    return allocate_or_trim


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _after_fork() -> None:
    # Another thread of the parent may have held a lock; it does not exist here.
    for pool in _pools:
        pool._lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
