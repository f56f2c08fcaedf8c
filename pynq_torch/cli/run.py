"""``python -m pynq_torch run``: a program that imports only pynq, on a board of our choice.

The command checks its arguments, then *becomes* ``python program.py`` with the board named in
the environment, where the autoload of this package finds it. So ``sys.argv``, ``__main__``,
``sys.path``, tracebacks, signals and the exit status are Python's own, not an imitation. With
``--wave`` it waits for the program: the exit status is 1 where it ends well and its waves failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

from pynq_torch.board.rtl.observe.watch import TRACE, TRACE_CSV, WAVE, WAVE_FAILURES, missing
from pynq_torch.errors import BoardError
from pynq_torch.paths import environment_kernels

from .notebook import CELL_TIMEOUT_S, execute

DEFAULT_BOARD = "csim"


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare ``run [--board NAME] [--kernels DIR ...] [--trace] program.py [arguments]``."""
    parser.description = (
        "Run a Python program, or a notebook, as 'python PROGRAM' would run it on the board. The "
        "program imports only pynq; its relative paths are those of the current folder. The "
        "design's C++ and RTL are compiled and run on this PC with your rights: open only designs "
        "that you trust."
    )
    board = os.environ.get("PYNQ_TORCH_BOARD") or DEFAULT_BOARD
    parser.add_argument("--board", default=board, help="the board to run on (default: %(default)s)")
    parser.add_argument(
        "--kernels", action="append", default=[], metavar="DIR", type=Path,
        help="a folder with HLS sources; may be given more than once",
    )  # fmt: skip
    parser.add_argument(
        "--trace", action="store_true",
        help="print the AXI transactions of each overlay when it goes (board rtl)",
    )  # fmt: skip
    parser.add_argument(
        "--trace-csv", metavar="FILE", type=Path, help="write all of them to a file (board rtl)"
    )
    parser.add_argument(
        "--wave", metavar="FILE", type=Path,
        help="record the waves of all units, .fst or .vcd; '.UNIT' comes into the name where "
        "there are several (board rtl)",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=int, default=CELL_TIMEOUT_S,
        help="the longest that a cell of a notebook may take; 0: for ever (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("program", type=Path, help="a .py file, a folder with __main__.py, .ipynb")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to the program")
    parser.set_defaults(func=_run)


def _run(parsed: argparse.Namespace) -> int:
    check_board(parsed.board)
    environment = board_environment(parsed.board, parsed.kernels)
    _check_program(parsed.program)
    if parsed.timeout < 0:
        raise BoardError(f"--timeout {parsed.timeout}: expected a number of seconds, or 0 for none")
    environment |= _watching(parsed)
    if parsed.wave is None:
        return _run_program(parsed, environment)
    # Waves that could not be recorded are a failure of this command, not of the program.
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", suffix=".txt") as failures:
        environment[WAVE_FAILURES] = failures.name
        status = _run_program(parsed, environment)
        return status or int(bool(failures.read()))


def _run_program(parsed: argparse.Namespace, environment: dict[str, str]) -> int:
    if parsed.program.suffix == ".ipynb":
        return _run_notebook(parsed.program, parsed.timeout, environment)
    # -W, -X and the like given to this interpreter are meant for the program.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    command = [sys.executable, *flags, str(parsed.program), *parsed.arguments]
    if parsed.wave is None:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, command, environment)
    return _run_python(command, environment)


def _check_program(program: Path) -> None:
    """Raise `BoardError` for what is no program; what a program does wrong, Python says itself."""
    if not program.exists():
        raise BoardError(f"program '{program}': no such file; looked in '{Path.cwd()}'")
    # A shell's <(...) is a pipe, which can be read only once.
    piped = program.is_fifo() and program.suffix != ".ipynb"
    if not (program.is_file() or program.is_dir() or piped):
        raise BoardError(f"program '{program}' is a device, pipe or socket; expected a file")
    if program.suffix in (".ipynb", ".pyc") or piped:
        return
    if program.is_dir():
        if not (program / "__main__.py").is_file():
            raise BoardError(f"program '{program}' is a folder without __main__.py")
        return
    try:
        source = program.read_bytes()
        if zipfile.is_zipfile(program) or (program.suffix == ".py" and b"\0" not in source):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, str(program), "exec", dont_inherit=True)
    except OSError as error:
        raise BoardError(f"program '{program}' cannot be read: {error.strerror}") from error
    except (SyntaxError, ValueError) as error:
        raise BoardError(
            f"program '{program}' is not Python: {error}; expected a .py file, a folder with "
            "__main__.py or an .ipynb"
        ) from error


