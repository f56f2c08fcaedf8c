"""JupyterLab as `make lab` starts it, and a page in it: open a notebook, run it, move controls."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Bound of a wait that sees no progress: the machine may be busy with other tests and builds.
PATIENCE_S = 240
SETTINGS = {
    # Cells beyond the window exist only while they are in sight; tests look at all of them.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
#: What is drawn beyond the right edge of the notebook. Tables may be wider: they scroll.
_TOO_WIDE = """() => {
    const page = document.querySelector('.jp-Notebook')
    const edge = page.getBoundingClientRect().left + page.clientWidth
    return [...page.querySelectorAll('img, .jp-OutputArea-output svg, button, .widget-hslider')]
        .filter(part => part.getBoundingClientRect().right > edge + 1)
        .map(part => part.outerHTML.slice(0, 80))
}"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Lab:
    """A JupyterLab on a folder, started by the project's own command."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.port, self.token = free_port(), secrets.token_hex(16)
        self.log = state / "lab.log"
        for name, values in SETTINGS.items():
            path = state / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))
        flags = (
            f"--no-browser --port={self.port} --ServerApp.port_retries=0 "
            f"--IdentityProvider.token={self.token}"
        )
        prefix = Path(sys.prefix)
        environment = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("PYNQ_TORCH_", "JUPYTER", "MAKE", "MFLAGS"))
        } | {
            "JUPYTER_CONFIG_DIR": str(state / "config"),
            "JUPYTER_RUNTIME_DIR": str(state / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(state / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(state / "workspaces"),
            "IPYTHONDIR": str(state / "ipython"),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        # In the folder, whose notebooks it may save. The environment is the one that runs the
        # tests: make must not begin to install it.
        command = [
            *("make", "-C", str(folder), "-f", str(ROOT / "Makefile")),
            *("-o", f"{prefix}/.installed", f"VENV={prefix}", f"LAB_FLAGS={flags}", "lab"),
        ]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}"

    def wait(self) -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(self.url("api/status"), timeout=10):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                ended = self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    raise AssertionError(
                        f"JupyterLab does not answer:\n{self.log.read_text()}"
                    ) from error
                time.sleep(0.3)

    def close(self) -> None:
        """Ask it to end, with all its kernels."""
        if self._process.poll() is None:
            request = urllib.request.Request(self.url("api/shutdown"), method="POST")
            with urllib.request.urlopen(request, timeout=30):
                pass
        self._process.wait(timeout=PATIENCE_S)


class Notebook:
    """A notebook that is open in a page."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE_S * 1000)
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))

    def _note(self, message: Any) -> None:
        if message.type == "error":
            where = message.location.get("url", "")
            self.errors.append(f"{message.text} ({where})")

    def open(self, url: str) -> None:
        self.page.goto(url)
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        # Before the kernel is there JupyterLab runs nothing, without a word.
        self.page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()

    def run_all(self) -> None:
        """Run all cells by the menu, and wait until each has run."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        prompts = self.page.locator(".jp-Notebook .jp-CodeCell .jp-InputPrompt")
        failed = self.page.locator(
            ".jp-OutputArea-output", has_text="Traceback (most recent call last)"
        )

        def ended() -> bool:
            assert failed.count() == 0, failed.first.inner_text()
            return all(text.strip("[]: ").isdigit() for text in prompts.all_text_contents())

        self.until(ended, "all cells to run", prompts.all_text_contents)

    def cell(self, number: int) -> Any:
        """Return a code cell, counted from 0, scrolled into sight."""
        cell = self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)
        cell.scroll_into_view_if_needed()
        return cell

    def drag(self, cell: Any, name: str, to: float) -> None:
        """Drag the slider of a cell that is called `name` to a share of its width.

        A busy page still moves while other outputs arrive, so that the mouse can miss: the slider
        is taken where it has come to rest, and once more where its value did not change.
        """
        slider = cell.locator(".widget-hslider", has=self.page.locator(f"label:text-is('{name}')"))
        handle = slider.locator(".noUi-handle").last
        handle.scroll_into_view_if_needed()
        before = handle.get_attribute("aria-valuenow")

        def moved() -> bool:
            start, rail = self._at_rest(handle, slider.locator(".noUi-base"))
            y = start["y"] + start["height"] / 2
            mouse = self.page.mouse
            mouse.move(start["x"] + start["width"] / 2, y)
            mouse.down()
            mouse.move(rail["x"] + rail["width"] * to, y, steps=4)
            mouse.up()
            return bool(handle.get_attribute("aria-valuenow") != before)

        self.until(moved, f"slider {name} to move from {before}")

    def _at_rest(self, *parts: Any) -> list[dict[str, float]]:
        """Return where parts of the page are, once they are in one place for two looks."""
        found: list[Any] = []

        def same() -> bool:
            nonlocal found
            before, found = found, [part.bounding_box() for part in parts]
            return None not in found and found == before

        self.until(same, "the page to come to rest")
        return found

    def picture(self, cell: Any) -> bytes:
        """Return the bytes of the chart in a cell, once it shows."""
        image = cell.locator("img").first
        image.wait_for()
        self.until(lambda: image.evaluate("i => i.complete && i.naturalWidth > 0"), "the chart")
        data = image.evaluate(
            """async i => Array.from(new Uint8Array(await (await fetch(i.src)).arrayBuffer()))"""
        )
        return bytes(data)

    def changed(self, cell: Any, before: bytes) -> bytes:
        """Wait until the chart in a cell is another one, and return it."""
        found = before

        def other() -> bool:
            nonlocal found
            found = self.picture(cell)
            return found != before

        self.until(other, "another chart")
        return found

    def fits(self, width: int) -> None:
        """Check that what is drawn is there, and not wider than a page in a window of `width`."""
        self.page.set_viewport_size({"width": width, "height": 900})
        assert self.page.get_by_text("Error displaying widget").count() == 0
        pictures = self.page.locator(".jp-Notebook img")
        pictures.evaluate_all("all => all.forEach(i => i.scrollIntoView())")
        self.until(
            lambda: pictures.evaluate_all("all => all.every(i => i.complete && i.naturalWidth)"),
            "all pictures",
        )
        self.until(lambda: self.page.evaluate(_TOO_WIDE) == [], f"a page that fits {width} px")

    def until(
        self, condition: Callable[[], Any], what: str, progress: Callable[[], Any] = lambda: None
    ) -> None:
        """Wait until a condition holds; what `progress` returns has to change within patience."""
        seen, deadline = None, time.monotonic() + PATIENCE_S
        while not condition():
            if (now := progress()) != seen:
                seen, deadline = now, time.monotonic() + PATIENCE_S
            assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {what}"
            self.page.wait_for_timeout(100)
