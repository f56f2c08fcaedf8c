"""Floating products in int8 by opt-in: how far off, the very bits, and nothing packed twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, of, watched
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.nn import functional

import pynq_torch
from pynq_torch import buffers
from pynq_torch.ops import quantise
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

matmul = torch.backends.pynq.matmul  # type: ignore[attr-defined]
#: Half a step, and what float32 adds to it.
HALF = 0.5 + 2.0**-15


def flags(*, allow_int8: bool) -> Any:
    return torch.backends.pynq.flags(allow_int8=allow_int8)  # type: ignore[attr-defined]


@pytest.fixture
def int8_allowed() -> Iterator[None]:
    loaded("gemm_dual")
    with flags(allow_int8=True):
        yield


# ---- values --------------------------------------------------------------------------------------

PATTERNS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "uniform": lambda v: v,
    "zero": torch.zeros_like,
    "constant": lambda v: torch.full_like(v, -0.7),
    "one outlier": lambda v: v.mul(1e-4).index_put((torch.tensor(0),), torch.tensor(1.0)),
    "mostly zero": lambda v: torch.where(v.abs() < 0.9, 0.0, v),
    "halves": lambda v: (v * 127).round() / 254,
}


def values_of(
    pattern: str, shape: tuple[int, ...], power: int, dtype: torch.dtype, seed: int
) -> torch.Tensor:
    """Return a pattern of magnitudes up to ``2**power``, as the dtype holds it."""
    generator = torch.Generator().manual_seed(seed)
    flat = torch.rand(shape, generator=generator, dtype=torch.float64).reshape(-1) * 2 - 1
    return (PATTERNS[pattern](flat.float()).double() * 2.0**power).reshape(shape).to(dtype)


#: dtype -> powers of two that it holds, subnormal numbers included.
RANGES = {torch.float32: (-149, 127), torch.bfloat16: (-133, 127), torch.float16: (-24, 15)}
tensors = st.sampled_from(list(RANGES)).flatmap(
    lambda dtype: st.tuples(
        st.sampled_from(list(PATTERNS)),
        st.just(dtype),
        st.integers(*RANGES[dtype]) | st.integers(-10, 10) | st.sampled_from(RANGES[dtype]),
        st.integers(0, 2**31),
    )
)


@settings(max_examples=150)
@given(kind=tensors, m=st.integers(1, 9), k=st.integers(1, 200) | st.just(3000))
def test_a_tensor_is_off_by_half_a_step_at_most(kind: Any, m: int, k: int) -> None:
    loaded("gemm_dual")
    pattern, dtype, power, seed = kind
    values = values_of(pattern, (m, k), power, dtype, seed)
    packed = quantise.per_tensor(values)
    assert not isinstance(packed, Declined)
    steps = memory.alias(packed.values)
    assert steps.dtype is torch.int8 and steps.shape == values.shape and int(steps.min()) > -128
    error = (steps.double() * packed.scale - values.double()).abs()
    assert bool((error <= HALF * packed.scale).all())
    if values.any():
        assert int(steps.abs().max()) == 127


@settings(max_examples=150)
@example(kind=("uniform", torch.float32, -120, 0), k=5, n=3)
@example(kind=("uniform", torch.float32, -149, 1), k=5, n=3)
@given(kind=tensors, k=st.integers(1, 60), n=st.integers(1, 9))
def test_each_column_is_off_by_half_its_own_step_at_most(kind: Any, k: int, n: int) -> None:
    loaded("gemm_dual")
    pattern, dtype, power, seed = kind
    values = values_of(pattern, (k, n), power, dtype, seed)
    packed = quantise.per_column(values.t().contiguous().t() if seed % 2 else values)
    assert not isinstance(packed, Declined)
    steps = memory.alias(packed.values)
    assert steps.is_contiguous() and packed.scale.shape == (n,)
    top = values.double().abs().amax(0)
    seen = top >= quantise.ZERO_BELOW
    error = (steps.double() * packed.scale.double() - values.double()).abs()
    assert bool((error <= torch.where(seen, HALF * top / 127, quantise.ZERO_BELOW)).all())
    assert bool((steps.int().abs().amax(0) == torch.where(seen, 127, 0)).all())


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("size", [10, 20000])
def test_what_is_not_finite_is_not_packed(bad: float, size: int) -> None:
    loaded("gemm_dual")
    values = torch.zeros(2, size)
    values[1, 3] = bad
    assert quantise.per_tensor(values) is quantise.NOT_FINITE
    assert quantise.per_column(values) is quantise.NOT_FINITE
    assert quantise.per_tensor(values[:, ::2][:1]) is not quantise.NOT_FINITE


# ---- products ------------------------------------------------------------------------------------


def reference(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Return the product in int8, in the words of the documentation."""
    a, b = a.float(), b.float()
    top, tops = float(a.abs().max()), b.abs().amax(0)
    left = (a * (127 / top) if top else a).round()
    right = torch.where(tops > 0, b * (127 / tops), 0.0).round()
    sums = left.long() @ right.long()
    scale, scales = (top / 127 if top else 1.0), torch.where(tops > 0, tops / 127, 1.0)
    if a.shape[1] * 127**2 < 2**31:
        result = sums.float() * (scales * scale)
        return result if bias is None else result + bias
    exact = sums.double() * (scales.double() * scale)
    return (exact if bias is None else exact + bias).float()


