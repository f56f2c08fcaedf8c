"""``docs/conformance.md``: one row an operator, one column a check; and who writes it.

``python tests/opdb/table.py`` runs every operator and prints the failures by cause;
``--write`` writes the page; ``--operators add mm`` runs some only.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    __package__ = "opdb"

from .exclusions import EXCLUSIONS, Allowed
from .pool import COLUMNS, Case, Pool

PAGE = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"
_MARKS = {
    Allowed.ANY_VALUES.value: "°",
    Allowed.ROUNDING.value: "≈",
    Allowed.VARIATION.value: "≈",
}
NOTHING, ON_CPU, EXCLUDED, FAILS = "·", "cpu", "excluded", "fails"

HEAD = """\
# Conformance of device "pynq"

PyTorch lists its operators, with sample inputs, in `op_db`
(`torch.testing._internal.common_methods_invocations`). Every sample input of every operator is
generated on the CPU, copied to device "pynq", and run on both. Results have to be the same bit by
bit, with the same dtype, shape, strides and storage offset, on device "pynq"; arguments have to
be left alike; where the CPU raises, the device has to raise the same class of exception.

- *float32* to *bfloat16*: the operator on inputs of that dtype. *backward*: forward in float32
  with gradients, then the gradient of every argument.
- *method*: as a method and as Python's operator. *in-place*: the method with an underscore.
  *out=*: into a tensor of the right shape, into one with other strides, into an empty one.
  *errors*: inputs that PyTorch's table names as wrong.

A view among the arguments is copied with all of its storage. `x.to(...)` copies the elements of `x`
alone, to any device: of inputs that are moved so, `as_strided.partial_views` reaches beyond them,
and torch raises.

A sparse tensor is compared by its shape, its layout and the dense tensors that it is made of
(`tests/test_sparse_layouts.py` has all layouts). torch gives such tensors dispatch keys of their
own, which Python can serve; two things differ from the CPU. torch checks indices only where a
program asks for it, the device at every call: one that points outside is an `IndexError`, not a
crash. And torch's own kernels make two sparse tensors share an index vector where they can; on the
device each has its own.

`python tests/opdb/table.py --write` writes this page; `tests/test_op_db.py` compares every row
with what it finds.

"""

TABLE_HEAD = f"""\
## Operator by operator
A number counts the samples that agree. `{NOTHING}`: no samples, because the operator does not
have that dtype or variant on the CPU. `{ON_CPU}`: the CPU raises on every sample, the device
alike. `°` and `≈`: see above. `{EXCLUDED}`: see above.

"""


def cell(case: Case) -> str:
    """Return what the table says of one case."""
    if case.failed:
        return FAILS
    if case.allowed == Allowed.FAILURE.value:
        return EXCLUDED
    if not case.samples:
        return NOTHING
    if case.raised == case.samples and case.column != "errors":
        return ON_CPU
    return f"{case.samples}{_MARKS.get(case.allowed, '')}"


def row(cases: Sequence[Case]) -> tuple[str, ...]:
    """Return the cells of one operator."""
    return tuple(cell(case) for case in cases)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def _summary(rows: Mapping[str, Sequence[str]]) -> str:
    text = _line(["", "agree", "of operators", "excluded", "samples"])
    text += _line(["---", "--:", "--:", "--:", "--:"])
    for index, column in enumerate(COLUMNS):
        cells = [cells[index] for cells in rows.values()]
        counts = [int(c.rstrip("°≈")) for c in cells if c[0].isdigit()]
        excluded, failing = cells.count(EXCLUDED), cells.count(FAILS)
        total = len(counts) + excluded + failing
        text += _line([column, str(len(counts)), str(total), str(excluded), f"{sum(counts):,}"])
    return text


def _exclusions() -> str:
    meanings = {
        Allowed.ANY_VALUES: "`°`: everything but the values is compared",
        Allowed.ROUNDING: "`≈`: values may differ by some roundings",
        Allowed.VARIATION: "`≈`: the same, because the CPU's own vary from run to run",
        Allowed.FAILURE: f"`{EXCLUDED}`: not the same",
    }
    text = ""
    for entry in EXCLUSIONS:
        names = ", ".join(f"`{name}`" for name in entry.operators)
        where = f" ({', '.join(entry.columns)})" if entry.columns else ""
        text += f"- {meanings[entry.allowed]}. {names}{where}. {entry.reason}\n"
    return text


def page(rows: Mapping[str, Sequence[str]]) -> str:
    """Return the whole page for these rows."""
    text = HEAD + "## Result\n" + _summary(rows) + "\n## Exclusions\n"
    text += "Each is run all the same; one that passes in full fails the tests.\n\n"
    text += _exclusions() + "\n" + TABLE_HEAD
    text += _line(["operator", *COLUMNS]) + _line(["---", *["--:"] * len(COLUMNS)])
    return text + "".join(_line([f"`{name}`", *cells]) for name, cells in rows.items())


def committed() -> dict[str, tuple[str, ...]]:
    """Return the rows of the committed page, operator -> cells."""
    text = PAGE.read_text()
    body = text[text.index(TABLE_HEAD.splitlines()[0]) :]
    found = re.findall(r"^\| `(\S+)` \| (.*) \|$", body, re.MULTILINE)
    return {name: tuple(cells.split(" | ")) for name, cells in found}


def causes(cases: Iterable[Case]) -> str:
    """Return the failures, those that read alike together, most frequent first."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.failed:
            said = re.sub(r"^sample \d+: ", "", case.failures[0])
            groups[re.sub(r"-?\d[\d.e+-]*", "N", said)[:160]].append(case)
    text = ""
    for alike in sorted(groups.values(), key=len, reverse=True):
        where = ", ".join(f"{c.operator}/{c.column} ({c.failed})" for c in alike[:12])
        more = f" and {len(alike) - 12} more" if len(alike) > 12 else ""
        text += f"{len(alike)} cases: {alike[0].failures[0]}\n    {where}{more}\n"
    return text


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--operators", nargs="*", default=(), metavar="NAME")
    options = parser.parse_args()
    if options.write and options.operators:
        parser.error("--write needs all operators; leave --operators out")
    pool = Pool(options.operators)
    found: dict[str, list[Case]] = {}
    for name in options.operators or pool.operators:
        found[name] = pool.cases(name)
        if sys.stderr.isatty():
            print(f"\r{len(found)} {name:60}", end="", file=sys.stderr)
    pool.close()
    rows = {name: row(cases) for name, cases in found.items()}
    print(f"\n{causes(case for cases in found.values() for case in cases)}\n{_summary(rows)}")
    if options.write:
        PAGE.write_text(page(rows))
        print(f"{PAGE} is written")
    return int(any(FAILS in cells for cells in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
