"""``description.json``: what a kernel's source cannot say about it."""

from __future__ import annotations

import ast
import functools
import json
import math
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from typing_extensions import NotRequired, TypedDict

from .errors import InterfaceError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = [
    "AnswerRegister",
    "KernelDescription",
    "LatencyModel",
    "answer_register",
    "evaluate",
    "explain",
    "read_kernel_description",
]

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
#: The value of a symbol where a description has no sizes for an example.
EXAMPLE = 64
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"max": max, "min": min, "ceil": math.ceil}
_SHOWN = 60


def evaluate(
    node: ast.expr,
    operators: Mapping[type[ast.operator], Callable[[Any, Any], Any]],
    names: Mapping[str, Any] = {},
    functions: Mapping[str, Callable[..., Any]] = {},
) -> Any:
    """Return the value of an arithmetic expression.

    Raises
    ------
    ValueError
        It uses something else; the exception's text is that part of the expression.
    """
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -evaluate(operand, operators, names, functions)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in operators:
            values = [evaluate(side, operators, names, functions) for side in (left, right)]
            return operators[type(sign)](*values)
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in functions:
            values = [evaluate(item, operators, names, functions) for item in node.args]
            return functions[name](*values)
    raise ValueError(ast.unparse(node))


@dataclass(frozen=True)
class LatencyModel:
    """Cycles as a function of a kernel's scalar arguments: a model, not a measurement.

    Parameters
    ----------
    expression : str
        Arithmetic over `symbols` with ``+ - * / // %``, ``max``, ``min`` and ``ceil``.
    symbols : mapping of str to str
        Each name the expression uses and what it means.
    assumptions : str
        What the model assumes.
    example : mapping of str to int
        Sizes that a person would run, a value for each symbol.
    intervals : mapping of str to int
        Of a kernel of many functions, by the value of symbol ``op``: cycles from one element to the
        next where they are more than 1. The expression has them as ``interval``.
    """

    expression: str
    symbols: Mapping[str, str]
    assumptions: str
    example: Mapping[str, int] = field(default_factory=dict)
    intervals: Mapping[str, int] = field(default_factory=dict)

    def cycles(self, **values: int) -> int:
        """Return the modelled cycles.

        Parameters
        ----------
        **values : int
            One value a symbol.

        Raises
        ------
        InterfaceError
            A symbol has no value, or the expression uses something other than arithmetic.
        """
        missing = sorted(set(self.symbols) - set(values))
        if missing:
            raise InterfaceError(
                f"the latency model needs {', '.join(self.symbols)}; {missing[0]} is missing"
            )
        tree = ast.parse(self.expression, mode="eval")
        known = {name: values[name] for name in self.symbols}
        if "op" in known:
            known["interval"] = self.intervals.get(str(known["op"]), 1)
        try:
            cycles: int = math.ceil(evaluate(tree.body, _BINARY, known, _FUNCTIONS))
        except ValueError as error:
            raise InterfaceError(
                f"the latency model uses {str(error)!r}; it may use + - * / // %, "
                f"{', '.join(_FUNCTIONS)}, numbers and {', '.join(self.symbols)}"
            ) from error
        return cycles


@dataclass(frozen=True)
class KernelDescription:
    """What ``description.json`` says.

    Parameters
    ----------
    name : str
        The kernel.
    summary : str
        A sentence.
    reference : str
        The torch expression it has to equal, over the arguments' names.
    operators : tuple of str
        The ATen operators it serves.
    macs_per_cycle : int
        Multiply-accumulates the array does in a cycle; 0 where there is no array.
    latency : LatencyModel
        Cycles, as a model.
    resources : mapping
        Counts of components, see `pynq_torch.models.hls_resources`; empty where they are not
        stated.
    ii : int
        Initiation interval of the loop that does the work, in cycles, as a model; 0 where it is not
        stated.
    """

    name: str
    summary: str
    reference: str
    operators: tuple[str, ...]
    macs_per_cycle: int
    latency: LatencyModel
    resources: Mapping[str, Any] = field(default_factory=dict)
    ii: int = 0


class _Latency(TypedDict):
    kind: Literal["model"]  # until a run in RTL or on a board replaces it
    cycles: str
    symbols: dict[str, str]
    assumptions: str
    example: NotRequired[dict[str, int]]
    intervals: NotRequired[dict[str, int]]


class _Answers(TypedDict):
    offset: int
    channels: list[str]


