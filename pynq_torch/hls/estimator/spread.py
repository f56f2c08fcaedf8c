"""Arrays that Vitis HLS cuts or copies by itself, so that a pipeline finds a port for each access.

``config_array_partition -throughput_driven auto`` is its default (UG1399). What it does in detail
was taken from the logs and memory tables of published runs of 2020.2 to 2025.2 ("Inferring pragma
'array_partition type=cyclic factor=3 dim=1' for array ... due to pipeline pragma"):

- A dimension in which a pipeline has several constant indices is cut completely.
- Since 2022 others are cut too, cyclic, from the last dimension to the first: into half as many
  banks as there are elements, each of which has two ports; into as many where their number is odd,
  or where they are read and written. A window of 3 x 3 has nine banks, one of 2 x 2 has two.
- For a pipeline in which the tool by itself unrolls loops an array is copied at most, if no
  directive binds its storage and it is not between processes of DATAFLOW.
- Four words at most become registers, where it is not known which of them an iteration meets.
- What is still read at more than two places is kept in several copies ("Automatically inferring
  RAM_1WNR storage type"), from which up to 16 can be read in a cycle, but where a directive binds
  its storage. It may be written in the same pipeline, at one place (the words of a SHA-2 in a
  schedule of 2025.1), and directives may cut it (five loops of 2024.2). That is no partition, and
  ``-throughput_driven off`` does not forbid it.
- Nothing is done that would not make II less: where a recurrence or a port limits it anyway.

Arrays of the interface stay as they are, and so do variables of other files, memories that a
directive makes of UltraRAM, and those that a function takes in several calls. Those that a function
takes which is inlined in the pipeline are cut along constant indices at most, or copied, and tables
not even copied (a static window of 3 x 3 and its tables in a report of 2025.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil, prod

from .array import Access, Array, Cuts, Division, split
from .bounds import ports_needed
from .place import Place, header_folders
from .region import Node, Region
from .target import Target

__all__ = ["divide"]

#: The first release that cuts cyclic, and the first that copies (four memories of three reports).
_CYCLIC, _COPIES = 2022.0, 2020.2
#: Bits of a memory that is still copied: a report has 1.8 Mbit, and a memory of 25 Mbit was not.
_MOST_COPIED = 1 << 21
#: Read ports of a memory that is copied: none of 23 in published RTL has more.
_MOST_READS = 16
#: Words of a bank that become registers where it is not known which of them is met.
_FEW = 4


@dataclass(frozen=True)
class _Along:
    """One dimension of the accesses of a pipeline's iteration: where they are, how they move."""

    places: frozenset[int]
    steps: tuple[int, ...]
    unknown: bool

    @property
    def fixed(self) -> bool:
        """Whether the indices are constants."""
        return not self.steps and not self.unknown

    @property
    def span(self) -> int:
        """How many neighbours the places are."""
        return max(self.places) - min(self.places) + 1

    @property
    def stays(self) -> bool:
        """Whether each access keeps to one of so many banks in all iterations."""
        return len(self.places) == 1 or not (
            self.unknown or any(step % self.span for step in self.steps)
        )


def divide(region: Region, shared: Collection[Array], least: int, *, by_itself: bool) -> None:
    """Divide the arrays whose ports alone keep a pipeline from its interval.

    Parameters
    ----------
    region : Region
        The pipeline.
    shared : collection of Array
        Arrays that the function takes in several calls.
    least : int
        The interval that is asked for, or that recurrences allow.
    by_itself : bool
        Whether no directive asks for the pipeline, nor unrolls what is in it.
    """
    if region.target.tool != "vitis":
        return
    found: list[tuple[int, Array, Division]] = []
    calls = _calls_around(region)
    for key, nodes in region.accesses.items():
        accesses = [node.access for node in nodes if node.access is not None and not node.joined]
        array = accesses[0].array if accesses else None
        if array is None or not _may_be_divided(array, nodes, shared, by_itself=by_itself):
            continue
        called = any(_is_called(node, calls) for node in nodes)
        whole = by_itself or _stays_whole(region.target, called=called)
        division = _division(accesses, region.target, least, only_fixed=called, whole=whole)
        if called and division is not None and division.copies > 1:
            reads = sum(not access.write for access in accesses)
            division = None if array.constant or reads > _MOST_READS else division
        if division is not None and (division.cuts or division.copies > 1):
            found.append((key, array, division))
    region.spread = {key: division.most for key, _, division in found}
    least = max(least, ports_needed(region)[0])
    for key, array, division in found:
        needed = _interval(region, key, array) > least
        if needed:
            array.divisions.append(division)
        if not needed or not division.relieves:
            del region.spread[key]


