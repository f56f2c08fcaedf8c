"""How often a loop runs whose bound follows from the counters of the loops around it.

The last tile of an array is often smaller than the others: ``h + 32 <= 255 ? 32 : 255 - h``. The
tools know that such a loop runs 32 times at most (in a report of tiles of 32 x 32), LLVM does not.
The bound is computed here for each count of the loops around it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from itertools import product
from math import prod

from .handed import between
from .ir import NAME, Function, Loop, bits_of

__all__ = ["counted"]

#: Counts for which a bound is computed.
_MOST = 20_000
_VALUE = rf"(%{NAME}|-?\d+|true|false)"
_TWO = re.compile(
    rf"^(?P<op>\w+)(?: nuw| nsw| exact)*(?: (?P<how>\w+))? (?P<type>i\d+) {_VALUE}, {_VALUE}"
)
_CHOICE = re.compile(rf"^select i1 {_VALUE}, (?P<type>i\d+) {_VALUE}, i\d+ {_VALUE}")
_CAST = re.compile(rf"^(?P<op>[sz]ext|trunc) (?P<type>i\d+) {_VALUE} to (?P<to>i\d+)")
_LIMIT = re.compile(
    rf"call (?P<type>i\d+) @llvm\.(?P<op>[su]m(?:in|ax))\.i\d+\(i\d+ {_VALUE}, i\d+ {_VALUE}\)"
)
_FLAGS = re.compile("<n[us]?w>")
#: A piece of an expression of scalar evolution.
_PIECE = re.compile(
    rf"\s*(?:<%(?P<loop>{NAME})>|(?P<piece>[(){{}}]|,\+,|[a-z/*+][a-z_0-9]*|{_VALUE}))"
)
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "*": operator.mul, "add": operator.add, "sub": operator.sub,
    "mul": operator.mul, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "smin": min, "smax": max, "umin": min, "umax": max, "shl": operator.lshift,
    "lshr": operator.rshift, "ashr": operator.rshift,
    "/u": lambda number, by: number // by if by else 0,
}  # fmt: skip
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
#: Operations of numbers with a sign.
_SIGNED = ("smin", "smax", "ashr", "slt", "sle", "sgt", "sge")
#: A value for each count of the loops that it depends on, by their symbols.
_Computed = Callable[[Mapping[str, int]], int]


def counted(
    function: Function, loop: Loop, most_of: Callable[[Loop], int | None]
) -> tuple[int, int] | None:
    """Return how often a loop runs at least and at most, None where that is not known so.

    `most_of` tells of the loops around it how often they run at most.
    """
    around = {one.header: one for one in loop.above() if one is not loop}
    known = function.known.get("loop " + loop.header)
    if known is None:
        return None
    bound = _Bound(function, around)
    taken = bound.of(known.text)
    trips = {header: most_of(around[header]) for header in bound.loops}
    ranges = {header: range(count) for header, count in trips.items() if count} | bound.between
    if taken is None or not ranges or None in trips.values():
        return None
    if not 0 < prod(len(one) for one in ranges.values()) <= _MOST:
        return None
    every = product(*ranges.values())
    found = [taken(dict(zip(ranges, at, strict=True))) for at in every]
    return max(min(found) + 1, 0), max(max(found) + 1, 0)


class _Bound:
    """Values as functions of the counts of loops."""

    def __init__(self, function: Function, around: Mapping[str, Loop]) -> None:
        self._function, self._around = function, around
        self._made: dict[str, _Computed | None] = {}
        self._pieces: list[str] = []
        #: The headers of the loops whose counts are needed; arguments of which calls say more.
        self.loops: list[str] = []
        self.between: dict[str, range] = {}

    def of(self, text: str) -> _Computed | None:
        """Return what computes an expression of scalar evolution."""
        before = self._pieces
        found = _PIECE.finditer(_FLAGS.sub("", text))
        self._pieces = [f"<{one['loop']}" if one["loop"] else one["piece"] for one in found][::-1]
        try:
            made = self._expression()
            return None if self._pieces else made
        except (IndexError, KeyError, ValueError):  # what is not known here
            return None
        finally:
            self._pieces = before

    def _next(self, wanted: str = "") -> str:
        piece = self._pieces.pop()
        if wanted and piece != wanted:
            raise KeyError(piece)
        return piece

    def _expression(self) -> _Computed:
        piece = self._next()
        if piece == "{":
            return self._recurrence()
        if piece != "(":
            return self._value(piece)
        if self._pieces[-1] in ("zext", "sext", "trunc"):
            return self._cast(self._next())
        made = self._expression()
        while (how := self._next()) != ")":
            made = _both(_ARITHMETIC[how.removesuffix("_seq")], made, self._expression())
        return made

    def _recurrence(self) -> _Computed:
        start, _, step = self._expression(), self._next(",+,"), self._expression()
        self._next("}")
        header = self._next()[1:]
        if header not in self._around:
            raise KeyError(header)
        if header not in self.loops:
            self.loops.append(header)
        return lambda at: start(at) + step(at) * at[header]

    def _cast(self, how: str) -> _Computed:
        bits, inner = bits_of(self._next()), self._expression()
        self._next("to")
        to = bits_of(self._next())
        self._next(")")
        width = min(bits, to)
        return lambda at: _number(inner(at), width, signed=how == "sext")

    def _value(self, name: str) -> _Computed:
        """Return what computes a value."""
        if name[:1] != "%":
            number = {"true": 1, "false": 0}.get(name)
            fixed = int(name) if number is None else number
            return lambda _: fixed
        if (numbers := between(name)) is not None:
            self.between[name] = numbers
            return lambda at: at[name]
        if name not in self._made:
            self._made[name] = None  # what a value of a cycle is
            known = self._function.known.get(name)
            seen = known is not None and known.text.strip() != name
            self._made[name] = (self.of(known.text) if known and seen else None) or self._computed(
                name
            )
        made = self._made[name]
        if made is None:
            raise KeyError(name)
        return made

    def _computed(self, name: str) -> _Computed | None:
        item = self._function.values.get(name)
        text = item.text if item is not None else ""
        if match := _CHOICE.match(text):
            which, first, second = (self._value(match[number]) for number in (1, 3, 4))
            return lambda at: first(at) if which(at) & 1 else second(at)
        if match := _CAST.match(text):
            inner, bits = self._value(match[3]), bits_of(match["type"])
            signed = match["op"] == "sext"
            return lambda at: _number(inner(at), bits, signed=signed)
        match = _LIMIT.search(text) or _TWO.match(text)
        if match is None:
            return None
        left, right = (self._value(one) for one in match.groups()[-2:])
        how, bits = match.groupdict().get("how") or match["op"], bits_of(match["type"])
        rules = _COMPARISONS if match["op"] == "icmp" else _ARITHMETIC
        rule = rules[how.lstrip("su") if match["op"] == "icmp" else how]

        def inside(value: _Computed) -> _Computed:
            return lambda at: _number(value(at), bits, signed=how in _SIGNED)

        return _both(rule, inside(left), inside(right))


def _both(rule: Callable[[int, int], int], left: _Computed, right: _Computed) -> _Computed:
    return lambda at: int(rule(left(at), right(at)))


def _number(bits: int, width: int, *, signed: bool) -> int:
    """Return the number that so many bits are, with a sign or without."""
    number = bits & ((1 << width) - 1)
    return number - (1 << width) if signed and number >> (width - 1) else number
