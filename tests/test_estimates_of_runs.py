"""Cycles of a run on board csim: by formula, by estimate, or unknown with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import write_overlay
from pynq import allocate

import pynq_torch
from pynq_torch.errors import KernelBuildError
from pynq_torch.hls.estimator import compiler, estimate, estimate_of_run, kept
from pynq_torch.hls.kernels import KernelSource

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("closed")]

#: The loop is BODY; what it does not need stays unused.
KERNEL = """
#include "config.hpp"
void mine(const int* x, int* y, short n, unsigned char most) {
#pragma HLS INTERFACE m_axi port=x bundle=gmem offset=slave depth=64
#pragma HLS INTERFACE m_axi port=y bundle=gmem offset=slave depth=64
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=most
#pragma HLS INTERFACE s_axilite port=return
    BODY
}
"""
COUNTED = """walk: for (int i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=7 max=7
        y[i] = FACTOR * x[i];
    }"""
BY_DATA = COUNTED.replace("i < n", "i < x[0]")
BRANCH = f"if (x[0] > most) {{ {COUNTED} }}"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., KernelSource]:
    """Write the kernel with a body; the build cache is one of its own."""
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path / "cache"))

    def written(body: str = COUNTED) -> KernelSource:
        folder = tmp_path / "kernels" / "mine"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.hpp").write_text("#define FACTOR 3\n")
        (folder / "mine.cpp").write_text(KERNEL.replace("BODY", body))
        return KernelSource("mine", folder / "mine.cpp")

    return written


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """The arguments of each estimate that is not in the cache."""
    seen: list[dict[str, int]] = []

    def note(*args: Any, **options: Any) -> Any:
        seen.append(dict(options["arguments"]))
        return estimate(*args, **options)

    monkeypatch.setattr(kept, "estimate", note)
    return seen


def loaded(tmp_path: Path, source: KernelSource) -> Any:
    bit = write_overlay(tmp_path, {"mine_0": "mine"}, kernels=source.folder.parent)
    pynq_torch.use_board("csim", kernels=[source.folder.parent])
    return pynq_torch.load(bit).mine_0


def run(unit: Any, n: int, most: int = 200) -> Any:
    x, y = allocate(64, np.int32), allocate(64, np.int32)
    x[:] = 5
    unit(x, y, n, most)
    return unit.last_run


# ---- on the board --------------------------------------------------------------------------------


def test_a_kernel_without_a_formula_has_an_estimate(
    tmp_path: Path, kernel: Any, asked: list[dict[str, int]]
) -> None:
    unit = loaded(tmp_path, kernel())
    first = run(unit, 10)
    assert asked == []  # a start asks for nothing
    found = first.pl_cycles
    assert asked == [{"n": 10, "most": 200}]
    assert (found.kind, found.cycles) == ("estimate", first.pl_cycles.cycles)
    assert str(found).endswith(" cycles, estimate (as Vitis HLS would schedule it at 10 ns)")
    assert run(unit, 30).pl_cycles.cycles == found.cycles + 20
    assert run(unit, 10).pl_cycles == found and len(asked) == 2
    assert first.cycles is None and first.kind.startswith("measured (csim")


def test_arguments_have_their_signs(
    tmp_path: Path, kernel: Any, asked: list[dict[str, int]]
) -> None:
    unit = loaded(tmp_path, kernel())
    assert run(unit, -2, 255).pl_cycles.cycles is not None
    assert asked == [{"n": -2, "most": 255}]


def test_a_later_write_does_not_change_the_run(tmp_path: Path, kernel: Any) -> None:
    unit = loaded(tmp_path, kernel())
    expected = run(unit, 10).pl_cycles.cycles
    ended = run(unit, 10)
    unit.write(unit.register_map.n.address, 60)
    assert ended.pl_cycles.cycles == expected


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (BY_DATA, "cycles unknown: the data, not the arguments alone, say how often a loop runs"),
        (BRANCH, "cycles unknown: branches decide, an estimate says "),
        ("int f(int); y[0] = f(1);", "cycles unknown: no estimate: "),
    ],
)
def test_what_is_not_known_says_why(tmp_path: Path, kernel: Any, body: str, said: str) -> None:
    source = kernel(body)
    if "f(1)" in body:  # in a file of its own, which the engine is built with
        (source.folder / "f.cpp").write_text("int f(int x) { return x; }\n")
    found = run(loaded(tmp_path, source), 4).pl_cycles
    assert found.cycles is None and str(found).startswith(said)
    if "f(1)" in body:
        assert "mine.cpp:" in str(found) and "f has no body here" in str(found)


def test_without_clang_kernels_run_and_their_cycles_are_unknown(
    tmp_path: Path, kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "tools", lambda: "hls estimate needs clang-16")
    found = run(loaded(tmp_path, kernel()), 4)
    assert found.number == 1
    assert str(found.pl_cycles) == "cycles unknown: no estimate: hls estimate needs clang-16"


def test_a_formula_comes_first(tmp_path: Path, kernel: Any) -> None:
    source = kernel()
    latency = {"kind": "model", "cycles": "2 * n + 5", "symbols": {"n": ""}, "assumptions": ""}
    text = {"name": "mine", "summary": "", "reference": "", "operators": [], "latency": latency}
    (source.folder / "description.json").write_text(json.dumps(text))
    unit = loaded(tmp_path, source)
    assert str(run(unit, 10).pl_cycles) == "25 cycles, model (description.json)"
    latency |= {"cycles": "m", "symbols": {"m": ""}}
    (source.folder / "description.json").write_text(json.dumps(text))
    found = run(unit, 10).pl_cycles
    assert found.kind == "estimate" and "asks for m, which is no integer argument" in found.note


# ---- what is kept --------------------------------------------------------------------------------


def test_a_change_of_the_source_or_a_header_estimates_again(
    kernel: Any, asked: list[dict[str, int]]
) -> None:
    source = kernel()
    first = estimate_of_run(source, {"n": 10})
    assert estimate_of_run(source, {"n": 10}) == first and len(asked) == 1
    (source.folder / "config.hpp").write_text("#define FACTOR (x[i] / 7)\n")
    changed = estimate_of_run(source, {"n": 10})
    assert len(asked) == 2 and changed.latency[0] > first.latency[0]
    assert estimate_of_run(source, {"n": 10}, clock=4.0) != changed and len(asked) == 3


def test_failures_are_kept_and_old_runs_are_not(
    kernel: Any, asked: list[dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = kernel("y[0] = undeclared;")
    for _ in range(2):
        with pytest.raises(KernelBuildError, match="undeclared"):
            estimate_of_run(source, {})
    assert len(asked) == 1
    source = kernel()
    monkeypatch.setattr(kept, "_KEPT", 2)
    for n in (1, 2, 3, 3, 1):
        estimate_of_run(source, {"n": n})
    assert [one["n"] for one in asked[1:]] == [1, 2, 3, 1]


def test_a_run_is_no_report(kernel: Any) -> None:
    source = kernel(BRANCH).source
    report, exact = estimate(source, "mine"), estimate(source, "mine", exact=True)
    assert report.loops[0].trip_count == (7, 7) and exact.loops[0].trip_count == (None, None)
    least, most = estimate(source, "mine", exact=True, arguments={"n": 9, "k": 1}).latency
    assert least is not None and most is not None and most - least > 9


def test_the_least_of_a_dataflow_region_is_not_its_most(kernel: Any) -> None:
    parts = KERNEL.replace('#include "config.hpp"', "")
    head = """
static void first(const int* x, int t[64], int n) {
    if (x[0]) for (int i = 0; i < n; ++i) t[i] = x[i];
}
static void second(const int t[64], int* y, int n) {
    for (int i = 0; i < 8; ++i) y[i] = t[i];
}
"""
    body = "int t[64];\n#pragma HLS DATAFLOW\nfirst(x, t, n); second(t, y, n);"
    source = kernel().source
    source.write_text(head + parts.replace("BODY", body))
    least, most = estimate(source, "mine", exact=True, arguments={"n": 60}).latency
    assert least is not None and most is not None and most - least > 50
