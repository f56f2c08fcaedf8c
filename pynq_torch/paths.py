"""Where the project's own files are: ``hw/``, ``bitstreams/``, ``notebooks/``, and the kernel path.

In a checkout they are beside the package; a wheel carries them inside it. What the package writes
beside them in a checkout (counted resources, generated overlays) goes to the user's own folder when
the package is installed, because an installed package may be read-only and is replaced by updates.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "BITSTREAMS",
    "HW",
    "KERNELS",
    "NOTEBOOKS",
    "PACKAGE",
    "ROOT",
    "environment_kernels",
    "find_kernel",
    "is_checkout",
    "kernel_path",
    "left_by_pynq",
    "shown",
    "to_read",
    "to_write",
    "user_folder",
]

#: The package's folder.
PACKAGE = Path(__file__).resolve().parent


def _root() -> Path:
    """Return the folder that holds ``hw/``: a checkout, else the installed package."""
    beside = PACKAGE.parent
    return beside if (beside / "hw" / "kernels").is_dir() else PACKAGE


#: The folder with ``hw/``, ``bitstreams/`` and ``notebooks/``.
ROOT = _root()
HW = ROOT / "hw"
KERNELS = HW / "kernels"
BITSTREAMS = ROOT / "bitstreams"
NOTEBOOKS = ROOT / "notebooks"


def is_checkout() -> bool:
    """Whether the package is used from a checkout, with its Makefile, and not from a wheel."""
    return ROOT != PACKAGE


def user_folder() -> Path:
    """Return the user's own folder: ``$XDG_DATA_HOME/pynq_torch``, by default in ``~/.local``."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "pynq_torch"


def shown(path: Path) -> str:
    """Return a path as short as it is clear from where the program runs."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def to_write(path: Path) -> Path:
    """Return where a file of the project is written.

    Parameters
    ----------
    path : pathlib.Path
        Its place in the project.

    Returns
    -------
    pathlib.Path
        The same place in a checkout, or where `path` is no file of the project; the corresponding
        place in `user_folder` for a file of an installed package. Its folder may not exist yet.
    """
    if is_checkout() or not path.is_relative_to(ROOT):
        return path
    return user_folder() / path.relative_to(ROOT)


def to_read(path: Path) -> Path:
    """Return the file that was written by way of `to_write`, where there is one, else `path`."""
    own = to_write(path)
    return own if own.exists() else path


def environment_kernels() -> list[Path]:
    """Return the folders with kernels that ``PYNQ_TORCH_KERNELS`` names, in order."""
    text = os.environ.get("PYNQ_TORCH_KERNELS", "")
    return [Path(item) for item in text.split(os.pathsep) if item]


def kernel_path(given: Iterable[str | os.PathLike[str]] = ()) -> list[Path]:
    """Return the folders searched for kernels: those given, the environment's, ``hw/kernels``."""
    return [*map(Path, given), *environment_kernels(), KERNELS]


def find_kernel(name: str) -> Path | None:
    """Return the first folder on the kernel path that describes the kernel, ``None`` without."""
    folders = (root / name for root in kernel_path())
    return next((f for f in folders if (f / "description.json").is_file()), None)


def left_by_pynq() -> list[Path]:
    """Return the files in which pynq keeps the overlay of a program, beside its own code."""
    spec = importlib.util.find_spec("pynq")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "pl_server"
    return sorted([*folder.glob("_current_metadata.pkl"), *folder.glob("global_pl_state_*.json")])
