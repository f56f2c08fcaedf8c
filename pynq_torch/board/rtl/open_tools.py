"""From an overlay of RTL kernels to a ``.bit`` without Vivado: yosys, nextpnr-xilinx, prjxray.

yosys is a Python package. The others are third-party programs, taken from the PATH; nothing of
theirs is kept here. Mapping avoids what nextpnr-xilinx has had faults in: DSP blocks (an inferred
DSP48E1 ignores an input on silicon), block RAM of some widths, long SRLs. All become LUTs, but for
block RAM that the RTL asks for by an attribute.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.errors import BitstreamError, HandoffError, RtlError
from pynq_torch.hls.design.bitstream import run_tool
from pynq_torch.hls.design.build import (
    OPEN_TOOLS,
    make_design,
    within,
    write_folder,
    write_manifest,
)
from pynq_torch.hls.design.hwh import write_hwh
from pynq_torch.hls.design.image import read_bit_header
from pynq_torch.hls.design.model import Design
from pynq_torch.hls.design.part import PART, highest_clock
from pynq_torch.hls.design.top import PRIMITIVES, read_ports, write_top
from pynq_torch.models import rtl_resources, yosys
from pynq_torch.models.hls_resources import Resources
from pynq_torch.paths import HW, ROOT, to_write

__all__ = ["DERATE", "Mapped", "OpenTools", "build_open", "map_overlay", "routed_mhz"]

#: The timing analysis of nextpnr-xilinx knows no clock skew: this share of its clock is used.
DERATE = 0.8
_READ = "read_slang -j 1 --ignore-assertions"
_MAP = "synth_xilinx -flatten -abc9 -nodsp -nobram -nosrl -family xc7"
_MAP_TIMEOUT_S, _ROUTE_TIMEOUT_S, _FRAMES_TIMEOUT_S = 1800.0, 7200.0, 1200.0
_HOMES = {
    "nextpnr-xilinx": "https://github.com/openXC7/nextpnr-xilinx",
    "fasm2frames": "https://github.com/openXC7/prjxray (utils/fasm2frames.py)",
    "xc7frames2bit": "https://github.com/openXC7/prjxray",
}
_CHIPDB = "made by nextpnr-xilinx' bbaexport.py and bbasm for the xc7z020"
_DATABASE = "the folder zynq7 of https://github.com/openXC7/prjxray-db"
#: Printed after placement as an estimate, and again after routing.
_CLOCK = re.compile(r"Max frequency for clock\s+'[^']*':\s*([\d.]+) MHz")


@dataclass(frozen=True)
class OpenTools:
    """The programs and databases that place, route and write frames.

    Parameters
    ----------
    chipdb : pathlib.Path
        The xc7z020 for nextpnr-xilinx, a ``.bin``.
    database : pathlib.Path
        The folder of prjxray's database for the Zynq-7000 (``zynq7``).
    """

    chipdb: Path
    database: Path

    def check(self) -> None:
        """Raise where something is missing.

        Raises
        ------
        BitstreamError
            A program is not on the PATH, or a database is not there; the message says whose it is.
        """
        missing = [f"{tool}: {home}" for tool, home in _HOMES.items() if not shutil.which(tool)]
        if missing:
            raise BitstreamError(f"not on the PATH: {'; '.join(missing)}. Install what is missing")
        if not self.chipdb.is_file():
            raise BitstreamError(f"--chipdb {self.chipdb} is no file; expected one {_CHIPDB}")
        if not self._part.is_file():
            raise BitstreamError(f"--database {self.database} has no {PART}; expected {_DATABASE}")

    @property
    def _part(self) -> Path:
        return self.database / PART / "part.yaml"

    def route(self, name: str, folder: Path, clock_mhz: float, seed: int) -> str:
        """Place and route ``top.json`` in `folder`, write ``<name>.bit``; return the log."""
        (folder / "top.xdc").write_text("", encoding="utf-8")  # the PS has fixed pins alone
        log = run_tool(
            ["nextpnr-xilinx", "--chipdb", self.chipdb.resolve(), "--xdc", "top.xdc",
             "--json", "top.json", "--write", "routed.json", "--fasm", "top.fasm",
             "--freq", f"{clock_mhz:g}", "--seed", seed, "--timing-allow-fail"],
            folder, _ROUTE_TIMEOUT_S,
        )  # fmt: skip
        (folder / "nextpnr.log").write_text(log, encoding="utf-8")
        database = self.database.resolve()
        run_tool(["fasm2frames", "--part", PART, "--db-root", database, "top.fasm", "top.frames"],
             folder, _FRAMES_TIMEOUT_S)  # fmt: skip
        run_tool(["xc7frames2bit", "--part_file", self._part.resolve(), "--part_name", PART,
              "--frm_file", "top.frames", "--output_file", f"{name}.bit"],
             folder, _FRAMES_TIMEOUT_S)  # fmt: skip
        return log

    def versions(self) -> dict[str, str]:
        """Return what the place and route tool says of itself, and which database it was."""
        said = run_tool(["nextpnr-xilinx", "--version"], Path(), 60).strip().splitlines()
        part = hashlib.sha256(self._part.read_bytes()).hexdigest()
        return {
            "nextpnr-xilinx": said[-1] if said else "unknown",
            "prjxray-db": f"part.yaml with SHA-256 {part}",
        }


@dataclass(frozen=True)
class Mapped:
    """An overlay mapped by yosys: ``top.json`` for place and route, ``top.v`` to simulate."""

    design: Design
    folder: Path
    resources: Resources
    sources: tuple[Path, ...]


def map_overlay(
    name: str,
    folder: Path,
    *,
    root: Path | None = None,
    parameters: Mapping[str, Mapping[str, int]] | None = None,
) -> Mapped:
    """Write the top of an overlay and map it to the cells of the xc7z020.

    Parameters
    ----------
    name : str
        The overlay.
    folder : pathlib.Path
        Where ``<name>_top.sv``, ``top.json`` and ``top.v`` are written.
    root : pathlib.Path, optional
        The project.
    parameters : mapping of str to mapping of str to int, optional
        Of a unit's RTL, by the unit's name.

    Raises
    ------
    HandoffError
        A kernel has no RTL, or the design is nothing for open tools.
    RtlError
        yosys is not installed, or cannot map it.
    """
    root = root or ROOT
    yosys.version("Mapping an overlay")
    design, described = make_design(name, root)
    kernels = dict.fromkeys(cell.kind for cell in design.kernels)
    found = {kernel: _kernel_rtl(root, kernel) for kernel in kernels}
    folder.mkdir(parents=True, exist_ok=True)
    top = folder / f"{name}_top.sv"
    ports = {kernel: read_ports(path.read_text(encoding="utf-8")) for kernel, path in found.items()}
    top.write_text(write_top(design, ports, parameters), encoding="utf-8")
    (folder / "primitives.sv").write_text(PRIMITIVES, encoding="utf-8")
    library = {path.stem: path for path in (HW / "rtl").glob("*.sv")}
    for path in found.values():
        library |= {file.stem: file for file in path.parent.glob("*.*v")}
    files = rtl_resources.named_in([folder / "primitives.sv", top], library)
    names = " ".join(path.name for path in files)
    script = [
        f"{_READ} --top {top.stem} {names}",
        f"{_MAP} -top {top.stem}",
        "tee -q -o stat.json stat -json -tech xilinx",
        "write_json top.json",
        "write_verilog -noattr top.v",
    ]
    others = [path for path in files if path.parent != folder]
    resources = _mapped(name, script, others, folder)
    return Mapped(design, folder, resources, (*described, *others))


def _mapped(name: str, script: Sequence[str], files: Sequence[Path], folder: Path) -> Resources:
    """Run yosys on a top, and return what of the PL it takes."""
    done = yosys.run(script, [*files, *yosys.beside(files)], folder, _MAP_TIMEOUT_S, name)
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise RtlError(f"{name}: yosys cannot map it:\n" + "\n".join(said[-12:]), name)
    cells = json.loads((folder / "stat.json").read_text(encoding="utf-8"))
    counts = cells["design"]["num_cells_by_type"]
    counts.pop("PS7")
    return rtl_resources.counted(counts, yosys.version("Mapping an overlay"))


def _kernel_rtl(root: Path, kernel: str) -> Path:
    """Return the file of a kernel's top module."""
    folder = root / "hw" / "kernels" / kernel / "rtl"
    for path in (folder / f"{kernel}.sv", folder / f"{kernel}.v"):
        if path.is_file():
            return path
    raise HandoffError(
        f"{kernel} has no RTL; expected {folder / kernel}.sv. Open tools make no RTL from C++: use "
        "--tool vivado, with Vitis HLS"
    )


