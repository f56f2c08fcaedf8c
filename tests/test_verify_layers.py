"""verify.layers: right rows in the right order, mismatches that are found, models left alone."""

from __future__ import annotations

import copy
import gc
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pynq_torch
from pynq_torch import quantize_, verify
from pynq_torch.errors import VerificationError
from pynq_torch.overlay import ensure_event_loop
from pynq_torch.verify.layer_row import _errors

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module", autouse=True)
def gemm() -> Iterator[Any]:
    board = pynq_torch.use_board("csim", strict_cache=True)
    ensure_event_loop()
    yield pynq_torch.load("gemm")
    board.close()


class Wrong(torch.nn.Module):
    """Adds `by` to one value, on device "pynq" only."""

    def __init__(self, by: float = 0.5) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.zeros_like(x)
        mask.view(-1)[4] = self.by if x.device.type == "pynq" else 0.0
        return x + mask


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * (1.5 if grad.device.type == "pynq" else 1.0)


class WrongGradient(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = _Scaled.apply(x)  # type: ignore[no-untyped-call]
        return result


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(inplace=True), torch.nn.MaxPool2d(2)
        )
        self.fc = torch.nn.Linear(27, 8)
        self.twice = torch.nn.Linear(8, 8)
        self.drop = torch.nn.Dropout()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(self.features(x).flatten(1))
        x = self.twice(self.twice(x).relu()) + x
        result: torch.Tensor = self.drop(x)
        return result


def image(seed: int = 0) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.randn(2, 1, 8, 8)


def labels(report: Any, stage: str = "forward") -> list[str]:
    return [row.label for row in report.rows if row.stage == stage]


def test_forward_rows() -> None:
    report = verify.layers(Net(), image())
    assert labels(report) == [
        *("features.0", "features.1", "features.2", "fc", "twice", "twice (call 2)", "drop"),
    ]
    assert report.ok
    assert report.first_mismatch is None
    assert report.mismatches == ()
    assert all(row.exact and row.snr_db == math.inf for row in report.rows)
    assert [row.shape for row in report.rows[:2]] == [(2, 3, 6, 6), (2, 3, 6, 6)]
    assert {row.stage for row in report.rows} == {"forward"}


def test_backward_rows() -> None:
    report = verify.layers(Net(), image(), backward=True)
    assert report.ok
    assert set(labels(report, "grad")) == {name for name, _ in Net().named_parameters()}
    # From the last layer to the first; the input of the whole model is that of its first layer.
    assert labels(report, "grad input") == [
        *("drop", "twice (call 2)", "twice", "fc", "features.2", "features.1"),
        "features.0",
    ]
    stages = [row.stage for row in report.rows]
    assert stages.index("grad") > stages.index("forward")


def test_a_wrong_layer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), Wrong(), torch.nn.Linear(3, 3))
    report = verify.layers(model, torch.randn(2, 3))
    assert not report.ok
    row = report.first_mismatch
    assert row is not None
    assert (row.name, row.kind, row.wrong, row.index) == ("1", "Wrong", 1, (1, 1))
    assert row.max_abs == pytest.approx(0.5)
    assert row.found == pytest.approx(row.expected + 0.5)
    assert [r.name for r in report.mismatches] == ["1", "2"]
    with pytest.raises(VerificationError) as caught:
        report.check()
    assert str(caught.value).startswith(
        "Sequential: 2 of 3 tensors differ; the first is 1 (Wrong): 1 of 6 values are wrong; the "
        "first is at index [1, 1]: found "
    )
    assert "first mismatch: 1 (Wrong): 1 of 6 values" in report.table()
    assert not capsys.readouterr().out


def test_a_wrong_gradient_is_named() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), WrongGradient(), torch.nn.Linear(3, 3))
    assert verify.layers(model, torch.randn(2, 3)).ok
    report = verify.layers(model, torch.randn(2, 3), backward=True)
    row = report.first_mismatch
    assert row is not None
    assert (row.name, row.stage, row.kind) == ("1", "grad input", "WrongGradient")
    with pytest.raises(VerificationError, match=r"1 \(WrongGradient, grad input\): "):
        report.check()
    assert {r.label for r in report.mismatches} == {"1", "0.weight", "0.bias", "0"}


