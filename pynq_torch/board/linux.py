"""What pynq asks of Linux on the board: GPIO and UIO files, interrupt numbers, root.

``pynq.gpio``, ``pynq.uio`` and ``pynq.interrupt`` reach the PS through sysfs and ``/dev/uioN``.
Their files and classes stay as they are; while a virtual board is active, the names ``open`` and
``os`` *inside those three modules* are answered here for these paths only and handed on for every
other:

- ``/sys/class/gpio``: the PS GPIO controller, 54 MIO and 64 EMIO pins (UG585, chapter 14);
- ``/proc/interrupts``, ``/sys/class/uio``, ``/dev/uioN``: PL-PS interrupts with a UIO device;
- ``os.geteuid``: programs on the board run as root;
- ``libiic.so``, which ``pynq.lib.iic`` calls, is `iic_library`.

Programs themselves read the files of the XADC in ``/sys/bus/iio``. So ``open`` answers for these
everywhere; nothing else of this machine changes.
"""

from __future__ import annotations

import asyncio
import builtins
import importlib
import io
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from typing import IO, Any, ClassVar

from . import xadc
from .iic_library import IicLibrary
from .sysfs import GpioTree, MemoryFile
from .uio import UioDevice, UioFile

_MODULES = ("pynq.gpio", "pynq.uio", "pynq.interrupt")
_ABSENT = object()
_REAL_OPEN = io.open
#: Where programs find ``open``; IPython gives notebooks one of its own.
_OPENERS = (("builtins", "open"), ("io", "open"), ("IPython.core.interactiveshell", "io_open"))
#: The name in the device tree that pynq's driver of the codec asks for.
_CODEC = "audio-codec-ctrl"

#: First of the sixteen shared peripheral interrupts of IRQ_F2P (UG585 table 7-3: IDs 61-68, 84-91).
FIRST_PL_IRQ = 61


class Linux:
    """The operating system's side of a virtual PYNQ-Z2.

    The device tree binds the GIC numbers `uio_lines` to UIO devices called ``fabric``. That of the
    PYNQ-Z2 image binds the first PL interrupt only; an ``axi_intc`` multiplexes the others onto it.
    """

    _installed: ClassVar[list[Linux]] = []
    _saved: ClassVar[list[tuple[Any, dict[str, object]]]] = []

    def __init__(self, uio_lines: Iterable[int] = (FIRST_PL_IRQ,)) -> None:
        self.gpio = GpioTree()  #: the pins, for the PL side
        self._lock = threading.Lock()
        self._uio = {line: UioDevice("fabric") for line in uio_lines}
        #: Those with an interrupt, then the audio codec's, which has registers only.
        self._uio_devices = [*(self._uio[line] for line in sorted(self._uio)), UioDevice(_CODEC)]
        self._levels: dict[int, bool] = {}

    def install(self) -> None:
        """Answer pynq's questions to Linux from now on (again after :meth:`uninstall`)."""
        if self in Linux._installed:
            return
        if not Linux._installed:
            _hook()
        Linux._installed.append(self)

    def uninstall(self) -> None:
        """Give the three pynq modules their own names back, once no board needs them."""
        if self not in Linux._installed:
            return
        Linux._installed.remove(self)
        _drop_controllers(self)
        if not Linux._installed:
            _unhook()

    def set_irq(self, line: int, level: bool) -> None:
        """Drive PL-PS interrupt ``line`` (GIC number, 61 for ``IRQ_F2P[0]``) from any thread."""
        with self._lock:
            self._levels[line] = level
            device = self._uio.get(line)
        if device is not None:
            device.set_level(level)

    def irq_level(self, line: int) -> bool:
        """Return the level last driven on interrupt ``line``."""
        with self._lock:
            return self._levels.get(line, False)

    def interrupts_text(self) -> str:
        """Return ``/proc/interrupts`` of the board, as far as the PL is concerned."""
        rows = "".join(
            f"{number:3d}: {device.count:10d} {0:10d}     GIC-0 {line:3d} Level     {device.name}\n"
            for number, (line, device) in enumerate(sorted(self._uio.items()), start=48)
        )
        return f"           CPU0       CPU1\n{rows}"

    def uio_device(self, path: str) -> UioDevice | None:
        """Return the UIO device behind ``/dev/uioN``, or None where there is none."""
        name = path.removeprefix("/dev/uio")
        devices = self._uio_devices
        return devices[int(name)] if name.isdigit() and int(name) < len(devices) else None

    def open(self, path: str, mode: str) -> IO[str] | UioFile | None:
        """Open a path that this board answers; None for every other path."""
        if path == "/proc/interrupts":
            return MemoryFile(self.interrupts_text())
        if path.startswith("/dev/uio"):
            device = self.uio_device(path)
            if device is None:
                raise FileNotFoundError(
                    2, f"no such UIO device; the board has {len(self._uio_devices)}", path
                )
            return UioFile(device)
        parts = path.rstrip("/").split("/")
        if path.startswith("/sys/class/uio/") and len(parts) == 6 and parts[5] == "name":
            device = self.uio_device("/dev/" + parts[4])
            if device is None:
                raise FileNotFoundError(2, "no such UIO device", path)
            return MemoryFile(device.name + "\n")
        if path.startswith("/sys/class/gpio/"):
            return self.gpio.open(path, mode)
        return None

    def listdir(self, path: str) -> list[str] | None:
        """List a folder that this board answers; None for every other folder."""
        path = path.rstrip("/")
        if path == "/sys/class/uio":
            return [f"uio{i}" for i in range(len(self._uio_devices))]
        return self.gpio.listdir(path)

    def exists(self, path: str) -> bool | None:
        """Tell whether a path exists, None where this board does not answer."""
        path = path.rstrip("/")
        if path.startswith("/dev/uio"):
            return self.uio_device(path) is not None
        return self.gpio.exists(path)


