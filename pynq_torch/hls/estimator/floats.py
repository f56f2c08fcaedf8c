"""How many cycles floating-point cores take, and how much of each.

From the schedules of the tools in public repositories: 2,660 for 7-series parts, 2,150 for
UltraScale+.
"""

from __future__ import annotations

from .target import Target

__all__ = [
    "FAST_PRODUCT_BLOCKS",
    "SERIES_7",
    "STAGE_NS",
    "at_once",
    "fast_stages",
    "half_stages",
    "stages",
]

#: The delay, against grade -1, from which a part is of the 7 series.
SERIES_7 = 0.8
#: ns of each stage of a sum and a product of floats with few stages, in a 7-series part.
_FEW_STAGES = {"fadd": ((22.5, 1), (18.8, 2)), "fsub": ((22.5, 1), (18.8, 2)), "fmul": ((12.3, 1),)}
#: Cores that come with few numbers of stages: from a budget of so many ns in grade -1, the cycles
#: behind the first. In 540 schedules and 60 reports of Vivado HLS 2018 to Vitis HLS 2023.
_STEPS = {
    "fdiv": ((15.5, 7), (9.3, 11), (6.07, 15)),
    "sitofp": ((19.6, 1), (15.5, 2), (10.3, 3), (6.41, 5)),
    "uitofp": ((19.6, 1), (15.5, 2), (10.3, 3), (6.41, 5)),
    "sqrt": ((8.27, 11), (6.23, 15)),
    "exp": ((8.5, 8), (6.9, 9)),
}
#: ns of each of their stages, where the clock leaves so much.
STAGE_NS = {"fdiv": 6.07, "sitofp": 6.41, "uitofp": 6.41, "fpext": 4.43, "fptrunc": 5.2}
#: ns of what takes no more than its cycle in Vivado HLS before the release that gives it two.
_AT_ONCE, _IN_TWO = {"fcmp": 6.78, "fpext": 5.34, "fptrunc": 6.4}, 2019.1
#: The delay, against grade -1, below which a part is of the UltraScale+ families.
_ULTRASCALE = 0.5
#: Their floating-point cores, from 2,150 schedules of the tools: for each budget of ns at least,
#: in grade -1, the cycles behind the first, and the ns of each. Zynq UltraScale+ and Kria, ...
_SMALL_STAGES: dict[str, tuple[tuple[float, int, float], ...]] = {
    "fadd": (
        (15.7, 1, 15.7), (8.04, 3, 8.04), (6.01, 4, 6.01), (3.4, 7, 4.18), (3.05, 9, 3.05),
        (0.0, 10, 2.83),
    ),
    "fmul": ((10.5, 1, 10.5), (8.76, 2, 8.76), (3.6, 3, 4.67), (3.05, 5, 3.2), (0.0, 6, 3.0)),
    "fdiv": ((8.8, 8, 8.8), (6.0, 9, 6.7), (0.0, 29, 2.8)),
    "dadd": ((18.9, 1, 18.9), (5.5, 4, 6.32), (0.0, 7, 2.4)),
    "dmul": ((26.0, 1, 26.0), (8.0, 4, 8.8), (0.0, 7, 2.9)),
    "ddiv": ((33.0, 6, 33.0), (9.98, 16, 9.98), (7.0, 21, 7.4), (0.0, 30, 2.9)),
}  # fmt: skip
#: ... and Virtex UltraScale+, on its own and on cards.
_FAST_STAGES: dict[str, tuple[tuple[float, int, float], ...]] = {
    "fadd": (
        (13.0, 1, 8.77), (7.29, 2, 7.29), (5.1, 3, 4.6), (3.5, 4, 3.53), (2.78, 6, 2.78),
        (0.0, 10, 2.7),
    ),
    "fmul": ((5.83, 1, 5.87), (5.0, 2, 4.86), (2.76, 3, 2.76), (0.0, 6, 2.7)),
    "fdiv": ((13.0, 4, 11.0), (8.3, 5, 8.4), (6.31, 6, 6.31), (2.7, 11, 2.76), (0.0, 29, 2.65)),
    "dadd": ((13.0, 1, 10.1), (8.4, 2, 8.43), (3.4, 4, 3.44), (0.0, 7, 2.3)),
    "dmul": ((13.0, 1, 11.4), (3.9, 4, 3.96), (0.0, 7, 2.8)),
    "ddiv": (
        (13.0, 8, 11.7), (8.1, 10, 8.12), (7.15, 12, 7.15), (3.9, 21, 3.94), (0.0, 30, 2.8),
    ),
}  # fmt: skip
#: Cores of half, by whether a part is of the 7 series: from a budget of so many ns in grade -1, the
#: cycles behind the first. In 25,000 schedules of a Zynq at 10 ns and a Zynq UltraScale+ at 3.33,
#: and reports of the latter at 10; what lies between is not known.
_HALF_STAGES: dict[bool, dict[str, tuple[tuple[float, int], ...]]] = {
    True: {
        "fadd": ((7.61, 4), (6.1, 5)), "fmul": ((6.86, 3), (5.2, 4)), "fdiv": ((6.07, 6),),
        "sqrt": ((6.23, 5),), "fcmp": ((5.5, 1),), "fpext": ((5.0, 1),), "fptrunc": ((5.0, 1),),
    },
    False: {
        "fadd": ((9.0, 1), (5.2, 2), (3.9, 3), (2.91, 4), (2.5, 5)),
        "fmul": ((6.0, 1), (2.61, 3), (2.2, 4)),
        "fdiv": ((8.0, 4), (2.8, 6)), "sqrt": ((8.0, 3), (2.8, 5)),
        "fcmp": ((2.1, 1),), "fpext": ((1.91, 1),), "fptrunc": ((1.91, 1),),
    },
}  # fmt: skip
#: ns of a grade above -1 against grade -1.
_GRADE = {True: 0.8, False: 0.84}
#: DSP blocks of their product of doubles: a DSP48E2 multiplies 27 x 18 bits.
FAST_PRODUCT_BLOCKS = 8


