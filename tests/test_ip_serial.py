"""AXI UART Lite (PG142), AXI Quad SPI (PG153) and AXI IIC (PG090): registers and loopbacks."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pynq
import pytest
from ip_handoff import _VERSIONS, Ip, write_design

from pynq_torch.board import use_board
from pynq_torch.errors import BoardHang, NotModelledWarning, RegisterMisuse

# pynq's driver of the AXI IIC needs a library of the board's image; its registers do not.
pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:IP port is of type xilinx.com.ip.axi_iic:UserWarning"),
]
_IRQ = {"axi_uartlite": "interrupt", "axi_quad_spi": "ip2intc_irpt", "axi_iic": "iic2intc_irpt"}
GIE, ISR, IER = 0x1C, 0x20, 0x28
SPICR, SPISR, DTR, DRR, SSR, TX_COUNT, RX_COUNT = 0x60, 0x64, 0x68, 0x6C, 0x70, 0x74, 0x78
CR, SR, TX, RX, RX_LIMIT = 0x100, 0x104, 0x108, 0x10C, 0x120

Load = Callable[..., Any]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    board = use_board("csim", hang_timeout_s=0.3)

    def loads(kind: str, pins: Any = None, **parameters: Any) -> Any:
        ip = Ip(f"axi_{kind}", "port", 0x42C00000, parameters, pins=pins or {})
        bit = write_design(tmp_path, "serial", [ip], None, [f"port/{_IRQ[ip.kind]}"])
        return pynq.Overlay(str(bit)).port

    yield loads
    board.close()


def model() -> Any:
    return pynq.Device.active_device.ip["port"]


def interrupted(port: Any, action: Callable[[], object]) -> None:
    """Check that `action` ends a wait for the port's interrupt."""

    async def run() -> None:
        (name,) = port._interrupts
        waiting = asyncio.ensure_future(getattr(port, name).wait())
        await asyncio.sleep(0.02)
        assert not waiting.done()
        action()
        await asyncio.wait_for(waiting, 5)

    asyncio.get_event_loop().run_until_complete(run())


