"""A kernel of a family in a folder of one's own, with the headers that it includes."""

from __future__ import annotations

import shutil
from pathlib import Path

from pynq_torch.paths import ROOT

from .generate import render
from .instance import Instance
from .kernels import KernelSource, find_kernel

__all__ = ["write_kernel"]


def write_kernel(instance: Instance, root: Path | str) -> KernelSource:
    """Write the folder of a kernel below ``root/hw/kernels``, and find it there.

    Parameters
    ----------
    instance : Instance
        E.g. from `pynq_torch.kernels.tables.pointwise.instance`.
    root : pathlib.Path or str
        Gets ``hw/include`` too: the templates' headers, which generated sources include by
        ``../../include``. What is there already is written over.

    Raises
    ------
    PynqTorchError
        See `pynq_torch.hls.generate.render`; nothing was written.
    """
    files = render(instance)
    hw = Path(root, "hw")
    shutil.copytree(ROOT / "hw" / "include", hw / "include", dirs_exist_ok=True)
    folder = hw / "kernels" / instance.name
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    kernel = find_kernel(instance.name, [folder.parent])
    assert kernel is not None, "it was written there"
    return kernel
