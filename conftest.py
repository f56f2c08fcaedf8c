"""What pytest needs beside pyproject.toml: a check that nbval lacks, and fixtures for notebooks."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "nbval", False):
        # Committed outputs are the static ones, which a page or a print shows too.
        os.environ["PYNQ_TORCH_STATIC"] = "1"


@pytest.fixture
def root() -> Path:
    """Return the repository's root."""
    return ROOT


def usage_errors(outputs: Iterable[dict[str, Any]] | None) -> list[str]:
    """Return the lines in which IPython complains about a magic that it does not know.

    Such a cell stops there, and yet ends without an error: nbval passes it when its output was
    not compared, or when the complaint had been committed.
    """
    texts = (str(o.get("text", "")) for o in outputs or () if o.get("output_type") == "stream")
    return [line for text in texts for line in text.splitlines() if line.startswith("UsageError:")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    outcome = yield
    complaints = usage_errors(getattr(item, "test_outputs", None))
    if complaints:
        pytest.fail(f"{item.name}: {complaints[0]}", pytrace=False)
    return outcome
