"""AXI4-Stream FIFO (PG080): the model by itself, where the test is the engine and both streams."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pynq_torch.board.engine import EngineProcess
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.ip import fifo_queue
from pynq_torch.board.ip.axi_fifo import AxiFifo
from pynq_torch.board.ip.fifo_queue import Beat, BeatQueue
from pynq_torch.board.memory import PhysicalMemory
from pynq_torch.board.streams import Endpoint, Ring
from pynq_torch.errors import RegisterMisuse

ISR, IER, TDFR, TDFV, TDFD, TLR, RDFR = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18
RDFO, RDFD, RLR, SRR, TDR, RDR, TID, TUSER = 0x1C, 0x20, 0x24, 0x28, 0x2C, 0x30, 0x34, 0x38
RID, RUSER = 0x3C, 0x40
RPURE, RPORE, RPUE, TPOE = 1 << 31, 1 << 30, 1 << 29, 1 << 28
TC, RC, TSE, TRC, RRC = 1 << 27, 1 << 26, 1 << 25, 1 << 24, 1 << 23
TFPF, TFPE, RFPF, RFPE = 1 << 22, 1 << 21, 1 << 20, 1 << 19
CUT = {"C_USE_TX_CUT_THROUGH": "1", "C_USE_RX_CUT_THROUGH": "1"}


class Rig:
    """A FIFO; `did` is what it asked of the board, `opened` the streams that it opened."""

    def __init__(self, memory: PhysicalMemory, parameters: dict[str, str], ports: Any) -> None:
        self.did: list[Any] = []
        self.opened: list[Any] = []
        self.moves = False
        notes = {n: self._note(n) for n in ("watch", "unwatch", "settle", "polled", "raise_irq")}
        board: Any = SimpleNamespace(
            memory=memory, stream_rings=lambda name: {}, open_ring=self._open,
            engines=lambda: [SimpleNamespace(can_move=False), SimpleNamespace(can_move=self.moves)],
            vain_polls=SimpleNamespace(note=lambda why: self.did.append(why())), **notes,
        )  # fmt: skip
        name = "xilinx.com:ip:axi_fifo_mm_s:4.2"
        self.model = AxiFifo(
            board, IpInstance("fifo", name, parameters=parameters, stream_ports=ports)
        )
        self.read, self.write = self.model.read, self.model.write

    def _note(self, name: str) -> Any:
        return lambda *arguments: self.did.append((name, *arguments))

    def _open(self, end: Endpoint, direction: str, nbytes: int) -> Ring:
        self.opened.append((str(end), direction, nbytes))
        sends = direction == "out"
        return Ring(end if sends else None, None if sends else end, nbytes)

    def arrive(self, *words: int, keep: int = 0xF, last: bool = True, marks: int = 0) -> None:
        """Let beats come, the last one with `keep`; `marks` and the next two are its sidebands."""
        queue = self.model._takes
        assert queue is not None
        for i, word in enumerate(words):
            end = i == len(words) - 1
            beat = Beat(word.to_bytes(queue.data_bytes, "little"), keep if end else -1 & 0xF)
            beat.dest, beat.id, beat.user = (marks, marks + 1, marks + 2) if end else (0, 0, 0)
            beat.last = last and end
            queue.put(queue.given, beat)
            queue.give(queue.given + 1)

    def sent(self, packets: int = 0) -> list[Beat]:
        """Take the beats that were given to the engine, with as many ends of packets."""
        queue = self.model._sends
        assert queue is not None
        beats = [queue.get(i) for i in range(queue.taken, queue.given)]
        queue._q[1] = queue.given
        queue._q[2] += packets
        return beats

    def error(self, register: int, value: int | None = None) -> int:
        """Access a register that is misused; return the error bits, and clear ISR."""
        with pytest.warns(RegisterMisuse):
            assert self.read(register) == 0 if value is None else not self.write(register, value)
        self.model._warned.clear()
        bits = self.read(ISR) & (RPURE | RPORE | RPUE | TPOE | TSE)
        self.write(ISR, 0xFFFFFFFF)
        return bits


Make = Callable[..., Rig]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setattr(fifo_queue, "compile_engine", lambda source: Path("none"))
    monkeypatch.setattr(EngineProcess, "spawn", lambda engine: None)

    def empty(queue: BeatQueue) -> None:
        queue._q[1] = queue.given

    monkeypatch.setattr(BeatQueue, "empty", empty)
    memory, made = PhysicalMemory(), []

    def make(ports: Any = None, **parameters: str) -> Rig:
        made.append(Rig(memory, parameters, ports or {}))
        made[-1].write(ISR, 0xFFFFFFFF)
        made[-1].did.clear()
        return made[-1]

    yield make
    for rig in made:
        rig.model.close()
    memory.close()


def test_after_configuration(make: Make) -> None:
    rig = make()
    fresh = AxiFifo(rig.model.board, rig.model.ip)
    rig.moves = True
    assert fresh.read(ISR) == 0x01D00000 and rig.did.pop() == ("polled", fresh, 1)
    fresh.close()


def test_streams_and_depths(make: Make) -> None:
    rig = make()
    assert rig.opened == [("fifo.AXI_STR_TXD", "out", 4), ("fifo.AXI_STR_RXD", "in", 4)]
    for queue in (rig.model._sends, rig.model._takes):
        assert queue is not None and queue.depth == 512
    ports = {"AXI_STR_TXD": (True, 8), "AXI_STR_RXD": (False, 0)}
    rig = make(ports, C_TX_FIFO_DEPTH="32", C_RX_FIFO_DEPTH="64")
    assert [opened[2] for opened in rig.opened] == [8, 4]
    assert rig.model._sends is not None and rig.model._takes is not None
    assert (rig.model._sends.depth, rig.model._takes.depth) == (32, 64)


def test_levels_by_default(make: Make) -> None:
    rig = make()
    for word in range(507):
        assert rig.read(ISR) == 0
        rig.write(TDFD, word)
    assert (rig.read(ISR), rig.read(TDFV)) == (TFPF, 1)
    rig.write(ISR, TFPF)
    assert rig.read(ISR) == 0  # it rises once
    rig.write(TLR, 4 * 507)
    assert rig.read(ISR) == 0  # in the FIFO still
    rig.sent()
    assert rig.read(ISR) == TFPE
    rig.write(ISR, TFPE)
    rig.arrive(*range(506))
    assert rig.read(ISR) == RC
    rig.arrive(1)
    assert rig.read(ISR) == RC | RFPF
    rig.write(ISR, RC | RFPF)
    for left in range(506, 4, -1):
        assert (rig.read(RDFD) is not None, rig.read(RDFO)) == (True, left)
        assert rig.read(ISR) == (RFPE if left == 5 else 0)
        rig.write(ISR, RFPE) if left != 5 else None


def test_limits_of_a_design(make: Make) -> None:
    limits = {"TX_FIFO_PF": "4", "TX_FIFO_PE": "0", "RX_FIFO_PF": "1", "RX_FIFO_PE": "0"}
    limits = {f"C_{name}_THRESHOLD": text for name, text in limits.items()}
    rig = make(**limits)
    assert rig.model._look_at_levels() == TFPE | RFPE
    rig.arrive(1, last=False)
    for word in range(4):
        assert rig.model._look_at_levels() == RFPF | (0 if word else TFPE)
        rig.write(TDFD, word)
    assert rig.model._look_at_levels() == RFPF | TFPF
    limits |= {"C_TX_FIFO_PF_THRESHOLD": "1"}
    for side in ("TX", "RX"):  # a side that is not there is empty
        alone = make(**limits, **{f"C_USE_{side}_DATA": "0"})
        assert alone.model._look_at_levels() == TFPE | RFPE
        assert alone.opened[0][1] == ("in" if side == "TX" else "out")


def test_packets_that_come(make: Make) -> None:
    rig = make()
    assert [rig.read(at) for at in (RDR, RID, RUSER, RDFO)] == [0, 0, 0, 0]
    rig.arrive(11, 12, 13, keep=0x1, marks=7)
    rig.arrive(21, marks=17)
    rig.arrive(31, 32, keep=0xF0F, last=False)  # no more bytes than it has
    assert (rig.read(RDFO), rig.read(ISR)) == (4, RC)
    assert [rig.read(at) for at in (RDR, RID, RUSER)] == [7, 8, 9]  # of the next to be read
    assert rig.read(RLR) == 9
    assert [rig.read(RDFD) for _ in range(3)] == [11, 12, 13]
    assert [rig.read(at) for at in (RDR, RID, RUSER)] == [7, 8, 9]
    assert (rig.read(RDFO), rig.read(RLR), rig.read(RDR)) == (1, 4, 17)
    assert rig.read(RDFD) == 21
    assert (rig.read(RDFO), rig.error(RLR), rig.error(RDFD)) == (0, RPURE, RPUE)
    rig.arrive(33, keep=0x7)
    assert (rig.read(RDFO), rig.read(RLR)) == (3, 11)
    assert [rig.read(RDFD) for _ in range(3)] == [31, 32, 33]
    assert rig.read(ISR) & ~(RFPE | TFPE) == RC
    assert [rig.read(at) for at in (0x44, TDFR, SRR, TLR, TDFD, TUSER)] == [0] * 6


def test_words_beyond_a_packet(make: Make) -> None:
    rig = make()
    rig.arrive(1)
    rig.arrive(2)
    rig.arrive(3)
    assert [rig.read(RDFD), rig.read(ISR)] == [1, RC]  # no length was asked for
    assert rig.read(RLR) == 4
    assert rig.read(RDFD) == 2
    with pytest.warns(RegisterMisuse, match="beyond the packet that RLR told of"):
        assert rig.read(RDFD) == 3
    assert rig.read(ISR) == RC | RPORE
    rig.model._warned.clear()
    rig.arrive(4, 5)
    rig.arrive(6)
    rig.read(RLR)  # of the second packet, which is gone
    assert [rig.read(RLR), rig.read(RLR)] == [4, 8]
    rig.write(ISR, 0xFFFFFFFF)
    assert [rig.read(RDFD), rig.read(RDFD), rig.read(ISR)] == [4, 5, 0]
    with pytest.warns(RegisterMisuse, match="beyond the packet"):
        assert rig.read(RDFD) == 6


def test_cut_through_of_words_that_come(make: Make) -> None:
    rig = make(**CUT)
    assert rig.error(RLR) == RPURE
    rig.arrive(1, 2, last=False)
    assert (rig.read(RDFO), rig.read(RLR)) == (2, 1 << 31 | 8)
    assert [rig.read(RDFD), rig.read(RDFO)] == [1, 1]
    rig.arrive(3, keep=0x3)
    assert [rig.read(RDFO), rig.read(RLR)] == [2, 10]
    rig.write(RDFR, 0xA5)
    assert rig.error(RLR) == RPURE
    rig.arrive(4, 5, last=False)
    rig.write(RDFR, 0xA5)
    assert (rig.read(RDFO), rig.error(RLR)) == (0, RPURE)  # their bytes are forgotten
    rig.arrive(6)
    assert [rig.read(RDFO), rig.read(RLR), rig.read(RDFD)] == [1, 4, 6]
    plain = make()
    plain.arrive(1, last=False)
    assert (plain.read(RDFO), plain.error(RLR)) == (0, RPURE)


@pytest.mark.parametrize("width", [4, 8])
def test_what_a_packet_sends(make: Make, width: int) -> None:
    rig = make({"AXI_STR_TXD": (True, width)})
    whole = (1 << width) - 1
    for nbytes in (1, width - 1, width, width + 1, 3 * width):
        beats = -(-nbytes // width)
        for register, value in ((TDR, 5), (TID, 6), (TUSER, 7)):
            rig.write(register, value + nbytes)
        for word in range(beats * width // 4):
            rig.write(TDFD, word + 1)
        assert rig.read(TDFV) == 508 - beats and not rig.sent()
        rig.did.clear()
        rig.write(TLR, nbytes | 0xFF800000)  # 23 bits
        assert rig.did[:1] == [("settle",)] and rig.read(TDFV) == 508 - beats
        got = rig.sent(1)
        assert b"".join(beat.data for beat in got) == b"".join(
            (word + 1).to_bytes(4, "little") for word in range(beats * width // 4)
        )
        keep = (1 << nbytes - width * (beats - 1)) - 1
        assert [beat.keep for beat in got] == [whole] * (beats - 1) + [keep]
        assert [beat.last for beat in got] == [False] * (beats - 1) + [True]
        marks = {(beat.dest, beat.id, beat.user) for beat in got}
        assert marks == {(5 + nbytes, 6 + nbytes, 7 + nbytes)}
        assert rig.read(ISR) & TC
        rig.write(ISR, TC)
        assert rig.read(ISR) & TC == 0


def test_lengths_that_fit_no_words(make: Make) -> None:
    rig = make()
    assert rig.error(TLR, 0) == TSE
    rig.write(TDFD, 1)
    rig.write(TDFD, 2)
    for nbytes in (0, 4, 9):
        assert rig.error(TLR, nbytes) == TSE
    rig.write(TLR, 5)  # the words are there still
    assert [beat.keep for beat in rig.sent()] == [0xF, 0x1]
    rig.write(TDFD, 3)
    for key in (0xA4, 0x5A, 0x100):
        rig.write(TDFR, key)
        assert rig.read(TDFV) == 507
    rig.write(TDFR, 0x1A5)
    assert (rig.read(TDFV), rig.error(TLR, 4)) == (508, TSE)


def test_cut_through_of_words_that_go(make: Make) -> None:
    rig = make(**CUT, C_TX_FIFO_DEPTH="8")
    for word, given in ((1, []), (2, [1]), (3, [2])):
        rig.write(TDFD, word)
        assert [int.from_bytes(beat.data, "little") for beat in rig.sent()] == given
        assert rig.read(TDFV) == 3
    assert rig.error(TLR, 4) == TSE
    rig.write(TLR, 12)
    (last,) = rig.sent(1)
    assert (last.data[0], last.keep, last.last) == (3, 0xF, True)
    assert rig.error(TLR, 4) == TSE  # the count begins again
    for word in range(4):
        rig.write(TDFD, word)
    assert (rig.read(TDFV), rig.error(TDFD, 9)) == (0, TPOE)
    assert rig.read(TDFV) == 0
    assert [beat.last for beat in rig.sent()] == [False] * 3


def test_the_axi4_port(make: Make) -> None:
    rig = make(C_DATA_INTERFACE_TYPE="1")
    port = "s_axi_full"
    rig.write(TDFD, 1)
    rig.write(0x1000, 1, port)
    assert rig.read(TDFV) == 508
    for at in (0, 0xFFC):
        rig.write(at, 2, port)
    assert rig.read(TDFV) == 506
    rig.arrive(1, 2, 3)
    assert [rig.read(RDFD), rig.read(0xFFC, port), rig.read(0x1000, port)] == [0, 0, 1]
    assert rig.read(0x1FFC, port) == 2
    plain = make()
    plain.write(TDFD, 1)
    assert plain.read(TDFV) == 507


def test_a_side_that_is_not_there(make: Make) -> None:
    sends, takes = make(C_USE_RX_DATA="0"), make(C_USE_TX_DATA="0")
    assert (sends.read(RDFO), sends.error(RLR), sends.error(RDFD)) == (0, RPURE, RPUE)
    assert (takes.read(TDFV), takes.error(TDFD, 1), takes.error(TLR, 4)) == (0, TPOE, TSE)
    for rig in (sends, takes):
        rig.write(SRR, 0xA5)
        assert rig.read(ISR) & (TRC | RRC) == TRC | RRC
        rig.did.clear()
        rig.read(RDFO)
        assert rig.did[0].startswith("fifo: no word comes to AXI_STR_RXD from anything in the")


def test_polls(make: Make) -> None:
    rig = make()

    def polled(number: int) -> tuple[Any, ...]:
        return ("polled", rig.model, number)

    rig.moves = True
    for count, register in enumerate((ISR, RDFO, TDFV, ISR), 1):
        rig.read(register)
        assert rig.did.pop() == polled(count)
    rig.read(IER)
    assert not rig.did
    rig.write(TDR, 1)
    rig.did.clear()
    rig.read(ISR)
    assert rig.did.pop() == polled(1)
    rig.arrive(1)  # something has happened
    rig.read(ISR)
    assert rig.did == [("raise_irq", rig.model), polled(1)]
    rig.moves = False
    rig.did.clear()
    for register in (ISR, RDFO, TDFV):
        rig.read(register)
        assert len(rig.did) == 1 and rig.did.pop().startswith("fifo: no word comes")
    assert rig.read(RLR) == 4 and not rig.did  # it takes something away: no poll
    rig.moves = True
    rig.read(ISR)
    assert rig.did.pop() == polled(1)


def test_why_nothing_comes(make: Make) -> None:
    rig = make(C_RX_FIFO_DEPTH="4")

    def why() -> str:
        rig.did.clear()
        rig.read(ISR)
        (text,) = rig.did
        return str(text)

    rig.arrive(1)
    rig.read(ISR)
    assert why().startswith("fifo: no word comes to AXI_STR_RXD")  # a packet waits to be read
    rig.write(RDFR, 0xA5)
    rig.arrive(1, 2, last=False)
    assert why().startswith("fifo: 2 words have come to AXI_STR_RXD without TLAST")
    rig.arrive(3, last=False)
    assert why().startswith("fifo: 3 words have come")
    rig.arrive(4, last=False)
    assert why().startswith("fifo: its receive FIFO of 4 words is full and TLAST has not")
    rig.write(RDFR, 0xA5)
    rig.write(TDFD, 1)
    assert why().startswith("fifo: 1 words were written to TDFD, and nothing is sent")
    rig.write(TLR, 4)
    assert why() == "fifo: nothing does not take the words of AXI_STR_TXD."
    rig.write(TDFD, 1)
    assert why() == "fifo: nothing does not take the words of AXI_STR_TXD."
    rig.sent()
    assert why().startswith("fifo: 1 words were written to TDFD")


def test_the_interrupt_and_what_it_watches(make: Make) -> None:
    rig = make()
    model, watch = rig.model, ("watch", rig.model.engine.done_fd, rig.model._on_packet)
    rig.write(IER, 0x0007FFFF)
    assert rig.did == [("raise_irq", model)] and rig.read(IER) == 0
    for _ in range(2):
        rig.write(IER, RC)
    assert rig.did.count(watch) == 1 and rig.did.count(("raise_irq", model)) == 3
    rig.did.clear()
    model._on_packet()
    assert not rig.did and not model.irq("interrupt")
    rig.arrive(1)
    model._on_packet()
    assert rig.did == [("raise_irq", model)] and model.irq("interrupt") is True
    rig.write(ISR, RC)
    assert model.irq("interrupt") is False
    rig.arrive(2)
    rig.did.clear()
    model.close()
    model._on_packet()  # which was on its way
    assert rig.did == [("unwatch", model.engine.done_fd)]
    other = make()
    other.model.close()
    assert not other.did


def test_an_access_says_what_changed(make: Make) -> None:
    rig = make()
    for word in range(6):
        rig.arrive(word)
    rig.read(IER)
    assert rig.did == [("raise_irq", rig.model)]
    rig.did.clear()
    rig.read(RDFD)  # five are left: nearly empty, with the word that was read
    assert rig.did == [("raise_irq", rig.model)]
    rig.write(TDFD, 1)
    rig.write(TDFD, 1)
    shown = rig.model.describe()
    assert (shown["status"], shown["vacancy"], shown["occupancy"]) == (RC | RFPE, 506, 5)
    assert shown["packets"] == [4] * 6 and shown["enabled"] == 0
    rig.arrive(1)
    assert rig.model.describe()["packets"] == [4] * 7  # of this moment


def test_a_wrong_use_is_said_once_for_each_bit(make: Make) -> None:
    rig = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            for register in (RLR, RDFD):
                rig.read(register)
            rig.write(TLR, 4)
    assert [str(w.message)[:10] for w in caught] == ["fifo: RLR ", "fifo: RDFD", "fifo: TLR "]
