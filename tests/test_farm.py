"""A farm of boards: a real Dask scheduler, workers of their own processes, some of them killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import numpy as np
import pynq
import pytest
from helpers import eventually
from nbformat.v4 import new_code_cell, new_notebook

import pynq_torch
from pynq_torch import cli, farm
from pynq_torch.errors import BoardError, DeviceLost
from pynq_torch.paths import BITSTREAMS
from pynq_torch.remote.farm import jobs

pytestmark = pytest.mark.timeout(240)
BOARDS = 2


@contextlib.contextmanager
def _farm(boards: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    # Workers import this file's functions by name.
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
    ours = [sys.executable, "-m", "pynq_torch", "farm", "--boards", str(boards), address]
    processes = []
    try:
        for command in ([*dask, "--port", str(port), "--no-dashboard"], ours):
            processes.append(
                subprocess.Popen(
                    command,
                    env={**os.environ, "PYTHONPATH": paths},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        with farm.connected(address) as client:
            eventually(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == boards, 60)
        yield address, processes[0]
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with _farm(BOARDS) as (address, _):
        yield address


def _sum_of(n: int) -> tuple[int, int]:
    """Add on the PL through pynq alone, and say in which process."""
    unit = pynq.Overlay(str(BITSTREAMS / "vadd" / "vadd.bit")).vadd_0
    a, b, out = (pynq.allocate(n, np.float32) for _ in range(3))
    a[:], b[:] = np.arange(n), 1
    registers = unit.register_map
    for name, buffer in (("a", a), ("b", b), ("c", out)):
        setattr(registers, f"{name}_1", buffer.device_address)
    registers.n = n
    registers.CTRL.AP_START = 1
    pynq_torch.wait(unit, timeout_s=30)
    return int(out.sum()), os.getpid()


def _dies_once(path: str) -> str:
    """End this worker the first time."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return path


