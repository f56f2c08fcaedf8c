"""A run of a compute unit that has ended, and the arguments that it was started with."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pynq_torch.hls.interface import Interface
from pynq_torch.models.run_model import RunCycles

from .engine import NO_OFFSET

__all__ = ["Run", "Scalars"]

_INTEGER = re.compile(
    r"(?:const )?(?:(unsigned|bool|ap_uint)|(?:signed|char|short|int|long|ap_int))\b"
)


@dataclass(frozen=True)
class Run:
    """One finished run of a compute unit.

    Parameters
    ----------
    number : int
        Counted from 1 since the overlay was loaded.
    seconds : float
        Wall clock of this PC.
    kind : str
        Provenance.
    cycles : int or None
        Of the PL's clock: counted in RTL, or of the kernel's model (`kind` says which); ``None``
        on a board that counts none.
    phases : dict of str to int
        Cycles that the unit itself says it spent on each of its phases; they may overlap.
    cycles_of : callable, optional
        Works out `pl_cycles` where none were counted.
    """

    number: int
    seconds: float
    kind: str = "measured (csim, wall clock of this PC)"
    cycles: int | None = None
    phases: dict[str, int] = field(default_factory=dict)
    cycles_of: Callable[[], RunCycles] | None = field(default=None, compare=False, repr=False)

    @functools.cached_property
    def pl_cycles(self) -> RunCycles:
        """Cycles in the PL with where they come from: counted, by the formula, or an estimate.

        It is worked out when it is asked for first: an estimate of a run that is not in the build
        cache takes clang some tenths of a second, up to seconds for large kernels.
        """
        if self.cycles is not None:
            return RunCycles(self.cycles, self.kind.split()[0])
        if self.cycles_of is None:
            return RunCycles(None, note="this board counts none")
        return self.cycles_of()


class Scalars:
    """Where the integers that a kernel gets by value are in its register space.

    Parameters
    ----------
    interface : Interface
        Of the kernel.
    offsets : sequence of tuple of int
        For each argument in its order, first where its data is.
    """

    def __init__(self, interface: Interface, offsets: Sequence[tuple[int, int, int, int]]) -> None:
        self._at: dict[str, tuple[int, int, bool]] = {}
        for argument, (data, *_) in zip(interface.arguments, offsets, strict=False):
            known = _INTEGER.match(argument.ctype)
            value = argument.kind in ("scalar", "none") and argument.length is None
            if known and value and data != NO_OFFSET and 0 < argument.width <= 64:
                self._at[argument.name] = (data, argument.width, not known[1])
        self._begin = min((at for at, _, _ in self._at.values()), default=0)
        self._end = max((at + 8 for at, _, _ in self._at.values()), default=0)

    def taken(self, registers: memoryview) -> bytes:
        """Return a copy of the registers that `values` reads: a start takes its arguments."""
        return bytes(registers[self._begin : self._end])

    def values(self, taken: bytes) -> dict[str, int]:
        """Return the integers by the argument's name."""
        found = {}
        for name, (at, width, signed) in self._at.items():
            word = int.from_bytes(taken[at - self._begin :][:8], "little") & (1 << width) - 1
            found[name] = word - (1 << width) if signed and word >> width - 1 else word
        return found
