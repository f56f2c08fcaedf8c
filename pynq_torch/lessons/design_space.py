"""Sizes of the gemm's RTL: what each takes of the PL, and how many cycles it needs.

A `Design` is a set of the RTL's parameters. `simulate` builds it and counts the cycles of a product
on board ``rtl``; `area` counts its cells by yosys, which takes minutes. Results of both are
committed beside the RTL (`results`), with the hashes of what they were made from.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pynq_torch.errors import RtlError
from pynq_torch.hls import cache
from pynq_torch.models.hls_resources import Resources
from pynq_torch.models.rtl_resources import Count, count, counted, hashes, rtl_sources
from pynq_torch.paths import HW, KERNELS, to_read, to_write
from pynq_torch.plot.design import pareto
from pynq_torch.views import interactive

__all__ = [
    "DESIGNS",
    "SIZES",
    "Design",
    "Result",
    "area",
    "pareto",
    "record",
    "results",
    "simulate",
    "stale",
    "sweep",
]

_KERNEL = KERNELS / "gemm"
_FILE = _KERNEL / "rtl" / "design_space.json"
#: Products of a row of the array that fit into the part's DSPs, two in each; eight DSPs are left
#: for scaling, and twenty to the placer. What is beyond is made of LUTs.
_DSP_PRODUCTS = 384
#: m = n = k of the products that are counted.
SIZES = (64, 256)
MEMORY = "pynq-z2"


@dataclass(frozen=True)
class Design:
    """An array of rows x cols products a cycle, behind memory ports of some width.

    Parameters
    ----------
    rows, cols : int
        Size of the array; powers of two, `cols` at least 8.
    port_bits : int
        Width of each of the three memory ports: 32 or 64, as wide as an HP port.
    """

    rows: int
    cols: int
    port_bits: int = 64

    def __post_init__(self) -> None:
        good = self.rows in (4, 8, 16) and self.cols in (8, 16, 32) and self.port_bits in (32, 64)
        if not good:
            raise ValueError(
                f"{self} cannot be built; "
                "expected rows 4, 8 or 16, cols 8, 16 or 32, port_bits 32 or 64"
            )

    def __str__(self) -> str:
        return f"{self.rows} x {self.cols}, {self.port_bits} bit"

    @property
    def macs(self) -> int:
        """Products a cycle."""
        return self.rows * self.cols

    @property
    def parameters(self) -> dict[str, int]:
        """Of the RTL's top module; what is not named keeps its default."""
        return {
            "ROWS": self.rows,
            "COLS": self.cols,
            "DSP_ROWS": min(self.rows, _DSP_PRODUCTS // self.cols),
            "DATA_WIDTH": self.port_bits,
        }


#: The kernel's own parameters.
SHIPPED = Design(16, 32)
#: The points of the sweep.
DESIGNS = (Design(4, 8), Design(8, 8), Design(8, 16), Design(16, 16), SHIPPED)


@dataclass(frozen=True)
class Result:
    """What was counted of a design.

    Parameters
    ----------
    design : Design
        Its parameters.
    cycles : dict of int to int
        Size of a product (m = n = k, int32 results) -> cycles in RTL.
    resources : Resources
        Of kind ``"yosys"``.
    """

    design: Design
    cycles: dict[int, int]
    resources: Resources

    @property
    def share(self) -> float:
        """The share of the part's scarcest resource, of 1."""
        return max(self.resources.utilisation().values())

    def macs_per_cycle(self, size: int) -> float:
        """Return the products a cycle that are sustained on a product of this size."""
        return size**3 / self.cycles[size]


# ---- counting ------------------------------------------------------------------------------------


def area(design: Design) -> Resources:
    """Count the cells of a design by yosys; minutes for a large one, kept by content."""
    return _count(design).resources


def _count(design: Design) -> Count:
    # The kernel as it ships has been counted for the list of kernels, without parameters.
    parameters = {} if design == SHIPPED else design.parameters
    return count(rtl_sources(_KERNEL / "rtl"), "gemm", parameters)


def simulate(design: Design, *sizes: int, memory: str = MEMORY, seed: int = 0) -> dict[int, int]:
    """Build a design and count the cycles of products on board ``rtl``.

    Every product is compared with torch's. The board that was in use is replaced.

    Parameters
    ----------
    design : Design
        Built with Verilator where it has not been: some seconds to a minute.
    *sizes : int
        m = n = k; default: `SIZES`.
    memory : {"pynq-z2", "ideal"}
        The memory model.
    seed : int
        Seed of the operands.

    Returns
    -------
    dict of int to int
        Size -> cycles.

    Raises
    ------
    RtlError
        A product is wrong.
    """
    import pynq_torch

    # Always the same folder for a design: builds are kept by the paths of their sources, too.
    name = f"{design.rows}x{design.cols}-{design.port_bits}"
    with cache.locked(f"gemm-{name}"):
        folder = cache.cache_dir() / "designs" / name
        shutil.rmtree(folder, ignore_errors=True)
        bit = _variant(folder, design)
        board = pynq_torch.use_board("rtl", memory=memory, kernels=[folder / "hw" / "kernels"])
        found = _products(design, pynq_torch.load(bit), sizes or SIZES, seed)
        board.close()
    return found


def _products(design: Design, overlay: Any, sizes: Sequence[int], seed: int) -> dict[int, int]:
    """Return the cycles of products of these sizes, each compared with torch's."""
    import torch

    from pynq_torch.torch_device.exact import int_mm

    generator = torch.Generator().manual_seed(seed)
    found = {}
    for size in sizes:
        a, b = (
            torch.randint(-128, 128, (size, size), generator=generator, dtype=torch.int8)
            for _ in range(2)
        )
        if not torch.equal(overlay.gemm(a, b, timeout_s=300.0), int_mm(a, b)):
            raise RtlError(f"{design}: the product of {size}^3 differs from torch's", "gemm")
        found[size] = int(overlay.device.cus["gemm_0"].last_run.cycles)
    return found


def sweep(designs: Sequence[Design], *sizes: int) -> dict[Design, dict[int, int]]:
    """Simulate designs one after the other, with a progress bar.

    Parameters
    ----------
    designs : sequence of Design
        Each is built where it has not been.
    *sizes : int
        As for `simulate`.

    Returns
    -------
    dict of Design to dict
        Size -> cycles, of each design.
    """
    if interactive():
        from tqdm.auto import tqdm
    else:  # a bar of text: one that is kept in a notebook has no kernel to move it
        from tqdm import tqdm
    bar = tqdm(designs, unit="design")
    found = {}
    for design in bar:
        bar.set_description(str(design))
        found[design] = simulate(design, *sizes)
    return found


def _variant(root: Path, design: Design) -> Path:
    """Write a copy of the gemm with other parameters, and an overlay of it; return its ``.bit``."""
    from pynq_torch.hls.design.build import build_overlay

    for part in ("rtl", "include", "kernels/gemm", "overlays/gemm"):
        shutil.copytree(HW / part, root / "hw" / part)
    kernel = root / "hw" / "kernels" / "gemm"
    for name, value in design.parameters.items():
        _replace(kernel / "rtl" / "gemm.sv", rf"(parameter int unsigned {name}\s*= )\d+", value)
    _replace(kernel / "gemm.hpp", r"(constexpr int PORT_BITS = )\d+", design.port_bits)
    build_overlay("gemm", root=root, out=root / "out")
    return next((root / "out").rglob("*.bit"))


def _replace(path: Path, pattern: str, value: int) -> None:
    text, found = re.subn(pattern, rf"\g<1>{value}", path.read_text(encoding="utf-8"), count=1)
    if not found:
        raise RtlError(f"{path.name} has no {pattern!r}; the design cannot be changed", "gemm")
    path.write_text(text, encoding="utf-8")


# ---- results that are committed ------------------------------------------------------------------


def record(designs: Iterable[Design] = DESIGNS) -> Path:
    """Count designs, cells and cycles, and write the results beside the RTL.

    What has not changed since it was counted is found in the cache.
    """
    from importlib.metadata import version

    points: list[dict[str, Any]] = []
    for design in designs:
        found = _count(design)
        points.append({**asdict(design), "cycles": simulate(design), "cells": found.cells})
    result = {
        "yosys": found.tool,
        "verilator": f"verilator {version('verilator')}",
        "memory": MEMORY,
        "sources": hashes(rtl_sources(_KERNEL / "rtl")),
        "designs": points,
    }
    path = to_write(_FILE)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path


def results() -> tuple[Result, ...]:
    """Return the committed results, in the order of `DESIGNS`."""
    data = json.loads(to_read(_FILE).read_text(encoding="utf-8"))
    return tuple(
        Result(
            Design(point["rows"], point["cols"], point["port_bits"]),
            {int(size): cycles for size, cycles in point["cycles"].items()},
            counted(point["cells"], data["yosys"]),
        )
        for point in data["designs"]
    )


def stale() -> list[str]:
    """Return the files by which the RTL differs from what the committed results were made from."""
    now = hashes(rtl_sources(_KERNEL / "rtl"))
    then = json.loads(to_read(_FILE).read_text(encoding="utf-8"))["sources"]
    return sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))
