"""Watching board "rtl" from outside a program: what the environment asks for.

``python -m pynq_torch run --trace --wave FILE`` and the Jupyter kernel "PYNQ-Z2 (rtl, waves)" only
set variables; the board calls `watch_from_environment` when it is chosen.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pynq_torch.errors import PynqTorchError, WaveError
from pynq_torch.paths import shown

if TYPE_CHECKING:
    from .waves import Waves

__all__ = [
    "TRACE",
    "TRACE_CSV",
    "WAVE",
    "WAVES",
    "WAVE_FAILURES",
    "missing",
    "watch_from_environment",
]

#: A file for the table of transactions, ``-`` for standard output.
TRACE = "PYNQ_TORCH_TRACE"
#: A file for all transactions as comma-separated values.
TRACE_CSV = "PYNQ_TORCH_TRACE_CSV"
#: A file for the waves of the whole program.
WAVE = "PYNQ_TORCH_WAVE"
#: A file that gets a line for each recording that failed, for the code that sets the exit status.
WAVE_FAILURES = "PYNQ_TORCH_WAVE_FAILURES"
#: A folder for a file of waves of every start.
WAVES = "PYNQ_TORCH_WAVES"
#: Cycles before ap_start and after ap_done that a file of one start has: the write of AP_START and
#: the read of AP_DONE among them.
_BEFORE, _AFTER = 16, 8


def watch_from_environment(board: Any, environment: Mapping[str, str] | None = None) -> None:
    """Have a board record what the environment asks for, for every overlay that is loaded on it.

    Parameters
    ----------
    board : VirtualBoard
        Board ``"rtl"``, before its first overlay.
    environment : mapping, optional
        Default: that of the process.
    """
    found = os.environ if environment is None else environment
    if nothing := missing(found):
        _follow(board, nothing)
    if found.get(TRACE) or found.get(TRACE_CSV):
        trace = _TraceWatch(board, found.get(TRACE, ""), found.get(TRACE_CSV, ""))
        board.on_unload(trace.write)
    if wave := found.get(WAVE):
        _Watch(board, Path(wave))
    if folder := found.get(WAVES):
        _StartsWatch(board, Path(folder).absolute())  # the program may change its folder


def missing(environment: Mapping[str, str]) -> str:
    """Return the sentence for a program in which no unit was simulated, "" if nothing was asked."""
    files = [environment[name] for name in (WAVE, TRACE_CSV) if environment.get(name)]
    told = [f"{shown(Path(name))} was not written" for name in files]
    if environment.get(WAVES):
        told.append(f"{shown(Path(environment[WAVES]))} has no new waves")
    if environment.get(TRACE):
        told.append("there is nothing to trace")
    if not told:
        return ""
    return (
        f"no unit ran in RTL: {', '.join(told)}. Load an overlay with a kernel that has RTL (a "
        "folder rtl/ beside its C++, or the export of Vitis HLS)"
    )


#: What the end of this process says, by its id; empty once a unit ran in RTL.
_nothing: dict[int, str] = {}


def _follow(board: Any, nothing: str) -> None:
    """Say at the end of the program that nothing came of what was asked, where it is so."""
    pid = os.getpid()
    if not _nothing:  # a program may choose several boards
        _nothing[pid] = nothing
        atexit.register(_tell)

    def loaded() -> None:
        if board.pl is not None:
            _nothing[pid] = ""

    board.on_load(loaded)


def _tell() -> None:
    if nothing := _nothing.get(os.getpid()):
        _say(nothing)


def numbered(path: Path, number: int) -> Path:
    """Return the path for the first overlay, or with a number in it for one after it."""
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")


class _TraceWatch:
    """Writes the transactions of each overlay when it goes."""

    def __init__(self, board: Any, text: str, csv: str) -> None:
        self._board, self._text, self._csv = board, text, csv
        self._count = 0

    def write(self) -> None:
        from .bus_trace import Trace

        if self._board.pl is None:
            return
        self._count += 1
        trace = Trace.of(self._board)
        name = Path(self._board.bitfile_name).name
        try:
            if self._text == "-":
                print(f"{name}:\n{trace}", flush=True)
            elif self._text:
                with open(self._text, "a", encoding="utf-8") as stream:
                    stream.write(f"{name}:\n{trace}\n")
            if self._csv:
                trace.csv(numbered(Path(self._csv), self._count))
        except OSError as error:
            _say(f"the trace of {name} cannot be written: {error.strerror}: '{error.filename}'")


class _Watch:
    """Records waves of the whole program: from the load of an overlay until it goes."""

    def __init__(self, board: Any, path: Path) -> None:
        self._board, self._path = board, path
        self._open: list[Waves] = []
        self._count = 0
        board.on_load(self._loaded)
        board.on_unload(self._unloading)

    def _loaded(self) -> None:
        if self._board.pl is None:
            return
        self._count += 1
        try:
            self.begin(self._count)
        except PynqTorchError as error:
            # The program did not ask for waves and must not end because of them.
            _failed(str(error))

    def _unloading(self) -> None:
        waves, self._open = self._open, []
        for recording in waves:
            try:
                recording.close()
            except PynqTorchError as error:
                _failed(str(error))
            self.ended(recording)

    def record(self, path: Path, **options: Any) -> None:
        from .waves import Waves

        waves = Waves(self._board, path, **options)
        # The program does not know of it, and may record waves of its own.
        waves.gives_way = lambda: _say(
            f"the waves of {', '.join(waves.units)} in {path.name} end here: the program records "
            "its own"
        )
        self._open.append(waves.__enter__())

    def begin(self, number: int) -> None:
        self.record(numbered(self._path, number))

    def ended(self, recording: Waves) -> None:
        """Say what was recorded."""
        for path in recording.files:
            _say(f"waves: {shown(path)} ({path.stat().st_size:,} bytes)")


class _StartsWatch(_Watch):
    """Records waves of every start, a file each, into a folder."""

    def begin(self, number: int) -> None:
        from .exchange import load_waves

        pl = self._board.pl
        self._path.mkdir(parents=True, exist_ok=True)
        stem = Path(self._board.bitfile_name).stem
        stem = stem if number == 1 else f"{stem}-{number}"
        load_waves(pl, dict.fromkeys(pl.units, "fst"), _BEFORE)
        edges = {"start": "ap_start", "stop": "ap_done", "before": _BEFORE, "after": _AFTER}
        for unit in pl.units:
            path = self._path / f"{stem}.{unit}.{{n}}.fst"
            try:
                self.record(path, units=unit, each=True, **edges)
            except WaveError:  # a unit without block control runs all the time
                self.record(path.with_name(f"{stem}.{unit}.fst"), units=unit)
        print(f"waves of every start: {shown(self._path)}/{stem}.*.fst")

    def ended(self, recording: Waves) -> None:
        """Say nothing: the folder has been named."""


def _failed(text: str) -> None:
    """Say why waves that were asked for are not there, or not whole."""
    _say(text)
    if file := os.environ.get(WAVE_FAILURES):
        with open(file, "a", encoding="utf-8") as stream:
            stream.write(f"{text}\n")


def _say(text: str) -> None:
    print(f"pynq_torch: {text}", file=sys.stderr, flush=True)
