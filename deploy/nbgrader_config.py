"""nbgrader for this course: copy it into the course's folder, or let `make release` do so.

docs/teaching.md says how a class is run with it.
"""

import os
import sysconfig

from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearOutput,
    DeduplicateIds,
    IgnorePattern,
    LimitOutput,
    OverwriteKernelspec,
    SaveAutoGrades,
)

from pynq_torch.report.grading import HandedIn, RestoreCells, SandboxedExecute

c = get_config()  # noqa: F821  nbgrader defines it

# nbgrader calls alembic by its name, which is beside nbgrader in an environment that is not active.
os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])

c.CourseDirectory.course_id = "pynq_torch"
if (
    "NBGRADER_EXCHANGE" in os.environ
):  # on the hub: lessons are released and handed in by this folder
    c.Exchange.root = os.environ["NBGRADER_EXCHANGE"]

# What a student changed or deleted among the checks is put back, and the submission runs in a
# sandbox, within limits. All other steps are nbgrader's own.
c.Autograde.exporter_class = HandedIn
c.Autograde.sanitize_preprocessors = [
    ClearOutput,
    DeduplicateIds,
    OverwriteKernelspec,
    RestoreCells,
    CheckCellMetadata,
]
c.Autograde.autograde_preprocessors = [
    SandboxedExecute,
    IgnorePattern,
    ClearMetadataPreprocessor,
    LimitOutput,
    SaveAutoGrades,
    AssignLatePenalties,
    CheckCellMetadata,
]
# The longest that a cell may run, in seconds. Builds of kernels take up to a minute on a busy PC.
c.Execute.timeout = 300
c.Execute.iopub_timeout = 30
c.Execute.error_on_timeout = {
    "ename": "CellTimeoutError",
    "evalue": "this cell did not end in time; look for a loop or a wait without an end",
    "traceback": [
        "CellTimeoutError: this cell did not end in time; look for a loop or a wait without an end"
    ],
}
c.SandboxedExecute.total_s = 1800
c.SandboxedExecute.memory_mb = 8192

c.RestoreCells.add_missing_cells = True
c.ClearSolutions.code_stub = {"python": "# your code here\nraise NotImplementedError"}
