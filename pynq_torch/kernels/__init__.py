"""Drivers: one class a kernel, from typed arguments to registers, start and wait.

:data:`DRIVERS` is the registration: VLNV name -> class. An HLS IP that is not in it is driven by
:class:`GenericKernel`, which takes its arguments by register name.
"""

from __future__ import annotations

from typing import Any

from .activation import Activation
from .affine import AffineDmas, AffineLite, AffineMaxi
from .base import Kernel, KernelStart
from .convolution import Conv2dFloat
from .convolution_int8 import Conv2dInt8, DepthwiseFloat, DepthwiseInt8
from .distance import Distance
from .filters import Filter3x3, Histogram
from .gemm import Gemm, split_gemm
from .generic import GenericKernel
from .ladder import LadderAdd, LadderDot
from .matmul import Matmul
from .matrix_mult import MatrixMult, multiply_tiled
from .movement import Move32
from .net import Net
from .nll import Nll
from .norm import Norm
from .pointwise import Binary, Ternary, Unary
from .pool2d import Pool2d
from .reduce import Reduce
from .registers import Parameter, parameters_of
from .scale_stream import ScaleStream
from .signals import Chain, Cordic, Fft, Fir, FirFixed, PrefixSum
from .softmax import Softmax
from .sparse import SpmmF32, SpmvF32
from .streamed import StreamKernel
from .vadd import Vadd

__all__ = [
    "DRIVERS",
    "Activation",
    "AffineDmas",
    "AffineLite",
    "AffineMaxi",
    "Chain",
    "Conv2dFloat",
    "Conv2dInt8",
    "Cordic",
    "DepthwiseFloat",
    "DepthwiseInt8",
    "Distance",
    "Fft",
    "Filter3x3",
    "Fir",
    "FirFixed",
    "Gemm",
    "GenericKernel",
    "Histogram",
    "Kernel",
    "KernelStart",
    "LadderAdd",
    "LadderDot",
    "Matmul",
    "MatrixMult",
    "Move32",
    "Net",
    "Nll",
    "Norm",
    "Parameter",
    "Pool2d",
    "PrefixSum",
    "Reduce",
    "ScaleStream",
    "Softmax",
    "SpmmF32",
    "SpmvF32",
    "StreamKernel",
    "Vadd",
    "driver_for",
    "multiply_tiled",
    "parameters_of",
    "register_driver",
    "split_gemm",
]

#: VLNV name (its third field) -> driver.
DRIVERS: dict[str, type[Kernel]] = {
    "activation_f32": Activation,
    "vadd": Vadd,
    **dict.fromkeys(("vadd_1", "vadd_2", "vadd_3", "vadd_4"), LadderAdd),
    **dict.fromkeys(("dot_1", "dot_2", "dot_3", "dot_4"), LadderDot),
    "gemm": Gemm,
    "gemm_lut": Gemm,
    "conv2d_f32": Conv2dFloat,
    "conv2d_i8": Conv2dInt8,
    "depthwise_f32": DepthwiseFloat,
    "depthwise_i8": DepthwiseInt8,
    "matmul_f32": Matmul,
    "matrix_mult": MatrixMult,
    "matrix_mult_fabric": MatrixMult,
    "move_32": Move32,
    "net": Net,
    "nll_f32": Nll,
    "norm_f32": Norm,
    "pool2d_f32": Pool2d,
    "unary_f32": Unary,
    "unary_i32": Unary,
    "unary_i8": Unary,
    "binary_f32": Binary,
    "binary_i32": Binary,
    "binary_i8": Binary,
    "ternary_f32": Ternary,
    "ternary_i32": Ternary,
    "ternary_i8": Ternary,
    "distance_f32": Distance,
    "reduce_f32": Reduce,
    "scale_stream": ScaleStream,
    "affine_dma": ScaleStream,
    "affine_dmas": AffineDmas,
    "affine_lite": AffineLite,
    "affine_maxi": AffineMaxi,
    "spmm_f32": SpmmF32,
    "spmv_f32": SpmvF32,
    "softmax_f32": Softmax,
    "sobel": Filter3x3,
    "gauss": Filter3x3,
    "sobel_fixed": Filter3x3,
    "gauss_fixed": Filter3x3,
    "histogram": Histogram,
    "fir": Fir,
    "fir_fixed": FirFixed,
    "chain": Chain,
    "prefix_sum": PrefixSum,
    "cordic": Cordic,
    "fft": Fft,
}


def register_driver(kernel: str, driver: type[Kernel]) -> type[Kernel]:
    """Drive every compute unit of a kernel with a class of your own, in overlays loaded later.

    Parameters
    ----------
    kernel : str
        Its VLNV name, e.g. ``"hypot_f32"``.
    driver : type
        A subclass of `Kernel`; it replaces the one that the kernel had.

    Returns
    -------
    type
        `driver`.
    """
    if not (isinstance(driver, type) and issubclass(driver, Kernel)):
        raise TypeError(f"the driver of {kernel!r} is {driver!r}; expected a subclass of Kernel")
    DRIVERS[kernel] = driver
    return driver


def driver_for(entry: dict[str, Any]) -> type[Kernel] | None:
    """Return the driver for an entry of ``ip_dict``; ``None`` for what is no HLS kernel."""
    fields = entry.get("type", "").split(":")
    registers = entry.get("registers") or {}
    control = registers.get("CTRL", {}).get("fields", {})
    if len(fields) < 3 or "AP_START" not in control:
        return None
    driver = DRIVERS.get(fields[2], GenericKernel)
    return driver if driver.fits(registers) else GenericKernel
