"""``torch.pynq.profiler``: what ran where, for how long, and why; and how to steer it.

::

    torch.pynq.profiler.enable()             # a region of interest begins
    y = model(x)
    torch.pynq.profiler.disable()
    print(torch.pynq.profiler.stats())

    with torch.pynq.profiler.profile() as p:  # the same with a result of its own
        y = model(x)
    print(p.stats(key=["ExecTime"], trimming=0.05))

Several regions add up until `clear`. Submodules: `chart` (the calls of chosen operators as JSON),
`route` (decides by that JSON what goes to the PL), `fallback` (off: an operator without a kernel is
an error), `debug` (one line a decision). ``torch.profiler`` sees compute units without any of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch  # noqa: F401 (before our own modules: it loads the device, and these need it)

from . import chart, debug, fallback, route
from .session import Profile, in_roi

__all__ = [
    "Profile",
    "chart",
    "clear",
    "debug",
    "disable",
    "enable",
    "fallback",
    "is_in_ROI",
    "profile",
    "route",
    "stats",
]

_profile = Profile()


def enable() -> None:
    """Begin a region of interest: calls of operators are timed and charted.

    Within one that `enable` began nothing happens. Regions add up until `clear`.
    """
    if not _profile.active:
        _profile.start()


def disable() -> None:
    """End the region that `enable` began; without one nothing happens."""
    _profile.stop()


def is_in_ROI() -> bool:
    """Whether a region of interest is open: by `enable`, or by a block of `profile`."""
    return in_roi()


def clear() -> None:
    """Forget all times between `enable` and `disable`, and the chart; beacons stay."""
    _profile.clear()
    chart.clear()


def stats(key: str | Sequence[str] = ("ExecTime", "Unimpl"), trimming: bool | float = False) -> str:
    """Return what was found between `enable` and `disable`; see `Profile.stats`.

    Parameters
    ----------
    key : str or sequence of str
        ``"ExecTime"``, ``"ExecTime-Latex"``, ``"ExecTime-Raw"`` (JSON), ``"Unimpl"``.
    trimming : bool or float
        The share of the time below which operators are folded into ``others``; ``True``: 0.01.

    Returns
    -------
    str
        The parts in the order asked for.
    """
    return _profile.stats(key, trimming)


def profile() -> Profile:
    """Return a new profile; its ``with`` blocks are regions of interest.

    Examples
    --------
    >>> with torch.pynq.profiler.profile() as p:  # doctest: +SKIP
    ...     y = model(x)
    >>> print(p.stats())  # doctest: +SKIP
    """
    return Profile()
