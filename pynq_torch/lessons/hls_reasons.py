"""Why an answer in HLS C++ is not right yet, in sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from pynq_torch.errors import KernelBuildError, KernelTimeout, VerificationError
from pynq_torch.hls import Estimate

from .hls_answer import plain
from .hls_bench import AGAIN, BenchError, RefusedError, UnsetError

__all__ = ["findings", "promises", "why"]

#: What a testbench is stopped by most often.
_SIGNALS = {
    4: "an illegal instruction: is anything divided by zero, or a return missing",
    6: "an abort: is an assertion wrong",
    8: "an arithmetic error: is anything divided by zero",
    11: "a segmentation fault: is an index or pointer outside its array",
    25: "the limit of what it may print: does a loop print without end",
}
_ENDED = re.compile(r": the testbench \S+ (was stopped.*)\. It printed last:")
_STILL = re.compile(r", and was in (\S+:\d+) then\. It printed last:")
_ERROR = re.compile(r"([^\s/]+:\d+):\d+: (?:fatal )?error: (.*)")
_TWICE = re.compile(r"multiple definition of `(\w+)'")
_NOWHERE = re.compile(r"undefined reference to `([\w:]+)")
_PROMISE = re.compile(r"\s*#\s*pragma\s+HLS\s+DEPENDENCE\b", re.IGNORECASE)
_STOPPED = re.compile(r"([^\s/]+:\d+):\d+: runtime error: (.*)")
#: An unsigned variable that a loop counts down to 0, and beyond.
_NEVER_BELOW = re.compile(
    r"\bfor\s*\(\s*(?:(?:std::)?(?:size_t|uint\d+_t)|ap_uint\s*<[^;>]*>|unsigned(?:\s+\w+)??)"
    r"\s+(\w+)\s*=[^;]*;\s*(\1\s*>=\s*0u?|0u?\s*<=\s*\1)\s*;"
)
#: What a warning of a pragma has: a directive's name, or one of these in its line.
_DIRECTIVE = re.compile(
    r"\b(?:ALLOCATION|ARRAY_\w+|BIND_\w+|DATAFLOW|DEPENDENCE|FUNCTION_\w+|INLINE|INTERFACE|LATENCY"
    r"|LOOP_\w+|PIPELINE|RESOURCE|STREAM|UNROLL|HLS|[Pp]ragma)\b|\.tcl:"
)
_WIDTH = 400
#: Advice for a kernel of one's own, which a lab has no room for: no branches, no other folders.
_NOT_HERE = (", or keep the call under #ifndef __SYNTHESIS__", "; give its folder with -I")


def findings(found: Estimate, top: str, code: str, *, no_return: bool = False) -> Iterator[str]:
    """Yield a sentence for each warning of an estimate: of pragmas that do nothing, and others.

    Where the testbench was stopped at the end of a function without a return, that is not said
    again.
    """
    lines = ["", *code.splitlines()]
    endless = dict(_endless(code))
    for text in found.warnings:
        place = re.search(rf"\b{re.escape(top)}\.cpp:(\d+): ", text)
        number = int(place[1]) if place and int(place[1]) < len(lines) else 0
        if " has no body " in text:
            yield _ended(f"It calls what is not there: {text}")
        elif no_return and "a result is missing behind this" in text:
            continue
        elif "the loop has no end" in text and number in endless:
            yield f"{top}.cpp:{number}: {endless[number]}."
        elif " is not true: " in text or "misses the clock" in text:  # it does something wrong
            yield _ended(text)
        elif _DIRECTIVE.search(f"{lines[number]} {text}"):
            yield _ended(f"A pragma does nothing: {text}")
        else:
            yield _ended(text)


def _endless(code: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each loop that waits for an unsigned number to be negative."""
    seen = plain(code)
    for loop in _NEVER_BELOW.finditer(seen):
        text = f"{loop[1]} is unsigned and never below 0, so {loop[2]} is always true"
        yield seen.count("\n", 0, loop.start()) + 1, text


def promises(top: str, code: str, told: Collection[int]) -> Iterator[str]:
    """Yield a line for each DEPENDENCE that nothing has been said of."""
    for number, line in enumerate(code.splitlines(), 1):
        if _PROMISE.match(line) and number not in told:
            said = "DEPENDENCE is a promise that no testbench checks; is it true?"
            yield f"{top}.cpp:{number}: {said}"


def why(error: Exception, timeout_s: float) -> str:
    """Return why there is no verdict on the numbers, as a sentence."""
    text = str(error).strip()
    for advice in _NOT_HERE:
        text = text.replace(advice, "")
    if isinstance(error, BenchError | UnsetError):
        return _ended(text)
    if isinstance(error, KernelTimeout):
        late = f"The testbench did not end within {timeout_s:g} s"
        if at := _STILL.search(text):
            return f"{late}, and was in {at[1]} then: is there a loop that never ends?"
        return f"{late}: is there a loop that never ends?"
    if isinstance(error, VerificationError):
        if ended := _ENDED.search(text):
            return f"The testbench {ended[1]}."
        signal = re.search(r"killed by signal (\d+)", text)
        if signal:
            what = _SIGNALS.get(int(signal[1]), f"signal {signal[1]}")
            return f"The testbench was stopped by {what}?"
        if stopped := _STOPPED.search(text):
            what = stopped[2] if " address " not in stopped[2] else "an address outside its array"
            return f"The testbench was stopped in {stopped[1]}: {what}."
        printed = text.partition("It printed last:\n")[2]
        printed = re.sub(r"\n[0-9a-f]{64}$", "", printed).strip()
        if AGAIN in printed:
            printed = printed.replace(AGAIN, "").strip()
            return _ended(f"{AGAIN} The first run was right, and printed: {_short(printed)}")
        return _ended(f"The result is wrong. The testbench printed: {_short(printed)}")
    first, twice, nowhere = (one.search(text) for one in (_ERROR, _TWICE, _NOWHERE))
    if first:
        text = f"{first[1]}: {first[2]}"
    elif twice:
        text = f"{twice[1]} is defined in the testbench as well; write static before it"
    elif nowhere:
        text = f"{nowhere[1]} is declared, and nothing defines it"
    if isinstance(error, RefusedError):
        return _ended(f"It is not accepted: {_short(text)}")
    kind = "It does not compile" if isinstance(error, KernelBuildError) else "It cannot be read"
    return _ended(f"{kind}. {_short(text)}")


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]} ..."


def _ended(text: str) -> str:
    """Return a sentence with a full stop."""
    return text if text.endswith((".", "?", "!")) else f"{text}."
