"""JupyterLab and a browser for the tests here; a picture of the page where one of them fails."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import nbformat
import pytest
from lab import ROOT, Lab, Notebook
from nbformat.v4 import new_code_cell, new_notebook

#: A code cell each; tests count from 0.
CELLS = (
    'import pynq_torch\npynq_torch.use_board("csim")\nfrom pynq_torch import widgets\n'
    'overlay = pynq_torch.load("pointwise")',
    "widgets.kernel_explorer(overlay)",
    "widgets.function_explorer()",
    "widgets.gemm_tiler()",
    "widgets.register_map(overlay.unary_f32)",
    "widgets.memory_map(overlay)",
    "import matplotlib.pyplot as plt\n"
    "def line(slope):\n    plt.plot([0, slope])\n    plt.show()\n"
    "widgets.explore(line, slope=(1, 9))",
    "from pathlib import Path\nfrom pynq_torch.board.rtl.observe.wave_file import WaveFile\n"
    "lines = ['$scope module t $end\\n$var wire 1 ! clk $end\\n$var wire 16 & count $end\\n'\n"
    "         '$var wire 1 # high $end\\n$upscope $end\\n$enddefinitions $end\\n']\n"
    "for c in range(200):\n"
    "    lines.append(f'#{10 * c}\\n0!\\nb{c:b} &\\n{c % 8 // 4}#\\n#{10 * c + 5}\\n1!\\n')\n"
    "Path('waves.vcd').write_text(''.join(lines))\n"
    "WaveFile('waves.vcd').show(['count', 'high'], (0, 20))",
)

#: A board's LEDs and buttons, and a task that waits for a button.
BOARD_CELLS = (
    'import pynq_torch\npynq_torch.use_board("csim")\nfrom pynq_torch import widgets\n'
    'from pynq.overlays.base import BaseOverlay\nbase = BaseOverlay("base.bit")\nwidgets.board()',
    "import asyncio\nbase.leds[3].on()\n"
    "async def answer():\n"
    "    await base.buttons[2].wait_for_value_async(1)\n    base.leds[2].on()\n"
    "task = asyncio.ensure_future(answer())",
)


def _photograph(notebook: Notebook, name: str) -> str:
    """Keep a picture of the page, and say where it is and what is in the console."""
    folder = ROOT / "reports" / "browser"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    notebook.page.screenshot(path=path)
    return f"{path}\nerrors in the console: {notebook.errors}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[Any]:
    report = yield
    # Not after the call: the browser may be gone by then.
    shown = report.failed and report.when == "call"
    for notebook in _notebooks(getattr(item, "funcargs", {})) if shown else ():
        report.sections.append(("browser", _photograph(notebook, item.name)))
    return report


def _notebooks(fixtures: dict[str, Any]) -> list[Notebook]:
    return [value for value in fixtures.values() if isinstance(value, Notebook)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start the browser that is installed, and end it before the tests of another file.

    Until its end Playwright has an event loop running in this thread, in which no test of asyncio
    could run one of its own.
    """
    path = chromium.find()
    if path is None:
        pytest.skip(chromium.NONE)
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        # In a container there is no sandbox, and often nobody but root.
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        started = driver.chromium.launch(executable_path=path, args=options, timeout=120_000)
        yield started
        started.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start JupyterLab on a folder with a notebook of widgets and copies of the lessons."""
    folder = tmp_path_factory.mktemp("lab")
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for name, sources in (("widgets", CELLS), ("board", BOARD_CELLS)):
        cells = [new_code_cell(source) for source in sources]
        notebook = new_notebook(cells=cells, metadata={"kernelspec": spec})
        nbformat.write(notebook, folder / f"{name}.ipynb")
    # Copies: JupyterLab saves what it runs. Lessons look at sources and bitstreams beside them.
    shutil.copytree(ROOT / "notebooks", folder / "notebooks")
    for name in ("hw", "bitstreams", "tests"):
        (folder / name).symlink_to(ROOT / name)
    started = Lab(folder, tmp_path_factory.mktemp("state"))
    try:
        started.wait()
        yield started
    finally:
        started.close()


def _opened(browser: Any, lab: Lab, path: str) -> Iterator[Notebook]:
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    notebook = Notebook(page)
    # In a workspace of its own: JupyterLab would open what was open before as well.
    notebook.open(lab.url(f"lab/workspaces/{len(browser.contexts)}-{Path(path).stem}/tree/{path}"))
    try:
        notebook.run_all()
    except BaseException:
        print(_photograph(notebook, f"run-{Path(path).stem}"))
        raise
    yield notebook
    page.close()


@pytest.fixture(scope="module")
def explorers(browser: Any, lab: Lab) -> Iterator[Notebook]:
    """Open and run the notebook with a cell for each widget."""
    yield from _opened(browser, lab, "widgets.ipynb")


@pytest.fixture(scope="module")
def board(browser: Any, lab: Lab) -> Iterator[Notebook]:
    """Open and run the notebook that shows a board."""
    yield from _opened(browser, lab, "board.ipynb")


@pytest.fixture
def lesson(browser: Any, lab: Lab, request: pytest.FixtureRequest) -> Iterator[Notebook]:
    """Open and run the lesson of the number that the test is parametrised with."""
    (path,) = (ROOT / "notebooks").glob(f"{request.param}_*.ipynb")
    yield from _opened(browser, lab, f"notebooks/{path.name}")


@pytest.fixture(autouse=True)
def no_error_in_the_console(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test during which, or before which, its page wrote an error to the console."""
    yield
    for notebook in _notebooks(request.node.funcargs):
        assert notebook.errors == [], _photograph(notebook, request.node.name)
