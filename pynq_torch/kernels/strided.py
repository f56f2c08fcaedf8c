"""Walking over strided operands: fewer dimensions where they lie in a row, loops for the rest."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

__all__ = ["broadcast_strides", "broadcasts", "collapse", "outer_offsets"]


def broadcasts(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Whether a tensor of `shape` can be read as if it had the shape `target`."""
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(have in (1, want) for have, want in pairs)


def broadcast_strides(
    shape: Sequence[int], strides: Sequence[int], target: Sequence[int]
) -> tuple[int, ...]:
    """Return the strides with which a tensor is read as if it had the shape `target`.

    Examples
    --------
    >>> broadcast_strides((3, 1), (1, 1), (2, 3, 4))
    (0, 1, 0)
    """
    missing = len(target) - len(shape)
    own = (0 if n == 1 else s for n, s in zip(shape, strides, strict=True))
    return (*(0,) * missing, *own)


def collapse(
    shape: Sequence[int], *strides: Sequence[int]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Join dimensions that every operand walks through without a jump; drop those of size 1.

    Parameters
    ----------
    shape : sequence of int
        Common to all operands; no size is 0.
    *strides : sequence of int
        One for each operand, as long as `shape`.

    Returns
    -------
    sizes : tuple of int
        At least one.
    strides : list of tuple of int
        For each operand.

    Examples
    --------
    >>> collapse((2, 3, 4), (12, 4, 1), (4, 0, 1))
    ((2, 3, 4), [(12, 4, 1), (4, 0, 1)])
    >>> collapse((2, 3, 4), (12, 4, 1), (12, 4, 1))
    ((24,), [(1,), (1,)])
    """
    sizes: list[int] = []
    steps: list[list[int]] = []
    for size, *step in zip(shape, *strides, strict=True):
        if size == 1:
            continue
        if sizes and all(last == size * now for last, now in zip(steps[-1], step, strict=True)):
            sizes[-1] *= size
            steps[-1] = step
        else:
            sizes.append(size)
            steps.append(step)
    if not sizes:
        return (1,), [(1,) for _ in strides]
    return tuple(sizes), [tuple(column) for column in zip(*steps, strict=True)]


def outer_offsets(
    sizes: Sequence[int], strides: Sequence[Sequence[int]], inner: int
) -> Iterator[tuple[int, ...]]:
    """Go through the dimensions that a kernel's own loops do not reach.

    Parameters
    ----------
    sizes, strides
        From `collapse`.
    inner : int
        Dimensions, counted from the last, that the kernel walks through itself.

    Yields
    ------
    tuple of int
        For each operand the offset, in elements, at which one run of the kernel begins.
    """
    outer = max(0, len(sizes) - inner)
    for index in itertools.product(*(range(n) for n in sizes[:outer])):
        yield tuple(sum(i * s for i, s in zip(index, own[:outer], strict=True)) for own in strides)
