"""gemm's epilogue through its driver: every mode bit for bit what torch's CPU gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pynq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pynq_torch
from pynq_torch import buffers
from pynq_torch.kernels import Gemm, split_gemm
from pynq_torch.kernels.epilogue import mode_of
from pynq_torch.kernels.registers import blocks
from pynq_torch.overlay import ensure_event_loop

pytestmark = pytest.mark.timeout(240)

DTYPES = (torch.int32, torch.int8, torch.float32)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.fixture(scope="module")
def overlay() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    ensure_event_loop()
    yield pynq_torch.load("gemm_dual")
    board.close()


def reference(a: Any, b: Any, bias: Any, scale: Any, relu: bool, dtype: Any) -> torch.Tensor:
    """The epilogue in torch's own operators, on the CPU."""
    acc = a.to(torch.int32) @ b.to(torch.int32)
    if dtype == torch.float32:
        result = acc.to(torch.float32) * scale
        result = result if bias is None else result + bias
        return torch.relu(result) if relu else result
    acc = acc if bias is None else acc + bias
    if dtype == torch.int32:
        return torch.relu(acc) if relu else acc
    low = 0 if relu else -128
    return torch.clamp(torch.round(acc.to(torch.float32) * scale), low, 127).to(torch.int8)


def same_bits(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Equal to the last bit: -0 is not 0, and any NaN equals itself."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    if found.dtype == torch.float32:
        nan = torch.isnan(expected)
        found, expected = found.masked_fill(nan, 0), expected.masked_fill(nan, 0)
        found, expected = found.contiguous().view(torch.int32), expected.view(torch.int32)
    return torch.equal(found, expected)


def int8(*shape: int, cma: bool = False, extreme: bool = False) -> torch.Tensor:
    values = torch.randint(-128, 128, shape, dtype=torch.int8)
    if extreme:
        values = torch.where(values < 0, -128, 127).to(torch.int8)
    return buffers.as_tensor(buffers.to_buffer(values)) if cma else values


@st.composite
def columns(draw: st.DrawFn, n: int, dtype: torch.dtype) -> tuple[Any, Any]:
    """Bias and scale for n columns."""
    integers = st.integers(-(2**31), 2**31 - 1) | st.integers(-300, 300)
    bias = scale = None
    if draw(st.booleans()):
        values = FLOATS if dtype == torch.float32 else integers
        kind = torch.float32 if dtype == torch.float32 else torch.int32
        bias = torch.tensor(draw(st.lists(values, min_size=n, max_size=n)), dtype=kind)
    if dtype != torch.int32:
        # Powers of two give ties; others are what quantisation has, or anything.
        near = st.sampled_from([0.5, 0.25, -0.5, 2.0**-9, 0.0, 1.0, 3e-3])
        scale = torch.tensor(draw(st.lists(near | FLOATS, min_size=n, max_size=n)))
    return bias, scale


@given(data=st.data(), dtype=st.sampled_from(DTYPES), relu=st.booleans(), seed=st.integers(0, 99))
@settings(max_examples=150)
def test_every_mode_is_what_torch_gives(
    overlay: Any, data: st.DataObject, dtype: torch.dtype, relu: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    m, n = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 30))
    k = data.draw(st.integers(0, 40) | st.just(1500))  # 1500 * 2^14 has more bits than a float
    extreme = data.draw(st.booleans())
    a, b = int8(m, k, extreme=extreme), int8(k, n, cma=data.draw(st.booleans()), extreme=extreme)
    bias, scale = data.draw(columns(n, dtype))
    unit = data.draw(st.sampled_from([overlay.gemm, overlay.gemm_lut]))
    result = unit(a, b, bias=bias, scale=scale, relu=relu, dtype=dtype)
    assert same_bits(result, reference(a, b, bias, scale, relu, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [255, 256, 257, 300, 515])
def test_columns_beyond_a_tile_take_their_own_values(
    overlay: Any, dtype: torch.dtype, n: int
) -> None:
    torch.manual_seed(n)
    a, b = int8(40, 70), int8(70, n)
    bias = torch.randint(-9999, 9999, (n,)).to(dtype if dtype.is_floating_point else torch.int32)
    scale = None if dtype == torch.int32 else torch.randn(n) * 1e-2
    for unit in (overlay.gemm, overlay.gemm_lut):
        result = unit(a, b, bias=bias, scale=scale, dtype=dtype)
        assert same_bits(result, reference(a, b, bias, scale, False, dtype))


def test_halves_round_to_even(overlay: Any) -> None:
    a, b = torch.zeros(1, 1, dtype=torch.int8), torch.zeros(1, 9, dtype=torch.int8)
    bias = torch.tensor([1, 3, 5, -1, -3, 253, 255, -255, -257], dtype=torch.int32)
    result = overlay.gemm(a, b, bias=bias, scale=torch.full((9,), 0.5), dtype=torch.int8)
    assert result.tolist() == [[0, 2, 2, 0, -2, 126, 127, -128, -128]]


def test_what_is_no_number(overlay: Any) -> None:
    a = torch.tensor([[0], [1], [-1]], dtype=torch.int8)
    b = torch.ones(1, 3, dtype=torch.int8)
    scale = torch.tensor([float("nan"), float("inf"), -float("inf")])
    for relu in (False, True):
        result = overlay.gemm(a, b, scale=scale, relu=relu, dtype=torch.float32)
        assert same_bits(result, reference(a, b, None, scale, relu, torch.float32))
    result = overlay.gemm(a, b, scale=scale, dtype=torch.int8)
    assert result.tolist() == [[0, 0, 0], [0, 127, -128], [0, -128, 127]]


@given(m=st.integers(1, 9), n=st.integers(1, 24), at=st.integers(0, 9), width=st.integers(24, 41))
@settings(max_examples=60)
def test_int8_leaves_its_neighbours_alone(
    overlay: Any, m: int, n: int, at: int, width: int
) -> None:
    """Whole words are stored: a block of a wider matrix must not lose what lies beside it."""
    at = min(at, width - n)
    whole = buffers.empty_tensor((m, width), torch.int8).fill_(77)
    a, b, scale = int8(m, 5), int8(5, n), torch.full((n,), 0.01)
    out = whole[:, at : at + n]
    assert overlay.gemm(a, b, out=out, scale=scale, dtype=torch.int8) is out
    expected = torch.full((m, width), 77, dtype=torch.int8)
    expected[:, at : at + n] = reference(a, b, None, scale, False, torch.int8)
    assert torch.equal(whole, expected)


def test_int8_is_stored_in_place_where_words_fit(overlay: Any) -> None:
    whole = buffers.empty_tensor((6, 40), torch.int8).fill_(1)
    a, b = int8(6, 8, cma=True), int8(8, 12, cma=True)
    scale = buffers.as_tensor(buffers.to_buffer(torch.full((12,), 0.02)))
    before = buffers.statistics()
    result = overlay.gemm(a, b, out=whole[:, 8:20], scale=scale, dtype=torch.int8)
    after = buffers.statistics()
    assert (after.hits, after.misses) == (before.hits, before.misses)  # no buffer was needed
    assert same_bits(result, reference(a, b, None, scale, False, torch.int8))


def test_a_result_over_its_own_scale(overlay: Any) -> None:
    memory = buffers.empty_tensor((4, 4), torch.float32).fill_(0.5)
    a, b = int8(4, 3), int8(3, 4)
    expected = reference(a, b, None, torch.full((4,), 0.5), False, torch.float32)
    result = overlay.gemm(a, b, out=memory, scale=memory[0], dtype=torch.float32)
    assert same_bits(result, expected)


@given(m=st.integers(0, 40), n=st.integers(1, 30), seed=st.integers(0, 9), data=st.data())
@settings(max_examples=40)
def test_two_units_share_an_epilogue(
    overlay: Any, m: int, n: int, seed: int, data: st.DataObject
) -> None:
    torch.manual_seed(seed)
    dtype = data.draw(st.sampled_from(DTYPES))
    a, b = int8(m, 20), int8(20, n)
    bias, scale = data.draw(columns(n, dtype))
    options: dict[str, Any] = {"bias": bias, "scale": scale, "relu": True, "dtype": dtype}
    result = split_gemm(list(overlay.kernels.values()), a, b, speeds=[2.0, 1.0], **options)
    assert same_bits(result, reference(a, b, **options))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dtype": torch.int16}, r"expected torch\.int32, torch\.int8 or torch\.float32"),
        ({"dtype": torch.int8}, "takes scale=, a float32 tensor of 4; none is given"),
        ({"scale": torch.ones(4)}, "a result of int32 takes no scale; one is given"),
        ({"bias": torch.ones(4)}, "bias has dtype torch.float32; expected torch.int32"),
        ({"bias": torch.ones(3, dtype=torch.int32)}, r"bias has shape \(3,\); expected \(4,\)"),
        (
            {"dtype": torch.float32, "scale": torch.ones(4), "bias": torch.ones(4).int()},
            "bias has dtype torch.int32; expected torch.float32",
        ),
        (
            {"dtype": torch.int8, "scale": torch.ones(4).double()},
            "scale has dtype torch.float64; expected torch.float32",
        ),
        (
            {"dtype": torch.int8, "scale": torch.ones(4), "out": torch.empty(2, 4)},
            "out has dtype torch.float32; expected torch.int8",
        ),
    ],
)
def test_refusals(overlay: Any, options: dict[str, Any], text: str) -> None:
    a, b = int8(2, 3), int8(3, 4)
    with pytest.raises(ValueError, match=text):
        overlay.gemm(a, b, **options)
    with pytest.raises(ValueError, match=text):
        split_gemm([overlay.gemm, overlay.gemm_lut], a, b, **options)


