"""Pointwise operators on the kernels ``unary_*``, ``binary_*`` and ``ternary_*``.

The functions here have the signatures of ATen; `pointwise_core` does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import torch

from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.variants import MIXED

from .common import on_cpu
from .pointwise_core import DTYPE, SHORT, elementwise

__all__: list[str] = []  # the functions of the table in pynq_torch.ops

_NAN = Declined("a limit is NaN")
_BOTH = on_cpu("neither limit is given")
_ZERO = Declined("an integer is divided by 0, for which torch has an error")
_APPROXIMATE = on_cpu("gelu has no such approximation")
_MODE = on_cpu("there is no such rounding")
_SLOPE = Declined("the result does not tell what a negative slope was applied to; torch refuses it")
_BOOL = on_cpu("torch does not subtract bools")
_NEGATIVE = Declined("an integer to a negative power, for which torch has an error")


#: Operands of a function, by its kind.
_COUNT = {"unary": 1, "binary": 2, "ternary": 3}


def plain(kind: str, name: str, *defaults: Any) -> Callable[..., Any]:
    """Return the operator of a function whose arguments are its operands, then its parameters."""
    count = _COUNT[kind]

    def run(*args: Any, **parameters: Any) -> Any:
        given = (*args[count:], *parameters.values())
        p, q, *_ = (*given, *defaults[len(given) :], 0, 0)
        return elementwise(kind, name, *args[:count], p=p, q=q)

    return run


div = plain("binary", "div")
power = plain("binary", "pow")


def add(self: Any, other: Any, alpha: Any = 1) -> Any:
    """``self + alpha * other``; so are the subtractions."""
    if type(alpha) is int and alpha == 1:
        return elementwise("binary", "add", self, other)
    return elementwise("binary", "add_scaled", self, other, p=alpha)


def sub(self: Any, other: Any, alpha: Any = 1) -> Any:
    if _is_bool(self) or _is_bool(other) or type(alpha) is bool:
        return _BOOL
    if type(alpha) is int and alpha == 1:
        return elementwise("binary", "sub", self, other)
    return elementwise("binary", "add_scaled", self, other, p=-alpha)


def _is_bool(value: Any) -> bool:
    return type(value) is bool or (isinstance(value, torch.Tensor) and value.dtype is torch.bool)


def rsub(self: Any, other: Any, alpha: Any = 1) -> Any:
    return sub(other, self, alpha)


def _whole(name: str) -> Callable[[Any, Any], Any]:
    """Return a division whose result is whole, or what it leaves."""

    def run(self: Any, other: Any) -> Any:
        return _ZERO if _has_zero(self, other) else elementwise("binary", name, self, other)

    return run


def _has_zero(self: Any, divisor: Any) -> bool:
    """Whether integers are divided by 0: the CPU looks, since that is an error."""
    if isinstance(divisor, torch.Tensor):
        if divisor.dtype.is_floating_point:
            return False
        values = memory.alias(divisor) if divisor.device.type == "pynq" else divisor
        return not bool(values.all())
    return not divisor and not (isinstance(self, torch.Tensor) and self.dtype.is_floating_point)


floor_divide, _trunc_divide, remainder = map(_whole, ("div_floor", "div_trunc", "remainder"))


def div_mode(self: Any, other: Any, rounding_mode: str | None) -> Any:
    if rounding_mode is None:
        return div(self, other)
    divide = {"floor": floor_divide, "trunc": _trunc_divide}.get(rounding_mode)
    return divide(self, other) if divide is not None else _MODE


#: Exponents for which torch computes something else than a power, also where that differs.
_POWERS = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal", -2: "inverse_square"}


def pow_number(self: torch.Tensor, exponent: Any) -> Any:
    if not self.dtype.is_floating_point and type(exponent) is int and exponent < 0:
        return _NEGATIVE
    name = _POWERS.get(exponent)
    if name is not None and (self.dtype.is_floating_point or type(exponent) is int):
        return elementwise("unary", name, self)
    return power(self, exponent)


def clamp(self: torch.Tensor, min: Any = None, max: Any = None) -> Any:
    if min is None and max is None:
        return _BOTH
    if self.dtype not in SHORT:
        return DTYPE
    if self.dtype.is_floating_point:
        low, high = -inf, inf
    else:
        info = torch.iinfo(self.dtype)
        low, high = info.min, info.max
    low, high = low if min is None else min, high if max is None else max
    if low != low or high != high:
        return _NAN
    return elementwise("unary", "clamp", self, p=low, q=high)


def clamp_tensors(self: Any, min: Any = None, max: Any = None) -> Any:
    if min is None and max is None:
        return _BOTH
    if min is None:
        return elementwise("binary", "minimum", self, max)
    if max is None:
        return elementwise("binary", "maximum", self, min)
    return elementwise("ternary", "clamp", self, min, max)


def clamp_max(self: torch.Tensor, max: Any) -> Any:
    return clamp(self, None, max)


def hardtanh(self: torch.Tensor, min_val: Any = -1, max_val: Any = 1) -> Any:
    if min_val != min_val or max_val != max_val:
        return _NAN
    return elementwise("unary", "hardtanh", self, p=min_val, q=max_val)


#: `approximate` of gelu -> how the function is called in the table.
_GELU = {"none": "gelu", "tanh": "gelu_tanh"}


def gelu(self: torch.Tensor, approximate: str = "none") -> Any:
    name = _GELU.get(approximate)
    return elementwise("unary", name, self) if name is not None else _APPROXIMATE


def where(condition: Any, self: Any, other: Any) -> Any:
    return elementwise("ternary", "where", self, other, condition)


def lerp(self: Any, end: Any, weight: Any) -> Any:
    # Beside a tensor a CPU scalar of another dtype would count as a number; lerp wants one dtype.
    if any(isinstance(t, torch.Tensor) and t.dtype is not self.dtype for t in (end, weight)):
        return MIXED
    return elementwise("ternary", "lerp", self, end, weight)


# ---- gradients -----------------------------------------------------------------------------------


def leaky_relu_backward(
    grad_output: Any, self: Any, negative_slope: Any, self_is_result: bool
) -> Any:
    if self_is_result and not (isinstance(negative_slope, (int, float)) and negative_slope >= 0):
        return _SLOPE
    return elementwise("binary", "leaky_relu_backward", grad_output, self, p=negative_slope)


def gelu_backward(grad: Any, self: Any, approximate: str = "none") -> Any:
    name = _GELU.get(approximate)
    if name is None:
        return _APPROXIMATE
    return elementwise("binary", f"{name}_backward", grad, self)
