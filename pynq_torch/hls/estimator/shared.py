"""Variables of a file and static ones: memories that are there once for all functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .array import Array
from .ports import Ports
from .resources import block_rams
from .target import Target

if TYPE_CHECKING:
    from .latency import Body, Kernel

__all__ = ["Shared"]


#: Functions of clang's own that give variables their first values: HLS puts those into memories.
_BEGINNINGS = ("_GLOBAL__", "__cxx_global_var_init")


class Shared:
    """The memories and streams that belong to all functions; tables are in each that reads them."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._arrays: dict[str, Array] = {}
        self._ports = Ports(kernel.target.tool)
        self._channels: set[Array] = set()
        self._written: set[str] | None = None

    def blocks(self, target: Target) -> int:
        """Return the block RAM of all of them."""
        return block_rams(self._arrays.values(), self._ports, self._channels, target)

    def note(self, body: Body) -> set[Array]:
        """Return those that a function uses, and note how."""
        found = {
            base: array
            for base, array in body.arrays.of_module().items()
            if array.kind == "stream" or (not array.constant and base in self._bases())
        }
        for base, array in found.items():
            one = self._arrays.setdefault(base, array)
            self._ports.add(one, body.ports.of(array))
            if array in body.channels:
                self._channels.add(one)
        return set(found.values())

    def _bases(self) -> set[str]:
        """The variables that a function writes, or hands to another one, after they have begun."""
        if self._written is None:
            names = self._kernel.module.functions
            functions = [name for name in names if not name.startswith(_BEGINNINGS)]
            self._written = set().union(*(self._kernel.uses(name)[1] for name in functions))
        return self._written
