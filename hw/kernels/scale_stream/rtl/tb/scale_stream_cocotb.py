"""cocotb bench of scale_stream: packets of floats, with and without back-pressure.

``PACKET``, ``PACKETS`` and ``STALLS`` come from the environment; the seed is cocotb's.
"""

from __future__ import annotations

import os
import random
import struct
import time
from typing import Any

import cocotb
import numpy as np
from axi import AxiLite, receive, reset, send
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

AP_CTRL, BEATS, GAIN, OFFSET = 0x00, 0x10, 0x18, 0x20
PACKET = int(os.environ.get("PACKET", "200"))
PACKETS = int(os.environ.get("PACKETS", "4"))
STALLS = float(os.environ.get("STALLS", "0.3"))


def bits(value: float) -> int:
    """Return a float32 as the word that holds it."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


async def begin(dut: Any) -> AxiLite:
    """Start the clock, reset, and return the registers."""
    dut.samples_TVALID.value = 0
    dut.samples_TKEEP.value = 0xF
    dut.samples_TSTRB.value = 0xF
    dut.scaled_TREADY.value = 0
    registers = AxiLite(dut)
    Clock(dut.ap_clk, 10, unit="ns").start()
    await reset(dut)
    return registers


@cocotb.test()
async def packets_are_scaled(dut: Any) -> None:
    """Each packet comes out as numpy computes it, to the bit, and the run ends."""
    rng = random.Random(cocotb.RANDOM_SEED)
    numbers = np.random.default_rng(cocotb.RANDOM_SEED)
    registers = await begin(dut)
    for _ in range(PACKETS):
        x = numbers.normal(scale=100, size=rng.randint(1, PACKET)).astype(np.float32)
        gain, offset = np.float32(numbers.normal()), np.float32(numbers.normal())
        await registers.write(GAIN, bits(gain))
        await registers.write(OFFSET, bits(offset))
        await registers.write(AP_CTRL, 1)
        taking = cocotb.start_soon(receive(dut, "scaled", rng, STALLS))
        await send(dut, "samples", x.view(np.uint32).tolist(), rng, STALLS)
        found = np.array(await taking, np.uint32)
        expected = (gain * x + offset).astype(np.float32).view(np.uint32)
        assert np.array_equal(found, expected), np.flatnonzero(found != expected)
        control = 0
        while not control & 2:
            control = await registers.read(AP_CTRL)
        assert await registers.read(BEATS) == len(x)
        assert not await registers.read(AP_CTRL) & 2, "ap_done is cleared by reading it"


@cocotb.test()
async def nothing_is_taken_before_a_start(dut: Any) -> None:
    """TREADY stays low."""
    await begin(dut)
    dut.samples_TVALID.value = 1
    for _ in range(20):
        await RisingEdge(dut.ap_clk)
        assert not dut.samples_TREADY.value


@cocotb.test(skip="CYCLES" not in os.environ)
async def how_fast_is_this(dut: Any) -> None:
    """Stream for ``CYCLES`` cycles without a stall, and print the wall clock's cycles a second."""
    cycles = int(os.environ.get("CYCLES", "0"))
    rng = random.Random(0)
    registers = await begin(dut)
    await registers.write(GAIN, bits(1.5))
    await registers.write(OFFSET, bits(0.25))
    await registers.write(AP_CTRL, 1)
    words = np.random.default_rng(0).normal(size=cycles).astype(np.float32).view(np.uint32).tolist()
    start = time.perf_counter()
    begun = cocotb.utils.get_sim_time("ns")
    taking = cocotb.start_soon(receive(dut, "scaled", rng))
    await send(dut, "samples", words, rng)
    assert len(await taking) == cycles
    seconds = time.perf_counter() - start
    passed = (cocotb.utils.get_sim_time("ns") - begun) / 10
    print(f"cocotb: {passed / seconds:.0f} cycles/s", flush=True)
