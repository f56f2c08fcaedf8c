"""The driver of every kernel, on registers alone: what it writes, in which order, how runs end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pynq.buffer import PynqBuffer

from pynq_torch import events
from pynq_torch.errors import (
    BoardHang,
    BusError,
    KernelBusy,
    KernelError,
    KernelFault,
    KernelTimeout,
    StaleOverlay,
)
from pynq_torch.kernels.base import Kernel

START, DONE, IDLE, CONTINUE = 1, 2, 4, 16


class Pl:
    """A device that is the kernel's register window too, and notes what happens in order."""

    timestamp = 1

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.words = np.zeros(256, np.uint32)
        self.looks: list[Any] = []  # where a program has read besides
        #: What AP_CTRL reads: values or exceptions, of which the last one stays.
        self.control: list[Any] = [IDLE]
        self.flush_fails: BaseException | None = None

    def has_capability(self, name: str) -> bool:
        return name == "MEMORY_MAPPED"

    def mmap(self, base: int, length: int) -> Pl:
        return self

    def flush(self, bo: str, offset: int, pointer: int, size: int) -> None:
        if self.flush_fails is not None:
            raise self.flush_fails
        self.events.append(f"flush {bo}")

    def invalidate(self, bo: str, offset: int, pointer: int, size: int) -> None:
        self.events.append(f"invalidate {bo}")

    def __getitem__(self, at: Any) -> Any:
        if at != 0:
            self.looks.append(at)
            return self.words[at]
        value = self.control.pop(0) if len(self.control) > 1 else self.control[0]
        if isinstance(value, BaseException):
            raise value
        return value

    def __setitem__(self, at: Any, value: Any) -> None:
        if at == 0:
            self.events.append({START: "start", CONTINUE: "continue"}.get(value, value))
        else:
            self.events.append("arguments")
            self.words[at] = value


def _register(offset: int, access: str = "read-write", size: int = 32) -> dict[str, Any]:
    return {"address_offset": offset, "access": access, "size": size, "fields": {}}


def _kernel(pl: Pl, *control: str, **registers: dict[str, Any]) -> Any:
    fields = dict.fromkeys(("AP_START", *control))
    return Kernel(
        {
            "fullpath": "k_0",
            "type": "xilinx.com:hls:k:1.0",
            "phys_addr": 0x43C00000,
            "addr_range": 1024,
            "device": pl,
            "registers": {"CTRL": {"address_offset": 0, "fields": fields}, **registers},
        }
    )


@pytest.fixture
def pl() -> Pl:
    return Pl()


@pytest.fixture
def kernel(pl: Pl) -> Any:
    return _kernel(pl, a=_register(16, size=64), n=_register(28))


def _buffer(pl: Pl, name: str, address: int = 0x18000000, dtype: str = "f4") -> PynqBuffer:
    return PynqBuffer(4, dtype, device=pl, device_address=address, bo=name)


# ---- one run -------------------------------------------------------------------------------------


def test_a_run_in_its_order(pl: Pl, kernel: Any) -> None:
    run = kernel.start(_buffer(pl, "a"), n=-2)
    # Flushed before the kernel reads: a start in between would compute with what memory held.
    assert pl.events == ["flush a", "arguments", "start"]
    assert pl.words[4:8].tolist() == [0x18000000, 0, 0, 0xFFFFFFFE]
    assert kernel.is_claimed()
    assert kernel.is_mine()
    pl.events.clear()
    pl.control = [0, DONE | IDLE, IDLE]
    run.wait(timeout_s=5)
    assert pl.events == ["invalidate a"]
    assert not kernel.is_claimed()
    assert not kernel.is_mine()
    assert kernel._held == kernel._results == ()
    with pytest.raises(KernelError, match="k_0 was not started"):
        run.wait()


def test_a_raw_run_in_its_order(pl: Pl, kernel: Any) -> None:
    a, b = _buffer(pl, "a"), _buffer(pl, "b")
    held = object()
    run = kernel.start_raw([0x1_2000_0000, 7], held=[held], flush=[a], results=[b])
    assert pl.events == ["flush a", "arguments", "start"]
    assert pl.words[4:8].tolist() == [0x20000000, 1, 0, 7]
    assert kernel._held == (held, b)
    pl.events.clear()
    run.wait()
    assert pl.events == ["invalidate b"]


def test_no_single_slice_for_arrays_and_for_runs_apart(pl: Pl) -> None:
    memory = {"address_offset": 64, "access": "read-write", "size": 12}
    for registers in (
        {"n": _register(16), "Memory_t": memory},
        {"n": _register(16), "y": _register(24, "read-only"), "m": _register(32)},
    ):
        kernel = _kernel(pl, **registers)
        with pytest.raises(TypeError, match="are no single run of registers"):
            kernel.start_raw([1])
        assert not kernel.is_claimed()
    kernel.start(1, m=2)
    assert pl.words[4:10].tolist() == [1, 0, 0, 0, 2, 0]


