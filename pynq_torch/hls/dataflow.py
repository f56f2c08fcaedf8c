"""Copies of sources in which the processes of a DATAFLOW region run side by side.

C++ runs them one after another. In a copy each process of a region is handed to the scheduler of
``include/pynq_torch_flow.h``, and each stream gets its depth. Of a loop that is unrolled each
iteration is a process. Only regions with streams change: one whose processes share arrays computes
the same in program order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pynq_torch.errors import needs

from . import depends, headers, toolchain
from .directive_files import directives_of
from .directives import files_beside
from .lint_dataflow import is_stream, touches, unrolled
from .lint_tree import LOOPS, Directive, Program, Scope, is_step, plain, root_of, walk
from .source import read_source

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind

__all__ = ["Copies"]

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b")
_QUOTED = re.compile(rb'^([ \t]*#[ \t]*include[ \t]*)"([^"\n]+)"', re.MULTILINE)
_ELEMENT = re.compile(r"\w+\s*((?:\[[^\[\]]+\]\s*)+)$")
_DATAFLOW = re.compile(rb"dataflow", re.IGNORECASE)
_STREAMS = re.compile(rb"\bstream(_of_blocks)?\s*<")
_QUIET = (CursorKind.DECL_STMT, CursorKind.NULL_STMT)
_BLOCKS = (*LOOPS, CursorKind.IF_STMT, CursorKind.COMPOUND_STMT, CursorKind.SWITCH_STMT)
_JUMPS = (CursorKind.RETURN_STMT, CursorKind.GOTO_STMT)
_EXITS = (CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT)
#: Text to insert and where in a file; at one place in this order.
Edits = list[tuple[int, str]]


@dataclass
class Copies:
    """The sources of one program, as they are compiled.

    Parameters
    ----------
    folder : pathlib.Path
        Of the build; takes the copies.
    include_dirs : sequence of pathlib.Path
        Those of the kernel.
    defines : sequence of str
        Macros, ``NAME`` or ``NAME=VALUE``.
    """

    folder: Path
    include_dirs: Sequence[Path]
    defines: Sequence[str]
    #: The files that have copies: the build depends on them too.
    files: list[str] = field(default_factory=list)

    def of(self, source: Path) -> Path:
        """Return the copy of a source, or the source where nothing in it changes."""
        included = _closure(source, [source.parent, *self.include_dirs])
        texts = [path.read_bytes() for path in (*included, *files_beside(source))]
        if not all(any(map(word.search, texts)) for word in (_DATAFLOW, _STREAMS)):
            return source  # most kernels: there is no need to parse them again
        edits = self._edits(source)
        changed = {path for path in included if str(path) in edits}
        while more := {path for path in included if included[path] & changed} - changed:
            changed |= more
        copies = {path: self.folder / f"flow{len(self.files)}_{i}_{path.name}"
                  for i, path in enumerate(sorted(changed))}  # fmt: skip
        for path, copy in copies.items():
            copy.write_bytes(self._text(path, edits.get(str(path), []), copies))
            self.files.append(str(path))
        return copies.get(source, source)

    def _edits(self, source: Path) -> dict[str, Edits]:
        edits: dict[str, Edits] = {}
        with read_source(source, self.include_dirs, self.defines) as unit:
            program = Program(unit.unit.cursor, None, unit.pragmas)
            for path in files_beside(source):
                _attach(program, list(directives_of(path)))
            for function in program.scopes:
                for scope in function.walk():
                    if scope.pragma("dataflow") is not None:
                        made = _Region(program, scope).edits()
                        file = Path(scope.body.extent.start.file.name).resolve()
                        edits.setdefault(str(file), []).extend(made)
        return {file: made for file, made in edits.items() if made}

    def _text(self, path: Path, edits: Edits, copies: dict[Path, Path]) -> bytes:
        """Return a file with its edits, whose ``#include`` lines lead to copies."""
        text = path.read_bytes()
        parts, done = [], 0
        for at, added in sorted(edits, key=lambda edit: edit[0]):
            parts += [text[done:at], added.encode()]
            done = at
        text = b"".join([*parts, text[done:]])

        def elsewhere(match: re.Match[bytes]) -> bytes:
            found = depends.real(path.parent / match[2].decode(errors="surrogateescape"))
            if not found.is_file():
                return match[0]
            line = headers.include(copies.get(found, found), self.folder)
            return match[1] + line.removeprefix("#include ").encode(errors="surrogateescape")

        name = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'#line 1 "{name}"\n'.encode(errors="surrogateescape") + _QUOTED.sub(elsewhere, text)


def _closure(source: Path, folders: Sequence[Path]) -> dict[Path, set[Path]]:
    """Return a source and its headers, those of HLS apart, each with what it includes."""
    own = toolchain.include_dirs()
    waiting, found = [source.resolve()], {source.resolve(): set[Path]()}
    while waiting:
        file = waiting.pop()
        for name, quoted in depends.spelt(str(file), _INCLUDE):
            for place in [file.parent, *folders] if quoted else folders:
                path = depends.real(place / name)
                if path.is_file():
                    if not depends.is_installed(str(path)) and path.parent not in own:
                        found[file].add(path)
                        if path not in found:
                            found[path] = set()
                            waiting.append(path)
                    break
    return found


