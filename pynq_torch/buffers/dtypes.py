"""Which numpy dtype holds a dtype of torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from pynq_torch.errors import DtypeError

__all__ = ["AS_BITS", "numpy_dtype"]

#: torch dtypes that numpy lacks -> the integers that hold their bits.
AS_BITS = {
    "bfloat16": "uint16",
    "float8_e4m3fn": "uint8",
    "float8_e5m2": "uint8",
    "float8_e4m3fnuz": "uint8",
    "float8_e5m2fnuz": "uint8",
}
_SAME = (
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
_kinds: dict[Any, np.dtype[Any]] = {}


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the numpy dtype that holds `dtype`.

    Parameters
    ----------
    dtype : torch.dtype or numpy dtype
        bfloat16 and the float8 kinds, which numpy lacks, are stored as unsigned integers of their
        width: the bits are what the PL reads.

    Raises
    ------
    DtypeError
        Quantised, complex32 and sub-byte dtypes.
    """
    known = _kinds.get(dtype) if type(dtype).__hash__ is not None else None
    if known is None:
        known = _kind_of(dtype)
        if str(dtype).startswith("torch."):  # there are few; dtypes of numpy are without end
            _kinds[dtype] = known
    return known


def _kind_of(dtype: Any) -> np.dtype[Any]:
    name = str(dtype)
    if not name.startswith("torch."):
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise DtypeError(
                f"dtype {kind} has no place in a CMA buffer: "
                "the PL reads bytes, not Python objects; use a numeric dtype"
            )
        return kind
    name = name.removeprefix("torch.")
    if name in _SAME:
        return np.dtype(name)
    if name in AS_BITS:
        return np.dtype(AS_BITS[name])
    if name.startswith(("qint", "quint")):
        raise DtypeError(
            f"dtype torch.{name} carries a scale that a buffer cannot hold; pass tensor.int_repr() "
            "and keep scale and zero_point beside it"
        )
    raise DtypeError(
        f"dtype torch.{name} has no equivalent in numpy; expected one of "
        f"{', '.join((*_SAME, *AS_BITS))}; convert with tensor.to(...)"
    )
