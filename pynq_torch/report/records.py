"""Numbers that notebooks record, so that runs can be compared.

A number goes into the metadata of the cell's output, where papermill, nbconvert and git keep it; a
line of text tells the reader.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pynq_torch.errors import PynqTorchError
from pynq_torch.timing import KINDS, Duration

__all__ = ["METADATA", "Record", "ReportError", "record", "record_run", "records_of"]

#: Key in an output's metadata.
METADATA = "pynq_torch_record"
BETTER = ("lower", "higher")
#: Units of which less is better; of rates (".../s") and speed-ups more is.
_COSTS = ("s", "ms", "us", "µs", "ns", "cycles", "bytes", "DSP", "BRAM", "LUT", "FF", "ulp")
_GAINS = ("x",)


class ReportError(PynqTorchError):
    """A report was asked for something that no notebook can do, or that is not there."""


@dataclass(frozen=True)
class Record:
    """A number with its provenance.

    Attributes
    ----------
    name : str
        What it is; the same in every run that is to be compared.
    value : float
        Finite.
    unit : str
        E.g. ``"s"``, ``"cycles"``, ``"GMAC/s"``; empty for a plain number.
    kind : {"measured", "cycles", "model"}
        Wall clock or an observed result; counted in RTL; computed from a model.
    better : {"lower", "higher"}
        Whether less or more is an improvement.
    where : str
        Where the wall clock ran, for measured durations; empty otherwise.
    """

    name: str
    value: float
    unit: str
    kind: str
    better: str
    where: str = ""

    @property
    def text(self) -> str:
        """The value with its unit; a whole number, e.g. of cycles, with all its digits."""
        whole = self.value % 1 == 0 and abs(self.value) < 1e15
        return f"{self.value:{'.0f' if whole else '.4g'}} {self.unit}".rstrip()

    def __str__(self) -> str:
        number = f"{self.value:.6g} {self.unit}".rstrip()
        place = f", {self.where}" if self.where else ""
        return f"recorded {self.name} = {number} ({self.kind}{place})"


def record(
    name: str, value: float | Duration, unit: str = "", kind: str = "", *, better: str = ""
) -> None:
    """Record a number of this notebook for the report, and print it.

    Parameters
    ----------
    name : str
        What it is, unique in the notebook; ``"vadd_4/time"`` reads well in a table.
    value : float or Duration
        A :class:`~pynq_torch.timing.Duration` brings its unit (s), its kind and where it was
        measured.
    unit : str
        See `Record`; empty for a plain number such as an accuracy.
    kind : {"measured", "cycles", "model"}
        Needed unless `value` is a Duration.
    better : {"lower", "higher"}
        Default: by the unit. Needed where the unit does not tell, e.g. for an accuracy.

    Raises
    ------
    ReportError
        The number is not finite, or its kind or what is better is not said.
    """
    where = ""
    if isinstance(value, Duration):
        if unit or kind:
            raise ReportError(f"record {name!r}: a Duration has a unit and a kind of its own")
        unit, kind, where, value = "s", value.kind, value.where, value.seconds
    if not better and unit in _COSTS:
        better = "lower"
    elif not better and (unit in _GAINS or unit.endswith("/s")):
        better = "higher"
    found = Record(name, float(value), unit, kind, better, where)
    if problem := _problem(found):
        raise ReportError(f"record {name!r}: {problem}")
    _show(found)


def _problem(found: Record) -> str:
    """Return why a number cannot be recorded; empty where it can."""
    if not found.name.strip() or found.name != found.name.strip():
        return "expected a name without blanks around it"
    if found.kind not in KINDS:
        return f"kind is {found.kind!r}; expected one of {', '.join(KINDS)}"
    if not math.isfinite(found.value):
        return f"value is {found.value}; expected a finite number"
    if found.better in BETTER:
        return ""
    what = f"better is {found.better!r}"
    if not found.better:
        what = f"unit {found.unit!r} does not say what is better"
    return f"{what}; expected better='lower' or 'higher'"


def record_run(name: str, run: Any) -> None:
    """Record the cycles of a kernel's run, or print that this board counts none.

    Parameters
    ----------
    name : str
        See `record`.
    run : pynq_torch.board.hls_ip.Run or None
        A kernel's ``last_run``. Board ``rtl`` counts cycles, or takes them from the model of a
        kernel that has no RTL; the record's kind says which.

    Raises
    ------
    ReportError
        See `record`.
    """
    cycles = getattr(run, "cycles", None)
    if cycles is None:
        print(f"{name}: not recorded, this board counts no cycles")
        return
    record(name, cycles, "cycles", run.kind.split()[0])  # "cycles (RTL, AP_START to ap_done)"


def _show(recorded: Record) -> None:
    """Display the record where a notebook listens, print it elsewhere."""
    import sys

    interactive = sys.modules.get("IPython")
    if interactive is None or interactive.get_ipython() is None:
        print(recorded)
        return
    from IPython.display import display

    display({"text/plain": str(recorded)}, raw=True, metadata={METADATA: asdict(recorded)})


def records_of(notebook: Mapping[str, Any]) -> Iterator[Record]:
    """Yield the records in the outputs of an executed notebook, in order.

    Parameters
    ----------
    notebook : mapping
        As nbformat or json reads it.

    Raises
    ------
    ReportError
        A record's metadata is not what `record` writes, or two have the same name.
    """
    seen: set[str] = set()
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            found = output.get("metadata", {}).get(METADATA)
            if found is None:
                continue
            try:
                recorded = Record(**found)
            except TypeError as error:
                raise ReportError(f"record {dict(found)}: {error}") from error
            if recorded.name in seen:
                raise ReportError(f"record {recorded.name!r} is there twice; expected unique names")
            seen.add(recorded.name)
            yield recorded
