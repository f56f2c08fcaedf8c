"""Kernels that say what cannot be: each is an error or a warning with file and line."""

from __future__ import annotations

import json
import os
import re
import time
import warnings
from pathlib import Path

import pytest
from helpers import write

from pynq_torch import hls
from pynq_torch.cli import main
from pynq_torch.errors import CacheWarning, InterfaceError, InterfaceWarning, KernelBuildError
from pynq_torch.hls import cache, preprocess

pytestmark = pytest.mark.usefixtures("own_cache")

BODY = """void k(int a, int b, int* m) {
#pragma HLS INTERFACE m_axi port=m offset=slave
%s
#pragma HLS INTERFACE s_axilite port=return
  *m = a + b;
}
"""


def read(folder: Path, *pragmas: str, tool: str = "vitis") -> hls.Interface:
    lines = "\n".join(f"#pragma HLS INTERFACE {pragma}" for pragma in pragmas)
    return hls.read_interface(write(folder / "k.cpp", BODY % lines), "k", tool=tool)


# ---- what cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pragmas", "said"),
    [
        (("s_axilite port=a offset=0x10", "s_axilite port=b offset=0x10"),
         r"k\.cpp:4: argument 'b' has offset=0x10 in s_axi_control, where argument 'a' is at"),
        (("s_axilite port=m offset=0x20", "s_axilite port=b offset=0x24"),
         r"k\.cpp:4: argument 'b' has offset=0x24 .* argument 'm' is at 0x20 to 0x27"),
        *[((f"s_axilite port=a offset={n}", "s_axilite port=b"),
           rf"k\.cpp:3: argument 'a' has offset={n} .* where {name} is at {n} ")
          for n, name in (("0x0", "AP_CTRL"), ("0x4", "GIE"), ("0x8", "IER"), ("0xc", "ISR"))],
        *[((f"s_axilite port=a offset={n}",),
           r"k\.cpp:3: offset=.* of argument 'a'; expected a multiple of 4")
          for n in ("here", "1.5", "0x1z", "-4", "0x12", "UNKNOWN+4", "1<<99999999999", "1<<40",
                    "(" * 5000, "9" * 3000, "0x1_0", "0o20", '"0x10"x')],
        (("s_axilit port=a",),
         r"k\.cpp:3: INTERFACE has no mode 's_axilit'; did you mean s_axilite\?"),
        (("mode=m_axy port=m",), r"k\.cpp:3: INTERFACE has no mode 'm_axy'; did you mean m_axi\?"),
        (("wishbone port=m",), r"k\.cpp:3: INTERFACE has no mode 'wishbone'; there are ap_ack, "),
        (("m_axi port=m offset=slvae",),
         r"k\.cpp:3: offset=slvae of an m_axi port; .*did you mean slave\?"),
        (("m_axi port=m offset=0x10",), r"k\.cpp:3: offset=0x10 of an m_axi port; expected slave"),
        (("m_axi port=a",),
         r"k\.cpp:3: m_axi of argument 'a', int, passed by value; expected a pointer, an array"),
        *[((f"m_axi port=m {option}={text}",),
           rf"k\.cpp:3: {option}={text} of port 'm'; expected a whole number of at least {least}$")
          for option, least in (
              ("depth", 1), ("latency", 0), ("num_read_outstanding", 0),
              ("num_write_outstanding", 0), ("max_read_burst_length", 0),
              ("max_write_burst_length", 0), ("max_widen_bitwidth", 0))
          for text in ("abc", "-1", "1.5")],
        (("m_axi port=m depth=0",), r"k\.cpp:3: depth=0 of port 'm'"),
        (("ap_memory port=m latency=some",), r"k\.cpp:3: latency=some of port 'm'"),
        *[((f"{mode} port=a",), rf"k\.cpp:3: {mode} of port 'a'; it is a mode of port=return")
          for mode in ("ap_ctrl_none", "ap_ctrl_hs", "ap_ctrl_chain")],
    ],
)  # fmt: skip
def test_errors_in_pragmas(tmp_path, pragmas, said):
    with pytest.raises(InterfaceError, match=said):
        read(tmp_path, *pragmas)


