"""``verify.layers``: a model on the CPU against the same model on device "pynq", layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Literal

import torch

from .layer_report import LayerReport
from .layer_row import Row, compared, missing
from .layer_trace import Trace, traced

__all__ = ["LayerReport", "Row", "layers"]


def layers(
    model: torch.nn.Module,
    x: Any,
    *,
    kwargs: Mapping[str, Any] | None = None,
    backward: bool = False,
    loss: Callable[[Any], torch.Tensor] | None = None,
    reference: torch.nn.Module | Literal["float"] | None = None,
    tolerance: float = 0.0,
) -> LayerReport:
    """Run a model on the CPU and on device "pynq", and compare what every layer returns.

    Parameters
    ----------
    model : torch.nn.Module
        On any device; copies of it run, in its mode (training or not). It is not changed, nor are
        `x` and the states of the random generators, which both runs start from alike.
    x : torch.Tensor or tuple
        The input, or a tuple of positional arguments, on any device; arguments may be anything.
    kwargs : mapping, optional
        Keyword arguments of the model.
    backward : bool
        Compare gradients too: at the input of each layer, of each parameter, and of `x`.
    loss : callable, optional
        Given the model's output, returns the scalar to differentiate; implies `backward`. Default:
        the sum of every floating output times fixed random numbers.
    reference : torch.nn.Module or "float", optional
        What runs on the CPU. Default: `model`. ``"float"``: `model` with the layers that
        `quantize_` made floating again. A module with layers of the same names: e.g. the model
        before `quantize_`; where the model has a ReLU in a layer and the reference after it, the
        values after it are compared.
    tolerance : float
        What a mismatch is. 0, the default: any value that is not equal (NaN equals NaN, and -0.0
        equals 0.0), another dtype, another shape. Greater: a value that is further off than
        `tolerance` times the largest magnitude of the reference's tensor, or another shape.

    Returns
    -------
    LayerReport
        A row for every tensor that a layer returned, in the order of the run: children before the
        modules they are in. A module that returns what one of its children returned has no row.
        ``check()`` raises on a mismatch; ``print(report)`` shows the table. See `LayerReport` for
        what is compared with what.

    Examples
    --------
    >>> report = layers(torch.nn.Linear(4, 2), torch.ones(1, 4))
    >>> report.ok
    True
    """
    if not tolerance >= 0:
        raise ValueError(f"tolerance is {tolerance}; expected a number of at least 0")
    on_cpu, on_pl = _reference(model, reference).to("cpu"), deepcopy(model).to("pynq")
    args, named = x if isinstance(x, tuple) else (x,), dict(kwargs or {})
    backward = backward or loss is not None
    expected = traced(on_cpu, "cpu", args, named, backward=backward, loss=loss)
    found = traced(on_pl, "pynq", args, named, backward=backward, loss=loss)
    rows = tuple(_rows(found, expected, _fused(on_pl, on_cpu), tolerance))
    return LayerReport(type(model).__name__, rows, tolerance, _is_int8(model, reference))


def _is_int8(model: torch.nn.Module, reference: object) -> bool:
    """Whether int8 alone makes a difference; quantised layers agree with themselves to the bit."""
    from pynq_torch.nn.layer import QuantisedLayer
    from pynq_torch.torch_device.flags import matmul

    quantised = any(isinstance(module, QuantisedLayer) for module in model.modules())
    return matmul.allow_int8 or (quantised and reference is not None)


def _reference(
    model: torch.nn.Module, reference: torch.nn.Module | Literal["float"] | None
) -> torch.nn.Module:
    if reference is None:
        return deepcopy(model)
    if isinstance(reference, torch.nn.Module):
        return deepcopy(reference)
    if reference == "float":
        from pynq_torch.nn.convert import as_float

        return as_float(deepcopy(model))
    raise TypeError(f"reference is {reference!r}; expected a torch.nn.Module, 'float' or None")


def _fused(model: torch.nn.Module, reference: torch.nn.Module) -> frozenset[str]:
    """Return the layers with a ReLU in them whose counterpart has it after the layer."""
    others = dict(reference.named_modules())
    return frozenset(
        name
        for name, module in model.named_modules()
        if getattr(module, "relu", False) is True
        and getattr(others.get(name), "relu", None) is None
    )


def _rows(found: Trace, expected: Trace, fused: frozenset[str], tolerance: float) -> list[Row]:
    rows = []
    theirs = {seen.key: seen for seen in expected.seen}
    mine = {seen.key: seen for seen in found.seen}
    for key, seen in theirs.items():
        if key not in mine:
            rows.append(missing(seen, "only the reference has it"))
        elif seen.stage == "forward":
            rows.append(compared(mine[key], seen, tolerance, relu=seen.name in fused))
        elif mine[key].kind == seen.kind or mine[key].kind != "Identity":
            rows.append(compared(mine[key], seen, tolerance))
    rows += [missing(seen, "the reference has none") for k, seen in mine.items() if k not in theirs]
    return rows
