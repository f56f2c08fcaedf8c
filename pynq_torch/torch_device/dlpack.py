"""Make torch take memory of ours as a tensor's, on a device of our choice.

torch imports a DLPack capsule without a copy, and a capsule names the device of its memory;
device type 12 is an "extension device", which torch maps to PrivateUse1: our ``"pynq"``. So a
tensor of device ``"pynq"`` is an ordinary ``torch.Tensor`` whose storage begins at our address;
no compiled extension and no subclass is needed.

Layout of the structs: DLPack's ``dlpack.h``, ABI version 0 (``DLManagedTensor``). The memory
belongs to the maker of the struct (deleter NULL); `memory` ties it to the storage's life.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Sequence

import torch

__all__ = ["CPU", "PYNQ", "Importable", "import_at", "is_importable"]

#: DLPack device types.
CPU, PYNQ = 1, 12
_NAME = b"dltensor"

_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
#: dtype -> DLPack's code and bits.
_KINDS: dict[torch.dtype, tuple[int, int]] = {
    **{getattr(torch, f"int{bits}"): (_INT, bits) for bits in (8, 16, 32, 64)},
    **{getattr(torch, f"uint{bits}"): (_UINT, bits) for bits in (8, 16, 32, 64)},
    **{getattr(torch, f"float{bits}"): (_FLOAT, bits) for bits in (16, 32, 64)},
    **{getattr(torch, f"complex{bits}"): (_COMPLEX, bits) for bits in (32, 64, 128)},
    torch.bfloat16: (_BFLOAT, 16),
    torch.bool: (_BOOL, 8),
}


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("index", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _ManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_import = torch._C._from_dlpack


def import_at(at: int) -> torch.Tensor:
    """Return a new tensor, with a new storage, over memory that is described at `at`."""
    result: torch.Tensor = _import(_capsule(at, _NAME, None))
    return result


def is_importable(dtype: torch.dtype) -> bool:
    """Whether a tensor of `dtype` can be imported as it is."""
    return dtype in _KINDS


_CHUNK = 256
_slots: deque[_ManagedTensor] = deque()


def _slot() -> _ManagedTensor:
    """Return a struct that stays readable for ever.

    When a storage dies, torch looks at the struct's deleter once more, at a time that we do not
    learn. So structs are in memory that is never freed, only used again for the next: whatever a
    late storage finds there, the deleter is NULL. Their number is that of the most blocks alive.
    """
    try:
        return _slots.pop()
    except IndexError:
        chunk = (_ManagedTensor * _CHUNK)()
        # Storages may outlive this module when the interpreter shuts down.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(chunk))
        _slots.extend(chunk)
        return _slots.pop()


class Importable:
    """Memory described once, imported as often as need be.

    Parameters
    ----------
    address : int
        Virtual address.
    shape, strides : sequence of int
        In elements.
    dtype : torch.dtype
        One for which `is_importable` holds.
    device : int
        `CPU` or `PYNQ`.

    Attributes
    ----------
    at : int
        Address of the description, for `import_at`; valid while this object lives.
    """

    __slots__ = ("_give_back", "_keep", "_slot", "at")

    def __init__(
        self,
        address: int,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: torch.dtype,
        device: int,
    ) -> None:
        code, bits = _KINDS[dtype]
        ndim = len(shape)
        dims = (ctypes.c_int64 * max(ndim, 1))(*shape)
        steps = (ctypes.c_int64 * max(ndim, 1))(*strides)
        self._slot = _slot()
        self._slot.tensor = _Tensor(
            address, _Device(device, 0), ndim, _DataType(code, bits, 1), dims, steps, 0
        )
        # torch copies sizes and strides when it imports.
        self._keep = (dims, steps)
        self._give_back = _slots.append
        self.at = ctypes.addressof(self._slot)

    def __del__(self) -> None:
        self._give_back(self._slot)

    def tensor(self) -> torch.Tensor:
        """Return a new tensor, with a new storage, over the memory."""
        return import_at(self.at)
