"""A served board: pynq's own client in another process, hostile messages, clients that die."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from helpers import eventually
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pynq.pl_server.embedded_device import bit2bin
from pynq.remote import (
    buffer_pb2,
    buffer_pb2_grpc,
    mmio_pb2,
    mmio_pb2_grpc,
    remote_device_pb2,
    remote_device_pb2_grpc,
)

import pynq_torch
from pynq_torch.board.device import VirtualBoard
from pynq_torch.errors import BoardError
from pynq_torch.paths import BITSTREAMS
from pynq_torch.remote import Server
from pynq_torch.remote.session import is_connected

CLIENT = Path(__file__).with_name("remote_client.py")
MANAGER = "/sys/class/fpga_manager/fpga0/"

pytestmark = pytest.mark.timeout(180)


def _bit(name: str) -> Path:
    return BITSTREAMS / name / f"{name}.bit"


def _served(board: str = "csim") -> Server:
    return Server(lambda: pynq_torch.use_board(board), port=0)


@pytest.fixture
def server() -> Iterator[Server]:
    with _served() as server:
        yield server


class Client:
    """The stubs that the vendor's client has."""

    def __init__(self, server: Server) -> None:
        self.channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
        self.device = remote_device_pb2_grpc.RemoteDeviceStub(self.channel)
        self.mmio = mmio_pb2_grpc.MmioStub(self.channel)
        self.buffer = buffer_pb2_grpc.RemoteBufferStub(self.channel)

    def write(self, path: str, data: bytes) -> None:
        request = remote_device_pb2.WriteFileRequest(file_path=path, data=data)
        self.device.writefile(iter([request]))

    def exists(self, path: str) -> bool:
        request = remote_device_pb2.ExistsFileRequest(file_path=path)
        return bool(self.device.existsfile(request).exists)

    def read(self, path: str) -> bytes:
        request = remote_device_pb2.ReadFileRequest(file_path=path)
        return b"".join(piece.data for piece in self.device.readfile(request))

    def configure(self, name: str, frames: bytes, flags: bytes = b"0") -> None:
        self.write(f"/lib/firmware/{name}.bin", frames)
        self.write(f"{MANAGER}flags", flags)
        self.write(f"{MANAGER}firmware", f"{name}.bin".encode())

    def allocate(self, nbytes: int) -> str:
        return str(self.buffer.allocate(buffer_pb2.AllocateRequest(size=nbytes)).buffer_id)


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = Client(server)
    yield client
    client.channel.close()


