"""The processor's address map with an overlay loaded, as a table and a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from html import escape
from typing import Any

from .panel import html_table, ipywidgets, shows_errors
from .register_view import RegisterView

__all__ = ["MemoryMap", "Range"]

#: DDR of a Zynq-7000 starts at 0 (UG585, table 4-1); a PYNQ-Z2 has 512 MB.
DDR_BYTES = 512 << 20
_COLOURS = {"DDR": "#56B4E9", "kernel": "#009E73", "IP": "#E69F00", "memory": "#CC79A7"}


@dataclass(frozen=True)
class Range:
    """A range of physical addresses.

    Parameters
    ----------
    base, nbytes : int
        Where and how long.
    name : str
        The IP's or memory's name.
    kind : {"DDR", "kernel", "IP", "memory"}
        A kernel is an IP made by HLS.
    what : str
        Its VLNV or a word.
    """

    base: int
    nbytes: int
    name: str
    kind: str
    what: str = ""

    @property
    def end(self) -> int:
        """The last address."""
        return self.base + self.nbytes - 1

    @property
    def size(self) -> str:
        """How long it is, in the largest unit that divides it."""
        for limit, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
            if self.nbytes >= limit and not self.nbytes % limit:
                return f"{self.nbytes // limit} {unit}"
        return f"{self.nbytes} B"


class MemoryMap:
    """The address map with an overlay, as text and HTML.

    Parameters
    ----------
    overlay : pynq.Overlay
        The overlay.

    Attributes
    ----------
    ranges : tuple of Range
        In order of address.
    """

    def __init__(self, overlay: Any) -> None:
        self._overlay = overlay
        found = [Range(0, DDR_BYTES, "DDR", "DDR", "memory of the processing system")]
        for name, entry in overlay.ip_dict.items():
            nbytes = int(entry.get("addr_range") or 0)
            if not nbytes:
                continue  # the processing system itself
            fields = (entry.get("registers") or {}).get("CTRL", {}).get("fields", {})
            kind = "kernel" if "AP_START" in fields else "IP"
            found.append(Range(int(entry["phys_addr"]), nbytes, name, kind, entry["type"]))
        for name, entry in overlay.mem_dict.items():
            base, nbytes = entry.get("phys_addr"), int(entry.get("addr_range") or 0)
            if base and nbytes and not any(r.base == base for r in found):
                found.append(Range(int(base), nbytes, name, "memory", entry.get("type", "")))
        self.ranges = tuple(sorted(found, key=lambda r: r.base))

    def __repr__(self) -> str:
        width = max(len(r.name) for r in self.ranges)
        return "\n".join(
            f"0x{r.base:08x} - 0x{r.end:08x}  {r.size:>7}  {r.name:<{width}}  {r.what}".rstrip()
            for r in self.ranges
        )

    def _repr_html_(self) -> str:
        header = ("from", "to", "size", "name", "what")
        rows = [(f"0x{r.base:08x}", f"0x{r.end:08x}", r.size, r.name, r.what) for r in self.ranges]
        return f"<div>{self._drawing()}{html_table(header, rows)}</div>"

    def _drawing(self) -> str:
        """Draw the ranges one above the other; heights are not to scale."""
        height = 26
        total = height * len(self.ranges)
        parts = [
            f'<svg width="460" height="{total + 4}" role="img" '
            'aria-label="address map, heights not to scale">'
        ]
        for index, r in enumerate(reversed(self.ranges)):
            y = 2 + index * height
            parts.append(
                f'<rect x="110" y="{y}" width="220" height="{height - 2}" '
                f'fill="{_COLOURS[r.kind]}"/>'
                f'<text x="220" y="{y + 16}" text-anchor="middle" font-size="13">'
                f"{escape(r.name)}</text>"
                f'<text x="104" y="{y + 16}" text-anchor="end" font-size="12" '
                f'font-family="monospace">0x{r.base:08x}</text>'
                f'<text x="336" y="{y + 16}" font-size="12">{r.size}, {r.kind}</text>'
            )
        return "".join([*parts, "</svg>"])

    def controls(self) -> Any:
        """Return the view as a widget: choose an IP and see its registers."""
        widgets = ipywidgets()
        names = [
            r.name for r in self.ranges if self._overlay.ip_dict.get(r.name, {}).get("registers")
        ]
        picture = widgets.HTML(self._repr_html_())
        if not names:
            return picture
        choice = widgets.Dropdown(options=["", *names], value="", description="Registers")
        table = widgets.HTML("")

        def show(change: Any) -> None:
            name = change["new"]
            ip = reduce(getattr, name.split("/"), self._overlay) if name else None
            table.value = RegisterView(ip)._repr_html_() if name else ""

        choice.observe(shows_errors(table, show), names="value")
        return widgets.VBox([picture, choice, table])
