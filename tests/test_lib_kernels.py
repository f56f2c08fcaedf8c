"""Typed drivers on the virtual board: exact results, clear refusals, nothing lost."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pynq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pynq_torch
from pynq_torch import buffers
from pynq_torch.errors import (
    ArgumentError,
    BitstreamError,
    BufferFreed,
    HandoffError,
    KernelBusy,
    KernelError,
    KernelTimeout,
)
from pynq_torch.kernels import parameters_of, split_gemm
from pynq_torch.kernels.base import StaleOverlay
from pynq_torch.kernels.registers import blocks
from pynq_torch.kernels.share import share
from pynq_torch.overlay import ensure_event_loop

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def board() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    yield board
    board.close()


@pytest.fixture(autouse=True)
def _event_loop() -> None:
    ensure_event_loop()  # upstream's drivers need one where interrupts are connected


class Loaded:
    """Loads an overlay only if another one is loaded: loading is not what most tests are about."""

    def __init__(self) -> None:
        self.overlay: Any = None

    def __call__(self, name: str) -> Any:
        if self.overlay is None or self.overlay.name != name or not self.overlay.is_loaded():
            self.overlay = pynq_torch.load(name)
        return self.overlay


@pytest.fixture(scope="module")
def loaded(board: Any) -> Loaded:
    return Loaded()


def _int8(*shape: int, cma: bool = False) -> torch.Tensor:
    values = torch.randint(-128, 128, shape, dtype=torch.int8)
    return buffers.as_tensor(buffers.to_buffer(values)) if cma else values


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.to(torch.int32) @ b.to(torch.int32)


def test_a_driver_takes_tensors_and_returns_one(loaded: Loaded) -> None:
    kernel = loaded("vadd").vadd
    x = torch.arange(12.0).reshape(3, 4).t()
    a, b = kernel.vector("a", x, shape=(4, 3)), kernel.operand("b", torch.ones(12))
    result = kernel.result((12,))
    run = [operand.address for operand in (a, b, result)]
    found = kernel.run_into(result, [[*run, 12]], (a, b), 10.0)
    assert torch.equal(found, x.reshape(-1) + 1)
    assert kernel.vector("a", None) is None
    with pytest.raises(ArgumentError, match=r"vadd_0: a .*\(3, 4\)"):
        kernel.vector("a", x.t(), shape=(4, 3))
    assert repr(kernel) == f"<{type(kernel).__name__} vadd_0(a, b, c, n)>"


# ---- gemm ----------------------------------------------------------------------------------------


@given(
    m=st.integers(0, 70),
    k=st.integers(0, 70),
    n=st.integers(0, 70),
    cma=st.booleans(),
    seed=st.integers(0, 100),
)
@settings(max_examples=40)
def test_gemm_is_exact(loaded: Loaded, m: int, k: int, n: int, cma: bool, seed: int) -> None:
    torch.manual_seed(seed)
    a, b = _int8(m, k, cma=cma), _int8(k, n, cma=cma)
    result = loaded("gemm").gemm(a, b)
    assert result.dtype == torch.int32
    assert torch.equal(result, _product(a, b))


@given(data=st.data())
@settings(max_examples=30)
def test_gemm_honours_row_strides_without_a_copy(loaded: Loaded, data: st.DataObject) -> None:
    gemm = loaded("gemm").gemm
    rows, columns = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    row, column = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
    whole = _int8(50, 50, cma=True)
    a = whole[row : row + rows, column : column + columns]
    b = _int8(columns, 33, cma=True)[:, 3:30]
    out = buffers.empty_tensor((rows, 40), torch.int32)
    out.fill_(-7)
    pool = buffers.statistics()
    target = out[:, 5:32]
    result = gemm(a, b, out=target)
    assert result.data_ptr() == target.data_ptr()
    assert torch.equal(result, _product(a, b))
    assert bool((out[:, :5] == -7).all() and (out[:, 32:] == -7).all())
    after = buffers.statistics()
    assert (after.hits, after.misses) == (pool.hits, pool.misses)  # no buffer was needed


def test_gemm_takes_any_layout(loaded: Loaded) -> None:
    gemm = loaded("gemm").gemm
    a, b = _int8(20, 30), _int8(40, 30).T
    assert torch.equal(gemm(a, b), _product(a, b))
    wide = _int8(1, 30).expand(8, 30)
    assert torch.equal(gemm(wide, b), _product(wide, b))
    cma = _int8(30, 20, cma=True).T
    assert torch.equal(gemm(cma, b), _product(cma, b))


def test_gemm_out_in_ordinary_memory(loaded: Loaded) -> None:
    a, b = _int8(5, 6), _int8(6, 7)
    out = torch.empty(5, 7, dtype=torch.int32)
    assert loaded("gemm").gemm(a, b, out=out) is out
    assert torch.equal(out, _product(a, b))


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (torch.zeros(3, 4, dtype=torch.int8), torch.zeros(5, 6, dtype=torch.int8), "have 4 rows"),
        (torch.zeros(3, 4), torch.zeros(4, 6, dtype=torch.int8), "expected torch.int8; quantise"),
        (torch.zeros(3, dtype=torch.int8), torch.zeros(4, 6, dtype=torch.int8), "2 dimensions"),
        (np.zeros((3, 4), np.int8), torch.zeros(4, 6, dtype=torch.int8), "a is ndarray"),
        (torch.zeros(3, 4, dtype=torch.int8, device="meta"), torch.zeros(4, 6), "device 'meta'"),
    ],
)
def test_gemm_refuses_with_a_sentence(loaded: Loaded, a: Any, b: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        loaded("gemm").gemm(a, b)
    with pytest.raises(TypeError, match=text):  # whichever a program expects
        loaded("gemm").gemm(a, b)


@given(m=st.integers(0, 60), seed=st.integers(0, 9), speeds=st.none() | st.just([1.0, 9.0]))
@settings(max_examples=15)
def test_two_units_share_a_product(loaded: Loaded, m: int, seed: int, speeds: Any) -> None:
    torch.manual_seed(seed)
    overlay = loaded("gemm_dual")
    units = list(overlay.kernels.values())
    assert len(units) == 2
    a, b = _int8(m, 20), _int8(20, 30)
    assert torch.equal(split_gemm(units, a, b, speeds=speeds), _product(a, b))


@given(
    total=st.integers(0, 10_000),
    speeds=st.lists(st.floats(0.01, 100), min_size=1, max_size=5),
)
def test_shares_cover_everything_in_proportion(total: int, speeds: list[float]) -> None:
    bounds = share(total, speeds)
    assert (bounds[0], bounds[-1]) == (0, total)
    assert bounds == sorted(bounds)
    for speed, begin, end in zip(speeds, bounds, bounds[1:], strict=False):
        assert abs((end - begin) - total * speed / sum(speeds)) <= 1.01


# ---- vadd and scale_stream -----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (1000,), (7, 13), (2, 0, 3), (5, 4, 3)])
def test_vadd(loaded: Loaded, shape: tuple[int, ...]) -> None:
    a, b = torch.randn(shape), torch.randn(shape)
    assert torch.equal(loaded("vadd").vadd(a, b), a + b)
    out = buffers.empty_tensor(shape)
    assert loaded("vadd").vadd(a, b, out=out) is out
    assert torch.equal(out, a + b)


def test_vadd_of_strided_tensors(loaded: Loaded) -> None:
    a = torch.randn(6, 8)
    assert torch.equal(loaded("vadd").vadd(a.T, a.reshape(8, 6)), a.T + a.reshape(8, 6))
    assert torch.equal(loaded("vadd").vadd(a[:, ::2], a[:, 1::2]), a[:, ::2] + a[:, 1::2])


@pytest.mark.parametrize("n", [0, 1, 17, 5000])
def test_scale_stream(loaded: Loaded, n: int) -> None:
    x = torch.randn(n)
    kernel = loaded("stream").scale_stream
    assert torch.equal(kernel(x, 2.5, -1.0), 2.5 * x - 1.0)
    if n:
        assert kernel.outputs() == n


def test_a_kernel_that_was_not_started_is_named_and_mended(loaded: Loaded) -> None:
    overlay = loaded("stream")
    dma, target = overlay.axi_dma_0, buffers.empty(64)
    source = buffers.to_buffer(torch.ones(64))
    with pytest.raises(TimeoutError, match="IP never started") as caught:
        pynq_torch.transfer(dma, send=source, recv=target, timeout_s=0.2, recover=False)
    assert "scale_stream_0 is idle" in str(caught.value)
    assert "still running" in str(caught.value)
    overlay.scale_stream.start(gain=3.0, offset=0.0)
    pynq_torch.wait(dma, timeout_s=5)
    pynq_torch.wait(overlay.scale_stream, timeout_s=5)
    assert target.tolist() == [3.0] * 64
    x = torch.randn(9)
    assert torch.equal(overlay.scale_stream(x, 2.0), 2 * x)


# ---- start, wait, one at a time ------------------------------------------------------------------


def test_the_generic_driver_takes_tensors_arrays_and_numbers(loaded: Loaded) -> None:
    from pynq_torch.kernels import GenericKernel

    entry = loaded("vadd").ip_dict["vadd_0"]
    kernel = GenericKernel(entry | {"device": pynq.Device.active_device})
    a, b, c = torch.randn(10), np.ones(10, np.float32), torch.zeros(10)
    assert kernel(a, b, c, n=10) is None
    assert torch.equal(c, a + 1)
    with pytest.raises(TypeError, match=r"vadd_0\(a, b, c, n\): missing n"):
        kernel(a, b, c)
    with pytest.raises(TypeError, match="no argument 'm'"):
        kernel(a, b, c, m=3)
    with pytest.raises(TypeError, match="given twice"):
        kernel(a, b, c, 10, n=10)
    with pytest.raises(OverflowError, match="32 bits"):
        kernel(a, b, c, n=1 << 32)
    with pytest.raises(TypeError, match=r"ordinary|CMA"):
        kernel.start(a, b, c, 10)
    gone = buffers.empty(10)
    gone.freebuffer()
    with pytest.raises(BufferFreed):
        kernel(a, b, gone, n=10)
    assert kernel(a, b, c, n=10) is None  # usable after every refusal


def test_wait_without_start(loaded: Loaded) -> None:
    with pytest.raises(KernelError, match="was not started"):
        loaded("vadd").vadd.wait(timeout_s=1)


def test_wait_for_a_run_that_registers_started(loaded: Loaded) -> None:
    unit, registers = loaded("vadd").vadd, loaded("vadd").vadd.register_map
    a, out = buffers.to_buffer(torch.arange(50_000.0)), buffers.empty(50_000)
    registers.a_1 = registers.b_1 = a.physical_address
    registers.c_1, registers.n = out.physical_address, a.size
    registers.CTRL.AP_START = 1
    pynq_torch.wait(unit, timeout_s=5)
    assert np.array_equal(out, 2 * np.asarray(a))
    pynq_torch.wait(unit, timeout_s=5)  # idle: nothing to wait for


def test_a_second_thread_is_refused_and_nothing_is_lost(loaded: Loaded) -> None:
    overlay = loaded("stream")
    kernel, dma = overlay.scale_stream, overlay.axi_dma_0
    run = kernel.start(gain=3.0, offset=0.0)  # waits for its stream
    caught: list[BaseException] = []

    def other() -> None:
        try:
            kernel.start(gain=5.0, offset=0.0)
        except KernelBusy as error:
            caught.append(error)

    thread = threading.Thread(target=other, name="intruder")
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert "scale_stream_0" in str(caught[0])
    assert "'intruder'" in str(caught[0])
    target = buffers.empty(4)
    pynq_torch.transfer(dma, send=buffers.to_buffer(torch.ones(4)), recv=target)
    run.wait(timeout_s=5)
    assert target.tolist() == [3.0] * 4


def test_a_timeout_keeps_the_buffers_and_the_unit_recovers(loaded: Loaded) -> None:
    overlay = loaded("stream")
    kernel, dma = overlay.scale_stream, overlay.axi_dma_0
    run = kernel.start(gain=1.0, offset=0.0)
    with pytest.raises(KernelTimeout, match=r"scale_stream_0 has not finished within 0.1 s"):
        run.wait(timeout_s=0.1)
    with pytest.raises(KernelBusy, match=r"an earlier run .*call wait\(\)"):
        kernel.start(gain=1.0, offset=0.0)
    pynq_torch.transfer(dma, send=buffers.to_buffer(torch.ones(4)), recv=buffers.empty(4))
    run.wait(timeout_s=5)
    x = torch.randn(5)
    assert torch.equal(kernel(x, 2.0), 2 * x)


def test_a_thousand_calls_leave_nothing(loaded: Loaded, board: Any) -> None:
    vadd = loaded("vadd").vadd
    a = buffers.empty_tensor(16)
    vadd(a, a)
    buffers.trim()
    used = board.memory.used_bytes
    for _ in range(1000):
        vadd(a, a)
    buffers.trim()
    assert board.memory.used_bytes == used


def test_upstream_objects_are_waited_for(loaded: Loaded) -> None:
    path = pynq_torch.overlay.find_overlay("vadd")
    upstream = pynq.Overlay(str(path)).vadd_0
    a = buffers.to_buffer(torch.ones(4))
    c = buffers.empty(4)
    for name, value in (("a", a), ("b", a), ("c", c)):
        setattr(upstream.register_map, f"{name}_1", value.physical_address)
        setattr(upstream.register_map, f"{name}_2", 0)
    upstream.register_map.n = 4
    for _ in range(3):
        c[:] = 0
        upstream.register_map.CTRL.AP_START = 1
        pynq_torch.wait(upstream, timeout_s=5)
        assert c.tolist() == [2.0] * 4


# ---- overlays ------------------------------------------------------------------------------------


def test_load_binds_typed_drivers(loaded: Loaded) -> None:
    overlay = loaded("gemm")
    assert overlay.gemm is overlay.gemm_0
    assert list(overlay.kernels) == ["gemm_0"]
    assert overlay.kernels["gemm_0"] is overlay.gemm
    assert overlay.kernels.of("gemm") == [overlay.gemm]
    assert isinstance(overlay, pynq.Overlay)
    assert overlay.clock_hz > 1e6
    assert "gemm_0" in repr(overlay)
    with pytest.raises(AttributeError, match=r"has no 'conv'; it has: .*gemm_0"):
        overlay.conv  # noqa: B018
    with pytest.raises(KeyError, match="gemm_0"):
        overlay.kernels["conv"]


def test_an_upstream_overlay_keeps_upstreams_drivers(loaded: Loaded) -> None:
    loaded("gemm")
    upstream = pynq.Overlay(str(pynq_torch.overlay.find_overlay("gemm")))
    assert type(upstream.gemm_0) is pynq.DefaultIP


def test_overlays_load_in_any_thread(loaded: Loaded) -> None:
    results: list[Any] = []
    thread = threading.Thread(
        target=lambda: results.append(pynq_torch.load("vadd").vadd(torch.ones(2), torch.ones(2)))
    )
    thread.start()
    thread.join()
    assert results[0].tolist() == [2.0, 2.0]


def test_names_and_paths(loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BitstreamError, match=r"no overlay is called 'gem'; there are .*gemm.*vadd"):
        pynq_torch.load("gem")
    with pytest.raises(BitstreamError, match="there is no file") as caught:
        pynq_torch.load(tmp_path / "gem.bit")
    assert "an overlay called" not in str(caught.value)
    with pytest.raises(BitstreamError, match=r"an overlay called 'gemm' is here: load\('gemm'\)"):
        pynq_torch.load(tmp_path / "gemm.bit")
    bit = pynq_torch.overlay.find_overlay("vadd")
    copy = tmp_path / "mine.bit"
    copy.write_bytes(bit.read_bytes())
    with pytest.raises(HandoffError, match=r"mine\.hwh is missing"):
        pynq_torch.load(copy)
    copy.with_suffix(".hwh").write_bytes(bit.with_suffix(".hwh").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert pynq_torch.load("mine").vadd.cu == "vadd_0"
    assert pynq_torch.load("mine.bit").vadd.cu == "vadd_0"


def test_a_replaced_overlay_says_so(loaded: Loaded) -> None:
    old = pynq_torch.load("vadd")
    kernel = old.vadd
    new = pynq_torch.load("gemm")
    with pytest.raises(StaleOverlay, match=r"'vadd' is no longer loaded: gemm\.bit is"):
        old.vadd  # noqa: B018
    with pytest.raises(StaleOverlay, match="no longer loaded"):
        kernel(torch.ones(3), torch.ones(3))
    assert new.gemm(_int8(2, 2), _int8(2, 2)).shape == (2, 2)


def test_an_overlay_replaced_while_a_kernel_runs(loaded: Loaded) -> None:
    overlay = pynq_torch.load("stream")
    run = overlay.scale_stream.start(gain=1.0, offset=0.0)
    new = pynq_torch.load("stream")
    with pytest.raises(StaleOverlay):
        run.wait(timeout_s=1)
    x = torch.randn(3)
    assert torch.equal(new.scale_stream(x, 2.0), 2 * x)


def test_simulation_image_on_real_hardware(loaded: Loaded) -> None:
    from pynq_torch.hls.design import check_bitstream

    with pytest.raises(BitstreamError, match="simulation image"):
        check_bitstream(pynq_torch.overlay.find_overlay("gemm"), real_hardware=True)


def test_a_stale_cache_is_dropped(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pynq.pl_server import global_state

    from pynq_torch.diagnosis.stale_cache import StaleCacheWarning, cache_files, drop_stale_cache

    monkeypatch.setattr(global_state, "STATE_DIR", str(tmp_path))
    bit = tmp_path / "x.bit"
    bit.write_bytes(b"same")
    handoff = bit.with_suffix(".hwh")
    handoff.write_text("new")
    pickled, state = cache_files()
    assert not drop_stale_cache(bit)
    pickled.write_bytes(b"")
    digest = global_state.bitstream_hash(str(bit))
    state.write_text(json.dumps({"bitfile_name": str(bit), "bitfile_hash": digest}))
    later = handoff.stat().st_ctime + 10
    os.utime(pickled, (later, later))
    assert not drop_stale_cache(bit)
    os.utime(pickled, (1, 1))
    with pytest.warns(StaleCacheWarning, match=r"earlier handoff for x\.bit"):
        assert drop_stale_cache(bit)
    assert not pickled.exists()
    assert not state.exists()


# ---- registers -----------------------------------------------------------------------------------


def _register(offset: int, access: str = "read-write", text: str = "", size: int = 32) -> Any:
    fields = {"x": {"description": text, "bit_offset": 0, "bit_width": 32, "access": access}}
    return {"address_offset": offset, "access": access, "size": size, "fields": fields}


def test_arguments_from_a_handoff() -> None:
    found = parameters_of(
        {
            "CTRL": _register(0),
            "GIER": _register(4),
            "IP_IER": _register(8),
            "IP_ISR": _register(12),
            "in1_1": _register(16, "write-only", "Bit 31 to 0 of in1"),
            "in1_2": _register(20, "write-only", "Bit 63 to 32 of in1"),
            "out_r": _register(28, text="Bit 31 to 0 of out_r"),
            "tap_1": _register(36, text="Bit 31 to 0 of tap_1"),
            "y": _register(44, "read-only"),
            "y_ctrl": _register(48, "read-only"),
            "n": _register(60),
            "Memory_table": {"address_offset": 256, "access": "read-write", "size": 64},
        }
    )
    assert [(p.name, p.offset, p.nwords, p.kind) for p in found] == [
        ("in1", 16, 2, "in"),
        ("out_r", 28, 1, "in"),
        ("tap_1", 36, 1, "in"),
        ("y", 44, 1, "out"),
        ("y_ctrl", 48, 1, "out"),
        ("n", 60, 1, "in"),
        ("table", 256, 0, "memory"),
    ]
    assert found[-1].nbytes == 64
    assert found[1].names == ("out_r", "out")
    # One slice writes what lies together, and never a register that is not an input.
    assert [[p.name for p in run] for run in blocks(found)] == [["in1", "out_r", "tap_1"], ["n"]]
