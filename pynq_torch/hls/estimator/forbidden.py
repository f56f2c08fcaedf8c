"""What HLS forbids: memory from the heap, recursion, calls through pointers, missing bodies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pynq_torch.errors import KernelBuildError, needs

from ..cursors import is_pointer
from .marks import DEFINED
from .operators import knows_call
from .passes import opt
from .place import Locations, Place, header_folders, plain_name
from .plan import Plan

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, LinkageKind

__all__ = ["BODY", "NO_SIZE", "calls_of", "check", "check_optimised", "check_top", "refuse"]

#: Calls of the operating system (UG1399, "System Calls"); what only prints costs nothing.
_SYSTEM_CALL = re.compile(
    r"^(?:time|clock|gettimeofday|u?sleep|nanosleep|s?rand|getenv|system|getc|getchar|gets|fgets|"
    r"fgetc|scanf|fscanf|__isoc\d+_f?scanf|fopen|fclose|fread|fwrite|pthread_\w+)$"
)
#: What asks it in the C++ library, by the beginnings of LLVM's names.
_OF_CPP = {
    "a file stream": re.compile(r"^_ZNK?St(?:1[34]basic_[io]?fstream|13basic_filebuf)I"),
    "std::cin": re.compile(r"^_ZNSi|^_ZStrsI|^_ZSt7getline"),
    "a clock": re.compile(r"^_ZNSt6chrono\S*3nowE"),
    "a thread": re.compile(r"^_ZNSt(?:6thread|11this_thread|18condition_variable)"),
    "std::random_device": re.compile(r"^_ZNSt13random_device"),
}
_HEAP = re.compile(r"^(?:malloc|calloc|realloc|free|_Zn[wa][mj].*|_Zd[la]Pv.*)$")
_CALL = re.compile(r"call [^@]*@(\"[^\"]+\"|[-\w.$]+)\(.*?(?:!dbg (!\d+))?$")
_INDIRECT = re.compile(r" call (?:[^@%(\"]*\([^)]*\) |[^@%(\"]*)%[^ ]+\(")
_NODE = re.compile(r"!dbg (!\d+)")
_LABEL = re.compile(r'("[^"]+"|[-\w.$]+):')
_TARGET = re.compile(r'label %("[^"]+"|[-\w.$]+)')
_CONSTANT = re.compile(r"  br i1 (true|false),")
#: Instead of a callee's name: the function is known at run time only; assembly.
_POINTER, _ASSEMBLY = "", "asm"
_REFUSED = {
    _POINTER: "a function pointer or a virtual function cannot be synthesised; call the function "
    "by its name, or make it a template's parameter",
    _ASSEMBLY: "assembly cannot be synthesised; write C++",
}
NO_SIZE = (
    "an array whose size is known at run time only cannot be synthesised; declare it with its "
    "largest size"
)
_NO_ARRAY = "it points into no array that is known; hand over the array, and an index into it"
_FIXED = f"a pointer to a fixed address, or to none (nullptr), cannot be synthesised: {_NO_ARRAY}"
#: What reads or writes at an address that is a number, or steps from one.
_AT_A_NUMBER = re.compile(
    r" (?:load|store|getelementptr) .*?, ptr (?:null|(?:getelementptr [^%@]*?)?inttoptr \()"
    r".*!dbg (!\d+)|"
    r" call [^@]*@(?:llvm\.)?mem(?:set|cpy|move)\b[^(]*\((?:.*, )?"
    r"ptr (?:\w+(?:\(\d+\))? )*(?:null,|inttoptr \().*!dbg (!\d+)"
)
#: What is refused where LLVM's passes leave it: what ``alloca`` makes, but for plain variables,
#: which have no number of elements there; and pointers that something is done with.
_LEFT = {
    re.compile(r" = alloca [^,]+, i\d+ %.*!dbg (!\d+)"): NO_SIZE,
    re.compile(r" = inttoptr i\d+ %.*!dbg (!\d+)"): f"a pointer made of a number cannot be "
    f"synthesised: {_NO_ARRAY}",
    _AT_A_NUMBER: _FIXED,
}
_OPT_S = 10


def check_top(function: Cursor, top: str) -> None:
    """Refuse a top function that has no name outside of its file, or pointers behind its pointers.

    Raises
    ------
    KernelBuildError
        With file and line, and what to write.
    """
    at = f"{function.location.file}:{function.location.line}"
    if function.linkage not in (LinkageKind.EXTERNAL, LinkageKind.UNIQUE_EXTERNAL):
        raise KernelBuildError(
            f"{at}: {top!r} is static or in a namespace without a name, so no tool can take it as "
            "the top; write it without",
            top,
        )
    for parameter in function.get_arguments():
        kind = parameter.type.get_canonical()
        inner = kind.get_pointee() if kind.get_pointee().get_size() > 0 else kind
        while inner.get_array_size() > 0:
            inner = inner.get_array_element_type()
        found = "what it points to" if kind is not inner and is_pointer(inner) else ""
        place = inner.get_declaration().location.file
        if place is not None and not place.name.startswith((*header_folders(), _SYSTEM)):
            fields = inner.get_fields()
            found = next(
                (f"{f.spelling!r}" for f in fields if is_pointer(f.type.get_canonical())), found
            )
        if found:
            raise KernelBuildError(
                f"{parameter.location.file}:{parameter.location.line}: of argument "
                f"{parameter.spelling!r}, {found} is a pointer again, which HLS cannot resolve; "
                "hand over an array, and indices into it",
                top,
            )


#: A function of a module.
BODY = re.compile(r"(?ms)^define .*?^}$")


def check(text: str, plan: Plan, top: str, folder: Path, *, bodies: bool = False) -> None:
    """Refuse a module that HLS would refuse, as far as the top function reaches.

    Parameters
    ----------
    text : str
        The raw module.
    plan, folder : Plan, pathlib.Path
        What takes a warning for each function without a body; for files of LLVM's.
    top : str
        The top function, for messages.
    bodies : bool
        Refuse functions without a body.

    Raises
    ------
    KernelBuildError
        With file and line, what HLS forbids and what to write.
    """
    places = Locations(text)
    calls = calls_of(text)
    path, entered = {plan.entry: [plan.entry]}, {plan.entry: plan.top.place}
    # In the order of the source: of a class in the C++ library its constructor comes first.
    waiting = [(plan.entry, *call) for call in reversed(calls[plan.entry])]
    while waiting:
        name, callee, node = waiting.pop()
        where = places.of(node) if node else None
        library = where is not None and where.file.startswith(_SYSTEM)
        if where is None or library:
            where = entered[name]
        if reason := _reason(callee, path[name], callee in calls):
            inside = "in the C++ library, which this line calls: " if library else ""
            raise KernelBuildError(f"{where.file}:{where.line}: {inside}{reason}", top)
        if callee in calls and callee not in path:
            entered[callee] = where
            path[callee] = [*path[name], callee]
            waiting += [(callee, *call) for call in reversed(calls[callee])]
        elif callee not in calls and not knows_call(callee) and "llvm" not in callee:
            _note(plan, callee, where, bodies)
    _check_addresses(text, plan, folder)


def check_optimised(text: str, top: str) -> None:
    """Refuse arrays whose size is still a variable after LLVM's passes, and pointers from numbers.

    Raises
    ------
    KernelBuildError
        With file and line.
    """
    for pattern, reason in _LEFT.items():
        refuse(pattern, text, reason, top)


def _check_addresses(text: str, plan: Plan, folder: Path) -> None:
    """Refuse what a raw module reads or writes at null: LLVM's passes take most of it out."""
    if not re.search(r"(?m)^ .*(?:(?: store|, ) ?ptr null|inttoptr \()", text):
        return
    path = folder / "addresses.ll"
    path.write_text(text, encoding="utf-8")
    passes = "-passes=internalize,globaldce,function(sroa,instsimplify)"
    words = [passes, f"-internalize-public-api-list={plan.entry}", "-S", "-o", "-", str(path)]
    made = opt(words, _OPT_S)[0]
    places = [line for line in made.split("\n") if line.startswith("!")]
    code = (line for one in BODY.findall(made) for line in _reached(one))
    refuse(_AT_A_NUMBER, "\n".join([*code, *places]), _FIXED, plan.top.name)


