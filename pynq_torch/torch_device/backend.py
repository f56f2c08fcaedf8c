"""``torch.pynq``: what ``torch.cuda`` is for CUDA.

There is one device, ``"pynq"`` or ``"pynq:0"``: the PYNQ-Z2 that pynq uses, real or virtual. Its
board is chosen when the first tensor is made (see `pynq_torch.use_board`). `profiler` and
`kernel_logger` show what ran where.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from pynq_torch.errors import DeviceLost

from . import cma, memory
from .random import default_generator

if TYPE_CHECKING:
    from pynq_torch import profiler
    from pynq_torch.profiler import kernel_logger

__all__ = [
    "Event",
    "current_device",
    "default_generators",
    "device",
    "device_count",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_initialized",
    "kernel_logger",
    "kernels",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "overlay",
    "physical_address",
    "profiler",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "synchronize",
]

#: One generator for the one device. It is a CPU generator, because the CPU draws the numbers.
default_generators = (default_generator,)

_Device = torch.device | str | int | None

#: ``torch.utils.checkpoint`` keeps the random numbers of devices that say so.
_initialized = True


#: ``torch.pynq.profiler`` and its like, imported when they are first used.
_TOOLS = {
    "profiler": "pynq_torch.profiler",
    "kernel_logger": "pynq_torch.profiler.kernel_logger",
}


def __getattr__(name: str) -> Any:
    if name in _TOOLS:
        return import_module(_TOOLS[name])
    raise AttributeError(f"module 'torch.pynq' has no attribute {name!r}")


# ---- the device ----------------------------------------------------------------------------------


def is_available() -> bool:
    """Whether device "pynq" can be used here: always, except in a forked child.

    Without a real board the virtual one is used.
    """
    return not cma.in_forked_child()


def is_initialized() -> bool:
    """Whether a board has been chosen."""
    from pynq_torch.board import current_board

    return cma.used_device() is not None or current_board() is not None


def init() -> None:
    """Choose the board now, not at the first tensor."""
    from pynq_torch.board import ensure_board

    ensure_board()


def device_count() -> int:
    """Return 1."""
    return 1


def current_device() -> int:
    """Return 0, the index of the one device."""
    return 0


def _index(device: _Device) -> int:
    if isinstance(device, int):
        index = device
    else:
        where = torch.device("pynq") if device is None else torch.device(device)
        if where.type != "pynq":
            raise ValueError(f"expected a device of type 'pynq'; found {str(where)!r}")
        index = where.index or 0
    if index:
        raise RuntimeError(f"invalid device ordinal {index}: there is one device, 'pynq:0'")
    return index


def set_device(device: _Device) -> None:
    """Choose the current device; there is only index 0."""
    _index(device)


class device:
    """Context manager that chooses the current device; there is only index 0."""

    def __init__(self, device: _Device) -> None:
        self.idx = _index(device)

    def __enter__(self) -> device:
        return self

    def __exit__(self, *error: object) -> None:
        return None


_is_in_bad_fork = cma.in_forked_child


def synchronize(device: _Device = None) -> None:
    """Wait for the device. An operator returns when its kernels have ended, so all is done."""
    _index(device)


def get_device_name(device: _Device = None) -> str:
    """Return the board's name, e.g. ``"Pynq-Z2 (csim)"``."""
    from pynq_torch.board import ensure_board

    _index(device)
    active = ensure_board()
    name = str(getattr(active, "name", "PYNQ"))
    kind = getattr(active, "board_name", "")
    return f"{name} ({kind})" if kind else name


def get_device_capability(device: _Device = None) -> tuple[int, int]:
    """Return the part's series: ``(7, 0)``, Zynq-7000."""
    _index(device)
    return 7, 0


def get_device_properties(device: _Device = None) -> SimpleNamespace:
    """Return the board's name, memory (bytes of CMA) and compute units."""
    free, total = mem_get_info(device)
    return SimpleNamespace(
        name=get_device_name(device),
        total_memory=total,
        free_memory=free,
        multi_processor_count=len(kernels()),
    )


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the dtypes of ``torch.autocast("pynq")``: none, reduced precision is int8 here."""
    return []


class Event:
    """A mark in time, as ``torch.cuda.Event``.

    Parameters
    ----------
    enable_timing : bool
        Kept for the signature; time is always taken.
    """

    def __init__(self, enable_timing: bool = False, **_: object) -> None:
        self._at: float | None = None

    def record(self, stream: object = None) -> None:
        """Set the mark. Operators are done when they return, so this is host time."""
        self._at = time.perf_counter()

    def synchronize(self) -> None:
        """Return at once."""

    def query(self) -> bool:
        """Whether the mark has been reached."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds between two marks, measured on the host."""
        if self._at is None or end._at is None:
            raise RuntimeError("both events must be recorded before elapsed_time()")
        return (end._at - self._at) * 1e3


