"""Floating-point numbers made integers or fixed point, and back, in operations of integers.

The tools have no core for these: functions of their library take a number apart, shift it and
negate it, and the scheduler meets these operations. So it is in 140 schedules of Vivado HLS 2018
to Vitis HLS 2022 in public repositories (`isNeg`, `ush`, `sh_amt`, `lsb_index` are names there).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

from .whole import node_of

__all__ = ["with_casts"]

_VALUE = r"(?P<value>[%@]\S+)"
_TO_INTEGER = re.compile(
    rf"(?m)^  (?P<name>\S+) = fpto(?P<sign>[su])i (?P<kind>float|double) {_VALUE} "
    r"to i(?P<bits>\d+)(?P<rest>.*)$"
)
#: A power of two that a number is multiplied with on its way to fixed point, or from there.
_SCALED = re.compile(
    r"(?m)^  (?P<name>\S+) = (?:tail )?call (?P<kind>float|double) @__hls_scale_f\d+\("
    rf"(?:float|double) (?:noundef )?{_VALUE}, i32 .*?\)(?P<rest>.*)$"
)
_FROM_INTEGER = re.compile(
    rf"(?m)^  (?P<name>\S+) = [su]itofp i(?P<bits>\d+) {_VALUE} to (?:float|double).*\n"
)
#: Bits of a number, of its exponent, and of the shift: that takes 4.4 and 4.6 ns in 7-series parts.
_PARTS = {"float": (32, 8, 57), "double": (64, 11, 73)}
#: Bits of what is shifted on the way to fixed point.
_MANTISSA = 54
#: The widest integer that becomes floating point so, and what counts the zeros before its bits.
_MOST, _ZEROS = 64, "i64 @llvm.ctlz.i64("
#: The first release of Vivado HLS whose fixed point becomes floating point without the core.
_WITHOUT_CORE = 2019.0

#: Names and operations; `@@` stands for the place, of which each conversion has its own.
_Lines = Sequence[tuple[str, str]]


def with_casts(text: str, release: float) -> str:
    """Return a module in which conversions are what the tools make of them.

    `release` is that of Vivado HLS where it is the tool and its release is known, else 0.
    """
    numbers = count()
    head, *functions = re.split(r"(?m)^(?=define )", text)
    made = "".join(_of_function(one, numbers, 0 < release < _WITHOUT_CORE) for one in functions)
    missing = _ZEROS in made and _ZEROS not in text
    return head + made + f"\ndeclare {_ZEROS}i64, i1 immarg)\n" * missing


def _of_function(text: str, numbers: Iterator[int], has_core: bool) -> str:
    scaled = {match["name"]: match for match in _SCALED.finditer(text)}
    whole = {match["name"]: match for match in _FROM_INTEGER.finditer(text)}

    def written(match: re.Match[str], lines: _Lines, last: str) -> str:
        place, node = f"%cast.{next(numbers)}.", node_of(match)
        made = [*((f"{place}{name}", what) for name, what in lines), (match["name"], last)]
        return "\n".join(f"  {name} = {what.replace('@@', place)}{node}" for name, what in made)

    def to_integer(match: re.Match[str]) -> str:
        source = scaled.get(match["value"])
        if int(match["bits"]) > _PARTS[match["kind"]][2]:
            return match[0]
        return written(match, *(_to_integer(match) if source is None else _to_fixed(match, source)))

    def from_fixed(match: re.Match[str]) -> str:
        source = whole.get(match["value"])
        if source is None or has_core or int(source["bits"]) > _MOST:
            return match[0]
        return written(match, *_from_fixed(match["kind"], source))

    made = _SCALED.sub(from_fixed, _TO_INTEGER.sub(to_integer, text))
    if made == text:
        return text
    uses = Counter(re.findall(r"%[-\w$.]+", made))
    # A core whose place the operations above take has no use left.
    return _FROM_INTEGER.sub(lambda match: match[0] if uses[match["name"]] > 1 else "", made)


def _to_integer(match: re.Match[str]) -> tuple[_Lines, str]:
    whole, exponent, shifted = _PARTS[match["kind"]]
    wide, bias, bits = exponent + 1, (1 << (exponent - 1)) - 1, int(match["bits"])
    sized = "zext" if whole < shifted else "trunc"
    lines = [
        ("bits", f"bitcast {match['kind']} {match['value']} to i{whole}"),
        ("up", f"lshr i{whole} @@bits, {whole - 1 - exponent}"),
        ("exponent", f"trunc i{whole} @@up to i{exponent}"),
        ("extended", f"zext i{exponent} @@exponent to i{wide}"),
        ("far", f"add i{wide} @@extended, {-bias}"),
        ("below", f"sub i{exponent} {bias}, @@exponent"),
        ("back", f"sext i{exponent} @@below to i{wide}"),
        ("top", f"lshr i{wide} @@far, {exponent}"),
        ("negative", f"trunc i{wide} @@top to i1"),
        ("places", f"select i1 @@negative, i{wide} @@back, i{wide} @@far"),
        ("by", f"zext i{wide} @@places to i{shifted}"),
        ("mantissa", f"{sized} i{whole} @@bits to i{shifted}"),
        ("moved", f"shl i{shifted} @@mantissa, @@by"),
        ("part", f"lshr i{shifted} @@moved, {shifted - bits}"),
        ("value", f"trunc i{shifted} @@part to i{bits}"),
    ]
    if match["sign"] == "u":
        return lines, f"or i{bits} @@value, 0"
    lines += [
        ("least", f"lshr i{whole} @@bits, {whole - 1}"),
        ("sign", f"trunc i{whole} @@least to i1"),
        ("minus", f"sub i{bits} 0, @@value"),
    ]
    return lines, f"select i1 @@sign, i{bits} @@minus, i{bits} @@value"


def _to_fixed(match: re.Match[str], source: re.Match[str]) -> tuple[_Lines, str]:
    """The tools' functions take a double: a float is made one first."""
    bits = int(match["bits"])
    widened = [("double", f"fpext float {source['value']} to double")]
    number = "@@double" if source["kind"] == "float" else source["value"]
    sized = "trunc" if bits < _MANTISSA else "zext"
    fitted = f"{sized} i{_MANTISSA} @@moved to i{bits}"
    if bits == _MANTISSA:
        fitted = f"or i{bits} @@moved, 0"
    lines = [
        ("bits", f"bitcast double {number} to i64"),
        ("up", "lshr i64 @@bits, 52"),
        ("exponent", "trunc i64 @@up to i12"),
        ("sign", "trunc i64 @@up to i1"),
        ("mantissa", f"trunc i64 @@bits to i{_MANTISSA}"),
        ("minus", f"sub i{_MANTISSA} 0, @@mantissa"),
        ("signed", f"select i1 @@sign, i{_MANTISSA} @@minus, i{_MANTISSA} @@mantissa"),
        ("far", "sub i12 1075, @@exponent"),
        ("above", "icmp sgt i12 @@far, 9"),
        ("right", "add i12 @@far, -9"),
        ("left", "sub i12 9, @@far"),
        ("places", "select i1 @@above, i12 @@right, i12 @@left"),
        ("is_inside", "icmp ult i12 @@places, 54"),
        ("by", f"zext i12 @@places to i{_MANTISSA}"),
        ("moved", f"ashr i{_MANTISSA} @@signed, @@by"),
        ("fitted", fitted),
        ("kept", f"select i1 @@is_inside, i{bits} @@fitted, i{bits} 0"),
        ("chosen", f"select i1 @@above, i{bits} @@kept, i{bits} @@fitted"),
    ]
    last = f"select i1 @@sign, i{bits} @@chosen, i{bits} @@kept"
    return [*(widened if source["kind"] == "float" else ()), *lines], last


