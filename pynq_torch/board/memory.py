"""DDR, the CMA region in it, and the buffers pynq hands out.

One file descriptor covers every physical memory of the board, so that the engines, which are
processes of their own, see the same bytes. A second table, the *grants*, tells them which ranges
belong to a buffer: everything else is closed to them.
"""

from __future__ import annotations

import bisect
import math
import mmap
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from pynq.buffer import PynqBuffer

from pynq_torch.errors import BoardError, BufferFreed, BusError, CmaExhausted, KernelFault

from .mappings import PAGE, CmaMapping, pages_of

#: DDR of a PYNQ-Z2: 512 MB at physical address 0 (UG585, table 4-1).
DDR_BYTES = 512 << 20
#: ``cma=128M`` in the kernel command line of image v3.1.
CMA_BYTES = 128 << 20
#: XRT on the board never allocates less (pynq 3.1.2, ``XrtDevice.allocate_bo``).
MIN_ALLOCATION = 8192
_SLOT_BYTES = 16  # begin and end, 64 bits each
_GRANT_SLOTS = 1 << 16
_CANARY = bytes(range(0x5A, 0x6A)) * (PAGE // 16)


@dataclass
class Allocation:
    """A piece of CMA memory; ``pynq`` calls it the buffer object."""

    address: int
    nbytes: int  #: what was asked for
    reserved: int  #: what is taken, guard page included
    slot: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    copy: mmap.mmap | None = None  #: the CPU's cached copy, where it is apart from DDR
    #: the array handed out: every view, tensor and memoryview keeps it alive
    holder: weakref.ref[Any] | None = field(default=None, repr=False)
    freed: bool = False
    gone: str = ""  #: why its memory is no longer that of the board in use

    @property
    def end(self) -> int:
        """First address behind the buffer."""
        return self.address + self.nbytes

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"buffer at 0x{self.address:08x} ({self.dtype}[{shape}], {self.nbytes} bytes)"


@dataclass(frozen=True)
class Window:
    """A physical memory: its address range and where it lies in the shared file."""

    name: str
    base: int
    nbytes: int
    file_offset: int
    map: mmap.mmap = field(repr=False)

    def contains(self, address: int, nbytes: int) -> bool:
        """Say whether all of ``nbytes`` at ``address`` lie inside."""
        return self.base <= address and address + nbytes <= self.base + self.nbytes


class VirtualBuffer(PynqBuffer):
    """A ``PynqBuffer`` that knows when it has been freed."""

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        if (
            isinstance(obj, PynqBuffer)
            and obj.bo is not None
            and 0 <= self.offset < max(obj.bo.nbytes, 1)
        ):
            return
        # A result of arithmetic is ordinary memory. pynq would give it an address computed from
        # the distance of two unrelated arrays; no address at all is what is true.
        self.bo = None
        self.coherent = None
        self.device_address = None

    def _live(self) -> None:
        bo = self.bo
        if bo is not None and getattr(bo, "freed", False):
            raise BufferFreed(
                f"the {bo} was freed and is used again. Keep the buffer alive as long as it is "
                "used: "
                "do not call freebuffer() or leave its `with` block before."
            )

    @property
    def device_address(self) -> int | None:
        """The physical address; ``None`` for an array that is no CMA memory."""
        self._live()
        return self._device_address

    @device_address.setter
    def device_address(self, value: int | None) -> None:
        self._device_address = value

    @property
    def physical_address(self) -> int | None:
        """What a program tells the PL; a board that is gone has no memory to point into."""
        bo = self.bo
        if bo is not None and bo.gone:
            raise BufferFreed(
                f"the {bo} {bo.gone}: its values can be read, but the PL of the board in use has "
                "other memory there. Allocate a new buffer and copy the values into it."
            )
        return self.device_address

    def __getitem__(self, key: Any) -> Any:
        if self.bo is not None and self.bo.freed:
            self._live()
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.bo is not None and self.bo.freed:
            self._live()
        super().__setitem__(key, value)

    def flush(self) -> None:
        """Write the CPU's cached copy of the whole buffer to DDR."""
        self._own()
        super().flush()

    def invalidate(self) -> None:
        """Drop the CPU's cached copy of the whole buffer."""
        self._own()
        super().invalidate()

    def _own(self) -> None:
        self._live()
        if self.bo is None:
            raise BusError(
                "this array is no CMA memory: it is the result of arithmetic on a buffer, or a "
                "copy "
                "of one. Write the result into a buffer from pynq.allocate() (buffer[:] = ...) and "
                "use that."
            )

    def freebuffer(self) -> None:
        """Give the memory back; views of the buffer may not be used afterwards.

        A view of numpy or torch cannot say so: it keeps the values, apart from later buffers.
        """
        memory = self.__dict__.get("memory")
        allocation: Allocation | None = self.__dict__.get("bo")
        if memory is not None and allocation is not None and not allocation.freed:
            self.freed = True
            self.flags.writeable = False  # for what writes without an index: ``buffer += 1``
            memory.release(allocation)

    def __reduce__(self) -> Any:
        # A copy elsewhere is no CMA memory: pickle the values.
        return np.asarray(self).copy().__reduce__()


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
    guard : bool
        Close memory that belongs to no buffer to the engines, and leave a closed page behind
        each buffer.
    """

    def __init__(
        self, cma_bytes: int = CMA_BYTES, strict_cache: bool = False, guard: bool = True
    ) -> None:
        if not PAGE <= cma_bytes <= DDR_BYTES // 2 or cma_bytes % PAGE:
            raise ValueError(
                f"cma_bytes is {cma_bytes}; expected a multiple of {PAGE} from {PAGE} to "
                f"{DDR_BYTES // 2}"
            )
        self.cma_base = DDR_BYTES - cma_bytes
        self.cma_bytes = cma_bytes
        self.strict_cache = strict_cache
        self.guard = guard
        #: Says whether an engine is running; freed memory is not reused meanwhile.
        self.busy: Callable[[], bool] = lambda: False
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
        self._file_end = DDR_BYTES
        self.grants_nbytes = 16 + _GRANT_SLOTS * _SLOT_BYTES
        self.grants_fd = os.memfd_create("grants", os.MFD_CLOEXEC)
        os.ftruncate(self.grants_fd, self.grants_nbytes)
        self._grants = memoryview(mmap.mmap(self.grants_fd, self.grants_nbytes)).cast("Q")
        self._generation = 0
        self._free_slots: list[int] = []
        self._next_slot = 0
        # Free ranges, sorted by address: [start, end).
        self._free: list[tuple[int, int]] = [(self.cma_base, DDR_BYTES)]
        self._by_address: list[int] = []
        self._allocations: dict[int, Allocation] = {}
        self._waiting: list[Allocation] = []  # freed; an engine or a view may still reach them
        self._used_up_to = self.cma_base
        self._freed: deque[Allocation] = deque(maxlen=64)

    # ---- windows ---------------------------------------------------------------------------

    def add_window(self, name: str, base: int, nbytes: int) -> Window:
        """Add a memory of the PL, e.g. block RAM behind an AXI BRAM controller."""
        nbytes = (nbytes + PAGE - 1) & ~(PAGE - 1)
        offset = self._file_end
        os.ftruncate(self.fd, offset + nbytes)
        self._file_end = offset + nbytes
        window = Window(name, base, nbytes, offset, mmap.mmap(self.fd, nbytes, offset=offset))
        self.windows.append(window)
        return window

    def drop_windows(self) -> None:
        """Forget every memory but DDR (a new overlay is loaded)."""
        del self.windows[1:]
        self._file_end = DDR_BYTES
        os.ftruncate(self.fd, DDR_BYTES)

    def view(self, address: int, nbytes: int) -> memoryview:
        """Return what the PL sees at ``address``.

        Raises
        ------
        BusError
            ``kind="decode"`` where no memory answers.
        """
        for window in self.windows:
            if window.contains(address, nbytes):
                start = address - window.base
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
            waiting = sum(a.reserved for a in self._waiting)
            return sum(end - start for start, end in self._free) + waiting

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
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise TypeError(
                f"a CMA buffer cannot hold {kind}: the PL reads bytes, not Python objects"
            )
        dims = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        dims = tuple(int(d) for d in dims)
        if any(d < 0 for d in dims):
            raise ValueError(f"shape {dims} has a negative dimension")
        nbytes = math.prod(dims) * kind.itemsize
        cached = self.strict_cache and not coherent and cacheable in (None, True, 1)
        with self._lock:
            allocation = self._take(nbytes, dims, kind)
            start = allocation.address
            # Fresh CMA pages are zero on the board; those never handed out are zero already.
            if start < self._used_up_to:
                np.frombuffer(self._ddr, np.uint8, nbytes, start)[:] = 0
            self._used_up_to = max(self._used_up_to, start + nbytes)
            slack = -nbytes % PAGE
            if slack:
                self._ddr[start + nbytes : start + nbytes + slack] = _CANARY[:slack]
            if cached:
                allocation.copy = mmap.mmap(-1, max(pages_of(nbytes), PAGE))
            backing, offset = (
                (allocation.copy, 0)
                if allocation.copy is not None
                else self._mapping.place(start, max(nbytes, 1))
            )
            buffer = VirtualBuffer(
                dims,
                kind,
                buffer=backing,
                offset=offset,
                device=device,
                device_address=start,
                bo=allocation,
                coherent=coherent,
            )
            allocation.holder = weakref.ref(buffer)
        buffer.memory = self
        return buffer

    def _take(self, nbytes: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Allocation:
        pages = pages_of(max(nbytes, MIN_ALLOCATION))
        self._reclaim()
        found = self._cut(pages)
        if found is None and self._waiting:
            self._reclaim(move=True)
            found = self._cut(pages)
        if found is None:
            raise self._exhausted(nbytes)
        start, taken = found
        slot = self._free_slots.pop() if self._free_slots else self._next_slot
        if slot >= _GRANT_SLOTS:
            self._put_back(start, taken)
            raise CmaExhausted(f"more than {_GRANT_SLOTS} buffers are alive at once")
        self._next_slot = max(self._next_slot, slot + 1)
        allocation = Allocation(start, nbytes, taken, slot, shape, dtype)
        # At least a byte is granted, so that a kernel may hold the address of an empty buffer.
        self._grant(slot, start, start + max(nbytes, 1))
        bisect.insort(self._by_address, start)
        self._allocations[start] = allocation
        return allocation

    def _cut(self, pages: int) -> tuple[int, int] | None:
        """Take the first free range that is long enough; return its start and length."""
        guard = PAGE if self.guard else 0
        for index, (start, end) in enumerate(self._free):
            room = end - start
            if room < pages:
                continue
            taken = min(room, pages + guard)  # the end of the region needs no guard page
            if room == taken:
                del self._free[index]
            else:
                self._free[index] = (start + taken, end)
            return start, taken
        return None

    def _exhausted(self, nbytes: int) -> CmaExhausted:
        largest = max((end - start for start, end in self._free), default=0)
        held = sum(a.reserved for a in self._waiting)
        remark = (
            f" {held} of the free bytes come back when the kernel that is running has ended."
            if held
            else ""
        )
        return CmaExhausted(
            f"BO allocation failed: {nbytes} bytes of contiguous memory asked for; the CMA region "
            f"of {self.cma_bytes} bytes has {self.free_bytes} free, {largest} of them in one "
            "piece, "
            f"in {len(self._allocations)} live buffers. Free buffers (del, freebuffer(), a `with` "
            f"block) or use_board(..., cma_bytes=...).{remark}"
        )

    def _grant(self, slot: int, begin: int, end: int) -> None:
        # Engines may read at any moment, so every word is written at once (struct.pack_into writes
        # zeros first) and a range half written is empty.
        words, at = self._grants, 2 + 2 * slot
        words[at + 1] = 0
        words[at] = begin
        words[at + 1] = end
        words[1] = self._next_slot
        self._generation += 1
        words[0] = self._generation

    def release(self, allocation: Allocation) -> None:
        """Close a buffer's memory to the engines; it is handed out again when nothing reaches it.

        That is when no engine runs, and no view of the buffer lives or needs its pages.
        """
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
            self._grant(allocation.slot, 0, 0)
            self._waiting.append(allocation)

    def _reclaim(self, move: bool = False) -> None:
        """Let freed memory be handed out again where nothing reaches it.

        Parameters
        ----------
        move : bool
            Give the views of freed buffers copies of their own, to have the memory.
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
            self._free_slots.append(each.slot)
            self._put_back(each.address, each.reserved)

    def _put_back(self, start: int, nbytes: int) -> None:
        end = start + nbytes
        index = bisect.bisect_left(self._free, (start, end))
        if index < len(self._free) and self._free[index][0] == end:
            end = self._free.pop(index)[1]
        if index > 0 and self._free[index - 1][1] == start:
            start = self._free.pop(index - 1)[0]
            index -= 1
        self._free.insert(index, (start, end))

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
        """Return the live buffer that ``address`` lies in."""
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
        if allocation is None:
            return None
        slack = -allocation.nbytes % PAGE
        if not slack:
            return None
        end = allocation.end
        found = self._ddr[end : end + slack]
        if found == _CANARY[:slack]:
            return None
        self._ddr[end : end + slack] = _CANARY[:slack]
        return end + next(i for i in range(slack) if found[i] != _CANARY[i])

    def check_overruns(self, ip: str, pointers: Sequence[tuple[int, int]]) -> None:
        """Find writes of an IP past the end of a buffer that stayed within its last page.

        Parameters
        ----------
        ip : str
            Its name.
        pointers : sequence of (int, int)
            Offset and value of each of its registers that points into a buffer.

        Raises
        ------
        KernelFault
            Of the first one; the canaries of all of them are mended.
        """
        overruns = [(register, low, self.overrun(low)) for register, low in pointers]
        for register, low, first in overruns:
            if first is not None:
                raise KernelFault(
                    f"{ip} wrote past the end of the {self.find(low)}: the first byte behind it "
                    f"that changed is at physical address 0x{first:08x} (register 0x{register:02x} "
                    "points into the buffer). On the board this overwrites whatever lies there. "
                    "Check the length given to the kernel, and its loop bounds.",
                    ip,
                    first,
                )

    def mend(self) -> None:
        """Write all canaries again after a run that was cut off: the next one is not to blame."""
        for address in [allocation.address for allocation in self.buffers()]:
            self.overrun(address)

    def describe(self, address: int) -> str:
        """Say where a physical address lies: which buffer, or which is nearest."""
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
        best: Allocation | None = None
        distance = 0
        for candidate in self.buffers():
            gap = (
                candidate.address - address
                if address < candidate.address
                else address - candidate.end
            )
            if best is None or gap < distance:
                best, distance = candidate, gap
        if best is None:
            return "; no buffer is allocated"
        if address >= best.end:
            return f"; the nearest is the {best}, which ends {distance} bytes before"
        return f"; the nearest is the {best}, which starts {distance} bytes behind"

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