def _attach(program: Program, directives: Sequence[tuple[str, Directive]]) -> None:
    """Give functions and loops the directives of a file: ``top`` or ``top/label``."""
    for place, item in directives:
        if item.name not in ("dataflow", "stream", "unroll"):
            continue
        name, _, label = place.partition("/")
        for scope in program.scopes:
            if scope.node.spelling != name:
                continue
            inner = [one for one in scope.walk() if label and _label(one) == label]
            (inner or [scope])[0].pragmas.append(item)


def _label(scope: Scope) -> str:
    parent = scope.parent.body if scope.parent is not None else scope.node
    for node in walk(parent):
        if node.kind == CursorKind.LABEL_STMT and plain(node) == scope.node:
            return str(node.spelling)
    return ""


class _Region:
    """One region: its statements, and which of them are processes."""

    def __init__(self, program: Program, scope: Scope) -> None:
        self.program, self.scope, self.body = program, scope, scope.body
        self.file = Path(self.body.extent.start.file.name)
        self.text = self.file.read_bytes()
        self.local: dict[int, Cursor] = {}
        self.processes: list[Cursor] = []
        self.begin = 0

    def edits(self) -> Edits:
        """Return what makes its processes run side by side; nothing where it may not change."""
        if self.body.kind != CursorKind.COMPOUND_STMT or not self._is_plain():
            return []
        streams = [one for one in self.local.values()
                   if _is_stream(one) and "stream_of_blocks" not in _spelt(one)]  # fmt: skip
        used = any(_is_stream(node.referenced) for process in self.processes
                   for node in walk(process) if node.referenced is not None)  # fmt: skip
        loops = [self._turns(process) for process in self.processes]
        if not used or (len(self.processes) < 2 and not any(loops)):
            return []
        line = self.body.extent.start.line
        name = _quoted(self.file.name)
        edits = [(self.begin, f"pynq_torch::Region pynq_torch_region({name}, {line}); ")]
        touched: list[dict[int, tuple[bool, bool]]] = []
        for process, loop in zip(self.processes, loops, strict=True):
            touched.append(self._touched(process) if loop is None else self._touched_by_turns(loop))
            edits += self._run_beside(process, loop, touched)
        channels = "".join(self._channel(stream) for stream in streams)
        edits.append((self._end(self.processes[-1]), f"{channels} pynq_torch_region.run();"))
        return edits

    def _run_beside(
        self, process: Cursor, loop: Scope | None, touched: list[dict[int, tuple[bool, bool]]]
    ) -> Edits:
        """Return what makes a process of a statement, or of each iteration of an unrolled loop."""
        number = len(touched) - 1
        after = [*_before(touched)]
        call, node, captured, inner = "process", process, "[&]", list[tuple[int, str]]()
        if loop is not None:
            call, node = "turn", loop.body
            counters = [one.spelling for one in _counters(loop)]
            captured = f"[&, {', '.join(counters)}]() mutable"
            inner = _Region(self.program, loop).edits()  # its own processes, if it has several
            if any(reads and writes for reads, writes in touched[-1].values()):
                after.append(number)  # what one iteration writes the next one reads
            process = _only(loop.body)
        given = f'{number}, "{self._name(process)}", {process.location.line}, '
        given += f"{{{', '.join(map(str, after))}}}"
        begin = f"pynq_torch_region.{call}({given}, {captured} {{ "
        return [(node.extent.start.offset, begin), *inner, (self._end(node), " });")]

    def _turns(self, process: Cursor) -> Scope | None:
        """Return the loop that a process is, if each of its iterations is one in hardware."""
        loop = unrolled(self.scope, process)
        if loop is None or loop.kind != "for" or not _counters(loop):
            return None
        begin = loop.body.extent.start.offset
        if loop.pragma("dataflow") or self.text[begin : begin + 1] != b"{":  # or in a macro
            return None
        if any(inner.kind in (*_JUMPS, *_EXITS) for inner in walk(loop.body)):
            return None
        return None if _counts_in_body(loop) else loop

    def _touched_by_turns(self, loop: Scope) -> dict[int, tuple[bool, bool]]:
        found: dict[int, tuple[bool, bool]] = {}
        for statement in map(plain, loop.body.get_children()):
            for variable, (reads, writes) in self._touched(statement).items():
                before = found.get(variable, (False, False))
                found[variable] = (before[0] or reads, before[1] or writes)
        return found

    def _is_plain(self) -> bool:
        """Find declarations and processes; whether there is nothing that order would change."""
        returned = False
        for statement in self.body.get_children():
            node = plain(statement)
            extent = node.extent
            if extent.start.file is None or Path(extent.start.file.name) != self.file or returned:
                return False
            if node.kind == CursorKind.DECL_STMT:
                for variable in node.get_children():
                    if variable.kind != CursorKind.VAR_DECL:
                        continue
                    if "task" in variable.type.spelling:  # hls::task runs side by side by itself
                        return False
                    self.local[variable.hash] = variable
                    # A value that may be made of what a process computes: it would be made early.
                    used = {node.referenced.hash for node in walk(variable) if node.referenced}
                    if self.processes and used & (self.local.keys() - {variable.hash}):
                        return False
            elif node.kind == CursorKind.RETURN_STMT:
                returned = True
            elif node.kind not in _QUIET and not node.kind.is_declaration():
                away = _JUMPS if node.kind in LOOPS else (*_JUMPS, *_EXITS)
                if any(inner.kind in away for inner in walk(node)):
                    return False
                self.begin = self.begin or statement.extent.start.offset
                self.processes.append(node)
        return True

    def _touched(self, process: Cursor) -> dict[int, tuple[bool, bool]]:
        """Return which of its local arrays and scalars a process reads and writes."""
        found: dict[int, tuple[bool, bool]] = {}
        if process.kind == CursorKind.CALL_EXPR:
            uses = list(touches(self.program, process))
        else:
            uses = list(_uses(process))
        for variable, reads, writes in uses:
            if variable.hash in self.local and not _is_stream(variable):
                before = found.get(variable.hash, (False, False))
                found[variable.hash] = (before[0] or reads, before[1] or writes)
        return found

    def _channel(self, stream: Cursor) -> str:
        """Return the calls that give a stream, or the elements of an array of them, a depth."""
        depth, elements, name = "0", "", stream.spelling
        for item in self.scope.pragmas:
            if item.name != "stream" or item.variable != name or "depth" not in item.options:
                continue
            element = _ELEMENT.search(item.options.get("variable", ""))
            if element is None:  # the last one counts
                depth, elements = item.options["depth"], ""
                continue
            indices = ", ".join(f"long({one})" for one in re.findall(r"\[([^\[\]]+)\]", element[1]))
            given = f'"{name}", {{{indices}}}, {item.options["depth"]}, {item.pragma.line}'
            elements += f" pynq_torch_region.depth({given});"
        at = stream.location.line
        return f' pynq_torch_region.channel({name}, {depth}, "{name}", {at});{elements}'

    def _name(self, process: Cursor) -> str:
        """Return what a process is called in messages."""
        if process.kind == CursorKind.CALL_EXPR:  # in a template it has no spelling
            written = re.match(rb"[\w:]+", self.text[process.extent.start.offset :])
            return str(process.spelling) or (written[0].decode() if written else "a call")
        return "the loop" if process.kind in (*LOOPS, CursorKind.COMPOUND_STMT) else "the statement"

    def _end(self, process: Cursor) -> int:
        """Return where a statement ends, its semicolon included."""
        end = int(process.extent.end.offset)
        if self.text[end - 1 : end] == b"}" and process.kind in _BLOCKS:
            return end
        return self.text.index(b";", end) + 1


