"""The sysfs folder of the PS GPIO controller, held in memory."""

from __future__ import annotations

import errno
import functools
import io
import re
import threading
from collections.abc import Callable

#: Linux numbers GPIO controllers downwards from 1024; the Zynq's has 118 pins (UG585, 14.1.2).
GPIO_PINS = 118
GPIO_BASE = 1024 - GPIO_PINS
FIRST_EMIO = 54
_FOLDER = "/sys/class/gpio"
_CHIP = f"gpiochip{GPIO_BASE}"
_CHIP_FILES = {
    f"{_CHIP}/label": "zynq_gpio\n",
    f"{_CHIP}/ngpio": f"{GPIO_PINS}\n",
    f"{_CHIP}/base": f"{GPIO_BASE}\n",
}


class MemoryFile(io.StringIO):
    """A text file whose written content goes to ``commit`` when it is closed."""

    def __init__(self, text: str = "", commit: Callable[[str], None] | None = None) -> None:
        super().__init__(text)
        self._commit = commit

    def close(self) -> None:
        """Close the file and hand over what was written."""
        if not self.closed:
            commit, self._commit = self._commit, None
            text = self.getvalue()
            super().close()
            if commit is not None:
                commit(text.strip())


class GpioTree:
    """118 pins (54 MIO, 64 EMIO) and the files ``/sys/class/gpio`` shows of them.

    Pins are counted as the controller counts them: EMIO, the pins that reach the PL, start at 54.
    The files count from 906, the number Linux gives the first pin.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._directions: dict[int, str] = {}  # exported pins
        self._outputs = [0] * GPIO_PINS
        self._inputs = [0] * GPIO_PINS
        self._observers: dict[int, list[Callable[[int], None]]] = {}
        #: Called before an EMIO input is read, and after a pin was driven.
        self.before_read: Callable[[], object] = lambda: None
        self.after_drive: Callable[[], object] = lambda: None

    def on_output(self, pin: int, callback: Callable[[int], None]) -> None:
        """Call ``callback(value)`` whenever a program drives ``pin``."""
        self._check(pin)
        self._observers.setdefault(pin, []).append(callback)

    def set_input(self, pin: int, value: int) -> None:
        """Drive ``pin`` from the PL."""
        self._check(pin)
        if value not in (0, 1):
            raise ValueError(f"PS GPIO pin {pin}: a level is 0 or 1, not {value!r}")
        self._inputs[pin] = value

    def output(self, pin: int) -> int | None:
        """Return what a program drives on ``pin``, None while the pin is no output."""
        self._check(pin)
        return self._outputs[pin] if self._directions.get(pin) == "out" else None

    @staticmethod
    def _check(pin: int) -> None:
        if not 0 <= pin < GPIO_PINS:
            raise ValueError(
                f"PS GPIO pin {pin}: the Zynq-7000 has pins 0 to {GPIO_PINS - 1}, "
                f"EMIO from {FIRST_EMIO}"
            )

    def open(self, path: str, mode: str) -> MemoryFile:
        """Open one file below ``/sys/class/gpio``."""
        name = path.removeprefix(_FOLDER).strip("/")
        commands = {"export": self._export, "unexport": self._unexport}
        if name in commands:
            return MemoryFile(commit=commands[name])
        if name in _CHIP_FILES:
            return MemoryFile(_CHIP_FILES[name])
        match = re.fullmatch(r"gpio(\d+)/(direction|value)", name)
        pin = int(match[1]) - GPIO_BASE if match else -1
        if match is None or pin not in self._directions:
            raise FileNotFoundError(
                errno.ENOENT, "no such file in the board's GPIO folder; is the pin exported?", path
            )
        if any(c in mode for c in "wa+"):
            commit = self._set_direction if match[2] == "direction" else self._set_value
            return MemoryFile(commit=functools.partial(commit, pin))
        direction = self._directions[pin]
        if match[2] == "direction":
            return MemoryFile(f"{direction}\n")
        if direction == "in" and pin >= FIRST_EMIO:
            self.before_read()
        levels = self._outputs if direction == "out" else self._inputs
        return MemoryFile(f"{levels[pin]}\n")

    def listdir(self, path: str) -> list[str] | None:
        """List ``/sys/class/gpio`` or a folder in it; None for any other path."""
        if path == _FOLDER:
            exported = (f"gpio{GPIO_BASE + pin}" for pin in sorted(self._directions))
            return ["export", "unexport", _CHIP, *exported]
        name = path.removeprefix(_FOLDER + "/")
        if name == _CHIP:
            return ["base", "label", "ngpio"]
        if (
            name.startswith("gpio")
            and name[4:].isdigit()
            and int(name[4:]) - GPIO_BASE in self._directions
        ):
            return ["direction", "value"]
        return None

    def exists(self, path: str) -> bool | None:
        """Tell whether a path below ``/sys/class/gpio`` exists; None for any other path."""
        if path != _FOLDER and not path.startswith(_FOLDER + "/"):
            return None
        if self.listdir(path) is not None:
            return True
        folder, _, name = path.rpartition("/")
        return name in (self.listdir(folder) or [])

    def _pin(self, text: str) -> int:
        number = int(text) if text.isdigit() else -1
        if not 0 <= number - GPIO_BASE < GPIO_PINS:
            raise OSError(
                errno.EINVAL,
                f"GPIO {text!r} does not exist; the board has {GPIO_BASE} to "
                f"{GPIO_BASE + GPIO_PINS - 1}",
            )
        return number - GPIO_BASE

    def _export(self, text: str) -> None:
        pin = self._pin(text)
        with self._lock:
            if pin in self._directions:
                raise OSError(errno.EBUSY, f"GPIO {text} is exported already")
            self._directions[pin] = "in"

    def _unexport(self, text: str) -> None:
        pin = self._pin(text)
        with self._lock:
            if self._directions.pop(pin, None) is None:
                raise OSError(errno.EINVAL, f"GPIO {text} is not exported")

    def _set_direction(self, pin: int, text: str) -> None:
        if text not in ("in", "out", "low", "high"):
            raise OSError(
                errno.EINVAL,
                f"GPIO {pin + GPIO_BASE}: direction is in, out, low or high, not {text!r}",
            )
        with self._lock:
            self._directions[pin] = "in" if text == "in" else "out"
        if text != "in":
            self._drive(pin, int(text == "high"))

    def _set_value(self, pin: int, text: str) -> None:
        if self._directions.get(pin) != "out":
            raise OSError(errno.EPERM, f"GPIO {pin + GPIO_BASE} is an input and cannot be driven")
        if not text.lstrip("-").isdigit():
            raise OSError(errno.EINVAL, f"GPIO {pin + GPIO_BASE}: a level is 0 or 1, not {text!r}")
        self._drive(pin, int(int(text) != 0))

    def _drive(self, pin: int, value: int) -> None:
        self._outputs[pin] = value
        for callback in list(self._observers.get(pin, ())):
            callback(value)
        self.after_drive()
