"""Types of the elements that a new kernel works on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pynq_torch.errors import KernelError

__all__ = ["CHOICES", "Element", "element"]

CHOICES = "float32, int8, int16, int32 or ap_fixed<W,I> with 2 <= W <= 32 and 1 <= I <= W"
_FIXED = re.compile(r"ap_fixed<\s*(\d+)\s*,\s*(\d+)\s*>")
_PLAIN = {
    "float32": ("float", "float", 32),
    "int8": ("signed char", "int", 8),
    "int16": ("short", "int", 16),
    "int32": ("int", "int", 32),
}
_WORDS = (8, 16, 32)


@dataclass(frozen=True)
class Element:
    """An element as C++ and as memory have it.

    Parameters
    ----------
    ctype : str
        The C++ type.
    kind : {"float", "int", "fixed"}
        What the testbench compares, and how.
    bits : int
        Of the value.
    integer_bits : int
        Of those, before the binary point; all of them where it is no fixed point.
    """

    ctype: str
    kind: str
    bits: int
    integer_bits: int

    @property
    def word_bits(self) -> int:
        """Bits of the word that holds one in memory and on a stream: 8, 16 or 32."""
        return next(bits for bits in _WORDS if bits >= self.bits)

    @property
    def text(self) -> str:
        """Return how a program has such values, for a comment."""
        if self.kind != "fixed":
            return {"float": "floats", "int": f"{self.bits}-bit integers"}[self.kind]
        step = f"2^-{self.bits - self.integer_bits}"
        return f"{self.word_bits}-bit words that count steps of {step}"


def element(dtype: str, interface: str, name: str) -> Element:
    """Return the element type called `dtype`.

    Parameters
    ----------
    dtype : str
        One of `CHOICES`.
    interface : {"m_axi", "axis"}
        What it goes through.
    name : str
        The kernel, for messages.

    Raises
    ------
    KernelError
        It or the interface is none, or the type does not fit the interface; the message lists those
        that are.
    """
    if interface not in ("m_axi", "axis"):
        raise KernelError(f"{name}: interface {interface!r}; expected m_axi or axis", name)
    if dtype in _PLAIN:
        ctype, kind, bits = _PLAIN[dtype]
        return Element(ctype, kind, bits, bits)
    match = _FIXED.fullmatch(dtype) if isinstance(dtype, str) else None
    bits, whole = (int(match[1]), int(match[2])) if match else (0, 0)
    if not (2 <= bits <= _WORDS[-1] and 1 <= whole <= bits):
        raise KernelError(f"{name}: element type {dtype!r}; expected {CHOICES}", name)
    if interface == "m_axi" and bits not in _WORDS:
        raise KernelError(
            f"{name}: {dtype} through m_axi would leave a part of each word open; expected W of 8, "
            "16 or 32 there, or interface='axis', where the kernel extends the sign",
            name,
        )
    return Element(f"ap_fixed<{bits}, {whole}>", "fixed", bits, whole)
