"""What device "pynq" says when it is misused, when a kernel fails, and when its board is gone."""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pynq
import pytest
import torch
from device_helpers import (
    CRASH,
    DAWDLE,
    HANG,
    MOODY,
    STRAY,
    closing,
    in_mood,
    int8,
    loaded,
    of,
    watched,
)
from helpers import eventually
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import pynq_torch
from pynq_torch import buffers
from pynq_torch.errors import CmaExhausted, DeviceLost, KernelFault, KernelTimeout, StaleOverlay
from pynq_torch.ops import units
from pynq_torch.overlay import find_overlay
from pynq_torch.torch_device import memory

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.usefixtures("closing"),
    # Forking is what some of these tests are about.
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]
__all__ = ["closing"]

device: Any = torch.pynq  # type: ignore[attr-defined]


def flags(*, allow_int8: bool) -> Any:
    return torch.backends.pynq.flags(allow_int8=allow_int8)  # type: ignore[attr-defined]


@pytest.fixture
def x() -> torch.Tensor:
    loaded("gemm_dual")
    return torch.arange(12.0).reshape(3, 4).to("pynq")


# ---- operands that do not go together ------------------------------------------------------------

ones = torch.ones
MIXED: dict[str, Callable[[torch.Tensor], object]] = {
    "x + cpu": lambda x: x + ones(4),
    "cpu + x": lambda x: ones(4) + x,
    "0-dim pynq + cpu": lambda x: x[0, 0] + ones(4),
    "in place": lambda x: x.add_(ones(4)),
    "in place on the cpu": lambda x: ones(3, 4).add_(x),
    "x @ cpu": lambda x: x @ ones(4, 2),
    "cpu @ x": lambda x: ones(2, 3) @ x,
    "linear": lambda x: functional.linear(x, ones(2, 4)),
    "linear, bias": lambda x: functional.linear(x, x, ones(3)),
    "conv2d": lambda x: functional.conv2d(x[None, None], ones(1, 1, 2, 2)),
    "cat": lambda x: torch.cat([x, ones(1, 4)]),
    "where": lambda x: torch.where(ones(4) > 0, x, x),
    "gather": lambda x: x.gather(0, torch.zeros(1, 4, dtype=torch.long)),
    "index_select": lambda x: x.index_select(0, torch.tensor([0])),
    "index, cpu[pynq]": lambda x: ones(4)[torch.tensor([1]).to("pynq")],
    "index_put_, values": lambda x: x.index_put_((torch.tensor([0, 1]),), ones(2, 4)),
    "masked_fill": lambda x: x.masked_fill(ones(4) > 0, 0.0),
    "embedding": lambda x: functional.embedding(torch.tensor([0]), x),
    "cross_entropy": lambda x: functional.cross_entropy(x, torch.tensor([0, 1, 2])),
    "out on the cpu": lambda x: torch.add(x, x, out=torch.empty(3, 4)),
    "out on pynq": lambda x: torch.add(ones(4), ones(4), out=x),
    "mm, out on the cpu": lambda x: torch.mm(x, x.t(), out=torch.empty(3, 3)),
    "foreach": lambda x: torch._foreach_add([x], [ones(3, 4)]),
}


@pytest.mark.parametrize("case", MIXED)
def test_tensors_of_two_devices_are_refused(x: torch.Tensor, case: str) -> None:
    before = x.cpu()
    with pytest.raises(RuntimeError, match=r"same device.*pynq:0 and cpu.*\.to\('pynq'\)"):
        MIXED[case](x)
    assert torch.equal(x.cpu(), before)


def test_what_torch_allows_beside_a_device(x: torch.Tensor) -> None:
    two, rows = torch.tensor(2.0), torch.tensor([2, 0])
    values = x.cpu()
    assert torch.equal((x * two).cpu(), values * 2)
    assert torch.equal(torch.where(x > 5, x, two).cpu(), torch.where(values > 5, values, two))
    assert torch.equal(x[rows].cpu(), values[rows])
    assert torch.equal(x[:, values[0] > 0].cpu(), values[:, values[0] > 0])
    x[rows] = two
    x[1, 1] = torch.tensor(7.0)
    values[rows], values[1, 1] = two, 7.0
    assert torch.equal(x.cpu(), values)
    x.copy_(ones(4))
    assert torch.equal(ones(3, 4).copy_(x), x.cpu())


