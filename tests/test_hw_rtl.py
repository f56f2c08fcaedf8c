"""The RTL that ships: every file against Verilator's lint, every module in a bench with stalls."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from rtl_bench import KERNELS, SHARED, Bench, Model, build, lint

from pynq_torch.hls import toolchain

FILES = sorted([*SHARED.glob("*.sv"), *KERNELS.glob("*/rtl/*.sv")])
PROOFS = sorted([*SHARED.glob("proofs/*.sv"), *KERNELS.glob("*/rtl/proofs/*.sv")])
_CONTROL = (("ADDR_WIDTH", "6"), ("WORDS", "5"), ("INPUTS", "5'b01011"), ("OUTPUTS", "5'b10000"))
_TAG = (("TAG_WIDTH", "9"),)
_BIT = "1'b"
# An array and panels small enough that everything wraps around often.
_SMALL = {"ROWS": 4, "COLS": 8, "DSP_ROWS": 3, "DEPTH": 32, "BLOCK_ROWS": 16, "BLOCK_COLS": 16}
_GEMM = (*((name, str(value)) for name, value in _SMALL.items()), ("QUEUE", "32"))


def _axi(width: int, realign: int = 1, bytes_width: int = 32) -> Bench:
    """Return the bench of a port; `bytes_width` is how many bits the length of a range has."""
    given = (
        ("DATA_WIDTH", str(width)),
        ("REALIGN", f"1'b{realign}"),
        ("BYTES_WIDTH", str(bytes_width)),
    )
    defines = tuple(f"{name}={value.removeprefix(_BIT)}" for name, value in given)
    return Bench("axi", (Model("axi_read", given), Model("axi_write", given)), defines)


BENCHES = {
    "vadd": Bench("vadd", (Model("vadd"),)),
    "scale_stream": Bench("scale_stream", (Model("scale_stream"),)),
    "f32": Bench("f32", (Model("f32_add", _TAG), Model("f32_mul", _TAG))),
    "axil_control": Bench("axil_control", (Model("axil_control", _CONTROL),)),
    "queues": Bench("queues", (Model("fifo", (("DEPTH", "4"),)), Model("skid"))),
    "axi_32": _axi(32),
    "axi_128": _axi(128),
    "axi_64_short": _axi(64, bytes_width=6),
    "gemm_lane": Bench(
        "gemm_lane",
        (Model("gemm_lane", path=KERNELS / "gemm" / "rtl" / "gemm_lane.sv"),),
        includes=(KERNELS / "gemm", toolchain.include_dirs()[0]),
    ),
    "gemm": Bench(
        "gemm",
        (Model("gemm", _GEMM),),
        ("SMALL",),
        (KERNELS / "gemm", toolchain.include_dirs()[0]),
    ),
}


@pytest.fixture(scope="module")
def programs(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Path]]]:
    """Build the benches that were asked for, two at a time."""
    chosen = {getattr(item, "callspec", None) and item.callspec.params.get("bench")
              for item in request.session.items if isinstance(item, pytest.Function)}  # fmt: skip
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(build, BENCHES[name]) for name in BENCHES if name in chosen}


@pytest.mark.slow
@pytest.mark.parametrize("bench", BENCHES)
def test_bench(bench: str, programs: dict[str, Future[Path]]) -> None:
    """The bench finds nothing, and says so in its last line."""
    program = programs[bench].result(timeout=280)
    answer = subprocess.run(
        [program], capture_output=True, text=True, check=False, timeout=120, cwd=program.parent
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.endswith("PASS\n")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_lint(path: Path) -> None:
    """Verilator's ``-Wall`` finds nothing; what is waived has its reason in the same line."""
    assert lint(path) == []
    for line in path.read_text(encoding="utf-8").splitlines():
        if "lint_off" in line:
            assert re.search(r"\*/\s*// \S", line), f"{path.name}: no reason: {line.strip()}"


@pytest.mark.parametrize("path", FILES + PROOFS, ids=lambda path: path.stem)
def test_layout(path: Path) -> None:
    """One module or package a file, of the file's name, every net declared."""
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^(?:module|package) (\w+)", text, re.MULTILINE) == [path.stem]
    assert text.startswith("// ") and "\n`default_nettype none\n" in text
    assert text.endswith("`default_nettype wire\n")
    if path.parent == SHARED and "always_ff" in text:
        assert "assert property" in text, f"{path.name} asserts nothing of its boundary"
