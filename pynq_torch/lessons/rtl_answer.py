"""What an answer in SystemVerilog may not say, although a simulator takes it."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["refused"]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_LOOP = re.compile(r"\bfor\s*\([^)]*")
#: What is wrong wherever it stands; the first two are looked for in comments as well.
_NEVER = (
    (r"(?m)^[ \t]*(?:```|~~~[ \t]*\w*[ \t]*$)", "{} is of the page, not of SystemVerilog; leave "
     "that line out"),
    (r"\bverilator\s+lint_off\b", "{} hides what a check is for; mend what the warning is about"),
    (r"`(?:ifn?def|elsif)\s+(?:VERILATOR|COCOTB)\w*|`verilator_config\b",
     "{} makes one design for the simulator and another one for the hardware; write what is right "
     "for both"),
    (r"``|\$c\b|\$f(?!inish\b|atal\b|loor\b|ell\b|alling)\w+|\$(?:system|dump|readmem|writemem)\w*"
     r"|\b(?:im|ex)port\s*\"|\bforce\b|\brelease\b|\bbind\b|\$root\b|\bstage_top\b",
     "{} reaches beyond the module, to files or to the testbench; hardware has its ports alone"),
    (r"\bnegedge\s+clk_i\b", "{} is the other edge: words move where the clock rises, so write "
     "posedge clk_i"),
)  # fmt: skip
#: What begins a part of a module, of which those that drive signals are looked at.
_PROCESS = re.compile(
    r"\b(always(?:_ff|_comb|_latch)?|assign|initial|final|(?:end)?module|assert|assume|cover"
    r"|property|sequence|function|task)\b"
)
#: A signal as a whole at the beginning of an assignment.
_DRIVEN = re.compile(r"(?:[;):]|\b(?:begin|else|end)\b)\s*(\w+)\s*<?=(?!=)")
_ASSIGNED = re.compile(r"\s*(\w+)\s*=")
_DECLARED = r"\b(?:logic|bit|reg|byte|int|integer|automatic)\b[^;=()]*?\b{}\b"


def refused(answer: str) -> str:
    """Return why an answer is none, with its line; ``""`` for one that may be."""
    code = _STRING.sub(lambda one: f'"{" " * (len(one[0]) - 2)}"', _blanked(_COMMENT, answer))
    for number, (pattern, said) in enumerate(_NEVER):
        if found := re.search(pattern, answer if number < 2 else code):
            return f"stage.sv:{_line(answer, found.start())}: {said.format(found[0].strip())}"
    return next(_driven_twice(code), "")


def _driven_twice(code: str) -> Iterator[str]:
    """Yield a sentence for each signal that two processes of a module drive."""
    code = _blanked(_LOOP, code)
    places: dict[str, int] = {}
    begun = 0
    processes = list(_PROCESS.finditer(code))
    ends = [one.start() for one in processes[1:]] + [len(code)]
    for process, end in zip(processes, ends, strict=False):
        if "module" in process[1]:
            places, begun = {}, process.end()
        if _is_generated(code[begun : process.start()]):  # one of several that are never both there
            continue
        for name in sorted(_drives(process[1], code[process.end() : end])):
            local = len(re.findall(_DECLARED.format(name), code)) > 1
            if name in places and not local:
                first, second = _line(code, places[name]), _line(code, process.start())
                yield (
                    f"stage.sv:{second}: this drives {name}, and so does line {first}; drive a "
                    "signal from one assign or always block"
                )
            places.setdefault(name, process.start())


def _is_generated(before: str) -> bool:
    """Return whether a process is in a generate block; `before` is what its module has before."""
    deep = len(re.findall(r"\bbegin\b", before)) > len(re.findall(r"\bend\b", before))
    return deep or before.rstrip().endswith((")", "else"))


def _drives(kind: str, text: str) -> set[str]:
    """Return the signals that a process drives as a whole; `text` is what is behind its name."""
    if kind == "assign":
        assigned = _ASSIGNED.match(text)
        return {assigned[1]} if assigned else set()
    if not kind.startswith("always"):
        return set()
    return {one[1] for one in _DRIVEN.finditer(text) if not _is_choice(text, one.start())}


def _is_choice(text: str, at: int) -> bool:
    """Return whether a colon is that of ``?:``."""
    return text[at] == ":" and "?" in text[text.rfind(";", 0, at) + 1 : at]


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """Return a text with what matches as white space; what is behind keeps its place."""
    return pattern.sub(lambda one: re.sub(r"[^\n]", " ", one[0]), text)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
