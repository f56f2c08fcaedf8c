"""A sandbox for programs of students: what they see of this PC, and where they end.

It is made by Bubblewrap. Linux counts no processes of root's against a limit, so where root starts
the sandbox, the program in it belongs to another user.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from pynq_torch.hls.cache import cache_dir
from pynq_torch.paths import BITSTREAMS, HW, PACKAGE, left_by_pynq

__all__ = ["NOBODY", "as_user", "is_root", "limits", "readable", "sandbox"]

#: User and group "nobody" of every Linux distribution (overflowuid, overflowgid).
NOBODY = 65534
MIB = 1 << 20
#: Where Linux distributions have programs, libraries and what those read.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt")


def is_root() -> bool:
    """Return whether Linux takes this process for root's, which root of a container may not be."""
    mapped = Path("/proc/self/uid_map").read_text(encoding="ascii").split()
    return os.geteuid() == 0 and mapped[:2] == ["0", "0"]


def readable() -> list[str]:
    """Return the folders that are read in every sandbox: Python's, its packages', the project's."""
    # An environment may have packages outside its own folder.
    packages = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    own = map(str, (PACKAGE, HW, BITSTREAMS))
    # Its programs begin with the path that it had when they were installed.
    prefixes = (sys.base_prefix, sys.prefix, os.path.realpath(sys.prefix))
    return list(dict.fromkeys([*_SYSTEM, *prefixes, *packages, *own]))


def sandbox(
    writable: Iterable[str], hidden: Iterable[Path], size_mb: int, network: bool = False
) -> list[str]:
    """Return the words of Bubblewrap before a program.

    Parameters
    ----------
    writable : iterable of str
        Folders that the program may change. It reads those of `readable`, and finds nothing else.
    hidden : iterable of pathlib.Path
        Folders below one that it reads that are empty for it; so is what pynq left there.
    size_mb : int
        Size of ``/tmp`` and of ``/dev/shm``, in MiB, which are its own.
    network : bool
        Whether it has the PC's network.
    """
    read = readable()
    words = ["bwrap", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if is_root():  # in a user namespace there would be no other user to change to
        words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        words += ["--unshare-user"]
    words += [f"--unshare-{what}" for what in ("pid", "ipc", "uts", "cgroup-try")]
    words += [] if network else ["--unshare-net"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/tmp", "/dev/shm"):
        words += ["--size", str(size_mb * MIB), "--perms", "1777", "--tmpfs", folder]
    for folder in (*read, str(cache_dir()), *writable):
        for parent in list(Path(folder).parents)[-2::-1]:  # Bubblewrap's would be root's alone
            words += ["--perms", "0755", "--dir", str(parent)]
    for folder in read:
        words += ["--ro-bind-try", folder, folder]
    for empty in hidden:
        if any(empty.is_relative_to(seen) for seen in read) and empty.is_dir():
            words += ["--tmpfs", str(empty)]
    words += [w for file in left_by_pynq() for w in ("--dev-bind", "/dev/null", str(file))]
    words += ["--ro-bind-try", str(cache_dir()), str(cache_dir())]
    for folder in writable:
        words += ["--bind", folder, folder]
    return words


def as_user(uid: int) -> list[str]:
    """Return the words that make the program `uid`'s, where root starts it."""
    user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all"]
    return user if is_root() else []


def limits(memory_mb: int, file_mb: int, processes: int) -> list[str]:
    """Return the words that limit each process's memory and files, and a user's processes."""
    sizes = [f"--as={memory_mb * MIB}", f"--fsize={file_mb * MIB}", "--core=0"]
    return ["prlimit", *sizes, f"--nproc={processes}"]
