"""Where the project's own files are: ``hw/``, ``bitstreams/``, ``notebooks/``, and the kernel path.

In a checkout they lie beside the package; a wheel carries them inside it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["BITSTREAMS", "HW", "KERNELS", "PACKAGE", "ROOT", "environment_kernels", "kernel_path"]

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


def environment_kernels() -> list[Path]:
    """Return the folders with kernels that ``PYNQ_TORCH_KERNELS`` names, in order."""
    text = os.environ.get("PYNQ_TORCH_KERNELS", "")
    return [Path(item) for item in text.split(os.pathsep) if item]


def kernel_path(given: Iterable[str | os.PathLike[str]] = ()) -> list[Path]:
    """Return the folders searched for kernels: those given, the environment's, ``hw/kernels``."""
    return [*map(Path, given), *environment_kernels(), KERNELS]
