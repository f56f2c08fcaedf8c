"""Mutation testing: plant small faults in a module, one at a time, and see which the tests notice.

``make mutate MODULE=board/bus SEED=1 SAMPLE=40``. The faults are in a throw-away copy of the tree,
the user's files are never touched. A first run without a fault records which test runs which line;
a mutant then meets the tests that run its line, or all of its file, those first that have noticed
others. The tests of a module are listed in ``mutate_table.py``, mutants that change nothing in
``mutate_equivalents.py``, the faults in ``mutations.py``.

The published tools do less here: they take Python only or change the user's files, and none draws
a sample that is the same each time.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from mutate_equivalents import EQUIVALENT
from mutate_equivalents_hw import KERNELS
from mutate_table import AREAS
from mutations import Mutation, mutations_of

ROOT = Path(__file__).resolve().parents[1]
_TRACE = "PYNQ_TORCH_MUTATE_TRACE"
_SOURCES = (".py", ".hpp", ".cpp", ".h")
_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", "__pycache__", ".*_cache", ".hypothesis", "reports", "build", "dist"
)


Equivalent = Sequence[tuple[str, str, str, str]]


class Misuse(Exception):
    """What the caller can mend."""


# ---- what to mutate, and whose tests it is -------------------------------------------------------


def files_of(module: str, root: Path) -> list[Path]:
    """Return the source files that a module's name means, relative to `root`."""
    for base in (Path("pynq_torch"), Path()):
        name = base / module
        if (root / name.with_name(name.name + ".py")).is_file():
            return [name.with_name(name.name + ".py")]
        if (root / name).is_file() and name.suffix in _SOURCES:
            return [name]
        if (root / name).is_dir():
            found = (p.relative_to(root) for p in (root / name).rglob("*") if p.suffix in _SOURCES)
            return sorted(p for p in found if "tb" not in (p.parent.name, *p.stem.split("_")))
    end = module.strip("/")
    ends = sorted((root / "pynq_torch").rglob(f"{end}.py")) if end else []
    if len(ends) == 1:  # the end of a path: ``transfers``
        return [ends[0].relative_to(root)]
    raise Misuse(f"MODULE={module}: neither a file nor a folder of pynq_torch or of the project")


def tests_of(path: Path, root: Path, areas: dict[str, str]) -> list[str]:
    """Return the arguments of pytest that run the tests of a source file."""
    if path.parts[0] == "hw":
        kernels = sorted(folder.name for folder in (root / "hw/kernels").iterdir())
        reading = [k for k in kernels if path in _included(Path("hw/kernels", k, f"{k}.cpp"), root)]
        return [f"tests/test_hw_kernels.py::test_testbench[{kernel}]" for kernel in reading]
    name = path.relative_to("pynq_torch").with_suffix("").as_posix()
    ends = [end for end in areas if fnmatch(f"/{name}", f"*/{end}")]
    if ends:
        names = areas[max(ends, key=len)].split()
    else:
        names = [name.replace("/", "_"), path.stem]
    found = [f"tests/test_{n}.py" for n in dict.fromkeys(names)]
    return [file for file in found if (root / file).is_file()]


def _included(source: Path, root: Path) -> set[Path]:
    """Return a C++ file of the project and all of the project's that it includes."""
    found: set[Path] = set()
    todo = [source]
    while todo:
        path = Path(os.path.normpath(todo.pop()))
        if path not in found and (root / path).is_file():
            found.add(path)
            named = re.findall(r'^#include "(.+)"', (root / path).read_text("utf-8"), re.MULTILINE)
            todo += [path.parent / name for name in named]
    return found


# ---- the run without a fault: a plugin of pytest that records ------------------------------------


