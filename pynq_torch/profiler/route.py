"""The route: decides call by call what goes to the PL.

A route is a chart (`torch.pynq.profiler.chart`) whose ``offload`` flags a person has changed: a
list of entries ``{"signature": ..., "offload": true or false}``. It acts from
`set_route_from_json` to `clear`, whether or not anything is profiled.

- `routed` sets one for a block of code.
- It speaks about the operators that occur in it. Calls of all others go where they would anyway.
- A call of an operator that occurs in it must be the next entry: of that operator and, where the
  entry has ``inputs``, with tensors of these dtypes and shapes. Another call is a `RouteError` that
  names both; it is not done, and the route stays where it was. Calls of all threads count in one
  order.
- After the last entry the route starts over, so that the chart of one pass through a network serves
  every later pass, and ``[{"signature": "aten::mm", "offload": false}]`` sends every ``mm`` to the
  CPU. ``at_end="stop"`` lets later calls go where they would anyway; ``at_end="error"`` refuses
  them.
- An entry that asks for the PL where no kernel can do the call is a `NoKernelError` that says why;
  nothing is done on the CPU instead. One that asks for the CPU is done there also with the fallback
  switched off.
- The layers of `pynq_torch.nn` are ``pynq_torch::linear`` and ``pynq_torch::conv2d``. On the CPU
  they compute the same int8 arithmetic, to the same bits.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pynq_torch.errors import RouteError
from pynq_torch.torch_device.record import switches

from .signatures import signature

__all__ = [
    "Position",
    "RouteError",
    "clear",
    "is_set",
    "position",
    "routed",
    "set_route_from_json",
]

_KEYS = frozenset({"signature", "offload", "inputs", "reason"})
AT_END = ("repeat", "stop", "error")


class Position(NamedTuple):
    """Where a run is on its route.

    Parameters
    ----------
    entry : int
        Index of the entry that is next.
    entries : int
        How many there are.
    rounds : int
        How often the last one has been passed.
    """

    entry: int
    entries: int
    rounds: int


class Entry(NamedTuple):
    """One call as the route has it; `inputs` is ``None`` where any are right."""

    text: str
    overloads: frozenset[str]
    offload: bool
    inputs: tuple[str, ...] | None

    def __str__(self) -> str:
        return self.text if self.inputs is None else f"{self.text}({', '.join(self.inputs)})"

    def fits(self, name: str, inputs: tuple[str, ...]) -> bool:
        """Whether a call is this one."""
        return name in self.overloads and self.inputs in (None, inputs)


class Route:
    """Entries and the place on them; a call of the object decides about a call of an operator."""

    def __init__(self, entries: Sequence[Entry], at_end: str) -> None:
        self._entries = tuple(entries)
        self._at_end = at_end
        self._about = frozenset().union(*(entry.overloads for entry in entries))
        self._lock = threading.Lock()
        self._next = self._rounds = 0

    @property
    def position(self) -> Position:
        """Where the run is."""
        with self._lock:
            return Position(self._next, len(self._entries), self._rounds)

    def __call__(self, name: str, inputs: tuple[str, ...]) -> bool | None:
        """Return whether a call goes to the PL; ``None`` where the route says nothing."""
        if name not in self._about:
            return None
        with self._lock:
            if self._rounds and self._at_end == "stop":
                return None
            if self._rounds and self._at_end == "error":
                raise RouteError(
                    f"the run calls {name}({', '.join(inputs)}) after the last of the route's "
                    f"{len(self._entries)} entries. Add an entry for it, or set the route with "
                    "at_end='repeat' or at_end='stop'."
                )
            entry = self._entries[self._next]
            if not entry.fits(name, inputs):
                raise RouteError(
                    f"the run departs from the route at entry {self._next} of "
                    f"{len(self._entries)} (counted from 0): the route has {entry}, the run calls "
                    f"{name}({', '.join(inputs)}). Chart the run again (profiler.chart), or call "
                    "profiler.route.clear()."
                )
            self._next += 1
            if self._next == len(self._entries):
                self._next, self._rounds = 0, self._rounds + 1
            return entry.offload


def set_route_from_json(
    route: str | os.PathLike[str] | Iterable[Mapping[str, Any]], *, at_end: str = "repeat"
) -> None:
    """Set the route, in place of an earlier one; it begins with its first entry.

    Parameters
    ----------
    route : str, path or list
        JSON text (it starts with ``[``), a file with it, or the list itself, as `chart.entries` and
        ``json.loads`` return it. Each entry has ``signature`` (an operator's name with or without
        overload, or its schema) and ``offload`` (bool); it may have ``inputs`` (``"int8[64x64]"``,
        the tensors in order) and ``reason`` (not read).
    at_end : {"repeat", "stop", "error"}
        What follows the last entry: it starts over; calls go where they would anyway; calls of the
        route's operators are errors.

    Raises
    ------
    ValueError
        What is no route; the message names the entry. The earlier route stays.
    FileNotFoundError
        There is no such file.
    """
    if at_end not in AT_END:
        raise ValueError(f"at_end is {at_end!r}; expected one of {', '.join(AT_END)}")
    entries = [_entry(index, item) for index, item in enumerate(_read(route))]
    if not entries:
        raise ValueError("the route has no entries; to be without one, call route.clear()")
    switches.route = Route(entries, at_end)
    switches.settle()


@contextmanager
def routed(
    route: str | os.PathLike[str] | Iterable[Mapping[str, Any]], *, at_end: str = "repeat"
) -> Iterator[None]:
    """Set a route for a ``with`` block; after it the earlier one continues, or none.

    Parameters
    ----------
    route, at_end
        See `set_route_from_json`.
    """
    before = switches.route
    set_route_from_json(route, at_end=at_end)
    try:
        yield
    finally:
        switches.route = before
        switches.settle()


def clear() -> None:
    """Be without a route: every call goes where it would anyway."""
    switches.route = None
    switches.settle()


def is_set() -> bool:
    """Whether there is a route."""
    return switches.route is not None


def position() -> Position | None:
    """Return where the run is on its route: the next entry, how many, how often it was passed."""
    return switches.route.position if isinstance(switches.route, Route) else None


def _read(route: str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> list[Any]:
    if isinstance(route, (str, os.PathLike)):
        is_text = isinstance(route, str) and route.lstrip()[:1] in ("[", "{")
        text = str(route) if is_text else Path(route).read_text(encoding="utf-8")
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"the route is not JSON: {error}") from error
    else:
        data = list(route) if not isinstance(route, Mapping) else route
    if not isinstance(data, list):
        raise ValueError(f"the route is {type(data).__name__}; expected a list of entries")
    return data


def _entry(index: int, item: Any) -> Entry:
    what = f"entry {index} of the route (counted from 0)"
    if not isinstance(item, Mapping):
        raise ValueError(f"{what} is {item!r}; expected an object with signature and offload")
    if unknown := sorted(set(item) - _KEYS):
        raise ValueError(f"{what} has {unknown[0]!r}; expected {', '.join(sorted(_KEYS))}")
    if not isinstance(item.get("offload"), bool):
        raise ValueError(f"{what}: offload is {item.get('offload')!r}; expected true or false")
    inputs = item.get("inputs")
    is_list = isinstance(inputs, list) and all(isinstance(i, str) for i in inputs)
    if inputs is not None and not is_list:
        raise ValueError(f"{what}: inputs is {inputs!r}; expected a list such as ['int8[64x64]']")
    try:
        found = signature(item.get("signature", ""))
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
    return Entry(*found, item["offload"], None if inputs is None else tuple(inputs))
