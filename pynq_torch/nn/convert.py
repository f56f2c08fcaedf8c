"""Turning the layers of a model into quantised ones, and calibrating them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar

import torch

from pynq_torch.ops.quantise import scale_of

from .conv import Conv2d
from .layer import QuantisedLayer
from .linear import Linear
from .sequential import Sequential

__all__ = ["Skip", "as_float", "quantize_"]

_CLASSES: dict[type[torch.nn.Module], type[torch.nn.Module]] = {
    torch.nn.Linear: Linear,
    torch.nn.Conv2d: Conv2d,
}
#: A name or pattern, a type, or a function of name and module.
Skip = str | type[torch.nn.Module] | Callable[[str, torch.nn.Module], bool]
M = TypeVar("M", bound=torch.nn.Module)


def quantize_(model: M, example: Any = None, *, skip: Skip | Iterable[Skip] = ()) -> M:
    """Make the ``Linear`` and ``Conv2d`` layers of a model multiply in int8, in place.

    Parameters
    ----------
    model : torch.nn.Module
        On any device, in training or not. Its layers become `pynq_torch.nn.Linear` and
        `pynq_torch.nn.Conv2d`: the same objects under the same names with the same parameters, so
        that optimisers, hooks and ``state_dict`` stay as they are. Subclasses of torch's layers
        are left alone: what they do with their weights is unknown.
    example : Any, optional
        Input to calibrate with: a tensor, a tuple of arguments, a dict of keyword arguments, or a
        list or other iterable of these, several inputs. The model runs on it, in evaluation and
        without gradients, and the largest magnitude that arrives at each layer fixes the step of
        its input (``in_scale``). Without, and for layers that it does not reach, each input
        has a step of its own (dynamic quantisation).
    skip : str, type or callable, or an iterable of these
        Layers to leave alone: by name (``"head"``, which covers what is below; patterns such as
        ``"blocks.*.fc1"``), by type, or by ``predicate(name, module)``.

    Returns
    -------
    torch.nn.Module
        `model`.

    Raises
    ------
    ValueError
        There is nothing to quantise; a name in `skip` fits no module; values that arrive at a layer
        are not finite.
    TypeError
        `skip` is none of these.

    Notes
    -----
    In ``torch.nn.Sequential`` a ReLU right after a layer becomes part of it, and an ``Identity``
    takes its place; not where the layer occurs a second time in the model, or where one of them
    has hooks that the other would no longer be seen by. Calibrated layers pass int8 to each other
    there, see `pynq_torch.nn.Sequential`.

    Calibration is part of the pickled model, not of ``state_dict``.

    Examples
    --------
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> quantize_(model, torch.ones(1, 4))
    Sequential(
      (0): Linear(in_features=4, out_features=8, bias=True, relu=True, in_scale=0.007874)
      (1): Identity()
      (2): Linear(in_features=8, out_features=2, bias=True, relu=False, in_scale=...)
    )
    """
    chosen = _chosen(model, skip)
    _convert(chosen, None if example is None else _calibrate(model, chosen, example))
    _fuse(model, set(chosen.values()))
    return model


def _convert(chosen: Mapping[str, torch.nn.Module], scales: Mapping[str, float] | None) -> None:
    for name, module in chosen.items():
        if not isinstance(module, QuantisedLayer):
            module.__class__ = _CLASSES[type(module)]
        assert isinstance(module, QuantisedLayer)
        if scales is not None:
            module.in_scale = scales.get(name)


def as_float(model: torch.nn.Module) -> torch.nn.Module:
    """Make the quantised layers of a model floating again, in place.

    A layer's ReLU becomes a hook of it, where it has one.
    """
    floats = {own: theirs for theirs, own in _CLASSES.items()} | {Sequential: torch.nn.Sequential}
    for module in model.modules():
        if isinstance(module, QuantisedLayer) and module.relu:
            module.register_forward_hook(lambda module, args, result: result.relu())
        if type(module) in floats:
            module.__class__ = floats[type(module)]
    return model


# ---- which layers --------------------------------------------------------------------------------


def _chosen(model: torch.nn.Module, skip: Skip | Iterable[Skip]) -> dict[str, torch.nn.Module]:
    given = [skip] if isinstance(skip, (str, type)) or callable(skip) else list(skip)
    skips = [_skip(model, item) for item in given]
    named = dict(model.named_modules())
    chosen = {
        name: module
        for name, module in named.items()
        if (type(module) in _CLASSES or isinstance(module, QuantisedLayer))
        and not any(matches(name, module) for matches in skips)
    }
    if not chosen:
        kinds = ", ".join(sorted({type(m).__name__ for m in named.values()}))
        raise ValueError(
            "the model has no torch.nn.Linear or torch.nn.Conv2d that is not skipped; "
            f"found {kinds}"
        )
    return chosen


def _skip(model: torch.nn.Module, item: Any) -> Callable[[str, torch.nn.Module], bool]:
    if isinstance(item, str):
        names = [name for name, _ in model.named_modules()]
        if not any(_covers(item, name) for name in names):
            listed = ", ".join(n for n in names if n)
            raise ValueError(f"skip names {item!r}, but the model has: {listed}")
        return lambda name, module: _covers(item, name)
    if isinstance(item, type):
        kind = item
        return lambda name, module: isinstance(module, kind)
    if callable(item):
        return lambda name, module: bool(item(name, module))
    raise TypeError(f"skip is {item!r}; expected a name, a type or a function of name and module")


def _covers(pattern: str, name: str) -> bool:
    parts = name.split(".")
    return any(fnmatchcase(".".join(parts[: i + 1]), pattern) for i in range(len(parts)))


def _passes(module: torch.nn.Module) -> bool:
    """Whether there is a quantised layer in a container, or in containers in it."""
    return any(
        isinstance(child, QuantisedLayer)
        or (type(child) in (torch.nn.Sequential, Sequential) and _passes(child))
        for child in module.children()
    )


# ---- ReLU ----------------------------------------------------------------------------------------


def _fuse(model: torch.nn.Module, chosen: set[torch.nn.Module]) -> None:
    """Make each ReLU part of the layer before it, and containers such as pass int8 on."""
    occurs = Counter(module for _, module in model.named_modules(remove_duplicate=False))
    passing = (torch.nn.Sequential.forward, Sequential.forward)
    for container in list(model.modules()):
        if not isinstance(container, torch.nn.Sequential) or type(container).forward not in passing:
            continue
        for index in range(len(container) - 1):
            layer, following = container[index], container[index + 1]
            if (
                isinstance(layer, QuantisedLayer)
                and layer in chosen
                and occurs[layer] == 1
                and type(following) is torch.nn.ReLU
                and not _has_hooks(layer)
                and not _has_hooks(following)
            ):
                layer.relu = True
                container[index + 1] = torch.nn.Identity().train(following.training)
    for module in model.modules():
        if type(module) is torch.nn.Sequential and _passes(module):
            module.__class__ = Sequential


def _has_hooks(module: torch.nn.Module) -> bool:
    names = (
        *("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),
        "_forward_hooks_with_kwargs",
    )
    return any(vars(module).get(name) for name in names)


# ---- calibration ---------------------------------------------------------------------------------


def _calibrate(
    model: torch.nn.Module, chosen: Mapping[str, torch.nn.Module], example: Any
) -> dict[str, float]:
    """Run the model and return the step of each layer's input."""
    largest: dict[str, float] = {}
    inputs = list(_inputs(example))
    if not inputs:
        raise ValueError("example is empty; expected at least one input to calibrate with")
    with _observed(model, chosen, largest), torch.no_grad():
        for args, kwargs in inputs:
            model(*args, **kwargs)
    for name, value in largest.items():
        if not value < float("inf"):
            raise ValueError(
                f"the input of layer {name!r} is infinite or NaN when the model runs on the "
                "example; expected finite values: nothing was changed"
            )
    return {name: max(scale_of(v), torch.finfo(torch.float32).tiny) for name, v in largest.items()}


