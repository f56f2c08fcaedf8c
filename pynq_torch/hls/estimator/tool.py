"""Whose defaults a source was written for: Vitis HLS or Vivado HLS."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..lint_tree import Directive
from ..source import SourceUnit

__all__ = ["DEFAULT_PART", "guess_tool"]

DEFAULT_PART = "xc7z020clg400-1"

_VITIS = re.compile(
    r"\b(bind_op|bind_storage|aggregate|disaggregate|performance|storage_type|direct_io)\b"
    r"|\btype\s*=\s*(cyclic|block|complete)|\bmode\s*=",
    re.IGNORECASE,
)
_VIVADO = re.compile(r"\b(resource|data_pack|array_map)\b|\bcore\s*=", re.IGNORECASE)


def guess_tool(
    units: Sequence[SourceUnit],
    file: Path | str | None,
    asked: Sequence[tuple[str, Directive]],
    part: str,
) -> str:
    """Return ``"vivado"`` or ``"vitis"``; Vitis where nothing tells.

    The directives' words tell first, then the names of files and folders, then the part: reports of
    Vivado HLS write it without a dash before the package.
    """
    if file is not None and str(file).endswith(".cfg"):
        return "vitis"
    texts = [pragma.text for unit in units for pragma in unit.pragmas]
    texts += [item.pragma.text for _, item in asked]
    for pattern, tool in ((_VITIS, "vitis"), (_VIVADO, "vivado")):
        if any(pattern.search(text) for text in texts):
            return tool
    path = str(units[0].path).lower()
    for word in ("vitis", "vivado"):
        if word in path:
            return word
    if path.endswith(".c"):
        return "vivado"
    undashed = re.match(r"^x[ac]\w+[a-z]{2,4}\d{3,4}-", part) is not None
    return "vivado" if undashed and part != DEFAULT_PART else "vitis"
