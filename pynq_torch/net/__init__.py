"""Networks as files, run with numpy and pynq alone: what a board without torch needs.

``pynq_torch.compile(...).save("net.pynq")`` writes one; `load` returns it ready to run.
"""

from __future__ import annotations

import os

from .file import NetFileError, Network, Port, read
from .listing import listing, summary
from .queue import Queue
from .runner import Runner, view

__all__ = [
    "NetFileError",
    "Network",
    "Port",
    "Queue",
    "Runner",
    "listing",
    "load",
    "read",
    "summary",
    "view",
]


def load(path: str | os.PathLike[str]) -> Runner:
    """Return the network of a file; ``load("net.pynq")(x)`` runs it on the PL.

    Parameters
    ----------
    path : str or path
        Written by ``pynq_torch.compile(...).save(path)``.

    Raises
    ------
    NetFileError, ProgramError
        See `read`.
    """
    return Runner(read(path))
