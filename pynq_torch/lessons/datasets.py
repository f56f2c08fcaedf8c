"""Data that lessons learn from; it comes with installed packages, nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pynq_torch.errors import needs

if TYPE_CHECKING:
    import torch

__all__ = ["Digits", "digits", "enlarged", "fit", "steps"]

#: Brightness of the full stroke: 16 dots of the scan went into one pixel.
_FULL = 16


@dataclass(frozen=True)
class Digits:
    """Handwritten digits, split into what is learnt from and what is not.

    Attributes
    ----------
    x_train, x_test : torch.Tensor
        float32 [N, 1, H, W], 0 to 1 (full stroke); of 8x8 pixels in multiples of 1/16 until they
        are `enlarged`.
    y_train, y_test : torch.Tensor
        int64 [N], 0 to 9.
    """

    x_train: torch.Tensor
    y_train: torch.Tensor
    x_test: torch.Tensor
    y_test: torch.Tensor

    def read(self, model: torch.nn.Module) -> torch.Tensor:
        """Return what a model reads in the test images: int64 [N] on the CPU, 0 to 9.

        Parameters
        ----------
        model : torch.nn.Module
            [N, 1, H, W] to [N, 10], on any device; it runs without gradients.
        """
        import torch

        with torch.no_grad():
            answers: torch.Tensor = model(self.x_test.to(_device_of(model)))
        return answers.argmax(1).cpu()

    def accuracy(self, model: torch.nn.Module) -> float:
        """Return the share of the test images that a model reads right, 0 to 1; see `read`."""
        return float((self.read(model) == self.y_test).sum()) / len(self.y_test)

    def __repr__(self) -> str:
        train, test = len(self.y_train), len(self.y_test)
        size = "x".join(map(str, self.x_train.shape[-2:]))
        return f"<Digits: {train} images of {size} to learn from, {test} to test with>"


def digits(test: int = 360, seed: int = 0) -> Digits:
    """Return the 1,797 handwritten digits that come with scikit-learn, on the CPU.

    Parameters
    ----------
    test : int
        How many of them are kept apart for the test, 1 to 1796.
    seed : int
        Chooses them; the same seed gives the same split.

    Returns
    -------
    Digits
        See there.

    Raises
    ------
    MissingPackage
        scikit-learn is not installed.

    Notes
    -----
    The test part of "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, UCI
    Machine Learning Repository, 1998: numerals by 13 writers.
    """
    import torch

    with needs("sklearn", "The data set of digits"):
        from sklearn.datasets import load_digits
    images, labels = load_digits(return_X_y=True)
    count = len(labels)
    if not 0 < test < count:
        raise ValueError(f"test is {test}; expected 1 to {count - 1}, of {count} images")
    # The file is sorted by writer: a test with the last ones would ask for hands never seen.
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    x = torch.from_numpy(images).float().div(_FULL).reshape(count, 1, 8, 8)[order]
    y = torch.from_numpy(labels).long()[order]
    return Digits(x[:-test], y[:-test], x[-test:], y[-test:])


def enlarged(data: Digits, size: int = 32, margin: int = 2) -> Digits:
    """Return the same digits as larger images, as LeNet-5 reads them.

    Parameters
    ----------
    data : Digits
        Of any size.
    size : int
        Rows and columns of the result.
    margin : int
        Empty rows and columns at each edge; the strokes are stretched over the rest, linearly.

    Raises
    ------
    ValueError
        The margins leave nothing.
    """
    import torch

    inner = size - 2 * margin
    if inner < 1 or margin < 0:
        raise ValueError(f"size is {size}, margin {margin}; expected 0 <= 2 * margin < size")

    def larger(images: torch.Tensor) -> torch.Tensor:
        stretched = torch.nn.functional.interpolate(images, size=inner, mode="bilinear")
        return torch.nn.functional.pad(stretched, (margin,) * 4)

    return Digits(larger(data.x_train), data.y_train, larger(data.x_test), data.y_test)


def fit(
    model: torch.nn.Module, data: Digits, epochs: int, *, rate: float = 2e-3, seed: int = 0
) -> list[float]:
    """Train a model on digits, with Adam and cross-entropy, 64 images at a time.

    Parameters
    ----------
    model : torch.nn.Module
        [N, 1, H, W] to [N, 10], on any device; its parameters are changed.
    data : Digits
        Only ``x_train`` and ``y_train`` are used.
    epochs : int
        How often each image is seen.
    rate : float
        Learning rate.
    seed : int
        Seed of the order of the images.

    Returns
    -------
    list of float
        Mean loss of each epoch.
    """
    losses, total, seen = [], 0.0, 0
    for loss, images in steps(model, data, epochs, rate=rate, seed=seed):
        total += loss * images
        seen += images
        if seen == len(data.y_train):
            losses.append(total / seen)
            total, seen = 0.0, 0
    return losses


def steps(
    model: torch.nn.Module, data: Digits, epochs: int, *, rate: float = 2e-3, seed: int = 0
) -> Iterator[tuple[float, int]]:
    """Train as `fit` does, a step for each item that is asked for.

    Yields
    ------
    tuple of (float, int)
        Loss of a batch before its step, and how many images it had: 64, fewer at the end.
    """
    import torch

    device = _device_of(model)
    x, y = data.x_train.to(device), data.y_train.to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        order = torch.randperm(len(y), generator=generator).to(device)
        for rows in torch.split(order, 64):
            loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            yield float(loss.detach()), len(rows)


def _device_of(model: torch.nn.Module) -> torch.device:
    return next(model.parameters()).device
