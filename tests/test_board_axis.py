"""AXI4-Stream IP between DMAs and kernels, under unmodified pynq programs."""

from __future__ import annotations

import struct
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pynq
import pytest
from helpers import eventually, start, wait_done
from ip_handoff import AXI_DMA, Ip, write_design

from pynq_torch.board import use_board
from pynq_torch.board.axis_parameters import NotCarried, StreamMode, settings_of
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.engine import EngineProcess
from pynq_torch.board.ip import axis as axis_model
from pynq_torch.board.memory import PhysicalMemory
from pynq_torch.board.streams import Ring
from pynq_torch.errors import BoardHang, NotModelledWarning
from pynq_torch.hls import compile_engine

pytestmark = pytest.mark.timeout(120)

Load = Callable[..., Any]


@pytest.fixture
def board() -> Iterator[VirtualBoard]:
    board = use_board("csim", hang_timeout_s=1.0)
    assert isinstance(board, VirtualBoard)
    yield board
    board.close()


@pytest.fixture
def load(board: VirtualBoard, tmp_path: Path) -> Load:
    def loads(streams: dict[str, str], *ips: Ip) -> Any:
        return pynq.Overlay(str(write_design(tmp_path, "streams", list(ips), streams)))

    return loads


def dma(name: str = "dma", index: int = 0, sends: int = 32, takes: int = 32) -> Ip:
    widths = {"C_M_AXIS_MM2S_TDATA_WIDTH": sends, "C_S_AXIS_S2MM_TDATA_WIDTH": takes}
    return Ip("axi_dma", name, 0x40400000 + index * 0x10000, AXI_DMA | widths)


def axis(kind: str, name: str, parameters: dict[str, object] | None = None, **nbytes: int) -> Ip:
    return Ip(f"axis_{kind}", name, 0, parameters or {}, streams=nbytes)


def resizer(name: str, before: int, after: int) -> Ip:
    return axis("dwidth_converter", name, S_AXIS=before, M_AXIS=after)


def moved(sender: Any, words: Any, *receivers: tuple[Any, Any]) -> None:
    """Send `words` from one DMA; receive into a buffer of each of the others."""
    for receiver, target in receivers:
        target[:] = 0
        receiver.recvchannel.transfer(target)
    sender.sendchannel.transfer(words)
    sender.sendchannel.wait()
    for receiver, _ in receivers:
        receiver.recvchannel.wait()


def counting(n: int, dtype: str = "u4") -> Any:
    buffer = pynq.allocate(n, dtype)
    buffer[:] = np.arange(n)
    return buffer


def test_width_converters_between_a_dma_and_a_kernel(board: VirtualBoard, load: Load) -> None:
    overlay = load(
        {
            "dma.M_AXIS_MM2S": "narrow.S_AXIS",
            "narrow.M_AXIS": "fifo.S_AXIS",
            "fifo.M_AXIS": "scale.samples",
            "scale.scaled": "wide.S_AXIS",
            "wide.M_AXIS": "dma.S_AXIS_S2MM",
        },
        dma(sends=64, takes=64),
        resizer("narrow", 8, 4),
        axis("data_fifo", "fifo", {"FIFO_DEPTH": 512}, S_AXIS=4, M_AXIS=4),
        Ip("scale_stream", "scale", 0x43C00000, {}, 0x10000, {"samples": 4, "scaled": 4}, "hls"),
        resizer("wide", 4, 8),
    )
    shown = [(str(r.source), str(r.sink), r.data_bytes, r.depth) for r in board.rings]
    assert shown == [
        ("dma.M_AXIS_MM2S", "scale.samples", 4, 16 + 2 + 512),
        ("scale.scaled", "dma.S_AXIS_S2MM", 4, 16 + 2),
    ]
    overlay.scale.write(0x18, int(np.float32(2).view("u4")))
    overlay.scale.write(0x20, int(np.float32(0.5).view("u4")))
    for n in (1, 7, 3000):  # an odd count ends in half a beat of the DMA
        words, target = counting(n, "f4"), pynq.allocate(n, "f4")
        start(overlay.scale)
        moved(overlay.dma, words, (overlay.dma, target))
        wait_done(overlay.scale)
        assert (target == np.arange(n, dtype="f4") * 2 + np.float32(0.5)).all()
        assert overlay.dma.recvchannel.transferred == 4 * n