@pytest.mark.parametrize(
    ("pragma", "said"),
    [
        ("s_axilite port=a bundlee=x", "'bundlee', which is ignored; did you mean bundle?"),
        ("s_axilite port=a registerx", "'registerx', which is ignored; did you mean register?"),
        ("m_axi port=m max_read_burst_len=4", "did you mean max_read_burst_length?"),
        ("s_axilite port=c", "names port 'c', which k does not have; its arguments: a, b, m"),
        ("s_axilite port=a offset=slave", "offset=slave of 'a' is an option of m_axi, and ignored"),
        ("s_axilite b", "INTERFACE s_axilite names no port and is ignored; write port=b. k has"),
        ("s_axilite port=", "INTERFACE s_axilite names no port and is ignored; write port=NAME. "),
        ("s_axilite port=,", "names no port and is ignored; write port=NAME. k has return and the"),
        ("s_axilite bundle=x", "names no port and is ignored"),
        ("", ":3: INTERFACE names no port and is ignored; write port=NAME. k has return and the"),
        ("s_axilite port=a bundle=", "bundle= has no value and is ignored; write bundle=VALUE"),
        ("m_axi port=m depth=", "depth= has no value and is ignored"),
    ],
)
def test_warnings_about_pragmas(tmp_path, pragma, said):
    found = read(tmp_path, pragma).warnings
    assert len(found) == 1, found
    assert found[0].startswith(f"{tmp_path}/k.cpp:3: ")
    assert said in found[0]


@pytest.mark.parametrize(
    ("pragmas", "said"),
    [
        (("s_axilite port=a bundle=x", "s_axilite port=a bundle=y"),
         "4: bundle=y of port 'a' replaces bundle=x at {}:3; write one of them"),
        (("s_axilite port=b offset=0x40", "s_axilite port=b offset=0x48"),
         "4: offset=0x48 of port 'b' replaces offset=0x40 at {}:3; write one of them"),
        (("axis port=m",), "3: axis of port 'm', which is m_axi at {}:2; write one of them"),
        (("m_axi port=m offset=off",),
         "3: offset=off of port 'm' replaces offset=slave at {}:2; write one of them"),
        (("axis s_axilite port=b",), "3: axis and s_axilite of port 'b'; write one of them"),
        (("ap_ctrl_none port=return", "ap_ctrl_chain port=return"),
         "4: ap_ctrl_chain of port 'return', which is ap_ctrl_none at {}:3; write one of them"),
    ],
)  # fmt: skip
def test_pragmas_that_contradict_each_other(tmp_path, pragmas, said):
    file = tmp_path / "k.cpp"
    assert read(tmp_path, *pragmas).warnings == (f"{file}:{said.format(file)}",)


def test_pragmas_that_complete_each_other(tmp_path):
    pragmas = ("s_axilite port=a", "s_axilite port=a bundle=x", "ap_none port=a")
    assert read(tmp_path, *pragmas).warnings == ()


def test_a_stream_has_no_register(tmp_path):
    text = "#include <hls_stream.h>\nvoid k(hls::stream<int>& s) {\n%s\n  s.write(1);\n}\n"
    path = write(tmp_path / "k.cpp", text % "#pragma HLS INTERFACE s_axilite port=s")
    (found,) = hls.read_interface(path, "k").warnings
    assert found == (
        f"{path}:3: s_axilite of argument 's', a stream, has no register and is ignored; write axis"
    )


def test_a_bundle_that_can_name_no_port(tmp_path):
    with pytest.raises(InterfaceError, match=r"k\.cpp:3: bundle=a-b; expected letters, digits"):
        read(tmp_path, "s_axilite port=a bundle=a-b")


def test_a_pragma_outside_the_function(tmp_path):
    text = "#pragma HLS INTERFACE s_axilite port=a\n" + BODY % ""
    found = hls.read_interface(write(tmp_path / "k.cpp", text), "k").warnings
    assert [item.split(";")[0] for item in found] == [
        f"{tmp_path}/k.cpp:1: INTERFACE is outside every function and is ignored"
    ]


def test_a_port_with_a_letter_beyond_ascii(tmp_path):
    text = (BODY % "#pragma HLS INTERFACE s_axilite port=ä offset=0x40").replace("int a", "int ä")
    found = hls.read_interface(write(tmp_path / "k.cpp", text.replace("a + b", "ä")), "k")
    assert (found.warnings, found.argument("ä").offset) == ((), 0x40)


def test_a_misspelt_keyword(tmp_path):
    text = BODY % "#pragma HLS INTERFCE s_axilite port=a"
    found = hls.read_interface(write(tmp_path / "k.cpp", text), "k").warnings
    text = "INTERFCE is no HLS pragma and is ignored; did you mean INTERFACE?"
    assert found == (f"{tmp_path}/k.cpp:3: {text}",)


