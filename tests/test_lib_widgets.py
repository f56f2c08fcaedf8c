"""Explorers and the gemm tiler: what they show, that every control does something, and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ipywidgets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pynq_torch
from pynq_torch import timing, verify, widgets
from pynq_torch.errors import KernelError
from pynq_torch.hls.estimator import compiler
from pynq_torch.kernels.tables.pointwise import FUNCTIONS
from pynq_torch.lessons import gemm_tiles, kernel_cases
from pynq_torch.lessons.gemm_tiles import Shape, Stage, read_shape, stages
from pynq_torch.models import evidence
from pynq_torch.widgets.panel import Panel, Picture, figure

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def board() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    yield board
    board.close()


# ---- tiles ---------------------------------------------------------------------------------------


def test_tile_sizes_are_those_of_the_kernel(tmp_path: Path) -> None:
    shape = read_shape("gemm")
    header = (gemm_tiles.KERNELS / "gemm" / "gemm.hpp").read_text()
    assert f"TILE_M = {shape.tile_m}," in header and f"TILE_K = {shape.tile_k};" in header
    assert shape.macs_per_cycle == 256
    assert read_shape("gemm_lut").macs_per_cycle == 64
    folder = tmp_path / "gemm"
    folder.mkdir()
    (folder / "gemm.hpp").write_text(header.replace("TILE_K = 32", "TILE_K = 64"))
    assert read_shape("gemm", tmp_path).tile_k == 64
    (folder / "gemm.hpp").write_text(header.replace("TILE_K =", "TILE_Q ="))
    with pytest.raises(KernelError, match="does not say TILE_K"):
        read_shape("gemm", tmp_path)
    with pytest.raises(KernelError, match="has no header"):
        read_shape("vadd", tmp_path)


def _multiply(shape: Shape, a: Any, b: Any) -> Any:
    """Multiply as the stages say, with buffers that hold only what was loaded into them."""
    c = np.zeros((a.shape[0], b.shape[1]), np.int64)
    buffers: list[Any] = [None, None]
    on_chip: Any = None
    last: Stage | None = None
    for stage in stages(shape, *a.shape[:1], b.shape[1], a.shape[1]):
        if last is None or stage.tile != last.tile:
            on_chip = np.zeros((stage.tile.rows, stage.tile.cols), np.int64)
        assert stage.tile.rows <= shape.tile_m and stage.tile.cols <= shape.tile_n
        if stage.use_a is not None:
            held_a, held_b, block_a, block_b = buffers[1 - stage.buffer]
            assert (block_a, block_b) == (stage.use_a, stage.use_b)
            on_chip += held_a @ held_b
        if stage.load_a is not None and stage.load_b is not None:
            parts = [
                m[block.row : block.row + block.rows, block.col : block.col + block.cols]
                for m, block in ((a, stage.load_a), (b, stage.load_b))
            ]
            assert stage.load_a.cols == stage.load_b.rows <= shape.tile_k
            buffers[stage.buffer] = (*parts, stage.load_a, stage.load_b)
        if stage.store:
            rows = slice(stage.tile.row, stage.tile.row + stage.tile.rows)
            c[rows, stage.tile.col : stage.tile.col + stage.tile.cols] = on_chip
        last = stage
    return c, last


@settings(max_examples=40)
@given(
    sizes=st.tuples(*[st.integers(1, 20)] * 3),
    tiles=st.tuples(*[st.integers(1, 8)] * 3),
)
def test_the_stages_are_a_product(sizes: tuple[int, int, int], tiles: tuple[int, int, int]) -> None:
    m, n, k = sizes
    shape = Shape(1, 1, *tiles, 1, 1, 4)
    random = np.random.default_rng(0)
    a, b = random.integers(-9, 9, (m, k)), random.integers(-9, 9, (k, n))
    c, last = _multiply(shape, a, b)
    assert np.array_equal(c, a @ b)
    tiles_m, tiles_n = -(-m // tiles[0]), -(-n // tiles[1])
    assert last.macs == m * n * k
    assert last.read_bytes == m * k * tiles_n + k * n * tiles_m
    assert last.written_bytes == 4 * m * n
    assert last.tiles_done == tiles_m * tiles_n - 1


def test_stages_of_nothing() -> None:
    with pytest.raises(ValueError, match="m, n, k are 0, 1, 1; expected at least 1"):
        next(stages(read_shape("gemm"), 0, 1, 1))


# ---- the panel -----------------------------------------------------------------------------------


def _picture(value: int) -> Picture:
    if value < 0:
        raise ValueError("<below zero>")
    drawn = figure(2, 1)
    drawn.text(0.5, 0.5, str(value))
    return Picture(drawn, f"value {value} < 100")


def test_errors_stand_where_the_picture_was() -> None:
    slider = ipywidgets.IntSlider(value=1, min=-5, max=5)
    panel = Panel(_picture, {"value": slider})
    first = panel.picture.value
    assert first[:4] == PNG and "value 1 &lt; 100" in panel.message.value
    slider.value = -1
    assert panel.picture.value == b""
    assert "ValueError" in panel.message.value and "&lt;below zero&gt;" in panel.message.value
    assert "Traceback" in panel.message.value
    assert isinstance(panel.error, ValueError)
    assert "image/png" not in panel._repr_mimebundle_()
    slider.value = 2
    assert panel.error is None and panel.picture.value not in (b"", first)
    assert "value 2" in panel.message.value
    assert set(panel._repr_mimebundle_(include=None, exclude=None)) == {
        "application/vnd.jupyter.widget-view+json",
        "image/png",
        "text/plain",
    }


def test_a_reaction_that_fails_is_shown() -> None:
    def fail(_: Any) -> None:
        raise KeyError("no such size")

    slider = ipywidgets.IntSlider(value=1, min=0, max=5)
    panel = Panel(_picture, {"value": slider}, on_change={"value": fail})
    assert panel.error is None
    slider.value = 2
    assert "KeyError" in panel.message.value and panel.picture.value == b""


def test_a_control_without_a_choice_is_out_of_sight() -> None:
    one = ipywidgets.Dropdown(options=[3])
    panel = Panel(lambda value: _picture(value), {"value": one})
    assert one.layout.display == "none"
    one.options = [3, 4]
    one.value = 4
    assert one.layout.display is None
    assert panel.values() == {"value": 4}


def test_a_picture_shows_everywhere() -> None:
    picture = _picture(1)
    assert picture._repr_png_()[:4] == PNG
    assert repr(picture) == "value 1 < 100"


def test_views_of_an_overlay_that_has_gone_say_so(board: Any) -> None:
    overlay = pynq_torch.load("pointwise")
    _, choice, table = widgets.memory_map(overlay, live=False).controls().children
    view = widgets.register_map(overlay.unary_f32, live=False)
    _, buttons, row, message = view.controls().children
    pynq_torch.load("vadd")  # nothing answers at the addresses of unary_f32
    choice.value = "unary_f32_0"
    assert "is no longer loaded" in table.value
    for button in (buttons.children[0], row.children[2]):
        message.value = ""
        button.click()
        assert "pynq-torch-error" in message.value


# ---- the gemm tiler ------------------------------------------------------------------------------


def test_the_tiler_is_a_picture_without_controls() -> None:
    picture = widgets.gemm_tiler(300, 200, 64, live=False)
    assert picture.png[:4] == PNG
    assert "gemm, 300x64 by 64x200, step 5 of 8" in picture.text
    shape = read_shape("gemm")
    read = shape.tile_m * 64 + 64 * 200 + (300 - shape.tile_m) * 32 + 32 * 200
    assert f"{read:,} bytes read" in picture.text


def test_every_control_of_the_tiler_changes_the_picture() -> None:
    panel = widgets.gemm_tiler(live=True)
    bundle = panel._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == panel.box.model_id
    seen = {panel.picture.value}
    settings = {"step": 3, "m": 100, "n": 90, "k": 33, "kernel": "gemm_lut"}
    assert set(settings) == set(panel.controls)
    for name, value in settings.items():
        panel.controls[name].value = value
        assert panel.error is None
        seen.add(panel.picture.value)
    assert len(seen) == 1 + len(settings)
    assert panel.controls["step"].value == 0  # begins again with other sizes
    end = panel.controls["step"].max
    panel.controls["step"].value = end
    assert f"step {end + 1} of {end + 1}" in panel.message.value
    (play,) = [w for w in panel.box.children[0].children if isinstance(w, ipywidgets.Play)]
    assert play.max == end


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"m": 0}, "m is 0; expected 1 to"),
        ({"k": 10_000}, "k is 10000; expected 1 to"),
        ({"kernel": "vadd"}, "kernel is 'vadd'; expected one of gemm, gemm_lut"),
    ],
)
def test_the_tiler_refuses(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        widgets.gemm_tiler(**arguments, live=False)


# ---- the kernel explorer -------------------------------------------------------------------------


def test_a_kernel_runs_and_is_checked(board: Any) -> None:
    overlay = pynq_torch.load("vadd")
    picture = widgets.kernel_explorer(overlay, size=256, live=False)
    assert picture.png[:4] == PNG
    cycles = timing.model_cycles("vadd", n=256)
    (estimate,) = evidence.schedule("vadd", 1e8, n=256).latency[:1]
    lines = picture.text.splitlines()
    assert lines[:3] == [
        "vadd: float32[256], max error 0, tolerance 0 + 0 * |reference|: PASS",
        f"vadd of overlay vadd, 256 elements, float32: {estimate:,} cycles, estimate (memory "
        f"never waits, at 100 MHz); {cycles:,} cycles, model (at 100 MHz)",
        "vadd: estimate for xc7z020clg400-1 at 10 ns, as Vitis HLS would do it",
    ]
    header = next(line for line in lines if line.startswith("loop "))
    assert header.split() == ["loop", "line", "trips", "II", "depth", "latency"]


def test_a_kernel_is_explored_without_clang(board: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "tools", lambda: "there is no clang-16")
    text = widgets.kernel_explorer("vadd", size=4096, live=False).text
    assert "float32: 6,404 cycles, model" in text and "PASS" in text
    assert text.endswith("no estimate: there is no clang-16")


def test_every_control_of_the_kernel_explorer_runs_again(board: Any) -> None:
    # named overlays: loaded when a kernel of theirs is chosen
    panel = widgets.kernel_explorer("vadd", "gemm_dual", live=True)
    seen = {panel.message.value}
    for name, value in {
        "size": 256,
        "function": "gemm",
        "kernel": "gemm_lut",
        "dtype": "int8",
    }.items():
        before = panel.picture.value
        panel.controls[name].value = value
        assert panel.error is None
        assert panel.picture.value not in (b"", before)
        seen.add(panel.message.value)
    assert len(seen) == 5 and all("PASS" in text for text in seen)
    assert "gemm_lut of overlay gemm_dual, 64 rows = columns, int8" in panel.message.value
    panel.controls["function"].value = "vadd"  # the first overlay again
    assert "vadd of overlay vadd" in panel.message.value
    assert panel.controls["dtype"].value == "float32"


def test_the_rungs_of_a_ladder_are_compared(board: Any) -> None:
    cycles = []
    for rung in (2, 3):
        text = widgets.kernel_explorer(
            "ladder_2", "ladder_3", kernel=f"vadd_{rung}", size=65536, live=False
        ).text
        assert "PASS" in text and f"of overlay ladder_{rung}" in text
        cycles.append(int(text.split("float32: ")[1].split(" cycles")[0].replace(",", "")))
    assert "vadd_3 x2 of overlay" in text
    assert cycles[1] < 0.6 * cycles[0]  # two units, half the elements each


def test_a_wrong_result_is_shown(board: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = widgets.kernel_explorer("vadd", live=True)
    original = kernel_cases._vadd

    def wrong(units: Any, size: int, dtype: str) -> Any:
        trial = original(units, size, dtype)
        return kernel_cases.Trial(trial.run, lambda: trial.baseline() + 1)

    case = panel._draw.__self__.choices["vadd"]["vadd"].case
    monkeypatch.setitem(case.__dict__, "trial", wrong)
    panel.controls["size"].value = 256
    assert panel.picture.value == b""
    assert "VerificationError" in panel.message.value


def test_every_kernel_of_the_cases_passes(board: Any) -> None:
    tried = set()
    for name in ("vadd", "gemm_dual", "pointwise", "pointwise_int", "reductions", "lenet"):
        overlay = pynq_torch.load(name)
        for kernel in dict.fromkeys(d.kernel_name for d in overlay.kernels.values()):
            found = kernel_cases.find_case(kernel)
            if found is None or kernel in tried:
                continue
            case, dtypes = found
            for dtype in dtypes:
                units = overlay.kernels.of(kernel)[:1]
                trial = case.trial(units, case.sizes[0], dtype)
                result = trial.run()
                assert str(result.dtype) == f"torch.{dtype}"
                verify.close(result, trial.baseline(), trial.rtol, trial.atol)
                assert timing.model_cycles(kernel, **case.symbols(case.sizes[0], 1))
            tried.add(kernel)
    assert tried >= {"vadd", "gemm", "gemm_lut", "matmul_f32", "unary_f32", "binary_i8"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "gemm"}, "kernel is 'gemm'; expected one of vadd"),
        ({"function": "dot"}, "function is 'dot'; expected one of vadd"),
        ({"size": 3}, "size is 3; expected one of 256"),
        ({"dtype": "int8"}, "dtype is 'int8'; expected one of float32"),
    ],
)
def test_the_kernel_explorer_refuses(board: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(KernelError, match=re.escape(words)):
        widgets.kernel_explorer("vadd", live=False, **options)


def test_overlays_without_a_kernel_to_try(board: Any) -> None:
    with pytest.raises(KernelError, match="no kernel that the explorer has data for.*packetize"):
        widgets.kernel_explorer("packets", live=False)
    with pytest.raises(pynq_torch.errors.BitstreamError, match="no overlay is called 'nothing'"):
        widgets.kernel_explorer("nothing", live=False)


# ---- the function explorer -----------------------------------------------------------------------


def test_a_function_runs_on_the_pl(board: Any) -> None:
    import torch

    pynq_torch.load("pointwise")
    logger = torch.pynq.kernel_logger
    logger.clear()
    logger.enable()
    try:
        picture = widgets.function_explorer("relu", -2, 2, live=False)
    finally:
        logger.disable()
    assert [call["kernel"] for call in logger.entries()] == ["unary_f32"]
    logger.clear()
    assert picture.png[:4] == PNG
    assert picture.text == (
        "relu on -2 to 2, 2001 points: max error 0 ulp of torch's float32, bound 0: PASS"
    )


def test_every_control_of_the_function_explorer_does_something(board: Any) -> None:
    pynq_torch.load("pointwise")
    panel = widgets.function_explorer("clamp", live=True, min=-2)
    controls = panel.controls
    assert controls["p"].description == "min" and controls["p"].value == -2
    seen = {panel.picture.value}
    for name, value in {"span": (-3.0, 2.5), "p": 0.5, "q": 0.75, "function": "tanh"}.items():
        controls[name].value = value
        assert panel.error is None
        seen.add(panel.picture.value)
    assert len(seen) == 5
    assert controls["p"].layout.display == controls["q"].layout.display == "none"
    assert controls["span"].value == FUNCTIONS["unary"]["tanh"].domain
    controls["function"].value = "leaky_relu"
    assert controls["p"].layout.display is None and controls["q"].layout.display == "none"
    assert "negative_slope = 0.125" in panel.message.value


def test_special_values_are_no_error(board: Any) -> None:
    pynq_torch.load("pointwise")
    assert "PASS" in widgets.function_explorer("log", -1, 1, live=False).text  # NaN, -inf
    assert "PASS" in widgets.function_explorer("reciprocal", -1, 1, live=False).text  # inf


def test_another_overlay_is_said_in_the_widget(board: Any) -> None:
    pynq_torch.load("pointwise")
    panel = widgets.function_explorer(live=True)
    pynq_torch.load("vadd")
    panel.controls["function"].value = "exp"
    assert panel.picture.value == b""
    assert "has no kernel unary_f32" in panel.message.value
    assert "pynq_torch.load(&#x27;pointwise&#x27;)" in panel.message.value
    with pytest.raises(KernelError, match="no kernel unary_f32"):
        widgets.function_explorer(live=False)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("sine",), {}, "no unary function is called 'sine'; there are abs"),
        (("tanh", 2, 2), {}, "the range is 2 to 2; expected two ascending numbers"),
        (("tanh", -100, 2), {}, "the range is -100 to 2"),
        (("tanh",), {"slope": 1}, "tanh has no parameter 'slope'; it has: none"),
        (("clamp",), {"low_end": 1}, "it has: min, max"),
    ],
)
def test_the_function_explorer_refuses(
    board: Any, arguments: tuple[Any, ...], options: dict[str, float], words: str
) -> None:
    pynq_torch.load("pointwise")
    with pytest.raises(ValueError, match=re.escape(words)):
        widgets.function_explorer(*arguments, live=False, **options)
