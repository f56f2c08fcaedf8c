"""A window of signals as a picture: WaveDrom's SVG, and the same as text.

Cycles in which none of the signals shown changes are folded into a gap, so that a run of hundreds
of cycles fits a page when a few of its signals are chosen.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pynq_torch.errors import WaveError, needs

if TYPE_CHECKING:
    from pynq_torch.board.rtl.observe.wave_file import Value, WaveFile

__all__ = ["MAX_COLUMNS", "WavePicture", "picture", "value_text"]

#: More would be too small to read.
MAX_COLUMNS = 96
#: Signals that are chosen where nobody chooses any.
_DEFAULT_SIGNALS = 17
#: Width of a WaveDrom column and of a character in it, in pixels; the slopes of a bus take some.
_COLUMN, _CHARACTER, _SLOPES = 40, 7, 14

Radix = str | Callable[[int], str]


def value_text(value: Value, width: int, radix: Radix = "") -> str:
    """Return a bus's value as a picture shows it.

    Parameters
    ----------
    value : int or str
        A number, or bits with ``x`` and ``z``.
    width : int
        Bits of the signal.
    radix : {"", "hex", "dec", "signed", "bin", "float"} or callable
        ``""``: hexadecimal from 8 bits on. ``"float"``: 32 or 64 bits as IEEE 754.

    Examples
    --------
    >>> value_text(0x3FC00000, 32, "float"), value_text(255, 8, "signed"), value_text(12, 4)
    ('1.5', '-1', '12')
    """
    if isinstance(value, str):
        return value if len(value) <= 8 else "x"
    if callable(radix):
        return radix(value)
    if radix == "dec" or (not radix and width < 8):
        return str(value)
    if radix in ("", "hex"):
        return f"{value:x}"
    if radix == "bin":
        return f"{value:0{width}b}"
    if radix == "signed":
        return str(value - (1 << width) if value >> (width - 1) else value)
    if radix == "float" and width in (32, 64):
        form = "<f" if width == 32 else "<d"
        return f"{struct.unpack(form, value.to_bytes(width // 8, 'little'))[0]:.4g}"
    raise WaveError(
        f"radix {radix!r} does not fit {width} bits; "
        "expected 'hex', 'dec', 'signed', 'bin', a function, or 'float' for 32 or 64 bits"
    )


@dataclass(frozen=True)
class Lane:
    """One signal in a picture: its values, one a column; ``None`` continues over a gap."""

    name: str
    width: int
    texts: tuple[str, ...]
    group: str = ""

    @property
    def is_bit(self) -> bool:
        """Whether it is drawn as a level."""
        return self.width == 1


@dataclass(repr=False, eq=False)
class WavePicture:
    """Signals over cycles, fixed: it shows as SVG in a notebook and as text elsewhere.

    Parameters
    ----------
    lanes : sequence of Lane
        The signals, each with a text for every column.
    columns : sequence of int or None
        The cycle of each column; ``None`` is a gap.
    title, note : str
        Above the picture, and below it.
    origin : int
        The cycle that is numbered 0.
    """

    lanes: Sequence[Lane]
    columns: Sequence[int | None]
    title: str = ""
    note: str = ""
    origin: int = 0

    # ---- WaveDrom ------------------------------------------------------------------------------

    @property
    def wavedrom(self) -> dict[str, Any]:
        """The source that WaveDrom draws, e.g. for its editor at wavedrom.com."""
        numbers = self._numbers()
        signal: list[Any] = [{"name": "cycle", "wave": "2" * len(numbers), "data": numbers}]
        groups: dict[str, list[Any]] = {}
        for lane in self.lanes:
            if lane.group and lane.group not in groups:
                groups[lane.group] = [lane.group]
                signal.append(groups[lane.group])
            (groups[lane.group] if lane.group else signal).append(self._wave(lane))
        around = {"head": self.title, "foot": self.note}
        made = {place: {"text": text} for place, text in around.items() if text}
        return {"signal": signal, "config": {"hscale": self._scale()}, **made}

    def _numbers(self) -> list[str]:
        return ["..." if cycle is None else str(cycle - self.origin) for cycle in self.columns]

    def _wave(self, lane: Lane) -> dict[str, Any]:
        wave, data, last = "", [], None
        for cycle, text in zip(self.columns, lane.texts, strict=True):
            if cycle is None:
                wave += "|"
            elif text == last:
                wave += "."
            elif lane.is_bit or set(text) <= {"x"}:
                wave += text[0] if text[:1] in ("0", "1", "x", "z") else "x"
            else:
                wave += "="
                data.append(text)
            last = last if cycle is None else text
        return {"name": lane.name, "wave": wave} | ({"data": data} if data else {})

    def _scale(self) -> int:
        """How many times as wide as usual columns are, so that values fit."""
        numbers = max((len(text) for text in self._numbers()), default=0)
        need = (numbers * _CHARACTER + _SLOPES) / _COLUMN
        for lane in (lane for lane in self.lanes if not lane.is_bit):
            for text, length in _runs(self.columns, lane.texts):
                need = max(need, (len(text) * _CHARACTER + _SLOPES) / (_COLUMN * length))
        return min(3, max(1, -int(-need // 1)))

    @property
    def svg(self) -> str:
        """The picture as SVG.

        Raises
        ------
        WaveError
            The package ``wavedrom`` is not installed.
        """
        with needs("wavedrom", "Drawing waves", WaveError):
            import wavedrom
        drawing = wavedrom.WaveDrom().render_waveform(0, self.wavedrom, [])
        drawing["style"] = "max-width:100%;height:auto;background:white"
        return str(drawing.tostring())

    def save(self, path: Any) -> None:
        """Write the SVG to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str | None:
        try:
            return self.svg
        except WaveError:
            return None  # the text remains

    # ---- text ----------------------------------------------------------------------------------

    def __str__(self) -> str:
        label = max(len(name) for name in ("cycle", *(lane.name for lane in self.lanes)))
        texts = [self._numbers(), *(lane.texts for lane in self.lanes if not lane.is_bit)]
        cell = min(max((len(text) for column in texts for text in column), default=1), 12) + 1
        lines = [self.title] if self.title else []
        numbers = "".join(
            " ~ " if cycle is None else number.ljust(cell)
            for cycle, number in zip(self.columns, self._numbers(), strict=True)
        )
        shown = [("cycle", numbers), *((lane.name, self._line(lane, cell)) for lane in self.lanes)]
        lines += [f"{name:<{label}}  {line}".rstrip() for name, line in shown]
        return "\n".join([*lines, *([self.note] if self.note else [])])

    __repr__ = __str__

    def _line(self, lane: Lane, cell: int) -> str:
        line, last = "", None
        for cycle, text in zip(self.columns, lane.texts, strict=True):
            if cycle is None:
                line += " ~ "
            elif lane.is_bit:
                line += {"0": "▁", "1": "▔"}.get(text, "x") * cell
            else:
                line += (text if text != last else "").ljust(cell)[:cell]
            last = last if cycle is None else text
        return line


