"""Make ``PYNQ_TORCH_BOARD=csim python program.py`` run on that board.

The program imports ``pynq`` and nothing else. A ``.pth`` file in site-packages calls `install`
when Python starts and the variable is set; this module then waits for the program's own
``import pynq`` and chooses the board at its end, before anything can ask pynq for a device.
Without the variable none of this is imported. It stands alone at the top of site-packages, so
that starting Python does not import the ``pynq_torch`` package.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.abc import Loader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

VARIABLE = "PYNQ_TORCH_BOARD"


class _BoardLoader(Loader):
    """The module's own loader, with the board chosen after the module has run."""

    def __init__(self, loader: Loader, finder: _BoardFinder) -> None:
        self._loader = loader
        self._finder = finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Whoever inspects the module later must see the loader it would have without us.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        try:
            self._loader.exec_module(module)
        except BaseException:
            self._finder.watch(module.__name__)  # a second import may succeed
            raise
        self._finder.imported(module.__name__)


class _BoardFinder:
    """First on ``sys.meta_path`` until the board is chosen.

    It watches two names. The board is chosen when ``pynq`` is complete and ``pynq_torch.board``,
    should somebody be importing it at that moment, is complete too: it imports pynq itself.
    """

    def __init__(self) -> None:
        self._watched = {"pynq", "pynq_torch.board"}
        self._importing: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._watched:
            return None
        self._watched.discard(name)  # so that the search below does not find this finder again
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            self._watched.add(name)  # not installed; a later sys.path may have it
            return None
        self._importing.add(name)
        spec.loader = _BoardLoader(spec.loader, self)
        return spec

    def watch(self, name: str) -> None:
        self._importing.discard(name)
        self._watched.add(name)

    def imported(self, name: str) -> None:
        self._importing.discard(name)
        if self._importing or "pynq" in self._watched or self not in sys.meta_path:
            return
        sys.meta_path.remove(self)
        board = os.environ.get(VARIABLE)
        if board:
            import pynq_torch

            pynq_torch.use_board(board)


def install() -> None:
    """Choose the board of ``PYNQ_TORCH_BOARD`` as soon as pynq has been imported."""
    if not any(isinstance(finder, _BoardFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _BoardFinder())
