"""The command of g++: flags that keep a kernel's arithmetic as written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import toolchain

__all__ = ["APART", "AXIS_ARRAYS", "CHECK_INDICES", "compile_command", "flags"]

# Speed without changing a result: x86 would contract a*b+c into one rounding (-ffp-contract), and
# HLS integers wrap around (-fwrapv); kernels reinterpret floats through pointers
# (-fno-strict-aliasing). errno is nothing a kernel can read. A plain char has a sign in HLS, and on
# x86, but not on Arm (-fsigned-char).
_COMMON = (
    *("-std=gnu++17", "-pthread", "-Wno-unknown-pragmas", "-fno-strict-aliasing"),
    "-fsigned-char",
)
# C as the vendor's compiler takes it: `static acc = 0;` is an int there.
_C = ("-std=gnu11", "-Wno-implicit-int", "-Wno-implicit-function-declaration")
# Published kernels add up in local arrays they never clear: block RAM is zero after configuration.
_ZEROED = "-ftrivial-auto-var-init=zero"
_FAST = ("-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fwrapv")
#: Reports an index outside a local array of known size, and goes on (``engines/indices.hpp``).
CHECK_INDICES = "-fsanitize=bounds"
#: Brings the rules of arrays behind streams into ``engine.hpp``, and ``ap_int.h`` with them.
AXIS_ARRAYS = "-DPYNQ_TORCH_AXIS_ARRAYS"
#: Leaves out of ``engine.hpp`` what is in the object file of ``engine_process.hpp``.
APART = "-DPYNQ_TORCH_ENGINE_APART"
_CHECKED = (
    "-O1",
    "-g1",  # lines for a report; with types and variables g++ takes five times as long for tables
    "-ffp-contract=off",
    "-fsanitize=address,undefined",
    # ap_int.h shifts negative values to the left, which every compiler and C++20 define.
    "-fno-sanitize=shift-base",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
)


def flags(sanitize: bool = False) -> tuple[str, ...]:
    """Return the compiler's flags, include folders apart.

    Parameters
    ----------
    sanitize : bool
        With ``-fsanitize=address,undefined`` in place of the optimisations.
    """
    return (*_COMMON, *(_CHECKED if sanitize else _FAST))


def compile_command(
    source: Path | str,
    output: Path | str,
    *,
    sanitize: bool = False,
    cflags: Sequence[str] = (),
    include_dirs: Sequence[Path] = (),
    language: str = "c++",
) -> list[str]:
    """Return the command that makes the program `output` of one C++ (or ``"c"``) source.

    It has the flags and include folders of an engine, so that a plain C++ program can be
    compared with one.
    """
    folders = [*include_dirs, *toolchain.include_dirs()]
    own = flags(sanitize)
    if language == "c":
        own = (*_C, *(flag for flag in own if not flag.startswith("-std=")))
    return [
        toolchain.compiler(),
        *own,
        *([_ZEROED] if toolchain.has_option(_ZEROED) else []),
        *(f"-I{folder}" for folder in folders[:-1]),
        "-isystem",
        str(folders[-1]),
        *cflags,
        "-x",
        language,
        str(source),
        "-o",
        str(output),
    ]
