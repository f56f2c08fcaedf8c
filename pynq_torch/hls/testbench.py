"""Running a kernel's self-checking testbench on a PC: what Vitis calls C simulation."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.errors import InterfaceWarning, KernelError, KernelTimeout, VerificationError

from . import cache
from .build import kernel_interface, machine, own_sources
from .compile import compile_program
from .directives import files_beside
from .kernels import SUFFIXES, KernelSource, companions, has_main
from .stopped import place as place_of
from .stopped import report_from, what_stopped

__all__ = ["TestbenchResult", "find_testbench", "run_testbench"]

_LAST_LINES = 20
#: How long AddressSanitizer may look for the names of lines.
_REPORT_S = 10.0
#: More than this is not kept of what a testbench prints, and a program that has written sixteen
#: times as much to a file is stopped (SIGXFSZ): a loop that prints without end would fill the disk.
_MOST_OUTPUT = 16 << 20
_LIMITED = ("/bin/sh", "-c", f'ulimit -f {16 * _MOST_OUTPUT // 512}; exec "$0"')


@dataclass(frozen=True)
class TestbenchResult:
    """How a testbench ended.

    Parameters
    ----------
    exit_code : int
        0: a testbench that fails raises instead.
    output : str
        What it printed, standard output and error together.
    seconds : float
        Wall-clock time of the run, without compiling.
    """

    __test__ = False  # not a test class, whatever pytest thinks of its name

    exit_code: int
    output: str
    seconds: float


def find_testbench(kernel: KernelSource) -> Path:
    """Return the testbench beside a kernel's source.

    ``<name>_tb.cpp`` first, then any file of the folder, or of ``tb`` and ``test`` below it, that
    has ``main`` and names the top function.

    Raises
    ------
    KernelError
        There is no testbench.
    """
    folder = kernel.source.parent
    exact = folder / f"{kernel.name}_tb.cpp"
    if exact.is_file():
        return exact
    places = [folder, *(folder / name for name in ("tb", "test", "testbench", "../tb", "../test"))]
    for place in places:
        for path in sorted(place.glob("*")):
            if path.suffix not in SUFFIXES or not has_main(path):
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            if re.search(rf"\b{re.escape(kernel.top)}\b", text):
                return path.resolve()
    raise KernelError(
        f"{kernel.name}: no testbench. Expected {exact.name} in {folder}, or a file with main() "
        f"there that calls {kernel.top}",
        kernel.name,
    )


def run_testbench(
    kernel: KernelSource,
    *,
    timeout_s: float = 300.0,
    sanitize: bool = False,
    tool: str = "vitis",
    cflags: Sequence[str] = (),
) -> TestbenchResult:
    """Compile the kernel with its testbench and run it.

    It runs in a scratch folder with links to the kernel folder's files, as under Vitis, so that it
    writes nothing beside the sources.

    Parameters
    ----------
    kernel : KernelSource
        From :func:`pynq_torch.hls.find_kernel`.
    timeout_s : float
        Limit for the run, in seconds.
    sanitize : bool
        Build with ``-fsanitize=address,undefined``.
    tool : {"vitis", "vivado"}
        Whose rules the directives are checked against.
    cflags : sequence of str
        Further flags of the compiler, behind its usual ones.

    Raises
    ------
    VerificationError
        It ended with another status than 0; the message has its last lines.
    KernelTimeout
        It did not end in time.
    KernelBuildError
        It does not compile.
    InterfaceError
        The directives make no interface: the kernel computes, but cannot be synthesised.
    """
    bench = find_testbench(kernel)
    program, said = _compile(kernel, bench, sanitize, tool, cflags)
    for text in said:
        warnings.warn(text, InterfaceWarning, stacklevel=2)
    begin = time.perf_counter()
    code, output = _run(program, bench, timeout_s, sanitize)
    seconds = time.perf_counter() - begin
    last = "\n".join(report_from(output).splitlines()[-_LAST_LINES:]) or "(nothing)"
    if code is None:
        at = place_of(output)
        raise KernelTimeout(
            f"{kernel.name}: the testbench {bench.name} did not end within {timeout_s:g} s"
            f"{f', and was in {at} then' if at else ''}. It printed last:\n{last}",
            kernel.name,
        )
    if code != 0:
        how = what_stopped(output, code, sanitized=sanitize)
        raise VerificationError(
            f"{kernel.name}: the testbench {bench.name} {how}. It printed last:\n{last}"
        )
    return TestbenchResult(code, output, seconds)


def _run(program: Path, bench: Path, timeout_s: float, sanitized: bool) -> tuple[int | None, str]:
    """Return the exit status, None where it did not end in time, and the output."""
    with (
        tempfile.TemporaryDirectory(prefix="pynq_torch_csim_") as folder,
        tempfile.TemporaryFile() as output,
    ):
        for item in bench.parent.iterdir():
            (Path(folder) / item.name).symlink_to(item)
        code = None
        with subprocess.Popen(
            [*_LIMITED, str(program)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as running:
            try:
                code = running.wait(timeout_s)
            except subprocess.TimeoutExpired:
                if sanitized:  # AddressSanitizer answers with where it is
                    running.send_signal(signal.SIGBUS)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        running.wait(_REPORT_S)
            finally:
                running.kill()
        size = output.seek(0, 2)
        output.seek(max(0, size - _MOST_OUTPUT))
        text = output.read().decode("utf-8", errors="replace")
        if size > _MOST_OUTPUT:
            text = f"({size - _MOST_OUTPUT:,} bytes before this are left out)\n{text}"
        return code, text


def _compile(
    kernel: KernelSource, bench: Path, sanitize: bool, tool: str, cflags: Sequence[str]
) -> tuple[Path, list[str]]:
    """Return the program, and the warnings about the kernel's directives."""
    key = cache.digest(
        "testbench", kernel, bench, sanitize, tool, *cflags, machine(), own_sources()
    )
    extra = files_beside(kernel.source)

    def make() -> cache.Entry:
        from .dataflow import Copies  # loads libclang

        interface = kernel_interface(kernel, tool)
        with cache.scratch() as folder:
            copies = Copies(folder, (kernel.source.parent, *kernel.include_dirs), kernel.defines)
            made = compile_program(
                copies.of(bench),
                folder / "testbench",
                name=kernel.name,
                provide=lambda symbols: list(map(copies.of, _providers(kernel, symbols))),
                sanitize=sanitize,
                cflags=[*(f"-D{define}" for define in kernel.defines), *cflags],
                include_dirs=[kernel.source.parent, bench.parent, *kernel.include_dirs],
                copied=copies.files,
            )
            facts = {"log": made.log, "warnings": list(interface.warnings)}
            return cache.store(key, folder, made.files, extra, facts, made.absent)

    entry = cache.find_or_make(key, extra, make)
    return Path(entry["path"]) / "testbench", entry["facts"]["warnings"]


def _providers(kernel: KernelSource, symbols: set[str]) -> list[Path]:
    """Return the kernel's own source first, then what else it turns out to need."""
    names = {symbol.split("::")[-1].split("<")[0] for symbol in symbols}
    if kernel.top.split("<")[0].split("::")[-1] in names:
        return [kernel.source]
    return [kernel.source, *companions(kernel, symbols)]
