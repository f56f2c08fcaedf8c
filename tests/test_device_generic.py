"""What users of ``torch.cuda`` expect of a device: each test holds on the CPU and on "pynq"."""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

#: A test that fails on the CPU expects something that torch does not promise.
DEVICES = ("cpu", "pynq")
TESTS = Path(__file__).parent


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    torch.manual_seed(5)
    return str(request.param)


def cpu(*shape: int) -> torch.Tensor:
    """Numbers from the CPU's generator, whatever device they go to."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def small_network() -> nn.Sequential:
    torch.manual_seed(2)
    layers = (nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    return nn.Sequential(*layers)


# ---- the device itself ---------------------------------------------------------------------------


def test_torch_alone_knows_the_device() -> None:
    source = "import torch; x = torch.ones(2).to('pynq'); print((x + x).cpu().tolist(), x.device)"
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", source], capture_output=True, text=True, timeout=120
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "[2.0, 2.0] pynq:0\n", "")


def test_autoload_can_be_switched_off() -> None:
    source = "import torch; print(hasattr(torch, 'pynq'))"
    run = subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (run.returncode, run.stdout) == (0, "False\n")


def test_the_device_module() -> None:
    assert torch.pynq.is_available() and torch.pynq.device_count() == 1
    assert torch.pynq.current_device() == 0
    assert torch.get_device_module("pynq") is torch.pynq
    assert torch.accelerator.current_accelerator() == torch.device("pynq")
    torch.pynq.synchronize()
    torch.pynq.set_device(0)
    with torch.pynq.device(0):
        assert torch.ones(1, device="pynq").device == torch.device("pynq", 0)
    assert "ynq" in torch.pynq.get_device_name()


def test_methods_that_carry_the_device_s_name() -> None:
    x = cpu(2, 3)
    assert x.pynq().is_pynq and not x.is_pynq
    assert x.pynq().device == torch.device("pynq:0")
    assert x.pynq().get_device() == 0
    module = nn.Linear(3, 2).pynq()
    assert module.weight.is_pynq and module(x.pynq()).is_pynq


def test_other_indices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="pynq:1|ordinal|index"):
        torch.ones(2, device="pynq:1")
    with pytest.raises(RuntimeError, match="pynq:1|ordinal|index"):
        torch.ones(2).to("pynq:1")


def test_factories(device: str) -> None:
    assert torch.zeros(2, 3, device=device).device.type == device
    assert torch.full((2,), 7, device=device).tolist() == [7, 7]
    assert torch.arange(5, device=device).tolist() == [0, 1, 2, 3, 4]
    assert torch.tensor([[1, 2], [3, 4]], device=device).sum().item() == 10
    assert torch.eye(2, device=device).tolist() == [[1, 0], [0, 1]]
    assert torch.linspace(0, 1, 3, device=device).tolist() == [0, 0.5, 1]
    assert torch.as_tensor(np.ones(3), device=device).dtype is torch.float64
    assert torch.randperm(6, device=device).sort().values.tolist() == list(range(6))
    assert torch.empty(0, 3, device=device).sum().item() == 0
    assert torch.ones_like(torch.ones(2, device=device)).device.type == device
    assert torch.ones(2).new_ones(3, device=device).device.type == device


def test_uninitialised_memory_is_filled_where_results_have_to_repeat(device: str) -> None:
    torch.use_deterministic_algorithms(True)
    try:
        for dtype in (torch.float32, torch.int8, torch.bool, torch.complex64):
            for strides in ((3, 1), (1, 2), (0, 1)):
                made = torch.empty_strided((2, 3), strides, dtype=dtype, device=device)
                expected = torch.empty_strided((2, 3), strides, dtype=dtype)
                assert torch.equal(made.cpu().nan_to_num(), expected.nan_to_num())
        assert torch.empty(2, 3, device=device).isnan().all()
        assert torch.empty_like(torch.ones(2, device=device)).isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)


def test_default_device(device: str) -> None:
    with torch.device(device):
        assert torch.ones(2).device.type == device
        assert nn.Linear(2, 2).weight.device.type == device
    assert torch.ones(2).device.type == "cpu"
    torch.set_default_device(device)
    try:
        assert torch.rand(2).device.type == device
    finally:
        torch.set_default_device(None)


def test_skeletons_become_real_on_the_device(device: str) -> None:
    with torch.device("meta"):
        network = small_network()
    network.to_empty(device=device).load_state_dict(small_network().state_dict())
    x = cpu(2, 1, 8, 8)
    assert torch.equal(network(x.to(device)).cpu(), small_network()(x))


# ---- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.bool, torch.bfloat16])
def test_there_and_back(device: str, dtype: torch.dtype) -> None:
    x = (cpu(3, 4) * 9).to(dtype)
    there = x.to(device)
    assert there.dtype is dtype and torch.equal(there.cpu(), x)
    assert there.to(device) is there
    assert there.to(device, copy=True) is not there
    assert torch.equal(there.to("cpu", torch.float64), x.double())
    assert torch.equal(torch.empty(3, 4, dtype=dtype, device=device).copy_(x).cpu(), x)
    assert torch.equal(torch.empty(3, 4, dtype=dtype).copy_(there, non_blocking=True), x)


def test_cpu_is_a_copy_of_its_own() -> None:
    there = torch.zeros(3, device="pynq")
    back = there.cpu()
    there.add_(1)
    assert back.tolist() == [0, 0, 0] and there.tolist() == [1, 1, 1]


def test_layouts_survive(device: str) -> None:
    image = cpu(2, 3, 4, 5).to(memory_format=torch.channels_last)
    there = image.to(device)
    assert there.is_contiguous(memory_format=torch.channels_last)
    assert there.stride() == image.stride() and torch.equal(there.cpu(), image)
    assert there.t is not None and there[0, 0].t().to("cpu").is_contiguous() is False
    assert torch.equal(there.contiguous().cpu(), image)


def test_numpy(device: str) -> None:
    x = cpu(3, 2).to(device)
    assert isinstance(x.cpu().numpy(), np.ndarray)
    assert torch.equal(torch.from_numpy(x.cpu().numpy()), x.cpu())
    assert x.tolist() == x.cpu().numpy().tolist()
    if device == "pynq":
        with pytest.raises(TypeError, match=r"\.cpu\(\)"):
            x.numpy()
        with pytest.raises(TypeError, match=r"\.cpu\(\)"):
            np.asarray(x)


def test_a_float_of_a_tensor(device: str) -> None:
    one = torch.tensor(1.5, device=device)
    assert (float(one), int(one), bool(one), one.item()) == (1.5, 1, True, 1.5)
    assert [10, 20, 30][torch.tensor(2, device=device)] == 30
    assert len(torch.ones(4, 2, device=device)) == 4
    assert [row.sum().item() for row in torch.ones(3, 2, device=device)] == [2, 2, 2]
    assert f"{one:.2f}" == "1.50"
    with pytest.raises(RuntimeError, match="ambiguous|more than one value"):
        bool(torch.ones(2, device=device))


def test_printing(device: str) -> None:
    where = "" if device == "cpu" else f", device='{device}:0'"
    x = torch.tensor([[1.0, 2.5], [float("nan"), -1.0]], device=device)
    assert repr(x) == f"tensor([[ 1.0000,  2.5000],\n        [    nan, -1.0000]]{where})"
    assert repr(torch.ones(2, device=device).int()) == (f"tensor([1, 1]{where}, dtype=torch.int32)")
    weight = nn.Parameter(torch.zeros(1, device=device))
    assert repr(weight) == f"Parameter containing:\ntensor([0.]{where}, requires_grad=True)"
    assert "..." in repr(torch.zeros(100, 100, device=device))
    assert "SumBackward" in repr((weight * 2).sum())


# ---- views, in-place, out= -----------------------------------------------------------------------

VIEWS: list[tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = [
    ("index", lambda x: x[1]),
    ("slice", lambda x: x[:, 1:3]),
    ("step", lambda x: x[::2, ::2]),
    ("transpose", lambda x: x.t()),
    ("view", lambda x: x.view(2, 12)),
    ("reshape", lambda x: x.reshape(-1)),
    ("expand", lambda x: x[:1].expand(4, 6)[0]),
    ("permute", lambda x: x.view(2, 2, 6).permute(2, 0, 1)),
    ("diagonal", lambda x: x.diagonal()),
    ("unfold", lambda x: x.unfold(1, 2, 2)),
    ("narrow", lambda x: x.narrow(0, 1, 2)),
    ("as_strided", lambda x: x.as_strided((3, 3), (7, 2), 1)),
    ("split", lambda x: x.split(2)[1]),
    ("chunk", lambda x: x.chunk(3, 1)[2]),
    ("unbind", lambda x: x.unbind(1)[4]),
    ("unsqueeze", lambda x: x.unsqueeze(1).squeeze(1)),
    ("detach", lambda x: x.detach()),
    ("of bits", lambda x: x.view(torch.int32)),
    ("of halves", lambda x: x.view(torch.int16)[:, ::2]),
    ("complex", lambda x: torch.view_as_complex(x.view(4, 3, 2)).real),
]


@pytest.mark.parametrize(("name", "view"), VIEWS, ids=[name for name, _ in VIEWS])
def test_views_share_memory(device: str, name: str, view: Callable[..., torch.Tensor]) -> None:
    x = cpu(4, 6)
    there = x.to(device)
    seen = view(there)
    assert seen.stride() == view(x).stride()
    assert (seen._base is None) == (view(x)._base is None)
    seen.fill_(3)
    expected = x.clone()
    view(expected).fill_(3)
    assert torch.equal(there.cpu(), expected)
    there.zero_()
    assert not seen.any()
    assert seen.untyped_storage().data_ptr() == there.untyped_storage().data_ptr()


def test_shape_changes_in_place(device: str) -> None:
    for name, *args in (("t_",), ("squeeze_",), ("unsqueeze_", 0), ("transpose_", 0, 1)):
        x, there = cpu(1, 4), cpu(1, 4).to(device)
        assert getattr(there, name)(*args) is there
        getattr(x, name)(*args)
        assert (there.shape, there.stride()) == (x.shape, x.stride())
        assert torch.equal((there + there).cpu(), x + x)
    # Memory that has been used by a tensor of another shape starts afresh.
    assert torch.equal((cpu(1, 4).to(device) * 2).cpu(), cpu(1, 4) * 2)


def test_resize(device: str) -> None:
    x = torch.arange(6.0, device=device)
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x.resize_(3, 2).tolist() == [[0, 1], [2, 3], [4, 5]]
    x.resize_(5, 5)
    assert x.flatten()[:4].tolist() == [0, 1, 2, 3] and x.numel() == 25
    x.set_(torch.ones(2, device=device))
    assert x.tolist() == [1, 1]


GROWN: dict[str, Callable[[torch.Tensor], object]] = {
    "resize_": lambda x: x.resize_(50, 30),
    "resize_ of a view": lambda x: x[1:3].resize_(1500),
    "resize_as_": lambda x: x.resize_as_(torch.empty(40, 40, device=x.device)),
    "set_ to the same storage": lambda x: x.set_(x.untyped_storage(), 2, (99,), (2,)),
    "storage": lambda x: x.untyped_storage().resize_(999),
    "out=": lambda x: torch.cat([torch.ones(70, device=x.device)] * 2, out=x),
    "out= of an empty view": lambda x: torch.add(torch.ones(9, device=x.device), 1, out=x[2:2]),
    "out= by a product": lambda x: torch.mm(*[torch.ones(5, 5, device=x.device)] * 2, out=x),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("grow", GROWN)
def test_views_stay_views_when_their_storage_grows(device: str, grow: str) -> None:
    base = torch.arange(6.0, device=device)
    view, bits = base[1:4], base.view(torch.int32)[1:4]
    leaf = base.detach().requires_grad_()
    product = (leaf * 2)[1:4]  # nothing of the graph is on the old memory either
    GROWN[grow](base)
    sizes = {t.untyped_storage().nbytes() for t in (base, view, bits, leaf)}
    assert len(sizes) == 1 and sizes.pop() > 24
    assert base.data_ptr() - view.data_ptr() == 4 * (base.storage_offset() - 1)
    written = {"out=": 1.0, "out= of an empty view": 2.0, "out= by a product": 5.0}.get(grow)
    kept = [1.0] * ("empty" in grow) + [written] * 3 if written else [1.0, 2.0, 3.0]
    assert view.tolist() == kept[:3]
    base.as_strided((4,), (1,), 0).fill_(-3)
    view[0] = 7
    assert view.tolist() == [7, -3, -3] and leaf[1:4].tolist() == [7, -3, -3]
    assert bits.view(torch.float32).tolist() == [7, -3, -3]
    assert (view + view).tolist() == [14, -6, -6] and product.tolist() == [2, 4, 6]
    assert product.grad_fn is not None


def test_a_storage_can_shrink_and_grow_again(device: str) -> None:
    """As FSDP does with parameters between steps."""
    x = torch.arange(3000.0, device=device)
    storage = x.untyped_storage()
    assert storage.resize_(0) is storage and x.untyped_storage().nbytes() == 0
    storage.resize_(12000)
    x.copy_(torch.arange(3000.0))
    assert x[-2:].tolist() == [2998, 2999] and storage.nbytes() == 12000
    storage.resize_(8)
    assert x.set_(storage, 0, (2,)).tolist() == [0, 1]


def test_in_place(device: str) -> None:
    x = torch.ones(3, 3, device=device)
    address = x.data_ptr()
    x += 2
    x[0] = torch.arange(3.0, device=device)
    x[1, 1:] *= 10
    x[x > 20] = -1
    x[:, torch.tensor([0], device=device)] = 8
    assert x.tolist() == [[8, 1, 2], [8, -1, -1], [8, 3, 3]]
    assert x.data_ptr() == address
    x.data = torch.zeros(2, device=device)
    assert x.tolist() == [0, 0]
    assert x._version > 0


def test_out(device: str) -> None:
    a, b = cpu(3, 4).to(device), cpu(4, 2).to(device)
    out = torch.empty(3, 2, device=device)
    assert torch.mm(a, b, out=out) is out
    assert torch.equal(out.cpu(), a.cpu() @ b.cpu())
    large = torch.zeros(6, 2, device=device)
    torch.mm(a, b, out=large[::2])
    assert torch.equal(large[::2], out) and not large[1::2].any()
    grown = torch.empty(0, device=device)
    torch.add(a, 1, out=grown)
    assert torch.equal(grown, a + 1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.add(a, 1, out=torch.empty(2, device=device))
    assert "was resized" in str(said[0].message)
    values, indices = torch.empty(0, device=device), torch.empty(0, device=device).long()
    torch.sort(a, out=(values, indices))
    assert torch.equal(values, a.sort().values) and torch.equal(indices, a.sort().indices)
    with pytest.raises(RuntimeError, match="result type|can't be cast"):
        torch.add(a, 1, out=torch.empty(3, 4, dtype=torch.int32, device=device))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_copies_that_need_not_wait(device: str, dtype: torch.dtype) -> None:
    """torch would pin the CPU's memory for them, which no device made in Python can do."""
    x = cpu(3, 4).to(device).t().requires_grad_()
    there = x.to("cpu", dtype, non_blocking=True)
    assert torch.equal(there, cpu(3, 4).t().to(dtype)) and there.stride() == (1, 4)
    (there.to(device, non_blocking=True) * 3).sum().backward()
    assert x.grad is not None and x.grad.unique().tolist() == [3]


