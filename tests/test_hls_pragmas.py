"""Pragmas that say nothing to the tool: each is a warning, in lint and beside an estimate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pynq_torch import hls
from pynq_torch.errors import KernelBuildError

STRUCTS = """
struct Inner { int q[4]; int z; };
struct Outer { int v[8]; Inner in; int w; };
struct Plain { int a; short b; };
void k(const int a[64], int b[64], Outer &s, Plain t, Plain u[16]) {
WHAT
    loop: for (int i = 0; i < 64; ++i) {
INSIDE
        b[i] = a[i] * s.v[i & 7] + s.in.q[i & 3] + t.a + u[i & 15].b;
    }
}
"""


def said(folder: Path, text: str, top: str = "k", **options: str) -> list[str]:
    """Return the warnings of an estimate, without their files."""
    source = folder / "k.cpp"
    source.write_text(text)
    found = hls.estimate(source, top, **options)  # type: ignore[arg-type]
    return [re.sub(r"^.*?(\d+): ", r"\1: ", one) for one in found.warnings]


def structs(outside: str = "", inside: str = "") -> str:
    pragma = "#pragma HLS {}".format
    within = inside if "#" in inside or not inside else pragma(inside)
    return STRUCTS.replace("WHAT", pragma(outside) if outside else "").replace("INSIDE", within)


@pytest.mark.parametrize(
    ("pragma", "expected"),
    [
        ("ARRAY_PARTITION variable=s.v complete", None),
        ("ARRAY_PARTITION variable=s.in.q complete", None),
        ("BIND_STORAGE variable=s.v type=ram_2p", None),
        ("ARRAY_PARTITION variable=s.q complete", "names 's.q', and s has no such member; its "),
        ("ARRAY_PARTITION variable=s.in.qq complete", "s.in has no such member; did you mean q?"),
        ("BIND_STORAGE variable=u->c type=ram_2p", "names 'u.c', and u has no such member"),
        ("DEPENDENCE variable=s.vv inter false", "did you mean v?"),
        ("ARRAY_PARTITION variable=s complete", None),
        ("ARRAY_PARTITION variable=t complete", "t is a struct, and there is no array in it"),
        ("ARRAY_PARTITION variable=AA complete", "names 'AA', which k has not; did you mean a?"),
        (
            "PROTOCOL mode=flotting",
            "MODE=flotting; expected one of fixed, floating; did you mean fl",
        ),
        ("CACHE port=aa lines=8 depth=64", "CACHE names 'aa', which k has not; did you mean a?"),
        ("ALIAS ports=a,bb distance=4", "ALIAS names 'bb', which k has not; did you mean b?"),
    ],
)
def test_what_a_pragma_names_is_there(tmp_path: Path, pragma: str, expected: str | None) -> None:
    found = said(tmp_path, structs(pragma))
    about = [one for one in found if "is not modelled" not in one]
    assert (expected is None) == (not about)
    assert expected is None or (about[0].startswith("6: ") and expected in about[0])


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("#pragma PIPELINE", "HLS PIPELINE"),
        ("#pragma UNROLL factor=2", "HLS UNROLL"),
        ("  # pragma loop_tripcount max=4  // a guess", "HLS LOOP_TRIPCOUNT"),
        ("#pragma once_more", None),
        ("#pragma GCC ivdep", None),
    ],
)
def test_a_pragma_without_hls_is_seen(tmp_path: Path, line: str, meant: str | None) -> None:
    found = said(tmp_path, structs(inside=line))
    assert [one.partition("; ")[2] for one in found] == (
        [f"did you mean #pragma {meant}?"] if meant else []
    )


def test_what_the_compiler_takes_for_its_own_is_named(tmp_path: Path) -> None:
    with pytest.raises(KernelBuildError, match="did you mean #pragma HLS UNROLL factor=4?"):
        said(tmp_path, structs(inside="#pragma unroll factor=4"))


def test_an_error_may_be_where_no_file_is(tmp_path: Path) -> None:
    for at in ('#line 900 "made_up.cpp"', "#line 900"):
        with pytest.raises(KernelBuildError, match="undeclared identifier 'nothing'"):
            said(tmp_path, f"{at}\nvoid k(int a[4]) {{ a[0] = nothing; }}\n")


def test_a_name_is_near_in_its_own_case(tmp_path: Path) -> None:
    text = """
