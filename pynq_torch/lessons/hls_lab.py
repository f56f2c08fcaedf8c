"""Exercises in HLS C++: right is what its testbench passes and whose estimate reaches a goal.

`check` ends in a sentence, whatever it is given: C++ that does not compile, a wrong result, a loop
that never ends.
"""

from __future__ import annotations

import contextlib
import functools
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pynq_torch.errors import InterfaceWarning, PynqTorchError, VerificationError
from pynq_torch.hls import Estimate, KernelSource, estimate, lint, run_testbench, toolchain
from pynq_torch.hls.ap_zeros import write_zeroing_headers
from pynq_torch.hls.estimator.result import LoopEstimate
from pynq_torch.hls.snippet import CELLS, split, write_directives

from .hls_answer import bare, fifos, overwritten, plain, pragmas
from .hls_bench import UnsetError, written
from .hls_reasons import findings, promises, why

__all__ = [
    "Checked", "Target", "bare", "cell", "check", "estimated", "fifos", "pragmas", "with_pragmas",
]  # fmt: skip

#: Fills local variables, which begin with zeros in engines: no answer may count on that.
_FILLED = "-ftrivial-auto-var-init=pattern"
_LEFT_OVER = re.compile(r"WARNING: (stream .* still holds .*)")
#: Rules of ``hls lint`` that a testbench and an estimate do not see.
_HINTS = ("dataflow", "void", "burst", "dependence")


@dataclass(frozen=True)
class Target:
    """What an answer has to reach; what is not given does not matter.

    Parameters
    ----------
    ii : mapping of str to int
        Label of a loop -> the most its II may be. The loop has to be pipelined.
    latency : int, optional
        The most cycles of one run.
    interval : int, optional
        The most cycles from one start to the next.
    dsp, bram : int, optional
        The most DSP blocks and halves of block RAM (BRAM_18K).
    fifo : int, optional
        The most places that a FIFO may have.
    reads : int, optional
        So many of the first arguments are inputs, which the function may not write to: a testbench
        that looks at them again would be fooled.
    """

    ii: Mapping[str, int] = field(default_factory=dict)
    latency: int | None = None
    interval: int | None = None
    dsp: int | None = None
    bram: int | None = None
    fifo: int | None = None
    reads: int = 0


@dataclass(frozen=True, repr=False)
class Checked:
    """What became of an answer; shows as its sentence.

    Parameters
    ----------
    passed : bool
        Whether the testbench passes and the target is reached.
    sentence : str
        That in words, with what is missing; behind it, a line each, what ``hls lint`` says.
    schedule : Estimate or None
        ``None`` where the C++ does not compile.
    printed : str
        What the testbench has printed, where it passed.
    """

    passed: bool
    sentence: str
    schedule: Estimate | None = None
    printed: str = ""

    def __repr__(self) -> str:
        return self.sentence


def check(
    answer: str,
    top: str,
    target: Target,
    bench: str | Path,
    *,
    timeout_s: float = 10.0,
    **options: Any,
) -> Checked:
    """Check an answer: it compiles, its pragmas count, its testbench passes, its goal is reached.

    Parameters
    ----------
    answer : str
        C++, or the name of a ``%%hls`` cell that has been run; up to a line ``// testbench``.
    top : str
        The function.
    target : Target
        The goal.
    bench : str or path
        C++ with ``main``, in which the answer's functions are declared, or a file of it; it returns
        0 if the result is right. ``std::rand()`` is other data for each answer: no table passes.
    timeout_s : float
        Limit for the run of the testbench, in seconds.
    options
        Those of `estimated`; ``tool`` is ``"vitis"`` where it is not given.

    Returns
    -------
    Checked
        Not an error, so that a notebook goes on; ``assert check(...).passed`` makes one.
    """
    if said := _no_answer(answer, bench):
        return Checked(False, f"{top}: NOT YET. {said}")
    code = split(CELLS.get(answer, answer))[0]
    with tempfile.TemporaryDirectory(prefix="pynq_torch_lab_") as name:
        options |= _directives(Path(name), options.pop("directive", ""))
        return _checked(Path(name), code, top, target, bench, timeout_s, options)


def _no_answer(answer: object, bench: object) -> str:
    """Return which of the two is no C++; ``""`` for neither."""
    for what, given, kinds in (("It", answer, str), ("The testbench", bench, (str, Path))):
        if not isinstance(given, kinds):
            return f"{what} is {given!r}; expected C++ in a string."
    if str(answer).isidentifier() and answer not in CELLS:
        return f"There is no cell %%hls {answer}; run it first."
    return ""