def _counters(loop: Scope) -> list[Cursor]:
    """Return the variables that a ``for`` declares."""
    begin = loop.header()[0]
    if begin is None or begin.kind != CursorKind.DECL_STMT:
        return []
    return [one for one in begin.get_children() if one.kind == CursorKind.VAR_DECL]


def _counts_in_body(loop: Scope) -> bool:
    """Whether a ``for`` has no step, or its body moves on what it counts with."""
    counters = {one.hash for one in _counters(loop)}
    steps = (node for node in walk(loop.body) if is_step(node))
    roots = (root_of(next(iter(node.get_children()))) for node in steps)
    return loop.header()[2] is None or any(one and one.hash in counters for one in roots)


def _only(body: Cursor) -> Cursor:
    """Return the one statement of a block, or the block."""
    statements = [one for one in map(plain, body.get_children()) if one.kind not in _QUIET]
    return statements[0] if len(statements) == 1 else body


def _before(touched: Sequence[dict[int, tuple[bool, bool]]]) -> Iterator[int]:
    """Yield the processes before the last one that fill, or read, what it reads, or fills."""
    *earlier, last = touched
    for number, one in enumerate(earlier):
        for variable, (reads, writes) in one.items():
            now_reads, now_writes = last.get(variable, (False, False))
            if (writes and now_reads) or (now_writes and (reads or writes)):
                yield number
                break


def _uses(statement: Cursor) -> Iterator[tuple[Cursor, bool, bool]]:
    """Yield the variables of a statement that is no call, and whether it reads and writes them."""
    written = {root.hash for node in walk(statement) if is_step(node)
               for child in list(node.get_children())[:1]
               if (root := root_of(child)) is not None}  # fmt: skip
    for node in walk(statement):
        if node.kind == CursorKind.DECL_REF_EXPR and node.referenced is not None:
            variable = node.referenced
            given = variable.kind == CursorKind.VAR_DECL and "[" in variable.type.spelling
            yield variable, True, given or variable.hash in written


def _is_stream(variable: Cursor) -> bool:
    if variable.kind not in (CursorKind.VAR_DECL, CursorKind.PARM_DECL, CursorKind.FIELD_DECL):
        return False
    return is_stream(variable.type)


def _spelt(variable: Cursor) -> str:
    return f"{variable.type.spelling} {variable.type.get_canonical().spelling}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