@pytest.mark.parametrize("middle, beats", [(8, 4), (3, 10), (1, 28), (16, 2)])
def test_a_width_converter_far_from_a_dma(
    board: VirtualBoard, load: Load, middle: int, beats: int
) -> None:
    overlay = load(
        {
            "dma.M_AXIS_MM2S": "one.S_AXIS",
            "one.M00_AXIS": "there.S_AXIS",
            "there.M_AXIS": "two.S_AXIS",
            "two.M00_AXIS": "dma.S_AXIS_S2MM",
        },
        dma(),
        axis("broadcaster", "one", S_AXIS=4, M00_AXIS=4),
        resizer("there", 4, middle),
        axis("broadcaster", "two", S_AXIS=middle, M00_AXIS=middle),
    )
    words, target = counting(7), pynq.allocate(7, "u4")
    words[:] += 0x01020300
    for _ in range(3):
        moved(overlay.dma, words, (overlay.dma, target))
        assert (target == words).all() and overlay.dma.recvchannel.transferred == 28
    assert [(r.data_bytes, r.beats_written, r.packets) for r in board.rings if r.data_bytes != 4][
        :1
    ] == [(middle, 3 * beats, 3)]


def test_a_broadcaster_gives_each_the_bytes_that_it_asks_for(load: Load) -> None:
    overlay = load(
        {
            "dma.M_AXIS_MM2S": "both.S_AXIS",
            "both.M00_AXIS": "dma.S_AXIS_S2MM",
            "both.M01_AXIS": "other.S_AXIS_S2MM",
            "both.M02_AXIS": "nothing.S_AXIS",
        },
        dma(sends=64, takes=32),
        dma("other", 1),
        axis(
            "broadcaster",
            "both",
            {"M00_TDATA_REMAP": "tdata[31:0]", "M01_TDATA_REMAP": "tdata[63:32]"},
            **{"S_AXIS": 8, "M00_AXIS": 4, "M01_AXIS": 4, "M02_AXIS": 4},
        ),
    )
    words, low, high = counting(2000), pynq.allocate(1000, "u4"), pynq.allocate(1000, "u4")
    moved(overlay.dma, words, (overlay.dma, low), (overlay.other, high))
    assert (low == words[::2]).all() and (high == words[1::2]).all()


def test_a_combiner_puts_streams_side_by_side(load: Load) -> None:
    overlay = load(
        {
            "dma.M_AXIS_MM2S": "both.S00_AXIS",
            "other.M_AXIS_MM2S": "both.S01_AXIS",
            "both.M_AXIS": "dma.S_AXIS_S2MM",
        },
        dma(takes=64),
        dma("other", 1),
        axis("combiner", "both", S00_AXIS=4, S01_AXIS=4, M_AXIS=8),
    )
    low, high, target = counting(100), counting(100), pynq.allocate(200, "u4")
    high[:] += 1000
    overlay.other.sendchannel.transfer(high)
    moved(overlay.dma, low, (overlay.dma, target))
    overlay.other.sendchannel.wait()
    assert (target[::2] == low).all() and (target[1::2] == high).all()


def test_a_switch_that_registers_route(load: Load) -> None:
    overlay = load(
        {
            "dma.M_AXIS_MM2S": "switch.S00_AXIS",
            "other.M_AXIS_MM2S": "switch.S01_AXIS",
            "switch.M00_AXIS": "dma.S_AXIS_S2MM",
            "switch.M01_AXIS": "other.S_AXIS_S2MM",
        },
        dma(),
        dma("other", 1),
        Ip(
            "axis_switch",
            "switch",
            0x43C00000,
            {"ROUTING_MODE": 1, "NUM_MI": 2},
            streams=dict.fromkeys(("S00_AXIS", "S01_AXIS", "M00_AXIS", "M01_AXIS"), 4),
        ),
    )
    switch, words, target = overlay.switch, counting(1000), pynq.allocate(1000, "u4")
    assert switch.read(0x40) == switch.read(0x44) == 0x80000000
    switch.mi = np.array([1, 0])
    moved(overlay.dma, words, (overlay.other, target))
    assert (target == words).all() and list(switch.mi) == [1, 0] and switch.read(0) == 0
    words[:] += 5
    moved(overlay.other, words, (overlay.dma, target))
    assert (target == words).all()
    switch.mi = np.array([0, 0])  # the lower output gets it
    moved(overlay.dma, words, (overlay.dma, target))
    assert (target == words).all()
    switch.disable()
    overlay.dma.sendchannel.transfer(words)
    with pytest.raises(BoardHang, match="on the board this waits for ever"):
        overlay.dma.sendchannel.wait()


