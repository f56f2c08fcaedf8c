"""RTL inside an archive: the IP as Vitis HLS exports it (``.zip``), or a kernel (``.xo``)."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath

from pynq_torch.errors import RtlError
from pynq_torch.hls import cache

__all__ = ["unpack"]

_KEPT = (".v", ".sv", ".vh", ".svh", ".vhd", ".vhdl", ".dat", ".mem")
_MAX_BYTES = 256 << 20


def unpack(folder: Path, name: str) -> Path | None:
    """Unpack the RTL of the archive below `folder` that has the top module, ``<name>.v``.

    Returns a folder in the build cache, None where no archive has the file.

    Raises
    ------
    RtlError
        An archive is damaged, or much too large.
    """
    for path in sorted([*folder.rglob("*.zip"), *folder.rglob("*.xo")]):
        try:
            with zipfile.ZipFile(path) as file:
                names = [PurePosixPath(item) for item in file.namelist()]
                if any(item.name in (f"{name}.v", f"{name}.sv", f"{name}.vhd") for item in names):
                    return _unpack(path, file)
        except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
            raise RtlError(
                f"{name}: {path} is no readable archive ({error}): export the IP again", name
            ) from error
    return None


def _unpack(path: Path, file: zipfile.ZipFile) -> Path:
    key = cache.digest("rtl archive", path.resolve())

    def make() -> cache.Entry:
        with cache.scratch() as folder:
            wanted = [item for item in file.infolist() if _wanted(item)]
            if sum(item.file_size for item in wanted) > _MAX_BYTES:
                raise RtlError(
                    f"{path} holds more than {_MAX_BYTES >> 20} MB of RTL; unpack it "
                    "beside the kernel instead"
                )
            for item in wanted:
                file.extract(item, folder)
            return cache.store(key, folder, [str(path.resolve())], (), {})

    return Path(cache.find_or_make(key, (), make)["path"])


def _wanted(item: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(item.filename)
    return path.suffix in _KEPT and ".." not in path.parts and not path.is_absolute()