@pytest.mark.parametrize("places", [3, [2, 5]])
def test_tensors_are_split_at_places_on_the_device(device: str, places: Any) -> None:
    x = cpu(7, 2).to(device).requires_grad_()
    parts = torch.tensor_split(x, torch.tensor(places, device=device))
    for part, expected in zip(parts, torch.tensor_split(cpu(7, 2), places), strict=True):
        assert part._base is x and torch.equal(part.cpu(), expected)
    parts[1].sum().backward()
    assert x.grad is not None and x.grad.sum() == parts[1].numel()
    with pytest.raises(RuntimeError, match="dtype of long"):
        torch.tensor_split(x, torch.tensor(1.0, device=device))


def test_overlap_is_refused(device: str) -> None:
    x = torch.ones(1, device=device).expand(4)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.add_(1)


# ---- autograd ------------------------------------------------------------------------------------


def test_backward_accumulates(device: str) -> None:
    x = cpu(3).to(device).requires_grad_()
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert x.grad is not None and x.grad.device == x.device
    assert torch.equal(x.grad.cpu(), 4 * x.detach().cpu())
    x.grad = None
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        assert (x * 2).is_inference()


def test_gradients_cross_devices(device: str) -> None:
    x = cpu(3).requires_grad_()
    (x.to(device) * 3).cpu().sum().backward()
    assert x.grad is not None and x.grad.device.type == "cpu" and x.grad.tolist() == [3, 3, 3]


