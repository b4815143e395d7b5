"""Train a two-layer CNN on synthetic images of 28 by 28, a given number of steps.

    python train_small.py STEPS

Its last line tells how long it took to begin, and how long a step took.
"""

import sys
import time

BATCH = 64


def train(steps: int) -> None:
    began_s = time.perf_counter()
    import torch
    from torch import nn

    model = nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(1600, 10)),
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(64, BATCH, 1, 28, 28, device="cuda")
    classes = torch.randint(10, (64, BATCH), device="cuda")
    ready_s = 0.0
    for step in range(steps):
        loss = nn.functional.cross_entropy(model(images[step % 64]), classes[step % 64])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 64 == 0:
            torch.cuda.synchronize()
            ready_s = ready_s or time.perf_counter()
    torch.cuda.synchronize()
    ended_s = time.perf_counter()
    print(f"began {ready_s - began_s:.3f} step {(ended_s - ready_s) / (steps - 1):.6f}")


if __name__ == "__main__":
    train(int(sys.argv[1]))
