"""Directives that Vitis HLS knows and the estimate leaves out of its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from ..lint_tree import Directive, Problem, Program

__all__ = ["not_modelled"]

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


def not_modelled(program: Program) -> Iterator[Problem]:
    """Yield each directive that the estimate leaves out, with what it assumes."""
    for function in program.scopes:
        for scope in function.walk():
            for item in scope.pragmas:
                if said := _assumed(item):
                    text = f"{item.name.upper()} is not modelled in this estimate: {said}"
                    yield item.pragma.file, item.pragma.line, "pragma", text


def _assumed(item: Directive) -> str:
    if item.name == "latency" and "min" not in item.options and "max" in item.options:
        return "operations are placed as early as they can be, which is all that MAX could ask for"
    return _ASSUMED.get(item.name, "")