void k(const int a[8], int b[8]) {
    int A[8];
#pragma HLS ARRAY_PARTITION variable=AA complete
    for (int i = 0; i < 8; ++i) A[i] = a[7 - i];
    for (int i = 0; i < 8; ++i) b[i] = A[i ^ 1];
}
"""
    assert any("did you mean A?" in one for one in said(tmp_path, text))


PORTS = """
void add(const int x[64], int &sum) {
    for (int i = 0; i < 64; ++i) sum += x[i];
}
void k(int a[64], int b[64], int c[4], int *y) {
WHAT
    add(a, *y);
    copy: for (int i = 0; i < 64; ++i) b[i] = a[READ] + c[i & 3];
}
"""


@pytest.mark.parametrize(
    ("pragma", "expected"),
    [
        ("ap_none port=a", "ap_none needs a scalar, and a is an array; partition it completely"),
        ("mode=ap_vld port=b", "ap_vld needs a scalar, and b is an array"),
        ("ap_none port=c\n#pragma HLS ARRAY_PARTITION variable=c complete", None),
        ("ap_none port=y", None),
        ("ap_fifo port=b", None),
        ("ap_memory port=a", None),
        ("ap_fifo port=a", "ap_fifo of a cannot work: an element is read several times"),
    ],
)
def test_an_interface_that_its_argument_cannot_have(
    tmp_path: Path, pragma: str, expected: str | None
) -> None:
    text = PORTS.replace("WHAT", f"#pragma HLS INTERFACE {pragma}").replace("READ", "i")
    found = said(tmp_path, text)
    assert bool(found) == (expected is not None)
    assert expected is None or (found[0].startswith("6: INTERFACE") and expected in found[0])
    rules = [one for one in hls.lint(tmp_path / "k.cpp", "k") if one.rule == "pragma"]
    about = [one.text for one in rules if "ports of it" not in one.text]  # c_0 ... are not followed
    assert [one.partition(": ")[2] for one in found] == about


def test_a_fifo_has_neither_addresses_nor_a_way_back(tmp_path: Path) -> None:
    text = PORTS.replace("add(a, *y);", "*y = 0;").replace(
        "WHAT", "#pragma HLS INTERFACE axis port=a"
    )
    assert not said(tmp_path, text.replace("READ", "i"))
    assert "read in another order than 0, 1, 2" in said(tmp_path, text.replace("READ", "63 - i"))[0]
    text = text.replace("b[i] = ", "a[i] = ").replace("READ", "i")
    assert "it is read and written, and a FIFO goes one way" in said(tmp_path, text)[0]


@pytest.mark.parametrize(
    "body",
    [
        "if (n) { TO = FROM; } else { TO = FROM + 1; }",
        "if (n) { TO = FROM; return; }\n TO = FROM * 2;",
        "switch (n) { case 0: TO = FROM; break; case 1: TO = FROM + 3; break; }",
    ],
)
def test_each_branch_may_take_the_words_of_a_fifo(tmp_path: Path, body: str) -> None:
    for words in ("TO = FROM + 2", "TO = FROM", "TO = FROM + 1", "TO = FROM + 3", "TO = FROM * 2"):
        copied = words.replace("TO", "out[i]").replace("FROM", "in[i]")
        body = body.replace(f"{words};", f"for (int i = 0; i < 64; ++i) {copied};")
    text = f"""
void k(const int in[64], int out[64], int n) {{
#pragma HLS INTERFACE axis port=in
#pragma HLS INTERFACE ap_fifo port=out
    {body}
}}
"""
    assert text.count("for") > 1
    assert not said(tmp_path, text)


def test_streams_of_an_array_go_through_dataflow(tmp_path: Path) -> None:
    text = """
#include <hls_stream.h>
static void work(hls::stream<int> &a, hls::stream<int> &b) {
    loop: for (int i = 0; i < 16; ++i) b.write(a.read() + 1);
}
void k(hls::stream<int> in[2], hls::stream<int> &out) {
#pragma HLS INTERFACE axis port=in
#pragma HLS INTERFACE axis port=out
#pragma HLS DATAFLOW
    work(in[0], out);
}
"""
    assert not said(tmp_path, text)
    assert hls.estimate(tmp_path / "k.cpp", "k").loops[0].ii == 1


def test_members_of_a_union_without_a_name_are_not_missed(tmp_path: Path) -> None:
    text = """
struct Both { union { int w[4]; float f[4]; }; int z; };
namespace ns { int table[4]; }
void k(const int a[8], int b[8]) {
    Both s;
#pragma HLS ARRAY_PARTITION variable=s.w complete
#pragma HLS ARRAY_PARTITION variable=ns::table complete
    for (int i = 0; i < 8; ++i) s.w[i & 3] = a[i];
    for (int i = 0; i < 8; ++i) b[i] = s.w[i & 3] + ns::table[i & 3];
}
"""
    assert not said(tmp_path, text)


def test_an_array_of_one_element_is_a_scalar_port(tmp_path: Path) -> None:
    text = "void k(int a[SIZE], int b) {\n#pragma HLS INTERFACE ap_none port=a\n    a[0] = b;\n}\n"
    assert not said(tmp_path, text.replace("SIZE", "1"))
    assert "needs a scalar" in said(tmp_path, text.replace("SIZE", "2"))[0]


def test_a_semicolon_ends_no_name(tmp_path: Path) -> None:
    text = PORTS.replace("READ", "i").replace("WHAT", "#pragma HLS INTERFACE m_axi port=bEND")
    blocks = []
    for end in ("", ";"):
        assert not said(tmp_path, text.replace("END", end))
        blocks.append(hls.estimate(tmp_path / "k.cpp", "k").resources["BRAM_18K"])
    assert blocks[0] == blocks[1] != 0


def test_words_of_structs_go_through_a_fifo_as_one(tmp_path: Path) -> None:
    text = """
