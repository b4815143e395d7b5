"""Run a task host: `python -m grass.tasks.host BACKEND PATIENCE`, as a job."""

from __future__ import annotations

import os
import sys

import anyio

from grass.config import CHANNEL_VARIABLE
from grass.tasks import variables


def main(words: list[str]) -> int:
    """Serve the program that has enqueued this job."""
    path = os.environ.pop(CHANNEL_VARIABLE, None)
    if path is None:
        sys.stderr.write(
            "grass: a task host is a job of `run_combine`, and runs once: run the"
            " program again\n"
        )
        return 2
    from grass.tasks.host.host_program import HostProgram
    from grass.tasks.host.socket_transport import Listener

    backend, patience_s = words
    host = HostProgram(Listener(path), backend, float(patience_s))
    variables.in_child.set(True)
    os.environ[variables.HOST_VARIABLE] = os.environ.get("GRASS_JOB_ID", "")
    anyio.run(host.run, backend="asyncio")
    if host.problem:
        sys.stderr.write(f"grass: {host.problem}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    # Coroutine functions that do not end would be waited for.
    os._exit(1 if host.problem else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