@pytest.mark.parametrize(
    "pragma",
    [
        *[f"{mode} port=a" for mode in (
            "ap_none", "ap_stable", "ap_vld", "ap_ack", "ap_hs", "ap_auto", "AP_NONE register",
            "s_axilite", "s_axilite register")],
        *[f"{mode} port=m" for mode in ("ap_ovld", "ap_fifo", "ap_memory", "bram", "ap_bus")],
        *[f"{mode} port=return" for mode in (
            "ap_ctrl_none", "ap_ctrl_hs", "ap_ctrl_chain", "s_axilite", "ap_ctrl_hs autorestart")],
        "axis register port=m register_mode=both",
        "mode = s_axilite port = a bundle = CTRL clock=ap_clk2 name=first offset = 0x40",
        "s_axilite port = a, b",
        "m_axi depth=4 latency=8 num_read_outstanding=2 num_write_outstanding=2 port=m "
        "max_read_burst_length=16 max_write_burst_length=16 max_widen_bitwidth=64 offset=direct "
        "bundle=g channel=1",
        "m_axi port=m offset=off", "m_axi port=m offset=SLAVE",
        "ap_memory port=m storage_type=ram_1p latency=2", "bram port=m storage_impl=bram",
        "s_axilite port=return interrupt=on", "ap_none port=a direct_io=true",
    ],
)  # fmt: skip
def test_every_word_of_the_manuals_passes(tmp_path, pragma):
    # BODY has an m_axi port=m already, which some of these contradict.
    text = BODY % f"#pragma HLS INTERFACE {pragma}"
    text = text.replace("int* m", "int m[4]") if "ap_memory" in pragma or "bram" in pragma else text
    found = hls.read_interface(write(tmp_path / "k.cpp", text), "k").warnings
    assert [item for item in found if "write one of them" not in item] == []


def test_the_older_pragma_and_other_pragmas_pass(tmp_path):
    text = BODY % (
        '#pragma HLS RESOURCE core=AXI4LiteS variable=a metadata="-bus_bundle LITE"\n'
        "#pragma HLS RESOURCE variable=b core=AXI4LiteS\n#pragma HLS PIPELINE II=1\n"
        "#pragma HLS INLINE\n#pragma HLS"
    )
    found = hls.read_interface(write(tmp_path / "k.cpp", text), "k", tool="vivado")
    assert found.warnings == ()
    assert "LITE" in found.bundles


@pytest.mark.parametrize(
    ("declaration", "pragma", "said"),
    [
        ("int k(int* m)", "m_axi port=return", "3: m_axi of the return value, int, passed by val"),
        ("void k(hls::stream<int>& s)", "m_axi port=s", "3: m_axi of argument 's', .*, a stream;"),
        ("void k(int m[4][2])", "s_axilite port=m\n#pragma HLS ARRAY_PARTITION variable=m dim=3",
         "4: dim=3 in ARRAY_PARTITION of 'm'; expected a number from 0 to 2"),
        *[("void k(int m[4])",
           f"s_axilite port=m\n#pragma HLS ARRAY_PARTITION variable=m cyclic {factor}",
           f"4: {factor or 'factor='} in ARRAY_PARTITION of 'm'; expected a number of at least 1")
          for factor in ("", "factor=abc", "factor=0")],
        ("void k(int m)", "s_axilite port=m\n#pragma HLS RESOURCE core=AXI4LiteS",
         "4: RESOURCE core=AXI4LiteS names no argument; write variable=NAME"),
    ],
)  # fmt: skip
def test_errors_that_depend_on_the_argument(tmp_path, declaration, pragma, said):
    text = f"#include <hls_stream.h>\n{declaration} {{\n#pragma HLS INTERFACE {pragma}\n}}\n"
    with pytest.raises(InterfaceError, match=rf"k\.cpp:{said}"):
        hls.read_interface(write(tmp_path / "k.cpp", text), "k")


@pytest.mark.parametrize(
    "value", ["N", "SIZE", "SIZE*2", "TWICE(2)", "Sizes::ALL", "LOCAL", "sizeof(int)", "64u"]
)
def test_a_number_may_be_what_only_a_compiler_evaluates(tmp_path, value):
    text = (
        "#define SIZE 8\n#define TWICE(n) (2 * n)\nstruct Sizes { static const int ALL = 3; };\n"
        "template <int N> void k(int* m) {\n  const int LOCAL = 4;\n"
        f"#pragma HLS INTERFACE m_axi port=m depth={value}\n  *m = N + LOCAL;\n}}\n"
    )
    assert hls.read_interface(write(tmp_path / "k.cpp", text), "k<4>").warnings == ()


