"""The register file of an HLS kernel, through the unmodified pynq package."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import eventually, held, overlay_of, start, wait_done, write_overlay
from hypothesis import given, settings
from hypothesis import strategies as st
from pynq import MMIO, Clocks, Overlay, allocate

import pynq_torch
from pynq_torch.errors import InterfaceError, InterfaceWarning
from pynq_torch.paths import ROOT

DONE, IDLE, READY, AUTO_RESTART = 2, 4, 8, 0x80


@pytest.fixture(scope="module")
def overlay(tmp_path_factory):
    units = {
        "scalars_0": "scalars",
        "arrays_0": "arrays",
        "chained_0": "chained",
        "counter_0": "counter",
        "counter_1": "counter",
        "nop_0": "nop",
    }
    made = overlay_of(
        tmp_path_factory.mktemp("kernels"),
        units,
        extra="""
interrupts = ["counter_0.interrupt", "counter_1.interrupt"]
[instances.axi_intc_0]
ip = "axi_intc"
""",
    )
    yield made
    pynq_torch.current_board().close()


@pytest.fixture
def board(overlay):
    return pynq_torch.current_board()


def test_control_register_through_one_run(overlay):
    ip = overlay.counter_1
    assert ip.read(0) == IDLE
    ip.write(0x10, 5)
    start(ip)
    assert wait_done(ip) == DONE | IDLE | READY
    assert ip.read(0) == IDLE  # done and ready are clear-on-read
    assert ip.read(0x18) == 5
    assert (ip.read(0x1C), ip.read(0x1C)) == (1, 0)  # ap_vld is clear-on-read
    assert ip.register_map.CTRL.AP_IDLE == 1


def test_a_start_leaves_a_done_that_nobody_has_read(overlay, board):
    # As int_ap_done of an HLS register file: set by ap_done, cleared by reading, by nothing else.
    ip, engine = overlay.counter_1, board.cus["counter_1"].engine
    ip.write(0x10, 5)
    ended = engine.completed
    start(ip)
    eventually(lambda: engine.completed == ended + 1)
    start(ip)
    assert ip.read(0) & DONE
    eventually(lambda: engine.completed == ended + 2)
    ip.read(0)


def test_an_end_while_the_control_register_is_read_is_told_once(overlay, board, monkeypatch):
    ip, unit = overlay.counter_1, board.cus["counter_1"]
    update, ended = unit._update, unit.engine.completed
    ip.write(0x10, 5)
    with contextlib.ExitStack() as engine:
        engine.enter_context(held(unit.engine.pid))

        def update_and_end() -> None:
            update()
            engine.close()
            eventually(lambda: unit.engine.completed == ended + 1)

        start(ip)
        monkeypatch.setattr(unit, "_update", update_and_end)
        assert ip.read(0) & (DONE | IDLE) == DONE | IDLE
        monkeypatch.undo()
    with held(unit.engine.pid):
        start(ip)
        assert ip.read(0) & (DONE | IDLE) == 0
    assert wait_done(ip) & IDLE


def test_status_flags_need_their_enables_and_toggle_on_write(overlay):
    ip = overlay.counter_1
    start(ip)
    wait_done(ip)
    assert ip.read(0xC) == 0  # IER is off: ISR stays clear
    ip.write(0x4, 1)
    ip.write(0x8, 3)
    start(ip)
    wait_done(ip)
    assert ip.read(0xC) == 3 and ip.read(0xC) == 3
    ip.write(0xC, 1)
    assert ip.read(0xC) == 2
    ip.write(0xC, 2)
    assert ip.read(0xC) == 0
    ip.write(0xC, 1)
    assert ip.read(0xC) == 1  # writing a one where there is a zero sets it
    ip.write(0xC, 1)
    ip.write(0x4, 0)
    ip.write(0x8, 0)


def test_auto_restart_runs_until_it_is_switched_off(overlay, board):
    ip, unit = overlay.counter_0, board.cus["counter_0"]
    ip.write(0x10, 0)
    first = unit.engine.completed
    ip.write(0x0, AUTO_RESTART | 1)
    eventually(lambda: unit.engine.completed > first + 5)
    assert ip.read(0) & (AUTO_RESTART | IDLE) == AUTO_RESTART
    ip.write(0x0, 0)
    eventually(lambda: ip.read(0) & IDLE)
    last = unit.engine.completed
    time.sleep(0.02)
    assert unit.engine.completed == last
    ip.write(0x10, 3)
    before = ip.read(0x18)
    start(ip)
    wait_done(ip)
    assert ip.read(0x18) == before + 3


def test_chained_kernel_holds_done_until_continue(overlay, board):
    ip = overlay.chained_0
    ip.write(0x10, 41)
    start(ip)
    wait_done(ip)
    assert ip.read(0) & DONE and ip.read(0) & DONE  # a plain read, not clear-on-read
    start(ip)
    time.sleep(0.02)
    assert board.cus["chained_0"].engine.completed == 1  # waits for ap_continue
    ip.write(0x0, 0x10)
    eventually(lambda: board.cus["chained_0"].engine.completed == 2)
    ip.write(0x0, 0x10)
    assert ip.read(0x18) == 42


values = st.tuples(
    st.booleans(),
    st.integers(-128, 127),
    st.integers(0, 2**16 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**40), 2**40),
    st.floats(-1e6, 1e6, width=32),
    st.floats(-1e6, 1e6),
    st.integers(-1024, 1024),
    st.integers(-16, 15),
    st.integers(0, 2**33 - 1),
    st.integers(0, 2**100 - 1),
    st.integers(-(2**11), 2**11 - 1),
    st.integers(-(2**20), 2**20),
)


@settings(max_examples=80)
@given(values)
def test_scalars_of_every_type_arrive_and_return_bit_for_bit(overlay, given_values):
    flag, c, s, i, wide, f, d, h, a5, a33, a100, x, io = given_values
    ip = overlay.scalars_0
    registers = board_registers(ip)

    def put(name, value, words=1):
        for word in range(words):
            ip.write(registers[name] + 4 * word, value >> 32 * word & 0xFFFFFFFF)

    put("flag", int(flag))
    put("c", c)
    put("s", s)
    put("i", i)
    put("l", wide, 2)
    put("f", int(np.float32(f).view(np.uint32)))
    put("d", int(np.float64(d).view(np.uint64)), 2)
    put("h", int(np.float16(h).view(np.uint16)))
    put("a5", a5)
    put("a33", a33, 2)
    put("a100", a100, 4)
    put("x", x)
    put("io_i", io)
    start(ip)
    wait_done(ip)

    def get(name, words=1):
        return sum(ip.read(registers[name] + 4 * w) << 32 * w for w in range(words))

    assert get("o100", 4) == (a100 + 1) % 2**100
    assert (get("o5") & 31) == -a5 % 32
    assert np.uint16(get("oh") & 0xFFFF).view(np.float16) == np.float16(2 * h)
    assert np.uint32(get("of")).view(np.float32) == np.float32(f) * np.float32(2)
    assert get("ob") & 1 == (not flag)
    assert np.uint32(get("io_o")).view(np.int32) == io * 3
    total = float(c) + s + i + float(wide) + float(np.float32(f)) + d
    total = total + float(np.float16(h)) + a5 + float(a33) + x / 256
    assert np.uint64(get("return", 2)).view(np.float64) == total


def board_registers(ip):
    """Byte offsets by argument, from the interface the board uses."""
    unit = pynq_torch.current_board().cus[ip._fullpath]
    found = {}
    for register in unit.interface.bundles[unit.interface.control_bundle]:
        if register.role == "data":
            found[register.name] = register.offset
            if register.argument:
                found.setdefault(register.argument, register.offset)
    return found


def test_arrays_pack_in_little_endian_lanes(overlay):
    ip = overlay.arrays_0
    window = board_windows(ip)
    rng = np.random.default_rng(1)
    in8, in16 = rng.integers(-128, 128, 10, "i1"), rng.integers(-(2**15), 2**15, 6, "i2")
    base = rng.integers(-1000, 1000, 4, "i4")
    array = ip.mmio.array
    array[window["in8"] // 4 : window["in8"] // 4 + 3] = np.resize(in8, 12).view("u4")
    array[window["in16"] // 4 : window["in16"] // 4 + 3] = in16.view("u4")
    array[window["inout32"] // 4 : window["inout32"] // 4 + 4] = base.view("u4")
    start(ip)
    wait_done(ip)
    at = window["inout32"] // 4
    assert (array[at : at + 4].view("i4") == base + in8[:4] + in16[:4]).all()
    at = window["out64"] // 4
    wanted = (in8[7:10].astype("i8") << 40) + in16[3:6]
    assert (np.array(array[at : at + 6]).view("i8") == wanted).all()


def test_a_slice_over_control_and_arguments_starts(overlay):
    ip = overlay.counter_1
    start(ip)
    wait_done(ip)
    total = ip.read(0x18)
    ip.write(0x10, 2)
    ip.mmio.array[:5] = np.array([1, 0, 0, 0, 9], np.uint32)  # in order: AP_START before the 9
    wait_done(ip)
    assert (ip.read(0x10), ip.read(0x18)) == (9, total + 2)
    ip.mmio.array[3:5] = np.array([0, 3], np.uint32)  # from ISR on: nothing starts
    assert ip.read(0) == IDLE
    start(ip)
    wait_done(ip)
    assert ip.read(0x18) == total + 5


def board_windows(ip):
    unit = pynq_torch.current_board().cus[ip._fullpath]
    return {
        r.argument: r.offset
        for r in unit.interface.bundles[unit.interface.control_bundle]
        if r.role == "memory"
    }


def test_two_units_of_one_kernel_are_two(overlay):
    for ip, step in ((overlay.counter_0, 2), (overlay.counter_1, 7)):
        before = ip.read(0x18)
        ip.write(0x10, step)
        start(ip)
        wait_done(ip)
        assert ip.read(0x18) == before + step


def test_interrupt_is_awaited_with_asyncio(overlay):
    ip = overlay.counter_0
    ip.write(0x4, 1)
    ip.write(0x8, 1)

    async def run():
        for _ in range(3):
            waiting = asyncio.ensure_future(ip.interrupt.wait())
            await asyncio.sleep(0)
            start(ip)
            await asyncio.wait_for(waiting, 10)
            assert ip.read(0xC) & 1
            ip.write(0xC, 1)

    asyncio.get_event_loop_policy().get_event_loop().run_until_complete(run())
    ip.write(0x4, 0)


def test_clock_is_the_boards_not_the_designs(overlay):
    assert Clocks.fclk0_mhz == 100.0
    assert Clocks.cpu_mhz == 650.0
    Clocks.fclk0_mhz = 50
    assert Clocks.fclk0_mhz == 50.0
    overlay.download()
    assert Clocks.fclk0_mhz == 100.0


def test_mmio_of_every_width(overlay):
    base = overlay.ip_dict["counter_0"]["phys_addr"]
    mmio = MMIO(base, 0x100)
    mmio.write(0x10, 0x11223344)
    assert [mmio.read(0x10, n) for n in (1, 2, 4)] == [0x44, 0x3344, 0x11223344]
    mmio.write(0x10, bytes([1, 2, 3, 4]))
    assert mmio.read(0x10, 8) & 0xFFFFFFFF == 0x04030201
    with pytest.raises(MemoryError, match="Unaligned"):
        mmio.read(0x11)


def test_physical_address_of_a_buffer_is_its_memory(overlay):
    buffer = allocate(8, "u4")
    MMIO(buffer.physical_address, 32).write(4, 99)
    assert buffer[1] == 99


def test_program_from_another_folder_with_a_relative_name(overlay, tmp_path, monkeypatch):
    monkeypatch.chdir(os.path.dirname(overlay.bitfile_name))
    again = Overlay(os.path.basename(overlay.bitfile_name))
    assert again.is_loaded() and not overlay.is_loaded()
    overlay.download()


def test_threads_on_different_units(overlay):
    def work(ip, results):
        total = 0
        for _ in range(50):
            start(ip)
            wait_done(ip)
            total += 1
        results.append(total)

    results = []
    units = (overlay.counter_0, overlay.counter_1, overlay.nop_0)
    threads = [threading.Thread(target=work, args=(ip, results)) for ip in units]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert results == [50, 50, 50]


def test_many_starts_and_loads_leave_nothing_behind(overlay, board):
    def counts():
        gc.collect()
        pid = os.getpid()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return len(os.listdir("/proc/self/fd")), len(children), board.memory.free_bytes

    ip = overlay.nop_0
    start(ip)
    wait_done(ip)
    overlay.download()
    before = counts()
    for _ in range(2000):
        start(ip)
        wait_done(ip)
    for _ in range(20):
        overlay.download()
    assert counts() == before


def test_forked_child_leaves_the_parents_board_alone(overlay, board):
    child = os.fork()
    if child == 0:
        board.close()
        os._exit(0)
    os.waitpid(child, 0)
    start(overlay.nop_0)
    wait_done(overlay.nop_0)


def test_a_register_that_the_source_wires_is_refused(tmp_path):
    """The kernel would run with 0 there, and the program would only see a wrong result."""
    folder = tmp_path / "vadd"
    folder.mkdir()
    # Without hls_config.cfg: in the flow for v++ every scalar has a register, named or not.
    for file in ("vadd.cpp", "vadd.hpp"):
        shutil.copy(ROOT / "hw/kernels/vadd" / file, folder)
    source = folder / "vadd.cpp"
    source.write_text(source.read_text().replace("s_axilite port=n", "s_axilite port=m"))
    board = pynq_torch.use_board("csim", kernels=[tmp_path])
    try:
        with (
            pytest.warns(InterfaceWarning, match=r"vadd\.cpp:\d+: INTERFACE names port 'm'"),
            pytest.raises(InterfaceError, match=r"register n at 0x34.*no s_axilite"),
        ):
            pynq_torch.load("vadd")
    finally:
        board.close()


def test_a_kernel_folder_that_is_a_link_is_followed_at_each_load(tmp_path):
    for name, factor in (("one", 3), ("two", 5)):
        source = tmp_path / name / "scale" / "scale.cpp"
        source.parent.mkdir(parents=True)
        source.write_text(
            "int scale(int x) {\n#pragma HLS INTERFACE s_axilite port=x\n"
            f"#pragma HLS INTERFACE s_axilite port=return\n  return {factor} * x;\n}}\n"
        )
    link = tmp_path / "now"
    link.symlink_to("one")
    bit = write_overlay(tmp_path, {"scale_0": "scale"}, kernels=tmp_path / "one")
    pynq_torch.use_board("csim", kernels=[link])
    for target, result in (("one", 21), ("two", 35)):
        link.unlink()
        link.symlink_to(target)
        ip = Overlay(str(bit)).scale_0
        ip.write(0x18, 7)
        start(ip)
        wait_done(ip)
        assert ip.read(0x10) == result
