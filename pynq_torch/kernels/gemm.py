"""Driver of ``gemm`` and its variants: int8 x int8 -> int32, one start for one product.

The sums can leave the kernel with a bias, scaled to int8 or float32, and through ReLU.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pynq.buffer import PynqBuffer

from pynq_torch import buffers
from pynq_torch.timing import model_cycles

from .arguments import check_tensor
from .base import Kernel, KernelStart
from .epilogue import BIAS, FLOAT32, INT8, KIND, WORD, check_columns, dtype_name, mode_of
from .launch import Runs
from .operand import Operand, buffer_operand, rows_in_cma, vector_in_cma, zeros
from .share import share
from .vadd import deliver

if TYPE_CHECKING:
    import torch

__all__ = ["Gemm", "share", "split_gemm"]

_INT32 = 2**31


class Gemm(Kernel):
    """``overlay.gemm(a, b)`` multiplies int8 matrices exactly."""

    def __init__(self, description: dict[str, Any]) -> None:
        super().__init__(description)
        #: Whether it can scale its sums, add a bias and apply ReLU on the way to memory.
        self.has_epilogue = "mode" in self._by_name

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
        kind, mode, m, k, n = self.checked(a, b, out, bias, scale, relu, dtype)
        if not m * n or (not k and not mode):
            return zeros((m, n), kind, out)
        left, right, place, offset, factor = self.operands(a, b, out, mode, bias, scale)
        runs = [self.plan(left, right, place, mode, offset, factor)]
        self.do_runs(runs, (left, right, offset, factor), (place,), timeout_s)
        return deliver(place.tensor, out)

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
        left, right = rows_in_cma(a, self.device), rows_in_cma(b, self.device)
        (m, k), (depth, n) = a.shape, b.shape
        if depth != k:
            raise self.wrong(f"a is {m}x{k} and b is {depth}x{n}")
        place = self._place_of(c, m, n, mode)
        columns = self._columns_of(n, mode, bias, scale) if self.has_epilogue or mode else ()
        values = self.plan(left, right, place, mode, *columns)
        used = [o.tensor for o in (left, right, place, *filter(None, columns))]
        flushed = used if flush else ()
        return self.start_raw(values, held=used, flush=flushed, results=(place.tensor,))

    def plan(
        self,
        a: Operand,
        b: Operand,
        c: Operand,
        mode: int = 0,
        bias: Operand | None = None,
        scale: Operand | None = None,
        part: tuple[int, int, int, int] | None = None,
    ) -> list[int]:
        """Return the registers of ``c = epilogue(a @ b)``.

        Parameters
        ----------
        a, b, c : Operand
            [M, K], [K, N] and [M, N], elements of a row side by side.
        mode : int
            See :func:`~pynq_torch.kernels.epilogue.mode_of`.
        bias, scale : Operand, optional
            [N], as `mode` asks for.
        part : tuple of int, optional
            First row, rows, first column and columns of `c` to compute. Default: all.
        """
        (m, k), n = a.shape, b.shape[1]
        lda = a.strides[0] if m > 1 else k
        ldb = b.strides[0] if k > 1 else n
        # Rows of int8 are whole words.
        ldc = c.strides[0] if m > 1 else -(-n // WORD) * WORD if mode & KIND == INT8 else n
        row, rows, column, width = part or (0, m, 0, n)
        return [
            a.address + row * lda,
            b.address + column,
            c.address + (row * ldc + column) * c.itemsize,
            *(rows, width, k, lda, ldb, ldc),
            *self._epilogue(mode, column, bias, scale),
        ]

    def _epilogue(
        self, mode: int, column: int, bias: Operand | None, scale: Operand | None
    ) -> list[int]:
        """Return the registers from ``bias`` on, which an old gemm does not have."""
        if self.has_epilogue:
            start = 4 * column
            return [
                0 if bias is None else bias.address + start,
                0 if scale is None else scale.address + start,
                mode,
            ]
        if mode:
            raise self.wrong(
                "built without an epilogue (no register `mode`); expected the gemm of this "
                "version: build the overlay again, or add bias and scale on the CPU"
            )
        return []

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
        held, flush, results, timeout_s
            See `Kernel.start_raw`, and `Run.wait`.
        """
        values = (a, b, c, m, n, k, lda, ldb, ldc, bias, scale, mode)
        self.start_raw(values, held=held, flush=flush, results=results).wait(timeout_s)

    def checked(
        self, a: Any, b: Any, out: Any, bias: Any, scale: Any, relu: bool, dtype: Any
    ) -> tuple[torch.dtype, int, int, int, int]:
        """Check the arguments of a call; return the result's dtype, the mode, M, K and N."""
        import torch

        kind = torch.int32 if dtype is None else dtype
        mode = mode_of(kind, bias=bias is not None, relu=relu)
        check_tensor(self.cu, "a", a, torch.int8, ndim=2)
        check_tensor(self.cu, "b", b, torch.int8, ndim=2)
        (m, k), (depth, n) = a.shape, b.shape
        if depth != k:
            raise self.wrong(
                f"a is {m}x{k} and b is {depth}x{n}; expected b to have {k} rows, as many as a has "
                "columns"
            )
        for name, size in (("M", m), ("K", k), ("N", n)):
            if size >= _INT32:
                raise self.wrong(f"{name} is {size}; expected at most {_INT32 - 1}")
        if out is not None:
            check_tensor(self.cu, "out", out, kind, shape=(m, n))
        check_columns(self.cu, mode, n, bias, scale)
        return kind, mode, int(m), int(k), int(n)

    def operands(
        self, a: Any, b: Any, out: Any, mode: int, bias: Any, scale: Any
    ) -> tuple[Operand, Operand, Operand, Operand | None, Operand | None]:
        """Return a, b, result, bias and scale in CMA memory; the result is `out` if possible."""
        left, right = rows_in_cma(a, self.device), rows_in_cma(b, self.device)
        offset, factor = (
            None if v is None else vector_in_cma(v, self.device) for v in (bias, scale)
        )
        shape = (left.shape[0], right.shape[1])
        own = buffers.buffer_of(out) if out is not None else None
        place = None if own is None else Operand(own, int(own.device_address), own)
        sources = [o.tensor for o in (left, right, offset, factor) if o is not None]
        # An input is read again for every tile of columns: a result written over it would spoil it.
        if (
            place is None
            or place.row_stride is None
            or any(np.may_share_memory(np.asarray(own), np.asarray(s)) for s in sources)
            or (mode & KIND == INT8 and not _whole_words(place, shape[1]))
        ):
            made = self._room(*shape, mode)
            place = Operand(made, int(made.device_address), made)
        return left, right, place, offset, factor

    def _room(self, m: int, n: int, mode: int) -> Any:
        if mode & KIND != INT8:
            return buffers.empty((m, n), dtype_name(mode), device=self.device)
        return buffers.empty((m, -(-n // WORD) * WORD), "int8", device=self.device)[:, :n]

    def _place_of(self, c: Any, m: int, n: int, mode: int) -> Operand:
        """Return the result's memory, or raise where no such result can be stored there."""
        own: Any = c if isinstance(c, PynqBuffer) else buffers.buffer_of(c)
        place = None if own is None else buffer_operand(own)
        if place is None:
            raise TypeError(
                f"{self.cu}: c is {type(c).__name__} in ordinary memory; expected a CMA buffer: "
                "buffers.empty, buffers.empty_tensor"
            )
        dtype = np.dtype(dtype_name(mode))
        fits = own.dtype == dtype and place.shape == (m, n)
        stride = place.row_stride if fits else None
        if stride is None:
            found = f"{own.dtype} {own.shape} with strides {own.strides}"
            raise self.wrong(
                f"c is {found}; expected {dtype} {(m, n)} with elements of a row side by side"
            )
        stride = -(-n // WORD) * WORD if m == 1 else stride
        if mode & KIND == INT8 and (stride % WORD or place.address % WORD):
            raise self.wrong(
                f"c has int8 rows {stride} bytes apart from physical address "
                f"0x{place.address:x} on; expected multiples of {WORD}, since the kernel "
                "stores whole words: buffers.empty((m, -(-n // 4) * 4), 'int8')[:, :n]"
            )
        return place

    def _columns_of(self, n: int, mode: int, bias: Any, scale: Any) -> list[Operand | None]:
        """Return bias and scale; ``None`` where `mode` does without."""
        kind = np.dtype("float32" if mode & KIND == FLOAT32 else "int32")
        found: list[Operand | None] = []
        for name, value, wanted, dtype in (
            ("bias", bias, mode & BIAS, kind),
            ("scale", scale, mode & KIND, np.dtype("float32")),
        ):
            own = None if value is None else vector_in_cma(value, self.device)
            shown = "none" if own is None else f"{own.tensor.dtype} {own.shape}"
            expected = f"{dtype} {(n,)}" if wanted else "none"
            if shown != expected:
                raise self.wrong(f"{name} is {shown}; mode {mode} takes {expected}")
            found.append(own)
        return found


def _whole_words(place: Operand, n: int) -> bool:
    """Whether rows of int8 begin and end with a word: what lies beside them is not ours."""
    return n % WORD == (place.row_stride or 0) % WORD == place.address % WORD == 0


def split_gemm(
    units: Sequence[Gemm],
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
    *,
    bias: torch.Tensor | None = None,
    scale: torch.Tensor | None = None,
    relu: bool = False,
    dtype: torch.dtype | None = None,
    speeds: Sequence[float] | None = None,
    timeout_s: float = 10.0,
) -> torch.Tensor:
    """Compute ``a @ b`` on several compute units in parallel, each with its share of the rows.

    Parameters
    ----------
    units : sequence of Gemm
        E.g. ``[overlay.gemm, overlay.gemm_lut]``.
    a, b, out, bias, scale, relu, dtype
        As for `Gemm`.
    speeds : sequence of float, optional
        Rows a second, to any scale. Default: from the latency model of each kernel's
        description.json, where it lies in this checkout; equal shares otherwise.
    timeout_s : float
        Bound of each wait.

    Returns
    -------
    torch.Tensor
        `dtype` [M, N], what one unit alone would return.
    """
    if not units:
        raise ValueError("split_gemm needs at least one compute unit")
    first = units[0]
    kind, mode, m, k, n = first.checked(a, b, out, bias, scale, relu, dtype)
    if len(units) == 1 or not m * n * k:
        return first(a, b, out, bias=bias, scale=scale, relu=relu, dtype=kind, timeout_s=timeout_s)
    if speeds is None:
        cycles = [model_cycles(u.kernel_name, m=m, n=n, k=k) for u in units]
        speeds = [1 / c if c else 1.0 for c in cycles] if all(cycles) else [1.0] * len(units)
    if len(speeds) != len(units) or min(speeds) <= 0:
        raise ValueError(f"speeds is {list(speeds)}; expected {len(units)} numbers greater than 0")
    # Rows are split: the values for the columns are the same for all units.
    left, right, place, offset, factor = first.operands(a, b, out, mode, bias, scale)
    reads = [operand for operand in (left, right, offset, factor) if operand is not None]
    with Runs(reads, [place], timeout_s) as runs:
        for unit, (begin, end) in zip(units, itertools.pairwise(share(m, speeds)), strict=True):
            if end > begin:
                part = (begin, end - begin, 0, n)
                runs.start(unit, unit.plan(left, right, place, mode, offset, factor, part))
    return deliver(place.tensor, out)
