"""`board-check`: everything passes on the virtual boards, and faults that are put in are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_without_torch import REFUSE

import pynq_torch
from pynq_torch import cli
from pynq_torch.paths import KERNELS
from pynq_torch.report import board_check

# From an empty cache every kernel of every overlay is compiled first.
pytestmark = pytest.mark.timeout(900)


def test_a_board_without_torch(tmp_path: Path):
    refused = ("torch", "papermill", "matplotlib", "ipywidgets", "nbformat", "sklearn")
    program = "from pynq_torch.cli import main; sys.exit(main(['board-check', '--board', 'csim']))"
    done = subprocess.run(
        [sys.executable, "-c", f"REFUSED = {refused!r}\n{REFUSE}{program}"],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "PYNQ_TORCH_BOARD"},
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads((tmp_path / "board-check" / "board-check.json").read_text())
    assert {check["name"]: check["verdict"] for check in found["checks"]} == dict.fromkeys(
        board_check.CHECKS, "pass"
    )
    rows = {row["what"]: row for check in found["checks"] for row in check["rows"]}
    assert rows["overlays loaded"]["value"] == len(pynq_torch.overlay.available_overlays())
    page = (tmp_path / "board-check" / "board-check.html").read_text()
    assert "8 passed, 0 failed, 0 skipped" in page and found["machine"]["board"] == "Pynq-Z2 (csim)"


@pytest.mark.parametrize(
    ("kernel", "old", "new", "check", "says"),
    [
        ("vadd", "+ b", "- b", "kernel over HP0 to HP2", "elements are wrong, the first at 0"),
        ("scale_stream", "gain *", "2 * gain *", "DMA", "scale_stream of 1 elements by one DMA"),
        ("scale_stream", "scaled.write", "beat.last = 0;\nscaled.write", "DMA", "TLAST"),
    ],
)
def test_a_fault_is_found(
    tmp_path: Path,
    kernel: str,
    old: str,
    new: str,
    check: str,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
):
    (tmp_path / kernel).mkdir()
    for file in (KERNELS / kernel).glob("*.?pp"):
        (tmp_path / kernel / file.name).write_text(file.read_text().replace(old, new))
    monkeypatch.setattr(board_check, "TIMEOUT_S", 1.0)
    monkeypatch.setattr(board_check, "CHECKS", {check: board_check.CHECKS[check]})
    pynq_torch.use_board("csim", kernels=[tmp_path])
    (outcome,) = board_check.check_board()
    assert outcome.verdict == "fail"
    assert says in outcome.said


def test_counts_far_from_their_model_fail(monkeypatch: pytest.MonkeyPatch):
    pynq_torch.use_board("csim")
    near = list(board_check._against_model("vadd", 1.0, 70844, {"n": 65536}))
    assert [(row.kind, row.expected_kind) for row in near] == [("cycles", "model")]
    with pytest.raises(board_check.Failed, match="vadd.* within a factor of 1.5"):
        list(board_check._against_model("vadd", 1.0, 2 * 70844, {"n": 65536}))
    monkeypatch.setattr(board_check, "where_measured", lambda **_: "PL of the board")
    with pytest.raises(board_check.Failed, match=r"measured\), expected"):
        list(board_check._against_model("vadd", 1e6, None, {"n": 65536}))


def test_a_real_board_is_given_no_simulation_image(monkeypatch: pytest.MonkeyPatch):
    pynq_torch.use_board("csim")
    monkeypatch.setattr(board_check, "where_measured", lambda **_: "PL of the board")
    monkeypatch.setattr(board_check, "CHECKS", {"overlays": board_check.CHECKS["overlays"]})
    (outcome,) = board_check.check_board()
    there = len(pynq_torch.overlay.available_overlays())
    assert (outcome.verdict, outcome.said) == (
        "skipped",
        f"all {there} bitstreams are simulation images; build real ones first",
    )


def test_the_exit_status_says_whether_all_passed(tmp_path: Path, monkeypatch, capsys):
    def wrong():
        raise board_check.Failed("CPU: 1 MHz")
        yield

    monkeypatch.setattr(board_check, "CHECKS", {"clocks": board_check._clocks, "bad": wrong})
    assert cli.main(["board-check", "--board", "csim", "--output", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "fail    bad  Failed: CPU: 1 MHz" in printed and "1 passed, 1 failed" in printed
    assert cli.main(["board-check", "--board", "moon"]) == 1
