"""The AXI-Lite side of the board: who answers at which address."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pynq_torch.errors import BoardError, BusError

from .handoff import IpInstance
from .services import BoardServices

_PAGE_BITS = 12


class IpModel:
    """One IP of the PL as the processor sees it: 32-bit registers, and interrupt outputs.

    Subclasses say in ``vlnv_names`` which IP they model (the third field of the VLNV).

    Parameters
    ----------
    board : BoardServices
    ip : IpInstance
        Name, parameters, address ranges and streams, from the hardware handoff.
    """

    vlnv_names: ClassVar[tuple[str, ...]] = ()

    @property
    def passes_nothing(self) -> bool:
        """Whether its streams stay open, as those of an IP without a model."""
        return False

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        self.board = board
        self.ip = ip
        self.lock = threading.RLock()
        self._warned: set[object] = set()

    def warn_once(self, category: type[Warning], text: str, key: object = None) -> None:
        """Warn of what a program does with the IP, once for each ``key`` (else each text)."""
        key = text if key is None else key
        if key not in self._warned:
            self._warned.add(key)
            warnings.warn(f"{self.ip.name}: {text}", category, stacklevel=5)

    @classmethod
    def prepare(cls) -> None:
        """Compile what the model needs; called while the kernels of an overlay are built."""

    def read(self, offset: int, slave: str = "") -> int:
        """Read the 32-bit register at byte ``offset`` of the bus interface ``slave``."""
        raise NotImplementedError

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write the 32-bit register at byte ``offset`` of the bus interface ``slave``."""
        raise NotImplementedError

    def write_block(self, offset: int, words: memoryview, slave: str = "") -> None:
        """Write 32-bit words to registers that follow each other, lowest first."""
        for index, word in enumerate(words):
            self.write(offset + 4 * index, word, slave)

    def memory(self, slave: str = "") -> memoryview | None:
        """Return the plain memory behind the whole range, if that is all there is (block RAM)."""
        return None

    def backing(self, slave: str = "") -> memoryview | None:
        """Return the bytes behind registers without side effects, if there are any."""
        return None

    def irq(self, pin: str) -> bool:
        """Return the level of the interrupt output ``pin``."""
        return False

    def set_input(self, index: int, level: bool) -> None:
        """Drive interrupt input ``index`` (interrupt controllers only)."""
        raise NotImplementedError(f"{self.ip.name} takes no interrupts")

    def connect(self) -> None:
        """Start what needs its neighbours; called once every model of the overlay exists."""

    def close(self) -> None:
        """Release processes, threads and descriptors."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ip.name}>"


@dataclass(eq=False)
class Region:
    """An address range and the model that answers there."""

    base: int
    nbytes: int
    model: IpModel
    slave: str
    name: str

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.base + self.nbytes


class Bus:
    """The processor's view of the address map outside DDR."""

    def __init__(self) -> None:
        self._pages: dict[int, Region] = {}
        self._shared: dict[int, list[Region]] = {}  # pages that several small ranges are in
        self.regions: list[Region] = []
        #: Why nothing answers any more; empty while the board is in use.
        self.gone = ""
        #: Reads and writes so far.
        self.accesses = 0
        #: Called before each of them, while something in the PL moves.
        self.before_access: Callable[[], None] | None = None

    def attach(self, base: int, nbytes: int, model: IpModel, slave: str, name: str) -> None:
        """Let ``model`` answer at ``[base, base + nbytes)``; it replaces one with that range."""
        region = Region(base, nbytes, model, slave, name)
        old = next((r for r in self.regions if (r.base, r.nbytes) == (base, nbytes)), None)
        if old is not None:
            self.regions.remove(old)
            self._pages = {page: r for page, r in self._pages.items() if r is not old}
            for there in self._shared.values():
                there[:] = [r for r in there if r is not old]
        self.regions.append(region)
        for page in range(base >> _PAGE_BITS, (base + nbytes - 1 >> _PAGE_BITS) + 1):
            before = self._pages.pop(page, None)
            if before is not None or page in self._shared:
                self._shared.setdefault(page, [before] if before is not None else []).append(region)
            else:
                self._pages[page] = region

    def clear(self, keep: Sequence[IpModel] = ()) -> None:
        """Remove every model except ``keep`` (those of the PS)."""
        kept = [r for r in self.regions if r.model in keep]
        # Swapped in whole: another thread may read the SLCR at this moment.
        self._pages = {page: r for page, r in self._pages.items() if r in kept}
        self._shared = {}
        self.before_access = None
        self.regions = kept

    def find(self, address: int) -> Region:
        """Return the region that ``address`` lies in, or raise ``BusError``."""
        page = address >> _PAGE_BITS
        inside = (r for r in self._shared.get(page, ()) if r.base <= address < r.end)
        region = self._pages.get(page) or next(inside, None)
        if region is None and self.gone:
            raise BoardError(
                f"physical address 0x{address:08x} {self.gone}; call pynq_torch.use_board() and "
                "load the overlay again"
            )
        if region is None:
            known = ", ".join(
                f"{r.name} 0x{r.base:08x}-0x{r.end - 1:08x}"
                for r in sorted(self.regions, key=lambda r: r.base)
            )
            raise BusError(
                f"no IP answers at physical address 0x{address:08x}: on the board this access ends "
                "the program with a bus error or freezes it. The address map has: "
                f"{known or 'nothing'}.",
                address,
            )
        return region

    def pass_time(self) -> None:
        """Give the PL the time that an access takes a program on the board."""
        call = self.before_access  # another thread may take it away
        if call is not None:
            call()

    def read(self, address: int) -> int:
        """Read a 32-bit word."""
        self.accesses += 1
        if self.before_access is not None:
            self.pass_time()
        region = self._pages.get(address >> _PAGE_BITS) or self.find(address)
        model = region.model
        with model.lock:
            return model.read(address - region.base, region.slave)

    def write(self, address: int, value: int) -> None:
        """Write a 32-bit word."""
        self.accesses += 1
        if self.before_access is not None:
            self.pass_time()
        region = self._pages.get(address >> _PAGE_BITS) or self.find(address)
        model = region.model
        with model.lock:
            model.write(address - region.base, value & 0xFFFFFFFF, region.slave)

    def write_block(self, address: int, words: memoryview) -> None:
        """Write 32-bit words to addresses that follow each other, lowest first."""
        self.accesses += 1
        if self.before_access is not None:
            self.pass_time()
        region = self._pages.get(address >> _PAGE_BITS) or self.find(address)
        if address + 4 * len(words) > region.end:
            for index, word in enumerate(words):
                self.write(address + 4 * index, word)
            return
        model = region.model
        with model.lock:
            model.write_block(address - region.base, words, region.slave)
