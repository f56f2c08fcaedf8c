"""Memory of device "pynq": CMA buffers that torch takes for its own, and the CPU's view of them.

A tensor on ``"pynq"`` is a plain ``torch.Tensor`` whose storage starts inside a CMA buffer; that
is free again when the last tensor over the storage has gone. The same memory has a CPU tensor
(`alias`), on which the CPU computes what no kernel does: nothing is copied.
"""

from __future__ import annotations

import collections
import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from pynq_torch.buffers.pool import pool_of
from pynq_torch.errors import CmaExhausted, DeviceLost

from .dlpack import CPU, PYNQ, Importable, import_at, is_importable

__all__ = [
    "Block",
    "CmaStorage",
    "alias",
    "allocated_bytes",
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
    "peak_bytes",
    "physical_address",
    "readable",
    "reserved_bytes",
    "resize_storage",
    "share",
    "statistics",
    "storage_of_size",
    "trim",
    "typed_storage",
    "used_device",
    "window",
]

#: A cache line of the Cortex-A9 has 32 bytes; torch's own allocator aligns to 64.
ALIGNMENT = 64
#: Tensors up to a page share arenas: a network has thousands of small ones.
SMALL = 4096
ARENA_BYTES = 1 << 16
#: Idle memory that is kept ready for tensors of the same shape.
KEEP_BYTES = 16 << 20
#: Kinds of tensors (shape, dtype, strides) remembered at most.
KINDS = 4096

_forked = False


class Memory:
    """A stretch of CMA memory; goes back where it came from with the last reference.

    Parameters
    ----------
    owner : PynqBuffer or _Arena
        Kept alive.
    device : pynq.Device
        Whose memory.
    offset : int
        Bytes from the start of the owner.
    nbytes : int
        Size with rounding.
    """

    __slots__ = (
        *("_free", "_lines", "_window"),
        *("address", "device", "nbytes", "offset", "owner", "physical"),
    )

    def __init__(self, owner: Any, device: Any, offset: int, nbytes: int) -> None:
        self._free = owner.free if isinstance(owner, _Arena) else None
        buffer = owner.buffer if isinstance(owner, _Arena) else owner
        self._window: Any = None
        self._lines: tuple[Any, ...] | None = None
        self.owner = owner
        self.device = device
        self.offset = offset
        self.nbytes = nbytes
        self.address = int(buffer.virtual_address) + offset
        self.physical = int(buffer.device_address) + offset

    @property
    def window(self) -> Any:
        """The PynqBuffer over just this memory."""
        if self._window is None:
            arena = isinstance(self.owner, _Arena)
            end = self.offset + self.nbytes
            self._window = self.owner.buffer[self.offset : end] if arena else self.owner
        return self._window

    def flush(self) -> None:
        """Write the CPU's cache back, where nothing keeps it coherent.

        As `PynqBuffer.flush`, which looks everything up and asks whether it was freed: a quarter
        of what a small product costs.
        """
        lines = self._lines
        if lines is None:
            lines = self._look_up()
        if lines:
            self.device.flush(*lines)

    def invalidate(self) -> None:
        """Drop the CPU's cache, where nothing keeps it coherent."""
        lines = self._lines
        if lines is None:
            lines = self._look_up()
        if lines:
            self.device.invalidate(*lines)

    def _look_up(self) -> tuple[Any, ...]:
        buffer = self.window
        own = (buffer.bo, buffer.offset, buffer.virtual_address, buffer.nbytes)
        self._lines = () if buffer.coherent else own
        return self._lines

    def __del__(self) -> None:
        free = self._free
        if free is not None:
            free.append(self.offset)


class Lent(Memory):
    """A CMA buffer of somebody else, who may free it."""

    __slots__ = ()

    def flush(self) -> None:
        """Write the CPU's cache back."""
        self.window.flush()

    def invalidate(self) -> None:
        """Drop the CPU's cache."""
        self.window.invalidate()


class _Arena:
    """A CMA buffer cut into pieces of one size."""

    def __init__(self, buffer: Any, piece: int) -> None:
        self.buffer = buffer
        self.free = list(range(0, ARENA_BYTES, piece))
        self.pieces = len(self.free)


