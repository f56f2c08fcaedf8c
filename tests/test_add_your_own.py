"""A kernel of one's own: the lesson from an empty folder, and the files that it starts from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pynq
import pytest

import pynq_torch
from pynq_torch import hls
from pynq_torch.errors import HandoffError, KernelError
from pynq_torch.hls.design import build_overlay
from pynq_torch.hls.design.description import read_description

pytestmark = pytest.mark.timeout(280)
LESSON = Path(__file__).parents[1] / "notebooks" / "16_add_your_own_kernel.ipynb"


def python(program: str, folder: Path, **environment: str) -> str:
    """Run a program in a folder, in a process of its own; return what it printed."""
    (folder.parent / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, str(folder.parent / "program.py")],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg", **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def test_the_lesson_from_an_empty_folder(empty: Path) -> None:
    notebook = json.loads(LESSON.read_text())
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    assert 'FOLDER = ""' in cells[0]
    cells[0] = cells[0].replace('FOLDER = ""', 'FOLDER = "."')
    said = python("\n\n".join(cells), empty)
    assert said.count(": PASS") >= 9
    assert "aten::hypot(float32[100000], float32[100000]) -> PL hypot_f32_0" in said
    assert "expected 3.75e+30" in said  # the testbench has found the fault of the first version
    assert {p.name for p in empty.iterdir()} == {"hw", "bitstreams", "mutant"}

    # What it leaves is all that another program needs.
    again = python(
        "import torch, pynq_torch\n"
        "overlay = pynq_torch.load('hypot')\n"
        "c = torch.empty(3)\n"
        "a, b = torch.tensor([3.0, 5e30, 0.0]), torch.tensor([4.0, 12e30, 0.0])\n"
        "overlay.hypot_f32(a, b, c, n=3)\n"
        "print(c.tolist() == torch.hypot(a, b).tolist())\n",
        empty,
        PYNQ_TORCH_KERNELS=str(empty / "hw/kernels"),
        PYNQ_TORCH_BOARD="csim",
    )
    assert again.splitlines()[-1] == "True"


def test_a_skeleton_is_a_kernel(empty: Path) -> None:
    folder = hls.new_kernel("three_f32", empty, inputs=("x", "y", "z"), formula="x * y + z")
    kernel = hls.find_kernel("three_f32", [empty / "hw/kernels"])
    assert kernel is not None and kernel.folder == folder
    result = hls.run_testbench(kernel)
    assert "PASS" in result.output and "FAIL" not in result.output
    interface = hls.read_interface(kernel.source, "three_f32")
    assert interface.control == "ap_ctrl_hs"
    assert list(interface.axi_bundles) == ["gmem0", "gmem1", "gmem2", "gmem3"]
    assert [a.name for a in interface.arguments] == ["x", "y", "z", "out", "n"]
    assert all(len(p.read_text().splitlines()) <= 120 for p in folder.iterdir())
    text = hls.new_overlay("both", empty, {"a_0": "three_f32", "a_1": "three_f32"}).read_text()
    assert text.count("HP3") == 2 and '"a_0.interrupt", "a_1.interrupt"' in text
    built = build_overlay("both", root=empty, out=empty)
    assert {p.name for p in built.iterdir()} == {"both.bit", "both.hwh", "manifest.json"}


STREAMS = {
    "pass": """
typedef ap_axis<32, 0, 0, 0> word;
void pass(hls::stream<word>& samples, hls::stream<word>& out) {
#pragma HLS INTERFACE axis port=samples
#pragma HLS INTERFACE axis port=out
#pragma HLS INTERFACE s_axilite port=return
    word w;
    do {
        w = samples.read();
        w.data = 3 * w.data;
        out.write(w);
    } while (!w.last);
}
""",
    "count": """