@pytest.mark.parametrize("raw", [False, True])
def test_a_start_that_fails_leaves_the_unit_free(pl: Pl, kernel: Any, raw: bool) -> None:
    a = _buffer(pl, "a")
    for error in (OSError("no flush"), KeyboardInterrupt()):
        pl.flush_fails = error
        with pytest.raises(type(error)):
            if raw:
                kernel.start_raw([1, 2], held=[a], flush=[a])
            else:
                kernel.start(a, 2)
        assert not kernel.is_claimed()
        assert kernel._held == ()
        assert "start" not in pl.events


@pytest.mark.parametrize(
    ("controls", "fields", "written"),
    [
        ((DONE | IDLE, IDLE), (), []),
        ((0, IDLE), (), []),
        # AP_DONE that can be read twice is ap_ctrl_chain's, which holds it until AP_CONTINUE.
        ((DONE | IDLE, DONE | IDLE), (), ["continue"]),
        ((DONE | IDLE, IDLE), ("AP_CONTINUE",), ["continue"]),
    ],
)
def test_the_end_of_a_run_is_acknowledged_where_it_is_held(
    pl: Pl, controls: tuple[int, ...], fields: tuple[str, ...], written: list[str]
) -> None:
    kernel = _kernel(pl, *fields, n=_register(16))
    for _ in range(2):  # the first run tells; the second one knows
        pl.control = [IDLE]
        kernel.start(1)
        pl.events.clear()
        pl.control = list(controls)
        kernel.wait(timeout_s=5)
        assert pl.events == written


def test_a_unit_that_does_not_hold_its_end_is_asked_once(pl: Pl, kernel: Any) -> None:
    for reads in (2, 1):
        pl.control = [IDLE]
        kernel.start(1, 2)
        pl.control = [DONE | IDLE, *[IDLE] * 5]
        kernel.wait(timeout_s=5)
        assert len(pl.control) == 6 - reads


def test_an_end_that_nobody_waited_for(pl: Pl, kernel: Any) -> None:
    pl.control = [DONE, IDLE]
    kernel.start(1, 2)
    assert pl.events == ["continue", "arguments", "start"]
    pl.events.clear()
    kernel._chain = False
    pl.control = [DONE]
    with pytest.raises(KernelBusy, match=r"an earlier run \(AP_CTRL 0x02 \[AP_DONE\]\)"):
        kernel.start(1, 2)
    assert pl.events == []


@pytest.mark.parametrize("control", [0, START, START | IDLE, 0x80])
def test_a_unit_that_runs_is_not_started(pl: Pl, kernel: Any, control: int) -> None:
    pl.control = [control]
    with pytest.raises(KernelBusy, match=f"an earlier run .AP_CTRL 0x{control:02x}"):
        kernel.start(1, 2)
    assert pl.events == []
    assert not kernel.is_claimed()


def test_only_its_own_thread_may_start_a_claimed_unit(pl: Pl, kernel: Any) -> None:
    kernel.start(1, 2)
    caught: list[Any] = []

    def other() -> None:
        caught.append(kernel.is_mine())
        try:
            kernel.start(3, 4)
        except KernelBusy as error:
            caught.append(str(error))

    thread = threading.Thread(target=other, name="other")
    thread.start()
    thread.join()
    assert caught[0] is False
    assert "k_0 is running for thread 'MainThread'; thread 'other' tried" in caught[1]
    kernel.start(5, 6)  # its own, whose run has ended
    assert pl.words[7] == 6
    kernel.abandon()
    thread = threading.Thread(target=other, name="other")
    thread.start()
    thread.join()
    assert caught[2:] == [False]
    assert pl.words[7] == 4


# ---- how a run ends ------------------------------------------------------------------------------


def test_a_timeout_keeps_what_the_run_may_still_write_to(pl: Pl, kernel: Any) -> None:
    kernel.start(_buffer(pl, "a"), 2)
    pl.control = [START]
    with pytest.raises(KernelTimeout, match=r"k_0 has not finished within 0.01 s(.|\n)*0x01"):
        kernel.wait(timeout_s=0.01)
    assert len(kernel._held) == 1
    assert not kernel.is_mine()
    for control, claimed in (
        (START, True),
        (IDLE, False),
        (DONE, False),
        (BoardHang("hangs"), True),
        (KernelFault("crashed"), False),
    ):
        kernel.abandon()
        pl.control = [control]
        assert kernel.is_claimed() is claimed, control


