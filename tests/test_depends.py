"""What a build was made from: dependency files of g++ and Verilator, and files not yet there."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from helpers import write
from hypothesis import given, settings
from hypothesis import strategies as st
from rtl_model import Model

from pynq_torch import hls
from pynq_torch.board.rtl.build import BuiltModel, build_model
from pynq_torch.board.rtl.sources import find_rtl
from pynq_torch.errors import CacheWarning
from pynq_torch.hls import cache, depends, headers
from pynq_torch.hls.toolchain import compiler

pytestmark = pytest.mark.usefixtures("own_cache")

KERNEL = """
#include "scale.h"
#if __has_include("extra.h")
#include "extra.h"
#endif
int scale(int x) {
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=return
    return FACTOR * x;
}
"""
#: A constant on a stream, from a file of its own.
MODULE = """module constant (input wire ap_clk, input wire ap_rst_n,
  output wire [7:0] y_TDATA, output wire y_TVALID, input wire y_TREADY);
`include "value.vh"
  assign y_TDATA = `VALUE;
  assign y_TVALID = 1'b1;
  wire unused = &{ap_clk, ap_rst_n, y_TREADY, 1'b0};
endmodule
"""
#: Two folders have every character; where a quote or a newline is, C++ and Verilog need a detour.
ODD = ["a b#$HOME\\:%'äö", 'q"uote', 'new\n>"line']


# ---- the readers --------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.lists(
        st.text(" \t\n#$\\:%\"'`|;&()*?[]{}~=,ab\u00e4\u2028\x0c", min_size=1, max_size=6),
        min_size=1,
        max_size=3,
        unique=True,
    )
)
def test_reader_gives_what_gcc_read(names):
    with tempfile.TemporaryDirectory() as base:
        folders = [Path(base) / name for name in names]
        for number, folder in enumerate(folders):
            write(folder / f"h{number}.h", "")
        lines = [f'#include "h{n}.h"\n' for n in range(len(names))]
        source = write(folders[0] / "k.c", "".join(lines))
        listing = Path(base) / "listing.d"
        command = [compiler(), "-E", "-MD", "-MF", str(listing), str(source)]
        command += [f"-I{folder}" for folder in folders]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        read = {path for path in depends.gcc_files(listing) if not depends.is_installed(path)}
        assert read == {str(source), *(f"{f}/h{n}.h" for n, f in enumerate(folders))}


def test_names_that_later_releases_of_gcc_write(tmp_path):
    write(tmp_path / "a:b" / "x.h", "")
    listing = write(tmp_path / "listing.d", f"k.o: {tmp_path}/a\\:b/x.h \\\n /gone\\:x.h\n")
    assert depends.gcc_files(listing) == [f"{tmp_path}/a:b/x.h", "/gone\\:x.h"]


def test_a_link_is_not_followed(tmp_path):
    """It may point somewhere else at the next build."""
    write(tmp_path / "one" / "x.h", "")
    (tmp_path / "now").symlink_to(tmp_path / "one")
    listing = write(tmp_path / "listing.d", f"k.o: {tmp_path}/now/x.h\n")
    assert depends.gcc_files(listing) == [f"{tmp_path}/now/x.h"]


def test_listing_of_verilator(tmp_path):
    text = (
        'C "--cc -I/a b /a b/k.v"\n'
        'S  0  21485  17953  0  17953  0 "unhashed" "/a b/h.vh"\n'
        'S  1  21485  17953  0  17953  0 "/older/k.v"\n'
        'S  1  21485  17953  0  17953  0 "x1" "/new\nline/k.v"\n'
        'T  9  21485  17953  0  17953  0 "unhashed" "/w/Vm.cpp"\n'
    )
    listing = write(tmp_path / "V__verFiles.dat", text)
    assert depends.verilator_files(listing) == ["/a b/h.vh", "/older/k.v", "/new\nline/k.v"]


# ---- files that were not there ------------------------------------------------------------------


def test_names_that_would_change_a_build(tmp_path):
    source = write(
        tmp_path / "src" / "k.cpp",
        '#include "k.h"\n#include <up.h>\n#define PART "sub/part.h"\n'
        '# if __has_include( \\\n "later.h")\n#endif\n"no_header.h"\n',
    )
    for name in ("src/k.h", "inc2/up.h"):
        write(tmp_path / name, "")
    folders = [tmp_path / "inc1", tmp_path / "inc2"]
    files = [str(source), str(tmp_path / "inc2/up.h")]
    assert depends.absent(files, folders) == {
        str(tmp_path): ["inc1"],
        str(tmp_path / "src"): ["later.h", "sub"],
        str(tmp_path / "inc2"): ["later.h", "sub"],
    }
    names = depends.absent(files, folders)
    assert not depends.appeared(names)
    write(tmp_path / "src" / "other.h", "")
    assert not depends.appeared(names)
    write(tmp_path / "src" / "sub" / "part.h", "")
    assert depends.appeared(names)


@pytest.mark.parametrize("char", ["\n", "\r"])
def test_a_name_that_no_include_can_spell_is_included_through_a_link(tmp_path, char):
    path = tmp_path / f"a{char}b" / "k.h"
    assert headers.include(path, tmp_path) == f'#include "{tmp_path}/source/k.h"'
    assert (tmp_path / "source").readlink() == path.parent


def test_many_names_are_looked_for_in_one_listing(tmp_path):
    names = {str(tmp_path): [f"h{n}.h" for n in range(100)], str(tmp_path / "gone"): ["x"] * 100}
    assert not depends.appeared(names)
    write(tmp_path / "h77.h", "")
    assert depends.appeared(names)


# ---- kernels ------------------------------------------------------------------------------------


@pytest.fixture(params=ODD)
def odd(request, tmp_path) -> Path:
    return tmp_path / request.param


def kernel(folder: Path, *include_dirs: Path) -> hls.KernelSource:
    write(folder / "scale" / "scale.cpp", KERNEL)
    if not include_dirs:
        write(folder / "scale" / "scale.h", "#define FACTOR 3\n")
    return hls.KernelSource("scale", folder / "scale/scale.cpp", include_dirs=include_dirs)


def build(source: hls.KernelSource) -> hls.Build:
    return hls.build(source, cflags=["-O0"])


def test_an_edited_file_in_an_odd_folder_is_built_again(odd):
    source = kernel(odd)
    built = build(source)
    assert built.interface.argument("x").offset == 0x18  # the pragmas were found
    assert build(source).cached
    write(source.folder / "scale.h", "#define FACTOR 5\n")
    assert not build(source).cached
    write(source.source, KERNEL.replace("* x", "+ x"))
    assert not build(source).cached


def test_a_header_that_appears(tmp_path):
    near, far = tmp_path / "near", tmp_path / "far"
    near.mkdir()
    write(far / "scale.h", "#define FACTOR 3\n")
    source = kernel(tmp_path, near, far)
    assert not build(source).cached
    assert build(source).cached
    write(near / "extra.h", "#undef FACTOR\n#define FACTOR 9\n")  # what __has_include asked for
    assert not build(source).cached
    write(near / "scale.h", "#define FACTOR 4\n")  # earlier on the path than the one found
    assert not build(source).cached
    write(source.folder / "ap_int.h", "")  # nothing that this kernel includes
    write(source.folder / "notes.txt", "")
    assert build(source).cached


def test_a_link_to_nothing_whose_target_appears(tmp_path):
    source = write(tmp_path / "k.cpp", '#if __has_include("extra.h")\n#endif\n')
    (tmp_path / "extra.h").symlink_to("parts/real.h")
    names = depends.absent([str(source)], [])
    assert names == {str(tmp_path): ["parts"]}
    write(tmp_path / "parts" / "real.h", "")
    assert depends.appeared(names)


def test_the_environments_include_folders_are_part_of_a_build(tmp_path, monkeypatch):
    source = write(tmp_path / "tool.cpp", '#include "answer.h"\nint main() { return ANSWER; }\n')
    built = []
    for number in (3, 4):
        write(tmp_path / str(number) / "answer.h", f"#define ANSWER {number}\n")
        monkeypatch.setenv("CPATH", str(tmp_path / str(number)))
        built.append(hls.compile_engine(source, cflags=["-O0"]))
    assert [subprocess.run([path], check=False).returncode for path in built] == [3, 4]


def test_a_link_that_points_elsewhere_is_built_again(tmp_path):
    for name, factor in (("one", 3), ("two", 4)):
        write(tmp_path / name / "scale.h", f"#define FACTOR {factor}\n")
    (tmp_path / "now").symlink_to("one")
    source = kernel(tmp_path, tmp_path / "now")
    build(source)
    assert build(source).cached
    (tmp_path / "now").unlink()
    (tmp_path / "now").symlink_to("two")
    assert not build(source).cached


def test_weights_that_appear_are_given_to_the_kernel(tmp_path):
    source = kernel(tmp_path)
    build(source)
    (source.folder / "weights").mkdir()
    assert not build(source).cached


def test_an_edited_testbench_in_an_odd_folder_runs_as_edited(odd):
    source = kernel(odd)
    bench = '#include "expected.h"\nint scale(int);\nint main() { return scale(2) - EXPECTED; }\n'
    write(source.folder / "scale_tb.cpp", bench)
    write(source.folder / "expected.h", "#define EXPECTED 6\n")
    hls.run_testbench(source)
    write(source.folder / "expected.h", "#define EXPECTED 7\n")
    with pytest.raises(AssertionError, match="returned 255"):
        hls.run_testbench(source)


@pytest.mark.parametrize("gone", ["before", "after"])
def test_a_file_that_is_not_there_is_a_reason_to_build(tmp_path, gone):
    source = write(tmp_path / "source.txt", "")
    os.utime(source, (1, 1))
    if gone == "before":
        source.unlink()
    key = cache.digest("test")
    with cache.scratch() as folder:
        cache.store(key, folder, [str(source)], (), {})
    if gone == "after":
        assert cache.find(key) is not None
        source.unlink()
    assert cache.find(key) is None


# ---- RTL ----------------------------------------------------------------------------------------


def model(folder: Path) -> BuiltModel:
    source = find_rtl([folder], "constant")
    assert source is not None
    return build_model(source)


def value(built: BuiltModel) -> int:
    """Run a model in this process: its library stays mapped, so no test may write to that file.

    A build never does: it makes a file in a folder of its own, and a rename publishes the folder.
    """
    running = Model(built.library)
    running.clock()
    return running["y_TDATA"]


def test_an_edited_include_in_an_odd_folder_is_built_again(odd):
    odd /= os.fsdecode(b"\xff")  # no UTF-8
    write(odd / "constant/rtl/constant.v", MODULE)
    write(odd / "constant/rtl/value.vh", "`define VALUE 8'd3\n")
    first = model(odd)
    assert value(first) == 3
    assert model(odd).cached
    write(odd / "constant/rtl/value.vh", "`define VALUE 8'd4\n")
    edited = model(odd)
    assert (edited.cached, value(edited)) == (False, 4)


def test_an_include_that_appears_in_an_earlier_folder(tmp_path):
    write(
        tmp_path / "constant/rtl/constant.v", MODULE.replace("endmodule", "  sub s ();\nendmodule")
    )
    write(tmp_path / "constant/rtl/below/sub.v", "module sub;\nendmodule\n")
    write(tmp_path / "constant/rtl/below/value.vh", "`define VALUE 8'd3\n")
    assert value(model(tmp_path)) == 3
    assert model(tmp_path).cached
    write(tmp_path / "constant/rtl/value.vh", "`define VALUE 8'd4\n")
    appeared = model(tmp_path)
    assert (appeared.cached, value(appeared)) == (False, 4)
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(appeared.library.read_bytes()[:1000])
    damaged.replace(appeared.library)  # another file: cutting the mapped one off ends in SIGBUS
    with pytest.warns(CacheWarning, match=r"model\.so has 1000 bytes"):
        again = model(tmp_path)
    assert (again.cached, value(again)) == (False, 4)
