"""Drivers of the optimisation ladder: ``vadd_1`` to ``vadd_4`` and ``dot_1`` to ``dot_4``.

Both kernels take two float32 vectors of one length and an address for the result. Those of the
fourth rung move whole words of 64 bits: vectors begin on 8 bytes, and where the length is odd, the
float behind the last is read and written too. Buffers here are rounded up to more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .base import Kernel
from .launch import Runs
from .operand import Operand

if TYPE_CHECKING:
    import torch

__all__ = ["LadderAdd", "LadderDot", "add_runs", "dot_runs", "parts", "word_bytes"]

#: A part shorter than this is not worth a start of its own: the host's share of one, 0.15 ms on the
#: board (`pynq_torch.models.pynq_z2.PYTHON_RUN_S`), is 15,000 cycles.
LEAST_ELEMENTS = 16384
#: Parts begin on a burst of 16 beats of 64 bits, which keeps the words of wide ports whole.
GRANULE = 32
_WIDE = {"vadd_4": 8, "dot_4": 8}

_Runs = list[tuple[int, ...]]


def word_bytes(kernel: str) -> int:
    """Return the bytes of a word of a kernel's ports: where its vectors have to begin."""
    return _WIDE.get(kernel, 4)


def parts(n: int, units: int) -> list[tuple[int, int]]:
    """Share the elements of a vector between compute units.

    Parameters
    ----------
    n : int
        Elements, at least 1.
    units : int
        Compute units, at least 1.

    Returns
    -------
    list of (int, int)
        First element and number of elements of each part; at most `units` of them.

    Examples
    --------
    >>> parts(100000, 2)
    [(0, 50016), (50016, 49984)]
    >>> parts(1000, 2)
    [(0, 1000)]
    """
    count = max(1, min(units, n // LEAST_ELEMENTS))
    step = -(-n // (count * GRANULE)) * GRANULE
    return [(first, min(step, n - first)) for first in range(0, n, step)]


def add_runs(a: Operand, b: Operand, c: Operand, n: int, units: int = 1) -> _Runs:
    """Return the registers of each run of ``c = a + b``: a, b, c, n."""
    return [
        (a.address + 4 * first, b.address + 4 * first, c.address + 4 * first, count)
        for first, count in parts(n, units)
    ]


def dot_runs(a: Operand, b: Operand, c: Operand, n: int, units: int = 1) -> _Runs:
    """Return the registers of each run of a dot product; run number i writes element i of `c`."""
    return [
        (a.address + 4 * first, b.address + 4 * first, c.address + 4 * i, count)
        for i, (first, count) in enumerate(parts(n, units))
    ]


class _Ladder(Kernel):
    """What both kernels share."""

    def _pair(
        self, a: torch.Tensor, b: torch.Tensor, ndim: int | None = None
    ) -> tuple[Operand, Operand]:
        """Return two vectors of one shape where the kernel can read them."""
        left = self._vector("a", a, ndim=ndim)
        return left, self._vector("b", b, shape=left.shape)

    def _vector(self, name: str, values: torch.Tensor, **expected: Any) -> Operand:
        """Return a vector where the kernel can read it, copied where a word would be cut."""
        import torch

        if isinstance(values, torch.Tensor) and not values.is_contiguous():
            values = values.contiguous()
        found = self.operand(name, values, **expected)
        if found.address % word_bytes(self.kernel_name) == 0:
            return found
        copied = self.result(found.shape)
        copied.tensor.copy_(found.tensor)
        return copied

    def _all(
        self, runs: _Runs, operands: Sequence[Operand], helpers: Sequence[Kernel], timeout_s: float
    ) -> torch.Tensor:
        """Start a run on each unit, wait for all, and return the result, the last operand."""
        *reads, result = operands
        with Runs(reads, [result], timeout_s) as going:
            for unit, values in zip((self, *helpers), runs, strict=False):
                going.start(unit, values)
        return result.tensor

    def _units(self, helpers: Sequence[Kernel]) -> int:
        for unit in helpers:
            if unit.kernel_name != self.kernel_name or unit is self:
                raise self.wrong(
                    f"helper {unit.cu} is a {unit.kernel_name}; expected other units of "
                    f"{self.kernel_name}"
                )
        return 1 + len(helpers)


class LadderAdd(_Ladder):
    """``overlay.vadd_2_0(a, b)`` adds two float32 tensors of the same shape."""

    def __call__(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        *,
        helpers: Sequence[Kernel] = (),
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``a + b``.

        Parameters
        ----------
        a, b : torch.Tensor
            float32, the same shape, device cpu. Contiguous tensors in CMA memory that begin on a
            word of the ports are used as they are; others are copied there.
        helpers : sequence of Kernel
            Other units of the same kernel, which take a part each.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            float32 in CMA memory. Empty tensors give an empty one without a start.

        Raises
        ------
        ArgumentError
            Another dtype or shape, no CPU tensor, or a helper that is another kernel.
        """
        units = self._units(helpers)
        left, right = self._pair(a, b)
        if not a.numel():
            return a.new_empty(a.shape)
        result = self.result(a.shape)
        runs = add_runs(left, right, result, a.numel(), units)
        return self._all(runs, (left, right, result), helpers, timeout_s)


class LadderDot(_Ladder):
    """``overlay.dot_2_0(a, b)`` is the dot product of two float32 vectors of one length."""

    def __call__(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        *,
        helpers: Sequence[Kernel] = (),
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``torch.dot(a, b)``.

        The sum of n products is off by at most ``n eps / 2 * sum |a_i b_i|``, whatever the order
        (Higham, "Accuracy and Stability of Numerical Algorithms", 3.1), eps = 2**-23; the 16
        partial sums of ``dot_4`` are off by about a 16th of that.

        Parameters
        ----------
        a, b : torch.Tensor
            float32 [N], device cpu; see `LadderAdd`.
        helpers : sequence of Kernel
            Other units of the same kernel; the host adds their sums.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            float32, no dimension.

        Raises
        ------
        ArgumentError
            As for `LadderAdd`.
        """
        units = self._units(helpers)
        left, right = self._pair(a, b, ndim=1)
        if not a.numel():
            return a.new_zeros(())
        result = self.result((units,))
        runs = dot_runs(left, right, result, a.numel(), units)
        return self._all(runs, (left, right, result), helpers, timeout_s)[: len(runs)].sum()