def routed_mhz(log: str) -> float:
    """Return the clock that nextpnr-xilinx has reached, in MHz: the last that it names.

    Raises
    ------
    BitstreamError
        It names none.
    """
    found = _CLOCK.findall(log)
    if not found:
        raise BitstreamError(
            "nextpnr-xilinx names no clock; expected a line 'Max frequency for clock ...'"
        )
    return float(found[-1])


def build_open(
    name: str,
    tools: OpenTools,
    *,
    root: Path | None = None,
    out: Path | None = None,
    parameters: Mapping[str, Mapping[str, int]] | None = None,
    seed: int = 1,
) -> Path:
    """Build the real bitstream of an overlay by open tools.

    Parameters
    ----------
    name : str
        The overlay.
    tools : OpenTools
        Checked before anything is built.
    root, out : pathlib.Path, optional
        As for :func:`pynq_torch.hls.design.build.build_overlay`.
    parameters : mapping of str to mapping of str to int, optional
        Of a unit's RTL, by the unit's name.
    seed : int
        Of the placer.

    Returns
    -------
    pathlib.Path
        The folder with ``<name>.bit``, ``<name>.hwh`` and ``manifest.json``. The handoff has the
        clock that was reached, derated, which pynq sets when it loads the overlay.

    Raises
    ------
    BitstreamError
        A tool is missing or fails, or what comes out is no ``.bit`` of this part.
    """
    tools.check()
    root = root or ROOT
    work = to_write(root / "hw" / "build") / "open" / name
    mapped = map_overlay(name, work, root=root, parameters=parameters)
    reached = routed_mhz(tools.route(name, work, mapped.design.clock_mhz, seed))
    clock_mhz = highest_clock(min(mapped.design.clock_mhz, DERATE * reached))
    image = (work / f"{name}.bit").read_bytes()
    if (part := read_bit_header(image).part) not in PART:
        raise BitstreamError(f"{work / name}.bit is for the part {part}; expected {PART}")
    design, _ = make_design(name, root, clock_mhz)
    files = {f"{name}.bit": image, f"{name}.hwh": write_hwh(design).encode()}
    versions = tools.versions()
    manifest = write_manifest(
        design,
        kind=OPEN_TOOLS,
        files=files,
        sources=within(root, mapped.sources),
        tools={"yosys": yosys.version("Mapping an overlay"), **versions},
        root=root,
        routed={"by": versions["nextpnr-xilinx"], "reached_mhz": reached, "derate": DERATE},
        rtl={cell.kind for cell in design.kernels},
    )
    return write_folder((out or to_write(root / "bitstreams")) / name, files, manifest)
