"""``python -m pynq_torch kernels``: what the library holds; building, generating, counting it."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pynq_torch.tables import Table

if TYPE_CHECKING:
    from pynq_torch.kernels.library import Built, Entry
    from pynq_torch.models.evidence import Kernel
    from pynq_torch.models.hls_resources import Resources
    from pynq_torch.timing import Duration

__all__ = ["declare", "full_text", "listing"]


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare ``kernels [ACTION] [NAME ...]``."""
    parser.description = (
        "Kernels of the library: operators, resources, latency, overlays that hold them. Numbers "
        "say what they are: model, estimate (scheduled from the C++; of a single kernel), csynth "
        "(the vendor's), yosys (the RTL, mapped to cells), cycles (RTL), measured (a board)."
    )
    parser.usage = (
        "%(prog)s [list | NAME | build [NAME ...] | synth [NAME ...] | generate | chart FILE]"
        " [options]"
    )
    parser.add_argument(
        "action", nargs="?", default="list", metavar="ACTION",
        help="list (default); a kernel's name shows it in full; build makes csim engines and "
        "interfaces; synth counts the cells of RTL by yosys and writes rtl/resources.json; "
        "generate writes the folders of the families from their templates; chart draws the "
        "greatest against the part's limits",
    )  # fmt: skip
    parser.add_argument(
        "names", nargs="*", metavar="NAME",
        help="kernels to build or to synthesise (default: all); chart: the file, without ending",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="list or show as JSON")
    parser.add_argument("--jobs", type=int, help="builds at a time (default: one a core)")
    parser.add_argument(
        "--check", action="store_true", help="generate: write nothing, fail where files differ"
    )
    parser.set_defaults(func=_run)


def _run(options: argparse.Namespace) -> int:
    action = {"build": _build, "synth": _synth}.get(options.action)
    if options.action == "chart" and len(options.names) == 1:
        action = _chart
    if action is not None:
        return action(options)
    if options.names:
        print(
            f"error: {options.action} takes no further names; found {' '.join(options.names)}",
            file=sys.stderr,
        )
        return 2
    return {"generate": _generate, "list": _list}.get(options.action, _show)(options)


# ---- looking -------------------------------------------------------------------------------------


#: Kind of evidence -> the design it is about, and how the number was found. A kernel's RTL is
#: another design than its HLS C++, with other resources and cycles.
_DESIGNS = {
    "yosys": "RTL yosys",
    "cycles": "RTL counted",
    "routed": "RTL routed",
    "csynth": "HLS csynth",
    "estimate": "HLS estimate",
    "model": "HLS model",
    "measured": "measured",
}


def listing(found: Sequence[Entry]) -> Table:
    """Return kernels as a table."""
    parts = ("BRAM_18K", "DSP", "FF", "LUT")
    rows = []
    for item in found:
        used = item.resources.used if item.resources else {}
        operators = (name.removeprefix("aten::").partition(".")[0] for name in item.operators)
        row: list[object] = [item.name, _fitting(list(dict.fromkeys(operators)))]
        row += [used.get(key, "-") for key in parts]
        row += [_DESIGNS[item.resources.kind] if item.resources else "-", item.cycles]
        row += [_fitting(_sizes(item.sizes).split()), _DESIGNS[item.latency.kind]]
        rows.append([*row, _fitting(sorted(item.overlays, key=len))])
    header = ["kernel", "operators", *parts, "used by", "cycles", "at", "cycles of", "overlays"]
    return Table(header, rows)


#: Letters of a column that could take any number of words.
_WIDTH = 22


def _fitting(words: Sequence[str], width: int = _WIDTH) -> str:
    """Return as many words as fit, at least one, and how many more there are."""
    words = [word if len(word) <= width else word[: width - 1] + "…" for word in words]
    shown = 1
    while shown < len(words) and len(" ".join(words[: shown + 1])) <= width:
        shown += 1
    more = [f"+{len(words) - shown}"] if shown < len(words) else []
    return " ".join([*words[:shown], *more]) or "-"


def _sizes(sizes: dict[str, int]) -> str:
    """Return e.g. ``m=n=k=64``."""
    by_value: dict[int, list[str]] = {}
    for name, value in sizes.items():
        by_value.setdefault(value, []).append(name)
    return " ".join(f"{'='.join(names)}={value}" for value, names in by_value.items())


