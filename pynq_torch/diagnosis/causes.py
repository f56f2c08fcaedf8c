"""The table of causes: a symptom, the sentence that explains it, what to try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pynq_torch.tables import count_text

from .facts import ChannelState, Facts, KernelState

__all__ = ["CAUSES", "Cause"]

Text = str | Callable[[Facts], str]


@dataclass(frozen=True)
class Cause:
    """A row of the table.

    Parameters
    ----------
    name : str
        Short, stable; tests and notebooks look for it.
    applies : callable
        The symptom: a predicate over :class:`Facts`.
    explanation, advice : str or callable
        What is wrong and what to try; a function of the facts where the text depends on them.
    certain : bool
        Whether the registers prove it; otherwise it is "likely".
    """

    name: str
    applies: Callable[[Facts], bool]
    explanation: Text
    advice: Text
    certain: bool = True

    def sentence(self, facts: Facts) -> str:
        """Return the explanation for these facts."""
        return self.explanation if isinstance(self.explanation, str) else self.explanation(facts)

    def remedy(self, facts: Facts) -> str:
        """Return what to try for these facts."""
        return self.advice if isinstance(self.advice, str) else self.advice(facts)


# ---- symptoms of a channel -----------------------------------------------------------------------

Symptom = Callable[[ChannelState], object]
_ABSENT = ChannelState("", 0)


def _first(facts: Facts, symptom: Symptom) -> ChannelState:
    return next((c for c in facts.channels if symptom(c)), _ABSENT)


def _any(symptom: Symptom) -> Callable[[Facts], bool]:
    return lambda facts: any(map(symptom, facts.channels))


def _bits(mask: int) -> Symptom:
    return lambda channel: channel.status & mask


def _too_long(channel: ChannelState) -> bool:
    return (channel.requested or 0) > channel.max_bytes


def _lost(channel: ChannelState) -> bool:
    return channel.lost_length


def _unaligned(channel: ChannelState) -> bool:
    return channel.armed and channel.unaligned and not channel.complete


def _halted(channel: ChannelState) -> bool:
    return channel.armed and channel.halted and not channel.failed


def _pending(channel: ChannelState) -> bool:
    return channel.pending


def _address(facts: Facts, mask: int) -> str:
    channel = _first(facts, _bits(mask))
    return f"0x{channel.address:08x} ({channel.side})"


# ---- symptoms of both sides and of kernels -------------------------------------------------------


def _send(facts: Facts) -> ChannelState:
    return facts.send or _ABSENT


def _recv(facts: Facts) -> ChannelState:
    return facts.recv or _ABSENT


def _asked(facts: Facts) -> int:
    return _recv(facts).requested or 0


def _names(kernels: tuple[KernelState, ...]) -> str:
    return " and ".join(k.name for k in kernels)


def _running(facts: Facts) -> tuple[KernelState, ...]:
    return tuple(k for k in facts.kernels if k.running)


def _unstarted(facts: Facts) -> tuple[KernelState, ...]:
    """Return the kernels that are idle and have done nothing for this transfer.

    Programs with a DMA seldom read AP_CTRL, so AP_DONE may be left from an earlier run: it is,
    where nothing came back and the sender is stuck.
    """
    earlier = _send(facts).pending and _recv(facts).pending and not _recv(facts).moved
    return tuple(
        k
        for k in facts.kernels
        if k.idle or (earlier and k.control is not None and k.control & 0x87 == 0x6)
    )


def _count(channel: ChannelState) -> str:
    return f"{'' if channel.moved_exact else 'at least '}{channel.moved}"


def _recv_alone_pending(facts: Facts) -> bool:
    return _recv(facts).pending and not _send(facts).pending


def _all_arrived(facts: Facts) -> bool:
    """Whether every byte asked for is in the buffer, and yet the transfer has not ended."""
    recv = _recv(facts)
    return recv.pending and recv.moved == recv.requested


def _some_arrived(facts: Facts) -> bool:
    recv = _recv(facts)
    return recv.moved is not None and recv.moved_exact and recv.moved < _asked(facts)


def _arrived(facts: Facts) -> str:
    """Say how much of the packet is in the buffer, and no more than is known."""
    if _all_arrived(facts):
        return f"All {_asked(facts)} bytes are in the buffer"
    if _recv(facts).moved:
        return f"{_count(_recv(facts)).capitalize()} of {_asked(facts)} bytes are in the buffer"
    return f"How many of the {_asked(facts)} bytes are in the buffer is unknown"


def _sender_left_alone(facts: Facts) -> bool:
    """Whether the sender is stuck, and the receive side takes nothing more."""
    return _send(facts).pending and (_recv(facts).complete or not _recv(facts).armed)


_PIECES = (
    "transfer in pieces of at most dma.buffer_max_size bytes, or build the DMA with a wider "
    "'Width of Buffer Length Register' (up to 26 bits)."
)

#: The most certain first: the first row whose symptom is met is the one that is shown.
CAUSES: tuple[Cause, ...] = (
    Cause(
        "stale overlay object",
        lambda f: f.stale,
        lambda f: (
            f"Another overlay was loaded after this object was made: {f.target} talks to "
            "addresses that belong to another design now."
        ),
        "load the overlay again and take the object from the new one.",
    ),
    Cause(
        "length beyond the length register",
        _any(_too_long),
        lambda f: (
            f"The LENGTH register holds at most {_first(f, _too_long).max_bytes} bytes; "
            f"{_first(f, _too_long).requested} were asked for, and the upper bits were cut off."
        ),
        _PIECES,
    ),
    Cause(
        "length beyond the length register",
        _any(_lost),
        lambda f: (
            "An address was programmed and LENGTH reads 0: it was written with 0, or with a number "
            f"whose low bits are 0 (the register holds at most {_first(f, _lost).max_bytes} and "
            "drops the rest). A transfer of 0 bytes does not start."
        ),
        _PIECES,
    ),
    Cause(
        "address outside the map",
        _any(_bits(0x40)),
        lambda f: f"DMADecErr: no memory answers at {_address(f, 0x40)}; the DMA stopped there.",
        "pass a buffer from pynq.allocate() of this device (its .physical_address, never "
        ".virtual_address), alive until the transfer has ended; then pynq_torch.reset(dma).",
    ),
    Cause(
        "memory refused the access",
        _any(_bits(0x20)),
        lambda f: f"DMASlvErr: the memory answered {_address(f, 0x20)} with an error.",
        "check that the buffer is alive and that the DMA's port reaches DDR in the block "
        "design's address editor; then pynq_torch.reset(dma).",
    ),
    Cause(
        "descriptor fault",
        _any(_bits(0x700)),
        "A scatter-gather descriptor could not be used (SGIntErr: reused while marked "
        "complete; SGSlvErr and SGDecErr: not readable at its address).",
        "pynq_torch.reset(dma), then transfer again; keep the descriptors' buffer alive.",
    ),
    Cause(
        "length zero",
        _any(lambda c: c.status & 0x10 and c.requested == 0),
        "DMAIntErr: the LENGTH register was written with 0.",
        "ask for at least one byte; then pynq_torch.reset(dma).",
    ),
    Cause(
        "data of an earlier transfer",
        lambda f: f.left > 0,
        lambda f: (
            "A FIFO before the IP, or its input registers, still hold "
            f"{count_text(f.left, 'beat')} of an earlier transfer, which no reset of the DMA "
            "reaches: the IP's next results begin with this data."
        ),
        "load the overlay again, which empties everything.",
    ),
    Cause(
        "late TLAST",
        lambda f: bool(_recv(f).status & 0x10),
        lambda f: (
            "DMAIntErr on the receive side: the packet is longer than the "
            f"{_recv(f).requested} bytes that were armed; TLAST did not come with the last of them."
        ),
        "make the receive buffer as long as the packet, or let the IP assert TLAST with its "
        "last beat; then pynq_torch.reset(dma) (the channel stays halted until then).",
    ),
    Cause(
        "internal error",
        _any(_bits(0x10)),
        "DMAIntErr: the length was 0, or the DMA was disturbed in the middle.",
        "check the length; then pynq_torch.reset(dma).",
    ),
    Cause(
        "unaligned buffer",
        _any(_unaligned),
        lambda f: (
            f"0x{_first(f, _unaligned).address:08x} is no multiple of "
            f"{_first(f, _unaligned).width_bytes} bytes, and the DMA was built without data "
            "realignment: what it moves is undefined."
        ),
        "transfer from the start of a buffer, or build the DMA with 'Allow Unaligned Transfers'.",
    ),
    Cause(
        "channel halted",
        _any(_halted),
        lambda f: (
            f"The {_first(f, _halted).side} channel is stopped (Halted, no error bit): "
            "it was reset, stopped, or the overlay was downloaded again."
        ),
        "pynq_torch.reset(dma), which starts both channels; then transfer again.",
    ),
    Cause(
        "early TLAST",
        lambda f: _recv(f).short,
        lambda f: (
            f"The receive side ended after {_count(_recv(f))} of {_asked(f)} bytes: TLAST came "
            f"early{', and the sender cannot get rid of the rest' * _send(f).pending}."
        ),
        "let the IP assert TLAST with the last beat only; where short packets are meant, "
        "transfer(..., exact=False) returns how many bytes came.",
    ),
    Cause(
        "receive not armed before send",
        lambda f: (
            _send(f).pending and f.recv is not None and not f.recv.armed and not f.idle_kernels
        ),
        "Nothing takes the results: the receive channel was never armed, so the stream is "
        "full and the sender is blocked.",
        "arm the receive side first: pynq_torch.transfer(dma, send=a, recv=b), or "
        "dma.recvchannel.transfer(b) before dma.sendchannel.transfer(a).",
    ),
    Cause(
        "missing TLAST",
        lambda f: (
            _recv_alone_pending(f)
            and (_all_arrived(f) or (f.tlast is False and not _some_arrived(f)))
        ),
        lambda f: f"{_arrived(f)}, and the DMA still waits for the TLAST that ends a packet.",
        "assert TLAST with the last beat: in HLS an ap_axiu value with last = (i == n - 1), "
        "in a block design an AXI4-Stream subset converter; then pynq_torch.reset(dma).",
    ),
    Cause(
        "IP never started",
        lambda f: bool(_unstarted(f)) and any(map(_pending, f.channels)),
        lambda f: (
            f"{_names(_unstarted(f))} {'are' if len(_unstarted(f)) > 1 else 'is'} idle: never "
            "started, or finished before all data had come. Nothing moves through it."
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
            and not _recv(f).moved
        ),
        "The receive side is armed and waits; the send side was given nothing to send.",
        "give both: pynq_torch.transfer(dma, send=a, recv=b); where the IP makes its data "
        "itself, check that it runs.",
        certain=False,
    ),
    Cause(
        "wrong length",
        lambda f: _recv_alone_pending(f) and _some_arrived(f),
        lambda f: (
            f"Everything was sent, and only {_count(_recv(f))} of {_asked(f)} bytes came back "
            "without a TLAST: the IP makes fewer than were armed."
        ),
        "compare the two lengths (bytes, not elements: use .nbytes) with what the IP "
        "returns per packet; let it assert TLAST; then pynq_torch.reset(dma).",
    ),
    Cause(
        "missing TLAST",
        _recv_alone_pending,
        "The receive side is armed and has not ended, and nothing is being sent any more: "
        "either TLAST is missing, or fewer bytes come than were armed.",
        "assert TLAST with the last beat, and compare the lengths in bytes (.nbytes) on both "
        "sides; then pynq_torch.reset(dma).",
        certain=False,
    ),
    Cause(
        "wrong length",
        _sender_left_alone,
        lambda f: (
            f"The sender still holds part of its {_send(f).requested} bytes, and the IP takes no "
            "more: it expects a shorter packet."
        ),
        "send as many bytes as the IP reads per run (bytes, not elements), or start it again "
        "for the rest; then pynq_torch.reset(dma).",
        certain=False,
    ),
    Cause(
        "kernel still running",
        lambda f: bool(_running(f)),
        lambda f: (
            f"{_names(_running(f))} {'run and have' if len(_running(f)) > 1 else 'runs and has'} "
            "not finished: slow, waiting for data or for room on a stream, or in an endless loop."
        ),
        "a larger timeout_s if it is slow; otherwise look at its arguments (sizes of 0 or "
        "uninitialised ones) and at what its streams are connected to.",
        certain=False,
    ),
    Cause(
        "data stuck on the way",
        _any(_pending),
        "Both sides wait for each other: nothing moves through what is between them.",
        "check that every IP on the stream is started and out of reset, and that its clock "
        "runs; then pynq_torch.reset(dma).",
        certain=False,
    ),
    Cause(
        "unknown",
        lambda f: True,
        "The registers show nothing that is known to cause this.",
        "load the overlay again; look at the register map of each IP involved.",
        certain=False,
    ),
)
