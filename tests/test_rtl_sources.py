"""Finding the RTL of a kernel: the layouts it comes in, and what is said where it is not there."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from pynq_torch.board.rtl.sources import find_rtl, modules_of
from pynq_torch.errors import RtlError

TOP = "module {0} (input wire ap_clk);\n  {1}\nendmodule\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PYNQ_TORCH_KERNELS", raising=False)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


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


def test_vhdl_alone_is_refused(tmp_path):
    write(tmp_path / "fir/rtl/fir.vhd", "entity fir is end;")
    with pytest.raises(RtlError, match="VHDL only.*-rtl verilog"):
        find_rtl([tmp_path], "fir")


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
    assert find_rtl([tmp_path / "theirs", tmp_path / "mine"], "gemm") is not None


def test_a_module_of_an_edited_file_is_seen(tmp_path):
    path = write(tmp_path / "fir/rtl/fir.sv", TOP.format("fir", ""))
    assert modules_of(path) == ("fir",)
    write(path, TOP.format("fir", "") + TOP.format("another", ""))
    assert modules_of(path) == ("fir", "another")
