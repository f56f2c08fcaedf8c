"""The virtual board as the device that pynq asks; nothing is compiled and no process runs."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ip_handoff import Ip, write_design
from pynq.pl_server.device import Device
from pynq.ps import Clocks

from pynq_torch.board import pynq_metadata
from pynq_torch.board.bus import IpModel, RegisterArray
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.memory import CMA_BYTES, DDR_BYTES
from pynq_torch.errors import BoardError, BufferFreed, BusError, HandoffError

_RAM = 0x4000_0000


@pytest.fixture
def board() -> Iterator[VirtualBoard]:
    board = VirtualBoard(strict_cache=True)
    yield board
    board.close()


@pytest.fixture
def bit(tmp_path: Path) -> Path:
    """Return the bitstream of 8 KB of block RAM."""
    return write_design(tmp_path, "ram", [Ip("axi_bram_ctrl", "ram", _RAM, {}, 0x2000)])


def _download(board: VirtualBoard, bit: Path, **changes: Any) -> Any:
    parser = board.get_bitfile_metadata(str(bit))
    parser.handoff = dataclasses.replace(parser.handoff, **changes)
    board.download(SimpleNamespace(bitfile_name=str(bit), partial=False, timestamp=""), parser)
    return parser


def test_a_new_board_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    board = VirtualBoard()
    assert (board.board_name, board.name, board.arch, board.tag) == (
        *("csim", "Pynq-Z2", "armv7l", "virtual_csim"),
    )
    assert (board.closed, board.sanitize, board.timestamp, board.bitfile_name) == (
        *(False, False, "", ""),
    )
    memory = board.memory
    assert (memory.cma_bytes, memory.strict_cache, memory.guard) == (CMA_BYTES, False, True)
    assert (board.hang_timeout_s, board.tool_version, board.mem_dict) == (30.0, (2022, 2), {})
    assert repr(board) == "<VirtualBoard csim: PYNQ-Z2, no overlay>"
    given = [board.has_capability(c) for c in ("MEMORY_MAPPED", "REGISTER_RW", "CALLABLE")]
    assert given == [True, False, False]
    before = time.perf_counter()
    assert before <= board.wait_clock() <= time.perf_counter()
    VirtualBoard(hang_timeout_s=0.5).close()  # less than a second is a limit, too
    buffer = board.default_memory.allocate(4, "u1")
    said: list[str] = []
    board.on_unload(lambda: said.append("unload"))
    board.on_close(lambda: said.append("close"))
    monkeypatch.setattr(board.linux, "uninstall", lambda: said.append("linux"))
    board._pid += 1
    board.close()  # in a forked child
    assert not board.closed and not said
    board._pid -= 1
    for _ in range(2):
        board.close()
        assert board.closed and said == ["close", "linux"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(memory.fd)
    with pytest.raises(BufferFreed, match="belongs to a board that was closed"):
        buffer.physical_address  # noqa: B018
    with pytest.raises(BoardError, match="belongs to a board that was closed"):
        board.bus.read(_RAM)


def test_a_forked_child_has_no_pl(board: VirtualBoard, bit: Path) -> None:
    _download(board, bit)
    buffer = board.default_memory.allocate(4, "u1")
    board.left_in_child()
    why = f"belongs to process {os.getpid()}, from which this one was forked"
    assert board.closed and not board.bus.regions
    with pytest.raises(BoardError, match=why):
        board.bus.read(_RAM)
    with pytest.raises(BufferFreed, match=why):
        buffer.physical_address  # noqa: B018
    board.closed = False  # so that the fixture closes it


def test_memories(board: VirtualBoard) -> None:
    ddr, any_memory = board.default_memory, board.get_memory({})
    for found in (ddr, any_memory):
        assert (found.base_address, found.size, found.idx) == (0, DDR_BYTES, 0)
    described = {"phys_addr": _RAM, "addr_range": 64}
    ram = board.get_memory(described)
    assert (ram.device, ram.desc, ram.base_address, ram.size) == (board, described, _RAM, 64)
    buffer = ddr.allocate((4, 2), "u2", cacheable=False)
    assert (buffer.device, buffer.shape, buffer.dtype) == (board, (4, 2), np.uint16)
    assert (ddr.num_buffers, ddr.mem_used) == (1, board.memory.used_bytes)
    address = buffer.physical_address
    ddr.write(address, 0x00020001)
    assert buffer.flat[:3].tolist() == [1, 2, 0] and ddr.read(address) == 0x00020001
    assert type(ddr.read(address)) is int
    with pytest.raises(BoardError, match=f"the memory at 0x{_RAM:08x} is block RAM of the PL"):
        ram.allocate(4, "u1")
    with pytest.raises(BoardError, match="no memory is called 'ddr'; there are none"):
        board.get_memory_by_name("ddr")


def test_a_cached_copy_reaches_ddr_when_it_is_flushed(board: VirtualBoard) -> None:
    buffer = board.default_memory.allocate(4, "u1")
    seen = board.memory.view(buffer.physical_address, 4)
    buffer[:] = 3
    assert bytes(seen) == bytes(4)
    buffer.flush()
    assert bytes(seen) == b"\3" * 4
    seen[:] = b"\7" * 4
    assert buffer.tolist() == [3] * 4
    buffer.invalidate()
    assert buffer.tolist() == [7] * 4


def test_physical_ranges_as_arrays(board: VirtualBoard, bit: Path) -> None:
    class Backed(IpModel):
        def backing(self, slave: str = "") -> memoryview | None:
            return memoryview(bytearray(range(64))) if slave == "s" else None

    _download(board, bit)
    model: Any = Backed(board, IpInstance("unit", "a:b:c:1.0"))
    for at, slave in ((0x5000_0000, "s"), (0x5000_1000, "")):
        board.bus.attach(at, 0x1000, model, slave, "unit")
    ddr = board.mmap(0x1000, 64)
    assert (type(ddr), ddr.dtype, ddr.shape) == (np.ndarray, np.uint32, (16,))
    with pytest.raises(BusError, match=f"no IP answers at physical address 0x{DDR_BYTES:08x}"):
        board.mmap(DDR_BYTES, 4)
    for at, nbytes, kind in (
        (_RAM, 0x2000, np.ndarray),
        (_RAM + 0x1FFC, 4, np.ndarray),
        (_RAM + 0x1FFC, 8, RegisterArray),  # partly behind its end
        (0x5000_1000, 8, RegisterArray),
    ):
        found = board.mmap(at, nbytes)
        assert (type(found), found.dtype, found.shape) == (kind, np.uint32, (nbytes // 4,))
    board.mmap(_RAM + 0x100, 64)[1] = 5
    assert board.ip["ram"].read(0x104) == 5
    registers = board.mmap(0x5000_0010, 16)
    assert registers._address == 0x5000_0010
    assert registers.view(np.ndarray).view("u1").tolist() == list(range(16, 32))


def test_loads(board: VirtualBoard, bit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    board.on_load(lambda: said.append("load"))
    board.on_unload(lambda: said.append("unload"))
    parser = _download(board, bit, tool_version="2021.1")
    assert (board.tool_version, board.handoff, said) == ((2021, 1), parser.handoff, ["load"])
    assert board.timestamp and repr(board) == "<VirtualBoard csim: PYNQ-Z2, ram.bit>"
    assert (len(board.memory.windows), board.bus.read(_RAM)) == (2, 0)

    def interrupted(_: Any) -> None:
        board.ip["ram"].write(0, 7)
        signal.raise_signal(signal.SIGINT)
        said.append("not interrupted yet")
        raise BoardError("stopped in the middle")

    with monkeypatch.context() as patch:
        patch.setattr(board, "_start_units", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _download(board, bit)
    assert said[1:] == ["unload", "not interrupted yet", "unload"]
    assert (board.timestamp, board.ip, len(board.memory.windows)) == ("", {}, 1)
    assert [region.name for region in board.bus.regions] == ["SLCR"]
    _download(board, bit)
    assert board.bus.read(_RAM) == 0
    bitstream = SimpleNamespace(bitfile_name=str(bit), partial=False, timestamp="")
    with pytest.raises(BoardError, match=r"ram.bit was downloaded without a hardware handoff: use"):
        board.download(bitstream)
    with pytest.raises(BoardError, match=r"ram.bit is a partial bitstream: "):
        board.get_bitfile_metadata(str(bit), partial=True)
    board.closed = True
    board.memory.gone = "is gone"
    with pytest.raises(BoardError, match=r"ram.bit cannot be loaded: the PL is gone; call"):
        board.download(bitstream, parser)
    board.closed = False


def test_pynqs_clocks_are_those_of_the_board_in_use(
    board: VirtualBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_devices", "_active_device"):
        monkeypatch.setattr(Device, name, getattr(Device, name, None), raising=False)
    second = VirtualBoard()
    try:
        for each, mhz in ((board, 100.0), (second, 50.0)):
            each.install()
            assert Device.devices == [each] and Device.active_device is each
            Clocks.fclk0_mhz = mhz
            assert each.slcr.fclk_hz(0) == mhz * 1e6
        board.install()
        assert Clocks.fclk0_mhz == 100.0
    finally:
        second.close()
        if "_real_instance" in vars(Clocks):
            del Clocks._real_instance


# ---- what pynq parses ------------------------------------------------------------------------


def test_the_memories_that_xrt_adds(bit: Path) -> None:
    ddr = pynq_metadata.parse_handoff(bit.with_suffix(".hwh")).mem_dict["PSDDR"]
    assert ddr == {
        **{"base_address": 0, "size": DDR_BYTES, "idx": 0, "tag": "PSDDR", "streaming": False},
        **{"raw_type": 2, "used": 1, "type": "DDR4"},
    }


def test_another_package_is_said_where_it_is_loaded(board: VirtualBoard, bit: Path) -> None:
    hwh = bit.with_suffix(".hwh")
    hwh.write_text(hwh.read_text().replace("clg400", "clg484"))
    with pytest.warns(UserWarning, match=r"ram.hwh is for package clg484; a PYNQ-Z2 has") as said:
        board.get_bitfile_metadata(str(bit))
    assert said[0].filename == __file__


def test_handoffs_that_cannot_be_parsed(bit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hwh = bit.with_suffix(".hwh")

    def fails(_: Any) -> Any:
        raise KeyError("NAME")

    with monkeypatch.context() as patch:
        patch.setattr(pynq_metadata, "RuntimeMetadataParser", fails)
        text = r"pynq's own parser fails on ram.hwh: KeyError: 'NAME'\. It would fail on the board"
        with pytest.raises(HandoffError, match=text):
            pynq_metadata.parse_handoff(hwh)
        hwh.write_text(hwh.read_text().replace("axi_bram_ctrl:4.1", "axi_bram_ctrl:4"))
        text = r"these have none: xilinx.com:ip:axi_bram_ctrl:4\)\. It would fail"
        with pytest.raises(HandoffError, match=text):
            pynq_metadata.parse_handoff(hwh)
    with monkeypatch.context() as patch:
        patch.setattr(pynq_metadata, "read_handoff", fails)
        with pytest.raises(HandoffError, match=r"ram.hwh is damaged: 'NAME'. Copy the .hwh"):
            pynq_metadata.parse_handoff(hwh)


@pytest.mark.parametrize("imported", [False, True])
def test_designs_with_hdmi_need_a_module_that_pynq_imports_on_arm_only(
    bit: Path, monkeypatch: pytest.MonkeyPatch, imported: bool
) -> None:
    done: list[str] = []
    video = {"pynq.lib.video": types.ModuleType("pynq.lib.video")} if imported else {}
    others = {n: m for n, m in sys.modules.items() if not n.startswith("pynq.lib.video")}
    monkeypatch.setattr(pynq_metadata, "sys", SimpleNamespace(modules=others | video))
    monkeypatch.setattr(
        pynq_metadata, "importlib", SimpleNamespace(import_module=lambda name: done.append(name))
    )
    pynq_metadata.parse_handoff(bit.with_suffix(".hwh"))
    assert done == (["pynq.lib.video.dvi"] if imported else [])
