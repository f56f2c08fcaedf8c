"""Pointwise functions: the table, the walk over strided operands, and results against torch."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
from device_helpers import closing, loaded
from hypothesis import given, settings
from hypothesis import strategies as st

from pynq_torch import buffers
from pynq_torch.errors import ArgumentError, VerificationError
from pynq_torch.hls import run_testbench
from pynq_torch.hls.generate import render
from pynq_torch.hls.own_kernel import write_kernel
from pynq_torch.kernels.pointwise import reference
from pynq_torch.kernels.pointwise_walk import broadcast, rows_of, runs, walk_of
from pynq_torch.kernels.tables.pointwise import FUNCTIONS, Function, find, instance, registers
from pynq_torch.paths import KERNELS
from pynq_torch.timing import model_cycles
from pynq_torch.verify import pointwise

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

EVERY = [f for functions in FUNCTIONS.values() for f in functions.values()]
FLOATING = [f for f in EVERY if f.floating]
INTEGER = [f for f in EVERY if f.integer]
INF, NAN = float("inf"), float("nan")
SPECIAL = torch.tensor(
    [
        *(0.0, -0.0, 1, -1, INF, -INF, NAN, 1e-45, -1e-45, 3.4028235e38, -3.4028235e38),
        *(1.1754944e-38, 0.5, -0.5, 1.5, 2.5, -2.5, 2, 3, -2, 10, 88.7, 89, -104),
    ]
)


def name_of(function: Function) -> str:
    return f"{function.kind}-{function.name}"


def values(seed: int, count: int = 6000) -> torch.Tensor:
    """Every kind of float32: random bits, values of everyday, and all special ones."""
    generator = torch.Generator().manual_seed(seed)
    bits = torch.randint(-(2**31), 2**31, (count,), generator=generator).to(torch.int32)
    everyday = torch.randn(count, generator=generator) * 3
    mixed = torch.where(
        torch.rand(count, generator=generator) < 0.4, bits.view(torch.float32), everyday
    )
    special = SPECIAL[torch.randint(0, len(SPECIAL), (count,), generator=generator)]
    return torch.where(torch.rand(count, generator=generator) < 0.3, special, mixed)


# ---- the table -----------------------------------------------------------------------------------


def test_opcodes_name_one_function_each() -> None:
    for functions in FUNCTIONS.values():
        opcodes = [f.opcode for f in functions.values()]
        assert opcodes == list(range(len(opcodes)))
        for f in functions.values():
            assert reference(f.kind, f.opcode) == f.reference
            assert len(f.parameters) <= 2 and f.floating


def test_every_overload_of_the_table_is_served() -> None:
    loaded("pointwise")
    torch.ones(1, device="pynq")  # the operators are registered with the first tensor
    from pynq_torch.ops import POINTWISE
    from pynq_torch.torch_device import dispatch

    named = {overload for f in EVERY for overload in f.overloads}
    served = {
        name
        for name, entries in dispatch._offers.items()
        if any(kernels == set(POINTWISE) for *_, kernels in entries)
    }
    assert named <= served
    assert {
        "aten::add_.Tensor",
        "aten::add.out",
        "aten::relu_",
        "aten::where.self_out",
    } <= served
    assert {"aten::threshold_backward.grad_input", "aten::div_.Tensor_mode"} <= served
    # What the table does not list is a variant of what it does.
    others = {name.partition(".")[0].rstrip("_") for name in served - named}
    assert others <= {name.partition(".")[0] for name in named}


def test_one_function_makes_a_kernel() -> None:
    cube = Function("cube", "unary", 0, "x ** 3", "x * x * x", example=(2.0, 8.0))
    files = render(instance("cube_f32", "unary", "f32", [cube]))
    assert "UNARY(CUBE, 1, x * x * x)" in files["cube_f32.cpp"]
    assert '{"cube", 0, 0.0, 0.0, {2.0}, 8.0, 0}' in files["cube_f32_tb.cpp"]
    with pytest.raises(ValueError, match="cube_i8: none of the functions"):
        instance("cube_i8", "unary", "i8", [cube])
    with pytest.raises(KeyError, match="no unary function is called 'sin'; there are abs"):
        find("unary", "sin")
    assert registers("unary") == (
        *("op", "p", "q", "n0", "n1", "n2", "n3"),
        *("x0", "x1", "x2", "x3"),
    )


def test_a_kernel_of_one_s_own_passes_its_testbench(tmp_path: Path) -> None:
    cube = Function("cube", "unary", 0, "x ** 3", "x * x * x", example=(2.0, 8.0))
    kernel = write_kernel(instance("cube_f32", "unary", "f32", [cube]), tmp_path)
    assert kernel.folder == tmp_path / "hw" / "kernels" / "cube_f32"
    assert "cube                 PASS" in run_testbench(kernel).output
    wrong = Function("cube", "unary", 0, "x ** 3", "x * x", example=(2.0, 8.0))
    kernel = write_kernel(instance("cube_f32", "unary", "f32", [wrong]), tmp_path)
    with pytest.raises(VerificationError, match="cube first wrong index 0: 4, expected 8"):
        run_testbench(kernel)


def test_errors_are_drawn_with_their_bound() -> None:
    unit = loaded("pointwise").unary_f32
    chart = pointwise.errors(unit, "tanh", points=101)
    assert [row[0] for row in chart.table.rows] == ["PL", "CPU"]
    assert all(float(row[2]) <= find("unary", "tanh").ulp for row in chart.table.rows)
    assert pointwise.errors(unit, "gelu", -1, 1, points=11).table.rows
    plt.close("all")


def test_spacing_is_that_of_float32() -> None:
    x = torch.tensor([1.0, 1.99, 2.0, -3.0, 0.0, 1e-45, INF])
    there = torch.nextafter(x.abs(), torch.tensor(INF)).double() - x.abs().double()
    assert torch.equal(find("unary", "neg").spacing(x)[:-1], there[:-1])
    cancelling = find("binary", "add_scaled").spacing(
        torch.tensor([1.0]), torch.tensor([-0.5]), p=2
    )
    assert cancelling.item() == 2.0**-22  # the sum of the sizes is 2, the result 0
    with pytest.raises(ValueError, match="add takes 2 operands \\(a, b\\); found 1"):
        find("binary", "add").reference(x)


# ---- the functions, all values -------------------------------------------------------------------


def unit(function: Function, short: str) -> Any:
    overlay = loaded("pointwise" if short == "f32" else "pointwise_int")
    return overlay.kernels[f"{function.kind}_{short}_0"]


def operands_of(function: Function, seed: int) -> list[torch.Tensor]:
    given = [values(seed + i) for i in range(len(function.operands))]
    return pointwise.trusted(function, given)


@pytest.mark.parametrize("function", FLOATING, ids=name_of)
def test_float32_is_torch_s_within_its_ulps(function: Function) -> None:
    for seed in (1, 2):
        given = operands_of(function, 10 * seed)
        parameters = {n: v if seed == 1 else 0.37 * v for n, v in function.parameters.items()}
        p, q = [*parameters.values(), 0.0, 0.0][:2]
        result = unit(function, "f32")(function.name, *given, **parameters)
        expected = function.reference(*given, p=p, q=q)
        assert torch.equal(result.isnan(), expected.isnan())
        assert torch.equal(result.isinf(), expected.isinf())
        error = (result.double() - expected.double()).abs()
        error[(result == expected) | result.isnan()] = 0
        scale = [g.float() for g in given]
        worst = (error / function.spacing(*scale, p=p, q=q)).max().item()
        assert worst <= function.ulp


@pytest.mark.parametrize("short", ["i32", "i8"])
@pytest.mark.parametrize("function", INTEGER, ids=name_of)
def test_integers_are_exact(function: Function, short: str) -> None:
    dtype = torch.int8 if short == "i8" else torch.int32
    info = torch.iinfo(dtype)
    ends = [info.min, info.min + 1, -3, -2, -1, 0, 1, 2, 3, 7, info.max - 1, info.max]
    every = torch.arange(-128, 128) if short == "i8" else torch.tensor(ends)
    grid = torch.meshgrid(*[every.to(dtype)] * len(function.operands[:2]), indexing="ij")
    given = [axis.reshape(-1) for axis in grid]
    if len(function.operands) == 3:
        third = torch.arange(given[0].numel()) % 5
        given.append(third > 2 if function.name == "where" else third.to(dtype))
    if function.name in ("div_trunc", "div_floor", "remainder"):
        # No 0; and of the least one by -1 the CPU of a PC makes a fault.
        fine = (given[1] != 0) & ~((given[0] == info.min) & (given[1] == -1))
        given = [g[fine] for g in given]
    parameters = {name: int(v) for name, v in function.parameters.items()}
    p, q = [*parameters.values(), 0, 0][:2]
    result = unit(function, short)(function.name, *given, **parameters)
    assert torch.equal(result, function.reference(*given, p=p, q=q))


@pytest.mark.parametrize("function", EVERY, ids=name_of)
def test_the_testbenches_expect_what_torch_gives(function: Function) -> None:
    dtypes = {"f32": torch.float32, "i32": torch.int32, "i8": torch.int8}
    for short, dtype in dtypes.items():
        for *operands, result in function.examples(short) if function.expression(short) else ():
            if -(2**31) in operands:  # torch divides it by -1, which traps
                continue
            tensors = (torch.tensor(value, dtype=dtype) for value in operands)
            kind = float if short == "f32" else int
            given = dict(zip("pq", map(kind, function.parameters.values()), strict=False))
            found = function.reference(*tensors, **given)
            bound = {"rtol": 1e-6, "atol": 0.0, "equal_nan": True}
            assert torch.allclose(found.double(), torch.tensor(result).double(), **bound), operands


def test_a_wrong_function_is_caught() -> None:
    wrong = Function("wrong", "unary", find("unary", "abs").opcode, "torch.neg(x)", "-x")
    with pytest.raises(VerificationError, match=r"wrong\(.*found .*, expected .* ulp, allowed 0"):
        pointwise.check(unit(wrong, "f32"), wrong)
    table = pointwise.functions(loaded("pointwise"), count=512)
    assert len(table.rows) == len(FLOATING) and {row[-1] for row in table.rows} == {"PASS"}


# ---- the walk ------------------------------------------------------------------------------------


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor in CMA memory that broadcasts to `shape`, by permutation, steps and repetition."""
    own = [n if draw(st.integers(0, 3)) else 1 for n in shape]
    own = own[draw(st.integers(0, len(own))) :] if draw(st.booleans()) else own
    order = draw(st.permutations(range(len(own))))
    step = draw(st.sampled_from([1, 1, 2]))
    memory = buffers.empty_tensor([own[d] * step for d in order])
    memory.copy_(torch.arange(memory.numel()).reshape(memory.shape) % 251 - 125)
    view = memory[tuple(slice(None, None, step) for _ in order)]
    view = view.permute([order.index(d) for d in range(len(own))])
    return view.expand(shape) if draw(st.booleans()) else view


