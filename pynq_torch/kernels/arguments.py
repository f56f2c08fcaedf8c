"""Checks of the tensors given to a kernel, with a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pynq_torch.errors import ArgumentError

if TYPE_CHECKING:
    import torch

__all__ = ["ArgumentError", "check_elements", "check_tensor"]


def check_tensor(
    cu: str,
    name: str,
    value: Any,
    dtype: torch.dtype,
    *,
    ndim: int | None = None,
    shape: tuple[int, ...] | None = None,
) -> None:
    """Raise `ArgumentError` unless `value` is a CPU tensor of that dtype and shape.

    Parameters
    ----------
    cu, name : str
        For the message: the compute unit and the argument.
    value : object
        What was given.
    dtype : torch.dtype
        The kernel's.
    ndim : int, optional
        Dimensions expected.
    shape : tuple of int, optional
        Shape expected.
    """
    import torch

    what = f"{cu}: {name}"
    if not isinstance(value, torch.Tensor):
        raise ArgumentError(
            f"{what} is {type(value).__name__}; expected a torch.Tensor of {dtype}: "
            "torch.as_tensor(...), or buffers.as_tensor(buffer) for a CMA buffer",
            cu,
        )
    if value.device.type != "cpu":
        raise ArgumentError(
            f"{what} is on device {str(value.device)!r}; expected 'cpu'; pass {name}.cpu()", cu
        )
    if value.dtype != dtype:
        hint = "" if value.is_complex() else f"; convert with {name}.to({dtype})"
        if value.is_floating_point() and not dtype.is_floating_point:
            hint = "; quantise it first (a plain conversion cuts the fraction off)"
        raise ArgumentError(f"{what} has dtype {value.dtype}; expected {dtype}{hint}", cu)
    if ndim is not None and value.ndim != ndim:
        raise ArgumentError(
            f"{what} has shape {tuple(value.shape)}; expected {ndim} dimensions", cu
        )
    if shape is not None and tuple(value.shape) != shape:
        raise ArgumentError(f"{what} has shape {tuple(value.shape)}; expected {shape}", cu)


def check_elements(cu: str, name: str, dtype: np.dtype[Any], element: Any) -> None:
    """Raise `ArgumentError` where memory holds elements of another size than the kernel takes.

    Parameters
    ----------
    cu, name : str
        For the message: the compute unit and the argument.
    dtype : numpy.dtype
        Of the memory. The kind of number is not compared: views of floats as integers are usual.
    element : object
        What the kernel's C++ says: `ctype`, `bits`, and `packs` where several narrower elements may
        lie in one.
    """
    if dtype.kind == "V":
        return  # records: what they hold is the program's affair
    bits = 8 * dtype.itemsize // (2 if dtype.kind == "c" else 1)  # pairs of numbers
    if bits == element.bits or (element.packs and bits < element.bits):
        return
    raise ArgumentError(
        f"{cu}: argument {name} has dtype {dtype}, {bits} bits an element; the kernel's C++ takes "
        f"{element.ctype}, {element.bits} bits. Convert the values (.float(), .int(), .to(dtype)); "
        "memory that holds such elements already is passed as a view of that size "
        "(.view(dtype))",
        cu,
    )
