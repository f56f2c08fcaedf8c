"""Where an exported graph holds the number of its images as a constant."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from .names import name_of

__all__ = ["counting_images"]

_SHAPED = (
    *("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default"),
    *("aten.expand.default", "aten.repeat.default"),
)


class _All(Container[str]):
    """Every node: the model cannot be exported for another number of images."""

    def __contains__(self, name: object) -> bool:
        return True


def counting_images(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> Container[str]:
    """Return the names of the nodes that are others for another number of images.

    The model is exported for the number of the example and for one more: no graph tells a number
    of images from any other number. Of a graph that the user has exported the sizes of views count
    that begin with it.
    """
    images = next((len(tensor) for tensor in inputs if tensor.ndim), 0)
    if isinstance(model, GraphModule):  # exported for that number, and for no other
        return {n.name for n in model.graph.nodes if name_of(n) in _SHAPED and _begins(n, images)}
    more = tuple(
        torch.cat([tensor, tensor[:1]]) if tensor.ndim and len(tensor) == images else tensor
        for tensor in inputs
    )
    try:
        graphs = [torch.export.export(model, given).module().graph for given in (inputs, more)]
    except (RuntimeError, ValueError, TypeError, IndexError, AssertionError):
        return _All()
    nodes, others = (list(graph.nodes) for graph in graphs)
    if [node.target for node in nodes] != [node.target for node in others]:
        return _All()
    return {a.name for a, b in zip(nodes, others, strict=True) if _arguments(a) != _arguments(b)}


def _begins(node: Node, images: int) -> bool:
    sizes = node.args[1] if len(node.args) > 1 else ()
    return isinstance(sizes, (list, tuple)) and tuple(sizes[:1]) == (images,)


def _arguments(node: Node) -> Any:
    return map_arg((node.args, node.kwargs), lambda one: one.name)
