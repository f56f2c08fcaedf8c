"""What torch brings to device "pynq" that the device has no tensors for: other layouts, pinning."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["install"]

#: Dispatch key of what such a tensor would be -> what it is called, and what to do instead.
_LAYOUTS = {
    "QuantizedPrivateUse1": (
        "tensors with torch's quantised dtypes",
        "pass tensor.int_repr() and keep scale and zero_point beside it, or see pynq_torch.nn",
    ),
    "NestedTensorPrivateUse1": (
        "nested tensors of layout torch.strided",
        "make them with layout=torch.jagged",
    ),
}

_all_operators: Any = torch.library.Library("_", "IMPL")  # type: ignore[no-untyped-call]


def install(library: Any) -> None:
    """Register what answers instead of torch's own errors.

    Parameters
    ----------
    library : torch.library.Library
        Of namespace ``aten``.
    """
    for key, (what, remedy) in _LAYOUTS.items():
        _all_operators.fallback(_refusal(what, remedy), key)
    library.impl("_pin_memory", _pin_memory, "CPU")


def _refusal(what: str, remedy: str) -> Any:
    def refuse(op: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{op.name()}: device 'pynq' has no {what}; {remedy}, or keep them on the CPU"
        )

    return refuse


def _pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    """Return a copy: the CPU copies to CMA memory, so no page has to stay where it is.

    ``DataLoader(pin_memory=True)`` asks for this wherever torch has any accelerator.
    """
    return self.clone()
