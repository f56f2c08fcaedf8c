"""From models in torch to programs: what runs where, bit by bit, in a file, by torch.compile."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from test_board_processes import stop
from test_without_torch import REFUSE
from torch import nn

import pynq_torch
from pynq_torch.board import current_board
from pynq_torch.compiler import Compiled, backend, reference
from pynq_torch.compiler.quantizer import quantise
from pynq_torch.errors import KernelBusy, KernelTimeout, PynqTorchError, VerificationError
from pynq_torch.kernels.net import ProgramError
from pynq_torch.lessons.datasets import digits, fit
from pynq_torch.lessons.networks import NETWORKS, SHAPES, mlp
from pynq_torch.net import NetFileError, Queue, load, read
from pynq_torch.net.listing import listing
from pynq_torch.overlay import current_overlay
from pynq_torch.waits.polling import ends


@pytest.fixture(autouse=True, scope="module")
def board() -> None:
    pynq_torch.use_board("csim")


def compiled_of(model: nn.Module, *shape: int) -> tuple[Compiled, torch.Tensor]:
    torch.manual_seed(0)
    x = torch.randn(2, *shape)
    with torch.no_grad():
        model.train()(x)  # statistics of batch norms
    return pynq_torch.compile(model.eval(), x, calibrate=[torch.randn(3, *shape), x]), x


def assert_near(compiled: Compiled, model: nn.Module, x: torch.Tensor) -> None:
    """Every bit as the reference has it, and about what the float model gives."""
    assert {row[-1] for row in compiled.layers(x).rows} == {"0"}
    with torch.no_grad():
        expected = model(x)
    error = (compiled(x) - expected).abs().max() / (expected.max() - expected.min())
    assert error < 0.1


class Odd(nn.Module):
    """Odd sizes, dilation, groups, pools of two kinds, a concatenation within another, a tensor
    that is in both, the same convolution twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, (3, 2), padding=(1, 0), bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.wide = nn.Conv2d(6, 18, 3, padding=2, dilation=2, groups=3)
        self.same = nn.Conv2d(24, 5, 4, padding="same")
        self.pool = nn.MaxPool2d(3, 2, padding=1, ceil_mode=True)
        self.mean = nn.AvgPool2d((2, 1), stride=(2, 1))
        self.thin = nn.Conv2d(35, 35, 1, stride=(2, 1))
        self.last = nn.Linear(35 * 2 * 6, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = nn.functional.relu6(self.norm(self.first(x)))
        c = torch.cat([a, torch.clamp(self.wide(a), -0.5, 0.7)], 1)
        d = nn.functional.hardtanh(self.same(c).relu() + self.same(-c.relu()))
        f = self.thin(self.mean(self.pool(torch.cat([c, d, a], 1))))
        return self.last(nn.functional.dropout(f, 0.5, self.training).flatten(1))


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths:UserWarning")
def test_an_odd_network_is_cut_where_the_kernel_ends():
    model = Odd()
    compiled, x = compiled_of(model, 3, 13, 11)
    where = {row[1]: row[2:4] for row in compiled.explain().rows}
    assert where["neg"] == ["CPU", "kernel net has no aten.neg"]
    assert where["cat"][0] == where["copy"][0] == where["max"][0] == "PL"
    assert len(compiled.pieces) == 2
    assert_near(compiled, model, x)
    assert torch.equal(compiled(x)[1:], compiled(x[1:]))  # any number of images


class Norms(nn.Module):
    """Batch norms that cannot go into the layer before: another reads it, or it is there twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.read, self.twice = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))
        self.norms = nn.ModuleList(nn.BatchNorm2d(3) for _ in range(4))
        self.last, self.vectors = nn.Linear(3, 5), nn.BatchNorm1d(5, affine=False)
        for norm in self.norms:
            nn.init.normal_(norm.weight, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(self.norms[0](x).relu())
        y = self.read(x)
        y = self.norms[1](y) + y
        z = self.norms[3](self.twice(self.norms[2](self.twice(y))))
        out = self.last(z.mean((2, 3)))
        return self.vectors(out) + out


def test_batch_norms_belong_to_no_other_layer():
    torch.manual_seed(0)
    model = Norms()
    compiled, x = compiled_of(model, 3, 7, 6)
    assert len(compiled.pieces) == 1 and not any(
        "norm" in row[1] for row in compiled.explain().rows
    )
    images = torch.cat([x, torch.randn(30, 3, 7, 6)])
    assert_near(compiled, model, images)
    rows = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Conv1d(3, 2, 1))
    nn.init.normal_(rows[1].weight, 2)  # by channel: not what the linear layer's weights go by
    compiled, x = compiled_of(rows, 3, 6)
    assert_near(compiled, rows, x)
    whole = nn.Sequential(model, nn.BatchNorm1d(5, track_running_stats=False)).eval()
    with torch.no_grad():  # torchao's patterns of batch norms cannot be made within torch.compile
        y = torch.compile(whole, backend="pynq", options={"calibrate": [images]})(images)
        assert (y - whole(images)).abs().mean() < 0.1


def test_a_program_ends_in_a_maximum_or_has_nothing_else():
    for model in (nn.MaxPool2d(2), nn.Sequential(nn.Conv2d(3, 2, 3), nn.MaxPool2d(2))):
        compiled, x = compiled_of(model, 3, 6, 6)
        assert "max" in {row[1] for row in compiled.explain().rows if row[2] == "PL"}
        assert_near(compiled, model, x)


class _Residual(nn.Module):
    """Convolutions whose results are added, in one of several ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.a, self.b = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.a(x)
        if self.way == "pooled":
            return torch.max_pool2d(a, 2) + torch.max_pool2d(x, 2)
        if self.way == "itself":
            return a + a
        if self.way == "read twice":
            return torch.cat([a + x, a], 1)
        if self.way == "the shortcut is last":
            return torch.relu(a + self.b(x))
        if self.way == "the shortcut is first":
            return self.b(a) + x
        if self.way == "a chain":
            return self.b(a + x) + (a.relu() + x)
        return x + torch.clamp(a, -0.3, 0.5)  # "second, clamped"


@pytest.mark.parametrize(
    ("way", "does"),
    [
        ("the shortcut is last", ["conv", "conv + add"]),
        ("the shortcut is first", ["conv", "conv + add"]),
        ("second, clamped", ["conv + add"]),
        ("a chain", ["conv", "scale", "add", "add", "conv + add"]),
        ("pooled", ["conv", "max", "max", "add"]),
        ("itself", ["conv"]),  # the CPU adds: nothing quantises a tensor plus itself
        ("read twice", ["conv", "add"]),
    ],
)
def test_an_addition_is_the_end_of_a_convolution(way: str, does: list[str]):
    model = _Residual(way)
    compiled, x = compiled_of(model, 4, 9, 7)
    found = [row[1] for row in compiled.explain().rows if row[2] == "PL" and row[1] != "cat"]
    assert sorted(found) == sorted(does), compiled.explain()
    assert [len(piece.layers) for piece in compiled.pieces] == [len(does)]
    assert ("conv + add" in does) is ("conv + add" in str(listing(compiled.pieces[0].network)))
    assert_near(compiled, model, x)


def test_random_networks_give_the_bytes_of_the_reference():
    for seed in range(4):
        rng = random.Random(seed)
        channels, layers = 3, []
        for _ in range(4):
            groups = rng.choice([1, channels])
            outs, taps, step = (
                groups * rng.choice([1, 2, 5]),
                rng.choice([1, 2, 3]),
                rng.choice([1, 2]),
            )
            pad = rng.randint(0, (taps - 1) * step)
            layers += [nn.Conv2d(channels, outs, taps, rng.choice([1, 2]), pad, step, groups)]
            layers += rng.choice([[], [nn.ReLU()], [nn.BatchNorm2d(outs), nn.ReLU6()]])
            channels = outs
        model = nn.Sequential(
            *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 4)
        )
        compiled, x = compiled_of(model, 3, 37, 41)
        assert len(compiled.pieces) == 1
        assert {row[-1] for row in compiled.layers(x).rows} == {"0"}


