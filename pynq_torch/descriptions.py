"""``description.json``: what a kernel's source cannot say about it."""

from __future__ import annotations

import ast
import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import InterfaceError

__all__ = ["KernelDescription", "LatencyModel", "read_kernel_description"]

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
#: What a symbol is where a description names no sizes for an example.
EXAMPLE = 64
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"max": max, "min": min, "ceil": math.ceil}


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
        What the model takes for granted.
    example : mapping of str to int
        Sizes that a person would run, a value for each symbol.
    """

    expression: str
    symbols: Mapping[str, str]
    assumptions: str
    example: Mapping[str, int] = field(default_factory=dict)

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
        cycles: int = math.ceil(self._value(tree.body, values))
        return cycles

    def _value(self, node: ast.expr, values: Mapping[str, int]) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.Name) and node.id in self.symbols:
            return values[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            left, right = self._value(node.left, values), self._value(node.right, values)
            return _BINARY[type(node.op)](left, right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand, values)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in _FUNCTIONS
            and not node.keywords
        ):
            arguments = [self._value(argument, values) for argument in node.args]
            return _FUNCTIONS[node.func.id](*arguments)
        raise InterfaceError(
            f"the latency model uses {ast.unparse(node)!r}; it may use + - * / // %, "
            f"{', '.join(_FUNCTIONS)}, numbers and {', '.join(self.symbols)}"
        )


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


def _example(latency: Mapping[str, Any], path: Path) -> dict[str, int]:
    symbols = latency["symbols"]
    example = latency.get("example", dict.fromkeys(symbols, EXAMPLE))
    if set(example) != set(symbols) or not all(isinstance(n, int) for n in example.values()):
        raise InterfaceError(
            f"{path}: latency.example is {example}; expected a whole number each for "
            f"{', '.join(symbols)}"
        )
    return dict(example)


def read_kernel_description(folder: Path) -> KernelDescription:
    """Read the ``description.json`` of a kernel's folder.

    Raises
    ------
    InterfaceError
        It is missing, is no JSON, or lacks an entry; the message names file and entry.
    """
    path = folder / "description.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InterfaceError(f"{path} does not exist", cu=folder.name) from error
    except OSError as error:
        raise InterfaceError(
            f"{path}: cannot be read ({error.strerror})", cu=folder.name
        ) from error
    except (ValueError, RecursionError) as error:  # no JSON, or no UTF-8
        raise InterfaceError(f"{path}: {error}", cu=folder.name) from error
    try:
        latency = data["latency"]
        if latency["kind"] != "model":
            raise InterfaceError(
                f"{path}: latency.kind is {latency['kind']!r}; it is a 'model' until a run in RTL "
                "or on a board replaces it",
                cu=folder.name,
            )
        return KernelDescription(
            name=data["name"],
            summary=data["summary"],
            reference=data["reference"],
            operators=tuple(data["operators"]),
            macs_per_cycle=int(data.get("macs_per_cycle", 0)),
            latency=LatencyModel(
                latency["cycles"],
                latency["symbols"],
                latency["assumptions"],
                _example(latency, path),
            ),
            resources=data.get("resources", {}),
            ii=int(data.get("ii", 0)),
        )
    except KeyError as error:
        raise InterfaceError(f"{path}: the entry {error} is missing", cu=folder.name) from error
    except (AttributeError, TypeError, ValueError) as error:
        raise InterfaceError(
            f"{path}: an entry has a value of the wrong kind ({error})", cu=folder.name
        ) from error
    except InterfaceError as error:
        if str(error).startswith(str(path)):
            raise
        raise InterfaceError(f"{path}: {error}", cu=folder.name) from error
