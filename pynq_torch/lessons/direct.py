"""What a convolution asks of the memory and of the PL, direct and lowered, for lessons.

The bytes are counted from the tiles that the drivers plan: what a kernel reads and writes in DDR,
and for the lowering also the columns that the CPU writes. The cycles are those of the kernels'
latency models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pynq_torch.kernels.tables.convolution import OUTS
from pynq_torch.models import pynq_z2
from pynq_torch.models.tiling import depthwise_tiling, patch_cells, tiling
from pynq_torch.ops.conv import Geometry, tiles
from pynq_torch.tables import Table
from pynq_torch.timing import Duration, model

from . import lowering

__all__ = ["KERNELS", "Work", "compare", "durations", "lowered", "of_kernel", "registers"]

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
    rows, columns = sizes.out_size
    return sizes.batch * sizes.out_channels * rows * columns * sizes.depth


def _reads(count: int, tile: int, stride: int, taps: int, part: int, step: int) -> Iterator[Any]:
    """Yield (first cell, cells) of each patch along one dimension."""
    for pixel in range(0, count, tile):
        for tap in range(0, taps, part):
            pixels, window = min(tile, count - pixel), min(part, taps - tap)
            yield pixel * stride + tap * step, (pixels - 1) * stride + (window - 1) * step + 1


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
    if kernel not in KERNELS:
        raise ValueError(f"kernel is {kernel!r}; expected one of {', '.join(KERNELS)}")
    size, bytes_each = sizes.out_size, KERNELS[kernel]
    inner, outs = sizes.channels // sizes.groups, sizes.out_channels // sizes.groups
    each = kernel.startswith("depthwise")
    find = depthwise_tiling if each else tiling
    tile = find(size, sizes.kernel, sizes.stride, sizes.dilation)
    if tile is None or (each and inner > 1):
        raise ValueError(
            f"{kernel} does not do this convolution, with {inner} channels a group and a weight of "
            f"{sizes.kernel}; expected one channel a group and a weight that fits its patch"
        )
    image = (sizes.height, sizes.width)
    read = [
        sum(
            max(0, min(first - pad + cells, extent) - max(0, first - pad))
            for first, cells in _reads(count, tile[d], stride, taps, tile[d + 2], step)
        )
        for d, (count, stride, taps, step, pad, extent) in enumerate(
            zip(
                *(size, sizes.stride, sizes.kernel, sizes.dilation, sizes.padding, image),
                strict=True,
            )
        )
    ]
    passes = 1 if each else -(-outs // OUTS["int8" if bytes_each == 1 else "float"])
    tiles_each = -(-size[0] // tile[0]) * -(-size[1] // tile[1])
    pixels, taps = size[0] * size[1], sizes.kernel[0] * sizes.kernel[1]
    symbols: dict[str, Any] = {"batch": sizes.batch, "pixels": pixels}
    if each:
        spans = [
            sum(cells for _, cells in _reads(size[d], tile[d], sizes.stride[d], sizes.kernel[d],
                                             tile[d + 2], sizes.dilation[d]))
            for d in (0, 1)
        ]  # fmt: skip
        symbols.update(channels=sizes.groups, multiplier=outs, patch=spans[0] * spans[1])
        symbols.update(k_rows=sizes.kernel[0], k_columns=sizes.kernel[1])
    else:
        patch = patch_cells(size, sizes.kernel, sizes.stride, sizes.dilation)
        symbols.update(groups=sizes.groups, channels=inner, outs=outs, taps=taps, patch=patch)
    return Work(
        kernel,
        _mac(sizes),
        bytes_each * sizes.batch * sizes.channels * passes * read[0] * read[1],
        bytes_each * sizes.batch * tiles_each * sizes.out_channels * sizes.depth,
        result_bytes * sizes.batch * sizes.out_channels * pixels,
        round(model(kernel, 1.0, **symbols).seconds),
    )


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
    lowering_asked = kernel == "gemm"
    return (
        lowered(sizes, result_bytes) if lowering_asked else of_kernel(sizes, kernel, result_bytes)
    )


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
            numbers = (
                work.mac,
                work.image_bytes,
                work.weight_bytes,
                work.result_bytes,
                work.cycles,
            )
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
        Of the overlay.
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


def registers(runs: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> Table:
    """Return registers of several runs side by side, as the signed numbers that they are.

    Parameters
    ----------
    runs : mapping of str to mapping
        Heading -> arguments, as `torch.pynq.kernel_logger.entries` has them.
    names : sequence of str
        Which registers.
    """
    rows = [
        [name, *((run[name] + 2**31) % 2**32 - 2**31 for run in runs.values())] for name in names
    ]
    return Table(["register", *runs], rows)
