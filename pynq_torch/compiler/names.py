"""The operators of an exported graph, by name, so that torchao need not be imported for it."""

from __future__ import annotations

import torch
from torch.fx import Node

__all__ = ["ACTIVATIONS", "PRODUCTS", "SHARING", "name_of"]

#: Layers with weights.
PRODUCTS = (
    *("aten.conv1d.default", "aten.conv2d.default", "aten.conv1d.padding", "aten.conv2d.padding"),
    "aten.linear.default",
)
#: What becomes the bounds of the layer before.
ACTIVATIONS = (
    *("aten.relu.default", "aten.relu_.default", "aten.relu6.default", "aten.relu6_.default"),
    *("aten.hardtanh.default", "aten.hardtanh_.default", "aten.clamp.default"),
)
#: What gives values that it was given: the result has the scale of the input.
SHARING = (
    *("aten.max_pool2d.default", "aten.flatten.using_ints", "aten.view.default"),
    *("aten.reshape.default", "aten.dropout.default", "aten.squeeze.dim", "aten.squeeze.dims"),
    *("aten.unsqueeze.default", "aten._unsafe_view.default", "aten.alias.default"),
    *("aten.contiguous.default", "aten.clone.default"),
)


def name_of(node: Node) -> str:
    """Return the operator of a node, e.g. ``"aten.conv2d.default"``; empty for other nodes."""
    if node.op != "call_function":
        return ""
    # Operators of torch print as their names, functions of Python as what they are.
    own = isinstance(node.target, torch._ops.OpOverload)
    return str(node.target) if own else getattr(node.target, "__name__", str(node.target))
