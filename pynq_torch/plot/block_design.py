"""The block diagram of a design, as SVG: Graphviz places the boxes.

Graphviz runs in a process of its own: it writes to the standard error of C, and a picture is no
reason to end the notebook's process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pynq_torch.errors import PynqTorchError, missing_package
from pynq_torch.tables import count_text

if TYPE_CHECKING:
    from pynq_torch.board.diagram import Block, Diagram

__all__ = ["BlockDesign"]

#: Boxes have a fill and dark text of their own; lines and what is beside them is a grey that can be
#: read on white and on black.
_FILLS = {
    "processor": "#CFE3F5",
    "kernel": "#BFE5D6",
    "IP": "#F7E1B5",
    "interconnect": "#E2E2E2",
}
_LINES = {"registers": "#767676", "memory": "#0072B2", "stream": "#D55E00", "interrupt": "#AA4499"}
_WORDS = {
    "registers": "AXI to registers",
    "memory": "AXI to memory",
    "stream": "AXI4-Stream",
    "interrupt": "interrupt",
}
_DRAW = """
import sys
import pygraphviz
source = sys.stdin.buffer.read().decode()
sys.stdout.buffer.write(pygraphviz.AGraph(string=source).draw(format="svg", prog="dot"))
"""
_TIMEOUT_S = 60
#: The fonts of this PC do not count: a drawing is the same everywhere, and wide enough for any.
_NO_FONTS = {"FONTCONFIG_FILE": os.devnull}
#: More registers than these would make a tooltip that no screen holds.
_SHOWN = 24


@dataclass(frozen=True)
class BlockDesign:
    """A design as a drawing: SVG in a notebook, a list of its connections as text.

    Pointing at a box shows its registers.

    Parameters
    ----------
    diagram : Diagram
        From `pynq_torch.board.diagram.read_diagram`.
    """

    diagram: Diagram

    @cached_property
    def svg(self) -> str:
        """The drawing.

        Raises
        ------
        MissingPackage
            pygraphviz is not installed.
        """
        drawn = subprocess.run(
            [sys.executable, "-c", _DRAW], input=self.dot.encode(), capture_output=True,
            timeout=_TIMEOUT_S, check=False, env=os.environ | _NO_FONTS,
        )  # fmt: skip
        said = drawn.stderr.decode(errors="replace")
        if drawn.returncode:
            if "No module named 'pygraphviz'" in said:
                raise PynqTorchError(missing_package("pygraphviz", "A block diagram"))
            last = said.strip().splitlines()[-1:] or [f"exit status {drawn.returncode}"]
            raise PynqTorchError(f"Graphviz could not draw {self.diagram.name}: {last[0]}")
        text = drawn.stdout.decode()
        label = escape(f"Block diagram: {self}", quote=True)
        attributes = f'role="img" aria-label="{label}" style="max-width: 100%; height: auto"'
        return f"<svg {attributes}" + text[text.index("<svg") + len("<svg") :]

    @property
    def dot(self) -> str:
        """The drawing's source in Graphviz's language."""
        ranks = _ranks(self.diagram)
        column = " ".join(_quoted(name) for name, rank in ranks.items() if int(rank) == 1)
        rows = (*self._head(), *self._boxes(), f"{{rank=same; {column}}}", *self._lines(ranks))
        return "\n".join(("digraph {", *rows, "}"))

    def save(self, path: Path | str) -> Path:
        """Write the SVG to a file, and return its path."""
        Path(path).write_text(self.svg + "\n", encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        kernels = [block.name for block in self.diagram.blocks if block.kind == "kernel"]
        return f"{self.diagram.name} with {', '.join(kernels) or 'no kernel'}"

    def __repr__(self) -> str:
        rows = [f"{self}: {count_text(len(self.diagram.wires), 'connection')}"]
        for wire in self.diagram.wires:
            bits = f", {wire.bits} bits" if wire.bits else ""
            ends = f"{'.'.join(wire.source)} -> {'.'.join(wire.sink)}"
            rows.append(f"  {ends} ({_WORDS[wire.kind]}{bits})")
        return "\n".join(rows)

    # ---- Graphviz ------------------------------------------------------------------------------

    def _head(self) -> Iterator[str]:
        font = 'fontname="Helvetica,Arial,sans-serif"'
        yield 'rankdir=LR; bgcolor="transparent"; nodesep=0.25; ranksep=0.9; labelloc=b;'
        yield f"graph [{font}, fontsize=10]; node [{font}, fontsize=11, shape=plain];"
        yield f'edge [{font}, fontsize=9, fontcolor="#767676", arrowsize=0.6];'
        kinds = dict.fromkeys(wire.kind for wire in self.diagram.wires)
        names = (f'<font color="{_LINES[kind]}">&#9473; {_WORDS[kind]}</font>' for kind in kinds)
        yield f"label=<{' &#160; '.join(names)}>;"

    def _boxes(self) -> Iterator[str]:
        for block in self.diagram.blocks:
            tip = "\n".join((f"{block.name} ({block.type})", *block.registers[:_SHOWN]))
            if len(block.registers) > _SHOWN:
                tip += f"\nand {len(block.registers) - _SHOWN} more"
            yield f"{_quoted(block.name)} [label=<{_table(block)}>, tooltip={_quoted(tip)}];"

    def _lines(self, ranks: dict[str, float]) -> Iterator[str]:
        for wire in self.diagram.wires:
            # What leads to the processor, or to a DMA, is laid out from there: those stay left.
            back = ranks[wire.source[0]] > ranks[wire.sink[0]]
            ends = (wire.sink, wire.source) if back else (wire.source, wire.sink)
            bits = f"{wire.bits}" if wire.bits and wire.kind != "interrupt" else ""
            style = "dashed" if wire.kind == "interrupt" else "solid"
            tip = f"{'.'.join(wire.source)} to {'.'.join(wire.sink)}"
            yield (
                f"{_end(ends[0])} -> {_end(ends[1])} "
                f'[color="{_LINES[wire.kind]}", style={style}, label="{bits}", '
                f"dir={'back' if back else 'forward'}, edgetooltip={_quoted(tip)}];"
            )


def _table(block: Block) -> str:
    """Return a box: name, type and facts, then a row for each port."""
    facts = (block.type, *block.facts)
    lines = "".join(
        f'<br/><font point-size="9" color="#333333">{escape(fact)}</font>' for fact in facts
    )
    name = f'<font color="#111111"><b>{escape(block.name)}</b></font>'
    head = f'<tr><td align="left" balign="left">{name}{lines}</td></tr>'
    ports = () if block.kind == "interconnect" else block.ports
    rows = "".join(
        f'<tr><td port="{_port(port)}" align="left">'
        f'<font point-size="9" color="#111111">{escape(port)}</font></td></tr>'
        for port in ports
    )
    return (
        f'<table border="0" cellborder="1" cellspacing="0" cellpadding="4" color="#555555" '
        f'bgcolor="{_FILLS[block.kind]}">{head}{rows}</table>'
    )


def _ranks(diagram: Diagram) -> dict[str, float]:
    """Return how many connections lie between each block and the processor; kernels come last."""
    near: dict[str, set[str]] = {block.name: set() for block in diagram.blocks}
    for wire in diagram.wires:
        near[wire.source[0]].add(wire.sink[0])
        near[wire.sink[0]].add(wire.source[0])
    reached = {block.name: 0 for block in diagram.blocks if block.kind == "processor"}
    front = list(reached)
    for name in front:
        for other in sorted(near[name] - reached.keys()):
            reached[other] = reached[name] + 1
            front.append(other)
    kernels = {block.name for block in diagram.blocks if block.kind == "kernel"}
    return {name: reached.get(name, 0) + 0.5 * (name in kernels) for name in near}


def _end(end: tuple[str, str]) -> str:
    return f"{_quoted(end[0])}:{_quoted(_port(end[1]))}"


def _port(name: str) -> str:
    """Return a port's name as Graphviz takes it: a bracket or a quote would end it."""
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
