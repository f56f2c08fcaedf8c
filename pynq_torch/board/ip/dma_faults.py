"""What a transfer that the guard stopped is called, and what to do about it."""

from __future__ import annotations

from .dma_channel import DmaChannel
from .dma_slot import Fault


def stopped_text(name: str, channel: DmaChannel, kind: Fault, address: int, place: str) -> str:
    """Return the message for a transfer that would give wrong data without an error.

    `place` says what is at the physical address of the access that was stopped.
    """
    p = channel.parameters
    head = f"{name} {p.name}"
    if kind is Fault.UNALIGNED:
        return (
            f"{head}: physical address 0x{address:08x} is no multiple of {p.memory_bytes} bytes, "
            f"the width of its memory port, and the IP has no data realignment engine "
            f"(C_INCLUDE_{p.name}_DRE=0): on the board the data would be wrong. {place}. Align the "
            "address, or rebuild the IP with 'Allow Unaligned Transfers'."
        )
    if kind is Fault.DESCRIPTOR:
        return (
            f"{head} fetched a descriptor that is in no buffer, at physical address "
            f"0x{address:08x}: {place}. Check CURDESC, NXTDESC and TAILDESC, and keep the "
            "descriptors' buffer alive."
        )
    verb = "read" if p.name == "MM2S" else "write"
    end = "went past the end of its buffer" if kind is Fault.OVERRUN else "left the buffers"
    return (
        f"{head} {end}: the {verb} at physical address 0x{address:08x} was stopped ({place}). On "
        "the board it would have continued without an error. Check the address and the length "
        f"({_asked(channel)})."
    )


def _asked(channel: DmaChannel) -> str:
    slot = channel.slot
    if channel.parameters.scatter_gather:
        return f"in the descriptor at 0x{slot.descriptor if slot else 0:08x}"
    return f"address 0x{channel.address:08x}, {slot.nbytes if slot else 0} bytes moved"