def test_a_layer_that_differs_is_named(monkeypatch: pytest.MonkeyPatch):
    compiled, x = compiled_of(mlp(), 1, 8, 8)
    run = reference.run

    def wrong(*given: object) -> list[torch.Tensor]:
        results = run(*given)
        results[1][3, 0, 0] += 1
        return results

    monkeypatch.setattr(reference, "run", wrong)
    with pytest.raises(VerificationError, match=r"layer 3 .instruction 1.*first at \[3, 0, 0\]"):
        compiled.layers(x)


class Beside(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x.sigmoid(), x], 1)


def test_a_concatenation_begins_on_the_cpu():
    model = nn.Sequential(Beside(), nn.Conv2d(6, 4, 3))
    compiled, x = compiled_of(model, 3, 6, 6)
    assert "cat" in {row[1] for row in compiled.explain().rows if row[2] == "PL"}
    assert_near(compiled, model, x)


def test_what_is_no_input_is_told():
    model = mlp().eval()
    x = torch.randn(2, 1, 8, 8)
    for batch, said in (
        (x[:, :, :7], r"batch 1 of calibrate is float32 \[N, 1, 7, 8\]; expected float32 .*8, 8\]"),
        (x.double(), "batch 1 of calibrate is float64"),
        (x * torch.nan, "batch 1 of calibrate has NaN"),
        (None, "batch 1 of calibrate is NoneType"),
    ):
        with pytest.raises(ValueError, match=said):
            pynq_torch.compile(model, x, calibrate=[x, batch])
    with pytest.raises(ValueError, match=r"float16; int8 is made of float32: \.float\(\)"):
        pynq_torch.compile(nn.Conv2d(1, 1, 3).half(), x.half(), calibrate=[x.half()])
    compiled = pynq_torch.compile(model, x, calibrate=[x])
    for given, said in (
        ((x.double(),), r"the inputs are float64 \[N, 1, 8, 8\]; expected float32 \[N, 1, 8, 8\]"),
        ((x[0],), r"float32 \[N, 8, 8\]"),
        ((x, x), "the inputs are float32 .*, float32 "),
        ((), "the inputs are none"),
        ((x * torch.nan,), "is NaN; int8 has none"),
    ):
        with pytest.raises(ValueError, match=said):
            compiled(*given)


