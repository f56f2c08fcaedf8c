"""A network in one file: program, weights, quantisation, names; numpy alone reads and writes it."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pynq_torch.errors import PynqTorchError
from pynq_torch.kernels.net.check import Limits, check
from pynq_torch.kernels.net.format import VERSION, WORDS, Instruction

__all__ = ["NetFileError", "Network", "Port", "read"]

#: What numpy, zipfile and json raise for a file that is none of theirs.
_DAMAGE = (
    *(ValueError, KeyError, TypeError, AttributeError, EOFError, NotImplementedError),
    *(RuntimeError, zipfile.BadZipFile, zlib.error, MemoryError, OverflowError),
)
_ARRAYS = {"program": "uint32", "weights": "int8", "tables": "int32"}


class NetFileError(PynqTorchError):
    """A file is no network, or a damaged one."""


@dataclass(frozen=True)
class Port:
    """A tensor that goes into a network, or comes out of it, for one image.

    Attributes
    ----------
    at : int
        Byte in the arena.
    shape : tuple of int
        Without the dimension of the batch.
    dtype : {"int8", "float32"}
        What is in the arena.
    scale, zero : float, int
        ``x ~ (x_q - zero) * scale``; of no meaning for float32.
    """

    at: int
    shape: tuple[int, ...]
    dtype: Literal["int8", "float32"] = "int8"
    scale: float = 1.0
    zero: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of one image."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def quantised(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return float32 values in int8: ``clamp(rne(x / scale) + zero)``; NaN is an error."""
        steps = np.rint(values.astype(np.float32) * np.float32(1 / self.scale))
        if np.isnan(steps).any():
            raise ValueError("the input has NaN in it; expected numbers")
        whole: np.ndarray[Any, Any] = steps + np.float32(self.zero)
        return whole.clip(-128, 127).astype(np.int8)

    def real(self, steps: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return int8 values in float32; float32 values are returned as they are."""
        if self.dtype == "float32":
            return steps
        whole: np.ndarray[Any, Any] = steps.astype(np.float32) - np.float32(self.zero)
        return whole * np.float32(self.scale)


@dataclass(frozen=True)
class Network:
    """A program with its constants, and where its inputs and outputs are.

    Attributes
    ----------
    program, weights, tables : numpy.ndarray
        uint32 [n, 32], int8, int32.
    arena : int
        Bytes for activations.
    inputs, outputs : tuple of Port
        In order.
    names : tuple of str
        Of the layer that each instruction is from.
    overlay : str
        Which overlay runs it.
    """

    program: np.ndarray[Any, Any]
    weights: np.ndarray[Any, Any]
    tables: np.ndarray[Any, Any]
    arena: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    names: tuple[str, ...] = ()
    overlay: str = "net"
    version: int = field(default=VERSION)

    def check(self) -> list[Instruction]:
        """Return the instructions; see `pynq_torch.kernels.net.check.check`.

        Raises
        ------
        ProgramError
            One of them is invalid.
        NetFileError
            An input or output is not within the arena.
        """
        for port in (*self.inputs, *self.outputs):
            if port.at < 0 or port.at + port.nbytes > self.arena or min(port.shape, default=1) < 1:
                raise NetFileError(
                    f"the arena has {self.arena} bytes; found an input or output of shape "
                    f"{port.shape}, {port.dtype}, at byte {port.at}"
                )
        limits = Limits(self.weights.nbytes, self.tables.size, self.arena)
        return check(self.program, limits, self.tables)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a file; `read` returns the same network. Any ending will do, ``.pynq`` is usual."""
        header = {k: v for k, v in asdict(self).items() if k not in _ARRAYS}
        text = np.frombuffer(json.dumps(header).encode(), np.uint8)
        arrays = {name: np.asarray(getattr(self, name)) for name in _ARRAYS}
        with open(path, "wb") as file:
            np.savez_compressed(file, header=text, **arrays)
        return Path(path)


def read(path: str | os.PathLike[str]) -> Network:
    """Read a network from a file, and check it.

    Raises
    ------
    NetFileError
        It is no network, is damaged, or is of another version.
    ProgramError
        It has an invalid instruction.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in _ARRAYS}
            header = json.loads(bytes(arrays["header"]))
    except _DAMAGE as error:
        raise NetFileError(
            f"{path} is no network, or is damaged: {error}; expected a file that "
            "pynq_torch.compile(...).save() wrote"
        ) from error
    if not isinstance(header, dict) or header.get("version") != VERSION:
        what = header.get("version") if isinstance(header, dict) else header
        raise NetFileError(f"{path} has version {what}; expected {VERSION}: compile it again")
    for name, kind in _ARRAYS.items():
        if found[name].dtype != kind or found[name].ndim != 1 + (name == "program"):
            raise NetFileError(f"{path}: {name} is {found[name].dtype}; expected {kind}")
    if found["program"].shape[1] != WORDS:
        raise NetFileError(f"{path}: an instruction has {found['program'].shape[1]} words")
    made = _network(path, header, found)
    made.check()
    return made


def _network(path: Any, header: dict[str, Any], arrays: dict[str, Any]) -> Network:
    try:
        return Network(
            **arrays,
            arena=int(header["arena"]),
            inputs=tuple(map(_port, header["inputs"])),
            outputs=tuple(map(_port, header["outputs"])),
            names=tuple(str(name) for name in header["names"]),
            overlay=str(header["overlay"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NetFileError(f"{path}: its header lacks or misstates {error}") from error


def _port(entry: dict[str, Any]) -> Port:
    shape: Sequence[int] = [int(size) for size in entry["shape"]]
    kind, scale = entry["dtype"], float(entry["scale"])
    if kind not in ("int8", "float32") or not 0 < scale < float("inf"):
        raise ValueError(f"dtype {kind!r}, scale {scale}")
    return Port(int(entry["at"]), tuple(shape), kind, scale, int(entry["zero"]))
