"""Fit a line with torch, as a job of grass: on a GPU, or on the CPU without one.

One run is `python train.py 0.1`; `make -j4` runs four, which take turns on the GPUs.
"""

import sys

import torch

import grass


@grass.job
def train(rate: float, steps: int = 200) -> float:
    """Return the error that is left after some steps of gradient descent."""
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    inputs = torch.randn(1024, 8, device=device)
    wanted = inputs @ torch.arange(8.0, device=device)
    weights = torch.zeros(8, device=device, requires_grad=True)
    for _ in range(steps):
        error = ((inputs @ weights - wanted) ** 2).mean()
        error.backward()
        with torch.no_grad():
            weights -= rate * weights.grad
            weights.grad = None
    print(f"rate {rate}: error {error.item():.6f} on {device}")
    return error.item()


if __name__ == "__main__":
    train(float(sys.argv[1]) if len(sys.argv) > 1 else 0.1)
