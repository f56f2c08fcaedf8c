"""How deep the buffers of an m_axi adapter are, as INTERFACE says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Buffers", "buffers_of"]

#: Words of a burst, and bursts under way, where INTERFACE does not say (UG1399).
_BURST = _OUTSTANDING = 16


@dataclass(frozen=True)
class Buffers:
    """Words of a burst, and bursts that may be under way, of what is read and what is written."""

    read_burst: int = _BURST
    reads: int = _OUTSTANDING
    write_burst: int = _BURST
    writes: int = _OUTSTANDING


def buffers_of(ports: Mapping[str, Mapping[str, str]], bundle: str) -> Buffers:
    """Return what the arguments of a bundle ask for; they share one adapter."""
    here = [port for port in ports.values() if port.get("bundle", "gmem") == bundle]

    def most(name: str, usual: int) -> int:
        said = (port.get(name, "") for port in here)
        return max((int(text) for text in said if text.isdigit() and int(text)), default=usual)

    return Buffers(
        most("max_read_burst_length", _BURST), most("num_read_outstanding", _OUTSTANDING),
        most("max_write_burst_length", _BURST), most("num_write_outstanding", _OUTSTANDING),
    )  # fmt: skip
