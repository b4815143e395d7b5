"""Multiply matrices for some seconds once a file is there; print how many.

    python multiply.py FILE SECONDS

It prints the number of multiprocessors that it sees when it is ready.
"""

import sys
import time
from pathlib import Path


def multiply(go: Path, lasting_s: float) -> None:
    import torch

    one = torch.randn(1024, 1024, device="cuda")
    for _ in range(50):
        one @ one
    torch.cuda.synchronize()
    seen = torch.cuda.get_device_properties(0).multi_processor_count
    print(f"ready {seen}", flush=True)
    while not go.exists():
        time.sleep(0.001)
    count, end_s = 0, time.monotonic() + lasting_s
    while time.monotonic() < end_s:
        for _ in range(50):
            one @ one
        torch.cuda.synchronize()
        count += 50
    print(f"multiplied {count}", flush=True)


if __name__ == "__main__":
    multiply(Path(sys.argv[1]), float(sys.argv[2]))
