"""The first files of a kernel and an overlay of your own, so that you write only what yours has.

They are ordinary files, meant to be read and changed; nothing writes them a second time.
"""

from .kernel import new_kernel
from .overlay import new_overlay

__all__ = ["new_kernel", "new_overlay"]
