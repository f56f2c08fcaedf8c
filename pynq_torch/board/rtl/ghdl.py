"""Running GHDL's synthesis: VHDL in words that it takes, and what it says and writes.

GHDL 2.0, which Debian 12 has, stops at some of what Vitis HLS writes. Its Verilog lacks the
``others`` of every case, and long constants are texts. All of it is mended here, or is an error.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pynq_torch.errors import RtlError
from pynq_torch.hls import cache

from . import lint

__all__ = ["synthesise"]

_TIMEOUT_S = 600
# The newest standard first: what only an older one takes is tried with it.
_STANDARDS = ("08", "93c")
_OPTIONS = ("-fsynopsys", "-frelaxed", "-fno-color-diagnostics", "--workdir=.")
_MESSAGE = re.compile(
    r"(?P<file>[^\s:][^:]*):(?P<line>\d+):\d+:(?P<remark>warning:|note:)?(?:error:)?(?P<text>.*)"
)
# A component without an entity: GHDL writes a module without a body.
_EMPTY = re.compile(r"^module [^;]*?\);\s*endmodule\n", re.MULTILINE)
# A signal with a first value, which GHDL gives to the register behind it as well.
_TWICE = re.compile(r"(?P<always>= [^;]*; // \(isignal\)\n)\s*initial\n[^;]*;\n")
# A case in GHDL's Verilog, and in its VHDL.
_CASE = re.compile(
    r"(?P<case>^ *case \([^\n]*\n *[^\n]*: (?P<output>\w+) <= (?:(?!endcase).)*?) *endcase",
    re.MULTILINE | re.DOTALL,
)
_OTHERS = re.compile(r"\bselect (\w+) <=\s*(?:[^;]*,)?\s*([^,;]+?)\s+when others;")
# A constant of more than 32 bits: GHDL 2 writes it as VHDL has it, which is a text in Verilog.
_WIDE = re.compile(r'"(?P<bits>[01XZ]{33,})"')
# A memory of zeros, which GHDL writes word by word: millions of lines.
_ZEROS = re.compile(
    r"^ *(?P<name>\w+)\[(?P<high>\d+)\] = (?P<zero>\d+'b0+);\n"
    r"(?: *(?P=name)\[(?P<low>\d+)\] = (?P=zero);\n){7,}",
    re.MULTILINE,
)
# What HLS writes and GHDL 2 (Debian 12) does not synthesise: a shared variable without a first
# value, at which it crashes, and a slice whose length only the running design knows.
_SHARED = re.compile(r"(?P<head>\bshared\s+variable\s+\w+\s*:\s*(?P<type>\w+)\s*);", re.IGNORECASE)
_ARRAY = r"\btype\s+{}\s+is\s+array\s*\([^;]*?\)\s*of\s+(?:std_logic_vector|(?:un)?signed)\b"
_SLICE = re.compile(
    r"\b(?P<name>\w+)\s*\((?P<high>[^;\n]*\bto_integer\s*\([^;\n]*?)\s+downto\s+0\)\s*:=\s*"
    r"\(\s*others\s*=>\s*(?P<bit>'[01]')\s*\)\s*;",
    re.IGNORECASE,
)
# GHDL names the outputs of an instance LABEL_PORT, and so do signals in what HLS writes.
_INSTANCE = re.compile(
    r"^(?P<label>[ \t]*\w+)(?=\s*:\s*(?:(?:component|entity)\s+)?[\w.]+(?:\s*\(\s*\w+\s*\))?\s+"
    r"(?:generic|port)\s+map\b)",
    re.IGNORECASE | re.MULTILINE,
)
# Names in VHDL that Verilog reserves; GHDL 2 writes them as they are.
_RESERVED = re.compile(
    r'(?P<kept>"[^"\n]*"|--[^\n]*)|\b(?P<word>always|assign|automatic|cell|config|deassign|defparam|'
    r"design|disable|edge|endcase|endmodule|endtable|endtask|force|forever|fork|include|initial|input|"
    r"instance|join|large|localparam|medium|module|negedge|output|posedge|primitive|reg|release|repeat|"
    r"small|specify|table|task|tran|tri|tri0|tri1|triand|trior|vectored|wand|wire|wor)\b",
    re.IGNORECASE,
)


def synthesise(
    ghdl: str, name: str, top: str, files: Sequence[Path], generics: Sequence[str], work: Path
) -> str:
    """Return the Verilog that GHDL writes, by the first standard that the sources follow."""
    failures: list[list[lint.Message]] = []
    copies = {f"{number}.vhd": path for number, path in enumerate(files)}
    for copy, path in copies.items():
        cache.write_text(work / copy, _adapted(path.read_text("utf-8-sig", "replace")))
    for standard in _STANDARDS:
        command = ["synth", f"--std={standard}", *_OPTIONS, *generics, *copies, "-e", top]
        answer = _run(ghdl, [*command[:1], "--out=verilog", *command[1:]], name, work)
        if answer.returncode == 0 and _lacks_defaults(answer.stdout):
            whole = _run(ghdl, [*command[:1], "--out=vhdl", *command[1:]], name, work)
            return _tidied(_with_defaults(name, answer.stdout, whole.stdout))
        if answer.returncode == 0:
            return _tidied(answer.stdout)
        failures.append(_messages(answer.stderr, copies))
    raise lint.lint_error(name, min(failures, key=len))


def _run(
    ghdl: str, arguments: Sequence[str], name: str, work: Path
) -> subprocess.CompletedProcess[str]:
    try:
        return lint.captured([ghdl, *arguments], name, _TIMEOUT_S, work)
    except OSError as error:
        raise RtlError(f"{name}: GHDL cannot be run: {error}", name) from error
    except subprocess.TimeoutExpired as error:
        raise RtlError(
            f"{name}: GHDL did not finish within {_TIMEOUT_S} s: a design this large cannot be "
            "converted here; export the kernel as Verilog",
            name,
        ) from error


def _lacks_defaults(verilog: str) -> bool:
    """Tell whether GHDL left out what the others of a case are: 2.0 does, in Verilog only."""
    return "endcase" in verilog and not re.search(r"^ *default *:", verilog, re.MULTILINE)


def _with_defaults(name: str, verilog: str, vhdl: str) -> str:
    """Return the Verilog with the defaults of its cases, from the same netlist as VHDL."""
    cases = [match["output"] for match in _CASE.finditer(verilog)]
    defaults = _OTHERS.findall(vhdl)
    literals = [_as_verilog(value, verilog) for _, value in defaults]
    if cases != [output for output, _ in defaults] or not all(literals):
        raise RtlError(
            f"{name}: this GHDL leaves the others of a case out of its Verilog, and here they "
            "cannot be put back: use GHDL 3 or newer, or export the kernel as Verilog",
            name,
        )
    left = iter(literals)
    return _CASE.sub(
        lambda match: (
            f"{match['case']}      default: {match['output']} <= {next(left)};\n    endcase"
        ),
        verilog,
    )


def _as_verilog(value: str, verilog: str) -> str:
    """Return a literal or a name of GHDL's VHDL in its Verilog; empty where it is neither."""
    if match := re.fullmatch(r"""['"]([01XZ]+)['"]""", value):
        return f"{len(match[1])}'b{match[1].lower()}"
    if match := re.fullmatch(r'X"([0-9a-f]+)"', value, re.IGNORECASE):
        return f"{4 * len(match[1])}'h{match[1]}"
    if match := re.fullmatch(r"\((\d+) downto (\d+) => '([01XZ])'\)", value):
        return f"{{{int(match[1]) - int(match[2]) + 1}{{1'b{match[3].lower()}}}}}"
    names = (value, value.removeprefix("wrap_")) if value.isidentifier() else ()
    return next((word for word in names if re.search(rf"\b{word}\b", verilog)), "")


