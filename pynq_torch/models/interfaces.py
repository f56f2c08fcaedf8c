"""What a call costs the host of a PYNQ-Z2, by the interface of the kernel: a model.

The kernels are those of overlay ``interfaces``, one function behind five interfaces. Counts follow
from what their drivers write and call; times from the constants of `pynq_z2`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pynq_torch.timing import Duration, model_cycles

from . import pynq_z2

__all__ = ["WAYS", "Cost", "cost"]

#: Name of a way -> kernel, 32-bit words of its scalar arguments with the gaps between them, calls
#: of `pynq.lib.DMA` for a packet, other accesses (interrupts: IER, GIE, ISR read and written).
WAYS: dict[str, tuple[str, int, int, int]] = {
    "registers": ("affine_lite", 5, 0, 0),
    "one DMA": ("affine_dma", 3, 2, 0),
    "two DMAs": ("affine_dmas", 1, 3, 0),
    "m_axi": ("affine_maxi", 11, 0, 0),
    "m_axi, interrupt": ("affine_maxi", 11, 0, 4),
}
#: Elements that the registers of ``affine_lite`` hold, and that a DMA with 23 bits of length moves.
_REGISTERS, _PACKET = 64, (2**23 - 1) // 4


@dataclass(frozen=True)
class Cost:
    """What one call costs.

    Attributes
    ----------
    way : str
        Of `WAYS`.
    elements : int
        float32 values that are computed.
    runs : int
        Starts of the kernel.
    words : int
        32-bit words that the host moves through registers, arguments and data.
    dma_calls : int
        Calls of ``pynq.lib.DMA``.
    host, pl : Duration
        Of kind ``model``: what the host does, and the kernel's own cycles.
    """

    way: str
    elements: int
    runs: int
    words: int
    dma_calls: int
    host: Duration
    pl: Duration

    @property
    def total(self) -> Duration:
        """Host and kernel one after the other: the host waits for the run."""
        seconds = self.host.seconds + self.pl.seconds
        return Duration(seconds, "model", self.way, clock_hz=self.pl.clock_hz)


def cost(way: str, elements: int, clock_hz: float = pynq_z2.FCLK_HZ) -> Cost:
    """Return what a call with so many elements costs.

    Parameters
    ----------
    way : str
        Of `WAYS`.
    elements : int
        At least 1.
    clock_hz : float
        Of the PL.

    Raises
    ------
    ValueError
        There is no such way, or nothing to compute.
    """
    if way not in WAYS or elements < 1:
        raise ValueError(
            f"way is {way!r} with {elements} elements; expected one of {', '.join(WAYS)} and at "
            "least 1"
        )
    kernel, arguments, dma_calls, accesses = WAYS[way]
    capacity = {"registers": _REGISTERS, "one DMA": _PACKET, "two DMAs": _PACKET}.get(way)
    whole, rest = divmod(elements, capacity or elements)
    parts = [capacity or elements] * whole + [rest] * (rest > 0)
    runs = len(parts)
    words = runs * arguments + (2 * elements if way == "registers" else 0)
    host = runs * pynq_z2.call_seconds(0) + words * pynq_z2.C_ACCESS_S
    host += runs * (dma_calls * pynq_z2.DMA_CALL_S + accesses * pynq_z2.PYTHON_WRITE_S)
    cycles = sum(model_cycles(kernel, n=part, beats=part) or 0 for part in parts)
    return Cost(
        way,
        elements,
        runs,
        words,
        runs * dma_calls,
        Duration(host, "model", way, "host of a PYNQ-Z2", clock_hz=clock_hz, part="host"),
        Duration(cycles / clock_hz, "model", way, clock_hz=clock_hz, part="compute"),
    )