def _may_be_divided(
    array: Array, nodes: Sequence[Node], shared: Collection[Array], *, by_itself: bool
) -> bool:
    """Whether an array is the kernel's own, and no directive has said all about it."""
    if any("volatile" in node.item.text for node in nodes):
        return False
    if by_itself and (array.plan.kind or array.between):
        return False
    if array.kind != "memory" or not array.local or array.foreign or array in shared:
        return False
    return "uram" not in array.plan.implementation


def _stays_whole(target: Target, *, called: bool) -> bool:
    """Whether arrays are copied at most.

    What an inlined function reads was still whole in a report of 2022.1 (AMD's DCT), cut in one of
    2025.1: those are on either side of the release that changed the order of the first compiler.
    """
    return (called and target.unrolls_late) or not target.divides


def _calls_around(region: Region) -> int:
    """Return how many calls that were inlined a pipeline is in."""
    headers = {block.name for block in region.blocks if block is not None}
    loops = (loop for loop in region.function.loops if loop.header in headers)
    return min((len(_own(loop.chain)) for loop in loops), default=1) - 1


def _is_called(node: Node, calls: int) -> bool:
    """Whether an access is in a function that was inlined, in a pipeline that is in `calls`."""
    return len(_own(node.item.chain)) > calls + 1


def _own(chain: Sequence[Place]) -> list[Place]:
    """Return the places of a chain that are in the kernel's own files."""
    return [at for at in chain if not at.file.startswith(header_folders())]


def _interval(region: Region, key: int, array: Array) -> int:
    """Return the interval that the ports of an array allow if nothing is done about it."""
    nodes = [node for node in region.accesses[key] if node.access is not None and not node.joined]
    banks: dict[tuple[int | None, ...], list[Node]] = {}
    for node in nodes:
        assert node.access is not None
        banks.setdefault(node.access.banks, []).append(node)
    return max(ceil(region.together(some) / array.ports()) for some in banks.values())


def _division(
    accesses: Sequence[Access], target: Target, least: int, *, only_fixed: bool, whole: bool
) -> Division | None:
    """Return how an array is divided for the accesses of an iteration; None where it is not.

    One that stays `whole` is copied at most; `only_fixed` cuts along constant indices at most.
    """
    array, ports = accesses[0].array, accesses[0].array.ports()
    both = len({access.write for access in accesses}) > 1
    if len({access.address.terms for access in accesses}) > 1:
        return (None if whole else _apart(accesses)) or _copied_whole(accesses, target, least)
    parts = [split(access.address, array) for access in accesses]
    along = [
        _Along(frozenset(part[0] for part in each), tuple(each[0][1]), each[0][2])
        for each in zip(*parts, strict=True)
    ]
    elements = {tuple(part[0] for part in one) for one in parts}
    if len(elements) * (1 + both) <= ports:
        return None
    # Lines that move up through each other are cut, but it is not known which bank is met when.
    passes = both and not all(one.stays for one in along)
    left = len(elements)
    left = left if both or left % ports else left // ports
    cyclic = not only_fixed and (both or not 0 < target.release < _CYCLIC)
    cuts, banks = _uncut(array) if whole else _cuts(array, along, left, cyclic=cyclic)
    places = {(a.write, *(p[0] for p in one)) for a, one in zip(accesses, parts, strict=True)}
    at = [tuple(p % n for p, n in zip(one[1:], banks, strict=True)) for one in places]
    met = max(Counter(at).values())
    if met <= ports:
        return Division(cuts, 1, met > 1, not passes)
    more = prod(banks) // prod(_uncut(array)[1])
    read, written = (
        [bank for place, bank in zip(places, at, strict=True) if place[0] is way]
        for way in (False, True)
    )
    met = max(Counter(read).values(), default=0)
    if len(written) > 1:
        return None
    return _copies(array, met, target, least, cuts, more, written=bool(written))


