"""Load an overlay by name, with its kernels as typed drivers."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Iterator, Mapping
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pynq
from pynq.overlay import DefaultIP

from .board import ensure_board
from .diagnosis.stale_cache import drop_stale_cache
from .diagnosis.streams import kernels_on_stream, stream_hint
from .errors import BitstreamError, HandoffError
from .kernels import AffineDmas, Kernel, StreamKernel, driver_for
from .kernels.base import StaleOverlay
from .paths import BITSTREAMS, to_write

if TYPE_CHECKING:
    from .plot.block_design import BlockDesign

__all__ = [
    "Kernels",
    "Overlay",
    "StaleOverlay",
    "available_overlays",
    "current_overlay",
    "ensure_event_loop",
    "find_overlay",
    "load",
    "overlay_in_use",
]

_SUFFIXES = (".bit", ".bin", ".xsa", ".xclbin")


def _folders() -> tuple[Path, ...]:
    """Where names are looked up: what the user built, the project's, the working directory."""
    here = Path.cwd()
    return (to_write(BITSTREAMS), BITSTREAMS, here / "bitstreams", here)


def available_overlays() -> dict[str, Path]:
    """Return the overlays that :func:`load` knows by name, with the path of each bitstream."""
    found: dict[str, Path] = {}
    for folder in _folders():
        for path in sorted((*folder.glob("*.bit"), *folder.glob("*/*.bit"))):
            if path.parent == folder or path.parent.name == path.stem:
                found.setdefault(path.stem, path)
    return found


def find_overlay(name: str | os.PathLike[str]) -> Path:
    """Return the bitstream for a name or a path.

    Parameters
    ----------
    name : str or path
        ``"gemm"``: in ``bitstreams/`` of the checkout or of the installed package, then in the
        working directory. Anything with a suffix or a folder in it is taken as a path.

    Raises
    ------
    BitstreamError
        Nothing is called that; the message lists what there is.
    """
    path = Path(name).expanduser()
    if path.suffix in _SUFFIXES or len(path.parts) > 1:
        if path.is_file():
            return path.resolve()
        beside = sorted(p.name for p in path.parent.glob("*.bit")) if path.parent.is_dir() else []
        there = ", ".join(beside) or "no .bit at all"
        other = f"; an overlay called {path.stem!r} is here: load({path.stem!r})"
        other = other if path.stem in available_overlays() else "."
        raise BitstreamError(
            f"there is no file {path}; {path.parent.resolve()} has {there}. The name of the .bit "
            f"must be exactly that of the file, and its .hwh must be beside it{other}"
        )
    known = available_overlays()
    if str(name) in known:
        return known[str(name)].resolve()
    raise BitstreamError(
        f"no overlay is called {str(name)!r}; there are {', '.join(sorted(known)) or 'none'}. Give "
        "one of those, or the path of a .bit file."
    )


def load(
    name: str | os.PathLike[str],
    *,
    device: Any = None,
    download: bool = True,
    ignore_version: bool = True,
) -> Overlay:
    """Load an overlay.

    Parameters
    ----------
    name : str or path
        See :func:`find_overlay`.
    device : pynq.Device, optional
        Default: the active one (see `pynq_torch.use_board`); the virtual board where pynq finds
        none.
    download : bool
        ``False`` attaches to the overlay without configuring the PL.
    ignore_version : bool
        Use pynq's driver for an IP of another version too.

    Returns
    -------
    Overlay
        A ``pynq.Overlay`` whose HLS kernels are typed drivers.

    Raises
    ------
    BitstreamError
        No such overlay, or a simulation image on real hardware.
    HandoffError
        The ``.hwh`` is missing or of no use.
    """
    path = find_overlay(name)
    device = ensure_board() if device is None else device
    if path.suffix == ".bit" and not path.with_suffix(".hwh").is_file():
        raise HandoffError(
            f"{path.with_suffix('.hwh').name} is missing beside {path}: pynq reads addresses and "
            "registers from it. Copy the .hwh of the same Vivado run there, with the same name."
        )
    if download:
        from .hls.design import check_bitstream

        # A board that runs simulation images says so; anything else is real.
        check_bitstream(path, real_hardware=not getattr(device, "simulates", False))
    drop_stale_cache(path)
    return Overlay(str(path), device=device, download=download, ignore_version=ignore_version)


#: The overlay that was loaded last, whether or not it is still in the PL; see `current_overlay`.
latest: Overlay | None = None


def current_overlay() -> Overlay | None:
    """Return the overlay that was loaded last, while it is in the PL; ``None`` otherwise.

    It is kept alive: ``pynq_torch.load("gemm")`` alone gives the torch device its kernels.
    """
    global latest
    if latest is not None and not latest.is_loaded():
        latest = None
    return latest


def overlay_in_use() -> Overlay | None:
    """Return `current_overlay`, and ``None`` where its board was closed: it has no PL any more."""
    overlay = current_overlay()
    return None if overlay is not None and getattr(overlay.device, "closed", False) else overlay


_loops: list[asyncio.AbstractEventLoop] = []


def ensure_event_loop() -> None:
    """Give this thread an event loop if it has none.

    pynq attaches an IP's interrupts to the thread's loop when it makes the IP's driver, and fails
    where there is none: in any thread but the main one, and there after ``asyncio.run``.
    """
    if asyncio._get_running_loop() is not None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            loop = asyncio.get_event_loop_policy().get_event_loop()
        except RuntimeError:
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
    # pynq's readers stay attached to it, also when the thread goes on with another one.
    _loops[:] = [*(kept for kept in _loops if kept is not loop and not kept.is_closed()), loop]


