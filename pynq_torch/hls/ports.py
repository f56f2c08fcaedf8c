"""From typed arguments and directives to an interface: which port each argument becomes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pynq_torch.errors import InterfaceError

from .cpptypes import CType
from .directives import Directive, Pragma, Settings
from .interface import Argument, AxiBundle, Axis, Interface, Register
from .registers import Placement, Slot, is_renamed, lay_out

__all__ = ["Port", "Ports"]

_DEFAULT_BUNDLE = {"vitis": "control", "vivado": "AXILiteS"}
_DEFAULT_MASTER = "gmem"
_BLOCK = ("ap_ctrl_hs", "ap_ctrl_chain", "ap_ctrl_none")
_NO_VALID = ("ap_none", "ap_stable", "ap_ack")


@dataclass(frozen=True)
class Port:
    """An argument as the source declares and uses it; index -1 is the return value."""

    name: str
    index: int
    ctype: CType
    direction: str
    unknown: str = ""  # why the type is not known


@dataclass
class _Wanted:
    """What the directives say of one port, folded together."""

    modes: dict[str, dict[str, str]] = field(default_factory=dict)

    def has(self, mode: str) -> bool:
        return mode in self.modes

    def option(self, mode: str, name: str) -> str | None:
        value = self.modes.get(mode, {}).get(name)
        return value or None


@dataclass
class Ports:
    """Builds the interface; see :func:`pynq_torch.hls.parse.read_interface`."""

    directives: Sequence[Directive]
    settings: Settings
    pragmas: Sequence[Pragma]
    constants: Callable[[], dict[str, str]]
    tool: str
    notes: list[str] = field(default_factory=list)

    def interface(self, top: str, source: Path, ports: Sequence[Port]) -> Interface:
        """Return the interface of `top` with these arguments (return value first, if any)."""
        known = {port.name for port in ports} | {"return"}
        for directive in self.directives:
            base = re.split(r"\.|->", directive.port)[0]
            if base not in known:
                names = ", ".join(sorted(known - {"return"})) or "none"
                self.notes.append(
                    f"INTERFACE names port {directive.port!r}, which {top} has not; "
                    f"its arguments: {names}"
                )
        wanted = {name: self._wanted(name) for name in known}
        control = self._control(wanted["return"])
        bundle_of_control = self._control_bundle(wanted["return"])
        arguments: list[Argument] = []
        slots: dict[str, list[Slot]] = {}
        if bundle_of_control is not None:
            slots.setdefault(bundle_of_control, [])
        for port in ports:
            argument, own = self._argument(port, wanted[port.name], bundle_of_control)
            arguments.append(argument)
            if argument.bundle is not None:
                slots.setdefault(argument.bundle, []).extend(own)
        bundles: dict[str, tuple[Register, ...]] = {}
        places: dict[tuple[str, str], Placement] = {}
        data64 = bool(self.settings.flag("s_axilite_data64"))
        counter = bool(self.settings.flag("s_axilite_auto_restart_counter"))
        for bundle, wishes in slots.items():
            registers, placements = lay_out(
                wishes,
                tool=self.tool,
                control=bundle == bundle_of_control and control != "ap_ctrl_none",
                data64=data64,
                auto_restart=counter,
            )
            bundles[bundle] = registers
            for slot in wishes:
                places.setdefault((bundle, slot.argument), placements[slot.name])
        placed = [self._with_offsets(item, places) for item in arguments]
        returns = [item for item in placed if item.index < 0]
        return Interface(
            top=top,
            source=source,
            tool=self.tool,
            control=control,
            control_bundle=bundle_of_control if control != "ap_ctrl_none" else None,
            arguments=tuple(item for item in placed if item.index >= 0),
            returns=returns[0] if returns else None,
            bundles=bundles,
            axi_bundles=self._masters(placed, ports),
            notes=tuple(self.notes),
        )

    # ---- directives -----------------------------------------------------------------------------

    def _wanted(self, name: str) -> _Wanted:
        wanted = _Wanted()
        for directive in self.directives:
            if directive.port != name or directive.mode is None:
                continue
            wanted.modes.setdefault(directive.mode, {}).update(directive.options)
        for directive in self.directives:
            if directive.port == name and directive.mode is None and wanted.modes:
                for options in wanted.modes.values():
                    options.update(directive.options)
        return wanted

    def _control(self, wanted: _Wanted) -> str:
        for mode in _BLOCK:
            if wanted.has(mode):
                return mode
        # The Vitis kernel flow pipelines starts: ap_ctrl_chain (UG1399, "Interfaces for Vitis
        # Kernel Flow").
        return "ap_ctrl_chain" if self._kernel_flow() else "ap_ctrl_hs"

    def _kernel_flow(self) -> bool:
        return self.tool == "vitis" and self.settings.flow_target == "vitis"

    def _control_bundle(self, wanted: _Wanted) -> str | None:
        if wanted.has("s_axilite"):
            return self._bundle(wanted)
        if self._kernel_flow() and not wanted.has("ap_ctrl_none"):
            return self._default_bundle()
        return None

    def _bundle(self, wanted: _Wanted) -> str:
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

    def number(self, text: str | None) -> int | None:
        """Evaluate an integer option: a literal, a macro, a constant, or arithmetic of these."""
        if text is None:
            return None
        for _ in range(8):
            text = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
            try:
                tree = ast.parse(text.strip(), mode="eval")
            except SyntaxError:
                return None
            names = {item.id for item in ast.walk(tree) if isinstance(item, ast.Name)}
            if not names:
                return _evaluate(tree.body)
            known = self.constants()
            if not names <= known.keys():
                return None
            for name in names:
                text = re.sub(rf"\b{name}\b", f"({known[name]})", text)
        return None

    # ---- arguments ------------------------------------------------------------------------------

    def _argument(
        self, port: Port, wanted: _Wanted, control_bundle: str | None
    ) -> tuple[Argument, list[Slot]]:
        ctype = port.ctype
        base = Argument(
            name=port.name,
            index=port.index,
            ctype=ctype.spelling,
            kind="none",
            direction=port.direction,
            width=ctype.bits,
            length=_product(ctype.dims) if ctype.dims else None,
        )
        if port.index < 0:
            return self._return(base, control_bundle)
        if port.unknown:
            if wanted.has("s_axilite") and not wanted.has("m_axi"):
                raise InterfaceError(
                    f"the type of argument {port.name!r} cannot be told, and its registers depend "
                    f"on it: {port.unknown}. Give the folder of the header with include_dirs (-I)"
                )
            # Behind an AXI master or a stream the type changes no register.
            self.notes.append(f"{port.name}: type not known ({port.unknown})")
            if wanted.has("axis"):
                return replace(base, kind="axis", width=0, axis=Axis(0)), []
        if ctype.form == "burst_maxi" or wanted.has("m_axi"):
            return self._m_axi(port, base, wanted)
        if ctype.form == "stream":
            return self._stream(port, base), []
        if wanted.has("axis"):
            return self._axis_array(port, base), []
        by_value = not (ctype.pointer or ctype.reference or ctype.dims)
        if wanted.has("s_axilite"):
            return self._s_axilite(port, base, wanted, self._bundle(wanted))
        if self._kernel_flow() and not wanted.modes:
            if by_value:
                return self._s_axilite(port, base, wanted, self._default_bundle())
            if not ctype.reference:
                return self._m_axi(port, base, wanted)
        return base, []

    def _return(self, base: Argument, bundle: str | None) -> tuple[Argument, list[Slot]]:
        if bundle is None:
            return base, []
        slot = Slot("ap_return", "return", "out", base.width, valid=False)
        return replace(base, kind="scalar", bundle=bundle), [slot]

    def _stream(self, port: Port, base: Argument) -> Argument:
        axis = port.ctype.axis or Axis(0)
        axis = replace(axis, count=_product(port.ctype.dims) if port.ctype.dims else 1)
        return replace(base, kind="axis", width=8 * axis.data_bytes, axis=axis)

    def _axis_array(self, port: Port, base: Argument) -> Argument:
        ctype = port.ctype
        members = dict(ctype.fields)
        if "data" in members and {"last", "keep"} & members.keys():
            axis = Axis(
                data_bytes=(members["data"].bits + 7) // 8,
                has_last="last" in members,
                has_keep="keep" in members,
                has_strb="strb" in members,
                user_bits=members["user"].bits if "user" in members else 0,
                id_bits=members["id"].bits if "id" in members else 0,
                dest_bits=members["dest"].bits if "dest" in members else 0,
            )
        else:
            axis = Axis(data_bytes=(ctype.bits + 7) // 8)
        return replace(base, kind="axis_array", axis=axis, length=base.length or 1)

    def _m_axi(self, port: Port, base: Argument, wanted: _Wanted) -> tuple[Argument, list[Slot]]:
        master = wanted.option("m_axi", "bundle") or _DEFAULT_MASTER
        depth = self.number(wanted.option("m_axi", "depth"))
        kind = "burst_maxi" if port.ctype.form == "burst_maxi" else "m_axi"
        width = port.ctype.storage_bits or port.ctype.bits
        base = replace(
            base, kind=kind, m_axi_bundle=master, width=width, length=base.length or depth
        )
        # UG902: without offset= there is no address port at all; Vitis' default is slave.
        default = self.settings.options.get("m_axi_offset")
        default = default or ("slave" if self.tool == "vitis" else "off")
        offset = (wanted.option("m_axi", "offset") or default).lower()
        if offset != "slave" and not wanted.has("s_axilite"):
            self.notes.append(
                f"{port.name}: offset={offset}, so its base address is no register "
                "(address 0, or a port of its own)"
            )
            return base, []
        bundle = self._address_bundle(wanted)
        fixed = self.number(wanted.option("s_axilite", "offset"))
        slot = Slot(self._pointer_name(port, master), port.name, "in", self._address_bits(),
                    offset=fixed)  # fmt: skip
        return replace(base, bundle=bundle), [slot]

    def _address_bundle(self, wanted: _Wanted) -> str:
        """Return where an address register goes that has no s_axilite directive of its own."""
        if wanted.has("s_axilite"):
            return self._bundle(wanted)
        # With an offset=slave of its own Vitis HLS opens its default bundle. Where the tool puts
        # the slave in by itself, and always in Vivado HLS, it joins the only bundle there is.
        if self.tool == "vitis" and wanted.option("m_axi", "offset") is not None:
            return self._bundle(wanted)
        named = {
            directive.options.get("bundle") or self._default_bundle()
            for directive in self.directives
            if directive.mode == "s_axilite"
        }
        return named.pop() if len(named) == 1 else self._default_bundle()

    def _address_bits(self) -> int:
        flag = self.settings.flag("m_axi_addr64")
        if flag is None:
            flag = self.tool == "vitis"
        return 64 if flag else 32

    def _pointer_name(self, port: Port, master: str) -> str:
        """Return the register name of an m_axi pointer, which must differ from its master's."""
        name = self._register_name(port)
        if name.lower() == master.lower() or port.name.lower() == master.lower():
            return f"{name}_r" if name != port.name else f"{name}_offset"
        return name

    def _register_name(self, port: Port) -> str:
        suffix = "_V" if self.tool == "vivado" and port.ctype.arbitrary else ""
        name = port.name + suffix
        return name + "_r" if is_renamed(name, self.tool) else name

    def _s_axilite(
        self, port: Port, base: Argument, wanted: _Wanted, bundle: str
    ) -> tuple[Argument, list[Slot]]:
        ctype = port.ctype
        name = self._register_name(port)
        offset = self.number(wanted.option("s_axilite", "offset"))
        valid = not any(wanted.has(mode) for mode in _NO_VALID)
        base = replace(base, bundle=bundle)
        if ctype.dims:
            return replace(base, kind="memory"), self._array(port, base, name, offset, valid)
        pointer = ctype.pointer or ctype.reference
        if ctype.form == "struct" and (
            self.tool == "vivado" or self._pragma_on("disaggregate", port.name)
        ):
            kind = "scalar_ptr" if pointer else "scalar"
            self.notes.append(
                f"{port.name}: a struct whose members have registers of their own; "
                "offset is that of the first"
            )
            slots = self._members(port.name, port.name, ctype, port.direction, valid)
            return replace(base, kind=kind), slots
        shape = port.direction if pointer else "in"
        slot = Slot(name, port.name, shape, ctype.bits, valid, offset)
        return replace(base, kind="scalar_ptr" if pointer else "scalar"), [slot]

    def _members(
        self, prefix: str, argument: str, ctype: CType, direction: str, valid: bool
    ) -> list[Slot]:
        slots: list[Slot] = []
        for name, member in ctype.fields:
            full = f"{prefix}_{name}"
            if member.form == "struct":
                slots += self._members(full, argument, member, direction, valid)
                continue
            if self.tool == "vivado" and member.arbitrary:
                full += "_V"
            if member.dims:
                length = _product(member.dims)
                slots.append(
                    Slot(full, argument, "memory", member.bits, length=length,
                         storage_bits=member.storage_bits, direction=direction)
                )  # fmt: skip
            else:
                slots.append(Slot(full, argument, direction, member.bits, valid))
        return slots

    def _array(
        self, port: Port, base: Argument, name: str, offset: int | None, valid: bool
    ) -> list[Slot]:
        length = base.length or 0
        if length == 0:
            raise InterfaceError(
                f"{port.name}: an s_axilite array needs its size in the declaration, found "
                f"{port.ctype.spelling}"
            )
        storage = port.ctype.storage_bits
        banks = self._banks(port.name, port.ctype.dims)
        if banks == 1:
            return [
                Slot(name, port.name, "memory", port.ctype.bits, valid, offset, storage, length,
                     port.direction)
            ]  # fmt: skip
        self.notes.append(f"{port.name}: partitioned into {banks} registers or windows")
        names = [f"{name}_{bank}" for bank in range(banks)]
        if banks == length:
            return [Slot(item, port.name, port.direction, port.ctype.bits, valid) for item in names]
        return [
            Slot(item, port.name, "memory", port.ctype.bits, valid, None, storage,
                 -(-length // banks), port.direction)
            for item in names
        ]  # fmt: skip

    def _banks(self, name: str, dims: tuple[int, ...]) -> int:
        """Return how many pieces ARRAY_PARTITION cuts the array into."""
        for text in self._pragmas_on("array_partition", name):
            dim = re.search(r"\bdim\s*=\s*(\d+)", text)
            which = int(dim.group(1)) if dim else 1
            size = _product(dims) if which == 0 else dims[min(which, len(dims)) - 1]
            factor = re.search(r"\bfactor\s*=\s*(\w+)", text)
            if re.search(r"\b(cyclic|block)\b", text, re.IGNORECASE) and factor:
                return min(self.number(factor.group(1)) or 1, size)
            return size
        return 1

    def _pragmas_on(self, keyword: str, variable: str) -> list[str]:
        pattern = re.compile(rf"\bvariable\s*=\s*[&*]?{re.escape(variable)}\b", re.IGNORECASE)
        return [
            pragma.text
            for pragma in self.pragmas
            if pragma.text.lower().startswith(keyword) and pattern.search(pragma.text)
        ]

    def _pragma_on(self, keyword: str, variable: str) -> bool:
        return bool(self._pragmas_on(keyword, variable))

    # ---- putting together -----------------------------------------------------------------------

    def _with_offsets(
        self, argument: Argument, places: dict[tuple[str, str], Placement]
    ) -> Argument:
        if argument.bundle is None:
            return argument
        place = places.get((argument.bundle, argument.name))
        if place is None:
            return argument
        return replace(
            argument,
            offset=place.offset,
            offset_out=place.offset_out,
            offset_valid=place.offset_valid,
        )

    def _masters(
        self, arguments: Sequence[Argument], ports: Sequence[Port]
    ) -> dict[str, AxiBundle]:
        declared = [
            self.number(self._wanted(port.name).option("m_axi", "max_widen_bitwidth"))
            for port in ports
        ]
        allowed = {port.name: bits or 32 for port, bits in zip(ports, declared, strict=True)}
        members: dict[str, list[Argument]] = {}
        for argument in arguments:
            if argument.m_axi_bundle is not None:
                members.setdefault(argument.m_axi_bundle, []).append(argument)
        masters: dict[str, AxiBundle] = {}
        for name, group in members.items():
            bits = 32
            # max_widen_bitwidth is taken at its word: whether the tool can follow it depends on the
            # accesses (UG1399, "Automatic Port Width Resizing"), and RTL beside the source can.
            while bits < max(max(item.width, allowed.get(item.name, 32)) for item in group):
                bits *= 2
            masters[name] = AxiBundle(
                name, bits, self._address_bits(), tuple(item.name for item in group)
            )
        return masters


def _product(dims: Sequence[int]) -> int:
    total = 1
    for dim in dims:
        total *= dim
    return total


def _evaluate(node: ast.expr) -> int | None:
    """Evaluate integer arithmetic; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return int(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _evaluate(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left), _evaluate(node.right)
        if left is None or right is None:
            return None
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div() | ast.FloorDiv():
                return left // right if right else None
            case ast.LShift():
                return left << right
            case ast.RShift():
                return left >> right
    return None
