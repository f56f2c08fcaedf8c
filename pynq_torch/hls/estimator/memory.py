"""Arrays: which one an address is in, how it is cut into banks, what an access costs."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from math import prod

from .array import Access, Array, banks_of, bits_between, choices_of, runs_over, split
from .asked import ArrayPlan, FunctionPlan
from .buffers import buffers_of
from .ir import Function, Instruction, Module, bits_of, split_types
from .members import only_member
from .place import plain_name
from .roms import table_of
from .scev import Expression, Known
from .target import Target
from .wide import widest_of

__all__ = ["Arrays"]

_ZEROS = re.compile(r", i8 0, i64 ")
_STORED = re.compile(r"store (?:volatile )?i\d+ (-?\d+),")
#: Words of an array in a struct that may become registers (UG902, auto_promotion_threshold).
_PROMOTED = 64
#: A variable of a file that is neither static nor in a function: its name is not mangled so.
_FOREIGN = re.compile(r"@(?!_ZL|_ZZ|_ZGV|_ZN12_GLOBAL__N_1|_ZN\w*L\d)[\w$]+$")
_PART = re.compile(r"^\[(\d+) x (.*)\]$")


class Arrays:
    """The arrays of one function."""

    def __init__(
        self, module: Module, function: Function, plan: FunctionPlan | None,
        everything: list[FunctionPlan], handed: dict[str, Array], target: Target | None = None,
    ) -> None:  # fmt: skip
        self._module, self._function, self._plan = module, function, plan
        self._all, self.structs = everything, module.structs
        #: The arrays of the caller, by argument.
        self.handed = handed
        self._vitis = target is not None and target.tool == "vitis"
        self._cuts = target is None or target.divides
        self._known: dict[str, Array] = {}
        self._streams: set[str] = set()
        self._accessed_bytes: dict[str, int] = {}
        #: The loads and stores of each array, and the arrays that calls are handed.
        self._users: dict[str, list[Instruction]] = defaultdict(list)
        self._given: set[str] = set()
        #: Choices between pointers into several arrays -> the array that is taken for all.
        self.chosen: dict[Instruction, str] = {}
        for block in function.blocks.values():
            for item in block.instructions:
                if item.op == "call" and item.callee.startswith("__hls_stream") and item.operands:
                    self._streams.add(self.base_of(item.operands[0]))
        self._constants = self._only_constants()
        for block in function.blocks.values():
            for item in block.instructions:
                if item.op == "call":
                    self._given.update(map(self.base_of, item.operands))
                elif item.op in ("load", "store"):
                    base = self.base_of(item.operands[-1]) if item.operands else ""
                    self._users[base].append(item)
                    size = max(bits_of(item.type), 8) // 8
                    least = self._accessed_bytes.get(base, 0)
                    self._accessed_bytes[base] = max(size, least)

    def _only_constants(self) -> set[str]:
        """The local arrays whose every write is of a constant, outside of loops."""
        found, other = set[str](), set[str]()
        self._copied_from: dict[str, str] = {}
        self._stored: dict[str, tuple[int, int]] = {}
        for block in self._function.blocks.values():
            for item in block.instructions:
                if item.op == "store" and item.operands:
                    base = self.base_of(item.operands[-1])
                    # clang's own loop gives the rest of `{0}` of a class its value.
                    once = block.loop is None or block.name.startswith("arrayinit.body")
                    plain = len(item.operands) == 1 and once
                    (found if plain else other).add(base)
                    number = _STORED.match(item.text) if plain else None
                    if number is not None:
                        low, high = self._stored.get(base, (0, 0))
                        self._stored[base] = min(low, int(number[1])), max(high, int(number[1]))
                elif item.op == "call":
                    pointers = [self.base_of(one) for one in item.operands]
                    is_copy = item.callee.startswith(("llvm.memcpy", "llvm.memset"))
                    (found if is_copy or table_of(item, self._module) else other).update(pointers)
                    if is_copy:
                        self._copied_from[pointers[0]] = pointers[-1]
                    if item.callee.startswith("llvm.memset") and _ZEROS.search(item.text):
                        self._stored.setdefault(pointers[0], (0, 0))
        return found - other

    def base_of(self, pointer: str) -> str:
        """Return the array that a pointer points into."""
        for _ in range(50):
            item = self._function.values.get(pointer)
            if item is None or item.op == "alloca":
                return pointer
            if item.op in ("getelementptr", "bitcast") and item.operands:
                pointer = item.operands[0]
            elif item.op in ("select", "phi"):
                known = self._function.known.get(pointer)
                base = known.expression.base if known else ""
                if base and base != pointer:
                    pointer = base
                    continue
                values = [one for one in item.operands if one != pointer]
                if not values:
                    break
                if item.op == "select" and len(arrays := self._arrays_of(values)) > 1:
                    self.chosen[item] = arrays[-1]
                pointer = values[-1]
            else:
                break
        return pointer

    def _arrays_of(self, pointers: list[str]) -> list[str]:
        """Return the arrays that pointers are addresses in, but for those that are computed."""
        found: dict[str, None] = {}
        for pointer in pointers:
            while (item := self._function.values.get(pointer)) and item.op == "getelementptr":
                pointer = item.operands[0]
            if item is None or item.op == "alloca":
                found[pointer] = None
        return list(found)

    def array(self, base: str) -> Array:
        """Return the array of a base pointer."""
        if base not in self._known:
            self._known[base] = self._make(base)
        return self._known[base]

    def pointed_at(self, value: str, dimensions: int) -> Array:
        """Return the array that a pointer hands over to an argument of so many dimensions.

        It is the row at which it points, where the argument has a dimension less.
        """
        array, known = self.array(base := self.base_of(value)), self._function.known.get(value)
        place = known.expression if known is not None else Expression(0, ((value, 1),))
        is_row = dimensions == len(array.dimensions) - 1 and place.terms == ((base, 1),)
        return array.row(place.constant) if is_row else array

    def all(self) -> dict[str, Array]:
        """Every array met so far, but not what the caller handed over."""
        return {base: one for base, one in self._known.items() if base not in self.handed}

    def met(self, base: str) -> Array | None:
        """Return the array of a base pointer if it was met before."""
        return self._known.get(base)

    def streamed(self) -> list[tuple[str, Array]]:
        """The memories met that STREAM makes FIFOs."""
        known = self._known.items()
        return [(b, a) for b, a in known if a.kind == "memory" and a.local and a.plan.streamed[1]]

    def of_module(self) -> dict[str, Array]:
        """The memories and streams met that are variables of a file or static."""
        kinds = ("memory", "stream")
        return {b: array for b, array in self._known.items() if b[0] == "@" and array.kind in kinds}

    def _make(self, base: str) -> Array:
        if base in self.handed:
            return self._taken(base)
        name = plain_name(base)
        item = self._function.values.get(base)
        kind = (
            item.type
            if item is not None and item.op == "alloca"
            else self._module.globals.get(base, "")
        )
        plan, owner = self._planned(name, base)
        dimensions, element = self._dimensions(kind)
        size = self._module.bytes_of(element) if element else 0
        typed, bits = bool(dimensions), 0
        for written in (owner, self._plan):  # a template's own may not be known
            if not dimensions and written is not None:
                dimensions = written.dimensions.get(name, ())
        only = None if owner is None or kind else only_member(owner, name)
        if owner is not None and only is not None:
            dimensions = (*owner.dimensions.get(name, ()), *owner.dimensions[only])
            size, bits = owner.words[only]
        elif owner is not None and name in owner.words:
            bytes_written, bits = owner.words[name]
            size = size if typed else bytes_written
        elif not size or (base in self._function.arguments):
            size = self._accessed_bytes.get(base, 0) or 4
        bits = bits or self._bits_outside(base, name, size) or size * 8
        local = bool(kind)
        array = Array(name, "memory", dimensions, size, bits, plan, local=local)
        array.static = base[0] == "@"
        array.between = local and owner is not None and owner.dataflow
        array.constant = local and (base in self._constants or base in self._module.tables)
        array.foreign = not array.constant and _FOREIGN.match(base) is not None
        if array.constant and (extremes := self._extremes(base)):
            array.element_bits = min(bits, bits_between(*extremes))
        self._cut(array, base, owner)
        self._classify(array, base, owner, kind)
        if array.kind == "scalar" and local:
            array.inner = self._inner(kind)
        return array

    def _bits_outside(self, base: str, name: str, size: int) -> int:
        """Return the bits of an element of an array outside of functions, 0 where not known."""
        written = (one.outside.get(name) for one in self._all if base[0] == "@")
        return next((bits for number, bits in filter(None, written) if number == size), 0)

    def _inner(self, kind: str) -> list[tuple[int, int]]:
        """Return words and bits of the arrays in a struct: each is a memory of its own."""
        body = self._module.structs.get(kind, kind).strip("<>").strip()
        found = []
        for part in split_types(body[1:-1]) if body.startswith("{") else ():
            sizes, element = self._dimensions(part)
            if not sizes:
                found += self._inner(part)
            elif prod(sizes) > _PROMOTED:
                found.append((prod(sizes), bits_of(element) or 8 * self._module.bytes_of(element)))
        return found

    def _dimensions(self, kind: str) -> tuple[tuple[int, ...], str]:
        """Return an array's dimensions and the type of an element."""
        sizes = []
        while True:
            if match := _PART.match(kind):
                sizes.append(int(match[1]))
                kind = match[2]
            elif kind.startswith("<{"):  # rows that are written out, and zeros behind them
                parts = split_types(kind.strip("<>").strip()[1:-1])
                lengths = [self._module.bytes_of(part) for part in parts]
                rows = len(set(lengths)) == 1
                last = _PART.match(parts[-1])
                kind = parts[-1] if rows or last is None else last[2]
                sizes.append(sum(lengths) // max(self._module.bytes_of(kind), 1))
            else:
                return tuple(sizes), kind

    def _taken(self, base: str) -> Array:
        """An array of the caller's, cut as this function asks too."""
        array = self.handed[base]
        own = self._plan.arrays.get(plain_name(base)) if self._plan is not None else None
        if own is not None:
            array.plan.parts += [cut for cut in own.parts if cut not in array.plan.parts]
            if array.kind == "memory" and array.is_registers:
                array.kind, array.latency = "register", 0
        return array

    def _classify(
        self, array: Array, base: str, owner: FunctionPlan | None, item_type: str
    ) -> None:
        port = owner.ports.get(array.name, {}) if owner is not None else {}
        mode = port.get("mode", "").lower()
        if storage := port.get("storage_type"):  # of ap_memory and bram
            array.plan = replace(array.plan, kind=storage.lower())
        elif mode == "ap_memory" and self._vitis and not array.plan.kind:
            array.plan = replace(array.plan, kind="ram_1p")  # `bram` has two ports where it needs
        if mode in ("ap_memory", "bram") and (said := port.get("latency", "")).isdigit():
            array.plan = replace(array.plan, latency=int(said))
        inside = self._module.structs.get(item_type, "")  # an hls::Mat holds streams
        is_object = base in self._streams or "hls::stream" in item_type + inside
        is_object = is_object or (owner is not None and array.name in owner.streams)
        is_fifo = mode in ("axis", "ap_fifo") or (array.plan.kind == "fifo" and not array.local)
        if is_object or is_fifo:
            array.kind, array.is_axis = "stream", mode == "axis"
            array.of_elements = not is_object and (bool(array.dimensions) or self._indexed(base))
        elif mode == "s_axilite" and array.dimensions:
            array.shared = True
        elif mode == "m_axi":
            array.kind, array.bundle = "m_axi", port.get("bundle", "gmem")
            array.bus_latency = int(said) if (said := port.get("latency", "")).isdigit() else None
            is_plain = owner is not None and array.name in owner.plain
            array.widest = widest_of(owner.ports, array.bundle) if is_plain and owner else 0
            array.buffers = buffers_of(owner.ports, array.bundle) if owner else array.buffers
        elif not array.dimensions and (array.local or not self._indexed(base)):
            array.kind = "scalar"
        elif array.is_registers or array.is_tiny or self._is_taken_apart(array, base):
            array.kind = "register"
        if array.kind in ("scalar", "register"):
            array.latency = 0
        elif array.plan.latency is not None:
            array.latency = array.plan.latency

    def _is_taken_apart(self, array: Array, base: str) -> bool:
        """Whether an array is the compiler's own, or a static one that the tool takes apart."""
        if base[0] == "@":
            return array.words <= (64 if self._vitis else 16) and self._only_fixed(base)
        if array.name.startswith("vla"):  # clang's word for an array whose size is an expression
            return False
        plans = [self._plan] if self._plan is not None else []
        return array.local and not any(array.name in p.dimensions for p in [*plans, *self._all])

    def _only_fixed(self, base: str) -> bool:
        """Whether a static array is met at fixed places only: a small one becomes registers."""
        if base in self._module.tables or base in self._given:
            return False
        return not any(self._where(item, base).terms for item in self._users[base])

    def _cut(self, array: Array, base: str, owner: FunctionPlan | None) -> None:
        """Cut an array completely along dimensions that are met at constants only, at several.

        The tools do, as their logs say, however long it is: three lines are three memories. Tables
        of a file are cut (in three reports), static ones of a function are not (in four).
        """
        is_table = array.constant and owner is not None and array.name in owner.static
        is_open = array.kind == "memory" and array.local and not (is_table or array.foreign)
        if not (is_open and self._cuts) or base in self._given or len(array.dimensions) < 2:
            return
        places: dict[int, set[int]] = {one: set() for one in range(len(array.dimensions))}
        for item in self._users[base]:
            where = self._where(item, base)
            # Of a pointer that data choose, it is not known where in the array it points.
            odd = any(abs(n) < array.element_bytes or name == base for name, n in where.terms)
            over = runs_over(where, array, self._function.known)
            if odd or over or "volatile" in item.text:
                return
            for one, (place, steps, unknown) in enumerate(split(where, array)):
                if steps or unknown:
                    places.pop(one, None)
                elif one in places:
                    places[one].add(place)
        cuts = array.cuts()
        made = [(n + 1, "complete", 0) for n, at in places.items() if len(at) > 1 and n not in cuts]
        array.plan = replace(array.plan, parts=[*array.plan.parts, *made])

    def _where(self, item: Instruction, base: str) -> Expression:
        """Return at which byte of an array a load or a store is, as far as it is known."""
        known = self._function.known.get(pointer := item.operands[-1])
        address = known.expression if known else Expression(0, ((pointer, 1),))
        if "getelementptr" in item.text:
            address = Expression(self._offset(item.text), ((pointer, 1),))
        return address.plus(Expression(0, ((base, 1),)), -1)

    def _indexed(self, base: str) -> bool:
        """Whether anything is computed on a pointer."""
        return any(
            item.op == "getelementptr" and self.base_of(item.name) == base
            for item in self._function.values.values()
        )

    def _planned(self, name: str, base: str) -> tuple[ArrayPlan, FunctionPlan | None]:
        own = [self._plan] if self._plan is not None else []
        if own and base in self._function.arguments:  # others may call theirs so, too
            return own[0].arrays.get(name, ArrayPlan()), own[0]
        for function in [*own, *self._all]:
            if name in function.arrays:
                return function.arrays[name], function
        for function in [*own, *self._all]:
            if name in function.dimensions or name in function.ports or name in function.arguments:
                return function.arrays.get(name, ArrayPlan()), function
        return ArrayPlan(), self._plan

    def access(self, item: Instruction) -> Access | None:
        """Return where a load or a store goes; None for what is no memory."""
        if not item.operands:
            return None
        array = self.array(base := self.base_of(item.operands[-1]))
        address = self._where(item, base)
        self._note_range(item, base)
        write = item.op == "store"
        banks = banks_of(array, address, self._function.known, write=write)
        return Access(array, write, address, banks, choices_of(array, address))

    def is_any_bank(self, item: Instruction) -> bool:
        """Whether a store goes to another of an array's banks from iteration to iteration."""
        access = self.access(item)
        return access is not None and access.choices > 1

    def _note_range(self, item: Instruction, base: str) -> None:
        """Note between which numbers a word of a constant table is: its product is narrower."""
        extremes = self._extremes(base)
        if item.op == "load" and extremes is not None and item.type.startswith("i"):
            self._function.known[item.name] = Known(item.name, signed=extremes)

    def _extremes(self, base: str) -> tuple[int, int] | None:
        """Return the least and the greatest number in a constant table, None where not known."""
        if base not in self._constants:  # `int a[8] = {}` that is written later is no table
            return self._module.tables.get(base)
        source = self._copied_from.get(base, base)
        return self._module.tables.get(source) or self._stored.get(source)

    def _offset(self, text: str) -> int:
        """Return the bytes of ``getelementptr inbounds ([8 x i32], ptr @x, i64 0, i64 5)``."""
        match = re.search(r"getelementptr inbounds \((.*), ptr [%@]\S+, ([i\d, -]+)\)", text)
        if match is None:
            return 0
        kind = match[1]
        first, *rest = [int(number) for number in re.findall(r"i\d+ (-?\d+)", match[2])]
        offset = first * self._module.bytes_of(kind)
        for number in rest:
            part = _PART.match(kind)
            if part is None:
                return offset
            kind = part[2]
            offset += number * self._module.bytes_of(kind)
        return offset
