"""nbgrader executes what students hand in; here each submission runs in a sandbox of its own.

The sandbox is Bubblewrap's. A kernel in it sees the system's programs, the Python environment and
this package, all read-only, and an empty home. It sees neither the course's folder nor the
notebooks with their solutions, has no network, and its processes end with it. What is left to a
student's code is its own process. `deploy/nbgrader_config.py` puts this in nbgrader's place.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook, new_output
from nbgrader import utils
from nbgrader.preprocessors import Execute, OverwriteCells
from traitlets import Integer, Unicode

from pynq_torch.errors import PynqTorchError
from pynq_torch.hls.cache import cache_dir
from pynq_torch.paths import NOTEBOOKS
from pynq_torch.report import sandbox

__all__ = ["HandedIn", "RestoreCells", "SandboxedExecute", "SandboxedKernel"]

_HOME = "/tmp/home"
#: Where nbgrader keeps what all students hand in.
_EXCHANGE = Path("/usr/local/share/nbgrader")
#: What has been built is used, not built again: each file of the cache becomes a link to it. Locks
#: are written to, so they are the submission's own.
_LINK_CACHE = (
    'if [ -d "$0" ]; then mkdir -p ~/.cache && cp -rs "$0" ~/.cache/pynq_torch 2>/dev/null;'
    ' rm -rf ~/.cache/pynq_torch/locks; fi; exec "$@"'
)


class HandedIn(NotebookExporter):
    """Reads what a student handed in; a file that is no notebook counts as an empty one.

    nbgrader's own breaks off, and the student has neither points nor a word.
    """

    def from_file(
        self, file_stream: Any, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """Convert a notebook, or one with a sentence in the place of what cannot be read."""
        try:
            nb = nbformat.read(file_stream, as_version=4)
        except (ValueError, TypeError, AttributeError, nbformat.ValidationError) as error:
            why = str(error).partition("\n")[0][:200]
            nb = new_notebook()
            nb.cells = [
                new_markdown_cell(
                    f"**Not graded:** this file cannot be read as a notebook ({why}). Open it in "
                    "JupyterLab, save it, and hand it in again."
                )
            ]
        converted = self.from_notebook_node(nb, resources=resources, **options)
        return cast("tuple[str, dict[str, Any]]", converted)


class SandboxedKernel(AsyncKernelManager):
    """Starts a Jupyter kernel inside Bubblewrap, with limits."""

    memory_mb = Integer(8192)
    processes = Integer(256)
    disk_mb = Integer(2048)
    cpu_s = Integer(3600)

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """Return the kernel's command, behind those that make the sandbox around it."""
        # A signal from here would end Bubblewrap; the kernel interrupts itself when it is asked to.
        self.kernel_spec.interrupt_mode = "message"
        connection = Path(self.connection_file)
        if sandbox.is_root():
            for path in (connection.parent, connection):
                os.chown(path, sandbox.NOBODY, sandbox.NOBODY)
        # Solutions and hidden tests are in the lessons and in the course's folder, where nbgrader
        # runs; both may be below a folder that is read.
        hidden = (NOTEBOOKS, Path.cwd(), _EXCHANGE)
        return [
            *sandbox.sandbox([str(connection.parent)], hidden, self.disk_mb),
            *("--perms", "0777", "--dir", _HOME, "--chdir", _HOME, "--clearenv"),
            *_environment(),
            *sandbox.as_user(sandbox.NOBODY),
            *sandbox.limits(self.memory_mb, self.disk_mb, self.processes),
            f"--cpu={self.cpu_s}",
            *("sh", "-c", _LINK_CACHE, str(cache_dir())),
            *super().format_kernel_cmd(extra_arguments=extra_arguments),
        ]


