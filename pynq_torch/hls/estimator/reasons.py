"""What limits an II, in a sentence, with advice that the estimate itself says to help."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from math import ceil

from .advice import as_short, partition, taking
from .array import Array
from .distances import distance_of
from .ir import Instruction, names_in
from .paths import ends_of
from .place import Place, plain_name
from .region import AFTER_READ, Node, Region
from .wide import bits_for

__all__ = ["carried_reason", "memory_reason", "port_reason"]

_SUMS = ("fadd", "fsub")
#: Runs of operations that are named one by one.
_MOST_NAMED = 5
#: Why loops wait that read and write one array of a bus.
_ANSWERED = (
    "and a read of m_axi waits until the write of the iteration before is answered; work on a copy"
)
#: What may be said of it where no iteration is seen to read what one before it wrote.
_PROMISE = ", or say DEPENDENCE inter false if no iteration reads what one before it wrote"
#: Operations that are named only where those of several cycles do not take all the time.
_SMALL = frozenset(("phi", "select", "and", "or", "xor", "zext", "sext", "trunc", "bitcast"))


def port_reason(region: Region, nodes: list[Node], most: int, asked: int) -> str:
    """Say which port some operations take, `most` a cycle, and what gives more for an II asked."""
    node, count = nodes[-1], region.together(nodes)
    if node.stream:
        name = plain_name(node.stream)
        return f"{count} accesses of stream `{name}` in an iteration, it takes one a cycle"
    if node.access is None:
        return f"{count} times `{node.item.op}` in an iteration, ALLOCATION allows {most} of it"
    array = node.access.array
    if array.kind == "m_axi":
        way, hint = "reads", "read a copy"
        if node.access.write:
            way, hint = "writes", "write one word in an iteration"
        if bits := bits_for(region, nodes):
            hint = f"they are one word with INTERFACE max_widen_bitwidth={bits}"
        if len({one.access.array.name for one in nodes if one.access is not None}) > 1:
            own = "give the arguments bundles of their own"
            hint = own if node.access.write else f"{own}, or {hint}"
        return (
            f"{count} {way} through m_axi bundle `{array.bundle}` in an iteration, it has one a "
            f"cycle; {hint}"
        )
    if array.kind == "scalar":
        return (
            f"{count} reads of `{array.name}`, which is volatile, in an iteration, one a cycle; "
            "leave volatile out, or read it once"
        )
    one = "its memory takes one" if most == 1 else f"its copies take {most}"
    one = "a FIFO passes one word" if array.is_fifo else one
    ports = "a dual-port RAM takes two" if most == 2 else one
    whole = count == region.together(taking(region, array))
    what = f"`{array.name}`" if whole else f"one bank of `{array.name}`"
    advice = _advice(region, array, asked, ceil(count / most))
    return f"{count} accesses of {what} in an iteration, {ports} a cycle; {advice}"


def _advice(region: Region, array: Array, asked: int, interval: int) -> str:
    """Say how to cut an array, and others that are as short of ports: each needs its own way."""
    said = partition(region, array, asked, interval)
    for other in as_short(region, array):
        own = partition(region, other, asked)
        cut, _, how = own.partition("partition it ")
        apart = f", and `{other.name}` {how}" if not cut else f"; `{other.name}`: {own}"
        said += f" (`{other.name}` too)" if own == said else apart
    return said


def carried_reason(
    region: Region, first: Node, last: Node, interval: int
) -> tuple[str, Place | None]:
    """Say for which operations of the iteration before each iteration waits, and where."""
    chain = _chain(region, first, last)
    # A nest begins its sums anew, which takes a cycle.
    if any(node.cost.latency for node in chain) and _cycles(chain) + region.begins_anew < interval:
        other = _scheduled(region, last)  # by way of another value
        chain = max(chain, other, key=_cycles) if _cycles(other) <= interval else chain
    slow = [node for node in chain if node.cost.latency]
    if not slow and len(chain) > 1:
        return f"each iteration waits for {_too_long(region, chain)}", last.place
    named = _named(chain, interval) or [last]
    hint = "; use several accumulators" if all(node.item.op in _SUMS for node in named) else ""
    clock = f"{region.target.clock:g} ns"
    words = {_with_cycles(node, interval) for node in named}
    if len(words) > 1:
        what = _joined(named, interval, clock)
        return f"each iteration waits for {what} of the one before it{hint}", named[-1].place
    [(what, cycles)] = words
    if len(named) > 1:
        what, cycles = f"{_many(what, len(named))}, one after another,", interval
    took = f" ({cycles} cycles at {clock})" if cycles else ""
    return f"each iteration waits for {what} of the one before it{took}{hint}", named[-1].place


def _too_long(region: Region, chain: list[Node]) -> str:
    """Say which operations of the iteration before end too late in a cycle, and why."""
    words = Counter(_word_for(node.item) for node in chain)
    what = _listed([_many(word, count) for word, count in words.items()])
    if len(words) > _MOST_NAMED:
        what = f"{len(chain)} operations"
    said = f"{what}, one after another, of the one before it"
    others = [other for node in chain for other, _ in node.before if other not in chain]
    budget, last = region.target.budget, max(others, key=lambda node: node.end, default=None)
    if last is None or sum(node.cost.delay for node in chain) > 0.75 * budget:
        return f"{said}, and they take longer than the {budget:.1f} ns of a cycle"
    return f"{said}, which end late in their cycle, behind {_word_for(last.item)}"


#: What helps where an element is read after it was written.
_VARIABLE = "keep the value in a variable"
_NEVER = "say DEPENDENCE false where addresses never meet"


def memory_reason(
    region: Region, load: Node, store: Node, distance: int, interval: int, again: int
) -> tuple[str, Place | None]:
    """Say which element is read after it was written, and what could be done about it.

    It comes `again` later than that in registers, of which the tools do not compare indices.
    """
    assert load.access is not None
    array, place = load.access.array, store.place
    if load is store:
        said = f"a word of `{array.name}` is read, changed and written for one element"
        return f"{said}; partition it", place
    if array.kind == "m_axi":
        promise = "" if _reads_earlier(region, store) else _PROMISE
        return f"`{array.name}` is read and written, {_ANSWERED}{promise}", place
    if store.access is None:  # it is handed on in a register already
        return carried_reason(region, load, store, interval)
    when = "the iteration before has written it"
    if distance > 1:
        when = f"it was written {distance} iterations before"
    chain = [node for node in _chain(region, load, store) if node is not load and node is not store]
    alone = ceil(_alone(region, load, chain) / distance)
    named = _named(chain, alone)
    slow = any(node.cost.latency > 1 for node in named)
    through = f", through {_words(named)}" if slow else ""
    said = f"`{array.name}` is read after {when} (load to store{through})"
    varies = _varies(region, store)
    if array.kind == "register" and again > distance:
        hint = f"leave ARRAY_PARTITION out: in a memory it is met again after {again} iterations"
    elif named and varies and all(node.item.op in _SUMS for node in named):
        hint = "use more accumulators"
    elif store.access.address.plus(load.access.address, -1).terms:
        hint = f"{_VARIABLE}, or {_NEVER}"
    elif _is_chosen(region, store) or (varies and array.kind == "register"):
        hint = _NEVER
    elif alone >= interval or array.kind == "register":
        hint = "a variable would take as long"
    else:
        hint = _VARIABLE
    return f"{said}; {hint}", place


def _reads_earlier(region: Region, store: Node) -> bool:
    """Whether a loop is seen to read an element that an earlier iteration wrote."""
    assert store.access is not None
    found = [node.access for node in region.accesses[id(store.access.array)] if node.access]
    symbol = f"loop {region.header}"
    return any(
        not one.write
        and store.access.address.plus(one.address, -1).terms == ()
        and distance_of(one, store.access, symbol) > 0
        for one in found
    )


def _alone(region: Region, load: Node, chain: list[Node]) -> int:
    """Return the cycles of what is between a load and a store."""
    if not chain:
        return 1
    ends = ends_of(region, load)
    first, last = ends[id(chain[0])][0] - chain[0].cost.latency, ends[id(chain[-1])][0]
    return last - first + 1


def _varies(region: Region, store: Node) -> bool:
    """Whether it is another element in each iteration, as far as can be seen."""
    assert store.access is not None
    counts = store.access.address.factor(f"loop {region.header}") != 0
    return counts or _is_chosen(region, store)


def _is_chosen(region: Region, store: Node) -> bool:
    """Whether the data tell which element it is, so that it may be another one each time."""
    assert store.access is not None
    names = {name for term, _ in store.access.address.terms for name in names_in(term)}
    return not names.isdisjoint(region.by_value)


def _chain(region: Region, first: Node, last: Node) -> list[Node]:
    """Return the operations that take time along the longest way from one to another."""
    ends = ends_of(region, first)
    way = [last]
    while way[-1] is not first:
        before = [
            (ends[id(other)], number)
            for number, (other, gap) in enumerate(way[-1].before)
            if id(other) in ends and gap != AFTER_READ
        ]
        if not before:
            break
        way.append(way[-1].before[max(before)[1]][0])
    return [node for node in reversed(way) if node.cost.latency or node.cost.delay]


def _scheduled(region: Region, last: Node) -> list[Node]:
    """Return the operations that take time in front of one in a schedule, each when it ends last.

    They begin with what the iteration before hands on.
    """
    way = [last]
    while way[-1].before and not region.is_carried(way[-1]):
        before = [other for other, gap in way[-1].before if gap != AFTER_READ]
        if not before:
            break
        way.append(max(before, key=lambda node: node.end))
    found = way[::-1] if region.is_carried(way[-1]) else [last]
    return [
        node for node in found if node.access is None and (node.cost.latency or node.cost.delay)
    ]


def _cycles(chain: list[Node]) -> int:
    return sum(node.cost.latency + 1 for node in chain if node.cost.latency)


def _named(chain: list[Node], interval: int) -> list[Node]:
    """Return what is worth to be named: what takes several cycles, and the rest if need be."""
    slow = [node for node in chain if node.cost.latency]
    if slow and _cycles(slow) >= interval:
        return slow
    return [node for node in chain if node.cost.latency or node.item.op not in _SMALL]


def _joined(nodes: list[Node], interval: int, clock: str) -> str:
    """Name operations one after another, with their cycles; many of them by kinds.

    What shares a DSP block takes fewer cycles together than its parts have.
    """
    what = [_with_cycles(node, interval) for node in nodes]
    if sum(cycles for _, cycles in what) > interval:
        return f"{_words(nodes)}, one after another ({interval} cycles at {clock}),"
    runs = [(one, len([*same])) for one, same in groupby(what)]
    if len(runs) > _MOST_NAMED:
        runs = [*Counter(what).items()]
    found: list[str] = []
    for (word, cycles), count in runs:
        at = "" if found else f" at {clock}"
        each = " each" if count > 1 else ""
        found.append(_many(word, count) + (f" ({cycles} cycles{each}{at})" if cycles else ""))
    return f"{_listed(found)}, one after another,"


def _words(nodes: list[Node]) -> str:
    """Name operations one after another; many of them by kinds."""
    what = [_word_for(node.item) for node in nodes]
    runs = [(one, len([*same])) for one, same in groupby(what)]
    if len(runs) > _MOST_NAMED:
        runs = [*Counter(what).items()]
    return _listed([_many(word, count) for word, count in runs])


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if words[:-1] else words[0]


def _many(what: str, count: int) -> str:
    name, of, rest = what.removeprefix("the ").partition(" of ")
    return what if count == 1 else f"{count} {name}s{of}{rest}"


def _with_cycles(node: Node, interval: int) -> tuple[str, int]:
    cycles = node.cost.latency
    return _word_for(node.item), min(cycles + 1, interval) if cycles else 0


_WORDS = {
    "fadd": "the floating-point addition", "fsub": "the floating-point addition",
    "fmul": "the floating-point product", "fdiv": "the division", "sdiv": "the division",
    "udiv": "the division", "srem": "the division", "urem": "the division", "mul": "the product",
    "load": "the read of memory", "add": "the addition", "sub": "the addition",
    "store": "the write", "fcmp": "the comparison", "icmp": "the comparison",
    "select": "the choice", "and": "the logic", "or": "the logic", "xor": "the logic",
    "phi": "the choice",
}  # fmt: skip


#: What LLVM calls functions that are operations.
_INTRINSICS = {
    **dict.fromkeys(("smax", "umax", "maxnum", "maximum"), "the maximum"),
    **dict.fromkeys(("smin", "umin", "minnum", "minimum"), "the minimum"),
    **dict.fromkeys(("abs", "fabs"), "the absolute value"),
    **dict.fromkeys(("fshl", "fshr"), "the shift"),
    **dict.fromkeys(("uadd", "sadd", "usub", "ssub"), "the addition"),
    **dict.fromkeys(("ctpop", "ctlz", "cttz", "bitreverse", "bswap"), "the logic"),
    **dict.fromkeys(("fma", "fmuladd"), "the floating-point product and addition"),
}


def _word_for(item: Instruction) -> str:
    """Name an operation for a reader."""
    if item.op == "call":
        name = item.callee.removeprefix("__hls_").split("_f")[0].removeprefix("llvm.")
        return _INTRINSICS.get(name := name.partition(".")[0], f"`{name}`")
    return _WORDS.get(item.op, f"`{item.op}`")
