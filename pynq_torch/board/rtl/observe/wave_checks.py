"""What `Waves` is asked for, checked before anything is built or recorded."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pynq_torch.errors import WaveError

from .wave_box import NO_LIMIT

FORMATS = ("fst", "vcd")


def check_format(path: Path) -> str:
    """Return the format of a file of waves by its name."""
    found = path.suffix[1:].lower()
    if found not in FORMATS:
        raise WaveError(f"'{path}': expected a file that ends in .fst or .vcd")
    return found


def check_edges(path: Path, start: str | None, stop: str | None, before: int, each: bool) -> None:
    """Raise where an edge is no signal's name, or an option needs an edge that is not given."""
    for name, edge in (("start", start), ("stop", stop)):
        if edge is not None and not isinstance(edge, str):
            raise WaveError(
                f"{name}={edge!r}: expected the name of a signal, e.g. 'ap_start'; cycles are "
                "chosen with cycles=(first, one after the last)"
            )
    if before and start is None:
        raise WaveError(f"before={before} needs start=: cycles before which edge?")
    if each and (start is None or "{n}" not in path.name):
        raise WaveError(
            f"each=True needs start= and a path with '{{n}}' in its name; found start={start!r} "
            f"and '{path.name}'"
        )


def check_numbers(before: Any, after: Any, limit_bytes: Any) -> tuple[int, int, int]:
    """Return numbers of cycles and of bytes; raise where one makes no sense."""
    before, after = _whole("before", before), _whole("after", after)
    limit = NO_LIMIT if limit_bytes is None else _whole("limit_bytes", limit_bytes)
    if before < 0 or after < 0:
        raise WaveError(f"before={before}, after={after}: expected numbers of cycles from 0 on")
    if limit <= 0:
        raise WaveError(f"limit_bytes={limit_bytes}: expected a number from 1 on, or None")
    return before, after, limit


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise WaveError(f"{name}={value!r}: expected a whole number") from None


def check_window(cycles: Any) -> tuple[int, int]:
    """Return the first cycle and the one after the last."""
    try:
        first, end = map(operator.index, cycles)
    except (TypeError, ValueError):
        first, end = -1, -1
    if not 0 <= first < end:
        raise WaveError(
            f"cycles={cycles}: expected the first and the one after the last, whole numbers from 0 "
            "on, e.g. (0, 1000)"
        )
    return first, end


def check_units(board: Any, units: str | Sequence[str] | None) -> list[str]:
    """Return the units of a board to record: all, or those that are named."""
    pl = getattr(board, "pl", None)
    if pl is None:
        raise WaveError(
            f"board '{board.board_name}' simulates no RTL now, so there are no waves: choose board "
            "'rtl' and load an overlay whose kernels have RTL"
        )
    known = list(pl.units)
    chosen = known if units is None else [units] if isinstance(units, str) else list(units)
    for unit in chosen:
        if unit not in known:
            raise WaveError(f"no unit {unit!r} with RTL; there are {', '.join(known)}")
    if not chosen:
        raise WaveError(f"units=[]: expected some of {', '.join(known)}")
    return chosen


def check_writable(path: Path) -> None:
    """Raise where a file cannot be made, before a model is built for it."""
    if not path.parent.is_dir():
        raise WaveError(f"'{path.name}': its folder '{path.parent}' does not exist; make it first")
    target = path if path.exists() else path.parent
    if path.is_dir() or not os.access(target, os.W_OK):
        raise WaveError(f"'{path.name}' cannot be written in '{path.parent}'; choose another place")
