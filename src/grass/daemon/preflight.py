"""What a broker needs to let other machines in, looked at before it starts.

A daemon that cannot start is worse than one that was not restarted. So the certificate,
its pass phrase and the address are tried while another daemon may still run. What is
found here is not kept: the broker opens all of it again.
"""

import contextlib
import errno
import getpass
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from grass.config import Home
from grass.daemon.hosting import Hosting
from grass.errors import GrassError, Refused
from grass.logs import EventLog
from grass.model.addresses import DEFAULT_PORT, Address, is_loopback

log = EventLog("grass.daemon")

PASS_VARIABLE = "GRASS_CERT_PASS"  # noqa: S105 -- a name, not a secret


def check_entrance(home: Home, hosting: Hosting, held: Address | None) -> None:
    """Refuse a key that cannot be used, or an address that cannot be one.

    `held` is where the daemon listens that is to be replaced: its port gets free.
    """
    if hosting.bind is None:
        return
    from grass.tls.server import identity

    identity(home.folder, hosting.cert, lambda: pass_phrase(hosting.cert_pass_file))
    _check_place(hosting.bind, held)


def _check_place(bind: Address, held: Address | None) -> None:
    """Refuse an address that is not this machine's, or a port that is taken."""
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


def called(hosting: Hosting) -> Hosting:
    """Have a broker that only this machine can reach say so, and call it by that."""
    bind = hosting.bind
    if bind is None or hosting.advertise or not is_loopback(bind.host):
        return hosting
    log.warning("bind.loopback", address=bind, message=only_here(bind))
    return hosting._replace(advertise=bind.host)


def only_here(address: Address) -> str:
    """Say that an address leads nowhere on other machines."""
    open_to_all = Address("0.0.0.0", address.port or DEFAULT_PORT)  # noqa: S104
    return (
        f"only this machine can reach {address.host}: "
        f"--bind {open_to_all} lets others in"
    )


def ask_ahead(hosting: Hosting) -> None:
    """Ask for the pass phrase of a certificate, if somebody has to be asked.

    The broker starts in an event loop, which takes signals as its own. Nobody could
    leave a prompt there.
    """
    is_told = hosting.cert_pass_file is not None or PASS_VARIABLE in os.environ
    if hosting.cert is None or is_told or not sys.stdin.isatty():
        return
    from grass.tls.key_files import read_pkcs12

    read_pkcs12(hosting.cert, _asked)


def _asked() -> bytes | None:
    with _ended_by_sigterm():
        try:
            phrase = getpass.getpass("Pass phrase of the certificate: ")
        except EOFError:
            return None
    # Where the broker looks for it, and takes it away.
    os.environ[PASS_VARIABLE] = phrase
    return os.fsencode(phrase)


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the process as an exception, so that the terminal is put right.

    A prompt for a pass phrase has turned its echo off.
    """

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def pass_phrase(file: str | None) -> bytes | None:
    """Return the pass phrase of a certificate, if it was said where to find it."""
    if file is None:
        phrase = os.environ.get(PASS_VARIABLE)
        return None if phrase is None else os.fsencode(phrase)
    try:
        return Path(file).read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise GrassError(f"--cert-pass-file {file}: {error.strerror}") from error
