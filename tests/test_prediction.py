"""Predictions of a lesson beside what came."""

from __future__ import annotations

import pytest

from pynq_torch.lessons.prediction import predict


@pytest.mark.parametrize(
    ("value", "came", "told"),
    [
        (100, 400, "100 cycles predicted; 400 cycles came (model): 4 times as much as predicted"),
        (400, 100, "400 cycles predicted; 100 cycles came (model): 1/4 of what was predicted"),
        (7, 7, "7 cycles predicted; 7 cycles came (model): exactly"),
        (0, 3, "0 cycles predicted; 3 cycles came (model): 3 cycles apart"),
        (5, -2, "5 cycles predicted; -2 cycles came (model): -7 cycles apart"),
        (None, 3, "put your number in place of None; 3 cycles came (model)"),
    ],
)
def test_a_prediction_is_compared_with_what_came(
    capsys: pytest.CaptureFixture[str], value: float | None, came: float, told: str
):
    predict("a start", value, "cycles").compare(came, "model")
    printed = capsys.readouterr().out
    assert printed.startswith("a start: ") and printed.endswith(told + "\n")


def test_a_prediction_is_a_number():
    with pytest.raises(ValueError, match="a start: predicted nan, expected a finite number"):
        predict("a start", float("nan"), "cycles")
