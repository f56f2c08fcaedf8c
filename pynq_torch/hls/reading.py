"""A function of a kernel's C++ with its line numbers, for reading in a notebook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from pynq_torch.errors import KernelError

from .kernels import strip_comments

if TYPE_CHECKING:
    from .interface import Argument, Axis, Interface

__all__ = ["excerpt", "format_interface"]


def excerpt(source: Path | str, function: str) -> str:
    """Return the definition of a function with line numbers, and the comment above it.

    Parameters
    ----------
    source : path
        A C++ file.
    function : str
        The function's name, without namespaces.

    Raises
    ------
    KernelError
        The file does not define it.
    """
    path = Path(source)
    text = path.read_text(encoding="utf-8")
    code = strip_comments(text)
    pattern = re.compile(rf"^[^\n;{{}}#]*\b{re.escape(function)}\s*\([^;{{}}]*\)[^;{{}}]*\{{", re.M)
    match = pattern.search(code)
    if match is None:
        raise KernelError(f"{path.name} defines no function {function!r}", path.stem)
    end, depth = match.end(), 1
    while depth and end < len(code):
        depth += {"{": 1, "}": -1}.get(code[end], 0)
        end += 1
    lines = text.splitlines()
    # The match may begin with blank lines, which were comments.
    first = code.count("\n", 0, match.start() + len(match.group()) - len(match.group().lstrip()))
    while first and re.match(r"\s*(//|template\b)", lines[first - 1]):
        first -= 1
    last = code.count("\n", 0, end)
    width = len(str(last + 1))
    shown = enumerate(lines[first : last + 1], start=first + 1)
    return "\n".join(f"{number:{width}}  {line}".rstrip() for number, line in shown)


def format_interface(interface: Interface) -> str:
    """Return the interface as a table for people."""
    lines = [f"{interface.top}  ({interface.tool}, {interface.control})"]
    if interface.control_bundle is None and interface.control != "ap_ctrl_none":
        lines.append("ap_start and ap_done are wires: no s_axilite pragma on port=return")
    for bundle, registers in interface.bundles.items():
        lines += ["", f"s_axi_{bundle}", "  offset  bits  dir    register"]
        for item in registers:
            last = item.offset + item.nbytes - 1
            span = f"  .. {last:#x}" if item.role == "memory" else ""
            lines.append(
                f"  {item.offset:#06x}  {item.width:>4}  {item.direction:<5}  {item.name}{span}"
            )
    masters = [
        f"m_axi_{master.name}: {master.data_bits} bits wide, "
        f"{master.address_bits}-bit addresses, for {', '.join(master.arguments)}"
        for master in interface.axi_bundles.values()
    ]
    streams = [_stream_line(a, a.axis) for a in interface.arguments if a.axis is not None]
    wires = [item.name for item in interface.arguments if item.kind == "none"]
    for block in (masters, streams, [f"wires, no register: {', '.join(wires)}"] if wires else []):
        lines += ["", *block] if block else []
    lines += [f"note: {note}" for note in interface.notes]
    lines += [f"warning: {warning}" for warning in interface.warnings]
    return "\n".join(lines)


def _stream_line(argument: Argument, axis: Axis) -> str:
    signals = [f"TDATA {8 * axis.data_bytes}"]
    for name, bits in axis.channels.items():
        signals.append(f"{name} {bits}" if name in ("TUSER", "TID", "TDEST") else name)
    count = f" x {axis.count}" if axis.count > 1 else ""
    return f"axis {argument.name}{count} ({argument.direction}): {', '.join(signals)}"