# ---- tensors that the device does not have -------------------------------------------------------


def quantised() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(ones(3), 1.0, 0, torch.quint8)


FOREIGN: dict[str, tuple[Callable[[torch.Tensor], object], str]] = {
    "quint8": (lambda x: quantised().to("pynq"), r"quantised dtypes; pass tensor\.int_repr"),
    "empty quint8": (lambda x: torch.empty(3, dtype=torch.quint8, device="pynq"), "quantised"),
    "quantize": (lambda x: torch.quantize_per_tensor(x, 1.0, 0, torch.quint8), "quint8"),
    "float8": (lambda x: x.to(torch.float8_e4m3fn), "no tensors of dtype torch.float8_e4m3fn"),
    "uint1": (lambda x: torch.empty(3, dtype=torch.uint1, device="pynq"), "torch.uint1"),
    "nested": (lambda x: torch.nested.nested_tensor([x, x]) + 1, r"layout=torch\.jagged"),
    "mkldnn": (lambda x: x.to_mkldnn(), "has no tensors of"),
}


@pytest.mark.filterwarnings("ignore:.*(nested|quantize_per_tensor).*:UserWarning")
@pytest.mark.parametrize("case", FOREIGN)
def test_other_kinds_of_tensors_are_refused(x: torch.Tensor, case: str) -> None:
    function, message = FOREIGN[case]
    with pytest.raises(NotImplementedError, match=message) as caught:
        function(x)
    assert "'pynq'" in str(caught.value)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_complex32_is_a_dtype_like_any_other(x: torch.Tensor) -> None:
    z = torch.complex(x, x).to(torch.complex32)
    assert torch.equal((z + z).cpu().cfloat(), torch.complex(2 * x, 2 * x).cpu())


