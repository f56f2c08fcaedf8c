"""What an operation costs: cycles, nanoseconds within a cycle, DSP blocks.

Fitted to published reports of Vivado HLS 2016.3 to 2020.1 and Vitis HLS 2020.1 to 2025.1, most for
7-series parts of speed grade -1, some for UltraScale+; docs/estimate.md names their repositories.
UG479 gives the DSP block's 25 x 18 bits.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .cost import Cost
from .delays import adder, comparison, division, selection, shifter
from .dsp import LEAST_CONSTANT, constant_product, multiplier, signed_digits
from .floats import (
    FAST_PRODUCT_BLOCKS,
    SERIES_7,
    STAGE_NS,
    at_once,
    fast_stages,
    half_stages,
    stages,
)  # fmt: skip
from .handed import BETWEEN
from .ir import Function, Instruction, bits_of
from .target import Target
from .wires import is_wire

__all__ = ["constant_in", "cost_of", "divider", "knows_call", "width_of"]


#: Floating point: stages times ns for float and double, DSP blocks for float and double.
_FLOAT = {
    "fadd": (35.0, 36.0, 2, 3),
    "fsub": (35.0, 36.0, 2, 3),
    "fmul": (27.0, 45.0, 3, 11),
    "fdiv": (133.0, 263.0, 0, 0),
    "frem": (133.0, 263.0, 0, 0),
    "fneg": (0.0, 0.0, 0, 0),
    "sitofp": (44.0, 44.0, 0, 0),
    "uitofp": (44.0, 44.0, 0, 0),
    "fpext": (9.0, 9.0, 0, 0),
    "fptrunc": (9.0, 9.0, 0, 0),
    "fcmp": (9.0, 9.0, 0, 0),
}
#: DSP blocks of a sum or a product of half.
_HALF_BLOCKS = 2
_FUNCTIONS = {
    "sqrt": (98.0, 258.0, 0, 0), "exp": (74.0, 157.0, 7, 26), "log": (105.0, 280.0, 13, 80),
    "sin": (145.0, 245.0, 9, 54),
    "tanh": (300.0, 600.0, 12, 40), "pow": (300.0, 600.0, 30, 120), "recip": (100.0, 263.0, 4, 14),
    "rsqrt": (100.0, 258.0, 4, 14), "atan": (290.0, 500.0, 5, 20), "atan2": (400.0, 700.0, 5, 20),
    "fmod": (700.0, 1400.0, 0, 0), "fabs": (0.0, 0.0, 0, 0), "scale": (0.0, 0.0, 0, 0),
    "floor": (9.0, 9.0, 0, 0), "ceil": (9.0, 9.0, 0, 0), "round": (9.0, 9.0, 0, 0),
    "trunc": (9.0, 9.0, 0, 0), "fmax": (9.0, 9.0, 0, 0), "fmin": (9.0, 9.0, 0, 0),
}  # fmt: skip
#: ns of a comparison of floats, and of the logic behind it that looks for what is no number.
_COMPARISON_NS, _NOT_A_NUMBER_NS = 5.43, 0.97
_C_LIBRARY = re.compile(
    r"^(?:_ZSt\d+|llvm\.|_Z\d+)?(?P<name>sqrt|exp|log|sin|cos|tan|tanh|pow|fabs|floor|ceil|round|trunc|atan2?|fmod|"
    r"fmax|fmin|asin|acos|sinh|cosh|cbrt|log10|log2|exp2)(?P<single>f|\.f32)?(?:\.f64)?[a-z]*$"
)
_ABSOLUTE = re.compile(r"^(?:llvm\.abs|l?l?abs$)")
_OWN = re.compile(r"^__hls_(?P<name>\w+)_f(?P<bits>32|64)$")
_FREE = frozenset(("phi", "getelementptr", "trunc", "zext", "sext", "bitcast", "ptrtoint", "ret"))
_FREE |= {"alloca", "br", "freeze", "extractvalue", "insertvalue", "inttoptr", "switch"}
#: What a selection between 1 and -1 ends with.
_SIGNS = re.compile(r", i\d+ (?:1, i\d+ -1|-1, i\d+ 1)(?=,|$)")
#: A recurrence of one loop, as scalar evolution prints it.
_COUNTED = re.compile(r"\{[^{},]+,\+,[^{},]+\}[<\w>]*<%[^>]+>\s*$")
_CONSTANT = re.compile(r"(?:^|[ ,])(-?\d+)$")


#: From here on numbers of 32 bits are negative.
_HALF = 1 << 31


def width_of(value: str, function: Function, kind: str) -> int:
    """Return the bits that a value needs: those of its type, or less where its range is known."""
    bits = bits_of(kind)
    bits = min(bits, function.loaded.get(value, bits))
    known = function.known.get(value)
    if known is None or not bits:
        return bits
    ways = [bits]
    if known.unsigned and known.unsigned[0] >= 0:  # else the range goes over the greatest number
        ways.append(max(known.unsigned[1].bit_length(), 1))
    if known.signed:
        low, high = known.signed
        if _HALF <= low <= high < 3 * _HALF:  # LLVM widens `i - 1` to 64 bits so
            low, high = low - 2 * _HALF, high - 2 * _HALF
        ways.append(max(high.bit_length(), (-low - 1).bit_length() if low < 0 else 0) + (low < 0))
    return max(min(ways), 1)


def constant_in(item: Instruction) -> int | None:
    """Return the number that an operation takes as its last operand, None for none."""
    match = _CONSTANT.search(item.text)
    return int(match[1]) if match else None


def cost_of(
    item: Instruction, function: Function, target: Target, *, pipelined: bool = True
) -> Cost:
    """Return what an instruction costs on a target; loads, stores and streams are not here."""
    op = item.op
    if op == "getelementptr":
        return _address(item, target)
    if op in _FREE:
        return Cost()
    if op in _FLOAT:
        cost = _staged(op, *_FLOAT[op], "double" in item.text, target, pipelined=pipelined)
        return _of_half(cost, op, target) if "half" in item.text else cost
    if op == "call":
        return _call(item, target, pipelined=pipelined)
    return _integer(item, function, target)


def _of_half(cost: Cost, op: str, target: Target) -> Cost:
    """Return what an operation of half costs, from what it costs for `float`."""
    core = f"h{cost.core[1:]}"
    if cost.latency and (own := half_stages(_SHARED.get(op, op), target)) is not None:
        return Cost(*own, own[1], min(cost.dsp, _HALF_BLOCKS), core)
    return replace(cost, dsp=min(cost.dsp, _HALF_BLOCKS), core=core)


def knows_call(name: str) -> bool:
    """Whether the table has a function without a body."""
    known = ("llvm.", "__hls_", "memcpy", "memset", "memmove")
    rules = (_OWN, _C_LIBRARY, _ABSOLUTE)
    return any(rule.match(name) for rule in rules) or name.startswith(known)


def _call(item: Instruction, target: Target, *, pipelined: bool) -> Cost:
    name = item.callee
    own = _OWN.match(name) or _C_LIBRARY.match(name)
    if own is not None:
        word = own["name"]
        double = own.groupdict().get("bits") == "64" or (
            "single" in own.groupdict() and not own["single"] and "float" not in item.text
        )
        if word in _WAVES:
            return _wave(item, target, double=double, pipelined=pipelined)
        costs = _FUNCTIONS.get(word, _FUNCTIONS["sin"])
        return _staged(word, *costs, double, target, pipelined=pipelined)
    if item.name.startswith(f"%{BETWEEN}"):
        return Cost()
    if name.startswith(("llvm.smax", "llvm.smin", "llvm.umax", "llvm.umin")):
        return Cost(0, target.speed * (comparison(item.bits) + 0.7))
    if _ABSOLUTE.match(name):
        return Cost(0, target.speed * (adder(item.bits) + 0.7))
    if name.startswith(("llvm.ctlz", "llvm.cttz", "llvm.ctpop")):
        return Cost(0, target.speed * 3.4)
    return Cost()


_WAVES = ("sin", "cos", "sincos")


def _wave(item: Instruction, target: Target, *, double: bool, pipelined: bool) -> Cost:
    """Sine and cosine, whose argument is reduced in loops where nothing is pipelined.

    Vivado HLS has one for double only behind ``std::sin(float)``.
    """
    library = item.place is not None and item.place.file.startswith("/usr/")
    widened = target.tool == "vivado" and library and not double
    double = double or widened
    cost = _staged("sin", *_FUNCTIONS["sin"], double, target)
    if pipelined:
        return replace(cost, latency=cost.latency + 2 * widened)
    longer = 9 if not double else 22 if target.tool == "vivado" else 17
    dsp = 86 if double and target.tool == "vivado" else cost.dsp
    return replace(cost, latency=cost.latency + longer + 2 * widened, dsp=dsp)


#: Operations that one core does in turn.
_SHARED = {"sin": "sin_or_cos", "fsub": "fadd"}


def _staged(
    core: str,
    single: float,
    double: float,
    dsp: int,
    dsp_double: int,
    is_double: bool,
    target: Target,
    *,
    pipelined: bool = True,
) -> Cost:
    work = double if is_double else single
    if is_double and core in ("fadd", "fsub") and target.tool == "vitis":
        work = 44.0
    if work == 0:
        return Cost(core=core)
    if (taken := at_once(core, target)) is not None:
        return Cost(0, taken, core=("d" if is_double else "f") + core.lstrip("f"))
    latency = stages(core, work, target, is_double=is_double)
    core = _SHARED.get(core, core)
    name = ("d" if is_double else "f") + core.lstrip("f")
    if (fast := fast_stages(name, target)) is not None:
        latency, part = fast
        blocks = FAST_PRODUCT_BLOCKS if name == "dmul" else dsp_double if is_double else dsp
        return Cost(latency, part, part, blocks, name)
    # In Vivado HLS a sum chains behind the read of a memory and a write behind it, but outside of
    # pipelines; a product does not. In Vitis HLS the stages of a sum fill their cycles.
    alone = core in ("fmul", "fdiv") or (target.tool == "vivado" and not pipelined)
    part = 0.65 if alone else 0.52 if target.speed > 0.5 else 0.48
    if target.tool == "vitis" and target.speed >= SERIES_7:
        part = 0.78 if alone else 0.99
    part *= target.budget
    if core in STAGE_NS:
        part = min(STAGE_NS[core] * target.speed, 0.99 * target.budget)
    if core == "fcmp":
        first = min(_COMPARISON_NS * target.speed, target.budget)
        last = min(first + _NOT_A_NUMBER_NS * target.speed, target.budget)
        return Cost(latency, last, first, core="fcmp" if not is_double else "dcmp")
    return Cost(latency, part, part, dsp_double if is_double else dsp, name)


def _address(item: Instruction, target: Target) -> Cost:
    """An index of several dimensions is a sum, and a product where a row is no power of two."""
    variable = len(item.operands) - 1
    if variable < 2:
        return Cost()
    return Cost(0, target.speed * (1.8 * (variable - 1)))


def _integer(item: Instruction, function: Function, target: Target) -> Cost:
    op, speed = item.op, target.speed
    constant = constant_in(item)
    bits = width_of(item.name, function, item.type) if item.name else item.bits
    if op in ("or", "xor", "add") and is_wire(item, function):
        return Cost()
    if op in ("add", "sub"):
        return Cost(0, speed * adder(bits), core="add")
    if op == "icmp":
        kind = item.type
        bits = max([width_of(o, function, kind) for o in item.operands] or [bits_of(kind)])
        return Cost(0, speed * comparison(bits))
    if op == "select":
        return Cost(0, speed * selection(bits))
    if op in ("and", "or", "xor"):
        return Cost(0, speed * (0.0 if constant is not None else 0.97 if bits > 1 else 0.7))
    if op in ("shl", "lshr", "ashr"):
        if constant is not None or (
            len(item.operands) < 2 and not item.text.split(",")[0].split()[-1].lstrip("-").isdigit()
        ):
            return Cost()
        return Cost(0, speed * shifter(bits))
    if op == "mul":
        if target.tool == "vivado" and _is_added_up(item, function):
            return Cost()
        if any(_is_sign(operand, function) for operand in item.operands):
            return Cost(0, speed * selection(bits))
        return _product(item, function, target, bits, constant)
    if op in ("udiv", "sdiv", "urem", "srem"):
        if constant and abs(constant) & (abs(constant) - 1) == 0:
            return Cost(0, speed * (0.0 if op[0] == "u" else adder(bits)))
        wide = max([width_of(o, function, item.type) for o in item.operands[:1]] or [bits])
        if constant and op[1:] == "div":  # times the inverse: no schedule of either divides
            product = multiplier(wide, wide + 2, target, 2 * wide + 1)
            return replace(product, core="inverse", mac=False)
        return divider(wide, target)
    return Cost()


def divider(bits: int, target: Target) -> Cost:
    """Return what a divider of integers costs."""
    part = min(target.speed * division(bits), target.budget)
    return Cost(bits + 3, part, part, core="div", widths=f"{bits}x{bits}")


def _is_sign(value: str, function: Function) -> bool:
    """Whether a value is 1 or -1, as a condition says.

    Its product is a choice between the other factor and what that is subtracted from: no schedule
    of a CORDIC multiplies there (25 selections and no product in one of Vivado HLS 2016.2).
    """
    item = function.values.get(value)
    while item is not None and item.op in ("sext", "trunc") and item.operands:
        item = function.values.get(item.operands[0])
    return item is not None and item.op == "select" and _SIGNS.search(item.text) is not None


def _is_added_up(item: Instruction, function: Function) -> bool:
    """Whether a product is of a loop's count and what stays the same in it.

    Vivado HLS keeps it in a register (`phi_mul`), to which each iteration adds: its schedules of
    2017 to 2020 have 176 sums of such a register and a value, and 17 products of a count.
    """
    known = function.known.get(item.name)
    return known is not None and len(item.operands) == 2 and _COUNTED.match(known.text) is not None


def _product(
    item: Instruction, function: Function, target: Target, bits: int, constant: int | None
) -> Cost:
    if constant is not None and signed_digits(constant) <= 2:
        return constant_product(constant, bits, target)
    widths = [width_of(o, function, item.type) for o in item.operands]
    widths = [_narrowed(o, w, function) for o, w in zip(item.operands, widths, strict=True)]
    if constant is not None:
        widths.append(abs(constant).bit_length() + 1)
    if len(widths) == 1:
        widths *= 2
    small, large = sorted(widths)[:2]
    cost = multiplier(small, large, target, bits)
    least = constant is not None and target.tool == "vitis" and small * large >= LEAST_CONSTANT
    return replace(cost, mac=cost.mac or (least and not cost.dsp), widths=f"{small}x{large}")


def _narrowed(value: str, bits: int, function: Function, *, products: bool = True) -> int:
    """The bits of a value before it was extended, or shifted; of a product, of its factors."""
    item = function.values.get(value)
    if item is None or not item.operands:
        return bits
    if item.op in ("sext", "zext", "trunc"):
        source = item.text.split(" to ")[0].split()
        before = width_of(item.operands[0], function, source[-2]) if len(source) > 2 else 0
        inner = _narrowed(item.operands[0], before, function, products=products)
        return min(bits, inner) if before else bits
    if item.op == "mul" and len(item.operands) == 2 and products:
        factors = [(one, width_of(one, function, item.type)) for one in item.operands]
        both = sum(_narrowed(one, width, function, products=False) for one, width in factors)
        return min(bits, both)
    shift = constant_in(item)
    if item.op in ("ashr", "lshr") and shift is not None:
        bits = min(bits, max(bits_of(item.type) - shift, 1))
        up = function.values.get(item.operands[0])
        if up is not None and up.op == "shl" and up.operands and constant_in(up) == shift:
            bits = min(bits, _narrowed(up.operands[0], bits, function, products=products))
    return bits
