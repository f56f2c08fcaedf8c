"""The hardware handoff in the form that pynq reads, with what XRT adds to it on the board."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

from pynq.metadata.runtime_metadata_parser import RuntimeMetadataParser
from pynqmetadata.frontends import Metadata

from pynq_torch.errors import HandoffError

from .handoff import PACKAGE, Handoff, read_handoff
from .memory import DDR_BYTES
from .xsa import read_archive


def parse_handoff(path: Path) -> RuntimeMetadataParser:
    """Parse a ``.hwh`` or ``.xsa`` for pynq; `parser.handoff` is what the board itself reads of it.

    Raises
    ------
    HandoffError
        The file is damaged, or pynq's own parser fails on it.
    """
    if "pynq.lib.video" in sys.modules:
        # pynq imports it by itself on ARM only; without it every design with HDMI is a TypeError.
        importlib.import_module("pynq.lib.video.dvi")
    metadata = None
    if path.suffix == ".xsa":
        metadata, path = read_archive(path)
    try:
        handoff = read_handoff(path)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HandoffError(
            f"{path.name} is damaged: {error}. Copy the .hwh of the Vivado run again."
        ) from error
    if handoff.package != PACKAGE:
        warnings.warn(
            f"{path.name} is for package {handoff.package}; a PYNQ-Z2 has {PACKAGE}. The same die, "
            "other pins.",
            stacklevel=3,
        )
    try:
        parser = RuntimeMetadataParser(_completed(metadata or Metadata(input=path)))
    except Exception as error:  # pynqmetadata has a dozen kinds of its own
        raise _refused(path, handoff, error) from error
    for index, entry in enumerate(parser.mem_dict.values(), start=1):
        # What XRT adds to each memory on the board (pynq: _unify_dictionaries).
        entry |= _memory(entry["phys_addr"], entry["addr_range"], index, f"MIG{index}")
    parser.mem_dict["PSDDR"] = _memory(0, DDR_BYTES, 0, "PSDDR") | {"used": 1, "type": "DDR4"}
    parser.handoff = handoff
    return parser


def _memory(base: int, nbytes: int, index: int, tag: str) -> dict[str, Any]:
    place = {"base_address": base, "size": nbytes}
    return place | {"idx": index, "tag": tag, "streaming": False, "raw_type": 2}


def _refused(path: Path, handoff: Handoff, error: Exception) -> HandoffError:
    short = [ip.vlnv for ip in handoff.ips.values() if "." not in ip.vlnv.rpartition(":")[2]]
    hint = f" (pynq needs a minor version; these have none: {', '.join(short)})" if short else ""
    return HandoffError(
        f"pynq's own parser fails on {path.name}: {type(error).__name__}: {error}{hint}. It would "
        "fail on the board too. Copy the .hwh of the Vivado run again, or repackage an IP that has "
        "no version like 1.0."
    )


def _completed(found: Any) -> Any:
    """Return parsed metadata in the form that pynq 3.1 reads.

    pynqmetadata 0.2 files a manager's subordinate ports by port and address block; pynq 3.1.2 looks
    memories up by port alone and fails on every design with block RAM. The port's name is added as
    a second key; nothing of either package is changed.
    """
    for block in found.blocks.values():
        for port in block.ports.values():
            for key, entry in getattr(port, "addrmap", {}).items():
                port._addrmap_obj.setdefault(entry["subord_port"], port._addrmap_obj[key])
    return found
