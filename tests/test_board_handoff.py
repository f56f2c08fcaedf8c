"""A damaged hardware handoff is refused before anything of the board changes."""

from __future__ import annotations

import dataclasses
import random
import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.board.bus import Bus
from pynq_torch.board.handoff import IpInstance, read_handoff
from pynq_torch.board.handoff_ports import HandoffBus, buses_of, constants_of, ports_of
from pynq_torch.errors import BitstreamWarning, BusError, HandoffError

BITSTREAMS = Path(__file__).resolve().parents[1] / "bitstreams"


@pytest.fixture(scope="module")
def board():
    yield pynq_torch.use_board("csim")
    pynq_torch.current_board().close()


@pytest.fixture
def loaded(board):
    """Return an overlay with a value in a register and a buffer in memory."""
    overlay = Overlay(str(BITSTREAMS / "vadd" / "vadd.bit"))
    overlay.vadd_0.write(0x10, 77)
    return overlay


def write(folder, text, name="vadd"):
    """Write a bitstream with this handoff; return its path."""
    bit = folder / f"{name}.bit"
    bit.write_bytes((BITSTREAMS / name / f"{name}.bit").read_bytes())
    bit.with_suffix(".hwh").write_text(text)
    return bit


def handoff(name="vadd"):
    return (BITSTREAMS / name / f"{name}.hwh").read_text()


def ranged(base, high):
    """Return the handoff of vadd with another address range for its kernel."""

    def changed(match):
        row = match[0]
        for name, value in (("BASEVALUE", base), ("HIGHVALUE", high)):
            row = re.sub(f'{name}="[^"]*"', "" if value is None else f'{name}="{value}"', row)
        return row

    text, count = re.subn(r'<MEMRANGE [^>]*INSTANCE="vadd_0"[^>]*>', changed, handoff())
    assert count == 1
    return text


@pytest.mark.parametrize(
    "base, high, says",
    [
        ("0x4000FFFF", "0x40000000", r"0x4000FFFF to 0x40000000; expected an end behind the start"),
        ("-0x40000000", "0x4000FFFF", "expected a range within 0x40000000 to 0xbfffffff"),
        ("0x00000000", "0xFFFFFFFF", "expected a range within"),
        ("0x40000000", "0xFFFFFFFFFFFFFFFF", "expected a range within"),
        ("0x140000000", "0x14000FFFF", "expected a range within"),
        ("0xF8000000", "0xF8000FFF", "expected a range within"),  # the PS's own registers
        ("0x1F000000", "0x1F00FFFF", "expected a range within"),  # DDR
        ("abc xyz", "0x4000FFFF", "expected two hexadecimal numbers"),
        ("0x40000000", "", "to nothing; expected two hexadecimal"),
        ("0x40000000", None, "to nothing; expected two hexadecimal"),
        (None, "0x4000FFFF", "range nothing to 0x4000FFFF; expected two hexadecimal"),
        ("0x40000001", "0x40010000", "begin on a multiple of 4096 bytes"),
        ("0x40000080", "0x4001007F", "begin on a multiple of 4096 bytes"),
        ("0x40000000", "0x40000000", "expected whole 32-bit words"),
    ],
)
def test_a_damaged_address_range(board, loaded, tmp_path, base, high, says):
    used, stamp = board.memory.used_bytes, board.timestamp
    with pytest.raises(
        HandoffError, match=rf"(?s)vadd.hwh is damaged: vadd_0.s_axi_control.*{says}"
    ):
        Overlay(str(write(tmp_path, ranged(base, high))))
    assert board.timestamp == stamp and loaded.is_loaded() and board.memory.used_bytes == used
    assert loaded.vadd_0.read(0x10) == 77 and list(board.cus) == ["vadd_0"]
    assert Overlay(str(write(tmp_path, handoff()))).vadd_0.read(0x10) == 0


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda image: b"", "no .bit: it begins with nothing"),
        (lambda image: b"version https://git-lfs", "no .bit: it begins with 76 65 72"),
        (lambda image: image[:90], "damaged .bit: it ends after 90 bytes"),
        (lambda image: image[:-4], "damaged .bit: its header says 153 bytes, the file has 149"),
        (lambda image: image.replace(b"7z020", b"7z010"), "a .bit for the part 7z010clg400"),
    ],
)
def test_a_bit_that_a_board_would_refuse(board, tmp_path, damage, says):
    bit = write(tmp_path, handoff())
    bit.write_bytes(damage(bit.read_bytes()))
    with pytest.warns(BitstreamWarning, match=rf"vadd\.bit: {re.escape(says)}"):
        assert Overlay(str(bit)).vadd_0.read(0x00) == 4


