"""The table of causes: every usual fault of a DMA is told from the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynq_torch.diagnosis import (
    CAUSES,
    ERROR_MASK,
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
    "kernel still running": Facts("k", kernels=(KernelState("k", 0x1),)),
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


_STUCK, _LONG = "data stuck on the way", "length beyond the length register"
_STOPPED = replace(SEND, status=_HALTED | _IDLE)
_NOTHING = replace(UNARMED, side="send")


def _kernel(control: int | None, name: str = "k") -> tuple[KernelState, ...]:
    return (KernelState(name, control),)


#: Facts at the edges of each row's symptom; every cause that fits, in order, the first one's `+`
#: where the registers prove it; and what the explanation says of these facts.
EDGES: tuple[tuple[Facts, str, str], ...] = (
    (
        Facts("d", send=_STOPPED, recv=_recv(_DEC | _HALTED)),
        "+address outside the map, channel halted",
        "at 0x18001000 (recv)",
    ),
    (
        Facts("d", send=_STOPPED, recv=_recv(_SLV | _HALTED)),
        "+memory refused the access, channel halted",
        "answered 0x18001000 (recv)",
    ),
    (Facts("d", send=replace(SEND, status=0x401)), "+descriptor fault", ""),
    (Facts("d", send=replace(SEND, status=0x201)), "+descriptor fault", ""),
    (Facts("d", send=replace(SEND, status=0x880)), f"wrong length, {_STUCK}", ""),
    (
        Facts("d", send=replace(SEND, requested=63, max_bytes=63)),
        f"wrong length, {_STUCK}",
        "part of its 63 bytes",
    ),
    (
        Facts("d", send=SEND, recv=replace(RECV, max_bytes=63)),
        f"+{_LONG}, {_STUCK}",
        "at most 63 bytes; 64 were asked for",
    ),
    (
        Facts("d", send=SENT, recv=ChannelState("recv", 0, 0, 0x18001000, max_bytes=255)),
        f"+{_LONG}",
        "holds at most 255 and",
    ),
    (Facts("d", send=SENT, recv=ChannelState("recv", 1, 0, 0x18001000)), "unknown", ""),
    (Facts("d", send=SENT, recv=ChannelState("recv", 0, 4, 0x18001000)), "unknown", ""),
    (Facts("d", send=SENT, recv=ChannelState("recv", 0)), "unknown", ""),
    (
        Facts("d", send=SEND, recv=RECV, left=1),
        f"+data of an earlier transfer, {_STUCK}",
        "still hold 1 beat of an earlier",
    ),
    (
        Facts("d", send=SENT, recv=_recv(_INT | _HALTED)),
        "+late TLAST, internal error",
        "longer than the 64 bytes",
    ),
    (
        Facts("d", send=replace(SENT, requested=0), recv=_recv(_INT | _HALTED)),
        "+late TLAST, internal error",
        "",
    ),
    (
        Facts("d", send=replace(SEND, status=_INT | _HALTED), recv=RECV),
        f"+internal error, missing TLAST, {_STUCK}",
        "",
    ),
    (
        Facts("d", send=replace(SEND, status=_INT | _HALTED, requested=0), recv=RECV),
        f"+length zero, internal error, missing TLAST, {_STUCK}",
        "",
    ),
    (Facts("d", send=replace(SEND, status=_HALTED, requested=0)), "+channel halted", ""),
    (
        Facts("d", send=SEND, recv=replace(RECV, address=0x18001002)),
        f"+unaligned buffer, {_STUCK}",
        "0x18001002 is no multiple of 4 bytes",
    ),
    (Facts("d", send=SEND, recv=replace(RECV, address=0x18001002, realigns=True)), _STUCK, ""),
    (
        Facts("d", send=replace(SENT, address=0x18000002), recv=RECV),
        f"missing TLAST, {_STUCK}",
        "either TLAST is missing, or",
    ),
    (
        Facts("d", send=SEND, recv=replace(UNARMED, address=0x18001002, length_register=4)),
        f"+receive not armed before send, wrong length, {_STUCK}",
        "",
    ),
    (
        Facts("d", send=SEND, recv=_recv(_HALTED)),
        f"+channel halted, {_STUCK}",
        "The recv channel is stopped",
    ),
    (
        Facts("d", send=SEND, recv=replace(UNARMED, status=_HALTED)),
        f"+receive not armed before send, wrong length, {_STUCK}",
        "",
    ),
    (
        Facts("d", send=SEND, recv=_recv(_IDLE, 40)),
        f"+early TLAST, wrong length, {_STUCK}",
        "after 40 of 64 bytes: TLAST came early, and the sender cannot",
    ),
    (
        Facts("d", send=SENT, recv=_recv(_IDLE, 63)),
        "+early TLAST",
        "63 of 64 bytes: TLAST came early.",
    ),
    (Facts("d", send=SENT, recv=_recv(_IDLE, 40, False)), "unknown", ""),
    (Facts("d", send=SENT, recv=_recv(_IDLE, 64)), "unknown", ""),
    (
        Facts("d", send=SEND, recv=UNARMED, kernels=_kernel(0x4)),
        f"IP never started, wrong length, {_STUCK}",
        "k is idle",
    ),
    (Facts("d", send=SEND), f"wrong length, {_STUCK}", ""),
    (Facts("d", send=SENT, recv=UNARMED), "unknown", ""),
    (
        Facts("d", recv=_recv(moved=64)),
        f"+missing TLAST, {_STUCK}",
        "All 64 bytes are in the buffer",
    ),
    (
        Facts("d", send=SENT, recv=replace(RECV, requested=0, moved=0)),
        f"+missing TLAST, {_STUCK}",
        "All 0 bytes are in the buffer",
    ),
    (Facts("d", send=SEND, recv=_recv(moved=64)), _STUCK, ""),
    (
        Facts("d", send=SENT, recv=RECV, tlast=False),
        f"+missing TLAST, {_STUCK}",
        "How many of the 64 bytes are in the buffer is unknown, and the DMA still waits",
    ),
    (
        Facts("d", send=SENT, recv=_recv(moved=40, exact=False), tlast=False),
        f"+missing TLAST, {_STUCK}",
        "At least 40 of 64 bytes are in the buffer",
    ),
    (Facts("d", send=SENT, recv=RECV, tlast=True), f"missing TLAST, {_STUCK}", ""),
    (
        Facts("d", send=SENT, recv=_recv(moved=40), tlast=False),
        f"+wrong length, missing TLAST, {_STUCK}",
        "only 40 of 64 bytes came back",
    ),
    (
        Facts("d", send=SENT, recv=_recv(moved=63)),
        f"+wrong length, missing TLAST, {_STUCK}",
        "only 63 of 64",
    ),
    (
        Facts("d", send=SENT, recv=_recv(moved=40, exact=False)),
        f"missing TLAST, {_STUCK}",
        "either",
    ),
    (
        Facts("d", send=SEND, recv=RECV, kernels=(*_kernel(4, "h/a"), *_kernel(4), *_kernel(1))),
        f"IP never started, kernel still running, {_STUCK}",
        "h/a and k are idle|overlay.h.a.register_map",
    ),
    (Facts("d", send=SEND, recv=_recv(moved=4), kernels=_kernel(0xE)), _STUCK, ""),
    (Facts("d", send=SENT, recv=RECV, kernels=_kernel(0xE)), f"missing TLAST, {_STUCK}", ""),
    (Facts("d", send=SEND, recv=RECV, kernels=_kernel(0x84)), _STUCK, ""),
    (Facts("d", send=SEND, recv=RECV, kernels=_kernel(0x86)), _STUCK, ""),
    (Facts("d", send=SEND, recv=RECV, kernels=_kernel(0x5)), _STUCK, ""),
    (
        Facts("d", send=SEND, recv=RECV, kernels=_kernel(None)),
        f"kernel still running, {_STUCK}",
        "",
    ),
    (Facts("d", send=SENT, recv=_recv(_IDLE, 64), kernels=_kernel(4)), "unknown", ""),
    (Facts("d", send=_NOTHING, recv=RECV), f"nothing sent, missing TLAST, {_STUCK}", ""),
    (
        Facts("d", send=_NOTHING, recv=_recv(moved=4, exact=False)),
        f"missing TLAST, {_STUCK}",
        "either",
    ),
    (Facts("d", recv=RECV), f"missing TLAST, {_STUCK}", "either"),
    (
        Facts("d", send=SEND, recv=_recv(_IDLE, 64)),
        f"wrong length, {_STUCK}",
        "part of its 64 bytes",
    ),
    (
        Facts("k", kernels=(*_kernel(1, "a"), *_kernel(4, "b"), *_kernel(0x80, "c"))),
        "kernel still running",
        "a and c run and have not finished",
    ),
    (Facts("k", kernels=_kernel(1, "a")), "kernel still running", "a runs and has not finished"),
    (Facts("k", kernels=_kernel(0x2)), "unknown", ""),
    (
        Facts("d", send=SEND, stale=True),
        f"+stale overlay object, wrong length, {_STUCK}",
        "d talks to addresses",
    ),
)


@pytest.mark.parametrize(("facts", "causes", "says"), EDGES)
def test_where_each_symptom_begins_and_ends(facts: Facts, causes: str, says: str) -> None:
    found = diagnose(facts)
    assert [c.name for c in found.causes] == causes.removeprefix("+").split(", ")
    assert found.causes[0].certain == causes.startswith("+")
    text = found.explain("why")
    for part in says.split("|"):
        assert part in text
    others = "; ".join(c.name for c in found.causes[1:])
    assert text.endswith(f"\n  also possible: {others}" if others else found.remedy)


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


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (UNARMED, "recv (S2MM): DMASR 0x00000000 [running], never armed"),
        (
            replace(RECV, status=0x12, moved=40),
            "recv (S2MM): DMASR 0x00000012 [Idle, DMAIntErr], 64 bytes asked for at 0x18001000, "
            "40 moved",
        ),
        (
            replace(SEND, moved=1, moved_exact=False),
            "send (MM2S): DMASR 0x00000000 [running], 64 bytes asked for at 0x18000000, "
            "at least 1 moved",
        ),
        (
            SEND,
            "send (MM2S): DMASR 0x00000000 [running], 64 bytes asked for at 0x18000000, "
            "bytes moved unknown until it ends",
        ),
        (
            KernelState("k", None, "2 starts"),
            "k: no control register (ap_ctrl_none), always runs; 2 starts",
        ),
        (KernelState("k", 0x81), "k: AP_CTRL 0x81 [AP_START, AUTO_RESTART]"),
        (KernelState("k", 0), "k: AP_CTRL 0x00 [running]"),
    ],
)
def test_states_as_text(state: ChannelState | KernelState, text: str) -> None:
    assert str(state) == text


def test_which_states_are_which() -> None:
    named = ("halted", "idle", "failed", "armed", "complete", "pending", "lost_length")

    def of(state: ChannelState) -> set[str]:
        return {name for name in named if getattr(state, name)}

    assert (SEND.max_bytes, SEND.width_bytes) == (0x03FFFFFF, 4)  # where nothing else is known
    assert of(SEND) == {"armed", "pending"}
    assert of(replace(SEND, status=_HALTED)) == {"armed", "halted"}
    assert of(SENT) == {"armed", "complete", "idle"}
    assert of(replace(SENT, status=_IDLE | _SLV)) == {"armed", "failed", "idle"}
    assert of(replace(UNARMED, status=_IDLE)) == {"idle"}
    assert of(replace(UNARMED, address=1)) == {"lost_length"}
    assert [bool(KernelState("k", c).done) for c in (None, 0, 2, 5)] == [False, False, True, False]
    running = [KernelState("k", c).running for c in (None, 0, 1, 2, 4, 0x80)]
    assert running == [True, True, True, False, False, True]
    assert [KernelState("k", c).idle for c in (None, 0x4, 0x5, 0x6, 0x84, 0xC)] == [
        *(False, True, False, False, False, True)
    ]


def test_bits_are_those_of_the_manuals() -> None:
    status = "Halted Idle - SGIncld DMAIntErr DMASlvErr DMADecErr - SGIntErr SGSlvErr SGDecErr - "
    status += "IOC_Irq Dly_Irq Err_Irq -"  # PG021, table 2-8
    control = "AP_START AP_DONE AP_IDLE AP_READY AP_CONTINUE - - AUTO_RESTART"  # UG1399
    for names, decode in ((status, status_bits), (control, control_bits)):
        for bit, name in enumerate(names.split()):
            assert decode(1 << bit) == (() if name == "-" else (name,))
    assert [bit for bit in range(16) if ERROR_MASK >> bit & 1] == [4, 5, 6, 8, 9, 10]


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


# How long it takes to draw seven values a channel says how busy the PC is, not whether it is slow.
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
