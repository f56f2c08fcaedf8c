"""An index outside a local array: said on csim, with file, line and index."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers import write_overlay
from pynq import allocate

import pynq_torch
from pynq_torch import hls
from pynq_torch.errors import ArrayBoundsWarning, KernelFault

PROBE = """
static int table[8];
void probe(int *out, int at, int what) {
#pragma HLS INTERFACE m_axi port=out offset=slave bundle=gmem
#pragma HLS INTERFACE s_axilite port=at
#pragma HLS INTERFACE s_axilite port=what
#pragma HLS INTERFACE s_axilite port=return
  int local[16];
  int grid[4][8];
  for (int i = 0; i < 16; i++) local[i] = i;
  for (int i = 0; i < 32; i++) grid[i / 8][i % 8] = i;
  if (what == 0) out[0] = local[at];
  if (what == 1) local[at] = 5, out[0] = local[15];
  if (what == 2) out[0] = grid[at][0];
  if (what == 3) out[0] = grid[1][at];
  if (what == 4) out[0] = table[at];
  if (what == 5) out[0] = *(&local[0] + at - 1);
}
"""
LINES = PROBE.split("\n")


@pytest.fixture(scope="module", params=[".cpp", ".c"])
def loaded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Any]]:
    folder = tmp_path_factory.mktemp("bounds")
    (folder / "kernels/probe").mkdir(parents=True)
    source = folder / "kernels/probe/probe.cpp"
    source.write_text(PROBE)
    bit = write_overlay(folder, {"probe_0": "probe"}, kernels=folder / "kernels")
    if request.param == ".c":  # C that is no C++
        source.with_suffix(".c").write_text(PROBE.replace("local", "new"))
        source.unlink()

    def load(**options: Any) -> Any:
        pynq_torch.use_board("csim", kernels=[folder / "kernels"], **options)
        return pynq_torch.load(bit)

    yield load
    pynq_torch.current_board().close()


def run(overlay: Any, what: int, at: int) -> int:
    out = allocate(1, "i4")
    overlay.probe_0.start(out=out, at=at & 0xFFFFFFFF, what=what).wait()
    return int(out[0])


def test_indices_inside_say_nothing(loaded: Callable[..., Any]) -> None:
    overlay = loaded()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [run(overlay, what, at) for what, at in [(0, 15), (1, 14), (2, 3), (3, 7), (4, 7)]]
    assert found == [15, 15, 24, 15, 0]


@pytest.mark.parametrize(
    ("what", "at", "array"),
    [
        (0, 16, "int [16]"),
        (0, -1, "int [16]"),
        (1, 17, "int [16]"),
        (2, 4, "int [4][8]"),
        (3, 8, "int [8]"),
        (4, 9, "int [8]"),
    ],
)
def test_an_index_outside_is_named_once(
    loaded: Callable[..., Any], what: int, at: int, array: str
) -> None:
    overlay = loaded()
    line = next(i for i, text in enumerate(LINES, 1) if f"what == {what}" in text)
    said = rf"probe_0: probe\.cp*:{line} uses index {at} of an array '{array}'".replace("[", r"\[")
    with pytest.warns(ArrayBoundsWarning, match=said):
        run(overlay, what, at)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(overlay, what, at)


def test_a_fault_names_the_index_before_it(loaded: Callable[..., Any]) -> None:
    overlay = loaded()
    with pytest.raises(KernelFault, match=r"Before that, probe\.c.* uses index 100000000 of"):
        run(overlay, 1, 100_000_000)


@pytest.mark.filterwarnings("error")
def test_without_a_guard_nothing_is_said(loaded: Callable[..., Any]) -> None:
    run(loaded(guard=False), 0, 16)
    run(loaded(guard="silicon"), 0, 16)


def test_our_own_kernels_are_built_without_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    build = hls.build

    def note(source: Any, **options: Any) -> Any:
        seen.append((source.name, options["cflags"]))
        return build(source, **options)

    monkeypatch.setattr(hls, "build", note)
    pynq_torch.use_board("csim")
    pynq_torch.load("vadd")
    assert seen == [("vadd", [])]
