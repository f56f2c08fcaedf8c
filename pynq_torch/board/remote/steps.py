"""What a client asks a served board for: messages of many steps, or PYNQ.remote's plain calls."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pynq.remote import buffer_pb2, buffer_pb2_grpc, mmio_pb2, mmio_pb2_grpc

from pynq_torch.errors import BoardError, CmaExhausted, DeviceLost, PynqTorchError

from .link import Link, error_of
from .wire import AT_ONCE, EXCHANGE, pack, unpack

__all__ = ["Ended", "PlainSteps", "Steps", "StepsTogether"]

#: Seconds that a server waits for the end of a run: with its start, and when it is asked later.
_WITH_START_S, _LATER_S = 0.5e-3, 20e-3


class Ended(NamedTuple):
    """What a look at a compute unit has found."""

    control: int  #: AP_CTRL
    again: int | None = None  #: AP_CTRL read once more, where the unit has ended
    also: int | None = None  #: another register, then
    contents: Sequence[bytes] = ()  #: what the run has written, where it was asked for
    error: Exception | None = None  #: what the run has failed with


class StepsTogether:
    """Steps to a server of this project: what needs no answer waits for the next that does.

    Parameters
    ----------
    link : Link
        The connection.
    session : str
        By which the server knows that it has still the board that was opened.
    """

    #: Nobody else uses the board, so that a unit that stands still does so until it is started.
    owns = True

    def __init__(self, link: Link, session: str) -> None:
        self._link, self._call = link, link.unary_unary(EXCHANGE)
        self._session = session
        self._lock = threading.RLock()
        self._later: deque[tuple[list[Any], bytes]] = deque()
        self._waiting = 0
        #: The board's own time, where its waits count it (board rtl).
        self.clock: float | None = None

    def _do(
        self, *steps: list[Any], contents: Sequence[bytes] = ()
    ) -> tuple[list[Any], list[bytes], dict[str, Any]]:
        """Send steps behind those that wait; return their answers and what one failed with."""
        with self._lock:
            before, first = [], []
            while self._later:  # the collector may add to it meanwhile
                step, content = self._later.popleft()
                before.append(step)
                first += [content] if content else []
            self._waiting = 0
            header = {"session": self._session, "steps": [*before, *steps]}
            answer, found = unpack(self._call(pack(header, [*first, *contents])))
        self.clock = answer.get("clock")
        error = answer.get("error") or {}
        done = answer["answers"][len(before) :]
        if error and error["kind"] == "DeviceLost":  # the server has another board for others now
            self._link.close(error["text"])
            raise DeviceLost(self._link.gone())
        if error and len(done) < len(steps) - 1:
            raise error_of(error["kind"], error["text"])
        return done, found, error

    def _one(self, *step: Any, content: bytes = b"") -> Any:
        done, found, error = self._do(list(step), contents=[content] if content else [])
        if error:
            raise error_of(error["kind"], error["text"])
        return found[0] if found else done[0]

    def open(self, base: int, length: int) -> str:
        """Return the handle of a range of registers."""
        return str(self._one("open", base, length))

    def read(self, handle: str, offset: int) -> int:
        """Read a register."""
        return int(self._one("read", handle, offset))

    def write(self, handle: str, offset: int, data: bytes, *, later: bool = False) -> None:
        """Write registers; `later` with the next message."""
        if later:
            self._later.append((["write", handle, offset], data))
        else:
            self._one("write", handle, offset, content=data)

    def look(
        self, handle: str, also: int | None, wants: Sequence[tuple[str, int, int]], start: bytes
    ) -> Ended:
        """Say whether a unit has ended, with what it has written; start it first with `start`."""
        wait = _WITH_START_S if start else _LATER_S
        steps = [["write", handle, 0]] if start else []
        steps += [["end", handle, also, wait, [list(want) for want in wants]]]
        done, found, error = self._do(*steps, contents=[start] if start else [])
        if error and len(done) < len(steps) - 1:
            raise error_of(error["kind"], error["text"])
        if error:
            return Ended(0, error=error_of(error["kind"], error["text"]))
        control, again, other = done[-1]
        return Ended(control, again, other, found)

    def allocate(self, nbytes: int) -> tuple[str, int]:
        """Return a buffer's handle and address."""
        handle, address = self._one("allocate", nbytes)
        return handle, address

    def leave(self) -> None:
        """Give the board back."""
        self._one("leave")

    def free(self, handle: str) -> None:
        """Free a buffer with the next message."""
        self._later.append((["free", handle], b""))

    def upload(self, handle: str, start: int, content: bytes, *, at_once: bool) -> None:
        """Write to a buffer, before the next step that may need it, or at once."""
        with self._lock:
            for at, piece in _pieces(content):
                step = ["upload", handle, start + at]
                if at_once or self._waiting + len(piece) > AT_ONCE:
                    self._one(*step, content=piece)
                else:
                    self._later.append((step, piece))
                    self._waiting += len(piece)

    def download(self, handle: str, start: int, nbytes: int) -> bytes:
        """Read from a buffer."""
        pieces = (
            self._one("download", handle, start + at, min(AT_ONCE, nbytes - at))
            for at in range(0, nbytes, AT_ONCE)
        )
        return b"".join(pieces)


