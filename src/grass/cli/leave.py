"""`grass leave`: forget a broker that this machine has joined."""

from __future__ import annotations

from grass.cli.options import JSON, Command, at_most, read
from grass.cli.printing import print_document, say
from grass.client.autostart import remembered
from grass.client.connection import open_connection
from grass.client.credentials import Credentials, Known
from grass.config import home
from grass.daemon.hosting import forget_employer
from grass.errors import NotFound
from grass.model.addresses import read_address
from grass.model.rights import ROLES, Right

OPTIONS = (JSON,)


def run(words: list[str]) -> int:
    """Forget the token of a broker."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 1)
    credentials = Credentials.load(home())
    left = _chosen(credentials, rest[0] if rest else None)
    credentials.remove(left.pin)
    forget_employer(home(), remembered(home()))
    now = credentials.current()
    if values.has("json"):
        current = None if now is None else now.place
        print_document({"left": left.place, "pin": left.pin, "current": current})
        return 0
    revoke = f"`grass token revoke {left.name}`"
    say(f"left the broker at {left.place}; {revoke} there ends the token")
    say(f"commands go to {'this machine' if now is None else now.place} from now on")
    if Right.WORK in ROLES.get(left.role, frozenset()) and _runs():
        say("this machine's daemon works for it until `grass restart`")
    return 0


def _chosen(credentials: Credentials, word: str | None) -> Known:
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


def _runs() -> bool:
    connection = open_connection(home().socket)
    if connection is None:
        return False
    connection.close()
    return True


COMMAND = Command(
    usage="[--json] [ADDRESS]",
    about=(
        "Forget the broker that was joined last, or the one at an address, and this "
        "machine's token for it. The token itself is revoked at the broker, with "
        "`grass token revoke NAME`."
    ),
    options=OPTIONS,
    examples=("grass leave", "grass leave my.server.com:7500"),
    run=run,
)
