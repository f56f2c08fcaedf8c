"""LeNet-5, the network with which convolution learnt to read, and what each of its layers costs."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from pynq_torch import events
from pynq_torch.events import OperatorCall
from pynq_torch.models.run_model import modelled
from pynq_torch.tables import Table
from pynq_torch.timing import Duration, seconds_text, where_measured

__all__ = ["SIZE", "LayerCost", "cost_table", "layer_costs", "lenet5", "places"]

#: Rows and columns of the images that it reads.
SIZE = 32


def lenet5(classes: int = 10, seed: int = 0) -> nn.Sequential:
    """Return LeNet-5 on the CPU, untrained, with layers by name.

    Parameters
    ----------
    classes : int
        Columns of the result.
    seed : int
        Seed of the weights.

    Returns
    -------
    torch.nn.Sequential
        float32 [N, 1, 32, 32] to [N, classes], logits; 61,706 parameters for 10 classes.

    Notes
    -----
    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner: "Gradient-based learning applied to document
    recognition", Proceedings of the IEEE 86 (11), 1998, figure 2. As is usual today: ReLU in place
    of tanh, maxima in place of averages with a weight, all maps connected to all, and logits with
    cross-entropy in place of radial basis functions.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            OrderedDict(
                conv1=nn.Conv2d(1, 6, 5),  # 32 x 32 -> 28 x 28
                relu1=nn.ReLU(),
                pool1=nn.MaxPool2d(2),  # -> 14 x 14
                conv2=nn.Conv2d(6, 16, 5),  # -> 10 x 10
                relu2=nn.ReLU(),
                pool2=nn.MaxPool2d(2),  # -> 5 x 5
                flatten=nn.Flatten(),
                full3=nn.Linear(16 * 5 * 5, 120),
                relu3=nn.ReLU(),
                full4=nn.Linear(120, 84),
                relu4=nn.ReLU(),
                full5=nn.Linear(84, classes),
            )
        )


# ---- what the layers cost ------------------------------------------------------------------------


@dataclass(frozen=True)
class LayerCost:
    """What one layer took in one direction.

    Attributes
    ----------
    name : str
        The layer's; ``"loss"`` for cross-entropy.
    stage : {"forward", "backward"}
        The direction.
    calls : tuple of OperatorCall
        The operators that arrived at the device.
    measured : Duration
        Wall clock of these calls, on whatever board is in use.
    model : Duration
        What the latency models of the kernels give for their runs at the PL's clock; the CPU's
        share is not in it.
    """

    name: str
    stage: str
    calls: tuple[OperatorCall, ...]
    measured: Duration
    model: Duration

    @property
    def on_pl(self) -> tuple[str, ...]:
        """Operators that the PL did."""
        return tuple(dict.fromkeys(_short(c) for c in self.calls if c.where == "PL"))

    @property
    def on_cpu(self) -> tuple[str, ...]:
        """Operators that the CPU did."""
        return tuple(dict.fromkeys(_short(c) for c in self.calls if c.where != "PL"))


def _short(call: OperatorCall) -> str:
    return call.op.removeprefix("aten::")


def _cost(name: str, stage: str, calls: Iterable[OperatorCall], clock_hz: float) -> LayerCost:
    calls = tuple(calls)
    measured = Duration(sum(c.seconds for c in calls), "measured", name, where_measured())
    runs = [run for call in calls for run in call.kernels]
    return LayerCost(name, stage, calls, measured, modelled(runs, clock_hz, name))


def layer_costs(
    model: nn.Sequential, images: torch.Tensor, labels: torch.Tensor, clock_hz: float
) -> list[LayerCost]:
    """Do one training step layer by layer, without the optimiser, and say what each layer cost.

    Parameters
    ----------
    model : torch.nn.Sequential
        On device "pynq"; gradients are added to those of its parameters.
    images : torch.Tensor
        What the model reads, on device "pynq".
    labels : torch.Tensor
        int64 [N], on device "pynq".
    clock_hz : float
        Clock of the PL, for the model: ``overlay.clock_hz``.

    Returns
    -------
    list of LayerCost
        All layers and the loss forwards, and then backwards in reverse. The first layer has no
        gradient of its input, as in any training.
    """
    costs: list[LayerCost] = []
    value = images
    ends: list[tuple[str, torch.Tensor, torch.Tensor]] = []
    for name, layer in (*model.named_children(), ("loss", None)):
        # A leaf of its own, so that the gradient of each layer can be asked for by itself.
        begin = value.detach().requires_grad_(bool(ends))
        with events.operators.collected() as calls:
            cost_of = nn.functional.cross_entropy
            value = cost_of(begin, labels) if layer is None else layer(begin)
        costs.append(_cost(name, "forward", calls, clock_hz))
        ends.append((name, begin, value))
    gradient: torch.Tensor | None = None
    for name, begin, value in reversed(ends):
        with events.operators.collected() as calls:
            torch.autograd.backward(value, gradient)
        costs.append(_cost(name, "backward", calls, clock_hz))
        gradient = begin.grad
    return costs


def cost_table(costs: Iterable[LayerCost]) -> Table:
    """Return the costs as a table; each column of times has one provenance, in its header."""
    costs = list(costs)
    header = ["layer", "stage", "on the PL", "on the CPU"]
    header += [costs[0].measured.provenance, costs[0].model.provenance] if costs else []
    rows = [
        [
            *(cost.name, cost.stage, ", ".join(cost.on_pl), ", ".join(cost.on_cpu)),
            seconds_text(cost.measured.seconds) if cost.calls else "",
            seconds_text(cost.model.seconds) if cost.on_pl else "",
        ]
        for cost in costs
    ]
    return Table(header, rows)


def places(calls: Iterable[OperatorCall]) -> Table:
    """Return where each operator of some calls was done, how often, and if not on the PL, why."""
    counts = Counter((_short(call), call.where, call.reason) for call in calls)
    rows = [[op, where, n, why] for (op, where, why), n in counts.items()]
    rows.sort(key=lambda row: (row[1] != "PL", row[0]))  # the PL first
    return Table(["operator", "where", "calls", "why not on the PL"], rows)