def test_start_product_refuses_what_the_kernel_would_spoil(overlay: Any) -> None:
    gemm = overlay.gemm
    a, b = buffers.to_buffer(int8(2, 3)), buffers.to_buffer(int8(3, 5))
    scale = buffers.to_buffer(torch.ones(5))
    mode = mode_of(torch.int8)
    wide = buffers.empty((2, 8), "int8")
    with pytest.raises(ValueError, match="rows 5 bytes apart"):
        gemm.start_product(a, b, buffers.empty((2, 5), "int8"), scale=scale, mode=mode)
    with pytest.raises(ValueError, match="expected multiples of 4"):
        gemm.start_product(a, b, wide[:, 1:6], scale=scale, mode=mode)
    with pytest.raises(ValueError, match=r"c is int32 .*; expected int8 \(2, 5\)"):
        gemm.start_product(a, b, buffers.empty((2, 5), "int32"), scale=scale, mode=mode)
    with pytest.raises(ValueError, match=r"c is int8 \(8,\) .*; expected int8 \(2, 5\)"):
        gemm.start_product(a, b, wide[0], scale=scale, mode=mode)
    with pytest.raises(ValueError, match=r"scale is none; mode 1 takes float32 \(5,\)"):
        gemm.start_product(a, b, wide[:, :5], mode=mode)
    with pytest.raises(ValueError, match=r"bias is float32 \(5,\); mode 1 takes none"):
        gemm.start_product(a, b, wide[:, :5], scale=scale, bias=scale, mode=mode)
    with pytest.raises(ValueError, match=r"scale is float32 \(3,\); mode 1 takes float32 \(5,\)"):
        gemm.start_product(a, b, wide[:, :5], scale=scale[:3], mode=mode)
    with pytest.raises(ValueError, match=r"bias is float32 .*; mode 5 takes int32 \(5,\)"):
        gemm.start_product(a, b, wide[:, :5], scale=scale, bias=scale, mode=5)
    with pytest.raises(ValueError, match="a is 2x3 and b is 2x3"):
        gemm.start_product(a, a, wide[:, :5], scale=scale, mode=mode)
    with pytest.raises(TypeError, match="c is ndarray in ordinary memory"):
        gemm.start_product(a, b, np.zeros((2, 5), np.int8), scale=scale, mode=mode)
    with pytest.raises(ValueError, match="mode is 3; expected INT32"):
        gemm.start_product(a, b, wide[:, :5], scale=scale, mode=3)
    gemm.start_product(a, b, wide[:, :5], scale=scale, mode=mode).wait()  # usable after all that
    a_cpu, b_cpu = torch.from_numpy(np.array(a)), torch.from_numpy(np.array(b))
    expected = reference(a_cpu, b_cpu, None, torch.ones(5), False, torch.int8)
    assert torch.equal(torch.from_numpy(np.array(wide[:, :5])), expected)


