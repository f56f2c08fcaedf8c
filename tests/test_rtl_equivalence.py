"""Kernels that have both, C++ and RTL: the same programs, the same bits.

Each program runs on board csim, then on board rtl with and without random waits on its buses; what
it returns is compared byte for byte.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import eventually, start, wait_done
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.errors import RtlResetWarning

_BITSTREAMS = Path(__file__).resolve().parents[1] / "bitstreams"
_SPECIAL = np.array(
    [
        *(0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x3F800000),
        *(0xBF800000, 0x34000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000),
    ],
    "u4",
)
_NAN = np.array([0x7FC00000, 0xFFC12345, 0x7F800001, 0xFFFFFFFF], "u4")
#: Board rtl: as the PYNQ-Z2, without waits of memory, with waits everywhere.
_RTL: dict[str, dict[str, Any]] = {
    "pynq-z2": {"memory": "pynq-z2"},
    "ideal": {"memory": "ideal"},
    "stalls": {"memory": "pynq-z2", "stalls": 0.4, "seed": 7},
}


def _bits(rng: np.random.Generator, n: int, nan: float) -> np.ndarray:
    """Return bits of float32 of every kind: any bits, special values, a share of NaN."""
    bits = rng.integers(0, 2**32, n, "u4")
    bits[np.isnan(bits.view("f4"))] &= 0xBFFFFFFF
    special = rng.random(n)
    bits = np.where(special < 0.2, rng.choice(_SPECIAL, n), bits)
    return np.where(special > 1 - nan, rng.choice(_NAN, n), bits).astype("u4")


def _on(name: str, bitstream: str, program: Callable[[Any], bytes], **options: Any) -> bytes:
    board = pynq_torch.use_board(name, **options)
    try:
        return program(Overlay(str(_BITSTREAMS / bitstream / f"{bitstream}.bit")))
    finally:
        board.close()


@contextlib.contextmanager
def _bursts_dropped() -> Iterator[None]:
    """Allow bursts to be on their way: board rtl warns of a reset then, and csim has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RtlResetWarning)
        yield


# ---- vadd ------------------------------------------------------------------------------------


def _vadd(ip: Any, a: Any, b: Any, c: Any, n: int, at: Sequence[int] = (0, 0, 0)) -> None:
    """Start on elements `at` of the three buffers, and wait."""
    for offset, buffer, first in zip((0x10, 0x1C, 0x28), (a, b, c), at, strict=True):
        address = buffer.physical_address + 4 * first
        ip.write(offset, address & 0xFFFFFFFF)
        ip.write(offset + 4, address >> 32)
    ip.write(0x34, n & 0xFFFFFFFF)
    start(ip)
    wait_done(ip)


