"""Print the ten slowest parts of `make test`: slowest.py FOLDER-OF-JUNIT-FILES REPORT...

A part is a file of tests, or a notebook. Its seconds are wall clock; another part ran beside it.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

MOST = 10


def parts_of_tests(folder: Path) -> Iterator[tuple[float, str]]:
    """Yield the seconds of each file of tests, with its slowest test."""
    for path in sorted(folder.glob("*.xml")):
        files: dict[str, list[tuple[float, str]]] = {}
        for case in ET.parse(path).iter("testcase"):
            test = float(case.get("time", 0)), case.get("name", "")
            files.setdefault(case.get("classname", ""), []).append(test)
        for name, tests in files.items():
            longest, test = max(tests)
            total = sum(seconds for seconds, _ in tests)
            yield (
                total,
                f"{path.stem}: {name}, {len(tests)} tests (longest: {test}, {longest:.0f} s)",
            )


def parts_of_report(folder: Path) -> Iterator[tuple[float, str]]:
    """Yield the seconds of each notebook in the newest run of a report."""
    runs = sorted(folder.glob("runs/*/index.json"), key=lambda path: path.stat().st_mtime)
    for path in runs[-1:]:
        for notebook in json.loads(path.read_text(encoding="utf-8"))["notebooks"]:
            yield notebook["seconds"], f"report {folder.name}: {notebook['name']}"


def main(times: str, *reports: str) -> None:
    """Print the table."""
    parts = [*parts_of_tests(Path(times))]
    for report in reports:
        parts += parts_of_report(Path(report))
    print(f"The {MOST} slowest of {len(parts)} parts:")
    for seconds, name in sorted(parts, reverse=True)[:MOST]:
        print(f"{seconds:7.1f} s  {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
