"""Reading ``hw/overlays/<name>/overlay.toml``.

TOML, because a person writes and comments it and Python (3.11 and later) reads it. The board
itself never does: it gets the ``.hwh`` that is made from it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    with_config,
)
from typing_extensions import Required, TypedDict

from pynq_torch.descriptions import explain
from pynq_torch.errors import HandoffError

from .part import MemoryPort

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["InstanceDescription", "OverlayDescription", "Pin", "read_description"]

FILE_NAME = "overlay.toml"
#: Above every clock that the PLLs make (UG585); `part.clock_dividers` knows which ones they make.
_HIGHEST_MHZ = 1600


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
        AXI4 master -> memory port (``HP0`` to ``HP3``). A kernel's master has its bundle's name.
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


def _identifier(text: str) -> str:
    if not text.isidentifier():
        raise ValueError("expected a name: letters, digits and _")
    return text


def _as_text(value: object) -> str:
    finite = not isinstance(value, float) or math.isfinite(value)
    if not isinstance(value, str | int | float) or not finite:
        raise ValueError("expected a string, a finite number or a boolean")
    return str(value)


_Name = Annotated[str, AfterValidator(_identifier)]


@with_config(ConfigDict(extra="forbid"))
class _Instance(TypedDict, total=False):
    kernel: _Name
    ip: _Name
    address: int
    memory: dict[str, MemoryPort]
    parameters: dict[str, Annotated[str, BeforeValidator(_as_text)]]


@with_config(ConfigDict(extra="forbid"))
class _File(TypedDict, total=False):
    summary: str
    clock_mhz: Annotated[float, Field(gt=0, le=_HIGHEST_MHZ, allow_inf_nan=False)]
    instances: Required[Annotated[dict[_Name, _Instance], Field(min_length=1)]]
    streams: list[str]
    interrupts: list[str]


_SCHEMA = TypeAdapter(_File)


def read_description(path: Path) -> OverlayDescription:
    """Read an overlay's description.

    Parameters
    ----------
    path : pathlib.Path
        The ``overlay.toml``, or its folder.

    Raises
    ------
    HandoffError
        The file is missing, is no TOML, or says something that cannot be; the message names it.
    """
    path = path / FILE_NAME if path.is_dir() else path
    data = _read(path)
    for name, item in data["instances"].items():
        if ("kernel" in item) == ("ip" in item):
            raise HandoffError(
                f"{path}: instance {name} needs either kernel = or ip =, and not both"
            )
    names = set(data["instances"])
    return OverlayDescription(
        name=path.resolve().parent.name,
        path=path,
        summary=data.get("summary", ""),
        clock_mhz=float(data.get("clock_mhz", 100)),
        instances=tuple(
            InstanceDescription(name=name, **item) for name, item in data["instances"].items()
        ),
        streams=tuple(_stream(path, text, names) for text in data.get("streams", [])),
        interrupts=tuple(_pin(path, text, names) for text in data.get("interrupts", [])),
    )


def _read(path: Path) -> _File:
    if path.exists() and not path.is_file():
        raise HandoffError(f"{path} is a folder, device, pipe or socket; expected a TOML file")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return _SCHEMA.validate_python(data, strict=True)
    except FileNotFoundError as error:
        raise HandoffError(
            f"{path} does not exist: an overlay is a folder with an {FILE_NAME}"
        ) from error
    except OSError as error:
        raise HandoffError(f"{path}: cannot be read ({error.strerror})") from error
    except ValidationError as error:
        raise HandoffError(_fault(path, error)) from error
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, or brackets without end
        raise HandoffError(f"{path}: {error}") from error


def _fault(path: Path, error: ValidationError) -> str:
    """Return what is wrong with the file, and what to write where a word is unknown."""
    fault = error.errors(include_url=False)[0]
    message = explain(path, error)
    found = message.rpartition("; ")[0] or message
    inside = fault["loc"][0] == "instances"
    if fault["type"] == "extra_forbidden":
        known = _Instance.__annotations__ if inside else _File.__annotations__
        return f"{found}, which means nothing here; known are {', '.join(sorted(known))}"
    if inside and len(fault["loc"]) <= 2:
        return f"{found}; write [instances.NAME] with kernel = or ip ="
    return message


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
