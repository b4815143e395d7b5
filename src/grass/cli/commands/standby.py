"""The part of `grass join` that makes this machine a standby of the brokers.

The line is one of `grass token new --role broker`. The broker gives its key only to
such a code, over the connection that has proved that key. It is kept in the state
directory, where only its owner may read it, and this machine's daemon gets it.
"""

from __future__ import annotations

import os
import time

from grass.cli.commands.start import report, start_daemon
from grass.cli.commands.stop import stop_daemon
from grass.cli.parsing.hosting_options import last_hosting, name_of, store_of
from grass.cli.printing.streams import print_document, say
from grass.client.client import Client
from grass.client.credentials import Credentials, JoinedBroker
from grass.client.private_files import create_private
from grass.config import KEY_FILE
from grass.errors import GrassError, Refused
from grass.model.addresses import Address, read_address
from grass.model.times import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.cli.parsing.options import Values
    from grass.client.json_codec import Document
    from grass.config import Home
    from grass.model.addresses import Invitation

ANYWHERE = "0.0.0.0"  # noqa: S104 -- a broker is for other machines


def join_as_standby(
    place: Home,
    invitation: Invitation,
    values: Values,
    name: str,
    identity: tuple[str, str],
) -> int:
    """Join the brokers of a cluster, and start a daemon that stands by."""
    wanted = name_of(values) or last_hosting().name or name
    # These come first: a code is good for one try.
    store = store_of(values)
    _refuse_own_queue(place, invitation)
    with Client.invited(place, invitation) as client:
        told = client.join(invitation.code, wanted, *identity, standby=True)
    _put_key(place, told["key"])
    known = _known(invitation, told)
    Credentials.load(place).set_own(known)
    if values.has("no_start"):
        _report_joined(known, values)
        return 0
    stop_daemon(jobs=False)
    pid, started = start_daemon(_options(invitation, values, told, store))
    if values.has("json"):
        print_document({**_document(known), "pid": pid})
    else:
        _report_joined(known, values)
        report(pid, started=started, as_json=False)
    return 0


def _refuse_own_queue(place: Home, invitation: Invitation) -> None:
    """Refuse a home that has the queue of another cluster than the one it joins."""
    from grass.daemon.database.database_loss import written_cluster

    cluster, own = written_cluster(place), Credentials.load(place).own
    is_known = own is not None and (own.pin, own.cluster) == (invitation.pin, cluster)
    if cluster is not None and not is_known:
        raise Refused(
            f"this home has a queue of its own, that of cluster {cluster}",
            "set another GRASS_HOME to stand by; without --standby this machine"
            " becomes a worker of that broker",
        )


def _put_key(place: Home, text: str) -> None:
    """Keep the brokers' key; one that is there already must be the same."""
    path = os.path.join(place.folder, KEY_FILE)
    create_private(path, text)
    with open(path, encoding="ascii") as file:
        if file.read() != text:
            raise GrassError(
                f"this machine has been a broker with another key ({path})",
                "remove that file if no machine has joined it, or set another"
                " GRASS_HOME",
            )


def _known(invitation: Invitation, told: Document) -> JoinedBroker:
    others = map(read_address, told["brokers"])
    return JoinedBroker(
        pin=invitation.pin,
        token=told["token"],
        role=told["role"],
        name=told["name"],
        addresses=tuple(dict.fromkeys((invitation.address, *others))),
        cluster=told["cluster"],
        joined_at=rfc3339(time.time_ns() // 1000) or "",
    )


def _options(
    invitation: Invitation, values: Values, told: Document, store: str | None
) -> list[str]:
    bind = values.text("bind") or str(Address(ANYWHERE, invitation.address.port))
    words = [f"--bind={bind}", f"--store={store or told['store']}"]
    if values.has("advertise"):
        words.append(f"--advertise={values.text('advertise')}")
    return [*words, f"--name={told['name']}"]


def _report_joined(known: JoinedBroker, values: Values) -> None:
    if values.has("json"):
        print_document(_document(known))
    else:
        say(f"joined the brokers at {known.place} as {known.name}, to stand by")


def _document(known: JoinedBroker) -> Document:
    return {
        "broker": known.place,
        "pin": known.pin,
        "cluster": known.cluster,
        "name": known.name,
        "role": known.role,
    }
