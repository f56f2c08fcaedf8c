"""A kernel's C++ that is no longer what the loaded overlay was built from."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import HW_KERNELS, interface_of, write_overlay
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch import hls
from pynq_torch.board import hls_binding
from pynq_torch.board.handoff import IpInstance, Slave, read_handoff
from pynq_torch.board.handoff_ports import HandoffBus, constants_of
from pynq_torch.board.handoff_registers import HandoffValue
from pynq_torch.board.hls_binding import Binding
from pynq_torch.board.hls_match import Derived, SlaveMatch, bus_differences
from pynq_torch.errors import InterfaceError
from pynq_torch.hls.interface import Register

pytestmark = pytest.mark.timeout(180)

MIX = """
void mix(const float *x, float *y, float alpha, float beta, unsigned n, int *last, float table[16]) {
#pragma HLS INTERFACE m_axi port=x bundle=gmem0 offset=slave
#pragma HLS INTERFACE m_axi port=y bundle=gmem1 offset=slave
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=y
#pragma HLS INTERFACE s_axilite port=alpha
#pragma HLS INTERFACE s_axilite port=beta
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=last
#pragma HLS INTERFACE s_axilite port=table
#pragma HLS INTERFACE s_axilite port=return
    for (unsigned i = 0; i < n; ++i) y[i] = alpha * x[i] + beta * y[i] + table[i % 16];
    *last = n - 1;
}
"""  # noqa: E501
EXTRA = "#pragma HLS INTERFACE s_axilite port=extra\n    if (extra) return;\n    for"
MASTER = "#pragma HLS INTERFACE m_axi port=alpha bundle=gmem2\n    for"
BITSTREAMS = HW_KERNELS.parents[1] / "bitstreams"


def _kernel(folder: Path, text: str) -> Path:
    (folder / "mix").mkdir(parents=True)
    (folder / "mix" / "mix.cpp").write_text(text)
    return folder


def _changed(*changes: tuple[str, str]) -> str:
    text = MIX
    for old, new in changes:
        assert re.search(old, text), old
        text = re.sub(old, new, text)
    return text


@pytest.fixture(scope="module")
def bit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("match")
    return write_overlay(folder, {"mix_0": "mix"}, kernels=_kernel(folder / "k", MIX))


@pytest.fixture
def check(bit, tmp_path):
    """Compare a changed source with the handoff of the unchanged one; return the remarks."""

    def compare(*changes: tuple[str, str], hwh: Path | None = None) -> list[str]:
        source = _kernel(tmp_path / "k", _changed(*changes)) / "mix" / "mix.cpp"
        handoff = read_handoff(hwh or bit.with_suffix(".hwh"))
        interface = hls.read_interface(source, "mix", tool=handoff.hls_tool)
        return Binding(handoff.ips["mix_0"], interface).check(handoff.path)

    return compare


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            [("float alpha", "double alpha")],
            r"double alpha \(64 bits at 0x28\) is alpha \(32 bits at 0x28\) in the handoff",
        ),
        ([("unsigned n", "unsigned long long n")], r"n \(64 bits at .*\) is n \(32 bits at"),
        (
            [("float alpha", "float extra, float alpha"), ("for", EXTRA)],
            r"float extra \(32 bits at 0x28\) has no register of its own in the handoff: at 0x28 "
            r"is alpha",
        ),
        (
            [("16\\]\\)", "16], int extra)"), ("for", EXTRA)],
            r"int extra \(32 bits at 0x\w+\) has no register in the handoff",
        ),
        (
            [(", float beta", ""), (".*port=beta\n", ""), ("beta", "1")],
            r"the handoff has beta \(32 bits at 0x30\), and the source has no such argument",
        ),
        (
            # A new name for the first and the old one for the second.
            [("alpha", "gain"), ("beta", "alpha")],
            r"float gain \(32 bits at 0x28\) has no register of its own .* is alpha",
        ),
        ([("int \\*last", "int last"), ("\\*last = n - 1", "y[0] = last")], "a program can only"),
        (
            [("table\\[16", "table[32")],
            r"table \(a window of 128 bytes.* is table_r \(a window of 64 bytes",
        ),
        ([("table\\[16\\]\\)", "table)"), ("table\\[i % 16\\]", "table")], "a window of 64 bytes"),
        (
            [("float alpha", "float *alpha"), ("alpha \\*", "*alpha *"), ("for", MASTER)],
            r"float \* alpha \(an address at 0x28\).* where addresses have 64 bits",
        ),
        (
            [("const float \\*x", "const double *x")],
            r"const double \* x has elements of 64 bits, .* m_axi_gmem0 moves 32 at a time",
        ),
    ],
)
def test_a_source_that_must_compute_something_else_is_refused(check, changes, said):
    with pytest.raises(InterfaceError, match=said) as caught:
        check(*changes)
    assert caught.value.cu == "mix_0"
    text = str(caught.value)
    assert "mix.cpp" in text
    assert "design.hwh" in text
    assert "Build the overlay again" in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([("alpha", "gain")], r"float gain .* is called alpha in the handoff"),
        ([("float alpha, float beta", "float beta, float alpha")], "order x, y, beta, alpha, n,"),
        ([("last = n - 1", "last += n")], r"int \* last .* has no register in the handoff"),
        ([("unsigned n", "unsigned short n")], r"n \(16 bits at .*\) is n \(32 bits at"),
    ],
)
def test_a_difference_that_need_not_matter_is_only_said(check, changes, said):
    (remark,) = check(*changes)
    assert re.search(said, remark)


def test_the_same_source_and_what_no_handoff_can_tell(check, tmp_path):
    assert check() == []
    # Registers have no types: float and int of one width look alike.
    (tmp_path / "k").rename(tmp_path / "before")
    assert check(("float alpha", "int alpha")) == []


def _edited(bit: Path, folder: Path, *changes: tuple[str, str]) -> Path:
    text = bit.with_suffix(".hwh").read_text()
    for old, new in changes:
        assert re.search(old, text, re.DOTALL), old
        text = re.sub(old, new, text, flags=re.DOTALL)
    path = folder / "other.hwh"
    path.write_text(text)
    return path


def test_names_of_other_releases_are_known(bit, check, tmp_path):
    hwh = _edited(
        bit,
        tmp_path,
        ('NAME="alpha"', 'NAME="alpha_V"'),
        ('NAME="n"', 'NAME="n_r"'),
        ('NAME="last"', 'NAME="last_o"'),
        ('NAME="last_ctrl"', 'NAME="last_o_ap_vld"'),
    )
    assert check(hwh=hwh) == []


def test_a_register_elsewhere_is_followed(bit, tmp_path):
    """The other release's offset wins under its own name for the argument as well."""
    listed = read_handoff(bit.with_suffix(".hwh")).ips["mix_0"]
    at = listed.registers["s_axi_control"]["beta"]
    hwh = _edited(
        bit,
        tmp_path,
        (f'(NAME="beta".*?ADDRESS_OFFSET" VALUE=)"{at}"', r'\1"512"'),
        ('NAME="beta"', 'NAME="beta_r"'),
    )
    source = _kernel(tmp_path / "k", MIX) / "mix" / "mix.cpp"
    binding = Binding(read_handoff(hwh).ips["mix_0"], hls.read_interface(source, "mix"))
    assert binding.offsets[3][0] == 512
    assert binding.outputs == [(listed.registers["s_axi_control"]["y_1"], 8)]


