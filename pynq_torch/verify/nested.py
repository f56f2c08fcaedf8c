"""Values in tuples, lists, dicts and dataclasses, as models take and return them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["mapped", "parts"]


def parts(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in tuples, lists, dicts and dataclasses, with where they are.

    Examples
    --------
    >>> list(parts((1, {"a": None})))
    [('[0]', 1), ("[1]['a']", None)]
    """
    if isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from parts(item, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from parts(item, f"{path}[{key!r}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for entry in dataclasses.fields(value):
            yield from parts(getattr(value, entry.name), f"{path}.{entry.name}")
    else:
        yield path, value


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return tuples, lists and dicts with `function` done to the values in them."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(item, function) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(item, function) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, function) for key, item in value.items()}
    return function(value)
