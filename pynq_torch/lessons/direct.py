"""What a convolution asks of the memory and of the PL, direct and lowered, for lessons.

The bytes are counted from the tiles that the drivers plan: what a kernel reads and writes in DDR,
and for the lowering also the columns that the CPU writes. The cycles are those of the kernels'
latency models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from pynq_torch.kernels.tables.convolution import OUTS
from pynq_torch.models import pynq_z2
from pynq_torch.models.tiling import depthwise_tiling, patch_cells, tiling
from pynq_torch.ops.conv import Geometry, tiles
from pynq_torch.tables import Table
from pynq_torch.timing import Duration, model

from . import lowering

__all__ = ["KERNELS", "Work", "compare", "durations", "lowered", "of_kernel", "words"]

#: The kernels that convolve directly -> bytes of an element that they read.
KERNELS = {"conv2d_i8": 1, "conv2d_f32": 4, "depthwise_i8": 1, "depthwise_f32": 4}
#: Side of the tiles of ``gemm``.
_SIDE = 256


@dataclass(frozen=True)
class Work:
    """A convolution as a way of computing it sees it.

    Attributes
    ----------
    kernel : str
        The kernel that multiplies.
    mac : int
        Multiplications.
    image_bytes : int
        Read of the image; with the lowering once by the CPU, and the columns written and read.
    weight_bytes, result_bytes : int
        Read of the weight, and written as result.
    cycles : int
        By the kernel's latency model.
    """

    kernel: str
    mac: int
    image_bytes: int
    weight_bytes: int
    result_bytes: int
    cycles: int

    @property
    def nbytes(self) -> int:
        """All bytes that cross the memory's pins."""
        return self.image_bytes + self.weight_bytes + self.result_bytes

    @property
    def mac_per_cycle(self) -> float:
        """How well the lanes are used, by the model."""
        return self.mac / self.cycles


def _mac(sizes: Geometry) -> int:
    return sizes.batch * sizes.out_channels * math.prod(sizes.out_size) * sizes.depth


def _reads(sizes: Geometry, tile: Sequence[int], d: int) -> list[tuple[int, int]]:
    """Return (first cell, cells) of each patch along dimension `d` of the padded image."""
    count, stride, step = sizes.out_size[d], sizes.stride[d], sizes.dilation[d]
    taps, part = sizes.kernel[d], tile[d + 2]
    return [
        (
            pixel * stride + tap * step,
            (min(tile[d], count - pixel) - 1) * stride + (min(part, taps - tap) - 1) * step + 1,
        )
        for pixel in range(0, count, tile[d])
        for tap in range(0, taps, part)
    ]


def _tile(sizes: Geometry, kernel: str) -> Sequence[int]:
    """Return the tile of a direct kernel: pixels and taps, each vertical and horizontal."""
    if kernel not in KERNELS:
        raise ValueError(f"kernel is {kernel!r}; expected one of {', '.join(KERNELS)}")
    inner, each = sizes.channels // sizes.groups, kernel.startswith("depthwise")
    find = depthwise_tiling if each else tiling
    tile = find(sizes.out_size, sizes.kernel, sizes.stride, sizes.dilation)
    if tile is None or (each and inner > 1):
        raise ValueError(
            f"{kernel} does not do this convolution, with {inner} channels a group and a weight of "
            f"{sizes.kernel}; expected one channel a group and a weight that fits its patch"
        )
    return tile