@st.composite
def pairs(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=0, max_size=6)))
    return draw(views(shape)), draw(views(shape))


@given(data=st.data())
@settings(max_examples=50)
def test_any_strides_give_what_torch_gives(data: st.DataObject) -> None:
    unit = loaded("pointwise").binary_f32_0
    a, b = data.draw(pairs())
    taken = buffers.statistics()
    result, expected = unit("sub", a, b), a - b
    after = buffers.statistics()
    assert torch.equal(result, expected)
    strides = zip(result.stride(), expected.stride(), expected.shape, strict=True)
    assert all(here == there for here, there, size in strides if size > 1)
    # Room for the result, and nothing else: no operand was copied.
    assert after.hits + after.misses - taken.hits - taken.misses == 1


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    parts=st.integers(1, 4),
)
@settings(max_examples=50)
def test_runs_cover_the_result_once(sizes: list[int], parts: int) -> None:
    shape = tuple(sizes)
    lie = tuple(
        torch.empty(shape[::-1], device="meta").permute(*reversed(range(len(shape)))).stride()
    )
    walk = walk_of(shape, ((shape, lie), None))
    made = runs(walk, [(1000, 4, 0), (0, 0, 1)], [7], 5000, 4, parts)
    names = ("a", "b", "y", "op", *registers("binary")[5:])
    begins, total = [], 0
    for run in made:
        fields = dict(zip(names, run, strict=True))
        assert (fields["b"], fields["op"]) == (0, 7)
        begins.append(fields["y"])
        # The first loop's order is memory's, so operand and result lie alike.
        assert fields["a"] - 1000 == fields["y"] - 5000
        total += fields["n0"] * fields["n1"] * fields["n2"] * fields["n3"]
    assert total == walk.total and len(set(begins)) == len(made)


