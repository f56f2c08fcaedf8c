"""The files of a board that the client of PYNQ.remote reads and writes.

It configures the PL as a program on the board does: it writes the bitstream to /lib/firmware, and
its name to the FPGA manager. There are no other files: a served board is not a file server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from pynq.pl_server.embedded_device import bit2bin

from pynq_torch.errors import BitstreamError, PynqTorchError
from pynq_torch.hls.design import is_simulation_image

__all__ = ["FIRMWARE", "MANAGER", "BoardFiles"]

MANAGER = "/sys/class/fpga_manager/fpga0/"
FIRMWARE = "/lib/firmware/"
#: A PYNQ-Z2's bitstream has 4 MB.
_LARGEST = 32 << 20


class BoardFiles:
    """Those files, and what writing to them does.

    Parameters
    ----------
    overlays : callable
        Returns the bitstreams that are known here, by name: the client sends frames without the
        handoff, which is what a virtual board needs.
    download : callable
        Called with the ``.bit`` to load.
    cma : callable
        Returns the bytes of CMA memory, all and free.
    """

    def __init__(
        self,
        overlays: Callable[[], dict[str, Path]],
        download: Callable[[Path], None],
        cma: Callable[[], tuple[int, int]] = lambda: (0, 0),
    ) -> None:
        self._overlays, self._download, self._cma = overlays, download, cma
        self._firmware: dict[str, bytes] = {}
        self._state = "unknown"
        self._flags = "0"

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None where there is no such file."""
        total, free = (nbytes >> 10 for nbytes in self._cma())
        texts = {
            "/proc/meminfo": f"CmaTotal: {total:8} kB\nCmaFree:  {free:8} kB\n",
            "/proc/version": "Linux version 6.6 (armv7l), a virtual board of pynq_torch\n",
            "/proc/device-tree/chosen/pynq_board": "Pynq-Z2\0",
            f"{MANAGER}state": f"{self._state}\n",
            f"{MANAGER}flags": f"{self._flags}\n",
        }
        return texts[path].encode() if path in texts else None

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write a file.

        Raises
        ------
        PynqTorchError
            The board has no such file, the content is no bitstream's, or the design that it
            configures is not known here or cannot be loaded.
        """
        data = bytearray()
        for chunk in chunks:
            data += chunk
            if len(data) > _LARGEST:
                raise PynqTorchError(
                    f"{path}: more than {_LARGEST >> 20} MB; no bitstream has so many"
                )
        if path.startswith(FIRMWARE) and PurePosixPath(path).suffix == ".bin":
            self._store(path.removeprefix(FIRMWARE), bytes(data))
        elif path == f"{MANAGER}flags":
            self._set_flags(data.decode(errors="replace").strip())
        elif path == f"{MANAGER}firmware":
            self._configure(data.decode(errors="replace").strip())
        else:
            raise PynqTorchError(
                f"{path} cannot be written: a served board has the FPGA manager's files and "
                f"{FIRMWARE}NAME.bin, no others"
            )

    def _store(self, name: str, data: bytes) -> None:
        self._firmware = {name: data}

    def _set_flags(self, flags: str) -> None:
        self._flags = flags

    def _configure(self, name: str) -> None:
        if self._flags == "1":
            raise BitstreamError(f"{name}: partial reconfiguration is not modelled")
        frames = self._firmware.get(name)
        if frames is None:
            raise BitstreamError(f"{FIRMWARE}{name} was not written before its name")
        self._state = "write error"
        self._download(self._find(name, frames))
        self._state = "operating"

    def _find(self, name: str, frames: bytes) -> Path:
        """Return the bitstream with these frames; that of the name first, for images are alike."""
        known = self._overlays()
        stem = PurePosixPath(name).stem
        ordered = sorted(known.items(), key=lambda item: item[0] != stem)
        for overlay, path in ordered:
            same = path.suffix == ".bit" and bit2bin(path.read_bytes()) == frames
            if same and (overlay == stem or not is_simulation_image(path)):
                return path
        raise BitstreamError(
            f"no overlay of this server has the frames of {name}. The client sends no handoff, "
            "which a virtual board needs: put NAME.bit and NAME.hwh into a folder, and start the "
            f"server with --overlays FOLDER. It knows {', '.join(sorted(known)) or 'none'}."
        )
