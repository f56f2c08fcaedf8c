"""The compute units of the loaded overlay that multiply matrices, and sharing a product on them."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from pynq_torch.errors import BoardHang, KernelBusy, PynqTorchError
from pynq_torch.kernels.epilogue import BIAS, FLOAT32, INT8, INT32, KIND, RELU
from pynq_torch.kernels.gemm import Gemm, share
from pynq_torch.kernels.matrix_mult import MatrixMult, multiply_tiled
from pynq_torch.overlay import overlay_in_use
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.record import transfer
from pynq_torch.waits.polling import polls

from . import slots
from .slots import BASE_TIMEOUT_S, Slot

__all__ = [
    "KERNELS",
    "Matrix",
    "Unit",
    "Units",
    "Vector",
    "finish",
    "multiply",
    "result_dtype",
    "units",
]

#: Kernels whose drivers these are.
KERNELS = ("gemm", "gemm_lut", "matrix_mult", "matrix_mult_fabric")
#: Multiplications a second below which a unit has hung: a tenth of csim's on a slow PC.
SLOWEST = 5e6
#: Cells below which a product is not worth the second start.
WORTH_SPLITTING = 32 * 32 * 32


@dataclass(eq=False)
class Unit(Slot):
    """A compute unit that multiplies matrices.

    Attributes
    ----------
    driver : Gemm or MatrixMult
        Its driver.
    modelled : float
        Its speed by the kernel's latency model, to any scale.
    measured : float
        Multiplications a second as runs have shown; 0 until there was one.
    """

    modelled: float = 1.0
    measured: float = 0.0

    @property
    def kernel_name(self) -> str:
        """The kernel it is an instance of."""
        return str(self.driver.kernel_name)

    @cached_property
    def epilogue(self) -> bool:
        """Whether it can scale its sums, add a bias and apply ReLU on the way to memory."""
        return any("mode" in p.names for p in self.driver.parameters)

    def learn(self, work: float, seconds: float) -> None:
        """Follow the rate that a run showed; one odd run does not upset the next split."""
        if seconds > 0 and work >= WORTH_SPLITTING:
            seen = work / seconds
            self.measured += (0.3 if self.measured else 1.0) * (seen - self.measured)


def rates(taken: Sequence[Unit]) -> list[float]:
    """Return how fast units are, to one scale: as measured, and by the model where never seen."""
    known = [u.measured / u.modelled for u in taken if u.measured]
    scale = sum(known) / len(known) if known else 1.0
    return [u.measured or u.modelled * scale for u in taken]


class Units:
    """What an overlay offers to operators.

    Parameters
    ----------
    overlay : Overlay or None
        Loaded by `pynq_torch.load`.
    """

    def __init__(self, overlay: Any) -> None:
        self.overlay = overlay
        drivers = list(overlay.kernels.values()) if overlay is not None else []
        self.gemms = [Unit(d, modelled=_modelled(d)) for d in drivers if isinstance(d, Gemm)]
        self.tiles = [Unit(d, modelled=_modelled(d)) for d in drivers if isinstance(d, MatrixMult)]
        self.all = (*self.gemms, *self.tiles)
        self.device = overlay.device if overlay is not None else None

    def __bool__(self) -> bool:
        return bool(self.all)

    def take(self, most: int, avoid: Collection[str] = ()) -> list[Unit]:
        """Take up to `most` units that stand still; wait for one where none does.

        Units with sizes in registers come first: where there is one, those of fixed shape are left
        alone, because every product costs them padding.

        Parameters
        ----------
        most : int
            At least 1.
        avoid : collection of str
            Compute units to leave alone.

        Returns
        -------
        list of Unit
            For `slots.give_back`.

        Raises
        ------
        KernelBusy
            See `slots.take`.
        """
        kind: Sequence[Unit] = self.gemms or self.tiles
        if avoid:
            kind = [u for u in kind if u.cu not in avoid]
        return slots.take(kind, most)


def _modelled(driver: Any) -> float:
    """Return the multiplications a second that the kernel's latency model gives, to any scale."""
    from pynq_torch.timing import model_cycles

    cycles = model_cycles(driver.kernel_name, m=256, n=256, k=256)
    return 256.0**3 / cycles if cycles else 1.0


