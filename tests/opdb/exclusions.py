"""The one table of what is not compared bit by bit, and why.

Every case that stands here is run all the same. One that would pass without its entry fails the
tests, so the table cannot outlive its reasons.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Allowed(enum.Enum):
    """What an entry allows its cases."""

    #: Uninitialised memory: everything but the values is compared.
    ANY_VALUES = "any values"
    #: torch itself computes by another formula where the device is not the CPU: values may
    #: differ by `compare.TOLERANCE`.
    ROUNDING = "rounding"
    #: The CPU's own values differ from run to run: the same tolerances. Such a case may pass in
    #: full, by chance.
    VARIATION = "variation"
    #: The case fails.
    FAILURE = "failure"


#: Beside the columns of the table: PyTorch's modules, in `device_type_tests`.
MODULE = "module"
DTYPE_COLUMNS = ("float32", "int64", "bool", "float16", "bfloat16")


@dataclass(frozen=True)
class Exclusion:
    """Cases that need not be equal bit by bit.

    Attributes
    ----------
    allowed : Allowed
        What they may do instead.
    operators : tuple of str
        Full names in ``op_db``, or of modules.
    columns : tuple of str
        Columns of the table, or `MODULE`; empty means all columns.
    reason : str
        One sentence, printed beside the table.
    """

    allowed: Allowed
    operators: tuple[str, ...]
    columns: tuple[str, ...]
    reason: str


_FLOATS = ("float32", "backward", "float16", "bfloat16")
_ATTENTION = "torch has a fused attention for the CPU, and composes it of products elsewhere."

EXCLUSIONS: tuple[Exclusion, ...] = (
    Exclusion(
        Allowed.ANY_VALUES,
        (
            "empty",
            "empty_like",
            "empty_permuted",
            "empty_strided",
            "new_empty",
            "new_empty_strided",
        ),
        (),
        "The values are whatever was in the memory.",
    ),
    Exclusion(
        Allowed.ROUNDING,
        ("nn.functional.scaled_dot_product_attention",),
        _FLOATS,
        _ATTENTION,
    ),
    Exclusion(
        Allowed.ROUNDING,
        (
            "nn.TransformerEncoder",
            "nn.TransformerDecoderLayer",
            "nn.TransformerEncoderLayer",
            "nn.Transformer",
        ),
        (MODULE,),
        _ATTENTION,
    ),
    Exclusion(
        Allowed.ROUNDING,
        ("nn.RNN",),
        (MODULE,),
        "torch multiplies all steps of the input by the weights at once on the CPU, and step by "
        "step elsewhere.",
    ),
    Exclusion(
        Allowed.ROUNDING,
        ("nn.GRU", "nn.GRUCell", "nn.LSTM", "nn.LSTMCell"),
        (MODULE,),
        "torch adds the gates up one by one on the CPU, and in a fused cell elsewhere.",
    ),
    Exclusion(
        Allowed.ROUNDING,
        (
            "nn.functional.linear_cross_entropy.chunked",
            "nn.functional.linear_cross_entropy.chunked_none",
        ),
        ("float16", "bfloat16"),
        "torch accumulates half precision in float32 on the CPU only.",
    ),
    Exclusion(
        Allowed.VARIATION,
        ("linalg.lstsq", "linalg.lstsq.grad_oriented", "linalg.solve_triangular"),
        ("float32", "backward", "out="),
        "On some processors LAPACK's sums depend on where its memory lies.",
    ),
    Exclusion(
        Allowed.FAILURE,
        ("cat",),
        ("errors",),
        "torch's check of an empty tensor against itself looks at storages, which differ here.",
    ),
    Exclusion(
        Allowed.FAILURE,
        ("multinomial",),
        ("errors",),
        "One input is as large as all CMA memory of the board, which is the error then.",
    ),
)


def exclusion_of(operator: str, column: str) -> Exclusion | None:
    """Return the entry for a case, or ``None`` where it has to be equal bit by bit."""
    for entry in EXCLUSIONS:
        if operator in entry.operators and (not entry.columns or column in entry.columns):
            return entry
    return None
