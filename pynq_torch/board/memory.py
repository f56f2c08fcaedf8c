"""DDR, the CMA region in it, and the buffers pynq hands out.

One file descriptor covers every physical memory of the board, so that the engines, which are
processes of their own, see the same bytes. A table, the *grants*, tells them which ranges belong to
a buffer: everything else is closed to them.
"""

from __future__ import annotations

import bisect
import math
import mmap
import os
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from pynq_torch.errors import (
    BoardError,
    BusError,
    CmaExhausted,
    KernelFault,
    ReadAheadWarning,
)

from .cma import FreeRanges, Grants
from .cma_buffer import Allocation, VirtualBuffer, checked_layout
from .mappings import PAGE, CmaMapping, Window, pages_of

#: DDR of a PYNQ-Z2: 512 MB at physical address 0 (UG585, table 4-1).
DDR_BYTES = 512 << 20
#: ``cma=128M`` in the kernel command line of image v3.1.
CMA_BYTES = 128 << 20
#: XRT on the board never allocates less (pynq 3.1.2, ``XrtDevice.allocate_bo``).
MIN_ALLOCATION = 8192
_CANARY = bytes(range(0x5A, 0x6A)) * (PAGE // 16)


class PhysicalMemory:
    """The board's DDR with its CMA region, and further memories of the PL (block RAM).

    Parameters
    ----------
    cma_bytes : int
        Size of the CMA region, at the top of DDR as on the image.
    strict_cache : bool
        Keep what the CPU writes apart from DDR until ``flush``, and what the PL writes until
        ``invalidate``, as a real cache may. Applies to every buffer that was not allocated with
        ``cacheable=False`` or ``coherent=True``.
    guard : bool or "silicon"
        Close memory that belongs to no buffer to the engines, and leave a closed page behind
        each buffer. ``"silicon"``, or ``False``, is as the board: neither. With ``"silicon"`` RTL
        that uses an address without memory is answered DECERR, and goes on.
    """

    def __init__(
        self, cma_bytes: int = CMA_BYTES, strict_cache: bool = False, guard: bool | str = True
    ) -> None:
        if guard not in (True, False, "silicon"):
            raise ValueError(f'guard is {guard!r}; expected True, False or "silicon"')
        if not PAGE <= cma_bytes <= DDR_BYTES // 2 or cma_bytes % PAGE:
            raise ValueError(
                f"cma_bytes is {cma_bytes}; expected a multiple of {PAGE} from {PAGE} to "
                f"{DDR_BYTES // 2}"
            )
        self.cma_base, self.cma_bytes = DDR_BYTES - cma_bytes, cma_bytes
        self.strict_cache = strict_cache
        self.guard = guard not in (False, "silicon")
        self.as_silicon = guard == "silicon"  # RTL is answered DECERR where there is no memory
        #: Says whether an engine is running; freed memory is not reused meanwhile.
        self.busy: Callable[[], bool] = bool
        #: Why nothing may be allocated any more; empty while the board is in use.
        self.gone = ""
        self._lock = threading.RLock()
        self.fd = os.memfd_create("ddr", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.fd, DDR_BYTES)
            self._ddr = mmap.mmap(self.fd, DDR_BYTES)  # what the PL sees; no buffer is in it
        except OSError as error:
            os.close(self.fd)
            raise BoardError(
                f"this PC gives the virtual board no {DDR_BYTES >> 20} MB of memory "
                f"({error.strerror}): raise the limits (ulimit -f, ulimit -v) or free memory"
            ) from error
        self._mapping = CmaMapping(self.fd, self.cma_base, cma_bytes)
        self.windows: list[Window] = [Window("DDR", 0, DDR_BYTES, 0, self._ddr)]
        self._file_end, self._used_up_to = DDR_BYTES, self.cma_base
        self._grants = Grants()
        self.grants_fd, self.grants_nbytes = self._grants.fd, self._grants.nbytes
        self._free = FreeRanges(self.cma_base, DDR_BYTES)
        self._by_address: list[int] = []
        self._allocations: dict[int, Allocation] = {}
        self._waiting: list[Allocation] = []  # freed; an engine or a view may still reach them
        self._read_ahead: set[str] = set()
        self._freed: deque[Allocation] = deque(maxlen=64)

    # ---- windows ---------------------------------------------------------------------------

    def add_window(self, name: str, base: int, nbytes: int) -> Window:
        """Add a memory of the PL, e.g. block RAM behind an AXI BRAM controller."""
        nbytes = pages_of(nbytes)
        offset = self._file_end
        os.ftruncate(self.fd, offset + nbytes)
        self._file_end = offset + nbytes
        window = Window(name, base, nbytes, offset, mmap.mmap(self.fd, nbytes, offset=offset))
        self.windows.append(window)
        return window

    def drop_windows(self) -> None:
        """Forget every memory but DDR (a new overlay is loaded)."""
        self._read_ahead.clear()
        del self.windows[1:]
        self._file_end = DDR_BYTES
        os.ftruncate(self.fd, DDR_BYTES)

    def view(self, address: int, nbytes: int) -> memoryview:
        """Return what the PL sees at ``address``, or raise `BusError` where no memory answers."""
        for window in self.windows:
            start = address - window.base
            if window.contains(address, nbytes):
                return memoryview(window.map)[start : start + nbytes]
        raise BusError(
            f"no memory answers at physical address 0x{address:08x} ({nbytes} bytes): DDR ends at "
            f"0x{DDR_BYTES - 1:08x}",
            address,
        )

    # ---- allocation ------------------------------------------------------------------------

    @property
    def used_bytes(self) -> int:
        """Bytes of CMA taken by live buffers, guard pages included."""
        return self.cma_bytes - self.free_bytes

    @property
    def free_bytes(self) -> int:
        """Bytes of CMA that are not taken, in however many pieces."""
        with self._lock:
            return self._free.nbytes + sum(a.reserved for a in self._waiting)

    def allocate(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike = "u4",
        *,
        device: Any = None,
        cacheable: bool | int | None = None,
        coherent: bool = False,
        owner: Any = None,
    ) -> VirtualBuffer:
        """Allocate a buffer in CMA memory.

        Parameters
        ----------
        shape, dtype
            As for ``numpy.ndarray``.
        cacheable : bool, optional
            ``False`` maps the buffer uncached. Left out, it is treated as cacheable under
            ``strict_cache``: a program that forgets ``flush`` there fails on some boards.
        coherent : bool
            The PL sees the CPU's caches (ACP port): ``flush`` and ``invalidate`` do nothing.

        Raises
        ------
        CmaExhausted
            No contiguous range is left.
        """
        if self.gone:
            raise BoardError(
                f"no memory can be allocated: it {self.gone}; call pynq_torch.use_board() again"
            )
        dims, kind = checked_layout(shape, dtype)
        nbytes = math.prod(dims) * kind.itemsize
        cached = self.strict_cache and not coherent and cacheable in (None, True, 1)
        with self._lock:
            allocation = self._take(nbytes, dims, kind)
            start = allocation.address
            self._clear(start, nbytes)
            place = self._seen_by_cpu(allocation, nbytes, cached)
            known = {"device": device, "device_address": start, "coherent": coherent}
            buffer = VirtualBuffer(dims, kind, bo=allocation, **place, **known)
            allocation.holder = weakref.ref(buffer)
        buffer.memory = self
        return buffer

    def _seen_by_cpu(self, allocation: Allocation, nbytes: int, cached: bool) -> dict[str, Any]:
        """Return the memory behind a buffer's array: a copy that stands for the cache, or CMA."""
        if cached:
            allocation.copy = mmap.mmap(-1, max(pages_of(nbytes), PAGE))
            return {"buffer": allocation.copy, "offset": 0}
        backing, offset = self._mapping.place(allocation.address, max(nbytes, 1))
        return {"buffer": backing, "offset": offset}

    def _clear(self, start: int, nbytes: int) -> None:
        """Make fresh memory zero, as on the board, and write the canary behind it."""
        if start < self._used_up_to:  # memory that was never handed out is zero already
            np.frombuffer(self._ddr, np.uint8, nbytes, start)[:] = 0
        self._used_up_to = max(self._used_up_to, start + nbytes)
        slack = -nbytes % PAGE
        if slack:
            self._ddr[start + nbytes : start + nbytes + slack] = _CANARY[:slack]

    def _take(self, nbytes: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Allocation:
        pages, guard = pages_of(max(nbytes, MIN_ALLOCATION)), PAGE if self.guard else 0
        self._reclaim()
        found = self._free.take(pages, guard)
        if found is None and self._waiting:
            self._reclaim(move=True)
            found = self._free.take(pages, guard)
        if found is None:
            raise self._exhausted(nbytes)
        try:
            slot = self._grants.take_slot()
        except CmaExhausted:
            self._free.put_back(*found)
            raise
        start, taken = found
        allocation = Allocation(start, nbytes, taken, slot, shape, dtype)
        # At least a byte is granted, so that a kernel may hold the address of an empty buffer.
        self._grants.grant(slot, start, start + max(nbytes, 1))
        bisect.insort(self._by_address, start)
        self._allocations[start] = allocation
        return allocation

    def _exhausted(self, nbytes: int) -> CmaExhausted:
        held = sum(a.reserved for a in self._waiting)
        remark = (
            f" {held} of the free bytes come back when the kernel that is running has ended."
            if held
            else ""
        )
        return CmaExhausted(
            f"BO allocation failed: {nbytes} bytes of contiguous memory asked for; the CMA region "
            f"of {self.cma_bytes} bytes has {self.free_bytes} free, {self._free.largest} of them "
            f"in one piece, in {len(self._allocations)} live buffers. Free buffers (del, "
            f"freebuffer(), a `with` block) or use_board(..., cma_bytes=...).{remark}"
        )

    def release(self, allocation: Allocation) -> None:
        """Close a buffer to engines; its memory is free when no engine and no view reaches it."""
        if allocation.gone:
            allocation.freed = True  # the table of free memory is no longer in use, or another's
            return
        with self._lock:
            if allocation.freed:
                return
            allocation.freed = True
            self._freed.append(allocation)
            self._by_address.pop(bisect.bisect_left(self._by_address, allocation.address))
            del self._allocations[allocation.address]
            self._grants.grant(allocation.slot, 0, 0)
            self._waiting.append(allocation)

    def _reclaim(self, move: bool = False) -> None:
        """Let freed memory be handed out again where nothing reaches it.

        With `move`, views of freed buffers get copies of their own and give up the memory.
        """
        if not self._waiting or self.busy():
            return
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            holder = each.holder() if each.holder is not None and each.copy is None else None
            if holder is not None and not (
                move and self._mapping.move_away(holder, each.address, max(each.nbytes, 1))
            ):
                self._waiting.append(each)
                continue
            self._grants.free_slot(each.slot)
            self._free.put_back(each.address, each.reserved)

    # ---- cache -----------------------------------------------------------------------------

    # Both act on the whole buffer, as XRT's bo.sync() does for pynq, views included.

    def flush(self, allocation: Allocation) -> None:
        """Write the CPU's copy back to DDR."""
        if allocation.copy is not None:
            span = slice(allocation.address, allocation.end)
            self._ddr[span] = memoryview(allocation.copy)[: allocation.nbytes]

    def invalidate(self, allocation: Allocation) -> None:
        """Drop the CPU's copy, so that the next read comes from DDR."""
        if allocation.copy is not None:
            span = slice(allocation.address, allocation.end)
            allocation.copy[: allocation.nbytes] = memoryview(self._ddr)[span]

    # ---- diagnosis -------------------------------------------------------------------------

    def find(self, address: int) -> Allocation | None:
        """Return the live buffer that ``address`` is in."""
        with self._lock:
            index = bisect.bisect_right(self._by_address, address) - 1
            if index < 0:
                return None
            allocation = self._allocations[self._by_address[index]]
            return allocation if address < max(allocation.end, allocation.address + 1) else None

    def buffers(self) -> list[Allocation]:
        """Return the live buffers by address."""
        with self._lock:
            return [self._allocations[a] for a in self._by_address]

    def overrun(self, address: int) -> int | None:
        """Return the first byte written behind the buffer at ``address``, and mend the canary."""
        allocation = self.find(address)
        slack = -allocation.nbytes % PAGE if allocation is not None else 0
        if allocation is None or not slack:
            return None
        end = allocation.end
        found = self._ddr[end : end + slack]
        if found == _CANARY[:slack]:
            return None
        self._ddr[end : end + slack] = _CANARY[:slack]
        return end + next(i for i in range(slack) if found[i] != _CANARY[i])

    def check_overruns(self, ip: str, pointers: Sequence[tuple[int, int]]) -> None:
        """Raise `KernelFault` if an IP wrote past a buffer's end, within the buffer's last page.

        `pointers` are the offset and value of each register that points into a buffer. The error
        tells of the first; the canaries of all of them are mended.
        """
        if not self.guard:
            return
        overruns = [(register, low, self.overrun(low)) for register, low in pointers]
        for register, low, first in overruns:
            if first is not None:
                raise KernelFault(
                    f"{ip} wrote past the end of the {self.find(low)}: the first byte behind it "
                    f"that changed is at physical address 0x{first:08x} (register 0x{register:02x} "
                    "points into the buffer). On the board this overwrites whatever is there. "
                    "Check the length given to the kernel, and its loop bounds.",
                    ip,
                    first,
                )

    def note_read_ahead(self, ip: str, address: int) -> None:
        """Warn once that an IP read just outside a buffer; address 0: it did not."""
        if not address or ip in self._read_ahead:
            return
        self._read_ahead.add(ip)
        warnings.warn(
            f"{ip} read just outside its buffers: {self.describe(address)}. It got what memory "
            "holds there, as on the board, where logic that HLS made reads ahead; if its result "
            "depends on these bytes, check its loop bounds.",
            ReadAheadWarning,
            stacklevel=2,
        )

    def mend(self) -> None:
        """Write all canaries again after a run that was cut off: the next one is not to blame."""
        for allocation in self.buffers():
            self.overrun(allocation.address)

    def describe(self, address: int) -> str:
        """Say where a physical address is: in which buffer, or near which."""
        inside = self.find(address)
        if inside is not None:
            return f"0x{address:08x} is byte {address - inside.address} of the {inside}"
        for window in self.windows[1:]:
            if window.contains(address, 1):
                return f"0x{address:08x} is byte {address - window.base} of {window.name}"
        if not 0 <= address < DDR_BYTES:
            shown = address & (1 << 64) - 1
            return f"0x{shown:x} lies outside the 512 MB of DDR{self._nearest(address)}"
        for old in reversed(self._freed):
            if old.address <= address < max(old.end, old.address + 1):
                byte = address - old.address
                return f"0x{address:08x} is byte {byte} of a freed buffer (it was the {old})"
        return f"0x{address:08x} belongs to no buffer{self._nearest(address)}"

    def _nearest(self, address: int) -> str:
        def distance(buffer: Allocation) -> int:
            if address < buffer.address:
                return buffer.address - address
            return address - buffer.end

        best = min(self.buffers(), key=distance, default=None)
        if best is None:
            return "; no buffer is allocated"
        place = "ends {} bytes before" if address >= best.end else "starts {} bytes behind"
        return f"; the nearest is the {best}, which {place.format(distance(best))}"

    def disown(self, why: str) -> None:
        """Let live buffers keep their bytes, but be memory of the PL no longer."""
        self.gone = why
        for allocation in list(self._allocations.values()):
            allocation.gone = why

    def close(self) -> None:
        """Give the file descriptors back; buffers that still exist keep their bytes."""
        self.disown(self.gone or "belongs to a board that was closed")
        os.close(self.fd)
        os.close(self.grants_fd)
