"""What ``MMIO.array`` is on the virtual board: an array whose elements are registers."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

import numpy as np

from pynq_torch.errors import BoardError

from .bus import Bus

__all__ = ["RegisterArray"]


class RegisterArray(np.ndarray[Any, Any]):
    """What ``pynq.MMIO.array`` is on the virtual board: an array whose elements are registers.

    On the board it is a plain array over ``/dev/mem``. Here every access through it reads or
    writes the bus; slices and views (also with another dtype) keep doing so. What reads memory
    without asking the array (``np.asarray``, ``np.array``, ``memoryview``) sees zeros that cannot
    be written: take ``array[:].copy()`` for the values.
    """

    _bus: Bus | None = None
    _address = 0
    #: Elements, for an array of plain 32-bit words; 0 for views, which take the general way.
    _words = 0
    _by_pointer: ClassVar[weakref.WeakValueDictionary[int, RegisterArray]] = (
        weakref.WeakValueDictionary()
    )

    @classmethod
    def over(cls, bus: Bus, address: int, nbytes: int, backing: memoryview | None) -> RegisterArray:
        """Return the array for ``[address, address + nbytes)``."""
        words = nbytes >> 2
        if backing is not None and len(backing) >= words * 4:
            plain = np.frombuffer(backing, np.uint32, words)
        else:
            plain = np.zeros(words, np.uint32)
            # What goes round the methods below, as np.asarray does, writes to no register.
            plain.flags.writeable = False
        self = plain.view(cls)
        self._bus = bus
        self._address = address
        self._words = words
        cls._by_pointer[self.ctypes.data] = self
        return self

    @classmethod
    def at(cls, pointer: int) -> RegisterArray:
        """Return the array that a program has the address of, as ``array.ctypes.data``."""
        found = cls._by_pointer.get(pointer)
        if found is None:
            raise BoardError(f"no registers are at 0x{pointer:x} in this program's memory")
        return found

    def __array_finalize__(self, obj: Any) -> None:
        if isinstance(obj, RegisterArray) and obj._bus is not None:
            distance = self.ctypes.data - obj.ctypes.data
            if 0 <= distance < max(obj.nbytes, 1):
                self._bus = obj._bus
                self._address = obj._address + distance

    # ---- elements --------------------------------------------------------------------------

    def _load(self, address: int) -> Any:
        bus = self._bus
        assert bus is not None
        size = self.dtype.itemsize
        if size == 4:
            return np.array([bus.read(address)], np.uint32).view(self.dtype)[0]
        if size == 8:
            low, high = bus.read(address), bus.read(address + 4)
            return np.array([low, high], np.uint32).view(self.dtype)[0]
        word = bus.read(address & ~3)
        lanes = np.array([word], np.uint32).view(self.dtype)
        return lanes[(address & 3) // size]

    def _store(self, address: int, value: Any) -> None:
        bus = self._bus
        assert bus is not None
        raw = np.array(_plain(value)).astype(self.dtype, casting="unsafe").tobytes()
        if len(raw) >= 4:
            for i in range(0, len(raw), 4):
                bus.write(address + i, int.from_bytes(raw[i : i + 4], "little"))
            return
        word = bytearray(bus.read(address & ~3).to_bytes(4, "little"))
        word[address & 3 : (address & 3) + len(raw)] = raw
        bus.write(address & ~3, int.from_bytes(word, "little"))

    def __getitem__(self, key: Any) -> Any:
        if type(key) is int and 0 <= key < self._words:
            return np.uint32(self._bus.read(self._address + (key << 2)))  # type: ignore[union-attr]
        if self._bus is not None and self.ndim == 1 and isinstance(key, (int, np.integer)):
            return self._load(self._address_of(int(key)))
        found = super().__getitem__(key)
        if self._bus is not None:
            if not isinstance(found, RegisterArray):  # one element of several dimensions
                return self._load(int(self._addresses()[key]))
            distance = found.ctypes.data - self.ctypes.data
            if not 0 <= distance < max(self.nbytes, 1):
                return self.fetch()[key]  # fancy indexing copied the bytes behind the registers
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) is int and 0 <= key < self._words and isinstance(value, (int, np.integer)):
            self._bus.write(self._address + (key << 2), int(value))  # type: ignore[union-attr]
            return
        if self._bus is None:
            np.ndarray.__setitem__(self, key, value)  # type: ignore[no-untyped-call]
            return
        if self.ndim == 1 and isinstance(key, (int, np.integer)):
            self._store(self._address_of(int(key)), value)
            return
        if self._words and type(key) is slice and type(value) is np.ndarray:
            start, stop, step = key.indices(self._words)
            # Words for as many registers in a row: what drivers write in front of a start.
            length = stop - start
            if step == 1 and length and value.dtype == np.uint32 and value.shape == (length,):
                words = np.ascontiguousarray(value).data
                self._bus.write_block(self._address + (start << 2), words)
                return
        # Let numpy decide which elements are meant, in which order, and with which value.
        addresses = self._addresses()[key]
        values = np.broadcast_to(np.asarray(_plain(value)), addresses.shape)
        for address, item in zip(addresses.flat, values.flat, strict=True):
            self._store(int(address), item)

    def _address_of(self, index: int) -> int:
        size = self.shape[0]
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of bounds for axis 0 with size {size}")
        return self._address + index % size * self.strides[0]

    def _addresses(self) -> np.ndarray[Any, Any]:
        offsets: np.ndarray[Any, Any] = np.zeros(self.shape, np.int64)
        for axis, stride in enumerate(self.strides):
            steps = np.arange(self.shape[axis], dtype=np.int64) * stride
            offsets += steps.reshape([-1 if a == axis else 1 for a in range(self.ndim)])
        return offsets + self._address

    # ---- whole arrays ----------------------------------------------------------------------

    def fetch(self) -> np.ndarray[Any, Any]:
        """Read every element over the bus into an ordinary array."""
        plain: np.ndarray[Any, Any] = np.empty(self.shape, self.dtype)
        if self._bus is None:
            plain[...] = self.view(np.ndarray)
            return plain
        flat = plain.reshape(-1)
        for i, address in enumerate(self._addresses().flat):
            flat[i] = self._load(int(address))
        return plain

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "at":
            return NotImplemented  # it writes to its first input
        out = kwargs.pop("out", None)
        result = getattr(ufunc, method)(*map(_plain, inputs), **kwargs)
        if out is None:
            return result
        results = result if isinstance(result, tuple) else (result,)
        for target, values in zip(out, results, strict=True):
            target[...] = values
        return out[0] if len(out) == 1 else out

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.copyto:
            target, source = args[0], _plain(args[1])
            if isinstance(target, RegisterArray):
                target[...] = source
                return None
            return func(target, source, *args[2:], **kwargs)
        args = [[_plain(b) for b in a] if isinstance(a, (list, tuple)) else _plain(a) for a in args]
        return func(*args, **{k: _plain(v) for k, v in kwargs.items()})

    def __iter__(self) -> Any:
        return (self[i] for i in range(self.shape[0]))

    def copy(self, order: Any = "C") -> Any:
        """Read every element; the result is an ordinary array."""
        return self.fetch()

    def item(self, *args: Any) -> Any:
        """Read one element, as a Python number."""
        if self._bus is None:
            return super().item(*args)
        index = np.arange(self.size).reshape(self.shape).item(*args)  # numpy's rules and errors
        return self._load(int(self._addresses().flat[index])).item()

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __bool__(self) -> bool:
        return bool(self.fetch())

    @property
    def flat(self) -> Any:
        """The elements in one dimension: registers too, where they are next to each other."""
        return self.reshape(-1) if self.flags.c_contiguous else self.fetch().flat

    def fill(self, value: Any) -> None:
        """Write every element."""
        self[...] = value

    def tolist(self) -> Any:
        """Read every element into a list."""
        return self.fetch().tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """Read every element into bytes, little endian."""
        return self.fetch().tobytes()

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Read every element and convert it."""
        return self.fetch().astype(dtype, *args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.fetch())

    def __str__(self) -> str:
        return str(self.fetch())


def _of_the_values(name: str) -> Any:
    def method(self: RegisterArray, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.fetch(), name)(*args, **kwargs)

    return method


# numpy's own would look at the memory behind the array, and not at the registers.
for _name in (
    "__copy__", "__deepcopy__", "__reduce_ex__", "argmax", "argmin", "argsort", "byteswap",
    "choose", "compress", "dot", "dump", "dumps", "flatten", "nonzero", "repeat", "searchsorted",
    "take", "tofile",
):  # fmt: skip
    setattr(RegisterArray, _name, _of_the_values(_name))


def _plain(value: Any) -> Any:
    if not isinstance(value, RegisterArray):
        return value
    plain = value.fetch()
    plain.flags.writeable = False  # a function that writes to it would write to no register
    return plain
