"""Waits and transfers on registers alone: what they read and write, in which order, how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pynq_torch import board, waits
from pynq_torch.diagnosis import snapshot
from pynq_torch.errors import BoardHang, KernelTimeout, TransferTimeout
from pynq_torch.waits import channels as dma_channels
from pynq_torch.waits import polling, transfers
from pynq_torch.waits.transfers import TransferError


class Registers:
    """An MMIO window whose reads are values, or lists of values of which the last one stays."""

    base_addr = 0x40400000

    def __init__(self, **values: Any) -> None:
        self.values = {int(name[1:], 16): value for name, value in values.items()}
        self.written: list[tuple[int, int]] = []
        self.device = SimpleNamespace(ip_dict={"dma": {"phys_addr": self.base_addr}})
        self.array = self

    def read(self, offset: int) -> int:
        value = self.values.get(offset, 0)
        if isinstance(value, list):
            return int(value.pop(0) if len(value) > 1 else value[0])
        return int(value)

    def write(self, offset: int, value: int) -> None:
        self.written.append((offset, value))

    def __getitem__(self, word: int) -> int:
        return self.read(4 * word)

    def __setitem__(self, word: int, value: int) -> None:
        self.write(4 * word, value)


class Channel:
    """A simple DMA channel with pynq's fields."""

    def __init__(self, mmio: Registers, side: str = "send", **fields: Any) -> None:
        self._mmio, self._offset = mmio, 0 if side == "send" else 0x30
        self._flush_before = side == "send"
        self._max_size, self._align, self._dre = 255, 4, False
        self._active_buffer = self._interrupt = None
        self._first_transfer, self.transferred = False, 99
        self.calls: list[str] = []
        self.__dict__.update(fields)

    def transfer(self, data: Any) -> None:
        self.calls.append(f"transfer {data}")
        self._active_buffer = data

    def wait(self) -> None:
        self.calls.append("wait")

    def _clear_interrupt(self) -> None:
        self.calls.append("clear")


class Gathering(Channel):
    """A scatter-gather channel."""

    def __init__(self, mmio: Registers, side: str = "send", **fields: Any) -> None:
        more = {"_num_descr": 2, "_descr": None, "_transfer_started": True, "_cyclic": False}
        super().__init__(mmio, side, **more | fields)


def _dma(send: Any, recv: Any = None) -> Any:
    mmio = (send or recv)._mmio
    return SimpleNamespace(
        sendchannel=send, recvchannel=recv, mmio=mmio, device=mmio.device, _fullpath="dma"
    )


def _buffer(nbytes: int = 64) -> Any:
    return SimpleNamespace(nbytes=nbytes, physical_address=0x18000000)


class Clock:
    """A clock that goes on by what is slept, and a little by each look at it."""

    def __init__(self, look_s: float = 1e-6) -> None:
        self.now, self.look_s = 100.0, look_s
        self.slept: list[float] = []

    def __call__(self) -> float:
        self.now += self.look_s
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(polling, "time", SimpleNamespace(perf_counter=clock, sleep=clock.sleep))
    monkeypatch.setattr(board, "time", SimpleNamespace(perf_counter=clock))
    monkeypatch.setattr(board, "_current", None)
    monkeypatch.setattr(waits, "wait_clock", clock)
    return clock


# ---- polling -------------------------------------------------------------------------------------


def test_a_timeout_is_a_float_whatever_number_it_was() -> None:
    assert [polling.check_timeout(t) for t in (1, 0.5, 1e-9)] == [1.0, 0.5, 1e-9]
    assert isinstance(polling.check_timeout(1), float)
    for bound in (0, -1, float("inf"), float("nan"), None, "1"):
        with pytest.raises(ValueError, match=f"timeout_s is {bound!r}"):
            polling.check_timeout(bound)  # type: ignore[arg-type]


