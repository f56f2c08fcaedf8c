"""Quantised layers: the documented bits on every overlay, fresh weights, gradients, memory."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn_reference import reference

import pynq_torch
from pynq_torch import nn
from pynq_torch.errors import NoKernelError
from pynq_torch.nn import weights
from pynq_torch.overlay import ensure_event_loop

pytestmark = pytest.mark.timeout(280)


@pytest.fixture(scope="module", params=["", "gemm", "gemm_dual", "matrix_mult"])
def overlay(request: pytest.FixtureRequest) -> Iterator[str]:
    """Device "pynq" with an overlay, or without one."""
    board = pynq_torch.use_board("csim", strict_cache=True)
    ensure_event_loop()
    if request.param:
        pynq_torch.load(request.param)
    yield request.param
    board.close()


@pytest.fixture(scope="module")
def gemm() -> Iterator[Any]:
    board = pynq_torch.use_board("csim", strict_cache=True)
    ensure_event_loop()
    yield pynq_torch.load("gemm")
    board.close()


def linear(k: int, n: int, *, bias: bool = True, seed: int = 0) -> torch.nn.Linear:
    torch.manual_seed(seed)
    return torch.nn.Linear(k, n, bias)


def on_both(layer: torch.nn.Module, x: torch.Tensor, **options: Any) -> torch.Tensor:
    """Return the result on device "pynq", which must be that on the CPU."""
    on_cpu = layer(x, **options)
    moved = copy.deepcopy(layer).to("pynq")(x.to("pynq"), **options)
    assert moved.device.type == "pynq"
    assert moved.dtype == on_cpu.dtype
    assert torch.equal(moved.cpu(), on_cpu)
    assert moved.shape == on_cpu.shape
    return on_cpu


# ---- the bits ------------------------------------------------------------------------------------


@given(
    batch=st.sampled_from([(), (1,), (3,), (2, 3)]),
    k=st.integers(1, 40),
    n=st.integers(1, 40),
    bias=st.booleans(),
    relu=st.booleans(),
    step=st.none() | st.sampled_from([0.01, 1.0]),
    out_step=st.none() | st.sampled_from([0.003, 0.05]),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
@torch.no_grad()
def test_linear(
    overlay: str,
    batch: tuple[int, ...],
    k: int,
    n: int,
    bias: bool,
    relu: bool,
    step: float | None,
    out_step: float | None,
    seed: int,
) -> None:
    plain = linear(k, n, bias=bias, seed=seed)
    layer = nn.Linear.from_float(plain, relu=relu)
    layer.in_scale = step
    x = torch.randn(*batch, k)
    expected = reference(plain, x, step=step, out_step=out_step, relu=relu)
    assert torch.equal(on_both(layer, x, out_scale=out_step), expected)
    if step is not None:
        q = (x / step).round().clamp(-128, 127).to(torch.int8)
        expected = reference(plain, q, step=step, out_step=out_step, relu=relu)
        assert torch.equal(on_both(layer, q, scale=step, out_scale=out_step), expected)


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@given(data=st.data())
@settings(max_examples=40)
@torch.no_grad()
def test_conv2d(overlay: str, data: st.DataObject) -> None:
    groups = data.draw(st.sampled_from([1, 1, 2, 3]))
    cin, cout = groups * data.draw(st.integers(1, 3)), groups * data.draw(st.integers(1, 3))
    kernel = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    stride = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    dilation = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    padding = (
        data.draw(st.just("same") if stride == (1, 1) else st.just("valid"))
        if data.draw(st.booleans())
        else data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    )
    bias, relu = data.draw(st.booleans()), data.draw(st.booleans())
    step = data.draw(st.none() | st.just(0.02))
    out_step = data.draw(st.none() | st.just(0.01))
    torch.manual_seed(data.draw(st.integers(0, 99)))
    plain = torch.nn.Conv2d(
        *(cin, cout, kernel, stride, padding, dilation, groups, bias),
    )
    layer = nn.Conv2d.from_float(plain, relu=relu)
    layer.in_scale = step
    x = torch.randn(data.draw(st.integers(1, 2)), cin, 7, 6)
    if data.draw(st.booleans()):
        x = x[0]
    elif data.draw(st.booleans()):
        x = x.to(memory_format=torch.channels_last)
    found = on_both(layer, x, out_scale=out_step)
    assert torch.equal(found, reference(plain, x, step=step, out_step=out_step, relu=relu))
    # Where an input is in both layouts, torch has a rule of its own.
    ambiguous = x.dim() == 4 and cin == 1
    assert ambiguous or 1 in found.shape or found.stride() == plain(x).stride()


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@torch.no_grad()
def test_other_paddings_come_first(overlay: str, mode: str) -> None:
    plain = torch.nn.Conv2d(2, 3, 3, padding=1, padding_mode=mode)  # type: ignore[arg-type]
    x = torch.randn(1, 2, 5, 5)
    bare = torch.nn.Conv2d(2, 3, 3)
    bare.load_state_dict(plain.state_dict())
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1), mode)
    assert torch.equal(on_both(nn.Conv2d.from_float(plain), x), reference(bare, padded))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@torch.no_grad()
def test_other_floats(overlay: str, dtype: torch.dtype) -> None:
    plain = linear(9, 5).to(dtype)
    x = torch.randn(3, 9).to(dtype)
    expected = reference(copy.deepcopy(plain).float(), x.float()).to(dtype)
    assert torch.equal(on_both(nn.Linear.from_float(plain), x), expected)


@torch.no_grad()
def test_values_that_int8_cannot_hold_show(overlay: str) -> None:
    plain = linear(6, 4)
    x = torch.randn(2, 6)
    x[1, 2] = float("nan")
    layer = nn.Linear.from_float(plain, relu=True)
    for step, out_step in ((None, None), (0.1, 0.1)):
        layer.in_scale = step
        moved = copy.deepcopy(layer).to("pynq")(x.to("pynq"), out_scale=out_step).cpu()
        assert moved[1].isnan().all()
        assert torch.equal(moved[0], plain(x)[0].relu())
    plain.weight[1, 1] = float("inf")
    found = copy.deepcopy(layer).to("pynq")(torch.ones(1, 6, device="pynq")).cpu()
    assert torch.equal(found, plain(torch.ones(1, 6)).relu())


@torch.no_grad()
def test_products_that_float32_cannot_hold_are_the_float_layer_s(overlay: str) -> None:
    plain = linear(6, 4)
    plain.weight.abs_()[2] *= 1e20
    x = torch.rand(2, 6) * 1e20
    found = on_both(nn.Linear.from_float(plain), x, out_scale=1e10)
    assert torch.equal(found, plain(x))
    assert found[:, 2].isinf().any()


@torch.no_grad()
def test_a_bias_that_int32_cannot_hold_keeps_the_result_floating(overlay: str) -> None:
    plain = linear(6, 4)
    plain.weight[2] = 1e-12
    layer = nn.Linear.from_float(plain)
    x = torch.randn(2, 6)
    found = on_both(layer, x, out_scale=0.1)
    assert torch.equal(found, reference(plain, x))


@torch.no_grad()
def test_nothing_to_multiply(overlay: str) -> None:
    layer = nn.Linear.from_float(linear(6, 4)).to("pynq")
    assert layer(torch.empty(0, 6, device="pynq")).shape == (0, 4)
    with pytest.warns(UserWarning, match="zero-element tensors"):
        layer = nn.Linear(6, 0, device="pynq")
    assert layer(torch.ones(2, 6, device="pynq")).shape == (2, 0)
    conv = nn.Conv2d(2, 3, 3, device="pynq")
    assert conv(torch.empty(0, 2, 5, 5, device="pynq")).shape == (0, 3, 3, 3)


@torch.no_grad()
def test_sums_beyond_int32_stay_exact(overlay: str) -> None:
    k = 140_000
    plain = torch.nn.Linear(k, 2, bias=False)
    plain.weight.fill_(1.0)
    found = on_both(nn.Linear.from_float(plain), torch.ones(1, k), out_scale=1.0)
    assert torch.equal(found, torch.full((1, 2), float(k)))


def test_meta_tensors_show_shapes() -> None:
    layer = nn.Linear(6, 4, device="meta")
    assert layer(torch.empty(3, 6, device="meta")).shape == (3, 4)


# ---- fresh weights -------------------------------------------------------------------------------


def count_packs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    real = weights.per_column

    def per_column(values: torch.Tensor) -> Any:
        calls.append(values.numel())
        return real(values)

    monkeypatch.setattr(weights, "per_column", per_column)
    return calls


def _step(layer: nn.Linear, x: torch.Tensor) -> None:
    optimiser = torch.optim.SGD(layer.parameters(), 0.1)
    with torch.enable_grad():
        layer(x).square().sum().backward()
    optimiser.step()


def _adam(layer: nn.Linear, x: torch.Tensor) -> None:
    optimiser = torch.optim.Adam(layer.parameters(), 0.1)
    with torch.enable_grad():
        layer(x).square().sum().backward()
    optimiser.step()


CHANGES = {
    "optimiser": _step,
    "fused optimiser": _adam,
    "load_state_dict": lambda layer, x: layer.load_state_dict(linear(7, 5, seed=9).state_dict()),
    "data.copy_": lambda layer, x: layer.weight.data.copy_(torch.randn(5, 7)),
    "in place": lambda layer, x: layer.weight.mul_(-2),
    "a view": lambda layer, x: layer.weight[2].fill_(3.0),
    "data": lambda layer, x: setattr(layer.weight, "data", torch.randn(5, 7, device="pynq")),
    "parameter": lambda layer, x: setattr(
        layer, "weight", torch.nn.Parameter(torch.randn(5, 7, device="pynq"))
    ),
    "bias": lambda layer, x: layer.bias.add_(1),
    "init": lambda layer, x: torch.nn.init.xavier_uniform_(layer.weight),
}


@pytest.mark.parametrize("change", CHANGES)
@torch.no_grad()
def test_weights_are_packed_once_and_after_a_change(
    gemm: Any, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs = count_packs(monkeypatch)
    layer = nn.Linear.from_float(linear(7, 5)).to("pynq")
    x = torch.randn(2, 7, device="pynq")
    layer.in_scale = 0.02
    for _ in range(3):
        before = layer(x), layer(x, out_scale=0.01)
    assert len(packs) == 1
    CHANGES[change](layer, x)
    plain = copy.deepcopy(layer).cpu()
    for out_step, old in zip((None, 0.01), before, strict=True):
        found = layer(x, out_scale=out_step).cpu()
        assert torch.equal(found, reference(plain, x.cpu(), step=0.02, out_step=out_step))
        assert not torch.equal(found, old.cpu())
    assert len(packs) == (1 if change == "bias" else 2)


@torch.no_grad()
def test_one_input_of_three_layers_is_quantised_once(
    gemm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pynq_torch.nn import layer as module

    calls: list[int] = []
    real = module.pack
    monkeypatch.setattr(module, "pack", lambda *given: calls.append(1) or real(*given))
    layers = [nn.Linear(7, 5, device="pynq") for _ in range(3)]
    x = torch.randn(2, 7, device="pynq")
    for layer in layers:
        layer(x)
    assert len(calls) == 1
    x += 1
    layers[0](x)
    assert len(calls) == 2


@torch.no_grad()
def test_a_buffer_that_is_filled_again(gemm: Any) -> None:
    plain = linear(7, 5)
    layer = nn.Linear.from_float(copy.deepcopy(plain)).to("pynq")
    buffer = torch.empty(2, 7, device="pynq")
    held = []
    for i in range(6):
        x = torch.randn(2, 7) * (float("nan") if i == 2 else 10**i)
        buffer.copy_(x)
        found = layer(buffer).cpu()
        assert bool(found.isnan().all()) if i == 2 else torch.equal(found, reference(plain, x))
        if i != 2:
            row = buffer[1:]  # a view has its own largest value
            assert torch.equal(layer(row).cpu(), reference(plain, x[1:]))
            with torch.backends.pynq.flags(allow_int8=True):  # the operator shares what is packed
                shared = torch.nn.functional.linear(buffer, layer.weight, layer.bias).cpu()
            assert torch.equal(shared, found)
        held.append(torch.pynq.memory_allocated())
    assert held[3] == held[4] == held[5]


def test_modules_are_torch_s_own(gemm: Any) -> None:
    plain = linear(7, 5)
    layer = nn.Linear.from_float(plain, relu=True)
    assert isinstance(layer, torch.nn.Linear)
    assert layer.weight is plain.weight
    assert list(layer.state_dict()) == ["weight", "bias"]
    layer.in_scale = 0.02
    layer = layer.to("pynq")
    x = torch.randn(2, 7, device="pynq")
    with torch.no_grad():
        expected = layer(x).cpu()
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    copies = [
        copy.deepcopy(layer),
        pickle.loads(pickle.dumps(layer)),
        torch.load(file, weights_only=False),
    ]
    for made in copies:
        assert (made.relu, made.in_scale) == (True, 0.02)
        assert made.weight.device.type == "pynq"
        with torch.no_grad():
            assert torch.equal(made(x).cpu(), expected)
            made.weight.zero_()
            assert torch.equal(layer(x).cpu(), expected)
    fresh = nn.Linear(7, 5, relu=True)
    fresh.load_state_dict(layer.state_dict())
    fresh.in_scale = 0.02
    with torch.no_grad():
        assert torch.equal(fresh(x.cpu()), expected)
    float_again = torch.nn.Linear(7, 5)
    float_again.load_state_dict(layer.state_dict())


def test_from_float_takes_over_hooks_and_mode() -> None:
    plain = linear(7, 5).eval()
    seen: list[torch.Tensor] = []
    plain.register_forward_hook(lambda module, args, result: seen.append(result))
    layer = nn.Linear.from_float(plain)
    assert not layer.training
    layer(torch.randn(1, 7))
    assert len(seen) == 1
    layer.register_buffer("more", torch.ones(1))
    assert "more" not in plain.state_dict()
    with pytest.raises(TypeError, match="Linear.from_float takes a torch.nn.Linear; found Conv2d"):
        nn.Linear.from_float(torch.nn.Conv2d(1, 1, 1))  # type: ignore[arg-type]


# ---- gradients -----------------------------------------------------------------------------------


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("kind", ["linear", "conv", "grouped", "unbatched"])
def test_gradients_are_those_of_the_float_layer(gemm: Any, kind: str, relu: bool) -> None:
    torch.manual_seed(3)
    plain: torch.nn.Module
    layer: torch.nn.Module
    if kind == "linear":
        plain, x = torch.nn.Linear(7, 5), torch.randn(2, 3, 7)
        layer = nn.Linear.from_float(copy.deepcopy(plain), relu=relu).to("pynq")
    else:
        groups = 2 if kind == "grouped" else 1
        plain, x = torch.nn.Conv2d(2, 4, 3, 2, 1, groups=groups), torch.randn(3, 2, 6, 5)
        x = x[0] if kind == "unbatched" else x
        layer = nn.Conv2d.from_float(copy.deepcopy(plain), relu=relu).to("pynq")
    left = x.clone().requires_grad_()
    right = x.to("pynq").requires_grad_()
    y = layer(right)
    grad = torch.randn(y.shape)
    mask = (y.detach().cpu() > 0) if relu else torch.ones(y.shape)
    plain(left).backward(grad * mask)
    y.backward(grad.to("pynq"))
    assert left.grad is not None
    assert right.grad is not None
    torch.testing.assert_close(right.grad.cpu(), left.grad)
    for mine, theirs in zip(layer.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad.cpu(), theirs.grad)


@pytest.mark.parametrize("frozen", ["input", "weight", "bias"])
def test_gradients_that_are_not_wanted(gemm: Any, frozen: str) -> None:
    for layer, shape in ((nn.Linear(4, 3), (2, 4)), (nn.Conv2d(2, 3, 1), (1, 2, 3, 3))):
        layer = layer.to("pynq")
        x = torch.randn(shape, device="pynq", requires_grad=frozen != "input")
        layer.weight.requires_grad_(frozen != "weight")
        layer.bias.requires_grad_(frozen != "bias")
        layer(x).sum().backward()
        for name, value in (("input", x), ("weight", layer.weight), ("bias", layer.bias)):
            assert (value.grad is None) == (name == frozen)


@pytest.mark.parametrize("optimiser", [torch.optim.SGD, torch.optim.Adam])
def test_fine_tuning(gemm: Any, optimiser: Any) -> None:
    torch.manual_seed(0)
    x, target = torch.randn(64, 8), torch.randint(0, 3, (64,))
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    pynq_torch.quantize_(model, x).to("pynq")
    chosen = optimiser(model.parameters(), 0.3 if optimiser is torch.optim.SGD else 0.05)
    losses = []
    for _ in range(30):
        chosen.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x.to("pynq")), target.to("pynq"))
        loss.backward()
        chosen.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    with torch.no_grad():
        last = torch.nn.functional.cross_entropy(model(x.to("pynq")), target.to("pynq")).item()
    assert last < losses[-2]


# ---- bad input -----------------------------------------------------------------------------------


def test_refusals(gemm: Any) -> None:
    layer = nn.Linear(7, 5, device="pynq")
    with pytest.raises(RuntimeError, match=r"shape \(2, 6\); expected 7 in its last dimension"):
        layer(torch.randn(2, 6, device="pynq"))
    with pytest.raises(RuntimeError, match="input of Linear.* is on cpu and its weight on pynq:0"):
        layer(torch.randn(2, 7))
    with pytest.raises(RuntimeError, match="input is torch.float64 and the weight torch.float32"):
        layer(torch.randn(2, 7, device="pynq", dtype=torch.float64))
    with pytest.raises(TypeError, match="int8 without a scale"):
        layer(torch.zeros(2, 7, device="pynq", dtype=torch.int8))
    with pytest.raises(
        TypeError, match="scale is 0.1 and the input torch.float32; expected an int8"
    ):
        layer(torch.randn(2, 7, device="pynq"), scale=0.1)
    with pytest.raises(ValueError, match="out_scale is -1.0; expected a finite number"):
        layer(torch.randn(2, 7, device="pynq"), out_scale=-1.0)
    conv = nn.Conv2d(2, 3, 3, device="pynq")
    with pytest.raises(RuntimeError, match=r"shape \(1, 1, 5, 5\); expected \(N, 2, H, W\)"):
        conv(torch.randn(1, 1, 5, 5, device="pynq"))
    with pytest.raises(RuntimeError, match="expected it to be no smaller than the kernel"):
        conv(torch.randn(1, 2, 2, 5, device="pynq"))
    for bad in (0.0, -1.0, float("nan"), 1e-40, float("inf")):
        with pytest.raises(ValueError, match="expected a normal float32 greater than 0"):
            layer.in_scale = bad


# ---- where it runs -------------------------------------------------------------------------------


@torch.no_grad()
def test_the_record_says_where_it_ran(overlay: str) -> None:
    layer, conv = nn.Linear(7, 5, device="pynq"), nn.Conv2d(2, 3, 3, device="pynq")
    x, image = torch.randn(2, 7, device="pynq"), torch.randn(1, 2, 5, 5, device="pynq")
    with torch.pynq.profiler.Profile() as profile:
        layer(x)
        conv(image)
    rows = {row.name: row for row in profile.rows()}
    for name in ("pynq_torch::linear", "pynq_torch::conv2d"):
        row = rows[name]
        assert row.calls == 1
        assert row.on_pl == (1 if overlay else 0)
        assert bool(row.units) == bool(overlay)
        assert list(row.why) == (
            []
            if overlay
            else [
                "no overlay loaded with pynq_torch.load has a unit that multiplies matrices: "
                "pynq_torch.load('gemm')"
            ]
        )
    torch.pynq.profiler.fallback.disable()
    try:
        if overlay:
            layer(x)
        else:
            with pytest.raises(NoKernelError, match=r"pynq_torch::linear\(float32\[2x7\]"):
                layer(x)
    finally:
        torch.pynq.profiler.fallback.enable()


@torch.no_grad()
def test_200_forwards_leave_memory_where_it_was(gemm: Any) -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(108, 10)
    )
    x = torch.randn(2, 1, 8, 8)
    pynq_torch.quantize_(model, x).to("pynq")
    model.append(nn.Linear(10, 10, device="pynq"))
    moved = x.to("pynq")

    def held() -> tuple[int, int]:
        gc.collect()
        return torch.pynq.memory_allocated(), torch.pynq.memory_reserved()

    for _ in range(20):
        model(moved)
    before = held()
    for _ in range(200):
        model(moved)
    assert held() == before


def test_200_steps_of_training_leave_memory_where_it_was(gemm: Any) -> None:
    layer = nn.Linear(7, 5, relu=True, device="pynq")
    optimiser = torch.optim.SGD(layer.parameters(), 0.01)
    x = torch.randn(2, 7, device="pynq")

    def step() -> None:
        optimiser.zero_grad()
        layer(x).sum().backward()
        optimiser.step()

    for _ in range(20):
        step()
    gc.collect()
    before = torch.pynq.memory_allocated()
    for _ in range(200):
        step()
    gc.collect()
    assert torch.pynq.memory_allocated() == before


@torch.no_grad()
def test_threads_share_a_layer(gemm: Any) -> None:
    layer = nn.Linear.from_float(linear(64, 32)).to("pynq")
    inputs = [torch.randn(4, 64) for _ in range(4)]
    expected = [reference(linear(64, 32), x) for x in inputs]
    wrong: list[Any] = []

    def work(index: int) -> None:
        with torch.no_grad():
            for _ in range(25):
                found = layer(inputs[index].to("pynq")).cpu()
                if not torch.equal(found, expected[index]):
                    wrong.append((index, found))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
