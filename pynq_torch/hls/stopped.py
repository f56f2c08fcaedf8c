"""What stopped a testbench, and in which line, from what it printed."""

from __future__ import annotations

import re

from . import toolchain

__all__ = ["place", "report_from", "what_stopped"]

_REPORT = re.compile(r"^.*ERROR: AddressSanitizer: ([\w-]+)", re.MULTILINE)
_FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ in .*? ([^\s:]+):(\d+)(?::\d+)?$", re.MULTILINE)
_THROWN = re.compile(
    r"^terminate called after throwing an instance of .*\n +what\(\): +(.*(?:\n|$))", re.MULTILINE
)
_OUTSIDE = "an index or pointer outside its array"
_KINDS = {
    "stack-overflow": "more local memory, or deeper calls, than the stack has room for",
    "FPE": "an arithmetic error: is anything divided by zero",
}
_SIGNALS = {
    4: "an illegal instruction: is anything divided by zero, or a return missing",
    8: "an arithmetic error: is anything divided by zero",
    11: f"a segmentation fault: is {_OUTSIDE}",
}


def place(output: str) -> str:
    """Return file and line of the innermost call of a report that is no library's, or ``""``."""
    report = _REPORT.search(output)
    others = ("/usr/", *toolchain.header_dirs())
    for frame in _FRAME.finditer(output, report.end()) if report else ():
        if not frame[1].startswith(others) and "libsanitizer" not in frame[1]:
            return f"{frame[1].rpartition('/')[2]}:{frame[2]}"
    return ""


def what_stopped(output: str, code: int, *, sanitized: bool) -> str:
    """Return what ended a testbench with a status other than 0, behind its name.

    Parameters
    ----------
    output : str
        What it printed.
    code : int
        Its exit status, negative for a signal.
    sanitized : bool
        Whether it was built with AddressSanitizer, which names lines.
    """
    if thrown := _THROWN.search(output):
        return f"was stopped: {thrown[1].strip()}"
    if report := _REPORT.search(output):
        at, kind = place(output), report[1]
        what = _KINDS.get(kind, f"{_OUTSIDE} ({kind})")
        return f"was stopped{f' in {at}' if at else ''}: {what}"
    if code >= 0:
        return f"returned {code}; 0 means success"
    text = f"was killed by signal {-code}"
    if -code in _SIGNALS:
        text += f", {_SIGNALS[-code]}?"
        text += "" if sanitized else " hls test --sanitize names the line"
    return text


def report_from(output: str) -> str:
    """Return what a testbench printed without what `what_stopped` says in its place."""
    output = _THROWN.sub("", output)
    report = _REPORT.search(output)
    return output if report is None else output[: report.start()].rstrip("=\n")
