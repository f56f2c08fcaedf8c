"""A network on the PL: arrays in, one start for each image, arrays out."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from pynq_torch import overlay as overlays
from pynq_torch.errors import PynqTorchError
from pynq_torch.kernels.net import Loaded, Net

from .file import Network, Port
from .queue import Queue

__all__ = ["Runner"]


class Runner:
    """``runner(x)`` runs a network of one input and one output; `run` any.

    Parameters
    ----------
    network : Network
        Checked when it is loaded into memory, at the first run.

    Notes
    -----
    The overlay that is in use is taken where it has a kernel ``net``; otherwise the network's is
    loaded. Several threads may run it: each then has an arena of its own, see `queue`.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._loaded: Loaded | None = None
        self._overlay: Any = None
        self._free: list[Loaded] = []
        self._lock = threading.Lock()

    @contextmanager
    def _taken(self) -> Iterator[Loaded]:
        """Yield the program in CMA memory, with an arena that nobody else uses meanwhile."""
        with self._lock:
            current = overlays.overlay_in_use()
            if self._loaded is None or self._overlay is not current:
                kernel, n = self._kernel(current), self.network
                self._loaded = kernel(n.program, n.weights, n.tables, n.arena)
                self._free = [self._loaded]
            loaded = self._free.pop() if self._free else self._loaded.twin()
            free = self._free
        try:
            yield loaded
        finally:
            with self._lock:
                self._loaded = loaded if free is self._free else self._loaded
                free.append(loaded)

    @property
    def loaded(self) -> Loaded:
        """The program in CMA memory; where there was a run, with the arena of a last one."""
        with self._taken() as loaded:
            return loaded

    def _kernel(self, current: Any) -> Net:
        if current is None or current.kernels.unit_of("net") is None:
            current = overlays.load(self.network.overlay)
        self._overlay = current
        found = current.kernels.of("net")
        if not found or not isinstance(found[0], Net):
            raise PynqTorchError(
                f"overlay {current.name!r} has no kernel 'net'; load one that has, e.g. "
                "pynq_torch.load('net')"
            )
        return found[0]

    @property
    def counted(self) -> list[int] | None:
        """Cycles of each instruction in the last run, where the kernel counts them."""
        return None if self._loaded is None else self._loaded.cycles

    def memory_after(
        self, program: np.ndarray[Any, Any], arena: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """Return the arena after another program with the same constants, e.g. a part of it."""
        kernel, n = self._kernel(overlays.overlay_in_use()), self.network
        part = kernel(program, n.weights, n.tables, n.arena)
        part.arena[:] = arena
        part.run()
        return part.arena.copy()

    def __call__(self, x: Any, *, timeout_s: float = 60.0) -> np.ndarray[Any, Any]:
        """Return the output in float32 for an input in float32.

        Parameters
        ----------
        x : array
            float32 [N, ...], or one image without N; int8 is taken as quantised already.
        timeout_s : float
            Bound of the wait for one image.

        Returns
        -------
        numpy.ndarray
            float32, with N where `x` has it.
        """
        values = np.asarray(x)
        port = self.network.inputs[0]
        if len(self.network.inputs) > 1:
            raise ValueError(f"the network has {len(self.network.inputs)} inputs; call run()")
        alone = values.shape == port.shape
        if not alone and values.shape[1:] != port.shape:
            raise ValueError(
                f"the input has shape {values.shape}; expected [N, {str(list(port.shape))[1:]}"
            )
        if values.dtype != np.int8:
            values = port.quantised(values)
        out = self.network.outputs[0]
        result = out.real(self.run([values[None] if alone else values], timeout_s)[0])
        return result[0] if alone else result

    def run(
        self, inputs: Sequence[np.ndarray[Any, Any]], timeout_s: float = 60.0
    ) -> list[np.ndarray[Any, Any]]:
        """Run every image of a batch: int8 in, int8 or float32 out.

        Parameters
        ----------
        inputs : sequence of numpy.ndarray
            int8 [N, ...] in the order of ``network.inputs``.
        timeout_s : float
            Bound of the wait for one image.
        """
        n = self.network
        count = len(inputs[0]) if inputs else 1
        for port, given in zip(n.inputs, inputs, strict=True):
            if given.dtype != np.int8 or given.shape != (count, *port.shape):
                raise ValueError(
                    f"an input is {given.dtype} {given.shape}; expected int8 {(count, *port.shape)}"
                )
        results = [np.empty((count, *port.shape), port.dtype) for port in n.outputs]
        with self._taken() as loaded:
            for index in range(count):
                for port, given in zip(n.inputs, inputs, strict=True):
                    view(loaded.arena, port)[...] = given[index]
                loaded.run(timeout_s)
                for port, result in zip(n.outputs, results, strict=True):
                    result[index] = view(loaded.arena, port)
        return results

    def queue(self, depth: int = 2) -> Queue:
        """Return a queue for several inputs in flight."""
        return Queue(self, depth)


def view(arena: np.ndarray[Any, Any], port: Port) -> np.ndarray[Any, Any]:
    """Return the part of the arena that holds an input or output, as an array of its shape."""
    size = prod(port.shape) * np.dtype(port.dtype).itemsize
    return arena[port.at : port.at + size].view(port.dtype).reshape(port.shape)