def _active() -> Linux:
    return Linux._installed[-1]


def _open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    """Stand in for ``open`` inside the hooked modules."""
    if isinstance(file, str):
        answer = _active().open(file, mode)
        if answer is not None:
            return answer
    return builtins.open(file, mode, *args, **kwargs)


class _Path:
    """``os.path`` with the board's sysfs in it."""

    def exists(self, path: Any) -> bool:
        """Tell whether a path exists on the board, then on this machine."""
        answer = _active().exists(path) if isinstance(path, str) else None
        return os.path.exists(path) if answer is None else answer

    def __getattr__(self, name: str) -> Any:
        return getattr(os.path, name)


class _Os:
    """The ``os`` module with the board's sysfs in it, and its root user."""

    def __init__(self) -> None:
        self.path = _Path()

    def geteuid(self) -> int:
        """Programs on the board run as root."""
        return 0

    def listdir(self, path: Any = ".") -> list[str]:
        """List a folder of the board, or of this machine."""
        answer = _active().listdir(path) if isinstance(path, str) else None
        return os.listdir(path) if answer is None else answer

    def walk(
        self, top: Any, *args: Any, **kwargs: Any
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """Walk a folder of the board (one level, as sysfs links end there), or of this machine."""
        names = _active().listdir(top) if isinstance(top, str) else None
        if names is None:
            yield from os.walk(top, *args, **kwargs)
            return
        folders = [n for n in names if _active().listdir(f"{top}/{n}") is not None]
        yield top, folders, [n for n in names if n not in folders]

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def _open_anywhere(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Stand in for ``open`` in programs: the board has an XADC."""
    if isinstance(file, (str, os.PathLike)) and str(file).startswith(xadc.FOLDER):
        mode = args[0] if args else kwargs.get("mode", "r")
        text = xadc.open_file(str(file), mode)
        return io.BytesIO(text.read().encode()) if "b" in mode else text
    return _REAL_OPEN(file, *args, **kwargs)


def _hook_iic() -> None:
    """Give pynq's driver of the AXI IIC the functions of the library in the board's image."""
    module = sys.modules.get("pynq.lib.iic")
    if module is not None and module.AxiIIC._lib is None:
        _replace(module.AxiIIC, {"_lib": IicLibrary(), "_ffi": module.cffi.FFI()})


def _hook() -> None:
    _hook_iic()
    for module, name in _OPENERS:
        if module in sys.modules:
            _replace(sys.modules[module], {name: _open_anywhere})
    replacements: dict[str, object] = {"open": _open, "os": _Os()}
    for name in _MODULES:
        _replace(importlib.import_module(name), replacements)
    # pynq defines this when it runs on a Zynq; on a PC the class lacks it. EMIO starts at 54.
    gpio_class = importlib.import_module("pynq.gpio").GPIO
    if not hasattr(gpio_class, "_GPIO_MIN_USER_PIN"):
        _replace(gpio_class, {"_GPIO_MIN_USER_PIN": 54})


def _replace(owner: Any, replacements: dict[str, object]) -> None:
    """Set names of a module or class, and remember what they were."""
    Linux._saved.append((owner, {key: vars(owner).get(key, _ABSENT) for key in replacements}))
    for key, value in replacements.items():
        setattr(owner, key, value)


def _unhook() -> None:
    while Linux._saved:
        owner, names = Linux._saved.pop()
        for key, value in names.items():
            if value is _ABSENT:
                delattr(owner, key)
            else:
                setattr(owner, key, value)


def _drop_controllers(linux: Linux) -> None:
    """Let go of pynq's cached controllers over this board's UIO files; they close the files."""
    interrupt = importlib.import_module("pynq.interrupt")
    cache = interrupt._InterruptController._uio_devices
    ours = set(linux._uio.values())
    found = [
        raw_irq
        for raw_irq, controller in cache.items()
        if isinstance(controller.uio, UioFile) and controller.uio.device in ours
    ]
    if not found:
        return
    interrupt._InterruptController._controllers.clear()
    interrupt._InterruptController._last_timestamp = None
    loop = _event_loop()
    # pynq's controller asks for an event loop when it goes, and complains if there is none.
    stand_in = asyncio.new_event_loop() if loop is None else None
    if stand_in is not None:
        asyncio.set_event_loop(stand_in)
    try:
        for raw_irq in found:
            # Waiting controllers, the loop and the UIO controller hold each other.
            cache[raw_irq].wait_events = []
            if loop is not None:
                loop.remove_reader(cache[raw_irq].uio)
            del cache[raw_irq]
    finally:
        if stand_in is not None:
            asyncio.set_event_loop(None)
            stand_in.close()


def _event_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that pynq's controller would find, if there is one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        pass  # no loop runs: the thread's own is next
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return asyncio.get_event_loop_policy().get_event_loop()
    except RuntimeError:
        return None