def test_a_poll_at_the_very_end_is_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks, slept = {name: iter(range(9)) for name in ("wait", "cpu")}, []
    time = SimpleNamespace(perf_counter=lambda: next(clocks["cpu"]), sleep=slept.append)
    monkeypatch.setattr(polling, "time", time)
    monkeypatch.setattr(polling, "wait_clock", lambda: next(clocks["wait"]))
    monkeypatch.setattr(polling, "SPIN_S", 2)
    monkeypatch.setattr(polling, "LONGEST_SLEEP_S", 100)
    assert list(polling.polls(4)) == [0, 1, 2, 3, 4]
    assert slept == [3 / 10, 1e-5]


def test_the_clock_is_the_boards_where_there_is_one(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert polling.wait_clock() == pytest.approx(100.0)
    monkeypatch.setattr(board, "_current", SimpleNamespace(wait_clock=lambda: 7.0))
    assert polling.wait_clock() == 7.0


@pytest.mark.parametrize("timeout_s", [0.5, 3e-3])
def test_pauses_between_polls(clock: Clock, timeout_s: float) -> None:
    clock.look_s = 5e-6
    spun, times = 0, []
    for waited in polling.polls(timeout_s):
        spun += not clock.slept
        times.append(waited)
        assert waited <= timeout_s
    assert times[0] == 0.0
    assert times == sorted(times)
    assert 8 <= spun <= 12  # two looks a poll for 100 us
    # A tenth of the time so far, 2 ms at most, and not beyond the end.
    assert clock.slept[0] == pytest.approx(11e-6, rel=0.2)
    for before, after in zip(clock.slept, clock.slept[1:-1], strict=False):
        assert after == pytest.approx(min(before * 1.1 + 1e-6, 2e-3), rel=0.1)
    assert timeout_s < clock.now - 100.0 < timeout_s + 3e-5
    assert max(clock.slept) == pytest.approx(min(2e-3, timeout_s / 11), rel=0.1)


def test_what_holds_at_the_end_is_in_time(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(*values: bool) -> Callable[[], bool]:
        return iter(values).__next__

    polled: list[float] = []

    def polls(timeout_s: float) -> Iterator[float]:
        polled.append(timeout_s)
        yield from (0.0, 1.0)

    monkeypatch.setattr(polling, "polls", polls)
    assert polling.ends(seen(True), 3.0)
    assert not polled
    assert polling.ends(seen(False, False, True), 3.0)
    assert polled == [3.0]
    assert polling.ends(seen(False, False, False, True), 3.0)
    assert not polling.ends(seen(False, False, False, False), 3.0)

    def hang() -> bool:
        raise BoardHang("it cannot end")

    assert polling.ends(hang, 3.0) is False


# ---- kernels -------------------------------------------------------------------------------------


def _ip(*controls: int, fields: tuple[str, ...] = ("AP_START",), **more: Any) -> Any:
    mmio = Registers(_0=list(controls))
    registers = {"CTRL": {"fields": dict.fromkeys(fields)}}
    values = {"mmio": mmio, "_registers": registers, "_fullpath": "k", "device": None}
    return SimpleNamespace(**values | more)


@pytest.mark.parametrize(
    ("controls", "written"),
    [
        ((0x1, 0x1, 0xE, 0x4), []),
        ((0x1, 0x4), []),
        ((0x0, 0x80, 0x4), []),
        ((0x5, 0x6, 0x6), [(0, 0x10)]),  # ap_ctrl_chain: AP_DONE stays until AP_CONTINUE
        ((0x81, 0x83, 0x83), [(0, 0x90)]),  # with auto-restart, which stays on
        ((0x81, 0x83, 0x81), []),
    ],
)
def test_when_a_kernel_has_finished(
    clock: Clock, controls: tuple[int, ...], written: list[tuple[int, int]]
) -> None:
    ip = _ip(*controls)
    waits.wait(ip, timeout_s=1.0)
    assert ip.mmio.written == written
    assert clock.now < 100.01


@pytest.mark.parametrize("control", [0x1, 0x5, 0x0])
def test_a_kernel_that_does_not_finish(clock: Clock, control: int) -> None:
    ip = _ip(control)
    with pytest.raises(KernelTimeout, match=r"k has not finished within 0.25 s\n") as caught:
        waits.wait(ip, timeout_s=0.25)
    assert 0.25 < clock.now - 100.0 < 0.26
    assert f"k: AP_CTRL 0x{control:02x}" in str(caught.value)
    facts = caught.value.diagnosis.facts  # type: ignore[attr-defined]
    assert (facts.waited_s, facts.kernels[0].control, facts.stale) == (0.25, control, False)
    ip.device = SimpleNamespace(ip_dict={"k": {"phys_addr": 0x43C00000}})
    assert "stale overlay" in str(waits.kernel_timeout(ip, "k", 1.0, control))


def test_what_has_no_end_to_wait_for() -> None:
    with pytest.raises(TypeError, match="k has no AP_CTRL register at offset 0"):
        waits.wait(_ip(0, fields=()))
    with pytest.raises(TypeError, match="SimpleNamespace has no AP_CTRL"):
        waits.wait(SimpleNamespace(mmio=Registers()))


# ---- the same, awaited ---------------------------------------------------------------------------


class Line:
    """An interrupt."""

    def __init__(self) -> None:
        self.waiting = True

    async def wait(self) -> None:
        """Wait."""


class Awaited:
    """Replaces asyncio's waiting and the plain wait that follows, and records both."""

    def __init__(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.comes_s = clock, 1e9
        clock.look_s = 0.0
        self.limits: list[float] = []
        self.waited: list[float] = []
        monkeypatch.setattr(waits.asyncio, "sleep", clock.sleep_async)
        monkeypatch.setattr(waits.asyncio, "wait_for", self._wait_for)
        monkeypatch.setattr(waits, "wait", lambda _, timeout_s: self.waited.append(timeout_s))

    async def _wait_for(self, coroutine: Any, limit_s: float) -> None:
        coroutine.close()
        self.limits.append(limit_s)
        self.clock.sleep(min(limit_s, self.comes_s))
        if limit_s < self.comes_s:
            raise asyncio.TimeoutError

    def run(self, target: Any, timeout_s: float) -> None:
        coroutine = waits.wait_async(target, timeout_s)
        with pytest.raises(StopIteration):
            coroutine.send(None)


@pytest.fixture
def awaited(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Awaited:
    return Awaited(clock, monkeypatch)


def test_without_an_interrupt_pauses_grow(awaited: Awaited) -> None:
    awaited.run(_ip(*[1] * 20, 6), 10.0)
    pauses = awaited.clock.slept
    assert len(pauses) == 20
    assert pauses == pytest.approx([min(1e-4 * 1.5**i, 5e-3) for i in range(20)])
    assert awaited.waited == [pytest.approx(10.0 - sum(pauses))]  # what is left of the time


def test_the_last_pause_ends_with_the_time(awaited: Awaited) -> None:
    awaited.run(_ip(1), 0.02)
    assert sum(awaited.clock.slept) == pytest.approx(0.02)
    assert awaited.waited == [1e-3]  # time for one look


def test_a_kernels_interrupt_is_enabled_and_acknowledged(awaited: Awaited) -> None:
    line, awaited.comes_s = Line(), 0.03
    ip = _ip(0x1, 0x1, 0xE, interrupt=line)
    ip.mmio.values[0x0C] = [1, 0]
    awaited.run(ip, 5.0)
    # IER, GIE; then ISR, which toggles, where it is set and only there.
    assert ip.mmio.written == [(0x08, 1), (0x04, 1), (0x0C, 1)]
    assert awaited.limits == pytest.approx([0.1, 0.1])
    assert awaited.waited == pytest.approx([4.94])
    assert line.waiting


def test_a_lost_interrupt_costs_a_tenth_of_a_second(awaited: Awaited) -> None:
    line = Line()
    awaited.run(_ip(0x1, 0x1, 0x1, 0x4, interrupt=line), 0.25)
    assert awaited.limits == pytest.approx([0.1, 0.1, 0.05])
    assert awaited.waited == [1e-3]
    assert not line.waiting


@pytest.mark.parametrize("status", [0x2, 0x1, 0x10, 0x400])
def test_a_channel_that_has_stopped_is_not_awaited(awaited: Awaited, status: int) -> None:
    mmio = Registers(_34=[0x1000, status])
    channel = Channel(mmio, "recv", _interrupt=Line())
    awaited.comes_s = 0.01
    awaited.run(channel, 1.0)
    assert channel.calls == ["clear"]
    assert awaited.waited == pytest.approx([0.99])


def test_an_interrupt_that_does_not_come(awaited: Awaited) -> None:
    line = SimpleNamespace(event=None, parent=None, wait=Line().wait, waiting=True)
    with pytest.raises(KernelTimeout, match=r"no interrupt in 0\.5 s"):
        waits.wait_async(line, 0.5).send(None)
    assert awaited.limits == [0.5]
    assert not line.waiting
    awaited.comes_s = 0.1
    awaited.run(line, 0.5)
    assert awaited.waited == []


def test_a_dma_is_awaited_by_channel(awaited: Awaited) -> None:
    for target in (_dma(Channel(Registers())), 3):
        with pytest.raises(TypeError, match="cannot await"):
            waits.wait_async(target, 1.0).send(None)


# ---- channels ------------------------------------------------------------------------------------


def test_only_armed_channels_of_a_dma_are_waited_for(clock: Clock) -> None:
    mmio = Registers(_4=0x2, _34=0x0)
    send = Channel(mmio, _active_buffer=_buffer(), _interrupt=Line())
    recv = Channel(mmio, "recv")
    waits.wait(_dma(send, recv), timeout_s=1.0)
    assert send.calls == ["wait", "clear"]
    assert recv.calls == []
    recv._active_buffer = _buffer()
    with pytest.raises(TransferTimeout, match=r"\(send and recv\) has not ended within 0.5 s"):
        waits.wait(_dma(send, recv), timeout_s=0.5)
    assert 0.5 < clock.now - 100.0 < 0.51


@pytest.mark.parametrize(
    ("kind", "status", "state"),
    [
        *((Channel, s, n) for s, n in ((0x0, 0), (0x1000, 0), (0x2, 1), (0x1002, 1), (0x1, 2))),
        *((Channel, s, 2) for s in (0x12, 0x20, 0x42)),
        *((Gathering, s, n) for s, n in ((0x0, 0), (0x1, 1), (0xA, 1), (0x101, 2), (0x403, 2))),
    ],
)
def test_the_state_of_a_channel(kind: Any, status: int, state: int) -> None:
    assert dma_channels._state(kind(Registers(_34=status), "recv")) == state


def test_an_error_ends_the_wait_at_once(clock: Clock) -> None:
    mmio = Registers(_4=0x0, _34=[0x0, 0x11])
    send, recv = (Channel(mmio, s, _active_buffer=_buffer()) for s in ("send", "recv"))
    with pytest.raises(TransferError, match=r"dma: the transfer \(send and recv\) stopped with"):
        waits.wait(_dma(send, recv), timeout_s=5.0)
    assert clock.now < 100.1


def test_what_was_armed_by_hand_has_no_buffer_to_hand_back(clock: Clock) -> None:
    send = Channel(Registers(_4=0x2, _28=8))
    waits.wait(send, timeout_s=1.0)
    assert send.calls == []
    never = Channel(Registers(_34=0x1), "recv")
    with pytest.raises(TransferError, match=r"dma\.recvchannel has nothing to wait for"):
        waits.wait(never, timeout_s=1.0)
    with pytest.raises(TransferError, match=r"dma\.sendchannel has nothing to wait for"):
        waits.wait(Gathering(Registers(_4=0x1), _transfer_started=False), timeout_s=1.0)
    with pytest.raises(TransferError, match="a cyclic transfer never ends"):
        waits.wait(Gathering(Registers(_4=0x0), _cyclic=True), timeout_s=1.0)


@pytest.mark.parametrize(
    ("side", "parameters", "built"),
    [
        ("send", {"c_include_s2mm": "1"}, True),
        ("send", {"C_INCLUDE_S2MM": "1", "C_INCLUDE_MM2S": "0"}, True),
        ("send", {"c_include_s2mm": "0", "c_include_mm2s": "1"}, False),
        ("send", {}, False),
        ("recv", {"c_include_mm2s": "1"}, True),
        ("recv", {"c_include_s2mm": "1"}, False),
    ],
)
def test_the_other_channel_of_one_at_hand(
    side: str, parameters: dict[str, Any], built: bool
) -> None:
    mmio = Registers(_4=0x10001, _34=0x10002)
    mmio.device.ip_dict = {
        "gpio": {"phys_addr": 0x41200000},
        "dma": {"phys_addr": mmio.base_addr, "parameters": parameters},
    }
    channel = Channel(mmio, side)
    view = dma_channels.dma_of(channel)
    assert view._fullpath == "dma"
    assert (view.sendchannel if side == "send" else view.recvchannel) is channel
    other = view.recvchannel if side == "send" else view.sendchannel
    assert (other is not None) == built
    if built:
        state = snapshot.read_channel(other)
        assert (state.side, state.status) == (
            ("recv", 0x10002) if side == "send" else ("send", 0x10001)
        )
        assert (state.max_bytes, state.width_bytes, state.realigns) == (255, 4, True)
    gathering = dma_channels.dma_of(Gathering(mmio, side))
    assert None in (gathering.sendchannel, gathering.recvchannel)
    mmio.base_addr = 0x40410000
    assert dma_channels.dma_of(channel)._fullpath == ""


# ---- ready, reset --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status", "first", "expected"),
    [
        (Channel, 0x0, True, "ready"),
        (Channel, 0x0, False, "busy"),
        (Channel, 0x2, False, "ready"),
        (Channel, 0x1, False, "reset"),
        (Channel, 0x42, False, "reset"),
        (Gathering, 0x1, False, "ready"),
        (Gathering, 0x8, True, "busy"),
        (Gathering, 0xA, False, "ready"),
        (Gathering, 0x101, False, "reset"),
    ],
)
@pytest.mark.parametrize("side", ["send", "recv"])
def test_the_state_a_transfer_starts_from(
    monkeypatch: pytest.MonkeyPatch, kind: Any, status: int, first: bool, expected: str, side: str
) -> None:
    resets: list[Any] = []
    monkeypatch.setattr(dma_channels, "reset", resets.append)
    ready = 0x1 if kind is Gathering else 0x2
    mmio = Registers(_4=status, _34=ready) if side == "send" else Registers(_4=ready, _34=status)
    dma = _dma(*(kind(mmio, s, _first_transfer=first) for s in ("send", "recv")))
    if expected == "busy":
        with pytest.raises(TransferError, match=rf"dma\.{side}channel is still running"):
            dma_channels.make_ready(dma)
    else:
        dma_channels.make_ready(dma)
    assert resets == ([dma] if expected == "reset" else [])


@pytest.mark.parametrize("interrupt", [None, Line()])
def test_a_reset_starts_both_channels(clock: Clock, interrupt: Any) -> None:
    mmio = Registers(_0=[4, 4, 0], _4=[1, 0], _30=[4, 0], _34=[1, 1, 0])
    more = {"_interrupt": interrupt, "_active_buffer": _buffer()}
    channels = [Channel(mmio, side, **more) for side in ("send", "recv")]
    dma_channels.reset(_dma(*channels), drain=False)
    control = 0x1001 if interrupt else 0x1
    assert mmio.written == [(0x0, 4), (0x30, 4), (0x0, control), (0x30, control)]
    for channel in channels:
        assert (channel._active_buffer, channel.transferred) == (None, 0)
        assert channel._first_transfer


def test_a_reset_leaves_scatter_gather_halted(clock: Clock) -> None:
    mmio = Registers(_4=0x1)
    channel = Gathering(mmio, _descr="descriptors", _cyclic=True)
    dma_channels.reset(_dma(channel))
    assert mmio.written == [(0x0, 4)]
    assert (channel._descr, channel._transfer_started, channel._cyclic) == (None, False, False)


def test_a_reset_that_does_not_end_says_what_does_not_run(clock: Clock) -> None:
    with pytest.raises(TransferTimeout, match=r"Reset did not clear within 0.25 s"):
        dma_channels.reset(_dma(Channel(Registers(_0=4))), 0.25)
    assert 0.25 < clock.now - 100.0 < 0.26
    with pytest.raises(TransferTimeout, match=r"channel at 0x30 did not start within 0.25 s"):
        dma_channels.reset(_dma(None, Channel(Registers(_34=1), "recv")), 0.25)
    with pytest.raises(TypeError, match="one reset covers both channels"):
        dma_channels.reset(Channel(Registers()))


def test_what_a_source_still_sends_is_drained(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Any] = []
    resets: list[float] = []

    def take(shape: tuple[int, ...], dtype: Any) -> Any:
        taken.append((shape, dtype))
        return "scratch"

    monkeypatch.setattr(dma_channels, "pool_of", lambda device: SimpleNamespace(take=take))
    monkeypatch.setattr(dma_channels, "_reset", lambda dma, timeout_s: resets.append(timeout_s))
    mmio = Registers(_34=[0x2, 0x11, 0x0])
    channel = Channel(mmio, "recv", _max_size=1023)
    dma_channels.reset(_dma(None, channel), 0.5)
    assert channel.calls == ["transfer scratch"] * 3  # until nothing comes
    assert resets == [0.5] * 4
    assert 5e-3 < clock.now - 100.0 < 6e-3
    assert taken == [((1020,), np.dtype("u1"))]
    channel._max_size, mmio.values[0x34] = (1 << 26) - 1, 0x2
    channel.calls.clear()
    dma_channels.reset(_dma(None, channel))
    assert len(channel.calls) == 64  # a source that never stops
    assert taken[1][0] == (16384,)
    channel.calls.clear()
    dma_channels.reset(_dma(None, channel), drain=False)
    assert channel.calls == []


@pytest.mark.parametrize("left", [0, 1, 3])
def test_beats_of_an_earlier_transfer(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    monkeypatch.setattr(transfers, "buffer_of", lambda data: data)
    monkeypatch.setattr(transfers, "_Probe", lambda buffer: None)
    mmio = Registers(_4=0x2, _34=0x2, _0=0)
    mmio.device.ip = {"dma": SimpleNamespace(describe=lambda: {"MM2S": {"left": left}})}
    dma = _dma(Channel(mmio), Channel(mmio, "recv"))
    data = SimpleNamespace(
        flags=SimpleNamespace(c_contiguous=True), device=None, **vars(_buffer(99))
    )
    if left:
        with pytest.raises(TransferError, match=rf"dma cannot be used(.|\n)*{left} beats? of an"):
            transfers.transfer(dma, send=data)
        assert f"still hold {left} beat{'s' * (left > 1)}," in transfers._recovered(dma)
    else:
        assert transfers.transfer(dma, send=data) == (99, 0)
        assert "can be used" in transfers._recovered(dma)
    assert transfers.transfer(dma, recv=data) == (0, 99)
    assert dma.recvchannel.calls == [f"transfer {data}", "wait"]
    with pytest.raises(TransferError, match="a short packet was received") as caught:
        dma.recvchannel.transferred = 98
        transfers.transfer(dma, recv=data)
    assert caught.value.diagnosis is not None
    assert caught.value.diagnosis.facts.recv is not None
    assert caught.value.diagnosis.facts.recv.requested == 99
    assert transfers.transfer(dma, recv=data, exact=False) == (0, 98)
    dma.recvchannel._active_buffer = None
    data.nbytes = 0
    assert transfers.transfer(dma, recv=data) == (0, 0)


class Memory(np.ndarray[Any, Any]):
    """A buffer whose invalidate brings what the PL has written."""

    arrives: dict[int, int]

    def invalidate(self) -> None:
        for index, value in self.arrives.items():
            self[index] = value


@pytest.mark.parametrize(
    ("size", "arrives", "changed"),
    [
        (640, {}, None),
        (640, {0: 1}, 1),
        (640, {0: 1, 630: 1}, 631),
        (640, {631: 1}, None),
        (5, {4: 1}, 5),
        (130, {128: 1}, 129),
        (6400, {200: 1}, 201),
    ],
)
def test_how_much_of_a_buffer_was_written(
    size: int, arrives: dict[int, int], changed: int | None
) -> None:
    memory = np.zeros(size, "u1").view(Memory)
    memory.arrives = arrives
    assert transfers._Probe(memory).changed() == changed
    assert transfers._Probe(None).changed() is None


# ---- snapshots -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nbytes", "status", "length", "requested"),
    [
        (None, 0x0, 8, 8),  # armed by hand
        (None, 0x0, 0, None),
        (None, 0x1, 8, None),
        (None, 0x2, 8, None),
        (64, 0x0, 32, 32),  # while it runs LENGTH reads what was programmed
        (64, 0x2, 32, 64),
        (64, 0x1, 32, 64),
        (255, 0x0, 255, 255),
        (300, 0x0, 44, 300),  # the upper bits were cut off
        (300, 0x0, 40, 40),
    ],
)
def test_how_much_a_channel_was_asked_for(
    nbytes: int | None, status: int, length: int, requested: int | None
) -> None:
    mmio = Registers(_34=status, _58=length, _48=0x8765_4320, _4C=0x1)
    buffer = None if nbytes is None else _buffer(nbytes)
    channel = Channel(mmio, "recv", _active_buffer=buffer)
    state = snapshot.read_channel(channel)
    assert (state.side, state.status, state.length_register) == ("recv", status, length)
    assert (state.address, state.requested) == (0x1_8765_4320, requested)
    assert snapshot.read_channel(channel, requested=7).requested == 7


@pytest.mark.parametrize(
    ("side", "status", "given", "moved"),
    [
        ("recv", 0x2, {"requested": 64}, (40, True)),
        ("send", 0x2, {"requested": 64}, (64, True)),
        ("recv", 0x0, {"requested": 64}, (None, False)),
        ("recv", 0x0, {"requested": 64, "changed": 9}, (9, False)),
        ("recv", 0x2, {}, (None, True)),
        ("recv", 0x0, {"requested": 64, "said": {"bytes": 12}}, (12, True)),
        ("recv", 0x0, {"requested": 64, "changed": 9, "said": {"bytes": 12}}, (9, False)),
        ("recv", 0x0, {"requested": 64, "said": {"left": 1}}, (None, False)),
        ("recv", 0x2, {"said": {"bytes": 12}}, (None, True)),
    ],
)
def test_how_much_has_moved(side: str, status: int, given: dict[str, Any], moved: Any) -> None:
    mmio = Registers(_4=status, _28=40, _34=status, _58=40)
    state = snapshot.read_channel(Channel(mmio, side), **given)
    assert (state.moved, state.moved_exact) == moved


def test_a_scatter_gather_channel_adds_its_descriptors() -> None:
    class Descriptors(np.ndarray[Any, Any]):
        def invalidate(self) -> None:
            self[:, 7] = 0x8400_0000 + 5

    descriptors = np.zeros((3, 16), np.uint32).view(Descriptors)
    descriptors[:, 6] = 99
    channel = Gathering(Registers(_4=0x8), _descr=descriptors, _active_buffer=_buffer(64))
    state = snapshot.read_channel(channel)
    assert (state.moved, state.moved_exact, state.requested) == (15, True, 64)
    assert (state.address, state.length_register) == (0x18000000, 0)
    bare = snapshot.read_channel(Gathering(Registers(_4=0x1)))
    assert (bare.moved, bare.requested, bare.address) == (None, None, 0)


def test_what_a_board_adds() -> None:
    class Model:
        said: dict[str, Any]

        def describe(self) -> dict[str, Any]:
            return self.said

    model = Model()
    device = SimpleNamespace(ip={"k": model, "other": 3})
    assert snapshot.board_says(device, "other") == snapshot.board_says(device, "none") == {}
    model.said = {}
    assert str(snapshot.read_kernel("k", _ip(0x4), device)) == "k: AP_CTRL 0x04 [AP_IDLE]"
    model.said = {"starts": 2, "runs": 1}
    assert snapshot.read_kernel("k", _ip(0x4), device).note == "2 starts, 1 runs ended"
    model.said = {"blocked_on": "x", "activity": "reads"}
    said = snapshot.read_kernel("k", _ip(0x4), device)
    assert said.note == "0 starts, 0 runs ended, waits on stream x; reads"
    without = _ip(0x4)
    without._registers = {"n": {}}
    assert snapshot.read_kernel("k", without, device).control is None
    without._registers = None  # nothing is known: ask the register
    assert snapshot.read_kernel("k", without).control == 0x4
    tlast = [
        snapshot._tlast({"S2MM": now}, {"S2MM": {"packets": 3}} if before else {})
        for now in ({}, {"packets": 3}, {"packets": 4}, {"packets": 3, "tlast": True})
        for before in (True, False)
    ]
    assert tlast == [None, None, False, True, True, True, True, True]
    assert snapshot._tlast({"S2MM": {"packets": 0}}, {}) is False
    assert [snapshot.beats_left(s) for s in ({}, {"MM2S": {}}, {"MM2S": {"left": 5}})] == [0, 0, 5]


def test_which_objects_are_stale() -> None:
    device = SimpleNamespace(ip_dict={"k": {"phys_addr": 16}})
    assert not snapshot.is_stale(device, "k", 16)
    assert snapshot.is_stale(device, "k", 32)
    assert snapshot.is_stale(device, "j", 16)
    assert not snapshot.is_stale(device, "", 32)
    assert not snapshot.is_stale(SimpleNamespace(), "k", 32)


def test_everything_about_a_dma() -> None:
    mmio = Registers(_4=0x0, _28=8, _34=0x0, _58=16)
    says = {"MM2S": {"left": 3, "ignored": ("a",)}, "S2MM": {"packets": 1, "ignored": ["b"]}}
    mmio.device.ip = {"dma": SimpleNamespace(describe=lambda: says)}
    dma = _dma(Channel(mmio), Channel(mmio, "recv"))
    facts = snapshot.gather(dma, waited_s=2.0, sent=8, received=16, changed=4)
    assert (facts.target, facts.waited_s, facts.stale, facts.left) == ("dma", 2.0, False, 3)
    assert facts.send is not None
    assert facts.recv is not None
    assert (facts.send.requested, facts.send.moved) == (8, None)
    assert (facts.recv.requested, facts.recv.moved) == (16, 4)
    assert (facts.tlast, facts.notes) == (True, ("MM2S: a", "S2MM: b"))
    before = {"S2MM": {"packets": 1}}
    assert snapshot.gather(dma, waited_s=0.0, before=before).tlast is False
    dma.sendchannel = None
    assert snapshot.gather(dma, waited_s=0.0).send is None
    mmio.base_addr = 0
    stale = snapshot.gather(dma, waited_s=1.0)
    assert (stale.stale, stale.waited_s, stale.channels) == (True, 1.0, ())
