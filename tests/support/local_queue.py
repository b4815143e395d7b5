"""A scheduler of one host, for templates: real commands and real processes.

`python local_queue.py FOLDER submit|check|list|cancel ...`; a job is a script that is
read from the input. While the folder has a file `hung`, no command answers.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MOST_GPUS = 2
HUNG = "hung"


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("verb", choices=["submit", "check", "list", "cancel"])
    for option in ("--name", "--mark", "--output", "--directory"):
        parser.add_argument(option, default="")
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("ids", nargs="*")
    given = parser.parse_args()
    while (given.folder / HUNG).exists():
        time.sleep(0.01)
    if given.verb == "list":
        return _list(given)
    if given.verb == "cancel":
        return _cancel(given)
    script = sys.stdin.read()
    if given.gpus > MOST_GPUS:
        sys.stderr.write(f"no node has {given.gpus} GPUs\n")
        return 1
    if given.verb == "check":
        sys.stdout.write("would start now\n")
        return 0
    sys.stdout.write(f"queued as job {_start(given, script)}\n")
    return 0


def _start(given: argparse.Namespace, script: str) -> int:
    with Path(given.output).open("ab") as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=given.directory,
            start_new_session=True,
        )
    number = process.pid
    (given.folder / str(number)).write_text(f"{given.name}|{given.mark}")
    return number


def _list(given: argparse.Namespace) -> int:
    sys.stdout.write("ID|STATE|NAME|MARK\n")
    for job in sorted(given.folder.glob("[0-9]*")):
        state = "runs" if _is_alive(int(job.name)) else "over"
        sys.stdout.write(f"{job.name}|{state}|{job.read_text()}\n")
    return 0


def _cancel(given: argparse.Namespace) -> int:
    code = 0
    for number in given.ids:
        if (given.folder / number).exists() and _is_alive(int(number)):
            os.killpg(int(number), signal.SIGTERM)
        else:
            sys.stderr.write(f"job {number} is over\n")
            code = 1
    return code


def _is_alive(number: int) -> bool:
    try:
        text = Path(f"/proc/{number}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


if __name__ == "__main__":
    sys.exit(main())
