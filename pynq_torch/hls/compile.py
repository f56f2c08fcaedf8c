"""Running g++: what engines share is compiled once, and errors are worth reading."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pynq_torch.errors import KernelBuildError

from . import cache, depends, headers, toolchain
from .command import APART, AXIS_ARRAYS, CHECK_INDICES, compile_command, flags

__all__ = ["Compiled", "compile_program", "message"]

_TIMEOUT_S = 900
_PROCESS = "engine_process.o"
_NO_HEADER = re.compile(r"fatal error: ([^:]+): No such file")
_LINKING = re.compile("undefined reference to|multiple definition of")
_UNDEFINED = re.compile(r"undefined reference to [`'‘]([^'’]+)['’]")


@dataclass(frozen=True)
class Compiled:
    """What `compile_program` did.

    Parameters
    ----------
    log : str
        What the compiler said.
    files : list of str
        Every file it read, but for those of the build's own folder.
    absent : dict of str to list of str
        Names that would change the program if they appeared, by folder.
    """

    log: str
    files: list[str]
    absent: dict[str, list[str]]


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
    copied: Sequence[str] = (),
) -> Compiled:
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
    copied : sequence of str
        Files that are compiled as copies of them in the build's folder; read when all is done.

    Raises
    ------
    KernelBuildError
        With the compiler's message.
    """
    units = _Units(output.parent, name, sanitize, cflags, include_dirs, as_c)
    precompiled, made_from = _engine_header(main, sanitize, cflags, include_dirs)
    units.share(_engine_object(main, sanitize, cflags, include_dirs))
    units.add(main, precompiled)
    if precompiled:  # g++ names the precompiled header, not what that was made from
        folder = os.path.dirname(precompiled) + os.sep
        units.files = [*(file for file in units.files if not file.startswith(folder)), *made_from]
    _link(units, output, provide)
    read = _from_elsewhere([*units.files, *copied], output.parent.absolute())
    units.remove()
    searched: list[Path | str] = [
        *include_dirs,
        *toolchain.include_dirs(),
        *toolchain.system_include_dirs(),
    ]
    return Compiled("".join(units.log), read, depends.absent(read, searched))


@dataclass
class _Units:
    """The sources of one program, compiled in `folder` with the same options."""

    folder: Path
    name: str
    sanitize: bool
    cflags: Sequence[str]
    include_dirs: Sequence[Path]
    as_c: bool
    objects: list[Path] = field(default_factory=list)
    #: Compiled already, for every kernel.
    shared: list[Path] = field(default_factory=list)
    #: Every file that g++ read.
    files: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    @property
    def _stand_ins(self) -> Path:
        return self.folder / "include"

    def share(self, entry: cache.Entry | None) -> None:
        """Link the object file of an entry too; what is in it is then left out of the sources."""
        if entry is not None:
            self.shared.append(Path(entry["path"], _PROCESS))
            self.files.extend(entry["files"])
            self.cflags = [APART, *self.cflags]

    def add(self, source: Path, precompiled: str = "") -> None:
        """Compile a source, which begins with the precompiled header if there is one."""
        target = self.folder / f"unit{len(self.objects)}.o"
        listing = target.with_suffix(".d")
        command = compile_command(
            source,
            target,
            sanitize=self.sanitize,
            cflags=self.cflags,
            include_dirs=self.include_dirs,
            language="c" if self.as_c and source.suffix == ".c" else "c++",
        )
        command += ["-c", "-MD", "-MF", str(listing), "-idirafter", str(self._stand_ins)]
        if precompiled:
            command += ["-include", precompiled]
        said = _run_with_stand_ins(command, self.name, self._stand_ins, self.include_dirs)
        self.log.append(said)
        self.files.extend(depends.gcc_files(listing))
        self.objects.append(target)

    def link(self, output: Path) -> None:
        """Link what was compiled so far."""
        libraries = [flag for flag in self.cflags if flag.startswith("-l")]
        objects = map(str, [*self.objects, *self.shared])
        command = [toolchain.compiler(), *flags(self.sanitize), *objects]
        self.log.append(_run([*command, "-o", str(output), *libraries], self.name))

    def remove(self) -> None:
        """Remove what only the build needs."""
        for target in self.objects:
            target.unlink()
            target.with_suffix(".d").unlink()
        shutil.rmtree(self._stand_ins, ignore_errors=True)


def _link(
    units: _Units, output: Path, provide: Callable[[set[str]], Sequence[Path]] | None
) -> None:
    """Link the units; add the sources that `provide` has for undefined symbols until it works."""
    tried: set[Path] = set()
    while True:
        try:
            units.link(output)
            return
        except KernelBuildError as error:
            missing = {match.split("(")[0] for match in _UNDEFINED.findall(str(error))}
            more = list(provide(missing)) if provide and missing else []
            more = [source for source in more if source not in tried]
            if not more:
                raise
        tried.update(more)
        for source in more:
            units.add(source)


def _is_engine(main: Path, cflags: Sequence[str]) -> bool:
    """Return whether a source begins with ``engine.hpp``, and its flags are nothing but macros."""
    with main.open(encoding="utf-8", errors="replace") as file:
        begins = file.readline() == f'#include "{toolchain.engine_header()}"\n'
    return begins and all(flag.startswith("-D") or flag == CHECK_INDICES for flag in cflags)