def test_where_the_handoff_has_another_argument():
    values = (
        HandoffValue("word", 0x10, 1, False, 32),
        HandoffValue("long", 0x18, 2, False, 64),
        HandoffValue("window", 0x40, 0, False, None, True, 64),
        HandoffValue("open", 0x80, 0, False, None, True),
    )
    match = SlaveMatch([], values)
    taken = [at for at in range(0, 0x90) if match.is_taken("control", at)]
    assert taken == [*range(0x10, 0x14), *range(0x18, 0x20), *range(0x40, 0x84)]
    assert not match.is_unlisted and not list(match.pairs())


def test_which_interface_moves_the_elements():
    def differ(buses, *bundles):
        argument = SimpleNamespace(kind="m_axi", ctype="double *", width=64)
        found = {b: SimpleNamespace(name=b, arguments=("x",)) for b in bundles}
        interface = SimpleNamespace(axi_bundles=found, argument=lambda name: argument)
        masters = {n: HandoffBus(n, "aximm", True, nbytes) for n, nbytes in buses.items()}
        masters["s_axi_control"] = HandoffBus("s_axi_control", "aximm", False, 4)
        masters["in"] = HandoffBus("in", "axis", True, 4)
        said = [text for wrong, text in bus_differences(interface, masters) if wrong]
        return [text.rpartition("interface ")[2] for text in said]

    narrow = "{} moves 32 at a time in the handoff"
    assert differ({"m_axi_a": 4, "M_AXI_B": 8}, "a", "b") == [narrow.format("m_axi_a")]
    assert differ({"m_axi_a_r": 4, "m_axi_b": 8}, "a") == [narrow.format("m_axi_a_r")]
    assert differ({"other": 4}, "a") == [narrow.format("other")]  # there is but one
    assert differ({"other": 4, "another": 4}, "a") == []
    assert differ({"other": 4}, "a", "b") == []
    assert differ({"m_axi_a": None}, "a") == differ({}, "a") == []


