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
STRING = "it should be a valid string"
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
        ("clock_mhz = 100", 'clock_mhz = "fast"', "clock_mhz is 'fast'; it should be a valid nu"),
        ("clock_mhz = 100", "clock_mhz = 150", "142.857"),
        ("summary =", "sumary =", "known are clock_mhz, instances, interrupts, streams, summary"),
        ('kernel = "one"', 'kernal = "one"', "known are address, ip, kernel, memory, para"),
        ('kernel = "one"', 'kernel = "one"\nip = "axi_intc"', "not both"),
        ('kernel = "one"', 'kernel = "two"', "'two'"),
        ('kernel = "one"', 'kernel = "one"\nparameters = { a = 1 }', "one.hpp"),
        ('gmem = "HP0"', 'gmem = "HP7"',
         "gmem is 'HP7'; it should be 'HP0', 'HP1', 'HP2' or 'HP3'"),
        ('gmem = "HP0"', 'gmem1 = "HP0"', "has the masters gmem"),
        ("one_0.interrupt", "one.interrupt", "one_0"),
        ("one_0.interrupt", "one_0.irq", "has interrupt"),
        ("one_0.interrupt", "one_0", "INSTANCE.PIN"),
        ('[instances.axi_intc_0]\nip = "axi_intc"', "", "need one axi_intc"),
        ('ip = "axi_dma"', 'ip = "axi_vdma"', "axi_dma, axi_gpio, axi_intc"),
        ('ip = "axi_dma"', 'ip = "axi_dma"\nparameters = { c_lenght = 3 }', "c_lenght"),
        ('ip = "axi_intc"', 'ip = "axi_intc"\naddress = 0x40000001', "multiple of 64 KB"),
        ('ip = "axi_intc"', 'ip = "axi_intc"\naddress = 0x90000000', "M_AXI_GP0"),
        ("interrupts =", 'streams = ["axi_dma_0.M_AXIS_MM2S"]\ninterrupts =', "->"),
        ("interrupts =",
         'streams = ["axi_dma_0.MM2S -> axi_dma_0.S_AXIS_S2MM"]\ninterrupts =', "M_AXIS_MM2S"),
        ("interrupts =", "streams = [1]\ninterrupts =", f"streams.0 is 1; {STRING}"),
        *[("clock_mhz = 100", f"clock_mhz = {value}", f"clock_mhz is {found}; it should be {said}")
          for value, found, said in (
            *[(value, value, "a finite number") for value in ("nan", "inf", "-inf")],
            ("0", "0", "greater than 0"), ("-1", "-1", "greater than 0"),
            ("1e300", "1e+300", "less than or equal to 1600"), ("true", "True", "a valid number"),
            ("[]", "[]", "a valid number"),
            ("1979-05-27", "datetime.date(1979, 5, 27)", "a valid number"))],
        *[('summary = "one kernel"', f"summary = {value}",
           f"summary is {value.capitalize() if value == 'false' else value}; {STRING}")
          for value in ("nan", "1", "[]", "{}", "false")],
        *[('kernel = "one"', f"kernel = {value}", f"instances.one_0.kernel is {value}; {STRING}")
          for value in ("nan", "[]")],
        *[('kernel = "one"', f'kernel = "{value}"',
           f"instances.one_0.kernel is '{value}'; expected a name: letters, digits and _")
          for value in ("/dev/zero", "../x", "", "a\\nb")],
        *[('ip = "axi_dma"', f"ip = {value}", f"instances.axi_dma_0.ip is {value}; {STRING}")
          for value in ("nan", "3", "{}")],
        *[('ip = "axi_dma"', f'ip = "axi_dma"\naddress = {value}',
           "; it should be a valid integer") for value in ("nan", "1.5", "true", "[]", "{}")],
        ('ip = "axi_dma"', 'ip = "axi_dma"\naddress = "0x40000000"',
         "instances.axi_dma_0.address is '0x40000000'; it should be a valid integer"),
        *[('ip = "axi_dma"', f'ip = "axi_dma"\nparameters = {value}',
           f"instances.axi_dma_0.parameters is {value}; it should be a valid table")
          for value in ("nan", "[]")],
        *[('ip = "axi_dma"', f'ip = "axi_dma"\nparameters = {{ a = {value} }}',
           f"parameters.a is {value}; expected a string, a finite number or a boolean")
          for value in ("nan", "[]", "{}")],
        *[('memory = { gmem = "HP0" }', f"memory = {value}", f"memory is {found}; it should be a v")
          for value, found in (("nan", "nan"), ('["HP0"]', "['HP0']"))],
        *[('memory = { gmem = "HP0" }', f"memory = {{ gmem = {value} }}",
           f"memory.gmem is {value}; it should be 'HP0', 'HP1', 'HP2' or 'HP3'")
          for value in ("nan", "3")],
        *[('interrupts = ["one_0.interrupt"]', f"{key} = {value}",
           f"{key} is {found}; it should be a valid list")
          for key in ("interrupts", "streams")
          for value, found in (("nan", "nan"), ('"a"', "'a'"), ("{}", "{}"))],
        *[('interrupts = ["one_0.interrupt"]', f"{key} = [{value}]",
           f"{key}.0 is {value}; {STRING}")
          for key in ("interrupts", "streams") for value in ("[]", "nan")],
        ("summary =", "a = " + "[" * 20000 + "\nsummary =", "overlay.toml"),
        ("summary =", "\0 =", "overlay.toml"),
        ("axi_intc_0]", "xlconcat_0]", "generator's own"),
        ("[instances.axi_intc_0]", '[instances."axi-intc"]',
         "instances.axi-intc is 'axi-intc'; expected a name: letters, digits and _"),
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


def test_no_instances(tmp_path: Path) -> None:
    with pytest.raises(HandoffError, match=r"toml: the entry 'instances' is missing; write \[inst"):
        build(tmp_path, "clock_mhz = 100\n")


def test_what_is_no_text_or_no_file(tmp_path: Path) -> None:
    (tmp_path / "overlay.toml").write_bytes(b"summary = '\xff'")
    with pytest.raises(HandoffError, match=r"overlay\.toml: .*utf-8"):
        read_description(tmp_path)
    (tmp_path / "overlay.toml").unlink()
    (tmp_path / "overlay.toml").mkdir()
    with pytest.raises(HandoffError, match="is a folder, device, pipe or socket; expected a TOML"):
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
