"""``python -m pynq_torch``: a table of subcommands, each imported only when it is asked for."""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from pynq_torch.errors import MissingPackage, PynqTorchError, missing_package


@dataclass(frozen=True)
class Command:
    """A command's name, its line in ``--help``, and its module.

    The module's ``declare(parser)`` adds the options, and sets the default ``func``: called with
    the parsed arguments, it returns the exit status.
    """

    name: str
    help: str
    module: str


COMMANDS = (
    Command("run", "run a program that imports only pynq on a board", "pynq_torch.cli.run"),
    Command(
        "doctor", "say what is there, what is missing, and what mends it", "pynq_torch.cli.doctor"
    ),
    Command(
        "board-check", "try a board part by part, and report on it", "pynq_torch.cli.board_check"
    ),
    Command("serve", "serve a virtual board to pynq's remote client", "pynq_torch.cli.serve"),
    Command("farm", "give a Dask scheduler the boards of this machine", "pynq_torch.cli.farm"),
    Command("report", "run the notebooks and write an HTML report", "pynq_torch.cli.report"),
    Command("hls", "read, build and test HLS kernels", "pynq_torch.cli.hls"),
    Command("overlay", "generate what an overlay description implies", "pynq_torch.cli.overlay"),
    Command("kernels", "list, show, build and generate kernels", "pynq_torch.cli.kernels"),
    Command("net", "print and run a network from a file", "pynq_torch.cli.net"),
    Command("workbook", "write the notebooks into a folder of yours", "pynq_torch.cli.workbook"),
    Command("course", "write the lessons as an nbgrader course", "pynq_torch.cli.course"),
    Command("kernels-install", "register the boards as Jupyter kernels", "pynq_torch.cli.jupyter"),
)

#: Errors of a full disk, which name no file where the output is what cannot be written.
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _root_parser() -> argparse.ArgumentParser:
    width = max(len(command.name) for command in COMMANDS)
    table = "\n".join(f"  {command.name:<{width}}  {command.help}" for command in COMMANDS)
    return argparse.ArgumentParser(
        prog="python -m pynq_torch",
        description="HLS kernels on a PYNQ-Z2, real or virtual.",
        epilog=f"commands:\n{table}\n\n'python -m pynq_torch COMMAND --help' says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status: 0, 1 for a failure, 2 for a command line that makes no sense; as a shell
        has it for a signal 130 after Ctrl-C, and 141 where the reader of the output has gone
        (``| head``).
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not where a program was started without it
            stream.reconfigure(errors="backslashreplace")  # in a locale that lacks a letter
    try:
        try:
            return _dispatch(argv)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where it can be caught, not at the interpreter's end
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        _forget_output()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        _forget_output()
        print(f"error: the output or a file cannot be written: {error.strerror}", file=sys.stderr)
        return 1


def _forget_output() -> None:
    """Drop what is still buffered: Python would try to write it once more, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(argv: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = _root_parser()
    command = next((c for c in COMMANDS if arguments and c.name == arguments[0]), None)
    if command is None:
        # No command is imported to print help, or to say that there is no such command.
        parser.add_argument("command", choices=[c.name for c in COMMANDS], metavar="COMMAND")
        parser.parse_args(arguments[:1])
        raise AssertionError("argparse accepted a command that is not in the table")
    try:
        module = importlib.import_module(command.module)
    except ModuleNotFoundError as error:
        print(_unavailable(command, error), file=sys.stderr)
        return 1
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    module.declare(commands.add_parser(command.name, help=command.help))
    parsed = parser.parse_args(arguments)
    try:
        return int(parsed.func(parsed) or 0)
    except ModuleNotFoundError as error:
        print(_unavailable(command, error), file=sys.stderr)
    except PynqTorchError as error:
        print(f"error: {error}", file=sys.stderr)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            raise
        print(f"error: {error.strerror}: '{error.filename}'", file=sys.stderr)
    return 1


def _unavailable(command: Command, error: ModuleNotFoundError) -> str:
    if isinstance(error, MissingPackage):
        return f"error: {error}"
    missing = error.name or str(error)
    if missing.partition(".")[0] == "pynq_torch":
        return f"error: '{command.name}' is not part of this installation: {missing} is missing"
    return "error: " + missing_package(missing, f"'{command.name}'")
