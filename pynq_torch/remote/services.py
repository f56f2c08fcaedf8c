"""The three services of PYNQ.remote, as pynq 3.1.2 defines them in ``pynq.remote``.

What goes wrong is answered in a message's ``msg``, which the client raises as `RuntimeError`; where
a message has none, as an error of gRPC with the same sentence.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import grpc
from pynq.remote import (
    buffer_pb2,
    buffer_pb2_grpc,
    mmio_pb2,
    mmio_pb2_grpc,
    remote_device_pb2,
    remote_device_pb2_grpc,
)

from pynq_torch.board.remote.wire import ERROR_KIND

from .files import BoardFiles
from .session import BoardInUse, Session, found

__all__ = ["Buffers", "DeviceFiles", "Registers", "enter", "sentence"]

#: As the client's own; gRPC refuses messages of more than 4 MB.
_CHUNK = 2 << 20
_Answer = TypeVar("_Answer")
_Method = Callable[[Any, Any, grpc.ServicerContext], _Answer]


def sentence(error: BaseException) -> str:
    """Return what an error says, with its kind where it is none of ours."""
    text = str(error).strip()
    ours = type(error).__module__.startswith("pynq_torch")
    return text if ours and text else f"{type(error).__name__}: {text}".rstrip(": ")


def _answers(answer: Callable[..., _Answer]) -> Callable[[_Method[_Answer]], _Method[_Answer]]:
    """Let a method's errors be the ``msg`` of its answer; it takes the board for the client."""

    def decorate(method: _Method[_Answer]) -> _Method[_Answer]:
        @functools.wraps(method)
        def call(self: Any, request: Any, context: grpc.ServicerContext) -> _Answer:
            enter(self.session, context)
            try:
                return method(self, request, context)
            except Exception as error:  # noqa: BLE001 - the client raises it
                return answer(msg=sentence(error))

        return call

    return decorate


def _aborts(method: _Method[_Answer]) -> _Method[_Answer]:
    """Let a method's errors be errors of gRPC: its answer has no place for a sentence."""

    @functools.wraps(method)
    def call(self: Any, request: Any, context: grpc.ServicerContext) -> _Answer:
        enter(self.session, context)
        try:
            return method(self, request, context)
        except Exception as error:
            context.set_trailing_metadata(((ERROR_KIND, type(error).__name__),))
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, sentence(error))
            raise AssertionError("gRPC's abort returned") from error

    return call


def enter(session: Session, context: grpc.ServicerContext) -> None:
    """Take the board for the client of a call; end the call where another has it."""
    try:
        session.enter(context.peer())
    except BoardInUse as error:
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))


class DeviceFiles(remote_device_pb2_grpc.RemoteDeviceServicer):
    """Files, by which the client learns what the board is, and configures it."""

    def __init__(self, session: Session, files: BoardFiles) -> None:
        self.session, self.files = session, files

    @_aborts
    def existsfile(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Say whether the board has a file."""
        # Firmware is never there: the client would not send another one of the same name.
        there = self.files.read(request.file_path) is not None
        return remote_device_pb2.ExistsFileResponse(exists=there)

    @_aborts
    def readfile(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Send a file."""
        content = self.files.read(request.file_path)
        if content is None:
            raise FileNotFoundError(f"a served board has no file {request.file_path}")
        return iter((remote_device_pb2.ReadFileResponse(data=content),))

    @_aborts
    def writefile(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
        """Write a file; the name of a bitstream configures the PL."""
        first = next(requests, None)
        if first is not None:
            self.files.write(first.file_path, _contents(first, requests))
        return remote_device_pb2.WriteFileResponse()

    @_aborts
    def set_bitstream_attrs(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Take the name of the bitstream to come."""
        return remote_device_pb2.SetBitstreamAttrsResponse(status=True)


def _contents(first: Any, requests: Iterable[Any]) -> Iterator[bytes]:
    yield first.data
    for request in requests:
        if request.file_path != first.file_path:
            raise ValueError(f"one message writes {first.file_path}, another {request.file_path}")
        yield request.data


class Registers(mmio_pb2_grpc.MmioServicer):
    """Ranges of addresses, read and written word by word."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @_answers(mmio_pb2.GetMmioResponse)
    def get_mmio(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Open a range of addresses."""
        handle = self.session.open(request.base_addr, request.length)
        return mmio_pb2.GetMmioResponse(status=True, mmio_id=handle)

    @_answers(mmio_pb2.ReadResponse)
    def read(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Read a register."""
        mmio = self.session.range(request.mmio_id, request.offset, request.length)
        data = int(mmio.read(request.offset, request.length, request.word_order or "little"))
        if data >> 32:
            raise OverflowError(
                f"the protocol's answer holds 32 bits, not 0x{data:x}; read 4 bytes"
            )
        # ReadResponse.data is signed: a client reads the register 0xffffffff as -1.
        return mmio_pb2.ReadResponse(status=True, data=data - (data >> 31 << 32))

    @_answers(mmio_pb2.WriteResponse)
    def write(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Write registers that follow each other."""
        self.session.write(request.mmio_id, request.offset, request.data)
        return mmio_pb2.WriteResponse(status=True)


class Buffers(buffer_pb2_grpc.RemoteBufferServicer):
    """Buffers in the board's memory, whose content comes and goes in pieces."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def _buffer(self, request: Any) -> Any:
        return found(self.session.buffers, request.buffer_id, "buffer")

    @_aborts  # the client does not look at the answer's msg
    def allocate(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Allocate a buffer."""
        return buffer_pb2.AllocateResponse(buffer_id=self.session.allocate(request.size))

    @_answers(buffer_pb2.FreeBufferResponse)
    def freebuffer(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Free a buffer."""
        self.session.free(request.buffer_id)
        return buffer_pb2.FreeBufferResponse()

    @_answers(buffer_pb2.BufferWriteResponse)
    def write(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
        """Write pieces of a buffer; a piece without a place follows the one before."""
        position = None
        for request in requests:
            begin = request.start if position is None or request.start else position
            position = begin + len(request.data)
            memoryview(self.session.piece(request.buffer_id, begin, position))[:] = request.data
        return buffer_pb2.BufferWriteResponse()

    @_aborts  # an empty answer would be taken for the buffer's content
    def read(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Send a buffer, or bytes of it, in pieces."""
        end = request.end or self._buffer(request).nbytes
        content = self.session.piece(request.buffer_id, request.start, end).tobytes()
        return (
            buffer_pb2.BufferReadResponse(data=content[at : at + _CHUNK])
            for at in range(0, len(content), _CHUNK)
        )

    @_answers(buffer_pb2.FlushResponse)
    def flush(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Write the caches back: what follows is what the PL reads."""
        self._buffer(request).flush()
        return buffer_pb2.FlushResponse()

    @_answers(buffer_pb2.InvalidateResponse)
    def invalidate(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Drop the caches: what follows is what the PL wrote."""
        self._buffer(request).invalidate()
        return buffer_pb2.InvalidateResponse()

    @_answers(buffer_pb2.AddressResponse)
    def physical_address(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Send a buffer's address, as the PL has it."""
        return buffer_pb2.AddressResponse(address=self._buffer(request).device_address)

    @_answers(buffer_pb2.AddressResponse)
    def virtual_address(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Send a buffer's address in this process."""
        return buffer_pb2.AddressResponse(address=self._buffer(request).virtual_address)

    @_answers(buffer_pb2.CacheableResponse)
    def cacheable(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Say whether the CPU caches a buffer."""
        return buffer_pb2.CacheableResponse(cacheable=bool(self._buffer(request).cacheable))
