"""``python -m pynq_torch overlay``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["declare"]

_OUT = (
    "folder to write NAME/ into (default: bitstreams of the checkout; without one, "
    "~/.local/share/pynq_torch/bitstreams)"
)


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare ``overlay``: ``list``, ``new``, ``draw``, ``build``, ``scripts`` and so on."""
    parser.description = "Generate what hw/overlays/NAME/overlay.toml implies."
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    at = argparse.ArgumentParser(add_help=False)
    at.add_argument(
        "--root", type=Path, help="folder with hw/overlays and hw/kernels (default: this project)"
    )

    def action(name: str, function: Callable[[argparse.Namespace], int], text: str) -> Any:
        made = actions.add_parser(name, help=text, parents=[at])
        made.set_defaults(func=function)
        return made

    action("list", _list, "name the overlays")
    new = actions.add_parser("new", help="write the overlay.toml of kernels of your own")
    _new_options(new)
    draw = actions.add_parser("draw", help="write the block diagram of an overlay as SVG")
    _draw_options(draw)
    build = action("build", _build, "write bitstreams/NAME: simulation image, handoff, manifest")
    scripts = action("scripts", _scripts, "write NAME.tcl for Vivado and NAME.cfg for v++ --link")
    for made in (build, scripts):
        made.add_argument("names", nargs="*", metavar="NAME", help="overlays (default: all)")
    scripts.add_argument("--out", type=Path, required=True, help="folder to write into")
    card = "in NAME.cfg: a card's memory, e.g. HBM[0], for the HP ports"
    own = "write OUT/ip too: what Vivado packages kernels from that have RTL (gemm, net, vadd)"
    scripts.add_argument("--rtl", action="store_true", help=own)
    scripts.add_argument("--memory", default="", metavar="NAME", help=card)
    real = action("bitstream", _bitstream, "build the real bitstream, by Vivado or by open tools")
    _bitstream_options(real)
    record = action(
        "import", _import, "take over what Vivado built into bitstreams/NAME, with its manifest"
    )
    record.add_argument("name", metavar="NAME")
    record.add_argument("folder", type=Path, help="folder with NAME.bit and NAME.hwh")
    record.add_argument("--tool", action="append", default=[], metavar="NAME=VERSION",
                        help="a program that made them (repeatable)")  # fmt: skip
    for made in (build, real, record):
        made.add_argument("--out", type=Path, help=_OUT)


def _new_options(new: argparse.ArgumentParser) -> None:
    new.add_argument("name", metavar="NAME")
    new.add_argument("units", nargs="+", type=_unit, metavar="UNIT=KERNEL",
                     help="a compute unit and its kernel, e.g. fir_0=fir")  # fmt: skip
    new.add_argument("--clock", type=int, default=100, metavar="MHZ", help="of the PL (100)")
    new.add_argument("--root", type=Path, default=Path(), help="your project (this folder)")
    new.set_defaults(func=_new)


def _draw_options(draw: argparse.ArgumentParser) -> None:
    draw.add_argument("overlay", metavar="OVERLAY", help="a name, or the path of a .bit or .xsa")
    draw.add_argument("--output", "-o", type=Path, metavar="FILE", help="default: OVERLAY.svg")
    draw.set_defaults(func=_draw)


def _bitstream_options(real: argparse.ArgumentParser) -> None:
    real.add_argument("name", metavar="NAME")
    work = "for Vivado: packaged kernels and its project (hw/build)"
    real.add_argument("--build", type=Path, metavar="FOLDER", help=work)
    real.add_argument(
        "--tool",
        choices=("vivado", "open"),
        default="vivado",
        help="vivado (default); open: yosys, nextpnr-xilinx and prjxray",
    )
    own = "for Vivado: package kernels that have RTL from it, without Vitis HLS (gemm, net, vadd)"
    real.add_argument("--rtl", action="store_true", help=own)
    tools = real.add_argument_group("with --tool open")
    add = tools.add_argument
    add("--chipdb", type=Path, default=Path("xc7z020.bin"), metavar="FILE",
        help="the part for nextpnr-xilinx (xc7z020.bin)")  # fmt: skip
    add("--database", type=Path, default=Path("zynq7"), metavar="FOLDER",
        help="the folder zynq7 of prjxray-db (zynq7)")  # fmt: skip
    add("--seed", type=int, default=1, help="of the placer (1)")
    add("--parameter", action="append", default=[], type=_parameter, metavar="UNIT.NAME=VALUE",
        help="of a unit's RTL (repeatable)")  # fmt: skip
    add("--map-only", action="store_true", help="stop after yosys, which needs no other tool")


