"""The convolution family: direct convolutions in int8 and float32, and depthwise ones."""

from __future__ import annotations

from typing import Any

from pynq_torch.hls.instance import Instance
from pynq_torch.models.tiling import DEPTHWISE_PATCH, DEPTHWISE_PIXELS, PATCH, PIXELS, TAPS

__all__ = ["BIAS", "INSTANCES", "JOB", "LANES", "OUTS", "PATCH", "PIXELS", "RELU", "TAPS"]

#: Bits of ``mode``, those of gemm's epilogue.
BIAS, RELU = 4, 8
#: Output channels on chip.
OUTS = {"float": 32, "int8": 64}
#: Products a cycle.
LANES = {"float": 8, "int8": 32}

#: The same for the depthwise kernels.
DEPTHWISE_LANES = 4
#: Multipliers of addresses, by the body. ``place()`` has one for five products, in each of three
#: processes (image, weight, result); what else tiles and rows begin with has one a function: image,
#: weight, result and the outer loops; pixels and taps of conv2d, or the sums of a depthwise tile.
MULTIPLIERS = {"conv2d": 3 + 4 + 2, "depthwise": 3 + 4 + 1}

Parameters = tuple[tuple[str, int, str], ...]
_SIZES = (
    *("groups", "batch", "channels", "outs", "height", "width"),
    *("rows", "columns", "k_rows", "k_columns"),
    *("stride_y", "stride_x", "pad_y", "pad_x", "step_y", "step_x", "gap_y", "gap_x"),
)
_STEPS = tuple(
    f"{operand}_{step}"
    for operand, steps in (
        ("image", ("group", "batch", "channel", "row", "column")),
        ("weight", ("group", "out", "channel", "row", "column")),
        ("result", ("group", "batch", "out", "row", "column")),
    )
    for step in steps
)
_TILES = ("tile_rows", "tile_columns", "tile_k_rows", "tile_k_columns")
#: The words behind the pointer ``job``, in order: ``conv2d::Job`` in ``conv2d_job.hpp``.
JOB = (*_SIZES, *_STEPS, *_TILES, "mode")

_FLOAT = (
    ("const float*", "image", 0),
    ("const float*", "weight", 1),
    ("const float*", "bias", 1),
    ("float*", "result", 2),
    ("const int32_t*", "job", 1),
)
_INT8 = (
    ("const int8_t*", "image", 0),
    ("const int8_t*", "weight", 1),
    ("const int32_t*", "bias", 2),
    ("const float*", "scale", 2),
    ("int32_t*", "result", 2),
    ("int8_t*", "steps", 3),
    ("const int32_t*", "job", 2),
)


def _instance(name: str, body: str, kind: str, parameters: Parameters, **text: str) -> Instance:
    values: dict[str, Any] = {parameter.lower(): value for parameter, value, _ in parameters}
    pointers = _FLOAT if kind == "float" else _INT8
    values.update(
        body=body, kind=kind, parameters=parameters, pointers=pointers, settings=JOB,
        multipliers=MULTIPLIERS[body],
    )  # fmt: skip
    return Instance(name, "conv2d", {**values, **text})


def _lanes(kind: str, count: int) -> tuple[str, int, str]:
    cost = "3 for a product, 2 for a sum" if kind == "float" else "one for a product"
    return "LANES", count, f"{count * (5 if kind == 'float' else 1)} of the 220 DSPs: {cost}"


def _conv2d(name: str, kind: str, **text: str) -> Instance:
    parameters = (
        _lanes(kind, LANES[kind]),
        ("PIXELS", PIXELS, "sums of as many pixels ..."),
        ("OUTS", OUTS[kind], "... and channels stay on chip while the image's channels pass by"),
        ("PATCH", PATCH, "cells of a channel: 64 x 64, or 7 rows of 585"),
        ("TAPS", TAPS, "an 11 x 11 weight; larger ones pass by in parts"),
    )
    return _instance(name, "conv2d", kind, parameters, **text)


def _depthwise(name: str, kind: str, **text: str) -> Instance:
    parameters = (
        _lanes(kind, DEPTHWISE_LANES),
        ("PIXELS", DEPTHWISE_PIXELS, "sums on chip"),
        ("OUTS", 1, "one channel at a time"),
        ("ROWS", DEPTHWISE_PATCH[0], "of a channel on chip, LANES banks of them"),
        ("WIDTH", DEPTHWISE_PATCH[1], "cells in such a row"),
        ("TAPS", TAPS, "an 11 x 11 weight"),
    )
    return _instance(name, "depthwise", kind, parameters, **text)


INSTANCES: tuple[Instance, ...] = (
    _conv2d(
        "conv2d_f32",
        "float",
        title="direct convolution in float32, forward and for both gradients",
        summary="Convolves float32 images with stride, padding, dilation of the kernel and of the "
        "image, groups, and any steps in memory: forward, and both gradients.",
    ),
    _conv2d(
        "conv2d_i8",
        "int8",
        title="direct convolution in int8, with bias, ReLU and requantisation on the way out",
        summary="Convolves int8 images directly; adds a bias, applies ReLU and scales to int8 or "
        "float32 on the way out, if asked to.",
    ),
    _depthwise(
        "depthwise_f32",
        "float",
        title="convolution in float32 where each channel is a group of its own",
        summary="Convolves each channel of float32 images with weights of its own.",
    ),
    _depthwise(
        "depthwise_i8",
        "int8",
        title="convolution in int8 where each channel is a group of its own",
        summary="Convolves each channel of int8 images with weights of its own; adds a bias, "
        "applies ReLU and scales to int8 or float32 on the way out, if asked to.",
    ),
)