@settings(max_examples=120)
@example(("uniform", torch.float16, -8, 7), ("uniform", torch.float16, -15, 8), 4, 3, 4)
@example(("uniform", torch.float16, -3, 7), ("uniform", torch.float16, 2, 8), 4, 1, 4)
@example(("uniform", torch.bfloat16, 0, 7), ("uniform", torch.bfloat16, 0, 8), 4, 1, 4)
@given(
    left=tensors,
    right=tensors,
    m=st.integers(1, 12),
    k=st.integers(1, 60),
    n=st.integers(1, 12),
)
def test_products_are_within_the_bound(left: Any, right: Any, m: int, k: int, n: int) -> None:
    loaded("gemm_dual")
    dtype = left[1]
    low, high = RANGES[dtype]
    power = max(low, min(high, right[2]))
    a = values_of(left[0], (m, k), left[2], dtype, left[3])
    b = values_of(right[0], (k, n), power, dtype, right[3])
    with flags(allow_int8=True), watched() as calls:
        found = a.to("pynq") @ b.to("pynq")
    (call,) = of(calls, "mm")
    assert found.dtype is dtype
    exact = a.double() @ b.double()
    if call.where == "CPU":
        assert "float32" in call.reason and a.abs().max().clamp(1) * b.abs().max().clamp(1) > 1e30
        assert torch.equal(found.cpu().nan_to_num(), (a @ b).nan_to_num())
        return
    y = found.cpu().double()
    kind = torch.finfo(dtype)
    bound = quantise.error_bound(a, b)
    beyond = exact.abs() + bound > kind.max  # only there may it be infinite
    assert bool((((y - exact).abs() <= bound) | beyond).all())
    assert not bool(y.isnan().any())


