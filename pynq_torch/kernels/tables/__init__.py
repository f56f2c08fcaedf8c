"""Kernel families: tables from which kernel folders are written, and which their drivers read.

A family of several kernels is one C++ template (``hw/include/<family>.hpp``), text templates for
the files of an instance (``hw/templates/<family>/``), and a module here with its table and
``INSTANCES``. `python -m pynq_torch kernels generate` writes the folders below ``hw/kernels``. A
kernel without siblings is plain C++; its module here has the numbers that its registers take.
"""

from __future__ import annotations

from pynq_torch.hls.instance import Instance

__all__ = ["Instance", "instances"]


def instances() -> tuple[Instance, ...]:
    """Return the kernels of all families."""
    from . import convolution, pointwise, sparse

    return (*convolution.INSTANCES, *pointwise.INSTANCES, *sparse.INSTANCES)
