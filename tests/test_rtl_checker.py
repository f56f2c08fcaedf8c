"""The protocol checker: each rule broken by a manager or unit made for it."""

from __future__ import annotations

import pytest
from rtl_cpp_bench import build, run


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    return build(tmp_path_factory.getbasetemp().parent)


PORT = {
    "4 KB": "a burst crosses the 4 KB boundary at 0x101000 (ARADDR 0x100fc0, 9 beats of 8 bytes)",
    "4 KB unaligned": "a burst crosses the 4 KB boundary at 0x101000 (ARADDR 0x100fc3",
    "write crosses 4 KB": "a burst crosses the 4 KB boundary at 0x101000 (AWADDR 0x100ff8",
    "size": "ARSIZE says 16 bytes a beat on a data bus of 8",
    "reserved burst": "ARBURST is 3, which is reserved (ARADDR 0x100000, 1 beat of 8 bytes)",
    "WRAP of 3": "a WRAP burst has 2, 4, 8 or 16 beats",
    "WRAP unaligned": "a WRAP burst starts at a multiple of a beat's bytes",
    "FIXED of 17": "a FIXED burst has at most 16 beats",
    "exclusive": "ARLOCK asks for an exclusive access, which this memory does not support",
    "WLAST early": "WLAST is high on beat 1 of 4 (AWADDR 0x100000)",
    "WLAST late": "WLAST is low on beat 1 of 1",
    "WLAST early, before the address": "WLAST is high on beat 1 of 4",
    "strobe": "WSTRB is high for bytes of the bus that the beat does not cover, on beat 1 of 1",
    "ARVALID falls while waiting": "ARVALID fell before ARREADY",
    "AWVALID falls while waiting": "AWVALID fell before AWREADY",
    "WVALID falls while waiting": "WVALID fell before WREADY",
    "ARADDR changes while waiting": (
        "ARADDR changed from 0x0000000000100000 to 0x0000000000100008 while ARVALID waited for "
        "ARREADY"
    ),
    "ARLEN changes while waiting": "ARLEN changed from 0x00 to 0x07",
    "AWID changes while waiting": "AWID changed from 0x00 to 0x07",
    "WDATA changes while waiting": "WDATA changed from 0x0000000000000000 to 0x0000000000000007",
    "WLAST changes while waiting": "WLAST changed from 0x00 to 0x01 while WVALID waited for WREADY",
    "ARVALID in reset": "ARVALID is high while the reset is active",
    "AWVALID in reset": "AWVALID is high while the reset is active",
    "WVALID in reset": "WVALID is high while the reset is active",
}
LITE = {
    "B without a write": "BVALID is high without a write to answer",
    "B before the data": "BVALID is high without a write to answer",
    "two B for one write": "BVALID is high without a write to answer",
    "BVALID falls": "BVALID fell before BREADY: a beat that was offered was taken back",
    "BRESP changes": "BRESP changed from 0x00 to 0x02 while BVALID waited for BREADY",
    "EXOKAY": "RRESP is EXOKAY on AXI4-Lite",
    "R without a read": "RVALID is high without a read to answer",
    "RDATA changes": "RDATA changed from 0x00000005 to 0x00000006 while RVALID waited for RREADY",
    "RVALID in reset": "RVALID is high while the reset is active",
}
STREAM = {
    "TVALID falls": "TVALID fell before TREADY",
    "TDATA changes": "TDATA changed from 0x",
    "TLAST changes": "TLAST changed from 0x00 to 0x01 while TVALID waited for TREADY",
    "TDEST changes": "TDEST changed from 0x00 to 0x01",
    "TSTRB without TKEEP": "TSTRB is high for a byte whose TKEEP is low",
    "TVALID in reset": "TVALID is high while the reset is active",
}
CASES = [
    pytest.param(where, rule, message, id=f"{where}: {rule}")
    for where, rules in (("port", PORT), ("lite", LITE), ("stream", STREAM))
    for rule, message in rules.items()
]
NAMES = {"port": "unit_0.m", "lite": "unit_0.s", "stream": "unit_0.out"}


@pytest.mark.parametrize(("where", "rule", "message"), CASES)
def test_a_broken_rule_is_an_error_with_cycle_and_port(bench, where, rule, message):
    text = run(bench, "break", where, rule).strip()
    cycle, rest = text.removeprefix("cycle ").split(", ", 1)
    assert cycle.isdigit()
    assert rest.startswith(f"{NAMES[where]}: {message}")


@pytest.mark.parametrize("where", NAMES)
def test_what_is_allowed_is_no_error(bench, where):
    assert run(bench, "break", where, "nothing").strip() == ""


@pytest.mark.parametrize(
    ("wakes_with", "edge", "stops"),
    [(1, 5, False), (1, 31, False), (1, 32, True), (1, 95, True), (0, 5, True), (0, 95, True)],
)
def test_an_assertion_may_fail_while_garbage_meets_the_reset(bench, wakes_with, edge, stops):
    """The reset is held for 32 edges, and nobody looks after 96."""
    found = run(bench, "wake", 1, wakes_with, edge).strip()
    assert found == ("stops in its reset: an assertion" if stops else "")
    assert run(bench, "wake", 1, wakes_with, 96).strip() == ""


def test_a_register_that_the_reset_leaves_alone_is_found(bench):
    assert run(bench, "wake", 1).strip() == ""
    assert run(bench, "wake", 0).strip() == (
        "m_axi_gmem_ARVALID depends, 0 cycles after the reset, on what registers held before it"
    )
