"""Proofs of the RTL, each with twins that a small change has broken and that yosys must refute."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from rtl_bench import BENCHES, KERNELS, Bench, Model, build

from pynq_torch.board.rtl.proofs import Replacement, proofs, prove
from pynq_torch.errors import RtlError

#: The wheel of yosys compiles itself when it runs for the first time.
pytestmark = pytest.mark.timeout(900)

#: Proof -> the file that is changed, the text that is replaced and by what, a property that breaks.
TWINS = {
    "axil_control": [
        ("axil_control.sv", "arready_o = !rvalid_o", "arready_o = 1'b1", "one_answer_a_read"),
        ("axil_control.sv", "if (ap_ready_i) ap_s", "if (!write) ap_s", "starts_when_told"),
        ("axil_control.sv", "if (wstrb_i[lane]) word_q", "if (wstrb_i[0]) word_q", "word_kept"),
        ("axil_control.sv", "ap_start_o <= auto_q", "ap_start_o <= 1'b0", "starts_when_told"),
        ("axil_control.sv", "<= stored[32*i+:32]", "<= stored[31:0]", "word_read"),
        ("axil_control.sv", "ap_done_i && ier_q[0]", "ap_done_i", "registers_match"),
    ],
    "skid": [
        ("skid.sv", "if (out_free) out_q", "out_q", "stable"),
        ("skid.sv", "spare_valid_q ? spare_q : data_i", "data_i", "in_order"),
    ],
    "fifo": [
        ("fifo.sv", "ready_o = count_q != COUNT_BITS'(DEPTH)", "ready_o = 1'b1", "full"),
        ("fifo.sv", "if (pop) head_q", "if (ready_i) head_q", "in_order"),
    ],
    "credits": [
        ("credits.sv", "room_o <= left_d >= COUNT", "room_o <= left_q >= COUNT", "room_is_right"),
        ("credits.sv", "given + COUNT_BITS'(give_i[i])", "COUNT_BITS'(give_i[i])", "counts_match"),
    ],
    "gemm_queue": [
        ("gemm_queue.sv", "= count_q != (INDEX_BITS + 1)'(DEPTH)", "= 1'b1", "full"),
        ("gemm_queue.sv", "else if (ready_i) valid_q <= 1'b0;", "else valid_q <= 1'b0;", "stays"),
        ("gemm_queue.sv", "(!valid_q || ready_i)", "ready_i", "comes_out"),
    ],
    "axi_bursts": [
        ("axi_bursts.sv", "{1'b0, index_q[INDEX_BITS-1:0]};", "'0;", "within_4_kb"),
        ("axi_bursts.sv", "(taken && fits)", "1'b0", "none_waits"),
        ("axi_bursts.sv", "SPAN_WIDTH'(lane) - 1'b1", "SPAN_WIDTH'(lane)", "lanes"),
    ],
    "axi_read": [
        ("axi_read.sv", ">= COUNT_BITS'(MAX_BURST)", "!= '0", "credits"),
        ("axi_read.sv", "&& on_the_way == '0 && waiting", "&& waiting", "no_answer_lost"),
        ("axi_read.sv", "idle_o = !bursts_left && ", "idle_o = ", "no_answer_lost"),
        ("axi_read.sv", "{mark_last && rlast_i, mark", "{mark_last, mark", "words_followed"),
        ("axi_read.sv", "word_last && !two", "word_last", "last_is_last"),
        ("axi_read.sv", "{word_start, 3'b0}", "{2'b0, word_start, 2'b0}", "bytes_in_order"),
        ("axi_read.sv", ">= COUNT_BITS'(MAX_BURST)", "> COUNT_BITS'(MAX_BURST)", "asks_in_time"),
        ("axi_read.sv", "|| have_q || word_last)", "|| have_q)", "none_missing"),
    ],
    "axi_write": [
        ("axi_write.sv", "wlast_o  = beat_q == mark_len", "wlast_o = mark_last", "last_is_last"),
        ("axi_write.sv", "&& unanswered_q == '0 ", "", "no_answer_lost"),
        ("axi_write.sv", "mark_valid && (valid_i || !needs", "(valid_i || !needs", "address_first"),
        ("axi_write.sv", "valid_i || !needs_word", "valid_i", "sends_the_rest"),
        ("axi_write.sv", "final_word = mark_last && ", "final_word = ", "strobes_match"),
        ("axi_write.sv", "> mark_end", ">= mark_end", "strobes_match"),
        ("axi_write.sv", "&& wready_i && needs_word", "&& wready_i", "takes_its_words"),
    ],
    "normalise": [
        ("normalise.sv", "shift_o[k] = take", "shift_o[k] = 1'b0", "is_a_shift"),
        ("normalise.sv", "&& limit[k+1] >= SHIFT_BITS'(2 ** k)", "", "within_limit"),
        ("normalise.sv", "WIDTH-1-:2**k", "WIDTH-1-:2**k-(k>3)", "no_bit_lost"),
    ],
    "f32_round": [
        ("f32_round.sv", " || significand_i[2])", ")", "ties_to_even"),
        ("f32_round.sv", ">= 10'd255", "> 10'd255", "infinity"),
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_properties_hold(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The properties hold in every reachable state, whatever the inputs that are allowed do."""
    found = prove(name)
    assert found.proved, f"{found}"
    with capsys.disabled():
        print(f"\n{found} ({found.seconds:.1f} s)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "twin"), [(name, twin) for name, twins in TWINS.items() for twin in twins]
)
def test_a_broken_twin_is_refuted(name: str, twin: tuple[str, str, str, str]) -> None:
    """A change of one expression breaks the property that it should, and no silence comes of it."""
    *replacement, broken = twin
    found = prove(name, Replacement(*replacement))
    assert not found.proved
    assert broken in found.failed, f"{found}"


