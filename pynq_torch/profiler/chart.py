"""The execution chart: calls of chosen operators in their order, and where each one ran.

Operators are chosen by beacons. While a region of interest is open (`torch.pynq.profiler.enable`
or ``profile()``), each call of one of them becomes an entry::

    {"signature": "aten::mm", "inputs": ["float32[8x8]", "float32[8x8]"],
     "offload": false, "reason": "..."}

``offload`` says whether the PL did it, ``reason`` why not. The chart of a run, with ``offload``
changed where wanted, is a route: see `torch.pynq.profiler.route`. The chart grows until `clear`.
"""

from __future__ import annotations

import json as _json
import threading
from typing import Any

from pynq_torch.events import OperatorCall

from .signatures import signature

__all__ = ["add_beacon", "beacons", "clear", "clear_beacon", "entries", "fancy_print", "json"]

_lock = threading.Lock()
_beacons: dict[str, frozenset[str]] = {}
_wanted: frozenset[str] = frozenset()
_entries: list[dict[str, Any]] = []


def add_beacon(signature_text: str) -> None:
    """Choose an operator; calls from now on are charted.

    Parameters
    ----------
    signature_text : str
        ``"aten::add"`` or ``"add"`` for all its overloads, ``"aten::add.Tensor"`` for one, or the
        whole schema, e.g. ``str(torch.ops.aten.add.Tensor._schema)``. Layers of `pynq_torch.nn`:
        ``"pynq_torch::linear"``, ``"pynq_torch::conv2d"``.

    Raises
    ------
    ValueError
        There is no such operator, or device "pynq" never sees it; the message says which are near.
    """
    global _wanted
    found = signature(signature_text)
    with _lock:
        _beacons[found.text] = found.overloads
        _wanted = frozenset().union(*_beacons.values())


def clear_beacon() -> None:
    """Choose no operator any more, and forget the chart."""
    global _wanted
    with _lock:
        _beacons.clear()
        _entries.clear()
        _wanted = frozenset()


def clear() -> None:
    """Forget the chart; the beacons stay."""
    with _lock:
        _entries.clear()


def beacons() -> tuple[str, ...]:
    """Return the beacons as they were given."""
    with _lock:
        return tuple(_beacons)


def note(call: OperatorCall) -> None:
    """Take a call that the record has finished into the chart."""
    if call.name not in _wanted:
        return
    entry: dict[str, Any] = {
        "signature": call.name,
        "inputs": list(call.inputs),
        "offload": call.where == "PL",
    }
    if call.reason:
        entry["reason"] = call.reason
    with _lock:
        _entries.append(entry)


def entries() -> list[dict[str, Any]]:
    """Return a copy of the chart: a list of entries, as a route takes it."""
    with _lock:
        return [{**entry, "inputs": list(entry["inputs"])} for entry in _entries]


def json() -> str:
    """Return the chart as JSON, an entry a line."""
    lines = ",\n".join(_json.dumps(entry) for entry in entries())
    return f"[\n{lines}\n]" if lines else "[]"


def fancy_print() -> str:
    """Return the chart as JSON with indentation, to read and to edit.

    Examples
    --------
    >>> torch.pynq.profiler.chart.add_beacon("aten::addmm")  # doctest: +SKIP
    >>> with torch.pynq.profiler.profile():  # doctest: +SKIP
    ...     torch.addmm(bias, a, b)
    >>> print(torch.pynq.profiler.chart.fancy_print())  # doctest: +SKIP
    """
    return _json.dumps(entries(), indent=4)
