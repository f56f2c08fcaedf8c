"""The board as a Jupyter kernel, and the two things that nbval lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from pynq_torch import cli, jupyter


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
    assert json.loads(next(iter(first.values())))["env"] == {"PYNQ_TORCH_BOARD": "csim"}
    assert "pynq-z2-csim" in capsys.readouterr().out


def test_a_prefix_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "share").write_text("a file, where a folder is wanted")
    assert cli.main(["kernels-install", "--prefix", str(tmp_path)]) == 1
    assert "--prefix" in capsys.readouterr().err


def _nbval(root: Path, folder: Path, source: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run nbval, as the Makefile does, on a notebook of one cell with one committed output."""
    output = {"output_type": "stream", "name": "stdout", "text": text}
    cell = {"cell_type": "code", "source": source, "metadata": {}, "execution_count": 1}
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    (folder / "00_case.ipynb").write_text(
        json.dumps(
            {
                "cells": [{**cell, "outputs": [output] if text else []}],
                "metadata": {"kernelspec": spec},
                "nbformat": 4,
                "nbformat_minor": 4,
            }
        )
    )
    sanitize = root / "ci" / "nbval_sanitize.cfg"
    options = ["--nbval", "--nbval-current-env", f"--nbval-sanitize-with={sanitize}"]
    quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "conftest"]
    where = ["--rootdir", str(root), "--confcutdir", str(root), "-c", str(root / "pyproject.toml")]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *where, *options, str(folder)],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("source", "text", "passes"),
    [
        ("print('same')", "same\n", True),
        ("print('other')", "same\n", False),
        ("print(object())", "<object object at 0x7fca34ac1230>\n", True),
        ("print('took 3.1 ms, 7.5 GB/s')", "took 17 µs, 1.25 MB/s\n", True),
        ("print(hex(0x40000000))", "0x40010000\n", False),  # a bus address is no accident
        ("%nonsense", "", False),
        ("# NBVAL_IGNORE_OUTPUT\n%nonsense\nassert False", "x\n", False),
    ],
)
def test_what_nbval_says(root: Path, tmp_path: Path, source: str, text: str, passes: bool):
    done = _nbval(root, tmp_path, source, text)
    expected = (0, "1 passed") if passes else (1, "1 failed")
    assert done.returncode == expected[0], done.stdout
    assert expected[1] in done.stdout
    if "IGNORE_OUTPUT" in source:  # nbval alone would have passed this one
        assert "UsageError: Line magic function `%nonsense` not found" in done.stdout
