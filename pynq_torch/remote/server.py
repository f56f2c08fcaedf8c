"""The server: gRPC on a port of this PC, in front of a virtual board."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable, Sequence
from concurrent import futures
from pathlib import Path
from types import TracebackType

import grpc
from pynq.remote import buffer_pb2_grpc, mmio_pb2_grpc, remote_device_pb2_grpc

from pynq_torch.board.device import VirtualBoard
from pynq_torch.errors import BoardError
from pynq_torch.overlay import available_overlays

from .access import credentials
from .files import BoardFiles
from .services import Buffers, DeviceFiles, Registers
from .session import Session
from .together import Together

__all__ = ["PORT", "Server"]

#: Where the client looks for a board; it has no option for another one.
PORT = 7967
_LOOK_S = 1.0
_OPTIONS = [
    # Linux would let two servers share a port, and give each of them some of the clients.
    ("grpc.so_reuseport", 0),
    # A client whose cable was pulled has gone after half a minute; clients may look as often.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_ping_strikes", 0),
]


def _listening(server: grpc.Server, place: str, secret: grpc.ServerCredentials | None) -> int:
    """Let a server listen at an address, with a certificate if there is one; return the port."""
    try:
        if secret is None:
            return int(server.add_insecure_port(place))
        return int(server.add_secure_port(place, secret))
    except RuntimeError as error:
        raise BoardError(
            f"nothing can listen on {place}: another server has that port, this user may not "
            "use it, or the address is not this PC's"
        ) from error


class Server:
    """A virtual board behind PYNQ.remote's protocol.

    One client has the board at a time. When its connection ends, however it ends, the board is made
    again: kernels that ran are ended, buffers freed, the PL is empty.

    Parameters
    ----------
    make_board : callable
        Returns a board; called for each client.
    host : str
        Without an access file an address of the loopback interface: PYNQ.remote's protocol is not
        encrypted and knows no password.
    port : int
        0 for any that is free.
    access : pathlib.Path, optional
        An access file (`access.make_access`): connections are encrypted then, and want its token.
    files : BoardFiles, optional
        Of a real board. Default: those of a virtual one.
    overlays : sequence of pathlib.Path
        Folders with further ``NAME.bit`` and ``NAME.hwh``.

    Attributes
    ----------
    host : str
    port : int
        Where it listens.

    Raises
    ------
    BoardError
        The address is not of the loopback interface, the port is taken, or a folder is missing.
    """

    def __init__(
        self,
        make_board: Callable[[], VirtualBoard],
        *,
        host: str = "127.0.0.1",
        port: int = PORT,
        access: Path | None = None,
        files: BoardFiles | None = None,
        overlays: Sequence[Path] = (),
    ) -> None:
        for folder in overlays:
            if not folder.is_dir():
                raise BoardError(f"the overlay folder {folder} does not exist")
        secret, token = (None, None) if access is None else credentials(access)
        if secret is None:
            _check_host(host)
        pool = futures.ThreadPoolExecutor(max_workers=8)
        checks = () if token is None else (token,)
        self._server = grpc.server(pool, options=_OPTIONS, interceptors=checks)
        bare = host.strip("[]")
        self.host = f"[{bare}]" if ":" in bare else host  # IPv6, as clients and gRPC write it
        place = f"{self.host}:{port}"
        self.port = _listening(self._server, place, secret)
        self.session = Session(make_board, self.port)
        files = files or BoardFiles(
            lambda: _known(overlays), self.session.download, self.session.cma
        )
        remote_device_pb2_grpc.add_RemoteDeviceServicer_to_server(
            DeviceFiles(self.session, files), self._server
        )
        mmio_pb2_grpc.add_MmioServicer_to_server(Registers(self.session), self._server)
        buffer_pb2_grpc.add_RemoteBufferServicer_to_server(Buffers(self.session), self._server)
        self._server.add_generic_rpc_handlers((Together(self.session),))
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look, name="clients of the board", daemon=True)

    def __enter__(self) -> Server:
        self._server.start()
        self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._server.stop(grace=0.5).wait()
        self._watch.join()
        self.session.close()

    def wait(self) -> None:
        """Serve until the process is told to end."""
        self._ended.wait()

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_S):
            self.session.leave_if_gone()


def _check_host(host: str) -> None:
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise BoardError(
            f"host {host!r} is not this PC's loopback interface (127.0.0.1): pynq's client neither "
            "encrypts nor asks for a password. From another machine, open a tunnel there: "
            f"ssh -N -L {PORT}:localhost:{PORT} USER@THIS_PC; or serve pynq_torch's client alone, "
            "encrypted: --access FILE"
        )


def _known(folders: Sequence[Path]) -> dict[str, Path]:
    own = [
        path
        for folder in folders
        for path in sorted((*folder.glob("*.bit"), *folder.glob("*/*.bit")))
    ]
    return available_overlays() | {path.stem: path for path in reversed(own)}
