"""The cocotb bench of a stage with valid and ready; `rtl_lab.check` copies it beside an answer.

Inputs change when the clock falls, and what the stage then says holds at the next rising edge. An
output that moves when the clock falls has followed an input: a path without a register.
``job.json`` has the words, what is expected of them, the rate and which paths may not be;
``verdict.json`` gets what was found.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly

#: Cycles without a beat on either side, in which neither hesitated: nothing comes any more.
_PATIENCE = 64
_SPARE = 12  #: cycles that a design may take beyond those of its rate, to fill and to empty


class Wrong(Exception):
    """What is wrong with the stage, in a sentence or two."""


@dataclass
class Side:
    """What was offered and taken, so far."""

    words: Sequence[int]
    expected: Sequence[int]
    sent: int = 0
    found: list[int] = field(default_factory=list)
    held: int | None = None  #: a word that the stage offered, and nobody took yet


class Bench:
    """Drives a stage, cycle by cycle."""

    def __init__(self, dut: Any, seed: int) -> None:
        self.dut, self.rng, self.cycle = dut, random.Random(seed), 0
        self.paths: set[str] = set()  #: outputs that have followed an input
        self.cycles: int | None = None  #: for all words, where nobody waits

    def _outputs(self) -> dict[str, int]:
        return {name: int(getattr(self.dut, name).value) for name in ("ready_o", "valid_o")}

    async def step(self, word: int | None, ready: bool, rst_ni: int = 1) -> dict[str, int]:
        """Drive a cycle; return the outputs as they are when the clock rises."""
        await FallingEdge(self.dut.clk_i)
        before = self._outputs()
        self.dut.rst_ni.value = rst_ni
        self.dut.valid_i.value = int(word is not None)
        self.dut.data_i.value = self.rng.getrandbits(32) if word is None else word
        self.dut.ready_i.value = int(ready)
        await ReadOnly()
        after = self._outputs()
        self.cycle += 1
        if rst_ni:
            self.paths |= {name for name in after if after[name] != before[name]}
        return after

    async def reset(self) -> None:
        """Hold the reset, with a word on offer."""
        for number in range(4):
            outputs = await self.step(7, ready=True, rst_ni=0)
            if number and outputs["valid_o"]:
                raise Wrong("valid_o is high while the reset is active: reset what it comes from.")
        for _ in range(3):
            if (await self.step(None, ready=True))["valid_o"]:
                raise Wrong("valid_o is high after the reset, before any word came in.")

    async def stream(
        self, words: Sequence[int], expected: Sequence[int], source: float, sink: float
    ) -> int:
        """Send words; return the cycles. `source` and `sink`: how often each side hesitates."""
        side, begun, waited, offering = Side(words, expected), self.cycle, 0, False
        while side.sent < len(words) or len(side.found) < len(expected):
            offering = side.sent < len(words) and (offering or self.rng.random() >= source)
            ready = self.rng.random() >= sink
            outputs = await self.step(words[side.sent] if offering else None, ready)
            taken = bool(offering and outputs["ready_o"])
            waits = ready and (offering or side.sent == len(words))
            waited = 0 if self._beat(side, outputs, ready) or taken else waited + waits
            side.sent += taken
            offering = offering and not taken
            if waited > _PATIENCE:
                raise self._stuck(side)
        cycles = self.cycle - begun
        for _ in range(8):
            self._beat(side, await self.step(None, ready=True), ready=True)
        return cycles

    def _beat(self, side: Side, outputs: dict[str, int], ready: bool) -> bool:
        """Check what the stage offers, and take it where the sink is ready."""
        data = int(self.dut.data_o.value)
        if side.held is not None and not outputs["valid_o"]:
            raise Wrong(
                f"valid_o fell in cycle {self.cycle} before ready_i was high: a word that is "
                "offered stays until it is taken."
            )
        if side.held is not None and data != side.held:
            raise Wrong(
                f"data_o changed from 0x{side.held:x} to 0x{data:x} in cycle {self.cycle}, while "
                "valid_o waited for ready_i: what is offered stays as it is until it is taken."
            )
        side.held = data if outputs["valid_o"] and not ready else None
        if not (outputs["valid_o"] and ready):
            return False
        self._compare(side, data)
        side.found.append(data)
        return True

    def _compare(self, side: Side, data: int) -> None:
        at, expected = len(side.found), side.expected
        if at < len(expected) and data == expected[at]:
            return
        where = f"in cycle {self.cycle}"
        if at and data == expected[at - 1]:
            raise Wrong(
                f"Word {at - 1}, 0x{data:x}, came out twice, the second time {where}: once it is "
                "taken, valid_o falls, or the next word is there."
            )
        if data in expected[at:]:
            raise Wrong(
                f"Word {at}, 0x{expected[at]:x}, is lost: {where} word {expected.index(data, at)} "
                "came out in its place. Where is a word that comes in while the sink waits?"
            )
        wanted = f"0x{expected[at]:x}" if at < len(expected) else "nothing any more"
        raise Wrong(f"Word {at} came out as 0x{data:x} {where}, expected {wanted}.")

    def _stuck(self, side: Side) -> Wrong:
        names = ("valid_i", "ready_o", "valid_o", "ready_i")
        state = ", ".join(f"{name}={int(getattr(self.dut, name).value)}" for name in names)
        return Wrong(
            f"Nothing has moved for {_PATIENCE} cycles in which ready_i was high ({state}): "
            f"{side.sent} of {len(side.words)} words went in, {len(side.found)} of "
            f"{len(side.expected)} came out."
        )

    async def offers_before_ready(self, words: Sequence[int]) -> None:
        """The sink waits until it sees valid_o."""
        for word in words:
            if (await self.step(word, ready=False))["valid_o"]:
                return
        for word in words:
            if (await self.step(word, ready=True))["valid_o"]:
                break
        else:
            raise Wrong("valid_o stays 0, although words are offered: nothing ever comes out.")
        raise Wrong(
            "valid_o never comes while ready_i is low. A stage may not wait for ready before it "
            "says valid: a sink may wait for valid before it says ready, and both wait for ever."
        )


async def _all(bench: Bench, job: dict[str, Any]) -> str:
    words, expected = job["words"], job["expected"]
    await bench.reset()
    await bench.offers_before_ready([expected[0]] * 8)
    for source, sink in ((0, 0.5), (0.5, 0), (0.3, 0.3), (0, 0.9), (0, 0)):
        await bench.reset()
        cycles = await bench.stream(words, expected, source, sink)
    bench.cycles = cycles
    rate = cycles / len(words)
    if cycles > job["cycles"] * len(words) + _SPARE:
        raise Wrong(
            f"The words are right, but each takes {rate:.1f} cycles where nobody waits, and the "
            f"target is {job['cycles']:g}: may a word come in while one leaves?"
        )
    found = sorted(bench.paths.intersection(job["registered"]))
    if found:
        names = " and ".join(found)
        raise Wrong(
            f"The words are right, but {names} changes between two clock edges, with an input: a "
            "path without a register. Let it come from a flip-flop alone."
        )
    free = "" if bench.paths else ", no path without a register"
    return f"{len(words)} words in order, {cycles} cycles where nobody waits{free}"


@cocotb.test()
async def stage(dut: Any) -> None:
    """Everything that `rtl_lab.check` asks for."""
    job = json.loads(Path("job.json").read_text(encoding="utf-8"))
    for name in ("clk_i", "rst_ni", "valid_i", "ready_i", "data_i"):
        getattr(dut, name).value = 0
    Clock(dut.clk_i, 10, unit="ns").start()
    bench, passed = Bench(dut, job["seed"]), True
    try:
        text = await _all(bench, job)
    except Wrong as wrong:
        passed, text = False, str(wrong)
        for _ in range(2):  # so that the waves have the cycle in which it went wrong
            await FallingEdge(dut.clk_i)
    verdict = {"passed": passed, "text": text, "cycles": bench.cycles}
    Path("verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
