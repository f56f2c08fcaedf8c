"""Charts and tables of errors: how far results are from their reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pynq_torch.tables import Table

from .charts import COLOURS, Chart, as_array, axes, colour, marker, nothing_to_draw

__all__ = ["error", "error_table", "ulps"]

#: More points than these are thinned for the scatter; the histogram and the tables count all.
_MOST_POINTS = 4000
_BINS = 24


def ulps(result: Any, reference: Any) -> Any:
    """Return the distance of each value from its reference, in units of the last place.

    Parameters
    ----------
    result, reference : torch.Tensor or numpy.ndarray
        Of one shape; the unit is the gap of float32 at the reference, which may be float64.

    Returns
    -------
    numpy.ndarray
        float64. Both NaN, or the same infinity, are 0 apart; one without the other infinitely.
    """
    found, truth = _pair(result, reference)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.spacing(np.abs(truth).astype(np.float32)).astype(np.float64)
    return _distance(found, truth, gap)


def _distance(found: Any, truth: Any, unit: Any = 1.0) -> Any:
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(found - truth) / unit
    same = (found == truth) | (np.isnan(found) & np.isnan(truth))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _pair(result: Any, reference: Any) -> tuple[Any, Any]:
    found, truth = as_array(result), as_array(reference)
    if found.shape != truth.shape:
        raise ValueError(f"the result has shape {found.shape}; expected {truth.shape}")
    return found.astype(np.float64).ravel(), truth.astype(np.float64).ravel()


def error(
    results: Mapping[str, Any],
    reference: Any,
    *,
    x: Any = None,
    xlabel: str = "",
    unit: str = "ulp",
    bound: float | None = None,
    title: str = "",
    where: str = "",
) -> Chart:
    """Draw how far results are from their reference: over the input, and as a histogram.

    Parameters
    ----------
    results : mapping of str to tensor
        A colour and a marker each; of the shape of the reference.
    reference : tensor
        Best in float64.
    x : tensor, optional
        What the errors are drawn over, of the same shape; default: the reference.
    xlabel : str
        Its name.
    unit : {"ulp", "absolute"}
        Units in the last place of float32, or the difference itself.
    bound : float, optional
        What was promised, in that unit; drawn as a line.
    title : str
        Title of the chart.
    where : str
        Where the results come from, e.g. ``timing.where_measured()``; printed below.

    Returns
    -------
    Chart
        `table` has a row for each result: largest, mean and median error, how many are exact, and
        where the largest is.
    """
    if not results:
        raise nothing_to_draw("at least one result")
    if unit not in ("ulp", "absolute"):
        raise ValueError(f"unit is {unit!r}; expected 'ulp' or 'absolute'")
    truth = _pair(reference, reference)[1]
    at = truth if x is None else _pair(x, reference)[0]
    found = {name: _pair(result, reference)[0] for name, result in results.items()}
    distance, label = (ulps, "error / ulp") if unit == "ulp" else (_distance, "absolute error")
    errors = {name: distance(values, truth) for name, values in found.items()}
    left, right = axes(columns=2)
    _draw(left, right, at, errors, bound)
    place = xlabel or ("reference" if x is None else "x")
    left.set(xlabel="\n".join(filter(None, [place, where])), ylabel=label, title=title)
    right.set(xlabel=label, ylabel="values")
    right.set_yscale("symlog", linthresh=1)
    left.legend(fontsize=11)
    header = ["result", "unit", "max", "mean", "median", "exact", "worst at", "found", "expected"]
    rows = [
        [name, unit, *_summary(values, at, found[name], truth)] for name, values in errors.items()
    ]
    return Chart(left, Table(header, rows))


def _summary(errors: Any, at: Any, found: Any, truth: Any) -> list[str]:
    """Return the largest, mean and median error, how many are 0, and where the largest is."""
    numbers = [f"{f(errors):.3g}" for f in (np.max, np.mean, np.median)]
    worst = int(np.argmax(errors)) if errors.size else 0
    exact = f"{int((errors == 0).sum())} of {errors.size}"
    return [*numbers, exact, f"{at[worst]:.7g}", f"{found[worst]:.9g}", f"{truth[worst]:.9g}"]


def _draw(left: Any, right: Any, at: Any, errors: Mapping[str, Any], bound: float | None) -> None:
    """Draw errors over `at` on the left, and how many there are of each size on the right."""
    finite = [e[np.isfinite(e)] for e in errors.values()]
    # Where every value is exact there is still an axis to draw.
    top = max([float(e.max()) for e in finite if e.size] + [bound or 0.0, 1e-30])
    edges = np.linspace(0.0, top, _BINS + 1)
    for index, (name, values) in enumerate(errors.items()):
        look = {"color": colour(index), "label": name}
        step = max(1, -(-values.size // _MOST_POINTS))
        left.plot(at[::step], values[::step], marker(index), markersize=4, alpha=0.7, **look)
        counts, _ = np.histogram(finite[index], edges)
        right.stairs(counts, edges, linewidth=2, hatch=("", "//", "..")[index % 3], **look)
    if bound is not None:
        line = {"color": COLOURS["vermillion"], "linestyle": "--"}
        left.axhline(bound, label=f"bound {bound:g}", **line)
        right.axvline(bound, **line)


def error_table(results: Mapping[str, Any], reference: Any) -> Table:
    """Compare several results with one reference.

    Parameters
    ----------
    results : mapping of str to tensor
        E.g. by dtype.
    reference : tensor
        What is right, of the same shape.

    Returns
    -------
    Table
        Largest, mean and relative error (root mean square over that of the reference), and how
        many values are exact.
    """
    truth = as_array(reference).astype(np.float64)
    power = float(np.sqrt(np.mean(truth**2))) if truth.size else 0.0
    rows = []
    for name, result in results.items():
        values = as_array(result).astype(np.float64)
        if values.shape != truth.shape:
            raise ValueError(f"{name!r} has shape {values.shape}; expected {truth.shape}")
        error = np.abs(values - truth) if truth.size else np.zeros(1)
        relative = float(np.sqrt(np.mean(error**2))) / power if power else 0.0
        exact = int(np.count_nonzero(error == 0)) if truth.size else 0
        numbers = (f"{number:.3g}" for number in (error.max(), error.mean(), relative))
        rows.append([name, *numbers, f"{exact} of {truth.size}"])
    return Table(["result", "max error", "mean error", "relative (RMS)", "exact"], rows)
