"""One kernel of a family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Instance"]


@dataclass(frozen=True)
class Instance:
    """A kernel that is written from its family's templates.

    Parameters
    ----------
    name : str
        The kernel: folder, file and top function below ``hw/kernels``.
    family : str
        The folder of templates below ``hw/templates``.
    values : mapping
        What the templates fill in.
    """

    name: str
    family: str
    values: Mapping[str, Any] = field(default_factory=dict)
