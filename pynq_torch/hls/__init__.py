"""HLS kernels: reading their interface from the C++, building and testing them on a PC."""

from __future__ import annotations

from pynq_torch.hls.interface import Argument, Axis, AxiBundle, Interface, Register

__all__ = ["Argument", "Axis", "AxiBundle", "Interface", "Register"]
