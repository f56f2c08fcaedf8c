"""The connection to a served board: counted, bounded in time, encrypted where there is a key."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from pynq_torch import errors
from pynq_torch.errors import BoardError, DeviceLost, PynqTorchError

from .wire import ERROR_KIND

__all__ = ["Calls", "Link", "error_of", "read_access"]

#: Bound of a call in seconds; of one that configures the PL, for which kernels may be compiled.
LIMIT_S, CONFIGURE_S = 30.0, 600.0
_CONNECT_S = 5.0
#: The name in a server's certificate. The certificate itself is what is trusted, not who has it.
SERVER_NAME = "pynq-board"
_OPTIONS = [
    # A cable that is pulled is noticed while a call waits, and a notebook may be idle for a day.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.client_idle_timeout_ms", 2**31 - 1),
    # Not one for all boards of a process: with its connection a client gives its board back.
    ("grpc.use_local_subchannel_pool", 1),
]


@dataclass
class Calls:
    """What went over a connection so far; take two and subtract them.

    Parameters
    ----------
    count : int
        Calls.
    sent, received : int
        Bytes of their messages, without those of gRPC and TLS around them.
    """

    count: int = 0
    sent: int = 0
    received: int = 0

    def __sub__(self, before: Calls) -> Calls:
        return Calls(
            self.count - before.count, self.sent - before.sent, self.received - before.received
        )

    def copy(self) -> Calls:
        """Return the counts as they are now."""
        return Calls(self.count, self.sent, self.received)


def read_access(file: str | Path) -> tuple[bytes, str]:
    """Return the certificate and the token of an access file that ``serve --access`` wrote.

    Raises
    ------
    BoardError
        It cannot be read, or is none.
    """
    try:
        text = Path(file).expanduser().read_text(encoding="ascii")
    except (OSError, UnicodeError) as error:
        raise BoardError(f"the access file {file} cannot be read: {error}") from error
    certificate, found, token = text.partition("token ")
    if not found or "BEGIN CERTIFICATE" not in certificate:
        raise BoardError(
            f"{file} is no access file: expected a certificate and a token. Copy the one that "
            "`python -m pynq_torch serve --access FILE` has written on the board's side."
        )
    return certificate.encode(), token.strip()


def error_of(kind: str, text: str) -> Exception:
    """Return a served board's error as the exception that it was there."""
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, PynqTorchError):
        return found(text)
    return RuntimeError(text)


class Link:
    """A gRPC channel as the stubs of PYNQ.remote take one.

    Parameters
    ----------
    host, port
        Of the server.
    access : str, optional
        Its access file, where it has one; without it nothing is encrypted.

    Attributes
    ----------
    lost : str
        Why the server cannot be asked any more; empty while it can.

    Raises
    ------
    BoardError
        Nothing that speaks the protocol answers there within 5 s.
    """

    def __init__(self, host: str, port: int, access: str | Path | None = None) -> None:
        self.where = f"{host}:{port}"
        self.calls = Calls()
        self.lost = ""
        self._metadata: list[tuple[str, str]] = []
        try:
            socket.create_connection((host.strip("[]"), port), timeout=_CONNECT_S).close()
        except OSError as error:
            raise BoardError(
                f"no board at {self.where}: {error}. Start `python -m pynq_torch serve` there, or "
                "check the address and the tunnel."
            ) from error
        if access is None:
            self._channel = grpc.insecure_channel(self.where, options=_OPTIONS)
        else:
            certificate, token = read_access(access)
            self._metadata = [("authorization", f"Bearer {token}")]
            options = [*_OPTIONS, ("grpc.ssl_target_name_override", SERVER_NAME)]
            credentials = grpc.ssl_channel_credentials(certificate)
            self._channel = grpc.secure_channel(self.where, credentials, options=options)
        try:
            grpc.channel_ready_future(self._channel).result(timeout=_CONNECT_S)
        except grpc.FutureTimeoutError:
            self.close("was never reached")
            raise BoardError(
                f"something answers at {self.where}, but not as a board: it may be no server of "
                "PYNQ.remote, want an access file, or have another one than you gave "
                '(use_board("remote", address=..., access=FILE))'
            ) from None

    def close(self, why: str) -> None:
        """End the connection; calls after that raise `DeviceLost`."""
        self.lost = self.lost or why
        self._channel.close()

    # ---- what stubs ask a channel for ------------------------------------------------------------

    def unary_unary(self, path: str, *coders: Any, **options: Any) -> Callable[..., Any]:
        """Return a call with one message each way."""
        return self._call(self._channel.unary_unary, path, *coders, **options)

    def stream_unary(self, path: str, *coders: Any, **options: Any) -> Callable[..., Any]:
        """Return a call with several messages there and one back."""
        return self._call(self._channel.stream_unary, path, *coders, **options)

    def unary_stream(self, path: str, *coders: Any, **options: Any) -> Callable[..., Any]:
        """Return a call with one message there and several back: all of them, when it returns."""
        return self._call(self._channel.unary_stream, path, *coders, whole=True, **options)

    def _call(
        self,
        make: Callable[..., Any],
        path: str,
        request_serializer: Callable[[Any], bytes] = bytes,
        response_deserializer: Callable[[bytes], Any] = bytes,
        *,
        whole: bool = False,
        **options: Any,
    ) -> Callable[..., Any]:
        def serialize(message: Any) -> bytes:
            data = request_serializer(message)
            self.calls.sent += len(data)
            return data

        def deserialize(data: bytes) -> Any:
            self.calls.received += len(data)
            return response_deserializer(data)

        limit = CONFIGURE_S if path.endswith("/writefile") else LIMIT_S
        return partial(self._do, make(path, serialize, deserialize, **options), limit, whole)

    def _do(self, call: Callable[..., Any], limit: float, whole: bool, request: Any) -> Any:
        if self.lost:
            raise DeviceLost(self.gone())
        self.calls.count += 1
        try:
            answer = call(request, timeout=limit, metadata=self._metadata)
            return _all(answer) if whole else answer
        except (grpc.RpcError, ValueError) as error:  # ValueError: closed meanwhile, by a thread
            raise self._said(error, limit) from error

    def _said(self, error: Any, limit: float) -> Exception:
        code = error.code() if isinstance(error, grpc.RpcError) else grpc.StatusCode.CANCELLED
        text = str(getattr(error, "details", lambda: error)() or error)
        status = grpc.StatusCode
        if code in (status.UNAVAILABLE, status.CANCELLED):
            self.close(f"has gone ({text})")
            return DeviceLost(self.gone())
        if code == status.DEADLINE_EXCEEDED:
            self.close(f"has not answered within {limit:g} s")
            return DeviceLost(self.gone())
        if code in (status.RESOURCE_EXHAUSTED, status.UNAUTHENTICATED):
            # Both are sentences of our server; gRPC's own is about messages that are too large.
            return BoardError(f"{self.where}: {text}")
        if code == status.UNIMPLEMENTED:
            return NotImplementedError(text)
        kind = dict(error.trailing_metadata() or ()).get(ERROR_KIND)
        if kind is None:  # gRPC's own words, or those of another server
            return BoardError(f"the server at {self.where} failed: {text}")
        return error_of(str(kind), text)

    def gone(self) -> str:
        """Say why the board is lost, and what to do."""
        return (
            f"the board at {self.where} {self.lost}: its buffers and its overlay are lost. Start "
            'it again, then call use_board("remote", ...) and load the overlay; tensors keep the '
            "values they have here"
        )


def _all(messages: Iterator[Any]) -> Iterator[Any]:
    return iter(list(messages))
