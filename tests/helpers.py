"""What several tests need: an overlay made of a few kernels, and waiting without a driver."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pynq_torch.hls import Interface, cache, command
from pynq_torch.hls import compile as compiling
from pynq_torch.hls.design.build import build_overlay
from pynq_torch.hls.estimator import Estimate, LoopEstimate, estimate
from pynq_torch.hls.parse import read_interface

KERNELS = Path(__file__).parent / "kernels"
HW_KERNELS = KERNELS.parents[1] / "hw" / "kernels"
_MASTER = re.compile(r"m_axi\b.*?\bbundle=(\w+)")


@functools.cache
def interface_of(kernel: str) -> Interface:
    """Return the interface of ``hw/kernels/<kernel>``, read once in a run of pytest."""
    return read_interface(HW_KERNELS / kernel / f"{kernel}.cpp", kernel)


def estimate_of(
    folder: Path, text: str, tool: str, *, clock: float = 10, part: str = "xc7z020clg400-1"
) -> Estimate:
    """Return the estimate of the function ``k`` of a source, at a clock period in ns."""
    source = folder / "k.cpp"
    source.write_text(text, encoding="utf-8")
    return estimate(source, "k", tool=tool, clock=clock, part=part)


def loop_of(found: Estimate, name: str) -> LoopEstimate:
    """Return the first loop of that name."""
    return next(one for one in found.loops if one.name == name)


def copy_engine_objects(folder: Path) -> None:
    """Put into a new build cache what every engine is linked to, and nothing else."""
    name = "engine_process.hpp"
    for sanitize in (False, True):
        entry = compiling._common(
            name, compiling._PROCESS, sanitize, [command.APART], (), make=True
        )
        assert entry is not None
        index = Path("index", f"{entry['name'].partition('-')[0]}.json")
        (folder / index).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(cache.cache_dir() / index, folder / index)
        shutil.copytree(entry["path"], folder / "entries" / entry["name"])


def write(path: Path, text: str) -> Path:
    """Write a file, with the folders that it needs, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_overlay(
    folder: Path,
    instances: Mapping[str, str],
    extra: str = "",
    kernels: Path = KERNELS,
    name: str = "design",
) -> Path:
    """Write an overlay of ``instances`` (name to kernel) and return its ``.bit``.

    ``extra`` is further text of the description: streams, interrupts, Xilinx IP.
    """
    root = folder / f"{name}_root"
    (root / "hw" / "overlays" / name).mkdir(parents=True)
    shutil.copytree(kernels, root / "hw" / "kernels")
    # Top-level keys come before the first table.
    head, _, tables = extra.partition("\n[")
    text = f'summary = "for a test"\nclock_mhz = 100\n{head}\n'
    for cu, kernel in instances.items():
        text += f'[instances.{cu}]\nkernel = "{kernel}"\n'
        masters = sorted(set(_MASTER.findall((kernels / kernel / f"{kernel}.cpp").read_text())))
        if masters:
            text += "memory = {" + ", ".join(f'{m} = "HP0"' for m in masters) + "}\n"
    text += f"\n[{tables}" if tables else ""
    (root / "hw" / "overlays" / name / "overlay.toml").write_text(text)
    out = folder / name
    build_overlay(name, root=root, out=out)
    found = sorted(out.rglob("*.bit"))
    assert len(found) == 1, found
    return found[0]


def overlay_of(
    folder: Path,
    instances: Mapping[str, str],
    kernels: Sequence[Path] = (KERNELS,),
    extra: str = "",
    **options: Any,
) -> Any:
    """Choose board csim and return a ``pynq.Overlay`` with these instances."""
    from pynq import Overlay

    import pynq_torch

    bit = write_overlay(folder, instances, extra, kernels[0])
    pynq_torch.use_board("csim", kernels=kernels, **options)
    return Overlay(str(bit))


def start(ip: Any) -> None:
    """Write AP_START."""
    ip.write(0x00, 1)


def wait_done(ip: Any, timeout_s: float = 20.0) -> int:
    """Poll AP_CTRL as programs do, but not for ever; return the last value read."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        value = int(ip.read(0x00))
        if value & 2:
            return value
    raise AssertionError(f"{ip} was not done after {timeout_s} s")


def eventually(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """Wait until ``condition()`` holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.002)


def stop(pid: int) -> None:
    """Hold a process by SIGSTOP, which has arrived only when each of its threads has seen it."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: _states(pid) == {"T"})


def _states(pid: int) -> set[str]:
    """Return the states of a process's threads; see proc(5)."""
    files = Path(f"/proc/{pid}/task").glob("*/stat")
    return {one.read_text().rpartition(")")[2].split()[0] for one in files}


@contextlib.contextmanager
def held(pid: int) -> Iterator[None]:
    """Hold a process while the block runs; it goes on whatever comes of that."""
    try:
        stop(pid)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
