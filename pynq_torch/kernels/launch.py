"""Starting runs on compute units and sharing them out: one way, for drivers and for operators."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pynq_torch.errors import BoardHang, KernelBusy, PynqTorchError
from pynq_torch.timing import model_cycles
from pynq_torch.waits.polling import polls

if TYPE_CHECKING:
    from .base import Kernel, KernelStart
    from .operand import Operand

__all__ = [
    "BASE_TIMEOUT_S",
    "ComputeUnit",
    "Runs",
    "give_back",
    "launch",
    "on_free",
    "rates",
    "take",
    "try_take",
]

#: Seconds that a run may take beyond what its size asks for, and that an operator waits for a unit
#: which a program has started by hand.
BASE_TIMEOUT_S = 10.0
#: Seconds between two looks at units that are started by hand: nothing reports when they end.
LOOK_S = 1e-3

_given_back = threading.Condition()
_waiting = 0
Result = TypeVar("Result")


class ComputeUnit:
    """A compute unit as operators share it.

    Parameters
    ----------
    driver : Kernel
        Its driver.

    Attributes
    ----------
    measured : float
        Multiplications a second as runs have shown; 0 until there was one.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.measured = 0.0
        self._holder: dict[str, threading.Thread] = {}

    def try_take(self) -> bool:
        """Take it for an operator of this thread, unless another thread's has it.

        In one step, into which no interrupt comes. What this thread has already is what an
        interrupt kept it from giving back: an operator asks only for units that have no run.
        """
        thread = threading.current_thread()
        return self._holder.setdefault("thread", thread) is thread

    def give_back(self) -> None:
        """Let others have it, where this thread has it."""
        if self.holder is threading.current_thread():
            del self._holder["thread"]

    @property
    def holder(self) -> threading.Thread | None:
        """Whose operator has it."""
        return self._holder.get("thread")

    @property
    def cu(self) -> str:
        """Its name in the overlay."""
        return str(self.driver.cu)

    @cached_property
    def modelled(self) -> float:
        """Multiplications a second by the kernel's latency model, to any scale."""
        cycles = model_cycles(self.driver.kernel_name, m=256, n=256, k=256)
        return 256.0**3 / cycles if cycles else 1.0

    def learn(self, work: float, seconds: float) -> None:
        """Follow the rate that a run showed; one odd run does not upset the next split."""
        if seconds > 0:
            seen = work / seconds
            self.measured += (0.3 if self.measured else 1.0) * (seen - self.measured)


def rates(units: Sequence[ComputeUnit]) -> list[float]:
    """Return how fast units are, to one scale: as measured, or by the model where never seen."""
    known = [u.measured / u.modelled for u in units if u.measured]
    scale = sum(known) / len(known) if known else 1.0
    return [u.measured or u.modelled * scale for u in units]


# ---- taking units --------------------------------------------------------------------------------


def try_take(units: Iterable[ComputeUnit], most: int = 1) -> list[ComputeUnit]:
    """Take up to `most` idle units; empty where none is idle."""
    taken: list[ComputeUnit] = []
    for unit in units:
        if not unit.driver.is_claimed() and unit.try_take():
            taken.append(unit)
            if len(taken) == most:
                break
    return taken


def take(units: Sequence[ComputeUnit], most: int = 1) -> list[ComputeUnit]:
    """Take up to `most` idle units; wait for one where none is idle.

    Returns
    -------
    list of ComputeUnit
        At least one, for `give_back`.

    Raises
    ------
    KernelBusy
        A program has started all of them by hand, and they did not become free in
        `BASE_TIMEOUT_S`; at once, where it is this thread that has to wait for them.
    """
    return try_take(units, most) or _wait(units, most)


