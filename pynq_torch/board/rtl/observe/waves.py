"""Recording waves on board "rtl": ``with board.waves("run.fst"): ...``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from pynq_torch.board.rtl.layout import B_WAVES
from pynq_torch.errors import WaveError

from .exchange import check_idle, lacks_waves, load_waves
from .wave_box import NEVER, WaveBox, WaveState
from .wave_checks import (
    check_edges,
    check_format,
    check_numbers,
    check_units,
    check_window,
    check_writable,
)
from .wave_file import WaveFile

__all__ = ["LIMIT_BYTES", "Waves"]

#: The default limit of one file: a gemm writes this much in some 20,000 cycles of VCD.
LIMIT_BYTES = 256 << 20
#: How long the process that owns the clock may take to open or close a file.
_ANSWER_S = 60.0


class Waves:
    """Waves of the units of an overlay, recorded while a ``with`` block runs.

    Parameters
    ----------
    board : VirtualBoard
        Board ``"rtl"`` with an overlay.
    path : path
        A file that ends in ``.fst`` or ``.vcd``. With several units each gets one of its own:
        ``run.fst`` becomes ``run.vadd_0.fst``.
    units : str or sequence of str, optional
        Compute units. Default: all that have RTL.
    start, stop : str, optional
        A signal whose rising edge begins the recording, or ends it: a port of the unit, or
        ``"ap_start"``, ``"ap_done"``, ``"ap_idle"``, ``"ap_ready"`` and ``"perf_..."`` inside it;
        ``"!name"`` is the falling edge. Default: the whole block.
    before, after : int
        Cycles recorded before the start's edge, and after the stop's as far as the clock runs on.
    cycles : (int, int), optional
        Record nothing before the first of these cycles of the board's clock, nor from the second
        one on.
    each : bool
        A file for every time that the start's edge comes; ``{n}`` in the path is its number.
    limit_bytes : int or None
        How large a file may become.

    Raises
    ------
    WaveError
        An option makes no sense. When it is entered: a model would have to be exchanged whose unit
        is running or holds what a program has yet to read, a unit is being recorded already, or the
        file cannot be written. When it ends: the waves are not whole.

    Notes
    -----
    A model with waves is another build than one without, which takes some seconds the first time.
    Where it is not loaded yet, every unit of the overlay begins from its reset: registers are
    written again as the program wrote them (not in the trace), and whatever else a unit remembered
    is gone. Cycles, counters, the trace and runs go on. Waves that are opened before the first
    start, or asked for by PYNQ_TORCH_WAVES or ``run --wave``, find nothing to lose.

    Examples
    --------
    ::

        with board.waves("vadd.fst", start="ap_start", stop="ap_done", before=8) as waves:
            overlay.vadd(a, b)
        waves.show(["ap_start", "m_axi_gmem0_ARVALID", "ap_done"])
    """

    def __init__(
        self,
        board: Any,
        path: str | os.PathLike[str],
        units: str | Sequence[str] | None = None,
        *,
        start: str | None = None,
        stop: str | None = None,
        before: int = 0,
        after: int = 0,
        cycles: tuple[int, int] | None = None,
        each: bool = False,
        limit_bytes: int | None = LIMIT_BYTES,
    ) -> None:
        self.path = Path(path)
        self.format = check_format(self.path)
        self.before, self.after, self._limit = check_numbers(before, after, limit_bytes)
        check_edges(self.path, start, stop, self.before, each)
        self._cycles = (0, NEVER) if cycles is None else check_window(cycles)
        self.start, self.stop = start or "", stop or ""
        self._each = each
        self._board = board
        self.units = check_units(board, units)
        #: The file of each unit; with ``each``, the pattern of its files.
        self.paths = {unit: self._path_of(unit) for unit in self.units}
        self._boxes: dict[str, WaveBox] = {}
        self._pl: Any = None
        self._open = False
        self._problem: WaveError | None = None
        #: Called when another recording took its units; None: none may.
        self.gives_way: Callable[[], object] | None = None

    def _path_of(self, unit: str) -> Path:
        path = self.path.absolute()
        return path if len(self.units) == 1 else path.with_suffix(f".{unit}.{self.format}")

    # ---- recording -----------------------------------------------------------------------------

    def __enter__(self) -> Waves:
        pl = self._pl = self._board.pl
        for path in self.paths.values():
            check_writable(path)
        with pl.recording:
            self._claim(pl)
            load_waves(pl, dict.fromkeys(self.units, self.format), self.before)
            pl.recordings |= dict.fromkeys(self.units, self)
        try:
            return self._begin(pl)
        except BaseException:
            self._release()
            raise

    def _claim(self, pl: Any) -> None:
        """Raise where a recording is open that this one would end; one that gives way is ended."""
        restart = lacks_waves(pl, dict.fromkeys(self.units, self.format), self.before)
        in_the_way = {u: w for u, w in pl.recordings.items() if restart or u in self.units}
        for unit, other in in_the_way.items():
            if other.gives_way is not None:
                continue
            file = other.paths[unit].name
            if unit in self.units:
                raise WaveError(
                    f"{unit} is being recorded already, into '{file}': a unit writes one file at a "
                    "time; end that recording first"
                )
            raise WaveError(
                f"{unit} is being recorded into '{file}', and the waves of "
                f"{', '.join(self.units)} need another model, with which that would end: record "
                "one after the other, or all with one board.waves(...)"
            )
        if restart:
            check_idle(pl)
        for other in set(in_the_way.values()):
            other.close()
            other.gives_way()

    def _release(self) -> None:
        with self._pl.recording:
            for unit in self.units:
                if self._pl.recordings.get(unit) is self:
                    del self._pl.recordings[unit]

    def _begin(self, pl: Any) -> Waves:
        boxes = {unit: pl.box(pl.units.index(unit))[0] for unit in self.units}
        self._boxes = {unit: WaveBox(raw[B_WAVES]) for unit, raw in boxes.items()}
        self._open = True
        first, end = self._cycles
        for unit, box in self._boxes.items():
            box.set(
                each=int(self._each),
                before=self.before,
                after=self.after,
                from_cycle=first,
                to_cycle=end if end == NEVER else end - 1,
                limit_bytes=self._limit,
                period_ps=round(1e12 / pl.clock_hz),
            )
            box.set_text(start=self.start, stop=self.stop, path=str(self.paths[unit]))
        self._ask(WaveBox.OPEN)
        try:
            self._complain()
        except WaveError:
            self._ask(WaveBox.CLOSE)
            self._open = False
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            self.close()
        except WaveError:
            # The error of the block matters more; the files have what was recorded so far.
            if error is None:
                raise

    def close(self) -> None:
        """End the recordings and close their files.

        Raises
        ------
        WaveError
            One ended before its time: the disk was full, or the file reached its limit.
        """
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        if not self._open:
            return
        self._open = False
        try:
            self._ask(WaveBox.CLOSE)
        finally:
            self._release()
        self._complain()

    def overlay_goes(self) -> None:
        """Close the files before the process that writes them ends; complain later."""
        try:
            self.close()
        except WaveError as error:
            self._problem = error

    def _ask(self, command: int) -> None:
        pl = self._pl
        numbers = {unit: box.ask(command) for unit, box in self._boxes.items()}
        pl.wake()
        deadline = time.monotonic() + _ANSWER_S
        while waiting := [u for u in numbers if not self._boxes[u].answered(numbers[u])]:
            pl.check()
            if time.monotonic() > deadline:
                raise WaveError(
                    f"the PL did not answer for {_ANSWER_S:g} s about the waves of "
                    f"{', '.join(sorted(waiting))}; is it in an endless loop of its own?"
                )
            time.sleep(2e-4)

    def _complain(self) -> None:
        for unit, box in self._boxes.items():
            name = self.paths[unit].name
            so_far = (
                f"{name} has the cycles {box.get('first_cycle')} to {box.get('last_cycle')} in "
                f"{box.get('nbytes'):,} bytes"
            )
            if box.state is WaveState.LIMIT:
                raise WaveError(
                    f"the waves of {unit} reached their limit of {self._limit:,} bytes: {so_far}. "
                    "Record less with start= and stop= or cycles=, or raise limit_bytes="
                )
            if box.state is WaveState.FAILED:
                known = so_far if box.get("nbytes") else f"{name} has nothing"
                raise WaveError(
                    f"the waves of {unit} could not be recorded: {box.text('error')}: {known}. "
                    f"{self._remedy(box.text('error'))}"
                )

    def _remedy(self, why: str) -> str:
        if "signal" in why:
            return "Take a port of the unit, ap_start, ap_done, ap_idle, ap_ready or perf_..."
        do = "Free some space or give" if "space" in why else "Give"
        return f"{do} a file in another folder; the board goes on as before."

    # ---- what was recorded ---------------------------------------------------------------------

    @property
    def files(self) -> list[Path]:
        """The files that were written, in order of unit and number."""
        if not self._each:
            return [path for path in self.paths.values() if path.is_file()]
        names = [(path.parent, path.name.replace("{n}", "[0-9]*")) for path in self.paths.values()]
        return [path for folder, name in names for path in sorted(folder.glob(name))]

    def open(self, unit: str | None = None) -> WaveFile:
        """Return the waves of a unit; of the only one by default.

        Raises
        ------
        WaveError
            There are several, or nothing was recorded of it.
        """
        recorded = [name for name in self.units if self.paths[name] in self.files]
        if unit is None and len(recorded if recorded else self.units) > 1:
            raise WaveError(f"waves of {', '.join(recorded or self.units)}: say which unit=")
        name = (recorded or self.units)[0] if unit is None else unit
        if name not in self.paths:
            raise WaveError(f"no waves of {name!r}; there are those of {', '.join(self.units)}")
        if self._open:
            raise WaveError("waves are still being recorded: read them behind the with block")
        found = [path for path in self.files if self._each or path == self.paths[name]]
        if not found:
            edge = f": {self.start} had no edge while they were" if self.start else ""
            raise WaveError(f"no waves of {name} were recorded{edge}")
        return WaveFile(found[-1])

    def show(
        self,
        signals: Any = None,
        cycles: tuple[int, int] | None = None,
        *,
        unit: str | None = None,
        **options: Any,
    ) -> Any:
        """Show a window of signals; see `pynq_torch.widgets.wave_view.show`."""
        return self.open(unit).show(signals, cycles, **options)

    def __repr__(self) -> str:
        count = len(self.files)
        state = "recording" if self._open else f"{count} file{'s' * (count != 1)}"
        return f"<Waves of {', '.join(self.units)}: {state}>"
