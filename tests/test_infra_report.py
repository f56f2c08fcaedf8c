"""`make report`: what it refuses before anything runs, and the page it writes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from pynq_torch import cli
from pynq_torch.report import ReportError, execute
from pynq_torch.report.papermill_process import Papermill
from pynq_torch.report.plan import Run, find_notebooks, plan, values_of
from pynq_torch.report.result import describe, last_words

PARAMETERS = """\
BOARD = "csim"  # where it runs
SIZE = 64  # edge
SCALE = 1.5  # of the data
FAST = True  # less of it
NAME = "a"  # a word
"""
CHART = "import matplotlib.pyplot as plt\n_ = plt.plot([1, 3, 2])\nplt.show()"


def _write(folder: Path, name: str, *sources: str, parameters: str | None = None) -> Path:
    cells = [new_markdown_cell(f"# Lesson `<{name}>`")]
    if parameters is not None:
        cells.append(new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    cells += [new_code_cell(source) for source in sources]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = folder / f"{name}.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": spec}), path)
    return path


def _plan(tmp_path: Path, **values: str) -> dict[str, Run]:
    one = _write(tmp_path, "00_one", parameters=PARAMETERS)
    two = _write(tmp_path, "01_two", "1")
    return {run.name: run for run in plan([one, two], "csim", values)}


def test_every_notebook_gets_what_it_declares(tmp_path: Path):
    runs = _plan(tmp_path, SIZE="3", SCALE="2", FAST="False", NAME="123")
    expected = {"BOARD": "csim", "SIZE": 3, "SCALE": 2, "FAST": False, "NAME": "123"}
    assert runs["00_one"].parameters == expected
    assert runs["00_one"].defaults["SCALE"] == 1.5
    assert runs["01_two"].parameters == {}


@pytest.mark.parametrize("deaf, passed", [(1, True), (2, False)])
@pytest.mark.parametrize(
    "does, error",
    [
        ("exec sleep 100", "Kernel didn't respond in 3 seconds"),
        ("exit 1", "Kernel died before replying"),
    ],
    ids=["sleeps", "dies"],
)
def test_a_jupyter_kernel_that_does_not_answer_is_started_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    does: str,
    error: str,
    deaf: int,
    passed: bool,
):
    monkeypatch.setattr(execute, "START_TIMEOUTS_S", (3, 3 if deaf == 2 else 60))
    # The first times it is started.
    once = "; ".join(f"mkdir {tmp_path}/deaf{i} 2>/dev/null && {does}" for i in range(deaf))
    start = f"{once}; exec {sys.executable} -m ipykernel_launcher -f {{connection_file}}"
    spec = {"argv": ["sh", "-c", start], "display_name": "Python 3", "language": "python"}
    (tmp_path / "kernels/python3").mkdir(parents=True)
    (tmp_path / "kernels/python3/kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    (run,) = plan([_write(tmp_path, "00_one", "1 + 1")], "csim", {})
    (tmp_path / "out").mkdir()
    with Papermill("csim", threading.Event()) as papermill:
        result = execute.execute(run, tmp_path / "out", papermill)
    assert result.passed == passed
    assert passed or error in str(result.error)
    assert (tmp_path / f"deaf{deaf - 1}").is_dir()


def test_a_jupyter_kernel_that_stops_is_a_bounded_error(tmp_path: Path):
    stop = "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"
    (run,) = plan([_write(tmp_path, "00_one", "1 + 1", stop)], "csim", {})
    (tmp_path / "out").mkdir()
    with Papermill("csim", threading.Event()) as papermill:
        result = execute.execute(run, tmp_path / "out", papermill, timeout_s=3)
    assert not result.passed
    assert "A cell timed out" in str(result.error)


def test_a_papermill_that_says_nothing_is_ended():
    begin = time.monotonic()
    command = [sys.executable, "-c", "import time; time.sleep(99)"]
    with Papermill("csim", threading.Event(), command) as papermill:
        passed, log = papermill.run({}, 1, lambda: None)
    assert not passed
    assert "papermill gave no sign for 1 s and was ended" in log
    assert time.monotonic() - begin < 60


def test_a_papermill_process_executes_notebooks_until_one_fails(tmp_path: Path):
    good, bad = _write(tmp_path, "00_good", "1"), _write(tmp_path, "01_bad", "1 / 0")
    with Papermill("csim", threading.Event()) as papermill:

        def run(path: Path) -> tuple[bool, str]:
            given = {"input_path": str(path), "output_path": f"{path}.out", "progress_bar": False}
            return papermill.run(given, 100, lambda: None)

        assert papermill._process is None
        assert run(good)[0]
        first = papermill._process
        assert run(good)[0]
        assert papermill._process is first
        passed, log = run(bad)
        assert not passed
        assert "ZeroDivisionError" in log
        assert first is not None and first.poll() is not None
        assert run(good)[0]
        second = papermill._process
    assert second is not None and second.poll() is not None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("ended", [0, 1])
def test_an_interrupted_report_ends_its_children_and_says_what_it_kept(
    tmp_path: Path, number: int, ended: int
):
    source = "import os, time\nopen('pid', 'w').write(f'{os.getpid()} ')\ntime.sleep(200)"
    for name in ["00_good", "01_good"][:ended]:
        _write(tmp_path, name, "1")
    _write(tmp_path, "02_slow", source)
    _write(tmp_path, "03_later", "open('later', 'w')")
    command = [sys.executable, "-m", "pynq_torch", "report", "--notebooks", ".", "--jobs", "1"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        pid = tmp_path / "pid"
        _wait_until(lambda: pid.is_file() and pid.read_text())
        process.send_signal(number)
        out, err = process.communicate(timeout=100)
    assert process.returncode == 128 + number, err
    assert out.count("PASS") == ended and "Traceback" not in out + err
    last = err.splitlines()[-1]
    if ended:
        assert "interrupted: 1 of 3 notebooks had ended and were kept in 'reports/runs/" in last
        (folder,) = (tmp_path / "reports/runs").iterdir()
        assert (folder / "00_good.html").is_file() and not (folder / "index.json").exists()
    else:
        assert last == "interrupted: no notebook had ended, nothing was kept"
        assert not list((tmp_path / "reports/runs").iterdir())
    _wait_until(lambda: not Path("/proc", pid.read_text().strip()).exists())
    assert not (tmp_path / "later").exists()


def _wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_every_combination_of_values_is_a_run(tmp_path: Path):
    runs = _plan(tmp_path, SIZES="3 5", FAST="False,True", SCALE="2")
    given = {name: run.parameters for name, run in runs.items()}
    assert {name: (p.get("SIZE"), p.get("FAST")) for name, p in given.items()} == {
        "00_one-SIZE=3-FAST=False": (3, False),
        "00_one-SIZE=3-FAST=True": (3, True),
        "00_one-SIZE=5-FAST=False": (5, False),
        "00_one-SIZE=5-FAST=True": (5, True),
        "01_two": (None, None),
    }  # fmt: skip
    assert all(run.parameters["SCALE"] == 2 for run in runs.values() if run.parameters)


def test_a_notebook_about_one_board_keeps_it(tmp_path: Path):
    notebook = _write(tmp_path, "17_rtl", parameters='BOARD = "rtl"\nSIZE = 1')
    content = json.loads(notebook.read_text())
    content["metadata"]["pynq_torch"] = {"boards": ["rtl", "local"]}
    notebook.write_text(json.dumps(content))
    chosen = {}
    for board in ("csim", "rtl", "local"):
        (run,) = plan([notebook], board, {"SIZE": "2"})
        chosen[board] = dict(run.parameters)
    assert chosen == {
        "csim": {"SIZE": 2},
        "rtl": {"SIZE": 2, "BOARD": "rtl"},
        "local": {"SIZE": 2, "BOARD": "local"},
    }


def test_names_of_runs_are_names_of_files(tmp_path: Path):
    runs = _plan(tmp_path, NAME="a/b,a:b,'a b'")
    assert list(runs) == ["00_one-NAME=a_b", "00_one-NAME=a_b_", "00_one-NAME=a_b__", "01_two"]
    assert [r.parameters.get("NAME") for r in runs.values()] == ["a/b", "a:b", "a b", None]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("64", ["64"]),
        ("64,128, 256", ["64", "128", "256"]),
        ("64 128", ["64", "128"]),
        ("[1, 2]", ["[1, 2]"]),
        ("[1, 2] [3]", ["[1, 2]", "[3]"]),
        ("'a, b',c", ["'a, b'", "c"]),
        ("-1,1e-3", ["-1", "1e-3"]),
        ("it's", ["it's"]),
    ],
)
def test_how_values_are_written(text: str, values: list[str]):
    assert values_of("X", text) == values


def test_notebooks_are_chosen_by_number_or_name(tmp_path: Path):
    for name in ("00_one", "01_two", "10_ten", "1_odd"):
        _write(tmp_path, name, "1")
    assert [p.stem for p in find_notebooks(tmp_path)] == ["00_one", "01_two", "10_ten"]
    assert [p.stem for p in find_notebooks(tmp_path, ["10", "00_one"])] == ["00_one", "10_ten"]
    assert [p.stem for p in find_notebooks(tmp_path, ["01_two.ipynb"])] == ["01_two"]
    for unknown in ("1", "02", "one"):
        with pytest.raises(
            ReportError, match=f"notebook '{unknown}' is unknown; .* 00_one, 01_two"
        ):
            find_notebooks(tmp_path, ["00", unknown])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"SEED": "3"}, "'SEED' is unknown; the notebooks declare: BOARD, FAST, NAME, SCALE, SIZE"),
        ({"SIZE": "abc"}, "'SIZE': 'abc' is no int; its default is 64"),
        ({"SIZE": "1.5"}, "'SIZE': '1.5' is no int"),
        ({"SIZE": "True"}, "'SIZE': 'True' is no int"),
        ({"FAST": "1"}, "'FAST': '1' is no bool"),
        ({"SCALE": "wide"}, "'SCALE': 'wide' is no float"),
        ({"SIZES": "64 12x"}, "'SIZE': '12x' is no int; its default is 64"),
        ({"SIZESS": "64"}, "'SIZESS' is unknown"),
        ({"SIZE": ""}, "'SIZE' has no value; expected e.g. SIZE=64 or 64,128"),
        ({"SIZE": "64,64"}, "'SIZE': 64 is there twice"),
        ({"SIZE": "1", "SIZES": "2"}, "'SIZE' is given twice, as SIZE and SIZES"),
        ({"NAME": "'a"}, "has a quote that is not closed"),
        ({"SIZE": "[1,2]"}, "'SIZE': '[1,2]' is no int"),
        ({"SIZE": ",".join(map(str, range(1001)))}, "1002 runs; expected at most 1000"),
    ],
)
def test_a_wrong_parameter_is_refused(tmp_path: Path, values: dict[str, str], words: str):
    with pytest.raises(ReportError, match=re.escape(words)):
        _plan(tmp_path, **values)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--board", "zcu999"], "board 'zcu999' is unknown; expected one of: csim"),
        (["SEED=3"], "parameter 'SEED' is unknown"),
        (["SIZE"], "'SIZE' is no parameter; expected NAME=value"),
        (["4=3"], "'4=3' is no parameter"),
        (["05_gemm.ipynb"], "Notebooks are chosen with --only, as in --only 05_gemm"),
        (["--jobs", "0"], "--jobs 0: expected 1 or more"),
        (["--keep", "0"], "--keep 0: expected 1 or more"),
        (["--timeout", "0"], "--timeout 0: expected 1 or more seconds"),
        (["--only", "77"], "notebook '77' is unknown"),
        (["SIZE=1", "SIZE=2"], "'SIZE' is given twice; write SIZE=one,two"),
        (["--tolerance", "0.2"], "belong to --compare"),
    ],
)
def test_nothing_runs_when_the_command_line_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
):
    _write(tmp_path, "00_one", f"open({str(tmp_path / 'ran')!r}, 'w')", parameters=PARAMETERS)
    output = tmp_path / "reports"
    options = ["report", "--notebooks", str(tmp_path), "--output", str(output)]
    assert cli.main([*options, *arguments]) == 1
    assert words in capsys.readouterr().err
    assert not output.exists()
    assert not (tmp_path / "ran").exists()


def test_no_notebook_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    _write(tmp_path, "scratch", "1")
    assert cli.main(["report", "--notebooks", str(tmp_path)]) == 1
    assert "no notebook in" in capsys.readouterr().err


def test_a_file_that_is_no_notebook(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "00_text.ipynb").write_text("no JSON")
    assert cli.main(["report", "--notebooks", str(tmp_path)]) == 1
    assert "00_text.ipynb' cannot be read" in capsys.readouterr().err


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Run a report over five notebooks: one with two sizes, three that fail in different ways."""
    folder = tmp_path_factory.mktemp("lessons")
    show = (
        "import os\nprint(BOARD, SIZE, os.environ['PYNQ_TORCH_BOARD'], os.getcwd())\n"
        "from pynq_torch import report, widgets\nprint('controls:', widgets.interactive())\n"
        "report.record('cycles', 100 * SIZE, 'cycles', 'model')"
    )
    _write(folder, "00_good", show, CHART, parameters=PARAMETERS)
    _write(folder, "01_raises", "1 / 0", "print('not reached')")
    _write(folder, "02_dies", "import os\nos._exit(3)")
    _write(folder, "03_magic", "%nonsense")
    _write(folder, "04_plain", "print('<script>')")
    command = [sys.executable, "-m", "pynq_torch", "report", "--notebooks", str(folder)]
    done = subprocess.run(
        [*command, "--output", str(folder / "out"), "--jobs", "2", "SIZES=3 5"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=280,
        check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYNQ_TORCH_")},
    )
    return folder / "out", done


@pytest.fixture
def run_folder(made: tuple[Path, Any]) -> Path:
    (folder,) = (made[0] / "runs").iterdir()
    return folder


@pytest.fixture
def summary(run_folder: Path) -> dict[str, Any]:
    return json.loads((run_folder / "index.json").read_text())


NAMES = ["00_good-SIZE=3", "00_good-SIZE=5", "01_raises", "02_dies", "03_magic", "04_plain"]


def test_one_failing_notebook_does_not_stop_the_rest(
    made: tuple[Path, Any], summary: dict[str, Any]
):
    _, done = made
    assert done.returncode == 1
    assert done.stdout.strip().splitlines()[-1] == "3 passed, 3 failed"
    passed = {item["name"]: item["passed"] for item in summary["notebooks"]}
    assert passed == dict(zip(NAMES, [True, True, False, False, False, True], strict=True))
    assert "cell" in done.stderr  # the progress bar


def test_the_error_of_every_failing_notebook(summary: dict[str, Any]):
    errors = [item["error"] for item in summary["notebooks"]]
    assert errors[0] is errors[1] is None
    assert errors[2] == "ZeroDivisionError: division by zero"
    assert "Kernel died" in errors[3]
    assert errors[4].startswith("UsageError: Line magic function `%nonsense` not found")


def test_parameters_and_board_reach_the_notebook(
    made: tuple[Path, Any], run_folder: Path, summary: dict[str, Any]
):
    for good, size in zip(summary["notebooks"], (3, 5), strict=False):
        assert good["parameters"]["SIZE"] == size
        assert good["parameters"]["SCALE"] == 1.5
        page = (run_folder / good["html"]).read_text()
        assert f"csim {size} csim {made[0].parent}" in page
        assert "controls: False" in page


def test_what_a_run_says_of_itself(run_folder: Path, summary: dict[str, Any]):
    assert summary["id"] == run_folder.name
    assert summary["board"] == "csim"
    assert summary["given"] == {"SIZES": "3 5"}
    assert re.fullmatch(r"[0-9a-f]{7,}(-dirty)?|unknown", summary["commit"])
    assert summary["jobs"] == 2
    assert len(summary["notebooks"][0]["cell_seconds"]) == 4  # papermill adds a cell
    (record,) = summary["notebooks"][1]["records"]
    assert (record["name"], record["value"], record["kind"]) == ("cycles", 500, "model")


def test_the_page_holds_what_there_is(run_folder: Path, summary: dict[str, Any]):
    page = (run_folder / "index.html").read_text()
    for item in summary["notebooks"]:
        assert f'id="{item["name"]}"' in page
        for file in (item["html"], item["notebook"], *item["charts"]):
            assert f'"{quote(file)}"' in page
            assert (run_folder / file).is_file()
    assert page.count('class="error"') == 3
    assert "Lesson &lt;00_good&gt;" in page
    (chart,) = summary["notebooks"][0]["charts"]
    assert (run_folder / chart).read_bytes().startswith(b"\x89PNG")


def test_the_overview_leads_to_the_run(made: tuple[Path, Any], run_folder: Path):
    page = (made[0] / "index.html").read_text()
    assert f'"runs/{run_folder.name}/index.html"' in page
    assert "500 cycles" in page
    links = [unquote(link) for link in re.findall(r'(?:href|src)="([^"#]+)[^"]*"', page)]
    assert [link for link in links if not (made[0] / link).is_file()] == []
    assert [link for link in links if link.endswith(".png")] == [
        f"runs/{run_folder.name}/charts/00_good-SIZE={size}-00.png" for size in (3, 5)
    ]
    assert "In [1]: ZeroDivisionError: division by zero</pre>" in page
    lines = (made[0] / "index.csv").read_text().splitlines()
    assert len(lines) == 1 + 6 + 2
    assert (run_folder / "index.csv").read_text().splitlines() == lines


def test_pages_load_nothing_from_elsewhere(made: tuple[Path, Any]):
    pages = list(made[0].rglob("*.html"))
    assert len(pages) == 8
    for page in pages:
        assert not re.search(r"""(src|href)=["']?(https?:)?//|@import|<script""", page.read_text())


def test_a_dark_screen_has_dark_pages_but_for_what_lessons_print(made: tuple[Path, Any]):
    for page in made[0].rglob("*.html"):
        assert ("prefers-color-scheme: dark" in page.read_text()) == (page.name == "index.html")


def test_the_last_words_of_a_log_without_a_cause():
    assert last_words("") == "papermill ended without a word"
    assert last_words("a\nb\n") == "a\nb"


def test_a_reader_who_leaves_does_not_hang_the_run(tmp_path: Path):
    for number in range(3):
        _write(tmp_path, f"0{number}_one", "1")
    command = f"{sys.executable} -m pynq_torch report --notebooks . 2>&1 | head -c 1"
    subprocess.run(["bash", "-c", command], cwd=tmp_path, timeout=120, check=True)


#: Labs record no numbers: theirs are the students'.
LABS = ("22", "23", "24", "25", "26", "27", "28")
#: Lessons of which `make test` writes no report, since they take the longest: nbval executes them,
#: `make test-long` reports them, and the tests below make a page of each as it is committed.
NO_REPORT = ("11", "12", "15", "18", "19", "20", *LABS, "29", "30", "31", "32", "33")


def test_every_lesson_is_in_a_report_of_make_test_or_below(root: Path):
    text = (root / "Makefile").read_text()
    chosen = re.findall(r"^(?:CSIM|RTL)_LESSONS +:= (.+)$", text, re.MULTILINE)
    assert len(chosen) == 2
    lessons = {path.name[:2] for path in (root / "notebooks").glob("*.ipynb")}
    assert {*" ".join(chosen).split(), *NO_REPORT} == lessons


@pytest.mark.parametrize("number", NO_REPORT)
def test_a_report_can_show_the_lesson_as_committed(root: Path, tmp_path: Path, number: str):
    (path,) = (root / "notebooks").glob(f"{number}_*.ipynb")
    executed = tmp_path / path.name
    shutil.copy(path, executed)
    result = describe(Run(path, {}, {}, 0, path.stem), executed, 1.0, True, "")
    assert result.passed, result.error
    assert result.title != path.stem
    assert bool(result.records) == (number not in LABS)
    assert (tmp_path / str(result.html)).stat().st_size > 10_000
