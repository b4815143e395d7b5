"""Hold memory of the GPUs that this process may see, until it is killed.

    use-gpu SIZE [UTILIZATION]

It announces itself to the stand-in library, once for each device in
CUDA_VISIBLE_DEVICES, prints `holding`, and waits. Only the standard library: it runs
with `python -S`.
"""

import os
import signal
import sys

_FACTOR = {"M": 2**20, "G": 2**30}


def announce(size: str, utilization: str) -> None:
    folder = os.environ["FAKE_NVML_FILE"] + ".processes"
    memory = int(float(size[:-1]) * _FACTOR[size[-1]])
    facts = f"kind=compute memory={memory} utilization={utilization}"
    units = [_unit(word) for word in os.environ["CUDA_VISIBLE_DEVICES"].split(",")]
    lines = [f"process {unit} {os.getpid()} {facts}\n" for unit in units]
    aside = os.path.join(folder, f".{os.getpid()}")
    with open(aside, "w", encoding="ascii") as file:
        file.writelines(lines)
    os.replace(aside, os.path.join(folder, str(os.getpid())))
    # In place: processes that use the library have it mapped.
    with open(os.environ["FAKE_NVML_FILE"] + ".version", "r+b", buffering=0) as version:
        version.write(os.urandom(8))


def _unit(word: str) -> str:
    """Return the device that an index or a uuid means."""
    if word[:1].isdigit():
        return word
    with open(os.environ["FAKE_NVML_FILE"], encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] == "device" and any(
                fact.startswith(f"uuid={word}") for fact in words
            ):
                return words[1]
    raise SystemExit(f"no device {word}")


if __name__ == "__main__":
    announce(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "50")
    sys.stdout.write("holding\n")
    sys.stdout.flush()
    signal.pause()
