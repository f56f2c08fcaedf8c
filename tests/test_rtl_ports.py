"""Ports put together to AXI interfaces, and compared with the handoff."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pynq_torch.board.handoff import HandoffBus, HandoffPort, IpInstance
from pynq_torch.board.rtl.grouping import group
from pynq_torch.board.rtl.ports import PortDecl
from pynq_torch.errors import RtlPortError

CLOCKS = [PortDecl("ap_clk", "in", 1), PortDecl("ap_rst_n", "in", 1)]


def lite(name: str = "s_axi_control") -> list[PortDecl]:
    into = {"AWADDR": 6, "AWVALID": 1, "WDATA": 32, "WSTRB": 4, "WVALID": 1, "BREADY": 1,
            "ARADDR": 6, "ARVALID": 1, "RREADY": 1}  # fmt: skip
    out = {"AWREADY": 1, "WREADY": 1, "BRESP": 2, "BVALID": 1, "ARREADY": 1, "RDATA": 32,
           "RRESP": 2, "RVALID": 1}  # fmt: skip
    return [PortDecl(f"{name}_{n}", "in", w) for n, w in into.items()] + [
        PortDecl(f"{name}_{n}", "out", w) for n, w in out.items()
    ]


def reader(name: str = "m_axi_gmem", width: int = 64) -> list[PortDecl]:
    out = {"ARADDR": 32, "ARVALID": 1, "ARLEN": 8, "ARID": 2, "RREADY": 1}
    into = {"ARREADY": 1, "RDATA": width, "RRESP": 2, "RLAST": 1, "RVALID": 1, "RID": 2}
    return [PortDecl(f"{name}_{n}", "out", w) for n, w in out.items()] + [
        PortDecl(f"{name}_{n}", "in", w) for n, w in into.items()
    ]


def stream(name: str, direction: str, width: int = 32, case: str = "upper") -> list[PortDecl]:
    back = "out" if direction == "in" else "in"
    rows = [("TDATA", direction, width), ("TVALID", direction, 1), ("TREADY", back, 1)]
    return [PortDecl(f"{name}_{getattr(n, case)()}", d, w) for n, d, w in rows]


def handoff(*buses: HandoffBus, ports=(), **fields) -> IpInstance:
    return IpInstance(
        "top_0", "xilinx.com:hls:top:1.0",
        buses={bus.name: bus for bus in buses}, ports={port.name: port for port in ports}, **fields
    )  # fmt: skip


CONTROL = HandoffBus("s_axi_control", "aximm", False, 4)
GMEM = HandoffBus("m_axi_gmem", "aximm", True, 8)


def test_names_of_an_hls_top():
    ports = [*CLOCKS, PortDecl("interrupt", "out", 1), *lite(), *reader(), *stream("in_r", "in")]
    found = group(ports)
    assert (found.clocks, found.resets) == (("ap_clk",), (("ap_rst_n", True),))
    assert found.interrupt == "interrupt"
    (slave,), (master,), (data,) = found.slaves, found.masters, found.streams
    assert (slave.name, slave.data_width, slave.address_width, slave.full) == (
        "s_axi_control", 32, 6, False,
    )  # fmt: skip
    assert (master.name, master.data_width, master.id_width) == ("m_axi_gmem", 64, 2)
    assert (master.reads, master.writes) == (True, False)
    assert master.signals["ARADDR"] == "m_axi_gmem_ARADDR"
    assert (data.name, data.direction, data.data_width) == ("in_r", "in", 32)
    assert not found.constants and not found.others


@pytest.mark.parametrize("mapped", [True, False])
def test_names_that_differ_only_in_case(mapped):
    names = ("m_axi_gmem", "m_axi_GMEM")
    ports = [*CLOCKS, *lite(), *reader(names[0]), *reader(names[1], 32)]
    buses = [
        replace(
            GMEM,
            name=name,
            data_bytes=nbytes,
            port_map={p.name.rpartition("_")[2]: p.name for p in reader(name)} if mapped else {},
        )
        for name, nbytes in zip(names, (8, 4), strict=True)
    ]
    found = group(ports, handoff(CONTROL, *buses))
    assert {m.name: (m.data_width, m.signals["ARADDR"]) for m in found.masters} == {
        "m_axi_gmem": (64, "m_axi_gmem_ARADDR"),
        "m_axi_GMEM": (32, "m_axi_GMEM_ARADDR"),
    }


def test_names_of_vivados_own_templates():
    ports = [
        PortDecl("s00_axi_aclk", "in", 1), PortDecl("s00_axi_aresetn", "in", 1),
        *[replace(port, name=port.name.lower()) for port in lite("S00_AXI")],
        *stream("m00_axis", "out", 16, "lower"),
    ]  # fmt: skip
    found = group(ports)
    assert found.resets == (("s00_axi_aresetn", True),)
    assert found.slaves[0].signals["WDATA"] == "s00_axi_wdata"
    assert (found.streams[0].direction, found.streams[0].data_width) == ("out", 16)


def test_a_reset_is_active_high_by_its_name_or_as_the_handoff_says():
    assert group([CLOCKS[0], PortDecl("reset", "in", 1), *lite()]).resets == (("reset", False),)
    ip = handoff(CONTROL, ports=[HandoffPort("clear", "I", None, "rst", True)])
    found = group([CLOCKS[0], PortDecl("clear", "in", 1), *lite()], ip)
    assert found.resets == (("clear", True),)


@pytest.mark.parametrize(
    ("name", "low"),
    [
        ("nrst", True), ("nreset", True), ("n_rst", True), ("n_reset", True), ("core_n_rst", True),
        ("i_nrst", True), ("rst_n", True), ("aresetn", True), ("ap_rst_n", True), ("NRST", True),
        ("rst", False), ("main_rst", False), ("gen_reset", False), ("ap_rst", False),
    ],
)  # fmt: skip
def test_the_level_of_a_reset_by_its_name(name, low):
    found = group([CLOCKS[0], PortDecl(name, "in", 1), *lite()])
    assert found.resets == ((name, low),)
    assert found.constants == {}


def test_portmaps_win_over_names():
    odd = [PortDecl("din", "in", 32), PortDecl("din_v", "in", 1), PortDecl("din_r", "out", 1)]
    bus = HandoffBus("S_AXIS", "axis", False, 4,
                     {"TDATA": "din", "TVALID": "din_v", "TREADY": "din_r"})  # fmt: skip
    found = group([*CLOCKS, *odd], handoff(bus))
    assert found.streams[0].name == "S_AXIS"
    assert found.streams[0].signals == {"TDATA": "din", "TVALID": "din_v", "TREADY": "din_r"}


def test_ports_of_no_interface_are_tied_as_the_design_ties_them():
    extra = [PortDecl("ap_start", "in", 1), PortDecl("gain", "in", 8), PortDecl("led", "out", 4)]
    ports = [*CLOCKS, *stream("x", "in"), *extra]
    assert group(ports).constants == {"ap_start": 1, "gain": 0}
    ip = handoff(
        HandoffBus("x", "axis", False, 4), ports=[HandoffPort("gain", "I", 8, constant=0x1F5)]
    )
    found = group(ports, ip)
    assert found.constants == {"ap_start": 1, "gain": 0xF5}
    assert found.others == ("led",)


@pytest.mark.parametrize(
    ("ports", "said"),
    [
        ([*CLOCKS, PortDecl("a", "in", 1)], "none of its ports belongs to an AXI interface; .* a"),
        (lite(), "no clock: a port called ap_clk"),
        ([*CLOCKS, PortDecl("pin", "inout", 1), *lite()], "pin is inout"),
        ([*CLOCKS, *[p for p in lite() if "WREADY" not in p.name]], "control has no AWREADY"),
        (
            [*CLOCKS, *reader(width=48)],
            "m_axi_gmem has 48 bits of data; one of 32, 64, 128, 256, 512, 1024 is expected",
        ),
        ([*CLOCKS, *stream("x", "in", 12)], "x has 12 bits of TDATA; whole bytes"),
        ([*CLOCKS, *stream("x", "in")[::2]], "x has no TVALID"),
        (
            [*CLOCKS, *stream("x", "out")[:2], PortDecl("x_TREADY", "out", 1)],
            "x_TREADY of the AXI4-Stream x is an output; an input is expected",
        ),
    ],
)
def test_ports_that_are_no_interfaces(ports, said):
    with pytest.raises(RtlPortError, match=said):
        group(ports, top="top", where="top.v")


@pytest.mark.parametrize(
    ("bus", "said"),
    [
        (HandoffBus("s_axi_regs", "aximm", False, 4),
         r"handoff has the AXI4-Lite subordinate s_axi_regs, and the module does not; it has "
         r"s_axi_control \(AXI4-Lite subordinate\), m_axi_gmem \(AXI4 manager\)"),
        (replace(CONTROL, initiator=True),
         "s_axi_control is an AXI4-Lite subordinate, and in the handoff an AXI4 manager"),
        (replace(GMEM, data_bytes=4), "m_axi_gmem has 64 bits of data, and 32 in the handoff"),
    ],
)  # fmt: skip
def test_a_mismatch_with_the_handoff_names_both(bus, said):
    buses = {CONTROL.name: CONTROL, GMEM.name: GMEM, bus.name: bus}
    with pytest.raises(RtlPortError, match=said) as caught:
        group([*CLOCKS, *lite(), *reader()], handoff(*buses.values()), top="top")
    assert caught.value.cu == "top_0"
    assert "export the RTL again, or build the overlay again" in str(caught.value)


def test_an_interface_that_the_handoff_lacks():
    with pytest.raises(RtlPortError, match=r"it has x \(AXI4-Stream input\), and the handoff does"):
        group([*CLOCKS, *lite(), *stream("x", "in")], handoff(CONTROL))


def test_a_port_of_another_width_than_in_the_handoff():
    ip = handoff(CONTROL, ports=[HandoffPort("s_axi_control_AWADDR", "I", 7)])
    with pytest.raises(RtlPortError, match="s_axi_control_AWADDR has 6 bits, and 7 in the handoff"):
        group([*CLOCKS, *lite()], ip)