def _runs(columns: Sequence[int | None], texts: Sequence[str]) -> list[tuple[str, int]]:
    """Return each value with the number of columns it lasts."""
    runs: list[tuple[str, int]] = []
    for cycle, text in zip(columns, texts, strict=True):
        if runs and (cycle is None or runs[-1][0] == text):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((text, 1))
    return runs


def picture(
    waves: WaveFile,
    signals: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    cycles: tuple[int, int] | None = None,
    *,
    fold: bool = True,
    radix: Radix | Mapping[str, Radix] = "",
    origin: int = 0,
    title: str = "",
) -> WavePicture:
    """Return the picture of a window of signals.

    Parameters
    ----------
    waves : WaveFile
        Where they are.
    signals : sequence of str, or mapping of str to sequence of str
        Their names, from top to bottom; a mapping makes groups. Default: those of the unit's
        control, then its first ports.
    cycles : (int, int), optional
        The first cycle and the one after the last. Default: the whole file.
    fold : bool
        Make a gap of cycles in which nothing shown changes.
    radix : str, callable, or mapping of str to those
        How buses are written, of all or by signal; see `value_text`.
    origin : int
        The cycle that is numbered 0, also in `cycles`.
    title : str
        Above the picture.

    Raises
    ------
    WaveError
        A signal is not there, the window is empty or too wide to be read.
    """
    groups = _groups(waves, signals)
    window = waves.window(None if cycles is None else (cycles[0] + origin, cycles[1] + origin))
    read = [
        (group, name, waves.signal(name).width, waves.values(name, (window.start, window.stop)))
        for group, names in groups.items()
        for name in names
    ]
    columns = _columns(window, [values for *_, values in read], fold)
    if len(columns) > MAX_COLUMNS:
        raise WaveError(
            f"the window of {len(window)} cycles needs {len(columns)} columns; expected at most "
            f"{MAX_COLUMNS}: choose fewer cycles, or signals that change less often"
        )
    lanes = []
    for group, name, width, values in read:
        chosen = radix.get(name, "") if isinstance(radix, Mapping) else radix
        texts = _texts(columns, values, window.start, width, chosen)
        lanes.append(Lane(name, width, tuple(texts), group))
    return WavePicture(lanes, columns, title, origin=origin)


def _texts(
    columns: Sequence[int | None], values: Sequence[Value], first: int, width: int, radix: Radix
) -> Iterator[str]:
    """Yield what each column says; a gap repeats the column before it."""
    text = ""
    for cycle in columns:
        if cycle is not None:
            value = values[cycle - first]
            text = str(value) if width == 1 else value_text(value, width, radix)
        yield text


def _groups(waves: WaveFile, signals: Any) -> dict[str, list[str]]:
    chosen = default_signals(waves) if signals is None else signals
    if isinstance(chosen, str):
        chosen = [chosen]
    if not isinstance(chosen, Mapping):
        chosen = {"": chosen}
    return {str(group): list(names) for group, names in chosen.items()}


def default_signals(waves: WaveFile) -> list[str]:
    """Return the signals of a unit that one looks at first."""
    names = [name for name in waves.signals if "." not in name]
    control = [name for name in ("ap_start", "ap_done", "ap_idle") if name in names]
    shaken = [name for name in names if name.upper().endswith(("VALID", "READY"))]
    # Memory ports and streams before registers: of those only the start is of interest, which
    # ap_start shows.
    shaken.sort(key=lambda name: name.startswith("s_axi"))
    others = [name for name in names if name not in {"ap_clk", *control, *shaken}]
    return [*control, *shaken, *others][:_DEFAULT_SIGNALS]


def _columns(window: range, lanes: Sequence[Sequence[Value]], fold: bool) -> list[int | None]:
    """Return the cycles that are shown, with ``None`` where cycles were left out."""
    columns: list[int | None] = []
    index = 0
    while index < len(window):
        columns.append(window[index])
        quiet = index = index + 1
        while quiet < len(window) and all(v[quiet] == v[quiet - 1] for v in lanes):
            quiet += 1
        # One cycle more before the gap, so that a value is beside it and not in it.
        if fold and quiet - index >= 3:
            columns += [window[index], None]
            index = quiet
    return columns