struct Beat { int data; bool last; };
void k(const Beat in[64], Beat out[64]) {
#pragma HLS INTERFACE axis port=in
#pragma HLS INTERFACE axis port=out
    for (int i = 0; i < 64; ++i) {
        out[i].data = in[i].data + 1;
        out[i].last = in[i].last;
    }
}
"""
    assert not said(tmp_path, text)


def test_only_the_top_function_has_ports(tmp_path: Path) -> None:
    inner = "#pragma HLS INTERFACE ap_fifo port=x\n    for"
    text = PORTS.replace("WHAT", "").replace("READ", "i").replace("for", inner, 1)
    assert said(tmp_path, text)[0].startswith("3: INTERFACE in add has no effect: only the top")
    assert not said(tmp_path, text.replace("ap_fifo port=x", "ap_none register port=x"))
    assert not any("only the top" in one for one in said(tmp_path, text, "add"))


def test_vivado_hls_knows_no_bind_op(tmp_path: Path) -> None:
    text = """
void k(const int a[64], int b[64]) {
    int t[64];
#pragma HLS BIND_STORAGE variable=t type=ram_1p impl=lutram
    first: for (int i = 0; i < 64; ++i) {
        int m = a[i] * i;
#pragma HLS BIND_OP variable=m op=mul impl=fabric
        t[i] = m;
    }
    second: for (int i = 0; i < 64; ++i) b[i] = t[63 - i];
}
"""
    found = said(tmp_path, text, tool="vivado")
    assert [one.partition("; ")[0] for one in found] == [
        "4: BIND_STORAGE is of Vitis HLS, and Vivado HLS ignores it",
        "7: BIND_OP is of Vitis HLS, and Vivado HLS ignores it",
    ]
    asked, plain = (
        hls.estimate(tmp_path / "k.cpp", "k", tool=tool).resources for tool in ("vitis", "vivado")
    )
    assert (asked["DSP"], asked["BRAM_18K"]) == (0, 0)
    assert plain["DSP"] and plain["BRAM_18K"] == 1
    assert not said(tmp_path, text, tool="vitis")


@pytest.mark.parametrize(
    ("more", "reached", "advice"),
    [
        ("", 2, "ask for RAM_2P, not RAM_1P"),
        (" + t[i - 1] + t[i - 2]", 4, "ask for RAM_2P, not RAM_1P, and partition it by 2"),
    ],
)
def test_the_memory_that_was_asked_for_is_named(
    tmp_path: Path, more: str, reached: int, advice: str
) -> None:
    text = f"""
void k(const int a[64], int b[64]) {{
    int t[64];
#pragma HLS BIND_STORAGE variable=t type=ram_1p
    first: for (int i = 0; i < 64; ++i) t[i] = a[i] * i;
    second: for (int i = 2; i < 64; ++i) b[i] = t[63 - i] + t[i]{more};
}}
"""
    (tmp_path / "k.cpp").write_text(text)
    first, second = hls.estimate(tmp_path / "k.cpp", "k").loops
    assert (first.ii, second.ii) == (1, reached)
    assert f"takes one a cycle; {advice} (k.cpp:6)" in second.why


def test_latency_of_a_block_is_not_that_of_the_loop_around(tmp_path: Path) -> None:
    text = """
void k(const int a[64], int b[64], int n) {
    loop: for (int i = 0; i < 64; ++i) {
OUTSIDE
        int v = a[i] + n;
        {
INSIDE
            v = v * v;
        }
        b[i] = v;
    }
}
"""
    pragma = "#pragma HLS LATENCY min=40"

    def depth(outside: str, inside: str) -> tuple[int | None, int | None]:
        found = text.replace("OUTSIDE", outside).replace("INSIDE", inside)
        (tmp_path / "k.cpp").write_text(found)
        return hls.estimate(tmp_path / "k.cpp", "k").loops[0].iteration_latency

    assert depth(pragma, "") == (41, 41)
    assert depth("", pragma) == depth("", "") < (40, 40)
    assert (
        "LATENCY is not modelled in this estimate: what is in the braces"
        in said(tmp_path, text.replace("OUTSIDE", "").replace("INSIDE", pragma))[0]
    )
