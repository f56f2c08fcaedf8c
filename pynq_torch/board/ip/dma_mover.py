"""The data mover of an AXI DMA: the process that moves the bytes of both channels."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pynq_torch.board.engine import EngineProcess, State
from pynq_torch.board.services import BoardServices
from pynq_torch.errors import BoardError
from pynq_torch.hls import compile_engine

from .dma_channel import DmaChannel
from .dma_left import BeatsLeft
from .dma_slot import NO_PORT, DmaSlot

#: What an IP may need on this PC to take the beats that it has room for, in seconds.
_TAKE_LIMIT_S = 2.0
#: What a channel moves while a program gets from one statement to the next, at the least: 160 us at
#: 4 bytes a cycle and 100 MHz.
_STATEMENT_BYTES = 1 << 16
_SOURCE = Path(__file__).parents[1] / "engines" / "axi_dma.cpp"


class _DmaEngine(EngineProcess):
    """The process of a DMA. Its channels wait for themselves; its one state shows one of them."""

    channels: tuple[DmaChannel, ...] = ()

    def _goes_on(self, state: State) -> bool:
        """Whether one of the channels can get on."""
        return any(channel.can_move for channel in self.channels)


class DataMover:
    """The engine behind a DMA's channels (``MM2S``, ``S2MM``); the first transfer starts it."""

    def __init__(self, board: BoardServices, name: str, channels: Mapping[str, DmaChannel]) -> None:
        self._board = board
        self._name = name
        self._channels = channels
        self.engine: EngineProcess | None = None
        self.left = BeatsLeft(board)

    @staticmethod
    def compile() -> Path:
        """Return the data mover's program, compiled where it is not in the cache."""
        return compile_engine(_SOURCE)

    def start(self) -> EngineProcess:
        """Return the engine, started if it is not running."""
        if self.engine is None:
            self.engine = self._make()
            self.engine.spawn()
        elif self.engine.faulted:
            self.respawn()
        return self.engine

    def _make(self) -> EngineProcess:
        used = [(name, c.ring) for name, c in self._channels.items() if c.ring is not None]
        names = [name for name, _ in used]
        engine = _DmaEngine(
            self.compile(),
            self._name,
            self._board.memory,
            4096,
            [ring for _, ring in used],
            [f"{self._name}.{name}" for name in names],
        )
        for index, name in enumerate(("MM2S", "S2MM")):
            slot = DmaSlot(engine, index)
            channel = self._channels.get(name)
            if channel is None:
                slot.configure(port=NO_PORT, memory_bytes=4, realign=False, length_mask=0)
                continue
            p = channel.parameters
            slot.configure(
                port=names.index(name) if name in names else NO_PORT,
                memory_bytes=p.memory_bytes,
                realign=p.realign,
                length_mask=p.length_mask,
            )
            channel.slot = slot
        engine.channels = tuple(self._channels.values())
        return engine

    def respawn(self) -> None:
        """Start the process again; what was moving is lost."""
        assert self.engine is not None
        for channel in self._channels.values():
            if channel.slot is not None:
                channel.slot.forget()
            if channel.busy:
                channel.busy = False
                channel.halt()
        self.engine.spawn()

    def check(self) -> None:
        """Raise what happened if the process died."""
        if self.engine is not None and self.engine.faulted:
            error = self.engine.fault()
            self.respawn()
            raise error

    def begin(self, channel: DmaChannel) -> DmaSlot:
        """Note that a transfer begins; return where to post it."""
        assert channel.slot is not None
        if channel.sends and channel.ring is not None:
            self.left.transfer_begins(channel.ring)
        channel.busy, channel.idle, channel.polls = True, False, 0
        return channel.slot

    def run_on(self) -> None:
        """Let MM2S send what it would have sent on the board before the program's next statement.

        Here a reset may come while the process that sends has had no time to; a packet would then
        be cut off that, on the board, has long reached the IP.
        """
        channel = self._channels.get("MM2S")
        slot = channel.slot if channel is not None else None
        if slot is None or not slot.busy:
            return
        last = slot.total_nbytes + _STATEMENT_BYTES
        self._while_moving(lambda: slot.busy and slot.total_nbytes < last)

    def _while_moving(self, wanted: Callable[[], bool]) -> None:
        """Wait while `wanted` holds and something in the PL can move, within a limit."""
        deadline = time.monotonic() + _TAKE_LIMIT_S
        while wanted() and any(engine.can_move for engine in self._board.engines()):
            if time.monotonic() > deadline:
                return
            time.sleep(2e-4)

    def abort(self, channel: DmaChannel) -> None:
        """Give up the current job, as RS = 0 and Reset do."""
        slot = channel.slot
        if slot is None:
            return  # nothing was started
        assert self.engine is not None
        if slot.busy and not slot.abort(self.engine.start_fd):
            self.respawn()
        channel.update()
        channel.busy = False

    def withdraw(self) -> None:
        """Drop the beats that were sent and not taken, as the reset of the DMA's FIFOs does.

        What a FIFO on the way or the IP has taken stays there (PG021 resets nothing but the DMA).

        Raises
        ------
        BoardError
            The data mover does not answer, so that they may still come before the next transfer.
        """
        channel = self._channels.get("MM2S")
        ring, slot = (channel.ring, channel.slot) if channel is not None else (None, None)
        if ring is None or slot is None:
            return
        assert self.engine is not None
        # On the board a running IP has taken what it can long before a program's statement ends.
        self._while_moving(lambda: ring.occupancy > 0)
        before = ring.withdrawn_before
        if ring.occupancy:
            if self.engine.faulted:
                self.respawn()
            if not slot.withdraw(self.engine.start_fd):
                self.respawn()
                if not slot.withdraw(self.engine.start_fd):
                    raise BoardError(
                        f"{self._name}: its data mover was started again and still does not take "
                        f"back the {ring.occupancy} beats that were sent and not taken; load the "
                        "overlay again"
                    )
        self.left.was_reset(ring, before)
