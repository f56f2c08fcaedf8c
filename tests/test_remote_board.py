"""Board "remote": drivers and device "pynq" on a served board, what moves, what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pynq
import pytest
import torch
from helpers import eventually
from hypothesis import given, settings
from hypothesis import strategies as st
from pynq.pl_server.embedded_device import bit2bin

import pynq_torch
from pynq_torch import buffers, errors
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.remote import RemoteBoard, link, registers, steps, wire
from pynq_torch.cli.doctor_checks import check_boards
from pynq_torch.paths import BITSTREAMS, NOTEBOOKS
from pynq_torch.remote import Server, together
from pynq_torch.remote.access import make_access
from pynq_torch.remote.local import LocalFiles, device_code

MANAGER = "/sys/class/fpga_manager/fpga0/"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(VirtualBoard, port=0) as server:
        yield server


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server wait until a run has ended, so that the calls can be counted."""
    monkeypatch.setattr(steps, "_WITH_START_S", 20.0)
    monkeypatch.setattr(together, "_LONGEST_S", 20.0)


@pytest.fixture
def board(server: Server) -> Iterator[RemoteBoard]:
    board = pynq_torch.use_board("remote", address=f"127.0.0.1:{server.port}")
    assert isinstance(board, RemoteBoard)
    yield board
    board.close()


def _inside(server: Server, buffer: Any) -> Any:
    """Return a buffer's elements as the served board has them."""
    buffer.device.steps.download(buffer.bo.handle, 0, 1)  # uploads wait for the next message
    return np.asarray(server.session.buffers[buffer.bo.handle])[: buffer.nbytes].view(buffer.dtype)


# ---- what runs, and what it costs ----------------------------------------------------------------


def test_operators_and_drivers(board: RemoteBoard, patient: None) -> None:
    overlay = pynq_torch.load("vadd")
    assert torch.pynq.get_device_name() == "Pynq-Z2 (csim, remote)"
    free, total = torch.pynq.mem_get_info()
    assert 0 < free <= total == 128 << 20
    a, b = torch.arange(3000.0), torch.full((3000,), 0.5)
    x, y = a.to("pynq"), b.to("pynq")
    for _ in range(3):
        before, z = board.calls.copy(), x + y
        assert torch.equal(z.cpu(), a + b)
        cost = board.calls - before
    # Idle, arguments, start, end and result in one message; what has not changed stays.
    assert cost.count == 1 and cost.sent < 1000 and cost.received < 12_000 + 500
    x[7] = 100
    before = board.calls.copy()
    assert (x + y)[7].item() == 100.5
    assert (board.calls - before).count == 1
    assert torch.equal(overlay.vadd(a, b), a + b)


def test_the_plain_protocol(server: Server, monkeypatch: pytest.MonkeyPatch, patient: None) -> None:
    monkeypatch.setattr(together.Together, "service", lambda self, details: None)
    board: Any = pynq_torch.use_board("remote", address=f"127.0.0.1:{server.port}")
    monkeypatch.setattr(board, "simulates", True)  # the plain protocol does not say it
    monkeypatch.setattr(board.steps, "owns", True)  # our server takes the bitstream by its name
    overlay = pynq_torch.load("vadd")
    board.steps.owns = False
    a, b = torch.arange(3000.0), torch.full((3000,), 0.5)
    out = [overlay.vadd.operand("a", each) for each in (a, b)] + [overlay.vadd.result((3000,))]
    for _ in range(2):
        before = board.calls.copy()
        overlay.vadd.do_runs(
            [(*(each.address for each in out), 3000)], out[:2], out[2:], timeout_s=20.0
        )
        cost = board.calls - before
    assert torch.equal(out[2].tensor, a + b)
    # Idle?, arguments, start, AP_CTRL (again until it ends), and two for the result.
    assert cost.count >= 6 and cost.received > 12_000 > cost.sent, cost
    board.close()


def test_registers_by_hand(board: RemoteBoard, server: Server) -> None:
    unit = pynq_torch.load("vadd").vadd_0.register_map
    a, b, c = (pynq.allocate((500,), "f4") for _ in range(3))
    a[:], b[:] = 1.5, 2
    for each in (a, b, c):
        each.flush()
    unit.a_1, unit.b_1 = a.device_address, b.device_address
    unit.c_1, unit.n = c.device_address, 500
    unit.CTRL.AP_START = 1
    while not unit.CTRL.AP_DONE:
        pass
    assert (_inside(server, c) == 3.5).all() and not c.any()
    # The program writes what it had before, unaware of the run: the board has to get it.
    c[:] = 0
    c.flush()
    assert not _inside(server, c).any()
    a.freebuffer()
    with pytest.raises(errors.BufferFreed):
        a.flush()


