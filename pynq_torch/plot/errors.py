"""Charts and tables of errors: how far results are from their reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pynq_torch.tables import Table

from .charts import COLOURS, ORDER, Chart, as_array, axes

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
    import numpy as np

    found, truth = _pair(result, reference)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.spacing(np.abs(truth).astype(np.float32)).astype(np.float64)
        apart = np.abs(found - truth) / gap
    same = (found == truth) | (np.isnan(found) & np.isnan(truth))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _pair(result: Any, reference: Any) -> tuple[Any, Any]:
    import numpy as np

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
        Of the chart.
    where : str
        Where the results come from, e.g. ``timing.where_measured()``; printed below.

    Returns
    -------
    Chart
        `table` has a row for each result: largest, mean and median error, how many are exact, and
        where the largest is.
    """
    import numpy as np

    if not results:
        raise ValueError("there is nothing to draw: expected at least one result")
    if unit not in ("ulp", "absolute"):
        raise ValueError(f"unit is {unit!r}; expected 'ulp' or 'absolute'")
    truth = _pair(reference, reference)[1]
    at = truth if x is None else _pair(x, reference)[0]
    errors = {name: _errors(found, reference, unit) for name, found in results.items()}
    left, right = axes(columns=2)
    finite = [e[np.isfinite(e)] for e in errors.values()]
    # Where every value is exact there is still an axis to draw.
    top = max([float(e.max()) for e in finite if e.size] + [bound or 0.0, 1e-30])
    edges = np.linspace(0.0, top, _BINS + 1)
    for index, (name, values) in enumerate(errors.items()):
        colour = COLOURS[ORDER[index % len(ORDER)]]
        step = max(1, -(-values.size // _MOST_POINTS))
        left.plot(at[::step], values[::step], "os^Dv"[index % 5], color=colour, label=name,
                  markersize=4, alpha=0.7)  # fmt: skip
        counts, _ = np.histogram(values[np.isfinite(values)], edges)
        hatch = ("", "//", "..")[index % 3]
        right.stairs(counts, edges, color=colour, label=name, linewidth=2, hatch=hatch)
    if bound is not None:
        left.axhline(bound, color=COLOURS["vermillion"], linestyle="--", label=f"bound {bound:g}")
        right.axvline(bound, color=COLOURS["vermillion"], linestyle="--")
    name = "ulp" if unit == "ulp" else "absolute"
    left.set_ylabel(f"error / {name}" if unit == "ulp" else "absolute error")
    left.set_xlabel("\n".join(filter(None, [xlabel or ("reference" if x is None else "x"), where])))
    right.set_xlabel(f"error / {name}" if unit == "ulp" else "absolute error")
    right.set_ylabel("values")
    right.set_yscale("symlog", linthresh=1)
    left.set_title(title)
    left.legend(fontsize=11)
    header = ["result", "unit", "max", "mean", "median", "exact", "worst at", "found", "expected"]
    rows = []
    for result, values in errors.items():
        found = _pair(results[result], reference)[0]
        worst = int(np.argmax(values)) if values.size else 0
        where_worst = [f"{at[worst]:.7g}", f"{found[worst]:.9g}", f"{truth[worst]:.9g}"]
        exact = f"{int((values == 0).sum())} of {values.size}"
        summary = [f"{f(values):.3g}" for f in (np.max, np.mean, np.median)]
        rows.append([result, unit, *summary, exact, *where_worst])
    return Chart(left, Table(header, rows))


def _errors(found: Any, reference: Any, unit: str) -> Any:
    import numpy as np

    if unit == "ulp":
        return ulps(found, reference)
    values, truth = _pair(found, reference)
    with np.errstate(invalid="ignore"):
        apart = np.abs(values - truth)
    same = (values == truth) | (np.isnan(values) & np.isnan(truth))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def error_table(results: Mapping[str, Any], reference: Any) -> Table:
    """Compare several results with one reference.

    Parameters
    ----------
    results : mapping of str to tensor
        E.g. by dtype.
    reference : tensor
        Of the same shape.

    Returns
    -------
    Table
        Largest, mean and relative error (root mean square over that of the reference), and how
        many values are exact.
    """
    import numpy as np

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
        rows.append(
            [
                name,
                f"{error.max():.3g}",
                f"{error.mean():.3g}",
                f"{relative:.3g}",
                f"{exact} of {truth.size}",
            ]
        )
    return Table(["result", "max error", "mean error", "relative (RMS)", "exact"], rows)
