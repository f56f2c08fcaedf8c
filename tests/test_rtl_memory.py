"""The memory's end of AXI4 ports: every burst against a byte-accurate reference, and its timing."""

from __future__ import annotations

import re
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rtl_cpp_bench import build, run, values

from pynq_torch.board.rtl.memory_model import PRESETS, check_options, memory_model
from pynq_torch.board.rtl.records import (
    PortRow,
    counters_nbytes,
    read_counters,
    read_cycle,
    read_trace,
    trace_nbytes,
)
from pynq_torch.models.pynq_z2 import BURST_CYCLES, BURST_CYCLES_WORST, DDR_BYTES_PER_SECOND

WIDTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
DECERR, OUTSIDE, GUARD = 3, 1, 2


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    return build(tmp_path_factory.getbasetemp().parent)


# ---- what arrives ----------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_kind_of_burst_moves_the_right_bytes(bench, preset, width):
    run(bench, "random", preset, width, width, 0, 0, 600)


@settings(max_examples=25)
@given(
    preset=st.sampled_from(sorted(PRESETS)),
    width=st.sampled_from(WIDTHS),
    seed=st.integers(0, 2**32 - 1),
    stalls=st.sampled_from([0, 0.1, 0.5, 0.8]),
    pause=st.sampled_from([0, 0.1, 0.5, 0.8]),
)
def test_with_stalls_on_both_sides(bench, preset, width, seed, stalls, pause):
    run(bench, "random", preset, width, seed, stalls, pause, 150)


@pytest.mark.parametrize("seed", range(8))
def test_a_reset_drops_all_traffic(bench, seed):
    found = values(bench, "reset", seed)
    # Exactly those whose address was taken and that were not answered: the reset comes after 200
    # cycles at most, in which no seed has seen more than 5 of its 12 through.
    assert 7 <= found["cut"] == found["owed"] <= 12


def test_the_same_seed_gives_the_same_cycles(bench):
    first, again, other = (run(bench, "random", "pynq-z2", 64, s, 0.3, 0, 100) for s in (1, 1, 2))
    assert first == again != other


# ---- addresses that nobody answers -------------------------------------------------------------


