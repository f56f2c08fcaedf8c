"""Figures of networks in one start: latency of an image, and throughput with several in flight."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch

import pynq_torch
from pynq_torch.lessons.networks import NETWORKS, SHAPES

IMAGES = 32


def _seconds(run: Callable[[], object], repeat: int = 5) -> float:
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return median(times)


def results(name: str = "resnet20") -> list[tuple[str, float, str, str]]:
    """Return what was measured, in ms and images a second, and its conditions."""
    pynq_torch.use_board("csim")
    torch.manual_seed(0)
    images = torch.randn(IMAGES, *SHAPES[name])
    compiled = pynq_torch.compile(NETWORKS[name]().eval(), images[:1], calibrate=[images])
    compiled(images[:1])  # loads the overlay and the program
    latency = _seconds(lambda: compiled(images[:1]), 15)
    how = "board csim, the time of this PC, of 5"
    found = [(f"{name}: one image", latency * 1e3, "ms", "board csim, of 15")]
    for batch in (1, 4):
        inputs = list(images.split(batch))
        for depth in (1, 2, 3):
            with compiled.queue(depth) as queue:
                seconds = _seconds(lambda q=queue, i=inputs: list(q.map(i)))
            what = f"{name}: {depth} in flight, batches of {batch}"
            found.append((what, IMAGES / seconds, "images/s", how))
    return found
