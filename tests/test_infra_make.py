"""The Makefile and the scripts in ci/, without installing anything."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAKE_PYTHON = """#!/usr/bin/env bash
# stands in for the Python of an environment: says what it was asked, fails where it is told to
echo "$@" >> "$CALLS"
case "$*" in
  "-m venv"*) mkdir -p "${@: -1}/bin"; cp "$0" "${@: -1}/bin/python" ;;
  "-m pip --version") [ -e "$CALLS.pip" ] || exit 1 ;;
  *"$FAIL_ON"*) [ -z "$FAIL_ON" ] || exit 1 ;;
esac
"""


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """Return a folder with the files that `make` itself reads, and a Python that only records."""
    folder = tmp_path / "clone"
    for name in ("Makefile", "pyproject.toml", "ci", ".ci", "pynq_torch/board/startup"):
        source, target = root / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
    fake = tmp_path / "fake-python"
    fake.write_text(FAKE_PYTHON)
    fake.chmod(0o755)
    return folder


def _make(
    clone: Path, *arguments: str, fail_on: str = "", inherited: bool = False
) -> subprocess.CompletedProcess[str]:
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"
    }
    environment |= {"CALLS": str(clone.parent / "calls"), "FAIL_ON": fail_on}
    return subprocess.run(
        ["make", f"PYTHON={clone.parent / 'fake-python'}", *arguments],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _calls(clone: Path) -> list[str]:
    return (clone.parent / "calls").read_text().splitlines()


def test_help_names_every_target(clone: Path):
    done = _make(clone, "help")
    targets = set(re.findall(r"^  (\S+)", done.stdout, re.MULTILINE))
    wanted = {
        "lab",
        "env",
        "env-test",
        "report",
        "test",
        "bench",
        "test-board-image",
        "lint",
        "clean",
        "help",
    }
    assert targets >= wanted
    assert not (clone / ".venv").exists()


def test_the_environment_is_made_once(clone: Path):
    assert _make(clone, "env").returncode == 0
    assert (clone / ".venv" / ".installed").exists()
    calls = _calls(clone)
    assert any(
        "--constraint ci/constraints.txt" in c and "--editable .[virtual,lab,rtl]" in c
        for c in calls
    )
    assert not any("test]" in c for c in calls)
    assert calls[-1] == "-m pynq_torch kernels-install"
    _make(clone, "env")
    assert _calls(clone) == calls


def test_the_tests_packages_come_on_top(clone: Path):
    """A student's environment first, then what the tests need, each once and in one folder."""
    _make(clone, "env")
    (clone.parent / "calls.pip").touch()  # from now on the environment has pip
    before = _calls(clone)
    assert _make(clone, "env-test").returncode == 0
    (added,) = [c for c in _calls(clone)[len(before) :] if "--editable" in c]
    assert added.endswith("--editable .[test]")
    after = _calls(clone)
    _make(clone, "env-test")
    assert _calls(clone) == after
    assert sum("-m venv" in call for call in after) == 1
    stamp = (clone / ".venv" / ".installed").stat().st_mtime
    os.utime(clone / "pyproject.toml", (stamp + 5, stamp + 5))
    _make(clone, "env-test")
    assert sum("--editable" in call for call in _calls(clone)[len(after) :]) == 2


def test_a_student_gets_no_packages_of_the_tests(clone: Path):
    for target in ("env", "report"):
        assert _make(clone, target).returncode == 0
    assert not (clone / ".venv" / ".installed-test").exists()


@pytest.mark.parametrize("changed", ["pyproject.toml", "ci/constraints.txt"])
def test_a_change_installs_again(clone: Path, changed: str):
    _make(clone, "env")
    before = len(_calls(clone))
    stamp = (clone / ".venv" / ".installed").stat().st_mtime
    os.utime(clone / changed, (stamp + 5, stamp + 5))
    assert _make(clone, "env").returncode == 0
    assert len(_calls(clone)) > before


