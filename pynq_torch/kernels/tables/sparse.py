"""Sparse products: a matrix in compressed rows (CSR) times a vector, or times a matrix, in float32.

A sum of the k products of a row is within ``(k + 3) * 2**-24 / (1 - (k + 3) * 2**-24)`` times the
sum of their magnitudes of the exact one (Higham, Accuracy and Stability of Numerical Algorithms,
section 3.1): a rounding for each product and each addition, in whatever order.
"""

from __future__ import annotations

from pynq_torch.hls.instance import Instance

__all__ = ["INSTANCES", "LANES", "TILE", "VECTOR", "error_factor"]

#: Elements of the vector that stay on the chip: 64 KB, 32 BRAM18.
VECTOR = 16384
#: Partial sums of a row; more than the 5 cycles that an addition takes.
LANES = 8
#: Columns of a dense matrix that are summed side by side.
TILE = 256

_TABLE = {"vector": VECTOR, "lanes": LANES, "tile": TILE}
_POINTERS = ("crow", "col", "values")

INSTANCES = (
    Instance(
        "spmv_f32",
        "sparse",
        {
            **_TABLE,
            "kind": "spmv",
            "reads": (*_POINTERS, "x"),
            "writes": "y",
            "scalars": ("rows", "columns", "wide", "step_x", "step_y"),
        },
    ),
    Instance(
        "spmm_f32",
        "sparse",
        {
            **_TABLE,
            "kind": "spmm",
            "reads": (*_POINTERS, "b"),
            "writes": "out",
            "scalars": ("rows", "n", "wide", "row_b", "step_b", "row_out"),
        },
    ),
)


def error_factor(entries: int) -> float:
    """Return the bound of a sum's error, as a part of the sum of the magnitudes of its products.

    Parameters
    ----------
    entries : int
        Most entries of a row.
    """
    unit = (entries + 3) * 2.0**-24
    return unit / (1 - unit)