class Idle(list["Block"]):
    """Blocks of one kind that wait for the next tensor.

    Attributes
    ----------
    open : bool
        ``False`` once it is no longer looked at: blocks that come back are given up.
    """

    open = True


class Block:
    """Memory prepared for tensors of one shape, strides and dtype.

    Attributes
    ----------
    cpu : torch.Tensor
        The memory as a CPU tensor.
    shape, dtype : torch.Size and torch.dtype
        Of that tensor.
    row_major : bool
        Whether its elements lie in order.
    at : int
        Address of the description that torch imports.
    idle : Idle
        Where it waits for the next tensor of its kind; all blocks of a kind share the list.
    memory : Memory or None
        ``None`` where torch itself made a storage over memory of this device, as ``torch.load`` of
        an old file does for the time of a copy.
    """

    __slots__ = (
        "_described",
        "array",
        "at",
        "cpu",
        "dtype",
        "idle",
        "memory",
        "row_major",
        "shape",
    )

    def __init__(
        self,
        memory: Memory | None,
        address: int,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: torch.dtype,
        idle: Idle,
    ) -> None:
        self._described = Importable(address, shape, strides, dtype, PYNQ)
        self.at = self._described.at
        self.cpu = Importable(address, shape, strides, dtype, CPU).tensor()
        self.shape = self.cpu.shape
        self.dtype = dtype
        self.row_major = self.cpu.is_contiguous()
        #: Its elements in a row, as numpy has them, for those who ask more than once.
        self.array: Any = None
        self.idle = idle
        self.memory = memory

    def spoil(self) -> None:
        """Keep the block from other tensors: `cpu` was described in another way by a kernel."""
        self.idle = Idle()
        self.idle.open = False


class CmaStorage(torch.UntypedStorage):
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

    block: Block
    writes = 0
    packed: dict[Any, Any] | None = None
    marked = False
    shared = False

    def __del__(self) -> None:
        # No lock: the collector may run this anywhere, also inside a locked region.
        global _idle_bytes
        block = self.block
        _in_use.discard(block)
        memory = block.memory
        if memory is None or memory.device is not _device_ref():
            return
        if block.idle.open and _idle_bytes + memory.nbytes <= KEEP_BYTES:
            _idle_bytes += memory.nbytes
            block.idle.append(block)

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


def storage_of_size(cls: type, *args: Any, **kwargs: Any) -> Any:
    """Stand in for ``torch.UntypedStorage.__new__``, which asks an allocator in C++ for memory.

    Where a device has no such allocator, torch ends the process.
    """
    device = kwargs.get("device")
    if device is None or torch.device(device).type != "pynq":
        return _plain_new(cls, *args, **kwargs)
    values = list(args[0]) if args and not isinstance(args[0], int) else None
    nbytes = (int(args[0]) if args else 0) if values is None else len(values)
    made = new((nbytes,), torch.uint8)
    if values is not None:
        block_of(made).cpu.copy_(torch.tensor(values, dtype=torch.uint8))
    return made.untyped_storage()


_plain_new: Any = torch.UntypedStorage.__new__