def test_ctrl_c_keeps_it_too(pl: Pl, kernel: Any) -> None:
    kernel.start(_buffer(pl, "a"), 2)
    pl.control = [KeyboardInterrupt(), START]
    with pytest.raises(KeyboardInterrupt):
        kernel.wait()
    assert len(kernel._held) == 1
    assert kernel.is_claimed()
    assert not kernel.is_mine()


@pytest.mark.parametrize("ask", [Kernel.wait, Kernel.has_ended])
@pytest.mark.parametrize(
    ("error", "raised"), [(BusError("gone"), StaleOverlay), (KernelFault("crashed"), KernelFault)]
)
def test_a_run_that_the_board_ends_frees_the_unit(
    pl: Pl, kernel: Any, ask: Any, error: Exception, raised: type[Exception]
) -> None:
    kernel.start(_buffer(pl, "a"), 2)
    pl.control = [error]
    text = "k_0 has left the PL while it was" if raised is StaleOverlay else "crashed"
    with pytest.raises(raised, match=text):
        ask(kernel)
    pl.control = [IDLE]
    assert not kernel.is_claimed()
    assert kernel._held == ()


def test_whether_a_run_has_ended(pl: Pl, kernel: Any) -> None:
    kernel.start(1, 2)
    found = {}
    for control in (0, START, START | IDLE, DONE, DONE | START, IDLE, 0x80):
        pl.control = [control]
        found[control] = (kernel.has_ended(), kernel.is_idle())
    assert [c for c, (ended, _) in found.items() if ended] == [DONE, DONE | START, IDLE]
    assert [c for c, (_, idle) in found.items() if idle] == [IDLE]
    pl.control = [BoardHang("hangs")]
    with pytest.raises(BoardHang):
        kernel.has_ended()
    assert kernel.is_claimed()


@pytest.mark.parametrize("change_at", ["start", "wait", "end"])
def test_another_overlay_meanwhile(pl: Pl, kernel: Any, change_at: str) -> None:
    class Late(int):
        """AP_CTRL of the new overlay's unit, read when the old one has gone."""

        def __and__(self, other: int) -> int:
            pl.timestamp = 2
            return int(self) & other

        def __int__(self) -> int:
            pl.timestamp = 2
            return IDLE

    if change_at != "start":
        kernel.start(_buffer(pl, "a"), 2)
    pl.events.clear()
    if change_at == "end":
        pl.control = [Late(IDLE)]
    else:
        pl.timestamp = 2
    with pytest.raises(StaleOverlay, match="k_0 belongs to an overlay that is no longer loaded"):
        kernel.start(1, 2) if change_at == "start" else kernel.wait()
    assert not kernel.is_claimed()
    assert pl.events == []


def test_a_run_that_registers_started(pl: Pl, kernel: Any) -> None:
    pl.control = [START, START, IDLE]
    kernel.pynq_torch_wait(1.0)
    assert pl.control == [IDLE]
    kernel.start(_buffer(pl, "a"), 2)
    kernel.pynq_torch_wait(1.0)
    assert not kernel.is_claimed()
    assert "invalidate a" in pl.events
    pl.timestamp = 2
    with pytest.raises(StaleOverlay):
        kernel.pynq_torch_wait(1.0)


# ---- arguments and results -----------------------------------------------------------------------


def test_outputs(pl: Pl) -> None:
    assert _kernel(pl, n=_register(16)).outputs() is None
    one = {"y": _register(16, "read-only"), "y_ctrl": _register(20, "read-only")}
    pl.words[4:10] = [7, 1, 8, 9, 0x01020304, 0x05060708]
    assert _kernel(pl, **one).outputs() == 7
    more = _register(24, "read-only", 64)
    assert _kernel(pl, **one, z=more).outputs() == {"y": 7, "z": 9 << 32 | 8}
    memory = {"address_offset": 32, "access": "read-write", "size": 8}
    kernel = _kernel(pl, Memory_t=memory)
    assert kernel.read_memory("t", 2).tolist() == [0x01020304, 0x05060708]
    assert kernel.read_memory("t", 5, "u1").tolist() == [4, 3, 2, 1, 8]
    assert pl.looks[-2:] == [slice(8, 10)] * 2  # no word more than is needed
    assert kernel.signature_text == "k_0(t)"
    assert _kernel(pl, in_r=_register(16)).signature_text == "k_0(in)"


def test_the_last_run_is_the_boards(pl: Any, kernel: Any) -> None:
    assert kernel.last_run is None
    pl.cus = {"k_0": SimpleNamespace(last_run="counted")}
    assert kernel.last_run == "counted"