def test_shapes_that_do_not_broadcast() -> None:
    assert broadcast([(2, 1), (3,)]) == (2, 3)
    assert broadcast([(2,), (3,)]) is None
    for shapes in itertools.product([(1,), (3,), (2, 3), (2, 1), (4, 1, 1), ()], repeat=2):
        assert broadcast(list(shapes)) == tuple(torch.broadcast_shapes(*shapes))


def test_symbols_of_the_latency_model() -> None:
    flat = walk_of((6, 7), (((6, 7), (7, 1)),))
    assert (flat.sizes, rows_of(flat)) == ((42,), (1, 0))
    turned = walk_of((6, 7), (((6, 7), (7, 1)), ((6, 7), (1, 6))))
    assert rows_of(turned) == (6, 42)
    repeated = walk_of((6, 7), (((6, 7), (7, 1)), ((7,), (1,))))
    assert rows_of(repeated) == (6, 0)


# ---- the driver ----------------------------------------------------------------------------------


def test_a_condition_decides_how_the_result_lies() -> None:
    turned, straight = ((2, 3), (1, 2)), ((2, 3), (3, 1))
    assert walk_of((2, 3), (straight, straight, turned), "where").strides == (1, 2)
    assert walk_of((2, 3), (turned, None, straight), "where").row_major
    assert walk_of((2, 3), (turned, straight, None), "where").strides == (1, 2)
    assert walk_of((2, 3), (turned, straight, straight), "lerp").strides == (1, 2)
    assert walk_of((2, 3), (None, turned), "pow").row_major
    assert walk_of((2, 3), (turned, None), "pow").strides == (1, 2)


