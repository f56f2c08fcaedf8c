"""Charts of a profile: bars are the profile's numbers, and say where these come from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import pynq_torch
from pynq_torch import events, plot
from pynq_torch.plot import profile as plots_profile
from pynq_torch.profiler.timeline import Timeline
from pynq_torch.torch_device import record

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def x() -> Iterator[torch.Tensor]:
    """A matrix on the device, with gemm in the PL."""
    board: Any = pynq_torch.use_board("csim")
    pynq_torch.load("gemm")
    yield torch.randn(40, 40).to("pynq")
    board.close()


@pytest.fixture
def axes() -> Iterator[Any]:
    import matplotlib.pyplot as plt

    yield plt.subplots()[1]
    plt.close("all")


def profiled(x: torch.Tensor, *, int8: bool, passes: int = 2) -> Any:
    profile = torch.pynq.profiler.profile()
    for _ in range(passes):
        with profile, torch.backends.pynq.flags(allow_int8=int8):
            (x @ x).relu().add(x)
    return profile


def bars(axes: Any) -> dict[int, float]:
    """Return the length of the stacked bar at each place."""
    lengths: dict[int, float] = {}
    for patch in axes.patches:
        y = round(patch.get_y() + patch.get_height() / 2)
        lengths[y] = lengths.get(y, 0.0) + patch.get_width()
    return lengths


def test_bars_are_means_over_the_regions(x: torch.Tensor, axes: Any) -> None:
    profile = profiled(x, int8=True)
    plots_profile.operators({"int8": profile}, ax=axes)
    rows = json.loads(profile.stats("ExecTime-Raw"))["operators"]
    scale = {"ms": 1e3, "µs": 1e6}[axes.get_xlabel().split()[2].partition("\n")[0]]
    assert [t.get_text() for t in axes.get_yticklabels()] == [
        row["name"].removeprefix("aten::") for row in rows
    ]
    for y, row in enumerate(rows):
        parts = row["host_s"] + row["transfer_s"] + row["pl_s"]
        assert bars(axes)[y] == pytest.approx(parts / 2 * scale)


def test_a_chart_of_two_profiles_says_where_each_part_comes_from(
    x: torch.Tensor, axes: Any
) -> None:
    both = {"exact": profiled(x, int8=False), "int8": profiled(x, int8=True)}
    plots_profile.operators(both, most=1, ax=axes)
    labels = [t.get_text() for t in axes.get_yticklabels()]
    assert labels[2:] == ["others\nexact", "others\nint8"]
    assert labels[0].endswith("\nexact") and labels[1].endswith("\nint8")
    assert axes.get_xlabel().endswith(
        "host and transfer: measured (CPU of this PC); PL: measured (csim on this PC)"
    )
    legend = [t.get_text() for t in axes.get_legend().get_texts()]
    assert legend == ["host", "transfer", "PL"]


def test_an_operator_that_one_profile_lacks(x: torch.Tensor, axes: Any) -> None:
    other = torch.pynq.profiler.profile()
    with other:
        x.exp()
    plots_profile.operators({"a": profiled(x, int8=False), "b": other}, most=9, ax=axes)
    assert sum(t.get_text() == "not called" for t in axes.texts) == 4
    # The PL did nothing in either.
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["host"]
    longest = max(bars(axes).values())
    assert axes.get_xlim() == (0, pytest.approx(1.2 * longest))


def test_nothing_to_draw(x: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="there is no profile"):
        plots_profile.operators({})
    with pytest.raises(ValueError, match="profile 'empty' has no operators"):
        plots_profile.operators({"empty": torch.pynq.profiler.profile()})


def test_a_call_as_a_timeline(x: torch.Tensor, axes: Any) -> None:
    images, weight = torch.rand(40, 16, 16, 16).pynq(), torch.rand(16, 16, 3, 3).pynq()
    with events.operators.collected() as calls, torch.backends.pynq.flags(allow_int8=True):
        torch.nn.functional.conv2d(images, weight, padding=1)
    (call,) = calls
    work = Timeline.of_call(call)
    assert work.lanes == ("aten::convolution", "gemm_0", "transfer")
    assert work.busy("gemm_0") == pytest.approx(call.pl_s) and len(call.kernels) > 1
    assert work.seconds == pytest.approx(call.seconds)
    assert work.provenance == "measured (csim on this PC, as the program sees it)"
    plot.timeline(work, ax=axes)


def test_a_call_that_the_cpu_did(x: torch.Tensor) -> None:
    with events.operators.collected() as calls:
        x.exp()
    work = Timeline.of_call(calls[0])
    assert work.lanes == ("aten::exp",)
    assert work.provenance == "measured (CPU of this PC, as the program sees it)"


def test_what_a_function_did_as_a_timeline(x: torch.Tensor) -> None:
    work = Timeline.recorded(lambda: torch._int_mm(x.to(torch.int8), x.to(torch.int8)).exp())
    assert work.lanes == ("aten::_int_mm", "aten::copy_", "aten::exp", "gemm_0")
    assert work.provenance == (
        "measured (CPU of this PC, as the program sees it) + "
        "measured (csim on this PC, as the program sees it)"
    )
    with pytest.raises(ValueError, match="called no operator"):
        Timeline.recorded(lambda: torch.ones(3).exp())
    x.exp()  # nobody watches any more
    assert not record.switches.active
