"""A kernel as LLVM IR: clang's, with the directives' unrolling and inlining done by LLVM's passes.

clang writes IR that nothing has optimised yet. Loops that the tool unrolls get LLVM's own metadata
there, functions that it inlines get ``alwaysinline``; then ``opt`` runs passes that keep what HLS
keeps: no loop is turned into a closed form, no memory becomes a register, nothing is vectorised.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from pynq_torch.errors import KernelBuildError

from .. import toolchain
from ..depends import gcc_files
from ..parse import PROBE, probe
from .casts import with_casts
from .chosen import with_own_loads
from .complaints import first_error
from .counters import with_counters
from .elsewhere import with_stand_ins
from .evaluated import with_evaluated_calls, with_evaluated_maths
from .factored import ADDS_UP, added_up
from .handed import of_several_sizes, with_handed_over
from .marks import kind_of, marked, with_loops_apart, with_plain_names
from .members import Members, has_members, with_members
from .passes import OPT, TooLongError, naming, opt
from .place import Place
from .printed import without_streams_of_text
from .products import with_plain_products
from .returned import with_own_results
from .slices import address_slice
from .tables import has_arrays, with_tables
from .trees import without_large_trees
from .whole import with_copied_elements, with_names, with_whole_words

__all__ = [
    "HEADERS",
    "INSTANCE",
    "OPTIONS",
    "RAW",
    "SYNTHESIS",
    "TIDY",
    "UNROLL",
    "command_of",
    "compiling",
    "included",
    "instance_in",
    "linked",
    "optimise",
    "release",
    "run_passes",
    "tools",
]

CLANG, LINK = "clang-16", "llvm-link-16"
#: What the tools define for synthesis; the last keeps glibc's `error_t` away, which theirs lack.
SYNTHESIS = ("__SYNTHESIS__", "__VITIS_HLS__", "__error_t_defined")
_LIMITED = ("/bin/sh", "-c", 'ulimit -t 60; ulimit -v 8000000; exec "$@"', "sh")
_TIMEOUT_S = 60
HEADERS = toolchain.LIGHT_HEADERS
#: The file that asks for a template's instance, where that is the top.
INSTANCE = "instance.cpp"
#: What the tools' own headers include too, and sources therefore use without saying so.
_MORE_HEADERS = (
    "sstream", "iostream", "cassert", "cstdio", "cstdlib", "cstring", "math.h", "climits", "queue",
    "complex")  # fmt: skip
_OF_C = ("assert.h", "math.h", "stdbool.h", "stdint.h", "stdio.h", "stdlib.h", "string.h")
#: What the clang of Vivado HLS warns of, or of Vitis HLS, and that of today takes for an error.
_WARNINGS = (
    "implicit-int", "implicit-function-declaration", "int-conversion", "return-type", "register",
    "incompatible-function-pointer-types", "c++11-narrowing", "dynamic-exception-spec",
    "reserved-user-defined-literal", "enum-constexpr-conversion",
)  # fmt: skip
#: Code with every function that is called, before any pass. Where variables end, `break` would
#: be a way out of all loops.
RAW = ("-O1", "-w", "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes",
       "-Xclang", "-disable-lifetime-markers")  # fmt: skip
_FLAGS = (
    *RAW, "-gline-tables-only", "-gcolumn-info", "-fdebug-info-for-profiling",
    "-fno-discard-value-names", "-ffp-contract=off", "-fno-exceptions", "-fno-rtti",
    "-Xclang", "-ffloat16-excess-precision=none", "-fno-builtin", "-fno-threadsafe-statics",
    "-fno-strict-return", "-funroll-loops", "-ferror-limit=1", "-Xclang",
    "-fexperimental-max-bitint-width=65536", *(f"-Wno-error={name}" for name in _WARNINGS),
)  # fmt: skip
TIDY = "sroa,early-cse<memssa>,simplifycfg<no-sink-common-insts>,instcombine"
#: Loop-invariant code leaves loops, as in HLS; a memory location is never kept in a register.
_LEAVE = "licm<allowspeculation>"
UNROLL = "loop-unroll<O1;no-runtime;no-profile-peeling;full-unroll-max=1000000>," + TIDY
_ROTATED = "loop-simplify,lcssa,loop-mssa(loop-rotate{before}),indvars," + UNROLL
_FIRST = "always-inline,globaldce,function(" + TIDY + "),"
#: What calls in an unrolled loop are handed is known after this.
_IN_TURN = "function(" + _ROTATED + "),"
_PASSES = (
    "internalize,ipsccp<func-spec>,forceattrs,function("
    "lower-constant-intrinsics," + TIDY + "," + _ROTATED + ","
    "{behind}early-cse<memssa>,dse,instcombine,"
    "simplifycfg<no-sink-common-insts>,adce,loop-simplify,lcssa),"
    "globaldce"
)
#: An array whose size is a variable: a constant before inlining, it is like any other behind it.
_OF_A_VARIABLE = re.compile(r" = alloca [^\n]+, i64 %")
#: What Vivado HLS moves out of a loop behind unrolling those in it.
_AGAIN = f"-passes=function(loop-mssa({_LEAVE}),loop-simplify,lcssa)"
#: A counter of a few bits wraps round: how often its loop runs is found by counting.
_COUNTING = "-scalar-evolution-max-iterations=66000"
OPTIONS = (
    _COUNTING, "-force-function-specialization",
    "-function-specialization-for-literal-constant", "-func-specialization-max-clones=64",
    "-func-specialization-size-threshold=0",
    "-pragma-unroll-threshold=400000", "-replexitval=never",
    "-unroll-max-iteration-count-to-analyze=100000", "-unroll-runtime=false",
    "-unroll-max-upperbound=1000",
    "-verify-loop-lcssa=false", "-alias-set-saturation-threshold=20000",
    "-licm-mssa-max-acc-promotion=20000", "-licm-mssa-optimization-cap=20000",
    "-memssa-check-limit=5000",
)  # fmt: skip
#: By whether an element that a loop reads and writes may become a register.
_KEPT = (("-disable-licm-promotion",), ())
#: Longer modules, or slow ones, are analysed for addresses and loop bounds only.
_LONG = 4000
#: The parts of a value that is printed, in a module and in what is left of a long one.
_TREE, _SMALL_TREE = 2000, 200
#: Of processor time, to unroll, and to analyse all values or addresses alone.
_UNROLL_S, _PATIENCE_S, _ADDRESSES_S = 10, 2, 60


def tools() -> str | None:
    """Return which program the estimate lacks, as one sentence; None where both are there."""
    for program, package in ((CLANG, "clang-16"), (OPT, "llvm-16")):
        if shutil.which(program) is None:
            said = f"hls estimate needs {program}, which is not on the PATH; install it with: "
            return f"{said}apt-get install {package}"
    return None


@contextlib.contextmanager
def compiling(
    sources: Sequence[Path],
    folder: Path,
    include_dirs: Sequence[Path],
    defines: Sequence[str],
    top: str,
) -> Iterator[list[str]]:
    """Compile each source into ``folder/N.ll``, side by side and beside the ``with`` block.

    The list has warnings, behind the block.

    Raises
    ------
    KernelBuildError
        clang or opt is not installed; or, behind the block, a source does not compile: the message
        is the compiler's first.
    """
    if missing := tools():
        raise KernelBuildError(missing, top)
    processes, notes = [], list[str]()
    with contextlib.ExitStack() as stack:
        for number, source in enumerate(sources):
            command = [*command_of(source, include_dirs, defines), *_FLAGS]
            main = source
            if number == 0 and (instance := probe(top)):
                main = folder / INSTANCE
                main.write_text(f'#include "{source}"\n{instance}\n', encoding="utf-8")
            command += ["-o", str(folder / f"{number}.ll"), str(main)]
            process = stack.enter_context(
                subprocess.Popen(
                    [*_LIMITED, *command], text=True, errors="replace",
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                )
            )  # fmt: skip
            stack.callback(process.kill)  # no effect on one that has ended
            processes.append((process, command))
        try:
            yield notes
        finally:
            notes += _finish(processes, top, folder / "headers")


def command_of(source: Path, include_dirs: Sequence[Path], defines: Sequence[str]) -> list[str]:
    """Return clang with the language, macros and folders with which a source is read."""
    language = ("c", "-std=gnu17", "-fcommon") if source.suffix == ".c" else ("c++", "-std=gnu++17")
    macros = [f"-D{name}" for name in (*SYNTHESIS, *defines)]
    options = ["-x", *language, *(f"-I{path}" for path in include_dirs), *macros]
    system = [HEADERS, *toolchain.include_dirs()]
    return [CLANG, *options, *(word for path in system for word in ("-isystem", str(path)))]


def included(source: Path, include_dirs: Sequence[Path], defines: Sequence[str]) -> list[str]:
    """Return a source and every file that it includes; the source alone where one is missing."""
    with tempfile.TemporaryDirectory(prefix="pynq_torch_includes_") as name:
        listing = Path(name, "files.d")
        words = ["-M", "-MF", str(listing), str(source)]
        _, status = _run([*command_of(source, include_dirs, defines), *words])
        return [str(source)] if status else gcc_files(listing)


def release() -> str:
    """Return which clang and opt there are: where, how large, and how old."""
    paths = [os.path.realpath(shutil.which(program) or program) for program in (CLANG, OPT)]
    return " ".join(f"{path}:{os.stat(path).st_mtime_ns}" for path in paths)


def _finish(
    processes: Sequence[tuple[subprocess.Popen[str], list[str]]], top: str, folder: Path
) -> list[str]:
    """Wait for compilers; return warnings of headers that were found elsewhere."""
    notes: list[str] = []
    for process, command in processes:
        try:
            _, said = process.communicate(timeout=_TIMEOUT_S)
            status = process.returncode
            if status:
                command, said, status, more = with_stand_ins(command, said, folder, _run)
                notes += more
            if status:
                said, status = _as_the_tools_do(command, said)
        except subprocess.TimeoutExpired as error:
            raise KernelBuildError(f"{CLANG} took more than {_TIMEOUT_S} s", top) from error
        if status:
            raise KernelBuildError(first_error(said) or "clang failed", top)
    return notes


def more_headers(command: Sequence[str]) -> list[str]:
    """Return options that include what the tools' headers do, for C or for C++."""
    headers = _OF_C if "-std=gnu17" in command else _MORE_HEADERS
    return [f"-include{name}" for name in headers]


