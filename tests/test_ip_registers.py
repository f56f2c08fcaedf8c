"""Registers and counts of models alone: DMA channels, the SLCR, stream rings, polls in vain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from pynq_torch.board.engine import EngineProcess, State
from pynq_torch.board.ip import dma_mover
from pynq_torch.board.ip.dma_channel import ChannelParameters, DmaChannel
from pynq_torch.board.ip.dma_left import BeatsLeft
from pynq_torch.board.ip.dma_mover import DataMover
from pynq_torch.board.ip.dma_slot import NO_PORT, DmaSlot, Fault, Phase
from pynq_torch.board.memory import PhysicalMemory
from pynq_torch.board.slcr import Slcr
from pynq_torch.board.streams import CAPACITY, DEFAULT_DEPTH, Endpoint, Ring
from pynq_torch.board.vain_polls import VainPolls
from pynq_torch.errors import BoardError, BoardHang, KernelFault

RS, IOC, DLY, ERR = 1, 1 << 12, 1 << 13, 1 << 14


def _channel(name: str = "S2MM", scatter_gather: bool = False) -> DmaChannel:
    channel = DmaChannel(ChannelParameters(name, scatter_gather, 14, 32, 4, False))
    slot: Any = SimpleNamespace(
        events=5, busy=True, error=0, fault=(Fault.NONE, 0), nbytes=40, descriptor=0x40,
        phase=Phase.AT_REST, beats=10, tlast=True, packets=2, total_nbytes=80,
    )  # fmt: skip
    channel.slot = slot
    channel.reset()
    return channel


# ---- PG021, "Register Space" -----------------------------------------------------------------


def test_a_channel_after_configuration() -> None:
    channel = _channel()
    assert channel.parameters.length_mask == 0x3FFF
    assert (channel.status(), channel.control_value()) == (0x00010001, 0x00010002)
    assert (channel.threshold, channel.delay, channel.seen_events) == (1, 0, 5)
    assert (channel.fresh, channel.irq, channel.idle, channel.busy) == (True, False, False, False)
    assert _channel(scatter_gather=True).status() == 0x00010009


@pytest.mark.parametrize(
    ("value", "reads"),
    [
        (0xFFFFFFFF, 0xFFFF701A),  # RS and Reset are the owner's
        (0x00000000, 0x00010002),  # a threshold of zero is not taken
        (0x00000018, 0x0001001A),
        (0x12340001, 0x12340002),
        (0x00007000, 0x00017002),
        (0x00000FE0, 0x00010002),
    ],
)
def test_which_bits_of_dmacr_can_be_written(value: int, reads: int) -> None:
    channel = _channel()
    channel.set_control(value)
    assert channel.control_value() == reads
    assert not channel.running
    channel.run()
    channel.set_control(0)
    assert channel.control_value() & 0x00FF001B == (reads & 0x00FF0000) | 3


def test_run_and_halt() -> None:
    for scatter_gather in (False, True):
        channel = _channel(scatter_gather=scatter_gather)
        channel.fresh = False
        channel.run()
        assert channel.running
        assert channel.fresh
        assert channel.status() & 0xF == (0xA if scatter_gather else 0x0)
        channel.idle = True
        channel.halt()
        assert channel.status() & 0x7 == 0x1
        assert not channel.idle
    channel.errors = 0x20 | 0x40
    for _ in range(2):
        channel.run()
    assert channel.ignored == [
        "RS was set while DMASlvErr, DMADecErr holds the channel halted; it needs a reset"
    ]
    assert not channel.running
    assert channel.error_text() == "DMASlvErr, DMADecErr"
    assert channel.describe()["errors"] == ["DMASlvErr", "DMADecErr"]
    channel.reset()
    assert (channel.error_text(), channel.ignored) == ("no error", [])


def test_the_end_of_a_transfer() -> None:
    for name, length in (("S2MM", 40), ("MM2S", 0)):
        channel = _channel(name)
        channel.run()
        channel.busy, slot = True, channel.slot
        assert slot is not None
        assert not channel.update()
        slot.events, slot.busy = 6, False
        assert channel.update()
        assert (channel.status() & 0xFFFF, channel.length) == (IOC | 0x2, length)
        assert (channel.busy, channel.seen_events) == (False, 6)
        assert not channel.irq
        channel.set_control(IOC | RS)
        assert channel.irq
        assert not channel.update()  # at rest


@pytest.mark.parametrize("fault", [Fault.NONE, list(Fault)[1]])
def test_an_error_halts(fault: Fault) -> None:
    channel = _channel()
    channel.run()
    channel.busy, slot = True, channel.slot
    assert slot is not None
    slot.busy, slot.error, slot.fault = False, 0x40, (fault, 0x18000000)
    assert channel.update()
    assert channel.status() & 0xFFFF == ERR | 0x40 | 0x1
    assert channel.irq == (fault is not Fault.NONE)  # a guard's stop wakes the waiting program
    assert channel.stopped == (None if fault is Fault.NONE else (fault, 0x18000000))
    channel.set_control(ERR)
    assert channel.irq


def test_an_interrupt_for_every_third_packet() -> None:
    channel = _channel(scatter_gather=True)
    channel.set_control(3 << 16)
    assert channel.countdown == 3
    channel.run()
    channel.busy, slot = True, channel.slot
    assert slot is not None
    seen = []
    for _ in range(7):
        slot.events += 1
        assert channel.update()
        seen.append((channel.pending & IOC != 0, channel.status() >> 16 & 0xFF))
        channel.pending = 0
    assert seen == [(n % 3 == 0, 3 - n % 3) for n in range(1, 8)]
    channel.set_control(3 << 16)  # the same threshold does not begin again
    assert channel.countdown == 2
    channel.set_control(4 << 16)
    assert channel.countdown == 4
    slot.events += 9
    channel.update()
    assert (channel.pending, channel.countdown) == (IOC, 3)


def test_a_channel_described() -> None:
    channel = _channel()
    assert channel.describe()["phase"] == "AT_REST"
    channel.run()
    channel.set_control(DLY | 0x10)
    channel.busy, channel.pending, channel.idle = True, IOC | ERR, True
    assert channel.slot is not None
    channel.slot.phase = other = next(p for p in Phase if p is not Phase.AT_REST)
    said = channel.describe()
    assert {k: v for k, v in said.items() if isinstance(v, bool)} == {
        **{"running": True, "halted": False, "idle": True, "armed": True},
        **{"scatter_gather": False, "cyclic": True, "tlast": True},
    }
    assert (said["interrupts"], said["interrupts_enabled"]) == (["IOC", "Err"], ["Dly"])
    counts = ("bytes", "beats", "packets", "total_bytes", "current_descriptor", "length_bits")
    assert [said[c] for c in counts] == [40, 10, 2, 80, 0x40, 14]
    assert said["phase"] == other.name
    channel.slot, channel.current = None, 0x80
    said = channel.describe()
    assert [said[c] for c in counts] == [0, 0, 0, 0, 0x80, 14]
    assert (said["phase"], said["tlast"]) == ("AT_REST", False)
    assert not channel.update()


# ---- the process behind the channels ---------------------------------------------------------


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the engines that were started; none runs."""
    names: list[str] = []

    def spawn(engine: EngineProcess) -> None:
        names.append(engine.name)
        engine.words[3] = State.IDLE

    monkeypatch.setattr(EngineProcess, "spawn", spawn)
    monkeypatch.setattr(dma_mover, "compile_engine", lambda source: source)
    return names


