"""Windows of layers: what slides over an image, its table of biases and multipliers."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from pynq_torch.kernels.net.format import ADD, CONV, MAX, MEAN, PATCH, TAPS

from .layer import Declined, Layer, Steps, entries, plane
from .names import name_of

__all__ = ["ADD", "CONV", "adaptive", "average", "convolution", "linear", "maximum", "mean"]


def _pair(value: Any, default: Any = None) -> tuple[int, int]:
    """Return rows and columns of an argument; of one number for both, or of one dimension."""
    value = default if value is None or value == [] else value
    if isinstance(value, int):
        return value, value
    values = list(value)
    return (values[0], values[1]) if len(values) == 2 else (1, values[0])


def _arguments(node: Node, *defaults: Any) -> list[Any]:
    given = list(node.args[1:])
    return [*given, *defaults[len(given) :]]


def _window(
    taps: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, int],
    step: tuple[int, int] = (1, 1),
) -> dict[str, int]:
    if taps[1] > TAPS or (taps[1] - 1) * step[1] >= PATCH:
        raise Declined(f"a window of {taps[1]} columns; the kernel has {TAPS}")
    pairs = {"k": taps, "stride": stride, "pad": pad, "step": step}
    names = {"k": ("k_rows", "k_columns")}
    made: dict[str, int] = {}
    for name, pair in pairs.items():
        made |= dict(zip(names.get(name, (f"{name}_y", f"{name}_x")), pair, strict=True))
    return made


def convolution(node: Node, x: Steps, result: Steps, weight: torch.Tensor) -> dict[str, int]:
    """Return the window of a convolution in one or two dimensions."""
    if len(x.shape) != weight.ndim - 1:
        raise Declined("a convolution of one image without a batch")
    _, _, stride, padding, dilation, groups = _arguments(node, None, None, 1, 0, 1, 1)
    flat = weight.ndim == 3
    taps = (1, weight.shape[2]) if flat else (weight.shape[2], weight.shape[3])
    strides, steps = ((1, _pair(v)[1]) if flat else _pair(v) for v in (stride, dilation))
    if padding == "same":
        # The smaller half is above and to the left.
        pad = (steps[0] * (taps[0] - 1) // 2, steps[1] * (taps[1] - 1) // 2)
    else:
        pad = _pair(0 if padding == "valid" else padding)
        pad = (0, pad[1]) if flat else pad
    if any(p > (k - 1) * s for p, k, s in zip(pad, taps, steps, strict=True)):
        raise Declined(f"a padding of {pad}; windows there would see nothing of the image")
    plane(result.shape)
    return {"groups": groups, **_window(taps, strides, pad, steps)}


def linear(
    x: Steps, weight: torch.Tensor
) -> tuple[dict[str, int], torch.Tensor, tuple[int, int, int]]:
    """Return a linear layer as a convolution: its window is the whole input, in whole rows."""
    if len(x.shape) != 1:
        raise Declined(f"a linear layer over {len(x.shape)} dimensions; the kernel has 1")
    length = x.shape[0]
    columns = max(n for n in range(1, min(length, TAPS) + 1) if length % n == 0)
    rows = length // columns
    window = {"groups": 1, **_window((1, columns), (1, 1), (0, 0))}
    return window, weight.reshape(len(weight), rows, 1, columns), (rows, 1, columns)


def product_table(
    x: Steps,
    result: Steps,
    weight: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor | None,
    real: bool,
) -> torch.Tensor:
    """Return biases, with the zero point of the input folded in, and multipliers."""
    steps = x.scale * scale
    sums = weight.flatten(1).long().sum(1)
    whole = torch.zeros_like(sums) if bias is None else torch.round(bias.double() / steps).long()
    if weight[0].numel() * 128 * 128 + int((whole - x.zero * sums).abs().max()) >= 1 << 31:
        raise Declined("its sums may need more than 32 bits")
    return entries(whole - x.zero * sums, steps if real else steps / result.scale)


def maximum(node: Node, x: Steps, result: Steps, bounds: dict[str, int]) -> Layer:
    """Return a maximum pooling."""
    kernel, stride, padding, dilation, _ = _arguments(node, None, None, 0, 1, False)
    if not x.same(result):
        raise Declined("a maximum whose result has other steps than its input")
    window = _window(_pair(kernel), _pair(stride, kernel), _pair(padding), _pair(dilation))
    groups = plane(x.shape)[0]
    return Layer(node.name, "max", result, (x,), MAX, {"groups": groups, **window, **bounds})


def _mean(
    node: Node,
    x: Steps,
    result: Steps,
    window: dict[str, int],
    divisor: int,
    bounds: dict[str, int],
) -> Layer:
    count = window["k_rows"] * window["k_columns"]
    factor = torch.tensor([x.scale / (result.scale * divisor)], dtype=torch.float64)
    table = entries(torch.tensor([-x.zero * count]), factor)
    every = {"groups": plane(x.shape)[0], **window, **bounds}
    return Layer(node.name, "mean", result, (x,), MEAN, every, table=table)


def average(node: Node, x: Steps, result: Steps, bounds: dict[str, int]) -> Layer:
    """Return an average pooling."""
    defaults = (None, None, 0, False, True, None)
    kernel, stride, padding, ceil, padded, divisor = _arguments(node, *defaults)
    taps, pad = _pair(kernel), _pair(padding)
    if ceil or (not padded and pad != (0, 0)):
        raise Declined("an average whose windows at the edge count fewer elements")
    window = _window(taps, _pair(stride, kernel), pad)
    return _mean(node, x, result, window, divisor or taps[0] * taps[1], bounds)


def adaptive(node: Node, x: Steps, result: Steps, bounds: dict[str, int]) -> Layer:
    """Return an adaptive average pooling, where all windows are of one size."""
    rows, columns = _pair(node.args[1])
    _, height, width = plane(x.shape)
    if height % rows or width % columns:
        raise Declined(f"an adaptive average from {height}x{width} to {rows}x{columns}")
    taps = (height // rows, width // columns)
    return _mean(node, x, result, _window(taps, taps, (0, 0)), taps[0] * taps[1], bounds)


def mean(node: Node, x: Steps, result: Steps, bounds: dict[str, int]) -> Layer:
    """Return a mean over rows and columns."""
    dims, *_ = _arguments(node, None, False)
    over = {dim % (len(x.shape) + 1) for dim in dims or ()}
    if over != set(range(2, len(x.shape) + 1)):
        raise Declined(f"{name_of(node)} over dimensions {dims}; the kernel has rows and columns")
    taps = plane(x.shape)[1:]
    return _mean(node, x, result, _window(taps, taps, (0, 0)), taps[0] * taps[1], bounds)
