"""Whether a kernel's C++ is what the design in the handoff was built from.

The registers are derived from the source; the handoff lists those of the hardware. Their names need
not be equal: releases of HLS differ in the suffixes they add.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pynq_torch.hls.interface import Argument, AxiBundle, Interface, Register

from .handoff_ports import HandoffBus
from .handoff_registers import HandoffValue

_POINTERS = ("m_axi", "burst_maxi")
_VALID = re.compile(r"(_ctrl|_ap_vld|_vld)$")
#: What one release of HLS adds to a name and another does not.
_ADDED = re.compile(r"(_offset|_data|_r|_v)$", re.IGNORECASE)
#: Numbers of 8, 16, 32 and 64 bits.
_PLAIN = re.compile(
    r"(?:const |volatile )*"
    r"(float|double|half|hls::half|half_float::half|_Float16|(?:un)?signed char|char"
    r"|(?:unsigned )?(?:short|int|long|long long)|ap_u?int<(?:8|16|32|64)>)(?: const| volatile)*"
)


@dataclass(frozen=True)
class Element:
    """What a pointer's type in C++ says of every element there."""

    ctype: str  #: a number's
    bits: int
    #: Several narrower elements may be in one: of an unsigned word, or behind a
    #: ``hls::burst_maxi``, as kernels with wide ports have them.
    packs: bool


def element_of(argument: Argument) -> Element | None:
    """Return the elements of a pointer or array where they are plain numbers, else None.

    A pointer to void, to a struct, a vector or an odd width does not say what is in memory.
    """
    if argument.kind not in (*_POINTERS, "memory"):
        return None
    text = re.sub(r"^hls::burst_maxi<(.*)>$", r"\1", argument.ctype)
    text = re.sub(r"[\s*&]*(?:const)?(?:\s*\[[^\]]*\])*$", "", text.replace("(*)", "")).strip()
    found = _PLAIN.fullmatch(text)
    if found is None:
        return None
    word = re.match(r"unsigned (int|long)|ap_uint", found[1]) is not None
    return Element(found[1], argument.width, word or argument.kind == "burst_maxi")


@dataclass(frozen=True)
class Number:
    """What C++ says of a number in a register."""

    ctype: str
    kind: str  #: ``"int"``, ``"float"`` or ``"fixed"``
    bits: int
    #: Of ``ap_fixed`` behind its binary point.
    fraction_bits: int = 0


def number_of(argument: Argument) -> Number | None:
    """Return what a scalar is, None where it is no plain number: an enum, a struct."""
    if argument.kind not in ("scalar", "scalar_ptr"):
        return None
    text = re.sub(r"\b(?:const|volatile)\b|[*&]", " ", argument.ctype).strip()
    fixed = re.match(r"(ap_u?fixed)<\s*(\d+),\s*(-?\d+)", text)
    if fixed is not None:
        bits, integer_bits = int(fixed[2]), int(fixed[3])
        ctype = f"{fixed[1]}<{bits}, {integer_bits}>"
        return Number(ctype, "fixed", bits, bits - integer_bits)
    if re.fullmatch(r"ap_u?int<\s*\d+\s*>|bool", text):
        return Number(text, "int", argument.width)
    found = _PLAIN.fullmatch(text)
    if found is None:
        return None
    is_float = re.search(r"float|double|half|Float", found[1]) is not None
    return Number(found[1], "float" if is_float else "int", argument.width)


