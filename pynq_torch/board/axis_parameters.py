"""What the parameters of AXI4-Stream IP say that it does with a beat (PG085)."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["MAX_BYTES", "MAX_PORTS", "NotCarried", "Settings", "StreamMode", "settings_of"]

MAX_PORTS = 16  #: streams on one side of an IP (PG085)
MAX_BYTES = 128  #: of a beat; TKEEP has two words in a ring


class StreamMode(enum.IntEnum):
    """What happens to a beat; numbers as in ``engines/axis.cpp``."""

    RESIZE = 0
    COPY = 1
    COMBINE = 2
    ROUTE = 3
    DECODE = 4


class NotCarried(ValueError):
    """A parameter asks for what is not modelled; the text names it."""


@dataclass(frozen=True)
class Settings:
    """What a stream IP does with a beat."""

    mode: StreamMode
    sets: Mapping[str, int] = field(default_factory=dict)  #: side channel -> its new value
    every: int = 0  #: TLAST on each so-many-th beat
    primary: int = 0  #: of a combiner, the input whose side channels go on
    offsets: tuple[int, ...] = ()  #: of copies, the first byte
    ranges: tuple[tuple[int, int], ...] = ()  #: TDESTs, by output
    resizes: bool = False

    @property
    def passes(self) -> bool:
        """Whether beats leave as they came."""
        copies = self.mode is StreamMode.COPY and not any(self.offsets) and not self.resizes
        return copies and not self.sets and not self.every


def settings_of(kind: str, parameters: Mapping[str, str], outputs: int = 1) -> Settings:
    """Return what a stream IP does with a beat.

    Parameters
    ----------
    kind : str
        Third field of its VLNV.
    parameters : mapping of str to str
        As the handoff has them.
    outputs : int
        Streams that leave it.

    Raises
    ------
    NotCarried
        A parameter asks for what is not modelled.
    """
    if kind == "axis_dwidth_converter":
        bits = _number(parameters, "TUSER_BITS_PER_BYTE", 0)
        if bits:
            raise NotCarried(f"TUSER_BITS_PER_BYTE is {bits}, and TUSER is not carried; expected 0")
        return Settings(StreamMode.RESIZE)
    if kind == "axis_subset_converter":
        return _subset(parameters)
    if kind == "axis_broadcaster":
        names = [f"M{i:02d}_TDATA_REMAP" for i in range(outputs)]
        return Settings(
            StreamMode.COPY, offsets=tuple(_first_byte(parameters, name) for name in names)
        )
    if kind == "axis_combiner":
        return Settings(StreamMode.COMBINE, primary=_number(parameters, "MASTER_PORT_NUM", 0))
    if _number(parameters, "ROUTING_MODE", 0):
        return Settings(StreamMode.ROUTE)
    if outputs == 1:  # no decoder: it only merges
        return Settings(StreamMode.DECODE, ranges=((0, 0xFFFFFFFF),))
    ranges = []
    for i in range(outputs):
        base = _number(parameters, f"M{i:02d}_AXIS_BASETDEST", i)
        ranges.append((base, _number(parameters, f"M{i:02d}_AXIS_HIGHTDEST", base)))
    return Settings(StreamMode.DECODE, ranges=tuple(ranges))


def _subset(parameters: Mapping[str, str]) -> Settings:
    offset = _first_byte(parameters, "TDATA_REMAP")
    sets = {}
    for channel in ("last", "keep", "user", "id", "dest"):
        has = "HAS_T{}" if channel in ("last", "keep") else "T{}_WIDTH"
        given, leaves = (
            _number(parameters, f"{side}_{has.format(channel.upper())}", -1) for side in "SM"
        )
        value = _constant(parameters, f"T{channel.upper()}_REMAP")
        if leaves == 0 and given != 0:
            sets[channel] = 1 if channel == "keep" else 0  # dropped: TKEEP reads as all ones
        elif value is not None and leaves != 0:
            sets[channel] = value
    if sets.get("keep") == 0:
        raise NotCarried(f"TKEEP_REMAP is {parameters.get('TKEEP_REMAP')!r}; expected all ones")
    before, after = (_number(parameters, f"{side}_TDATA_NUM_BYTES", 0) for side in "SM")
    return Settings(
        StreamMode.COPY,
        sets,
        _number(parameters, "DEFAULT_TLAST", 0),
        offsets=(offset,),
        resizes=before != after,
    )


def _first_byte(parameters: Mapping[str, str], name: str) -> int:
    """Return where the bytes of TDATA that go on begin; zeros in front of them are added."""
    text = _get(parameters, name)
    if not text:
        return 0
    match = re.fullmatch(r"(?:\d+'[bh]0+,)?tdata\[\d+:(\d+)\]", text)
    if match is None or int(match[1]) % 8:
        raise NotCarried(f"{name} is {text!r}; expected whole bytes in a row, as tdata[31:0]")
    return int(match[1]) // 8


def _constant(parameters: Mapping[str, str], name: str) -> int | None:
    """Return what a side channel is set to, None where it passes."""
    text = _get(parameters, name)
    if not text or re.fullmatch(r"t\w+\[(\d+:)?0\]", text):
        return None
    match = re.fullmatch(r"(\d+)'([bh])([0-9a-f]+)", text)
    if match is None:
        raise NotCarried(f"{name} is {text!r}; expected a constant, or the channel as it comes")
    value = int(match[3], 2 if match[2] == "b" else 16)
    return int(value != 0) if name in ("TKEEP_REMAP", "TLAST_REMAP") else value


def _get(parameters: Mapping[str, str], name: str) -> str:
    return "".join(parameters.get(name, "").lower().split())


def _number(parameters: Mapping[str, str], name: str, default: int) -> int:
    text = _get(parameters, name) or _get(parameters, f"C_{name}")
    try:
        return int(text, 0) if text else default
    except ValueError:
        raise NotCarried(f"{name} is {text!r}; expected a number") from None
