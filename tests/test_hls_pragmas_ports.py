"""Modes that an argument cannot have, lists of variables, members, and lines without HLS."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pynq_torch import hls
from pynq_torch.errors import InterfaceError

PORTS = """
#include <hls_stream.h>
typedef int row_t[16];
struct pair { short a, b; };
struct line { int v[4]; };
int k(hls::stream<int> &s, int array[16], int *pointer, int &reference, int value, row_t row,
      int (&whole)[16], pair *pairs, hls::stream<int> lanes[2], int cut[2], int *const fixed,
      int *__restrict apart, line held) {
#pragma HLS ARRAY_PARTITION variable=cut complete
WHAT
    int sum = s.read() + value + cut[0] + cut[1] + lanes[0].read() + lanes[1].read();
    for (int i = 0; i < 16; ++i) sum += array[i] + row[i] + whole[i] + pairs[i].a;
    *pointer = sum;
    fixed[0] = apart[0x0u] = sum + held.v[0];
    reference = sum;
    return sum;
}
"""
MODES = """
    ap_none s is no mode of streams
    ap_memory s is no mode of streams
    ap_none lanes is no mode of streams
    axis s
    ap_fifo s
    ap_none array needs a scalar, and array is an array
    ap_vld whole needs a scalar, and whole is an array
    ap_memory array
    bram row
    ap_memory whole
    ap_none cut
    ap_none pointer
    ap_ovld pointer
    ap_vld reference
    ap_ovld reference
    ap_none pairs carries one value, and pairs is indexed
    ap_fifo pairs
    ap_memory pointer needs an array with a size, and pointer is int *
    bram value needs an array or a pointer, and value is passed by value as int
    ap_fifo value needs an array or a pointer
    ap_ovld value needs an array or a pointer
    axis value
    ap_none value
    ap_fifo fixed
    ap_none fixed
    ap_ovld apart
    ap_memory apart needs an array with a size, and apart is int *
    ap_memory held
    m_axi value needs an array or a pointer
    m_axi s is no mode of streams
    ap_none return of port=return has no effect
    axis return of port=return has no effect
    m_axi return of port=return has no effect
    ap_ctrl_none return
    s_axilite return
"""


def lines(folder: Path, text: str, **options: object) -> list[str]:
    """Return what lint says, without its files."""
    source = folder / "k.cpp"
    source.write_text(text)
    found = hls.lint(source, "k", schedule=False, **options)  # type: ignore[arg-type]
    return [f"{one.line}: {one.text}" for one in found if one.rule == "pragma"]


@pytest.mark.parametrize("row", [row.strip() for row in MODES.strip().splitlines()])
def test_a_mode_that_an_argument_cannot_have(tmp_path: Path, row: str) -> None:
    mode, port, *said = row.split(maxsplit=2)
    found = lines(tmp_path, PORTS.replace("WHAT", f"#pragma HLS INTERFACE {mode} port={port}"))
    found = [one for one in found if "INTERFACE" in one]
    assert len(found) == len(said), found
    assert not said or f"INTERFACE {mode} {said[0]}" in found[0]


def test_what_is_no_code_is_no_pragma(tmp_path: Path) -> None:
    """Comments, texts, what conditions leave out and a pragma on two lines."""
    text = """
/* #pragma HSL PIPELINE
   #pragma UNROL */
// #pragma HLSPIPELINE
#if 0
#pragma HLS_UNROLL
#if 1
#endif
#pragma UNROL
#else
#pragma HLS_INLINE
#endif
#ifdef NEVER
#pragma HSL PIPELINE
#endif
const char *help = R"(
#pragma HSL PIPELINE
#pragma HLS PIPELNIE
)";
void k(int a[8]) {
    for (int i = 0; i < 8; ++i) {
#pragma HLS \\
    PIPELINE II=1
#pragma HSL \\
    PIPELINE
        a[i] = i;
    }
}
"""
    assert [one[:18] for one in lines(tmp_path, text.replace("\\\\", "\\"))] == [
        "11: #pragma HLS_IN", "24: #pragma HSL is"
    ]  # fmt: skip


def test_each_wrong_interface_is_said(tmp_path: Path) -> None:
    text = """
