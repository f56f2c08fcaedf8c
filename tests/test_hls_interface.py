"""Deriving a kernel's interface from its C++: pragmas, directions, types, names, bundles."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pynq.registers import RegisterMap

from pynq_torch.errors import InterfaceError
from pynq_torch.hls import Interface, read_interface
from pynq_torch.hls.source import read_source


@pytest.fixture
def read(tmp_path):
    def read(text, top="top", tool="vitis", name="kernel.cpp", **options):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return read_interface(path, top, tool=tool, **options)

    return read


def lite(*ports, bundle=""):
    bundle = f" bundle={bundle}" if bundle else ""
    return "".join(f"#pragma HLS INTERFACE s_axilite port={port}{bundle}\n" for port in ports)


def offsets(interface, bundle="control"):
    return {r.name: r.offset for r in interface.bundles[bundle] if r.role != "control"}


# ---- spellings of the pragma --------------------------------------------------------------------


@pytest.mark.parametrize(
    "pragma",
    [
        "#pragma HLS INTERFACE m_axi port=x offset=slave bundle=gmem0 depth=64",
        "#pragma HLS INTERFACE mode=m_axi port=x offset=slave bundle=gmem0 depth=SIZE",
        "#pragma hls interface mode=m_axi bundle=gmem0 depth = 64 port = x offset=slave",
        "#pragma HLS interface m_axi depth=SIZE*1 \\\n  port=x bundle=gmem0 // a comment",
        '_Pragma("HLS INTERFACE m_axi port=x bundle=gmem0 depth=64")',
        "DO_PRAGMA(HLS INTERFACE m_axi port=x bundle=gmem0 depth=SIZE)",
        "#ifdef MISSING\n#pragma HLS INTERFACE s_axilite port=x\n#else\n"
        "#pragma HLS INTERFACE m_axi port=x bundle=gmem0 depth=64\n#endif",
        "#pragma\tHLS\tINTERFACE\tm_axi\tport=x\tbundle=gmem0\tdepth=0x40",
        "#pragma HLS INTERFACE m_axi port=x bundle=gmem0\n#pragma HLS INTERFACE port=x depth=64",
        # an inactive duplicate and a commented one
        "//#pragma HLS INTERFACE axis port=x\n"
        "#pragma HLS INTERFACE m_axi port=x bundle=gmem0 depth=64",
    ],
)
def test_every_spelling_of_a_pragma(read, pragma):
    interface = read(
        "#define SIZE (8 * 8)\n#define DO_PRAGMA(x) _Pragma(#x)\n"
        f"void top(int* x) {{\n{pragma}\n{lite('return')}*x = 1; }}"
    )
    x = interface.argument("x")
    assert (x.kind, x.m_axi_bundle, x.length) == ("m_axi", "gmem0", 64)
    assert interface.axi_bundles["gmem0"].arguments == ("x",)


def test_several_ports_in_one_pragma(read):
    interface = read(f"void top(int a, int b) {{\n{lite('a,b', 'return')}}}")
    assert offsets(interface) == {"a": 0x10, "b": 0x18}


def test_constexpr_in_a_pragma(read):
    interface = read(
        "constexpr int N = 4 * 8;\nvoid top(int* x) {\n"
        "#pragma HLS INTERFACE m_axi port=x depth=N\n}"
    )
    assert interface.argument("x").length == 32


def test_the_older_resource_pragma(read):
    interface = read(
        "void top(int a) {\n"
        '#pragma HLS RESOURCE variable=a core=AXI4LiteS metadata="-bus_bundle CFG"\n'
        '#pragma HLS RESOURCE variable=return core=AXI4LiteS metadata="-bus_bundle CFG"\n}',
        tool="vivado",
    )
    assert interface.control_bundle == "CFG"
    assert offsets(interface, "CFG") == {"a": 0x10}


def test_pragmas_of_other_functions_do_not_count(read):
    interface = read(
        "void other(int a) {\n#pragma HLS INTERFACE s_axilite port=a\n}\n"
        f"void top(int a) {{\n{lite('return')}}}"
    )
    assert interface.argument("a").kind == "none"


def test_a_pragma_for_a_port_that_is_not_there_is_a_warning(read):
    interface = read(f"void top(int a) {{\n{lite('a', 'b', 'return')}}}")
    assert any("'b'" in text and "its arguments: a" in text for text in interface.warnings)


# ---- control ------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["ap_ctrl_hs", "ap_ctrl_chain", "ap_ctrl_none"])
def test_block_protocols(read, protocol):
    interface = read(
        f"void top(int a) {{\n#pragma HLS INTERFACE {protocol} port=return\n"
        f"{lite('a', 'return') if protocol != 'ap_ctrl_none' else lite('a')}}}"
    )
    assert interface.control == protocol
    assert offsets(interface) == {"a": 0x10}
    names = {r.name for r in interface.bundles["control"]}
    assert ("AP_CTRL" in names) == (protocol != "ap_ctrl_none")


def test_without_a_pragma_on_return_the_block_signals_are_wires(read):
    interface = read(f"void top(int a) {{\n{lite('a')}}}")
    assert interface.control == "ap_ctrl_hs"
    assert interface.control_bundle is None


def test_return_value(read):
    interface = read(f"long long top(int a) {{\n{lite('a', 'return')}return a; }}")
    assert offsets(interface) == {"ap_return": 0x10, "a": 0x1C}
    assert interface.returns is not None
    assert (interface.returns.width, interface.returns.offset) == (64, 0x10)


# ---- types --------------------------------------------------------------------------------------


SCALARS = {
    "bool": 1,
    "char": 8,
    "unsigned short": 16,
    "int": 32,
    "uint64_t": 64,
    "float": 32,
    "double": 64,
    "half": 16,
    "ap_int<17>": 17,
    "ap_uint<1>": 1,
    "ap_fixed<16, 6>": 16,
    "ap_ufixed<33, 20, AP_RND, AP_SAT>": 33,
    "fixed_t": 24,
    "Sized<9>::type": 9,
    "Colour": 32,
    "std::complex<float>": 64,
    "hls::vector<short, 4>": 64,
    "Pair": 64,
}


def test_width_of_every_scalar(read):
    names = [f"x{i}" for i in range(len(SCALARS))]
    arguments = ", ".join(f"{ctype} {x}" for ctype, x in zip(SCALARS, names, strict=True))
    interface = read(
        "#include <complex>\n#include <cstdint>\n#include <ap_int.h>\n#include <ap_fixed.h>\n"
        "#include <hls_half.h>\n#include <hls_vector.h>\n"
        "typedef ap_fixed<24, 8> fixed_t;\nenum Colour { red };\nstruct Pair { int a; char b; };\n"
        "template <int N> struct Sized { typedef ap_uint<N> type; };\n"
        f"void top({arguments}) {{\n{lite(*names, 'return')}}}"
    )
    found = {c: a.width for c, a in zip(SCALARS, interface.arguments, strict=True)}
    assert found == SCALARS
    expected = 0x10
    for bits, argument in zip(SCALARS.values(), interface.arguments, strict=True):
        assert argument.offset == expected
        expected += 4 * -(-bits // 32) + 4


def test_arrays(read):
    interface = read(
        "#include <ap_int.h>\n#define N 16\n"
        "void top(const int a[N], unsigned char b[2][N], ap_int<17> c[4], bool d[8]) {\n"
        f"{lite('a', 'b', 'c', 'd', 'return')}}}"
    )
    spans = {r.name: (r.nbytes, r.width, r.argument) for r in interface.bundles["control"][4:]}
    assert spans == {"a": (64, 32, "a"), "b": (32, 8, "b"), "c": (16, 17, "c"), "d": (8, 1, "d")}
    assert interface.argument("b").length == 32
    assert interface.argument("a").kind == "memory"


def test_partitioned_array_becomes_registers(read):
    interface = read(
        "void top(int m[3], int* y) {\n#pragma HLS ARRAY_PARTITION variable=m complete\n"
        f"{lite('m', 'y', 'return')}*y = m[0] + m[1] + m[2]; }}"
    )
    assert list(offsets(interface)) == ["m_0", "m_1", "m_2", "y", "y_ctrl"]


def test_struct_is_one_value_in_vitis_and_members_in_vivado(read):
    source = (
        "#include <ap_int.h>\nstruct S { int a; ap_int<8> b; };\n"
        f"void top(S s) {{\n{lite('s', 'return')}}}"
    )
    assert offsets(read(source)) == {"s": 0x10}
    members = offsets(read(source, tool="vivado"), "AXILiteS")
    assert members == {"s_a": 0x10, "s_b_V": 0x18}


def test_disaggregated_struct_in_vitis(read):
    interface = read(
        "struct S { int a; char b; };\nvoid top(S s) {\n"
        f"#pragma HLS disaggregate variable=s\n{lite('s', 'return')}}}"
    )
    assert offsets(interface) == {"s_a": 0x10, "s_b": 0x18}


def test_m_axi_widths(read):
    interface = read(
        "#include <ap_int.h>\n#include <hls_burst_maxi.h>\n"
        "void top(char* a, ap_uint<128>* b, hls::burst_maxi<int> c, volatile double* d) {\n"
        "#pragma HLS INTERFACE m_axi port=a bundle=g0\n"
        "#pragma HLS INTERFACE m_axi port=b bundle=g0\n"
        "#pragma HLS INTERFACE m_axi port=c bundle=g1\n"
        f"#pragma HLS INTERFACE m_axi port=d bundle=g2\n{lite('return')}}}"
    )
    assert {n: b.data_bits for n, b in interface.axi_bundles.items()} == {
        "g0": 128, "g1": 32, "g2": 64,
    }  # fmt: skip
    assert interface.argument("c").kind == "burst_maxi"
    assert offsets(interface) == {"a": 0x10, "b": 0x1C, "c": 0x28, "d": 0x34}


def test_m_axi_ports_are_as_wide_as_they_may_be_made(read):
    interface = read(
        "constexpr int BITS = 64;\nvoid top(char* a, int* b, int* c) {\n"
        "#pragma HLS INTERFACE m_axi port=a bundle=g0 max_widen_bitwidth=BITS\n"
        "#pragma HLS INTERFACE m_axi port=b bundle=g1 max_widen_bitwidth=0\n"
        "#pragma HLS INTERFACE m_axi port=c bundle=g0\n*a = *b = *c; }"
    )
    assert {n: b.data_bits for n, b in interface.axi_bundles.items()} == {"g0": 64, "g1": 32}


def test_burst_ports_know_whether_they_are_read_or_written(read):
    """By value, through functions and templates: a copy of the port is the same port."""
    interface = read(
        "#include <hls_burst_maxi.h>\n"
        "template <typename T> void put(hls::burst_maxi<T> to, T value) {\n"
        "    to.write_request(0, 1); to.write(value); to.write_response();\n}\n"
        "int get(hls::burst_maxi<int> from) { from.read_request(0, 1); return from.read(); }\n"
        "void both(hls::burst_maxi<int>& p) { put<int>(p, get(p)); }\n"
        "void top(hls::burst_maxi<int> a, hls::burst_maxi<int> b, hls::burst_maxi<int> c) {\n"
        + "".join(f"#pragma HLS INTERFACE m_axi port={p} bundle=g{p}\n" for p in "abc")
        + f"{lite('return')}\n  put<int>(b, get(a));\n  both(c);\n}}"
    )
    directions = {a.name: a.direction for a in interface.arguments}
    assert directions == {"a": "in", "b": "out", "c": "inout"}


# ---- streams ------------------------------------------------------------------------------------

STREAMS = "#include <hls_stream.h>\n#include <ap_axi_sdata.h>\n"


PAYLOADS = {
    "int": (4, False, False, False, 0, 0, 0),
    "ap_uint<12>": (2, False, False, False, 0, 0, 0),
    "hls::vector<float, 4>": (16, False, False, False, 0, 0, 0),
    "Pixel": (3, False, False, False, 0, 0, 0),
    "ap_axis<32, 2, 5, 6>": (4, True, True, True, 2, 5, 6),
    "ap_axiu<8, 0, 0, 0>": (1, True, True, True, 0, 0, 0),
    "hls::axis<float, 1, 0, 0>": (4, True, True, True, 1, 0, 0),
    "hls::axis_data<int, AXIS_ENABLE_DATA | AXIS_ENABLE_LAST>": (4, True, False, False, 0, 0, 0),
    "Packet": (4, True, False, False, 0, 0, 0),
}


def test_what_a_stream_carries(read):
    arguments = ", ".join(f"hls::stream<{payload}>& s{i}" for i, payload in enumerate(PAYLOADS))
    interface = read(
        STREAMS + "#include <hls_vector.h>\nstruct Pixel { unsigned char r, g, b; };\n"
        f"struct Packet {{ float data; ap_uint<1> last; }};\nvoid top({arguments}) {{}}"
    )
    found = {}
    for payload, s in zip(PAYLOADS, interface.arguments, strict=True):
        axis = s.axis
        assert axis is not None
        assert (s.kind, s.width) == ("axis", 8 * axis.data_bytes)
        found[payload] = (axis.data_bytes, axis.has_last, axis.has_keep, axis.has_strb,
                          axis.user_bits, axis.id_bits, axis.dest_bits)  # fmt: skip
    assert found == PAYLOADS


def test_stream_directions_through_functions(read):
    interface = read(
        STREAMS + "typedef hls::stream<int> S;\n"
        "static void load(S& from, S& to) { to.write(from.read()); }\n"
        "static void store(S& from, S to[2]) { int v; from >> v; to[1] << v; }\n"
        "template <class T> void drop(hls::stream<T>& s) { T v; s.read_nb(v); }\n"
        "void top(S& a, S b[2], S* c) {\n"
        "#pragma HLS INTERFACE axis port=a\n#pragma HLS INTERFACE axis port=b\n"
        "S mid; load(a, mid); store(mid, b); drop(*c); }"
    )
    assert [a.direction for a in interface.arguments] == ["in", "out", "in"]
    assert interface.argument("b").axis.count == 2


def test_arrays_behind_axis_ports(read):
    interface = read(
        "void top(const int a[64], short b[32]) {\n#pragma HLS INTERFACE axis port=a,b\n"
        "for (int i = 0; i < 32; ++i) b[i] = a[2 * i]; }"
    )
    assert [(a.kind, a.direction, a.width, a.length) for a in interface.arguments] == [
        ("axis_array", "in", 32, 64),
        ("axis_array", "out", 16, 32),
    ]


# ---- directions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "direction"),
    [
        ("", "in"),
        ("*y = a;", "out"),
        ("y[0] = a;", "out"),
        ("*y += a;", "inout"),
        ("(*y)++;", "inout"),
        ("a = *y;", "in"),
        ("*y = *y + 1;", "inout"),
        ("if (a) *y = 1;", "out"),
        ("*y = 0; for (int i = 0; i < a; ++i) *y += i;", "out"),
        ("if (a) *y = 0; *y += 1;", "inout"),
        ("if (a) *y = 0; else *y = 1; *y += 1;", "out"),
        ("for (int i = 0; i < a; ++i) *y = 0; *y += 1;", "inout"),
        ("switch (a) { case 1: *y = 1; break; case 2: a = *y; }", "inout"),
        ("switch (a) { case 1: *y = 1; a = *y; break; }", "out"),
        ("set(*y);", "out"),
        ("set_pointer(y);", "out"),
        ("get(y);", "in"),
        ("bump(*y);", "inout"),
        ("elsewhere(y);", "inout"),
        ("look(y);", "in"),
        ("int* p = y; *p = a;", "out"),
        ("int& r = *y; a = r;", "in"),
        ("int* p; p = y + 0; *p = 2;", "out"),
        ("int v[1] = {3}; memcpy(y, v, 4);", "out"),
        ("int v[1]; memcpy(v, y, 4);", "in"),
        ("a = y != 0;", "in"),
        ("*y = twice(a);", "out"),
        ("recurse(y, a);", "out"),
        ("store<int>(y, a);", "out"),
        ("a = a ? *y : 0;", "in"),
    ],
)
def test_direction_of_a_pointer(read, body, direction):
    interface = read(
        "#include <cstring>\n"
        "void elsewhere(int* p); void look(const int* p);\n"
        "static void set(int& r) { r = 1; }\nstatic void set_pointer(int* p) { *p = 1; }\n"
        "static int get(int* p) { return p[0]; }\nstatic void bump(int& r) { ++r; }\n"
        "static int twice(int v) { return 2 * v; }\n"
        "static void recurse(int* p, int n) { if (n) recurse(p, n - 1); *p = n; }\n"
        "template <class T> void store(T* p, T v) { *p = v; }\n"
        f"void top(int a, int* y) {{\n{lite('a', 'y', 'return')}{body}\n}}"
    )
    assert interface.argument("y").direction == direction


AP_INT_BODIES = {
    "y = x;": "out",
    "y += x;": "inout",
    "y.range(3, 0) = x;": "inout",
    "y[0] = 1;": "inout",
    "y = x; y[0] = 1;": "out",
    "int v = y.to_int(); (void)v;": "in",
    "if (y > 3) return;": "in",
}


def test_direction_of_an_ap_int_reference(read):
    helpers = "".join(
        f"static void f{i}(ap_int<8> x, ap_int<8>& y) {{ {body} }}\n"
        for i, body in enumerate(AP_INT_BODIES)
    )
    arguments = ", ".join(f"ap_int<8>& y{i}" for i in range(len(AP_INT_BODIES)))
    calls = " ".join(f"f{i}(x, y{i});" for i in range(len(AP_INT_BODIES)))
    interface = read(
        f"#include <ap_int.h>\n{helpers}void top(ap_int<8> x, {arguments}) {{ {calls} }}"
    )
    found = [argument.direction for argument in interface.arguments[1:]]
    assert dict(zip(AP_INT_BODIES, found, strict=True)) == AP_INT_BODIES


def test_registers_of_the_directions(read):
    interface = read(
        f"void top(int* i, int* o, int* x) {{\n{lite('i', 'o', 'x', 'return')}*o = *i; *x += 1; }}"
    )
    assert offsets(interface) == {
        "i": 0x10, "o": 0x18, "o_ctrl": 0x1C, "x_i": 0x28, "x_o": 0x30, "x_o_ctrl": 0x34,
    }  # fmt: skip
    x, o = interface.argument("x"), interface.argument("o")
    assert (x.kind, x.offset, x.offset_out, x.offset_valid) == ("scalar_ptr", 0x28, 0x30, 0x34)
    assert (o.offset, o.offset_out, o.offset_valid) == (0x18, None, 0x1C)


def test_ap_none_takes_the_valid_word_away(read):
    interface = read(
        f"void top(int* y) {{\n{lite('y', 'return')}"
        "#pragma HLS INTERFACE ap_none port=y\n*y = 1; }"
    )
    assert offsets(interface) == {"y": 0x10}
    assert interface.argument("y").offset_valid is None


# ---- names and bundles --------------------------------------------------------------------------


def test_names_that_hls_changes(read):
    source = (
        "#include <ap_int.h>\n"
        f"void top(int in, int size, int start, ap_int<4> v) {{\n"
        f"{lite('in', 'size', 'start', 'v', 'return')}}}"
    )
    assert list(offsets(read(source))) == ["in_r", "size", "start_r", "v"]
    vivado = offsets(read(source, tool="vivado"), "AXILiteS")
    assert list(vivado) == ["in_r", "size", "start", "v_V"]


def test_pointer_called_like_its_master(read):
    interface = read(
        "void top(int* a, int* out) {\n#pragma HLS INTERFACE m_axi port=a bundle=A\n"
        f"#pragma HLS INTERFACE m_axi port=out bundle=out\n{lite('return')}}}"
    )
    assert list(offsets(interface)) == ["a_offset", "out_r_r"]


@pytest.mark.parametrize(("tool", "bits"), [("vitis", 64), ("vivado", 32)])
def test_address_width(read, tool, bits):
    interface = read(
        f"void top(int* a, int n) {{\n#pragma HLS INTERFACE m_axi port=a offset=slave\n"
        f"{lite('a', 'n', 'return', bundle='CTRL')}}}",
        tool=tool,
    )
    assert interface.bundles["CTRL"][4].width == bits
    assert interface.axi_bundles["gmem"].address_bits == bits
    assert interface.argument("n").offset == (0x1C if bits == 64 else 0x18)


def test_pointer_without_its_own_pragma_opens_the_default_bundle_in_vitis(read):
    source = (
        "void top(int* a, int n) {\n#pragma HLS INTERFACE m_axi port=a offset=slave\n"
        f"{lite('n', 'return', bundle='CFG')}}}"
    )
    vitis = read(source)
    assert offsets(vitis) == {"a": 0x10}
    assert offsets(vitis, "CFG") == {"n": 0x10}
    # Vivado HLS joins it to the only bundle.
    assert offsets(read(source, tool="vivado"), "CFG") == {"a": 0x10, "n": 0x18}


def test_a_bundle_called_control_takes_the_name_of_the_default(read):
    interface = read(
        "void top(int* a, int n) {\n#pragma HLS INTERFACE m_axi port=a offset=slave\n"
        f"{lite('n', 'return', bundle='control')}}}"
    )
    assert set(interface.bundles) == {"control", "control_r"}


def test_m_axi_without_offset_has_no_register_in_vivado(read):
    interface = read(
        f"void top(int* a) {{\n#pragma HLS INTERFACE m_axi port=a\n{lite('return')}}}",
        tool="vivado",
    )
    a = interface.argument("a")
    assert (a.kind, a.bundle, a.offset) == ("m_axi", None, None)
    assert any("offset=off" in note for note in interface.notes)


def test_offset_in_the_pragma_wins(read):
    interface = read(
        "#define AT 0x100u\nvoid top(int a, int b) {\n"
        f"#pragma HLS INTERFACE s_axilite port=a offset=AT\n{lite('b', 'return')}}}"
    )
    assert offsets(interface) == {"b": 0x10, "a": 0x100}


# ---- where the top function stands --------------------------------------------------------------


@pytest.mark.parametrize(
    ("declaration", "top", "qualified"),
    [
        ('extern "C" { void top(int a) {BODY} }', "top", "top"),
        ('extern "C" void top(int a) {BODY}', "top", "top"),
        ("static void top(int a) {BODY}", "top", "top"),
        ("namespace one { namespace two { void top(int a) {BODY} } }", "top", "one::two::top"),
        ("namespace one { void top(int a) {BODY} }", "one::top", "one::top"),
        ("void top(int); void top(int a) {BODY}", "top", "top"),
        ("template <class T, int N> void top(T a) {BODY}", "top<int, 4>", "top<int, 4>"),
    ],
)
def test_places_of_the_top_function(read, declaration, top, qualified):
    body = "\n#pragma HLS INTERFACE s_axilite port=a\n#pragma HLS INTERFACE s_axilite port=return\n"
    interface = read(declaration.replace("BODY", body), top=top)
    assert interface.qualified == qualified
    assert offsets(interface) == {"a": 0x10}


# ---- files beside the source --------------------------------------------------------------------

PLAIN = "void top(int* a, int n) { for (int i = 0; i < n; ++i) a[i] = 0; }"


def test_directives_tcl(read, tmp_path):
    project = tmp_path / "prj" / "solution1"
    project.mkdir(parents=True)
    (project / "directives.tcl").write_text(
        "# written by the tool\n"
        'set_directive_interface -mode m_axi -depth 16 -offset slave -bundle g "top" a\n'
        'set_directive_interface -mode s_axilite -register -bundle CTRL "top" n\n'
        'set_directive_interface -mode s_axilite -bundle CTRL "top" return\n'
        'set_directive_interface -mode s_axilite "other" x\n'
        'set_directive_interface -mode s_axilite "unbalanced\n'
    )
    interface = read(PLAIN, tool="vivado")
    assert interface.argument("a").length == 16
    assert offsets(interface, "CTRL") == {"a": 0x10, "n": 0x18}


def test_hls_config_cfg(read, tmp_path):
    (tmp_path / "hls_config.cfg").write_text(
        "part=xc7z020clg400-1\n[hls]\nsyn.top=top\n"
        "syn.directive.interface=top a mode=m_axi bundle=g depth=8\n"
        "syn.directive.interface=top return mode=s_axilite\n"
        "syn.directive.interface=top n mode=s_axilite offset=0x40\n"
        "syn.interface.m_axi_addr64=0\n"
    )
    interface = read(PLAIN)
    assert offsets(interface) == {"a": 0x10, "n": 0x40}
    assert interface.axi_bundles["g"].address_bits == 32


def test_config_of_another_kernel_is_ignored(read, tmp_path):
    (tmp_path / "other.cfg").write_text("syn.top=other\nsyn.interface.m_axi_addr64=0\n")
    interface = read(f"void top(int* a) {{\n#pragma HLS INTERFACE m_axi port=a\n{lite('return')}}}")
    assert interface.axi_bundles["gmem"].address_bits == 64


def test_kernel_flow_gives_every_argument_a_port(read, tmp_path):
    (tmp_path / "hls_config.cfg").write_text("flow_target=vitis\n[hls]\nsyn.top=top\n")
    interface = read(PLAIN)
    assert interface.control == "ap_ctrl_chain"
    assert offsets(interface) == {"a": 0x10, "n": 0x1C}
    assert interface.argument("a").m_axi_bundle == "gmem"


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("s_axilite_data64=1", {"n": 0x20}),
        ("s_axilite_auto_restart_counter=1", {"n": 0x14}),
    ],
)
def test_options_that_move_the_data(read, tmp_path, option, expected):
    (tmp_path / "hls_config.cfg").write_text(f"[hls]\nsyn.interface.{option}\n")
    assert offsets(read(f"void top(int n) {{\n{lite('n', 'return')}}}")) == expected


# ---- what goes wrong ----------------------------------------------------------------------------


def test_a_missing_header_that_does_not_matter(read):
    interface = read(f'#include "vendor.h"\nvoid top(int a) {{\n{lite("a", "return")}}}')
    assert offsets(interface) == {"a": 0x10}
    assert any("vendor.h" in note for note in interface.notes)


def test_a_missing_header_that_takes_a_type_away(read):
    with pytest.raises(InterfaceError, match=r"'a'.*data_t.*types\.h.*include_dirs"):
        read(f'#include "types.h"\nvoid top(data_t a) {{\n{lite("a", "return")}}}')


def test_an_unknown_type_behind_a_stream_changes_no_register(read):
    interface = read(
        '#include "video.h"\nvoid top(AXI_STREAM& s, int n) {\n'
        f"#pragma HLS INTERFACE axis port=s\n{lite('n', 'return')}}}"
    )
    assert offsets(interface) == {"n": 0x10}
    assert any("s: type not known" in note for note in interface.notes)


def test_headers_spelt_as_on_windows(read, tmp_path):
    (tmp_path / "Types.h").write_text("typedef short data_t;\n")
    interface = read(f'#include "types.h"\nvoid top(data_t a) {{\n{lite("a", "return")}}}')
    assert interface.argument("a").width == 16


def test_include_dirs_and_defines(read, tmp_path):
    folder = tmp_path / "inc"
    folder.mkdir()
    (folder / "types.h").write_text("#include <ap_int.h>\ntypedef ap_int<WIDTH> data_t;\n")
    interface = read(
        f"#include <types.h>\nvoid top(data_t a) {{\n{lite('a', 'return')}}}",
        include_dirs=[folder],
        defines=["WIDTH=21"],
    )
    assert interface.argument("a").width == 21


def test_no_such_function(read):
    with pytest.raises(InterfaceError, match=r"'top'; it defines helper, main_function"):
        read("void main_function() {}\nvoid helper() {}")


def test_a_declaration_is_no_definition(read):
    with pytest.raises(InterfaceError, match="no definition of the top function 'top'"):
        read("void top(int a);")


def test_a_template_needs_its_arguments(read):
    with pytest.raises(InterfaceError, match="name the instance"):
        read("template <int N> void top(int a) {}")


def test_no_such_file(tmp_path):
    with pytest.raises(InterfaceError, match=r"absent\.cpp: cannot be read"):
        read_interface(tmp_path / "absent.cpp", "top")


def test_unknown_tool(read):
    with pytest.raises(InterfaceError, match="tool 'quartus' is unknown; expected"):
        read("void top() {}", tool="quartus")


def test_array_of_unknown_size(read):
    with pytest.raises(InterfaceError, match="needs its size"):
        read(f"void top(int a[]) {{\n{lite('a', 'return')}}}")


def test_no_arguments(read):
    interface = read(f"void top() {{\n{lite('return')}}}")
    assert interface.arguments == ()
    with pytest.raises(KeyError, match="no argument 'x'; it has: none"):
        interface.argument("x")


def test_json_and_back(read):
    interface = read(
        STREAMS + "int top(int* x, hls::stream<ap_axis<32, 1, 1, 1>>& s, const short a[8]) {\n"
        "#pragma HLS INTERFACE m_axi port=x\n#pragma HLS INTERFACE axis port=s\n"
        f"{lite('a', 'return')}return x[0]; }}"
    )
    text = json.dumps(interface.as_json())
    assert Interface.from_json(json.loads(text)) == interface
    data = json.loads(text)
    assert data["bundles"]["control"][0]["name"] == "AP_CTRL"
    assert data["m_axi"]["gmem"]["arguments"] == ["x"]
    assert data["axis"]["s"]["has_last"] is True


# ---- registers that pynq cannot show ------------------------------------------------------------


def _pynq_shows(name):
    """Whether pynq's register map can set, print and get a register of this name."""
    part = {"access": "read-write", "description": ""}
    register = part | {"address_offset": 16, "size": 32, "fields": {
        name: part | {"bit_offset": 0, "bit_width": 32}}}  # fmt: skip
    words = np.zeros(16, np.uint32)
    try:
        registers = RegisterMap.create_subclass("top", {name: register})(words)
        setattr(registers, name, 5)
        repr(registers)  # as a notebook shows it
        return int(getattr(registers, name)) == words[4] == 5
    except (AttributeError, RecursionError, TypeError):
        return False


