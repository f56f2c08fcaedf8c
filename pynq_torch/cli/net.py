"""``python -m pynq_torch net``: print and run a network from a file; no torch is needed."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["declare"]


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare ``net show FILE`` and ``net run FILE --input X``."""
    parser.description = "Networks that pynq_torch.compile(...).save(FILE) wrote."
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="check the program and print it")
    run = actions.add_parser("run", help="run it on the board, an AP_START an image")
    for made, function in ((show, _show), (run, _run)):
        made.add_argument("file", type=Path, metavar="FILE")
        made.set_defaults(func=function)
    run.add_argument("--input", type=Path, required=True, metavar="X.npy",
                     help="float32 [N, ...] or one image; int8 is taken as quantised")  # fmt: skip
    run.add_argument("--output", type=Path, metavar="Y.npy", help="default: print the result")


def _show(options: argparse.Namespace) -> int:
    from pynq_torch.net import listing, read, summary

    network = read(options.file)
    print(summary(network), listing(network), sep="\n\n")
    return 0


def _run(options: argparse.Namespace) -> int:
    import numpy as np

    from pynq_torch.errors import PynqTorchError
    from pynq_torch.net import load

    net = load(options.file)
    try:
        x = np.load(options.input, allow_pickle=False)
        y = net(x)
    except ValueError as error:
        raise PynqTorchError(f"{options.input}: {error}") from error
    if options.output is None:
        print(y)
    else:
        np.save(options.output, y)
    return 0
