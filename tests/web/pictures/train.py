"""A training that is played: it holds memory of its GPUs and writes what one writes.

    train.py MODEL [--epochs N] [--lr N] [--seed N] [--batch N]

It ends where its epochs are over, fails where a number is one that it cannot take, and
else stays in the middle of an epoch until it is killed. Only the standard library.
"""

import argparse
import os
import random
import signal
import sys

PLAYED = {
    "vit-l16": ("41.2G", 96, 54),
    "resnet50": ("14.6G", 44, 22),
    "distilbert": ("17.9G", 38, 31),
    "unet": ("33.4G", 83, 12),
    "vit-h14": ("46G", 90, 0),
    "whisper": ("20G", 60, 0),
}
"""Memory, utilization, and how many epochs one comes to, by the model."""
DONE = {"--lr": ("1e-2", "3e-3"), "--seed": ("1", "2", "3")}
"""Those of a set that have ended."""
BAR = 28


def main() -> None:
    """Play one."""
    asked = _parsed()
    memory, busy, reached = PLAYED[asked.model]
    _announce(memory, busy)
    _say(f"loading {asked.model}: 24 blocks, bf16, batch {asked.batch}")
    _say("\x1b[2mcuDNN 9.1, 1 visible device, compile=max-autotune\x1b[0m")
    ends = asked.lr in DONE["--lr"] or asked.seed in DONE["--seed"]
    chance = random.Random(f"{asked.model}{asked.lr}{asked.seed}")
    loss = 2.4
    for epoch in range(1, (asked.epochs if ends else min(reached, asked.epochs)) + 1):
        loss *= 0.93 + chance.random() * 0.06
        _tell(epoch, loss, asked)
        if asked.seed == "3" and epoch == 9:
            _say("\x1b[33mwarning: gradient norm 18402.7, loss is nan\x1b[0m")
            raise FloatingPointError("loss is nan after epoch 9, lr 0.01 is too high")
    _fail(asked)
    if not ends and asked.epochs > reached:
        for part in (5, 11, 17):
            bar = "█" * part + " " * (BAR - part)
            share = round(100 * part / BAR)
            _say(f"\repoch {reached + 1}/{asked.epochs} {share:3}%|{bar}|", "")
        _say(" 782/1281 [03:11<02:02, 4.1it/s]", "")
        signal.pause()
    _say("\x1b[32msaved\x1b[0m checkpoints/last.pt")


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=PLAYED)
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", default="1e-3")
    parser.add_argument("--seed", default="0")
    return parser.parse_args()


def _announce(memory: str, busy: int) -> None:
    """Be on the devices that this process may see, as `use-gpu` is."""
    folder = os.environ["FAKE_NVML_FILE"] + ".processes"
    size = int(float(memory[:-1]) * 2**30)
    units = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    facts = f"kind=compute memory={size} utilization={busy}"
    lines = [f"process {unit} {os.getpid()} {facts}\n" for unit in units if unit]
    aside = os.path.join(folder, f".{os.getpid()}")
    with open(aside, "w", encoding="ascii") as file:
        file.writelines(lines)
    os.replace(aside, os.path.join(folder, str(os.getpid())))
    with open(os.environ["FAKE_NVML_FILE"] + ".version", "r+b", buffering=0) as version:
        version.write(os.urandom(8))


def _tell(epoch: int, loss: float, asked: argparse.Namespace) -> None:
    accuracy = 92.6 - 11 * loss
    _say(
        f"epoch {epoch:2}/{asked.epochs}  train loss {loss:.4f}"
        f"  val loss {loss * 1.07:.4f}  top1 {accuracy:.2f}"
    )
    if epoch % 5 == 0:
        _say(f"\x1b[32msaved\x1b[0m checkpoints/epoch-{epoch:03}.pt")


def _fail(asked: argparse.Namespace) -> None:
    if asked.model == "vit-h14":
        raise MemoryError(
            "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total "
            "capacity of 47.54 GiB of which 1.31 GiB is free."
        )
    if asked.model == "whisper":
        raise FileNotFoundError("no such file: data/common_voice/train.tsv")


if __name__ == "__main__":
    main()
