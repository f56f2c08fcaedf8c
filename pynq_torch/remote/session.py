"""Who uses the served board, and what is his: registers, buffers, the design in the PL."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pynq

from pynq_torch.board.device import VirtualBoard
from pynq_torch.errors import PynqTorchError

__all__ = ["BoardInUse", "Session", "is_connected"]

#: More handles than these are a program that makes one in a loop.
_MOST_HANDLES = 10_000
_ESTABLISHED = "01"
_PEER = re.compile(r"ipv[46]:.*:(?P<port>\d+)")  # ipv6:%5B::1%5D:40312


class BoardInUse(PynqTorchError):
    """Another client has the board."""


class Session:
    """One client's use of a board; it ends with the client's connection.

    Parameters
    ----------
    make_board : callable
        Returns a board with nothing in its PL. Each client gets a new one: what the client before
        left behind, running kernels among it, is gone.
    port : int
        Where the server listens; connections are looked for there.
    """

    def __init__(self, make_board: Callable[[], VirtualBoard], port: int) -> None:
        self.port = port
        self._make_board = make_board
        self._lock = threading.RLock()
        self._owner, self._since = "", ""
        #: Another one for each use, so that a client whose connection had ended is told.
        self.id = ""
        self.board = make_board()
        self.mmios: dict[str, pynq.MMIO] = {}
        self.buffers: dict[str, Any] = {}

    def enter(self, peer: str) -> None:
        """Give the board to a client, or say who has it.

        Parameters
        ----------
        peer : str
            As gRPC names it: ``ipv4:127.0.0.1:40312``.

        Raises
        ------
        BoardInUse
            Another client is connected and has the board.
        """
        with self._lock:
            if self._owner == peer:
                return
            self.leave_if_gone()
            if self._owner:
                raise BoardInUse(
                    f"the board is in use by {self._owner} since {self._since}. It is free as soon "
                    "as that program ends or closes its connection."
                )
            self._owner, self._since = peer, time.strftime("%H:%M:%S")
            self.id = uuid.uuid4().hex

    def leave_if_gone(self) -> None:
        """Free the board where its client's connection has ended."""
        with self._lock:
            if self._owner and not is_connected(self._owner, self.port):
                self.leave()

    def leave(self) -> None:
        """Free the board."""
        with self._lock:
            # First: what ran may write to the buffers until then.
            before, self.board = self.board, self._make_board()
            if before is not self.board:
                before.close()
            self._forget()

    def cma(self) -> tuple[int, int]:
        """Return the bytes of CMA memory of a virtual board: all, and free."""
        memory = self.board.memory
        return memory.cma_bytes, memory.free_bytes

    def close(self) -> None:
        """End the board."""
        with self._lock:
            self._forget()
            self.board.close()

    def _forget(self) -> None:
        self._owner = self.id = ""
        self.mmios.clear()
        self.buffers.clear()

    def keep(self, table: dict[str, Any], item: Any) -> str:
        """Return a handle for a client's register range or buffer.

        Raises
        ------
        PynqTorchError
            There are too many.
        """
        with self._lock:
            if len(table) >= _MOST_HANDLES:
                raise PynqTorchError(
                    f"{_MOST_HANDLES:,} are open; use one MMIO or buffer again instead of "
                    "making a new one each time"
                )
            handle = uuid.uuid4().hex
            table[handle] = item
            return handle

    def open(self, base: int, length: int) -> str:
        """Return the handle of a range of addresses."""
        return self.keep(self.mmios, pynq.MMIO(base, length, device=self.board))

    def range(self, handle: str, offset: int, nbytes: int) -> pynq.MMIO:
        """Return the registers of a handle.

        Raises
        ------
        IndexError
            Some of the bytes from the offset on are outside.
        """
        mmio = found(self.mmios, handle, "MMIO")
        if not 0 <= offset <= mmio.length - nbytes:
            raise IndexError(
                f"{nbytes} bytes at offset 0x{offset:x} are outside the {mmio.length} "
                f"bytes from 0x{mmio.base_addr:08x}"
            )
        return mmio

    def write(self, handle: str, offset: int, data: bytes) -> None:
        """Write registers that follow each other."""
        word = int.from_bytes(data, "little") if len(data) == 4 else data
        self.range(handle, offset, len(data)).write(offset, word)

    def piece(self, handle: str, start: int, end: int) -> Any:
        """Return bytes of a buffer.

        Raises
        ------
        IndexError
            They are outside.
        """
        buffer = found(self.buffers, handle, "buffer")
        if not 0 <= start <= end <= buffer.nbytes:
            raise IndexError(f"bytes {start} to {end} are outside a buffer of {buffer.nbytes}")
        return buffer[start:end]

    def allocate(self, nbytes: int) -> str:
        """Return the handle of a new buffer of so many bytes in the board's memory."""
        return self.keep(self.buffers, pynq.allocate((nbytes,), np.uint8, target=self.board))

    def free(self, handle: str) -> None:
        """Free a buffer.

        Raises
        ------
        PynqTorchError
            There is none of this handle.
        """
        buffer = found(self.buffers, handle, "buffer")
        del self.buffers[handle]
        buffer.freebuffer()

    def download(self, bitstream: Path) -> None:
        """Load the design of a ``.bit`` whose handoff is beside it."""
        parser = self.board.get_bitfile_metadata(str(bitstream))
        self.board.download(pynq.Bitstream(str(bitstream), device=self.board), parser)


def found(table: dict[str, Any], handle: str, what: str) -> Any:
    """Return what a handle is for.

    Raises
    ------
    PynqTorchError
        There is nothing of this handle: it was freed, or belonged to a connection that has ended.
    """
    item = table.get(handle)
    if item is None:
        raise PynqTorchError(f"there is no {what} {handle!r}: it was freed, or never made")
    return item


def is_connected(peer: str, port: int) -> bool:
    """Whether the other end of a client's connection is still there.

    gRPC's servers are not told when a client goes. Linux lists the connections of a port; a client
    that it does not list has gone, however it ended.

    Parameters
    ----------
    peer : str
        As gRPC names it.
    port : int
        The server's.
    """
    matched = _PEER.fullmatch(peer)
    if matched is None:
        return False
    wanted = (port, int(matched["port"]))
    for name in ("tcp", "tcp6"):
        table = Path("/proc/net") / name
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            _, local, remote, state, *_ = line.split()
            if state == _ESTABLISHED and (_port(local), _port(remote)) == wanted:
                return True
    return False


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