def said(category: type[Warning], text: str, action: Callable[[], object]) -> None:
    """Check that what is done twice is warned of once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
        action()
    assert [w.category for w in caught] == [category]
    assert str(caught[0].message).startswith("port: ") and text in str(caught[0].message)


# ---- UART ----------------------------------------------------------------------------------------


def test_uart_bytes_come_back(load: Load) -> None:
    uart = load("uartlite", C_DATA_BITS=7)
    assert [uart.read(r) for r in (0x8, 0x4, 0xC)] == [0x04, 0, 0]
    for byte in b"hi\xff":
        uart.write(0x4, byte)
    assert uart.read(0x8) == 0x05
    assert [uart.read(0x0) for _ in range(3)] == [0x68, 0x69, 0x7F]
    assert uart.read(0x8) == 0x04
    for byte in range(17):
        uart.write(0x4, byte)
    assert [uart.read(0x8), uart.read(0x8)] == [0x27, 0x07]  # a read clears the overrun
    uart.write(0xC, 0x01)  # resets the transmit FIFO only
    assert [uart.read(0x0) for _ in range(16)] == list(range(16))
    uart.write(0x4, 1)
    uart.write(0xC, 0x02)
    assert uart.read(0x8) == 0x04
    said(RegisterMisuse, "RX_FIFO was read while it is empty", lambda: uart.read(0x0))
    with pytest.raises(BoardHang, match="port: no byte waits in RX_FIFO"):
        while not uart.read(0x8) & 1:
            pass


def test_uart_interrupt_and_a_device(load: Load) -> None:
    uart = load("uartlite")
    model().device = lambda byte: bytes([byte + 1, byte + 2])
    uart.write(0x4, 4)
    assert [uart.read(0x0), uart.read(0x0)] == [5, 6]
    uart.write(0xC, 0x10)
    assert uart.read(0x8) == 0x14
    interrupted(uart, lambda: model().receive(b"x"))
    assert uart.read(0x0) == ord("x")
    interrupted(uart, lambda: uart.write(0x4, 1))
    assert not model().irq("interrupt")


# ---- SPI -----------------------------------------------------------------------------------------


def test_spi_after_configuration(load: Load) -> None:
    spi = load("quad_spi", C_NUM_SS_BITS=2)
    for _ in range(2):
        shown = [spi.read(r) for r in (SPICR, SPISR, SSR, TX_COUNT, RX_COUNT, GIE, ISR, IER, DTR)]
        assert shown == [0x180, 0xA5, 0x3, 0, 0, 0, 0, 0, 0]
        for register in (SPICR, SPISR, SSR, GIE, IER, ISR):
            spi.write(register, 0xFFFFFFFF)
        assert [spi.read(r) for r in (SPICR, SPISR, SSR)] == [0x39F, 0xA5, 0x3]
        assert [spi.read(r) for r in (GIE, IER, ISR)] == [1 << 31, 0x3FFF, 0x3FFF]
        spi.write(SSR, 0xFFFFFFFE)
        assert spi.read(SSR) == 0x2
        spi.write(0x40, 0xA)


def test_spi_loopback(load: Load) -> None:
    spi = load("quad_spi", C_NUM_TRANSFER_BITS=16)
    spi.write(SPICR, 0x107)  # inhibited
    for word in range(16):
        assert spi.read(SPISR) & 8 == 0
        spi.write(DTR, 0x12340 + word)
    assert (spi.read(SPISR), spi.read(TX_COUNT), spi.read(RX_COUNT)) == (0xA9, 15, 0)
    said(RegisterMisuse, "SPIDTR while its 16 words are full", lambda: spi.write(DTR, 1))
    with pytest.raises(
        BoardHang, match="16 words wait in SPIDTR: in SPICR, Master_Inhibit has to be 0"
    ):
        while not spi.read(SPISR) & 4:
            pass
    spi.write(SPICR, 0x7)
    assert (spi.read(SPISR), spi.read(TX_COUNT), spi.read(RX_COUNT)) == (0xA6, 0, 15)
    assert spi.read(ISR) == 0x154
    spi.write(DTR, 1)
    assert spi.read(ISR) == 0x174  # an overrun
    spi.write(ISR, 0x174)  # toggles
    assert spi.read(ISR) == 0
    assert [spi.read(DRR) for _ in range(16)] == [0x2340 + word for word in range(16)]
    said(RegisterMisuse, "SPIDRR was read while it is empty", lambda: spi.read(DRR))
    spi.write(SPICR, 0x107)
    spi.write(DTR, 1)
    spi.write(SPICR, 0x127)
    assert (spi.read(SPISR), spi.read(SPICR)) == (0xA5, 0x107)


def test_spi_pins(load: Load) -> None:
    spi = load("quad_spi")
    spi.write(SPICR, 0x6)
    said(NotModelledWarning, "nothing is at its SPI pins", lambda: spi.write(DTR, 5))
    assert [spi.read(DRR), spi.read(DRR)] == [0, 0]
    model().device = lambda word, select: word + select
    spi.write(SSR, 0)
    spi.write(DTR, 5)
    assert spi.read(DRR) == 5
    tied = load("quad_spi", {"io0_o": ("O", "wire", 1), "io1_i": ("I", "wire", 1)}, C_FIFO_DEPTH=0)
    tied.write(SPICR, 0x6)
    tied.write(DTR, 0x77)
    assert (tied.read(DRR), tied.read(SPISR), tied.read(ISR)) == (0x77, 0xA5, 0x14)


def test_spi_interrupt(load: Load) -> None:
    spi = load("quad_spi")
    spi.write(SPICR, 0x7)
    spi.write(IER, 1 << 8)
    spi.write(GIE, 1 << 31)
    interrupted(spi, lambda: spi.write(DTR, 3))
    assert model().irq("ip2intc_irpt")
    spi.write(ISR, 1 << 8)
    assert not model().irq("ip2intc_irpt")
    with pytest.raises(BoardHang, match="no word waits in SPIDTR"):
        while spi.read(SPISR):
            pass


# ---- IIC -----------------------------------------------------------------------------------------


def clear(iic: Any, bits: int) -> None:
    iic.write(ISR, iic.read(ISR) & bits)


def until(iic: Any, register: int, bits: int) -> int:
    while not (value := iic.read(register)) & bits:
        pass
    return int(value)


def send(iic: Any, address: int, data: bytes) -> int:
    """Write in the standard mode, in the order of the vendor's polled driver; return bytes left."""
    iic.write(TX, address << 1)
    clear(iic, 0x7)
    iic.write(CR, 0xD)
    until(iic, SR, 4)
    clear(iic, 0x10)
    for left in range(len(data), 0, -1):
        if until(iic, ISR, 0x6) & 2:
            iic.write(CR, 0)
            return left
        if left == 1:
            iic.write(CR, 0x9)
        iic.write(TX, data[-left])
        clear(iic, 0x4)
    until(iic, ISR, 0x10)
    iic.write(CR, 0)
    return 0


def receive(iic: Any, address: int, count: int) -> bytes:
    iic.write(RX_LIMIT, 0)
    iic.write(TX, address << 1 | 1)
    clear(iic, 0xA)
    iic.write(CR, 0x5 | (0x10 if count == 1 else 0))
    until(iic, SR, 4)
    clear(iic, 0x10)
    got = []
    for left in range(count, 0, -1):
        until(iic, ISR, 0x8)
        if left == 1:
            iic.write(CR, 0x1)
        elif left == 2:
            iic.write(CR, 0x15)
        got.append(iic.read(RX))
        clear(iic, 0x8)
    until(iic, ISR, 0x10)
    iic.write(CR, 0)
    return bytes(got)


