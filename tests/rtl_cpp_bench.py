"""The benches of the RTL board's parts, compiled once for all tests that run them."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

ENGINES = Path(__file__).parents[1] / "pynq_torch" / "board" / "engines" / "rtl"
SOURCES = Path(__file__).parent / "rtl_cpp"


def build(folder: Path, bench: str = "memory_bench") -> Path:
    """Compile ``rtl_cpp/<bench>.cpp`` into ``folder`` unless it is there; return the program."""
    headers = [*ENGINES.glob("*.hpp"), *ENGINES.parent.glob("*.hpp")]
    parts = sorted([*headers, *SOURCES.glob("*.?pp")])
    digest = hashlib.sha256(b"".join(p.read_bytes() for p in parts)).hexdigest()[:16]
    program = folder / f"{bench}_{digest}"
    if program.exists():
        return program
    fresh = folder / f"{program.name}.{os.getpid()}"
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror"]
    command += ["-pthread", "-rdynamic", f"-I{ENGINES}", str(SOURCES / f"{bench}.cpp")]
    command += ["-o", str(fresh), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    os.replace(fresh, program)
    return program


def run(program: Path, *arguments: object) -> str:
    """Run the bench and return what it printed; its error is that of the test."""
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(command[1:])}: {done.stderr.strip()}"
    return done.stdout


def values(program: Path, *arguments: object) -> dict[str, float]:
    """Run the bench and return its lines of a name and a number."""
    pairs: list[Sequence[str]] = [line.split() for line in run(program, *arguments).splitlines()]
    return {name: float(number) for name, number in pairs}
