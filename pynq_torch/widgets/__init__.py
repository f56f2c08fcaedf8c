"""What a lesson shows of the hardware: registers, address map, kernels and tiles to play with.

Every view is HTML and text first, so that the committed notebook, GitHub and a printed page show
it. Where a person runs the cell in a page, controls come with it, made of what ipywidgets 7.7 and
8.1 both have; papermill, nbval and the like get the static view (`pynq_torch.views`).
``PYNQ_TORCH_STATIC=1`` makes every view static, ``PYNQ_TORCH_STATIC=0`` gives it controls in every
Jupyter kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pynq_torch.board import current_board
from pynq_torch.board.diagram import read_diagram
from pynq_torch.board.panel import Panel
from pynq_torch.errors import BoardError
from pynq_torch.plot.block_design import BlockDesign
from pynq_torch.views import interactive

from .address_map import MemoryMap
from .board_view import BoardView
from .gemm import gemm_tiler
from .kernels import kernel_explorer
from .pointwise import function_explorer
from .quantisation import explore_grid
from .register_view import RegisterView
from .sliders import explore

__all__ = [
    "MemoryMap",
    "RegisterView",
    "block_design",
    "board",
    "explore",
    "explore_grid",
    "function_explorer",
    "gemm_tiler",
    "interactive",
    "kernel_explorer",
    "memory_map",
    "register_map",
]


def block_design(overlay: Any) -> BlockDesign:
    """Draw what is in the PL with an overlay, and what connects it.

    Parameters
    ----------
    overlay : pynq.Overlay
        Upstream's or ours; ours has ``draw()`` besides.

    Returns
    -------
    BlockDesign
        Processor, interconnects, kernels, DMAs with ports, addresses and clocks; AXI, streams and
        interrupts between them.
    """
    return BlockDesign(read_diagram(Path(overlay.bitfile_name)))


def board(*, live: bool | None = None) -> Any:
    """Show the PYNQ-Z2 with its LEDs, RGB LEDs, switches and buttons.

    Parameters
    ----------
    live : bool, optional
        LEDs follow the program, and a click moves a switch or a button and raises its interrupt.
        Default: where somebody can use it. A click reaches the board while no cell runs, or while
        one awaits something.

    Returns
    -------
    BoardView or None
        The static view; ``None`` where it was displayed with controls.

    Raises
    ------
    BoardError
        No virtual board is in use, or its overlay has not the base overlay's GPIO.

    Examples
    --------
    >>> base = BaseOverlay("base.bit")  # doctest: +SKIP
    >>> base.leds[0].on(); widgets.board()
    PYNQ-Z2: LEDs 1000, RGB LEDs off, off, switches 00, buttons 0000
    """
    device = current_board()
    if device is None:
        raise BoardError("widgets.board() shows a virtual board; choose one with use_board('csim')")
    return _show(BoardView(Panel(device)), live)


def register_map(ip: Any, *, live: bool | None = None) -> Any:
    """Show the registers of an IP: offsets, names, bits and what they hold now.

    Parameters
    ----------
    ip : object
        An IP of an overlay, upstream's or our driver.
    live : bool, optional
        With controls to read again and to write. Default: where somebody can use them.

    Returns
    -------
    RegisterView or None
        The static view; ``None`` where it was displayed with controls.

    Notes
    -----
    Reading is done once, when the view is made. Reading AP_CTRL clears AP_DONE and AP_READY; a
    register that is write-only is shown as such and not read.
    """
    return _show(RegisterView(ip), live)


def memory_map(overlay: Any, *, live: bool | None = None) -> Any:
    """Show the processor's address map with an overlay: IP, memories, CMA buffers.

    Parameters
    ----------
    overlay : pynq.Overlay
        The overlay.
    live : bool, optional
        With a menu to choose an IP and see its registers. Default: where somebody can use it.

    Returns
    -------
    MemoryMap or None
        The static view; ``None`` where it was displayed with controls.
    """
    return _show(MemoryMap(overlay), live)


def _show(view: Any, live: bool | None) -> Any:
    if not (interactive() if live is None else live):
        return view
    from IPython.display import display

    display(view.controls())
    return None
