"""Tensors of device "pynq": CMA memory that torch takes for its own, and the CPU's view of it.

A tensor on ``"pynq"`` is a plain ``torch.Tensor`` whose storage starts inside a CMA buffer; that
is free again when the last tensor over the storage has gone. The same memory has a CPU tensor
(`alias`), on which the CPU computes what no kernel does: nothing is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import cma
from .blocks import Block, Idle, Lent, Memory
from .cma import in_forked_child, lost_by_fork, tensor_of, used_device
from .dlpack import CPU, Importable

__all__ = [
    "Block",
    "CmaStorage",
    "alias",
    "array",
    "block_of",
    "from_bytes",
    "from_cma",
    "held",
    "in_forked_child",
    "make_room",
    "mark_forked",
    "new",
    "new_like",
    "new_strided",
    "note_write",
    "physical_address",
    "readable",
    "resize_storage",
    "share",
    "used_device",
]


class CmaStorage(cma.Owner):
    """Storage in CMA memory; what torch's own would ask an allocator for is asked of CMA here.

    torch keeps the Python object of a storage as long as the storage lives, wherever that is held
    (autograd graph, view, module): when this object goes, the memory is free again.

    Attributes
    ----------
    block : Block
        Its memory.
    writes : int
        Counts what was written through operators: a packed copy is stale when it has grown.
    packed : dict or None
        Copies made for kernels (quantised, widened), each with the count it was made at.
    marked : bool
        Whether a view may carry torch's lazy conjugation or negation.
    shared : bool
        Whether others may write to the memory without an operator: nothing is packed to be kept.
    """

    writes = 0
    packed: dict[Any, Any] | None = None
    marked = False
    shared = False

    def byteswap(self, dtype: torch.dtype) -> None:
        """Swap the bytes of every element."""
        super().byteswap(dtype)  # type: ignore[no-untyped-call]
        self.writes += 1  # no operator has done it

    def __reduce__(self) -> Any:
        return from_bytes, (self.cpu(),)

    def cpu(self) -> Any:
        """Return a copy on the CPU; also when the board is gone, and in a forked child."""
        return _bytes(self).clone().untyped_storage()

    def new(self) -> Any:
        """Return an empty storage on the same device."""
        return new((0,), torch.uint8).untyped_storage()

    def clone(self) -> torch.UntypedStorage:
        """Return a copy on the same device."""
        return from_bytes(self)

    def resize_(self, size: int) -> CmaStorage:
        """Change the number of bytes; every tensor over the storage stays over it."""
        if size != self.nbytes():
            resize_storage(self, size)
        return self


# ---- new tensors ---------------------------------------------------------------------------------


def new(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor on device "pynq", row-major, not initialised.

    Parameters
    ----------
    shape : torch.Size or tuple of int
        Its shape.
    dtype : torch.dtype
        Its dtype.

    Raises
    ------
    CmaExhausted
        With the size asked for and what there is.
    DeviceLost
        In a forked child, and where the board has been closed.
    """
    idle = cma.ready.get((shape, dtype))
    block = cma.reuse(idle) if idle else None
    return tensor_of(block or cma.new_block(tuple(shape), dtype), CmaStorage)


