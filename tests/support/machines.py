"""Homes that are as if on machines of their own: a broker on loopback, and workers."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.homes import Document, GrassHome

LOOPBACK = ("--bind", "127.0.0.1:0", "--advertise", "127.0.0.1")
_LINE = re.compile(
    r"^grass join ((?:127\.0\.0\.1|\[::1\]):\d+/[\w-]{43}/[\w-]{22})$", re.MULTILINE
)

Machine = Callable[[str], GrassHome]


@contextmanager
def machines(folder: Path) -> Iterator[Machine]:
    """Make homes, each as if it were another machine's; the last one ends first.

    All of them end, also where one does not: what it leaves is no other's fault.
    """
    with ExitStack() as ends:

        def make(name: str) -> GrassHome:
            (folder / name).mkdir()
            home = GrassHome(folder / name)
            ends.callback(home.end)
            return home

        yield make


def invitation(printed: str) -> str:
    """Find what to join with in what a broker on loopback has printed."""
    found = _LINE.search(printed)
    assert found is not None, printed
    return found[1]


def place_of(invitation: str) -> str:
    """Give the address that an invitation leads to."""
    return invitation.partition("/")[0]


def new_line(broker: GrassHome, *options: str) -> str:
    """Have a broker invite somebody."""
    return invitation(broker.ok("token", "new", *options))


def join(broker: GrassHome, home: GrassHome, name: str) -> GrassHome:
    """Have a home work for the broker, which knows it then."""
    home.ok("join", "--name", name, new_line(broker))
    await_worker(broker, name, connected=True)
    return home


def copy_home(original: GrassHome, copy: GrassHome) -> GrassHome:
    """Have a home that was copied from another, as `cp -a` does.

    But for sockets: a keeper without a job removes its own meanwhile.
    """
    sockets = shutil.ignore_patterns("*.sock")
    shutil.copytree(
        original.folder, copy.folder, symlinks=True, dirs_exist_ok=True, ignore=sockets
    )
    return copy


def forget_others(broker: GrassHome, own: str) -> None:
    """Have a broker know nobody but its own worker, as before the first one joined."""
    for worker in broker.client.workers()["workers"]:
        if worker["name"] != own:
            await_worker(broker, worker["name"], connected=False)
            broker.client.forget_worker(worker["name"])
    for token in broker.client.tokens()["tokens"]:
        broker.client.revoke_token(token["name"])


def tcp_endpoint(home: GrassHome) -> object:
    """Return where a daemon listens for other machines, if it does."""
    home.client.close()
    return home.client.overview()["daemon"]["tcp"]


def worker_of(broker: GrassHome, name: str) -> Document | None:
    """Tell what a broker knows of a worker."""
    known = broker.client.workers()["workers"]
    return next((dict(one) for one in known if one["name"] == name), None)


def await_worker(broker: GrassHome, name: str, *, connected: bool) -> Document:
    """Wait until a worker is there, or is not; the journal tells when to look."""
    kind = "worker-connected" if connected else "worker-disconnected"
    with broker.client.beside() as aside:
        events = aside.follow_events(after=0, kind=kind)
        while True:
            known = worker_of(broker, name)
            if known is not None and known["connected"] is connected:
                return known
            next(events)
