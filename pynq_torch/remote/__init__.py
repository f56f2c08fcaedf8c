"""A virtual board for the client of PYNQ.remote: pynq's own, unmodified, in another process."""

from __future__ import annotations

from .server import PORT, Server

__all__ = ["PORT", "Server"]
