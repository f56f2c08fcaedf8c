"""Estimates of what an HLS scheduler does with a kernel, without a vendor's tool.

clang and LLVM give the operations, trip counts and addresses; what is written here is the schedule:
cycles of each operation, memory ports, recurrences, loops added up.
"""

from .kept import estimate_of_run
from .result import Estimate, LoopEstimate
from .run import estimate

__all__ = ["Estimate", "LoopEstimate", "estimate", "estimate_of_run"]
