"""``python -m pynq_torch serve``."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from typing import Any

__all__ = ["declare"]


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``serve``."""
    from pynq_torch.remote import PORT

    parser.description = (
        "Serve a virtual board to pynq's own client of PYNQ.remote, in another process: "
        "PYNQ_REMOTE_DEVICES=127.0.0.1 python program.py. It serves this PC alone; from another "
        "machine open an SSH tunnel. It ends with Ctrl-C."
    )
    parser.add_argument("--board", choices=["csim", "rtl"], default="csim")
    parser.add_argument("--host", default="127.0.0.1", help="an address of the loopback interface")
    parser.add_argument(
        "--port", type=int, default=PORT, help=f"default: {PORT}, where pynq's client looks"
    )
    parser.add_argument("--kernels", action="append", type=Path, default=[], metavar="DIR")
    parser.add_argument(
        "--overlays", action="append", type=Path, default=[], metavar="DIR",
        help="folder with NAME.bit and NAME.hwh, beside this project's (repeatable)",
    )  # fmt: skip
    parser.set_defaults(func=_serve)


def _serve(options: argparse.Namespace) -> int:
    from pynq_torch.board import use_board
    from pynq_torch.remote import Server

    def make_board() -> Any:
        return use_board(options.board, kernels=options.kernels)

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    places = {"host": options.host, "port": options.port, "overlays": options.overlays}
    with Server(make_board, **places) as server:
        print(
            f"board {options.board} on {options.host}:{server.port}; in another terminal: "
            f"PYNQ_REMOTE_DEVICES={options.host} python program.py",
            flush=True,
        )
        server.wait()
    return 0
