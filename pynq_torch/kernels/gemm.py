"""Driver of ``gemm`` and its variants: int8 x int8 -> int32, one start for one product.

The sums can leave the kernel with a bias, scaled to int8 or float32, and through ReLU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pynq.buffer import PynqBuffer

from pynq_torch import buffers

from .arguments import ArgumentError, check_tensor
from .base import Kernel, KernelStart
from .epilogue import INT8, KIND, WORD, check_columns, dtype_name, mode_of
from .operands import (
    columns_of,
    overlap,
    place_of,
    row_stride,
    rows_in_cma,
    vector_in_cma,
    whole_words,
)
from .split import share, split_gemm
from .vadd import deliver

if TYPE_CHECKING:
    import torch

__all__ = ["Gemm", "share", "split_gemm"]

#: int8 products are at most 2**14: a longer sum may leave int32.
MAX_EXACT_K = (2**31 - 1) // 2**14
_INT32 = 2**31


class Gemm(Kernel):
    """``overlay.gemm(a, b)`` multiplies int8 matrices exactly."""

    def __init__(self, description: dict[str, Any]) -> None:
        super().__init__(description)
        self._has_epilogue = "mode" in self._by_name

    def __call__(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor | None = None,
        *,
        bias: torch.Tensor | None = None,
        scale: torch.Tensor | None = None,
        relu: bool = False,
        dtype: torch.dtype | None = None,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``a @ b``; with an epilogue what becomes of it on the way to memory.

        Parameters
        ----------
        a : torch.Tensor
            int8 [M, K], device cpu.
        b : torch.Tensor
            int8 [K, N].
        out : torch.Tensor, optional
            `dtype` [M, N]; in CMA memory with unit column stride without a copy (int8: rows of
            whole words, N and the row stride multiples of 4).
        bias : torch.Tensor, optional
            [N]: int32, added to the sums; float32, added after scaling, with float32 results.
        scale : torch.Tensor, optional
            float32 [N], finite. Needed for int8 and float32 results, refused for int32.
        relu : bool
            Negative results become 0.
        dtype : torch.dtype, optional
            Of the result: torch.int32 (default), torch.int8 or torch.float32.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            `dtype` [M, N] in CMA memory, or `out`. Sums wrap at 32 bits, as in torch, which cannot
            happen for K <= 131,071. An empty result is returned without a start. Rows of int8 are
            padded to whole words where N is no multiple of 4.

        Notes
        -----
        With ``acc = a @ b``, bit for bit as on torch's CPU:

        - int32: ``relu(acc + bias)``
        - int8: ``clamp(round((acc + bias).float() * scale), -128, 127)``, from 0 with relu; halves
          round to even
        - float32: ``relu(acc.float() * scale + bias)``, the product rounded before the sum

        Matrices in CMA memory are used as they are, whatever their row stride, where elements of a
        row follow each other; others are copied. The columns of `b` in ``b.T`` do not.
        """
        import torch

        kind = torch.int32 if dtype is None else dtype
        mode = mode_of(kind, bias=bias is not None, relu=relu)
        m, k, n = self.check(a, b, out, kind)
        check_columns(self.cu, mode, n, bias, scale)
        if not m * n:
            return torch.empty((m, n), dtype=kind) if out is None else out
        if not k and not mode:
            return torch.zeros((m, n), dtype=kind) if out is None else out.zero_()
        # Looked up once: to find the buffer beneath a tensor costs more than all the rest.
        left, right = (rows_in_cma(matrix, self.device)[0] for matrix in (a, b))
        columns = self.columns_in_cma(bias=bias, scale=scale)
        place = self.place_out(out, m, n, mode, left, right, *columns.values())
        self.start_product(left, right, place, mode=mode, **columns).wait(timeout_s)
        return deliver(place, out)

    call: Any = __call__

    def start_product(
        self,
        a: Any,
        b: Any,
        c: Any,
        *,
        bias: Any = None,
        scale: Any = None,
        mode: int = 0,
        flush: bool = True,
    ) -> KernelStart:
        """Start ``c = epilogue(a @ b)`` and return at once.

        Parameters
        ----------
        a, b : torch.Tensor or PynqBuffer
            int8 [M, K] and [K, N]; M and N at least 1.
        c : PynqBuffer
            [M, N] of the dtype that `mode` stores, with unit column stride. int8: on a word, rows a
            multiple of 4 bytes apart; up to 3 bytes behind each row are overwritten.
        bias, scale : torch.Tensor or PynqBuffer, optional
            [N], see `__call__`; each is read if and only if `mode` asks for it.
        mode : int
            See :func:`~pynq_torch.kernels.epilogue.mode_of`.
        flush : bool
            ``False`` where the caller has written the CPU's cache back already: while another unit
            writes to a part of `c`, that must not happen again.
        """
        left, at_a, lda = rows_in_cma(a, self.device)
        right, at_b, ldb = rows_in_cma(b, self.device)
        (m, k), (depth, n) = a.shape, b.shape
        if depth != k:
            raise ArgumentError(f"{self.cu}: a is {m}x{k} and b is {depth}x{n}", self.cu)
        place, at_c, ldc = place_of(self.cu, c, m, n, mode)
        used = [left, right, place]
        values = [at_a, at_b, at_c, m, n, k, lda, ldb, ldc]
        if self._has_epilogue or mode:
            self._check_epilogue()
            for value, address in columns_of(self.cu, self.device, n, mode, bias, scale):
                values.append(address)
                if value is not None:
                    used.append(value)
            values.append(mode)
        return self.start_raw(values, held=used, flush=used if flush else (), results=(place,))

    def run_raw(
        self,
        a: int,
        b: int,
        c: int,
        m: int,
        n: int,
        k: int,
        lda: int,
        ldb: int,
        ldc: int,
        bias: int = 0,
        scale: int = 0,
        mode: int = 0,
        *,
        held: Sequence[Any] = (),
        flush: Sequence[PynqBuffer] = (),
        results: Sequence[PynqBuffer] = (),
        timeout_s: float = 10.0,
    ) -> None:
        """Run once on operands whose addresses and sizes are known, and wait.

        For a layer whose weights lie packed in CMA memory: the least that a call can cost. Only
        that the unit is free, its overlay loaded and the values in range is checked.

        Parameters
        ----------
        a, b, c, bias, scale : int
            Physical addresses; see `start_product` for what lies there.
        m, n, k : int
            Sizes.
        lda, ldb, ldc : int
            Row strides in elements, at least the length of a row.
        mode : int
            See :func:`~pynq_torch.kernels.epilogue.mode_of`.
        held, flush, results
            See `Kernel.start_raw`.
        timeout_s : float
            Bound of the wait.
        """
        values = (a, b, c, m, n, k, lda, ldb, ldc, bias, scale, mode)
        self.start_raw(values, held=held, flush=flush, results=results).wait(timeout_s)

    def _check_epilogue(self) -> None:
        """Raise where the overlay has a gemm that was built before there was an epilogue."""
        if not self._has_epilogue:
            raise ArgumentError(
                f"{self.cu} was built without an epilogue (no register `mode`); expected the gemm "
                "of this version: build the overlay again, or add bias and scale on the CPU",
                self.cu,
            )

    def check(self, a: Any, b: Any, out: Any, dtype: Any) -> tuple[int, int, int]:
        """Check matrices and return M, K, N; `dtype` is that of `out`."""
        import torch

        check_tensor(self.cu, "a", a, torch.int8, ndim=2)
        check_tensor(self.cu, "b", b, torch.int8, ndim=2)
        m, k = a.shape
        if b.shape[0] != k:
            raise ArgumentError(
                f"{self.cu}: a is {m}x{k} and b is {b.shape[0]}x{b.shape[1]}; expected b to have "
                f"{k} "
                "rows, as many as a has columns",
                self.cu,
            )
        n = b.shape[1]
        for name, size in (("M", m), ("K", k), ("N", n)):
            if size >= _INT32:
                raise ArgumentError(
                    f"{self.cu}: {name} is {size}; expected at most {_INT32 - 1}", self.cu
                )
        if out is not None:
            check_tensor(self.cu, "out", out, dtype, shape=(m, n))
        return int(m), int(k), int(n)

    def columns_in_cma(self, **columns: Any) -> dict[str, Any]:
        """Return those of `bias` and `scale` that are given, in CMA memory."""
        given = {name: value for name, value in columns.items() if value is not None}
        return {name: vector_in_cma(value, self.device)[0] for name, value in given.items()}

    def place_out(self, out: Any, m: int, n: int, mode: int, *sources: Any) -> Any:
        """Return `out` in CMA memory, or a new buffer where the kernel cannot write to it."""
        place = buffers.buffer_of(out) if out is not None else None
        # An input is read again for every tile of columns: a result written over it would spoil it.
        if (
            place is not None
            and (stride := row_stride(place)) is not None
            and not any(overlap(place, source) for source in sources)
            and (mode & KIND != INT8 or whole_words(place, n, stride))
        ):
            return place
        if mode & KIND != INT8:
            return buffers.empty((m, n), dtype_name(mode), device=self.device)
        return buffers.empty((m, -(-n // WORD) * WORD), "int8", device=self.device)[:, :n]
