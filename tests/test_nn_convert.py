"""quantize_: which layers, calibration, ReLU; and the int8 that layers pass to each other."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn_reference import reference

import pynq_torch
from pynq_torch import nn, quantize_
from pynq_torch.overlay import ensure_event_loop

pytestmark = pytest.mark.timeout(280)


@pytest.fixture(scope="module", params=["", "gemm", "matrix_mult"])
def overlay(request: pytest.FixtureRequest) -> Iterator[str]:
    board = pynq_torch.use_board("csim", strict_cache=True)
    ensure_event_loop()
    if request.param:
        pynq_torch.load(request.param)
    yield request.param
    board.close()


def small_cnn(seed: int = 0) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2, padding=1),
        torch.nn.Conv2d(6, 9, 3),
        torch.nn.Flatten(),
        torch.nn.ReLU(),
        torch.nn.Dropout(),
        torch.nn.Linear(81, 10),
    ).eval()


def watch(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return a dict that each forward fills with what every module returned."""
    seen: dict[str, torch.Tensor] = {}
    for name, module in model.named_modules():

        def note(module: Any, args: Any, result: torch.Tensor, name: str = name) -> None:
            seen[name] = result.detach().cpu().clone()

        module.register_forward_hook(note)
    return seen


# ---- int8 between layers -------------------------------------------------------------------------


@torch.no_grad()
def test_int8_is_passed_and_every_bit_is_known(overlay: str) -> None:
    plain = small_cnn()
    x = torch.randn(4, 1, 8, 8)
    model = quantize_(copy.deepcopy(plain), x)
    steps = {name: m.in_scale for name, m in model.named_modules() if hasattr(m, "in_scale")}
    assert list(steps) == ["0", "3", "7"]
    assert steps["0"] == float(x.abs().max()) / 127
    seen = watch(model)
    found = model.to("pynq")(x.to("pynq")).cpu()

    a = reference(plain[0], x, step=steps["0"], out_step=steps["3"], relu=True)
    pooled = torch.nn.functional.max_pool2d(a.float(), 2, padding=1).to(torch.int8)
    b = reference(plain[3], pooled, step=steps["3"], out_step=steps["7"])
    flat = b.flatten(1).clamp(min=0)
    expected = reference(plain[7], flat, step=steps["7"])
    wanted = {"0": a, "1": a, "2": pooled, "3": b, "4": b.flatten(1), "5": flat, "6": flat}
    for name, values in wanted.items():
        assert seen[name].dtype is torch.int8, name
        assert torch.equal(seen[name], values), name
    assert torch.equal(found, expected)
    assert torch.equal(seen["7"], expected)
    # Not far from the float model either.
    assert float((found - plain(x)).abs().max()) < 0.05 * float(plain(x).abs().max())


@given(
    widths=st.lists(st.integers(1, 12), min_size=3, max_size=5),
    relus=st.lists(st.booleans(), min_size=5, max_size=5),
    batch=st.integers(1, 3),
    seed=st.integers(0, 99),
)
@settings(max_examples=25)
@torch.no_grad()
def test_chains_of_linear(
    overlay: str, widths: list[int], relus: list[bool], batch: int, seed: int
) -> None:
    torch.manual_seed(seed)
    modules: list[torch.nn.Module] = []
    for k, n, relu in zip(widths, widths[1:], relus, strict=False):
        modules += [torch.nn.Linear(k, n), *([torch.nn.ReLU()] if relu else [])]
    plain = torch.nn.Sequential(*modules)
    x = torch.randn(batch, widths[0])
    model = quantize_(copy.deepcopy(plain), x * 0.8)  # so that something is cut off
    layers = [m for m in model if isinstance(m, nn.Linear)]
    floats = [m for m in plain if isinstance(m, torch.nn.Linear)]
    value = x
    for i, (layer, float_layer) in enumerate(zip(layers, floats, strict=True)):
        after = layers[i + 1].in_scale if i + 1 < len(layers) else None
        options = {"step": layer.in_scale, "out_step": after, "relu": relus[i]}
        value = reference(float_layer, value, **options)
    assert torch.equal(model(x), value)
    assert torch.equal(model.to("pynq")(x.to("pynq")).cpu(), value)
    with torch.enable_grad():
        assert torch.equal(model(x.to("pynq")).detach().cpu(), value)


@torch.no_grad()
def test_containers_in_containers(overlay: str) -> None:
    flat = small_cnn()
    children = list(flat)
    nested = torch.nn.Sequential(
        torch.nn.Sequential(*children[:2]),
        torch.nn.Sequential(torch.nn.Sequential(*children[2:3]), torch.nn.Sequential()),
        torch.nn.Sequential(torch.nn.Sequential(*children[3:4]), *children[4:6]),
        torch.nn.Sequential(torch.nn.Sequential(*children[6:])),
    ).eval()
    x = torch.randn(2, 1, 8, 8)
    left, right = quantize_(copy.deepcopy(flat), x), quantize_(copy.deepcopy(nested), x)
    seen = watch(right)
    found = right.to("pynq")(x.to("pynq"))
    assert torch.equal(found, left.to("pynq")(x.to("pynq")))
    kinds = {name: value.dtype for name, value in seen.items()}
    assert kinds.pop("3.0.1") is kinds.pop("3.0") is kinds.pop("3") is kinds.pop("") is found.dtype
    assert set(kinds.values()) == {torch.int8}


