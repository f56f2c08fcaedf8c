"""What runs on a PYNQ-Z2 without torch, under an emulated Cortex-A9: 32 bits, armhf's numpy 1.24.

The kernels and DMAs of board csim are cross-compiled. `make armv7-sysroot` makes what is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import write, write_overlay
from test_without_torch import DMA, VADD

from pynq_torch.paths import ROOT

ARMV7 = ROOT / "ci" / "armv7"
SYSROOT = Path(os.environ.get("ARMV7_SYSROOT", ROOT / ".venv-armv7"))
_EMULATORS = ("qemu-arm", "qemu-arm-static")
_WHY = (
    "no armhf sysroot; make armv7-sysroot"
    if not (SYSROOT / ".installed").exists()
    else "no qemu-arm; apt install qemu-user-static"
    if not any(map(shutil.which, _EMULATORS))
    else "no compiler; apt install g++-arm-linux-gnueabihf"
    if not shutil.which("arm-linux-gnueabihf-g++")
    else ""
)
pytestmark = [pytest.mark.skipif(bool(_WHY), reason=_WHY), pytest.mark.timeout(600)]

#: A plain char has no sign on Arm, a long 32 bits, and size_t no room for 4 GB.
KERNEL = """
void widen(const char* x, int* y, long long bias, int n) {
#pragma HLS INTERFACE m_axi port=x bundle=gmem
#pragma HLS INTERFACE m_axi port=y bundle=gmem
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=y
#pragma HLS INTERFACE s_axilite port=bias
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=return
widen:
    for (int i = 0; i < n; ++i) y[i] = x[i] + int(bias >> 32);
}
"""

BUILD = """
import sys
import pynq_torch
pynq_torch.use_board("csim", kernels=["kernels"])
for name in ("vadd", "stream", sys.argv[1]):
    pynq_torch.load(name)

from pathlib import Path
from pynq_torch import hls
own = Path("kernels/widen/widen.cpp")
own.with_name("short.cpp").write_text(own.read_text().replace("long long", "long"))
try:
    hls.build(hls.KernelSource("widen", own.with_name("short.cpp"), "widen"))
except pynq_torch.errors.KernelBuildError as error:
    assert "write long long" in str(error), error
else:
    raise AssertionError("a long was taken")
"""

OWN = """
import sys
import numpy as np
import pynq
import pynq_torch

assert sys.maxsize == 2**31 - 1
board = pynq_torch.use_board("csim", kernels=["kernels"])
widen = pynq_torch.load(sys.argv[1]).widen
x, y = pynq.allocate(8, np.int8), pynq.allocate(8, np.int32)
x[:] = np.arange(-4, 4)
widen.start(x=x, y=y, bias=-3 << 32, n=8).wait()
assert y.tolist() == list(range(-7, 1)), y
# a memory of the PL, for which the engine's address space has no room at that place; the engine
# that starts again after a fault knows it
board.memory.add_window("block RAM", 0x42000000, 8192)
for address in (0x42002000, 0x80000010, 0xFFFFFF00):
    try:
        widen.start(x=address, y=y, bias=0, n=8).wait()
    except pynq_torch.errors.KernelFault as error:
        assert f"0x{address:08x}" in str(error), error
    else:
        raise AssertionError(f"0x{address:08x} has memory")
np.frombuffer(board.memory.view(0x42001000, 8), np.int8)[:] = np.arange(8)
widen.start(x=0x42001000, y=y, bias=1 << 32, n=8).wait()
assert y.tolist() == list(range(1, 9)), y
"""

CHECKS = """
from pynq_torch.report import board_check

del board_check.CHECKS["overlays"]
pynq_torch.use_board("csim")
assert board_check.machine()["machine"].startswith("armv7l")
for outcome in board_check.check_board():
    print(outcome.name, outcome.verdict, outcome.said)
"""


def _run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=500, check=False, **options
    )  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("armv7")


@pytest.fixture(scope="module")
def environment(folder: Path) -> Iterator[dict[str, str]]:
    """Both Pythons find the same builds: by the compiler's path, and that of ap_int.h."""
    from pynq_torch.hls.toolchain import ap_types_dir

    (folder / "vendor").mkdir()
    (folder / "vendor" / "include").symlink_to(ap_types_dir())
    about = write(folder / "site" / "pynq_torch.dist-info" / "METADATA", "Name: pynq_torch\n")
    yield {
        **{k: v for k, v in os.environ.items() if not k.startswith("PYNQ_TORCH_BOARD")},
        "CXX": str(ARMV7 / "g++"),
        "XILINX_HLS": str(folder / "vendor"),
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(about.parent.parent))),
    }


