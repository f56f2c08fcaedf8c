"""Sample inputs of an operator, generated on the CPU, and copies of them on a device."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

SEED = 20
DEVICE = "pynq"


def seed_everything(seed: int = SEED) -> None:
    """Put the generators of the CPU and of the device into one and the same state.

    Not ``torch.manual_seed``: it notes a stack trace for every accelerator that is not there.
    """
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)
    torch.get_device_module(DEVICE).manual_seed_all(seed)


@dataclass
class Call:
    """The arguments of one call, every tensor in memory of its own."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def names_a_device(self) -> bool:
        """Whether the result is on the arguments' device; else it is on torch's default one."""
        return "device" in self.kwargs or any(True for _ in self.tensors())

    def tensors(self) -> Iterator[torch.Tensor]:
        """Every tensor among the arguments, in order."""
        yield from tensors_of((self.args, self.kwargs))


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_of(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_of(item)


def _copy_tensor(source: torch.Tensor, device: str) -> torch.Tensor:
    if source.device.type == "meta":
        return source
    plain = source.detach()
    if source.layout is not torch.strided or source.is_quantized:
        copied = plain.to(device, copy=True)
    elif plain.untyped_storage().nbytes() == plain.numel() * plain.element_size():
        # All of the storage, in whatever order.
        copied = torch.empty_strided(
            plain.size(), plain.stride(), dtype=plain.dtype, device=device
        ).copy_(plain)
    else:
        # A view, or memory that overlaps: the copy has the same strides and offset in a storage
        # of the same size, because results may depend on strides.
        elements = plain.untyped_storage().nbytes() // plain.element_size()
        whole = plain.as_strided((elements,), (1,), 0).to(device, copy=True)
        copied = whole.as_strided(plain.size(), plain.stride(), plain.storage_offset())
    return copied.detach().requires_grad_(source.requires_grad)


def copy_to(value: Any, device: str, copies: dict[int, torch.Tensor] | None = None) -> Any:
    """Return a copy of `value` on `device`: tensors in any nesting, and mentions of the device.

    A tensor that stands in two places is one tensor in the copy too.
    """
    copies = {} if copies is None else copies
    if isinstance(value, torch.Tensor):
        if id(value) not in copies:
            copies[id(value)] = _copy_tensor(value, device)
        return copies[id(value)]
    if isinstance(value, torch.device):
        return torch.device(device)
    if isinstance(value, str) and value == "cpu":
        return device
    if isinstance(value, tuple) and not isinstance(value, torch.Size):
        items = [copy_to(item, device, copies) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [copy_to(item, device, copies) for item in value]
    if isinstance(value, dict):
        return {key: copy_to(item, device, copies) for key, item in value.items()}
    return value


def call_of(sample: Any, device: str) -> Call:
    """Return the arguments of a ``SampleInput`` as fresh copies on `device`."""
    copies: dict[int, torch.Tensor] = {}
    first, kwargs = copy_to((sample.input, sample.kwargs), device, copies)
    rest = copy_to(sample.args, device, copies)
    return Call((first, *rest), kwargs)


def samples_of(op: Any, dtype: torch.dtype, *, requires_grad: bool = False) -> list[Any]:
    """Return every ``SampleInput`` of an ``OpInfo``, generated on the CPU from :data:`SEED`."""
    seed_everything()
    # As op.sample_inputs() does, which looks for a test in the source of every caller besides.
    return list(op.sample_inputs_func(op, "cpu", dtype, requires_grad))
