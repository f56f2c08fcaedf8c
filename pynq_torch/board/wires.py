"""Levels of the wires between GPIO, gates, interrupts and the PS, evaluated when they are read."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pynq_torch.errors import NotModelledWarning

from .handoff_ports import HandoffPort
from .handoff_wires import Pin, Wiring
from .ip.axi_gpio import AxiGpio
from .ip_table import Treatment, names
from .levels import Level, combine, given, invert
from .sysfs import FIRST_EMIO

if TYPE_CHECKING:
    from .programmable_logic import ProgrammableLogic

__all__ = ["Wires"]

_EMIO_PINS = 64
_CONSTANTS = names(Treatment.PASSED, "constant")
_CONCATS = names(Treatment.PASSED, "concat")
_GATES = names(Treatment.MODELLED, "gate")
_GPIO_INPUTS = {"gpio_io_i": 1, "gpio2_io_i": 2}
#: A change that comes back to its own gate ends after so many rounds.
_ROUNDS = 8


class Wires:
    """The wires of the loaded design.

    Parameters
    ----------
    board : ProgrammableLogic
        Its models drive the wires, and take their levels.
    wiring : Wiring
        From the handoff.
    """

    def __init__(self, board: ProgrammableLogic, wiring: Wiring) -> None:
        self._board = board
        self._wiring = wiring
        self._told: set[tuple[str, str]] = set()
        #: Called after a change, by whom it concerns even where it does not interrupt.
        self.followers: list[Callable[[], object]] = []
        self._running = threading.local()
        kinds = wiring.kinds
        gpios = [
            (pin, _GPIO_INPUTS[pin.name])
            for ip, pins in wiring.inputs.items()
            if kinds[ip] == "axi_gpio"
            for pin in pins.values()
            if pin.name in _GPIO_INPUTS and pin.net in wiring.drivers
        ]
        #: Input pins of GPIO that something in the design drives, by IP and channel.
        self.gpio = {(pin.ip, channel): pin for pin, channel in gpios}
        self._emio = next(self._inputs("processing_system7", "gpio_i"), None)
        irqs = (
            *self._inputs("processing_system7", "irq_f2p"),
            *self._inputs("axi_intc", "intr"),
        )
        self._irqs = [pin for pin in irqs if self._has_gate(pin.net)]

    def _inputs(self, kind: str, name: str) -> Iterator[Pin]:
        """Yield an input pin of each IP of a kind, where something drives it."""
        for ip, pins in self._wiring.inputs.items():
            pin = pins.get(name) if self._wiring.kinds[ip] == kind else None
            if pin is not None and pin.net in self._wiring.drivers:
                yield pin

    def _has_gate(self, net: str, seen: tuple[str, ...] = ()) -> bool:
        driver = self._wiring.drivers.get(net)
        if driver is None or net in seen:
            return False
        kind = self._wiring.kinds[driver.ip]
        return kind in _GATES or (
            kind in _CONCATS
            and any(
                self._has_gate(pin.net, (*seen, net))
                for pin in self._wiring.inputs[driver.ip].values()
            )
        )

    def is_fixed(self, net: str, seen: tuple[str, ...] = ()) -> bool:
        """Return whether only constants drive a net, through gates or not."""
        driver = self._wiring.drivers.get(net)
        if driver is None or net in seen:
            return False
        kind = self._wiring.kinds[driver.ip]
        if kind in _GATES or kind in _CONCATS:
            pins = self._wiring.inputs[driver.ip].values()
            return all(self.is_fixed(pin.net, (*seen, net)) for pin in pins)
        return kind in _CONSTANTS

    # ---- levels ------------------------------------------------------------------------------

    def level(self, net: str, width: int = 1, seen: tuple[str, ...] = ()) -> Level:
        """Return the level of a net; bits that come from outside of the design are not known."""
        driver = self._wiring.drivers.get(net)
        if driver is None or net in seen:
            return Level()
        width, seen = driver.width or width, (*seen, net)
        kind = self._wiring.kinds[driver.ip]
        if kind in _GATES or kind in _CONCATS or kind in _CONSTANTS:
            return self._gate(driver.ip, kind, width, seen)
        return self._source(driver, kind, width)

    def _source(self, pin: Pin, kind: str, width: int) -> Level:
        model = self._board.ip.get(pin.ip)
        if kind == "processing_system7" and pin.name in ("gpio_o", "gpio_t"):
            pins = [self._board.linux.gpio.output(FIRST_EMIO + i) for i in range(_EMIO_PINS)]
            bits = (v is None if pin.name == "gpio_t" else v for v in pins)
            return given(sum(int(bool(bit)) << i for i, bit in enumerate(bits)), width)
        if isinstance(model, AxiGpio) and re.fullmatch(r"gpio2?_io_(o|t)", pin.name):
            offset = (8 if pin.name.startswith("gpio2") else 0) + 4 * pin.name.endswith("t")
            return given(model.driven(offset), width)
        resets = kind == "proc_sys_reset" or pin.name.startswith("fclk_reset")
        if resets and "reset" in pin.name:
            return given(-1 if pin.name.endswith("n") else 0, width)
        by_name = {p.lower(): p for p in (model.ip.interrupt_pins if model is not None else ())}
        if model is not None and not model.passes_nothing and pin.name in {*by_name, "irq"}:
            return given(int(model.irq(by_name.get(pin.name, pin.name))), 1)
        return Level(unfollowed=frozenset([f"{pin.ip}.{pin.name} ({kind})"]))

    def _gate(self, ip: str, kind: str, width: int, seen: tuple[str, ...]) -> Level:
        parameters = self._wiring.parameters[ip]
        size = parameters.get("C_SIZE") or parameters.get("CONST_WIDTH")
        width = _number(size) if size else width  # ports of one bit are listed without theirs

        def operand(name: str) -> Level:
            pin = self._wiring.inputs[ip].get(name)
            return Level() if pin is None else self.level(pin.net, pin.width or width, seen)

        if kind in _CONSTANTS:
            return given(_number(parameters.get("CONST_VAL", "1")), width)
        if kind in _CONCATS:
            return self._concat(ip, seen)
        if kind.endswith("slice"):
            high, low = (_number(parameters.get(f"DIN_{end}", "0")) for end in ("FROM", "TO"))
            return operand("din").part(low, max(high - low + 1, 0))
        operation = parameters.get("C_OPERATION", "and").lower()
        one = operand("op1")
        if kind.endswith("reduced_logic"):
            result = one.part(0, 1)
            for i in range(1, width):
                result = combine(operation, result, one.part(i, 1), 1)
            return result
        if operation == "not":
            return invert(one, width)
        return combine(operation, one, operand("op2"), width)

    def _concat(self, ip: str, seen: tuple[str, ...]) -> Level:
        inputs = self._wiring.inputs[ip]
        count = _number(self._wiring.parameters[ip].get("NUM_PORTS", "0"))
        numbers = [int(n[2:]) for n in inputs if n[:2] == "in" and n[2:].isdigit()]
        result, low = Level(), 0
        for i in range(max([count, *(n + 1 for n in numbers)])):
            pin = inputs.get(f"in{i}")
            said = self._wiring.parameters[ip].get(f"IN{i}_WIDTH", "1")
            bits = (pin.width if pin is not None else None) or _number(said)
            one = Level() if pin is None else self.level(pin.net, bits, seen).part(0, bits)
            result = Level(
                result.value | one.value << low,
                result.known | one.known << low,
                result.unfollowed | one.unfollowed,
            )
            low += bits
        return result

    # ---- who reads them ----------------------------------------------------------------------

    def read_gpio(self, ip: str, channel: int) -> Level | None:
        """Return what the design drives on the inputs of a GPIO; say once what is not followed."""
        pin = self.gpio.get((ip, channel))
        return None if pin is None else self._told_level(pin, f"{ip}, channel {channel}")

    def read_input(self, ip: str, port: HandoffPort) -> Level:
        """Return what the design drives on an input of a kernel; say once what is not followed."""
        pin, reader = Pin(ip, port.name, port.net, port.width), f"{ip}.{port.name}"
        if port.net and port.net not in self._wiring.drivers:
            return self._tell(Level(unfollowed=frozenset(["outside the design"])), reader)
        return self._told_level(pin, reader)

    def read_emio(self) -> None:
        """Give the PS what the design drives on the EMIO pins."""
        if self._emio is not None:
            self._drive_emio(self._told_level(self._emio, "the EMIO GPIO of the PS"))

    def _told_level(self, pin: Pin, reader: str) -> Level:
        return self._tell(self.level(pin.net, pin.width or 1), reader)

    def _tell(self, level: Level, reader: str) -> Level:
        new = {(reader, source) for source in level.unfollowed} - self._told
        if new:
            self._told |= new
            sources = ", ".join(sorted(source for _, source in new))
            warnings.warn(
                f"{reader} reads 0 where its wire comes from {sources}: the virtual board does not "
                "model that pin. A PYNQ-Z2 may answer otherwise.",
                NotModelledWarning,
                stacklevel=5,
            )
        return level

    def _drive_emio(self, level: Level) -> None:
        for i in _bits(level.known & (1 << _EMIO_PINS) - 1):
            self._board.linux.gpio.set_input(FIRST_EMIO + i, level.value >> i & 1)

    def update(self) -> None:
        """Carry a change to whom it may interrupt; all others see it when they read."""
        if getattr(self._running, "depth", 0) >= _ROUNDS:
            return
        self._running.depth = getattr(self._running, "depth", 0) + 1
        try:
            for (ip, channel), pin in self.gpio.items():
                model = self._board.ip.get(ip)
                if isinstance(model, AxiGpio):
                    model.follow_wires(channel, self.level(pin.net, pin.width or 1))
            for follow in self.followers:
                follow()
            for pin in self._irqs:
                taken = {
                    n.index for n in self._board.interrupt_nets if n.target == self._target(pin)
                }
                level = self.level(pin.net, pin.width or 1)
                for i in _bits(level.known):
                    if i not in taken:
                        self._board.set_interrupt(self._target(pin), i, bool(level.value >> i & 1))
        finally:
            self._running.depth -= 1

    def _target(self, pin: Pin) -> str:
        return "" if self._wiring.kinds[pin.ip] == "processing_system7" else pin.ip


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return int(text) if text.isdigit() else 0


def _bits(value: int) -> Iterator[int]:
    return (i for i in range(value.bit_length()) if value >> i & 1)
