"""The digits: complete, split without a leak, the same every time, and missing with a reason."""

from __future__ import annotations

import copy
import sys

import pytest
import torch

from pynq_torch.lessons import datasets


def test_every_digit_is_in_one_part_and_the_split_is_the_seed_s():
    found = datasets.digits(test=300, seed=5)
    assert found.x_train.shape == (1497, 1, 8, 8) and found.x_test.shape == (300, 1, 8, 8)
    assert found.x_train.dtype is torch.float32 and found.y_test.dtype is torch.int64
    everything = torch.cat([found.x_train, found.x_test])
    assert torch.equal(everything * 16, (everything * 16).round())
    assert (float(everything.min()), float(everything.max())) == (0, 1)

    def rows(data: datasets.Digits) -> list[tuple[float, ...]]:
        x, y = torch.cat([data.x_train, data.x_test]), torch.cat([data.y_train, data.y_test])
        return sorted(
            (*map(float, image.flatten()), int(label)) for image, label in zip(x, y, strict=True)
        )

    assert rows(found) == rows(datasets.digits())  # the same images with the same labels
    again, other = datasets.digits(test=300, seed=5), datasets.digits(test=300, seed=6)
    assert torch.equal(found.x_test, again.x_test) and torch.equal(found.y_test, again.y_test)
    assert not torch.equal(found.x_test, other.x_test)
    # About as many of each digit in both parts: writers and digits are mixed.
    assert int(torch.bincount(found.y_test, minlength=10).min()) > 15


def test_what_cannot_be_is_said(monkeypatch: pytest.MonkeyPatch):
    for test in (0, 1797):
        with pytest.raises(ValueError, match=rf"test is {test}; expected 1 to 1796"):
            datasets.digits(test=test)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'pynq_torch\[lab\]'"):
        datasets.digits()


def test_what_is_learnt_is_read_again_and_the_seed_decides():
    data = datasets.digits()

    def learn(seed: int) -> tuple[torch.nn.Module, list[float]]:
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        return model, datasets.fit(model, data, 2, rate=1e-2, seed=seed)

    (model, losses), (again, _), (other, _) = learn(3), learn(3), learn(4)
    assert losses[1] < losses[0] < 2.4
    assert torch.equal(model[1].weight, again[1].weight)
    assert not torch.equal(model[1].weight, other[1].weight)
    assert data.accuracy(model) > 0.8
    right = int((data.read(model) == data.y_test).sum())
    assert data.accuracy(model) == right / 360


def test_a_model_on_the_device_learns_there_what_it_would_on_the_cpu():
    data = datasets.digits(test=1700)
    on_cpu = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    on_pl = copy.deepcopy(on_cpu).to("pynq")
    losses = datasets.fit(on_cpu, data, 2), datasets.fit(on_pl, data, 2)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert on_pl[1].weight.device.type == "pynq"
    torch.testing.assert_close(on_pl[1].weight.detach().cpu(), on_cpu[1].weight.detach())
    read = data.read(on_pl)
    assert read.device.type == "cpu" and torch.equal(read, data.read(on_cpu))


def test_larger_images_have_empty_margins_and_the_same_strokes():
    data = datasets.digits()
    found = datasets.enlarged(data)
    assert found.x_train.shape == (1437, 1, 32, 32) and found.x_test.shape == (360, 1, 32, 32)
    assert torch.equal(found.y_test, data.y_test)
    assert not found.x_train[..., :2, :].any() and not found.x_train[..., :, -2:].any()
    inner = torch.nn.functional.adaptive_avg_pool2d(found.x_test[..., 2:-2, 2:-2], 8)
    assert float((inner - data.x_test).abs().mean()) < 0.1
    assert "images of 32x32" in repr(found) and "images of 8x8" in repr(data)
    for size, margin in ((4, 2), (8, -1)):
        with pytest.raises(ValueError, match=f"size is {size}, margin {margin}"):
            datasets.enlarged(data, size, margin)


def test_steps_are_those_of_fit():
    data = datasets.digits()
    models = []
    for _ in range(2):
        torch.manual_seed(1)
        models.append(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)))
    losses = datasets.fit(models[0], data, 1, seed=2)
    taken = list(datasets.steps(models[1], data, 1, seed=2))
    assert [images for _, images in taken] == [64] * 22 + [29]
    assert losses == [pytest.approx(sum(loss * n for loss, n in taken) / 1437)]
    assert torch.equal(models[0][1].weight, models[1][1].weight)
