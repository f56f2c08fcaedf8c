"""Jobs: settings in memory instead of registers, each run with its own, seen by the kernel."""

from __future__ import annotations

import gc
import re
import shutil
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from device_helpers import int8, of, watched
from helpers import write_overlay
from torch.nn import functional

import pynq_torch
from pynq_torch import paths
from pynq_torch.events import Array, runs
from pynq_torch.kernels.convolution_int8 import plan_int8
from pynq_torch.kernels.epilogue import INT32
from pynq_torch.kernels.job import KEPT, job_in_cma, job_of
from pynq_torch.kernels.launch import Runs
from pynq_torch.kernels.tables.convolution import JOB
from pynq_torch.kernels.windows import Window
from pynq_torch.overlay import current_overlay

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two units of one kernel, on a board that sees what was not flushed."""
    folder = tmp_path_factory.mktemp("two")
    shutil.copytree(paths.HW / "include", folder / "design_root" / "hw" / "include")
    bit = write_overlay(
        folder, {f"conv2d_i8_{i}": "conv2d_i8" for i in range(2)}, "", paths.KERNELS
    )
    board = pynq_torch.use_board("csim", strict_cache=True)
    yield pynq_torch.load(str(bit))
    board.close()


def test_the_words_have_the_kernels_order() -> None:
    header = (paths.HW / "include" / "conv2d_job.hpp").read_text()
    declared = (paths.HW / "include" / "conv2d.hpp").read_text()
    members = re.findall(r"^    (Size|Window|Steps|Tiling|int) ([\w, ]+);$", header, re.MULTILINE)
    sizes = {
        name: len(fields.split(","))
        for name, fields in re.findall(r"struct (\w+) \{ int ([\w, ]+); \};", declared)
    } | {"int": 1}
    assert sum(sizes[kind] * len(names.split(",")) for kind, names in members) == len(JOB)
    assert f"JOB_WORDS = {len(JOB)};" in header
    (named,) = re.findall(r"struct Size \{ int ([\w, ]+); \};", declared)
    assert tuple(named.split(", ")) == JOB[: sizes["Size"]]
    (named,) = re.findall(r"struct Window \{ int ([\w, ]+); \};", declared)
    assert tuple(named.split(", ")) == JOB[sizes["Size"] :][: sizes["Window"]]


def test_a_kernel_has_a_pointer_for_them(overlay: Any) -> None:
    assert [p.name for p in overlay.conv2d_i8_0.parameters] == [
        *("image", "weight", "bias", "scale", "result", "steps", "job")
    ]


def test_words_beyond_32_bits_are_refused_by_name(overlay: Any) -> None:
    with pytest.raises(OverflowError, match=r"b=4294967296, c=-1: expected words of 32 bits"):
        job_in_cma("abc", (1, 2**32, -1), overlay.device)


def test_a_job_says_what_it_holds_to_those_who_have_it(overlay: Any) -> None:
    job = job_in_cma("ab", (1, 2**32 - 5), overlay.device)
    assert job_of("ab", job.tensor, ()) == {"a": 1, "b": 2**32 - 5}
    assert job_of("ab", job.address, [torch.ones(2), job.tensor]) == {"a": 1, "b": 2**32 - 5}
    assert job_of("ab", job.address, ()) == {}
    assert job_of("abc", job.address, [job.tensor]) == {}


def test_a_run_reports_its_job(overlay: Any) -> None:
    with runs.collected() as calls:
        overlay.conv2d_i8_0(int8(2, 3, 9, 8), int8(4, 3, 5, 2), padding=1)
    arguments = calls[0].arguments
    shown = {name: arguments[name] for name in ("batch", "outs", "k_rows", "pad_y", "mode")}
    assert shown == {"batch": 2, "outs": 4, "k_rows": 5, "pad_y": 1, "mode": INT32}
    assert isinstance(arguments["job"], Array) and arguments["job"].shape == (len(JOB),)


def test_equal_settings_share_a_job_that_nobody_changes(overlay: Any) -> None:
    one, same = (job_in_cma("ab", (1, 2), overlay.device) for _ in range(2))
    assert one is same and one.constant
    assert job_in_cma("ab", (1, 3), overlay.device).address != one.address
    with pytest.raises(ValueError, match="read-only"):
        one.tensor[0] = 5
    for value in range(100, 100 + KEPT):
        job_in_cma("ab", (1, value), overlay.device)
    gone = weakref.ref(one.tensor)
    del one, same
    gc.collect()
    assert gone() is None


def test_a_job_lives_until_its_run_has_ended(overlay: Any) -> None:
    driver = overlay.conv2d_i8_0
    x, w = int8(1, 3, 40, 40), int8(8, 3, 3, 3)
    image, weight = driver.operand("x", x, torch.int8), driver.operand("w", w, torch.int8)
    result = driver.result((1, 8, 38, 38), torch.int32)
    (values,), job = plan_int8(image, weight, result, Window(), INT32)
    kept = weakref.ref(job.tensor)
    made = Runs((image, weight, job), (result,), 10.0)
    made.start(driver, values)
    del made, job
    overlay.device._pynq_torch_jobs.cache_clear()
    gc.collect()
    assert kept() is not None
    driver.wait()
    assert torch.equal(result.tensor, functional.conv2d(x.double(), w.double()).int())


def test_runs_side_by_side_have_jobs_of_their_own(overlay: Any) -> None:
    assert current_overlay() is overlay
    # Large enough for buffers of their own: small tensors share one, which is flushed as a whole.
    problems = [
        (int8(1, 8, 30 + n, 30), int8(80 + 8 * n, 8, 3, 3), {"padding": n % 3, "stride": 1 + n % 2})
        for n in range(4)
    ]

    def computed(index: int) -> bool:
        x, w, options = problems[index % len(problems)]
        expected = functional.conv2d(x.double(), w.double(), **options).long().to(torch.int8)
        return torch.equal(functional.conv2d(x.to("pynq"), w.to("pynq"), **options).cpu(), expected)

    with watched() as calls, ThreadPoolExecutor(4) as pool:
        assert all(pool.map(computed, range(40)))
    done = [run for call in of(calls, "convolution") for run in call.kernels]
    assert len(done) == 40 and {run.cu for run in done} == {"conv2d_i8_0", "conv2d_i8_1"}


@pytest.mark.parametrize("name", ["tile_rows", "tile_k_columns"])
def test_a_plan_that_does_not_fit_writes_nothing(overlay: Any, name: str) -> None:
    driver = overlay.conv2d_i8_0
    image = driver.operand("x", int8(1, 1, 8, 8), torch.int8)
    weight = driver.operand("w", int8(1, 1, 3, 3), torch.int8)
    result = driver.result((1, 1, 6, 6), torch.int32)
    result.tensor.fill_(77)
    (values,), job = plan_int8(image, weight, result, Window(), INT32)
    words = job.tensor.tolist()
    words[JOB.index(name)] = 1000
    large = job_in_cma(JOB, tuple(words), overlay.device)
    driver.run_into(result, [(*values[:-1], large.address)], (image, weight, large), 10.0)
    assert bool((result.tensor == 77).all())


def test_a_kernel_of_another_interface_is_not_the_drivers(overlay: Any) -> None:
    kind = type(overlay.conv2d_i8_0)
    assert kind.fits(overlay.conv2d_i8_0._registers)
    assert not kind.fits({"CTRL": {"address_offset": 0}})