@settings(max_examples=60)
@given(
    m=st.integers(1, 40),
    k=st.integers(1, 300),
    n=st.integers(1, 40),
    pattern=st.sampled_from([p for p in PATTERNS if p != "zero"]),
    power=st.integers(-20, 20),
    bias=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_products_have_the_bits_of_the_formula(
    m: int, k: int, n: int, pattern: str, power: int, bias: bool, seed: int
) -> None:
    loaded("gemm_dual")
    a = values_of(pattern, (m, k), power, torch.float32, seed)
    w = values_of("uniform", (n, k), 0, torch.float32, seed + 1)
    offset = values_of("uniform", (n,), power, torch.float32, seed + 2) if bias else None
    given = [None if v is None else v.to("pynq") for v in (a, w, offset)]
    with flags(allow_int8=True), watched() as calls:
        found = functional.linear(*given)  # type: ignore[arg-type]
    assert torch.equal(found.cpu(), reference(a, w.t(), offset))
    assert [c.where for c in of(calls, "mm", "addmm")] == ["PL"]


@pytest.mark.parametrize("name", ["gemm", "matrix_mult", "matrix_mult_dual"])
def test_other_units_give_the_same_bits(name: str) -> None:
    loaded(name)
    a, w, bias = torch.randn(30, 300), torch.randn(70, 300), torch.randn(70)
    with flags(allow_int8=True):
        found = functional.linear(a.to("pynq"), w.to("pynq"), bias.to("pynq"))
    assert torch.equal(found.cpu(), reference(a, w.t(), bias))


def test_a_bias_may_have_strides(int8_allowed: None) -> None:
    x, w, wide = torch.randn(3, 20), torch.randn(8, 20), torch.randn(8, 2)
    for bias in (wide.to("pynq")[:, 1], wide[0, 1].expand(8).to("pynq"), wide.to("pynq")[0, :1]):
        with watched() as calls:
            found = functional.linear(x.to("pynq"), w.to("pynq")[: len(bias)], bias)
        assert any(call.where == "PL" for call in calls)
        assert torch.equal(found.cpu(), reference(x, w[: len(bias)].t(), bias.cpu()))
    spread = wide.to("pynq")[0, 1].expand(8)
    found = functional.linear(x.to("pynq"), w.to("pynq"), spread)
    assert torch.equal(found.cpu(), reference(x, w.t(), wide[0, 1].expand(8)))


def test_long_sums_are_split_where_they_could_leave_int32(int8_allowed: None) -> None:
    k = 133_145
    for a, b in (
        (torch.ones(2, k), torch.ones(k, 3)),  # 127 * 127 * k is beyond 2**31
        (torch.rand(2, k), torch.rand(k, 3)),
        (torch.randn(1, 2 * k), torch.randn(2 * k, 1)),
    ):
        bias = torch.randn(b.shape[1])
        with watched() as calls:
            found = torch.addmm(bias.to("pynq"), a.to("pynq"), b.to("pynq"))
        assert torch.equal(found.cpu(), reference(a, b, bias))
        error = (found.cpu().double() - bias - a.double() @ b.double()).abs()
        assert bool((error <= quantise.error_bound(a, b) + 1e-6 * found.cpu().abs()).all())
        (call,) = of(calls, "addmm")
        assert call.where == "PL" and len(call.kernels) >= 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_packed_from_its_values(int8_allowed: None, dtype: torch.dtype) -> None:
    a, b, bias = torch.randn(20, 50, dtype=dtype), torch.randn(50, 9).to(dtype), torch.randn(9)
    bias = bias.to(dtype)
    found = torch.addmm(bias.to("pynq"), a.to("pynq"), b.to("pynq"))
    assert found.dtype is dtype
    assert torch.equal(found.cpu(), reference(a, b, bias.float()).to(dtype))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda c, a, b: torch.addmm(c, a, b, alpha=0.5, beta=-2.0), ((9,), (5, 7), (7, 9))),
        (lambda c, a, b: torch.addmm(c, a, b, beta=0), ((5, 9), (5, 7), (7, 9))),
        (lambda c, a, b: c.addmm_(a, b), ((5, 9), (5, 7), (7, 9))),
        (lambda c, a, b: torch.baddbmm(c, a, b, alpha=2), ((2, 1, 9), (2, 5, 7), (2, 7, 9))),
        (lambda c, a, b: torch.addmv(c, a, b), ((5,), (5, 7), (7,))),
    ],
)
def test_weighted_sums(int8_allowed: None, function: Any, shapes: Any) -> None:
    on_cpu = [torch.randn(shape) for shape in shapes]
    with watched() as calls:
        found = function(*(t.to("pynq") for t in on_cpu))
    assert {c.where for c in of(calls, "addmm", "addmm_", "baddbmm", "addmv")} == {"PL"}
    torch.testing.assert_close(found.cpu(), function(*on_cpu), rtol=0.05, atol=0.1)


def test_beta_zero_ignores_what_is_not_finite(int8_allowed: None) -> None:
    c, a, b = torch.full((5, 9), float("nan")), torch.randn(5, 7), torch.randn(7, 9)
    found = torch.addmm(c.to("pynq"), a.to("pynq"), b.to("pynq"), beta=0)
    assert torch.equal(found.cpu(), reference(a, b))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_int8_cannot_hold_runs_exactly_on_the_cpu(int8_allowed: None, bad: float) -> None:
    a, b = torch.randn(5, 7), torch.randn(7, 9)
    for left, right in ((a.index_fill(1, torch.tensor(2), bad), b), (a, b * bad)):
        with watched() as calls:
            found = left.to("pynq") @ right.to("pynq")
        assert torch.equal(found.cpu().nan_to_num(), (left @ right).nan_to_num())
        (call,) = of(calls, "mm")
        assert call.where == "CPU" and "infinite or not numbers" in call.reason


