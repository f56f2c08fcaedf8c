"""Fixtures that every test here has without asking."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

_LOOPS: list[asyncio.AbstractEventLoop] = []


def pytest_configure() -> None:
    """Let Ctrl-C interrupt: what a script puts in the background is started without it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
