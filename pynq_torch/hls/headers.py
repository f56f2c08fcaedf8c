r"""Headers that are there under another spelling: sources written on Windows.

Windows does not tell ``AES.h`` from ``aes.h`` and takes ``..\inc\a.h``; published kernels rely on
it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_INTEGERS = "#include <stdint.h>\n#include <sys/types.h>\n"
_LINK = "source"

#: Headers of SystemC.
_SYSTEMC = re.compile(r"systemc(?:\.h)?|ap_systemc\.h|tlm(?:\.h)?")

__all__ = ["drop_link", "include", "is_elsewhere", "not_read", "real_name", "write_stand_in"]


def not_read(name: str) -> str:
    """Return what to say of a missing header that is SystemC's; ``""`` for any other."""
    if not _SYSTEMC.fullmatch(name):
        return ""
    return f"{name}: SystemC is not read here; write the kernel as a C++ function"


def include(path: Path, scratch: Path) -> str:
    """Return the line that includes `path`, whatever characters its folder's name has.

    Parameters
    ----------
    path : pathlib.Path
        Absolute.
    scratch : pathlib.Path
        Gets a link to the folder where no spelling of C++ gives its name.
    """
    text = str(path)
    if not set('"\n\r') & set(text):
        return f'#include "{text}"'
    if not set(">\n\r") & set(text):
        return f"#include <{text}>"
    link = scratch.absolute() / _LINK
    if not link.is_symlink():
        link.symlink_to(path.parent)
    return f'#include "{link / path.name}"'


def drop_link(scratch: Path) -> None:
    """Remove the link that `include` may have made."""
    (scratch / _LINK).unlink(missing_ok=True)


def is_elsewhere(name: str) -> bool:
    """Whether a header that is not found is named by a path, of Windows or of Linux."""
    return re.match(r"[A-Za-z]:[/\\]|/", name) is not None


def real_name(name: str, folders: Sequence[Path | str]) -> Path | None:
    """Return the file that Windows would find for ``#include "name"``, or None.

    Of a path of another machine (``C:/Xilinx/include/hls_video.h``, or ``/opt/Xilinx/...``) the
    header of that name.

    Parameters
    ----------
    name : str
        As written in the source.
    folders : sequence of path
        The include folders.
    """
    parts = name.replace("\\", "/").split("/")
    ways = [parts, parts[-1:]] if is_elsewhere(name) else [parts]
    walked = (_walk(Path(folder), way) for way in ways for folder in folders)
    return next((found for found in walked if found is not None), None)


def _walk(folder: Path, parts: Sequence[str]) -> Path | None:
    if not parts:
        return folder if folder.is_file() else None
    head, rest = parts[0], parts[1:]
    if head in ("", ".", ".."):
        return _walk(folder / head if head else folder, rest)
    if not folder.is_dir():
        return None
    for entry in sorted(folder.iterdir()):
        if entry.name.lower() == head.lower():
            found = _walk(entry, rest)
            if found is not None:
                return found
    return None


def write_stand_in(folder: Path, name: str, real: Path | None) -> bool:
    """Put a file called `name` into `folder` that includes `real`, and tell whether that goes.

    Without one it has the C library's integer types: kernels rely on a vendor's header for them.
    """
    relative = Path(name)
    if relative.is_absolute() or ".." in relative.parts:
        return False
    stand_in = folder / relative
    stand_in.parent.mkdir(parents=True, exist_ok=True)
    text = include(real.resolve(), stand_in.parent) + "\n" if real else _INTEGERS
    stand_in.write_text(text, encoding="utf-8")
    return True
