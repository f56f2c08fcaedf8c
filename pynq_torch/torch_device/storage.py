"""What torch asks of storages, for device "pynq": making them, and saving and loading files."""

from __future__ import annotations

from typing import Any

import torch

from .memory import CmaStorage, from_bytes, new
from .structure import check_index

__all__ = ["install", "storage_of_size"]


def install() -> None:
    """Put the functions of this module in the places where torch calls them."""
    # Before torch's own for new devices (20), which would ask for an allocator in C++.
    torch.serialization.register_package(19, _no_tag, _deserialize)
    torch.serialization.add_safe_globals([from_bytes])
    torch.UntypedStorage.__new__ = storage_of_size  # type: ignore[method-assign]
    torch.TypedStorage._new_wrapped_storage = _typed_storage  # type: ignore[method-assign,assignment]


def storage_of_size(cls: type, *args: Any, **kwargs: Any) -> Any:
    """Stand in for ``torch.UntypedStorage.__new__``, which asks an allocator in C++ for memory.

    Where a device has no such allocator, torch ends the process.
    """
    device = kwargs.get("device")
    if device is None or torch.device(device).type != "pynq":
        return _plain_new(cls, *args, **kwargs)
    given = args[0] if args else 0
    if isinstance(given, int):
        return new((given,), torch.uint8).untyped_storage()
    values = torch.tensor(list(given), dtype=torch.uint8)
    return from_bytes(values.untyped_storage())


_plain_new: Any = torch.UntypedStorage.__new__


def _typed_storage(self: torch.TypedStorage, untyped: torch.UntypedStorage) -> Any:
    """Stand in for ``torch.TypedStorage._new_wrapped_storage``, which refuses any subclass.

    ``copy.deepcopy`` finds the copy of a storage in its memo, as a `CmaStorage`, for every further
    tensor over that storage.
    """
    if not isinstance(untyped, CmaStorage) or type(self) is not torch.TypedStorage:
        return _plain_typed(self, untyped)
    make: Any = torch.TypedStorage
    return make(wrap_storage=untyped, dtype=self.dtype, _internal=True)


_plain_typed: Any = torch.TypedStorage._new_wrapped_storage


def _no_tag(storage: Any) -> str | None:
    """Leave the name of the device in a file to torch: ``"pynq:0"``."""
    return None


def _deserialize(storage: Any, location: str) -> Any:
    """Move a storage that ``torch.load`` has read to device "pynq", if the file says so.

    Raises
    ------
    RuntimeError
        `location` has another index than 0.
    """
    if location.partition(":")[0] != "pynq":
        return None
    check_index(torch.device(location))
    return from_bytes(storage)
