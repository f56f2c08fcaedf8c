"""``%%hls NAME``: a notebook's cell of C++ as a kernel.

``%load_ext pynq_torch`` makes it known. The cell holds the kernel and, behind a line
``// testbench``, a ``main`` that checks it. Shown are the registers, the schedule as an estimate,
what is wrong with the pragmas, and what the testbench printed; the cell's value has them all.
"""

from __future__ import annotations

import argparse
import atexit
import shlex
import shutil
import tempfile
import warnings
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NoReturn

from pynq_torch.errors import InterfaceWarning, PynqTorchError, needs
from pynq_torch.hls import KernelSource, estimate, read_interface, run_testbench
from pynq_torch.hls.estimator import Estimate, compiler
from pynq_torch.hls.interface import Interface
from pynq_torch.hls.reading import format_interface
from pynq_torch.hls.snippet import CELLS, declarations, split, write_directives

with needs("IPython", "%%hls"):
    from IPython.core.error import UsageError

__all__ = ["HlsCell", "register", "run_cell"]


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
    """

    kernel: KernelSource
    interface: Interface
    schedule: Estimate | None
    output: str | None
    missing: str = ""

    @property
    def _verdict(self) -> str:
        if self.output is None:
            return ""
        return f"testbench passed\n{self.output.rstrip()}".rstrip()

    def __repr__(self) -> str:
        schedule = self.missing if self.schedule is None else str(self.schedule)
        said = "" if self.schedule is not None else "\n".join(self.interface.warnings)
        parts = (format_interface(self.interface), schedule, said, self._verdict)
        return "\n\n".join(filter(None, parts))

    def _repr_html_(self) -> str:
        schedule = self.schedule
        middle = escape(self.missing) if schedule is None else schedule._repr_html_()
        verdict = f"<pre>{escape(self._verdict)}</pre>" if self._verdict else ""
        return f"<pre>{escape(format_interface(self.interface))}</pre>{middle}{verdict}"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%hls: {message}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%hls", add_help=False)
    parser.add_argument("top")
    parser.add_argument("--clock", type=float, default=10.0, metavar="NS")
    parser.add_argument("--tool", choices=("vitis", "vivado"), default="vitis")
    parser.add_argument("-a", "--argument", action="append", default=[], metavar="NAME=NUMBER")
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
        numbers = [_number(text) for text in asked.argument]
    except ValueError as error:
        raise UsageError(f"%%hls: {error}") from error
    if not asked.top.isidentifier():
        raise UsageError(f"%%hls: {asked.top!r} is no name of a function")
    folder = asked.save or _scratch()
    folder.mkdir(parents=True, exist_ok=True)
    code, test = split(cell)
    CELLS[asked.top] = cell
    source, bench = folder / f"{asked.top}.cpp", folder / f"{asked.top}_tb.cpp"
    directives = write_directives(folder, asked.directive)
    # The magic's own line is the cell's first.
    source.write_text("\n" + code, encoding="utf-8")
    bench.unlink(missing_ok=True)
    kernel = KernelSource(asked.top, source)
    try:
        interface = read_interface(source, asked.top, tool=asked.tool)
        missing = compiler.tools() or ""
        schedule = None if missing else estimate(
            source, asked.top, clock=asked.clock, tool=asked.tool, arguments=dict(numbers),
            directives=directives,
        )  # fmt: skip
        output = None
        if test:
            # The same lines as in the cell, so that a message's line is the cell's.
            bench.write_text(declarations(kernel.source) + test, encoding="utf-8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InterfaceWarning)  # the value shows them
                output = run_testbench(kernel, timeout_s=asked.timeout, tool=asked.tool).output
    except PynqTorchError as error:
        raise UsageError(f"%%hls: {error}".replace(f"{folder}/", "")) from error
    return HlsCell(kernel, interface, schedule, output, missing)


def _number(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    return name, int(number, 0)


def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pynq_torch_cell_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def register(shell: Any) -> None:
    """Make ``%%hls`` known to an IPython shell."""
    shell.register_magic_function(run_cell, "cell", "hls")
