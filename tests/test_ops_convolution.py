"""float32 convolutions on device "pynq", forward and backward, by one kernel of the PL."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, of, watched
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from pynq_torch.errors import ArgumentError
from pynq_torch.kernels.tables.convolution import PATCH, PIXELS, TAPS
from pynq_torch.kernels.windows import Window
from pynq_torch.models.tiling import patch_cells, tiling

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

EPS = 2.0**-23
OVERLAY = "lenet"


@pytest.fixture
def conv2d() -> Any:
    return loaded(OVERLAY).conv2d_f32


def values(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, ...]:
    """Shapes of an image and a weight, and how the one moves over the other."""
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    inner, outs = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 5)))
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    padding = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    dilation = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    sizes = []
    for k, pad, step in zip(kernel, padding, dilation, strict=True):
        least = max(1, step * (k - 1) + 1 - 2 * pad)
        sizes.append(draw(st.integers(least, least + 14)))
    shape = (draw(st.integers(1, 3)), groups * inner, *sizes)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return shape, (groups * outs, inner, *kernel), options


def laid_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "channels last":
        return tensor.to("pynq").contiguous(memory_format=torch.channels_last)
    if layout == "every other":
        base = torch.full((*tensor.shape[:2], *(2 * s for s in tensor.shape[2:])), 7.0)
        base[..., ::2, ::2] = tensor
        return base.to("pynq")[..., ::2, ::2]
    return tensor.to("pynq")


def check(found: torch.Tensor | None, exact: torch.Tensor, size: torch.Tensor, depth: int) -> None:
    """Hold a result against the exact one; `size` is the sum of the products' magnitudes."""
    assert found is not None and found.shape == exact.shape
    error = (found.detach().cpu().double() - exact).abs()
    assert bool((error <= (depth + 2) * EPS * size).all()), float((error / size).max())


def exactly(
    x: torch.Tensor, w: torch.Tensor, grad: torch.Tensor, options: dict[str, Any]
) -> list[torch.Tensor]:
    """Return result and gradients in double."""
    leaves = [x.double().requires_grad_(), w.double().requires_grad_()]
    result = functional.conv2d(*leaves, **options)
    return [result.detach(), *torch.autograd.grad(result, leaves, grad.double())]


@settings(max_examples=30)
@given(
    problem=problems(),
    layout=st.sampled_from(["row-major", "channels last", "every other"]),
    seed=st.integers(0, 2**31),
)
def test_forward_and_backward_are_within_the_bound(
    problem: tuple[Any, ...], layout: str, seed: int
) -> None:
    loaded(OVERLAY)
    shape, kernel, options = problem
    x, w = values(*shape, seed=seed), values(*kernel, seed=seed + 1)
    bias = values(kernel[0], seed=seed + 2)
    grad = values(*functional.conv2d(x, w, **options).shape, seed=seed + 3)
    exact = exactly(x, w, grad, options)
    sizes = exactly(x.abs(), w.abs(), grad.abs(), options)
    leaves = [laid_out(x, layout), laid_out(w, layout), bias.to("pynq")]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    with watched() as calls:
        found = functional.conv2d(leaves[0], leaves[1], leaves[2], **options)
        gradients = torch.autograd.grad(found, leaves, grad.to("pynq"))
    offset = bias.double().view(-1, 1, 1)
    pixels = grad.shape[0] * grad.shape[2] * grad.shape[3]
    check(found, exact[0] + offset, sizes[0] + offset.abs(), w[0].numel() + 1)
    check(gradients[0], exact[1], sizes[1], w[:, 0].numel())
    check(gradients[1], exact[2], sizes[2], pixels)
    assert torch.allclose(gradients[2].cpu(), grad.sum((0, 2, 3)), rtol=1e-4, atol=1e-4)
    done = of(calls, "convolution", "convolution_backward")
    assert [c.where for c in done] == ["PL", "PL"], done
    assert {run.cu for c in done for run in c.kernels} >= {"conv2d_f32_0"}
    assert found.is_contiguous() or layout == "channels last"


