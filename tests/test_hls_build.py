"""Finding, building and caching kernels: what a second build costs, and what goes wrong."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers import HW_KERNELS, write

from pynq_torch import hls
from pynq_torch.errors import KernelBuildError
from pynq_torch.hls import cache
from pynq_torch.hls.build import adapter
from pynq_torch.hls.headers import real_name

pytestmark = pytest.mark.usefixtures("own_cache")

KERNEL = """
#include "scale.h"
int scale(int x) {
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=return
    return FACTOR * x;
}
"""


@pytest.fixture
def scale(tmp_path):
    folder = tmp_path / "kernels" / "scale"
    folder.mkdir(parents=True)
    (folder / "scale.cpp").write_text(KERNEL)
    (folder / "scale.h").write_text("#define FACTOR 3\n")
    kernel = hls.find_kernel("scale", [tmp_path / "kernels"])
    assert kernel is not None
    return kernel


# ---- finding ------------------------------------------------------------------------------------


def test_a_folder_of_that_name_wins(tmp_path):
    write(tmp_path / "a" / "fir.cpp", "void fir(int x) {}")
    wanted = write(tmp_path / "b" / "fir" / "impl.cpp", "void fir(int x) {}")
    kernel = hls.find_kernel("fir", [tmp_path / "a", tmp_path / "b"])
    assert kernel is not None
    assert kernel.source == wanted


def test_the_folder_given_may_be_the_kernels_own(tmp_path):
    wanted = write(tmp_path / "fir" / "src" / "x.cpp", "void fir(int x)\n{\n}")
    kernel = hls.find_kernel("fir", [tmp_path / "fir"])
    assert kernel is not None
    assert kernel.source == wanted


def test_any_source_below_the_folders_will_do(tmp_path):
    write(tmp_path / "lab" / "fir_test.cpp", "void fir(int); int main() { fir(1); }")
    write(tmp_path / "lab" / "caller.cpp", "// void fir(int x) {\nvoid f() { if (1) fir(2); }")
    write(tmp_path / "lab" / "old" / "fir.cpp", "void fir(int x) {}")
    wanted = write(
        tmp_path / "lab" / "deep" / "down" / "top.cpp",
        "void fir(int x) {\n#pragma HLS INTERFACE s_axilite port=x\n}",
    )
    kernel = hls.find_kernel("fir", [tmp_path])
    assert kernel is not None
    assert kernel.source == wanted
    assert hls.find_kernel("fft", [tmp_path]) is None


def test_vendor_output_is_not_searched(tmp_path):
    write(tmp_path / "solution1" / ".autopilot" / "fir.cpp", "void fir(int x) {}")
    assert hls.find_kernel("fir", [tmp_path]) is None


def test_a_helper_of_the_library_is_no_kernel(tmp_path):
    # hw/kernels/vadd/vadd.cpp defines add() too: it is not what another design calls `add`.
    assert "add(" in (HW_KERNELS / "vadd" / "vadd.cpp").read_text()
    assert hls.find_kernel("add", [HW_KERNELS]) is None
    found = hls.find_kernel("vadd", [HW_KERNELS])
    assert found is not None and found.source == HW_KERNELS / "vadd" / "vadd.cpp"
    wanted = write(tmp_path / "design.cpp", "void add(int x) {}")
    kernel = hls.find_kernel("add", [HW_KERNELS, tmp_path])
    assert kernel is not None and kernel.source == wanted


def test_environment_variable(tmp_path, monkeypatch):
    wanted = write(tmp_path / "fir" / "fir.cpp", "void fir() {}")
    monkeypatch.setenv("PYNQ_TORCH_KERNELS", f"/nowhere{os.pathsep}{tmp_path}")
    kernel = hls.find_kernel("fir")
    assert kernel is not None
    assert kernel.source == wanted


# ---- the cache ----------------------------------------------------------------------------------


def test_a_file_written_during_its_build_is_built_again(own_cache, tmp_path):
    source = tmp_path / "source.txt"
    for edited in (False, True):
        source.write_text("before")
        key = cache.digest("test", edited)
        with cache.scratch() as folder:
            if edited:
                source.write_text("after")
            cache.store(key, folder, [str(source)], (), {})
        assert (cache.find(key) is None) == edited


def test_second_build_is_found_and_fast(scale):
    first = hls.build(scale)
    assert not first.cached
    assert os.access(first.executable, os.X_OK)
    assert first.interface.argument("x").offset == 0x18
    second = hls.build(scale)
    assert second.cached
    assert (second.executable, second.interface) == (first.executable, first.interface)
    # Nothing is parsed or compiled: neither libclang nor the compiler is needed any more.
    program = (
        "import sys\nfrom pathlib import Path\nfrom pynq_torch import hls\n"
        f"kernel = hls.KernelSource('scale', Path({str(scale.source)!r}))\n"
        "assert hls.build(kernel).cached\nassert not any('clang' in name for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_changed_header_builds_anew_and_going_back_does_not(scale):
    header = scale.source.parent / "scale.h"
    first = hls.build(scale)
    header.write_text("#define FACTOR 5\n")
    second = hls.build(scale)
    assert not second.cached
    assert second.executable != first.executable
    header.write_text("#define FACTOR 3\n")
    third = hls.build(scale)
    assert third.cached
    assert third.executable == first.executable


def test_a_touched_file_is_not_a_changed_one(scale):
    hls.build(scale)
    os.utime(scale.source, (1, 1))
    assert hls.build(scale).cached


def test_what_else_makes_another_build(scale):
    hls.build(scale)
    assert not hls.build(scale, tool="vivado").cached
    assert not hls.build(scale, cflags=["-O0"]).cached
    (scale.source.parent / "hls_config.cfg").write_text("[hls]\nsyn.interface.s_axilite_data64=1\n")
    changed = hls.build(scale)
    assert not changed.cached
    assert changed.interface.argument("x").offset == 0x30


def test_two_builders_at_once_make_it_once(scale):
    with ThreadPoolExecutor(2) as pool:
        builds = list(pool.map(lambda _: hls.build(scale), range(2)))
    assert sorted(item.cached for item in builds) == [False, True] or all(
        item.executable == builds[0].executable for item in builds
    )
    assert len({item.executable for item in builds}) == 1


def leftovers(folder: Path) -> list[str]:
    """Return what is in a cache beside the object files that own_cache begins with."""
    every = (folder / "entries").iterdir()
    return [item.name for item in every if not (item / "engine_process.o").is_file()]


def test_a_damaged_index_only_costs_a_build(scale, own_cache):
    hls.build(scale)
    for index in (own_cache / "index").iterdir():
        index.write_text('[{"name": ')
    assert not hls.build(scale).cached


def test_an_entry_that_was_deleted_is_made_again(scale):
    first = hls.build(scale)
    shutil.rmtree(first.executable.parent)
    assert not hls.build(scale).cached


# ---- what goes wrong ----------------------------------------------------------------------------


def test_compiler_message_with_file_and_line(scale, own_cache):
    scale.source.write_text(KERNEL.replace("FACTOR * x", "FACTOR * y"))
    with pytest.raises(KernelBuildError, match=r"scale\.cpp:6:\d+: error: .*‘?y") as caught:
        hls.build(scale)
    assert caught.value.cu == "scale"
    assert leftovers(own_cache) == []
    scale.source.write_text(KERNEL)
    assert not hls.build(scale).cached


def test_missing_header_is_named(scale):
    scale.source.write_text('#include "vendor/magic.h"\n' + KERNEL)
    with pytest.raises(KernelBuildError, match=r"vendor/magic\.h is not among"):
        hls.build(scale)


def test_undefined_symbol_is_named(scale):
    scale.source.write_text("int helper(int);\n" + KERNEL.replace("FACTOR * x", "helper(x)"))
    with pytest.raises(KernelBuildError, match=r"scale did not link.*\n.*helper"):
        hls.build(scale)


def test_other_sources_of_the_folder_are_linked_where_needed(scale):
    scale.source.write_text("int helper(int);\n" + KERNEL.replace("FACTOR * x", "helper(x)"))
    folder = scale.source.parent
    (folder / "helper.cpp").write_text("int deeper(int);\nint helper(int x) { return deeper(x); }")
    (folder / "deeper.cpp").write_text("int deeper(int x) { return x + 1; }")
    (folder / "scale_tb.cpp").write_text("int helper(int) { return 0; }\nint main() {}")
    (folder / "broken.cpp").write_text("this is no C++")
    assert hls.build(scale).executable.is_file()


def test_main_in_the_kernels_own_file(scale):
    scale.source.write_text(KERNEL + "int main() { return scale(1); }\n")
    assert hls.build(scale).executable.is_file()


def test_kernel_in_c(tmp_path):
    write(
        tmp_path / "mac" / "mac.c",
        "void mac(int a, _Bool clear, int *sum) {\n"
        "#pragma HLS INTERFACE s_axilite port=a\n#pragma HLS INTERFACE s_axilite port=sum\n"
        "#pragma HLS INTERFACE s_axilite port=return\n#pragma HLS INTERFACE s_axilite port=clear\n"
        "  static total = 0; int *restrict class = &total;\n"
        "  if (clear) *class = 0;\n  *class += a; *sum = *class;\n}\n",
    )
    kernel = hls.find_kernel("mac", [tmp_path])
    assert kernel is not None
    built = hls.build(kernel)
    assert built.interface.argument("sum").direction == "out"
    assert built.executable.is_file()


def test_macros_of_the_kernel_do_not_reach_the_engine(scale):
    macros = "".join(f"#define {name} 7\n" for name in "NSTRAWKMPU")
    scale.source.write_text(macros + "#define max(a, b) ((a) > (b) ? (a) : (b))\n" + KERNEL)
    assert hls.build(scale).executable.is_file()


def test_headers_called_like_ours(scale):
    for name in ("stream.hpp", "engine.hpp", "burst.hpp"):
        (scale.source.parent / name).write_text("#pragma once\nstruct Theirs {};\n")
    scale.source.write_text('#include "stream.hpp"\n#include <hls_stream.h>\nTheirs t;\n' + KERNEL)
    assert hls.build(scale).executable.is_file()


def test_header_spelt_as_on_windows(scale):
    (scale.source.parent / "scale.h").rename(scale.source.parent / "Scale.H")
    assert hls.build(scale).executable.is_file()


def test_windows_paths(tmp_path):
    wanted = write(tmp_path / "Inc" / "Types.h", "")
    assert real_name(
        "..\\inc\\types.h", [tmp_path / "Inc"]
    ) == tmp_path / "Inc" / ".." / wanted.relative_to(tmp_path)
    assert real_name("other.h", [tmp_path]) is None


def test_no_compiler(scale, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(KernelBuildError, match="'no-such-compiler' is not on the PATH"):
        hls.build(scale)


def fake_compiler(tmp_path, monkeypatch, script):
    """Put a compiler in front of the real one that may do something else instead."""
    from pynq_torch.hls.toolchain import compiler

    real = compiler()
    path = tmp_path / "fake-g++"
    path.write_text(f"#!/bin/sh\nreal={real}\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))


def test_a_compiler_is_asked_once_by_all_programs(tmp_path, monkeypatch, own_cache):
    calls = tmp_path / "calls"
    fake_compiler(tmp_path, monkeypatch, f'echo "$@" >> {calls}\nexec "$real" "$@"')
    command = [
        sys.executable,
        "-c",
        "from pynq_torch.hls import toolchain as t\n"
        "print(t.system_include_dirs(), t.has_option('-O2'), t.has_option('-fno-such-thing'))",
    ]

    def ask():
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    said = ask()
    assert "/include" in said
    assert said.endswith(") True False\n")
    assert len(calls.read_text().splitlines()) == 3
    assert ask() == said
    assert len(calls.read_text().splitlines()) == 3
    for path in (own_cache / "answers").iterdir():
        path.write_text("cut o")
    assert ask() == said
    assert len(calls.read_text().splitlines()) == 6
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(tmp_path))  # g++ searches there as well
    assert str(tmp_path) in ask()
    os.utime(tmp_path / "fake-g++", (1, 1))  # another compiler now
    ask()
    assert len(calls.read_text().splitlines()) == 12
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(calls / "no-folder"))
    assert "/include" in ask()


def test_disk_full_in_the_compiler(scale, tmp_path, monkeypatch, own_cache):
    fake_compiler(
        tmp_path,
        monkeypatch,
        'case "$*" in *-MD*) echo "fatal error: x.o: No space left on device" >&2; exit 1;; esac\n'
        'exec "$real" "$@"',
    )
    with pytest.raises(KernelBuildError, match=r"no space left.*PYNQ_TORCH_CACHE"):
        hls.build(scale)
    assert leftovers(own_cache) == []


def test_disk_full_while_publishing(scale, monkeypatch, own_cache):
    def full(path, text):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(cache, "_write_atomically", full)
    with pytest.raises(KernelBuildError, match="no space left"):
        hls.build(scale)
    assert leftovers(own_cache) == []
    monkeypatch.undo()
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(own_cache))
    assert not hls.build(scale).cached


def test_a_cache_that_cannot_be_written(scale, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(KernelBuildError, match=r"build cache .* cannot be used.*PYNQ_TORCH_CACHE"):
        hls.build(scale)


def test_sanitizer_build_is_another_build(scale):
    built = hls.build(scale, sanitize=True)
    assert not built.cached
    symbols = subprocess.run(["nm", built.executable], capture_output=True, text=True, check=True)
    assert "__asan" in symbols.stdout


# ---- the adapter --------------------------------------------------------------------------------


def test_adapter(tmp_path):
    source = write(
        tmp_path / "k.cpp",
        "#include <hls_stream.h>\n#include <ap_int.h>\nnamespace lab {\n"
        "void k(int* m, ap_int<17> v, unsigned char a[64], hls::stream<short> s[2], int f[8]) {\n"
        "#pragma HLS INTERFACE m_axi port=m\n#pragma HLS INTERFACE s_axilite port=v,a,return\n"
        "#pragma HLS INTERFACE axis port=s,f\n}\n}\n",
    )
    text = adapter(hls.read_interface(source, "k"))
    # The engine first: the kernel's macros come after it.
    assert 0 <= text.index("engine.hpp") < text.index(f'#include "{source}"')
    for row in (
        "m_axi, 32}",
        "scalar, 17}",
        "memory, 8, 64}",
        "axis, 16, 2}",
        "axis_array, 32, 8}",
    ):
        assert f"{{pynq_torch::Kind::{row}" in text
    assert "return pynq_torch::serve(argc, argv, &lab::k, pynq_torch_args);" in text


def test_adapter_without_arguments(tmp_path):
    source = write(tmp_path / "k.cpp", "void k() {}")
    assert "pynq_torch::serve(argc, argv, &k);" in adapter(hls.read_interface(source, "k"))


def test_hand_written_engines_share_the_cache(tmp_path, monkeypatch):
    source = write(tmp_path / "mover.cpp", '#include "engine.hpp"\nint main() { return 7; }')
    program = hls.compile_engine(source)
    assert subprocess.run([program], check=False, timeout=10).returncode == 7
    monkeypatch.delattr(importlib.import_module("pynq_torch.hls.build"), "compile_program")
    assert hls.compile_engine(source) == program  # nothing is compiled
