"""Whose defaults a source was written for: Vitis HLS or Vivado HLS."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pynq_torch.paths import shown

from ..lint_tree import Directive
from .configured import files_of, places_around

__all__ = [
    "DEFAULT_PART",
    "bus_latency_of",
    "defaults_of",
    "guess_release",
    "guess_tool",
    "margin_of",
    "named",
    "other_clock",
    "with_top_first",
]

DEFAULT_PART = "xc7z020clg400-1"

_VITIS = re.compile(
    r"\b(bind_op|bind_storage|aggregate|disaggregate|performance|storage_type|direct_io)\b"
    r"|\btype\s*=\s*(cyclic|block|complete)",
    re.IGNORECASE,
)
#: Of an INTERFACE. It is written for Vivado HLS, too, which does not know it.
_MODE = re.compile(r"\bmode\s*=", re.IGNORECASE)
_VIVADO = re.compile(r"\b(resource|data_pack|array_map)\b|\bcore\s*=", re.IGNORECASE)
#: Headers that Vitis HLS has no longer (UG1399, "Deprecated and Unsupported Features").
_OLD_HEADERS = re.compile(r'^\s*#\s*include\s*[<"](?:hls_video|hls_opencv)\.h', re.MULTILINE)
#: How both tools begin the scripts that they write for a project, until 2015 with one year. Scripts
#: of 2012 and 2013 are handed on with courses' sources from tool to tool.
_WRITTEN = re.compile(
    r"(?s)generated automatically by (Vivado|Vitis) HLS.{,120}?(?:\d{4}-\d{4}|\(C\) 201[45])"
)
#: The years behind that: of Xilinx, and of AMD since 2023.
_YEARS = re.compile(r"(?:\d{4}-|\(C\) (?=201[45] ))(20[12]\d)")
#: How a person says in a script what it is for.
_SAID = re.compile(r"\b(Vivado|Vitis)[ _]HLS[ -]v?(20[12]\d\.\d)\b", re.IGNORECASE)
#: `vitis-2024.2`: a tool and its release.
_NAMED = re.compile(r"^(vitis|vivado)(?:-(20\d\d(?:\.\d)?)(?:\.\d+)*)?$")
_FIRST_VITIS = 2020.2
#: A configuration file takes directives since 2023.2; most that are published are of 2024.2.
_UNIFIED = 2024.2
#: How Vivado begins the script of a block design; there is Vitis HLS since 2020.
_DESIGN = re.compile(r"^set scripts_vivado_version (\d{4})", re.MULTILINE)
#: Parts that Vivado HLS did not have: Alveo, Kria, Versal.
_NEW = re.compile(r"^xc(?:u\d|k2[46]|v[cehmp]\d)")
_PERIOD = re.compile(
    r"^\s*(?:create_clock\b.*?-period\s+|clock\s*=\s*)(\d+(?:\.\d+)?)(ns|us|MHz|)(?![\w.])"
)
_MARGIN = re.compile(
    r"^\s*(?:set_clock_uncertainty\s+|clock_uncertainty\s*=\s*)(\d+(?:\.\d+)?)(%?)", re.MULTILINE
)
#: What scripts and cfg files say of m_axi: its latency, or the flow, which has a default for it.
_BUS_LATENCY = re.compile(r"\bm_axi_latency[\s=]+(\d+)")
_FLOW = re.compile(r"\bflow_target[\s=]+(vitis|vivado)\b")
#: From how many iterations on loops are pipelined unasked; 0 is for none (UG1399, config_compile).
_PIPELINES = re.compile(
    r"^\s*(?:config_compile\b.*\s-|syn\.compile\.)pipeline_loops[\s=]+(\d+)", re.MULTILINE
)
#: Cards that only Vitis's flow makes kernels for.
_CARD = re.compile(r"(?i)^xcu\d")
#: Cycles of config_interface -m_axi_latency in Vitis's flow, by default (UG1399).
_FAR_MEMORY = 64
#: Lines that name the sources of a project.
_FILES = re.compile(r"^\s*(?:add_files\s(?!.*-tb\b)|syn\.file\s*=).*$", re.MULTILINE)
#: Folders around a source that are searched for scripts, how far up and how deep.
_FOLDERS, _UP, _DEEP = 300, 4, 4


def with_top_first(paths: Sequence[Path], top: str) -> list[Path]:
    """Return sources, that which seems to define the top function before the others."""
    if len(paths) == 1:
        return [*paths]
    name = re.escape(top.partition("<")[0].rpartition("::")[2])
    defines = re.compile(rf"^(?!\s*(?://|\*)).*\b{name}\s*\([^;{{}}]*\)\s*\{{", re.MULTILINE)
    texts = (path.read_text("utf-8", "replace") for path in paths)
    found = [path for path, text in zip(paths, texts, strict=True) if defines.search(text)]
    first = paths[0] if paths[0] in found or not found else found[0]
    return [first, *(path for path in paths if path != first)]


def guess_tool(source: Path, items: Sequence[Directive], file: Path | str | None, part: str) -> str:
    """Return ``"vivado"`` or ``"vitis"``; Vitis where nothing tells.

    A file of directives tells first, then words and parts that only Vitis HLS has, a cfg file that
    names the source, the names of files and folders, the scripts of solutions beside the source,
    words and headers that Vitis HLS has given up, and how the part is written: Vivado HLS has no
    dash before the package. The default part has none either, and tells only where a script beside
    the source names it too.
    `mode=` tells before names, but not before a script that Vivado HLS wrote.
    """
    if file is not None:
        if str(file).endswith(".cfg"):
            return "vitis"
        if written := _written_by([Path(file)]):
            return written
    texts = [item.pragma.text for item in items]
    if _NEW.match(part) or any(_VITIS.search(text) for text in texts) or files_of(source):
        return "vitis"
    path, is_newer = str(source).lower(), any(_MODE.search(text) for text in texts)
    for word in ("vitis",) if is_newer else ("vitis", "vivado"):
        if word in path:
            return word
    for scripts in _around(source.parent):
        if written := _written_by(scripts):
            return written
    if is_newer:
        return "vitis"
    if path.endswith(".c") or any(_VIVADO.search(text) for text in texts):
        return "vivado"
    heads = [source, source.with_suffix(".h"), source.with_suffix(".hpp")]
    if any(map(_OLD_HEADERS.search, _texts(heads))):
        return "vivado"
    undashed = re.match(r"^x[ac]\w+[a-z]{2,4}\d{3,4}-", part) is not None
    told = part != DEFAULT_PART or _named(part, source.parent.glob("*.tcl"))
    return "vivado" if undashed and told else "vitis"


def named(tool: str) -> tuple[str, float]:
    """Return the tool that ``"vitis"`` or ``"vitis-2024.2"`` means, and its release.

    The release is 0 where it is not said.

    Raises
    ------
    ValueError
        It is neither tool's name.
    """
    match = _NAMED.match(tool)
    if match is None:
        raise ValueError(f"{tool!r} is no tool; expected vitis, vivado or such as vitis-2024.2")
    return match[1], float(match[2] or 0)


def guess_release(source: Path, file: Path | str | None, tool: str) -> float:
    """Return the release that wrote the scripts around a source; 0 where none says.

    They say the year: the first release of it is meant, of Vitis HLS in 2020 the second, with which
    it began (68 of 79 reports). Else a comment may say it ("for Vitis HLS 2024.2").
    A cfg file that names the source is of a unified one (58 reports).
    """
    if str(file).endswith(".cfg") or (file is None and tool == "vitis" and files_of(source)):
        return _UNIFIED
    for scripts in [[] if file is None else [Path(file)], *_around(source.parent)]:
        years, said = set(), set()
        for head in _heads(scripts):
            said |= {float(year) for name, year in _SAID.findall(head) if name.lower() == tool}
            if (match := _WRITTEN.search(head)) and match[1].lower() == tool:
                years.add(max(map(int, _YEARS.findall(head[match.start() :]))))
        if years:
            year = years.pop() if len(years) == 1 else 0
            first = _FIRST_VITIS if tool == "vitis" else 0.0
            return max(float(f"{year}.1"), first) if year else 0
        if len(said) == 1:
            return said.pop()
    return 0


def margin_of(file: Path | str | None, clock: float) -> float | None:
    """Return the ns of a period that a file of directives, or the script beside it, keeps free."""
    for path in () if file is None else (Path(file), Path(file).with_name("script.tcl")):
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        if match := _MARGIN.search(text):
            ns = float(match[1]) * (clock / 100 if match[2] else 1)
            return ns if ns < clock else None
    return None


def other_clock(file: Path | str | None, clock: float) -> list[str]:
    """Return what to say where a file of directives has another period than the estimate, in ns."""
    if file is None:
        return []
    rows = Path(file).read_text(encoding="utf-8", errors="replace").split("\n")
    found = ((number, match) for number, row in enumerate(rows, 1) if (match := _PERIOD.match(row)))
    periods = ((number, _ns(float(match[1]), match[2])) for number, match in found)
    return [
        f"{shown(Path(file))}:{number}: the period there is {ns:.4g} ns, this estimate is at "
        f"{clock:.4g} ns; give --clock {ns:.4g}"
        for number, ns in periods
        if ns and abs(ns - clock) > 1e-3 * clock
    ]


def _ns(value: float, unit: str) -> float:
    """Return the ns of a period, or of a frequency in MHz."""
    if unit == "MHz":
        return 1000 / value if value else 0.0
    return 1000 * value if unit == "us" else value


def bus_latency_of(source: Path, file: Path | str | None, part: str) -> int:
    """Return after how many cycles a design expects data that it asks an m_axi port for.

    The file of directives or its script says so, or the scripts of solutions beside the source; a
    kernel for a card is made in Vitis's flow.
    """
    for texts in _near(source, file):
        told = {match[1] for text in texts for match in _BUS_LATENCY.finditer(text)}
        if len(told) == 1:
            return int(told.pop())
        flows = {match[1] for text in texts for match in _FLOW.finditer(text)}
        if len(flows) == 1:
            return _FAR_MEMORY if flows == {"vitis"} else 0
    return _FAR_MEMORY if _CARD.match(part) else 0


def defaults_of(source: Path, file: Path | str | None) -> dict[str, bool]:
    """Return what the scripts at a source say of what Vitis HLS does unasked.

    `automatic` is whether it pipelines loops, `buses` whether the flow is Vitis's, where arguments
    are ports of m_axi.
    """
    found = {"automatic": True, "buses": False}
    for texts in reversed([*_near(source, file)]):
        counts = {match[1] for text in texts for match in _PIPELINES.finditer(text)}
        flows = {match[1] for text in texts for match in _FLOW.finditer(text)}
        if counts:
            found["automatic"] = counts != {"0"}
        if flows:
            found["buses"] = flows == {"vitis"}
    return found


def _near(source: Path, file: Path | str | None) -> Iterator[list[str]]:
    """Yield the text of the file of directives and its script; then of those at the source.

    Those are the cfg files that name it, then the scripts and the cfg files beside it.
    """
    folder = source.parent
    yield _texts([] if file is None else [Path(file), Path(file).with_name("script.tcl")])
    yield _texts(files_of(source))
    beside = [*folder.glob("*.tcl"), *folder.glob("*.cfg"), *folder.glob("*/script.tcl")]
    yield [text for text in _texts(beside) if _may_speak_of(text, source)]


def _may_speak_of(text: str, source: Path) -> bool:
    """Whether a script or a cfg file is not one for other sources alone, as it names them."""
    lines = "".join(match[0] for match in _FILES.finditer(text))
    return source.name in lines or "$" in lines or "*" in lines or not lines


def _texts(scripts: Iterable[Path]) -> list[str]:
    return [path.read_text("utf-8", "replace") for path in _readable(scripts)]


def _around(folder: Path) -> Iterator[list[Path]]:
    """Yield the Tcl files in a folder and below, then those of the folders around it.

    They are around it up to the working folder or a repository's. Of a folder in neither (one of
    ``/tmp``), only the solutions beside it count: what else is there belongs to others.
    """
    left, before, places = _FOLDERS, "", [*itertools.islice(places_around(folder), _UP)]
    if len(places) == 1 and not (places[0] == Path.cwd() or (places[0] / ".git").exists()):
        yield list(places[0].parent.glob("solution*/script.tcl"))
    for above in places:
        scripts = []
        for base, folders, files in os.walk(above):
            scripts += [Path(base, name) for name in files if name.endswith(".tcl")]
            left -= 1
            deep = base.count(os.sep) - str(above).count(os.sep) >= _DEEP or left <= 0
            inner = [] if deep else [one for one in folders if one[0] != "."]
            folders[:] = [one for one in inner if os.path.join(base, one) != before]
        yield scripts
        before = str(above)


def _named(part: str, scripts: Iterable[Path]) -> bool:
    """Return whether one of some scripts sets this part, written just so."""
    pattern = re.compile(rf"^\s*set_part\s+{{?{re.escape(part)}}}?(\s|$)", re.MULTILINE)
    return any(map(pattern.search, _texts(scripts)))


def _heads(files: Iterable[Path]) -> Iterator[str]:
    """Yield how files begin."""
    for path in _readable(files):
        with path.open(encoding="utf-8", errors="replace") as opened:
            yield opened.read(2000)


def _readable(scripts: Iterable[Path]) -> Iterator[Path]:
    return (path for path in scripts if path.is_file() and os.access(path, os.R_OK))


def _written_by(scripts: Iterable[Path]) -> str | None:
    """Return the tool that wrote some scripts, None where none says so or they differ."""
    tools: set[str] = set()
    years: set[int] = set()
    for head in _heads(scripts):
        tools.update(name.lower() for name in _WRITTEN.findall(head))
        years.update(map(int, _DESIGN.findall(head)))
    if not tools and years:
        tools = {"vivado" if year < 2020 else "vitis" if year > 2020 else "" for year in years}
    return tools.pop() or None if len(tools) == 1 else None
