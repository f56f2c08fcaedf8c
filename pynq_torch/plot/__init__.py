"""Charts with provenance: every number says whether it was measured, counted or modelled.

Each returns a `Chart`: the axes it drew on, and its data as a table. Colours are Okabe and Ito's,
which the colour-blind tell apart; kinds also differ in hatching and markers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pynq_torch.tables import Table

from .charts import COLOURS, Chart, ProvenanceError, save
from .durations import speedup, sweep, timeline, times
from .errors import error, error_table
from .rooflines import Point, roofline
from .schedules import schedule

__all__ = [
    "COLOURS",
    "Chart",
    "Point",
    "ProvenanceError",
    "Table",
    "error",
    "error_table",
    "roofline",
    "save",
    "schedule",
    "speedup",
    "sweep",
    "timeline",
    "times",
]

#: Charts of one topic each: ``plot.quantisation.histograms(...)``.
_MODULES = ("bus", "conv", "design", "profile", "quantisation", "resources", "training")


def __getattr__(name: str) -> Any:
    if name in _MODULES:  # imported when they are first used
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
