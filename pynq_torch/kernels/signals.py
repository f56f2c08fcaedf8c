"""Drivers of the kernels for signals: filters, chain, sums, sine and cosine, transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pynq_torch import buffers

from .arguments import check_tensor
from .base import Kernel
from .streamed import StreamKernel

if TYPE_CHECKING:
    import torch

__all__ = ["Chain", "Cordic", "Fft", "Fir", "FirFixed", "PrefixSum"]


class Fir(StreamKernel):
    """``overlay.fir(x, coefficients)`` filters an int32 signal.

    Attributes
    ----------
    taps : int
        Coefficients that the kernel has.
    """

    expects: ClassVar[tuple[str, ...]] = ("coefficients",)

    @property
    def taps(self) -> int:
        """Coefficients that the kernel has."""
        return self._by_name["coefficients"].nbytes // 4

    def __call__(
        self, x: torch.Tensor, coefficients: torch.Tensor, *, timeout_s: float = 10.0
    ) -> torch.Tensor:
        """Return ``y[i] = coefficients[0] * x[i] + coefficients[1] * x[i - 1] + ...``.

        Parameters
        ----------
        x : torch.Tensor
            int32, 1 dimension, device cpu; samples before the first are 0.
        coefficients : torch.Tensor
            int32, 1 dimension, at most `taps`.
        timeout_s : float
            Bound of the transfer and of the wait.

        Returns
        -------
        torch.Tensor
            int32, modulo 2**32, as long as `x`, in CMA memory.
        """
        import torch

        check_tensor(self.cu, "x", x, torch.int32, ndim=1)
        check_tensor(self.cu, "coefficients", coefficients, torch.int32, ndim=1)
        if coefficients.numel() > self.taps:
            raise self.wrong(
                f"coefficients has {coefficients.numel()} elements; expected at most {self.taps}"
            )
        every = np.zeros(self.taps, np.int32)
        every[: coefficients.numel()] = coefficients.numpy()
        return self.through("x", x, timeout_s, coefficients=every)

    call: Any = __call__


class FirFixed(Fir):
    """``overlay.fir_fixed(x, coefficients)`` filters a signal in ``ap_fixed<16, 1>``."""

    #: Of ``ap_fixed<16, 1>``: steps of 2**-15.
    fraction_bits = 15

    def __call__(
        self, x: torch.Tensor, coefficients: torch.Tensor, *, timeout_s: float = 10.0
    ) -> torch.Tensor:
        """Return the filtered signal, rounded to steps of 2**-15 and saturated.

        Parameters
        ----------
        x : torch.Tensor
            float32, 1 dimension, from -1 to 1 (which becomes 1 - 2**-15), device cpu. It is rounded
            to steps of 2**-15; samples before the first are 0.
        coefficients : torch.Tensor
            As `x`, at most `taps`.
        timeout_s : float
            Bound of the transfer and of the wait.

        Returns
        -------
        torch.Tensor
            float32, as long as `x`: for the rounded inputs exact but for the last rounding.
        """
        import torch

        words = []
        for name, tensor in {"x": x, "coefficients": coefficients}.items():
            check_tensor(self.cu, name, tensor, torch.float32, ndim=1)
            if not bool((tensor.abs() <= 1).all()):
                raise self.wrong(f"{name} has values that are not from -1 to 1; divide it first")
            words.append(_fixed(tensor, self.fraction_bits, 16).to(torch.int16))
        if coefficients.numel() > self.taps:
            raise self.wrong(
                f"coefficients has {coefficients.numel()} elements; expected at most {self.taps}"
            )
        every = np.zeros(self.taps, np.int32)
        every[: coefficients.numel()] = words[1].numpy()
        filtered = self.through("x", words[0], timeout_s, coefficients=every)
        return filtered.float() * 2.0**-self.fraction_bits

    call: Any = __call__


class Chain(StreamKernel):
    """``overlay.chain(x, gain, limit)``: scale, threshold and sum, in three processes."""

    expects: ClassVar[tuple[str, ...]] = ("gain", "limit", "n")

    def __call__(
        self, x: torch.Tensor, gain: int = 1, limit: int = 0, *, timeout_s: float = 10.0
    ) -> torch.Tensor:
        """Return the running sum of the elements of ``gain * x`` that are not below `limit`.

        Parameters
        ----------
        x : torch.Tensor
            int32, 1 dimension, device cpu.
        gain, limit : int
            32 bits, signed.
        timeout_s : float
            Bound of the transfer and of the wait.

        Returns
        -------
        torch.Tensor
            int32, products and sums modulo 2**32, as long as `x`, in CMA memory.
        """
        import torch

        check_tensor(self.cu, "x", x, torch.int32, ndim=1)
        for name, value in {"gain": gain, "limit": limit}.items():
            if not isinstance(value, (int, np.integer)) or not -(1 << 31) <= value < 1 << 31:
                raise self.wrong(f"{name} is {value!r}; expected an int of 32 bits, signed")
        return self.through("x", x, timeout_s, gain=gain, limit=limit, n=x.numel())

    call: Any = __call__


class PrefixSum(Kernel):
    """``overlay.prefix_sum(values)`` sums each element and all before it."""

    expects: ClassVar[tuple[str, ...]] = ("values", "sums", "n")

    def __call__(self, values: torch.Tensor, *, timeout_s: float = 10.0) -> torch.Tensor:
        """Return ``torch.cumsum(values, 0, dtype=torch.int32)``.

        Parameters
        ----------
        values : torch.Tensor
            int32, 1 dimension, device cpu.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            int32, modulo 2**32, in CMA memory. An empty one is returned without a start.
        """
        import torch

        check_tensor(self.cu, "values", values, torch.int32, ndim=1)
        if not values.numel():
            return torch.empty_like(values)
        source = buffers.to_buffer(values, device=self.device)
        sums = buffers.empty(values.shape, torch.int32, device=self.device)
        self.start(values=source, sums=sums, n=source.size).wait(timeout_s)
        return buffers.as_tensor(sums)

    call: Any = __call__


def _fixed(values: torch.Tensor, fraction_bits: int, bits: int = 32) -> torch.Tensor:
    """Return real numbers as the words of a signed fixed-point type, rounded to nearest."""
    import torch

    scaled = (values.detach().double() * 2.0**fraction_bits).round()
    return scaled.clamp(max=2.0 ** (bits - 1) - 1).to(torch.int32)


def _real(words: Any, fraction_bits: int) -> torch.Tensor:
    """Return the numbers that words of a signed fixed-point type mean, exact in float64."""
    return buffers.as_tensor(words).double() * 2.0**-fraction_bits


class Cordic(Kernel):
    """``overlay.cordic(angles)`` computes sines and cosines in ``ap_fixed<32, 3>``."""

    expects: ClassVar[tuple[str, ...]] = ("angles", "sines", "cosines", "n")

    #: Of ``ap_fixed<32, 3>``: steps of 2**-29.
    fraction_bits = 29

    def __call__(
        self, angles: torch.Tensor, *, timeout_s: float = 10.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the sines and the cosines.

        Parameters
        ----------
        angles : torch.Tensor
            float32 or float64, in radians, each from -4 to below 4, any shape, device cpu.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        tuple of torch.Tensor
            Two of the dtype and shape of `angles`. In float64 they are wrong by at most
            3 * 2**-29: 2**-30 of it, because the angle was rounded to fixed point.
        """
        import torch

        wide = getattr(angles, "dtype", None) == torch.float64
        check_tensor(self.cu, "angles", angles, torch.float64 if wide else torch.float32)
        if not bool(((angles >= -4) & (angles < 4)).all()):
            raise self.wrong("angles has values that are not from -4 to 4; take them modulo 2 * pi")
        if not angles.numel():
            return torch.empty_like(angles), torch.empty_like(angles)
        source = buffers.to_buffer(_fixed(angles, self.fraction_bits), device=self.device)
        sines, cosines = (
            buffers.empty(angles.shape, torch.int32, device=self.device) for _ in range(2)
        )
        run = self.start(angles=source, sines=sines, cosines=cosines, n=source.size)
        run.wait(timeout_s)
        sine, cosine = (_real(w, self.fraction_bits).to(angles.dtype) for w in (sines, cosines))
        return sine, cosine

    call: Any = __call__


