"""`grass daemon`: run the daemon in the foreground.

With `--detached`, which `grass start` uses, it first gives up its caller's descriptors,
directory, umask and parent.
"""

import gc
import os

from grass.cli.parsing.hosting_options import (
    HOSTING,
    choose_gpus,
    given,
    hosting_of,
)
from grass.cli.parsing.options import Command, Option, Values, at_most, read
from grass.client.autostart import forget_stop, remembered
from grass.config import home
from grass.errors import UsageError

OPTIONS = (
    *HOSTING,
    Option("--detached", hidden=True),
    Option("--ready-fd", "N", hidden=True),
    Option("--no-starts", hidden=True),
)
_HIGHEST_DESCRIPTOR = 2**31 - 1


def run(words: list[str]) -> int:
    """Serve until the daemon is stopped."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    detached = values.has("detached")
    if not detached:
        choose_gpus(values)
    hosting = hosting_of(values, _words(values))
    ready = values.whole_number("ready_fd")
    if detached:
        if ready is None:
            raise UsageError("--detached needs --ready-fd")
        _detach(ready)
    else:
        forget_stop(home())
    # No module and no row that a daemon loads at its start is garbage.
    gc.disable()
    from grass.daemon.run_daemon import run_daemon

    return run_daemon(home(), hosting, ready=ready, foreground=not detached)


def _words(values: Values) -> list[str]:
    """Return the options to remember: of a `--no-starts` daemon those of the last."""
    return remembered(home()) if values.has("no_starts") else given(values)


def _detach(ready: int) -> None:
    os.closerange(3, ready)
    os.closerange(ready + 1, _HIGHEST_DESCRIPTOR)
    os.set_inheritable(ready, False)
    os.chdir("/")
    os.umask(0o077)
    if os.fork():
        os._exit(0)


COMMAND = Command(
    usage="[OPTIONS]",
    about=(
        "Run the daemon in the foreground until Ctrl-C or `grass stop`: broker and "
        "worker in one, for this machine. With --bind other machines may join: it "
        "prints the line to paste there. With --connect, or on a machine that has "
        "joined, it is a worker of another machine's broker. Running jobs go on "
        "without it."
    ),
    options=OPTIONS,
    examples=(
        "grass daemon",
        "grass daemon --bind 0.0.0.0:7500 --no-worker --cert keyStore.p12",
        "grass daemon --connect my.server.com:7500 --label a100",
    ),
    run=run,
)
