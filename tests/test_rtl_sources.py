"""Finding the RTL of a kernel: the layouts it comes in, and what is said where it is not there."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from helpers import HW_KERNELS, write

from pynq_torch.board.rtl.sources import find_rtl, modules_of
from pynq_torch.errors import RtlError

pytestmark = pytest.mark.usefixtures("own_cache")

TOP = "module {0} (input wire ap_clk);\n  {1}\nendmodule\n"


def names(source) -> list[str]:
    return [path.name for path in source.files]


def test_rtl_folder_of_a_kernel_with_the_modules_it_needs(tmp_path):
    write(tmp_path / "kernels/fir/rtl/fir.sv", TOP.format("fir", "tap t (); fifo f ();"))
    write(tmp_path / "kernels/fir/rtl/tap.sv", TOP.format("tap", "import fir_pkg::*;"))
    write(tmp_path / "kernels/fir/rtl/fir_pkg.sv", "package fir_pkg;\nendpackage\n")
    write(tmp_path / "kernels/fir/rtl/unused.sv", TOP.format("unused", ""))
    write(tmp_path / "kernels/fir/rtl/tb/fir_tb.sv", TOP.format("fir", ""))
    write(tmp_path / "rtl/fifo.sv", TOP.format("fifo", ""))  # shared, beside the kernels
    source = find_rtl([tmp_path / "kernels"], "fir")
    assert source is not None
    assert names(source) == ["fir_pkg.sv", "fir.sv", "fifo.sv", "tap.sv"]
    assert not source.export
    assert (tmp_path / "kernels/fir/rtl/unused.sv") in source.candidates


def test_a_module_of_the_library_is_no_kernel():
    assert "gemm_add" in modules_of(HW_KERNELS / "gemm" / "rtl" / "gemm_add.sv")
    assert find_rtl([HW_KERNELS], "gemm_add") is None
    assert find_rtl([HW_KERNELS], "gemm") is not None


@pytest.mark.parametrize(
    "place",
    [
        "impl/ip/hdl/verilog",
        "syn/verilog",
        "solution1/impl/ip/hdl/verilog",
        "proj/solution2/syn/verilog",
        "",
    ],
)
def test_an_export_wherever_it_lies(tmp_path, place):
    folder = tmp_path / "kernels/fir" / place
    write(folder / "fir.v", TOP.format("fir", "fir_mul m ();"))
    write(folder / "fir_mul.v", TOP.format("fir_mul", ""))
    write(folder / "fir_rom.dat", "00\n")
    source = find_rtl([tmp_path / "kernels"], "fir")
    assert source is not None
    assert (source.folder, source.export) == (folder, True)
    assert names(source) == ["fir.v", "fir_mul.v"]
    assert source.data == (folder / "fir_rom.dat",)


def test_what_was_packaged_wins_over_what_was_synthesised(tmp_path):
    for place in ("syn/verilog", "impl/ip/hdl/verilog", "impl/verilog", "sim/verilog"):
        write(tmp_path / "fir" / place / "fir.v", TOP.format("fir", "sub s ();"))
        write(tmp_path / "fir" / place / "sub.v", TOP.format("sub", ""))
    source = find_rtl([tmp_path], "fir")
    assert source is not None
    assert {path.parent for path in source.files} == {tmp_path / "fir/impl/ip/hdl/verilog"}


def test_any_folder_of_verilog_whose_top_has_the_name(tmp_path):
    write(tmp_path / "work/ip/abc/src/all.v", TOP.format("fir", "") + TOP.format("other", ""))
    source = find_rtl([tmp_path / "work"], "fir")
    assert source is not None
    assert names(source) == ["all.v"]
    assert modules_of(source.files[0]) == ("fir", "other")


@pytest.mark.parametrize("archive", ["export.zip", "fir.xo"])
def test_an_archive_that_hls_exported(tmp_path, archive):
    (tmp_path / "fir/impl").mkdir(parents=True)
    inside = "ip_repo/fir/hdl/verilog" if archive.endswith(".xo") else "hdl/verilog"
    with zipfile.ZipFile(tmp_path / "fir/impl" / archive, "w") as file:
        file.writestr(f"{inside}/fir.v", TOP.format("fir", "fir_mul m ();"))
        file.writestr(f"{inside}/fir_mul.v", TOP.format("fir_mul", ""))
        file.writestr("../outside.v", "")
    source = find_rtl([tmp_path], "fir")
    assert source is not None
    assert names(source) == ["fir.v", "fir_mul.v"]
    assert not list(tmp_path.rglob("outside.v"))


def test_a_damaged_archive_is_named(tmp_path):
    write(tmp_path / "fir/fir.zip", "no archive")
    with pytest.raises(RtlError, match="fir.zip is no readable archive"):
        find_rtl([tmp_path], "fir")


def test_a_top_that_is_not_there_names_the_modules_found(tmp_path):
    write(tmp_path / "fir/rtl/a.sv", TOP.format("fir_top", "") + TOP.format("tap", ""))
    with pytest.raises(RtlError, match=r"no module of that name .*have fir_top, tap.*rename"):
        find_rtl([tmp_path], "fir")


@pytest.mark.parametrize("given", [".", "mine", "mine/rtl"])
@pytest.mark.parametrize("cpp", [False, True])
def test_a_file_of_that_name_with_another_module_is_named(tmp_path, given, cpp):
    """Else board rtl would run the C++, or nothing, and say that there is no RTL."""
    write(tmp_path / "mine/rtl/k.v", TOP.format("other", ""))
    if cpp:
        write(tmp_path / "mine/k.cpp", "void k(int x) {}")
    if given == "." and not cpp:
        assert find_rtl([tmp_path], "k") is None  # anybody's file, somewhere below
        return
    with pytest.raises(RtlError, match=r"k: no module of that name .*have other.*rename"):
        find_rtl([tmp_path / given], "k")


def test_a_comment_or_a_string_is_no_module(tmp_path):
    write(tmp_path / "fir/rtl/fir.sv", "// module tap;\n" + TOP.format("fir", ""))
    assert modules_of(tmp_path / "fir/rtl/fir.sv") == ("fir",)


def test_no_rtl_anywhere_is_no_error(tmp_path):
    write(tmp_path / "fir/fir.cpp", "void fir(int x) {}")
    assert find_rtl([tmp_path], "fir") is None
    assert find_rtl([tmp_path / "gone"], "fir") is None


def test_cpp_of_the_user_is_not_replaced_by_rtl_of_another_kernel(tmp_path):
    write(tmp_path / "mine/gemm.cpp", "void gemm(int x) {}")
    write(tmp_path / "theirs/gemm/rtl/gemm.sv", TOP.format("gemm", ""))
    assert find_rtl([tmp_path / "mine", tmp_path / "theirs"], "gemm") is None
    found = find_rtl([tmp_path / "theirs", tmp_path / "mine"], "gemm")
    assert found is not None and found.folder == tmp_path / "theirs/gemm/rtl"


def test_a_module_of_an_edited_file_is_seen(tmp_path):
    path = write(tmp_path / "fir/rtl/fir.sv", TOP.format("fir", ""))
    assert modules_of(path) == ("fir",)
    write(path, TOP.format("fir", "") + TOP.format("another", ""))
    assert modules_of(path) == ("fir", "another")


# ---- what is defined twice -----------------------------------------------------------------------


@pytest.mark.parametrize("place", ["triple/rtl", "triple", "triple/impl/ip/hdl/verilog"])
@pytest.mark.parametrize("copy", ["a_old.v", "old/triple.v", "z.sv"])
def test_two_files_with_the_same_top(tmp_path, place, copy):
    write(tmp_path / place / "triple.v", TOP.format("triple", ""))
    write(tmp_path / place / copy, TOP.format("triple", "// as it was"))
    with pytest.raises(RtlError) as error:
        find_rtl([tmp_path], "triple")
    places = re.match(r"triple: module triple is defined in (\S+) and (\S+),", str(error.value))
    assert places is not None, error.value
    assert sorted(Path(place).name for place in places.groups()) == sorted(
        ["triple.v", Path(copy).name]
    )


def test_two_files_with_the_same_module_below_the_top(tmp_path):
    write(tmp_path / "fir/rtl/fir.v", TOP.format("fir", "tap t ();"))
    write(tmp_path / "fir/rtl/tap.v", TOP.format("tap", "mul m ();"))
    write(tmp_path / "fir/rtl/mul.v", TOP.format("mul", ""))
    write(tmp_path / "fir/rtl/mul_copy.v", TOP.format("mul", "wire x;"))
    with pytest.raises(RtlError, match=r"module mul is defined in mul\.v and mul_copy\.v"):
        find_rtl([tmp_path], "fir")


def test_a_package_in_two_files(tmp_path):
    write(tmp_path / "fir/rtl/fir.sv", TOP.format("fir", "import fir_pkg::*;"))
    for n in (1, 2):
        text = f"package fir_pkg;\nlocalparam N = {n};\nendpackage\n"
        write(tmp_path / f"fir/rtl/pkg{n}.sv", text)
    said = r"package or interface fir_pkg is defined in pkg1\.sv and pkg2\.sv"
    with pytest.raises(RtlError, match=said):
        find_rtl([tmp_path], "fir")


@pytest.mark.parametrize("place", ["fir/rtl", "fir/syn/verilog", "fir"])
def test_a_module_twice_in_one_file(tmp_path, place):
    write(tmp_path / place / "fir.v", TOP.format("fir", "") + TOP.format("fir", "wire x;"))
    with pytest.raises(RtlError, match=r"module fir is defined twice in fir\.v"):
        find_rtl([tmp_path], "fir")


def test_one_of_two_by_a_macro_is_one(tmp_path):
    both = "`ifdef FAST\n{}`else\n{}`endif\n".format(TOP.format("fir", ""), TOP.format("fir", ""))
    write(tmp_path / "fir/rtl/fir.v", both)
    source = find_rtl([tmp_path], "fir")
    assert source is not None and names(source) == ["fir.v"]
    assert modules_of(source.files[0]) == ("fir", "fir")  # which of them is the compiler's choice


def test_what_is_no_second_definition(tmp_path):
    """A copy to the byte, one in a comment, one that nothing uses, one of the shared modules."""
    text = TOP.format("fir", "fifo f (); tap t (); wire mul = tap;")
    write(tmp_path / "kernels/fir/rtl/fir.v", f"/* as it was:\n{text}*/\n{text}")
    for file in ("tap.v", "copy/tap.v"):
        write(tmp_path / "kernels/fir/rtl" / file, TOP.format("tap", "// mul m ();"))
    for n in (1, 2):
        write(tmp_path / f"kernels/fir/rtl/mul{n}.v", TOP.format("mul", f"// {n}"))
    write(tmp_path / "kernels/fir/rtl/fifo.v", TOP.format("fifo", ""))
    write(tmp_path / "rtl/fifo.v", TOP.format("fifo", "wire shared;"))
    source = find_rtl([tmp_path / "kernels"], "fir")
    assert source is not None
    assert names(source)[:2] == ["fir.v", "fifo.v"]
    assert source.files[1].parent == tmp_path / "kernels/fir/rtl"


def test_two_exports_of_the_same_kind_are_told_apart_by_who_gives_one(tmp_path):
    for n, body in ((1, ""), (2, "wire x;")):
        write(tmp_path / f"p/solution{n}/syn/verilog/fir.v", TOP.format("fir", "sub s ();"))
        write(tmp_path / f"p/solution{n}/syn/verilog/sub.v", TOP.format("sub", body))
    with pytest.raises(RtlError, match=r"solution1/syn/verilog/fir\.v and solution2/syn/verilog/"):
        find_rtl([tmp_path / "p"], "fir")
    source = find_rtl([tmp_path / "p/solution2"], "fir")
    assert source is not None and source.folder == tmp_path / "p/solution2/syn/verilog"
    (tmp_path / "p/solution2/syn/verilog/sub.v").write_text(TOP.format("sub", ""))
    source = find_rtl([tmp_path / "p"], "fir")  # two copies of one: the first is as good
    assert source is not None and source.folder == tmp_path / "p/solution1/syn/verilog"


def test_a_file_that_begins_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "fir/rtl/fir.v"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xef\xbb\xbf" + TOP.format("fir", "").encode())
    source = find_rtl([tmp_path], "fir")
    assert source is not None and names(source) == ["fir.v"]
