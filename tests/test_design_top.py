"""The top that open tools synthesise: simulated with a PS7 of our own, and mapped by yosys."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from rtl_bench import KERNELS, Bench, Model, build

from pynq_torch.hls.design.build import make_design
from pynq_torch.hls.design.top import PS7_PORTS, read_ports, write_top

PAIR = """
interrupts = ["vadd_0.interrupt", "vadd_1.interrupt"]
[instances.vadd_0]
kernel = "vadd"
memory = { gmem0 = "HP0", gmem1 = "HP1", gmem2 = "HP2" }
[instances.vadd_1]
kernel = "vadd"
memory = { gmem0 = "HP0", gmem1 = "HP1", gmem2 = "HP2" }
[instances.axi_intc_0]
ip = "axi_intc"
"""
#: The PS7 as a bench drives it: outputs that are written from C++.
_PS7 = ",\n".join(
    f"  {way} {'logic' if way == 'output' else 'wire logic'} [{bits - 1}:0] {name}"
    " /*verilator public_flat_rw*/"
    for name, (way, bits) in PS7_PORTS.items()
)
PORTS = {"vadd": read_ports((KERNELS / "vadd" / "rtl" / "vadd.sv").read_text())}


def primitives(folder: Path) -> None:
    """Write what simulates the primitives of the part."""
    (folder / "PS7.sv").write_text(f"module PS7 (\n{_PS7}\n); endmodule\n")
    (folder / "BUFG.sv").write_text(
        "module BUFG (input wire I, output wire O);\n  assign O = I;\nendmodule\n"
    )


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two units behind the same three memory ports."""
    root = tmp_path_factory.mktemp("root")
    (root / "hw" / "overlays" / "pair").mkdir(parents=True)
    (root / "hw" / "overlays" / "pair" / "overlay.toml").write_text(PAIR)
    shutil.copytree(KERNELS / "vadd", root / "hw" / "kernels" / "vadd")
    return root


def simulated(name: str, root: Path | None, units: int, folder: Path) -> Path:
    """Return the bench of an overlay of `units` times vadd."""
    top = folder / f"{name}_top.sv"
    top.write_text(write_top(make_design(name, root)[0], PORTS))
    shutil.copy(KERNELS / "vadd" / "rtl" / "vadd.sv", folder)
    primitives(folder)
    model = Model(f"{name}_top", path=top, options=("-Wno-PINMISSING",))
    return build(Bench("zynq", (model,), (f"TOP={name}_top", f"UNITS={units}")))


def run(bench: Path, runs: int) -> str:
    """Return what a bench prints; it finds nothing."""
    answer = subprocess.run(
        [bench, str(runs)], capture_output=True, text=True, check=False, timeout=250
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.mark.parametrize(("name", "units"), [("vadd", 1), ("pair", 2)])
def test_units_start_over_gp0_and_read_memory_over_the_hp_ports(
    name: str, units: int, pair: Path, tmp_path: Path
) -> None:
    """Bit for bit, with random waits, answers out of order, and errors."""
    said = run(simulated(name, pair if units > 1 else None, units, tmp_path), 60)
    assert said.endswith("PASS\n")
    assert int(said.split()[2]) > 5000
