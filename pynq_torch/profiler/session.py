"""Regions of interest: while one is open, the record is added up."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from copy import deepcopy

from pynq_torch import events
from pynq_torch.timing import where_measured
from pynq_torch.torch_device import memory

from . import chart, tables
from .tally import Row, Unit

__all__ = ["KEYS", "Profile", "in_roi"]

#: What `Profile.stats` can be asked for.
KEYS = {
    "ExecTime": tables.text,
    "ExecTime-Latex": tables.latex,
    "ExecTime-Raw": tables.raw,
    "Unimpl": tables.unimplemented,
}
#: The share of the whole time below which ``trimming=True`` folds operators.
TRIMMED_SHARE = 0.01

_lock = threading.Lock()
_open = 0


def in_roi() -> bool:
    """Whether a region of interest is open anywhere in the program."""
    return _open > 0


class Profile:
    """Times of the operators on device "pynq", added up over its regions of interest.

    A ``with`` block is a region; several blocks with the same object add up. Calls of all threads
    count. Objects are independent of each other, also where their regions overlap.

    Attributes
    ----------
    rois : int
        Regions so far, an open one included.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._depth = 0
        self._since = 0.0
        self.clear()

    def clear(self) -> None:
        """Forget all times; an open region stays open, and counts from here."""
        with self._guard:
            self._rows: dict[str, Row] = {}
            self._places: dict[str, None] = {}
            self._device: object = None
            self._roi_s = 0.0
            self._since = time.perf_counter()
            self.rois = int(self._depth > 0)

    # ---- the region ----------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether a region of this profile is open."""
        return self._depth > 0

    def start(self) -> None:
        """Open a region; within an open one, only the last `stop` closes it."""
        global _open
        with _lock:
            self._depth += 1
            if self._depth > 1:
                return
            _open += 1
            self.rois += 1
            self._since = time.perf_counter()
            events.operators.subscribe(self._take)
            events.operators.subscribe(chart.note)

    def stop(self) -> None:
        """Close the region; nothing happens where none is open."""
        global _open
        with _lock:
            if not self._depth:
                return
            self._depth -= 1
            if self._depth:
                return
            _open -= 1
            events.operators.unsubscribe(self._take)
            if not _open:
                events.operators.unsubscribe(chart.note)
        with self._guard:
            self._roi_s += time.perf_counter() - self._since

    def __enter__(self) -> Profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _take(self, call: events.OperatorCall) -> None:
        device = memory.used_device()
        with self._guard:
            if device is not self._device:
                self._device = device
                self._places[where_measured("cpu", device)] = None
            row = self._rows.get(call.name)
            if row is None:
                row = self._rows[call.name] = Row(call.name)
            row.add(call)

    # ---- the result ----------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Seconds in regions, up to now."""
        with self._guard:
            running = time.perf_counter() - self._since if self._depth else 0.0
            return self._roi_s + running

    def rows(self) -> list[Row]:
        """Return a copy of the sums, one row an operator, in order of their first call."""
        with self._guard:
            return deepcopy(list(self._rows.values()))

    def units(self) -> dict[str, Unit]:
        """Return the compute units that were started by operators, with all they did."""
        whole = Row("all")
        for row in self.rows():
            whole.merge(row)
        return dict(sorted(whole.units.items()))

    def stats(
        self, key: str | Sequence[str] = ("ExecTime", "Unimpl"), trimming: bool | float = False
    ) -> str:
        """Return what was found as text.

        Parameters
        ----------
        key : str or sequence of str
            One or more of:

            - ``"ExecTime"``: a table, operator by operator: calls, how many of them the PL did, and
              the time, divided into the host's, transfers and the PL; each column says where its
              times come from
            - ``"ExecTime-Latex"``: the same as a LaTeX ``tabular``, in ms
            - ``"ExecTime-Raw"``: the same as JSON, in seconds, with reasons and compute units; see
              Notes
            - ``"Unimpl"``: what the CPU did, and why no kernel
        trimming : bool or float
            A share of the time of all operators, e.g. 0.05; ``True`` stands for 0.01. Operators
            with less are folded into one row, ``others``, in every ``ExecTime`` form. ``Unimpl``
            lists them all.

        Returns
        -------
        str
            The parts in the order asked for, with an empty line in between; one part alone as it
            is, so that ``json.loads(stats("ExecTime-Raw"))`` works.

        Raises
        ------
        ValueError
            An unknown key, or a share outside of 0 to 1.

        Notes
        -----
        Host: in the operator, with nothing of the following. Transfer: copies between devices,
        moving operands into place, upkeep of the CPU's cache. PL: at least one compute unit was
        running. Where a transfer runs beside a compute unit both have that time. Operators that
        torch composes of others (``matmul``) appear as those; views and memory requests are not
        counted.
        """
        keys = (key,) if isinstance(key, str) else tuple(key)
        unknown = [k for k in keys if k not in KEYS]
        if unknown or not keys:
            given = repr(unknown[0]) if unknown else "none"
            raise ValueError(f"found key {given}; expected one or more of {', '.join(KEYS)}")
        share = TRIMMED_SHARE if trimming is True else float(trimming)
        if not 0 <= share < 1:
            raise ValueError(f"trimming is {trimming}; expected a bool or a share from 0 to 1")
        found = tables.Found(
            self.rows(), self.units(), self.seconds, self.rois, tuple(self._places), share
        )
        return "\n\n".join(KEYS[k](found) for k in keys)

    def __repr__(self) -> str:
        state = "open" if self.active else "closed"
        return f"<Profile: {self.rois} ROIs, {state}, {len(self._rows)} operators>"
