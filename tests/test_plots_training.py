"""Charts of training: every number drawn is in the table, and each axis has one provenance."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest

from pynq_torch.events import OperatorCall
from pynq_torch.lessons.lenet import LayerCost
from pynq_torch.plot import training
from pynq_torch.timing import Duration


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def cost(name: str, stage: str, measured: float, model: float, *operators: str) -> LayerCost:
    calls = tuple(OperatorCall(f"aten::{operator}", ()) for operator in operators)
    return LayerCost(
        name,
        stage,
        calls,
        Duration(measured, "measured", name, "csim on this PC"),
        Duration(model, "model", name, clock_hz=100e6),
    )


def test_losses_lie_on_each_other_and_are_all_in_the_table() -> None:
    chart = training.losses({"CPU": [2.0, 1.0, 0.5], "PL": [2.0, 1.1, 0.4]}, title="both")
    assert [line.get_label() for line in chart.axes.get_lines()] == ["CPU", "PL"]
    widths = [line.get_linewidth() for line in chart.axes.get_lines()]
    assert widths[0] > widths[1]
    assert chart.table.header == ["step", "CPU", "PL"]
    assert chart.table.rows[1] == ["1", "1.0", "1.1"]
    with pytest.raises(ValueError, match=r"curves of \[1, 2\] steps"):
        training.losses({"CPU": [1.0], "PL": [1.0, 2.0]})
    with pytest.raises(ValueError, match="at least one"):
        training.losses({})


def test_layers_have_an_axis_for_each_provenance() -> None:
    costs = [
        cost("conv", "forward", 0.003, 0.02, "convolution"),
        cost("flatten", "forward", 0.0, 0.0),
        cost("conv", "backward", 0.009, 0.05, "convolution_backward"),
    ]
    chart = training.layers(costs, title="a step")
    left, right = chart.axes.figure.axes
    assert left.get_title() == "measured (csim on this PC)"
    assert right.get_title() == "model (at 100 MHz)"
    assert [round(bar.get_width(), 9) for bar in left.patches] == [3, 9]
    assert [round(bar.get_width(), 9) for bar in right.patches] == [20, 50]
    assert [label.get_text() for label in left.get_yticklabels()] == ["conv"]
    assert [row[:2] + row[3:4] for row in chart.table.rows] == [
        ["conv", "forward", "measured"],
        ["conv", "forward", "model"],
        ["conv", "backward", "measured"],
        ["conv", "backward", "model"],
    ]
    with pytest.raises(ValueError, match="nothing to draw"):
        training.layers([costs[1]])
