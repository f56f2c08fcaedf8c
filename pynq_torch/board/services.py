"""What the model of an IP may ask of the board that it is on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .bus import IpModel
    from .handoff import IpInstance
    from .memory import PhysicalMemory
    from .streams import Endpoint, Ring
    from .vain_polls import VainPolls
    from .wires import Wires


class BoardServices(Protocol):
    """The board as its models see it: memory, streams, interrupts, time, and who waits.

    A model that answers "still busy" to a read that programs poll calls `polled`, and
    `vain_polls.note` where the answer can never change. One whose interrupt outputs may have
    changed calls `raise_irq`.
    """

    memory: PhysicalMemory
    wires: Wires
    vain_polls: VainPolls
    tool_version: tuple[int, int]

    @property
    def cus(self) -> Mapping[str, Any]:
        """The compute units by name."""

    def engines(self) -> list[Any]:
        """Return what every unit and data mover runs in."""

    def stream_rings(self, ip: str) -> Mapping[str, Ring]:
        """Return the streams of an IP by bus interface name."""

    def open_ring(self, end: Endpoint, direction: str, data_bytes: int) -> Ring:
        """Return a stream that blocks: nothing modelled is at its other end."""

    def clock_hz(self, ip: IpInstance) -> float:
        """Return the frequency of an IP's clock."""

    def raise_irq(self, model: IpModel) -> None:
        """Carry the interrupt outputs of ``model`` to what they are wired to."""

    def polled(self, model: IpModel, polls: int) -> None:
        """Note that a program read "still busy" for the ``polls``-th time in a row."""

    def settle(self) -> None:
        """Let the PL get on with what a program just started, now and before each access."""

    def watch(self, fd: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` in another thread each time the eventfd ``fd`` fires."""

    def unwatch(self, fd: int) -> None:
        """Stop watching ``fd``."""