def _apart(accesses: Sequence[Access]) -> Division | None:
    """Return that a few words become registers, if no cut parts the accesses; None for more words.

    Four rows of a matrix, of which two are rotated, do so in a log of 2025.1.
    """
    array, different = accesses[0].array, {(one.write, one.address) for one in accesses}
    own, sizes = array.cuts(), array.dimensions
    cuts: Cuts = {one: ("complete", size) for one, size in enumerate(sizes) if one not in own}
    if not 0 < prod(size for _, size in cuts.values()) <= _FEW or len(different) <= array.ports():
        return None
    return Division(cuts, most=len(different))


def _copied_whole(accesses: Sequence[Access], target: Target, least: int) -> Division | None:
    """Return the copies of an array whose addresses move each in its own way: no cut parts them."""
    reads, writes = ({one.address for one in accesses if one.write is way} for way in (False, True))
    many = accesses[0].array.cuts() or len(writes) > 1
    array, written = accesses[0].array, bool(writes)
    return None if many else _copies(array, len(reads), target, least, written=written)


def _copies(
    array: Array, reads: int, target: Target, least: int, cuts: Cuts | None = None, more: int = 1,
    *, written: bool,
) -> Division | None:  # fmt: skip
    """Return the copies from which so many reads can be served; None where there will be none.

    Each has `more` banks by `cuts`. An interval of `least` is all that the pipeline can reach. Of a
    table there are as many as are read. Of each a port is for what is written; where the pipeline
    itself writes none, one of them serves a second read.
    """
    large = array.words * array.element_bits > _MOST_COPIED
    if reads <= array.ports() or large or array.plan.kind or 0 < target.release < _COPIES:
        return None
    if array.constant:
        return Division(cuts or {}, reads - 1, is_dual=True)
    at_once = ceil(reads / max(least, ceil(reads / _MOST_READS)))
    most = _MOST_READS * more if reads > _MOST_READS else 0
    return Division(cuts or {}, max(at_once - (not written), 1), is_dual=True, most=most)


def _cuts(
    array: Array, along: Sequence[_Along], banks: int, *, cyclic: bool
) -> tuple[Cuts, list[int]]:
    """Return how the dimensions are cut into about so many banks, and the banks of each of them."""
    cuts: Cuts = {}
    sizes, own = array.dimensions, array.cuts()
    made = [_parts(array, one) for one in range(len(along))]
    order = sorted(range(len(along)), key=lambda one: (not along[one].fixed, -one))
    for one in order:
        each = along[one]
        if one in own or len(each.places) == 1:
            banks = ceil(banks / len(each.places))
        elif each.fixed:
            made[one] = max(sizes[one] if one < len(sizes) else 0, each.span)
            cuts[one] = "complete", made[one]
            banks = ceil(banks / len(each.places))
        elif cyclic and banks > 1 and each.span == len(each.places):
            made[one] = min(each.span, banks)
            cuts[one] = "cyclic", made[one]
            banks = ceil(banks / made[one])
    return cuts, made


def _uncut(array: Array) -> tuple[Cuts, list[int]]:
    """Return what directives alone make of an array."""
    return {}, [_parts(array, one) for one in range(len(array.dimensions) or 1)]


def _parts(array: Array, dimension: int) -> int:
    """Return the banks that a directive makes of a dimension, of which neighbours have several."""
    kind, factor = array.cuts().get(dimension, ("", 1))
    size = array.dimensions[dimension] if dimension < len(array.dimensions) else 1
    return {"complete": size, "cyclic": factor}.get(kind, 1)
