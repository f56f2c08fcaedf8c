"""Functions of a kernel's source as a notebook shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch import hls
from pynq_torch.errors import KernelBuildError, KernelError

SOURCE = """\
#include "k.hpp"
// add( in a comment is no definition {
static int add(int a, int b);

int twice(int a) { return add(a, a); }

// Adds.
template <typename T>
static int add(int a,
               int b) {
    if (a) {  // }
        return a + b;
    }
    return b;
}
"""


@pytest.fixture
def own_compiler(tmp_path: Path) -> Path:
    """Return a compiler that says in which language it speaks, and fails."""
    path = tmp_path / "g++"
    path.write_text(
        '#!/bin/sh\ncase "$*" in *-c*) echo "k.cpp:1:1: error: in $LC_ALL" >&2; exit 1;; esac\n'
        'exec g++ "$@"\n'
    )
    path.chmod(0o755)
    return path


def test_a_function_with_its_comment_and_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "k.cpp"
    path.write_text(SOURCE)
    lines = hls.excerpt(path, "add").splitlines()
    assert lines[0] == " 7  // Adds."
    assert lines[1] == " 8  template <typename T>"
    assert lines[-1] == "15  }"
    assert hls.excerpt(path, "twice") == "5  int twice(int a) { return add(a, a); }"
    with pytest.raises(KernelError, match=r"k\.cpp defines no function 'sub'"):
        hls.excerpt(path, "sub")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("vadd/vadd.cpp", "vadd"),
        ("vadd/vadd.cpp", "add"),
        ("vadd/vadd.cpp", "add_tiles"),
        ("gemm/gemm_core.hpp", "compute"),
        ("gemm/gemm.cpp", "pair"),
    ],
)
def test_the_kernels_of_the_lessons(root: Path, file: str, name: str) -> None:
    shown = hls.excerpt(root / "hw" / "kernels" / file, name)
    assert f" {name}(" in shown
    assert shown.count("{") == shown.count("}")
    assert len(shown.splitlines()) < 45


def test_the_compiler_speaks_english(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_compiler: Path
) -> None:
    monkeypatch.setenv("CXX", str(own_compiler))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "k.cpp"
    source.write_text("int main() { return 0; }\n")
    with pytest.raises(KernelBuildError, match=r"k\.cpp:1:1: error: in C"):
        hls.compile_engine(source)