@pytest.mark.parametrize("name", ["width", "address", "debug", "height", "mode", "data"])
def test_a_name_that_breaks_the_register_map_of_pynq_is_a_warning(read, name):
    interface = read(f"int top(int {name}) {{\n{lite(name, 'return')}return {name}; }}")
    warned = [w for w in interface.warnings if f"a register called {name!r} breaks" in w]
    assert bool(warned) != _pynq_shows(name)
    assert all("kernel.cpp:1: " in warning for warning in warned)


def test_a_syntax_tree_is_kept_as_long_as_nothing_changes(tmp_path):
    header, source = tmp_path / "own.hpp", tmp_path / "kernel.cpp"
    header.write_text("typedef int number;\n")
    source.write_text('#include "own.hpp"\nvoid top(number x) {}\n')

    def tree(inner=None, **options):
        with read_source(source, **options) as found:
            assert found.unit.cursor.spelling == str(source)
            return found.unit if inner is None else (found.unit, inner())

    first = tree()
    assert tree() is first
    outer, inner = tree(inner=tree)  # the one in use is for nobody else
    assert outer is first and inner is not first
    assert tree(defines=["number=float"]) is not first and tree(appendix="int y;") is not first
    for text in ("typedef short number;\n", "/* */ typedef short number;\n"):
        header.write_text(text)
        changed = tree()
        assert changed is not first
        first = changed
    source.write_text('#include "own.hpp"\nvoid top(number* x) {}\n')
    assert tree() is not first
