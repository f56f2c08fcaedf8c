"""How tests/fidelity.py runs a public design; each function returns the cycles that it counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from helpers import start, wait_done
from pynq import MMIO, Overlay, allocate
from rtl_cpp_bench import build, values
from rtl_model import Model

import pynq_torch
from pynq_torch.board.rtl.build import build_model
from pynq_torch.board.rtl.sources import find_rtl

#: The vendor's co-simulation writes one line a value; a transaction is one call.
_TRANSACTION = re.compile(r"\[\[transaction\]\]\s+\d+\s*(.*?)\[\[/transaction\]\]", re.DOTALL)
#: Cycles that a call may take at most.
_LIMIT = 5_000_000


class Failed(Exception):
    """Why a design did not run, or gave other results than its authors' simulation."""


def _values(file: Path) -> list[list[int]]:
    """Return the values of each call in a test vector of co-simulation."""
    if not file.is_file():
        return []
    calls = _TRANSACTION.findall(file.read_text("latin-1"))
    return [[int(word, 0) for word in call.split()] for call in calls]


class _Argument:
    """The ports of one argument of a top without AXI: scalar, memory, FIFO or return value."""

    def __init__(self, name: str, kind: str, vectors: Path | None, top: str) -> None:
        self.name, self.kind = name, kind
        self.given: list[list[int]] = []
        self.expected: list[list[int]] = []
        if vectors is not None:
            self.given = _values(vectors / "cdatafile" / f"c.{top}.autotvin_{name}.dat")
            self.expected = _values(vectors / "rtldatafile" / f"rtl.{top}.autotvout_{name}.dat")
        self.now: list[int] = []
        self.at = 0

    def begin(self, model: Model, call: int) -> None:
        """Take the values of a call; a FIFO without any gives zeros for ever."""
        self.now = list(self.given[call]) if self.given and self.kind != "out" else []
        self.at = 0
        if self.kind == "scalar":
            model[self.name] = self.now[0] if self.now else 0

    def drive(self, model: Model) -> None:
        """Set what a FIFO offers in this cycle."""
        if self.kind == "in":
            model[f"{self.name}_empty_n"] = int(self.at < len(self.now) or not self.given)
            model[f"{self.name}_dout"] = self.now[self.at] if self.at < len(self.now) else 0
        elif self.kind == "out":
            model[f"{self.name}_full_n"] = 1

    def edge(self, model: Model) -> Iterator[tuple[str, int]]:
        """Take what the rising edge moves; yield the inputs that change after it."""
        if self.kind == "in":
            self.at += model[f"{self.name}_read"]
        elif self.kind == "out" and model[f"{self.name}_write"]:
            self.now.append(model[f"{self.name}_din"])
        elif self.kind == "return" and model["ap_done"]:
            self.now = [model[self.name]]
        elif self.kind == "memory":
            for port in "01":
                yield from self._memory_port(model, port)

    def _memory_port(self, model: Model, port: str) -> Iterator[tuple[str, int]]:
        there = model.signals.keys()
        enable, read, write = (f"{self.name}_{x}{port}" for x in ("ce", "q", "we"))
        if enable not in there or not model[enable]:
            return
        address = model[f"{self.name}_address{port}"]
        self.now += [0] * (address + 1 - len(self.now))
        if read in there:
            yield read, self.now[address]
        if write in there and model[write]:
            self.now[address] = model[f"{self.name}_d{port}"]

    def check(self, call: int) -> None:
        """Raise where the results of a call are not those of the vendor's simulation."""
        if self.kind in ("scalar", "in") or not self.expected:
            return
        expected = self.expected[call]
        got = self.now + [0] * (len(expected) - len(self.now))
        if got[: len(expected)] != expected:
            raise Failed(f"call {call}: {self.name} is not what the vendor's simulation gave")


def _arguments(model: Model, vectors: Path | None, top: str) -> list[_Argument]:
    kinds = {"_empty_n": "in", "_full_n": "out", "_ce0": "memory"}
    found = {
        signal.removesuffix(ending): kind
        for signal in model.signals
        for ending, kind in kinds.items()
        if signal.endswith(ending)
    }
    for signal in model.signals:
        if signal == "ap_return":
            found[signal] = "return"
        elif not signal.startswith(("ap_", "none_", *(f"{name}_" for name in found))):
            found[signal] = "scalar"
    return [_Argument(name, kind, vectors, top) for name, kind in found.items()]


def _call(model: Model, arguments: list[_Argument], call: int) -> int:
    """Return the cycles from ap_start to ap_done, as the vendor counts a latency."""
    for argument in arguments:
        argument.begin(model, call)
    model["ap_start"] = 1
    for cycle in count():
        if cycle > _LIMIT:
            raise Failed(f"call {call}: no ap_done after {_LIMIT:,} cycles")
        for argument in arguments:
            argument.drive(model)
        model["ap_clk"] = 0
        model.eval()
        done, ready = model["ap_done"], model["ap_ready"]
        changed = [change for argument in arguments for change in argument.edge(model)]
        model["ap_clk"] = 1
        model.eval()
        for name, value in changed:
            model[name] = value
        if ready:
            model["ap_start"] = 0
        if done:
            break
    for argument in arguments:
        argument.check(call)
    return cycle


