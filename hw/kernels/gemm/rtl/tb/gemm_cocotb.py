"""cocotb bench of the gemm: products of any sizes and strides, memory that stalls, numpy beside it.

``STALLS`` comes from the environment, ``PRODUCTS`` is how many of them are random; the seed is
cocotb's.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
from axi import AxiLite, Memory, reset
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

AP_CTRL, A, B, C, M, N, K = 0x00, 0x10, 0x1C, 0x28, 0x34, 0x3C, 0x44
LDA, LDB, LDC, BIAS, SCALE, MODE = 0x4C, 0x54, 0x5C, 0x64, 0x70, 0x7C
INT32, INT8, FLOAT32, WITH_BIAS, RELU = 0, 1, 2, 4, 8
STALLS = float(os.environ.get("STALLS", "0.2"))
PRODUCTS = int(os.environ.get("PRODUCTS", "6"))
NBYTES = 1 << 18
TIMEOUT = 20_000  # cycles; a product of this bench takes some thousands at most


@dataclass(frozen=True)
class Product:
    """Sizes, row strides in elements, and the mode."""

    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldc: int
    mode: int = INT32


def reference(
    a: np.ndarray, b: np.ndarray, bias: np.ndarray, scale: np.ndarray, mode: int
) -> np.ndarray:
    """Return what ``../../gemm_epilogue.hpp`` says, by numpy."""
    sums = a.astype(np.int32) @ b.astype(np.int32)
    kind = mode & 3
    if kind == FLOAT32:
        value = sums.astype(np.float32) * scale
        value = value + bias.view(np.float32) if mode & WITH_BIAS else value
        return np.where(value < 0, np.float32(0), value) if mode & RELU else value
    sums = sums + bias if mode & WITH_BIAS else sums
    if kind == INT32:
        return np.maximum(sums, 0) if mode & RELU else sums
    rounded = np.rint(sums.astype(np.float32) * scale)
    return np.clip(rounded, 0 if mode & RELU else -128, 127).astype(np.int8)


class Bench:
    """The design with its memory; operands are laid out again for each product."""

    def __init__(self, dut: Any, stalls: float, latency: int = 20) -> None:
        self.dut = dut
        self.rng = random.Random(cocotb.RANDOM_SEED)
        self.numbers = np.random.default_rng(cocotb.RANDOM_SEED)
        self.memory = Memory(NBYTES, self.rng, stalls, latency)
        self.registers = AxiLite(dut)

    async def begin(self) -> None:
        """Start the clock, the memory and the design."""
        for port in ("m_axi_gmem0", "m_axi_gmem1", "m_axi_gmem2"):
            self.memory.serve_reads(self.dut, port)
        self.memory.serve_writes(self.dut, "m_axi_gmem2")
        Clock(self.dut.ap_clk, 10, unit="ns").start()
        await reset(self.dut)

    def _place(self, array: np.ndarray, align: int, at: int) -> int:
        """Copy an array into the memory; return where it begins."""
        at += -at % align
        self.memory.data[at : at + array.nbytes] = array.tobytes()
        return at

    async def multiply(self, p: Product) -> int:
        """Run a product and compare all of the memory; return its cycles, polling included."""
        kind = p.mode & 3
        whole_a, whole_b = (
            self.numbers.integers(-128, 128, shape, dtype=np.int8)
            for shape in ((p.m, p.lda), (p.k, p.ldb))
        )
        bias = self.numbers.integers(-9999, 9999, p.n, dtype=np.int32)
        if kind == FLOAT32:
            bias = self.numbers.normal(size=p.n).astype(np.float32).view(np.int32)
        scale = self.numbers.uniform(1e-4, 1e-2, p.n).astype(np.float32)
        odd = self.rng.randint(1, 9)  # operands begin at any byte
        a = self._place(whole_a, 1, 64 + odd)
        b = self._place(whole_b, 1, a + whole_a.nbytes + odd)
        bias_at = self._place(bias, 4, b + whole_b.nbytes)
        scale_at = self._place(scale, 4, bias_at + bias.nbytes)
        dtype = {INT32: np.int32, INT8: np.int8, FLOAT32: np.float32}[kind]
        c = self.numbers.integers(0, 256, p.m * p.ldc * np.dtype(dtype).itemsize, dtype=np.uint8)
        c_at = self._place(c, 64, scale_at + scale.nbytes)
        assert c_at + c.nbytes <= NBYTES, "the operands do not fit into the memory"

        expected = bytearray(self.memory.data)
        found = reference(whole_a[:, : p.k], whole_b[:, : p.n], bias, scale, p.mode)
        surface = c.view(dtype).reshape(p.m, p.ldc).copy()
        surface[:, : p.n] = found
        expected[c_at : c_at + c.nbytes] = surface.tobytes()

        for register, address in ((A, a), (B, b), (C, c_at), (BIAS, bias_at), (SCALE, scale_at)):
            await self.registers.write64(register, address)
        for register, value in (
            (M, p.m), (N, p.n), (K, p.k), (LDA, p.lda), (LDB, p.ldb), (LDC, p.ldc), (MODE, p.mode),
        ):  # fmt: skip
            await self.registers.write(register, value)
        await self.registers.write(AP_CTRL, 1)
        cycles = await self._wait()
        wrong = [
            i for i, (x, y) in enumerate(zip(self.memory.data, expected, strict=True)) if x != y
        ]
        assert not wrong, f"{p}: {len(wrong)} bytes differ, the first at c + {wrong[0] - c_at}"
        return cycles

    async def _wait(self) -> int:
        begun = cocotb.utils.get_sim_time("ns")
        while not await self.registers.read(AP_CTRL) & 2:
            passed = int(cocotb.utils.get_sim_time("ns") - begun) // 10
            assert passed < TIMEOUT, f"no ap_done within {TIMEOUT} cycles"
            for _ in range(16):
                await RisingEdge(self.dut.ap_clk)
        return int(cocotb.utils.get_sim_time("ns") - begun) // 10


def random_product(rng: random.Random, largest: int) -> Product:
    """Return sizes up to `largest`, strides a little over them, any mode."""
    m, n, k = (rng.randint(1, largest) for _ in range(3))
    lda, ldb, ldc = k + rng.randint(0, 5), n + rng.randint(0, 5), n + rng.randint(0, 5)
    mode = rng.choice((INT32, INT8, FLOAT32)) | rng.choice((0, WITH_BIAS)) | rng.choice((0, RELU))
    if mode & 3 == INT8:  # four columns in a word
        n, ldc = n + -n % 4, ldc + 3 + -(ldc + 3) % 4
        ldb = max(ldb, n)
    return Product(m, n, k, lda, ldb, max(ldc, n), mode)


@cocotb.test()
async def products_of_all_kinds(dut: Any) -> None:
    """Every kind of result, with and without bias and ReLU, without a stall."""
    bench = Bench(dut, 0.0)
    await bench.begin()
    for kind in (INT32, INT8, FLOAT32):
        for flags in (0, WITH_BIAS, RELU, WITH_BIAS | RELU):
            await bench.multiply(Product(8, 12, 9, 9, 12, 12, kind | flags))


@cocotb.test()
async def random_products_with_back_pressure(dut: Any) -> None:
    """Any sizes, strides and alignment, while every channel stalls at random."""
    latency = random.Random(cocotb.RANDOM_SEED).randint(1, 60)
    bench = Bench(dut, STALLS, latency)
    await bench.begin()
    for _ in range(PRODUCTS):
        await bench.multiply(random_product(bench.rng, 40))


@cocotb.test()
async def edges(dut: Any) -> None:
    """A row, a column, a single product, and more than a panel in each direction."""
    bench = Bench(dut, 0.0)
    await bench.begin()
    for m, n, k in ((1, 1, 1), (1, 40, 70), (70, 1, 3), (3, 5, 150), (66, 70, 5)):
        await bench.multiply(Product(m, n, k, k, n, n))


@cocotb.test()
async def a_reset_in_the_middle(dut: Any) -> None:
    """Whatever was going on is forgotten; the next product is right."""
    bench = Bench(dut, 0.0)
    await bench.begin()
    for register, value in ((M, 40), (N, 40), (K, 40), (LDA, 40), (LDB, 40), (LDC, 40), (MODE, 0)):
        await bench.registers.write(register, value)
    await bench.registers.write64(C, 1 << 17)
    await bench.registers.write(AP_CTRL, 1)
    for _ in range(bench.rng.randint(20, 200)):
        await RisingEdge(dut.ap_clk)
    await reset(dut, 16)
    control = await bench.registers.read(AP_CTRL)
    assert control & 0xF == 4, f"AP_CTRL {control:#x} after a reset; expected idle"
    await bench.multiply(Product(20, 20, 20, 20, 20, 20))
