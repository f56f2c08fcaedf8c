"""Data movement: one kernel that copies, transposes, gathers and scatter-adds 32-bit words.

A run is four loops around a word, with a step for each operand in each loop; what lies deeper is
left to the driver. Words are moved as they are, so float32 and int32 (NaN payloads included) take
the same kernel; only the scatter-add computes, in float32, with one rounding for each addition and
in the order of the loops.
"""

from __future__ import annotations

__all__ = ["INDEX_STEPS", "LOOPS", "OPCODES", "REGISTERS"]

#: What a run does, by the value of register ``op``.
OPCODES = {"COPY": 0, "TRANSPOSE": 1, "GATHER": 2, "SCATTER_ADD": 3}
#: Loops of the kernel.
LOOPS = 4
#: Scalar arguments in order: the opcode, sizes, then steps of source, index and destination.
REGISTERS = (
    "op",
    *(f"{operand}{loop}" for operand in "nsxd" for loop in range(LOOPS)),
    *("step", "skip"),
)
#: Bytes of an index -> words from one index to the next; the kernel reads the low word.
INDEX_STEPS = {4: 1, 8: 2}