@pytest.mark.parametrize(
    ("value", "size", "raw"),
    [
        (-(1 << 31), 32, "00000080"),
        ((1 << 32) - 1, 32, "ffffffff"),
        (True, 32, "01000000"),
        (np.int8(-1), 32, "ffffffff"),
        (np.bool_(True), 64, "0100000000000000"),
        (-(1 << 63), 64, "0000000000000080"),
        ((1 << 64) - 1, 64, "ffffffffffffffff"),
        (1.0, 32, "0000803f"),
        (1.0, 64, "000000000000f03f"),
        (1.0, 96, "000000000000f03f00000000"),
        (np.float32(1), 64, "000000000000f03f"),
        (np.float16(1), 32, "003c0000"),
        (1 << 40, 32, "32 bits; found 1099511627776"),
        (1 << 32, 32, "32 bits"),
        (-(1 << 31) - 1, 32, "32 bits"),
        (1 << 64, 64, "64 bits"),
    ],
)
def test_numbers_in_registers(pl: Pl, value: Any, size: int, raw: str) -> None:
    kernel = _kernel(pl, x=_register(16, size=size))
    if "bits" in raw:
        with pytest.raises(OverflowError, match=f"k_0: argument x has {raw}"):
            kernel.start(value)
        return
    kernel.start(value)
    assert pl.words[4 : 4 + size // 32].tobytes().hex() == raw


def test_arrays_in_registers(pl: Pl) -> None:
    memory = {"address_offset": 64, "access": "read-write", "size": 6}
    kernel = _kernel(pl, n=_register(16), Memory_t=memory)
    pl.words[16:19] = 0xFFFFFFFF
    kernel.start(1, np.arange(1, 6, dtype="u1"))
    assert pl.words[16:19].tolist() == [0x04030201, 5, 0xFFFFFFFF]
    kernel.start(1, np.arange(3, dtype="u2"))
    assert pl.words[16:19].tolist() == [1 << 16, 2, 0xFFFFFFFF]
    with pytest.raises(ValueError, match="argument t holds 6 bytes; found 7"):
        kernel.start(1, np.zeros(7, "u1"))
    pl.words[16:19] = 9
    kernel.start(1)  # an array may keep what it has
    assert pl.words[16:19].tolist() == [9, 9, 9]
    with pytest.raises(TypeError, match=r"k_0\(n, t\) takes 2 arguments; found 3"):
        kernel.start(1, np.zeros(1), 2)


# ---- for those who watch -------------------------------------------------------------------------


@pytest.fixture
def calls() -> Iterator[list[events.KernelCall]]:
    seen: list[events.KernelCall] = []
    events.runs.subscribe(seen.append)
    yield seen
    events.runs.unsubscribe(seen.append)


@pytest.mark.parametrize("raw", [False, True])
def test_an_observer_sees_both_ends_of_a_run(pl: Any, kernel: Any, calls: Any, raw: bool) -> None:
    a = _buffer(pl, "a")
    pl.cus = {"k_0": SimpleNamespace(last_run=SimpleNamespace(cycles=12, kind="cycles"))}
    address = int(a.physical_address)
    run = kernel.start_raw([address, 2], held=[a], flush=[a]) if raw else kernel.start(a, 2)
    assert len(calls) == 1
    assert (calls[0].cu, calls[0].kernel, calls[0].seconds) == ("k_0", "k", None)
    assert calls[0].registers == {"a": address, "a+4": 0, "n": 2}
    flushed_s = calls[0].transfer_s
    assert 0 < flushed_s < 1
    run.wait()
    assert len(calls) == 2
    assert calls[0].seconds is not None
    assert (calls[0].error, calls[0].cycles) == ("", 12)
    assert flushed_s <= calls[0].transfer_s < 1
    pl.cus["k_0"].last_run.kind = "model"
    kernel.start(1, 2).wait()
    assert calls[2].cycles is None


def test_an_observer_sees_how_a_run_failed(pl: Pl, kernel: Any, calls: Any) -> None:
    kernel.start(1, 2)
    kernel.start(1, 2)
    kernel.abandon()
    kernel.start(1, 2)
    pl.control = [KernelFault("crashed")]
    with pytest.raises(KernelFault):
        kernel.wait()
    pl.control = [IDLE]
    kernel.start(1, 2)
    pl.control = [BusError("gone")]
    with pytest.raises(StaleOverlay):
        kernel.has_ended()
    ends = [call.error for i, call in enumerate(calls) if call in calls[:i]]
    assert ends == ["nobody waited", "abandoned", "KernelFault", "StaleOverlay"]
    assert all(call.cycles is None for call in calls)
