"""What pytest needs beside pyproject.toml: a check that nbval lacks, and fixtures for notebooks."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent
#: Notebook cells that take longer than this have hung.
CELL_TIMEOUT_S = 300.0
NBVAL_CELL_TIMEOUT_S = 2000.0  # nbval's default
#: nbval's own bound comes first: it says which cell it was, and ends the notebook's kernel.
ITEM_TIMEOUT_S = 2 * CELL_TIMEOUT_S


def pytest_configure(config: pytest.Config) -> None:
    given = config.option
    if not (getattr(given, "nbval", False) or getattr(given, "nbval_lax", False)):
        return
    # Committed outputs are the static ones, which a page or a print shows too.
    os.environ["PYNQ_TORCH_STATIC"] = "1"
    # What `pytest --nbval notebooks/NN.ipynb` needs; a flag that was given goes before.
    if not (given.nbval_sanitize_with or given.sanitize_with):
        given.nbval_sanitize_with = str(ROOT / "ci" / "nbval_sanitize.cfg")
    if not (given.nbval_kernel_name or given.nbval_current_env or given.current_env):
        given.nbval_current_env = True
    if given.nbval_cell_timeout == NBVAL_CELL_TIMEOUT_S:
        given.nbval_cell_timeout = CELL_TIMEOUT_S
    if getattr(given, "timeout", 0) is None:
        given.timeout = ITEM_TIMEOUT_S
    _start_kernels_twice()


def _start_kernels_twice() -> None:
    """Let nbval start a Jupyter kernel once more that dies before it answers.

    Its ports are chosen before it starts, and another program may take one meanwhile.
    """
    from nbval import kernel

    start = kernel.start_new_kernel

    def start_twice(*given: Any, **named: Any) -> Any:
        try:
            return start(*given, **named)
        except RuntimeError:
            return start(*given, **named)

    kernel.start_new_kernel = start_twice


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
