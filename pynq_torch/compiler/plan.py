"""Memory and program of one stage on the PL: where each tensor is, and the instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import torch
from torch.fx import Node

from pynq_torch.kernels.net.format import (
    CONV,
    END,
    Instruction,
    encode,
    head,
)
from pynq_torch.net import Network, Port

from .fuse import fuse
from .layer import Layer, Steps, copy_of, plane
from .layout import pack

__all__ = ["Piece", "plan"]

_ALIGN = 16


@dataclass
class _Buffer:
    """Memory that is in use from one instruction to another, both counted."""

    nbytes: int
    first: int
    last: int
    at: int = 0


@dataclass(frozen=True)
class _Place:
    buffer: _Buffer
    offset: int


@dataclass(frozen=True)
class Piece:
    """A stage on the PL as a program.

    Attributes
    ----------
    network : Network
        What runs.
    layers : tuple of Layer
        The layer of each instruction.
    inputs, outputs : tuple of torch.fx.Node
        Whose values go in and come out.
    """

    network: Network
    layers: tuple[Layer, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]


def plan(layers: Sequence[Layer], outputs: Sequence[Node]) -> Piece:
    """Lay out memory, and write the program.

    Parameters
    ----------
    layers : sequence of Layer
        In order.
    outputs : sequence of torch.fx.Node
        Results that are needed afterwards.
    """
    layers = fuse(layers, outputs)
    own = {layer.result.node for layer in layers}
    steps = {source.node: source for layer in layers for source in layer.inputs}
    steps |= {layer.result.node: layer.result for layer in layers}
    inputs = tuple(node for node in steps if node not in own)
    sizes = {node: prod(steps[node].shape) for node in steps}
    for layer in layers:
        sizes[layer.result.node] *= 4 if layer.real else 1
    work, places = _placed(layers, inputs, sizes)
    _note_lives(work, places, inputs, outputs)
    arena = _allocate([place.buffer for place in places.values()])
    real = {layer.result.node for layer in layers if layer.real}

    def port(node: Node) -> Port:
        place, at = places[node], steps[node]
        kind: Literal["int8", "float32"] = "float32" if node in real else "int8"
        return Port(place.buffer.at + place.offset, at.shape, kind, at.scale, at.zero)

    program, weights, tables = _emit(work, places)
    network = Network(
        program=encode([*program, Instruction(head(END))]),
        weights=weights.numpy(),
        tables=tables.numpy(),
        arena=arena,
        inputs=tuple(map(port, inputs)),
        outputs=tuple(map(port, outputs)),
        names=tuple(layer.name for layer in work),
    )
    return Piece(network, tuple(work), inputs, tuple(outputs))


def _note_lives(
    work: Sequence[Layer],
    places: dict[Node, _Place],
    inputs: Sequence[Node],
    outputs: Sequence[Node],
) -> None:
    """Note from which instruction to which each buffer holds something."""
    for index, layer in enumerate(work):
        for node in (*(source.node for source in layer.inputs), layer.result.node):
            buffer = places[node].buffer
            buffer.first, buffer.last = min(buffer.first, index), max(buffer.last, index)
    for node in inputs:
        places[node].buffer.first = -1
    for node in outputs:
        places[node].buffer.last = len(work)


def _placed(
    layers: Sequence[Layer], inputs: Sequence[Node], sizes: dict[Node, int]
) -> tuple[list[Layer], dict[Node, _Place]]:
    """Return the layers that are instructions, copies among them, and where every tensor is."""
    roots = {layer.result.node: layer.inputs[0].node for layer in layers if layer.kind == "view"}

    def root(node: Node) -> Node:
        while node in roots:
            node = roots[node]
        return node

    places: dict[Node, _Place] = {}
    copies: dict[Node, list[Layer]] = {}

    def place(node: Node) -> _Place:
        if node not in places:
            places[node] = _Place(_Buffer(sizes[node], len(layers) * 9, -1), 0)
        return places[node]

    computed = {layer.result.node for layer in layers if layer.kind != "view"}
    # From the last concatenation on, so that one within another is in the memory of that one.
    for layer in reversed(layers):
        if layer.kind != "cat":
            continue
        whole, offset = place(layer.result.node), 0
        for number, source in enumerate(layer.inputs):
            at = _Place(whole.buffer, whole.offset + offset)
            node = root(source.node)
            if node in computed and node not in places:
                places[node] = at
            else:
                part = Part(layer.result.node, number, source)
                places[part] = at  # type: ignore[index]
                copies.setdefault(layer.result.node, []).append(part.copy(layer.name))
            offset += sizes[source.node]
    work: list[Layer] = []
    for node in inputs:
        place(node)
    for layer in layers:
        if layer.kind == "view":
            places[layer.result.node] = place(root(layer.result.node))
        elif layer.kind == "cat":
            work.extend(copies.get(layer.result.node, ()))
        else:
            place(layer.result.node)
            work.append(layer)
    return work, places


class Part:
    """The part of a concatenation that a copy of a tensor goes to; it stands for a node."""

    def __init__(self, whole: Node, number: int, source: Steps) -> None:
        self.whole, self.number, self.source = whole, number, source

    def copy(self, name: str) -> Layer:
        """Return the layer that writes it."""
        source = self.source
        into = Steps(self, source.scale, source.zero, source.shape)  # type: ignore[arg-type]
        return copy_of(source, into, f"{name}, part {self.number}")


def _allocate(buffers: list[_Buffer]) -> int:
    """Give every buffer its place; return the bytes of all.

    Largest first, each at the lowest address where no buffer is that is in use at the same time.
    """
    placed: list[_Buffer] = []
    waiting = sorted({id(b): b for b in buffers}.values(), key=lambda b: (-b.nbytes, b.first))
    for buffer in waiting:
        at = 0
        for other in sorted(placed, key=lambda b: b.at):
            apart = other.last < buffer.first or buffer.last < other.first
            if not apart and other.at < at + buffer.nbytes and at < other.at + other.nbytes:
                at = -(-(other.at + other.nbytes) // _ALIGN) * _ALIGN
        buffer.at = at
        placed.append(buffer)
    return max((b.at + b.nbytes for b in placed), default=0)


def _emit(
    work: Sequence[Layer], places: dict[Node, _Place]
) -> tuple[list[Instruction], torch.Tensor, torch.Tensor]:
    program: list[Instruction] = []
    weights: list[torch.Tensor] = []
    tables: list[torch.Tensor] = []
    n_weights = n_table = 0
    for layer in work:
        at = [places[node.node].buffer.at + places[node.node].offset for node in layer.inputs]
        result = places[layer.result.node]
        to = result.buffer.at + result.offset
        # A maximum reads no table, but a pair of words has to be where it says.
        table = n_table if layer.table.numel() else 0
        program.append(_instruction(layer, at, to, n_weights, table))
        tables.append(layer.table.flatten())
        n_table += layer.table.numel()
        if layer.weight is not None:
            weights.append(pack(layer.weight, layer.window["groups"]))
            n_weights += layer.weight.numel()
    if not n_table:
        tables.append(torch.zeros(2))
    # Nothing to concatenate is an error in torch.
    none = torch.empty(0, dtype=torch.int8)
    return program, torch.cat([none, *weights]), torch.cat(tables).int()


def _instruction(layer: Layer, at: list[int], to: int, weights: int, table: int) -> Instruction:
    channels, height, width = layer.image or plane(layer.inputs[0].shape)
    outs, rows, columns = plane(layer.result.shape)
    size = 4 if layer.real else 1
    plane_in, plane_out = height * width, rows * columns * size
    values = {
        "channels": channels, "height": height, "width": width,
        "outs": outs, "rows": rows, "columns": columns, "table": table,
        "x": at[0], "x_channel": plane_in, "x_row": width, "x_zero": layer.inputs[0].zero,
        "y": to, "y_channel": plane_out, "y_row": columns * size, "y_zero": layer.result.zero,
    }  # fmt: skip
    window = dict(layer.window)
    if layer.opcode == CONV:
        values["weights"] = weights
        if window["k_rows"] == 1 and window["pad_y"] == 0:
            # No window sees the rows between: for the kernel they are not there to be read.
            values |= {"x_row": width * window["stride_y"], "height": rows}
            window["stride_y"] = 1
    if len(layer.inputs) == 2:  # an addition, whose operands have the shape of its result
        zero = layer.inputs[1].zero
        values |= {"b": at[1], "b_channel": plane_out, "b_row": columns, "b_zero": zero}
    return Instruction(head(layer.opcode, layer.flags), **{**values, **window})