def test_hooks(device: str) -> None:
    seen: list[Any] = []
    network = small_network().to(device)
    network[0].register_forward_hook(lambda m, args, out: seen.append(out.device.type))
    network[4].register_full_backward_hook(lambda m, gi, go: seen.append(gi[0].device.type))
    x = cpu(2, 1, 8, 8).to(device).requires_grad_()
    x.register_hook(lambda g: seen.append(g.shape))
    network(x).sum().backward()
    assert seen == [device, device, x.shape]


def test_higher_derivatives(device: str) -> None:
    x = cpu(4).to(device).requires_grad_()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert torch.allclose(second, 6 * x)
    assert torch.autograd.gradcheck(torch.tanh, x.detach().double().requires_grad_())


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # torch's own use
def test_functional_transforms(device: str) -> None:
    x = cpu(4, 3).to(device)
    square = torch.func.vmap(lambda row: (row * row).sum())
    assert torch.allclose(square(x), (x * x).sum(1))
    assert torch.allclose(torch.func.jacrev(torch.sin)(x[0]), torch.diag(x[0].cos()))
    value, tangent = torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))
    assert torch.equal(value, x.sin()) and torch.allclose(tangent, x.cos())


def test_checkpoint(device: str) -> None:
    from torch.utils.checkpoint import checkpoint

    x = cpu(2, 5).to(device).requires_grad_()
    layer = nn.Sequential(nn.Linear(5, 5), nn.Dropout(0.5)).to(device)
    y = checkpoint(layer, x, use_reentrant=False)
    y.sum().backward()
    # The same values were dropped the second time, or no gradient would match.
    kept = (y.detach() != 0).float() * 2
    assert torch.allclose(x.grad, kept @ layer[0].weight)