@torch.no_grad()
def test_where_int8_is_not_passed(overlay: str) -> None:
    x = torch.randn(2, 6)

    def chain(*between: torch.nn.Module) -> tuple[Any, dict[str, torch.Tensor]]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 6), *between, torch.nn.Linear(6, 6))
        quantize_(model.eval(), x).to("pynq")
        return model, watch(model)

    def kind_after(model: Any, seen: dict[str, torch.Tensor]) -> torch.dtype:
        model(x.to("pynq"))
        return seen["0"].dtype

    for module in (torch.nn.Sigmoid(), torch.nn.LayerNorm(6), torch.nn.LeakyReLU()):
        assert kind_after(*chain(module)) is torch.float32
    model, seen = chain(torch.nn.Dropout())
    assert kind_after(model, seen) is torch.int8
    model.train()
    assert kind_after(model, seen) is torch.float32
    model, seen = chain()
    assert kind_after(model, seen) is torch.int8
    model[1].in_scale = None
    assert kind_after(model, seen) is torch.float32
    model, seen = chain()
    part = model[:1]  # the last of its kind: nothing follows
    assert torch.equal(part(x.to("pynq")), model[0](x.to("pynq")))
    assert part(x.to("pynq")).dtype is torch.float32
    model, seen = chain()
    model[1] = torch.nn.Linear(6, 6).to("pynq")
    assert kind_after(model, seen) is torch.float32
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 1, 1), torch.nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect")
    )
    image = torch.randn(1, 1, 4, 4)
    quantize_(model, image).to("pynq")
    assert kind_after_image(model, image) is torch.float32


def kind_after_image(model: Any, image: torch.Tensor) -> torch.dtype:
    seen = watch(model)
    model(image.to("pynq"))
    return seen["0"].dtype


@torch.no_grad()
def test_what_is_not_finite_passes_through(overlay: str) -> None:
    model = quantize_(small_cnn(), torch.randn(2, 1, 8, 8)).to("pynq")
    x = torch.randn(2, 1, 8, 8)
    x[1, 0, 3, 3] = float("nan")
    found = model(x.to("pynq")).cpu()
    assert found[1].isnan().any()


def test_gradients_do_not_change_the_values(overlay: str) -> None:
    x = torch.randn(3, 1, 8, 8)
    model = quantize_(small_cnn(), x).to("pynq")
    with torch.no_grad():
        expected = model(x.to("pynq")).cpu()
    seen = watch(model)
    result = model(x.to("pynq"))
    assert torch.equal(result.detach().cpu(), expected)
    assert {value.dtype for value in seen.values()} == {torch.float32}
    result.sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in model.parameters())


def test_frozen_layers_pass_int8_to_those_that_learn(overlay: str) -> None:
    x = torch.randn(3, 6)
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 4))
    model = quantize_(copy.deepcopy(plain), x).to("pynq")
    model[0].requires_grad_(False)
    seen = watch(model)
    result = model(x.to("pynq"))
    assert seen["0"].dtype is torch.int8
    result.sum().backward()
    arrived = seen["0"].float() * model[2].in_scale
    torch.testing.assert_close(model[2].weight.grad.cpu(), arrived.sum(0).expand(4, 5))


def test_copies_of_a_model(overlay: str) -> None:
    x = torch.randn(2, 1, 8, 8)
    model = quantize_(small_cnn(), x).to("pynq")
    with torch.no_grad():
        expected = model(x.to("pynq")).cpu()
        for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(made(x.to("pynq")).cpu(), expected)
            assert torch.equal(made.cpu()(x), expected)
    torch.nn.Sequential.load_state_dict(small_cnn(5), model.state_dict())


# ---- which layers --------------------------------------------------------------------------------


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU())
        self.norm = torch.nn.BatchNorm2d(2)
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])
        self.special = torch.nn.modules.linear.NonDynamicallyQuantizableLinear(2, 2)
        self.head = torch.nn.Linear(2, 3)
        self.unused = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        x = self.norm(self.features(x)).mean((2, 3)) * scale
        for block in self.blocks:
            x = block(x).relu()
        result: torch.Tensor = self.head(self.special(x))
        return result


def quantised(model: torch.nn.Module) -> list[str]:
    return [name for name, m in model.named_modules() if isinstance(m, (nn.Linear, nn.Conv2d))]


ALL = ["features.0", "blocks.0", "blocks.1", "blocks.2", "head", "unused"]


