"""From typed arguments and directives to an interface: which port each argument becomes."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pynq_torch.errors import InterfaceError

from .constants import Constants
from .directives import Directive, Pragma, Settings, Wanted, contradictions, wanted_of
from .interface import Argument, AxiBundle, Axis, Interface, Partition, Register
from .registers import Placement, Slot, check_overlaps, lay_out
from .slots import Port, array_slots, member_slots, partition_of, pragmas_on, register_name
from .spelling import BLOCK_MODES, NUMBERS, OFFSETS, check_mode, is_width

__all__ = ["Port", "Ports"]

_DEFAULT_BUNDLE = {"vitis": "control", "vivado": "AXILiteS"}
_DEFAULT_MASTER = "gmem"
_HIGHEST_OFFSET = 1 << 32
_NO_VALID = ("ap_none", "ap_stable", "ap_ack")


@dataclass
class Ports:
    """Builds the interface; see :func:`pynq_torch.hls.parse.read_interface`."""

    directives: Sequence[Directive]
    settings: Settings
    pragmas: Sequence[Pragma]
    constants: Constants
    tool: str
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: What is wrong with the words of directives, so that there is no interface.
    refused: list[str] = field(default_factory=list)

    def interface(self, top: str, source: Path, ports: Sequence[Port]) -> Interface:
        """Return the interface of `top` with these arguments (return value first, if any)."""
        known = {port.name for port in ports} | {"return"}
        self.check(top, known)
        if self.refused:
            raise InterfaceError("\n".join(self.refused))
        wanted = {name: wanted_of(self.directives, name) for name in known}
        control = self._control(wanted["return"])
        bundle_of_control = self._control_bundle(wanted["return"])
        arguments: list[Argument] = []
        slots: dict[str, list[Slot]] = {} if bundle_of_control is None else {bundle_of_control: []}
        for port in ports:
            argument, own = self._argument(port, wanted[port.name], bundle_of_control)
            arguments.append(argument)
            if argument.bundle is not None:
                slots.setdefault(argument.bundle, []).extend(own)
        started_in = bundle_of_control if control != "ap_ctrl_none" else None
        bundles, places = self._lay_out(slots, started_in, wanted)
        placed = [
            replace(item, **vars(places.get((item.bundle or "", item.name), Placement())))
            for item in arguments
        ]
        return Interface(
            top=top,
            source=source,
            tool=self.tool,
            control=control,
            control_bundle=started_in,
            arguments=tuple(item for item in placed if item.index >= 0),
            returns=next((item for item in placed if item.index < 0), None),
            bundles=bundles,
            axi_bundles=self._masters(placed, wanted),
            notes=tuple(self.notes),
            warnings=tuple(dict.fromkeys([*self.settings.warnings, *self.warnings])),
        )

    def _lay_out(
        self, slots: dict[str, list[Slot]], started_in: str | None, wanted: dict[str, Wanted]
    ) -> tuple[dict[str, tuple[Register, ...]], dict[tuple[str, str], Placement]]:
        """Return each bundle's registers, and where each argument's first slot is."""
        bundles: dict[str, tuple[Register, ...]] = {}
        places: dict[tuple[str, str], Placement] = {}
        offset_at = {name: item.at.get("offset", "") for name, item in wanted.items()}
        for bundle, wishes in slots.items():
            registers, placements = lay_out(
                wishes,
                tool=self.tool,
                control=bundle == started_in,
                data64=bool(self.settings.flag("s_axilite_data64")),
                auto_restart=bool(self.settings.flag("s_axilite_auto_restart_counter")),
            )
            check_overlaps(bundle, registers, offset_at)
            bundles[bundle] = registers
            for slot in wishes:
                places.setdefault((bundle, slot.argument), placements[slot.name])
        return bundles, places

    # ---- directives -----------------------------------------------------------------------------

    def check(self, top: str, known: set[str]) -> None:
        """Check the words of the directives: what is ignored is a warning, what cannot be refused.

        `known` are the names of `top`'s arguments, and ``return``.
        """
        names = ", ".join(sorted(known - {"return"})) or "none"
        for directive in self.directives:
            where, port = directive.where, directive.port
            if not port:
                given = [word for word in directive.options if word in known]
                what = " ".join(filter(None, ("INTERFACE", directive.mode)))
                self.warnings.append(
                    f"{where}: {what} names no port and is ignored; "
                    f"write port={given[0] if given else 'NAME'}. "
                    f"{top} has return and the arguments: {names}"
                )
                continue
            if re.split(r"\.|->", port)[0] not in known:
                self.warnings.append(
                    f"{where}: INTERFACE names port {port!r}, which {top} does not have; its "
                    f"arguments: {names}"
                )
            try:
                self._check_words(directive)
            except InterfaceError as error:
                self.refused.append(str(error))
        self.directives = [directive for directive in self.directives if directive.port]
        self.warnings += contradictions(self.directives)

    def _check_words(self, directive: Directive) -> None:
        where, port = directive.where, directive.port
        self.warnings += check_mode(directive.mode, directive.options, where)
        if directive.mode in BLOCK_MODES and port != "return":
            raise InterfaceError(
                f"{where}: {directive.mode} of port {port!r}; it is a mode of port=return, "
                "since it starts the whole kernel"
            )
        self._check_numbers(directive)

    def _check_numbers(self, directive: Directive) -> None:
        for name, least in NUMBERS.items():
            text = directive.options.get(name, "")
            if text and not text.startswith("$") and not self.constants.check(text, least):
                raise InterfaceError(
                    f"{directive.where}: {name}={text} of port {directive.port!r}; expected a "
                    f"whole number of at least {least}"
                )
        widest = self.constants.number(directive.options.get("max_widen_bitwidth", ""))
        if widest is not None and not is_width(widest):
            self.warnings.append(
                f"{directive.where}: max_widen_bitwidth={widest} of port {directive.port!r} is "
                "neither 0 nor a power of two up to 1024, and is ignored"
            )

    def _offset(self, port: str, wanted: Wanted) -> int | None:
        """Return the offset that a directive fixes; raise where no 32-bit register can have it."""
        text = wanted.option("s_axilite", "offset")
        if text is None:
            return None
        where = wanted.at["offset"]
        if text.lower() in OFFSETS:
            self.warnings.append(
                f"{where}: offset={text} of {port!r} is an option of m_axi, and ignored for "
                "s_axilite"
            )
            return None
        offset = self.constants.number(text)
        if offset is None or not 0 <= offset < _HIGHEST_OFFSET or offset % 4:
            raise InterfaceError(
                f"{where}: offset={text} of argument {port!r}; expected a multiple of 4 below "
                f"{_HIGHEST_OFFSET:#x}, in bytes"
            )
        return offset

    def _control(self, wanted: Wanted) -> str:
        # The Vitis kernel flow pipelines starts: ap_ctrl_chain (UG1399, "Interfaces for Vitis
        # Kernel Flow").
        default = "ap_ctrl_chain" if self._kernel_flow() else "ap_ctrl_hs"
        return next((mode for mode in BLOCK_MODES if mode in wanted.modes), default)

    def _kernel_flow(self) -> bool:
        return self.tool == "vitis" and self.settings.flow_target == "vitis"

    def _control_bundle(self, wanted: Wanted) -> str | None:
        started = self._kernel_flow() and "ap_ctrl_none" not in wanted.modes
        return self._bundle(wanted) if started or "s_axilite" in wanted.modes else None

    def _bundle(self, wanted: Wanted) -> str:
        return wanted.option("s_axilite", "bundle") or self._default_bundle()

    def _default_bundle(self) -> str:
        default = _DEFAULT_BUNDLE[self.tool]
        named = {
            directive.options.get("bundle", "").lower()
            for directive in self.directives
            if directive.mode == "s_axilite"
        }
        # A bundle that the source calls "control" takes the name from the default one.
        return default + "_r" if self.tool == "vitis" and default in named else default

    # ---- arguments ------------------------------------------------------------------------------

    def _argument(
        self, port: Port, wanted: Wanted, control_bundle: str | None
    ) -> tuple[Argument, list[Slot]]:
        ctype, modes = port.ctype, wanted.modes
        base = Argument(
            name=port.name,
            index=port.index,
            ctype=ctype.spelling,
            kind="none",
            direction=port.direction,
            width=ctype.bits,
            length=math.prod(ctype.dims) if ctype.dims else None,
        )
        if ctype.dims and ctype.form != "stream":
            base = replace(base, partition=self._partition(port, modes))
        if "m_axi" in modes:
            _check_m_axi(port, wanted)
        if port.index < 0:
            slot = Slot("ap_return", "return", "out", base.width, valid=False)
            placed = replace(base, kind="scalar", bundle=control_bundle)
            return (base, []) if control_bundle is None else (placed, [slot])
        if port.unknown:
            self._note_unknown(port, modes)
            if "axis" in modes:
                return replace(base, kind="axis", width=0, axis=Axis(0)), []
        if ctype.form == "burst_maxi" or "m_axi" in modes:
            return self._m_axi(port, base, wanted)
        if ctype.form == "stream" or "axis" in modes:
            if "s_axilite" in modes:
                self.warnings.append(
                    f"{wanted.at['s_axilite']}: s_axilite of argument {port.name!r}, a stream, has "
                    "no register and is ignored; write axis"
                )
            return _streamed(port, base, self.constants.number(wanted.option("axis", "depth"))), []
        default = self._kernel_flow() and not modes
        if "s_axilite" in modes or (default and port.by_value):
            return self._s_axilite(port, base, wanted)
        if default and not ctype.reference:
            return self._m_axi(port, base, wanted)
        return base, []

    def _note_unknown(self, port: Port, modes: Container[str]) -> None:
        if "s_axilite" in modes and "m_axi" not in modes:
            raise InterfaceError(
                f"the type of argument {port.name!r} is not known, and its registers depend "
                f"on it: {port.unknown}. Give the folder of the header with include_dirs (-I)"
            )
        # Behind an AXI master or a stream the type changes no register.
        self.notes.append(f"{port.name}: type not known ({port.unknown})")

    def _partition(self, port: Port, modes: Container[str]) -> Partition | None:
        found = partition_of(port, self.pragmas, self.constants.number)
        if found is not None and "s_axilite" not in modes:
            self.warnings.append(
                f"{found.where}: ARRAY_PARTITION of argument {port.name!r} makes {found.pieces} "
                f"ports of it ({port.name}_0, ...), which are not followed; copy it into a local "
                "array and partition that"
            )
        return found

    def _m_axi(self, port: Port, base: Argument, wanted: Wanted) -> tuple[Argument, list[Slot]]:
        master = wanted.option("m_axi", "bundle") or _DEFAULT_MASTER
        depth = self.constants.number(wanted.option("m_axi", "depth"))
        base = replace(
            base,
            kind="burst_maxi" if port.ctype.form == "burst_maxi" else "m_axi",
            m_axi_bundle=master,
            width=port.ctype.storage_bits or port.ctype.bits,
            length=base.length or depth,
        )
        # UG902: without offset= there is no address port at all; Vitis' default is slave.
        default = self.settings.options.get("m_axi_offset")
        default = default or ("slave" if self.tool == "vitis" else "off")
        offset = (wanted.option("m_axi", "offset") or default).lower()
        if offset != "slave" and "s_axilite" not in wanted.modes:
            self.notes.append(
                f"{port.name}: offset={offset}, so its base address is no register "
                "(address 0, or a port of its own)"
            )
            return base, []
        name = register_name(port, self.tool)
        # The register of a pointer and its master must have different names.
        if master.lower() in (name.lower(), port.name.lower()):
            name = f"{name}_r" if name != port.name else f"{name}_offset"
        fixed = self._offset(port.name, wanted)
        slot = Slot(name, port.name, "in", self._address_bits(), offset=fixed)
        return replace(base, bundle=self._address_bundle(wanted)), [slot]

    def _address_bundle(self, wanted: Wanted) -> str:
        """Return the bundle of an address register."""
        # With an offset=slave of its own Vitis HLS opens its default bundle. Where the tool puts
        # the slave in by itself, and always in Vivado HLS, it joins the only bundle there is.
        own = self.tool == "vitis" and wanted.option("m_axi", "offset") is not None
        if own or "s_axilite" in wanted.modes:
            return self._bundle(wanted)
        named = {
            directive.options.get("bundle") or self._default_bundle()
            for directive in self.directives
            if directive.mode == "s_axilite"
        }
        return named.pop() if len(named) == 1 else self._default_bundle()

    def _address_bits(self) -> int:
        flag = self.settings.flag("m_axi_addr64")
        return 64 if (self.tool == "vitis" if flag is None else flag) else 32

    def _s_axilite(self, port: Port, base: Argument, wanted: Wanted) -> tuple[Argument, list[Slot]]:
        ctype = port.ctype
        name = register_name(port, self.tool)
        offset = self._offset(port.name, wanted)
        valid = not any(mode in wanted.modes for mode in _NO_VALID)
        base = replace(base, bundle=self._bundle(wanted))
        if ctype.dims:
            if not base.length:
                raise InterfaceError(
                    f"{port.name}: an s_axilite array needs its size in the declaration, found "
                    f"{ctype.spelling}"
                )
            pieces = base.partition.pieces if base.partition is not None else 1
            if pieces > 1:
                self.notes.append(f"{port.name}: partitioned into {pieces} registers or windows")
            return replace(base, kind="memory"), array_slots(port, name, pieces, offset, valid)
        base = replace(base, kind="scalar" if port.by_value else "scalar_ptr")
        if ctype.form == "struct" and (
            self.tool == "vivado" or pragmas_on(self.pragmas, "disaggregate", port.name)
        ):
            self.notes.append(
                f"{port.name}: a struct whose members have registers of their own; "
                "offset is that of the first"
            )
            return base, member_slots(port, self.tool, valid)
        shape = "in" if port.by_value else port.direction
        return base, [Slot(name, port.name, shape, ctype.bits, valid, offset)]

    def _masters(
        self, arguments: Sequence[Argument], wanted: dict[str, Wanted]
    ) -> dict[str, AxiBundle]:
        members: dict[str, list[Argument]] = {}
        for argument in arguments:
            if argument.m_axi_bundle is not None:
                members.setdefault(argument.m_axi_bundle, []).append(argument)
        masters: dict[str, AxiBundle] = {}
        for name, group in members.items():
            # max_widen_bitwidth is taken at its word: whether the tool can follow it depends on the
            # accesses (UG1399, "Automatic Port Width Resizing"), and RTL beside the source can.
            allowed = (wanted[item.name].option("m_axi", "max_widen_bitwidth") for item in group)
            widths = [32, *(item.width for item in group)]
            widths += filter(is_width, (self.constants.number(text) or 0 for text in allowed))
            bits = 1 << (max(widths) - 1).bit_length()
            names = tuple(item.name for item in group)
            masters[name] = AxiBundle(name, bits, self._address_bits(), names)
        return masters


def _streamed(port: Port, base: Argument, depth: int | None) -> Argument:
    """Return an argument that is an ``hls::stream``, or an array or pointer in mode axis.

    A pointer to a struct with side channels has length 0: its packets end with TLAST. Another one
    has `depth` elements, or one.
    """
    ctype = port.ctype
    if ctype.form == "stream":
        axis = replace(ctype.axis or Axis(0), count=math.prod(ctype.dims))
        return replace(base, kind="axis", width=8 * axis.data_bytes, axis=axis)
    axis = ctype.packet or Axis(data_bytes=(ctype.bits + 7) // 8)
    packets = axis.has_last and not ctype.reference
    length = base.length or (0 if packets else depth or 1)
    return replace(base, kind="axis_array", axis=axis, length=length)


def _check_m_axi(port: Port, wanted: Wanted) -> None:
    """Refuse m_axi for a value or a stream: it needs memory (UG1399, "AXI4 Master Interface")."""
    form = port.ctype.form
    if form == "burst_maxi" or port.unknown:
        return
    if port.by_value or form == "stream":
        what = "the return value" if port.index < 0 else f"argument {port.name!r}"
        passed = "a stream" if form == "stream" else "passed by value"
        raise InterfaceError(
            f"{wanted.at['m_axi']}: m_axi of {what}, {port.ctype.spelling}, {passed}; expected a "
            "pointer, an array or a reference to data"
        )
