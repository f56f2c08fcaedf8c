"""The one place where operators of device "pynq" arrive.

Every overload with a kernel for the CPU gets a kernel for PrivateUse1 here. Where there is an
offer for it, the kernels of the loaded overlay are asked first; the CPU does the rest on
the same memory (`quick`, `fallback`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any

import torch

from pynq_torch import overlay as overlays
from pynq_torch.errors import NoKernelError
from pynq_torch.events import OperatorCall

from . import record
from .layouts import STRUCTURE, structure_kernel
from .quick import fallback_of
from .record import inputs_of, switches
from .recurrent import cell_kernels
from .schema import has_kernel, operator, plan_of

__all__ = [
    "LAYERS",
    "SPARSE",
    "Declined",
    "Offer",
    "add_offer",
    "fill",
    "fill_with",
    "install_sparse",
    "kind_of",
    "library",
    "possible",
    "register",
    "register_all",
    "register_sparse",
    "serving",
]


# ---- who serves an operator -------------------------------------------------------------------


class Declined:
    """An offer's answer: the PL cannot do this call exactly.

    Parameters
    ----------
    reason : str or callable
        A clause for people: why the call cannot run on the PL, and what would help. A callable
        returns it, in the thread that asks: for reasons that depend on more than the call.
    missing : bool
        Whether it is just that the loaded overlay has no such kernel.
    """

    __slots__ = ("_reason", "missing")

    def __init__(self, reason: str | Callable[[], str], *, missing: bool = False) -> None:
        self._reason = reason
        self.missing = missing

    @property
    def reason(self) -> str:
        """Why the call cannot run on the PL; asked for only while calls are watched."""
        return self._reason if isinstance(self._reason, str) else self._reason()


Offer = Callable[..., Any]
#: Before the name of an overload with sparse tensors: their kernels are others.
SPARSE = "sparse::"
#: Overload -> offers in the order in which they are asked, each with the kernels one of which it
#: needs; with none, it is asked always.
_offers: dict[str, tuple[tuple[int, Offer, frozenset[str]], ...]] = {}
#: Of `_overlay`: overload -> what to ask, for those that its kernels could serve.
_possible: dict[str, Offer] = {}
_overlay: Any = overlays  # nothing that can be loaded, so that the first call looks


def add_offer(name: str, function: Offer, kernels: Collection[str] = (), priority: int = 0) -> None:
    """Serve an overload with a kernel.

    Parameters
    ----------
    name : str
        E.g. ``"aten::mm"``.
    function : callable
        With the operator's arguments; returns the result, or a `Declined` whose reason is shown
        where no other kernel serves the call either.
    kernels : collection of str
        It is asked only while the loaded overlay has one of these; with none given, always.
    priority : int
        The greater is asked first; equal ones are asked in the order in which they were added.
    """
    global _overlay
    entries = (*_offers.get(name, ()), (priority, function, frozenset(kernels)))
    _offers[name] = tuple(sorted(entries, key=lambda entry: -entry[0]))
    _overlay = overlays


def offer_of(name: str) -> Offer | None:
    """Return what to ask for an overload, whatever is loaded: it says why the PL does not do it."""
    return _joined([function for _, function, _ in _offers.get(name, ())])


def possible(name: str) -> Offer | None:
    """Return what to ask for an overload with the overlay that is loaded, ``None`` for nothing.

    Most operators of a program have no kernel in the overlay: those cost one look into a table.
    """
    if overlays.latest is not _overlay:
        _look()
    return _possible.get(name)


_fillers: list[Callable[[], None]] = []


def fill_with(*fillers: Callable[[], None]) -> None:
    """Have `fillers` add their offers when they are first asked for."""
    _fillers.extend(fillers)


def fill() -> None:
    """Add all offers that have not been added yet."""
    while _fillers:
        _fillers.pop()()


def serving() -> dict[str, str]:
    """Return the compute units of the loaded overlay that an offer needs: name -> kernel."""
    fill()
    loaded = overlays.overlay_in_use()
    if loaded is None:
        return {}
    wanted = {kernel for entries in _offers.values() for *_, needs in entries for kernel in needs}
    units = {driver.cu: driver.kernel_name for driver in loaded.kernels.values()}
    return {cu: kernel for cu, kernel in units.items() if kernel in wanted}


def _look() -> None:
    global _overlay, _possible
    in_use = overlays.overlay_in_use()
    kernels = {driver.kernel_name for driver in in_use.kernels.values()} if in_use else set()
    found = {
        name: _joined([function for _, function, needs in entries if not needs or needs & kernels])
        for name, entries in _offers.items()
    }
    _possible = {name: asked for name, asked in found.items() if asked is not None}
    _overlay = overlays.latest


def _joined(functions: list[Offer]) -> Offer | None:
    """Return an offer that asks one after the other."""
    if len(functions) < 2:
        return functions[0] if functions else None

    def ask(*args: Any, **kwargs: Any) -> Any:
        declined: Declined | None = None
        for function in functions:
            result = function(*args, **kwargs)
            if not isinstance(result, Declined):
                return result
            # The reason of the one that could have been meant: a missing kernel says least.
            if declined is None or declined.missing:
                declined = result
        return declined

    return ask


# ---- dispatch ---------------------------------------------------------------------------------

#: Layers of `pynq_torch.nn`, which are recorded under names of their own.
LAYERS = frozenset({"pynq_torch::conv2d", "pynq_torch::linear"})

library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]

#: Kernels of their own elsewhere, or of no use to a device like this.
_NOT_HERE = frozenset(
    f"aten::{name}"
    for name in (
        *("_pin_memory", "is_pinned", "record_stream", "_copy_from", "_copy_from_and_resize"),
        *("lift", "lift_fresh", "lift_fresh_copy", "detach_", "alias_copy", "_lazy_clone"),
        *("resize", "resize_", "resize_as_", "_resize_output", "_resize_output_", "as_strided_"),
        *("set_", "set_data", "requires_grad_", "retain_grad", "is_same_size", "rename_"),
        *("_make_dual", "_fw_primal", "_unpack_dual", "_new_zeros_with_same_feature_meta"),
        *("_has_same_storage_numel", "_local_scalar_dense_", "is_leaf", "output_nr", "_version"),
        *("data", "_unsafe_view", "unsafe_split", "unsafe_split_with_sizes"),
        "_test_autograd_multiple_dispatch",
        *("is_coalesced", "dense_dim", "sparse_dim", "_coalesced_", "_nnz", "_indices", "_values"),
    )
)
_LIKE = ("_like", "new_empty", "new_zeros", "new_full", "new_ones", "new_empty_strided")


def register(name: str, kernel: Callable[..., Any], key: str = "PrivateUse1") -> None:
    """Give an overload of ATen a kernel for a dispatch key."""
    library.impl(name.partition("::")[2], kernel, key)


def register_sparse() -> int:
    """Give every operator that the CPU has for sparse tensors its kernel for ours; count them."""
    count = 0
    for key, on_cpu in STRUCTURE.items():
        for name in torch._C._dispatch_get_registrations_for_dispatch_key(on_cpu):
            if name.startswith("aten::"):
                register(name, _sparse_kernel(name, key), key)
                count += 1
    return count


def install_sparse() -> None:
    """Register what answers for operators of sparse tensors that have no kernel of their own."""
    for key in STRUCTURE:
        _all_operators.fallback(_sparse_fallback(key), key)


_all_operators: Any = torch.library.Library("_", "IMPL")  # type: ignore[no-untyped-call]


def _sparse_kernel(name: str, key: str) -> Callable[..., Any]:
    offered = name.replace("aten::", SPARSE)
    return structure_kernel(name, key) or _kernel(name, offered=offered)


def _sparse_fallback(key: str) -> Callable[..., Any]:
    kernels: dict[str, Callable[..., Any]] = {}

    def run(op: Any, *args: Any, **kwargs: Any) -> Any:
        name = op.name()
        if name not in kernels:
            kernels[name] = _sparse_kernel(name, key)
        return kernels[name](*args, **kwargs)

    return run


def register_all(own: dict[str, Callable[..., Any]], views: Callable[[str], Any]) -> int:
    """Give every overload its kernel for device "pynq"; return how many were registered.

    `own` has the kernels of those that are about memory itself; `views` makes that of an overload
    whose result shares its argument's memory.
    """
    count = 0
    for name, cell in cell_kernels().items():
        register(name, _kernel(name, cell))
        count += 1
    for name in torch._C._dispatch_get_all_op_names():
        kind = "" if name in own else kind_of(name)
        if kind:
            register(name, views(name) if kind == "view" else _kernel(name))
            count += 1
    return count


#: Views that carry a mark instead of changed memory; torch composes them, but we must know.
_MARKS = ("aten::_conj", "aten::_neg_view")


def kind_of(name: str) -> str:
    """Say what an overload is to device "pynq".

    Returns
    -------
    str
        ``"value"``: dispatched here, offered to the PL and recorded; ``"view"``: its result shares
        its argument's memory; ``""``: torch composes it of others, or it is about memory itself.
    """
    if not name.startswith("aten::") or name.partition(".")[0] in _NOT_HERE:
        return ""
    cpu = has_kernel(name, "CPU")
    if not cpu and not has_kernel(name, "CompositeExplicitAutograd"):
        return ""
    base, _, overload = name.partition(".")
    schema = torch._C._get_schema(base, overload)
    tensors = [a for a in schema.arguments if "Tensor" in str(a.type)]
    if not tensors:
        return ""
    shares = any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
    if shares:
        return "view" if cpu or name in _MARKS else ""
    if base.endswith("_") and torch.Tag.inplace_view in operator(name).tags:
        # It describes its argument in another way; the CPU's view of the memory must stay as it is.
        return "view" if cpu else ""
    if base.endswith(_LIKE) or any(a.name == "device" for a in schema.arguments):
        return ""
    return "value"


def _kernel(
    name: str, on_cpu: Callable[..., Any] | None = None, offered: str = ""
) -> Callable[..., Any]:
    """Return the kernel of one overload; its schema is read at the first call.

    `offered` is the name under which kernels offer to serve it, if not its own.
    """
    offered = offered or name

    def kernel(*args: Any, **kwargs: Any) -> Any:
        nonlocal on_cpu
        if on_cpu is None:
            on_cpu = fallback_of(plan_of(name))
        if switches.active and record.state.call is None:
            return _watched(name, offer_of(offered), on_cpu, args, kwargs)
        # Looked up in each call: overlays change, and a program may offer a kernel at any time.
        ask = possible(offered)
        if ask is None:
            return on_cpu(*args, **kwargs)
        result = ask(*args, **kwargs)
        return on_cpu(*args, **kwargs) if isinstance(result, Declined) else result

    return kernel


#: Reading a value and filling memory: a program needs them around any computation, as it does
#: copies, so the switch of the fallback is not about them.
_ALWAYS = frozenset(
    f"aten::{name}" for name in ("_local_scalar_dense", "equal", "fill_", "is_nonzero", "zero_")
)


def _watched(
    name: str,
    offer: Offer | None,
    on_cpu: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Do a call with its record, the route and the switch of the fallback."""
    call = OperatorCall(name, inputs_of(args, kwargs), thread=threading.current_thread().name)
    wish = switches.route(name, call.inputs) if switches.route is not None else None
    with record.recorded(call):
        if offer is None:
            call.reason = "no kernel serves this operator"
        elif wish is False:
            call.reason = "the route sends it to the CPU"
        else:
            call.where = "PL"  # also where it fails there
            result = offer(*args, **kwargs)
            if not isinstance(result, Declined):
                return result
            call.where, call.reason = "CPU", result.reason
        if not switches.fallback and wish is None and call.op not in _ALWAYS:
            raise NoKernelError(_without_fallback(call, ever=offer is not None))
        if wish:
            raise NoKernelError(
                f"the route sends {name}({', '.join(call.inputs)}) to the PL, which cannot do it: "
                f'{call.reason}. Set "offload" to false for this call in the route.'
            )
        return on_cpu(*args, **kwargs)


def _without_fallback(call: OperatorCall, *, ever: bool) -> str:
    """Say why the PL cannot do a call, with the fallback off; `ever`: a kernel could serve it."""
    what = f"{call.name}({', '.join(call.inputs)})"
    if ever:
        return (
            f"{what} has no kernel: {call.reason}; and the fallback to the CPU is off. Load an "
            "overlay that serves it, or call torch.pynq.profiler.fallback.enable()."
        )
    return (
        f"{what}: no kernel of this library serves it, and the fallback to the CPU is off: compute "
        "it with .cpu(), or enable the fallback with torch.pynq.profiler.fallback.enable()."
    )
