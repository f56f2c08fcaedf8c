"""Other people's designs, end to end: names, cases, parameters, slaves and wires."""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import start, wait_done, write, write_overlay
from ip_handoff import Ip, Pin, write_design
from pynq import MMIO, Overlay, allocate

import pynq_torch
from pynq_torch.errors import InterfaceError, InterfaceWarning, NotModelledWarning
from pynq_torch.paths import ROOT

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("closed")]

_KERNELS = Path(__file__).parent / "foreign_kernels"
both = pytest.mark.parametrize("board", ["csim", "rtl"])
Edit = Callable[[str], str]


def foreign(
    folder: Path, board: str, units: dict[str, str], edit: Edit = str, extra: str = ""
) -> Any:
    """Return the overlay of `units` on a board, its handoff changed by `edit`."""
    kernels = folder / "k"
    if not kernels.exists():
        for kernel in set(units.values()):
            shutil.copytree(_KERNELS / kernel, kernels / kernel)
            if (kernels / kernel / "rtl").is_dir():
                shutil.copy(ROOT / "hw/rtl/axil_control.sv", kernels / kernel / "rtl")
    bit = write_overlay(folder, units, extra, kernels)
    handoff = bit.with_suffix(".hwh")
    handoff.write_text(edit(handoff.read_text()))
    if board == "csim":
        shutil.rmtree(folder / "k" / "rtl", ignore_errors=True)
    pynq_torch.use_board(board, kernels=[kernels])
    return Overlay(str(bit))


def windows(unit: str) -> dict[str, MMIO]:
    """Return the registers of each AXI-Lite slave of a unit."""
    board = pynq_torch.current_board()
    slaves = board.handoff.ips[unit].slaves
    return {slave.interface: MMIO(slave.base, slave.nbytes) for slave in slaves}


def run_twin(unit: str, n: int, big_n: int) -> tuple[int, int]:
    """Run a `twin` and return the words it wrote."""
    control, places = windows(unit)["s_axi_control"], windows(unit)["s_axi_control_r"]
    first, second = allocate(1, "i4"), allocate(1, "i4")
    places.write(0x10, first.physical_address)
    places.write(0x1C, second.physical_address)
    control.write(0x10, n)
    control.write(0x18, big_n)
    assert [places.read(at) for at in (0x10, 0x1C)] == [
        first.physical_address,
        second.physical_address,
    ]
    assert places.read(0) == 0 and control.read(0) & 4  # only one of them has AP_CTRL
    start(control)
    wait_done(control)
    return int(first[0]), int(second[0])


@both
def test_two_slaves_and_names_that_differ_only_in_case(tmp_path, board):
    overlay = foreign(tmp_path, board, {"twin_0": "twin"})
    assert run_twin("twin_0", 5, 7) == (5, 7)
    # pynq 3.1 files an IP once, with the slave that comes last.
    ip = overlay.twin_0
    assert list(overlay.ip_dict["twin_0"]["registers"]) == [
        "gmem_offset_1", "gmem_offset_2", "data_1", "data_2",
    ]  # fmt: skip
    assert ip.mmio.base_addr == windows("twin_0")["s_axi_control_r"].base_addr
    ip.register_map.data_1 = 0x1234
    assert ip.read(0x1C) == windows("twin_0")["s_axi_control_r"].read(0x1C) == 0x1234


def with_parameters(**units: dict[str, str]) -> Edit:
    """Return an edit that gives units further parameters."""

    def edit(text: str) -> str:
        for unit, values in units.items():
            at = text.index("<PARAMETERS>", text.index(f'FULLNAME="/{unit}"'))
            items = "".join(f'<PARAMETER NAME="{n}" VALUE="{v}"/>' for n, v in values.items())
            text = f"{text[:at]}<PARAMETERS>{items}{text[at + 12 :]}"
        return text

    return edit


def test_each_instance_has_its_own_parameters(tmp_path):
    edit = with_parameters(a={"scale": "3"}, b={"SCALE": "0x5", "MODE": "TWICE"}, c={"scale": "3"})
    units = dict.fromkeys(("a", "b", "c"), "twin")
    foreign(tmp_path, "rtl", units, edit)
    board = pynq_torch.current_board()
    found = {unit: run_twin(unit, 1, 2) for unit in units}
    assert found == {"a": (3, 6), "b": (10, 20), "c": (3, 6)}
    # Built once where nothing but the name and the addresses differ.
    assert len({board.ip[unit].model.library for unit in units}) == 2
    assert board.ip["a"].model.interfaces.slaves[0].address_width == 5