def _list(options: argparse.Namespace) -> int:
    from pynq_torch.kernels.library import entries

    found = entries()
    if options.json:
        print(json.dumps([item.as_json() for item in found], indent=2))
    else:
        print(listing(found))
        print(
            f"\n{len(found)} kernels. RTL: the kernel's own SystemVerilog, its cells counted by "
            "yosys, its cycles in\nsimulation. HLS: its C++, by the vendor's csynth or by a model. "
            "kernels NAME shows both in full."
        )
    return 0


def _show(options: argparse.Namespace) -> int:
    from pynq_torch.kernels.library import entry

    found = entry(options.action)
    if options.json:
        from pynq_torch.hls.parse import read_interface
        from pynq_torch.models.evidence import kernel

        folder = kernel(found.name).folder
        interface = read_interface(folder / f"{found.name}.cpp", found.name)
        print(json.dumps({**found.as_json(), "interface": interface.as_json()}, indent=2))
    else:
        print(full_text(found))
    return 0


def full_text(found: Entry) -> str:
    """Return all about a kernel: what it does, each design of it, interface.

    A kernel with RTL is two designs behind the same registers; their numbers are shown separately.
    """
    from pynq_torch.hls.parse import read_interface
    from pynq_torch.hls.reading import format_interface
    from pynq_torch.models.evidence import kernel, latencies, resources_by_kind
    from pynq_torch.models.pynq_z2 import FCLK_HZ

    own = kernel(found.name)
    used = resources_by_kind(found.name)
    takes = latencies(found.name, FCLK_HZ, label="", estimated=True, **found.sizes)
    sizes = [f"{name}: {text}" for name, text in own.description.latency.symbols.items()]
    overlays = (f"{name} x{n}" if n > 1 else name for name, n in found.overlays.items())
    lines = [
        f"{found.name}: {found.summary}",
        f"reference   {found.reference}",
        f"operators   {' '.join(found.operators) or '-'}",
        f"overlays    {' '.join(overlays) or '-'}",
        *_labelled("sizes", sizes),
    ]
    if "measured" in takes:
        lines += ["", "On a board", _latency(takes["measured"], found.sizes)]
    lines += _rtl(own, takes.get("routed", takes.get("cycles")), used.get("yosys"), found.sizes)
    source = "csynth" if "csynth" in used else "model"
    lines += ["", f"HLS ({source}): {found.name}.cpp, which board csim runs"]
    known = [takes[kind] for kind in ("csynth", "estimate", "model") if kind in takes]
    lines += [_latency(item, found.sizes) for item in known]
    lines += _hls(own, used)
    interface = read_interface(own.folder / f"{found.name}.cpp", found.name)
    lines += ["", "Registers and ports, the same for every design", format_interface(interface)]
    return "\n".join(lines)


def _labelled(label: str, texts: Sequence[str]) -> list[str]:
    """Return a line for each text, the first with the label before it."""
    return [f"{'' if at else label:<12}{text}" for at, text in enumerate(texts)]


def _latency(found: Duration, sizes: dict[str, int]) -> str:
    cycles = round(found.seconds * (found.clock_hz or 0.0))
    return f"latency     {cycles} cycles at {_sizes(sizes)}, {found.provenance}"


def _resources(found: Resources) -> str:
    shares = found.utilisation()
    used = ", ".join(f"{name} {count} ({shares[name]:.1%})" for name, count in found.used.items())
    return f"resources   {used}; {found.kind}: {found.source}"


def _rtl(
    own: Kernel, cycles: Duration | None, counted: Resources | None, sizes: dict[str, int]
) -> list[str]:
    """Return what is known of a kernel's RTL; nothing where it has none."""
    from pynq_torch.models.rtl_resources import rtl_folder, stale

    if not (cycles or counted or rtl_folder(own.folder)):
        return []
    name = own.folder.name
    lines = ["", f"RTL: {name}/rtl, which board rtl runs"]
    lines.append(
        _latency(cycles, sizes) if cycles else f"latency     not recorded at {_sizes(sizes)}"
    )
    synth = f"run: python -m pynq_torch kernels synth {name}"
    lines.append(_resources(counted) if counted else f"resources   not counted; {synth}")
    if counted and (changed := stale(own.folder)):
        lines.append(f"            out of date, since {', '.join(changed)} changed; {synth}")
    return lines


