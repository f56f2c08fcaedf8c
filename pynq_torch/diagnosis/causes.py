"""The table of causes: a symptom, the sentence that explains it, what to try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .facts import ChannelState, Facts, KernelState, beats

__all__ = ["CAUSES", "Cause"]


@dataclass(frozen=True)
class Cause:
    """A row of the table.

    Parameters
    ----------
    name : str
        Short, stable; tests and notebooks look for it.
    applies : callable
        The symptom: a predicate over :class:`Facts`.
    sentence, remedy : callable
        The explanation and what to try, for those facts.
    certain : bool
        Whether the registers prove it; otherwise it is "likely".
    """

    name: str
    applies: Callable[[Facts], bool]
    sentence: Callable[[Facts], str]
    remedy: Callable[[Facts], str]
    certain: bool = True


def _with_error(facts: Facts, bits: int) -> ChannelState | None:
    return next((c for c in facts.channels if c.status & bits), None)


def _bad_address(facts: Facts, bits: int) -> str:
    channel = _with_error(facts, bits)
    return f"0x{channel.address:08x} ({channel.side})" if channel else "the address"


def _too_long(facts: Facts) -> ChannelState | None:
    return next((c for c in facts.channels if (c.requested or 0) > c.max_bytes), None)


def _lost(facts: Facts) -> ChannelState:
    return next(c for c in facts.channels if c.lost_length)


def _unaligned(facts: Facts) -> ChannelState | None:
    return next((c for c in facts.channels if c.armed and c.unaligned and not c.complete), None)


def _halted(facts: Facts) -> ChannelState | None:
    return next((c for c in facts.channels if c.armed and c.halted and not c.failed), None)


def _names(kernels: tuple[KernelState, ...]) -> str:
    return " and ".join(k.name for k in kernels)


def _unstarted(facts: Facts) -> tuple[KernelState, ...]:
    """Return the kernels that stand still and have done nothing for this transfer.

    Programs with a DMA seldom read AP_CTRL, so AP_DONE may be left from an earlier run: it is,
    where nothing came back and the sender is stuck.
    """
    send, recv = facts.send, facts.recv
    stuck = send is not None and send.pending and recv is not None and recv.pending
    earlier = stuck and recv is not None and not recv.moved
    return tuple(
        k
        for k in facts.kernels
        if k.idle or (earlier and k.control is not None and k.control & 0x87 == 0x6)
    )


def _running(facts: Facts) -> tuple[KernelState, ...]:
    return tuple(k for k in facts.kernels if k.running)


def _is_or_are(kernels: tuple[KernelState, ...]) -> str:
    return "are" if len(kernels) > 1 else "is"


def _count(channel: ChannelState | None) -> str:
    if channel is None or channel.moved is None:
        return "an unknown number"
    return f"{'' if channel.moved_exact else 'at least '}{channel.moved}"


def _recv_alone_pending(facts: Facts) -> bool:
    recv, send = facts.recv, facts.send
    return recv is not None and recv.pending and (send is None or not send.pending)


def _all_arrived(facts: Facts) -> bool:
    """Whether every byte asked for is in the buffer, and yet the transfer has not ended."""
    recv = facts.recv
    return (
        recv is not None
        and recv.pending
        and recv.moved is not None
        and recv.moved == recv.requested
    )


def _some_arrived(facts: Facts) -> bool:
    recv = facts.recv
    return (
        recv is not None
        and recv.moved is not None
        and recv.moved_exact
        and recv.moved < (recv.requested or 0)
    )


def _arrived(facts: Facts) -> str:
    """Say how much of the packet is in the buffer, and no more than is known."""
    recv = facts.recv
    requested = (recv.requested if recv else None) or 0
    if _all_arrived(facts):
        return f"All {requested} bytes are in the buffer"
    if recv is not None and recv.moved:
        return f"{_count(recv).capitalize()} of {requested} bytes are in the buffer"
    return f"How many of the {requested} bytes are in the buffer is unknown"


#: The most certain first: the first row whose symptom is met is the one that is shown.
CAUSES: tuple[Cause, ...] = (
    Cause(
        "stale overlay object",
        lambda f: f.stale,
        lambda f: (
            f"Another overlay was loaded after this object was made: {f.target} talks to "
            "addresses that belong to another design now."
        ),
        lambda f: "load the overlay again and take the object from the new one.",
    ),
    Cause(
        "length beyond the length register",
        lambda f: _too_long(f) is not None,
        lambda f: (
            "The LENGTH register holds at most "
            f"{(_too_long(f) or f.channels[0]).max_bytes} bytes; "
            f"{(_too_long(f) or f.channels[0]).requested} were asked for, and the upper bits "
            "were cut off."
        ),
        lambda f: (
            "transfer in pieces of at most dma.buffer_max_size bytes, or build the DMA with a "
            "wider 'Width of Buffer Length Register' (up to 26 bits)."
        ),
    ),
    Cause(
        "length beyond the length register",
        lambda f: any(c.lost_length for c in f.channels),
        lambda f: (
            "An address was programmed and LENGTH reads 0: it was written with 0, or with a number "
            f"whose low bits are 0 (the register holds at most {_lost(f).max_bytes} and drops the "
            "rest). A transfer of 0 bytes does not start."
        ),
        lambda f: (
            "transfer in pieces of at most dma.buffer_max_size bytes, or build the DMA with a "
            "wider 'Width of Buffer Length Register' (up to 26 bits)."
        ),
    ),
    Cause(
        "address outside the map",
        lambda f: _with_error(f, 0x40) is not None,
        lambda f: (
            f"DMADecErr: no memory answers at {_bad_address(f, 0x40)}; the DMA stopped there."
        ),
        lambda f: (
            "pass a buffer from pynq.allocate() of this device (its .physical_address, never "
            ".virtual_address), alive until the transfer has ended; then pynq_torch.reset(dma)."
        ),
    ),
    Cause(
        "memory refused the access",
        lambda f: _with_error(f, 0x20) is not None,
        lambda f: f"DMASlvErr: the memory answered {_bad_address(f, 0x20)} with an error.",
        lambda f: (
            "check that the buffer is alive and that the DMA's port reaches DDR in the block "
            "design's address editor; then pynq_torch.reset(dma)."
        ),
    ),
    Cause(
        "descriptor fault",
        lambda f: _with_error(f, 0x700) is not None,
        lambda f: (
            "A scatter-gather descriptor could not be used (SGIntErr: reused while marked "
            "complete; SGSlvErr and SGDecErr: not readable at its address)."
        ),
        lambda f: "pynq_torch.reset(dma), then transfer again; keep the descriptors' buffer alive.",
    ),
    Cause(
        "length zero",
        lambda f: any(c.status & 0x10 and (c.requested == 0) for c in f.channels),
        lambda f: "DMAIntErr: the LENGTH register was written with 0.",
        lambda f: "ask for at least one byte; then pynq_torch.reset(dma).",
    ),
    Cause(
        "data of an earlier transfer",
        lambda f: f.left > 0,
        lambda f: (
            f"A FIFO before the IP, or its input registers, still hold {beats(f.left)} of an "
            "earlier transfer, which no reset of the DMA reaches: the IP's next results begin with "
            "this data."
        ),
        lambda f: "load the overlay again, which empties everything.",
    ),
    Cause(
        "late TLAST",
        lambda f: f.recv is not None and bool(f.recv.status & 0x10),
        lambda f: (
            "DMAIntErr on the receive side: the packet is longer than the "
            f"{f.recv.requested if f.recv else 0} bytes that were armed; TLAST did not come with "
            "the last of them."
        ),
        lambda f: (
            "make the receive buffer as long as the packet, or let the IP assert TLAST with its "
            "last beat; then pynq_torch.reset(dma) (the channel stays halted until then)."
        ),
    ),
    Cause(
        "internal error",
        lambda f: _with_error(f, 0x10) is not None,
        lambda f: "DMAIntErr: the length was 0, or the DMA was disturbed in the middle.",
        lambda f: "check the length; then pynq_torch.reset(dma).",
    ),
    Cause(
        "unaligned buffer",
        lambda f: _unaligned(f) is not None,
        lambda f: (
            f"0x{(_unaligned(f) or f.channels[0]).address:08x} is no multiple of "
            f"{(_unaligned(f) or f.channels[0]).width_bytes} bytes, and the DMA was built without "
            "data realignment: what it moves is undefined."
        ),
        lambda f: (
            "transfer from the start of a buffer, or build the DMA with 'Allow Unaligned "
            "Transfers'."
        ),
    ),
    Cause(
        "channel halted",
        lambda f: _halted(f) is not None,
        lambda f: (
            f"The {(_halted(f) or f.channels[0]).side} channel is stopped (Halted, no error bit): "
            "it was reset, stopped, or the overlay was downloaded again."
        ),
        lambda f: "pynq_torch.reset(dma), which starts both channels; then transfer again.",
    ),
    Cause(
        "early TLAST",
        lambda f: f.recv is not None and f.recv.short,
        lambda f: (
            f"The receive side ended after {_count(f.recv)} of "
            f"{f.recv.requested if f.recv else 0} bytes: TLAST came early"
            + (", and the sender cannot get rid of the rest." if f.send and f.send.pending else ".")
        ),
        lambda f: (
            "let the IP assert TLAST with the last beat only; where short packets are meant, "
            "transfer(..., exact=False) returns how many bytes came."
        ),
    ),
    Cause(
        "receive not armed before send",
        lambda f: (
            f.send is not None
            and f.send.pending
            and f.recv is not None
            and not f.recv.armed
            and not f.idle_kernels
        ),
        lambda f: (
            "Nothing takes the results: the receive channel was never armed, so the stream is "
            "full and the sender is blocked."
        ),
        lambda f: (
            "arm the receive side first: pynq_torch.transfer(dma, send=a, recv=b), or "
            "dma.recvchannel.transfer(b) before dma.sendchannel.transfer(a)."
        ),
    ),
    Cause(
        "missing TLAST",
        lambda f: (
            _recv_alone_pending(f)
            and (_all_arrived(f) or (f.tlast is False and not _some_arrived(f)))
        ),
        lambda f: f"{_arrived(f)}, and the DMA still waits for the TLAST that ends a packet.",
        lambda f: (
            "assert TLAST with the last beat: in HLS an ap_axiu value with last = (i == n - 1), "
            "in a block design an AXI4-Stream subset converter; then pynq_torch.reset(dma)."
        ),
    ),
    Cause(
        "IP never started",
        lambda f: bool(_unstarted(f)) and any(c.pending for c in f.channels),
        lambda f: (
            f"{_names(_unstarted(f))} {_is_or_are(_unstarted(f))} idle: never started, or "
            "finished before all data had come. Nothing moves through it."
        ),
        lambda f: (
            "start it before the transfer: overlay."
            f"{_unstarted(f)[0].name.replace('/', '.')}.register_map.CTRL.AP_START = 1 (0x81 at "
            "offset 0 for auto-restart), or .start(...) of its driver."
        ),
        certain=False,
    ),
    Cause(
        "nothing sent",
        lambda f: (
            f.send is not None
            and not f.send.armed
            and _recv_alone_pending(f)
            and not (f.recv is not None and f.recv.moved)
        ),
        lambda f: "The receive side is armed and waits; the send side was given nothing to send.",
        lambda f: (
            "give both: pynq_torch.transfer(dma, send=a, recv=b); where the IP makes its data "
            "itself, check that it runs."
        ),
        certain=False,
    ),
    Cause(
        "wrong length",
        lambda f: _recv_alone_pending(f) and _some_arrived(f),
        lambda f: (
            f"Everything was sent, and only {_count(f.recv)} of "
            f"{f.recv.requested if f.recv else 0} bytes came back without a TLAST: the IP makes "
            "fewer than were armed."
        ),
        lambda f: (
            "compare the two lengths (bytes, not elements: use .nbytes) with what the IP "
            "returns per packet; let it assert TLAST; then pynq_torch.reset(dma)."
        ),
    ),
    Cause(
        "missing TLAST",
        _recv_alone_pending,
        lambda f: (
            "The receive side is armed and has not ended, and nothing is being sent any more: "
            "either TLAST is missing, or fewer bytes come than were armed."
        ),
        lambda f: (
            "assert TLAST with the last beat, and compare the lengths in bytes (.nbytes) on both "
            "sides; then pynq_torch.reset(dma)."
        ),
        certain=False,
    ),
    Cause(
        "wrong length",
        lambda f: (
            f.send is not None
            and f.send.pending
            and (f.recv is None or f.recv.complete or not f.recv.armed)
        ),
        lambda f: (
            f"The sender still holds part of its {f.send.requested if f.send else 0} bytes, and "
            "the IP takes no more: it expects a shorter packet."
        ),
        lambda f: (
            "send as many bytes as the IP reads per run (bytes, not elements), or start it again "
            "for the rest; then pynq_torch.reset(dma)."
        ),
        certain=False,
    ),
    Cause(
        "kernel still running",
        lambda f: any(k.running for k in f.kernels),
        lambda f: (
            f"{_names(_running(f))} {'run and have' if len(_running(f)) > 1 else 'runs and has'} "
            "not finished: slow, waiting for data or for room on a stream, or in an endless loop."
        ),
        lambda f: (
            "a larger timeout_s if it is slow; otherwise look at its arguments (sizes of 0 or "
            "uninitialised ones) and at what its streams are connected to."
        ),
        certain=False,
    ),
    Cause(
        "data stuck on the way",
        lambda f: any(c.pending for c in f.channels),
        lambda f: "Both sides wait for each other: nothing moves through what lies between them.",
        lambda f: (
            "check that every IP on the stream is started and out of reset, and that its clock "
            "runs; then pynq_torch.reset(dma)."
        ),
        certain=False,
    ),
    Cause(
        "unknown",
        lambda f: True,
        lambda f: "The registers show nothing that is known to cause this.",
        lambda f: "load the overlay again; look at the register map of each IP involved.",
        certain=False,
    ),
)
