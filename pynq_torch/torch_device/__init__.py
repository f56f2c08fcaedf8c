"""The torch device "pynq".

``import torch`` is enough: torch calls `pynq_torch.autoload` through the entry point
``torch.backends``. A tensor on ``"pynq"`` lies in CMA memory; operators run on the kernels of the
loaded overlay where these can do them exactly, and on the CPU over the same memory otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["enable"]

_enabled = False


def enable(*at_first: Callable[[], None]) -> Any:
    """Register device "pynq" with torch, once.

    Parameters
    ----------
    *at_first : callable
        Called when the device is first used: they add the offers of kernels.

    Returns
    -------
    module
        ``torch.pynq``.
    """
    global _enabled
    import torch
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    from . import backend, dispatch, flags

    if _enabled:
        return backend
    _setup_privateuseone_for_python_backend("pynq", backend_module=backend)
    from . import foreign, torch_profiler
    from .memory import at_first_use, from_bytes, mark_forked, storage_of_size, typed_storage
    from .structure import composed_kernels, own_kernels

    # A tensor of the device is made by one of these; the rest can wait until there is one.
    for name, kernel in own_kernels().items():
        dispatch.library.impl(name.partition("::")[2], kernel, "PrivateUse1")
    for name, kernel in composed_kernels().items():
        for key in ("PrivateUse1", "AutogradPrivateUse1"):
            dispatch.library.impl(name.partition("::")[2], kernel, key)
    foreign.install(dispatch.library)
    torch_profiler.install()
    for filler in at_first:
        dispatch.fill_with(filler)
    at_first_use(_register)
    # Before torch's own for new devices (20), which would ask for an allocator in C++.
    torch.serialization.register_package(19, _no_tag, _deserialize)
    flags.install()
    os.register_at_fork(after_in_child=mark_forked)
    torch.serialization.add_safe_globals([from_bytes])
    torch.UntypedStorage.__new__ = storage_of_size  # type: ignore[method-assign]
    torch.TypedStorage._new_wrapped_storage = typed_storage  # type: ignore[method-assign,assignment]
    _enabled = True
    return backend


def _register() -> None:
    from .dispatch import fill, register_all
    from .structure import own_kernels, view_kernel

    fill()
    register_all(own_kernels(), view_kernel)


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