typedef ap_axiu<64, 0, 0, 0> word;
void count(hls::stream<word> sums[2], int n) {
#pragma HLS INTERFACE axis port=sums
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=return
    for (int i = 0; i < n; ++i) {
        word w;
        w.data = i;
        w.keep = -1;
        w.last = i == n - 1;
        sums[0].write(w);
        w.data = -i;
        sums[1].write(w);
    }
}
""",
}


def test_streams_get_a_dma(empty: Path) -> None:
    for name, text in STREAMS.items():
        folder = empty / "hw" / "kernels" / name
        folder.mkdir(parents=True)
        head = "#include <ap_axi_sdata.h>\n#include <hls_stream.h>\n"
        (folder / f"{name}.cpp").write_text(head + text)
    hls.new_overlay("streams", empty, {"pass_0": "pass", "count_0": "count"})
    built = build_overlay("streams", root=empty, out=empty)
    pynq_torch.use_board("csim", kernels=[empty / "hw" / "kernels"])
    overlay = pynq_torch.load(built / "streams.bit")
    x, y = (pynq.allocate(8, np.int32) for _ in range(2))
    up, down = (pynq.allocate(8, np.int64) for _ in range(2))
    x[:] = range(8)
    overlay.pass_0.write(0, 1)
    pynq_torch.transfer(overlay.axi_dma_0, x, y)
    overlay.axi_dma_1.recvchannel.transfer(up)
    overlay.axi_dma_2.recvchannel.transfer(down)
    overlay.count_0.write(0x10, 8)
    overlay.count_0.write(0, 1)
    overlay.axi_dma_1.recvchannel.wait()
    overlay.axi_dma_2.recvchannel.wait()
    assert (y.tolist(), up.tolist()) == ([3 * i for i in range(8)], list(range(8)))
    assert down.tolist() == [-i for i in range(8)]
    with pytest.raises(TypeError, match="axi_dma_0"):
        overlay.pass_0(x)


def test_a_wrong_kernel_fails_its_testbench(empty: Path) -> None:
    hls.new_kernel("wrong_f32", empty, inputs=("a", "b"), formula="a - b", golden="a + b")
    kernel = hls.find_kernel("wrong_f32", [empty / "hw/kernels"])
    assert kernel is not None
    with pytest.raises(AssertionError, match="first wrong index 1"):
        hls.run_testbench(kernel)


def test_nothing_is_overwritten(empty: Path) -> None:
    folder = hls.new_kernel("mine_f32", empty, inputs="a", formula="a")
    (folder / "mine_f32.hpp").write_text("// mine")
    with pytest.raises(HandoffError, match=r"mine_f32\.hpp.* already"):
        hls.new_kernel("mine_f32", empty, inputs="a", formula="-a")
    assert (folder / "mine_f32.hpp").read_text() == "// mine"
    with pytest.raises(HandoffError, match="no hw/kernels/yours"):
        hls.new_overlay("mine", empty, {"yours_0": "yours"})
    assert not (empty / "hw/overlays").exists()


@pytest.mark.parametrize(
    ("name", "inputs", "output", "said"),
    [
        ("my kernel", ("a", "b"), "c", "'my kernel' is no name"),
        ("k", ("a", "class"), "c", "'class' is no name"),
        ("k", ("n",), "c", "'n' is no name"),
        ("int", ("a", "b"), "c", "'int' is no name"),
        ("main", ("a", "b"), "c", "'main' is no name"),
        ("k", ("a", "float"), "c", "'float' is no name"),
        ("k", ("std",), "c", "'std' is no name"),
        ("k", ("a", "b"), "a", "names that differ"),
        ("k", "", "c", "one input or more"),
        ("k" * 300, ("a",), "c", "has 300 letters; expected at most 100"),
    ],
)
def test_names_are_looked_at(empty: Path, name: str, inputs: str, output: str, said: str) -> None:
    with pytest.raises(KernelError, match=said):
        hls.new_kernel(name, empty, inputs=inputs, formula="a", output=output)
    assert not list(empty.iterdir())


@pytest.mark.parametrize("formula", ["", " ", "a; }", "a)", "(a", "a[0}", "a // b", None])
def test_formulas_are_looked_at(empty: Path, formula: Any) -> None:
    with pytest.raises(KernelError, match="formula is .*; expected one expression in C"):
        hls.new_kernel("k", empty, inputs=("a",), formula=formula)
    with pytest.raises(KernelError, match="formula is .*|golden is .*"):
        hls.new_kernel("k", empty, inputs=("a",), formula="a", golden=formula or ";")
    assert not list(empty.iterdir())


@pytest.mark.parametrize(
    ("name", "units", "clock_mhz", "said"),
    [
        ("../p5", {"k_0": "k"}, 100, "'../p5' is no name of an overlay"),
        ("", {"k_0": "k"}, 100, "'' is no name of an overlay"),
        ("lab-1", {}, 100, r'expected one or more, with their kernels: \{"fir_0": "fir"\}'),
        ("lab", ["k"], 100, r"the compute units are \['k'\]"),
        ("lab", {"1k": "k"}, 100, "'1k' is no name of a compute unit or a kernel"),
        ("lab", {"k_0": "../k"}, 100, "'../k' is no name"),
        ("lab", {"k_0": "k"}, -1, "cannot make -1 MHz"),
        ("lab", {"k_0": "k"}, 1_000_000, "cannot make 1e"),
        ("lab", {"k_0": "k"}, float("nan"), "cannot make nan MHz"),
        ("lab", {"k_0": "k"}, float("inf"), "cannot make inf MHz"),
        ("lab", {"k_0": "k"}, 0, "cannot make 0 MHz"),
        ("lab", {"k_0": "k"}, "fast", "clock_mhz is 'fast'; expected a number of MHz"),
        ("lab", {"axi_dma_0": "k"}, 100, "axi_dma_0 is the name of another part .* as in k_0"),
        ("lab", {"axi_intc_0": "k"}, 100, "axi_intc_0 is the name of another part"),
    ],
)
def test_overlays_are_looked_at(
    empty: Path, name: str, units: Any, clock_mhz: Any, said: str
) -> None:
    hls.new_kernel("k", empty, inputs=("a",), formula="a", interface="axis")
    with pytest.raises(HandoffError, match=said):
        hls.new_overlay(name, empty, units, clock_mhz=clock_mhz)
    assert not (empty / "hw" / "overlays").exists() and not (empty / "hw" / "p5").exists()


def test_a_kernel_without_control_has_no_interrupt(empty: Path) -> None:
    folder = empty / "hw" / "kernels" / "k"
    folder.mkdir(parents=True)
    (folder / "k.cpp").write_text(
        "void k(int x, int* y) {\n#pragma HLS INTERFACE ap_ctrl_none port=return\n"
        "#pragma HLS INTERFACE s_axilite port=x\n#pragma HLS INTERFACE s_axilite port=y\n"
        "    *y = x;\n}\n"
    )
    text = hls.new_overlay("lab", empty, {"k_0": "k"}).read_text()
    assert "interrupts" not in text and "axi_intc" not in text
    assert [one.name for one in read_description(empty / "hw/overlays/lab").instances] == ["k_0"]


def test_an_operator_is_offered_at_any_time() -> None:
    import torch
    from device_helpers import loaded, of, watched

    from pynq_torch import register_operator
    from pynq_torch.ops import Declined

    loaded("vadd")
    x = torch.arange(3.0).to("pynq")
    asked = []

    def decline(self: torch.Tensor, other: torch.Tensor) -> Declined:
        asked.append(self)
        return Declined("not today")

    # The device has been used by now. Nothing takes the offer back: it declines for good.
    register_operator("aten::heaviside", decline)
    with watched() as calls:
        assert torch.heaviside(x, x).tolist() == [0.0, 1.0, 1.0]
    assert len(asked) == 1 and of(calls, "heaviside")[0].reason == "not today"
    for name, said in (
        ("aten::heavyside", "no overload"),
        ("aten::matmul", "composes"),
        ("aten::view", "never arrives"),
        ("hypot", "no overload of ATen"),
    ):
        with pytest.raises(ValueError, match=said):
            register_operator(name, decline)


def test_a_wrong_result_is_refused() -> None:
    """A tensor on the CPU, or of another dtype or shape, was passed on as the operator's result."""
    import torch
    from device_helpers import loaded

    from pynq_torch import register_operator
    from pynq_torch.ops import Declined

    loaded("vadd")
    x = torch.tensor([3.0, 4.0]).to("pynq")
    answer: list[Any] = [None]

    def mine(*args: Any, **options: Any) -> Any:
        return answer[0]

    register_operator("aten::hypot", mine)
    register_operator("aten::aminmax", mine)
    for answer[0], said in (
        (torch.ones(2), r"a float32\[2\] tensor on device 'cpu'"),
        (x.double(), r"a float64\[2\] tensor on device 'pynq'"),
        (x[:1], r"a float32\[1\] tensor on device 'pynq'"),
        (1.0, "a float"),
        (None, "None, which is no tensor"),
        ((x, x), "2 results"),
    ):
        refused = f"aten::hypot: .*mine, registered with register_operator, returned {said}; "
        for call in (lambda: torch.hypot(x, x), lambda: x.clone().hypot_(x)):
            with pytest.raises(TypeError, match=refused + r"expected a float32\[2\] tensor on dev"):
                call()
    answer[0] = torch.tensor([5.0, 6.0]).to("pynq")
    with pytest.raises(TypeError, match="aten::aminmax: .* returned .* expected 2 results"):
        torch.aminmax(x)
    assert torch.hypot(x, x).tolist() == [5.0, 6.0]
    assert torch.hypot(x, x, out=torch.empty(2, device="pynq")).tolist() == [5.0, 6.0]
    answer[0] = Declined("not today")  # for good, since nothing takes the offer back
    assert torch.hypot(x, x.flip(0)).tolist() == [5.0, 5.0]