def _as_the_tools_do(command: Sequence[str], said: str) -> tuple[str, int]:
    """Compile with what the tools' headers include beside their own, which takes longer.

    Or as C++14, which is theirs and has no `std::size` or `std::byte`.
    """
    older = [word.replace("gnu++17", "gnu++14") for word in command]
    return _run(older if "reference to '" in said else [*command, *more_headers(command)])


def _run(command: Sequence[str]) -> tuple[str, int]:
    try:
        done = subprocess.run(
            [*_LIMITED, *command], text=True, errors="replace", capture_output=True,
            check=False, timeout=_TIMEOUT_S)  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise KernelBuildError(f"{CLANG} took more than {_TIMEOUT_S} s") from error
    return done.stderr, done.returncode


def instance_in(text: str) -> str:
    """Return the mangled name of the template's instance that is the top; ``""`` for none."""
    found = re.search(rf"^@{PROBE} = .*ptr @([-\w.$]+)", text, re.MULTILINE)
    return found[1] if found else ""


def linked(folder: Path, count: int) -> str:
    """Return the raw module of all sources together, as the tools' compilers would have it."""
    paths = [str(folder / f"{number}.ll") for number in range(count)]
    text = Path(paths[0]).read_text(encoding="utf-8")
    if count > 1:
        command = [LINK, "-S", "--suppress-warnings", "-o", "-", *paths]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
        if done.returncode:
            raise KernelBuildError(f"the sources do not link: {done.stderr.strip()[-300:]}")
        text = done.stdout
    text = with_plain_products(with_plain_names(without_streams_of_text(text)))
    return with_loops_apart(with_own_results(with_handed_over(with_evaluated_maths(text))))


