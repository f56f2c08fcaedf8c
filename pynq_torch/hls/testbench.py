"""Running a kernel's self-checking testbench on a PC: what Vitis calls C simulation."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pynq_torch.errors import KernelError, KernelTimeout, VerificationError

from . import cache
from .build import machine
from .compile import compile_program
from .kernels import KernelSource, companions, has_main

__all__ = ["TestbenchResult", "find_testbench", "run_testbench"]

_SUFFIXES = (".cpp", ".cc", ".cxx", ".c")
_LAST_LINES = 20


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
        There is none.
    """
    folder = kernel.source.parent
    exact = folder / f"{kernel.name}_tb.cpp"
    if exact.is_file():
        return exact
    places = [folder, *(folder / name for name in ("tb", "test", "testbench", "../tb", "../test"))]
    for place in places:
        for path in sorted(place.glob("*")):
            if path.suffix not in _SUFFIXES or not has_main(path):
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
    kernel: KernelSource, *, timeout_s: float = 300.0, sanitize: bool = False
) -> TestbenchResult:
    """Compile the kernel with its testbench and run it.

    It runs in a scratch folder that shows the kernel folder's files, as under Vitis, so that what
    it writes does not land beside the sources.

    Parameters
    ----------
    kernel : KernelSource
        From :func:`pynq_torch.hls.find_kernel`.
    timeout_s : float
        Limit for the run, in seconds.
    sanitize : bool
        Build with ``-fsanitize=address,undefined``.

    Raises
    ------
    VerificationError
        It ended with another status than 0; the message has its last lines.
    KernelTimeout
        It did not end in time.
    KernelBuildError
        It does not compile.
    """
    bench = find_testbench(kernel)
    program = _compile(kernel, bench, sanitize)
    with tempfile.TemporaryDirectory(prefix="pynq_torch_csim_") as folder:
        for item in bench.parent.iterdir():
            (Path(folder) / item.name).symlink_to(item)
        begin = time.perf_counter()
        with tempfile.TemporaryFile() as output:
            try:
                code = subprocess.run(
                    [str(program)],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=timeout_s,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired as error:
                raise KernelTimeout(
                    f"{kernel.name}: the testbench {bench.name} did not end within "
                    f"{timeout_s:g} s. It printed last:\n{_tail(_read(output))}",
                    kernel.name,
                ) from error
            seconds = time.perf_counter() - begin
            text = _read(output)
    if code != 0:
        how = f"was killed by signal {-code}" if code < 0 else f"returned {code}"
        raise VerificationError(
            f"{kernel.name}: the testbench {bench.name} {how}; 0 means success. "
            f"It printed last:\n{_tail(text)}"
        )
    return TestbenchResult(code, text, seconds)


def _compile(kernel: KernelSource, bench: Path, sanitize: bool) -> Path:
    key = cache.digest("testbench", kernel, bench, sanitize, machine())
    entry = cache.find(key)
    if entry is None:
        with cache.locked(key):
            entry = cache.find(key)
            if entry is None:
                with cache.scratch() as folder:
                    log, files = compile_program(
                        bench,
                        folder / "testbench",
                        name=kernel.name,
                        provide=lambda symbols: _providers(kernel, symbols),
                        sanitize=sanitize,
                        cflags=[f"-D{define}" for define in kernel.defines],
                        include_dirs=[kernel.source.parent, bench.parent, *kernel.include_dirs],
                    )
                    files = [file for file in files if not file.startswith(str(folder))]
                    entry = cache.store(key, folder, files, (), {"log": log})
    return Path(entry["path"]) / "testbench"


def _providers(kernel: KernelSource, symbols: set[str]) -> list[Path]:
    """Return the kernel's own source first, then what else it turns out to need."""
    names = {symbol.split("::")[-1].split("<")[0] for symbol in symbols}
    if kernel.top.split("<")[0].split("::")[-1] in names:
        return [kernel.source]
    return [kernel.source, *companions(kernel, symbols)]


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-_LAST_LINES:]) or "(nothing)"
