"""Compute units in the traces of ``torch.profiler``.

torch itself puts every operator there. While ``torch.profiler.profile()`` is on, what compute units
do appears inside: an event ``PL gemm_0`` from AP_START to the end as the host saw it. Events of one
thread must nest, and runs of several units may overlap: then an event names all running units, and
a new one begins when one of them starts or ends::

    PL gemm_0 | PL gemm_0 + gemm_lut_0      | PL gemm_lut_0
"""

from __future__ import annotations

import threading
from typing import Any

import torch

from pynq_torch.events import KernelCall, runs

__all__ = ["install"]


class _Thread(threading.local):
    """The runs of units that this thread started, and the event that shows them."""

    def __init__(self) -> None:
        self.running: list[KernelCall] = []
        self.event: Any = None


_thread = _Thread()


def install() -> None:
    """Show runs in the traces of ``torch.profiler`` from now on."""
    runs.attach(torch._C._autograd._profiler_enabled, _show)


def _show(run: KernelCall) -> None:
    """Take the begin or the end of a run."""
    if run.seconds is None:
        run.traced = torch._C._autograd._profiler_enabled()
    if not run.traced:
        return
    running = _thread.running
    if run.seconds is None:
        running.append(run)
    elif run in running:
        running.remove(run)
    else:
        return  # begun before torch's profiler, or in another thread
    if _thread.event is not None:
        _thread.event.__exit__(None, None, None)
        _thread.event = None
    # A run whose end another thread has seen is over here too.
    running[:] = [other for other in running if other.seconds is None]
    if running:
        _thread.event = torch.profiler.record_function(
            f"PL {' + '.join(run.cu for run in running)}"
        )
        _thread.event.__enter__()
