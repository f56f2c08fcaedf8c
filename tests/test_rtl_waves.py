"""Recording waves: which cycles come into which file, limits, a full disk, the board after it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pynq_torch.board.rtl.observe.wave_box import WaveState
from pynq_torch.board.rtl.observe.wave_file import WaveFile
from pynq_torch.errors import WaveError

# ---- the recorder alone, on a model that is no more than a counter -------------------------------

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("bench") / "waves_bench"
    include = ROOT / "pynq_torch" / "board" / "engines" / "rtl"
    command = ["g++", "-std=c++17", "-O1", "-g", "-fsanitize=address,undefined", "-Wall", "-Wextra"]
    command += ["-Werror", f"-I{include}", "-o", str(program)]
    subprocess.run([*command, str(ROOT / "tests/rtl_cpp/waves_bench.cpp")], check=True, timeout=200)
    return program


@dataclass
class Recorded:
    """What the bench said of the file written last."""

    state: WaveState
    files: int
    first: int
    last: int
    trigger: int
    nbytes: int
    error: str


def _record(bench: Path, cycles: int, starts: str, history: int, **words: object) -> Recorded:
    command = [str(bench), str(cycles), starts, str(history)]
    command += [f"{name}={value}" for name, value in words.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert not done.stderr
    numbers, _, error = done.stdout.partition("\n")
    state, *rest, answered = map(int, numbers.split())
    assert answered == 1
    return Recorded(WaveState(state), *rest, error=error.strip())  # type: ignore[call-arg]


def _cycles(path: Path) -> list[int]:
    """Return the cycles in a file, each of which has both halves, and as many edges before it."""
    rows = [tuple(map(int, line.split())) for line in path.read_text().splitlines()]
    found = [time // 10 for time, _, _ in rows[::2]]
    for (low, before, _), (high, after, _) in zip(rows[::2], rows[1::2], strict=True):
        assert (low + 5, before + 1) == (high, after)
        assert before == low // 10, "the model that was dumped was in another cycle"
    return found


def test_from_start_to_done(bench: Path, tmp_path: Path):
    path = tmp_path / "a.txt"
    found = _record(bench, 30, "10", 0, start="ap_start", stop="ap_done", path=path)
    assert (found.state, found.first, found.last) == (WaveState.FINISHED, 10, 15)
    assert _cycles(path) == list(range(10, 16))
    assert found.nbytes == path.stat().st_size


def test_cycles_before_and_after(bench: Path, tmp_path: Path):
    path = tmp_path / "a.txt"
    edges = {"start": "ap_start", "stop": "ap_done", "path": path}
    found = _record(bench, 30, "10", 8, before=4, after=2, **edges)
    assert (found.first, found.last, found.trigger) == (6, 17, 10)
    assert _cycles(path) == list(range(6, 18))


def test_the_next_recording_has_its_own_history_and_number_of_files(bench: Path, tmp_path: Path):
    path = tmp_path / "a.txt"
    edges = {"start": "ap_start", "stop": "ap_done", "again": 40, "again_before": 2}
    found = _record(bench, 90, "10,60", 8, before=8, path=path, **edges)
    assert (found.files, found.first, found.trigger) == (1, 58, 60)
    assert _cycles(path) == list(range(58, 66))


def test_the_second_model_is_what_the_first_one_was(bench: Path, tmp_path: Path):
    late, whole = tmp_path / "late.txt", tmp_path / "whole.txt"
    _record(bench, 60, "20", 16, before=16, after=9, start="go", stop="ap_done", path=late)
    _record(bench, 60, "20", 0, path=whole)
    text = whole.read_text()
    assert late.read_text() in text and _cycles(whole) == list(range(60))


def test_the_clock_stops_before_the_last_cycles_were_dumped(bench: Path, tmp_path: Path):
    path = tmp_path / "a.txt"
    found = _record(bench, 12, "10", 8, before=8, start="ap_start", path=path)
    assert _cycles(path) == list(range(2, 12))
    assert found.state is WaveState.FINISHED


def test_fewer_cycles_than_wanted_before_the_first_start(bench: Path, tmp_path: Path):
    path = tmp_path / "a.txt"
    found = _record(bench, 30, "3", 8, before=8, start="ap_start", stop="ap_done", path=path)
    assert (found.first, found.last) == (0, 8)
    assert _cycles(path) == list(range(9))


def test_a_file_for_every_start(bench: Path, tmp_path: Path):
    pattern = tmp_path / "run{n}.txt"
    edges = {"start": "ap_start", "stop": "ap_done", "before": 8, "after": 4, "each": 1}
    found = _record(bench, 90, "3,20,29,70", 8, path=pattern, **edges)
    assert found.files == 4
    files = [_cycles(tmp_path / f"run00{n}.txt") for n in (1, 2, 3, 4)]
    # 8 is done, four more cycles are wanted, but 12 is one of the eight that led to the next start.
    assert files[0] == list(range(12))
    # 25 is done, and the next start is so near that all that is left is what led to it: cycles that
    # are in one file are not in the next.
    assert files[1] == list(range(12, 26))
    assert files[2] == list(range(26, 39))
    assert files[3] == list(range(62, 80))


def test_a_window_of_cycles(bench: Path, tmp_path: Path):
    path = tmp_path / "a.txt"
    found = _record(bench, 30, "10", 0, path=path, to=8, **{"from": 5})
    assert _cycles(path) == [5, 6, 7, 8]
    assert found.state is WaveState.FINISHED


def test_the_other_edge_and_wide_signals(bench: Path, tmp_path: Path):
    path = tmp_path / "a.txt"
    _record(bench, 30, "10", 0, path=path, start="!ap_start", stop="data")
    # ap_start falls in 16; the upper word of `data` is 0 in 21 and not in 22
    assert _cycles(path) == list(range(16, 23))


def test_a_trigger_that_never_comes_leaves_no_file(bench: Path, tmp_path: Path):
    found = _record(bench, 30, "99", 0, path=tmp_path / "a.txt", start="ap_start")
    assert (found.state, found.files) == (WaveState.FINISHED, 0)
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize(
    ("history", "words", "error"),
    [
        (0, {"start": "nope"}, "the unit has no signal 'nope' to trigger on"),
        (0, {"stop": "nope"}, "the unit has no signal 'nope' to trigger on"),
        (0, {"with": 0}, "the model was built without waves"),
        (2, {"start": "ap_start", "before": 3}, "without a second one that follows it"),
        (0, {"path": "/nope/x"}, "No such file or directory"),
    ],
)
def test_what_cannot_be_recorded(
    bench: Path, tmp_path: Path, history: int, words: dict[str, object], error: str
):
    found = _record(bench, 30, "10", history, **{"path": tmp_path / "a", **words})
    assert found.state is WaveState.FAILED
    assert error in found.error


@pytest.mark.parametrize(("limit", "last"), [(10_000, 358), (100_000, 3_237)])
def test_a_file_ends_at_its_limit(bench: Path, tmp_path: Path, limit: int, last: int):
    """The file is looked at seldom at first and often near its limit: that says where it ends."""
    path = tmp_path / "a.txt"
    found = _record(bench, 20_000, "10", 0, path=path, limit=limit)
    assert found.state is WaveState.LIMIT
    assert 0.7 * limit < path.stat().st_size == found.nbytes <= limit
    assert found.last == last
    assert _cycles(path) == list(range(found.last + 1))


def test_a_disk_that_is_full(bench: Path):
    """On a file system of 4 MB, of which one is left for others."""
    script = (
        "mount -t tmpfs -o size=4m none /mnt && "
        f"{bench} 1000000 10 0 path=/mnt/a.txt && ls -s --block-size=1 /mnt/a.txt && "
        f"{bench} 1000 10 0 path=/mnt/a.txt"
    )
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(f"no file system of our own here: {done.stderr.strip()}")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("5 1 0") and lines[1] == "no space left on the disk"
    assert 3_060_000 < int(lines[2].split()[0]) < 3_090_000  # a megabyte is left for others
    assert lines[3].startswith("3 1 0 999")  # the old file made room; it goes on as before


def test_a_process_that_may_write_little(bench: Path, tmp_path: Path):
    path = tmp_path / "a.txt"
    script = f"ulimit -f 1000; exec {bench} 1000000 10 0 path={path}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0
    assert "ulimit -f" in done.stdout
    assert 685_000 < path.stat().st_size < 686_000  # of 1,024,000, with room for others


# ---- the compression of Verilator's files --------------------------------------------------------


def _compressed(bench: Path, data: bytes) -> bytes:
    done = subprocess.run([str(bench), "lz4"], input=data, capture_output=True, check=True)
    assert not done.stderr
    bound, _, block = done.stdout.partition(b"\n")
    assert int(bound) == len(data) + len(data) // 255 + 16  # LZ4's own LZ4_COMPRESSBOUND
    assert _expanded(block) == data
    return block


def _expanded(block: bytes) -> bytes:
    """Decode a block, and check how the format says that it ends (lz4_Block_format.md)."""
    out, at, matched_from = bytearray(), 0, -12

    def length(nibble: int) -> int:
        nonlocal at
        n = nibble
        while nibble == 15:
            at += 1
            n += block[at - 1]
            if block[at - 1] != 255:
                break
        return n

    while True:
        token, at = block[at], at + 1
        literals = length(token >> 4)
        out += block[at : at + literals]
        at += literals
        if at == len(block):
            break
        offset, at = int.from_bytes(block[at : at + 2], "little"), at + 2
        matched_from = len(out)
        assert 1 <= offset <= matched_from
        for _ in range(4 + length(token & 15)):
            out.append(out[-offset])
    assert matched_from < 0 or (literals >= 5 and len(out) - matched_from >= 12)
    return bytes(out)


_RANDOM = random.Random(1).randbytes(300)


@pytest.mark.parametrize(
    ("data", "nbytes"),
    [
        pytest.param(b"x", 2, id="one byte"),
        pytest.param(bytes(12), 13, id="no match begins in the last 12 bytes"),
        pytest.param(bytes(13), 10, id="the shortest match"),
        pytest.param(bytes(24), 10, id="a match of 18"),
        pytest.param(bytes(25), 11, id="a match of 19 needs a byte of its own"),
        pytest.param(bytes(278), 11, id="that byte is 253"),
        pytest.param(bytes(280), 12, id="or 255 and one more"),
        pytest.param(_RANDOM[:14], 15, id="14 literals"),
        pytest.param(_RANDOM[:15], 17, id="15 literals"),
        pytest.param(_RANDOM[:269], 271, id="269 literals"),
        pytest.param(_RANDOM[:270], 273, id="270 literals"),
        pytest.param(_RANDOM[:14] * 2, 23, id="14 literals and a match"),
        pytest.param(_RANDOM[:15] * 2, 25, id="15 literals and a match"),
        pytest.param(
            _RANDOM[:16] + bytes(65_519) + _RANDOM[:16], 287, id="a match as far as it goes"
        ),
        pytest.param(_RANDOM[:16] + bytes(65_520) + _RANDOM[:16], 296, id="a match too far away"),
        pytest.param(bytes(i * i // 7 % 11 for i in range(9000)), 120, id="repeats"),
        pytest.param("".join(map(str, range(20_000))).encode(), 70_749, id="digits"),
    ],
)
def test_lz4_blocks(bench: Path, data: bytes, nbytes: int):
    assert len(_compressed(bench, data)) == nbytes


# ---- on the board --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def board() -> Iterator[Any]:
    import pynq_torch

    found = pynq_torch.use_board("rtl")
    yield found
    found.close()


@pytest.fixture
def vadd(board: Any) -> Any:
    import pynq_torch

    return pynq_torch.load("vadd").vadd


def _adds(vadd: Any, n: int = 40) -> None:
    import torch

    a, b = torch.randn(n), torch.randn(n)
    assert torch.equal(vadd(a, b), a + b)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["fst", "vcd"])
def test_waves_of_one_start(board: Any, vadd: Any, tmp_path: Path, ending: str):
    edges = {"start": "ap_start", "stop": "ap_done"}
    path = tmp_path / f"v.{ending}"
    with board.waves(path, **edges, before=16, after=2) as waves:
        _adds(vadd)
    assert waves.files == [path]
    found = waves.open()
    start, done = found.find("ap_start"), found.find("ap_done")
    cycles = vadd.last_run.cycles
    # from the cycle in which the data of the AP_START write is taken
    assert found.values("s_axi_control_WREADY", (start - 1, start)) == [1]
    assert done - (start - 1) == cycles
    assert found.cycles.start == start - 16
    assert done <= found.cycles.stop - 1 <= done + 2
    assert sum(found.values("m_axi_gmem2_WLAST")) >= 3
    drawn = waves.show(["ap_start", "m_axi_gmem0_RVALID", "ap_done"], live=False)
    assert drawn.columns[0] == start - 16
    # they are the cycles that the trace has
    first = board.trace().filter(port="gmem0").filter(cycles=(start, done))[0]
    assert found.find("m_axi_gmem0_ARVALID") == first.cycle


@pytest.mark.slow
def test_waves_of_every_start_and_of_a_whole_block(board: Any, vadd: Any, tmp_path: Path):
    with board.waves(tmp_path / "{n}.fst", start="ap_start", stop="ap_done", each=True) as waves:
        for n in (5, 6, 7):
            _adds(vadd, n)
    assert [path.name for path in waves.files] == ["001.fst", "002.fst", "003.fst"]
    with board.waves(tmp_path / "all.fst") as whole:
        _adds(vadd, 8)
        _adds(vadd, 9)
    starts = whole.open().signal("ap_start").rising()
    assert len(starts) == 2


@pytest.mark.slow
def test_registers_outlive_the_change_to_a_model_with_waves(board: Any, tmp_path: Path):
    """A program that has written its arguments before it asks for waves."""
    import numpy as np
    from pynq import allocate

    import pynq_torch

    unit = pynq_torch.load("vadd").vadd_0
    a, b, c = (allocate(16, np.float32) for _ in range(3))
    a[:], b[:] = 1.5, 2.0
    for offset, value in ((0x10, a), (0x1C, b), (0x28, c)):
        unit.write(offset, value.physical_address)
    unit.write(0x34, 16)

    def run() -> None:
        unit.write(0, 1)
        while not unit.read(0) & 2:
            pass

    def writes() -> list[tuple[int, int]]:
        found = [t for t in board.trace_records() if t.kind == "register write"]
        return [(t.cycle, t.address) for t in found]

    def moved() -> int:
        return sum(counter.bytes for counter in board.counter_records())

    run()
    before, cycle, run_before = writes(), board.pl.cycle, board.cus["vadd_0"].last_run
    c[:] = 0
    bytes_of_a_run = moved()
    with board.waves(tmp_path / "v.fst", start="ap_start", stop="ap_done") as waves:
        # What the program did is still there, and what the board did is not.
        assert writes() == before and moved() == bytes_of_a_run
        assert board.pl.cycle > cycle
        assert board.cus["vadd_0"].last_run == run_before
        assert unit.read(0x34) == 16
        run()
    assert (c == 3.5).all()
    assert moved() == 2 * bytes_of_a_run
    assert writes()[: len(before)] == before and len(writes()) == len(before) + 1
    run_after = board.cus["vadd_0"].last_run
    assert (run_after.number, run_after.cycles) == (2, run_before.cycles)
    # They are the cycles of the trace.
    assert waves.open().find("ap_start") - 1 == writes()[-1][0] + 1


@pytest.mark.slow
def test_what_goes_wrong_leaves_the_board_usable(board: Any, vadd: Any, tmp_path: Path):
    with pytest.raises(WaveError, match="vadd_0 .*no signal 'go' to trigger on.*ap_start"):
        board.waves(tmp_path / "v.fst", start="go").__enter__()
    _adds(vadd)
    with (
        pytest.raises(WaveError, match=r"reached their limit of 50,000 bytes: v\.vcd has the cy"),
        board.waves(tmp_path / "v.vcd", limit_bytes=50_000) as waves,
    ):
        _adds(vadd, 5000)
    assert (tmp_path / "v.vcd").stat().st_size <= 50_000
    assert len(waves.open().cycles) > 10  # what there is can be read
    _adds(vadd)
    # An error of the block is the news.
    with pytest.raises(ZeroDivisionError), board.waves(tmp_path / "v.vcd", limit_bytes=50_000):
        _adds(vadd, 5000)
        raise ZeroDivisionError


@pytest.mark.slow
def test_a_full_disk_is_an_exception(board: Any, vadd: Any, small_disk: Path):
    for name in ("v.vcd", "v.fst"):
        path = small_disk / name
        with (
            pytest.raises(WaveError, match=rf"no space left on the disk: {name} has the cycles"),
            board.waves(path) as waves,
        ):
            _adds(vadd, 20_000)
        assert len(waves.open().cycles) > 100
        path.unlink()
        _adds(vadd)
    (small_disk / "ballast").write_bytes(bytes(3_600_000))
    with (
        pytest.raises(WaveError, match=r"no space left on the disk: w\.fst has nothing"),
        board.waves(small_disk / "w.fst"),
    ):
        _adds(vadd)
    _adds(vadd)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system of our own here: that takes root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_an_overlay_that_goes_ends_its_waves(board: Any, vadd: Any, tmp_path: Path):
    import pynq_torch

    with board.waves(tmp_path / "v.fst") as waves:
        _adds(vadd)
        again = pynq_torch.load("vadd").vadd
    _adds(again)
    # the file is whole, and has what there was until then
    assert waves.open().signal("ap_start").rising()


# ---- from outside --------------------------------------------------------------------------------

_PROGRAM = """
import numpy as np
from pynq import Overlay, allocate

