"""``torch.backends.pynq``: what device "pynq" may do beside exact results.

``torch.backends.pynq.matmul.allow_int8 = True`` lets it multiply floating tensors in int8;
``with torch.backends.pynq.flags(allow_int8=True): ...`` does so for a block of code.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from weakref import WeakSet

__all__ = ["allowed_in_a_thread", "flags", "install", "matmul"]


class _Mark:
    """Held by a thread as long as it has the switch on; gone with the thread."""


_marks: WeakSet[_Mark] = WeakSet()


class _Matmul(threading.local):
    """Switches of matrix products and convolutions, for each thread.

    Attributes
    ----------
    allow_int8 : bool
        Multiply floating tensors in int8 where the loaded overlay can: dynamic, symmetric,
        per tensor for the left operand (activations), per column for the right one (output
        channels). ``pynq_torch.ops.quantise.error_bound`` says how far off that can be.
        Default: ``False``.
    """

    _allow_int8 = False
    _mark: _Mark | None = None

    @property
    def allow_int8(self) -> bool:
        return self._allow_int8

    @allow_int8.setter
    def allow_int8(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"allow_int8 is True or False; found {value!r}")
        self._allow_int8 = value
        self._mark = _Mark() if value else None
        if self._mark is not None:
            _marks.add(self._mark)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("allow_int8", "_allow_int8", "_mark"):
            raise AttributeError(f"torch.backends.pynq.matmul has no switch {name!r}")
        super().__setattr__(name, value)


matmul = _Matmul()


def allowed_in_a_thread() -> bool:
    """Whether any thread of the program has ``matmul.allow_int8`` on."""
    return len(_marks) > 0


@contextmanager
def flags(*, allow_int8: bool) -> Iterator[None]:
    """Set switches for the block: ``with torch.backends.pynq.flags(allow_int8=True): ...``."""
    before = matmul.allow_int8
    matmul.allow_int8 = allow_int8
    try:
        yield
    finally:
        matmul.allow_int8 = before


class _Backend(ModuleType):
    """The module, which takes no switch that it does not have: a slip would go unnoticed."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):  # those are the import system's
            raise AttributeError(
                f"torch.backends.pynq.{name} cannot be set; the switch is "
                "torch.backends.pynq.matmul.allow_int8, or use "
                "with torch.backends.pynq.flags(allow_int8=True)"
            )
        super().__setattr__(name, value)


def install() -> None:
    """Put this under the name ``torch.backends.pynq``."""
    import sys

    import torch

    module = _Backend("torch.backends.pynq", __doc__)
    vars(module).update(matmul=matmul, flags=flags)
    sys.modules["torch.backends.pynq"] = module
    torch.backends.pynq = module  # type: ignore[attr-defined]