def _mover(engines: Iterable[Any] = (), **channels: DmaChannel) -> DataMover:
    services: Any = SimpleNamespace(memory=PhysicalMemory(), engines=lambda: engines)
    mover = DataMover(services, "dma", channels)
    assert isinstance(mover.left, BeatsLeft) and mover.left._board is services
    left: Any = SimpleNamespace(told=[])
    left.transfer_begins = lambda ring: left.told.append(("begins", ring))
    left.was_reset = lambda ring, before: left.told.append(("reset", ring, before))
    mover.left = left
    return mover


def _close(mover: DataMover) -> None:
    if mover.engine is not None:
        mover.engine.close()
    mover._board.memory.close()


@pytest.mark.parametrize("open_one", ["", "MM2S", "S2MM"])
@pytest.mark.parametrize("names", [("MM2S", "S2MM"), ("S2MM",), ("MM2S",)])
def test_what_a_data_mover_is_told(
    spawned: list[str], ring: Ring, open_one: str, names: tuple[str, ...]
) -> None:
    channels = {
        name: DmaChannel(ChannelParameters(name, False, 14 + i, 32, 8 + i, i == 0))
        for i, name in enumerate(("MM2S", "S2MM"))
        if name in names
    }
    joined = [name for name in names if name != open_one]
    for name in joined:
        channels[name].ring = ring
    mover = _mover(**channels)
    assert mover.compile().is_file() and mover.compile().name == "axi_dma.cpp"
    assert mover.start() is mover.start() is mover.engine and spawned == ["dma"]
    engine = mover.start()
    assert (engine.executable, engine.name) == (mover.compile(), "dma")
    assert (len(engine.registers), engine.rings) == (4096, (ring,) * len(joined))
    assert engine.ports == tuple(f"dma.{name}" for name in joined)
    words = engine.user.cast("I")
    for i, name in enumerate(("MM2S", "S2MM")):
        told = [words[64 * i + at] for at in (32, 33, 34, 15)]  # port, bytes, realign, mask
        port = joined.index(name) if name in joined else NO_PORT
        here = name in names
        assert told == ([port, 8 + i, i == 0, (0x4000 << i) - 1] if here else [NO_PORT, 4, 0, 0])
        assert not here or isinstance(channels[name].slot, DmaSlot)
    _close(mover)