_lock = threading.Lock()
_found = Units(None)


def units() -> Units:
    """Return the units of the overlay in the PL; empty where none is loaded."""
    global _found
    overlay = overlay_in_use()
    if overlay is not _found.overlay:
        with _lock:
            if overlay is not _found.overlay:
                _found = Units(overlay)
    return _found


# ---- operands ------------------------------------------------------------------------------------


class Matrix:
    """An int8 matrix where the units can read it.

    Parameters
    ----------
    tensor : torch.Tensor
        int8 [rows, columns] on device "pynq"; it is copied where its memory does not allow it.
    device : pynq.Device
        The board of the units.
    constant : bool
        Whether the memory will not be written to while this object lives, so that the CPU's cache
        is written back once.

    Attributes
    ----------
    tensor : torch.Tensor
        Elements of a row side by side.
    address : int
        Physical.
    stride : int
        Elements from row to row.
    memory : Memory
        To flush.
    """

    __slots__ = ("address", "columns", "constant", "flushed", "memory", "rows", "stride", "tensor")

    def __init__(self, tensor: torch.Tensor, device: Any, *, constant: bool = False) -> None:
        rows, columns = tensor.shape
        step = tensor.stride()
        block = memory.block_of(tensor)
        if (
            (columns > 1 and step[1] != 1)
            or (rows > 1 and step[0] < columns)
            or block.memory is None
            or block.memory.device is not device
        ):
            with transfer():
                copied = memory.new(tensor.shape, torch.int8)
                block = memory.block_of(copied)
                block.cpu.copy_(memory.alias(tensor))
                tensor, step = copied, copied.stride()
        assert block.memory is not None
        self.tensor = tensor
        self.rows, self.columns = rows, columns
        self.stride = step[0] if rows > 1 else columns
        self.memory = block.memory
        self.address = block.memory.physical + int(tensor.storage_offset())
        self.constant, self.flushed = constant, False


class Vector:
    """Values for the columns of a product, where the units can read them.

    Parameters
    ----------
    tensor : torch.Tensor
        [N] of 32-bit elements side by side, on device "pynq", on the board of the units.
    constant : bool
        See `Matrix`.
    """

    __slots__ = ("address", "constant", "flushed", "memory", "tensor")

    def __init__(self, tensor: torch.Tensor, *, constant: bool = False) -> None:
        self.tensor = tensor
        self.memory = memory.held(tensor)
        self.address = self.memory.physical + 4 * int(tensor.storage_offset())
        self.constant, self.flushed = constant, False


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
    work = a.rows * a.columns * b.columns
    most = min(len(found.all), max(a.rows, b.columns)) if work >= WORTH_SPLITTING else 1
    scales, offsets = _vector(scale), _vector(bias)
    if most == 1 and found.gemms:
        # Most calls, and the quick way for them; the other cases follow below.
        unit = found.gemms[0]
        usable = (unit.epilogue or not mode) and not unit.driver.is_claimed()
        if usable and unit.lock.acquire(blocking=False):
            try:
                return _alone(unit, a, b, mode, scales, offsets, out)
            except KernelBusy:
                pass  # started by hand just now
            finally:
                slots.give_back((unit,))
    avoid: set[str] = set()
    begin = 0.0
    while True:
        taken = found.take(most, avoid)
        try:
            return _product(taken, a, b, mode, scales, offsets, out)
        except KernelBusy as error:
            # Between a look and its start, a program started the unit by hand, or it did so by its
            # registers, of which the driver knows nothing.
            begin = begin or time.perf_counter()
            if time.perf_counter() - begin > BASE_TIMEOUT_S:
                raise
            avoid.add(error.cu)
            if avoid >= {u.cu for u in found.gemms or found.tiles}:
                avoid.clear()
                time.sleep(slots.LOOK_S)
        finally:
            slots.give_back(taken)