def test_infinite_scales_do_not_make_zero_a_nan(int8_allowed: None) -> None:
    a, b = torch.tensor([[1e38, 0.0]]), torch.tensor([[0.0], [1e38]])
    for left, right in ((a, b), (a.repeat(1, 5000), b.repeat(5000, 1))):
        assert (left.to("pynq") @ right.to("pynq")).item() == 0.0


def test_double_runs_exactly_also_where_int8_is_allowed(int8_allowed: None) -> None:
    a = torch.randn(4, 4, dtype=torch.float64)
    with watched() as calls:
        assert torch.equal((a.to("pynq") @ a.to("pynq")).cpu(), a @ a)
    assert "float64" in of(calls, "mm")[0].reason


def test_a_view_that_is_negated_in_passing(int8_allowed: None) -> None:
    z = torch.randn(4, 6, dtype=torch.complex64).to("pynq")
    w = torch.randn(6, 3).to("pynq")
    plain, negated = z.imag @ w, z.conj().imag @ w
    assert torch.equal(plain, -negated) and bool(plain.any())


# ---- the switch ----------------------------------------------------------------------------------


def test_the_switch_belongs_to_a_thread() -> None:
    assert matmul.allow_int8 is False
    seen = []
    with flags(allow_int8=True):
        thread = threading.Thread(target=lambda: seen.append(matmul.allow_int8))
        thread.start()
        thread.join()
        assert matmul.allow_int8 is True
    assert seen == [False] and matmul.allow_int8 is False


@pytest.mark.parametrize("name", ["allow_int8", "matmul", "allow_tf32"])
def test_the_module_takes_no_other_switch(name: str) -> None:
    backend: Any = torch.backends.pynq  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"torch\.backends\.pynq\.matmul\.allow_int8"):
        setattr(backend, name, True)
    assert backend.matmul is matmul and not hasattr(backend, "allow_int8")
    assert "flags" in backend.__doc__ and "matmul.allow_int8" in backend.__doc__


def test_the_context_manager_puts_back_what_was() -> None:
    with pytest.raises(ZeroDivisionError), flags(allow_int8=True):
        with flags(allow_int8=False):
            assert not matmul.allow_int8
        assert matmul.allow_int8
        raise ZeroDivisionError
    assert not matmul.allow_int8
    matmul.allow_int8 = True
    try:
        with flags(allow_int8=False):
            pass
        assert matmul.allow_int8
    finally:
        matmul.allow_int8 = False
    with pytest.raises(TypeError, match="True or False"):
        matmul.allow_int8 = 1
    with pytest.raises(AttributeError, match="allow_tf32"):
        matmul.allow_tf32 = True


@pytest.mark.parametrize("bias", [True, False])
def test_autograd_goes_forward_in_int8_and_backward_exactly(bias: bool) -> None:
    loaded("gemm_dual")
    on_cpu = [torch.randn(6, 20), torch.randn(4, 20), torch.randn(4)][: 3 if bias else 2]
    given = [t.to("pynq").requires_grad_() for t in on_cpu]
    with watched() as calls:
        with flags(allow_int8=True):
            found = functional.linear(*given)
        weight = torch.arange(24.0).reshape(6, 4)
        (found * weight.to("pynq")).sum().backward()
    assert torch.equal(found.detach().cpu(), reference(on_cpu[0], on_cpu[1].t(), *on_cpu[2:]))
    # The gradients of the exact product, from the exact values.
    theirs = [t.requires_grad_() for t in on_cpu]
    (functional.linear(*theirs) * weight).sum().backward()
    for mine, other in zip(given, theirs, strict=True):
        assert mine.grad is not None and torch.equal(mine.grad.cpu(), other.grad)  # type: ignore[arg-type]
    products = of(calls, "mm", "addmm")
    assert [c.where for c in products] == ["PL", "CPU", "CPU"]


# ---- packed once ---------------------------------------------------------------------------------