def _run(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    first, *rest = arguments
    command = [sys.executable, "-W", "ignore", str(CLIENT), first, str(server.port), *rest]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


# ---- the vendor's client -------------------------------------------------------------------------


@pytest.mark.parametrize(("board", "count"), [("csim", "1000"), ("rtl", "40")])
def test_a_program_with_registers(board: str, count: str) -> None:
    with _served(board) as server:
        done = _run(server, "add", str(_bit("vadd")), count)
        assert done.stdout == "Pynq-Z2 armv7l True\n", done.stderr
        again = _run(server, "add", str(_bit("vadd")), "3")  # a new program, a new board
        assert again.stdout == "Pynq-Z2 armv7l True\n", again.stderr


def test_a_program_with_a_dma(server: Server) -> None:
    done = _run(server, "stream", str(_bit("packets")))
    assert done.stdout == f"{list(range(8))}\n", done.stderr


def test_two_programs_and_one_that_is_killed(server: Server) -> None:
    command = [sys.executable, "-W", "ignore", str(CLIENT), "hold", str(server.port)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None and first.stdout.readline() == "3\n"
    board = server.session.board
    assert board.default_memory.num_buffers == 3
    second = _run(server, "add", str(_bit("vadd")), "3")
    assert second.returncode and "the board is in use by ipv4:127.0.0.1:" in second.stderr
    first.kill()  # in the middle of an upload
    first.wait()
    first.stdout.close()
    eventually(lambda: server.session.board is not board)
    assert board.closed and not server.session.buffers
    assert _run(server, "add", str(_bit("vadd")), "3").returncode == 0


# ---- what it is asked that it cannot do ----------------------------------------------------------


def test_files(client: Client) -> None:
    assert client.exists("/proc/version") and b"armv7l" in client.read("/proc/version")
    assert client.read(f"{MANAGER}state") == b"unknown\n"
    assert not client.exists("/etc/passwd") and not client.exists("/lib/firmware/vadd.bin")
    with pytest.raises(grpc.RpcError) as caught:
        client.read("/etc/passwd")
    assert caught.value.details() == "FileNotFoundError: a served board has no file /etc/passwd"
    for path in ("/etc/passwd", "/lib/firmware/../../etc/x", f"{MANAGER}state", ""):
        with pytest.raises(grpc.RpcError) as caught:
            client.write(path, b"x")
        assert "cannot be written: a served board has" in caught.value.details()
    assert not Path("/lib/firmware/vadd.bin").exists()


@pytest.mark.parametrize(
    ("name", "frames", "flags", "says"),
    [
        ("vadd", b"other", b"0", "no overlay of this server has the frames of vadd.bin"),
        ("nobody", None, b"0", "no overlay of this server has the frames of nobody.bin"),
        ("vadd", None, b"1", "vadd.bin: partial reconfiguration is not modelled"),
        ("../vadd", b"", b"0", "no overlay of this server has the frames of ../vadd.bin"),
    ],
)
def test_a_bitstream_that_cannot_be(
    client: Client, name: str, frames: bytes | None, flags: bytes, says: str
) -> None:
    image = bit2bin(_bit("vadd").read_bytes())
    with pytest.raises(grpc.RpcError) as caught:
        client.configure(name, image if frames is None else frames, flags)
    assert caught.value.details().startswith(says)
    client.configure("vadd", image)  # the next one can
    assert client.read(f"{MANAGER}state") == b"operating\n"


def test_a_bitstream_that_was_not_sent(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        client.write(f"{MANAGER}firmware", b"gemm.bin")
    assert caught.value.details() == "/lib/firmware/gemm.bin was not written before its name"


def test_too_large_a_bitstream(client: Client) -> None:
    piece = remote_device_pb2.WriteFileRequest(file_path="/lib/firmware/x.bin", data=bytes(2 << 20))
    with pytest.raises(grpc.RpcError) as caught:
        client.device.writefile(iter([piece] * 17))
    assert "more than 32 MB" in caught.value.details()


def test_a_design_of_ones_own(tmp_path: Path) -> None:
    for suffix in (".bit", ".hwh"):
        (tmp_path / f"mine{suffix}").write_bytes(_bit("vadd").with_suffix(suffix).read_bytes())
    with Server(lambda: pynq_torch.use_board("csim"), port=0, overlays=[tmp_path]) as server:
        client = Client(server)
        client.configure("mine", bit2bin((tmp_path / "mine.bit").read_bytes()))
        assert Path(server.session.board.bitfile_name).name == "mine.bit"
        client.channel.close()


def test_registers_that_are_not_there(client: Client) -> None:
    assert (
        "no IP answers at physical address 0x40000000"
        in client.mmio.get_mmio(mmio_pb2.GetMmioRequest(base_addr=0x40000000, length=0x1000)).msg
        + client.mmio.read(mmio_pb2.ReadRequest(mmio_id=_open(client), length=4)).msg
    )
    client.configure("vadd", bit2bin(_bit("vadd").read_bytes()))
    handle = _open(client)
    assert client.mmio.read(mmio_pb2.ReadRequest(mmio_id=handle, length=4)).data == 4
    for offset, length in ((0x1000, 4), (2**64 - 4, 4), (0xFFC, 8)):
        request = mmio_pb2.ReadRequest(mmio_id=handle, offset=offset, length=length)
        assert "are outside the 4096 bytes from 0x40000000" in client.mmio.read(request).msg
    put = mmio_pb2.WriteRequest(mmio_id=handle, offset=0x10, data=b"\xff\xff\xff\xff")
    assert client.mmio.write(put).msg == ""
    request = mmio_pb2.ReadRequest(mmio_id=handle, offset=0x10, length=4)
    assert client.mmio.read(request).data == -1  # the answer's field is signed
    request = mmio_pb2.ReadRequest(mmio_id=handle, offset=0x0C, length=8)
    assert "the protocol's answer holds 32 bits" in client.mmio.read(request).msg
    assert "there is no MMIO 'x'" in client.mmio.read(mmio_pb2.ReadRequest(mmio_id="x")).msg
    wrong = mmio_pb2.ReadRequest(mmio_id=handle, length=3)
    assert "1, 2, 4 and 8-byte reads" in client.mmio.read(wrong).msg
    odd = mmio_pb2.WriteRequest(mmio_id=handle, offset=0, data=b"abcde")
    assert client.mmio.write(odd).msg


def _open(client: Client) -> str:
    request = mmio_pb2.GetMmioRequest(base_addr=0x40000000, length=0x1000)
    return str(client.mmio.get_mmio(request).mmio_id)


def test_buffers(client: Client, server: Server) -> None:
    handle = client.allocate(10)
    put = buffer_pb2.BufferWriteRequest
    pieces = [put(buffer_id=handle, data=b"abcd"), put(buffer_id=handle, data=b"efghij")]
    assert client.buffer.write(iter(pieces)).msg == ""
    part = buffer_pb2.BufferReadRequest(buffer_id=handle, start=2, end=5)
    assert [piece.data for piece in client.buffer.read(part)] == [b"cde"]
    outside = put(buffer_id=handle, data=b"xyz", start=8)
    assert "bytes 8 to 11 are outside a buffer of 10" in client.buffer.write(iter([outside])).msg
    for start, end in ((3, 2), (-1, 4), (0, 11)):
        with pytest.raises(grpc.RpcError) as caught:
            list(
                client.buffer.read(
                    buffer_pb2.BufferReadRequest(buffer_id=handle, start=start, end=end)
                )
            )
        assert "are outside a buffer of 10" in caught.value.details()
    address = client.buffer.physical_address(buffer_pb2.AddressRequest(buffer_id=handle)).address
    assert address == server.session.buffers[handle].device_address
    free = buffer_pb2.FreeBufferRequest(buffer_id=handle)
    assert client.buffer.freebuffer(free).msg == ""
    assert "it was freed, or never made" in client.buffer.freebuffer(free).msg
    assert server.session.board.default_memory.num_buffers == 0
    with pytest.raises(grpc.RpcError) as caught:
        client.allocate(1 << 30)
    assert "bytes of contiguous memory asked for" in caught.value.details()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.2.99", "somewhere", "::"])
def test_only_this_pc(host: str) -> None:
    with pytest.raises(BoardError, match="ssh -N -L 7967:localhost:7967"):
        Server(lambda: pynq_torch.use_board("csim"), host=host)


def test_a_port_that_is_taken(server: Server) -> None:
    with pytest.raises(BoardError, match=f"127.0.0.1:{server.port}: another server has that port"):
        Server(lambda: pynq_torch.use_board("csim"), port=server.port)


def test_a_folder_of_overlays_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match="overlay folder .*/none does not exist"):
        Server(VirtualBoard, port=0, overlays=[tmp_path / "none"])


def test_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as made:
            peer = f"ipv4:127.0.0.1:{made.getsockname()[1]}"
            eventually(lambda: is_connected(peer, port))
            assert not is_connected(peer, port + 1)
        assert not is_connected(peer, port)
    assert not is_connected("unix:", 1)


# ---- hostile messages ----------------------------------------------------------------------------

ADDRESSES = st.one_of(st.integers(0, 5000), st.sampled_from([2**31, 2**64 - 1, 2**64 - 4]))
NUMBERS = st.one_of(st.integers(-5, 5000), st.sampled_from([2**31 - 1, -(2**31), 2**20]))
MESSAGES = st.one_of(
    st.builds(mmio_pb2.GetMmioRequest, base_addr=st.integers(0, 2**33), length=ADDRESSES),
    st.builds(
        mmio_pb2.ReadRequest, mmio_id=st.sampled_from(["", "x", "known"]), length=ADDRESSES,
        offset=ADDRESSES, word_order=st.sampled_from(["", "big", "odd"]),
    ),
    st.builds(
        mmio_pb2.WriteRequest, mmio_id=st.sampled_from(["x", "known"]), offset=ADDRESSES,
        data=st.binary(max_size=40),
    ),
    st.builds(buffer_pb2.AllocateRequest, size=NUMBERS, dtype=st.text(max_size=4)),
    st.builds(buffer_pb2.BufferReadRequest, buffer_id=st.just("known"), start=NUMBERS, end=NUMBERS),
    st.builds(
        buffer_pb2.BufferWriteRequest, buffer_id=st.sampled_from(["", "known"]), start=NUMBERS,
        data=st.binary(max_size=40),
    ),
    st.builds(
        remote_device_pb2.WriteFileRequest,
        file_path=st.sampled_from(["", "/", f"{MANAGER}firmware", f"{MANAGER}flags"]),
        data=st.binary(max_size=40),
    ),
    st.builds(remote_device_pb2.ReadFileRequest, file_path=st.text(max_size=20)),
)  # fmt: skip


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[tuple[Server, Client]]:
    with _served() as server:
        client = Client(server)
        client.configure("vadd", bit2bin(_bit("vadd").read_bytes()))
        yield server, client
        client.channel.close()


def _call(client: Client, message: Any) -> None:
    one = {
        mmio_pb2.GetMmioRequest: client.mmio.get_mmio,
        mmio_pb2.ReadRequest: client.mmio.read,
        mmio_pb2.WriteRequest: client.mmio.write,
        buffer_pb2.AllocateRequest: client.buffer.allocate,
        buffer_pb2.BufferReadRequest: lambda request: list(client.buffer.read(request)),
        buffer_pb2.BufferWriteRequest: lambda request: client.buffer.write(iter([request])),
        remote_device_pb2.WriteFileRequest: lambda r: client.device.writefile(iter([r])),
        remote_device_pb2.ReadFileRequest: lambda request: list(client.device.readfile(request)),
    }[type(message)]
    try:
        one(message)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, error.details()
        assert error.details()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(MESSAGES, max_size=20))
def test_any_message(fuzzed: tuple[Server, Client], messages: list[Any]) -> None:
    server, client = fuzzed
    known = {"mmio_id": _open(client), "buffer_id": client.allocate(4096)}
    for message in messages:
        for field, handle in known.items():
            if getattr(message, field, "") == "known":
                setattr(message, field, handle)
        _call(client, message)
    for handle in list(server.session.buffers):
        server.session.free(handle)
    server.session.mmios.clear()
    assert client.read(f"{MANAGER}state")


# ---- the command ---------------------------------------------------------------------------------


def test_the_command() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "pynq_torch", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith(f"board csim on 127.0.0.1:{port}; in another terminal: PYNQ_REMOTE")
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (128 + signal.SIGTERM, "")
    assert time.monotonic() - begun < 30
