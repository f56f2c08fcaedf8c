"""The block diagram of a design: what it has, and that it is drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import pynq_torch
from pynq_torch import overlay as overlays
from pynq_torch.board.diagram import Block, Diagram, Wire, read_diagram
from pynq_torch.cli import main
from pynq_torch.errors import PynqTorchError
from pynq_torch.paths import BITSTREAMS
from pynq_torch.plot.block_design import BlockDesign

SVG = "{http://www.w3.org/2000/svg}"


def _diagram(name: str) -> Diagram:
    return read_diagram(BITSTREAMS / name / f"{name}.bit")


def test_what_a_diagram_has():
    found = _diagram("packets")
    blocks = {block.name: block for block in found.blocks}
    assert {name: block.kind for name, block in blocks.items()} == {
        "processing_system7_0": "processor",
        "axi_periph": "interconnect",
        "axi_mem_hp0": "interconnect",
        "axi_mem_hp1": "interconnect",
        "packetize_0": "kernel",
        "axi_dma_0": "IP",
        "axi_intc_0": "IP",
    }
    assert blocks["packetize_0"].facts == ("0x40000000, 64 KB", "FCLK_CLK0, 100 MHz")
    assert blocks["packetize_0"].registers[:3] == ("0x00 CTRL", "0x04 GIER", "0x08 IP_IER")
    ends = {(*wire.source, *wire.sink): (wire.kind, wire.bits) for wire in found.wires}
    processor = "processing_system7_0"
    for end, what in {
        (processor, "M_AXI_GP0", "axi_periph", "S00_AXI"): ("registers", 32),
        ("axi_mem_hp0", "M00_AXI", processor, "S_AXI_HP0"): ("memory", 64),
        ("axi_intc_0", "irq", processor, "IRQ_F2P"): ("interrupt", None),
        ("axi_dma_0", "M_AXI_MM2S", "axi_mem_hp0", "S00_AXI"): ("memory", 32),
    }.items():
        assert ends[end] == what
    streams = [wire for wire in found.wires if wire.kind == "stream"]
    assert [wire.source[0] for wire in streams] == ["packetize_0", "axi_dma_0"]
    # Each block of the drawing is there because something reaches it: no reset, no constant.
    assert {name for wire in found.wires for name, _ in (wire.source, wire.sink)} == set(blocks)


@pytest.mark.parametrize("name", sorted(p.name for p in BITSTREAMS.iterdir() if p.is_dir()))
def test_every_overlay_can_be_drawn(name: str):
    drawn = BlockDesign(_diagram(name))
    root = ET.fromstring(drawn.svg)
    texts = {text.text for text in root.iter(f"{SVG}text")}
    for block in drawn.diagram.blocks:
        assert {block.name, *block.facts} <= texts
    edges = [g for g in root.iter(f"{SVG}g") if g.get("class") == "edge"]
    assert len(edges) == len(drawn.diagram.wires) > 3
    assert root.get("role") == "img" and name in str(root.get("aria-label"))


def test_names_that_mean_something_to_graphviz():
    odd = ('a"b', "<b>&amp;", "x\\", "h/ip]:p")
    blocks = tuple(Block(name, "kernel", "k<1>", ("m[0]", 'p"')) for name in odd)
    wires = tuple(Wire("memory", (name, "m[0]"), (odd[0], 'p"'), 32) for name in odd)
    drawn = BlockDesign(Diagram('d"', (Block("ps", "processor", "ps7", ()), *blocks), wires))
    root = ET.fromstring(drawn.svg)
    titles = [g.find(f"{SVG}title") for g in root.iter(f"{SVG}g") if g.get("class") == "node"]
    assert len(titles) == 5
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {*odd, "k<1>", "m[0]", 'p"'} <= texts


def test_text_of_a_drawing():
    drawn = BlockDesign(_diagram("packets"))
    assert str(drawn) == "packets with packetize_0"
    first, *rows = repr(drawn).splitlines()
    assert first == f"packets with packetize_0: {len(rows)} connections"
    memory = "  axi_mem_hp0.M00_AXI -> processing_system7_0.S_AXI_HP0 (AXI to memory, 64 bits)"
    assert memory in rows


def test_overlay_shows_its_design():
    pynq_torch.use_board("csim")
    overlay = pynq_torch.load("packets")
    shown = overlay._repr_html_()
    assert shown == overlay.draw().svg and "packetize_0" in shown


def test_overlay_without_graphviz(monkeypatch: pytest.MonkeyPatch):
    pynq_torch.use_board("csim")
    monkeypatch.setattr(overlays, "find_spec", lambda name: None)
    assert pynq_torch.load("packets")._repr_html_() is None  # a notebook then shows its text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ModuleNotFoundError(\"No module named 'pygraphviz'\")", r"pynq_torch\[lab\]"),
        ("raise OSError('no library')", "could not draw packets: OSError: no library"),
        ("import os; os._exit(3)", "could not draw packets: exit status 3"),
    ],
)
def test_graphviz_that_fails(
    body: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "pygraphviz.py").write_text(body)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(PynqTorchError, match=message):
        _ = BlockDesign(_diagram("packets")).svg


def test_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["overlay", "draw", "packets"]) == 0
    assert capsys.readouterr().out == "packets.svg\n"
    assert ET.parse("packets.svg").getroot().tag == f"{SVG}svg"
    assert main(["overlay", "draw", "packets", "-o", "nowhere/x.svg"]) == 1
    assert capsys.readouterr().err == "error: No such file or directory: 'nowhere/x.svg'\n"
    assert main(["overlay", "draw", "none"]) == 1
    assert "no overlay is called 'none'" in capsys.readouterr().err
