"""AXI DMA transfers that end: checked before, bounded, and diagnosed when they do not work."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from pynq_torch import events
from pynq_torch.buffers import buffer_of
from pynq_torch.diagnosis import Facts, diagnose, snapshot
from pynq_torch.diagnosis.snapshot import is_scatter_gather, side_of
from pynq_torch.errors import TransferError, TransferTimeout
from pynq_torch.tables import count_text

from .channels import is_dma, make_ready, reset, run_out
from .polling import attach, check_timeout

__all__ = ["Moved", "TransferError", "reset", "transfer", "wait_channels"]

_RECOVERED = (
    "\n  now: the DMA has been reset and can be used. "
    "What an IP had taken of the packet, it still has: "
    "load the overlay again if its next result is wrong."
)
_LEFT = (
    "\n  now: the transfer is still running; mend the cause and pynq_torch.wait(dma), "
    "or give it up with pynq_torch.reset(dma)."
)


class Moved(NamedTuple):
    """Bytes that a transfer moved."""

    sent: int
    received: int


def wait_channels(dma: Any, channels: list[Any], timeout_s: float) -> None:
    """Wait until every one of `channels` has ended; see :func:`pynq_torch.wait`."""
    for channel in channels:
        _check_waitable(dma, channel)
    if not run_out(channels, timeout_s):
        raise _failure(dma, timeout_s, channels)
    for channel in channels:
        _finish(channel)


def _check_waitable(dma: Any, channel: Any) -> None:
    if is_scatter_gather(channel):
        if channel._cyclic:
            raise TransferError("a cyclic transfer never ends; stop it with channel.stop()")
        armed = channel._transfer_started
    else:
        length = int(channel._mmio.read(channel._offset + snapshot.LENGTH))
        armed = channel._active_buffer is not None or length
    if armed or snapshot.is_stale(dma.device, dma._fullpath, channel._mmio.base_addr):
        return
    facts = snapshot.gather(dma, waited_s=0.0)
    if any(c.lost_length for c in facts.channels):
        raise _refused(facts, ": nothing was started")
    side = side_of(channel)
    raise TransferError(
        f"{dma._fullpath}.{side}channel has nothing to wait for: "
        "it was never armed (upstream's wait() hangs here). "
        f"Call {side}channel.transfer(buffer) first, "
        "or pynq_torch.transfer(dma, send=..., recv=...)."
    )


def _finish(channel: Any) -> None:
    """Let pynq finish its part of a transfer: it returns at once, the channel has ended."""
    if channel._active_buffer is not None:
        channel.wait()
    if channel._interrupt:
        channel._clear_interrupt()


def _refused(facts: Facts, what: str) -> TransferError:
    found = diagnose(facts)
    return TransferError(found.explain(f"{facts.target}{what}"), found)


def _failure(
    dma: Any, waited_s: float, channels: list[Any], **known: Any
) -> TransferError | TransferTimeout:
    """Return the exception for channels that did not end well."""
    facts = snapshot.gather(dma, waited_s=waited_s, **known)
    what = f": the transfer ({' and '.join(map(side_of, channels))})"
    if any(c.failed for c in facts.channels):
        return _refused(facts, f"{what} stopped with an error")
    found = diagnose(facts)
    text = found.explain(f"{dma._fullpath}{what} has not ended within {waited_s:g} s")
    return attach(TransferTimeout(text), found)


def _recovered(dma: Any) -> str:
    """Say what a DMA that was reset after a failure can be used for."""
    left = snapshot.beats_left(snapshot.board_says(dma.device, dma._fullpath))
    if not left:
        return _RECOVERED
    return (
        "\n  now: the DMA has been reset, but a FIFO before the IP, or its input registers, "
        f"still hold {count_text(left, 'beat')}, which no reset of the DMA reaches: "
        "load the overlay again before the next transfer."
    )


def transfer(
    dma: Any,
    send: Any = None,
    recv: Any = None,
    timeout_s: float = 10.0,
    *,
    exact: bool = True,
    recover: bool = True,
) -> Moved:
    """Send and receive through a DMA, and wait for both sides.

    The receive side is armed before the send side. A DMA that an earlier error has halted is
    reset first.

    Parameters
    ----------
    dma : pynq.lib.DMA
        Upstream's object, e.g. ``overlay.axi_dma_0``.
    send, recv : PynqBuffer or torch.Tensor over CMA memory, optional
        At least one. Contiguous; the whole of it is moved.
    timeout_s : float
        Seconds for both sides together.
    exact : bool
        Raise if fewer bytes arrive than `recv` holds; otherwise return how many did.
    recover : bool
        Reset the DMA after a timeout, an error or Ctrl-C, so that it stops writing to the buffers
        and can be used again. ``False`` leaves the transfer running: once the cause is mended
        (the IP started, say), ``pynq_torch.wait(dma)`` sees its end.

    Returns
    -------
    Moved
        ``sent`` and ``received``, in bytes.

    Raises
    ------
    TransferError
        The transfer cannot work (its length, alignment, a busy DMA, ...), or stopped with an error.
    TransferTimeout
        It did not end; the message is a diagnosis.
    BufferFreed
        A buffer was freed.
    """
    timeout_s = check_timeout(timeout_s)
    out, into = _operands(dma, send, recv)
    if all(b is None or b.nbytes == 0 for b in (out, into)):
        return Moved(0, 0)
    before = _prepare(dma, out, into)
    _run(dma, out, into, timeout_s, before, recover)
    moved = Moved(
        0 if out is None else int(dma.sendchannel.transferred),
        0 if into is None else int(dma.recvchannel.transferred),
    )
    if exact and into is not None and moved.received < into.nbytes:
        sent, asked = moved.sent or None, int(into.nbytes)
        facts = snapshot.gather(dma, waited_s=0.0, sent=sent, received=asked, before=before)
        raise _refused(facts, ": a short packet was received")
    return moved


def _run(
    dma: Any, out: Any, into: Any, timeout_s: float, before: dict[str, Any], recover: bool
) -> None:
    """Arm the channels and wait for them; where they do not end well, `recover` and raise."""
    probe = _Probe(into)
    used: list[Any] = []
    begun: list[float] = []
    failure = None
    try:
        for channel, buffer in ((dma.recvchannel, into), (dma.sendchannel, out)):
            if buffer is not None:
                begun.append(time.perf_counter())
                channel.transfer(buffer)
                used.append(channel)
        ended = run_out(used, timeout_s)
        end = time.perf_counter()
        for channel, begin in zip(used, begun, strict=True):
            lane = f"{dma._fullpath}.{side_of(channel)}"
            events.transfers.publish(events.Transfer(lane, begin, end))
        if not ended:
            failure = _failure(
                dma,
                timeout_s,
                used[::-1],
                sent=None if out is None else int(out.nbytes),
                received=None if into is None else int(into.nbytes),
                changed=probe.changed(),
                before=before,
            )
            raise failure
    except BaseException as error:
        # Ctrl-C included: nothing may go on writing to buffers that the program gives up.
        if recover:
            reset(dma)
        if error is failure:  # whose message says last what the reset left
            error.args = (f"{error}{_recovered(dma) if recover else _LEFT}",)
        raise
    for channel in used:
        _finish(channel)


def _operands(dma: Any, send: Any, recv: Any) -> tuple[Any, Any]:
    if not is_dma(dma):
        raise TypeError(
            f"expected a pynq.lib.DMA, found {type(dma).__name__}; is the IP an axi_dma, "
            "and is its version one that pynq has a driver for (ignore_version=True)?"
        )
    if send is None and recv is None:
        raise TransferError("nothing to do: give send=, recv= or both")
    return _operand(dma, "send", send), _operand(dma, "recv", recv)


def _operand(dma: Any, side: str, data: Any) -> Any:
    buffer = buffer_of(data)
    if buffer is None:
        if data is None or getattr(data, "nbytes", None) == 0:
            return data
        raise TransferError(
            f"{side} is {type(data).__name__} in ordinary memory, which the PL cannot reach; "
            "expected a buffer from pynq.allocate() or a tensor over one: "
            "buffers.to_buffer(data), buffers.empty_tensor(shape)"
        )
    if not buffer.flags.c_contiguous:
        raise TransferError(
            f"{side} has strides {buffer.strides} for shape {buffer.shape}: a DMA moves contiguous "
            "bytes; pass buffers.to_buffer(data.copy()), or a contiguous part"
        )
    if buffer.device is not None and buffer.device is not dma.device:
        raise TransferError(f"{side} was allocated on another device than {dma._fullpath} is on")
    return buffer


def _prepare(dma: Any, out: Any, into: Any) -> dict[str, Any]:
    """Bring a DMA to where a transfer starts from; return what its board says there."""
    _check(dma, out, into)
    make_ready(dma)
    before = snapshot.board_says(dma.device, dma._fullpath)
    left = snapshot.beats_left(before)
    if left and out is not None:
        raise _refused(Facts(dma._fullpath, left=left), " cannot be used")
    return before


def _check(dma: Any, out: Any, into: Any) -> None:
    """Refuse what is known not to work before any register is written."""
    name = dma._fullpath
    if snapshot.is_stale(dma.device, name, dma.mmio.base_addr):
        raise _refused(Facts(name, stale=True), " cannot be used")
    for side, channel, buffer in (("send", dma.sendchannel, out), ("recv", dma.recvchannel, into)):
        if buffer is None:
            continue
        if channel is None:
            raise TransferError(
                f"{name} has no {side} channel: it was built without it ('Enable "
                f"{'Read' if side == 'send' else 'Write'} Channel' in the block design)"
            )
        _check_size(name, side, channel, int(buffer.nbytes))
        address, width = int(buffer.physical_address), int(channel._align)
        if not channel._dre and address % width:
            raise TransferError(
                f"{side} starts at 0x{address:08x}, no multiple of the {width} bytes of {name}'s "
                "memory port, and the DMA was built without data realignment. "
                "Transfer from the start of a buffer, or build it with 'Allow Unaligned Transfers'."
            )


def _check_size(name: str, side: str, channel: Any, nbytes: int) -> None:
    limit, least = int(channel._max_size), 2 * int(channel._align)
    scattered = is_scatter_gather(channel)
    if nbytes == 0:
        raise TransferError(
            f"{side} is empty and the other side is not: a DMA cannot move 0 bytes; "
            f"leave {side} out"
        )
    if nbytes > limit and not scattered:
        raise TransferError(
            f"{side} has {nbytes} bytes; {name}'s length register holds at most {limit} "
            f"({limit.bit_length()} bits). Transfer in pieces of at most that, or build the DMA "
            "with a wider 'Width of Buffer Length Register' (up to 26 bits)."
        )
    if scattered and nbytes < least:
        raise TransferError(
            f"{side} has {nbytes} bytes; pynq's scatter-gather driver splits a transfer in two "
            f"and needs at least {least}"
        )


class _Probe:
    """A lower bound of how much of a buffer was written, from 64 samples taken before.

    The length register of a simple DMA tells the bytes received only once the transfer has ended.
    """

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer
        if buffer is not None:
            self._bytes = buffer.reshape(-1).view("u1")
            self._step = max(1, self._bytes.size // 64)
            self._before = bytes(self._bytes[:: self._step])

    def changed(self) -> int | None:
        """Return one more than the last sampled byte that changed; ``None`` if none did."""
        if self._buffer is None:
            return None
        self._buffer.invalidate()
        pairs = zip(self._before, bytes(self._bytes[:: self._step]), strict=True)
        last = [i for i, (before, now) in enumerate(pairs) if before != now]
        return last[-1] * self._step + 1 if last else None
