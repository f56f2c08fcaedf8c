"""Building a kernel's C++ into an engine executable for the virtual board."""

from __future__ import annotations

import functools
import os
import platform
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pynq_torch.errors import InterfaceWarning, KernelBuildError

from . import cache, headers, toolchain
from .command import AXIS_ARRAYS, flags
from .compile import compile_program
from .directives import files_beside
from .interface import Interface
from .kernels import KernelSource, companions, has_main

__all__ = ["Build", "adapter", "build", "compile_engine", "machine", "own_sources"]

_ENGINE = "engine"
_OWN = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Build:
    """An engine executable and the interface it was made for.

    Parameters
    ----------
    executable : pathlib.Path
        Started by the board, not by hand.
    interface : Interface
        Of the top function.
    seconds : float
        Wall-clock time of this call.
    cached : bool
        Nothing had to be compiled.
    log : str
        What the compiler said (warnings).
    """

    executable: Path
    interface: Interface
    seconds: float
    cached: bool
    log: str


def build(
    kernel: KernelSource,
    *,
    tool: str = "vitis",
    sanitize: bool = False,
    cflags: Sequence[str] = (),
) -> Build:
    """Build the engine executable of `kernel`, or find it unchanged in the cache.

    Parameters
    ----------
    kernel : KernelSource
        From :func:`pynq_torch.hls.find_kernel`.
    tool : {"vitis", "vivado"}
        Whose rules give the register offsets.
    sanitize : bool
        Build with ``-fsanitize=address,undefined``.
    cflags : sequence of str
        Further flags for the compiler.

    Raises
    ------
    KernelBuildError
        The compiler's message, with file and line; or no compiler, or no space.
    InterfaceError
        The interface cannot be derived.
    """
    begin = time.perf_counter()
    extra = files_beside(kernel.source)
    made: list[cache.Entry] = []

    def make() -> cache.Entry:
        made.append(_build(kernel, tool, sanitize, cflags, key, extra))
        return made[0]

    given = (*_weights(kernel), *cflags)
    key = cache.digest("kernel", kernel, tool, sanitize, *given, machine(), own_sources())
    entry = cache.find_or_make(key, extra, make)
    interface = Interface.from_json(entry["facts"]["interface"])
    for text in interface.warnings:
        warnings.warn(text, InterfaceWarning, stacklevel=2)
    return Build(
        executable=Path(entry["path"]) / _ENGINE,
        interface=interface,
        seconds=time.perf_counter() - begin,
        cached=not made,
        log=entry["facts"]["log"],
    )


def kernel_interface(kernel: KernelSource, tool: str) -> Interface:
    """Return the interface of a kernel's top function."""
    from .parse import read_interface  # loads libclang

    return read_interface(
        kernel.source,
        kernel.top,
        tool=tool,
        include_dirs=kernel.include_dirs,
        defines=kernel.defines,
    )


def _build(
    kernel: KernelSource,
    tool: str,
    sanitize: bool,
    cflags: Sequence[str],
    key: str,
    extra: Sequence[Path],
) -> cache.Entry:
    interface = kernel_interface(kernel, tool)
    try:
        return _compile(kernel, interface, sanitize, cflags, key, extra, as_c=False)
    except KernelBuildError:
        if kernel.source.suffix != ".c":
            raise
    # C that is no C++: compiled on its own and called through its prototype.
    return _compile(kernel, interface, sanitize, cflags, key, extra, as_c=True)


def _weights(kernel: KernelSource) -> list[str]:
    """Tell an hls4ml kernel where its weights are; it reads them when it first runs in C-sim.

    hls4ml's ``nnet_helpers.h`` looks in WEIGHTS_DIR, by default a folder of the program's.
    """
    folder = kernel.source.parent / "weights"
    return [f"-DWEIGHTS_DIR={_cstring(str(folder))}"] if folder.is_dir() else []


def _macros(kernel: KernelSource, interface: Interface) -> list[str]:
    arrays = any(argument.kind == "axis_array" for argument in interface.arguments)
    own = [f"-D{define}" for define in kernel.defines]
    return [*own, *_weights(kernel), *([AXIS_ARRAYS] if arrays else [])]


def _cstring(text: str) -> str:
    """Return a C string literal."""
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(char, escaped)
    return f'"{text}"'


def _compile(
    kernel: KernelSource,
    interface: Interface,
    sanitize: bool,
    cflags: Sequence[str],
    key: str,
    extra: Sequence[Path],
    *,
    as_c: bool,
) -> cache.Entry:
    from .dataflow import Copies  # loads libclang

    with cache.scratch() as folder:
        copies = Copies(folder, kernel.include_dirs, kernel.defines)

        def provide(symbols: set[str]) -> list[Path]:
            if as_c:  # a lambda is no C: its processes run in order
                return [kernel.source, *companions(kernel, symbols)]
            return list(map(copies.of, companions(kernel, symbols)))

        compiled = kernel.source if as_c else copies.of(kernel.source)
        source = folder / f"{kernel.name}_engine.cpp"
        text = adapter(replace(interface, source=compiled), as_c=as_c, scratch=folder)
        cache.write_text(source, text)
        made = compile_program(
            source,
            folder / _ENGINE,
            name=kernel.name,
            provide=provide,
            sanitize=sanitize,
            cflags=[*_macros(kernel, interface), *cflags],
            include_dirs=[kernel.source.parent, *kernel.include_dirs],
            as_c=as_c,
            copied=copies.files,
        )
        headers.drop_link(folder)
        facts = {"interface": interface.as_json(), "log": made.log}
        return cache.store(key, folder, made.files, extra, facts, made.absent)


