"""Products of complex numbers, without what only the compilers of PCs do for numbers that are none.

clang multiplies, and where both results are no numbers calls a function that looks once more, as
C99's annex G has it. The tools' `std::complex` and `x_complex` are the four products and two sums.
"""

from __future__ import annotations

import re

__all__ = ["with_plain_products"]

_BRANCH = re.compile(
    r"(?m)^  br i1 %isnan_cmp\S*, label %complex_mul_imag_nan\S*, label (%\S+?)(?:, !prof !\d+)?"
    r"(?P<node>, !dbg !\d+)?(?:, !prof !\d+)?$"
)
_CALL = re.compile(
    r"(?m)^  (\S+) = call (?:noundef )?(<2 x float>|{ double, double }) @__mul[sd]c3\(.*\)[^,\n]*"
)


def with_plain_products(text: str) -> str:
    """Return a raw module in which products of complex numbers always are numbers."""
    if "complex_mul_imag_nan" not in text:
        return text
    made = _BRANCH.sub(lambda match: f"  br label {match[1]}{match['node'] or ''}", text)
    return _CALL.sub(r"  \1 = freeze \2 zeroinitializer", made)