# ---- files beside the source ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("directives.tcl", "\nset_directive_interface -mode s_axilit k a\n",
         r"directives\.tcl:2: INTERFACE has no mode 's_axilit'"),
        ("directives.tcl", "set_directive_interface \\\n -mode s_axilite -offset 8 k a\n",
         r"directives\.tcl:1: argument 'a' has offset=0x8 .*IER"),
        ("k.cfg", "[hls]\nsyn.directive.interface=k a mode=s_axilte\n",
         r"k\.cfg:2: INTERFACE has no mode 's_axilte'; did you mean s_axilite\?"),
        ("k.cfg", "syn.directive.interface=k a mode=s_axilite offset=x\n",
         r"k\.cfg:1: offset=x of argument 'a'"),
        ("k.cfg", "syn.directive.interface=k m mode=m_axi latency=-1\n",
         r"k\.cfg:1: latency=-1 of port 'm'"),
        ("directives.tcl", "set_directive_interface -mode m_axi -latency -1 k m\n",
         r"directives\.tcl:1: latency=-1 of port 'm'"),
        ("directives.tcl", "set_directive_interface -mode m_axi k a\n",
         r"directives\.tcl:1: m_axi of argument 'a'"),
        ("k.cfg", "syn.interface.m_axi_offset=slvae\n",
         r"k\.cfg:1: config_interface has m_axi_offset=slvae; .* did you mean slave\?"),
        ("directives.tcl", "config_interface -m_axi_addr64=trie\n",
         r"directives\.tcl:1: config_interface has m_axi_addr64=trie; .* did you mean true\?"),
        ("k.cfg", "syn.interface.s_axilite_data64=2\n", r"k\.cfg:1: .*s_axilite_data64=2; expect"),
    ],
)  # fmt: skip
def test_errors_in_files(tmp_path, file, text, said):
    write(tmp_path / file, text)
    with pytest.raises(InterfaceError, match=said):
        read(tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "directives.tcl",
            'set_directive_interface -mode s_axilite "k a\n',
            "No closing quo",
        ),
        (
            "directives.tcl",
            "set_directve_interface -mode s_axilite k a\n",
            "mean set_directive_i",
        ),
        (
            "directives.tcl",
            "set_directive_interfce -mode s_axilite k a\n",
            "mean set_directive_i",
        ),
        ("directives.tcl", "set_directive_interface -mode ap_none -bndle x k a\n", "mean bundle"),
        ("directives.tcl", "set_directive_interface -mode $m k a\n", "variable of Tcl"),
        ("directives.tcl", "config_interface -m_axi_adr64=0\n", "did you mean m_axi_addr64"),
        ("k.cfg", "syn.interface.m_axi_adr64=0\n", "did you mean m_axi_addr64"),
        ("k.cfg", "syn.directive.interfase=k a mode=ap_none\n", "mean syn.directive.interface"),
        ("k.cfg", "syn.directive.interface=k mode=ap_none\n", "ap_none names no port and is ign"),
        ("directives.tcl", "set_directive_interface -mode ap_none k\n", "ap_none names no port"),
        ("k.cfg", "flow_target=vitsi\n", "flow_target=vitsi is ignored; expected vivado or vitis"),
    ],
)
def test_warnings_about_files(tmp_path, file, text, said):
    write(tmp_path / file, text)
    found = read(tmp_path).warnings
    assert len(found) == 1, found
    assert found[0].startswith(f"{tmp_path / file}:1: ")
    assert re.search(said, found[0])


def test_other_commands_and_keys_pass(tmp_path):
    write(tmp_path / "directives.tcl",
          "set_directive_inline k\nset_directive_top -name k\nconfig_compile -name_max_length 9\n"
          "open_solution -flow_target vivado s1\nset_directive_pipeline k/L\n")  # fmt: skip
    write(tmp_path / "k.cfg", "[hls]\nsyn.directive.inline=k\nsyn.compile.name_max_length=9\n")
    (tmp_path / "folder.cfg").mkdir()
    assert read(tmp_path).warnings == ()


