"""The memory models of the board ``rtl``, as ``board/engines/rtl/memory.hpp`` computes them.

The PL process has the numbers it runs with; here they are for people, with their sources, and for
checking what a program asks for before a process is started.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import MappingProxyType

from pynq_torch.models.pynq_z2 import (
    BURST_BEATS,
    BURST_CYCLES,
    DDR_BYTES_PER_SECOND,
    DDR_PEAK_BYTES_PER_SECOND,
    FCLK_HZ,
    HP_WIDTH_BITS,
)

__all__ = ["PRESETS", "MemoryModel", "check_options", "memory_model"]


@dataclass(frozen=True)
class MemoryModel:
    """How long the way from a port to DDR takes.

    Parameters
    ----------
    name : str
        What ``use_board("rtl", memory=...)`` takes.
    summary : str
        A sentence.
    hp_bytes_per_cycle : int or None
        That an HP port moves, each way; ``None``: any port's full width.
    burst_beats : int
        Longest burst on an HP port; longer ones are cut.
    fifo_bytes : int or None
        Of an HP port, each way: what can be on its way.
    read_latency_s, write_latency_s : float
        From the address to the first word with DDR idle; from the last word in DDR to the response;
        each without `port_cycles`.
    port_cycles : int
        Of each latency, in the PL's clock.
    ddr_bytes_per_second : float or None
        That DDR delivers, refresh included, to all ports together.
    refresh_interval_s, refresh_s : float
        How often DDR is refreshed, and how long it then answers nobody.
    sources : mapping
        Where each number comes from.
    """

    name: str
    summary: str
    hp_bytes_per_cycle: int | None = None
    burst_beats: int = 256
    fifo_bytes: int | None = None
    read_latency_s: float = 0.0
    write_latency_s: float = 0.0
    port_cycles: int = 0
    ddr_bytes_per_second: float | None = None
    refresh_interval_s: float = 0.0
    refresh_s: float = 0.0
    sources: MappingProxyType[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def bytes_per_cycle(self, ports: int = 1, clock_hz: float = FCLK_HZ) -> float:
        """Return what so many HP ports can move in a cycle at best, one direction each.

        Raises
        ------
        ValueError
            The model has no such limit, or the arguments make no sense.
        """
        if self.hp_bytes_per_cycle is None or self.ddr_bytes_per_second is None:
            raise ValueError(
                f"memory model {self.name!r} has no limit of its own: each port moves one beat of "
                "its width a cycle"
            )
        if ports < 1 or not clock_hz > 0:
            raise ValueError(
                f"ports is {ports}, clock_hz {clock_hz}; expected at least 1 and more than 0"
            )
        return min(ports * self.hp_bytes_per_cycle, self.ddr_bytes_per_second / clock_hz)

    def __str__(self) -> str:
        return f"{self.name}: {self.summary}"


_UG585 = "UG585, 5.3 AXI_HP interfaces"
#: Mean wait for a refresh of a single burst in the model; part of the measured latency.
_REFRESH_WAIT_S = 4.3e-9
#: Part of a latency that follows the PL's clock.
_PORT_CYCLES = 7
_LATENCY_S = (BURST_CYCLES - BURST_BEATS - _PORT_CYCLES) / FCLK_HZ - _REFRESH_WAIT_S
#: Each number of the board's model, with its source.
_PYNQ_Z2 = {
    "hp_bytes_per_cycle": (HP_WIDTH_BITS // 8, f"64 bits at the PL's clock [{_UG585}]"),
    "burst_beats": (BURST_BEATS, f"AXI3 [{_UG585}]"),
    "fifo_bytes": (1024, f"128 x 64 bits; 14 to 70 reads, 8 to 32 writes [{_UG585}]"),
    "read_latency_s": (
        _LATENCY_S,
        f"{BURST_CYCLES} cycles of 100 MHz for a burst of 128 bytes, measured on a PYNQ-Z2 "
        "[github.com/ammrat13/pynqz2-ram-tester]",
    ),
    "port_cycles": (
        _PORT_CYCLES,
        "an AES kernel that reads 16 bytes at a time, timed on a PYNQ-Z2 at 100 to 200 MHz "
        "[github.com/necst/pynqrypt, see docs/fidelity.md]",
    ),
    "write_latency_s": (_LATENCY_S, "taken to be that of a read; UG585 gives none"),
    "ddr_bytes_per_second": (
        DDR_BYTES_PER_SECOND,
        f"{DDR_PEAK_BYTES_PER_SECOND / 1e9:.2f} GB/s peak [PYNQ-Z2 reference manual], 87 % of it "
        "[UG585, DDR efficiency]",
    ),
    "refresh_interval_s": (7.8e-6, "tREFI [JESD79-3]"),
    "refresh_s": (260e-9, "tRFC of a 4 Gb part [JESD79-3]"),
}
_MODELS = (
    MemoryModel(
        "pynq-z2",
        "16-bit DDR3-1050 behind four 64-bit HP ports, with refresh",
        sources=MappingProxyType({name: source for name, (_, source) in _PYNQ_Z2.items()}),
        **{name: value for name, (value, _) in _PYNQ_Z2.items()},  # type: ignore[arg-type]
    ),
    MemoryModel("ideal", "data in the cycle after the address, one beat a cycle, for every port"),
)
#: By name.
PRESETS: MappingProxyType[str, MemoryModel] = MappingProxyType({m.name: m for m in _MODELS})


def memory_model(name: str) -> MemoryModel:
    """Return the model of a name.

    Raises
    ------
    ValueError
        There is none.
    """
    if name not in PRESETS:
        raise ValueError(f"memory is {name!r}; expected one of {', '.join(map(repr, PRESETS))}")
    return PRESETS[name]


def check_options(memory: str, stalls: float, seed: int, timeout_cycles: int = 0) -> MemoryModel:
    """Return the model that a program asks for, once its other options are found good.

    Parameters
    ----------
    memory : str
        Name of a preset.
    stalls : float
        Share of cycles, at least 0 and below 1, in which a channel makes the design wait.
    seed : int
        Of these waits, 0 to 2**32 - 1.
    timeout_cycles : int
        Cycles that a run may take; 0: any number.

    Raises
    ------
    ValueError, TypeError
        One of them is not.
    """
    model = memory_model(memory)
    for option, value, kind in (("stalls", stalls, (int, float)), ("seed", seed, int)):
        if not isinstance(value, kind):
            raise TypeError(f"{option} is {value!r}; expected a number")
    if not (math.isfinite(stalls) and 0 <= stalls < 1):
        raise ValueError(
            f"stalls is {stalls}; expected a share of cycles, at least 0 and below 1: 0.25 makes "
            "the design wait in a quarter of them"
        )
    if not 0 <= seed < 1 << 32:
        raise ValueError(f"seed is {seed}; expected 0 to {(1 << 32) - 1}")
    if not 0 <= timeout_cycles < 1 << 63:
        raise ValueError(
            f"timeout_cycles is {timeout_cycles}; expected a number of cycles, or 0 for none"
        )
    return model
