"""Copies of ``ap_int.h`` and ``ap_fixed.h`` in which ``ap_int<8> x[4] = {}`` is zeros.

So it is in the headers of Vitis, whose default constructors are ``= default``: C++ fills with zeros
what such a type is given ``{}`` for. Those of the hls4ml wheel are written out and leave the number
as memory has it.
"""

from __future__ import annotations

import re
from pathlib import Path

from . import toolchain

__all__ = ["write_zeroing_headers"]

_DEFAULT = re.compile(
    r"(?<![~\w])(ap_u?int|ap_u?fixed|ap_(?:int|fixed)_base|ssdm_int_sim|ap_private)\(\)"
    r"\s*(?::\s*Base\(\)\s*)?"
    r"\{(?:\s|/\*.*?\*/|set_canary\(\);|clearUnusedBits\(\);|check_canary\(\);)*\}",
    re.DOTALL,
)


def write_zeroing_headers(folder: Path) -> bool:
    """Write the copies into a folder, which is to come first in the search; whether they differ.

    Parameters
    ----------
    folder : pathlib.Path
        Is made.
    """
    own, differ = toolchain.ap_types_dir(), False
    for path in (*own.glob("ap_*.h"), *own.glob("etc/ap_*.h")):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        mended = _DEFAULT.sub(r"\1() = default;", text)
        differ = differ or mended != text
        copy = folder / path.relative_to(own)
        copy.parent.mkdir(parents=True, exist_ok=True)
        # As with -isystem, g++ says nothing about them.
        mended = f"#pragma GCC system_header\n{mended}"
        copy.write_text(mended, encoding="utf-8", errors="surrogateescape")
    return differ
