"""``python -m pynq_torch serve``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .interrupts import ended_in_order

__all__ = ["declare"]


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``serve``."""
    from pynq_torch.remote import PORT

    parser.description = (
        "Serve a board to programs in other processes: use_board('remote'), or pynq's own client "
        "of PYNQ.remote (PYNQ_REMOTE_DEVICES=127.0.0.1 python program.py). It serves this PC "
        "alone; from another machine open an SSH tunnel, or use --access. It ends with Ctrl-C."
    )
    parser.add_argument("--board", choices=["csim", "rtl", "local"], default="csim")
    parser.add_argument("--host", default="127.0.0.1", help="an address of the loopback interface")
    parser.add_argument(
        "--port", type=_port, default=PORT, help=f"default: {PORT}, where pynq's client looks"
    )
    parser.add_argument(
        "--access",
        type=Path,
        metavar="FILE",
        help="encrypt, and serve those who have this file; it is made where it is not there",
    )
    parser.add_argument("--kernels", action="append", type=Path, default=[], metavar="DIR")
    parser.add_argument(
        "--overlays", action="append", type=Path, default=[], metavar="DIR",
        help="folder with NAME.bit and NAME.hwh, beside this project's (repeatable)",
    )  # fmt: skip
    parser.set_defaults(func=_serve)


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) < 1 << 16):  # gRPC takes 70000 for 4464
        raise argparse.ArgumentTypeError(f"{text!r} is no port; expected 0 (any) to 65535")
    return int(text)


def _serve(options: argparse.Namespace) -> int:
    from pynq_torch.board import use_board
    from pynq_torch.remote import Server
    from pynq_torch.remote.access import make_access

    files = None
    if options.board == "local":
        from pynq_torch.remote.local import LocalFiles

        device, files = use_board("local"), LocalFiles()

    def make_board() -> Any:
        if files is not None:
            files.end_design()
            return device
        return use_board(options.board, kernels=options.kernels)

    if options.access is not None and not options.access.exists():
        make_access(options.access)

    places = {name: getattr(options, name) for name in ("host", "port", "access", "overlays")}
    with ended_in_order(), Server(make_board, files=files, **places) as server:
        where = f"{server.host}:{server.port}"
        how = f"PYNQ_REMOTE_DEVICES={server.host} python program.py"
        if options.access is not None:
            how = f'use_board("remote", address="{where}", access="{options.access}")'
        print(f"board {options.board} on {where}; in another terminal: {how}", flush=True)
        server.wait()
    return 0
