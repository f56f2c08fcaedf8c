"""Arrays as a function sees them, and accesses to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, gcd, prod

from .asked import ArrayPlan
from .buffers import Buffers
from .scev import Expression, Known

__all__ = [
    "LUT_BITS",
    "Access",
    "Array",
    "Cuts",
    "Division",
    "along",
    "are_apart",
    "banks_of",
    "bits_between",
    "choices_of",
    "fitting",
    "may_meet",
    "meet_in_registers",
    "row_of",
    "runs_over",
    "span",
    "split",
]

_FEW = 4
#: Bits from which a memory is one of block RAM.
LUT_BITS = 1024
#: Of each dimension that is cut (from 0) the kind and the factor.
Cuts = dict[int, tuple[str, int]]


@dataclass(frozen=True)
class Division:
    """How the tool divides an array by itself, for one pipeline."""

    cuts: Cuts
    #: Memories that each bank is kept in, so that enough of it can be read at a time.
    copies: int = 1
    #: Whether a bank is met twice in a cycle.
    is_dual: bool = False
    #: Whether the pipeline gets a port for each access by it.
    relieves: bool = True
    #: Reads a cycle of each bank that directives make, where there are no more copies; 0 for all.
    most: int = 0


@dataclass(eq=False)
class Array:
    """One array or port as a function sees it."""

    name: str
    kind: str  # "memory", "register", "port", "m_axi", "stream", "scalar"
    dimensions: tuple[int, ...]
    element_bytes: int
    element_bits: int
    plan: ArrayPlan
    bundle: str = ""
    #: Of m_axi: the cycles after which its INTERFACE says that it answers.
    bus_latency: int | None = None
    #: Of m_axi: the bits of the widest word that its INTERFACE allows.
    widest: int | None = None
    #: Of m_axi: how much its adapter holds.
    buffers: Buffers = field(default_factory=Buffers)
    local: bool = False
    #: Whether it is a variable of a DATAFLOW region, between processes.
    between: bool = False
    #: Whether it keeps its values from call to call.
    static: bool = False
    #: Written with constants only, before anything else: HLS makes a ROM of it.
    constant: bool = False
    #: Whether the processor has the other port of its memory.
    shared: bool = False
    #: Of a struct, words and bits of each array in it.
    inner: list[tuple[int, int]] = field(default_factory=list)
    #: Whether it is an AXI4-Stream port.
    is_axis: bool = False
    #: Whether it is a variable that other files may use.
    foreign: bool = False
    #: Of a stream, whether its words are an array's elements: loads and stores are its accesses.
    of_elements: bool = False
    #: How the tool divides it by itself, for one pipeline each.
    divisions: list[Division] = field(default_factory=list)
    #: Latency of a read in cycles.
    latency: int = 1
    #: The array of which this is a row, and the rows that were asked for.
    whole: Array | None = None
    rows: dict[int, Array] = field(default_factory=dict)

    def row(self, offset: int) -> Array:
        """Return the memory that begins so many bytes behind the first: a row that is cut off.

        A function that is handed two rows has two memories, if dimension 1 is cut completely.
        """
        size = self.element_bytes * prod(self.dimensions[1:])
        cut = self.cuts().get(0, ("", 0))
        is_cut = self.kind == "memory" and cut[0] == "complete" and len(self.dimensions) > 1
        if not is_cut or offset % size:
            return self
        if offset not in self.rows:
            parts = [(max(d - 1, 0), how, n) for d, how, n in self.plan.parts if d != 1]
            self.rows[offset] = replace(
                self, dimensions=self.dimensions[1:], plan=replace(self.plan, parts=parts),
                whole=self, rows={}, divisions=[],
            )  # fmt: skip
        return self.rows[offset]

    def wait(self, bus_latency: int) -> int:
        """Return the cycles that a request to m_axi takes above those of a near memory.

        Either what INTERFACE says counts, or the design's own latency.
        """
        asked = bus_latency if self.bus_latency is None else self.bus_latency
        return max(asked - 1, 0)

    @property
    def words(self) -> int:
        """Elements, 0 where the size is not known."""
        return prod(self.dimensions) if self.dimensions else 0

    def all_cuts(self) -> Cuts:
        """How each dimension (from 0) is cut, by directives and by the tool itself."""
        found: Cuts = {}
        for division in self.divisions:
            for dimension, cut in division.cuts.items():
                found[dimension] = max(found.get(dimension, cut), cut, key=lambda one: one[1])
        return found | self.cuts()

    def cuts(self) -> Cuts:
        """How each dimension (from 0) is cut by directives."""
        found: Cuts = {}
        for dimension, kind, factor in self.plan.parts:
            chosen = range(max(len(self.dimensions), 1)) if dimension == 0 else [dimension - 1]
            for one in chosen:
                size = self.dimensions[one] if one < len(self.dimensions) else 0
                if kind != "complete" and size and factor >= size:
                    kind = "complete"
                found[one] = (kind, factor or 2)
        return found

    @property
    def is_registers(self) -> bool:
        """Whether every element is a register."""
        cuts = self.cuts()
        size = len(self.dimensions) or 1
        return bool(cuts) and all(cuts.get(one, ("", 0))[0] == "complete" for one in range(size))

    @property
    def is_tiny(self) -> bool:
        """Whether a memory of it would have so few words that both tools make registers of them.

        `config_array_partition` has the limit (UG902: "Arrays with fewer elements").
        """
        stored = self.constant or self.plan.kind or self.plan.implementation
        return self.local and not stored and 0 < _bank(self.dimensions, self.cuts()) < _FEW

    @property
    def in_luts(self) -> bool:
        """Whether a bank is so small that the tools read it as a memory made of LUTs.

        They do so of arguments too, whose memory is elsewhere.
        """
        asked, whole = self.plan.kind + "_" + self.plan.implementation, self.plan.reshaped
        if "lut" in asked or "bram" in asked or "uram" in asked:
            return "lut" in asked
        apart = {d: cut for d, cut in self.all_cuts().items() if not {0, d + 1} & whole}
        return 0 < _bank(self.dimensions, apart) * self.element_bits < LUT_BITS

    def banks(self) -> tuple[int, int]:
        """Into how many memories it is cut, and the elements of a word."""
        sizes, memories, elements = self.dimensions, 1, 1
        for dimension, (kind, factor) in self.all_cuts().items():
            size = sizes[dimension] if dimension < len(sizes) else 1
            parts = max(size if kind == "complete" else factor, 1)
            if {0, dimension + 1} & self.plan.reshaped:
                elements *= parts
            else:
                memories *= parts
        return memories, elements

    @property
    def is_fifo(self) -> bool:
        """Whether STREAM makes it a FIFO between processes of DATAFLOW."""
        return self.between and self.plan.kind == "fifo"

    def ports(self) -> int:
        """Accesses a cycle of one bank; FIFOs and single-port memories have one."""
        core = self.plan.kind + "_" + self.plan.implementation
        if self.kind == "stream" or self.shared or self.is_fifo:
            return 1
        if "2p" in core or "s2p" in core or "t2p" in core or "tdp" in core or "sdp" in core:
            return 2
        if "1p" in core:
            return 1
        return 2


@dataclass
class Access:
    """One load or store: its array, where in it, and which banks it takes."""

    array: Array
    write: bool
    address: Expression
    #: For each cut dimension the bank, None where it is not known or is any.
    banks: tuple[int | None, ...] = ()
    #: Among how many banks or registers the index chooses, as it varies.
    choices: int = 1

    @property
    def is_of_any_register(self) -> bool:
        """Whether it may be of any register of a static array that is partitioned completely."""
        array = self.array
        any_one = array.kind == "register" and array.static and None in self.banks
        return any_one and array.banks()[1] == 1


def _bank(dimensions: tuple[int, ...], cuts: Cuts) -> int:
    """Return the words of the largest bank of an array; 0 where its size is not known."""
    sizes = [*dimensions]
    for dimension, (kind, factor) in cuts.items():
        if dimension < len(sizes):
            sizes[dimension] = 1 if kind == "complete" else ceil(sizes[dimension] / factor)
    return prod(sizes) if sizes else 0


def bits_between(low: int, high: int) -> int:
    """Return the bits of a memory for numbers between two: HLS keeps no more."""
    return max(high.bit_length(), (-low - 1).bit_length() if low < 0 else 0, 1) + (low < 0)


def split(address: Expression, array: Array) -> list[tuple[int, list[int], bool]]:
    """Split a byte address over an array's dimensions: constant, factors, whether it is unknown."""
    return [(whole, [*steps.values()], odd) for whole, steps, odd in along(address, array)]


