"""Compiling the C++ that Verilator writes: a model in parts, its runtime library once."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pynq_torch.errors import RtlError
from pynq_torch.hls import cache, toolchain
from pynq_torch.hls.build import machine

from .lint import Verilator, captured
from .verilate import PREFIX

__all__ = ["compile_model"]

_TIMEOUT_S = 900
#: What Verilator's FST writer takes from lz4 and zlib.
_COMPAT = Path(__file__).resolve().parents[1] / "engines" / "rtl" / "compat"
_JOBS = max(2, os.cpu_count() or 1)
# Two models, or five, built at once: no more compilers than processors, all the same.
_turns = threading.BoundedSemaphore(_JOBS)
_COMMON = (
    "-std=gnu++17", "-fPIC", "-fvisibility=hidden", "-pthread", "-march=native", "-w",
    "-fno-math-errno", "-ffp-contract=off", "-DVERILATOR=1", "-DVM_COVERAGE=0", "-DVM_SC=0",
    "-DVM_TIMING=0", "-DVM_TRACE_SAIF=0",
    # What ends or prints in Verilator's runtime library is ours (templates/model.cpp.j2).
    "-DVL_USER_FINISH", "-DVL_USER_STOP", "-DVL_USER_FATAL", "-DVL_USER_WARN",
    "-DVL_PRINTF=pynq_torch_print",
)  # fmt: skip
_FAST = "-O3"
_SLOW = "-O1"  # construction, initial blocks: they run once
# Below this size of all sources together they are compiled as two.
_SMALL_BYTES = 600_000
_PRINT = "void pynq_torch_print(const char* format, ...) __attribute__((format(printf, 1, 2)));\n"


def compile_model(tool: Verilator, name: str, waves: str, work: Path, library: Path) -> None:
    """Compile what Verilator wrote into `work`, and ``model.cpp``, to the shared library `library`.

    Raises
    ------
    RtlError
        The compiler's message; it begins with `name`, the kernel.
    """
    common = work / "common.hpp"
    cache.write_text(common, f'{_PRINT}#include "{PREFIX}__pch.h"\n')
    flags = [*_flags(tool, waves), f"-I{work}"]
    sources = sorted([*work.glob(f"{PREFIX}*.cpp"), work / "model.cpp"])
    if sum(path.stat().st_size for path in sources) < _SMALL_BYTES:
        sources = _joined(sources, work)
    else:
        # The largest first: two processors then end together.
        sources.sort(key=lambda path: (not _is_fast(path), -path.stat().st_size))

    def compile_one(source: Path) -> Path:
        level, target = _FAST if _is_fast(source) else _SLOW, source.with_suffix(".o")
        _run([*flags, level, "-include", common, "-c", source, "-o", target], name)
        return target

    with ThreadPoolExecutor(_JOBS) as pool:
        runtime = pool.submit(_runtime, tool, work)
        if len(sources) > _JOBS:
            # Good for both levels: what differs is no option of the processor's.
            target = work / f"{common.name}.gch"
            _run([*flags, _FAST, "-x", "c++-header", common, "-o", target], name)
        objects = list(pool.map(compile_one, sources))
    parts = map(str, [*objects, *runtime.result()])
    libraries = ["-lz"] if waves == "fst" and not _own_fst(tool) else []
    link = [toolchain.compiler(), "-shared", "-pthread", *parts, "-Wl,-Bsymbolic", "-ldl"]
    _run([*link, *libraries, "-o", library], name)


def _joined(sources: Sequence[Path], work: Path) -> list[Path]:
    """Return two sources instead of many: reading the headers takes longer than small ones."""
    joined = []
    for stem, fast in (("fast", True), ("once__Slow", False)):
        parts = [path for path in sources if _is_fast(path) is fast]
        path = work / f"all_{stem}.cpp"
        cache.write_text(path, "".join(f'#include "{part.name}"\n' for part in parts))
        joined.append(path)
    return joined


def _is_fast(source: Path) -> bool:
    """Tell what runs in every cycle from what runs once."""
    return not source.stem.endswith("__Slow")


def _flags(tool: Verilator, waves: str) -> list[str]:
    traced = {"": bool(waves), "_FST": waves == "fst", "_VCD": waves == "vcd"}
    include = tool.root / "include"
    folders = [*([_COMPAT] if _own_fst(tool) else []), include, include / "vltstd"]
    return [
        toolchain.compiler(),
        *_COMMON,
        *(f"-DVM_TRACE{kind}={int(on)}" for kind, on in traced.items()),
        *(f"-I{folder}" for folder in folders),
    ]


def _own_fst(tool: Verilator) -> bool:
    """Return whether Verilator's FST writer is its own, which needs four functions of ours only."""
    return (tool.root / "include" / "fstcpp").is_dir()


def _runtime(tool: Verilator, work: Path) -> list[Path]:
    """Return the objects of Verilator's runtime library that a model needs, each made once."""
    listing = (work / f"{PREFIX}_classes.mk").read_text(encoding="utf-8")
    parts = re.findall(r"VM_GLOBAL_(?:FAST|SLOW) \+= \\\n((?:.*\\\n)*)", listing)
    names = sorted({word for part in parts for word in part.split() if word != "\\"})
    with ThreadPoolExecutor(_JOBS) as pool:
        return list(pool.map(lambda name: _runtime_object(tool, name), names))


def _runtime_object(tool: Verilator, name: str) -> Path:
    own = [path.read_bytes() for path in sorted(_COMPAT.iterdir())]
    key = cache.digest("verilated", name, tool.version, machine(), *_COMMON, *own)

    def make() -> cache.Entry:
        with cache.scratch() as folder:
            common = folder / "print.hpp"
            cache.write_text(common, _PRINT)
            source = tool.root / "include" / f"{name}.cpp"
            flags = [*_flags(tool, "-"), _SLOW, "-include", str(common)]
            target = folder / f"{name}.o"
            command = [*flags, "-c", str(source), "-o", str(target)]
            _run(command, "Verilator's runtime library")
            return cache.store(key, folder, (), (), {})

    return Path(cache.find_or_make(key, (), make)["path"]) / f"{name}.o"


def _run(command: Sequence[str | Path], name: str) -> None:
    try:
        with _turns:
            answer = captured(command, name, _TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise RtlError(
            f"{name}: the C++ compiler did not finish within {_TIMEOUT_S} s on "
            f"{Path(command[-1]).name}: the design is too large to simulate here",
            name,
        ) from error
    if answer.returncode == 0:
        return
    hint = ""
    if "zlib.h" in answer.stderr or "-lz" in answer.stderr:
        hint = (
            "\nFST waves need zlib (Debian and Ubuntu: apt install zlib1g-dev); waves in a .vcd "
            "file do not"
        )
    shown = "\n".join(answer.stderr.splitlines()[:30])
    raise RtlError(f"{name}: the C++ of its RTL does not compile:\n{shown}{hint}", name)
