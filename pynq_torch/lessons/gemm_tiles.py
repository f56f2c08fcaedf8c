"""The kernel ``gemm`` step by step: which tile of A, B and C is where, and what has been moved.

Sizes of tiles are read from the kernel's own header; the order of the loops is that of
``hw/kernels/gemm/gemm_core.hpp``: tiles of C row by row, for each of them steps along K, whose
buffers are loaded while those of the step before are multiplied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pynq_torch.errors import KernelError
from pynq_torch.paths import KERNELS

__all__ = ["Block", "Shape", "Stage", "read_shape", "stages"]

_BYTES = {"int8_t": 1, "int32_t": 4}
_CORE = ("DEPTH", "WIDTH", "TILE_M", "TILE_N", "TILE_K")


@dataclass(frozen=True)
class Shape:
    """What a variant of gemm is built with.

    Attributes
    ----------
    depth, width : int
        Products added up in a dot product, and dot products a cycle.
    tile_m, tile_n, tile_k : int
        Rows and columns of C that stay on chip, and columns of A in one buffer.
    a_bytes, b_bytes, c_bytes : int
        Of an element; C as the sums leave it, without an epilogue.
    """

    depth: int
    width: int
    tile_m: int
    tile_n: int
    tile_k: int
    a_bytes: int
    b_bytes: int
    c_bytes: int

    @property
    def macs_per_cycle(self) -> int:
        """Products a cycle at best."""
        return self.depth * self.width

    @property
    def on_chip_bytes(self) -> int:
        """Bytes of the buffers: A and B twice, C once."""
        pair = self.tile_m * self.tile_k * self.a_bytes + self.tile_k * self.tile_n * self.b_bytes
        return 2 * pair + self.tile_m * self.tile_n * self.c_bytes


@dataclass(frozen=True)
class Block:
    """Part of a matrix: rows ``row`` to ``row + rows``, columns likewise."""

    row: int
    col: int
    rows: int
    cols: int

    @property
    def size(self) -> int:
        """Number of its elements."""
        return self.rows * self.cols


@dataclass(frozen=True)
class Stage:
    """What happens at the same time.

    Attributes
    ----------
    tile : Block
        Of C, on chip.
    load_a, load_b : Block or None
        On their way from DDR into buffer ``buffer``.
    use_a, use_b : Block or None
        Being multiplied, from the other buffer.
    store : bool
        Whether the tile of C goes to DDR.
    buffer : int
        0 or 1: which pair of buffers is loaded.
    tiles_done : int
        Tiles of C in DDR before this stage.
    read_bytes, written_bytes, macs : int
        Since the start, this stage included.
    """

    tile: Block
    load_a: Block | None = None
    load_b: Block | None = None
    use_a: Block | None = None
    use_b: Block | None = None
    store: bool = False
    buffer: int = 0
    tiles_done: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    macs: int = 0

    @property
    def text(self) -> str:
        """What happens, in words."""
        words = []
        for part, verb, place in (
            (self.load_a, "load", f"into buffers {self.buffer}"),
            (self.use_a, "multiply", f"from buffers {1 - self.buffer}"),
        ):
            if part:
                words.append(f"{verb} k = {part.col} to {part.col + part.cols - 1} {place}")
        if self.store:
            words.append("store the tile of C")
        return ", ".join(words)


def read_shape(kernel: str = "gemm", folder: Path | None = None) -> Shape:
    """Read what a variant of gemm is built with from its header.

    Parameters
    ----------
    kernel : str
        ``"gemm"`` or ``"gemm_lut"``.
    folder : Path, optional
        Folder of the kernels; default: ``hw/kernels``.

    Raises
    ------
    KernelError
        There is no such header, or a parameter is missing in it.
    """
    header = (folder or KERNELS) / kernel / f"{kernel}.hpp"
    if not header.is_file():
        raise KernelError(
            f"{kernel!r} has no header {header}; expected a kernel with a struct Shape"
        )
    text = header.read_text(encoding="utf-8")
    struct = re.search(r"struct Shape\s*\{(.*?)\};", text, re.DOTALL)
    values = dict(re.findall(r"\b([A-Z_]+) = (\d+)", struct.group(1) if struct else ""))
    types = {name: ctype for ctype, name in re.findall(r"<(\w+)>\s+([abc])\b", text)}
    missing = [name for name in _CORE if name not in values]
    missing += [f"type of {name}" for name in "abc" if types.get(name) not in _BYTES]
    if missing:
        raise KernelError(f"{header.name} does not say {', '.join(missing)}; see gemm.hpp")
    core = [int(values[name]) for name in _CORE]
    return Shape(*core, *(_BYTES[types[name]] for name in "abc"))


def stages(shape: Shape, m: int, n: int, k: int) -> Iterator[Stage]:
    """Yield the stages of ``c = a @ b``, a [m, k], b [k, n].

    Parameters
    ----------
    shape : Shape
        From `read_shape`.
    m, n, k : int
        At least 1.
    """
    if min(m, n, k) < 1:
        raise ValueError(f"m, n, k are {m}, {n}, {k}; expected at least 1")
    read = written = macs = done = 0
    steps = -(-k // shape.tile_k)
    for row in range(0, m, shape.tile_m):
        for col in range(0, n, shape.tile_n):
            tile = Block(row, col, min(m - row, shape.tile_m), min(n - col, shape.tile_n))
            for step in range(steps + 1):
                now = Stage(tile, buffer=step % 2, tiles_done=done)
                if step < steps:
                    a, b = _parts(shape, tile, step, k)
                    read += a.size * shape.a_bytes + b.size * shape.b_bytes
                    now = replace(now, load_a=a, load_b=b)
                if step > 0:
                    a, b = _parts(shape, tile, step - 1, k)
                    macs += a.size * b.cols
                    now = replace(now, use_a=a, use_b=b)
                yield replace(now, read_bytes=read, written_bytes=written, macs=macs)
            written += tile.size * shape.c_bytes
            now = Stage(tile, store=True, tiles_done=done)
            yield replace(now, read_bytes=read, written_bytes=written, macs=macs)
            done += 1


def _parts(shape: Shape, tile: Block, step: int, k: int) -> tuple[Block, Block]:
    """Return the parts of A and B of a step."""
    first = step * shape.tile_k
    depth = min(k - first, shape.tile_k)
    return Block(tile.row, first, tile.rows, depth), Block(first, tile.col, depth, tile.cols)
