"""`grass leave`: forget a broker that this machine has joined."""

from __future__ import annotations

from shlex import quote

from grass.cli.commands.start import is_running, works_for
from grass.cli.parsing.hosting_options import last_hosting
from grass.cli.parsing.options import JSON, Command, at_most, read
from grass.cli.printing.streams import print_document, say
from grass.client.autostart import remembered
from grass.client.client import Client
from grass.client.credentials import Credentials, JoinedBroker
from grass.config import LOCAL, home
from grass.daemon.hosting import (
    RemoteBroker,
    forget_worker_options,
    remote_broker,
)
from grass.errors import GrassError, NotFound
from grass.model.addresses import read_address

OPTIONS = (JSON,)


def run(words: list[str]) -> int:
    """Forget the token of a broker."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 1)
    credentials = Credentials.load(home())
    left = _chosen(credentials, rest[0] if rest else None)
    remote = _remote_broker()
    credentials.remove(left.pin)
    if remote is None or remote.known.pin == left.pin:
        forget_worker_options(home(), remembered(home()))
    now = credentials.current()
    if values.has("json"):
        current = None if now is None else now.place
        print_document({"left": left.place, "pin": left.pin, "current": current})
        return 0
    revoke = f"`grass token revoke {quote(left.name)}`"
    say(f"left the broker at {left.place}; {revoke} there ends the token")
    say(f"commands go to {'this machine' if now is None else now.place} from now on")
    if _still_works_for(left):
        say("this machine's daemon works for it until `grass restart`")
    return 0


def _chosen(credentials: Credentials, word: str | None) -> JoinedBroker:
    if word is None:
        found = credentials.current()
        if found is None:
            raise NotFound("this machine has joined no broker")
        return found
    found = credentials.by_pin(word) or credentials.by_address(read_address(word))
    if found is None:
        places = ", ".join(one.place for one in credentials.all) or "none"
        raise NotFound(f"this machine has not joined `{word}`", f"joined: {places}")
    return found


def _remote_broker() -> RemoteBroker | None:
    """Find the broker that the daemon works for, from its remembered options."""
    try:
        return remote_broker(home(), last_hosting())
    except GrassError:
        return None


def _still_works_for(left: JoinedBroker) -> bool:
    """Ask the running daemon: its remembered options may have changed since."""
    if not is_running():
        return False
    with Client(may_start=False, broker=LOCAL) as client:
        return works_for(client.overview()["daemon"], left)


COMMAND = Command(
    usage="[--json] [ADDRESS]",
    about=(
        "Forget the broker that was joined last, or the one at an address, and this "
        "machine's token for it. The next daemon here has no options any more that "
        "were for working there. The token itself is revoked at the broker, with "
        "`grass token revoke NAME`."
    ),
    options=OPTIONS,
    examples=("grass leave", "grass leave my.server.com:7500"),
    run=run,
)
