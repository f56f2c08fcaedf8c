"""What is going to be executed: notebooks, and every combination of the values they are given."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .records import ReportError

__all__ = ["Run", "find_notebooks", "plan", "values_of"]

#: Runs of one report: beyond that somebody has mistyped a list.
MOST_RUNS = 1000
#: Type of a default -> types of the values that it may be given.
_FITTING: dict[type, tuple[type, ...]] = {
    bool: (bool,), int: (int,), float: (int, float), list: (list,), tuple: (tuple, list)
}  # fmt: skip
#: What separates values, and what keeps a text together: brackets and quotes.
_VALUE = re.compile(r"""'[^']*'|"[^"]*"|(?:\[[^\]]*\]|\([^)]*\)|\{[^}]*\}|[^,\s])+""")


@dataclass(frozen=True)
class Run:
    """One notebook that is going to be executed, with the parameters it gets.

    Attributes
    ----------
    name : str
        The notebook's file name without its suffix, with the values of what is swept.
    """

    path: Path
    parameters: Mapping[str, Any]
    defaults: Mapping[str, Any]
    cells: int
    name: str


def find_notebooks(folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """Return the lessons, ``NN_<topic>.ipynb``, in order.

    Parameters
    ----------
    folder : Path
        The folder with the notebooks.
    only : sequence of str
        Names or their beginnings, e.g. ``05`` or ``05_gemm``; default: all.

    Raises
    ------
    ReportError
        There is none, or none of a name in `only`.
    """
    found = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    if not found:
        raise ReportError(f"no notebook in '{folder}': expected files named NN_<topic>.ipynb")
    for name in only:
        if not any(_is_called(path, name) for path in found):
            listed = ", ".join(path.stem for path in found)
            raise ReportError(f"notebook '{name}' is unknown; '{folder}' has: {listed}")
    return [p for p in found if not only or any(_is_called(p, name) for name in only)]


def _is_called(path: Path, name: str) -> bool:
    stem = Path(name).name.removesuffix(".ipynb")
    return path.stem == stem or path.stem.startswith(f"{stem}_")


def values_of(name: str, text: str) -> list[str]:
    """Split what was typed for a parameter into its values.

    Parameters
    ----------
    name : str
        For messages.
    text : str
        Values with commas or blanks between them; brackets and quotes keep one together.

    Examples
    --------
    >>> values_of("SIZE", "64 128,256")
    ['64', '128', '256']
    >>> values_of("NAME", "'a b' [1, 2]")
    ["'a b'", '[1, 2]']

    Raises
    ------
    ReportError
        There is no value, a quote is left open, or a value is there twice.
    """
    values = _VALUE.findall(text)
    if any((value[0] in "'\"" and value[0] != value[-1]) or value in "'\"" for value in values):
        raise ReportError(f"parameter '{name}': {text} has a quote that is not closed")
    if not values:
        raise ReportError(f"parameter '{name}' has no value; expected e.g. {name}=64 or 64,128")
    for value in values:
        if values.count(value) > 1:
            raise ReportError(f"parameter '{name}': {value} is there twice in '{text}'")
    return values


def plan(notebooks: Sequence[Path], board: str, values: Mapping[str, str]) -> list[Run]:
    """Decide which runs there are: every combination of values for every notebook.

    Parameters
    ----------
    notebooks : sequence of Path
        What will be executed.
    board : str
        Passed as ``BOARD`` to the notebooks that declare it. One whose metadata names its boards
        (``"pynq_torch": {"boards": ["rtl"]}``) keeps its own where this is none of them.
    values : mapping of str to str
        Parameters as typed on the command line, see `values_of`. One that a notebook does not
        declare is left out for that notebook; one that no notebook declares is refused. A plural
        stands for the parameter: ``SIZES=64,128`` is ``SIZE=64,128``.

    Raises
    ------
    ReportError
        A parameter is unknown, or a value has another type than the default.
    """
    declared = {path: _declared(path) for path in notebooks}
    known = sorted({name for parameters in declared.values() for name in parameters})
    wanted = {}
    for typed, text in values.items():
        name = typed[:-1] if typed not in known and typed[:-1] in known else typed
        if name not in known or not typed.startswith(name) or typed[len(name) :] not in ("", "S"):
            listed = ", ".join(known) or "none"
            raise ReportError(f"parameter '{typed}' is unknown; the notebooks declare: {listed}")
        if name in wanted:
            raise ReportError(f"parameter '{name}' is given twice, as {name} and {typed}")
        wanted[name] = values_of(name, text)
    wanted["BOARD"] = [board]
    runs: list[Run] = []
    for path in notebooks:
        runs += _runs(path, declared[path], wanted)
    if len(runs) > MOST_RUNS:
        raise ReportError(f"{len(runs)} runs; expected at most {MOST_RUNS}: give fewer values")
    return runs


def _runs(path: Path, own: Mapping[str, str], wanted: Mapping[str, list[str]]) -> list[Run]:
    """Return the runs of one notebook, which declares `own`: names with defaults as written."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    boards = notebook.get("metadata", {}).get("pynq_torch", {}).get("boards", wanted["BOARD"])
    typed = {n: [_typed(n, v, own[n]) for v in texts] for n, texts in wanted.items() if n in own}
    if wanted["BOARD"][0] not in boards:  # it keeps its own
        typed.pop("BOARD", None)
    swept = [name for name, choices in typed.items() if len(choices) > 1]
    defaults = {name: _literal(text) for name, text in own.items()}
    # papermill puts what it was given into a cell of its own
    cells = len(notebook["cells"]) + bool(typed)
    runs: dict[str, Run] = {}
    for choice in itertools.product(*typed.values()):
        parameters = dict(zip(typed, choice, strict=True))
        name = "-".join([path.stem, *(f"{name}={_word(parameters[name])}" for name in swept)])
        while name in runs:  # values that differ in signs only, which a file name cannot have
            name += "_"
        runs[name] = Run(path, parameters, defaults, cells, name)
    return list(runs.values())


def _word(value: Any) -> str:
    return re.sub(r"[^\w.+-]+", "_", str(value)).strip("_")[:40] or "_"


def _declared(path: Path) -> dict[str, str]:
    """Return the names in the cell tagged ``parameters``, with their defaults as written."""
    from papermill import inspect_notebook

    try:
        return {name: str(info["default"]) for name, info in inspect_notebook(str(path)).items()}
    except ValueError as error:
        raise ReportError(f"notebook '{path}' cannot be read: {error}") from error


def _typed(name: str, text: str, default: str) -> Any:
    """Read `text` as a value of the type that `default` has."""
    expected = _literal(default)
    if isinstance(expected, str):
        return text.strip("'\"")
    value = _literal(text)
    fits = _FITTING.get(type(expected))
    if fits is not None and type(value) not in fits:
        raise ReportError(
            f"parameter '{name}': '{text}' is no {type(expected).__name__}; "
            f"its default is {default}"
        )
    if isinstance(value, (set, bytes, complex)):
        kind = type(value).__name__
        raise ReportError(
            f"parameter '{name}': '{text}' is a {kind}, which papermill cannot pass on"
        )
    return value


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a bare word is a string, as on any command line
