"""The generated handoff, as upstream pynq reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import interface_of
from pynq.lib.dma import DMA
from pynq.metadata.runtime_metadata_parser import RuntimeMetadataParser
from pynqmetadata.frontends import Metadata

from pynq_torch.hls import Interface, Register
from pynq_torch.hls.design.build import build_overlay, overlay_names
from pynq_torch.hls.design.kernel_cell import kernel_cell, register_entries
from pynq_torch.paths import ROOT

pytestmark = pytest.mark.usefixtures("kernels_read_once")

OVERLAYS = overlay_names()


def parsed(name: str) -> Any:
    return RuntimeMetadataParser(Metadata(input=ROOT / "bitstreams" / name / f"{name}.hwh"))


@pytest.mark.parametrize("name", OVERLAYS)
def test_bitstreams_are_what_the_sources_give(name: str, tmp_path: Path) -> None:
    """If this fails, run: python -m pynq_torch overlay build."""
    folder = build_overlay(name, out=tmp_path)
    committed = ROOT / "bitstreams" / name
    if '"kind": "vivado"' in (committed / "manifest.json").read_text():
        pytest.skip(f"bitstreams/{name} was built by Vivado")
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert made == {path.name: path.read_bytes() for path in committed.iterdir()}


@pytest.mark.parametrize("name", OVERLAYS)
def test_registers_and_offsets_are_those_of_the_source(name: str) -> None:
    ip_dict = parsed(name).ip_dict
    kernels = {ip: item["type"] for ip, item in ip_dict.items() if ":hls:" in item["type"]}
    assert kernels
    for ip, vlnv in kernels.items():
        kernel = vlnv.split(":")[2]
        interface = interface_of(kernel)
        registers = ip_dict[ip]["registers"]
        assert list(registers)[:4] == ["CTRL", "GIER", "IP_IER", "IP_ISR"]
        for register in interface.bundles["control"]:
            if register.role == "control":
                continue
            name_ = f"{register.name}_1" if register.width > 32 else register.name
            if register.role == "memory":
                name_ = f"Memory_{register.name}"
            assert registers[name_]["address_offset"] == register.offset
            if register.width > 32 and register.role != "memory":
                high = registers[f"{register.name}_2"]
                assert high["address_offset"] == register.offset + 4


def test_addresses_and_interrupts_of_stream() -> None:
    metadata = parsed("stream")
    ips = metadata.ip_dict
    assert ips["scale_stream_0"]["phys_addr"] == 0x4000_0000
    assert ips["axi_dma_0"]["phys_addr"] == 0x4001_0000
    assert ips["axi_dma_0"]["addr_range"] == 0x1_0000
    assert metadata.interrupt_controllers["axi_intc_0"]["raw_irq"] == 61
    pins = {pin: item["index"] for pin, item in metadata.interrupt_pins.items()}
    assert pins["scale_stream_0/interrupt"] == 0
    assert pins["axi_dma_0/mm2s_introut"] == 1
    assert pins["axi_dma_0/s2mm_introut"] == 2
    assert set(ips["axi_dma_0"]["interrupts"]) == {"mm2s_introut", "s2mm_introut"}


def test_single_interrupt_needs_no_concat() -> None:
    metadata = parsed("vadd")
    assert metadata.interrupt_pins["vadd_0/interrupt"]["index"] == 0
    assert metadata.interrupt_controllers["axi_intc_0"]["raw_irq"] == 61


def test_dma_parameters_are_those_upstream_reads() -> None:
    item = parsed("stream").ip_dict["axi_dma_0"]
    assert item["type"] in DMA.bindto
    parameters = item["parameters"]
    wanted = {
        "c_include_sg": "0",
        "c_sg_length_width": "23",
        "c_include_mm2s": "1",
        "c_include_mm2s_dre": "0",
        "c_include_s2mm_dre": "0",
        "c_m_axi_mm2s_data_width": "32",
        "c_mm2s_burst_size": "16",
        "c_micro_dma": "0",
    }
    assert {key: parameters[key] for key in wanted} == wanted
    assert parameters["C_SG_LENGTH_WIDTH"] == "23"


@pytest.mark.parametrize("name", OVERLAYS)
def test_clock_on_the_board_is_the_description_s(name: str) -> None:
    clock = parsed(name).clock_dict[0]
    assert clock["enable"] == 1
    assert 50 * 20 / (clock["divisor0"] * clock["divisor1"]) == 100
    assert not any(parsed(name).clock_dict[i]["enable"] for i in (1, 2, 3))


def test_two_units() -> None:
    ips = parsed("gemm_dual").ip_dict
    assert ips["gemm_0"]["type"] == "xilinx.com:hls:gemm:1.0"
    assert ips["gemm_lut_0"]["type"] == "xilinx.com:hls:gemm_lut:1.0"
    assert ips["gemm_0"]["phys_addr"] != ips["gemm_lut_0"]["phys_addr"]


def test_names_of_wide_memory_and_valid_registers() -> None:
    registers = (
        Register("AP_CTRL", 0x00, 32, "inout", "control"),
        Register("wide", 0x10, 96, "in", "data", 12, "wide"),
        Register("flag", 0x20, 1, "in", "data", 4, "flag"),
        Register("total", 0x28, 32, "out", "data", 4, "total"),
        Register("total_ctrl", 0x2C, 1, "out", "valid", 4, "total"),
        Register("table", 0x40, 8, "in", "memory", 64, "table"),
    )
    entries = {entry.name: entry for entry in register_entries(registers)}
    assert list(entries) == [
        "CTRL", "wide_1", "wide_2", "wide_3", "flag", "total", "total_ctrl", "Memory_table",
    ]  # fmt: skip
    assert entries["wide_3"].offset == 0x18
    assert [(f.name, f.width) for f in entries["flag"].fields] == [("flag", 1), ("RESERVED", 31)]
    assert entries["total"].access == "read-only"
    assert entries["total_ctrl"].fields[0].name == "total_ap_vld"
    assert entries["Memory_table"].size == 64


def test_fields_of_every_control_register_fill_32_bits() -> None:
    control = [Register(n, 4 * i, 32, "inout", "control") for i, n in
               enumerate(("AP_CTRL", "GIE", "IER", "ISR"))]  # fmt: skip
    for chain in (False, True):
        for entry in register_entries(control, chain=chain):
            covered = sorted(
                bit for f in entry.fields for bit in range(f.offset, f.offset + f.width)
            )
            assert covered == list(range(32)), entry.name


def test_a_kernel_without_control_registers_is_refused() -> None:
    wires = Interface("f", Path("f.cpp"), "vitis", "ap_ctrl_hs", None, (), None, {})
    with pytest.raises(Exception, match="s_axilite port=return"):
        kernel_cell("f_0", wires)


def test_free_running_kernel_has_neither_slave_nor_interrupt() -> None:
    free = Interface("f", Path("f.cpp"), "vitis", "ap_ctrl_none", None, (), None, {})
    cell = kernel_cell("f_0", free)
    assert cell.buses == ()
    assert [pin.name for pin in cell.pins] == ["ap_clk", "ap_rst_n"]
