"""Registers of a pointwise kernel that do not depend on how it walks: pointers and scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .operand import float_bits, word
from .pointwise_walk import Pointer
from .tables.pointwise import Function

if TYPE_CHECKING:
    import torch

__all__ = ["MASK", "bits_of", "registers_of"]

#: Bit of register ``scalars``: c is a condition, read through port ``mask``.
MASK = 8


def bits_of(value: float, dtype: torch.dtype) -> int:
    """Return a number as a register of the kernels for a dtype takes it."""
    return float_bits(value) if dtype.is_floating_point else word(int(value))


def registers_of(
    kind: str,
    function: Function,
    operands: Sequence[Any],
    p: float,
    q: float,
    dtype: torch.dtype,
) -> tuple[list[Pointer], list[int]]:
    """Return what does not change from run to run.

    Parameters
    ----------
    kind : {"unary", "binary", "ternary"}
        Of the kernel.
    function : Function
        Its opcode is written.
    operands : sequence of Operand or number
        As many as the kind has.
    p, q : float
        Parameters.
    dtype : torch.dtype
        The kernel's.

    Returns
    -------
    pointers : list of Pointer
        All but the result; address 0 where nothing is read.
    scalars : list of int
        From ``op`` to ``q``, see `pynq_torch.kernels.tables.pointwise.registers`.
    """
    is_number = [isinstance(operand, (int, float)) for operand in operands]
    flags = sum(1 << index for index, number in enumerate(is_number) if number)
    numbers = [bits_of(o, dtype) if n else 0 for o, n in zip(operands, is_number, strict=True)]
    pointers: list[Pointer] = [
        (0, 0, index) if is_number[index] else (operand.address, operand.itemsize, index)
        for index, operand in enumerate(operands)
    ]
    values = [function.opcode]
    if kind == "binary":
        values += [flags, numbers[0] or numbers[1]]
    elif kind == "ternary":
        mask = (0, 0, 2)
        if function.name == "where" and not flags & 4:
            flags |= MASK
            mask, pointers[2] = pointers[2], mask
        pointers.append(mask)
        values += [flags, *numbers]
    values += [bits_of(p, dtype), bits_of(q, dtype)]
    return pointers, values
