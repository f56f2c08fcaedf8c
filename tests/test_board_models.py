"""Units, engines and waits of the board where nothing is compiled and no process runs."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import os
import queue
import re
import signal
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import eventually
from ip_handoff import Ip, write_design

import pynq_torch
from pynq_torch.board import programmable_logic
from pynq_torch.board.axis_parameters import StreamMode
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.engine import (
    EngineProcess,
    Flag,
    PlProcess,
    State,
    _descendants,
    end_process,
    is_stopped,
)
from pynq_torch.board.engine_faults import Ended, sanitizer_report
from pynq_torch.board.handoff import Handoff, InterruptNet, IpInstance, StreamLink
from pynq_torch.board.handoff_ranges import Slave
from pynq_torch.board.hls_ip import HlsKernel
from pynq_torch.board.ip import dma_slot
from pynq_torch.board.ip.axi_bram import AxiBram
from pynq_torch.board.loading import search_paths
from pynq_torch.board.memory import DDR_BYTES, PhysicalMemory
from pynq_torch.board.no_model import NoModel
from pynq_torch.board.programmable_logic import ProgrammableLogic
from pynq_torch.board.rtl import layout
from pynq_torch.board.rtl.observe.wave_box import WaveState
from pynq_torch.board.streams import Endpoint, Ring
from pynq_torch.errors import BoardError, BoardHang, InterfaceError, KernelFault, NoModelError
from pynq_torch.hls import read_interface
from pynq_torch.hls.build import Build

ENGINES = Path(pynq_torch.__file__).parent / "board" / "engines"


def _count(ring: Ring, at: int, value: int) -> None:
    ring._map[at : at + 8] = value.to_bytes(8, "little")


# ---- an engine that never runs: what the board reads of it ------------------------------------


@pytest.fixture
def memory() -> Iterator[PhysicalMemory]:
    memory = PhysicalMemory()
    yield memory
    memory.close()


def test_what_an_engine_can_get_on_with(memory: PhysicalMemory) -> None:
    ring = Ring(Endpoint("a", "M"), Endpoint("unit", "S"), 4, 20)
    out = Ring(Endpoint("unit", "M"), None, 4)
    engine = EngineProcess(Path("none"), "unit", memory, 5000, [ring, out], [Endpoint("unit", "S")])
    assert len(engine.registers) == 8192
    engine.words[3], engine.words[17] = State.WAIT_READ, 0
    assert (engine.can_move, engine.blocked_on) == (False, "unit.S")
    _count(ring, 16, 1)
    assert engine.can_move
    engine.words[3] = State.WAIT_WRITE
    for waiting, room in ((0, True), (20, True), (21, False)):
        _count(ring, 16, waiting)
        assert engine.can_move == room
    for port, moves in ((1, True), (2, False)):
        engine.words[17] = port
        assert (engine.can_move, engine.blocked_on) == (moves, f"stream {port}")
    engine.words[17] = 0
    assert not engine.can_move
    for state in (State.BOOTING, State.RUNNING, State.FAULT):
        engine.words[3] = state
        assert engine.can_move == (state != State.FAULT)
        assert engine.faulted == (state == State.FAULT) and engine.blocked_on is None
    engine.words[3] = State.IDLE
    assert not engine.can_move
    engine.start()
    assert (engine.can_move, engine.started, engine.completed) == (True, 1, 0)
    engine._counters[3] = 5  # of one start, under AUTO_RESTART
    assert not engine.can_move
    engine.start()
    assert (engine.can_move, engine.started) == (True, 6)
    for flag in (Flag.AUTO_RESTART, Flag.FREE_RUNNING):  # only data sets it going
        engine.set_flag(flag, True)
        assert engine.can_move
        _count(ring, 24, 21)
        assert not engine.can_move
        _count(ring, 24, 20)
        engine.set_flag(flag, False)
        assert not engine.words[2]
    engine.close()
    ring.close()
    out.close()


@pytest.mark.parametrize(
    ("kind", "file", "name"),
    [
        (State, "engine.hpp", "State"),
        (Flag, "engine.hpp", "Flag"),
        (dma_slot.Mode, "axi_dma.cpp", "Mode"),
        (dma_slot.Phase, "axi_dma.cpp", "Phase"),
        (dma_slot.Fault, "axi_dma.cpp", "Fault"),
        (StreamMode, "axis.cpp", "Mode"),
        (layout.PlState, "rtl/layout.hpp", "PlState"),
        (layout.FaultKind, "rtl/layout.hpp", "FaultKind"),
        (layout.Operation, "rtl/layout.hpp", "Operation"),
        (layout.Answer, "rtl/layout.hpp", "Result"),
        (WaveState, "rtl/waves.hpp", "WaveState"),
    ],
)
def test_numbers_are_those_of_the_engines_source(
    kind: type[enum.IntEnum], file: str, name: str
) -> None:
    source = (ENGINES / file).read_text()
    body = re.search(rf"enum (?:class )?{name} : uint32_t {{(.*?)}};", source, re.DOTALL)
    assert body is not None
    listed = re.findall(r"(\w+) = (\d+)", body[1])
    there = {re.sub(r"^k(Pl)?(?=[A-Z])", "", n).replace("_", "").lower(): int(v) for n, v in listed}
    called = {"nofault": "none", "answered": "done"}
    here = {n.replace("_", "").lower(): int(each) for n, each in kind.__members__.items()}
    ended = {"stuck": 7, "silent": 8} if kind is layout.FaultKind else {}  # what the board finds
    assert {called.get(n, n): v for n, v in there.items()} | ended == here


def test_what_an_engine_leaves_behind(memory: PhysicalMemory) -> None:
    engine = EngineProcess(Path("none"), "unit", memory)
    assert len(engine.registers) == 4096
    os.write(engine._log_fd, b"said\n")
    engine.words[2] = engine.words[4] = State.FAULT  # these are no states
    assert not engine.faulted
    engine.words[12] = 8
    text = str(engine.fault())
    assert text.startswith("unit crashed (SIGFPE). ") and text.endswith("printed:\n  said")
    engine._map[96:760] = b"x" * 664
    assert str(engine.fault()).startswith(f"unit failed: {'x' * 664}. ")
    engine._map[760:1016] = b"z" * 256
    assert f" Before that, {'z' * 256}." in str(engine.fault())
    assert engine.take_outside() == "z" * 256 and engine.take_outside() == ""
    engine._map[100:102] = b"\0y"
    assert str(engine.fault()).startswith("unit failed: xxxx. ")
    engine.words[13], engine.words[16], engine._counters[7] = 2, 1, 0x1000
    assert "unit wrote to memory outside its buffers: physical address 0x00001000" in str(
        engine.fault()
    )
    engine._counters[5] = 2_000_000_000
    assert engine.seconds == 2.0
    os.ftruncate(engine._log_fd, 17 << 20)
    assert len(engine.log) == 16 << 20
    engine.set_offsets([(0, 0, 0, 0)] * 104)
    os.set_blocking(engine.start_fd, False)
    engine.start()
    assert os.eventfd_read(engine.start_fd) == 1
    events = [engine.start_fd, engine.done_fd, engine._life_read, engine._life_write]
    for _ in range(2):
        engine.close()
    for fd in (engine.fd, engine._log_fd, *events):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


@contextlib.contextmanager
def _started(command: str) -> Iterator[PlProcess]:
    """Start a process in a session of its own, and end it where the test fails."""
    process = PlProcess(["sh", "-c", command], [], 2)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_process_is_stopped_and_ended() -> None:
    with _started("exec sleep 1000") as process:
        assert not is_stopped(process.pid) and not is_stopped(None)
        os.kill(process.pid, signal.SIGSTOP)
        eventually(lambda: is_stopped(process.pid))
        end_process(process)
        assert process.returncode == -signal.SIGKILL and not is_stopped(process.pid)
        end_process(process)  # again is harmless


@dataclasses.dataclass
class Working:
    """An engine that takes so many seconds of the processor between two looks."""

    takes_s: float
    state: State = State.RUNNING
    can_move: bool = True
    used_s: float = 0.0

    @property
    def cpu_seconds(self) -> float:
        self.used_s += self.takes_s
        return self.used_s


@pytest.mark.parametrize(
    ("engine", "works"),
    [
        (Working(0.0), False),  # stopped, or the PC has no processor for it
        (Working(4e-4), True),
        (Working(1.0, State.BOOTING), False),
        (Working(float("inf")), True),  # it has ended
        (Working(0.0, can_move=False), True),
    ],
)
def test_how_long_a_program_lets_an_engine_work(
    engine: Working, works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A clock of its own: on a busy PC the limit passes between any two looks.
    slept: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append)
    monkeypatch.setattr(programmable_logic, "time", clock)
    monkeypatch.setattr(programmable_logic, "_HOST_LIMIT_S", 0.05)
    assert ProgrammableLogic._work_along(SimpleNamespace(), [engine]) is works  # type: ignore[arg-type]


def test_what_an_engine_started_ends_with_it() -> None:
    with _started("setsid sleep 100 & sleep 1000") as process:
        eventually(lambda: len(_descendants(process.pid)) == 2)
        found = [Path(f"/proc/{pid}/stat") for pid in _descendants(process.pid)]
        assert all(path.exists() for path in found)
        end_process(process)

    def ended(stat: Path) -> bool:
        try:
            return ") Z " in stat.read_text()  # nobody has waited for it
        except OSError:
            return True

    eventually(lambda: all(map(ended, found)))


def test_what_an_engine_is_told_at_its_start(
    memory: PhysicalMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[list[str], list[int], int]] = []

    def start(command: list[str], fds: list[int], log_fd: int) -> Any:
        started.append((command, fds, log_fd))
        return SimpleNamespace(poll=lambda: None, pid=(1 << 22) + 1)  # there is no such process

    monkeypatch.setattr("pynq_torch.board.engine.PlProcess", start)
    memory.add_window("bram", 0x4200_0000, 5000)
    ring = Ring(None, Endpoint("unit", "S"), 4)
    engine = EngineProcess(Path("/x/engine"), "unit", memory, 4096, [ring], ["unit.S"])
    engine.set_offsets([(16, 20, 24, 8), (1, 2, 3, 4)])
    for flag in (Flag.CHAIN, Flag.ABORT):
        engine.set_flag(flag, True)
    for fd in (engine.start_fd, engine.done_fd):
        os.eventfd_write(fd, 1)
    engine.registers[:2] = b"ab"
    engine.words[3] = State.FAULT
    engine.words[12:24] = memoryview(bytes([255]) * 48).cast("I")
    engine._map[96:100] = b"died"
    for counter in (2, 3, 4):
        engine._counters[counter] = 9
    engine.spawn()
    # The layout of engine.hpp's Mailbox.
    assert list(engine.words[:4]) == [0x50594E51, 1, Flag.CHAIN, State.BOOTING]
    assert (engine.state, engine.started, engine.completed) == (State.BOOTING, 0, 0)
    assert list(engine.words[8:24]) == [*[0] * 2, *engine.words[10:12], *[0] * 10, 2, 1]
    assert engine._map[96:1024] == bytes(928)
    windows = struct.unpack_from("<6Q", engine._map, 2048)
    assert windows == (0, DDR_BYTES, 0, 0x4200_0000, 8192, DDR_BYTES)
    assert struct.unpack_from("<8I", engine._map, 2432) == (16, 20, 24, 8, 1, 2, 3, 4)
    assert bytes(engine.registers[:2]) == b"ab"  # registers keep their values
    engine.user[1023] = 5  # the last byte of Mailbox::user
    assert (len(engine.user), engine._map[2047]) == (1024, 5)
    # The engine sleeps on its doorbell, the board never waits; what was rung before is over.
    assert os.get_blocking(engine.start_fd) and not os.get_blocking(engine.done_fd)
    os.set_blocking(engine.start_fd, False)
    assert not any(os.get_inheritable(fd) for fd in (engine.fd, engine.start_fd, engine.done_fd))
    for fd in (engine.start_fd, engine.done_fd):
        with pytest.raises(BlockingIOError):
            os.eventfd_read(fd)
    ((command, fds, log_fd),) = started
    assert command[0] == "/x/engine"
    numbers = [int(text) for text in command[1:]]
    assert numbers[:4] == [engine.fd, 8192, memory.fd, memory.grants_fd]
    assert numbers[4:7] == [memory.grants_nbytes, engine.start_fd, engine.done_fd]
    assert numbers[8:] == [ring.fd]
    passed = {n for i, n in enumerate(numbers) if i not in (1, 4)}
    assert set(fds) == passed and log_fd == engine._log_fd
    assert (engine.pid, engine.cpu_seconds) == ((1 << 22) + 1, float("inf"))
    this: Any = SimpleNamespace(pid=os.getpid())
    engine._process, before = this, time.process_time()
    assert before <= engine.cpu_seconds <= time.process_time()
    engine._process = None
    assert (engine.cpu_seconds, engine.pid, engine.stopped) == (0.0, None, False)
    with pytest.raises(InterfaceError, match="unit has 105 arguments .* takes at most 104"):
        engine.set_offsets([(0, 0, 0, 0)] * 105)
    engine.close()
    ring.close()


def test_a_fault_shows_what_its_own_process_printed(
    memory: PhysicalMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    ended: Any = SimpleNamespace(
        poll=lambda: 3, pid=(1 << 22) + 1, wait=lambda: waits.append(1), mark="of no process"
    )
    monkeypatch.setattr("pynq_torch.board.engine.PlProcess", lambda *_: ended)
    engine = EngineProcess(Path("none"), "unit", memory)
    os.write(engine._log_fd, b"before\n")
    engine.spawn()
    os.write(engine._log_fd, b"now\n")
    text = str(engine.fault())
    assert "unit's process ended by itself (exit status 3). A kernel must return, not" in text
    assert text.endswith("The kernel printed:\n  now")
    assert engine.log == "before\nnow\n"
    assert engine.faulted and not waits
    engine.spawn()
    assert waits == [1]  # the one before is ended first
    engine.kill()
    assert (waits, engine.pid, engine.faulted) == ([1, 1], None, False)
    engine.close()


_STRAY = "{} memory outside its buffers: physical address 0x{:08x} is not its own: 0x"
_SANITIZE = "use_board('csim', sanitize=True) "


@pytest.mark.parametrize(
    ("left", "says", "address"),
    [
        ({"access": 1, "address": 0x1000}, _STRAY.format("read from", 0x1000), 0x1000),
        ({"access": 2, "address": 1 << 62}, _STRAY.format("wrote to", 1 << 62), 1 << 62),
        ({"access": 3, "address": (1 << 64) - 8}, _STRAY.format("touched", (1 << 64) - 8), -8),
        ({"message": "no", "signal": 6, "address": 8}, "failed: no. The kernel's own code", None),
        ({"signal": 11, "address": 4095}, f"crashed (SIGSEGV): a null pointer. {_SANITIZE}", None),
        ({"signal": 7, "address": 8}, "crashed (SIGBUS): a null pointer. ", None),
        ({"signal": 11, "address": 4096}, "crashed (SIGSEGV): an index outside a local", None),
        ({"signal": 8}, "crashed (SIGFPE). An assertion, a division by zero", None),
        ({"signal": 99}, "crashed (no signal). An assertion", None),
        ({}, f"'s process ended by itself (exit status None). {_SANITIZE}may name", None),
        ({"exit_code": 0}, "'s process ended by itself (exit status 0). A kernel must", None),
        ({"exit_code": -9}, f"'s process was killed by SIGKILL. {_SANITIZE}may", None),
        ({"exit_code": -99}, f"'s process was killed by signal 99. {_SANITIZE}may", None),
    ],
)
def test_why_an_engine_ended(
    memory: PhysicalMemory, left: dict[str, Any], says: str, address: int | None
) -> None:
    usual = {"message": "", "signal": 0, "access": 0, "address": 0, "exit_code": None}
    stray, lines = "access" in left, [str(i) for i in range(14)]
    ended = Ended("unit", **usual | {"printed": "\n".join(lines), "stray": stray} | left)
    error = ended.error(memory)
    assert str(error).startswith(f"unit{'' if says[0] == chr(39) else ' '}{says}")
    assert str(error).endswith("\nThe kernel printed:\n  " + "\n  ".join(lines[2:]))
    assert (error.cu, error.address) == ("unit", address)
    report = "k.cpp:4:7: runtime error: overflow\n #0 k.cpp:4\n #1 pynq_torch::run"
    text = str(dataclasses.replace(ended, printed=f"0\n{report}").error(memory))
    place = "The lines below name the place in the source.\nThe kernel printed:\n  #0 k.cpp:4"
    assert text.endswith(place) == (not stray and not ended.message)
    text = str(dataclasses.replace(ended, printed="").error(memory))
    assert "printed" not in text and text == str(error).partition("\n")[0]


def test_an_ip_that_nothing_models() -> None:
    notes: list[Any] = []
    polls = SimpleNamespace(note=lambda text: notes.append(text) or 1)
    services: Any = SimpleNamespace(vain_polls=polls)
    kernel = NoModel(services, IpInstance("k", "xilinx.com:hls:k:1.0"), ["a", "b"])
    assert kernel.read(0x10) == 0 and not notes
    assert kernel.read(0) == 0x4 and notes.pop()().startswith("k has no model and never")
    kernel.write(0x10, 1)
    kernel.write(0x10, 6, "other")
    kernel.write(0, 0x80)
    assert [kernel.read(0x10, slave) for slave in ("", "other")] == [1, 6]
    with pytest.raises(NoModelError, match=r"(?s)k \(.*Folders searched:\n  a\n  b\n") as caught:
        kernel.write(0, 0x1)
    assert (caught.value.cu, kernel.read(0)) == ("k", 0x84)
    with pytest.raises(NoModelError, match="Folders searched:\n  none\n"):
        NoModel(services, kernel.ip).write(0, 1)
    notes.clear()
    other = NoModel(services, IpInstance("o", "xilinx.com:ip:o:1.0"))
    other.write(0, 1)
    assert other.read(0) == 1
    assert notes.pop()().startswith("o (xilinx.com:ip:o:1.0) has registers only on this board")


def test_the_children_of_children_end_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children = {("5", "5"): "6 7", ("5", "8"): "9", ("6", "6"): "10", ("10", "10"): "11"}
    for (pid, thread), text in children.items():
        folder = tmp_path / "proc" / pid / "task" / thread
        folder.mkdir(parents=True)
        (folder / "children").write_text(f"{text} ")
    (tmp_path / "proc" / "5" / "task" / "7" / "children").mkdir(parents=True)  # is not readable
    monkeypatch.setattr("pynq_torch.board.engine.Path", lambda text: tmp_path / text[1:])
    assert sorted(_descendants(5)) == [6, 7, 9, 10, 11]
    assert _descendants(11) == []


def test_what_a_sanitizer_printed() -> None:
    frames = "    #0 0x1 in k k.cpp:3\n  #1 0x2 in pynq_torch::run\n  #2 0x3 in main\n"
    assert sanitizer_report(f"n = 3\n{frames}") is None
    found = sanitizer_report(
        "n = 3\n==9==ERROR: AddressSanitizer: stack-buffer-overflow on address 0x7f at pc 0x55 bp"
        f" 0x7f\n  READ of size 4\n{frames}"
    )
    assert found == (
        "AddressSanitizer: stack-buffer-overflow on address 0x7f",
        ["READ of size 4", "#0 0x1 in k k.cpp:3"],
    )
    found = sanitizer_report(f"k.cpp:4:7: runtime error: signed integer overflow\n{frames}")
    assert found == (
        "k.cpp:4:7: runtime error: signed integer overflow",
        ["#0 0x1 in k k.cpp:3"],
    )


_UNIT = """
void unit(int n, int *sum, const int *in) {
#pragma HLS INTERFACE m_axi port=in bundle=gmem offset=slave
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=sum
#pragma HLS INTERFACE CONTROL port=return
#pragma HLS INTERFACE s_axilite port=return
    for (int i = 0; i < n; ++i) *sum += in[i];
}
"""


def _unit(
    memory: PhysicalMemory,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    release: tuple[int, int] = (2022, 1),
    control: str = "ap_ctrl_hs",
) -> HlsKernel:

    def spawn(engine: EngineProcess) -> None:
        engine._process = None
        engine._counters[2] = engine._counters[3] = engine._counters[4] = 0

    monkeypatch.setattr(EngineProcess, "spawn", spawn)
    source = folder / "unit.cpp"
    source.write_text(_UNIT.replace("CONTROL", control))
    nothing = lambda *_: None  # noqa: E731
    board: Any = SimpleNamespace(
        memory=memory, tool_version=release, polled=nothing, raise_irq=nothing, settle=nothing,
        watch=nothing, unwatch=nothing, vain_polls=SimpleNamespace(note=nothing),
        clock_hz=lambda _: 1e8,
    )  # fmt: skip
    ip = IpInstance(
        "unit_0",
        "xilinx.com:hls:unit:1.0",
        slaves=(Slave("s_axi_control", 0x4000_0000, 0x1000, "Reg", False),),
    )
    unit = HlsKernel(board, ip, Build(source, read_interface(source, "unit"), 0, True, ""), {})
    unit.engine.words[3] = State.IDLE
    return unit


def _ends(unit: HlsKernel) -> None:
    unit.engine._counters[3] += 1


_C = "s_axi_control"


@pytest.mark.parametrize(
    ("release", "control"),
    [((2020, 2), 0x6), ((2021, 1), 0xE), ((2022, 1), 0xE), ((2022, 2), 0xE)],
)
def test_the_control_register_of_each_release(
    memory: PhysicalMemory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    release: tuple[int, int],
    control: int,
) -> None:
    unit = _unit(memory, tmp_path, monkeypatch, release)
    interrupt = 0x200 if release >= (2022, 1) else 0
    assert (unit.read(0, _C), unit.busy) == (0x4, False)
    unit.write(0, 1, _C)
    assert (unit.engine.started, unit.read(0, _C), unit.busy) == (1, 0x1, True)
    _ends(unit)
    unit.write(0, 0x10, _C)  # AP_CONTINUE means nothing to ap_ctrl_hs
    assert [unit.read(0, _C) for _ in range(2)] == [control, 0x4]
    assert unit.last_run is not None and unit.last_run.number == 1
    for enabled, flags in ((0, 0), (1, 1), (2, 2), (3, 3)):
        unit.write(8, enabled | 0xFC, _C)
        unit.write(0, 1, _C)
        _ends(unit)
        assert [unit.read(at, _C) for at in (8, 12)] == [enabled, flags]
        assert not unit.irq("")  # GIE
        if release == (2022, 1):
            assert unit.read(12, _C) == 0  # reading clears it in this release alone
            unit.write(12, flags, _C)  # writing a one turns a bit over
        unit.write(4, 0xFF, _C)
        assert (unit.read(4, _C), unit.irq("")) == (1, flags > 0)
        assert unit.read(0, _C) & 0x200 == (interrupt if flags else 0)
        unit.write(12, flags | 0xF0, _C)
        assert (unit.read(12, _C), unit.irq("")) == (0, False)
        unit.write(4, 0, _C)
    unit.close()


def test_a_reset_forgets_the_runs_before(
    memory: PhysicalMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = _unit(memory, tmp_path, monkeypatch)
    unit.write(8, 3, _C)
    unit.write(4, 1, _C)
    for _ in range(2):
        unit.write(0, 1, _C)
        _ends(unit)
    assert unit.read(0, _C) & 2 and unit.irq("")
    unit.write(0, 1, _C)
    unit.reset()
    assert ([unit.read(at, _C) for at in (0, 4, 8)], unit.irq("")) == ([4, 1, 3], False)
    assert "since it was reset" in unit._why_idle()
    unit.close()


def test_an_engine_that_is_gone_is_noticed_by_starts_and_polls(
    memory: PhysicalMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = _unit(memory, tmp_path, monkeypatch)
    polls: list[int] = []
    unit.board.polled = lambda model, number: polls.append(number)  # type: ignore[method-assign]
    gone: Any = SimpleNamespace(poll=lambda: -9, pid=None)
    unit.write(0, 1, _C)
    unit.engine._process = gone
    assert {unit.read(0, _C) for _ in range(63)} == {1}
    with pytest.raises(KernelFault, match="unit_0's process was killed by SIGKILL"):
        unit.read(0, _C)
    assert polls == list(range(1, 64))
    assert (unit.read(0, _C), unit.engine._process) == (4, None)
    for _ in range(2):  # each run, and each reset, begins to count again
        polls.clear()
        unit.write(0, 1, _C)
        for _ in range(3):
            unit.read(0, _C)
        _ends(unit)
        assert unit.read(0, _C) & 2 and polls == [1, 2, 3]
    unit.write(0, 1, _C)
    unit.read(0, _C)
    unit.reset()
    polls.clear()
    unit.engine._counters[2] = 1
    unit.read(0, _C)
    assert polls == [1]
    unit.engine._counters[2] = 0
    unit.engine._process = gone
    with pytest.raises(KernelFault, match="was killed by SIGKILL"):
        unit.write(0, 1, _C)
    assert unit.engine.started == 0
    unit.close()


def test_done_of_a_chained_kernel_waits_for_its_continue(
    memory: PhysicalMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = _unit(memory, tmp_path, monkeypatch, control="ap_ctrl_chain")
    assert unit.engine.words[2] & Flag.CHAIN
    unit.write(0, 1, _C)
    _ends(unit)
    assert [unit.read(0, _C) & 2 for _ in range(3)] == [2, 2, 2]
    unit.write(0, 0, _C)
    assert (unit.read(0, _C) & 2, unit.engine._counters[4]) == (2, 0)
    unit.write(0, 0x10, _C)
    assert (unit.read(0, _C) & 2, unit.engine._counters[4]) == (0, 1)
    unit.close()


def test_data_registers_and_blocks_of_them(
    memory: PhysicalMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = _unit(memory, tmp_path, monkeypatch)
    # As UG1399 lays them out: n; sum in, out and valid; in with 64 bits; no return value.
    none = 0xFFFFFFFF
    assert unit.engine._offsets == (
        (0x10, none, none, 4), (0x18, 0x20, 0x24, 4), (0x28, none, none, 8), (none,) * 4,
    )  # fmt: skip
    words = memoryview(bytes([3, 0, 0, 0, 9, 0, 0, 0])).cast("I")
    unit.write_block(0x10, words, _C)
    assert [unit.read(at, _C) for at in (0x10, 0x14)] == [3, 9]
    unit.write_block(0xC, words, _C)  # ISR is no memory: its two bits turn over
    assert [unit.read(at, _C) for at in (0xC, 0x10)] == [3, 9]
    unit.write(0xFFC, 5, _C)
    unit.write(0x1000, 6, _C)  # beyond its registers nothing is kept
    unit.write_block(0xFFC, words, _C)
    assert [unit.read(at, _C) for at in (0xFFC, 0x1000)] == [3, 0]
    (valid,) = unit._valid
    unit.engine.registers[valid] = 1
    assert [unit.read(valid, _C) for _ in range(2)] == [1, 0]  # clear-on-read
    assert not unit.engine.words[2] & Flag.RELATCH
    unit.write(0, 0x80, _C)
    unit.write(0x10, 4, _C)
    assert unit.engine.words[2] & Flag.RELATCH and unit.engine.words[2] & Flag.AUTO_RESTART
    assert (unit._written, unit.busy) == (0, True)
    unit.reset()
    assert not unit.engine.words[2] & Flag.AUTO_RESTART
    assert (unit.busy, unit.read(0x10, _C), unit.read(0, _C)) == (False, 4, 4)
    unit.close()


# ---- a board without an overlay, whose units only say what the test wants ---------------------


class Engine(SimpleNamespace):
    """What the board reads of an engine."""

    def __init__(self, name: str, **values: Any) -> None:
        usual = {
            "name": name,
            "state": State.IDLE,
            "started": 0,
            "completed": 0,
            "blocked_on": None,
        }
        usual |= {
            "pid": 77,
            "can_move": False,
            "cpu_seconds": 0.0,
            "stopped": False,
            "faulted": False,
        }
        super().__init__(**usual | values)


class Unit(SimpleNamespace):
    """A compute unit with such an engine."""

    passes_nothing = False


class Board(VirtualBoard):
    """A board that takes them for its own."""

    _unit_types = (Unit,)
    _engine_types = (Engine,)


@pytest.fixture
def board() -> Iterator[Board]:
    board = Board(hang_timeout_s=5.0)
    yield board
    board.ip.clear()
    board.close()


def test_a_wait_that_nothing_can_end(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("pynq_torch.board.programmable_logic.time.monotonic", lambda: now)
    engine = Engine("unit_0", state=State.WAIT_READ, started=1, blocked_on="unit_0.s")
    board.ip["unit_0"] = Unit(engine=engine)  # type: ignore[assignment]
    board.ip["unit_1"] = Unit(engine=Engine("unit_1"))  # type: ignore[assignment]
    ring = Ring(Endpoint("unit_1", "m"), Endpoint("unit_0", "s"), 4)
    board.rings.append(ring)

    def waits(seconds: float) -> str:
        nonlocal now
        now += seconds
        try:
            board._check_progress()
        except BoardHang as hang:
            return str(hang)
        return ""

    assert [waits(s) for s in (9.0, 2.5, 2.5)] == [""] * 3  # no longer than the limit yet
    text = waits(0.5)
    assert "for 5 s nothing in the PL has moved or can move: on the board this waits for" in text
    assert "  unit_0: WAIT_READ on unit_0.s, 0 runs finished\n  unit_1: IDLE, 0 runs" in text
    assert "  unit_1.m -> unit_0.s: 0 beats sent, 0 waiting, 0 TLAST\n" in text
    for moves in ("beats", "runs", "computes", "boots"):
        assert [waits(s) for s in (9.0, 4.0)] == [""] * 2
        if moves == "beats":
            _count(ring, 16, 1)
        elif moves == "runs":
            engine.completed, engine.started = 1, 2
        else:
            engine.state = State.RUNNING if moves == "computes" else State.BOOTING
        assert [waits(s) for s in (4.0, 5.0)] == [""] * 2, moves
        if moves in ("computes", "boots"):
            assert waits(100.0) == ""
            engine.state = State.WAIT_READ
            assert waits(9.0) == ""
        assert waits(5.5)
    engine.state, engine.stopped = State.RUNNING, True
    assert waits(9.0) == ""
    text = waits(5.5)
    assert "the process of unit_0 is stopped by a signal" in text
    assert "its process is stopped (kill -CONT 77 lets it go on)" in text
    engine.stopped = False
    del board.ip["unit_1"]
    engine.state = State.IDLE
    assert waits(9.0) == ""
    text = waits(5.5)
    assert "since unit_1 has no model and passes nothing on" in text
    assert "1 beats sent, 1 waiting, 0 TLAST; unit_1 has no model" in text
    engine.state, engine.completed = State.BOOTING, 2  # of two starts: it owes nothing
    assert waits(9.0) == "" and waits(5.5)
    raised: list[str] = []
    for name, fault in (("unit_0", True), ("unit_2", False)):
        unit: Any = Unit(
            engine=Engine(name, faulted=fault), raise_fault=lambda name=name: raised.append(name)
        )
        board.ip[name] = unit
    other: Any = SimpleNamespace(engine=Engine("dma", faulted=True))
    board.ip["dma"] = other  # says it itself
    assert waits(9.0) == "" and raised == ["unit_0"]


def test_which_engines_are_busy(board: Board) -> None:
    engine = Engine("unit_0")
    board.ip["unit_0"] = Unit(engine=engine)  # type: ignore[assignment]
    board.ip["other"] = SimpleNamespace(engine=None)  # type: ignore[assignment]
    idle: Any = SimpleNamespace(engine=Engine("dma"))
    board.ip["dma"] = idle
    assert board.engines() == [engine, idle.engine] and list(board.cus) == ["unit_0"]
    assert not board.memory.busy()
    engine.started = 1
    assert board.memory.busy()
    engine.completed, engine.state = 1, State.RUNNING
    assert board.memory.busy()
    engine.state = State.WAIT_READ
    assert not board.memory.busy()


def test_interrupts_and_clocks_go_where_the_nets_say(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[tuple[int, bool]] = []
    monkeypatch.setattr(board.linux, "set_irq", lambda *line: lines.append(line))
    unit: Any = SimpleNamespace(ip=IpInstance("u", "a:b:c:1.0"), irq=lambda pin: pin == "high")
    board.raise_irq(unit)  # nothing is loaded
    nets = [InterruptNet("u", pin, "", i) for i, pin in ((0, "high"), (7, "low"), (8, "high"))]
    nets += [InterruptNet("u", "low", "", 15), InterruptNet("other", "high", "", 1)]
    nets += [InterruptNet("u", "high", "", 16), InterruptNet("u", "high", "gone", 0)]
    nets += [InterruptNet("u", pin, "intc", i) for i, pin in ((3, "high"), (20, "low"))]
    board.handoff = SimpleNamespace(interrupts=tuple(nets))  # type: ignore[assignment]
    inputs: list[tuple[int, bool]] = []
    intc: Any = SimpleNamespace(
        lock=contextlib.nullcontext(), set_input=lambda *one: inputs.append(one)
    )
    board.ip["intc"] = intc
    board.raise_irq(unit)
    assert inputs == [(3, True), (20, False)]
    # UG585, table 7-4: IRQ_F2P[7:0] are IDs 61 to 68, [15:8] are 84 to 91.
    assert lines == [(61, True), (68, False), (84, True), (91, False)]
    mhz = [board.clock_hz(IpInstance("u", "v", clock=f"FCLK_CLK{i}")) for i in range(5)]
    assert mhz == [100e6, 1000e6 / 7, 200e6, 50e6, 100e6]
    assert board.clock_hz(IpInstance("u", "v")) == 100e6


def test_folders_memories_and_releases(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PYNQ_TORCH_KERNELS", f"{tmp_path / 'b'}::{tmp_path / 'c'}")
    found = search_paths([tmp_path / "a"])
    assert [path.name for path in found] == ["a", "b", "c", "kernels"]
    assert search_paths(str(tmp_path / "a")) == found
    with pytest.raises(BoardError, match=r"the kernel folder .*nowhere does not exist"):
        search_paths([tmp_path / "nowhere"])
    versions = {"2020.1": (2020, 1), "2022.2.1": (2022, 2), "2019": (2019, 0), "": (2022, 2)}
    assert {text: Handoff(tmp_path, "", "", text, {}, ()).release for text in versions} == versions
    board.mem_dict = {"bram": {"base_address": 4096, "size": 64, "idx": 1}}
    bram = board.get_memory_by_name("bram")
    assert (bram.base_address, bram.size, bram.idx, board.default_memory.idx) == (4096, 64, 1, 0)
    with pytest.raises(BoardError, match="no memory is called 'ddr'; there are bram"):
        board.get_memory_by_name("ddr")
    ddr = board.mmap(0x1000, 64)
    ddr[1] = 5
    assert len(ddr) == 16 and board.memory.view(0x1004, 4)[0] == 5
    for limit in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="hang_timeout_s is .* greater than 0 and finite"):
            VirtualBoard(hang_timeout_s=limit)


def test_how_long_a_start_lets_the_engines_run(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, yields, pauses, last = 0.0, 0, 0, 0
    engine = Engine("unit_0", can_move=True)
    board.ip["unit_0"] = Unit(engine=engine)  # type: ignore[assignment]
    board.ip["unit_1"] = Unit(engine=Engine("unit_1"))  # type: ignore[assignment]

    def passes() -> None:
        nonlocal yields
        yields += 1
        engine.cpu_seconds += 1 / 64
        if yields == last:
            engine.can_move = False

    def pause(_: float) -> None:
        nonlocal now, pauses
        pauses += 1
        now += 1 / 16

    monkeypatch.setattr("pynq_torch.board.programmable_logic.os.sched_yield", passes)
    monkeypatch.setattr("pynq_torch.board.programmable_logic.time.sleep", pause)
    monkeypatch.setattr("pynq_torch.board.programmable_logic.time.monotonic", lambda: now)
    monkeypatch.setattr("pynq_torch.board.programmable_logic._HOST_CPU_S", 0.25)
    # The processor time is looked at every 16th time: it is 0.25, 0.5, and with 0.75 too much.
    for most, until in ((0, 48), (5, 5)):
        last, yields, engine.can_move = most, 0, True
        board.settle()
        assert (yields, pauses) == (until, 0)
    board.settle()
    assert yields == 5  # nothing can move
    last, yields, engine.can_move, engine.state = 0, 0, True, State.BOOTING
    board.settle()
    assert (yields, pauses) == (199, 9)  # until more than half a second has passed


def test_every_access_gives_moving_engines_time(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until nothing moves any more; then an access costs nothing."""
    engine = Engine("unit_0", can_move=True)
    board.ip["unit_0"] = Unit(engine=engine)  # type: ignore[assignment]
    yields = 0

    def passes() -> None:
        nonlocal yields
        yields += 1
        engine.cpu_seconds += 1e-4

    monkeypatch.setattr("pynq_torch.board.programmable_logic.os.sched_yield", passes)
    buffer = board.memory.allocate(4, device=board)
    slcr_lock = 0xF8000004
    board.bus.read(slcr_lock)
    assert yields == 0  # nothing was started
    board.settle()
    for access in (
        lambda: board.bus.read(slcr_lock),
        lambda: board.bus.write(slcr_lock, 0),
        lambda: board.bus.write_block(slcr_lock, memoryview(bytes(4)).cast("I")),
        buffer.flush,
        buffer.invalidate,
    ):
        before = yields
        access()
        assert yields > before
    engine.can_move = False
    board.bus.read(slcr_lock)
    engine.can_move, before = True, yields
    board.bus.read(slcr_lock)
    assert yields == before


