"""The testbench around an answer: its data, its end, and what an answer must not know of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pynq_torch.errors import KernelBuildError
from pynq_torch.hls import KernelSource
from pynq_torch.hls.snippet import declarations

from .hls_answer import plain

__all__ = ["AGAIN", "BenchError", "RefusedError", "UnsetError", "written"]

#: What tells a testbench from the hardware: conditions, what compilers call themselves, and how a
#: name is put together so that it is not seen.
_FORKED = re.compile(
    r"(?m)^[ \t]*#[ \t]*(?:el)?if\w*|\b__(?:SYNTHESIS|VITIS|clang|GNU|has_|BASE_FILE|OPTIMIZE)\w*"
    r"|^[ \t]*#[ \t]*define\b.*#.*"
)
#: Words of C++ that no macro may give another meaning to: the testbench is written in them.
_WORDS = re.compile(
    "assert|auto|bool|break|case|char|class|const|constexpr|continue|default|do|double|else|enum"
    "|extern|false|float|for|if|int|long|main|namespace|new|operator|pynq_torch_.*|return|short"
    "|signed|sizeof|static|static_assert|std|struct|switch|template|this|true|typedef|typename"
    "|union|unsigned|using|void|while"
)
_MACRO = re.compile(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)")
#: What decides whether two results are equal, and which number one of them is.
_JUDGES = re.compile(r"\boperator\s*(?:[=!]=|[A-Za-z_][\w:<>, ]*[*&\s]*\(\s*\))")
#: A line of a page from which an answer was copied.
_PASTED = re.compile(r"(?m)^[ \t]*(```|~~~[ \t]*\w*[ \t]*$|%%\w+)")
_MAIN = re.compile(r"\bint\s+main\s*\(|\bauto\s+main\s*\(.*\)\s*->\s*int\b")
#: Around a testbench: its data, by std::rand(), are others for each answer, from a generator that
#: no answer can replace; it runs twice, as a kernel starts again with what it left behind; and it
#: says that it came to its end, by a word that no answer can know. The sequence is glibc's.
_AROUND = """\
{declared}
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
static int pynq_torch_rand() {{
    static unsigned ring[34];
    static int at = 0, filled = 0;
    if (!filled) {{
        ring[0] = {seed}u;
        for (int i = 1; i < 31; ++i) ring[i] = unsigned(16807ull * ring[i - 1] % 2147483647ull);
        for (int i = 31; i < 34; ++i) ring[i] = ring[i - 31];
    }}
    unsigned next = 0;
    for (int left = filled ? 1 : 311; left > 0; --left, at = (at + 1) % 34)
        next = ring[at] = ring[(at + 3) % 34] + ring[(at + 31) % 34];
    filled = 1;
    return int(next >> 1);
}}
namespace std {{ using ::pynq_torch_rand; }}
#define rand pynq_torch_rand
#pragma GCC diagnostic error "-Wreturn-type"
#define main pynq_torch_bench
#line 1 "{name}"
{bench}
#undef main
static int pynq_torch_run(int (*bench)()) {{ return bench(); }}
static int pynq_torch_run(int (*bench)(int, char**)) {{ return bench(0, nullptr); }}
extern "C" const char* __asan_default_options() {{ return "detect_leaks=0"; }}
int main() {{
    if (const int code = pynq_torch_run(pynq_torch_bench)) return code;
    std::fflush(nullptr);
    const int shown = dup(1), hidden = std::freopen("/dev/null", "w", stdout) ? 1 : 0;
    const int code = pynq_torch_run(pynq_torch_bench);
    std::fflush(nullptr);
    if (hidden) dup2(shown, 1);
    std::puts(code ? "\\n{again}" : "\\n{end}");
    return code;
}}
"""
AGAIN = "A second run is wrong: does a static variable keep something of the first?"


class RefusedError(KernelBuildError):
    """An answer that may compile, and is none."""


class BenchError(KernelBuildError):
    """A testbench that is none."""


class UnsetError(KernelBuildError):
    """An answer that is right only where memory begins with zeros."""


def _refused(code: str, bench: str) -> Iterator[tuple[int, str]]:
    """Yield where and why C++ that may compile is no answer."""
    if pasted := _PASTED.search(code):
        yield (
            pasted.start(1),
            f"{pasted[1].strip()} is of the page, not of C++; leave that line out",
        )
    if fork := _FORKED.search(code):
        yield (
            fork.start(),
            f"{fork[0].strip()} makes one program for the testbench and another one for the "
            "hardware; write what is right for both",
        )
    if judge := _JUDGES.search(code):
        yield (
            judge.start(),
            f"{judge[0]} would decide what the testbench finds equal; take a type of C++ or of HLS",
        )
    theirs = re.findall(r"\bstd\s*::\s*(\w+)", bench)
    for macro in _MACRO.finditer(code):
        if macro[1] in theirs or _WORDS.fullmatch(macro[1]):
            yield (
                macro.start(),
                f"#define {macro[1]} gives a word of C++ another meaning, in the testbench too; "
                "take another name",
            )


def written(
    folder: Path, top: str, code: str, bench: str | Path, include_dirs: Sequence[Path]
) -> tuple[KernelSource, str]:
    """Write an answer and its testbench into a folder; return what the latter prints at its end."""
    if re.search(r"\bint\s+main\s*\(", code):
        raise RefusedError("it has a main of its own; put that behind a line // testbench", top)
    for start, said in _refused(plain(code), str(bench)):
        line = code.count("\n", 0, start) + 1
        raise RefusedError(f"{top}.cpp:{line}: {said}", top)
    source = folder / f"{top}.cpp"
    source.write_text(code, encoding="utf-8")
    digest = hashlib.sha256(code.encode()).hexdigest()
    if isinstance(bench, Path):
        declared, text = "", bench.read_text(encoding="utf-8")
        include_dirs = [*include_dirs, bench.parent]
    else:
        declared, text = declarations(source), bench
    if not _MAIN.search(plain(text)):
        raise BenchError(
            "The testbench needs `int main()`, which returns 0 for a right result", top
        )
    name = f"{top}_tb.cpp"
    whole = _AROUND.format(
        declared=declared, name=name, bench=text, end=digest, again=AGAIN,
        seed=int(digest[:8], 16) % 2147483646 + 1,
    )  # fmt: skip
    (folder / name).write_text(whole, encoding="utf-8")
    return KernelSource(top, source, include_dirs=tuple(include_dirs)), digest
