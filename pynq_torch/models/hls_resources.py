"""What a kernel takes of the PL, from the operators and memories that it is made of: a model.

``"resources"`` of a ``description.json`` counts components; each costs what synthesis reports say.
The numbers of a component are those of Vivado HLS 2019.2 and Vitis HLS 2021.2 and 2022.1 for the
xc7z020 at 10 ns, read in ``*_csynth.rpt`` files that are public (`Component.seen`); where none
shows a component, it is an estimate from the vendor's documents and says so. A ``csynth.xml`` of
the kernel itself replaces the model: see `pynq_torch.models.evidence`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from pynq_torch.errors import InterfaceError

__all__ = ["AVAILABLE", "COMPONENTS", "Component", "Resources", "estimate", "itemised"]

#: xc7z020: DS190, table "Zynq-7000 SoC family". A BRAM36 is two of 18 Kbit.
AVAILABLE: Mapping[str, int] = {"BRAM_18K": 280, "DSP": 220, "FF": 106_400, "LUT": 53_200}
#: A BRAM of 18 Kbit holds 512 words of 36 bits; 4 of them are parity, which plain data leaves
#: unused [UG473].
BRAM_BYTES = 2048
#: Up to this size HLS makes a memory of LUTs: a RAM64M, four LUTs, holds 64 words of 3 bits
#: [UG474]; 1024 bits is the limit of its automatic choice [UG1399, "bind_storage"].
LUTRAM_BYTES = 128


@dataclass(frozen=True)
class Component:
    """What one operator or interface costs.

    Parameters
    ----------
    dsp, ff, lut, bram : int
        DSP48E1, flip-flops, LUTs, BRAMs of 18 Kbit.
    source : str
        Where the numbers come from.
    seen : bool
        Read in a synthesis report for this part; otherwise an estimate.
    """

    dsp: int
    ff: int
    lut: int
    bram: int
    source: str
    seen: bool


_REPORT = "csynth reports, xc7z020 at 10 ns: "
_PG060 = "estimate from PG060, floating-point operator: "

#: By the keys of ``"resources"``.
COMPONENTS: Mapping[str, Component] = {
    # float32 arithmetic, one result a cycle
    "fadd": Component(2, 205, 390, 0, _REPORT + "fadd_32ns_32ns_32_5_full_dsp", True),
    "fmul": Component(3, 143, 321, 0, _REPORT + "fmul_32ns_32ns_32_4_max_dsp", True),
    "fsqrt": Component(0, 405, 615, 0, _REPORT + "fsqrt_32ns_32ns_32_16", True),
    "fcmp": Component(0, 66, 239, 0, _REPORT + "fcmp_32ns_32ns_1_2, the release that shows it",
                      True),
    "fdiv": Component(0, 761, 994, 0, _PG060 + "division of 16 stages in LUTs", False),
    "fexp": Component(7, 277, 924, 0, _PG060 + "exponential, full DSP usage", False),
    "flog": Component(13, 358, 1246, 0, _PG060 + "logarithm, full DSP usage", False),
    "fpow": Component(29, 1100, 2900, 0, _PG060 + "a log, a double-width product, an exp", False),
    # integers
    "imul32": Component(3, 165, 49, 0, "csynth reports, mul_32s_32s_32_2, three DSPs", True),
    "imul16": Component(1, 0, 0, 0, "UG479: a product of 25 x 18 bits a DSP48E1", False),
    "idiv32": Component(0, 394, 238, 0, "estimate: sdiv_32 of 36 steps, one bit a step", False),
    "int8_mul": Component(1, 0, 0, 0, "UG479: a product of 25 x 18 bits a DSP48E1", False),
    "int8_mul_pair": Component(1, 0, 20, 0,
                               "UG479: two int8 products a DSP48E1 by the pre-adder", False),
    "int8_mul_lut": Component(0, 16, 71, 0,
                              "estimate: 55 by hand to 160 logic cells by yosys synth_xilinx",
                              False),
    # interfaces, at most 32 bits wide unless said
    "m_axi_read": Component(0, 359, 659, 1,
                            _REPORT + "half of a port that reads and writes: FF and LUT of 2022.1, "
                            "BRAM of 2019.2, each the greater", True),
    "m_axi_write": Component(0, 359, 659, 1, "as m_axi_read", True),
    "m_axi_read64": Component(0, 423, 723, 2,
                              "m_axi_read with a data path and a FIFO of twice the width", False),
    "m_axi_write64": Component(0, 423, 723, 2, "as m_axi_read64", False),
    "axis": Component(0, 70, 40, 0, "estimate: a register slice of two beats", False),
    "registers": Component(0, 36, 64, 0,
                           _REPORT + "control_s_axi with 1 to 8 words is 36 FF and 40 LUT, and "
                           "these a word", True),
    "lut": Component(0, 0, 1, 0, "counted by the author: control and address arithmetic", False),
    "ff": Component(0, 1, 0, 0, "counted by the author: pipeline registers", False),
}  # fmt: skip
#: An s_axilite slave before its first word: see ``registers``.
CONTROL = Component(0, 36, 40, 0, _REPORT + "control_s_axi without data", True)


@dataclass(frozen=True)
class Resources:
    """What a kernel takes of the PL.

    Parameters
    ----------
    bram_18k, dsp, ff, lut : int
        Counts.
    kind : {"model", "csynth", "yosys"}
        From components, the estimate of the vendor's synthesis for this kernel, or its RTL mapped
        to cells.
    source : str
        What says so.
    """

    bram_18k: int
    dsp: int
    ff: int
    lut: int
    kind: str = "model"
    source: str = ""

    @property
    def used(self) -> dict[str, int]:
        """By the names of a synthesis report: ``BRAM_18K``, ``DSP``, ``FF``, ``LUT``."""
        return {"BRAM_18K": self.bram_18k, "DSP": self.dsp, "FF": self.ff, "LUT": self.lut}

    def utilisation(self) -> dict[str, float]:
        """Return the share of each resource of the xc7z020, 0 to 1 and more."""
        return {name: count / AVAILABLE[name] for name, count in self.used.items()}

    def times(self, count: int) -> Resources:
        """Return what several compute units take together."""
        bram, dsp, ff, lut = (n * count for n in self.used.values())
        return Resources(bram, dsp, ff, lut, self.kind, f"{count} x {self.source}")


def itemised(components: Mapping[str, Any]) -> list[tuple[str, int, Component]]:
    """Return each component with its count and the cost of one.

    Parameters
    ----------
    components : mapping
        ``"resources"`` of a description: counts by the keys of `COMPONENTS`, and ``"buffers"``,
        a list of [bytes, banks]: a memory split into so many that are read at the same time. A
        ping-pong buffer of a dataflow region is two of each.

    Raises
    ------
    InterfaceError
        A key is unknown or a count is no whole number of at least 0.
    """
    rows = []
    for key, count in components.items():
        if key == "buffers":
            rows += [
                (f"buffer of {b} bytes in {n} banks", 1, _buffer(b, n)) for b, n in _sizes(count)
            ]
            continue
        if key not in COMPONENTS:
            known = ", ".join((*COMPONENTS, "buffers"))
            raise InterfaceError(f"resources: {key!r} is no component; there are {known}")
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise InterfaceError(f"resources: {key} is {count!r}; expected a whole number")
        rows.append((key, count, COMPONENTS[key]))
    if components.get("registers"):
        rows.append(("s_axilite slave", 1, CONTROL))
    return rows


def _sizes(buffers: Any) -> Sequence[tuple[int, int]]:
    if not isinstance(buffers, Sequence) or isinstance(buffers, str):
        raise InterfaceError(f"resources: buffers is {buffers!r}; expected [[bytes, banks], ...]")
    for item in buffers:
        if (
            not isinstance(item, Sequence)
            or len(item) != 2
            or not all(isinstance(n, int) and n > 0 for n in item)
        ):
            raise InterfaceError(f"resources: a buffer is {item!r}; expected [bytes, banks]")
    return [(nbytes, banks) for nbytes, banks in buffers]


def _buffer(nbytes: int, banks: int) -> Component:
    each = ceil(nbytes / banks)
    if each <= LUTRAM_BYTES:
        return Component(0, 0, ceil(each * 8 / 64) * 4 // 3 * banks, 0, "LUTRAM [UG474]", False)
    return Component(0, 0, 0, ceil(each / BRAM_BYTES) * banks, "RAMB18E1 [UG473]", False)


def estimate(components: Mapping[str, Any]) -> Resources:
    """Return what components take together.

    Parameters
    ----------
    components : mapping
        See `itemised`.
    """
    rows = itemised(components)
    bram, dsp, ff, lut = (
        sum(count * getattr(one, part) for _, count, one in rows)
        for part in ("bram", "dsp", "ff", "lut")
    )
    return Resources(bram, dsp, ff, lut, "model", "components of description.json")
