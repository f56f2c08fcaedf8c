"""Where the project's own kernels and bitstreams are, whatever the working directory is.

A notebook does not know its own folder: papermill runs it in the folder of its caller, JupyterLab
in the folder of the file. So lessons name the project's files with these paths.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["BITSTREAMS", "HW", "ROOT"]

#: The checkout: the folder above the package.
ROOT = Path(__file__).resolve().parent.parent
#: Kernels, overlays and what they include.
HW = ROOT / "hw"
#: A folder for each overlay, with its ``.bit`` and ``.hwh``.
BITSTREAMS = ROOT / "bitstreams"
