"""Estimates of runs, kept with the builds: clang is asked once for a source and its arguments."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pynq_torch.errors import KernelBuildError, KernelError

from .. import cache, depends, toolchain
from ..build import own_sources
from ..directives import files_beside
from ..kernels import KernelSource
from . import compiler
from .result import Estimate, LoopEstimate
from .run import estimate

__all__ = ["estimate_of_run"]

_RUNS = "runs.json"
#: Runs of one source and clock that are kept; the oldest go first.
_KEPT = 64
#: A failure that came later than this may be the machine's, not the source's: it is not kept.
_QUICK_S = 10.0


def estimate_of_run(
    kernel: KernelSource,
    arguments: Mapping[str, int],
    *,
    clock: float = 10.0,
    tool: str | None = None,
) -> Estimate:
    """Return `estimate(..., exact=True)` of a run, from the build cache where it is there.

    Parameters
    ----------
    kernel : KernelSource
        Its source; an entry of the cache is good while no file that it includes has changed.
    arguments : mapping of str to int
        Values of scalar arguments; names that the top function does not have are left out.
    clock : float
        Period in ns.
    tool : {"vitis", "vivado"}, optional
        See `estimate`.

    Raises
    ------
    KernelError
        There is no estimate; the message says why. The same failure is kept too.
    """
    missing = compiler.tools()
    if missing:
        raise KernelBuildError(missing, kernel.top)
    extra = files_beside(kernel.source)
    key = cache.digest("estimate", kernel, clock, tool, _version(), compiler.release())
    run = json.dumps(sorted(arguments.items()))
    entry = cache.find_or_make(key, extra, lambda: _entry(key, kernel, extra))
    path = Path(entry["path"]) / _RUNS
    found = _read(path).get(run)
    if found is None:
        with cache.locked(key):
            found = _made(kernel, arguments, clock, tool, path, run)
    if "error" in found:
        raise KernelBuildError(found["error"], kernel.top)
    return _from_plain(found)


def _made(
    kernel: KernelSource, arguments: Mapping[str, int], clock: float, tool: str | None,
    path: Path, run: str,
) -> dict[str, Any]:  # fmt: skip
    """Estimate a run and keep what came of it, where no other process has done so meanwhile."""
    runs = _read(path)
    found: dict[str, Any] = runs.get(run, {})
    if found:
        return found
    begin = time.perf_counter()
    try:
        found = _plain(
            estimate(
                kernel.source, kernel.top, clock=clock, tool=tool, arguments=arguments, exact=True,
                include_dirs=kernel.include_dirs, defines=kernel.defines,
            )
        )  # fmt: skip
    except KernelError as error:
        if time.perf_counter() - begin > _QUICK_S:
            raise
        found = {"error": str(error)}
    runs[run] = found
    kept = dict(list(runs.items())[-_KEPT:])
    cache.write_text(path.with_suffix(".new"), json.dumps(kept))
    path.with_suffix(".new").replace(path)
    return found


def _entry(key: str, kernel: KernelSource, extra: list[Path]) -> cache.Entry:
    """Publish an entry without runs, good while the files that the kernel includes stay."""
    files = compiler.included(kernel.source, kernel.include_dirs, kernel.defines)
    folders = [*kernel.include_dirs, compiler.HEADERS, *toolchain.include_dirs()]
    with cache.scratch() as folder:
        return cache.store(key, folder, files, extra, {}, depends.absent(files, folders))


def _read(path: Path) -> dict[str, Any]:
    """Return the runs that are kept; none where the file is missing or cut off."""
    try:
        runs = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return runs if isinstance(runs, dict) else {}


@functools.cache
def _version() -> str:
    """Return a digest of what estimates: a new version estimates again."""
    own = Path(__file__).parent
    paths = sorted([*own.glob("*.py"), *(p for p in (own / "include").rglob("*") if p.is_file())])
    parts = (part for path in paths for part in (path.name, path.read_bytes()))
    return cache.digest(own_sources(), *parts)


def _plain(found: Estimate) -> dict[str, Any]:
    data = vars(found) | {"loops": [vars(loop) for loop in found.loops]}
    plain: dict[str, Any] = json.loads(json.dumps(data))
    return plain


def _from_plain(data: dict[str, Any]) -> Estimate:
    loops = tuple(LoopEstimate(**_tuples(loop)) for loop in data["loops"])
    return Estimate(**_tuples(data) | {"loops": loops})


def _tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _tuple(value) for name, value in data.items()}


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
