"""Widgets are live for a person in a page, and static for whatever program runs a notebook."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from pynq_torch import views, widgets

LAB = "383ba49e-f7eb-48b2-8b46-f4a28cafc141"
CLASSIC = "8a83f60064ba438cbdf017b57f63c59a"
PROGRAM = "347eb946-6390a143074357a6b5fe4b6b_9547_7"


@pytest.mark.parametrize(
    ("name", "metadata", "page"),
    [
        (LAB, {"deletedCells": [], "recordTiming": False, "cellId": "a"}, True),  # JupyterLab
        (LAB, {}, True),  # a slider of JupyterLab that was moved
        (CLASSIC, {}, True),  # the classic Notebook of the board
        (PROGRAM, {"cell_id": "a"}, True),  # a server that executes for its page
        (PROGRAM, {}, False),  # nbclient, papermill, nbval, a console
        ("347eb946-6390a143074357a6b5fe4b6b_7", {}, False),  # before jupyter_client 6.1.13
    ],
)
def test_who_sent_a_request(name: str, metadata: dict[str, Any], page: bool) -> None:
    assert views.sent_by_page({"header": {"msg_id": name}, "metadata": metadata}) is page


def test_a_kernel_that_nobody_asked_has_no_page() -> None:
    assert not views.sent_by_page({})


def test_the_variable_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    request = {"header": {"msg_id": LAB}, "metadata": {}}
    monkeypatch.setattr(views, "_request", lambda: request)
    for value, live in (("", True), ("1", False), ("yes", False), ("0", True)):
        monkeypatch.setenv(views.STATIC, value)
        assert widgets.interactive() is live, value
    request["header"]["msg_id"] = PROGRAM
    for value, live in (("", False), ("1", False), ("0", True)):
        monkeypatch.setenv(views.STATIC, value)
        assert widgets.interactive() is live, value
    monkeypatch.delitem(sys.modules, "ipykernel")
    monkeypatch.setenv(views.STATIC, "0")
    assert not widgets.interactive()


# ---- real Jupyter kernels ------------------------------------------------------------------------

ASK = "from pynq_torch import widgets\nprint('live' if widgets.interactive() else 'static')"


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    """Return a notebook that prints whether its widgets are live."""
    static = nbformat.v4.new_output("stream", name="stdout", text="static\n")
    cell = new_code_cell(ASK, outputs=[static], execution_count=1)
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = tmp_path / "asking.ipynb"
    nbformat.write(new_notebook(cells=[cell], metadata={"kernelspec": spec}), path)
    return path


NBCLIENT = (
    "import nbformat, nbclient; n = nbformat.read('asking.ipynb', 4);"
    "nbclient.execute(n); nbformat.write(n, 'out.ipynb')"
)
HEADLESS = {
    "papermill": ["-m", "papermill", "asking.ipynb", "out.ipynb"],
    "nbclient": ["-c", NBCLIENT],
    "nbconvert": [
        *("-m", "nbconvert", "--to", "notebook", "--execute", "asking.ipynb"),
        *("--output", "out.ipynb"),
    ],
    "nbval": ["-m", "pytest", "-p", "no:cacheprovider", "--nbval", "asking.ipynb"],
}


@pytest.mark.parametrize("program", HEADLESS)
def test_a_headless_run_is_static(asking: Path, program: str) -> None:
    # As if it were started from a cell: a Jupyter server's variables are inherited.
    environment = {**os.environ, "JPY_SESSION_NAME": "/a/notebook.ipynb"}
    environment.pop(views.STATIC, None)
    done = subprocess.run(
        [sys.executable, *HEADLESS[program]],
        cwd=asking.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if program != "nbval":  # which compares with the output of the notebook
        (cell,) = nbformat.read(asking.with_name("out.ipynb"), 4).cells
        assert cell.outputs[0].text == "static\n"


class Server:
    """A Jupyter server without a browser, and one session on it."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.token = secrets.token_hex(16)
        self.log = (folder / "server.log").open("w+")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYNQ_TORCH_")}
        environment["JUPYTER_RUNTIME_DIR"] = environment["JUPYTER_CONFIG_DIR"] = str(folder)
        options = f"--no-browser --allow-root --ServerApp.port={self.port} --ServerApp.root_dir=."
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *options.split(),
             f"--IdentityProvider.token={self.token}"],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=subprocess.STDOUT,
        )  # fmt: skip

    def request(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Ask the server's REST interface, for up to 60 s until it is there."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}"},
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.URLError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.log.seek(0)
                    raise AssertionError(self.log.read()) from None
                time.sleep(0.2)

    def run(self, kernel: str, source: str, **metadata: Any) -> str:
        """Run a cell as a page does, and return what it printed."""
        return asyncio.run(asyncio.wait_for(self._run(kernel, source, metadata), 150))

    async def _run(self, kernel: str, source: str, metadata: dict[str, Any]) -> str:
        from tornado.websocket import websocket_connect

        place = f"ws://127.0.0.1:{self.port}/api/kernels/{kernel}/channels?token={self.token}"
        socket = await websocket_connect(place)
        name = str(uuid.uuid4())
        header = {
            "msg_id": name, "msg_type": "execute_request", "username": "", "session": LAB,
            "date": "2026-01-01T00:00:00Z", "version": "5.3",
        }  # fmt: skip
        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
        message = {"header": header, "metadata": metadata, "content": content}
        await socket.write_message(
            json.dumps({**message, "channel": "shell", "parent_header": {}, "buffers": []})
        )
        printed = ""
        while True:
            text = await socket.read_message()
            assert text is not None, "the server closed the channel"
            answer = json.loads(text)
            if answer["parent_header"].get("msg_id") != name:
                continue
            content = answer["content"]
            printed += content.get("text", "") + "".join(content.get("traceback", []))
            if content.get("execution_state") == "idle":
                socket.close()
                while await socket.read_message() is not None:
                    pass  # until the server has closed its side
                return printed


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    try:
        yield made
    finally:
        made.process.terminate()
        made.process.wait(timeout=60)
        made.log.close()


@pytest.mark.slow
def test_a_page_is_live_and_a_papermill_in_its_cell_is_static(asking: Path, server: Server) -> None:
    session = {"path": "live.ipynb", "name": "live", "type": "notebook"}
    kernel = server.request("sessions", {**session, "kernel": {"name": "python3"}})["kernel"]["id"]
    lab = {"deletedCells": [], "recordTiming": False, "cellId": "a"}
    assert server.run(kernel, ASK, **lab) == "live\n"
    assert server.run(kernel, ASK) == "live\n"  # as the classic Notebook sends it
    assert "live" in server.run(kernel, "import os; print(os.environ['JPY_SESSION_NAME'])")
    shell = server.run(kernel, f"!{sys.executable} -m papermill asking.ipynb out.ipynb", **lab)
    (cell,) = nbformat.read(asking.with_name("out.ipynb"), 4).cells
    assert cell.outputs[0].text == "static\n", shell
    # By papermill's function: the parent of that kernel is the one of the page.
    source = "import papermill as pm; _ = pm.execute_notebook('asking.ipynb', 'inner.ipynb')"
    said = server.run(kernel, source, **lab)
    (cell,) = nbformat.read(asking.with_name("inner.ipynb"), 4).cells
    assert cell.outputs[0].text == "static\n", said
    assert server.run(kernel, ASK, **lab) == "live\n"
