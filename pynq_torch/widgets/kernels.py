"""The kernel explorer: choose a kernel, a size and a dtype; it runs, and the chart follows."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pynq_torch import plot, timing, verify
from pynq_torch.errors import KernelError
from pynq_torch.lessons.kernel_cases import Case, find_case, shares
from pynq_torch.models import evidence
from pynq_torch.timing import Duration
from pynq_torch.views import interactive

from .panel import Panel, Picture, figure, ipywidgets

__all__ = ["kernel_explorer"]

REPEAT = 5


def kernel_explorer(
    *overlays: Any,
    function: str = "",
    kernel: str = "",
    size: int | None = None,
    dtype: str = "",
    live: bool | None = None,
) -> Any:
    """Run kernels on data of a chosen size, and chart time and model beside those of the others.

    Parameters
    ----------
    *overlays : Overlay or str
        Their kernels are offered. An overlay given by name is loaded when a kernel of it is chosen.
        Default: the overlay that was loaded last.
    function, kernel, dtype : str
        What to begin with: what is computed, by which kernel (the rungs of a ladder compute one
        function), and the dtype of the result. Default: the first.
    size : int, optional
        What to begin with; default: the middle one.
    live : bool, optional
        Show controls. Default: where somebody can use them; otherwise the kernel runs once.

    Returns
    -------
    Picture or Panel
        The picture without controls, or the panel: end the cell with it.

    Raises
    ------
    KernelError
        No overlay is loaded, there is no kernel that can be tried, or none of that name.
    """
    explorer = _Explorer(overlays)
    start = explorer.start(function, kernel, size, dtype)
    if not (interactive() if live is None else live):
        return explorer.draw(**start)
    return explorer.panel(start)


@dataclass(frozen=True)
class _Choice:
    """A kernel that can be tried, the overlay that holds it, and how many units work together."""

    kernel: str
    overlay: str
    units: int
    case: Case
    dtypes: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.kernel if self.units == 1 else f"{self.kernel} x{self.units}"

    def latency(self, size: int, clock_hz: float) -> Duration:
        """Return how long it takes on the board, by the best evidence there is."""
        return next(iter(self.latencies(size, clock_hz).values()))

    def latencies(self, size: int, clock_hz: float) -> dict[str, Duration]:
        """Return how long it takes by all that is known, the best evidence first."""
        sizes = self.case.symbols(size, self.units)
        return evidence.latencies(self.kernel, clock_hz, label=self.label, estimated=True, **sizes)

    def schedule(self, size: int, clock_hz: float) -> str:
        """Return II, depth and latency of its loops by the estimate, or why there is none."""
        sizes = self.case.symbols(size, self.units)
        try:
            return str(evidence.schedule(self.kernel, clock_hz, **sizes))
        except KernelError as error:
            return f"no estimate: {error}"


class _Explorer:
    def __init__(self, overlays: Iterable[Any]) -> None:
        from pynq_torch.overlay import current_overlay

        given = list(overlays) or [current_overlay()]
        if given == [None]:
            raise KernelError("no overlay is loaded; call pynq_torch.load('vadd') first")
        self._loaded = {o.name: o for o in given if not isinstance(o, str)}
        self.choices: dict[str, dict[str, _Choice]] = {}
        everything = [triple for item in given for triple in _kernels(item)]
        for overlay, kernel, count in everything:
            found = find_case(kernel)
            if found is not None:
                choice = _Choice(kernel, overlay, count if shares(kernel) else 1, *found)
                self.choices.setdefault(choice.case.function, {}).setdefault(kernel, choice)
        if not self.choices:
            raise KernelError(
                "there is no kernel that the explorer has data for, only: "
                f"{', '.join(dict.fromkeys(name for _, name, _ in everything)) or 'none'}; "
                "load vadd or gemm, for example"
            )

    def start(self, function: str, kernel: str, size: int | None, dtype: str) -> dict[str, Any]:
        """Return the values to begin with, checked."""
        if kernel and not function:
            function = next((f for f, ks in self.choices.items() if kernel in ks), "")
            if not function:
                known = ", ".join(k for kernels in self.choices.values() for k in kernels)
                raise KernelError(f"kernel is {kernel!r}; expected one of {known}")
        function = _known("function", function or next(iter(self.choices)), self.choices)
        kernels = self.choices[function]
        kernel = _known("kernel", kernel or next(iter(kernels)), kernels)
        case, dtypes = kernels[kernel].case, kernels[kernel].dtypes
        middle = case.sizes[len(case.sizes) // 2]
        return {
            "function": function,
            "kernel": kernel,
            "size": _known("size", middle if size is None else size, case.sizes),
            "dtype": _known("dtype", dtype or dtypes[0], dtypes),
        }

    def panel(self, start: dict[str, Any]) -> Panel:
        widgets = ipywidgets()
        kernels = self.choices[start["function"]]
        first = kernels[start["kernel"]]
        options = {"function": list(self.choices), "kernel": list(kernels), "dtype": first.dtypes}
        controls = {
            name: widgets.Dropdown(options=values, value=start[name], description=name)
            for name, values in options.items()
        }
        look = {"description": "size", "continuous_update": False}  # each value is a run
        controls["size"] = widgets.SelectionSlider(
            options=first.case.sizes, value=start["size"], **look
        )

        def other_function(_: Any) -> None:
            values = self.start(panel.values()["function"], "", None, "")
            kernels = self.choices[values["function"]]
            first = kernels[values["kernel"]]
            panel.change(
                kernel={"options": list(kernels), "value": first.kernel},
                size={"options": first.case.sizes, "value": values["size"]},
            )
            other_kernel(None)

        def other_kernel(_: Any) -> None:
            values = panel.values()
            dtypes = self.choices[values["function"]][values["kernel"]].dtypes
            kept = values["dtype"] if values["dtype"] in dtypes else dtypes[0]
            panel.change(dtype={"options": dtypes, "value": kept})

        reactions = {"function": other_function, "kernel": other_kernel}
        panel = Panel(self.draw, controls, on_change=reactions)
        return panel

    def draw(self, function: str, kernel: str, size: int, dtype: str) -> Picture:
        """Run a kernel, check the result, and draw how long it and the others take."""
        choice = self.choices[function][kernel]
        overlay = self._overlay(choice.overlay)
        units = overlay.kernels.of(kernel)[: choice.units]
        trial = choice.case.trial(units, size, dtype)
        with contextlib.redirect_stdout(io.StringIO()):  # a callback's prints go nowhere
            verdict = verify.close(trial.run(), trial.baseline(), trial.rtol, trial.atol, kernel)
        clock_hz = overlay.clock_hz
        runs = [other.latency(size, clock_hz) for other in self.choices[function].values()]
        pl = timing.measure(trial.run, REPEAT, label=choice.label, device=units[0].device)
        cpu = timing.measure(trial.baseline, REPEAT, label="torch", on="cpu")
        drawn = figure()
        left, right = drawn.subplots(1, 2)
        plot.times(runs, title=f"on the board: {function}, {size:,}", ax=left)
        for label in left.get_xticklabels():
            chosen = label.get_text().split("\n")[0] == choice.label
            label.set_fontweight("bold" if chosen else "normal")
        plot.times([pl, cpu], title=f"{dtype}, wall clock of this machine", ax=right)
        right.set_xlabel(right.get_xlabel().replace("; ", "\n"), fontsize=11)
        known = (
            f"{round(own.seconds * clock_hz):,} cycles, {own.provenance}"
            for own in choice.latencies(size, clock_hz).values()
        )
        return Picture(
            drawn,
            f"{verdict}\n{choice.label} of overlay {choice.overlay}, {size:,} "
            f"{choice.case.size_text}, {dtype}: {'; '.join(known)}\n"
            f"{choice.schedule(size, clock_hz)}",
        )

    def _overlay(self, name: str) -> Any:
        """Return an overlay that is in the PL, by loading it where it was given by name."""
        from pynq_torch.overlay import load

        found = self._loaded.get(name)
        if found is None or not found.is_loaded():
            found = self._loaded[name] = load(name)
        return found


def _kernels(overlay: Any) -> list[tuple[str, str, int]]:
    """Return (overlay, kernel, units) for the kernels of an overlay, which need not be loaded."""
    if not isinstance(overlay, str):
        found = Counter(driver.kernel_name for driver in overlay.kernels.values())
        return [(overlay.name, kernel, count) for kernel, count in found.items()]
    from pynq_torch.overlay import find_overlay

    find_overlay(overlay)  # says what there is where there is no such overlay
    from pynq_torch.kernels.library import overlays_with

    return [
        (overlay, k, where[overlay]) for k, where in overlays_with().items() if overlay in where
    ]


def _known(name: str, value: Any, known: Iterable[Any]) -> Any:
    if value not in known:
        raise KernelError(f"{name} is {value!r}; expected one of {', '.join(map(str, known))}")
    return value