def test_a_handoff_in_place_of_the_bit(board, tmp_path):
    with pytest.warns(BitstreamWarning, match=r"vadd\.hwh: no \.bit"):
        Overlay(str(write(tmp_path, handoff()).with_suffix(".hwh")))


def test_a_name_without_end(board, tmp_path):
    name = "v" * 5000
    overlay = Overlay(str(write(tmp_path, handoff().replace("vadd_0", name))))
    assert getattr(overlay, name).read(0x00) == 4


@pytest.mark.parametrize("width", [7, 27])
def test_a_length_register_that_no_dma_has(board, tmp_path, width):
    text, count = re.subn(
        r'(?i)(NAME="c_sg_length_width" VALUE=")\d+', rf"\g<1>{width}", handoff("stream")
    )
    assert count
    with pytest.raises(HandoffError, match=f"C_SG_LENGTH_WIDTH .* is {width}, expected 8 to 26"):
        Overlay(str(write(tmp_path, text, "stream")))


@pytest.mark.parametrize("shift", [0, 0x8000])
def test_two_ips_at_one_address(board, loaded, tmp_path, shift):
    text = handoff("gemm")
    assert 'BASEVALUE="0x40010000"' in text
    text = text.replace('"0x40010000"', f'"0x{0x40000000 + shift:08X}"')
    text = text.replace('"0x4001FFFF"', f'"0x{0x4000FFFF + shift:08X}"')
    with pytest.raises(HandoffError) as caught:
        Overlay(str(write(tmp_path, text, "gemm")))
    assert str(caught.value).startswith(
        f"gemm.hwh: two IPs answer at 0x{0x40000000 + shift:08x}: gemm_0.s_axi_control "
        f"(0x40000000-0x4000ffff) and axi_intc_0.S_AXI (0x{0x40000000 + shift:08x}-"
    )
    assert loaded.vadd_0.read(0x10) == 77


def test_an_ip_inside_the_range_of_one_that_begins_earlier(tmp_path):
    text = handoff("gemm").replace('"0x4000FFFF"', '"0x7FFFFFFF"')
    with pytest.raises(HandoffError, match=r"two IPs answer at 0x40010000: gemm_0.*axi_intc_0"):
        read_handoff(write(tmp_path, text, "gemm").with_suffix(".hwh"))


def test_a_slave_that_is_listed_twice_is_one(tmp_path):
    text = handoff()
    row = re.search(r' *<MEMRANGE [^>]*INSTANCE="vadd_0"[^>]*>\n', text)[0]
    twice = row + row.replace("M_AXI_GP0", "M_AXI_GP1") + row.replace('"Reg"', '"Mem0"')
    own = row.replace('"vadd_0"', '"processing_system7_0"').replace("0x4000", "0x0000")
    found = read_handoff(write(tmp_path, text.replace(row, twice + own)).with_suffix(".hwh"))
    assert {s.base for s in found.ips["vadd_0"].slaves} == {0x40000000}
    assert not found.ips["processing_system7_0"].slaves


def test_small_ranges_share_a_page(ip_models):
    bus, first, second = ip_models
    bus.attach(0x40000000, 0x80, first, "", "first")
    bus.attach(0x40000080, 0x80, second, "", "second")
    bus.write(0x40000004, 1)
    bus.write(0x40000084, 2)
    assert first.words == {4: 1} and second.words == {4: 2}
    with pytest.raises(BusError, match="no IP answers at physical address 0x40000100"):
        bus.read(0x40000100)
    bus.clear()
    with pytest.raises(BusError):
        bus.read(0x40000004)


@pytest.fixture
def ip_models():
    from test_board_bus import Recorder

    return Bus(), Recorder(), Recorder()


AXIS = 'VLNV="xilinx.com:interface:axis:1.0"'


