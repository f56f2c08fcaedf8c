"""What a function returns is a value while it is computed, also where it is an object.

clang hands such a function the address of its result (``ap_uint`` is a class), where each step
would be an access of a memory: a sum would wait for the step before to be written.
"""

from __future__ import annotations

import re

__all__ = ["with_own_results"]

_OBJECT = re.compile(
    r"^(?P<before>define [^\n]*?\bsret\((?P<type>[^)\n]+)\)[^,)\n]*)%agg\.result\b", re.MULTILINE
)
_BODY = re.compile(r"^define [^\n]*%agg\.returned.*?^}$", re.MULTILINE | re.DOTALL)
_TYPE = re.compile(r'^(?P<name>%"[^"\n]+"|%[-\w.$]+) = type (?P<parts>.*)$', re.MULTILINE)
_NAME = re.compile(r'%"[^"\n]+"|%[-\w.$]+')


def with_own_results(text: str) -> str:
    """Return a raw module in which functions compute objects in a variable, and then return them.

    An object with an array in it stays where it is.
    """
    types = {found["name"]: found["parts"] for found in _TYPE.finditer(text)}
    whole: set[str] = set()

    def handed(match: re.Match[str]) -> str:
        if _has_array(match["type"], types):
            return match[0]
        whole.add(match["type"])
        return f"{match['before']}%agg.returned"

    def computed(match: re.Match[str]) -> str:
        body = match[0]
        kind = re.search(r"\bsret\(([^)\n]+)\)", body)
        assert kind is not None
        own = f"\\g<0>\n  %agg.result = alloca {kind[1]}, align 16"
        body = re.sub(r"(?m)^[-\w.$]+:.*$", own, body, count=1)
        stored = (
            f"  %agg.whole = load {kind[1]}, ptr %agg.result, align 16\\1\n"
            f"  store {kind[1]} %agg.whole, ptr %agg.returned, align 1\\1\n\\g<0>"
        )
        return re.sub(r"(?m)^  ret void(, !dbg !\d+)?$", stored, body, count=1)

    text = _OBJECT.sub(handed, text)
    return _BODY.sub(computed, text) if whole else text


def _has_array(kind: str, types: dict[str, str]) -> bool:
    """Return whether a type has an array in it, however deep."""
    parts = types.get(kind, kind)
    return "[" in parts or any(_has_array(name, types) for name in _NAME.findall(parts))