def test_polls_give_way_and_then_sleep(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    monkeypatch.setattr(
        "pynq_torch.board.programmable_logic.os.sched_yield", lambda: done.append("yield")
    )
    monkeypatch.setattr("pynq_torch.board.programmable_logic.time.sleep", done.append)
    monkeypatch.setattr(board, "_check_progress", lambda: done.append("check"))
    now = [100.0]
    monkeypatch.setattr("pynq_torch.board.programmable_logic.time.monotonic", lambda: now[0])
    model: Any = None
    expected = {1: ["yield"], 64: ["yield", "check"], 99: ["yield"], 100: [2e-5]}
    expected |= {128: [2e-5, "check"], 1999: [2e-5], 2000: [5e-4], 2048: [5e-4, "check"]}
    for polls, does in expected.items():
        done.clear()
        board.polled(model, polls)
        assert done == does, polls
    # What ended is told after 0.05 s even where a busy PC makes each poll slow.
    for polls, after, does in (
        (1, 9.0, ["yield"]),  # a wait begins with its first poll
        (2, 0.04, ["yield"]),
        (3, 0.02, ["yield", "check"]),
        (4, 0.04, ["yield"]),
    ):
        done.clear()
        now[0] += after
        board.polled(model, polls)
        assert done == does, polls


def test_a_callback_lives_from_watch_to_unwatch(board: Board) -> None:
    fds = [os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) for _ in range(2)]
    fired: queue.Queue[str] = queue.Queue()
    board.unwatch(fds[0])  # nothing was ever watched
    for fd, name in zip(fds, ("first", "second"), strict=True):
        board.watch(fd, lambda name=name: fired.put(name))  # type: ignore[misc]
    os.eventfd_write(fds[0], 1)
    assert fired.get(timeout=20) == "first"
    board.unwatch(fds[0])
    for fd in fds:
        os.eventfd_write(fd, 1)
    assert fired.get(timeout=20) == "second" and fired.empty()

    def fails() -> None:
        fired.put("fails")
        raise ValueError("the callback fails")

    board.watch(fds[0], fails)
    assert fired.get(timeout=20) == "fails"
    assert board._events is not None
    eventually(lambda: board._events is not None and board._events.error)
    with pytest.raises(ValueError, match="the callback fails"):
        board._check_progress()
    board._check_progress()  # it is raised once
    thread = board._events._thread
    board.close()
    assert thread is not None and not thread.is_alive()
    for fd in fds:
        os.close(fd)


