"""What ``gemm`` does with its sums before it stores them: the ``mode`` register, and its checks.

The bits are those of ``hw/kernels/gemm/gemm_epilogue.hpp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arguments import ArgumentError, check_tensor

if TYPE_CHECKING:
    import torch

__all__ = ["BIAS", "FLOAT32", "INT8", "INT32", "RELU", "check_columns", "dtype_name", "mode_of"]

INT32, INT8, FLOAT32 = 0, 1, 2  #: What c holds.
KIND = 3  #: The bits that say so.
BIAS, RELU = 4, 8  #: Added to a kind.
WORD = 4  #: Bytes in a word of c, columns of int8 in it.

_NAMES = ("int32", "int8", "float32")


def mode_of(dtype: torch.dtype, *, bias: bool = False, relu: bool = False) -> int:
    """Return the value of the ``mode`` register.

    Parameters
    ----------
    dtype : torch.dtype
        Of the result: int32, int8 or float32.
    bias, relu : bool
        Whether a bias is added, and whether negative values become 0.

    Raises
    ------
    ArgumentError
        The kernel stores no such dtype.

    Examples
    --------
    >>> import torch
    >>> mode_of(torch.int8, bias=True, relu=True)
    13
    """
    name = str(dtype).removeprefix("torch.")
    if name not in _NAMES:
        raise ArgumentError(
            f"dtype is {dtype}; expected torch.int32, torch.int8 or torch.float32: gemm stores "
            "nothing else; convert its result"
        )
    return _NAMES.index(name) | (BIAS if bias else 0) | (RELU if relu else 0)


def dtype_name(mode: int) -> str:
    """Return the dtype of c under `mode`, e.g. ``"int8"``."""
    if mode & KIND == KIND or not 0 <= mode < 16:
        raise ArgumentError(
            f"mode is {mode}; expected INT32 (0), INT8 (1) or FLOAT32 (2), plus BIAS (4) and "
            "RELU (8) where wanted; see mode_of()"
        )
    return _NAMES[mode & KIND]


def check_columns(cu: str, mode: int, n: int, bias: Any, scale: Any) -> None:
    """Raise `ArgumentError` unless the tensors that `mode` asks for, and no others, are given.

    Parameters
    ----------
    cu : str
        The compute unit, for the message.
    mode : int
        See :func:`mode_of`.
    n : int
        Columns of c.
    bias : torch.Tensor or None
        [N]: float32 for float32 results, int32 otherwise.
    scale : torch.Tensor or None
        float32 [N]; with int8 and float32 results only.
    """
    import torch

    if (scale is None) != (mode & KIND == INT32):
        found = "none is given" if scale is None else "one is given"
        wanted = "no scale" if mode & KIND == INT32 else f"scale=, a float32 tensor of {n}"
        raise ArgumentError(
            f"{cu}: a result of {dtype_name(mode)} takes {wanted}; {found}. Sums are scaled on "
            "their way to int8 and float32 (dtype=)",
            cu,
        )
    if bias is not None:
        kind = torch.float32 if mode & KIND == FLOAT32 else torch.int32
        check_tensor(cu, "bias", bias, kind, shape=(n,))
    if scale is not None:
        check_tensor(cu, "scale", scale, torch.float32, shape=(n,))
