"""The gemm tiler: a product step by step, with what is in DDR and what on chip."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pynq_torch.lessons.gemm_tiles import Block, Shape, Stage, read_shape, stages
from pynq_torch.plot.charts import COLOURS, patch
from pynq_torch.views import interactive

from .panel import Panel, Picture, figure, ipywidgets

__all__ = ["gemm_tiler"]

#: The variants that can be looked at.
KERNELS = ("gemm", "gemm_lut")
#: Largest sizes, in tiles of gemm: enough to see every case, few enough stages to step through.
MOST_TILES = 3
PLAY_INTERVAL_MS = 800
_LOAD, _USE, _STORE, _DONE = (COLOURS[c] for c in ("orange", "blue", "vermillion", "green"))
_EMPTY = "#f2f2f2"


def gemm_tiler(
    m: int = 600, n: int = 400, k: int = 100, kernel: str = "gemm", *, live: bool | None = None
) -> Any:
    """Show step by step how ``gemm`` multiplies: the tiles, where they are, what was moved.

    Parameters
    ----------
    m, n, k : int
        Sizes to begin with: a is [m, k], b [k, n]; at least 1.
    kernel : {"gemm", "gemm_lut"}
        The variant to begin with; tile sizes are read from its source.
    live : bool, optional
        Show controls. Default: where somebody can use them; otherwise the middle step is shown.

    Returns
    -------
    Picture or Panel
        The picture without controls, or the panel: end the cell with it.

    Raises
    ------
    ValueError
        A size or the kernel is out of range.
    """
    if kernel not in KERNELS:
        raise ValueError(f"kernel is {kernel!r}; expected one of {', '.join(KERNELS)}")
    shape = _shape("gemm")
    tiles = {"m": shape.tile_m, "n": shape.tile_n, "k": 4 * shape.tile_k}
    limits = {name: MOST_TILES * size for name, size in tiles.items()}
    for name, size in {"m": m, "n": n, "k": k}.items():
        if not 1 <= size <= limits[name]:
            raise ValueError(f"{name} is {size}; expected 1 to {limits[name]}")
    if not (interactive() if live is None else live):
        return _draw(len(_stages(kernel, m, n, k)) // 2, m, n, k, kernel)
    return _panel(m, n, k, kernel, limits)


def _panel(m: int, n: int, k: int, kernel: str, limits: dict[str, int]) -> Panel:
    widgets = ipywidgets()
    last = len(_stages(kernel, m, n, k)) - 1
    step = widgets.IntSlider(value=0, min=0, max=last, description="step")
    play = widgets.Play(value=0, min=0, max=last, interval=PLAY_INTERVAL_MS)
    # In the browser, so that the player does not wait for the kernel to answer.
    widgets.jslink((play, "value"), (step, "value"))
    sizes = {
        name: widgets.IntSlider(
            value=value, min=1, max=limits[name], description=name, continuous_update=False
        )
        for name, value in {"m": m, "n": n, "k": k}.items()
    }
    choice = widgets.Dropdown(options=KERNELS, value=kernel, description="kernel")

    def begin_again(_: Any) -> None:
        end = len(_stages(choice.value, *(size.value for size in sizes.values()))) - 1
        panel.change(step={"value": 0, "max": end})
        play.value, play.max = 0, end

    controls = {"step": step, **sizes, "kernel": choice}
    reactions = dict.fromkeys((*sizes, "kernel"), begin_again)
    panel = Panel(_draw, controls, extra=(play,), on_change=reactions)
    return panel


_shape = lru_cache(read_shape)


@lru_cache(maxsize=8)
def _stages(kernel: str, m: int, n: int, k: int) -> tuple[Stage, ...]:
    return tuple(stages(_shape(kernel), m, n, k))


def _draw(step: int, m: int, n: int, k: int, kernel: str) -> Picture:
    shape, everything = _shape(kernel), _stages(kernel, m, n, k)
    now = everything[step]
    drawn = figure(11, 5)
    memory, chip, counts = drawn.subplots(1, 3, width_ratios=[1.3, 1, 0.9])
    _memory(memory, everything, step, (m, n, k))
    _chip(chip, shape, now)
    _counts(counts, now, everything[-1])
    drawn.suptitle(f"{kernel}: step {step + 1} of {len(everything)}: {now.text}", fontsize=14)
    moved = now.read_bytes + now.written_bytes
    return Picture(
        drawn,
        f"{kernel}, {m}x{k} by {k}x{n}, step {step + 1} of {len(everything)}: {now.text}\n"
        f"{now.read_bytes:,} bytes read, {now.written_bytes:,} bytes written, {now.macs:,} MAC; "
        f"{now.macs / moved:.1f} MAC a byte so far, {shape.macs_per_cycle} MAC a cycle at best",
    )


def _rectangle(ax: Any, x: float, y: float, width: float, height: float, colour: str) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor="0.3"))


def _memory(ax: Any, everything: Sequence[Stage], step: int, sizes: tuple[int, int, int]) -> None:
    """Draw A, B and C as they lie in DDR, side by side as in a product on paper."""
    m, n, k = sizes
    now, gap = everything[step], 0.08 * (max(m, n) + k)
    origins = {"A": (0.0, k + gap), "B": (k + gap, 0.0), "C": (k + gap, k + gap)}
    for name, (width, height) in {"A": (k, m), "B": (n, k), "C": (n, m)}.items():
        x, y = origins[name]
        _rectangle(ax, x, y, width, height, _EMPTY)
        look = {"ha": "center", "va": "center", "fontsize": 16, "color": "0.6"}
        ax.text(x + width / 2, y + height / 2, name, look)

    def mark(name: str, block: Block | None, colour: str) -> None:
        if block is not None:
            x, y = origins[name]
            _rectangle(ax, x + block.col, y + block.row, block.cols, block.rows, colour)

    for stage in everything[:step]:
        if stage.store:
            mark("C", stage.tile, _DONE)
    mark("C", now.tile, _STORE if now.store else COLOURS["sky"])
    for name, load, use in (("A", now.load_a, now.use_a), ("B", now.load_b, now.use_b)):
        mark(name, use, _USE)
        mark(name, load, _LOAD)
    ax.set_title(f"DDR: A {m}x{k}, B {k}x{n}, C {m}x{n}", fontsize=12)
    ax.set(xlim=(-gap / 2, k + n + 1.5 * gap), ylim=(k + m + 1.5 * gap, -gap / 2))
    ax.set_aspect("equal")
    ax.axis("off")


def _chip(ax: Any, shape: Shape, now: Stage) -> None:
    """Draw the buffers on chip at one scale, filled as far as the tile goes."""
    tm, tn, tk = shape.tile_m, shape.tile_n, shape.tile_k
    gap = 0.35 * tk
    left, top = 2 * (tk + gap), 2 * (tk + gap)
    for buffer in (0, 1):
        loading = now.load_a is not None and buffer == now.buffer
        using = now.use_a is not None and buffer != now.buffer
        a, b = (now.load_a, now.load_b) if loading else (now.use_a, now.use_b)
        colour = _LOAD if loading else _USE
        for name, part, x, y, width, height in (
            (f"a{buffer}", a, buffer * (tk + gap), top, tk, tm),
            (f"b{buffer}", b, left, buffer * (tk + gap), tn, tk),
        ):
            _rectangle(ax, x, y, width, height, _EMPTY)
            if part is not None and (loading or using):
                _rectangle(ax, x, y, part.cols, part.rows, colour)
            style = {"ha": "center", "va": "center", "fontsize": 11}
            box = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1}
            ax.text(x + width / 2, y + height / 2, name, style, bbox=box)
    _rectangle(ax, left, top, tn, tm, _EMPTY)
    colour = _STORE if now.store else COLOURS["sky"] if now.use_a else _EMPTY
    _rectangle(ax, left, top, now.tile.cols, now.tile.rows, colour)
    ax.text(left + tn / 2, top + tm / 2, "c", ha="center", va="center", fontsize=16)
    kilobytes = shape.on_chip_bytes / 1024
    ax.set_title(f"on chip: {kilobytes:.0f} KB, C {tm}x{tn}, K by {tk}", fontsize=12)
    ax.set(xlim=(-gap, left + tn + gap), ylim=(top + tm + gap, -gap))
    ax.set_aspect("equal")
    ax.axis("off")


def _counts(ax: Any, now: Stage, end: Stage) -> None:
    rows = {
        "MAC": (now.macs, end.macs, _USE),
        "bytes\nread": (now.read_bytes, end.read_bytes, _LOAD),
        "bytes\nwritten": (now.written_bytes, end.written_bytes, _STORE),
    }
    for y, (so_far, total, colour) in enumerate(rows.values()):
        ax.barh(y, 1.0, 0.5, color=_EMPTY, edgecolor="0.3")
        ax.barh(y, so_far / total, 0.5, color=colour)
        ax.text(0.02, y - 0.42, f"{so_far:,} of {total:,}", fontsize=11)
    ax.set_yticks(range(len(rows)), rows)
    ax.set(xticks=[], ylim=(len(rows) - 0.4, -0.7))
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_title("so far", fontsize=12)
    names = {"loaded": _LOAD, "multiplied": _USE, "stored": _STORE, "in DDR": _DONE}
    handles = [patch(*name) for name in names.items()]
    below = {"loc": "lower center", "bbox_to_anchor": (0.45, -0.2)}
    ax.legend(handles=handles, ncols=2, fontsize=10, **below)
