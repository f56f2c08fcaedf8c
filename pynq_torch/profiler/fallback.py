"""The switch of the fallback: what happens to an operator that no kernel can do.

On, as it is from the start, the CPU does it. Off, it is a `NoKernelError` that says why no kernel
does it, and nothing is changed. Views, copies, requests for memory, filling it (``zeros``,
``fill_``) and reading it (``item``, ``equal``) always work, and so does a call that a route sends
to the CPU. To print a tensor computes: print ``x.cpu()``.
"""

from __future__ import annotations

from pynq_torch.torch_device.record import switches

__all__ = ["disable", "enable", "is_enabled"]


def enable() -> None:
    """Let the CPU do what no kernel can."""
    switches.fallback = True
    switches.settle()


def disable() -> None:
    """Make it an error."""
    switches.fallback = False
    switches.settle()


def is_enabled() -> bool:
    """Whether the CPU does what no kernel can."""
    return switches.fallback
