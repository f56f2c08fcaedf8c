"""What people see of board rtl: files of waves, pictures of them, traces and counters."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pynq_torch.board.rtl.observe.bus_counters import Counters
from pynq_torch.board.rtl.observe.bus_trace import Trace
from pynq_torch.board.rtl.observe.wave_file import WaveFile
from pynq_torch.board.rtl.observe.waves import Waves
from pynq_torch.board.rtl.records import PortCounters, Transaction
from pynq_torch.errors import BoardError, WaveError
from pynq_torch.plot.wave_picture import MAX_COLUMNS, picture, value_text

PERIOD = 10_000
FIRST, START, DONE, LAST = 100, 105, 150, 159
_HEADER = """$timescale 1ps $end
$scope module TOP $end
$var wire 1 ! ap_clk $end
$var wire 32 " s_axi_control_WDATA [31:0] $end
$scope module vadd $end
$var wire 1 ! ap_clk $end
$var wire 32 " s_axi_control_WDATA [31:0] $end
$var wire 1 # ap_start $end
$var wire 8 & count [7:0] $end
$scope module left $end
$var wire 8 % x [7:0] $end
$upscope $end
$scope module right $end
$var wire 8 ' x [7:0] $end
$var wire 4 ( y [3:0] $end
$upscope $end
$upscope $end
$upscope $end
$enddefinitions $end
"""


@pytest.fixture(scope="module")
def vcd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write waves as this board does: inputs when a cycle begins, its edge in the middle."""
    lines = [_HEADER]
    for cycle in range(FIRST, LAST + 1):
        started = int(START <= cycle < DONE)
        data = 0x3FC00000 if cycle > 103 else 0
        x = "xxxxxxxx" if cycle == FIRST else f"{cycle % 4:b}"
        lines.append(f"#{cycle * PERIOD}\n0!\nb{data:b} \"\n{started}#\nb{x} %\nb1 '\nb11 (\n")
        # What registers take at the edge is a value of the next cycle.
        lines.append(f"#{cycle * PERIOD + PERIOD // 2}\n1!\nb{cycle + 1 - FIRST:b} &\n")
    path = tmp_path_factory.mktemp("waves") / "vadd.vcd"
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def waves(vcd: Path) -> WaveFile:
    return WaveFile(vcd)


def test_cycles_and_values(waves: WaveFile):
    assert waves.cycles == range(FIRST, LAST + 1)
    assert waves.values("ap_start", (START - 1, START + 1)) == [0, 1]
    assert waves.values("s_axi_control_WDATA", (103, 105)) == [0, 0x3FC00000]
    # a register: in a cycle it holds what it took at the edge before
    assert waves.values("count", (FIRST, FIRST + 3)) == ["x" * 8, 1, 2]
    assert waves.values("left.x", (FIRST, FIRST + 2)) == ["x" * 8, (FIRST + 1) % 4]


def test_finding_a_moment(waves: WaveFile):
    assert waves.find("ap_start") == START
    assert waves.find("ap_start", 0, after=START) == DONE
    with pytest.raises(WaveError, match="count is never 200"):
        waves.find("count", 200)


def test_names_are_found_by_their_end(waves: WaveFile):
    assert waves.full_name("ap_start") == "TOP.vadd.ap_start"
    assert waves.full_name("y") == "TOP.vadd.right.y"
    assert "left.x" in waves.signals
    assert waves.signals.count("s_axi_control_WDATA") == 1  # and not that of TOP as well
    with pytest.raises(WaveError, match=r"several signals 'x': TOP\.vadd\.left\.x"):
        waves.signal("x")
    with pytest.raises(WaveError, match=r"no signal 'ap_strat'; did you mean ap_start"):
        waves.signal("ap_strat")


def test_files_that_are_none(tmp_path: Path, vcd: Path):
    with pytest.raises(WaveError, match=r"none\.vcd: no such file"):
        WaveFile(tmp_path / "none.vcd")
    for name in ("bad.vcd", "bad.fst"):
        (tmp_path / name).write_bytes(b"no waves")
        with pytest.raises(WaveError, match=r"\(8 bytes\) is no whole file of waves"):
            WaveFile(tmp_path / name)
    other = tmp_path / "other.vcd"
    other.write_text(vcd.read_text().replace("ap_clk", "tick"))
    with pytest.raises(WaveError, match="has no clock called ap_clk, clk"):
        _ = WaveFile(other).cycles
    assert WaveFile(other, clock="tick").cycles == range(FIRST, LAST + 1)
    # A recording that was cut off gives what it has.
    cut = tmp_path / "cut.vcd"
    cut.write_text(vcd.read_text()[:-400])
    assert WaveFile(cut).cycles.stop < LAST + 1


# ---- pictures ------------------------------------------------------------------------------------


def test_a_picture_folds_what_does_not_change(waves: WaveFile):
    drawn = picture(waves, ["ap_start", "s_axi_control_WDATA"], radix="float")
    assert drawn.columns == [100, 101, None, 104, 105, 106, None, 150, 151, None]
    signal = {row["name"]: row for row in drawn.wavedrom["signal"]}
    assert signal["ap_start"]["wave"] == "0.|.1.|0.|"
    assert signal["s_axi_control_WDATA"] == {
        "name": "s_axi_control_WDATA",
        "wave": "=.|=..|..|",
        "data": ["0", "1.5"],
    }
    assert signal["cycle"]["data"][:4] == ["100", "101", "...", "104"]
    whole = picture(waves, ["ap_start"], (140, 155), fold=False)
    assert whole.columns == list(range(140, 155))
    json.dumps(drawn.wavedrom)


def test_what_folds_has_to_change_for_none_of_the_signals(waves: WaveFile):
    drawn = picture(waves, ["ap_start", "left.x"], (106, 120))
    assert None not in drawn.columns
    assert picture(waves, ["ap_start"], (106, 120)).columns == [106, 107, None]


def test_unknown_bits_are_shown_as_such(waves: WaveFile):
    wave = picture(waves, ["left.x"], (100, 103)).wavedrom["signal"][1]
    assert wave["wave"] == "x=="
    assert wave["data"] == ["1", "2"]


def test_groups_origin_and_title(waves: WaveFile):
    groups = {"control": ["ap_start"], "data": ["y"]}
    drawn = picture(waves, groups, (-1, 2), origin=START, title="the start")
    assert drawn.wavedrom["signal"][0]["data"] == ["-1", "0", "1"]
    assert [row[0] for row in drawn.wavedrom["signal"][1:]] == ["control", "data"]
    assert drawn.wavedrom["head"] == {"text": "the start"}


def test_the_svg_is_well_formed_and_always_the_same(waves: WaveFile, tmp_path: Path):
    drawn = picture(waves, ["ap_start", "count"], (100, 120), title="a & b")
    root = ElementTree.fromstring(drawn.svg)
    assert root.tag.endswith("svg")
    texts = {element.text for element in root.iter() if element.text}
    assert {"ap_start", "count", "a & b", "100", "13"} <= texts
    assert picture(waves, ["ap_start", "count"], (100, 120), title="a & b").svg == drawn.svg
    drawn.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == drawn.svg


def test_the_same_as_text(waves: WaveFile):
    assert str(picture(waves, ["ap_start", "count"], (-2, 2), origin=START)).splitlines() == [
        "cycle     -2 -1 0  1",
        "ap_start  ▁▁▁▁▁▁▔▔▔▔▔▔",
        "count     3  4  5  6",
    ]


def test_without_wavedrom_there_is_text(waves: WaveFile, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "wavedrom", None)
    drawn = picture(waves, ["ap_start"])
    assert drawn._repr_svg_() is None
    with pytest.raises(WaveError, match="needs the package 'wavedrom'"):
        _ = drawn.svg


def test_windows_that_cannot_be_shown(waves: WaveFile):
    with pytest.raises(WaveError, match="has the cycles 100 to 159; found 500 to 509"):
        picture(waves, ["ap_start"], (500, 510))
    with pytest.raises(WaveError, match=f"at most {MAX_COLUMNS}"):
        wide = _counting(waves.path.with_name("long.vcd"), 300)
        picture(wide, ["count"])


def _counting(path: Path, cycles: int) -> WaveFile:
    header = "$scope module t $end\n$var wire 1 ! clk $end\n$var wire 16 & count $end\n"
    lines = [header, "$upscope $end\n$enddefinitions $end\n"]
    lines += [f"#{10 * c}\n0!\nb{c:b} &\n#{10 * c + 5}\n1!\n" for c in range(cycles)]
    path.write_text("".join(lines))
    return WaveFile(path)


@pytest.mark.parametrize(
    ("value", "width", "radix", "text"),
    [
        (12, 4, "", "12"),
        (255, 8, "", "ff"),
        (255, 8, "dec", "255"),
        (255, 8, "signed", "-1"),
        (5, 8, "bin", "00000101"),
        (0xBFC00000, 32, "float", "-1.5"),
        (0x3FF8000000000000, 64, "float", "1.5"),
        (3, 8, lambda value: f"<{value}>", "<3>"),
        ("1xz0", 4, "hex", "1xz0"),
        ("x" * 32, 32, "", "x"),
    ],
)
def test_how_values_are_written(value: Any, width: int, radix: Any, text: str):
    assert value_text(value, width, radix) == text


def test_a_radix_that_does_not_fit():
    with pytest.raises(WaveError, match="'float' does not fit 16 bits"):
        value_text(1, 16, "float")


# ---- controls ------------------------------------------------------------------------------------


def test_controls_choose_signals_and_window(waves: WaveFile):
    view = waves.show(["ap_start", "count"], (100, 110), live=True)
    assert view.begin.value == 100 and view.span.value == 10
    assert "ap_start" in view.picture.value
    view.begin.value = 145
    assert view.shown.columns[0] == 145
    view.signals.value = ("ap_start",)
    view.fold.value = False
    assert [lane.name for lane in view.shown.lanes] == ["ap_start"]
    assert view.shown.columns == list(range(145, 155))
    assert "ap_start" in view.picture.value and "count" not in view.picture.value
    bundle = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["image/svg+xml"] == view.shown.svg


def test_an_error_is_shown_in_place_of_the_picture(waves: WaveFile):
    view = _counting(waves.path.with_name("long.vcd"), 300).show(["count"], (0, 20), live=True)
    view.span.value = 300
    assert view.shown is None
    assert "choose fewer cycles" in view.message.value
    view.span.value = 20
    assert view.shown is not None and not view.message.value


def test_a_page_without_a_kernel_has_the_picture_only(
    waves: WaveFile, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYNQ_TORCH_STATIC", "1")
    assert waves.show(["ap_start"])._repr_svg_() is not None


def test_without_a_choice_the_control_comes_first(waves: WaveFile):
    names = [lane.name for lane in waves.show(live=False, cycles=(100, 120)).lanes]
    assert names[0] == "ap_start"
    assert "ap_clk" not in names


# ---- the trace -----------------------------------------------------------------------------------


def _read(cycle: int, port: str = "m_axi_gmem0", **more: Any) -> Transaction:
    fields: dict[str, Any] = {
        "cycle": cycle,
        "unit": "vadd_0",
        "port": port,
        "kind": "read",
        "address": 0x1600_0000 + 64 * cycle,
        "beats": 16,
        "bytes": 64,
        "resp": "OKAY",
        "first": cycle + 30,
        "done": cycle + 45,
    }
    return Transaction(**(fields | more))


@pytest.fixture
def trace() -> Trace:
    control = {"kind": "register write", "beats": 1, "bytes": 4, "first": 3, "done": 4, "value": 1}
    rows = [
        _read(120),
        _read(110, port="m_axi_gmem1"),
        _read(140, port="m_axi_gmem2", kind="write", stalls=7),
        _read(3, port="s_axi_control", address=0, **control),
        _read(180, resp="DECERR", address=0xF000_0000, unit="gemm_0", cut=True),
    ]
    return Trace(rows, 100e6, dropped=3, about="cycles counted in RTL, memory model pynq-z2")


def test_a_trace_is_in_order_of_its_addresses(trace: Trace):
    assert [t.cycle for t in trace] == [3, 110, 120, 140, 180]
    assert trace.cycles == (3, 226)
    assert isinstance(trace[1:], Trace) and trace[1].cycle == 110
    assert trace.nbytes == 4 * 64 + 4


def test_a_trace_as_text_html_and_csv(trace: Trace, tmp_path: Path):
    lines = str(trace).splitlines()
    columns = "cycle unit port kind address beats bytes value latency stalls resp"
    assert " ".join(lines[0].split()) == columns
    first = "3 vadd_0 s_axi_control register write 0x00000000 1 4 0x1 1 0 OKAY"
    assert " ".join(lines[2].split()) == first
    assert "never ended" in str(trace) and "DECERR" in str(trace)
    assert lines[-1] == (
        "5 transactions, 260 bytes, 3 older ones no longer there; cycles counted in RTL, memory "
        "model pynq-z2 at 100 MHz"
    )
    assert trace._repr_html_().count("<tr>") == 6
    text = trace.csv(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == text and len(text.splitlines()) == 6


def test_choosing_transactions(trace: Trace):
    assert len(trace.filter(unit="vadd_0")) == 4
    assert len(trace.filter(port="gmem0")) == 2
    assert [t.cycle for t in trace.filter(kind="register")] == [3]
    assert [t.cycle for t in trace.filter(kind="write")] == [140]
    assert [t.cycle for t in trace.filter(cycles=(166, 180))] == [140]  # 120 ended in 165
    assert [t.cycle for t in trace.filter(address=(0xF000_0000, 0xF000_0001))] == [180]
    assert [t.cycle for t in trace.filter(resp="DECERR")] == [180]
    assert [t.cycle for t in trace.filter(where=lambda t: t.stalls > 0)] == [140]
    with pytest.raises(ValueError, match="no transaction has the unit 'vadd_1'; there are vadd_0"):
        trace.filter(unit="vadd_1")


def test_cycles_since_a_moment(trace: Trace):
    moved = trace.since(110)
    assert [t.cycle for t in moved] == [-107, 0, 10, 30, 70]
    assert [t.latency for t in moved] == [t.latency for t in trace]
    assert moved[1].first == trace[1].first - 110


def test_cycles_since_the_start(trace: Trace):
    moved = trace.since_start("vadd_0")
    assert [t.cycle for t in moved] == [-1, 106, 116, 136]  # the write ended in 4
    assert [t.cycle for t in moved.filter(kind="memory")] == [106, 116, 136]
    with pytest.raises(ValueError, match="no write of AP_START in the trace of gemm_0"):
        trace.since_start("gemm_0")


def test_a_long_trace_shows_its_ends():
    trace = Trace([_read(cycle) for cycle in range(1000)])
    assert "960 more" in str(trace)
    assert len(str(trace).splitlines()) == 40 + 4
    assert len(trace.csv().splitlines()) == 1001
    assert str(Trace([])).startswith("0 transactions")


def test_a_timeline_of_the_bus(trace: Trace):
    chart = trace.plot(title="traffic")
    assert [row[0] for row in chart.table.rows] == [
        "gemm_0 gmem0 read",
        "vadd_0 control write",
        "vadd_0 gmem0 read",
        "vadd_0 gmem1 read",
        "vadd_0 gmem2 write",
    ]
    assert "memory model pynq-z2, at 100 MHz" in chart.get_xlabel()
    assert chart.get_xlim() == (3, 226)
    assert len(chart.patches) == 10  # each from its address, and from its data on
    with pytest.raises(ValueError, match="nothing to draw"):
        trace.plot((1000, 2000))


def test_a_timeline_of_many_shows_shares():
    rows = [_read(16 * n, first=16 * n + 30, done=16 * n + 45) for n in range(1000)]
    chart = Trace(rows).plot()
    (patch,) = chart.patches
    tops = patch.get_data().values
    # a beat a cycle: the area reaches the top of its lane
    assert tops[len(tops) // 2] == pytest.approx(-0.4)
    assert "beats a cycle" in chart.get_xlabel()


# ---- counters ------------------------------------------------------------------------------------


def _counted(port: str, cycles: int = 1000, **more: int) -> PortCounters:
    fields: dict[str, Any] = dict.fromkeys(
        ["busy", "stall_address", "stall_memory", "stall_design", "wait_response"], 0
    )
    fields |= {"transactions": 10, "beats": 160, "bytes": 640, "cycles": cycles, "errors": 0}
    fields |= {"latency_sum": 450, "latency_max": 60, **more}
    return PortCounters("vadd_0", port, "read", **fields)


def test_counters_as_a_table(tmp_path: Path):
    rows = [_counted("m_axi_gmem0", stall_memory=30), _counted("m_axi_gmem1", beats=500)]
    counters = Counters(rows, 1000, 100e6)
    assert counters.table.rows[0] == (
        ["vadd_0", "m_axi_gmem0", "read", "640", "160", "10", "30", "0", "45.0", "16.0%"]
    )
    assert counters.table.rows[1][-1] == "50.0%"
    assert counters.nbytes == 1280
    assert [row.port for row in counters.filter(port="gmem1")] == ["m_axi_gmem1"]
    assert "1,000 cycles counted in RTL at 100 MHz" in str(counters)
    assert counters._repr_html_().count("<tr>") == 3
    assert counters.csv(tmp_path / "c.csv").startswith("unit,port,direction,bytes")


def test_counters_of_a_part():
    before = Counters([_counted("m_axi_gmem0", cycles=400)], 400)
    more = {"beats": 760, "bytes": 3040, "transactions": 50, "latency_sum": 2450}
    after = Counters([_counted("m_axi_gmem0", **more)], 1000)
    (row,) = after - before
    assert (row.beats, row.transactions, row.latency_mean) == (600, 40, 50.0)
    assert row.utilisation == pytest.approx(1.0)
    assert (after - before).cycles == 600


def test_a_board_without_rtl_has_neither():
    class Board:
        board_name, pl = "csim", None

    for what in (Trace.of, Counters.of):
        with pytest.raises(BoardError, match="board 'csim' simulates no RTL now"):
            what(Board())  # type: ignore[operator]


# ---- asking for waves ----------------------------------------------------------------------------


class _Pl:
    units = ("vadd_0", "vadd_1")


class _Board:
    board_name, pl, closed = "rtl", _Pl(), False


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("x.txt", {}, r"ends in \.fst or \.vcd"),
        ("x.fst", {"units": "gemm_0"}, "no unit 'gemm_0' with RTL; there are vadd_0, vadd_1"),
        ("x.fst", {"units": []}, "expected some of vadd_0"),
        ("x.fst", {"before": 4}, "before=4 needs start="),
        ("x.fst", {"after": -1}, "numbers of cycles from 0 on"),
        ("x.fst", {"cycles": (5, 5)}, "the first and the one after the last"),
        ("x.fst", {"each": True, "start": "ap_start"}, r"a path with '\{n\}'"),
        ("x.fst", {"limit_bytes": 0}, "a number from 1 on"),
    ],
)
def test_waves_that_make_no_sense(path: str, options: dict[str, Any], words: str):
    with pytest.raises(WaveError, match=words):
        Waves(_Board(), path, **options)


def test_where_waves_go(tmp_path: Path):
    both = Waves(_Board(), tmp_path / "x.fst")
    assert [path.name for path in both.paths.values()] == ["x.vadd_0.fst", "x.vadd_1.fst"]
    assert Waves(_Board(), "x.vcd", "vadd_1").paths == {"vadd_1": Path("x.vcd").absolute()}
    with pytest.raises(WaveError, match="say which unit="):
        both.open()
    with pytest.raises(WaveError, match="no waves of vadd_1 were recorded"):
        both.open("vadd_1")
    with pytest.raises(WaveError, match=r"folder '.*none' does not exist; make it first"):
        Waves(_Board(), tmp_path / "none" / "x.fst").__enter__()


def test_a_board_without_rtl_has_no_waves():
    board = _Board()
    board.pl = None  # type: ignore[assignment]
    with pytest.raises(WaveError, match="choose board 'rtl'"):
        Waves(board, "x.fst")


def test_the_layout_of_the_box_is_that_of_the_recorder(root: Path):
    from pynq_torch.board.rtl.observe.wave_box import _PLACES, _TEXTS, WaveBox

    header = (root / "pynq_torch/board/engines/rtl/waves.hpp").read_text()
    (size,) = re.findall(r"sizeof\(WaveBox\) == (\d+)", header)
    assert int(size) == WaveBox.NBYTES
    body = re.search(r"struct WaveBox \{(.*?)\n\};", header, re.DOTALL)
    assert body is not None
    at, places = 0, {}
    for kind, names in re.findall(r"(uint32_t|uint64_t|char) ([^;]+);", body[1]):
        for name in names.split(", "):
            match = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", name.strip())
            assert match is not None
            nbytes = int(match[2]) if match[2] else {"uint32_t": 4, "uint64_t": 8}[kind]
            places[match[1]] = (at, nbytes)
            at += nbytes
    assert at == WaveBox.NBYTES
    assert {("bytes" if n == "nbytes" else n): p for n, p in _PLACES.items()} | _TEXTS == places
