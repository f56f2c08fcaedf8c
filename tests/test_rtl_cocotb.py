"""The cocotb benches of the RTL, under pytest: built once, run with random stalls."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cocotb", reason="cocotb is not installed: make env")

#: Panels of this array are small, so that small products go beyond them.
SMALL_GEMM = {
    "ROWS": 4,
    "COLS": 8,
    "DSP_ROWS": 3,  # the fourth row multiplies in LUTs
    "DEPTH": 32,
    "BLOCK_ROWS": 16,
    "BLOCK_COLS": 16,
    "QUEUE": 64,
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("kernel", "parameters", "tests"), [("scale_stream", {}, 3), ("gemm", SMALL_GEMM, 4)]
)
def test_the_bench_passes(
    kernel: str, parameters: dict[str, int], tests: int, tmp_path: Path
) -> None:
    from rtl_cocotb import run  # tests/rtl_cocotb.py

    log = tmp_path / "run.log"
    try:
        passed = run(kernel, tmp_path, parameters=parameters, log=log)
    except (AssertionError, RuntimeError) as error:
        said = log.read_text() if log.is_file() else (tmp_path / "build.log").read_text()
        pytest.fail(f"{error}\n{said[-4000:]}")
    assert passed == tests
