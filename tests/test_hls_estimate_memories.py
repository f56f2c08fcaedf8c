"""``hls estimate``: how many blocks of RAM the memories of a kernel take, in either tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls import estimate
from pynq_torch.hls.estimator import compiler

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

STORE = """
void k(const TYPE in[WORDS], TYPE out[WORDS]) {
    TYPE buf[WORDS];
    a: for (int i = 0; i < WORDS; ++i) buf[i] = in[i];
    b: for (int i = 0; i < WORDS; ++i) out[i] = buf[WORDS - 1 - i];
}
"""
SHIFT = """
int k(int x, const int h[WORDS]) {
    static TYPE taps[WORDS];
    int sum = 0;
    a: for (int i = WORDS - 1; i > 0; i -= 3) {
        taps[i] = taps[i - 1];
        taps[i - 1] = taps[i - 2];
        taps[i - 2] = taps[i - 3];
    }
    taps[0] = x;
    b: for (int i = 0; i < WORDS; ++i) sum += taps[i] * h[i];
    return sum;
}
"""
KINDS = ("int", "short")
#: One access to read and one to write in the first loop; the second only reads.
LINE = """
int k(int x, const int h[128]) {
    static int taps[128];
    int sum = 0;
    a: for (int i = 127; i > 0; --i) {
#pragma HLS PIPELINE
        taps[i] = taps[i - 1];
    }
    taps[0] = x;
    b: for (int i = 0; i < 128; ++i) {
#pragma HLS PIPELINE
        sum += taps[i] * h[i];
    }
    return sum;
}
"""
PROCESSES = """
static void fill(const int in[WORDS], int buf[WORDS]) {
    a: for (int i = 0; i < WORDS; ++i) buf[i] = 3 * in[i];
}
static void drain(const int buf[WORDS], int out[WORDS]) {
    int own[256];
    b: for (int i = 0; i < 256; ++i) own[i] = buf[i];
    c: for (int i = 0; i < 256; ++i) out[i] = own[255 - i];
}
void k(const int in[WORDS], int out[WORDS]) {
#pragma HLS DATAFLOW
    int buf[WORDS];
    fill(in, buf);
    drain(buf, out);
}
"""
SHARED = """
static int state[1024];
static void put(int at, int word) {
#pragma HLS INLINE off
    state[at & 1023] += word;
}
static int get(int at) {
#pragma HLS INLINE off
    return state[at & 1023];
}
int k(int at, int word) {
    put(at, word);
    return get(at + 1);
}
"""
TABLE = """
static const int table[256] = {NUMBERS};
void k(const unsigned char in[1024], int out[1024]) {
    a: for (int i = 0; i < 1024; i += 8) {
#pragma HLS PIPELINE II=INTERVAL
        int sum = 0;
        for (int j = 0; j < 8; ++j) sum += table[in[i + j]];
        out[i] = sum;
    }
}
"""
STAGES = """
static void turn(const int in[1024], int by, int out[1024]) {
#pragma HLS INLINE off
    a: for (int i = 0; i < 1024; ++i) out[i] = in[i ^ by];
}
void k(const int in[1024], int out[1024]) {
#pragma HLS DATAFLOW
    int one[1024], two[1024];
    turn(in, 1, one);
    turn(one, 2, two);
    turn(two, 4, out);
}
"""


def _blocks(folder: Path, text: str, tool: str = "vitis", **words: object) -> int | None:
    for word, value in words.items():
        text = text.replace(word, str(value))
    source = folder / "k.cpp"
    source.write_text(text)
    return estimate(source, "k", tool=tool).resources["BRAM_18K"]


@pytest.mark.parametrize(
    ("words", "kind", "blocks"),
    [(1024, "int", 2), (1025, "int", 4), (10_000, "int", 32), (31, "int", 0), (32, "int", 1)],
)
def test_a_memory_is_as_deep_as_a_power_of_two(
    tmp_path: Path, words: int, kind: str, blocks: int
) -> None:
    assert _blocks(tmp_path, STORE, WORDS=words, TYPE=kind) == blocks


def test_two_ports_that_write_make_wide_words_two_blocks(tmp_path: Path) -> None:
    found = {kind: _blocks(tmp_path, SHIFT, "vivado", WORDS=127, TYPE=kind) for kind in KINDS}
    assert found == {"int": 2, "short": 1}
    # LUTs have one port to write.
    assert _blocks(tmp_path, SHIFT, "vivado", WORDS=10, TYPE="int") == 2
    assert _blocks(tmp_path, SHIFT, "vitis", WORDS=10, TYPE="int") == 0


def test_loops_of_vitis_do_not_agree_on_which_port_reads(tmp_path: Path) -> None:
    assert _blocks(tmp_path, LINE, "vivado") == 1
    assert _blocks(tmp_path, LINE, "vitis") == 2
    joined = LINE.replace("taps[i - 1];", "taps[i - 1]; sum += taps[i] * h[i];")
    joined = joined.replace("sum += taps[i] * h[i];\n    }\n    return", "}\n    return")
    assert _blocks(tmp_path, joined, "vitis") == 1


def test_writes_of_two_branches_take_both_ports(tmp_path: Path) -> None:
    text = """
    int k(int x, const int h[WORDS]) {
        static int taps[WORDS];
        int sum = 0;
        a: for (int i = WORDS - 1; i >= 0; --i) {
            if (i == 0) {
                sum += x * h[0];
                taps[0] = x;
            } else {
                taps[i] = taps[i - 1];
                sum += taps[i] * h[i];
            }
        }
        return sum;
    }
    """
    assert [_blocks(tmp_path, text, WORDS=words) for words in (128, 11)] == [2, 0]


@pytest.mark.parametrize(("tool", "words", "blocks"), [("vitis", 1024, 4), ("vivado", 1024, 2)])
def test_what_a_process_hands_to_another_is_doubled_in_vitis(
    tmp_path: Path, tool: str, words: int, blocks: int
) -> None:
    assert _blocks(tmp_path, PROCESSES, tool, WORDS=words) == blocks + 1  # `own` is not


def test_two_small_halves_are_one_block(tmp_path: Path) -> None:
    assert _blocks(tmp_path, PROCESSES, WORDS=256) == 2


def test_numbers_among_the_arguments_do_not_shift_the_arrays(tmp_path: Path) -> None:
    assert _blocks(tmp_path, STAGES) == 8


def test_a_static_array_is_there_once(tmp_path: Path) -> None:
    assert _blocks(tmp_path, SHARED) == 2


@pytest.mark.parametrize(
    ("tool", "interval", "blocks"), [("vivado", 1, 8), ("vivado", 4, 1), ("vitis", 1, 14)]
)
def test_a_table_has_the_copies_that_the_interval_needs(
    tmp_path: Path, tool: str, interval: int, blocks: int
) -> None:
    cut = "    a: for (int i = 0; i < 1024; i += 8) {"
    ports = "#pragma HLS ARRAY_PARTITION variable=in cyclic factor=8\n"
    numbers = ",".join(str(at * 8_000_000) for at in range(256))
    text = TABLE.replace(cut, ports + cut)
    assert _blocks(tmp_path, text, tool, INTERVAL=interval, NUMBERS=numbers) == blocks


def test_arrays_in_a_struct_are_memories(tmp_path: Path) -> None:
    text = """
    struct Image { unsigned char red[4096], blue[4096]; int few[8]; };
    static void fill(const unsigned char in[8192], Image &image) {
        a: for (int i = 0; i < 4096; ++i) { image.red[i] = in[i]; image.blue[i] = in[8191 - i]; }
    }
    void k(const unsigned char in[8192], unsigned char out[4096]) {
        Image image;
        fill(in, image);
        b: for (int i = 0; i < 4096; ++i) out[i] = image.red[4095 - i] + image.blue[i];
    }
    """
    assert _blocks(tmp_path, text) == 4


@pytest.mark.parametrize(("depth", "blocks"), [(32, 0), (33, 2)])
def test_a_fifo_of_more_than_1024_bits_is_block_ram(
    tmp_path: Path, depth: int, blocks: int
) -> None:
    text = """
    #include <hls_stream.h>
    static void one(const int in[64], hls::stream<int> &way) {
        a: for (int i = 0; i < 64; ++i) way.write(in[i]);
    }
    static void two(hls::stream<int> &way, int out[64]) {
        b: for (int i = 0; i < 64; ++i) out[i] = way.read();
    }
    void k(const int in[64], int out[64]) {
    #pragma HLS DATAFLOW
        hls::stream<int> way;
    #pragma HLS STREAM variable=way depth=DEPTH
        one(in, way);
        two(way, out);
    }
    """
    assert _blocks(tmp_path, text, DEPTH=depth) == blocks


ELEMENTS = """
static void one(const int in[64], int way[64]) { a: for (int i = 0; i < 64; ++i) way[i] = in[i]; }
static void two(const int way[64], int out[64]) {
    b: for (int i = 0; i < 64; ++i) out[i] = way[i];
}
void k(const int in[64], int out[64]) {
#pragma HLS REGION
    int way[64];
#pragma HLS STREAM variable=way DEPTH
    one(in, way);
    two(way, out);
}
"""


@pytest.mark.parametrize(
    ("region", "depth", "blocks"),
    [
        ("DATAFLOW", "depth=2", 0),
        ("DATAFLOW", "depth=32", 0),
        ("DATAFLOW", "depth=33", 2),
        ("DATAFLOW", "depth=2048", 4),
        ("DATAFLOW", "", 2),  # as deep as the array
        ("DATAFLOW", "depth=2 type=pipo", 1),
        ("INLINE off", "depth=2", 1),  # no process reads it: a memory
    ],
)
@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_an_array_that_is_a_fifo_has_the_blocks_of_its_depth(
    tmp_path: Path, region: str, depth: str, blocks: int, tool: str
) -> None:
    assert _blocks(tmp_path, ELEMENTS, tool, REGION=region, DEPTH=depth) == blocks


@pytest.mark.parametrize(("tool", "blocks"), [("vitis", 2), ("vivado", 4)])
def test_arrays_behind_s_axilite_are_in_its_adapter(tmp_path: Path, tool: str, blocks: int) -> None:
    ports = "".join(f"#pragma HLS INTERFACE s_axilite port={name}\n" for name in ("in", "out"))
    text = STORE.replace("    TYPE buf", f"{ports}    TYPE buf")
    assert _blocks(tmp_path, text, tool, WORDS=64, TYPE="short") == blocks + 1
    small = blocks if tool == "vivado" else 0  # which takes blocks for ten bytes, too (published)
    assert _blocks(tmp_path, text, tool, WORDS=60, TYPE="short") == small


BUS = """
void k(const TYPE *x, TYPE *y) {
#pragma HLS INTERFACE m_axi port=x bundle=one depth=64
#pragma HLS INTERFACE m_axi port=y bundle=two depth=64
    for (int i = 0; i < 64; ++i) WORK;
}
"""
READ, WRITE = "y[i] = x[i]", "y[i] = i"


@pytest.mark.parametrize(
    ("tool", "kind", "work", "blocks"),
    [
        ("vivado", "int", READ, 4), ("vitis", "int", READ, 2), ("vitis-2020.2", "int", READ, 4),
        ("vivado-2015.4", "int", READ, 0), ("vitis-2023.1", "char", READ, 4),
        ("vitis-2024.1", "char", READ, 2), ("vitis-2025.1", "int", READ, 2),
        ("vitis-2021.2", "int", READ, 8), ("vitis-2021.2", "char", READ, 4),
        ("vitis-2022.1", "int", READ, 0), ("vitis-2023.1", "int", READ, 8),
        ("vitis-2024.2", "int", READ, 4), ("vitis-2024.2", "char", READ, 3),
        ("vitis-2024.2", "int", WRITE, 2),
    ],
)  # fmt: skip
def test_the_adapter_of_a_bus_depends_on_the_release(
    tmp_path: Path, tool: str, kind: str, work: str, blocks: int
) -> None:
    source = tmp_path / "k.cpp"
    source.write_text(BUS.replace("TYPE", kind).replace("WORK", work))
    assert estimate(source, "k", tool=tool).resources["BRAM_18K"] == blocks


@pytest.mark.parametrize(
    ("tool", "part", "blocks"),
    [
        ("vitis-2020.2", "xczu3eg-sbva484-1-e", 4), ("vitis-2021.1", "xck26-sfvc784-2LV-c", 8),
        ("vitis-2021.1", "xcu50-fsvh2104-2-e", 4), ("vitis-2023.2", "xcu200-fsgd2104-2-e", 4),
        ("vitis-2024.2", "xcu200-fsgd2104-2-e", 2),
    ],
)  # fmt: skip
def test_large_parts_keep_a_word_of_a_bus_in_one_block(
    tmp_path: Path, tool: str, part: str, blocks: int
) -> None:
    source = tmp_path / "k.cpp"
    source.write_text(BUS.replace("TYPE", "int").replace("WORK", READ))
    assert estimate(source, "k", tool=tool, part=part).resources["BRAM_18K"] == blocks


@pytest.mark.parametrize(
    ("tool", "option", "blocks"),
    [
        ("vitis-2020.2", "max_read_burst_length=64", 6), ("vitis-2020.2", "", 4),
        ("vitis-2024.2", "max_read_burst_length=64", 4),
        ("vitis-2025.1", "max_write_burst_length=64", 4), ("vitis-2025.1", "", 2),
    ],
)  # fmt: skip
def test_an_adapter_holds_the_bursts_under_way(
    tmp_path: Path, tool: str, option: str, blocks: int
) -> None:
    """16 times 64 words of 32 bits take two blocks; 2025 keeps one burst of what is written."""
    source = tmp_path / "k.cpp"
    text = BUS.replace("TYPE", "int").replace("WORK", READ)
    source.write_text(text.replace("depth=64", f"depth=64 {option}"))
    assert estimate(source, "k", tool=tool).resources["BRAM_18K"] == blocks


SCRIPT = """## This file is generated automatically by Vitis HLS.
## Please DO NOT edit it.
## Copyright 1986-2022 Xilinx, Inc. All Rights Reserved.
"""
AMD = "## Copyright 2022-2023 Advanced Micro Devices, Inc. All Rights Reserved.\n"


def test_the_script_beside_a_source_tells_the_release(tmp_path: Path) -> None:
    source, script = tmp_path / "k.cpp", tmp_path / "solution1" / "script.tcl"
    script.parent.mkdir()
    source.write_text(BUS.replace("TYPE", "int").replace("WORK", READ))
    found = []
    for text in (SCRIPT, SCRIPT + AMD):
        script.write_text(text)
        found.append(estimate(source, "k", tool="vitis", directives=script).resources["BRAM_18K"])
    assert found == [0, 8]


@pytest.mark.parametrize("tool", ["quartus", "vitis-2024.2b", "vitis 2024.2"])
def test_a_tool_that_is_none_is_an_error(tmp_path: Path, tool: str) -> None:
    with pytest.raises(ValueError, match="is no tool; expected vitis, vivado or such as"):
        estimate(tmp_path / "k.cpp", "k", tool=tool)


IN_LOOPS = """
static void f(const short x[64], short y[64], short a) {
#pragma HLS INLINE off
    for (int i = 0; i < 64; ++i) y[i] = a * x[i];
}
void k(const short in[2][64], short out[2][64], short a, short b) {
#pragma HLS DATAFLOW
    short between[2][64];
    first: for (int i = 0; i < 2; ++i) f(in[i], between[i], a);
    second: for (int i = 0; i < 2; ++i) f(between[i], out[i], b);
}
"""


def test_each_process_has_its_own_instance_of_a_function(tmp_path: Path) -> None:
    source = tmp_path / "k.cpp"
    found = []
    for pragma in ("", "#pragma HLS DATAFLOW"):
        source.write_text(IN_LOOPS.replace("#pragma HLS DATAFLOW", pragma))
        found.append(estimate(source, "k", tool="vivado").resources["DSP"])
    assert found == [1, 2]


def test_old_releases_report_both_halves_of_what_processes_share(tmp_path: Path) -> None:
    source = tmp_path / "k.cpp"
    source.write_text(IN_LOOPS)
    found = [
        estimate(source, "k", tool=f"vivado-{year}").resources for year in ("2016.1", "2018.2")
    ]
    assert found[0]["BRAM_18K"] == 2 * (found[1]["BRAM_18K"] or 0) > 0


INVARIANT = """
void k(const int x[16], int y[64]) {
#pragma HLS INTERFACE ap_memory port=x
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        int sum = 0;
        for (int j = 0; j < 16; ++j) sum += x[j] ^ i;
        y[i] = sum;
    }
}
"""


@pytest.mark.parametrize(("tool", "interval"), [("vivado", 8), ("vitis", 1)])
def test_vivado_reads_what_does_not_change_in_each_iteration(
    tmp_path: Path, tool: str, interval: int
) -> None:
    """A write to an argument might change it, for all that its compiler knows."""
    source = tmp_path / "kernel.cpp"
    source.write_text(INVARIANT)
    assert estimate(source, "k", tool=tool).loops[0].ii == interval


def test_vivado_reads_once_what_its_own_arrays_cannot_change(tmp_path: Path) -> None:
    """Then the reads of x, 16 through two ports, are done before the loop: 8 cycles more."""
    own = INVARIANT.replace("    for (int i", "    int own[64];\n    for (int i", 1)
    own = own.replace("y[i] = sum;\n    }", "own[i] = sum;\n    }\n    COPY")
    copy = "for (int i = 0; i < 64; ++i) y[i] = own[i];"
    source = tmp_path / "kernel.cpp"
    source.write_text(own.replace("COPY", copy))
    found = estimate(source, "k", tool="vivado")
    assert found.loops[0].ii == 1
    latencies = [loop.latency[1] or 0 for loop in found.loops]
    assert 8 <= (found.latency[1] or 0) - sum(latencies) < 16


LINES = """
void k(const int x[64], int y[64]) {
    int lines[3][64];
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        lines[0][i] = x[i];
        lines[1][i] = 3 * x[i];
        lines[ROW][i] = 5 * x[i];
    }
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = lines[0][63 - i] + lines[1][63 - i] + lines[ROW][63 - i];
    }
}
"""


@pytest.mark.parametrize("tool", ["vivado", "vitis-2020.1"])
@pytest.mark.parametrize(("row", "intervals"), [("2", [1, 1]), ("(x[i] & 1)", [2, 2])])
def test_a_dimension_that_is_met_at_constants_only_is_cut(
    tmp_path: Path, tool: str, row: str, intervals: list[int]
) -> None:
    """Lines that are met by their numbers are a memory each; data that choose one keep them one."""
    source = tmp_path / "kernel.cpp"
    source.write_text(LINES)
    found = estimate(source, "k", tool=tool, defines=[f"ROW={row}"])
    assert [loop.ii for loop in found.loops] == intervals


def test_a_volatile_array_is_not_cut(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(LINES.replace("int lines", "volatile int lines"))
    found = estimate(source, "k", tool="vivado", defines=["ROW=2"])
    assert [loop.ii for loop in found.loops] == [2, 2]


def test_an_array_is_not_cut_where_data_choose_between_its_rows(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    chosen = "int *row = x[i] & 1 ? lines[0] : lines[1];\n        row[i]"
    text = LINES.replace("lines[ROW][i] =", chosen + " =").replace("lines[ROW]", "lines[2]")
    source.write_text(text.replace("int lines", "char lines").replace("int *row", "char *row"))
    found = estimate(source, "k", tool="vivado")
    assert [loop.ii for loop in found.loops] == [2, 2]


#: Words that a loop, which is no pipeline, takes from a bus one after another.
FROM_BUS = """
void k(const int in[32][8], int out[32][8]) {
#pragma HLS INTERFACE m_axi port=in
    int own[32][8];
    rows: for (int i = 0; i < 32; ++i) {
        words: for (int j = 0; j < 8; ++j) own[i][j] = in[INDEX];
    }
    a: for (int i = 0; i < 32; ++i) {
        b: for (int j = 0; j < 8; ++j) out[i][j] = own[31 - i][j];
    }
}
"""


def test_vivado_reads_the_words_of_a_loop_in_one_burst(tmp_path):
    def of(index):
        (tmp_path / "k.cpp").write_text(FROM_BUS.replace("INDEX", index))
        found = estimate(tmp_path / "k.cpp", "k", tool="vivado")
        return {loop.name: loop.iteration_latency[1] for loop in found.loops}

    assert (of("i][j")["words"], of("i][j")["rows"]) == (2, 8 * 2 + 7 + 2)
    assert of("j][i")["words"] > 7  # asked for one by one


#: An array that stands alone, or is a member of a struct: DECLARED says which, NAME what it is.
MEMBER = """
struct Tab { int n; TYPE v[SIZE]; };
struct Outer { char c; Tab in; };
void k(const int x[1024], int y[64], int at) {
    DECLARED;
PRAGMA
    a: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        WRITE
    }
    b: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = READ;
    }
}
"""
SIX = " + ".join(f"NAME[i + {at}]" for at in (0, 100, 200, 300, 400, 401))
LONG = {"TYPE": "int", "SIZE": "512", "WRITE": "NAME[i] = x[i];", "READ": SIX}
CELLS = {
    "TYPE": "int",
    "SIZE": "4",
    "WRITE": "for (int j = 0; j < 4; ++j) NAME[j] = x[i] + j;",
    "READ": "NAME[0] + NAME[1] + NAME[at & 3]",
}
CUT = "#pragma HLS ARRAY_PARTITION variable=NAME cyclic factor=4"


@pytest.mark.parametrize("static", ["", "static "])
@pytest.mark.parametrize(
    ("words", "declared", "name", "intervals"),
    [
        (LONG, "int v[512]", "v", [1, 3]),
        (LONG, "Tab t", "t.v", [1, 3]),
        (LONG, "Outer o", "o.in.v", [1, 3]),
        (LONG | {"PRAGMA": CUT, "READ": "NAME[4 * i] + NAME[4 * i + 1] + NAME[4 * i + 2]"},
         "Tab t", "t.v", [1, 1]),
        (LONG | {"PRAGMA": CUT.replace("NAME", "t"), "READ": "NAME[i] + NAME[i + 2] + NAME[i + 4]"},
         "Tab t", "t.v", [1, 2]),
        (CELLS, "int v[64][4]", "v[i]", [2, 2]),
        (CELLS, "Tab c[64]", "c[i].v", [2, 2]),
        (CELLS | {"PRAGMA": "#pragma HLS ARRAY_PARTITION variable=c.v complete dim=2"},
         "Tab c[64]", "c[i].v", [1, 1]),
        (CELLS | {"PRAGMA": "#pragma HLS ARRAY_PARTITION variable=c complete dim=0"},
         "Tab c[64]", "c[i].v", [1, 1]),
        (CELLS | {"PRAGMA": "#pragma HLS DATA_PACK variable=c"}, "Tab c[64]", "c[i].v", [1, 1]),
    ],
)  # fmt: skip
def test_an_array_in_a_struct_has_the_ports_of_one_that_stands_alone(
    tmp_path, words, declared, name, intervals, static
):
    text = MEMBER
    for word, value in ({"PRAGMA": ""} | words | {"DECLARED": static + declared}).items():
        text = text.replace(word, value)
    found = estimate_of(tmp_path, text.replace("NAME", name), "vivado")
    assert [loop_of(found, one).ii for one in "ab"] == intervals


@pytest.mark.parametrize("tool", ["vivado", "vitis"])
def test_a_member_is_counted_by_its_own_size(tmp_path, tool):
    def of(declared, name):
        text = MEMBER.replace("DECLARED", declared).replace("PRAGMA", "")
        for word, value in LONG.items():
            text = text.replace(word, value)
        found = estimate_of(tmp_path, text.replace("NAME", name), tool)
        return found.resources["BRAM_18K"], found.latency, [loop.ii for loop in found.loops]

    assert of("Tab t", "t.v") == of("int v[512]", "v")


def test_a_dependence_names_a_member_or_its_struct(tmp_path):
    def of(pragma):
        text = MEMBER.replace("DECLARED", "Tab t").replace("PRAGMA", "").replace("SIZE", "512")
        text = text.replace("TYPE", "int").replace("READ", "t.v[i]")
        write = f"{pragma}\n        t.v[x[i] & 511] += i;"
        return loop_of(estimate_of(tmp_path, text.replace("WRITE", write), "vitis"), "a").ii

    asked = "#pragma HLS DEPENDENCE variable={} inter false"
    assert of("") > 1
    assert [of(asked.format(name)) for name in ("t.v", "t")] == [1, 1]


#: Two structs of one name, the second of which has a gap behind its first member.
TWO = """
struct One { int v[512]; };
struct Other { alignas(8) char c[3]; alignas(8) int n; short w[2][64]; };
int used(const int x[64]) {
#pragma HLS INLINE off
    Other t;
    int sum = 0;
    t.n = x[0];
    a: for (int i = 0; i < 64; ++i) t.w[i & 1][i] = x[i];
    b: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        sum += t.w[i & 1][i] + t.w[1][63 - i] + t.w[x[i] & 1][i];
    }
    return sum + t.n;
}
void k(const int x[64], int y[64]) {
    One t;
    c: for (int i = 0; i < 64; ++i) t.v[i] = x[i];
    d: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = t.v[i] + t.v[i + 100] + t.v[i + 200];
    }
    y[0] = used(x);
}
"""


def test_functions_may_have_structs_of_one_name(tmp_path):
    found = estimate_of(tmp_path, TWO, "vivado")
    assert [loop_of(found, one).ii for one in "bd"] == [2, 2]


#: A class whose constructor has its directives, as that of hls::LineBuffer.
OBJECT = """
template <int N> struct Tab {
    int v[N];
    Tab() {
#pragma HLS ARRAY_PARTITION variable=NAMED cyclic factor=4
#pragma HLS DEPENDENCE variable=NAMED inter false
    }
};
void k(const int x[1024], int y[64]) {
    Tab<512> t;
    a: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        t.v[x[i] & 511] += i;
    }
    b: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = t.v[4 * i] + t.v[4 * i + 1] + t.v[4 * i + 2] + t.v[4 * i + 3];
    }
}
"""


@pytest.mark.parametrize(
    ("named", "intervals"), [("v", [1, 1]), ("this->v", [1, 1]), ("w", [2, 2])]
)
def test_directives_of_a_constructor_reach_the_members_of_its_objects(tmp_path, named, intervals):
    found = estimate_of(tmp_path, OBJECT.replace("NAMED", named), "vivado")
    assert [loop_of(found, one).ii for one in "ab"] == intervals
    assert bool(found.warnings) == (named == "w")


#: UG1399's table of sines, which a function computes before it is read.
SINES = """
#include <math.h>
void fill(short sines[256]) {
    for (int i = 0; i < 256; i++) sines[i] = (short) (32768.0 * sin(M_PI * (i - 128) / 256.0));
}
int k(short factor, unsigned char at) {
    short sines[256];
    fill(sines);
    return (int) factor * sines[at];
}
"""


@pytest.mark.parametrize("tool", ["vivado", "vitis"])
def test_a_table_that_a_function_computes_is_a_rom_in_both_tools(tmp_path, tool):
    found = estimate_of(tmp_path, SINES, tool)
    assert (found.latency, found.loops) == ((2, 2), ())
    assert (found.resources["DSP"], found.resources["BRAM_18K"]) == (1, 1)


WIDE = """
#include <ap_int.h>
#define BITS 256
extern "C" void k(const TYPE *x, TYPE *y) {
#pragma HLS INTERFACE m_axi port=x bundle=a WORD
#pragma HLS INTERFACE m_axi port=y bundle=b WORD
    copy: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        for (int j = 0; j < 8; ++j) y[8 * i + j] = x[8 * i + j AT] + 1;
    }
}
"""


@pytest.mark.parametrize(
    ("words", "part", "tool", "ii"),
    [
        ({}, "xcu50-fsvh2104-2-e", "vitis-2022.2", 1),
        ({}, "xcu50-fsvh2104-2-e", "vitis-2020.1", 8),  # before ports were widened
        ({}, "xc7z020clg400-1", "vitis-2022.2", 8),  # the flow for Vivado
        ({"WORD": "max_widen_bitwidth=256"}, "xc7z020clg400-1", "vitis-2022.2", 1),
        ({"WORD": "max_widen_bitwidth=128"}, "xcu50-fsvh2104-2-e", "vitis-2022.2", 2),
        ({"WORD": "max_widen_bitwidth=0"}, "xcu50-fsvh2104-2-e", "vitis-2022.2", 8),
        ({"TYPE": "ap_int<32>"}, "xcu50-fsvh2104-2-e", "vitis-2022.2", 8),  # of a class
        ({"AT": "+ 1"}, "xcu50-fsvh2104-2-e", "vitis-2022.2", 8),  # parts of two words
        ({"AT": "* 2"}, "xcu50-fsvh2104-2-e", "vitis-2022.2", 8),
        ({"TYPE": "volatile int"}, "xcu50-fsvh2104-2-e", "vitis-2022.2", 8),
        ({"WORD": "max_widen_bitwidth=BITS"}, "xc7z020clg400-1", "vitis-2022.2", 1),  # a macro
    ],
)
def test_elements_side_by_side_are_a_word_of_a_wide_port(
    tmp_path: Path, words: dict[str, str], part: str, tool: str, ii: int
) -> None:
    text = WIDE
    for name, value in {"TYPE": "int", "WORD": "", "AT": "", **words}.items():
        text = text.replace(name, value)
    (tmp_path / "k.cpp").write_text(text)
    (loop,) = estimate(tmp_path / "k.cpp", "k", part=part, tool=tool).loops
    assert loop.ii == ii


def test_a_bundle_has_the_widest_word_that_is_asked_for(tmp_path: Path) -> None:
    """What is no width at all is ignored, with a warning; advice says what would do."""
    text = """
    void k(const int *a, const int *b, int *c) {
    #pragma HLS INTERFACE m_axi port=a bundle=g0 FIRST
    #pragma HLS INTERFACE m_axi port=b bundle=g0 SECOND
    #pragma HLS INTERFACE m_axi port=c bundle=g1 max_widen_bitwidth=128
        all: for (int i = 0; i < 1024; i += 4) {
    #pragma HLS PIPELINE
            for (int j = 0; j < 4; j++) c[i + j] = a[i + j] + b[i + j];
        }
    }
    """
    both = text.replace("FIRST", "max_widen_bitwidth=64").replace(
        "SECOND", "max_widen_bitwidth=128"
    )
    assert estimate_of(tmp_path, both, "vitis-2022.2").loops[0].ii == 2
    wrong = both.replace("=64", "=100").replace("=128", "=0")
    found = estimate_of(tmp_path, wrong, "vitis-2022.2")
    assert found.loops[0].ii == 8
    assert any("k.cpp:3" in said and "power of two" in said for said in found.warnings)


def test_advice_makes_one_word_of_elements_side_by_side(tmp_path: Path) -> None:
    text = WIDE.replace("TYPE", "int").replace("AT", "")
    found = loop_of(estimate_of(tmp_path, text.replace("WORD", ""), "vitis-2022.2"), "copy")
    assert found.ii == 8 and "with INTERFACE max_widen_bitwidth=256" in found.why
    asked = text.replace("WORD", "max_widen_bitwidth=256")
    assert loop_of(estimate_of(tmp_path, asked, "vitis-2022.2"), "copy").ii == 1
    rows = text.replace("bundle=b WORD", "bundle=b max_widen_bitwidth=256").replace("WORD", "")
    rows = rows.replace("x[8 * i + j ]", "x[8 * i * (1 + j % 2) + j]")
    apart = loop_of(estimate_of(tmp_path, rows, "vitis-2022.2"), "copy")
    assert "through m_axi bundle `a`" in apart.why and "one word" not in apart.why


TURNED = """
static void row(const short x[8], short y[8]) {
    for (int k = 0; k < 8; k++) {
        int sum = 0;
        for (int n = 0; n < 8; n++) sum += x[n] * (3 * n + k);
        y[k] = sum >> 4;
    }
}
static void take(const short x[64], short a[8][8]) {
    for (int i = 0; i < 64; i++) a[i / 8][i % 8] = x[i];
}
static void turn(short a[8][8], short y[64]) {
    short b[8][8];
    rows: for (int i = 0; i < 8; i++) row(a[i], b[i]);
    for (int i = 0; i < 64; i++) y[i] = b[i % 8][i / 8];
}
void k(const short x[64], short y[64]) {
PRAGMA
    short a[8][8];
BIND
    take(x, a);
    turn(a, y);
}
"""


@pytest.mark.parametrize(
    ("pragma", "bind", "ii"),
    [
        ("", "", 1),
        ("", "#pragma HLS BIND_STORAGE variable=a type=ram_2p impl=bram", 4),
        ("#pragma HLS DATAFLOW", "", 4),
    ],
)
def test_a_pipeline_that_nobody_asked_for_cuts_no_memory_of_others(
    tmp_path: Path, pragma: str, bind: str, ii: int
) -> None:
    """Reports of a DCT in Vitis HLS 2022.1: a directive names the memory, or processes share it."""
    text = TURNED.replace("PRAGMA", pragma).replace("BIND", bind)
    loops = estimate_of(tmp_path, text, "vitis-2022.1").loops
    assert next(loop.ii for loop in loops if loop.name.startswith("rows_")) == ii


DEALT = """
void k(const int in[96][16], int out[96][16]) {
    int buf[96][16];
#pragma HLS ARRAY_PARTITION variable=buf cyclic factor=FACTOR dim=1
    a: for (int i = 0; i < 96; i += STEP)
        for (int j = 0; j < 16; ++j) {
#pragma HLS PIPELINE II=1
            buf[i][j] = in[i][j];
        }
    b: for (int i = 0; i < 96; ++i)
        for (int j = 0; j < 16; ++j) {
#pragma HLS PIPELINE II=1
            out[i][j] = buf[i][15 - j];
        }
}
"""


def test_a_bank_of_no_power_of_two_takes_a_division(tmp_path: Path) -> None:
    def depths(factor: int, step: int = 1, tool: str = "vitis-2022.1") -> tuple[int, int]:
        text = DEALT.replace("FACTOR", str(factor)).replace("STEP", str(step))
        found = estimate_of(tmp_path, text, tool)
        into, out = (one.iteration_latency for one in found.loops)
        assert isinstance(into, tuple) and isinstance(out, tuple)
        return into[1], out[1]

    near, odd = depths(4), depths(6)
    # A divider of 7 bits has 11 states ("urem_7ns_6ns_5_11_1" of real_matmul, Vitis HLS 2022.1).
    assert 8 <= odd[0] - near[0] <= 11 and 8 <= odd[1] - near[1] <= 11
    assert depths(6, step=6)[0] == near[0]  # always bank 0
    # Vivado HLS divides for the place in the bank, too: the read waits.
    vivado = "vivado-2019.1"
    assert depths(6, tool=vivado)[1] - depths(4, tool=vivado)[1] >= odd[1] - near[1]


NEIGHBOURS = """
void k(const int a[128], int b[128]) {
    int t[128];
#pragma HLS RESOURCE variable=t core=KIND
    for (int i = 0; i < 128; ++i) t[i] = 3 * a[i];
    two: for (int i = 0; i < 127; ++i) {
#pragma HLS PIPELINE
        BODY
    }
}
"""


def test_of_a_simple_dual_port_memory_one_port_reads(tmp_path: Path) -> None:
    """The other one writes (UG902, "RAM_S2P"); the core that the sentence asks for helps."""

    def made(kind: str, body: str) -> tuple[int | None, str]:
        text = NEIGHBOURS.replace("KIND", kind).replace("BODY", body)
        found = loop_of(estimate_of(tmp_path, text, "vivado-2019.1"), "two")
        return found.ii, found.why

    both = "b[i] = t[i] + t[i + 1];"
    assert made("RAM_T2P_BRAM", both) == (1, "")
    interval, why = made("RAM_S2P_BRAM", both)
    assert interval == 2 and "ask for RAM_T2P_BRAM, not RAM_S2P_BRAM" in why
    assert made("RAM_S2P_BRAM", "t[i + 1] = 3 * a[i]; b[i] = t[i];")[0] == 1


COUNTS = """
#include <ap_int.h>
typedef ap_uint<180> row_t;
static row_t rows[512];
void k(const int at[64]) {
#pragma HLS RESOURCE variable=rows core=CORE
    l: for (int i = 0; i < 64; ++i) rows[at[i]] += 1;
}
"""


@pytest.mark.parametrize(
    ("core", "blocks"), [("RAM_2P_BRAM", 5), ("RAM_T2P_BRAM", 10)]
)  # 36 and 18 bits wide
def test_two_ports_that_both_read_and_write_are_half_as_wide(
    tmp_path: Path, core: str, blocks: int
) -> None:
    assert _blocks(tmp_path, COUNTS, "vivado-2018.1", CORE=core) == blocks


@pytest.mark.parametrize(("bits", "blocks"), [(20, 2), (32, 2), (34, 2), (40, 3), (72, 4)])
def test_an_array_of_a_file_has_as_many_bits_as_its_type(
    tmp_path: Path, bits: int, blocks: int
) -> None:
    """Also where another function names it, and an array of another file's scope is as wide."""
    text = f"""
#include <ap_int.h>
namespace kept {{ static ap_int<{bits}> lines[1024]; }}
static void add(int at) {{ kept::lines[at] += at; }}
void k(const int at[64]) {{
    l: for (int i = 0; i < 64; ++i) add(at[i]);
}}
"""
    assert _blocks(tmp_path, text, "vivado-2018.1") == blocks
