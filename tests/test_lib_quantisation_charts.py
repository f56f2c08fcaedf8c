"""Steps of a grid and their errors, and what the charts of quantisation draw of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pynq_torch
from pynq_torch.ops import quantise
from pynq_torch.plot import ProvenanceError, quantisation
from pynq_torch.plot.grid import Grid
from pynq_torch.timing import Duration
from pynq_torch.widgets import explore_grid

MEASURED = Duration(2e-3, "measured", "csim", "csim on this PC", 5)
MODEL = Duration(1e-3, "model", "model", clock_hz=1e8)


def test_steps_round_halves_to_even_and_stop_where_they_are_told():
    x = torch.tensor([-9.0, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 9.0])
    assert Grid(1.0).steps(x).tolist() == [-9, -2, 0, 0, 0, 2, 2, 9]
    assert Grid(1.0, clip=3.0).steps(x).tolist() == [-3, -2, 0, 0, 0, 2, 2, 3]
    assert Grid(0.01).steps(x).tolist() == [-127, -127, -50, 0, 50, 127, 127, 127]
    assert Grid(0.5).values(x).tolist() == x.tolist()
    assert Grid(0.01).limit == pytest.approx(1.27) and Grid(0.01).used == 127
    assert Grid(1.0, clip=3.0).used == 3


def test_the_whole_grid_is_the_one_of_the_operators():
    pynq_torch.use_board("csim")  # another test of this process may have closed its own
    x = torch.randn(40, 30, generator=torch.Generator().manual_seed(1))
    packed = quantise.per_tensor(x)
    assert isinstance(packed, quantise.Packed)
    grid = Grid.over(x)
    assert grid.scale == pytest.approx(packed.scale) and grid.used == 127
    assert torch.equal(grid.steps(x), packed.values.cpu())
    assert Grid.over(x, bits=4).used == 7
    assert Grid.over(x, 0.5).limit == pytest.approx(float(x.abs().max()) / 2)


@given(scale=st.floats(0.01, 2), clip=st.floats(0.01, 5), seed=st.integers(0, 99))
def test_rounding_and_cutting_off_are_the_whole_error(scale: float, clip: float, seed: int):
    x = torch.randn(200, generator=torch.Generator().manual_seed(seed))
    grid = Grid(scale, clip)
    found = grid.errors(x)
    real = (grid.values(x).double() - x).square().mean().sqrt()
    assert found.both == pytest.approx(float(real), rel=1e-5)
    assert found.both**2 == pytest.approx(found.rounding**2 + found.cut_off**2)
    assert found.rounding <= scale / 2 * 1.001
    assert (found.cut_off > 0) == (found.share > 0)


def test_without_a_tail_nothing_is_cut_off():
    x = torch.randn(1000, generator=torch.Generator().manual_seed(2))
    assert Grid.over(x).errors(x).share == 0
    assert Grid.over(x, 0.5).errors(x).share == pytest.approx(
        float((x.abs() > (127.5 / 127) * 0.5 * x.abs().max()).float().mean())
    )


def test_what_is_no_grid_is_refused():
    for values in ({"scale": 0.0}, {"scale": float("nan")}, {"scale": 1.0, "clip": -1.0}):
        with pytest.raises(ValueError, match="greater than 0"):
            Grid(**values)
    with pytest.raises(ValueError, match="expected 2 to 8"):
        Grid.over(torch.ones(1), bits=9)
    for values in (torch.zeros(3), torch.tensor([1.0, float("inf")])):
        with pytest.raises(ValueError, match="largest magnitude is"):
            Grid.over(values)


# ---- charts --------------------------------------------------------------------------------------


@pytest.fixture
def axes() -> Iterator[Any]:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def _texts(ax: Any) -> str:
    ax.figure.canvas.draw()
    legend = ax.get_legend()
    entries = [t.get_text() for t in legend.get_texts()] if legend else []
    return "\n".join([ax.get_title(), ax.get_xlabel(), *entries, *(t.get_text() for t in ax.texts)])


def _counts(ax: Any) -> list[float]:
    return [float(patch.get_data().values.sum()) for patch in ax.patches]


def test_a_histogram_counts_every_value_and_shows_what_is_cut_off(axes: Any):
    x = torch.randn(5000, generator=torch.Generator().manual_seed(3))
    ax = quantisation.histogram(x, Grid.over(x), title="all")
    assert _counts(ax) == [5000] and _texts(ax).startswith("all")
    for grid in (Grid.over(x, 0.5), Grid.over(x, 0.7, bits=4), Grid(1e-3, 2.0)):
        beyond = round(grid.errors(x).share * 5000)
        kept, cut = _counts(quantisation.histogram(x, grid))
        assert kept + cut == 5000 and 0 < cut < 5000
        # Bars of a very fine grid hold several steps, so that one may lie across the end.
        assert cut == pytest.approx(beyond, abs=0 if grid.scale > 0.01 else 40)
    two = quantisation.histograms({"a": x, "b": x.relu()})
    assert [ax.get_title() for ax in two] == ["a", "b"]


def test_the_trade_off_has_its_least_where_coarse_steps_want_it(axes: Any):
    x = torch.randn(5000, generator=torch.Generator().manual_seed(4))

    def least(steps: int) -> float:
        ax = quantisation.trade_off(x, steps, 0.5)
        (both,) = (line for line in ax.lines if line.get_label() == "both")
        return float(both.get_xdata()[both.get_ydata().argmin()])

    assert least(7) < 0.8 < least(127)
    assert "now" in _texts(quantisation.trade_off(x, 7, 0.5))


def test_the_sliders_begin_where_they_are_told_and_run_what_they_are_given(
    axes: Any, capsys: pytest.CaptureFixture[str]
):
    x = torch.randn(500, generator=torch.Generator().manual_seed(5))
    seen: list[Grid] = []
    explore_grid(x, seen.append, scale=16.0, clip=0.5, live=False)
    (grid,) = seen
    assert grid.scale == pytest.approx(16 * float(x.abs().max()) / 127)
    assert grid.clip == pytest.approx(float(x.abs().max()) / 2)
    assert f"{grid.used} steps on each side" in capsys.readouterr().out
    explore_grid(x, scale=32.0, clip=0.05, live=False)  # no step is left
    assert "0 steps on each side" in capsys.readouterr().out


def test_live_sliders_rerun_with_each_move(axes: Any):
    x = torch.randn(500, generator=torch.Generator().manual_seed(6))
    seen: list[Grid] = []
    import IPython.display

    shown: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IPython.display, "display", shown.append)
        explore_grid(x, seen.append, live=True)
    (box,) = shown
    scale, clip = box.children[:2]
    scale.value = 2.0
    clip.value = 0.25
    end = float(x.abs().max())
    assert [round(g.scale / end * 127, 3) for g in seen] == [1.0, 2.0, 2.0]
    assert [round(g.clip / end, 3) for g in seen] == [1.0, 1.0, 0.25]


def test_a_scale_for_each_channel_is_never_the_worse_one(axes: Any):
    weight = torch.randn(12, 3, 5, 5, generator=torch.Generator().manual_seed(7))
    weight *= torch.logspace(-2, 0, 12).reshape(12, 1, 1, 1)
    ax = quantisation.channels(weight)
    one, each = (list(line.get_ydata()) for line in ax.lines)
    assert len(one) == 12 and each[0] < one[0] / 10
    assert each[-1] == pytest.approx(one[-1])  # the largest row sets the common scale


def test_errors_are_drawn_against_bounds_and_sizes(axes: Any):
    error, limit = torch.tensor([[1.0, -2.0]]), torch.tensor([[2.0, 4.0]])
    ax = quantisation.bound({"c": (error, limit)})
    assert ax.collections[0].get_offsets().tolist() == [[2.0, 1.0], [4.0, 2.0]]
    assert "error = bound" in _texts(ax)
    ax = quantisation.growth([1, 2], {"a": [1.0, 2.0]}, title="t", ylabel="share")
    assert list(ax.lines[0].get_ydata()) == [1.0, 2.0] and ax.get_ylabel() == "share"
    with pytest.raises(ValueError, match="has 1 values; expected 2"):
        quantisation.growth([1, 2], {"a": [1.0]})


def test_error_against_time_says_where_the_times_come_from(axes: Any):
    series = {"csim": [(MEASURED, 0.01)] * 2, "PL": [(MODEL, 0.01)] * 2}
    text = _texts(quantisation.error_against_time(series, [64, 128]))
    assert "csim (measured)" in text and "PL (model)" in text and "128" in text
    assert "measured (csim on this PC, median of 5); model (at 100 MHz)" in text
    with pytest.raises(ProvenanceError, match="mixes"):
        quantisation.error_against_time({"x": [(MEASURED, 1.0), (MODEL, 1.0)]}, [1, 2])
    with pytest.raises(ValueError, match="has 2 points; expected 1"):
        quantisation.error_against_time({"x": series["PL"]}, [1])