def new_strided(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor on device "pynq" with given strides (in elements), not initialised."""
    shape, strides = tuple(shape), tuple(strides)
    if strides == cma.row_major(shape):
        return new(shape, dtype)
    idle = cma.ready.get((shape, dtype, strides))
    block = cma.reuse(idle) if idle else None
    return tensor_of(block or cma.new_block(shape, dtype, strides), CmaStorage)


def new_like(block: Block) -> torch.Tensor:
    """Return a tensor of the shape, strides and dtype of a block, not initialised."""
    made = cma.reuse(block.idle) if block.idle else None
    if made is None:
        strides = None if block.row_major else tuple(block.cpu.stride())
        made = cma.new_block(tuple(block.shape), block.dtype, strides)
    return tensor_of(made, CmaStorage)


def from_bytes(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """Return a storage on device "pynq" with the bytes of a storage on the CPU or on "pynq"."""
    flat = new((storage.nbytes(),), torch.uint8)
    block_of(flat).cpu.copy_(_bytes(storage))
    return flat.untyped_storage()


def from_cma(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor on device "pynq" over the memory of a CPU tensor in a CMA buffer.

    Parameters
    ----------
    tensor : torch.Tensor
        On the CPU, e.g. from `buffers.empty_tensor` or a driver; any strides. It shares its memory
        with the result and keeps the buffer alive as long as either lives.

    Raises
    ------
    ValueError
        Its memory is ordinary memory: use ``tensor.to("pynq")``, which copies.
    """
    from pynq_torch import buffers

    buffer = buffers.buffer_of(tensor)
    if buffer is None:
        raise ValueError(
            "the tensor is not in CMA memory; use tensor.to('pynq'), which copies it there"
        )
    lent = Lent(buffer, buffer.device, 0, buffer.nbytes)
    shape, strides = tuple(tensor.shape), tensor.stride()
    # Not for reuse by other tensors: the buffer is in use elsewhere as well.
    idle = Idle(open=False)
    result = tensor_of(Block(lent, lent.address, shape, strides, tensor.dtype, idle), CmaStorage)
    share(result)
    return result


# ---- storages ------------------------------------------------------------------------------------


#: PyTorch 2.13 can give a storage other memory, in two steps by way of an empty one.
_CAN_SWAP = hasattr(torch.UntypedStorage, "_swap_data_ptr_")
#: References to a storage that one tensor has: that tensor, and the storage's Python object.
_ONE_TENSOR = 2


def resize_storage(storage: CmaStorage, nbytes: int, dtype: torch.dtype = torch.uint8) -> None:
    """Give a storage memory of another size, with the bytes that it had.

    Parameters
    ----------
    storage : CmaStorage
        Every tensor over it shows the new memory afterwards, as on the CPU.
    nbytes : int
        Its new size.
    dtype : torch.dtype
        Of the tensors to come, for which the memory is prepared.

    Raises
    ------
    RuntimeError
        The memory is a buffer of the caller's (`from_cma`), or this PyTorch cannot do it.
    """
    if not _CAN_SWAP:
        raise RuntimeError(
            f"a storage on device 'pynq' has {storage.nbytes()} bytes and cannot become {nbytes} "
            f"with PyTorch {torch.__version__}, which has to be 2.13 or newer for this; make a new "
            "tensor and copy"
        )
    fresh, empty = _moved(storage, nbytes, dtype), new((0,), torch.uint8).untyped_storage()
    storages: list[Any] = [storage, fresh, empty]
    blocks = [each.block for each in storages]
    storages[0]._swap_data_ptr_(empty)
    storages[0]._swap_data_ptr_(fresh)
    for each, block in zip(storages, (blocks[1], blocks[2], blocks[0]), strict=True):
        each.block = block
    storage.packed = None
    storage.writes += 1


def _moved(storage: CmaStorage, nbytes: int, dtype: torch.dtype) -> CmaStorage:
    """Return a new storage of another size with the bytes of a storage."""
    if isinstance(storage.block.memory, Lent):
        raise RuntimeError(
            f"the tensor is in a CMA buffer of {storage.nbytes()} bytes that was given to "
            f"device 'pynq' (from_cma) and cannot become {nbytes}: use tensor.clone(), which has "
            "memory of its own"
        )
    made: Any = new((nbytes // dtype.itemsize,), dtype).untyped_storage()
    kept = min(nbytes, storage.nbytes())
    _bytes(made)[:kept].copy_(_bytes(storage)[:kept])
    return made  # type: ignore[no-any-return]


def make_room(tensor: torch.Tensor, nbytes: int) -> Any:
    """Return the storage of a tensor on device "pynq", with at least so many bytes.

    Raises
    ------
    RuntimeError
        See `resize_storage`; a PyTorch before 2.13 can only move the one tensor of a storage.
    """
    block_of(tensor)
    storage: Any = tensor.untyped_storage()
    if nbytes > storage.nbytes():
        if not _CAN_SWAP and torch._C._storage_Use_Count(storage._cdata) <= _ONE_TENSOR:
            return _moved(storage, nbytes, tensor.dtype)
        resize_storage(storage, nbytes, tensor.dtype)
    return storage


def _elements(storage: Any, dtype: torch.dtype) -> torch.Tensor:
    """Return all that a storage holds as a CPU vector of a dtype."""
    count = storage.nbytes() // dtype.itemsize
    return Importable(storage.data_ptr(), (count,), (1,), dtype, CPU).tensor()


def _bytes(storage: Any) -> torch.Tensor:
    return _elements(storage, torch.uint8)


# ---- the CPU's view ------------------------------------------------------------------------------


def block_of(tensor: torch.Tensor) -> Block:
    """Return the block of the storage of a tensor on device "pynq"."""
    storage: Any = tensor.untyped_storage()
    if not hasattr(storage, "block") and tensor.device.type == "pynq":
        start, count = storage.data_ptr(), storage.nbytes()
        storage.block = Block(None, start, (count,), (1,), torch.uint8, Idle())
        storage.__class__ = CmaStorage
    block: Block = storage.block
    return block


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """Return the CPU tensor over the very memory of a tensor on device "pynq".

    Parameters
    ----------
    tensor : torch.Tensor
        Any shape and strides.

    Returns
    -------
    torch.Tensor
        Same shape, strides and dtype on the CPU. It must not be resized, and is valid while the
        tensor lives: it does not keep the memory, which the next tensor gets.

    Raises
    ------
    AttributeError
        The tensor is not on device "pynq".
    """
    storage = tensor.untyped_storage()
    try:
        block: Block = storage.block  # type: ignore[attr-defined]
    except AttributeError:
        block = block_of(tensor)
        storage = tensor.untyped_storage()
    if (
        block.shape == tensor.shape
        and block.dtype is tensor.dtype
        and not tensor.storage_offset()
        and (tensor.is_contiguous() if block.row_major else tensor.stride() == block.cpu.stride())
    ):
        view = block.cpu
    else:
        same = block.dtype is tensor.dtype
        cpu = block.cpu if same else _elements(storage, tensor.dtype)
        view = torch.as_strided(cpu, tensor.shape, tensor.stride(), tensor.storage_offset())
    return _marked(tensor, view) if storage.marked else view  # type: ignore[attr-defined]


def array(tensor: torch.Tensor) -> Any:
    """Return the elements of a tensor that fills its block as a numpy vector, ``None`` for others.

    Quicker than ``alias(tensor).numpy()``; the dtype must be one that numpy has.
    """
    storage: Any = tensor.untyped_storage()
    block: Block = storage.block
    if (
        block.shape != tensor.shape
        or block.dtype is not tensor.dtype
        or not block.row_major
        or not tensor.is_contiguous()
        or tensor.storage_offset()
        or storage.marked
    ):
        return None
    if block.array is None:
        block.array = block.cpu.view(-1).numpy()
    return block.array


def _marked(tensor: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
    """Mark a view as torch marks lazily conjugated and negated tensors; memory is not changed."""
    if tensor.is_neg():
        view = torch._neg_view(view)
    if tensor.is_complex() and tensor.is_conj():
        view = torch._conj(view)
    return view


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """Return the CPU's view of a tensor on device "pynq", to read from: also in a forked child."""
    if not in_forked_child():
        return alias(tensor)
    flat = _elements(tensor.untyped_storage(), tensor.dtype)
    view = torch.as_strided(flat, tensor.shape, tensor.stride(), tensor.storage_offset())
    return _marked(tensor, view)


def note_write(tensor: torch.Tensor) -> None:
    """Count a write to a tensor on device "pynq"."""
    storage: Any = tensor.untyped_storage()
    storage.writes += 1


def share(tensor: torch.Tensor) -> None:
    """Note that the memory of a tensor on device "pynq" may be written without an operator.

    Its storage is packed again for each call of a kernel from then on.
    """
    storage: Any = tensor.untyped_storage()
    storage.shared = True


def held(tensor: torch.Tensor) -> Memory:
    """Return the memory of a tensor's storage, to flush and invalidate."""
    found = block_of(tensor).memory
    if found is None:
        raise ValueError("the storage of this tensor was not taken from CMA")
    return found


def physical_address(tensor: torch.Tensor) -> int:
    """Return the physical address of a tensor's first element, as a kernel's register takes it."""
    return held(tensor).physical + int(tensor.storage_offset()) * tensor.element_size()


def mark_forked() -> None:
    """Note that this process is a forked child: it may read its parent's tensors, nothing else.

    The memory is the parent's. A tensor that dies here must not be given out again, and an operator
    must not write to it.
    """
    if not cma.mark_forked():
        return  # the parent has not used the device, so the child may
    # Operators ask a storage for its block. Here and not with a test in each of them, because that
    # would cost the parent time.
    storage: Any = CmaStorage
    storage.block = property(_refuse)
    storage.__del__ = lambda self: None


def _refuse(storage: Any) -> Any:
    raise lost_by_fork()