def test_a_data_mover_that_has_died_is_replaced(spawned: list[str]) -> None:
    channels = {name: _channel(name) for name in ("MM2S", "S2MM")}
    mover = _mover(**channels)
    mover.check()  # nothing was started
    engine = mover.start()
    mover.check()
    for n, again in ((2, mover.respawn), (3, mover.start), (4, mover.check)):
        channel, other = channels["MM2S"], channels["S2MM"]
        for each in channels.values():
            each.run()
        channel.busy, other.busy = True, False
        for each in channels.values():
            assert each.slot is not None
            each.slot.post_transfer(0x1000, 4)
        engine.words[3] = State.FAULT
        if n == 4:
            with pytest.raises(KernelFault, match="dma's process ended"):
                again()
        else:
            again()
        assert spawned == ["dma"] * n and not engine.faulted
        assert (channel.busy, channel.running, other.running) == (False, False, True)
        assert not any(each.slot is None or each.slot.busy for each in channels.values())
    channels["MM2S"].slot = None
    mover.respawn()
    _close(mover)


def test_a_transfer_begins_and_is_given_up(spawned: list[str], ring: Ring) -> None:
    aborts: list[int] = []
    for name, joined in (("MM2S", True), ("MM2S", False), ("S2MM", True)):
        channel = _channel(name)
        mover = _mover(**{name: channel})
        channel.slot, channel.busy = None, True
        mover.abort(channel)
        assert channel.busy  # nothing was started
        channel.ring = ring if joined else None
        engine = mover.start()
        channel.idle, channel.polls = True, 9
        assert mover.begin(channel) is channel.slot
        assert (channel.busy, channel.idle, channel.polls) == (True, False, 0)
        told = [("begins", ring)] if name == "MM2S" and joined else []
        assert mover.left.told == told  # type: ignore[attr-defined]
        before = len(spawned)
        for busy, answers, more in ((False, False, 0), (True, True, 0), (True, False, 1)):
            slot: Any = SimpleNamespace(
                busy=busy, events=5, error=0, fault=(Fault.NONE, 0), nbytes=8, forget=aborts.clear
            )
            slot.abort = lambda fd, answers=answers: (aborts.append(fd), answers)[1]
            channel.slot, channel.busy, channel.seen_events, channel.pending = slot, True, 4, 0
            mover.abort(channel)
            assert aborts == ([engine.start_fd] if busy and answers else [])
            aborts.clear()
            assert not channel.busy and len(spawned) - before == more
            assert channel.pending == (0 if more else IOC)  # its last events were noted
        _close(mover)


