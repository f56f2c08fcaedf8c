"""Products of any size on kernels of fixed shape: exact, tile by tile, on several units at once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pynq_torch
from pynq_torch import buffers, events
from pynq_torch.errors import (
    ArgumentError,
    BufferFreed,
    KernelBusy,
    KernelFault,
    KernelTimeout,
    StaleOverlay,
)
from pynq_torch.kernels import GenericKernel, MatrixMult, multiply_tiled, tiles

pytestmark = pytest.mark.timeout(240)

#: The registers of the kernels, around something else.
SOURCE = """
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <unistd.h>
static void burn(double ms) {{  // of processor time: a kernel that sleeps could be waited for
    for (clock_t end = clock() + clock_t(ms * CLOCKS_PER_SEC / 1000); clock() < end;) {{}}
}}
static int runs = 0;
void {name}(const int *in1, const int *in2, int *out) {{
#pragma HLS INTERFACE m_axi port=in1 bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=in2 bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=out bundle=gmem offset=slave
#pragma HLS INTERFACE s_axilite port=in1 bundle=control
#pragma HLS INTERFACE s_axilite port=in2 bundle=control
#pragma HLS INTERFACE s_axilite port=out bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    ++runs;
    {body}
    for (int i = 0; i < 256; ++i) {{
        int sums[256] = {{}};
        for (int k = 0; k < 256; ++k)
            for (int j = 0; j < 256; ++j)
                sums[j] += (signed char)in1[i * 256 + k] * (signed char)in2[k * 256 + j];
        for (int j = 0; j < 256; ++j) out[i * 256 + j] = sums[j];
    }}
}}
"""
UNITS = ("matrix_mult_0", "matrix_mult_fabric_0")


class Dual:
    """The overlay with both units on a board."""

    def __init__(self, **options: Any) -> None:
        self.board = pynq_torch.use_board("csim", **options)
        self.overlay = pynq_torch.load("matrix_mult_dual")
        self.units = [self.overlay.kernels[cu] for cu in UNITS]
        self.fast, self.fabric = self.units

    def runs(self) -> list[int]:
        return [self.board.cus[cu].engine.completed for cu in UNITS]


@pytest.fixture(scope="module")
def dual() -> Iterator[Dual]:
    dual = Dual()
    yield dual
    dual.board.close()


@pytest.fixture
def dual_with(tmp_path: Path) -> Iterator[Callable[..., Dual]]:
    """Return a maker of the overlay with other C++ behind its registers."""
    made: list[Dual] = []

    def make(fast: str, fabric: str = "") -> Dual:
        for name, body in (("matrix_mult", fast), ("matrix_mult_fabric", fabric)):
            (tmp_path / name).mkdir()
            (tmp_path / name / f"{name}.cpp").write_text(SOURCE.format(name=name, body=body))
        made.append(Dual(kernels=[tmp_path]))
        return made[-1]

    yield make
    for one in made:
        one.board.close()


@pytest.fixture
def fresh(dual: Dual) -> Dual:
    """Return the plain overlay, loaded again where another test has loaded one since."""
    if not dual.overlay.is_loaded() or pynq_torch.current_board() is not dual.board:
        dual.board.close()
        dual.__init__()  # type: ignore[misc]
    return dual


def _int8(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.int() @ b.int()


# ---- exactness -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (1, 1, 1), (256, 256, 256), (255, 255, 255), (257, 257, 257), (1, 700, 3), (600, 1, 2),
        (3, 5, 513), (512, 300, 256), (300, 512, 40),
    ],
)  # fmt: skip
def test_any_size_is_exact(fresh: Dual, m: int, k: int, n: int) -> None:
    a, b = _int8(m, k), _int8(k, n)
    for call in (fresh.overlay.matrix_mult, fresh.overlay.matrix_mult_fabric):
        assert isinstance(call, MatrixMult)
        result = call(a, b)
        assert result.dtype == torch.int32
        assert buffers.is_cma(result)
        assert torch.equal(result, _product(a, b))
    assert torch.equal(multiply_tiled(fresh.units, a, b), _product(a, b))


@given(
    sizes=st.tuples(*[st.integers(0, 530)] * 3),
    seed=st.integers(0, 99),
    count=st.integers(1, 2),
)
@settings(max_examples=25)
def test_random_sizes(dual: Dual, sizes: tuple[int, int, int], seed: int, count: int) -> None:
    torch.manual_seed(seed)
    m, k, n = sizes
    a, b = _int8(m, k), _int8(k, n)
    assert torch.equal(multiply_tiled(dual.units[:count], a, b), _product(a, b))


def test_extreme_values(fresh: Dual) -> None:
    low = torch.full((300, 600), -128, dtype=torch.int8)
    high = torch.full((600, 270), 127, dtype=torch.int8)
    for a, b in ((low, low.T), (low, high), (high.T, high)):
        assert torch.equal(multiply_tiled(fresh.units, a, b), _product(a, b))


def test_sums_beyond_int32_wrap_as_in_torch(fresh: Dual) -> None:
    k = 2**17 + 3  # 131,072 products of 2**14 are 2**31
    a = torch.full((1, k), -128, dtype=torch.int8)
    result = multiply_tiled(fresh.units, a, a.T, timeout_s=60)
    assert result.item() == -(2**31) + 3 * 2**14
    assert torch.equal(result, _product(a, a.T))


def test_any_layout(fresh: Dual) -> None:
    unit = fresh.overlay.matrix_mult
    whole = _int8(700, 700)
    cma = buffers.as_tensor(buffers.to_buffer(_int8(300, 400)))
    pairs = [
        (whole.T[:300], whole.T[:, 5:280]),
        (whole[::2, ::3], whole[:234, ::50]),
        (whole[100:400, 37:337], cma),
        (cma.T, cma[:, 3:270]),
        (whole[:1].expand(260, 700), whole[:, :1].expand(700, 258)),
        (whole.view(-1)[7:907].view(3, 300), cma[:, :1]),
    ]
    for a, b in pairs:
        assert torch.equal(unit(a, b), _product(a, b))


def test_out_is_filled_in_place_and_nothing_beside_it(fresh: Dual) -> None:
    a, b = _int8(270, 300), _int8(300, 260)
    wide = torch.full((280, 300), -7, dtype=torch.int32)
    cma = buffers.empty_tensor((270, 260), torch.int32)
    for target in (wide[5:275, 20:280], cma, torch.empty(260, 270, dtype=torch.int32).T):
        assert fresh.overlay.matrix_mult(a, b, out=target) is target
        assert torch.equal(target, _product(a, b))
    wide[5:275, 20:280] = -7
    assert bool((wide == -7).all())


def test_out_may_share_memory_with_an_input(fresh: Dual) -> None:
    memory = buffers.empty_tensor((256, 256), torch.int32)
    memory.random_()
    a = memory.view(torch.int8)[:, :256]
    expected = _product(a, a)
    assert torch.equal(fresh.overlay.matrix_mult(a, a, out=memory), expected)


def test_empty_products_are_not_started(fresh: Dual) -> None:
    before = fresh.runs()
    assert multiply_tiled(fresh.units, _int8(0, 3), _int8(3, 4)).shape == (0, 4)
    assert multiply_tiled(fresh.units, _int8(2, 0), _int8(0, 4)).tolist() == [[0] * 4] * 2
    out = torch.ones(2, 4, dtype=torch.int32)
    assert multiply_tiled(fresh.units, _int8(2, 0), _int8(0, 4), out) is out
    assert not out.any()
    assert fresh.runs() == before


def test_a_cache_that_is_not_coherent() -> None:
    dual = Dual(strict_cache=True)
    for _ in range(2):  # the second time, buffers come back from the pool with other contents
        a, b = _int8(300, 600), _int8(600, 260)
        assert torch.equal(multiply_tiled(dual.units, a, b), _product(a, b))
    dual.board.close()


# ---- what it costs -------------------------------------------------------------------------------


@pytest.mark.parametrize("resident", [2, 5, 32])
def test_each_tile_is_copied_once(
    fresh: Dual, monkeypatch: pytest.MonkeyPatch, resident: int
) -> None:
    monkeypatch.setattr(tiles, "RESIDENT_TILES", resident)
    a, b = _int8(600, 800), _int8(800, 300)
    before = buffers.statistics()
    result = multiply_tiled(fresh.units, a, b)
    after = buffers.statistics()
    assert torch.equal(result, _product(a, b))
    taken = after.hits + after.misses - before.hits - before.misses
    # 3x4 tiles of a, 4x2 of b, two outputs a unit, the result.
    assert taken == 3 * 4 + 4 * 2 + 2 * 2 + 1


@given(rows=st.integers(1, 9), columns=st.integers(1, 9), depth=st.integers(1, 80))
def test_the_schedule_needs_few_tiles_at_a_time(rows: int, columns: int, depth: int) -> None:
    plan = list(tiles.schedule(rows, columns, depth))
    assert sorted(plan) == [
        (i, j, k) for i in range(rows) for j in range(columns) for k in range(depth)
    ]
    last = {}
    for at, (i, j, k) in enumerate(plan):
        last["a", i, k] = last["b", k, j] = at
    live: set[tuple[str, int, int]] = set()
    for at, (i, j, k) in enumerate(plan):
        live |= {("a", i, k), ("b", k, j)}
        assert len(live) <= tiles.RESIDENT_TILES + 1
        live = {tile for tile in live if last[tile] > at}


def test_tiles_are_dropped_after_their_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "RESIDENT_TILES", 6)
    dual = Dual(cma_bytes=5 << 20)  # room for 19 tiles
    a, b = _int8(512, 3000), _int8(3000, 512)  # 24 tiles each
    out = torch.empty(512, 512, dtype=torch.int32)
    assert torch.equal(multiply_tiled(dual.units, a, b, out), _product(a, b))
    dual.board.close()


def test_two_hundred_products_leave_nothing(fresh: Dual) -> None:
    a, b = _int8(20, 300), _int8(300, 30)
    multiply_tiled(fresh.units, a, b)
    buffers.trim()
    used, held = fresh.board.memory.used_bytes, buffers.statistics()
    for _ in range(200):
        multiply_tiled(fresh.units, a, b)
    buffers.trim()
    assert fresh.board.memory.used_bytes == used
    assert buffers.statistics().used_buffers == held.used_buffers


def test_the_bench_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    import bench_matrix_mult

    starts = []
    write = bench_matrix_mult.NullKernel.write
    monkeypatch.setattr(
        bench_matrix_mult.NullKernel,
        "write",
        lambda self, at, value, slave="": (
            starts.append(value) if at == 0 and value & 1 else None,
            write(self, at, value, slave),
        )[1],
    )
    clock = iter([0.0, 9.0] * 3 + [10.0, 10.001, 20.0, 20.005, 30.0, 30.002])
    monkeypatch.setattr(bench_matrix_mult, "time", SimpleNamespace(perf_counter=clock.__next__))
    assert bench_matrix_mult.host_ms(size=300, repeat=3) == pytest.approx(2.0)
    assert len(starts) == 6 * 2**3  # 300 = 256 + 44 in each of three dimensions


# ---- several units -------------------------------------------------------------------------------


def test_two_units_work_at_the_same_time(dual_with: Callable[..., Dual], tmp_path: Path) -> None:
    # Each unit's first run waits for the other's: one after the other, they would never meet.
    def meet(own: str, other: str) -> str:
        mine, theirs = tmp_path / own, tmp_path / other
        return f"""
    if (runs == 1) {{
        fclose(fopen("{mine}", "w"));
        time_t limit = time(nullptr) + 20;
        while (access("{theirs}", F_OK) != 0 && time(nullptr) < limit) {{}}
        if (access("{theirs}", F_OK) != 0) abort();
    }}"""

    dual = dual_with(meet("fast", "fabric"), meet("fabric", "fast"))
    a, b = _int8(512, 1024), _int8(1024, 512)
    assert torch.equal(multiply_tiled(dual.units, a, b), _product(a, b))
    assert sum(dual.runs()) == 16


def test_the_faster_unit_takes_more(dual_with: Callable[..., Dual], tmp_path: Path) -> None:
    # One unit's first and second run last until the other has begun its fifth and tenth, however
    # busy the PC is.
    path = f'char path[200]; snprintf(path, sizeof path, "{tmp_path}/%d", RUN);'
    tell = path.replace("RUN", "(int)runs") + ' fclose(fopen(path, "w"));'
    wait = f"""
    if (runs <= 2) {{
        {path.replace("RUN", "5 * (int)runs")}
        time_t limit = time(nullptr) + 20;
        while (access(path, F_OK) != 0 && time(nullptr) < limit) {{}}
        if (access(path, F_OK) != 0) abort();
    }}"""
    dual = dual_with(tell, wait)
    a, b = _int8(512, 1024), _int8(1024, 512)
    assert torch.equal(multiply_tiled(dual.units, a, b), _product(a, b))
    fast, slow = dual.runs()
    assert fast + slow == 16
    assert fast >= 10
    assert slow >= 1


@pytest.mark.parametrize(
    ("pick", "said"),
    [
        (lambda units: [], "at least one"),
        (lambda units: [units[0], units[1], units[0]], "each compute unit once"),
    ],
)
def test_units_are_checked(fresh: Dual, pick: Callable[[Any], Sequence[Any]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        multiply_tiled(pick(fresh.units), _int8(2, 2), _int8(2, 2))


def test_every_tile_product_is_told_to_who_watches(fresh: Dual) -> None:
    calls: list[Any] = []
    events.runs.subscribe(calls.append)
    try:
        multiply_tiled(fresh.units, _int8(300, 300), _int8(300, 20))
    finally:
        events.runs.unsubscribe(calls.append)
    assert len(calls) == 2 * 4  # begun and ended
    first = calls[0]
    assert first.cu in UNITS
    assert str(first.arguments["in1"]).startswith("int32[256x256] at 0x")
    assert first.registers["in1_1"] == first.arguments["in1"].address
    assert set(first.registers) == {"in1_1", "in1_2", "in2_1", "in2_2", "out_r_1", "out_r_2"}
    assert all(call.seconds is not None and not call.error for call in calls)


# ---- what goes wrong -----------------------------------------------------------------------------


class Unchanged:
    """An `out` that must not change, and units that must work afterwards."""

    def __init__(self) -> None:
        self.a, self.b = _int8(512, 800), _int8(800, 300)
        self.out = torch.full((512, 300), 77, dtype=torch.int32)

    def check(self, units: Sequence[MatrixMult]) -> None:
        assert bool((self.out == 77).all())
        small = self.a[:9, :9]
        for unit in units:
            assert torch.equal(unit(small, small), _product(small, small))


def test_a_crash_in_the_middle(dual_with: Callable[..., Dual]) -> None:
    dual = dual_with("if (runs == 5) *(volatile int *)nullptr = 1;", "burn(5);")
    case, errors = Unchanged(), set()

    def watch(call: Any) -> None:
        errors.add(call.error)

    events.runs.subscribe(watch)
    try:
        with pytest.raises(KernelFault, match="matrix_mult_0 crashed"):
            multiply_tiled(dual.units, case.a, case.b, case.out)
    finally:
        events.runs.unsubscribe(watch)
    assert errors == {"", "KernelFault"}
    case.check(dual.units)


def test_a_traceback_keeps_no_operands_in_cma(dual_with: Callable[..., Dual]) -> None:
    dual = dual_with("if (runs == 5) *(volatile int *)nullptr = 1;")
    case = Unchanged()
    with pytest.raises(KernelFault) as caught:  # a notebook keeps the last one as well
        dual.fast(case.a, case.b, case.out)
    assert caught.tb is not None
    assert buffers.statistics().used_bytes <= 4 * 256 * 256 * 4  # what its frames were at


def test_an_output_beyond_the_tile_is_caught(dual_with: Callable[..., Dual]) -> None:
    dual = dual_with("if (runs == 3) out[256 * 256] = 1;")
    case = Unchanged()
    with pytest.raises(KernelFault, match="matrix_mult_0"):
        multiply_tiled(dual.units, case.a, case.b, case.out)
    case.check(dual.units)


def test_a_hang_in_the_middle(dual_with: Callable[..., Dual]) -> None:
    dual = dual_with("if (runs == 3) for (;;) burn(10);")
    case = Unchanged()
    begin = time.monotonic()
    with pytest.raises(KernelTimeout, match=r"matrix_mult_0 has not finished within 0.5 s"):
        multiply_tiled(dual.units, case.a, case.b, case.out, timeout_s=0.5)
    assert time.monotonic() - begin < 30
    case.check([dual.fabric])
    with pytest.raises(KernelBusy, match="matrix_mult_0 is running for an earlier run"):
        dual.fast(case.a, case.b, case.out)
    dual.board.cus["matrix_mult_0"].reset()  # what loading the overlay again does on a board
    case.check(dual.units)


def test_an_interrupt_in_the_middle(dual_with: Callable[..., Dual]) -> None:
    dual = dual_with("burn(60);", "burn(60);")
    case = Unchanged()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            multiply_tiled(dual.units, case.a, case.b, case.out)
        assert all(unit.is_idle() for unit in dual.units)  # their runs have been waited for
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    case.check(dual.units)


def test_a_unit_that_somebody_else_uses(fresh: Dual) -> None:
    case = Unchanged()
    taken, done = threading.Event(), threading.Event()

    def other() -> None:
        fresh.fabric.claim()
        taken.set()
        done.wait(60)
        fresh.fabric.release()

    thread = threading.Thread(target=other, name="other")
    thread.start()
    try:
        assert taken.wait(60)
        with pytest.raises(KernelBusy, match=r"matrix_mult_fabric_0 .* 'other'"):
            multiply_tiled(fresh.units, case.a, case.b, case.out)
        case.check([fresh.fast])
    finally:
        done.set()
        thread.join()
    case.check(fresh.units)


def test_a_run_of_ones_own_that_is_not_over(dual_with: Callable[..., Dual]) -> None:
    dual = dual_with("burn(300);")
    case = Unchanged()
    in1, in2, out = (buffers.empty((256, 256), "int32") for _ in range(3))
    run = dual.fast.start(in1, in2, out)
    with pytest.raises(KernelBusy, match="matrix_mult_0"):
        dual.fast(case.a, case.b, case.out)
    run.wait(timeout_s=20)
    case.check(dual.units)


def test_threads_with_a_unit_each(fresh: Dual) -> None:
    found: dict[str, bool] = {}

    def work(unit: MatrixMult, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        a = torch.randint(-128, 128, (260, 300), dtype=torch.int8, generator=generator)
        found[unit.cu] = all(torch.equal(unit(a, a.T), _product(a, a.T)) for _ in range(5))

    threads = [
        threading.Thread(target=work, args=(unit, seed)) for seed, unit in enumerate(fresh.units)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == dict.fromkeys(UNITS, True)


def test_no_room_in_cma() -> None:
    dual = Dual(cma_bytes=2 << 20)
    case = Unchanged()
    with pytest.raises(pynq_torch.errors.CmaExhausted, match=r"int32\[256x256\]"):
        multiply_tiled(dual.units, case.a, case.b, case.out)
    buffers.trim()
    case.check(dual.units)
    dual.board.close()


def test_an_overlay_that_is_gone(fresh: Dual) -> None:
    case = Unchanged()
    pynq_torch.load("vadd")
    with pytest.raises(StaleOverlay, match="matrix_mult_0"):
        fresh.fast(case.a, case.b, case.out)
    case.check([])


@pytest.mark.parametrize(
    ("a", "b", "out", "said"),
    [
        (_int8(2, 3), _int8(4, 5), None, "a is 2x3 and b is 4x5; expected b to have 3 rows"),
        (_int8(2, 3).float(), _int8(3, 5), None, "expected torch.int8; quantise it first"),
        (_int8(2, 3), _int8(3, 5).int(), None, "b has dtype torch.int32; expected torch.int8"),
        (_int8(3), _int8(3, 5), None, "expected 2 dimensions"),
        (_int8(2, 3).numpy(), _int8(3, 5), None, "a is ndarray"),
        (_int8(2, 3).to("meta"), _int8(3, 5), None, "on device 'meta'; expected 'cpu'"),
        (_int8(2, 3).to_sparse(), _int8(3, 5), None, "a has layout torch.sparse_coo"),
        (_int8(2, 3), _int8(3, 5), torch.zeros(2, 5), "out has dtype torch.float32"),
        (_int8(2, 3), _int8(3, 5), torch.zeros(5, 2).int(), r"out has shape \(5, 2\)"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(
    fresh: Dual, a: Any, b: Any, out: Any, said: str
) -> None:
    before = fresh.runs()
    with pytest.raises(ArgumentError, match=said):
        fresh.overlay.matrix_mult(a, b, out)
    assert fresh.runs() == before


def test_freed_memory_is_refused(fresh: Dual) -> None:
    buffer = buffers.to_buffer(_int8(3, 3))
    gone = buffers.as_tensor(buffer)
    buffer.freebuffer()
    with pytest.raises(BufferFreed):
        fresh.overlay.matrix_mult(gone, _int8(3, 3))
    with pytest.raises(ValueError, match="timeout_s"):
        fresh.overlay.matrix_mult(_int8(3, 3), _int8(3, 3), timeout_s=0)


# ---- which driver --------------------------------------------------------------------------------


def test_somebody_elses_kernel_of_that_name_is_driven_by_register(tmp_path: Path) -> None:
    from helpers import write_overlay

    folder = tmp_path / "kernels" / "matrix_mult"
    folder.mkdir(parents=True)
    (folder / "matrix_mult.cpp").write_text(
        "void matrix_mult(const int *x, int *y, int n) {\n"
        "#pragma HLS INTERFACE m_axi port=x bundle=gmem offset=slave\n"
        "#pragma HLS INTERFACE m_axi port=y bundle=gmem offset=slave\n"
        "#pragma HLS INTERFACE s_axilite port=x bundle=control\n"
        "#pragma HLS INTERFACE s_axilite port=y bundle=control\n"
        "#pragma HLS INTERFACE s_axilite port=n bundle=control\n"
        "#pragma HLS INTERFACE s_axilite port=return bundle=control\n"
        "#pragma HLS INTERFACE ap_ctrl_hs port=return\n"
        "    for (int i = 0; i < n; ++i) y[i] = x[i];\n}\n"
    )
    bit = write_overlay(tmp_path, {"matrix_mult_0": "matrix_mult"}, kernels=folder.parent)
    board = pynq_torch.use_board("csim", kernels=[folder.parent])
    unit = pynq_torch.load(bit).matrix_mult
    assert type(unit) is GenericKernel
    board.close()
