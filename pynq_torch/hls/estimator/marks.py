"""What is written into a raw module for LLVM's passes: inlining, unrolling, places of loops."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

from .place import Key, Locations, Place, apart

__all__ = [
    "ALONE",
    "CALL",
    "DEFINED",
    "INLINED",
    "LOOP",
    "MARKER",
    "OPEN",
    "SHARED",
    "bodies_of",
    "functions_of",
    "kind_of",
    "marked",
    "with_loops_apart",
    "with_one_bus",
    "with_plain_names",
    "within",
]

#: What becomes of a function: it is inlined; is hardware of its own, once for all calls with the
#: same constants, or once for all calls; or its cost decides.
INLINED, ALONE, SHARED, OPEN = "#9001", "#9002", "#9007", "#9006"
#: A call of a function by its name, and where it is.
CALL = re.compile(r"^  .*\bcall [^@]*@(\"[^\"]+\"|[-\w.$]+)\((?:.*!dbg (!\d+))?")
_QUOTED = re.compile(r'@"([-\w.$]+)"')
_ALIAS = re.compile(r"(?m)^@(\"[^\"]+\"|[-\w.$]+) = .*\balias .*ptr @(\"[^\"]+\"|[-\w.$]+)")
#: The name of a function, where its code begins.
DEFINED = re.compile(r'(?m)^define [^@]*@("[^"]+"|[-\w.$]+)\(')
_DEFINE = re.compile(
    r'^define .*?@("[^"]+"|[-\w.$]+)\(.*?(#\d+)?( comdat.*?| align \d+)?(?: !dbg (!\d+))? \{$'
)
_LABEL = re.compile(r"^([-\w.$]+):")
#: A call of this stands in each loop, with the loop's place; LLVM may drop a loop's own metadata.
MARKER = "__hls_loop"
#: The first number of the locations that are added.
_ADDED = 5_000_000
#: The first number of the loops of constructors, and where each ends.
_CONSTRUCTORS = 6_000_000
_CONSTRUCTS = re.compile(
    r"(?m)^  br i1 %arrayctor\.done\S*, label %\S+, label %arrayctor\.loop\S*, !dbg (!\d+)$"
)
#: The branch that begins a loop again.
LOOP = re.compile(r"!llvm\.loop (!\d+)")
_NUMBER = r"(?:float|double)(?: noundef)?"
#: A function without a body from numbers to a number, as the C library's: it uses no memory.
_MATHS = re.compile(rf"^declare [^(@]*\b(?:float|double) @[^(]+\({_NUMBER}(?:, {_NUMBER})*\)")
#: An access of a stream: of memory it uses the stream's own, not what static variables hold.
_STREAM = re.compile(r"^declare [^(@]*@__hls_stream_\w+\(")


def kind_of(
    inlined: Callable[[Place], bool],
    shared: Callable[[Place, Collection[str]], bool],
    sizes: Mapping[str, Collection[str]],
    name: str,
    at: Place,
) -> str:
    """Return what becomes of a function; `sizes` are the arguments that get several of them."""
    return INLINED if inlined(at) else SHARED if shared(at, sizes.get(name, ())) else ALONE


def marked(
    text: str,
    kind: Callable[[str, Place], str],
    unrolled: Callable[[Place], int],
    factors: dict[Place, int],
    *,
    bare: bool = False,
) -> str:
    """Put inlining and unrolling into a raw module's text; note each loop's factor.

    `kind` says by its name and place what becomes of a function: INLINED and so on. In a `bare`
    module nothing marks where loops begin.
    """
    places = Locations(text)
    lines = _with_attributes(text, places, kind).split("\n")
    extra: dict[str, int] = {}
    labels: dict[str, int] = {}
    is_shared = False
    for number, line in enumerate(lines):
        if line.startswith("define "):
            labels = {}
            is_shared = f" {SHARED} " in line
        elif "!llvm.loop" in line and (found := LOOP.search(line)):
            start = places.of_loop(found[1])
            if start is not None:
                extra[found[1]] = factors[start] = unrolled(start)
                header = _header(line, labels)
                if header is not None and not bare:
                    mark = f"\n  call void @{MARKER}(), !dbg {places.start_of(found[1])}"
                    at = labels[header]
                    while " = phi " in lines[at + 1].partition("\n")[0]:
                        at += 1
                    lines[at] += mark
        elif (label := _LABEL.match(line)) is not None:
            if is_shared and not labels and not bare:  # LLVM then makes no copies for constants
                lines[number] += f"\n  call void @{MARKER}() noduplicate"
            labels[label[1]] = number
    return "\n".join([_marked_line(line, extra) for line in lines] + _declarations(extra.values()))


def with_plain_names(text: str) -> str:
    """Return a raw module that calls functions by one name each, without quotes.

    Constructors have two names; that of a lambda has a ``$`` in it, and LLVM quotes it.
    """
    text = _QUOTED.sub(lambda name: "@" + name[1].replace("$", "."), text)
    for other, name in _ALIAS.findall(text):
        text = text.replace(f"@{other}(", f"@{name}(")
    return text


def with_one_bus(text: str, entry: str, names: Collection[str]) -> str:
    """Return a raw module in which arguments may be one array: words behind one m_axi port.

    The tools read them in each iteration that writes one of them, also where they stay the same: a
    3x3 filter whose nine weights are there has II=18 (two of two reports of Vivado HLS, one of
    Vitis HLS). ``nonnull`` keeps :func:`marked` from taking them for memories of their own.
    """

    def begun(line: re.Match[str]) -> str:
        if DEFINED.match(line[0])[1] != entry:  # type: ignore[index]  # it begins like that
            return line[0]
        return re.sub(
            r"\bptr (?=[^,()]*%([-\w.$]+))",
            lambda one: "ptr nonnull " if one[1] in names else one[0],
            line[0],
        )

    return re.sub(r"(?m)^define .*$", begun, text) if names else text


def with_loops_apart(text: str) -> str:
    """Return a raw module in which each loop has a place of its own, also those of one macro."""
    text = _with_loops_of_constructors(_with_one_way_back(text))
    places, seen = Locations(text), Counter[Key]()
    changed: dict[str, tuple[str, str]] = {}
    added: list[str] = []
    for node in _from_outside(text.split("\n")):
        start = places.start_of(node)
        place = places.of(start)
        if place is None or (moved := apart(place, seen)) == place:
            continue
        changed[node] = start, f"!{_ADDED + len(added)}"
        added.append(f"{changed[node][1]} = {places.moved(start, moved)}")

    def own(line: re.Match[str]) -> str:
        start, new = changed.get(line[1], ("", ""))
        return re.sub(rf"{start}\b", new, line[0], count=1) if start else line[0]

    if not changed:
        return text
    return "\n".join([re.sub(r"(?m)^(!\d+) = distinct !\{.*$", own, text), *added, ""])


def _with_one_way_back(text: str) -> str:
    """Return a raw module in which each loop begins again from one block.

    A `while` with a `continue` has several such branches, of which LLVM makes nested loops.
    """
    lines, headers = text.split("\n"), dict[str, str]()
    ways: dict[str, list[int]] = {}
    for number, node, header, _ in _ways_back(lines):
        if header:
            ways.setdefault(node, []).append(number)
            headers[node] = header
    for node, numbers in ways.items():
        header, last = headers[node], lines[numbers[-1]]
        if len(numbers) > 1:
            for number in numbers:
                way = re.sub(rf"%{re.escape(header)}(?![-\w.$])", f"%{header}.again", lines[number])
                lines[number] = way.replace(f", !llvm.loop {node}", "")
            end = last[last.index(", !dbg") :] if ", !dbg" in last else f", !llvm.loop {node}"
            lines[numbers[-1]] += f"\n\n{header}.again:\n  br label %{header}{end}"
    return "\n".join(lines)


def _with_loops_of_constructors(text: str) -> str:
    """Return a raw module in which a loop that constructs an array's elements is one like others.

    It is where the array is declared. Reports have it as `Loop 1`, of arrays of complex numbers.
    """
    added: list[str] = []

    def marked_end(line: re.Match[str]) -> str:
        node = f"!{_CONSTRUCTORS + len(added)}"
        added.append(f"{node} = distinct !{{{node}, {line[1]}, {line[1]}}}\n")
        return f"{line[0]}, !llvm.loop {node}"

    return _CONSTRUCTS.sub(marked_end, text) + "".join(added)


def _from_outside(lines: Sequence[str]) -> Iterator[str]:
    """Yield the nodes of the loops of each function, in the order in which they begin."""
    begins: dict[str, int] = {}
    for _, node, _, begin in _ways_back(lines):
        begins.setdefault(node, begin)
    yield from sorted(begins, key=begins.__getitem__)


def _ways_back(lines: Sequence[str]) -> Iterator[tuple[int, str, str | None, int]]:
    """Yield the line of each branch that begins a loop again, its node, and where that begins.

    By the label, None where it has none, and by the line.
    """
    labels: dict[str, int] = {}
    for number, line in enumerate(lines):
        if line.startswith("define "):
            labels = {}
        elif found := LOOP.search(line):
            header = _header(line, labels)
            yield number, found[1], header, labels.get(header or "", number)
        elif label := _LABEL.match(line):
            labels[label[1]] = number


def _header(line: str, labels: Container[str]) -> str | None:
    """Return where a branch back goes: it is above; `continue` jumps down."""
    targets = re.findall(r"label %([-\w.$]+)", line)
    return next((name for name in targets if name in labels), None)


def _with_attributes(text: str, places: Locations, kind: Callable[[str, Place], str]) -> str:
    """Give each function of a raw module the attributes that `kind` names by its name and place.

    Arrays that are handed over are memories of their own.
    """

    def changed(line: re.Match[str]) -> str:
        match = _DEFINE.match(line[0])
        if match is None or not match[2]:
            return line[0]
        where = places.of_function(match[4]) if match[4] else Place("", 0)
        made = re.sub(r"\bptr (?!noalias|nonnull)(?=[^,()]*%)", "ptr noalias ", line[0])
        return made.replace(match[2], kind(match[1].strip('"'), where), 1)

    return re.sub(r"(?m)^define .*$", changed, text)


def _marked_line(line: str, extra: Mapping[str, int]) -> str:
    node = line.split(" ", 1)[0]
    if node in extra and line.startswith("!"):
        return _with_unrolling(line, extra[node])
    known = "#9004" if _MATHS.match(line) else "#9008" if _STREAM.match(line) else ""
    return re.sub(r"\)[^)]*$", f") {known}", line) if known else line


def _declarations(unrolled: Iterable[int]) -> list[str]:
    """Return what the marks of a module refer to; `unrolled` are its loops' unrolling factors."""
    words = [(INLINED, "alwaysinline"), (ALONE, "noinline"), (OPEN, ""), ("#9004", "memory(none)")]
    words += [(SHARED, "noinline")]
    lines = [f"declare void @{MARKER}() #9003"]
    lines += ["attributes #9003 = { nounwind willreturn memory(inaccessiblemem: readwrite) }"]
    own = "memory(argmem: readwrite, inaccessiblemem: readwrite)"
    lines += [f"attributes #9008 = {{ nounwind {own} }}"]
    lines += [f"attributes {name} = {{ {word} nounwind willreturn }}" for name, word in words]
    lines += ['!90001 = !{!"llvm.loop.unroll.full"}', '!90002 = !{!"llvm.loop.unroll.disable"}']
    counts = sorted({count for count in unrolled if count > 1})
    return lines + [f'!{91000 + n} = !{{!"llvm.loop.unroll.count", i32 {n}}}' for n in counts]


