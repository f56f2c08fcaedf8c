"""Inputs of a kernel that are wires of the design, for compiled C++."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pynq_torch.hls.interface import Argument

from .handoff_ports import HandoffPort
from .services import BoardServices

__all__ = ["InputWires", "WiredInput", "input_port", "is_input"]

#: What HLS adds to the name of an argument that becomes a port.
_SUFFIXES = ("", "_r", "_V", "_V_r", "_i", "_V_i")


@dataclass(frozen=True)
class WiredInput:
    """An input port, and where the engine finds its value among the registers."""

    port: HandoffPort
    at: int
    nbytes: int


def is_input(argument: Argument) -> bool:
    """Tell whether an argument is a value that comes in by wires."""
    return argument.kind == "none" and argument.length is None and argument.direction != "out"


def input_port(ports: Mapping[str, HandoffPort], argument: Argument) -> HandoffPort | None:
    """Return the port of a wired argument, or of an address that is one (``offset=direct``)."""
    if not (is_input(argument) or argument.kind in ("m_axi", "burst_maxi")):
        return None
    found = (ports.get(f"{argument.name}{suffix}") for suffix in _SUFFIXES)
    return next((port for port in found if port is not None and port.direction == "I"), None)


class InputWires:
    """What the wires at a unit's inputs carry, put where its engine reads it as a run begins."""

    def __init__(
        self,
        board: BoardServices,
        ip: str,
        inputs: Sequence[WiredInput],
        registers: memoryview,
    ) -> None:
        self._board = board
        self._ip = ip
        self._inputs = tuple(inputs)
        self._registers = registers

    def connect(self, changed: Callable[[], None]) -> None:
        """Read the wires once every model exists; call `changed` after each later change."""
        if self._inputs:
            self.take()
            self._board.wires.followers.append(lambda: changed() if self.take() else None)

    def take(self) -> bool:
        """Read the wires, and return whether one of them has changed."""
        changed = False
        for item in self._inputs:
            level = self._board.wires.read_input(self._ip, item.port)
            value = level.part(0, item.port.width or 1).value.to_bytes(item.nbytes, "little")
            changed |= self._registers[item.at : item.at + item.nbytes] != value
            self._registers[item.at : item.at + item.nbytes] = value
        return changed