def test_iic_after_configuration(load: Load) -> None:
    iic = load("iic")
    for _ in range(2):
        shown = [iic.read(r) for r in (CR, SR, ISR, IER, GIE, 0x110, 0x114, 0x118, RX_LIMIT, TX)]
        assert shown == [0, 0xC0, 0xD0, 0, 0, 0, 0, 0, 0, 0]
        for register in (SR, 0x110, 0x114, 0x118, 0x11C, RX_LIMIT, 0x124, 0x128, IER, GIE):
            iic.write(register, 0xFFFFFFFF)
        assert [iic.read(r) for r in (SR, 0x110, 0x114, 0x118)] == [0xC0, 0xFE, 0, 0]
        assert [iic.read(r) for r in (0x11C, RX_LIMIT, 0x124, 0x128)] == [7, 15, 255, 0xFFFFFFFF]
        assert (iic.read(IER), iic.read(GIE)) == (0xFF, 1 << 31)
        iic.write(0x40, 0xA)


def test_iic_nobody_answers(load: Load) -> None:
    iic = load("iic")
    assert send(iic, 0x50, b"abc") == 3
    assert iic.read(ISR) & 2 and iic.read(SR) == 0xC0
    clear(iic, 0x2)
    iic.write(CR, 0x1)
    for word in (0x100 | 0xA1, 0x204):  # dynamic: START and the address, STOP after four bytes
        iic.write(TX, word)
    assert until(iic, ISR, 0x2) & 0x12 == 0x12 and iic.read(SR) == 0xC0
    said(RegisterMisuse, "RX_FIFO was read while it is empty", lambda: iic.read(RX))


def test_iic_a_memory_standard(load: Load) -> None:
    iic = load("iic")
    memory = model().devices[0x50] = bytearray(256)
    assert send(iic, 0x50, b"\x10hello") == 0
    assert memory[0x10:0x16] == b"hello\0"
    assert send(iic, 0x50, b"\x11") == 0
    assert receive(iic, 0x50, 3) == b"ell"
    assert receive(iic, 0x50, 1) == b"o"
    assert iic.read(SR) == 0xC0


def test_iic_a_memory_dynamic(load: Load) -> None:
    iic = load("iic")
    memory = model().devices[0x50] = bytearray(range(100))
    for word in (0x1A0, 0x20, *b"wor", 0x200 | ord("d")):
        iic.write(TX, word)
    assert (iic.read(SR), iic.read(0x114)) == (0x40, 5)  # disabled
    iic.write(CR, 0x1)
    assert iic.read(SR) == 0xC0
    assert memory[0x20:0x25] == b"word\x24"
    iic.write(RX_LIMIT, 15)
    for word in (0x1A0, 0x21, 0x1A1, 0x200 | 20):
        iic.write(TX, word)
    assert iic.read(SR) == 0x20 | 0x80 | 0x4 and iic.read(0x118) == 15  # full, and still reading
    got = [iic.read(RX) for _ in range(20)]
    assert got == [*b"ord", *range(0x24, 0x24 + 17)] and iic.read(SR) == 0xC0


def test_iic_pynqs_driver(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    from pynq.lib.iic import AxiIIC

    monkeypatch.setitem(_VERSIONS, "axi_iic", "2.1")
    iic = load("iic")
    assert isinstance(iic, AxiIIC)
    with pytest.raises(RuntimeError, match="Could not send"):
        iic.send(0x50, b"ab", 2)
    with pytest.raises(RuntimeError, match="Could not receive"):
        iic.receive(0x50, bytearray(2), 2)
    memory = model().devices[0x50] = bytearray(64)
    text = bytes(range(40, 80))
    assert iic.send(0x50, b"\x05" + text, 41) == 41
    assert memory[5:45] == text
    data = iic._ffi.new("unsigned char[40]")
    assert iic.send(0x50, b"\x05", 1, iic.REPEAT_START) == 1
    with pytest.raises(RuntimeError, match="Timed out"):
        iic.wait()
    assert iic.receive(0x50, data, 40) == 40
    assert bytes(data) == text
    iic.wait()


def test_iic_interrupts_without_a_look(load: Load) -> None:
    iic = load("iic")
    model().devices[0x50] = bytearray(4)
    iic.write(CR, 0x1)
    clear(iic, 0xFF)
    iic.write(IER, 0x10)
    iic.write(GIE, 1 << 31)

    def start() -> None:
        for word in (0x1A0, 0x200):
            iic.write(TX, word)

    interrupted(iic, start)
    assert iic.read(ISR) & 0x10


def test_iic_wrong_use(load: Load) -> None:
    iic = load("iic")
    for byte in range(16):
        iic.write(TX, byte)
    assert iic.read(SR) == 0x50
    said(
        RegisterMisuse, "TX_FIFO was written while its 16 bytes are full", lambda: iic.write(TX, 1)
    )
    assert (iic.read(SR), iic.read(0x114)) == (0x50, 15)
    with pytest.raises(BoardHang, match=r"the IIC core is disabled. Set CR bit 0"):
        while not iic.read(SR) & 0x80:
            pass
    iic.write(CR, 0x2)
    assert iic.read(SR) == 0xC0
    model().devices[0] = bytearray(4)
    iic.write(TX, 0)
    iic.write(CR, 0xD)
    with pytest.raises(BoardHang, match="a transfer is open, and TX_FIFO is empty"):
        while iic.read(SR) & 4:
            pass
    iic.write(CR, 0x1)
    with pytest.raises(BoardHang, match="nothing is under way on the IIC bus"):
        while not iic.read(SR) & 4:
            pass
