"""Charts, routes and the fallback's switch: what goes to the PL is decided call by call."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import pynq_torch
from pynq_torch.errors import NoKernelError, RouteError
from pynq_torch.torch_device import record

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def board() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    pynq_torch.load("gemm")
    yield board
    board.close()


@pytest.fixture
def profiler(board: Any) -> Iterator[Any]:
    """The profiler without chart, route or log."""
    found, log = torch.pynq.profiler, torch.pynq.kernel_logger
    yield found
    found.disable()
    found.route.clear()
    found.fallback.enable()
    found.chart.clear_beacon()
    found.clear()
    log.disable()
    log.clear()
    assert not record.switches.active


def int8(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8).to("pynq")


def starts() -> int:
    """How many starts of compute units the logger has seen."""
    return len(torch.pynq.kernel_logger.entries())


# ---- the chart -----------------------------------------------------------------------------------


def test_the_chart_has_chosen_operators_in_order(profiler: Any) -> None:
    chart = profiler.chart
    chart.add_beacon("aten::_int_mm")
    chart.add_beacon("add")
    a, x = int8(4, 4), torch.ones(2, 3, device="pynq")
    x + x  # no region of interest is open
    with profiler.profile():
        torch._int_mm(a, a)
        x * x  # no beacon
        x + 1
        torch._int_mm(a, int8(4, 8))
    x + x
    int_mm, add = "aten::_int_mm", "aten::add.Tensor"
    assert [(e["signature"], e["offload"], e["inputs"]) for e in chart.entries()] == [
        (int_mm, True, ["int8[4x4]", "int8[4x4]"]),
        (add, False, ["float32[2x3]"]),
        (int_mm, True, ["int8[4x4]", "int8[4x8]"]),
    ]
    assert "reason" not in chart.entries()[0]
    assert "pynq_torch.load(" in chart.entries()[1]["reason"]
    assert json.loads(chart.json()) == json.loads(chart.fancy_print()) == chart.entries()
    assert '\n        "offload": true' in chart.fancy_print()
    chart.clear()
    assert chart.entries() == [] and chart.json() == "[]" and len(chart.beacons()) == 2


@pytest.mark.parametrize(
    ("beacon", "expected"),
    [
        ("add", ["aten::add.Tensor"]),
        ("aten::add", ["aten::add.Tensor"]),
        ("aten::add.Tensor", ["aten::add.Tensor"]),
        ("aten::add_.Tensor", ["aten::add_.Tensor"]),
        ("aten::add.out", []),
        (str(torch.ops.aten.add_.Tensor._schema), ["aten::add_.Tensor"]),
        (
            "aten::add.Tensor(Tensor self,Tensor other,*,Scalar alpha=1)->Tensor",
            ["aten::add.Tensor"],
        ),
    ],
)
def test_a_beacon_is_a_name_an_overload_or_a_schema(
    profiler: Any, beacon: str, expected: list[str]
) -> None:
    profiler.chart.add_beacon(beacon)
    x = torch.ones(2, device="pynq")
    with profiler.profile():
        x + x
        x += 1
    assert [e["signature"] for e in profiler.chart.entries()] == expected


@pytest.mark.parametrize(
    ("beacon", "words"),
    [
        ("aten::addm", "near it are .*aten::addmm"),
        ("aten::add.Tenser", "there are .*aten::add.Tensor"),
        ("aten::mm(Tensor a) -> Tensor", "aten::mm is aten::mm\\(Tensor self, Tensor mat2\\)"),
        ("aten::matmul", "composes it of other operators"),
        ("aten::view", "it is a view"),
        ("aten::copy_", "a copy"),
        ("", "no operator"),
        (3, "expected text"),
    ],
)
def test_a_beacon_that_would_never_be_seen(profiler: Any, beacon: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        profiler.chart.add_beacon(beacon)
    assert profiler.chart.beacons() == ()


def test_clear_beacon_forgets_all(profiler: Any) -> None:
    profiler.chart.add_beacon("aten::exp")
    x = torch.ones(2, device="pynq")
    with profiler.profile():
        x.exp()
        profiler.chart.clear_beacon()
        x.exp()
    assert profiler.chart.entries() == []


# ---- the route -----------------------------------------------------------------------------------


def test_each_call_goes_where_its_entry_says(profiler: Any) -> None:
    a, b = int8(8, 8), int8(8, 8)
    expected = a.cpu().int() @ b.cpu().int()
    flags = [True, False, True, False]
    profiler.route.set_route_from_json(
        [{"signature": "aten::_int_mm", "offload": flag} for flag in flags]
    )
    torch.pynq.kernel_logger.enable()
    counts = [0]
    for _ in flags:
        assert torch.equal(torch._int_mm(a, b).cpu(), expected)
        counts.append(starts())
    assert [after > before for before, after in itertools.pairwise(counts)] == flags


def test_a_chart_that_was_edited_is_a_route(profiler: Any, tmp_path: Path) -> None:
    a, b, x = int8(8, 8), int8(8, 4), torch.ones(3, device="pynq")

    def step() -> None:
        torch._int_mm(a, b)
        x + x
        torch._int_mm(a, a)

    profiler.chart.add_beacon("_int_mm")
    profiler.enable()
    step()
    profiler.disable()
    entries = json.loads(profiler.chart.fancy_print())
    assert [e["offload"] for e in entries] == [True, True]
    entries[0]["offload"] = False
    path = tmp_path / "route.json"
    path.write_text(json.dumps(entries))
    for route in (path, str(path), json.dumps(entries), entries):
        profiler.route.set_route_from_json(route)
        profiler.chart.clear()
        with profiler.profile() as p:
            step()
        assert [e["offload"] for e in profiler.chart.entries()] == [False, True]
        assert profiler.route.position() == (0, 2, 1)
        assert "the route sends it to the CPU" in p.stats("Unimpl")
    profiler.route.clear()
    profiler.chart.clear()
    with profiler.profile():
        step()
    assert [e["offload"] for e in profiler.chart.entries()] == [True, True]
    assert profiler.route.position() is None


def test_a_run_that_departs_names_both_and_goes_no_further(profiler: Any) -> None:
    a, b = int8(4, 4), int8(4, 8)
    inputs = ["int8[4x4]", "int8[4x4]"]
    profiler.route.set_route_from_json(
        [
            {"signature": "aten::_int_mm", "offload": True, "inputs": inputs},
            {"signature": "aten::exp", "offload": False},
        ]
    )
    x = torch.zeros(2, device="pynq")
    with pytest.raises(RouteError) as caught:
        x.exp()
    assert "entry 0 of 2" in str(caught.value)
    assert "aten::_int_mm(int8[4x4], int8[4x4])" in str(caught.value)
    assert "aten::exp(float32[2])" in str(caught.value)
    with pytest.raises(RouteError, match=r"int8\[4x8\]"):
        torch._int_mm(a, b)
    torch._int_mm(a, a)  # the route is where it was
    assert profiler.route.position() == (1, 2, 0)
    with pytest.raises(RouteError, match="entry 1 of 2"):
        torch._int_mm(a, a)
    assert torch.equal(x.exp().cpu(), torch.ones(2))


def test_an_in_place_call_off_the_route_changes_nothing(profiler: Any) -> None:
    x = torch.zeros(2, device="pynq")
    profiler.route.set_route_from_json(
        [{"signature": "exp", "offload": False}, {"signature": "add_", "offload": False}]
    )
    with pytest.raises(RouteError):
        x += 1
    assert x.tolist() == [0, 0]


def test_other_operators_are_not_the_route_s_concern(profiler: Any) -> None:
    profiler.route.set_route_from_json([{"signature": "aten::exp", "offload": False}])
    x = torch.ones(2, device="pynq")
    assert (x + x).tolist() == [2, 2]
    torch._int_mm(int8(4, 4), int8(4, 4))
    assert profiler.route.position() == (0, 1, 0)


def test_at_the_end_it_starts_over_stops_or_refuses(profiler: Any) -> None:
    a, x = int8(4, 4), torch.ones(2, device="pynq")
    entries = [{"signature": "_int_mm", "offload": False}, {"signature": "exp", "offload": False}]
    torch.pynq.kernel_logger.enable()

    def step() -> None:
        torch._int_mm(a, a)
        x.exp()

    profiler.route.set_route_from_json(entries)
    for _ in range(3):
        step()
    assert profiler.route.position() == (0, 2, 3) and starts() == 0
    profiler.route.set_route_from_json(entries, at_end="stop")
    step()
    assert starts() == 0
    step()
    x.exp()
    assert starts() == 1  # as without a route
    profiler.route.set_route_from_json(entries, at_end="error")
    step()
    with pytest.raises(RouteError, match="after the last of the route's 2 entries"):
        torch._int_mm(a, a)
    x + x
    with pytest.raises(ValueError, match="'again'"):
        profiler.route.set_route_from_json(entries, at_end="again")


def test_one_entry_is_a_rule_for_every_call(profiler: Any) -> None:
    a = int8(4, 4)
    torch.pynq.kernel_logger.enable()
    profiler.route.set_route_from_json([{"signature": "_int_mm", "offload": False}])
    for _ in range(3):
        torch._int_mm(a, a)
    assert starts() == 0 and profiler.route.position() == (0, 1, 3)
    profiler.route.set_route_from_json([{"signature": "_int_mm", "offload": False}], at_end="stop")
    torch._int_mm(a, a)
    torch._int_mm(a, a)
    assert starts() == 1


def test_the_pl_is_asked_for_what_it_cannot_do(profiler: Any) -> None:
    x = torch.ones(3, 3, device="pynq")
    profiler.route.set_route_from_json(
        [{"signature": "aten::mm", "offload": True}, {"signature": "aten::sin_", "offload": True}]
    )
    with pytest.raises(NoKernelError, match="aten::mm.*allow_int8"):
        x @ x
    with pytest.raises(NoKernelError, match="no kernel serves this operator"):
        x.sin_()
    assert bool((x == 1).all())


@pytest.mark.parametrize(
    ("route", "words"),
    [
        ("[{", "not JSON"),
        ("[]", "no entries"),
        ('{"signature": "aten::mm", "offload": true}', "expected a list"),
        ([3], "entry 0 .* is 3"),
        ([{"signature": "aten::mm"}], "offload is None"),
        ([{"signature": "aten::mm", "offload": 1}], "offload is 1"),
        ([{"offload": True}], "no operator ''"),
        (
            [{"signature": "mm", "offload": True}, {"signature": "aten::nn", "offload": True}],
            "entry 1 .*no operator 'aten::nn'",
        ),
        ([{"signature": "mm", "offload": True, "inputs": "int8[4]"}], "inputs is 'int8"),
        ([{"signature": "mm", "offload": True, "input": []}], "has 'input'"),
    ],
)
def test_what_is_no_route(profiler: Any, route: Any, words: str) -> None:
    profiler.route.set_route_from_json([{"signature": "aten::exp", "offload": False}])
    with pytest.raises(ValueError, match=words):
        profiler.route.set_route_from_json(route)
    assert profiler.route.position() == (0, 1, 0)  # the earlier one stays
    with pytest.raises(FileNotFoundError):
        profiler.route.set_route_from_json("no/such/route.json")


@pytest.mark.parametrize("kind", ["linear", "conv2d"])
def test_quantised_layers_are_charted_and_routed(profiler: Any, kind: str) -> None:
    name = f"pynq_torch::{kind}"
    if kind == "linear":
        layer, x = pynq_torch.nn.Linear(8, 4).to("pynq"), torch.randn(3, 8).to("pynq")
    else:
        layer, x = pynq_torch.nn.Conv2d(2, 4, 3).to("pynq"), torch.randn(1, 2, 5, 5).to("pynq")
    profiler.chart.add_beacon(name)
    torch.pynq.kernel_logger.enable()
    with torch.no_grad(), profiler.profile():
        on_pl = layer(x)
    assert starts() > 0
    (entry,) = json.loads(profiler.chart.json())
    assert entry["signature"] == name and entry["offload"]
    torch.pynq.kernel_logger.clear()
    with torch.no_grad(), profiler.route.routed([{**entry, "offload": False}]), profiler.profile():
        on_cpu = layer(x)
    assert starts() == 0
    assert profiler.chart.entries()[1]["reason"] == "the route sends it to the CPU"
    assert torch.equal(on_pl.cpu(), on_cpu.cpu())  # the same int8 arithmetic
    with pytest.raises(ValueError, match="near it are pynq_torch::"):
        profiler.chart.add_beacon(f"{name}_")


# ---- the switch of the fallback ------------------------------------------------------------------


def test_without_the_fallback_an_operator_needs_a_kernel(profiler: Any) -> None:
    a, x = int8(4, 4), torch.ones(2, 2, device="pynq")
    profiler.fallback.disable()
    assert not profiler.fallback.is_enabled()
    with pytest.raises(NoKernelError, match="aten::sin.*no kernel of this library.*cpu"):
        x.sin()
    with pytest.raises(NoKernelError, match="aten::mm.*allow_int8"):
        x @ x
    with pytest.raises(NoKernelError):
        x.mul_(2)
    product = torch._int_mm(a, a)
    assert product.t().contiguous().cpu().shape == (4, 4)  # views and copies always work
    assert x.tolist() == [[1, 1], [1, 1]]
    profiler.fallback.enable()
    assert profiler.fallback.is_enabled() and (x + x).tolist() == [[2, 2], [2, 2]]


def test_the_fallback_is_not_about_reading_and_filling(profiler: Any) -> None:
    x = torch.arange(4.0).to("pynq")
    profiler.fallback.disable()
    made = torch.zeros(4, device="pynq").fill_(2)
    assert made[1].item() == 2 and bool(made[0]) and torch.ones(1, device="pynq").item() == 1
    assert torch.equal(made, torch.full((4,), 2.0, device="pynq"))
    assert made.copy_(x).zero_().tolist() == [0, 0, 0, 0]
    with pytest.raises(NoKernelError, match="compute it with .cpu()") as caught:
        made.sin_()
    assert "overlay" not in str(caught.value)
    with pytest.raises(NoKernelError, match="Load an overlay"):
        x.view(2, 2) @ x.view(2, 2)
    profiler.route.set_route_from_json([{"signature": "aten::zero_", "offload": True}])
    with pytest.raises(NoKernelError, match="the route sends aten::zero_"):
        made.zero_()


def test_a_route_to_the_cpu_is_no_fallback(profiler: Any) -> None:
    x = torch.zeros(2, device="pynq")
    profiler.fallback.disable()
    profiler.route.set_route_from_json([{"signature": "aten::exp", "offload": False}])
    assert x.exp().tolist() == [1, 1]
