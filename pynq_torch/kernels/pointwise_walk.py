"""How pointwise kernels go through their operands: broadcast, in the order of memory, few loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from .strided import collapse, outer_offsets
from .tables.pointwise import DIMENSIONS

__all__ = ["Pointer", "Walk", "broadcast", "rows_of", "runs", "walk_of"]

Ints = tuple[int, ...]
#: Address, bytes of an element, and which operand's steps it goes by.
Pointer = tuple[int, int, int]


class Walk(NamedTuple):
    """Nested loops around an element.

    Attributes
    ----------
    sizes : tuple of int
        Of the loops, the innermost last.
    steps : tuple of tuple of int
        For each operand of the kernel, how far it moves in each loop, in elements; 0 where it is a
        number.
    total : int
        Elements of the result.
    strides : tuple of int
        Of the result, in the order of its dimensions.
    row_major : bool
        Whether these are the strides of a contiguous tensor.
    tail : tuple of int
        Registers from ``n0`` on, where the kernel has enough loops.
    """

    sizes: Ints
    steps: tuple[Ints, ...]
    total: int
    strides: Ints
    row_major: bool
    tail: Ints


def broadcast(shapes: Sequence[Ints]) -> Ints | None:
    """Return the common shape of operands; ``None`` where there is none."""
    shape = shapes[0]
    for other in shapes[1:]:
        if other == shape:
            continue
        if len(other) > len(shape):
            shape, other = other, shape
        wide = list(shape)
        for dim, size in enumerate(other, len(shape) - len(other)):
            if wide[dim] == 1:
                wide[dim] = size
            elif size not in (1, wide[dim]):
                return None
        shape = tuple(wide)
    return shape


#: Functions whose operands torch asks for the order of dimensions in another order than ours.
_ASKED: dict[str, Ints] = {
    "where": (2, 0, 1),
    "leaky_relu_backward": (1, 0),
    "threshold_backward": (1, 0),
}


def _asked(function: str, strides: Sequence[Ints | None]) -> list[Ints]:
    """Return the strides that the order of the dimensions follows, the most important first."""
    if function == "pow" and strides[0] is None:
        return []
    own = [strides[at] for at in _ASKED.get(function, range(len(strides)))]
    return [steps for steps in own if steps is not None]


@lru_cache(maxsize=1024)
def walk_of(
    shape: Ints, operands: tuple[tuple[Ints, Ints] | None, ...], function: str = ""
) -> Walk:
    """Return how to go through broadcast operands.

    Parameters
    ----------
    shape : tuple of int
        Of the result; no size is 0.
    operands : tuple of (shape, strides) or None
        One for each operand of the kernel: it broadcasts to `shape`, or is a number.
    function : str
        Name of the function; some lay out their results in a way of their own.

    Notes
    -----
    The result is dense in the order of the loops, and the loops follow memory: a transposed operand
    gives a transposed result, as with torch on the CPU. A number to the power of a tensor gives a
    row-major one, there as here.
    """
    each = [None if own is None else _spread(*own, shape) for own in operands]
    spread = [own for own in each if own is not None]
    order = _order(shape, _asked(function, each))
    dense = _dense(shape, order)
    row_major = _dense(shape, range(len(shape)))
    # A dimension of size 1 can have any stride: let torch see contiguous ones.
    if _alike(shape, dense, row_major):
        dense = row_major
    sizes, joined = collapse([shape[d] for d in order], *([s[d] for d in order] for s in spread))
    in_order = iter(joined)
    none = (0,) * len(sizes)
    steps = tuple(none if own is None else next(in_order) for own in operands)
    return Walk(
        sizes,
        steps,
        prod(shape),
        dense,
        dense == row_major,
        _tail(sizes[-DIMENSIONS:], steps),
    )


def _dense(shape: Ints, order: Sequence[int]) -> Ints:
    """Return the strides of a tensor without gaps whose dimensions lie in an order."""
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def _alike(shape: Ints, one: Ints, other: Ints) -> bool:
    return all(n == 1 or s == t for n, s, t in zip(shape, one, other, strict=True))


def _tail(sizes: Ints, steps: Sequence[Ints]) -> Ints:
    fill = (0,) * (DIMENSIONS - len(sizes))
    own = (s for step in steps for s in (*fill, *step[-len(sizes) :]))
    return (*(1,) * len(fill), *sizes, *own)


def _spread(shape: Ints, strides: Ints, target: Ints) -> Ints:
    """Return the strides of an operand broadcast to `target`; 0 where it is repeated."""
    missing = len(target) - len(shape)
    own = (
        0 if have == 1 != want else step
        for have, want, step in zip(shape, target[missing:], strides, strict=True)
    )
    return (*(0,) * missing, *own)


def _order(shape: Ints, steps: Sequence[Ints]) -> list[int]:
    """Return the dimensions from the slowest to the fastest.

    The rule is that of torch's TensorIterator (``reorder_dimensions`` in ATen/TensorIterator.cpp):
    the first operand that tells two dimensions apart decides; repeated ones do not.
    """
    order = list(range(len(shape)))[::-1]  # the fastest first, as torch has it
    for i in range(1, len(order)):
        at = i
        for before in range(i - 1, -1, -1):
            said = _compare(shape, steps, order[before], order[at])
            if said > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif said < 0:
                break
    return order[::-1]


def _compare(shape: Ints, steps: Sequence[Ints], one: int, other: int) -> int:
    for step in steps:
        left, right = step[one], step[other]
        if left == 0 or right == 0:
            continue
        if left != right:
            return -1 if left < right else 1
        if shape[one] > shape[other]:
            return 1
    return 0


def runs(
    walk: Walk,
    pointers: Sequence[Pointer],
    scalars: Sequence[int],
    out: int,
    itemsize: int,
    parts: int = 1,
) -> list[Ints]:
    """Return the registers of each run of the kernel.

    Parameters
    ----------
    walk : Walk
        From `walk_of`.
    pointers, scalars
        From `kernels.pointwise_registers.registers_of`.
    out : int
        Address of the result.
    itemsize : int
        Bytes of an element of the result.
    parts : int
        Compute units to share the work; the outermost loop is divided.

    Returns
    -------
    list of tuple of int
        Runs that do not depend on each other; more than `parts` only where there are more loops
        than the kernel has.
    """
    sizes, steps = walk.sizes, walk.steps
    if parts == 1 and len(sizes) <= DIMENSIONS:
        return [(*(address for address, _, _ in pointers), out, *scalars, *walk.tail)]
    inner = sizes[-DIMENSIONS:]
    block, row = prod(inner), prod(inner[1:])
    shares = _shares(inner[0], parts if len(inner) == len(sizes) else 1)
    made = []
    for number, offsets in enumerate(outer_offsets(sizes, steps, DIMENSIONS)):
        for begin, count in shares:
            at = [
                address and address + (offsets[k] + begin * steps[k][-len(inner)]) * size
                for address, size, k in pointers
            ]
            to = out + (number * block + begin * row) * itemsize
            made.append((*at, to, *scalars, *_tail((count, *inner[1:]), steps)))
    return made


def _shares(count: int, parts: int) -> list[tuple[int, int]]:
    """Return begin and length of nearly equal parts; long ones are whole bursts."""
    size = -(-count // parts)
    if size > 64:
        size = -(-size // 64) * 64
    return [(begin, min(size, count - begin)) for begin in range(0, count, size)]


def rows_of(walk: Walk) -> tuple[int, int]:
    """Return the symbols ``rows`` and ``single`` of the latency model for a walk.

    Returns
    -------
    rows : int
        Rows that do not follow one another, of the operand that has most.
    single : int
        Elements that are read one by one, where that operand's innermost step is neither 0 nor 1.
    """
    rows = walk.total // walk.sizes[-1] if len(walk.sizes) > 1 else 1
    single = any(step[-1] > 1 for step in walk.steps)
    return rows, walk.total if single else 0