def _stops_once(path: str) -> str:
    """Stop this worker the first time: it neither answers nor ends."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return path


def _waits(path: str) -> str:
    """Tell which process this is, and take a while."""
    Path(path).write_text(str(os.getpid()))
    time.sleep(1.5)
    return path


def _never(item: int) -> int:
    while item == 1:
        pass
    return item


def _refuses(item: int) -> int:
    if item:
        raise ValueError(f"no {item}")
    return item


def _lock(item: object) -> object:
    return threading.Lock()


def _ends_scheduler(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    time.sleep(60)


def test_items_are_spread_over_boards_and_come_back_in_order(scheduler: str):
    sums = farm.map(_sum_of, [8, 16, 24, 32], scheduler=scheduler, board="csim")
    assert [value for value, _ in sums] == [n * (n - 1) // 2 + n for n in (8, 16, 24, 32)]
    assert len({process for _, process in sums}) == BOARDS


def test_the_work_of_a_worker_that_dies_is_done_again(scheduler: str, tmp_path: Path):
    paths = [str(tmp_path / "a")]
    assert farm.map(_dies_once, paths, scheduler=scheduler) == paths


def test_a_worker_killed_in_the_middle_of_a_sweep(scheduler: str, tmp_path: Path):
    paths = [str(tmp_path / str(i)) for i in range(4)]
    with farm.connected(scheduler) as client:
        found = farm.results(client, _waits, paths)
        seen = [next(found)]
        begun: list[str] = []

        def one_runs() -> bool:
            begun[:] = [p for p in paths if Path(p).exists() and p != seen[0][1]]
            return bool(begun and Path(begun[-1]).read_text())

        more = threading.Thread(target=lambda: seen.extend(found))
        more.start()
        eventually(one_runs)
        os.kill(int(Path(begun[-1]).read_text()), signal.SIGKILL)
        more.join()
    assert sorted(seen) == list(enumerate(paths))


def test_an_item_without_end_loses_its_worker_and_says_so(scheduler: str):
    with pytest.raises(BoardError, match=r"takes longer than timeout_s=1"):
        farm.map(_never, range(3), scheduler=scheduler, timeout_s=1)
    assert farm.map(_never, [0], scheduler=scheduler) == [0]


def test_a_worker_that_says_nothing_is_started_again(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs, "PATIENCE_S", 10.0)
    paths = [str(tmp_path / "a")]
    assert farm.map(_stops_once, paths, scheduler=scheduler, timeout_s=5) == paths


def test_what_an_item_raises_is_raised_here(scheduler: str):
    with pytest.raises(ValueError, match="no 1"):
        farm.map(_refuses, range(3), scheduler=scheduler)
    with pytest.raises(BoardError, match=r"cannot be sent back \(Could .* of type lock\):"):
        farm.map(_lock, [0], scheduler=scheduler)
    with pytest.raises(BoardError, match=r"item <unlocked .* cannot be sent to a worker"):
        farm.map(_refuses, [threading.Lock()], scheduler=scheduler)


def test_a_scheduler_that_dies():
    with _farm(1) as (address, dask), pytest.raises(BoardError, match="the scheduler has gone"):
        farm.map(_ends_scheduler, [dask.pid], scheduler=address)


def test_a_board_is_lent_and_comes_back(scheduler: str):
    with farm.board(scheduler=scheduler) as device:
        assert device is pynq.Device.active_device
        vadd = pynq_torch.load("vadd").vadd
        a, b, c = (pynq.allocate(100, np.float32) for _ in range(3))
        a[:], b[:] = np.arange(100), 2
        vadd.start(a=a, b=b, c=c, n=100).wait()
        assert (c == np.arange(100) + 2).all()
        assert f"process {os.getpid()}" in str(farm.holders(scheduler))
    eventually(lambda: not farm.holders(scheduler).rows)


def test_all_boards_are_lent(scheduler: str):
    with farm.board(scheduler=scheduler), contextlib.ExitStack() as others:
        # This process has one board at a time, so the second one only waits.
        code = (
            "import sys, time; from pynq_torch import farm\n"
            f"with farm.board(scheduler={scheduler!r}): print(1, flush=True); sys.stdin.read()"
        )
        other = others.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        )
        assert other.stdout is not None and other.stdout.readline() == b"1\n"
        with (
            pytest.raises(BoardError, match=r"no board 'pynq-z2' was free for 0.5 s. Busy: lease"),
            farm.board(scheduler=scheduler, wait_s=0.5),
        ):
            pass
        other.kill()  # a holder that dies gives its board back
        other.wait()
        eventually(lambda: len(farm.holders(scheduler).rows) == 1, 40)


def test_a_lease_ends_at_its_limit(scheduler: str):
    with farm.board(scheduler=scheduler, limit_s=1.0):
        vadd = pynq_torch.load("vadd").vadd
        with pytest.raises(DeviceLost):
            for _ in range(1000):
                vadd.read(0x34)
                time.sleep(0.02)


def test_a_board_that_no_worker_has(scheduler: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jobs, "PATIENCE_S", 0.2)
    with pytest.raises(BoardError, match=r"no worker .* board 'rtl' .* there are: csim, pynq-z2"):
        farm.map(_refuses, [0], scheduler=scheduler, board="rtl")


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.delenv(farm.SCHEDULER, raising=False)
    with pytest.raises(BoardError, match=r"no scheduler is named: .* PYNQ_TORCH_SCHEDULER"):
        farm.map(_refuses, [0])
    monkeypatch.setattr(jobs, "PATIENCE_S", 0.2)
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(BoardError, match="no Dask scheduler answers at"):
            farm.map(_refuses, [0], scheduler=address)
        assert cli.main(["farm", address]) == 1
        assert "no Dask scheduler answers at" in capsys.readouterr().err


def _notebook(folder: Path, name: str, *cells: str) -> None:
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "P", "language": "python"}
    notebook.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(notebook, folder / f"{name}.ipynb")


def test_a_report_on_a_farm(scheduler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    board = "import pynq_torch.board as b; assert b.ensure_board() is b.current_board()"
    _notebook(tmp_path, "00_good", "N = 1", board, "assert N < 3")
    _notebook(tmp_path, "01_bad", "N = 1", "raise ValueError('wrong')")
    output = tmp_path / "reports"
    words = ["--notebooks", str(tmp_path), "--output", str(output), "--scheduler", scheduler]
    assert cli.main(["report", *words, "N=1,2"]) == 1
    printed = capsys.readouterr()
    assert "2 passed, 2 failed" in printed.out
    assert "01_bad-N=2: ValueError: wrong" in printed.err
    pages = {path.stem for path in output.rglob("*-N=?.html")}
    assert pages == {"00_good-N=1", "00_good-N=2", "01_bad-N=1", "01_bad-N=2"}


def test_the_command_refuses_what_makes_no_sense(capsys: pytest.CaptureFixture[str]):
    for words, sentence in (
        (["--board", "moon"], "board 'moon' is unknown"),
        (["--boards", "-1"], "--boards -1: expected 1 or more"),
        (["--board", "local", "--boards", "2"], "this machine has one board 'local'"),
    ):
        assert cli.main(["farm", *words, "tcp://127.0.0.1:9"]) == 1
        assert sentence in capsys.readouterr().err
