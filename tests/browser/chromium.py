"""Which browser the tests drive; run as a program it says so, or that there is none."""

from __future__ import annotations

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")
NONE = (
    f"no browser ({', '.join(NAMES)}): the tests in tests/browser are skipped; "
    "on Debian: apt-get install chromium"
)


def find() -> str | None:
    """Return the path of the browser, ``PYNQ_TORCH_BROWSER`` first; None where there is none."""
    named = os.environ.get("PYNQ_TORCH_BROWSER")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


if __name__ == "__main__":
    found = find()
    print(f"browser tests with {found}" if found else NONE)