class Fft(Kernel):
    """``overlay.fft(x)`` transforms frames of 256 complex numbers in ``ap_fixed<32, 2>``."""

    expects: ClassVar[tuple[str, ...]] = ("input_r", "output_r", "frames")

    #: Complex numbers of a frame.
    points = 256
    #: Of ``ap_fixed<32, 2>``: steps of 2**-30.
    fraction_bits = 30

    def __call__(self, x: torch.Tensor, *, timeout_s: float = 10.0) -> torch.Tensor:
        """Return ``torch.fft.fft(x, norm="forward")``: the transform divided by 256.

        Parameters
        ----------
        x : torch.Tensor
            complex64 or complex128, (..., 256), real and imaginary parts from -1 to 1, device cpu.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            Of the dtype and shape of `x`. In complex128 each part is wrong by at most 2**-25.
        """
        import torch

        wide = getattr(x, "dtype", None) == torch.complex128
        check_tensor(self.cu, "x", x, torch.complex128 if wide else torch.complex64)
        if not x.ndim or x.shape[-1] != self.points:
            raise self.wrong(f"x has shape {tuple(x.shape)}; expected (..., {self.points})")
        if not x.numel():
            return torch.empty_like(x)
        parts = torch.view_as_real(x.detach().resolve_conj())
        if not bool((parts.abs() <= 1).all()):
            raise self.wrong("x has parts that are not from -1 to 1; divide x by the greatest")
        source = buffers.to_buffer(_fixed(parts, self.fraction_bits), device=self.device)
        result = buffers.empty(source.shape, torch.int32, device=self.device)
        frames = x.numel() // self.points
        self.start(input=source, output=result, frames=frames).wait(timeout_s)
        return torch.view_as_complex(_real(result, self.fraction_bits)).to(x.dtype)

    call: Any = __call__
