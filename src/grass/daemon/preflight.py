"""Checks certificate, pass phrase, address and database before a daemon starts.

`grass restart` runs these checks while the old daemon still runs, so that a mistake
does not leave the machine without a daemon. The broker opens everything again.
"""

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from grass.config import Home
from grass.daemon.hosting import Hosting
from grass.errors import GrassError, Refused
from grass.event_log import EventLog
from grass.model.addresses import DEFAULT_PORT, Address, is_loopback
from grass.setting_values import SQLITE

log = EventLog("grass.daemon")

PASS_VARIABLE = "GRASS_CERT_PASS"  # noqa: S105 -- a name, not a secret


def check_tcp(home: Home, hosting: Hosting, held: Address | None) -> None:
    """Raise if the key or the address cannot be used.

    `held` is the address of the daemon that is to be replaced: its port becomes free.
    """
    if hosting.bind is None:
        return
    from grass.tls.server import identity

    identity(home.folder, hosting.cert, lambda: pass_phrase(hosting.cert_pass_file))
    _check_address(hosting.bind, held)


def check_database(home: Home, url: str) -> None:
    """Raise if the database cannot be opened, or has the queue of another cluster."""
    if url == SQLITE:
        return
    from grass.daemon.database.open_store import refuse_other_cluster

    refuse_other_cluster(home, url)


def _check_address(bind: Address, held: Address | None) -> None:
    """Raise if the address is not this machine's, or the port is in use."""
    from grass.api.server.listen_sockets import bound

    try:
        trial = bound(bind)
    except Refused as error:
        is_taken = getattr(error.__cause__, "errno", None) == errno.EADDRINUSE
        if is_taken and held is not None and held.port == bind.port:
            return
        raise
    for listener in trial:
        listener.close()


def with_loopback_name(hosting: Hosting) -> Hosting:
    """Warn of a loopback address, and advertise the broker by it."""
    bind = hosting.bind
    if bind is None or hosting.advertise or not is_loopback(bind.host):
        return hosting
    log.warning("bind.loopback", address=bind, message=only_here(bind))
    return hosting._replace(advertise=bind.host)


def only_here(address: Address) -> str:
    """Explain that other machines cannot reach an address."""
    open_to_all = Address("0.0.0.0", address.port or DEFAULT_PORT)  # noqa: S104
    return (
        f"only this machine can reach {address.host}: "
        f"--bind {open_to_all} lets others in"
    )


def ask_pass_phrase(hosting: Hosting) -> None:
    """Ask for the pass phrase of a certificate on a terminal, if necessary.

    The broker starts in an event loop, which handles signals, so that Ctrl-C could not
    end a prompt there.
    """
    is_told = hosting.cert_pass_file is not None or PASS_VARIABLE in os.environ
    if hosting.cert is None or is_told or not sys.stdin.isatty():
        return
    from grass.tls.key_files import read_pkcs12

    read_pkcs12(hosting.cert, _asked)


def _asked() -> bytes | None:
    # Imported on use: most daemons have no such certificate.
    import getpass

    with _ended_by_sigterm():
        try:
            phrase = getpass.getpass("Pass phrase of the certificate: ")
        except EOFError:
            return None
    # The broker reads it there, and removes it.
    os.environ[PASS_VARIABLE] = phrase
    return os.fsencode(phrase)


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that the prompt restores the echo."""

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def pass_phrase(file: str | None) -> bytes | None:
    """Return the pass phrase from a file or the environment, if there is one."""
    if file is None:
        phrase = os.environ.get(PASS_VARIABLE)
        return None if phrase is None else os.fsencode(phrase)
    try:
        return Path(file).read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise GrassError(f"--cert-pass-file {file}: {error.strerror}") from error