overlay = Overlay("vadd.bit")
a, b, c = (allocate(16, np.float32) for _ in range(3))
a[:], b[:] = 1, 2
unit = overlay.vadd_0
for offset, value in ((0x10, a), (0x1C, b), (0x28, c)):
    unit.write(offset, value.physical_address)
unit.write(0x34, 16)
for _ in range(2):
    unit.write(0, 1)
    while not unit.read(0) & 2:
        pass
print("sum", c[0])
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    for ending in ("bit", "hwh"):
        source = ROOT / "bitstreams" / "vadd" / f"vadd.{ending}"
        (tmp_path / source.name).write_bytes(source.read_bytes())
    (tmp_path / "program.py").write_text(_PROGRAM)
    return tmp_path / "program.py"


def _run(program: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYNQ_TORCH_")}
    cache = {k: v for k, v in os.environ.items() if k == "PYNQ_TORCH_CACHE"}
    return subprocess.run(
        [sys.executable, "-m", "pynq_torch", "run", *options, str(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=program.parent,
        env={**clean, **cache, **more},
        timeout=280,
    )


@pytest.mark.slow
def test_run_with_trace_and_waves(program: Path):
    options = ["--board", "rtl", "--trace", "--trace-csv", "t.csv", "--wave", "w.fst"]
    done = _run(program, *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sum 3.0\nvadd.bit:\ncycle ")
    assert "register write  0x00000000" in done.stdout
    assert "cycles counted in RTL, memory model pynq-z2 at 100 MHz" in done.stdout
    rows = (program.parent / "t.csv").read_text().splitlines()
    assert sum("m_axi_gmem2,write" in row for row in rows) == 2
    assert "waves: w.fst (" in done.stderr and "no unit ran" not in done.stderr
    assert len(WaveFile(program.parent / "w.fst").signal("ap_start").rising()) == 2


@pytest.mark.slow
def test_a_folder_of_waves_as_the_jupyter_kernel_asks_for_it(program: Path):
    done = _run(program, "--board", "rtl", PYNQ_TORCH_WAVES="waves")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["waves of every start: waves/vadd.*.fst", "sum 3.0"]
    files = sorted(path.name for path in (program.parent / "waves").iterdir())
    assert files == ["vadd.vadd_0.001.fst", "vadd.vadd_0.002.fst"]
    second = WaveFile(program.parent / "waves" / files[1])
    # the write of AP_START and the way to AP_DONE are both in it
    assert second.find("s_axi_control_WVALID") < second.find("ap_start") < second.find("ap_done")


_NO_RTL = """
import pynq_torch

overlay = pynq_torch.load("packets")
print("loaded")
"""


@pytest.mark.parametrize("ending", ["py", "ipynb"])
def test_a_program_in_which_nothing_ran_in_rtl_says_that_nothing_was_recorded(
    tmp_path: Path, ending: str
):
    program = tmp_path / f"program.{ending}"
    if ending == "py":
        program.write_text(_NO_RTL)
    else:
        import nbformat

        cells = [nbformat.v4.new_code_cell(_NO_RTL)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), program)
    done = _run(program, "--board", "rtl", "--trace", "--wave", "x.fst")
    assert (done.returncode, done.stdout) == (0, "loaded\n")
    assert not (tmp_path / "x.fst").exists()
    said = [line for line in done.stderr.splitlines() if line.startswith("pynq_torch: ")]
    assert len(said) == 1
    begin = "pynq_torch: no unit ran in RTL: x.fst was not written, there is nothing to trace."
    assert said[0].startswith(begin)


@pytest.mark.parametrize(("code", "status"), [("", 1), ("raise SystemExit(7)", 7)])
def test_waves_that_could_not_be_recorded_are_a_failure(program: Path, code: str, status: int):
    with program.open("a") as stream:
        stream.write(code)
    done = _run(program, "--board", "rtl", "--wave", "/proc/x.fst")
    assert "sum 3.0\n" in done.stdout  # the program does not end because of them
    assert "pynq_torch: " in done.stderr and "x.fst" in done.stderr
    assert done.returncode == status


def test_the_status_of_a_program_whose_waves_are_recorded_is_its_own(program: Path):
    with program.open("a") as stream:
        stream.write("import os, signal\nfrom pynq_torch import board\n")
        stream.write("board.current_board().close()\nos.kill(os.getpid(), signal.SIGTERM)\n")
    done = _run(program, "--board", "rtl", "--wave", "w.fst")
    assert done.returncode == 128 + 15
    assert "waves: w.fst (" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--trace"], "--trace, --trace-csv and --wave need --board rtl"),
        (["--board", "rtl", "--wave", "w.txt"], r"expected a file that ends in .fst or .vcd"),
        (["--board", "rtl", "--wave", "none/w.fst"], "its folder does not exist"),
        (["--board", "rtl", "--trace-csv", "none/t.csv"], "its folder does not exist"),
    ],
)
def test_a_command_line_without_sense(program: Path, options: list[str], words: str):
    done = _run(program, *options)
    assert done.returncode == 1
    assert words in done.stderr and "sum" not in done.stdout
