"""What a board's image installs beside pynq, while a virtual board is in use.

``import pynq.overlays.base`` finds `base_overlay`, and ``Overlay("base.bit")`` the design, unless
the vendor's own are installed. Nothing in pynq is changed: the first is a finder behind all others,
the second the entry point ``pynq.overlays``, by which pynq looks for packages with overlays.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from pynq_torch import paths

from . import unmodelled

__all__ = ["BASE", "install", "uninstall"]

#: The folder of ``base.bit`` and ``base.hwh``, which `overlay build --root hw/board` makes.
BASE = paths.HW / "board" / "bitstreams" / "base"
_MODULE = Path(__file__).with_name("base_overlay.py")


class _Finder:
    """Finds ``pynq.overlays.base``."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "pynq.overlays.base":
            return None
        return importlib.util.spec_from_file_location(name, _MODULE)


_FINDER = _Finder()


def install() -> None:
    """Let programs find the base overlay; behind the vendor's own, where that is installed."""
    unmodelled.install()
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)


def uninstall() -> None:
    """Undo `install`; a board that is no virtual one has its own base overlay or none."""
    unmodelled.uninstall()
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
        module = sys.modules.get("pynq.overlays.base")
        if module is not None and module.__file__ == str(_MODULE):
            del sys.modules["pynq.overlays.base"]


class _Folders:
    """The folder with ``base.bit`` while a virtual board is in use, else one that holds none.

    A program's own comes first; one in the current folder pynq takes before it asks here.
    """

    def __iter__(self) -> Iterator[str]:
        program = Path(getattr(sys.modules.get("__main__"), "__file__", None) or BASE / "none")
        own = program.absolute().parent
        base = own if all((own / f"base.{end}").is_file() for end in ("bit", "hwh")) else BASE
        yield str(base if _FINDER in sys.meta_path else _MODULE.parent)


#: pynq takes the first one, from the module that the entry point names.
__path__: Any = _Folders()