def _watching(parsed: argparse.Namespace) -> dict[str, str]:
    """Return what tells the board to record: see `pynq_torch.board.rtl.observe.watch`."""
    files = {TRACE_CSV: parsed.trace_csv, WAVE: parsed.wave}
    asked = {name: str(path.absolute()) for name, path in files.items() if path is not None}
    if parsed.trace:
        asked[TRACE] = "-"
    if asked and parsed.board != "rtl":
        raise BoardError(
            f"--trace, --trace-csv and --wave need --board rtl, where signals are simulated; found "
            f"--board {parsed.board}"
        )
    if parsed.wave is not None and parsed.wave.suffix not in (".fst", ".vcd"):
        raise BoardError(f"--wave '{parsed.wave}': expected a file that ends in .fst or .vcd")
    for path in files.values():
        if path is not None and not path.absolute().parent.is_dir():
            raise BoardError(f"'{path}': its folder does not exist; make it first")
    return asked


def check_board(board: str) -> None:
    """Raise `BoardError`, with the list of boards, when there is no board of that name."""
    import pynq_torch

    known = sorted(pynq_torch.available_boards())
    if board not in known:
        raise BoardError(f"board '{board}' is unknown; expected one of: {', '.join(known)}")


def board_environment(board: str, kernels: Sequence[Path] = ()) -> dict[str, str]:
    """Return this process's environment, with a board and folders of HLS sources chosen in it.

    The folders come before those that PYNQ_TORCH_KERNELS names already.
    """
    if importlib.util.find_spec("_pynq_torch_autoload") is None:
        raise BoardError(
            f"the package is imported from '{Path(__file__).parent}' but is not installed in "
            f"'{sys.prefix}', so a program cannot be given a board; install it with: "
            "python -m pip install -e ."
        )
    for folder in kernels:
        if not folder.is_dir():
            raise BoardError(f"--kernels '{folder}': no such folder; expected one with HLS sources")
    for folder in environment_kernels():
        if not folder.is_dir():
            raise BoardError(f"PYNQ_TORCH_KERNELS: '{folder}' is no folder; expected HLS sources")
    folders = [*(str(folder.resolve()) for folder in kernels), os.environ.get("PYNQ_TORCH_KERNELS")]
    environment = {**os.environ, "PYNQ_TORCH_BOARD": board}
    if any(folders):
        environment["PYNQ_TORCH_KERNELS"] = os.pathsep.join(filter(None, folders))
    return environment


def _run_python(command: list[str], environment: dict[str, str]) -> int:
    """Run Python and return its exit status, as a shell has it; signals are for the program."""
    process = subprocess.Popen(command, env=environment)

    def forward(number: int, _: object) -> None:
        if number != signal.SIGINT:  # which the terminal sends to both
            process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
    status = process.wait()
    return status if status >= 0 else 128 - status


def _run_notebook(program: Path, timeout_s: int, environment: dict[str, str]) -> int:
    """Execute a notebook and print what its cells print, and then the trace if one is wanted."""
    # What a kernel prints while it ends is seen by nobody.
    begin_ns, traced = time.time_ns(), ""
    if environment.get(TRACE) == "-":
        with tempfile.NamedTemporaryFile("r", encoding="utf-8", suffix=".txt") as trace:
            status = execute(program, timeout_s, environment | {TRACE: trace.name})
            print(traced := trace.read(), end="")
    else:
        status = execute(program, timeout_s, environment)
    nothing = missing(environment)
    if nothing and not (traced or _written(environment, begin_ns)):
        print(f"pynq_torch: {nothing}", file=sys.stderr)
    return status


def _written(environment: dict[str, str], begin_ns: int) -> bool:
    """Return whether waves or a table of the trace were written since."""
    asked = [Path(environment[name]) for name in (WAVE, TRACE_CSV) if environment.get(name)]
    # Where there are several units or overlays, ".UNIT" or "-2" comes into the name.
    return any(
        file.stat().st_mtime_ns >= begin_ns
        for path in asked
        for file in path.parent.iterdir()
        if file.name.startswith(path.stem) and file.suffix == path.suffix
    )
