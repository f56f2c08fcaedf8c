"""The model of an IP that has no other model: plain registers."""

from __future__ import annotations

from collections.abc import Sequence

from pynq_torch.errors import NoModelError
from pynq_torch.hls.ap_ctrl import AP_IDLE, AP_START

from .bus import IpModel
from .handoff import IpInstance
from .services import BoardServices


class NoModel(IpModel):
    """An IP that nothing models: its registers read back what was written.

    Starting it, where it is an HLS kernel, is an error that names the folders searched.
    """

    def __init__(self, board: BoardServices, ip: IpInstance, searched: Sequence[str] = ()) -> None:
        super().__init__(board, ip)
        self._words: dict[tuple[str, int], int] = {}
        self._searched = tuple(searched)

    def read(self, offset: int, slave: str = "") -> int:
        """Read back what was written; a kernel that never ran is idle."""
        value = self._words.get((slave, offset), 0)
        if offset or not self.ip.is_kernel:
            return value
        self.board.vain_polls.note(
            lambda: (
                f"{self.ip.name} has no model and never starts or ends: its registers read back "
                "what was written."
            )
        )
        return value | AP_IDLE

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Keep the value; refuse to start."""
        if offset == 0 and value & AP_START and self.ip.is_kernel:
            folders = "\n  ".join(self._searched) or "none"
            raise NoModelError(
                f"{self.ip.name} ({self.ip.vlnv}) was started, and there is no model for it: no "
                f"folder named {self.ip.vlnv_name}/ with its C++ and no top function "
                f"{self.ip.vlnv_name}() was found.\nFolders searched:\n  {folders}\n"
                "Give the folder with its HLS sources: --kernels DIR, PYNQ_TORCH_KERNELS=DIR or "
                "use_board(..., kernels=[DIR]).",
                self.ip.name,
            )
        self._words[slave, offset] = value