def _pieces(content: bytes) -> Iterator[tuple[int, bytes]]:
    for at in range(0, len(content), AT_ONCE):
        yield at, content[at : at + AT_ONCE]


class PlainSteps:
    """The same with the calls that PYNQ.remote has, one for each step and more."""

    owns = False
    clock: float | None = None

    def __init__(self, link: Link) -> None:
        self._mmio: Any = mmio_pb2_grpc.MmioStub(link)
        self._buffer: Any = buffer_pb2_grpc.RemoteBufferStub(link)
        self._lock = threading.RLock()
        self._unused: deque[str] = deque()
        self._check_places()

    def _check_places(self) -> None:
        """Refuse a server that does not look where in a buffer bytes belong: ours are in pieces."""
        handle, _ = self.allocate(8)
        for at, content in ((0, bytes(8)), (4, b"last")):
            self.upload(handle, at, content, at_once=True)
        if self.download(handle, 0, 8) != b"\0\0\0\0last" or self.download(handle, 4, 4) != b"last":
            raise BoardError(
                "the server moves whole buffers where a part is asked for; use pynq's own "
                "RemoteDevice with it, or this project's server (python -m pynq_torch serve)"
            )
        self.free(handle)

    def open(self, base: int, length: int) -> str:
        """Return the handle of a range of registers."""
        request = mmio_pb2.GetMmioRequest(base_addr=base, length=length)
        return str(_checked(self._mmio.get_mmio(request)).mmio_id)

    def read(self, handle: str, offset: int) -> int:
        """Read a register."""
        request = mmio_pb2.ReadRequest(mmio_id=handle, offset=offset, length=4, word_order="little")
        return int(_checked(self._mmio.read(request)).data) & 0xFFFFFFFF

    def write(self, handle: str, offset: int, data: bytes, *, later: bool = False) -> None:
        """Write registers, at once."""
        request = mmio_pb2.WriteRequest(mmio_id=handle, offset=offset, data=data)
        _checked(self._mmio.write(request))

    def look(
        self, handle: str, also: int | None, wants: Sequence[tuple[str, int, int]], start: bytes
    ) -> Ended:
        """Read AP_CTRL once; the plain protocol has no waits."""
        if start:
            self.write(handle, 0, start)
        return Ended(self.read(handle, 0))

    def allocate(self, nbytes: int) -> tuple[str, int]:
        """Return a buffer's handle and address."""
        try:
            request = buffer_pb2.AllocateRequest(size=nbytes, dtype="|u1", cacheable=True)
            handle = str(self._buffer.allocate(request).buffer_id)
        except (RuntimeError, PynqTorchError) as error:
            raise CmaExhausted(str(error)) from error
        self._free()
        place = self._buffer.physical_address(buffer_pb2.AddressRequest(buffer_id=handle))
        return handle, int(_checked(place).address)

    def leave(self) -> None:
        """Give the board back: the end of the connection does."""

    def free(self, handle: str) -> None:
        """Free a buffer with the next one that is allocated: this may run inside the collector."""
        self._unused.append(handle)

    def _free(self) -> None:
        while self._unused:
            handle = self._unused.popleft()
            _checked(self._buffer.freebuffer(buffer_pb2.FreeBufferRequest(buffer_id=handle)))

    def upload(self, handle: str, start: int, content: bytes, *, at_once: bool) -> None:
        """Write to a buffer, at once."""
        pieces = (
            buffer_pb2.BufferWriteRequest(buffer_id=handle, start=start + at, data=piece)
            for at, piece in _pieces(content)
        )
        _checked(self._buffer.write(pieces))
        _checked(self._buffer.flush(buffer_pb2.FlushRequest(buffer_id=handle)))

    def download(self, handle: str, start: int, nbytes: int) -> bytes:
        """Read from a buffer."""
        _checked(self._buffer.invalidate(buffer_pb2.InvalidateRequest(buffer_id=handle)))
        request = buffer_pb2.BufferReadRequest(buffer_id=handle, start=start, end=start + nbytes)
        return b"".join(piece.data for piece in self._buffer.read(request))


Steps = StepsTogether | PlainSteps


def _checked(answer: Any) -> Any:
    if answer.msg:
        raise error_of("", answer.msg)
    return answer
