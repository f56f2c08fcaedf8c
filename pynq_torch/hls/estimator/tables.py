"""What is known of values before LLVM's passes: tables that nothing writes, arguments of a run."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from pynq_torch.errors import KernelError

from .ir import split_types
from .marks import within

__all__ = ["has_arrays", "with_arguments", "with_tables"]

_NAME = r"[-\w.$]+"
_VARIABLE = re.compile(
    rf"^(@{_NAME}) = (?:(?:internal|private|dso_local|unnamed_addr) )+"
    r"global (?!.*zeroinitializer(?:, (?:align|section|comdat|!)|$))"
)
#: An array that may yet be a table.
_ARRAY = re.compile(rf"(?m){_VARIABLE.pattern}[<{{ ]*\[")
_USED = re.compile(rf"[%@]{_NAME}")
_RESULT = re.compile(rf"^ +(%{_NAME}) = (getelementptr|load) ")
_CALL = re.compile(rf"\bcall [^@]*(@{_NAME})\((.*)\)")
#: Copies, which read what their second argument points to.
_COPIES = ("@llvm.memcpy", "@llvm.memmove")


def has_arrays(text: str) -> bool:
    """Whether a module has an array that may yet be a table.

    Until functions are inlined and their variables in registers, each could write what it is
    handed.
    """
    return _ARRAY.search(text) is not None


def with_tables(text: str) -> str:
    """Return a raw module in which variables of a file or function that are only read are constant.

    clang leaves them variables, because a later line could write them. A function that is handed
    one may read it, too, and hand it on to others that do.
    """
    lines = text.split("\n")
    rows = {match[1]: n for n, line in enumerate(lines) if (match := _VARIABLE.match(line))}
    if not rows:
        return text
    uses = _Uses(rows.keys())
    for line in lines:
        if line.startswith("define "):
            uses.enter(line)
        elif line.startswith("  "):
            uses.note(line)
    for name in rows.keys() - uses.all_written():
        lines[rows[name]] = lines[rows[name]].replace(" global ", " constant ", 1)
    return "\n".join(lines)


class _Uses:
    """What becomes of variables, and of what functions are handed (``@function %argument``)."""

    def __init__(self, variables: Collection[str]) -> None:
        self._variables = variables
        self._written: set[str] = set()
        self._arguments: dict[str, list[str]] = {}
        #: What is handed to which argument, by number, of which function.
        self._handed: list[tuple[str, str, int]] = []
        self._derived: dict[str, str] = {}

    def enter(self, line: str) -> None:
        """Begin with a function, of whose arguments no use is known."""
        code = line[line.index("@") :]
        name, given = code.partition("(")[0], split_types(within(code[code.index("(") :]))
        words = [words[-1] for one in given if (words := one.split())]
        self._arguments[name] = [f"{name} {word}" for word in words]
        self._derived = {word: f"{name} {word}" for word in words}

    def note(self, line: str) -> None:
        """Note the uses in one line of it."""
        used = _USED.findall(line)
        met = {self._derived.get(one, one) for one in used}
        met = {one for one in met if one in self._variables or (one.startswith("@") and " " in one)}
        if not met:
            return
        made = _RESULT.match(line)
        if made is not None and made[2] == "getelementptr":
            self._derived[made[1]] = met.pop()
        elif made is None:
            self._written |= met - self._handed_on(line)

    def _handed_on(self, line: str) -> set[str]:
        """Return what a line does nothing with but hand it to functions, and note it."""
        call = _CALL.search(line)
        if call is None:
            return set()
        found: set[str] = set()
        for number, argument in enumerate(split_types(call[2])):
            for one in _USED.findall(argument):
                base = self._derived.get(one, one)
                found.add(base)
                if not (call[1].startswith(_COPIES) and number == 1):
                    self._handed.append((base, call[1], number))
        return found

    def all_written(self) -> set[str]:
        """Return what is written, by a function that is handed it, too."""
        written = set(self._written)
        while True:
            more = {base for base, to, at in self._handed if self._argument(to, at) in written}
            more |= {base for base, to, _ in self._handed if to not in self._arguments}
            if more <= written:
                return written
            written |= more

    def _argument(self, function: str, number: int) -> str:
        arguments = self._arguments.get(function, [])
        return arguments[number] if number < len(arguments) else ""


def with_arguments(
    text: str, entry: str, values: Mapping[str, int], *, lenient: bool = False
) -> str:
    """Return a raw module whose top function has numbers in place of some scalar arguments.

    Parameters
    ----------
    text : str
        The module as clang writes it, where each argument is stored into a variable first.
    entry : str
        The mangled name of the top function.
    values : mapping of str to int
        By the argument's name.
    lenient : bool
        Leave out names that are no such argument.

    Raises
    ------
    KernelError
        The top function has no such argument, or it is no integer passed by value.
    """
    begin = re.search(rf"^define [^\n]*@\"?{re.escape(entry)}\"?\(", text, re.MULTILINE)
    assert begin is not None, "the top function is in the module"
    end = text.index("\n}\n", begin.start())
    body = text[begin.start() : end]
    taken = body.split("\n", 1)[0]
    known = re.findall(r"\bi\d+ (?:\w+ )*%([A-Za-z_$][\w$]*?)(?:\.coerce)?(?=[,)])", taken)
    for name, value in values.items():
        if name not in known:
            if lenient:
                continue
            raise KernelError(
                f"the top function has no integer argument {name!r} passed by value; it has "
                f"{', '.join(known) or 'none'}"
            )
        pattern = rf"(?m)^(  store i\d+ )%{re.escape(name)}(?:\.coerce)?, "
        body = re.sub(pattern, rf"\g<1>{value}, ", body, count=1)
    return text[: begin.start()] + body + text[end:]