@pytest.mark.parametrize(
    ("takes", "moving", "answers", "pauses", "starts"),
    [
        (0, True, [], 0, 0),  # nothing is left
        (3, True, [], 3, 0),  # the IP takes all of it
        (99, False, [True], 0, 0),
        (99, True, [True], 5, 0),  # until more than two seconds have passed
        (99, False, [False, True], 0, 1),
        (99, False, [False, False], 0, 1),
        (99, False, None, 0, 1),  # its process has died
    ],
)
def test_what_was_not_taken_is_withdrawn(
    spawned: list[str],
    monkeypatch: pytest.MonkeyPatch,
    takes: int,
    moving: bool,
    answers: list[bool] | None,
    pauses: int,
    starts: int,
) -> None:
    slept: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: 0.5 * len(slept), sleep=slept.append)
    monkeypatch.setattr(dma_mover, "time", clock)
    engines = [SimpleNamespace(can_move=moves) for moves in (False, moving)]
    channel = _channel("MM2S")
    mover = _mover(engines, MM2S=channel)
    mover.withdraw()  # nothing was started
    engine = mover.start()
    mover.withdraw()  # it has no stream

    class Left(SimpleNamespace):
        @property
        def occupancy(self) -> int:
            return max(takes - len(slept), 0)

    ring: Any = Left(withdrawn_before=33)
    channel.ring = ring
    if answers is None:
        engine.words[3] = State.FAULT
    doorbells: list[int] = []
    left = [True] if answers is None else list(answers)
    slot: Any = SimpleNamespace(
        withdraw=lambda fd: (doorbells.append(fd), left.pop(0))[1], forget=lambda: None
    )
    channel.slot = slot
    told: list[Any] = mover.left.told  # type: ignore[attr-defined]
    if answers == [False, False]:
        with pytest.raises(BoardError, match="dma: its data mover .* the 99 beats that were sent"):
            mover.withdraw()
        assert not told
    else:
        mover.withdraw()
        assert told == [("reset", ring, 33)]
    assert (len(slept), len(spawned), left) == (pauses, 1 + starts, [])
    assert set(doorbells) <= {engine.start_fd}
    _mover(S2MM=channel).withdraw()
    _close(mover)


# ---- UG585, appendix B.28 --------------------------------------------------------------------


def test_the_clocks_that_the_boot_loader_leaves() -> None:
    slcr = Slcr(None, None)  # type: ignore[arg-type]
    assert [slcr.fclk_hz(i) for i in range(4)] == [100e6, 1000e6 / 7, 200e6, 50e6]
    # What UG585 has for each register, so that pynq.ps reads 650 MHz for the CPU.
    assert [slcr.read(o) for o in (0x100, 0x104, 0x108, 0x10C)] == [
        *(0x1A008, 0x15008, 0x14008, 0x3F)
    ]
    assert (slcr.read(0x120), slcr.read(0x00C), slcr.read(0x200)) == (0x1F000200, 0, 0)
    for source, mhz in ((0, 1000), (1, 1000), (2, 1300), (3, 1050)):
        slcr.write(0x170, 2 << 20 | 5 << 8 | source << 4)
        assert slcr.fclk_hz(0) == mhz * 1e6 / 10
    slcr.write(0x170, 63 << 20 | 63 << 8)
    assert slcr.fclk_hz(0) == pytest.approx(1000e6 / 63 / 63)
    slcr.write(0x170, 5 << 8)
    assert slcr.fclk_hz(0) == 0.0


def test_the_lock_of_the_slcr() -> None:
    slcr = Slcr(None, None)  # type: ignore[arg-type]
    for offset, value, locked in (
        (0x004, 0x767A, 0), (0x004, 0xABCD767B, 1), (0x00C, 0, 1), (0x008, 0x767B, 1),
        (0x008, 0xDF0D, 0), (0x00C, 1, 0), (0x10C, 0, 0),
    ):  # fmt: skip
        slcr.write(offset, value)
        assert slcr.read(0x00C) == locked
        slcr.write(0x200, 100 + offset)
        assert (slcr.read(0x200) == 100 + offset) == (not locked)
        slcr.write(0x200, 0)
    assert slcr.read(0x10C) == 0x3F


# ---- rings -----------------------------------------------------------------------------------


@pytest.fixture
def ring() -> Iterator[Ring]:
    ring = Ring(Endpoint("a", "M"), None, 4, DEFAULT_DEPTH + 3)
    yield ring
    ring.close()


def _count(ring: Ring, at: int, value: int) -> None:
    ring._map[at : at + 8] = value.to_bytes(8, "little")


