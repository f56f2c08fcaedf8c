"""Bitstream files: the simulation image, and the check before a load.

A ``.bit`` is a header of tagged fields (design name, part, date, time, length) before the
configuration frames. A simulation image has the header and, for frames, one line of text: no
configuration logic would find the sync word that starts a configuration (UG470, table 5-5) in it.
"""

from __future__ import annotations

import struct
import warnings
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.errors import BitstreamError, BitstreamWarning

__all__ = [
    "BitHeader",
    "check_bitstream",
    "is_simulation_image",
    "read_bit_header",
    "warn_of_refusal",
    "write_simulation_image",
]

_MAGIC = bytes.fromhex("0009 0ff00ff00ff00ff0 00 0001".replace(" ", ""))
#: The payload of a simulation image, a whole number of 32-bit words.
MARKER = b"PYNQ_TORCH SIMULATION IMAGE: NO CONFIGURATION FRAMES"
assert len(MARKER) % 4 == 0
_PART = "7z020clg400"
# The time a real .bit carries would make every build differ.
_DATE, _TIME = "1980/01/01", "00:00:00"
_HEADER_LIMIT = 4096


@dataclass(frozen=True)
class BitHeader:
    """The header before the frames of a ``.bit``.

    Parameters
    ----------
    design : str
        Name and options (``gemm;UserID=0XFFFFFFFF``).
    part : str
        As Vivado writes it, without the leading ``xc`` and the speed grade (``7z020clg400``).
    date, time : str
        Of the build.
    nbytes : int
        Length of the frames.
    offset : int
        Where they begin in the file.
    """

    design: str
    part: str
    date: str
    time: str
    nbytes: int
    offset: int


def write_simulation_image(name: str) -> bytes:
    """Return the simulation image of the overlay `name`: a header and no configuration frames."""
    image = bytearray(_MAGIC)
    fields = (f"{name};UserID=0XFFFFFFFF;Simulation=TRUE", _PART, _DATE, _TIME)
    for tag, text in zip(b"abcd", fields, strict=True):
        data = text.encode() + b"\0"
        image += bytes([tag]) + struct.pack(">H", len(data)) + data
    image += b"e" + struct.pack(">I", len(MARKER)) + MARKER
    return bytes(image)


def read_bit_header(data: bytes) -> BitHeader:
    """Parse the header of a ``.bit``.

    Raises
    ------
    BitstreamError
        The bytes are no ``.bit``.
    """
    if not data.startswith(_MAGIC):
        raise BitstreamError(
            f"no .bit: it begins with {data[:8].hex(' ') or 'nothing'}, a .bit with "
            f"{_MAGIC[:8].hex(' ')}"
        )
    offset = len(_MAGIC)
    texts = []
    try:
        for tag in b"abcd":
            if data[offset] != tag:
                raise BitstreamError(
                    f"damaged .bit: byte {offset} is {data[offset : offset + 1]!r}, expected the "
                    f"field {chr(tag)!r}"
                )
            (length,) = struct.unpack_from(">H", data, offset + 1)
            text = data[offset + 3 : offset + 3 + length]
            texts.append(text.rstrip(b"\0").decode("ascii", "replace"))
            offset += 3 + length
        if data[offset] != ord("e"):
            raise BitstreamError(f"damaged .bit: no length field at byte {offset}")
        (nbytes,) = struct.unpack_from(">I", data, offset + 1)
    except (IndexError, struct.error) as error:
        raise BitstreamError(f"damaged .bit: it ends after {len(data)} bytes") from error
    return BitHeader(texts[0], texts[1], texts[2], texts[3], nbytes, offset + 5)


def is_simulation_image(path: Path | str) -> bool:
    """Return whether the file is a simulation image: a ``.bit`` without configuration frames.

    A file of another format, such as a raw ``.bin``, is not one.
    """
    with Path(path).open("rb") as file:
        data = file.read(_HEADER_LIMIT)
    if not data.startswith(_MAGIC):
        return False
    header = read_bit_header(data)
    return data[header.offset : header.offset + len(MARKER)] == MARKER


def check_bitstream(path: Path | str, real_hardware: bool) -> None:
    """Refuse a simulation image where there is silicon to configure.

    Parameters
    ----------
    path : pathlib.Path or str
        The ``.bit``.
    real_hardware : bool
        Whether the board that is going to load it is one that can be touched.

    Raises
    ------
    BitstreamError
        The file is missing, is a damaged ``.bit``, or is a simulation image and `real_hardware`.
    """
    path = Path(path)
    if not path.is_file():
        raise BitstreamError(
            f"{path} does not exist; generate the simulation images with: "
            "python -m pynq_torch overlay build"
        )
    if real_hardware and is_simulation_image(path):
        raise BitstreamError(
            f"{path.name} is a simulation image: it holds no configuration frames, so it cannot "
            f"configure a real board. On a machine with Vitis HLS and Vivado, build the real one "
            f"with: make -C hw overlays OVERLAYS={path.stem}"
        )


def warn_of_refusal(path: Path) -> None:
    """Warn where a real board would refuse a ``.bit``: the virtual board goes by the ``.hwh``.

    A raw ``.bin`` has no header to judge by, and what is in an ``.xsa`` is judged there.
    """
    if path.suffix in (".bin", ".xsa") or not path.is_file():
        return
    try:
        header = read_bit_header(path.read_bytes())
        found = header.offset + header.nbytes
        if found != path.stat().st_size:
            raise BitstreamError(
                f"damaged .bit: its header says {found} bytes, the file has {path.stat().st_size}"
            )
        if not header.part.startswith(_PART):
            raise BitstreamError(f"a .bit for the part {header.part}, expected {_PART}")
    except BitstreamError as error:
        warnings.warn(
            f"{path.name}: {error}. The virtual board goes by the .hwh; a PYNQ-Z2 would refuse the "
            ".bit: copy the .bit of the same Vivado run again.",
            BitstreamWarning,
            stacklevel=2,
        )
