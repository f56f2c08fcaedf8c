"""Board ``rtl`` through unchanged calls: runs, their cycles, interrupts, memory, several units."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import HW_KERNELS, eventually, start, wait_done, write_overlay
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.board.engine import State
from pynq_torch.board.rtl.wiring import memory_ports
from pynq_torch.descriptions import answer_register
from pynq_torch.errors import (
    BoardError,
    BoardHang,
    KernelFault,
    KernelTimeout,
    RtlFallback,
    RtlProtocolError,
    RtlResetWarning,
    RtlTimeout,
)
from pynq_torch.paths import HW

_ROOT = Path(__file__).resolve().parents[1]
_RTL_KERNELS = Path(__file__).parent / "rtl_kernels"
DMA = """
streams = [
    "axi_dma_0.M_AXIS_MM2S -> {first}.samples",
    {between}
    "{last}.results -> axi_dma_0.S_AXIS_S2MM",
]
[instances.axi_dma_0]
ip = "axi_dma"
parameters = {{ c_include_sg = 0, c_sg_length_width = 20 }}
memory = {{ M_AXI_MM2S = "HP0", M_AXI_S2MM = "HP1" }}
"""
SCATTER_GATHER = "c_include_sg = 1, c_sg_length_width = 14"


@pytest.fixture
def board():
    """Give a function that chooses board rtl, and close what it chose."""
    yield lambda **options: pynq_torch.use_board("rtl", **options)
    current = pynq_torch.board.current_board()
    if current is not None:
        current.close()


def floats(n: int, seed: int = 0) -> torch.Tensor:
    """Return n random numbers in no special order."""
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


# ---- choosing it -----------------------------------------------------------------------------


def test_the_board_is_listed_and_says_what_it_is(board):
    assert "rtl" in pynq_torch.available_boards()
    made = board()
    assert made.board_name == "rtl" and "rtl" in repr(made)
    assert made.memory_model == "pynq-z2" and made.pl is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"memory": "ddr5"}, "ddr5"),
        ({"stalls": 1.0}, "stalls is 1.0"),
        ({"stalls": -0.1}, "stalls is -0.1"),
        ({"seed": -1}, "seed is -1"),
        ({"timeout_cycles": -5}, "timeout_cycles is -5"),
    ],
)
def test_bad_options_name_the_value_and_leave_the_board_in_use(board, options, words):
    before = board()
    with pytest.raises(ValueError, match=words):
        board(**options)
    assert pynq_torch.board.current_board() is before and not before.closed


def test_options_of_rtl_are_unknown_to_csim():
    with pytest.raises(BoardError, match="stalls"):
        pynq_torch.use_board("csim", stalls=0.1)


# ---- runs ------------------------------------------------------------------------------------


def test_cycles_of_a_run_are_exact_and_repeat(board):
    made = board(memory="ideal")
    overlay = pynq_torch.load("vadd")
    a, b = floats(4096), floats(4096, 1)
    counts = []
    for _ in range(3):
        assert torch.equal(overlay.vadd(a, b), a + b)
        counts.append(overlay.vadd.last_run.cycles)
    assert len(set(counts)) == 1, counts
    # A beat a cycle, and 10 before the first and after the last one.
    assert counts[0] == 4096 + 10
    run = made.cus["vadd_0"].last_run
    assert (run.number, run.cycles) == (3, counts[0])
    assert run.kind.startswith("cycles (RTL") and run.seconds > 0
    assert made.cus["vadd_0"].run(1).cycles == counts[0]
    for _ in range(17):
        overlay.vadd(a[:5], b[:5])
    assert [n for n in range(99) if made.cus["vadd_0"].run(n)] == list(range(5, 21))
    runs = [made.cus["vadd_0"].run(n) for n in range(5, 21)]
    assert {(run.cycles, run.seconds < 1) for run in runs} == {(runs[0].cycles, True)}


def test_memory_of_the_board_takes_longer_than_ideal_memory(board):
    cycles = {}
    for memory in ("ideal", "pynq-z2"):
        board(memory=memory)
        overlay = pynq_torch.load("vadd")
        a = floats(2000)
        overlay.vadd(a, a)
        cycles[memory] = overlay.vadd.last_run.cycles
    assert cycles["pynq-z2"] > cycles["ideal"] + 20  # its latency, once


def test_stalls_depend_on_the_seed_only(board):
    def cycles(seed: int) -> int:
        board(stalls=0.3, seed=seed)
        overlay = pynq_torch.load("vadd")
        a = floats(1000)
        assert torch.equal(overlay.vadd(a, a), a + a)
        return overlay.vadd.last_run.cycles

    first, again, other = cycles(1), cycles(1), cycles(2)
    assert first == again != other


def test_cycles_of_a_stream_depend_on_the_pc_by_the_way_to_ddr_alone(board):
    board()
    overlay = pynq_torch.load("stream")
    x = floats(5000)
    counts = set()
    for pause in (0.0, 0.0, 0.002):
        overlay.scale_stream_0.write(0x18, int(np.float32(2).view("u4")))
        overlay.scale_stream_0.write(0x20, 0)
        source, target = allocate(5000, "f4"), allocate(5000, "f4")
        source[:] = x.numpy()
        dma = overlay.axi_dma_0
        dma.recvchannel.transfer(target)
        dma.sendchannel.transfer(source)
        time.sleep(pause)
        start(overlay.scale_stream_0)
        dma.sendchannel.wait()
        dma.recvchannel.wait()
        assert np.array_equal(target, 2 * x.numpy())
        wait_done(overlay.scale_stream_0)
        counts.add(overlay.scale_stream_0.last_run.cycles)
    # Whether the first beats had left DDR at the start is a matter of when the DMA's process ran.
    assert max(counts) - min(counts) <= 64, counts
    assert 5000 < min(counts) < 5400


def test_phases_are_those_the_unit_counts(board):
    board(memory="ideal")
    overlay = pynq_torch.load("gemm")
    a = torch.randint(-128, 128, (33, 70), dtype=torch.int8)
    b = torch.randint(-128, 128, (70, 45), dtype=torch.int8)
    for _ in range(3):
        assert torch.equal(overlay.gemm(a, b), a.int() @ b.int())
        run = overlay.gemm.last_run
        # Each run counts its own cycles, and phases overlap.
        assert run.phases == {"load": 484, "compute": 420, "drain": 800}
        assert run.cycles == 1432


def test_the_profiler_has_the_counted_cycles_beside_the_wall_clock(board):
    made = board()
    pynq_torch.load("gemm")
    a = torch.randint(-128, 128, (33, 45), dtype=torch.int8).to("pynq")
    b = torch.randint(-128, 128, (45, 17), dtype=torch.int8).to("pynq")
    counted = 0
    with torch.pynq.profiler.profile() as p:
        for _ in range(2):
            torch._int_mm(a, b)
            counted += made.cus["gemm_0"].last_run.cycles
    unit = p.units()["gemm_0"]
    assert (unit.starts, unit.counted, unit.cycles) == (2, 2, counted)
    assert (unit.kind, unit.where) == ("measured", "rtl on this PC")
    lines = p.stats("ExecTime").splitlines()
    assert f"  cycles: {counted:,} of the PL's clock in 2 starts, counted in RTL" in lines
    assert all("cycles" not in line for line in lines if "measured" in line)


def test_a_kernel_without_rtl_runs_as_compiled_cpp_and_says_so(board):
    made = board()
    with pytest.warns(RtlFallback, match=r"unary_f32 have no RTL.*modelled cycles"):
        overlay = pynq_torch.load("pointwise")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RtlFallback)
        overlay = pynq_torch.load("pointwise")  # once a kernel is enough
    assert made.pl is None
    x = torch.linspace(-2, 2, 100)
    with torch.pynq.profiler.profile() as p:
        x.to("pynq").abs()
    (profiled,) = p.units().values()
    assert profiled.starts == 1 and profiled.cycles is None  # a model's are not counted
    unit = next(name for name in overlay.kernels if "unary" in name)
    assert torch.equal(overlay.kernels[unit]("relu", x), torch.relu(x))
    run = made.cus[unit].last_run
    assert run.cycles > 0 and run.kind.startswith("model")


# ---- registers, interrupts ---------------------------------------------------------------------


def test_control_register_is_that_of_the_rtl(board):
    board()
    ip = Overlay(str(_ROOT / "bitstreams/vadd/vadd.bit")).vadd_0
    assert ip.read(0) == 4
    ip.write(0x34, 0)
    assert ip.read(0x34) == 0
    buffer = allocate(64, "f4")
    for offset in (0x10, 0x1C, 0x28):
        ip.write(offset, buffer.physical_address)
    ip.write(0x34, 64)
    start(ip)
    # Idle follows done by a cycle, as in what Vitis HLS makes: a read may fall between the two.
    assert wait_done(ip) & 0b1010 == 0b1010
    assert ip.read(0) == 4  # done and ready are clear-on-read
    assert ip.register_map.CTRL.AP_IDLE == 1


def test_interrupts_reach_asyncio(board):
    board()
    overlay = pynq_torch.load("vadd")
    buffer = allocate(256, "f4")

    async def program() -> None:
        for _ in range(3):
            overlay.vadd.start(a=buffer, b=buffer, c=buffer, n=256)
            await pynq_torch.waits.wait_async(overlay.vadd, timeout_s=20)

    asyncio.get_event_loop_policy().get_event_loop().run_until_complete(program())
    assert overlay.vadd.last_run.number == 3


def test_reset_drops_a_run_and_the_next_one_is_right(board):
    made = board()
    overlay = pynq_torch.load("vadd")
    buffer = allocate(200_000, "f4")
    overlay.vadd.start(a=buffer, b=buffer, c=buffer, n=200_000)
    ip = overlay.vadd_0
    assert not ip.read(0) & 2
    # On a board the answers to its bursts would come all the same.
    said = r"vadd_0 was reset with \d+ bursts on the way, the first on \S*gmem\d: here they are"
    with pytest.warns(RtlResetWarning, match=said):
        made.cus["vadd_0"].reset()
    made.cus["vadd_0"].reset()  # nothing is on the way any more
    assert ip.read(0) == 4 and ip.read(0x34) == 0  # registers have their reset values
    assert made.cus["vadd_0"].last_run is None
    overlay = pynq_torch.load("vadd")
    a = floats(100)
    assert torch.equal(overlay.vadd(a, a), a + a)


# ---- memory ------------------------------------------------------------------------------------


def test_strict_cache_gives_stale_data_without_flush(board):
    board(strict_cache=True)
    ip = Overlay(str(_ROOT / "bitstreams/vadd/vadd.bit")).vadd_0
    a, c = allocate(32, "f4"), allocate(32, "f4")
    a[:] = 1
    a.flush()

    def run() -> None:
        for offset, buffer in ((0x10, a), (0x1C, a), (0x28, c)):
            ip.write(offset, buffer.physical_address)
        ip.write(0x34, 32)
        start(ip)
        wait_done(ip)

    run()
    assert c[0] == 0
    c.invalidate()
    assert c[0] == 2
    a[:] = 5
    run()
    c.invalidate()
    assert c[0] == 2  # what the CPU wrote is still in its cache


def test_guard_is_the_default_and_can_be_switched_off(board):
    made = board()
    overlay = pynq_torch.load("vadd")
    buffer = allocate(64, "f4")
    address = made.memory.cma_base + (1 << 20)
    with pytest.raises(KernelFault, match=r"wrote to memory outside its buffers") as caught:
        overlay.vadd.start(a=buffer, b=buffer, c=address, n=64).wait()
    assert caught.value.address == address and caught.value.cu == "vadd_0"
    assert "m_axi_gmem2" in str(caught.value) and "cycle" in str(caught.value)
    a = floats(64)
    assert torch.equal(overlay.vadd(a, a), a + a)  # the board is usable afterwards
    board(guard=False)
    overlay = pynq_torch.load("vadd")
    buffer = allocate(64, "f4")
    overlay.vadd.start(a=buffer, b=buffer, c=address, n=64).wait()
    with pytest.raises(KernelFault, match="outside the 512 MB"):
        overlay.vadd.start(a=buffer, b=buffer, c=0x2000_0000, n=64).wait()


@pytest.mark.parametrize(
    ("name", "channel"),
    [
        ("a", "gmem0 read"),
        ("b", "gmem1 read"),
        ("bias", "gmem2 read"),
        ("scale", "gmem2 read"),
        ("c", "gmem2 write"),
    ],
)
def test_an_error_of_the_bus_is_no_product(board, name, channel):
    """gemm has the register where HLS leaves a hole, and csim reads 0 there."""
    board(guard="silicon")
    overlay = pynq_torch.load("gemm")
    a, b = (torch.full((8, 8), value, dtype=torch.int8) for value in (3, -2))
    bias, scale = torch.zeros(8, dtype=torch.int32), torch.ones(8)
    assert (overlay.gemm(a, b, bias=bias, scale=scale, dtype=torch.int8) == -48).all()
    unit, buffer = overlay.gemm, allocate(64, "i4")
    places = dict.fromkeys(("a", "b", "c", "bias", "scale"), buffer.physical_address)
    places[name] = 0x2000_0000
    with pytest.raises(KernelFault, match=rf"answered DECERR on m_axi_{channel}: its") as caught:
        unit.run_raw(**places, m=8, n=8, k=8, lda=8, ldb=8, ldc=8, mode=1 | 4)
    assert caught.value.cu == unit.cu
    assert unit.is_idle() and not unit.is_claimed()
    assert (overlay.gemm(a, b) == -48).all()  # of this run only
    assert unit.read(0x78) == 0


@pytest.mark.parametrize(
    ("name", "channel"), [("a", "gmem0 read"), ("b", "gmem1 read"), ("c", "gmem2 write")]
)
def test_an_error_of_the_bus_is_no_result(board, name, channel):
    """As on silicon the run ends, with AP_DONE; the driver reads what memory had answered."""
    made = board(guard="silicon")
    overlay = pynq_torch.load("vadd")
    unit, buffer = overlay.vadd, allocate(64, "f4")
    given = {"a": buffer, "b": buffer, "c": buffer, name: 0x2000_0000, "n": 64}
    with pytest.raises(KernelFault, match=rf"answered DECERR on m_axi_{channel}: its") as caught:
        unit.start(**given).wait()
    assert caught.value.cu == unit.cu
    assert unit.is_idle() and not unit.is_claimed()
    assert made.cus[unit.cu].last_run.cycles > 64  # the kernel went on to its end
    a = floats(64)
    assert torch.equal(overlay.vadd(a, a), a + a)  # of this run only
    assert unit.read(0x3C) == 0


def test_the_register_of_answers_names_ports_and_errors():
    register = answer_register(HW / "kernels" / "vadd")
    assert register is not None and register.offset == 0x3C
    assert register.errors(0) == register.errors(0b01_01_01) == {}
    assert register.errors(0b10_01_11) == {
        "m_axi_gmem0 read": "DECERR",
        "m_axi_gmem2 write": "SLVERR",
    }
    assert answer_register(HW / "kernels" / "scale_stream") is None


def test_the_register_of_answers_is_read_where_the_unit_has_it():
    """Fewer registers need fewer address bits: what HLS makes then shows another one there."""
    register = answer_register(HW / "kernels" / "gemm")
    assert register is not None and register.offset == 0x78
    assert register.fits([0x00, 0x10, 0x70, 0x74, 0x7C])
    assert not register.fits([0x00, 0x10, 0x78, 0x7C])  # an argument
    assert not register.fits([0x00, 0x10, 0x34])  # 0x78 is 0x38 there
    assert not register.fits([])


def test_writing_past_a_buffer_within_its_page_is_found(board):
    board()
    overlay = pynq_torch.load("vadd")
    source, target = allocate(64, "f4"), allocate(50, "f4")
    source[:] = 1.5
    with pytest.raises(KernelFault, match="wrote past the end of the buffer") as caught:
        overlay.vadd.start(a=source, b=source, c=target, n=64).wait()
    assert caught.value.address == target.physical_address + 200


def test_every_buffer_that_a_run_overran_is_mended(board):
    board()
    overlay = pynq_torch.load("vadd")
    source = allocate(2000, "f4")
    source[:] = 1.5
    target = allocate(1500, "f4")
    for n in (200_000, 2000):  # into memory that is not its own, and within the last page
        with pytest.raises(KernelFault, match="outside its buffers|wrote past the end"):
            overlay.vadd.start(a=source, b=source, c=target, n=n).wait()
        overlay.vadd.start(a=source, b=source, c=target, n=1500).wait()
        assert (target == 3).all()


# ---- when it does not end ------------------------------------------------------------------------


def test_a_run_that_takes_too_many_cycles(board):
    board(timeout_cycles=2_000)
    overlay = pynq_torch.load("vadd")
    buffer = allocate(50_000, "f4")
    with pytest.raises(RtlTimeout, match=r"vadd_0 does not end.*timeout_cycles = 2000") as caught:
        overlay.vadd.start(a=buffer, b=buffer, c=buffer, n=50_000).wait()
    assert "Last handshakes: s_axi_control" in str(caught.value)
    assert "m_axi_gmem2 write" in str(caught.value)
    a = floats(100)
    assert torch.equal(overlay.vadd(a, a), a + a)


def test_a_wait_in_seconds_says_what_moved_last(board):
    board()
    overlay = pynq_torch.load("stream")
    start(overlay.scale_stream_0)
    with pytest.raises(KernelTimeout, match=r"scale_stream_0.*samples"):
        pynq_torch.wait(overlay.scale_stream_0, timeout_s=0.5)


def test_a_unit_that_waits_says_so_after_every_poll(board):
    board()
    overlay = pynq_torch.load("stream")
    start(overlay.scale_stream_0)
    with pytest.raises(KernelTimeout):
        pynq_torch.wait(overlay.scale_stream_0, timeout_s=0.1)
    engine = overlay.device.ip["scale_stream_0"].engine
    unit = overlay.scale_stream_0
    eventually(lambda: unit.read(0) >= 0 and engine.state == State.WAIT_READ)
    states = []
    for _ in range(1_000):
        overlay.scale_stream_0.read(0)
        states.append(engine.state)  # before the process has had the time to rest again
    assert set(states) == {State.WAIT_READ}


def test_polling_what_cannot_move_is_a_hang(board):
    board(hang_timeout_s=0.5)
    overlay = pynq_torch.load("stream")
    start(overlay.scale_stream_0)
    with pytest.raises(BoardHang, match=r"scale_stream_0: WAIT_READ on .*samples"):
        while True:
            overlay.scale_stream_0.read(0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_process_that_is_killed_is_an_error_and_the_board_goes_on(board, number):
    made = board()
    overlay = pynq_torch.load("vadd")
    a = floats(100)
    overlay.vadd(a, a)
    before = made.pl.cycle
    os.kill(made.pl.pid, number)
    with pytest.raises(KernelFault) as error:
        overlay.vadd(a, a)
    said = rf"vadd_0 in cycle (\d+): the process was ended by {number.name}\."
    (cycle,) = re.findall(said, str(error.value))
    # The page's cycle is of a few ago, and who is killed cannot say any.
    assert number == signal.SIGKILL or before <= int(cycle) < before + 1000
    assert torch.equal(overlay.vadd(a, a), a + a)


def test_the_pl_ends_with_the_program(board):
    """Even with one that could not say so: the end of a pipe is closed by the kernel."""
    made = board()
    pynq_torch.load("vadd")
    with open(os.devnull) as other:
        os.dup2(other.fileno(), made.pl._life_write)
    eventually(lambda: made.pl.faulted)
    assert "exit status 0" in made.pl.fault().text


#: In a process of its own: one that has run other tests grows by what those left to reuse.
HUNDRED_LOADS = """
import gc, os
from pathlib import Path
import torch, pynq_torch

