"""Proofs of RTL: yosys shows that a property holds in every reachable state, or how it breaks.

A proof is a SystemVerilog module around the one it is about, in a folder ``proofs`` beside the RTL.
Its properties are wires that it asserts, what it takes for granted of the inputs is assumed. yosys'
own SAT solver proves them by induction: they hold after the reset, and a step from any state in
which they hold leads to one in which they hold. Where one does not, the steps from the reset to
there are a counterexample, with waves.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from pynq_torch.errors import RtlError
from pynq_torch.hls import cache
from pynq_torch.models import rtl_resources, yosys
from pynq_torch.paths import HW

from .observe.wave_file import WaveFile
from .proof_waves import clocked, low_at_the_end

__all__ = ["Proof", "Replacement", "proofs", "prove"]

_TIMEOUT_S = 600.0
#: Steps after which induction gives up; the counterexamples of the RTL here take fewer.
_MAX_STEPS = 20
_ASSERTED = re.compile(r"\bassert \((\w+)\)")


@dataclass(frozen=True)
class Replacement:
    """A text of one RTL file, and what is put in its place for a proof that has to fail."""

    file: str
    old: str
    new: str

    def apply(self, folder: Path) -> None:
        """Replace it in a copy of the file.

        Raises
        ------
        RtlError
            The text is not there exactly once.
        """
        path = folder / self.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if (found := text.count(self.old)) != 1:
            raise RtlError(
                f"{self.file} has {self.old!r} {found} times; expected it once. "
                "The RTL has changed: choose another text to replace"
            )
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


@dataclass(frozen=True)
class Proof:
    """What yosys found."""

    name: str
    properties: tuple[str, ...]
    proved: bool
    steps: int  # of the induction, or of the counterexample
    failed: tuple[str, ...]  # the properties that do not hold in the last step
    seconds: float  # wall clock on this PC
    dump: str = field(repr=False, default="")  # the counterexample as VCD, with a clock

    def waves(self, path: Path) -> WaveFile:
        """Write the counterexample to a VCD file and open it; its clock is ``clk``.

        Raises
        ------
        RtlError
            There is none: the properties are proved.
        """
        if not self.dump:
            raise RtlError(f"{self.name} is proved: there is no counterexample to draw", self.name)
        path.write_text(self.dump, encoding="utf-8")
        return WaveFile(path)

    def __str__(self) -> str:
        if self.proved:
            return (
                f"{self.name}: {len(self.properties)} properties hold in every reachable state, "
                f"by induction over {self.steps} step{'s' * (self.steps > 1)}: PASS"
            )
        return f"{self.name}: {', '.join(self.failed)} fails in step {self.steps} after power-up"


def proofs() -> dict[str, Path]:
    """Return the proofs of the RTL that ships, by name, without the ``_proof`` of the module."""
    found = [*HW.glob("rtl/proofs/*_proof.sv"), *HW.glob("kernels/*/rtl/proofs/*_proof.sv")]
    return {path.stem.removesuffix("_proof"): path for path in sorted(found)}


def prove(proof: str | Path, *replacements: Replacement) -> Proof:
    """Prove the properties of a module, or find a counterexample.

    Parameters
    ----------
    proof : str or path
        A name of `proofs`, or the file of a proof of your own in a folder beside the RTL.
    *replacements : Replacement
        What to change in the RTL first, to see the proof fail.

    Raises
    ------
    RtlError
        yosys is not installed or cannot read the RTL, a text to replace is not there once, or
        induction reached neither result: an invariant is missing.
    """
    path = _path_of(proof)
    yosys.version("Proving properties of RTL")
    begin = time.perf_counter()
    library = {p.stem: p for p in (*HW.glob("rtl/*.sv"), *path.parent.parent.glob("*.sv"))}
    files = rtl_resources.named_in([path], library)
    with cache.scratch() as folder:
        for file in files:
            (folder / file.name).write_bytes(file.read_bytes())
        for replacement in replacements:
            replacement.apply(folder)
        done = yosys.run(_script(files), (), folder, _TIMEOUT_S, path.stem)
        dump = folder / "counterexample.vcd"
        text = dump.read_text(encoding="utf-8") if dump.is_file() else ""
    return _result(path, done.stdout + done.stderr, text, time.perf_counter() - begin)


def _path_of(proof: str | Path) -> Path:
    if isinstance(proof, Path):
        return proof
    known = proofs()
    if proof not in known:
        raise RtlError(f"there is no proof {proof!r}; expected one of {', '.join(known)}")
    return known[proof]


def _script(files: tuple[Path, ...]) -> list[str]:
    top = files[0].stem
    return [
        f"read_slang -j 1 --top {top} {' '.join(path.name for path in files)}",
        f"prep -flatten -top {top}",
        "chformal -lower",
        "memory_map",
        "opt -full",
        "sat -tempinduct -prove-asserts -set-assumes -show-public "
        f"-dump_vcd counterexample.vcd -maxsteps {_MAX_STEPS} {top}",
    ]


def _result(path: Path, said: str, dump: str, seconds: float) -> Proof:
    name = path.stem.removesuffix("_proof")
    properties = tuple(_ASSERTED.findall(path.read_text(encoding="utf-8")))
    lengths = re.findall(r"Trying induction with length (\d+)", said)
    if "Induction step proven: SUCCESS!" in said:
        return Proof(name, properties, True, int(lengths[-1]), (), seconds)
    if "model found for base case: FAIL!" in said and dump:
        waves, steps = clocked(dump)
        failed = tuple(low_at_the_end(waves, properties))
        return Proof(name, properties, False, steps, failed, seconds, waves)
    if "Reached maximum number of time steps" in said:
        raise RtlError(
            f"{path.name}: induction over {lengths[-1]} steps proves and refutes nothing. Add an "
            "invariant: a property of the states that the design can be in",
            name,
        )
    lines = [line for line in said.splitlines() if line.strip()]
    raise RtlError(f"{path.name}: yosys cannot prove it:\n" + "\n".join(lines[-12:]), name)
