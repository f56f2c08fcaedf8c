"""The table of causes: every usual fault of a DMA is told from the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynq_torch.diagnosis import (
    CAUSES,
    ChannelState,
    Facts,
    KernelState,
    control_bits,
    diagnose,
    status_bits,
)

_IDLE, _HALTED, _INT, _SLV, _DEC, _SG = 0x2, 0x1, 0x10, 0x20, 0x40, 0x100
SEND = ChannelState("send", 0, 64, 0x18000000, requested=64)
RECV = ChannelState("recv", 0, 64, 0x18001000, requested=64)
SENT = replace(SEND, status=_IDLE, moved=64)
UNARMED = ChannelState("recv", 0)


def _recv(status: int = 0, moved: int | None = None, exact: bool = True) -> ChannelState:
    return replace(RECV, status=status, moved=moved, moved_exact=exact)


CASES = {
    "stale overlay object": Facts("dma", stale=True),
    "length beyond the length register": Facts(
        "dma", send=replace(SEND, requested=99, max_bytes=63)
    ),
    "address outside the map": Facts("dma", send=replace(SEND, status=_DEC | _HALTED)),
    "memory refused the access": Facts("dma", send=replace(SEND, status=_SLV | _HALTED)),
    "descriptor fault": Facts("dma", send=replace(SEND, status=_SG | _HALTED)),
    "length zero": Facts("dma", send=replace(SEND, status=_INT | _HALTED, requested=0)),
    "data of an earlier transfer": Facts("dma", send=SEND, recv=RECV, left=100),
    "late TLAST": Facts("dma", send=SENT, recv=_recv(_INT | _HALTED)),
    "internal error": Facts("dma", send=replace(SEND, status=_INT | _HALTED)),
    "unaligned buffer": Facts("dma", send=replace(SEND, address=0x18000001)),
    "channel halted": Facts("dma", send=replace(SEND, status=_HALTED)),
    "early TLAST": Facts("dma", send=SEND, recv=_recv(_IDLE, 40)),
    "receive not armed before send": Facts("dma", send=SEND, recv=UNARMED),
    "missing TLAST": Facts("dma", send=SENT, recv=_recv(moved=64)),
    "IP never started": Facts("dma", send=SEND, recv=RECV, kernels=(KernelState("k", 0x4),)),
    "nothing sent": Facts("dma", send=replace(UNARMED, side="send"), recv=RECV),
    "wrong length": Facts("dma", send=SENT, recv=_recv(moved=40), kernels=(KernelState("k", 0xE),)),
    "kernel still at work": Facts("k", kernels=(KernelState("k", 0x1),)),
    "data stuck on the way": Facts("dma", send=SEND, recv=RECV),
    "unknown": Facts("k"),
}


def test_done_of_an_earlier_run_does_not_hide_that_an_ip_was_not_started() -> None:
    done = (KernelState("k", 0xE),)
    stuck = replace(CASES["IP never started"], kernels=done)
    assert diagnose(stuck).cause == "IP never started"
    partly = replace(stuck, recv=replace(stuck.recv, moved=40))
    assert diagnose(partly).cause != "IP never started"


@pytest.mark.parametrize("name", CASES)
def test_each_fault_is_told_from_the_others(name: str) -> None:
    found = diagnose(CASES[name])
    assert found.cause == name
    assert found.remedy
    assert f"cause: {name}." in str(found)


def test_every_row_of_the_table_has_a_case() -> None:
    assert {cause.name for cause in CAUSES} == set(CASES)


def test_a_missing_tlast_without_knowing_how_much_came() -> None:
    # What registers of a simple DMA say on a real board: no count before the end.
    found = diagnose(Facts("dma", send=SENT, recv=RECV))
    assert found.cause == "missing TLAST"
    assert not found.causes[0].certain
    assert "likely cause" in str(found)


def test_the_text_names_what_was_seen() -> None:
    facts = Facts("dma", 2.0, SEND, RECV, (KernelState("ip", 0x4, "0 starts"),), tlast=False)
    text = diagnose(facts).explain("headline")
    for part in ("headline", "DMASR", "64 bytes asked for", "ip: AP_CTRL 0x04 [AP_IDLE]; 0 starts"):
        assert part in text
    assert "TLAST: not seen" in text


channels = st.builds(
    ChannelState,
    side=st.sampled_from(["send", "recv"]),
    status=st.integers(0, 0xFFFFFFFF),
    length_register=st.integers(0, 1 << 26),
    address=st.integers(0, 0xFFFFFFFF),
    requested=st.none() | st.integers(0, 1 << 28),
    moved=st.none() | st.integers(0, 1 << 28),
    moved_exact=st.booleans(),
    max_bytes=st.sampled_from([255, (1 << 14) - 1, (1 << 26) - 1]),
    width_bytes=st.sampled_from([4, 8, 16]),
    realigns=st.booleans(),
)
kernels = st.builds(KernelState, st.just("k"), st.none() | st.integers(0, 0xFFFF))


@given(
    send=st.none() | channels,
    recv=st.none() | channels,
    units=st.lists(kernels, max_size=2).map(tuple),
    stale=st.booleans(),
    tlast=st.none() | st.booleans(),
)
def test_any_snapshot_gets_a_diagnosis(
    send: ChannelState | None,
    recv: ChannelState | None,
    units: tuple[KernelState, ...],
    stale: bool,
    tlast: bool | None,
) -> None:
    found = diagnose(Facts("dma", 1.0, send, recv, units, stale, tlast))
    assert found.causes
    assert len({c.name for c in found.causes}) == len(found.causes)
    for cause in found.causes:
        assert cause.sentence(found.facts)
        assert cause.remedy(found.facts)
    assert str(found).count("\n") >= 2


@given(st.integers(0, 0xFFFFFFFF))
def test_bits_have_names(value: int) -> None:
    assert len(status_bits(value)) <= 12
    assert ("AP_IDLE" in control_bits(value)) == bool(value & 4)
