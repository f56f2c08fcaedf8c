"""The description of a new overlay: compute units, memory ports, DMAs, interrupts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pynq_torch.errors import HandoffError

from ..design.kernel_cell import stream_ports
from ..design.part import MEMORY_PORTS
from ..generate import fill
from .files import TEMPLATES, write

if TYPE_CHECKING:
    from ..interface import Interface

__all__ = ["new_overlay"]


def new_overlay(
    name: str, root: Path | str, units: Mapping[str, str], *, clock_mhz: int = 100
) -> Path:
    """Write the description of an overlay with compute units of kernels of your own.

    Parameters
    ----------
    name : str
        The overlay.
    root : path
        Your project: kernels are looked for in its ``hw/kernels``, the description becomes
        ``hw/overlays/<name>/overlay.toml``.
    units : mapping of str to str
        Compute unit -> kernel, e.g. ``{"hypot_f32_0": "hypot_f32"}``. Their masters go to the four
        memory ports in turn; their interrupts to an AXI interrupt controller. A stream gets an AXI
        DMA; an input and an output of a unit share one where they are equally wide.
    clock_mhz : int
        Of the PL.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    HandoffError
        A kernel has no source there, or the file exists already.
    """
    root = Path(root)
    places = itertools.cycle(MEMORY_PORTS)
    found = {unit: _interface(root, kernel) for unit, kernel in units.items()}
    ports = {
        unit: {master: next(places) for master in interface.axi_bundles}
        for unit, interface in found.items()
    }
    dmas = [dma for unit, interface in found.items() for dma in _dmas(unit, interface, places)]
    # A kernel without control registers (ap_ctrl_none) has no interrupt.
    interrupts = [f"{u}.interrupt" for u, one in found.items() if one.control_bundle is not None]
    for number, dma in enumerate(dmas):
        ends = (("feeds", "mm2s"), ("drains", "s2mm"))
        interrupts += [f"axi_dma_{number}.{name}_introut" for end, name in ends if dma[end]]
    values = {
        "units": dict(units), "ports": ports, "dmas": dmas, "interrupts": interrupts,
        "clock_mhz": clock_mhz,
    }  # fmt: skip
    folder = root / "hw" / "overlays" / name
    return (
        write(folder, {"overlay.toml": fill("overlay.toml", [TEMPLATES], values)}) / "overlay.toml"
    )


def _interface(root: Path, kernel: str) -> Interface:
    from ..parse import read_interface

    source = root / "hw" / "kernels" / kernel / f"{kernel}.cpp"
    if not source.is_file():
        raise HandoffError(
            f"there is no {source.relative_to(root)} in {root}; hls.new_kernel (hls new) writes one"
        )
    return read_interface(source, kernel)


def _dmas(unit: str, interface: Interface, places: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield for each DMA of a unit what it feeds and what it drains; both are equally wide."""
    fed, drained = (
        [
            (name, 8 * argument.axis.data_bytes)
            for argument in interface.arguments
            if argument.axis is not None and argument.direction == direction
            for name in stream_ports(argument, interface.tool)
        ]
        for direction in ("in", "out")
    )
    for name, bits in fed:
        match = next((port for port in drained if port[1] == bits), None)
        if match is not None:
            drained.remove(match)
        yield _dma(unit, name, match[0] if match else "", bits, places)
    for name, bits in drained:
        yield _dma(unit, "", name, bits, places)


def _dma(unit: str, feeds: str, drains: str, bits: int, places: Iterator[str]) -> dict[str, Any]:
    return {
        "unit": unit, "feeds": feeds, "drains": drains, "bits": bits,
        "read": next(places) if feeds else "", "write": next(places) if drains else "",
    }  # fmt: skip
