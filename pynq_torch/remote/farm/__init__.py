"""A farm of boards on Dask: work spread over boards (`map`), and boards lent out (`board`)."""

from __future__ import annotations

from .jobs import BOARD, SCHEDULER, connected, map, results
from .lease import board, holders

__all__ = ["BOARD", "SCHEDULER", "board", "connected", "holders", "map", "results"]
