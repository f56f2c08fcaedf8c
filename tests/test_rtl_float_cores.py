"""Floating-point cores of HLS exports: names, arithmetic to the bit, latency, a whole export."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers import start, wait_done, write_overlay
from pynq import Overlay
from rtl_model import Model

import pynq_torch
from pynq_torch.board.rtl.build import build_model
from pynq_torch.board.rtl.float_cores import parse
from pynq_torch.board.rtl.sources import find_rtl
from pynq_torch.errors import RtlLintError

KERNELS = Path(__file__).parent / "rtl_kernels"
LETTERS = {16: "h", 32: "f", 64: "d"}
EXPONENT = {16: 5, 32: 8, 64: 11}
FLOATS = {16: np.float16, 32: np.float32, 64: np.float64}
EQ, GT, GE, LT, LE, NE, UNORDERED = 0x14, 0x24, 0x34, 0x0C, 0x1C, 0x2C, 0x04


# ---- what a core does, in exact rational numbers ------------------------------------------------


def flushed(bits: int, width: int) -> int:
    """Return an operand as a core takes it: a subnormal number is a zero."""
    fraction = width - 1 - EXPONENT[width]
    if bits >> fraction & (1 << EXPONENT[width]) - 1 == 0:
        return bits & 1 << width - 1
    return bits


def number(bits: int, width: int) -> float:
    return float(np.array(flushed(bits, width), f"u{width // 8}").view(FLOATS[width]))


def encoded(value: Fraction | float, width: int) -> int:
    """Return the bits of a result, rounded once to nearest even; what is too small is a zero."""
    bits, fraction = EXPONENT[width], width - 1 - EXPONENT[width]
    bias, top = (1 << bits - 1) - 1, ((1 << bits) - 1) << fraction
    if isinstance(value, float) and math.isnan(value):
        return top | 1 << fraction - 1
    below = value < 0 if isinstance(value, Fraction) else math.copysign(1, value) < 0
    sign = below << width - 1
    if isinstance(value, float) and (math.isinf(value) or value == 0):
        return sign | (top if value else 0)
    value = abs(Fraction(value))
    if value == 0:
        return 0  # the sum of a number and its negative
    e = value.numerator.bit_length() - value.denominator.bit_length()
    e -= value < Fraction(2) ** e
    kept = round(value * Fraction(2) ** (fraction - e))  # Fraction rounds a tie to even
    e += kept >> fraction + 1
    if e > bias:
        return sign | top
    if e < 1 - bias:
        return sign
    return sign | e + bias << fraction | kept & (1 << fraction) - 1


def exact_root(x: Fraction) -> Fraction:
    """Return a number that rounds as the square root of `x` does."""
    scale = 4 ** (600 if x < 1 else 64)
    whole = math.isqrt(int(x * scale))
    return Fraction(2 * whole + (whole * whole != x * scale), 2 * math.isqrt(scale))


def is_plain(x: float) -> bool:
    return x != 0 and math.isfinite(x)


def expected(op: str, a: float, b: float, c: float) -> Fraction | float:
    p, q, r = np.float64(a), np.float64(b), np.float64(c)
    if op == "ma":
        if math.isfinite(a) and math.isfinite(b):
            product = Fraction(a) * Fraction(b)
            return c if not math.isfinite(c) else product + Fraction(c) or float(p * q + r)
        return float(p * q + r)
    if op in ("add", "sub"):
        b = b if op == "add" else -b
        return Fraction(a) + Fraction(b) if is_plain(a) and is_plain(b) else float(p + b)
    if op == "mul":
        return Fraction(a) * Fraction(b) if is_plain(a) and is_plain(b) else float(p * q)
    if op == "div":
        return Fraction(a) / Fraction(b) if is_plain(a) and is_plain(b) else float(p / q)
    if op == "sqrt":
        return exact_root(Fraction(a)) if is_plain(a) and a > 0 else float(np.sqrt(p))
    if op == "recip":
        return 1 / Fraction(a) if is_plain(a) else float(1 / p)
    if op == "rsqrt":
        return 1 / exact_root(Fraction(a)) if is_plain(a) and a > 0 else float(1 / np.sqrt(p))
    return float(np.exp(p) if op == "exp" else np.log(p))


def holds(operation: int, a: float, b: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return operation in (UNORDERED, NE)
    return {EQ: a == b, GT: a > b, GE: a >= b, LT: a < b, LE: a <= b, NE: a != b}.get(
        operation, False
    )


def to_integer(x: float, width: int, is_signed: bool) -> int:
    least, most = (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
    if math.isnan(x):
        return least & (1 << width) - 1
    whole = math.trunc(x) if math.isfinite(x) else int(math.copysign(1 << 70, x))
    return min(max(whole, least), most) & (1 << width) - 1


# ---- one model with every operator ---------------------------------------------------------------

EXACT = ("add", "sub", "mul", "div", "sqrt", "ma")
OPERANDS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "ma": 3}
CLOSE = ("recip", "rsqrt", "exp", "log")
INTEGERS = (("s", 32), ("u", 64), ("s", 11))
#: An instance: its module without "all_", its operands, whether it has an operation.
CORES = [
    *((f"ap_{k}{op}_0_no_dsp_{w}", OPERANDS.get(op, 1), 0)
      for w, k in LETTERS.items() for op in (*EXACT, *CLOSE)),
    *((f"ap_{k}cmp_0_no_dsp_{w}", 2, 1) for w, k in LETTERS.items()),
    *((f"ap_{k}add{k}sub_0_full_dsp_{w}", 2, 1) for w, k in LETTERS.items()),
    *((f"{sign}ito{to}_{i}s_{w}_2_no_dsp_1_ip", 1, 0)
      for sign, i in INTEGERS for to, w in (("hp", 16), ("fp", 32), ("dp", 64))),
    *((f"{of}to{sign}i_{w}ns_{i}_1_no_dsp_1_ip", 1, 0)
      for sign, i in INTEGERS for of, w in (("hp", 16), ("fp", 32), ("dp", 64))),
    *((name, 1, 0) for name in (
        "ap_fpext_0_no_dsp_32", "fptrunc_64ns_32_2_no_dsp_1_ip", "ap_hptosp_0_no_dsp_16",
        "ap_sptohp_0_no_dsp_32", "hptodp_16ns_64_2_no_dsp_1_ip", "dptohp_64ns_16_2_no_dsp_1_ip")),
    ("fmadd_32ns_32ns_32ns_32ns_32_1_primitive_dsp_1_ip", 3, 0),
]  # fmt: skip


def top(name: str, body: str, outputs: int) -> str:
    return f"""module {name} (
  input wire ap_clk, input wire ap_rst_n,
  input wire [255:0] x_TDATA, input wire x_TVALID, output wire x_TREADY,
  output wire [{64 * outputs - 1}:0] y_TDATA, output wire y_TVALID, input wire y_TREADY);
  assign x_TREADY = y_TREADY;
{body}
endmodule
"""


def instance(module: str, at: int, operands: int, operation: int, more: str = "") -> str:
    core = parse(module)
    assert core is not None, module
    bits = (core.width + 7) // 8 * 8
    pins = [
        *(f".s_axis_{x}_tvalid(1'b1), .s_axis_{x}_tdata(x_TDATA[{64 * i}+:{bits}])"
          for i, x in enumerate("abc"[:operands])),
        *[".s_axis_operation_tvalid(1'b1), .s_axis_operation_tdata(x_TDATA[199:192])"] * operation,
        f".m_axis_result_tdata(y_TDATA[{64 * at}+:{(core.result + 7) // 8 * 8}])",
    ]  # fmt: skip
    return f"  {module} {module}_u ({', '.join(pins)}{more});\n"


def built(folder: Path, name: str, text: str, extra: dict[str, str] | None = None) -> Model:
    place = folder / name / "impl/ip/hdl/verilog"
    place.mkdir(parents=True)
    (place / f"{name}.v").write_text(text)
    for path, content in (extra or {}).items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(content)
    source = find_rtl([folder], name)
    assert source is not None
    return Model(build_model(source).library)


@pytest.fixture(scope="module")
def every(tmp_path_factory) -> Model:
    body = "  assign y_TVALID = x_TVALID;\n" + "".join(
        instance(f"every_{name}", at, operands, operation)
        for at, (name, operands, operation) in enumerate(CORES)
    )
    return built(tmp_path_factory.mktemp("every"), "every", top("every", body, len(CORES)))


def results(model: Model, a: int, b: int = 0, c: int = 0, operation: int = 0) -> dict[str, int]:
    model["x_TDATA"] = a | b << 64 | c << 128 | operation << 192
    model.eval()
    out = model["y_TDATA"]
    return {core[0]: out >> 64 * at & (1 << 64) - 1 for at, core in enumerate(CORES)}


def specials(width: int) -> list[int]:
    fraction = width - 1 - EXPONENT[width]
    top, one = (
        ((1 << EXPONENT[width]) - 1) << fraction,
        ((1 << EXPONENT[width] - 1) - 1) << fraction,
    )
    plain = [0, 1, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1, top - 1, top, top + 1,
             top | 1 << fraction - 1, one, one + 1, one - 1, one + (1 << fraction)]  # fmt: skip
    return [sign | x for x in plain for sign in (0, 1 << width - 1)]


def operands(width: int, rng: random.Random) -> list[tuple[int, int, int]]:
    """Return operands of special values, and of every exponent with near and far ones."""
    fraction, count = width - 1 - EXPONENT[width], 1 << EXPONENT[width]
    some = specials(width)
    found = [(a, b, rng.choice(some)) for a in some for b in some]

    def of(exponent: int) -> int:
        mantissa = rng.choice((rng.getrandbits(fraction), 0, 1, (1 << fraction) - 1))
        return rng.getrandbits(1) << width - 1 | exponent % count << fraction | mantissa

    for exponent in range(count):
        a = of(exponent)
        kinds = [
            (a, of(rng.randrange(count)), of(rng.randrange(count))),
            (a, of(exponent + rng.randint(-3, 3)), of(2 * exponent - count // 2 + 1)),
            (a, of(count - 2 - exponent + rng.randint(-2, 2)), of(rng.randrange(count))),
            (a, a ^ 1 << width - 1 ^ rng.getrandbits(2), a),
            (a, of(count // 2 - exponent + rng.randint(-1, 1)), of(rng.randint(1, 3))),
        ]
        found += kinds if count < 2048 else rng.sample(kinds, 2)
    return found


@pytest.mark.parametrize("width", [16, 32, 64])
def test_every_operator_of_floats_over_all_exponents(every, width):
    rng = random.Random(width)
    letter = LETTERS[width]
    with np.errstate(all="ignore"):
        for at, (a, b, c) in enumerate(operands(width, rng)):
            operation = (EQ, GT, GE, LT, LE, NE, UNORDERED)[at % 7]
            given = results(every, a, b, c, operation)
            x, y, z = (number(bits, width) for bits in (a, b, c))
            where = f"{a:#x} {b:#x} {c:#x}"
            for op in EXACT:
                right = encoded(expected(op, x, y, z), width)
                assert given[f"ap_{letter}{op}_0_no_dsp_{width}"] == right, f"{op} {where}"
            for op in CLOSE:
                got = given[f"ap_{letter}{op}_0_no_dsp_{width}"]
                right = encoded(expected(op, x, y, z), width)
                one = int(is_plain(number(right, width)) or is_plain(number(got, width)))
                assert abs(got - right) <= one, f"{op} {where}: {got:#x} {right:#x}"
            got = given[f"ap_{letter}cmp_0_no_dsp_{width}"]
            assert got == holds(operation, x, y), f"{operation:#x} {where}"
            # Bit 0 of the operation alone chooses the sum or the difference.
            both = given[f"ap_{letter}add{letter}sub_0_full_dsp_{width}"]
            assert both == given[f"ap_{letter}add_0_no_dsp_{width}"]
            odd = results(every, a, b, c, 1) if at % 5 == 0 else {}
            for name, got in odd.items():
                if name == f"ap_{letter}add{letter}sub_0_full_dsp_{width}":
                    assert got == given[f"ap_{letter}sub_0_no_dsp_{width}"], where
            if width == 32:
                name = "fmadd_32ns_32ns_32ns_32ns_32_1_primitive_dsp_1_ip"
                product = number(encoded(expected("mul", x, y, z), 32), 32)
                assert given[name] == encoded(expected("add", product, z, 0.0), 32), where


@pytest.mark.parametrize("width", [16, 32, 64])
def test_a_fused_sum_is_rounded_by_its_last_bit(every, width):
    """The product is a tie, or beside one by `apart`; what is added decides, however small."""
    rng = random.Random(width)
    places, name = width - EXPONENT[width], f"ap_{LETTERS[width]}ma_0_no_dsp_{width}"
    scale = Fraction(2) ** (1 - places)
    count = 0
    while count < 300:
        apart = rng.choice((0, rng.getrandbits(rng.randint(1, places - 2))))
        if apart:
            a = rng.getrandbits(places - 1) | 1 << places - 1 | 1
            b = ((1 << places - 1) - apart) * pow(a, -1, 1 << places) % (1 << places)
        else:  # two odd numbers whose product has one bit too many
            one, two = places // 2 + 1, (places + 1) // 2
            two += places + 1 - one - two
            a = (rng.getrandbits(one) | 1 << one - 1 | 1) << places - one
            b = (rng.getrandbits(two) | 1 << two - 1 | 1) << places - two
        if not b >> places - 1 or a * b >> 2 * places - 1 == 0:
            continue
        count += 1
        unit = scale * scale  # of the exact product
        far = rng.choice((rng.randint(-3, 4), rng.randint(-150, 4)))
        c = (apart or 1) * unit * rng.choice((1, -1)) * Fraction(2) ** far
        bits = [encoded(x, width) for x in (a * scale, b * scale, c)]
        x, y, z = (number(x, width) for x in bits)
        right = encoded(Fraction(x) * Fraction(y) + Fraction(z), width)
        assert results(every, *bits)[name] == right, [hex(x) for x in bits]


@pytest.mark.parametrize("width", [16, 32, 64])
def test_conversions_from_a_float(every, width):
    rng = random.Random(width)
    prefix = {16: "hp", 32: "fp", 64: "dp"}[width]
    others = {16: ("ap_hptosp_0_no_dsp_16", "hptodp_16ns_64_2_no_dsp_1_ip"),
              32: ("ap_sptohp_0_no_dsp_32", "ap_fpext_0_no_dsp_32"),
              64: ("dptohp_64ns_16_2_no_dsp_1_ip", "fptrunc_64ns_32_2_no_dsp_1_ip")}  # fmt: skip
    near = [number_bits(float(sign * (2**e + d)), width)
            for e in (9, 10, 31, 32, 63, 64) for sign in (1, -1)
            for d in (-1, -0.5, 0, 0.5, 1)]  # fmt: skip
    for a in [*(a for a, _, _ in operands(width, rng)), *near]:
        given, x = results(every, a), number(a, width)
        for sign, i in INTEGERS:
            got = given[f"{prefix}to{sign}i_{width}ns_{i}_1_no_dsp_1_ip"]
            assert got == to_integer(x, i, sign == "s"), f"{sign}{i} {a:#x}"
        for name in others[width]:
            core = parse(f"every_{name}")
            assert given[name] == encoded(x, core.result), f"{name} {a:#x}"


def number_bits(x: float, width: int) -> int:
    with np.errstate(over="ignore"):
        return int(np.array(x, FLOATS[width]).view(f"u{width // 8}"))


def test_conversions_from_an_integer(every):
    rng = random.Random(3)
    some = [0, 1, 2, 3, (1 << 64) - 1, 1 << 63, (1 << 63) - 1, 65519, 65520, 65504, 1 << 31]
    # A tie in each format, and just beside it, at every size.
    some += [(1 << e) + (1 << max(e - p, 0)) + d & (1 << 64) - 1
             for e in range(64) for p in (11, 24, 53) for d in (-1, 0, 1)]  # fmt: skip
    some += [rng.getrandbits(rng.randint(1, 64)) for _ in range(500)]
    for x in some + [-x & (1 << 64) - 1 for x in some]:
        given = results(every, x)
        for sign, i in INTEGERS:
            low = x & (1 << i) - 1
            low -= low >> i - 1 << i if sign == "s" else 0
            for to, width in (("hp", 16), ("fp", 32), ("dp", 64)):
                got = given[f"{sign}ito{to}_{i}s_{width}_2_no_dsp_1_ip"]
                assert got == encoded(Fraction(low), width), f"{sign}{i} {low:#x}"


# ---- names, latency -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "operator", "widths", "latency"),
    [
        ("top_ap_fadd_3_full_dsp_32", "add", (32, 32), 3),
        ("top_ap_fmul_2_max_dsp", "mul", (32, 32), 2),  # HLS of 2014
        ("top_ap_dsqrt_28_no_dsp_64", "sqrt", (64, 64), 28),
        ("top_ap_fcmp_0_no_dsp_32", "cmp", (32, 8), 0),
        ("top_ap_faddfsub_3_full_dsp_32", "addsub", (32, 32), 3),
        ("top_ap_uitofp_4_no_dsp_64", "from_integer", (64, 32), 4),
        ("top_ap_sitodp_4_no_dsp_32", "from_integer", (32, 64), 4),
        ("top_fadd_32ns_32ns_32_5_full_dsp_1_ip", "add", (32, 32), 3),
        ("top_fmul_32ns_32ns_32_4_max_dsp_1_x_ip", "mul", (32, 32), 2),
        ("top_dadddsub_64ns_64ns_64_6_full_dsp_1_ip", "addsub", (64, 64), 4),
        ("top_fcmp_32ns_32ns_1_1_no_dsp_1_ip", "cmp", (32, 8), 0),
        ("top_sitodp_32s_64_6_no_dsp_1_ip", "from_integer", (32, 64), 4),
        ("top_fptoui_32ns_32_2_no_dsp_1_ip", "to_integer", (32, 32), 0),
        ("top_fsub_32ns_32ns_32_1_primitive_dsp_1_ip", "sub", (32, 32), 0),
    ],
)
def test_a_name_says_what_a_core_is(name, operator, widths, latency):
    core = parse(name)
    assert core is not None
    assert (core.operator, (core.width, core.result), core.latency) == (operator, widths, latency)


@pytest.mark.parametrize(
    "name",
    [
        "top_ap_dtan_9_full_dsp_64", "top_ap_fadd_3_full_dsp_64", "top_ap_fifo_2", "FAcc",
        "top_facc_32ns_32ns_1ns_32_2_primitive_dsp_1_ip", "top_fpext_32ns_80_2_no_dsp_1_ip",
        "top_ap_fptosi_4_no_dsp_32", "top_mul_32s_32s_32_2_1", "top_sitofp_96s_32_6_no_dsp_1_ip",
        "floating_point_v7_1_13",
    ],
)  # fmt: skip
def test_other_names_are_no_cores(name):
    assert parse(name) is None


LATE = "late_ap_fadd_3_full_dsp_32"
TCL = "late_fmul_32ns_32ns_32_4_max_dsp_1_ip"
STUB = "late_fsub_32ns_32ns_32_9_full_dsp_1_ip"


@pytest.fixture(scope="module")
def late(tmp_path_factory) -> Model:
    """Pipelined cores: latencies of what Vivado wrote in VHDL, of a Tcl file, of Verilog."""
    clock = ", .aclk(ap_clk), .aclken(x_TVALID)"
    valid = ", .m_axis_result_tvalid(y_TVALID)"
    body = instance(LATE, 0, 2, 0, clock + valid)
    body = body.replace(".s_axis_a_tvalid(1'b1)", ".s_axis_a_tvalid(x_TDATA[255])")
    body += instance(TCL, 1, 2, 0, clock) + instance(STUB, 2, 2, 0, clock)
    stub = (
        f"module {STUB} (input aclk, output [31:0] m_axis_result_tdata);\n"
        "  floating_point_v7_1_13 #(.C_HAS_SUBTRACT(1), .C_LATENCY(2)) inst (.aclk(aclk));\n"
        "endmodule\n"
    )
    tcl = f"create_ip -name floating_point -module_name {TCL}\nset_property CONFIG.c_latency {{5}}"
    vhdl = "  C_LATENCY : INTEGER;\n  GENERIC MAP (C_HAS_ADD => 1, C_LATENCY => 4)"
    files = {f"../ip/{STUB}.v": stub, f"../ip/{LATE}.vhd": vhdl, f"../../subcore/{TCL}.tcl": tcl}
    return built(tmp_path_factory.mktemp("late"), "late", top("late", body, 3), files)


def test_a_result_comes_after_the_latency_and_waits_for_aclken(late):
    rng = random.Random(5)
    given, seen, valids = [], [], []
    late["x_TVALID"] = 1
    for cycle in range(60):
        late["x_TVALID"] = enabled = int(rng.random() < 0.6)
        a, b = (number_bits(rng.uniform(-9, 9), 32) for _ in "ab")
        late["x_TDATA"] = a | b << 64 | (cycle & 1) << 255
        before = late["y_TDATA"]
        late.clock()
        if enabled:
            given.append((number(a, 32), number(b, 32), cycle & 1))
            seen.append(late["y_TDATA"])
            valids.append(late["y_TVALID"])
        else:
            assert late["y_TDATA"] == before
    for at, (latency, op) in enumerate(((4, "add"), (5, "mul"), (2, "sub"))):
        got = [word >> 64 * at & 0xFFFFFFFF for word in seen]
        right = [encoded(expected(op, a, b, 0.0), 32) for a, b, _ in given]
        assert got == [0] * (latency - 1) + right[: len(right) - latency + 1]
    assert valids == [0, 0, 0, *(valid for _, _, valid in given)][: len(valids)]


@pytest.mark.parametrize("name", ["odd_ap_dtan_9_full_dsp_64", "odd_ap_fpowr_3_full_dsp_32"])
def test_a_core_that_is_not_known_is_refused(tmp_path, name):
    body = f"  assign y_TVALID = 0;\n  {name} {name}_u (.aclk(ap_clk));\n"
    with pytest.raises(RtlLintError, match=rf"(?s){name} {name}_u.*looks like.*sqrt, rsqrt"):
        built(tmp_path, "odd", top("odd", body, 1))


def test_what_defines_a_core_decides_who_gives_it(tmp_path):
    place = tmp_path / "own" / "impl/ip/hdl/verilog"
    place.mkdir(parents=True)
    (place / "own.v").write_text(top("own", f"  {LATE} {LATE}_u ();\n", 1))

    def names() -> list[str]:
        source = find_rtl([tmp_path], "own")
        assert source is not None
        return [file.name for file in source.files]

    assert names() == ["own.v", "float_core.sv", "float_cores.sv"]
    stub = f"module {LATE} ();\n  floating_point_v7_1_13 #(.C_LATENCY(3)) inst ();\nendmodule\n"
    for folder, more in (("../ip", ""), ("../../gen/synth", "// as synthesised\n")):
        (place / folder).mkdir(parents=True)
        (place / folder / f"{LATE}.v").write_text(stub + more)
    assert names() == ["own.v", "float_core.sv", "float_cores.sv"]
    # A model of the encrypted core, or of the whole module: the user's is taken.
    (place / "floating_point_v7_1_13.v").write_text(
        "module floating_point_v7_1_13 ();\nendmodule\n"
    )
    (place / "../../gen/synth" / f"{LATE}.v").unlink()
    assert names() == ["own.v", f"{LATE}.v", "floating_point_v7_1_13.v"]


# ---- an export that runs ------------------------------------------------------------------------


def test_an_export_gives_the_bits_of_its_cpp(tmp_path):
    bit = write_overlay(tmp_path, {"ramp_sum_0": "ramp_sum"}, kernels=KERNELS)
    runs = [(1.1, 0.0, 9), (-3.3, -1e9, 40), (1e-3, 5.0, 3), (3e37, 0.0, 12), (2.5, 1.5, 0)]
    answers = {}
    for name in ("csim", "rtl"):
        board = pynq_torch.use_board(name, kernels=[KERNELS])
        try:
            ip = Overlay(str(bit)).ramp_sum_0
            answers[name] = []
            for a, least, n in runs:
                for register, value in ((0x18, a), (0x20, least), (0x28, n)):
                    kind = "f4" if register != 0x28 else "i4"
                    ip.write(register, int(np.array(value, kind).view("u4")))
                start(ip)
                wait_done(ip)
                answers[name].append(ip.read(0x10))
        finally:
            board.close()
    assert answers["rtl"] == answers["csim"]