def _parameter(text: str) -> tuple[str, str, int]:
    name, _, value = text.partition("=")
    unit, _, parameter = name.partition(".")
    if not (unit.isidentifier() and parameter.isidentifier() and value.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r}: expected UNIT.NAME=NUMBER, e.g. gemm_0.ROWS=4")
    return unit, parameter, int(value)


def _unit(text: str) -> tuple[str, str]:
    unit, _, kernel = text.partition("=")
    if not (unit.isidentifier() and kernel):
        raise argparse.ArgumentTypeError(f"{text!r}: expected UNIT=KERNEL, e.g. fir_0=fir")
    return unit, kernel


def _new(options: argparse.Namespace) -> int:
    from pynq_torch.hls.skeleton import new_overlay

    units = dict(options.units)
    print(new_overlay(options.name, options.root, units, clock_mhz=options.clock))
    return 0


def _list(options: argparse.Namespace) -> int:
    from pynq_torch.hls.design.build import overlay_names
    from pynq_torch.hls.design.description import read_description
    from pynq_torch.paths import ROOT

    root = options.root or ROOT
    for name in overlay_names(root):
        description = read_description(root / "hw" / "overlays" / name)
        print(f"{name:<12} {description.clock_mhz:g} MHz  {description.summary}")
    return 0


def _draw(options: argparse.Namespace) -> int:
    from pynq_torch.board.diagram import read_diagram
    from pynq_torch.overlay import find_overlay
    from pynq_torch.plot.block_design import BlockDesign

    drawn = BlockDesign(read_diagram(find_overlay(options.overlay)))
    print(drawn.save(options.output or Path(f"{drawn.diagram.name}.svg")))
    return 0


def _build(options: argparse.Namespace) -> int:
    from pynq_torch.hls.design.build import build_overlay, overlay_names

    for name in options.names or overlay_names(options.root):
        print(f"{name}: {build_overlay(name, root=options.root, out=options.out)}")
    return 0


def _scripts(options: argparse.Namespace) -> int:
    from pynq_torch.board.rtl.vivado_ip import write_ips
    from pynq_torch.hls.design.build import generate, overlay_names
    from pynq_torch.hls.design.vitis import write_connectivity

    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or overlay_names(options.root):
        generated = generate(name, options.root)
        (options.out / f"{name}.tcl").write_text(generated.tcl, encoding="utf-8")
        connectivity = write_connectivity(generated.design, options.memory)
        (options.out / f"{name}.cfg").write_text(connectivity, encoding="utf-8")
        ips = write_ips(name, root=options.root, out=options.out / "ip") if options.rtl else {}
        made = [f"{name}.tcl", f"{name}.cfg", *(f"ip/{kernel}" for kernel in ips)]
        print(f"{name}: {', '.join(str(options.out / part) for part in made)}")
    return 0


def _bitstream(options: argparse.Namespace) -> int:
    if options.tool == "vivado":
        from pynq_torch.board.rtl.vivado_ip import write_ips
        from pynq_torch.hls.design.bitstream import build_vivado

        out = options.build and options.build / "rtl" / "ip"
        ips = write_ips(options.name, root=options.root, out=out) if options.rtl else None
        made = build_vivado(
            options.name, root=options.root, out=options.out, build=options.build, rtl=ips
        )
        print(f"{options.name}: {made}")
        return 0
    from pynq_torch.board.rtl.open_tools import OpenTools, build_open, map_overlay
    from pynq_torch.paths import ROOT, to_write

    given: dict[str, dict[str, int]] = {}
    for unit, parameter, value in options.parameter:
        given.setdefault(unit, {})[parameter] = value
    if options.map_only:
        folder = to_write((options.root or ROOT) / "hw" / "build") / "open" / options.name
        mapped = map_overlay(options.name, folder, root=options.root, parameters=given)
        print(f"{options.name}: {mapped.folder}: {mapped.resources}")
        return 0
    made = build_open(
        options.name, OpenTools(options.chipdb, options.database), root=options.root,
        out=options.out, parameters=given, seed=options.seed,
    )  # fmt: skip
    print(f"{options.name}: {made}")
    return 0


def _import(options: argparse.Namespace) -> int:
    from pynq_torch.hls.design.build import import_overlay

    tools = dict(item.partition("=")[::2] for item in options.tool)
    made = import_overlay(options.name, options.folder, tools, root=options.root, out=options.out)
    print(f"{options.name}: {made}")
    return 0