def test_a_switch_that_tdest_routes_behind_converters_that_set_it(load: Load) -> None:
    def sets(name: str, dest: str) -> Ip:
        return axis(
            "subset_converter",
            name,
            {"TDEST_REMAP": dest, "S_TDEST_WIDTH": 0, "M_TDEST_WIDTH": 4},
            S_AXIS=4,
            M_AXIS=4,
        )

    overlay = load(
        {
            "dma.M_AXIS_MM2S": "five.S_AXIS",
            "five.M_AXIS": "switch.S00_AXIS",
            "other.M_AXIS_MM2S": "nine.S_AXIS",
            "nine.M_AXIS": "switch.S01_AXIS",
            "switch.M00_AXIS": "dma.S_AXIS_S2MM",
            "switch.M01_AXIS": "other.S_AXIS_S2MM",
        },
        dma(),
        dma("other", 1),
        sets("five", "4'b0101"),
        sets("nine", "4'h9"),
        axis(
            "switch",
            "switch",
            {
                "ROUTING_MODE": 0,
                "M00_AXIS_BASETDEST": "0x00000008",
                "M00_AXIS_HIGHTDEST": "0x0000000f",
                "M01_AXIS_BASETDEST": "0x00000005",
                "M01_AXIS_HIGHTDEST": "0x00000005",
            },
            **dict.fromkeys(("S00_AXIS", "S01_AXIS", "M00_AXIS", "M01_AXIS"), 4),
        ),
    )
    words, target = counting(500), pynq.allocate(500, "u4")
    for sender, receiver in ((overlay.dma, overlay.other), (overlay.other, overlay.dma)):
        moved(sender, words, (receiver, target))
        assert (target == words).all()


def test_a_sender_waits_as_on_the_board(load: Load) -> None:
    """What the IP and the slices hold is a few beats; the rest stays with the DMA."""
    overlay = load(
        {"dma.M_AXIS_MM2S": "one.S_AXIS", "one.M00_AXIS": "dma.S_AXIS_S2MM"},
        dma(),
        axis("broadcaster", "one", S_AXIS=4, M00_AXIS=4),
    )
    words, target = counting(500), pynq.allocate(500, "u4")
    overlay.dma.sendchannel.transfer(words)
    with pytest.raises(BoardHang, match=r"one.M00_AXIS -> dma.S_AXIS_S2MM: \d\d beats sent"):
        overlay.dma.sendchannel.wait()
    overlay.dma.recvchannel.transfer(target)
    overlay.dma.sendchannel.wait()
    overlay.dma.recvchannel.wait()
    assert (target == words).all()


def test_a_subset_converter_makes_and_drops_tlast(load: Load) -> None:
    overlay = load(
        {"dma.M_AXIS_MM2S": "cuts.S_AXIS", "cuts.M_AXIS": "dma.S_AXIS_S2MM"},
        dma(),
        axis("subset_converter", "cuts", {"DEFAULT_TLAST": 4}, S_AXIS=4, M_AXIS=4),
    )
    target = pynq.allocate(10, "u4")
    overlay.dma.recvchannel.transfer(target)
    overlay.dma.sendchannel.transfer(counting(10))
    overlay.dma.recvchannel.wait()
    assert overlay.dma.recvchannel.transferred == 16 and list(target[:5]) == [0, 1, 2, 3, 0]


