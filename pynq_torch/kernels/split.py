"""One product on several compute units: each takes a share of the rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pynq_torch import buffers

from .base import KernelStart
from .epilogue import check_columns, mode_of
from .operands import rows_in_cma
from .vadd import deliver

if TYPE_CHECKING:
    import torch

    from .gemm import Gemm

__all__ = ["share", "split_gemm"]


def split_gemm(
    units: Sequence[Gemm],
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
    *,
    bias: torch.Tensor | None = None,
    scale: torch.Tensor | None = None,
    relu: bool = False,
    dtype: torch.dtype | None = None,
    speeds: Sequence[float] | None = None,
    timeout_s: float = 10.0,
) -> torch.Tensor:
    """Compute ``a @ b`` on several compute units in parallel, each with its share of the rows.

    Parameters
    ----------
    units : sequence of Gemm
        E.g. ``[overlay.gemm, overlay.gemm_lut]``.
    a, b, out, bias, scale, relu, dtype
        As for `Gemm`.
    speeds : sequence of float, optional
        Rows a second, to any scale. Default: from the latency model of each kernel's
        description.json, where it lies in this checkout; equal shares otherwise.
    timeout_s : float
        Bound of each wait.

    Returns
    -------
    torch.Tensor
        `dtype` [M, N], what one unit alone would return.
    """
    import torch

    if not units:
        raise ValueError("split_gemm needs at least one compute unit")
    first = units[0]
    kind = torch.int32 if dtype is None else dtype
    mode = mode_of(kind, bias=bias is not None, relu=relu)
    m, k, n = first.check(a, b, out, kind)
    check_columns(first.cu, mode, n, bias, scale)
    if len(units) == 1 or not m * n * k:
        return first(a, b, out, bias=bias, scale=scale, relu=relu, dtype=kind, timeout_s=timeout_s)
    if speeds is None:
        from pynq_torch.timing import model_cycles

        cycles = [model_cycles(u.kernel_name, m=m, n=n, k=k) for u in units]
        speeds = [1 / c if c else 1.0 for c in cycles] if all(cycles) else [1.0] * len(units)
    if len(speeds) != len(units) or min(speeds) <= 0:
        raise ValueError(f"speeds is {list(speeds)}; expected {len(units)} numbers greater than 0")
    left, right = (rows_in_cma(matrix, first.device)[0] for matrix in (a, b))
    # Rows are split: the values for the columns are the same for all units.
    columns = first.columns_in_cma(bias=bias, scale=scale)
    place = first.place_out(out, m, n, mode, left, right, *columns.values())
    bounds = share(m, speeds)
    buffers.flush(left, right, place, *columns.values())
    runs: list[KernelStart] = []
    try:
        for unit, (begin, end) in zip(units, itertools.pairwise(bounds), strict=True):
            if end > begin:
                part = left[begin:end], right, place[begin:end]
                runs.append(unit.start_product(*part, mode=mode, flush=False, **columns))
    finally:
        # If one cannot start, the others are still running on these buffers.
        for run in runs:
            run.wait(timeout_s)
    result = deliver(place, out)
    assert result.dtype == kind
    return result


def share(total: int, speeds: Sequence[float]) -> list[int]:
    """Return the bounds that divide ``range(total)`` in proportion to `speeds`.

    Examples
    --------
    >>> share(10, [3.0, 1.0])
    [0, 8, 10]
    """
    whole = sum(speeds)
    bounds = [0]
    for part in itertools.accumulate(speeds):
        bounds.append(min(total, max(bounds[-1], round(total * part / whole))))
    bounds[-1] = total
    return bounds