@dataclass(frozen=True)
class Derived:
    """A register that the source implies."""

    bundle: str
    register: Register
    argument: Argument | None

    @property
    def key(self) -> tuple[str, int]:
        """The bundle, and the offset that the source implies."""
        return self.bundle, self.register.offset

    @property
    def is_pointer(self) -> bool:
        """True for the address of an m_axi argument."""
        return self.argument is not None and self.argument.kind in _POINTERS

    @property
    def nwords(self) -> int:
        """32-bit registers."""
        return max(1, -(-self.register.width // 32))

    @property
    def shape(self) -> str:
        """What it is to a program: ``in``, ``out``, ``valid`` or ``memory``."""
        role = self.register.role
        return self.register.direction if role == "data" else role

    def __str__(self) -> str:
        if self.argument is None:
            return f"the return value ({self._size()})"
        return f"{self.argument.ctype} {self.argument.name} ({self._size()})"

    def _size(self) -> str:
        if self.shape == "memory":
            return f"a window of {self.register.nbytes} bytes at 0x{self.register.offset:02x}"
        what = "an address" if self.is_pointer else f"{self.register.width} bits"
        return f"{what} at 0x{self.register.offset:02x}"


class SlaveMatch:
    """The registers of one AXI-Lite slave: what the source implies beside what is listed."""

    def __init__(self, derived: Sequence[Derived], listed: Sequence[HandoffValue]) -> None:
        #: What the handoff lists for a derived register, by `Derived.key`.
        self.found: dict[tuple[str, int], HandoffValue] = {}
        #: Differences that make results wrong, and those that need not.
        self.problems: list[str] = []
        self.remarks: list[str] = []
        self._listed = listed
        self._derived = [d for d in derived if d.register.role != "control"]
        self._missing = list(self._derived)
        self._left = list(listed)
        self._pair(lambda d, v: d.register.name == v.name)
        self._pair_by_key(str)  # names that differ only in case are two arguments
        self._pair_by_key(_folded)
        self._by_place = self._pair(_same_place)
        if not listed:
            return
        self._check_missing()
        self._check_left()
        for one, value in self.pairs():
            self._check_pair(one, value)
        self._check_addresses()
        self._check_order()

    def pairs(self) -> Iterator[tuple[Derived, HandoffValue]]:
        """Yield the registers that both sides have."""
        for one in self._derived:
            if one.key in self.found:
                yield one, self.found[one.key]

    @property
    def is_unlisted(self) -> bool:
        """True where the source has arguments and the handoff lists none."""
        return bool(self._derived) and not self._listed

    def is_taken(self, bundle: str, offset: int) -> bool:
        """Tell whether the handoff has another argument where the source puts a register."""
        return (bundle, offset) not in self.found and self._at(offset) is not None

    def _at(self, offset: int) -> HandoffValue | None:
        return next((v for v in self._listed if v.offset <= offset < v.end), None)

    def _pair(
        self, same: Callable[[Derived, HandoffValue], bool]
    ) -> list[tuple[Derived, HandoffValue]]:
        pairs = []
        for one in tuple(self._missing):
            value = next((v for v in self._left if same(one, v)), None)
            if value is not None:
                self.found[one.key] = value
                self._missing.remove(one)
                self._left.remove(value)
                pairs.append((one, value))
        return pairs

    def _pair_by_key(self, fold: Callable[[str], str]) -> None:
        """Pair what only one of the registers left may be, with names as `fold` makes them."""
        keys = Counter(_value_key(value, fold) for value in self._left)
        self._pair(lambda d, v: _key(d, fold) == _value_key(v, fold) and keys[_key(d, fold)] == 1)

    # ---- what differs ------------------------------------------------------------------------

    def _check_missing(self) -> None:
        for one, value in self._by_place:
            self.remarks.append(f"{one} is called {value.name} in the handoff")
        for one in self._missing:
            if one.shape == "valid":
                continue
            other = self._at(one.register.offset)
            own = [v for d, v in self.pairs() if d.argument == one.argument and one.argument]
            if own and (other is None or other in own):
                # The source reads and writes it, as far as can be told; HLS saw one of the two.
                self.remarks.append(f"{one} has no register in the handoff")
            elif other is not None:
                self.problems.append(
                    f"{one} has no register of its own in the handoff: at "
                    f"0x{one.register.offset:02x} is {_text(other)}"
                )
            else:
                self.problems.append(f"{one} has no register in the handoff")

    def _check_left(self) -> None:
        known = {_key(d, _folded)[1] for d in self._derived}
        for value in self._left:
            if _value_key(value, _folded)[1] in known:
                continue  # a half, or the valid word, of what the source has as well
            text = f"the handoff has {_text(value)}, and the source has no such argument"
            # Where names differ all over, it may be one of those that differ.
            (self.remarks if self._by_place else self.problems).append(text)

    def _check_pair(self, one: Derived, value: HandoffValue) -> None:
        wanted = f"{one} is {_text(value)} in the handoff"
        width = one.register.width
        if one.shape == "valid":
            return
        if (one.shape == "memory") != value.window:
            self.problems.append(wanted)
        elif value.window:
            if value.nbytes is not None and value.nbytes != one.register.nbytes:
                self.problems.append(wanted)
        elif one.shape == "in" and value.read_only:
            self.problems.append(f"{wanted}, which a program can only read")
        elif one.shape == "out" and not value.read_only:
            self.remarks.append(f"{wanted}, which a program writes")
        elif one.is_pointer or not width or value.bits == width:
            return
        elif one.nwords != value.nwords:
            self.problems.append(wanted)
        elif value.bits is not None:
            self.remarks.append(wanted)

    def _check_addresses(self) -> None:
        """Find what became a pointer: HLS makes all addresses of a kernel equally wide."""
        pointers = [(d, v) for d, v in self.pairs() if d.is_pointer and not v.window]
        widest = max((value.nwords for _, value in pointers), default=0)
        for one, value in pointers:
            if value.nwords < widest:
                self.problems.append(
                    f"{one} is {_text(value)} in the handoff, where addresses have {32 * widest} "
                    "bits"
                )

    def _check_order(self) -> None:
        inputs = [(d, v) for d, v in self.pairs() if d.shape == "in"]
        derived = [d.register.name for d, _ in sorted(inputs, key=lambda pair: pair[0].key)]
        listed = [d.register.name for d, _ in sorted(inputs, key=lambda pair: pair[1].offset)]
        if derived != listed and not self.problems:
            self.remarks.append(
                f"the source has its arguments in the order {', '.join(derived)}, the handoff in "
                f"the order {', '.join(listed)}; values go by name"
            )


def named(names: Iterable[str], *candidates: str) -> str | None:
    """Return which of `names` one of the candidates is, the exact case of all of them first."""
    there = list(names)
    exact = next((name for name in candidates if name in there), None)
    folded = {name.lower(): name for name in there}
    return exact or next((folded[c.lower()] for c in candidates if c.lower() in folded), None)


def _plain(name: str) -> str:
    while (short := _ADDED.sub("", name)) not in (name, ""):
        name = short
    return name


def _base(shape: str, name: str) -> str:
    """Return the argument that a register is of: ``x`` of ``x_i``, ``x_o`` and ``x_o_ctrl``."""
    if shape == "valid":
        return _base("out", _VALID.sub("", name))
    suffix = {"in": "_i", "out": "_o"}.get(shape, "")
    return _plain(name.removesuffix(suffix) if suffix else name)


def _folded(name: str) -> str:
    return name.lower()


def _key(one: Derived, fold: Callable[[str], str] = str) -> tuple[str, str]:
    return one.shape, _base(one.shape, fold(one.register.name))


def _value_key(value: HandoffValue, fold: Callable[[str], str] = str) -> tuple[str, str]:
    if value.window:
        shape = "memory"
    elif value.read_only:
        shape = "valid" if _VALID.search(value.name) else "out"
    else:
        shape = "in"
    return shape, _base(shape, fold(value.name))


def _same_place(one: Derived, value: HandoffValue) -> bool:
    if one.register.offset != value.offset or one.shape != _value_key(value)[0]:
        return False
    if value.window:
        return value.nbytes is None or value.nbytes == one.register.nbytes
    return one.is_pointer or one.nwords == value.nwords


def _text(value: HandoffValue) -> str:
    if value.window:
        size = "a window" if value.nbytes is None else f"a window of {value.nbytes} bytes"
    else:
        size = f"{value.bits or 32 * value.nwords} bits"
    return f"{value.name} ({size} at 0x{value.offset:02x})"


def bus_differences(
    interface: Interface, buses: Mapping[str, HandoffBus]
) -> Iterator[tuple[bool, str]]:
    """Yield how the AXI masters differ: whether results are wrong, and a sentence.

    The handoff may have a wider one: releases of HLS widen it where a kernel reads in bursts.
    """
    masters = {n: b for n, b in buses.items() if b.kind == "aximm" and b.initiator}
    for bundle in interface.axi_bundles.values():
        bus = _bus_of(bundle, masters, len(interface.axi_bundles))
        if bus is None or bus.data_bytes is None:
            continue
        for name in bundle.arguments:
            argument = interface.argument(name)
            if element_of(argument) and argument.width > 8 * bus.data_bytes:
                text = (
                    f"{argument.ctype} {name} has elements of {argument.width} bits, and its "
                    f"interface {bus.name} moves {8 * bus.data_bytes} at a time in the handoff"
                )
                yield True, text


def _bus_of(bundle: AxiBundle, masters: Mapping[str, HandoffBus], count: int) -> HandoffBus | None:
    found = named(masters, f"m_axi_{bundle.name}", f"m_axi_{bundle.name}_r")
    if found is not None:
        return masters[found]
    return next(iter(masters.values())) if count == len(masters) == 1 else None
