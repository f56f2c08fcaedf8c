"""Loading models that write waves, in a new PL process that goes on from the one before it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pynq_torch.board.rtl import layout as at
from pynq_torch.board.rtl.layout import Operation
from pynq_torch.errors import WaveError

if TYPE_CHECKING:
    from pynq_torch.board.rtl.process import Pl

_RESTARTS = "Its model is one without waves, and another one begins from its reset"


def lacks_waves(pl: Pl, units: Mapping[str, str], history: int = 0) -> bool:
    """Tell whether `load_waves` has to start the process again."""
    loaded = {plan.name: plan.model.waves for plan in pl.plans}
    return history > pl.options.history or any(loaded[u] != w for u, w in units.items())


def load_waves(pl: Pl, units: Mapping[str, str], history: int = 0) -> None:
    """Load the builds of units that write waves (``"fst"``, ``"vcd"``), in a process of their own.

    Every unit begins from its reset. Registers are written again as programs wrote them, all but
    AP_CTRL, and the trace has none of it; whatever else a unit remembered is gone. Cycles,
    counters, trace and runs go on. Waves can show `history` cycles before their trigger. Nothing is
    done where the builds are loaded already.

    Raises
    ------
    WaveError
        A unit is running, and its run would be lost.
    """
    if not lacks_waves(pl, units, history):
        return
    check_idle(pl)
    models = []
    for plan in pl.plans:
        waves = units.get(plan.name, plan.model.waves)
        same = plan.model.waves == waves
        models.append(plan.model if same else pl.rebuild(plan.name, waves))
    with contextlib.ExitStack() as held:
        for lock in pl.locks:
            held.enter_context(lock)
        check_idle(pl)  # another thread had all the time of a build
        for plan, model in zip(pl.plans, models, strict=True):
            plan.model = model
        pl.options = replace(pl.options, history=max(history, pl.options.history))
        _restart(pl)


def check_idle(pl: Pl) -> None:
    """Raise `WaveError` where a new process would drop a run, or what a program has yet to read.

    A program that waits for the run would never be told.
    """
    for index, plan in enumerate(pl.plans):
        _, words, quads = pl.box(index)
        if quads[at.B_COMPLETED] < quads[at.B_STARTED]:
            unseen = "" if words[at.B_WATCHED] else ", or nobody has read its AP_DONE"
            raise WaveError(
                f"{plan.name} is running{unseen}; open waves before the start, or wait for it. "
                + _RESTARTS
            )
    for plan, unsaved in zip(pl.plans, pl.unsaved, strict=True):
        if lost := unsaved():
            raise WaveError(f"{plan.name} {lost}. {_RESTARTS}")


def _restart(pl: Pl) -> None:
    """Replace the process by a new one, with the registers as programs wrote them."""
    pl.spawn(counts_on=True)
    pl.wait_running()
    pl.check()
    for unit, registers in enumerate(pl.written):
        for (slave, offset), word in sorted(registers.items()):
            pl.write(unit, slave, offset, [word], Operation.REPLAY)
