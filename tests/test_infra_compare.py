"""Runs of `make report` side by side: the overview, CSV, and what --compare calls a regression."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynq_torch import cli
from pynq_torch.report import Record, ReportError
from pynq_torch.report.compare import compare
from pynq_torch.report.history import History, Summary, commit_of, new_folder, write_all
from pynq_torch.report.result import Result
from pynq_torch.report.rows import DURATION, Row, csv_rows, csv_text

CYCLES = Record("vadd/cycles", 1000.0, "cycles", "model", "lower")
RATE = Record("vadd/rate", 50.0, "MB/s", "cycles", "higher")
TIME = Record("vadd/time", 0.5, "s", "measured", "lower", "csim on this PC")


def _summary(
    number: int, *records: Record, board: str = "csim", passed: bool = True, size: int = 64
) -> Summary:
    parameters = {"BOARD": board, "SIZE": size}
    result = Result("00_one", "00_one", "One", passed, 2.0 + number, parameters, records=[*records])
    return Summary(
        f"run{number}", board, f"c0ffee{number}", f"2026-01-0{number}T10:00:00+00:00", 3.0, 2, {},
        {"torch": "2"}, [result],
    )  # fmt: skip


def _store(output: Path, *summaries: Summary, keep: int | None = None) -> None:
    for summary in summaries:
        (output / "runs" / summary.id).mkdir(parents=True)
        write_all(summary, output, keep=keep)


def _changed(record: Record, **values: Any) -> Record:
    return Record(**{**record.__dict__, **values})


def _verdicts(*pairs: tuple[Record | None, Record | None], tolerance: float = 0.1) -> list[str]:
    before = _summary(1, *(b for b, _ in pairs if b)).rows()
    after = _summary(2, *(a for _, a in pairs if a)).rows()
    found = compare(before, after, tolerance)
    return [item.verdict for item in found if item.row.name != DURATION]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (CYCLES, CYCLES, "ok"),
        (CYCLES, _changed(CYCLES, value=1100.0), "ok"),
        (CYCLES, _changed(CYCLES, value=1101.0), "REGRESSION"),
        (CYCLES, _changed(CYCLES, value=899.0), "better"),
        (RATE, _changed(RATE, value=45.0), "ok"),
        (RATE, _changed(RATE, value=44.9), "REGRESSION"),
        (RATE, _changed(RATE, value=56.0), "better"),
        (_changed(CYCLES, value=0.0), _changed(CYCLES, value=1.0), "REGRESSION"),
        (_changed(CYCLES, value=0.0), _changed(CYCLES, value=0.0), "ok"),
        (CYCLES, _changed(CYCLES, kind="cycles"), "KINDS DIFFER"),
        (CYCLES, _changed(CYCLES, unit="s"), "KINDS DIFFER"),
        (RATE, _changed(RATE, better="lower"), "KINDS DIFFER"),
        (TIME, _changed(TIME, where="PL of the board"), "other place"),
        (TIME, None, "GONE"),
        (None, TIME, "new"),
    ],
)
def test_verdicts(before: Record | None, after: Record | None, verdict: str):
    assert _verdicts((before, after)) == [verdict]


@given(
    value=st.floats(1e-9, 1e9),
    change=st.floats(-0.9, 3.0),
    tolerance=st.floats(0, 2),
    better=st.sampled_from(["lower", "higher"]),
)
def test_a_regression_is_what_is_worse_than_the_tolerance(
    value: float, change: float, tolerance: float, better: str
):
    before = _changed(CYCLES, value=value, better=better)
    worse = change if better == "lower" else -change
    (verdict,) = _verdicts(
        (before, _changed(before, value=value * (1 + change))), tolerance=tolerance
    )
    if abs(abs(worse) - tolerance) > 1e-6:
        assert (verdict == "REGRESSION") == (worse > tolerance)
        assert (verdict == "better") == (-worse > tolerance)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    slower = _changed(CYCLES, value=1500.0)
    _store(
        tmp_path, _summary(1, CYCLES, RATE), _summary(2, slower, RATE), _summary(3, CYCLES, RATE)
    )
    return tmp_path


def _compare(reports: Path, *words: str) -> int:
    return cli.main(["report", "--output", str(reports), "--compare", *words])


def test_compare_fails_on_a_regression(reports: Path, capsys: pytest.CaptureFixture[str]):
    assert _compare(reports, "run1", "run2") == 1
    out = capsys.readouterr().out
    assert re.search(
        r"00_one SIZE=64 +vadd/cycles +1000 cycles \(model\) +1500 .* 1\.500 +REGRESS", out
    )
    assert out.splitlines()[-1] == "1 REGRESSION, 1 not judged, 1 ok; tolerance 0.1"
    assert _compare(reports, "run1", "run2", "--tolerance", "0.5") == 0
    assert _compare(reports, "run2", "run1") == 0
    assert _compare(reports, "run1", "run3") == 0
    assert _compare(reports, "run1", "run2", "--tolerance", "0.5", "--durations") == 0
    assert _compare(reports, "run1", "run3", "--durations") == 1  # 3 s became 5 s


def test_a_report_is_a_folder_a_json_a_csv_or_an_id(reports: Path, tmp_path: Path):
    run = reports / "runs" / "run2"
    for name in (run, run / "index.json", run / "index.csv"):
        assert _compare(reports, "run1", str(name)) == 1
    # a folder of reports, and a CSV of several runs, stand for their newest run
    for name in (reports, reports / "index.csv"):
        assert _compare(reports, "run1", str(name)) == 0
        assert _compare(reports, "run2", str(name)) == 0


def test_a_notebook_that_fails_now_is_a_regression(tmp_path: Path, capsys: Any):
    _store(tmp_path, _summary(1, CYCLES), _summary(2, CYCLES, passed=False))
    assert _compare(tmp_path, "run1", "run2", "--tolerance", "9") == 1
    assert "FAILS NOW" in capsys.readouterr().out
    assert _compare(tmp_path, "run2", "run1") == 0
    assert _compare(tmp_path, "run2", "run2") == 0


def test_a_result_that_is_gone_is_a_regression(tmp_path: Path, capsys: Any):
    _store(tmp_path, _summary(1, CYCLES, RATE), _summary(2, CYCLES))
    assert _compare(tmp_path, "run1", "run2") == 1
    assert "1 GONE" in capsys.readouterr().out
    assert _compare(tmp_path, "run2", "run1") == 0


NO_NUMBERS = (
    "nothing was judged: the notebooks record no number that both reports have from one place "
    "(--durations judges wall clock); what passed before still passes"
)
ELSEWHERE = (
    "nothing was judged: the notebooks ran in different places; what passed before still passes"
)


@pytest.mark.parametrize(
    ("before", "after", "board", "words", "last"),
    [
        ([], [], "csim", [], NO_NUMBERS),
        ([], [CYCLES], "csim", [], NO_NUMBERS),
        ([TIME], [_changed(TIME, where="the board")], "csim", [], NO_NUMBERS),
        ([], [], "local", ["--durations"], ELSEWHERE),
        ([], [], "csim", ["--durations", "--tolerance", "9"], "1 ok; tolerance 9"),
        ([CYCLES], [CYCLES], "local", [], "1 ok, 1 other place; tolerance 0.1"),
    ],
)
def test_it_says_where_nothing_was_judged(
    tmp_path: Path,
    capsys: Any,
    before: list[Record],
    after: list[Record],
    board: str,
    words: list[str],
    last: str,
):
    _store(tmp_path, _summary(1, *before), _summary(2, *after, board=board))
    assert _compare(tmp_path, "run1", "run2", *words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_where_nothing_else_was_judged_a_failure_still_fails(tmp_path: Path, capsys: Any):
    _store(tmp_path, _summary(1), _summary(2, passed=False))
    assert _compare(tmp_path, "run1", "run2") == 1
    assert "nothing was judged" not in capsys.readouterr().out


def test_what_only_one_board_counts_is_not_gone(tmp_path: Path):
    _store(tmp_path, _summary(1, RATE, CYCLES), _summary(2, CYCLES, board="local"))
    _store(tmp_path, _summary(3, CYCLES))
    assert _compare(tmp_path, "run1", "run2") == 0
    assert _compare(tmp_path, "run1", "run3") == 1


def test_runs_with_other_parameters_are_not_compared(tmp_path: Path, capsys: Any):
    _store(tmp_path, _summary(1, CYCLES), _summary(2, CYCLES, size=128))
    assert _compare(tmp_path, "run1", "run2") == 1
    assert "no notebook with the same parameters in common" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run1", "nowhere"], "report 'nowhere' does not exist; expected a folder, a JSON or CSV"),
        (["run1", "{empty}"], "has no report: no index.json, and no runs with one"),
        (["{text}", "run1"], "is no report of this version"),
        (["run1", "{table}"], "has no column run, started"),
        (["run1", "{odd}"], "line 2: could not convert string to float: 'fast'"),
        (["run1", "run2", "--tolerance", "-1"], "--tolerance -1: expected a number of at least 0"),
        (["run1", "run2", "SIZE=3"], "--compare runs nothing: 'SIZE=3' has no meaning"),
    ],
)
def test_reports_that_are_none(reports: Path, capsys: Any, words: list[str], sentence: str):
    files = {name: reports / f"{name}.csv" for name in ("table", "odd")}
    files |= {"empty": reports / "empty", "text": reports / "text.json"}
    files["empty"].mkdir()
    files["text"].write_text("[]")
    files["table"].write_text("a,b\n1,2\n")
    line = (reports / "index.csv").read_text().splitlines()
    files["odd"].write_text(
        f"{line[0]}\n{line[1].replace(',3.0,', ',fast,').replace(',5.0,', ',fast,')}\n"
    )
    assert _compare(reports, *(word.format(**files) for word in words)) == 1
    assert sentence in capsys.readouterr().err


def test_rows_survive_csv():
    rows = _summary(1, CYCLES, _changed(TIME, name='odd, "name"\nin two lines')).rows()
    assert csv_rows(csv_text(rows), "file") == rows
    with pytest.raises(ReportError, match="'file', line 2"):
        csv_rows(csv_text(rows).replace("True", "maybe", 1), "file")


def test_the_overview_compares_runs_of_a_board(tmp_path: Path):
    other = _summary(3, _changed(CYCLES, value=10.0), board="local")
    _store(tmp_path, _summary(1, CYCLES), _summary(2, _changed(CYCLES, value=1500.0)), other)
    page = (tmp_path / "index.html").read_text()
    assert re.findall(r'href="runs/(\w+)/index.html">run', page) == ["run3", "run2", "run1"]
    history = page.partition("Number by number")[2]
    (line,) = [t for t in re.findall(r"<tr>(.*?)</tr>", history, re.DOTALL) if "vadd/cycles" in t]
    assert re.findall(r"([\d.]+) cycles", line) == ["1000", "1500", "10"]
    assert re.findall(r"([\d.]+)x", line) == ["1.50"]  # no ratio from board to board
    assert re.findall(r'class="fail">([^<]+)', line) == ["1.50x"]
    rows = csv_rows((tmp_path / "index.csv").read_text(), "index.csv")
    assert [row.run for row in rows if row.name == "vadd/cycles"] == ["run3", "run2", "run1"]


def _cards(output: Path) -> dict[str, str]:
    """Return the text of each notebook on the overview, by its anchor."""
    page = (output / "index.html").read_text()
    found = re.findall(r'<article id="([^"]+)">(.*?)</article>', page, re.DOTALL)
    return {name: _text(card) for name, card in found}


def _text(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split()).replace(" ,", ",")


def test_the_overview_of_a_first_run(tmp_path: Path):
    first = _summary(1, CYCLES, _changed(RATE, value=0.123456))
    first.notebooks[0].charts = ["charts/one-00.png", "charts/one 01.png"]
    first.notebooks[0].html = "00_one.html"
    _store(tmp_path, first)
    assert _cards(tmp_path) == {
        "csim-00_one": "PASS One 3.0 s measured 00_one BOARD=csim SIZE=64 "
        "vadd/cycles 1000 cycles model vadd/rate 0.1235 MB/s cycles"
    }
    page = (tmp_path / "index.html").read_text()
    figure = r'<a class="figure" href="runs/run1/00_one.html"><img src="([^"]+)"'
    assert re.findall(figure, page) == ["runs/run1/charts/one%2001.png"]
    text = _text(page)
    assert "On csim : 1 passed, 0 failed There is no earlier run to compare with." in text
    assert " 1 run started" in text and "1 runs" not in text
    assert "parameters as written; 3.0 s of notebook time in 3.0 s, measured" in text


def test_the_overview_says_what_changed_since_the_run_before(tmp_path: Path):
    before = [_changed(CYCLES, name=name) for name in ("same", "slow", "fast", "away")]
    after = [
        before[0], _changed(before[1], value=1_500_000.0), _changed(before[2], value=500.0),
        _changed(CYCLES, name="fresh"),
    ]  # fmt: skip
    _store(tmp_path, _summary(1, *before), _summary(2, *after))
    assert _cards(tmp_path)["csim-00_one"] == (
        "no chart PASS One 4.0 s measured, 3.0 s before 00_one BOARD=csim SIZE=64 "
        "slow 1500000 cycles model worse, 1000 cycles before, 1500.00x "
        "away - model gone, 1000 cycles before "
        "fast 500 cycles model better, 1000 cycles before, 0.50x "
        "fresh 1000 cycles model new "
        "1 more number same 1000 cycles model as before"
    )
    text = _text((tmp_path / "index.html").read_text())
    assert "a tolerance of 10%: 1 gone, 1 worse, 1 better, 1 new, 1 as before." in text
    assert " 2 runs started" in text


def test_the_overview_of_a_failed_run(tmp_path: Path):
    failed = _summary(2, passed=False)
    failed.notebooks[0].error, failed.notebooks[0].error_cell = "ValueError: a < b\nsecond", 7
    _store(tmp_path, _summary(1, CYCLES), failed)
    assert _cards(tmp_path)["csim-00_one"] == (
        "no chart FAIL One 4.0 s measured, 3.0 s before 00_one BOARD=csim SIZE=64 "
        "passed the time before In [7]: ValueError: a < b "
        "vadd/cycles - model gone, 1000 cycles before"
    )
    page = (tmp_path / "index.html").read_text()
    assert 'Failed: <a href="#csim-00_one">00_one</a></p>' in page
    assert 'href="runs/run2/index.html#00_one"' in page  # there is no page of the notebook
    _store(tmp_path, _summary(3, CYCLES))
    assert "failed the time before" in _cards(tmp_path)["csim-00_one"]
    assert "Failed:" not in (tmp_path / "index.html").read_text()


def test_the_overview_has_the_newest_run_of_each_board(tmp_path: Path):
    _store(
        tmp_path,
        _summary(1, CYCLES), _summary(2, CYCLES, board="rtl"),
        _summary(3, CYCLES, size=128), _summary(4, CYCLES),
    )  # fmt: skip
    cards = _cards(tmp_path)
    assert list(cards) == ["csim-00_one", "rtl-00_one"]
    # the run before is the one with the same parameters, whichever runs came between
    assert "6.0 s measured, 3.0 s before" in cards["csim-00_one"]
    assert "before" not in cards["rtl-00_one"]


def test_kinds_have_lines_of_their_own(tmp_path: Path):
    _store(tmp_path, _summary(1, CYCLES), _summary(2, _changed(CYCLES, kind="cycles")))
    found = [line for line in History.read(tmp_path).table() if line[0].name == "vadd/cycles"]
    assert [[cell.kind if cell else None for cell, _ in cells] for _, cells in found] == [
        ["model", None],
        [None, "cycles"],
    ]
    assert all(change is None for _, cells in found for _, change in cells)


def test_sizes_stand_in_order(tmp_path: Path):
    _store(tmp_path, *(_summary(n, CYCLES, size=s) for n, s in ((1, 128), (2, 32), (3, 64))))
    found = [line[0].parameters_text for line in History.read(tmp_path).table()]
    assert list(dict.fromkeys(found)) == ["SIZE=32", "SIZE=64", "SIZE=128"]


def test_one_bad_run_does_not_hide_the_others(tmp_path: Path):
    _store(tmp_path, _summary(1, CYCLES))
    bad = tmp_path / "runs" / "old"
    bad.mkdir()
    (bad / "index.json").write_text(json.dumps({"board": "csim"}))
    _store(tmp_path, _summary(2, CYCLES))
    history = History.read(tmp_path)
    assert [run.id for run in history.runs] == ["run2", "run1"]
    assert "is no report of this version" in history.problems[0]
    assert "is no report of this version" in (tmp_path / "index.html").read_text()


def test_old_runs_go_where_asked(tmp_path: Path):
    _store(tmp_path, *(_summary(n, CYCLES) for n in (1, 2, 3)))
    _store(tmp_path, _summary(4, CYCLES), keep=2)
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["run3", "run4"]
    assert "run1" not in (tmp_path / "index.csv").read_text()


def test_runs_of_one_second_have_folders_of_their_own(tmp_path: Path):
    from datetime import datetime

    now = datetime(2026, 1, 2, 3, 4, 5)
    names = [new_folder(tmp_path, "csim", "abc-dirty", now).name for _ in range(3)]
    first = "20260102-030405-csim-abc-dirty"
    assert names == [first, f"{first}-2", f"{first}-3"]
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot be made: Not a directory"):
        new_folder(tmp_path / "file", "csim", "abc", now)


def test_the_commit_of_a_folder(root: Path, tmp_path: Path):
    assert commit_of(tmp_path) == "unknown"
    if (root / ".git").exists():
        assert re.fullmatch(r"[0-9a-f]{10,}(-dirty)?", commit_of(root))


def test_every_number_is_about_a_notebook():
    (duration, number) = _summary(1, CYCLES).rows()
    assert (duration.name, duration.value, duration.kind) == (DURATION, 3.0, "measured")
    assert number.parameters_text == "SIZE=64"  # the board has a column of its own
    assert isinstance(number, Row) and number.text == "1000 cycles"
