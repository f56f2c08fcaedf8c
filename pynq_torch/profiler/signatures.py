"""Which operators a person means: by name, with or without overload, or by schema."""

from __future__ import annotations

import functools
from difflib import get_close_matches
from typing import NamedTuple

import torch

from pynq_torch.torch_device.dispatch import LAYERS, kind_of
from pynq_torch.torch_device.structure import own_kernels

__all__ = ["Signature", "signature"]


class Signature(NamedTuple):
    """An operator as it was written, and the overloads such as ``"aten::add.Tensor"`` it means."""

    text: str
    overloads: frozenset[str]


def signature(text: str) -> Signature:
    """Find the overloads that a signature means, written as for `chart.add_beacon`.

    Raises
    ------
    ValueError
        There is no such operator; the schema is another one; or device "pynq" never sees a call of
        it as such: torch composes it of others, or it is a view.
    """
    if not isinstance(text, str):
        raise ValueError(f"signature is {text!r}; expected text such as 'aten::mm'")
    return _find(text)


@functools.cache
def _find(text: str) -> Signature:
    name, _, arguments = text.strip().partition("(")
    name = name if "::" in name else f"aten::{name}"
    if text.strip() in LAYERS:
        return Signature(text, frozenset({name}))
    known = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")]
    if arguments:
        meant = [name] if name in known and _schema(name) == _plain(text) else []
    elif "." in name:
        meant = [name] if name in known else []
    else:
        meant = [n for n in known if n.partition(".")[0] == name]
    if not meant:
        raise ValueError(
            f"there is no operator {text!r}{_hint(name, [*known, *LAYERS], bool(arguments))}"
        )
    own = own_kernels()
    seen = frozenset(n for n in meant if n not in own and kind_of(n) == "value")
    if not seen:
        raise ValueError(
            f"device 'pynq' sees no call of {text!r}: it is a view, a request for memory, a copy, "
            "or torch composes it of other operators (matmul of mm, bmm, mv and dot). The names "
            "that arrive are those in torch.pynq.profiler.stats()."
        )
    return Signature(text, seen)


def _schema(name: str) -> str:
    base, _, overload = name.partition(".")
    return _plain(str(torch._C._get_schema(base, overload)))


def _plain(text: str) -> str:
    return "".join(text.split()).removeprefix("aten::")


def _hint(name: str, known: list[str], is_schema: bool) -> str:
    if is_schema and name in known:
        return f"; {name} is {torch._C._get_schema(*name.partition('.')[::2])}"
    base = name.partition(".")[0]
    if overloads := [n for n in known if n.partition(".")[0] == base]:
        return f"; there are {', '.join(sorted(overloads))}"
    near = get_close_matches(base, {n.partition(".")[0] for n in known}, n=3)
    return f"; near it are {', '.join(near)}" if near else "; expected a name such as 'aten::mm'"