def kept():
    gc.collect()
    status = Path("/proc/self/status").read_text()
    rows = dict(row.split(":", 1) for row in status.splitlines())
    return len(os.listdir("/proc/self/fd")), int(rows["VmRSS"].split()[0])

board = pynq_torch.use_board("rtl")
a = torch.rand(64)
pids = set()
for turn in range(100):
    overlay = pynq_torch.load("vadd")
    assert torch.equal(overlay.vadd(a, a), a + a)
    pids.add(board.pl.pid)
    if turn == 19:
        before = kept()
after = kept()
assert after[0] <= before[0] and after[1] < before[1] + 10_000, (before, after)
board.close()
assert len(pids) == 100
assert not [pid for pid in pids if Path(f"/proc/{pid}/exe").exists()]
"""


def test_nothing_is_left_of_a_hundred_loads():
    command = [sys.executable, "-c", HUNDRED_LOADS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


# ---- several units -------------------------------------------------------------------------------


def test_managers_are_followed_to_their_ports():
    ports = memory_ports(_ROOT / "bitstreams/vadd/vadd.hwh")
    assert {key[1]: port for key, port in ports.items() if key[0] == "vadd_0"} == {
        "m_axi_gmem0": 0,
        "m_axi_gmem1": 1,
        "m_axi_gmem2": 2,
    }


def test_an_answer_wakes_the_program_that_waits_for_it(board, monkeypatch):
    """By its bell: without it the program would look again after 100 ms."""
    made, rung = board(), []
    unit = pynq_torch.load("vadd").vadd_0
    (poller,) = made.pl._pollers

    class Counting:
        def poll(self, milliseconds):
            rung.append(poller.poll(100 * milliseconds))
            return rung[-1]

    monkeypatch.setattr("pynq_torch.board.rtl.process._SPINS", 0)
    monkeypatch.setattr(made.pl, "_pollers", [Counting()])
    while len(rung) < 5:  # most answers are there before the program has to wait
        unit.read(0x10)
    assert all(rung)


def test_units_share_the_clock_and_the_memory(board, tmp_path):
    bit = write_overlay(
        tmp_path, {"vadd_0": "vadd", "vadd_1": "vadd"}, kernels=HW_KERNELS, name="pair"
    )
    # Both units' masters are on HP0: 3 ports of 32 bits ask for 12 of its 8 bytes a cycle.
    assert set(memory_ports(bit.with_suffix(".hwh")).values()) == {0}
    made = board()
    overlay = pynq_torch.load(bit)
    n = 100_000
    buffers = [allocate(n, "f4") for _ in range(4)]
    buffers[0][:], buffers[1][:] = floats(n).numpy(), floats(n, 1).numpy()
    one, other = overlay.vadd_0, overlay.vadd_1
    one.start(a=buffers[0], b=buffers[1], c=buffers[2], n=n).wait()
    alone = one.last_run.cycles
    # The other one works all the time, however late a busy PC starts the first again.
    other.start(a=buffers[0], b=buffers[1], c=buffers[3], n=n).wait()
    other.write(0, 0x81)  # AP_START with auto-restart
    one.start(a=buffers[0], b=buffers[1], c=buffers[2], n=n).wait()
    together = one.last_run.cycles
    other.write(0, 0)
    eventually(lambda: other.read(0) & 4)
    assert np.array_equal(buffers[2], buffers[0] + buffers[1])
    assert np.array_equal(buffers[3], buffers[2])
    assert together > 1.3 * alone  # the port is what limits them
    counted = {(row.unit, row.port): row.bytes for row in made.counter_records()}
    assert counted["vadd_1", "m_axi_gmem2"] == 4 * n * made.cus["vadd_1"].engine.completed
    assert counted["vadd_0", "m_axi_gmem0"] == 8 * n


def test_a_fault_of_one_unit_is_told_to_the_other(board, tmp_path):
    bit = write_overlay(
        tmp_path, {"vadd_0": "vadd", "vadd_1": "vadd"}, kernels=HW_KERNELS, name="pair"
    )
    board()
    overlay = pynq_torch.load(bit)
    buffer = allocate(4_000_000, "f4")
    overlay.vadd_0.start(a=buffer, b=buffer, c=buffer, n=4_000_000)
    with pytest.raises(KernelFault, match="vadd_1 wrote to memory"):
        overlay.vadd_1.start(a=buffer, b=buffer, c=0x1000, n=8).wait()
    with pytest.raises(KernelFault, match="vadd_1 wrote to memory.*reset with it"):
        overlay.vadd_0.wait()
    a = floats(100)
    assert torch.equal(overlay.vadd_0(a, a), a + a)


# ---- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("stalls", [0.0, 0.4])
def test_free_running_units_in_a_stream(board, tmp_path, units, stalls):
    names = {f"increment_{i}": "increment" for i in range(units)}
    first, last = min(names), max(names)
    between = f'"{first}.results -> {last}.samples",' if units > 1 else ""
    extra = DMA.format(first=first, last=last, between=between)
    bit = write_overlay(tmp_path, names, extra, _RTL_KERNELS, name="chain")
    made = board(stalls=stalls, kernels=[_RTL_KERNELS])
    overlay = Overlay(str(bit))
    dma = overlay.axi_dma_0
    for n in (1, 3, 5000, 64, 1):
        source, target = allocate(n, "u4"), allocate(n, "u4")
        source[:] = np.random.default_rng(n).integers(0, 2**32, n, "u4")
        dma.recvchannel.transfer(target)
        dma.sendchannel.transfer(source)
        dma.sendchannel.wait()
        dma.recvchannel.wait()
        assert np.array_equal(target, source + np.uint32(units))
    if units > 1 and not stalls:  # what one gives the next one has a cycle later: no DDR between
        given, taken = (
            [t.cycle for t in made.trace_records() if (t.unit, t.port) == end]
            for end in ((first, "results"), (last, "samples"))
        )
        assert taken == [cycle + 1 for cycle in given]
    # Nothing moves any more: the clock stands, and no processor is kept busy.
    eventually(lambda: made.pl.state.name == "ASLEEP" or not made.cus[first].engine.can_move)
    before = made.pl.cpu_seconds
    time.sleep(0.5)
    assert made.pl.cpu_seconds - before < 0.25


def test_the_stalls_of_a_run_do_not_depend_on_the_run_before(board):
    def second(n):
        made = board(stalls=0.4, seed=5, memory="ideal")
        overlay = pynq_torch.load("vadd")
        for count in (n, 2000):
            overlay.vadd_0(torch.ones(count), torch.ones(count))
        cycles = overlay.vadd_0.last_run.cycles
        made.close()
        return cycles

    assert second(100) == second(1500)


def test_a_stream_from_ddr_waits_for_it_and_its_stalls_are_those_of_the_seed(tmp_path, board):
    extra = DMA.format(first="increment_0", last="increment_0", between="")
    bit = write_overlay(tmp_path, {"increment_0": "increment"}, extra, _RTL_KERNELS)

    def cycles(**options):
        made = board(kernels=[_RTL_KERNELS], **options)
        dma = Overlay(str(bit)).axi_dma_0
        source, target = allocate(5000, "u4"), allocate(5000, "u4")
        dma.recvchannel.transfer(target)
        dma.sendchannel.transfer(source)
        dma.sendchannel.wait()
        dma.recvchannel.wait()
        (packet,) = [t for t in made.trace_records() if t.port == "samples"]
        made.close()
        return packet.done - packet.cycle

    assert 5010 < cycles() < 5100  # 5,000 beats, and DDR's refresh: the DMA reads over HP0
    assert len({cycles(stalls=0.3, seed=seed) for seed in (1, 2, 3)}) == 3


def test_a_stream_that_breaks_a_rule_is_named(board, tmp_path):
    kernels = tmp_path / "kernels"
    shutil.copytree(_RTL_KERNELS / "increment", kernels / "increment")
    module = kernels / "increment/rtl/increment.sv"
    text = module.read_text()
    assert text.count("samples_TSTRB, samples_TKEEP,") == 1
    module.write_text(text.replace("samples_TSTRB, samples_TKEEP,", "samples_TSTRB, 4'd0,"))
    extra = DMA.format(first="increment_0", last="increment_0", between="")
    bit = write_overlay(tmp_path, {"increment_0": "increment"}, extra, kernels)
    board(kernels=[kernels])
    dma = Overlay(str(bit)).axi_dma_0
    source, target = allocate(4, "u4"), allocate(4, "u4")
    dma.recvchannel.transfer(target)
    dma.sendchannel.transfer(source)
    said = r"increment_0 broke .* port increment_0\.results\): TSTRB is high for a byte whose TKEEP"
    with pytest.raises(RtlProtocolError, match=said):
        dma.recvchannel.wait()


def scatter_gather(extra):
    """Return what an overlay adds, with a DMA that works on descriptors."""
    extra = extra.replace("c_include_sg = 0, c_sg_length_width = 20", SCATTER_GATHER)
    return extra.replace("memory = { ", 'memory = { M_AXI_SG = "HP2", ')


def test_descriptors_of_a_packet_follow_each_other_as_its_beats_do(board, tmp_path):
    """pynq gives every scatter-gather transfer at least two descriptors."""
    cycles = {}
    direct = DMA.format(first="increment_0", last="increment_0", between="")
    for name, extra in (("direct", direct), ("chained", scatter_gather(direct))):
        names, folder = {"increment_0": "increment"}, tmp_path / name
        bit = write_overlay(folder, names, extra, _RTL_KERNELS, name="chain")
        made = board(kernels=[_RTL_KERNELS])
        dma = Overlay(str(bit)).axi_dma_0
        source, target = allocate(4000, "u4"), allocate(4000, "u4")
        source[:] = np.arange(4000)
        dma.recvchannel.transfer(target)
        dma.sendchannel.transfer(source)
        dma.sendchannel.wait()
        dma.recvchannel.wait()
        assert np.array_equal(target, source + 1)
        (packet,) = [t for t in made.trace_records() if t.kind == "stream in"]
        assert packet.beats == 4000
        cycles[name] = packet.done - packet.first
    assert min(cycles.values()) >= 3999
    # Where the refreshes of DDR fall depends on when the packet began.
    assert max(cycles.values()) - min(cycles.values()) <= 64, cycles


def test_registers_answer_while_a_chain_of_descriptors_waits(board, tmp_path):
    extra = DMA.format(first="scale_stream_0", last="scale_stream_0", between="")
    extra = scatter_gather(extra).replace(".results", ".scaled")
    names = {"scale_stream_0": "scale_stream"}
    bit = write_overlay(tmp_path, names, extra, HW_KERNELS, name="chain")
    board()
    overlay = Overlay(str(bit))
    unit, dma = overlay.scale_stream_0, overlay.axi_dma_0
    source, target = allocate(256, "f4"), allocate(256, "f4")
    source[:] = np.arange(256)
    unit.write(0x18, int(np.float32(2).view("u4")))
    unit.write(0x20, 0)
    start(unit)
    dma.sendchannel.transfer(source)
    begin = time.monotonic()
    for _ in range(3):
        assert unit.read(0) & 1
    # The clock would wait for the DMA, and the DMA for the clock: 5 s each time.
    assert time.monotonic() - begin < 12
    dma.recvchannel.transfer(target)
    dma.sendchannel.wait()
    dma.recvchannel.wait()
    assert np.array_equal(target, 2 * source)


def test_back_pressure_reaches_the_sender(board, tmp_path):
    extra = DMA.format(first="increment_0", last="increment_0", between="")
    bit = write_overlay(tmp_path, {"increment_0": "increment"}, extra, _RTL_KERNELS, name="chain")
    made = board(kernels=[_RTL_KERNELS])
    overlay = Overlay(str(bit))
    dma = overlay.axi_dma_0
    source, target = allocate(4000, "u4"), allocate(4000, "u4")
    source[:] = np.arange(4000)
    dma.sendchannel.transfer(source)
    unit = made.cus["increment_0"]
    eventually(lambda: unit.describe()["blocked_on"] == "increment_0.results")
    results = next(ring for ring in made.rings if ring.sink and ring.sink.ip == "axi_dma_0")
    assert results.occupancy <= results.depth  # nobody takes them
    dma.recvchannel.transfer(target)
    dma.sendchannel.wait()
    dma.recvchannel.wait()
    assert np.array_equal(target, source + 1)
