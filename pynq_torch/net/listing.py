"""A program as a table that a person reads, an instruction a line."""

from __future__ import annotations

from collections.abc import Iterator

from pynq_torch.kernels.net.format import ADD, CONV, OPCODES, SUM, Instruction
from pynq_torch.tables import Table, size_text

from .file import Network, Port

__all__ = ["listing", "summary"]


def listing(network: Network) -> Table:
    """Return the instructions of a network: what each does, from where to where."""
    header = ["", "layer", "does", "from", "to", "window", "zero points", "bounds", "products"]
    names = (*network.names, *[""] * len(network.program))
    items = network.check()
    rows = [[i, names[i], *_row(item)] for i, item in enumerate(items)]
    return Table(header, [*rows, [len(items), "", "end", *[""] * 6]])


def _row(item: Instruction) -> Iterator[str]:
    groups = f", {item.groups} groups" if item.opcode == CONV and item.groups > 1 else ""
    yield OPCODES[item.opcode] + groups + (" + add" if item.flags & SUM else "")
    shape = size_text((item.channels, item.height, item.width))
    second = f" + {item.b}" if item.reads_b else ""
    yield f"{shape} at {item.x}{second}"
    kind = " float32" if item.size == 4 else ""
    yield f"{size_text((item.outs, item.rows, item.columns))}{kind} at {item.y}"
    yield "" if item.opcode == ADD else _window(item)
    zeros = [item.x_zero, *([item.b_zero] if item.reads_b else []), item.y_zero]
    yield " ".join(map(str, zeros))
    yield f"{item.low} to {item.high}"
    yield f"{item.work:,}"


def _window(item: Instruction) -> str:
    parts = [size_text((item.k_rows, item.k_columns))]
    for name, pair, usual in (
        ("stride", (item.stride_y, item.stride_x), 1),
        ("pad", (item.pad_y, item.pad_x), 0),
        ("dilation", (item.step_y, item.step_x), 1),
    ):
        if pair != (usual, usual):
            parts.append(f"{name} {size_text(pair)}")
    return ", ".join(parts)


def summary(network: Network) -> str:
    """Return what a network takes and gives, and its memory, in a few lines."""
    return "\n".join(
        [
            *(f"input   {_port(port)}" for port in network.inputs),
            *(f"output  {_port(port)}" for port in network.outputs),
            f"memory  {network.weights.nbytes:,} bytes of weights, {network.tables.nbytes:,} of "
            f"tables, {network.arena:,} of activations",
            f"runs on overlay {network.overlay!r}, format version {network.version}",
        ]
    )


def _port(port: Port) -> str:
    steps = "" if port.dtype == "float32" else f", scale {port.scale:.6g}, zero point {port.zero}"
    return f"{port.dtype} {size_text(port.shape)} at byte {port.at}{steps}"
