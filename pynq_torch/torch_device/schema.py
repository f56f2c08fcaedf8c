"""What an operator's schema says about a call: which arguments are tensors, which are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Plan", "has_kernel", "operator", "plan_of"]

_SINGLE = ("Tensor", "Optional[Tensor]")
_LISTS = ("List[Tensor]", "List[Optional[Tensor]]", "Optional[List[Tensor]]")


@dataclass(frozen=True, eq=False)
class Plan:
    """How one overload is called.

    Attributes
    ----------
    name, op : str and torch._ops.OpOverload
        E.g. ``"aten::add.Tensor"``; the overload.
    names : tuple of str
        Arguments in order, keyword-only ones included.
    positional : int
        How many of them may be given by position.
    singles, lists : frozenset of str
        Arguments that are a tensor, or a list of tensors (each perhaps ``None``).
    written : tuple of str
        Arguments that the operator writes to.
    returns : tuple of str
        For each return the argument it is, ``""`` where it is a new value.
    out, out_name : torch._ops.OpOverload or None, and str
        Variant of a functional operator that writes its only result into memory given by that name,
        with a kernel of its own on the CPU.
    generator, seeded : bool
        Whether there is a ``generator`` argument; whether it draws random numbers without one.
    pointwise : bool
        Whether torch tags it so.
    fixed : bool
        Whether the result's shape depends on shapes and scalars only, not on values.
    """

    name: str
    op: Any
    names: tuple[str, ...]
    positional: int
    singles: frozenset[str]
    lists: frozenset[str]
    written: tuple[str, ...]
    returns: tuple[str, ...]
    out: Any
    out_name: str
    generator: bool
    seeded: bool
    pointwise: bool
    fixed: bool


def operator(name: str) -> Any:
    """Return the overload called e.g. ``"aten::add.Tensor"``."""
    namespace, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")


def has_kernel(name: str, key: str) -> bool:
    """Whether an overload has a kernel registered for a dispatch key."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, key))


def plan_of(name: str) -> Plan:
    """Read an overload's schema."""
    op = operator(name)
    arguments = op._schema.arguments
    kinds = {a.name: str(a.type) for a in arguments}
    targets = [a for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    marks = {frozenset(a.alias_info.before_set): a.name for a in targets}
    returns = tuple(
        ""
        if r.alias_info is None or not r.alias_info.is_write
        else marks[frozenset(r.alias_info.before_set)]
        for r in op._schema.returns
    )
    written = tuple(a.name for a in targets)
    random = torch.Tag.nondeterministic_seeded in op.tags
    out, out_name = _out_variant(name, op) if not written else (None, "")
    return Plan(
        name=name,
        op=op,
        names=tuple(a.name for a in arguments),
        positional=sum(not a.kwarg_only for a in arguments),
        singles=frozenset(n for n, kind in kinds.items() if kind in _SINGLE),
        lists=frozenset(n for n, kind in kinds.items() if kind in _LISTS),
        written=written,
        returns=returns,
        out=out,
        out_name=out_name,
        generator="generator" in kinds,
        seeded=random and "generator" not in kinds,
        pointwise=torch.Tag.pointwise in op.tags,
        fixed=not {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output} & set(op.tags),
    )


def _out_variant(name: str, op: Any) -> tuple[Any, str]:
    """Find the out variant with the same arguments whose kernel writes there itself.

    Generated out variants call the functional one and copy: those have no kernel for the CPU.
    """
    returns = op._schema.returns
    if len(returns) != 1 or str(returns[0].type) != "Tensor":
        return None, ""
    packet = getattr(getattr(torch.ops, op.namespace), op._schema.name.partition("::")[2])
    own = [(a.name, str(a.type)) for a in op._schema.arguments]
    for overload in packet.overloads():
        variant = getattr(packet, overload)
        arguments = variant._schema.arguments
        outs = [a for a in arguments if a.alias_info is not None and a.alias_info.is_write]
        rest = [(a.name, str(a.type)) for a in arguments if a.alias_info is None]
        if len(outs) == 1 and outs[0].kwarg_only and rest == own:
            qualified = f"{op.namespace}::{variant._schema.name.partition('::')[2]}.{overload}"
            if has_kernel(qualified, "CPU"):
                return variant, outs[0].name
    return None, ""
