"""Verdicts: one call compares with the reference, prints the evidence, or raises."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from pynq_torch.errors import VerificationError
from pynq_torch.plot.charts import as_array
from pynq_torch.tables import size_text

if TYPE_CHECKING:
    from .layerwise import layers

Array = np.ndarray[Any, Any]

__all__ = ["Shown", "Verdict", "close", "equal", "layers", "numbers", "shows", "within"]


def __getattr__(name: str) -> Any:
    # Not imported here: programs without torch use the rest.
    if name == "layers":
        from .layerwise import layers

        return layers
    if name == "pointwise":
        return import_module(f"{__name__}.pointwise")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True)
class Verdict:
    """What a comparison found; it exists only if the comparison passed.

    Parameters
    ----------
    name : str
        What was compared.
    shape : tuple of int
        Its shape.
    dtype : str
        The result's dtype.
    max_error : float
        Largest absolute difference.
    tolerance : str
        What was allowed, as text.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    max_error: float
    tolerance: str

    def __str__(self) -> str:
        error, size = _number(self.max_error), size_text(self.shape)
        text = f"{self.name}: {self.dtype}[{size}], max error {error}, tolerance {self.tolerance}"
        return f"{text}: PASS"


def equal(
    result: Any, reference: Any, name: str = "result", *, check_dtype: bool = True
) -> Verdict:
    """Check that two tensors hold exactly the same values, and print the verdict.

    Parameters
    ----------
    result, reference : torch.Tensor, numpy.ndarray or PynqBuffer
        NaN equals NaN here; -0.0 equals 0.0.
    name : str
        For the verdict.
    check_dtype : bool
        Whether another dtype is a difference.

    Returns
    -------
    Verdict
        Also printed.

    Raises
    ------
    VerificationError
        Naming the first wrong index (row-major) and both values.
    """
    found, expected = _arrays(name, result, reference)
    kinds = (_dtype(result), _dtype(reference))
    if check_dtype and kinds[0] != kinds[1]:
        raise VerificationError(f"{name}: dtype is {kinds[0]}; expected {kinds[1]}")
    wrong = ~(found == expected)
    if found.dtype.kind in "fc" and expected.dtype.kind in "fc":
        wrong &= ~(np.isnan(found) & np.isnan(expected))
    return _verdict(name, kinds[0], found, expected, wrong, "0 (exact)")


def close(
    result: Any,
    reference: Any,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    name: str = "result",
) -> Verdict:
    """Check that ``|result - reference| <= atol + rtol * |reference|``, and print the verdict.

    Parameters
    ----------
    result, reference : torch.Tensor, numpy.ndarray or PynqBuffer
        Of any numeric dtypes. A NaN is wrong unless the reference has one there too; infinities
        must be equal.
    rtol, atol : float
        Not negative.
    name : str
        For the verdict.

    Returns
    -------
    Verdict
        Also printed.

    Raises
    ------
    VerificationError
        Naming the first wrong index and both values.
    """
    if not (rtol >= 0 and atol >= 0):
        raise ValueError(f"rtol is {rtol} and atol is {atol}; expected numbers of at least 0")
    found, expected = _arrays(name, result, reference)
    right = np.isclose(*_wide(found, expected), rtol=rtol, atol=atol, equal_nan=True)
    text = f"{atol:g} + {rtol:g} * |reference|"
    return _verdict(name, _dtype(result), found, expected, ~right, text)


def within(result: Any, reference: Any, bound: Any, name: str = "result") -> Verdict:
    """Check that ``|result - reference| <= bound``, each element with its own; print the verdict.

    Parameters
    ----------
    result, reference : torch.Tensor, numpy.ndarray or PynqBuffer
        Of any real dtypes. A value that is not finite is wrong.
    bound : torch.Tensor, numpy.ndarray or float
        Of the same shape, or one for all; not negative.
    name : str
        For the verdict.

    Returns
    -------
    Verdict
        Also printed, with the largest share of a bound that an error uses.

    Raises
    ------
    VerificationError
        Naming the first wrong index and both values.
    """
    found, expected = _arrays(name, result, reference)
    limit = np.broadcast_to(as_array(bound).astype(np.float64), found.shape)
    if not bool((limit >= 0).all()):
        raise ValueError(f"{name}: a bound is negative or no number; expected at least 0")
    with np.errstate(invalid="ignore"):
        error = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    used = np.divide(error, limit, out=np.zeros_like(error), where=limit > 0)
    most = float(used.max()) if used.size else 0.0
    text = f"its bound, of which {most:.0%} is used at most"
    return _verdict(name, _dtype(result), found, expected, ~(error <= limit), text)


def numbers(value: Any, name: str, shape: tuple[int, ...] | None = ()) -> Any:
    """Return numbers as they are, for a check that computes with them before it compares.

    Parameters
    ----------
    value : object
        What was returned.
    name : str
        By what, for the message: ``"worth(0.5)"``.
    shape : tuple of int, optional
        Left out, a single number is expected; with None any shape is right.

    Raises
    ------
    VerificationError
        It is something else, None or a text for example; the message says what was found.
    """
    found = _numeric(value)
    if found is None or shape not in (None, found.shape):
        raise VerificationError(f"{name}: found {_shown(value)}; expected {_wanted(shape)}")
    return value


