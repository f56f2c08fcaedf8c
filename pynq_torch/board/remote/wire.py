"""The service that this project's servers have beside PYNQ.remote's: many steps in one message.

A message is its header's length (4 bytes), the header as JSON, and bytes that belong to it. A step
is a list: its name, then numbers and handles. An answer has one item for each step that was done.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pynq_torch.errors import PynqTorchError

__all__ = ["AT_ONCE", "ERROR_KIND", "EXCHANGE", "HELLO", "VERSION", "pack", "unpack"]

VERSION = 1
_SERVICE = "/pynq_torch.Board/"
HELLO, EXCHANGE = f"{_SERVICE}hello", f"{_SERVICE}exchange"
#: Bytes of content that go along with a message of steps; gRPC refuses messages above 4 MB.
AT_ONCE = 1 << 20
#: Under which name the kind of an error comes where an answer has no place for it.
ERROR_KIND = "pynq-torch-error"


def pack(header: dict[str, Any], contents: Sequence[bytes] = ()) -> bytes:
    """Return a message; ``sizes`` in its header says how long each content is."""
    text = json.dumps(header | {"sizes": [len(c) for c in contents]}).encode()
    return b"".join((len(text).to_bytes(4, "little"), text, *contents))


def unpack(message: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return the header and the contents of a message.

    Raises
    ------
    PynqTorchError
        It is no such message, or a part of one.
    """
    end = 4 + int.from_bytes(message[:4], "little")
    try:
        if len(message) < 4 or end > len(message):
            raise ValueError("it ends early")
        header = json.loads(message[4:end])
        sizes = header["sizes"]
        if any(type(n) is not int or n < 0 for n in sizes) or end + sum(sizes) != len(message):
            raise ValueError("it ends early, or has more than it says")
    except (ValueError, TypeError, KeyError) as error:
        raise PynqTorchError(
            f"a message of {len(message)} bytes is none of this service: {error}"
        ) from error
    contents = []
    for size in sizes:
        contents.append(message[end : end + size])
        end += size
    return header, contents