def along(address: Expression, array: Array) -> list[tuple[int, dict[str, int], bool]]:
    """Split an address likewise, with what each factor is of."""
    strides, size = [], array.element_bytes
    for length in reversed(array.dimensions[1:]):
        strides.append(size)
        size *= max(length, 1)
    strides.append(size)
    strides.reverse()
    constant, left = address.constant, list(address.terms)
    found: list[tuple[int, dict[str, int], bool]] = []
    for stride in strides:
        here = [
            (name, factor)
            for name, factor in left
            if abs(factor) >= stride and factor % stride == 0
        ]
        odd = [(name, factor) for name, factor in left if abs(factor) >= stride and factor % stride]
        left = [pair for pair in left if pair not in here and pair not in odd]
        whole = constant // stride
        constant -= whole * stride
        found.append((whole, {name: factor // stride for name, factor in here}, bool(odd)))
    return found


def row_of(array: Array, step: int) -> int:
    """Return the bytes of the shortest row of an array that is longer than a step; 0 for none."""
    sizes = array.dimensions
    rows = (array.element_bytes * prod(sizes[one:]) for one in range(1, len(sizes)))
    return min((row for row in rows if row > abs(step)), default=0)


def runs_over(address: Expression, array: Array, counts: Mapping[str, Known]) -> bool:
    """Whether a loop goes on from row to row of an array with one counter, as in `a[i / 8][i % 8]`.

    `counts` has how often each loop runs, less one.
    """
    for name, factor in address.terms:
        taken = counts[name].expression if name in counts else Expression()
        row = row_of(array, factor)
        if row and not taken.terms and abs(factor) * taken.constant >= row:
            return True
    return False


def banks_of(
    array: Array, address: Expression, counts: Mapping[str, Known], *, write: bool
) -> tuple[int | None, ...]:
    """Return which bank of each dimension that is cut an address is in.

    It may not be known (None), or any in turn. `counts` has how often each loop runs, less one.
    """
    cuts = array.cuts()
    parts = along(address, array) if cuts else []
    banks: list[int | None] = []
    for dimension, (kind, factor) in sorted(cuts.items()):
        constant, terms, unknown = parts[dimension] if dimension < len(parts) else (0, {}, True)
        steps = [*terms.values()]
        size = array.dimensions[dimension] if dimension < len(array.dimensions) else 0
        bank, length = None, ceil(size / factor) if factor and kind == "block" else 0
        if not unknown and kind == "complete":
            # All accesses of an iteration move alike: constants tell which of them meet.
            bank = None if steps and array.is_registers else constant
        elif not unknown and kind == "cyclic":
            # A write that may go to any bank is a branch for each of them, unless loops alone
            # count on: then writes side by side are never in one bank.
            anywhere = write and not address.only_counts and gcd(factor, *steps) == 1 < factor
            bank = None if anywhere else constant % factor
        elif not unknown and length:
            reached = {end // length for end in span(constant, terms, counts)}
            if len(reached) == 1:
                (bank,) = reached
            elif abs(constant) >= length:
                bank = constant // length
        banks.append(bank)
    return tuple(banks)


def span(constant: int, terms: Mapping[str, int], counts: Mapping[str, Known]) -> tuple[int, ...]:
    """Return the least and the greatest that an index becomes while loops count; or nothing."""
    low = high = constant
    for name, step in terms.items():
        taken = counts[name].expression if name in counts else None
        if taken is None or taken.terms:
            return ()
        low, high = low + min(step * taken.constant, 0), high + max(step * taken.constant, 0)
    return low, high


def choices_of(array: Array, address: Expression) -> int:
    """Return among how many banks, or registers, an index chooses as it varies.

    One that is a constant in a dimension, as behind unrolling, chooses none there. Of registers
    every element is one, also where directives do not cut the array, or not in each dimension.
    """
    cuts = array.cuts()
    if array.kind == "register":
        cuts = dict.fromkeys(range(len(array.dimensions)), ("complete", 0))
    parts = split(address, array) if cuts else []
    among = 1
    for dimension, (kind, factor) in cuts.items():
        _, steps, unknown = parts[dimension] if dimension < len(parts) else (0, [], True)
        size = array.dimensions[dimension] if dimension < len(array.dimensions) else 0
        steps = [step for step in steps if kind != "cyclic" or step % factor]
        if steps or unknown:
            among *= max(size if kind == "complete" else factor, 1)
    return among


def fitting(
    banks: tuple[int | None, ...], met: Iterable[tuple[int | None, ...]]
) -> list[tuple[int | None, ...]]:
    """Return which of the banks that are met an access may take that has these."""
    return [one for one in met if all(b is None or a == b for a, b in zip(one, banks, strict=True))]


def meet_in_registers(one: Access, other: Access, tool: str) -> bool:
    """Whether Vivado HLS takes two accesses for ones of the same register.

    Each may be of several registers of a static array, and their addresses are not compared then:
    a line of registers that moves on by two places in an iteration takes a cycle for each (II=2).
    Rows, columns and fields that constants choose are apart.
    """
    if tool != "vivado" or not (one.is_of_any_register and other.is_of_any_register):
        return False
    size = one.array.element_bytes
    same_field = one.address.constant % size == other.address.constant % size
    return same_field and not are_apart(one, other)


def may_meet(one: Access, other: Access) -> bool:
    """Whether two accesses of an iteration may be of one element."""
    if one.address.terms == other.address.terms:
        return abs(one.address.constant - other.address.constant) < one.array.element_bytes
    if are_apart(one, other):
        return False
    difference = one.address.plus(other.address, -1)
    whole = gcd(*(factor for _, factor in difference.terms))
    return comes_near(difference.constant, whole, one.array.element_bytes)


def comes_near(apart: int, whole: int, size: int) -> bool:
    """Whether bytes `apart`, and any multiple of a `whole` more, may be less than `size`.

    They are not in rows of a matrix: `a[i][3]` and `a[k][4]` never are one element.
    """
    rest = apart % whole
    return rest < size or whole - rest < size


def are_apart(one: Access, other: Access) -> bool:
    """Whether two accesses are in banks that are known to differ."""
    pairs = zip(one.banks, other.banks, strict=False)
    return any(a is not None and b is not None and a != b for a, b in pairs)
