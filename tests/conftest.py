"""Fixtures that every test here has without asking."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

_LOOPS: list[asyncio.AbstractEventLoop] = []
#: Files that take more than half a minute on a quiet PC, longest first; they are begun first.
LONG = (
    *("op_db", "hw_kernels", "device_generic", "infra_report", "board_field", "depends"),
    *("hls_build", "rtl_build", "hls_wrong", "rtl_cocotb", "rtl_hazards", "infra_autoload"),
    *("infra_cli", "rtl_board", "ip_dma_reset", "hls_precompiled", "device_faults"),
    *("ops_pointwise", "board_processes", "hls_interface", "design_hwh", "ladder"),
    *("rtl_waves", "rtl_clock", "add_your_own"),
)


def pytest_configure() -> None:
    """Let Ctrl-C interrupt: what a script puts in the background is started without it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # On a busy machine every example is slow; no test here asserts a time.
    hypothesis.settings.register_profile(
        "quiet or busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("quiet or busy")
    if times := os.environ.get("PYNQ_TORCH_EXAMPLES"):
        _draw_more_examples(int(times))


def _draw_more_examples(times: int) -> None:
    """Let hypothesis draw so many times the examples that each test asks for."""

    class Settings(hypothesis.settings):
        def __init__(self, *given: Any, **values: Any) -> None:
            if "max_examples" in values:
                values["max_examples"] *= times
            super().__init__(*given, **values)

    default = hypothesis.settings.default.max_examples
    hypothesis.settings.register_profile("more", max_examples=default * times)
    hypothesis.settings.load_profile("more")
    hypothesis.settings = Settings


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put long files first: one that starts last runs alone, while the other worker is idle.

    Those are the tests in a browser, `LONG`, files with a test marked as slow (the benches of the
    RTL are among them), and files with many tests. `make mutate` has an order of its own.
    """
    if config.pluginmanager.hasplugin("mutate"):
        return
    tests = Counter(item.path for item in items)
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    rank = {f"test_{name}": number for number, name in enumerate(LONG)}
    items.sort(
        key=lambda item: (
            item.path.parent.name != "browser",
            rank.get(item.path.stem, len(rank)),
            item.path not in slow,
            -tests[item.path],
            item.path,
        )
    )


def _ensure_event_loop() -> None:
    try:
        loop = asyncio.get_event_loop_policy().get_event_loop()
    except RuntimeError:  # another test left the thread without one
        loop = None
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    if loop not in _LOOPS:
        _LOOPS.append(loop)


@pytest.fixture(autouse=True, scope="module")
def event_loop_of_the_module() -> None:
    """Give the thread an event loop: pynq's interrupt classes take it when an overlay is made."""
    _ensure_event_loop()


@pytest.fixture(autouse=True)
def event_loop_of_the_test() -> Iterator[None]:
    """Leave an event loop behind too: a UioController asks for one when it is collected."""
    _ensure_event_loop()
    yield
    _ensure_event_loop()


@pytest.fixture(autouse=True, scope="module")
def no_closed_board() -> None:
    """Forget a board that another module has closed: a program would choose the next one."""
    boards = sys.modules.get("pynq_torch.board")
    board = boards.current_board() if boards is not None else None
    if board is not None and board.closed:
        boards.use_board("csim")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a build cache of its own, and no folder of kernels beside its own.

    Nothing is in it but the object files that are linked to every engine.
    """
    from helpers import copy_engine_objects

    folder = tmp_path / "cache"
    copy_engine_objects(folder)
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(folder))
    monkeypatch.delenv("PYNQ_TORCH_KERNELS", raising=False)
    return folder


@pytest.fixture(scope="module")
def kernels_read_once() -> Iterator[None]:
    """Let the package read each of the project's own kernels once in a run of pytest.

    For tests of what is made from the kernels' interfaces, not of how they are read.
    """
    from helpers import HW_KERNELS, interface_of

    from pynq_torch.hls import parse

    read_interface = parse.read_interface

    def read(source: Path, top: str, **options: Any) -> Any:
        own = source == HW_KERNELS / top / f"{top}.cpp" and not options
        return interface_of(top) if own else read_interface(source, top, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parse, "read_interface", read)
        yield


@pytest.fixture
def closed() -> Iterator[None]:
    """Close the board that the test leaves."""
    yield
    import pynq_torch

    board = pynq_torch.current_board()
    if board is not None:
        board.close()


@pytest.fixture
def use_rtl() -> Iterator[Callable[..., Any]]:
    """Give a function that chooses board rtl, and close what it chose."""
    import pynq_torch

    boards: list[Any] = []

    def choose(**options: Any) -> Any:
        boards.append(pynq_torch.use_board("rtl", **options))
        return boards[-1]

    yield choose
    for board in boards:
        board.close()


def pytest_sessionfinish() -> None:
    """Close the loops made here."""
    for loop in _LOOPS:
        if not loop.is_closed() and not loop.is_running():
            loop.close()
