"""What a virtual board does with each type of IP that it knows, in one table.

``docs/ip.md`` shows it. A kernel (HLS, module reference, a user's own IP) is not in it: it runs
where its sources are found, and has registers only where they are not.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["TABLE", "Row", "Treatment", "as_markdown", "names", "treatment"]


class Treatment(enum.Enum):
    """What happens to an IP."""

    MODELLED = "modelled"
    REGISTERS = "registers only"
    PASSED = "passed through"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True)
class Row:
    """IP types that are treated alike, by the third field of their VLNV."""

    treatment: Treatment
    kind: str  #: what they are
    names: tuple[str, ...]
    remark: str


def _row(treatment: Treatment, kind: str, listed: str, remark: str) -> Row:
    return Row(treatment, kind, tuple(listed.split()), remark)


TABLE: tuple[Row, ...] = (
    _row(
        Treatment.MODELLED,
        "processing system",
        "processing_system7",
        "DDR, the AXI ports, FCLKs, IRQ_F2P, EMIO GPIO and the XADC; no other peripheral of the PS",
    ),
    _row(
        Treatment.MODELLED,
        "peripheral",
        "axi_bram_ctrl axi_dma axi_gpio axi_intc axi_timer",
        "registers and interrupts as in the vendor's documents; limits in virtual_board.md",
    ),
    _row(
        Treatment.MODELLED,
        "monitor",
        "xadc_wiz",
        "constant values: 45 degrees and nominal voltages; no analog inputs, alarms and streams",
    ),
    _row(
        Treatment.MODELLED,
        "serial port",
        "axi_iic axi_quad_spi axi_uartlite",
        "registers and interrupts; nothing is at the pins: UART bytes come back, SPI words with "
        "SPICR.LOOP or tied pins, IIC addresses are not acknowledged; a program can attach devices",
    ),
    _row(
        Treatment.MODELLED,
        "stream and registers",
        "axi_fifo_mm_s",
        "packets through AXI4-Lite or the AXI4 data port, store-and-forward or cut-through; not "
        "the control stream (AXI_STR_TXC)",
    ),
    _row(
        Treatment.MODELLED,
        "video",
        "axi_vdma",
        "frames between memory and streams, as fast as those go, at most 60 a second out of "
        "memory; not its frame sync inputs, delay interrupt and vertical flip, nor genlock with "
        "another VDMA",
    ),
    _row(
        Treatment.MODELLED,
        "stream",
        "axis_dwidth_converter axis_subset_converter axis_broadcaster axis_combiner axis_switch",
        "beats, not their timing; a parameter that is not carried is named in a warning, and the "
        "streams stay open",
    ),
    _row(
        Treatment.MODELLED,
        "gate",
        "xlslice ilslice util_vector_logic ilvector_logic util_reduced_logic ilreduced_logic",
        "between GPIO, EMIO GPIO, resets and interrupts; a warning names the pin of a kernel or "
        "another IP that a GPIO reads and that is not modelled",
    ),
    _row(
        Treatment.PASSED,
        "memory",
        "blk_mem_gen",
        "block RAM belongs to the controller in front of it; a second port is not modelled",
    ),
    _row(
        Treatment.PASSED,
        "AXI4 interconnect",
        "axi_interconnect smartconnect axi_crossbar axi_protocol_converter axi_dwidth_converter "
        "axi_clock_converter axi_data_fifo axi_register_slice axi_mmu",
        "the address map of the handoff says who reaches what",
    ),
    _row(
        Treatment.PASSED,
        "stream",
        "axis_data_fifo axis_register_slice axis_clock_converter fifo_generator",
        "beats pass unchanged; a FIFO holds as many as its depth says",
    ),
    _row(
        Treatment.PASSED,
        "concat",
        "xlconcat ilconcat",
        "bits are counted as the wires run",
    ),
    _row(
        Treatment.PASSED,
        "constant",
        "xlconstant ilconstant",
        "known to the ports that it ties",
    ),
    _row(
        Treatment.IGNORED,
        "clock and reset",
        "proc_sys_reset util_ds_buf util_idelay_ctrl",
        "everything is out of reset once the overlay is loaded",
    ),
    _row(
        Treatment.IGNORED,
        "debug",
        "ila system_ila vio dbg_hub jtag_axi axis_ila",
        "board rtl records waves instead",
    ),
    _row(
        Treatment.IGNORED,
        "MicroBlaze",
        "microblaze lmb_v10 lmb_bram_if_cntlr mdm dfx_decoupler",
        "no processor runs in the PL",
    ),
    _row(
        Treatment.REGISTERS,
        "bus to the outside",
        "axi_uart16550 axi_ethernetlite axi_emc can",
        "nothing is at the pins",
    ),
    _row(
        Treatment.REGISTERS,
        "data mover",
        "axi_cdma axi_mcdma axi_vfifo_ctrl",
        "no byte moves; a stream that reaches it stays open",
    ),
    _row(
        Treatment.REGISTERS,
        "clock, monitor and configuration",
        "clk_wiz axi_hwicap axi_perf_mon axi_timebase_wdt debug_bridge mailbox mutex "
        "dfx_controller dfx_axi_shutdown_manager prc pr_axi_shutdown_manager",
        "clocks keep the frequency of the handoff",
    ),
    _row(
        Treatment.REGISTERS,
        "video",
        "v_tc v_tpg v_proc_ss v_mix v_frmbuf_rd v_frmbuf_wr v_demosaic v_gamma_lut v_axi4s_remap "
        "axi_dynclk mipi_csi2_rx_subsystem mipi_dsi_tx_subsystem",
        "no picture moves; a stream that reaches it stays open",
    ),
    _row(
        Treatment.REFUSED,
        "stream",
        "axis_interconnect axis_accelerator_adapter axis_vio axi_datamover",
        "its streams stay open: the wait for them ends in an error that names it",
    ),
    _row(
        Treatment.REFUSED,
        "arithmetic core",
        "fir_compiler cic_compiler xfft cordic dds_compiler floating_point div_gen cmpy mult_gen "
        "c_addsub c_counter_binary c_shift_ram viterbi convolution rs_encoder rs_decoder",
        "its streams stay open, and its wires carry no value",
    ),
    _row(
        Treatment.REFUSED,
        "video",
        "v_axi4s_vid_out v_vid_in_axi4s dvi2rgb rgb2dvi",
        "its streams stay open: nothing is at the HDMI pins",
    ),
)

_BY_NAME = {name: row for row in TABLE for name in row.names}


def treatment(name: str) -> Treatment | None:
    """Return what happens to an IP type, None where the table does not list it."""
    row = _BY_NAME.get(name)
    return row.treatment if row is not None else None


def names(treatment: Treatment, kind: str) -> frozenset[str]:
    """Return the IP types of a kind that are treated so."""
    rows = (row for row in TABLE if (row.treatment, row.kind) == (treatment, kind))
    return frozenset(name for row in rows for name in row.names)


def as_markdown() -> str:
    """Return the table as ``docs/ip.md`` shows it."""
    lines = ["| what | kind | IP (third field of the VLNV) | remark |", "|---|---|---|---|"]
    for row in TABLE:
        listed = ", ".join(f"`{name}`" for name in row.names)
        lines.append(f"| {row.treatment.value} | {row.kind} | {listed} | {row.remark} |")
    return "\n".join(lines) + "\n"
