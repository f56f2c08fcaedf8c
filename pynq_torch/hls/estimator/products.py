"""Products and quotients of complex numbers, without what only PCs do for numbers that are none.

clang multiplies, and where both results are no numbers calls a function that looks once more, as
C99's annex G has it; it calls one for each quotient. The tools' `std::complex` and `x_complex` are
the four products and two sums, and a quotient by the square of the absolute value (24 DSP blocks,
28 cycles at 10 ns in a report of Vivado HLS 2019.1).
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


_DIVIDES = re.compile(r"(?m)^declare [^@\n]*(?:<2 x float>|{ double, double }) @__div([sd])c3\(.*$")


def with_plain_products(text: str) -> str:
    """Return a raw module in which products and quotients of complex numbers are of numbers."""
    text = _DIVIDES.sub(lambda match: _quotient(match[1]), text)
    if "complex_mul_imag_nan" not in text:
        return text
    made = _BRANCH.sub(lambda match: f"  br label {match[1]}{match['node'] or ''}", text)
    return _CALL.sub(r"  \1 = freeze \2 zeroinitializer", made)


def _quotient(letter: str) -> str:
    """Return the function that divides two complex numbers of `float` (s) or `double` (d)."""
    kind, both = ("float", "<2 x float>") if letter == "s" else ("double", "{ double, double }")
    puts = "insertelement" if letter == "s" else "insertvalue"
    at = (", i32 0", ", i32 1") if letter == "s" else (", 0", ", 1")
    lines = [
        f"define internal {both} @__div{letter}c3({kind} %a, {kind} %b, {kind} %c, {kind} %d)"
        " alwaysinline {",
        *(f"  %{x}{y} = fmul {kind} %{x}, %{y}" for x, y in ("ac", "bd", "bc", "ad", "cc", "dd")),
        f"  %real = fadd {kind} %ac, %bd",
        f"  %imag = fsub {kind} %bc, %ad",
        f"  %square = fadd {kind} %cc, %dd",
        f"  %x = fdiv {kind} %real, %square",
        f"  %y = fdiv {kind} %imag, %square",
        f"  %one = {puts} {both} undef, {kind} %x{at[0]}",
        f"  %all = {puts} {both} %one, {kind} %y{at[1]}",
        f"  ret {both} %all",
        "}",
    ]
    return "\n".join(lines)
