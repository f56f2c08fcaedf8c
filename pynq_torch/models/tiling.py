"""How the convolution kernels cut their work into tiles, and what they load for all of them."""

from __future__ import annotations

from functools import lru_cache

__all__ = [
    "DEPTHWISE_PATCH",
    "DEPTHWISE_PIXELS",
    "PATCH",
    "PIXELS",
    "TAPS",
    "Tiling",
    "depthwise_tiling",
    "patch_cells",
    "tiling",
]

#: Pixels of the results on chip, cells of a channel, taps of a weight: what a tile may take.
PIXELS, PATCH, TAPS = 256, 4096, 128
#: The same for the depthwise kernels, whose patch has rows and columns.
DEPTHWISE_PIXELS, DEPTHWISE_PATCH = 1024, (64, 128)

Pair = tuple[int, int]
#: Rows and columns of pixels, rows and columns of taps that are worked on at a time.
Tiling = tuple[int, int, int, int]


@lru_cache(maxsize=1024)
def tiling(result: Pair, kernel: Pair, stride: Pair, step: Pair, patch: int = PATCH) -> Tiling:
    """Return how many pixels and taps are worked on at a time.

    `result` and `kernel` are rows and columns of the result and of the weight, `stride` and `step`
    the cells from pixel to pixel and from tap to tap, `patch` the cells of a channel on chip.
    """
    taps = [0, min(kernel[1], TAPS)]
    taps[0] = min(kernel[0], TAPS // taps[1])
    pixels = [0, min(result[1], PIXELS)]
    pixels[0] = min(result[0], PIXELS // pixels[1])
    while True:
        spans = [_extent(pixels[d], stride[d], taps[d], step[d]) for d in (0, 1)]
        if spans[0] * spans[1] <= patch:
            return pixels[0], pixels[1], taps[0], taps[1]
        d = int(spans[1] > spans[0])
        # What contributes most is halved: pixels or taps.
        more = pixels if pixels[d] * stride[d] >= taps[d] * step[d] else taps
        more = more if more[d] > 1 else pixels if more is taps else taps
        more[d] = (more[d] + 1) // 2


@lru_cache(maxsize=1024)
def depthwise_tiling(result: Pair, kernel: Pair, stride: Pair, step: Pair) -> Tiling | None:
    """Return the same for the depthwise kernels; ``None`` where the weight exceeds their patch."""
    if kernel[0] * kernel[1] > TAPS:
        return None
    fitting = [
        (cells - 1 - (k - 1) * d) // s + 1
        for cells, k, d, s in zip(DEPTHWISE_PATCH, kernel, step, stride, strict=True)
    ]
    if min(fitting) < 1:
        return None
    columns = min(result[1], fitting[1], DEPTHWISE_PIXELS)
    return min(result[0], fitting[0], DEPTHWISE_PIXELS // columns), columns, *kernel


def _extent(pixels: int, stride: int, taps: int, step: int) -> int:
    return (pixels - 1) * stride + (taps - 1) * step + 1


def patch_cells(result: Pair, kernel: Pair, stride: Pair, step: Pair) -> int:
    """Return the cells of a channel that are loaded for all tiles together, overlaps and all."""
    rows, columns, k_rows, k_columns = tiling(result, kernel, stride, step)
    counts = -(-result[0] // rows), -(-result[1] // columns)
    steps = -(-kernel[0] // k_rows), -(-kernel[1] // k_columns)
    spans = (
        _extent(rows, stride[0], k_rows, step[0]),
        _extent(columns, stride[1], k_columns, step[1]),
    )
    return counts[0] * steps[0] * spans[0] * counts[1] * steps[1] * spans[1]
