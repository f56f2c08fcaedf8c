"""What makes a result on the device the same as the CPU's: value, dtype, shape, strides, place."""

from __future__ import annotations

import enum
from typing import Any

import torch

from .samples import DEVICE


class Values(enum.Enum):
    """How values are compared."""

    EXACT = "bit by bit; any NaN equals any NaN"
    CLOSE = "largest error within TOLERANCE of the largest value; strides are free"
    IGNORED = "not at all: uninitialised memory"


#: Of values that torch computes by another formula: some roundings of the dtype in a sum.
TOLERANCE = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.float16: 8e-3,
    torch.bfloat16: 6e-2,
}
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _equal(x_cpu: torch.Tensor, x: torch.Tensor) -> bool:
    """Whether two CPU tensors hold the same bits; any NaN equals any NaN."""
    if x_cpu.is_complex():
        return _equal(torch.view_as_real(x_cpu), torch.view_as_real(x))
    bits = _BITS[x_cpu.element_size()]
    expected, found = x_cpu.contiguous().view(bits), x.contiguous().view(bits)
    if torch.equal(expected, found):
        return True
    return bool(((expected == found) | (x_cpu.isnan() & x.isnan())).all())


def _parts(x: torch.Tensor) -> list[torch.Tensor] | None:
    """Return the dense tensors that make up `x`, or ``None`` where it is dense itself."""
    if x.layout is torch.sparse_coo:
        return [x._indices(), x._values()]
    if x.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [x.crow_indices(), x.col_indices(), x.values()]
    if x.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [x.ccol_indices(), x.row_indices(), x.values()]
    return None


def _meta(x: torch.Tensor) -> list[tuple[str, Any]]:
    meta = [
        ("dtype", x.dtype),
        ("shape", tuple(x.shape)),
        ("layout", x.layout),
        ("requires_grad", x.requires_grad),
    ]
    if x.layout is torch.strided and x.numel():
        # Only the strides that decide where an element lies.
        steps = [s for n, s in zip(x.shape, x.stride(), strict=True) if n > 1]
        meta += [("strides", steps), ("storage_offset", x.storage_offset())]
    return meta


def _has_layout_of_its_own(x: torch.Tensor) -> bool:
    """Whether `x` is no view, and yet lies in a larger memory: its kernel's scratch memory."""
    dense = torch.ops.aten.is_non_overlapping_and_dense.default
    return x.layout is torch.strided and x._base is None and not dense(x)


def _tensor_difference(
    x_cpu: torch.Tensor, x: torch.Tensor, where: str, values: Values, place: bool
) -> str | None:
    expected_place = DEVICE if x_cpu.device.type == "cpu" else x_cpu.device.type
    if place and x.device.type != expected_place:
        return f"{where}: device {x.device}, expected {expected_place}"
    free = values is Values.CLOSE or _has_layout_of_its_own(x_cpu)
    for (name, expected), (_, found) in zip(_meta(x_cpu), _meta(x), strict=False):
        if expected != found and not (free and name in ("strides", "storage_offset")):
            return f"{where}: {name} {found}, expected {expected}"
    if values is Values.IGNORED:
        return None
    parts = _parts(x_cpu)
    if parts is not None:
        # Copies: whether a part is a view of another tensor's is no property of the sparse one.
        copies = [[part.detach().clone() for part in of] for of in (parts, _parts(x) or [])]
        return difference(*copies, f"{where}'s parts", values=values)
    x_cpu = x_cpu.detach().resolve_conj().resolve_neg()
    back = x.detach().cpu().resolve_conj().resolve_neg()
    if back.dtype != x_cpu.dtype or back.shape != x_cpu.shape:
        return f"{where}: .cpu() gives {back.dtype} {tuple(back.shape)}"
    if x_cpu.is_quantized:
        x_cpu, back = x_cpu.int_repr(), back.int_repr()
    if x_cpu.device.type != "cpu":
        return None
    same = _equal(x_cpu, back) if values is Values.EXACT else _close(x_cpu, back)
    return None if same else f"{where}: values differ{_by(x_cpu, back)}"


def _close(x_cpu: torch.Tensor, x: torch.Tensor) -> bool:
    if not x_cpu.is_floating_point():
        return _equal(x_cpu, x)
    dtype = x_cpu.dtype
    finite = x_cpu.isfinite()
    if not torch.equal(finite, x.isfinite()) or not _equal(x_cpu[~finite], x[~finite]):
        return False
    if not finite.any():
        return True
    x_cpu, x = x_cpu[finite].double(), x[finite].double()
    return bool((x - x_cpu).abs().max() <= TOLERANCE[dtype] * x_cpu.abs().max())


def _by(x_cpu: torch.Tensor, x: torch.Tensor) -> str:
    if x_cpu.dtype.is_complex or not x_cpu.numel():
        return ""
    error = (x.double() - x_cpu.double()).abs()
    index = int(error.nan_to_num(nan=float("inf")).argmax())
    found, expected = x.reshape(-1)[index].item(), x_cpu.reshape(-1)[index].item()
    return f", most at flat index {index}: {found}, expected {expected}"


def difference(
    cpu: Any,
    found: Any,
    where: str = "result",
    *,
    values: Values = Values.EXACT,
    place: bool = True,
) -> str | None:
    """Return a sentence on the first difference between the CPU's result and the device's.

    Parameters
    ----------
    cpu, found : any
        Tensors in any nesting of lists, tuples and dicts, or plain values.
    where : str
        What the sentence calls the result.
    values : Values
        How values are compared.
    place : bool
        Whether tensors have to be on the device, as results have; arguments lie where they are.

    Returns
    -------
    str or None
        ``None``: the same.
    """
    if isinstance(cpu, torch.Tensor):
        if not isinstance(found, torch.Tensor):
            return f"{where}: {type(found).__name__}, expected a tensor"
        return _tensor_difference(cpu, found, where, values, place)
    if isinstance(cpu, torch.device) or (isinstance(cpu, str) and cpu == "cpu"):
        same = torch.device(found).type == DEVICE
        return None if same else f"{where}: {found}, expected {DEVICE}"
    if type(cpu) is not type(found):
        return f"{where}: {type(found).__name__}, expected {type(cpu).__name__}"
    if isinstance(cpu, dict):
        if list(cpu) != list(found):
            return f"{where}: keys {list(found)}, expected {list(cpu)}"
        cpu, found = list(cpu.values()), list(found.values())
    if isinstance(cpu, (list, tuple)) and not isinstance(cpu, torch.Size):
        if len(cpu) != len(found):
            return f"{where}: {len(found)} items, expected {len(cpu)}"
        for index, (x_cpu, x) in enumerate(zip(cpu, found, strict=True)):
            said = difference(x_cpu, x, f"{where}[{index}]", values=values, place=place)
            if said is not None:
                return said
        return None
    if isinstance(cpu, float) and cpu != cpu and found != found:
        return None
    if callable(cpu) or values is Values.IGNORED:
        return None
    same = cpu == found or repr(cpu) == repr(found)
    return None if same else f"{where}: {found!r}, expected {cpu!r}"
