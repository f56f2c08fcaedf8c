"""``torch.pynq.kernel_logger``: every start of a compute unit, with all that was written to it.

::

    torch.pynq.kernel_logger.enable()
    y = a @ b                          # or overlay.gemm(a, b), or overlay.gemm.start(...)
    torch.pynq.kernel_logger.disable()
    print(torch.pynq.kernel_logger.json())
    torch.pynq.kernel_logger.clear()

The log grows until `clear`.
"""

from __future__ import annotations

import json as _json
import threading
from typing import Any

from pynq_torch import events
from pynq_torch.events import Array, KernelCall
from pynq_torch.torch_device import record

__all__ = ["clear", "disable", "enable", "entries", "is_enabled", "json"]

_lock = threading.Lock()
_log: list[tuple[KernelCall, str | None]] = []


def enable() -> None:
    """Log every start of a compute unit from now on, by operators and by drivers."""
    events.runs.subscribe(_note)
    events.operators.subscribe(_no_more)  # operators are recorded, so that a run knows its own


def disable() -> None:
    """Stop that; runs that are running still get their time when they end."""
    events.runs.unsubscribe(_note)
    events.operators.unsubscribe(_no_more)


def is_enabled() -> bool:
    """Whether starts are logged."""
    return _note in events.runs.subscribers


def clear() -> None:
    """Empty the log."""
    with _lock:
        _log.clear()


def entries() -> list[dict[str, Any]]:
    """Return the log, a dict for each start, in order.

    Returns
    -------
    list of dict
        - ``cu``, ``kernel``: the compute unit, and the kernel it is an instance of
        - ``operator``: e.g. ``"aten::mm"``; ``None`` where a driver was called directly
        - ``arguments``: name -> number, or ``{"dtype", "shape", "address"}`` for a buffer, with
          ``"skipped"`` bytes in front where the unit begins within it
        - ``registers``: name in the hardware handoff -> value, as text in hex
        - ``start_s``: seconds since the first start in the log
        - ``seconds``: from AP_START to the end as the host saw it; ``None`` while running
        - ``kind``, ``where``: where ``seconds`` comes from: ``"measured"``, ``"csim on this PC"``
        - ``transfer_s``: what the driver spent on the CPU's cache for it
        - ``thread``: name of the thread that started it
        - ``error``: how it ended if not well; ``None`` otherwise
    """
    with _lock:
        log = list(_log)
    zero = log[0][0].start if log else 0.0
    return [_entry(run, operator, zero) for run, operator in log]


def json() -> str:
    """Return the log as JSON, a line for each key; see `entries`."""
    starts = (
        ",\n".join(f" {_json.dumps(key)}: {_json.dumps(value)}" for key, value in entry.items())
        for entry in entries()
    )
    text = ",\n".join(f"{{\n{lines}\n}}" for lines in starts)
    return f"[\n{text}\n]" if text else "[]"


def _no_more(call: events.OperatorCall) -> None:
    """Take no note of an operator; its runs were noted when they began."""


def _note(run: KernelCall) -> None:
    if run.seconds is None:
        call = record.current()
        with _lock:
            _log.append((run, call.name if call is not None else None))


def _entry(run: KernelCall, operator: str | None, zero: float) -> dict[str, Any]:
    return {
        "cu": run.cu,
        "kernel": run.kernel,
        "operator": operator,
        "arguments": {name: _argument(value) for name, value in run.arguments.items()},
        "registers": {name: f"0x{value:08x}" for name, value in run.registers.items()},
        "start_s": run.start - zero,
        "seconds": run.seconds,
        "kind": run.kind,
        "where": run.where,
        "transfer_s": run.transfer_s,
        "thread": run.thread,
        "error": run.error or None,
    }


def _argument(value: int | float | str | Array) -> Any:
    if not isinstance(value, Array):
        return value
    found = {"dtype": value.dtype, "shape": list(value.shape), "address": f"0x{value.address:08x}"}
    return {**found, "skipped": value.skipped} if value.skipped else found
