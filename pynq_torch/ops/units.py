"""int8 matrix products on the compute units of the loaded overlay."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from pynq_torch.kernels.epilogue import BIAS, FLOAT32, INT8, INT32, KIND, RELU
from pynq_torch.kernels.launch import BASE_TIMEOUT_S, ComputeUnit, Runs, on_free, rates
from pynq_torch.kernels.matrix_mult import multiply_tiled
from pynq_torch.kernels.operand import Operand
from pynq_torch.kernels.share import share
from pynq_torch.torch_device import memory

from .launch import Units, operand, placed, units

__all__ = [
    "KERNELS",
    "Matrix",
    "Units",
    "Vector",
    "finish",
    "multiply",
    "result_dtype",
    "timeout_of",
    "units",
]

#: Kernels that these functions use.
KERNELS = ("gemm", "gemm_lut", "matrix_mult", "matrix_mult_fabric")
#: Multiplications a second below which a unit has hung: a tenth of csim's on a slow PC.
SLOWEST = 5e6
#: Multiplications below which a product is not worth the second start.
WORTH_SPLITTING = 32 * 32 * 32


class Matrix(Operand):
    """An int8 matrix where the units can read it, elements of a row side by side.

    Parameters
    ----------
    tensor : torch.Tensor
        int8 [rows, columns] on device "pynq"; it is copied where its memory does not allow it.
    device : pynq.Device
        The board of the units.
    constant : bool
        See `Operand`.
    """

    __slots__ = ()

    def __init__(self, tensor: torch.Tensor, device: Any, *, constant: bool = False) -> None:
        (rows, columns), (along, across) = tensor.shape, tensor.stride()
        apart = (columns > 1 and across != 1) or (rows > 1 and along < columns)
        super().__init__(*placed(tensor, device, copy=apart))
        self.constant = constant

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.shape[1]


class Vector(Operand):
    """Values for the columns of a product, where the units can read them.

    Parameters
    ----------
    tensor : torch.Tensor
        [N] of 32-bit elements side by side, on device "pynq", on the board of the units.
    constant : bool
        See `Operand`.
    """

    __slots__ = ()

    def __init__(self, tensor: torch.Tensor, *, constant: bool = False) -> None:
        held = memory.held(tensor)
        super().__init__(tensor, held.physical + 4 * int(tensor.storage_offset()), held)
        self.constant = constant


def multiply(
    a: Matrix,
    b: Matrix,
    *,
    mode: int = INT32,
    scale: torch.Tensor | Vector | None = None,
    bias: torch.Tensor | Vector | None = None,
    out: torch.Tensor | None = None,
    on: Units | None = None,
) -> torch.Tensor:
    """Return ``epilogue(a @ b)`` from the units of the overlay.

    Parameters
    ----------
    a, b : Matrix
        int8 [M, K] and [K, N]; no size is 0.
    mode : int
        What becomes of the sums, see :mod:`pynq_torch.kernels.epilogue`.
    scale, bias : torch.Tensor or Vector, optional
        [N] on device "pynq", as `mode` asks for.
    out : torch.Tensor, optional
        Where to put the result: [M, N] on device "pynq", on its board, with elements of a row side
        by side. It is undefined if an error is raised.
    on : Units, optional
        Those of the overlay, where the caller has looked already.

    Returns
    -------
    torch.Tensor
        [M, N] on device "pynq"; of int32, int8 or float32, bit for bit what the formulas of
        `pynq_torch.kernels.Gemm` give on the CPU.

    Raises
    ------
    KernelError
        A unit failed; the others have been waited for.
    """
    found = units() if on is None else on
    (m, k), n = a.shape, b.shape[1]
    columns = [Vector(v) if isinstance(v, torch.Tensor) else v for v in (bias, scale)]
    # Units with sizes in registers come first: products of fixed shape cost padding.
    kind, compute = (found.gemms, _shared) if found.gemms else (found.tiles, _tiled)
    most = min(len(kind), max(m, n)) if m * n * k >= WORTH_SPLITTING else 1
    return on_free(kind, most, lambda taken: compute(taken, a, b, mode, columns, out))


def timeout_of(work: int) -> float:
    """Return the seconds that a product of `work` multiplications may take."""
    return BASE_TIMEOUT_S + work / SLOWEST


_DTYPES = {INT32: torch.int32, INT8: torch.int8, FLOAT32: torch.float32}


def result_dtype(mode: int) -> torch.dtype:
    """Return the dtype that `mode` stores."""
    return _DTYPES[mode & KIND]


def _shared(
    taken: Sequence[ComputeUnit],
    a: Matrix,
    b: Matrix,
    mode: int,
    columns: Sequence[Vector | None],
    out: torch.Tensor | None,
) -> torch.Tensor:
    """Split the longer side of the result over units with sizes in registers, and start all."""
    if mode and not all(u.driver.has_epilogue for u in taken):
        return _finish(_shared(taken, a, b, INT32, (None, None), None), mode, columns, out)
    (m, k), n = a.shape, b.shape[1]
    result = _room(m, n, mode) if out is None else out
    c = operand(result)
    reads = (a, b, *columns)
    timeout_s = timeout_of(m * n * k)
    if len(taken) == 1:
        driver = taken[0].driver
        driver.do_runs([driver.plan(a, b, c, mode, *columns)], reads, (c,), timeout_s)
    else:
        with Runs(reads, (c,), timeout_s) as runs:
            for unit, part in zip(taken, _parts(taken, m, n), strict=True):
                work = part[1] * part[3] * k
                if work:
                    values = unit.driver.plan(a, b, c, mode, *columns, part)
                    learn = partial(unit.learn, work) if work >= WORTH_SPLITTING else None
                    runs.start(unit.driver, values, learn)
    memory.note_write(result)
    return result


def _parts(taken: Sequence[ComputeUnit], m: int, n: int) -> list[tuple[int, int, int, int]]:
    """Return for each unit its first row, rows, first column and columns."""
    if m >= n:
        bounds = share(m, rates(taken))
        return [(begin, end - begin, 0, n) for begin, end in itertools.pairwise(bounds)]
    # Whole words, since that is how int8 results are stored.
    bounds = [min(4 * bound, n) for bound in share(-(-n // 4), rates(taken))]
    return [(0, m, begin, end - begin) for begin, end in itertools.pairwise(bounds)]


def _room(m: int, n: int, mode: int) -> torch.Tensor:
    """Make the result's tensor; rows of int8 are whole words."""
    dtype = result_dtype(mode)
    if dtype is not torch.int8 or n % 4 == 0:
        return memory.new((m, n), dtype)
    return memory.new((m, -(-n // 4) * 4), dtype)[:, :n]


def _tiled(
    taken: Sequence[ComputeUnit],
    a: Matrix,
    b: Matrix,
    mode: int,
    columns: Sequence[Vector | None],
    out: torch.Tensor | None,
) -> torch.Tensor:
    drivers = [u.driver for u in taken]
    left, right = memory.alias(a.tensor), memory.alias(b.tensor)
    sums = multiply_tiled(drivers, left, right, timeout_s=timeout_of(256**3))
    return _finish(memory.from_cma(sums), mode, columns, out)


def _finish(
    sums: torch.Tensor, mode: int, columns: Sequence[Vector | None], out: torch.Tensor | None
) -> torch.Tensor:
    """Do the epilogue on the CPU where the kernel has none."""
    if mode == INT32 and out is None:
        return sums
    bias, scale = (None if o is None else memory.alias(o.tensor) for o in columns)
    values = finish(memory.alias(sums), mode, scale, bias)
    m, n = sums.shape
    result = _room(m, n, mode) if out is None else out
    memory.alias(result).copy_(values)
    memory.note_write(result)
    return result


def finish(
    sums: torch.Tensor, mode: int, scale: torch.Tensor | None, bias: torch.Tensor | None
) -> torch.Tensor:
    """Do on the CPU what the kernel's epilogue does, to the same bits.

    Parameters
    ----------
    sums : torch.Tensor
        int32 [..., N] on the CPU.
    mode : int
        See :mod:`pynq_torch.kernels.epilogue`.
    scale, bias : torch.Tensor or None
        [N] on the CPU, where `mode` asks for them.

    Returns
    -------
    torch.Tensor
        [..., N] of int32, int8 or float32: ``relu(sums + bias)``,
        ``clamp(round((sums + bias).float() * scale), -128, 127)`` (from 0 with ReLU), or
        ``relu(sums.float() * scale + bias)``.
    """
    assert bool(mode & BIAS) == (bias is not None)
    kind = mode & KIND
    if kind == FLOAT32:
        assert scale is not None
        values = sums.to(torch.float32).mul_(scale)
        values = values if bias is None else values.add_(bias)
        return values.relu_() if mode & RELU else values
    values = sums if bias is None else sums + bias
    if kind == INT8:
        assert scale is not None
        low = 0 if mode & RELU else -128
        values = values.to(torch.float32).mul_(scale).round_().nan_to_num_(0.0)
        return values.clamp_(low, 127).to(torch.int8)
    return values.relu() if mode & RELU else values