def _wanted(shape: tuple[int, ...] | None) -> str:
    if shape is None:
        return "numbers"
    if not shape:
        return "a number"
    return f"{shape[0]} numbers" if len(shape) == 1 else f"numbers of shape {shape}"


def _numeric(data: Any) -> Array | None:
    """Return numbers as an array, and None for everything that is none, a ragged list included."""
    try:
        array = as_array(data)
    except ValueError:
        return None
    return array if array.dtype.kind in "biufc" else None


def _shown(data: Any) -> str:
    if getattr(data, "ndim", 0):
        return f"{_dtype(data)} of shape {tuple(data.shape)}"
    text = repr(data)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _verdict(
    name: str, dtype: str, found: Array, expected: Array, wrong: Array, tolerance: str
) -> Verdict:
    error = _max_error(found, expected)
    count = int(np.count_nonzero(wrong))
    if count and not wrong.ndim:
        raise VerificationError(
            f"{name}: found {found}, expected {expected}, tolerance {tolerance}"
        )
    if count:
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        raise VerificationError(
            f"{name}: {count} of {wrong.size} values are wrong; the first is at index "
            f"{list(at)}: found {found[at]}, expected {expected[at]}. "
            f"{dtype}[{size_text(found.shape)}], "
            f"max error {_number(error)}, tolerance {tolerance}"
        )
    verdict = Verdict(name, tuple(found.shape), dtype, error, tolerance)
    print(verdict)
    return verdict


def _arrays(name: str, result: Any, reference: Any) -> tuple[Array, Array]:
    found, expected = _numeric(result), as_array(reference)
    if found is None:
        what = _wanted(expected.shape) if expected.ndim else _shown(reference)
        raise VerificationError(f"{name}: found {_shown(result)}; expected {what}")
    if found.shape != expected.shape:
        raise VerificationError(
            f"{name}: shape is {tuple(found.shape)}; expected {tuple(expected.shape)}"
        )
    return found, expected


def _dtype(data: Any) -> str:
    return str(data.dtype).removeprefix("torch.") if hasattr(data, "dtype") else type(data).__name__


def _wide(found: Array, expected: Array) -> tuple[Array, Array]:
    wide = np.complex128 if "c" in (found.dtype.kind, expected.dtype.kind) else np.float64
    return found.astype(wide), expected.astype(wide)


def _max_error(found: Array, expected: Array) -> float:
    """Return the largest absolute difference; places where both are the same NaN or inf are 0."""
    if not found.size:
        return 0.0
    if found.dtype.kind in "biu" and expected.dtype.kind in "biu":
        if max(found.itemsize, expected.itemsize) < 8:
            return float(np.max(np.abs(found.astype(np.int64) - expected.astype(np.int64))))
        pairs = zip(found.flat, expected.flat, strict=True)
        return float(max(abs(int(a) - int(b)) for a, b in pairs))
    left, right = _wide(found, expected)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    with np.errstate(invalid="ignore"):
        return float(np.max(np.where(same, 0.0, np.abs(left - right))))


def _number(value: float) -> str:
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else f"{value:.3g}"


# ---- errors that a lesson shows ------------------------------------------------------------------


class Shown:
    """An error that was expected and shown; see :func:`shows`.

    Attributes
    ----------
    error : BaseException or None
        What was raised.
    """

    def __init__(self, expected: type[BaseException], hide: str | None) -> None:
        self._expected = expected
        self._hide = hide
        self.error: Any = None

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is None:
            raise VerificationError(f"no error was raised; expected {self._expected.__name__}")
        if not isinstance(error, self._expected):
            return False
        self.error = error
        text = str(error) if self._hide is None else re.sub(self._hide, "...", str(error))
        print(f"{type(error).__name__}: {text}")
        return True


def shows(
    expected: type[BaseException],
    action: Callable[[], Any] | None = None,
    *,
    hide: str | None = None,
) -> Shown:
    """Show an error that is meant to happen, and go on; raise if there is none.

    A notebook under papermill stops at an error; this prints its text instead.

    Parameters
    ----------
    expected : type of exception
        Other exceptions pass through.
    action : callable, optional
        What raises it. Left out, use the result in a ``with`` statement.
    hide : str, optional
        A regular expression of text that differs from run to run: it is printed as ``...``.

    Returns
    -------
    Shown
        Its ``error`` is the exception.

    Raises
    ------
    VerificationError
        Nothing was raised.

    Examples
    --------
    >>> with shows(ZeroDivisionError):
    ...     1 / 0
    ZeroDivisionError: division by zero
    """
    shown = Shown(expected, hide)
    if action is not None:
        with shown:
            action()
    return shown
