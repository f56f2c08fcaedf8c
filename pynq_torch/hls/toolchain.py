"""The compiler and the headers that HLS sources are read and built with.

Nothing is downloaded or copied: the arbitrary-precision types come from Vitis where it is
installed, otherwise from the ``hls4ml`` wheel, and the compiler is the machine's own.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from pynq_torch.errors import KernelBuildError

from . import cache

__all__ = [
    "LIBRARY",
    "LIGHT_HEADERS",
    "ap_types_dir",
    "compiler",
    "compiler_version",
    "engine_header",
    "has_option",
    "header_dirs",
    "in_library",
    "include_dirs",
    "system_include_dirs",
]

#: Headers with which clang makes plain code, for the estimator.
LIGHT_HEADERS = Path(__file__).resolve().parent / "estimator" / "include"
_OWN_HEADERS = Path(__file__).resolve().parent / "include"
#: Functions that HLS compiles into a kernel as if they were written there: `hls_video.h`.
LIBRARY = Path(__file__).resolve().parent / "library"
_ENGINE_HEADERS = Path(__file__).resolve().parent.parent / "board" / "engines"


def compiler() -> str:
    """Return the path of the C++ compiler: ``$CXX``, else ``g++`` on the PATH.

    Raises
    ------
    KernelBuildError
        There is none.
    """
    wanted = os.environ.get("CXX", "g++")
    found = shutil.which(wanted.split()[0])
    if found is None:
        raise KernelBuildError(
            f"no C++ compiler: {wanted!r} is not on the PATH. Install g++ (Debian and Ubuntu: "
            "apt install g++; conda: gxx), or set CXX to the compiler to use"
        )
    return found


@functools.cache
def _version_of(path: str, mtime_ns: int) -> str:
    answer = subprocess.run(
        [path, "--version"], capture_output=True, text=True, check=False, timeout=60
    )
    return answer.stdout.splitlines()[0] if answer.stdout else path


def compiler_version(path: str | None = None) -> str:
    """Return the first line of ``g++ --version``; asked once a process."""
    path = compiler() if path is None else path
    return _version_of(path, os.stat(path).st_mtime_ns)


#: Variables that change what g++ answers below.
_ENVIRONMENT = ("CPATH", "CPLUS_INCLUDE_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH")


def _remembered(path: str, question: str, ask: Callable[[], list[str]]) -> list[str]:
    """Return what a compiler answered to `question`, asked once for every program on the PC.

    The answer is in the build cache, under the compiler's file and the variables that it reads.
    """
    status = os.stat(path)
    variables = [f"{name}={os.environ.get(name)}" for name in _ENVIRONMENT]
    parts = (path, os.path.realpath(path), status.st_size, status.st_mtime_ns, *variables)
    return cache.remembered(cache.digest("compiler", question, *parts), ask)


@functools.cache
def _takes(path: str, option: str) -> bool:
    def ask() -> list[str]:
        command = [path, option, "-E", "-x", "c++", os.devnull]
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        return ["yes"] if done.returncode == 0 else []

    return bool(_remembered(path, option, ask))


def has_option(option: str) -> bool:
    """Return whether the compiler takes `option`; asked once a process."""
    return _takes(compiler(), option)


@functools.cache
def _search_list(path: str) -> tuple[str, ...]:
    return tuple(_remembered(path, "the include folders", lambda: _ask_search_list(path)))


def _ask_search_list(path: str) -> list[str]:
    answer = subprocess.run(
        [path, "-E", "-x", "c++", "-v", "-"],
        input="",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    folders: list[str] = []
    inside = False
    for line in answer.stderr.splitlines():
        if line.startswith("#include <...> search starts here"):
            inside = True
        elif line.startswith("End of search list"):
            inside = False
        elif inside:
            folders.append(os.path.normpath(line.strip()))
    return folders


def system_include_dirs() -> tuple[str, ...]:
    """Return the include folders that g++ searches by itself, which libclang has to be told."""
    return _search_list(compiler())


@functools.cache
def ap_types_dir() -> Path:
    """Return the folder with ``ap_int.h`` and ``ap_fixed.h``.

    Vitis' own (``$XILINX_HLS/include``) wins; otherwise the copy inside the hls4ml wheel.

    Raises
    ------
    KernelBuildError
        Neither is installed.
    """
    for variable in ("XILINX_HLS", "XILINX_VIVADO_HLS"):
        if variable in os.environ:
            folder = Path(os.environ[variable]) / "include"
            if (folder / "ap_int.h").is_file():
                return folder
    try:
        distribution = importlib.metadata.distribution("hls4ml")
    except importlib.metadata.PackageNotFoundError:
        distribution = None
    if distribution is not None:
        located = distribution.locate_file("hls4ml/templates/vivado/ap_types")
        folder = Path(str(located))
        if (folder / "ap_int.h").is_file():
            return folder
    raise KernelBuildError(
        "ap_int.h was not found: neither XILINX_HLS points at a Vitis HLS installation nor is the "
        "hls4ml wheel installed. Install it with: pip install 'pynq_torch[virtual]'"
    )


def engine_header() -> Path:
    """Return ``engine.hpp`` by its path: a kernel's folder may hold a header of that name."""
    return _ENGINE_HEADERS / "engine.hpp"


def include_dirs() -> tuple[Path, ...]:
    """Return the HLS include folders in search order: ours first, so that they win."""
    return (_OWN_HEADERS, LIBRARY, _ENGINE_HEADERS, ap_types_dir())


def in_library(file: str) -> bool:
    """Whether a file is of `LIBRARY`."""
    return file.startswith(f"{LIBRARY}/")


def header_dirs() -> tuple[str, ...]:
    """Return how paths of headers begin whose functions and loops are no kernel's."""
    folders = (LIGHT_HEADERS, *include_dirs())
    return tuple(f"{folder}/" for folder in folders if folder != LIBRARY)
