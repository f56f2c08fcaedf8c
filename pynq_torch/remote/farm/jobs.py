"""Jobs on a farm: each worker process owns one board, and work waits for a free one.

``dask scheduler`` runs somewhere, ``python -m pynq_torch farm ADDRESS`` on each machine that has
boards. Dask queues, restarts workers that died and runs their work again; this module says what a
board is, and bounds every wait.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pynq_torch.errors import BoardError, needs

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["BOARD", "SCHEDULER", "connected", "map", "results"]

#: The resource that every worker with a board offers, beside one by its board's name (``csim``).
BOARD = "pynq-z2"
#: Environment variable with the scheduler's address.
SCHEDULER = "PYNQ_TORCH_SCHEDULER"
#: How long the scheduler may take to answer, and a farm may be without a fitting board, in seconds.
PATIENCE_S = 30.0
_LOOK_S = 1.0

Item = TypeVar("Item")
Value = TypeVar("Value")


def map(
    function: Callable[[Item], Value],
    items: Iterable[Item],
    *,
    board: str = BOARD,
    scheduler: str | None = None,
    timeout_s: float = 600.0,
) -> list[Value]:
    """Return ``[function(item) for item in items]``, each computed on a board of the farm.

    Each item gets a board as after power-on. An item whose worker dies is computed again by
    another one.

    Parameters
    ----------
    function : callable
        Takes an item; it is sent to the workers, which must be able to import what it uses.
    items : iterable
        What it is called with.
    board : str
        ``"pynq-z2"``, any board, or one kind: ``"csim"``, ``"rtl"``, ``"local"``.
    scheduler : str, optional
        Address of the Dask scheduler; by default that in PYNQ_TORCH_SCHEDULER.
    timeout_s : float
        The longest that one item may take on its board; its worker is ended then.

    Raises
    ------
    BoardError
        No scheduler answers, no worker has such a board, or an item has ended its workers.
    Exception
        What `function` raised, for the first item in order that failed.
    """
    asked = list(items)
    with connected(scheduler) as client:
        found = dict(results(client, function, asked, board=board, timeout_s=timeout_s))
    values: list[Any] = [found[index] for index in range(len(asked))]
    for error in (value for value in values if isinstance(value, Exception)):
        raise error
    return values


@contextmanager
def connected(scheduler: str | None = None) -> Iterator[Client]:
    """Give a client of the scheduler at an address, by default that in PYNQ_TORCH_SCHEDULER."""
    with needs("distributed", "a farm of boards"):
        from distributed import Client
    address = scheduler or os.environ.get(SCHEDULER)
    if not address:
        raise BoardError(
            f"no scheduler is named: give its address, as in 'tcp://127.0.0.1:8786', or set "
            f"{SCHEDULER}; 'dask scheduler' starts one"
        )
    try:
        client = Client(address, timeout=PATIENCE_S)
    except (OSError, ValueError) as error:
        raise BoardError(
            f"no Dask scheduler answers at '{address}' ({error}); 'dask scheduler' starts one and "
            "prints its address"
        ) from error
    with client:
        yield client


def results(
    client: Client,
    function: Callable[[Item], Value],
    items: Sequence[Item],
    *,
    board: str = BOARD,
    timeout_s: float = 600.0,
) -> Iterator[tuple[int, Value | Exception]]:
    """Yield ``(index, function(items[index]))`` as they end, each once; errors are values.

    Raises
    ------
    BoardError
        No worker has had such a board for `PATIENCE_S`.
    """
    from distributed import as_completed

    futures: dict[Future[Any], _Asked] = {}
    ended = as_completed()
    waiting = list(enumerate(items))[::-1]
    seen = time.monotonic()
    try:
        while waiting or futures:
            boards = _boards(client, board)
            seen = time.monotonic() if boards else seen
            if time.monotonic() - seen > PATIENCE_S:
                raise BoardError(_no_board(client, board))
            # No more than can run: Dask blames the end of a worker on all that waits there too.
            while waiting and len(futures) < boards:
                index, item = waiting.pop()
                future = _submitted(client, function, item, timeout_s, board)
                futures[future] = _Asked(index, time.monotonic() + timeout_s + PATIENCE_S)
                ended.add(future)
            for future in _next(ended):
                yield futures.pop(future).index, _value(future, timeout_s)
            _end_the_silent(client, futures, timeout_s)
    finally:
        client.cancel(list(futures), force=True)


def _submitted(
    client: Client, function: Callable[[Item], Value], item: Item, timeout_s: float, board: str
) -> Future[Any]:
    try:
        return client.submit(_on_board, function, item, timeout_s, resources={board: 1}, pure=False)
    except TypeError as error:
        raise BoardError(
            f"item {item!r:.60}, or the function, cannot be sent to a worker: both must be what "
            "pickle takes"
        ) from error


@dataclass
class _Asked:
    """An item at a worker: until when an answer is due, by the clock of `time.monotonic`."""

    index: int
    until: float


def _end_the_silent(client: Client, futures: dict[Future[Any], _Asked], timeout_s: float) -> None:
    """Start workers again that say nothing of an item, long after it had to end by itself.

    Such a worker is stopped, or its machine is; the scheduler gives the item to another one, and
    counts the end against it.
    """
    now = time.monotonic()
    late = {future.key: asked for future, asked in futures.items() if asked.until < now}
    if late:
        having = [name for name, keys in client.processing().items() if late.keys() & {*keys}]
        client.restart_workers(having, timeout=PATIENCE_S, raise_for_error=False)
    for asked in late.values():
        asked.until = time.monotonic() + timeout_s + PATIENCE_S


def _next(ended: Any) -> list[Future[Any]]:
    """Return what has ended, after `_LOOK_S` at the latest."""
    until = time.monotonic() + _LOOK_S
    while not ended.has_ready() and time.monotonic() < until:
        time.sleep(0.005)
    return list(ended.next_batch(block=False))


def _value(future: Future[Any], timeout_s: float) -> Any:
    """Return what a future holds: a value, or the error as one."""
    from distributed import KilledWorker

    if future.status == "cancelled":
        raise BoardError(
            "the scheduler has gone, and what was not done with it; start it again "
            "('dask scheduler'), then its workers, and repeat the work"
        )
    error = future.exception()
    if isinstance(error, KilledWorker):
        return BoardError(
            f"an item has ended {error.allowed_failures + 1} workers one after the other: it "
            f"crashes them, or takes longer than timeout_s={timeout_s:g}"
        )
    if error is None:
        try:
            return future.result()
        except TypeError as unsent:  # the item has ended well
            found, _, _ = str(unsent).partition("\n")
            return BoardError(f"a result cannot be sent back ({found}): pickle must take it")
    return error if isinstance(error, Exception) else BoardError(f"an item raised {error!r}")


def _boards(client: Client, board: str) -> int:
    """Return how many boards of a kind the farm has."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return sum(int(worker["resources"].get(board, 0)) for worker in workers)


def _no_board(client: Client, board: str) -> str:
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    kinds = sorted({kind for worker in workers for kind in worker["resources"]})
    address = client.scheduler.address if client.scheduler is not None else "ADDRESS"
    return (
        f"no worker of the farm has had a board '{board}' for {PATIENCE_S:g} s; there are: "
        f"{', '.join(kinds) or 'none'}. Start some: python -m pynq_torch farm {address}"
    )


def _on_board(function: Callable[[Item], Value], item: Item, timeout_s: float) -> Value:
    """Compute one item in a worker, on a board as after power-on, within a time limit."""
    from pynq_torch.board import use_board
    from pynq_torch.overlay import ensure_event_loop

    # A thread cannot be stopped from outside. Dask's nanny starts the worker again, and the
    # scheduler counts its end against the item.
    limit = threading.Timer(timeout_s, os._exit, [1])
    limit.daemon = True
    limit.start()
    try:
        ensure_event_loop()
        use_board(os.environ.get("PYNQ_TORCH_BOARD") or "csim")
        return function(item)
    finally:
        limit.cancel()
