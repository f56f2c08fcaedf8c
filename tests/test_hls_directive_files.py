"""A directive says the same as a pragma, in a Tcl file and in a cfg file of Vitis."""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch.hls.estimator import Estimate, compiler, estimate

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")

KERNEL = """
int k(const int A[64], int Bias[16], int j) {
FUNCTION
    int Buf[64];
    fill: for (int i = 0; i < 64; i++) Buf[i] = A[i] * j;
    int s = 0;
    Sum: for (int i = 0; i < 16; i++) {
LOOP
        s += Buf[4 * i] * A[4 * i + 1] + Buf[4 * i + 2] * A[4 * i + 3] + Bias[i];
    }
    return s;
}
"""
#: The pragma and where it stands, the Tcl command, the lines of a cfg file.
WAYS = {
    "array_partition": (
        ("FUNCTION", "array_partition variable=Buf cyclic factor=4 dim=1"),
        "-type cyclic -factor 4 -dim 1 k Buf",
        ("k Buf type=cyclic factor=4 dim=1", "k Buf cyclic factor=4 dim=1",
         "k variable=Buf type=cyclic factor=4 dim=1"),
    ),
    "interface": (
        ("FUNCTION", "interface mode=bram storage_type=ram_1p port=A"),
        "-mode bram -storage_type ram_1p k A",
        ("k A mode=bram storage_type=ram_1p", "k bram port=A storage_type=ram_1p"),
    ),
    "bind_storage": (
        ("FUNCTION", "bind_storage variable=Buf type=ram_1p impl=lutram"),
        "-type ram_1p -impl lutram k Buf",
        ("k Buf type=ram_1p impl=lutram", "k type=ram_1p impl=lutram variable=Buf"),
    ),
    "allocation": (
        ("FUNCTION", "allocation operation instances=mul limit=1"),
        "-type operation -limit 1 k mul",
        ("k mul limit=1 operation", "k operation instances=mul limit=1"),
    ),
    "pipeline": (("LOOP", "pipeline II=5"), "-II 5 k/Sum", ("k/Sum II=5", "k/Sum ii=5")),
    "unroll": (("LOOP", "unroll factor=4"), "-factor 4 k/Sum", ("k/Sum factor=4",)),
}  # fmt: skip


def _of(folder: Path, directives: Path | None = None, at: str = "", pragma: str = "") -> Estimate:
    text = KERNEL.replace(at, f"#pragma HLS {pragma}") if at else KERNEL
    text = text.replace("FUNCTION\n", "\n").replace("LOOP\n", "\n")
    source = folder / "k.cpp"
    source.write_text(text, encoding="utf-8")
    return estimate(source, "k", tool="vitis-2022.2", directives=directives)


@pytest.mark.parametrize("name", WAYS)
def test_all_ways_to_write_a_directive_say_the_same(tmp_path: Path, name: str) -> None:
    """Names keep their case; a variable, a port and an instance may stand without a key."""
    (place, pragma), tcl, lines = WAYS[name]
    plain, wanted = _of(tmp_path), _of(tmp_path, None, place, pragma)
    found = [(one.ii, one.latency) for one in wanted.loops], wanted.resources
    assert found != ([(one.ii, one.latency) for one in plain.loops], plain.resources)
    texts = {"d.tcl": f"set_directive_{name} {tcl}\n"}
    texts |= {f"{n}.cfg": f"[hls]\nsyn.directive.{name}={one}\n" for n, one in enumerate(lines)}
    for file, text in texts.items():
        path = tmp_path / "files" / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        made = _of(tmp_path, path)
        assert ([(one.ii, one.latency) for one in made.loops], made.resources) == found, text
        assert made.warnings == wanted.warnings, text
