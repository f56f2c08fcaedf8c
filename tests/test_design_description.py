"""Descriptions that cannot be, and what is said about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch.descriptions import read_kernel_description
from pynq_torch.errors import HandoffError, InterfaceError
from pynq_torch.hls import AxiBundle, Interface, Register
from pynq_torch.hls.design.description import read_description
from pynq_torch.hls.design.netlist import elaborate
from pynq_torch.hls.design.part import clock_dividers

GOOD = """
summary = "one kernel"
clock_mhz = 100
interrupts = ["one_0.interrupt"]
[instances.one_0]
kernel = "one"
memory = { gmem = "HP0" }
[instances.axi_dma_0]
ip = "axi_dma"
memory = { M_AXI_MM2S = "HP0", M_AXI_S2MM = "HP1" }
[instances.axi_intc_0]
ip = "axi_intc"
"""
ONE = Interface(
    "one", Path("one.cpp"), "vitis", "ap_ctrl_hs", "control", (), None,
    {"control": (Register("AP_CTRL", 0, 32, "inout", "control"),)},
    {"gmem": AxiBundle("gmem", 32, 64, ())},
)  # fmt: skip


def build(folder: Path, text: str) -> None:
    path = folder / "one" / "overlay.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    elaborate(read_description(path), {"one": ONE})


def test_the_good_one(tmp_path: Path) -> None:
    build(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("clock_mhz = 100", "clock_mhz = ", "overlay.toml"),
        ("clock_mhz = 100", 'clock_mhz = "fast"', "number of MHz"),
        ("clock_mhz = 100", "clock_mhz = 150", "142.857"),
        ("summary =", "sumary =", "sumary"),
        ('kernel = "one"', 'kernal = "one"', "kernal"),
        ('kernel = "one"', 'kernel = "one"\nip = "axi_intc"', "not both"),
        ('kernel = "one"', 'kernel = "two"', "'two'"),
        ('kernel = "one"', 'kernel = "one"\nparameters = { a = 1 }', "one.hpp"),
        ('gmem = "HP0"', 'gmem = "HP7"', "HP0, HP1, HP2, HP3"),
        ('gmem = "HP0"', 'gmem1 = "HP0"', "has the masters gmem"),
        ("one_0.interrupt", "one.interrupt", "one_0"),
        ("one_0.interrupt", "one_0.irq", "has interrupt"),
        ("one_0.interrupt", "one_0", "INSTANCE.PIN"),
        ('[instances.axi_intc_0]\nip = "axi_intc"', "", "need one axi_intc"),
        ('ip = "axi_dma"', 'ip = "axi_vdma"', "axi_dma, axi_intc"),
        ('ip = "axi_dma"', 'ip = "axi_dma"\nparameters = { c_lenght = 3 }', "c_lenght"),
        ('ip = "axi_intc"', 'ip = "axi_intc"\naddress = 0x40000001', "multiple of 64 KB"),
        ('ip = "axi_intc"', 'ip = "axi_intc"\naddress = 0x90000000', "M_AXI_GP0"),
        ("interrupts =", 'streams = ["axi_dma_0.M_AXIS_MM2S"]\ninterrupts =', "->"),
        ("interrupts =",
         'streams = ["axi_dma_0.MM2S -> axi_dma_0.S_AXIS_S2MM"]\ninterrupts =', "M_AXIS_MM2S"),
        ("interrupts =", "streams = [1]\ninterrupts =", "list of strings"),
        *[("clock_mhz = 100", f"clock_mhz = {value}", "number of MHz above 0")
          for value in ("nan", "inf", "-inf", "0", "-1", "true", "[]", "1e300", "1979-05-27")],
        *[('summary = "one kernel"', f"summary = {value}", "write a string")
          for value in ("nan", "1", "[]", "{}", "false")],
        *[('kernel = "one"', f"kernel = {value}", said) for value, said in (
            ("nan", "write a string"), ("[]", "write a string"), ('"/dev/zero"', "its name"),
            ('"../x"', "its name"), ('""', "its name"), ('"a\\nb"', "its name"))],
        *[('ip = "axi_dma"', f"ip = {value}", "write a string") for value in ("nan", "3", "{}")],
        *[('ip = "axi_dma"', f'ip = "axi_dma"\naddress = {value}', "write a whole number")
          for value in ("nan", "1.5", '"0x40000000"', "true", "[]", "{}")],
        *[('ip = "axi_dma"', f'ip = "axi_dma"\nparameters = {value}', said) for value, said in (
            ("nan", "write a table"), ("[]", "write a table"), ("{ a = nan }", "finite number"),
            ("{ a = [] }", "finite number"), ("{ a = {} }", "finite number"))],
        *[('memory = { gmem = "HP0" }', f"memory = {value}", said) for value, said in (
            ("nan", "write a table"), ('["HP0"]', "write a table"), ("{ gmem = nan }", "finite"),
            ("{ gmem = 3 }", "HP0, HP1, HP2, HP3"))],
        *[('interrupts = ["one_0.interrupt"]', f"{key} = {value}", "list of strings")
          for key in ("interrupts", "streams") for value in ("nan", '"a"', "{}", "[[]]", "[nan]")],
        ("summary =", "a = " + "[" * 20000 + "\nsummary =", "overlay.toml"),
        ("summary =", "\0 =", "overlay.toml"),
        ("axi_intc_0]", "xlconcat_0]", "generator's own"),
        ("[instances.axi_intc_0]", '[instances."axi-intc"]', "no name for Vivado"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in GOOD
    with pytest.raises(HandoffError) as caught:
        build(tmp_path, GOOD.replace(old, new))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("instances", ["nan", "[]", '"a"', "{}", "{ a = 1 }", "{ a = nan }"])
def test_instances_that_are_none(instances: str, tmp_path: Path) -> None:
    with pytest.raises(HandoffError, match=r"write \[instances\."):
        build(tmp_path, f"instances = {instances}\n")


def test_what_is_no_text_or_no_file(tmp_path: Path) -> None:
    (tmp_path / "overlay.toml").write_bytes(b"summary = '\xff'")
    with pytest.raises(HandoffError, match=r"overlay\.toml: .*utf-8"):
        read_description(tmp_path)
    (tmp_path / "overlay.toml").unlink()
    (tmp_path / "overlay.toml").mkdir()
    with pytest.raises(HandoffError, match="cannot be read"):
        read_description(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["[]", "3", '{"latency": 5}', '{"latency": {"kind": "model", "symbols": 3}}', "[" * 20000],
)
def test_kernel_descriptions_of_the_wrong_kind(text: str, tmp_path: Path) -> None:
    (tmp_path / "description.json").write_text(text)
    with pytest.raises(InterfaceError, match=r"description\.json: "):
        read_kernel_description(tmp_path)


def test_two_at_one_address(tmp_path: Path) -> None:
    text = GOOD.replace('ip = "axi_dma"', 'ip = "axi_dma"\naddress = 0x40000000')
    text = text.replace('ip = "axi_intc"', 'ip = "axi_intc"\naddress = 0x40000000')
    with pytest.raises(HandoffError, match="both at 0x40000000"):
        build(tmp_path, text)


def test_given_addresses_are_kept_and_the_rest_go_round_them(tmp_path: Path) -> None:
    path = tmp_path / "one" / "overlay.toml"
    path.parent.mkdir()
    path.write_text(GOOD.replace('ip = "axi_dma"', 'ip = "axi_dma"\naddress = 0x40000000'))
    design = elaborate(read_description(path.parent), {"one": ONE})
    bases = {s.slave[0]: s.base for s in design.segments if s.space == "Data"}
    assert bases == {"one_0": 0x40010000, "axi_dma_0": 0x40000000, "axi_intc_0": 0x40020000}


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(HandoffError, match=r"overlay\.toml"):
        read_description(tmp_path / "nowhere" / "overlay.toml")


@pytest.mark.parametrize("mhz", [10, 25, 50, 100, 125, 142.857, 166.667, 200, 250])
def test_dividers(mhz: float) -> None:
    dividers = clock_dividers(mhz)
    assert dividers.mhz == pytest.approx(mhz, rel=1e-3)
    assert 1 <= dividers.divisor1 <= dividers.divisor0 <= 63
