"""The module ``pynq.lib._video`` of a virtual board; on a board it drives the HDMI pins."""

from __future__ import annotations

from typing import NoReturn

from pynq_torch.board.unmodelled import refusal
from pynq_torch.errors import BoardError

__all__: list[str] = []


class _capture:  # pynq's name
    """What ``hdmi_in.configure()`` makes."""

    def __init__(self, *_: object) -> None:
        raise BoardError(refusal("hdmi_in", "HDMI video"))


class _display:  # pynq's name
    """What a driver of an HDMI output makes when it is bound to the design."""

    def __init__(self, *_: object) -> None:
        """Do nothing: designs with HDMI load, and the rest of them works."""

    def _refuse(self, *_: object) -> NoReturn:
        raise BoardError(refusal("hdmi_out", "HDMI video"))

    mode = start = frame_width = frame_height = _refuse

    def stop(self) -> None:
        """Do nothing."""
