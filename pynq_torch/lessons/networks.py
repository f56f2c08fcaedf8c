"""Networks that others measure boards with, built in torch from their published shapes, untrained.

The four of MLPerf Tiny (C. Banbury et al., "MLPerf Tiny Benchmark", NeurIPS Datasets and
Benchmarks, 2021) and ResNet-20 (K. He et al., "Deep Residual Learning for Image Recognition", CVPR
2016, section 4.2). Weights are random ones of a seed: good for time, not for accuracy;
``load_state_dict`` takes your own.
"""

from __future__ import annotations

import itertools

import torch
from torch import nn

from .lenet import SIZE, lenet5

__all__ = ["NETWORKS", "SHAPES", "autoencoder", "ds_cnn", "mlp", "mobilenet_v1", "resnet"]


def _conv(
    inputs: int, outputs: int, taps: int | tuple[int, int], stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 1, groups: int = 1, relu: bool = True,
) -> nn.Sequential:  # fmt: skip
    conv = nn.Conv2d(inputs, outputs, taps, stride, padding, groups=groups, bias=False)
    parts: list[nn.Module] = [conv, nn.BatchNorm2d(outputs)]
    return nn.Sequential(*parts, *([nn.ReLU()] if relu else []))


class _Block(nn.Module):
    """Two convolutions and what came in, added; a 1x1 convolution where the size changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv(inputs, outputs, 3, stride)
        self.conv2 = _conv(outputs, outputs, 3, relu=False)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else _conv(inputs, outputs, 1, stride, 0, relu=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv2(self.conv1(x)) + self.shortcut(x))


def resnet(blocks: int, classes: int = 10) -> nn.Sequential:
    """Return a ResNet for images of 32x32: 1 block a stage is ResNet-8, 3 are ResNet-20.

    Parameters
    ----------
    blocks : int
        In each of the three stages of 16, 32 and 64 channels.
    classes : int
        Columns of the result.
    """
    layers: list[nn.Module] = [_conv(3, 16, 3)]
    channels = 16
    for stage, outputs in enumerate((16, 32, 64)):
        for block in range(blocks):
            layers.append(_Block(channels, outputs, 2 if stage and not block else 1))
            channels = outputs
    ends = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))
    return nn.Sequential(*layers, *ends)


def _separable(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    across = _conv(inputs, inputs, 3, stride, groups=inputs)
    return nn.Sequential(across, _conv(inputs, outputs, 1, padding=0))


def ds_cnn(classes: int = 12) -> nn.Sequential:
    """Return the keyword spotter: four separable convolutions over 49 frames of 10 coefficients."""
    first = _conv(1, 64, (10, 4), (2, 2), (4, 1))
    body = [_separable(64, 64) for _ in range(4)]
    return nn.Sequential(
        first, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)
    )


def mobilenet_v1(classes: int = 2) -> nn.Sequential:
    """Return MobileNetV1 with a quarter of the channels, for images of 96x96."""
    plan = [
        (16, 1),
        (32, 2),
        (32, 1),
        (64, 2),
        (64, 1),
        (128, 2),
        *[(128, 1)] * 5,
        (256, 2),
        (256, 1),
    ]
    layers: list[nn.Module] = [_conv(3, 8, 3, 2)]
    channels = 8
    for outputs, stride in plan:
        layers.append(_separable(channels, outputs, stride))
        channels = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, classes))


def _dense(*sizes: int) -> list[nn.Module]:
    return [
        part
        for inputs, outputs in itertools.pairwise(sizes)
        for part in (nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU())
    ]


def autoencoder() -> nn.Sequential:
    """Return the anomaly detector: 640 values to 8 and back."""
    body = _dense(640, *[128] * 4, 8, *[128] * 4)
    return nn.Sequential(*body, nn.Linear(128, 640))


def mlp(classes: int = 10) -> nn.Sequential:
    """Return a perceptron for images of 8x8: 64-64-32 and the classes."""
    hidden = (nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(32, classes))


#: Name -> how it is made.
NETWORKS = {
    "resnet8": lambda: resnet(1),
    "resnet20": lambda: resnet(3),
    "ds_cnn": ds_cnn,
    "mobilenet_v1": mobilenet_v1,
    "autoencoder": autoencoder,
    "lenet5": lenet5,
    "mlp": mlp,
}
#: Name -> the shape of an image.
SHAPES = {
    "resnet8": (3, 32, 32),
    "resnet20": (3, 32, 32),
    "ds_cnn": (1, 49, 10),
    "mobilenet_v1": (3, 96, 96),
    "autoencoder": (640,),
    "lenet5": (1, SIZE, SIZE),
    "mlp": (1, 8, 8),
}
