"""pynq's cache of hardware handoffs, and when it serves the wrong one.

On the board pynq 3.1 keeps the parsed handoff of the bitstream loaded last
(``_current_metadata.pkl`` and ``global_pl_state_.json`` beside its sources) and uses it again
whenever the *bitstream* is the same. A handoff that was replaced beside an unchanged bitstream is
then not read.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

__all__ = ["StaleCacheWarning", "cache_files", "drop_stale_cache", "is_stale"]


class StaleCacheWarning(UserWarning):
    """pynq would have used the handoff of an earlier design."""


def cache_files() -> tuple[Path, Path]:
    """Return the paths of pynq's pickled handoff and of its state file."""
    from pynq.pl_server import global_state

    folder = Path(global_state.STATE_DIR)
    return folder / "_current_metadata.pkl", Path(global_state._get_state_path())


def is_stale(bitstream: Path) -> bool:
    """Whether pynq would serve a cached handoff that is older than the file beside `bitstream`."""
    from pynq.pl_server import global_state

    pickled, state = cache_files()
    handoff = bitstream.with_suffix(".hwh")
    if not (pickled.is_file() and state.is_file() and handoff.is_file()):
        return False
    try:
        cached = json.loads(state.read_text(encoding="utf-8"))
    except ValueError:
        return True  # a damaged state file: pynq cannot read it either
    if cached.get("bitfile_hash") != global_state.bitstream_hash(str(bitstream)):
        return False  # another bitstream: pynq parses again
    # Copying sets a new time, unpacking may not: the folder's own change of entry counts too.
    changed = max(handoff.stat().st_mtime, handoff.stat().st_ctime)
    return changed > pickled.stat().st_mtime or Path(cached["bitfile_name"]) != bitstream


def drop_stale_cache(bitstream: Path) -> bool:
    """Remove pynq's cache where it is stale for `bitstream`, with a warning.

    Returns
    -------
    bool
        Whether it was.
    """
    if not is_stale(bitstream):
        return False
    for path in cache_files():
        path.unlink(missing_ok=True)
    warnings.warn(
        f"pynq's cache had an earlier handoff for {bitstream.name}; it was removed, and "
        f"{bitstream.with_suffix('.hwh').name} is read again. Without this pynq would have used "
        "the old addresses (pynq.pl_server.global_state.clear_global_state() does the same).",
        StaleCacheWarning,
        stacklevel=3,
    )
    return True