@pytest.mark.parametrize("way", ["r", "w"])
@pytest.mark.parametrize(
    ("address", "beats", "kind", "first"),
    [
        (0x0020_0000, 4, OUTSIDE, 0x0020_0000),  # behind the 2 MB of the bench's DDR
        (0xFFFF_F000, 512 // 8, OUTSIDE, 0xFFFF_F000),
        (0x1_0010_0000, 1, OUTSIDE, 0x1_0010_0000),  # the buffer's address, 4 GB higher
        (0x000F_FF00, 4, GUARD, 0x000F_FF00),  # before the buffer
        (0x0012_0040, 1, GUARD, 0x0012_0040),  # 64 bytes behind it: a read may not reach so far
        (0x0012_0000, 9, GUARD, 0x0012_0000),
    ],
)
def test_stray_addresses(bench, address, beats, kind, first, way):
    got = values(bench, "stray", hex(address), beats, way)
    assert (got["resp"], got["kind"], got["address"]) == (DECERR, kind, first)
    assert (got["write"], got["errors"], got["changed"]) == (way == "w", 1, 0)


def test_only_reads_may_go_just_behind_a_buffer(bench):
    got = values(bench, "stray", "0x120000", 8, "r")
    assert (got["resp"], got["kind"], got["errors"]) == (0, 0, 0)
    got = values(bench, "stray", "0x120000", 1, "w")
    assert (got["resp"], got["kind"], got["changed"]) == (DECERR, GUARD, 0)


def test_the_last_word_of_a_buffer_is_not_stray(bench):
    got = values(bench, "stray", "0x11fff8", 1, "w")
    assert (got["resp"], got["kind"], got["changed"]) == (0, 0, 8)


# ---- timing ------------------------------------------------------------------------------------


def test_one_outstanding_burst_takes_what_was_measured_on_the_board(bench):
    got = values(bench, "single", "pynq-z2", 100e6, 50_000)
    assert got["mean"] == pytest.approx(BURST_CYCLES, abs=0.1)
    assert 37 + 20 < got["worst"] <= BURST_CYCLES_WORST
    assert 128 / got["mean"] * 100e6 / 2**20 == pytest.approx(327, abs=2)


def test_one_outstanding_beat_takes_its_share_of_that(bench):
    got = values(bench, "single", "pynq-z2", 100e6, 50_000, 0, 1)
    assert got["mean"] == pytest.approx(BURST_CYCLES - 15, abs=0.3)


def test_latency_is_time_and_seven_cycles(bench):
    slow, fast = (values(bench, "single", "pynq-z2", hz, 20_000)["mean"] for hz in (100e6, 200e6))
    assert fast - 16 - 7 == pytest.approx((slow - 16 - 7) * 2, abs=0.3)


def test_ideal_memory_answers_in_the_next_cycle(bench):
    assert values(bench, "single", "ideal", 100e6, 1000) == {
        "cycles": 17e3,
        "mean": 17,
        "worst": 17,
    }


@pytest.mark.parametrize(("width", "rate"), [(32, 4), (64, 8), (128, 8), (512, 8), (1024, 8)])
@pytest.mark.parametrize("way", ["r", "w"])
def test_a_port_moves_its_width_up_to_64_bits_a_cycle(bench, width, rate, way):
    assert values(bench, "rate", "pynq-z2", 100e6, width, 0, way)["total"] == pytest.approx(
        rate, rel=0.01
    )


@pytest.mark.parametrize("width", [32, 64, 1024])
def test_ideal_memory_moves_a_beat_a_cycle(bench, width):
    got = values(bench, "rate", "ideal", 100e6, width, 0, "b")
    assert got["read0"] == pytest.approx(width / 8, rel=0.01)
    assert got["write0"] == pytest.approx(width / 8, rel=0.01)


def test_both_directions_of_a_port_are_independent(bench):
    got = values(bench, "rate", "pynq-z2", 100e6, 64, 0, "b")
    assert got["read0"] == pytest.approx(8, rel=0.01) == pytest.approx(got["write0"], rel=0.01)


@pytest.mark.parametrize("hps", [(0, 1, 2), (0, 1, 2, 3)])
def test_ports_share_what_ddr_delivers(bench, hps):
    got = values(bench, "rate", "pynq-z2", 100e6, 64, *(x for hp in hps for x in (hp, "r")))
    assert got["total"] * 100e6 == pytest.approx(DDR_BYTES_PER_SECOND, rel=0.01)
    shares = [got[f"read{i}"] for i in range(len(hps))]
    assert min(shares) == pytest.approx(max(shares), rel=0.02)


def test_ports_on_one_hp_port_share_its_64_bits(bench):
    got = values(bench, "rate", "pynq-z2", 100e6, 64, 0, "r", 0, "r")
    assert got["total"] == pytest.approx(8, rel=0.01)
    assert got["read0"] == pytest.approx(got["read1"], rel=0.02)


def test_a_stream_that_a_dma_carries_competes_for_ddr(bench):
    one, two = (values(bench, "dma", "pynq-z2", n, n) for n in (1, 2))
    assert one["rate"] == pytest.approx(8, rel=0.02)
    assert 18 <= one["first"] <= 25
    # Two loops of reading and writing ask for 32 bytes a cycle, and DDR delivers 18.3.
    assert 4 * two["rate"] * 100e6 == pytest.approx(DDR_BYTES_PER_SECOND, rel=0.02)
    assert (two["records"], two["bytes"]) == (2, 80_000)
    assert values(bench, "dma", "ideal", 1, 1)["rate"] == pytest.approx(8, rel=0.001)


def test_dmas_on_one_hp_port_share_its_64_bits(bench):
    got = values(bench, "dma", "pynq-z2", 2, 1)
    assert 2 * got["rate"] == pytest.approx(8, rel=0.02)


@pytest.mark.parametrize(
    ("traffic", "cycles", "crc"),
    [
        ("pynq-z2 64 5 0.2 0.2 300", 7487, 0xE5558809),
        ("pynq-z2 1024 3 0 0 300", 13877, 0xBF2927F2),
        ("pynq-z2 128 4 0.5 0.1 300", 6492, 0x12B09296),
        ("pynq-z2 8 4 0 0.1 200", 3438, 0xE963EE1A),
        ("ideal 32 9 0.2 0.2 300", 5417, 0x415E9861),
        ("ideal 512 9 0 0 300", 2213, 0x483F3CF5),
    ],
)
def test_traffic_takes_the_cycles_that_it_took(bench, traffic, cycles, crc, tmp_path):
    """Users compare runs by their cycles, and by each record: a change of them has to be meant."""
    assert values(bench, "random", *traffic.split(), tmp_path) == {"cycles": cycles}
    files = [(tmp_path / name).read_bytes() for name in ("trace", "counters")]
    assert zlib.crc32(b"".join(files)) == crc


@pytest.mark.parametrize(
    ("traffic", "found"),
    [
        ("single pynq-z2 100e6 1000", "37350 37.3500 62"),
        ("single pynq-z2 125e6 1000", "40994 40.9940 73"),
        ("single pynq-z2 100e6 2000 1701", "3475203 1737.6015 63"),  # refreshes pass meanwhile
        (
            "rate pynq-z2 100e6 64 0 r 1 w 1 b",
            "5.1428 0.0000 0.0000 4.0000 5.1422 4.0000 18.2850",
        ),
        (
            "rate pynq-z2 142e6 32 0 b 1 b 2 b",
            "2.1440 2.1616 2.1440 2.1616 2.1440 2.1632 12.9184",
        ),
        # Each direction of each port has stalls of its own.
        ("rate pynq-z2 100e6 64 0 b 1 b 0.5", "4.0270 3.9982 3.9934 4.0086 16.0272"),
        ("dma pynq-z2 2 2", "17499 21 4.5717 2 80000 4139445503568510632"),
        ("dma pynq-z2 3 2 77", "26718 21 2.9942 390 536 10088193919465468294"),
        ("dma pynq-z2 1 1 5", "97799 21 0.8180 2000 40 11420405876709662147"),
        ("dma ideal 1 1 3", "13335 1 5.9993 3334 8 14703128244510409387"),
    ],
)
def test_rates_are_those_that_were(bench, traffic, found):
    assert run(bench, *traffic.split()).split()[1::2] == found.split()


@pytest.mark.parametrize("stalls", [0, 0.3])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_run_takes_the_same_cycles_whenever_it_begins(bench, preset, stalls):
    assert len(set(values(bench, "again", preset, stalls).values())) == 1


# ---- the Python side ---------------------------------------------------------------------------

PORTS = tuple(PortRow("unit_0", f"m_axi_{i}", 64) for i in range(8))


@pytest.fixture(scope="module")
def saved(bench, tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    got = values(bench, "random", "pynq-z2", 64, 5, 0.2, 0.2, 300, folder)
    return got["cycles"], (folder / "trace").read_bytes(), (folder / "counters").read_bytes()


def test_records_and_counters_agree(saved):
    cycles, trace, table = saved
    window = read_trace(trace, PORTS)
    assert (window.written, window.dropped, len(window.transactions)) == (300, 0, 300)
    assert read_cycle(table) == cycles
    read, write = read_counters(table, PORTS)
    assert (read.direction, write.direction, read.unit) == ("read", "write", "unit_0")
    for counted in (read, write):
        mine = [t for t in window.transactions if t.kind == counted.direction]
        assert counted.transactions == len(mine)
        assert counted.bytes == sum(t.bytes for t in mine)
        assert counted.beats == sum(t.beats for t in mine)
        assert counted.latency_sum == sum(t.latency for t in mine)
        assert counted.latency_max == max(t.latency for t in mine)
        assert counted.latency_mean == pytest.approx(counted.latency_sum / len(mine))
        assert 0 < counted.beats <= counted.busy <= counted.cycles == cycles
        assert counted.utilisation == counted.beats / cycles
        assert counted.stalls > 0 and counted.errors == 0
    assert {t.burst for t in window.transactions} == {"INCR", "WRAP", "FIXED"}
    assert {t.resp for t in window.transactions} == {"OKAY"}
    assert all(t.cycle < t.first <= t.done or t.kind == "write" for t in window.transactions)
    assert len(read_counters(table, PORTS, idle=True)) == 16


def test_reading_goes_on_where_it_ended(saved):
    _, trace, _ = saved
    everything = read_trace(trace, PORTS).transactions
    assert read_trace(trace, PORTS, after=290).transactions == everything[290:]
    assert read_trace(trace, PORTS, last=3).transactions == everything[-3:]
    assert read_trace(trace, PORTS, after=300).transactions == ()


def test_overwritten_records_are_counted(saved):
    _, trace, _ = saved
    small = bytearray(trace[: trace_nbytes(256)])
    small[8:12] = (256).to_bytes(4, "little")
    window = read_trace(small, PORTS)
    assert (len(window.transactions), window.dropped, window.written) == (256, 44, 300)
    assert read_trace(small, PORTS, last=8).dropped == 0


def test_a_transaction_reads_as_a_sentence(saved):
    _, trace, _ = saved
    first = read_trace(trace, PORTS).transactions[0]
    text = str(first)
    assert f"cycle {first.cycle}: unit_0.m_axi_0 {first.kind} at 0x{first.address:08x}" in text
    assert f"{first.beats} beats" in text


def test_counters_of_a_while(saved):
    _, _, table = saved
    read, write = read_counters(table, PORTS)
    nothing = read.since(read)
    assert (nothing.beats, nothing.cycles, nothing.utilisation, nothing.latency_mean) == (
        0,
        0,
        0,
        0,
    )
    with pytest.raises(ValueError, match=r"unit_0.m_axi_0 \(read\), those before .* \(write\)"):
        read.since(write)
    before = read_counters(bytes(table[:64]) + bytes(len(table) - 64), PORTS, idle=True)[0]
    with pytest.raises(ValueError, match="an overlay was loaded in between"):
        before.since(read)


def test_memory_that_holds_something_else(saved):
    _, trace, table = saved
    with pytest.raises(ValueError, match="the trace begins with 0x00000000; expected 0x54524143"):
        read_trace(bytes(len(trace)), PORTS)
    with pytest.raises(ValueError, match="trace is 3 bytes"):
        read_trace(b"abc", PORTS)
    with pytest.raises(ValueError, match="records of 64 bytes that fit"):
        read_trace(trace[:1024], PORTS)
    with pytest.raises(ValueError, match="record of port 0 and kind .; expected below 0"):
        read_trace(trace, ())
    with pytest.raises(ValueError, match="for 8 ports .* expected 3 ports in at least 640"):
        read_counters(table, PORTS[:3])
    assert counters_nbytes(3) == 640
    with pytest.raises(ValueError, match="100 transactions; expected a power of two"):
        trace_nbytes(100)


def test_python_shows_the_numbers_that_cpp_runs_with(bench):
    model, cpp = PRESETS["pynq-z2"], values(bench, "preset", "pynq-z2")
    assert cpp["hp_bytes_per_cycle"] == model.hp_bytes_per_cycle
    assert cpp["burst_beats"] == model.burst_beats
    assert cpp["fifo_words"] * cpp["hp_bytes_per_cycle"] == model.fifo_bytes
    assert cpp["port_cycles"] == model.port_cycles
    assert cpp["read_latency_ps"] == pytest.approx(model.read_latency_s * 1e12)
    assert cpp["write_latency_ps"] == pytest.approx(model.write_latency_s * 1e12)
    assert cpp["refresh_every_ps"] == pytest.approx(model.refresh_interval_s * 1e12)
    assert cpp["refresh_ps"] == pytest.approx(model.refresh_s * 1e12)
    # The rate between two refreshes there, the mean rate here.
    share = 1 - cpp["refresh_ps"] / cpp["refresh_every_ps"]
    assert cpp["ddr_bytes_per_second"] * share == pytest.approx(model.ddr_bytes_per_second)
    # Every number a person sees says where it comes from.
    assert set(model.sources) > {"read_latency_s", "ddr_bytes_per_second", "refresh_s"}


def test_bytes_a_cycle():
    model = memory_model("pynq-z2")
    assert [model.bytes_per_cycle(n) for n in (1, 2, 3)] == [8, 16, pytest.approx(18.27)]
    assert model.bytes_per_cycle() == 8
    assert model.bytes_per_cycle(2, 150e6) == pytest.approx(12.18)
    with pytest.raises(ValueError, match="'ideal' has no limit of its own"):
        memory_model("ideal").bytes_per_cycle()
    with pytest.raises(ValueError, match="ports is 0, clock_hz"):
        model.bytes_per_cycle(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("zynq", 0.0, 0), "memory is 'zynq'; expected one of 'pynq-z2', 'ideal'"),
        (("ideal", 1.0, 0), "stalls is 1.0; expected a share of cycles"),
        (("ideal", float("nan"), 0), "stalls is nan"),
        (("ideal", -0.1, 0), "stalls is -0.1"),
        (("ideal", 0.0, -1), "seed is -1; expected 0 to 4294967295"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        check_options(*options)
    assert check_options("ideal", 0.5, 7).name == "ideal"