def optimise(
    text: str,
    entry: str,
    inlined: Callable[[Place], bool],
    unrolled: Callable[[Place], int],
    folder: Path,
    *,
    tool: str = "vitis", release: float = 0.0, promote: bool = False, early: bool = False,
    in_turn: bool = False, members: Members | None = None,
    shared: Callable[[Place, Collection[str]], bool] = lambda *_: False,
) -> tuple[str, str]:  # fmt: skip
    """Return a module after the passes, and what LLVM's analyses print of its loops.

    Parameters
    ----------
    text, entry, folder : str, str, pathlib.Path
        The raw module, its top function, and where to write what is made of it.
    inlined, unrolled : callable
        Whether the function at a place is inlined; by how much the loop at a place is unrolled: 1
        not at all, 0 completely.
    tool, release : {"vitis", "vivado"}, float
        Whose order of passes it is, and which release where that is known.
    promote, early : bool
        Whether an element that a loop reads and writes is in a register while it runs, as the tools
        have it where they do not flatten the nest; whether loops are unrolled that a `break` ends.
    in_turn, members : bool, mapping
        Whether a loop that is unrolled calls processes; members' names of structs taken apart.
    shared : callable
        Whether the function at a place, if it is not inlined, is one for all its calls, which hand
        arrays of several sizes to some of its arguments.
    """
    kind = functools.partial(kind_of, inlined, shared, of_several_sizes(text))
    factors: dict[Place, int] = {}
    whole = marked(with_counters(with_whole_words(with_tables(text))), kind, unrolled, factors)
    options = [*OPTIONS, f"-internalize-public-api-list={entry},{PROBE}", *_KEPT[promote]]
    passes = _passes(_FIRST + _IN_TURN * in_turn + _PASSES, tool, early)
    with naming(factors):
        _write(whole, path := folder / "marked.ll", members or {})
        made = _passed(path, [f"-passes={passes}", *options, str(path)], tool, release)
        return made, _analysed(made, path)


