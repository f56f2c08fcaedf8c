"""``torch.load`` onto device "pynq": values and types as saved, no other index than 0."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import pynq_torch


@pytest.fixture(scope="module", autouse=True)
def board() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    yield board
    board.close()


def saved(tensor: torch.Tensor) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("location", ["pynq", "pynq:0", torch.device("pynq")])
def test_a_file_is_loaded_to_the_device(location: Any) -> None:
    x = torch.arange(6).view(2, 3)
    found = torch.load(saved(x), map_location=location)
    assert found.device == torch.device("pynq:0") and torch.equal(found.cpu(), x)


@pytest.mark.parametrize("location", ["pynq:1", torch.device("pynq", 1)])
def test_another_index_is_refused_as_by_to(location: Any) -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="invalid device ordinal 1") as by_to:
        x.to(location)
    with pytest.raises(RuntimeError) as by_load:
        torch.load(saved(x), map_location=location)
    assert str(by_load.value) == str(by_to.value)
