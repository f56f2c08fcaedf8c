"""The module ``pynq.overlays.base`` of a virtual board: what the board's own image has there.

The vendor's package is not in pynq's wheel. Its class binds LEDs, switches and buttons to their
GPIO; so does this one. What has no model says so when it is used. Names are those of a PYNQ-Z2.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pynq import Overlay
from pynq.lib import RGBLED

from pynq_torch.board.unmodelled import refusal
from pynq_torch.errors import BoardError

__all__ = ["BaseOverlay"]

_IOP = "MicroBlaze I/O processors (Pmod, Arduino and Raspberry Pi headers)"
_TRACE = "the trace analyser"
#: Attributes of the vendor's class that have no model here, and what they belong to.
_NOT_MODELLED = {
    **dict.fromkeys(("iop_pmoda", "iop_pmodb", "iop_arduino", "iop_rpi"), _IOP),
    **dict.fromkeys(("PMODA", "PMODB", "ARDUINO", "RPI", "pin_select"), _IOP),
    **dict.fromkeys(("trace_rpi", "trace_pmoda", "trace_pmodb"), _TRACE),
    **dict.fromkeys(("trace_analyzer_pi", "trace_analyzer_pmoda"), _TRACE),
    **dict.fromkeys(("video", "hdmi_in", "hdmi_out"), "HDMI video"),
    **dict.fromkeys(("audio", "audio_codec_ctrl_0"), "audio"),
}


class _NotModelled:
    """An attribute of the vendor's overlay that a virtual board lacks; using it is an error."""

    def __init__(self, name: str, part: str) -> None:
        self.__dict__.update(name=name, part=part)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        own = "Its base overlay has leds, rgbleds, switches and buttons. "
        raise BoardError(refusal(f"base.{self.__dict__['name']}", self.__dict__["part"], own))

    def __repr__(self) -> str:
        return f"<base.{self.__dict__['name']}: not modelled on a virtual board>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # copying and completion ask for these, a program does not
            raise AttributeError(name)
        self._refuse()

    __setattr__ = __getitem__ = __setitem__ = __call__ = __iter__ = __len__ = _refuse


class BaseOverlay(Overlay):
    """The base overlay of the PYNQ-Z2.

    Parameters
    ----------
    bitfile : str
        ``"base.bit"``, or the path of a design with the vendor's names.
    **kwargs
        Those of `pynq.Overlay`.

    Attributes
    ----------
    leds, buttons : pynq.lib.axigpio.AxiGPIO.Channel
        Four each.
    switches : pynq.lib.axigpio.AxiGPIO.Channel
        Two.
    rgbleds : list
        ``rgbleds[4]`` and ``rgbleds[5]`` are the RGB LEDs LD4 and LD5; ``None`` before them.
    """

    def __init__(self, bitfile: str, **kwargs: Any) -> None:
        super().__init__(bitfile, **kwargs)
        if not self.is_loaded():
            return
        for name, ip, wires, direction in (
            ("leds", self.leds_gpio, 4, "out"),
            ("switches", self.switches_gpio, 2, "in"),
            ("buttons", self.btns_gpio, 4, "in"),
        ):
            channel = ip.channel1
            channel.setlength(wires)
            channel.setdirection(direction)
            setattr(self, name, channel)
        # RGBLED keeps the first design's registers for all its objects, whatever is loaded later.
        RGBLED._mmio, RGBLED._rgbleds_val = None, 0
        self.rgbleds = [None] * 4 + [RGBLED(4), RGBLED(5)]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name not in _NOT_MODELLED:
                raise
            return _NotModelled(name, _NOT_MODELLED[name])

    def select_pmoda(self) -> None:
        """Connect the pins that Pmod A and the Raspberry Pi header share to Pmod A."""
        self.pin_select.write(0)

    def select_rpi(self) -> None:
        """Connect the pins that Pmod A and the Raspberry Pi header share to the latter."""
        self.pin_select.write(1)
