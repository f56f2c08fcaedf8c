"""Why a transfer or a kernel does not end: decoded registers in, a cause and a remedy out.

Everything here is a pure function of a snapshot, so that it can be tested without a board. The
knowledge is one table, :data:`CAUSES`: a symptom, the sentence that explains it, what to try.
Register bits are those of the AXI DMA (PG021, tables 2-6 to 2-25) and of the block control that
HLS generates (UG1399, "S_AXILITE Control Register Map").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = [
    "CAUSES",
    "Cause",
    "ChannelState",
    "Diagnosis",
    "Facts",
    "KernelState",
    "control_bits",
    "diagnose",
    "status_bits",
]

#: DMASR, bit -> name (PG021, table 2-8). The same in both channels.
STATUS_BITS = {
    0: "Halted",
    1: "Idle",
    3: "SGIncld",
    4: "DMAIntErr",
    5: "DMASlvErr",
    6: "DMADecErr",
    8: "SGIntErr",
    9: "SGSlvErr",
    10: "SGDecErr",
    12: "IOC_Irq",
    13: "Dly_Irq",
    14: "Err_Irq",
}
#: AP_CTRL, bit -> name (UG1399).
CONTROL_BITS = {
    0: "AP_START",
    1: "AP_DONE",
    2: "AP_IDLE",
    3: "AP_READY",
    4: "AP_CONTINUE",
    7: "AUTO_RESTART",
}
ERROR_MASK = 0x770


def status_bits(status: int) -> tuple[str, ...]:
    """Return the names of the bits that are set in a DMASR value."""
    return tuple(name for bit, name in STATUS_BITS.items() if status >> bit & 1)


def control_bits(control: int) -> tuple[str, ...]:
    """Return the names of the bits that are set in an AP_CTRL value."""
    return tuple(name for bit, name in CONTROL_BITS.items() if control >> bit & 1)


@dataclass(frozen=True)
class ChannelState:
    """One channel of an AXI DMA at one moment.

    Parameters
    ----------
    side : {"send", "recv"}
        MM2S or S2MM.
    status : int
        DMASR.
    length_register : int
        What the LENGTH register reads.
    address : int
        The physical address programmed.
    requested : int or None
        Bytes the program asked for; ``None`` where the channel was never armed.
    moved : int or None
        Bytes that went through; ``None`` where the hardware does not tell.
    moved_exact : bool
        False where `moved` is only a lower bound.
    max_bytes : int
        What the LENGTH register can hold.
    width_bytes : int
        Bytes of the memory side's data bus.
    realigns : bool
        Whether the data realignment engine (DRE) is built in.
    """

    side: str
    status: int
    length_register: int = 0
    address: int = 0
    requested: int | None = None
    moved: int | None = None
    moved_exact: bool = True
    max_bytes: int = (1 << 26) - 1
    width_bytes: int = 4
    realigns: bool = False

    @property
    def halted(self) -> bool:
        """Whether the channel is stopped."""
        return bool(self.status & 1)

    @property
    def idle(self) -> bool:
        """Whether the last transfer has ended."""
        return bool(self.status & 2)

    @property
    def failed(self) -> bool:
        """Whether an error bit is set."""
        return bool(self.status & ERROR_MASK)

    @property
    def armed(self) -> bool:
        """Whether a transfer was asked for."""
        return self.requested is not None

    @property
    def complete(self) -> bool:
        """Whether the transfer asked for has ended without an error."""
        return self.armed and self.idle and not self.failed

    @property
    def pending(self) -> bool:
        """Whether the channel is at work on a transfer."""
        return self.armed and not (self.idle or self.failed or self.halted)

    @property
    def lost_length(self) -> bool:
        """Whether an address was programmed and no length stuck: nothing was started."""
        return bool(
            self.address and not self.length_register and not self.status & 1 and not self.armed
        )

    @property
    def short(self) -> bool:
        """Whether the transfer ended with fewer bytes than asked for."""
        return (
            self.complete
            and self.moved is not None
            and self.moved_exact
            and self.moved < (self.requested or 0)
        )

    @property
    def unaligned(self) -> bool:
        """Whether the address needs a realignment engine that is not there."""
        return not self.realigns and self.address % max(self.width_bytes, 1) != 0

    def __str__(self) -> str:
        label = "send (MM2S)" if self.side == "send" else "recv (S2MM)"
        bits = ", ".join(status_bits(self.status)) or "running"
        if not self.armed:
            return f"{label}: DMASR 0x{self.status:08x} [{bits}], never armed"
        if self.moved is None:
            moved = "bytes moved unknown until it ends"
        else:
            moved = f"{'' if self.moved_exact else 'at least '}{self.moved} moved"
        return (
            f"{label}: DMASR 0x{self.status:08x} [{bits}], {self.requested} bytes asked for at "
            f"0x{self.address:08x}, {moved}"
        )


@dataclass(frozen=True)
class KernelState:
    """The block control of an HLS IP at one moment.

    Parameters
    ----------
    name : str
        The instance in the overlay.
    control : int or None
        AP_CTRL; ``None`` for an IP without control registers (ap_ctrl_none), which always runs.
    note : str
        What the board adds, where it can say more.
    """

    name: str
    control: int | None
    note: str = ""

    @property
    def idle(self) -> bool:
        """Whether it stands still and would need a start."""
        return self.control is not None and self.control & 0x87 == 0x4

    @property
    def done(self) -> bool:
        """Whether it has finished a run that nobody has read off yet."""
        return self.control is not None and bool(self.control & 0x2)

    @property
    def running(self) -> bool:
        """Whether it is at work."""
        return self.control is None or not self.control & 0x6

    def __str__(self) -> str:
        if self.control is None:
            state = f"{self.name}: no control register (ap_ctrl_none), always runs"
        else:
            bits = ", ".join(control_bits(self.control)) or "running"
            state = f"{self.name}: AP_CTRL 0x{self.control:02x} [{bits}]"
        return f"{state}; {self.note}" if self.note else state


@dataclass(frozen=True)
class Facts:
    """Everything that is known when a wait gives up.

    Parameters
    ----------
    target : str
        What was waited for, e.g. ``"axi_dma_0"``.
    waited_s : float
        How long.
    send, recv : ChannelState or None
        The channels of the DMA; ``None`` where it has none, or where they are not concerned.
    kernels : tuple of KernelState
        The HLS IP on the stream, or the one waited for.
    stale : bool
        Whether another overlay has been loaded since the object was made.
    tlast : bool or None
        Whether a TLAST has arrived; ``None`` where the board cannot tell.
    notes : tuple of str
        Sentences from the board, where it can say more.
    """

    target: str
    waited_s: float = 0.0
    send: ChannelState | None = None
    recv: ChannelState | None = None
    kernels: tuple[KernelState, ...] = ()
    stale: bool = False
    tlast: bool | None = None
    notes: tuple[str, ...] = ()

    @property
    def channels(self) -> tuple[ChannelState, ...]:
        """The channels there are, send first."""
        return tuple(c for c in (self.send, self.recv) if c is not None)

    @property
    def idle_kernels(self) -> tuple[KernelState, ...]:
        """The kernels that stand still and show no finished run."""
        return tuple(k for k in self.kernels if k.idle)


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


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong, as text (``str``) and as values.

    Parameters
    ----------
    facts : Facts
        What was seen.
    causes : tuple of Cause
        Those whose symptom is met, the likeliest first.
    """

    facts: Facts
    causes: tuple[Cause, ...] = field(default=())

    @property
    def cause(self) -> str:
        """The name of the likeliest cause, e.g. ``"missing TLAST"``."""
        return self.causes[0].name

    @property
    def remedy(self) -> str:
        """What to try first."""
        return self.causes[0].remedy(self.facts)

    def explain(self, headline: str) -> str:
        """Return the whole text under the sentence `headline`."""
        facts = self.facts
        lines = [headline]
        lines += [f"  {channel}" for channel in facts.channels]
        lines += [f"  {kernel}" for kernel in facts.kernels]
        if facts.tlast is not None:
            lines.append(f"  TLAST: {'seen' if facts.tlast else 'not seen'}")
        lines += [f"  {note}" for note in facts.notes]
        first, *others = self.causes
        how = "cause" if first.certain else "likely cause"
        lines.append(f"  {how}: {first.name}. {first.sentence(facts)}")
        lines.append(f"  try: {first.remedy(facts)}")
        if others:
            lines.append("  also possible: " + "; ".join(cause.name for cause in others))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.explain(f"{self.facts.target} after {self.facts.waited_s:g} s:")


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
        lambda f: (
            f"All {f.recv.requested if f.recv else 0} bytes are in the buffer, and the DMA still "
            "waits for the TLAST that ends a packet."
        ),
        lambda f: (
            "assert TLAST with the last beat: in HLS an ap_axiu value with last = (i == n - 1), "
            "in a block design an AXI4-Stream subset converter; then pynq_torch.reset(dma)."
        ),
    ),
    Cause(
        "IP never started",
        lambda f: bool(f.idle_kernels) and any(c.pending for c in f.channels),
        lambda f: (
            f"{_names(f.idle_kernels)} {_is_or_are(f.idle_kernels)} idle: never started, or "
            "finished before all data had come. Nothing moves through it."
        ),
        lambda f: (
            "start it before the transfer: overlay."
            f"{f.idle_kernels[0].name.replace('/', '.')}.register_map.CTRL.AP_START = 1 (0x81 at "
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
        "kernel still at work",
        lambda f: any(k.running for k in f.kernels),
        lambda f: (
            f"{_names(tuple(k for k in f.kernels if k.running))} runs and has not finished: it is "
            "slow, waits for data or for room on a stream, or loops for ever."
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


def diagnose(facts: Facts) -> Diagnosis:
    """Find the causes that fit.

    Parameters
    ----------
    facts : Facts
        What was seen when the wait gave up.

    Returns
    -------
    Diagnosis
        With at least one cause.
    """
    found: dict[str, Cause] = {}
    for cause in CAUSES:
        if cause.name not in found and cause.applies(facts):
            found[cause.name] = cause
    if len(found) > 1:
        found.pop("unknown", None)
    return Diagnosis(facts, tuple(found.values()))