def described(folder, *modules, version="2022.1"):
    """Return the handoff of a design with these modules, written as Vivado writes them.

    A module is (kind, name, parameters, ports as attributes, streams as attributes and bytes).
    """
    rows = []
    for kind, name, parameters, ports, streams in (PROCESSOR, *modules):
        rows.append(
            f'<MODULE INSTANCE="{name}" FULLNAME="/{name}" MODTYPE="{kind}" VLNV="v:l:{kind}:1.0">'
        )
        rows += ["<PARAMETERS>"]
        rows += [f'<PARAMETER NAME="{n}" VALUE="{v}"/>' for n, v in parameters.items()]
        rows += ["</PARAMETERS><PORTS>", *(f"<PORT {port}/>" for port in ports)]
        rows += ["</PORTS><BUSINTERFACES>"]
        for attributes, nbytes in streams:
            rows.append(
                f'<BUSINTERFACE {AXIS} {attributes}><PARAMETER NAME="TDATA_NUM_BYTES" '
                f'VALUE="{nbytes}"/></BUSINTERFACE>'
            )
        rows += ["</BUSINTERFACES></MODULE>"]
    path = folder / "described.hwh"
    path.write_text(
        f'<EDKSYSTEM VIVADOVERSION="{version}"><SYSTEMINFO DEVICE="7z020" PACKAGE="clg400"/>'
        f"<MODULES>{''.join(rows)}</MODULES></EDKSYSTEM>"
    )
    return read_handoff(path)


PROCESSOR = ("processing_system7", "ps", {}, ['NAME="IRQ_F2P" SIGNAME="all"'], [])


def test_interrupts_through_concats_in_a_row(tmp_path):
    def irq(name, net):
        return (
            *("unit", name, {}),
            [
                f'NAME="irq" DIR="O" SIGIS="INTERRUPT" SIGNAME="{net}"',
                f'NAME="given" DIR="I" SIGIS="INTERRUPT" SIGNAME="{net}"',
                'NAME="open" DIR="O" SIGIS="INTERRUPT" SIGNAME=""',
                f'NAME="data" DIR="O" SIGIS="data" SIGNAME="{net}"',
            ],
            [],
        )

    inner = [
        *(f'NAME="In{i}" DIR="I" SIGNAME="n{i}"' for i in range(2)),
        'NAME="dout" DIR="O" SIGNAME="both" SIGIS="INTERRUPT"',
    ]
    outer = [
        'NAME="In0" DIR="I" SIGNAME="three" LEFT="4" RIGHT="2"',
        'NAME="In1" DIR="I" SIGNAME="both" LEFT="1" RIGHT="0"',
        'NAME="In2" DIR="I" SIGNAME="n2" LEFT="" RIGHT=""',
        'NAME="In4" DIR="I" SIGNAME="ctl"',
        'NAME="dout" DIR="O" SIGNAME="all"',
    ]
    loop = ['NAME="in0" DIR="I" SIGNAME="round"', 'NAME="dout" DIR="O" SIGNAME="round"']
    intc = [
        'NAME="intr" DIR="I" SIGNAME="n1"',
        'NAME="irq" DIR="O" SIGNAME="ctl"',  # Vivado gives it no SIGIS in some releases
    ]
    found = described(
        tmp_path,
        *(irq(f"u{i}", f"n{i}") for i in range(3)),
        ("xlconcat", "inner", {}, inner, []),
        ("ilconcat", "outer", {}, outer, []),
        ("xlconcat", "loop", {}, loop, []),
        irq("u3", "round"),
        ("axi_intc", "intc", {}, intc, []),
    )
    nets = {(net.ip, net.pin, net.target, net.index) for net in found.interrupts}
    assert nets == {
        *(("u0", "irq", "", 3), ("u1", "irq", "", 4), ("u2", "irq", "", 5)),
        *(("u1", "irq", "intc", 0), ("intc", "irq", "", 7)),
    }
    assert len(found.interrupts) == len(nets)
    assert found.ips["u0"].interrupt_pins == ("irq", "open")


