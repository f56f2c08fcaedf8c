"""torch.pynq.kernel_logger: every start of a compute unit, by operators and by drivers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import pynq_torch
from pynq_torch import buffers, events
from pynq_torch.errors import KernelFault, KernelTimeout
from pynq_torch.torch_device import record

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def board() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    yield board
    board.close()


@pytest.fixture
def log(board: Any) -> Iterator[Any]:
    """The logger, switched on and empty."""
    logger = torch.pynq.kernel_logger
    logger.clear()
    logger.enable()
    yield logger
    logger.disable()
    logger.clear()


def int8(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def test_a_driver_s_call_is_logged_with_what_was_written(log: Any) -> None:
    overlay = pynq_torch.load("gemm")
    a, b = buffers.empty_tensor((5, 8), torch.int8), buffers.empty_tensor((8, 3), torch.int8)
    overlay.gemm(a.fill_(2), b.fill_(3))
    (entry,) = log.entries()
    address = buffers.buffer_of(a).device_address
    assert (entry["cu"], entry["kernel"], entry["operator"]) == ("gemm_0", "gemm", None)
    given = entry["arguments"]
    assert given["a"] == {"dtype": "int8", "shape": [5, 8], "address": f"0x{address:08x}"}
    assert given["c"]["dtype"] == "int32" and given["c"]["shape"] == [5, 3]
    assert (given["m"], given["n"], given["k"], given["mode"]) == (5, 3, 8, 0)
    listed = overlay.ip_dict["gemm_0"]["registers"]
    for name, value in entry["registers"].items():
        assert int(value, 16) == overlay.gemm.read(listed[name]["address_offset"]), name
    assert entry["registers"]["a_1"] == f"0x{address:08x}"
    assert entry["seconds"] > 0 and entry["transfer_s"] > 0
    assert (entry["kind"], entry["where"]) == ("measured", "csim on this PC")
    assert entry["thread"] == "MainThread" and entry["error"] is None


def test_an_operator_s_starts_carry_its_name(log: Any) -> None:
    pynq_torch.load("gemm")
    a, b = int8(6, 4).to("pynq"), int8(4, 8).to("pynq")
    a + a  # the CPU does it: no start
    result = torch._int_mm(a, b)
    (entry,) = log.entries()
    assert entry["operator"] == "aten::_int_mm"
    assert entry["arguments"]["b"]["shape"] == [4, 8]
    assert entry["arguments"]["c"] == {
        "dtype": "int32",
        "shape": [6, 8],
        "address": f"0x{torch.pynq.physical_address(result):08x}",
    }


def test_units_that_share_a_product_say_where_each_begins(log: Any) -> None:
    pynq_torch.load("gemm_dual")
    a, b = int8(128, 64).to("pynq"), int8(64, 64).to("pynq")
    torch._int_mm(a, b)
    first, second = log.entries()
    assert {first["cu"], second["cu"]} == {"gemm_0", "gemm_lut_0"}
    assert first["arguments"]["m"] + second["arguments"]["m"] == 128
    assert "skipped" not in first["arguments"]["a"]
    assert second["arguments"]["a"]["skipped"] == first["arguments"]["m"] * 64
    assert second["arguments"]["c"]["skipped"] == first["arguments"]["m"] * 64 * 4


def test_every_tile_of_a_fixed_kernel_is_a_start(log: Any) -> None:
    overlay = pynq_torch.load("matrix_mult")
    a, b = int8(300, 20), int8(20, 30)
    assert torch.equal(overlay.matrix_mult(a, b), a.int() @ b.int())
    entries = log.entries()
    assert len(entries) == 2 and all(e["seconds"] > 0 for e in entries)
    assert entries[0]["arguments"]["in1"]["shape"] == [256, 256]
    for entry in entries:
        address = int(entry["arguments"]["out_r"]["address"], 16)
        assert address in [int(v, 16) for n, v in entry["registers"].items() if "out_r" in n]


def test_floats_and_streams(log: Any) -> None:
    overlay = pynq_torch.load("stream")
    overlay.scale_stream(torch.ones(4), 2.5, 1.0)
    (entry,) = log.entries()
    assert entry["arguments"] == {"gain": 2.5, "offset": 1.0}
    assert entry["registers"] == {"gain": "0x40200000", "offset": "0x3f800000"}


def test_what_is_switched_off_is_not_logged(log: Any) -> None:
    overlay = pynq_torch.load("vadd")
    x = torch.ones(4)
    overlay.vadd(x, x)
    log.disable()
    overlay.vadd(x, x)
    assert not log.is_enabled() and len(log.entries()) == 1
    assert not events.runs and not record.switches.active
    log.clear()
    assert log.entries() == [] and log.json() == "[]"
    log.enable()
    overlay.vadd(x[:2], x[:2])
    assert [e["arguments"]["n"] for e in log.entries()] == [2]


def test_json_is_the_entries(log: Any) -> None:
    overlay = pynq_torch.load("vadd")
    for length in (3, 5):
        overlay.vadd(torch.ones(length), torch.ones(length))
    assert json.loads(log.json()) == log.entries()
    starts = [e["start_s"] for e in log.entries()]
    assert starts[0] == 0 and starts[1] > 0


def test_a_run_at_work_has_no_time_yet(log: Any) -> None:
    overlay = pynq_torch.load("stream")
    run = overlay.scale_stream.start(gain=1.0, offset=0.0)
    assert log.entries()[0]["seconds"] is None
    log.disable()
    time.sleep(0.02)
    target = buffers.empty(4)
    pynq_torch.transfer(overlay.axi_dma_0, send=buffers.to_buffer(torch.ones(4)), recv=target)
    run.wait()
    assert log.entries()[0]["seconds"] >= 0.02


def test_runs_that_fail_say_how(log: Any) -> None:
    overlay = pynq_torch.load("vadd")
    a, wild = buffers.to_buffer(torch.ones(16)), buffers.empty(16)
    with pytest.raises(KernelFault):
        overlay.vadd.start(a=a, b=a, c=wild, n=1 << 24).wait(timeout_s=20)
    overlay.vadd(torch.ones(2), torch.ones(2))
    assert [e["error"] for e in log.entries()] == ["KernelFault", None]
    log.clear()
    overlay = pynq_torch.load("stream")
    with pytest.raises(KernelTimeout):
        overlay.scale_stream.start(gain=1.0, offset=0.0).wait(timeout_s=0.05)
    (entry,) = log.entries()
    assert entry["error"] == "abandoned" and entry["seconds"] >= 0.05


def test_a_run_that_nobody_waits_for(log: Any) -> None:
    overlay = pynq_torch.load("vadd")
    a, out = buffers.to_buffer(torch.ones(16)), buffers.empty(16)
    overlay.vadd.start(a=a, b=a, c=out, n=16)
    deadline = time.monotonic() + 10
    while not overlay.vadd.is_idle():
        assert time.monotonic() < deadline
    overlay.vadd.start(a=a, b=a, c=out, n=16).wait()
    assert [e["error"] for e in log.entries()] == ["nobody waited", None]


def test_threads(log: Any) -> None:
    overlay = pynq_torch.load("gemm_dual")
    units = {"first": overlay.gemm_0, "second": overlay.gemm_lut_0}

    def work(name: str) -> None:
        for _ in range(20):
            units[name](int8(8, 8), int8(8, 8))

    threads = [threading.Thread(target=work, args=(n,), name=n) for n in units]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = log.entries()
    assert len(entries) == 40
    assert {(e["thread"], e["cu"]) for e in entries} == {
        ("first", "gemm_0"),
        ("second", "gemm_lut_0"),
    }


def test_a_run_s_time_begins_before_ap_start_is_written(board: Any, log: Any) -> None:
    # On csim a short run is over when that write returns: its time would be the host's.
    overlays = {"vadd": "vadd_0", "gemm": "gemm_0", "matrix_mult": "matrix_mult_0"}
    starts: list[tuple[int, int]] = []

    def look(run: events.KernelCall) -> None:
        if run.seconds is None:
            starts.append((before, board.cus[run.cu].engine.started))

    events.runs.subscribe(look)
    try:
        for name, cu in overlays.items():
            overlay = pynq_torch.load(name)
            before = board.cus[cu].engine.started
            if name == "vadd":
                overlay.vadd(torch.ones(4), torch.ones(4))
            else:
                torch._int_mm(int8(4, 8).pynq(), int8(8, 8).pynq())
            assert board.cus[cu].engine.started == before + 1
    finally:
        events.runs.unsubscribe(look)
    assert len(starts) == 3 and all(now == earlier for earlier, now in starts)


def test_a_start_that_fails_is_logged_with_its_error(
    log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay = pynq_torch.load("vadd")
    unit = next(model for name, model in overlay.device.cus.items() if name == "vadd_0")

    def refuse() -> None:
        raise KernelFault("no engine")

    monkeypatch.setattr(unit.engine, "start", refuse)
    with pytest.raises(KernelFault):
        overlay.vadd(torch.ones(2), torch.ones(2))
    assert [e["error"] for e in log.entries()] == ["KernelFault"]
    monkeypatch.undo()
    overlay.vadd(torch.ones(2), torch.ones(2))
    assert [e["error"] for e in log.entries()] == ["KernelFault", None]
