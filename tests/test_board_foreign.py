"""Other people's designs, end to end: names, cases, parameters, slaves and wires."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import start, wait_done, write_overlay
from pynq import MMIO, Overlay, allocate

import pynq_torch
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