# ---- sources that are no C++ ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#error not for this board\n" + BODY % "", r"k\.cpp:1:.*error: #error not for this board"),
        ("int f() {\n  if (1) {\n  return 0;\n}\n" + BODY % "", r"k\.cpp:\d+:.*error: "),
        ((BODY % "").rstrip()[:-1], r"k\.cpp:\d+:.*error: .*(expected|at end of input)"),
        (BODY % "#if 1", r"k\.cpp:3:.*error: unterminated #if"),
    ],
)
def test_a_source_that_is_no_cpp(tmp_path, text, said):
    path = write(tmp_path / "k.cpp", text)
    with pytest.raises(KernelBuildError, match=said):
        hls.read_interface(path, "k")


def test_what_may_come_of_a_missing_header_is_a_warning(tmp_path):
    text = '#include "vendor.h"\n#ifndef VENDOR\n#error vendor.h is too old\n#endif\n' + BODY % ""
    (found,) = hls.read_interface(write(tmp_path / "k.cpp", text), "k").warnings
    assert found == f"{tmp_path}/k.cpp:3: vendor.h is too old (headers are missing)"


def test_a_name_that_is_not_declared_is_a_warning(tmp_path):
    text = (BODY % "").replace("a + b", "a + c")
    (found,) = hls.read_interface(write(tmp_path / "k.cpp", text), "k").warnings
    assert found == f"{tmp_path}/k.cpp:5: 'c' was not declared in this scope"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("int k(float) { return 0; }\nint k(int) { return 1; }",
         r"the top function 'k' is defined more than once: .*k\.cpp:3, .*k\.cpp:4\. Name its"),
        ("namespace a { void k() {} }\nnamespace b { void k() {} }", "more than once"),
        ("int* k(int* m) { return m; }", r"k\.cpp:3: k returns an address, which HLS makes no"),
        ("int& k(int& m) { return m; }", "k returns an address"),
        ("void k(std::vector<int>& v) {}", r"k\.cpp:3: argument 'v' is a std::vector, which takes"),
        ("void k(std::string s) {}", "argument 's' is a std::basic_string"),
    ],
)  # fmt: skip
def test_functions_that_cannot_be_a_top(tmp_path, text, said):
    path = write(tmp_path / "k.cpp", f"#include <string>\n#include <vector>\n{text}\n")
    with pytest.raises(InterfaceError, match=said):
        hls.read_interface(path, "k")


def test_a_helper_of_the_same_name_in_a_namespace(tmp_path):
    helper = "namespace detail { void k(float x) {} }\n"
    for text in (helper + BODY % "", BODY % "" + helper):
        found = hls.read_interface(write(tmp_path / "k.cpp", text), "k")
        assert [item.name for item in found.arguments] == ["a", "b", "m"]


def test_a_name_that_a_macro_spells_is_found_in_its_folder(tmp_path):
    text = "#define TOP k\n" + (BODY % "").replace("void k(", "void TOP(")
    path = write(tmp_path / "k" / "k.cpp", text)
    assert hls.find_kernel("k", [tmp_path]).source == path
    path.write_text("int unrelated;\n")
    assert hls.find_kernel("k", [tmp_path]) is None


def test_a_header_that_links_to_itself(tmp_path):
    (tmp_path / "k.h").symlink_to("k.h")
    path = write(tmp_path / "k.cpp", '#include "k.h"\n' + BODY % "")
    with pytest.raises(KernelBuildError, match="Too many levels of symbolic links"):
        hls.build(hls.KernelSource("k", path), cflags=["-O0"])


def test_a_build_in_a_folder_that_is_gone(tmp_path, monkeypatch):
    path = write(tmp_path / "k.cpp", BODY % "")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert hls.build(hls.KernelSource("k", path), cflags=["-O0"]).executable.is_file()


# ---- where it is said ----------------------------------------------------------------------------


def test_interface_prints_warnings(tmp_path, capsys):
    read(tmp_path, "s_axilite port=a bundlee=x")
    assert main(["hls", "interface", str(tmp_path / "k.cpp"), "--top", "k"]) == 0
    assert f"warning: {tmp_path}/k.cpp:3: INTERFACE has no option" in capsys.readouterr().out
    assert main(["hls", "interface", str(tmp_path / "k.cpp"), "--top", "k", "--json"]) == 0
    assert "warning: " in capsys.readouterr().err