def test_what_a_load_does(board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A design of block RAM alone needs no compiler and no engine."""
    connected: list[tuple[str, int]] = []
    monkeypatch.setattr(
        AxiBram, "connect", lambda ram: connected.append((ram.ip.name, len(board.ip)))
    )
    ips = [Ip("axi_bram_ctrl", f"ram_{i}", 0x4000_0000 + i * 0x10000, {}, 0x2000) for i in (0, 1)]
    bit = write_design(tmp_path, "ram", ips)
    monkeypatch.setattr("pynq_torch.board.loading.os.cpu_count", lambda: None)  # not known
    parser = board.get_bitfile_metadata(str(bit))
    names = ("base_address", "size", "idx", "tag", "streaming", "raw_type")
    assert {k: tuple(v[n] for n in names) for k, v in parser.mem_dict.items()} == {
        "ram_0": (0x4000_0000, 0x2000, 1, "MIG1", False, 2),
        "ram_1": (0x4001_0000, 0x2000, 2, "MIG2", False, 2),
        "PSDDR": (0, DDR_BYTES, 0, "PSDDR", False, 2),
    }
    said: list[tuple[str, int]] = []
    board.on_load(lambda: said.append(("load", len(board.ip))))
    board.on_unload(lambda: said.append(("unload", len(board.ip))))
    bitstream = SimpleNamespace(bitfile_name=str(bit), partial=False, timestamp="")
    board.download(bitstream, parser)
    assert said == [("load", 2)] and connected == [("ram_0", 2), ("ram_1", 2)]
    assert board.handoff is parser.handoff and board.timestamp == bitstream.timestamp != ""
    assert [board.has_capability(name) for name in ("MEMORY_MAPPED", "CALLABLE")] == [True, False]
    words = board.mmap(0x4001_0100, 64)  # part of a memory, as an array of words
    words[1] = 0x01020304
    assert len(words) == 16 and board.ip["ram_1"].read(0x104) == 0x01020304
    board.download(bitstream, parser)
    assert said[1:] == [("unload", 2), ("load", 2)] and list(board.ip) == ["ram_0", "ram_1"]


def test_which_streams_and_models_a_design_gets(board: Board) -> None:
    kinds = {"a": "ip:axi_dma:7.1", "b": "hls:b:1.0", "c": "hls:c:1.0"}
    kinds["ps"] = "ip:processing_system7:5.5"
    ips = {name: IpInstance(name, f"xilinx.com:{kind}") for name, kind in kinds.items()}
    slave = Slave("S", 0x4000_0000, 0x1000, "Reg", False)
    ips["ps"] = dataclasses.replace(ips["ps"], slaves=(slave,))
    sizes = [("a", "b", 8, 4), ("b", "a", 0, 2), ("a", "c", 0, 0), ("b", "c", 1, 1)]
    links = [
        StreamLink(Endpoint(source, "m"), Endpoint(sink, "s"), wide, narrow, 16 + i)
        for i, (source, sink, wide, narrow) in enumerate(sizes)
    ]
    design: Any = SimpleNamespace(links=links, ips=ips)
    board._populate(design, {})
    # What neither end of has a model cannot move; "a" has no slave and no stream port of its own.
    shown = [(str(r.source), str(r.sink), r.data_bytes, r.depth) for r in board.rings]
    assert shown == [("a.m", "b.s", 8, 16), ("b.m", "a.s", 2, 17), ("a.m", "c.s", 4, 18)]
    assert not board.ip
    assert board.stream_rings("a") == {"m": board.rings[2], "s": board.rings[1]}
    end = Endpoint("b", "open")
    for direction, ends in (("out", (end, None)), ("in", (None, end))):
        ring = board.open_ring(end, direction, 2)
        assert (ring.source, ring.sink, ring.data_bytes) == (*ends, 2) and ring is board.rings[-1]
        assert board.stream_rings("b")["open"] is ring
    board._unload()
    assert not board.rings