def _with_unrolling(line: str, count: int) -> str:
    word = "!90001" if count == 0 else "!90002" if count == 1 else f"!{91000 + count}"
    return line.rstrip("}") + f", {word}}}"


def functions_of(
    text: str,
) -> Iterator[tuple[str, Place | None, Iterator[tuple[str, Place | None]]]]:
    """Yield each function of a raw module: its mangled name, where it is, what it calls and where.

    A call of an alias counts as one of what that stands for: constructors have aliases.
    """
    places = Locations(text)
    aliases: dict[str, str] = dict(_ALIAS.findall(text))
    for match, lines in bodies_of(text):
        place = places.of_function(match[4]) if match[4] else None
        yield match[1].strip('"'), place, _calls(lines, places, aliases)


def bodies_of(text: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Yield the first line of each function of a raw module, taken apart, and all its lines."""
    for chunk in re.split(r"(?m)^(?=define )", text)[1:]:
        lines = chunk.split("\n}\n", 1)[0].split("\n")
        if match := _DEFINE.match(lines[0]):
            yield match, lines


def _calls(
    lines: Iterable[str], places: Locations, aliases: Mapping[str, str]
) -> Iterator[tuple[str, Place | None]]:
    """Yield what the lines of a function call, and where; places are looked up when asked for."""
    for line in lines:
        if (call := CALL.match(line)) is not None:
            name = aliases.get(call[1]) or call[1]
            yield name.strip('"'), places.of(call[2]) if call[2] else None


def within(text: str) -> str:
    """Return what is between a text's first parenthesis and the one that closes it."""
    level = 0
    for at, letter in enumerate(text):
        level += (letter == "(") - (letter == ")")
        if level == 0:
            return text[1:at]
    return text[1:]
