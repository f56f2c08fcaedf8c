"""Tensors in CMA memory: no copy where memory allows, nothing lost, nothing leaked."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pynq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pynq_torch
from pynq_torch import buffers
from pynq_torch.board.device import VirtualBoard
from pynq_torch.buffers.pool import PAGE, size_class
from pynq_torch.errors import BufferFreed, CmaExhausted

DTYPES = [
    *(torch.float16, torch.float32, torch.float64, torch.bfloat16, torch.bool, torch.uint8),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.complex64),
]


@pytest.fixture(scope="module")
def shared() -> Iterator[VirtualBoard]:
    board = pynq_torch.use_board("csim", cma_bytes=16 << 20)
    assert isinstance(board, VirtualBoard)
    yield board
    board.close()


@pytest.fixture
def board(shared: VirtualBoard) -> VirtualBoard:
    gc.collect()
    buffers.trim()
    return shared


@given(
    shape=st.lists(st.integers(0, 7), max_size=4).map(tuple),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60)
def test_round_trip(shared: VirtualBoard, shape: tuple[int, ...], dtype: Any, seed: int) -> None:
    torch.manual_seed(seed)
    tensor = (torch.randn(shape) * 50).to(dtype)
    buffer = buffers.to_buffer(tensor)
    assert buffer.shape == tensor.shape
    assert buffer.physical_address % PAGE == 0
    back = buffers.as_tensor(buffer, dtype)
    assert torch.equal(back, tensor)
    again = buffers.to_buffer(back)  # it lies there already
    assert again.size == 0 or again.physical_address == buffer.physical_address


@given(data=st.data())
@settings(max_examples=60)
def test_views_keep_their_place(shared: VirtualBoard, data: st.DataObject) -> None:
    tensor = buffers.empty_tensor((6, 8, 5), torch.int32)
    tensor.copy_(torch.arange(240).reshape(6, 8, 5))
    view = tensor
    for axis in range(3):
        start = data.draw(st.integers(0, tensor.shape[axis] - 1))
        step = data.draw(st.integers(1, 3))
        view = view[(slice(None),) * axis + (slice(start, None, step),)]
    view = view.permute(data.draw(st.permutations(range(3))))
    found = buffers.buffer_of(view)
    assert np.array_equal(np.asarray(found), view.numpy())
    offset = (view.data_ptr() - tensor.data_ptr()) % tensor.nbytes
    assert found.physical_address == buffers.buffer_of(tensor).physical_address + offset
    copy = buffers.to_buffer(view)
    assert copy.flags.c_contiguous
    assert np.array_equal(np.asarray(copy), view.numpy())


def test_ordinary_memory_is_not_cma(board: VirtualBoard) -> None:
    assert buffers.buffer_of(torch.zeros(4)) is None
    assert buffers.buffer_of(np.zeros(4)) is None
    assert not buffers.is_cma(buffers.empty(4) + 1)
    assert buffers.is_cma(pynq.allocate(4))


def test_a_tensor_over_pynqs_own_buffer(board: VirtualBoard) -> None:
    buffer = pynq.allocate((3, 4), "f4")
    tensor = buffers.as_tensor(buffer)
    tensor.fill_(2)
    assert float(buffer.sum()) == 24
    del buffer
    gc.collect()
    assert float(tensor.sum()) == 24


def test_memory_returns_to_the_pool_and_to_cma(board: VirtualBoard) -> None:
    before = board.memory.used_bytes
    first = buffers.empty((100, 100))
    address = first.physical_address
    view, tensor = first[3:], buffers.as_tensor(first)
    del first
    assert buffers.statistics().used_buffers == 1
    del view
    assert buffers.statistics().used_buffers == 1
    del tensor
    assert buffers.statistics().used_buffers == 0
    assert buffers.empty((100, 99)).physical_address == address
    buffers.trim()
    gc.collect()
    assert board.memory.used_bytes == before


def test_ten_thousand_buffers_leave_nothing(board: VirtualBoard) -> None:
    before = board.memory.used_bytes
    for i in range(10_000):
        buffers.empty(i % 3000, "u1")
    buffers.trim()
    gc.collect()
    assert board.memory.used_bytes == before
    assert buffers.statistics().used_bytes == 0


def test_the_pool_is_bounded(board: VirtualBoard) -> None:
    pool = buffers.pool_of()
    kept, pool.keep_bytes = pool.keep_bytes, 3 * PAGE
    try:
        many = [buffers.empty(PAGE, "u1") for _ in range(10)]
        del many
        assert buffers.statistics().idle_bytes <= 3 * PAGE
    finally:
        pool.keep_bytes = kept


def test_exhaustion_names_the_numbers_and_recovers(board: VirtualBoard) -> None:
    held = buffers.empty(9 << 20, "u1")
    with pytest.raises(
        CmaExhausted, match=r"contiguous memory for uint8\[9437184\].*lent 10485760 bytes"
    ):
        buffers.empty(9 << 20, "u1")
    with pytest.raises(CmaExhausted):
        buffers.empty((1 << 20, 1 << 20))
    del held
    buffers.empty(9 << 20, "u1")  # the idle memory of another size is given back first
    buffers.empty(10 << 20, "u1")


@pytest.mark.parametrize(
    "use",
    [
        lambda b: b.physical_address,
        lambda b: b[0],
        lambda b: b.__setitem__(0, 1),
        lambda b: b.flush(),
        lambda b: b.invalidate(),
        lambda b: buffers.as_tensor(b),
        lambda b: buffers.to_buffer(b),
    ],
)
@pytest.mark.parametrize("pooled", [True, False])
def test_a_freed_buffer_is_noticed(board: VirtualBoard, use: Any, pooled: bool) -> None:
    buffer = buffers.empty(8) if pooled else pynq.allocate(8)
    buffer.freebuffer()
    buffer.freebuffer()  # twice does no harm
    with pytest.raises(BufferFreed, match=r"freed|freebuffer"):
        use(buffer)


def test_a_tensor_over_a_freed_buffer_is_noticed(board: VirtualBoard) -> None:
    buffer = pynq.allocate(8)
    tensor = buffers.as_tensor(buffer)
    buffer.freebuffer()
    with pytest.raises(BufferFreed):
        buffers.to_buffer(tensor)


def test_with_gives_back(board: VirtualBoard) -> None:
    with buffers.empty(8) as buffer:
        assert buffer.physical_address
    assert buffers.statistics().used_buffers == 0


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize(
    "view_of",
    [
        np.asarray,
        lambda b: torch.from_numpy(np.asarray(b)),
        lambda b: buffers.as_tensor(b)[2:],
        lambda b: np.asarray(memoryview(b)),
    ],
)
def test_a_view_of_a_freed_buffer_writes_to_no_other(
    board: VirtualBoard, view_of: Any, pooled: bool
) -> None:
    make = buffers.empty if pooled else pynq.allocate
    old = make(1000, "float32")
    view = view_of(old)
    old.freebuffer()
    assert not [b for b in board.memory.buffers() if b.address == old.bo.address]
    others = [make(1000, "float32") for _ in range(4)]
    for other in others:
        other[:] = 1
    view[...] = 7
    assert all((other == 1).all() for other in others)
    del old, view, others, other
    board.allocate(board.memory.cma_bytes, "u1")  # nothing leaked


def test_dtypes_without_a_place(board: VirtualBoard) -> None:
    with pytest.raises(TypeError, match="int_repr"):
        buffers.numpy_dtype(torch.qint8)
    with pytest.raises(TypeError, match="complex32"):
        buffers.empty(4, torch.complex32)
    with pytest.raises(TypeError, match="Python objects"):
        buffers.to_buffer(np.array([object()]))
    with pytest.raises(ValueError, match="negative"):
        buffers.empty((3, -1))


def test_tensors_elsewhere_are_refused(board: VirtualBoard) -> None:
    with pytest.raises(pynq_torch.errors.PynqTorchError, match="device 'meta'"):
        buffers.to_buffer(torch.zeros(3, device="meta"))
    with pytest.raises(pynq_torch.errors.PynqTorchError, match="to_dense"):
        buffers.to_buffer(torch.eye(3).to_sparse())
    with pytest.raises(pynq_torch.errors.PynqTorchError, match="no CMA memory"):
        buffers.flush(torch.zeros(3))


def test_conjugate_and_negative_views(board: VirtualBoard) -> None:
    tensor = torch.tensor([1 + 2j, 3 - 4j])
    tensor = buffers.as_tensor(buffers.to_buffer(tensor))
    assert torch.equal(buffers.as_tensor(buffers.to_buffer(tensor.conj())), tensor.conj())
    assert torch.equal(buffers.as_tensor(buffers.to_buffer(tensor.conj().imag)), tensor.conj().imag)


def test_threads_share_the_pool(board: VirtualBoard) -> None:
    wrong: list[str] = []

    def work(seed: int) -> None:
        for i in range(200):
            buffer = buffers.empty(64 + (i * seed) % 500, "i4")
            buffer[:] = seed
            if not (np.asarray(buffer) == seed).all():
                wrong.append(f"thread {seed}, round {i}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert buffers.statistics().used_buffers == 0


@given(st.integers(0, 1 << 30))
def test_size_classes(nbytes: int) -> None:
    size = size_class(nbytes)
    assert size >= max(nbytes, 1)
    assert size % PAGE == 0
    assert size <= max(nbytes * 1.25, nbytes + PAGE, PAGE)
    assert size_class(size) == size


def test_importing_the_package_imports_neither_torch_nor_pynq() -> None:
    code = "import sys, pynq_torch; sys.exit(bool({'torch', 'pynq', 'numpy'} & set(sys.modules)))"
    environment = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == 0