def refuse(pattern: re.Pattern[str], text: str, reason: str, top: str) -> None:
    """Refuse the first match of a pattern whose last group is a debug location."""
    match = pattern.search(text)
    where = Locations(text).of(match[match.lastindex or 1]) if match else None
    if where is not None:
        raise KernelBuildError(f"{where.file}:{where.line}: {reason}", top)


def _reason(callee: str, path: Sequence[str], has_body: bool) -> str:
    """Return why HLS refuses a call from the end of `path`; empty where it does not."""
    if callee in _REFUSED:
        return _REFUSED[callee]
    if _HEAP.match(callee):
        return "hardware has no heap (malloc, new); declare an array of fixed size"
    if not has_body and (asks := _asks_the_system(callee)):
        return (
            f"{asks} asks the operating system, which hardware has not; hand its result over as "
            "an argument, or keep the call under #ifndef __SYNTHESIS__"
        )
    if callee in path:
        return (
            "recursion cannot be synthesised; write a loop, with an array as its stack where it "
            "needs one"
        )
    return ""


def _asks_the_system(callee: str) -> str:
    """Return what a function without a body asks the operating system by; ``""`` if it does not."""
    if _SYSTEM_CALL.match(callee):
        return callee
    return next((what for what, pattern in _OF_CPP.items() if pattern.match(callee)), "")


