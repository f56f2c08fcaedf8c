"""The runtime of an engine process by itself: registers, runs, buffers, streams and faults.

One small program has all the kernels, ``rtl_cpp/engine_kernels.cpp``: nothing of HLS is compiled.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import eventually
from rtl_cpp_bench import build

from pynq_torch.board.engine import EngineProcess, Flag, State
from pynq_torch.board.memory import PhysicalMemory
from pynq_torch.board.streams import Ring

pytestmark = pytest.mark.timeout(60)
NO = 0xFFFFFFFF
Start = Callable[..., EngineProcess]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.getbasetemp().parent, "engine_kernels")


@pytest.fixture
def memory() -> Iterator[PhysicalMemory]:
    memory = PhysicalMemory()
    yield memory
    memory.close()


@pytest.fixture
def begin(
    program: Path, memory: PhysicalMemory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Start]:
    begun = []

    def begin(kernel: str, offsets: list[Any], rings: list[Ring] | None = None) -> EngineProcess:
        monkeypatch.setenv("KERNEL", kernel)
        ports = [f"unit.p{i}" for i in range(len(rings or []))]
        engine = EngineProcess(program, "unit", memory, 4096, rings or [], ports)
        begun.append(engine)
        engine.set_offsets(offsets)
        engine.spawn()
        eventually(lambda: engine.state is not State.BOOTING or engine.faulted)
        assert done(engine) == 1
        return engine

    yield begin
    for engine in begun:
        engine.close()


def done(engine: EngineProcess) -> int:
    """Return how often the engine rang since the last call."""
    try:
        return os.eventfd_read(engine.done_fd)
    except BlockingIOError:
        return 0


def run(engine: EngineProcess) -> None:
    engine.start()
    eventually(lambda: engine.completed == engine.started and engine.state is State.IDLE)
    eventually(lambda: done(engine) == 1)


def put(ring: Ring, value: int) -> None:
    at = 64 + ring.beats_written * ring._stride + 40  # behind the side channels
    ring._map[at : at + 4] = value.to_bytes(4, "little")
    ring._map[16:24] = (ring.beats_written + 1).to_bytes(8, "little")


def values(ring: Ring) -> list[int]:
    at = [64 + n * ring._stride + 40 for n in range(ring.beats_written)]
    return [int.from_bytes(ring._map[a : a + 4], "little") for a in at]


def test_registers_become_arguments_and_results(begin: Start) -> None:
    a, b, c = (0x10, NO, NO, 4), (0x18, NO, NO, 8), (0x24, NO, NO, 4)
    f, kept, table = (0x2C, 0x34, 0x38, 4), (NO, 0x3C, NO, 4), (0x40, NO, NO, 16)
    engine = begin("numbers", [a, b, c, f, kept, table, (0x50, NO, 0x58, 8)])
    layout = struct.Struct("<IIQIIIfIfII4iQI")
    for k in (1, 2):
        before = (0x3F0, 0, 0x7F720000009, 0, k - 1, 0, 2.5, 0, 0.0, 0, NO, 5, 6, 7, 8, NO, 0)
        layout.pack_into(engine.registers, 0x10, *before)
        run(engine)
        # Bytes above a value read as zero, and each run begins with values of its own.
        after = (5.0 - 16, 1, k, 5, 6, 7 + 5 + 0xF7 + 1000 * (k - 1), 8, 0xE56000001B, 1)
        assert layout.unpack_from(engine.registers, 0x10) == before[:8] + after
    assert 0 < engine.seconds < 10


@pytest.mark.parametrize("write", [0, 5])
def test_buffers_are_open_and_nothing_else(
    begin: Start, memory: PhysicalMemory, write: int
) -> None:
    freed, buffer, _ = (memory.allocate((1024,), "u4") for _ in range(3))
    address = buffer.device_address
    engine = begin("touch", [(0x10, NO, NO, 4), (0x18, NO, NO, 4), (0x1C, NO, NO, 4), (NO,) * 4])
    registers = engine.registers.cast("I")

    def touched(index: int) -> bool:
        registers[4], registers[6], registers[7] = address, index & NO, write
        engine.start()
        eventually(lambda: engine.completed == engine.started or engine.faulted)
        return not engine.faulted

    first = (freed.device_address - address) // 4
    assert touched(0) and touched(1023) and touched(first)
    freed.freebuffer()
    assert write or touched(1039)  # a read may reach 64 bytes out
    assert engine.take_read_ahead() == (0 if write else address + 4 * 1039)
    for index in (first, 1024 if write else 1040, -(1 << 20), -(1 << 28)):
        assert not touched(index)
        fault = engine.fault()
        assert ("wrote to" if write else "read from") in str(fault) and engine.words[12] == 11
        assert fault.address == address + 4 * index
        engine.spawn()
        eventually(lambda: engine.state is State.IDLE)


@pytest.mark.parametrize(
    "how, signal, says",
    [
        (0, 6, "unit failed: too little"),
        (1, 6, "the kernel threw an exception that is no std::exception"),
        (2, 6, "crashed (SIGABRT)"),
        (3, 11, "a null pointer"),
        (4, 8, "crashed (SIGFPE)"),
        (5, 11, "a stack overflow"),
    ],
)
def test_how_a_kernel_fails(begin: Start, how: int, signal: int, says: str) -> None:
    engine = begin("fail", [(0x10, NO, NO, 4), (NO,) * 4])
    engine.registers.cast("I")[4] = how
    engine.start()
    eventually(lambda: engine.state is State.FAULT)
    assert engine.words[12] == signal and says in str(engine.fault())
    assert how or "so far" in engine.log
    assert done(engine) == 1
    eventually(lambda: engine._process is not None and engine._process.poll() == 70)
    engine.spawn()
    engine.registers.cast("I")[4] = 9
    eventually(lambda: engine.state is State.IDLE and done(engine) == 1)
    run(engine)


def test_children_the_log_and_the_stack_have_their_limits(begin: Start) -> None:
    engine = begin("fail", [(0x10, NO, NO, 4), (NO,) * 4])
    for how in (6, 7, 8):
        engine.registers.cast("I")[4] = how
        run(engine)
    assert os.fstat(engine._log_fd).st_size == 16 << 20


def test_a_stream_and_registers_that_come_late(begin: Start) -> None:
    into, out = Ring(None, None, 4), Ring(None, None, 4)
    engine = begin("pass", [(0x10, NO, NO, 4), (NO,) * 4, (NO,) * 4, (NO,) * 4], [into, out])
    add = engine.registers.cast("I")
    add[4] = 10
    engine.start()
    eventually(lambda: engine.state is State.WAIT_READ)
    assert engine.blocked_on == "unit.p0"
    add[4] = 20  # a run has its arguments
    put(into, 1)
    eventually(lambda: engine.completed == 1)
    engine.set_flag(Flag.FREE_RUNNING, True)
    engine.start()
    eventually(lambda: engine.state is State.WAIT_READ)
    add[4] = 30  # and one that always runs has wires
    engine.set_flag(Flag.RELATCH, True)
    eventually(lambda: not engine.words[2] & Flag.RELATCH)
    for value in (2, 3):
        put(into, value)
        eventually(lambda value=value: out.beats_written == value)
    eventually(lambda: engine.state is State.WAIT_READ)
    assert values(out) == [11, 32, 33] and engine.completed == 3
    engine.set_flag(Flag.ABORT, True)
    eventually(lambda: engine._process is not None and engine._process.poll() == 0)
    for ring in (into, out):
        ring.close()


def test_runs_that_follow_each_other(begin: Start) -> None:
    engine = begin("nothing", [(NO,) * 4])
    engine.set_flag(Flag.CHAIN, True)
    for k in (1, 2):
        run(engine)
        engine.start()
        assert done(engine) == 0 and engine.completed == k
        engine.words[4] = k  # not asked for after all
        engine.resume()
    engine.set_flag(Flag.CHAIN, False)
    engine.set_flag(Flag.AUTO_RESTART, True)
    engine.start()
    eventually(lambda: engine.completed > 20)
    engine.set_flag(Flag.AUTO_RESTART, False)
    engine.kill()
    begun = begin("pass", [(NO,) * 4])
    assert "has 2 stream ports, the board gave 0" in str(begun.fault())
