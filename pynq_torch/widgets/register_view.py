"""A register map as a table, with controls where the notebook is live."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from .panel import html_table, ipywidgets, shows_errors

__all__ = ["RegisterRow", "RegisterView", "read_registers"]


@dataclass(frozen=True)
class RegisterRow:
    """One register at the moment it was read.

    Parameters
    ----------
    offset : int
        In bytes.
    name, access, description : str
        From the hardware handoff.
    value : int or None
        ``None`` where it cannot be read, or was not (an array's window).
    fields : tuple of (str, int, int)
        Name, value and width of each field that is not reserved.
    """

    offset: int
    name: str
    access: str
    description: str
    value: int | None
    fields: tuple[tuple[str, int, int], ...] = ()

    @property
    def at(self) -> str:
        """The offset in hexadecimal."""
        return f"0x{self.offset:02x}"

    @property
    def value_text(self) -> str:
        """The value in hexadecimal, or why there is none."""
        if self.value is None:
            return "(write-only)" if self.access == "write-only" else "(array)"
        return f"0x{self.value:08x}"

    @property
    def fields_text(self) -> str:
        """The fields, where there is more than one: set bits by name, wider ones with a value."""
        shown = [
            name if width == 1 else f"{name}={value}" for name, value, width in self.fields if value
        ]
        return ", ".join(shown) if len(self.fields) > 1 else ""


def read_registers(ip: Any) -> Iterator[RegisterRow]:
    """Read the registers of an IP, each once, in order of offset."""
    registers = getattr(ip, "_registers", None) or {}
    for name, entry in sorted(registers.items(), key=lambda item: item[1]["address_offset"]):
        offset, access = int(entry["address_offset"]), entry.get("access", "read-write")
        fields = entry.get("fields") or {}
        readable = access != "write-only" and any(
            f.get("access") != "write-only" for f in fields.values() or [{}]
        )
        value = None
        if readable and not name.startswith("Memory_") and offset + 4 <= ip.mmio.length:
            value = int(ip.mmio.read(offset))
        bits = []
        for field, where in fields.items():
            if value is not None and not field.upper().startswith("RESERVED"):
                mask = (1 << where["bit_width"]) - 1
                bits.append((field, value >> where["bit_offset"] & mask, int(where["bit_width"])))
        text = entry.get("description", "")
        yield RegisterRow(offset, name, access, text, value, tuple(bits))


class RegisterView:
    """The registers of an IP, as text and HTML.

    Parameters
    ----------
    ip : object
        An IP of an overlay.

    Attributes
    ----------
    rows : tuple of RegisterRow
        As read when the view was made.
    """

    def __init__(self, ip: Any) -> None:
        if not getattr(ip, "_registers", None):
            raise ValueError(
                f"{getattr(ip, '_fullpath', type(ip).__name__)} lists no registers: its hardware "
                "handoff has none for it; read it with ip.mmio.read(offset)"
            )
        self._ip = ip
        self.name: str = ip._fullpath
        self.base: int = int(ip.mmio.base_addr)
        self.rows = tuple(read_registers(ip))

    def refresh(self) -> RegisterView:
        """Read every register again."""
        self.rows = tuple(read_registers(self._ip))
        return self

    def __repr__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = [
            f"  {row.at:>6}  {row.name:<{width}}  {row.value_text:<12}  {row.fields_text}".rstrip()
            for row in self.rows
        ]
        return "\n".join([f"{self.name} at 0x{self.base:08x}", *lines])

    def _repr_html_(self) -> str:
        head = f"<b>{escape(self.name)}</b> at <code>0x{self.base:08x}</code>"
        header = ("offset", "register", "value", "fields", "description")
        rows = [(r.at, r.name, r.value_text, r.fields_text, r.description) for r in self.rows]
        return f"<div>{head}{html_table(header, rows)}</div>"

    def controls(self) -> Any:
        """Return the view as a widget: read again, and write a register."""
        widgets = ipywidgets()
        table = widgets.HTML(self._repr_html_())
        again = widgets.Button(description="Read again")
        writable = [row for row in self.rows if row.access != "read-only"]
        choice = widgets.Dropdown(
            options=[(row.name, row.offset) for row in writable], description="Register"
        )
        value = widgets.Text(value="0x0", description="Value")
        write = widgets.Button(description="Write", disabled=not writable)
        message = widgets.HTML("")

        def show(_: Any = None) -> None:
            table.value = self.refresh()._repr_html_()

        def put(_: Any) -> None:
            try:
                number = int(value.value, 0)
            except ValueError:
                message.value = f"{escape(value.value)!r} is no number; write 1 or 0x1"
                return
            if not 0 <= number < 1 << 32:
                message.value = f"{number} does not fit a register of 32 bits"
                return
            self._ip.mmio.write(choice.value, number)
            message.value = f"0x{number:x} written to offset 0x{choice.value:02x}"
            show()

        again.on_click(shows_errors(message, show))
        write.on_click(shows_errors(message, put))
        rows = [table, widgets.HBox([again])]
        if writable:
            rows.append(widgets.HBox([choice, value, write]))
        return widgets.VBox([*rows, message])
