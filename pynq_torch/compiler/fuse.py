"""Residual additions as the end of a convolution: kernel ``net`` does both in one instruction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import torch
from torch.fx import Node

from pynq_torch.kernels.net.format import ADD, CONV, sum_words

from .layer import Layer

__all__ = ["fuse"]


def fuse(layers: Sequence[Layer], outputs: Collection[Node]) -> list[Layer]:
    """Return layers whose additions are part of a convolution, where one operand is its result.

    Parameters
    ----------
    layers : sequence of Layer
        In order.
    outputs : collection of torch.fx.Node
        Results that are needed afterwards.

    Returns
    -------
    list of Layer
        A convolution moves to where its addition was: there the other operand has been computed.
        Of two convolutions the one with more products takes the addition: it hides behind them.
    """
    reads = Counter(source.node for layer in layers for source in layer.inputs)
    convolutions = {
        layer.result.node: layer
        for layer in layers
        if layer.opcode == CONV and not layer.real and layer.result.node not in outputs
    }
    taken: set[Node] = set()
    made: list[Layer] = []
    for layer in layers:
        found = [
            (convolutions[source.node], number)
            for number, source in enumerate(layer.inputs if layer.opcode == ADD else ())
            if source.node in convolutions and reads[source.node] == 1
        ]
        if found:
            product, operand = max(found, key=lambda one: one[0].macs)
            taken.add(product.result.node)
            layer = _ending_in(product, layer, operand)
        made.append(layer)
    return [layer for layer in made if layer.result.node not in taken]


def _ending_in(product: Layer, addition: Layer, operand: int) -> Layer:
    """Return a convolution with an addition, of which it is the given operand."""
    factors = addition.table.view(torch.float32).flatten()
    window = dict(product.window)
    low, high = window.pop("low", -128), window.pop("high", 127)
    pair = [float(factors[operand]), float(factors[1 - operand])]
    last = torch.from_numpy(sum_words(pair, product.result.zero, low, high))
    bounds = {k: v for k, v in addition.window.items() if k in ("low", "high")}
    return replace(
        product,
        name=f"{product.name} + {addition.name}",
        kind=f"{product.kind} + add",
        result=addition.result,
        inputs=(*product.inputs, addition.inputs[1 - operand]),
        window={**window, **bounds},
        table=torch.cat([product.table, last.reshape(-1, 2)]),
    )
