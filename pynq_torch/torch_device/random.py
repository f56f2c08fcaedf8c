"""Random numbers of device "pynq": a generator of its own, beside the CPU's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["default_generator", "swapped_state"]

#: The CPU draws the numbers, so it is a CPU generator; its state is the device's own.
default_generator: torch.Generator = torch.Generator()
default_generator.manual_seed(torch.initial_seed())


@contextmanager
def swapped_state() -> Iterator[None]:
    """Let operators that know no generator argument draw from the device's generator."""
    outer = torch.default_generator
    kept = outer.get_state()
    outer.set_state(default_generator.get_state())
    try:
        yield
    finally:
        default_generator.set_state(outer.get_state())
        outer.set_state(kept)
