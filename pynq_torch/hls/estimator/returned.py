"""What a function returns is a value while it is computed, also where it is an object.

clang hands such a function the address of its result (``ap_uint`` is a class), where each step
would be an access of a memory: a sum would wait for the step before to be written.
"""

from __future__ import annotations

import re

__all__ = ["with_own_results"]

_FUNCTION = re.compile(
    r"^define [^\n]*?\bsret\((?P<type>[^)\n]+)\)[^,)\n]*%agg\.result\b.*?^}$",
    re.MULTILINE | re.DOTALL,
)
_TYPE = re.compile(r'^(?P<name>%"[^"\n]+"|%[-\w.$]+) = type (?P<parts>.*)$', re.MULTILINE)
_NAME = re.compile(r'%"[^"\n]+"|%[-\w.$]+')


def with_own_results(text: str) -> str:
    """Return a raw module in which functions compute objects in a variable, and then return them.

    An object with an array in it stays where it is.
    """
    types = {found["name"]: found["parts"] for found in _TYPE.finditer(text)}

    def computed(function: re.Match[str]) -> str:
        kind = function["type"]
        if _has_array(kind, types):
            return function[0]
        body = function[0].replace("%agg.result", "%agg.returned", 1)
        own = f"\\g<0>\n  %agg.result = alloca {kind}, align 16"
        body = re.sub(r"(?m)^[-\w.$]+:.*$", own, body, count=1)
        stored = (
            f"  %agg.whole = load {kind}, ptr %agg.result, align 16\\1\n"
            f"  store {kind} %agg.whole, ptr %agg.returned, align 1\\1\n\\g<0>"
        )
        return re.sub(r"(?m)^  ret void(, !dbg !\d+)?$", stored, body, count=1)

    return _FUNCTION.sub(computed, text)


def _has_array(kind: str, types: dict[str, str]) -> bool:
    """Return whether a type has an array in it, however deep."""
    parts = types.get(kind, kind)
    return "[" in parts or any(_has_array(name, types) for name in _NAME.findall(parts))
