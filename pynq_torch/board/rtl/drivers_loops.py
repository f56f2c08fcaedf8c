"""Which bits a select of RTL means, also in a loop that synthesis unrolls."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

__all__ = ["ALL_BITS", "Loop", "Values", "bits_of", "loop_of"]

Node = dict[str, Any]
#: What the counters of the loops around a statement become; None: it cannot be said.
Values = Mapping[str, "tuple[int, ...] | None"]
#: A mask that has every bit.
ALL_BITS = -1
_MOST = 4096
_NUMBER = re.compile(r"(?:\d*'(?P<signed>s?)(?P<base>[hdbo]))?(?P<digits>-?[0-9a-f]+)")
_BASES = {"h": 16, "d": 10, "b": 2, "o": 8}
_OPERATORS: dict[str, Callable[[int, int], Any]] = {
    "ADD": operator.add, "SUB": operator.sub, "MUL": operator.mul, "MULS": operator.mul,
    "GT": operator.gt, "GTS": operator.gt, "GTE": operator.ge, "GTES": operator.ge,
    "LT": operator.lt, "LTS": operator.lt, "LTE": operator.le, "LTES": operator.le,
    "NEQ": operator.ne,
}  # fmt: skip


@dataclass(frozen=True)
class Loop:
    """A loop with a counter: what the counter becomes, and the statements without its steps."""

    counter: str
    values: tuple[int, ...] | None
    body: Sequence[Node]


def loop_of(statements: Sequence[Node], at: int) -> Loop | None:
    """Return the loop that begins at ``statements[at]`` with the first value of its counter."""
    first = statements[at]
    if first["type"] != "ASSIGN" or at + 1 >= len(statements):
        return None
    loop = statements[at + 1]
    if loop["type"] != "LOOP" or first["lhsp"][0]["type"] != "VARREF":
        return None
    counter = first["lhsp"][0]["varp"]
    body = loop["stmtsp"]
    step = body[-1] if body else first
    if len(body) < 2 or body[0]["type"] != "LOOPTEST" or step["type"] != "ASSIGN":
        return None
    if step["lhsp"][0].get("varp") != counter:
        return None
    return Loop(counter, _values(first, body[0], step, counter), body[1:-1])


def _values(first: Node, test: Node, step: Node, counter: str) -> tuple[int, ...] | None:
    values: list[int] = []
    value = _number(first["rhsp"][0], {})
    while value is not None:
        going_on = _number(test["condp"][0], {counter: value})
        if going_on == 0:
            return tuple(values)
        if going_on is None or len(values) == _MOST:
            return None
        values.append(value)
        value = _number(step["rhsp"][0], {counter: value})
    return None


def _number(node: Node, known: Mapping[str, int]) -> int | None:
    """Return the value of an expression of constants and loop counters."""
    kind = node["type"]
    if kind == "CONST":
        match = _NUMBER.fullmatch(node["name"])
        if match is None:
            return None
        number = int(match["digits"], _BASES[match["base"] or "d"])
        return number - (1 << 32) if match["signed"] and number >= 1 << 31 else number
    if kind == "VARREF":
        return known.get(node["varp"])
    if kind == "SEL":
        low = _number(node["lsbp"][0], known)
        whole = _number(node["fromp"][0], known)
        if low is None or whole is None:
            return None
        return whole >> low & (1 << int(node["widthConst"])) - 1
    if kind in ("EXTEND", "EXTENDS"):
        return _number(node["lhsp"][0], known)
    if kind in _OPERATORS:
        left, right = _number(node["lhsp"][0], known), _number(node["rhsp"][0], known)
        return None if left is None or right is None else int(_OPERATORS[kind](left, right))
    return None


def bits_of(select: Node, known: Values, inside: int | None) -> int | None:
    """Return the bits that a ``SEL`` of Verilator's tree means, as a mask.

    They are some of the bits `inside`: all of them where only the running design knows the index.
    None where a loop that cannot be followed decides, or decided on `inside`.
    """
    if inside is None:
        return None
    index = select["lsbp"][0]
    used = sorted(_variables(index) & known.keys())
    ranges = [known[name] for name in used]
    mask = 0
    for values in product(*(values or () for values in ranges)):
        low = _number(index, dict(zip(used, values, strict=True)))
        if low is None:
            return inside
        mask |= ((1 << select["widthConst"]) - 1) << low
    if None in ranges:
        return None
    offset = 0 if inside == ALL_BITS else (inside & -inside).bit_length() - 1
    return mask << offset


def _variables(node: Node) -> set[str]:
    found = {node["varp"]} if node["type"] == "VARREF" else set()
    for value in node.values():
        if type(value) is list:
            for child in value:
                found |= _variables(child)
    return found
