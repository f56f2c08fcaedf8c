"""A unit without RTL on board ``rtl``: its compiled C++, with the cycles of its model."""

from __future__ import annotations

from pynq_torch.board.hls_ip import HlsKernel
from pynq_torch.board.runs import Run
from pynq_torch.errors import PynqTorchError

__all__ = ["FallbackKernel"]

#: Provenance of a run's cycles.
MODELLED = "model (description.json; this kernel has no RTL)"
UNKNOWN = (
    "measured (csim, wall clock of this PC; this kernel has no RTL and no latency model, "
    "pl_cycles may have an estimate)"
)


class FallbackKernel(HlsKernel):
    """An `HlsKernel` whose runs say what the kernel's latency model gives them."""

    def _run_of(self, number: int) -> Run:
        cycles = self._modelled()
        kind = UNKNOWN if cycles is None else MODELLED
        return Run(number, self.engine.seconds, kind, cycles, cycles_of=self._cycles_of())

    def _modelled(self) -> int | None:
        from pynq_torch.models.run_model import formula_cycles

        if self._given is None:
            return None
        try:
            return formula_cycles(self.interface, self._scalars.values(self._given))
        except (PynqTorchError, ArithmeticError):
            return None  # `Run.pl_cycles` says why