def _bound(folder: Path, *slaves: Slave) -> Binding:
    """Bind a kernel that reads, writes and updates memory to slaves whose registers are unknown."""
    source = folder / "touch.cpp"
    source.write_text(
        "void touch(const int *in, int *out, int *both, int n) {\n"
        "#pragma HLS INTERFACE m_axi port=in bundle=gmem offset=slave\n"
        "#pragma HLS INTERFACE m_axi port=out bundle=gmem offset=slave\n"
        "#pragma HLS INTERFACE m_axi port=both bundle=gmem offset=slave\n"
        "#pragma HLS INTERFACE s_axilite port=n\n"
        "#pragma HLS INTERFACE s_axilite port=return\n"
        "    for (int i = 0; i < n; ++i) { out[i] = in[i]; both[i] += in[i]; }\n"
        "}\n"
    )
    ip = IpInstance("touch_0", "xilinx.com:hls:touch:1.0", slaves=slaves)
    return Binding(ip, hls.read_interface(source, "touch"))


def test_overruns_are_looked_for_behind_what_a_kernel_writes(tmp_path):
    binding = _bound(tmp_path, Slave("s_axi_control", 0x4000_0000, 0x10000, "Reg", False))
    # As UG1399 lays them out: in at 0x10 is only read; addresses have 64 bits.
    assert binding.outputs == [(0x1C, 8), (0x28, 8)]


def test_names_that_differ_only_in_case_are_two(tmp_path):
    source = tmp_path / "k.cpp"
    source.write_text(
        "#include <hls_stream.h>\n"
        "void k(hls::stream<int> &a, hls::stream<int> &A, int n, int N) {\n"
        "#pragma HLS INTERFACE axis port=a\n"
        "#pragma HLS INTERFACE axis port=A\n"
        "#pragma HLS INTERFACE s_axilite port=n bundle=ctrl\n"
        "#pragma HLS INTERFACE s_axilite port=N bundle=CTRL\n"
        "#pragma HLS INTERFACE s_axilite port=return bundle=ctrl\n"
        "    a.write(n + N + A.read());\n"
        "}\n"
    )
    slaves = [
        Slave(f"s_axi_{name}", 0x4000_0000 + at, 0x10000, "Reg", False)
        for name, at in (("CTRL", 0), ("ctrl", 0x10000))
    ]
    streams = {"A": (False, 4), "a": (True, 4)}
    ip = IpInstance("k_0", "xilinx.com:hls:k:1.0", slaves=tuple(slaves), stream_ports=streams)
    binding = Binding(ip, hls.read_interface(source, "k"))
    assert [port.port for port, _ in binding.ports] == ["a", "A"]
    assert binding.control_slave == "s_axi_ctrl"
    assert [binding.page["s_axi_ctrl"], binding.page["s_axi_CTRL"]] == [0x10000, 0]
    assert [offsets[0] for offsets in binding.offsets[2:4]] == [0x10010, 0x10]


@pytest.mark.parametrize("names", [("n", "N"), ("n_r", "N_r"), ("N_r", "n_r")])
def test_registers_that_differ_only_in_case(names):
    values = [HandoffValue(name, 0x10 + 8 * i, 1, False, 32) for i, name in enumerate(names)]
    registers = [Register(n, 0x10 + 8 * i, 32, "in", "data") for i, n in enumerate(("n", "N"))]
    match = SlaveMatch([Derived("control", r, None) for r in registers], values)
    assert {d.register.name: v.name for d, v in match.pairs()} == {
        "n": next(n for n in names if n[0] == "n"),
        "N": next(n for n in names if n[0] == "N"),
    }


