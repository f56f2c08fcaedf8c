"""Directives that leave the numbers as they are: the estimate, or the tool, does without them."""

from __future__ import annotations

from collections.abc import Iterator

from ..lint_tree import Directive, Problem, Program, Scope

__all__ = ["is_of_part", "not_modelled", "of_vitis"]

#: Directive -> what the estimate assumes instead.
_ASSUMED = {
    **dict.fromkeys(
        ("aggregate", "disaggregate", "data_pack"),
        "the fields of one element count as one access of memory",
    ),
    "alias": "each argument counts as memory of its own",
    "array_map": "each array keeps memories of its own",
    "cache": "each access goes to the bus",
    "occurrence": "what it marks counts in every iteration",
    "performance": "write PIPELINE, UNROLL and ARRAY_PARTITION to see their numbers",
    "protocol": "operations are placed as if it were not there",
    "reset": "it changes flip-flops only, not cycles",
    "stable": "the processes of DATAFLOW wait for that argument as for any other",
}
#: Directives that only Vitis HLS has (UG1399, "Migrating to Vitis HLS") -> those of Vivado HLS.
_OF_VITIS = {
    "aggregate": "DATA_PACK",
    "alias": "",
    "bind_op": "RESOURCE core=",
    "bind_storage": "RESOURCE core=",
    "cache": "",
    "disaggregate": "",
    "performance": "",
}


def of_vitis(program: Program) -> Iterator[Problem]:
    """Take out the directives that Vivado HLS ignores, and yield what is to be said of each."""
    for function in program.scopes:
        for scope in function.walk():
            for item in [one for one in scope.pragmas if one.name in _OF_VITIS]:
                scope.pragmas.remove(item)
                other = _OF_VITIS[item.name]
                hint = f"; write {other}" if other else ""
                text = f"{item.name.upper()} is of Vitis HLS, and Vivado HLS ignores it{hint}"
                yield item.pragma.file, item.pragma.line, "pragma", text


def not_modelled(program: Program) -> Iterator[Problem]:
    """Yield each directive that the estimate leaves out, with what it assumes."""
    for function in program.scopes:
        for scope in function.walk():
            for item in scope.pragmas:
                if said := _assumed(item, scope):
                    text = f"{item.name.upper()} is not modelled in this estimate: {said}"
                    yield item.pragma.file, item.pragma.line, "pragma", text


def is_of_part(item: Directive, scope: Scope) -> bool:
    """Whether it is a LATENCY of a block or a branch: of a part of what a loop or function does."""
    return item.name == "latency" and scope.kind in ("block", "if")


def _assumed(item: Directive, scope: Scope) -> str:
    if is_of_part(item, scope):
        return "what is in the braces is placed as if it were not there"
    if item.name == "latency" and "min" not in item.options and "max" in item.options:
        return "operations are placed as early as they can be, which is all that MAX could ask for"
    return _ASSUMED.get(item.name, "")
