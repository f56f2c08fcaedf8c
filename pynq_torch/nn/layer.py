"""What the quantised layers share: where they run, and their gradients."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from pynq_torch.ops.launch import Units, units
from pynq_torch.ops.linear import MAX_EXACT_K
from pynq_torch.ops.quantise import TOO_LARGE, Packed, kept, pack
from pynq_torch.ops.units import Vector
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined, _watched
from pynq_torch.torch_device.fallback import place
from pynq_torch.torch_device.record import state, switches

from .arithmetic import columns, mode_of, overflows, reference
from .weights import NOTHING, Weights, weights_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["Gradients", "QuantisedLayer"]

_NO_UNIT = Declined(
    "no overlay loaded with pynq_torch.load has a unit that multiplies matrices: "
    "pynq_torch.load('gemm')"
)
_PYNQ = torch.device("pynq:0")
_LONG = Declined("sums are so long that they could leave int32")
Gradients = tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]
#: The input in int8, the weights, the mode, factors for each group, the bias, and the units.
Operands = tuple[Packed, Weights, int, list[Vector], Vector | None, Units]
#: Input, weight, bias, and the scales of an int8 input and of an int8 result.
Given = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, float | None, float | None]


class QuantisedLayer(torch.nn.Module):
    """A layer that multiplies in int8; base of `Linear` and `Conv2d`.

    The parameters ``weight`` and ``bias`` are those of the float layer, and so are ``state_dict``
    and the gradients (straight-through: the roundings count as nothing). The weight is packed once
    and again after it was written to: by an optimiser, ``load_state_dict``, any operator in place.

    - On device "pynq" with a unit in the loaded overlay, the unit computes.
    - Without one, and on the CPU, the same arithmetic runs on the CPU: the same bits, which
      ``torch.pynq.profiler`` shows with the reason. On the CPU the weight is packed at every call.
    - Where inputs or weights are infinite or NaN, or so large that a product could be, the float
      layer runs on the CPU, so that this shows in the result.

    Attributes
    ----------
    relu : bool
        Whether negative results become 0.
    in_scale : float or None
        The step of the input in int8, for static quantisation: inputs beyond 127 steps are cut
        off. ``None``: from the largest magnitude of each input.
    """

    operator: ClassVar[str]
    kind: ClassVar[str]
    float_class: ClassVar[type[torch.nn.Module]]
    relu: bool = False
    _in_scale: float | None = None
    # Declared by torch's layers, one as Tensor and one as Parameter.
    weight: Any
    bias: Any

    @property
    def in_scale(self) -> float | None:
        """The step of the input in int8; ``None`` where it follows each input."""
        return self._in_scale

    @in_scale.setter
    def in_scale(self, value: float | None) -> None:
        if value is not None:
            value = float(value)
            info = torch.finfo(torch.float32)
            if not info.tiny <= value <= info.max:
                raise ValueError(
                    f"in_scale is {value}; expected a normal float32 greater than 0, the largest "
                    "magnitude of the inputs / 127, or None"
                )
        self._in_scale = value

    @classmethod
    def from_float(cls, module: torch.nn.Module, *, relu: bool = False) -> Self:
        """Return a quantised layer that shares the parameters of a float one.

        Parameters
        ----------
        module : torch.nn.Linear or torch.nn.Conv2d
            Of the layer's own kind. Its hooks and its mode (training or not) are taken over too.
        relu : bool
            Whether negative results become 0.
        """
        if not isinstance(module, cls.float_class):
            raise TypeError(
                f"{cls.__name__}.from_float takes a torch.nn.{cls.float_class.__name__}; found "
                f"{type(module).__name__}"
            )
        made = cls.__new__(cls)
        own = {name: copy(v) if isinstance(v, dict) else v for name, v in vars(module).items()}
        made.__dict__.update(own)
        made.relu = relu
        return made

    # ---- what a kind of layer says of itself ---------------------------------------------------

    @abstractmethod
    def _check(self, input: torch.Tensor) -> None:
        """Raise where the input has a wrong shape."""

    def _is_direct(self) -> bool:
        """Whether the overlay has a kernel for this very layer, which needs no matrix product."""
        return False

    @abstractmethod
    def _matrices(self, weight: torch.Tensor) -> list[torch.Tensor]:
        """Return the weight, on the CPU, as matrices [K, N], one a group."""

    @abstractmethod
    def _product(self, *given: Unpack[Operands]) -> torch.Tensor:
        """Return the layer's result from the units, given its input in int8."""

    @abstractmethod
    def _sums(self, input: torch.Tensor, packed: list[Packed]) -> torch.Tensor:
        """Return the sums in float64, channels last, given input and weights in int8 on the CPU."""

    @abstractmethod
    def _arrange(self, result: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
        """Return a result with channels last in the shape of the layer's output."""

    @abstractmethod
    def _float(
        self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the result of the float layer."""

    @abstractmethod
    def _gradients(
        self, grad: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, needed: list[bool]
    ) -> Gradients:
        """Return the gradients of input, weight and bias of the float layer."""

    # ---- forward -------------------------------------------------------------------------------

    def forward(
        self, input: torch.Tensor, *, scale: float | None = None, out_scale: float | None = None
    ) -> torch.Tensor:
        """Return the layer's result.

        Parameters
        ----------
        input : torch.Tensor
            As for the float layer; or int8 in steps of `scale`.
        scale : float, optional
            The step of an int8 input.
        out_scale : float, optional
            Ask for an int8 result in steps of `out_scale`, as `Sequential` does for the layer that
            follows. The result is floating nevertheless where a gradient is wanted (then its values
            are whole steps), where values are not finite, and where sums could leave int32.

        Returns
        -------
        torch.Tensor
            Of the weight's dtype, or int8.
        """
        # Not as attributes, each of which takes a module a microsecond; a weight that torch works
        # out again for each call (pruning, weight_norm) is none of the parameters.
        parameters = self._parameters
        weight = parameters.get("weight")
        weight = self.weight if weight is None else weight
        bias = parameters.get("bias")
        if bias is None and "bias" not in parameters:
            bias = self.bias
        given = (input, weight, bias, scale, out_scale)
        if torch.is_grad_enabled() and (
            input.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
        ):
            result: torch.Tensor = StraightThrough.apply(self, *given)  # type: ignore[no-untyped-call]
            return result
        return self._compute(*given)

    def _compute(self, *given: Unpack[Given]) -> torch.Tensor:
        input, weight = given[:2]
        self._check(input)
        self._check_dtype(input, weight, given[3])
        if input.device != _PYNQ:
            return self._elsewhere(*given)
        if switches.active and state.call is None:
            result: torch.Tensor = _watched(self.operator, self._offer, self._on_cpu, given, {})
            return result
        found = self._offer(*given)
        return self._on_cpu(*given) if isinstance(found, Declined) else found

    def _check_dtype(self, input: torch.Tensor, weight: torch.Tensor, scale: float | None) -> None:
        if weight.device != input.device:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but the input of {self!r} is on "
                f"{input.device} and its weight on {weight.device}: move one with .to(...)"
            )
        if input.dtype is torch.int8:
            if scale is None:
                raise TypeError(
                    f"{self!r}: the input is int8 without a scale; expected "
                    f"{weight.dtype}, or scale=, the step of the int8 values"
                )
        elif scale is not None:
            raise TypeError(
                f"{self!r}: scale is {scale} and the input {input.dtype}; expected an int8 input, "
                "or no scale"
            )
        elif input.dtype is not weight.dtype:
            raise RuntimeError(
                f"{self!r}: the input is {input.dtype} and the weight {weight.dtype}; expected the "
                "same dtype: convert the input with .to(...)"
            )

    def _offer(self, *given: Unpack[Given]) -> torch.Tensor | Declined:
        """Compute on the units of the overlay."""
        input, weight, bias, scale, out_scale = given
        on = units()
        if not (on.all or self._is_direct()):
            return _NO_UNIT
        if not input.shape.numel():
            return NOTHING
        weights = weights_of(weight, self.kind, self._matrices)
        if isinstance(weights, Declined):
            return weights
        if weights.depth > MAX_EXACT_K:
            return _LONG
        weights.use_on(on.device)
        if scale is None:
            # Once, if several layers take it.
            step = self._in_scale
            values = kept(input, step or "tensor", pack, input, step, recycle=True)
            if isinstance(values, Declined):
                return values
            scale = values.scale
        else:
            values = Packed(input, scale)
        if overflows(weights.top, scale, weights.depth):
            return TOO_LARGE
        found = None if out_scale is None else weights.requantised(scale, out_scale, bias)
        mode = mode_of(int8=found is not None, bias=bias is not None, relu=self.relu)
        if found is not None:
            return self._product(values, weights, mode, *found, on)
        offset = None if bias is None else weights.bias(bias)
        factors = weights.factors(scale)
        result = self._product(values, weights, mode, factors.vectors, offset, on)
        weights.reuse(factors)
        return result if weight.dtype is torch.float32 else result.to(weight.dtype)

    def _on_cpu(self, *given: Unpack[Given]) -> torch.Tensor:
        """Compute on the CPU with the memory of device "pynq"."""
        input, weight, bias, *scales = given
        weights = weights_of(weight, self.kind, self._matrices)
        packed = None if isinstance(weights, Declined) else weights.on_cpu()
        offset = None if bias is None else memory.alias(bias)
        made = reference(self, memory.alias(input), memory.alias(weight), offset, packed, *scales)
        result: torch.Tensor = place(made)
        return result

    def _elsewhere(self, *given: Unpack[Given]) -> torch.Tensor:
        input, weight, bias, *scales = given
        if input.device.type == "meta":
            return self._float(input, weight, bias)
        if input.device.type != "cpu":
            raise NotImplementedError(
                f"{self!r} computes on device 'pynq' and on the CPU; found {input.device}: use the "
                "float layer there"
            )
        found = [columns(matrix) for matrix in self._matrices(weight)] if weight.numel() else []
        good = [p for p in found if p is not None]
        packed = good if good and len(good) == len(found) else None
        return reference(self, input, weight, bias, packed, *scales)

    def extra_repr(self) -> str:
        """Say what differs from the float layer."""
        step = "dynamic" if self._in_scale is None else f"{self._in_scale:.4g}"
        return f"{super().extra_repr()}, relu={self.relu}, in_scale={step}"


class StraightThrough(torch.autograd.Function):
    """The quantised layer forward, the float layer backward: the roundings count as nothing."""

    @staticmethod
    def forward(ctx: Any, layer: QuantisedLayer, *given: Unpack[Given]) -> torch.Tensor:
        """Compute in int8."""
        input, weight, _, scale, out_scale = given
        result = layer._compute(*given)
        if result.dtype is torch.int8:
            # Whole steps in floating point: the next layer finds the same int8 in them again.
            result = result.to(weight.dtype) * (out_scale or 1.0)
        ctx.layer, ctx.scale = layer, scale
        ctx.save_for_backward(input, weight, result if layer.relu else None)
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        """Differentiate the float layer; with ReLU, where the quantised result is positive."""
        input, weight, result = ctx.saved_tensors
        if input.dtype is torch.int8:
            input = input.to(weight.dtype) * ctx.scale
        if result is not None:
            grad = torch.ops.aten.threshold_backward(grad, result, 0)
        needed = list(ctx.needs_input_grad[1:4])
        return (None, *ctx.layer._gradients(grad, input, weight, needed), None, None)