class Counts:
    """How often tensors were packed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.columns = self.tensors = 0
        self._inside = False
        for name, counter in (
            ("write_columns", "columns"),
            ("write_steps", "tensors"),
            ("_write_few", "tensors"),
        ):
            monkeypatch.setattr(quantise, name, self._counting(getattr(quantise, name), counter))

    def _counting(self, function: Any, counter: str) -> Any:
        def count(*args: Any, **kwargs: Any) -> Any:
            if self._inside:  # one of them calls another
                return function(*args, **kwargs)
            setattr(self, counter, getattr(self, counter) + 1)
            self._inside = True
            try:
                return function(*args, **kwargs)
            finally:
                self._inside = False

        return count

    def take(self) -> tuple[int, int]:
        """Return (activations, weights) since the last time."""
        found = self.tensors, self.columns
        self.tensors = self.columns = 0
        return found


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    return Counts(monkeypatch)


def test_nothing_is_packed_twice(int8_allowed: None, counts: Counts) -> None:
    x = torch.randn(5, 20, device="pynq")
    layers = [torch.nn.Linear(20, 8, device="pynq") for _ in range(2)]
    with torch.no_grad():
        first = [layer(x) for layer in layers]
        assert counts.take() == (1, 2)
        again = [layer(x) for layer in layers]
        assert counts.take() == (0, 0)
        assert all(map(torch.equal, first, again))
        layers[0](torch.randn(5, 20, device="pynq"))
        assert counts.take() == (1, 0)
        # Reading changes nothing.
        str(layers[0].weight), layers[0].weight.sum(), layers[0].weight.t(), x.cpu(), x.view(-1)
        [layer(x) for layer in layers]
        assert counts.take() == (0, 0)


WRITES: dict[str, Callable[[torch.nn.Linear], object]] = {
    "in place": lambda m: m.weight.mul_(2),
    "fill_": lambda m: m.weight.fill_(0.5),
    "item": lambda m: m.weight.__setitem__((0, 0), 5.0),
    "a view": lambda m: m.weight[1].copy_(torch.ones(20)),
    "a view of a view": lambda m: m.weight.view(-1)[::7].zero_(),
    "a detached view": lambda m: m.weight.detach().neg_(),
    ".data": lambda m: m.weight.data.add_(1),
    ".data set": lambda m: setattr(m.weight, "data", torch.ones(8, 20, device="pynq")),
    "copy_": lambda m: m.weight.copy_(torch.arange(160.0).reshape(8, 20)),
    "copy_ on the device": lambda m: m.weight.copy_(torch.ones(8, 20, device="pynq")),
    "out": lambda m: torch.add(m.weight.data, 1, out=m.weight.data),
    "load_state_dict": lambda m: m.load_state_dict({"weight": torch.ones(8, 20), "bias": m.bias}),
    "load_state_dict, assign": lambda m: m.load_state_dict(
        {"weight": torch.ones(8, 20, device="pynq"), "bias": m.bias.data}, assign=True
    ),
    "set_": lambda m: m.weight.set_(torch.ones(8, 20, device="pynq")),
    "init": lambda m: torch.nn.init.kaiming_uniform_(m.weight),
    "random": lambda m: m.weight.uniform_(),
    "foreach": lambda m: torch._foreach_mul_([m.weight, m.bias], 3.0),
    "index_put_": lambda m: m.weight.index_put_((torch.tensor([0]),), torch.tensor(9.0)),
    "the storage": lambda m: m.weight.untyped_storage().fill_(0),
    "a byte": lambda m: m.weight.untyped_storage().__setitem__(3, 66),
    "storage copy_": lambda m: m.weight.untyped_storage().copy_(
        torch.ones(160, device="pynq").untyped_storage()
    ),
    "typed storage": lambda m: m.weight.storage().__setitem__(0, 7.0),
    "half an operator": lambda m: _fail(m.weight),
}


def _fail(weight: torch.Tensor) -> None:
    index = torch.tensor([[0], [99]], device="pynq")
    with pytest.raises(RuntimeError, match="out of bounds"):
        weight.scatter_(0, index, torch.full((2, 1), 44.0, device="pynq"))


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_is_packed_again(int8_allowed: None, counts: Counts, write: str) -> None:
    x, module = torch.randn(5, 20), torch.nn.Linear(20, 8, device="pynq")
    with torch.no_grad():
        module(x.to("pynq"))
        WRITES[write](module)
        counts.take()
        found = module(x.to("pynq"))
        assert counts.take() == (1, 1)
        expected = reference(x, module.weight.cpu().t(), module.bias.cpu())
        assert torch.equal(found.cpu(), expected)


def test_swapped_bytes_are_packed_again(int8_allowed: None) -> None:
    x, w = torch.ones(1, 2, device="pynq"), torch.full((2, 2), 3.015625, device="pynq")
    assert (x @ w).tolist() == [[6.03125] * 2]
    w.untyped_storage().byteswap(torch.int16)
    assert (x @ w).tolist() == [[24.0] * 2]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop"])
@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}])
def test_a_step_of_an_optimiser_is_a_write(
    counts: Counts, name: str, options: dict[str, bool]
) -> None:
    if "fused" in options and name == "RMSprop":
        options = {"foreach": False}
    loaded("gemm_dual")
    x, module = torch.randn(5, 20), torch.nn.Linear(20, 8, device="pynq")
    try:
        optimiser = getattr(torch.optim, name)(module.parameters(), lr=0.1, **options)
    except RuntimeError as error:
        pytest.skip(f"torch says: {error}")
    with flags(allow_int8=True):
        for _ in range(2):
            optimiser.zero_grad()
            counts.take()
            found = module(x.to("pynq"))
            assert counts.take() == (1, 1)
            expected = reference(x, module.weight.cpu().t(), module.bias.cpu()).detach()
            assert torch.equal(found.detach().cpu(), expected)
            found.sum().backward()
            optimiser.step()


def test_a_resized_tensor_is_packed_again(int8_allowed: None, counts: Counts) -> None:
    x, w = torch.randn(3, 4), torch.randn(4, 6).to("pynq")
    torch.mm(x.to("pynq"), w)
    w.resize_(4, 9).copy_(torch.arange(36.0).reshape(4, 9))
    counts.take()
    assert torch.equal(torch.mm(x.to("pynq"), w).cpu(), reference(x, w.cpu()))
    assert counts.take() == (1, 1)


def test_parts_of_one_storage_are_told_apart(int8_allowed: None) -> None:
    x, w = torch.randn(3, 8), torch.randn(8, 8)
    y, v = x.to("pynq"), w.to("pynq")
    for _ in range(2):
        for part in (slice(0, 4), slice(4, 8)):
            found = y[:, part] @ v[part]
            assert torch.equal(found.cpu(), reference(x[:, part], w[part]))
        assert torch.equal((y @ v.t()).cpu(), reference(x, w.t()))
        assert torch.equal((y @ v).cpu(), reference(x, w))
        assert torch.equal(
            (y.view(6, 4) @ v.view(4, 16)).cpu(), reference(x.view(6, 4), w.view(4, 16))
        )


def test_memory_that_others_write_is_packed_for_every_call(int8_allowed: None) -> None:
    x = torch.randn(3, 4)
    raw = buffers.empty_tensor((4, 6), torch.float32)
    raw.copy_(torch.randn(4, 6))
    shared = memory.from_cma(raw)
    known = torch.randn(4, 6).to("pynq")
    torch.pynq.physical_address(known)  # type: ignore[attr-defined]
    for w, writable in ((shared, raw), (known, memory.alias(known))):
        for _ in range(2):
            found = x.to("pynq") @ w
            assert torch.equal(found.cpu(), reference(x, w.cpu()))
            writable.mul_(-1.5)


def test_a_packed_copy_dies_with_its_tensor(int8_allowed: None) -> None:
    torch.pynq.empty_cache()  # type: ignore[attr-defined]
    before = torch.pynq.memory_allocated()  # type: ignore[attr-defined]
    w = torch.randn(100, 100).to("pynq")
    torch.randn(5, 100).to("pynq") @ w
    assert torch.pynq.memory_allocated() >= before + 50_000  # type: ignore[attr-defined]
    del w
    assert torch.pynq.memory_allocated() == before  # type: ignore[attr-defined]


def test_an_overlay_that_comes_later_finds_the_packed_copy(counts: Counts) -> None:
    loaded("gemm_dual")
    x, module = torch.randn(5, 20), torch.nn.Linear(20, 8, device="pynq")
    with torch.no_grad(), flags(allow_int8=True):
        first = module(x.to("pynq"))
        pynq_torch.load("matrix_mult")
        counts.take()
        assert torch.equal(first, module(x.to("pynq")))
        assert counts.take() == (1, 0)
