"""The cluster that this machine's own broker is of, and its token there.

While another broker leads, this machine's worker works for that one, and commands here
call it. Both need a token, which a leader makes for its own machine as soon as it leads
for the first time. A machine that joins as a standby gets its token by joining.
"""

import time
from typing import TYPE_CHECKING

from grass.broker.shell.new_secrets import new_secret, new_token_call
from grass.broker.shell.service import Broker
from grass.client.credentials import Credentials, JoinedBroker
from grass.config import Home
from grass.daemon.hosting import Hosting
from grass.daemon.worker_setup import worker_id
from grass.errors import GrassError
from grass.event_log import EventLog
from grass.model.access import hash_of, numbered, split_token, token_name, token_text
from grass.model.addresses import read_address
from grass.model.times import rfc3339

if TYPE_CHECKING:
    from grass.daemon.tcp_access import TcpAccess

log = EventLog("grass.daemon")

ROLE = "broker"
ACTOR = "daemon"


async def note_own_cluster(
    home: Home, hosting: Hosting, broker: Broker, tcp: "TcpAccess | None"
) -> None:
    """Make a token for this machine, unless it has one of this cluster."""
    if tcp is None:
        return
    known = Credentials.load(home).own
    if known is not None and known.pin == tcp.identity.pin and _holds(broker, known):
        return
    try:
        name, token = await _new_token(hosting, broker, worker_id(home))
    except GrassError as error:
        log.warning("lead.own_token", error=error)
        return
    own = JoinedBroker(
        pin=tcp.identity.pin,
        token=token,
        role=ROLE,
        name=name,
        addresses=(read_address(tcp.endpoint.address),),
        cluster=broker.state.cluster,
        joined_at=rfc3339(time.time_ns() // 1000) or "",
    )
    Credentials.load(home).set_own(own)


def _holds(broker: Broker, known: JoinedBroker) -> bool:
    name, secret = split_token(known.token)
    token = broker.state.tokens.get(name)
    return token is not None and token.fits(hash_of(secret))


async def _new_token(hosting: Hosting, broker: Broker, worker: str) -> tuple[str, str]:
    """Make a token with the first name that is free, like that of this machine."""
    secret, wanted = new_secret(), token_name(hosting.machine)
    name = next(one for one in numbered(wanted) if one not in broker.state.tokens)
    call = new_token_call(ACTOR, secret, ROLE, name, is_code=False)
    call.worker = worker
    await broker.call(call)
    return name, token_text(name, secret)
