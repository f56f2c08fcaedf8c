"""The service of this project's own: many steps in one message (`pynq_torch.board.remote.wire`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import grpc

from pynq_torch.board.remote.wire import EXCHANGE, HELLO, VERSION, pack, unpack
from pynq_torch.errors import DeviceLost, PynqTorchError
from pynq_torch.hls.ap_ctrl import has_ended

from .services import enter, sentence
from .session import Session

__all__ = ["Together"]

#: The longest that a step may wait for the end of a run, and the longest sleep in it.
_LONGEST_S, _PAUSE_S = 0.1, 1e-3
_MOST_STEPS = 10_000


class Together(grpc.GenericRpcHandler):
    """Does the steps of a message in order, up to the first that fails."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def service(self, handler_call_details: Any) -> Any:
        """Return what serves a call; ``None`` for those of the other services."""
        calls = {HELLO: self.hello, EXCHANGE: self.exchange}
        call = calls.get(handler_call_details.method)
        return None if call is None else grpc.unary_unary_rpc_method_handler(call)

    def hello(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        """Give the board to a client, and say what it is."""
        enter(self.session, context)
        board = self.session.board
        name = str(getattr(board, "board_name", "local"))
        simulates = bool(getattr(board, "simulates", False))
        said = {"version": VERSION, "session": self.session.id, "board": name}
        return pack(said | {"simulates": simulates})

    def exchange(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        """Do the steps of a message."""
        enter(self.session, context)
        answers: list[Any] = []
        given_back: list[bytes] = []
        said: dict[str, Any] = {"answers": answers}
        try:
            header, contents = unpack(request)
            if header.get("session") != self.session.id:
                raise DeviceLost("was made again, because the connection had ended")
            steps = header.get("steps")
            if not isinstance(steps, list) or len(steps) > _MOST_STEPS:
                raise PynqTorchError(f"expected a list of at most {_MOST_STEPS:,} steps")
            taken = iter(contents)
            for step in steps:
                answers.append(self._do(step, taken, given_back))
        except Exception as error:  # noqa: BLE001 - the client raises it
            said["error"] = {"kind": type(error).__name__, "text": sentence(error)}
        if getattr(self.session.board, "board_name", "") == "rtl":
            said["clock"] = self.session.board.wait_clock()
        return pack(said, given_back)

    def _do(self, step: Any, contents: Iterator[bytes], given_back: list[bytes]) -> Any:
        if not isinstance(step, list) or not step or step[0] not in _STEPS:
            raise PynqTorchError(f"expected one of the steps {', '.join(_STEPS)}; found {step!r}")
        name, *arguments = step
        kinds = _STEPS[name]
        if len(arguments) != len(kinds) or not all(map(isinstance, arguments, kinds)):
            raise PynqTorchError(f"step {name} was given {arguments!r}")
        if name in ("write", "upload"):
            content = next(contents, None)
            if content is None:
                raise PynqTorchError(f"step {name} has no content in its message")
            return getattr(self, f"_{name}")(*arguments, content)
        if name in ("download", "end"):
            return getattr(self, f"_{name}")(*arguments, given_back)
        return getattr(self, f"_{name}")(*arguments)

    def _leave(self) -> None:
        self.session.leave()

    # ---- the steps -------------------------------------------------------------------------------

    def _open(self, base: int, length: int) -> str:
        return self.session.open(base, length)

    def _read(self, handle: str, offset: int) -> int:
        return int(self.session.range(handle, offset, 4).read(offset))

    def _write(self, handle: str, offset: int, content: bytes) -> None:
        self.session.write(handle, offset, content)

    def _allocate(self, nbytes: int) -> tuple[str, int]:
        handle = self.session.allocate(nbytes)
        return handle, int(self.session.buffers[handle].device_address)

    def _free(self, handle: str) -> None:
        self.session.free(handle)

    def _upload(self, handle: str, start: int, content: bytes) -> None:
        piece = self.session.piece(handle, start, start + len(content))
        memoryview(piece)[:] = content
        piece.flush()

    def _download(self, handle: str, start: int, nbytes: int, given_back: list[bytes]) -> None:
        piece = self.session.piece(handle, start, start + nbytes)
        piece.invalidate()
        given_back.append(piece.tobytes())

    def _end(
        self,
        handle: str,
        also: int | None,
        wait_s: float,
        wants: list[Any],
        given_back: list[bytes],
    ) -> tuple[int, int | None, int | None]:
        """Wait a little for the end of a run; return AP_CTRL, and what a run that ended left."""
        mmio = self.session.range(handle, also or 0, 4)
        begin = time.perf_counter()
        while not has_ended(control := int(mmio.read(0))):
            waited = time.perf_counter() - begin
            if not waited < min(wait_s, _LONGEST_S):
                return control, None, None
            time.sleep(min(waited / 10, _PAUSE_S))
        for want in wants:
            self._do(["download", *want], iter(()), given_back)
        return control, int(mmio.read(0)), None if also is None else int(mmio.read(also))


#: The kinds of each step's numbers and handles.
_STEPS: dict[str, tuple[Any, ...]] = {
    "open": (int, int),
    "read": (str, int),
    "write": (str, int),
    "allocate": (int,),
    "free": (str,),
    "leave": (),
    "upload": (str, int),
    "download": (str, int, int),
    "end": (str, (int, type(None)), (int, float), list),
}