BAD: dict[str, tuple[Callable[[torch.Tensor], object], type[Exception], str]] = {
    "ordinal": (lambda x: x.to("pynq:1"), RuntimeError, "invalid device ordinal 1"),
    "ordinal, new": (
        lambda x: torch.empty_strided((2,), (1,), device="pynq:3"),
        RuntimeError,
        "invalid device ordinal 3",
    ),
    "set_device": (lambda x: device.set_device(2), RuntimeError, "invalid device ordinal 2"),
    "numpy": (lambda x: x.numpy(), TypeError, r"Tensor\.cpu\(\)"),
    "asarray": (lambda x: np.asarray(x), TypeError, r"Tensor\.cpu\(\)"),
    "negative": (lambda x: torch.empty(-2, device="pynq"), RuntimeError, "negative dimension"),
    "huge": (lambda x: torch.empty(1 << 40, device="pynq"), CmaExhausted, "4398046511104 bytes"),
    "pinned": (lambda x: x.pin_memory(), RuntimeError, "only dense CPU tensors can be pinned"),
    "empty, pinned": (
        lambda x: torch.empty(2, device="pynq", pin_memory=True),
        RuntimeError,
        "can be pinned",
    ),
    "somebody's buffer": (
        lambda x: memory.from_cma(buffers.empty_tensor(3)).resize_(4),
        RuntimeError,
        r"buffer of 12 bytes .* cannot become 16: use tensor\.clone\(\)",
    ),
    "generator": (lambda x: torch.Generator("pynq"), NotImplementedError, "getNewGenerator"),
    "address": (lambda x: device.physical_address(x.cpu()), ValueError, "device 'pynq'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_calls_end_in_an_exception(x: torch.Tensor, case: str) -> None:
    function, kind, message = BAD[case]
    with pytest.raises(kind, match=message):
        function(x)
    assert torch.equal(x.cpu(), torch.arange(12.0).reshape(3, 4))


def test_the_physical_address_of_a_view(x: torch.Tensor) -> None:
    first = device.physical_address(x)
    assert device.physical_address(x[1, 2:]) - first == 6 * 4
    assert device.physical_address(x.view(torch.uint8)[2, 5:]) - first == 2 * 16 + 5
    raw = buffers.empty_tensor((3, 4))
    assert (
        device.physical_address(memory.from_cma(raw[2]))
        - int(buffers.buffer_of(raw).physical_address)
        == 2 * 16
    )
    x[1, 2:].fill_(7.0)
    board = pynq_torch.current_board()
    assert board is not None
    seen = bytes(board.memory.view(device.physical_address(x[1, 1:]), 12))
    assert seen == np.array([5, 7, 7], np.float32).tobytes()


def test_storages_can_be_made_where_torch_has_no_allocator(x: torch.Tensor) -> None:
    """Without `memory.storage_of_size` each of these ends the process."""
    storage = torch.UntypedStorage(8, device="pynq")
    assert storage.device.type == "pynq" and storage.nbytes() == 8
    assert torch.UntypedStorage(device="pynq").nbytes() == 0
    assert torch.UntypedStorage([3, 1, 2], device="pynq").tolist() == [3, 1, 2]
    assert x.untyped_storage().new().nbytes() == 0  # type: ignore[attr-defined]
    assert torch.empty(0, device="pynq").set_(storage).nbytes == 8
    assert torch.UntypedStorage(5).device.type == "cpu"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_with_pinned_memory_works(workers: int) -> None:
    loaded("gemm_dual")
    threads = torch.get_num_threads()
    loader = DataLoader(torch.arange(6), batch_size=2, pin_memory=True, num_workers=workers)  # type: ignore[arg-type]
    assert [batch.to("pynq").tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5]]
    # torch's pinning thread lets all threads that begin later have one processor: autograd's would
    # add in another order than the main thread does.
    torch.set_num_threads(threads)


# ---- kernels that fail ---------------------------------------------------------------------------


@pytest.fixture
def moody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The overlay whose kernels do what rows of `a` ask for; loaded again, so that none hangs."""
    pynq_torch.use_board("csim", kernels=[MOODY])
    monkeypatch.setattr(units, "BASE_TIMEOUT_S", 0.3)
    yield pynq_torch.load("gemm_dual")


A, B = int8(64, 64), int8(64, 64, seed=1)
SUMS = A.int() @ B.int()
#: A failure in the first half of the rows, which gemm_0 does, and in the last ones.
FAILURES = {
    "crash": (CRASH, 3, KernelFault, "gemm_0 crashed"),
    "crash of the other": (CRASH, 62, KernelFault, "gemm_lut_0 crashed"),
    "stray write": (STRAY, 3, KernelFault, "gemm_0 wrote to memory outside its buffers"),
    "hang": (HANG, 3, KernelTimeout, "gemm_0 has not finished within 0.3"),
    "hang of the other": (HANG, 62, KernelTimeout, "gemm_lut_0 has not finished within 0.3"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_kernel_that_fails_changes_no_tensor(moody: Any, failure: str) -> None:
    mood, row, kind, message = FAILURES[failure]
    bad = in_mood(A, mood, row)
    x, w = bad.to("pynq"), B.to("pynq")
    out = torch.full((64, 64), 5, dtype=torch.int32, device="pynq")
    target = torch.full((64, 64), 5, dtype=torch.int8, device="pynq")
    for call in (
        lambda: torch._int_mm(x, w, out=out),
        lambda: target.addmm_(x, w),
        lambda: torch.bmm(torch.stack([A.to("pynq"), x]), torch.stack([w, w])),
    ):
        if kind is KernelTimeout:
            pynq_torch.load("gemm_dual")  # the unit of the last time hangs still
        with watched() as calls, pytest.raises(kind, match=message):
            call()
        assert calls[-1].error == kind.__name__ and calls[-1].where == "PL"
    assert torch.equal(x.cpu(), bad) and torch.equal(w.cpu(), B)
    assert bool((out == 5).all()) and bool((target == 5).all())
    # The units go on; where one hangs, the other does.
    with watched() as calls:
        assert torch.equal(torch._int_mm(A.to("pynq"), w).cpu(), SUMS)
    used = {run.cu for run in of(calls, "_int_mm")[0].kernels}
    assert len(used) == (1 if kind is KernelTimeout else 2)
    pynq_torch.load("gemm_dual")
    with watched() as calls:
        assert torch.equal(torch._int_mm(A.to("pynq"), w).cpu(), SUMS)
    assert len(of(calls, "_int_mm")[0].kernels) == 2


def test_a_unit_that_was_late_is_used_again(moody: Any) -> None:
    # Several rows, because one may be over before a machine under load has begun to wait.
    late, w = in_mood(A, DAWDLE, slice(5)).to("pynq"), B.to("pynq")
    with pytest.raises(KernelTimeout, match="gemm_0"):
        torch._int_mm(late, w)
    pynq_torch.wait(moody.gemm_0, 60)
    with watched() as calls:
        assert torch.equal(torch._int_mm(A.to("pynq"), w).cpu(), SUMS)
    assert len(of(calls, "_int_mm")[0].kernels) == 2


def test_floats_and_layers_that_fail(moody: Any) -> None:
    # With 127 as the largest value a step is 1: these floats have the steps of the moods.
    bad = torch.randint(-9, 10, (8, 64)).float()
    bad[0, 2], bad[1, :2] = 127.0, torch.tensor(CRASH, dtype=torch.float32)
    module = torch.nn.Linear(64, 8, device="pynq")
    before = module.weight.detach().cpu()
    given = bad.to("pynq").requires_grad_()
    image = bad.reshape(1, 8, 8, 8)
    image[0, :, 0, 0] = torch.tensor([*CRASH, 127, 0, 0, 0, 0, 0], dtype=torch.float32)
    kernel = torch.randn(4, 8, 1, 1).to("pynq")
    with flags(allow_int8=True):
        with pytest.raises(KernelFault, match="gemm_0 crashed"):
            module(given)
        with pytest.raises(KernelFault, match="gemm_0 crashed"):
            functional.conv2d(image.to("pynq"), kernel)
        good = torch.randn(8, 64)
        error = (module(good.to("pynq")).cpu() - module.cpu()(good)).abs().max()
    assert error < 0.2 and given.grad is None
    assert torch.equal(module.weight, before)


def test_what_a_failed_kernel_held_is_free_again(moody: Any) -> None:
    w = B.to("pynq")
    gc.collect()
    before = device.memory_allocated()
    for mood, kind in ((CRASH, KernelFault), (HANG, KernelTimeout)):
        for _ in range(3):
            with pytest.raises(kind):
                torch._int_mm(in_mood(A, mood, 3).to("pynq"), w)
            pynq_torch.load("gemm_dual")
    torch._int_mm(A.to("pynq"), w)  # which looks for the new units
    gc.collect()
    assert device.memory_allocated() == before


@pytest.mark.parametrize("slow", [(3,), (3, 62)], ids=["one unit runs", "both units run"])
def test_ctrl_c_in_the_middle_of_an_operator(
    moody: Any, monkeypatch: pytest.MonkeyPatch, slow: tuple[int, ...]
) -> None:
    monkeypatch.setattr(units, "BASE_TIMEOUT_S", 20.0)
    x, w = in_mood(A, DAWDLE, list(slow)).to("pynq"), B.to("pynq")
    torch._int_mm(A.to("pynq"), w)  # so that the time below is the units', not the first call's
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        torch._int_mm(x, w)
    timer.join()
    assert torch.equal(torch._int_mm(A.to("pynq"), w).cpu(), SUMS)


# Python itself prints and loses an interrupt that comes inside a `__del__`.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_any_moment(moody: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next operator finds its units free, or waits until they are."""
    monkeypatch.setattr(units, "BASE_TIMEOUT_S", 20.0)
    x, w = A.to("pynq"), B.to("pynq")
    torch._int_mm(x, w)
    begin = time.perf_counter()
    torch._int_mm(x, w)
    usual = time.perf_counter() - begin
    interrupted = 0
    for step in range(1, 301):
        timer = threading.Timer(usual * step / 200, signal.raise_signal, [signal.SIGINT])
        try:
            timer.start()
            torch._int_mm(x, w)
            timer.join()
        except KeyboardInterrupt:
            interrupted += 1
            timer.join()
        assert torch.equal(torch._int_mm(x, w).cpu(), SUMS), step
    assert interrupted > 250  # Python loses those that come inside a `__del__`


# ---- a board that is gone ------------------------------------------------------------------------


def test_a_closed_board_is_lost_until_another_is_chosen() -> None:
    board = pynq_torch.use_board("csim")
    pynq_torch.load("gemm")
    torch._int_mm(A.to("pynq"), B.to("pynq"))  # which lets go of the overlay of the test before
    gc.collect()
    before = device.memory_allocated()  # what other modules still hold
    x, w = A.to("pynq"), B.to("pynq")
    small = ones(3).to("pynq")
    module = torch.nn.Linear(64, 8, device="pynq")
    given = torch.randn(5, 64)
    with torch.no_grad(), flags(allow_int8=True):
        expected = module(given.to("pynq")).cpu()
    assert torch.equal(torch._int_mm(x, w).cpu(), SUMS)
    board.close()

    # What was there can be read.
    assert torch.equal(x.cpu(), A) and small.tolist() == [1.0] * 3
    assert torch.equal(torch.load(_saved(x), map_location="cpu"), A)
    # Nothing new can be made, not even where memory waits for reuse.
    for call in (
        lambda a, b: torch._int_mm(a, b),
        lambda a, b: a + 1,
        lambda a, b: torch.empty(3, device="pynq"),
        lambda a, b: torch.empty(100_000, device="pynq"),
        lambda a, b: ones(3).to("pynq"),
        lambda a, b: torch.load(_saved(a)),
    ):
        with pytest.raises(DeviceLost, match=r"was closed.*pynq_torch\.use_board\(\)"):
            call(x, w)
    with pytest.raises(DeviceLost, match="board that was closed"):
        device.physical_address(x)

    pynq_torch.use_board("csim")
    with watched() as calls:
        assert torch.equal(torch._int_mm(x, w).cpu(), SUMS)
    assert of(calls, "_int_mm")[0].where == "CPU"
    pynq_torch.load("gemm")
    with watched() as calls:
        assert torch.equal(torch._int_mm(x, w).cpu(), SUMS)
        assert torch.equal(
            torch._int_mm(x[:7, 3:].t(), w[:7]).cpu(), A[:7, 3:].t().int() @ B[:7].int()
        )
    assert [c.where for c in of(calls, "_int_mm")] == ["PL", "PL"]
    with torch.no_grad(), flags(allow_int8=True):
        for _ in range(2):
            assert torch.equal(module(given.to("pynq")).cpu(), expected)
    x += 1
    assert torch.equal(x.cpu(), A + 1)
    assert torch.equal((small * 2).cpu(), torch.full((3,), 2.0))
    del x, w, small, module
    gc.collect()
    assert device.memory_allocated() == before


def _saved(value: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_another_board_takes_over_without_a_close() -> None:
    tensors, boards = [], []
    for number in range(3):
        boards.append(pynq_torch.use_board("csim"))
        pynq_torch.load("gemm")
        tensors.append(torch.full((8, 8), number + 1, dtype=torch.int8, device="pynq"))
        for a in tensors:
            for b in tensors:
                found = torch._int_mm(a, b)
                assert torch.equal(found.cpu(), a.cpu().int() @ b.cpu().int())
        assert device.physical_address(tensors[-1]) >= boards[-1].memory.cma_base
    assert [board.closed for board in boards] == [True, True, False]


def test_an_overlay_that_was_replaced() -> None:
    pynq_torch.use_board("csim")
    old = pynq_torch.load("gemm")
    x, w = A.to("pynq"), B.to("pynq")
    torch._int_mm(x, w)
    for replace in (
        lambda: pynq_torch.load("vadd"),
        lambda: pynq.Overlay(str(find_overlay("vadd"))),  # a program that knows only pynq
        lambda: pynq.Overlay(str(find_overlay("gemm"))),
    ):
        replace()
        with watched() as calls:
            assert torch.equal(torch._int_mm(x, w).cpu(), SUMS)
        (call,) = of(calls, "_int_mm")
        assert call.where == "CPU" and "has a unit that multiplies matrices" in call.reason
        assert "gemm" not in device.kernels().values()
        with pytest.raises(StaleOverlay):
            old.gemm(A, B)
        old = pynq_torch.load("gemm")
        with watched() as calls:
            assert torch.equal(torch._int_mm(x, w).cpu(), SUMS)
        assert of(calls, "_int_mm")[0].where == "PL"


def test_an_overlay_that_is_replaced_while_a_product_runs(
    moody: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "BASE_TIMEOUT_S", 30.0)
    unit = moody.device.cus["gemm_0"]

    def replace() -> None:
        eventually(lambda: unit.engine.started > 0)
        pynq_torch.load("gemm_dual")

    thread = threading.Thread(target=replace)
    thread.start()
    w = B.to("pynq")
    with pytest.raises((StaleOverlay, KernelFault)):
        torch._int_mm(in_mood(A, HANG, 3).to("pynq"), w)
    thread.join()
    assert torch.equal(torch._int_mm(A.to("pynq"), w).cpu(), SUMS)


# ---- CMA that is full ----------------------------------------------------------------------------

MB = 1 << 20


@pytest.fixture
def narrow() -> Iterator[Any]:
    board = pynq_torch.use_board("csim", cma_bytes=4 * MB)
    yield board
    board.close()


def _bytes(count: int) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.uint8, device="pynq")


def test_full_memory_names_the_sizes_and_recovers(narrow: Any) -> None:
    held = [_bytes(MB) for _ in range(3)]
    with pytest.raises(CmaExhausted) as caught:
        _bytes(2 * MB)
    text = str(caught.value)
    for part in ("[2097152] of torch.uint8 (2097152 bytes)", "3145728 bytes", "4194304 bytes"):
        assert part in text, text
    held[1].fill_(7)
    with pytest.raises(CmaExhausted):  # in the middle of an operator
        torch.cat([held[1], held[1]])
    assert bool((held[1].cpu() == 7).all())
    del held
    assert bool((_bytes(3 * MB).cpu() == 0).all())


def test_memory_that_only_a_cycle_holds_is_found(narrow: Any) -> None:
    cycle: list[Any] = [_bytes(3 * MB)]
    cycle.append(cycle)
    del cycle
    assert len(_bytes(3 * MB)) == 3 * MB


@pytest.mark.parametrize("size", [64, MB])
def test_memory_of_a_storage_that_dies_in_a_cycle_is_given_out_once(narrow: Any, size: int) -> None:
    storage: Any = _bytes(size).untyped_storage()
    storage.itself = storage
    del storage
    gc.collect()
    again = _bytes(size)  # the block of the storage that died
    others = [torch.empty(4, size // 4, dtype=torch.uint8, device="pynq") for _ in range(2)]
    assert len({t.data_ptr() for t in (again, *others)}) == 3


def test_resizing_with_an_older_pytorch(x: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot give a storage other memory: what has no views moves, the rest is refused."""
    monkeypatch.setattr(memory, "_CAN_SWAP", False)
    assert x.clone().resize_(20)[:12].tolist() == list(range(12))
    assert torch.add(x, 1, out=torch.empty(0, device="pynq")).tolist() == (x + 1).tolist()
    view = x[1:]
    with pytest.raises(RuntimeError, match=r"48 bytes and cannot become 80 .* 2\.13 or newer"):
        x.resize_(20)
    assert view.tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]] and x.numel() == 12


def test_idle_memory_is_there_for_everybody(narrow: Any) -> None:
    size = 3 * MB
    before = device.memory_reserved()  # what other modules still hold
    _bytes(size)  # dies here, and waits for the next of its kind
    assert device.memory_allocated() == before and device.memory_reserved() == before + size
    buffer = pynq.allocate(size, "u1")
    assert buffer.nbytes == size and device.memory_reserved() == before
    with pytest.raises(CmaExhausted):
        _bytes(size)
    with pytest.raises(RuntimeError, match="contiguous memory asked for"):
        pynq.allocate(size, "u1")
    buffer.freebuffer()
    _bytes(size)
    from pynq_torch import buffers

    taken = buffers.empty_tensor(size, torch.uint8)
    assert len(taken) == size
    del taken
    assert len(_bytes(size)) == size


# ---- processes -----------------------------------------------------------------------------------


def in_child(work: Callable[[], Any]) -> Any:
    """Return what ``work()`` gives in a forked child, as JSON has it; its exception as text."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            answer = {"value": work()}
        except BaseException as error:  # noqa: BLE001 (for the parent to see)
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"the child ended with {status}"
    answer = json.loads(text)
    return answer.get("value", answer.get("error"))


TOUCHES: dict[str, Callable[[torch.Tensor], object]] = {
    "new": lambda x: ones(3, device="pynq"),
    "to": lambda x: ones(3).to("pynq"),
    "add": lambda x: x + 1,
    "add of a kind that waits": lambda x: ones(2, 2, dtype=torch.int8).to("pynq"),
    "add_": lambda x: x.add_(1),
    "copy_": lambda x: x.copy_(torch.zeros(64, 64)),
    "a view": lambda x: x[0].fill_(0),
    "set item": lambda x: x.__setitem__(0, 0),
    "product": lambda x: torch._int_mm(x, x),
    "resize_": lambda x: x.resize_(100, 100),
    "storage": lambda x: torch.UntypedStorage(4, device="pynq"),
    "address": lambda x: device.physical_address(x),
}


@pytest.mark.parametrize("touch", TOUCHES)
def test_a_forked_child_that_touches_the_device_is_told(touch: str) -> None:
    loaded("gemm_dual")
    x = A.to("pynq")
    ones(2, 2, dtype=torch.int8).to("pynq")  # dies here
    text = in_child(lambda: TOUCHES[touch](x))
    assert str(text).startswith("DeviceLost: ") and "'spawn'" in text, text
    assert torch.equal(x.cpu(), A)
    assert torch.equal(torch._int_mm(x, B.to("pynq")).cpu(), SUMS)


def test_a_forked_child_reads_and_dies_without_harm() -> None:
    loaded("gemm_dual")
    x, gone = torch.arange(6).to("pynq"), torch.arange(6).to("pynq")

    def work() -> Any:
        nonlocal gone
        del gone
        gc.collect()
        device.memory_allocated()
        return [
            x.cpu().tolist(),
            x[1::2].cpu().tolist(),
            x.view(2, 3).t().cpu().tolist(),
            device.is_available(),
            torch.arange(3).sum().item(),
        ]

    before = device.memory_allocated()
    assert in_child(work) == [
        [0, 1, 2, 3, 4, 5],
        [1, 3, 5],
        [[0, 3], [1, 4], [2, 5]],
        False,
        3,
    ]
    assert gone.tolist() == [0, 1, 2, 3, 4, 5] and device.memory_allocated() == before


class Items(Dataset[torch.Tensor]):
    """Numbers, on a device."""

    def __init__(self, make: Callable[[int], torch.Tensor]) -> None:
        self.make = make

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.make(index)


def test_loaders_with_forked_workers() -> None:
    loaded("gemm_dual")
    held = torch.arange(4.0).to("pynq")
    for make in (lambda i: torch.tensor(float(i)), lambda i: held[i].cpu()):
        loader = DataLoader(
            Items(make), batch_size=2, num_workers=2, multiprocessing_context="fork"
        )
        assert [batch.to("pynq").tolist() for batch in loader] == [[0.0, 1.0], [2.0, 3.0]]
    for make in (lambda i: ones(1, device="pynq"), lambda i: held[i] + 1):
        loader = DataLoader(Items(make), num_workers=1, multiprocessing_context="fork")
        with pytest.raises(DeviceLost, match="return CPU tensors from the workers"):
            list(loader)
    gc.collect()
    assert held.tolist() == [0.0, 1.0, 2.0, 3.0]


def run(program: str, *, timeout_s: float = 100.0, **environment: str) -> tuple[int, str, str]:
    """Run a program in a Python of its own; return status, stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    return done.returncode, done.stdout, done.stderr


BEFORE_FIRST_USE = """
import os, torch
if not os.fork():
    assert torch.pynq.is_available()
    print((torch.ones(3, device="pynq") + 1).tolist(), flush=True)
    os._exit(0)
os.wait()
print((torch.ones(2, device="pynq") + 1).tolist())
"""


def test_a_fork_before_the_first_use_is_none_of_the_devices_business() -> None:
    status, out, err = run(BEFORE_FIRST_USE, PYNQ_TORCH_BOARD="")
    assert (status, out) == (0, "[2.0, 2.0, 2.0]\n[2.0, 2.0]\n"), err


CHOSEN_NOT_USED = """
import os, pynq_torch, torch
board = pynq_torch.use_board()
if not os.fork():
    assert not torch.pynq.is_available()
    try:
        torch.ones(3, device="pynq")
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
print((torch.ones(2, device="pynq") + 1).tolist())
"""


def test_a_board_that_was_chosen_is_the_parents_before_its_first_use_too() -> None:
    status, out, err = run(CHOSEN_NOT_USED)
    said, result = out.splitlines()
    assert (status, result) == (0, "[2.0, 2.0]"), err
    assert "forked from one that had chosen a board" in said and "'spawn'" in said


SHUTDOWN = """
import torch, threading
x = torch.ones(3, device="pynq", requires_grad=True)
views = [x.detach().view(3, 1), x[1:]]
import pynq_torch
from pynq_torch import buffers
overlay = pynq_torch.load("gemm_dual")
a = torch.ones(300, 300, dtype=torch.int8, device="pynq")
sums = a @ a
cycle = [sums]; cycle.append(cycle)
class Node: pass
node = Node(); node.self = node; node.tensor = torch.zeros(100_000, device="pynq")
module = torch.nn.Linear(3, 3).to("pynq")
optimiser = torch.optim.Adam(module.parameters())
with torch.backends.pynq.flags(allow_int8=True):
    loss = module(x).sum()
loss.backward(); optimiser.step()
graph = (x * 2).exp().sum()
torch.pynq.profiler.enable()
x + 1
iterator = iter(torch.utils.data.DataLoader([1, 2, 3], num_workers=1)); next(iterator)
def hold(tensor, event): event.wait(0.1)
event = threading.Event()
thread = threading.Thread(target=hold, args=(node.tensor, event)); thread.start()
raise SystemExit(3)
"""


def test_the_interpreter_ends_without_a_word() -> None:
    assert run(SHUTDOWN)[::2] == (3, "")


ELSEWHERE = """
import torch
assert not hasattr(torch, "pynq")
try:
    torch.load("{file}")
except RuntimeError as error:
    print(error)
values = torch.load("{file}", map_location="cpu")
print(values["weight"].tolist(), values["weight"].device)
"""


def test_a_file_is_read_on_a_machine_without_this_package(tmp_path: Path) -> None:
    loaded("gemm_dual")
    file = tmp_path / "state.pt"
    torch.save({"weight": torch.arange(3.0, device="pynq")}, file)
    loaded_here = torch.load(file)
    assert loaded_here["weight"].device.type == "pynq"
    assert loaded_here["weight"].tolist() == [0.0, 1.0, 2.0]
    status, out, err = run(ELSEWHERE.format(file=file), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert status == 0, err
    error, values = out.splitlines()
    assert "don't know how to restore data location" in error and "pynq:0" in error
    assert values == "[0.0, 1.0, 2.0] cpu"
