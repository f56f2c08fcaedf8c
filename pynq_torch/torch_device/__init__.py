"""The torch device "pynq".

``import torch`` is enough: torch calls `pynq_torch.autoload` through the entry point
``torch.backends``. A tensor on ``"pynq"`` is in CMA memory; operators run on the kernels of the
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
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    from . import backend

    if _enabled:
        return backend
    _setup_privateuseone_for_python_backend("pynq", backend_module=backend)
    from . import dispatch, exact, flags, foreign, storage, torch_profiler
    from .cma import at_first_use
    from .memory import mark_forked

    _register_makers()
    foreign.install(dispatch.library)
    dispatch.install_sparse()
    torch_profiler.install()
    dispatch.fill_with(*at_first)
    at_first_use(_register)
    flags.install()
    storage.install()
    os.register_at_fork(after_in_child=mark_forked)
    exact.settle()
    _enabled = True
    return backend


def _register_makers() -> None:
    """Register what makes a tensor of the device; the rest can wait until there is one."""
    from . import dispatch
    from .structure import composed_kernels, own_kernels

    for name, kernel in (own_kernels() | composed_kernels()).items():
        dispatch.register(name, kernel)
    for name, kernel in composed_kernels().items():
        dispatch.register(name, kernel, "AutogradPrivateUse1")


def _register() -> None:
    from .dispatch import fill, register_all, register_sparse
    from .structure import own_kernels, view_kernel

    fill()
    register_all(own_kernels(), view_kernel)
    register_sparse()


# Last, and before any module of this room: torch calls `enable` while it is imported, which would
# find half of the module that imported torch.
import torch  # noqa: E402, F401
