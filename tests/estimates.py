"""How far ``hls estimate`` agrees with published reports; writes the table of docs/estimate.md.

usage: python tests/estimates.py REPORTS CHECKOUTS [--write] [--verbose]
       python tests/estimates.py own    (writes the table of this project's kernels)

REPORTS has one JSON object a line: ``repo`` (owner/name), ``source``, ``sources``, ``top``,
``clock``, ``part``, ``directives_file``, ``include_dirs``, ``defines``, ``group`` (the same for one
source with several sets of directives), and what the tool reported:
``latency`` (``worst``), ``loops`` (``name``, ``lines``, ``trip_count``, ``ii``,
``iteration_latency``, ``latency``) and ``resources``. CHECKOUTS holds a folder ``owner+name`` for
each repository. Reports whose repository is not there are left out and counted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import signal
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from pynq_torch.descriptions import read_kernel_description
from pynq_torch.errors import KernelError
from pynq_torch.hls.estimator import Estimate, LoopEstimate, estimate
from pynq_torch.paths import KERNELS

DOCS = Path(__file__).resolve().parent.parent / "docs" / "estimate.md"
BEGIN, END = "<!-- agreement: python tests/estimates.py -->", "<!-- end of agreement -->"
OWN, OWN_END = "<!-- own kernels: python tests/estimates.py own -->", "<!-- end of own kernels -->"
LONGEST_S = 60

#: Kernels whose arguments alone say how long a run takes; "beats" come with the stream, and are
#: those of LOOP_TRIPCOUNT.
COMPARED = (
    "affine_lite", "affine_maxi", "chain", "cordic", "dot_1", "dot_2", "dot_3", "dot_4", "fft",
    "fir", "gauss", "gauss_fixed", "histogram", "packetize", "prefix_sum", "scale_stream", "sobel",
    "sobel_fixed", "vadd", "vadd_1", "vadd_2", "vadd_3", "vadd_4",
)  # fmt: skip
#: Why an estimate is more than a tenth off the formula.
REASONS = {
    "vadd_4": "the formula has DDR's limit, which no schedule knows",
}


def own_row(name: str) -> tuple[str, int, int]:
    """Return the sizes of a kernel's example, its formula's cycles and the estimate's."""
    latency = read_kernel_description(KERNELS / name).latency
    sizes = dict(latency.example)
    if "beats" in sizes:
        sizes["beats"] = 4096
    arguments = {key: number for key, number in sizes.items() if key != "beats"}
    found = estimate(KERNELS / name / f"{name}.cpp", name, arguments=arguments)
    assert found.latency[1] is not None, f"{name}: a loop has no trip count"
    shown = ", ".join(f"{key}={number:,}" for key, number in sizes.items())
    return shown, round(latency.cycles(**sizes)), found.latency[1]


def own_line(name: str) -> str:
    """Return a kernel's row of the table."""
    sizes, formula, cycles = own_row(name)
    away = 100 * (cycles - formula) / formula
    return (
        f"| {name} | {sizes} | {formula:,} | {cycles:,} | {away:+.0f} % | {REASONS.get(name, '')} |"
    )


def estimated(record: dict[str, Any], folder: Path) -> Estimate | str:
    """Return the estimate of one record, or why there is none."""

    def late(*_: object) -> None:
        raise TimeoutError(f"no answer in {LONGEST_S} s")

    os.chdir(folder)
    signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST_S)
    try:
        return estimate(
            record["source"], record["top"], clock=record["clock"], part=record["part"],
            directives=record["directives_file"], sources=record.get("sources", ()),
            include_dirs=[folder / one for one in record.get("include_dirs", ())],
            defines=record.get("defines", ()),
        )  # fmt: skip
    except (KernelError, TimeoutError) as error:
        return str(error).replace(str(folder) + "/", "")
    finally:
        signal.alarm(0)


def most(value: Any) -> int | None:
    """Return the upper end of a number or of a range."""
    if isinstance(value, (list, tuple)):
        value = value[-1]
    return value if isinstance(value, int) else None


def matched(
    record: dict[str, Any], found: Estimate | None
) -> Iterator[tuple[dict[str, Any], LoopEstimate | None]]:
    """Pair each reported loop that has a label or a line with an estimated one."""
    left = list(found.loops) if found is not None else []
    for loop in record["loops"]:
        lines, name = loop.get("lines") or [], loop["name"]
        if not lines and name.startswith("Loop "):
            continue
        fits = [e for e in left if _plain(e.name) == _plain(name)]
        fits = fits or [e for e in left if lines and e.line == lines[-1]]
        fits.sort(key=lambda e: e.trip_count[1] != most(loop["trip_count"]))
        yield loop, fits[0] if fits else None
        if fits:
            left.remove(fits[0])


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", "", name).lower()


def error(have: int | None, want: int) -> float:
    """Return the relative error; below ten cycles, of ten cycles; 10 where nothing is estimated."""
    return 10.0 if have is None else min(abs(have - want) / max(want, 10), 10.0)