void k(int *a, int b[8], int n) {
#pragma HLS INTERFACE maxi port=a
#pragma HLS INTERFACE axilite port=n
#pragma HLS INTERFACE ap_ctrl_none port=b
    for (int i = 0; i < 8; ++i) b[i] = a[i] + n;
}
"""
    found = lines(tmp_path, text)
    assert [one[0] for one in found] == ["3", "4", "5"]
    source = tmp_path / "k.cpp"
    with pytest.raises(InterfaceError, match=r"(?s)3: INTERFACE has no mode.*4: INTERFACE has"):
        hls.read_interface(source, "k")
    warned = [one for one in hls.estimate(source, "k").warnings if "INTERFACE" in one]
    assert len(warned) == 2


@pytest.mark.parametrize("suffix", ["tcl", "cfg"])
def test_a_file_of_directives_is_checked_as_the_source(tmp_path: Path, suffix: str) -> None:
    """Words of INTERFACE, ports that are not there, and a quote that does not end."""
    script = {
        "tcl": 'set_directive_interface -mode s_axilit "k" n\n'
        'set_directive_interface -mode axis "k" zz\nset_directive_pipeline "k/L1\n',
        "cfg": "syn.directive.interface=k n mode=s_axilit\nsyn.directive.interface=k axis zz\n"
        'syn.directive.pipeline=k/"L1\n',
    }[suffix]
    (tmp_path / f"d.{suffix}").write_text(script)
    text = "void k(int a[8], int b[8], int n) { L1: for (int i = 0; i < 8; ++i) b[i] = a[i] + n; }"
    found = lines(tmp_path, text, directives=tmp_path / f"d.{suffix}")
    assert "1: INTERFACE has no mode 's_axilit'; did you mean s_axilite?" in found
    assert any(one.startswith("2: INTERFACE names port 'zz'") for one in found)
    assert any(one.startswith("3: ") and "no closing quotation" in one for one in found)
    warned = hls.estimate(tmp_path / "k.cpp", "k", directives=tmp_path / f"d.{suffix}").warnings
    assert len([one for one in warned if re.search(rf"d\.{suffix}:[123]: ", one)]) == 3


def test_set_directive_of_storage_is_no_misspelt_interface(tmp_path: Path) -> None:
    (tmp_path / "directives.tcl").write_text('set_directive_bind_storage -type ram_2p "k" t\n')
    text = (
        "void k(int a[8]) {\n int t[8];\n for (int i = 0; i < 8; ++i) t[i] = a[i];\n a[0] = t[7]; }"
    )
    (tmp_path / "k.cpp").write_text(text)
    assert hls.read_interface(tmp_path / "k.cpp", "k").warnings == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("HLSPIPELINE", "#pragma HLSPIPELINE is ignored; did you mean #pragma HLS PIPELINE?"),
        ("HLS_UNROLL factor=2", "#pragma HLS_UNROLL is ignored; did you mean #pragma HLS UNROLL?"),
        ("UNROL factor=2", "#pragma UNROL is ignored; did you mean #pragma HLS UNROLL?"),
        ("HSL PIPELINE", "#pragma HSL is ignored; did you mean #pragma HLS?"),
        ("AP PIPELINE", "#pragma AP, of Vivado HLS before 2013, is not read; write #pragma HLS"),
        *[(line, "") for line in (
            "once", "pack(push, 1)", "region kernel", "endregion", "message(\"x\")", "omp parallel",
            "GCC ivdep", "clang loop vectorize(enable)", "nounroll", "warning(disable: 4996)",
            "STDC FP_CONTRACT ON", "push_macro(\"N\")", "SDS data copy(a)", "ACCEL pipeline",
        )],
    ],
)  # fmt: skip
def test_a_line_that_was_meant_for_hls(tmp_path: Path, line: str, said: str) -> None:
    text = (
        "void k(int a[8]) {\n for (int i = 0; i < 8; ++i) {\n#pragma HLS PIPELINE\n a[i] = i; }\n}"
    )
    source = text.replace("\n#pragma HLS PIPELINE", f"\n#pragma {line}")
    if line == "nounroll":  # clang wants a loop behind it
        source = f"#define N 8\n{text}"
    assert lines(tmp_path, source) == ([f"3: {said}"] if said else [])


LISTED = """
struct S { int q[16]; int z; };
void k(const int x[64], int y[16]) {
    int s[64], t[64];
    S u;
PRAGMA
    for (int i = 0; i < 64; ++i) { s[i] = x[i]; t[i] = 3 * x[i]; u.q[i & 15] = x[i]; }
    u.z = x[0];
    sums: for (int i = 0; i < 16; ++i) {
#pragma HLS PIPELINE
        y[i] = s[4 * i] + s[4 * i + 1] + s[4 * i + 2] + t[4 * i] + t[4 * i + 1] + t[4 * i + 2]
            + u.q[i] + u.z;
    }
}
"""


def test_a_list_of_variables_is_one_directive_for_each(tmp_path: Path) -> None:
    """As UG871's own designs write them: `variable=nodelay,delayed`."""

    def interval(pragma: str) -> int | None:
        (tmp_path / "k.cpp").write_text(LISTED.replace("PRAGMA", f"#pragma HLS {pragma}"))
        found = hls.estimate(tmp_path / "k.cpp", "k", tool="vivado")
        return next(one.ii for one in found.loops if one.name == "sums")

    assert interval("ARRAY_PARTITION variable=s complete") == 2
    for listed in ("s,t", "s, t", "s ,t,u.q"):
        assert interval(f"ARRAY_PARTITION variable={listed} complete") == 1
    text = LISTED.replace("PRAGMA", "#pragma HLS ARRAY_PARTITION variable=s,tt complete")
    assert lines(tmp_path, text) == [
        "6: ARRAY_PARTITION names 'tt', which k has not; did you mean t?"
    ]


