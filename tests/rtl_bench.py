"""Builds the benches of ``tests/rtl``: SystemVerilog through Verilator, a C++ main around it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.board.rtl.lint import Verilator, find_verilator
from pynq_torch.hls import cache, toolchain

ROOT = Path(__file__).resolve().parents[1]
BENCHES = ROOT / "tests" / "rtl"
SHARED = ROOT / "hw" / "rtl"
KERNELS = ROOT / "hw" / "kernels"
_TIMEOUT_S = 250
# Compiling takes longer than running: no more than -O1.
_FLAGS = ("-std=gnu++17", "-pthread", "-O1", "-DVL_TIME_CONTEXT")
# What every file here begins with, compiled once: half of the time otherwise.
_COMMON = ("verilated.h", "cstring", "deque", "functional", "memory", "random", "vector")


@dataclass(frozen=True)
class Model:
    """A module to simulate, with its parameters as text: ``{"DEPTH": "4"}``, and macros."""

    top: str
    parameters: tuple[tuple[str, str], ...] = ()
    macros: tuple[str, ...] = ()
    path: Path | None = None
    options: tuple[str, ...] = ()  # of Verilator

    @property
    def source(self) -> Path:
        """Return its file: the one given, a kernel's, or one of those that kernels share."""
        if self.path is not None:
            return self.path
        kernel = KERNELS / self.top / "rtl" / f"{self.top}.sv"
        return kernel if kernel.is_file() else SHARED / f"{self.top}.sv"


@dataclass(frozen=True)
class Bench:
    """One program: ``tests/rtl/<main>_tb.cpp`` with the models it drives."""

    main: str
    models: tuple[Model, ...]
    defines: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()


def lint(path: Path) -> list[str]:
    """Return what Verilator has to say of one file under ``-Wall``."""
    tool = find_verilator()
    command = ["--lint-only", "-Wall", "--assert", "--top-module", path.stem]
    # Verilator finds modules by their files' names, and no packages: those come first.
    packages = [str(file) for file in sorted(path.parent.glob("*_types.sv")) if file != path]
    answer = _run(tool, [*command, *_search(path), *packages, str(path)])
    lines = (answer.stdout + answer.stderr).splitlines()
    said = [line for line in lines if line.strip() and not line.startswith("- ")]
    return said if said or answer.returncode == 0 else [f"exit status {answer.returncode}"]


def build(bench: Bench) -> Path:
    """Return the program of a bench, built or from the cache."""
    tool = find_verilator()
    sources = [
        BENCHES / f"{bench.main}_tb.cpp",
        *sorted(BENCHES.glob("*.hpp")),
        *sorted(SHARED.glob("*.sv")),
        *(source for model in bench.models for source in model.source.parent.glob("*.sv")),
        *(header for folder in bench.includes for header in sorted(folder.glob("*.h*"))),
    ]
    compiler = toolchain.compiler_version()
    key = cache.digest("rtl bench", repr(bench), tool.version, compiler, *_FLAGS)
    with cache.locked(key):
        entry = cache.find(key)
        if entry is None:
            with cache.scratch() as folder:
                _compile(tool, bench, folder)
                entry = cache.store(key, folder, [str(path) for path in sources], (), {})
    return Path(entry["path"]) / "bench"


def _compile(tool: Verilator, bench: Bench, folder: Path) -> None:
    library = _library(tool)
    common = ["-include", str(library / "common.hpp")]
    objects = []
    includes = [f"-I{folder}" for folder in bench.includes]
    for model in bench.models:
        made = folder / model.top
        options = ["--cc", "--assert", "--no-timing", "--x-initial", "unique", "-O3"]
        options += ["--top-module", model.top, "--prefix", f"V{model.top}", "--Mdir", str(made)]
        options += [f"-G{name}={value}" for name, value in model.parameters]
        options += [*model.options, *(f"-D{macro}" for macro in model.macros)]
        answer = _run(tool, [*options, *_search(model.source), str(model.source)])
        assert answer.returncode == 0, answer.stdout + answer.stderr
        parts = sorted(made.glob("*.cpp"))
        whole = made / "whole.cc"
        whole.write_text("".join(f'#include "{part.name}"\n' for part in parts))
        objects.append(made / "whole.o")
        includes.append(f"-I{made}")
        _g(tool, [*common, "-w", f"-I{made}", "-c", str(whole), "-o", str(objects[-1])])
    defines = [f"-D{define}" for define in bench.defines]
    main = str(BENCHES / f"{bench.main}_tb.cpp")
    linked = [*map(str, objects), *map(str, library.glob("*.o"))]
    program = str(folder / "bench")
    warn = ["-Wall", "-Wno-unknown-pragmas"]
    _g(tool, [*common, *warn, *includes, *defines, main, *linked, "-o", program])


def _library(tool: Verilator) -> Path:
    """Return the folder of what all benches share: Verilator's own library, a header."""
    compiler = toolchain.compiler_version()
    key = cache.digest("rtl bench library", tool.version, compiler, *_FLAGS, *_COMMON)
    with cache.locked(key):
        entry = cache.find(key)
        if entry is None:
            with cache.scratch() as folder:
                header = folder / "common.hpp"
                header.write_text("".join(f"#include <{name}>\n" for name in _COMMON))
                _g(tool, ["-x", "c++-header", str(header), "-o", f"{header}.gch"])
                for name in ("verilated", "verilated_threads"):
                    source = tool.root / "include" / f"{name}.cpp"
                    _g(tool, ["-w", "-c", str(source), "-o", str(folder / f"{name}.o")])
                entry = cache.store(key, folder, (), (), {})
    return Path(entry["path"])


def _search(path: Path) -> list[str]:
    return [option for folder in (path.parent, SHARED) for option in ("-y", str(folder))]


def _g(tool: Verilator, arguments: Sequence[str]) -> None:
    include = tool.root / "include"
    headers = ["-isystem", str(include), "-isystem", str(include / "vltstd")]
    command = [toolchain.compiler(), *_FLAGS, *headers, *arguments]
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )
    assert answer.returncode == 0, answer.stderr


def _run(tool: Verilator, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(tool.binary), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
        env={"VERILATOR_ROOT": str(tool.root)},
    )