def _wait(units: Sequence[ComputeUnit], most: int) -> list[ComputeUnit]:
    global _waiting
    begin = time.perf_counter()
    with _given_back:
        _waiting += 1
        try:
            while not (taken := try_take(units, most)):
                # Runs of operators end for certain; one that was started by hand may not.
                by_hand = [u for u in units if u.holder is None]
                late = time.perf_counter() - begin > BASE_TIMEOUT_S
                if len(by_hand) == len(units) and (late or all(u.driver.is_mine() for u in units)):
                    names = ", ".join(u.cu for u in units)
                    raise KernelBusy(
                        f"an operator of device 'pynq' needs one of {names}, which all have a run "
                        "that was started by this program and not waited for, or that was given up "
                        "after a timeout. Call wait() on what start() returned; where a kernel "
                        "hangs, load the overlay again",
                        units[0].cu,
                    )
                _given_back.wait(LOOK_S if by_hand else None)
            return taken
        finally:
            _waiting -= 1


def give_back(units: Iterable[ComputeUnit]) -> None:
    """Let other operators have those of the units that this thread has."""
    for unit in units:
        unit.give_back()
    if _waiting:
        with _given_back:
            _given_back.notify_all()


def on_free(
    units: Sequence[ComputeUnit], most: int, compute: Callable[[Sequence[ComputeUnit]], Result]
) -> Result:
    """Compute something on up to `most` idle units, and on others where one is busy after all.

    Between the look at a unit and its start, a program may start it by hand; or it did so by the
    unit's registers, of which the driver knows nothing.

    Parameters
    ----------
    units : sequence of ComputeUnit
        To choose from.
    most : int
        At least 1.
    compute : callable
        Gets the units that were taken; raises `KernelBusy` where one of them is busy.

    Raises
    ------
    KernelBusy
        No unit became free in `BASE_TIMEOUT_S`.
    """
    avoid: set[str] = set()
    begin = 0.0
    while True:
        try:
            taken = take([u for u in units if u.cu not in avoid], most)
            try:
                return compute(taken)
            except KernelBusy as error:
                begin = begin or time.perf_counter()
                if time.perf_counter() - begin > BASE_TIMEOUT_S:
                    raise
                avoid.add(error.cu)
        finally:
            give_back(units)
        if avoid >= {u.cu for u in units}:
            avoid.clear()
            time.sleep(LOOK_S)


# ---- running -------------------------------------------------------------------------------------