@pytest.mark.parametrize(
    ("pragma", "said"),
    [
        ("ARRAY_PARTITION variable=u.z complete", "has no effect: u.z is a number, not an array"),
        ("ARRAY_PARTITION variable=u.q dim=2 complete", "has DIM=2, and u.q has 1 dimension"),
        ("ARRAY_PARTITION variable=u.q cyclic factor=32", "and u.q has 16 elements there"),
        ("ARRAY_PARTITION variable=u.q complete", ""),
    ],
)
def test_a_member_is_cut_as_it_is_declared(tmp_path: Path, pragma: str, said: str) -> None:
    found = lines(tmp_path, LISTED.replace("PRAGMA", f"#pragma HLS {pragma}"))
    assert len(found) == bool(said) and said in "".join(found)


def test_a_member_of_an_array_of_structs_is_an_array(tmp_path: Path) -> None:
    text = """
struct S { int u[256]; int n; };
void k(const int x[64], int y[64]) {
    S s[4];
PRAGMA
    write: for (int j = 0; j < 256; ++j)
        for (int i = 0; i < 4; ++i) { s[i].u[j] = x[j & 63]; s[i].n = i; }
    read: for (int i = 0; i < 16; ++i) {
#pragma HLS PIPELINE
        y[i] = s[i & 3].u[i * 16] + s[i & 3].n;
    }
}
"""
    for pragma in ("u complete dim=1", "u cyclic factor=8 dim=2", "n complete"):
        said = text.replace("PRAGMA", f"#pragma HLS ARRAY_PARTITION variable=s.{pragma}")
        assert lines(tmp_path, said) == []
    for pragma, wrong in (
        ("u complete dim=3", "s.u has 2 dim"),
        ("n complete dim=2", "s.n has 1 "),
    ):
        said = text.replace("PRAGMA", f"#pragma HLS ARRAY_PARTITION variable=s.{pragma}")
        assert wrong in lines(tmp_path, said)[0]
    (tmp_path / "k.cpp").write_text(text.replace("PRAGMA", ""))
    found = hls.estimate(tmp_path / "k.cpp", "k")
    assert [one.ii for one in found.loops] == [1, 1]
    assert found.as_json()["resources"]["BRAM_18K"] < 40  # 457 where an element is one word


