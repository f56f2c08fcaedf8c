"""The virtual board as the device that pynq asks; nothing is compiled and no process runs."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ip_handoff import Ip, write_design
from pynq.pl_server.device import Device
from pynq.ps import Clocks

from pynq_torch import paths
from pynq_torch.board import pynq_metadata
from pynq_torch.board.bus import IpModel
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.handoff import IpInstance, StreamLink
from pynq_torch.board.handoff_ranges import Slave
from pynq_torch.board.loading import MODELS
from pynq_torch.board.memory import CMA_BYTES, DDR_BYTES
from pynq_torch.board.register_array import RegisterArray
from pynq_torch.board.streams import Endpoint, Ring
from pynq_torch.errors import BoardError, BufferFreed, BusError, HandoffError, NoModelError
from pynq_torch.hls.build import Build

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
    assert [region.name for region in board.bus.regions] == ["SLCR", "XADC"]
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
    hooked: list[int] = []
    monkeypatch.setattr(second.linux, "install", lambda: hooked.append(1))
    try:
        for each, mhz in ((board, 100.0), (second, 50.0)):
            each.install()
            assert Device.devices == [each] and Device.active_device is each
            Clocks.fclk0_mhz = mhz
            assert each.slcr.fclk_hz(0) == mhz * 1e6
        board.install()
        assert Clocks.fclk0_mhz == 100.0 and hooked == [1]
    finally:
        second.close()
        if "_real_instance" in vars(Clocks):
            del Clocks._real_instance


# ---- what a design gets ----------------------------------------------------------------------


_SLAVE = Slave("S", 0x5000_0000, 0x1000, "Reg", False)
_PORTS = {"m": (True, 4)}


def _design(**kinds: tuple[str, tuple[Slave, ...], dict[str, tuple[bool, int]]]) -> Any:
    """Return a handoff of IPs: the end of the VLNV, slaves and streams of each."""
    ips = {
        name: IpInstance(name, f"xilinx.com:{kind}:1.0", slaves=slaves, stream_ports=ports)
        for name, (kind, slaves, ports) in kinds.items()
    }
    return SimpleNamespace(ips=ips, links=[], hls_tool="vivado", path=Path("d.hwh"))


def test_what_is_built(board: VirtualBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    design = _design(
        one=("hls:one", (_SLAVE,), {}),
        again=("hls:one", (_SLAVE,), {}),
        streams=("hls:two", (), _PORTS),
        nothing=("hls:three", (), {}),
        unknown=("hls:none", (_SLAVE,), {}),
        other=("ip:four", (_SLAVE,), {}),
        ram=("ip:axi_bram_ctrl", (_SLAVE,), {}),
    )
    prepared: list[str] = []
    for kind, model in MODELS.items():
        prepare = lambda kind=kind: prepared.append(kind)  # noqa: E731
        monkeypatch.setattr(model, "prepare", prepare)
    sought: list[str] = []

    def find(name: str, folders: list[Path]) -> SimpleNamespace | None:
        sought.append(name)
        return None if name == "none" else SimpleNamespace(source=Path(f"{name}.cpp"))

    monkeypatch.setattr("pynq_torch.board.loading.hls.find_kernel", find)
    monkeypatch.setattr(
        "pynq_torch.board.loading.hls.build", lambda source, **how: (source.source, how)
    )
    monkeypatch.setattr(board, "sanitize", "as the board")
    how = {"tool": "vivado", "sanitize": "as the board", "cflags": []}
    assert board._build(design) == {n: (Path(f"{n}.cpp"), how) for n in ("one", "two")}
    assert (prepared, set(sought)) == (["axi_bram_ctrl"], {"one", "two", "none"})

    def fails() -> None:
        raise BoardError("no compiler")

    monkeypatch.setattr(MODELS["axi_bram_ctrl"], "prepare", fails)
    with pytest.raises(BoardError, match="no compiler"):
        board._build(design)


def test_a_given_folder_comes_before_the_projects_own(board: VirtualBoard, tmp_path: Path) -> None:
    def found(name: str) -> str | None:
        source = board._find_source(IpInstance("ip", f"xilinx.com:hls:{name}:1.0"))
        return source and str(source.source)

    (tmp_path / "vadd").mkdir()
    (tmp_path / "vadd" / "vadd.cpp").write_text("void vadd() {}")
    board.kernel_paths = [paths.KERNELS, tmp_path]
    assert found("vadd") == str(tmp_path / "vadd" / "vadd.cpp")
    assert str(found("gemm")).startswith(str(paths.KERNELS)) and found("no_such_kernel") is None


def test_which_model_an_ip_gets(board: VirtualBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    slaves = [dataclasses.replace(_SLAVE, base=_SLAVE.base + (i << 12)) for i in range(9)]
    design = _design(
        ps=("ip:processing_system7", (slaves[0],), {}),
        unit=("hls:unit", (slaves[1], slaves[2]), _PORTS),
        streams=("hls:unit", (), _PORTS),
        nothing=("hls:unit", (), {}),
        unbuilt=("hls:other", (slaves[3],), {}),
        unbuilt_streams=("hls:other", (), _PORTS),
        xilinx=("ip:unit", (slaves[4],), {}),
        ram=("ip:axi_bram_ctrl", (slaves[5],), {}),
    )
    design.links = [
        StreamLink(Endpoint("unit", "m"), None, 4, 4, 16),
        StreamLink(Endpoint("unbuilt_streams", "m"), None, 4, 4, 16),
    ]
    events: list[Any] = []

    class Unit(IpModel):
        def __init__(self, board: Any, ip: IpInstance, build: str, rings: dict[str, Ring]) -> None:
            super().__init__(board, ip)
            events.append((ip.name, build, list(rings), list(board.ip)))

        def connect(self) -> None:
            events.append(f"connect {self.ip.name}")

        def close(self) -> None:
            events.append(f"close {self.ip.name}")

    monkeypatch.setattr("pynq_torch.board.loading.HlsKernel", Unit)
    monkeypatch.setattr(board, "_start_units", lambda _: events.append("start"))
    board._populate(design, {"unit": "build"})
    assert events == [
        *(("unit", "build", ["m"], ["ram"]), ("streams", "build", [], ["ram", "unit"])),
        *("start", "connect unit", "connect streams"),
    ]
    kinds = {name: type(model).__name__ for name, model in board.ip.items()}
    assert kinds == {
        **{"ram": "AxiBram", "unit": "Unit", "streams": "Unit"},
        **{"unbuilt": "NoModel", "xilinx": "NoModel"},
    }
    shown = {region.base: (region.name, region.slave) for region in board.bus.regions[2:]}
    owners = {1: "unit", 2: "unit", 3: "unbuilt", 4: "xilinx", 5: "ram"}
    assert shown == {slaves[i].base: (name, "S") for i, name in owners.items()}
    with pytest.raises(NoModelError, match=str(board.kernel_paths[0])):
        board.bus.write(slaves[3].base, 1)
    (ring,) = board.rings
    events.clear()
    board._progress = ("the last design's",)
    board._unload()
    assert events == ["close unit", "close streams"]
    assert (board.ip, board.rings, board._progress) == ({}, [], ())
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(ring.fd)


def test_a_difference_is_said_once_and_where_it_is_built(
    board: VirtualBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = _design(
        unit=("hls:unit", (_SLAVE,), {}), alike=("hls:alike", (_SLAVE,), {}), ip=("ip:unit", (), {})
    )
    interface: Any = SimpleNamespace(source="unit.cpp")
    build = Build(Path("none"), interface, 0.0, True, "")
    monkeypatch.setattr(board, "_find_source", lambda ip: ip.vlnv_name)
    monkeypatch.setattr(board, "_build_kernel", lambda *_: build)
    remarks = {"unit": ["one", "two"], "alike": []}

    def binding(ip: IpInstance, _: Any) -> Any:
        return SimpleNamespace(check=lambda path: remarks[ip.vlnv_name])

    monkeypatch.setattr("pynq_torch.board.loading.Binding", binding)
    with pytest.warns(UserWarning, match=r"unit: unit.cpp and d.hwh differ: one; two. Are") as said:
        board._build(design)
    assert [each.filename for each in said] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        board._build(design)
        monkeypatch.setattr(board, "_build_kernel", lambda *_: "not one of C++")
        assert board._build(design) == dict.fromkeys(("unit", "alike"), "not one of C++")


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