def test_every_build_warns_and_so_does_every_testbench(tmp_path, capsys):
    read(tmp_path, "s_axilite port=a bundlee=x")
    source = hls.KernelSource("k", tmp_path / "k.cpp")
    for cached in (False, True):
        with pytest.warns(InterfaceWarning, match=r"k\.cpp:3: .*bundlee"):
            assert hls.build(source, cflags=["-O0"]).cached == cached
    bench = "void k(int, int, int*);\nint main() { int m; k(1, 2, &m); return m != 3; }"
    write(tmp_path / "k_tb.cpp", bench)
    for _ in range(2):
        assert main(["hls", "test", str(tmp_path / "k.cpp")]) == 0
        assert f"warning: {tmp_path}/k.cpp:3: INTERFACE has no option" in capsys.readouterr().err
    with pytest.raises(InterfaceError):
        read(tmp_path, "s_axilite port=a offset=4")
    assert main(["hls", "test", str(tmp_path / "k.cpp")]) == 1
    assert "k.cpp:3: argument 'a' has offset=0x4" in capsys.readouterr().err


# ---- sources that nothing should read ------------------------------------------------------------


def one_line(capsys, *arguments: str) -> str:
    """Run a command that fails; it says why in one line and ends soon."""
    begin = time.monotonic()
    assert main(["hls", "interface", *arguments]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert time.monotonic() - begin < 120
    return said


@pytest.mark.parametrize("define", ["", "=", "1A", "A B", "A-B", "A\n"])
def test_macros_that_are_none(tmp_path, capsys, define):
    read(tmp_path)
    said = one_line(
        capsys, str(tmp_path / "k.cpp"), "--top", "k", f"-D{define}" if define else "-D="
    )
    assert "is no macro; expected NAME or NAME=VALUE" in said
    assert main(["hls", "interface", str(tmp_path / "k.cpp"), "--top", "k", "-D", ""]) == 1


def odd_file(folder: Path, kind: str) -> str:
    path = folder / "odd"
    if kind == "device":
        return "/dev/zero"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "huge":
        path.touch()
        os.truncate(path, 1 << 40)
    else:
        path.write_bytes(b"\x7fELF\0\1\2" * 1000)
    return str(path)


KINDS = {
    "device": "is a device, pipe or socket", "folder": "is a folder",
    "pipe": "is a device, pipe or socket", "huge": "has 1048576 MB, more than the 64 MB",
    "binary": "is a binary file", "loop": "Too many levels of symbolic links",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_sources_that_nothing_should_read(tmp_path, capsys, kind):
    assert KINDS[kind] in one_line(capsys, odd_file(tmp_path, kind), "--top", "k")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("folder", "loop")])
def test_headers_that_nothing_should_read(tmp_path, capsys, kind):
    odd = odd_file(tmp_path, kind)
    write(tmp_path / "between.h", f'#include "gone.h"\n#include "{odd}"\n')
    path = write(tmp_path / "k.cpp", '#include "between.h"\n' + BODY % "")
    said = one_line(capsys, str(path), "--top", "k")
    assert f"between.h: the header {odd} {KINDS[kind]}" in said


def test_a_header_that_a_macro_names_is_bounded_too(tmp_path, capsys):
    path = write(tmp_path / "k.cpp", '#define H "/dev/zero"\n#include H\n' + BODY % "")
    assert "needs more than 10 s, 2 GB or 64 MB" in one_line(capsys, str(path), "--top", "k")


@pytest.mark.parametrize("use", ["int x[] = {B30};", "#if B30\n#endif"])
def test_macros_that_multiply_themselves(tmp_path, capsys, monkeypatch, use):
    monkeypatch.setattr(preprocess, "_CPU_S", 1)
    bomb = "#define B0 1+1\n" + "".join(
        f"#define B{n + 1} B{n}+B{n}+B{n}\n" for n in range(30)
    )  # fmt: skip
    path = write(tmp_path / "k.cpp", f"{bomb}{use}\n" + BODY % "")
    said = one_line(capsys, str(path), "--top", "k")
    assert "Look for a macro that multiplies itself" in said


def test_a_macro_that_multiplies_itself_in_a_pragma(tmp_path):
    bomb = "#define B0 1+1\n" + "".join(f"#define B{n + 1} B{n}+B{n}+B{n}\n" for n in range(30))
    text = bomb + BODY % "#pragma HLS INTERFACE s_axilite port=a offset=B30"
    with pytest.raises(InterfaceError, match="offset=B30 of argument 'a'"):
        hls.read_interface(write(tmp_path / "k.cpp", text), "k")


def test_a_search_does_not_wait_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.cpp")
    (tmp_path / "gone.cpp").symlink_to("nowhere")
    assert hls.find_kernel("pipe", [tmp_path]) is None