def test_a_struct_is_one_word_of_a_fifo(tmp_path: Path) -> None:
    (tmp_path / "k.cpp").write_text("""
struct P { int a, b; };
static void make(const int x[64], P p[64]) { for (int i = 0; i < 64; ++i) p[i] = P{x[i], i}; }
static void take(const P p[64], int y[64]) { for (int i = 0; i < 64; ++i) y[i] = p[i].a + p[i].b; }
void k(const int x[64], int y[64]) {
#pragma HLS DATAFLOW
    P p[64];
#pragma HLS STREAM variable=p depth=4
    make(x, p);
    take(p, y);
}
""")
    found = hls.estimate(tmp_path / "k.cpp", "k")
    assert not [one for one in found.warnings if "STREAM" in one]
    assert found.as_json()["resources"]["BRAM_18K"] == 0


@pytest.mark.parametrize(
    "line",
    ['set_directive_aggregate "k" in', 'set_directive_data_pack "k" in',
     "set_directive_array_map -instance m -mode horizontal k t", "syn.directive.aggregate=k in"],
)  # fmt: skip
def test_directives_of_files_name_their_variable_by_place(tmp_path: Path, line: str) -> None:
    script = tmp_path / ("d.cfg" if line.startswith("syn") else "d.tcl")
    script.write_text(line + "\n")
    text = """
struct pair { short a, b; };
void k(pair in[8], int out[8]) {
    int t[8];
    for (int i = 0; i < 8; ++i) t[i] = in[i].a * in[i].b;
    for (int i = 0; i < 8; ++i) out[i] = t[7 - i];
}
"""
    found = lines(tmp_path, text, directives=script)
    assert not [one for one in found if "names no variable" in one or "has no option" in one]


def test_vitis_hls_has_given_some_pragmas_up(tmp_path: Path) -> None:
    (tmp_path / "k.cpp").write_text("""
struct pair { short a, b; };
void k(pair in[8], int out[8]) {
#pragma HLS DATA_PACK variable=in
    for (int i = 0; i < 8; ++i) out[i] = in[i].a * in[i].b;
}
""")
    said = {
        tool: hls.estimate(tmp_path / "k.cpp", "k", tool=tool).warnings[0].partition(": ")[2]
        for tool in ("vitis", "vivado")
    }
    assert said["vitis"] == (
        "DATA_PACK is of Vivado HLS, and Vitis HLS has given it up; write AGGREGATE"
    )
    assert "DATA_PACK is not modelled in this estimate" in said["vivado"]


def test_unrolled_calls_are_processes_beside_each_other(tmp_path: Path) -> None:
    text = """
#include <hls_stream.h>
static void work(hls::stream<int> &in, hls::stream<int> &out) {
    for (int i = 0; i < 16; ++i) out.write(3 * in.read());
}
void k(hls::stream<int> in[4], hls::stream<int> out[4]) {
#pragma HLS DATAFLOW
    for (int i = 0; i < 4; ++i) {
#pragma HLS UNROLL
        work(in[i], out[i]);
    }
}
"""
    source = tmp_path / "k.cpp"
    source.write_text(text)
    assert [one for one in hls.lint(source, "k", schedule=False) if one.rule == "dataflow"] == []
    source.write_text(text.replace("out[i]);", "out[i]); int unused = 0; unused += i;"))
    [found] = [one for one in hls.lint(source, "k", schedule=False) if one.rule == "dataflow"]
    assert found.line == 10