def _inputs(example: Any) -> Iterator[tuple[Sequence[Any], Mapping[str, Any]]]:
    if isinstance(example, torch.Tensor):
        yield (example,), {}
    elif isinstance(example, tuple):
        yield example, {}
    elif isinstance(example, Mapping):
        yield (), example
    elif isinstance(example, Iterable):
        for item in example:
            if isinstance(item, (torch.Tensor, tuple, Mapping)):
                yield from _inputs(item)
            else:
                raise TypeError(
                    f"example has {type(item).__name__} in it; expected tensors, tuples of "
                    "arguments or dicts of keyword arguments"
                )
    else:
        raise TypeError(
            f"example is {type(example).__name__}; expected a tensor, a tuple of arguments, a dict "
            "of keyword arguments, or an iterable of these"
        )


@contextmanager
def _observed(
    model: torch.nn.Module, chosen: Mapping[str, torch.nn.Module], largest: dict[str, float]
) -> Iterator[None]:
    """Note the largest magnitude that arrives at each layer; evaluation meanwhile."""
    modes = {module: module.training for module in model.modules()}
    steps = {m: m.in_scale for m in chosen.values() if isinstance(m, QuantisedLayer)}
    handles = []

    def note(name: str, module: torch.nn.Module, args: tuple[Any, ...]) -> None:
        values = args[0].detach()
        found = float(values.abs().max()) if values.numel() else 0.0
        # Also takes a NaN, and keeps it.
        before = largest.get(name, 0.0)
        largest[name] = before if before >= found or before != before else found

    try:
        for layer in steps:
            layer.in_scale = None  # otherwise int8 of the earlier calibration arrives
        for name, module in chosen.items():
            handles.append(module.register_forward_pre_hook(partial(note, name)))
        model.eval()
        yield
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes.items():
            module.training = training
        for layer, step in steps.items():
            layer.in_scale = step
