"""``torch.compile(model, backend="pynq")``: torch finds this by its entry point."""

from __future__ import annotations

import copy
import operator
import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from . import Compiled
from . import compile as compile_model

__all__ = ["pynq"]

#: Programs that a graph keeps.
_MOST = 8


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
    calibrate = _calibrate(options)
    is_float = calibrate is None and not _is_quantised(graph)
    why = _refusal(inputs, is_float)
    if why:
        warnings.warn(f"backend 'pynq': {why}", stacklevel=2)
    if why or is_float:
        return graph.forward
    made = _Made(graph, calibrate)
    if all(isinstance(value, torch.Tensor) for value in inputs):
        made.of(inputs)  # so that torch.compile says what is wrong with it
    return made


def _calibrate(options: Mapping[str, Any] | None) -> Iterable[Any] | None:
    if isinstance(options, dict) and isinstance(options.get("calibrate"), (list, tuple, Iterator)):
        options["calibrate"] = _Batches(options["calibrate"])
    given = dict(options or {})
    calibrate: Iterable[Any] | None = given.pop("calibrate", None)
    if given:
        raise ValueError(f"options has {', '.join(map(repr, given))}; expected 'calibrate'")
    return calibrate


class _Batches(list[Any]):
    """Batches that are compared as objects.

    torch compares the options of a model with those of each other one of its class, and tensors
    are neither equal nor not. It has to find these in the place of the user's.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list) or len(self) != len(other):
            return False
        return all(map(operator.is_, self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other


class _Made:
    """The programs of a graph: one for each size of its inputs, and for each state of its weights.

    torch calls the graph of a model for others of its class too, with their weights, and goes on
    calling it after ``load_state_dict`` or an optimiser's step.
    """

    def __init__(self, graph: GraphModule, calibrate: Iterable[Any] | None) -> None:
        self._graph, self._calibrate = graph, calibrate
        self._holders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._made: OrderedDict[Hashable, tuple[Compiled, list[Any]]] = OrderedDict()

    def __call__(self, *values: Any) -> Any:
        compiled, free = self.of(values)
        return compiled(*free)

    def of(self, values: Sequence[Any]) -> tuple[Compiled, list[torch.Tensor]]:
        """Return the program for what a call gives, and those of its values that are inputs."""
        holders = self._holders
        fixed = list(map(_is_fixed, holders, values))
        free = [value for value, bound in zip(values, fixed, strict=True) if not bound]
        kept = [value for value, bound in zip(values, fixed, strict=True) if bound]
        batches = {len(value) for value in free if value.ndim}
        shapes = tuple((value.shape[1:], value.dtype) for value in free)
        unread = [not node.users for node, bound in zip(holders, fixed, strict=True) if bound]
        states = zip(kept, unread, strict=True)
        key = (shapes, *(_state(value, batches if alone else ()) for value, alone in states))
        if key not in self._made:
            bound = _bound(self._graph, values, fixed)
            # What is kept stays alive: no other tensor gets its id.
            self._made[key] = compile_model(bound, tuple(free), self._calibrate), kept
            if len(self._made) > _MOST:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return self._made[key][0], free


def _is_fixed(holder: Node, value: Any) -> bool:
    """Return whether a value is a parameter, a buffer or a size, and no input."""
    static = "_dynamo_static_input_type" in (holder.meta.get("tensor_dict") or {})
    return static or not isinstance(value, torch.Tensor) or isinstance(value, torch.nn.Parameter)


def _state(value: Any, batches: Collection[int]) -> Hashable:
    """Return what has changed if a value has; a program runs any number of images."""
    if isinstance(value, torch.Tensor):
        return id(value), 0 if value.is_inference() else value._version
    return "batch" if value in batches else value


def _refusal(inputs: Sequence[Any], is_float: bool) -> str:
    """Return why a graph runs in float32 on the CPU; empty where nobody would expect otherwise."""
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    if torch.is_grad_enabled() and any(value.requires_grad for value in tensors):
        why = "gradients are needed, and int8 has none: it runs as without torch.compile"
        return why if is_float else f"{why}. For inference call it under torch.no_grad()"
    return ""


def _is_quantised(graph: GraphModule) -> bool:
    return any("quantized_decomposed" in str(node.target) for node in graph.graph.nodes)


def _bound(graph: GraphModule, values: Sequence[Any], fixed: Sequence[bool]) -> GraphModule:
    """Return the graph with those of its inputs that are fixed as constants."""
    bound = copy.deepcopy(graph)
    holders = [node for node in bound.graph.nodes if node.op == "placeholder"]
    for index, (node, value) in enumerate(zip(holders, values, strict=True)):
        if not fixed[index]:
            continue
        if isinstance(value, torch.Tensor):
            name = f"pynq_bound_{index}"
            bound.register_parameter(name, torch.nn.Parameter(value.detach(), requires_grad=False))
            with bound.graph.inserting_before(node):
                node.replace_all_uses_with(bound.graph.get_attr(name))
        else:
            for user in list(node.users):
                user.args = _replaced(user.args, node, value)
                user.kwargs = _replaced(user.kwargs, node, value)
        bound.graph.erase_node(node)
    bound.recompile()
    return bound


def _replaced(arguments: Any, node: Node, value: int) -> Any:
    return map_arg(arguments, lambda one: value if one is node else one)
