"""Widgets in a real browser: open, drag, see the chart change, no error in the console."""

from __future__ import annotations

from typing import Any

import pytest
from lab import Lab, Notebook


def test_kernel_explorer(explorers: Notebook) -> None:
    cell = explorers.cell(1)
    before = explorers.picture(cell)
    explorers.drag(cell, "size", 0.95)
    before = explorers.changed(cell, before)
    text = cell.locator(".pynq-torch-text")
    explorers.until(lambda: "262,144 elements" in text.inner_text(), "the largest size")
    explorers.until(lambda: "PASS" in text.inner_text(), "the verdict")
    other = "relu" if "binary" in text.inner_text() else "maximum"
    cell.locator("select").first.select_option(other)
    explorers.changed(cell, before)
    # No other control has a choice.
    explorers.until(lambda: cell.locator("select:visible").count() == 1, "one menu")


def test_function_explorer(explorers: Notebook) -> None:
    cell = explorers.cell(2)
    before = explorers.picture(cell)
    explorers.drag(cell, "range", 0.95)
    before = explorers.changed(cell, before)
    cell.locator("select").select_option("clamp")
    explorers.changed(cell, before)
    text = cell.locator(".pynq-torch-text")
    explorers.until(lambda: "clamp, min = -1" in text.inner_text(), "clamp")
    before = explorers.picture(cell)
    explorers.drag(cell, "min", 0.2)
    explorers.changed(cell, before)
    explorers.until(lambda: "clamp, min = -1," not in text.inner_text(), "another minimum")
    explorers.until(lambda: "PASS" in text.inner_text(), "the verdict")


def test_gemm_tiler(explorers: Notebook) -> None:
    cell = explorers.cell(3)
    text = cell.locator(".pynq-torch-text")
    explorers.until(lambda: "step 1 of" in text.inner_text(), "the first step")
    before = explorers.picture(cell)
    explorers.drag(cell, "step", 0.5)
    explorers.changed(cell, before)
    explorers.until(lambda: "step 1 of" not in text.inner_text(), "another step")
    explorers.drag(cell, "m", 0.1)
    explorers.until(lambda: "step 1 of" in text.inner_text(), "the first step of another size")
    before = explorers.picture(cell)
    cell.locator(".jupyter-widget-play button, .widget-play button").first.click()
    explorers.changed(cell, before)
    explorers.until(lambda: "step 1 of" not in text.inner_text(), "the player")


def test_register_map(explorers: Notebook) -> None:
    cell = explorers.cell(4)
    table = cell.locator("table")
    explorers.until(lambda: "GIER" in table.inner_text(), "the registers")
    assert "0x00000001" not in table.inner_text()
    cell.locator("select").select_option("GIER")
    cell.locator("input[type=text]").fill("0x1")
    cell.locator("input[type=text]").press("Tab")
    cell.get_by_role("button", name="Write").click()
    explorers.until(lambda: "0x00000001" in table.inner_text(), "the value that was written")


def test_memory_map(explorers: Notebook) -> None:
    cell = explorers.cell(5)
    cell.locator("svg").wait_for()
    tables = cell.locator("table").count()
    cell.locator("select").select_option("unary_f32_0")
    explorers.until(lambda: cell.locator("table").count() > tables, "the registers")


def test_explore(explorers: Notebook) -> None:
    cell = explorers.cell(6)
    before = explorers.picture(cell)
    explorers.drag(cell, "slope", 0.9)
    explorers.changed(cell, before)


def test_waves(explorers: Notebook) -> None:
    cell = explorers.cell(7)
    svg = cell.locator(".pynq-torch-waves svg")
    explorers.until(lambda: "count" in svg.text_content(), "the picture")
    assert "119" not in svg.text_content()
    explorers.drag(cell, "from cycle", 0.5)
    explorers.until(lambda: "119" in svg.text_content(), "another window")
    cell.locator("select").select_option("high")
    explorers.until(lambda: "count" not in svg.text_content(), "the signal that was chosen")
    explorers.drag(cell, "cycles", 0.9)
    cell.locator("input[type=checkbox]").uncheck()
    cell.locator(".pynq-torch-error", has_text="choose fewer cycles").wait_for()


def test_board(board: Notebook) -> None:
    cell = board.cell(0)
    picture = cell.locator(".pynq-torch-board svg")
    board.until(lambda: "LEDs 0001" in picture.get_attribute("aria-label"), "the LED")
    cell.get_by_role("button", name="BTN2").click()
    # A task of the second cell waits for the interrupt, and then lights the LED beside it.
    board.until(lambda: "LEDs 0011" in picture.get_attribute("aria-label"), "the other LED")
    assert "buttons 0010" in picture.get_attribute("aria-label")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("lesson", ["01"], indirect=True)
def test_a_lesson(lesson: Notebook) -> None:
    lesson.until(lambda: lesson.page.get_by_text("PASS").count() >= 3, "the verdicts")
    cell = lesson.page.locator(".jp-CodeCell", has_text="memory_map(").first
    cell.locator("svg[aria-label*=vadd_0]").wait_for()
    cell.locator("svg").nth(1).wait_for()
    # The lesson ends with another overlay; a control of the old one must not be silent.
    cell.locator("select").select_option("vadd_0")
    cell.locator(".pynq-torch-error", has_text="Overlay not currently loaded").wait_for()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("lesson", ["00"], indirect=True)
def test_the_board_of_the_first_lesson(lesson: Notebook) -> None:
    cell = lesson.page.locator(".jp-CodeCell", has=lesson.page.locator(".pynq-torch-board"))
    picture = cell.locator(".pynq-torch-board svg")
    assert "LEDs 1000, RGB LEDs green" in picture.get_attribute("aria-label")
    for button, (width, buttons) in enumerate(((1280, "1000"), (1024, "1100"))):
        lesson.fits(width)
        cell.get_by_role("button", name=f"BTN{button}").click()
        cell.locator(f"svg[aria-label*='buttons {buttons}']").wait_for()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("lesson", "slider"), [("05", "size"), ("09", "pixel")], indirect=["lesson"]
)
def test_the_sliders_of_a_lesson(lesson: Notebook, slider: str) -> None:
    labelled = lesson.page.locator(f"label:text-is('{slider}')")
    cell = lesson.page.locator(".jp-CodeCell", has=labelled).first
    before = lesson.picture(cell)
    for width, to in ((1280, 0.1), (1024, 0.6)):
        lesson.fits(width)
        lesson.drag(cell, slider, to)
        before = lesson.changed(cell, before)


def test_a_drawing_shows_before_its_cell_is_run(browser: Any, lab: Lab) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    Notebook(page).open(lab.url("lab/workspaces/kept/tree/notebooks/06_two_compute_units.ipynb"))
    # SVG is kept out of the page where JupyterLab does not trust the notebook.
    page.locator(".jp-OutputArea-output svg", has_text="gemm_lut_0").first.wait_for()
    page.close()
