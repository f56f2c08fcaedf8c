"""``%%hls``: a kernel in a notebook's cell, shown and tested where it is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from IPython.core.error import UsageError

from pynq_torch.hls import build
from pynq_torch.hls.estimator import compiler
from pynq_torch.widgets.hls_cell import run_cell

pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(compiler.tools() is not None, reason=compiler.tools() or ""),
]

CELL = """\
#include <ap_int.h>
typedef ap_int<12> data_t;
int helper(int x) { return 3 * x; }
void triple(const int x[64], data_t y[64]) {
#pragma HLS INTERFACE s_axilite port=return
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=y
    triple_loop: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = helper(x[i]);
    }
}
// testbench
#include <cstdio>
int main() {
    int x[64]; data_t y[64];
    for (int i = 0; i < 64; ++i) x[i] = i;
    triple(x, y);
    std::printf("y[63] is %d\\n", (int)y[63]);
    return y[63] != 189;
}
"""


def test_a_cell_shows_registers_loops_and_what_its_testbench_printed() -> None:
    made = run_cell("triple --clock 8", CELL)
    assert made.interface.argument("x").offset == 0x100
    assert made.schedule is not None and made.schedule.clock == 8
    assert [(loop.name, loop.ii, loop.line) for loop in made.schedule.loops] == [
        ("triple_loop", 1, 9)  # the magic is line 1
    ]
    assert made.output == "y[63] is 189\n"
    for shown in (repr(made), made._repr_html_()):
        for text in ("s_axi_control", "triple_loop", "testbench passed", "y[63] is 189"):
            assert text in shown


def test_arguments_and_a_folder_to_keep(tmp_path: Path) -> None:
    cell = CELL.split("// testbench")[0].replace("y[64])", "y[64], int n)").replace("< 64", "< n")
    made = run_cell(f"triple -a n=50 --save '{tmp_path}/my kernel'", cell)
    assert made.schedule is not None and made.schedule.loops[0].trip_count == (50, 50)
    assert (tmp_path / "my kernel" / "triple.cpp").read_text() == "\n" + cell
    assert made.output is None and "testbench" not in repr(made)
    assert build(made.kernel).interface == made.interface


@pytest.mark.parametrize(
    ("line", "old", "new", "said"),
    [
        ("triple", "3 * x;", "3 * z;", r"triple\.cpp:4: .*'z'"),
        ("triple", "int x[64]; data_t", "int x[64]; date_t", r"triple_tb\.cpp:17.*date_t"),
        ("triple", "!= 189", "== 189", r"returned 1.*y\[63\] is 189"),
        ("triple --timeout 2", "triple(x, y);", "for (;;);", "did not end within 2 s"),
        ("triple", "3 * x;", "x / 0;", "signal 4, an illegal instruction: is anything divided by"),
        ("twice", "", "", "no definition of the top function 'twice'; it defines"),
        ("triple -a m=3", "", "", "no integer argument 'm'"),
        ("triple -a n", "", "", "argument -a/--argument: 'n': no number; expected NAME=NUMBER"),
        ("triple -a n=three", "", "", "'three' is no whole number; expected NAME=NUMBER"),
        ("triple --save /dev/null", "", "", "--save /dev/null is no folder .*; name a folder"),
        ("triple<4>", "", "", r"triple\.cpp:5: triple is no template; leave <4> out$"),
        ("triple<4", "", "", "'triple<4' is no name of a function"),
        ("", "", "", "arguments are required: top"),
        ("../x", "", "", "is no name of a function"),
        ("triple --clock '", "", "", "No closing quotation"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(line: str, old: str, new: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"(?s)%%hls: .*{said.removeprefix('%%hls: ')}"):
        run_cell(line, CELL.replace(old, new) if old else CELL)


def test_pragmas_that_do_nothing_are_shown() -> None:
    cell = CELL.split("// testbench")[0].replace("#pragma HLS PIPELINE", "#pragma HLS PIPELNIE")
    made = run_cell("triple", cell)
    for shown in (repr(made), made._repr_html_()):
        assert "warning: triple.cpp:10: PIPELNIE is no HLS pragma" in shown
        assert shown.count("PIPELNIE") == 1


def test_without_clang_the_rest_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "tools", lambda: "hls estimate needs clang-16")
    made = run_cell("triple", CELL.replace("#pragma HLS PIPELINE", "#pragma HLS PIPELNIE"))
    assert made.schedule is None and made.output == "y[63] is 189\n"
    for shown in (repr(made), made._repr_html_()):
        assert "needs clang-16" in shown
    assert repr(made).count("warning: triple.cpp:10: PIPELNIE is no HLS pragma") == 1


def test_a_main_that_nothing_runs_is_told() -> None:
    made = run_cell("triple", CELL.replace("// testbench\n", ""))
    assert made.output is None
    for shown in (repr(made), made._repr_html_()):
        assert "write a line // testbench above" in shown


def test_a_template_and_a_long_output() -> None:
    cell = CELL.replace("void triple", "template <int F> void triple")
    cell = cell.replace("helper(x[i])", "F * x[i]").replace("triple(x, y)", "triple<3>(x, y)")
    loop = 'for (int i = 0; i < 5000; ++i) std::puts("again");\n    return'
    made = run_cell("triple<3>", cell.replace("return y", f"{loop} y"))
    assert made.kernel.name == "triple" and made.schedule is not None
    assert made.output is not None and made.output.count("again") == 5000
    for shown in (repr(made), made._repr_html_()):
        assert "(4,901 lines before these are left out; .output has them)\nagain" in shown
        assert shown.count("again") == 100


def test_the_extension(tmp_path: Path) -> None:
    program = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_line_magic('load_ext', 'pynq_torch')\n"
        f"print(shell.run_cell_magic('hls', 'triple', {CELL!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "IPYTHONDIR": str(tmp_path)},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "triple_loop" in done.stdout and "testbench passed\ny[63] is 189" in done.stdout