def test_every_proof_has_twins() -> None:
    assert proofs().keys() == TWINS.keys()


@pytest.mark.slow
def test_a_counterexample_has_waves(tmp_path: Path) -> None:
    found = prove("skid", Replacement("skid.sv", "if (out_free) out_q", "out_q"))
    waves = found.waves(tmp_path / "skid.vcd")
    assert len(waves.cycles) == found.steps
    # The property is a signal of its own: 1 until the last step.
    assert waves.values("stable") == [1] * (found.steps - 1) + [0]
    assert waves.values("dut.valid_o")[-2:] == [1, 1]
    assert waves.values("ready_i")[-2] == 0  # nobody took the word, and yet it changed
    assert waves.values("data_o")[-2] != waves.values("data_o")[-1]
    with pytest.raises(RtlError, match="is proved: there is no counterexample"):
        prove("skid").waves(tmp_path / "none.vcd")


def test_a_text_that_is_not_there_once_is_an_error() -> None:
    with pytest.raises(RtlError, match=r"skid\.sv has 'no such text' 0 times; expected it once"):
        prove("skid", Replacement("skid.sv", "no such text", ""))
    with pytest.raises(RtlError, match="expected it once"):
        prove("skid", Replacement("skid.sv", "spare_q", ""))
    with pytest.raises(RtlError, match=r"no proof 'nothing'; expected one of .*skid"):
        prove("nothing")


def test_what_is_no_proof(tmp_path: Path) -> None:
    """A file that yosys cannot read, and a property that no number of steps proves."""
    path = tmp_path / "proofs" / "lost_proof.sv"
    path.parent.mkdir()
    path.write_text("module lost_proof(input wire a); unknown u (.a); endmodule\n")
    with pytest.raises(RtlError, match=r"(?s)lost_proof\.sv: yosys cannot prove it.*unknown"):
        prove(path)
    # Never reached from zero; from two on only after more steps than are tried.
    path.write_text(
        "module lost_proof(input wire clk, input wire go);\n"
        "  logic [7:0] q = 8'd0;\n"
        "  always_ff @(posedge clk) if (go) q <= q == 8'd1 ? 8'd0 : q + 8'd1;\n"
        "  wire never = q != 8'd200;\n"
        "  always_comb assert (never);\n"
        "endmodule\n"
    )
    with pytest.raises(RtlError, match=r"over \d+ steps proves and refutes nothing\. Add an inv"):
        prove(path)


# ---- products, one by one ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", "67108864 products\nPASS\n"),
        ("b_q[r][w][15:8], 16'b0}", "b_q[r][w][15:8], 15'b0}", "FAIL: weights"),
        ("+ part(w, a[3:1]) + 10'(a[3])", "+ part(w, a[3:1])", "FAIL: weights"),
    ],
    ids=["as it is", "packed too near", "a carry less"],
)
def test_every_product_of_int8(old: str, new: str, said: str, tmp_path: Path) -> None:
    """All pairs that share a DSP48E1, times all int8: SAT takes hours for what takes a second."""
    for source in (BENCHES / "gemm_product.sv", KERNELS / "gemm" / "rtl" / "gemm_array.sv"):
        shutil.copy(source, tmp_path)
    if old:
        Replacement("gemm_array.sv", old, new).apply(tmp_path)
    model = Model("gemm_product", (), ("SYNTHESIS",), tmp_path / "gemm_product.sv")
    program = build(Bench("product", (model,)))
    answer = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
    assert answer.stdout.startswith(said), answer.stdout + answer.stderr
    assert (answer.returncode == 0) == (not old)