class _File(TypedDict):
    name: str
    summary: str
    reference: str
    operators: list[str]
    latency: _Latency
    macs_per_cycle: NotRequired[int]
    resources: NotRequired[dict[str, Any]]
    ii: NotRequired[int]
    answers: NotRequired[_Answers]


@dataclass(frozen=True)
class AnswerRegister:
    """The register in which a kernel's RTL keeps the errors that memory has answered.

    Two bits a channel from the lowest on: 0 OKAY, 2 SLVERR, 3 DECERR. What HLS makes of the C++ has
    no such register and reads 0 there.

    Parameters
    ----------
    offset : int
        In bytes: a word that HLS leaves free, behind its registers or behind a pointer.
    channels : tuple of str
        The ports, with ``read`` or ``write``.
    """

    offset: int
    channels: tuple[str, ...]

    def fits(self, offsets: Collection[int]) -> bool:
        """Whether a unit with registers at `offsets` decodes this address, and has none there."""
        decoded = 1 << max(offsets, default=0).bit_length()
        return self.offset not in offsets and self.offset < decoded

    def errors(self, value: int) -> dict[str, str]:
        """Return channel -> ``"SLVERR"`` or ``"DECERR"`` for those that answered an error."""
        answers = {name: value >> 2 * i & 3 for i, name in enumerate(self.channels)}
        return {name: ("SLVERR", "DECERR")[code - 2] for name, code in answers.items() if code > 1}


@functools.cache
def answer_register(folder: Path) -> AnswerRegister | None:
    """Return the entry ``answers`` of a kernel's ``description.json``, ``None`` without one.

    A driver asks for it, on a board without pydantic too: only the entry itself is read.
    """
    path = folder / "description.json"
    found = json.loads(path.read_bytes()).get("answers") if path.is_file() else None
    return AnswerRegister(found["offset"], tuple(found["channels"])) if found else None


@functools.cache
def _schema() -> TypeAdapter[_File]:
    from pydantic import TypeAdapter  # slow to load

    return TypeAdapter(_File)


def explain(path: Path, error: ValidationError) -> str:
    """Return the first fault that a schema finds in a file, in one line.

    The message names the file, the entry, the value found and what was expected.
    """
    fault = error.errors(include_url=False)[0]
    entry = ".".join(str(part) for part in fault["loc"] if part != "[key]")
    expected = fault["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    expected = expected.replace("dictionary", "table")
    if fault["type"] == "missing":
        return f"{path}: the entry {entry!r} is missing"
    if fault["type"] == "json_invalid":
        return f"{path}: {expected}"
    found = repr(fault["input"])
    found = found if len(found) <= _SHOWN else found[:_SHOWN] + " ..."
    return f"{path}: {entry or 'the whole file'} is {found}; {expected}"


def _checked(path: Path) -> _File:
    cu = path.parent.name
    try:
        return _schema().validate_json(path.read_bytes(), strict=True)
    except FileNotFoundError as error:
        raise InterfaceError(f"{path} does not exist", cu=cu) from error
    except OSError as error:
        said = f"{path}: cannot be read ({error.strerror})"
        raise InterfaceError(said, cu=cu) from error
    except ValueError as error:  # what pydantic raises is one
        raise InterfaceError(explain(path, cast("ValidationError", error)), cu=cu) from error


def read_kernel_description(folder: Path) -> KernelDescription:
    """Read the ``description.json`` of a kernel's folder.

    Raises
    ------
    InterfaceError
        It is missing, is no JSON, or lacks an entry; the message names file and entry.
    """
    path = folder / "description.json"
    data = _checked(path)
    latency = data["latency"]
    symbols = latency["symbols"]
    example = latency.get("example", dict.fromkeys(symbols, EXAMPLE))
    if example.keys() != symbols.keys():
        raise InterfaceError(
            f"{path}: latency.example is {example}; expected a whole number each for "
            f"{', '.join(symbols)}",
            cu=folder.name,
        )
    return KernelDescription(
        name=data["name"],
        summary=data["summary"],
        reference=data["reference"],
        operators=tuple(data["operators"]),
        macs_per_cycle=data.get("macs_per_cycle", 0),
        latency=LatencyModel(
            latency["cycles"],
            symbols,
            latency["assumptions"],
            example,
            latency.get("intervals", {}),
        ),
        resources=data.get("resources", {}),
        ii=data.get("ii", 0),
    )
