"""Arrays that Vitis HLS cuts or copies by itself: which, into how many memories, and how not."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of

from pynq_torch.hls import Estimate, estimate
from pynq_torch.hls.estimator import compiler
from pynq_torch.lessons import hls_lab
from pynq_torch.widgets.hls_cell import run_cell

pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(compiler.tools() is not None, reason=compiler.tools() or ""),
]

WINDOW = """
void k(const KIND x[SIZE * SIZE], KIND y[SIZE * SIZE]) {
#pragma HLS INTERFACE axis port=x,y
    KIND a[SIZE][SIZE];
MORE
    fill: for (int i = 0; i < SIZE * SIZE; ++i) a[i / SIZE][i % SIZE] = x[i];
    rows: for (int r = 0; r + HIGH <= SIZE; r += STEP)
        columns: for (int c = 0; c + WIDE <= SIZE; c += STEP) {
#pragma HLS PIPELINE
            KIND sum = 0;
            for (int i = 0; i < HIGH; ++i)
                for (int j = 0; j < WIDE; ++j) sum = sum ^ a[r + i][c + j];
            *y++ = sum;
        }
}
"""


def _window(
    folder: Path, *, high: int = 3, wide: int = 3, step: int = 1, kind: str = "unsigned char",
    size: int = 128, more: str = "", directives: str | None = None, tool: str = "vitis-2024.2",
    suffix: str = ".tcl",
) -> Estimate:  # fmt: skip
    text = WINDOW.replace("SIZE", str(size)).replace("KIND", kind).replace("MORE", more)
    text = text.replace("HIGH", str(high)).replace("WIDE", str(wide)).replace("STEP", str(step))
    source, file = folder / "k.cpp", (folder / "asked").with_suffix(suffix)
    source.write_text(text)
    if directives is not None:
        file.write_text(directives)
    return estimate(source, "k", tool=tool, directives=file if directives is not None else None)


def _interval(found: Estimate) -> int | None:
    return found.loops[-1].ii


@pytest.mark.parametrize(
    ("high", "wide", "step", "blocks"),
    [
        (3, 3, 1, 9),  # an odd number of elements: a bank for each, 3 x 3
        (2, 2, 2, 8),  # an even one: half as many, and in the last dimension
        (1, 8, 8, 8),  # four banks of 4 Kbyte
        (1, 5, 5, 10),  # five banks, of 26 columns each
    ],
)
def test_banks_are_as_many_as_the_logs_of_the_tool_say(
    tmp_path: Path, high: int, wide: int, step: int, blocks: int
) -> None:
    found = _window(tmp_path, high=high, wide=wide, step=step)
    assert (_interval(found), found.resources["BRAM_18K"]) == (1, blocks)


def test_releases_before_2022_copy_what_they_do_not_cut(tmp_path: Path) -> None:
    found = _window(tmp_path, kind="int", size=10, tool="vitis-2021.1")
    assert (_interval(found), found.resources["BRAM_18K"]) == (1, 16)  # 8 copies of 32 bits
    assert _interval(_window(tmp_path, tool="vitis-2020.2")) == 1
    assert _interval(_window(tmp_path, tool="vitis-2020.1")) == 5


def test_a_line_of_constants_is_cut_completely(tmp_path: Path) -> None:
    text = """
    void k(const int x[64], int y[64]) {
        int a[16][64];
        fill: for (int i = 0; i < 1024; ++i) a[i / 64][i % 64] = x[i % 64];
        use: for (int i = 0; i < 64; ++i) {
    #pragma HLS PIPELINE
            int sum = 0;
            for (int j = 0; j < 16; ++j) sum += a[j][i];
            y[i] = sum;
        }
    }
    """
    source = tmp_path / "k.cpp"
    source.write_text(text)
    for tool in ("vitis", "vitis-2020.2"):
        found = estimate(source, "k", tool=tool)
        assert (_interval(found), found.resources["BRAM_18K"]) == (1, 16)
    assert _interval(estimate(source, "k", tool="vivado")) == 8


@pytest.mark.parametrize("storage", ["type=ram_t2p", "type=ram_2p impl=bram"])
def test_an_array_is_whole_where_that_is_asked_for(tmp_path: Path, storage: str) -> None:
    bound = f"#pragma HLS BIND_STORAGE variable=a {storage}"
    tcl = "config_array_partition -throughput_driven off\n"
    assert _interval(_window(tmp_path, more=bound)) == 1  # cut all the same
    assert _interval(_window(tmp_path, directives=tcl)) == 1  # copied
    whole = _window(tmp_path, more=bound, directives=tcl)
    assert (_interval(whole), whole.resources["BRAM_18K"]) == (5, 8)
    assert not whole.warnings
    cfg = "[hls]\nsyn.array_partition.throughput_driven=off\n"
    assert _interval(_window(tmp_path, more=bound, directives=cfg, suffix=".cfg")) == 5


def test_options_that_are_not_understood_are_warned_about(tmp_path: Path) -> None:
    def said(line: str, suffix: str = ".tcl") -> str:
        return "\n".join(_window(tmp_path, directives=line, suffix=suffix).warnings)

    assert said("config_array_partition -throughput_driven auto -maximum_size 4096\n") == ""
    assert "throughput_driven=no, which is ignored; expected auto or off" in said(
        "config_array_partition -throughput_driven no\n"
    )
    assert "asked.cfg:1: config_array_partition has no option 'throughput'" in said(
        "syn.array_partition.throughput=off\n", ".cfg"
    )
    assert "complete_threshold=12" in said("config_array_partition -complete_threshold 12\n")


def test_a_function_in_a_pipeline_leaves_an_array_to_be_cut_along_constants(tmp_path: Path) -> None:
    """Nine words of one element are nine banks, though a function reads them."""
    text = """
    static unsigned char taps[1024][3][3];
    unsigned char total(unsigned char one[3][3]) {
        unsigned char sum = 0;
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) sum ^= one[i][j];
        return sum;
    }
    void k(const unsigned char x[9216], unsigned char y[1024]) {
        for (int i = 0; i < 1024; ++i)
            for (int r = 0; r < 3; ++r)
                for (int c = 0; c < 3; ++c) taps[i][r][c] = x[9 * i + 3 * r + c];
        sums: for (int i = 0; i < 1024; ++i) y[i] = total(taps[i]);
    }
    """
    source = tmp_path / "k.cpp"
    source.write_text(text)
    found = estimate(source, "k", tool="vitis-2025.1")
    assert (_interval(found), found.resources["BRAM_18K"]) == (1, 9)


def test_an_array_stays_whole_where_something_else_limits_the_loop(tmp_path: Path) -> None:
    text = """
    void k(const float x[256], float y[1], float w[252]) {
        float a[256];
        fill: for (int i = 0; i < 256; ++i) a[i] = x[i];
        float sum = 0;
        use: for (int i = 0; i < 252; ++i) {
    #pragma HLS PIPELINE
            sum += a[i] * a[i + 1] + a[i + 2] * a[i + 3] + a[i + 4];
        }
        y[0] = sum;
    }
    """
    source = tmp_path / "k.cpp"
    source.write_text(text)
    found = estimate(source, "k", tool="vitis")
    assert (_interval(found), found.resources["BRAM_18K"]) == (5, 2)
    assert "floating-point addition" in found.loops[-1].why


def test_a_function_that_is_called_twice_has_two_ports(tmp_path: Path) -> None:
    text = """
    void row(const int from[64], int to[64]) {
    #pragma HLS INLINE off
        walk: for (int i = 0; i < 57; ++i) {
    #pragma HLS PIPELINE
            int sum = 0;
            for (int j = 0; j < 8; ++j) sum += from[i + j];
            to[i] = sum;
        }
    }
    void k(const int x[64], int y[64]) {
        int a[64], b[64];
        fill: for (int i = 0; i < 64; ++i) a[i] = x[i];
        row(a, b);
        AGAIN
    }
    """
    source = tmp_path / "k.cpp"
    for again, interval in (("row(b, y);", 4), ("for (int i = 0; i < 64; ++i) y[i] = b[i];", 1)):
        source.write_text(text.replace("AGAIN", again))
        walks = [one for one in estimate(source, "k", tool="vitis").loops if one.name == "walk"]
        assert {one.ii for one in walks} == {interval}


def test_an_array_has_two_ports_that_a_function_takes_which_is_called_twice(tmp_path: Path) -> None:
    """Also in its caller, where four words are read at a time."""
    text = """
    void next(const int from[64], int to[64]) {
    #pragma HLS INLINE off
        for (int i = 0; i < 64; ++i) to[i] = 3 * from[i];
    }
    void k(const int x[64], int y[16]) {
        int a[64], b[64], c[64];
        for (int i = 0; i < 64; ++i) a[i] = x[i];
        next(a, b);
        SECOND
        use: for (int i = 0; i < 16; ++i) {
    #pragma HLS PIPELINE
            y[i] = c[4 * i] ^ c[4 * i + 1] ^ c[4 * i + 2] ^ c[4 * i + 3];
        }
    }
    """
    source = tmp_path / "k.cpp"
    for second, ii in (("next(b, c);", 2), ("for (int i = 0; i < 64; ++i) c[i] = b[i];", 1)):
        source.write_text(text.replace("SECOND", second))
        assert _interval(estimate(source, "k", tool="vitis")) == ii


def test_lessons_and_cells_take_a_line_of_tcl(tmp_path: Path) -> None:
    line = "config_array_partition -throughput_driven off"
    text = WINDOW.replace("MORE", "#pragma HLS BIND_STORAGE variable=a type=ram_2p")
    for old, new in {"SIZE": "32", "KIND": "int", "HIGH": "3", "WIDE": "3", "STEP": "1"}.items():
        text = text.replace(old, new)
    assert _interval(hls_lab.estimated(text, "k")) == 1
    assert _interval(hls_lab.estimated(text, "k", directive=line)) == 5
    goal = hls_lab.Target(ii={"columns": 1})
    bench = "int main() { static int x[1024], y[1024]; k(x, y); return 0; }"
    assert hls_lab.check(text, "k", goal, bench).passed
    assert "columns has II=5" in hls_lab.check(text, "k", goal, bench, directive=line).sentence
    made = run_cell(f'k --directive "{line}" --save {tmp_path}', text)
    assert made.schedule is not None and _interval(made.schedule) == 5


def test_a_line_that_moves_up_is_cut_and_keeps_its_interval(tmp_path: Path) -> None:
    text = """
    void k(int x, int y[1]) {
        static int line[128];
        walk: for (int i = 127; i > 15; i -= 16) {
    #pragma HLS PIPELINE
            for (int j = 0; j < 16; ++j) line[i - j] = line[i - j - 1];
        }
        line[0] = x;
        y[0] = line[x & 127];
    }
    """
    source = tmp_path / "k.cpp"
    source.write_text(text)
    found = estimate(source, "k", tool="vitis")  # 17 banks of 8 words
    assert (found.loops[0].ii, found.resources["BRAM_18K"]) == (16, 0)
    assert estimate(source, "k", tool="vivado").resources["BRAM_18K"] > 0


WORDS = """
void k(const unsigned x[16], unsigned y[64]) {
    unsigned w[64];
    first: for (int i = 0; i < 16; ++i) w[i] = x[i];
    more: for (int i = 16; i < 64; ++i) w[i] = (w[i - 2] ^ w[i - 7]) + w[i - 15] + w[i - 16];
    last: for (int i = 0; i < 64; ++i) y[i] = w[i];
}
"""


def test_a_copy_that_its_pipeline_writes_serves_one_read(tmp_path: Path) -> None:
    """Four reads in two cycles take two copies of two blocks (the words of five reports' SHA-2)."""
    source = tmp_path / "k.cpp"
    source.write_text(WORDS)
    found = estimate(source, "k", tool="vitis-2025.1")
    assert (found.loops[1].ii, found.resources["BRAM_18K"]) == (2, 4)


ROWS = """
void k(const int x[1024], int y[1024], int n) {
    static int a[16][64];
    int t[16];
    fill: for (int i = 0; i < 64; ++i) {
        for (int j = 0; j < 16; ++j) a[j][i] = x[i] * j;
    }
    TAKE
}
"""
BY_ONE = """
    take: for (int i = 0; i < 16; ++i)
        for (int k = 0; k < 64; ++k) y[i * 64 + k] = a[i][k];
"""
ALL_AT_ONCE = """
    take: for (int k = 0; k < 64; ++k) {
        int sum = 0;
        for (int i = 0; i < 16; ++i) sum += a[i][k];
        y[k] = sum;
    }
"""


@pytest.mark.parametrize(("take", "interval"), [(BY_ONE, 8), (ALL_AT_ONCE, 1)])
def test_an_array_is_cut_unasked_only_along_what_is_met_at_constants_everywhere(
    tmp_path: Path, take: str, interval: int
) -> None:
    """A log of 2022.1 has `Partitioning array 'A' in dimension 1 automatically` for one of two."""
    found = estimate_of(tmp_path, ROWS.replace("TAKE", take), "vitis-2022.1")
    assert found.loops[0].ii == interval
    assert (found.resources["BRAM_18K"] or 0) <= 16


def test_an_array_that_directives_cut_is_copied_for_what_is_left(tmp_path: Path) -> None:
    """Four reads of each bank: two copies of a bank serve three in a cycle (a report of 2024.2)."""
    text = """
    void k(const int x[4096], int y[256]) {
        int a[4096];
    #pragma HLS ARRAY_PARTITION variable=a cyclic factor=4
        fill: for (int i = 0; i < 4096; ++i) a[i] = x[i];
        sums: for (int i = 0; i < 256; ++i) {
    #pragma HLS PIPELINE II=2
            int sum = 0;
            for (int j = 0; j < 16; ++j) sum ^= a[i * 16 + j];
            y[i] = sum;
        }
    }
    """
    found = estimate_of(tmp_path, text, "vitis-2024.2")
    assert found.loops[1].ii == 2 and found.resources["BRAM_18K"] == 8
    found = estimate_of(tmp_path, text.replace("II=2", "II=1"), "vitis-2024.2")
    assert found.loops[1].ii == 1 and (found.resources["BRAM_18K"] or 0) > 8


SUMS = """
void k(const float x[729], float y[729], float w) {
    float sums[729];
#pragma HLS ARRAY_PARTITION variable=sums cyclic factor=FACTOR
    clear: for (int i = 0; i < 729; ++i) sums[i] = 0;
    row: for (int r = 0; r < 27; ++r)
        column: for (int c = 0; c < 27; ++c) {
#pragma HLS PIPELINE
            sums[r * 27 + c] += x[r * 27 + c] * w;
        }
    out: for (int i = 0; i < 729; ++i) y[i] = sums[i];
}
"""


@pytest.mark.parametrize(("factor", "waits"), [("27", True), ("1", False)])
def test_which_bank_an_iteration_meets_is_not_compared(
    tmp_path: Path, factor: str, waits: bool
) -> None:
    """Each bank has a word for a row: the tool has II=5 for it, where no bank was met twice."""
    found = estimate_of(tmp_path, SUMS.replace("FACTOR", factor), "vitis-2024.2")
    interval = found.loops[1].ii
    assert isinstance(interval, int) and (interval >= 5) == waits