def test_tolerance_is_relative_to_the_largest_value() -> None:
    model = torch.nn.Sequential(Wrong(0.01))
    x = torch.full((2, 3), 2.0)
    assert not verify.layers(model, x).ok
    assert not verify.layers(model, x, tolerance=0.0049).ok
    report = verify.layers(model, x, tolerance=0.0051)
    assert report.ok
    assert not report.rows[0].exact
    assert report.rows[0].relative == pytest.approx(0.005, rel=1e-4)
    # One value of six off by 0.01, all of them 2.
    assert report.rows[0].snr_db == pytest.approx(10 * math.log10(6 * 4 / 0.01**2), abs=0.01)
    with pytest.raises(ValueError, match="tolerance is -1; expected"):
        verify.layers(model, x, tolerance=-1)


def test_check_prints_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    report = verify.layers(torch.nn.Linear(3, 2), torch.ones(1, 3))
    assert report.check() is report
    assert capsys.readouterr().out == (
        "Linear: 1 tensors, 1 of them exact, largest relative error 0, tolerance 0 (exact): PASS\n"
    )


def test_int8_by_opt_in_shows_where_and_how_far() -> None:
    model, x = torch.nn.Sequential(torch.nn.Linear(9, 5), torch.nn.ReLU()), torch.randn(4, 9)
    with torch.backends.pynq.flags(allow_int8=True):
        report = verify.layers(model, x)
        assert verify.layers(model, x, tolerance=0.05).ok
    assert [row.where for row in report.rows] == ["PL", "CPU"]
    assert report.first_mismatch is report.rows[0]
    assert 20 < report.rows[0].snr_db < 80
    assert [row.where for row in verify.layers(model, x).rows] == ["CPU", "CPU"]


def test_a_verdict_says_that_int8_differs_where_it_does() -> None:
    advice, x = "int8 is expected to differ from this reference: pass ", torch.randn(4, 9)
    model = quantize_(torch.nn.Sequential(torch.nn.Linear(9, 5)))
    report = verify.layers(model, x, reference="float")
    with pytest.raises(VerificationError, match=advice + "tolerance=, e.g. tolerance=0.05"):
        report.check()
    assert advice in report.table()
    closer = verify.layers(model, x, reference="float", tolerance=1e-6)
    assert advice + "a greater tolerance=" in closer.table()
    assert advice not in verify.layers(model, x, reference="float", tolerance=0.05).table()
    with torch.backends.pynq.flags(allow_int8=True):
        assert advice in verify.layers(torch.nn.Linear(9, 5), x).table()
    # A quantised model agrees with itself to the bit: what differs there is an error.
    wrong = verify.layers(torch.nn.Sequential(model, Wrong()), x)
    assert not wrong.ok and advice not in wrong.table()


# ---- quantised models ----------------------------------------------------------------------------


def test_quantised_against_itself_and_against_float() -> None:
    torch.manual_seed(1)
    plain = torch.nn.Sequential(
        *(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten()),
        *(torch.nn.Linear(36, 12), torch.nn.ReLU(), torch.nn.Linear(12, 5)),
    )
    x = image()
    model = quantize_(copy.deepcopy(plain), x)
    exact = verify.layers(model, x)
    assert exact.ok
    assert [row.where for row in exact.rows if row.kind in ("Conv2d", "Linear")] == ["PL"] * 3
    assert {row.dtype for row in exact.rows[:-1]} == {"int8"}
    assert verify.layers(model, x, backward=True).ok

    for reference in (plain, "float"):
        assert not verify.layers(model, x, reference=reference).ok
        report = verify.layers(model, x, reference=reference, tolerance=0.03)
        assert report.ok, str(report)
        assert len(report.rows) == 7
        assert report.rows[0].dtype == f"int8 x {model[4].in_scale:.4g}"
        assert all(0 < row.relative < 0.03 for row in report.rows)
        gradients = verify.layers(model, x, reference=reference, tolerance=0.5, backward=True)
        assert len(gradients.rows) > len(report.rows)
        assert gradients.ok, str(gradients)


