"""``pynq_torch.nn.Sequential``: quantised layers hand int8 on to each other."""

from __future__ import annotations

import torch

from .conv import Conv2d
from .layer import QuantisedLayer

__all__ = ["Sequential", "commutes", "step_of"]

#: They move values, or choose among them by size: in int8 the same as before the quantisation.
_COMMUTE = (
    torch.nn.Identity,
    torch.nn.Flatten,
    torch.nn.Unflatten,
    torch.nn.ReLU,
    torch.nn.MaxPool2d,
)
_DROPOUT = (torch.nn.Dropout, torch.nn.Dropout2d)


class Sequential(torch.nn.Sequential):
    """``torch.nn.Sequential`` that passes int8 from layer to layer where that suffices.

    A quantised layer (`Linear`, `Conv2d`) returns int8, scaled, biased and through ReLU by the
    kernel's epilogue, where

    - another quantised layer follows, directly or after ``Identity``, ``Flatten``, ``Unflatten``,
      ``ReLU``, ``MaxPool2d`` and, in evaluation, ``Dropout``, also across the ends of nested
      `Sequential` containers,
    - that layer has a static step (``in_scale``), and pads with zeros if at all,
    - no gradient is wanted. With gradients the same values pass in floating point, so that a
      forward pass gives the same with and without.

    Otherwise values pass in floating point, and the container is torch's. Whether int8 is passed
    is decided at every call, from the modules that are there. Hooks see int8 where it is passed.
    """

    def forward(
        self, input: torch.Tensor, *, scale: float | None = None, out_scale: float | None = None
    ) -> torch.Tensor:
        """Return the result of the last module.

        Parameters
        ----------
        input : torch.Tensor
            For the first module.
        scale, out_scale : float, optional
            The step of an int8 input, and that of the int8 result that is asked for; see
            `QuantisedLayer.forward`.
        """
        modules = list(self)
        # The step in which the next layer takes its input, from the last module to the first.
        wanted = [out_scale] * len(modules)
        for index in range(len(modules) - 1, 0, -1):
            module = modules[index]
            wanted[index - 1] = wanted[index] if commutes(module) else step_of(module)
        for module, step in zip(modules, wanted, strict=True):
            if isinstance(module, (QuantisedLayer, Sequential)):
                input = module(input, scale=scale, out_scale=step)
                if input.dtype is not torch.int8:  # a layer may return floating values instead
                    scale = None
                elif not commutes(module):
                    scale = step
            else:
                input = module(input)
        return input


def commutes(module: torch.nn.Module) -> bool:
    """Whether a module does to int8 what it does to the values that int8 represents."""
    kind = type(module)
    if kind in (Sequential, torch.nn.Sequential):
        return all(map(commutes, module.children()))
    if kind in _DROPOUT:
        return not module.training
    return kind in _COMMUTE and not getattr(module, "return_indices", False)


def step_of(module: torch.nn.Module) -> float | None:
    """Return the step that a module takes an int8 input in; ``None`` where it takes none."""
    if isinstance(module, Sequential):
        first = next((child for child in module if not commutes(child)), None)
        return None if first is None else step_of(first)
    if isinstance(module, Conv2d) and module.padding_mode != "zeros":
        return None
    return module.in_scale if isinstance(module, QuantisedLayer) else None
