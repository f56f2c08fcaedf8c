"""Figures of board "remote": a call through the loopback interface, and an operator."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median
from typing import Any

import torch

import pynq_torch


def results(calls: int = 200) -> list[tuple[str, float, str]]:
    """Return what was measured, in microseconds, and its conditions."""
    command = [sys.executable, "-m", "pynq_torch", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().partition(" on ")[2].partition(";")[0]
            board: Any = pynq_torch.use_board("remote", address=address)
            kernel = pynq_torch.load("vadd").vadd_0
            x, y = (torch.ones(1000).to("pynq") for _ in range(2))
            found = []
            for what, run in (
                ("remote: read a register", lambda: kernel.read(0x10)),
                ("remote: x + y, 1000 floats", lambda: x + y),
            ):
                run()
                before, times = board.calls.copy(), []
                for _ in range(calls):
                    begin = time.perf_counter()
                    run()
                    times.append(time.perf_counter() - begin)
                cost = board.calls - before
                each = f"{cost.count / calls:.1f} calls, {cost.sent / calls:.0f} bytes there"
                each += f", {cost.received / calls:.0f} back"
                found.append((what, median(times) * 1e6, f"loopback, csim served; {each}"))
            board.close()
            return found
        finally:
            process.terminate()
            pynq_torch.use_board("csim")
