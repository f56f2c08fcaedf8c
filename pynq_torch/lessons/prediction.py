"""A number is predicted before it is measured, and both stand in the lesson beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

__all__ = ["Prediction", "predict"]


@dataclass(frozen=True)
class Prediction:
    """What somebody expects of a measurement; `compare` says how far it was off."""

    what: str
    value: float | None
    unit: str

    def __str__(self) -> str:
        """Return the prediction as a sentence."""
        if self.value is None:
            return f"{self.what}: nothing predicted yet; put your number in place of None"
        return f"{self.what}: {_number(self.value)} {self.unit} predicted"

    def __repr__(self) -> str:
        """Return what a cell shows."""
        return str(self)

    def compare(self, came: float, kind: str) -> None:
        """Print what came beside what was predicted.

        Parameters
        ----------
        came : float
            The number that came, in the prediction's unit.
        kind : str
            Where it is from: ``"measured"``, ``"cycles"``, ``"estimate"`` or ``"model"``.
        """
        print(f"{self}; {_number(came)} {self.unit} came ({kind}){self._verdict(came)}")

    def _verdict(self, came: float) -> str:
        if self.value is None:
            return ""
        if self.value == came:
            return ": exactly"
        ratio = came / self.value if self.value else 0.0
        if ratio <= 0:  # of nothing, or of another sign
            return f": {_number(came - self.value)} {self.unit} apart"
        if ratio >= 1:
            return f": {_number(ratio)} times as much as predicted"
        return f": 1/{_number(1 / ratio)} of what was predicted"


def predict(what: str, value: float | None, unit: str) -> Prediction:
    """Note what you expect of a measurement, before you run it.

    Parameters
    ----------
    what : str
        What is measured.
    value : float, optional
        Your number. With None the lesson runs all the same, and compares nothing.
    unit : str
        Of the number: ``"cycles"``, ``"ms"``, ``"errors"``.

    Raises
    ------
    ValueError
        `value` is not finite.
    """
    if value is not None and not isfinite(value):
        raise ValueError(f"{what}: predicted {value}, expected a finite number or None")
    return Prediction(what, value, unit)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.3g}"
