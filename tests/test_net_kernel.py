"""Kernel ``net`` and its driver: against the reference, and with programs that are wrong."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import torch
from net_cases import OPCODES, Case, sized
from torch import nn

import pynq_torch
from pynq_torch.compiler import reference
from pynq_torch.errors import KernelFault
from pynq_torch.kernels.net import Limits, Loaded, Net, ProgramError
from pynq_torch.kernels.net.check import verdict
from pynq_torch.kernels.net.format import (
    ADD,
    CONV,
    FLOAT,
    HEADER,
    MAX,
    MEAN,
    NAMES,
    SUM,
    WORDS,
    decode,
)
from pynq_torch.lessons.networks import NETWORKS, SHAPES


@pytest.fixture(scope="module", params=["csim", pytest.param("rtl", marks=pytest.mark.slow)])
def board(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def kernel(board: str) -> Net:
    pynq_torch.use_board(board)
    return pynq_torch.load("net").net


def loaded(kernel: Net, case: Case) -> Loaded:
    made = kernel(case.program, case.weights, case.table, case.size)
    made.arena[:] = case.arena
    return made


def same(kernel: Net, case: Case) -> Loaded:
    """Run an instruction; the bytes are those of the reference."""
    made = loaded(kernel, case)
    expected = case.arena.copy()
    reference.run(made.instructions, case.weights, case.table, expected)
    made.run()
    # The whole arena: what lies around the result has stayed as it was.
    assert np.array_equal(made.arena, expected), case.item
    return made


@pytest.mark.parametrize("name", OPCODES)
def test_an_instruction_gives_the_bytes_of_the_reference(
    kernel: Net, board: str, name: str
) -> None:
    for seed in range(40):
        made = same(kernel, Case(seed, OPCODES[name]))
        assert (made.cycles is None) == (board == "csim")  # there none are counted


#: What the random ones are too small for, or do not meet: the limits of what is on chip.
LARGE = {
    "some channels at a time, rows": (CONV, sized(300, (7, 7), 20, (3, 3), pad=1)),
    "some channels at a time, columns": (CONV, sized(40, (5, 60), 3, (3, 3), pad=1)),
    "the table in two parts, twice": (CONV, sized(2, (6, 6), 1100)),
    "more weights than fit, of one block": (CONV, sized(5000, (1, 2), 20)),
    "more weights than fit, twice": (CONV, sized(256, (6, 6), 256)),
    "a few more weights than stay": (CONV, sized(273, (6, 6), 240)),
    "as many weights as stay, twice": (CONV, sized(349, (6, 6), 176)),
    "as many weights as stay, of one channel": (CONV, sized(3, (1, 1020), 1, (1, 1020))),
    "two groups of weights": (CONV, sized(500, (6, 6), 512, groups=2)),
    "a row of the window at a time": (CONV, sized(2, (4, 3100), 2, (3, 3), pad=1, step_x=1500)),
    "a high image": (MAX, sized(1, (300, 1), 1)),
    "a mean of 16 channels at a time": (MEAN, sized(40, (9, 7), 40, (9, 7), groups=40)),
    "a mean of a channel at a time": (MEAN, sized(20, (30, 30), 20, (30, 30), groups=20)),
    "a maximum of a row at a time": (MAX, sized(3, (80, 80), 3, (80, 80), groups=3)),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_does_not_fit_on_chip(kernel: Net, name: str) -> None:
    opcode, sizes = LARGE[name]
    for seed, flags in enumerate((None, None, SUM if opcode == CONV else 0)):
        same(kernel, Case(seed, opcode, flags, **sizes))


#: Shapes that make lines of all lengths, more or fewer tiles, and lines of b for which one waits.
SUMS = (
    *(sized(16, (n, n), 16, (3, 3), pad=1) for n in (1, 5, 8, 16, 32)),
    *(sized(3, (7, n), 17) for n in (1, 7, 23, 24, 25, 33)),
    *(sized(n, (9, 11), n, (3, 3), pad=1, groups=n) for n in (3, 16, 40)),
    *(sized(64, (8, 8), 64, (3, 3), stride=n, pad=1) for n in (1, 2)),
    *(sized(36, (4, 6), 60, groups=n) for n in (1, 3, 12)),
    sized(700, (1, 1), 40),
)


def test_a_convolution_that_ends_in_an_addition(kernel: Net) -> None:
    for seed, sizes in enumerate(SUMS):
        same(kernel, Case(seed, CONV, SUM, **sizes))


#: Depthwise, with tiles that need half of the array's columns: two channels share it, if their
#: number is even and a window has up to 15 cells.
HALVES = [
    *(sized(n, (3, 3), n, (3, 3), pad=1, groups=n) for n in (1, 2, 5, 16, 17, 40)),
    *(sized(36, (n, n), 36, (3, 3), pad=1, groups=36) for n in (2, 4, 5, 6, 7, 11)),
    *(sized(18, (4, 5), 18, window, pad=1, groups=18) for window in ((3, 5), (4, 4), (2, 2))),
    sized(20, (40, 6), 20, (2, 3), stride=2, groups=20),
    sized(6, (3, 200), 6, (3, 3), pad=1, groups=6),
]


@pytest.mark.parametrize("name", ["conv", "max", "mean"])
def test_two_channels_at_a_time(kernel: Net, name: str) -> None:
    for seed, sizes in enumerate(HALVES):
        for flags in (0, FLOAT, SUM) if name == "conv" else (0,):
            same(kernel, Case(seed, OPCODES[name], flags, **sizes))


ON_RTL = pytest.mark.parametrize(
    "board", [pytest.param("rtl", marks=pytest.mark.slow)], indirect=True
)


@ON_RTL
@pytest.mark.parametrize("name", ["resnet8", "mobilenet_v1"])
def test_every_layer_of_a_network(kernel: Net, name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, *SHAPES[name])
    compiled = pynq_torch.compile(NETWORKS[name]().eval(), x, calibrate=[x])
    assert {row[-1] for row in compiled.layers(x).rows} == {"0"}


@pytest.mark.slow
def test_what_is_read_early_is_there() -> None:
    """Of an image with few rows or channels, the first band waits until all are written.

    With buses that make the kernel wait: a quick memory hides what was read too early.
    """
    pynq_torch.use_board("rtl", stalls=0.5, seed=1)
    pynq_torch.load("net")
    torch.manual_seed(0)
    pairs = [
        (nn.Conv2d(16, n, k, padding=k // 2), nn.Conv2d(n, 16, k, stride, k // 2), (height, width))
        for n, k, stride, height, width in itertools.product(
            (16, 32), (1, 3), (1, 2), (1, 4, 13), (16, 32)
        )
    ]
    pairs += [
        (nn.Conv2d(n, n, 3, 1, 1, groups=n), nn.Conv2d(n, 20, 1), (side, side))
        for n, side in itertools.product((65, 128, 240), (1, 3, 5))
    ]
    for first, second, size in pairs:
        x = torch.randn(1, first.in_channels, *size)
        compiled = pynq_torch.compile(nn.Sequential(first, second).eval(), x, calibrate=[x])
        assert {row[-1] for row in compiled.layers(x).rows} == {"0"}, (first, second, size)


@ON_RTL
def test_memory_that_is_not_there(kernel: Net) -> None:
    made = loaded(kernel, Case(5, CONV))
    program, weights, tables, _, *rest = made._values
    nowhere = (program, weights, tables, 0x3000_0000, *rest)
    with pytest.raises(KernelFault, match=r"net_0 read from memory outside.*DECERR"):
        kernel.start_raw(nowhere).wait()
    same(kernel, Case(5, CONV))  # and it works again


@pytest.mark.slow
def test_memory_that_answers_an_error() -> None:
    """As on silicon the run goes on: it ends soon, and what comes after is right.

    The second instruction's weights are read while the first one is running.
    """
    pynq_torch.use_board("rtl", guard="silicon")
    kernel, first, second = pynq_torch.load("net").net, Case(5, MAX), Case(5, CONV)
    program = np.concatenate([first.program[:1], second.program])
    size = max(first.size, second.size)
    made = kernel(program, second.weights, second.table, size)
    good = made._values
    made.arena[:] = np.random.default_rng(0).integers(-128, 128, size, dtype=np.int8)
    before = made.arena.copy()
    expected = before.copy()
    reference.run(made.instructions, second.weights, second.table, expected)
    found = {}
    for place, name in enumerate(("program", "weights", "tables", "arena", "outcome")):
        made._values = (*good[:place], 0x2000_0000, *good[place + 1 :])
        with pytest.raises(KernelFault, match="memory answered DECERR on m_axi_gmem") as caught:
            made.run()
        found[name] = str(caught.value).split(", or the next one")[0]
        made._values = good
        made.arena[:] = before
        made.run()
        assert np.array_equal(made.arena, expected)
    assert found.pop("outcome").startswith("net_0 ended")  # there is no report
    assert found == {
        "program": "Instruction 0", "weights": "Instruction 0",
        "tables": "Instruction 1", "arena": "Instruction 0",
    }  # fmt: skip


def test_an_addition_beyond_float32(kernel: Net) -> None:
    """Infinite on one side, on both, and of both signs: the bound, the lower one for no number."""
    for factors in ((3e38, 3e38), (3e38, -3e38), (3e38, 1.0)):
        case = Case(3, ADD)
        case.table = np.array(factors, np.float32).view(np.int32)
        same(kernel, case)


def test_a_wrong_program_is_refused_alike_by_driver_and_kernel(kernel: Net) -> None:
    rng, found = random.Random(1), set()
    for case in (Case(5, CONV, 0), Case(5, CONV, SUM)):
        _refused_alike(kernel, case, rng, found)
    assert found >= {0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13}


def _refused_alike(kernel: Net, case: Case, rng: random.Random, found: set[int]) -> None:
    made = loaded(kernel, case)
    limits = Limits(case.weights.nbytes, case.table.size, case.size)
    words, report = made._constants[0], made._report
    for _ in range(500):
        program = case.program.copy()
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(WORDS), rng.choice([0, 1, 2, 255, 65535, 65536, 2**31, 2**32 - 1])
            program[rng.choice([0, 0, 1]), at[0]] = at[1]
        if rng.random() < 0.4:  # near what it was, where the checks are exact
            name = rng.randrange(WORDS)
            program[0, name] = (int(case.program[0, name]) + rng.choice([-1, 1, 4])) % 2**32
        index, reason = verdict(decode(program), limits)
        words[:] = program
        words.flush()
        made.arena[:] = case.arena
        kernel.start_raw(made._values, flush=(made._memory,), results=(report,)).wait()
        assert (int(report[0]), int(report[1])) == (reason, index), decode(program)
        found.add(reason)
        if index == 0:
            assert np.array_equal(made.arena, case.arena)  # not begun
        else:
            expected = case.arena.copy()
            reference.run(decode(program)[:1], case.weights, case.table, expected)
            assert np.array_equal(made.arena, expected)
        if reason:
            with pytest.raises(ProgramError, match=f"instruction {index} "):
                kernel(program, case.weights, case.table, case.size)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"step_x": 5000, "k_columns": 2, "pad_x": 0}, 6),
        ({"y": "x"}, 11),
        ({"k_rows": 60000, "pad_y": 0}, 12),
    ],
)
def test_other_reasons(kernel: Net, change: dict[str, object], reason: int) -> None:
    case = Case(5, CONV)
    for name, value in change.items():
        case.program[0, NAMES.index(name)] = (
            getattr(case.item, value) if isinstance(value, str) else value
        )
    with pytest.raises(ProgramError) as raised:
        loaded(kernel, case)
    assert (raised.value.index, raised.value.reason) == (0, reason)


def test_a_program_without_an_end_is_refused(kernel: Net) -> None:
    case = Case(5, CONV)
    case.program[1] = case.program[0]
    with pytest.raises(
        ProgramError, match="instruction 2 .none. cannot run: the program has no end"
    ):
        loaded(kernel, case)


def test_an_error_of_the_kernel_names_the_instruction(kernel: Net) -> None:
    made = loaded(kernel, Case(7, CONV))
    made._constants[0][1, 0] = 77  # the end, changed behind the driver's back
    made._constants[0].flush()
    with pytest.raises(ProgramError, match="net_0: instruction 1 .*the version is not 1"):
        made.run()
    assert made._report.size == HEADER + 2


def test_a_multiplier_that_is_no_number_is_refused(kernel: Net) -> None:
    for at, flags in ((1, 0), (1, SUM), (-4, SUM), (-3, SUM)):
        case = Case(5, CONV, flags)
        case.table[at] = np.array(np.nan, np.float32).view(np.int32)
        with pytest.raises(
            pynq_torch.errors.KernelError, match="instruction 0 .conv. has a multiplier"
        ):
            loaded(kernel, case)
    case = Case(5, CONV, SUM)
    case.table[-2] = 0x0003_0400  # from 4 to 3
    with pytest.raises(
        pynq_torch.errors.KernelError, match="the bounds 4 to 3 before its addition"
    ):
        loaded(kernel, case)
