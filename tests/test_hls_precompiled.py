"""What engines share, compiled once: the same engines, made from the same files, in less time."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pynq_torch import hls
from pynq_torch.errors import CacheWarning, KernelBuildError
from pynq_torch.hls import cache, toolchain

compile_ = importlib.import_module("pynq_torch.hls.compile")
build = importlib.import_module("pynq_torch.hls.build")
OBJECT = "engine_process.o"
KERNEL = """
#ifdef SIZE
#define FACTOR SIZE
#else
#define FACTOR 3
#endif
int scale(int x) {
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=return
    return FACTOR * x;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def shared_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the first build of this cache precompile the header already."""
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(folder))
    monkeypatch.setattr(cache, "_ENOUGH", 0)
    (folder / "index").mkdir(exist_ok=True)
    return folder


def _kernel(folder: Path, text: str = KERNEL) -> hls.KernelSource:
    folder.mkdir(exist_ok=True)
    (folder / "scale.cpp").write_text(text)
    return hls.KernelSource("scale", folder / "scale.cpp", "scale")


def _commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    commands: list[list[str]] = []
    run = compile_._run

    def watched(command: list[str], name: str) -> str:
        commands.append(command)
        return run([*command, "-Winvalid-pch"], name)

    monkeypatch.setattr(compile_, "_run", watched)
    return commands


def _entry(shared_cache: Path, executable: Path) -> dict[str, Any]:
    (entry,) = (
        entry
        for index in (shared_cache / "index").iterdir()
        for entry in cache._entries(index.stem)
        if entry["name"] == executable.parent.name
    )
    return entry


def test_an_engine_is_made_from_the_same_files(
    tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    kernel = _kernel(tmp_path / "a")
    made = hls.build(kernel)
    with monkeypatch.context() as patch:
        patch.setattr(compile_, "_engine_header", lambda *_: ("", []))
        plain = hls.build(kernel, cflags=["-DOTHER"])
    entry, expected = (_entry(shared_cache, item.executable) for item in (made, plain))
    assert entry["files"] == expected["files"]
    assert entry["absent"] == expected["absent"]
    assert str(toolchain.engine_header()) in entry["files"]
    assert made.executable.read_bytes() == plain.executable.read_bytes()


def test_gpp_takes_the_precompiled_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    commands = _commands(monkeypatch)
    assert hls.build(_kernel(tmp_path / "a")).log == ""  # or g++ says why it does not
    assert any("-include" in command for command in commands)


def test_arrays_behind_streams_have_one_of_their_own(
    tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    commands = _commands(monkeypatch)
    packet = """#include <ap_axi_sdata.h>
    void scale(ap_axiu<32, 0, 0, 0> in[4], ap_axiu<32, 0, 0, 0> out[4]) {
    #pragma HLS INTERFACE axis port=in
    #pragma HLS INTERFACE axis port=out
        for (int i = 0; i < 4; i++) out[i] = in[i];
    }"""
    for name in ("a", "b"):
        assert hls.build(_kernel(tmp_path / name, packet)).log == ""
    assert sum("c++-header" in command for command in commands) == 1
    assert sum("-include" in command for command in commands) == 2


def test_a_macro_that_matters_leaves_it_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    commands = _commands(monkeypatch)
    made = hls.build(_kernel(tmp_path / "a"), cflags=["-DNDEBUG=7", "-D_GLIBCXX_ASSERTIONS"])
    assert any("-include" in command for command in commands)
    assert "not used because" in made.log
    # A macro of the compiler's libraries may change the layout of what both know.
    assert _objects(commands) == (0, 0)
    assert not hls.build(_kernel(tmp_path / "a"), cflags=["-DSIZE=4"]).log


def _objects(commands: list[list[str]]) -> tuple[int, int]:
    """Return how often the object file of the engine's process was made, and linked."""
    made = sum("-c" in item and item[item.index("-o") + 1].endswith(OBJECT) for item in commands)
    return made, sum(any(word.endswith(OBJECT) for word in item[:-2]) for item in commands) - made


def test_the_process_is_compiled_once_for_all_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path / "cache"))
    commands = _commands(monkeypatch)
    for name in ("a", "b"):
        assert hls.build(_kernel(tmp_path / name)).log == ""
    assert _objects(commands) == (1, 2)


