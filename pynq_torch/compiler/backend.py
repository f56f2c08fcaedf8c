"""``torch.compile(model, backend="pynq")``: torch finds this by its entry point."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from . import compile as compile_model

__all__ = ["pynq"]


def pynq(
    graph: GraphModule, inputs: Sequence[Any], options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Compile a graph that torch.compile has captured.

    Parameters
    ----------
    graph : torch.fx.GraphModule
        With parameters and buffers among its inputs.
    inputs : sequence
        What the first call gives.
    options : mapping, optional
        ``calibrate``: batches of inputs; the model is quantised to int8 with them, see
        `pynq_torch.compile`.

    Returns
    -------
    callable
        The compiled graph. A float graph is the graph itself: exact, and on device "pynq" operator
        by operator. So is one that gradients are needed of: int8 has none.

    Raises
    ------
    ValueError
        An unknown option.
    """
    given = dict(options or {})
    calibrate = given.pop("calibrate", None)
    if given:
        raise ValueError(f"options has {', '.join(map(repr, given))}; expected 'calibrate'")
    is_float = calibrate is None and not _is_quantised(graph)
    why = _refusal(inputs, is_float)
    if why:
        warnings.warn(f"backend 'pynq': {why}", stacklevel=2)
    if why or is_float:
        return graph.forward
    bound, free = _bound(graph, inputs)
    compiled = compile_model(bound, tuple(inputs[i] for i in free), calibrate)
    return lambda *arguments: compiled(*(arguments[i] for i in free))


def _refusal(inputs: Sequence[Any], is_float: bool) -> str:
    """Return why a graph runs in float32 on the CPU; empty where nobody would expect otherwise."""
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    if torch.is_grad_enabled() and any(value.requires_grad for value in tensors):
        why = "gradients are needed, and int8 has none: it runs as without torch.compile"
        return why if is_float else f"{why}. For inference call it under torch.no_grad()"
    if len(tensors) < len(inputs) and not is_float:
        return "sizes are dynamic, so that it runs as it is; pass dynamic=False"
    return ""


def _is_quantised(graph: GraphModule) -> bool:
    return any("quantized_decomposed" in str(node.target) for node in graph.graph.nodes)


def _bound(graph: GraphModule, inputs: Sequence[Any]) -> tuple[GraphModule, list[int]]:
    """Return the graph with its parameters and buffers as constants, and which inputs are left."""
    bound = copy.deepcopy(graph)
    free: list[int] = []
    holders = [node for node in bound.graph.nodes if node.op == "placeholder"]
    for index, (node, value) in enumerate(zip(holders, inputs, strict=True)):
        fixed = "_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {})
        if not fixed and not isinstance(value, torch.nn.Parameter):
            free.append(index)
            continue
        name = f"pynq_bound_{index}"
        bound.register_parameter(name, torch.nn.Parameter(value.detach(), requires_grad=False))
        with bound.graph.inserting_before(node):
            node.replace_all_uses_with(bound.graph.get_attr(name))
        bound.graph.erase_node(node)
    bound.recompile()
    return bound, free