def _tidied(text: str) -> str:
    """Return GHDL's Verilog as Verilator takes it."""
    text = _TWICE.sub(r"\g<always>", _EMPTY.sub("", text))
    text = _WIDE.sub(lambda match: f"{len(match['bits'])}'b{match['bits'].lower()}", text)
    text = _CASE.sub(lambda match: f"{match['case'].replace(' <= ', ' = ')}    endcase", text)
    text = _ZEROS.sub(
        r"    for (integer word = \g<low>; word <= \g<high>; word = word + 1) "
        r"\g<name>[word] = \g<zero>;\n",
        text,
    )
    # VHDL has names that SystemVerilog reserves: logic, byte, context.
    return f'`begin_keywords "1364-2005"\n{text}`end_keywords\n'


def _adapted(text: str) -> str:
    """Return VHDL in words that GHDL 2 takes, line by line, with the same meaning."""

    def first_value(match: re.Match[str]) -> str:
        if not re.search(_ARRAY.format(match["type"]), text, re.IGNORECASE):
            return match[0]
        return f"{match['head']}:= (others => (others => '0'));"

    def loop(match: re.Match[str]) -> str:
        name, high, bit = match["name"], match["high"], match["bit"]
        return (
            f"for at_bit in {name}'range loop if at_bit <= {high} then {name}(at_bit) := {bit}; "
            "end if; end loop;"
        )

    text = _RESERVED.sub(lambda match: match["kept"] or f"{match['word']}_name", text)
    text = _INSTANCE.sub(r"\g<label>_unit", text)
    return _SLICE.sub(loop, _SHARED.sub(first_value, text))


def _messages(said: str, copies: Mapping[str, Path]) -> list[lint.Message]:
    """Return the errors of GHDL; a line of its own where it names no file."""
    found: list[lint.Message] = []
    lines = said.splitlines()
    for at, line in enumerate(lines):
        match = _MESSAGE.match(line)
        if match is not None and not match["remark"]:
            file, text = str(copies.get(match["file"], match["file"])), match["text"].strip()
            excerpt = "\n".join(lines[at + 1 : at + 3])
            message = lint.Message("Error", "", file, int(match["line"]), text, excerpt)
            found += [message] if message not in found else []
    if not found or "GHDL Bug" in said:
        last = [line for line in lines if line and not line.startswith(("Command", "0x", "***"))]
        text = "GHDL ends with: " + ("; ".join(last[-4:])[-500:] or "no message")
        text += ". A newer GHDL may take it, or Verilog: export the kernel as Verilog"
        found = [lint.Message("Error", "", "", 0, text, "")]
    return found
