"""Charts as a notebook shows them: every figure, not only the first."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
draw = "plot.times([timing.Duration(1.0, 'model', 'x', clock_hz=1e8)]);"
for cell in ("from pynq_torch import plot, timing", draw, draw):
    print("cell")
    shell.run_cell(cell).raise_error()
"""


def test_each_cell_shows_its_chart() -> None:
    environment = {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment,
        check=True,
    )
    cells = done.stdout.split("cell\n")[1:]
    assert ["<Figure size" in cell for cell in cells] == [False, True, True], done.stdout
