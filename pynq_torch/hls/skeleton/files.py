"""Templates of new files, and writing them where none are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pynq_torch.errors import HandoffError

__all__ = ["TEMPLATES", "write"]

TEMPLATES = Path(__file__).resolve().parents[1] / "templates" / "kernel"


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files into a folder; where one of them is there already, write none."""
    there = [file for file in files if (folder / file).exists()]
    if there:
        raise HandoffError(
            f"{folder} has {', '.join(there)} already; these are your files, so nothing was "
            "written. Take another name, or delete them"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    return folder
