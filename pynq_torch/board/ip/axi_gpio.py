"""AXI GPIO (PG144): one or two channels of up to 32 wires, with an interrupt on change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from pynq_torch.board.bus import IpModel
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.levels import Level
from pynq_torch.board.services import BoardServices

from .parameters import flag, integer

# PG144, table 2-4.
_GIER, _IP_ISR, _IP_IER = 0x11C, 0x120, 0x128


class _Channel:
    """One channel: what the program drives, what the outside drives, and who drives each wire."""

    def __init__(self, ip: IpInstance, suffix: str) -> None:
        second = suffix == "_2"
        self.width = integer(ip, "C_GPIO2_WIDTH" if second else "C_GPIO_WIDTH", 32)
        self.mask = (1 << self.width) - 1
        self.all_inputs = flag(ip, "C_ALL_INPUTS" + suffix, False)
        self.all_outputs = flag(ip, "C_ALL_OUTPUTS" + suffix, False)
        self.data = integer(ip, "C_DOUT_DEFAULT" + suffix, 0) & self.mask
        self.tri = integer(ip, "C_TRI_DEFAULT" + suffix, 0xFFFFFFFF) & self.mask
        self.pins = 0
        self.observers: list[Callable[[int, int], None]] = []

    @property
    def inputs(self) -> int:
        """Wires that the outside drives (TRI = 1)."""
        if self.all_inputs:
            return self.mask
        return 0 if self.all_outputs else self.tri

    @property
    def value(self) -> int:
        """Level of the wires: the outside's for inputs, the data register's for outputs."""
        return (self.pins & self.inputs) | (self.data & ~self.inputs & self.mask)


class AxiGpio(IpModel):
    """AXI GPIO v2.0.

    The outside world is the caller: :meth:`set_input` moves switches and buttons, :meth:`on_output`
    watches LEDs.
    """

    vlnv_names: ClassVar[tuple[str, ...]] = ("axi_gpio",)

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self._channels = [_Channel(ip, "")]
        if flag(ip, "C_IS_DUAL", False):
            self._channels.append(_Channel(ip, "_2"))
        self.has_interrupt = flag(ip, "C_INTERRUPT_PRESENT", False)
        self._enabled = False
        self._ier = 0
        self._isr = 0

    def set_input(self, channel: int, value: int | bool) -> None:
        """Drive the wires of ``channel`` from outside.

        Parameters
        ----------
        channel : {1, 2}
        value : int
            Level of all the channel's wires; bits that the IP drives itself are ignored.

        Raises
        ------
        ValueError
            The IP has no such channel, or the value is wider than the channel.
        """
        chosen = self._channel(channel)
        if not 0 <= value <= chosen.mask:
            raise ValueError(
                f"{self.ip.name} channel {channel} has {chosen.width} wires; "
                f"{value:#x} does not fit"
            )
        with self.lock:
            before = chosen.pins & chosen.inputs
            chosen.pins = int(value)
            changed = before != chosen.pins & chosen.inputs
            if changed and self.has_interrupt:
                # Any transition of an input sets the channel's bit (PG144, "Interrupts").
                self._isr |= 1 << (channel - 1)
        if changed:
            self.board.raise_irq(self)

    def _take(self, channel: int, level: Level | None) -> None:
        """Take what the design drives on the inputs; what is not known stays."""
        if level is not None:
            chosen = self._channel(channel)
            known = level.known & chosen.mask
            self.set_input(channel, (chosen.pins & ~known) | (level.value & known))

    def follow_wires(self, channel: int, level: Level) -> None:
        """Take a change of the wires at once, where it may interrupt."""
        if self.has_interrupt and channel <= len(self._channels):
            self._take(channel, level)

    def driven(self, offset: int) -> int:
        """Return the pins ``gpio_io_o`` (offset 0, 8) or ``gpio_io_t`` (4, 12)."""
        if offset >> 3 >= len(self._channels):
            return 0
        channel = self._channels[offset >> 3]
        return channel.inputs if offset & 4 else channel.data

    def output(self, channel: int) -> int:
        """Return the level of the channel's wires, inputs included."""
        return self._channel(channel).value

    def on_output(self, channel: int, callback: Callable[[int, int], None]) -> None:
        """Call ``callback(value, driven)`` when outputs change.

        ``driven`` has a bit set for each wire that the IP drives; others are zero in ``value``.
        """
        self._channel(channel).observers.append(callback)

    def describe(self) -> dict[str, Any]:
        """Return the state by channel, for diagnosis."""
        return {
            f"channel{i}": {"value": c.value, "driven": c.mask & ~c.inputs, "width": c.width}
            for i, c in enumerate(self._channels, start=1)
        } | {"interrupt": self.irq("ip2intc_irpt"), "pending": self._isr, "enabled": self._ier}

    def _channel(self, number: int) -> _Channel:
        if not 1 <= number <= len(self._channels):
            raise ValueError(
                f"{self.ip.name} has {len(self._channels)} channel(s); there is no channel {number}"
            )
        return self._channels[number - 1]

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register; offsets without one read as zero."""
        offset &= 0x1FF
        if offset < 0x10:
            if offset >> 3 >= len(self._channels):
                # As a board prints it in the notebook register_map_intro: inputs, and no data.
                return 0xFFFFFFFF if offset & 4 else 0
            channel, number = self._channels[offset >> 3], 1 + (offset >> 3)
            if not offset & 4:
                self._take(number, self.board.wires.read_gpio(self.ip.name, number))
            return channel.inputs if offset & 4 else channel.value
        if not self.has_interrupt:
            return 0
        values = {_GIER: int(self._enabled) << 31, _IP_ISR: self._isr, _IP_IER: self._ier}
        return values.get(offset, 0)

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register."""
        offset &= 0x1FF
        if offset < 0x10:
            if offset >> 3 < len(self._channels):
                self._drive(self._channels[offset >> 3], offset, value)
            return
        if not self.has_interrupt:
            return
        bits = (1 << len(self._channels)) - 1
        if offset == _GIER:
            self._enabled = bool(value >> 31)
        elif offset == _IP_ISR:
            self._isr ^= value & bits  # toggle on write (PG144, table 2-9)
        elif offset == _IP_IER:
            self._ier = value & bits
        else:
            return
        self.board.raise_irq(self)

    def _drive(self, channel: _Channel, offset: int, value: int) -> None:
        before = (channel.value & ~channel.inputs, channel.inputs)
        if offset & 4:
            if channel.all_inputs or channel.all_outputs:
                return  # the direction is fixed and TRI does not exist (PG144, table 2-6)
            channel.tri = value & channel.mask
        else:
            channel.data = value & channel.mask
        after = (channel.value & ~channel.inputs, channel.inputs)
        if after != before:
            for callback in list(channel.observers):
                callback(after[0], channel.mask & ~after[1])
        self.board.wires.update()

    def irq(self, pin: str) -> bool:
        """Return the level of ``ip2intc_irpt``."""
        return self._enabled and (self._isr & self._ier) != 0