def test_custom_function(device: str) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            assert x.device == grad.device
            return grad * 2

    x = torch.ones(2, device=device, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_changed_saved_tensor_is_noticed(device: str) -> None:
    x = torch.ones(2, device=device, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# ---- training ------------------------------------------------------------------------------------


def test_training_is_the_cpu_s_bit_by_bit() -> None:
    def train(device: str) -> list[torch.Tensor]:
        network = small_network().to(device)
        optimizer = torch.optim.Adam(network.parameters(), lr=0.01, foreach=False)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        images, labels = cpu(8, 1, 8, 8).to(device), (torch.arange(8) % 3).to(device)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(network(images), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.detach().cpu())
        return losses + [p.detach().cpu() for p in network.state_dict().values()]

    for expected, found in zip(train("cpu"), train("pynq"), strict=True):
        assert torch.equal(expected, found)


def test_optimizer_state_lives_with_its_parameters(device: str) -> None:
    weight = nn.Parameter(torch.ones(3, device=device))
    optimizer = torch.optim.Adam([weight])
    weight.sum().backward()
    optimizer.step()
    state = pickle.loads(pickle.dumps(optimizer.state_dict()))
    again = torch.optim.Adam([weight])
    again.load_state_dict(state)
    assert again.state[weight]["exp_avg"].device == weight.device
    again.step()


def test_modules_move() -> None:
    network = small_network()
    assert network.to("pynq") is network
    assert {t.device.type for t in network.state_dict().values()} == {"pynq"}
    network.cpu()
    assert {t.device.type for t in network.state_dict().values()} == {"cpu"}
    network.to("pynq", torch.float64)
    assert network[0].weight.dtype is torch.float64


def test_tied_weights_are_tied_on_the_device(device: str) -> None:
    """``Module.to`` makes new parameters on another device, one for each module; so tie there."""
    a, b = nn.Linear(3, 3).to(device), nn.Linear(3, 3).to(device)
    b.weight = a.weight
    network = nn.Sequential(a, b)
    again = copy.deepcopy(network)
    assert again[0].weight is again[1].weight


# ---- keeping and loading -------------------------------------------------------------------------


def test_state_dicts(device: str) -> None:
    network, other = small_network().to(device), small_network()
    other.load_state_dict(network.state_dict())
    network.load_state_dict(other.state_dict())
    assert network[0].weight.device.type == device
    for name, value in other.state_dict().items():
        assert torch.equal(network.state_dict()[name].cpu(), value)


def test_deepcopy(device: str) -> None:
    base = torch.arange(6.0, device=device)
    again = copy.deepcopy({"base": base, "weight": nn.Parameter(base.clone())})
    again["base"].zero_()
    assert base.tolist() == [0, 1, 2, 3, 4, 5]
    assert isinstance(again["weight"], nn.Parameter) and again["weight"].device.type == device
    network = small_network().to(device)
    x = cpu(2, 1, 8, 8).to(device)
    assert torch.equal(copy.deepcopy(network)(x), network(x))
    assert torch.equal(copy.copy(base), base)


def shared(device: str) -> dict[str, Any]:
    """Tensors of all kinds over one storage, and the storage."""
    base = torch.arange(12.0, device=device).view(3, 4).t()
    return {
        "view": base[1:3],
        "base": base,
        "bits": base.view(torch.int32),
        "leaf": base[1].detach().requires_grad_(),
        "storage": base.untyped_storage(),
    }


def over_one_storage(made: dict[str, Any], expected: dict[str, Any]) -> None:
    """Hold a copy of `shared` against the CPU's, then write through one and read all others."""
    for _ in range(2):
        for name, tensor in made.items():
            if name != "storage":
                assert type(tensor) is type(expected[name])
                assert tensor.stride() == expected[name].stride()
                assert tensor.storage_offset() == expected[name].storage_offset()
                assert torch.equal(tensor.cpu(), expected[name].cpu())
        assert made["storage"].tolist() == expected["storage"].tolist()
        for each in (made, expected):
            each["base"].detach().mul_(2)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_deepcopy_of_tensors_that_share_a_storage(device: str) -> None:
    given = shared(device)
    again = copy.deepcopy(given)
    given["base"].zero_()
    over_one_storage(again, shared("cpu"))
    assert again["storage"].data_ptr() == again["base"].data_ptr()
    over_one_storage(copy.deepcopy(shared(device)), shared("cpu"))
    typed = copy.deepcopy([given["base"], given["base"]._typed_storage()])
    typed[0].fill_(3)
    assert typed[1]._untyped_storage.data_ptr() == typed[0].data_ptr()


def test_deepcopy_of_lazily_conjugated_views(device: str) -> None:
    z = torch.arange(4.0, device=device) * (1 + 2j)
    again = copy.deepcopy([z, z.conj(), z.conj().imag, z[1:]])
    z.zero_()
    expected = torch.arange(4.0) * (1 + 2j)
    for found, x in zip(
        again, (expected, expected.conj(), expected.conj().imag, expected[1:]), strict=True
    ):
        assert torch.equal(found.cpu(), x)
    again[0].zero_()
    assert not again[3].any()


def test_deepcopy_of_a_state_dict_that_shares_a_storage(device: str) -> None:
    layer = nn.Linear(3, 2).to(device)
    flat = torch.arange(9.0, device=device)
    layer.weight, layer.bias = nn.Parameter(flat[:6].view(2, 3)), nn.Parameter(flat[6:8])
    layer.register_buffer("all", flat)
    again = copy.deepcopy(layer.state_dict())
    again["all"].neg_()
    assert again["weight"].tolist() == [[0, -1, -2], [-3, -4, -5]]
    assert again["bias"].tolist() == [-6, -7]
    assert torch.equal(copy.deepcopy(layer).weight, layer.weight)
    assert flat.tolist() == list(range(9))


def test_pickle(device: str) -> None:
    x = cpu(3, 4).to(device)[1:]
    again = pickle.loads(pickle.dumps([x, nn.Parameter(x)]))
    assert torch.equal(again[0], x) and again[0].device.type == device
    assert isinstance(again[1], nn.Parameter) and again[1].requires_grad


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("weights_only", [False, True])
def test_save_and_load_of_storages(device: str, weights_only: bool) -> None:
    storage = torch.arange(3, dtype=torch.uint8, device=device).untyped_storage()
    file = io.BytesIO()
    torch.save([storage, storage], file)
    file.seek(0)
    first, second = torch.load(file, weights_only=weights_only)
    first.fill_(9)
    assert second.tolist() == [9, 9, 9] and second.device.type == device


@pytest.mark.parametrize("old_format", [False, True])
@pytest.mark.parametrize("weights_only", [False, True])
def test_save_and_load(device: str, old_format: bool, weights_only: bool) -> None:
    base = cpu(4, 4).to(device)
    saved = {"base": base, "view": base[1], "half": base.half(), "n": 3}
    file = io.BytesIO()
    torch.save(saved, file, _use_new_zipfile_serialization=not old_format)
    for location, place in ((None, device), ("cpu", "cpu"), ("pynq", "pynq"), ("pynq:0", "pynq")):
        file.seek(0)
        loaded = torch.load(file, map_location=location, weights_only=weights_only)
        assert loaded["view"].device.type == place
        assert torch.equal(loaded["base"].cpu(), base.cpu())
        assert torch.equal(loaded["half"].cpu(), base.half().cpu())
        loaded["base"].zero_()
        assert not loaded["view"].any()
    file.seek(0)
    loaded = torch.load(file, map_location={f"{device}:0": "cpu", device: "cpu"})
    assert loaded["base"].device.type == "cpu"


def test_files_go_between_machines(tmp_path: Path) -> None:
    """A file saved on "pynq" can be read where there is no such device, and the other way."""
    torch.save(small_network().to("pynq").state_dict(), tmp_path / "pynq.pt")
    source = (
        "import torch, sys; s = torch.load(sys.argv[1], map_location='cpu');"
        "print(float(s['4.bias'].sum())); torch.save(s, sys.argv[1] + '.cpu')"
    )
    run = subprocess.run(
        [sys.executable, "-c", source, str(tmp_path / "pynq.pt")],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert float(run.stdout) == small_network()[4].bias.sum().item()
    network = nn.Sequential(*small_network()).to("pynq")
    network.load_state_dict(torch.load(tmp_path / "pynq.pt.cpu", map_location="pynq"))
    assert torch.equal(network[4].bias.cpu(), small_network()[4].bias)


# ---- data ----------------------------------------------------------------------------------------


def test_data_loader(device: str) -> None:
    x, y = cpu(10, 3).to(device), torch.arange(10, device=device)
    dataset = torch.utils.data.TensorDataset(x, y)
    batches = list(torch.utils.data.DataLoader(dataset, batch_size=4))
    assert [len(labels) for _, labels in batches] == [4, 4, 2]
    assert torch.equal(torch.cat([images for images, _ in batches]), x)
    nested = torch.utils.data.default_collate([{"a": x[0], "b": (1, y[0])}] * 2)
    assert nested["a"].device.type == nested["b"][1].device.type == device


def test_data_loader_with_workers() -> None:
    """Workers are forked, and make batches on the CPU while the device is in use here."""
    inside = torch.ones(3, device="pynq")
    dataset = torch.utils.data.TensorDataset(cpu(8, 3), torch.arange(8))
    loader = torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=1)
    total = sum((images.to("pynq") * inside).sum() for images, _ in loader)
    assert torch.allclose(total.cpu(), cpu(8, 3).sum(), atol=1e-5)


# ---- random numbers ------------------------------------------------------------------------------


def test_manual_seed(device: str) -> None:
    torch.manual_seed(7)
    first = [torch.rand(3, device=device), torch.randint(9, (3,), device=device)]
    torch.manual_seed(7)
    again = [torch.rand(3, device=device), torch.randint(9, (3,), device=device)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], torch.rand(3, device=device))


def test_the_device_has_a_generator_of_its_own() -> None:
    torch.manual_seed(1)
    expected = torch.rand(4)
    torch.manual_seed(1)
    torch.rand(100, device="pynq")
    nn.functional.dropout(torch.ones(100, device="pynq"), 0.5)
    assert torch.equal(torch.rand(4), expected)
    torch.pynq.manual_seed(3)
    first = torch.randn(4, device="pynq")
    torch.rand(100)
    torch.pynq.manual_seed(3)
    assert torch.equal(torch.randn(4, device="pynq"), first)
    assert torch.pynq.initial_seed() == 3


def test_generator_states(device: str) -> None:
    module = torch.pynq if device == "pynq" else torch.random
    state = module.get_rng_state()
    assert state.device.type == "cpu" and state.dtype is torch.uint8
    first = nn.functional.dropout(torch.ones(50, device=device))
    module.set_rng_state(state)
    assert torch.equal(nn.functional.dropout(torch.ones(50, device=device)), first)
    with torch.random.fork_rng(device_type="pynq"):
        torch.rand(9, device=device)
    after = torch.rand(5, device=device)
    module.set_rng_state(state)
    nn.functional.dropout(torch.ones(50, device=device))
    assert torch.equal(torch.rand(5, device=device), after)


def test_generators_can_be_given(device: str) -> None:
    # torch has no hook for making a Generator("pynq") from Python; the CPU's serves.
    first = torch.rand(3, generator=torch.Generator().manual_seed(4), device=device)
    again = torch.rand(3, generator=torch.Generator().manual_seed(4), device=device)
    assert torch.equal(first, again)
    assert torch.equal(first.cpu(), torch.rand(3, generator=torch.Generator().manual_seed(4)))


# ---- mixing --------------------------------------------------------------------------------------


def test_mixed_devices_are_an_error_that_names_them() -> None:
    with pytest.raises(RuntimeError, match="same device.*pynq.*cpu|same device.*cpu.*pynq"):
        torch.ones(2, device="pynq") + torch.ones(2)
    with pytest.raises(RuntimeError, match="same device"):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2, device="pynq"))
    with pytest.raises(RuntimeError, match="same device"):
        torch.cat([torch.ones(2), torch.ones(2, device="pynq")])
    with pytest.raises(RuntimeError, match="same device"):
        nn.Linear(2, 2)(torch.ones(2, 2, device="pynq"))
    with pytest.raises(RuntimeError, match="device"):
        torch.ones(2).add_(torch.ones(2, device="pynq"))


