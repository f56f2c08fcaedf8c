"""What a program's own function for an operator returns, checked against what torch would.

Wrong memory would be passed on as a tensor of the device, and show up somewhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.schema import operator

__all__ = ["checked"]

#: Calls remembered for an operator.
_REMEMBERED = 256


def checked(overload: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for an overload that raises TypeError for results which are not torch's.

    Those are: no tensor, a tensor that is not on device "pynq", and one of another dtype or shape
    than torch's meta function gives. That is asked once for each kind of arguments.
    """
    op = operator(overload)
    kinds = [str(r.type) for r in op._schema.returns]
    known: dict[Any, list[Any]] = {}
    name = getattr(function, "__qualname__", repr(function))

    def run(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if isinstance(result, Declined):
            return result
        several = len(kinds) > 1 and isinstance(result, (tuple, list))
        values = result if several else (result,)
        fault, wanted = result, f"{len(kinds)} results"
        if len(values) == len(kinds):
            key = _key((args, tuple(kwargs.items())))
            found = known.get(key)
            if found is None:
                if len(known) >= _REMEMBERED:
                    known.clear()
                found = known[key] = _by_meta(op, args, kwargs)
            pairs = zip(kinds, values, found, strict=True)
            wrong = [(v, like) for kind, v, like in pairs if kind == "Tensor" and _differs(v, like)]
            if not wrong:
                return result
            fault, wanted = wrong[0][0], _wanted(wrong[0][1])
        raise TypeError(
            f"{overload}: {name}, registered with register_operator, returned {_said(fault)}; "
            f"expected {wanted}. Return that, or a Declined."
        )

    return run


def _differs(value: Any, like: torch.Tensor | None) -> bool:
    if not isinstance(value, torch.Tensor) or value.device.type != "pynq":
        return True
    return like is not None and (value.dtype is not like.dtype or value.shape != like.shape)


def _said(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"{len(value)} results"
    if not isinstance(value, torch.Tensor):
        return "None, which is no tensor" if value is None else f"a {type(value).__name__}"
    return f"a {_kind(value)} tensor on device {value.device.type!r}"


def _wanted(like: torch.Tensor | None) -> str:
    return f"a {'' if like is None else f'{_kind(like)} '}tensor on device 'pynq'"


def _kind(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _key(value: Any) -> Any:
    """Return all of an argument that dtype and shape of a result may depend on."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.dtype
    if isinstance(value, (tuple, list)):
        return tuple(map(_key, value))
    try:
        hash(value)
    except TypeError:
        return type(value)
    return type(value), value


def _by_meta(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return what torch's meta function makes of a call; ``None`` for a result it cannot tell."""
    unknown = [None] * len(op._schema.returns)
    if {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output} & set(op.tags):
        return unknown

    def meta(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.new_empty(value.shape, device="meta")
        if isinstance(value, (tuple, list)):
            return type(value)(map(meta, value))
        return value

    try:
        made = op(*map(meta, args), **{name: meta(value) for name, value in kwargs.items()})
    except (NotImplementedError, RuntimeError, ValueError, TypeError, IndexError):
        return unknown  # the operator has no meta function, or torch refuses the call
    results = made if len(unknown) > 1 else [made]
    return [value if isinstance(value, torch.Tensor) else None for value in results]
