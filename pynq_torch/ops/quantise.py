"""Floating tensors as int8, dynamic and symmetric; a tensor is packed once.

A tensor ``x`` becomes ``q = round(x * (127 / max|x|))`` with halves to even, and
``x ~ q * scale`` with ``scale = max|x| / 127``: per tensor for activations, per output channel
for weights. Zero maps to zero. The error is at most half a step,
``|x - q * scale| <= scale / 2``, plus the rounding of the float32 product (2**-16 of a step).

The scheme is that of torch.ao's dynamic quantisation with symmetric qint8; [-127, 127] keeps it
symmetric.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch

from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined

__all__ = [
    "FLOATS",
    "NOT_FINITE",
    "TOO_LARGE",
    "ZERO_BELOW",
    "Packed",
    "error_bound",
    "kept",
    "overflows",
    "per_column",
    "per_tensor",
    "scale_of",
    "write_columns",
    "write_steps",
]

STEPS = 127
#: Elements up to which a call of numpy, not of torch, does it sooner.
SMALL = 1 << 13
#: Columns with nothing of this size are zero: 127 / max|column| must be a float32, and the scale a
#: normal one with room for the activations' scale, since the PL's float cores know no others.
ZERO_BELOW = 2.0**-110
_INF = float("inf")
#: What a float32 can hold.
_LARGEST = float(torch.finfo(torch.float32).max)
NOT_FINITE = Declined("values are infinite or not numbers, which int8 cannot hold")
TOO_LARGE = Declined("sums of values as large as these could leave float32 when they are scaled")
#: What is quantised where a program has opted in to it.
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
T = TypeVar("T")


@dataclass(slots=True)
class Packed:
    """A tensor in int8.

    Attributes
    ----------
    values : torch.Tensor
        int8 on device "pynq", row-major.
    scale : float or torch.Tensor
        One number, or float32 [columns] on the CPU.
    top : float
        The largest scale, for `overflows`; 0 where that does not matter.
    operand : Any
        The values as an operand of the units, where one has been made.
    """

    values: torch.Tensor
    scale: Any
    top: float = 0.0
    operand: Any = None


def kept(
    tensor: torch.Tensor, kind: Hashable, make: Callable[..., T], *args: Any, recycle: bool = False
) -> T:
    """Return what `make` made of a tensor the last time, if it was not written since.

    Parameters
    ----------
    tensor : torch.Tensor
        On device "pynq".
    kind : hashable
        What `make` makes.
    make : callable
        Called with `args` where nothing is kept. What it returns is kept as long as the tensor's
        storage, unless others can write to its memory (`memory.share`).
    recycle : bool
        Give `make` as a last argument what was kept and is stale, or ``None``: a buffer that is
        filled again and again needs no new memory each time.
    """
    storage: Any = tensor.untyped_storage()
    if storage.shared:
        return make(*args)
    kinds = storage.packed
    if kinds is None:
        kinds = storage.packed = {}
    key = (kind, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
    found = kinds.get(key)
    # Before: what is written meanwhile, by another thread, makes stale what is made here.
    writes = storage.writes
    if found is not None and found[0] == writes:
        result: T = found[1]
        return result
    made = make(*args, found[1] if found is not None else None) if recycle else make(*args)
    if found is None and kinds:
        # A view of other memory of the storage may be asked for next; what is stale never is.
        for old in [k for k, (seen, _) in kinds.items() if seen != writes]:
            del kinds[old]
    kinds[key] = (writes, made)
    return made


def scale_of(largest: float) -> float:
    """Return the scale of a tensor whose largest magnitude is `largest`."""
    return largest / STEPS if largest else 1.0


def per_tensor(values: torch.Tensor) -> Packed | Declined:
    """Quantise a floating tensor on the CPU, which is not empty, by its largest magnitude.

    `NOT_FINITE` where a value is.
    """
    packed = memory.new(values.shape, torch.int8)
    scale = write_steps(values, memory.block_of(packed).cpu)
    return NOT_FINITE if scale is None else Packed(packed, scale, scale)


def pack(
    tensor: torch.Tensor, scale: float | None = None, stale: Packed | Declined | None = None
) -> Packed | Declined:
    """Quantise a floating tensor on device "pynq", which is not empty, with one scale.

    `scale` is that of `write_steps`. `stale` is what the tensor was before it was written to: its
    memory is used again. `NOT_FINITE` where a value is.
    """
    shape, operand = tensor.shape, None
    if isinstance(stale, Packed):
        made, operand = stale.values, stale.operand
        memory.note_write(made)
    else:
        made = memory.new(shape, torch.int8)
    source = None
    if tensor.dtype is torch.float32 and shape.numel() <= SMALL:
        source = memory.array(tensor)
    if source is None:
        found = write_steps(memory.alias(tensor), memory.block_of(made).cpu, scale)
    else:
        found = _write_few(source, memory.array(made), scale)
    return NOT_FINITE if found is None else Packed(made, found, found, operand)


def write_steps(
    values: torch.Tensor, out: torch.Tensor, scale: float | None = None
) -> float | None:
    """Write a tensor in steps of one scale.

    Parameters
    ----------
    values : torch.Tensor
        Floating, on the CPU, at least one element, without gradient.
    out : torch.Tensor
        int8 on the CPU, row-major, of the shape of `values`:
        ``clamp(round(values.float() * factor), -128, 127)`` with ``factor = float32(1 / scale)``,
        or ``float32(127 / max|values|)`` where no scale is given, so that nothing is cut off.
    scale : float, optional
        A normal float32 greater than 0. Default: from the largest magnitude, see `scale_of`.

    Returns
    -------
    float or None
        The scale; ``None`` where a value is not finite, and `out` is undefined.
    """
    if values.dtype is torch.float32 and values.numel() <= SMALL and values.is_contiguous():
        return _write_few(values.view(-1).numpy(), out.view(-1).numpy(), scale)
    values = values.float()
    largest = float(torch.linalg.vector_norm(values, float("inf")))
    if not largest < _INF:
        return None
    if scale is None:
        scale, factor = scale_of(largest), STEPS / largest if largest else 1.0
        steps = values.double() * factor if factor > _LARGEST else values * factor
        out.copy_(steps.round_())
    else:
        out.copy_((values * (1 / scale)).round_().clamp_(-STEPS - 1, STEPS))
    return scale


def _write_few(
    values: np.ndarray[Any, Any], out: np.ndarray[Any, Any], scale: float | None
) -> float | None:
    """Do the same for vectors with numpy, whose calls cost half of torch's, to the same bits."""
    magnitudes = np.abs(values)
    # A NaN counts as the largest; max() takes three times as long.
    largest = float(magnitudes[magnitudes.argmax()])
    if not largest < _INF:
        return None
    cut = scale is not None
    if scale is None:
        scale, factor = scale_of(largest), STEPS / largest if largest else 1.0
    else:
        factor = 1 / scale
    if factor > _LARGEST:  # tiny values only
        steps = values.astype(np.float64) * factor
    elif largest * factor < _LARGEST / 2:  # far from it: in float32 the factor may be larger
        steps = values * np.float32(factor)
    else:
        with np.errstate(over="ignore"):  # infinite, and cut off below
            steps = values * np.float32(factor)
    np.rint(steps, out=steps)
    if cut and largest * factor > STEPS:
        np.maximum(steps, -STEPS - 1, out=steps)
        np.minimum(steps, STEPS, out=steps)
    out[...] = steps
    return scale


