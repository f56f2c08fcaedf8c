"""A row of the table of `verify.layers`: a tensor against its reference."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import torch

from pynq_torch.tables import size_text

from .layer_trace import Seen

__all__ = ["Row", "compared", "missing"]


@dataclass(frozen=True)
class Row:
    """A tensor that a layer returned, or a gradient: on device "pynq" against the reference.

    Attributes
    ----------
    name : str
        The layer's name in the model; ``"(model)"`` for the model itself.
    call : int
        Which of its calls, from 1.
    kind : str
        The layer's class.
    stage : {"forward", "grad input", "grad"}
        What is compared: what the layer returned, the gradient at its input, or of a parameter.
    part : str
        Which of several: an index in what the layer returned, or the parameter's name.
    shape : tuple of int
        On device "pynq".
    dtype : str
        On device "pynq"; ``"int8 x 0.0123"`` for int8 in such steps. The type of what is no tensor.
    where : str
        ``"PL"``, ``"CPU"`` or ``"PL + CPU"``: where the layer's operators ran on device "pynq".
    max_abs : float
        Largest absolute error.
    relative : float
        The same over the largest magnitude of the reference.
    snr_db : float
        Signal to noise in dB: infinite where all is equal.
    size, wrong : int
        Values, and how many of them are mismatches.
    index : tuple of int or None
        The first of these, row-major.
    found, expected : Any
        The values there.
    note : str
        What is wrong beside values: a shape, a dtype, no counterpart.
    """

    name: str
    call: int
    kind: str
    stage: str
    part: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    where: str = ""
    max_abs: float = 0.0
    relative: float = 0.0
    snr_db: float = math.inf
    size: int = 0
    wrong: int = 0
    index: tuple[int, ...] | None = None
    found: Any = None
    expected: Any = None
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether it is no mismatch."""
        return not self.wrong and not self.note

    @property
    def exact(self) -> bool:
        """Whether every value is equal."""
        return self.ok and not self.max_abs

    @property
    def label(self) -> str:
        """The layer and what of it, e.g. ``"conv1"``, ``"rnn (call 2) [1]"``, ``"fc.weight"``."""
        call = f" (call {self.call})" if self.call > 1 else ""
        if self.stage == "grad":
            return f"{self.name}.{self.part}" if self.name != "(model)" else self.part
        return f"{self.name}{call}{' ' if self.part else ''}{self.part}"

    @property
    def sentence(self) -> str:
        """What is wrong with it, as an error says it."""
        stage = "" if self.stage == "forward" else f", {self.stage}"
        start = f"{self.label} ({self.kind}{stage})"
        if self.note:
            return f"{start}: {self.note}"
        return (
            f"{start}: {self.wrong} of {self.size} values are wrong; the first is at index "
            f"{list(self.index or ())}: found {self.found}, expected {self.expected}. "
            f"{self.dtype}[{size_text(self.shape)}], max error {self.max_abs:.3g}, relative "
            f"{self.relative:.3g}"
        )


def missing(seen: Seen, note: str) -> Row:
    """Return the row of a value that one run has and the other has not."""
    return Row(seen.name or "(model)", seen.call, seen.kind, seen.stage, seen.part, note=note)


def compared(found: Seen, expected: Seen, tolerance: float, *, relu: bool = False) -> Row:
    """Compare a value from device "pynq" with its reference from the CPU.

    `tolerance` is that of `pynq_torch.verify.layers`; with `relu`, `expected` goes through one.
    """
    head = missing(found, "")
    left, right = found.value, expected.value
    if not (isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor)):
        return _plain(head, left, right, found.where)
    dtype = str(left.dtype).removeprefix("torch.")
    in_steps = found.step != expected.step
    if in_steps:
        dtype = dtype if found.step is None else f"{dtype} x {found.step:.4g}"
        left = left if found.step is None else left.float() * found.step
        right = right if expected.step is None else right.float() * expected.step
    right = right.relu() if relu else right
    about: dict[str, Any] = {"shape": tuple(left.shape), "dtype": dtype, "where": found.where}
    if left.shape != right.shape:
        note = f"shape is {tuple(left.shape)}; expected {tuple(right.shape)}"
        return dataclasses.replace(head, **about, note=note)
    note = ""
    if not tolerance and left.dtype is not right.dtype:
        note = f"dtype is {left.dtype}; expected {right.dtype}".replace("torch.", "")
    return dataclasses.replace(head, **about, **_errors(left, right, tolerance), note=note)


def _plain(head: Row, left: Any, right: Any, where: str) -> Row:
    dtype = type(left).__name__
    if type(left) is not type(right):
        note = f"found {dtype}, expected {type(right).__name__}"
        return dataclasses.replace(head, dtype=dtype, where=where, note=note)
    simple = isinstance(left, (bool, int, float, complex, str, type(None)))
    same = not simple or left == right or (left != left and right != right)
    note = "" if same else f"found {left!r}, expected {right!r}"
    return dataclasses.replace(
        head, dtype=dtype, where=where, size=1, wrong=int(not same), note=note
    )


def _errors(left: torch.Tensor, right: torch.Tensor, tolerance: float) -> dict[str, Any]:
    if not left.numel():
        return {}
    wide = torch.complex128 if left.is_complex() or right.is_complex() else torch.float64
    a, b = left.to(wide), right.to(wide)
    same = (left == right) | ((a != a) & (b != b))
    # What is infinite or NaN on one side only is infinitely wrong.
    error = torch.where(same, 0.0, (a - b).abs().nan_to_num(math.inf, math.inf))
    magnitude = torch.where(b.abs().isfinite(), b.abs(), 0.0)
    largest, max_abs = float(magnitude.max()), float(error.max())
    wrong = ~same if not tolerance else error > tolerance * largest
    signal, noise = float(magnitude.square().sum()), float(error.square().sum())
    ratio = signal / noise if signal and noise and math.isfinite(noise) else 0.0
    found: dict[str, Any] = {
        "max_abs": max_abs,
        "relative": max_abs / largest if largest else math.inf if max_abs else 0.0,
        "snr_db": 10 * math.log10(ratio) if ratio else -math.inf if noise else math.inf,
        "size": left.numel(),
        "wrong": int(wrong.sum()),
    }
    if found["wrong"]:
        first = int(wrong.flatten().to(torch.int8).argmax())
        index = tuple(int(i) for i in torch.unravel_index(torch.tensor(first), wrong.shape))
        found |= {"index": index, "found": left[index].item(), "expected": right[index].item()}
    return found
