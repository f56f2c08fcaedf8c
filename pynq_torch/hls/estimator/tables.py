"""What is known of values before LLVM's passes: tables that nothing writes, arguments of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pynq_torch.errors import KernelError

__all__ = ["has_numbers", "with_arguments", "with_tables"]

_NAME = r"[-\w.$]+"
_VARIABLE = re.compile(
    rf"^(@{_NAME}) = (?:(?:internal|private|dso_local|unnamed_addr) )+"
    r"global (?!.*zeroinitializer(?:, (?:align|section|comdat|!)|$))"
)
#: A variable of HLS numbers.
_NUMBERS = re.compile(rf'(?m)^@{_NAME} = [a-z_ ]*global [<[].*"struct\.ap::cell')
_USED = re.compile(rf"[%@]{_NAME}")
_RESULT = re.compile(rf"^ +(%{_NAME}) = (getelementptr|load) ")


def has_numbers(text: str) -> bool:
    """Whether a module has a variable of HLS numbers that may yet be a table.

    Their operators are functions until they are inlined, and could write what they are handed.
    """
    return _NUMBERS.search(text) is not None


def with_tables(text: str) -> str:
    """Return a raw module in which variables of a file or function that are only read are constant.

    clang leaves them variables, because a later line could write them.
    """
    lines = text.split("\n")
    rows = {match[1]: n for n, line in enumerate(lines) if (match := _VARIABLE.match(line))}
    if not rows:
        return text
    derived: dict[str, str] = {}
    for line in lines:
        if line.startswith("define "):
            derived = {}
        elif line.startswith("  "):
            used = _USED.findall(line)
            met = {derived.get(name, name) for name in used} & rows.keys()
            made = _RESULT.match(line) if met else None
            if made is None:
                for name in met:
                    del rows[name]
            elif made[2] == "getelementptr":
                derived[made[1]] = met.pop()
    for number in rows.values():
        lines[number] = lines[number].replace(" global ", " constant ", 1)
    return "\n".join(lines)


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