@pytest.mark.parametrize(
    ("skip", "left"),
    [
        ((), []),
        ("head", ["head"]),
        (["head", "features"], ["head", "features.0"]),
        ("blocks.*", ["blocks.0", "blocks.1", "blocks.2"]),
        ("blocks.1", ["blocks.1"]),
        (torch.nn.Conv2d, ["features.0"]),
        (lambda name, module: module.weight.shape[0] == 3, ["head"]),
        ([torch.nn.Conv2d, "unused"], ["features.0", "unused"]),
    ],
)
def test_which_layers(skip: Any, left: list[str]) -> None:
    model = Net()
    before = dict(model.named_modules())
    parameters = dict(model.named_parameters())
    assert quantize_(model, skip=skip) is model
    assert quantised(model) == [name for name in ALL if name not in left]
    assert type(model.special) is torch.nn.modules.linear.NonDynamicallyQuantizableLinear
    after = dict(model.named_modules())
    assert list(after) == list(before)
    for name in ALL:
        assert after[name] is before[name]
    for name, parameter in model.named_parameters():
        assert parameter is parameters[name]
    fused = "features" not in left and "features.0" not in left
    assert isinstance(model.features[1], torch.nn.Identity if fused else torch.nn.ReLU)
    Net().load_state_dict(model.state_dict())


def test_a_layer_alone_and_one_in_two_places() -> None:
    layer = torch.nn.Linear(3, 3)
    assert type(quantize_(layer)) is nn.Linear
    shared = torch.nn.Linear(3, 3)
    model = torch.nn.Sequential(shared, torch.nn.ReLU(), shared)
    quantize_(model, torch.randn(1, 3))
    assert type(model[0]) is nn.Linear
    assert model[0] is model[2]
    assert not model[0].relu
    assert isinstance(model[1], torch.nn.ReLU)


def test_hooks_keep_a_relu_apart() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    seen: list[torch.Tensor] = []
    model[1].register_forward_hook(lambda module, args, result: seen.append(args[0]))
    quantize_(model)
    model(torch.randn(5, 3))
    assert bool((seen[0] < 0).any())


def test_attention_keeps_working() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    quantize_(layer)
    assert quantised(layer) == ["linear1", "linear2"]
    assert layer(torch.randn(1, 4, 8)).shape == (1, 4, 8)


# ---- calibration ---------------------------------------------------------------------------------


def test_steps_are_the_largest_inputs() -> None:
    torch.manual_seed(0)
    model, x = Net(), torch.randn(2, 1, 5, 5)
    arrived: dict[str, list[float]] = {}
    plain = copy.deepcopy(model).eval()
    for name in ALL:
        plain.get_submodule(name).register_forward_pre_hook(
            lambda module, args, name=name: arrived.setdefault(name, []).append(
                args[0].abs().max().item()
            )
        )
    buffers = {name: b.clone() for name, b in model.named_buffers()}
    quantize_(model, [x, (x * 3,), {"x": x, "scale": 0.5}])
    plain(x), plain(x * 3), plain(x, 0.5)
    for name in ALL:
        layer: Any = model.get_submodule(name)
        assert layer.in_scale == (max(arrived[name]) / 127 if name in arrived else None)
    assert model.training
    assert all(m.training for m in model.modules())
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, buffers[name])
    assert not any(m._forward_pre_hooks for m in model.modules())


def test_calibrating_again() -> None:
    x = torch.randn(2, 6)
    model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU(), torch.nn.Linear(6, 6))
    quantize_(model, x)
    steps = model[0].in_scale, model[2].in_scale
    quantize_(model, x * 2)
    assert model[0].in_scale == 2 * steps[0]
    assert model[2].in_scale > steps[1]
    assert model[0].relu
    quantize_(model)
    assert model[0].in_scale == 2 * steps[0]


@pytest.mark.parametrize(
    ("example", "error", "text"),
    [
        (torch.full((1, 6), float("nan")), ValueError, "layer '0' is infinite or NaN"),
        ([], ValueError, "example is empty"),
        ([[torch.ones(1, 6)]], TypeError, "example has list in it"),
        (3, TypeError, "example is int; expected a tensor"),
    ],
)
def test_examples_that_cannot_be(example: Any, error: type[Exception], text: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(6, 6))
    with pytest.raises(error, match=text):
        quantize_(model, example)
    assert type(model[0]) is torch.nn.Linear


def test_refusals() -> None:
    with pytest.raises(ValueError, match="no torch.nn.Linear or torch.nn.Conv2d .* found ReLU"):
        quantize_(torch.nn.ReLU())
    with pytest.raises(ValueError, match="that is not skipped; found Linear"):
        quantize_(torch.nn.Linear(1, 1), skip=torch.nn.Linear)
    with pytest.raises(ValueError, match="skip names 'tail', but the model has: 0, 1"):
        quantize_(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU()), skip="tail")
    with pytest.raises(TypeError, match="skip is 3; expected a name, a type or a function"):
        quantize_(torch.nn.Linear(1, 1), skip=[3])  # type: ignore[list-item]
