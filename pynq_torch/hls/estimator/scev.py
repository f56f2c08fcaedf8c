"""What LLVM's scalar evolution prints, as linear expressions.

``(4 + {%a,+,40}<%outer>)`` becomes constant 4, 40 times the count of loop ``outer``, once ``%a``.
What is not linear stays one symbol, under its text.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ir import Function

__all__ = ["Expression", "Known", "most", "parse", "read_printed"]

_TOKEN = re.compile(
    r"\s*(\{|\}|,\+,|<(?:nuw|nsw|nw)>|<%(?:\"[^\"]+\"|[-\w.$]+)>|<<?[\w ]+>>?|\(|\)|[-+]?\d+\b"
    r"|\+|\*|/u|[%@](?:\"[^\"]+\"|[-\w.$]+)|[\w.]+)"
)
_MULTIPLE = re.compile(r"^Loop %(?P<loop>.+): Trip multiple is (?P<trips>\d+)")
_WIDTH = re.compile(r" to i(\d+)\)")
_QUOTIENT = re.compile(r"^(?P<of>.+) /u (?P<by>\d+)$")
#: A loop's count in a few bits whose first value is a number.
_FROM_A_NUMBER = re.compile(r"^sext i\d+ \{ (?:-?\d+|true|false) ,")
_RANGE = re.compile(r" U: (\S+?) S: (\S+)")


@dataclass(frozen=True)
class Expression:
    """A constant, and the factor of each symbol: a value, or ``loop NAME``, which counts."""

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    def factor(self, symbol: str) -> int:
        """Return the factor of a symbol, 0 where it is not in it."""
        return dict(self.terms).get(symbol, 0)

    def plus(self, other: Expression, times: int = 1) -> Expression:
        """Return this plus ``times`` the other."""
        factors = dict(self.terms)
        for name, factor in other.terms:
            factors[name] = factors.get(name, 0) + factor * times
        left = tuple(sorted((name, factor) for name, factor in factors.items() if factor))
        return Expression(self.constant + other.constant * times, left)

    def times(self, number: int) -> Expression:
        """Return this multiplied by a number."""
        return Expression().plus(self, number)

    @property
    def counts(self) -> bool:
        """Whether a loop's count is in it."""
        return any(name.startswith("loop ") for name, _ in self.terms)

    @property
    def only_counts(self) -> bool:
        """Whether nothing but constants and loops' counts is in it."""
        return all(name.startswith("loop ") for name, _ in self.terms)

    @property
    def base(self) -> str:
        """The one pointer in it, ``""`` where there is none or several."""
        found = [n for n, factor in self.terms if n[0] in "%@" and factor == 1]
        return found[0] if len(found) == 1 else ""


@dataclass(frozen=True)
class Known:
    """An expression, and between which numbers it is (None: any)."""

    text: str
    unsigned: tuple[int, int] | None = None
    signed: tuple[int, int] | None = None

    @property
    def expression(self) -> Expression:
        """The text as a sum; most values are never asked for it."""
        return parse(self.text)


def read_printed(text: str, function: Function) -> None:
    """Fill what is known of a function's values and loops."""
    name = ""
    for line in text.split("\n"):
        if line.startswith("  -->  ") and name:
            body = line[7:].split("\t\t", 1)[0]
            ranges = _RANGE.search(body)
            expression = body[: ranges.start()] if ranges else body
            bounds = [_bounds(part) for part in ranges.groups()] if ranges else [None, None]
            function.known[name] = Known(expression, bounds[0], bounds[1])
            name = ""
        elif line.startswith("  %"):
            name = line.strip().split(" ", 1)[0]
        elif line.startswith("Loop %") and ": backedge-taken count is " in line:
            header, _, count = line[6:].partition(": backedge-taken count is ")
            function.known["loop " + header.strip('"')] = Known(count)
        elif line.startswith("Loop %") and ": constant max backedge-taken count is " in line:
            header, _, count = line[6:].partition(": constant max backedge-taken count is ")
            function.known["most " + header.strip('"')] = Known(count)
        elif match := _MULTIPLE.match(line):
            _mend(function.known, match["loop"].strip('"'), int(match["trips"]) - 1)


def _mend(known: dict[str, Known], header: str, count: int) -> None:
    """Replace a count that is printed as a negative number, as 126 is of seven bits."""
    taken = known.get("loop " + header)
    if taken is not None and re.fullmatch(r"-\d+ ?", taken.text):
        known["loop " + header] = known["most " + header] = Known(str(count))


def most(taken: Known | None, known: Known | None) -> int | None:
    """Return the most that a count can be, as it is printed: 6, the most of an i3, as -2."""
    if known is None or not re.fullmatch(r"-?\d+ ?", known.text):
        return None
    widths = _WIDTH.findall(taken.text) if taken is not None else []
    number = int(known.text)
    if number >= 0:
        return number
    return number + (1 << int(widths[-1])) if widths else None


