"""Runs of ``move_32``: from the shape and the strides of tensors to the values of its registers.

A walk depends on shapes and strides only, so it is planned once and kept; a run is a walk at
addresses.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Protocol

from .operand import word
from .strided import collapse, outer_offsets
from .tables.movement import INDEX_STEPS, LOOPS, OPCODES

__all__ = [
    "Place",
    "copy_runs",
    "embedding_gradient_runs",
    "gather_runs",
    "scatter_runs",
    "select_runs",
]

_WORD_BYTES = 4
_COPY, _TRANSPOSE = OPCODES["COPY"], OPCODES["TRANSPOSE"]
_GATHER, _SCATTER_ADD = OPCODES["GATHER"], OPCODES["SCATTER_ADD"]

Steps = tuple[int, ...]
Run = tuple[int, ...]


class Place(Protocol):
    """Where an operand lies; an `Operand` is one."""

    @property
    def address(self) -> int:
        """Physical, of its first element."""

    @property
    def strides(self) -> Steps:
        """In elements."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""


def copy_runs(
    shape: Sequence[int], source: int, source_strides: Steps, target: int, target_strides: Steps
) -> list[Run]:
    """Return the runs that copy one strided operand to another.

    Parameters
    ----------
    shape : sequence of int
        Of both; no size is 0. A source stride of 0 repeats.
    source, target : int
        Physical addresses.
    source_strides, target_strides : tuple of int
        In words.
    """
    walk = _copy_walk(tuple(shape), source_strides, target_strides)
    return [(source + s, 0, target + d, *scalars) for s, _, d, scalars in walk]


@functools.lru_cache(maxsize=1024)
def _copy_walk(shape: Steps, source: Steps, target: Steps) -> tuple[tuple[int, int, int, Run], ...]:
    # A copy may go through its dimensions in any order: the destination's gives long bursts there.
    order = sorted(range(len(shape)), key=lambda i: -target[i])
    sizes, (s, d) = collapse(*([o[i] for i in order] for o in (shape, source, target)))
    opcode = _COPY
    if s[-1] != 1 and d[-1] == 1 and 1 in s:
        # The dimension whose words lie in a row at the source becomes the third loop.
        opcode, last = _TRANSPOSE, len(s) - 1
        row = s.index(1)
        turned = [i for i in range(last) if i != row] + [row, last]
        sizes, s, d = (tuple(o[i] for i in turned) for o in (sizes, s, d))
    return _walk(opcode, sizes, s, (0,) * len(s), d, 0, 0)


def select_runs(x: Place, dim: int, index: Place, result: Place, shape: Sequence[int]) -> list[Run]:
    """Return the runs that put what an index chooses along a dimension in the place of that.

    They do ``x.index_select(dim, index)`` with a vector, ``embedding`` with an index of any shape
    and dimension 0, ``x[:, index]`` with dimension 1.

    Parameters
    ----------
    x, index, result : Place
        Where they lie.
    dim : int
        Of `x`; not negative.
    shape : sequence of int
        Of the result: the index's in the place of `dim`.
    """
    count = len(shape) - len(x.strides) + 1
    none, own = (0,) * count, tuple(_indexed(index, i) for i in range(count))
    behind = x.strides[dim + 1 :]
    source, steps = ((*x.strides[:dim], *none, *behind), (*(0,) * dim, *own, *(0,) * len(behind)))
    return _index_runs(_GATHER, shape, (x, source), (index, steps), result, x.strides[dim])


def gather_runs(x: Place, dim: int, index: Place, result: Place, shape: Sequence[int]) -> list[Run]:
    """Return the runs of ``x.gather(dim, index)``; `shape` is that of index and result."""
    steps = tuple(_indexed(index, i) for i in range(len(shape)))
    source = _without(x.strides, dim)
    return _index_runs(_GATHER, shape, (x, source), (index, steps), result, x.strides[dim])


