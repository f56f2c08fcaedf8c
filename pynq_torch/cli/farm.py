"""``python -m pynq_torch farm``: the boards of this machine for a Dask scheduler."""

from __future__ import annotations

import argparse
import os
import sys

from pynq_torch.errors import BoardError
from pynq_torch.remote.farm import BOARD
from pynq_torch.remote.farm.jobs import connected

from .run import DEFAULT_BOARD, board_environment, check_board

__all__ = ["declare"]


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``farm``."""
    parser.description = (
        "Give a Dask scheduler the boards of this machine: one worker process each, which is "
        "started again when it dies. 'dask scheduler' starts a scheduler. It ends with Ctrl-C. "
        "Anybody who reaches the scheduler runs programs here: keep it in a network that you trust."
    )
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--board", default=DEFAULT_BOARD, help="default: %(default)s")
    parser.add_argument(
        "--boards", type=int, metavar="N",
        help=f"how many (default: one a core, {cores}; one of board local)",
    )  # fmt: skip
    parser.add_argument("scheduler", metavar="ADDRESS", help="such as tcp://127.0.0.1:8786")
    parser.set_defaults(func=_farm)


def _farm(options: argparse.Namespace) -> int:
    check_board(options.board)
    cores = len(os.sched_getaffinity(0))
    boards = options.boards or (1 if options.board == "local" else cores)
    if boards < 1:
        raise BoardError(f"--boards {options.boards}: expected 1 or more")
    if options.board == "local" and boards > 1:
        raise BoardError(f"--boards {boards}: this machine has one board 'local'")
    with connected(options.scheduler):  # a worker would say that in its own language
        pass
    command = [
        sys.executable, "-m", "distributed.cli.dask_worker", options.scheduler,
        "--nworkers", str(boards), "--nthreads", "1", "--no-dashboard", "--death-timeout", "60",
        "--resources", f"{BOARD}=1 {options.board}=1",
    ]  # fmt: skip
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, board_environment(options.board))