def from_bytes(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """Return a storage on device "pynq" with the bytes of a storage on the CPU or on "pynq"."""
    flat = new((storage.nbytes(),), torch.uint8)
    block_of(flat).cpu.copy_(_bytes(storage))
    return flat.untyped_storage()


def typed_storage(self: torch.TypedStorage, untyped: torch.UntypedStorage) -> Any:
    """Stand in for ``torch.TypedStorage._new_wrapped_storage``, which refuses any subclass.

    ``copy.deepcopy`` finds the copy of a storage in its memo, as a `CmaStorage`, for every further
    tensor over that storage.
    """
    if not isinstance(untyped, CmaStorage) or type(self) is not torch.TypedStorage:
        return _plain_typed(self, untyped)
    make: Any = torch.TypedStorage
    return make(wrap_storage=untyped, dtype=self.dtype, _internal=True)


_plain_typed: Any = torch.TypedStorage._new_wrapped_storage


#: PyTorch 2.13 can give a storage other memory, in two steps by way of an empty one.
_CAN_SWAP = hasattr(torch.UntypedStorage, "_swap_data_ptr_")
#: Who holds a storage that one tensor has: that tensor, and the storage's Python object.
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
            f"the tensor lies in a CMA buffer of {storage.nbytes()} bytes that was given to "
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


def _bytes(storage: Any) -> torch.Tensor:
    start, nbytes = storage.data_ptr(), storage.nbytes()
    return Importable(start, (nbytes,), (1,), torch.uint8, CPU).tensor()


_lock = threading.RLock()
_ready: dict[Any, Idle] = {}
#: Blocks of live storages. When a storage dies as part of a cycle, the collector finalizes all that
#: it alone reaches: without this the memory of a block that goes to `Idle` would be freed as well.
_in_use: set[Block] = set()
_idle_bytes = 0
_reserved = _peak = 0
#: Sizes that have gone back to CMA. A deque and no lock: finalizers run anywhere.
_returned: collections.deque[int] = collections.deque()
_arenas: dict[int, list[_Arena]] = {}


def _no_device() -> Any:
    return None


_device_ref: Any = _no_device


# ---- allocation ----------------------------------------------------------------------------------


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
    idle = _ready.get((shape, dtype))
    block = _reuse(idle) if idle else None
    return _tensor(block or _make(tuple(shape), dtype, None))


def new_strided(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor on device "pynq" with given strides (in elements), not initialised."""
    if tuple(strides) == _row_major(shape):
        return new(tuple(shape), dtype)
    idle = _ready.get((tuple(shape), dtype, tuple(strides)))
    block = _reuse(idle) if idle else None
    return _tensor(block or _make(tuple(shape), dtype, tuple(strides)))


def new_like(block: Block) -> torch.Tensor:
    """Return a tensor of the shape, strides and dtype of a block, not initialised."""
    made = _reuse(block.idle) if block.idle else None
    if made is None:
        strides = None if block.row_major else tuple(block.cpu.stride())
        made = _make(tuple(block.shape), block.dtype, strides)
    return _tensor(made)


def _reuse(idle: Idle) -> Block | None:
    global _idle_bytes
    try:
        block = idle.pop()
    except IndexError:  # another thread took the last one
        return None
    assert block.memory is not None
    _idle_bytes -= block.memory.nbytes
    return block


def _tensor(block: Block) -> torch.Tensor:
    result = import_at(block.at)
    storage = result.untyped_storage()
    storage.__class__ = CmaStorage
    storage.block = block  # type: ignore[attr-defined]
    _in_use.add(block)
    return result


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    steps = itertools.accumulate((max(n, 1) for n in reversed(shape[1:])), int.__mul__, initial=1)
    return tuple(reversed(list(steps))) if shape else ()


def _make(shape: tuple[int, ...], dtype: torch.dtype, strides: tuple[int, ...] | None) -> Block:
    if not is_importable(dtype):
        raise NotImplementedError(
            f"device 'pynq' has no tensors of dtype {dtype}: DLPack, by which torch takes CMA "
            "memory, does not know it; convert with .to(...), or keep the tensor on the CPU"
        )
    if any(n < 0 for n in shape):
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}"
        )
    steps = _row_major(shape) if strides is None else strides
    span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    memory = _take(span * dtype.itemsize, shape, dtype)
    if len(_ready) > KINDS:
        _give_up()
    key = (shape, dtype) if strides is None else (shape, dtype, strides)
    return Block(memory, memory.address, shape, steps, dtype, _ready.setdefault(key, Idle()))


def _take(nbytes: int, shape: Sequence[int], dtype: torch.dtype) -> Memory:
    """Take memory from CMA; where it is exhausted, also what only a cycle of references holds."""
    if _forked:
        raise _lost_by_fork()
    with _lock:
        device = _use_device()
        try:
            return _place(nbytes, device)
        except CmaExhausted:
            gc.collect()
        try:
            return _place(nbytes, device)
        except CmaExhausted as error:
            raise CmaExhausted(
                f"no room in CMA for a tensor {list(shape)} of {dtype} ({nbytes} bytes) on device "
                f"'pynq': its tensors hold {allocated_bytes()} bytes now. {error}"
            ) from error


def _place(nbytes: int, device: Any) -> Memory:
    global _reserved, _peak
    size = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
    if size > SMALL:
        buffer = pool_of(device).take((size,), _uint8())
        memory = Memory(buffer, device, 0, size)
        _reserved += size
        weakref.finalize(buffer, _returned.append, size).atexit = False
    else:
        piece = 1 << (size - 1).bit_length()
        arenas = _arenas.setdefault(piece, [])
        arena = next((a for a in reversed(arenas) if a.free), None)
        if arena is None:
            arena = _Arena(pool_of(device).take((ARENA_BYTES,), _uint8()), piece)
            arenas.append(arena)
            _reserved += ARENA_BYTES
            weakref.finalize(arena, _returned.append, ARENA_BYTES).atexit = False
        memory = Memory(arena, device, arena.free.pop(), piece)
    _peak = max(_peak, allocated_bytes())
    return memory


def _uint8() -> Any:
    import numpy as np

    return np.dtype(np.uint8)


def _settle() -> None:
    """Count what has come back. Under the lock."""
    global _reserved, _idle_bytes
    while _returned:
        _reserved -= _returned.popleft()
    # Counted on the way without a lock, so it may have drifted.
    _idle_bytes = sum(b.memory.nbytes for b in _waiting())


def at_first_use(prepare: Callable[[], None]) -> None:
    """Call `prepare` before the first tensor is made."""
    _preparations.append(prepare)


_preparations: list[Callable[[], None]] = []


def _use_device() -> Any:
    """Return the pynq device whose memory new tensors take; forget what an earlier one lent."""
    global _device_ref
    from pynq_torch.board import ensure_board

    while _preparations:
        _preparations.pop()()

    device = ensure_board()
    if getattr(device, "closed", False):
        raise DeviceLost(
            "device 'pynq' has no board: the one it used was closed. Choose one with "
            "pynq_torch.use_board(); tensors that were made before can be read, and used again then"
        )
    if device is not _device_ref():
        _device_ref = weakref.ref(device)
        _forget()
        # Others who ask for CMA memory are to have what only waits here.
        pool_of(device).reclaim = trim
        if hasattr(device, "on_close"):
            device.on_close(_forget)
    return device


def used_device() -> Any:
    """Return the pynq device that tensors took memory from last, or ``None``."""
    return _device_ref()


def _forget() -> None:
    _give_up()
    _arenas.clear()


def _give_up() -> None:
    """Let go of every idle block."""
    global _idle_bytes
    kinds = list(_ready.values())
    _ready.clear()
    for idle in kinds:
        idle.open = False
        idle.clear()
    _idle_bytes = 0


def trim() -> int:
    """Give idle memory back to CMA; return how many bytes that were."""
    from pynq_torch import buffers

    device = _device_ref()
    with _lock:
        before = reserved_bytes()
        _give_up()
        for arenas in _arenas.values():
            arenas[:] = [a for a in arenas if len(a.free) < a.pieces]
        if device is not None:
            buffers.trim(device)
        return before - reserved_bytes()


# ---- the CPU's view ------------------------------------------------------------------------------


def block_of(tensor: torch.Tensor) -> Block:
    """Return the block that the storage of a tensor on device "pynq" lies in."""
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
        Same shape, strides and dtype on the CPU. It must not be resized.

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
        cpu = block.cpu
        if block.dtype is not tensor.dtype:
            count = storage.nbytes() // tensor.dtype.itemsize
            cpu = Importable(storage.data_ptr(), (count,), (1,), tensor.dtype, CPU).tensor()
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


def note_write(tensor: torch.Tensor) -> None:
    """Count a write to a tensor on device "pynq"."""
    storage: Any = tensor.untyped_storage()
    storage.writes += 1


def held(tensor: torch.Tensor) -> Memory:
    """Return the memory of a tensor's storage, to flush and invalidate."""
    found = block_of(tensor).memory
    if found is None:
        raise ValueError("the storage of this tensor was not taken from CMA")
    return found


def window(tensor: torch.Tensor) -> Any:
    """Return the PynqBuffer over the memory of a tensor's storage."""
    return held(tensor).window


def from_cma(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor on device "pynq" over the memory of a CPU tensor that lies in a CMA buffer.

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
            "the tensor does not lie in CMA memory; use tensor.to('pynq'), which copies it there"
        )
    lent = Lent(buffer, buffer.device, 0, buffer.nbytes)
    shape, strides = tuple(tensor.shape), tensor.stride()
    # Not for reuse by other tensors: the buffer is somebody else's as well.
    idle = Idle()
    idle.open = False
    result = _tensor(Block(lent, lent.address, shape, strides, tensor.dtype, idle))
    share(result)
    return result


def share(tensor: torch.Tensor) -> None:
    """Note that the memory of a tensor on device "pynq" may be written without an operator.

    Its storage is packed again for each call of a kernel from then on.
    """
    storage: Any = tensor.untyped_storage()
    storage.shared = True


def physical_address(tensor: torch.Tensor) -> int:
    """Return the physical address of a tensor's first element, as a kernel's register takes it."""
    return held(tensor).physical + int(tensor.storage_offset()) * tensor.element_size()


# ---- statistics ----------------------------------------------------------------------------------


def _waiting() -> list[Any]:
    return [block for idle in list(_ready.values()) for block in list(idle)]


def _idle() -> int:
    ready: int = sum(b.memory.nbytes for b in _waiting())
    pieces = sum(
        len(a.free) * (ARENA_BYTES // a.pieces) for arenas in list(_arenas.values()) for a in arenas
    )
    return ready + pieces


def allocated_bytes() -> int:
    """Return the bytes that live tensors hold, with rounding."""
    with _lock:
        _settle()
        return _reserved - _idle()


def reserved_bytes() -> int:
    """Return the bytes taken from CMA: live tensors, and what is kept ready."""
    with _lock:
        _settle()
        return _reserved


def peak_bytes(reset: bool = False) -> int:
    """Return the most bytes that tensors held, as seen whenever memory was taken from CMA."""
    global _peak
    with _lock:
        peak = max(_peak, allocated_bytes())
        if reset:
            _peak = allocated_bytes()
        return peak


def statistics() -> dict[str, int]:
    """Return the counts behind ``torch.pynq.memory_stats()``."""
    with _lock:
        blocks = sum(map(len, _ready.values()))
        return {
            "allocated_bytes.all.current": allocated_bytes(),
            "allocated_bytes.all.peak": peak_bytes(),
            "reserved_bytes.all.current": _reserved,
            "inactive_blocks.all.current": blocks,
            "arenas.all.current": sum(map(len, _arenas.values())),
        }


def mark_forked() -> None:
    """Note that this process is a forked child: it may read its parent's tensors, nothing else.

    The memory is the parent's. A tensor that dies here must not be given out again, and an operator
    must not write to it.
    """
    global _forked, _lock, _device_ref
    if _device_ref() is None:
        return  # the parent has not used the device, so the child may
    _forked = True
    _lock = threading.RLock()  # another thread of the parent may have held it
    _device_ref = _no_device
    _ready.clear()
    # Operators ask a storage for its block. Here and not with a test in each of them, because that
    # would cost the parent time.
    storage: Any = CmaStorage
    storage.block = property(_refuse)
    storage.__del__ = _leave


def _refuse(storage: Any) -> Any:
    raise _lost_by_fork()


def _leave(storage: Any) -> None:
    return None


def _lost_by_fork() -> DeviceLost:
    return DeviceLost(
        "this process was forked from one that used device 'pynq': a board has one user. Use the "
        "device in the parent, or start workers with multiprocessing's 'spawn' method "
        "(DataLoader: return CPU tensors from the workers); tensors from before the fork can be "
        "read with .cpu()"
    )


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """Return the CPU's view of a tensor on device "pynq", to read from: also in a forked child."""
    if not _forked:
        return alias(tensor)
    storage: Any = tensor.untyped_storage()
    count = storage.nbytes() // tensor.element_size()
    flat = Importable(storage.data_ptr(), (count,), (1,), tensor.dtype, CPU).tensor()
    view = torch.as_strided(flat, tensor.shape, tensor.stride(), tensor.storage_offset())
    return _marked(tensor, view)


def in_forked_child() -> bool:
    """Whether this process was forked from one that used the device."""
    return _forked