def _engine_header(
    main: Path, sanitize: bool, cflags: Sequence[str], folders: Sequence[Path]
) -> tuple[str, list[str]]:
    """Return a header for ``g++ -include``, precompiled, and every file that it was made from.

    Every engine begins with ``engine.hpp``, and g++ needs half a second to read it. The name is
    empty where it has to be read as text: in small caches, with flags other than macros (g++ itself
    looks at those), and where one of `folders` holds a header that would be taken instead.
    """
    if not _is_engine(main, cflags):
        return "", []
    chosen = [APART, *(flag for flag in cflags if flag == AXIS_ARRAYS)]
    name = toolchain.engine_header().name
    entry = _common(name, f"{name}.gch", sanitize, chosen, folders, make=cache.is_in_use())
    return ("", []) if entry is None else (os.path.join(entry["path"], name), list(entry["files"]))


def _engine_object(
    main: Path, sanitize: bool, cflags: Sequence[str], folders: Sequence[Path]
) -> cache.Entry | None:
    """Return the entry with the object file of ``engine_process.hpp``, if it may be linked.

    It takes nine tenths of the time that an engine's own code needs. A macro of the compiler's
    libraries, which begins with an underscore, may change its layout.
    """
    if not _is_engine(main, cflags) or any(flag.startswith("-D_") for flag in cflags):
        return None
    return _common("engine_process.hpp", _PROCESS, sanitize, [APART], folders, make=True)


def _common(
    header: str,
    result: str,
    sanitize: bool,
    chosen: Sequence[str],
    folders: Sequence[Path],
    *,
    make: bool,
) -> cache.Entry | None:
    """Return the entry with what is made of an engine's `header` for every kernel.

    None where it is not there and not to be made, or not what a kernel with these `folders` has.
    """
    path = toolchain.engine_header().with_name(header)
    language = "c++-header" if result.endswith(".gch") else "c++"
    command = compile_command(path, "", sanitize=sanitize, cflags=chosen, language=language)
    places = [*map(str, toolchain.include_dirs()), *toolchain.system_include_dirs()]
    status = os.stat(toolchain.compiler())
    key = cache.digest("precompiled", *command, *places, status.st_size, status.st_mtime_ns)
    entry = cache.find(key)
    if entry is None:
        if not make:
            return None
        try:
            with cache.locked(key):
                entry = cache.find(key) or _precompile(path, result, command, places, key)
        except KernelBuildError:  # no room for it, say: there may be enough for the engine
            return None
    return None if _is_shadowed(entry["files"], places, folders) else entry


def _precompile(
    header: Path, result: str, command: Sequence[str], places: Sequence[str], key: str
) -> cache.Entry:
    with cache.scratch() as folder:
        source = folder / header.name
        listing = folder / "files.d"
        cache.write_text(source, f'#include "{header}"\n')
        *own, _, _, _ = command  # the header and where to
        _run(
            [*own, str(source), "-c", "-o", str(folder / result), "-MD", "-MF", str(listing)],
            header.name,
        )
        files = _from_elsewhere(depends.gcc_files(listing), folder)
        return cache.store(key, folder, files, (), {}, depends.absent(files, places))


def _is_shadowed(files: Sequence[str], places: Sequence[str], folders: Sequence[Path]) -> bool:
    """Return whether a folder holds a name with which one of the files could be included."""
    roots = [os.path.join(os.path.realpath(place), "") for place in places]
    names = {
        file[len(root) :].split("/")[0] for file in files for root in roots if file.startswith(root)
    }
    return any(not names.isdisjoint(os.listdir(folder)) for folder in folders if folder.is_dir())


def _run_with_stand_ins(
    command: Sequence[str], name: str, stand_ins: Path, folders: Sequence[Path]
) -> str:
    """Return the log of g++, run again with each header that only the vendor's tools have."""
    while True:
        try:
            return _run(command, name)
        except KernelBuildError as error:
            if "-include" in command and "PCH" in str(error):  # no room at its address, say
                command = command[: command.index("-include")]
                continue
            header = _NO_HEADER.search(str(error))
            real = headers.real_name(header[1], folders) if header else None
            if header is None or real is None or (stand_ins / header[1]).exists():
                raise
            headers.write_stand_in(stand_ins, header[1], real)


def _from_elsewhere(files: Sequence[str], folder: Path) -> list[str]:
    """Return the files that are not the build's own; links in its folder lead to some that are."""
    read = set()
    for file in files:
        real = os.path.realpath(file) if file.startswith(f"{folder}{os.sep}") else file
        if not real.startswith(f"{folder.resolve()}{os.sep}"):
            read.add(real)
    return sorted(read)


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
    raise KernelBuildError(message(name, answer.stderr, answer.returncode), name)


def message(name: str, said: str, code: int) -> str:
    """Return the compiler's errors, without the warnings before and the template noise between."""
    lines = said.splitlines()
    first = next((i for i, line in enumerate(lines) if re.search(r"\berror:", line)), None)
    linking = [line for line in lines if _LINKING.search(line)]
    if linking:
        shown = linking[:40]
    elif first is None:
        shown = lines[-40:]
    else:
        # The "In function ..." line before the error says where it is.
        begin = first - 1 if first and lines[first - 1].endswith(":") else first
        shown = lines[begin : begin + 40]
    kind = "link" if linking else "compile"
    header = _NO_HEADER.search(said)
    hint = ""
    if header:
        hint = (
            f"\n{header.group(1)} is not among this package's HLS headers, those of Vitis "
            "(XILINX_HLS) or the kernel's folder: put it beside the kernel"
        )
    return f"{name} did not {kind} (g++ exit status {code}):\n" + "\n".join(shown) + hint
