"""C++ types as an HLS tool sees them: widths in bits, struct members, streams.

Widths of ``ap_int`` and its kin are template arguments, not ``sizeof``; libclang's canonical
spelling carries them evaluated, whatever typedefs and templates are in between.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pynq_torch.errors import needs

from .interface import Axis

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Type, TypeKind

__all__ = ["CType", "describe"]

_AP = re.compile(
    r"^(?:(?:\w+::)*(?:ap_u?int|ap_u?fixed|ap_int_base|ap_fixed_base|ap_private|ssdm_int_sim)"
    r"|ap_float)<\s*(\d+)"
)
_STREAM = re.compile(r"^(?:const )?(?:hls::)?(stream|stream_of_blocks)<")
_BURST = re.compile(r"^(?:const )?hls::burst_maxi<")
_AXIS = re.compile(r"^(?:const )?(?:hls::)?(axis|ap_axis|ap_axiu|qdma_axis)<(.*)>$")
_HALF = {"half", "hls::half", "half_float::half", "_Float16", "__fp16"}
_ARRAYS = {
    TypeKind.CONSTANTARRAY,
    TypeKind.INCOMPLETEARRAY,
    TypeKind.VARIABLEARRAY,
    TypeKind.DEPENDENTSIZEDARRAY,
}
_REFERENCES = {TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE}
_SIDE = {"keep", "strb", "user", "last", "id", "dest"}
# Bits of EnableSideChannels, the fifth template argument of hls::axis (UG1399).
_ENABLE = {"dest": 0x02, "id": 0x04, "keep": 0x08, "last": 0x10, "strb": 0x20, "user": 0x40}


@dataclass(frozen=True)
class CType:
    """A type without its pointers, references and array dimensions.

    Parameters
    ----------
    spelling : str
        The canonical spelling of the whole type.
    form : {"scalar", "struct", "stream", "burst_maxi", "void", "unknown"}
        What kind of thing one element is.
    bits : int
        Width of one element; for a stream, of what it carries.
    storage_bits : int
        Bits one element takes in memory, a whole number of bytes.
    arbitrary : bool
        An ``ap_int`` or ``ap_fixed``, whose register Vivado HLS calls ``x_V``.
    pointer, reference, const, volatile : bool
        How the argument is passed; `const` is that of the element.
    dims : tuple of int
        Array dimensions; an open one is 0.
    fields : tuple of (str, CType)
        Members of a struct.
    axis : Axis or None
        For a stream, the AXI4-Stream signals it needs.
    """

    spelling: str
    form: str
    bits: int
    storage_bits: int = 0
    arbitrary: bool = False
    pointer: bool = False
    reference: bool = False
    const: bool = False
    volatile: bool = False
    dims: tuple[int, ...] = ()
    fields: tuple[tuple[str, CType], ...] = ()
    axis: Axis | None = None

    @property
    def packet(self) -> Axis | None:
        """The signals of a struct of ``data`` and side channels, None for any other type."""
        if self.form == "struct" and self.axis is not None:
            return self.axis
        members = dict(self.fields)
        if "data" not in members or not {"last", "keep"} & members.keys():
            return None
        if not members.keys() <= _SIDE | {"data"}:
            return None
        return _axis(_total_bits(members["data"]), {name: m.bits for name, m in self.fields})


def describe(ctype: Type) -> CType:
    """Return what an HLS tool makes of `ctype`, an argument's or return value's type."""
    canonical = ctype.get_canonical()
    pointer = reference = False
    dims: list[int] = []
    if canonical.kind in _REFERENCES:
        reference = True
        canonical = canonical.get_pointee()
    while True:
        if canonical.kind in _ARRAYS:
            count = canonical.element_count if canonical.kind == TypeKind.CONSTANTARRAY else 0
            dims.append(count)
            canonical = canonical.element_type
        elif canonical.kind == TypeKind.POINTER:
            # int (*x)[4] is how C passes int x[][4].
            pointer = True
            canonical = canonical.get_pointee()
            if canonical.kind in _ARRAYS:
                dims.append(0)
        else:
            break
    return replace(
        _element(canonical),
        spelling=ctype.get_canonical().spelling,
        pointer=pointer,
        reference=reference,
        const=canonical.is_const_qualified(),
        volatile=canonical.is_volatile_qualified(),
        dims=tuple(dims),
    )


def _storage(bits: int) -> int:
    """Return the bits an arbitrary-precision value takes in memory: a power of two of bytes."""
    return max(8, 1 << (bits - 1).bit_length())


def _element(canonical: Type) -> CType:
    name = _unqualified(canonical.spelling)
    match = _AP.match(name)
    if match:
        bits = int(match[1])
        return CType(name, "scalar", bits, _storage(bits), not name.startswith("ap_float"))
    if _STREAM.match(name):
        return _stream(canonical, name)
    if _BURST.match(name):
        inner = _element(canonical.get_template_argument_type(0).get_canonical())
        return CType(name, "burst_maxi", inner.bits, inner.storage_bits)
    if canonical.kind == TypeKind.VOID:
        return CType(name, "void", 0)
    if canonical.kind == TypeKind.BOOL:
        return CType(name, "scalar", 1, 8)
    if canonical.kind == TypeKind.RECORD and name not in _HALF:
        return _record(canonical, name)
    known = 16 if name in _HALF else 32 if canonical.kind == TypeKind.ENUM else 0
    bits = known or 8 * canonical.get_size()
    return CType(name, "scalar", bits, bits) if bits > 0 else CType(name, "unknown", 0)


def _unqualified(spelling: str) -> str:
    return re.sub(r"^(?:(?:const|volatile|struct|class|enum)\s+)+", "", spelling).strip()


def _record(canonical: Type, name: str) -> CType:
    if name.startswith(("hls::vector<", "std::array<", "std::complex<", "hls::x_complex<")):
        inner = _element(canonical.get_template_argument_type(0).get_canonical())
        last = re.search(r",\s*(\d+)(?:U?L*)>$", name)
        count = int(last.group(1)) if last else 2
        width = inner.storage_bits * count
        return CType(name, "scalar", width, width)
    size = canonical.get_size()
    if size <= 0:
        return CType(name, "unknown", 0)
    fields = tuple((item.spelling, describe(item.type)) for item in canonical.get_fields())
    match = _AXIS.match(name)
    axis = _axis_class(canonical, *match.groups()) if match else None
    return CType(name, "struct", 8 * size, 8 * size, fields=fields, axis=axis)


def _stream(canonical: Type, name: str) -> CType:
    if canonical.get_num_template_arguments() < 1:
        return CType(name, "stream", 0)
    axis = _axis_of(canonical.get_template_argument_type(0).get_canonical())
    return CType(name, "stream", 8 * axis.data_bytes, axis=axis)


def _axis_of(payload: Type) -> Axis:
    """Return the AXI4-Stream signals of a stream of `payload`, an element type."""
    match = _AXIS.match(_unqualified(payload.spelling))
    if match:
        return _axis_class(payload, *match.groups())
    element = _element(payload)
    return element.packet or Axis(data_bytes=(_total_bits(element) + 7) // 8)


def _total_bits(ctype: CType) -> int:
    total = ctype.bits
    for count in ctype.dims:
        total = ctype.storage_bits * max(count, 1) if total == ctype.bits else total * count
    return total


def _axis_class(payload: Type, family: str, inside: str) -> Axis:
    """Read ``hls::axis<T, WUser, WId, WDest, Enable>`` or a kernel's own ``ap_axis<W, ...>``."""
    data, *others = _template_arguments(inside)
    if family == "axis":
        data_bits = _element(payload.get_template_argument_type(0).get_canonical()).bits
    else:
        data_bits = _integer(data)
    numbers = [_integer(item) for item in others[:4]]
    *widths, enable = numbers + [0, 0, 0, 0x7F][len(numbers) :]
    channels = {name: 1 for name, bit in _ENABLE.items() if enable & bit}
    named = zip(("user", "id", "dest"), widths, strict=True)
    return _axis(data_bits, channels | {name: bits for name, bits in named if name in channels})


def _axis(data_bits: int, channels: Mapping[str, int]) -> Axis:
    """Return the signals of a stream with these side channels, given by their widths."""
    return Axis(
        data_bytes=(data_bits + 7) // 8,
        has_last="last" in channels,
        has_keep="keep" in channels,
        has_strb="strb" in channels,
        user_bits=channels.get("user", 0),
        id_bits=channels.get("id", 0),
        dest_bits=channels.get("dest", 0),
    )


def _integer(text: str) -> int:
    """Read a template argument; libclang spells one of type uint8_t as a character."""
    if text.startswith("'"):
        return ord(ast.literal_eval(text))
    return int(text.rstrip("UL"))


def _template_arguments(text: str) -> list[str]:
    """Split template arguments at the commas of the outermost level."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [*parts, current.strip()]