# ---- lines are counted as the compiler counts them -----------------------------------------------


def test_a_form_feed_and_windows_lines_move_no_pragma(tmp_path):
    path = tmp_path / "k.cpp"
    path.write_bytes(
        b"// a\x0c\x1c\xc2\x85\r\n\x0c\r\n" + (BODY % "").replace("\n", "\r\n").encode()
    )
    interface = hls.read_interface(path, "k")
    assert (interface.control_bundle, interface.argument("m").offset) == ("control", 0x10)


# ---- results that are damaged --------------------------------------------------------------------


def truncate(path: Path) -> None:
    os.truncate(path, 100)


def fill(path: Path) -> None:
    path.write_bytes(b"x" * path.stat().st_size)


def fill_and_keep_the_time(path: Path) -> None:
    status = path.stat()
    fill(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def close(path: Path) -> None:
    path.chmod(0o644)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (truncate, "has 100 bytes, expected"),
        (fill, "has another content"),
        (fill_and_keep_the_time, "has another content"),
        (close, "is not executable"),
        (Path.unlink, "cannot be read .No such file"),
    ],
)
def test_a_damaged_engine_is_built_again_and_that_is_said_once(tmp_path, damage, said):
    source = write(tmp_path / "tool.cpp", "int main() { return 7; }\n")
    program = hls.compile_engine(source, cflags=["-O0"])
    damage(program)
    with pytest.warns(CacheWarning, match=f"{program} {said}.*it is built again") as caught:
        again = hls.compile_engine(source, cflags=["-O0"])
    assert len(caught) == 1
    assert os.access(again, os.X_OK)
    assert again.stat().st_size > 1000
    assert not program.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hls.compile_engine(source, cflags=["-O0"]) == again


@pytest.mark.parametrize(
    "damage",
    [
        {"name": "../../outside"},
        {"name": 5},
        {"files": []},
        {"files": {"\0": ""}},
        {"results": {"engine": [1]}},
    ],
)
def test_an_index_that_is_damaged_is_no_entry_and_removes_nothing(tmp_path, own_cache, damage):
    outside = write(tmp_path / "outside" / "file", "the user's")
    source = write(tmp_path / "source.txt", "")
    os.utime(source, (1, 1))
    key = cache.digest("test")
    with cache.scratch() as folder:
        write(folder / "engine", "")
        cache.store(key, folder, [str(source)], (), {})
    index = own_cache / "index" / f"{key}.json"
    index.write_text(json.dumps([json.loads(index.read_text())[0] | damage]))
    assert cache.find(key) is None
    for make in (Path.mkdir, os.mkfifo):
        index.unlink()
        make(index)
        assert cache.find(key) is None
        with cache.scratch() as folder:
            write(folder / "engine", "")
            cache.store(key, folder, [str(source)], (), {})
        assert cache.find(key) is not None
    source.unlink()
    os.mkfifo(source)
    assert cache.find(key) is None
    assert outside.read_text() == "the user's"


