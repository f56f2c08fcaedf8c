"""The folder of a new kernel: source, header, testbench, description."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pynq_torch.errors import KernelError

from ..generate import fill
from .elements import element
from .files import TEMPLATES, write

__all__ = ["new_kernel"]

#: Words with a meaning in C++ or in the files below: g++ would complain far from the name.
_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool case catch char char16_t char32_t class
    compl const const_cast constexpr decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new
    noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual
    void volatile wchar_t while xor xor_eq
    main n std i beat last count scale errors expected found value wide golden is_right check send
"""
#: A file's name may have 255 letters, with what the build adds to it.
_LONGEST = 100
_TAKEN = frozenset(_WORDS.split())
#: Interface -> how its templates are called.
_TEMPLATE = {"m_axi": "kernel", "axis": "stream"}


def new_kernel(
    name: str,
    root: Path | str,
    *,
    inputs: Sequence[str],
    formula: str,
    golden: str = "",
    output: str = "out",
    dtype: str = "float32",
    interface: str = "m_axi",
    scalars: Sequence[str] = (),
) -> Path:
    """Write the folder of a kernel that computes a formula of vectors, an element a cycle.

    Parameters
    ----------
    name : str
        The kernel: folder, file and top function, e.g. ``"hypot_f32"``.
    root : path
        Your project; the folder becomes ``hw/kernels/<name>`` in it.
    inputs : sequence of str
        Names of the vectors that are read.
    formula : str
        C++ over their elements and the scalars: ``"a + b"``. Becomes ``<name>_of`` in the header.
    golden : str, optional
        C++ for the testbench, over ``double``, of integers ``long long``; default: the formula.
    output : str
        Name of the vector that is written.
    dtype : str
        Of elements and scalars: ``float32``, ``int8``, ``int16``, ``int32``, ``ap_fixed<W,I>``.
    interface : {"m_axi", "axis"}
        Arrays in memory, with ``n`` for their length; or AXI4-Streams, a packet a run, which
        `new_overlay` gives DMAs.
    scalars : sequence of str
        Names of values in registers.

    Returns
    -------
    pathlib.Path
        The folder with ``<name>.hpp``, ``<name>.cpp``, ``<name>_tb.cpp``, ``description.json``.

    Raises
    ------
    KernelError
        A name or formula is no C++, or a type or interface is none of these. Nothing was written.
    HandoffError
        A file exists already. Nothing was written.
    """
    _check_names(name, inputs, output, scalars)
    _check_formulas(name, {"formula": formula, "golden": golden or formula})
    values = {
        "name": name, "inputs": list(inputs), "output": output, "scalars": list(scalars),
        "formula": formula, "golden": golden or formula, "of": element(dtype, interface, name),
    }  # fmt: skip
    files = {
        f"{name}{rest}": fill(f"{_TEMPLATE[interface]}{rest}", [TEMPLATES], values)
        for rest in (".hpp", ".cpp", "_tb.cpp")
    }
    files["description.json"] = _description(name, inputs, scalars, interface)
    return write(Path(root) / "hw" / "kernels" / name, files)


def _check_names(name: str, inputs: Sequence[str], output: str, scalars: Sequence[str]) -> None:
    if len(str(name)) > _LONGEST:
        raise KernelError(f"the name has {len(name)} letters; expected at most {_LONGEST}", name)
    names = [*inputs, output, *scalars]
    for word in (name, *names):
        usable = isinstance(word, str) and word.isidentifier() and word.isascii()
        if not usable or keyword.iskeyword(word) or word in _TAKEN:
            raise KernelError(f"{word!r} is no name for an argument or a kernel in C++", name)
    if not inputs or len({*names, name}) != len(names) + 1:
        others = f", scalars {list(scalars)}" if scalars else ""
        raise KernelError(
            f"{name}: inputs {list(inputs)} and output {output!r}{others}; expected one input or "
            "more, and names that differ",
            name,
        )


def _check_formulas(name: str, formulas: Mapping[str, str]) -> None:
    """Raise where C++ is no expression as it is put behind ``return``."""
    for what, text in formulas.items():
        if not isinstance(text, str) or not _is_expression(text):
            raise KernelError(
                f"{name}: the {what} is {text!r}; expected one expression in C++, as in "
                '"gain * a + b"',
                name,
            )


def _is_expression(text: str) -> bool:
    closing, opened = {"(": ")", "[": "]", "{": "}"}, list[str]()
    for letter in text:
        if letter in closing:
            opened.append(closing[letter])
        elif letter in closing.values() and (not opened or opened.pop() != letter):
            return False
    return bool(text.strip()) and not opened and not re.search(r";|\n|//|#", text)


def _description(name: str, inputs: Sequence[str], scalars: Sequence[str], interface: str) -> str:
    latency: dict[str, Any] = {"kind": "model"}
    resources: dict[str, int]
    if interface == "m_axi":
        latency |= {
            "cycles": "n + 100",
            "symbols": {"n": "elements of each vector"},
            "example": {"n": 65536},
            "assumptions": "II=1; 50 cycles until DDR answers, 50 stages of the formula.",
        }
        resources = {"m_axi_read": len(inputs), "m_axi_write": 1}
        resources["registers"] = 2 * (len(inputs) + 1) + 5 + len(scalars)
    else:
        latency |= {
            "cycles": "beats + 20",
            "symbols": {"beats": "beats of the packet"},
            "example": {"beats": 4096},
            "assumptions": "II=1, source and sink never wait; 20 stages of the formula.",
        }
        resources = {"axis": len(inputs) + 1, "registers": len(scalars)}
    made = {
        "name": name,
        "summary": "Says here in a sentence what it does.",
        "reference": " + ".join(inputs),
        "operators": [],
        "latency": latency,
        "resources": resources,
    }
    return json.dumps(made, indent=2) + "\n"
