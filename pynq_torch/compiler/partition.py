"""Which nodes of a graph the PL does, and in which order the PL and the CPU take turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch.fx import GraphModule, Node

from .layer import Declined, Layer
from .lower import DEQUANTIZE, QUANTIZE, lower, operator_of
from .names import PRODUCTS, name_of

__all__ = ["Partition", "Stage", "partition"]


@dataclass
class Stage:
    """Nodes that run one after the other on the same side.

    Attributes
    ----------
    on_pl : bool
        Whether it is a program of kernel ``net``.
    nodes : list of torch.fx.Node
        In order.
    """

    on_pl: bool
    nodes: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class Partition:
    """A graph cut into stages.

    Attributes
    ----------
    stages : list of Stage
        In order; the PL and the CPU take turns.
    layers : mapping of torch.fx.Node to Layer
        What the PL does.
    reasons : mapping of torch.fx.Node to str
        Why the CPU does the others.
    """

    stages: list[Stage]
    layers: Mapping[Node, Layer]
    reasons: Mapping[Node, str]


def partition(model: GraphModule) -> Partition:
    """Cut a graph into as few stages as its order allows.

    Parameters
    ----------
    model : torch.fx.GraphModule
        With the shapes that `Compiled` notes.

    Notes
    -----
    The stage of a node is that of what it reads, and one more where that is on the other side. So
    a stage has every layer that can run before the other side is needed again.
    """
    refused: dict[Node, str] = {}
    while True:
        layers, reasons, needed = _cover(model, refused)
        stages = _stages(model, layers, needed)
        idle = [
            node
            for stage in stages
            if stage.on_pl and all(layers[node].kind in ("view", "cat") for node in stage.nodes)
            for node in stage.nodes
        ]
        if not idle:
            return Partition(stages, layers, reasons)
        refused |= dict.fromkeys(idle, "it computes nothing: not worth a start of its own")


def _cover(
    model: GraphModule, refused: Mapping[Node, str]
) -> tuple[dict[Node, Layer], dict[Node, str], set[Node]]:
    """Walk back from the outputs; return layers, reasons, and all nodes that are needed."""
    layers: dict[Node, Layer] = {}
    reasons: dict[Node, str] = {}
    needed: set[Node] = set()
    waiting = [node for node in model.graph.nodes if node.op == "output"]
    while waiting:
        node = waiting.pop()
        if node in needed:
            continue
        needed.add(node)
        name = name_of(node)
        if name == QUANTIZE or name in PRODUCTS:
            try:
                layer = _lowered(model, node, refused)
            except Declined as why:
                operator = operator_of(node)
                at = operator if operator.op == "call_function" else node
                reasons.setdefault(at, str(why))
            else:
                layers[node] = layer
                waiting.extend(source.node for source in layer.inputs)
                continue
        if node.op == "call_function":
            reasons.setdefault(node, _default(name))
        waiting.extend(node.all_input_nodes)
    return layers, {n: why for n, why in reasons.items() if n in needed - layers.keys()}, needed


def _lowered(model: GraphModule, node: Node, refused: Mapping[Node, str]) -> Layer:
    if node in refused:
        raise Declined(refused[node])
    if operator_of(node).op == "placeholder":
        raise Declined("between the CPU and the PL: the input is quantised")
    return lower(model, node)


def _default(name: str) -> str:
    if name in (QUANTIZE, DEQUANTIZE):
        return "between the CPU and the PL"
    if name.startswith("quantized_decomposed."):
        return "a constant of a layer on the CPU"
    return f"float32, and kernel net is int8 ({name.removesuffix('.default')})"


def _stages(model: GraphModule, layers: Mapping[Node, Layer], needed: set[Node]) -> list[Stage]:
    stages: list[Stage] = [Stage(on_pl=False)]
    at: dict[Node, int] = {}
    for node in model.graph.nodes:
        if node not in needed or node.op in ("placeholder", "get_attr", "output"):
            continue
        here = node in layers
        sources = [s.node for s in layers[node].inputs] if here else node.all_input_nodes
        # Stages with even numbers are the CPU's; inputs are there from the start.
        stage = max(
            (n + (n % 2 != here) for n in (at.get(s, 0) for s in sources)), default=int(here)
        )
        at[node] = stage
        while len(stages) <= stage:
            stages.append(Stage(on_pl=len(stages) % 2 == 1))
        stages[stage].nodes.append(node)
    return [stage for stage in stages if stage.nodes]