def test_the_wrong_reference() -> None:
    with pytest.raises(TypeError, match="reference is 3; expected a torch.nn.Module, 'float'"):
        verify.layers(torch.nn.Linear(1, 1), torch.ones(1, 1), reference=3)  # type: ignore[arg-type]
    other = torch.nn.Sequential(torch.nn.Linear(3, 4))
    report = verify.layers(
        torch.nn.Sequential(torch.nn.Linear(3, 2)), torch.ones(1, 3), reference=other
    )
    assert report.rows[0].note == "shape is (1, 2); expected (1, 4)"
    other = torch.nn.Sequential(torch.nn.Linear(3, 2).double())
    with pytest.raises(RuntimeError, match="same dtype"):
        verify.layers(torch.nn.Sequential(torch.nn.Linear(3, 2)), torch.ones(1, 3), reference=other)
    other = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    report = verify.layers(other[:1], torch.ones(1, 3), reference=other)
    assert [row.note for row in report.rows] == ["", "only the reference has it"]
    with pytest.raises(VerificationError, match=r"the first is 1 \(ReLU\): only the reference has"):
        report.check()


# ---- what models take and return -----------------------------------------------------------------


@dataclass
class Output:
    logits: torch.Tensor
    steps: int


class Odd(torch.nn.Module):
    """Takes and returns all kinds of things."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = Recurrent()
        self.inner = Inner()

    def forward(
        self, x: torch.Tensor, state: Any, count: int, *, names: dict[str, torch.Tensor]
    ) -> Any:
        assert state is None
        y, hidden = self.rnn(x, state)
        for _ in range(count):
            hidden, kept = self.inner(hidden, None, 2)
            assert kept is None
        return Output(y[:, -1] + hidden[0] + names["shift"], count), None, "done", [count, 1.5]


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 3))

    def forward(self, x: torch.Tensor, state: Any) -> tuple[torch.Tensor, torch.Tensor]:
        y = (x @ self.weight).cumsum(1)
        return y, y[:, -1].unsqueeze(0)


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor, nothing: None, factor: int) -> tuple[torch.Tensor, None]:
        return (x * factor).tanh(), nothing


def test_tuples_numbers_and_none() -> None:
    torch.manual_seed(0)
    x, shift = torch.randn(2, 5, 4), torch.randn(3)
    report = verify.layers(Odd(), (x, None, 2), kwargs={"names": {"shift": shift}}, backward=True)
    assert report.ok, str(report)
    assert labels(report) == [
        *("rnn [0]", "rnn [1]", "inner [0]", "inner [1]", "inner (call 2) [0]"),
        *("inner (call 2) [1]", "(model) [0].logits", "(model) [0].steps", "(model) [1]"),
        *("(model) [2]", "(model) [3][0]", "(model) [3][1]"),
    ]
    kinds = [row.dtype for row in report.rows if row.stage == "forward"]
    assert kinds[3:] == [
        *("NoneType", "float32", "NoneType", "float32", "int", "NoneType", "str", "int", "float")
    ]
    # The gradient of the keyword argument is there too.
    assert len(labels(report, "grad input")) >= 3
    assert "NoneType" in report.table()


class Device(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[Any, ...]:
        here = x.device.type == "pynq"
        return x, 3 if here else 4, None if here else x, x.int() if here else x


def test_other_kinds_of_mismatch() -> None:
    report = verify.layers(Device(), torch.ones(2))
    assert [row.note for row in report.rows] == [
        "",
        "found 3, expected 4",
        "found NoneType, expected Tensor",
        "dtype is int32; expected float32",
    ]
    assert [row.ok for row in report.rows] == [True, False, False, False]


def test_integer_inputs_and_embeddings() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 2))
    report = verify.layers(model, torch.tensor([[1, 8], [0, 3]]), backward=True)
    assert report.ok, str(report)
    assert set(labels(report, "grad")) == {"0.weight", "1.weight", "1.bias"}


def test_a_loss_of_one_s_own() -> None:
    model, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    report = verify.layers(model, x, loss=lambda y: (y * y).sum())
    assert {row.stage for row in report.rows} == {"forward", "grad", "grad input"}
    assert report.ok
    with pytest.raises(ValueError, match="no output of the model depends on a floating input"):
        verify.layers(Detached(), x, backward=True)


class Detached(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach()


# ---- the model is left alone ---------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", "pynq"])
def test_nothing_is_changed(device: str) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(inplace=True)
    ).to(device)
    model[0].weight.grad = torch.ones_like(model[0].weight)
    x = image().to(device).requires_grad_()
    before = copy.deepcopy(model.state_dict())
    states = torch.get_rng_state(), torch.pynq.get_rng_state()
    kept = x.detach().clone()
    assert verify.layers(model, x, backward=True).ok
    assert torch.equal(torch.get_rng_state(), states[0])
    assert torch.equal(torch.pynq.get_rng_state(), states[1])
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert all(p.device.type == device for p in model.parameters())
    assert torch.equal(model[0].weight.grad, torch.ones_like(model[0].weight))
    assert model[1].weight.grad is None
    assert x.grad is None
    assert torch.equal(x, kept)
    assert model.training
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    assert not torch.pynq.profiler.is_in_ROI()
    from pynq_torch import events

    assert not events.operators


def test_memory_is_free_again() -> None:
    def held() -> int:
        gc.collect()
        return int(torch.pynq.memory_allocated())

    verify.layers(Net(), image(), backward=True)
    before = held()
    for _ in range(5):
        verify.layers(Net(), image(), backward=True)
    assert held() == before


def test_dropout_draws_the_same_numbers() -> None:
    model = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(50, 50), torch.nn.Dropout())
    x = torch.randn(3, 50)
    report = verify.layers(model, x, backward=True)
    # 3 results, their 3 gradients, those of weight and bias: not one value differs.
    assert [(row.wrong, row.max_abs) for row in report.rows] == [(0, 0.0)] * 8
    assert not torch.equal(model[0](x), model[0](x))  # it does draw


def test_an_error_in_the_model_comes_through() -> None:
    from pynq_torch import events

    with pytest.raises(RuntimeError, match="shape"):
        verify.layers(torch.nn.Linear(3, 2), torch.ones(1, 4))
    assert not events.operators


# ---- the report ----------------------------------------------------------------------------------


def test_html() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), Wrong())
    report = verify.layers(model, torch.randn(2, 3))
    page = report._repr_html_()
    assert page.count("<tr>") == 3
    assert page.count("&#10007;") == 1
    assert "1 wrong" in page
    assert str(report) == report.table()
    lines = report.table().splitlines()
    assert len(lines) == 5
    assert lines[0].split()[:2] == ["layer", "kind"]


values = st.floats(width=32) | st.just(1.0)


@given(
    pairs=st.lists(
        st.tuples(values, values) | values.map(lambda v: (v, v)), min_size=1, max_size=8
    ),
    tolerance=st.sampled_from([0.0, 0.1]),
)
@settings(max_examples=300)
def test_errors_element_by_element(pairs: list[tuple[float, float]], tolerance: float) -> None:
    left, right = (torch.tensor(v, dtype=torch.float32) for v in zip(*pairs, strict=True))
    found = _errors(left, right, tolerance)
    largest = max((abs(b) for _, b in pairs if math.isfinite(b)), default=0.0)
    errors = []
    for a, b in pairs:
        same = a == b or (math.isnan(a) and math.isnan(b))
        error = 0.0 if same else abs(a - b)
        errors.append(math.inf if math.isnan(error) else error)
    wrong = [e > tolerance * largest if tolerance else e > 0 for e in errors]
    assert found["max_abs"] == max(errors)
    assert found["wrong"] == sum(wrong)
    assert found["size"] == len(pairs)
    if any(wrong):
        assert found["index"] == (wrong.index(True),)
    if largest and max(errors) < math.inf:
        assert found["relative"] == pytest.approx(max(errors) / largest)