def test_a_copied_cache_is_good(tmp_path):
    """Copying gives files a new time; their content is what counts."""
    source = write(tmp_path / "tool.cpp", "int main() { return 7; }\n")
    program = hls.compile_engine(source, cflags=["-O0"])
    was = program.stat().st_mtime_ns
    os.utime(program, (1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hls.compile_engine(source, cflags=["-O0"]) == program
    assert program.stat().st_mtime_ns == was


@pytest.mark.parametrize(
    "pragma", ["s_axilite port=a port=b", "s_axilite port=b offset=0x10 OFFSET=0x20"]
)
def test_an_option_with_two_values_is_an_error(tmp_path, pragma):
    with pytest.raises(InterfaceError, match=r"k\.cpp:3: .* in one pragma"):
        read(tmp_path, pragma)


@pytest.mark.parametrize("declared", ["int** p", "int* p[4]", "const int* const* p"])
def test_pointers_to_pointers_are_no_ports(tmp_path, declared):
    source = write(tmp_path / "k.cpp", f"\nvoid k({declared}, int n, int* y) {{ *y = p[0][n]; }}\n")
    with pytest.raises(InterfaceError, match=r"k\.cpp:2: argument 'p' points to pointers, "):
        hls.read_interface(source, "k")


def test_a_path_that_libclang_cannot_read(tmp_path):
    with pytest.raises(InterfaceError, match=r"\\udcff.*is no UTF-8, .*; rename the file"):
        hls.read_interface(write(tmp_path / os.fsdecode(b"\xff") / "k.cpp", BODY % ""), "k")


# ---- pragmas that do nothing ---------------------------------------------------------------------

NOTHING = {
    "#pragma HLS PIPELNIE II=1": "PIPELNIE is no HLS pragma and is ignored; did you mean PIPELINE?",
    "#pragma HSL PIPELINE": "#pragma HSL is ignored; did you mean #pragma HLS?",
    "#pragma HLS UNROLL fctor=2": "UNROLL has no option 'fctor'; did you mean factor?",
    "#pragma HLS ARRAY_PARTITION variable=n complete": "ARRAY_PARTITION names 'n', which k has not",
}
#: Likewise; the way from the words to the commands is the same.
NO_VALUES = {
    "#pragma HLSPIPELINE II=1": "#pragma HLSPIPELINE is ignored; did you mean #pragma HLS PIP",
    "#pragma HLS PIPELINE II=0": "PIPELINE has II=0; expected a whole number of at least 1",
    "#pragma HLS PIPELINE II=1.5": "PIPELINE has II=1.5; expected a whole number of at least 1",
    "#pragma HLS UNROLL factor=": "UNROLL has FACTOR=nothing; expected a whole number",
    "#pragma HLS LOOP_TRIPCOUNT min=-1": "LOOP_TRIPCOUNT has MIN=-1; expected a whole number",
    "#pragma HLS PIPELINE style=fpl": "PIPELINE has STYLE=fpl; expected one of flp, frp, stp; did",
    "#pragma HLS BIND_OP variable=a op=add impl=fuldsp": "BIND_OP has IMPL=fuldsp; expected one",
    "#pragma HLS BIND_OP variable=a op=faddd": "BIND_OP has OP=faddd; expected one of add, sub,",
    "#pragma HLS ALLOCATION operation instances=mul": "ALLOCATION has no limit, so it limits",
}


@pytest.mark.parametrize("pragma", NOTHING)
def test_a_pragma_that_does_nothing_is_told_wherever_the_kernel_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pragma: str
) -> None:
    source = write(tmp_path / "k.cpp", BODY % "for (int i = 0; i < 4; i++) {\n%s\nm[i] = 0;\n}")
    write(source, source.read_text() % pragma)
    write(tmp_path / "k_tb.cpp", "void k(int, int, int*); int main() { int m[4]; k(1, 2, m); }")
    where, text = f"{source}:4: ", NOTHING[pragma]
    for command in ("interface", "test", "build"):
        arguments = ["hls", command, str(source), "--top", "k"]
        assert main(arguments) == 0
        assert main([*arguments, "--strict"]) == 1
        said = capsys.readouterr()
        assert (said.err if command != "interface" else said.out + said.err).count(
            where + text
        ) == 2
    with pytest.warns(InterfaceWarning, match=re.escape(where + text)):
        hls.build(hls.KernelSource("k", source))  # as the board does when it loads the kernel


def test_a_dimension_that_a_local_array_has_not(tmp_path: Path) -> None:
    partition = "#pragma HLS ARRAY_PARTITION complete variable="
    asked = ("t dim=1", "t dim=2", "g dim=2", "g dim=3", "g dim=0")
    lines = ["int t[4]; float g[4][8];", *(partition + one for one in asked)]
    source = write(tmp_path / "k.cpp", BODY % "\n".join(lines))
    found = [warning.split(": ", 1)[1] for warning in hls.read_interface(source, "k").warnings]
    assert found == [
        "ARRAY_PARTITION has DIM=2, and t has 1 dimension",
        "ARRAY_PARTITION has DIM=3, and g has 2 dimensions",
    ]


def test_values_that_a_pragma_cannot_have(tmp_path: Path) -> None:
    loops = [f"for (int i = 0; i < 4; i++) {{\n{pragma}\nm[i] = 0;\n}}" for pragma in NO_VALUES]
    good = "#pragma HLS PIPELINE II=2u style=FLP\n#pragma HLS UNROLL factor=2*2"
    loops.append(f"for (int i = 0; i < 4; i++) {{\n{good}\nm[i] = 0;\n}}")
    source = write(tmp_path / "k.cpp", BODY % "\n".join(loops))
    found = hls.read_interface(source, "k").warnings
    expected = [f"{source}:{4 * n}: {text}" for n, text in enumerate(NO_VALUES.values(), start=1)]
    assert [w[: len(text)] for w, text in zip(found, expected, strict=True)] == expected
