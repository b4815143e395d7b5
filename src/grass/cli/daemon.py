"""`grass daemon`: run the daemon in the foreground.

With `--detached`, which `grass start` uses, it first lets go of everything its caller
had: descriptors, directory, umask, parent.
"""

import os

from grass.cli.options import Command, Option, at_most, read
from grass.client.autostart import forget_stop
from grass.config import home
from grass.errors import UsageError

OPTIONS = (
    Option("--detached", hidden=True),
    Option("--ready-fd", "N", hidden=True),
    Option("--no-starts", hidden=True),
)
_HIGHEST_DESCRIPTOR = 2**31 - 1


def run(words: list[str]) -> int:
    """Serve until told to stop."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    ready = values.whole_number("ready_fd")
    detached = values.has("detached")
    if detached:
        if ready is None:
            raise UsageError("--detached needs --ready-fd")
        _detach(ready)
    else:
        forget_stop(home())
    from grass.daemon.main import main

    starts_jobs = not values.has("no_starts")
    return main(home(), ready=ready, foreground=not detached, starts_jobs=starts_jobs)


def _detach(ready: int) -> None:
    os.closerange(3, ready)
    os.closerange(ready + 1, _HIGHEST_DESCRIPTOR)
    os.set_inheritable(ready, False)
    os.chdir("/")
    os.umask(0o077)
    if os.fork():
        os._exit(0)


COMMAND = Command(
    usage="",
    about=(
        "Run the daemon in the foreground, broker and worker in one, until Ctrl-C or "
        "`grass stop`. Running jobs go on without it."
    ),
    options=OPTIONS,
    examples=("grass daemon",),
    run=run,
)
