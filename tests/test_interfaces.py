"""One function behind five interfaces: the same bits, the stated number of runs, clear refusals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import torch
from device_helpers import closing, loaded
from hypothesis import given, settings
from hypothesis import strategies as st

import pynq_torch
from pynq_torch import buffers, events
from pynq_torch.errors import ArgumentError, KernelBusy, KernelError, KernelTimeout
from pynq_torch.models import interfaces
from pynq_torch.overlay import ensure_event_loop

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

SPECIAL = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-45, 3e38, -3e38]


@pytest.fixture(autouse=True)
def overlay() -> Any:
    ensure_event_loop()
    return loaded("interfaces")


def by_interrupt(unit: Any, *arguments: Any, **options: Any) -> torch.Tensor:
    loop = asyncio.get_event_loop_policy().get_event_loop()
    result: torch.Tensor = loop.run_until_complete(unit.by_interrupt(*arguments, **options))
    return result


def ways(overlay: Any, x: torch.Tensor, gain: float, offset: float) -> dict[str, torch.Tensor]:
    return {
        "registers": overlay.affine_lite(x, gain, offset),
        "one DMA": overlay.affine_dma(x, gain, offset),
        "two DMAs": overlay.affine_dmas(x, torch.full_like(x, gain), offset),
        "m_axi": overlay.affine_maxi(x, gain, offset),
        "m_axi, interrupt": by_interrupt(overlay.affine_maxi, x, gain, offset),
    }


@settings(max_examples=15)
@given(
    n=st.sampled_from([1, 2, 63, 64, 65, 200, 1000]),
    gain=st.floats(-1e3, 1e3, width=32),
    offset=st.floats(-1e3, 1e3, width=32),
    seed=st.integers(0, 99),
)
def test_all_ways_give_the_same_bits(n: int, gain: float, offset: float, seed: int) -> None:
    overlay = loaded("interfaces")
    torch.manual_seed(seed)
    x = torch.randn(n)
    x[torch.rand(n) < 0.1] = SPECIAL[seed % len(SPECIAL)]
    expected = x * gain + offset
    found = ways(overlay, x, gain, offset)
    assert list(found) == list(interfaces.WAYS)
    for name, result in found.items():
        assert torch.equal(result.nan_to_num(7), expected.nan_to_num(7)), name
        assert torch.equal(result.isnan(), expected.isnan()), name


@pytest.mark.parametrize("shape", [(), (7, 13), (2, 0, 3)])
def test_any_shape(overlay: Any, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    for name, result in ways(overlay, x, 2.0, 1.0).items():
        assert result.shape == x.shape and torch.equal(result, 2 * x + 1), name
    turned = torch.randn(6, 5).t()
    for name, result in ways(overlay, turned, 2.0, 1.0).items():
        assert torch.equal(result, 2 * turned + 1), name


def test_every_element_has_a_gain_of_its_own(overlay: Any) -> None:
    x, gains = torch.randn(3000), torch.randn(3000)
    for _ in range(3):  # nothing of a packet is left for the next one
        assert torch.equal(overlay.affine_dmas(x, gains, 0.5), x * gains + 0.5)
    assert [d.recvchannel is None for d in overlay.affine_dmas.dmas].count(True) == 1


@pytest.mark.parametrize("n", [1, 64, 65, 1000])
def test_the_costs_count_what_happens(overlay: Any, n: int) -> None:
    x = torch.randn(n)
    runs: list[Any] = []

    def note(run: Any) -> None:
        if run.seconds is not None:
            runs.append(run.cu)

    events.runs.subscribe(note)
    try:
        ways(overlay, x, 2.0, 1.0)
    finally:
        events.runs.unsubscribe(note)
    counted = {way: interfaces.cost(way, n) for way in interfaces.WAYS}
    kernels = {way: interfaces.WAYS[way][0] for way in interfaces.WAYS}
    for kernel in set(kernels.values()):
        expected = sum(c.runs for way, c in counted.items() if kernels[way] == kernel)
        assert runs.count(f"{kernel}_0") == expected, kernel
    spans = {k: overlay.kernels[f"{k}_0"]._layouts[0].span for k in set(kernels.values())}
    for way, (kernel, words, _, _) in interfaces.WAYS.items():
        assert spans[kernel].stop - spans[kernel].start == words, way
    lite = counted["registers"]
    assert lite.words == 5 * lite.runs + 2 * n and lite.dma_calls == 0
    assert counted["two DMAs"].dma_calls == 3 and counted["one DMA"].dma_calls == 2


def test_which_way_is_the_cheapest_depends_on_the_size() -> None:
    def order(n: int) -> list[str]:
        return sorted(interfaces.WAYS, key=lambda way: interfaces.cost(way, n).total.seconds)

    assert order(16)[0] == "m_axi" and order(16)[1] == "registers"
    assert order(100_000)[-1] == "registers"
    one = interfaces.cost("m_axi", 10**6)
    assert one.total.kind == "model" and one.pl.seconds == pytest.approx(0.01, rel=1e-3)
    assert interfaces.cost("one DMA", 2**22).runs == 3
    with pytest.raises(ValueError, match="expected one of registers, one DMA"):
        interfaces.cost("pigeon", 3)
    with pytest.raises(ValueError, match="0 elements"):
        interfaces.cost("m_axi", 0)


def test_an_interrupt_that_does_not_come_is_a_timeout(overlay: Any) -> None:
    unit = overlay.affine_dma  # waits for its stream
    run = unit.start(gain=1.0, offset=0.0)
    with pytest.raises(KernelTimeout, match="affine_dma_0"):
        loop = asyncio.get_event_loop_policy().get_event_loop()
        loop.run_until_complete(pynq_torch.waits.wait_async(unit, 0.2))
    pynq_torch.transfer(
        overlay.axi_dma_0, send=buffers.to_buffer(torch.ones(4)), recv=buffers.empty(4)
    )
    run.wait(timeout_s=5)
    x = torch.randn(9)
    assert torch.equal(unit(x, 2.0), 2 * x)


def test_other_coroutines_run_meanwhile(overlay: Any) -> None:
    unit, target = overlay.affine_dma, buffers.empty(4)
    unit.start(gain=3.0, offset=0.0)  # waits for its stream

    async def both() -> None:
        waiting = asyncio.ensure_future(pynq_torch.waits.wait_async(unit, 10))
        for _ in range(5):
            await asyncio.sleep(1e-3)
            assert not waiting.done()
        pynq_torch.transfer(overlay.axi_dma_0, send=buffers.to_buffer(torch.ones(4)), recv=target)
        await waiting

    asyncio.get_event_loop_policy().get_event_loop().run_until_complete(both())
    assert target.tolist() == [3.0] * 4
    x = torch.randn(5)
    assert torch.equal(unit(x, 3.0), 3 * x)  # and polling works after it


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda o, x: o.affine_lite(x.double()), "x has dtype torch.float64"),
        (lambda o, x: o.affine_maxi(x.double()), "x has dtype torch.float64"),
        (lambda o, x: o.affine_dma(x.double()), "x has dtype torch.float64"),
        (lambda o, x: o.affine_dmas(x.double(), x), "x has dtype torch.float64"),
        (lambda o, x: o.affine_dmas(x, x[1:]), r"gains has shape \(3,\); expected \(4,\)"),
        (lambda o, x: o.affine_lite(x.numpy()), "x is ndarray"),
    ],
)
def test_refusals(overlay: Any, call: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        call(overlay, torch.ones(4))


def test_a_unit_without_its_dmas_says_so(overlay: Any) -> None:
    unit = overlay.affine_dmas
    known, unit.dmas = unit.dmas, []
    try:
        with pytest.raises(KernelError, match="expected two on its streams"):
            unit(torch.ones(3), torch.ones(3))
    finally:
        unit.dmas = known
    assert unit(torch.ones(3), torch.ones(3)).tolist() == [1.0, 1.0, 1.0]


def test_a_busy_unit_is_not_disturbed(overlay: Any) -> None:
    run = overlay.affine_dmas.start(offset=1.0)
    with pytest.raises(KernelBusy):
        overlay.affine_dmas(torch.ones(3), torch.ones(3))
    both, feeds = overlay.affine_dmas._roles()
    target = buffers.empty(2)
    feeds.sendchannel.transfer(buffers.to_buffer(torch.tensor([2.0, 3.0])))
    pynq_torch.transfer(both, send=buffers.to_buffer(torch.ones(2)), recv=target)
    pynq_torch.wait(feeds.sendchannel, timeout_s=5)
    run.wait(timeout_s=5)
    assert target.tolist() == [3.0, 4.0]
