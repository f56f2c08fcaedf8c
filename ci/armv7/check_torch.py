"""Compare torch with numpy on the processor that this runs on, as a wheel for armv7l has to."""

from __future__ import annotations

import io

import numpy as np
import torch

rng = np.random.default_rng(0)
a, b = (rng.standard_normal((33, 33), dtype=np.float32) for _ in range(2))
x, y = torch.from_numpy(a.copy()), torch.from_numpy(b.copy())
assert np.array_equal((x + y).numpy(), a + b)
assert np.allclose((x @ y).numpy(), a @ b, atol=1e-4)
small = rng.integers(-128, 128, (32, 32), dtype=np.int8)
exact = torch.from_numpy(small).int() @ torch.from_numpy(small).int()
assert np.array_equal(exact.numpy(), small.astype(np.int32) @ small.astype(np.int32))

w = x.clone().requires_grad_()
(w * y).sum().backward()
assert np.array_equal(w.grad.numpy(), b)
image, kernel = torch.ones(1, 1, 5, 5), torch.ones(1, 1, 3, 3)
assert torch.nn.functional.conv2d(image, kernel).eq(9).all()

file = io.BytesIO()
torch.save(x, file)
file.seek(0)
assert torch.equal(torch.load(file), x)
# Sizes above 2 GB do not fit into an address; int64 has to stay int64.
assert torch.tensor(2**40).item() == 2**40 and torch.arange(3).dtype == torch.int64
print(f"torch {torch.__version__}: sums, products, gradients, files as numpy has them")
