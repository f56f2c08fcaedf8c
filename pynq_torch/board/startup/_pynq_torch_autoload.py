"""Make ``PYNQ_TORCH_BOARD=csim python program.py`` run on that board.

The program imports ``pynq`` and nothing else. A ``.pth`` file in site-packages calls `install`
when Python starts and the variable is set; this module then waits for the program's own
``import pynq`` and chooses the board at its end, before anything can ask pynq for a device.
Without the variable, this module is imported when the program imports ``pynq``: where pynq finds
no board, a warning says how to choose one. It is alone at the top of site-packages, so that
starting Python does not import the ``pynq_torch`` package.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from importlib.abc import Loader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

VARIABLE = "PYNQ_TORCH_BOARD"
#: pynq asks its kinds of boards in ascending order; this one is asked last.
_LAST = 1 << 30


class _BoardLoader(Loader):
    """The module's own loader, with the board chosen after the module has run."""

    def __init__(self, loader: Loader, finder: _BoardFinder) -> None:
        self._loader = loader
        self._finder = finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Code that inspects the module later must see the loader it would have without us.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._finder.begin(module.__name__)
        try:
            self._loader.exec_module(module)
        except BaseException:
            self._finder.abandon(module.__name__)  # a second import may succeed
            raise
        self._finder.imported(module.__name__)


class _BoardFinder:
    """First on ``sys.meta_path`` until the board is chosen.

    The board is chosen when ``pynq`` is complete. Our own board modules import pynq too: should
    it come in through one of them, the choice waits until that is complete as well.
    """

    def __init__(self) -> None:
        self._searching: set[str] = set()
        self._importing: set[str] = set()
        self._pynq_is_there = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "pynq" and not name.startswith("pynq_torch.board"):
            return None
        if name in self._searching:
            return None  # the search below has come back to this finder
        self._searching.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching.discard(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _BoardLoader(spec.loader, self)
        return spec

    def begin(self, name: str) -> None:
        self._importing.add(name)

    def abandon(self, name: str) -> None:
        self._importing.discard(name)

    def imported(self, name: str) -> None:
        self._importing.discard(name)
        self._pynq_is_there |= name == "pynq"
        if self._importing or not self._pynq_is_there or self not in sys.meta_path:
            return
        sys.meta_path.remove(self)
        board = os.environ.get(VARIABLE)
        if board:
            import pynq_torch

            pynq_torch.use_board(board)
        else:
            _explain_missing_board()


def _explain_missing_board() -> None:
    """Have pynq ask us too, after all real boards: where it found none, say how to choose one."""
    module = sys.modules.get("pynq.pl_server.device")
    if module is None:
        return  # another package of that name
    sys.meta_path.append(_NoBaseOverlay)
    device = module.Device

    def probe(cls: type) -> list[object]:
        if not device._devices:
            _warn("before it asks pynq for a device", stacklevel=5)
        return []

    type(device)(
        "NoBoardChosen", (device,), {"_probe_": classmethod(probe), "_probe_priority_": _LAST}
    )


def _warn(when: str, stacklevel: int) -> None:
    program = sys.argv[0] if sys.argv and sys.argv[0].endswith(".py") else "program.py"
    warnings.warn(
        "No devices found on this PC, and no virtual board is chosen. Start the program with "
        f"{VARIABLE}=csim python {program}, or call pynq_torch.use_board('csim') {when}.",
        stacklevel=stacklevel,
    )


class _NoBaseOverlay:
    """Last on ``sys.meta_path``: the base overlay is on the SD card and on virtual boards only."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pynq.overlays.base" and "pynq_torch.board.device" not in sys.modules:
            _warn("before it imports pynq.overlays.base", stacklevel=3)


def find_pynq() -> ModuleSpec | None:
    """Return where pynq is, with `install` done; for the ``.pth`` file, without the variable."""
    install()
    finder = next(finder for finder in sys.meta_path if isinstance(finder, _BoardFinder))
    return finder.find_spec("pynq")


def install() -> None:
    """Choose the board of ``PYNQ_TORCH_BOARD`` as soon as pynq has been imported."""
    if not any(isinstance(finder, _BoardFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _BoardFinder())