def _passed(path: Path, command: Sequence[str], tool: str, release: float) -> str:
    """Return what a release's passes make of the module at a path."""
    made = with_evaluated_calls(run_passes(command), functools.partial(_tidied, path))
    made = _with_elements(_left_again(made, path, tool), path)
    if tool == "vitis" and not 0 < release < ADDS_UP:
        made = added_up(made, path, _UNROLL_S)
    return with_names(with_casts(with_own_loads(made), release if tool == "vivado" else 0.0))


def _left_again(text: str, path: Path, tool: str) -> str:
    """Move out of loops what may leave them if arguments may be one array, as Vivado HLS does."""
    if tool != "vivado":
        return text
    path.write_text(text.replace(" noalias ", " "), encoding="utf-8")
    return run_passes([_AGAIN, *OPTIONS, *_KEPT[False], str(path)])


def _tidied(path: Path, text: str) -> str:
    """Return what the first passes make of a module."""
    path.write_text(text, encoding="utf-8")
    return run_passes([f"-passes=function({TIDY},loop-simplify,lcssa)", *OPTIONS, str(path)])


def _with_elements(text: str, path: Path) -> str:
    """Return a module whose copies of structs are loads and stores, none of what was stored."""
    if (whole := with_copied_elements(text)) == text:
        return text
    path.write_text(whole, encoding="utf-8")
    return run_passes(["-passes=function(sroa,gvn<no-pre;no-load-pre>)", str(path)])


def _write(whole: str, path: Path, members: Members) -> None:
    """Write a module to a file.

    Whether it only reads a table of HLS numbers, and members of structs alone, inlining shows.
    """
    path.write_text(whole, encoding="utf-8")
    if _OF_A_VARIABLE.search(whole):
        words = [f"-passes=function({TIDY})", "-S", "-o", "-", str(path)]
        path.write_text(whole := opt(words, _UNROLL_S)[0], encoding="utf-8")
    if has_arrays(whole) or has_members(whole, members):
        words = [f"-passes={_FIRST[:-1]}", "-S", "-o", "-", str(path)]
        whole = with_members(with_tables(opt(words, _UNROLL_S)[0]), members)
        path.write_text(whole, encoding="utf-8")


def _passes(passes: str, tool: str, early: bool) -> str:
    """Return passes in a tool's order; `early` unrolls loops that a `break` may end, too.

    Vivado HLS moves code out of loops before it unrolls, and behind that what no write to an
    argument might change, whichever array that is. So a pipeline that writes an argument reads
    again in each iteration what an inner loop read: the samples of a DCT or a DFT take ports. A
    pipeline that writes the function's own arrays reads it once, before, as in Vitis HLS.
    """
    vitis = tool == "vitis"
    before, behind = ("", f"loop-mssa({_LEAVE}),") if vitis else (f",{_LEAVE}", "")
    made = passes.format(before=before, behind=behind)
    return made.replace("<O1;", "<O1;upperbound;") if early else made


def run_passes(words: Sequence[str]) -> str:
    """Return what the passes make of a module, in the time that unrolling has."""
    return opt([*words, "-S", "-o", "-"], _UNROLL_S)[0]


@functools.lru_cache(maxsize=1)
def _analysed(text: str, path: Path) -> str:
    """Return what LLVM prints of loops and values; of addresses only where a module is long.

    Sums in registers and sums in memory are one module where a kernel has none.
    """
    analyses = ("-passes=function(print<loops>,print<scalar-evolution>)", _COUNTING)
    text = without_large_trees(text, _TREE)
    if text.count("\n") < _LONG:
        path.write_text(text, encoding="utf-8")
        with contextlib.suppress(TooLongError):
            return opt([*analyses, str(path), "-disable-output"], _PATIENCE_S)[1]
    path.write_text(without_large_trees(address_slice(text), _SMALL_TREE), encoding="utf-8")
    return opt([*analyses, str(path), "-disable-output"], _ADDRESSES_S)[1]
