"""A block design as the connectivity file of ``v++ --link``."""

from __future__ import annotations

from pynq_torch.errors import HandoffError

from .model import Cell, Design

__all__ = ["write_connectivity"]


def write_connectivity(design: Design, memory: str = "") -> str:
    """Return the v++ configuration of the kernels of `design`.

    Only kernels are linked by v++: other IP, and streams to it, belong to the platform, so they
    are named in comments.

    Parameters
    ----------
    design : Design
    memory : str
        The memory of a card, e.g. ``"HBM[0]"``, in place of the HP ports of a Zynq.

    Raises
    ------
    HandoffError
        Streams end at other IP, and a card has none.
    """
    kernels = {cell.name: cell for cell in design.kernels}
    lines = [
        f"# Overlay {design.name}: {design.summary}",
        f"# Written by pynq_torch.hls.design from hw/overlays/{design.name}/overlay.toml;",
        "# edit that file instead.",
        "",
        "[connectivity]",
    ]
    for kind in dict.fromkeys(cell.kind for cell in kernels.values()):
        units = [cell.name for cell in kernels.values() if cell.kind == kind]
        lines.append(f"nk={kind}:{len(units)}:{'.'.join(units)}")
    for segment in design.segments:
        if segment.master[0] in kernels:
            port = memory or segment.slave[1].removeprefix("S_AXI_")
            lines.append(f"sp={'.'.join(segment.master)}:{port}")
    lines += _streams(design, set(kernels), has_platform=not memory)
    lines += ["", "[clock]"]
    lines += [f"freqHz={round(design.clock_mhz * 1e6)}:{name}" for name in kernels]
    return "\n".join(lines) + "\n"


def _streams(design: Design, kernels: set[str], *, has_platform: bool) -> list[str]:
    """Return the streams between kernels, and as comments those to other IP."""
    lines, outside = [], []
    for source, sink in design.links:
        if design.cell(source[0]).bus(source[1]).protocol != "axis":
            continue
        text = f"stream_connect={'.'.join(source)}:{'.'.join(sink)}"
        if source[0] in kernels and sink[0] in kernels:
            lines.append(text)
        else:
            outside.append(f"# {text}")
    if outside:
        others = ", ".join(cell.name for cell in design.cells if _is_platform(cell))
        if not has_platform:
            raise HandoffError(
                f"overlay {design.name} has streams to {others}; expected kernels whose streams "
                "end at kernels, since a card's platform has no such IP. Use memory ports (m_axi)"
            )
        lines += [f"# These streams end at {others}, which the platform has to bring:", *outside]
    return lines


def _is_platform(cell: Cell) -> bool:
    return (
        cell.role == "peripheral"
        and any(bus.protocol == "axis" for bus in cell.buses)
        and not cell.is_kernel
    )
