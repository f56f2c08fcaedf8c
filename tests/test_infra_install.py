"""The wheel in an environment of its own, with no checkout: what works, and where it writes."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.install
ROOT = Path(__file__).resolve().parent.parent


class Installed:
    """An environment with the wheel, and a home and a working directory that were empty."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work = folder, folder / "work"
        self.work.mkdir()
        wheels = folder / "wheels"
        build = f"import hatchling.build as b; b.build_wheel({str(wheels)!r})"
        subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, timeout=120)
        (self.wheel,) = wheels.glob("*.whl")
        venv.create(folder / "env", with_pip=False)
        self.python = str(folder / "env" / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", "--no-deps"]
        subprocess.run(
            [*pip, "--no-index", "--no-compile", str(self.wheel)],
            check=True, timeout=120, capture_output=True,
        )  # fmt: skip
        (self.site,) = (folder / "env").glob("lib/python*/site-packages")
        # The other packages are those of this environment; a path line runs none of its .pth files.
        (self.site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.package = self.site / "pynq_torch"

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run Python with these arguments; return what it prints."""
        kept = ("PATH", "CXX", "LANG", "TMPDIR")
        done = subprocess.run(
            [self.python, "-W", "ignore", *arguments],
            cwd=self.work,
            env={
                **{name: os.environ[name] for name in kept if name in os.environ},
                "HOME": str(self.folder / "home"),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    def files(self) -> dict[Path, int]:
        """Return the package's files, with the time of their last change."""
        return {p: p.stat().st_mtime_ns for p in self.package.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"))


@pytest.fixture(autouse=True)
def _read_only(installed: Installed):
    """Nothing may be written beside the sources: elsewhere they are read-only."""
    before = installed.files()
    yield
    assert installed.files() == before


def test_the_wheel_carries_what_the_project_has(installed: Installed):
    listed = subprocess.run(
        ["git", "ls-files", "hw", "bitstreams", "notebooks"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("no git, or no repository")
    carried = {
        path.relative_to(installed.package).as_posix()
        for part in ("hw", "bitstreams", "notebooks")
        for path in (installed.package / part).rglob("*")
        if path.is_file()
    }
    assert set(listed.stdout.split()) - carried == set()
    assert not any("/build/" in name or "__pycache__" in name for name in carried)
    assert installed.wheel.stat().st_size < 10 << 20


def test_load_by_name_runs_a_kernel(installed: Installed):
    program = (
        "import torch, pynq_torch; overlay = pynq_torch.load('gemm')\n"
        "x = torch.randint(-128, 128, (8, 8), dtype=torch.int8)\n"
        "assert torch.equal(overlay.gemm(x, x), x.int() @ x.int())\n"
        "print(pynq_torch.__file__)"
    )
    assert str(installed.site) in installed.run("-c", program)


def test_kernels_are_listed(installed: Installed):
    said = installed.run("-m", "pynq_torch", "kernels")
    here = len([*(ROOT / "hw" / "kernels").glob("*/description.json")])
    assert f"{here} kernels" in said and "gemm" in said


def test_the_doctor_advises_no_make(installed: Installed):
    said = installed.run("-m", "pynq_torch", "doctor", "--json")
    assert "make env" not in said and "git checkout" not in said
    program = (
        "from pynq_torch.cli import doctor_checks as d; print(d.remedy('rtl')); print(d.remedy())"
    )
    assert installed.run("-c", program).split("\n")[:2] == [
        f"{installed.python} -m pip install 'pynq_torch[rtl]'",
        f"{installed.python} -m pip install 'pynq_torch'",
    ]


def test_run_gives_a_program_the_board(installed: Installed):
    (installed.work / "program.py").write_text(
        "from pynq import Device\nprint(Device.active_device.name)\n"
    )
    assert installed.run("-m", "pynq_torch", "run", "program.py").strip() == "Pynq-Z2"


def test_the_workbook_is_written_where_asked(installed: Installed):
    said = installed.run("-m", "pynq_torch", "workbook", "lessons")
    assert "jupyter lab lessons" in said
    lessons = installed.work / "lessons"
    assert len(list((lessons / "notebooks").glob("*.ipynb"))) == len(
        list((ROOT / "notebooks").glob("*.ipynb"))
    )
    assert (lessons / "hw" / "kernels" / "vadd" / "vadd.cpp").is_file()
    assert (lessons / "bitstreams" / "vadd" / "vadd.hwh").is_file()
    first = lessons / "notebooks" / "00_start_here.ipynb"
    first.write_text("mine")
    refused = installed.run("-m", "pynq_torch", "workbook", "lessons", status=1)
    assert "is not empty" in refused and "--force" in refused
    assert first.read_text() == "mine"
    installed.run("-m", "pynq_torch", "workbook", "lessons", "--force")
    assert first.read_text() != "mine"


def test_what_is_built_goes_to_the_users_folder(installed: Installed):
    said = installed.run("-m", "pynq_torch", "overlay", "build", "vadd")
    own = installed.folder / "home" / ".local" / "share" / "pynq_torch" / "bitstreams" / "vadd"
    assert str(own) in said and (own / "vadd.bit").is_file()
    found = installed.run(
        "-c", "from pynq_torch.overlay import find_overlay as f; print(f('vadd'))"
    )
    assert found.strip() == str(own / "vadd.bit")
    installed.run("-m", "pynq_torch", "kernels", "generate", "--check")