def test_what_a_ring_counts(ring: Ring) -> None:
    assert (ring.fifo, ring.occupancy, ring.full, ring.left_over) == (3, 0, False, 0)
    assert repr(ring) == "<Ring a.M -> None, 32 bit, 0 beats waiting>"
    first = (1 << 57) - 2
    _count(ring, 16, first + CAPACITY - 1)
    _count(ring, 24, first)
    _count(ring, 32, (1 << 57) + 1)
    assert (ring.beats_written, ring.beats_read, ring.packets) == (
        *(first + CAPACITY - 1, first, (1 << 57) + 1),
    )
    assert (ring.occupancy, ring.full) == (CAPACITY - 1, False)
    _count(ring, 16, first + CAPACITY)
    assert ring.full
    # Of five beats before a reset of the sender it took back two, one of them passed already.
    _count(ring, 16, first + 6)
    _count(ring, 48, first + 5)
    stride = (40 + 4 + 7) // 8 * 8
    for beat in (first - 1, first + 2, first + 4):
        ring._map[64 + beat % CAPACITY * stride + 36] = 1
    assert (ring.occupancy, ring.left_over) == (4, 3)
    _count(ring, 24, first + 5)
    assert (ring.occupancy, ring.left_over) == (1, 0)
    _count(ring, 24, first + 6)
    assert (ring.occupancy, ring.left_over) == (0, 0)
    ring.reset()
    assert (ring.beats_written, ring.packets, ring.fifo, ring.withdrawn_before) == (0, 0, 3, 0)
    plain = Ring(None, None, 1)
    assert (plain.depth, plain.fifo) == (16, 0)
    plain.close()
    shallow = Ring(None, None, 1, 2)
    assert shallow.fifo == 0
    shallow.close()


# ---- polls in vain ---------------------------------------------------------------------------


class Polls:
    """A program that polls once per `pause_s`, on a clock that only the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, limit_s: float) -> None:
        self.now = 1000.0
        monkeypatch.setattr("pynq_torch.board.vain_polls.time.monotonic", lambda: self.now)
        self.bus: Any = SimpleNamespace(accesses=7)
        self.vain = VainPolls(self.bus, limit_s)

    def poll(self, count: int, pause_s: float, accesses: int = 1) -> int | None:
        """Poll; return the number of the poll that was refused."""
        for number in range(1, count + 1):
            self.now += pause_s
            self.bus.accesses += accesses
            try:
                self.vain.note(lambda: "the unit is idle.")
            except BoardHang as hang:
                assert str(hang).startswith("the program has done nothing but poll for ")
                assert str(hang).endswith(" s, and the unit is idle.")
                return number
        return None


def test_a_program_that_only_polls_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    polls = Polls(monkeypatch, limit_s=8.0)
    assert polls.poll(1000, 0.25) == 34  # the first begins the time; at 8 s it may still go on
    assert polls.poll(1000, 0.25) == 33  # it is stopped again only after as long a time
    rare = Polls(monkeypatch, 8.0)
    assert [rare.poll(1000, 2.5) for _ in range(2)] == [20, 20]  # fewer are no loop that waits
    assert Polls(monkeypatch, 8.0).poll(1000, 2.75) is None  # it looks by chance
    assert Polls(monkeypatch, 8.0).poll(1000, 0.25, accesses=2) is None  # it does other things


def test_polls_wait_longer_where_another_thread_may_help(monkeypatch: pytest.MonkeyPatch) -> None:
    done = Event()
    helper = Thread(target=done.wait)
    helper.start()
    try:
        assert Polls(monkeypatch, 1.0).poll(1000, 1 / 32) == 322
        assert Polls(monkeypatch, 1.0).poll(1000, 1 / 16) is None  # not as dense as a wait
        polls = Polls(monkeypatch, 1.0)
        assert polls.poll(30, 1 / 32) is None
        threads = [Thread(target=polls.poll, args=(30, 1 / 32)) for _ in range(2)]
        for thread in threads:
            thread.start()
            thread.join()
        assert polls.poll(321, 1 / 32) is None  # those of other threads do not count
    finally:
        done.set()
        helper.join()
    background = Thread(target=done.wait, daemon=True)  # as Jupyter has
    done.clear()
    background.start()
    assert Polls(monkeypatch, 1.0).poll(1000, 1 / 32) == 34
    done.set()
