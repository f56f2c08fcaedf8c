"""Data movement on the PL: every layout bit by bit, and torch's own errors for what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, of, watched
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

import pynq_torch
from pynq_torch import buffers
from pynq_torch.errors import ArgumentError
from pynq_torch.kernels.tables import movement

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

SPECIAL = torch.tensor(
    [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-45, 3.4e38, 1.17e-38]
)
#: A signalling NaN, and one with a payload: only a copy of bits keeps them.
NANS = torch.tensor([0x7F800001, 0x7FC12345, -1], dtype=torch.int32).view(torch.float32)


@pytest.fixture(autouse=True)
def overlay() -> Any:
    return loaded("movement")


def values(shape: Any, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Return values of which every few are special ones."""
    torch.manual_seed(seed)
    if dtype is torch.int32:
        return torch.randint(-(2**31), 2**31 - 1, shape, dtype=torch.int32)
    made = torch.randn(shape)
    pool = torch.cat([SPECIAL, NANS])
    chosen = torch.randint(0, 4 * len(pool), made.shape)
    return torch.where(chosen < len(pool), pool[chosen % len(pool)], made)


def same_bits(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two tensors are equal in every bit; NaN payloads count."""
    if found.dtype is not expected.dtype or found.shape != expected.shape:
        return False
    return torch.equal(found.cpu().contiguous().view(torch.int32), bits(expected))


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.int32)


def cma(tensor: torch.Tensor) -> torch.Tensor:
    return buffers.as_tensor(buffers.to_buffer(tensor), tensor.dtype)


def on_pl(calls: list[Any], *names: str) -> bool:
    """Whether all of these operators came, and the PL did each of them."""
    found = of(calls, *names)
    return bool(found) and all(c.where == "PL" and c.kernels and not c.reason for c in found)


@st.composite
def views(draw: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """A view of a tensor of five dimensions: turned, stepped, cut, and repeated."""
    order = draw(st.permutations(range(5)))
    cuts = draw(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3)), min_size=5, max_size=5))
    repeat = draw(st.none() | st.integers(0, 5))

    def view(x: torch.Tensor) -> torch.Tensor:
        x = x[tuple(slice(a, None, b) for a, b in cuts)].permute(*order)
        if repeat is not None:
            x = x.unsqueeze(repeat).expand(*x.shape[:repeat], 3, *x.shape[repeat:])
        return x

    return view


shapes = st.lists(st.integers(2, 6), min_size=5, max_size=5)
dtypes = st.sampled_from([torch.float32, torch.int32])


# ---- copies --------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(shape=shapes, view=views(), dtype=dtypes, seed=st.integers(0, 99))
def test_copies_of_any_layout(shape: list[int], view: Any, dtype: Any, seed: int) -> None:
    driver = loaded("movement").move_32
    x = values(shape, dtype, seed)
    expected = view(x)
    found = driver(view(cma(x)))
    assert found.is_contiguous() and same_bits(found, expected)
    p = view(x.to("pynq"))
    target = view(torch.full_like(x, 7).to("pynq")) if 0 not in p.stride() else None
    with watched() as calls:
        made = {"contiguous": p.clone(memory_format=torch.contiguous_format), "clone": p.clone()}
        if target is not None:
            made["copy_"] = target.copy_(p)
    assert on_pl(calls, "clone")
    assert target is None or on_pl(calls, "copy_")
    assert all(same_bits(m, expected) for m in made.values())
    assert made["contiguous"].is_contiguous()
    assert made["clone"].stride() == expected.clone().stride()


def test_a_transpose_goes_through_the_chip_in_squares(overlay: Any) -> None:
    opcode = movement.OPCODES["TRANSPOSE"]
    for shape in ((1, 1), (31, 33), (64, 64), (100, 7), (5, 1000)):
        x = values(shape)
        with watched() as calls:
            found = x.to("pynq").t().contiguous()
        assert same_bits(found, x.t())
        runs = [run.arguments for c in of(calls, "clone") for run in c.kernels]
        assert all(r["op"] == opcode for r in runs) if min(shape) > 1 else True


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.transpose_copy(x, 0, 2),
        lambda x: torch.permute_copy(x, (2, 0, 1)),
        lambda x: torch.t_copy(x[0]),
        lambda x: x.transpose(0, 1).contiguous(),
        lambda x: x.transpose(1, 2).reshape(-1),
        lambda x: x.mT.clone(memory_format=torch.contiguous_format),
        lambda x: x[None].expand(2, *x.shape).contiguous(),
        lambda x: x[None].clone(memory_format=torch.channels_last),
        lambda x: x.swapaxes(0, 2).flatten(),
        lambda x: x.T.clone(),
    ],
)
@pytest.mark.filterwarnings("ignore:The use of .x.T. on tensors:UserWarning")
def test_transposes_of_all_names(function: Any) -> None:
    x = values((5, 40, 33))
    with watched() as calls:
        found = function(x.to("pynq"))
    expected = function(x)
    assert same_bits(found, expected) and found.stride() == expected.stride()
    assert on_pl(calls, "clone")


def test_copies_that_repeat_and_copies_in_place() -> None:
    x, base = values((3, 4)), torch.zeros(5, 6, 8)
    p, small = base.to("pynq"), x.to("pynq")
    with watched() as calls:
        p[:, 1:4, ::2].copy_(small)
        p[0].copy_(small[0, 0])
    base[:, 1:4, ::2].copy_(x)
    base[0].copy_(x[0, 0])
    assert same_bits(p, base) and on_pl(calls, "copy_")


def test_a_step_where_the_size_is_one_stays() -> None:
    base = torch.randn(4, 2, 2)
    x = base[:1].as_strided((1, 2, 2), (32, 2, 1))
    assert x.clone().stride() == (32, 2, 1)
    p = base.to("pynq")[:1].as_strided((1, 2, 2), (32, 2, 1))
    assert p.clone().stride() == (32, 2, 1) and torch.equal(p.clone().cpu(), x)


def test_what_is_no_copy_for_the_pl() -> None:
    x = torch.arange(24.0)
    for do in (
        lambda t: t[1:].copy_(t[:-1].clone()),  # the PL
        lambda t: t[:12].copy_(t[12:]),  # one storage
        lambda t: t.copy_(torch.arange(24, dtype=torch.float64).to(t.device)),
        lambda t: t.neg().copy_(torch._neg_view(t)),
        lambda t: t[:0].copy_(t[:1]),
    ):
        p, q = x.to("pynq"), x.clone()
        assert torch.equal(do(p).cpu(), do(q)) and torch.equal(p.cpu(), q)
    p = x.to("pynq")
    with pytest.raises(RuntimeError, match="single memory location"):
        p[:1].expand(4).copy_(p[4:8].clone())
    with pytest.raises(RuntimeError, match="must match"):
        p[:3].copy_(p[:4].clone())
    for dtype in (torch.float64, torch.int64, torch.int8, torch.complex64, torch.bool):
        y = (x.view(4, 6) - 5).to(dtype)
        with watched() as calls:
            assert torch.equal(y.to("pynq").t().contiguous().cpu(), y.t())
        assert {c.where for c in of(calls, "clone")} == {"CPU"}


# ---- cat and stack -------------------------------------------------------------------------------


def test_stacks_of_channels_last_parts() -> None:
    part = values((1, 2, 3, 2)).to(memory_format=torch.channels_last)
    for dim in range(5):
        found, expected = torch.stack([part.to("pynq")] * 2, dim), torch.stack([part] * 2, dim)
        assert same_bits(found, expected) and found.stride() == expected.stride()


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    rest=st.lists(st.integers(1, 5), min_size=0, max_size=4),
    data=st.data(),
    dtype=dtypes,
)
def test_cat_and_stack(sizes: list[int], rest: list[int], data: Any, dtype: Any) -> None:
    loaded("movement")
    dim = data.draw(st.integers(0, len(rest)))
    parts = []
    for seed, n in enumerate(sizes):
        shape = [*rest[:dim], n, *rest[dim:]]
        order = data.draw(st.permutations(range(len(shape))))
        inverse = [order.index(i) for i in range(len(shape))]
        # The same values, with the dimensions in another order in memory.
        parts.append(values(shape, dtype, seed).permute(order).contiguous().permute(inverse))
    moved = [p.to("pynq") for p in parts]
    expected = torch.cat(parts, dim)
    with watched() as calls:
        found = torch.cat(moved, dim - len(rest) - 1)
        pair = torch.stack([moved[0], moved[0]], dim)
    assert same_bits(found, expected) and found.stride() == expected.stride()
    twice = torch.stack([parts[0], parts[0]], dim)
    assert same_bits(pair, twice)
    assert all(
        n == 1 or mine == its
        for n, mine, its in zip(pair.shape, pair.stride(), twice.stride(), strict=True)
    )
    for name, count in (("cat", sum(sizes)), ("stack", sizes[0])):
        (call,) = of(calls, name)
        assert not count or call.where == "PL" or "channels_last" in call.reason


def test_cat_of_odd_lists() -> None:
    x = values((2, 3)).to("pynq")
    empty = torch.empty(0, device="pynq")
    out = torch.empty(4, 3, device="pynq")
    with watched() as calls:
        assert same_bits(torch.cat([empty, x, empty]), x.cpu())
        assert torch.cat([x, x], out=out) is out
    assert on_pl(calls, "cat") and same_bits(out, torch.cat([x.cpu(), x.cpu()]))
    mixed = torch.cat([x, torch.ones(1, 3, dtype=torch.int32, device="pynq")])
    assert mixed.dtype is torch.float32 and mixed.shape == (3, 3)
    last = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    found, expected = torch.cat([last.to("pynq")] * 2), torch.cat([last] * 2)
    assert torch.equal(found.cpu(), expected) and found.stride() == expected.stride()
    for wrong in ([x, x[0]], [x, x[:, :2]], []):
        with pytest.raises((RuntimeError, ValueError)) as theirs:
            torch.cat([t.cpu() for t in wrong])
        with pytest.raises(type(theirs.value)) as ours:
            torch.cat(wrong)
        assert str(ours.value) == str(theirs.value)


# ---- with an index -------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    shape=shapes,
    view=views(),
    dtype=dtypes,
    wide=st.booleans(),
    step=st.integers(1, 3),
    data=st.data(),
)
def test_gathers_of_any_layout(
    shape: list[int], view: Any, dtype: Any, wide: bool, step: int, data: Any
) -> None:
    driver = loaded("movement").move_32
    base = values(shape, dtype, data.draw(st.integers(0, 99)))
    x, p = view(base), view(base.to("pynq"))
    dim = data.draw(st.integers(-x.dim(), x.dim() - 1))
    kind = torch.int64 if wide else torch.int32
    rows = torch.randint(0, x.shape[dim], (3 * step,), dtype=kind)
    sizes = [data.draw(st.integers(1, n)) for n in x.shape]
    sizes[dim] = data.draw(st.integers(1, 9))
    places = torch.randint(0, x.shape[dim], sizes[::-1]).permute(*range(len(sizes) - 1, -1, -1))
    with watched() as calls:
        selected = p.index_select(dim, rows.to("pynq")[::step])
        gathered = p.gather(dim, places.to("pynq"))
        indexed = p.contiguous()[(slice(None),) * (dim % x.dim()) + (rows.to("pynq").view(3, -1),)]
    assert on_pl(calls, "index_select", "gather", "index")
    assert same_bits(selected, x.index_select(dim, rows[::step]))
    assert same_bits(gathered, x.gather(dim, places))
    assert same_bits(indexed, x[(slice(None),) * (dim % x.dim()) + (rows.view(3, -1),)])
    assert same_bits(driver(x, rows, dim), x.index_select(dim, rows))
    assert same_bits(driver.gather(x, dim, places), x.gather(dim, places))


@settings(max_examples=60)
@given(shape=shapes, view=views(), data=st.data(), seed=st.integers(0, 99))
def test_what_an_index_chooses_lies_as_the_index_does(
    shape: list[int], view: Any, data: Any, seed: int
) -> None:
    loaded("movement")
    x = values(shape[:2], seed=seed)
    dim = data.draw(st.integers(0, x.dim() - 1))
    rows = torch.randint(0, shape[dim], data.draw(shapes), generator=torch.manual_seed(seed))
    before = (slice(None),) * dim
    with watched() as calls:
        found = x.to("pynq")[(*before, view(rows.to("pynq")))]
    expected = x[(*before, view(rows))]
    assert on_pl(calls, "index") and same_bits(found, expected)
    strides = zip(expected.shape, found.stride(), expected.stride(), strict=True)
    assert all(n == 1 or mine == its for n, mine, its in strides)


@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 4), (2, 3, 2)])
def test_embedding_and_its_gradient(shape: tuple[int, ...], kind: torch.dtype) -> None:
    torch.manual_seed(3)
    for width, padding in ((1, None), (33, 2), (1500, None)):
        w = torch.randn(5, width, requires_grad=True)
        q = w.detach().to("pynq").requires_grad_()
        i = torch.randint(0, 5, shape, dtype=kind)
        with watched() as calls:
            found = functional.embedding(i.to("pynq"), q, padding_idx=padding)
            (found * found).sum().backward()
        expected = functional.embedding(i, w, padding_idx=padding)
        (expected * expected).sum().backward()
        assert torch.equal(found.detach().cpu(), expected.detach())
        assert torch.equal(q.grad.cpu(), w.grad)
        assert on_pl(calls, "embedding", "embedding_dense_backward")


def test_sums_are_added_in_order() -> None:
    # In another order, or with more bits, these sums are others.
    torch.manual_seed(0)
    rows = torch.randn(4000, 3) * 10.0 ** torch.randint(-6, 6, (4000, 1))
    i = torch.randint(0, 4, (4000,))
    exact = torch.zeros(4, 3)
    for row, place in zip(rows, i.tolist(), strict=True):
        exact[place] += row
    target = torch.zeros(4, 3, device="pynq")
    with watched() as calls:
        added = target.index_add(0, i.to("pynq"), rows.to("pynq"))
        spread = target.scatter_add(0, i.to("pynq")[:, None].expand(-1, 3), rows.to("pynq"))
        in_place = target.clone().index_add_(0, i.to("pynq"), rows.to("pynq"))
    assert on_pl(calls, "index_add", "scatter_add", "index_add_")
    assert all(torch.equal(t.cpu(), exact) for t in (added, spread, in_place))
    assert not target.cpu().any()
    total = cma(torch.zeros(4, 3))
    assert loaded("movement").move_32.add_rows(total, 0, i, rows) is total
    assert torch.equal(total, exact)


@settings(max_examples=20)
@given(shape=st.lists(st.integers(1, 7), min_size=1, max_size=4), data=st.data())
def test_scatter_add_of_any_shape(shape: list[int], data: Any) -> None:
    loaded("movement")
    dim = data.draw(st.integers(0, len(shape) - 1))
    sizes = [data.draw(st.integers(1, n)) for n in shape]
    sizes[dim] = data.draw(st.integers(1, 9))
    i = torch.randint(0, shape[dim], sizes)
    # Sums of small integers are exact in any order: torch does not promise one for scatter_add.
    x, y = (torch.randint(-9, 9, s).float() for s in (shape, [n + 1 for n in sizes]))
    with watched() as calls:
        found = x.to("pynq").scatter_add(dim, i.to("pynq"), y.to("pynq"))
        x.to("pynq").scatter_add(dim, i[:1].to("pynq").expand_as(i), y.to("pynq"))
    assert on_pl(calls, "scatter_add")
    assert torch.equal(found.cpu(), x.scatter_add(dim, i, y))


def test_gradients_of_gathers() -> None:
    torch.manual_seed(1)
    x = torch.randn(6, 5, requires_grad=True)
    p = x.detach().to("pynq").requires_grad_()
    i, places = torch.tensor([5, 0, 5]), torch.randint(0, 6, (4, 5))
    with watched() as calls:
        (
            p.index_select(0, i.to("pynq")).square().sum() + p.gather(0, places.to("pynq")).sum()
        ).backward()
    (x.index_select(0, i).square().sum() + x.gather(0, places).sum()).backward()
    assert torch.equal(p.grad.cpu(), x.grad)
    assert on_pl(calls, "index_select", "gather", "index_add_")


def test_out_of_gathers() -> None:
    x, i = values((6, 5)), torch.tensor([5, 0, 5])
    p = x.to("pynq")
    out = torch.empty(3, 5, device="pynq")
    places = torch.randint(0, 6, (3, 5))
    with watched() as calls:
        assert torch.index_select(p, 0, i.to("pynq"), out=out) is out
        assert same_bits(out, x[i])
        torch.gather(p, 0, places.to("pynq"), out=out)
    assert same_bits(out, x.gather(0, places)) and on_pl(calls, "index_select", "gather")
    scalar = torch.index_select(p, 1, torch.tensor(3, device="pynq"))
    assert same_bits(scalar, x[:, 3:4])


@pytest.mark.parametrize(
    "do",
    [
        lambda x, i: functional.embedding(i, x),
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.gather(0, i[:, None]),
        lambda x, i: x[i],
        lambda x, i: x.index_add(0, i, x[:2]),
        lambda x, i: x.scatter_add(0, i[:, None], x),
    ],
)
@pytest.mark.parametrize("wrong", [4, -5, 2**40])
def test_an_index_out_of_range_is_torchs_error(do: Any, wrong: int) -> None:
    x, i = torch.randn(4, 3), torch.tensor([1, wrong])
    with pytest.raises((IndexError, RuntimeError)) as theirs:
        do(x, i)
    p = x.to("pynq")
    with watched() as calls, pytest.raises(type(theirs.value)) as ours:
        do(p, i.to("pynq"))
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]
    assert not any(c.kernels for c in calls if c.error) and torch.equal(p.cpu(), x)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: torch.index_select(x, 0, i, out=x),
        lambda x, i: torch.gather(x, 0, i.view(4, 1).expand(4, 4), out=x),
        lambda x, i: torch.cat([x[:1], x[:3]], out=x),
        lambda x, i: x.scatter_add_(0, i.view(4, 1).expand(4, 4), x),
        lambda x, i: x.index_add_(0, i, x),
        lambda x, i: x[:1].expand(4, 4).index_add_(0, i, x.clone()),
    ],
)
def test_a_written_tensor_that_is_read_is_torchs_error(call: Any) -> None:
    x, rows = values((4, 4)), torch.tensor([3, 1, 0, 1])
    with pytest.raises(RuntimeError, match="single memory location") as theirs:
        call(x.clone(), rows)
    with pytest.raises(RuntimeError) as ours:
        call(x.to("pynq"), rows.to("pynq"))
    assert str(ours.value) == str(theirs.value)


def test_what_the_cpu_does_and_why() -> None:
    x = torch.randn(4, 3, requires_grad=True)
    p = x.detach().to("pynq").requires_grad_()
    i = torch.tensor([1, 1, 0])
    functional.embedding(i, x, scale_grad_by_freq=True).sum().backward()
    cases: dict[str, Any] = {
        "scale_grad_by_freq": lambda: (
            functional.embedding(i.to("pynq"), p, scale_grad_by_freq=True).sum().backward()
        ),
        "takes float32 and int32, found float64": lambda: p.double()[i.to("pynq")],
        "adds in float32 only": lambda: torch.ones(4, dtype=torch.int32, device="pynq").index_add(
            0, i.to("pynq"), torch.ones(3, dtype=torch.int32, device="pynq")
        ),
        "alpha is not 1": lambda: p.detach().index_add(0, i.to("pynq"), p.detach()[:3], alpha=2),
        "one index at a time": lambda: p.detach()[i.to("pynq"), i.to("pynq")],
        "the index is on the CPU": lambda: p.detach()[i],
        "nothing to move": lambda: p.detach().index_select(0, i[:0].to("pynq")),
    }
    for reason, do in cases.items():
        with watched() as calls:
            do()
        assert any(reason in c.reason and c.where == "CPU" and not c.kernels for c in calls), reason
    assert torch.equal(p.grad.cpu(), x.grad)


# ---- the driver, the table, other overlays -------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda k, x: k(x.double()), "expected torch.float32"),
        (lambda k, x: k(x, torch.tensor([4])), "index 4 is out of range; expected 0 to 3"),
        (lambda k, x: k(x, torch.tensor([0, -1])), "index -1 is out of range"),
        (lambda k, x: k(x, torch.tensor([0.0])), "convert with index.long"),
        (lambda k, x: k(x, torch.tensor([[0]])), "expected 1 dimension"),
        (lambda k, x: k(x, torch.tensor([0]), 2), "no dimension 2"),
        (lambda k, x: k.gather(x, 0, torch.zeros(2, 9, dtype=torch.int64)), "none but dimension 0"),
        (lambda k, x: k.gather(x, 0, torch.zeros(2, dtype=torch.int64)), "expected 2 dimensions"),
        (lambda k, x: k.add_rows(x, 0, torch.tensor([0]), x), "a target in CMA memory"),
    ],
)
def test_the_driver_refuses_with_a_sentence(overlay: Any, call: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        call(overlay.move_32, torch.randn(4, 3))


def test_the_table_is_the_interface(overlay: Any) -> None:
    names = tuple(p.name for p in overlay.move_32.parameters)
    assert names == ("src", "index", "dst", *movement.REGISTERS)


def test_nothing_is_started_for_nothing(overlay: Any) -> None:
    with watched() as calls:
        assert overlay.move_32(torch.empty(0, 3)).shape == (0, 3)
        assert overlay.move_32(torch.ones(2, 3), torch.empty(0, dtype=torch.int64)).shape == (0, 3)
        torch.empty(0, 3, device="pynq").t().contiguous()
    assert not any(c.kernels for c in calls)


def test_without_a_unit_the_cpu_moves() -> None:
    pynq_torch.load("vadd")
    x = values((4, 5))
    p = x.to("pynq")
    with watched() as calls:
        assert same_bits(p.t().contiguous(), x.t())
        assert same_bits(torch.cat([p, p]), torch.cat([x, x]))
    (call,) = of(calls, "cat")
    assert call.where == "CPU" and "pynq_torch.load('movement')" in call.reason
    assert {c.where for c in of(calls, "clone")} == {"CPU"}
