"""PYNQ_TORCH_BOARD gives a board to a program that imports only pynq, however it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ASK = """
import pynq
from pynq import Device
board = Device.active_device
print(board.name, type(board).__module__, type(pynq.__loader__).__name__)
"""
ANSWER = "Pynq-Z2 pynq_torch.board.device SourceFileLoader"


def _python(
    *arguments: str,
    python: str = sys.executable,
    board: str | None = "csim",
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYNQ_TORCH_")}
    if python != sys.executable:
        environment.pop("PYTHONPATH", None)  # it would name another copy of the package
    if board is not None:
        environment["PYNQ_TORCH_BOARD"] = board
    return subprocess.run(
        [python, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
        cwd=cwd,
    )


def test_a_program_that_imports_only_pynq(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(ASK)
    done = _python(str(program), cwd=tmp_path)
    assert (done.stdout.strip(), done.returncode) == (ANSWER, 0), done.stderr


@pytest.mark.parametrize(
    "first",
    [
        "import pynq_torch; pynq_torch.use_board('csim')",
        "import pynq_torch.board.bus",
        "from pynq_torch.board.device import VirtualBoard",
        "from pynq.lib import DMA",
        "from pynq.pl_server.device import Device",
        "import os; os.environ['PYNQ_TORCH_BOARD'] = 'csim'",
    ],
)
def test_whatever_is_imported_first(first: str):
    done = _python("-c", first + ASK)
    assert (done.stdout.strip(), done.returncode) == (ANSWER, 0), done.stderr


@pytest.mark.parametrize(
    "room", ["ops", "ops.quantise", "torch_device.memory", "lessons.direct", "kernels.gemm", "nn"]
)
def test_any_room_may_be_imported_before_torch(room: str):
    program = f"import pynq_torch.{room}, torch; print(torch.ones(2, device='pynq').sum().item())"
    done = _python("-c", program)
    assert (done.stdout.strip(), done.returncode) == ("2.0", 0), done.stderr


def test_an_unknown_board_is_named_with_the_known_ones():
    done = _python("-c", "import pynq", board="zcu999")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "BoardError" in last
    assert "zcu999" in last
    assert "csim" in last


@pytest.mark.parametrize("board", [None, ""])
def test_without_the_variable_nothing_is_imported(board: str | None):
    ask = "import sys; print([m for m in sys.modules if 'pynq' in m], len(sys.meta_path))"
    bare = _python("-S", "-c", ask, board=None)
    done = _python("-c", ask, board=board)
    assert done.stdout.startswith("[]"), done.stdout
    assert bare.stdout.startswith("[]")


STARTUP = Path(__file__).resolve().parent.parent / "pynq_torch" / "board" / "startup"
#: What Python does with this checkout's files at its start.
START = f"""
import sys; sys.path.insert(0, {str(STARTUP)!r})
exec(open({str(STARTUP / "pynq_torch_autoload.pth")!r}).read())
print([m for m in sys.modules if "pynq" in m])
"""


def test_without_a_board_a_warning_says_how_to_choose_one(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(START + "import pynq\nprint('imported')\npynq.Overlay('design.bit')\n")
    done = _python("-I", str(program), board=None)
    assert done.stdout == "[]\nimported\n"
    first, *_ = done.stderr.splitlines()
    assert f"Start the program with PYNQ_TORCH_BOARD=csim python {program}" in first
    assert "pynq_torch.use_board('csim')" in first
    assert done.stderr.splitlines()[-1] == "RuntimeError: No Devices Found"


def test_the_boards_first_program_without_a_board(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(START + "from pynq.overlays.base import BaseOverlay\n")
    done = _python("-I", str(program), board=None)
    first, *_, last = done.stderr.splitlines()
    assert first.startswith(f"{program}:5: UserWarning: No devices found")
    assert f"Start the program with PYNQ_TORCH_BOARD=csim python {program}" in first
    assert last == "ModuleNotFoundError: No module named 'pynq.overlays.base'"


@pytest.mark.parametrize(
    "before", ["pass", "import pynq_torch; pynq_torch.use_board('csim')", "import pynq_torch"]
)
def test_with_a_board_nothing_is_warned_of(before: str):
    choose = "" if "use_board" in before else "import pynq_torch.board as b; b.ensure_board()\n"
    done = _python("-c", START + before + "\n" + choose + ASK, board=None)
    assert (done.stdout.splitlines()[-1], done.stderr) == (ANSWER, "")


def test_a_program_that_never_imports_pynq_pays_no_import_of_ours():
    done = _python("-c", "import sys; print([m for m in sys.modules if m.startswith('pynq')])")
    assert done.stdout.strip() == "[]", done.stderr


def test_a_failed_import_of_pynq_can_be_tried_again(tmp_path: Path):
    broken = tmp_path / "pynq"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('not yet')")
    program = (
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "try:\n    import pynq\nexcept ImportError as error:\n    print(error)\n"
        "sys.path.pop(0)\nimport importlib; importlib.invalidate_caches()\n"
    )
    done = _python("-c", program + ASK)
    assert done.stdout.split("\n")[:2] == ["not yet", ANSWER], done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build a wheel and an editable wheel of this checkout, without touching the network."""
    folder = tmp_path_factory.mktemp("wheels")
    root = Path(__file__).resolve().parent.parent
    built = {}
    for kind in ("wheel", "editable"):
        target = folder / kind
        target.mkdir()
        code = f"import hatchling.build as b; print(b.build_{kind}({str(target)!r}))"
        subprocess.run([sys.executable, "-c", code], cwd=root, check=True, timeout=120)
        (built[kind],) = target.glob("*.whl")
    return built


@pytest.mark.install
@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_installed_into_an_empty_environment(kind: str, wheels: dict[str, Path], tmp_path: Path):
    venv.create(tmp_path / "env", with_pip=False)
    python = str(tmp_path / "env" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheels[kind])], check=True, timeout=120, capture_output=True)
    # The other packages come from this environment; a path line runs none of its .pth files.
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    done = _python(
        "-c", "import pynq_torch; print(pynq_torch.__file__)" + ASK, python=python, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    where, answer = done.stdout.strip().splitlines()
    assert answer == ANSWER
    assert (str(site) in where) == (kind == "wheel")
    data = {path.name for path in (Path(where).parent).rglob("*") if path.is_file()}
    assert {"hls_stream.h", "engine.hpp", "axi_dma.cpp", "report.html.j2"} <= data