@both
@pytest.mark.parametrize(
    ("vlnv", "top"), [("twin_v1_0:1.0", "twin"), ("twin:2.1", "twin_v2_1")], ids=["ip", "module"]
)
def test_the_version_that_the_packager_adds(tmp_path, board, vlnv, top):
    def edit(text: str) -> str:
        for file in (tmp_path / "k").rglob("twin.*"):
            file.write_text(file.read_text().replace("twin(", f"{top}(").replace(
                "module twin ", f"module {top} "))  # fmt: skip
            file.rename(file.with_stem("sources"))
        (tmp_path / "k" / "twin").rename(tmp_path / "k" / "ip_repo")
        return text.replace("xilinx.com:hls:twin:1.0", f"xilinx.com:user:{vlnv}")

    foreign(tmp_path, board, {"twin_0": "twin"}, edit)
    assert run_twin("twin_0", 5, 7) == (5, 7)


# ---- arrays in pieces ----------------------------------------------------------------------------

PIECES = """void pieces(int a[8], int n) {{
#pragma HLS INTERFACE {mode} port=a {options}
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=return
#pragma HLS ARRAY_PARTITION variable=a {how}
    for (int i = 0; i < 8; ++i) a[i] = {value};
}}
"""


def pieces(folder: Path, mode: str, how: str, options: str = "", edit: Edit = str) -> Any:
    text = PIECES.format(mode=mode, how=how, options=options, value="i * n")
    if not how:  # a directive of the Tcl that the folder does not have
        text = "".join(line for line in text.splitlines(True) if "PARTITION" not in line)
    write(folder / "k" / "pieces" / "pieces.cpp", text)
    return foreign(folder, "csim", {"pieces_0": "pieces"}, edit)


def in_pieces(text: str) -> str:
    """Give the address of `a` to two ports, as HLS does."""
    text = text.replace('REGISTER NAME="a_1"', 'REGISTER NAME="a_0_1"')
    text = text.replace('REGISTER NAME="a_2"', 'REGISTER NAME="a_0_2"')
    return text.replace('REGISTER NAME="n"', 'REGISTER NAME="a_1_1"')


@pytest.mark.filterwarnings("ignore::pynq_torch.errors.InterfaceWarning")
@pytest.mark.parametrize(
    ("mode", "how", "options", "edit"),
    [
        ("m_axi", "cyclic factor=2", "bundle=gmem offset=slave", in_pieces),
        ("m_axi", "complete", "bundle=gmem offset=slave", in_pieces),
        ("m_axi", "", "bundle=gmem offset=slave", in_pieces),
        ("s_axilite", "cyclic factor=2", "", str),
        ("s_axilite", "block factor=2", "", str),
        ("s_axilite", "complete", "", str),
        ("axis", "cyclic factor=2", "", lambda text: text.replace('NAME="a"', 'NAME="a_0"')),
    ],
)
def test_an_argument_in_pieces_is_refused(tmp_path, mode, how, options, edit):
    with pytest.raises(
        InterfaceError,
        match=rf"{'pieces.cpp:5' if how else 'design.hwh'}: ARRAY_PARTITION cuts .* into a local",
    ):
        pieces(tmp_path, mode, how, options, edit)


WEIGHED = """void weighed(const {ctype} digits[6], long long *sum) {{
#pragma HLS INTERFACE s_axilite port=digits
#pragma HLS INTERFACE s_axilite port=sum
{control}
#pragma HLS ARRAY_PARTITION variable=digits {how}
    long long total = 0;
    for (int i = 0; i < 6; ++i) total = 10 * total + digits[i];
    *sum = total;
}}
"""


