"""Driver for any HLS kernel with m_axi pointers and scalars: no driver of its own is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from pynq_torch import buffers

from .arguments import bind
from .base import Kernel

__all__ = ["GenericKernel"]


class GenericKernel(Kernel):
    """Driver of an HLS kernel, by register name.

    A call writes the arguments, starts the compute unit and waits::

        overlay.my_kernel(a, b, n=1000)

    Buffers, and tensors or arrays over CMA memory, are passed by physical address. Tensors and
    arrays in ordinary memory are copied to CMA before the run and back after it, since a handoff
    does not say which of them the kernel writes; use `buffers.empty_tensor` to copy nothing.
    """

    def __call__(self, *arguments: Any, timeout_s: float = 10.0, **registers: Any) -> Any:
        """Write the arguments, start, wait, and return the outputs.

        Parameters
        ----------
        *arguments, **registers
            As for `Kernel.start`; tensors and arrays in ordinary memory as well.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        int, dict or None
            The outputs in registers; see `Kernel.outputs`.
        """
        given = bind(self, arguments, registers)
        placed = {name: self._place(value) for name, value in given.items()}
        self.start(**placed).wait(timeout_s)
        for name, value in given.items():
            if placed[name] is not value and isinstance(placed[name], np.ndarray):
                _copy_back(placed[name], value)
        return self.outputs()

    call = __call__

    def _place(self, value: Any) -> Any:
        """Return `value`, or a CMA buffer with its contents where it lies in ordinary memory."""
        if isinstance(value, np.generic) or not hasattr(value, "shape"):
            return value
        if getattr(value, "ndim", 0) == 0:
            return value.item()
        own = buffers.buffer_of(value)
        return own if own is not None else buffers.to_buffer(value, device=self.device)


def _copy_back(buffer: Any, target: Any) -> None:
    """Copy a run's results into the ordinary memory that the caller passed."""
    if isinstance(target, np.ndarray):
        if target.flags.writeable:
            np.copyto(target, np.asarray(buffer))
    elif hasattr(target, "copy_"):
        target.detach().copy_(buffers.as_tensor(buffer, target.dtype))