def test_the_arguments_are_one_slice(overlay: Any) -> None:
    for unit in overlay.kernels.values():
        assert [p.name for run in blocks(unit.parameters) for p in run] == [
            *("a", "b", "c", "m", "n", "k", "lda", "ldb", "ldc", "bias", "scale", "mode")
        ]
        assert len(blocks(unit.parameters)) == 1


def test_a_gemm_built_before_the_epilogue(overlay: Any) -> None:
    """Its handoff lists no register `mode`: products run as ever, an epilogue is refused."""
    entry = dict(overlay.ip_dict["gemm_0"], device=pynq.Device.active_device)
    new = ("bias_1", "bias_2", "scale_1", "scale_2", "mode")
    entry["registers"] = {k: v for k, v in entry["registers"].items() if k not in new}
    old = Gemm(entry)
    a, b = int8(3, 4), int8(4, 5)
    overlay.gemm(a, b)  # leaves 0 in the register that this driver does not know
    assert torch.equal(old(a, b), a.int() @ b.int())
    with pytest.raises(ValueError, match="built without an epilogue"):
        old(a, b, relu=True)


@pytest.mark.parametrize("spoiled", ["a", "b", "bias"])
def test_a_result_over_an_input_does_not_spoil_it(overlay: Any, spoiled: str) -> None:
    """Of two tiles of columns: the second one reads the inputs again."""
    torch.manual_seed(1)
    rows = 1 if spoiled == "bias" else 300
    given = {"a": int8(rows, 300, cma=True), "b": int8(300, 300, cma=True)}
    dtype, columns = torch.int8, {"scale": torch.rand(300) * 1e-2}
    if spoiled == "bias":
        bias = buffers.empty_tensor((2, 300), torch.int32).random_(-9999, 9999)
        dtype, columns, out = torch.int32, {"bias": bias[1]}, bias.view(-1)[150:450].view(1, 300)
    else:
        out = given[spoiled]
    full = {"bias": None, "scale": None, **columns}
    expected = reference(*given.values(), full["bias"], full["scale"], False, dtype)
    assert overlay.gemm(*given.values(), out=out, dtype=dtype, **columns) is out
    assert torch.equal(out, expected)


def test_vectors_may_have_strides(overlay: Any) -> None:
    torch.manual_seed(2)
    a, b = int8(5, 70), int8(70, 9)
    scale = buffers.empty_tensor(18).uniform_(0, 1e-2)[::2]
    bias = buffers.empty_tensor((9, 2)).normal_()[:, 1]
    expected = reference(a, b, bias, scale, False, torch.float32)
    found = overlay.gemm(a, b, scale=scale, bias=bias, dtype=torch.float32)
    assert same_bits(found, expected)
    place = buffers.empty((5, 9))
    columns = {"scale": buffers.buffer_of(scale), "bias": buffers.buffer_of(bias)}
    mode = mode_of(torch.float32, bias=True, relu=False)
    overlay.gemm.start_product(a, b, place, mode=mode, **columns).wait(10)
    assert same_bits(buffers.as_tensor(place), expected)