def test_what_a_run_has_written_is_not_taken_for_known(
    board: RemoteBoard, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = pynq_torch.load("vadd").vadd
    a, b, c = (pynq.allocate((500,), "f4") for _ in range(3))
    a[:], b[:] = 1, 2
    run = (a.device_address, b.device_address, c.device_address, 500)
    kernel.start_raw(run, flush=(a, b, c), results=(c,)).wait()
    assert (c == 3).all()
    kernel.start_raw(run, flush=(a, b, c), results=(c,))
    c[:] = 0
    eventually(kernel.has_ended)
    kernel.wait()
    assert (c == 3).all()  # as a cache that is invalidated
    monkeypatch.setattr(registers, "AT_ONCE", 100)  # results that do not come along with the end
    a[:] = 5
    kernel.start_raw(run, flush=(a, b, c), results=(c,)).wait()
    assert (c == 7).all()
    before = board.calls.copy()
    a.flush()
    c.invalidate()
    assert (board.calls - before).count == 0
    c[100] = 7
    c.flush()
    b.invalidate()
    a.invalidate()
    assert kernel.is_idle()
    kernel.start_raw((c.device_address, b.device_address, a.device_address, 500)).wait()
    a.invalidate()  # not named as a result: the board's old values are known, these are not asked
    assert _inside(server, a)[100] == 9


def test_a_view_with_gaps(board: RemoteBoard, server: Server) -> None:
    whole = pynq.allocate((4, 6), "i4")
    whole[:] = np.arange(24).reshape(4, 6)
    whole.flush()
    view = whole[1:3, 2:5]
    whole[:] = -1
    view.flush()
    expected = np.arange(24).reshape(4, 6)
    expected[1:3, 2:5] = -1
    there = _inside(server, whole).reshape(4, 6)
    assert there.tolist() == expected.tolist()
    there[:] = 9
    board.memory.written([view.span])
    view.invalidate()
    assert (view == 9).all() and np.count_nonzero(whole == 9) == 6
    backwards = whole[::-1, ::2]
    assert backwards.span == (whole.bo, 0, 4 * 23)
    backwards.flush()
    _inside(server, whole)
    assert (there == whole)[:, ::2].all()


def test_a_dma(board: RemoteBoard) -> None:
    dma, kernel = (overlay := pynq_torch.load("packets")).axi_dma_0, overlay.packetize_0
    sent, received = pynq.allocate((8,), "u4"), pynq.allocate((8,), "u4")
    sent[:] = range(8)
    for offset, value in ((0x10, 8), (0x18, 8), (0, 1)):
        kernel.write(offset, value)
    pynq_torch.waits.transfer(dma, send=sent, recv=received)
    assert received.tolist() == list(range(8))
    with pytest.raises(errors.TransferTimeout, match="axi_dma_0"):
        pynq_torch.waits.transfer(dma, recv=received, timeout_s=0.2)


def test_what_fails_there_is_told_here(board: RemoteBoard) -> None:
    overlay = pynq_torch.load("vadd")
    with pytest.raises(errors.CmaExhausted, match="no contiguous memory"):
        buffers.empty((1 << 28,), np.uint8)
    with pytest.raises(errors.KernelFault, match="vadd_0"):
        overlay.vadd_0.start_raw((0x1000, 0x2000, 0x3000, 100)).wait()
    with pytest.raises(errors.BusError, match="no IP answers"):
        pynq.MMIO(0x7000_0000, 0x1000).read(0)
    pynq_torch.load("packets")
    with pytest.raises(errors.StaleOverlay):
        overlay.vadd_0.start_raw((0, 0, 0, 0))
    with pytest.raises(errors.BitstreamError, match="simulation image"):
        board.simulates = False
        pynq_torch.load("vadd")


def test_two_boards_in_a_row_and_two_clients(server: Server, board: RemoteBoard) -> None:
    tensor = torch.ones(5).to("pynq")
    with pytest.raises(errors.BoardError, match="the board is in use by ipv4:127.0.0.1:"):
        RemoteBoard(address=f"127.0.0.1:{server.port}")
    again = pynq_torch.use_board("remote", address=f"127.0.0.1:{server.port}")
    assert board.closed and not server.session.buffers
    assert tensor.cpu().sum() == 5
    with pytest.raises(errors.DeviceLost, match="was closed by this program"):
        board.read_file("/proc/version")
    again.close()


def test_a_lesson(server: Server, tmp_path: Path) -> None:
    notebook = NOTEBOOKS / "04_first_kernel.ipynb"
    command = [sys.executable, "-m", "papermill", str(notebook), str(tmp_path / "done.ipynb")]
    command += ["--cwd", str(tmp_path), "-p", "BOARD", "remote", "--no-progress-bar"]
    place = os.environ | {"PYNQ_TORCH_ADDRESS": f"127.0.0.1:{server.port}"}
    done = subprocess.run(command, env=place, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr


# ---- what is wrong from the start ----------------------------------------------------------------


def test_wrong_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setenv("PYNQ_TORCH_ADDRESS", f"127.0.0.1:{port}")
        assert list(check_boards())[1].status == "ok"
        with pytest.raises(errors.BoardError, match="something answers .* but not as a board"):
            pynq_torch.use_board("remote", address=f"127.0.0.1:{port}")
    with pytest.raises(errors.BoardError, match=f"no board at 127.0.0.1:{port}: .*refused"):
        pynq_torch.use_board("remote", address=f"127.0.0.1:{port}")
    assert "refused" in list(check_boards())[1].found
    for address in ("127.0.0.1:x", ":5", "127.0.0.1:0", "127.0.0.1:70000", "127.0.0.1:\u00b2"):
        with pytest.raises(errors.BoardError, match="expected a host or host:port"):
            pynq_torch.use_board("remote", address=address)
    (tmp_path / "other").write_text("nothing")
    for file, says in (("other", "is no access file"), ("none", "cannot be read")):
        with pytest.raises(errors.BoardError, match=says):
            Server(VirtualBoard, port=0, access=tmp_path / file)


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this PC has no IPv6")
def test_ipv6() -> None:
    with Server(VirtualBoard, host="::1", port=0) as server:
        board = pynq_torch.use_board("remote", address=f"[::1]:{server.port}")
        server.session.leave_if_gone()
        assert server.session.id  # it is connected, and keeps the board
        board.close()
    with pytest.raises(errors.BoardError, match=r"no board at \[::1\]:7967: .*refused"):
        pynq_torch.use_board("remote", address="::1")


def test_a_server_of_something_else() -> None:
    other = grpc.server(futures.ThreadPoolExecutor(1))
    port = other.add_insecure_port("127.0.0.1:0")
    other.start()
    with pytest.raises(errors.BoardError, match=f"127.0.0.1:{port} is none of PYNQ.remote"):
        pynq_torch.use_board("remote", address=f"127.0.0.1:{port}")
    other.stop(None).wait()


def test_another_version(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for noise in (b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(99)):
        with socket.create_connection(("127.0.0.1", server.port)) as other:
            other.sendall(noise)
    monkeypatch.setattr(together, "VERSION", 2)
    with pytest.raises(errors.BoardError, match="speaks version 2 .* this client version 1"):
        pynq_torch.use_board("remote", address=f"127.0.0.1:{server.port}")


def test_encrypted_and_with_a_token(tmp_path: Path) -> None:
    mine, other = tmp_path / "board.access", tmp_path / "other.access"
    make_access(mine)
    make_access(other)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    with Server(VirtualBoard, host="0.0.0.0", port=0, access=mine) as server:
        address = f"127.0.0.1:{server.port}"
        for access in (None, str(other)):
            with pytest.raises(errors.BoardError, match="want an access file, or have another"):
                pynq_torch.use_board("remote", address=address, access=access)
        stolen = tmp_path / "stolen.access"
        stolen.write_text(mine.read_text().partition("token ")[0] + "token guessed\n")
        with pytest.raises(errors.BoardError, match="the token is not this server's"):
            pynq_torch.use_board("remote", address=address, access=str(stolen))
        board = pynq_torch.use_board("remote", address=address, access=str(mine))
        assert board.name == "Pynq-Z2"
        board.close()


# ---- ends ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["between calls", "during a run"])
def test_a_server_that_dies(when: str) -> None:
    command = [sys.executable, "-m", "pynq_torch", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().partition(" on ")[2].partition(";")[0]
        pynq_torch.use_board("remote", address=address)
        kernel = pynq_torch.load("packets").packetize_0
        tensor = torch.ones(5).to("pynq")
        if when == "during a run":
            kernel.start_raw((8, 8))  # it waits for a stream that never comes
            threading.Timer(0.5, process.send_signal, [signal.SIGKILL]).start()
        else:
            process.send_signal(signal.SIGKILL)
            process.wait()
        with pytest.raises(errors.DeviceLost, match="its buffers and its overlay are lost"):
            kernel.wait(60.0) if when == "during a run" else kernel.read(0x10)
        assert tensor.cpu().sum() == 5
        with pytest.raises(errors.DeviceLost):
            torch.zeros(100_000, device="pynq")
    pynq_torch.use_board("csim")
    assert tensor.clone().sum() == 5


def test_a_server_that_does_not_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "LIMIT_S", 5.0)
    board = pynq_torch.use_board("remote", address=f"127.0.0.1:{server.port}")
    with server.session._lock, pytest.raises(errors.DeviceLost, match="not answered within 5 s"):
        board.read_file("/proc/version")
    assert board.closed


def test_a_board_that_was_made_again(server: Server, board: RemoteBoard) -> None:
    server.session.leave()
    with pytest.raises(errors.DeviceLost, match="was made again, because the connection had ended"):
        buffers.pool_of(board).take((4,), np.dtype(np.uint8))
    assert board.closed
    eventually(lambda: not server.session.id)  # and is free for others


# ---- messages ------------------------------------------------------------------------------------


class _Context:
    """What the service asks of a call."""

    def peer(self) -> str:
        return "unix:"

    def abort(self, code: Any, text: str) -> None:
        raise AssertionError(text)


VALUES = st.one_of(st.integers(-5, 5000), st.sampled_from(["known", "x", None, 2.5, 2**70, []]))
STEPS = st.lists(
    st.one_of(
        st.builds(lambda name, rest: [name, *rest], st.sampled_from([*together._STEPS, "run"]),
                  st.lists(VALUES, max_size=5)),
        VALUES,
    ), max_size=6,
)  # fmt: skip


MESSAGES = st.tuples(STEPS, st.lists(st.binary(max_size=20), max_size=4), st.integers(0, 400))


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[together.Together]:
    with Server(VirtualBoard, port=0) as server:
        # The board stays the same one; a client that has no connection is not looked for.
        session: Any = server.session
        session.leave = session.leave_if_gone = lambda: None
        yield together.Together(server.session)


@settings(max_examples=200)
@given(st.lists(MESSAGES, min_size=5, max_size=5))  # 1,000; under `make test-long` 10,000
def test_any_message(fuzzed: together.Together, messages: list[Any]) -> None:
    context: Any = _Context()
    fuzzed.session.enter(context.peer())
    handle = fuzzed.session.allocate(4096)
    for listed, contents, cut in messages:
        named = json.loads(json.dumps(listed).replace("known", handle))
        message = wire.pack({"session": fuzzed.session.id, "steps": named}, contents)
        answer, _ = wire.unpack(fuzzed.exchange(message[:cut] if cut % 2 else message, context))
        assert len(answer["answers"]) == len(listed) or answer["error"]["text"]
    fuzzed.session.buffers.clear()
    fuzzed.session.mmios.clear()


# ---- a real board's server -----------------------------------------------------------------------


def test_the_files_of_a_real_board(tmp_path: Path) -> None:
    manager = tmp_path / "sys/class/fpga_manager/fpga0"
    firmware = tmp_path / "lib/firmware"
    for folder in (manager, firmware, tmp_path / "proc"):
        folder.mkdir(parents=True)
    (manager / "state").write_text("operating\n")
    (tmp_path / "proc/meminfo").write_text("CmaTotal: 1 kB\n")
    files = LocalFiles(tmp_path)
    assert files.read("/proc/meminfo") == b"CmaTotal: 1 kB\n" and files.read("/etc/passwd") is None
    words = [0xFFFFFFFF, 0xAA995566, 0x20000000, 0x30018001, 0x23727093, 0]
    frames = np.array(words, "<u4").tobytes()
    assert device_code(frames) == 0x23727093 and device_code(b"abc") is None
    files.write("/lib/firmware/mine.bin", [frames])
    files.write(f"{MANAGER}flags", [b"0"])
    files.write(f"{MANAGER}firmware", [b"mine.bin"])
    assert (firmware / "mine.bin").read_bytes() == frames
    assert (manager / "firmware").read_text() == "mine.bin"
    (manager / "firmware").write_text("")
    files.end_design()
    assert (manager / "firmware").read_text() == "mine.bin"
    words[4] = 0x03722093  # an XC7Z010
    image = bit2bin((BITSTREAMS / "vadd/vadd.bit").read_bytes())
    for other, says in ((np.array(words, "<u4").tobytes(), "0x03722093"), (image, "no device")):
        with pytest.raises(errors.BitstreamError, match=f"other.bin is for .*{says}"):
            files.write("/lib/firmware/other.bin", [other])
    (firmware / "full.bin.part").symlink_to("/dev/full")  # whatever is written: no space left
    with pytest.raises(OSError, match="No space left"):
        files.write("/lib/firmware/full.bin", [frames])
    assert [path.name for path in firmware.iterdir()] == ["mine.bin"]


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import numpy as np, pynq, pynq_torch
from pynq_torch.board.device import VirtualBoard
from pynq_torch.remote import Server, local
with Server(VirtualBoard, port=0) as server:
    board = pynq_torch.use_board("remote", address=f"127.0.0.1:{server.port}")
    kernel = pynq_torch.load("vadd").vadd_0
    a, b, c = (pynq.allocate((9,), "f4") for _ in range(3))
    a[:], b[:] = 1, 2
    kernel.start(a, b, c, 9).wait()
    print(c.sum())
    board.close()
"""


def test_without_torch() -> None:
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_TORCH]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.stdout == "27.0\n", done.stderr
