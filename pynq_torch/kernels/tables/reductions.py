"""Kernels that make one value of many: sums and their kin, softmax, distances.

Bounds of the error against exact arithmetic on the same float32 values, to first order, in units of
``EPS = 2**-24``, the largest relative error of one rounding. They hold where no step of the way
leaves float32's normal range.

reduce_f32, with ``D = block_additions(n)`` for `n` elements a result:

* sum, norm 1: ``D`` times ``sum(|x|)``; mean: ``D + 2`` times ``mean(|x|)``
* norm 2: relative ``D / 2 + 3``; other orders: relative ``(D + 4) / |p| + 3 |log(norm)| + 4``
* prod: relative ``n + 2``
* var with correction 0: ``(D + 8) var`` and the square of what the mean may be off, which is
  ``|mean| + (D + 3) (max - min)`` in units of EPS; std by its root
* extremes, their places, norms 0 and of infinite order: exact, up to ``2**24`` elements

softmax_f32, with ``D = additions(n)`` for rows of `n` elements, and for the largest ``|x - max|``
whose exp still counts (`EXP_RANGE`) the name SPREAD:

* softmax: relative ``D + |x - max| + SPREAD + 6``
* log_softmax, logsumexp: absolute ``D + SPREAD + 8 + 2 |x - max|`` and two roundings of ``|max|``
* backward: ``D + 4`` times the sum of the magnitudes of the terms

distance_f32, rows of `n` elements:

* p = 0 and infinite: one rounding; 1: relative ``n + 2``; 2: relative ``n / 2 + 3``; other p:
  relative ``(n + 4) / p + 3 |log(distance)| + 4``
* dot: ``dot_additions(n) + 1`` times ``sum(|a b|)``
"""

from __future__ import annotations

__all__ = [
    "ADDER_STAGES",
    "BLOCK",
    "COMBINES",
    "DISTANCES",
    "EPS",
    "EXP_RANGE",
    "FINISHES",
    "LANES",
    "REDUCE",
    "SOFTMAX",
    "TERMS",
    "TILE",
    "additions",
    "block_additions",
    "dot_additions",
]

#: Elements in a buffer on chip: 4 KB, two BRAM18; long enough for bursts of 16 beats.
TILE = 1024
#: Stages of a float32 adder at 10 ns on the xc7z020: ``fadd_32ns_32ns_32_5_full_dsp`` in synthesis
#: reports, see `pynq_torch.models.hls_resources`. A loop around ``sum += x`` has this II.
ADDER_STAGES = 5
#: Partial sums side by side: more than an adder has stages, also at faster clocks, and a power of
#: two for the tree.
LANES = 16
#: Half a step of float32 at 1: the error of one rounding, relative.
EPS = 2.0**-24
#: ``-log`` of the smallest float32 above zero: beyond it exp gives zero.
EXP_RANGE = 104.0

#: What `softmax_f32` can do, and the number that its register ``op`` takes.
SOFTMAX = {
    "softmax": 0,
    "log_softmax": 1,
    "logsumexp": 2,
    "softmax_backward": 3,
    "log_softmax_backward": 4,
}


def additions(n: int, *, column: bool = False) -> int:
    """Return how many float additions an element of `n` goes through at most in `softmax_f32`.

    Parameters
    ----------
    n : int
        Elements of a row.
    column : bool
        Whether the rows lie side by side, so that each is added up in one lane.
    """
    return n if column else -(-n // LANES) + LANES.bit_length() - 1


#: What `reduce_f32` makes of an element (register ``term``).
TERMS = {"same": 0, "magnitude": 1, "square": 2, "nonzero": 3, "power": 4, "deviation": 5}
#: How it combines them (``combine``); the last two also say where the extreme is.
COMBINES = {"add": 0, "multiply": 1, "max": 2, "min": 3, "argmax": 4, "argmin": 5}
#: What it makes of the result (``finish``): nothing, division, the root of that, the p-th root.
FINISHES = {"keep": 0, "divide": 1, "root_of_mean": 2, "root": 3}
#: Groups of lanes whose sums are added up before they go to those of the whole.
BLOCK = 64

#: Operation -> (term, combine, finish).
REDUCE: dict[str, tuple[str, str, str]] = {
    "sum": ("same", "add", "keep"),
    "mean": ("same", "add", "divide"),
    "prod": ("same", "multiply", "keep"),
    "amax": ("same", "max", "keep"),
    "amin": ("same", "min", "keep"),
    "max": ("same", "argmax", "keep"),
    "min": ("same", "argmin", "keep"),
    "var": ("deviation", "add", "divide"),
    "std": ("deviation", "add", "root_of_mean"),
    "norm_0": ("nonzero", "add", "keep"),
    "norm_1": ("magnitude", "add", "keep"),
    "norm_2": ("square", "add", "root_of_mean"),
    "norm_p": ("power", "add", "root"),
    "norm_inf": ("magnitude", "max", "keep"),
    "norm_-inf": ("magnitude", "min", "keep"),
}


def block_additions(n: int, *, lanes: int = 1) -> int:
    """Return how many float additions an element of `n` goes through at most in `reduce_f32`.

    A block ends when it has `BLOCK` groups, and may have one tile less a group more.

    Parameters
    ----------
    n : int
        Elements of one result.
    lanes : int
        `LANES` where they are neighbours in memory, and so dealt to the lanes; 1 holds always.
    """
    groups, tile_groups = -(-n // lanes), TILE // LANES
    return min(groups, BLOCK - 1 + tile_groups) + groups // BLOCK + 1 + LANES.bit_length() - 1


#: What `distance_f32` measures, and the number that its register ``op`` takes.
DISTANCES = {"count": 0, "manhattan": 1, "euclid": 2, "chebyshev": 3, "minkowski": 4, "dot": 5}


def dot_additions(n: int) -> int:
    """Return how many float additions an element of `n` goes through at most in a dot product."""
    return min(-(-n // LANES), TILE // LANES) + -(-n // TILE) + LANES.bit_length() - 1
