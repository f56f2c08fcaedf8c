"""Starts with ready integers: the same run, caches where they are asked for, clear refusals."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import KERNELS
from hypothesis import given, settings
from hypothesis import strategies as st

import pynq_torch
from pynq_torch import buffers
from pynq_torch.errors import KernelBusy, StaleOverlay
from pynq_torch.kernels.registers import Layout, Parameter
from pynq_torch.overlay import ensure_event_loop

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def overlay() -> Iterator[Any]:
    # With a cache that nothing keeps coherent: a flush left out gives a wrong result.
    board = pynq_torch.use_board("csim", strict_cache=True)
    ensure_event_loop()
    yield pynq_torch.load("gemm")
    board.close()


class Operands:
    """a, b and c of a small product, in CMA memory."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.a, self.b = buffers.empty((5, 7), "int8"), buffers.empty((7, 9), "int8")
        self.a[:], self.b[:] = random.integers(-9, 9, (5, 7)), random.integers(-9, 9, (7, 9))
        self.c = buffers.empty((5, 9), "int32")
        self.c[:] = -1
        self.expected = np.asarray(self.a, np.int32) @ np.asarray(self.b, np.int32)

    @property
    def values(self) -> list[int]:
        pointers = [int(o.physical_address) for o in (self.a, self.b, self.c)]
        return [*pointers, 5, 9, 7, 7, 9, 9]


def test_run_raw_is_the_same_run(overlay: Any) -> None:
    o = Operands(1)
    overlay.gemm.run_raw(*o.values, flush=(o.a, o.b, o.c), results=(o.c,))
    assert np.array_equal(o.c, o.expected)
    same = Operands(1)
    overlay.gemm.start_product(same.a, same.b, same.c).wait()
    assert np.array_equal(same.c, o.expected)


def test_what_is_not_flushed_is_not_seen(overlay: Any) -> None:
    o = Operands(2)
    overlay.gemm.run_raw(*o.values, flush=(o.a, o.b, o.c), results=(o.c,))
    o.a[:] = 0
    overlay.gemm.run_raw(*o.values, results=(o.c,))
    assert np.array_equal(o.c, o.expected)  # the kernel read what memory held
    overlay.gemm.run_raw(*o.values, flush=(o.a,))
    assert np.array_equal(o.c, o.expected)  # the CPU reads what its cache held
    o.c.invalidate()
    assert not o.c.any()


def test_what_is_held_lives_until_the_end(overlay: Any) -> None:
    class Owner:
        pass

    o, owner = Operands(3), Owner()
    seen = weakref.ref(owner)
    values = [*o.values, 0, 0, 0]
    run = overlay.gemm.start_raw(values, held=[owner], flush=(o.a, o.b, o.c), results=[o.c])
    del owner
    gc.collect()
    assert seen() is not None
    run.wait()
    gc.collect()
    assert seen() is None
    assert np.array_equal(o.c, o.expected)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda v: v[:-1], TypeError, "found 11 values; expected 12: a, b, c, m, n, k"),
        (lambda v: [*v[:3], 1 << 32, *v[4:]], OverflowError, f"m has 32 bits, .* {1 << 32}"),
        (lambda v: [*v[:3], -1, *v[4:]], OverflowError, "m has 32 bits, unsigned; found -1"),
        (lambda v: [*v[:3], 2.0, *v[4:]], TypeError, "m is float; expected an int"),
    ],
)
def test_refused_values(overlay: Any, change: Any, error: type[Exception], text: str) -> None:
    o = Operands(4)
    with pytest.raises(error, match=text):
        overlay.gemm.start_raw(change([*o.values, 0, 0, 0]))
    assert overlay.gemm.is_idle()
    overlay.gemm.run_raw(*o.values, flush=(o.a, o.b, o.c), results=(o.c,))
    assert np.array_equal(o.c, o.expected)


def test_numpy_integers_are_integers(overlay: Any) -> None:
    o = Operands(5)
    values = [*map(np.int64, o.values)]
    overlay.gemm.run_raw(*values, flush=(o.a, o.b, o.c), results=(o.c,))
    assert np.array_equal(o.c, o.expected)
    with pytest.raises(OverflowError, match="m has 32 bits, unsigned; found -1"):
        overlay.gemm.run_raw(*values[:3], np.int64(-1), *values[4:])


def test_a_unit_at_work_is_refused_before_anything_is_written(overlay: Any) -> None:
    gemm, o = overlay.gemm, Operands(6)
    run = gemm.start_raw([*o.values, 0, 0, 0], flush=(o.a, o.b, o.c), results=[o.c])
    caught: list[BaseException] = []

    def other() -> None:
        try:
            gemm.run_raw(*[0] * 9)
        except KernelBusy as error:
            caught.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    run.wait()
    assert len(caught) == 1
    assert np.array_equal(o.c, o.expected)


def test_arrays_in_registers_take_the_long_way(
    overlay: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from helpers import write_overlay

    from pynq_torch.overlay import load

    bit = write_overlay(tmp_path, {"arrays_0": "arrays"})
    monkeypatch.setenv("PYNQ_TORCH_KERNELS", str(KERNELS))
    board = pynq_torch.use_board("csim")
    try:
        unit = load(bit).arrays_0
        with pytest.raises(TypeError, match=r"arrays_0\(.*\): the arguments are no single run"):
            unit.start_raw([])
    finally:
        board.close()


def test_another_overlay_was_loaded() -> None:
    board = pynq_torch.use_board("csim")
    ensure_event_loop()
    gemm = pynq_torch.load("gemm").gemm
    pynq_torch.load("vadd")
    with pytest.raises(StaleOverlay, match="no longer loaded"):
        gemm.run_raw(*[0] * 9)
    board.close()


@given(sizes=st.lists(st.sampled_from([4, 8]), min_size=1, max_size=9), data=st.data())
@settings(max_examples=60)
def test_a_layout_puts_every_argument_in_its_place(sizes: list[int], data: st.DataObject) -> None:
    """Against registers filled one by one; what lies between them takes a zero."""
    at, run, values = 16, [], []
    expected = np.zeros(256, np.uint8)
    for index, nbytes in enumerate(sizes):
        run.append(Parameter(f"x{index}", at, nbytes // 4, "in", nbytes))
        values.append(data.draw(st.integers(0, 2 ** (8 * nbytes) - 1)))
        expected[at : at + nbytes] = list(values[-1].to_bytes(nbytes, "little"))
        at += nbytes + data.draw(st.sampled_from([4, 8]))
    layout = Layout(run)
    encoded = [v.to_bytes(n, "little") for v, n in zip(values, sizes, strict=True)]
    for words in (layout.of_integers(values), layout.of_bytes(encoded)):
        assert np.array_equal(expected.view(np.uint32)[layout.span], words)
    assert layout.span.start == 4