def _wrapped(place: Path, top: str) -> str:
    """Write a module around a top, with the stream that board rtl asks for, and return its name."""
    file = next((f for f in sorted(place.rglob(f"{top}.v")) if f.parent.name == "verilog"), None)
    if file is None:
        raise Failed(f"no {top}.v in its Verilog")
    ports = re.findall(
        r"^((?:in|out)put +(?:\[[^]]*\] *)?)(\w+) *;", file.read_text("latin-1"), re.MULTILINE
    )
    name, lines = f"bare_{top}", [f"{kind} {port}" for kind, port in ports]
    stream = "input [7:0] none_TDATA, input none_TVALID, output none_TREADY"
    pins = ", ".join(f".{port}({port})" for _, port in ports)
    (file.parent / f"{name}.v").write_text(
        f"module {name} ({stream},\n  {', '.join(lines)});\n"
        f"  assign none_TREADY = 0;\n  {top} {top}_u ({pins});\nendmodule\n"
    )
    return name


def bare(place: Path, run: dict[str, Any]) -> int:
    """Run a top without AXI on its model, with the test vectors of its co-simulation if any."""
    top = run["top"]
    source = find_rtl([place], _wrapped(place, top))
    assert source is not None
    model = Model(build_model(source).library)
    vectors = place / run["vectors"] if "vectors" in run else None
    arguments = _arguments(model, vectors, top)
    reset, active = ("ap_rst", 1) if "ap_rst" in model.signals else ("ap_rst_n", 0)
    model[reset] = active
    model.clock(4)
    model[reset] = 1 - active
    calls = max(1, *(len(argument.given) for argument in arguments))
    return max(_call(model, arguments, call) for call in range(calls))


def _overlay(place: Path, run: dict[str, Any]) -> Any:
    pynq_torch.use_board("rtl", kernels=[place])
    return Overlay(str(place / run["overlay"]))


def _cycles(overlay: Any, name: str) -> int:
    return int(overlay.device.cus[name].last_run.cycles)


def fir(place: Path, run: dict[str, Any]) -> int:
    """Run a filter whose argument and result are registers, with its co-simulation's vectors."""
    overlay = _overlay(place, run)
    x, y = (
        _values(place / run["vectors"] / file)
        for file in ("cdatafile/c.fir.autotvin_x.dat", "rtldatafile/rtl.fir.autotvout_y.dat")
    )
    cycles = []
    for call, (given, expected) in enumerate(zip(x, y, strict=True)):
        overlay.fir_0.register_map.x = given[0]
        start(overlay.fir_0)
        wait_done(overlay.fir_0)
        cycles.append(_cycles(overlay, "fir_0"))
        if int(overlay.fir_0.register_map.y) & 0xFFFF != expected[0]:
            raise Failed(f"call {call}: y is not what the vendor's simulation gave")
    return max(cycles)


#: By OpenSSL: AES-128 in counter mode of zeros, with the key and the nonce of `aes`.
_AES_BLOCKS = {0: "e36adbfcc90aafff9071ba629ff281a2", 16383: "b02f774575f6f77279204fcc2468cdda"}


def aes(place: Path, run: dict[str, Any]) -> int:
    """Encrypt zeros with pynqrypt as its authors' notebook does; check the first and last block."""
    overlay = _overlay(place, run)
    ip, blocks = overlay.pynqrypt_encrypt_0, run["blocks"]
    registers = ip.register_map
    key, nonce = bytes(range(16)), bytes(range(20, 32))
    if hasattr(registers, "Memory_key"):
        for name, value in (("key", key), ("nonce", nonce)):
            at = getattr(registers, f"Memory_{name}").address
            memory = MMIO(ip.mmio.base_addr + at, len(value))
            for i in range(0, len(value), 4):
                memory.write(i, value[i : i + 4])
    else:
        for name, value in (("key", key), ("nonce", nonce)):
            for i, word in enumerate(np.frombuffer(value, ">u4")[::-1], 1):
                setattr(registers, f"{name}_{i}", int(word))
    given, got = (allocate(16 * blocks, np.uint8) for _ in "io")
    registers.plaintext_length_1 = 16 * blocks
    registers.plaintext_1 = given.physical_address
    registers.ciphertext_1 = got.physical_address
    start(ip)
    wait_done(ip, 300)
    for block, expected in _AES_BLOCKS.items():
        if bytes(got[16 * block :][:16]).hex() != expected:
            raise Failed(f"block {block} is not what OpenSSL gives")
    return _cycles(overlay, "pynqrypt_encrypt_0")


def reads(place: Path, run: dict[str, Any]) -> float:
    """Return the mean cycles of one outstanding read burst at a 64-bit port of the memory model."""
    found = values(build(place), "single", "pynq-z2", 100e6, 50_000, 0, run["beats"])
    return round(float(found["mean"]), 1)


#: By `run.by` of the table.
RUNS = {"bare": bare, "fir": fir, "aes": aes, "reads": reads}
