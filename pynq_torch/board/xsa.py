"""Hardware exports of Vivado, ``.xsa``: a zip of the bitstream, its handoff and a list of files."""

from __future__ import annotations

import shutil
import weakref
import zipfile
from pathlib import Path
from typing import Any

from pynqmetadata.frontends import Metadata

from pynq_torch.errors import HandoffError
from pynq_torch.hls.design.image import warn_of_refusal

__all__ = ["handoff_file", "read_archive"]

#: Above this an archive is no overlay of a board with 512 MB.
LARGEST_BYTES = 1 << 29
_EXPORT = "Export it again: write_hw_platform -fixed -include_bit FILE.xsa (Vivado 2019.2 on)."


def handoff_file(bitstream: Path) -> Path:
    """Return the file that pynq reads the handoff of a bitstream from.

    Raises
    ------
    HandoffError
        An ``.xsa`` of the same name is beside it, or it is an ``.xclbin``.
    """
    if bitstream.suffix == ".xclbin":
        raise HandoffError(
            f"{bitstream.name} is for a card that XRT drives, and this is a PYNQ-Z2; expected a "
            ".bit or .xsa. docs/xrt.md says how an .xclbin is run"
        )
    archive = bitstream.with_suffix(".xsa")
    if bitstream.suffix == ".xsa" or not archive.exists():
        return archive if bitstream.suffix == ".xsa" else bitstream.with_suffix(".hwh")
    # pynq 3.1.2, BitstreamHandler.get_parser: it then gives the .bit to its parser of archives.
    raise HandoffError(
        f"{archive.name} is beside {bitstream.name}, and then pynq 3.1 cannot load "
        f"{bitstream.name}, on a board either. Load {archive.name}, or move it to another folder."
    )


def read_archive(path: Path) -> tuple[Any, Path]:
    """Return pynq's metadata of an ``.xsa`` and the handoff in it, which lives as long as they.

    Raises
    ------
    HandoffError
        It is no such archive, or has no bitstream.
    """
    _check(path)
    try:
        metadata = Metadata(input=path)
        xsa = metadata.ext["xsa"].xsa
        handoff, bitstreams = Path(xsa.defaultHwhPaths[0]), xsa.bitstreamPaths
    except Exception as error:  # pynqutils and pynqmetadata have a dozen kinds of their own
        raise HandoffError(
            f"pynq's own parser fails on {path.name}: {type(error).__name__}: {error}. It would "
            f"fail on the board too. {_EXPORT}"
        ) from error
    # pynq leaves what it extracts in the folder for temporary files.
    weakref.finalize(xsa, shutil.rmtree, handoff.parent, ignore_errors=True)
    if not bitstreams:
        raise HandoffError(f"{path.name} has no bitstream. {_EXPORT}")
    for bitstream in bitstreams:
        warn_of_refusal(Path(bitstream))
    return metadata, handoff


def _check(path: Path) -> None:
    """Refuse what pynq would begin to extract and then fail on."""
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    except FileNotFoundError:
        raise HandoffError(f"there is no file {path}") from None
    except (zipfile.BadZipFile, OSError) as error:
        raise HandoffError(
            f"{path.name} is no zip archive ({error}): it is damaged or another file. {_EXPORT}"
        ) from error
    if missing := [n for n in ("xsa.json", "xsa.xml", "sysdef.xml") if n not in sizes]:
        raise HandoffError(
            f"{path.name} has no {' and no '.join(missing)}: it is no export of an implemented "
            f"design. {_EXPORT}"
        )
    if sum(sizes.values()) > LARGEST_BYTES:
        raise HandoffError(
            f"{path.name} has {sum(sizes.values()):,} bytes of files; expected at most "
            f"{LARGEST_BYTES:,}. {_EXPORT}"
        )
