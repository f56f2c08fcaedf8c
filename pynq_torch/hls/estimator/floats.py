"""How many cycles floating-point cores take, and how much of each.

From the schedules of the tools in public repositories: 2,660 for 7-series parts, 2,150 for
UltraScale+.
"""

from __future__ import annotations

from .target import Target

__all__ = ["FAST_PRODUCT_BLOCKS", "SERIES_7", "STAGE_NS", "at_once", "fast_stages", "stages"]

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
#: Their floating-point cores, from 2,150 schedules of the tools: for each budget of ns at least
#: the cycles behind the first, and the ns of each.
_FAST_STAGES: dict[str, tuple[tuple[float, int, float], ...]] = {
    "fadd": (
        (12.6, 1, 12.6), (10.9, 1, 7.37), (6.43, 3, 6.43), (4.3, 3, 3.86), (2.97, 4, 2.97),
        (2.9, 6, 2.34), (2.7, 9, 2.46), (0.0, 10, 2.26),
    ),
    "fmul": (
        (8.41, 1, 8.41), (7.01, 2, 7.01), (4.3, 2, 4.08), (2.9, 3, 2.32), (2.7, 5, 2.56),
        (0.0, 6, 2.41),
    ),
    "fdiv": ((10.9, 4, 9.31), (8.27, 7, 8.27), (7.05, 8, 7.05), (0.0, 29, 2.23)),
    "dadd": ((10.9, 1, 8.5), (5.06, 4, 5.06), (2.89, 4, 2.89), (0.0, 7, 1.9)),
    "dmul": ((10.9, 1, 9.59), (7.04, 4, 7.04), (3.33, 4, 3.33), (0.0, 7, 2.32)),
    "ddiv": ((10.9, 8, 9.82), (5.92, 21, 5.92), (3.31, 21, 3.31), (0.0, 30, 2.35)),
}  # fmt: skip
#: DSP blocks of their product of doubles: a DSP48E2 multiplies 27 x 18 bits.
FAST_PRODUCT_BLOCKS = 8


def fast_stages(name: str, target: Target) -> tuple[int, float] | None:
    """Return the cycles of an UltraScale+ core behind its first, and the ns of each; else None."""
    if target.speed >= _ULTRASCALE or name not in _FAST_STAGES:
        return None
    return next((n, ns) for least, n, ns in _FAST_STAGES[name] if target.budget >= least)


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
