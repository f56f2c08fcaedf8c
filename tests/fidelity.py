"""``docs/fidelity.md``: what authors of public designs published, and what we count.

``python tests/fidelity.py FOLDER`` runs the designs of ``tests/fidelity.toml`` from clones in
FOLDER, each named OWNER+NAME (or with the repository in OWNER+NAME/repo), and prints their rows.
``--only TEXT`` runs those whose name has the text. ``--write`` keeps the numbers in
``tests/fidelity.json`` and writes the page; a design without its clone keeps its last number.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).resolve().parents[1]
DATA, KEPT = ROOT / "tests" / "fidelity.toml", ROOT / "tests" / "fidelity.json"
PAGE = ROOT / "docs" / "fidelity.md"
#: Of one design: its build and its run.
_TIMEOUT_S = 1800
#: What a run needs of a repository.
_ENDINGS = (".v", ".vh", ".dat", ".tcl", ".xsa")
KINDS = {
    "board": "measured on a board",
    "cosim": "co-simulation",
    "csynth": "csynth estimate",
}


@dataclass(frozen=True)
class Design:
    """A row of the table; see the head of ``tests/fidelity.toml``."""

    id: str
    repository: str
    does: str
    published: float
    kind: str
    source: str
    run: dict[str, Any]
    revision: str = "HEAD"
    files: tuple[str, ...] = ()
    also: dict[str, str] = field(default_factory=dict)
    clock_mhz: float = 0.0
    python_ms: float = 0.0
    remark: str = ""

    @property
    def link(self) -> str:
        """The repository, and the place of the RTL in it."""
        path = f"/tree/{self.revision}/{self.files[0]}" if self.files else ""
        return f"https://github.com/{self.repository}{path}"


def designs() -> list[Design]:
    """Return the table."""
    rows = tomllib.loads(DATA.read_text())["design"]
    return [Design(**{**row, "files": tuple(row.get("files", ()))}) for row in rows]


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,}"


def row(design: Design, kept: dict[str, Any]) -> str:
    """Return a line of the page from a design and what is kept of its last run."""
    unit = "ms" if design.clock_mhz else "cycles"
    published = f"{design.published:.2f} ms" if design.clock_mhz else _number(design.published)
    if design.python_ms:
        published += f", Python {design.python_ms:.2f}"
    ours, change = kept.get("why", "not run yet"), ""
    if "cycles" in kept:
        value = kept["cycles"]
        ours = _number(value)
        if unit == "ms":
            value = value / design.clock_mhz / 1000
            ours += f" = {value:.2f} ms"
        change = f"{100 * (value / (design.published - design.python_ms) - 1):+.1f} %"
        change = "0" if change in ("+0.0 %", "-0.0 %") else change
    source = f"{KINDS[design.kind]}: {design.source}"
    does = design.does + (f" ({design.remark})" if design.remark else "")
    mark = " †" if kept.get("missing") else ""
    name = f"[{design.repository}]({design.link}) {design.id}"
    return f"| {name} | {does} | {published} | {source} | {ours}{mark} | {change} |\n"


def page(kept: dict[str, dict[str, Any]]) -> str:
    """Return the page."""
    prose = tomllib.loads(DATA.read_text())
    columns = ("design", "what it does", "published", "kind and source", "ours", "difference")
    head = f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|\n"
    rows = "".join(row(design, kept.get(design.id, {})) for design in designs())
    return str(prose["head"] + head + rows + prose["reading"])


def _git(clone: Path, *command: str) -> bytes:
    return subprocess.run(["git", *command], cwd=clone, check=True, capture_output=True).stdout


def clone_of(folder: Path, design: Design) -> Path | None:
    """Return where the repository's clone is, None where there is none."""
    place = folder / design.repository.replace("/", "+")
    known = (p for p in (place, place / "repo") if (p / ".git").exists() or (p / "HEAD").exists())
    return next(known, None)


def extract(clone: Path, design: Design, place: Path) -> None:
    """Write the files that a design needs, as they were at its revisions."""
    wanted = [(design.revision, path) for path in design.files] + list(design.also.items())
    for revision, path in wanted:
        listed = _git(clone, "ls-tree", "-r", "--name-only", revision, "--", path).decode()
        for name in listed.splitlines():
            if name.endswith(_ENDINGS):
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_bytes(_git(clone, "show", f"{revision}:{name}"))


def run(design: Design, folder: Path) -> dict[str, Any]:
    """Run a design in a process of its own; return its cycles, or why there are none."""
    with tempfile.TemporaryDirectory() as temporary:
        if design.files:
            clone = clone_of(folder, design)
            if clone is None:
                return {"missing": True}
            try:
                extract(clone, design, Path(temporary))
            except subprocess.CalledProcessError as error:
                return {"why": error.stderr.decode().strip().splitlines()[-1]}
        program = "import json, sys, pathlib; from fidelity_runs import RUNS; "
        program += "run = json.loads(sys.argv[2]); "
        program += "print(RUNS[run['by']](pathlib.Path(sys.argv[1]), run))"
        command = [sys.executable, "-c", program, temporary, json.dumps(design.run)]
        try:
            done = subprocess.run(
                command, cwd=ROOT / "tests", capture_output=True, text=True, timeout=_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            return {"why": f"no end after {_TIMEOUT_S} s"}
    lines = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    return {"why": lines[-1]} if done.returncode else {"cycles": json.loads(lines[-1])}


def main() -> None:
    """Run the designs, print their rows, write the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    kept: dict[str, dict[str, Any]] = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    for design in designs():
        if options.only not in f"{design.repository} {design.id}":
            continue
        found = run(design, options.folder)
        kept[design.id] = {**kept.get(design.id, {}), **found} if "missing" in found else found
        print(row(design, kept[design.id]), end="", flush=True)
    if options.write:
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
        PAGE.write_text(page(kept))


if __name__ == "__main__":
    main()
