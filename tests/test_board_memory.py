"""DDR, CMA and buffers of the virtual board, without an overlay."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import os
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pynq_torch.board import mappings
from pynq_torch.board.cma import FreeRanges, Grants
from pynq_torch.board.memory import DDR_BYTES, MIN_ALLOCATION, PAGE, PhysicalMemory
from pynq_torch.errors import BoardError, BufferFreed, BusError, CmaExhausted


@pytest.fixture
def memory():
    made = PhysicalMemory(cma_bytes=1 << 20)
    yield made
    made.close()


def test_buffer_is_zero_page_aligned_and_in_cma(memory):
    buffer = memory.allocate((3, 5), "f4")
    assert buffer.shape == (3, 5) and buffer.dtype == np.float32 and not buffer.any()
    assert buffer.physical_address % PAGE == 0
    assert DDR_BYTES - (1 << 20) <= buffer.physical_address < DDR_BYTES
    buffer[1, 2] = 7
    assert np.frombuffer(memory.view(buffer[1:].physical_address, 20), "f4")[2] == 7


def test_freed_memory_comes_back_zeroed(memory):
    first = memory.allocate(10, "u4")
    first[:] = 5
    address = first.physical_address
    del first
    again = memory.allocate(10, "u4")
    assert again.physical_address == address and not again.any()


def test_exhaustion_names_the_numbers_and_loses_nothing(memory):
    keep = memory.allocate(1 << 19, "u1")
    with pytest.raises(CmaExhausted, match=r"1048576 bytes of contiguous memory .* 1 live buffers"):
        memory.allocate(1 << 20, "u1")
    with pytest.raises(RuntimeError):  # what pynq raises on the board
        memory.allocate(1 << 20, "u1")
    keep[:] = 3
    assert keep.sum() == 3 << 19
    del keep
    gc.collect()
    memory.allocate(1 << 20, "u1")


def test_used_bytes_return_to_zero(memory):
    before = memory.free_bytes
    buffers = [memory.allocate(n, "u1") for n in (1, 4096, 5000, 70000)]
    # 8 KB at least, as on the board, whole pages, and a closed page behind each.
    assert memory.used_bytes == sum(pages + 1 for pages in (2, 2, 2, 18)) * PAGE
    del buffers
    gc.collect()
    assert memory.free_bytes == before


def test_free_ranges_are_split_and_joined():
    free = FreeRanges(100, 200)
    assert (free.nbytes, free.largest) == (100, 100)
    assert [free.take(30, 10), free.take(20, 5), free.take(50, 0)] == [(100, 40), (140, 25), None]
    assert (free.nbytes, free.largest, free.take(33, 5)) == (35, 35, (165, 35))
    assert (free.nbytes, free.largest, free.take(1, 0)) == (0, 0, None)
    for start, nbytes in ((140, 25), (110, 10), (180, 20)):
        free.put_back(start, nbytes)
    assert (free.nbytes, free.largest) == (55, 25)
    assert free._ranges == [(110, 120), (140, 165), (180, 200)]
    free.put_back(120, 20)  # between two
    assert free.take(55, 0) == (110, 55)  # all of the first
    free.put_back(165, 15)  # before one
    free.put_back(100, 10)
    free.put_back(110, 5)  # behind one
    assert free._ranges == [(100, 115), (165, 200)]
    assert [free.take(30, 1), free.take(15, 1)] == [(165, 31), (100, 15)]
    assert (free.nbytes, free.largest) == (4, 4)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 40000), st.booleans()), max_size=40))
def test_allocator_never_overlaps_and_never_leaks(steps):
    memory = PhysicalMemory(cma_bytes=1 << 20)
    live = []
    for nbytes, drop in steps:
        # A full region is allowed, as long as the books balance below.
        with contextlib.suppress(CmaExhausted):
            live.append(memory.allocate(nbytes, "u1"))
        if drop and live:
            live.pop(len(live) // 2).freebuffer()
        spans = sorted((b.bo.address, b.bo.address + b.bo.reserved) for b in live)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
        taken = sum(end - start for start, end in spans)
        assert memory.free_bytes + taken == memory.cma_bytes
    for buffer in live:
        buffer.freebuffer()
    assert memory.free_bytes == memory.cma_bytes
    memory.close()


def test_freed_buffer_says_so_everywhere(memory):
    buffer = memory.allocate(4, "u4")
    view = buffer[1:]
    assert not buffer.freed
    buffer.freebuffer()
    buffer.freebuffer()  # twice is harmless
    assert buffer.freed
    for use in (
        lambda: buffer[0],
        lambda: buffer.__setitem__(0, 1),
        lambda: buffer.physical_address,
        lambda: buffer.flush(),
        lambda: buffer.invalidate(),
        lambda: view[0],
    ):
        with pytest.raises(BufferFreed, match="was freed"):
            use()


_VIEWS = {
    "asarray": np.asarray,
    "slice": lambda buffer: np.asarray(buffer[1:]),
    "memoryview": lambda buffer: np.asarray(memoryview(buffer)),
    "frombuffer": lambda buffer: np.frombuffer(buffer, "u1"),
    "transposed": lambda buffer: buffer.view(np.ndarray).reshape(2, -1).T,
}


@pytest.mark.parametrize("strict_cache", [False, True])
@pytest.mark.parametrize("kind", _VIEWS)
def test_a_view_of_a_freed_buffer_never_reaches_another(kind, strict_cache):
    memory = PhysicalMemory(cma_bytes=1 << 20, strict_cache=strict_cache)
    old = memory.allocate(1000, "u4")
    old[:] = 3
    view = _VIEWS[kind](old)
    values = view.copy()
    old.freebuffer()
    few = [memory.allocate(1000, "u4") for _ in range(3)]  # there is other room
    view[...] = 7
    assert not np.concatenate(few).any()
    del few
    values[...] = view
    every = memory.allocate(memory.cma_bytes, "u1")  # there is none: the view has its own memory
    assert np.array_equal(view, values) and memory.free_bytes == 0
    view[...] = 9
    assert not every.any() and not any(memory.view(every.bo.address, every.nbytes))
    every[:] = 5
    memory.flush(every.bo)
    assert memory.view(every.bo.address, every.nbytes)[4000] == 5 and (view == 9).all()
    every.freebuffer()
    last = memory.allocate(memory.cma_bytes, "u1")
    every.view(np.ndarray)  # a name alone takes no memory away either
    assert not last.any() and (view == 9).all()
    last[:] = 6
    memory.flush(last.bo)
    assert set(memory.view(last.bo.address, last.nbytes)) == {6}
    memory.close()


def test_memory_comes_back_when_the_last_view_has_gone(memory):
    old = memory.allocate(8, "u4")
    address, view = old.physical_address, np.asarray(old)
    old.freebuffer()
    assert memory.used_bytes == 0 and not memory.buffers()  # engines have it no longer
    other = memory.allocate(8, "u4")
    assert other.physical_address != address
    del old, view
    assert memory.allocate(8, "u4").physical_address == address
    for _ in range(300):  # far more than fits: a name that is bound again keeps one buffer
        again = memory.allocate(64 << 10, "u1")
        again.freebuffer()


def test_a_freed_buffer_refuses_writes_without_an_index(memory):
    buffer = memory.allocate(4, "u4")
    buffer.freebuffer()
    for write in (
        lambda: np.add(buffer.view(np.ndarray), 1, out=buffer),
        lambda: buffer.fill(3),
        lambda: np.copyto(buffer, 3),
    ):
        with pytest.raises(ValueError, match=r"read-?only"):
            write()


def test_exhaustion_says_what_a_running_kernel_holds(memory):
    memory.busy = lambda: True
    memory.allocate(1 << 19, "u1").freebuffer()
    with pytest.raises(CmaExhausted, match=r"52\d+ of the free bytes come back when the kernel"):
        memory.allocate(1 << 20, "u1")


def test_result_of_arithmetic_is_no_cma_memory(memory):
    buffer = memory.allocate(4, "u4")
    total = buffer + 1
    assert total.physical_address is None
    for use in (total.flush, total.invalidate):
        with pytest.raises(BusError, match="no CMA memory"):
            use()
    buffer.freebuffer()
    assert total[0] == 1  # it has its own memory and outlives the buffer


def test_memory_freed_while_an_engine_runs_is_not_reused(memory):
    memory.busy = lambda: True
    first = memory.allocate(8, "u1")
    address = first.physical_address
    first.freebuffer()
    del first  # its memory would wait for a view that lives, too
    second = memory.allocate(8, "u1")
    assert second.physical_address != address
    memory.busy = lambda: False
    assert memory.allocate(8, "u1").physical_address == address


def test_strict_cache_is_stale_until_flush_and_invalidate():
    memory = PhysicalMemory(cma_bytes=1 << 20, strict_cache=True)
    device = type(
        "D",
        (),
        {
            "flush": lambda self, bo, *rest: memory.flush(bo),
            "invalidate": lambda self, bo, *rest: memory.invalidate(bo),
        },
    )()
    buffer = memory.allocate(4, "u4", device=device)
    pl = np.frombuffer(memory.view(buffer.physical_address, 16), "u4")
    buffer[:] = 9
    assert not pl.any()
    buffer.flush()
    assert (pl == 9).all()
    pl[:] = 4
    assert (buffer == 9).all()
    buffer.invalidate()
    assert (buffer == 4).all()
    for option in ({"cacheable": False}, {"coherent": True}):
        direct = memory.allocate(4, "u4", device=device, **option)
        direct[:] = 8
        assert (np.frombuffer(memory.view(direct.physical_address, 16), "u4") == 8).all()
    del pl
    memory.close()


def test_overrun_behind_a_buffer_is_found_and_mended(memory):
    buffer = memory.allocate(10, "u1")
    address = buffer.physical_address
    assert memory.overrun(address) is None
    memory.view(address, PAGE)[11] = 0
    assert memory.overrun(address) == address + 11
    assert memory.overrun(address) is None


def test_describe_names_the_nearest_buffer(memory):
    buffer = memory.allocate(100, "i2")
    address = buffer.physical_address
    assert "byte 4 of the buffer" in memory.describe(address + 4)
    assert "which ends 56 bytes before" in memory.describe(address + 256)
    assert "outside the 512 MB of DDR" in memory.describe(0x6000_0000)
    assert "belongs to no buffer; the nearest" in memory.describe(0)
    assert memory.describe(-1).startswith(f"0x{'f' * 16} lies outside the 512 MB of DDR")
    assert "outside the 512 MB of DDR" in memory.describe(DDR_BYTES)
    assert "belongs to no buffer; the nearest" in memory.describe(DDR_BYTES - 1)
    assert f"which starts {address - 8} bytes behind" in memory.describe(8)
    buffer.freebuffer()
    assert "freed buffer" in memory.describe(address + 4)


def test_view_outside_memory_is_a_decode_error(memory):
    with pytest.raises(
        BusError, match="no memory answers at physical address 0x20000000"
    ) as caught:
        memory.view(DDR_BYTES, 4)
    assert caught.value.kind == "decode"


def test_a_window_ends_where_it_says(memory):
    base = 0x4000_0000
    memory.add_window("bram", base, 2 * PAGE)
    memory.view(base + 2 * PAGE - 16, 16)[:] = b"x" * 16
    assert bytes(memory.view(base, 2 * PAGE)[-16:]) == b"x" * 16
    for address, nbytes in ((base + 2 * PAGE - 16, 17), (base - 1, 4), (base + 2 * PAGE, 1)):
        with pytest.raises(BusError, match=f"0x{address:08x}"):
            memory.view(address, nbytes)
    assert memory.describe(base + 2 * PAGE - 1) == f"0x{base + 8191:08x} is byte 8191 of bram"
    assert "bram" not in memory.describe(base + 2 * PAGE)


def test_memory_of_the_pl_is_zero_in_every_overlay(memory):
    base = 0x4000_0000
    for _ in range(2):
        for at in (base, base + (1 << 20)):  # each in a place of its own
            memory.add_window("bram", at, 100)
            assert not any(memory.view(at, PAGE))  # whole pages, as an engine maps them
            memory.view(at, PAGE)[:] = b"x" * PAGE
        assert len(memory.windows) == 3
        memory.drop_windows()
        assert [window.name for window in memory.windows] == ["DDR"]


def test_memory_is_zero_whatever_was_in_it(memory):
    """Freed buffers that are given out again, in pieces or as one, on both sides of a cache."""
    for strict in (False, True):
        ddr = PhysicalMemory(cma_bytes=1 << 20, strict_cache=strict)
        old = [ddr.allocate(3 * PAGE, "u1") for _ in range(4)]
        for buffer in old:
            buffer[:] = 0xFF
            ddr.view(buffer.physical_address, 3 * PAGE)[:] = b"\xff" * (3 * PAGE)
        low = old[0].physical_address
        for buffer in old:
            buffer.freebuffer()
        del buffer, old  # what a name still reaches is handed out last
        sizes = (PAGE, 9 * PAGE + 1, PAGE + 5)
        fresh = [ddr.allocate(size, "u1") for size in sizes]
        assert fresh[0].physical_address == low
        for buffer, size in zip(fresh, sizes, strict=True):
            assert not buffer.any()
            assert not any(ddr.view(buffer.physical_address, size))
        ddr.close()


def test_memory_of_a_board_that_is_gone(memory):
    buffer = memory.allocate(4, "u4")
    buffer[:] = 3
    memory.disown("belongs to another board")
    with pytest.raises(BufferFreed, match="belongs to another board: its values can be"):
        buffer.physical_address  # noqa: B018
    assert buffer.tolist() == [3, 3, 3, 3]
    with pytest.raises(BoardError, match="it belongs to another board; call pynq_torch.use_board"):
        memory.allocate(4)
    buffer.freebuffer()
    with pytest.raises(BufferFreed, match="was freed"):
        buffer[0]


@pytest.mark.parametrize("cma_bytes", [0, PAGE - 1, PAGE + 1, DDR_BYTES // 2 + PAGE])
def test_impossible_sizes_of_cma_are_refused(cma_bytes):
    with pytest.raises(ValueError, match=f"cma_bytes is {cma_bytes}; expected a multiple of 4096"):
        PhysicalMemory(cma_bytes=cma_bytes)


def test_the_smallest_and_the_largest_cma():
    for cma_bytes in (PAGE, DDR_BYTES // 2):
        memory = PhysicalMemory(cma_bytes=cma_bytes)
        assert (memory.cma_base, memory.free_bytes) == (DDR_BYTES - cma_bytes, cma_bytes)
        memory.close()


def test_views_that_had_to_move_share_no_page_with_later_buffers(memory):
    mapping, page = memory._mapping, memory.cma_base + 4 * MIN_ALLOCATION
    assert mapping.place(page, 5) == (mapping._map, page - memory.cma_base)
    others = [memory.allocate(1, "u1") for _ in range(2)]
    old = memory.allocate(2 * PAGE, "u1")
    start, view = old.physical_address, np.asarray(old)
    old.freebuffer()
    rest = memory.allocate(memory.free_bytes - PAGE, "u1")  # only the pages of the view are left
    around = [(-PAGE, PAGE), (-PAGE, PAGE + 1), (0, 1), (PAGE, 1), (2 * PAGE, PAGE)]

    def shared():
        return [mapping.place(start + at, n)[0] is mapping._map for at, n in around]

    assert shared() == [True, False, False, False, True]
    view[:] = 7
    assert not rest.any()
    del old, view
    assert shared() == [True] * 5
    assert others[0].physical_address != others[1].physical_address


def test_a_view_that_cannot_move_keeps_its_memory(memory, monkeypatch):
    assert mappings._libc.mmap(None, 0, 0, 0, -1, 0) == mappings._FAILED  # no bytes: refused
    old = memory.allocate(8, "u4")
    old[:] = 3
    view = np.asarray(old)
    old.freebuffer()
    refuses = SimpleNamespace(mmap=lambda *_: mappings._FAILED)
    with monkeypatch.context() as patch:
        patch.setattr(mappings, "_libc", refuses)
        with pytest.raises(CmaExhausted):
            memory.allocate(memory.cma_bytes, "u1")
    assert view.tolist() == [3] * 8
    every = memory.allocate(memory.cma_bytes, "u1")
    assert view.tolist() == [3] * 8 and not every.any()


def test_engines_see_a_slot_for_every_buffer(memory):
    """What the grants say: a generation, how many slots there are, begin and end of each."""
    assert list(memory._grants._words[:2]) == [0, 0]
    buffers = [memory.allocate(size, "u1") for size in (5, 0, PAGE + 1)]
    found = [
        tuple(memory._grants._words[2 + 2 * slot : 4 + 2 * slot])
        for slot in range(memory._grants._words[1])
    ]
    assert found == [(b.physical_address, b.physical_address + max(b.nbytes, 1)) for b in buffers]
    before = memory._grants._words[0]
    buffers[1].freebuffer()
    assert tuple(memory._grants._words[4:6]) == (0, 0) and memory._grants._words[0] > before
    del buffers[1]
    again = memory.allocate(7, "u1")  # in the slot that is free
    assert (memory._grants._words[1], memory._grants._words[4]) == (3, again.physical_address)


def test_engines_never_read_half_a_grant():
    """Expected: the end is 0 while the begin changes, and the generation comes last."""
    written = []

    class Words(list):
        def __setitem__(self, at, value):
            written.append((at, value))

    grants = Grants()
    assert grants.nbytes == os.fstat(grants.fd).st_size == 16 + (1 << 16) * 16
    grants._words = Words()
    assert [grants.take_slot() for _ in range(3)] == [0, 1, 2]
    grants.grant(2, 5, 9)
    assert written == [(7, 0), (6, 5), (7, 9), (1, 3), (0, 1)]
    grants.free_slot(1)
    assert [grants.take_slot() for _ in range(2)] == [1, 3]
    grants.grant(1, 3, 4)
    assert written[5:] == [(5, 0), (4, 3), (5, 4), (1, 4), (0, 2)]
    os.close(grants.fd)


def test_more_buffers_than_engines_can_be_told_of(memory, monkeypatch):
    monkeypatch.setattr("pynq_torch.board.cma._GRANT_SLOTS", 3)
    buffers = [memory.allocate(1, "u1") for _ in range(3)]
    free = memory.free_bytes
    with pytest.raises(CmaExhausted, match="more than 3 buffers are alive at once"):
        memory.allocate(1, "u1")
    assert memory.free_bytes == free
    buffers.pop().freebuffer()
    assert memory.allocate(1, "u1").tolist() == [0]


@pytest.mark.parametrize(
    "shape, dtype, error, says",
    [
        ((2, -1), "u4", ValueError, r"shape \(2, -1\) has a negative dimension"),
        ((2,), object, TypeError, "cannot hold object: the PL reads bytes"),
    ],
)
def test_impossible_buffers_are_refused(memory, shape, dtype, error, says):
    with pytest.raises(error, match=says):
        memory.allocate(shape, dtype)


def test_empty_buffer_is_allowed(memory):
    buffer = memory.allocate((0, 3), "f4")
    assert buffer.size == 0 and buffer.physical_address
    assert buffer.bo.reserved >= MIN_ALLOCATION


@pytest.mark.parametrize("nbytes", [0, 1, 8])
def test_what_begins_behind_a_buffer_is_not_in_it(memory, nbytes):
    buffer = memory.allocate(16, "u1")
    own = buffer.bo
    buffer.bo = dataclasses.replace(own, nbytes=nbytes)
    last = max(nbytes, 1) - 1
    assert buffer[last:].physical_address == buffer.physical_address + last
    assert buffer[last + 1 :].physical_address is None
    buffer.bo = own


def test_pickling_copies_the_values(memory):
    buffer = memory.allocate(3, "u4")
    buffer[:] = [1, 2, 3]
    copy = pickle.loads(pickle.dumps(buffer))
    assert type(copy) is np.ndarray and copy.tolist() == [1, 2, 3]
