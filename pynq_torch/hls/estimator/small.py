"""Functions that Vitis HLS inlines although they have loops and no directive asks for it.

Vitis HLS is made from LLVM, whose inliner takes in what is cheap. Its logs say which calls those
are ("INFO: [HLS 214-178] Inlining function 'a' into 'b'"): LLVM's own cost and threshold decide,
without what LLVM adds for the last call of a function that nothing else can call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from . import compiler
from .marks import ALONE, INLINED, OPEN, functions_of, marked
from .passes import naming
from .place import Place

__all__ = ["small_functions"]

#: What directives unroll is unrolled before: "[HLS 214-186] Unrolling loop" stands in front.
_UNROLL = f"function({compiler.TIDY},loop-simplify,lcssa,indvars,{compiler.UNROLL})"
_PASSES = f"always-inline,{_UNROLL},function(lower-constant-intrinsics),cgscc(inline,{_UNROLL})"


def small_functions(
    text: str,
    entry: str,
    is_open: Callable[[Place], bool],
    inlined: Callable[[Place], bool],
    unrolled: Callable[[Place], int],
    folder: Path,
) -> Collection[Place]:
    """Return where the functions are that LLVM's inliner takes in at each of their calls.

    Parameters
    ----------
    text, entry, folder : str, str, pathlib.Path
        The raw module, its top function, and where to write what is made of it.
    is_open, inlined : callable
        Whether a function's cost decides; of the others, whether it is inlined.
    unrolled : callable
        By how much directives unroll the loop at a place: 1 not at all, 0 completely.
    """
    asked = {name: at for name, at, _ in functions_of(text) if at is not None and is_open(at)}
    if not asked:
        return ()

    def kind(name: str, at: Place) -> str:
        return OPEN if name in asked else INLINED if inlined(at) else ALONE

    factors: dict[Place, int] = {}
    whole = marked(text, kind, unrolled, factors, bare=True)
    path = folder / "small.ll"
    # What nothing else can call would count as cheaper.
    path.write_text(whole.replace("\ndefine internal ", "\ndefine "), encoding="utf-8")
    with naming(factors):
        made = compiler.run_passes([f"-passes={_PASSES}", *compiler.OPTIONS, str(path)])
    calls = {name: [callee for callee, _ in calls] for name, _, calls in functions_of(made)}
    called = [entry]
    for name in called:
        called += [one for one in calls.get(name, ()) if one not in called]
    return [at for name, at in asked.items() if name not in called]