def _checked(
    folder: Path,
    code: str,
    top: str,
    target: Target,
    bench: str | Path,
    timeout_s: float,
    options: dict[str, Any],
) -> Checked:
    """Check an answer in a folder for its files."""
    options = {"tool": "vitis", "include_dirs": (), **options}
    found, printed, hints = None, "", []
    try:
        kernel, end = written(folder, top, code, bench, options["include_dirs"])
        found = estimate(kernel.source, top, **options)
        output = _output(kernel, timeout_s, options["tool"])
        printed, missing = output.replace(end, "").strip(), [*findings(found, top, code)]
        missing += overwritten(kernel, target.reads, options["tool"])
        missing += _missing(found, target, plain(code))
        missing += _too_deep(code, target, options["include_dirs"])
        if end not in output:
            missing.insert(0, "The testbench did not come to its end: what calls exit?")
        missing += [f"{one[:1].upper()}{one[1:]}." for one in _LEFT_OVER.findall(output)]
        lines = lint(kernel.source, top, include_dirs=options["include_dirs"], schedule=False)
        hints = [f"lint: {line}" for line in lines if line.rule in _HINTS]
        hints += promises(top, code, {line.line for line in lines if line.rule == "dependence"})
    except (PynqTorchError, OSError) as error:
        missing = [why(error, timeout_s)]
        if found is not None:
            missing += findings(found, top, code, no_return="without returning" in missing[0])
    sentence = f"{top}: NOT YET. {' '.join(missing)}"
    if found is not None and not missing:
        sentence = f"{top}: the testbench passes, {_reached(found, target)}: PASS"
    text = "\n".join([sentence, *hints])
    text = text.replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")
    return Checked(found is not None and not missing, text, found, printed)


def estimated(answer: str, top: str, *, directive: str = "", **options: Any) -> Estimate:
    """Return the estimate of C++ in a string; `options` are those of `pynq_torch.hls.estimate`.

    `directive` is a line of Tcl that counts besides the pragmas, as in a file of directives.

    Raises
    ------
    KernelError
        It does not compile, or holds what HLS forbids.
    """
    with tempfile.TemporaryDirectory(prefix="pynq_torch_lab_") as name:
        source = Path(name) / f"{top}.cpp"
        source.write_text(split(answer)[0], encoding="utf-8")
        return estimate(source, top, **_directives(Path(name), directive), **options)


def _directives(folder: Path, line: str) -> dict[str, Any]:
    """Return the option of an estimate that a line of Tcl makes."""
    file = write_directives(folder, filter(None, [line]))
    return {"directives": file} if file is not None else {}


def with_pragmas(source: str, pragmas: Mapping[str, str | Sequence[str]]) -> str:
    r"""Return a source with pragmas at the beginning of loops and functions.

    Parameters
    ----------
    source : str
        C++.
    pragmas : mapping of str to str or sequence of str
        Label of a loop, or name of a function -> what is behind ``#pragma HLS``.

    Raises
    ------
    ValueError
        Nothing in the source has such a label or name, with a body in braces.

    Examples
    --------
    >>> print(with_pragmas("void f() {\n}", {"f": "INLINE"}))
    void f() {
    #pragma HLS INLINE
    }
    """
    for name, texts in pragmas.items():
        place = re.search(
            rf"\b{re.escape(name)}\s*(:[^{{;]*(;[^{{;]*;)?[^{{;]*|\([^;{{]*)\{{", source
        )
        if place is None:
            raise ValueError(f"no loop or function {name!r} with a body in braces is in the source")
        lines = [texts] if isinstance(texts, str) else texts
        added = "".join(f"\n#pragma HLS {line}" for line in lines)
        source = source[: place.end()] + added + source[place.end() :]
    return source


def _output(kernel: KernelSource, timeout_s: float, tool: str) -> str:
    """Return what the testbench prints; local variables do not begin with zeros in it."""
    filled = [_FILLED] if toolchain.has_option(_FILLED) else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterfaceWarning)  # among those of the estimate
        run = functools.partial(run_testbench, timeout_s=timeout_s, sanitize=True, tool=tool)
        try:
            return run(kernel, cflags=filled).output
        except VerificationError:
            run(kernel)
        folder = kernel.source.parent / "pynq_torch_ap"
        if write_zeroing_headers(folder):  # `ap_int<8> x[4] = {}` is a value
            zeroing = replace(kernel, include_dirs=(folder, *kernel.include_dirs))
            with contextlib.suppress(VerificationError):
                return run(zeroing, cflags=filled).output
    raise UnsetError(
        "A local variable is read before anything is written to it: the testbench passes only "
        "where memory begins with zeros",
        kernel.name,
    )


