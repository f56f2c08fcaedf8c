"""What PT2E (torchao) quantises for kernel ``net``, and how: int8 throughout."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.fx import GraphModule, Node

from pynq_torch.errors import needs

from .layout import described
from .names import ACTIVATIONS, PRODUCTS, SHARING, name_of
from .norms import fold_norms


@contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Keep loggers from warning, e.g. that libraries for GPUs cannot be loaded."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


with needs("torchao", "Quantising a model"), _quiet("torchao", "torch.utils._pytree"):
    from torchao.quantization.pt2e.observer import MinMaxObserver, PerChannelMinMaxObserver
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import (
        QuantizationAnnotation,
        QuantizationSpec,
        Quantizer,
        SharedQuantizationSpec,
    )

__all__ = ["PynqQuantizer", "quantise"]

_INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
#: The least scale, so that a tensor that is 0 throughout has one.
_EPS = 2.0**-20
ACTIVATION = QuantizationSpec(
    torch.int8, MinMaxObserver.with_args(eps=_EPS), -128, 127, torch.per_tensor_affine
)
WEIGHT = QuantizationSpec(
    torch.int8,
    PerChannelMinMaxObserver.with_args(eps=_EPS),
    *(-127, 127, torch.per_channel_symmetric, 0),
)
_KEY = "quantization_annotation"
_POOLS = ("aten.avg_pool2d.default", "aten.adaptive_avg_pool2d.default", "aten.mean.dim")
_CAT, _ADDS = "aten.cat.default", ("aten.add.Tensor", "aten.add_.Tensor")
_KNOWN = {*PRODUCTS, *ACTIVATIONS, *SHARING, *_POOLS, _CAT, *_ADDS}


class PynqQuantizer(Quantizer):
    """A PT2E quantizer for kernel ``net``: weights int8 by channel, activations int8 by tensor.

    Layers that the kernel has are annotated, with a ReLU or clamp behind them as part of them; all
    else stays float. The last layer gives float32.
    """

    def annotate(self, model: GraphModule) -> GraphModule:
        """Annotate the nodes of an exported graph, in place."""
        for node in model.graph.nodes:
            if node.op != "call_function" or _KEY in node.meta or not _real(node):
                continue
            name = name_of(node)
            if name in PRODUCTS:
                self._product(node)
            elif name == _CAT:
                self._cat(node)
            elif name in SHARING:
                source = node.args[0]
                shared = SharedQuantizationSpec((source, node))
                self._mark(node, {source: ACTIVATION}, shared)
            elif name in _POOLS or name in ACTIVATIONS:
                self._mark(node, {node.args[0]: ACTIVATION}, ACTIVATION)
            elif name in _ADDS and _alike(node.args):
                self._ends(node, dict.fromkeys(node.args[:2], ACTIVATION), ACTIVATION)
        return model

    def validate(self, model: GraphModule) -> None:
        """Accept every model: what is not annotated stays float."""

    def _product(self, node: Node) -> None:
        x, weight = node.args[:2]
        assert isinstance(x, Node) and isinstance(weight, Node)
        # A result that nothing in int8 reads is float32: no digit of it is lost.
        needed = any(name_of(user) in _KNOWN for user in node.users)
        self._ends(node, {x: ACTIVATION, weight: WEIGHT}, ACTIVATION if needed else None)

    def _ends(self, node: Node, inputs: dict[Any, Any], output: Any) -> None:
        """Annotate a node and the activation that is computed with it."""
        users = list(node.users)
        if output is not None and len(users) == 1 and name_of(users[0]) in ACTIVATIONS:
            self._mark(users[0], {}, output)
            output = None
        self._mark(node, inputs, output)

    def _cat(self, node: Node) -> None:
        tensors = node.args[0]
        assert isinstance(tensors, (list, tuple))
        shared = SharedQuantizationSpec((tensors[0], node))
        # The one that others share comes first: torchao takes them in this order.
        inputs = {tensors[0]: ACTIVATION, **dict.fromkeys(tensors[1:], shared)}
        inputs[tensors[0]] = ACTIVATION
        self._mark(node, inputs, shared)

    @staticmethod
    def _mark(node: Node, inputs: dict[Any, Any], output: Any) -> None:
        node.meta[_KEY] = QuantizationAnnotation(
            input_qspec_map=inputs, output_qspec=output, _annotated=True
        )


def _real(node: Node) -> bool:
    """Whether a node makes float32 of nothing but float32: indices and masks have no int8."""
    values = [one.meta.get("val") for one in (node, *node.all_input_nodes)]
    return all(isinstance(v, torch.Tensor) and v.dtype is torch.float32 for v in values)


def _alike(operands: tuple[Any, ...]) -> bool:
    """Whether two operands are tensors of one shape."""
    shapes = [o.meta["val"].shape for o in operands[:2] if isinstance(o, Node) and "val" in o.meta]
    return len(shapes) == 2 and shapes[0] == shapes[1] and operands[0] is not operands[1]


def quantise(
    model: torch.nn.Module, example: tuple[torch.Tensor, ...], batches: Iterable[Any]
) -> GraphModule:
    """Return a model quantised by PT2E, with the ranges that its activations have.

    Parameters
    ----------
    model : torch.nn.Module
        In evaluation mode.
    example : tuple of torch.Tensor
        Its inputs.
    batches : iterable
        Inputs to calibrate with: tensors, or tuples of them.

    Raises
    ------
    ValueError
        There are none, or one has another shape or type than the example, or NaN in it; or the
        model is not float32.
    """
    exported = _exported(model, example)
    fold_norms(exported)
    prepared = prepare_pt2e(exported, PynqQuantizer())
    count = 0
    with torch.no_grad():
        for batch in _watched(batches):
            each = batch if isinstance(batch, (tuple, list)) else (batch,)
            given = tuple(v.cpu() if isinstance(v, torch.Tensor) else v for v in each)
            _check(count, given, example)
            for images in zip(*map(_like, given, example), strict=True):
                prepared(*images)
            count += 1
    if not count:
        raise ValueError(
            "calibrate is empty; expected at least one batch of inputs. An iterator is used up by "
            "the first compilation: pass a list"
        )
    converted: GraphModule = convert_pt2e(prepared)
    return converted


def _exported(model: torch.nn.Module, example: tuple[torch.Tensor, ...]) -> GraphModule:
    kinds = {t.dtype for t in (*model.parameters(), *example) if t.dtype not in _INTEGERS}
    if kinds - {torch.float32}:
        names = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
        raise ValueError(f"the model or its input is {names}; int8 is made of float32: .float()")
    return torch.export.export(model, example).module()


def _check(number: int, given: tuple[Any, ...], example: tuple[torch.Tensor, ...]) -> None:
    """Raise where a batch is not what the model takes: torch would say so of an inner node."""
    kinds, expected = list(map(described, given)), list(map(described, example))
    if kinds != expected:
        raise ValueError(
            f"batch {number} of calibrate is {', '.join(kinds)}; expected {', '.join(expected)} as "
            "the example, with any number N of images. calibrate is a list of batches"
        )
    if any(not value.isfinite().all() for value in given):
        raise ValueError(f"batch {number} of calibrate has NaN or infinity in it")


def _like(batch: torch.Tensor, example: torch.Tensor) -> list[torch.Tensor]:
    """Cut a batch into pieces of the size of the example; the last repeats what it lacks."""
    size = len(example)
    index = torch.arange(-(-len(batch) // size) * size) % len(batch)
    return [batch[index[first : first + size]] for first in range(0, len(index), size)]


def _watched(batches: Iterable[Any]) -> Iterable[Any]:
    """Return the batches with a progress bar, where tqdm is installed."""
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        return batches
    bar: Iterable[Any] = tqdm(batches, desc="calibrate", leave=False, delay=1)
    return bar