def _vector(values: torch.Tensor | Vector | None) -> Vector | None:
    return values if values is None or isinstance(values, Vector) else Vector(values)


def _product(
    taken: Sequence[Unit],
    a: Matrix,
    b: Matrix,
    mode: int,
    scale: Vector | None,
    bias: Vector | None,
    out: torch.Tensor | None,
) -> torch.Tensor:
    if isinstance(taken[0].driver, MatrixMult):
        return _tiled(taken, a, b, mode, scale, bias, out)
    if mode != INT32 and not all(u.epilogue for u in taken):
        sums = _shared(taken, a, b, INT32, None, None, None)
        return _finish(sums, mode, scale, bias, out)
    return _shared(taken, a, b, mode, scale, bias, out)


def timeout_of(work: int) -> float:
    """Return the seconds that a product of `work` multiplications may take."""
    return BASE_TIMEOUT_S + work / SLOWEST


_DTYPES = {INT32: torch.int32, INT8: torch.int8, FLOAT32: torch.float32}


def result_dtype(mode: int) -> torch.dtype:
    """Return the dtype that `mode` stores."""
    return _DTYPES[mode & KIND]


@dataclass(slots=True)
class _Run:
    """A compute unit and its share of a product."""

    unit: Unit
    run: Any
    started: float
    work: int


def _alone(
    unit: Unit,
    a: Matrix,
    b: Matrix,
    mode: int,
    scale: Vector | None,
    bias: Vector | None,
    out: torch.Tensor | None,
) -> torch.Tensor:
    """Give the whole product to a unit with sizes in registers."""
    m, n, k = a.rows, b.columns, a.columns
    result = _room(m, n, mode) if out is None else out
    target, address, ldc, flush = _placed(result, a, b, mode, scale, bias)
    offsets = 0 if bias is None else bias.address
    scales = 0 if scale is None else scale.address
    held = (a.tensor, b.tensor, result, scale and scale.tensor, bias and bias.tensor)
    values = [a.address, b.address, address, m, n, k, a.stride, b.stride, ldc]
    if unit.epilogue:
        values += (offsets, scales, mode)
    run = unit.driver.start_raw(values, held=held, flush=flush, results=(target,))
    _note_flushed(a, b, scale, bias)
    run.wait(timeout_of(m * n * k))
    memory.note_write(result)
    return result


