"""Bus models for cocotb: an AXI4-Lite manager, memory behind AXI4 ports, AXI4-Stream ends.

Small, to be read: each is a coroutine or two. Every input changes just after a rising edge, from
what was sampled at it. ``stalls`` is the probability that a ready or a valid is held back in a
cycle, drawn from the generator that the bench gives, so that a seed repeats a run.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import Any

import cocotb
from cocotb.triggers import Event, RisingEdge

PAGE = 4096


async def reset(dut: Any, cycles: int = 4) -> None:
    """Hold the reset for some cycles."""
    dut.ap_rst_n.value = 0
    for _ in range(cycles):
        await RisingEdge(dut.ap_clk)
    dut.ap_rst_n.value = 1
    await RisingEdge(dut.ap_clk)


class AxiLite:
    """Reads and writes the registers behind an AXI4-Lite port, one access at a time."""

    def __init__(self, dut: Any, prefix: str = "s_axi_control") -> None:
        self._clock = dut.ap_clk
        self._pin = lambda name: getattr(dut, f"{prefix}_{name}")
        for name in ("AWVALID", "WVALID", "ARVALID"):
            self._pin(name).value = 0
        self._pin("WSTRB").value = 0xF
        self._pin("BREADY").value = 1
        self._pin("RREADY").value = 1

    async def write(self, address: int, value: int) -> None:
        """Write a word and wait for the answer."""
        self._pin("AWADDR").value = address
        self._pin("WDATA").value = value & 0xFFFF_FFFF
        waiting = {"AW", "W"}
        for channel in waiting:
            self._pin(f"{channel}VALID").value = 1
        while waiting:
            await RisingEdge(self._clock)
            for channel in sorted(waiting):
                if self._pin(f"{channel}READY").value:
                    self._pin(f"{channel}VALID").value = 0
                    waiting.discard(channel)
        while not self._pin("BVALID").value:
            await RisingEdge(self._clock)
        assert int(self._pin("BRESP").value) == 0, f"write to {address:#x} was refused"
        await RisingEdge(self._clock)

    async def read(self, address: int) -> int:
        """Read a word."""
        self._pin("ARADDR").value = address
        self._pin("ARVALID").value = 1
        await RisingEdge(self._clock)
        while not self._pin("ARREADY").value:
            await RisingEdge(self._clock)
        self._pin("ARVALID").value = 0
        await RisingEdge(self._clock)
        while not self._pin("RVALID").value:
            await RisingEdge(self._clock)
        assert int(self._pin("RRESP").value) == 0, f"read of {address:#x} was refused"
        return int(self._pin("RDATA").value)

    async def write64(self, address: int, value: int) -> None:
        """Write an address, in two words."""
        await self.write(address, value)
        await self.write(address + 4, value >> 32)


class Memory:
    """Bytes behind AXI4 ports, each with a latency, stalls, and as many bursts as are asked for.

    It checks what an interconnect relies on: a burst stays inside 4 KB and inside the memory, an
    address stays the same until it is taken, WLAST is where AWLEN says.
    """

    def __init__(self, nbytes: int, rng: random.Random, stalls: float = 0.0, latency: int = 20):
        self.data = bytearray(nbytes)
        self._rng = rng
        self._stalls = stalls
        self._latency = latency

    def _goes_on(self) -> bool:
        return self._rng.random() >= self._stalls

    def _burst(self, pins: Any, channel: str) -> tuple[int, int, int]:
        """Return address, beats and bytes of a beat."""
        address, length, size = (int(pins(f"{channel}{n}").value) for n in ("ADDR", "LEN", "SIZE"))
        beats, nbytes = length + 1, 1 << size
        first = address - address % nbytes
        end = first + beats * nbytes
        assert int(pins(f"{channel}BURST").value) == 1, "expected an incrementing burst"
        assert first // PAGE == (end - 1) // PAGE, (
            f"burst {address:#x} + {beats} beats leaves a page"
        )
        assert end <= len(self.data), f"burst {address:#x} + {beats} beats leaves the memory"
        return first, beats, nbytes

    def serve_reads(self, dut: Any, prefix: str) -> None:
        """Answer the read channels of a port for ever."""
        cocotb.start_soon(self._reads(dut, lambda name: getattr(dut, f"{prefix}_{name}")))

    async def _reads(self, dut: Any, pins: Any) -> None:
        bursts: deque[tuple[int, int, int, int]] = deque()  # due, address, beats left, bytes a beat
        ready = valid = False
        held: int | None = None
        now = 0
        for name in ("ARREADY", "RVALID", "RLAST", "RRESP", "RDATA"):
            pins(name).value = 0
        while True:
            await RisingEdge(dut.ap_clk)
            now += 1
            if not int(dut.ap_rst_n.value):
                bursts.clear()
                ready, valid, held = False, False, None
                pins("ARREADY").value = 0
                pins("RVALID").value = 0
                continue
            if pins("ARVALID").value:
                address = int(pins("ARADDR").value)
                assert held is None or held == address, "ARADDR changed before it was taken"
                held = None if ready else address
                if ready:
                    bursts.append((now + self._latency, *self._burst(pins, "AR")))
            else:
                assert held is None, "ARVALID fell before the address was taken"
            if valid and pins("RREADY").value:
                due, address, left, nbytes = bursts.popleft()
                if left > 1:
                    bursts.appendleft((due, address + nbytes, left - 1, nbytes))
                valid = False
            if not valid and bursts and bursts[0][0] <= now and self._goes_on():
                _, address, left, nbytes = bursts[0]
                pins("RDATA").value = int.from_bytes(
                    self.data[address : address + nbytes], "little"
                )
                pins("RLAST").value = int(left == 1)
                valid = True
            pins("RVALID").value = int(valid)
            ready = self._goes_on()
            pins("ARREADY").value = int(ready)

    def serve_writes(self, dut: Any, prefix: str) -> None:
        """Take the write channels of a port for ever."""
        cocotb.start_soon(self._writes(dut, lambda name: getattr(dut, f"{prefix}_{name}")))

    async def _writes(self, dut: Any, pins: Any) -> None:
        bursts: deque[tuple[int, int, int]] = deque()  # address, beats left, bytes a beat
        words: deque[tuple[int, int, bool]] = deque()  # data, strobes, last
        answers: deque[int] = deque()  # due
        ready = taking = valid = False
        now = 0
        for name in ("AWREADY", "WREADY", "BVALID", "BRESP"):
            pins(name).value = 0
        while True:
            await RisingEdge(dut.ap_clk)
            now += 1
            if not int(dut.ap_rst_n.value):
                for queue in (bursts, words, answers):
                    queue.clear()
                ready = taking = valid = False
                for name in ("AWREADY", "WREADY", "BVALID"):
                    pins(name).value = 0
                continue
            if ready and pins("AWVALID").value:
                bursts.append(self._burst(pins, "AW"))
            if taking and pins("WVALID").value:
                word = (int(pins(name).value) for name in ("WDATA", "WSTRB", "WLAST"))
                data, strobes, last = word
                words.append((data, strobes, bool(last)))
            while bursts and words:
                address, left, nbytes = bursts.popleft()
                data, strobes, last = words.popleft()
                assert last == (left == 1), f"WLAST is {last} with {left} beats left"
                for lane, byte in enumerate(data.to_bytes(nbytes, "little")):
                    if strobes >> lane & 1:
                        self.data[address + lane] = byte
                if left > 1:
                    bursts.appendleft((address + nbytes, left - 1, nbytes))
                else:
                    answers.append(now + self._latency)
            if valid and pins("BREADY").value:
                answers.popleft()
                valid = False
            valid = valid or (bool(answers) and answers[0] <= now and self._goes_on())
            pins("BVALID").value = int(valid)
            ready, taking = self._goes_on(), self._goes_on()
            pins("AWREADY").value = int(ready)
            pins("WREADY").value = int(taking)


async def send(
    dut: Any, prefix: str, words: Iterable[int], rng: random.Random, stalls: float = 0.0
) -> None:
    """Send a packet into a stream; return when its last beat was taken."""
    pin = {
        name: getattr(dut, f"{prefix}_{name}") for name in ("TVALID", "TREADY", "TDATA", "TLAST")
    }
    edge = RisingEdge(dut.ap_clk)
    packet = list(words)
    for index, word in enumerate(packet):
        while stalls and rng.random() < stalls:
            await edge
        pin["TVALID"].value = 1
        pin["TDATA"].value = word
        pin["TLAST"].value = int(index == len(packet) - 1)
        await edge
        while not pin["TREADY"].value:
            await edge
        if stalls or index == len(packet) - 1:
            pin["TVALID"].value = 0


async def receive(
    dut: Any, prefix: str, rng: random.Random, stalls: float = 0.0, done: Event | None = None
) -> list[int]:
    """Take a packet from a stream, and return its words."""
    pin = {
        name: getattr(dut, f"{prefix}_{name}") for name in ("TVALID", "TREADY", "TDATA", "TLAST")
    }
    edge = RisingEdge(dut.ap_clk)
    found: list[int] = []
    offered: int | None = None
    ready = not stalls or rng.random() >= stalls
    pin["TREADY"].value = int(ready)
    while True:
        await edge
        if pin["TVALID"].value:
            word = int(pin["TDATA"].value)
            assert offered is None or offered == word, "TDATA changed before it was taken"
            offered = word
            if ready:
                offered = None
                found.append(word)
                if pin["TLAST"].value:
                    pin["TREADY"].value = 0
                    if done is not None:
                        done.set()
                    return found
        else:
            assert offered is None, "TVALID fell before the beat was taken"
        if stalls:
            ready = rng.random() >= stalls
            pin["TREADY"].value = int(ready)
