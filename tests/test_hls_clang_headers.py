"""HLS headers precompiled for libclang change nothing but the time that a kernel takes to read."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from pynq_torch.errors import CacheWarning, KernelBuildError
from pynq_torch.hls import Interface, cache, toolchain
from pynq_torch.hls.parse import read_interface

#: In the place of the vendor's, which take seconds.
HEADER = """\
#pragma once
#ifdef WIDE
typedef long long element;
#else
typedef TYPE element;
#endif
"""
KERNEL = """\
#include <ap_int.h>
void top(element* out) {
#pragma HLS INTERFACE m_axi port=out
    *out = 1;
}
"""


@pytest.fixture(autouse=True)
def vendor(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the vendor's ``ap_int.h``; all headers are worth precompiling."""
    header = tmp_path / "vendor" / "include" / "ap_int.h"
    header.parent.mkdir(parents=True)
    header.write_text(HEADER.replace("TYPE", "short"))
    monkeypatch.setattr(cache, "is_in_use", lambda: True)
    monkeypatch.setenv("XILINX_HLS", str(header.parent.parent))
    toolchain.ap_types_dir.cache_clear()
    yield header
    toolchain.ap_types_dir.cache_clear()


def made(own_cache: Path) -> int:
    return len(list(own_cache.glob("entries/*/headers.pch")))


def read(folder: Path, text: str = KERNEL, **options: list[str]) -> Interface:
    source = folder / "top.cpp"
    source.write_text(text)
    return read_interface(source, "top", **options)  # type: ignore[arg-type]


def test_sources_with_the_same_headers_share_them(
    tmp_path: Path, own_cache: Path, vendor: Path
) -> None:
    assert read(tmp_path).argument("out").width == 16
    assert read(tmp_path, KERNEL.replace("1", "2")).argument("out").width == 16
    assert made(own_cache) == 1
    vendor.with_name("ap_fixed.h").write_text("#pragma once\n")
    read(tmp_path, "#include <ap_fixed.h>\n" + KERNEL)
    assert made(own_cache) == 2


def test_a_small_cache_gets_none(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "is_in_use", lambda: False)
    assert read(tmp_path).argument("out").width == 16
    assert not made(own_cache)


@pytest.mark.parametrize("place", ["source", "header", "option"])
def test_a_macro_that_the_headers_test(tmp_path: Path, own_cache: Path, place: str) -> None:
    assert read(tmp_path).argument("out").width == 16
    before = {"source": "#define WIDE\n", "header": '#include "own.hpp"\n', "option": ""}[place]
    (tmp_path / "own.hpp").write_text("#  define WIDE 1\n")
    defines = ["WIDE=1"] if place == "option" else []
    assert read(tmp_path, before + KERNEL, defines=defines).argument("out").width == 64
    assert made(own_cache) == 1


def test_a_header_of_the_kernel_s_own_folder_wins(
    tmp_path: Path, own_cache: Path, vendor: Path
) -> None:
    assert read(tmp_path).argument("out").width == 16
    (tmp_path / "ap_int.h").write_text("typedef int element;\n")
    assert read(tmp_path).argument("out").width == 32
    # Also one that the vendor's header includes.
    (tmp_path / "ap_int.h").unlink()
    vendor.write_text("#include <own_type.h>\n" + HEADER.replace("TYPE", "own_type"))
    vendor.with_name("own_type.h").write_text("typedef short own_type;\n")
    assert read(tmp_path).argument("out").width == 16
    (tmp_path / "own_type.h").write_text("typedef long long own_type;\n")
    assert read(tmp_path).argument("out").width == 64


def test_errors_are_those_of_the_headers_as_text(tmp_path: Path, vendor: Path) -> None:
    """What a macro of the source does to a header has not happened in a precompiled one."""
    vendor.write_text("#pragma once\nclass element { public: int v; };\n")
    found = read(tmp_path, "#define class struct __attribute__((packed))\n" + KERNEL)
    assert found.argument("out").width == 32
    # The other way round: `element` is private in the header, and public by the macro.
    vendor.write_text("#pragma once\nclass outer { typedef short element; };\n")
    inner = KERNEL.replace("element*", "outer::element*")
    assert read(tmp_path, "#define class struct\n" + inner).argument("out").width == 16


def test_an_edited_header_is_seen(tmp_path: Path, own_cache: Path, vendor: Path) -> None:
    assert read(tmp_path).argument("out").width == 16
    vendor.write_text(HEADER.replace("TYPE", "signed char"))
    assert read(tmp_path).argument("out").width == 8


@pytest.mark.parametrize("which", ["ap_int.h", "inner.h"])
def test_headers_that_were_installed_anew(
    tmp_path: Path, own_cache: Path, vendor: Path, which: str
) -> None:
    """libclang goes by the date of a header, and refuses what was made from an earlier one."""
    vendor.write_text('#include "inner.h"\n' + vendor.read_text())
    vendor.with_name("inner.h").write_text("#pragma once\n")
    assert read(tmp_path).argument("out").width == 16
    os.utime(vendor.with_name(which), (2_000_000_000, 2_000_000_000))
    assert read(tmp_path).argument("out").width == 16
    assert made(own_cache) == (2 if which == "ap_int.h" else 1)


@pytest.mark.parametrize("part", ["scratch", "store"])
def test_without_room_for_it_the_headers_are_read_as_text(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def full(*_: object) -> None:
        raise KernelBuildError("the cache is on a full disk")

    monkeypatch.setattr(cache, part, full)
    assert read(tmp_path).argument("out").width == 16


def test_a_damaged_one_is_made_again(tmp_path: Path, own_cache: Path) -> None:
    read(tmp_path)
    (file,) = own_cache.glob("entries/*/headers.pch")
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.warns(CacheWarning, match=r"headers\.pch has 1000 bytes"):
        assert read(tmp_path).argument("out").width == 16
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(tmp_path).argument("out").width == 16
