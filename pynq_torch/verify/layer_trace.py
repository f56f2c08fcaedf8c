"""What the modules of a model return, call by call, and the gradients that come back to them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pynq_torch import events
from pynq_torch.torch_device import backend

__all__ = ["Seen", "Trace", "traced"]


def parts(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in a nested structure, with where they are.

    Besides what pytree knows, dataclasses, mappings and subclasses of lists and tuples are entered.

    Examples
    --------
    >>> list(parts((1, {"a": None})))
    [('[0]', 1), ("[1]['a']", None)]
    """
    for keys, leaf in pytree.tree_flatten_with_path(value)[0]:
        here = path + pytree.keystr(keys)
        if isinstance(leaf, Mapping):
            yield from parts(dict(leaf), here)
        elif isinstance(leaf, (tuple, list)):
            yield from parts(list(leaf), here)
        elif dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            for entry in dataclasses.fields(leaf):
                yield from parts(getattr(leaf, entry.name), f"{here}.{entry.name}")
        else:
            yield here, leaf


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return tuples, lists and dicts with `function` applied to the values in them."""

    def leaf(value: Any) -> Any:
        if isinstance(value, dict):
            return mapped(dict(value), function)
        if isinstance(value, (tuple, list)):
            return type(value)(mapped(list(value), function))
        return function(value)

    return pytree.tree_map(leaf, value)


@dataclass(slots=True)
class Seen:
    """A value that was seen in a run; see `layer_row.Row` for its first fields."""

    name: str  # "" for the model itself
    call: int
    kind: str
    stage: str
    part: str
    value: Any  # a tensor, copied to the CPU, or what it was
    step: float | None = None  # of int8 that is passed between quantised layers
    where: str = ""  # by the operators that ran in the module

    @property
    def key(self) -> tuple[str, int, str, str]:
        """What tells it from others in a run, and is the same in another run."""
        return self.name, self.call, self.stage, self.part


@dataclass
class _Frame:
    """A module that is being called."""

    name: str
    call: int
    places: list[str] = field(default_factory=list)


class Trace:
    """A run of a model: `seen` has the values in the order in which they were."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._calls: Counter[str] = Counter()
        self._frames: list[_Frame] = []
        # Tensors of the run, kept so that their ids stay theirs.
        self._kept: list[torch.Tensor] = []
        self._returned: set[int] = set()
        self._steps: dict[int, float] = {}
        self._takers: dict[tuple[int, int], list[tuple[Seen, bool]]] = {}

    def note_operator(self, call: events.OperatorCall) -> None:
        """Note where an operator ran, for the module that is being called."""
        # Copies compute nothing, and have no reason to be where they are.
        if self._frames and (call.where == "PL" or call.reason):
            self._frames[-1].places.append(call.where)

    def forget(self) -> None:
        """Let go of the tensors of the run; what was seen of them stays."""
        self._kept.clear()
        self._takers.clear()

    # ---- forward -------------------------------------------------------------------------------

    def enter(self, name: str, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        """Begin a module."""
        self._calls[name] += 1
        frame = _Frame(name, self._calls[name])
        self._frames.append(frame)
        given = list(parts((*args, *kwargs.values())))
        taken = [(p, v) for p, v in given if isinstance(v, torch.Tensor) and v.requires_grad]
        kind, container = type(module).__name__, any(module.children())
        for part, value in taken:
            which = part if len(taken) > 1 else ""
            self._await(value, Seen(name, frame.call, kind, "grad input", which, None), container)

    def leave(
        self, name: str, module: torch.nn.Module, args: Any, kwargs: Any, result: Any
    ) -> None:
        """End a module."""
        frame = self._frames.pop()
        found = list(parts(result))
        tensors = [value for _, value in found if isinstance(value, torch.Tensor)]
        # A container that returns what a module in it returned has no row of its own.
        known = set(self._returned) if any(module.children()) else set()
        step = kwargs.get("out_scale")
        if step is None:
            given = (id(v) for _, v in parts((*args, *kwargs.values())))
            step = next((self._steps[i] for i in given if i in self._steps), None)
        for tensor in tensors:
            self._kept.append(tensor)
            self._returned.add(id(tensor))
            if tensor.dtype is torch.int8 and step is not None:
                self._steps.setdefault(id(tensor), step)
        where = " + ".join(sorted(set(frame.places), reverse=True))
        for part, value in found:
            if id(value) in known:
                continue
            seen = Seen(name, frame.call, type(module).__name__, "forward", part, _copied(value))
            seen.step, seen.where = self._steps.get(id(value)), where
            self.seen.append(seen)

    # ---- backward ------------------------------------------------------------------------------

    def _await(self, tensor: torch.Tensor, seen: Seen, container: bool) -> None:
        """Note the gradient at a tensor when it comes, for all that took it; the last one first.

        A container counts where no module in it took the tensor.
        """
        # An operator in place makes another value of the same tensor.
        key = id(tensor), tensor._version
        if key in self._takers:
            self._takers[key].append((seen, container))
            return
        takers = self._takers[key] = [(seen, container)]
        self._kept.append(tensor)

        def come(grad: torch.Tensor) -> None:
            layers = [taker for taker, container in takers if not container]
            for taker in reversed(layers or [seen]):
                taker.value = _copied(grad)
                self.seen.append(taker)

        tensor.register_hook(come)  # type: ignore[no-untyped-call]

    def await_parameter(self, name: str, parameter: torch.Tensor, kind: str) -> None:
        """Note the gradient of a parameter when it comes."""
        owner, _, own = name.rpartition(".")

        def come(parameter: torch.Tensor) -> None:
            self.seen.append(Seen(owner, 1, kind, "grad", own, _copied(parameter.grad)))

        parameter.register_post_accumulate_grad_hook(come)  # type: ignore[no-untyped-call]


def _own(value: Any, device: str, backward: bool) -> Any:
    """Return a copy of an argument on `device`, of which a gradient can be asked."""
    if not isinstance(value, torch.Tensor):
        return value
    made = value.detach().clone().to(device)
    return made.requires_grad_(backward and made.is_floating_point())


def traced(
    model: torch.nn.Module,
    device: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    backward: bool,
    loss: Callable[[Any], torch.Tensor] | None,
) -> Trace:
    """Run a model, a copy on `device` that may be changed, and return what its modules returned.

    Copies of the arguments are used, on `device`. With `backward` the output's `loss` is
    differentiated too.
    """
    trace = Trace()
    for name, module in model.named_modules():
        module.register_forward_pre_hook(partial(trace.enter, name), with_kwargs=True)
        module.register_forward_hook(partial(trace.leave, name), with_kwargs=True)
    for name, parameter in model.named_parameters():
        if backward and parameter.requires_grad:
            parameter.grad = None
            owner = model.get_submodule(name.rpartition(".")[0])
            trace.await_parameter(name, parameter, type(owner).__name__)

    own = partial(_own, device=device, backward=backward)
    own_args, own_kwargs = mapped((tuple(args), dict(kwargs)), own)
    events.operators.subscribe(trace.note_operator)
    try:
        with _same_random_numbers(), torch.set_grad_enabled(backward):
            result = model(*own_args, **own_kwargs)
            if backward:
                _differentiate(result, loss, device)
    finally:
        events.operators.unsubscribe(trace.note_operator)
        trace.forget()
    return trace


def _differentiate(result: Any, loss: Callable[[Any], torch.Tensor] | None, device: str) -> None:
    if loss is not None:
        loss(result).backward()  # type: ignore[no-untyped-call]
        return
    outputs = [v for _, v in parts(result) if isinstance(v, torch.Tensor) and v.requires_grad]
    if not outputs:
        raise ValueError(
            "no output of the model depends on a floating input or a parameter with a gradient; "
            "expected one, or backward=False"
        )
    random = torch.Generator().manual_seed(0)
    grads = [torch.randn(v.shape, generator=random).to(v.dtype).to(device) for v in outputs]
    torch.autograd.backward(outputs, grads)


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Give the block the same random numbers wherever it runs, and leave the generators alone."""
    states = torch.get_rng_state(), backend.get_rng_state()
    try:
        backend.set_rng_state(states[0])
        yield
    finally:
        torch.set_rng_state(states[0])
        backend.set_rng_state(states[1])


def _copied(value: Any) -> Any:
    """Return a copy of a tensor as it is now: later code may write to it."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().to("cpu", copy=True)