@settings(max_examples=15)
@given(problem=problems(), more=st.booleans(), seed=st.integers(0, 2**31))
def test_transposed_convolutions_too(problem: tuple[Any, ...], more: bool, seed: int) -> None:
    loaded(OVERLAY)
    (n, _, *size), (outs, inner, *kernel), options = problem
    x, w = values(n, outs, *size, seed=seed), values(outs, inner, *kernel, seed=seed + 1)
    options = {**options, "padding": 0}
    if more:
        options["output_padding"] = [max(s, d) - 1 for s, d in zip(*_steps(options), strict=True)]
    leaves = [x.double().requires_grad_(), w.double().requires_grad_()]
    exact = functional.conv_transpose2d(*leaves, **options)
    grad = values(*exact.shape, seed=seed + 2)
    expected = torch.autograd.grad(exact, leaves, grad.double())
    on_pl = [x.to("pynq").requires_grad_(), w.to("pynq").requires_grad_()]
    with watched() as calls:
        found = functional.conv_transpose2d(*on_pl, **options)
        gradients = torch.autograd.grad(found, on_pl, grad.to("pynq"))
    for one, other in zip((found, *gradients), (exact, *expected), strict=True):
        assert torch.allclose(one.detach().cpu().double(), other, rtol=1e-4, atol=1e-4)
    assert {c.where for c in of(calls, "convolution", "convolution_backward")} == {"PL"}


def _steps(options: dict[str, Any]) -> tuple[Any, Any]:
    return options["stride"], options["dilation"]


@pytest.mark.parametrize("batched", [True, False])
def test_a_line_is_a_plane_of_one_row(conv2d: Any, batched: bool) -> None:
    x, w = values(2, 4, 30), values(6, 2, 5, seed=1)
    x = x if batched else x[0]
    leaves = [x.clone().requires_grad_(), w.clone().requires_grad_()]
    on_pl = [leaf.detach().to("pynq").requires_grad_() for leaf in leaves]
    options = {"stride": 2, "padding": 3, "dilation": 2, "groups": 2}
    exact = functional.conv1d(*leaves, **options)
    with watched() as calls:
        found = functional.conv1d(*on_pl, **options)
        gradients = torch.autograd.grad(found.sum(), on_pl)
    assert torch.allclose(found.cpu(), exact, atol=1e-5)
    for one, other in zip(gradients, torch.autograd.grad(exact.sum(), leaves), strict=True):
        assert torch.allclose(one.cpu(), other, atol=1e-5)
    assert {c.where for c in of(calls, "convolution", "convolution_backward")} == {"PL"}


def test_a_transposed_convolution_over_a_line(conv2d: Any) -> None:
    x, w = values(2, 4, 9), values(4, 3, 5, seed=1)
    leaves = [x.clone().requires_grad_(), w.clone().requires_grad_()]
    on_pl = [leaf.detach().to("pynq").requires_grad_() for leaf in leaves]
    options = {"stride": 3, "padding": 2, "output_padding": 1}
    exact = functional.conv_transpose1d(*leaves, **options)
    with watched() as calls:
        found = functional.conv_transpose1d(*on_pl, **options)
        gradients = torch.autograd.grad(found.sum(), on_pl)
    assert torch.allclose(found.cpu(), exact, atol=1e-5)
    for one, other in zip(gradients, torch.autograd.grad(exact.sum(), leaves), strict=True):
        assert torch.allclose(one.cpu(), other, atol=1e-5)
    assert {c.where for c in of(calls, "convolution", "convolution_backward")} == {"PL"}


