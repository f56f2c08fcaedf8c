"""Lines of `torch.pynq.profiler.debug`: those of a block, no others; to stdout or a file."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch

from pynq_torch.board import use_board


@pytest.fixture(autouse=True)
def board() -> Any:
    return use_board("csim")


def test_the_lines_of_a_block_go_to_stdout(capsys: Any) -> None:
    x = torch.ones(2, 3, device="pynq")
    x + x
    with torch.pynq.profiler.debug.shown():
        x.sin()
    x - x
    printed = capsys.readouterr()
    assert printed.err == ""
    (line,) = printed.out.splitlines()
    assert line.startswith("pynq: aten::sin(float32[2x3]) -> CPU, ")
    assert line.endswith(": no kernel serves this operator")


def test_the_lines_of_a_block_that_fails_stop_with_it(capsys: Any) -> None:
    x, file = torch.ones(2, 3, device="pynq"), io.StringIO()
    with pytest.raises(RuntimeError), torch.pynq.profiler.debug.shown(file):
        x @ x
    x * x
    assert capsys.readouterr().out == ""
    (line,) = file.getvalue().splitlines()
    assert line.endswith("; ended in RuntimeError")
    assert not torch.pynq.profiler.debug.is_enabled()


def test_a_call_is_followed_from_python_to_the_device(capsys: Any) -> None:
    x, layer = torch.rand(1, 2, 5, 5, device="pynq"), torch.nn.Conv2d(2, 3, 3).pynq()
    with torch.no_grad(), torch.pynq.profiler.debug.followed():
        y = layer(x)
        y.shape  # noqa: B018 (no call)
    y + y
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Python: torch.nn.functional.conv2d", "ATen:   aten::convolution"]
    assert lines[2].startswith("pynq: aten::convolution(float32[1x2x5x5], ") and len(lines) == 3


def test_nothing_is_followed_behind_a_block_that_fails() -> None:
    x, file = torch.ones(2, 3, device="pynq"), io.StringIO()
    with pytest.raises(RuntimeError), torch.pynq.profiler.debug.followed(file):
        x @ x
    x * x
    lines = file.getvalue().splitlines()
    assert lines[:2] == ["Python: torch.Tensor.matmul", "ATen:   aten::mm"] and len(lines) == 3


def test_copies_say_whether_they_are_between_devices() -> None:
    x, file = torch.ones(2, 3), io.StringIO()
    with torch.pynq.profiler.debug.shown(file):
        x.to("pynq").clone().cpu()
    there, clone, back = file.getvalue().splitlines()
    assert "copy" in there.partition("(")[0] and there.endswith(": copy between devices")
    assert clone.startswith("pynq: aten::clone(") and "between" not in clone
    assert back.endswith(": copy between devices")
