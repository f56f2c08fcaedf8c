"""Kernel folders: what is in them, their testbenches and their latency models."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from helpers import interface_of

from pynq_torch.descriptions import LatencyModel, read_kernel_description
from pynq_torch.errors import InterfaceError
from pynq_torch.hls import cache, toolchain
from pynq_torch.paths import ROOT

KERNELS = sorted(path.name for path in (ROOT / "hw/kernels").iterdir())
LINES = 120


def make(*arguments: str, path: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **environment}
    if path:
        environ["PATH"] = path + os.pathsep + environ["PATH"]
    for inherited in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        environ.pop(inherited, None)
    return subprocess.run(
        ["make", "-s", "-C", str(ROOT / "hw"), *arguments],
        capture_output=True, text=True, timeout=280, env=environ, check=False,
    )  # fmt: skip


@functools.cache
def shared_text() -> str:
    """Return a digest of all that may take part in every testbench, beside the kernel's folder."""
    own = [*toolchain.include_dirs()[:2], ROOT / "hw/include"]
    files = [ROOT / "hw/Makefile", *(ROOT / "hw/kernels").glob("*/*.hpp")]
    files += [path for folder in own for path in folder.rglob("*.h*")]
    folders = map(str, toolchain.include_dirs())
    texts = (path.read_bytes() for path in sorted(files))
    return cache.digest(toolchain.compiler_version(), *folders, *texts)


def kept_build(kernel: str, *more: str) -> Path:
    """Return the folder for the testbench of a kernel, which a change of any file leaves unused."""
    files = sorted(path for path in (ROOT / "hw/kernels" / kernel).rglob("*") if path.is_file())
    key = cache.digest(shared_text(), *more, *(path.read_bytes() for path in files))
    name = "-".join([*("plain" for _ in more), kernel, key])
    return cache.cache_dir() / "testbenches" / name


