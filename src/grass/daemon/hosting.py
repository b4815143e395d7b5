"""What a daemon hosts: a broker, a worker or both, and where they listen.

These are the checked options of `grass daemon`. They are saved in the state directory
for `grass restart`, and for a command that has to start the daemon again.
"""

import contextlib
import json
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple

from grass.client.credentials import Credentials, JoinedBroker
from grass.client.private_files import replace_private
from grass.config import Home
from grass.errors import GrassError, NoBroker, UsageError
from grass.model.addresses import Address, read_address
from grass.model.durations import SHORTEST_LEASE_S

DEFAULT_LEASE_S = 60.0
_REMOTE_BROKER = ("--connect=", "--no-broker")
"""Saved options that choose the broker of another machine."""


class StandbyAnswers(NamedTuple):
    """What a daemon answers whose own broker stands by."""

    refusal: Callable[[], GrassError]
    """To what is the broker's."""
    brokers: Callable[[], object]
    """To who asks for the brokers."""


class Hosting(NamedTuple):
    """Which parts a daemon has, and their options."""

    bind: Address | None = None
    """Where the broker listens for other machines; None: only for this one."""
    advertise: str | None = None
    """The host, and maybe the port, by which others reach it."""
    cert: str | None = None
    cert_pass_file: str | None = None
    has_worker: bool = True
    connect: tuple[Address, ...] = ()
    """The broker to work for; without one the daemon is a broker itself."""
    is_worker_only: bool = False
    labels: tuple[str, ...] = ()
    lease_s: float | None = None
    """Attempts here end after this long without the broker; None: never."""
    name: str = ""
    gpus: str | None = None
    """The GPUs to manage, as CUDA_VISIBLE_DEVICES is written; None: all."""
    starts_jobs: bool = True
    store: str | None = None
    """The broker's database, `sqlite` or a URL; None: as the settings say."""
    log_format: str | None = None
    """`text` or `json`; None: as the settings say."""
    words: tuple[str, ...] = ()
    """The options as they were written."""

    @property
    def machine(self) -> str:
        """The name of this machine's worker."""
        return self.name or socket.gethostname()

    @property
    def stays_broker(self) -> bool:
        """Whether the daemon has its own queue even where it has joined a broker."""
        return self.bind is not None or not self.has_worker


class RemoteBroker(NamedTuple):
    """The broker that a worker works for."""

    addresses: tuple[Address, ...]
    known: JoinedBroker


def checked(hosting: Hosting) -> Hosting:
    """Raise if options contradict each other."""
    worker_only = hosting.is_worker_only or bool(hosting.connect)
    if worker_only and hosting.bind is not None:
        raise UsageError("--bind is for a broker, --connect for a worker", "give one")
    if worker_only and not hosting.has_worker:
        raise UsageError("with neither broker nor worker there is nothing to host")
    if worker_only and hosting.store is not None:
        raise UsageError("--store is for a broker, --connect for a worker", "give one")
    if hosting.bind is None and (hosting.cert or hosting.advertise):
        raise UsageError("--cert and --advertise go with --bind HOST:PORT")
    if hosting.advertise:
        read_address(hosting.advertise)
    if hosting.cert_pass_file is not None and hosting.cert is None:
        raise UsageError(
            "--cert-pass-file is for the certificate of --cert, which is not given",
            "give --cert FILE too, or leave both out: the daemon makes its own",
        )
    if hosting.lease_s is not None and hosting.lease_s < SHORTEST_LEASE_S:
        raise UsageError(f"--lease is at least {SHORTEST_LEASE_S:g}s")
    return hosting._replace(is_worker_only=worker_only)


def _may_work(known: JoinedBroker) -> bool:
    # Imported on use: most machines have joined no broker.
    from grass.model.access import may_work

    return may_work(known.role)


def remote_broker(home: Home, hosting: Hosting) -> RemoteBroker | None:
    """Return the broker that this daemon works for; None: it has its own."""
    if hosting.stays_broker:
        _refuse_lease(hosting)
        return None
    joined = Credentials.load(home)
    known = next(filter(None, map(joined.by_address, hosting.connect)), None)
    known = known or joined.current()
    if known is None or not _may_work(known):
        if not hosting.is_worker_only:
            _refuse_lease(hosting)
            return None
        raise _not_joined(hosting.connect)
    return RemoteBroker(hosting.connect or known.addresses, known)


def _not_joined(addresses: tuple[Address, ...]) -> NoBroker:
    """Return the error of a worker whose broker this machine has not joined."""
    if not addresses:
        return NoBroker(
            "this machine has not joined a broker as a worker",
            "paste the line that the broker prints: grass join HOST:PORT/PIN/CODE",
        )
    return NoBroker(
        f"this machine has not joined the broker at {addresses[0]} as a worker",
        "paste the line that `grass token new` prints there:"
        f" grass join {addresses[0]}/PIN/CODE; for a queue of its own:"
        " `grass start --fresh`",
    )


def _refuse_lease(hosting: Hosting) -> None:
    if hosting.lease_s is not None:
        raise UsageError(
            "--on-disconnect is for a worker of another machine's broker",
            "join that one first: grass join HOST:PORT/PIN/CODE",
        )


def with_worker_name(hosting: Hosting, works_for: RemoteBroker) -> Hosting:
    """Set the worker's name to that of its joining, unless --name was given."""
    return hosting._replace(name=hosting.name or works_for.known.name)


def save_options(home: Home, words: Sequence[str]) -> None:
    """Save the options for the next daemon here, if the disk has room."""
    with contextlib.suppress(GrassError):
        replace_private(home.options, json.dumps(list(words)))


def forget_remote_broker(home: Home, words: Sequence[str]) -> None:
    """Save the options without those that choose a broker."""
    _save_without(home, words, _REMOTE_BROKER)


def forget_name(home: Home, words: Sequence[str]) -> None:
    """Save the options without the worker's name, which the broker has chosen."""
    _save_without(home, words, ("--name=",))


def forget_worker_options(home: Home, words: Sequence[str]) -> None:
    """Save the options without those of a worker of another machine's broker."""
    _save_without(home, words, (*_REMOTE_BROKER, "--on-disconnect=", "--lease="))


def _save_without(home: Home, words: Sequence[str], dropped: tuple[str, ...]) -> None:
    save_options(home, [word for word in words if not word.startswith(dropped)])
