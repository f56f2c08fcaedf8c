"""Drivers of the pointwise kernels: broadcast operands of any strides, no copy of any of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pynq_torch import buffers

from .base import Kernel
from .operand import Operand
from .pointwise_registers import registers_of
from .pointwise_walk import broadcast, runs, walk_of
from .tables.pointwise import FUNCTIONS, Function, find

if TYPE_CHECKING:
    import torch

__all__ = ["Binary", "Pointwise", "Ternary", "Unary", "dtype_of", "reference"]

#: Functions that divide; of integers nothing may be divided by 0.
_DIVISIONS = frozenset({"div_trunc", "div_floor", "remainder"})


def reference(kind: str, op: int) -> Any:
    """Return torch's function for an opcode, see `Function.reference`.

    Raises
    ------
    KeyError
        No function of that kind has it.
    """
    for function in FUNCTIONS[kind].values():
        if function.opcode == op:
            return function.reference
    raise KeyError(f"no {kind} function has opcode {op}")


def dtype_of(short: str) -> torch.dtype:
    """Return the dtype for the end of a kernel's name ("f32", "i32" or "i8")."""
    import torch

    return {"f32": torch.float32, "i32": torch.int32, "i8": torch.int8}[short]


def _bool() -> torch.dtype:
    import torch

    return torch.bool


class Pointwise(Kernel):
    """``unit(function, operands..., parameters...)``: a function of the table for every element.

    Attributes
    ----------
    kind : str
        Functions of how many operands it computes.
    """

    kind = ""

    def __init__(self, description: dict[str, Any]) -> None:
        super().__init__(description)
        self._short = self.kernel_name.rpartition("_")[2]

    @cached_property
    def _dtype(self) -> torch.dtype:
        # Not in __init__: the driver is there without torch too, as every overlay is.
        return dtype_of(self._short)

    def __call__(
        self,
        function: str | Function,
        *operands: Any,
        timeout_s: float = 10.0,
        **parameters: float,
    ) -> torch.Tensor:
        """Compute a function.

        Parameters
        ----------
        function : str or Function
            E.g. ``"tanh"``; the names are in `pynq_torch.kernels.tables.pointwise`.
        *operands : torch.Tensor or number
            On the CPU, of the kernel's dtype, of shapes that broadcast; any strides where they lie
            in CMA memory, others are copied there. All but one may be numbers, which go through
            registers. The condition of ``where`` is the last one, of dtype bool.
        timeout_s : float
            Bound of the wait for one run.
        **parameters : float
            Those that the function has, e.g. ``min=-1, max=1`` of ``"clamp"``.

        Returns
        -------
        torch.Tensor
            New, in CMA memory; its dimensions lie in the order that torch would choose.

        Raises
        ------
        ArgumentError
            Operands or parameters are not what the function takes.
        """
        dtype = self._dtype
        chosen = self._function(function)
        p, q = self._parameters(chosen, parameters)
        given, lie = self._operands(chosen, operands)
        reads = [g for g, own in zip(given, lie, strict=True) if own is not None]
        shape = broadcast([read.shape for read in reads])
        if shape is None:
            shapes = " and ".join(str(read.shape) for read in reads)
            raise self.wrong(
                f"shapes {shapes} do not broadcast; expected sizes that are equal or 1, "
                "counted from the last dimension"
            )
        if 0 in shape:
            return buffers.empty_tensor(shape, dtype, device=self.device)
        walk = walk_of(shape, lie, chosen.name)
        place = buffers.empty(
            shape if walk.row_major else (walk.total,), dtype, device=self.device
        )  # fmt: skip
        pointers, scalars = registers_of(self.kind, chosen, given, p, q, dtype)
        result = buffers.as_tensor(place, dtype)
        target = Operand(result, int(place.device_address), place)
        made = runs(walk, pointers, scalars, target.address, dtype.itemsize)
        self.do_runs(made, reads, [target], timeout_s)
        return result if walk.row_major else result.as_strided(shape, walk.strides)

    call: Any = __call__

    def _operands(
        self, function: Function, operands: Sequence[Any]
    ) -> tuple[list[Any], tuple[Any, ...]]:
        """Return operands for registers and memory, and how those in memory lie."""
        names = function.operands
        if len(operands) != len(names):
            raise self.wrong(
                f"{function.name} takes {len(names)} operands ({', '.join(names)}); "
                f"found {len(operands)}"
            )
        given: list[Any] = []
        lie: list[Any] = []
        for name, value in zip(names, operands, strict=True):
            if isinstance(value, (int, float)):
                given.append(value)
                lie.append(None)
                continue
            condition = function.name == "where" and name == "c"
            kind = _bool() if condition else self._dtype
            given.append(self.operand(name, value, kind))
            lie.append((given[-1].shape, given[-1].strides))
        if function.name in _DIVISIONS and self._short != "f32":
            divisor = operands[1]
            if not (divisor if isinstance(divisor, (int, float)) else bool(divisor.all())):
                raise self.wrong(
                    f"{function.name} of integers divides by 0; expected a divisor b without zeros"
                )
        if function.name == "pow" and self._short != "f32":
            exponent = operands[1]
            if isinstance(exponent, (int, float)) and exponent < 0:
                raise self.wrong(
                    f"pow of integers has exponent {exponent}; expected 0 or more, "
                    "because torch allows no negative ones: use float32"
                )
        if not any(lie):
            raise self.wrong("all operands are numbers; expected a tensor among them")
        return given, tuple(lie)

    def _function(self, function: str | Function) -> Function:
        if isinstance(function, str):
            try:
                function = find(self.kind, function)
            except KeyError as error:
                raise self.wrong(f"{error.args[0]}") from error
        if not isinstance(function, Function):
            raise self.wrong(
                f"function is {type(function).__name__}; expected the name of one, "
                "before the operands"
            )
        if not function.expression(self._short):
            raise self.wrong(
                f"torch has no {function.name} of {self._dtype} whose result has that dtype too"
            )
        return function

    def _parameters(self, function: Function, given: dict[str, float]) -> tuple[float, float]:
        if given.keys() != function.parameters.keys():
            names = ", ".join(function.parameters) or "none"
            raise self.wrong(
                f"parameters of {function.name} are {names}; found {', '.join(given) or 'none'}"
            )
        first, second, *_ = (*(given[name] for name in function.parameters), 0, 0)
        return first, second


class Unary(Pointwise):
    """``overlay.unary_f32("exp", x)``."""

    kind = "unary"


class Binary(Pointwise):
    """``overlay.binary_f32("maximum", a, b)``; one of the operands may be a number."""

    kind = "binary"


class Ternary(Pointwise):
    """``overlay.ternary_f32("where", a, b, condition)``; operands may be numbers."""

    kind = "ternary"