def test_half_is_a_number_among_others(tmp_path: Path) -> None:
    """libclang's bindings have no word for _Float16."""
    source = tmp_path / "k.cpp"
    source.write_text("""
#include <hls_half.h>
static half twice(half x) { return x + x; }
void k(half *sum, half x, half a[16]) {
#pragma HLS INTERFACE ap_vld port=sum
#pragma HLS INTERFACE ap_none port=x
#pragma HLS INTERFACE ap_none port=a
    half all[16];
#pragma HLS ARRAY_PARTITION variable=all complete
    for (int i = 0; i < 16; ++i) all[i] = twice(a[i]) + x;
    half total = 0;
    for (int i = 0; i < 16; ++i) total += all[i];
    *sum = total;
}
""")
    said = [one.text for one in hls.lint(source, "k", schedule=False)]
    assert len(said) == 1 and "a is an array" in said[0]
    assert hls.estimate(source, "k").as_json()["latency"]["max"] is not None


@pytest.mark.parametrize("reference", ["", "&"])
def test_a_stream_by_value_is_no_port(tmp_path: Path, reference: str) -> None:
    text = (
        "#include <hls_stream.h>\nvoid k(hls::stream<int> REFs, hls::stream<int> &t) "
        "{ t.write(s.read()); }\n"
    ).replace("REF", reference)
    found = lines(tmp_path, text)
    said = "2: argument 's' is a stream that is passed by value, which no tool takes; write "
    assert found == ([] if reference else [f"{said}hls::stream<int> &s"])
    warnings = hls.read_interface(tmp_path / "k.cpp", "k").warnings
    assert [one.partition("k.cpp:")[2] for one in warnings] == found


MISTAKES = """
void k(const int a[64], int b[64]) {
    int t[64];
    static int s[64];
#pragma HLS AT_THE_HEAD
    for (int i = 0; i < 64; ++i) {
#pragma HLS IN_THE_LOOP
        t[i] = a[i];
        s[i] += a[i];
    }
    for (int i = 0; i < 64; ++i) b[i] = t[63 - i] + s[i];
}
"""


@pytest.mark.parametrize(
    ("head", "loop", "said"),
    [
        ("", "DEPENDENCE variable=s inter false distance", "DISTANCE without a value; write dist"),
        ("", "UNROLL factor 4", "UNROLL has FACTOR without a value; write factor=VALUE"),
        ("", "PIPELINE off II=2", "PIPELINE off has no use for II=2; write one of the two"),
        ("", "DATAFLOW", "DATAFLOW overlaps nothing: no statement of this loop is a call or a"),
        ("RESET variable=t", "", "RESET has no effect: t is not static"),
        ("BIND_STORAGE variable=t type=fifo", "", "of t has no effect: k has no DATAFLOW"),
        ("ARRAY_PARTITION variable=t cyclc factor=2", "", "has no option 'cyclc'; did you mean"),
        ("RESET variable=s", "DEPENDENCE variable=s inter distance=4 true", ""),
        ("BIND_STORAGE variable=t type=ram_2p", "PIPELINE off", ""),
    ],
)
def test_directives_that_do_nothing_are_named_once(
    tmp_path: Path, head: str, loop: str, said: str
) -> None:
    text = MISTAKES
    for place, line in (("AT_THE_HEAD", head), ("IN_THE_LOOP", loop)):
        text = text.replace(place, line) if line else text.replace(f"#pragma HLS {place}\n", "\n")
    found = lines(tmp_path, text)
    own = [one for one in found if not said or said in one]
    assert len(own) == bool(said), found
    assert "type complete" not in "".join(found)
