"""The board as a Jupyter kernel, and the two things that nbval lacks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from pynq_torch import cli
from pynq_torch.cli import jupyter


def test_the_installed_kernel_runs_on_its_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    jupyter.install(tmp_path)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    monkeypatch.delenv("PYNQ_TORCH_BOARD", raising=False)
    for kernel in jupyter.KERNELS:
        assert KernelSpecManager().get_kernel_spec(kernel.name).display_name == kernel.display_name
        source = "from pynq import Device\nprint(Device.active_device.name)"
        notebook = new_notebook(cells=[new_code_cell(source)])
        NotebookClient(notebook, kernel_name=kernel.name, timeout=100).execute()
        assert notebook.cells[0].outputs[0]["text"] == "Pynq-Z2\n"


def test_installing_twice_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["kernels-install", "--prefix", str(tmp_path)]) == 0
    first = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert cli.main(["kernels-install", "--prefix", str(tmp_path)]) == 0
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == first
    specs = {p.parent.name: json.loads(text)["env"] for p, text in first.items()}
    rtl = {"PYNQ_TORCH_BOARD": "rtl"}
    assert specs == {
        "pynq-z2-csim": {"PYNQ_TORCH_BOARD": "csim"},
        "pynq-z2-rtl": rtl,
        "pynq-z2-rtl-waves": rtl | {"PYNQ_TORCH_WAVES": "waves"},
    }
    assert "pynq-z2-csim" in capsys.readouterr().out


def test_a_prefix_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "share").write_text("a file, where a folder is wanted")
    assert cli.main(["kernels-install", "--prefix", str(tmp_path)]) == 1
    assert "--prefix" in capsys.readouterr().err


CASES = [
    ("print('same')", "same\n", True),
    ("print('other')", "same\n", False),
    ("print(object())", "<object object at 0x7fca34ac1230>\n", True),
    ("print('took 3.1 ms, 7.5 GB/s')", "took 17 µs, 1.25 MB/s\n", True),
    ("print(hex(0x40000000))", "0x40010000\n", False),  # a bus address is no accident
    ("%nonsense", "", False),
    ("# NBVAL_IGNORE_OUTPUT\n%nonsense\nassert False", "x\n", False),  # nbval alone passes it
]


def _case(source: str, text: str) -> str:
    """Return a notebook of one cell with one committed output."""
    output = {"output_type": "stream", "name": "stdout", "text": text}
    cell = {"cell_type": "code", "source": source, "metadata": {}, "execution_count": 1}
    cell["outputs"] = [output] if text else []
    # Named so that the notebook runs in the environment of pytest only.
    spec = {"name": "no-such-kernel", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": spec}, "nbformat": 4}
    return json.dumps({**notebook, "nbformat_minor": 4})


def _run_nbval(folder: Path, *flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run nbval on a folder, with no more flags than a person types."""
    root = Path(__file__).resolve().parent.parent
    quiet = ["-v", "-rA", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "conftest"]
    where = [
        "--rootdir",
        str(folder),
        "--confcutdir",
        str(root),
        "-c",
        str(root / "pyproject.toml"),
    ]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *where, "--nbval", *flags, str(folder)],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), **environment},
        timeout=200,
        check=False,
    )


@pytest.fixture(scope="module")
def nbval(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run nbval on every case."""
    folder = tmp_path_factory.mktemp("cases")
    for number, (source, text, _) in enumerate(CASES):
        (folder / f"case{number}.ipynb").write_text(_case(source, text))
    done = _run_nbval(folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("deaths, status", [(1, 0), (2, 1)])
def test_nbval_starts_a_jupyter_kernel_again_that_died(tmp_path: Path, deaths: int, status: int):
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "case.ipynb").write_text(_case("print(6 * 7)", "42\n"))
    once = "".join(f"mkdir {tmp_path}/dead{n} 2>/dev/null && exit 1; " for n in range(deaths))
    start = f"{once}exec {sys.executable} -m ipykernel_launcher -f {{connection_file}}"
    spec = {"argv": ["sh", "-c", start], "display_name": "mortal", "language": "python"}
    (tmp_path / "kernels/mortal").mkdir(parents=True)
    (tmp_path / "kernels/mortal/kernel.json").write_text(json.dumps(spec))
    done = _run_nbval(folder, "--nbval-kernel-name=mortal", JUPYTER_PATH=str(tmp_path))
    assert done.returncode == status, done.stdout + done.stderr
    assert (tmp_path / f"dead{deaths - 1}").is_dir()


@pytest.mark.parametrize("number", range(len(CASES)))
def test_what_nbval_says(nbval: str, number: int):
    word = "PASSED" if CASES[number][2] else "FAILED"
    assert re.search(rf"^{word} .*case{number}\.ipynb::", nbval, re.MULTILINE), nbval


def test_an_unknown_magic_is_named(nbval: str):
    assert "UsageError: Line magic function `%nonsense` not found" in nbval