def _hls(own: Kernel, used: dict[str, Resources]) -> list[str]:
    """Return the model of a kernel's C++, its resources by component, and its parameters."""
    from pynq_torch.models.hls_resources import itemised

    model = own.description.latency
    lines = _labelled("by model", [model.expression, model.assumptions])
    lines += [_resources(used[kind]) for kind in ("csynth", "model") if kind in used]
    if own.description.resources:
        rows = [
            [name, count, one.bram, one.dsp, one.ff, one.lut, one.source]
            for name, count, one in itemised(own.description.resources)
        ]
        header = ["component", "count", "BRAM_18K", "DSP", "FF", "LUT", "cost of one, from"]
        lines += ["", str(Table(header, rows))]
    header_file = own.folder / f"{own.folder.name}.hpp"
    if header_file.is_file():
        lines += ["", *_leading_comment(header_file.read_text(encoding="utf-8"))]
    return lines


def _leading_comment(text: str) -> list[str]:
    """Return the comment at the top of a header: by convention the table of parameters."""
    lines = itertools.takewhile(lambda line: line.startswith("//"), text.splitlines())
    return [line.removeprefix("//").removeprefix(" ") for line in lines]


# ---- making --------------------------------------------------------------------------------------


def _build(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from pynq_torch.kernels.library import build_library
    from pynq_torch.models.evidence import kernel_names

    begin = time.perf_counter()
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("building", total=len(options.names or kernel_names()))

        def show(result: Built) -> None:
            bar.update(task, advance=1, description=result.name)

        results = build_library(options.names, jobs=options.jobs, each=show)
    failed = [result for result in results if result.error]
    built = [result for result in results if not result.cached and not result.error]
    for result in built:
        print(f"built {result.name} in {result.seconds:.1f} s")
    for result in failed:
        print(f"error: {result.name}: {result.error}", file=sys.stderr)
    kept, seconds = len(results) - len(built) - len(failed), time.perf_counter() - begin
    print(
        f"{len(built)} built, {kept} unchanged, {len(failed)} failed in {seconds:.1f} s "
        "(wall clock of this PC)"
    )
    return 1 if failed else 0


def _synth(options: argparse.Namespace) -> int:
    """Count the cells of RTL; only what changed takes time."""
    from pynq_torch.models import rtl_resources
    from pynq_torch.models.evidence import kernel, kernel_names

    found = [kernel(name).folder for name in options.names or kernel_names()]
    found = [folder for folder in found if options.names or rtl_resources.rtl_folder(folder)]
    for folder in found:
        begin = time.perf_counter()
        path = rtl_resources.synthesise(folder)
        result = rtl_resources.committed(folder)
        used = ", ".join(f"{n} {c}" for n, c in result.used.items()) if result else ""
        print(f"wrote {path.parent.parent.name}/rtl/{path.name}: {used} (yosys) "
              f"in {time.perf_counter() - begin:.1f} s")  # fmt: skip
    print(f"{len(found)} kernels with RTL")
    return 0


#: Kernels that a chart can hold and still be read.
_CHARTED = 10


def _chart(options: argparse.Namespace) -> int:
    """Draw what kernels take, those counted in RTL and then the greatest, as PNG, SVG and CSV."""
    import matplotlib

    matplotlib.use("Agg")
    from pynq_torch.kernels.library import entries
    from pynq_torch.plot.resources import resources

    found = {item.name: item.resources for item in entries() if item.resources is not None}
    order = sorted(
        found,
        key=lambda name: (found[name].kind == "model", -max(found[name].utilisation().values())),
    )
    chart = resources({name: found[name] for name in order[:_CHARTED]})
    for path in chart.save(options.names[0]):
        print(f"wrote {path}")
    return 0


def _generate(options: argparse.Namespace) -> int:
    from pynq_torch.hls.generate import differences, generate
    from pynq_torch.kernels.tables import instances
    from pynq_torch.paths import ROOT

    if options.check:
        stale = [path for path, _ in differences(instances())]
        for path in stale:
            print(f"differs from its template: {path.relative_to(ROOT)}", file=sys.stderr)
        print(f"{len(stale)} files differ; run: python -m pynq_torch kernels generate"
              if stale else "all generated files are what their templates make")  # fmt: skip
        return 1 if stale else 0
    written = generate(instances())
    for path in written:
        print(f"wrote {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")
    print(f"{len(written)} files written")
    return 0