def test_the_runtime(folder: Path, environment: dict[str, str]):
    write(folder / "kernels" / "widen" / "widen.cpp", KERNEL)
    bit = write_overlay(folder, {"widen": "widen"}, kernels=folder / "kernels")
    options = {"cwd": folder, "env": environment}
    _run([sys.executable, "-W", "ignore", "-c", BUILD, str(bit)], **options)
    program = "\n".join((OWN, VADD, DMA, CHECKS))
    done = _run([str(ARMV7 / "python"), "-W", "ignore", "-c", program, str(bit)], **options)
    verdicts = done.stdout.splitlines()[-7:]
    assert all(line.endswith(" pass ") for line in verdicts), done.stdout
    assert "recv" in done.stdout


EXTENSION = """
#include <Python.h>

struct Padded { char c; double d; };

static PyObject* sizes(PyObject* self, PyObject* number) {
    (void)self;
    return Py_BuildValue("iiid", (int)sizeof(long), (int)sizeof(void*), (int)sizeof(struct Padded),
                         PyFloat_AsDouble(number) / 3);
}
static PyMethodDef methods[] = {{"sizes", sizes, METH_O, "what C knows"}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "sizes", NULL, -1, methods};
PyMODINIT_FUNC PyInit_sizes(void) { return PyModule_Create(&module); }
"""

#: The Python is emulated and the compiler is not, as when PyTorch is built.
SETUP = """
import sys
from setuptools import Extension, setup
headers = [sys.prefix + "/include"]
setup(name="sizes", version="1", ext_modules=[Extension("sizes", ["s.c"], include_dirs=headers)])
"""


def test_a_c_extension_and_the_check_of_wheels(tmp_path: Path):
    write(tmp_path / "s.c", EXTENSION)
    write(tmp_path / "setup.py", SETUP)
    python = str(ARMV7 / "python")
    _run([python, "-W", "ignore", "setup.py", "-q", "bdist_wheel", "-d", "."], cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    _run([str(ARMV7 / "check_wheel.sh"), str(wheel)])
    (built,) = (tmp_path / "build").glob("lib*")
    done = _run([python, "-c", "import sizes; print(*sizes.sizes(1.0))"], cwd=built)
    assert done.stdout.split() == ["4", "4", "16", "0.3333333333333333"]

    # a wheel that is published for armv7l, and needs a newer processor
    site = SYSROOT / "usr/local/lib/python3.11/dist-packages"
    named = str(tmp_path / "grpcio-1.64.0-cp311-cp311-linux_armv7l")
    wheel = Path(shutil.make_archive(named, "zip", site, "grpc")).replace(f"{named}.whl")
    done = subprocess.run([str(ARMV7 / "check_wheel.sh"), str(wheel)], capture_output=True,
                          text=True, timeout=100, check=False)  # fmt: skip
    assert done.returncode == 1
    assert "has VFPv4 instructions" in done.stderr and "divides integers" in done.stderr


@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake; apt install cmake")
def test_the_toolchain_file(tmp_path: Path):
    write(tmp_path / "CMakeLists.txt", "cmake_minimum_required(VERSION 3.18)\nproject(size C)\n"
          "find_path(PYTHON Python.h PATH_SUFFIXES python3.11 REQUIRED)\n"
          "message(STATUS ${PYTHON})\nenable_testing()\nadd_executable(size size.c)\n"
          "add_test(NAME size COMMAND size)\n")  # fmt: skip
    write(tmp_path / "size.c", "int main(void) { return sizeof(void *) == 4 ? 0 : 1; }")
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={ARMV7 / 'toolchain.cmake'}"
    done = _run(["cmake", "-S", ".", "-B", "build", toolchain], cwd=tmp_path)
    assert str(SYSROOT.resolve() / "usr/include/python3.11") in done.stdout
    _run(["cmake", "--build", "build"], cwd=tmp_path)
    _run(["ctest", "--test-dir", "build"], cwd=tmp_path)


def test_a_build_of_pytorch_needs_its_version(tmp_path: Path):
    command = [str(ARMV7 / "build_pytorch.sh"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "expected 2." in done.stderr and "git checkout v" in done.stderr
