"""Writing ``bitstreams/<overlay>``: image, handoff and manifest, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from pynq_torch.errors import BitstreamError, HandoffError, InterfaceWarning
from pynq_torch.hls import depends
from pynq_torch.hls.interface import Interface
from pynq_torch.paths import ROOT, to_write

from . import part
from .description import FILE_NAME, OverlayDescription, read_description
from .hwh import TOOL_VERSION, write_hwh
from .image import is_simulation_image, write_simulation_image
from .model import Design
from .netlist import elaborate
from .vitis import write_connectivity
from .vivado import write_vivado_tcl

__all__ = [
    "Generated",
    "build_overlay",
    "generate",
    "import_overlay",
    "make_design",
    "overlay_names",
    "sources_of",
    "within",
    "write_folder",
    "write_manifest",
]

SIMULATION, VIVADO, OPEN_TOOLS = "simulation image", "vivado", "open tools"
#: What the manifest of a real bitstream says: nobody has loaded one.
NEVER_RUN = "never run on a board"
#: Raised by hand when the generator's output changes for the same description.
GENERATOR = "pynq_torch.hls.design 1"
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Generated:
    """Everything an overlay's description implies.

    Parameters
    ----------
    design : Design
        The block design.
    hwh, tcl, connectivity : str
        Hardware handoff, Vivado Tcl and v++ connectivity.
    image : bytes
        The simulation image.
    sources : tuple of pathlib.Path
        What it was made from.
    """

    design: Design
    hwh: str
    tcl: str
    connectivity: str
    image: bytes
    sources: tuple[Path, ...]


def overlay_names(root: Path | None = None) -> tuple[str, ...]:
    """Return the overlays that have a description, in alphabetical order.

    Raises
    ------
    HandoffError
        `root` has no folder ``hw/overlays``, or that has no overlays.
    """
    folder = (root or ROOT) / "hw" / "overlays"
    if not folder.is_dir():
        raise HandoffError(
            f"{folder.parent.parent} has no hw/overlays: expected a folder with hw/overlays/NAME/"
            f"{FILE_NAME} and hw/kernels/KERNEL/KERNEL.cpp"
        )
    names = tuple(sorted(path.parent.name for path in folder.glob(f"*/{FILE_NAME}")))
    if not names:
        raise HandoffError(f"{folder} has no overlay: expected a folder in it with an {FILE_NAME}")
    return names


def _kernel_source(root: Path, kernel: str, description: OverlayDescription) -> Path:
    folder = root / "hw" / "kernels" / kernel
    path = folder / f"{kernel}.cpp"
    if path.is_file():
        return path
    what = f"{description.path}: the kernel {kernel!r} has no {path.relative_to(root)}"
    if folder.is_dir():
        raise HandoffError(
            f"{what}, from which its registers and ports are derived. For a kernel that is only "
            "Verilog write one with the same interface: the function's arguments and their "
            "#pragma HLS INTERFACE lines, with an empty body. Or use a .hwh of your own, such as "
            "Vivado's, instead of this command."
        )
    known = sorted(cpp.stem for cpp in folder.parent.glob("*/*.cpp") if cpp.stem == cpp.parent.name)
    raise HandoffError(f"{what}; there are {', '.join(known) or 'none'}")


def sources_of(path: Path) -> tuple[Path, ...]:
    """Return a C++ file and all it includes with quotes, in the order they are met."""
    found: dict[Path, None] = {}
    waiting = [depends.real(path)]
    while waiting:
        current = waiting.pop(0)
        if current in found or not current.is_file():
            continue  # a header found on the include path, such as an HLS one, is no source
        found[current] = None
        text = current.read_text(encoding="utf-8")
        waiting += [depends.real(current.parent / name) for name in _INCLUDE.findall(text)]
    return tuple(found)


def make_design(
    name: str, root: Path | None = None, clock_mhz: float | None = None
) -> tuple[Design, tuple[Path, ...]]:
    """Return the block design of an overlay and the files it came from.

    With `clock_mhz` its PL clock is that one, instead of the description's.
    """
    # libclang loads only when something is generated.
    from pynq_torch.hls.parse import read_interface

    root = root or ROOT
    if name not in overlay_names(root):
        raise HandoffError(
            f"there is no overlay {name!r} in hw/overlays; there are "
            f"{', '.join(overlay_names(root)) or 'none'}"
        )
    description = read_description(root / "hw" / "overlays" / name)
    if clock_mhz is not None:
        description = replace(description, clock_mhz=clock_mhz)
    interfaces: dict[str, Interface] = {}
    sources = [description.path]
    for kernel in dict.fromkeys(item.kernel for item in description.instances if item.kernel):
        source = _kernel_source(root, kernel, description)
        interfaces[kernel] = read_interface(source, kernel)
        for text in interfaces[kernel].warnings:
            warnings.warn(text, InterfaceWarning, stacklevel=2)
        sources += sources_of(source)
    return elaborate(description, interfaces), tuple(dict.fromkeys(sources))


def generate(name: str, root: Path | None = None) -> Generated:
    """Generate everything that follows from the description of overlay `name`.

    Raises
    ------
    HandoffError, InterfaceError
        The description or a kernel does not allow it.
    """
    design, sources = make_design(name, root)
    return Generated(
        design=design,
        hwh=write_hwh(design),
        tcl=write_vivado_tcl(design),
        connectivity=write_connectivity(design),
        image=write_simulation_image(name),
        sources=sources,
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _source_hashes(sources: Iterable[Path], root: Path) -> dict[str, str]:
    return {
        path.resolve().relative_to(root.resolve()).as_posix(): _sha256(path.read_bytes())
        for path in sources
    }


def within(root: Path, files: Iterable[Path]) -> list[Path]:
    """Return those of some files that are the project's: a manifest names no others."""
    return [path for path in files if path.resolve().is_relative_to(root.resolve())]


