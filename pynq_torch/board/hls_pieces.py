"""Arrays in registers that HLS cut into pieces, put together for compiled C++."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pynq_torch.hls.interface import Argument, Register

__all__ = ["Move", "gathers", "moves_of"]

#: First byte of an element in its piece, where the engine reads it, and its bytes.
Move = tuple[int, int, int]
_WIDTHS = (8, 16, 32, 64)


def gathers(argument: Argument) -> bool:
    """Tell whether an array in pieces can be put together before a run.

    It has one dimension, its elements are whole bytes, and the kernel only reads it: a result would
    have a valid word in each piece.
    """
    cut, length = argument.partition, argument.length or 0
    return (
        cut is not None
        and argument.kind == "memory"
        and argument.direction == "in"
        and argument.width in _WIDTHS
        and argument.ctype.count("[") == 1
        and (cut.kind != "block" or length % cut.pieces == 0)
    )


def moves_of(
    argument: Argument, registers: Iterable[Register], place: Callable[[int], int], to: int
) -> list[Move]:
    """Return a move for each element of an array; `place` says where a register is."""
    assert argument.partition is not None and argument.length is not None
    pieces = {
        int(register.name.rpartition("_")[2]): place(register.offset)
        for register in registers
        if register.argument == argument.name and register.role in ("data", "memory")
    }
    size = argument.width // 8
    found = []
    for index in range(argument.length):
        piece, inside = argument.partition.place(index, argument.length)
        found.append((pieces[piece] + inside * size, to + index * size, size))
    return found
