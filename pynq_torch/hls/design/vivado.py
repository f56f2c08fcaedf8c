"""A block design as the Tcl that Vivado runs in batch mode to make the real bitstream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from . import part
from .model import Cell, Design

__all__ = ["write_vivado_tcl"]

_HEAD = """\
# Overlay {name}: {summary}
# Written by pynq_torch.hls.design from hw/overlays/{name}/overlay.toml; edit that file instead.
#
# vivado -mode batch -source {name}.tcl -tclargs IP_REPOSITORY PROJECT_FOLDER RESULT_FOLDER

set overlay {name}
lassign $argv ip_repository project_folder result_folder

create_project -force $overlay $project_folder -part {part}
set_property ip_repo_paths $ip_repository [current_project]
update_ip_catalog

create_bd_design $overlay
"""

_TAIL = """
# Wrapper, implementation, and the two files that pynq needs.
validate_bd_design
save_bd_design
set block_design [get_files $overlay.bd]
make_wrapper -files $block_design -top -import
set_property top ${overlay}_wrapper [current_fileset]
update_compile_order -fileset sources_1
launch_runs impl_1 -to_step write_bitstream -jobs 4
wait_on_run impl_1
if {[get_property PROGRESS [get_runs impl_1]] ne "100%"} {
    error "$overlay: implementation failed, see $project_folder/$overlay.runs/impl_1/runme.log"
}
if {[get_property STATS.WNS [get_runs impl_1]] < 0} {
    set slack [get_property STATS.WNS [get_runs impl_1]]
    error "$overlay: timing is not met, the slack is $slack ns;\\
        lower clock_mhz in hw/overlays/$overlay/overlay.toml"
}
file mkdir $result_folder
file copy -force $project_folder/$overlay.runs/impl_1/${overlay}_wrapper.bit \\
    $result_folder/$overlay.bit
file copy -force $project_folder/$overlay.gen/sources_1/bd/$overlay/hw_handoff/$overlay.hwh \\
    $result_folder/$overlay.hwh
"""


def write_vivado_tcl(design: Design) -> str:
    """Return the Tcl that builds `design` in Vivado (2022.1 or later)."""
    head = _HEAD.format(name=design.name, summary=design.summary, part=part.PART)
    lines = [head]
    for port, vlnv in design.external:
        lines.append(f"create_bd_intf_port -mode Master -vlnv {vlnv} {port}")
    for cell in design.cells:
        lines += _cell(cell)
    lines.append("\n# Buses, source first.")
    for (source, bus), (sink, port) in design.links:
        driver, load = f"[get_bd_intf_pins {source}/{bus}]", f"[get_bd_intf_pins {sink}/{port}]"
        lines.append(f"connect_bd_intf_net {driver} {load}")
    processor = next(cell.name for cell in design.cells if cell.role == "ps")
    for port, _ in design.external:
        lines.append(
            f"connect_bd_intf_net [get_bd_intf_pins {processor}/{port}] [get_bd_intf_ports {port}]"
        )
    lines.append("\n# Clock, reset and interrupts, driver first.")
    for net in design.nets:
        pins = " \\\n    ".join(f"[get_bd_pins {cell}/{pin}]" for cell, pin in net.sinks)
        lines.append(f"connect_bd_net [get_bd_pins {'/'.join(net.source)}] \\\n    {pins}")
    lines.append("\n# Address maps.")
    for segment in design.segments:
        master = f"{segment.master[0]}/{segment.space}"
        slave = f"{'/'.join(segment.slave)}/{segment.block}"
        lines.append(
            f"assign_bd_address -offset 0x{segment.base:08X} -range 0x{segment.size:08X} \\\n"
            f"    -target_address_space [get_bd_addr_spaces {master}] \\\n"
            f"    [get_bd_addr_segs {slave}] -force"
        )
    return "\n".join(lines) + "\n" + _TAIL


def _cell(cell: Cell) -> Iterable[str]:
    yield f"\ncreate_bd_cell -type ip -vlnv {cell.vlnv} {cell.name}"
    if cell.config:
        yield f"set_property -dict [list \\\n{_config(cell.config)}\n] [get_bd_cells {cell.name}]"


def _config(config: Mapping[str, str]) -> str:
    return "\n".join(f"    CONFIG.{key} {{{value}}} \\" for key, value in config.items())
