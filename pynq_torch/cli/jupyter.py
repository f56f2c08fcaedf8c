"""The boards as Jupyter kernels: "PYNQ-Z2 (csim)" beside "Python 3" in the launcher.

A kernelspec only sets variables, above all ``PYNQ_TORCH_BOARD``; the autoload of this package does
the rest when the notebook imports pynq. The kernel itself is plain ipykernel, of any version.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.board.rtl.observe.watch import WAVES
from pynq_torch.errors import BoardError


@dataclass(frozen=True)
class BoardKernel:
    """A board as Jupyter shows it."""

    board: str
    display_name: str
    #: Further variables, and what tells its name from that of the board without them.
    environment: tuple[tuple[str, str], ...] = ()
    suffix: str = ""

    @property
    def name(self) -> str:
        """The kernelspec's name, which is also its folder's."""
        return f"pynq-z2-{self.board}{self.suffix}"

    def spec(self) -> dict[str, object]:
        """Return the content of ``kernel.json``."""
        return {
            "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": self.display_name,
            "language": "python",
            "env": {"PYNQ_TORCH_BOARD": self.board, **dict(self.environment)},
            "metadata": {"debugger": True},
        }


KERNELS = (
    BoardKernel("csim", "PYNQ-Z2 (csim)"),
    BoardKernel("rtl", "PYNQ-Z2 (rtl)"),
    # A folder beside the notebook, a file of waves for every start of a kernel.
    BoardKernel("rtl", "PYNQ-Z2 (rtl, waves)", ((WAVES, "waves"),), "-waves"),
)


def kernels_folder(prefix: Path) -> Path:
    """Return the folder below `prefix` in which Jupyter looks for kernelspecs."""
    return prefix / "share" / "jupyter" / "kernels"


def install(prefix: Path | None = None) -> list[Path]:
    """Write the kernelspec of every board below the environment's root, and return the files."""
    root = kernels_folder(prefix or Path(sys.prefix))
    return [_write_spec(root / kernel.name, kernel) for kernel in KERNELS]


def _write_spec(folder: Path, kernel: BoardKernel) -> Path:
    target = folder / "kernel.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A JupyterLab that is running must never read half a file.
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".json")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(kernel.spec(), stream, indent=1)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except OSError as error:
        raise BoardError(
            f"kernelspec '{kernel.name}' cannot be written to '{folder}': {error.strerror}; "
            "choose a folder you may write with --prefix"
        ) from error
    return target


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare ``kernels-install [--prefix DIR]``."""
    parser.description = "Register every board as a Jupyter kernel of this environment."
    parser.add_argument("--prefix", type=Path, help="the environment's root (default: this one)")
    parser.set_defaults(func=_run)


def _run(parsed: argparse.Namespace) -> int:
    for path in install(parsed.prefix):
        print(path)
    return 0
