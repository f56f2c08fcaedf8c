"""Waits that end: every wait has a timeout, and a timeout is a diagnosis.

They take upstream pynq's own objects, through registers only, so that they serve a program on a
real board as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from pynq_torch.diagnosis import ERROR_MASK, Facts, diagnose, snapshot
from pynq_torch.diagnosis.streams import stream_hint
from pynq_torch.errors import KernelTimeout
from pynq_torch.hls.ap_ctrl import AP_CONTINUE, AP_DONE, AUTO_RESTART, has_ended

from .channels import channels_of, dma_of, is_dma, reset
from .polling import attach, check_timeout, ends, wait_clock
from .transfers import Moved, TransferError, transfer, wait_channels

__all__ = ["Moved", "TransferError", "reset", "transfer", "wait", "wait_async"]


def wait(target: Any, timeout_s: float = 10.0) -> None:
    """Wait for the end of what `target` is doing.

    Parameters
    ----------
    target : object
        ``dma.sendchannel`` or ``dma.recvchannel`` (simple or scatter-gather); a ``pynq.lib.DMA``
        (both channels, where armed); an HLS IP (``overlay.<ip>``, upstream's or our driver); a
        ``pynq.Interrupt`` (where no event loop runs: in a notebook await :func:`wait_async`).
    timeout_s : float
        Seconds; finite.

    Raises
    ------
    TransferTimeout, KernelTimeout
        It did not end in time. The message is a diagnosis, ``.diagnosis`` its values.
    TransferError
        The DMA stopped with an error, or was never armed.

    Notes
    -----
    Reading AP_CTRL clears AP_DONE. An IP that is idle has nothing to wait for.
    """
    timeout_s = check_timeout(timeout_s)
    if callable(own := getattr(target, "pynq_torch_wait", None)):
        own(timeout_s)
    elif snapshot.is_channel(target):
        wait_channels(dma_of(target), [target], timeout_s)
    elif is_dma(target):
        armed = [c for c in channels_of(target) if c._active_buffer is not None]
        wait_channels(target, armed, timeout_s)
    elif _is_interrupt(target):
        _wait_interrupt(target, timeout_s)
    elif hasattr(target, "mmio"):
        wait_kernel(target, timeout_s)
    else:
        raise TypeError(
            f"cannot wait for {type(target).__name__}; "
            "expected a DMA, one of its channels, an HLS IP of an overlay, or a pynq.Interrupt"
        )


async def wait_async(target: Any, timeout_s: float = 10.0) -> None:
    """As :func:`wait`, in a coroutine, by interrupt where one is connected.

    Other coroutines run meanwhile. Without an interrupt it polls, with pauses.

    Parameters
    ----------
    target, timeout_s
        See :func:`wait`. For an HLS IP its interrupt is enabled (GIE, IER) and acknowledged here.
    """
    timeout_s = check_timeout(timeout_s)
    deadline = wait_clock() + timeout_s
    if _is_interrupt(target):
        await _interrupt(target, timeout_s)
        return
    line, over, acknowledge = _interrupt_of(target)
    pause = 1e-4
    while not over():
        left = deadline - wait_clock()
        if left <= 0:
            break
        if line is None:
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, 5e-3)
            continue
        try:
            # Woken now and then as well: an interrupt that came before it was enabled is lost.
            await asyncio.wait_for(line.wait(), min(left, 0.1))
        except asyncio.TimeoutError:
            line.waiting = False
        acknowledge()
    # The rest is the same for all: errors, diagnosis, invalidating the buffer.
    wait(target, max(deadline - wait_clock(), 1e-3))


def _is_interrupt(target: Any) -> bool:
    return hasattr(target, "event") and hasattr(target, "parent")


def _interrupt_of(target: Any) -> tuple[Any, Callable[[], bool], Callable[[], None]]:
    """Return the interrupt of a target, a test whether it has ended, and the acknowledgement."""
    if snapshot.is_channel(target):
        mmio, base = target._mmio, target._offset

        def stopped() -> bool:
            return bool(int(mmio.read(base + snapshot.SR)) & (ERROR_MASK | 0x3))

        return target._interrupt, stopped, target._clear_interrupt
    if is_dma(target) or not hasattr(target, "mmio"):
        raise TypeError(
            f"cannot await {type(target).__name__}; expected a DMA channel, an HLS IP or an "
            "Interrupt"
        )
    mmio, line = target.mmio, getattr(target, "interrupt", None)
    if line is not None:
        mmio.write(0x08, 1)  # IER: ap_done
        mmio.write(0x04, 1)  # GIE

    def acknowledge() -> None:
        if int(mmio.read(0x0C)) & 1:
            mmio.write(0x0C, 1)  # ISR toggles on write

    def over() -> bool:
        return has_ended(int(mmio.read(0)))

    return line, over, acknowledge


async def _interrupt(line: Any, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(line.wait(), timeout_s)
    except asyncio.TimeoutError:
        line.waiting = False
        raise KernelTimeout(
            f"no interrupt in {timeout_s:g} s. Check that the IP was started, "
            "that its interrupt is enabled (GIE and IER of an HLS IP, IOC_IrqEn of a DMA) "
            "and that an earlier one was acknowledged."
        ) from None


def _wait_interrupt(line: Any, timeout_s: float) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # pynq attaches the line to the thread's default loop when the Interrupt is made.
        asyncio.get_event_loop_policy().get_event_loop().run_until_complete(
            _interrupt(line, timeout_s)
        )
        return
    raise RuntimeError(
        "wait(interrupt) cannot run inside a running event loop, such as a notebook's; write: "
        "await pynq_torch.waits.wait_async(interrupt, timeout_s=...)"
    )


def wait_kernel(ip: Any, timeout_s: float) -> None:
    """Wait until an HLS IP is done or idle; see :func:`wait`."""
    name = getattr(ip, "_fullpath", type(ip).__name__)
    fields = ((getattr(ip, "_registers", None) or {}).get("CTRL") or {}).get("fields", {})
    if "AP_START" not in fields:
        raise TypeError(
            f"{name} has no AP_CTRL register at offset 0 that says when it has finished; wait for "
            "the DMA channel that takes its results instead"
        )
    control = ip.mmio.array
    seen = 0

    def over() -> bool:
        nonlocal seen
        seen = int(control[0])
        return has_ended(seen)

    if ends(over, timeout_s):
        if seen & AP_DONE and int(control[0]) & AP_DONE:
            # AP_DONE that can be read twice is ap_ctrl_chain's: it stays until AP_CONTINUE.
            control[0] = AP_CONTINUE | seen & AUTO_RESTART
        return
    raise kernel_timeout(ip, name, timeout_s, seen)


def kernel_timeout(ip: Any, name: str, timeout_s: float, control: int) -> KernelTimeout:
    """Return the exception for a kernel that does not finish."""
    device = getattr(ip, "device", None)
    # With the control value read last: reading it again would clear more bits.
    frozen = SimpleNamespace(
        _registers=ip._registers, mmio=SimpleNamespace(read=lambda offset: control)
    )
    said = snapshot.read_kernel(name, frozen, device)
    stale = snapshot.is_stale(device, name, ip.mmio.base_addr)
    hint = stream_hint(device, name, only=True)  # what it waits for, where nothing was sent
    notes = (hint,) if hint and not stale else ()
    found = diagnose(Facts(name, timeout_s, kernels=(said,), stale=stale, notes=notes))
    text = found.explain(f"{name} has not finished within {timeout_s:g} s")
    return attach(KernelTimeout(text, name), found)
