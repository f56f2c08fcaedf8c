"""How long the longest path of a block of RTL takes, as far as yosys knows: a lower bound.

yosys maps the block to cells of the 7 series and adds up their delays (``sta``), without wires and
without the flip-flops' own. What place and route makes of it is longer, often twice as long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pynq_torch.errors import RtlError
from pynq_torch.hls import cache

from . import yosys
from .rtl_resources import named_in

__all__ = ["longest_path_ns"]

_READ = "read_slang -j 1 --ignore-assertions"
_MAP = "synth_xilinx -flatten -abc9 -family xc7 -noiopad -noclkbuf"
#: Mapping drops the delays of carries; here they are again.
_DELAYS = "read_verilog -overwrite -lib -specify +/xilinx/cells_sim.v"
_TIMEOUT_S = 1200.0


def longest_path_ns(
    source: Path, library: Mapping[str, Path], parameters: Mapping[str, int] | None = None
) -> float:
    """Return the delay of the longest path of a module, in ns.

    Parameters
    ----------
    source : Path
        The module's file, of its name.
    library : mapping of str to Path
        Files of the modules that it may need, by their names.
    parameters : mapping of str to int, optional
        Of the module; what is not named keeps its default.

    Raises
    ------
    RtlError
        yosys is not installed, cannot read the RTL, or took too long.
    """
    yosys.version("The delays of RTL")
    top = source.stem
    files = named_in([source], dict(library))
    given = " ".join(f"-G {name}={value}" for name, value in (parameters or {}).items())
    names = " ".join(path.name for path in files)
    read, mapped = f"{_READ} --top {top} {given} {names}", f"{_MAP} -top {top}"
    script = [read, mapped, _DELAYS, "tee -q -o sta.txt sta"]  # after abc9 nothing is printed
    with cache.scratch() as folder:
        done = yosys.run(script, files, folder, _TIMEOUT_S, top)
        result = folder / "sta.txt"
        text = result.read_text(encoding="utf-8") if result.is_file() else ""
    found = re.findall(rf"Latest arrival time in '{top}' is (\d+)", text)
    if done.returncode or not found:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise RtlError(f"{top}: yosys cannot time it:\n" + "\n".join(lines[-12:]), top)
    return int(found[-1]) / 1000