@pytest.mark.parametrize("stage", ["setuptools", "--editable", "check", "kernels-install"])
def test_a_failed_install_leaves_no_stamp(clone: Path, stage: str):
    done = _make(clone, "env", fail_on=stage)
    assert done.returncode != 0
    assert not (clone / ".venv" / ".installed").exists()
    assert _make(clone, "env").returncode == 0
    assert (clone / ".venv" / ".installed").exists()


def test_a_failed_upgrade_removes_the_old_stamp(clone: Path):
    _make(clone, "env")
    stamp = clone / ".venv" / ".installed"
    later = stamp.stat().st_mtime + 5
    os.utime(clone / "pyproject.toml", (later, later))
    assert _make(clone, "env", fail_on="--editable").returncode != 0
    assert not stamp.exists()


def test_two_makes_at_once_install_once(clone: Path):
    environment = {**os.environ, "CALLS": str(clone.parent / "calls"), "FAIL_ON": ""}
    command = ["make", f"PYTHON={clone.parent / 'fake-python'}", "-j4", "env"]
    running = [
        subprocess.Popen(command, cwd=clone, env=environment, stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    assert sum("venv" in call for call in _calls(clone)) == 1


def test_a_python_that_is_not_there(clone: Path):
    done = subprocess.run(
        ["make", "PYTHON=no-such-python", "env"],
        cwd=clone,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert "PYTHON=no-such-python is no Python 3.10, 3.11 or 3.12" in done.stderr


@pytest.mark.parametrize(
    ("there", "broken", "taken"),
    [
        (["3.10", "3.11", "3.12"], [], "3.12"),
        (["3.10", "3.11"], [], "3.11"),
        (["3.10"], [], "3.10"),
        (["3.11", "3.12"], ["3.12"], "3.11"),  # a shim of a version manager, say
    ],
)
def test_make_takes_the_newest_python_that_works(
    clone: Path, there: list[str], broken: list[str], taken: str
):
    folder = clone.parent / "pythons"
    folder.mkdir()
    for name in ("make", "bash", "dirname", "mkdir", "cp", "rm", "touch", "id", "env"):
        (folder / name).symlink_to(shutil.which(name) or name)
    for version in there:
        calls = clone.parent / f"calls-{version}"
        program = "exit 127\n" if version in broken else FAKE_PYTHON.split("\n", 1)[1]
        text = f"#!/usr/bin/env bash\nCALLS={calls} FAIL_ON=\n{program}"
        (folder / f"python{version}").write_text(text)
        (folder / f"python{version}").chmod(0o755)
    done = subprocess.run(
        ["make", "env"],
        cwd=clone,
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    made = {v for v in there if (clone.parent / f"calls-{v}").exists()
            and "-m venv" in (clone.parent / f"calls-{v}").read_text()}  # fmt: skip
    assert made == {taken}


@pytest.mark.parametrize(
    ("words", "passed"),
    [
        ([], "--board csim"),
        (["BOARD=local", "JOBS=2"], "--board local --jobs 2"),
        (["SEED=3", "LIST=[1,2]"], "--board csim SEED=3 LIST=[1,2]"),
        (["SIZES=64 128", "BOARD=local"], "--board local SIZES=64 128"),
        (["NOTEBOOKS=05 07_torch_device"], "--board csim --only 05 07_torch_device"),
        (["NAME=it's"], "--board csim NAME=it's"),
    ],
)
def test_report_passes_parameters_through(clone: Path, words: list[str], passed: str):
    _make(clone, "env")
    done = _make(clone, "report", *words)
    assert done.returncode == 0, done.stderr
    # make gives overrides in an order of its own
    assert sorted(_calls(clone)[-1].split()) == sorted(f"-m pynq_torch report {passed}".split())


def test_lab_passes_its_flags_and_opens_the_workbook(clone: Path):
    _make(clone, "env")
    jupyter = clone / ".venv" / "bin" / "jupyter"
    jupyter.write_text('#!/bin/sh\necho "$@" | tee -a jupyter-calls\n')
    jupyter.chmod(0o755)
    done = _make(clone, "lab", "LAB_FLAGS=--no-browser --port=9999")
    trusted = (clone / "jupyter-calls").read_text().splitlines()[0]
    assert trusted == "trust notebooks/*.ipynb"
    assert "notebooks/00_start_here.ipynb" in done.stdout
    assert done.stdout.strip().endswith("--no-browser --port=9999")


@pytest.fixture
def tested(clone: Path) -> Path:
    """Return a clone with all that `make test` calls."""
    _make(clone, "env-test")
    for name in ("codespell", "lint-imports"):
        program = clone / ".venv" / "bin" / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return clone


STAGES = ("ruff", "mypy", "-n 2", "report --board csim", "report --board rtl", "--nbval")


def test_make_test_runs_every_stage(tested: Path):
    before = len(_calls(tested))
    assert _make(tested, "test").returncode == 0
    calls = _calls(tested)[before:]
    for stage in STAGES:
        assert any(stage in call for call in calls), stage
    assert calls[-1] == "ci/slowest.py reports/times reports/test reports/rtl"


@pytest.mark.parametrize("stage", [*STAGES, "slowest"])
def test_make_test_fails_when_a_stage_fails_and_yet_runs_the_others(tested: Path, stage: str):
    before = len(_calls(tested))
    assert _make(tested, "test", fail_on=stage).returncode != 0
    calls = _calls(tested)[before:]
    for other in (*STAGES[2:], "slowest"):
        assert any(other in call for call in calls), other


@pytest.mark.parametrize("program", ["codespell", "lint-imports"])
def test_lint_beside_the_tests_fails_make_test(tested: Path, program: str):
    (tested / ".venv" / "bin" / program).write_text("#!/bin/sh\nexit 1\n")
    done = _make(tested, "test")
    assert done.returncode != 0
    assert "make test: failed: lint or unit tests" in done.stderr


def test_make_test_ends_with_its_slowest_parts(root: Path, tmp_path: Path):
    times, run = tmp_path / "times", tmp_path / "rtl/runs/a"
    times.mkdir()
    run.mkdir(parents=True)
    cases = "".join(
        f'<testcase classname="tests.test_{n}" name="test_{t}" time="{n + t / 10}"/>'
        for n in range(10)
        for t in range(2)
    )
    (times / "unit.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    notebooks = [{"name": "05_gemm-SIZE=96", "seconds": 7.5}, {"name": "07", "seconds": 0.5}]
    (run / "index.json").write_text(json.dumps({"notebooks": notebooks}))
    command = [sys.executable, root / "ci/slowest.py", times, tmp_path / "none", tmp_path / "rtl"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    lines = done.stdout.splitlines()
    assert lines[0] == "The 10 slowest of 12 parts:"
    assert len(lines) == 11
    assert lines[1] == "   18.1 s  unit: tests.test_9, 2 tests (longest: test_1, 9 s)"
    assert "    7.5 s  report rtl: 05_gemm-SIZE=96" in lines


def test_what_takes_long_runs_all_lessons_more_examples_and_mutations(root: Path, tested: Path):
    before = len(_calls(tested))
    assert _make(tested, "test-long", "SAMPLE=3").returncode == 0
    calls = _calls(tested)[before:]
    assert any("report --board csim" in call and "--only" not in call for call in calls)
    assert any("-m hypothesis" in call for call in calls)
    mutated = [call.split()[1] for call in calls if "tests/mutate.py" in call]
    assert len(mutated) > 5
    for name in mutated:
        assert (root / "pynq_torch" / name).is_dir() or (root / name).is_dir(), name
    assert all("--sample 3" in call for call in calls if "tests/mutate.py" in call)
    assert _make(tested, "test-long", fail_on=mutated[0]).returncode != 0


def test_files_that_begin_first_are_there(root: Path):
    names = runpy.run_path(str(root / "tests/conftest.py"))["LONG"]
    assert len(set(names)) == len(names)
    assert [name for name in names if not (root / f"tests/test_{name}.py").is_file()] == []


def test_more_examples_are_drawn_where_that_is_asked(root: Path, tmp_path: Path):
    (tmp_path / "conftest.py").write_text((root / "tests/conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(
        "from hypothesis import given, settings\n"
        "from hypothesis import strategies as st\n"
        "seen, others = [], []\n"
        "@settings(max_examples=7)\n@given(st.integers())\n"
        "def test_some(n): seen.append(n)\n"
        "@given(st.integers())\n"
        "def test_more(n): others.append(n)\n"
        "def test_number(): assert (len(seen), len(others)) == (21, 300)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "."],
        cwd=tmp_path,
        env={**os.environ, "PYNQ_TORCH_EXAMPLES": "3"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout


def _ci(clone: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run .ci/run where there are only these programs, and what every system has."""
    folder = clone.parent / "bin"
    folder.mkdir()
    for name in ("bash", "dirname", "cat"):
        (folder / name).symlink_to(shutil.which(name) or name)
    make = 'echo "$PWD|$@|$CI|$(cat)"\n[ "$1" != test ] || exit 4'
    for name, script in {"make": make, **programs}.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    return subprocess.run(
        ["bash", str(clone / ".ci" / "run")],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        input="somebody at the keyboard",
        check=False,
        timeout=30,
    )


def test_ci_runs_the_readme_command(root: Path, clone: Path):
    assert os.access(root / ".ci" / "run", os.X_OK)
    assert "make test" in (root / "README.md").read_text()
    there = dict.fromkeys(PROVIDED, "exit 1")
    done = _ci(clone, **there)
    assert done.stdout.splitlines() == [f"{clone}|{t}|true|" for t in ("armv7-sysroot", "test")]
    assert done.stderr == ""
    assert done.returncode == 4


def test_ci_goes_on_without_the_emulated_processor(clone: Path):
    done = _ci(clone, **dict.fromkeys(PROVIDED, ""), make='[ "$1" = test ] && exit 4; exit 2')
    assert done.returncode == 4
    assert done.stderr.splitlines() == [
        "no armhf Python: the tests on an emulated Cortex-A9 will be skipped"
    ]


#: Programs that .ci/run looks for, and the package of each.
PROVIDED = {
    "chromium": "chromium",
    "bwrap": "bubblewrap",
    "ghdl": "ghdl",
    "clang-16": "clang-16",
    "opt-16": "llvm-16",
    "qemu-arm-static": "qemu-user-static",
    "arm-linux-gnueabihf-g++": "g++-arm-linux-gnueabihf",
}


@pytest.mark.parametrize("missing", PROVIDED)
@pytest.mark.parametrize(
    ("programs", "installs", "complaint"),
    [
        ({"id": "echo 0", "apt-get": ""}, True, ""),
        ({"id": "echo 0", "apt-get": '[ "$1" != install ]'}, True, "could not be installed"),
        ({"id": "echo 0", "apt-get": "exit 100"}, True, "could not be installed"),
        ({"id": "echo 1000", "apt-get": ""}, False, "no right to install it"),
        ({"id": "echo 0"}, False, "no right to install it"),
        ({"id": "echo 0", **dict.fromkeys(PROVIDED, ""), "apt-get": ""}, False, ""),
    ],
)
def test_ci_installs_what_is_missing_where_it_can(
    clone: Path, programs: dict[str, str], installs: bool, complaint: str, missing: str
):
    programs = {**{name: "" for name in PROVIDED if name != missing}, **programs}
    calls = clone.parent / "apt"
    if "apt-get" in programs:
        programs = {**programs, "apt-get": f'echo "$@" >> {calls}\n{programs["apt-get"]}'}
    done = _ci(clone, **programs)
    assert done.returncode == 4  # make's, in any case
    assert complaint in done.stderr
    assert bool(complaint) == ("will be skipped" in done.stderr)
    assert calls.exists() == installs
    if installs and not complaint:
        package = PROVIDED[missing]
        *_, last = calls.read_text().splitlines()
        assert last.startswith("install ") and last.endswith(f" {package}")


def test_without_a_browser_make_test_says_so(root: Path):
    script = str(root / "tests" / "browser" / "chromium.py")
    for name, said in (
        ("no-such-browser", "tests in tests/browser are skipped"),
        ("ls", "tests with"),
    ):
        done = subprocess.run(
            [sys.executable, script],
            env={**os.environ, "PYNQ_TORCH_BROWSER": name},
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        assert said in done.stdout
        assert len(done.stdout.splitlines()) == 1