def per_column(values: torch.Tensor) -> Packed | Declined:
    """Quantise a matrix [K, N] on the CPU with one scale a column: an output channel.

    `NOT_FINITE` where a value is.
    """
    packed = memory.new(values.shape, torch.int8)
    scale = write_columns(values, memory.block_of(packed).cpu)
    return NOT_FINITE if scale is None else Packed(packed, scale, float(scale.max()))


def overflows(left: Packed, right: Packed, k: int) -> bool:
    """Whether sums of `k` products could leave float32, though no value does.

    Scaled afterwards, such a sum would be infinite, or no number, where its terms cancel.
    """
    return left.top * right.top * k >= _LARGEST / STEPS**2


def write_columns(values: torch.Tensor, out: torch.Tensor) -> torch.Tensor | None:
    """Write a matrix in steps of one scale a column.

    Parameters
    ----------
    values : torch.Tensor
        Floating [K, N] on the CPU, any strides, without gradient.
    out : torch.Tensor
        int8 [K, N] on the CPU: ``round(values.float() * (127 / max|column|))``; a column whose
        magnitudes are all less than `ZERO_BELOW` is zero.

    Returns
    -------
    torch.Tensor or None
        float32 [N], ``max|column| / 127``, 1 for a zero column; ``None`` where a value is not
        finite, and `out` is undefined.
    """
    values = values.float()
    largest = torch.linalg.vector_norm(values, _INF, dim=0)
    if not bool(torch.isfinite(largest).all()):
        return None
    tiny = largest < ZERO_BELOW
    scale = torch.where(tiny, 1.0, largest / STEPS)
    factor = torch.where(tiny, 0.0, STEPS / largest)
    out.copy_((values * factor).round_())
    return scale


def error_bound(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return how far ``a @ b`` in int8 can be from the exact product, element by element.

    Parameters
    ----------
    a, b : torch.Tensor
        Floating [M, K] and [K, N], finite.

    Returns
    -------
    torch.Tensor
        float64 [M, N] on the CPU; where a result of float16 or bfloat16 is infinite, its bound does
        not hold.

    Notes
    -----
    With steps ``s`` of `a` and ``t[n]`` of the columns of `b`, rounding moves a value by at most
    half a step (and 2**-15 of one, from float32), so that a term moves by at most
    ``|a| t/2 + |b| s/2 + s t/4``. Scaling the sum in float32 rounds four times. A matrix or column
    with nothing of `ZERO_BELOW` may count as zero. Operands in half precision give a result that is
    rounded once more, by half a step of their dtype; below the normal numbers all steps are alike.
    """
    left, right = a.detach().cpu().double(), b.detach().cpu().double()
    half = 0.5 + 2.0**-15
    s = half * left.abs().max() / STEPS if left.numel() else left.new_zeros(())
    t = half * right.abs().amax(0) / STEPS if right.numel() else right.new_zeros(right.shape[1])
    k = left.shape[1]
    sums = left.abs().sum(1)[:, None] * t + s * right.abs().sum(0) + k * s * t
    largest = (left.abs() @ right.abs()) + sums
    tops = [side.abs().max() if side.numel() else 0.0 for side in (left, right)]
    zero = ZERO_BELOW * (1 + sum(tops))
    bound = sums + largest * 2.0**-21 + k * zero
    if a.dtype is b.dtype and a.dtype in (torch.float16, torch.bfloat16):
        kind = torch.finfo(a.dtype)
        size = ((left @ right).abs() + bound).clamp_(min=kind.smallest_normal)
        bound += size * kind.eps / 2
    return bound
