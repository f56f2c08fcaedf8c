"""LEDs, RGB LEDs, switches and buttons of a virtual board, as a person in front of it has them.

They are the wires of four GPIO, which have the names of the board's base overlay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pynq_torch.errors import BoardError

from .ip.axi_gpio import AxiGpio

if TYPE_CHECKING:
    from .device import VirtualBoard

__all__ = ["Panel"]

_LEDS, _RGBLEDS, _BUTTONS, _SWITCHES = "leds_gpio", "rgbleds_gpio", "btns_gpio", "switches_gpio"


class Panel:
    """What can be seen and moved on a virtual board whose overlay has the base overlay's GPIO.

    Parameters
    ----------
    board : VirtualBoard
        With the overlay loaded; a panel goes with the overlay.

    Raises
    ------
    BoardError
        The loaded overlay has no GPIO of one of the four names.

    Examples
    --------
    >>> base = BaseOverlay("base.bit")
    >>> panel = Panel(pynq_torch.current_board())
    >>> base.leds[0].on(); panel.leds
    (True, False, False, False)
    >>> panel.press(3); base.buttons[3].read()
    1
    """

    def __init__(self, board: VirtualBoard) -> None:
        self._gpio: dict[str, AxiGpio] = {}
        for name in (_LEDS, _RGBLEDS, _BUTTONS, _SWITCHES):
            model = board.ip.get(name)
            if not isinstance(model, AxiGpio):
                raise BoardError(
                    f"the loaded overlay has no GPIO called {name}; load the base overlay: "
                    "BaseOverlay('base.bit') of pynq.overlays.base"
                )
            self._gpio[name] = model

    @property
    def leds(self) -> tuple[bool, ...]:
        """Whether each of the four LEDs is lit, LD0 first."""
        return self._bits(_LEDS, 4)

    @property
    def rgbleds(self) -> tuple[int, ...]:
        """Colours of LD4 and LD5: 1 is blue, 2 green, 4 red, their sums the mixed colours."""
        value = self._gpio[_RGBLEDS].output(1)
        return (value & 7, value >> 3 & 7)

    @property
    def buttons(self) -> tuple[bool, ...]:
        """Whether each of the four buttons is pressed, BTN0 first."""
        return self._bits(_BUTTONS, 4)

    @property
    def switches(self) -> tuple[bool, ...]:
        """Whether each of the two switches is up, SW0 first."""
        return self._bits(_SWITCHES, 2)

    def press(self, button: int) -> None:
        """Press a button and keep it pressed; its interrupt is raised.

        Parameters
        ----------
        button : int
            0 to 3.
        """
        self._drive(_BUTTONS, "button", 4, button, True)

    def release(self, button: int) -> None:
        """Release a button, 0 to 3."""
        self._drive(_BUTTONS, "button", 4, button, False)

    def switch(self, switch: int, up: bool) -> None:
        """Move a switch, 0 or 1; its interrupt is raised."""
        self._drive(_SWITCHES, "switch", 2, switch, up)

    def watch(self, callback: Callable[[Panel], None]) -> None:
        """Call ``callback(panel)`` each time an LED or RGB LED changes, until the overlay goes."""
        for name in (_LEDS, _RGBLEDS):
            self._gpio[name].on_output(1, lambda value, driven: callback(self))

    def _bits(self, name: str, width: int) -> tuple[bool, ...]:
        value = self._gpio[name].output(1)
        return tuple(bool(value >> bit & 1) for bit in range(width))

    def _drive(self, name: str, what: str, count: int, index: int, level: bool) -> None:
        if not 0 <= index < count:
            raise ValueError(f"{what} is {index}; the board has {what}s 0 to {count - 1}")
        model = self._gpio[name]
        value = model.output(1) & ~(1 << index)
        model.set_input(1, value | int(level) << index)
