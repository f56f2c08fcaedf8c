"""`make report`: what it refuses before anything runs, and the page it writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from pynq_torch import cli, report
from pynq_torch.report_page import Run, _last_words

PARAMETERS = """\
BOARD = "csim"  # where it runs
SIZE = 64  # edge
SCALE = 1.5  # of the data
FAST = True  # less of it
NAME = "a"  # a word
"""
CHART = "import matplotlib.pyplot as plt\n_ = plt.plot([1, 3, 2])\nplt.show()"


def _write(folder: Path, name: str, *sources: str, parameters: str | None = None) -> Path:
    cells = [new_markdown_cell(f"# Lesson <{name}>")]
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
    return {run.name: run for run in report.plan([one, two], "csim", values)}


def test_every_notebook_gets_what_it_declares(tmp_path: Path):
    runs = _plan(tmp_path, SIZE="3", SCALE="2", FAST="False", NAME="123")
    expected = {"BOARD": "csim", "SIZE": 3, "SCALE": 2, "FAST": False, "NAME": "123"}
    assert runs["00_one"].parameters == expected
    assert runs["00_one"].defaults["SCALE"] == 1.5
    assert runs["01_two"].parameters == {}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"SEED": "3"}, "'SEED' is unknown; the notebooks declare: BOARD, FAST, NAME, SCALE, SIZE"),
        ({"SIZE": "abc"}, "'SIZE': 'abc' is no int; its default is 64"),
        ({"SIZE": "1.5"}, "'SIZE': '1.5' is no int"),
        ({"SIZE": "True"}, "'SIZE': 'True' is no int"),
        ({"FAST": "1"}, "'FAST': '1' is no bool"),
        ({"SCALE": "wide"}, "'SCALE': 'wide' is no float"),
    ],
)
def test_a_wrong_parameter_is_refused(tmp_path: Path, values: dict[str, str], words: str):
    with pytest.raises(report.ReportError, match=re.escape(words)):
        _plan(tmp_path, **values)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--board", "zcu999"], "board 'zcu999' is unknown; expected one of: csim"),
        (["SEED=3"], "parameter 'SEED' is unknown"),
        (["SIZE"], "'SIZE' is no parameter; expected NAME=value"),
        (["4=3"], "'4=3' is no parameter"),
        (["--jobs", "0"], "--jobs 0: expected 1 or more"),
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
    """Run a report over five notebooks, of which three fail in different ways."""
    folder = tmp_path_factory.mktemp("lessons")
    show = (
        "import os\nprint(BOARD, SIZE, os.environ['PYNQ_TORCH_BOARD'], os.getcwd())\n"
        "from pynq_torch import widgets\nprint('controls:', widgets.interactive())"
    )
    _write(folder, "00_good", show, CHART, parameters=PARAMETERS)
    _write(folder, "01_raises", "1 / 0", "print('not reached')", parameters=PARAMETERS)
    _write(folder, "02_dies", "import os\nos._exit(3)")
    _write(folder, "03_magic", "%nonsense")
    _write(folder, "04_plain", "print('<script>')")
    command = [sys.executable, "-m", "pynq_torch", "report", "--notebooks", str(folder)]
    done = subprocess.run(
        [*command, "--output", str(folder / "out"), "--jobs", "2", "SIZE=3"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=280,
        check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYNQ_TORCH_")},
    )
    return folder / "out", done


@pytest.fixture
def summary(made: tuple[Path, Any]) -> dict[str, Any]:
    return json.loads((made[0] / "index.json").read_text())


def test_one_failing_notebook_does_not_stop_the_rest(
    made: tuple[Path, Any], summary: dict[str, Any]
):
    _, done = made
    assert done.returncode == 1
    assert done.stdout.strip().splitlines()[-1] == "2 passed, 3 failed"
    assert [item["name"][:2] for item in summary["notebooks"]] == ["00", "01", "02", "03", "04"]
    assert [item["passed"] for item in summary["notebooks"]] == [True, False, False, False, True]
    assert "cell" in done.stderr  # the progress bar


def test_the_error_of_every_failing_notebook(summary: dict[str, Any]):
    errors = [item["error"] for item in summary["notebooks"]]
    assert errors[0] is None
    assert errors[1] == "ZeroDivisionError: division by zero"
    assert "Kernel died" in errors[2]
    assert errors[3].startswith("UsageError: Line magic function `%nonsense` not found")


def test_parameters_and_board_reach_the_notebook(made: tuple[Path, Any], summary: dict[str, Any]):
    good = summary["notebooks"][0]
    assert good["parameters"]["SIZE"] == 3
    assert good["parameters"]["SCALE"] == 1.5
    assert f"csim 3 csim {made[0].parent}" in (made[0] / good["html"]).read_text()


def test_views_are_static_on_a_page(made: tuple[Path, Any], summary: dict[str, Any]):
    assert "controls: False" in (made[0] / summary["notebooks"][0]["html"]).read_text()


def test_the_page_holds_what_there_is(made: tuple[Path, Any], summary: dict[str, Any]):
    folder, _ = made
    page = (folder / "index.html").read_text()
    for item in summary["notebooks"]:
        assert f'id="{item["name"]}"' in page
        for file in (item["html"], item["notebook"], *item["charts"]):
            assert f'"{file}"' in page
            assert (folder / file).is_file()
    assert page.count('class="error"') == 3
    assert "Lesson &lt;00_good&gt;" in page
    (chart,) = summary["notebooks"][0]["charts"]
    assert (folder / chart).read_bytes().startswith(b"\x89PNG")


def test_pages_load_nothing_from_elsewhere(made: tuple[Path, Any]):
    for page in made[0].glob("*.html"):
        assert not re.search(r"""(src|href)=["']?(https?:)?//|@import|<script""", page.read_text())


def test_the_last_words_of_a_log_without_a_cause():
    assert _last_words("") == "papermill ended without a word"
    assert _last_words("a\nb\n") == "a\nb"


def test_a_reader_who_leaves_does_not_hang_the_run(tmp_path: Path):
    for number in range(3):
        _write(tmp_path, f"0{number}_one", "1")
    command = f"{sys.executable} -m pynq_torch report --notebooks . 2>&1 | head -c 1"
    subprocess.run(["bash", "-c", command], cwd=tmp_path, timeout=120, check=True)
