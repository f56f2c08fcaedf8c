"""The timing model of the board against arithmetic on its sources, worked out again here."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pynq_torch.models import pynq_z2
from pynq_torch.models.pynq_z2 import Ports

MIB = 1 << 20


def test_ddr_is_what_its_lines_and_its_clock_give() -> None:
    # DDR3 on 16 lines, 525 MHz, both edges.
    assert pynq_z2.DDR_PEAK_BYTES_PER_SECOND == 2 * 2 * 525e6
    assert round(pynq_z2.DDR_BYTES_PER_SECOND / 1e9, 2) == 1.83
    low = pynq_z2.DDR_PEAK_BYTES_PER_SECOND * pynq_z2.DDR_EFFICIENCY_LOW
    assert round(low / 1e9, 2) == 1.57  # 1.575
    assert pynq_z2.ddr_bytes_per_cycle() == pytest.approx(18.27)
    assert pynq_z2.ddr_bytes_per_cycle(150e6) == pytest.approx(12.18)


def test_one_outstanding_burst_gives_what_was_measured_on_a_board() -> None:
    """327 MiB/s: 128 bytes every 37.4 cycles of 10 ns."""
    one = Ports()
    assert one.limited_by == "outstanding"
    assert one.bytes_per_second == pytest.approx(128 / 37.4e-8)
    assert one.bytes_per_second / MIB == pytest.approx(327, abs=1)


def test_three_outstanding_bursts_fill_a_port_and_two_ports_fill_ddr() -> None:
    assert Ports(outstanding=2).limited_by == "outstanding"
    assert Ports(outstanding=3).limited_by == "port"
    assert Ports(outstanding=3).bytes_per_second == 8 * 100e6
    # 85 cycles at worst: six bursts of 16 beats are needed to bridge them.
    assert 5 * 16 < pynq_z2.BURST_CYCLES_WORST <= 6 * 16
    assert Ports(count=2, outstanding=3).bytes_per_second == 1.6e9
    assert Ports(count=3, outstanding=3).limited_by == "DDR"


def test_short_bursts_and_narrow_ports_cost() -> None:
    narrow = Ports(width_bits=32, outstanding=8)
    assert narrow.bytes_per_second == 400e6
    single = Ports(burst_beats=1)
    # One beat of 8 bytes a round trip of 37.4 - 16 + 1 cycles.
    assert single.bytes_per_second == pytest.approx(8 / 22.4 * 100e6)
    assert single.limited_by == "outstanding"


@settings(max_examples=40)
@given(
    nbytes=st.integers(0, 1 << 26),
    count=st.integers(1, 4),
    width=st.sampled_from([8, 16, 32, 64]),
    beats=st.integers(1, 16),
    outstanding=st.integers(1, 16),
)
def test_moving_is_never_faster_than_any_limit(
    nbytes: int, count: int, width: int, beats: int, outstanding: int
) -> None:
    ports = Ports(count, width, beats, outstanding)
    move = ports.move(nbytes, label="x")
    assert (move.kind, move.part, move.label) == ("model", "transfer", "x")
    assert all(move.seconds >= nbytes / limit for limit in ports.limits.values())
    assert ports.cycles(nbytes) >= math.ceil(nbytes / (count * width // 8))
    assert ports.move(nbytes + 1).seconds > move.seconds
    more = Ports(count, width, beats, outstanding + 1)
    assert more.bytes_per_second >= ports.bytes_per_second


def test_nothing_takes_no_time() -> None:
    assert Ports().move(0).seconds == 0
    assert Ports().cycles(0) == 0
    assert Ports(outstanding=8).cycles(128) == math.ceil(21.4 + 16)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"width_bits": 128}, "width_bits is 128"),
        ({"burst_beats": 17}, "burst_beats is 17"),
        ({"count": 9}, "count is 9"),
        ({"outstanding": 0}, "outstanding 0"),
        ({"clock_hz": 0.0}, "clock_hz 0.0"),
    ],
)
def test_ports_that_the_board_does_not_have(arguments: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        Ports(**arguments)
    assert said in str(caught.value)
    with pytest.raises(ValueError, match="nbytes is -1"):
        Ports().move(-1)


def test_a_roofline_bends_where_compute_and_memory_meet() -> None:
    array = pynq_z2.compute_roof(2 * 440)
    assert array.at(0.1) == 88e9  # 440 MAC a cycle, two int8 products a DSP
    (ddr,) = pynq_z2.memory_roofs()
    ridge = 88e9 / pynq_z2.DDR_BYTES_PER_SECOND
    # At the better efficiency; with the lower one the same array needs 56 operations a byte.
    assert ridge == pytest.approx(48.2, abs=0.1)
    assert pynq_z2.attainable(ridge / 2, array, ddr) == pytest.approx(44e9)
    assert pynq_z2.attainable(2 * ridge, array, ddr) == 88e9
    slope, same = pynq_z2.memory_roofs(("one port", Ports(width_bits=32, outstanding=8)))
    assert (slope.at(0.5), same) == (200e6, ddr)
    assert "UG585" in ddr.provenance
    assert "100 MHz" in slope.provenance
    for bad in (0.0, float("nan")):
        with pytest.raises(ValueError, match="intensity"):
            pynq_z2.attainable(bad, ddr)
    with pytest.raises(ValueError, match="either"):
        pynq_z2.Roof("x")


def test_what_a_call_costs_the_host() -> None:
    seven = {way: pynq_z2.call_seconds(7, way=way) for way in ("c", "array", "python")}
    assert seven["c"] < seven["array"] < seven["python"]
    assert seven["python"] - pynq_z2.call_seconds(6, way="python") == pytest.approx(31e-6)
    assert seven["array"] == pytest.approx(150e-6 + 7 * 0.2e-6)
    with pytest.raises(ValueError, match="way is 'dma'"):
        pynq_z2.call_seconds(1, way="dma")


def test_the_cpu_is_bound_by_memory_or_by_arithmetic() -> None:
    # 0.72 GMAC/s: 1.11 at 1 GHz, scaled to 650 MHz.
    assert pytest.approx(0.7215e9) == pynq_z2.CPU_MACS_PER_SECOND
    product = pynq_z2.cpu(2 * 256**3, 3 * 4 * 256**2)
    assert product.seconds == pytest.approx(256**3 / 0.7215e9)
    assert product.provenance == "model (at 650 MHz)"
    addition = pynq_z2.cpu(1e6, 12e6)
    assert addition.seconds == pytest.approx(12e6 / 512e6)
