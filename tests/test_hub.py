"""The JupyterHub of deploy/hub: several users at once, each with a virtual board in a sandbox.

It starts a server for each user, which takes a minute or two.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from pynq_torch.paths import ROOT

USERS = ("ada", "grace", "joan")
TOKEN = "of-the-test"
pytestmark = [
    pytest.mark.skipif(
        not (importlib.util.find_spec("jupyterhub") and shutil.which("bwrap")),
        reason="jupyterhub or Bubblewrap is not installed",
    ),
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]
CONFIG = """
load_subconfig({base!r})
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy}"
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.auth_token = {token!r}
c.JupyterHub.services = [{{"name": "test", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [{{
    "name": "test",
    "services": ["test"],
    "scopes": ["admin:users", "admin:servers", "access:servers"],
}}]
c.Spawner.start_timeout = c.Spawner.http_timeout = 600
"""
ADD = """
import pynq_torch, torch
pynq_torch.use_board("csim")
overlay = pynq_torch.load("vadd")
x = torch.arange(5000.0)
print(torch.equal(overlay.vadd(x, x + {n}), 2 * x + {n}))
"""
#: What a user finds of the others, and of the hub.
SPY = """
import os
from pathlib import Path
tops = [Path({folder!r}, name) for name in ("homes", "hub")]
print(sorted(p.name for top in tops if top.is_dir() for p in top.iterdir()))
print(sum(name.isdigit() for name in os.listdir("/proc")) < 30)
try:
    Path({package!r}, "spoilt").write_text("")
except OSError as error:
    print(type(error).__name__)
"""
#: Processes up to the limit. 600 is above it.
FORKS = """
import subprocess
children = []
try:
    for _ in range(600):
        children.append(subprocess.Popen(["sleep", "60"]))
except OSError as error:
    print(type(error).__name__, len(children) < 512)
for child in children:
    child.kill()
    child.wait()
"""


def _port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def _until(done: Callable[[], bool], what: str, timeout_s: float = 600) -> None:
    end = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < end, f"waited {timeout_s} s until {what}"
        time.sleep(0.5)


class Hub:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "srv"
        port, hub, proxy = _port(), _port(), _port()
        self.base = f"http://127.0.0.1:{port}"
        config = folder / "test_config.py"
        base = str(ROOT / "deploy/hub/jupyterhub_config.py")
        config.write_text(CONFIG.format(base=base, token=TOKEN, port=port, hub=hub, proxy=proxy))
        self.log = folder / "hub.log"
        # The hub gives the proxy that it starts itself ten seconds, which a busy PC may need.
        program = Path(sysconfig.get_path("scripts"), "configurable-http-proxy")
        words = [str(program), f"--port={port}", f"--api-port={proxy}", "--ip=127.0.0.1"]
        words += ["--api-ip=127.0.0.1", f"--default-target=http://127.0.0.1:{hub}"]
        self.started: list[subprocess.Popen[bytes]] = []
        self._start(folder, [*words, "--error-target", f"http://127.0.0.1:{hub}/hub/error"])
        for at in (port, proxy):
            _until(lambda at=at: _listens(at), f"the proxy listens at {at}")
        self._start(folder, [sys.executable, "-m", "jupyterhub", "-f", str(config)])

    def _start(self, folder: Path, words: list[str]) -> None:
        env = {**os.environ, "HUB_FOLDER": str(self.folder), "CONFIGPROXY_AUTH_TOKEN": TOKEN}
        with self.log.open("a") as log:
            self.started.append(
                subprocess.Popen(words, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT)
            )

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self.base + path,
            method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def wait(self, path: str, ready: Callable[[Any], bool]) -> None:
        """Ask until the answer is ready."""

        def asked() -> bool:
            assert not any(program.poll() for program in self.started), self.log.read_text()[-3000:]
            try:
                return ready(self.ask("GET", path))
            except (urllib.error.URLError, ConnectionError):
                return False  # it is starting

        _until(asked, f"{path} is ready")

    def start(self, user: str) -> None:
        self.ask("POST", f"/hub/api/users/{user}")
        self.ask("POST", f"/hub/api/users/{user}/server")
        self.wait(f"/hub/api/users/{user}", lambda answer: answer["servers"][""]["ready"])

    def kernel(self, user: str) -> str:
        return str(self.ask("POST", f"/user/{user}/api/kernels", {"name": "python3"})["id"])

    def run(self, user: str, kernel: str, code: str, timeout_s: float = 600) -> str:
        """Run code in a user's kernel; return what it prints, or how it ended."""
        import websocket

        address = f"{self.base.replace('http', 'ws')}/user/{user}/api/kernels/{kernel}/channels"
        header = {"msg_id": uuid.uuid4().hex, "username": user, "session": uuid.uuid4().hex}
        header |= {"msg_type": "execute_request", "version": "5.3", "date": ""}
        content = {"code": code, "silent": False, "store_history": False, "stop_on_error": True}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        connection = websocket.WebSocket()
        connection.settimeout(timeout_s)

        def connected() -> bool:
            # A kernel that starts on a busy PC for longer than Jupyter waits is an error 500 first.
            with contextlib.suppress(websocket.WebSocketBadStatusException):
                connection.connect(address, header={"Authorization": f"token {TOKEN}"})
            return bool(connection.connected)

        _until(connected, f"a kernel of {user} is there")
        try:
            connection.send(json.dumps({**message, "channel": "shell"}))
            return self._answer(connection, header["msg_id"])
        finally:
            connection.close()

    def _answer(self, connection: Any, asked: str) -> str:
        printed = ""
        while True:
            got = json.loads(connection.recv())
            content, kind = got["content"], got["msg_type"]
            if kind == "status" and content["execution_state"] in {"restarting", "dead"}:
                return "the kernel died"
            if got["parent_header"].get("msg_id") != asked:
                continue
            if kind == "stream" and content["name"] == "stdout":
                printed += content["text"]
            if kind == "error":
                return f"{content['ename']}: {content['evalue']}"
            if kind == "status" and content["execution_state"] == "idle":
                return printed

    def stop(self) -> None:
        """End the hub, which ends the users' servers, then the proxy; nothing is left."""
        everything = [psutil.Process(program.pid) for program in self.started]
        everything += [child for p in everything if p.is_running() for child in p.children(True)]
        for program in reversed(self.started):
            program.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(60)
        left = [process for process in everything if process.is_running()]
        for process in left:
            process.kill()
        assert not left, left


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    made = Hub(tmp_path_factory.mktemp("hub"))
    try:
        made.wait("/hub/api/", lambda answer: "version" in answer)
        with ThreadPoolExecutor() as pool:
            list(pool.map(made.start, USERS))
        yield made
    finally:
        made.stop()


def test_users_run_and_crash_boards_beside_each_other(hub: Hub):
    with ThreadPoolExecutor() as pool:
        kernels = dict(zip(USERS, pool.map(hub.kernel, USERS), strict=True))
        done = pool.map(lambda u: hub.run(u, kernels[u], ADD.format(n=USERS.index(u))), USERS)
        assert list(done) == ["True\n"] * len(USERS)

        def second(user: str) -> str:
            crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
            return hub.run(user, kernels[user], crash if user == "ada" else ADD.format(n=9))

        assert list(pool.map(second, USERS)) == ["the kernel died"] + ["True\n"] * 2
    # Whose kernel died starts another, and has a board again.
    assert hub.run("ada", hub.kernel("ada"), ADD.format(n=1)) == "True\n"


def test_a_user_sees_neither_others_nor_the_hub(hub: Hub):
    spy = SPY.format(folder=str(hub.folder), package=str(ROOT / "pynq_torch"))
    seen = hub.run("grace", hub.kernel("grace"), spy)
    assert seen.splitlines() == ["['grace']", "True", "OSError"]


def test_memory_and_processes_of_a_user_end_somewhere(hub: Hub):
    kernel = hub.kernel("joan")
    assert hub.run("joan", kernel, "bytearray(64 << 30)").startswith("MemoryError")
    grow = "open('large', 'wb').truncate(1 << 40)"
    assert hub.run("joan", kernel, grow).startswith("OSError")
    assert hub.run("joan", kernel, FORKS) == "BlockingIOError True\n"
    assert hub.run("grace", hub.kernel("grace"), ADD.format(n=3)) == "True\n"