def _bounds(text: str) -> tuple[int, int] | None:
    match = re.match(r"^\[(-?\d+),(-?\d+)\)$", text)
    if not match:
        return None
    low, high = int(match[1]), int(match[2]) - 1
    return (low, high) if low <= high else None


@functools.lru_cache(maxsize=65536)
def parse(text: str) -> Expression:
    """Return what scalar evolution printed as an expression."""
    tokens = [token for token in _TOKEN.findall(text) if token not in ("<nuw>", "<nsw>", "<nw>")]
    reader = _Reader(tokens)
    try:
        found = reader.one()
        return _joined(found) if reader.at == len(tokens) else Expression(0, ((text, 1),))
    except (IndexError, ValueError):
        return Expression(0, ((text, 1),))


def _joined(expression: Expression) -> Expression:
    """Put quotients and remainders of powers of two together: 8 (x / 8) + x % 8 is x.

    Of other divisors scalar evolution does so itself.
    """
    for name, factor in expression.terms:
        quotient = _QUOTIENT.match(name)
        bits = int(quotient["by"]).bit_length() - 1 if quotient else 0
        if quotient is None or int(quotient["by"]) != 1 << bits or factor % (1 << bits):
            continue
        one = factor >> bits
        rest = re.compile(
            rf"zext i{bits} (?:\( trunc i\d+ )?{re.escape(quotient['of'])} .*to i\d+$"
        )
        for other, times in expression.terms:
            if times == one and rest.match(other):
                parts = Expression(0, ((name, factor), (other, times)))
                whole = parse(quotient["of"]).times(one)
                return _joined(expression.plus(parts, -1).plus(whole))
    return expression


class _Reader:
    """A reader of prefix-free SCEV text, one token after another."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0

    def _next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def one(self) -> Expression:
        """Read one expression."""
        token = self._next()
        if token == "{":
            return self._recurrence()
        if token == "(":
            return self._group()
        if re.fullmatch(r"[-+]?\d+", token):
            return Expression(int(token))
        if token in ("true", "false"):
            return Expression(int(token == "true"))
        return Expression(0, ((token, 1),))

    def _recurrence(self) -> Expression:
        start, begin = self.one(), self.at
        steps = []
        while self.tokens[self.at] == ",+,":
            self.at += 1
            steps.append(self.one())
        if self._next() != "}":
            raise ValueError(self.tokens)
        loop = self._next()
        if not loop.startswith("<%"):
            return Expression(0, ((" ".join(self.tokens), 1),))
        if len(steps) != 1 or steps[0].terms:  # a stride that only the arguments tell
            moved = " ".join(["{ 0", *self.tokens[begin : self.at]])
            return start.plus(Expression(0, ((moved, 1),)))
        return start.plus(Expression(0, (("loop " + loop[2:-1].strip('"'), 1),)), steps[0].constant)

    def _group(self) -> Expression:
        begin = self.at
        if self.tokens[self.at] in ("sext", "zext", "trunc", "ptrtoint"):
            return self._cast(begin)
        first = self.one()
        while self.tokens[self.at] != ")":
            operator = self._next()
            second = self.one()
            if operator == "+":
                first = first.plus(second)
            elif operator == "*" and not second.terms:
                first = first.times(second.constant)
            elif operator == "*" and not first.terms:
                first = second.times(first.constant)
            elif operator == "/u" and not first.terms and not second.terms and second.constant:
                first = Expression(first.constant // second.constant)
            else:
                return self._opaque(begin)
        self.at += 1
        return first

    def _cast(self, begin: int) -> Expression:
        """A conversion keeps the value of what cannot overflow; others are their own symbol."""
        kind, width = self._next(), self._next()
        inner = self.one()
        if self._next() != "to":
            raise ValueError(self.tokens)
        self._next()
        if self._next() != ")":
            raise ValueError(self.tokens)
        # A count in a few bits, which is what `i % 8` becomes, wraps round.
        narrow = width[:1] == "i" and width[1:].isdigit() and int(width[1:]) < 32
        if kind in ("sext", "zext", "ptrtoint") and not (narrow and inner.counts):
            return inner
        text = " ".join(self.tokens[begin : self.at - 1])
        # LLVM makes one of the other where a branch says that the value is not negative.
        if kind == "sext" and narrow and not _FROM_A_NUMBER.match(text):
            text = "z" + text[1:]
        return Expression(0, ((text, 1),))

    def _opaque(self, begin: int) -> Expression:
        level = 1
        while level:
            token = self._next()
            level += (token == "(") - (token == ")")
        return Expression(0, ((" ".join(self.tokens[begin : self.at - 1]), 1),))
