"""``python -m pynq_torch overlay``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

__all__ = ["add_parser"]

_OUT = (
    "folder to write NAME/ into (default: bitstreams of the checkout; without one, "
    "~/.local/share/pynq_torch/bitstreams)"
)


def add_parser(subparsers: Any) -> None:
    """Add the command ``overlay`` to `subparsers`."""
    parser = subparsers.add_parser(
        "overlay",
        help="generate what an overlay description implies",
        description="Generate what hw/overlays/NAME/overlay.toml implies.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    at = argparse.ArgumentParser(add_help=False)
    at.add_argument(
        "--root",
        type=Path,
        help="folder with hw/overlays and hw/kernels (default: this project)",
    )
    listing = actions.add_parser("list", help="name the overlays", parents=[at])
    listing.set_defaults(func=_list)

    build = actions.add_parser(
        "build",
        help="write bitstreams/NAME: simulation image, handoff, manifest",
        parents=[at],
    )
    build.add_argument("names", nargs="*", metavar="NAME", help="overlays (default: all)")
    build.add_argument("--out", type=Path, help=_OUT)
    build.set_defaults(func=_build)

    scripts = actions.add_parser(
        "scripts", help="write NAME.tcl for Vivado and NAME.cfg for v++ --link", parents=[at]
    )
    scripts.add_argument("names", nargs="*", metavar="NAME", help="overlays (default: all)")
    scripts.add_argument("--out", type=Path, required=True, help="folder to write into")
    scripts.set_defaults(func=_scripts)

    record = actions.add_parser(
        "import",
        help="take over what Vivado built into bitstreams/NAME, with its manifest",
        parents=[at],
    )
    record.add_argument("name", metavar="NAME")
    record.add_argument("folder", type=Path, help="where NAME.bit and NAME.hwh lie")
    record.add_argument("--tool", action="append", default=[], metavar="NAME=VERSION",
                        help="a program that made them (repeatable)")  # fmt: skip
    record.add_argument("--out", type=Path, help=_OUT)
    record.set_defaults(func=_import)


def _list(options: argparse.Namespace) -> int:
    from pynq_torch.hls.design.build import overlay_names
    from pynq_torch.hls.design.description import read_description
    from pynq_torch.paths import ROOT

    root = options.root or ROOT
    for name in overlay_names(root):
        description = read_description(root / "hw" / "overlays" / name)
        print(f"{name:<12} {description.clock_mhz:g} MHz  {description.summary}")
    return 0


def _build(options: argparse.Namespace) -> int:
    from pynq_torch.hls.design.build import build_overlay, overlay_names

    for name in options.names or overlay_names(options.root):
        print(f"{name}: {build_overlay(name, root=options.root, out=options.out)}")
    return 0


def _scripts(options: argparse.Namespace) -> int:
    from pynq_torch.hls.design.build import generate, overlay_names

    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or overlay_names(options.root):
        generated = generate(name, options.root)
        (options.out / f"{name}.tcl").write_text(generated.tcl, encoding="utf-8")
        (options.out / f"{name}.cfg").write_text(generated.connectivity, encoding="utf-8")
        print(f"{name}: {options.out / name}.tcl, {options.out / name}.cfg")
    return 0


def _import(options: argparse.Namespace) -> int:
    from pynq_torch.hls.design.build import import_overlay

    tools = dict(item.partition("=")[::2] for item in options.tool)
    made = import_overlay(options.name, options.folder, tools, root=options.root, out=options.out)
    print(f"{options.name}: {made}")
    return 0
