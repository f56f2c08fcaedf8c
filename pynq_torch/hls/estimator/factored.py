"""Products by one constant that go into one sum: Vitis HLS adds up first what is multiplied.

A filter whose coefficients come twice takes half the multipliers in its reports of 2022 to 2024,
one of few coefficients as many as these, as in LLVM's pass `reassociate`. Those of Vivado HLS take
one for each tap, unless two equal ones stand side by side.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from .passes import opt

__all__ = ["ADDS_UP", "added_up", "has_common_factors"]

#: The first release that is known to do so; in one of 2021 pairs alone are added up.
ADDS_UP = 2022.0
_PASSES = "-passes=function(reassociate,instcombine,early-cse<memssa>)"
_PRODUCT = re.compile(r"(?m)^  %\S+ = mul (?:nuw |nsw )*i(\d+) (%[^\s,]+), (-?\d+)\b")
_EXTENDED = re.compile(r"(?m)^  (%\S+) = [sz]ext i(\d+) ")
_SUM = re.compile(r"(?m)^  (%\S+) = (?:add|sub) (?:nuw |nsw )*i\d+ (%[^\s,]+), (%[^\s,]+)")
#: Bits by which a sum may be wider than its products and is one of the same type still: a constant
#: may have fewer than its type. With more bits each product is made in its own type, as reports of
#: `ap_int<8>` times `ap_int<5>` in sums of 16 and 20 bits say.
_SLACK = 2


def added_up(text: str, path: Path, seconds: int) -> str:
    """Return a module, by way of a file, in which what one constant multiplies is added up."""
    if not has_common_factors(text):
        return text
    path.write_text(text, encoding="utf-8")
    return opt([_PASSES, "-S", "-o", "-", str(path)], seconds)[0]


def has_common_factors(text: str) -> bool:
    """Whether a module has products by the same constant, made in the type of their sum."""
    return any(map(_are_common, re.split(r"(?m)^(?=define )", text)))


def _are_common(chunk: str) -> bool:
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for bits, name, constant in _PRODUCT.findall(chunk):
        found[int(bits)].append((name, int(constant)))
    if not found:
        return False
    widths = {name: int(bits) for name, bits in _EXTENDED.findall(chunk)}
    for name, one, other in _SUM.findall(chunk):  # of pairs that were added up already
        if one in widths and other in widths:
            widths[name] = max(widths[one], widths[other]) + 1
    for bits, products in found.items():
        most = max(constant.bit_length() + 1 for _, constant in products)
        made = [value for name, value in products if widths.get(name, bits) + most + _SLACK >= bits]
        if len({*made}) < len(made):
            return True
    return False
