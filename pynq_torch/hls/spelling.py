"""The words of INTERFACE directives, and the messages about words that do not exist.

Those of Vitis HLS (UG1399, "pragma HLS interface" and "config_interface") and of Vivado HLS (UG902,
"set_directive_interface" and "config_interface").
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping

from pynq_torch.errors import InterfaceError

__all__ = [
    "BLOCK_MODES",
    "FLAGS",
    "MODES",
    "NUMBERS",
    "OFFSETS",
    "check_command",
    "check_mode",
    "check_setting",
    "contradicts",
    "is_width",
    "nearest",
]

#: The offset of s_axilite is a number, that of m_axi one of these.
OFFSETS = ("slave", "direct", "off")
#: Modes of ``port=return`` alone: how the kernel is started.
BLOCK_MODES = ("ap_ctrl_hs", "ap_ctrl_chain", "ap_ctrl_none")
_MODES = """
    ap_none ap_stable ap_vld ap_ovld ap_ack ap_hs ap_memory ap_fifo ap_bus bram ap_auto
    s_axilite m_axi axis
"""
MODES = frozenset((*BLOCK_MODES, *_MODES.split()))
#: Modes that say how the data of an argument is moved; s_axilite goes with all but axis.
_DATA_MODES = frozenset(_MODES.split()) - {"s_axilite", "ap_auto"}
#: Options without a value.
FLAGS = frozenset({"register", "direct_io", "interrupt", "autorestart"})
#: What may stand behind ``register`` in Vivado HLS: which way an AXI4-Stream has registers.
_REGISTERED = frozenset({"both", "forward", "reverse", "off"})
#: Options whose value is a whole number, and the smallest it may be.
NUMBERS = {
    "depth": 1,
    "latency": 0,
    "max_read_burst_length": 0,
    "max_widen_bitwidth": 0,
    "max_write_burst_length": 0,
    "num_read_outstanding": 0,
    "num_write_outstanding": 0,
}
_VALUES = """
    bundle channel clock metadata name offset register_mode storage_impl storage_type mailbox cache
"""
_OPTIONS = FLAGS | NUMBERS.keys() | frozenset(_VALUES.split())
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
#: Settings that change the interface, and the values they may have.
_SWITCH = ("0", "1", "true", "false", "yes", "no", "on", "off")
_VALUES_OF = {
    "m_axi_addr64": _SWITCH,
    "m_axi_offset": OFFSETS,
    "s_axilite_auto_restart_counter": _SWITCH,
    "s_axilite_data64": _SWITCH,
}
_ALIKE = 0.8


def is_width(bits: int) -> bool:
    """Whether ``max_widen_bitwidth`` may be so: 0, or a power of two up to 1024 (UG1448)."""
    return 0 <= bits <= 1024 and not bits & (bits - 1)


def nearest(word: str, known: Collection[str]) -> str:
    """Return ``"; did you mean ...?"`` for the nearest of the known words, or ``""``."""
    found = difflib.get_close_matches(word.lower(), sorted({name.lower() for name in known}), n=1)
    if not found:
        return ""
    same = [name for name in sorted(known) if name.lower() == found[0]]  # `A` and `a`
    return f"; did you mean {max(same, key=lambda name: _ratio(word, name))}?"


def check_mode(mode: str | None, options: Mapping[str, str], where: str) -> list[str]:
    """Look at the words of one directive.

    Returns
    -------
    list of str
        A warning for each option that does not exist, or has no value.

    Raises
    ------
    InterfaceError
        The mode does not exist, an m_axi port cannot have this offset, or ports this bundle.
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
    bundle = options.get("bundle", "")
    if not re.fullmatch(r"[A-Za-z0-9_]*|\$.*", bundle):
        raise InterfaceError(
            f"{where}: bundle={bundle}; expected letters, digits and underscores, since it is a "
            "part of the names of ports"
        )
    known = _OPTIONS | MODES | (_REGISTERED if "register" in options else set())
    unknown = [option for option in options if option not in known]
    return [
        f"{where}: INTERFACE has no option {option!r}, which is ignored{nearest(option, _OPTIONS)}"
        for option in unknown
    ] + [
        f"{where}: {option}= has no value and is ignored; write {option}=VALUE, or leave it out"
        for option, value in options.items()
        if not value and option not in unknown
    ]


def contradicts(mode: str, other: str) -> bool:
    """Return whether one port cannot have both modes."""
    if mode == other:
        return False
    return any(
        {mode, other} <= group for group in (_DATA_MODES, set(BLOCK_MODES), {"axis", "s_axilite"})
    )


def check_setting(name: str, value: str, where: str) -> list[str]:
    """Return a warning where ``config_interface`` has no option `name`.

    Raises
    ------
    InterfaceError
        The interface depends on the option, and it cannot have this value.
    """
    if name not in _SETTINGS:
        return [f"{where}: config_interface has no option {name!r}{nearest(name, _SETTINGS)}"]
    values = _VALUES_OF.get(name, ())
    if values and value.lower() not in values and not value.startswith("$"):
        raise InterfaceError(
            f"{where}: config_interface has {name}={value}; expected {', '.join(values)}"
            f"{nearest(value, values)}"
        )
    return []


def check_command(word: str, commands: Collection[str], where: str) -> list[str]:
    """Return a warning where a word is one of `commands` but for a letter or two."""
    for command in commands:
        stem = command.removesuffix("interface")
        rest, has_stem = word.lower().removeprefix(stem), word.lower().startswith(stem)
        likely = has_stem or rest.endswith("interface")
        alike = _alike(rest, command.removeprefix(stem))
        alike = alike or (not has_stem and _alike(word.lower(), command))
        if word != command and likely and alike:
            return [f"{where}: {word} is ignored; did you mean {command}?"]
    return []


def _alike(word: str, other: str) -> bool:
    return _ratio(word, other) >= _ALIKE


def _ratio(word: str, other: str) -> float:
    return difflib.SequenceMatcher(None, word, other).ratio()