@pytest.mark.parametrize("control", ["s_axilite", "ap_ctrl_none"])
@pytest.mark.parametrize(
    ("ctype", "how"),
    [
        ("int", "complete"),
        ("int", "type=cyclic factor=4"),
        ("short", "block factor=3"),
        ("signed char", "cyclic factor=2"),
        ("long long", "complete dim=1"),
    ],
)
def test_an_array_in_pieces_that_a_kernel_reads_is_put_together(tmp_path, ctype, how, control):
    control = f"#pragma HLS INTERFACE {control} port=return"
    text = WEIGHED.format(ctype=ctype, how=how, control=control)
    write(tmp_path / "k" / "weighed" / "weighed.cpp", text)
    overlay = foreign(tmp_path, "csim", {"weighed_0": "weighed"})
    unit = pynq_torch.current_board().cus["weighed_0"]
    kind, count = how.split()[0].removeprefix("type="), int(how[-1]) if "factor" in how else 6
    width = {"int": 4, "short": 2, "signed char": 1, "long long": 8}[ctype]
    registers = {r.name: r for r in unit.interface.bundles["control"]}
    values = [7, 1, 2, 9, 4, 5]
    words: dict[int, int] = {}
    for i, value in enumerate(values):
        piece, inside = (i % count, i // count) if kind == "cyclic" else divmod(i, 6 // count)
        at = registers[f"digits_{piece}"].offset + inside * width
        words[at & ~3] = words.get(at & ~3, 0) | value << 8 * (at & 3)
    for at, word in words.items():
        overlay.weighed_0.write(at, word)
    if "s_axilite port=return" in control:
        start(overlay.weighed_0)
        wait_done(overlay.weighed_0)
    assert overlay.weighed_0.read(registers["sum"].offset) == 712945


def test_two_arguments_named_like_pieces_are_two(tmp_path):
    text = PIECES.format(mode="m_axi", how="", options="bundle=g offset=slave", value="a_0")
    text = "".join(line for line in text.splitlines(True) if "PARTITION" not in line)
    text = text.replace("int n)", "int a_0)").replace("port=n", "port=a_0")
    write(tmp_path / "k" / "pieces" / "pieces.cpp", text)
    overlay = foreign(tmp_path, "csim", {"pieces_0": "pieces"})
    buffer = allocate(8, "i4")
    overlay.pieces_0.write(0x10, buffer.physical_address)
    overlay.pieces_0.write(0x1C, 9)
    start(overlay.pieces_0)
    wait_done(overlay.pieces_0)
    assert buffer.tolist() == [9] * 8


def test_a_partition_that_the_hardware_does_not_have_is_only_a_warning(tmp_path):
    with pytest.warns(
        InterfaceWarning, match=r"pieces\.cpp:5: ARRAY_PARTITION of argument 'a' mak"
    ):
        overlay = pieces(tmp_path, "m_axi", "cyclic factor=2", "bundle=gmem offset=slave")
    ip, buffer = overlay.pieces_0, allocate(8, "i4")
    ip.write(0x10, buffer.physical_address)
    ip.write(0x1C, 3)
    start(ip)
    wait_done(ip)
    assert buffer.tolist() == [3 * i for i in range(8)]


@pytest.mark.filterwarnings("ignore::pynq_torch.errors.InterfaceWarning")
@pytest.mark.parametrize("how", ["complete", "cyclic factor=1"])
def test_an_array_behind_memory_ports_is_refused(tmp_path, how):
    with pytest.raises(InterfaceError, match=r"pieces\.cpp.*argument int ?\[8\] a|ARRAY_PARTITION"):
        pieces(tmp_path, "ap_memory", how)


# ---- wires ---------------------------------------------------------------------------------------

MIX = """void mix(unsigned char gain, signed char GAIN, int x, int *y) {{
{control}
#pragma HLS INTERFACE ap_none port=gain
#pragma HLS INTERFACE ap_none port=GAIN
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=y
    *y = gain * x + GAIN;
}}
"""
STARTED = "#pragma HLS INTERFACE s_axilite port=return"
RUNNING = "#pragma HLS INTERFACE ap_ctrl_none port=return"


def mix(folder: Path, pins: dict[str, Pin], control: str = STARTED, *others: Ip) -> Any:
    """Return an overlay with a GPIO that drives net `a`, a constant -2 on net `c`, and `mix_0`."""
    write(folder / "k" / "mix" / "mix.cpp", MIX.format(control=control))
    pynq_torch.use_board("csim", kernels=[folder / "k"])
    gpio = {"C_GPIO_WIDTH": 8, "C_ALL_OUTPUTS": 1}
    ips = [
        Ip("axi_gpio", "gpio", 0x41200000, gpio, pins={"gpio_io_o": ("O", "a", 8)}),
        Ip("xlconstant", "minus", 0, {"CONST_VAL": "0xFE", "CONST_WIDTH": 8},
           pins={"dout": ("O", "c", 8)}),
        Ip("mix", "mix_0", 0x43C00000, library="hls", pins=pins),
    ]  # fmt: skip
    return Overlay(str(write_design(folder, "wired", [*ips, *others])))


def test_a_kernel_takes_its_inputs_from_the_wires_when_it_starts(tmp_path):
    overlay = mix(tmp_path, {"GAIN": ("I", "c", 8), "gain": ("I", "a", 8)})
    for gain in (3, 250):
        overlay.gpio.channel1.write(gain, 0xFF)
        overlay.mix_0.write(0x10, 100)
        start(overlay.mix_0)
        wait_done(overlay.mix_0)
        assert overlay.mix_0.read(0x18) == 100 * gain - 2


def test_a_kernel_that_always_runs_follows_its_wires(tmp_path):
    overlay = mix(tmp_path, {"GAIN": ("I", "c", 8), "gain_r": ("I", "a", 8)}, RUNNING)
    overlay.mix_0.write(0x10, 10)
    for gain in range(20):
        overlay.gpio.channel1.write(gain, 0xFF)
        assert overlay.mix_0.read(0x18) & 0xFFFFFFFF == (10 * gain - 2) % 2**32


@pytest.mark.parametrize(
    ("net", "source"), [("led", r"blink\.led \(blinker\)"), ("button", "outside the design")]
)
def test_a_wire_that_is_not_followed_is_named_once(tmp_path, net, source):
    blinker = Ip("blinker", "blink", 0, pins={"led": ("O", "led", 8)})
    pins: dict[str, Pin] = {"gain": ("I", net, 8), "GAIN": ("I", "c", 8)}
    with pytest.warns(NotModelledWarning, match=rf"mix_0\.gain reads 0 .* from {source}"):
        overlay = mix(tmp_path, pins, STARTED, blinker)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        start(overlay.mix_0)
        wait_done(overlay.mix_0)
    assert overlay.mix_0.read(0x18) & 0xFFFFFFFF == 2**32 - 2


def test_a_wire_that_the_handoff_does_not_have_is_named(tmp_path):
    with pytest.warns(UserWarning, match="unsigned char gain is a wire, and the handoff has no po"):
        mix(tmp_path, {"GAIN": ("I", "c", 8)})


def module(kind: str, name: str, parameters: dict[str, str], **pins: tuple[str, str]) -> str:
    """Return an IP without registers, with pins of eight bits: direction and net."""
    values = "".join(f'<PARAMETER NAME="{n}" VALUE="{v}"/>' for n, v in parameters.items())
    ports = "".join(
        f'<PORT DIR="{way}" LEFT="7" NAME="{pin}" RIGHT="0" SIGIS="undef" SIGNAME="{net}"/>'
        for pin, (way, net) in pins.items()
    )
    return (
        f'<MODULE FULLNAME="/{name}" INSTANCE="{name}" IPTYPE="PERIPHERAL" IS_ENABLE="1" '
        f'MODTYPE="{kind}" VLNV="xilinx.com:ip:{kind}:1.0"><DOCUMENTS/><PARAMETERS>{values}'
        f"</PARAMETERS><PORTS>{ports}</PORTS><BUSINTERFACES/></MODULE>"
    )


def extra_on(net: str) -> Edit:
    """Return an edit that connects ``extra`` to a net: ``fixed``, or what a pin drives."""
    port = f'<PORT DIR="I" LEFT="7" NAME="extra" RIGHT="0" SIGIS="undef" SIGNAME="{net}"/>'
    others = (
        module("xlconstant", "c", {"CONST_VAL": "0xF0", "CONST_WIDTH": "8"}, dout=("O", "high")),
        module("util_vector_logic", "g", {"C_OPERATION": "not", "C_SIZE": "8"},
               Op1=("I", "high"), Res=("O", "fixed")),
        module("util_vector_logic", "h", {"C_OPERATION": "not", "C_SIZE": "8"},
               Op1=("I", "reset"), Res=("O", "changing")),
        module("proc_sys_reset", "r", {}, peripheral_reset=("O", "reset")),
        module("blinker", "b", {}, led=("O", "led")),
    )  # fmt: skip

    def edit(text: str) -> str:
        at = text.index("<PORTS>", text.index('FULLNAME="/twin_0"')) + len("<PORTS>")
        text = text[:at] + port + text[at:]
        return text.replace("</MODULES>", f"{''.join(others)}</MODULES>")

    return edit


@pytest.mark.parametrize(
    ("net", "value", "says"),
    [
        ("fixed", 0x0F, None),
        ("changing", 0xFF, r"twin_0\.extra stays 0xff on board rtl.* Board csim follows them"),
        ("led", 0, r"twin_0\.extra reads 0 where its wire comes from b\.led \(blinker\)"),
    ],
)
def test_an_input_of_rtl_is_tied_to_what_its_wire_carries(tmp_path, net, value, says):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        foreign(tmp_path, "rtl", {"twin_0": "twin"}, extra_on(net))
    found = [str(w.message) for w in caught if w.category is NotModelledWarning]
    assert len(found) == (says is not None)
    assert says is None or re.search(says, found[0])
    assert run_twin("twin_0", 100, 7) == (100 + value, 7)
