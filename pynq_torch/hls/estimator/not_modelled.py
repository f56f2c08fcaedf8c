"""Directives that leave the numbers as they are: the estimate, or the tool, does without them."""

from __future__ import annotations

from collections.abc import Iterator

from ..lint_tree import Directive, Problem, Program, Scope

__all__ = ["is_of_part", "not_modelled", "of_other_tool"]

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
#: Tool -> the directives of the other one, each with what to write (UG1399, "Migrating to Vitis").
_OF_OTHER = {
    "vivado": {
        "aggregate": "DATA_PACK",
        "alias": "",
        "bind_op": "RESOURCE core=",
        "bind_storage": "RESOURCE core=",
        "cache": "",
        "disaggregate": "",
        "performance": "",
    },
    "vitis": {"array_map": "", "data_pack": "AGGREGATE"},
}
_OTHER = {
    "vivado": "is of Vitis HLS, and Vivado HLS ignores it",
    "vitis": "is of Vivado HLS, and Vitis HLS has given it up",
}


def of_other_tool(program: Program, tool: str) -> Iterator[Problem]:
    """Take out the directives that a tool ignores, and yield what is to be said of each."""
    known = _OF_OTHER[tool]
    for function in program.scopes:
        for scope in function.walk():
            for item in [one for one in scope.pragmas if one.name in known]:
                scope.pragmas.remove(item)
                hint = f"; write {known[item.name]}" if known[item.name] else ""
                text = f"{item.name.upper()} {_OTHER[tool]}{hint}"
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
