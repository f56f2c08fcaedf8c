"""Testbenches as co-simulation runs them: what is behind every pointer they hand to the top."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from helpers import interface_of
from test_hw_kernels import KERNELS, run_testbench

from pynq_torch.hls import toolchain
from pynq_torch.hls.interface import Argument, Interface
from pynq_torch.paths import ROOT

MASTERS = ("m_axi", "burst_maxi")
WITH_MASTERS = [
    name for name in KERNELS if any(a.kind in MASTERS for a in interface_of(name).arguments)
]


def wrapper_of(interface: Interface, symbol: str) -> str:
    """Return C++ that stands between the testbench and the kernel."""
    types = ", ".join(argument.ctype for argument in interface.arguments)
    named = ", ".join(f"{a.ctype} {a.name}_" for a in interface.arguments)
    ports = "".join(port_of(argument) for argument in interface.arguments)
    handed = ", ".join(f"{a.name}.copy()" if a.kind in MASTERS else f"{a.name}_"
                       for a in interface.arguments)  # fmt: skip
    return f"""
#include "{ROOT}/tests/cosim.hpp"
#include "{interface.source.with_suffix(".hpp")}"
void kernel({types}) asm("__real_{symbol}");
void checked({types}) asm("__wrap_{symbol}");
void checked({named}) {{
    cosim_check::running = "{interface.top}";
    signal(SIGSEGV, cosim_check::on_fault);
{ports}    kernel({handed});
}}
"""


def port_of(argument: Argument) -> str:
    """Return the line that makes the memory of an argument."""
    if argument.kind not in MASTERS:
        return ""
    given, written = f"{argument.name}_", str(not argument.ctype.startswith("const ")).lower()
    if argument.kind == "burst_maxi":  # its base pointer is its first member
        element = re.fullmatch(r"hls::burst_maxi<(.*)>", argument.ctype)
        assert element is not None
        given = f"*reinterpret_cast<{element[1]}**>(&{given})"
    return (
        f'    cosim_check::Port {argument.name}("{argument.name}", {given}, {argument.length}, '
        f"{written});\n"
    )


def cosimulate(
    interface: Interface, objects: Path, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a testbench that is compiled in `objects`; the kernel gets copies as co-simulation's."""
    top = interface.top
    bench = objects / f"{top}_tb.o"
    undefined = subprocess.run(["nm", "-u", bench], capture_output=True, text=True, check=True)
    symbol = re.search(rf"\bU (_Z{len(top)}{top}\w*)", undefined.stdout)
    assert symbol is not None, f"{bench} does not call {top}"
    (folder / "wrapper.cpp").write_text(wrapper_of(interface, symbol[1]))
    command = [
        "g++", "-std=c++17", "-w", *(f"-isystem{d}" for d in toolchain.include_dirs()),
        f"-Wl,--wrap={symbol[1]}", folder / "wrapper.cpp", objects / f"{top}.o", bench,
        "-o", folder / "cosim",
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=120)
    return subprocess.run(
        [folder / "cosim"], capture_output=True, text=True, timeout=250, check=False
    )


@pytest.mark.parametrize("kernel", WITH_MASTERS)
def test_testbench_has_what_cosimulation_reads(kernel: str, tmp_path: Path) -> None:
    # Co-simulation reads behind the end of a vector, which the sanitizer would not let it.
    objects = run_testbench(kernel, tmp_path, "SANITIZE=")
    done = cosimulate(interface_of(kernel), objects, tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout[-2000:]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("vadd(a.data()", "vadd(nullptr", "a: a null pointer"),
        ("capacity = COSIM_DEPTH + 1", "capacity = 9", "a: a buffer shorter than depth="),
        ("vadd(a.data(), b.data()", "float d[9]; vadd(a.data(), d", "b: a pointer to no buffer"),
        ("COSIM_DEPTH};", "COSIM_DEPTH + 1};", "vadd: an access outside the elements"),
    ],
)  # fmt: skip
def test_a_testbench_that_cosimulation_cannot_run(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    folder = ROOT / "hw/kernels/vadd"
    bench = (folder / "vadd_tb.cpp").read_text("utf-8")
    assert old in bench
    (tmp_path / "vadd_tb.cpp").write_text(bench.replace(old, new))
    for file in (folder / "vadd.cpp", tmp_path / "vadd_tb.cpp"):
        command = ["g++", "-std=c++17", "-w", f"-I{folder}", "-c", file, "-o"]
        subprocess.run([*command, tmp_path / f"{file.stem}.o"], check=True, timeout=60)
    done = cosimulate(interface_of("vadd"), tmp_path, tmp_path)
    assert done.returncode == 3
    assert f"co-simulation of {said}" in done.stderr
