"""AXI timer and AXI BRAM controller."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.handoff_ranges import Slave
from pynq_torch.board.ip.axi_bram import AxiBram
from pynq_torch.board.ip.axi_timer import AxiTimer
from pynq_torch.board.memory import PhysicalMemory

pytestmark = pytest.mark.timeout(60)

_TOP = 0xFFFFFFFF
_UDT, _CAPT, _ARHT, _LOAD, _ENIT, _ENT, _TINT, _PWMA, _ENALL, _CASC = (
    2, 8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x200, 0x400, 0x800,
)  # fmt: skip


class Bench:
    """A timer at 100 MHz whose clock only the test moves."""

    def __init__(self, **parameters: str) -> None:
        self.irqs = threading.Event()
        board: Any = SimpleNamespace(
            clock_hz=lambda ip: 100e6, raise_irq=lambda model: self.irqs.set()
        )
        self.timer = AxiTimer(board, IpInstance("timer", "xilinx.com:ip:axi_timer:2.0", parameters))
        self._now = 0
        self.timer.now_ns = lambda: self._now
        self.timer._seen_ns = 0

    def tick(self, cycles: int) -> None:
        self._now += cycles * 10

    def start(self, index: int, load: int, control: int) -> None:
        base = 16 * index
        self.timer.write(base + 4, load)
        self.timer.write(base, control & ~_ENT | _LOAD)
        self.timer.write(base, control | _ENT)

    def count(self, index: int = 0) -> int:
        return self.timer.read(16 * index + 8)

    def control(self, index: int = 0) -> int:
        return self.timer.read(16 * index)


def test_counts_up_and_down_with_the_clock() -> None:
    bench = Bench()
    bench.start(0, 1000, 0)
    bench.start(1, 1000, _UDT)
    bench.tick(300)
    assert (bench.count(0), bench.count(1)) == (1300, 700)
    bench.timer.write(0, 0)  # stop
    bench.tick(300)
    assert bench.count(0) == 1300
    bench.timer.write(0, _ENT)  # go on from there
    bench.tick(5)
    assert bench.count(0) == 1305


def test_load_holds_the_counter() -> None:
    bench = Bench()
    bench.timer.write(4, 77)
    bench.timer.write(0, _LOAD | _ENT)
    bench.tick(10)
    assert bench.count() == 77
    bench.timer.write(8, 5)  # TCR is read-only
    assert bench.count() == 77


@pytest.mark.parametrize(("load", "control", "period"), [(98, _UDT, 100), (_TOP - 98, 0, 100)])
def test_period_with_auto_reload(load: int, control: int, period: int) -> None:
    bench = Bench()
    bench.start(0, load, control | _ARHT)
    bench.tick(period - 1)
    assert not bench.control() & _TINT
    bench.tick(1)
    assert bench.control() & _TINT
    assert bench.count() == load
    bench.timer.write(0, control | _ARHT | _ENT | _TINT)  # write 1 to clear
    assert not bench.control() & _TINT
    bench.tick(period * 7 + 3)
    assert bench.control() & _TINT
    assert bench.count() == (load - 3 if control & _UDT else load + 3)


def test_without_reload_the_counter_holds_its_last_value() -> None:
    bench = Bench()
    bench.start(0, 10, _UDT)
    bench.tick(1000)
    assert bench.count() == 0 and bench.control() & _TINT
    bench.start(0, _TOP - 10, 0)
    bench.tick(1000)
    assert bench.count() == _TOP
    bench.timer.write(0, _ARHT | _ENT)  # with it the counter loads and goes on
    bench.tick(5)
    assert bench.count() == _TOP - 10 + 3


def test_capture_stores_the_count() -> None:
    bench = Bench()
    bench.start(0, 0, 1 | _CAPT)
    bench.tick(123)
    bench.timer.capture(0)
    assert bench.timer.read(4) == 123 and bench.control() & _TINT
    bench.tick(7)
    bench.timer.capture(0)
    bench.tick(7)
    bench.timer.capture(0)  # not read yet: without ARHT the first one stays
    assert bench.timer.read(4) == 130
    bench.timer.write(0, 1 | _CAPT | _ENT | _ARHT | _TINT)
    bench.timer.capture(0)
    bench.tick(1)
    bench.timer.capture(0)
    assert bench.timer.read(4) == 138
    bench.start(1, 1000, 1 | _CAPT)
    bench.tick(4)
    bench.timer.capture(1)
    assert bench.timer.read(0x14) == 1004


def test_capture_counter_wraps_without_an_interrupt() -> None:
    bench = Bench()
    bench.start(0, _TOP - 4, 1 | _CAPT)
    bench.tick(10)
    assert bench.count() == 5 and not bench.control() & _TINT
    with pytest.raises(ValueError, match="no input"):
        bench.timer.capture(2)


def test_cascade_counts_64_bits() -> None:
    bench = Bench()
    bench.timer.write(0x04, _TOP - 9)
    bench.timer.write(0x14, 3)
    bench.timer.write(0x10, _LOAD)
    bench.timer.write(0x00, _CASC | _LOAD)
    bench.timer.write(0x10, 0)
    bench.timer.write(0x00, _CASC | _ENT)
    bench.tick(30)
    assert (bench.count(0), bench.count(1)) == (20, 4)


def test_capture_of_64_bits() -> None:
    bench = Bench()
    assert [bench.timer.read(at) for at in (0, 4, 8, 0x10, 0x14, 0x18)] == [0] * 6
    bench.timer.write(0x04, 9)
    bench.timer.write(0x14, 3)
    mode = _CASC | _CAPT | _ARHT | 1
    bench.timer.write(0x00, mode | _LOAD)
    bench.timer.write(0x00, mode | _ENT)
    for ticks, low in ((12, 21), (1, 22)):
        bench.tick(ticks)
        bench.timer.capture(0)
        assert (bench.timer.read(0x04), bench.timer.read(0x14)) == (low, 3)
    bench.tick(_TOP)
    bench.timer.capture(0)
    assert (bench.timer.read(0x04), bench.timer.read(0x14)) == (21, 4)
    assert bench.control() & _TINT and not bench.control(1) & _TINT


def test_enall_starts_both() -> None:
    bench = Bench()
    bench.timer.write(0, _ENALL)
    bench.tick(5)
    assert (bench.count(0), bench.count(1)) == (5, 5)
    assert bench.control(1) & _ENALL
    bench.timer.write(0x10, _ENT)
    assert not bench.control(0) & _ENALL and bench.control(0) & _ENT


def test_pwm_period_and_high_time() -> None:
    bench = Bench()
    mode = _PWMA | 4 | _UDT | _ARHT
    bench.start(0, 998, mode)
    assert bench.timer.pwm is None
    bench.start(1, 248, mode)
    assert bench.timer.pwm == pytest.approx((10e-6, 2.5e-6))
    # Counting up: the cycles that are missing to the highest count, and two.
    bench.start(0, _TOP - 998, mode & ~_UDT)
    bench.start(1, _TOP - 98, mode & ~_UDT)
    assert bench.timer.pwm == pytest.approx((10e-6, 1e-6))


def test_one_timer_only_and_narrow_counters() -> None:
    bench = Bench(C_ONE_TIMER_ONLY="1", C_COUNT_WIDTH="16")
    bench.timer.write(0x14, 5)
    assert bench.timer.read(0x14) == 0
    with pytest.raises(ValueError, match="timer has no input capturetrig1"):
        bench.timer.capture(1)
    bench.start(0, 0x1FFFF, 0)
    assert bench.timer.read(4) == 0xFFFF
    bench.tick(2)
    assert bench.control() & _TINT and not bench.timer.irq("interrupt")
    bench.timer.write(0, _ENIT)
    assert bench.timer.irq("interrupt")


def test_a_change_of_clock_keeps_the_count() -> None:
    bench = Bench()
    bench.start(0, 0, 0)
    bench.tick(100)
    assert bench.count() == 100
    bench.timer.board.clock_hz = lambda ip: 50e6  # type: ignore[method-assign]
    bench.tick(100)
    assert bench.count() == 150


def test_the_interrupt_comes_by_itself() -> None:
    bench = Bench()
    bench.timer.now_ns = time.monotonic_ns
    bench.timer._seen_ns = time.monotonic_ns()
    bench.start(0, 2_000_000, _UDT | _ENIT)  # 20 ms
    bench.irqs.clear()
    assert not bench.timer.irq("interrupt")
    assert bench.irqs.wait(5)
    assert bench.timer.irq("interrupt")
    bench.timer.write(0, _TINT)
    assert not bench.timer.irq("interrupt")
    bench.timer.close()


def test_the_alarm_is_set_for_the_first_rollover(monkeypatch: pytest.MonkeyPatch) -> None:
    alarms: list[float] = []

    class Alarm(threading.Timer):
        def __init__(self, seconds: float, call: Any) -> None:
            super().__init__(3600, call)
            alarms.append(seconds * 100e6)

    monkeypatch.setattr(threading, "Timer", Alarm)
    bench = Bench()
    bench.start(0, 5000, _UDT)
    assert alarms == []  # no interrupt is enabled
    bench.start(1, 998, _UDT | _ENIT)
    assert 1000 <= round(alarms[-1]) <= 1001
    bench.tick(400)
    bench.timer.write(0x00, _UDT | _ENT | _ENIT)
    assert 600 <= round(alarms[-1]) <= 601
    bench.tick(700)
    bench.timer._expired()
    assert bench.irqs.is_set() and bench.control(1) & _TINT
    assert 3902 <= round(alarms[-1]) <= 3903  # the other counter's
    bench.timer.close()
    assert bench.timer._alarm is None


def test_what_is_written_to_tcsr_reads_back() -> None:
    bench = Bench()
    for index, bits in ((0, 0xE7F), (1, 0x67F)):  # but ENT, which ENALL sets, and TINT
        bench.timer.write(16 * index, 0xFFFFFF7F)
        assert bench.control(index) == bits | _ENT
    for bit in (1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x200, 0x800):
        bench.timer.write(0, bit)
        assert bench.control() == bit


def test_an_alarm_that_comes_after_the_end_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Alarm(SimpleNamespace):
        daemon = False

        def __init__(self, seconds: float, call: Any) -> None:
            super().__init__(seconds=seconds, did=[])
            made.append(self)

        def start(self) -> None:
            self.did.append("start")

        def cancel(self) -> None:
            self.did.append("cancel")

    monkeypatch.setattr("pynq_torch.board.ip.axi_timer.threading.Timer", Alarm)
    bench = Bench()
    bench.start(0, 98, _UDT | _ENIT)
    assert made[-1].did == ["start"] and made[-1].daemon
    bench.tick(200)
    bench.timer._expired()
    assert bench.timer._alarm is None and made[-1].did == ["start"]  # it is over by itself
    assert len(made) == 1 and bench.timer.irq("interrupt")
    bench.start(0, 98, _UDT | _ENIT | _TINT)
    bench.irqs.clear()
    bench.timer.close()
    assert made[-1].did == ["start", "cancel"]
    bench.tick(200)
    bench.timer._expired()
    assert not bench.irqs.is_set() and len(made) == 2
    bench.timer.write(0, _UDT | _ENIT | _TINT | _ENT)
    bench.timer.write(4, 98)
    assert len(made) == 2
    slow = Bench()
    slow.timer.board.clock_hz = lambda ip: 1.0  # type: ignore[method-assign]
    slow.start(0, 90_000, _UDT | _ENIT)
    assert made[-1].seconds == 86_400  # a day


def test_block_ram_is_plain_memory_shared_with_the_pl() -> None:
    memory = PhysicalMemory()
    try:
        board: Any = SimpleNamespace(memory=memory)
        slave = Slave("S_AXI", 0x40000000, 8192, "Mem0", True)
        model = AxiBram(board, IpInstance("bram", "xilinx.com:ip:axi_bram_ctrl:4.1", {}, (slave,)))
        model.write(4, 0xDEADBEEF)
        assert model.read(4) == 0xDEADBEEF
        plain = model.memory("S_AXI")
        assert plain is not None and len(plain) == 8192
        plain[0:4] = b"\x01\x02\x03\x04"
        assert model.read(0) == 0x04030201
        assert bytes(memory.view(0x40000000, 8)) == b"\x01\x02\x03\x04\xef\xbe\xad\xde"
        model.close()
    finally:
        memory.close()
