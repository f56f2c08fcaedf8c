"""``python -m pynq_torch kernels``: the list, one kernel in full, building and generating."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pynq_torch.cli import main
from pynq_torch.errors import InterfaceError
from pynq_torch.kernels import library
from pynq_torch.models import evidence
from pynq_torch.paths import ROOT

KERNELS = ROOT / "hw" / "kernels"
TINY = """#include "{name}.hpp"
void {name}(const int* a, int* b) {{
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=1
#pragma HLS INTERFACE m_axi port=b bundle=gmem0 offset=slave depth=1
#pragma HLS INTERFACE s_axilite port=return bundle=control
    b[0] = a[0] + {value};
}}
"""
HEADER = """// {name}: a kernel for a test.
//
// | parameter | value |
#pragma once
void {name}(const int*, int*);
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library of two kernels, with a cache of its own."""
    for name in ("one", "two"):
        folder = tmp_path / "library" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.cpp").write_text(TINY.format(name=name, value=1))
        (folder / f"{name}.hpp").write_text(
            HEADER.format(name=name) + f"void {name}(const int*, int*);\n"
        )
        text = json.loads((KERNELS / "vadd" / "description.json").read_text())
        text |= {"name": name, "summary": f"Kernel {name}.", "operators": ["aten::add.Tensor"]}
        text["latency"] |= {"example": {"n": 1000}}
        (folder / "description.json").write_text(json.dumps(text))
    monkeypatch.setenv("PYNQ_TORCH_KERNELS", str(tmp_path / "library"))
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "library"


def test_the_list_has_every_kernel_with_its_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--json"]) == 0
    found = {item["name"]: item for item in json.loads(capsys.readouterr().out)}
    assert set(found) == {path.parent.name for path in KERNELS.glob("*/description.json")}
    gemm = found["gemm"]
    assert gemm["overlays"] == {"gemm": 1, "gemm_dual": 1}
    assert "aten::mm" in gemm["operators"]
    assert gemm["resources"]["kind"] == "yosys"
    assert gemm["latency"]["kind"] == "cycles"
    assert gemm["latency"]["at"] == {"m": 256, "n": 256, "k": 256}
    matmul = found["matmul_f32"]
    assert matmul["resources"]["kind"] == matmul["latency"]["kind"] == "model"
    model = evidence.kernel("matmul_f32").description.latency
    assert matmul["latency"]["cycles"] == model.cycles(**matmul["latency"]["at"])
    assert main(["kernels"]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("gemm "))
    assert row.split()[1:5] == ["_int_mm", "mm", "addmm", "+1"]
    assert f"{gemm['latency']['cycles']} " in row
    assert "gemm gemm_dual" in row
    # Which design each number is of: RTL and C++ are two, with other resources and cycles.
    assert "35230  RTL yosys" in row and "RTL counted" in row
    row = next(line for line in out.splitlines() if line.startswith("scale_stream "))
    assert "RTL yosys" in row and "HLS model" in row
    header = out.splitlines()[0].split("  ")
    assert len(set(filter(None, header))) == len(list(filter(None, header)))
    assert f"{len(found)} kernels" in out
    assert max(map(len, out.splitlines())) <= 150


def test_a_kernel_in_full(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "one"]) == 0
    out = capsys.readouterr().out
    for text in (
        "one: Kernel one.",
        "reference   a + b",
        "3110 cycles at n=1000, model (at 100 MHz)",  # 1000 + 50 + 2000 + 60
        "fadd",
        "HLS (model): one.cpp",
        "s_axi_control",
        "m_axi_gmem0: 32 bits wide",
        "| parameter | value |",
    ):
        assert text in out
    assert "RTL" not in out
    assert main(["kernels", "one", "--json"]) == 0
    full = json.loads(capsys.readouterr().out)
    assert full["interface"]["top"] == "one"
    assert full["latency"]["at"] == {"n": 1000}


def test_rtl_and_cpp_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "gemm"]) == 0
    first, rest = capsys.readouterr().out.split("\nRTL: gemm/rtl")
    rtl, hls = rest.split("\nHLS (model): gemm.cpp")
    hls, shared = hls.split("\nRegisters and ports")
    model = evidence.kernel("gemm").description.latency
    assert "k: columns of a, rows of b" in first and "cycles" not in first
    counted, modelled = 38266, model.cycles(m=256, n=256, k=256)
    assert f"{counted} cycles at m=n=k=256, cycles counted in RTL" in rtl
    assert "DSP 200 " in rtl and "yosys" in rtl and "model" not in rtl
    assert f"{modelled} cycles at m=n=k=256, model" in hls and model.expression in hls
    assert "DSP 151 " in hls and "256 MAC a cycle on 128 DSPs" in hls
    assert "yosys" not in hls and str(counted) not in hls
    assert "s_axi_control" in shared and "model" not in shared
    assert main(["kernels", "scale_stream"]) == 0
    assert "not recorded at beats=4096" in capsys.readouterr().out


def test_an_example_has_a_size_for_each_symbol(small: Path) -> None:
    path = small / "one" / "description.json"
    data = json.loads(path.read_text())
    for example, said in (
        ({}, "latency.example is .* each for n"),
        ({"n": 1, "m": 2}, "latency.example is .* each for n"),
        ({"n": 1.5}, r"latency.example.n is 1\.5; it should be a valid integer"),
    ):
        data["latency"]["example"] = example
        path.write_text(json.dumps(data))
        with pytest.raises(InterfaceError, match=said):
            evidence.kernel("one")


def test_an_unknown_kernel_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "vsub"]) == 1
    assert "no kernel 'vsub'" in capsys.readouterr().err
    assert main(["kernels", "build", "vsub"]) == 1
    assert "no kernel 'vsub'" in capsys.readouterr().err
    assert main(["kernels", "vadd", "gemm"]) == 2


def test_only_what_changed_is_built_again(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def build(*arguments: str) -> str:
        assert main(["kernels", "build", "one", "two", *arguments]) == 0
        return capsys.readouterr().out

    assert "2 built, 0 unchanged, 0 failed" in build("--jobs", "2")
    assert "0 built, 2 unchanged" in build("--jobs", "1")
    (small / "two" / "two.cpp").write_text(TINY.format(name="two", value=2))
    out = build("--jobs", "1")
    assert "built two in " in out
    assert "built one" not in out
    assert "1 built, 1 unchanged" in out
    # Going back costs nothing: builds are kept by content.
    (small / "two" / "two.cpp").write_text(TINY.format(name="two", value=1))
    assert "0 built, 2 unchanged" in build("--jobs", "1")


def test_a_kernel_that_does_not_compile_fails_alone(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (small / "one" / "one.cpp").write_text(TINY.format(name="one", value="nonsense"))
    assert main(["kernels", "build", "one", "two", "--jobs", "1"]) == 1
    said = capsys.readouterr()
    assert "1 built, 0 unchanged, 1 failed" in said.out
    assert "error: one: " in said.err
    assert "nonsense" in said.err


def test_jobs_must_be_positive(small: Path) -> None:
    with pytest.raises(library.KernelError, match="jobs is -1"):
        library.build_library(["one"], jobs=-1)


def test_generating_is_checked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pynq_torch.hls import generate

    stale = KERNELS / "vadd" / "vadd.cpp"
    monkeypatch.setattr(generate, "differences", lambda instances, out=None: iter([(stale, "")]))
    assert main(["kernels", "generate", "--check"]) == 1
    assert "differs from its template: hw/kernels/vadd/vadd.cpp" in capsys.readouterr().err
    monkeypatch.setattr(generate, "differences", lambda instances, out=None: iter(()))
    assert main(["kernels", "generate", "--check"]) == 0
    assert main(["kernels", "generate"]) == 0
    assert "0 files written" in capsys.readouterr().out


def test_units_of_an_overlay_are_counted() -> None:
    found = library.overlays_with()
    assert found["matrix_mult"] == {"matrix_mult": 1, "matrix_mult_dual": 1}