def run_testbench(kernel: str, scratch: Path, *more: str) -> Path:
    """Build and run the testbench of a kernel, with `more` for make; return its objects' folder."""
    kept = kept_build(kernel, *more)
    build = kept if kept.is_dir() else scratch / "build"
    given = [f"BUILD={build}", *more]
    if kernel != KERNELS[0]:  # that one lets make ask for the folders, at each of its commands
        given.append("INCLUDES=" + " ".join(f"-isystem {d}" for d in toolchain.include_dirs()))
    done = make(f"tb-{kernel}", *given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr, done.stderr
    assert "PASS" in done.stdout
    assert "FAIL" not in done.stdout
    if build != kept:
        keep(build, kept)
    return build / "tb"


@pytest.mark.parametrize("kernel", KERNELS)
def test_testbench(kernel: str, tmp_path: Path) -> None:
    run_testbench(kernel, tmp_path)


def keep(build: Path, kept: Path) -> None:
    """Move what was built, without a warning, to where the next run of the tests finds it."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    for old in kept.parent.glob(f"{kept.name.rpartition('-')[0]}-*"):
        shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
        whole = shutil.copytree(build, Path(scratch) / "build")
        with contextlib.suppress(OSError):  # another run of the tests was faster
            whole.rename(kept)


def test_a_testbench_is_kept_while_no_file_of_its_own_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("Makefile", "include", "kernels/vadd", "kernels/gemm"):
        source, target = ROOT / "hw" / part, tmp_path / "hw" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)

    def of_vadd() -> Path:
        shared_text.cache_clear()
        return kept_build("vadd")

    seen = {of_vadd()}
    assert of_vadd() in seen
    for name in ("kernels/vadd/vadd.cpp", "kernels/gemm/gemm_core.hpp", "Makefile"):
        with (tmp_path / "hw" / name).open("a") as file:
            file.write("\n")
        assert of_vadd() not in seen
        seen.add(of_vadd())
    with (tmp_path / "hw/kernels/gemm/gemm.cpp").open("a") as file:
        file.write("\n")
    assert of_vadd() in seen
    shared_text.cache_clear()
    keep(tmp_path / "hw", tmp_path / "c/vadd-1")
    keep(tmp_path / "hw/include", tmp_path / "c/vadd-2")
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["vadd-2"]


def test_a_testbench_is_made_again_only_for_files_of_its_own(tmp_path: Path) -> None:
    """Shared headers count for those who include them, and so do the headers of siblings."""
    shutil.copy(ROOT / "hw/Makefile", tmp_path)
    shutil.copytree(ROOT / "hw/include", tmp_path / "include")
    for kernel in ("vadd", "vadd_1", "gemm", "gemm_lut"):
        shutil.copytree(ROOT / "hw/kernels" / kernel, tmp_path / "kernels" / kernel)
    root = os.environ | {"PYTHONPATH": str(ROOT)}
    inputs = {"vadd": "kernels/vadd/vadd.hpp", "vadd_1": "include/ladder_vadd_tb.hpp"}
    build = ["make", "-s", "-C", str(tmp_path), f"PYTHON={sys.executable}", "INCLUDES="]
    goals = [f"build/tb/{kernel}.o" for kernel in inputs] + ["build/tb/vadd_1_tb.o"]
    goals = [str(tmp_path / goal) for goal in goals]

    def remade(*flags: str) -> set[str]:
        done = subprocess.run([*build, *flags, "--trace", *goals], capture_output=True, text=True,
                              timeout=200, env=root, check=True)  # fmt: skip
        return {Path(name).name for name in re.findall(r"update target '([^']*)'", done.stdout)}

    assert remade() == {"vadd.o", "vadd_1.o", "vadd_1_tb.o"}
    assert remade() == set()
    later = time.time()
    for kernel, expected in {"vadd": {"vadd.o"}, "vadd_1": {"vadd_1_tb.o"}}.items():
        later += 1000
        os.utime(tmp_path / inputs[kernel], (later, later))
        assert remade("-n") == expected
        for goal in goals:
            os.utime(goal, (later + 1, later + 1))

    def synthesised(changed: str) -> set[str]:
        """Kernels whose .xo would be made again; a stand-in for v++ made them once."""
        for kernel in ("vadd", "gemm", "gemm_lut"):
            made = tmp_path / f"build/xo/{kernel}.xo"
            made.parent.mkdir(parents=True, exist_ok=True)
            made.touch()
            os.utime(made, (2e9, 2e9))
        os.utime(tmp_path / changed, (2.1e9, 2.1e9))
        wanted = [str(tmp_path / f"build/xo/{k}.xo") for k in ("vadd", "gemm", "gemm_lut")]
        done = subprocess.run([*build, "-n", "--trace", *wanted], capture_output=True, text=True,
                              timeout=60, env=root, check=False)  # fmt: skip
        os.utime(tmp_path / changed, (1e9, 1e9))
        return {Path(n).stem for n in re.findall(r"update target '([^']*)\.xo'", done.stdout)}

    assert synthesised("kernels/gemm/gemm_core.hpp") == {"gemm", "gemm_lut"}
    assert synthesised("kernels/vadd/vadd.cpp") == {"vadd"}
    assert synthesised("include/ladder_vadd_tb.hpp") == {"vadd", "gemm", "gemm_lut"}


def test_a_testbench_fails_on_a_wrong_kernel(tmp_path: Path) -> None:
    """The benches are worth nothing if they pass whatever the kernel does."""
    source = ROOT / "hw/kernels/vadd"
    wrong = (source / "vadd.cpp").read_text().replace("a[i] + b[i]", "a[i] - b[i]")
    for kernel, text in {"vadd": wrong}.items():
        (tmp_path / f"{kernel}.cpp").write_text(text)
        command = ["g++", "-std=c++17", "-w", f"-I{source}", tmp_path / f"{kernel}.cpp",
                   source / f"{kernel}_tb.cpp", "-o", tmp_path / "tb"]  # fmt: skip
        subprocess.run(command, check=True, timeout=60)
        done = subprocess.run([tmp_path / "tb"], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0
        assert "first wrong index 0" in done.stdout


@pytest.mark.parametrize("kernel", KERNELS)
def test_folder(kernel: str) -> None:
    folder = ROOT / "hw/kernels" / kernel
    for file in (f"{kernel}.cpp", f"{kernel}.hpp", f"{kernel}_tb.cpp", "description.json",
                 "hls_config.cfg", "run_hls.tcl"):  # fmt: skip
        assert (folder / file).is_file(), file
    assert f"syn.top={kernel}" in (folder / "hls_config.cfg").read_text()
    assert f"set kernel {kernel}\n" in (folder / "run_hls.tcl").read_text()
    for source in folder.glob("*.[ch]pp"):
        assert len(source.read_text().splitlines()) <= LINES, source
    labels = re.findall(r"^(?:\s*)(\w+):$", (folder / f"{kernel}.cpp").read_text(), re.MULTILINE)
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize("kernel", KERNELS)
def test_interface(kernel: str) -> None:
    interface = interface_of(kernel)
    assert interface.control == "ap_ctrl_hs"
    assert interface.control_bundle == "control"


@pytest.mark.parametrize("kernel", KERNELS)
def test_description(kernel: str) -> None:
    description = read_kernel_description(ROOT / "hw/kernels" / kernel)
    assert description.name == kernel
    assert description.summary.endswith(".")
    compile(description.reference, kernel, "eval")
    assert all(operator.startswith("aten::") for operator in description.operators)
    one = dict.fromkeys(description.latency.symbols, 1)
    large = dict.fromkeys(description.latency.symbols, 1024)
    assert 0 < description.latency.cycles(**one) < description.latency.cycles(**large)


def test_modelled_cycles_are_what_the_arithmetic_gives() -> None:
    folder = ROOT / "hw/kernels"
    vadd = read_kernel_description(folder / "vadd").latency
    assert vadd.cycles(n=1024) == 1024 + 50 + 2 * 1024 + 60
    gemm = read_kernel_description(folder / "gemm").latency
    # 256^3: 256 blocks of b in the array, the last step of eight, and the store of the tile.
    array = 256 + 13
    assert gemm.cycles(m=256, n=256, k=256) == (256 + 32) * array + 256 * 256 + 60 + 200
    # One row: every element of b comes through the port once, and hides all else.
    assert gemm.cycles(m=1, n=512, k=512) > 512 * 512
    # The LUT variant has a quarter of the array and is slower, though not on a sliver of work.
    lut = read_kernel_description(folder / "gemm_lut").latency
    assert lut.cycles(m=512, n=512, k=512) > gemm.cycles(m=512, n=512, k=512)
    # No model may promise more than the array can do.
    for model, macs in ((gemm, 256), (lut, 64)):
        for size in (64, 256, 1024):
            assert model.cycles(m=size, n=size, k=size) >= size**3 / macs


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("__import__('os').getpid()", "may use"),
        ("n ** 2", "n ** 2"),
        ("m + n", "'m'"),
        ("max(n, key=n)", "may use"),
    ],
)
def test_a_model_is_arithmetic_only(expression: str, said: str) -> None:
    with pytest.raises(InterfaceError) as caught:
        LatencyModel(expression, {"n": "elements"}, "").cycles(n=3)
    assert said in str(caught.value)


def test_a_missing_symbol_is_named() -> None:
    with pytest.raises(InterfaceError, match="k is missing"):
        LatencyModel("m + k", {"m": "", "k": ""}, "").cycles(m=3)


def test_a_model_must_say_that_it_is_one(tmp_path: Path) -> None:
    data = json.loads((ROOT / "hw/kernels/vadd/description.json").read_text())
    data["latency"]["kind"] = "measured"
    (tmp_path / "description.json").write_text(json.dumps(data))
    with pytest.raises(InterfaceError, match="model"):
        read_kernel_description(tmp_path)
    del data["reference"]
    data["latency"]["kind"] = "model"
    (tmp_path / "description.json").write_text(json.dumps(data))
    with pytest.raises(InterfaceError, match="reference"):
        read_kernel_description(tmp_path)


@pytest.mark.skipif(shutil.which("vivado") is not None, reason="Vivado is installed")
@pytest.mark.parametrize("target", ["kernels", "overlays", "xo", "all"])
def test_make_says_what_is_missing(target: str, tmp_path: Path) -> None:
    done = make(target, f"BUILD={tmp_path}")
    assert done.returncode != 0
    said = done.stderr.splitlines()[0]
    assert "is not on the PATH" in said
    assert "settings64.sh" in said


VIVADO = """#!/bin/sh
[ "$1" = -version ] && { echo 'vivado v2023.2 (64-bit)'; exit 0; }
for argument; do result=$argument; done
name=$(basename "$5" .tcl)
mkdir -p "$result"
printf 'frames of %s' "$name" > "$result/$name.bit"
printf '<xml/>' > "$result/$name.hwh"
"""
VITIS = """#!/bin/sh
for argument; do script=$argument; done
kernel=$(sed -n 's/^set kernel //p' "$script")
mkdir -p "$HLS_BUILD/ip/$kernel"
touch "$HLS_BUILD/ip/$kernel/component.xml"
"""


def test_make_drives_the_tools(tmp_path: Path) -> None:
    """With stand-ins for Vitis and Vivado the whole chain runs, down to the manifest."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in {"vivado": VIVADO, "vitis-run": VITIS}.items():
        (tools / name).write_text(text)
        (tools / name).chmod((tools / name).stat().st_mode | stat.S_IXUSR)
    out = tmp_path / "bitstreams"
    done = make("overlays", "OVERLAYS=vadd", "KERNELS=vadd", f"BUILD={tmp_path / 'build'}",
                f"BITSTREAMS={out}", path=str(tools))  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    manifest = json.loads((out / "vadd/manifest.json").read_text())
    assert manifest["kind"] == "vivado"
    assert manifest["tools"]["vivado"] == "vivado v2023.2 (64-bit)"
    assert (out / "vadd/vadd.bit").read_bytes() == b"frames of vadd"


@pytest.mark.skipif(shutil.which("tclsh") is None, reason="tclsh is not installed")
@pytest.mark.parametrize("kernel", KERNELS)
def test_hls_script(kernel: str, tmp_path: Path) -> None:
    """run_hls.tcl under tclsh, its commands recorded."""
    log = tmp_path / "record"
    recorder = Path(__file__).parent / "design_recorder.tcl"
    script = ROOT / "hw/kernels" / kernel / "run_hls.tcl"
    (tmp_path / "build").mkdir()
    environ = {**os.environ, "HLS_BUILD": str(tmp_path / "build")}
    subprocess.run(["tclsh", recorder, script, log], check=True, env=environ, timeout=60)
    words = [line.split("\t") for line in log.read_text().splitlines()]
    commands = [line[0] for line in words]
    assert ["set_top", kernel] in words
    assert ["set_part", "xc7z020clg400-1"] in words
    assert [c for c in commands if c.endswith("_design")] == [
        "csim_design", "csynth_design", "export_design",
    ]  # fmt: skip
    for line in words:
        if line[0] == "add_files":
            assert Path(line[-1]).is_file()