class Runs:
    """Runs of one computation, one after the other (`run`) or side by side (`start`).

    The CPU's cache is written back before the first run. As a context manager it waits at its end
    for all that were started, also after an error, and raises what the first of them failed with.

    Parameters
    ----------
    reads, writes : sequence of Operand
        All that any of the runs reads and writes; kept alive until the last one has ended.
        ``None`` stands for an operand that is not given.
    timeout_s : float
        Bound of the wait for one run.
    patient : bool
        Wait for a unit that a program has started by its registers.
    """

    def __init__(
        self,
        reads: Sequence[Operand | None],
        writes: Sequence[Operand | None],
        timeout_s: float,
        *,
        patient: bool = False,
    ) -> None:
        self.failure: Exception | None = None
        self.running: dict[Kernel, tuple[float, Callable[[float], None] | None]] = {}
        self._timeout_s, self._patient = timeout_s, patient
        self._operands = [o for o in (*reads, *writes) if o is not None]
        self._held = [o.tensor for o in self._operands]
        # What is written too: what the CPU has in its cache of it must not come later.
        self._flush = [o.memory for o in self._operands if not o.flushed]
        self._results = [o.memory for o in writes if o is not None]

    def run(self, driver: Kernel, values: Sequence[int]) -> None:
        """Start a unit with the values of its registers, and wait."""
        try:
            self._begin(driver, values).wait(self._timeout_s)
        except BaseException as error:
            _give_up([driver], error)
            raise

    def start(
        self, driver: Kernel, values: Sequence[int], ended: Callable[[float], None] | None = None
    ) -> None:
        """Start a unit; `ended` gets the seconds that the run took, unless it failed."""
        # Noted first: an interrupt may come as soon as the unit runs.
        self.running[driver] = time.perf_counter(), ended
        try:
            self._begin(driver, values)
        except Exception:
            del self.running[driver]
            raise

    def _begin(self, driver: Kernel, values: Sequence[int]) -> KernelStart:
        begin = 0.0
        while True:
            try:
                run = driver.start_raw(
                    values, held=self._held, flush=self._flush, results=self._results
                )
                break
            except KernelBusy:
                begin = begin or time.perf_counter()
                late = time.perf_counter() - begin > BASE_TIMEOUT_S
                if late or not self._patient or driver.is_mine():
                    raise
                time.sleep(LOOK_S)
        if self._flush:
            # Once a unit is running, writing the cache back could undo what it has stored.
            self._flush = []
            for operand in self._operands:
                operand.flushed = operand.constant
        return run

    def end_one(self) -> Kernel:
        """Wait for the run that ends first, note its failure, and return its driver."""
        driver, failure = self._first()
        started, ended = self.running[driver]
        try:
            if failure is None:
                driver.wait(self._timeout_s)
                if ended is not None:
                    ended(time.perf_counter() - started)
        except Exception as error:  # noqa: BLE001 (raised when all runs have ended)
            failure = error
        del self.running[driver]
        self.failure = self.failure or failure
        return driver

    def _first(self) -> tuple[Kernel, Exception | None]:
        """Return the unit whose run ends first, with the error of one that crashed."""
        for _ in polls(self._timeout_s) if len(self.running) > 1 else ():
            for driver in self.running:
                try:
                    if driver.has_ended():
                        return driver, None
                except BoardHang:
                    return driver, None  # waiting for it says what hangs
                except PynqTorchError as error:
                    return driver, error
        return next(iter(self.running)), None

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if _give_up(self.running, error):
            return
        try:
            while self.running:
                self.end_one()
        except BaseException as later:
            _give_up(self.running, later)
            raise
        if error is None and self.failure is not None:
            raise self.failure


def _give_up(drivers: Iterable[Kernel], error: BaseException | None) -> bool:
    """Let go of the runs of a program that was interrupted: it does not wait for them."""
    interrupted = error is not None and not isinstance(error, Exception)
    for driver in drivers if interrupted else ():
        if driver.is_mine():
            driver.abandon()
    return interrupted


def launch(
    units: Sequence[ComputeUnit],
    runs: Sequence[Sequence[int]],
    *,
    reads: Sequence[Operand] = (),
    writes: Sequence[Operand] = (),
    timeout_s: float | None = None,
) -> None:
    """Do runs of one kernel on its compute units, as many at a time as there are units free.

    Parameters
    ----------
    units : sequence of ComputeUnit
        At least one.
    runs : sequence of sequence of int
        The values of all registers for each run, see `Kernel.start_raw`. Runs must not depend on
        each other.
    reads, writes : sequence of Operand
        All that any of the runs reads and writes.
    timeout_s : float, optional
        Bound of the wait for one run. Default: `BASE_TIMEOUT_S`.

    Raises
    ------
    KernelError
        A run failed; all that had been started have been waited for.
    KernelBusy
        A program has started all units by hand and they do not become free.
    """
    made = Runs(reads, writes, BASE_TIMEOUT_S if timeout_s is None else timeout_s, patient=True)
    if len(units) == 1 or len(runs) == 1:
        for values in runs:
            try:
                made.run(take(units)[0].driver, values)
            finally:
                give_back(units)
        return
    by_driver = {unit.driver: unit for unit in units}
    waiting = list(reversed(runs))
    try:
        with made:
            while made.running or (waiting and made.failure is None):
                found: list[ComputeUnit] = []
                if waiting and made.failure is None:
                    found = try_take(units) if made.running else take(units)
                for unit in found:
                    made.start(unit.driver, waiting.pop())
                if not found:
                    give_back([by_driver[made.end_one()]])
    finally:
        give_back(units)
