"""What kernels offer to do for operators, and which of it the loaded overlay makes possible."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from pynq_torch import overlay as overlays

__all__ = [
    "Declined",
    "Offer",
    "add_offer",
    "fill",
    "fill_with",
    "note_serving",
    "offer_of",
    "possible",
    "serving",
]


class Declined:
    """An offer's answer: the PL cannot do this call exactly.

    Parameters
    ----------
    reason : str or callable
        A clause for people: why the call cannot run on the PL, and what would help. A callable
        returns it, in the thread that asks: for reasons that depend on more than the call.
    missing : bool
        Whether it is just that the loaded overlay has no such kernel.
    """

    __slots__ = ("_reason", "missing")

    def __init__(self, reason: str | Callable[[], str], *, missing: bool = False) -> None:
        self._reason = reason
        self.missing = missing

    @property
    def reason(self) -> str:
        """Why the call cannot run on the PL; asked for only while calls are watched."""
        return self._reason if isinstance(self._reason, str) else self._reason()


Offer = Callable[..., Any]
#: Overload -> offers in the order in which they are asked, each with the kernels one of which it
#: needs; with none, it is asked always.
_offers: dict[str, tuple[tuple[int, Offer, frozenset[str]], ...]] = {}
#: Kernels that serve operators without an offer.
_besides: set[str] = set()
#: Of `_overlay`: overload -> what to ask, for those that its kernels could serve.
_possible: dict[str, Offer] = {}
_overlay: Any = overlays  # nothing that can be loaded, so that the first call looks


def add_offer(name: str, function: Offer, kernels: Collection[str] = (), priority: int = 0) -> None:
    """Serve an overload with a kernel.

    Parameters
    ----------
    name : str
        E.g. ``"aten::mm"``.
    function : callable
        With the operator's arguments; returns the result, or a `Declined` whose reason is shown
        where no other kernel serves the call either.
    kernels : collection of str
        It is asked only while the loaded overlay has one of these; with none given, always.
    priority : int
        The greater is asked first; equal ones are asked in the order in which they were added.
    """
    global _overlay
    entries = (*_offers.get(name, ()), (priority, function, frozenset(kernels)))
    _offers[name] = tuple(sorted(entries, key=lambda entry: -entry[0]))
    _overlay = overlays


def offer_of(name: str) -> Offer | None:
    """Return what to ask for an overload, whatever is loaded: it says why the PL does not do it."""
    return _joined([function for _, function, _ in _offers.get(name, ())])


def possible(name: str) -> Offer | None:
    """Return what to ask for an overload with the overlay that is loaded, ``None`` for nothing.

    Most operators of a program have no kernel in the overlay: those cost one look into a table.
    """
    if overlays.latest is not _overlay:
        _look()
    return _possible.get(name)


_fillers: list[Callable[[], None]] = []


def fill_with(filler: Callable[[], None]) -> None:
    """Have `filler` add its offers when they are first asked for."""
    _fillers.append(filler)


def fill() -> None:
    """Add all offers that have not been added yet."""
    while _fillers:
        _fillers.pop()()


def note_serving(*kernels: str) -> None:
    """Count kernels that serve operators otherwise than by an offer, such as sparse ones."""
    _besides.update(kernels)


def serving() -> dict[str, str]:
    """Return the compute units of the loaded overlay that an offer needs: name -> kernel."""
    fill()
    loaded = overlays.current_overlay()
    if loaded is None or getattr(loaded.device, "closed", False):
        return {}
    wanted = {kernel for entries in _offers.values() for *_, needs in entries for kernel in needs}
    wanted |= _besides
    units = {driver.cu: driver.kernel_name for driver in loaded.kernels.values()}
    return {cu: kernel for cu, kernel in units.items() if kernel in wanted}


def _look() -> None:
    global _overlay, _possible
    loaded, kernels = overlays.current_overlay(), set()
    # The last overlay of a board that was closed still is the latest; it has no units any more.
    if loaded is not None and not getattr(loaded.device, "closed", False):
        kernels = {driver.kernel_name for driver in loaded.kernels.values()}
    found = {}
    for name, entries in _offers.items():
        asked = _joined(
            [function for _, function, needs in entries if not needs or needs & kernels]
        )
        if asked is not None:
            found[name] = asked
    _possible, _overlay = found, loaded


def _joined(functions: list[Offer]) -> Offer | None:
    """Return an offer that asks one after the other."""
    if len(functions) < 2:
        return functions[0] if functions else None

    def ask(*args: Any, **kwargs: Any) -> Any:
        declined: Declined | None = None
        for function in functions:
            result = function(*args, **kwargs)
            if not isinstance(result, Declined):
                return result
            # The reason of the one that could have been meant: a missing kernel says least.
            if declined is None or declined.missing:
                declined = result
        return declined

    return ask