def test_numbers_go_through_registers() -> None:
    overlay = loaded("pointwise")
    x = values(3, 50)
    assert torch.equal(overlay.binary_f32_0("sub", 2.5, x).nan_to_num(7), (2.5 - x).nan_to_num(7))
    assert torch.equal(overlay.ternary_f32("where", x, 0.0, x > 0), torch.where(x > 0, x, 0.0))
    ones = torch.ones(3)
    assert overlay.ternary_f32("addcmul", 1.0, ones, 2.0, value=3.0).tolist() == [7.0] * 3
    assert overlay.ternary_f32("lerp", ones, 3.0, 0.25).tolist() == [1.5] * 3
    assert overlay.unary_f32("abs", torch.empty(0, 3)).shape == (0, 3)
    assert overlay.unary_f32("abs", torch.tensor(-2.0)).shape == ()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda o: o.unary_f32("sin", torch.ones(2)), "no unary function is called 'sin'"),
        (lambda o: o.unary_f32(torch.ones(2)), "function is Tensor; expected the name of one"),
        (lambda o: o.unary_f32("abs", torch.ones(2, dtype=torch.int32)), "expected torch.float32"),
        (lambda o: o.unary_f32("clamp", torch.ones(2), min=0), "are min, max; found min"),
        (lambda o: o.unary_f32("abs", torch.ones(2), p=1), "are none; found p"),
        (lambda o: o.unary_f32("abs", 2.0), "all operands are numbers"),
        (lambda o: o.binary_f32_0("add", torch.ones(2)), "takes 2 operands .a, b.; found 1"),
        (lambda o: o.binary_f32_0("add", torch.ones(2), torch.ones(3)), "do not broadcast"),
        (lambda o: o.ternary_f32("where", torch.ones(2), 0.0, torch.ones(2)), "torch.bool"),
    ],
)
def test_the_driver_refuses_with_a_sentence(call: Any, said: str) -> None:
    overlay = loaded("pointwise")
    with pytest.raises(ArgumentError, match=said):
        call(overlay)
    assert overlay.unary_f32("abs", torch.tensor([-1.0])).tolist() == [1.0]


def test_functions_without_integers_are_named() -> None:
    overlay = loaded("pointwise_int")
    with pytest.raises(ArgumentError, match="torch has no exp of torch.int32"):
        overlay.unary_i32("exp", torch.ones(2, dtype=torch.int32))


def test_integers_have_no_negative_powers() -> None:
    unit = loaded("pointwise_int").binary_i32
    a = torch.tensor([1, -1, 3], dtype=torch.int32)
    with pytest.raises(ArgumentError, match="pow of integers has exponent -1; expected 0 or more"):
        unit("pow", a, -1)
    assert unit("pow", a, 3).tolist() == [1, -1, 27]
    # Of tensors torch allows them.
    assert torch.equal(unit("pow", a, -a), a ** (-a))
    assert unit("pow", -1, a).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("divisor", [0, torch.tensor([1, 0], dtype=torch.int32)])
def test_integers_are_not_divided_by_zero(divisor: Any) -> None:
    unit = loaded("pointwise_int").binary_i32
    a = torch.tensor([7, -7], dtype=torch.int32)
    for name in ("div_trunc", "div_floor", "remainder"):
        with pytest.raises(ArgumentError, match=f"{name} of integers divides by 0"):
            unit(name, a, divisor)
    assert unit("remainder", a, 4).tolist() == [3, 1]


def test_functions_made_of_loops_and_long_routines_are_charged_as_that() -> None:
    """Neither fmod, a loop, nor erf and tanh, twenty additions on four cores, take a cycle each."""
    slow = {"tanh": 5, "gelu": 6, "gelu_tanh": 6, "gelu_backward": 6, "gelu_tanh_backward": 7,
            "remainder": 312, "div_floor": 340}  # fmt: skip
    for f in FLOATING:
        kernel = f"{f.kind}_f32"
        text = (KERNELS / kernel / f"{kernel}.cpp").read_text("utf-8")
        cycles = f.cycles("f32")
        assert cycles == slow.get(f.name, 1), f.name
        case = f"_LOOP({f.opname}, " if f.loop else f"({f.opname}, {cycles}, "
        assert f"{f.kind.upper()}{case}" in text
        modelled = model_cycles(kernel, n=4096, rows=1, single=0, op=f.opcode)
        assert modelled is not None
        assert 0 <= modelled - 4096 * cycles <= 2 * 1024 + 4 * 50 + 140
    assert model_cycles("binary_i32", n=4096, rows=1, single=0, op=9) > 32 * 4096  # type: ignore[operator]
