"""Reading an IP's parameters from the hardware handoff, where everything is a string."""

from __future__ import annotations

from pynq_torch.board.handoff import IpInstance
from pynq_torch.errors import HandoffError


def integer(ip: IpInstance, name: str, default: int) -> int:
    """Return parameter ``name`` as a number.

    Vivado writes decimal, ``0x`` hexadecimal, and ``true``/``false`` for booleans.

    Raises
    ------
    HandoffError
        The value is none of these.
    """
    # Vivado lists some only by their XML name in lower case (c_addr_width).
    text = ip.parameters.get(name) or ip.parameters.get(name.lower())
    if not text:
        return default
    text = text.strip().lower()
    if text in ("true", "false"):
        return int(text == "true")
    try:
        return int(text, 0)
    except ValueError:
        pass
    if text.isdigit():  # leading zeros, which int(..., 0) refuses
        return int(text)
    raise HandoffError(f"{ip.name}: parameter {name} in the handoff is {text!r}, expected a number")


def within(ip: IpInstance, name: str, default: int, least: int, most: int) -> int:
    """Return parameter ``name`` as a number that the IP can have.

    Raises
    ------
    HandoffError
        The value is no number, or not from `least` to `most`.
    """
    value = integer(ip, name, default)
    if not least <= value <= most:
        raise HandoffError(
            f"{ip.name}: parameter {name} in the handoff is {value}, expected {least} to {most}"
        )
    return value


def flag(ip: IpInstance, name: str, default: bool) -> bool:
    """Return parameter ``name`` as a truth value."""
    return integer(ip, name, int(default)) != 0