def test_a_parameter_that_is_not_carried_is_named(load: Load) -> None:
    with pytest.warns(
        NotModelledWarning, match=r"swap \(.*\): TDATA_REMAP is 'tdata\[7:0\],tdata\[15"
    ):
        overlay = load(
            {"dma.M_AXIS_MM2S": "swap.S_AXIS", "swap.M_AXIS": "dma.S_AXIS_S2MM"},
            dma(),
            axis(
                "subset_converter",
                "swap",
                {"TDATA_REMAP": "tdata[7:0], tdata[15:8]"},
                S_AXIS=4,
                M_AXIS=4,
            ),
        )
    overlay.dma.sendchannel.transfer(counting(100))
    with pytest.raises(BoardHang, match="swap has no model and passes nothing on"):
        overlay.dma.sendchannel.wait()


def test_what_parameters_say() -> None:
    def subset(**parameters: str) -> Any:
        return settings_of("axis_subset_converter", parameters)

    plain = {"TDATA_REMAP": "tdata[31:0]", "TLAST_REMAP": "tlast[0]", "TKEEP_REMAP": "tkeep[3:0]"}
    assert subset(**plain, S_TDATA_NUM_BYTES="4", M_TDATA_NUM_BYTES="4").passes
    assert subset(S_HAS_TLAST="1", M_HAS_TLAST="0").sets == {"last": 0}
    assert subset(S_HAS_TLAST="0", M_HAS_TLAST="1", TLAST_REMAP="1'b1").sets == {"last": 1}
    assert subset(S_HAS_TKEEP="1", M_HAS_TKEEP="0").sets == {"keep": 1}
    assert subset(TKEEP_REMAP="4'b1111", TID_REMAP="8'h1f").sets == {"keep": 1, "id": 31}
    assert subset(TDATA_REMAP="8'b00000000,tdata[23:0]").passes
    assert not subset(TDATA_REMAP="tdata[23:8]", S_TDATA_NUM_BYTES="4").passes
    assert not subset(S_TDATA_NUM_BYTES="4", M_TDATA_NUM_BYTES="8").passes
    assert settings_of("axis_combiner", {"MASTER_PORT_NUM": "1"}).primary == 1
    assert settings_of("axis_switch", {"C_ROUTING_MODE": "1"}).mode is StreamMode.ROUTE
    assert settings_of("axis_switch", {}, 1).ranges == ((0, 0xFFFFFFFF),)
    assert settings_of("axis_switch", {}, 2).ranges == ((0, 0), (1, 1))
    for kind, parameters, says in (
        ("axis_subset_converter", {"TDATA_REMAP": "tdata[30:1]"}, "TDATA_REMAP is 'tdata"),
        ("axis_subset_converter", {"TKEEP_REMAP": "4'b0000"}, "TKEEP_REMAP .* all ones"),
        ("axis_subset_converter", {"TID_REMAP": "tdest[3:1]"}, "TID_REMAP .* a constant"),
        ("axis_dwidth_converter", {"TUSER_BITS_PER_BYTE": "1"}, "TUSER_BITS_PER_BYTE is 1"),
        ("axis_switch", {"ROUTING_MODE": "many"}, "ROUTING_MODE is 'many'; expected a number"),
    ):
        with pytest.raises(NotCarried, match=says):
            settings_of(kind, parameters)


@pytest.mark.parametrize("nbytes", [128, 129])
def test_an_ip_with_too_wide_a_stream_is_named(load: Load, nbytes: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NotModelledWarning)
        load(
            {
                "dma.M_AXIS_MM2S": "one.S_AXIS",
                "one.M00_AXIS": "two.S_AXIS",
                "two.M_AXIS": "three.S_AXIS",
            },
            dma(),
            axis("broadcaster", "one", S_AXIS=4, M00_AXIS=4),
            resizer("two", 4, nbytes),
        )
    said = "M_AXIS has 129 bytes; expected at most 128" in "".join(str(w.message) for w in caught)
    assert said == (nbytes == 129)


# ---- the engine by itself: side channels that no IP of a design shows ----------------------------

SIDE = struct.Struct("<QQQIIII")  # TKEEP (two words), TUSER, TID, TDEST, TLAST, withdrawn


def give(ring: Ring, value: int, *, dest: int = 0, last: int = 0) -> None:
    at = 64 + ring.beats_written * ring._stride
    ring._map[at : at + 44] = SIDE.pack(0xF, 0, 1, 2, dest, last, 0) + value.to_bytes(4, "little")
    ring._map[16:24] = (ring.beats_written + 1).to_bytes(8, "little")


