"""The command line: a table of commands, and `run`, which becomes plain Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pynq_torch import cli

MODULE = [sys.executable, "-m", "pynq_torch"]


def _run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    base = {k: v for k, v in os.environ.items() if not k.startswith("PYNQ_TORCH_")}
    return subprocess.run(
        [*MODULE, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**base, **environment},
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


def test_help_lists_every_command_and_imports_none(root: Path):
    code = (
        "import sys; from pynq_torch import cli\n"
        "try:\n    cli.main(['--help'])\n"
        "finally:\n    print([m for m in ('pynq', 'torch', 'rich', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=root
    )
    assert done.returncode == 0
    assert done.stdout.strip().endswith("[]")
    for command in cli.COMMANDS:
        assert f"  {command.name} " in done.stdout


@pytest.mark.parametrize("command", [command.name for command in cli.COMMANDS])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exit_info:
        cli.main([command, "--help"])
    assert exit_info.value.code == 0
    assert command in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["run"], ["doctor", "--nonsense"]])
def test_a_command_line_without_sense(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exit_info:
        cli.main(arguments)
    assert exit_info.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["kernels", "--json"], ["overlay", "list"], ["doctor"]])
def test_a_reader_that_has_enough_ends_the_command_quietly(arguments: list[str], unbuffered: str):
    with subprocess.Popen(
        [*MODULE, *arguments],
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()  # before a line of it is written, as `| head -0` does
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    ("redirection", "status", "said"),
    [
        (">&-", 0, ""),
        (">/dev/full", 1, "error: the output or a file cannot be written: No space left on device"),
        (">/dev/null", 0, ""),
    ],
)
def test_an_output_that_takes_nothing(redirection: str, status: int, said: str):
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m pynq_torch kernels {redirection}'],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},  # which lacks letters of the table
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (status, said)


@pytest.mark.parametrize("port", ["-1", "65536", "http", ""])
def test_what_is_no_port(port: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        cli.main(["serve", f"--port={port}"])
    assert f"{port!r} is no port; expected 0 (any) to 65535" in capsys.readouterr().err


def test_a_folder_of_kernels_that_is_not_there(tmp_path: Path):
    (tmp_path / "program.py").touch()
    done = _run("run", "program.py", cwd=tmp_path, PYNQ_TORCH_KERNELS="/nowhere")
    assert (done.returncode, done.stderr) == (
        1,
        "error: PYNQ_TORCH_KERNELS: '/nowhere' is no folder; expected HLS sources\n",
    )


def test_a_missing_part_fails_its_own_command_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    gone = cli.Command("hls", "", "pynq_torch.nowhere")
    other = cli.Command("overlay", "", "package_that_is_not_there")
    monkeypatch.setattr(cli, "COMMANDS", (gone, other))
    assert cli.main(["hls"]) == 1
    assert "pynq_torch.nowhere is missing" in capsys.readouterr().err
    assert cli.main(["overlay"]) == 1
    assert "'package_that_is_not_there', which is not installed" in capsys.readouterr().err


PROGRAM = """
import sys
from collections.abc import Callable
from pathlib import Path
from pynq import Device
import neighbour
print(__name__, sys.argv[1:], Path(__file__).name, neighbour.WORD, Device.active_device.name)
print([n for n in ("runpy", "pynq_torch.cli", "pynq_torch.cli.run") if n in sys.modules])
print(Path("data.txt").read_text(), Path(sys.path[0]).name, sys.flags.optimize)
sys.exit(int(sys.argv[1]))
"""


def test_run_is_plain_python(tmp_path: Path):
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    (folder / "neighbour.py").write_text("WORD = 'beside'")
    (tmp_path / "data.txt").write_text("relative")
    done = _run("run", "programs/program.py", "7", "--board", "x", "-h", cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "__main__ ['7', '--board', 'x', '-h'] program.py beside Pynq-Z2",
        "[]",
        "relative programs 0",
    ], done.stderr
    assert done.returncode == 7


def test_the_traceback_is_the_programs_own(tmp_path: Path):
    (tmp_path / "fails.py").write_text("import pynq\n\n1 / 0\n")
    done = _run("run", "fails.py", cwd=tmp_path)
    assert done.returncode == 1
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert len(frames) == 1
    assert "fails.py" in frames[0]
    assert "line 3" in frames[0]
    assert done.stderr.strip().endswith("ZeroDivisionError: division by zero")


def test_kernel_folders_reach_the_program(tmp_path: Path):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "p.py").write_text("import os; print(os.environ['PYNQ_TORCH_KERNELS'])")
    arguments = ["run", "--kernels", "a", "--kernels", "b", "p.py"]
    done = _run(*arguments, cwd=tmp_path, PYNQ_TORCH_KERNELS=str(tmp_path / "c"))
    assert done.stdout.strip().split(os.pathsep) == [str(tmp_path / n) for n in ("a", "b", "c")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--board", "zcu999", "p.py"], ["'zcu999' is unknown", "csim", "local"]),
        (["run", "absent.py"], ["'absent.py': no such file", "looked in"]),
        (["run", "--kernels", "absent", "p.py"], ["--kernels 'absent': no such folder"]),
    ],
)
def test_run_refuses_in_one_line(arguments: list[str], words: list[str], tmp_path: Path):
    (tmp_path / "p.py").write_text("raise SystemExit('it ran')")
    done = _run(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert all(word in done.stderr for word in words)


def test_the_board_of_the_environment_is_the_default(tmp_path: Path):
    (tmp_path / "p.py").write_text("")
    done = _run("run", "p.py", cwd=tmp_path, PYNQ_TORCH_BOARD="zcu999")
    assert "'zcu999' is unknown" in done.stderr


def test_ctrl_c_reaches_the_program(tmp_path: Path):
    (tmp_path / "p.py").write_text(
        "import time\nprint('there', flush=True)\n"
        "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    raise SystemExit(9)\n"
    )
    with subprocess.Popen(
        [*MODULE, "run", "p.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 9


def _notebook(*sources: str) -> str:
    cells = [
        {"cell_type": "code", "source": s, "metadata": {}, "outputs": [], "execution_count": None}
        for s in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


def test_a_notebook_as_the_program(tmp_path: Path):
    source = "from pynq import Device; print(Device.active_device.name)"
    (tmp_path / "good.ipynb").write_text(_notebook(source, "6 * 7"))
    done = _run("run", "good.ipynb", cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("Pynq-Z2\n42\n", 0), done.stderr
    (tmp_path / "bad.ipynb").write_text(_notebook("print(1)", "1 / 0", "print(2)"))
    done = _run("run", "bad.ipynb", cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("1\n", 1)
    assert "ZeroDivisionError" in done.stderr


BROKEN = {
    "text": "no JSON {",
    "empty": "",
    "object": "{}",
    "list": "[1]",
    "cells": '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": {}}',
    "cell": '{"nbformat": 4, "nbformat_minor": 5, "cells": [{"cell_type": "code"}]}',
    "version": '{"nbformat": 9, "nbformat_minor": 0, "metadata": {}, "cells": []}',
    "deep": "[" * 100_000,
    "old": '{"nbformat": 3, "nbformat_minor": 0, "metadata": {}}',
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_notebook_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
):
    path = tmp_path / f"{name}.ipynb"
    path.write_text(BROKEN[name])
    before = dict(os.environ)
    assert cli.main(["run", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and str(path) in line
    assert os.environ == before  # the variables are the notebook's


def test_programs_that_are_none_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name, content in (("a.bit", b"\0\x09"), ("notes.txt", b"some words"), ("b.py", b"a\0")):
        (tmp_path / name).write_bytes(content)
        assert cli.main(["run", str(tmp_path / name)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert "is not Python" in line and name in line
    (tmp_path / "c.ipynb").mkdir()
    os.mkfifo(tmp_path / "pipe.ipynb")
    for name, words in (
        ("c.ipynb", "Is a directory"), (".", "without __main__"), ("x", "no such"),
        ("pipe.ipynb", "is a device, pipe or socket"), ("/dev/zero", "is a device, pipe or socket"),
    ):  # fmt: skip
        assert cli.main(["run", str(tmp_path / name)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line


def test_a_notebook_of_an_old_version_runs(tmp_path: Path):
    cell = {"cell_type": "code", "input": "print(42)", "language": "python", "outputs": []}
    sheets = [{"cells": [{**cell, "metadata": {}}], "metadata": {}}]
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": sheets}
    (tmp_path / "old.ipynb").write_text(json.dumps(old))
    done = _run("run", "old.ipynb", cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("42\n", 0), done.stderr


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import time; time.sleep(99)", "In [2] ('import time; time.sleep(99)') gave no answer"),
        ("import os; os.kill(os.getpid(), 19)", "gave no answer for 3 s"),  # SIGSTOP
        ("import os; os._exit(1)", "the Jupyter kernel died in cell In [2]"),
    ],
)
def test_a_jupyter_kernel_without_an_answer_is_a_bounded_error(
    tmp_path: Path, source: str, words: str
):
    (tmp_path / "n.ipynb").write_text(_notebook("print('there')", source, "print('never')"))
    done = _run("run", "--timeout", "3", "n.ipynb", cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("there\n", 1)
    assert words in done.stderr and "Traceback" not in done.stderr


def test_ctrl_c_ends_a_notebook(tmp_path: Path):
    source = "import os, time; open('pid', 'w').write(f'{os.getpid()} '); time.sleep(99)"
    (tmp_path / "n.ipynb").write_text(_notebook("print('there')", source))
    with subprocess.Popen(
        [*MODULE, "run", "n.ipynb"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        _wait_for(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("there\n", 130)
    assert err.endswith("interrupted\n") and "Traceback" not in err
    kernel = Path("/proc", (tmp_path / "pid").read_text().strip())
    _wait_for(lambda: not kernel.exists())


def _wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
