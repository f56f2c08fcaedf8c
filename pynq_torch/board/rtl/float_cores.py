"""Floating-point cores that an export of Vitis HLS instantiates and does not contain.

HLS writes a Tcl file that has Vivado make the core, a Floating-Point Operator (PG060). Its module
name says the operator, the widths and the latency: ``vadd_ap_fadd_3_full_dsp_32``, from 2020.2 on
``vadd_fadd_32ns_32ns_32_5_full_dsp_1_ip``. A module of that name is written here, around
``engines/rtl/float_core.sv``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.hls import cache

from .verilog import scan

__all__ = ["SUPPORTED", "FloatCore", "looks_like_a_core", "parse", "provide", "without_stubs"]

LIBRARY = Path(__file__).resolve().parents[1] / "engines" / "rtl" / "float_core.sv"
#: For the message about a name that says something else.
SUPPORTED = (
    "add, sub, addsub, mul, madd, div, sqrt, rsqrt, recip, exp, log, cmp of h, f and d; sitofp, "
    "uitofp, fptosi, fptoui, fpext, fptrunc, hptosp, sptohp and their like"
)
_WIDTHS = {"h": 16, "hp": 16, "f": 32, "fp": 32, "sp": 32, "d": 64, "dp": 64}
# Operands of an operator; what HLS calls it where that differs from the parameter of float_core.
_OPERANDS = dict.fromkeys(("add", "sub", "addsub", "mul", "div", "cmp"), 2)
_OPERANDS |= dict.fromkeys(("sqrt", "rsqrt", "recip", "exp", "log"), 1) | {"fma": 3, "madd": 3}
_RENAMED = {"ma": "fma"}
_ADDSUB = re.compile(r"([hfd])add\1sub")
_ARITHMETIC = re.compile(r"(?P<of>[hfd])(?P<op>[a-z]+)")
_FROM_INTEGER = re.compile(r"(?P<sign>[su])ito(?P<to>[hsfd]p)")
_TO_INTEGER = re.compile(r"(?P<of>[hsfd]p)to(?P<sign>[su])i")
_BETWEEN = re.compile(r"(?P<of>[hsfd]p)to(?P<to>[hsfd]p)")
# ap_fadd_3_full_dsp_32: the width is that of the operand, and older HLS leaves it out.
_BY_LATENCY = re.compile(
    r"\w+_ap_(?P<op>[a-z]+)_(?P<latency>\d+)(?:_[a-z]+_dsp)?(?:_(?P<width>\d+))?"
)
# fadd_32ns_32ns_32_5_full_dsp_1_ip: operands, result, stages of the module around the core.
_BY_STAGES = re.compile(
    r"\w+_(?P<op>[a-z]+)_(?P<width>\d+)n?s(?:_\d+n?s)*_(?P<result>\d+)_(?P<stages>\d+)"
    r"(?:_[a-z]+_dsp)?(?:_\d+)?(?:_x)*_ip"
)
_ANY = re.compile(
    r"_ap_[fdh](?!ifo)[a-z0-9]+_\d|_ap_[su]ito[hsfd]p_\d|_ip$|floating_point_v\d", re.IGNORECASE
)
_GENERATED = re.compile(r"floating_point_v\d+_\d+(?:_\d+)?")
# In the Tcl: CONFIG.c_latency 3; in the module that Vivado wrote: .C_LATENCY(3), C_LATENCY => 3.
_LATENCY = re.compile(r"\bc_latency(?:\s*=>\s*|\s*\(\s*|\s+\{?)(?P<cycles>\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class FloatCore:
    """A floating-point core, as the name of its module says it."""

    name: str  #: of the module
    operator: str  #: ``OPERATOR`` of float_core
    operands: int
    width: int  #: bits of an operand
    result: int  #: bits of the result
    latency: int  #: cycles
    is_signed: bool = True  #: the integer that is converted, or the result of a conversion

    @property
    def text(self) -> str:
        """The Verilog of the module."""
        operands = "abc"[: self.operands]
        chosen = self.operator in ("addsub", "cmp", "fma", "madd")
        ports = [
            # HLS leaves out both where the latency is 0, and Vivado's wizard aclken.
            "input wire aclk = 1'b0",
            "input wire aclken = 1'b1",
            *(f"input wire s_axis_{x}_tvalid = 1'b1" for x in operands),
            *(f"input wire [{_top_bit(self.width)}:0] s_axis_{x}_tdata" for x in operands),
            *["input wire s_axis_operation_tvalid = 1'b1"] * chosen,
            *["input wire [7:0] s_axis_operation_tdata = 8'd0"] * chosen,
            "output wire m_axis_result_tvalid",
            f"output wire [{_top_bit(self.result)}:0] m_axis_result_tdata",
        ]
        valid = [f"s_axis_{x}_tvalid" for x in (*operands, *["operation"] * chosen)]
        pins = {
            "aclk": "aclk",
            "aclken": "aclken",
            "valid": " & ".join(valid),
            **{x: f"64'(s_axis_{x}_tdata)" if x in operands else "64'd0" for x in "abc"},
            "operation": "s_axis_operation_tdata" if chosen else "8'd0",
            "result_valid": "m_axis_result_tvalid",
            "result": "result",
        }
        connected = ",\n    ".join(f".{pin}({net})" for pin, net in pins.items())
        return (
            f"module {self.name} (\n  " + ",\n  ".join(ports) + "\n);\n"
            "  wire [63:0] result;\n"
            f"  assign m_axis_result_tdata = result[{_top_bit(self.result)}:0];\n"
            f"  float_core #({self._parameters()}) core (\n    {connected}\n  );\nendmodule\n"
        )

    def _parameters(self) -> str:
        given = {"OPERATOR": f'"{self.operator}"', "LATENCY": self.latency}
        if self.operator == "from_integer":
            given |= {"I_WIDTH": self.width, "R_WIDTH": self.result}
        elif self.operator == "to_integer":
            given |= {"A_WIDTH": self.width, "I_WIDTH": self.result}
        else:
            given |= {"A_WIDTH": self.width, "R_WIDTH": max(self.result, 16)}
        given["IS_SIGNED"] = f"1'b{int(self.is_signed)}"
        return ", ".join(f".{name}({value})" for name, value in given.items())


def _top_bit(bits: int) -> int:
    """Return the highest bit of the port that carries `bits`: AXI4-Stream has whole bytes."""
    return (bits + 7) // 8 * 8 - 1


def parse(name: str, latency: int | None = None) -> FloatCore | None:
    """Return the core that a module's name names, None for any other name.

    Parameters
    ----------
    name : str
        A module that no file defines.
    latency : int, optional
        From the core's Tcl; otherwise the name's. HLS registers the operands and the result of the
        newer cores outside of them, so two of their stages are not the core's.
    """
    old, new = _BY_LATENCY.fullmatch(name), _BY_STAGES.fullmatch(name)
    match = old or new
    if match is None:
        return None
    if latency is None:
        latency = int(match["latency"]) if old else max(0, int(match["stages"]) - 2)
    widths = int(match["width"] or 0), 0 if old else int(match["result"])
    found = _operation(match["op"], *widths)
    if found is None:
        return None
    operator, operands, (width, result), is_signed = found
    integer = {"from_integer": width, "to_integer": result}.get(operator)
    floats = {width, result} - ({integer} if integer else {1, 8} if operator == "cmp" else set())
    if not floats <= {16, 32, 64} or (integer is not None and not 1 < integer <= 64):
        return None
    return FloatCore(name, operator, operands, width, result, latency, is_signed)


def _operation(op: str, width: int, result: int) -> tuple[str, int, tuple[int, int], bool] | None:
    """Return the operator, its operands, the widths, and whether the integer has a sign."""
    if match := _FROM_INTEGER.fullmatch(op):
        to = _WIDTHS[match["to"]]
        return "from_integer", 1, (width or 32, to), match["sign"] == "s"
    if match := _TO_INTEGER.fullmatch(op):
        return "to_integer", 1, (_WIDTHS[match["of"]], result), match["sign"] == "s"
    if match := _BETWEEN.fullmatch(op):
        return "float", 1, (_WIDTHS[match["of"]], _WIDTHS[match["to"]]), True
    if op in ("fpext", "fptrunc"):
        widths = (width or 32, result or 64) if op == "fpext" else (width or 64, result or 32)
        return "float", 1, widths, True
    match = _ARITHMETIC.fullmatch(_ADDSUB.sub(r"\1addsub", op))
    if match is None:
        return None
    operator = _RENAMED.get(match["op"], match["op"])
    of = _WIDTHS[match["of"]]
    if operator not in _OPERANDS or (width or of) != of:
        return None
    return operator, _OPERANDS[operator], (of, 8 if operator == "cmp" else of), True


def looks_like_a_core(name: str) -> bool:
    """Tell whether a module that is missing has the name of a floating-point core."""
    return _ANY.search(name) is not None


def without_stubs(files: Sequence[Path]) -> tuple[Path, ...]:
    """Return `files` without modules that Vivado wrote around its encrypted core."""
    defined = {module for file in files for module in scan(file).modules}

    def is_stub(file: Path) -> bool:
        uses = {use for use in scan(file).uses if _GENERATED.fullmatch(use)}
        return bool(uses - defined) and any(map(parse, scan(file).modules))

    return tuple(file for file in files if not is_stub(file))


def provide(needed: Sequence[Path], files: Iterable[Path], folder: Path) -> tuple[Path, ...]:
    """Return files with the floating-point cores that `needed` instantiates and `files` lack.

    Parameters
    ----------
    needed : sequence of path
        The files of a design.
    files : iterable of path
        All Verilog files around it.
    folder : path
        The folder of its top: a core's Tcl is there, or beside it in an export.
    """
    defined = {module for file in files for module in scan(file).modules}
    used = {use for file in needed for use in scan(file).uses} - defined
    names = [name for name in sorted(used) if parse(name) is not None]
    found = (parse(name, _latency(name, folder)) for name in names)
    text = "\n".join(core.text for core in found if core is not None)
    if not text:
        return ()
    key = cache.digest("floating-point cores", text)

    def make() -> cache.Entry:
        with cache.scratch() as work:
            cache.write_text(work / "float_cores.sv", text)
            return cache.store(key, work, (), (), {})

    return LIBRARY, Path(cache.find_or_make(key, (), make)["path"]) / "float_cores.sv"


def _latency(name: str, folder: Path) -> int | None:
    """Return the latency of a core by what made it: HLS's Tcl, or Vivado's module around it."""
    for path in _descriptions(name, folder):
        if path.is_file():
            match = _LATENCY.search(path.read_text(encoding="utf-8", errors="replace"))
            if match is not None:
                return int(match["cycles"])
    return None


def _descriptions(name: str, folder: Path) -> Iterator[Path]:
    for place in (folder, folder.parent / "ip", folder.parent.parent / "subcore"):
        for end in ("_ip.tcl", ".tcl", ".v", ".vhd"):
            yield place / f"{name}{end}"