def _from_fixed(kind: str, source: re.Match[str]) -> tuple[_Lines, str]:
    whole, exponent, _ = _PARTS[kind]
    bits, kept = int(source["bits"]), whole - exponent
    extended = f"zext i{bits} @@size to i64" if bits < _MOST else "or i64 @@size, 0"
    lines = [
        ("minus", f"sub i{bits} 0, {source['value']}"),
        ("sign", f"icmp slt i{bits} {source['value']}, 0"),
        ("size", f"select i1 @@sign, i{bits} @@minus, i{bits} {source['value']}"),
        ("wide", extended),
        ("zeros", f"call {_ZEROS}i64 @@wide, i1 true)"),
        ("few", "trunc i64 @@zeros to i32"),
        ("length", f"sub i32 {bits + 1}, @@few"),
        ("lowest", f"add i32 @@length, {-kept}"),
        ("places", "add i32 @@length, -1"),
        ("by", "zext i32 @@places to i64"),
        ("moved", "shl i64 @@wide, @@by"),
        ("round", "icmp sgt i32 @@lowest, 0"),
        ("half", "zext i1 @@round to i64"),
        ("rounded", "add i64 @@moved, @@half"),
        ("power", f"trunc i64 @@rounded to i{exponent}"),
        ("raised", f"add i{exponent} @@power, 126"),
        ("longer", f"zext i{exponent} @@raised to i{whole}"),
        ("placed", f"shl i{whole} @@longer, {kept - 1}"),
        ("lower", f"{'trunc' if whole < 64 else 'bitcast'} i64 @@rounded to i{whole}"),
        ("both", f"or i{whole} @@placed, @@lower"),
        ("number", f"bitcast i{whole} @@both to {kind}"),
    ]
    return lines, f"select i1 @@sign, {kind} @@number, {kind} 0.000000e+00"
