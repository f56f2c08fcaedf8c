"""Labs 22 to 25: their checks take answers that are right in any spelling, and refuse shortcuts."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from notebook_style import graded, text

from pynq_torch.hls import Estimate, KernelSource, estimate
from pynq_torch.hls.estimator import compiler
from pynq_torch.hls.snippet import CELLS
from pynq_torch.lessons import hls_lab
from pynq_torch.paths import NOTEBOOKS

pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(compiler.tools() is not None, reason=compiler.tools() or ""),
]

#: What cells before the exercises have to be run for: what they define.
NEEDED = re.compile(
    r"(?m)^(%load_ext|CLOCK|CUTS|guess = |bench|def (cut|with_depth)|registers|cut =)|hls_lab\.cell"
)
ESTIMATES: dict[str, Estimate] = {}
CROSS = '"0, 2, 0, 2, 8, 2, 0, 2, 0"'
#: What an answer begins with that clears what its testbench looks at again: 0 is 0.
CLEARED = [
    ("24-1", "LONGER", "const int N = 1024, T = 64, HALF = 32; void sharpen(int x[N], int y[N])"),
    ("25-1", "SHARED", "typedef int sample; const int N = 256, T = 16;"
     "void fir(sample x[N], sample h[T], int y[N])"),
    ("25-3", "MOVING", "const int N = 256, T = 16; void moving(short x[N], int y[N])"),
]  # fmt: skip
CLEARS = "x[n] = y[n] = 0;"
#: Exercise -> what is done to its solution, and what its check says then; "" where it passes.
CASES = [
    ("22-1", 'DISTANCE = DISTANCE.replace("x[i] - y[i]", "int(x[i]) - int(y[i])")',
     "The result is wrong. The testbench printed: distance is"),
    ("22-1", 'DISTANCE = DISTANCE.replace("float distance", "double distance")',
     "distance returns float"),
    ("22-2", 'FAST = FAST.replace("x[i + p]", "int(x[i + p])")', "The result is wrong"),
    ("23-1", 'CROSS = CROSS.replace("sum = 8;", "sum = 8;  // rounds\\n/* and */\\n")', ""),
    ("23-1", 'CROSS = CROSS.replace("#pragma HLS ARRAY_P", "#pragma HLS array_p")', ""),
    ("23-1", 'CROSS = CROSS.replace("sum = 8;", "sum = 4; sum += 4;")', "other than pragmas"),
    ("23-1", 'CROSS = cut(cross, ["complete dim=0"])', "^complete makes a register of each pixel"),
    ("23-1", f'CROSS = lines.replace("1, 2, 1, 2, 4, 2, 1, 2, 1", {CROSS});'
     'CROSS = with_pragmas(CROSS, {"blur": "ARRAY_RESHAPE variable=line complete dim=1"})',
     "^no ARRAY_PARTITION names `in`"),
    ("23-3", 'DILATE = DILATE.replace(", WEIGHT[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1}", "");'
     'dilate_bench = re.sub(r" \\|\\| WEIGHT.*", ";", dilate_bench)', ""),
    ("23-3", 'dilate_bench = "int main() { return 0; }"', "takes the blur for a dilation"),
    ("23-3", "dilate_bench = None", r"The testbench is None; expected C\+\+ in a string"),
    ("24-2", 'TWO_PLACES = TWO_PLACES.replace("variable=direct depth=2", '
     '"depth = 2 variable = direct // STREAM depth=9")', ""),
    ("24-2", 'TWO_PLACES = source.replace("STREAM", "stream")', "FIFO direct has 16 places"),
    ("24-2", 'TWO_PLACES = source.replace("<int>", "<int, 9>").replace("#pragma HLS ST", "//")',
     r"FIFO direct has 9 places, the target at most 2\. The FIFO branch has 9"),
    ("24-3", 'NO_SPLIT = NO_SPLIT.replace("fifo s", "// No STREAM here.\\nfifo s")', ""),
    ("24-3", 'NO_SPLIT = NO_SPLIT.replace("fifo samples, means;", "fifo samples, means;\\n'
     '#pragma HLS stream variable=means depth=2")', "no STREAM pragma"),
    ("25-1", 'SHARED = SHARED.replace("h[k] * delay[k]", '
     '"(h[k] << 14 >> 14) * (delay[k] << 14 >> 14)")', "The result is wrong"),  # 18 bits
    ("25-1", 'SHARED = SHARED.replace("delay[T] = {}", "delay[T]")', "read before anything is w"),
    ("25-2", 'FEW = FEW.replace("h[k] *", "(3 + 5 * k) *")', "The result is wrong"),
    ("25-2", 'FEW = FEW.replace("h[k] *", "(h[k] << 24 >> 24) *")', "The result is wrong"),
    ("25-1", 'SHARED = SHARED.replace("typedef int", "#include <ap_int.h>\\ntypedef ap_int<32>")',
     "samples are int"),
    *[(exercise, f"{name} = '{head} {{ sample_loop: for (int n = 0; n < N; ++n) {CLEARS} }}'",
       r"YET\. x is an input of \w+, which writes to it") for exercise, name, head in CLEARED],
]  # fmt: skip


def _cells(lab: str) -> list[dict[str, Any]]:
    (path,) = NOTEBOOKS.glob(f"{lab}_*.ipynb")
    return list(json.loads(path.read_text(encoding="utf-8"))["cells"])


@functools.cache
def _before_the_exercises(lab: str) -> dict[str, Any]:
    """Run what the exercises of a lab need; return its names."""
    names: dict[str, Any] = {"re": re}
    for cell in _cells(lab):
        source = text(cell)
        if graded(cell):
            break
        if cell["cell_type"] == "code" and source.startswith("%%hls"):
            head, _, code = source.partition("\n")
            CELLS[head.split()[1]] = code
        elif cell["cell_type"] == "code" and NEEDED.search(source):
            exec(source.replace("%load_ext pynq_torch\n", ""), names)
    return names


def _end(kernel: KernelSource) -> str:
    """Return what a testbench prints at its end."""
    return hashlib.sha256(kernel.source.read_bytes()).hexdigest()


def _estimate(source: Path, top: str, **options: Any) -> Estimate:
    """Return an estimate, which is made once for each source."""
    code = source.read_text()
    if code not in ESTIMATES:
        ESTIMATES[code] = estimate(source, top, **options)
    return ESTIMATES[code]


@pytest.mark.parametrize(("exercise", "change", "said"), CASES, ids=range(len(CASES)))
def test_the_check_of_an_exercise(
    exercise: str, change: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if exercise[:2] == "24":  # they are slow, and none is asked for here
        monkeypatch.setattr(hls_lab, "_output", lambda kernel, *_: _end(kernel))
        monkeypatch.setattr(hls_lab, "estimate", _estimate)
    names = dict(_before_the_exercises(exercise[:2]))
    sources = {graded(cell).get("grade_id"): text(cell) for cell in _cells(exercise[:2])}
    exec(f"{sources[exercise]}\n{change}", names)
    if not said:
        exec(sources[f"{exercise}-check"], names)
        return
    with pytest.raises(AssertionError) as caught:
        exec(sources[f"{exercise}-check"], names)
    assert re.search(said, str(caught.value), re.DOTALL), caught.value
