"""Operators of device "pynq": memory, dispatch, and what the kernels of an overlay can do."""

import torch  # noqa: F401 (torch loads the device, and that these modules: not halfway through one)
