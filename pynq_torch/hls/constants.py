"""Whole numbers in directives: literals, macros, constants and arithmetic of these."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pynq_torch.descriptions import evaluate

__all__ = ["Constants"]

_LONGEST_NUMBER = 4096
_NAME = re.compile(r"\b[A-Za-z_]\w*")
#: ``0x1_0`` and ``0o20`` are numbers in Python only.
_PYTHON_NUMBER = re.compile(r"\b\d\w*_|\b0[oO]")


def _shift_left(value: int, count: int) -> int:
    if count >= 64:
        raise ValueError(f"a shift by {count}")
    return value << count


_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: _shift_left,
    ast.RShift: operator.rshift,
}


@dataclass(frozen=True)
class Constants:
    """The names that a directive may use in place of a number.

    Parameters
    ----------
    table : callable
        Returns macros and constants with the text of their values. It is called only for a
        directive that uses a name, because it costs a run of the preprocessor.
    mentions : callable
        Whether the source uses a name at all.
    """

    table: Callable[[], Mapping[str, str]]
    mentions: Callable[[str], bool]

    def number(self, text: str | None) -> int | None:
        """Return the value of an integer option, None where it cannot be evaluated."""
        if text is None:
            return None
        for _ in range(8):
            if len(text) > _LONGEST_NUMBER:  # macros that multiply themselves
                return None
            if _PYTHON_NUMBER.search(text):
                return None
            text = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
            try:
                tree = ast.parse(text.strip(), mode="eval")
                names = {item.id for item in ast.walk(tree) if isinstance(item, ast.Name)}
                if not names:
                    value = evaluate(tree.body, _OPERATORS)
                    return value if isinstance(value, int) else None
            except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
                return None
            known = self.table()
            if not names <= known.keys():
                return None
            for name in names:
                text = re.sub(rf"\b{name}\b", f"({known[name]})", text)
        return None

    def check(self, text: str, least: int) -> bool:
        """Return whether `text` is a number of at least `least`, or may be one.

        The value of a template parameter or of a class's constant is not known here.
        """
        value = self.number(text)
        if value is not None:
            return value >= least
        names = _NAME.findall(text)
        return any(name in self.table() or self.mentions(name) for name in names)
