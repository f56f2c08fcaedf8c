"""The first files of a kernel of your own: what every kernel has, so that you write what yours has.

They are ordinary files, meant to be read and changed; nothing writes them a second time.
"""

from __future__ import annotations

import itertools
import json
import keyword
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pynq_torch.errors import HandoffError, KernelError

from .design.kernel_cell import stream_ports
from .design.part import MEMORY_PORTS
from .generate import fill

if TYPE_CHECKING:
    from .interface import Interface

__all__ = ["new_kernel", "new_overlay"]

_TEMPLATES = Path(__file__).resolve().parent / "templates" / "kernel"
#: Words with a meaning in C++ or in the files below: g++ would complain far from the name.
_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool case catch char char16_t char32_t class
    compl const const_cast constexpr decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new
    noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual
    void volatile wchar_t while xor xor_eq main n std
"""
_TAKEN = frozenset(_WORDS.split())


def new_kernel(
    name: str,
    root: Path | str,
    *,
    inputs: Sequence[str],
    formula: str,
    golden: str = "",
    output: str = "out",
) -> Path:
    """Write the folder of a kernel that computes a formula of float32 vectors.

    Parameters
    ----------
    name : str
        The kernel: folder, file and top function, e.g. ``"hypot_f32"``.
    root : path
        Your project; the folder becomes ``hw/kernels/<name>`` in it.
    inputs : sequence of str
        Names of the vectors that are read.
    formula : str
        C++ over their elements, e.g. ``"a + b"``. Becomes ``<name>_of`` in the header.
    golden : str, optional
        C++ over the same names as ``double``, for the testbench; default: the formula.
    output : str
        Name of the vector that is written.

    Returns
    -------
    pathlib.Path
        The folder, with ``<name>.hpp``, ``<name>.cpp``, ``<name>_tb.cpp`` and
        ``description.json``.

    Raises
    ------
    KernelError
        A name is not valid in C++, or a file exists already. Nothing was written.
    """
    _check_names(name, inputs, output)
    values = {
        "name": name,
        "inputs": list(inputs),
        "output": output,
        "formula": formula,
        "golden": golden or formula,
    }
    files = {
        template.replace("kernel", name): fill(template, [_TEMPLATES], values)
        for template in ("kernel.hpp", "kernel.cpp", "kernel_tb.cpp")
    }
    files["description.json"] = json.dumps(_description(name, inputs), indent=2) + "\n"
    return _write(Path(root) / "hw" / "kernels" / name, files)


def _check_names(name: str, inputs: Sequence[str], output: str) -> None:
    for word in (name, *inputs, output):
        usable = isinstance(word, str) and word.isidentifier() and word.isascii()
        if not usable or keyword.iskeyword(word) or word in _TAKEN:
            raise KernelError(f"{word!r} is no name for an argument or a kernel in C++", name)
    if not inputs or len({*inputs, output}) != len(inputs) + 1:
        raise KernelError(
            f"{name}: inputs {list(inputs)} and output {output!r}; expected one input or more, and "
            "names that differ",
            name,
        )


def _description(name: str, inputs: Sequence[str]) -> dict[str, Any]:
    masters = len(inputs)
    return {
        "name": name,
        "summary": "Says here in a sentence what it does.",
        "reference": " + ".join(inputs),
        "operators": [],
        "latency": {
            "kind": "model",
            "cycles": "n + 100",
            "symbols": {"n": "elements of each vector"},
            "example": {"n": 65536},
            "assumptions": "II=1; 50 cycles until DDR answers, 50 stages of the formula.",
        },
        "resources": {
            "m_axi_read": masters,
            "m_axi_write": 1,
            "registers": 2 * (masters + 1) + 5,
        },
    }


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
    interrupts = [f"{unit}.interrupt" for unit in units]
    for number, dma in enumerate(dmas):
        ends = (("feeds", "mm2s"), ("drains", "s2mm"))
        interrupts += [f"axi_dma_{number}.{name}_introut" for end, name in ends if dma[end]]
    values = {
        "units": dict(units), "ports": ports, "dmas": dmas, "interrupts": interrupts,
        "clock_mhz": clock_mhz,
    }  # fmt: skip
    folder = root / "hw" / "overlays" / name
    return (
        _write(folder, {"overlay.toml": fill("overlay.toml", [_TEMPLATES], values)})
        / "overlay.toml"
    )


def _interface(root: Path, kernel: str) -> Interface:
    from .parse import read_interface

    source = root / "hw" / "kernels" / kernel / f"{kernel}.cpp"
    if not source.is_file():
        raise HandoffError(
            f"there is no {source.relative_to(root)} in {root}; hls.new_kernel writes one"
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


def _write(folder: Path, files: Mapping[str, str]) -> Path:
    there = [file for file in files if (folder / file).exists()]
    if there:
        raise HandoffError(
            f"{folder} has {', '.join(there)} already; these are your files, so nothing was "
            "written. Take another name, or delete them"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    return folder