def fast_stages(name: str, target: Target) -> tuple[int, float] | None:
    """Return the cycles of an UltraScale+ core behind its first, and the ns of each; else None."""
    table = _SMALL_STAGES if target.is_small else _FAST_STAGES
    if target.speed >= _ULTRASCALE or name not in table:
        return None
    grade = _GRADE[target.is_small] if target.is_fast else 1.0
    # Grade -2LV takes no core whose stages do not fit the cycle (2,800 schedules of a Kria at 3.33,
    # 4 and 10 ns).
    fits = target.is_small and target.is_low
    cycles, ns = next(
        (n, ns)
        for least, n, ns in table[name]
        if target.budget >= (max(least, ns) if fits and least else least) * grade
    )
    return cycles, min(ns * grade, target.budget)


def half_stages(core: str, target: Target) -> tuple[int, float] | None:
    """Return the cycles of a core of half behind its first, and the ns of each; None if unknown."""
    ultra = target.speed < _ULTRASCALE
    table = _HALF_STAGES[not ultra].get(core)
    if table is None:
        return None
    grade = (_GRADE[True] if target.is_fast else 1.0) if ultra else target.speed
    fitting = ((n, ns * grade) for ns, n in table if ns * grade <= target.budget)
    return next(fitting, (table[-1][1], target.budget))


def at_once(core: str, target: Target) -> float | None:
    """Return the ns of a core that ends in the cycle in which it begins, None where it has two."""
    if core not in _AT_ONCE or target.tool != "vivado" or not 0 < target.release < _IN_TWO:
        return None
    taken = _AT_ONCE[core] * target.speed
    return taken if taken < target.budget else None


def stages(core: str, work: float, target: Target, *, is_double: bool = False) -> int:
    """Return the cycles of an operation of `work` ns: at slow clocks as few as a core can have."""
    slow = target.budget if target.speed >= _ULTRASCALE else 0.0
    for least, cycles in _FEW_STAGES.get(core, ()):
        if slow >= least:
            return cycles
    if target.speed >= _ULTRASCALE and not (is_double and core in ("fdiv", "sqrt", "exp")):
        for least, cycles in _STEPS.get(core, ()):
            if target.budget / target.speed >= least:
                return cycles
    return max(1, int(work / min(target.budget / target.speed, 9.0)))