class Counting(nn.Module):
    """It asks for the number of its images: on the PL, on the CPU, or for indices."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.conv, self.where = nn.Conv2d(3, 4, 3), where

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        if self.where == "PL":
            return y.view(x.size(0), -1).relu()
        if self.where == "CPU":
            return y.sigmoid().view(x.size(0) * 2, -1)
        return y + torch.arange(x.size(0)).view(-1, 1, 1, 1)


@pytest.mark.parametrize("where", ["PL", "CPU", "indices"])
def test_a_number_of_images_that_the_model_asks_for(where: str):
    torch.manual_seed(0)
    model = Counting(where)
    compiled, x = compiled_of(model, 3, 6, 6)
    assert_near(compiled, model, x)
    more = torch.cat([x, x[:1]])
    if where == "PL":
        assert_near(compiled, model, more)
    else:
        with pytest.raises(ValueError, match=r"compiled for 2; found 3\. Compile it with an exa"):
            compiled(more)
    torch.compiler.reset()
    with torch.no_grad():
        options = {"calibrate": [x]}
        quick = torch.compile(model, backend=backend.pynq, options=options, dynamic=True)
        for images in (x, more, x):
            assert (quick(images) - model(images)).abs().mean() < 0.03


def test_a_model_on_device_pynq_gives_results_there():
    model, x = mlp().eval(), torch.randn(2, 1, 8, 8)
    expected = pynq_torch.compile(model, x, calibrate=[x])(x)
    model, x = model.to("pynq"), x.to("pynq")
    with torch.no_grad():
        for compiled in (
            pynq_torch.compile(model, x, calibrate=[x]),
            torch.compile(model, backend=backend.pynq, options={"calibrate": [x]}),
        ):
            assert compiled(x).device.type == "pynq"
            assert torch.equal(compiled(x).cpu(), expected)


def test_a_float_model_stays_float_and_exact():
    model = mlp().eval()
    x = torch.randn(2, 1, 8, 8)
    compiled = pynq_torch.compile(model, x)
    assert torch.equal(compiled(x), model(x))
    assert not compiled.pieces
    assert any("pass calibrate=batches" in row[3] for row in compiled.explain().rows)
    with pytest.raises(PynqTorchError, match="found 0 programs, on the CPU"):
        compiled.save("never")
    with pytest.raises(ValueError, match="calibrate is empty"):
        pynq_torch.compile(model, x, calibrate=[])


#: ResNet-20 is ResNet-8 with more of the same.
@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in ("resnet20", "mlp")])
def test_a_published_network_is_one_program(name: str):
    model = NETWORKS[name]()
    compiled, x = compiled_of(model, *SHAPES[name])
    assert len(compiled.pieces) == 1
    assert compiled.network.outputs[0].dtype == "float32"
    # Half a megabyte of activations would not fit the chip's memory.
    assert compiled.network.arena < 1 << 19
    assert {row[-1] for row in compiled.layers(x[:1]).rows} == {"0"}


def test_digits_are_read_as_well_in_int8():
    data = digits()
    torch.manual_seed(0)
    model = mlp()
    fit(model, data, 8)
    compiled = pynq_torch.compile(model.eval(), data.x_train[:1], calibrate=[data.x_train[:64]])
    answers = compiled(data.x_test).argmax(1)
    accuracy = float((answers == data.y_test).sum()) / len(answers)
    assert data.accuracy(model) > 0.9
    assert accuracy > data.accuracy(model) - 0.02


# ---- several inputs in flight --------------------------------------------------------------------


def test_a_queue_keeps_the_order_of_batches_of_any_size():
    compiled, _ = compiled_of(mlp(), 1, 8, 8)
    inputs = [torch.randn(n, 1, 8, 8) for n in (1, 3, 2, 1, 5, 1, 1)]
    expected = [compiled(x) for x in inputs]
    for depth in (1, 2, 3):
        with compiled.queue(depth) as queue:
            assert all(map(torch.equal, queue.map(inputs), expected))
            futures = [queue.submit(x) for x in inputs]
            assert all(torch.equal(f.result(), y) for f, y in zip(futures, expected, strict=True))
    with pytest.raises(ValueError, match="depth is 0; expected at least 1"):
        compiled.queue(0)


def test_no_more_than_depth_inputs_are_in_flight():
    begun, go = threading.Semaphore(0), threading.Event()

    def run(x: int, timeout_s: float) -> int:
        begun.release()
        assert go.wait(60)
        return x

    with Queue(run, 2) as queue:
        results: list[int] = []
        reader = threading.Thread(target=lambda: results.extend(queue.map(range(9))))
        reader.start()
        assert begun.acquire(timeout=60) and begun.acquire(timeout=60)  # two at a time
        assert not begun.acquire(timeout=0.2)
        go.set()
        reader.join(60)
    assert results == list(range(9))


def test_an_error_is_that_of_its_input_and_leaves_nothing_behind():
    compiled, x = compiled_of(mlp(), 1, 8, 8)
    wrong, expected, before = torch.randn(1, 1, 7, 7), compiled(x), threading.active_count()
    unit = current_overlay().kernels.of("net")[0]
    board = current_board()
    process = board.cus[unit.cu].engine.pid
    with compiled.queue() as queue:
        results = queue.map([x, wrong, x, x])
        assert torch.equal(next(results), expected)
        with pytest.raises(ValueError, match="expected float32"):
            next(results)
        stop(process)  # the kernel hangs
        try:
            with pytest.raises(KernelTimeout):
                queue.submit(x, timeout_s=0.3).result()
            with pytest.raises(KernelBusy):
                queue.submit(x).result()
        finally:
            os.kill(process, signal.SIGCONT)
        assert ends(lambda: not unit.is_claimed(), 60)
        assert torch.equal(queue.submit(x).result(), expected)
    assert threading.active_count() == before
    free = board.memory.free_bytes
    for _ in range(3):
        with compiled.queue() as queue, pytest.raises(ValueError, match="expected float32"):
            list(queue.map([x, wrong]))
    assert torch.equal(compiled(x), expected) and board.memory.free_bytes == free


# ---- files ---------------------------------------------------------------------------------------

RUN = """
import numpy as np
import pynq_torch
from pynq_torch.cli import main

