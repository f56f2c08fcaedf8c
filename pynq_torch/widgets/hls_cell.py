"""``%%hls NAME``: a notebook's cell of C++ as a kernel.

``%load_ext pynq_torch`` makes it known. The cell holds the kernel and, behind a line
``// testbench``, a ``main`` that checks it. Shown are the registers, the schedule as an estimate,
what is wrong with the pragmas, and what the testbench printed; the cell's value has them all.
"""

from __future__ import annotations

import argparse
import atexit
import re
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, NoReturn

from pynq_torch.errors import InterfaceWarning, PynqTorchError, needs
from pynq_torch.hls import KernelSource, estimate, read_interface, run_testbench
from pynq_torch.hls.estimator import Estimate, compiler
from pynq_torch.hls.interface import Interface
from pynq_torch.hls.kernels import has_main
from pynq_torch.hls.reading import format_interface
from pynq_torch.hls.snippet import CELLS, declarations, named_number, split, write_directives

with needs("IPython", "%%hls"):
    from IPython.core.error import UsageError

__all__ = ["HlsCell", "register", "run_cell"]

#: Of a testbench's output more is not shown in the notebook.
_MOST_LINES = 100
_NOT_RUN = (
    "The cell has a main, and nothing runs it: write a line // testbench above what belongs to the "
    "testbench."
)


@dataclass(frozen=True, repr=False)
class HlsCell:
    """A kernel written in a cell.

    Parameters
    ----------
    kernel : KernelSource
        For `pynq_torch.hls.build` and the like; its files last as long as the process, or stay
        where ``--save`` put them.
    interface : Interface
        Its registers and ports.
    schedule : Estimate or None
        ``None`` where clang and LLVM are not installed; `missing` says how to install them.
    output : str or None
        What the testbench printed; ``None`` for a cell without one.
    missing : str
        Why there is no schedule, ``""`` where there is one.
    note : str
        What was not done with the cell, ``""`` where there is nothing.
    """

    kernel: KernelSource
    interface: Interface
    schedule: Estimate | None
    output: str | None
    missing: str = ""
    note: str = ""

    @property
    def _verdict(self) -> str:
        if self.output is None:
            return self.note
        lines = self.output.rstrip().splitlines()
        if left_out := max(0, len(lines) - _MOST_LINES):
            first = f"({left_out:,} lines before these are left out; .output has them)"
            lines = [first, *lines[left_out:]]
        return "\n".join(["testbench passed", *lines])

    @property
    def _ports(self) -> str:
        """The interface, without the warnings that the schedule has as well."""
        others = () if self.schedule is None else self.schedule.warnings
        rest = tuple(text for text in self.interface.warnings if text not in others)
        return format_interface(replace(self.interface, warnings=rest))

    def __repr__(self) -> str:
        schedule = self.missing if self.schedule is None else str(self.schedule)
        return "\n\n".join(filter(None, (self._ports, schedule, self._verdict)))

    def _repr_html_(self) -> str:
        schedule = self.schedule
        middle = escape(self.missing) if schedule is None else schedule._repr_html_()
        verdict = f"<pre>{escape(self._verdict)}</pre>" if self._verdict else ""
        return f"<pre>{escape(self._ports)}</pre>{middle}{verdict}"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%hls: {message}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%hls", add_help=False)
    parser.add_argument("top")
    parser.add_argument("--clock", type=float, default=10.0, metavar="NS")
    parser.add_argument("--tool", choices=("vitis", "vivado"), default="vitis")
    parser.add_argument("-a", "--argument", action="append", default=[], type=_number)
    parser.add_argument("-d", "--directive", action="append", default=[], metavar="LINE")
    parser.add_argument("--save", type=Path, metavar="DIR")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS")
    return parser


def run_cell(line: str, cell: str) -> HlsCell:
    """Read, estimate and test a cell of C++.

    Parameters
    ----------
    line : str
        ``NAME [--clock NS] [--tool vitis|vivado] [-a ARGUMENT=NUMBER] [-d DIRECTIVE] [--save DIR]
        [--timeout SECONDS]``: the top function, and what `pynq_torch.hls.estimate` takes; a
        directive is a line of Tcl, as in a file of directives.
    cell : str
        The C++; what is behind a line ``// testbench`` is a file of its own, with the kernel's
        functions declared in it.

    Raises
    ------
    UsageError
        The line cannot be read, the C++ does not compile, or the testbench failed: one sentence,
        with the line as the cell counts it, instead of a traceback.
    """
    try:
        asked = _parser().parse_args(shlex.split(line))
    except ValueError as error:
        raise UsageError(f"%%hls: {error}") from error
    name = asked.top.partition("<")[0]  # of a template, as in scale<4>
    if not name.isidentifier() or not re.fullmatch(r"\w+(<.*>)?", asked.top):
        raise UsageError(f"%%hls: {asked.top!r} is no name of a function")
    folder = _folder(asked.save)
    code, test = split(cell)
    CELLS[name] = cell
    source, bench = folder / f"{name}.cpp", folder / f"{name}_tb.cpp"
    directives = write_directives(folder, asked.directive)
    # The magic's own line is the cell's first.
    source.write_text("\n" + code, encoding="utf-8")
    bench.unlink(missing_ok=True)
    kernel = KernelSource(name, source, asked.top)
    note = _NOT_RUN if not test and has_main(source) else ""
    try:
        interface = read_interface(source, asked.top, tool=asked.tool)
        interface = replace(interface, warnings=_without(folder, interface.warnings))
        missing = compiler.tools() or ""
        schedule = None if missing else estimate(
            source, asked.top, clock=asked.clock, tool=asked.tool, arguments=dict(asked.argument),
            directives=directives,
        )  # fmt: skip
        if schedule is not None:
            schedule = replace(schedule, warnings=_without(folder, schedule.warnings))
        output = None
        if test:
            # The same lines as in the cell, so that a message's line is the cell's.
            bench.write_text(declarations(kernel.source) + test, encoding="utf-8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InterfaceWarning)  # the value shows them
                output = run_testbench(kernel, timeout_s=asked.timeout, tool=asked.tool).output
    except PynqTorchError as error:
        raise UsageError(f"%%hls: {error}".replace(f"{folder}/", "")) from error
    return HlsCell(kernel, interface, schedule, output, missing, note)


def _number(text: str) -> tuple[str, int]:
    try:
        return named_number(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _without(folder: Path, texts: Sequence[str]) -> tuple[str, ...]:
    """Return warnings without the cell's folder, which says nothing to a reader."""
    for name in (str(folder.resolve()), str(folder), folder.name):
        if name not in ("", "."):
            begins = re.compile(rf"(?<![\w./-]){re.escape(name)}/")
            texts = [begins.sub("", text) for text in texts]
    return tuple(texts)


def _folder(asked: Path | None) -> Path:
    """Return the folder for the cell's files, which is there."""
    folder = asked or _scratch()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"%%hls: --save {asked} is no folder and cannot become one ({error.strerror}); name "
            "a folder"
        ) from error
    return folder


def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pynq_torch_cell_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def register(shell: Any) -> None:
    """Make ``%%hls`` known to an IPython shell."""
    shell.register_magic_function(run_cell, "cell", "hls")
