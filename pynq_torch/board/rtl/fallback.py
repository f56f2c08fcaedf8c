"""A unit without RTL on board ``rtl``: its compiled C++, with the cycles of its model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pynq_torch.board.hls_ip import HlsKernel, Run
from pynq_torch.errors import PynqTorchError

__all__ = ["FallbackKernel"]

#: Provenance of a run's cycles.
MODELLED = "model (description.json; this kernel has no RTL)"
UNKNOWN = "measured (csim, wall clock of this PC; this kernel has no RTL and no latency model)"


class FallbackKernel(HlsKernel):
    """An `HlsKernel` whose runs say what the kernel's latency model gives them."""

    def _run_of(self, number: int) -> Run:
        cycles = self._modelled()
        kind = UNKNOWN if cycles is None else MODELLED
        return Run(number, self.engine.seconds, kind, cycles=cycles)

    def _modelled(self) -> int | None:
        from pynq_torch.models.run_model import run_cycles

        call: Any = SimpleNamespace(
            kernel=self.ip.vlnv_name, cu=self.ip.name, arguments=self._arguments()
        )
        try:
            return run_cycles(call)
        except (PynqTorchError, OSError, KeyError, ArithmeticError):
            return None  # no description, or one that asks for what is in no register

    def _arguments(self) -> dict[str, int]:
        found = {}
        for slave, registers in self.ip.registers.items():
            page = self._page.get(slave, 0)
            for name, offset in registers.items():
                at = page + offset
                if at + 4 <= self._nbytes:
                    found[name.removesuffix("_1")] = self._words[at >> 2]
        return found