def _too_deep(code: str, target: Target, include_dirs: Sequence[Path]) -> Iterator[str]:
    """Yield a sentence for each FIFO with more places than the target allows."""
    if target.fifo is not None:
        for name, places in fifos(code, include_dirs).items():
            if places > target.fifo:
                yield f"The FIFO {name} has {places} places, the target at most {target.fifo}."


def _missing(found: Estimate, target: Target, code: str) -> Iterator[str]:
    """Yield a sentence for each number of the estimate that is not as it should be."""
    for label, most in target.ii.items():
        yield from _ii_missing(found, label, most, code)
    for name, value, limit in _numbers(found, target):
        if value is None:
            yield f"The {name} is not known; give loops constant bounds or LOOP_TRIPCOUNT."
        elif value > limit:
            reason = _slow(found) if "cycles" in name else ""
            yield f"The {name} is {value:,} (estimate), the target at most {limit:,}.{reason}"


def _slow(found: Estimate) -> str:
    """Return where most of the cycles go, and why."""
    loops = [one for one in found.loops if one.latency[1]]
    if not loops:
        return ""
    longest = max(loops, key=lambda one: (one.latency[1] or 0, one.depth))
    text = f" Most are in {longest.name}, {longest.latency[1]:,} cycles"
    if longest.why:
        return f"{text}. {longest.why}."
    if not longest.ii:
        return f"{text}, which is not pipelined."
    others = [one for one in loops if one.latency[1] and one.name != longest.name]
    more = " and ".join(f"{one.name} {one.latency[1]:,}" for one in others)
    return f"{text} at II={longest.ii}{f'; {more}' if more else ''}."


def _ii_missing(found: Estimate, label: str, most: int, code: str) -> Iterator[str]:
    loop = _loop(found, label)
    if loop is None and (place := re.search(rf"\b{label}\s*:\s*(?:for|while|do)\b", code)):
        line = code.count("\n", 0, place.start()) + 1
        yield (
            f"The loop {label} ({found.top}.cpp:{line}) is not in the schedule: it does nothing, "
            "or it is unrolled completely, by an UNROLL without a factor or a PIPELINE around it. "
            "A pragma for a loop stands in it, behind its brace."
        )
    elif loop is None:
        names = ", ".join(one.name for one in found.loops) or "none"
        yield (
            f"There is no loop {label} in the schedule (there is: {names}): label it {label}, and "
            "do not unroll it completely."
        )
    elif loop.ii is None:
        yield f"The loop {label} is not pipelined; the target is II={most}."
    elif loop.ii > most:
        reason = loop.why or f"It asks for II={loop.asked}"
        yield f"{label} has II={loop.ii}, the target is {most}. {reason}."


def _loop(found: Estimate, label: str) -> LoopEstimate | None:
    """Return the loop with a label, also where it was flattened into another."""
    named = (one for one in found.loops if f"_{label}_" in f"_{one.name}_")
    return next(named, None)


def _numbers(found: Estimate, target: Target) -> Iterator[tuple[str, int | None, int]]:
    """Yield name, value and limit of each number that counts."""
    pairs = (
        ("latency in cycles", found.latency[1], target.latency),
        ("interval in cycles", found.interval[1], target.interval),
        ("number of DSP blocks", found.resources["DSP"], target.dsp),
        ("number of BRAM_18K", found.resources["BRAM_18K"], target.bram),
    )
    for name, value, limit in pairs:
        if limit is not None:
            yield name, value, limit


def _reached(found: Estimate, target: Target) -> str:
    loops = [(label, _loop(found, label)) for label in target.ii]
    parts = [f"{label} has II={loop.ii}" for label, loop in loops if loop is not None]
    latency = "?" if found.latency[1] is None else f"{found.latency[1]:,}"
    parts += [f"{latency} cycles", f"{found.resources['DSP']} DSP"]
    parts += [f"{found.resources['BRAM_18K']} BRAM_18K"]
    return f"{', '.join(parts)} (estimate)"


def cell(name: str) -> tuple[str, str]:
    """Return the kernel and the testbench of the latest ``%%hls`` cell of a name.

    Raises
    ------
    ValueError
        No such cell has been run.
    """
    if name not in CELLS:
        known = ", ".join(CELLS) or "none"
        raise ValueError(f"there is no cell %%hls {name}; those that have been run: {known}")
    return split(CELLS[name])
