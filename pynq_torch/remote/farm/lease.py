"""A board of the farm for a while: a worker serves it, and this process has it as board remote."""

from __future__ import annotations

import getpass
import os
import platform
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pynq_torch.errors import BoardError
from pynq_torch.tables import Table

from .jobs import BOARD, connected

if TYPE_CHECKING:
    from distributed import Client
    from pynq.pl_server.device import Device

__all__ = ["board", "holders"]

_LOOK_S = 0.1


@contextmanager
def board(
    kind: str = BOARD,
    *,
    scheduler: str | None = None,
    wait_s: float = 60.0,
    limit_s: float = 3600.0,
) -> Iterator[Device]:
    """Lease a board: within the block it is the active one, as with ``use_board("remote")``.

    Parameters
    ----------
    kind : str
        As for `map`.
    scheduler : str, optional
        Address of the Dask scheduler; by default that in PYNQ_TORCH_SCHEDULER.
    wait_s : float
        How long to wait in the queue.
    limit_s : float
        How long the board may be kept; calls raise `DeviceLost` after that. It comes back at the
        end of the block, and where this process dies.

    Raises
    ------
    BoardError
        No scheduler answers, or no such board was free in time: the message says who has them.
    """
    from distributed import Event

    from pynq_torch.board import use_board

    who = f"{getpass.getuser()} on {platform.node()}, process {os.getpid()}"
    key = f"lease of {who}, {uuid.uuid4().hex[:8]}"
    with connected(scheduler) as client, tempfile.TemporaryDirectory() as folder:
        task = client.submit(
            _serve, key, limit_s, key=key, resources={kind: 1}, pure=False, retries=0
        )
        try:
            address, access = _served(client, task, key, kind, wait_s)
            file = Path(folder) / "access"
            file.write_bytes(access)
            device = use_board("remote", address=address, access=str(file) if access else None)
            try:
                yield device
            finally:
                device.close()
        finally:
            Event(key, client=client).set()
            client.cancel([task], force=True)


def holders(scheduler: str | None = None) -> Table:
    """Return which worker of the farm is busy with what, leases by their holder's name."""
    with connected(scheduler) as client:
        rows = [[worker, key] for worker, keys in client.processing().items() for key in keys]
    return Table(["worker", "busy with"], rows)


def _served(client: Client, task: Any, key: str, kind: str, wait_s: float) -> tuple[str, bytes]:
    """Wait until a worker serves the board; return its address and access file."""
    from distributed import Variable

    deadline = time.monotonic() + wait_s
    place = Variable(key, client=client)
    while task.status == "pending" and time.monotonic() < deadline:
        try:
            address, access = place.get(timeout=_LOOK_S)
        except TimeoutError:
            continue
        place.delete()
        return str(address), bytes(access)
    if task.status == "error":
        raise BoardError(f"a worker could not serve its board: {task.exception()}")
    busy = [name for keys in client.processing().values() for name in keys if name != key]
    raise BoardError(
        f"no board '{kind}' was free for {wait_s:g} s. Busy: {'; '.join(busy) or 'none'}. Wait "
        "longer (wait_s), or add boards: python -m pynq_torch farm ADDRESS"
    )


def _serve(key: str, limit_s: float) -> None:
    """Serve this worker's board until the lease ends, its limit is over, or its holder has gone."""
    import ipaddress

    from distributed import Event, Variable, get_worker

    from pynq_torch.board import use_board
    from pynq_torch.overlay import ensure_event_loop
    from pynq_torch.remote.access import make_access
    from pynq_torch.remote.server import Server

    ensure_event_loop()
    worker = get_worker()
    host = worker.ip
    kind = os.environ.get("PYNQ_TORCH_BOARD") or "csim"
    with tempfile.TemporaryDirectory() as folder:
        file = None
        if not ipaddress.ip_address(host).is_loopback:
            file = Path(folder) / "access"
            make_access(file)
        with Server(lambda: use_board(kind), host=host, port=0, access=file) as server:
            access = b"" if file is None else file.read_bytes()
            Variable(key).set((f"{host}:{server.port}", access))
            ended, deadline = Event(key), time.monotonic() + limit_s
            while time.monotonic() < deadline and not ended.wait(timeout=_LOOK_S):
                # The scheduler forgets the task of a client that has gone.
                known = worker.state.tasks.get(key)
                if known is None or known.state != "executing":
                    break
