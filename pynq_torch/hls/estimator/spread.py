"""Arrays that Vitis HLS cuts by itself, so that an unrolled loop meets each bank once.

``config_array_partition -throughput_driven auto`` is its default (UG1399): a local array is
partitioned where a pipeline reads or writes several of its elements at a time. What UG1399 does
not say was taken from published reports of 2021.1 to 2025.2. Where each access moves by a multiple
of the banks, so that its bank is known, the array is cut, also in the dimensions that a directive
leaves whole. A window that moves by one has no such banks: in the reports of two repositories the
tool cuts its array too, here it stays whole. So does one that a called function takes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .array import Access, Array
from .memory import split
from .place import header_folders
from .region import Node, Region

__all__ = ["spread_arrays"]


def spread_arrays(region: Region, shared: Collection[Array]) -> set[int]:
    """Return the arrays, by id, that get a bank for each access of a pipeline's iteration.

    Parameters
    ----------
    region : Region
        The pipeline.
    shared : collection of Array
        Arrays that the function takes in several calls.
    """
    found = set()
    for key, nodes in region.accesses.items():
        accesses = [node.access for node in nodes if node.access is not None]
        array = accesses[0].array
        if array.kind != "memory" or not array.local or array.constant:
            continue
        if len(array.cuts()) >= len(array.dimensions):  # as a directive says
            continue
        # Addresses that move alike can have banks of their own; no cut parts others.
        alike = len({access.address.terms for access in accesses}) == 1
        if not alike or any(map(_is_kept, nodes)):
            continue
        if array not in shared and _stay_in_banks(array, accesses):
            found.add(key)
    return found


def _is_kept(node: Node) -> bool:
    """Whether an access keeps its memory whole: it is volatile, or in a function that is called."""
    own = [at for at in node.item.chain if not at.file.startswith(header_folders())]
    return "volatile" in node.item.text or len(own) != 1


def _stay_in_banks(array: Array, accesses: Sequence[Access]) -> bool:
    """Whether each access meets one bank in all iterations: it moves by a multiple of the banks.

    Of lines that move up through each other, read and written in turn, no report was found.
    """
    if len({access.write for access in accesses}) > 1:
        return False
    parts = [split(access.address, array) for access in accesses]
    for number, (_, steps, unknown) in enumerate(parts[0]):
        places = {part[number][0] for part in parts}
        banks = max(places) - min(places) + 1
        if banks > 1 and (unknown or any(step % banks for step in steps)):
            return False
    return True