def write_manifest(
    design: Design,
    *,
    kind: str,
    files: Mapping[str, bytes],
    sources: Iterable[Path],
    tools: Mapping[str, str],
    root: Path,
    routed: Mapping[str, object] | None = None,
    rtl: Iterable[str] = (),
) -> str:
    """Return the manifest of a bitstream folder.

    Parameters
    ----------
    design : Design
        The block design.
    kind : {"simulation image", "vivado", "open tools"}
        What the ``.bit`` is.
    files : mapping of str to bytes
        The files beside the manifest.
    sources : iterable of pathlib.Path
        What they were made from.
    tools : mapping of str to str
        The programs that made them, with their versions.
    root : pathlib.Path
        Sources are named relative to it.
    routed : mapping, optional
        Of a real bitstream: what place and route has found about its clock.
    rtl : iterable of str
        Of a real bitstream: the kernels that are RTL of the project, not made from their C++.
    """
    manifest: dict[str, object] = {
        "overlay": design.name,
        "summary": design.summary,
        "kind": kind,
        "part": part.PART,
        "clock_mhz": design.clock_mhz,
        "kernels": {cell.name: cell.kind for cell in design.kernels},
        "files": {name: _sha256(data) for name, data in sorted(files.items())},
        "sources": _source_hashes(sources, root),
        "tools": dict(tools),
    }
    if routed is not None:
        manifest |= {"rtl": sorted(rtl), "routed": dict(routed), "hardware": NEVER_RUN}
    return json.dumps(manifest, indent=2) + "\n"


def build_overlay(
    name: str, *, root: Path | str | None = None, out: Path | str | None = None
) -> Path:
    """Write ``<name>.bit``, ``<name>.hwh`` and ``manifest.json`` of a simulation image.

    Parameters
    ----------
    name : str
        A folder of ``hw/overlays``.
    root : pathlib.Path, optional
        The project; found by itself where None.
    out : pathlib.Path, optional
        Where the folder `name` is written, ``bitstreams`` of the project where None.

    Returns
    -------
    pathlib.Path
        The folder.
    """
    root = ROOT if root is None else Path(root)
    generated = generate(name, root)
    files = {f"{name}.bit": generated.image, f"{name}.hwh": generated.hwh.encode()}
    manifest = write_manifest(
        generated.design,
        kind=SIMULATION,
        files=files,
        sources=generated.sources,
        tools={"generator": GENERATOR, "register rules": f"Vitis HLS {TOOL_VERSION}"},
        root=root,
    )
    folder = to_write(root / "bitstreams") if out is None else Path(out)
    return write_folder(folder / name, files, manifest)


def import_overlay(
    name: str,
    folder: Path,
    tools: Mapping[str, str],
    *,
    root: Path | None = None,
    out: Path | None = None,
    rtl: Mapping[str, Iterable[Path]] | None = None,
) -> Path:
    """Take over a ``.bit`` and ``.hwh`` that Vivado built, and write their manifest.

    Parameters
    ----------
    name : str
        The overlay.
    folder : pathlib.Path
        The folder with ``<name>.bit`` and ``<name>.hwh``.
    tools : mapping of str to str
        The programs that made them, with their versions.
    root, out : pathlib.Path, optional
        As for :func:`build_overlay`.
    rtl : mapping of str to iterable of pathlib.Path, optional
        The kernels that are RTL, with its files.

    Raises
    ------
    BitstreamError
        A file is missing, or the ``.bit`` is a simulation image.
    """
    root = root or ROOT
    design, sources = make_design(name, root)
    files = _from_vivado(name, folder)
    # Vivado's Tcl leaves none behind whose slack is negative.
    routed = {"by": tools.get("vivado", "Vivado"), "reached_mhz": design.clock_mhz, "derate": 1}
    used = dict.fromkeys((*sources, *within(root, chain.from_iterable((rtl or {}).values()))))
    text = write_manifest(
        design, kind=VIVADO, files=files, sources=used, tools=tools, root=root, routed=routed,
        rtl=rtl or (),
    )  # fmt: skip
    return write_folder((out or to_write(root / "bitstreams")) / name, files, text)


def write_folder(folder: Path, files: Mapping[str, bytes], manifest: str) -> Path:
    """Write the files of a bitstream and its manifest into `folder`, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in {**files, "manifest.json": manifest.encode()}.items():
        (folder / file).write_bytes(data)
    return folder


def _from_vivado(name: str, folder: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for file in (f"{name}.bit", f"{name}.hwh"):
        if not (folder / file).is_file():
            raise BitstreamError(f"{folder / file} does not exist: did Vivado finish?")
        files[file] = (folder / file).read_bytes()
    if is_simulation_image(folder / f"{name}.bit"):
        raise BitstreamError(
            f"{folder / name}.bit is a simulation image, not what Vivado built; run: "
            f"make -C hw overlays OVERLAYS={name}"
        )
    return files