class Overlay(pynq.Overlay):
    """A ``pynq.Overlay`` whose HLS kernels are typed drivers.

    ``overlay.gemm_0`` is a compute unit by its instance name, ``overlay.gemm`` the first one of
    the kernel ``gemm``; all else is as in pynq.

    Attributes
    ----------
    kernels : Kernels
        Compute unit name -> driver.
    """

    def __init__(self, bitfile_name: str, **options: Any) -> None:
        super().__init__(bitfile_name, **options)
        self.name = Path(bitfile_name).stem
        self.kernels = Kernels(self, dict(_bind(self._ip_map._description)))
        global latest
        latest = self

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_") or "_ip_map" not in self.__dict__:
            raise AttributeError(key)
        if not self.is_loaded():
            raise StaleOverlay(
                f"overlay {self.__dict__.get('name', '')!r} is no longer loaded: "
                f"{Path(self.device.bitfile_name or '').name or 'nothing'} is. "
                "An Overlay object is good until the next download; load it again."
            )
        ip_map = self._ip_map
        if key not in ip_map._keys():
            kernels = self.__dict__.get("kernels")
            unit = kernels.unit_of(key) if kernels is not None else None
            if unit is None:
                known = ", ".join(sorted(ip_map._keys()))
                hint = stream_hint(self.device, key)
                raise AttributeError(
                    hint or f"overlay {self.name!r} has no {key!r}; it has: {known}"
                )
            return _walk(self, unit)
        if key not in vars(ip_map):
            ensure_event_loop()
        driver = getattr(ip_map, key)
        if isinstance(driver, StreamKernel) and driver.dma is None:
            driver.dma = next(iter(self._dmas_of(driver)), None)
        if isinstance(driver, AffineDmas) and driver.dmas is None:
            driver.dmas = self._dmas_of(driver)
        return driver

    def _dmas_of(self, kernel: Kernel) -> list[Any]:
        """Return the DMAs whose streams lead to `kernel`; where none does, all there are."""
        found = [
            _walk(self, name)
            for name, entry in self.ip_dict.items()
            if entry.get("type", "").split(":")[2:3] == ["axi_dma"]
        ]
        near = [dma for dma in found if kernel.cu in kernels_on_stream(dma)]
        return near or found

    @property
    def clock_hz(self) -> float:
        """The PL clock (FCLK0) as it is set now, in Hz."""
        return float(pynq.Clocks.fclk0_mhz) * 1e6

    def draw(self) -> BlockDesign:
        """Return the block diagram: processor, interconnects, kernels, DMAs, streams, interrupts.

        A notebook shows it; ``draw().save("gemm.svg")`` writes it to a file.

        Raises
        ------
        HandoffError
            The handoff beside the bitstream is gone, or another.
        """
        from .board.diagram import read_diagram
        from .plot.block_design import BlockDesign

        return BlockDesign(read_diagram(Path(self.bitfile_name)))

    def _repr_html_(self) -> str | None:
        # Where Graphviz is not installed a notebook shows the text below.
        return None if find_spec("pygraphviz") is None else self.draw().svg

    def __repr__(self) -> str:
        return f"<Overlay {self.name}: {', '.join(self.kernels) or 'no kernels'}>"


class Kernels(Mapping[str, Kernel]):
    """The compute units of an overlay by name, made when they are first used.

    Parameters
    ----------
    overlay : Overlay
        Whose.
    units : dict of str to str
        Compute unit name -> kernel name.
    """

    def __init__(self, overlay: Overlay, units: dict[str, str]) -> None:
        self._overlay = overlay
        self._units = units

    def __getitem__(self, cu: str) -> Kernel:
        if cu not in self._units:
            raise KeyError(f"no compute unit {cu!r}; there are {', '.join(self._units) or 'none'}")
        found = _walk(self._overlay, cu)
        assert isinstance(found, Kernel)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._units)

    def __len__(self) -> int:
        return len(self._units)

    def unit_of(self, kernel: str) -> str | None:
        """Return the first compute unit of `kernel`, by name; ``None`` if there is none."""
        return next((cu for cu in sorted(self._units) if self._units[cu] == kernel), None)

    def of(self, kernel: str) -> list[Kernel]:
        """Return every compute unit of `kernel`, by name."""
        return [self[cu] for cu in sorted(self._units) if self._units[cu] == kernel]

    def __repr__(self) -> str:
        rows = ", ".join(f"{cu} ({kernel})" for cu, kernel in self._units.items())
        return f"<Kernels: {rows or 'none'}>"


def _walk(overlay: Any, path: str) -> Any:
    """Return the driver at ``hierarchy/ip``."""
    return reduce(getattr, path.split("/"), overlay)


def _bind(description: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give every HLS kernel its driver, in place; yield (compute unit, kernel)."""
    for entry in description["ip"].values():
        driver = driver_for(entry)
        if driver is not None and entry.get("driver") in (None, DefaultIP):
            entry["driver"] = driver
            yield entry["fullpath"], entry["type"].split(":")[2]
    for hierarchy in description["hierarchies"].values():
        yield from _bind(hierarchy)
