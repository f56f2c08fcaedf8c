"""Counters of loops as LLVM's scalar evolution knows them: `short` ones, and static variables.

C computes with `int`, and what goes back into a `short` is cut off there, after which nothing tells
how often a loop runs. A static variable stays in memory, though each call writes it before it reads
it. The tools know the trip counts of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .ir import LABEL, NAME, TARGET

__all__ = ["with_counters"]

_FUNCTION = re.compile(r"(?ms)^define .*?^\}")
#: ``i = i + 1`` of a narrow variable, and ``i++``: load, step, store.
_LOADED = r"(?P<old>%\S+) = load (?P<type>i8|i16), ptr (?P<at>\S+),.*\n"
_BACK = r"(?=  store (?P=type) (?P=new), ptr (?P=at),)"
_SUM = re.compile(
    rf"(?P<before>  {_LOADED}"
    r"  (?P<wide>%\S+) = (?P<kind>[sz])ext (?P=type) (?P=old) to i32.*\n"
    r"  (?P<sum>%\S+) = (?P<op>add|sub) nsw i32 (?P=wide), (?P<step>\d+)\b.*\n)"
    rf"  (?P<new>%\S+) = trunc i32 (?P=sum) to (?P=type)(?P<node>.*)\n{_BACK}"
)
_STEP = re.compile(
    rf"(?P<before>  {_LOADED}  (?P<new>%\S+) = add )(?P<rest>(?P=type) (?P=old), -?1\b.*\n){_BACK}"
)
_STATIC = re.compile(r"(?m)^@([-\w.$]+) = internal global (i\d+|float|double) ")
_MENTIONED = re.compile(r"@([-\w.$]+)")
_DEFINED = re.compile(rf"@({NAME})\(")
_ENTRY = re.compile(r"(?m)^entry:\n")


def with_counters(text: str) -> str:
    """Return a raw module whose narrow counters do not overflow; static ones are in registers."""
    text = _FUNCTION.sub(lambda match: _counting(match[0]), text)
    kinds = dict(_STATIC.findall(text))
    users: dict[str, list[str]] = {name: [] for name in kinds}
    for function in _FUNCTION.findall(text) if kinds else ():
        for name in kinds.keys() & set(_MENTIONED.findall(function)):
            users[name].append(function)
    held = set(_MENTIONED.findall(_FUNCTION.sub("", re.sub(r"(?m)^@\S+", "", text))))
    local = {
        name: kind
        for name, kind in kinds.items()
        if name not in held and _is_local(name, users[name])
    }
    return _FUNCTION.sub(lambda match: _made_local(match[0], local), text) if local else text


def _counting(function: str) -> str:
    """Return a function in which `short` and `char` variables count without overflow."""

    def summed(match: re.Match[str]) -> str:
        flag = "nsw" if match["kind"] == "s" else "nuw"
        made = f"{match['op']} {flag} {match['type']} {match['old']}, {match['step']}"
        return f"{match['before']}  {match['new']} = {made}{match['node']}\n"

    def stepped(match: re.Match[str]) -> str:
        loads = re.findall(rf"(%\S+) = load i\d+, ptr {re.escape(match['at'])},", function)
        kinds = {kind for one in loads for kind in extended.get(one, ())}
        flags = {"s": "nsw "} if ", -1" in match["rest"] else {"s": "nsw ", "z": "nuw "}
        flag = flags.get("".join(kinds), "")  # without a sign -1 is the greatest number
        return f"{match['before']}{flag}{match['rest']}"

    extended: dict[str, set[str]] = {}
    for kind, of in re.findall(r" = ([sz])ext i\d+ (%[^ ,]+) to ", function):
        extended.setdefault(of, set()).add(kind)
    return _STEP.sub(stepped, _SUM.sub(summed, function))


def _is_local(name: str, users: Sequence[str]) -> bool:
    """Whether no call reads what another wrote into a variable."""
    names = "|".join(re.escape(found[1]) for found in map(_DEFINED.search, users) if found)
    shared = re.compile(rf"call .*@(?:{names})\(")
    uses = re.compile(rf"@{re.escape(name)}(?![-\w.$])")
    return not any(shared.search(one) or not _writes_first(one, uses) for one in users)


def _made_local(function: str, local: Mapping[str, str]) -> str:
    """Return a function with variables of its own in place of static ones."""
    names = local.keys() & set(_MENTIONED.findall(function))
    own = "".join(f"  %{name}.local = alloca {local[name]}\n" for name in sorted(names))
    made = _MENTIONED.sub(
        lambda match: f"%{match[1]}.local" if match[1] in names else match[0], function
    )
    return _ENTRY.sub(lambda match: match[0] + own, made, count=1)


def _writes_first(function: str, uses: re.Pattern[str]) -> bool:
    """Whether each way through a function writes a variable before it reads it."""
    ways = dict(_blocks(function))
    left, seen = [next(iter(ways), "")], set()
    while left:
        name = left.pop()
        if name in seen or name not in ways:
            continue
        seen.add(name)
        first = next((row for row in ways[name] if uses.search(row)), None)
        if first is None:
            left += [one.strip('"') for row in ways[name] for one in TARGET.findall(row)]
        elif not re.match(rf"  store [\w]+ [^,]+, ptr {uses.pattern},", first):
            return False
    rows = (row for block in ways.values() for row in block if uses.search(row))
    plain = re.compile(rf"  (?:store \w+ [^,@]+|%\S+ = load \w+), ptr {uses.pattern},")
    return all(plain.match(row) for row in rows)


def _blocks(function: str) -> Iterator[tuple[str, list[str]]]:
    name, rows = "", list[str]()
    for row in function.split("\n")[1:]:
        label = LABEL.match(row)
        if label is None:
            rows.append(row)
            continue
        if name:
            yield name, rows
        name, rows = label[1].strip('"'), []
    if name:
        yield name, rows
