"""The arguments given to a kernel: bound to registers, checked, and as the bytes to write."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from pynq.buffer import PynqBuffer

from pynq_torch import buffers
from pynq_torch.diagnosis.streams import stream_hint
from pynq_torch.errors import ArgumentError

if TYPE_CHECKING:
    import torch

    from .base import Kernel
    from .registers import Parameter

__all__ = [
    "ArgumentError", "bind", "check_elements", "check_number", "check_tensor", "encode", "reach",
]  # fmt: skip


def check_tensor(
    cu: str,
    name: str,
    value: Any,
    dtype: torch.dtype | None = None,
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
    dtype : torch.dtype, optional
        The kernel's. Default: float32.
    ndim : int, optional
        Dimensions expected.
    shape : tuple of int, optional
        Shape expected.
    """
    import torch

    dtype = dtype or torch.float32
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


def check_number(cu: str, name: str, value: Any, number: Any) -> None:
    """Raise `ArgumentError` where a register would take the bits of another kind of number.

    Parameters
    ----------
    cu, name : str
        For the message: the compute unit and the argument.
    value : object
        What was given. `np.uint32`, `np.uint64` and, for `half`, `np.uint16` are bits, and fit
        everywhere, as 0 does.
    number : object
        What the kernel's C++ says: `ctype`, `kind`, `bits` and `fraction_bits`.
    """
    is_float = isinstance(value, (float, np.floating))
    is_int = isinstance(value, (int, np.integer, np.bool_))
    if isinstance(value, PynqBuffer) and number.kind != "int":  # of an int it may be the address
        raise ArgumentError(
            f"{cu}: argument {name} is an array; the kernel's C++ takes one {number.ctype}. Pass "
            "value.item()",
            cu,
        )
    if not (is_float or is_int) or _fits_everywhere(value, number):
        return
    width = 64 if number.bits > 32 else 32
    if number.kind == "int" and is_float:
        instead = f"{int(value)}" if np.isfinite(value) else "an int"
    elif number.kind == "fixed" and is_float:
        instead = f"its steps of 2**{-number.fraction_bits}: round(x * 2**{number.fraction_bits})"
    elif number.kind == "float" and number.bits == 16 and not isinstance(value, np.float16):
        instead = f"np.float16({value!r})"
    elif number.kind == "float" and is_int:
        instead = f"{int(value)}.0, or np.uint{width}({int(value)}) if these are its bits"
    else:
        return
    found = f"{value!r}, a {'float' if is_float else 'whole number'}"
    raise ArgumentError(
        f"{cu}: argument {name} is {found}; the kernel's C++ takes {number.ctype}, and the "
        f"register would get other bits. Pass {instead}",
        cu,
    )


def _fits_everywhere(value: Any, number: Any) -> bool:
    """Whether a number is meant as bits, or is a 0, which is the same in each kind."""
    if isinstance(value, np.unsignedinteger) and value.nbytes in (4, 8, number.bits // 8):
        return True
    return bool(value == 0 and not np.signbit(value))


def bind(kernel: Kernel, arguments: tuple[Any, ...], registers: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by the names of their registers."""
    inputs = [p for p in kernel.parameters if p.kind != "out"]
    call = kernel.signature_text
    if len(arguments) > len(inputs):
        hint = stream_hint(kernel.device, kernel.cu)
        raise TypeError(
            f"{call} takes {len(inputs)} arguments; found {len(arguments)}"
            + (f". {hint}" if hint else "")
        )
    by_name = {name: p.name for p in inputs for name in p.names}
    values = {p.name: v for p, v in zip(inputs, arguments, strict=False)}
    _check_not_streamed(kernel, inputs, values)  # before a name that is given twice by it
    for given, value in registers.items():
        name = by_name.get(given)
        if name is None:
            hint = stream_hint(kernel.device, kernel.cu) if _is_array(value) else ""
            raise TypeError(
                f"{call} has no argument {given!r} to write" + (f". {hint}" if hint else "")
            )
        if name in values:
            raise TypeError(f"{call}: argument {given!r} is given twice")
        values[name] = value
    _check_not_streamed(kernel, inputs, values)
    missing = [p.names[-1] for p in inputs if p.name not in values and p.kind == "in"]
    if missing:
        raise TypeError(
            f"{call}: missing {', '.join(missing)}. A register left out would keep the value of "
            "the run before."
        )
    return values


def _check_not_streamed(kernel: Kernel, inputs: list[Parameter], values: dict[str, Any]) -> None:
    """Raise where an array is given for a number, to a kernel that takes arrays by streams."""
    for p in inputs:
        if p.kind == "memory" or not _is_array(values.get(p.name)):
            continue
        if hint := stream_hint(kernel.device, kernel.cu, only=True):
            raise TypeError(
                f"{kernel.signature_text}: argument {p.names[-1]} is a number in a register; found "
                f"an array. {hint}"
            )


def _is_array(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0


def reach(value: Any) -> Any:
    """Return the buffer over a tensor in CMA memory; anything else as it is."""
    own = buffers.buffer_of(value) if hasattr(value, "data_ptr") else None
    return value if own is None else own


def encode(kernel: Kernel, parameter: Parameter, value: Any) -> bytes:
    """Return the bytes to write for an argument."""
    what = f"{kernel.cu}: argument {parameter.names[-1]}"
    element = kernel.elements.get(parameter.name)
    size = parameter.nbytes
    if parameter.kind == "memory":
        values = np.ascontiguousarray(value)
        if element is not None:
            check_elements(kernel.cu, parameter.names[-1], values.dtype, element)
        raw = values.tobytes()
        if len(raw) > size:
            raise ValueError(f"{what} holds {size} bytes; found {len(raw)}")
        return raw + bytes(-len(raw) % 4)
    if (known := kernel.numbers.get(parameter.name)) is not None:
        check_number(kernel.cu, parameter.names[-1], value, known)
        if known.kind == "float" and isinstance(value, np.floating):
            value = value if 8 * value.nbytes == known.bits else float(value)
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        number, bits = int(value), 8 * size
        if not -(1 << bits - 1) <= number < 1 << bits:
            raise OverflowError(f"{what} has {bits} bits; found {number}")
        return (number & (1 << bits) - 1).to_bytes(size, "little")
    if isinstance(value, (float, np.float32)):  # np.float64 is a float
        return struct.pack("<f" if size == 4 else "<d", value).ljust(size, b"\0")
    if isinstance(value, np.generic):
        if value.nbytes > size:
            raise OverflowError(f"{what} has {8 * size} bits; found a {value.dtype}")
        return value.tobytes().ljust(size, b"\0")
    if isinstance(value, PynqBuffer) and value.device_address is not None:
        buffers.check_alive(value)
        if element is not None:
            check_elements(kernel.cu, parameter.names[-1], value.dtype, element)
        return int(value.physical_address).to_bytes(size, "little")
    raise TypeError(
        f"{what} is {type(value).__name__}; expected a number, or a buffer or tensor in CMA memory "
        "(buffers.to_buffer, buffers.empty_tensor)"
    )
