"""Kernel folders that are written from tables."""

from __future__ import annotations

from pynq_torch.hls.generate import differences
from pynq_torch.kernels.tables import instances


def test_the_folders_are_what_their_templates_make() -> None:
    assert [str(path) for path, _ in differences(instances())] == []
