"""Reading ``hw/overlays/<name>/overlay.toml``.

TOML, because a person writes and comments it and Python (3.11 and later) reads it. The board
itself never does: it gets the ``.hwh`` that is made from it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pynq_torch.errors import HandoffError

from .part import MEMORY_PORTS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["InstanceDescription", "OverlayDescription", "Pin", "read_description"]

FILE_NAME = "overlay.toml"


@dataclass(frozen=True)
class Pin:
    """A pin or interface of an instance, written ``instance.pin``."""

    instance: str
    name: str

    def __str__(self) -> str:
        return f"{self.instance}.{self.name}"


@dataclass(frozen=True)
class InstanceDescription:
    """One kernel or Xilinx IP of an overlay.

    Parameters
    ----------
    name : str
        The instance, as ``ip_dict`` will show it (``gemm_0``).
    kernel : str or None
        A folder of ``hw/kernels``.
    ip : str or None
        A Xilinx IP of the catalogue (``axi_dma``); exactly one of the two is given.
    address : int or None
        Of its AXI4-Lite slave; the next free 64 KB where None.
    memory : mapping of str to str
        AXI4 master -> memory port (``HP0`` to ``HP3``). A kernel's master goes by its bundle.
    parameters : mapping of str to str
        The IP's configuration where it differs from the catalogue's.
    """

    name: str
    kernel: str | None = None
    ip: str | None = None
    address: int | None = None
    memory: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OverlayDescription:
    """What ``overlay.toml`` says.

    Parameters
    ----------
    name : str
        The folder's name.
    path : pathlib.Path
        The file.
    summary : str
        One line.
    clock_mhz : float
        The PL clock.
    instances : tuple of InstanceDescription
        In the file's order, which is the order of addresses.
    streams : tuple of (Pin, Pin)
        AXI4-Stream connections, source first.
    interrupts : tuple of Pin
        Sources, in order of the interrupt controller's inputs.
    """

    name: str
    path: Path
    summary: str
    clock_mhz: float
    instances: tuple[InstanceDescription, ...]
    streams: tuple[tuple[Pin, Pin], ...] = ()
    interrupts: tuple[Pin, ...] = ()


def read_description(path: Path) -> OverlayDescription:
    """Read an overlay's description.

    Parameters
    ----------
    path : pathlib.Path
        The ``overlay.toml``, or the folder it lies in.

    Raises
    ------
    HandoffError
        The file is missing, is no TOML, or says something that cannot be; the message names it.
    """
    path = path / FILE_NAME if path.is_dir() else path
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise HandoffError(
            f"{path} does not exist: an overlay is a folder with an {FILE_NAME}"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise HandoffError(f"{path}: {error}") from error
    _only(path, "the overlay", data, {"summary", "clock_mhz", "instances", "streams", "interrupts"})
    instances = tuple(_instance(path, name, item) for name, item in _table(path, data).items())
    names = {instance.name for instance in instances}
    streams = tuple(_stream(path, text, names) for text in _list(path, data, "streams"))
    interrupts = tuple(_pin(path, text, names) for text in _list(path, data, "interrupts"))
    clock = data.get("clock_mhz", 100)
    if isinstance(clock, bool) or not isinstance(clock, int | float):
        raise HandoffError(f"{path}: clock_mhz is {clock!r}; write a number of MHz")
    return OverlayDescription(
        name=path.resolve().parent.name,
        path=path,
        summary=str(data.get("summary", "")),
        clock_mhz=float(clock),
        instances=instances,
        streams=streams,
        interrupts=interrupts,
    )


def _only(path: Path, what: str, data: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(data) - known)
    if unknown:
        raise HandoffError(
            f"{path}: {what} has {unknown[0]!r}, which means nothing here; "
            f"known are {', '.join(sorted(known))}"
        )


def _table(path: Path, data: Mapping[str, Any]) -> Mapping[str, Any]:
    instances = data.get("instances", {})
    if not isinstance(instances, dict) or not instances:
        raise HandoffError(f"{path}: no instances; write [instances.NAME] with kernel = or ip =")
    return instances


def _list(path: Path, data: Mapping[str, Any], key: str) -> list[str]:
    items = data.get(key, [])
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise HandoffError(f"{path}: {key} is {items!r}; write a list of strings")
    return items


def _instance(path: Path, name: str, item: Any) -> InstanceDescription:
    what = f"instance {name}"
    if not isinstance(item, dict):
        raise HandoffError(f"{path}: {what} is {item!r}; write [instances.{name}]")
    _only(path, what, item, {"kernel", "ip", "address", "memory", "parameters"})
    if not name.isidentifier():
        raise HandoffError(f"{path}: {what} is no name for Vivado; use letters, digits and _")
    if ("kernel" in item) == ("ip" in item):
        raise HandoffError(f"{path}: {what} needs either kernel = or ip =, and not both")
    memory = {str(master): str(port) for master, port in item.get("memory", {}).items()}
    for master, port in memory.items():
        if port not in MEMORY_PORTS:
            raise HandoffError(
                f"{path}: {what} puts {master} on {port!r}; there are {', '.join(MEMORY_PORTS)}"
            )
    return InstanceDescription(
        name=name,
        kernel=item.get("kernel"),
        ip=item.get("ip"),
        address=item.get("address"),
        memory=memory,
        parameters={str(key): str(value) for key, value in item.get("parameters", {}).items()},
    )


def _pin(path: Path, text: str, names: set[str]) -> Pin:
    instance, dot, pin = text.strip().partition(".")
    if not dot or not pin:
        raise HandoffError(f"{path}: {text!r} is no pin; write INSTANCE.PIN")
    if instance not in names:
        raise HandoffError(
            f"{path}: {text!r} names no instance; there are {', '.join(sorted(names))}"
        )
    return Pin(instance, pin)


def _stream(path: Path, text: str, names: set[str]) -> tuple[Pin, Pin]:
    source, arrow, sink = text.partition("->")
    if not arrow:
        raise HandoffError(f"{path}: stream {text!r}; write 'SOURCE.PORT -> SINK.PORT'")
    return _pin(path, source, names), _pin(path, sink, names)
