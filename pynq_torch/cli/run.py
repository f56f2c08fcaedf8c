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
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pynq_torch.board.rtl.observe.watch import TRACE, TRACE_CSV, WAVE, WAVE_FAILURES, missing
from pynq_torch.errors import BoardError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

DEFAULT_BOARD = "csim"


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``run [--board NAME] [--kernels DIR ...] [--trace] program.py [arguments]``."""
    parser = subparsers.add_parser(
        "run",
        help="run a program that imports only pynq on a board",
        description="Run a Python program, or a notebook, as 'python PROGRAM' would run it on "
        "the board. The program imports only pynq; its relative paths are those of the current "
        "folder.",
    )
    parser.add_argument(
        "--board",
        default=os.environ.get("PYNQ_TORCH_BOARD") or DEFAULT_BOARD,
        help="the board to run on (default: %(default)s)",
    )
    parser.add_argument(
        "--kernels",
        action="append",
        default=[],
        metavar="DIR",
        type=Path,
        help="a folder with HLS sources; may be given more than once",
    )
    parser.add_argument(
        "--trace",
        action="store_true",
        help="print the AXI transactions of each overlay when it goes (board rtl)",
    )
    parser.add_argument(
        "--trace-csv",
        metavar="FILE",
        type=Path,
        help="write all of them to a file (board rtl)",
    )
    parser.add_argument(
        "--wave",
        metavar="FILE",
        type=Path,
        help="record the waves of all units, .fst or .vcd; '.UNIT' comes into the name where "
        "there are several (board rtl)",
    )
    parser.add_argument("program", type=Path, help="a .py file, a folder with __main__.py, .ipynb")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to the program")
    parser.set_defaults(func=_run)


def _run(parsed: argparse.Namespace) -> int:
    check_board(parsed.board)
    environment = board_environment(parsed.board, parsed.kernels)
    if not parsed.program.exists():
        raise BoardError(f"program '{parsed.program}': no such file; looked in '{Path.cwd()}'")
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
        os.environ.update(environment)
        return _run_notebook(parsed.program)
    if parsed.wave is not None:
        return _run_python(_python(parsed.program, parsed.arguments), environment)
    return _become_python(_python(parsed.program, parsed.arguments), environment)


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
    """Return this process's environment, with a board and kernel folders chosen in it.

    Parameters
    ----------
    board : str
        A board's name.
    kernels : sequence of Path
        Folders with HLS sources. They come before those that PYNQ_TORCH_KERNELS names already.

    Raises
    ------
    BoardError
        A folder does not exist, or this Python would not notice the variable.
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
    folders = [str(folder.resolve()) for folder in kernels]
    inherited = os.environ.get("PYNQ_TORCH_KERNELS")
    if inherited:
        folders.append(inherited)
    environment = {**os.environ, "PYNQ_TORCH_BOARD": board}
    if folders:
        environment["PYNQ_TORCH_KERNELS"] = os.pathsep.join(folders)
    return environment


def _python(program: Path, arguments: list[str]) -> list[str]:
    # -W, -X and the like given to this interpreter are meant for the program.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags, str(program), *arguments]


def _become_python(command: list[str], environment: dict[str, str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, environment)


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


def _run_notebook(program: Path) -> int:
    """Execute a notebook and print what its cells print, and then the trace if one is wanted."""
    # What a kernel prints while it ends is seen by nobody.
    begin_ns, traced = time.time_ns(), ""
    if os.environ.get(TRACE) == "-":
        with tempfile.NamedTemporaryFile("r", encoding="utf-8", suffix=".txt") as trace:
            os.environ[TRACE] = trace.name
            status = _execute(program)
            print(traced := trace.read(), end="")
    else:
        status = _execute(program)
    nothing = missing(os.environ)
    if nothing and not (traced or _written(begin_ns)):
        print(f"pynq_torch: {nothing}", file=sys.stderr)
    return status


def _written(begin_ns: int) -> bool:
    """Return whether waves or a table of the trace were written since."""
    asked = [Path(os.environ[name]) for name in (WAVE, TRACE_CSV) if os.environ.get(name)]
    # Where there are several units or overlays, ".UNIT" or "-2" comes into the name.
    files = [
        file
        for path in asked
        for file in path.parent.iterdir()
        if file.name.startswith(path.stem) and file.suffix == path.suffix
    ]
    return any(file.stat().st_mtime_ns >= begin_ns for file in files)


def _execute(program: Path) -> int:
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.read(program, as_version=4)
    folder = {"metadata": {"path": str(program.parent)}}
    client = NotebookClient(notebook, kernel_name="python3", resources=folder, timeout=None)
    status = 0
    try:
        client.execute()
    except CellExecutionError:
        status = 1
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            _print_output(output)
    return status


def _print_output(output: dict[str, object]) -> None:
    kind = output["output_type"]
    if kind == "stream":
        target = sys.stderr if output["name"] == "stderr" else sys.stdout
        target.write(str(output["text"]))
    elif kind == "error":
        print(*output["traceback"], sep="\n", file=sys.stderr)  # type: ignore[misc]
    elif isinstance(data := output.get("data"), dict) and "text/plain" in data:
        print(data["text/plain"])
