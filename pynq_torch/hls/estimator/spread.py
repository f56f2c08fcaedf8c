"""Arrays that Vitis HLS cuts by itself, so that an unrolled loop meets each bank once.

``config_array_partition -throughput_driven auto`` is its default (UG1399): a local array without a
directive of its own is partitioned where a pipeline that was asked for, or a loop that UNROLL
takes apart, reads or writes several of its elements at a time. What UG1399 does not say was taken
from published reports of 2022.1 to 2025.1: loops that are pipelined and unrolled without being
asked keep the memory as it is, and so do arrays that a called function takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .asked import LoopPlan
from .place import header_folders
from .region import Node, Region

__all__ = ["spread_arrays", "wants_throughput"]

#: Statements that access an array once a cycle each, which its two ports allow in each bank.
_STATEMENTS = 2


def wants_throughput(plans: Sequence[LoopPlan]) -> bool:
    """Whether a directive asks for one of some nested loops to be pipelined or taken apart."""
    loops = [loop for plan in plans for loop in plan.walk()]
    return not plans[-1].automatic or any(
        loop.unroll != 1 and loop.unrolled_by == "UNROLL" for loop in loops
    )


def spread_arrays(region: Region) -> set[int]:
    """Return the arrays, by id, whose accesses in a pipeline are copies of a few statements."""
    found = set()
    for key, nodes in region.accesses.items():
        accesses = [node.access for node in nodes if node.access is not None]
        array = accesses[0].array
        if array.kind != "memory" or not array.local or array.constant or array.cuts():
            continue
        # Addresses that move alike can have banks of their own; no cut parts others.
        alike = len({access.address.terms for access in accesses}) == 1
        if alike and _are_of_few(nodes):
            found.add(key)
    return found


def _are_of_few(nodes: Iterable[Node]) -> bool:
    """Whether a few statements, all of the function itself, make the accesses."""
    statements = set()
    for node in nodes:
        own = [at for at in node.item.chain if not at.file.startswith(header_folders())]
        if len(own) != 1:
            return False
        statements.add(own[0])
    return len(statements) <= _STATEMENTS