def test_scalars_from_the_cpu_mix(device: str) -> None:
    x = torch.ones(3, device=device)
    assert (x * torch.tensor(2.0)).device.type == device
    assert (torch.tensor(2.0) + x).tolist() == [3, 3, 3]
    assert torch.where(x > 0, x, torch.tensor(0.0)).tolist() == [1, 1, 1]
    assert x[torch.tensor([0, 2])].tolist() == [1, 1]
    x[torch.tensor([True, False, True])] = 5
    assert x.tolist() == [5, 1, 5]


def test_dtypes_promote_as_on_the_cpu(device: str) -> None:
    whole, half = torch.ones(2, dtype=torch.int32), torch.ones(2, dtype=torch.float16)
    assert (whole.to(device) + half.to(device)).dtype is torch.float16
    assert (whole.to(device) / 2).dtype is torch.float32
    assert (whole.to(device) + 1.5).dtype is torch.float32
    assert torch.result_type(whole.to(device), 2.0) is torch.float32


# ---- threads -------------------------------------------------------------------------------------


def test_threads() -> None:
    """Threads share weights and make tensors of the same shapes at the same time."""
    network = small_network().to("pynq").eval()
    inputs = [cpu(2, 1, 8, 8) + n for n in range(4)]
    expected = [small_network().eval()(x) for x in inputs]
    wrong: list[str] = []

    def run(n: int) -> None:
        for _ in range(20):
            x = inputs[n].to("pynq").requires_grad_()
            y = network(x)
            y.sum().backward()
            if not torch.equal(y.detach().cpu(), expected[n]):
                wrong.append(f"thread {n}")

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


