"""From nodes of a quantised graph to layers of kernel ``net``, or to the reason why not.

A layer ends at a node that quantises, and begins at nodes that dequantise; between them is an
operator, with a ReLU or clamp behind it. A convolution or linear layer whose result is not
quantised ends at itself, in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from . import lower_windows as windows
from .layer import Declined, Layer, Steps, copy_of, plane
from .names import ACTIVATIONS, PRODUCTS, SHARING, name_of

__all__ = ["DEQUANTIZE", "QUANTIZE", "constant", "layer_name", "lower", "operator_of", "shape_of"]

QUANTIZE = "quantized_decomposed.quantize_per_tensor.default"
DEQUANTIZE = "quantized_decomposed.dequantize_per_tensor.default"
_BY_CHANNEL = "quantized_decomposed.dequantize_per_channel.default"


def shape_of(node: Node) -> tuple[int, ...]:
    """Return the shape of a node's value, as the example has it."""
    shape: tuple[int, ...] = node.meta["shape"]
    return shape


def layer_name(node: Node) -> str:
    """Return the name of the module that a node is from, or its own."""
    stack = node.meta.get("nn_module_stack") or {}
    path = next((str(path) for path, _ in reversed(list(stack.values())) if path), "")
    path = path.replace("L['self']", "").strip(".")
    known = name_of(node) in PRODUCTS
    return path if known and path else node.name


def constant(model: GraphModule, node: Any) -> Any:
    """Return the value of a node that depends on no input.

    Raises
    ------
    Declined
        It depends on one.
    """
    if not isinstance(node, Node):
        return node
    if node.op == "get_attr":
        value: Any = model
        for part in str(node.target).split("."):
            value = getattr(value, part)
        return value.detach()
    if node.op != "call_function" or not callable(node.target):
        raise Declined("its weight or bias is no constant")
    arguments = torch.fx.node.map_aggregate(node.args, lambda a: constant(model, a))
    assert isinstance(arguments, tuple)
    return node.target(*arguments, **node.kwargs)


def operator_of(node: Node) -> Node:
    """Return the operator whose result a node quantises, before any activation."""
    while name_of(node) in (QUANTIZE, *ACTIVATIONS) and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def lower(model: GraphModule, node: Node) -> Layer:
    """Return the layer that ends at a node.

    Parameters
    ----------
    model : torch.fx.GraphModule
        With the shapes that `Compiled` notes.
    node : torch.fx.Node
        One that quantises, or a convolution or linear layer.

    Raises
    ------
    Declined
        The kernel cannot do it, and why.
    """
    operator = operator_of(node)
    name = name_of(operator)
    result = _result(node)
    if name == DEQUANTIZE:
        # Nothing but an activation, or other steps.
        source = _source(operator)
        bounds, name = _bounds(node, result), node.all_input_nodes[0].name
        if source.same(result) and not bounds:
            return Layer(name, "view", result, (source,))
        return copy_of(source, result, name, **bounds)
    make = _LOWER.get(name)
    if make is None:
        raise Declined(f"kernel net has no {name.removesuffix('.default')}")
    return make(model, operator, result, _bounds(node, result))


def _result(node: Node) -> Steps:
    shape = shape_of(node)
    if not shape:
        raise Declined("its result has no dimension for the batch")
    if name_of(node) != QUANTIZE:
        return Steps(node, 1.0, 0, shape[1:])
    _, scale, zero, low, high, dtype = node.args
    if dtype != torch.int8 or low != -128 or high != 127:
        raise Declined(f"its result is {dtype} from {low} to {high}; expected int8, -128 to 127")
    assert isinstance(scale, (int, float)) and isinstance(zero, int)
    return Steps(node, float(scale), zero, shape[1:])


def _source(node: Any) -> Steps:
    """Return the int8 tensor that an operator reads."""
    if not isinstance(node, Node) or name_of(node) != DEQUANTIZE:
        raise Declined("it reads float32: nothing has quantised its input; pass calibrate=batches")
    source, scale, zero, *_, dtype = node.args
    if dtype != torch.int8 or not isinstance(source, Node):
        raise Declined(f"it reads {dtype}; expected int8")
    assert isinstance(scale, (int, float)) and isinstance(zero, int)
    return Steps(source, float(scale), zero, shape_of(source)[1:])


def _bounds(node: Node, result: Steps) -> dict[str, int]:
    """Return the bounds that the activations before a quantising node give; none without any."""
    low, high = -128, 127
    if name_of(node) != QUANTIZE:
        return {}
    step = node.args[0]
    while isinstance(step, Node) and name_of(step) in ACTIVATIONS:
        least, most = _limits(step)
        if least is not None:
            low = max(low, _steps(least, result))
        if most is not None:
            high = min(high, _steps(most, result))
        step = step.args[0]
    return {} if (low, high) == (-128, 127) else {"low": min(low, high), "high": high}


