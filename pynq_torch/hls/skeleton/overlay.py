"""The description of a new overlay: compute units, memory ports, DMAs, interrupts."""

from __future__ import annotations

import itertools
import numbers
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pynq_torch.errors import HandoffError

from ..design.kernel_cell import stream_ports
from ..design.netlist import CONCAT, PERIPHERY, PS, RESET
from ..design.part import MEMORY_PORTS, clock_dividers
from ..generate import fill
from .files import TEMPLATES, write

if TYPE_CHECKING:
    from ..interface import Interface

__all__ = ["new_overlay"]

_FOLDER = re.compile(r"\w[\w-]*", re.ASCII)
#: Of every design.
_CELLS = (PS, RESET, PERIPHERY, CONCAT)


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
        A name or the clock cannot be, a kernel has no source there, or the file exists already.
        Nothing was written.
    """
    root = Path(root)
    _check(name, units)
    clock_dividers(clock_mhz if isinstance(clock_mhz, numbers.Real) else _no_clock(clock_mhz))
    places = itertools.cycle(MEMORY_PORTS)
    found = {unit: _interface(root, kernel) for unit, kernel in units.items()}
    ports = {
        unit: {master: next(places) for master in interface.axi_bundles}
        for unit, interface in found.items()
    }
    dmas = [dma for unit, interface in found.items() for dma in _dmas(unit, interface, places)]
    _check_free(units, len(dmas))
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


def _check(name: str, units: Mapping[str, str]) -> None:
    """Raise where names would lead out of the folder or fail later, far from what was written."""
    if not isinstance(name, str) or not _FOLDER.fullmatch(name):
        raise HandoffError(
            f"{name!r} is no name of an overlay; expected letters, digits, _ and -, as in lab_1"
        )
    if not isinstance(units, Mapping) or not units:
        raise HandoffError(
            f"{name}: the compute units are {units!r}; expected one or more, with their kernels: "
            '{"fir_0": "fir"}'
        )
    for word in (*units, *units.values()):
        if not isinstance(word, str) or not (word.isidentifier() and word.isascii()):
            raise HandoffError(
                f"{name}: {word!r} is no name of a compute unit or a kernel; expected letters, "
                "digits and _, no digit first"
            )


def _no_clock(value: object) -> NoReturn:
    raise HandoffError(f"clock_mhz is {value!r}; expected a number of MHz, as in 100")


def _check_free(units: Mapping[str, str], dmas: int) -> None:
    taken = {"axi_intc_0", *_CELLS, *(f"axi_dma_{number}" for number in range(dmas))}
    for unit in taken & units.keys():
        raise HandoffError(
            f"{unit} is the name of another part of this overlay; call the compute unit otherwise, "
            f"as in {units[unit]}_0"
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
