"""The words of INTERFACE directives, and what is said of one that does not exist.

Those of Vitis HLS (UG1399, "pragma HLS interface" and "config_interface") and of Vivado HLS (UG902,
"set_directive_interface" and "config_interface").
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from pynq_torch.errors import InterfaceError

__all__ = ["FLAGS", "MODES", "OFFSETS", "check_command", "check_mode", "check_setting", "nearest"]

#: Of s_axilite an offset is a number; of m_axi one of these.
OFFSETS = ("slave", "direct", "off")
_MODES = """
    ap_ctrl_hs ap_ctrl_chain ap_ctrl_none
    ap_none ap_stable ap_vld ap_ovld ap_ack ap_hs ap_memory ap_fifo ap_bus bram ap_auto
    s_axilite m_axi axis
"""
MODES = frozenset(_MODES.split())
#: Options that stand alone.
FLAGS = frozenset({"register", "direct_io", "interrupt", "autorestart"})
_VALUES = """
    bundle channel clock depth latency max_read_burst_length max_widen_bitwidth
    max_write_burst_length metadata name num_read_outstanding num_write_outstanding offset
    register_mode storage_impl storage_type mailbox cache
"""
_OPTIONS = FLAGS | frozenset(_VALUES.split())
_CONFIG = """
    clock_enable default_interface default_slave_interface expose_global
    m_axi_addr64 m_axi_alignment_byte_size m_axi_auto_id_channel m_axi_auto_max_ports
    m_axi_buffer_impl m_axi_cache_impl m_axi_conservative_mode m_axi_flush_mode m_axi_latency
    m_axi_max_bitwidth m_axi_max_read_burst_length m_axi_max_widen_bitwidth
    m_axi_max_write_burst_length m_axi_min_bitwidth m_axi_num_read_outstanding
    m_axi_num_write_outstanding m_axi_offset register_io s_axilite_auto_restart_counter
    s_axilite_data64 s_axilite_interrupt_mode s_axilite_mailbox s_axilite_status_regs
    s_axilite_sw_reset trim_dangling_port
"""
_SETTINGS = frozenset(_CONFIG.split())
_ALIKE = 0.8


def nearest(word: str, known: Collection[str]) -> str:
    """Return ``"; did you mean ...?"`` for the nearest of the known words, or ``""``."""
    found = difflib.get_close_matches(word.lower(), sorted(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def check_mode(mode: str | None, options: Mapping[str, str], where: str) -> list[str]:
    """Look at the words of one directive.

    Returns
    -------
    list of str
        A warning for each option that does not exist.

    Raises
    ------
    InterfaceError
        The mode does not exist, or the offset of an m_axi port is none.
    """
    if mode is not None and mode.startswith("$"):
        return [f"{where}: the mode {mode} is a variable of Tcl, which is not followed"]
    if mode is not None and mode not in MODES:
        hint = nearest(mode, MODES) or f"; there are {', '.join(sorted(MODES))}"
        raise InterfaceError(f"{where}: INTERFACE has no mode {mode!r}{hint}")
    offset = options.get("offset", "slave")
    if mode == "m_axi" and offset.lower() not in OFFSETS and not offset.startswith("$"):
        raise InterfaceError(
            f"{where}: offset={offset} of an m_axi port; expected {', '.join(OFFSETS)}"
            f"{nearest(offset, OFFSETS)}"
        )
    return [
        f"{where}: INTERFACE has no option {option!r}, which is ignored{nearest(option, _OPTIONS)}"
        for option in options
        if option not in _OPTIONS and option not in MODES
    ]


def check_setting(name: str, where: str) -> list[str]:
    """Return a warning where ``config_interface`` has no option `name`."""
    if name in _SETTINGS:
        return []
    return [f"{where}: config_interface has no option {name!r}{nearest(name, _SETTINGS)}"]


def check_command(word: str, commands: Collection[str], where: str) -> list[str]:
    """Return a warning where a word is one of `commands` but for a letter or two."""
    for command in commands:
        stem = command.removesuffix("interface")
        rest = word.lower().removeprefix(stem)
        likely = word.lower().startswith(stem) or rest.endswith("interface")
        if word != command and likely and _alike(rest, command.removeprefix(stem)):
            return [f"{where}: {word} is ignored; did you mean {command}?"]
        if word != command and likely and _alike(word.lower(), command):
            return [f"{where}: {word} is ignored; did you mean {command}?"]
    return []


def _alike(word: str, other: str) -> bool:
    return difflib.SequenceMatcher(None, word, other).ratio() >= _ALIKE
