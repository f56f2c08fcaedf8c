"""Kernel families: tables from which kernel folders are written, and which their drivers read.

A family is one C++ template (``hw/include/<family>.hpp``), text templates for the files of an
instance (``hw/templates/<family>/``), and a module here with its table and ``INSTANCES``.
`python -m pynq_torch kernels generate` writes the folders below ``hw/kernels``.
"""

from __future__ import annotations

from pynq_torch.hls.instance import Instance

__all__ = ["FAMILIES", "Instance", "instances"]

#: Modules of this package that have ``INSTANCES``.
FAMILIES: tuple[str, ...] = (
    "convolution",
    "matmul",
    "movement",
    "pointwise",
    "reductions",
    "pooling",
    "loss",
    "normalisation",
    "sparse",
)


def instances() -> tuple[Instance, ...]:
    """Return the instances of all families, in the order of `FAMILIES`."""
    import importlib

    modules = [importlib.import_module(f"{__name__}.{family}") for family in FAMILIES]
    return tuple(instance for module in modules for instance in module.INSTANCES)