def _limits(node: Node) -> tuple[float | None, float | None]:
    name = name_of(node)
    if "relu6" in name:
        return 0.0, 6.0
    if "relu" in name:
        return 0.0, None
    low, high = (*node.args[1:], *(-1.0, 1.0)[len(node.args) - 1 :]) if "tanh" in name else (
        node.args[1] if len(node.args) > 1 else None,
        node.args[2] if len(node.args) > 2 else None,
    )  # fmt: skip
    assert low is None or isinstance(low, (int, float))
    assert high is None or isinstance(high, (int, float))
    return low, high


def _steps(value: float, result: Steps) -> int:
    return int(max(-128, min(127, round(value / result.scale) + result.zero)))


def _weight(model: GraphModule, node: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a weight in int8, and its scales in float64, one for each output channel."""
    name = name_of(node) if isinstance(node, Node) else ""
    if name not in (DEQUANTIZE, _BY_CHANNEL):
        raise Declined("its weight is float32: nothing has quantised it; pass calibrate=batches")
    values, scale, zero, *rest = (constant(model, argument) for argument in node.args)
    if values.dtype != torch.int8 or torch.as_tensor(zero).any():
        raise Declined(f"its weight is {values.dtype}; expected int8 with zero points of 0")
    if name == _BY_CHANNEL and rest[0] != 0:
        raise Declined(f"its weight has scales along dimension {rest[0]}; expected 0")
    return values, torch.as_tensor(scale, dtype=torch.float64).expand(len(values))


def _product(model: GraphModule, node: Node, result: Steps, bounds: dict[str, int]) -> Layer:
    source = _source(node.args[0])
    weight, scale = _weight(model, node.args[1])
    bias = constant(model, node.args[2]) if len(node.args) > 2 else None
    real = result.node is node
    if name_of(node) == "aten.linear.default":
        window, weight, image = windows.linear(source, weight)
    else:
        window, image = windows.convolution(node, source, result, weight), plane(source.shape)
        weight = weight.reshape(*weight.shape[:2], window["k_rows"], window["k_columns"])
    table = windows.product_table(source, result, weight, scale, bias, real)
    name, kind = layer_name(node), "linear" if weight.ndim == 2 or image[1:] == (1, 1) else "conv"
    kind = "linear" if name_of(node) == "aten.linear.default" else kind
    opcode, every = windows.CONV, {**window, **bounds}
    return Layer(name, kind, result, (source,), opcode, every, weight, table, image, real)


def _pool(make: Callable[..., Layer]) -> Callable[..., Layer]:
    def lowered(model: GraphModule, node: Node, result: Steps, bounds: dict[str, int]) -> Layer:
        return make(node, _source(node.args[0]), result, bounds)

    return lowered


def _add(model: GraphModule, node: Node, result: Steps, bounds: dict[str, int]) -> Layer:
    sources = tuple(_source(operand) for operand in node.args[:2])
    if node.kwargs.get("alpha", 1) != 1 or len(node.args) > 2:
        raise Declined("an addition with alpha")
    if any(source.shape != result.shape for source in sources):
        raise Declined("its operands have different shapes")
    factors = torch.tensor([source.scale / result.scale for source in sources]).float()
    table = factors.view(torch.int32).reshape(1, 2)
    channels = plane(result.shape)[0]
    window = {"groups": channels, **bounds}
    return Layer(node.name, "add", result, sources, windows.ADD, window, table=table)


def _cat(model: GraphModule, node: Node, result: Steps, bounds: dict[str, int]) -> Layer:
    tensors, dim = node.args[0], node.args[1] if len(node.args) > 1 else 0
    assert isinstance(tensors, (list, tuple)) and isinstance(dim, int)
    sources = tuple(_source(tensor) for tensor in tensors)
    if dim % len(shape_of(node)) != 1:
        raise Declined(f"a concatenation along dimension {dim}; the kernel does it along 1")
    if bounds or not all(source.same(result) for source in sources):
        raise Declined("a concatenation of tensors in different steps")
    plane(result.shape)
    return Layer(node.name, "cat", result, sources)


def _view(model: GraphModule, node: Node, result: Steps, bounds: dict[str, int]) -> Layer:
    source = _source(node.args[0])
    if shape_of(source.node)[0] != shape_of(node)[0]:
        raise Declined("its result has another batch than its input")
    if bounds or not source.same(result):
        plane(source.shape)
        return copy_of(source, result, node.name, **bounds)
    return Layer(node.name, "view", result, (source,))


_LOWER: dict[str, Callable[[GraphModule, Node, Steps, dict[str, int]], Layer]] = {
    **dict.fromkeys(PRODUCTS, _product),
    **dict.fromkeys(SHARING, _view),
    "aten.max_pool2d.default": _pool(windows.maximum),
    "aten.avg_pool2d.default": _pool(windows.average),
    "aten.adaptive_avg_pool2d.default": _pool(windows.adaptive),
    "aten.mean.dim": _pool(windows.mean),
    **dict.fromkeys(("aten.add.Tensor", "aten.add_.Tensor"), _add),
    "aten.cat.default": _cat,
}
