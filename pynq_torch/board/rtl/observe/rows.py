"""What the tables of board "rtl" have in common: a sequence that can be cut, shown and saved."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeVar, overload

from pynq_torch.errors import BoardError
from pynq_torch.tables import Table

_Row = TypeVar("_Row")
_Rows = TypeVar("_Rows", bound="Rows[Any]")


class Rows(Sequence[_Row]):
    """Rows, the clock of their cycles, and where these come from."""

    def __init__(self, rows: Iterable[_Row], clock_hz: float, about: str) -> None:
        self._rows = list(rows)
        self.clock_hz = clock_hz
        self.about = about

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> _Row: ...

    @overload
    def __getitem__(self: _Rows, index: slice) -> _Rows: ...

    def __getitem__(self, index: int | slice) -> Any:
        return self._like(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[_Row]:
        return iter(self._rows)

    def _like(self: _Rows, rows: Iterable[Any]) -> _Rows:
        other = copy.copy(self)
        other._rows = list(rows)
        return other

    def _shown(self, limit: int | None) -> Table:
        raise NotImplementedError

    def summary(self) -> str:
        """Return how much there is, and where the numbers come from."""
        raise NotImplementedError

    def csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return all as comma-separated values, and write them to a file where one is given."""
        text = self._shown(None).csv()
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def __str__(self) -> str:
        return f"{self._shown(SHOWN)}\n{self.summary()}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"{self._shown(SHOWN)._repr_html_()}<p>{escape(self.summary())}</p>"


#: Rows that are shown at once, half from the beginning and half from the end; csv() has all.
SHOWN = 40


def simulated(board: Any) -> Any:
    """Return the PL of a board that simulates RTL.

    Raises
    ------
    BoardError
        It simulates none, so there is nothing to see on its buses.
    """
    pl = getattr(board, "pl", None)
    if pl is None:
        raise BoardError(
            f"board '{board.board_name}' simulates no RTL now, so nothing is known of its buses: "
            "choose board 'rtl' and load an overlay whose kernels have RTL"
        )
    return pl


def about(board: Any) -> str:
    """Return where the cycles of a board come from."""
    return f"cycles counted in RTL, memory model {board.memory_model}"


def is_port(full: str, name: str) -> bool:
    """Tell whether a port is called so, with or without ``m_axi_`` or ``s_axi_``."""
    return name in (full, full.removeprefix("m_axi_").removeprefix("s_axi_"))