def _vectors(rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
    """Return operands of every kind, and a buffer for the sum with a pattern in it.

    No two NaN meet: which of them an x86 passes on depends on the compiler's choice of registers.
    """
    a, b, c = allocate(n, "u4"), allocate(n, "u4"), allocate(n, "u4")
    a[:], b[:] = _bits(rng, n, 0.05), _bits(rng, n, 0)
    c[:] = 0xDEADBEEF
    for buffer in (a, b, c):
        buffer.flush()
    return a, b, c


def _vadd_sizes(overlay: Any) -> bytes:
    """Odd sizes, odd starts, starts back to back, without touching what lies around."""
    rng = np.random.default_rng(1)
    a, b, c = _vectors(rng, 4096)
    seen = []
    for n in (0, 1, 15, 16, 17, 1023, 1025, 3001, -5):
        at = rng.integers(0, 4096 - max(n, 1), 3)
        _vadd(overlay.vadd_0, a, b, c, n, [int(i) for i in at])
        c.invalidate()
        seen.append(np.array(c).tobytes())
    return b"".join(seen)


def _vadd_in_place(overlay: Any) -> bytes:
    """Many starts, each on the result of the one before; registers read back."""
    a, b, c = _vectors(np.random.default_rng(2), 333)
    for _ in range(5):
        _vadd(overlay.vadd_0, a, b, c, 333)
        _vadd(overlay.vadd_0, c, b, a, 333)
    a.invalidate()
    words = [int(overlay.vadd_0.read(offset)) for offset in (0x00, 0x04, 0x08, 0x0C, 0x34)]
    return np.array(a).tobytes() + str(words).encode()


def _vadd_reset(overlay: Any) -> bytes:
    """A reset in the middle of a long run; then a run as if nothing had been."""
    a, b, c = _vectors(np.random.default_rng(3), 200_000)
    unit = pynq_torch.current_board().cus["vadd_0"]
    ip = overlay.vadd_0
    for offset, buffer in ((0x10, a), (0x1C, b), (0x28, c)):
        ip.write(offset, buffer.physical_address)
    ip.write(0x34, 200_000)
    start(ip)
    with _bursts_dropped():
        unit.reset()
    assert ip.read(0x00) == 4, "a reset unit is idle"
    c[:] = 0
    c.flush()
    _vadd(ip, a, b, c, 1000)
    c.invalidate()
    return np.array(c).tobytes()


def _vadd_restarts(overlay: Any) -> bytes:
    """Auto-restart sees new data without a start, and ends when its bit is taken away."""
    a, b, c = _vectors(np.random.default_rng(4), 64)
    ip = overlay.vadd_0
    for offset, buffer in ((0x10, a), (0x1C, b), (0x28, c)):
        ip.write(offset, buffer.physical_address)
    ip.write(0x34, 64)
    ip.write(0x00, 0x81)
    seen = []
    for value in (5, 6, 7):
        a[:] = np.full(64, value, "f4").view("u4")
        b[:] = np.full(64, 0.5, "f4").view("u4")
        a.flush(), b.flush()
        expected = np.float32(value + 0.5)

        def came(expected: np.float32 = expected) -> bool:
            ip.read(0x00)  # a program polls; time on the PL passes
            c.invalidate()
            return bool((np.array(c).view("f4") == expected).all())

        eventually(came)
        seen.append(np.array(c).tobytes())
    ip.write(0x00, 0)
    eventually(lambda: ip.read(0x00) & 0x85 == 4)
    return b"".join(seen)


# ---- scale_stream ----------------------------------------------------------------------------


def _packet(overlay: Any, bits: np.ndarray, nbytes: int | None = None) -> bytes:
    """Send one packet through upstream DMA and return what came back."""
    dma, ip = overlay.axi_dma_0, overlay.scale_stream_0
    sent, received = allocate(len(bits), "u4"), allocate(len(bits), "u4")
    sent[:] = bits
    received[:] = 0xDEADBEEF
    dma.recvchannel.transfer(received)
    dma.sendchannel.transfer(sent, nbytes=nbytes or 0)
    dma.sendchannel.wait()
    dma.recvchannel.wait()
    count = int(ip.read(0x10))
    words = (dma.recvchannel.transferred, count)
    return np.array(received).tobytes() + str(words).encode()


def _arguments(ip: Any, gain: float, offset: float) -> None:
    ip.write(0x18, int(np.float32(gain).view("u4")))
    ip.write(0x20, int(np.float32(offset).view("u4")))


def _stream_packets(overlay: Any) -> bytes:
    """Packets of many lengths, of every kind of number, one of them with half a word at its end."""
    rng = np.random.default_rng(5)
    ip = overlay.scale_stream_0
    seen = []
    pairs = ((1.1, -0.3), (0.0, 7.5), (-1e-30, 1e-42), (3e38, -np.inf), (np.inf, 1.0))
    for n, (gain, offset) in zip((1, 2, 17, 1000, 4099), pairs, strict=True):
        _arguments(ip, gain, offset)
        start(ip)
        seen.append(_packet(overlay, _bits(rng, n, 0.1)))
        wait_done(ip)
    start(ip)
    seen.append(_packet(overlay, _bits(rng, 9, 0), nbytes=34))
    wait_done(ip)
    return b"".join(seen)


def _stream_restarts(overlay: Any) -> bytes:
    """Auto-restart: packet after packet with one start."""
    rng = np.random.default_rng(6)
    ip = overlay.scale_stream_0
    _arguments(ip, -2.5, 3.0)
    ip.write(0x00, 0x81)
    seen = []
    for n in (5, 1, 400):
        seen.append(_packet(overlay, _bits(rng, n, 0))[: 4 * n])
        wait_done(ip)
    return b"".join(seen)


def _stream_reset(overlay: Any) -> bytes:
    """A reset while the unit waits for data; then a packet as if nothing had been."""
    ip = overlay.scale_stream_0
    start(ip)
    assert ip.read(0x00) & 1
    pynq_torch.current_board().cus["scale_stream_0"].reset()
    assert ip.read(0x00) == 4
    _arguments(ip, 1.5, 0.25)
    start(ip)
    got = _packet(overlay, _bits(np.random.default_rng(8), 777, 0.1))
    wait_done(ip)
    return got


# ---- gemm ------------------------------------------------------------------------------------

_MODES = (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14)


class _Matrices:
    """Buffers for one shape: operands anywhere in memory, rows apart, a pattern in c."""

    def __init__(self, rng: np.random.Generator, m: int, n: int, k: int, mode: int) -> None:
        self.shape, self.mode = (m, n, k), mode
        self.lda, self.ldb = k + int(rng.integers(0, 9)), n + int(rng.integers(0, 9))
        int8 = mode & 3 == 1
        self.ldc = (n + 3) // 4 * 4 + 4 * int(rng.integers(0, 3)) if int8 else n + 3
        self.at_a, self.at_b = (int(i) for i in rng.integers(0, 9, 2))
        self.a, self.b = allocate(m * self.lda + 16, "i1"), allocate(k * self.ldb + 16, "i1")
        self.c, self.bias, self.scale = (
            allocate(m * self.ldc, "u4"),
            allocate(n, "u4"),
            allocate(n, "u4"),
        )
        self.a[:] = rng.integers(-128, 128, self.a.size)
        self.b[:] = rng.integers(-128, 128, self.b.size)
        self.c[:] = 0xDEADBEEF
        self.bias[:] = rng.integers(0, 2**32, n, "u4")
        if mode & 3 == 2:
            self.bias[:] = _bits(rng, n, 0)
        near = rng.choice(np.array([0.5, -0.25, 2.0**-9, 3e-3, 0.0, 1.0], "f4"), n).view("u4")
        self.scale[:] = np.where(rng.random(n) < 0.7, near, _bits(rng, n, 0.1))
        for buffer in (self.a, self.b, self.c, self.bias, self.scale):
            buffer.flush()

    def write(self, ip: Any) -> None:
        m, n, k = self.shape
        pointers = {
            0x10: self.a.physical_address + self.at_a,
            0x1C: self.b.physical_address + self.at_b,
            0x28: self.c.physical_address,
            0x64: self.bias.physical_address,
            0x70: self.scale.physical_address,
        }
        for offset, address in pointers.items():
            ip.write(offset, address)
        values = (m, n, k, self.lda, self.ldb, self.ldc)
        for i, value in enumerate(values):
            ip.write(0x34 + 8 * i, value)
        ip.write(0x7C, self.mode)

    def result(self) -> bytes:
        """Return c. What is no number is so in both; which of its bits are set differs."""
        self.c.invalidate()
        words = np.array(self.c)
        if self.mode & 3 == 2:
            words[np.isnan(words.view("f4"))] = 0x7FC00000
        return words.tobytes()


def _gemm_modes(overlay: Any) -> bytes:
    """Every mode, odd sizes, odd addresses and strides, starts back to back."""
    rng = np.random.default_rng(11)
    ip = overlay.gemm_0
    shapes = [(1, 1, 1), (3, 5, 7), (17, 33, 65), (16, 32, 64), (50, 70, 131), (5, 290, 9)]
    shapes += [(270, 6, 20), (9, 9, 0), (33, 8, 300), (2, 64, 1024), (64, 2, 17), (31, 63, 127)]
    seen = []
    for mode, (m, n, k) in zip(_MODES, shapes, strict=True):
        for each in (mode, int(rng.choice(_MODES))):
            matrices = _Matrices(rng, m, n, k, each)
            matrices.write(ip)
            start(ip)
            wait_done(ip)
            seen.append(matrices.result())
    return b"".join(seen)


def _gemm_reset(overlay: Any) -> bytes:
    """A reset in the middle of a run, and another one right after a start."""
    rng = np.random.default_rng(12)
    ip, unit = overlay.gemm_0, pynq_torch.current_board().cus["gemm_0"]
    for _ in range(2):
        long = _Matrices(rng, 300, 300, 300, 0)
        long.write(ip)
        start(ip)
        with _bursts_dropped():
            unit.reset()
        assert ip.read(0x00) == 4, "a reset unit is idle"
    matrices = _Matrices(rng, 40, 50, 60, 13)
    matrices.write(ip)
    start(ip)
    wait_done(ip)
    return matrices.result()


def _gemm_restarts(overlay: Any) -> bytes:
    """Auto-restart multiplies again when an operand has changed."""
    rng = np.random.default_rng(13)
    ip = overlay.gemm_0
    matrices = _Matrices(rng, 12, 20, 30, 4)
    matrices.write(ip)
    ip.write(0x00, 0x81)
    seen = []
    for value in (1, -7):
        matrices.a[:] = value
        matrices.a.flush()
        k, n = 30, 20
        b = np.array(matrices.b)[matrices.at_b :][: k * matrices.ldb].reshape(k, -1)[:, :n]
        bias = np.array(matrices.bias).view("i4")
        expected = value * b.astype("i4").sum(0, dtype="i4") + bias

        def came(expected: np.ndarray = expected) -> bool:
            ip.read(0x00)
            matrices.c.invalidate()
            rows = np.array(matrices.c).view("i4").reshape(12, -1)[:, :20]
            return bool((rows == expected).all())

        eventually(came)
        seen.append(matrices.result())
    ip.write(0x00, 0)
    eventually(lambda: ip.read(0x00) & 0x85 == 4)
    return b"".join(seen)


PROGRAMS = {
    "vadd_sizes": ("vadd", _vadd_sizes),
    "vadd_in_place": ("vadd", _vadd_in_place),
    "vadd_reset": ("vadd", _vadd_reset),
    "vadd_restarts": ("vadd", _vadd_restarts),
    "stream_packets": ("stream", _stream_packets),
    "stream_restarts": ("stream", _stream_restarts),
    "stream_reset": ("stream", _stream_reset),
    "gemm_modes": ("gemm", _gemm_modes),
    "gemm_reset": ("gemm", _gemm_reset),
    "gemm_restarts": ("gemm", _gemm_restarts),
}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_csim_and_rtl_give_the_same_bits(program: str) -> None:
    bitstream, run = PROGRAMS[program]
    expected = _on("csim", bitstream, run)
    assert expected
    for name, options in _RTL.items():
        assert _on("rtl", bitstream, run, **options) == expected, name