def test_streams_through_what_only_passes_them_on(tmp_path):
    def stream(name, bus, kind):
        return f'NAME="{name}" BUSNAME="{bus}" TYPE="{kind}"'

    def through(kind, name, taken, given, **parameters):
        ports = [(stream("S_AXIS", taken, "TARGET"), 4), (stream("M_AXIS", given, "INITIATOR"), 4)]
        return kind, name, parameters, [], ports

    open_ports = [(stream(n, "__NOC__", k), 2) for n, k in (("o", "MASTER"), ("i", "SLAVE"))]
    found = described(
        tmp_path,
        ("a", "a", {}, [], [(stream("out", "s0", "MASTER"), 4), (stream("m", "s0", "MONITOR"), 4)]),
        through("axis_data_fifo", "fifo", "s0", "s1", FIFO_DEPTH="64"),
        through("axis_register_slice", "slice", "s1", "s2", FIFO_DEPTH="deep"),
        through("axis_data_fifo", "old", "s2", "s3", C_FIFO_DEPTH="8"),
        ("b", "b", {}, [], [(stream("in", "s3", "SLAVE"), 8), *open_ports]),
        ("c", "c", {}, [], [(stream("out", "r0", "INITIATOR"), 1)]),
        through("axis_data_fifo", "round", "r0", "r0"),  # nothing ever comes out of it
    )
    shown = [
        (str(x.source), str(x.sink), x.data_bytes, x.sink_bytes, x.depth, x.through)
        for x in found.links
    ]
    assert shown == [
        ("a.out", "b.in", 4, 8, 16 + 64 + 2 + 8, ("fifo", "slice", "old")),
        ("b.o", "None", 2, 2, 16, ()),
        ("c.out", "round.S_AXIS", 1, 4, 16 + 2, ("round",)),
    ]
    assert found.ips["a"].stream_ports == {"out": (True, 4)}
    assert found.ips["b"].stream_ports == {"in": (False, 8), "o": (True, 2), "i": (False, 2)}


def test_what_an_ip_is(tmp_path):
    clocks = ['NAME="clk" SIGIS="clk" SIGNAME="ps_FCLK_CLK2"', 'NAME="c" SIGIS="clk" SIGNAME="x"']
    no_clock = ['NAME="d" SIGIS="data" SIGNAME="ps_FCLK_CLK3"', 'NAME="c" SIGIS="clk" SIGNAME="x"']
    modules = [("a", "a", {"P": "1"}, clocks, []), ("b", "b", {}, no_clock, [])]
    found = described(tmp_path, *modules)
    assert (found.ips["a"].clock, found.ips["b"].clock) == ("FCLK_CLK2", "FCLK_CLK0")
    assert (found.device, found.package, found.tool_version) == ("7z020", "clg400", "2022.1")
    assert (found.ips["a"].vlnv_name, found.ips["a"].parameters) == ("a", {"P": "1"})
    tools = {"2019.2": "vivado", "2020.1": "vivado", "2020.2": "vitis", "2021.1": "vitis"}
    for version, tool in (tools | {"": "vitis", "2020.2.1": "vitis"}).items():
        assert described(tmp_path, version=version).hls_tool == tool
    kinds = {
        "xilinx.com:hls:gemm:1.0": ("gemm", True),
        "xilinx.com:ip:axi_dma:7.1": ("axi_dma", False),
        "xilinx.com:module_ref:top:1.0": ("top", True),
        "XILINX.COM:user:mine:1.0": ("mine", True),
        "me.org:ip:mine:1.0": ("mine", True),
        "a:b:c": ("a:b:c", True),
    }
    for vlnv, (name, kernel) in kinds.items():
        ip = IpInstance("ip", vlnv)
        assert (ip.vlnv_name, ip.is_kernel) == (name, kernel)