pynq_torch.use_board("csim")
assert main(["net", "show", "net.pynq"]) == 0
assert main(["net", "run", "net.pynq", "--input", "x.npy", "--output", "y.npy"]) == 0
"""


def test_a_saved_network_runs_without_torch(tmp_path: Path):
    compiled, x = compiled_of(mlp(), 1, 8, 8)
    compiled.save(tmp_path / "net.pynq")
    np.save(tmp_path / "x.npy", x.numpy())
    program = f"REFUSED = ('torch', 'torchao', 'libclang')\n{REFUSE}{RUN}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert torch.equal(torch.from_numpy(np.load(tmp_path / "y.npy")), compiled(x))
    assert "linear" not in done.stdout and "64x1x1 at" in done.stdout
    assert np.array_equal(load(tmp_path / "net.pynq")(x[0].numpy()), compiled(x)[0].numpy())
    with pytest.raises(ValueError, match=r"shape \(2, 3\); expected \[N, 1, 8, 8\]"):
        load(tmp_path / "net.pynq")(np.zeros((2, 3), np.float32))


def test_a_damaged_file_is_refused(tmp_path: Path):
    compiled, _ = compiled_of(mlp(), 1, 8, 8)
    path = compiled.save(tmp_path / "net.pynq")
    good, rng = path.read_bytes(), random.Random(0)
    refused = 0
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.choice([1, 1, 30])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data[: rng.choice([len(data), len(data), rng.randrange(len(data))])])
        try:
            read(path)
        except (NetFileError, ProgramError, PynqTorchError):
            refused += 1
    assert refused > 120  # a change in the archive's dates is none of the network's


# ---- torch.compile -------------------------------------------------------------------------------


def test_torch_compile_calibrates():
    model, x = NETWORKS["resnet8"]().eval(), torch.randn(2, 3, 32, 32)
    quantised = torch.compile(model, backend=backend.pynq, options={"calibrate": [x]})
    with torch.no_grad():
        expected = pynq_torch.compile(model, x, calibrate=[x])(x)
        assert torch.equal(quantised(x), expected)
        ready = quantise(model, (x,), [x])  # as a user of PT2E has it
        assert torch.equal(pynq_torch.compile(ready, x)(x), expected)
        assert torch.equal(torch.compile(ready, backend=backend.pynq)(x), expected)
    with pytest.raises(ValueError, match="options has 'speed'"):
        backend.pynq(None, [], {"speed": 1})


def test_torch_compile_of_models_that_share_a_graph(monkeypatch: pytest.MonkeyPatch):
    """torch calls one graph for all models of a class, whatever their weights and sizes are."""
    torch.compiler.reset()  # which sizes are dynamic depends on what was compiled before
    made: list[object] = []
    compile_model = backend.compile_model
    monkeypatch.setattr(
        backend, "compile_model", lambda *given: made.append(given) or compile_model(*given)
    )
    torch.manual_seed(0)
    calibrate = [torch.randn(4, 3, 8, 8)]
    first, second = (nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten()).eval() for _ in range(2))

    def check(model: nn.Module, x: torch.Tensor, times: int) -> None:
        options = {"calibrate": list(calibrate)}
        with torch.no_grad():
            quick = torch.compile(model, backend=backend.pynq, options=options)
            assert (quick(x) - model(x)).abs().mean() < 0.03
        assert len(made) == times

    x = torch.randn(2, 3, 8, 8)
    check(first, x, 1)
    check(second, x, 2)
    check(first, x, 2)
    second.load_state_dict(first.state_dict())
    check(second, -x, 3)
    calibrate[0] = torch.randn(4, 3, 8, 8)  # torch compares options: tensors with tensors
    check(second, x, 4)
    calibrate[0] = torch.randn(4, 3, 9, 8)
    check(first, torch.randn(2, 3, 9, 8), 5)
    check(
        first, torch.randn(3, 3, 9, 8), 6
    )  # the batch is dynamic from here on: a graph of its own
    check(first, torch.randn(5, 3, 9, 8), 6)
    with pytest.raises(ValueError, match=r"batch 0 of calibrate is .*N, 3, 9, 8.*N, 3, 10, 8"):
        check(first, torch.randn(3, 3, 10, 8), 6)


@pytest.mark.parametrize(("device", "int8"), [("cpu", True), ("cpu", False), ("pynq", True)])
def test_a_training_step_is_as_it_was_and_the_reason_is_said_once(device: str, int8: bool):
    def steps(compile_it: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        conv, norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        model = nn.Sequential(conv, norm, nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).to(device)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        x, y = torch.randn(6, 1, 8, 8).to(device), torch.tensor([0, 1, 2, 0, 1, 2]).to(device)
        options = {"calibrate": [x.cpu()]} if int8 else {}
        run = torch.compile(model, backend=backend.pynq, options=options) if compile_it else model
        for n in (6, 6, 4):  # another size: compiled again
            optimizer.zero_grad()
            nn.functional.cross_entropy(run(x[:n]), y[:n]).backward()
            optimizer.step()
        return [t for p in model.parameters() for t in (p.detach(), p.grad)]

    torch.compiler.reset()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        found = steps(compile_it=True)
    said = [str(w.message) for w in caught if "backend 'pynq'" in str(w.message)]
    assert len(said) == 1 and "gradients are needed" in said[0]
    assert all(map(torch.equal, found, steps(compile_it=False)))


def test_torch_finds_the_backend_by_its_entry_point(root: Path, tmp_path: Path):
    text = (root / "pyproject.toml").read_text()
    line = text.split('entry-points."torch_dynamo_backends"]\n')[1].splitlines()[0]
    info = tmp_path / "fresh-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fresh\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[torch_dynamo_backends]\n{line.replace(chr(34), '')}\n"
    )
    program = "import torch; from torch._dynamo.backends.registry import lookup_backend as find; "
    program += "import sys; sys.path.insert(0, sys.argv[1]); print(find('pynq').__module__)"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(tmp_path)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "pynq_torch.compiler.backend", done.stderr
