"""LLVM's opt, and the seconds of processor time that its passes have."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from pynq_torch.errors import KernelBuildError

from .place import Place

__all__ = ["OPT", "TooLongError", "naming", "opt", "too_much"]

OPT = "opt-16"
#: A pass is given so many seconds of time for one of processor time: a class may share the PC.
_SHARED = 10


class TooLongError(KernelBuildError):
    """A pass did not end in its seconds."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"{OPT} took more than {seconds} s of processor time")
        self.seconds = seconds


def opt(arguments: Sequence[str], seconds: int) -> tuple[str, str]:
    """Run opt for so many seconds of processor time; return what it writes and what it prints."""
    words = ["prlimit", f"--cpu={seconds}", OPT, *arguments]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=_SHARED * seconds
        )
    except subprocess.TimeoutExpired as error:
        raise TooLongError(seconds) from error
    if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
        raise TooLongError(seconds)
    if done.returncode:
        raise KernelBuildError(f"{OPT} failed: {done.stderr.strip()[:400]}")
    return done.stdout, done.stderr


@contextlib.contextmanager
def naming(factors: Mapping[Place, int]) -> Iterator[None]:
    """Name the loops that became too much, by what their factors are, where a pass has no end."""
    try:
        yield
    except TooLongError as error:
        unrolled = [at for at, n in factors.items() if n != 1]
        raise too_much(unrolled, f"{OPT} can take in {error.seconds} s") from error


def too_much(unrolled: Sequence[Place], most: str) -> KernelBuildError:
    """Return an error that names the loops that became more code than `most`."""
    if not unrolled:
        return KernelBuildError(
            f"what the top function calls is more code than {most}; estimate a part"
        )
    places = dict.fromkeys(place.shown for place in unrolled)
    where = ", ".join([*places][:5])
    return KernelBuildError(
        f"{where}: unrolling makes more code than {most}; give the loop a factor"
    )
