"""In-place and out variants of an operator, found in torch's schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .dispatch import Declined
from .offering import MIXED, RESIZED, SHARED, shares

__all__ = ["into_argument", "variants"]


def variants(name: str) -> tuple[str, list[tuple[str, str]]]:
    """Find the in-place and out variants of an overload in torch's schemas.

    Parameters
    ----------
    name : str
        E.g. ``"aten::add.Tensor"``.

    Returns
    -------
    in_place : str
        E.g. ``"aten::add_.Tensor"``; empty where torch has none.
    outs : list of (str, str)
        Overload and name of the argument that is written.
    """
    base, _, overload = name.partition(".")
    own = _arguments(torch._C._get_schema(base, overload))
    in_place = ""
    for schema in torch._C._jit_get_schemas_for_operator(f"{base}_"):
        if _arguments(schema) == own:
            in_place = _full_name(schema)
    outs = []
    for schema in torch._C._jit_get_schemas_for_operator(base):
        *others, last = _arguments(schema)
        if others == own and schema.arguments[-1].alias_info is not None:
            outs.append((_full_name(schema), last[0]))
    return in_place, outs


def _arguments(schema: Any) -> list[tuple[str, str]]:
    return [(a.name, str(a.type)) for a in schema.arguments]


def _full_name(schema: Any) -> str:
    return f"{schema.name}.{schema.overload_name}".removesuffix(".")


def into_argument(functional: Callable[..., Any], argument: str) -> Callable[..., Any]:
    """Return the out variant of a pointwise operator whose result has the operands' dtype.

    Parameters
    ----------
    functional : callable
        Offer of the functional form: returns one tensor or a `Declined`.
    argument : str
        Name of the tensor that is written when the result is there: ``"out"``, ``"grad_input"``.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop(argument)
        if out.device.type != "pynq":
            return MIXED
        result = functional(*args, **kwargs)
        if isinstance(result, Declined):
            return result
        if out.dtype is not result.dtype:
            return MIXED
        if out.shape != result.shape:
            return RESIZED
        return SHARED if shares(out, args, "same") else out.copy_(result)

    return run