def _placed(
    result: torch.Tensor,
    a: Matrix,
    b: Matrix,
    mode: int,
    scale: Vector | None,
    bias: Vector | None,
) -> tuple[Any, int, int, list[Any]]:
    """Return the result's memory, its address, its row stride, and what is to be flushed."""
    target = memory.held(result)
    address = target.physical + int(result.storage_offset()) * result.element_size()
    rows, n = a.rows, b.columns
    ldc = result.stride(0) if rows > 1 else -(-n // 4) * 4 if mode & KIND == INT8 else n
    # The result's memory too: what the CPU has written to it before must not come later.
    flush = [target]
    for operand in (a, b, scale, bias):
        if operand is not None and not operand.flushed:
            flush.append(operand.memory)
    return target, address, ldc, flush


def _shared(
    taken: Sequence[Unit],
    a: Matrix,
    b: Matrix,
    mode: int,
    scale: Vector | None,
    bias: Vector | None,
    out: torch.Tensor | None,
) -> torch.Tensor:
    """Split the longer side of the result over units with sizes in registers, and start all."""
    if len(taken) == 1:
        return _alone(taken[0], a, b, mode, scale, bias, out)
    m, n, k = a.rows, b.columns, a.columns
    result = _room(m, n, mode) if out is None else out
    target, address, ldc, flush = _placed(result, a, b, mode, scale, bias)
    offsets = 0 if bias is None else bias.address
    scales = 0 if scale is None else scale.address
    held = (a.tensor, b.tensor, result, scale and scale.tensor, bias and bias.tensor)
    timeout_s = timeout_of(m * n * k)
    runs: list[_Run] = []
    failure: BaseException | None = None
    try:
        for unit, (row, rows, column, width) in zip(taken, _shares(taken, m, n), strict=True):
            if not rows * width:
                continue
            values = [
                a.address + row * a.stride,
                b.address + column,
                address + (row * ldc + column) * result.element_size(),
                *(rows, width, k, a.stride, b.stride, ldc),
            ]
            if unit.epilogue:
                values += (*(c + 4 * column if c else 0 for c in (offsets, scales)), mode)
            started = time.perf_counter()
            run = unit.driver.start_raw(values, held=held, flush=flush, results=(target,))
            runs.append(_Run(unit, run, started, rows * width * k))
            _note_flushed(a, b, scale, bias)
            # Once a unit is running, writing the cache back could undo what it has stored.
            flush = []
    except BaseException as error:  # noqa: BLE001 (raised again below)
        failure = error
    failure = _wait(runs, timeout_s, failure)
    if failure is not None:
        raise failure
    memory.note_write(result)
    return result


def _note_flushed(*operands: Matrix | Vector | None) -> None:
    for operand in operands:
        if operand is not None and operand.constant:
            operand.flushed = True


def _shares(taken: Sequence[Unit], m: int, n: int) -> list[tuple[int, int, int, int]]:
    """Return for each unit its first row, rows, first column and columns."""
    if len(taken) == 1:
        return [(0, m, 0, n)]
    if m >= n:
        bounds = share(m, rates(taken))
        return [(begin, end - begin, 0, n) for begin, end in itertools.pairwise(bounds)]
    # Whole words, since that is how int8 results are stored.
    bounds = [min(4 * bound, n) for bound in share(-(-n // 4), rates(taken))]
    return [(0, m, begin, end - begin) for begin, end in itertools.pairwise(bounds)]


def _wait(
    runs: list[_Run], timeout_s: float, failure: BaseException | None
) -> BaseException | None:
    """Wait for every run, and return the first failure.

    A unit that has failed must not leave the others running on these tensors.
    """
    pauses = polls(timeout_s)
    while len(runs) > 1 and next(pauses, None) is not None:
        # In the order in which they end, so that each one's speed is known.
        for run in runs[:]:
            try:
                if not run.unit.driver.has_ended():
                    continue
            except BoardHang:
                pauses = iter(())
                break
            except PynqTorchError as error:
                ended: BaseException | None = error
            else:
                ended = _end(run, timeout_s)
            failure = failure or ended
            runs.remove(run)
    for run in runs:
        ended = _end(run, timeout_s)
        failure = failure or ended
    return failure


def _end(run: _Run, timeout_s: float) -> BaseException | None:
    try:
        run.run.wait(timeout_s)
    except BaseException as error:  # noqa: BLE001 (raised by the caller, when all have ended)
        return error
    run.unit.learn(run.work, time.perf_counter() - run.started)
    return None


def _room(m: int, n: int, mode: int) -> torch.Tensor:
    """Make the result's tensor; rows of int8 are whole words."""
    dtype = result_dtype(mode)
    if dtype is not torch.int8 or n % 4 == 0:
        return memory.new((m, n), dtype)
    return memory.new((m, -(-n // 4) * 4), dtype)[:, :n]


def _tiled(
    taken: Sequence[Unit],
    a: Matrix,
    b: Matrix,
    mode: int,
    scale: Vector | None,
    bias: Vector | None,
    out: torch.Tensor | None,
) -> torch.Tensor:
    drivers = [u.driver for u in taken]
    left, right = memory.alias(a.tensor), memory.alias(b.tensor)
    sums = multiply_tiled(drivers, left, right, timeout_s=timeout_of(256**3))
    return _finish(memory.from_cma(sums), mode, scale, bias, out)


def _finish(
    sums: torch.Tensor,
    mode: int,
    scale: Vector | None,
    bias: Vector | None,
    out: torch.Tensor | None,
) -> torch.Tensor:
    """Do the epilogue on the CPU where the kernel has none."""
    if mode == INT32 and out is None:
        return sums
    offset = memory.alias(bias.tensor) if bias is not None else None
    factor = memory.alias(scale.tensor) if scale is not None else None
    values = finish(memory.alias(sums), mode, factor, offset)
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
