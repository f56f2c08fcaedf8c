"""Operators of device "pynq" on the kernels of an overlay: one table, a module for each family.

`TABLE` says which overloads are served, by which function, on which kernels. Rows that serve the
same overload are asked in their order; a program's own come by `register_operator`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from pynq_torch.kernels.tables.pointwise import UNARY
from pynq_torch.torch_device import dispatch
from pynq_torch.torch_device.dispatch import Declined, kind_of
from pynq_torch.torch_device.variants import Sharing, into, into_self, variants

from . import (
    activation,
    conv,
    conv_direct,
    convolution,
    distance,
    indexed,
    ladder,
    linear,
    loss,
    matmul,
    movement,
    normalisation,
    pooling,
    reductions,
    softmax,
    sparse,
)
from . import pointwise as pw
from .checked import checked
from .pointwise_core import KERNELS as POINTWISE
from .units import KERNELS as INT8_PRODUCTS

__all__ = ["TABLE", "Declined", "Row", "add_offers", "register_operator"]


class Row(NamedTuple):
    """Operators, and what serves them.

    Attributes
    ----------
    overloads : str
        Of ATen, with blanks between them; their in-place and out variants are served too.
    function : callable
        Takes the operator's arguments; returns the result, or a `Declined` with the reason.
    kernels : tuple of str
        It is asked while the loaded overlay has one of these.
    sharing : {"none", "same"}
        What a written tensor may share with the operands, see `torch_device.variants.shares`.
    alone : bool
        Leave the variants to the CPU.
    """

    overloads: str
    function: Callable[..., Any]
    kernels: tuple[str, ...]
    sharing: Sharing = "none"
    alone: bool = False


ACTIVATION = ("activation_f32",)
CONV_INT8 = ("conv2d_i8", "depthwise_i8")
CONV_FLOAT = ("conv2d_f32", "depthwise_f32")
DISTANCE = ("distance_f32",)
DOT_LADDER = ("dot_4", "dot_3", "dot_2", "dot_1")
MATMUL = ("matmul_f32",)
MOVE = ("move_32",)
NLL = ("nll_f32",)
NORM = ("norm_f32",)
POOL = ("pool2d_f32",)
REDUCE = ("reduce_f32",)
SOFTMAX = ("softmax_f32",)
VADD_LADDER = ("vadd_4", "vadd_3", "vadd_2", "vadd_1", "vadd")

#: Pointwise operators whose arguments are more than the operands, or which have several overloads.
_WITH_ARGUMENTS: dict[str, Callable[..., Any]] = {
    "add.Tensor add.Scalar": pw.add,
    "sub.Tensor sub.Scalar": pw.sub,
    "rsub.Tensor rsub.Scalar": pw.rsub,
    "mul.Tensor mul.Scalar": pw.plain("binary", "mul"),
    "div.Tensor div.Scalar": pw.div,
    "div.Tensor_mode div.Scalar_mode": pw.div_mode,
    "floor_divide floor_divide.Scalar": pw.floor_divide,
    "remainder.Tensor remainder.Scalar remainder.Scalar_Tensor": pw.remainder,
    "maximum clamp_min.Tensor": pw.plain("binary", "maximum"),
    "minimum clamp_max.Tensor": pw.plain("binary", "minimum"),
    "pow.Tensor_Tensor pow.Scalar": pw.power,
    "pow.Tensor_Scalar": pw.pow_number,
    "clamp clamp_min": pw.clamp,
    "clamp_max": pw.clamp_max,
    "clamp.Tensor": pw.clamp_tensors,
    "threshold": pw.plain("unary", "threshold"),
    "hardtanh": pw.hardtanh,
    "leaky_relu": pw.plain("unary", "leaky_relu", 0.01),
    "gelu": pw.gelu,
    "addcmul": pw.plain("ternary", "addcmul", 1),
    "addcdiv": pw.plain("ternary", "addcdiv", 1),
    "where.self": pw.where,
    "lerp.Scalar lerp.Tensor": pw.lerp,
    "threshold_backward": pw.plain("binary", "threshold_backward"),
    "sigmoid_backward": pw.plain("binary", "sigmoid_backward"),
    "tanh_backward": pw.plain("binary", "tanh_backward"),
    "silu_backward": pw.plain("binary", "silu_backward"),
    "leaky_relu_backward": pw.leaky_relu_backward,
    "hardtanh_backward": pw.plain("binary", "hardtanh_backward"),
    "gelu_backward": pw.gelu_backward,
}
_NAMED = {name for overloads in _WITH_ARGUMENTS for name in overloads.split()}
#: Every other function of the table is the operator of its name.
_ALONE = {
    function.name: pw.plain("unary", function.name)
    for function in UNARY
    if function.overloads == (f"aten::{function.name}",) and function.name not in _NAMED
}
POINTWISE_ROWS = tuple(
    Row(overloads, function, POINTWISE, "same")
    for overloads, function in {**_ALONE, **_WITH_ARGUMENTS}.items()
)

#: What serves which operators, the first row that can do a call exactly.
TABLE: tuple[Row, ...] = (
    # ReLU without the other functions
    Row("relu", activation.relu, ACTIVATION, "same"),
    Row("threshold_backward", activation.threshold_backward, ACTIVATION, "same"),
    # convolutions: lowered onto int8 products, direct in int8, direct in float32
    Row("convolution", conv.convolution, INT8_PRODUCTS),
    Row("convolution", conv_direct.convolution, CONV_INT8),
    Row("convolution", convolution.convolution, CONV_FLOAT),
    Row("convolution_backward", convolution.convolution_backward, CONV_FLOAT[:1], alone=True),
    # distances
    Row("_cdist_forward", distance.cdist_forward, DISTANCE),
    Row("_euclidean_dist", distance.euclidean_dist, DISTANCE),
    Row("dot vdot", distance.dot, DISTANCE),
    # gathers and scatter-adds
    Row("embedding", indexed.embedding, MOVE),
    Row("embedding_dense_backward", indexed.embedding_dense_backward, MOVE),
    Row("index.Tensor", indexed.index_tensor, MOVE),
    Row("index_select", indexed.index_select, MOVE),
    Row("gather", indexed.gather, MOVE),
    Row("index_add", indexed.index_add, MOVE),
    Row("scatter_add", indexed.scatter_add, MOVE),
    # the optimisation ladder
    Row("add.Tensor", ladder.add, VADD_LADDER, "same"),
    Row("dot", ladder.dot, DOT_LADDER),
    # matrix products: int8 on gemm, float32 on matmul_f32
    Row("_int_mm", linear.int_mm, INT8_PRODUCTS, "same"),
    Row("mm", linear.mm, INT8_PRODUCTS, "same"),
    Row("addmm", linear.addmm, INT8_PRODUCTS, "same"),
    Row("bmm", linear.bmm, INT8_PRODUCTS, "same"),
    Row("baddbmm", linear.baddbmm, INT8_PRODUCTS, "same"),
    Row("mv", linear.mv, INT8_PRODUCTS, "same"),
    Row("addmv", linear.addmv, INT8_PRODUCTS, "same"),
    Row("dot", linear.dot, INT8_PRODUCTS, "same"),
    Row("nll_loss_forward", loss.loss(images=False), NLL),
    Row("nll_loss_backward", loss.gradient(images=False), NLL),
    Row("nll_loss2d_forward", loss.loss(images=True), NLL),
    Row("nll_loss2d_backward", loss.gradient(images=True), NLL),
    Row("mm", matmul.mm, MATMUL, "same"),
    Row("addmm", matmul.addmm, MATMUL, "same"),
    Row("_addmm_activation", matmul.addmm_activation, MATMUL, "same"),
    Row("bmm", matmul.bmm, MATMUL, "same"),
    Row("baddbmm", matmul.baddbmm, MATMUL, "same"),
    Row("mv", matmul.mv, MATMUL, "same"),
    Row("addmv", matmul.addmv, MATMUL, "same"),
    Row("dot", matmul.dot, MATMUL, "same"),
    # copies
    Row("clone", movement.clone, MOVE, alone=True),
    Row("copy_", movement.copy_, MOVE, alone=True),
    Row("cat", movement.cat, MOVE),
    Row("stack", movement.stack, MOVE),
    # normalisation; running statistics are written, so that a call must not be tried twice
    Row("native_batch_norm _native_batch_norm_legit", normalisation.batch_norm, NORM, alone=True),
    Row(
        "_native_batch_norm_legit_no_training",
        normalisation.batch_norm_without_training,
        NORM,
        alone=True,
    ),
    Row("native_layer_norm", normalisation.layer_norm, NORM, alone=True),
    # pointwise
    *POINTWISE_ROWS,
    # pooling
    Row("max_pool2d_with_indices", pooling.max_pool, POOL),
    Row("max_pool2d_with_indices_backward", pooling.max_pool_backward, POOL),
    Row("avg_pool2d", pooling.avg_pool, POOL),
    Row("avg_pool2d_backward", pooling.avg_pool_backward, POOL),
    Row("_adaptive_avg_pool2d", pooling.adaptive_avg_pool, POOL),
    Row("adaptive_avg_pool2d.out", into(pooling.adaptive_avg_pool), POOL, alone=True),
    Row("_adaptive_avg_pool2d_backward", pooling.adaptive_avg_pool_backward, POOL),
    # reductions
    Row("sum sum.dim_IntList", reductions.plain("sum"), REDUCE),
    Row("mean mean.dim", reductions.plain("mean"), REDUCE),
    Row("prod prod.dim_int", reductions.plain("prod"), REDUCE),
    Row("amax max", reductions.plain("amax"), REDUCE),
    Row("amin min", reductions.plain("amin"), REDUCE),
    Row("argmax", reductions.extreme("max"), REDUCE),
    Row("argmin", reductions.extreme("min"), REDUCE),
    Row("max.dim", reductions.plain("max"), REDUCE),
    Row("min.dim", reductions.plain("min"), REDUCE),
    Row("aminmax", reductions.aminmax, REDUCE),
    Row("var.correction", reductions.spread("var"), REDUCE),
    Row("std.correction", reductions.spread("std"), REDUCE),
    Row("var_mean.correction", reductions.spread("var", mean=True), REDUCE),
    Row("std_mean.correction", reductions.spread("std", mean=True), REDUCE),
    Row("linalg_vector_norm", reductions.norm, REDUCE),
    Row(
        "norm.Scalar norm.ScalarOpt_dtype norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype",
        reductions.norm,
        REDUCE,
    ),
    # softmax and what goes backwards
    Row("_softmax", softmax.forward("softmax"), SOFTMAX),
    Row("_log_softmax", softmax.forward("log_softmax"), SOFTMAX),
    Row("softmax.int_out", into(softmax.with_dtype("softmax")), SOFTMAX, alone=True),
    Row("log_softmax.int_out", into(softmax.with_dtype("log_softmax")), SOFTMAX, alone=True),
    Row("_softmax_backward_data", softmax.backward("softmax_backward"), SOFTMAX),
    Row("_log_softmax_backward_data", softmax.backward("log_softmax_backward"), SOFTMAX),
    Row("logsumexp", softmax.logsumexp, SOFTMAX),
)


def add_offers() -> None:
    """Add the rows of the table to what the dispatcher asks; called once."""
    for row in TABLE:
        _add(row)
    sparse.register()


def register_operator(
    overload: str,
    function: Callable[..., Any],
    kernels: Collection[str] = (),
    *,
    priority: int = 0,
    sharing: Sharing = "none",
    alone: bool = False,
) -> None:
    """Serve an operator of torch with a kernel of your own.

    Parameters
    ----------
    overload : str
        The functional form, e.g. ``"aten::hypot"``; its in-place and out variants are served with
        it.
    function : callable
        Takes the operator's arguments; returns the result, or a `Declined` whose reason is shown
        where no other kernel serves the call either. A result must be on device "pynq", with the
        dtype and the shape that torch gives it: a call with another one raises TypeError.
    kernels : collection of str
        It is asked only while the loaded overlay has one of these; with none given, always.
    priority : int
        The greater is asked first. Rows of `TABLE` have 0 and are asked before yours of 0.
    sharing : {"none", "same"}
        What a written tensor may share with the operands, see `torch_device.variants.shares`.
    alone : bool
        Leave the variants to the CPU.

    Raises
    ------
    ValueError
        torch has no such overload, or one that never arrives here: torch composes it of others, or
        it only describes a tensor in another way.
    """
    dispatch.fill()
    _check(overload)
    function = checked(overload, function)
    _add(Row(overload.removeprefix("aten::"), function, tuple(kernels), sharing, alone), priority)


def _add(row: Row, priority: int = 0) -> None:
    """Serve the overloads of a row, and their variants."""
    sharing = row.sharing
    for overload in row.overloads.split():
        served = {f"aten::{overload}": row.function}
        if not row.alone:
            in_place, outs = variants(f"aten::{overload}")
            if in_place:
                served[in_place] = into_self(row.function, sharing=sharing)
            served |= {out: into(row.function, names, sharing=sharing) for out, names in outs}
        for name, function in served.items():
            dispatch.add_offer(name, function, row.kernels, priority)


def _check(name: str) -> None:
    """Refuse an overload that never arrives here: the function would never be called."""
    hint = "TORCH_PYNQ_DEBUG=1 prints what a program calls"
    if not name.startswith("aten::"):
        raise ValueError(f"{name!r} is no overload of ATen, e.g. 'aten::add.Tensor'; {hint}")
    try:
        kind = kind_of(name)
    except RuntimeError as error:
        raise ValueError(f"torch has no overload {name!r}: {error}; {hint}") from error
    if kind != "value":
        raise ValueError(
            f"{name} never arrives at device 'pynq': torch composes it of others, or it is "
            f"a view. Register what arrives; {hint}"
        )
