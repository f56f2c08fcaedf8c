"""The timing model of the PYNQ-Z2: what moving bytes, computing and calling cost on the board.

Everything here is of kind ``model``: arithmetic over the constants below, each with its source.
Nothing asks which board is in use; a measurement or a count of cycles in RTL replaces these numbers
where there is one (see `pynq_torch.models.hls_resources` and `pynq_torch.timing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from pynq_torch.timing import Duration

__all__ = [
    "CPU_HZ",
    "CPU_MACS_PER_SECOND",
    "CPU_STREAM_BYTES_PER_SECOND",
    "DDR_BYTES_PER_SECOND",
    "DDR_PEAK_BYTES_PER_SECOND",
    "DMA_CALL_S",
    "FCLK_HZ",
    "Ports",
    "Roof",
    "attainable",
    "call_seconds",
    "compute_roof",
    "cpu",
    "ddr_bytes_per_cycle",
    "memory_roofs",
]

# ---- clocks --------------------------------------------------------------------------------------

#: PL clock of the overlays here. At speed grade -1 AXI4 goes to about 150 MHz, AXI4-Lite to 120
#: [PG067, SmartConnect and AXI interconnect]; 100 MHz leaves room for routing.
FCLK_HZ = 100e6
#: The Cortex-A9 pair of the board [PYNQ-Z2 reference manual].
CPU_HZ = 650e6

# ---- DDR -----------------------------------------------------------------------------------------

#: 16 data lines at 1050 million transfers a second [PYNQ-Z2 reference manual: DDR3, x16, 525 MHz].
DDR_PEAK_BYTES_PER_SECOND = 16 // 8 * 1050e6
#: Share of the peak that the controller delivers: the better and the worse figure of UG585, table
#: "DDR Efficiency" (what is lost goes into refresh, opening rows and turning the bus around).
DDR_EFFICIENCY, DDR_EFFICIENCY_LOW = 0.87, 0.75
#: What the model takes DDR to deliver: 1.83 GB/s, for reads and writes together.
DDR_BYTES_PER_SECOND = DDR_PEAK_BYTES_PER_SECOND * DDR_EFFICIENCY

# ---- the HP ports --------------------------------------------------------------------------------

#: High-performance slave ports of the PS, and their width [UG585, "AXI_HP Interfaces"].
HP_PORTS, HP_WIDTH_BITS = 4, 64
#: Longest burst of AXI3, which the PS speaks [UG585]; an interconnect cuts longer ones.
BURST_BEATS = 16
#: From the address of a read burst of 16 beats of 64 bits to its last beat, one burst at a time, at
#: 100 MHz: on average and at worst, measured on a PYNQ-Z2 [github.com/ammrat13/pynqz2-ram-tester].
#: It gives 327 MiB/s. HLS itself assumes 64 cycles [UG1399, "m_axi latency"].
BURST_CYCLES, BURST_CYCLES_WORST = 37.4, 85.0
#: The part of it before the first beat.
LATENCY_CYCLES = BURST_CYCLES - BURST_BEATS

# ---- what the host pays --------------------------------------------------------------------------

#: ``ip.write()`` in Python: 27 to 36 µs on the board [github.com/KastnerRG/Read_the_docs, issue
#: 25]. A word through ``mmio.array`` or in C costs a bus access only [UviDTE-FPSoC measurements].
PYTHON_WRITE_S, C_ACCESS_S = 31e-6, 0.2e-6
#: Python: start, poll, done of a run of 16 bytes [github.com/necst/pynqrypt].
PYTHON_RUN_S = 150e-6
#: One of the two calls (send, receive) of ``pynq.lib.DMA`` [B83C/systolic_pynq_rtl: about 0.5 ms
#: for both]; the same in C++ [NetKit-Labs/npukit].
DMA_CALL_S, DMA_CALL_C_S = 250e-6, 20e-6
#: Copies by the CPU out of CMA memory, without and with caching [github.com/bmartini/zynq-xdma,
#: issue 10].
COPY_UNCACHED_BYTES_PER_SECOND, COPY_CACHED_BYTES_PER_SECOND = 64e6, 256e6

# ---- the CPU as the one to beat ------------------------------------------------------------------

#: float32 multiply-accumulates a second of the best hand-tuned kernel on one core, 1.11e9 at a
#: clock that is not stated and taken as 1 GHz [github.com/sonos/tract], scaled to 650 MHz.
CPU_MACS_PER_SECOND = 1.11e9 * CPU_HZ / 1e9
#: Bytes a second that one core streams from DDR and back with caching: the copy above reads and
#: writes each byte.
CPU_STREAM_BYTES_PER_SECOND = 2 * COPY_CACHED_BYTES_PER_SECOND


def ddr_bytes_per_cycle(clock_hz: float = FCLK_HZ) -> float:
    """Return what DDR delivers in a cycle of the PL, in bytes: 18.27 at 100 MHz."""
    return DDR_BYTES_PER_SECOND / clock_hz


@dataclass(frozen=True)
class Ports:
    """How a kernel reaches DDR: several alike AXI masters, each on an HP port of its own.

    Parameters
    ----------
    count : int
        Ports that move data at the same time; a port's read and write channels count as two.
    width_bits : int
        Of the data, 8 to 64.
    burst_beats : int
        Length of a burst, 1 to 16.
    outstanding : int
        Bursts that are asked for before the first has come.
    clock_hz : float
        Of the PL.
    """

    count: int = 1
    width_bits: int = HP_WIDTH_BITS
    burst_beats: int = BURST_BEATS
    outstanding: int = 1
    clock_hz: float = FCLK_HZ

    def __post_init__(self) -> None:
        if self.width_bits not in (8, 16, 32, 64):
            raise ValueError(f"width_bits is {self.width_bits}; an HP port takes 8, 16, 32 or 64")
        if not 1 <= self.burst_beats <= BURST_BEATS:
            raise ValueError(f"burst_beats is {self.burst_beats}; AXI3 allows 1 to {BURST_BEATS}")
        if not (1 <= self.count <= 2 * HP_PORTS and self.outstanding >= 1 and self.clock_hz > 0):
            raise ValueError(
                f"count is {self.count}, outstanding {self.outstanding}, clock_hz {self.clock_hz}; "
                f"expected 1 to {2 * HP_PORTS} channels, at least 1 burst, a positive clock"
            )

    @property
    def limits(self) -> dict[str, float]:
        """Bytes a second that each part allows: ``"port"``, ``"outstanding"`` and ``"DDR"``."""
        beat = self.width_bits // 8
        round_trip = LATENCY_CYCLES + self.burst_beats
        waiting = self.count * (self.outstanding * self.burst_beats * beat)
        return {
            "port": self.count * beat * self.clock_hz,
            "outstanding": waiting / round_trip * self.clock_hz,
            "DDR": DDR_BYTES_PER_SECOND,
        }

    @property
    def bytes_per_second(self) -> float:
        """The least of `limits`."""
        return min(self.limits.values())

    @property
    def limited_by(self) -> str:
        """Which of `limits` it is."""
        return min(self.limits, key=self.limits.__getitem__)

    def move(self, nbytes: int, *, label: str = "") -> Duration:
        """Return the time to move bytes: the latency once, then the rate.

        Parameters
        ----------
        nbytes : int
            Over all ports together.
        label : str
            For a chart.

        Returns
        -------
        Duration
            Of kind ``model``, part ``transfer``.
        """
        if nbytes < 0:
            raise ValueError(f"nbytes is {nbytes}; expected at least 0")
        seconds = nbytes / self.bytes_per_second
        if nbytes:
            seconds += LATENCY_CYCLES / self.clock_hz
        return Duration(seconds, "model", label, clock_hz=self.clock_hz, part="transfer")

    def cycles(self, nbytes: int) -> int:
        """Return the cycles of `move`, rounded up."""
        return ceil(self.move(nbytes).seconds * self.clock_hz - 1e-9)


@dataclass(frozen=True)
class Roof:
    """A line that points of a roofline cannot be above.

    Parameters
    ----------
    label : str
        What limits.
    operations_per_second : float or None
        A horizontal roof.
    bytes_per_second : float or None
        A slope: operations a second = this x operations a byte.
    provenance : str
        Where the number comes from.
    hard : bool
        Of the board as a whole; otherwise of designs with such ports or such an array only.
    """

    label: str
    operations_per_second: float | None = None
    bytes_per_second: float | None = None
    provenance: str = "model"
    hard: bool = True

    def __post_init__(self) -> None:
        if (self.operations_per_second is None) == (self.bytes_per_second is None):
            raise ValueError(
                f"roof {self.label!r} needs either operations_per_second or bytes_per_second"
            )

    def at(self, intensity: float) -> float:
        """Return its height, in operations a second, at an intensity in operations a byte."""
        if self.operations_per_second is not None:
            return self.operations_per_second
        assert self.bytes_per_second is not None
        return self.bytes_per_second * intensity


def compute_roof(
    operations_per_cycle: float, clock_hz: float = FCLK_HZ, label: str = "compute"
) -> Roof:
    """Return the roof of an array that does so many operations in a cycle (1 MAC is 2)."""
    text = f"{operations_per_cycle:g} operations a cycle at {clock_hz / 1e6:g} MHz"
    return Roof(label, operations_per_second=operations_per_cycle * clock_hz, provenance=text)


def memory_roofs(*ports: tuple[str, Ports]) -> tuple[Roof, ...]:
    """Return the slopes of named sets of ports, which limit who uses them, and that of DDR.

    Parameters
    ----------
    *ports : tuple of (str, Ports)
        A label and how the kernel reaches DDR; the slope is what its ports alone allow.
    """
    slopes = []
    for label, way in ports:
        rate = min(way.limits["port"], way.limits["outstanding"])
        text = f"{way.count} x {way.width_bits} bit at {way.clock_hz / 1e6:g} MHz"
        slopes.append(Roof(label, bytes_per_second=rate, provenance=text, hard=False))
    text = f"16 bit x 1050 MT/s x {DDR_EFFICIENCY:.0%} [UG585]"
    return (*slopes, Roof("DDR", bytes_per_second=DDR_BYTES_PER_SECOND, provenance=text))


def attainable(intensity: float, *roofs: Roof) -> float:
    """Return the operations a second that the roofs allow at an intensity.

    Parameters
    ----------
    intensity : float
        Operations for each byte moved to or from DDR.
    *roofs : Roof
        At least one.
    """
    if not roofs or not intensity > 0:
        raise ValueError(
            f"intensity is {intensity} with {len(roofs)} roofs; expected a positive one and a roof"
        )
    return min(roof.at(intensity) for roof in roofs)


def call_seconds(registers: int, *, way: str = "array") -> float:
    """Return what the host pays to start a kernel once and see it end, without its run.

    Parameters
    ----------
    registers : int
        32-bit words of arguments to write.
    way : {"array", "python", "c"}
        A slice of ``mmio.array``, as the drivers here do it (Python's share of a run, then a bus
        access a word); ``ip.write`` for each; C.
    """
    ways = {
        "array": PYTHON_RUN_S + registers * C_ACCESS_S,
        "python": (registers + 1) * PYTHON_WRITE_S + PYTHON_RUN_S,
        "c": (registers + 2) * C_ACCESS_S,
    }
    if way not in ways or registers < 0:
        raise ValueError(
            f"way is {way!r} with {registers} registers; expected {', '.join(ways)} and at least 0"
        )
    return ways[way]


def cpu(operations: float, nbytes: float, *, label: str = "Cortex-A9, model") -> Duration:
    """Return the time one core needs at best: its arithmetic or its memory, whichever is longer.

    Parameters
    ----------
    operations : float
        Floating-point operations; a multiply-accumulate is 2.
    nbytes : float
        Read from and written to DDR.
    label : str
        For a chart.

    Returns
    -------
    Duration
        Of kind ``model`` at the CPU's clock: a bound, since no real program reaches it.
    """
    seconds = max(operations / 2 / CPU_MACS_PER_SECOND, nbytes / CPU_STREAM_BYTES_PER_SECOND)
    return Duration(seconds, "model", label, clock_hz=CPU_HZ)