def compare(
    record: dict[str, Any], found: Estimate | None, tally: dict[str, list[float]]
) -> list[str]:
    """Add one record to the tally; return its differences."""
    said = []
    for loop, have in matched(record, found):
        ii = have.ii if have else None
        if loop["ii"] is not None:
            tally["II"].append(ii == loop["ii"])
            if loop["ii"] > 1:
                tally["II above 1"].append(ii == loop["ii"])
            if ii != loop["ii"]:
                said.append(f"{loop['name']}: II {ii}, reported {loop['ii']}")
        want = most(loop["latency"])
        if want is not None:
            tally["loop"].append(error(have.latency[1] if have else None, want))
        if have and most(loop["trip_count"]) is not None:
            tally["trips"].append(have.trip_count[1] == most(loop["trip_count"]))
    want = record["latency"]["worst"]
    if want is not None:
        have_total = found.latency[1] if found is not None else None
        tally["total"].append(error(have_total, want))
        if tally["total"][-1] > 0.15:
            said.append(f"latency {have_total}, reported {want}")
    for name in ("DSP", "BRAM_18K"):
        reported = (record["resources"] or {}).get(name)
        if reported is not None:
            have_count = found.resources[name] if found is not None else None
            near = have_count is not None and abs(have_count - reported) <= max(1, 0.1 * reported)
            tally[name].append(near)
    for name in ("LUT", "FF"):
        if reported := (record["resources"] or {}).get(name):
            have_count = found.resources[name] if found is not None else None
            tally[name].append(error(have_count, reported))
    return said


def order(times: dict[str, list[tuple[float, float | None]]]) -> list[float]:
    """Return whether the faster of two variants is estimated as faster, for each such pair.

    `times` are the reported and the estimated ns of each group; pairs within 5 % are left out.
    """
    pairs = (pair for group in times.values() for pair in itertools.combinations(group, 2))
    return [
        None not in (have, also) and (have < also) == (want < other) and have != also  # type: ignore[operator]
        for (want, have), (other, also) in pairs
        if abs(want - other) > 0.05 * max(want, other)
    ]


def table(tally: dict[str, list[float]], count: int, failed: int, absent: int) -> str:
    """Return the table as Markdown."""

    def share(name: str) -> str:
        values = tally[name]
        return (
            f"{sum(values):.0f} of {len(values)} ({100 * sum(values) / max(len(values), 1):.0f} %)"
        )

    def spread(name: str) -> str:
        values = sorted(tally[name])
        near = f"{100 * values[int(0.8 * len(values))]:.0f} %"
        return f"{100 * statistics.median(values):.0f} % (80 % of {len(values)} within {near})"

    rows = [
        ("reports with an estimate", f"{count - failed} of {count}; {absent} without a checkout"),
        ("II equal, of pipelined loops", share("II")),
        ("II equal, where the report says more than 1", share("II above 1")),
        ("trip counts equal", share("trips")),
        ("loop latency, median error", spread("loop")),
        ("total latency, median error", spread("total")),
        ("faster of two variants of a source right", share("order")),
        ("DSP within 10 % or one", share("DSP")),
        ("BRAM_18K within 10 % or one", share("BRAM_18K")),
        ("LUT, median error", spread("LUT")),
        ("FF, median error", spread("FF")),
    ]
    return "\n".join(["| what | agreement |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)])


def write_own() -> None:
    """Write the table of this project's own kernels."""
    head = "| kernel | sizes | formula | estimate | difference | why |\n|---|---|---|---|---|---|"
    lines = "\n".join([head, *map(own_line, COMPARED)])
    page = DOCS.read_text()
    before, after = page.split(OWN)[0], page.split(OWN_END)[1]
    DOCS.write_text(f"{before}{OWN}\n{lines}\n{OWN_END}{after}")


def main() -> None:
    """Compare, print, and write where asked."""
    if sys.argv[1:] == ["own"]:
        write_own()
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reports", type=Path)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--write", action="store_true", help="put the table into docs/estimate.md")
    parser.add_argument("--verbose", action="store_true", help="a line for each difference")
    args = parser.parse_args()
    records = [json.loads(line) for line in args.reports.read_text().splitlines()]
    records = [record for record in records if "repo" in record]
    folders = [(args.checkouts / r["repo"].replace("/", "+")).resolve() for r in records]
    here = [(r, folder) for r, folder in zip(records, folders, strict=True) if folder.is_dir()]
    tally: dict[str, list[float]] = defaultdict(list)
    times: dict[str, list[tuple[float, float | None]]] = defaultdict(list)
    failed = 0
    with ProcessPoolExecutor(2) as pool:
        for (record, _), found in zip(
            here, pool.map(estimated, *zip(*here, strict=True)), strict=True
        ):
            name = f"{record['repo']} {record['source']}"
            if (worst := record["latency"]["worst"]) is not None and "group" in record:
                have = None if isinstance(found, str) else found.latency[1]
                ns = record["clock"]
                times[record["group"]].append((worst * ns, None if have is None else have * ns))
            if isinstance(found, str):
                failed += 1
                print(f"no estimate of {name}: {found}")
                compare(record, None, tally)  # counts as wrong
                continue
            for line in compare(record, found, tally):
                print(f"{name}: {line}") if args.verbose else None
    tally["order"] = order(times)
    text = table(tally, len(here), failed, len(records) - len(here))
    print(text)
    if args.write:
        page = DOCS.read_text()
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        DOCS.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
