"""The torch device "pynq".

``import torch`` is enough: torch calls `autoload` through the entry point ``torch.backends``. A
tensor on ``"pynq"`` lies in CMA memory; operators run on the kernels of the loaded overlay where
these can do them exactly, and on the CPU over the same memory otherwise.
"""

from __future__ import annotations

import os
from typing import Any

# Not torch: when it is imported it asks this module for `autoload`, which must be there by then.
__all__ = ["autoload", "enable", "fill_offers"]

_enabled = False


def autoload() -> None:
    """Register device "pynq"; torch calls this when it is imported."""
    enable()


def enable() -> Any:
    """Register device "pynq" with torch, once.

    Returns
    -------
    module
        ``torch.pynq``.
    """
    global _enabled
    import torch
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    from . import backend, flags

    if _enabled:
        return backend
    _setup_privateuseone_for_python_backend("pynq", backend_module=backend)
    from . import foreign
    from .dispatch import library
    from .memory import at_first_use, mark_forked, storage_of_size
    from .structure import own_kernels

    # A tensor of the device is made by one of these; the rest can wait until there is one.
    for name, kernel in own_kernels().items():
        library.impl(name.partition("::")[2], kernel, "PrivateUse1")
    foreign.install(library)
    at_first_use(_register)
    # Before torch's own for new devices (20), which would ask for an allocator in C++.
    torch.serialization.register_package(19, _no_tag, _deserialize)
    flags.install()
    os.register_at_fork(after_in_child=mark_forked)
    torch.UntypedStorage.__new__ = storage_of_size  # type: ignore[method-assign]
    _enabled = True
    return backend


def fill_offers() -> None:
    """Have every family of kernels say which operators it serves."""
    from pynq_torch.ops import (  # noqa: F401 (they fill the offers)
        activation,
        conv,
        conv_direct,
        convolution,
        distance,
        indexed,
        ladder,
        linear,
        loss,
        matmul,
        movement,
        normalisation,
        pointwise,
        pooling,
        reductions,
        softmax,
        sparse,
    )


def _register() -> None:
    from .dispatch import register_all
    from .structure import own_kernels, view_kernel

    fill_offers()
    register_all(own_kernels(), view_kernel)
    if os.environ.get("TORCH_PYNQ_DEBUG", "0") not in ("", "0"):
        from pynq_torch.profiler import debug

        debug.enable()


def _no_tag(storage: Any) -> str | None:
    """Leave the name of the device in a file to torch: ``"pynq:0"``."""
    return None


def _deserialize(storage: Any, location: str) -> Any:
    """Move a storage that ``torch.load`` has read to device "pynq", if the file says so.

    Raises
    ------
    RuntimeError
        `location` has another index than 0.
    """
    if location.partition(":")[0] != "pynq":
        return None
    import torch

    from .memory import from_bytes
    from .structure import check_index

    check_index(torch.device(location))
    return from_bytes(storage)