def beats(ring: Ring) -> list[tuple[int, ...]]:
    """Return what came out: value, TUSER, TID, TDEST, TLAST."""
    places = [64 + n * ring._stride for n in range(ring.beats_written)]
    sides = [SIDE.unpack_from(ring._map, at) for at in places]
    data = [int.from_bytes(ring._map[at + 40 : at + 44], "little") for at in places]
    return [(value, *side[2:6]) for value, side in zip(data, sides, strict=True)]


@pytest.fixture
def running() -> Iterator[Callable[..., list[Ring]]]:
    memory, begun = PhysicalMemory(), []

    def run(
        mode: StreamMode, inputs: int, outputs: int, *values: int, widths: tuple[int, ...] = ()
    ) -> list[Ring]:
        rings = [Ring(None, None, n) for n in widths or [4] * (inputs + outputs)]
        ports = [f"unit.p{i}" for i in range(inputs + outputs)]
        engine = EngineProcess(
            compile_engine(axis_model._SOURCE), "unit", memory, 4096, rings, ports
        )
        begun.append(engine)
        table = [*[0] * 16, *[0xFFFFFFFF] * 16, *range(16), *range(16)]
        config = axis_model._LAYOUT.pack(mode, inputs, outputs, 0, *values, *table)
        engine.user[: len(config)] = config
        engine.spawn()
        return rings

    yield run
    for engine in begun:
        engine.close()
    memory.close()


def keeps(ring: Ring) -> list[tuple[int, ...]]:
    """Return TKEEP of what came out, its two words."""
    places = [64 + n * ring._stride for n in range(ring.beats_written)]
    return [SIDE.unpack_from(ring._map, at)[:2] for at in places]


def test_bytes_of_an_output_that_is_wider(running: Callable[..., list[Ring]]) -> None:
    into, out = running(StreamMode.COPY, 1, 1, *[0] * 7, widths=(4, 12))
    give(into, 5)
    eventually(lambda: out.beats_written == 1)
    assert keeps(out) == [(0xFFF, 0)]
    into, out = running(StreamMode.RESIZE, 1, 1, *[0] * 7, widths=(128, 96))
    into._map[64:104] = SIDE.pack((1 << 64) - 1, (1 << 64) - 1, 0, 0, 0, 1, 0)
    into._map[16:24] = (1).to_bytes(8, "little")
    eventually(lambda: out.beats_written == 2)
    assert keeps(out) == [((1 << 64) - 1, (1 << 32) - 1), ((1 << 32) - 1, 0)]


def test_side_channels_that_are_replaced(running: Callable[..., list[Ring]]) -> None:
    into, out = running(StreamMode.COPY, 1, 1, 4 | 8 | 16, 0, 7, 8, 9, 0, 0)
    give(into, 5, dest=3, last=1)
    eventually(lambda: out.beats_written == 1)
    assert beats(out) == [(5, 7, 8, 9, 1)]
    into, out = running(StreamMode.COPY, 1, 1, 0, 0, 7, 8, 9, 0, 0)
    give(into, 5, dest=3, last=1)
    eventually(lambda: out.beats_written == 1)
    assert beats(out) == [(5, 1, 2, 3, 1)]


def test_an_output_is_held_until_the_packet_ends_or_goes_elsewhere(
    running: Callable[..., list[Ring]],
) -> None:
    first, second, zero, one = running(StreamMode.DECODE, 2, 2, *[0] * 7)
    give(first, 10, dest=0)
    eventually(lambda: zero.beats_written == 1)
    give(second, 20, dest=0, last=1)
    time.sleep(0.2)
    assert zero.beats_written == 1  # the first packet has the output
    give(first, 11, dest=1)
    eventually(lambda: zero.beats_written == 2 and one.beats_written == 1)
    assert [beat[0] for beat in beats(zero)] == [10, 20]
    give(second, 21, dest=1, last=1)
    time.sleep(0.2)
    assert one.beats_written == 1
    give(first, 12, dest=1, last=1)
    eventually(lambda: one.beats_written == 3)
    assert [beat[0] for beat in beats(one)] == [11, 12, 21]
