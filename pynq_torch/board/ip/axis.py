"""AXI4-Stream IP that changes or shares beats (PG085).

The parameters say what happens to a beat; ``engines/axis.cpp`` does it, in a process of its own. A
width converter next to a DMA and a subset converter that changes nothing are a part of their link
(`board.handoff_nets`), and nothing runs for them here.
"""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import Any, ClassVar

from pynq_torch.board.axis_parameters import (
    MAX_BYTES,
    MAX_PORTS,
    NotCarried,
    Settings,
    StreamMode,
    settings_of,
)
from pynq_torch.board.bus import IpModel
from pynq_torch.board.engine import EngineProcess, State
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.services import BoardServices
from pynq_torch.board.streams import Endpoint, Ring
from pynq_torch.errors import NotModelledWarning
from pynq_torch.hls import compile_engine

_SOURCE = Path(__file__).parents[1] / "engines" / "axis.cpp"
_NO_ROUTE = 0xFFFFFFFF
#: Mode, inputs, outputs, open, set, last, user, id, dest, every, primary; then by port offset,
#: route, base and high.
_LAYOUT = struct.Struct("<11I16I16I16I16I")
_ROUTES_AT = 4 * (11 + MAX_PORTS)
_SETS = ("last", "keep", "user", "id", "dest")
#: PG085, AXI4-Stream switch: the control register's commit bit, and the routes with MI_DISABLE.
_COMMIT, _MI_MUX, _DISABLED = 1 << 1, 0x40, 1 << 31


class _AxisEngine(EngineProcess):
    """The process of a stream IP; it has no runs."""

    def _goes_on(self, state: State) -> bool:
        """Whether a beat waits that can go on."""
        if state == State.RUNNING:
            return any(r.occupancy for r in self.rings if r.sink and r.sink.ip == self.name)
        return super()._goes_on(state)


class AxisIp(IpModel):
    """Width converter, subset converter, broadcaster, combiner or switch."""

    vlnv_names: ClassVar[tuple[str, ...]] = (
        "axis_broadcaster",
        "axis_combiner",
        "axis_dwidth_converter",
        "axis_subset_converter",
        "axis_switch",
    )

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self.engine: EngineProcess | None = None
        self.settings: Settings | None = None
        names = sorted(ip.stream_ports)
        self._outputs = [name for name in names if ip.stream_ports[name][0]]
        self._inputs = [name for name in names if not ip.stream_ports[name][0]]
        self._mux = dict.fromkeys(range(len(self._outputs)), _DISABLED)
        rings = dict(board.stream_rings(ip.name))
        if not rings:
            return  # a part of its link, or connected to nothing
        try:
            self._check_ports()
            self.settings = settings_of(ip.vlnv_name, ip.parameters, len(self._outputs))
        except NotCarried as error:
            warnings.warn(
                f"{ip.name} ({ip.vlnv}): {error}. Its streams stay open, and waits for them end in "
                "an error.",
                NotModelledWarning,
                stacklevel=2,
            )
            return
        self._start(rings)

    def _check_ports(self) -> None:
        for what, names in (("inputs", self._inputs), ("outputs", self._outputs)):
            if not 1 <= len(names) <= MAX_PORTS:
                raise NotCarried(f"it has {len(names)} {what}; expected 1 to {MAX_PORTS}")
        for name, (_, nbytes) in self.ip.stream_ports.items():
            if nbytes > MAX_BYTES:
                raise NotCarried(f"{name} has {nbytes} bytes; expected at most {MAX_BYTES}")

    @classmethod
    def prepare(cls) -> None:
        """Compile the engine."""
        compile_engine(_SOURCE)

    @property
    def passes_nothing(self) -> bool:
        """Whether its streams stay open."""
        return self.engine is None

    def _start(self, rings: dict[str, Ring]) -> None:
        for name in (*self._inputs, *self._outputs):
            if name not in rings:
                is_source, nbytes = self.ip.stream_ports[name]
                end = Endpoint(self.ip.name, name)
                direction = "out" if is_source else "in"
                rings[name] = self.board.open_ring(end, direction, nbytes or 4)
        ports = [*self._inputs, *self._outputs]
        self.engine = _AxisEngine(
            compile_engine(_SOURCE),
            self.ip.name,
            self.board.memory,
            4096,
            [rings[name] for name in ports],
            [Endpoint(self.ip.name, name) for name in ports],
        )
        packed = self._packed([rings[name].sink is None for name in self._outputs])
        self.engine.user[: len(packed)] = packed
        self.engine.spawn()

    def _packed(self, unconnected: list[bool]) -> bytes:
        s = self.settings
        assert s is not None
        sets = sum(1 << i for i, name in enumerate(_SETS) if name in s.sets)
        mask = sum(1 << i for i, one in enumerate(unconnected) if one)
        values = [s.sets.get(name, 0) for name in _SETS if name != "keep"]
        counts = (len(self._inputs), len(self._outputs))
        bases, highs = ([pair[side] for pair in s.ranges] for side in (0, 1))
        columns = (_filled(s.offsets), _filled((), _NO_ROUTE), _filled(bases), _filled(highs))
        flat = [number & 0xFFFFFFFF for column in columns for number in column]
        rest = [value & 0xFFFFFFFF for value in (*values, s.every, s.primary)]
        return _LAYOUT.pack(s.mode, *counts, mask, sets, *rest, *flat)

    # ---- registers of a switch ---------------------------------------------------------------

    def read(self, offset: int, slave: str = "") -> int:
        """Read a route; the control register reads as zero, since a commit takes no time here."""
        return self._mux.get((offset - _MI_MUX) // 4, 0)

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a route, or commit the routes."""
        output = (offset - _MI_MUX) // 4
        if output in self._mux:
            self._mux[output] = value & (_DISABLED | 0xF)
        elif offset == 0 and value & _COMMIT:
            self._commit()

    def _commit(self) -> None:
        """Let the routes count. Of outputs that want one input the lowest gets it (PG085)."""
        if self.engine is None or self.settings is None:
            return
        routes = [_NO_ROUTE] * MAX_PORTS
        for output in sorted(self._mux, reverse=True):
            source = self._mux[output]
            if not source & _DISABLED:
                routes[source] = output
        if self.settings.mode is StreamMode.ROUTE:
            packed = struct.pack(f"<{MAX_PORTS}I", *routes)
            self.engine.user[_ROUTES_AT : _ROUTES_AT + len(packed)] = packed
            self.board.settle()

    # ---- for people --------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Return what it does and where it stands, for a diagnosis."""
        engine = self.engine
        return {
            "mode": self.settings.mode.name if self.settings is not None else "",
            "state": engine.state.name if engine is not None else "",
            "blocked_on": engine.blocked_on if engine is not None else None,
        }

    def close(self) -> None:
        """End the engine."""
        if self.engine is not None:
            self.engine.close()


def _filled(given: Any, rest: int = 0) -> list[int]:
    return [*given, *[rest] * (MAX_PORTS - len(given))]
