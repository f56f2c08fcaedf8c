"""Running g++: flags that keep a kernel's arithmetic as written, and errors worth reading."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from pynq_torch.errors import KernelBuildError

from . import cache, headers, toolchain

__all__ = ["compile_command", "compile_program", "dependencies", "flags"]

_TIMEOUT_S = 900
_NO_HEADER = re.compile(r"fatal error: ([^:]+): No such file")
_UNDEFINED = re.compile(r"undefined reference to [`'‘]([^'’]+)['’]")

# Speed without changing a result: x86 would contract a*b+c into one rounding (-ffp-contract), and
# HLS integers wrap around (-fwrapv); kernels reinterpret floats through pointers
# (-fno-strict-aliasing). errno is nothing a kernel can read.
_COMMON = ("-std=gnu++17", "-pthread", "-Wno-unknown-pragmas", "-fno-strict-aliasing")
# C as the vendor's compiler takes it: `static acc = 0;` is an int there.
_C = ("-std=gnu11", "-Wno-implicit-int", "-Wno-implicit-function-declaration")
# Published kernels add up in local arrays they never clear: block RAM is zero after configuration.
_ZEROED = "-ftrivial-auto-var-init=zero"
_FAST = ("-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fwrapv")
_CHECKED = (
    "-O1",
    "-g",
    "-ffp-contract=off",
    "-fsanitize=address,undefined",
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


def compile_program(
    main: Path,
    output: Path,
    *,
    name: str,
    provide: Callable[[set[str]], Sequence[Path]] | None = None,
    sanitize: bool = False,
    cflags: Sequence[str] = (),
    include_dirs: Sequence[Path] = (),
    as_c: bool = False,
) -> tuple[str, list[str]]:
    """Compile `main` and whatever else it turns out to need, and link them to `output`.

    Parameters
    ----------
    main : pathlib.Path
        The C++ source with ``main``.
    output : pathlib.Path
        The program; its folder takes the object files.
    name : str
        The kernel, for messages.
    provide : callable, optional
        Given the undefined symbols of a failed link, the sources that may define them, each
        compiled on its own.
    sanitize, cflags, include_dirs
        As for :func:`compile_command`.
    as_c : bool
        ``.c`` files are C; otherwise they are C++, like all others.

    Returns
    -------
    log : str
        What the compiler said.
    files : list of str
        Every file it read.

    Raises
    ------
    KernelBuildError
        With the compiler's message.
    """
    log: list[str] = []
    files: list[str] = []
    stand_ins = output.parent / "include"

    def unit(source: Path) -> Path:
        target = output.parent / f"unit{len(log)}.o"
        listing = target.with_suffix(".d")
        command = compile_command(
            source,
            target,
            sanitize=sanitize,
            cflags=cflags,
            include_dirs=include_dirs,
            language="c" if as_c and source.suffix == ".c" else "c++",
        )
        command += ["-c", "-MD", "-MF", str(listing), "-idirafter", str(stand_ins)]
        while True:
            try:
                log.append(_run(command, name))
                break
            except KernelBuildError as error:
                header = _NO_HEADER.search(str(error))
                real = headers.real_name(header[1], include_dirs) if header else None
                if header is None or real is None or (stand_ins / header[1]).exists():
                    raise
                headers.write_stand_in(stand_ins, header[1], real)
        files.extend(dependencies(listing))
        return target

    objects = [unit(main)]
    tried: set[Path] = set()
    while True:
        link = [toolchain.compiler(), *flags(sanitize), *map(str, objects), "-o", str(output)]
        try:
            log.append(_run([*link, *[flag for flag in cflags if flag.startswith("-l")]], name))
            break
        except KernelBuildError as error:
            missing = {match.split("(")[0] for match in _UNDEFINED.findall(str(error))}
            more = list(provide(missing)) if provide and missing else []
            more = [source for source in more if source not in tried]
            if not more:
                raise
            tried.update(more)
            objects += [unit(source) for source in more]
    for target in objects:
        target.unlink()
        target.with_suffix(".d").unlink()
    shutil.rmtree(stand_ins, ignore_errors=True)
    return "".join(log), sorted(set(files))


def _run(command: Sequence[str], name: str) -> str:
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_TIMEOUT_S,
            # Its messages are read below, in English.
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired as error:
        raise KernelBuildError(
            f"{name}: the compiler did not finish within {_TIMEOUT_S} s: {' '.join(command)}", name
        ) from error
    if answer.returncode == 0:
        return answer.stderr
    if "No space left on device" in answer.stderr:
        raise KernelBuildError(cache.no_room(), name)
    raise KernelBuildError(_message(name, answer.stderr, answer.returncode), name)


def _message(name: str, said: str, code: int) -> str:
    """Return the compiler's errors, without the warnings before and the template noise between."""
    lines = said.splitlines()
    first = next((i for i, line in enumerate(lines) if re.search(r"\berror:", line)), None)
    undefined = [line for line in lines if _UNDEFINED.search(line)]
    if undefined:
        shown = undefined[:40]
    elif first is None:
        shown = lines[-40:]
    else:
        # The "In function ..." line before the error says where it is.
        begin = first - 1 if first and lines[first - 1].endswith(":") else first
        shown = lines[begin : begin + 40]
    kind = "link" if undefined else "compile"
    header = _NO_HEADER.search(said)
    hint = ""
    if header:
        hint = (
            f"\n{header.group(1)} is not among this package's HLS headers, those of Vitis "
            "(XILINX_HLS) or the kernel's folder: put it beside the kernel"
        )
    return f"{name} did not {kind} (g++ exit status {code}):\n" + "\n".join(shown) + hint


def dependencies(listing: Path) -> list[str]:
    """Return the absolute paths in a dependency file that ``g++ -MD`` wrote."""
    text = listing.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ")
    _, _, files = text.partition(": ")
    words = re.findall(r"(?:\\ |[^\s])+", files)
    return [str(Path(word.replace("\\ ", " ")).resolve()) for word in words]
