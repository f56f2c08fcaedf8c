"""When an iteration tells whether its loop goes on."""

from __future__ import annotations

from .bounds import Limit, kept
from .region import Node, Region, Slot

__all__ = ["Exits"]


class Exits:
    """What tells whether a loop goes on, if more does than what counts iterations.

    The next iteration begins when that is known in Vitis HLS: II=2 where a word of memory ends a
    loop (two in a report of 2020.2). Vivado HLS begins it before (a sort, and loops that wait for
    pixels, have II=1), if it accesses nothing volatile (II=9 where a word of a bus ends a loop).

    LLVM has the condition of a `while` at the end of an iteration, HLS where the next one begins:
    what it takes of the iteration before may come in the same cycle (II=1 of a way back through a
    matrix in memory).
    """

    def __init__(self, region: Region) -> None:
        self._region = region
        self._deciding = _deciding(region)
        self._made = {id(last) for _, last in region.carried_values()}
        #: What the condition of a `while` is made of, in order, from what an iteration hands on.
        self._next: list[Node] = []
        tests = {id(one) for one in self._deciding if self._is_written_first(one)}
        if tests:
            self._next = self._of_the_next(tests)

    def limit(self, interval: int) -> Limit | None:
        """Return the next interval to try, where one is too short to tell in time; else None."""
        if not self._deciding:
            return None
        told = self._told(interval)
        last = max(self._deciding, key=lambda one: told.get(id(one), one.end))
        cycle, _ = told.get(id(last), last.end)
        if cycle < interval:
            return None
        longer = interval + 1 if id(last) in told else cycle + 1
        reason = (
            f"each iteration waits {longer} cycles for the one before it to tell whether the loop "
            "goes on; decide by what is in a variable already, or count up to a bound"
        )
        return Limit(longer, reason, last.place)

    def _is_written_first(self, node: Node) -> bool:
        """Whether it is of the condition of a `while` or `for`, not of a `break` behind it."""
        loop = self._region.loop.place if self._region.loop is not None else None
        here = node.place
        return bool(loop and here and (here.path, here.line) == (loop.path, loop.line))

    def _of_the_next(self, tests: set[int]) -> list[Node]:
        behind, found = set(tests), []
        for node in reversed(self._region.nodes):
            if id(node) in behind:
                behind.update(id(other) for other, _ in node.before)
        late: set[int] = set()
        for node in self._region.nodes:
            before = {id(other) for other, _ in node.before}
            if id(node) in behind and before & (late | self._made):
                late.add(id(node))
                found.append(node)
        return found

    def _told(self, interval: int) -> dict[int, Slot]:
        """Return when the operations of a condition end, by the cycles of the next iteration."""
        ends: dict[int, Slot] = {}
        for node in self._next:
            ready = (0, 0.0)
            for other, _ in node.before:
                end = ends.get(id(other))
                if end is None:
                    cycle, time = kept(self._region, other, other.end, node)
                    end = cycle - interval, time
                ready = max(ready, end)
            ends[id(node)] = self._region.ends(node, self._region.begins(node, ready))
        return ends


def _deciding(region: Region) -> list[Node]:
    """Return the values by which a loop is left, other than of its counter."""
    eager = region.target.tool == "vivado"
    if eager and not any("volatile" in node.item.text for node in region.nodes):
        return []
    loop = region.loop
    if loop is None or loop.taken is not None:
        return []
    blocks = [region.function.blocks[name] for name in loop.blocks]
    leaving = [one for one in blocks if not all(name in loop.blocks for name in one.successors)]
    told = [one.instructions[-1].operands[:1] for one in leaving if one.instructions]
    found = (region.by_value.get(name) for names in told for name in names)
    return [one for one in found if one is not None and not _takes_a_word(one)]


def _takes_a_word(node: Node) -> bool:
    """Whether a value is made of what a stream has given in the same iteration."""
    seen, left = {id(node)}, [node]
    while left:
        one = left.pop()
        if one.stream:
            return True
        left += [other for other, gap in one.before if not gap and id(other) not in seen]
        seen.update(id(other) for other in left)
    return False
