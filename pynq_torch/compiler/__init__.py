"""From a model in torch to programs of kernel ``net``: quantise, partition, plan, run, compare."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import GraphModule

from .batches import counting_images
from .compiled import Compiled

__all__ = ["Compiled", "compile"]


def compile(
    model: torch.nn.Module, example: Any, calibrate: Iterable[Any] | None = None
) -> Compiled:
    """Compile a model for the PL: what kernel ``net`` can do runs there, from one start.

    Parameters
    ----------
    model : torch.nn.Module
        In evaluation mode or not: it is compiled as it evaluates. One that PT2E has quantised runs
        in int8; any other stays float32, and on the CPU, unless it is calibrated.
    example : torch.Tensor or tuple of torch.Tensor
        Its inputs, with the batch as the first dimension.
    calibrate : iterable, optional
        Batches of inputs. With them the model is quantised to int8: PT2E (torchao) with
        `pynq_torch.compiler.quantizer.PynqQuantizer`.

    Returns
    -------
    Compiled
        Called like the model; results are on the device of the first input. See ``explain()``,
        ``layers()`` and ``save()``.
    """
    inputs = (example,) if isinstance(example, torch.Tensor) else tuple(example)
    if any(t.device.type != "cpu" for t in (*model.parameters(), *model.buffers(), *inputs)):
        model, inputs = copy.deepcopy(model).cpu(), tuple(t.cpu() for t in inputs)
    modes = [(module, module.training) for module in model.modules()]
    try:
        for module, _ in modes:
            module.training = False  # a model of PT2E refuses eval()
        compiled = Compiled(_graph(model, inputs, calibrate), inputs)
        if compiled.on_cpu:
            compiled.limit(counting_images(model, inputs))
        return compiled
    finally:
        for module, training in modes:
            module.training = training


def _graph(
    model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], batches: Iterable[Any] | None
) -> GraphModule:
    if batches is None:
        return torch.export.export(model, inputs).module()
    from .quantizer import quantise  # needs torchao

    return quantise(model, inputs, batches)