def scatter_runs(
    target: Place, dim: int, index: Place, source: Place, shape: Sequence[int], *, rows: bool
) -> list[Run]:
    """Return the run of ``target.scatter_add_(dim, index, source)`` in float32.

    Parameters
    ----------
    target, index, source : Place
        Where they lie.
    dim : int
        Along which the index chooses.
    shape : sequence of int
        What is added: of the index for ``scatter_add_``, of the source for ``index_add_``.
    rows : bool
        The index is a vector along `dim`, as for ``index_add_``.

    Returns
    -------
    list of tuple of int
        One run, or none where there are more dimensions than the kernel has loops: runs side by
        side could add to the same word.
    """
    if rows:
        steps = tuple(_indexed(index, 0) if i == dim else 0 for i in range(len(shape)))
    else:
        steps = tuple(_indexed(index, i) for i in range(len(shape)))
    step, kept = target.strides[dim], _without(target.strides, dim)
    return _scatter(shape, (source, source.strides), (index, steps), (target, kept), step, -1)


def embedding_gradient_runs(
    gradient: Place, indices: Place, result: Place, shape: Sequence[int], padding: int
) -> list[Run]:
    """Return the run that adds rows of a gradient to those of the embedding's weight.

    Parameters
    ----------
    gradient, indices, result : Place
        Result: zeros at first.
    shape : sequence of int
        Of the gradient.
    padding : int
        The index whose rows are left out; negative for none.

    Returns
    -------
    list of tuple of int
        As for `scatter_runs`.
    """
    inner = len(shape) - 1
    steps = (*(_indexed(indices, i) for i in range(inner)), 0)
    kept = (*(0,) * inner, result.strides[1])
    own, step = (gradient, gradient.strides), result.strides[0]
    return _scatter(shape, own, (indices, steps), (result, kept), step, padding)


def _scatter(
    shape: Sequence[int],
    source: tuple[Place, Steps],
    index: tuple[Place, Steps],
    target: tuple[Place, Steps],
    step: int,
    skip: int,
) -> list[Run]:
    steps = (source[1], index[1], target[1])
    walk = _index_walk(_SCATTER_ADD, tuple(shape), *steps, step, skip)
    return _placed(walk, source[0], index[0], target[0]) if len(walk) == 1 else []


def _index_runs(
    opcode: int,
    shape: Sequence[int],
    source: tuple[Place, Steps],
    index: tuple[Place, Steps],
    target: Place,
    step: int,
) -> list[Run]:
    walk = _index_walk(opcode, tuple(shape), source[1], index[1], target.strides, step, 0)
    return _placed(walk, source[0], index[0], target)


def _placed(
    walk: tuple[tuple[int, int, int, Run], ...], source: Place, index: Place, target: Place
) -> list[Run]:
    a, b, c = source.address, index.address, target.address
    return [(a + s, b + x, c + d, *scalars) for s, x, d, scalars in walk]


@functools.lru_cache(maxsize=1024)
def _index_walk(
    opcode: int, shape: Steps, s: Steps, x: Steps, d: Steps, step: int, skip: int
) -> tuple[tuple[int, int, int, Run], ...]:
    sizes, (s, x, d) = collapse(shape, s, x, d)
    return _walk(opcode, sizes, s, x, d, step, skip)


def _walk(
    opcode: int, sizes: Steps, s: Steps, x: Steps, d: Steps, step: int, skip: int
) -> tuple[tuple[int, int, int, Run], ...]:
    """Return for each run the offsets of source, index and target in bytes, and the scalars."""
    missing = LOOPS - len(sizes)
    inner = [(*(0,) * missing, *o[-LOOPS:]) for o in (s, x, d)]
    numbers = (opcode, *(1,) * missing, *sizes[-LOOPS:], *(v for o in inner for v in o), step, skip)
    scalars = tuple(word(v) for v in numbers)
    outer = outer_offsets(sizes, (s, x, d), LOOPS)
    return tuple((_WORD_BYTES * a, _WORD_BYTES * b, _WORD_BYTES * c, scalars) for a, b, c in outer)


def _indexed(index: Place, dim: int) -> int:
    """Return the words from one index to the next along a dimension; 0 for a single one."""
    return index.strides[dim] * INDEX_STEPS[index.itemsize] if index.strides else 0


def _without(strides: Steps, dim: int) -> Steps:
    """Return the strides for walking over everything but `dim`, which the index chooses."""
    return (*strides[:dim], 0, *strides[dim + 1 :])
