"""The program of a pilot: a worker's daemon for as long as the engine lets it run.

It is run as a file, with the path of another one that holds a token, which is removed
once it was read. The home of the worker is a new folder on this host, as a state
directory does not belong on a network file system; it is removed at the end.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from types import FrameType
from typing import Any

ALLOTTED = "GRASS_ALLOTTED"
"""Cores and MiB that the engine has given, which the worker does not exceed."""


def main(path: str) -> int:
    """Run the worker, and return its exit code."""
    with open(path, encoding="ascii") as file:
        told = json.load(file)
    os.unlink(path)
    home = tempfile.mkdtemp(prefix="grass-pilot-")
    try:
        _write(os.path.join(home, "brokers.json"), json.dumps(told["known"]))
        return _run(home, told)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _run(home: str, told: dict[str, Any]) -> int:
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    command = [sys.executable, "-I", os.path.join(root, "__main__.py"), "daemon"]
    environment = {**os.environ, "GRASS_HOME": home, ALLOTTED: _allotted(told)}
    if not told["gpus"]:
        # Many engines leave every GPU of a host visible to jobs that asked for none.
        environment["CUDA_VISIBLE_DEVICES"] = ""
    with subprocess.Popen([*command, *told["words"]], env=environment) as process:

        def stop(number: int, _frame: FrameType | None) -> None:
            process.send_signal(number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        return process.wait()


def _allotted(told: dict[str, Any]) -> str:
    """Return what the engine gave, as `cores,MiB`; either may be empty.

    Slurm says it. Of other engines it is what they were asked for.
    """
    cores = os.environ.get("SLURM_CPUS_ON_NODE", told["cpus"])
    memory = os.environ.get("SLURM_MEM_PER_NODE", told["memory_mib"] or "")
    return f"{cores},{memory}"


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
