"""Offsets of AXI4-Lite registers: every rule that generated driver headers showed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynq_torch.hls.registers import Slot, is_renamed, lay_out, window_bytes


def offsets(slots, tool="vitis", **options):
    options.setdefault("control", True)
    registers, _ = lay_out(slots, tool=tool, **options)
    return {register.name: register.offset for register in registers if register.role != "control"}


def scalar(name, bits=32, **more):
    return Slot(name, name, "in", bits, **more)


def test_control_registers_come_first():
    registers, _ = lay_out([scalar("a")], tool="vitis", control=True)
    assert [(r.name, r.offset) for r in registers] == [
        ("AP_CTRL", 0x0), ("GIE", 0x4), ("IER", 0x8), ("ISR", 0xC), ("a", 0x10),
    ]  # fmt: skip


def test_data_start_at_0x10_without_control_too():
    registers, _ = lay_out([scalar("a")], tool="vitis", control=False)
    assert [(r.name, r.offset) for r in registers] == [("a", 0x10)]


@pytest.mark.parametrize(
    ("bits", "span"),
    [(1, 8), (8, 8), (16, 8), (32, 8), (33, 12), (64, 12), (96, 16), (128, 20), (256, 36)],
)
@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_span_of_an_input(bits, span, tool):
    assert offsets([scalar("a", bits), scalar("b")], tool)["b"] == 0x10 + span


@pytest.mark.parametrize(("tool", "following"), [("vivado", 0x18), ("vitis", 0x20)])
def test_output_has_a_valid_word_and_the_tool_decides_what_follows(tool, following):
    found = offsets([Slot("y", "y", "out", 32), scalar("b")], tool)
    assert found == {"y": 0x10, "y_ctrl": 0x14, "b": following}


@pytest.mark.parametrize(
    ("tool", "bits", "valid", "following"),
    [
        ("vivado", 64, 0x18, 0x1C),
        ("vitis", 64, 0x18, 0x28),
        ("vitis", 128, 0x20, 0x38),
    ],
)
def test_wide_output(tool, bits, valid, following):
    found = offsets([Slot("y", "y", "out", bits), scalar("b")], tool)
    assert found == {"y": 0x10, "y_ctrl": valid, "b": following}


@pytest.mark.parametrize(("tool", "following"), [("vivado", 0x1C), ("vitis", 0x28)])
def test_output_without_valid(tool, following):
    found = offsets([Slot("y", "y", "out", 64, valid=False), scalar("b")], tool)
    assert found == {"y": 0x10, "b": following}


@pytest.mark.parametrize("tool", ["vivado", "vitis"])
def test_inout_splits(tool):
    found = offsets([Slot("x", "x", "inout", 32), scalar("b")], tool)
    assert found == {"x_i": 0x10, "x_o": 0x18, "x_o_ctrl": 0x1C, "b": 0x20}


@pytest.mark.parametrize(("bits", "following"), [(32, 0x18), (64, 0x1C)])
@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_return_value_has_no_valid_word(bits, following, tool):
    found = offsets([Slot("ap_return", "return", "out", bits), scalar("a")], tool)
    assert found == {"ap_return": 0x10, "a": following}


@pytest.mark.parametrize(
    ("length", "storage", "expected"),
    [
        (1, 8, 8),  # never less than two words
        (16, 8, 16),  # byte lanes
        (12, 8, 16),  # rounded up to a power of two
        (16, 16, 32),
        (16, 32, 64),
        (100, 32, 512),
        (4, 64, 32),  # two words an element
        (4, 128, 64),
    ],
)
def test_window_of_an_array(length, storage, expected):
    assert window_bytes(length, storage) == expected


def memory(name, length, bits=32):
    return Slot(name, name, "memory", bits, storage_bits=bits, length=length)


def test_window_is_aligned_to_its_size():
    assert offsets([memory("m", 16)])["m"] == 0x40
    assert offsets([memory("m", 1024, 8)])["m"] == 0x400


def test_vitis_fills_the_hole_before_a_window():
    found = offsets([memory("a", 8), Slot("y", "y", "out", 32)], "vitis")
    assert found == {"a": 0x20, "y": 0x10, "y_ctrl": 0x14}


def test_vivado_never_goes_back():
    found = offsets([memory("a", 8), scalar("b")], "vivado")
    assert found == {"a": 0x20, "b": 0x40}


def test_offset_of_the_pragma_wins_and_others_keep_clear_of_it():
    found = offsets([scalar("a"), scalar("b", offset=0x10), scalar("c", offset=0x40)])
    assert found == {"b": 0x10, "a": 0x18, "c": 0x40}


def test_auto_restart_counter_moves_the_data():
    found = offsets([scalar("a")], auto_restart=True)
    assert found == {"a": 0x14}


def test_64_bit_data_bus():
    registers, _ = lay_out([scalar("a"), scalar("b", 64)], tool="vitis", control=True, data64=True)
    assert {r.name: r.offset for r in registers} == {
        "AP_CTRL": 0x0, "GIE": 0x8, "IER": 0x10, "ISR": 0x18, "a": 0x20, "b": 0x30,
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["in", "out", "input", "output", "length", "value", "block", "OUT"]
)
@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_renamed(name, tool):
    assert is_renamed(name, tool)


@pytest.mark.parametrize(
    "name", ["size", "len", "data", "mode", "min", "max", "log", "op", "key", "color", "factor"]
)
def test_not_renamed(name):
    assert not is_renamed(name, "vitis")


def test_start_is_renamed_in_vitis_only():
    assert is_renamed("start", "vitis")
    assert not is_renamed("start", "vivado")


shapes = st.one_of(
    st.builds(
        lambda shape, bits, valid: Slot("", "", shape, bits, valid),
        st.sampled_from(["in", "out", "inout"]),
        st.integers(1, 300),
        st.booleans(),
    ),
    st.builds(
        lambda length, bits: Slot("", "", "memory", bits, storage_bits=bits, length=length),
        st.integers(1, 300),
        st.sampled_from([8, 16, 32, 64, 128]),
    ),
)


@given(st.lists(shapes, max_size=12), st.sampled_from(["vitis", "vivado"]), st.booleans())
def test_registers_never_overlap(wishes, tool, data64):
    slots = [
        Slot(f"r{i}", f"r{i}", s.shape, s.bits, s.valid, None, s.storage_bits, s.length)
        for i, s in enumerate(wishes)
    ]
    registers, placements = lay_out(slots, tool=tool, control=True, data64=data64)
    assert placements.keys() == {slot.name for slot in slots}
    end = 0
    for register in registers:
        assert register.offset >= end, register
        assert register.offset % 4 == 0
        end = register.offset + register.nbytes
        if register.role == "memory":
            assert register.offset % register.nbytes == 0
        else:
            assert register.nbytes * 8 >= register.width