#: Headers of the C++ library: what is wrong there is said of the line that came to call it.
_SYSTEM = "/usr/"


def _note(plan: Plan, callee: str, where: Place, refuse: bool) -> None:
    at = f"{where.file}:{where.line}"
    if callee.startswith(("_ZNSo", "_ZSt", "printf", "puts", "__cxa", "_ZNS", "__assert")):
        return
    name = plain_name(callee)
    if refuse:
        raise KernelBuildError(
            f"{at}: {name} has no body here, so its cycles are not known; estimate it with the "
            "file that has it as a further source",
            plan.top.name,
        )
    plan.warn(f"{at}: {name} has no body here and is taken to cost nothing")


def calls_of(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return which functions each function calls, with the call's debug location.

    What a condition that is a constant leaves out does not count: clang keeps it where it holds a
    label, and a template may call itself there.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for chunk in re.split(r"(?m)^(?=define )", text)[1:]:
        body = chunk.split("\n}\n", 1)[0]
        if match := DEFINED.match(body):
            found.setdefault(match[1].strip('"'), []).extend(_of_body(body))
    return found


def _of_body(body: str) -> Iterator[tuple[str, str]]:
    for line in _reached(body):
        if " call " not in line:
            continue
        if match := _CALL.search(line):
            yield match[1].strip('"'), match[2] or ""
        elif _INDIRECT.search(line) or " asm " in line:
            found_at = _NODE.search(line)
            yield _ASSEMBLY if " asm " in line else _POINTER, found_at[1] if found_at else ""


def _reached(body: str) -> Iterator[str]:
    """Yield, in order, the lines of the blocks that are reached from a function's first one."""
    blocks: dict[str, list[str]] = {}
    name = ""  # the first block may have no label
    for line in body.split("\n")[1:]:
        if label := _LABEL.match(line):
            name = label[1].strip('"')
        blocks.setdefault(name, []).append(line)
    waiting = [*blocks][:1]
    seen = {*waiting}
    while waiting:
        for line in blocks.get(waiting.pop(), ()):
            after = [target.strip('"') for target in _TARGET.findall(line)]
            if constant := _CONSTANT.match(line):
                after = after[:1] if constant[1] == "true" else after[1:2]
            waiting += [target for target in after if target not in seen]
            seen.update(after)
    for name, lines in blocks.items():
        yield from lines if name in seen else ()
