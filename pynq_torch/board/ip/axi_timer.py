"""AXI timer (PG079): two counters that generate, capture, cascade or make a PWM wave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from pynq_torch.board.bus import IpModel
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.services import BoardServices

from .counter import Counter
from .parameters import flag, integer

# TCSR bits (PG079, tables 2-5 and 2-8).
_MDT, _UDT, _GENT, _CAPT, _ARHT, _LOAD = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5
_ENIT, _ENT, _TINT, _PWMA, _ENALL, _CASC = 1 << 6, 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11
_WRITABLE = _MDT | _UDT | _GENT | _CAPT | _ARHT | _LOAD | _ENIT | _ENT | _PWMA | _ENALL


class AxiTimer(IpModel):
    """AXI timer v2.0, counting real time at the clock the overlay gives it."""

    vlnv_names: ClassVar[tuple[str, ...]] = ("axi_timer",)

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self.now_ns: Callable[[], int] = time.monotonic_ns  # tests replace it
        self.width = integer(ip, "C_COUNT_WIDTH", 32)
        self._top = (1 << self.width) - 1
        self.single = flag(ip, "C_ONE_TIMER_ONLY", False)
        self._tcsr = [0, 0]
        self._tlr = [0, 0]
        self._counters = [Counter(self.width), Counter(self.width)]
        self._pair = Counter(2 * self.width)  # both as one, in cascade mode
        self._captured = [False, False]  # a capture that has not been read yet
        self._alarm: threading.Timer | None = None
        self._closed = False
        self._cycles = 0.0
        self._seen_ns = self.now_ns()

    @property
    def clock_hz(self) -> float:
        """Clock of the AXI interface, which is what the counters count."""
        return self.board.clock_hz(self.ip) or 100e6

    def _cycle(self) -> int:
        # Summed up step by step: a program may change the clock in between.
        now = self.now_ns()
        self._cycles += (now - self._seen_ns) * self.clock_hz * 1e-9
        self._seen_ns = now
        return int(self._cycles)

    @property
    def cascaded(self) -> bool:
        """Whether both counters work as one; TCSR0 alone controls it then."""
        return bool(self._tcsr[0] & _CASC)

    def _active(self) -> list[tuple[int, Counter]]:
        """Return the counters that count, with the number of the TCSR that controls each."""
        return [(0, self._pair)] if self.cascaded else list(enumerate(self._counters))

    def _advance(self) -> int:
        cycle = self._cycle()
        for index, counter in self._active():
            # In capture mode a rollover is no event (PG079, "Capture Mode").
            if counter.advance(cycle) and not self._tcsr[index] & _MDT:
                self._tcsr[index] |= _TINT
        return cycle

    def _expired(self) -> None:
        with self.lock:
            self._alarm = None
            if self._closed:
                return
            self._advance()
            self._arm()
        self.board.raise_irq(self)

    def _arm(self) -> None:
        """Set the alarm for the next rollover that raises the interrupt line."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        waits = [
            at
            for index, counter in self._active()
            if self._tcsr[index] & (_ENIT | _TINT | _MDT) == _ENIT
            and (at := counter.next_rollover()) is not None
        ]
        if waits and not self._closed:
            seconds = max((min(waits) - self._cycle() + 1) / self.clock_hz, 0.0)
            # Waits longer than a day are armed again when they end.
            self._alarm = threading.Timer(min(seconds, 86_400.0), self._expired)
            self._alarm.daemon = True
            self._alarm.start()

    def capture(self, index: int) -> None:
        """Pulse the input ``capturetrig<index>``."""
        if index not in (0, 1) or (index == 1 and self.single):
            raise ValueError(f"{self.ip.name} has no input capturetrig{index}")
        with self.lock:
            cycle = self._advance()
            control = self._tcsr[index]
            if control & (_MDT | _CAPT | _ENT) != _MDT | _CAPT | _ENT:
                return
            # Without ARHT a capture stays until it has been read (PG079, "Capture Mode").
            if control & _ARHT or not self._captured[index]:
                value = (self._pair if self.cascaded else self._counters[index]).value(cycle)
                self._captured[index] = True
                if self.cascaded:
                    self._tlr = [value & self._top, value >> self.width]
                else:
                    self._tlr[index] = value
            self._tcsr[index] |= _TINT
        self.board.raise_irq(self)

    @property
    def pwm(self) -> tuple[float, float] | None:
        """Period and high time of ``pwm0`` in seconds, None while it is no PWM wave.

        Both counters must be in generate mode and enabled, with PWMA and GENT set (PG079, "PWM").
        """
        needed = _PWMA | _GENT | _ENT
        if any(c & (needed | _MDT) != needed for c in self._tcsr):
            return None
        registers = zip(self._tcsr, self._tlr, strict=True)
        period, high = ((r if c & _UDT else self._top - r) + 2 for c, r in registers)
        return period / self.clock_hz, high / self.clock_hz

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register."""
        index, register = (offset >> 4) & 1, offset & 0xC
        if offset & 0x1F != offset or (index == 1 and self.single):
            return 0
        cycle = self._advance()
        if register == 0x0:
            return self._tcsr[index]
        if register == 0x4:
            self._captured[index] = False
            return self._tlr[index]
        if register == 0x8:
            if self.cascaded:
                return self._pair.value(cycle) >> (self.width * index) & self._top
            return self._counters[index].value(cycle)
        return 0

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register; the counters themselves (TCR) are read-only."""
        index, register = (offset >> 4) & 1, offset & 0xC
        if offset & 0x1F != offset or (index == 1 and self.single):
            return
        cycle = self._advance()
        if register == 0x0:
            self._control(cycle, index, value)
        elif register == 0x4:
            self._tlr[index] = value & self._top
            self._load(cycle)
        else:
            return
        self._arm()
        self.board.raise_irq(self)

    def _control(self, cycle: int, index: int, value: int) -> None:
        writable = _WRITABLE | (_CASC if index == 0 and not self.single else 0)
        pending = self._tcsr[index] & _TINT & ~value  # TINT: write 1 to clear
        self._tcsr[index] = value & writable | pending
        # ENALL is one bit seen in both registers; set, it enables both counters.
        for other in range(2):
            if value & _ENALL:
                self._tcsr[other] |= _ENALL | _ENT
            else:
                self._tcsr[other] &= ~_ENALL
        self._load(cycle)

    def _load(self, cycle: int) -> None:
        """Bring the counters in line with TCSR and TLR."""
        # Writes to TCSR1 count for its own counter only, which stops while cascaded.
        for i, counter in enumerate(self._counters):
            self._apply(cycle, counter, self._tcsr[i], self._tlr[i], enabled=not self.cascaded)
        both = self._tlr[1] << self.width | self._tlr[0]
        self._apply(cycle, self._pair, self._tcsr[0], both, enabled=self.cascaded)

    @staticmethod
    def _apply(cycle: int, counter: Counter, control: int, load: int, *, enabled: bool) -> None:
        counter.load = load
        counter.configure(
            cycle,
            down=bool(control & _UDT),
            reload=bool(control & _ARHT),
            free=bool(control & _MDT),
        )
        if control & _LOAD:
            counter.set(cycle, load)  # while LOAD is set the counter stays at TLR
        counter.run(cycle, enabled and bool(control & _ENT) and not control & _LOAD)

    def irq(self, pin: str) -> bool:
        """Return the level of ``interrupt``: any counter with TINT and ENIT."""
        return any(c & (_TINT | _ENIT) == _TINT | _ENIT for c in self._tcsr)

    def describe(self) -> dict[str, Any]:
        """Return the state, for diagnosis."""
        with self.lock:
            cycle = self._advance()
            counts = [c.value(cycle) for c in self._counters]
            return {
                "clock_hz": self.clock_hz,
                "cascaded": self.cascaded,
                "count": [self._pair.value(cycle)] if self.cascaded else counts,
                "control": list(self._tcsr),
                "irq": self.irq("interrupt"),
            }

    def close(self) -> None:
        """Stop the alarm."""
        with self.lock:
            self._closed = True
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None