def test_a_slave_of_a_gigabyte_takes_no_gigabyte_of_registers(tmp_path):
    binding = _bound(
        tmp_path,
        Slave("s_axi_wide", 0x4000_0000, 1 << 30, "Reg", False),
        Slave("s_axi_edge", 0x8000_0000, 16 << 20, "Reg", False),
        Slave("s_axi_control", 0x8100_0000, 0x10001, "Reg", False),
    )
    assert binding.page == {"s_axi_wide": 0, "s_axi_edge": 16 << 20, "s_axi_control": 32 << 20}
    assert binding.nbytes == (32 << 20) + 0x11000  # whole pages
    assert binding.outputs == [((32 << 20) + 0x1C, 8), ((32 << 20) + 0x28, 8)]


def test_a_handoff_without_arguments_says_nothing(bit, check, tmp_path):
    arguments = r'<REGISTER NAME="(?!CTRL|GIER|IP_)\w+">.*?</REGISTER>'
    (remark,) = check(hwh=_edited(bit, tmp_path, (arguments, "")))
    assert "lists no register of an argument on s_axi_control" in remark
    (tmp_path / "k").rename(tmp_path / "before")
    assert check(hwh=_edited(bit, tmp_path, (r"<REGISTERS>.*?</REGISTERS>", ""))) == []


def _units() -> list[tuple[Path, IpInstance]]:
    return [
        (path, ip)
        for path in sorted(BITSTREAMS.glob("*/*.hwh"))
        for ip in read_handoff(path).ips.values()
        if ip.is_kernel and (HW_KERNELS / ip.vlnv_name).is_dir()
    ]


def test_every_overlay_of_the_project_is_what_its_sources_say():
    units = _units()
    assert len(units) > 30
    interfaces = {}
    for path, ip in units:
        kernel = hls.find_kernel(ip.vlnv_name, [HW_KERNELS])
        if kernel.name not in interfaces:
            interfaces[kernel.name] = interface_of(kernel.name)
        assert Binding(ip, interfaces[kernel.name]).check(path) == [], ip.name


def test_loading_is_refused_and_leaves_what_was_loaded(bit, tmp_path, closed):
    kernels = _kernel(tmp_path / "k", MIX)
    pynq_torch.use_board("csim", kernels=[kernels])
    overlay = Overlay(str(bit))
    (kernels / "mix" / "mix.cpp").write_text(_changed(("float alpha", "double alpha")))
    with pytest.raises(InterfaceError, match="double alpha"):
        Overlay(str(bit))
    x, y = allocate(4, "f4"), allocate(4, "f4")
    x[:], y[:] = 1, 2
    ip = overlay.mix_0
    ip.register_map.x_1, ip.register_map.y_1 = x.physical_address, y.physical_address
    for name, value in (("alpha", 3.0), ("beta", 10.0)):
        setattr(ip.register_map, name, int(np.float32(value).view(np.uint32)))
    ip.register_map.n = 4
    ip.register_map.CTRL.AP_START = 1
    assert (y == 23).all()


def test_another_design_with_a_kernel_of_a_name_of_ours(bit, tmp_path, closed, monkeypatch):
    kernels = _kernel(tmp_path / "k", _changed(("float alpha", "double alpha")))
    pynq_torch.use_board("csim", kernels=[kernels])
    with pytest.raises(InterfaceError, match=r"or restore the source\.$"):
        Overlay(str(bit))
    monkeypatch.setattr(hls_binding, "KERNELS", kernels)
    with pytest.raises(InterfaceError, match=r"its own sources: PYNQ_TORCH_KERNELS=FOLDER\.$"):
        Overlay(str(bit))


def test_a_remark_is_made_once(bit, tmp_path, closed):
    pynq_torch.use_board("csim", kernels=[_kernel(tmp_path / "k", _changed(("alpha", "gain")))])
    with pytest.warns(UserWarning, match="gain .* is called alpha in the handoff"):
        Overlay(str(bit))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Overlay(str(bit)).download()


def test_a_constant_that_cannot_be_read_is_not_known():
    """Published handoffs have "010": decimal or binary, nothing says."""

    def module(value: str) -> ET.Element:
        return ET.fromstring(
            f'<MODULE MODTYPE="xlconstant"><PORTS><PORT NAME="dout" SIGNAME="net{value}"/></PORTS>'
            f'<PARAMETERS><PARAMETER NAME="CONST_VAL" VALUE="{value}"/></PARAMETERS></MODULE>'
        )

    found = constants_of([module(value) for value in ("010", "0x10", "3")])
    assert found == {"net0x10": 16, "net3": 3}