def adapter(interface: Interface, *, as_c: bool = False, scratch: Path | None = None) -> str:
    """Return the C++ that puts a kernel behind the engine's registers.

    Parameters
    ----------
    interface : Interface
    as_c : bool
        The kernel is C, compiled on its own, instead of a part of this file.
    scratch : pathlib.Path, optional
        The folder of the build, for a source whose path C++ cannot spell.
    """
    source = interface.source
    # The engine comes before the kernel: kernels define macros called N, S or max.
    lines = [f'#include "{toolchain.engine_header()}"']
    if as_c:
        lines += [_prototype(interface)]
    else:
        plain = f'#include "{source}"'
        included = plain if scratch is None else headers.include(source, scratch)
        # A testbench in the kernel's own file: its main must not be the engine's.
        renamed = ["#define main pynq_torch_testbench_main", included, "#undef main"]
        lines += renamed if has_main(source) else [included]
    lines += [""]
    call = f"return pynq_torch::serve(argc, argv, &{interface.qualified or interface.top}"
    if interface.arguments:
        rows = []
        for argument in interface.arguments:
            length = argument.length
            if argument.kind == "axis" and argument.axis is not None:
                length = argument.axis.count
            row = f"{{pynq_torch::Kind::{argument.kind}, {argument.width}"
            row += "}" if length is None else f", {length}}}"
            rows.append(f"    {row},  // {argument.name}")
        lines += ["static constexpr pynq_torch::Arg pynq_torch_args[] = {", *rows, "};"]
        call += ", pynq_torch_args"
    lines += [f"int main(int argc, char** argv) {{ {call}); }}", ""]
    return "\n".join(lines)


def _prototype(interface: Interface) -> str:
    """Return the declaration of a kernel written in C."""
    arguments = []
    for argument in interface.arguments:
        base, bracket, dims = argument.ctype.partition("[")
        arguments.append(f"{base} {argument.name}{bracket}{dims}")
    result = interface.returns.ctype if interface.returns is not None else "void"
    declaration = f'extern "C" {result} {interface.top}({", ".join(arguments)});'
    return declaration.replace("_Bool", "bool")


def compile_engine(source: Path, *, sanitize: bool = False, cflags: Sequence[str] = ()) -> Path:
    """Build an engine whose C++ is written by hand (``board/engines/*.cpp``).

    Parameters
    ----------
    source : pathlib.Path
        It defines ``main``.
    sanitize, cflags
        As for :func:`build`.

    Returns
    -------
    pathlib.Path
        The executable, in the same cache as kernels.
    """
    source = Path(source).resolve()
    key = cache.digest("engine", source, sanitize, *cflags, machine())

    def make() -> cache.Entry:
        with cache.scratch() as folder:
            made = compile_program(
                source, folder / _ENGINE, name=source.stem, sanitize=sanitize, cflags=cflags
            )
            return cache.store(key, folder, made.files, (), {"log": made.log}, made.absent)

    return Path(cache.find_or_make(key, (), make)["path"]) / _ENGINE


def machine() -> str:
    """Return what a build depends on apart from sources: compiler, its flags, the processor."""
    path = os.path.realpath(toolchain.compiler())
    status = os.stat(path)
    folders = " ".join(map(str, toolchain.include_dirs()))
    searched = [os.environ.get(name, "") for name in _SEARCHED]
    parts = (path, status.st_size, status.st_mtime_ns, flags(), flags(True), folders, *searched)
    return "|".join(map(str, (*parts, _processor())))


#: Where g++ looks for headers and libraries too.
_SEARCHED = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH")


@functools.cache
def _processor() -> str:
    """Return the instruction sets, since -march=native makes programs for this machine only."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.machine()
    for line in text.splitlines():
        if line.startswith(("flags", "Features")):
            return cache.digest(line)
    return platform.machine()


#: Modules that neither derive an interface nor compile: a change of these rebuilds no engine.
_NO_PART_OF_A_BUILD = {"csynth.py", "generate.py", "testbench.py"}


@functools.cache
def own_sources() -> str:
    """Return a digest of the code that derives interfaces: a new version builds again."""
    paths = [path for path in sorted(_OWN.glob("*.py")) if path.name not in _NO_PART_OF_A_BUILD]
    if not paths:
        raise KernelBuildError(f"{_OWN} holds no sources")
    paths.append(_OWN.parent / "descriptions.py")  # evaluates the numbers of directives
    return cache.digest(*(part for path in paths for part in (path.name, path.read_bytes())))