def of_kernel(sizes: Geometry, kernel: str = "conv2d_i8", result_bytes: int = 4) -> Work:
    """Return what a direct kernel makes of a convolution.

    Parameters
    ----------
    sizes : Geometry
        See `pynq_torch.lessons.lowering.geometry`.
    kernel : str
        One of `KERNELS`.
    result_bytes : int
        Bytes of an element of the result; 1 where it is brought to int8 on the way out.

    Raises
    ------
    ValueError
        There is no such kernel, or it is a depthwise one and this no such convolution.
    """
    tile = _tile(sizes, kernel)
    size, bytes_each, outs = sizes.out_size, KERNELS[kernel], sizes.out_channels // sizes.groups
    each = kernel.startswith("depthwise")
    patches = [_reads(sizes, tile, d) for d in (0, 1)]
    # Of a patch, the cells in the padding are not read.
    extents = zip(patches, sizes.padding, (sizes.height, sizes.width), strict=True)
    read = [
        sum(max(0, min(at - pad + cells, extent) - max(0, at - pad)) for at, cells in along)
        for along, pad, extent in extents
    ]
    passes = 1 if each else -(-outs // OUTS["int8" if bytes_each == 1 else "float"])
    tiles_each = -(-size[0] // tile[0]) * -(-size[1] // tile[1])
    return Work(
        kernel,
        _mac(sizes),
        bytes_each * sizes.batch * sizes.channels * passes * read[0] * read[1],
        bytes_each * sizes.batch * tiles_each * sizes.out_channels * sizes.depth,
        result_bytes * sizes.batch * sizes.out_channels * math.prod(size),
        round(model(kernel, 1.0, **_symbols(sizes, kernel, patches)).seconds),
    )


def _symbols(
    sizes: Geometry, kernel: str, patches: Sequence[Sequence[tuple[int, int]]]
) -> dict[str, Any]:
    """Return the symbols of a direct kernel's latency model."""
    pixels, outs = math.prod(sizes.out_size), sizes.out_channels // sizes.groups
    symbols = {"batch": sizes.batch, "pixels": pixels}
    if kernel.startswith("depthwise"):
        rows, columns = (sum(cells for _, cells in along) for along in patches)
        symbols |= {"channels": sizes.groups, "multiplier": outs, "patch": rows * columns}
        return symbols | {"k_rows": sizes.kernel[0], "k_columns": sizes.kernel[1]}
    patch = patch_cells(sizes.out_size, sizes.kernel, sizes.stride, sizes.dilation)
    symbols |= {"groups": sizes.groups, "channels": sizes.channels // sizes.groups, "outs": outs}
    return symbols | {"taps": math.prod(sizes.kernel), "patch": patch}


def lowered(sizes: Geometry, result_bytes: int = 4) -> Work:
    """Return the same for the lowering onto ``gemm``, see `pynq_torch.lessons.lowering`."""
    rows, columns = sizes.out_size
    n, k = sizes.out_channels // sizes.groups, sizes.depth
    total = sizes.batch * rows * columns * k * sizes.groups
    parts = [(t.image_end - t.image) * (t.last - t.first) * columns for t in tiles(sizes)]
    image = sizes.batch * sizes.channels * sizes.height * sizes.width
    return Work(
        "gemm",
        _mac(sizes),
        image + total + total * -(-n // _SIDE),
        sizes.groups * sum(-(-m // _SIDE) for m in parts) * k * n,
        result_bytes * sizes.batch * sizes.out_channels * rows * columns,
        lowering.cost(sizes).cycles,
    )


def _way(sizes: Geometry, kernel: str, result_bytes: int) -> Work:
    if kernel == "gemm":
        return lowered(sizes, result_bytes)
    return of_kernel(sizes, kernel, result_bytes)


def compare(layers: Mapping[str, Geometry], kernels: Sequence[str], result_bytes: int = 1) -> Table:
    """Return a table of what kernels make of layers: bytes of DDR, and cycles by the model.

    Parameters
    ----------
    layers : mapping of str to Geometry
        See `pynq_torch.lessons.lowering.geometry`.
    kernels : sequence of str
        Names of `KERNELS`, or ``"gemm"`` for the lowering; depthwise ones are left out where a
        layer has more than one channel a group.
    result_bytes : int
        Bytes of an element of the result.
    """
    rows = []
    for name, sizes in layers.items():
        for kernel in kernels:
            if kernel.startswith("depthwise") and sizes.channels != sizes.groups:
                continue
            work = _way(sizes, kernel, result_bytes)
            numbers = astuple(work)[1:]
            rows.append([name, kernel, *(f"{n:,}" for n in numbers), f"{work.mac_per_cycle:.2f}"])
    heads = ["MAC", "image (bytes)", "weight (bytes)", "result (bytes)", "cycles (model)"]
    return Table(["layer", "kernel", *heads, "MAC a cycle"], rows)


def durations(sizes: Geometry, kernel: str, clock_hz: float, label: str = "") -> Sequence[Duration]:
    """Return how long a convolution takes by the models, for `plot.times`.

    Parameters
    ----------
    sizes : Geometry
        See `pynq_torch.lessons.lowering.geometry`.
    kernel : str
        One of `KERNELS`; ``"gemm"``: the kernel, and the CPU's copying of columns as transfer.
    clock_hz : float
        Clock of the overlay.
    label : str
        Default: the kernel.
    """
    name = label or kernel
    cycles = _way(sizes, kernel, 1).cycles
    compute = Duration(cycles / clock_hz, "model", name, clock_hz=clock_hz, part="compute")
    if kernel != "gemm":
        return [compute]
    copied = lowering.cost(sizes).matrix_bytes * sizes.groups
    seconds = copied / pynq_z2.COPY_CACHED_BYTES_PER_SECOND
    return [compute, Duration(seconds, "model", name, clock_hz=clock_hz, part="transfer")]


def words(runs: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> Table:
    """Return words of the jobs of several runs side by side, as the signed numbers that they are.

    Parameters
    ----------
    runs : mapping of str to mapping
        Heading -> arguments, as `torch.pynq.kernel_logger.entries` has them.
    names : sequence of str
        Words to show.
    """
    rows = [
        [name, *((run[name] + 2**31) % 2**32 - 2**31 for run in runs.values())] for name in names
    ]
    return Table(["word", *runs], rows)