def test_every_layer_of_lenet_learns_on_the_pl(conv2d: Any) -> None:
    """An optimiser's steps are those of the CPU, and the products and convolutions are the PL's."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.Tanh(), torch.nn.Conv2d(6, 16, 5, stride=2),
        torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(400, 10),
    )  # fmt: skip
    x, labels = values(8, 1, 14, 14), torch.arange(8) % 10
    results = []
    for device in ("cpu", "pynq"):
        copied = copy.deepcopy(network).to(device)
        optimiser = torch.optim.SGD(copied.parameters(), lr=0.1)
        with watched() as calls:
            for _ in range(3):
                optimiser.zero_grad()
                loss = functional.cross_entropy(copied(x.to(device)), labels.to(device))
                loss.backward()
                optimiser.step()
        results.append([loss.item(), *(p.detach().cpu() for p in copied.parameters())])
    assert abs(results[0][0] - results[1][0]) < 1e-4
    for one, other in zip(results[0][1:], results[1][1:], strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-5)
    heavy = of(calls, "convolution", "convolution_backward", "mm", "addmm")
    # Forward and backward of two convolutions, and three products, in each step.
    assert len(heavy) == 3 * (2 * 2 + 3) and {c.where for c in heavy} == {"PL"}, heavy


def test_only_the_gradients_that_are_wanted_are_computed(conv2d: Any) -> None:
    """The first layer of a network has no use for that of its input."""
    x, w = values(2, 3, 9, 9).to("pynq"), values(4, 3, 3, 3).to("pynq").requires_grad_()
    result = functional.conv2d(x, w)
    with watched() as calls:
        result.sum().backward()
    (call,) = of(calls, "convolution_backward")
    assert call.where == "PL" and len(call.kernels) == 1
    assert x.grad is None and w.grad is not None


def test_infinities_and_nan(conv2d: Any) -> None:
    """They spread as far as the window reaches, and padding times infinity is no product."""
    x, w = values(1, 1, 6, 6), torch.ones(1, 1, 3, 3)
    x[0, 0, 0, 0], x[0, 0, 5, 5] = float("nan"), float("inf")
    found = functional.conv2d(x.to("pynq"), w.to("pynq"), padding=1).cpu()
    expected = functional.conv2d(x, w, padding=1)
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(found.isinf(), expected.isinf())
    w[0, 0, 0, 0] = float("inf")
    inside = functional.conv2d(torch.ones(1, 1, 6, 6, device="pynq"), w.to("pynq"), padding=1).cpu()
    assert not bool(inside.isnan().any())
    assert torch.equal(inside[0, 0, 0], torch.tensor([4.0, 6, 6, 6, 6, 4]))
    assert bool(inside[0, 0, 1:, 1:].isinf().all())


def test_what_the_kernel_cannot_do_runs_on_the_cpu(conv2d: Any) -> None:
    for x, w, said in (
        (values(1, 2, 5, 5).double(), values(3, 2, 3, 3).double(), "convolves float64"),
        (values(1, 2, 5, 5, 5), values(3, 2, 3, 3, 3), "one or two dimensions"),
        (values(0, 2, 5, 5), values(3, 2, 3, 3), "nothing to convolve"),
    ):
        with watched() as calls:
            found = torch.convolution(
                x.to("pynq"), w.to("pynq"), None, (1,), (0,), (1,), False, (0,), 1
            )
        expected = torch.convolution(x, w, None, (1,), (0,), (1,), False, (0,), 1)
        assert torch.allclose(found.cpu(), expected)
        (call,) = of(calls, "convolution")
        assert call.where == "CPU" and said in call.reason
    with pytest.raises(RuntimeError):
        functional.conv2d(values(1, 2, 5, 5).to("pynq"), values(3, 4, 3, 3).to("pynq"))


# ---- the driver ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stride", "padding", "transposed", "output_padding"),
    [
        ([1], [0], True, [1]),
        ([2, 2], [0, 0], True, [1, 2]),
        ([2, 2], [0, 0], True, [-1, 0]),
        ([1, 1], [0, 0], False, [0, -1]),
        ([1, 1, 1], [0, 0], False, [0, 0]),
        ([1, 1], [0, 0, 0], False, [0, 0]),
    ],
)
def test_errors_are_the_cpus(
    conv2d: Any, stride: Any, padding: Any, transposed: bool, output_padding: Any
) -> None:
    x, weight = values(1, 2, 6, 5), values(2, 2, 3, 3)
    options = (None, stride, padding, [1], transposed, output_padding, 1)
    with pytest.raises(RuntimeError) as theirs:
        torch.ops.aten.convolution(x, weight, *options)
    with pytest.raises(RuntimeError) as ours:
        torch.ops.aten.convolution(x.to("pynq"), weight.to("pynq"), *options)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("transposed", [True, False])
def test_a_channels_last_weight_makes_a_channels_last_result(conv2d: Any, transposed: bool) -> None:
    function = functional.conv_transpose2d if transposed else functional.conv2d
    x, weight = values(2, 3, 6, 5), values(3, 3, 3, 3).to(memory_format=torch.channels_last)
    with watched() as calls:
        found = function(x.to("pynq"), weight.to("pynq"))
    expected = function(x, weight)
    assert [c.where for c in of(calls, "convolution")] == ["PL"]
    assert found.stride() == expected.stride() == found.permute(0, 1, 3, 2).mT.stride()
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-4)


def test_the_driver_gives_result_and_gradients(conv2d: Any) -> None:
    x, w, bias = values(2, 4, 9, 8), values(6, 2, 3, 3, seed=1), values(6, seed=2)
    options: dict[str, Any] = {"stride": 2, "padding": 1, "groups": 2}
    found = conv2d(x, w, bias, relu=True, **options)
    exact = functional.conv2d(x, w, bias, **options)
    assert torch.allclose(found, exact.relu(), atol=1e-5)
    grad = values(*exact.shape, seed=3)
    _, to_x, to_w = exactly(x, w, grad, options)
    assert torch.allclose(conv2d.grad_input(grad, w, (9, 8), **options).double(), to_x, atol=1e-4)
    assert torch.allclose(conv2d.grad_weight(x, grad, (3, 3), **options).double(), to_w, atol=1e-4)


@pytest.mark.parametrize(
    ("shapes", "options", "said"),
    [
        (((1, 3, 5, 5), (4, 2, 3, 3)), {}, "C / groups"),
        (((1, 2, 2, 5), (4, 2, 3, 3)), {}, "no smaller than the weight"),
        (((1, 2, 5, 5), (4, 2, 3, 3)), {"stride": 0}, "1 or more"),
        (((1, 2, 5), (4, 2, 3, 3)), {}, "4 dimensions"),
        (((0, 2, 5, 5), (4, 2, 3, 3)), {}, "no elements"),
    ],
)
def test_the_driver_refuses_with_a_sentence(
    conv2d: Any, shapes: Any, options: Any, said: str
) -> None:
    with pytest.raises(ArgumentError, match=said):
        conv2d(*(torch.zeros(s) for s in shapes), **options)
    with pytest.raises(ArgumentError, match="expected"):
        conv2d.grad_weight(torch.zeros(1, 2, 5, 5), torch.zeros(1, 4, 5, 5), (3, 3))


@settings(max_examples=50)
@given(
    *(st.tuples(st.integers(1, 700), st.integers(1, 700)) for _ in range(2)),
    *(st.tuples(st.integers(1, 40), st.integers(1, 40)) for _ in range(2)),
)
def test_tiles_fit_the_buffers(result: Any, kernel: Any, stride: Any, step: Any) -> None:
    rows, columns, k_rows, k_columns = tiling(result, kernel, stride, step)
    assert min(rows, columns, k_rows, k_columns) >= 1
    assert rows * columns <= PIXELS and k_rows * k_columns <= TAPS
    spans = [
        (p - 1) * s + (k - 1) * d + 1
        for p, s, k, d in zip((rows, columns), stride, (k_rows, k_columns), step, strict=True)
    ]
    assert spans[0] * spans[1] <= PATCH
    assert patch_cells(result, kernel, stride, step) >= 1


def test_sizes_of_a_transposed_convolution_undo_those_of_a_convolution() -> None:
    window = Window((2, 3), (1, 0), (2, 1))
    size = window.out_size((21, 20), (3, 4))
    assert size == (10, 6)
    assert window.transposed_size(size, (3, 4), (0, 1)) == (21, 20)
