"""HLS-accelerated PyTorch on a PYNQ-Z2, and a virtual PYNQ-Z2 to teach and verify it on.

Names are imported when they are first used: ``import pynq_torch`` alone costs almost nothing.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .board import available_boards, current_board, use_board
    from .compiler import compile
    from .kernels import register_driver
    from .nn import quantize_
    from .ops import register_operator
    from .overlay import load
    from .waits import reset, transfer, wait, wait_async

_EXPORTS = {
    "available_boards": "board",
    "current_board": "board",
    "use_board": "board",
    "compile": "compiler",
    "load": "overlay",
    "quantize_": "nn",
    "register_driver": "kernels",
    "register_operator": "ops",
    "reset": "waits",
    "transfer": "waits",
    "wait": "waits",
    "wait_async": "waits",
}
#: Modules with a shorter name than their place.
_MOVED = {"farm": "remote.farm", "timeline": "profiler.timeline"}
_MODULES = (
    *("board", "buffers", "compiler", "errors", "hls", "kernels", "lessons", "models", "net"),
    *(
        "nn",
        "overlay",
        "paths",
        "plot",
        "profiler",
        "report",
        "timing",
        "verify",
        "waits",
        "widgets",
    ),
)

__all__ = [
    "autoload",
    "available_boards",
    "compile",
    "current_board",
    "load",
    "quantize_",
    "register_driver",
    "register_operator",
    "reset",
    "transfer",
    "use_board",
    "wait",
    "wait_async",
]


def autoload() -> None:
    """Register device "pynq"; torch calls this when it is imported."""
    import_module(".torch_device", __name__).enable(_serve)


def _serve() -> None:
    """Connect what the device calls with the rooms above it, when the device is first used."""
    import_module(".ops", __name__).add_offers()
    if os.environ.get("TORCH_PYNQ_DEBUG", "0") not in ("", "0"):
        import_module(".profiler.debug", __name__).enable()


def load_ipython_extension(shell: Any) -> None:
    """Make ``%%hls`` known: IPython calls this at ``%load_ext pynq_torch``."""
    import_module(".widgets.hls_cell", __name__).register(shell)


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MOVED:
        return import_module(f".{_MOVED[name]}", __name__)
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS, *_MODULES})
