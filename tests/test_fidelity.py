"""docs/fidelity.md is what its table and the kept numbers say; no clone is needed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import fidelity
import pytest

DESIGNS = fidelity.designs()
NUMBERS = json.loads(fidelity.KEPT.read_text())


def test_the_page_is_what_its_table_says() -> None:
    assert fidelity.PAGE.read_text() == fidelity.page(NUMBERS), (
        "run python tests/fidelity.py FOLDER --write"
    )


def test_every_design_has_a_number_or_a_reason() -> None:
    assert {design.id for design in DESIGNS} == set(NUMBERS)
    assert all("cycles" in kept or "why" in kept for kept in NUMBERS.values())
    assert {design.kind for design in DESIGNS} == set(fidelity.KINDS)


def _design(**more: object) -> fidelity.Design:
    given = {"id": "d", "repository": "o/r", "does": "adds", "published": 10.0, "kind": "cosim"}
    return fidelity.Design(**{**given, "source": "x.rpt", "run": {"by": "bare"}, **more})


@pytest.mark.parametrize(
    ("more", "kept", "end"),
    [
        ({}, {"cycles": 10}, "| 10 | co-simulation: x.rpt | 10 | 0 |"),
        ({}, {"cycles": 12, "missing": True}, "| 12 † | +20.0 % |"),
        ({}, {"why": "no ap_done"}, "| no ap_done |  |"),
        ({}, {"missing": True}, "| not run yet † |  |"),
        (
            {"published": 2.2, "python_ms": 0.2, "clock_mhz": 100.0, "kind": "board"},
            {"cycles": 190_000},
            "| 2.20 ms, Python 0.20 | measured on a board: x.rpt | 190,000 = 1.90 ms | -5.0 % |",
        ),
    ],
)
def test_a_row(more: dict[str, object], kept: dict[str, object], end: str) -> None:
    assert fidelity.row(_design(**more), kept).endswith(f"{end}\n")


def test_files_come_from_the_revisions_named(tmp_path: Path) -> None:
    clone = tmp_path / "o+r"

    def commit(text: str) -> str:
        (clone / "rtl" / "d.v").write_text(text)
        git = ["git", "-C", str(clone), "-c", "user.name=n", "-c", "user.email=e@x"]
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", text], check=True)
        return subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()

    (clone / "rtl").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    (clone / "other.xsa").write_text("x")
    first, second = commit("one"), commit("two")
    design = _design(revision=first, files=("rtl",), also={second: "other.xsa"})
    assert fidelity.clone_of(tmp_path, design) == clone
    fidelity.extract(clone, design, tmp_path / "out")
    found = {p.name: p.read_text() for p in (tmp_path / "out").rglob("*.*")}
    assert found == {"d.v": "one", "other.xsa": "x"}
    assert fidelity.run(design, tmp_path / "empty") == {"missing": True}
