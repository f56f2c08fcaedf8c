"""``python -m pynq_torch hls ...``: the interface of a kernel, its engine, its testbench."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pynq_torch.errors import KernelError
from pynq_torch.paths import shown

if TYPE_CHECKING:
    from pynq_torch.hls.kernels import KernelSource

__all__ = ["declare"]


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare ``hls new``, ``interface``, ``lint``, ``estimate``, ``build`` and ``test``."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    _declare_new(commands.add_parser(
        "new",
        help="write the first files of a kernel of your own",
        description="Write hw/kernels/NAME: C++, header, testbench and description of a kernel "
        "that computes a formula of vectors, an element a cycle. 'overlay new' puts it on the PL.",
    ))  # fmt: skip

    interface = commands.add_parser(
        "interface", help="print the registers and ports that a kernel's source implies"
    )
    _add_source(interface)
    _add_common(interface)
    interface.add_argument("--json", action="store_true", help="print JSON")
    _add_strict(interface)
    interface.set_defaults(func=_interface)

    _declare_lint(commands)
    _declare_estimate(commands.add_parser(
        "estimate",
        help="say what II, latency, DSP and BRAM a kernel would have after HLS, without Vitis",
        description="Schedule a kernel as HLS would: loops with trip counts, II and its reason, "
        "depth, latency, DSP blocks and block RAM. Every number is an estimate; docs/estimate.md "
        "says how far it agrees with published reports. The exit status is 2 where there is none.",
    ))  # fmt: skip

    build = commands.add_parser("build", help="build the engine of a kernel (csim)")
    test = commands.add_parser("test", help="run a kernel's testbench under g++")
    for made, function in ((build, _build), (test, _test)):
        made.add_argument("kernel", help="a kernel's name, folder or C++ file")
        made.add_argument("--top", help="top function; the kernel's name by default")
        made.add_argument("--kernels", action="append", type=Path, default=[], metavar="DIR")
        made.add_argument("--sanitize", action="store_true", help="with address and UB checks")
        _add_strict(made)
        _add_common(made)
        made.set_defaults(func=function)
    test.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS")


def _declare_lint(commands: Any) -> None:
    parser = commands.add_parser(
        "lint",
        help="say where Vitis HLS would not schedule a kernel as its pragmas ask",
        description="Hold a kernel against the rules of UG1399: canonical DATAFLOW, bursts that "
        "can be proved, loops that reach their II, reasons beside DEPENDENCE false, "
        "LOOP_TRIPCOUNT, words of pragmas. Each finding is one line, FILE:LINE: RULE: TEXT; the "
        "exit status is 1 where there is one, 2 where the source cannot be read.",
    )
    _add_source(parser)
    _add_macros(parser)
    parser.add_argument(
        "--directives", type=Path, metavar="FILE",
        help="Tcl with set_directive_..., or a cfg with syn.directive..., besides the pragmas",
    )  # fmt: skip
    parser.set_defaults(func=_lint)


def _declare_new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the kernel: folder, file and top function")
    parser.add_argument("--inputs", required=True, type=_names, metavar="A,B", help="vectors read")
    parser.add_argument("--formula", required=True, metavar="C++", help='e.g. "gain * a + b"')
    parser.add_argument("--golden", default="", metavar="C++", help="for the testbench (formula)")
    parser.add_argument("--output", default="out", metavar="NAME", help="vector written (out)")
    parser.add_argument(
        "--type",
        default="float32",
        dest="dtype",
        help="of the elements: float32 (default), int8, int16, int32, ap_fixed<W,I>",
    )
    parser.add_argument(
        "--interface", default="m_axi", help="m_axi: arrays in memory (default); axis: AXI4-Streams"
    )
    parser.add_argument(
        "--scalars", default=(), type=_names, metavar="A,B", help="values in registers"
    )
    parser.add_argument("--root", type=Path, default=Path(), help="your project (this folder)")
    parser.set_defaults(func=_new)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _new(args: argparse.Namespace) -> int:
    from pynq_torch.hls.skeleton import new_kernel

    given = ("inputs", "formula", "golden", "output", "dtype", "interface", "scalars")
    print(new_kernel(args.name, args.root, **{name: getattr(args, name) for name in given}))
    return 0


def _declare_estimate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, nargs="+", help="C++ file with the top function; others")
    parser.add_argument("--top", required=True, help="top function; name<4> for a template")
    parser.add_argument("--clock", type=float, default=10.0, metavar="NS", help="period (10)")
    parser.add_argument("--part", default="xc7z020clg400-1", help="device (xc7z020clg400-1)")
    parser.add_argument(
        "--directives", type=Path, metavar="FILE",
        help="Tcl (set_directive_...) or configuration file (syn.directive...) beside the pragmas",
    )  # fmt: skip
    parser.add_argument(
        "--tool", type=_tool, metavar="NAME[-RELEASE]",
        help="vitis or vivado, as in vitis-2024.2: whose defaults count; guessed from directives "
        "and scripts where it is not given",
    )  # fmt: skip
    _add_macros(parser)
    parser.add_argument(
        "-a", "--argument", dest="arguments", action="append", default=[], type=_argument,
        metavar="NAME=NUMBER", help="value of a scalar argument: the latency of a run with it",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    _add_strict(parser)
    parser.set_defaults(func=_estimate)


def _tool(text: str) -> str:
    from pynq_torch.hls.estimator.tool import named

    try:
        named(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _argument(text: str) -> tuple[str, int]:
    from pynq_torch.hls.snippet import named_number

    try:
        return named_number(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _estimate(args: argparse.Namespace) -> int:
    from pynq_torch.hls.estimator import estimate

    try:
        found = estimate(
            args.file[0], args.top, clock=args.clock, part=args.part, directives=args.directives,
            tool=args.tool, sources=args.file[1:], include_dirs=args.include_dirs,
            defines=args.defines, arguments=dict(args.arguments),
        )  # fmt: skip
    except KernelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found.as_json(), indent=2) if args.json else found)
    for warning in found.warnings if args.json else ():
        print(f"warning: {warning}", file=sys.stderr)
    return 1 if args.strict and found.warnings else 0


def _add_strict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strict", action="store_true", help="exit status 1 where there are warnings"
    )


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="C++ file with the top function")
    parser.add_argument("--top", required=True, help="top function; name<4> for a template")


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tool", choices=("vitis", "vivado"), default="vitis",
        help="Vitis HLS (default) or Vivado HLS up to 2020.1: their offsets and names differ",
    )  # fmt: skip
    _add_macros(parser)


def _add_macros(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-I", "--include", dest="include_dirs", action="append", type=Path, default=[]
    )
    parser.add_argument("-D", "--define", dest="defines", action="append", default=[])


def _interface(args: argparse.Namespace) -> int:
    from pynq_torch.hls.parse import read_interface
    from pynq_torch.hls.reading import format_interface

    interface = read_interface(
        args.file, args.top, tool=args.tool, include_dirs=args.include_dirs, defines=args.defines
    )
    if args.json:
        print(json.dumps(interface.as_json(), indent=2))
        for warning in interface.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    else:
        print(format_interface(interface))
    return 1 if args.strict and interface.warnings else 0


def _lint(args: argparse.Namespace) -> int:
    from pynq_torch.hls.estimator.compiler import tools
    from pynq_torch.hls.linter import lint

    missing = tools()
    if missing:
        print(f"note: rule 'interval' is left out: {missing}", file=sys.stderr)
    try:
        found = lint(
            args.file, args.top, include_dirs=args.include_dirs, defines=args.defines,
            directives=args.directives, schedule=missing is None,
        )  # fmt: skip
    except KernelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for finding in found:
        print(finding)
    return 1 if found else 0


def _kernel(args: argparse.Namespace) -> KernelSource:
    from pynq_torch import paths
    from pynq_torch.hls.kernels import KernelSource, find_kernel

    path = Path(args.kernel)
    found: KernelSource | None
    if path.is_file():
        found = KernelSource(args.top or path.stem, path)
    elif path.is_dir():
        found = find_kernel(args.top or path.resolve().name, [path.resolve()])
    else:
        # A kernel of one's own wins over one of the library that has its name.
        own = Path("hw/kernels").resolve()
        folders = [*args.kernels, *([own] if own.is_dir() and own != paths.KERNELS else [])]
        name = args.top or args.kernel
        folders += [*paths.environment_kernels(), paths.KERNELS]
        found = find_kernel(name, folders)
    if found is None:
        raise KernelError(
            f"no kernel {args.kernel!r}: it is no file and no folder, and no source in --kernels "
            "DIR, in hw/kernels of this folder, in PYNQ_TORCH_KERNELS or in the library defines "
            "such a function"
        )
    return dataclasses.replace(
        found, include_dirs=tuple(args.include_dirs), defines=tuple(args.defines)
    )


@contextlib.contextmanager
def _plain_warnings() -> Iterator[list[str]]:
    """Print warnings as lines of their own, without Python's place and category; collect them."""
    said: list[str] = []

    def show(message: Warning | str, *_: object, **__: object) -> None:
        said.append(str(message))
        print(f"warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield said


def _build(args: argparse.Namespace) -> int:
    from pynq_torch.hls.build import build

    with _plain_warnings() as said:
        kernel = _kernel(args)
        result = build(kernel, tool=args.tool, sanitize=args.sanitize)
    if result.log:
        print(result.log.rstrip())
    how = "unchanged" if result.cached else "built"
    print(f"{shown(kernel.source)}: {how} in {result.seconds:.2f} s: {result.executable}")
    return 1 if args.strict and said else 0


def _test(args: argparse.Namespace) -> int:
    from pynq_torch.hls.testbench import run_testbench

    kernel = _kernel(args)
    with _plain_warnings() as said:
        result = run_testbench(
            kernel, timeout_s=args.timeout, sanitize=args.sanitize, tool=args.tool
        )
    print(result.output.rstrip())
    after = f"testbench returned 0 after {result.seconds:.2f} s (wall clock)"
    print(f"PASS {kernel.name} ({shown(kernel.source)}): {after}")
    return 1 if args.strict and said else 0