def pytest_configure() -> None:
    """Let hypothesis draw the same values for every mutant, however busy the PC is."""
    hypothesis.settings.register_profile(
        "mutate", derandomize=True, database=None, deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    hypothesis.settings.load_profile("mutate")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Record the lines of the mutated files that a test runs, its fixtures included."""
    if _TRACE not in os.environ:
        return (yield)
    request = json.loads(os.environ[_TRACE])
    files = set(request["files"])
    seen: dict[str, set[int]] = {}

    def in_frame(frame: Any, event: str, _argument: Any) -> Any:
        seen.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return in_frame

    def in_call(frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        # The top of a module runs in whichever test imports it first, and matters to all.
        own = code.co_filename in files and code.co_flags & inspect.CO_OPTIMIZED
        return in_frame(frame, event, argument) if own else None

    begin = time.perf_counter()
    threading.settrace(in_call)
    sys.settrace(in_call)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        record = {
            "test": item.nodeid,
            "seconds": time.perf_counter() - begin,
            "lines": {file: sorted(lines) for file, lines in seen.items()},
        }
        with open(request["out"], "a", encoding="utf-8") as out:
            out.write(json.dumps(record) + "\n")


# ---- copies of the tree --------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    killed_by: str  # a test, "a hang" or another end of pytest; "" if it survived
    valid: bool
    ntests: int
    output: str


class Copy:
    """A throw-away copy of the tree in which tests run, with a kernel cache of its own."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder, self.tree, self._cache = folder, folder / "tree", folder / "cache"
        shutil.copytree(root, self.tree, symlinks=True, ignore=_NOT_COPIED)
        self._cache.mkdir()
        self._written = int(time.time())
        self._process: subprocess.Popen[bytes] | None = None

    def pytest(
        self, tests: Sequence[str], limit_s: float, more: dict[str, str], cache: Path
    ) -> tuple[int | None, str]:
        """Run tests; return pytest's exit code, None after a hang, and what it printed."""
        # The second folder is where pytest finds this file as its plugin.
        path = os.pathsep.join((str(self.tree), str(Path(__file__).parent)))
        environ = {**os.environ, "PYTHONPATH": path, "PYNQ_TORCH_CACHE": str(cache), **more}
        # Most of the time of a mutant would be the import of plugins that these tests do not use.
        environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        command = [
            sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=short", "--no-header",
            "-p", "no:cacheprovider", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin",
            "-p", "mutate", *tests,
        ]  # fmt: skip
        with tempfile.TemporaryFile() as output:
            process = self._process = subprocess.Popen(
                command, cwd=self.tree, env=environ, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                code: int | None = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                self.stop()
            output.seek(0)
            return code, output.read().decode(errors="replace")

    def stop(self) -> None:
        """End pytest and what it started."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def record(self, tests: Sequence[str], files: Sequence[Path]) -> list[dict[str, Any]]:
        """Run the tests without a fault; return each with its seconds and lines."""
        out = self.folder / "record.jsonl"
        traced = {"files": [str(self.tree / file) for file in files], "out": str(out)}
        code, text = self.pytest(tests, 3600.0, {_TRACE: json.dumps(traced)}, self._cache)
        if code != 0:
            raise Misuse(f"the tests fail without a fault (exit code {code}):\n{text[-3000:]}")
        records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        for record in records:
            lines = record["lines"].items()
            record["lines"] = {Path(f).relative_to(self.tree): set(at) for f, at in lines}
        return records

    def judge(self, mutation: Mutation, tests: Sequence[str], limit_s: float) -> Outcome:
        """Run the tests with the fault in place."""
        file = self.tree / mutation.path
        source = file.read_bytes()
        # What a mutant builds must not serve the next one; linking copies no data.
        cache = self.folder / "mutant-cache"
        shutil.copytree(self._cache, cache, copy_function=os.link)
        try:
            self._write(file, mutation.apply(source))
            code, text = self.pytest(tests, limit_s, {}, cache)
        finally:
            self._write(file, source)
            shutil.rmtree(cache)
        if re.search(rf"{re.escape(file.name)}:\d+(:\d+)?: (fatal )?error:", text):
            return Outcome("", False, len(tests), text)
        if code == 0:
            return Outcome("", True, len(tests), text)
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", text, re.MULTILINE)
        by = "a hang" if code is None else failed[1] if failed else f"pytest's end with {code}"
        return Outcome(by, True, len(tests), text)

    def _write(self, file: Path, source: bytes) -> None:
        file.write_bytes(source)
        # Python knows a changed file by size and whole seconds.
        self._written += 1
        os.utime(file, (self._written, self._written))


# ---- the session ---------------------------------------------------------------------------------


def choose(
    records: list[dict[str, Any]], mutation: Mutation, killers: Sequence[str], area: Sequence[str]
) -> list[str]:
    """Return the tests for a mutation: likely killers first, then fast files.

    The tests of a file stay in its order and together: what they share is made once, and is as they
    left it in the run without a fault. A line that no test was seen to run (C++, a process of its
    own, a module's top) meets all that answer for its file: `area`.
    """
    reached = [r for r in records if r["lines"].get(mutation.path, set()) & set(mutation.lines)]
    rank = {test: i for i, test in enumerate(killers)}
    chosen = reached or [r for r in records if r["test"].startswith(tuple(area))] or records
    names = [r["test"] for r in chosen]
    seconds: dict[str, float] = {}
    for r in chosen:
        file = r["test"].partition("::")[0]
        seconds[file] = seconds.get(file, 0.0) + r["seconds"]
    order = {name: (seconds[name.partition("::")[0]], i) for i, name in enumerate(names)}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), order[name]))


def sample(
    module: str, files: Sequence[Path], seed: int, number: int, root: Path, equivalent: Equivalent
) -> tuple[list[Mutation], int]:
    """Return the mutations to try, in order of the text, and how many there are in all."""
    known = {(entry[0], *entry[1:3]) for entry in equivalent}
    every = []
    met = set()
    for file in files:
        for mutation in mutations_of(file, root):
            named = (_name(file), *mutation.key)
            met.add(named)
            if named not in known:
                every.append(mutation)
    names = {_name(file) for file in files}
    for entry in sorted(known - met):
        if entry[0] in names:
            print(f"mutate_equivalents.py lists a mutation that is no longer there: {entry}")
    chosen = every
    if 0 < number < len(every):
        chosen = random.Random(f"{module} {seed}").sample(every, number)
    return sorted(chosen, key=lambda m: (m.path, m.start, m.end, m.new)), len(every)


def _name(path: Path) -> str:
    inside = path.relative_to("pynq_torch") if path.parts[0] == "pynq_torch" else path
    return (inside.with_suffix("") if inside.suffix == ".py" else inside).as_posix()


def run(
    arguments: argparse.Namespace, root: Path, areas: dict[str, str], equivalent: Equivalent
) -> int:
    """Try the sample with the tests of the files it meets; print what survived, and the share."""
    files = files_of(arguments.module, root)
    given = arguments.tests.split()
    chosen, total = sample(
        arguments.module, files, arguments.seed, arguments.sample, root, equivalent
    )
    if not chosen:
        raise Misuse(f"MODULE={arguments.module}: there is nothing in it to mutate")
    area = {f: given or tests_of(f, root, areas) for f in dict.fromkeys(m.path for m in chosen)}
    tests = list(dict.fromkeys(test for found in area.values() for test in found))
    if not tests:
        raise Misuse(f"MODULE={arguments.module}: no test file carries its name; give TESTS=")
    print(f"{arguments.module}: {len(chosen)} of {total} mutations, seed {arguments.seed}; tests:")
    print("  " + " ".join(tests), flush=True)
    outcomes: dict[Mutation, Outcome] = {}
    killers: list[str] = []
    with tempfile.TemporaryDirectory(prefix="pynq_torch_mutate_") as name:
        first = Copy(root, Path(name) / "0")
        records = first.record(tests, files)
        every = [first, *(Copy(root, Path(name) / str(i)) for i in range(1, arguments.jobs))]
        copies: queue.Queue[Copy] = queue.Queue()
        for copy in every:
            copies.put(copy)

        def judge(mutation: Mutation) -> None:
            copy = copies.get()
            try:
                mine = choose(records, mutation, killers, area[mutation.path])
                needed_s = sum(r["seconds"] for r in records if r["test"] in mine)
                outcome = copy.judge(mutation, mine, arguments.startup + 4 * needed_s)
            finally:
                copies.put(copy)
            outcomes[mutation] = outcome
            if outcome.killed_by in mine:
                killers[:] = [outcome.killed_by, *(k for k in killers if k != outcome.killed_by)]
            _show(mutation, outcome, arguments.verbose)

        with ThreadPoolExecutor(arguments.jobs) as pool:
            try:
                for _ in pool.map(judge, chosen):
                    pass
            except BaseException:  # Ctrl-C included
                pool.shutdown(wait=False, cancel_futures=True)
                for copy in every:
                    copy.stop()
                raise
    valid = [o for o in outcomes.values() if o.valid]
    killed = sum(bool(o.killed_by) for o in valid)
    share = 100 * killed / len(valid) if valid else 100.0
    print(f"{arguments.module}: {killed} of {len(valid)} mutants killed: {share:.0f} %", end="")
    print(f" (at least {arguments.threshold:g} % expected)")
    return 0 if share >= arguments.threshold else 1


def _show(mutation: Mutation, outcome: Outcome, verbose: bool) -> None:
    if outcome.killed_by and not verbose:
        return
    what = f"killed by {outcome.killed_by}" if outcome.killed_by else "survived"
    if not outcome.valid:
        what = "does not compile: not counted"
    elif not outcome.killed_by:
        what += f" {outcome.ntests} tests"
    print(f"{mutation.path}:{mutation.line}: {what}")
    print(f"  - {mutation.was}\n  + {mutation.changed}", flush=True)


def main(
    argv: Sequence[str] | None = None,
    *,
    root: Path = ROOT,
    areas: dict[str, str] = AREAS,
    equivalent: Equivalent = (*EQUIVALENT, *KERNELS),
) -> int:
    """Run the tool; return 1 under the threshold, 2 where it cannot run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("module", help="a file or folder of pynq_torch or of hw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=40, help="how many; 0: all")
    parser.add_argument("--threshold", type=float, default=90.0, help="percent")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tests", default="", help="pytest's arguments instead of the table's")
    parser.add_argument("--startup", type=float, default=60.0, help="seconds granted besides")
    parser.add_argument("--verbose", action="store_true", help="show the killed ones too")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing is left behind
    try:
        return run(arguments, root, areas, equivalent)
    except Misuse as problem:
        print(problem, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
