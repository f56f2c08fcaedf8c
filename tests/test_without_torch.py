"""Overlays, drivers, waits, diagnoses and buffers on a machine that has no torch, as a PYNQ-Z2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Refuses modules as a Python without them does.
REFUSE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
"""

VADD = """
import numpy as np
import pynq
import pynq_torch
from pynq_torch import buffers, diagnosis, kernels, overlay, waits

pynq_torch.use_board("csim")
vadd = pynq_torch.load("vadd").vadd
a, b, c = (pynq.allocate(100, np.float32) for _ in range(3))
a[:], b[:] = np.arange(100), 2
vadd.start(a=a, b=b, c=c, n=100).wait()
assert (c == np.arange(100) + 2).all()

# as on the board with pynq alone: the bounded wait for a run that registers started
c[:] = 0
for at, buffer in (("a_1", a), ("b_1", b), ("c_1", c)):
    vadd.write(getattr(vadd.register_map, at).address, buffer.device_address)
vadd.write(vadd.register_map.n.address, 100)
vadd.write(0, 1)
pynq_torch.wait(vadd, timeout_s=10)
assert (c == np.arange(100) + 2).all()
copied = buffers.to_buffer(np.arange(5, dtype=np.int8))
assert copied.tolist() == [0, 1, 2, 3, 4] and buffers.empty((2, 3), np.float32).shape == (2, 3)
"""

DMA = """
import numpy as np
import pynq
import pynq_torch
from pynq_torch.errors import TransferTimeout

pynq_torch.use_board("csim")
stream = pynq_torch.load("stream")
dma = next(getattr(stream, name) for name in stream.ip_dict if "dma" in name)
got = pynq.allocate(16, np.float32)
dma.recvchannel.transfer(got)
try:
    pynq_torch.wait(dma.recvchannel, timeout_s=0.05)
except TransferTimeout as error:
    found = error
print(found)
"""


def _python(program: str, *refused: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"REFUSED = {refused!r}\n{REFUSE}{program}"],
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if k != "PYNQ_TORCH_BOARD"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_kernel_runs_without_torch(tmp_path: Path):
    done = _python(VADD, "torch", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_transfer_that_hangs_is_diagnosed_without_torch(tmp_path: Path):
    done = _python(DMA, "torch", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "recv" in done.stdout and len(done.stdout.splitlines()) > 2, done.stdout


@pytest.mark.parametrize(
    "room",
    ["overlay", "kernels", "waits", "diagnosis", "buffers", "board", "hls", "models", "plot"],
)
def test_rooms_are_imported_without_torch_and_without_extras(room: str, tmp_path: Path):
    extras = ("torch", "clang", "hls4ml", "jinja2", "rich", "matplotlib", "ipywidgets", "sklearn")
    done = _python(f"import pynq_torch.{room}", *extras, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("module", "program", "extra"),
    [
        ("clang", "from pynq_torch import hls; hls.read_interface('x.cpp', 'x')", "virtual"),
        ("jinja2", "from pynq_torch.cli import main; sys.exit(main(['report']))", "virtual"),
        ("papermill", "from pynq_torch.cli import main; sys.exit(main(['report']))", "lab"),
        ("matplotlib", "from pynq_torch.plot.charts import axes; axes()", "lab"),
        ("ipywidgets", "from pynq_torch.widgets import explore as e; e(print, live=True, n=(1, 2))",
         "lab"),
        ("sklearn", "from pynq_torch.lessons import datasets; datasets.digits()", "lab"),
        ("wavedrom", "from pynq_torch.plot.wave_picture import WavePicture as W;"
         "W.wavedrom = None; W.svg.fget(None)", "rtl"),
        ("pywellen", "from pynq_torch.board.rtl.observe import wave_file;"
         "wave_file._open(None)", "rtl"),
    ],
)  # fmt: skip
def test_a_feature_says_which_extra_it_needs(module: str, program: str, extra: str, tmp_path: Path):
    done = _python(program, module, cwd=tmp_path)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert f"pip install 'pynq_torch[{extra}]'" in last, done.stderr
    assert "needs the package" in last


def test_doctor_works_without_rich_and_names_it(tmp_path: Path):
    program = """
import importlib.util, importlib.metadata
from pynq_torch.cli import doctor, main
print(doctor.plain(doctor.examine()))
assert "rich" not in sys.modules
"""
    done = _python(program, "rich", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "The board csim" in done.stdout and "stale overlay cache" in done.stdout
