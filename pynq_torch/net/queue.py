"""Several inputs of a network in flight: the PL computes one while the CPU prepares another."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

__all__ = ["Queue"]


class Queue:
    """Inputs in flight, ``depth`` of them at most; a context manager.

    While the PL runs one input, the CPU quantises and copies others in and out: each input in
    flight has a thread and an arena of its own, and they take turns on the PL.

    Parameters
    ----------
    run : callable
        A compiled model, or the network of a file.
    depth : int
        At least 1. With 2 the next input is ready when the PL has finished; more help where the
        CPU needs longer than the PL, and there are cores for it.

    Raises
    ------
    ValueError
        `depth` is less than 1.
    """

    def __init__(self, run: Callable[..., Any], depth: int = 2) -> None:
        if depth < 1:
            raise ValueError(f"depth is {depth}; expected at least 1 input in flight")
        self._run = run
        self.depth = depth
        self._places = threading.BoundedSemaphore(depth)
        self._threads = ThreadPoolExecutor(depth, "pynq-net")

    def submit(self, *inputs: Any, timeout_s: float = 60.0) -> Future[Any]:
        """Return the future of a result; waits while ``depth`` inputs are in flight.

        Parameters
        ----------
        *inputs : tensor or array
            As for a call without a queue.
        timeout_s : float
            Bound of the wait for the PL, for each image.

        Returns
        -------
        concurrent.futures.Future
            ``result()`` returns what a call returns, or raises the error of this input alone.
        """
        self._places.acquire()  # bounded by the timeouts of those that have the places
        try:
            future = self._threads.submit(self._run, *inputs, timeout_s=timeout_s)
        except BaseException:
            self._places.release()
            raise
        future.add_done_callback(lambda _: self._places.release())
        return future

    def map(self, inputs: Iterable[Any], *, timeout_s: float = 60.0) -> Iterator[Any]:
        """Yield the result of every input, in their order.

        Parameters
        ----------
        inputs : iterable
            One for each call; a tuple is several arguments. It is read as far as ``depth`` ahead.
        timeout_s : float
            See `submit`.

        Raises
        ------
        Exception
            What the call raised, when its turn has come. What is in flight then ends first, and no
            other input is begun.
        """
        begun: deque[Future[Any]] = deque()
        try:
            for given in inputs:
                if len(begun) == self.depth:
                    yield begun.popleft().result()
                arguments = given if isinstance(given, tuple) else (given,)
                begun.append(self.submit(*arguments, timeout_s=timeout_s))
            while begun:
                yield begun.popleft().result()
        finally:
            for future in begun:
                future.exception()

    def close(self) -> None:
        """Wait for what is in flight, and end the threads."""
        self._threads.shutdown()

    def __enter__(self) -> Queue:
        """Return the queue."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()
