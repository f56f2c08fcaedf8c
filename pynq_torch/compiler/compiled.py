"""A compiled model: it runs, says what it does where, compares itself, and goes into a file."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule, Node

from pynq_torch.descriptions import read_kernel_description
from pynq_torch.errors import PynqTorchError, VerificationError
from pynq_torch.kernels.net.format import END, OUTS, SUM, Instruction, encode, head
from pynq_torch.net import Network, Queue, Runner
from pynq_torch.paths import KERNELS
from pynq_torch.tables import Table, size_text

from . import reference
from .layout import described
from .lower import DEQUANTIZE, QUANTIZE, constant, layer_name, operator_of
from .names import name_of
from .partition import Partition, partition
from .plan import Piece, plan

__all__ = ["Compiled", "model_cycles"]

_EDGES = {QUANTIZE: "quantise", DEQUANTIZE: "dequantise"}


class _Shapes(torch.fx.Interpreter):
    """Notes the shape of every node's value for `shape_of`.

    torch's own ShapeProp would work on fake tensors while torch.compile is running.
    """

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if isinstance(value, torch.Tensor):
            n.meta["shape"] = tuple(value.shape)
        return value


class Compiled:
    """A model cut into programs for kernel ``net``, and what the CPU does between them.

    Parameters
    ----------
    model : torch.fx.GraphModule
        An exported graph, with the quantisation of PT2E or without any.
    example : tuple of torch.Tensor
        Inputs; another number of images will do later.

    Attributes
    ----------
    pieces : list of Piece
        The programs, in order: an AP_START for each image and piece.
    """

    def __init__(self, model: GraphModule, example: tuple[torch.Tensor, ...]) -> None:
        with torch.no_grad():
            _Shapes(model).run(*example)
        self._model = model
        self._inputs = list(map(described, example))
        self._images = [len(tensor) for tensor in example if tensor.ndim]
        self._counted: list[str] = []
        self._order: Partition = partition(model)
        self._pieces: dict[int, Piece] = {}
        for index, stage in enumerate(self._order.stages):
            if stage.on_pl:
                layers = [self._order.layers[node] for node in stage.nodes]
                self._pieces[index] = plan(layers, self._needed_after(index))
        self._runners = {index: Runner(piece.network) for index, piece in self._pieces.items()}
        self.pieces = list(self._pieces.values())

    def limit(self, counted: Container[str]) -> None:
        """Say which nodes, by name, hold the number of images of the example as a constant.

        On the PL an image is alone, whatever their number is.
        """
        stages = (stage.nodes for stage in self._order.stages if not stage.on_pl)
        nodes = [node.name for nodes in stages for node in nodes]
        self._counted = [name for name in (*nodes, "output") if name in counted]

    @property
    def on_cpu(self) -> bool:
        """Whether the CPU does more than to quantise and dequantise."""
        return any(name_of(node) not in _EDGES for node in self._order.reasons)

    def _needed_after(self, index: int) -> list[Node]:
        """Return the results of a stage that other stages or the outputs read."""
        own = self._order.stages[index].nodes
        others = [n for i, s in enumerate(self._order.stages) if i != index for n in s.nodes]
        read: set[Node] = set()
        for node in others:
            layer = self._order.layers.get(node)
            sources = [s.node for s in layer.inputs] if layer else node.all_input_nodes
            read.update(sources)
        read.update(next(iter(reversed(self._model.graph.nodes))).all_input_nodes)
        return [node for node in own if node in read]

    # ---- running -----------------------------------------------------------------------------

    def __call__(self, *inputs: torch.Tensor, timeout_s: float = 60.0) -> Any:
        """Run the model.

        Parameters
        ----------
        *inputs : torch.Tensor
            As the example, with any number of images.
        timeout_s : float
            Bound of the wait for the PL, for each image and program.

        Returns
        -------
        What the model returns, on the device of the first input.

        Raises
        ------
        ValueError
            An input has another type or shape than the example, or a value to quantise is NaN.
            Or their number is another one, and a layer on the CPU has it as a constant.
        """
        values = self._values(inputs)
        for index in range(len(self._order.stages)):
            self._run(index, values, timeout_s)
        last = next(iter(reversed(self._model.graph.nodes)))
        device = next((t.device for t in inputs), torch.device("cpu"))
        found = torch.fx.node.map_arg(
            last.args[0], lambda node: self._value(node, values).to(device)
        )
        return self._model.graph.process_outputs(found)

    def queue(self, depth: int = 2) -> Queue:
        """Return a queue for several inputs in flight: ``submit(x)`` and ``map(inputs)``."""
        return Queue(self, depth)

    def _values(self, inputs: tuple[torch.Tensor, ...]) -> dict[Node, Any]:
        kinds = list(map(described, inputs))
        images = [len(tensor) for tensor in inputs if tensor.ndim] if kinds == self._inputs else []
        if images != self._images and not len(set(self._images)) == len(set(images)) == 1:
            raise ValueError(
                f"the inputs are {', '.join(kinds) or 'none'}; expected {', '.join(self._inputs)}, "
                "with as many images N in each"
            )
        if images != self._images and self._counted:
            raise ValueError(
                f"the model asks for the number of its images (for {self._counted[0]}, on the "
                f"CPU), so that it was compiled for {self._images[0]}; found {images[0]}. Compile "
                "it with an example of as many"
            )
        flat = self._model.graph.process_inputs(*inputs)
        holders = [node for node in self._model.graph.nodes if node.op == "placeholder"]
        return dict(zip(holders, (t.cpu() for t in flat), strict=True))

    def _value(self, node: Node, values: dict[Node, Any]) -> Any:
        return constant(self._model, node) if node.op == "get_attr" else values[node]

    def _run(self, index: int, values: dict[Node, Any], timeout_s: float = 60.0) -> None:
        if index in self._pieces:
            piece = self._pieces[index]
            given = [values[node].contiguous().numpy() for node in piece.inputs]
            results = self._runners[index].run(given, timeout_s)
            for node, result in zip(piece.outputs, results, strict=True):
                values[node] = torch.from_numpy(result)
            return
        with torch.no_grad():
            for node in self._order.stages[index].nodes:
                operands: Any = torch.fx.node.map_arg(
                    (node.args, node.kwargs), lambda n: self._value(n, values)
                )
                args, kwargs = operands
                if name_of(node) == QUANTIZE and args[0].isnan().any():
                    raise ValueError(f"{layer_name(node.all_input_nodes[0])} is NaN; int8 has none")
                values[node] = node.target(*args, **kwargs)  # type: ignore[operator]

    # ---- looking at it -----------------------------------------------------------------------

    def explain(self) -> Table:
        """Return a line for each layer: where it runs and why, and what it costs.

        Cycles are those of the kernel's latency model for its C++; ``counted`` are what the kernel
        counted in the last run, where it does.
        """
        header = ["layer", "does", "where", "why", "MACs", "bytes", "cycles (model)", "counted"]
        rows: list[list[Any]] = []
        for index, stage in enumerate(self._order.stages):
            if index in self._pieces:
                rows.extend(self._explained(index))
                continue
            for node in stage.nodes:
                # What a person looks for is the operator that such a node belongs to.
                edge = name_of(node) in _EDGES
                of = operator_of(node.all_input_nodes[0]) if edge else node
                does = ".".join(name_of(node).split(".")[1:2]) or name_of(node)
                does, why = _EDGES.get(name_of(node), does), self._order.reasons.get(node, "")
                rows.append([layer_name(of), does, "CPU", why, "", "", "", ""])
        sums = [sum(int(row[n] or 0) for row in rows) for n in range(4, 7)]
        rows.append(["together", "", "", "", *sums, ""])
        return Table(header, rows)

    def _explained(self, index: int) -> Iterator[list[Any]]:
        piece, runner = self._pieces[index], self._runners[index]
        counted = runner.counted
        free = {"view": "an address", "cat": "its parts are written side by side"}
        made = {layer.result.node: number for number, layer in enumerate(piece.layers)}
        items = piece.network.check()
        nodes = self._order.stages[index].nodes
        # In the order of the model; copies into a concatenation stand for no layer of it.
        for node in [*nodes, *(n for n in made if n not in nodes)]:
            if node not in made:
                layer = self._order.layers[node]
                if layer.kind in free:  # the others end in an addition
                    yield [layer.name, layer.kind, "PL", free[layer.kind], "", 0, 0, ""]
                continue
            number = made[node]
            layer, item = piece.layers[number], items[number]
            # As the program reads it: without rows that no window sees.
            moved = item.channels * item.height * item.width
            moved += item.outs * item.rows * item.columns * (item.size + item.reads_b)
            moved += (0 if layer.weight is None else layer.weight.numel()) + 4 * layer.table.numel()
            cycles = "" if counted is None else counted[number]
            yield [layer.name, layer.kind, "PL", "", layer.macs, moved, model_cycles(item), cycles]

    def layers(self, *inputs: torch.Tensor) -> Table:
        """Compare every instruction's result with the reference in torch, bit by bit.

        Parameters
        ----------
        *inputs : torch.Tensor
            As for a call; the first image counts. The PL runs the program as far as each
            instruction, once for each.

        Raises
        ------
        VerificationError
            A result differs; the message has the layer and the first wrong index.
        """
        values = self._values(inputs)
        rows: list[list[Any]] = []
        for index in range(len(self._order.stages)):
            if index in self._pieces:
                rows.extend(self._compared(index, values))
            self._run(index, values)
        return Table(["layer", "does", "result", "elements", "different"], rows)

    def _compared(self, index: int, values: dict[Node, Any]) -> Iterator[list[Any]]:
        piece, runner = self._pieces[index], self._runners[index]
        n = piece.network
        images = [values[node][:1].contiguous().numpy() for node in piece.inputs]
        items = n.check()
        arena = np.zeros(n.arena, np.int8)
        for port, image in zip(n.inputs, images, strict=True):
            arena[port.at : port.at + port.nbytes] = image.reshape(-1)
        expected = reference.run(items, n.weights, n.tables, arena.copy())
        for number, (item, layer) in enumerate(zip(items, piece.layers, strict=True)):
            program = encode([*items[: number + 1], Instruction(head(END))])
            found = reference.result_of(item, runner.memory_after(program, arena))
            # The bits, so that NaN equals NaN.
            kind = torch.int32 if item.size == 4 else torch.int8
            wrong = (found.contiguous().view(kind) != expected[number].view(kind)).nonzero()
            if len(wrong):
                raise VerificationError(
                    f"layer {layer.name} (instruction {number}) differs from the reference in "
                    f"{len(wrong)} of {found.numel()} elements, first at {wrong[0].tolist()}: "
                    f"{found[tuple(wrong[0])]}, expected {expected[number][tuple(wrong[0])]}"
                )
            shape = size_text((item.outs, item.rows, item.columns))
            kind_text = "float32" if item.size == 4 else "int8"
            yield [layer.name, layer.kind, f"{kind_text} {shape}", found.numel(), 0]

    # ---- a file ------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the network into a file that runs without torch; see `pynq_torch.net.load`.

        Raises
        ------
        PynqTorchError
            The CPU does more of it than to quantise the input.
        """
        return self.network.save(path)

    @property
    def network(self) -> Network:
        """The network as one program, from float32 to float32."""
        edges = {n for n in self._order.reasons if name_of(n) in _EDGES}
        others = [n for n in self._order.reasons if n not in edges]
        first = [n for n in edges if name_of(n) == QUANTIZE]
        whole = len(self.pieces) == 1 and not others
        if not whole or len(first) != 1 or operator_of(first[0]).op != "placeholder":
            names = ", ".join(layer_name(node) for node in others[:5])
            raise PynqTorchError(
                f"a saved network is one program from one input to its output; found "
                f"{len(self.pieces)} programs, on the CPU {names or 'nothing'}. explain() says why."
            )
        return self.pieces[0].network

    def __repr__(self) -> str:
        layers = sum(len(piece.layers) for piece in self.pieces)
        cpu = len(self._order.reasons)
        return f"<Compiled: {layers} instructions in {len(self.pieces)} programs, {cpu} on the CPU>"


def model_cycles(item: Instruction) -> int:
    """Return the cycles of an instruction by the latency model in ``description.json``."""
    groups = item.groups if item.opcode else 1
    pixels = item.rows * item.columns
    return read_kernel_description(KERNELS / "net").latency.cycles(
        outs_16=groups * -(-item.outs // groups // OUTS) or groups,
        depth=item.channels // groups,
        taps=item.k_rows * item.k_columns,
        k_rows=item.k_rows,
        k_columns=item.k_columns,
        pixels=pixels,
        rows=item.rows,
        outs=item.outs,
        stride=item.stride_x,
        sums=int(bool(item.flags & SUM)),
    )
