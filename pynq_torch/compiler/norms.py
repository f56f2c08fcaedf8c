"""Batch norms of an exported graph as layers that kernel ``net`` has.

torchao folds them too, but as if nothing else read the layer before, and as if no other layer had
its weights: both changed results without a word.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .names import PRODUCTS, name_of

__all__ = ["fold_norms"]

_NORM = "aten.batch_norm.default"
_aten = torch.ops.aten
_CONVOLUTIONS = {1: _aten.conv1d.default, 2: _aten.conv2d.default, 3: _aten.conv3d.default}


def fold_norms(model: GraphModule) -> None:
    """Fold each batch norm into the layer before it, or make a layer of its own of it; in place.

    A convolution, or a linear layer over vectors, takes it where nothing else reads that layer.
    Otherwise it becomes a convolution of one product a channel. Statistics of the batch itself stay
    as they are.
    """
    norms = [node for node in model.graph.nodes if name_of(node) == _NORM]
    for number, norm in enumerate(norms):
        x: Any = norm.args[0]
        if norm.args[5]:  # statistics of the batch
            _by_batch(norm)
            continue
        factor, offset = _affine(model, norm)
        if _takes_it(x, norm):
            _fold(model, x, factor, offset, f"norm_{number}")
            norm.replace_all_uses_with(x)
            model.graph.erase_node(norm)
        else:
            _stands_alone(model, norm, factor, offset, f"norm_{number}")
    model.graph.eliminate_dead_code()
    model.recompile()


def _affine(model: GraphModule, norm: Node) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a factor and an offset for each channel, as float64."""
    weight, bias, mean, var = (_value(model, argument) for argument in norm.args[1:5])
    assert mean is not None and var is not None
    eps = norm.args[7]
    assert isinstance(eps, float)
    factor = (var + eps).rsqrt()
    if weight is not None:
        factor = factor * weight
    offset = -mean * factor
    return factor, offset if bias is None else offset + bias


def _value(model: GraphModule, argument: Any) -> torch.Tensor | None:
    if argument is None:
        return None
    tensor: torch.Tensor = operator.attrgetter(argument.target)(model)
    return tensor.detach().double()


def _takes_it(layer: Any, norm: Node) -> bool:
    """Whether a norm may change the weights of the layer before it."""
    if not isinstance(layer, Node) or name_of(layer) not in PRODUCTS or len(layer.users) > 1:
        return False
    constant = all(node is None or node.op == "get_attr" for node in _weights(layer))
    # A linear layer's channels are its last dimension, a norm's the second.
    return constant and (name_of(layer) != "aten.linear.default" or norm.meta["val"].ndim == 2)


def _weights(layer: Node) -> tuple[Any, Any]:
    return layer.args[1], layer.args[2] if len(layer.args) > 2 else None


def _fold(
    model: GraphModule, layer: Node, factor: torch.Tensor, offset: torch.Tensor, name: str
) -> None:
    """Give a layer weights of its own, with the factor and the offset in them."""
    weight, bias = (_value(model, node) for node in _weights(layer))
    assert weight is not None
    shaped = factor.reshape(-1, *[1] * (weight.ndim - 1))
    summed = offset if bias is None else offset + bias * factor
    parts = _constants(model, layer, name, weight=weight * shaped, bias=summed)
    layer.args = (layer.args[0], *parts, *layer.args[3:])


def _stands_alone(
    model: GraphModule, norm: Node, factor: torch.Tensor, offset: torch.Tensor, name: str
) -> None:
    """Replace a norm by what does the same for each channel."""
    x: Any = norm.args[0]
    graph, vectors = model.graph, norm.meta["val"].ndim == 2
    space = max(1, norm.meta["val"].ndim - 2)
    shaped = factor.reshape(-1, *[1] * (space + 1))
    weight, bias = _constants(model, norm, name, weight=shaped, bias=offset)
    with graph.inserting_before(norm):
        if vectors:
            x = graph.call_function(_aten.unsqueeze.default, (x, 2))
            x.meta = dict(norm.meta, val=norm.meta["val"].unsqueeze(2))
        one = [1] * space
        places = (one, [0] * space, one, factor.numel())  # stride, padding, dilation, groups
        new = graph.call_function(_CONVOLUTIONS[space], (x, weight, bias, *places))
        if vectors:
            new.meta = dict(x.meta)
            new = graph.call_function(_aten.squeeze.dim, (new, 2))
    new.meta = dict(norm.meta)
    norm.replace_all_uses_with(new)
    graph.erase_node(norm)


def _by_batch(norm: Node) -> None:
    """Replace a norm by the operator below it: torchao would look for patterns around it."""
    x, weight, bias, mean, var, training, momentum, eps, _ = norm.args
    graph = norm.graph
    with graph.inserting_before(norm):
        all_of_it = graph.call_function(
            _aten.native_batch_norm.default, (x, weight, bias, mean, var, training, momentum, eps)
        )
        new = graph.call_function(operator.getitem, (all_of_it, 0))
    all_of_it.meta, new.meta = {}, dict(norm.meta)
    norm.replace_all_uses_with(new)
    graph.erase_node(norm)


def _constants(model: GraphModule, before: Node, name: str, **values: torch.Tensor) -> list[Node]:
    """Return nodes that give these tensors, in the type that the layer computes in."""
    found = []
    for which, tensor in values.items():
        own = tensor.to(before.meta["val"].dtype)
        model.register_parameter(f"{name}_{which}", torch.nn.Parameter(own, requires_grad=False))
        with model.graph.inserting_before(before):
            node = model.graph.get_attr(f"{name}_{which}")
        node.meta["val"] = own
        found.append(node)
    return found
