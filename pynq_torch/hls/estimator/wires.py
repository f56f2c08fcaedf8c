"""Which bits of a value may be ones: joining bits that never meet is wire, not logic."""

from __future__ import annotations

from .ir import Function, Instruction, bits_of

__all__ = ["is_wire", "narrow_sums", "possible_ones"]

_DEEPEST = 400


def is_wire(item: Instruction, function: Function) -> bool:
    """Whether an ``or``, ``xor`` or ``add`` only puts bits of two values side by side."""
    if len(item.operands) != 2 or item.type.startswith("<"):
        return False
    one, other = (possible_ones(name, function) for name in item.operands)
    return not one & other


def narrow_sums(function: Function) -> None:
    """Note of sums and differences how many bits are used: those of `ap_uint<9>` are masked."""
    for block in function.blocks.values():
        for item in block.instructions:
            made = function.values.get(item.operands[0]) if len(item.operands) == 1 else None
            if made is None or made.op not in ("add", "sub") or function.uses[made.name] != 1:
                continue
            last = item.text.rsplit(" ", 1)[-1]
            number = int(last) if last.isdigit() else 0
            bits = bits_of(made.type)
            if item.op == "trunc":
                bits = bits_of(item.type)
            elif item.op == "and" and number and number & (number + 1) == 0:
                bits = number.bit_length()
            elif item.op == "shl":
                bits -= number
            function.loaded[made.name] = max(bits, 1)


def possible_ones(value: str, function: Function, deep: int = 0) -> int:
    """Return a mask of the bits of a value that may be ones."""
    known = function.ones.get(value)
    if known is not None:
        return known
    item = function.values.get(value)
    if item is None or not bits_of(item.type) or deep > _DEEPEST:
        return -1
    whole = (1 << bits_of(item.type)) - 1
    found = whole
    last = item.text.rsplit(" ", 1)[-1]
    number = int(last) if last.lstrip("-").isdigit() and item.op in _BINARY else None
    inner = [possible_ones(name, function, deep + 1) for name in item.operands] if (
        item.op in _FOLLOWED
    ) else []  # fmt: skip
    if item.op == "icmp":
        found = 1
    elif item.op in ("zext", "trunc") and inner:
        found = inner[0] & _source(item)
    elif item.op in ("and", "or", "xor") and inner:
        other = inner[1] if len(inner) > 1 else number
        if other is not None:
            found = inner[0] & other if item.op == "and" else inner[0] | other
    elif item.op == "select" and len(inner) == 3:
        found = inner[1] | inner[2]
    elif item.op in ("shl", "lshr") and number is not None and len(inner) == 1:
        found = inner[0] << number if item.op == "shl" else (inner[0] & whole) >> number
    bounds = function.known.get(value)
    if bounds is not None and bounds.unsigned and bounds.unsigned[0] >= 0:
        found &= (1 << bounds.unsigned[1].bit_length()) - 1
    function.ones[value] = found & whole
    return found & whole


_BINARY = frozenset(("and", "or", "xor", "shl", "lshr"))
_FOLLOWED = _BINARY | {"zext", "trunc", "select"}


def _source(item: Instruction) -> int:
    """The bits of what is extended or cut."""
    words = item.text.split(" to ")[0].split()
    bits = bits_of(words[-2]) if len(words) > 2 else 0
    return (1 << bits) - 1 if bits else -1
