"""Drivers of pynq whose other end a virtual board lacks: each says so at the call, at once.

pynq's files and classes stay as they are. While a virtual board is in use, three of its modules see
another `cffi` (shared libraries that are built on a board only), or other functions for what starts
a MicroBlaze; ``pynq.lib._video`` is `hdmi_library`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import cffi

from pynq_torch.errors import BoardError, RegistersOnly

__all__ = ["install", "refusal", "uninstall"]

#: Of libaudio.so, what only prepares a codec: constructors of published overlays call these.
_PREPARES = ("config_audio_pll", "config_audio_codec", "select_line_in", "select_mic", "deselect")


def refusal(call: str, part: str, instead: str = "") -> str:
    """Return the sentence for a call that needs a part of the board that has no model."""
    return (
        f"{call}: the virtual board has no model of {part}. {instead}Run this part of the program "
        "on a PYNQ-Z2."
    )


class _Audio:
    """``libaudio.so``, which drives the codec."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        text = refusal(f"libaudio.so, {name}()", "audio")

        def call(*_: object) -> None:
            if name not in _PREPARES:
                raise BoardError(text)
            warnings.warn(f"nothing is played or recorded: {text}", RegistersOnly, stacklevel=3)

        return call


class _Ffi(cffi.FFI):
    """`cffi.FFI` with the shared libraries of a board's image, as far as they can be there."""

    def dlopen(self, name: Any, flags: int = 0) -> Any:
        """Open a library; those of a board that drive its pins are not here."""
        file = Path(name).name if isinstance(name, str) else ""
        if file == "libaudio.so":
            return _Audio()
        return super().dlopen(name, flags)

    def cast(self, cdecl: Any, source: Any) -> Any:
        """Cast a value; only the driver of the PDM codec makes an address of its registers."""
        if cdecl == "unsigned int":
            raise BoardError(refusal("AudioDirect (libaudio.so)", "audio"))
        return super().cast(cdecl, source)


class _Cffi:
    """The module ``cffi``."""

    FFI = _Ffi

    def __getattr__(self, name: str) -> Any:
        return getattr(cffi, name)


def _no_microblaze(what: str) -> NoReturn:
    instead = "LEDs, buttons and switches of the base overlay need none. "
    raise BoardError(refusal(what, "MicroBlaze processors, nor of what is at their pins", instead))


class _Path:
    """``os.path`` of a board on which no program for a MicroBlaze can be started."""

    def isfile(self, path: Any) -> NoReturn:
        """Refuse; `PynqMicroblaze` asks before it does anything."""
        _no_microblaze(f"{os.path.basename(path)}, a MicroBlaze program")

    def __getattr__(self, name: str) -> Any:
        return getattr(os.path, name)


class _Os:
    """The module ``os`` with `_Path`."""

    path = _Path()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def _no_compiler(*arguments: Any, **_: Any) -> NoReturn:
    target = f" for {arguments[0]}" if arguments and isinstance(arguments[0], str) else ""
    _no_microblaze(f"C code{target} in MicroblazeRPC or %%microblaze")


#: Names that are replaced inside modules of pynq.
_REPLACED: dict[str, dict[str, object]] = {
    "pynq.lib.audio": {"cffi": _Cffi()},
    "pynq.lib.pynqmicroblaze.pynqmicroblaze": {"os": _Os()},
    "pynq.lib.pynqmicroblaze.compile": {"_find_bsp": _no_compiler, "run": _no_compiler},
}
_VIDEO = "pynq.lib._video"
_VIDEO_FILE = Path(__file__).with_name("hdmi_library.py")
_saved: dict[str, dict[str, object]] = {}


class _Loader:
    """A module's own loader, after which the module's names are replaced."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def exec_module(self, module: ModuleType) -> None:
        """Execute a module."""
        self._loader.exec_module(module)
        if _FINDER in sys.meta_path:
            _replace(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Finder:
    """Finds the modules of `_REPLACED` where they are, and ``pynq.lib._video`` where it is not."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _REPLACED and name != _VIDEO:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if name == _VIDEO:
            return spec or importlib.util.spec_from_file_location(name, _VIDEO_FILE)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]  # one by its methods
        return spec


_FINDER = _Finder()


def install() -> None:
    """Replace the names, in modules that are imported and in those that will be."""
    if _FINDER in sys.meta_path:
        return
    sys.meta_path.insert(0, _FINDER)
    for name in _REPLACED:
        if name in sys.modules:
            _replace(sys.modules[name])


def uninstall() -> None:
    """Undo `install`."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    for name, names in _saved.items():
        for key, value in names.items():
            setattr(sys.modules[name], key, value)
    _saved.clear()
    if getattr(sys.modules.get(_VIDEO), "__file__", None) == str(_VIDEO_FILE):
        del sys.modules[_VIDEO]


def _replace(module: ModuleType) -> None:
    names = _REPLACED[module.__name__]
    _saved[module.__name__] = {key: vars(module)[key] for key in names}
    vars(module).update(names)