# ---- the overlay ---------------------------------------------------------------------------------


def overlay() -> Any:
    """Return the overlay whose kernels serve the device: the last one that was loaded.

    Returns
    -------
    pynq_torch.overlay.Overlay or None
        See `pynq_torch.load`.
    """
    from pynq_torch.overlay import current_overlay

    return current_overlay()


def kernels() -> dict[str, str]:
    """Return the compute units that serve operators: name -> kernel."""
    from .dispatch import serving

    return serving()


def physical_address(tensor: torch.Tensor) -> int:
    """Return the physical address of a tensor on the device, as a kernel's register takes it.

    Who has the address may write there, so that nothing is quantised ahead for this memory any
    more.

    Raises
    ------
    DeviceLost
        The board of the tensor is no longer in use.
    """
    if tensor.device.type != "pynq":
        raise ValueError(f"expected a tensor on device 'pynq'; found {str(tensor.device)!r}")
    found = memory.block_of(tensor).memory
    if found is not None and getattr(found.device, "closed", False):
        raise DeviceLost(
            "the tensor is in memory of a board that was closed, which no kernel can reach: "
            "tensor.clone() copies it to the board in use"
        )
    memory.share(tensor)
    return memory.physical_address(tensor)


# ---- memory --------------------------------------------------------------------------------------


def memory_allocated(device: _Device = None) -> int:
    """Return the bytes of CMA that live tensors hold, with rounding."""
    _index(device)
    return cma.allocated_bytes()


def max_memory_allocated(device: _Device = None) -> int:
    """Return the most that `memory_allocated` has been, seen when memory was taken from CMA."""
    _index(device)
    return cma.peak_bytes()


def reset_peak_memory_stats(device: _Device = None) -> None:
    """Start again with `max_memory_allocated`."""
    _index(device)
    cma.peak_bytes(reset=True)


def memory_reserved(device: _Device = None) -> int:
    """Return the bytes taken from CMA: `memory_allocated`, and what is kept for reuse."""
    _index(device)
    return cma.reserved_bytes()


def memory_stats(device: _Device = None) -> dict[str, int]:
    """Return counts of memory under torch.cuda's names, where these have a meaning here."""
    _index(device)
    return cma.statistics()


def memory_summary(device: _Device = None, abbreviated: bool = False) -> str:
    """Return `memory_stats` as a table."""
    rows = memory_stats(device).items()
    return "\n".join(f"{name:<32}{value:>14,}" for name, value in rows)


def mem_get_info(device: _Device = None) -> tuple[int, int]:
    """Return the free and the total bytes of CMA on the board."""
    from pynq_torch.board import current_board, ensure_board

    _index(device)
    active = ensure_board()
    board = current_board()
    if board is active and board is not None:
        free = int(board.memory.free_bytes)
        return free, free + int(board.memory.used_bytes)
    file = "/proc/meminfo"
    served = getattr(active, "read_file", None)  # board remote
    text = Path(file).read_text() if served is None else served(file).decode()
    found = {}
    for line in text.splitlines():
        if line.startswith("Cma"):
            found[line.split(":")[0]] = int(line.split()[1]) * 1024
    return found["CmaFree"], found["CmaTotal"]


def empty_cache() -> None:
    """Give memory that no tensor holds back to CMA."""
    cma.trim()


# ---- random numbers ------------------------------------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the device's generator; ``torch.manual_seed`` does it too."""
    default_generator.manual_seed(int(seed))


manual_seed_all = manual_seed


def seed() -> None:
    """Seed the device's generator with a random number."""
    default_generator.seed()


seed_all = seed


def initial_seed() -> int:
    """Return the seed in use."""
    return default_generator.initial_seed()


def get_rng_state(device: _Device = "pynq") -> torch.Tensor:
    """Return the state of the device's generator, a uint8 tensor on the CPU."""
    _index(device)
    return default_generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: _Device = "pynq") -> None:
    """Set the state of the device's generator."""
    _index(device)
    default_generator.set_state(new_state.cpu())


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the states of all devices' generators."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Set the states of all devices' generators."""
    for state in new_states:
        set_rng_state(state)
