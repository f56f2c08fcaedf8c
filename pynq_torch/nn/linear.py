"""``pynq_torch.nn.Linear``: a fully connected layer that multiplies in int8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from pynq_torch.ops.quantise import Packed
from pynq_torch.ops.units import Matrix, multiply

from .layer import Gradients, Operands, QuantisedLayer

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Linear"]


class Linear(QuantisedLayer, torch.nn.Linear):
    """``torch.nn.Linear`` with int8 weights, one scale an output channel; see `QuantisedLayer`.

    Parameters
    ----------
    in_features, out_features : int
        K and N.
    bias : bool
        Whether a bias is added.
    device, dtype
        Of the parameters, as for torch's.
    relu : bool
        Whether negative results become 0, which costs nothing here.

    Examples
    --------
    >>> layer = Linear.from_float(torch.nn.Linear(4, 2))
    >>> layer(torch.ones(1, 4)).shape
    torch.Size([1, 2])
    """

    operator = "pynq_torch::linear"
    kind = "nn.Linear"
    float_class = torch.nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        relu: bool = False,
    ) -> None:
        torch.nn.Linear.__init__(self, in_features, out_features, bias, device, dtype)
        self.relu = relu

    def _check(self, input: torch.Tensor) -> None:
        if not input.dim() or input.shape[-1] != self.in_features:
            raise RuntimeError(
                f"{self!r}: the input has shape {tuple(input.shape)}; expected "
                f"{self.in_features} in its last dimension"
            )

    def _matrices(self, weight: torch.Tensor) -> list[torch.Tensor]:
        return [weight.t()]

    def _product(self, *given: Unpack[Operands]) -> torch.Tensor:
        input, weights, mode, factors, bias, on = given
        # A Matrix for each shape of the layers that take the input would be too much: the last one.
        rows = input.operand
        if rows is None or rows.memory.device is not on.device or rows.columns != self.in_features:
            rows = Matrix(input.values.reshape(-1, self.in_features), on.device)
            # A copy does not follow what is packed into the same memory later.
            input.operand = rows if rows.tensor.data_ptr() == input.values.data_ptr() else None
        result = multiply(rows, weights.matrices[0], mode=mode, scale=factors[0], bias=bias, on=on)
        shape = input.values.shape
        return result if len(shape) == 2 else result.reshape(*shape[:-1], self.out_features)

    def _sums(self, input: torch.Tensor, packed: list[Packed]) -> torch.Tensor:
        return input.double() @ packed[0].values.double()

    def _arrange(self, result: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
        return result

    def _float(
        self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
    ) -> torch.Tensor:
        return functional.linear(input, weight, bias)

    def _gradients(
        self, grad: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, needed: list[bool]
    ) -> Gradients:
        flat = grad.reshape(-1, self.out_features)
        return (
            grad @ weight if needed[0] else None,
            flat.t() @ input.reshape(-1, self.in_features) if needed[1] else None,
            flat.sum(0) if needed[2] else None,
        )
