"""AXI VDMA (PG020): the model by itself, where the test is the data mover and the clock."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.ip import axi_vdma
from pynq_torch.board.ip.axi_vdma import AxiVdma
from pynq_torch.board.ip.dma_channel import ChannelParameters
from pynq_torch.board.ip.dma_slot import Fault, Phase
from pynq_torch.errors import KernelFault, NotModelledWarning

CR, SR, PARK, S2MM = 0x00, 0x04, 0x28, 0x30
RS, CIRCULAR, RESET, GENLOCK = 1, 2, 4, 8


class Timer:
    """A timer that the test rings."""

    made: list[Timer]

    def __init__(self, after_s: float, call: Any, arguments: list[Any]) -> None:
        self.after_s, self.started, self.cancelled = after_s, False, False
        self.daemon = False
        self._call, self._arguments = call, arguments
        self.made.append(self)

    def ring(self) -> None:
        self._call(*self._arguments)

    def start(self) -> None:
        self.started = True

    def cancel(self) -> None:
        self.cancelled = True


class Rig:
    """A VDMA; `did` is what it asked for: of the board and of the data mover."""

    def __init__(self, **parameters: str) -> None:
        self.did: list[Any] = []
        self.posted: list[Any] = []
        notes = {n: self._note(n) for n in ("watch", "unwatch", "settle", "polled", "raise_irq")}
        board: Any = SimpleNamespace(
            stream_rings=lambda name: {"M_AXIS_MM2S": "out", "S_AXIS_S2MM": "in"},
            memory=SimpleNamespace(describe=lambda address: f"is {address}"),
            vain_polls=SimpleNamespace(note=lambda why: self.did.append(why())),
            **notes,
        )
        ip = IpInstance("vdma", "xilinx.com:ip:axi_vdma:6.3", parameters=parameters)
        self.model = AxiVdma(board, ip)
        self.channels = self.model.channels
        self.engine: Any = SimpleNamespace(done_fd=77, close=self._note("close"))
        self.model._mover = SimpleNamespace(  # type: ignore[assignment]
            engine=self.engine, start=lambda: self.engine, begin=self._begin,
            check=self._note("check"), abort=self._note("abort"), withdraw=self._note("withdraw"),
        )  # fmt: skip

    def _note(self, name: str) -> Any:
        return lambda *arguments: self.did.append((name, *arguments))

    def _begin(self, channel: Any) -> Any:
        slot: Any = SimpleNamespace(
            busy=True, error=0, fault=(Fault.NONE, 0), phase=Phase.MOVING, events=0, nbytes=5
        )
        slot.post_frame = lambda *place, **how: self.posted.append((*place, how))
        channel.busy, channel.polls, channel.slot = True, 0, slot
        return slot

    def latch(self, base: int, control: int = RS) -> None:
        """Start a channel with two frames of 3 lines of 40 bytes, 64 bytes from each other."""
        second = 0xA0 if base else 0x50
        self.model.write(base + CR, 1 << 16 | control)
        for at, value in ((0x0C, 0x1000), (0x10, 0x2000), (8, 64), (4, 40), (0, 3)):
            self.model.write(second + at, value)

    def end(self, name: str) -> None:
        """Let the frame of a channel end, and the board say so."""
        slot: Any = self.channels[name].slot
        slot.busy = False
        self.model._go_on()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    Timer.made = []
    fake: Any = SimpleNamespace(now=1000.0, monotonic=lambda: fake.now)
    monkeypatch.setattr(axi_vdma, "time", fake)
    monkeypatch.setattr(axi_vdma, "threading", SimpleNamespace(Timer=Timer))
    return fake


def test_what_the_handoff_does_not_say() -> None:
    model = Rig().model
    assert list(model.channels) == ["MM2S", "S2MM"]
    for name, channel in model.channels.items():
        assert channel.parameters == ChannelParameters(name, False, 32, 32, 4, False)
        ring: Any = channel.ring
        assert (channel.frames, ring) == (3, "out" if channel.sends else "in")
    said = {"C_M_AXI_MM2S_DATA_WIDTH": "64", "C_INCLUDE_MM2S_DRE": "1", "C_INCLUDE_S2MM": "0"}
    (channel,) = Rig(**said, C_NUM_FSTORES="5").channels.values()
    assert channel.parameters == ChannelParameters("MM2S", False, 32, 32, 8, True)
    assert channel.frames == 5


@pytest.mark.parametrize("base", [0, S2MM])
def test_where_a_channels_registers_begin_and_end(base: int) -> None:
    model, second = Rig().model, 0xA0 if base else 0x50
    for at in (0x0C, 0x48):
        model.write(second + at, 7 + at)
    model.write(base + 0x14, 1)
    assert [model.read(second + at) for at in (0x0C, 0x48, 0x4C)] == [0, 0, 0]
    model.write(second + 0x48, 9)
    for hole in (second + 0x4C, 0x2C if base else 0xFC, base + 8, base + 0x20):
        model.write(hole, 2)
        assert model.read(hole) == (0x62000000 if hole == 0x2C else 0)
    assert [model.read(base + 0x14), model.read(second + 0x48)] == [1, 9]
    model.write(base + 0x14, 2)  # one bit: the first half again
    assert [model.read(second + at) for at in (0x0C, 0x48, 0x4C)] == [7 + 0x0C, 7 + 0x48, 0]
    model.write(second, 3)  # halted
    for at, bits in ((0, 0), (4, 0xFFFF), (8, 0x1F00FFFF)):
        model.write(second + at, 0xFFFFFFFF)
        assert model.read(second + at) == bits
    model.write(base + 0x0C, 0xFF)
    assert model.read(base + 0x0C) == (0xF if base else 0)
    assert model.read(SR if base else S2MM + SR) & 1


def test_polls_of_a_frame_that_moves_are_counted() -> None:
    rig = Rig()
    rig.latch(0)
    rig.did.clear()
    assert {rig.model.read(SR) for _ in range(128)} == {1 << 16}
    polls = [("polled", rig.model, i) for i in range(1, 129)]
    assert [each for each in rig.did if each != ("check",)] == polls
    assert [i for i, each in enumerate(rig.did) if each == ("check",)] == [63, 128]
    rig.did.clear()
    for _ in range(128):
        rig.model.read(CR)
    assert not rig.did
    rig.end("MM2S")
    rig.did.clear()
    assert rig.model.read(SR) == 1 << 16 | 1 << 12
    assert not rig.did  # between two frames it is neither busy nor idle


def test_a_program_that_waits_for_nothing_is_told() -> None:
    rig = Rig()
    rig.model.read(SR)
    assert rig.did.pop().startswith("vdma: channel MM2S is halted (VDMACR.RS is 0).")
    rig.model.write(CR, RS)
    rig.did.clear()
    rig.model.read(SR)
    assert rig.did.pop().startswith("vdma: channel MM2S moves no frame: VSIZE was not written")
    rig.latch(0)
    rig.channels["MM2S"].halt()
    rig.channels["MM2S"].busy = False
    rig.model.read(SR)
    assert rig.did.pop().startswith("vdma: channel MM2S is halted")


def test_what_starts_no_frame_and_is_not_warned_of() -> None:
    rig = Rig()
    rig.latch(0)
    rig.latch(S2MM, 0)
    assert len(rig.posted) == 1
    for name, ignored in (("MM2S", []), ("S2MM", ["VSIZE = 3 was written while VDMACR.RS was 0"])):
        assert rig.channels[name].ignored == ignored
        assert rig.channels[name].running == (name == "MM2S")
    rig = Rig()
    rig.model.write(CR, RS)
    rig.model.write(0x54, 40)
    rig.model.write(0x50, 1 << 13)  # of 13 bits none is set
    assert rig.channels["MM2S"].ignored == ["VSIZE = 8192 was written with HSIZE = 40"]
    rig.model.write(CR, 0x00812000 | RS)  # the delay interrupt without a delay
    rig.model.write(0xEC, 2)
    assert not rig.posted and not rig.model._warned
    with pytest.warns(NotModelledWarning, match="vertical flip"):
        rig.model.write(0xEC, 3)
    with pytest.warns(NotModelledWarning, match="delay interrupt"):
        rig.model.write(CR, 0x01012000 | RS)
    rig.model.write(0xEC, 0)


@pytest.mark.parametrize("base", [0, S2MM])
def test_which_frame_moves_and_how(base: int, clock: Any) -> None:
    rig, name = Rig(C_NUM_FSTORES="2"), "S2MM" if base else "MM2S"
    how = {"sync": bool(base), "fresh": True}

    def again() -> Any:
        rig.end(name)
        if not base:
            Timer.made[-1].ring()
        return rig.posted[-1]

    rig.model.write(PARK, 0x0302 if base else 0x0203)  # 3 of 2 frames is 1
    rig.latch(base)
    assert rig.did.count(("settle",)) == 1
    assert rig.did.count(("watch", 77, rig.model._go_on)) == 1
    assert rig.posted == [(0x2000, 40, 64, 3, how)]
    how["fresh"] = False
    assert again() == (0x2000, 40, 64, 3, how)
    rig.model.write(base + CR, 1 << 16 | RS | CIRCULAR)
    assert [again()[0] for _ in range(3)] == [0x1000, 0x2000, 0x1000]
    assert len(rig.posted) == 5 and rig.channels[name].began_s == clock.now
    assert rig.did.count(("watch", 77, rig.model._go_on)) == 1
    rig.model.write(base + CR, 0)  # the frame goes on to its end
    before = len(Timer.made)
    assert rig.channels[name].stopping
    rig.end(name)
    assert (len(Timer.made), len(rig.posted)) == (before, 5)
    rig.latch(base, RS | CIRCULAR)
    assert rig.posted[5:] == [(0x1000, 40, 64, 3, how | {"fresh": True})]
    rig.model.write((0xA0 if base else 0x50) + 0, 2)  # counts from the next frame on
    assert (len(rig.posted), again()[3]) == (6, 2)


def test_frames_that_come_need_no_tuser_where_the_design_says_so() -> None:
    for use, sync in (("0", False), ("1", False), ("2", True), ("3", False)):
        rig = Rig(C_USE_S2MM_FSYNC=use)
        if use == "1":
            with pytest.warns(NotModelledWarning, match="the input s2mm_fsync"):
                rig.latch(S2MM)
        else:
            rig.latch(S2MM)
        assert rig.posted[-1][-1]["sync"] is sync


def test_a_slave_stays_behind_the_channel_that_writes() -> None:
    rig = Rig(C_NUM_FSTORES="2")
    rig.channels["S2MM"].index = 1
    rig.latch(0, RS | CIRCULAR | GENLOCK)
    assert rig.posted[-1][0] == 0x2000
    rig.channels["MM2S"].delay_frames = 1
    rig.end("MM2S")
    Timer.made[-1].ring()
    assert rig.posted[-1][0] == 0x1000
    alone = Rig(C_NUM_FSTORES="2", C_INCLUDE_S2MM="0")
    alone.latch(0, RS | CIRCULAR | GENLOCK)
    assert alone.posted[-1][0] == 0x1000


def test_how_long_a_channel_that_reads_rests(clock: Any) -> None:
    rig = Rig()
    rig.latch(0)
    for took, rests in ((0.0, 1 / 60), (1 / 64, 1 / 64), (0.25, 0.25)):
        clock.now += took
        rig.end("MM2S")
        timer = Timer.made[-1]
        assert timer.started and timer.daemon
        assert timer.after_s == pytest.approx(rests)
        timer.ring()
        timer.ring()  # it moves already
    assert len(rig.posted) == 4
    for spoil in ("halt", "closed", "picture"):
        rig = Rig()
        rig.latch(0)
        rig.end("MM2S")
        if spoil == "halt":
            rig.model.write(CR, 0)
        elif spoil == "closed":
            rig.model.close()
            assert rig.did[-2:] == [("unwatch", 77), ("close",)] and Timer.made[-1].cancelled
        else:
            rig.channels["MM2S"].picture = None
        Timer.made[-1].ring()
        assert len(rig.posted) == 1
    rig = Rig()
    rig.model.close()
    assert rig.did == [("close",)]


def test_a_closed_model_hears_nothing() -> None:
    rig = Rig()
    rig.latch(S2MM)
    rig.model.close()
    rig.did.clear()
    rig.end("S2MM")
    assert not rig.did and len(rig.posted) == 1


def test_a_reset_gives_up_the_frame() -> None:
    for base, name in ((0, "MM2S"), (S2MM, "S2MM")):
        rig = Rig()
        rig.latch(base)
        channel = rig.channels[name]
        given_up: list[bool] = []
        rig.model._mover.abort = lambda c, seen=given_up: seen.append(c.given_up)  # type: ignore[misc, method-assign]
        rig.did.clear()
        rig.model.write(base + CR, RESET | RS)
        assert (given_up, channel.given_up, channel.running) == ([True], False, False)
        assert (("withdraw",) in rig.did) == (base == 0)
        assert ("raise_irq", rig.model) in rig.did
        rig.model.write(base + CR, RS)
        assert given_up == [True, True] and channel.picture is None and channel.running
        rig.model.write(base + CR, RS | CIRCULAR)  # runs already: nothing is given up
        assert len(given_up) == 2


def test_a_halted_frame_that_waits_for_its_stream_is_given_up() -> None:
    for phase, gives_up in ((Phase.MOVING, False), (Phase.NO_DATA, True)):
        rig = Rig()
        rig.latch(S2MM)
        slot: Any = rig.channels["S2MM"].slot
        slot.phase = phase
        rig.did.clear()
        rig.model.read(S2MM + SR)
        assert not any(each[0] == "abort" for each in rig.did)
        rig.model.write(S2MM + CR, 0)
        rig.model.read(S2MM + SR)
        assert any(each[0] == "abort" for each in rig.did) == gives_up
        assert rig.channels["S2MM"].stopping != gives_up


def test_a_frame_that_the_guard_stopped_is_raised_once() -> None:
    rig = Rig()
    rig.latch(0)
    slot: Any = rig.channels["MM2S"].slot
    slot.busy, slot.error, slot.fault = False, 1 << 5, (Fault.STRAY, 0x1234)
    rig.did.clear()
    assert rig.model.irq("mm2s_introut") is False and rig.model.irq("s2mm_introut") is False
    with pytest.raises(KernelFault, match="vdma MM2S .*0x00001234.*is 4660") as caught:
        rig.model.read(SR)
    assert (caught.value.cu, caught.value.address) == ("vdma", 0x1234)
    assert rig.did == [("raise_irq", rig.model)] * 2
    rig.did.clear()
    assert rig.model.read(SR) & 0x4021 == 0x4021
    assert rig.did[0].startswith("vdma: VDMASlvErr holds channel MM2S halted")
    assert not Timer.made


def test_interrupts_and_conditions_of_each_channel() -> None:
    rig = Rig()
    for name, pin in (("MM2S", "mm2s_introut"), ("S2MM", "s2mm_introut")):
        rig.channels[name].control |= 1 << 12
        rig.channels[name].pending = 1 << 12
        assert rig.model.irq(pin) is True
        rig.channels[name].pending = 0
        assert rig.model.irq(pin) is False
    assert Rig(C_INCLUDE_S2MM="0").model.irq("s2mm_introut") is False
    rig.latch(0)
    rig.channels["MM2S"].slot = None
    told = rig.model.describe()
    assert list(told) == ["ip", "MM2S", "S2MM"] and told["ip"] == "vdma"
    assert (told["MM2S"]["running"], told["S2MM"]["running"]) == (True, False)
    rig = Rig()
    rig.latch(S2MM)
    rig.channels["S2MM"].index = 3
    assert rig.model.read(PARK) == 3 << 24
    slot: Any = rig.channels["S2MM"].slot
    slot.busy, slot.error = False, 1 << 6
    slot.descriptor = slot.beats = slot.packets = slot.total_nbytes = 0
    slot.tlast = False
    assert rig.model.describe()["S2MM"]["errors"] == ["VDMADecErr"]  # of this moment