def test_the_ports_of_an_ip():
    """Expected: Vivado writes LEFT and RIGHT of vectors alone, and parameters by name where set."""

    def bus(name, kind, attributes, parameter=""):
        return f'<BUSINTERFACE NAME="{name}" VLNV="xilinx.com:{kind}" {attributes}>{parameter}</B>'

    nbytes = '<PARAMETER NAME="{}" VALUE="8"/><PORTMAPS><PORTMAP LOGICAL="L" PHYSICAL="P"/>'
    axis, aximm = "interface:axis:1.0", "interface:aximm:1.0"
    text = "".join(
        (
            '<MODULE MODTYPE="xlconstant"><PARAMETERS><PARAMETER NAME="CONST_VAL" VALUE="5"/>',
            '<PARAMETER NAME="CONST_WIDTH" VALUE="3"/></PARAMETERS><PORTS>',
            '<PORT NAME="clk" DIR="I" SIGIS="clk" SIGNAME=""/>',
            '<PORT NAME="low" DIR="I" SIGIS="rst" POLARITY="ACTIVE_LOW" SIGNAME="n"/>',
            '<PORT NAME="high" DIR="O" POLARITY="ACTIVE_HIGH" LEFT="31" RIGHT="0" SIGNAME="m"/>',
            '<PORT NAME="up" DIR="IO" LEFT="2" RIGHT="4"/>',
            '<PORT NAME="left" LEFT="2" RIGHT=""/><PORT NAME="right" LEFT="N-1" RIGHT="0"/>',
            "</PORTS><BUSINTERFACES>",
            bus("m", aximm, 'TYPE="MASTER" DATAWIDTH="64" BUSNAME="net"', nbytes.format("NUM")),
            bus("i", aximm, 'TYPE="INITIATOR" DATAWIDTH="W" BUSNAME="__NOC__"'),
            bus("s", axis, 'TYPE="SLAVE" DATAWIDTH="64"', nbytes.format("TDATA_NUM_BYTES")),
            bus("t", axis, 'TYPE="TARGET" BUSNAME="net"', nbytes.format("TUSER_WIDTH")),
            bus("watches", axis, 'TYPE="MONITOR"')
            + bus("other", "signal:clock:1.0", "TYPE='SLAVE'"),
            "</BUSINTERFACES></MODULE>",
        )
    )
    text = re.sub("(<PORTMAPS>.*?)</B>", r"\1</PORTMAPS></B>", text).replace(
        "</B>", "</BUSINTERFACE>"
    )
    module = ET.fromstring(text)
    other = ET.fromstring(text.replace("xlconstant", "other").replace('SIGNAME="n"', 'SIGNAME="o"'))
    constants = constants_of([module, other])
    assert constants == {"n": 5, "m": 5}  # a port that is connected to nothing gets no value
    shown = [dataclasses.astuple(port) for port in ports_of(module, constants)]
    assert shown == [
        ("clk", "I", None, "clk", None, None, ""),
        ("low", "I", None, "rst", True, 5, "n"),
        ("high", "O", 32, "", False, 5, "m"),
        ("up", "IO", 3, "", None, None, ""),
        ("left", "", None, "", None, None, ""),
        ("right", "", None, "", None, None, ""),
    ]
    shown = [dataclasses.astuple(bus) for bus in buses_of(module)]
    assert shown == [
        ("m", "aximm", True, 8, {"L": "P"}, True, "net"),
        ("i", "aximm", True, None, {}, False, ""),
        ("s", "axis", False, 8, {"L": "P"}, False, ""),
        ("t", "axis", False, None, {"L": "P"}, True, "net"),
    ]
    assert HandoffBus("m", "aximm", True, 4).connected


_VALUES = ("", "-1", "0x", "0xFFFFFFFF", "0x1FFFFFFFF", "9" * 30, "abc", "0x40000001", "0", "1e9")


@pytest.mark.parametrize("seed", range(12))
def test_damage_anywhere_ends_in_an_overlay_or_a_handoff_error(board, loaded, tmp_path, seed):
    chance = random.Random(seed)
    buffer = allocate(16)
    for _ in range(4):
        tree = ET.ElementTree(ET.fromstring(handoff()))
        rows = [row for row in tree.iter("MEMRANGE" if seed % 2 else None) if row.attrib]
        row = chance.choice(rows)
        name = chance.choice(list(row.attrib))
        row.set(name, chance.choice(_VALUES))
        before = board.timestamp
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                Overlay(str(write(tmp_path, ET.tostring(tree.getroot(), "unicode"))))
            except pynq_torch.errors.PynqTorchError:
                assert board.timestamp == before and board.bus.regions
        assert buffer.physical_address and board.memory.buffers() == [buffer.bo]
    assert Overlay(str(write(tmp_path, handoff()))).vadd_0.read(0x10) == 0