# ---- memory --------------------------------------------------------------------------------------


def test_memory_is_counted_and_comes_back() -> None:
    before = torch.pynq.memory_allocated()
    x = torch.empty(1 << 18, device="pynq")
    assert torch.pynq.memory_allocated() - before >= 1 << 20
    assert torch.pynq.max_memory_allocated() >= torch.pynq.memory_allocated()
    view = x[5:]
    del x
    assert torch.pynq.memory_allocated() > before
    del view
    assert torch.pynq.memory_allocated() == before
    torch.pynq.empty_cache()
    assert torch.pynq.memory_reserved() >= before
    free, total = torch.pynq.mem_get_info()
    assert 0 < free <= total
    assert torch.pynq.memory_stats()


# ---- PyTorch's own -------------------------------------------------------------------------------


@pytest.mark.timeout(600)
def test_pytorchs_own_tables_of_modules_optimisers_and_functions() -> None:
    """``tests/opdb/device_type_tests.py``, in a process of its own: it says why."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore"),
            *("--tb=line", "-rf", str(TESTS / "opdb" / "device_type_tests.py")),
        ],
        env={**os.environ, "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=580,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


def test_tied_weights_and_an_optimiser_survive_a_move_that_swaps() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    weight = model[0].weight
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    before = weight.detach().clone()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model.to("pynq")
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)

    assert model[0].weight is weight and model[1].weight is weight
    model(torch.ones(2, 3, device="pynq")).sum().backward()
    optimiser.step()
    assert weight.device.type == "pynq"
    assert not torch.equal(weight.detach().cpu(), before)
