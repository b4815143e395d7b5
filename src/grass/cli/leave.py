"""`grass leave`: forget a broker that this machine has joined."""

from __future__ import annotations

from shlex import quote

from grass.cli.hosting_options import HOSTING, hosting_of
from grass.cli.options import JSON, Command, at_most, read
from grass.cli.printing import print_document, say
from grass.cli.start import is_running
from grass.client.autostart import remembered
from grass.client.client import Client
from grass.client.credentials import Credentials, Known
from grass.config import LOCAL, home
from grass.daemon.hosting import Employer, employer, forget_employment
from grass.errors import GrassError, NotFound
from grass.model.addresses import read_address
from grass.model.rights import ROLES, Right

OPTIONS = (JSON,)


def run(words: list[str]) -> int:
    """Forget the token of a broker."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 1)
    credentials = Credentials.load(home())
    left = _chosen(credentials, rest[0] if rest else None)
    works_for = _employer()
    credentials.remove(left.pin)
    if works_for is None or works_for.known.pin == left.pin:
        forget_employment(home(), remembered(home()))
    now = credentials.current()
    if values.has("json"):
        current = None if now is None else now.place
        print_document({"left": left.place, "pin": left.pin, "current": current})
        return 0
    revoke = f"`grass token revoke {quote(left.name)}`"
    say(f"left the broker at {left.place}; {revoke} there ends the token")
    say(f"commands go to {'this machine' if now is None else now.place} from now on")
    if _still_works_for(left, works_for):
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


def _employer() -> Employer | None:
    """Find the broker that the daemon works for, by the options that it had."""
    try:
        return employer(home(), hosting_of(read(HOSTING, remembered(home()))[0]))
    except GrassError:
        return None


def _still_works_for(left: Known, works_for: Employer | None) -> bool:
    """Ask the daemon that runs: joining and leaving may have changed its options."""
    if Right.WORK not in ROLES.get(left.role, frozenset()) or not is_running():
        return False
    with Client(may_start=False, broker=LOCAL) as client:
        broker = client.overview()["daemon"].get("broker")
    if not broker:
        return False
    places = set(left.addresses)
    if works_for is not None and works_for.known.pin == left.pin:
        places.update(works_for.addresses)
    return not places.isdisjoint(map(read_address, broker["address"].split(",")))


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
