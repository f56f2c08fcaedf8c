"""``python -m pynq_torch hls``."""

from __future__ import annotations

import json

import pytest

from pynq_torch.cli import main

pytestmark = pytest.mark.usefixtures("own_cache")

SOURCE = """
#include <hls_stream.h>
#include <ap_axi_sdata.h>
void top(int* x, hls::stream<ap_axis<32, 1, 1, 1>> s[2], const short a[8], int* y, int w) {
#pragma HLS INTERFACE m_axi port=x bundle=gmem0
#pragma HLS INTERFACE axis port=s
#pragma HLS INTERFACE s_axilite port=a
#pragma HLS INTERFACE s_axilite port=y
#pragma HLS INTERFACE s_axilite port=return
    *y = a[0] + x[0] + s[0].read().last;
}
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "kernel.cpp"
    path.write_text(SOURCE)
    return path


def test_interface_as_json(source, capsys):
    assert main(["hls", "interface", str(source), "--top", "top", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    rows = {
        r["name"]: (r["offset"], r["width"], r["direction"]) for r in data["bundles"]["control"]
    }
    assert rows["AP_CTRL"] == (0, 32, "inout")
    assert rows["x"] == (0x10, 64, "in")
    assert rows["a"] == (0x20, 16, "in")
    assert rows["y"] == (0x30, 32, "out")
    assert rows["y_ctrl"] == (0x34, 1, "out")
    assert (data["top"], data["tool"], data["control"]) == ("top", "vitis", "ap_ctrl_hs")
    assert data["axis"]["s"]["count"] == 2


def test_interface_as_a_table(source, capsys):
    assert main(["hls", "interface", str(source), "--top", "top", "--tool", "vivado"]) == 0
    text = capsys.readouterr().out
    assert "s_axi_AXILiteS" in text
    assert "0x0020    16  in     a  .. 0x2f" in text or "a  .. " in text
    assert "m_axi_gmem0: 32 bits wide, 32-bit addresses, for x" in text
    assert "axis s x 2 (in): TDATA 32, TLAST, TKEEP, TSTRB, TUSER 1, TID 1, TDEST 1" in text
    assert "wires, no register: w" in text


def test_a_wrong_top_is_one_line(source, capsys):
    assert main(["hls", "interface", str(source), "--top", "other"]) == 1
    error = capsys.readouterr().err
    assert "no definition of the top function 'other'; it defines top" in error
    assert "Traceback" not in error


def test_build_and_test(tmp_path, capsys):
    folder = tmp_path / "add"
    folder.mkdir()
    (folder / "add.cpp").write_text("int add(int a, int b) { return a + b; }")
    (folder / "add_tb.cpp").write_text("int add(int, int);\nint main() { return add(1, 2) != 3; }")
    assert main(["hls", "test", str(folder)]) == 0
    assert "PASS add" in capsys.readouterr().out
    assert main(["hls", "build", "add", "--kernels", str(tmp_path)]) == 0
    assert "built in" in capsys.readouterr().out
    assert main(["hls", "build", str(folder / "add.cpp")]) == 0
    capsys.readouterr()
    assert main(["hls", "build", "nowhere"]) == 1
    assert "no kernel 'nowhere'" in capsys.readouterr().err


def test_a_kernel_of_this_folder_wins_over_one_of_the_library(tmp_path, capsys, monkeypatch):
    own = tmp_path / "hw" / "kernels" / "fir"
    own.mkdir(parents=True)
    (own / "fir.cpp").write_text("int fir(int x) {\n    return x;\n}\n")
    (own / "fir_tb.cpp").write_text("int fir(int x);\nint main() {\n    return fir(0);\n}\n")
    monkeypatch.chdir(tmp_path)
    assert main(["hls", "test", "fir"]) == 0
    assert "PASS fir (hw/kernels/fir/fir.cpp): testbench" in capsys.readouterr().out
    assert main(["hls", "build", "fir"]) == 0
    assert "hw/kernels/fir/fir.cpp: built in" in capsys.readouterr().out
    own.parent.rename(tmp_path / "given")
    monkeypatch.setenv("PYNQ_TORCH_KERNELS", "given")
    assert main(["hls", "test", "fir"]) == 0
    assert "PASS fir (given/fir/fir.cpp)" in capsys.readouterr().out


def test_a_helper_of_this_folder_is_no_kernel_of_the_library(tmp_path, capsys, monkeypatch):
    other = tmp_path / "hw" / "kernels" / "mine"
    other.mkdir(parents=True)
    (other / "mine.cpp").write_text(
        "static int fir(int x) { return x; }\nint mine(int x) { return fir(x); }\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["hls", "test", "fir"]) == 0
    assert "mine.cpp" not in capsys.readouterr().out