def _environment() -> list[str]:
    environment = {
        "HOME": _HOME,
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "NBGRADER_EXECUTION": "autograde",
        "PYNQ_TORCH_STATIC": "1",  # nobody is there to move a slider
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    return [word for name, value in environment.items() for word in ("--setenv", name, value)]


class SandboxedExecute(Execute):
    """Execute a submission in a sandbox; whatever it does, the cells that remain lose their points.

    nbgrader's own stops at a kernel that has died, and leaves the submission without a grade.
    """

    total_s = Integer(1800, help="The longest that a submission may run, in seconds.").tag(
        config=True
    )
    hangs = Integer(2, help="How many cells may run into the timeout; the rest is not run.").tag(
        config=True
    )
    memory_mb = Integer(8192, help="Address space of each process, in MiB.").tag(config=True)
    processes = Integer(256, help="The most processes and threads of a submission.").tag(
        config=True
    )
    disk_mb = Integer(2048, help="Size of its home and of each file, in MiB.").tag(config=True)
    output_kb = Integer(1024, help="Printed text of a cell that is kept, in KiB.").tag(config=True)
    bubblewrap = Unicode("bwrap", help="The command of Bubblewrap.").tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any], km: Any = None
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Execute a notebook; its grade cells end in an error where they could not run."""
        if shutil.which(self.bubblewrap) is None:
            raise PynqTorchError(
                f"{self.bubblewrap} is not there, and submissions are not run without a sandbox; "
                "install it with: apt install bubblewrap"
            )
        self._why_ended = ""
        self._hung = 0
        self._written = 0
        self._deadline = time.monotonic() + self.total_s
        self.timeout_func = lambda _: max(1, min(self.timeout, self._left_s()))
        with tempfile.TemporaryDirectory(prefix="grade-") as self._folder:
            return super().preprocess(nb, resources, km)  # type: ignore[no-any-return]

    def create_kernel_manager(self) -> SandboxedKernel:
        """Return the manager of a kernel in a sandbox."""
        self.km = SandboxedKernel(
            kernel_name=self.nb.metadata.get("kernelspec", {}).get("name", "python3"),
            transport="ipc",  # sockets in a folder: the sandbox has no network
            connection_file=str(Path(self._folder) / "kernel.json"),
            memory_mb=self.memory_mb,
            processes=self.processes,
            disk_mb=self.disk_mb,
            cpu_s=2 * self.total_s,
        )
        return self.km

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Execute a cell, or say why it was not executed."""
        self._written = 0
        if not self._why_ended and self._left_s() <= 0:
            self._why_ended = f"the notebook ran longer than {self.total_s} s"
        if not self._why_ended:
            try:
                cell, resources = super().preprocess_cell(cell, resources, index)
            except DeadKernelError:
                self._why_ended = (
                    "the kernel died while this cell or one before it was running: a segmentation "
                    "fault, an exit, or more memory than is allowed"
                )
            except CellTimeoutError:  # it was interrupted, and goes on
                self._why_ended = (
                    f"this cell or one before it did not end in {self.timeout} s and could not be "
                    "interrupted"
                )
        if cell.cell_type == "code" and self._why_ended:
            cell.outputs.append(_error(f"not graded, {self._why_ended}"))
        self._count_hang(cell)
        if utils.is_grade(cell):
            # nbgrader takes points away for a word on stderr, as where RTL is built; errors count.
            for output in cell.get("outputs", []):
                if output.get("name") == "stderr":
                    output.name = "stdout"
        return cell, resources

    def on_cell_executed(self, **about: Any) -> None:
        """Note that a cell asked the kernel to end.

        ipykernel does so 0.1 s later, and cells that run until then would count by chance.
        """
        super().on_cell_executed(**about)
        payload = about["execute_reply"]["content"].get("payload", [])
        if any(p.get("source") == "ask_exit" and not p.get("keepkernel") for p in payload):
            self._why_ended = "the kernel died: this cell or one before it ended it with exit()"

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> Any:
        """Keep what a cell prints up to a limit, which spares the grader's own memory."""
        if msg["msg_type"] == "stream":
            self._written += len(msg["content"]["text"])
            if self._written > self.output_kb << 10:
                return None
        return super().process_message(msg, cell, cell_index)

    def _left_s(self) -> int:
        return int(self._deadline - time.monotonic())

    def _count_hang(self, cell: NotebookNode) -> None:
        outputs = cell.get("outputs", [])
        self._hung += any(output.get("ename") == "CellTimeoutError" for output in outputs)
        if self._hung >= self.hangs and not self._why_ended:
            self._why_ended = f"{self._hung} cells before this one did not end in {self.timeout} s"


class RestoreCells(OverwriteCells):
    """Put checks that a student changed or deleted back, deleted ones at the notebook's end.

    nbgrader's own breaks off where the cell before a deleted one is deleted, too, and at the copy
    of a cell.
    """

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Restore the checks of a submission, in which the last of equal cells counts."""
        for cell in nb.cells:
            if "grade_id" not in cell.metadata.get("nbgrader", {"grade_id": ""}):
                del cell.metadata["nbgrader"]  # a copy: DeduplicateIds has emptied it
        return super().preprocess(nb, resources)  # type: ignore[no-any-return]

    def add_missing_grade_cells(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Append the checks that are not in a submission."""
        here = {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in nb.cells}
        source = self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
        cells = {cell.name: cell for cell in source.source_cells}
        for graded in source.grade_cells:
            if graded.name not in here:
                cell = self.missing_cell_transform(cells[graded.name], graded.max_score)
                nb.cells.append(cell)
        return nb, resources


def _error(sentence: str) -> NotebookNode:
    return new_output(
        "error", ename="NotGraded", evalue=sentence, traceback=[f"NotGraded: {sentence}"]
    )
