"""A part and a clock, and what they leave of a cycle."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Target", "target_of"]


@dataclass(frozen=True)
class Target:
    """A part and a clock: ns that a schedule may use of a cycle, and how fast its logic is."""

    clock: float
    budget: float
    speed: float
    tool: str
    #: Cycles after which an m_axi port is expected to answer.
    bus_latency: int = 0
    #: The tool's release, as 2024.2, or its year; 0 where it is not known.
    release: float = 0.0
    #: Whether the tool may cut arrays by itself (config_array_partition -throughput_driven).
    divides: bool = True
    #: Of UltraScale+ parts: whether the grade is above -1, and whether it is Zynq or Kria.
    is_fast: bool = False
    is_small: bool = False
    #: Whether it is of a grade for low voltage, such as -2LV.
    is_low: bool = False

    @property
    def unrolls_late(self) -> bool:
        """Whether loops in pipelines that it makes by itself are unrolled behind cutting arrays.

        Since 2023.2 its first compiler makes those pipelines ("[HLS 214-376] automatically set the
        pipeline for Loop"), as it does those that a directive asks for.
        """
        return 0 < self.release < 2023.2

    @property
    def makes_modules(self) -> bool:
        """Whether each loop that is a pipeline and each copy is a module of its own, as since 2021.

        None of the 68 reports of 2020 at hand that have pipelines has such a module; of 2021.1 on
        most have where there is more than one loop (three have not).
        """
        return self.tool == "vitis" and not 0 < self.release < _MODULES

    @property
    def has_ultra_ram(self) -> bool:
        """Whether the part is of the UltraScale+ families."""
        return self.speed < _ULTRASCALE


#: The first release of Vitis HLS that makes modules of loops.
_MODULES = 2021.1
#: Of Kintex-7 and Virtex-7 of grade -1; what is faster than the other is UltraScale or newer.
_KINTEX_7, _ULTRASCALE = 0.75, 0.495
#: Zynq UltraScale+ and Kria, whose floating-point cores are slower than those of Virtex.
_SMALL = re.compile(r"x[aqc]r?zu|xck\d")
#: Delay of logic against a 7-series part of grade -1, by family, in grade -1 and above it:
#: commercial, automotive and defence parts (xc, xa, xq) are of the same silicon.
_SPEED = (
    (re.compile(r"x[aqc]r?(?:[vk]u\d+p|v[cehmp]\d)|xcu\d"), 0.45, 0.36),
    (_SMALL, 0.48, 0.41),
    (re.compile(r"x[aqc]r?[vk]u"), 0.5, 0.5),
    (re.compile(r"x[aqc]7[vk]"), _KINTEX_7, 0.8 * _KINTEX_7),
    (re.compile(""), 1.0, 0.8),
)
#: Speed grades above -1, with the letters of a temperature range: -2, -2L, -2I.
_FAST = re.compile(r"-[23][a-z]{0,2}(?:-|$)")
_LOW = re.compile(r"-2lv")


def target_of(
    clock: float, part: str, tool: str, margin: float | None = None, release: float = 0.0
) -> Target:
    """Return the target for a clock period in ns; the tool keeps a part of it as margin."""
    if margin is None:
        margin = clock * (0.27 if tool == "vitis" else 0.125)
    name = part.lower()
    is_fast = _FAST.search(name) is not None
    slow, fast = next(speeds for family, *speeds in _SPEED if family.match(name))
    is_small = _SMALL.match(name) is not None
    return Target(
        clock, clock - margin, fast if is_fast else slow, tool, release=release,
        is_fast=is_fast, is_small=is_small, is_low=is_fast and _LOW.search(name) is not None,
    )  # fmt: skip
