"""After how many iterations a load meets what a store wrote."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from math import gcd, inf

from .array import Access, Array, along, are_apart, comes_near, row_of, split
from .scev import Expression

__all__ = ["changes_bank", "distance_of", "sure_distance", "told_of"]

#: A loop's count in a few bits.
_WRAPS = re.compile(
    r"^zext i(?P<bits>\d|1[0-6]) \{ (?P<begin>[^{}]+) ,\+, (?P<step>-?\d+|true) \} "
    r"<%(?P<loop>[^ ]+)> to "
)
_A_NUMBER = re.compile(r"^(?:-?\d+|false|true)$")
#: What is left of a loop's count is its index less this, times the divisor: `i % 6`.
_QUOTIENT = re.compile(r"^\{ \d+ ,\+, 1 \} <%[^ ]+> /u (?P<divisor>\d+)$")


def told_of(distances: Mapping[str, int], array: Array) -> int | None:
    """Return the distance that DEPENDENCE says of an array; None where it says none."""
    return distances.get(array.name, distances.get(""))


def distance_of(load: Access, store: Access, symbol: str) -> int:
    """After how many iterations a load meets what a store wrote; 0 for never."""
    if are_apart(load, store):
        stride = store.address.factor(symbol)
        if not stride:
            return 0
    difference = store.address.plus(load.address, -1)
    step = store.address.factor(symbol)
    size = store.array.element_bytes
    # A symbol that holds the loop's count, such as of `i % 8`, comes again in a later iteration.
    again = any(_holds(name, symbol[5:]) for name, _ in store.address.terms)
    if again:
        factors = [factor for _, factor in difference.terms]
        whole = gcd(step, load.address.factor(symbol), *factors)
        if whole and not comes_near(difference.constant, whole, size):
            return 0
        return _turns(load.address, store.address, symbol[5:])
    if difference.terms:
        if _are_in_other_rows(load, store, symbol):
            return 0
        # A value that is in two indices at once moves both: `m[u + 1][i + u]` may be any element.
        if any(is_in_both for *_, is_in_both in split(difference, store.array)):
            return 1
        iterations = _first_meeting(difference, load.address.factor(symbol), size)
    elif step == 0:
        return 1 if abs(difference.constant) < size else 0
    else:
        iterations, rest = divmod(difference.constant, step)
        if rest and abs(rest) >= size and abs(rest - step) >= size:
            return 0
    return iterations if 1 <= iterations <= _most(store.array, step) else 0


def changes_bank(access: Access, symbol: str) -> bool:
    """Whether a loop meets other banks that an index of several counts tells, divided by a factor.

    So two loops of a report of 2024.2 have II=5: `sums[27 * r + c]`, cut cyclic by 27. Iterations
    stay apart where the index is one count alone, or a dimension is cut completely (II=1 and 2 in
    reports of 2025.1).
    """
    cyclic = {one for one, (kind, _) in access.array.cuts().items() if kind == "cyclic"}
    indices = enumerate(along(access.address, access.array))
    return any(
        symbol in terms and len(terms) > 1 for one, (_, terms, _) in indices if one in cyclic
    )


def sure_distance(load: Access, store: Access, header: str, distance: int) -> int:
    """After how many iterations a load certainly meets a store that it may meet; 0 if unknown."""
    difference = load.address.plus(store.address, -1)
    own = [(name, factor) for name, factor in store.address.terms if _holds(name, header)]
    if difference.terms or len(own) > 1:
        return 0
    if not own or _WRAPS.match(own[0][0]):
        return distance
    (name, factor), step = own[0], store.address.factor(f"loop {header}")
    quotient = _QUOTIENT.match(name)
    if quotient is None or difference.constant or factor != -step * int(quotient["divisor"]):
        return 0
    return int(quotient["divisor"])


def _are_in_other_rows(load: Access, store: Access, symbol: str) -> bool:
    """Whether two indices of a dimension in which a loop does not move are never the same.

    So it is with `bank` and `1 - bank`: two banks of a sort that take turns have II=1.
    """
    pairs = zip(along(load.address, load.array), along(store.address, store.array), strict=True)
    for (one, terms, is_in_both), (other, others, are_in_both) in pairs:
        if is_in_both or are_in_both:
            return False
        factors = Counter(others)
        factors.subtract(terms)
        whole = gcd(*factors.values())
        moves = symbol in terms or symbol in others
        if not moves and ((other - one) % whole if whole else other != one):
            return True
    return False


def _most(array: Array, step: int) -> float:
    """Return the iterations that lie between two in a row of an array, of `step` bytes each.

    With one more an index is outside of its dimension: `m[i][k]` and `m[j][k]` never meet while k
    counts, though the next row begins where this one ends (a report of rotations has II=1).
    """
    row = row_of(array, step)
    return (row - 1) // abs(step) if row and step else inf


def _holds(name: str, header: str) -> bool:
    """Whether a symbol is made of the count of a loop: ``for.body`` is not ``for.body4``."""
    return any(f"<%{one}>" in name for one in (header, f'"{header}"'))


def _turns(load: Expression, store: Expression, header: str) -> int:
    """After how many iterations an index of few bits, such as `i % 8`, is the same again.

    One that is no count of this loop alone, or of which the two have more than that, may be so in
    the next iteration; two that step over each other never are (0).
    """
    ways = [
        [(_WRAPS.match(name), factor) for name, factor in one.terms if _holds(name, header)]
        for one in (load, store)
    ]
    left = store.plus(load, -1)
    if any(len(way) != 1 or way[0][0] is None or way[0][0]["loop"] != header for way in ways):
        return 1
    (first, one), (second, other) = ((match, factor) for ((match, factor),) in ways)
    assert first is not None and second is not None
    rest = [name for name, _ in left.terms if not _holds(name, header)]
    if one != other or first["bits"] != second["bits"] or first["step"] != second["step"]:
        return 1
    if rest or left.constant:
        return 1
    period, step = 1 << int(first["bits"]), _number(first["step"])
    begins = first["begin"], second["begin"]
    if begins[0] != begins[1] and not all(map(_A_NUMBER.match, begins)):
        return 1
    wanted = 0 if begins[0] == begins[1] else _number(begins[1]) - _number(begins[0])
    meetings = (n for n in range(1, period + 1) if (step * n - wanted) % period == 0)
    return next(meetings, 0)


def _number(text: str) -> int:
    """Return a number as LLVM prints it, one of a single bit by a word."""
    return int(text == "true") if text in ("true", "false") else int(text)


def _first_meeting(difference: Expression, step: int, size: int) -> int:
    """After how many iterations two accesses may meet whose difference is not known; 0 for never.

    It is a constant and multiples of something: rows apart, two elements of a matrix never are
    neighbours.
    """
    whole = gcd(*(factor for _, factor in difference.terms))
    for iterations in range(1, whole // gcd(whole, step) + 1):
        if comes_near(difference.constant - step * iterations, whole, size):
            return iterations
    return 0