def test_a_damaged_object_file_is_made_again(
    tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    hls.build(_kernel(tmp_path / "a"))
    for path in shared_cache.glob(f"entries/*/{OBJECT}"):
        path.write_bytes(b"nothing")
    commands = _commands(monkeypatch)
    with pytest.warns(CacheWarning, match=r"engine_process\.o has 7 bytes"):
        hls.build(_kernel(tmp_path / "b"))
    assert _objects(commands) == (1, 1)


def test_it_is_made_when_engines_pay_for_it(
    tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_ENOUGH", 2)  # the object file and an engine
    commands = _commands(monkeypatch)
    hls.build(_kernel(tmp_path / "a"))
    assert not any("-include" in command for command in commands)
    hls.build(_kernel(tmp_path / "b"))
    assert any("-include" in command for command in commands)


@pytest.mark.parametrize("header", ["vector", "stream.hpp", "bits"])
def test_a_header_of_the_kernels_own_comes_first(
    tmp_path: Path, header: str, monkeypatch: pytest.MonkeyPatch
):
    commands = _commands(monkeypatch)
    kernel = _kernel(tmp_path / "a")
    hls.build(kernel)
    assert any("-include" in command for command in commands)
    (tmp_path / "a" / header).write_text("#error the kernel's own\n")
    commands.clear()
    if header == "vector":
        with pytest.raises(KernelBuildError, match="the kernel's own"):
            hls.build(kernel)
    else:  # engine.hpp finds its own beside it; the system's comes after those of a kernel
        hls.build(kernel)
    assert commands
    assert not any("-include" in command for command in commands)
    assert _objects(commands) == (0, 0)


def test_other_flags_than_macros_do_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    commands = _commands(monkeypatch)
    hls.build(_kernel(tmp_path / "a"), cflags=["-O0"])
    assert not any("-include" in command for command in commands)
    assert _objects(commands) == (0, 0)


def test_an_edited_header_is_precompiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of the engine's own headers none may be edited here: these are copies."""
    own = shutil.copytree(toolchain.engine_header().parent, tmp_path / "engines")
    monkeypatch.setattr(toolchain, "_ENGINE_HEADERS", own)
    kernel = _kernel(tmp_path / "a")
    header = own / "engine.hpp"
    text = header.read_text()
    builds = []
    for word in ("first", "second"):
        own_word = f'__attribute__((used)) static const char own[] = "the {word}";'
        header.write_text(f"{text}\n{own_word}\n")
        _long_ago(header)
        commands = _commands(monkeypatch)
        builds.append(hls.build(kernel))
        assert not builds[-1].cached
        assert any(str(item).endswith(".gch") for command in commands for item in command)
        assert hls.build(kernel).cached
    first, second = (item.executable.read_bytes() for item in builds)
    assert b"the first" in first
    assert b"the second" in second


def test_a_damaged_precompiled_header_is_made_again(
    tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    hls.build(_kernel(tmp_path / "a"))
    for path in shared_cache.glob("entries/*/engine.hpp.gch"):
        path.write_bytes(b"no header")
    with pytest.warns(CacheWarning, match=r"engine\.hpp\.gch has 9 bytes"):
        made = hls.build(_kernel(tmp_path / "b"))
    assert made.log == ""


def test_one_that_cannot_be_mapped_is_read_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = compile_._run

    def refused(command: list[str], name: str) -> str:
        if "-include" in command:
            raise KernelBuildError("fatal error: had to relocate PCH", name)
        return run(command, name)

    monkeypatch.setattr(compile_, "_run", refused)
    assert not hls.build(_kernel(tmp_path / "a")).cached


def test_an_engine_is_built_where_there_is_no_room_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache/index").mkdir(parents=True)

    def full(*_: object) -> None:
        raise KernelBuildError(cache.no_room())

    monkeypatch.setattr(compile_, "_precompile", full)
    commands = _commands(monkeypatch)
    assert hls.build(_kernel(tmp_path / "a")).executable.is_file()
    assert not any("-include" in command for command in commands)


def _long_ago(path: Path) -> None:
    """Let a file be older than the build that reads it."""
    os.utime(path, (path.stat().st_mtime - 100,) * 2)
