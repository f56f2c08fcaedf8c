"""The C library's functions of numbers that are known: `sqrt(2)`, `pow(2, BITS) - 1`.

The tools' compilers compute these; clang is told here that it knows none of the library, since it
would replace other calls, too (`pow(x, 2)` by a product). So each function asks first whether its
arguments are constants, which LLVM answers behind inlining. What unrolling makes constants, as in a
filter's factors `exp(-k * k)`, is computed behind it, and so are numbers with a point that become
fixed-point ones.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

__all__ = ["with_evaluated_calls", "with_evaluated_maths"]

#: What LLVM computes, for `double` and with an f for `float`.
_KNOWN = (
    "acos|asin|atan|atan2|ceil|cos|cosh|exp|exp2|fabs|floor|fmod|log|log10|log2|nearbyint|pow|"
    "remainder|rint|round|sin|sinh|sqrt|tan|tanh|trunc"
)
_NUMBER = "(?:float|double)(?: noundef)?"
_DECLARED = re.compile(
    rf"(?m)^declare [^(@]*\b(float|double) @((?:{_KNOWN})f?)\(({_NUMBER}(?:, {_NUMBER})?)\)"
)
_CONSTANT = r"(?:float|double)(?: noundef)? [-\d][-+.\w]*"
_CALLED = re.compile(
    rf"(?m)^(  .* call (?:float|double) @(?:{_KNOWN})f?\({_CONSTANT}(?:, {_CONSTANT})?\)) #\d+"
)
_SCALED = re.compile(
    rf"(?m)^(  .* = )(?:tail )?call (float|double) @__hls_scale_f\d+\({_NUMBER} ([-\d][-+.\w]*)"
    r", i32(?: noundef)? (-?\d+)\)(?: #\d+)?"
)
#: One computes what the next is handed: sums of exponentials, quotients by them, fixed-point ones.
_ROUNDS = 4
_BITS = {"float": 32, "double": 64}
_PREFIX = "__hls_known_"


def with_evaluated_maths(text: str) -> str:
    """Return a raw module in which the C library's functions of constants are constants."""
    for type_, name, given in _DECLARED.findall(text):
        text = re.sub(rf"(?m)^(  .*\bcall .*@){name}\(", rf"\1{_PREFIX}{name}(", text)
        asked = f"declare i1 @llvm.is.constant.f{_BITS[type_]}({type_})"
        if asked not in text:
            text += f"\n{asked}\n"
        text += _definition(type_, name, given.count(",") + 1)
    return text


def _definition(type_: str, name: str, count: int) -> str:
    """Return a function that LLVM may compute where all its arguments are constants."""
    names = [f"%x{number}" for number in range(count)]
    given = ", ".join(f"{type_} {name}" for name in names)
    asked = [
        f"  %k{n} = call i1 @llvm.is.constant.f{_BITS[type_]}({type_} {name})"
        for n, name in enumerate(names)
    ]
    both = f"  %known = and i1 %k0, %k{count - 1}"
    return "\n".join(
        [
            f"\ndefine internal {type_} @{_PREFIX}{name}({given}) alwaysinline {{",
            *asked,
            both,
            "  br i1 %known, label %constant, label %variable",
            "constant:",
            f"  %computed = call {type_} @{name}({given})",
            f"  ret {type_} %computed",
            "variable:",
            f"  %called = call {type_} @{name}({given}) nobuiltin",
            f"  ret {type_} %called",
            "}\n",
        ]
    )


def with_evaluated_calls(text: str, simplified: Callable[[str], str]) -> str:
    """Return a module behind unrolling in which functions of constants are constants.

    `simplified` returns a module in which LLVM has computed what it can.
    """
    for _ in range(_ROUNDS):
        known = _SCALED.sub(_product, _CALLED.sub(r"\1", text))
        if known == text:
            break
        text = simplified(known)
    return text


def _product(found: re.Match[str]) -> str:
    """Return a product with a power of two, for a number that gets fixed point or has had it."""
    begin, type_, number, power = found.groups()
    factor = struct.pack(">d", 2.0 ** int(power)).hex().upper()
    return f"{begin}fmul {type_} {number}, 0x{factor}"
