"""The model of an IP that has no other model: plain registers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from pynq_torch.errors import NoModelError, RegistersOnly
from pynq_torch.hls.ap_ctrl import AP_IDLE, AP_START

from .bus import IpModel
from .handoff import IpInstance
from .services import BoardServices
from .vain_polls import FEWEST_POLLS


class NoModel(IpModel):
    """An IP that nothing models: its registers read back what was written.

    Starting it, where it is an HLS kernel, is an error that names the folders searched.
    """

    def __init__(self, board: BoardServices, ip: IpInstance, searched: Sequence[str] = ()) -> None:
        super().__init__(board, ip)
        self._words: dict[tuple[str, int], int] = {}
        self._searched = tuple(searched)
        self._polled: set[tuple[str, int]] = set()  # read in a row, with nothing in between
        self._told = False

    @property
    def passes_nothing(self) -> bool:
        """Its streams stay open."""
        return True

    def read(self, offset: int, slave: str = "") -> int:
        """Read back what was written; a kernel that never ran is idle."""
        value = self._words.get((slave, offset), 0)
        if not self.ip.is_kernel:
            self._note_poll(slave, offset)
        elif offset == 0:
            self.board.vain_polls.note(
                lambda: (
                    f"{self.ip.name} has no model and never starts or ends: its registers read "
                    "back what was written."
                )
            )
            value |= AP_IDLE
        return value

    def _note_poll(self, slave: str, offset: int) -> None:
        """Say once that nothing happens behind the registers, when a program waits for something.

        Raises
        ------
        BoardHang
            The program has done nothing else for long.
        """
        text = (
            f"{self.ip.name} ({self.ip.vlnv}) has registers only on this board: they read back "
            "what was written, and nothing else changes them. Run this part of the program on a "
            "PYNQ-Z2."
        )
        count = self.board.vain_polls.note(lambda: text)
        if count == 1:
            self._polled.clear()
        self._polled.add((slave, offset))
        # A program that shows all registers reads each of them only once.
        if count >= FEWEST_POLLS * len(self._polled) and not self._told:
            self._told = True
            warnings.warn(f"the program polls {text}", RegistersOnly, stacklevel=2)

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Keep the value; refuse to start."""
        if offset == 0 and value & AP_START and self.ip.is_kernel:
            folders = "\n  ".join(self._searched) or "none"
            tops = " or ".join(f"{name}()" for name in self.ip.top_names)
            raise NoModelError(
                f"{self.ip.name} ({self.ip.vlnv}) was started, and there is no model for it: no "
                f"folder named {self.ip.vlnv_name}/ with its C++ and no top function {tops} was "
                f"found.\nFolders searched:\n  {folders}\n"
                "Give the folder with its HLS sources: --kernels DIR, PYNQ_TORCH_KERNELS=DIR or "
                "use_board(..., kernels=[DIR]).",
                self.ip.name,
            )
        self._words[slave, offset] = value
