"""Who dials a standby: only what a worker does tells that the leader is cut off."""

import asyncio
from typing import Any

import pytest

from grass.broker.shell.candidacy import Candidacy
from grass.daemon.leading.standby_host import refusal
from grass.link.remote_end import WORKER_HEADER
from grass.model.access import Token, hash_of
from grass.model.brokers import BrokerPresence
from grass.store.changes import Changes
from tests.simulation.memory_store import MemoryStore, new_disk

OWN, WORKER = "00000000000000f1", "00000000000000f9"
LINK, TOKEN = "/api/v1/link", "Bearer rack.secret"


def with_tokens() -> MemoryStore:
    """Make a store that knows a machine, and some that may not work."""
    store, hashed = MemoryStore(new_disk("0" * 16)), hash_of("secret")
    known = [
        Token("rack", "machine", hashed, 1, "root"),
        Token("reader", "read", hashed, 1, "root"),
        Token("code", "machine", hashed, 1, "root", is_code=True),
        Token("old", "machine", hashed, 1, "root", expires_at=2),
    ]
    store.commit(Changes(tokens={one.name: one for one in known}))
    return store


@pytest.mark.parametrize(
    ("path", "worker", "token", "asks"),
    [
        (LINK, WORKER, TOKEN, 1),
        (LINK, OWN, TOKEN, 0),
        (LINK, "", TOKEN, 0),
        (LINK, WORKER, "", 0),
        (LINK, WORKER, "Bearer rack.guess", 0),
        (LINK, WORKER, "Bearer nobody.secret", 0),
        (LINK, WORKER, "Bearer reader.secret", 0),
        (LINK, WORKER, "Bearer code.secret", 0),
        (LINK, WORKER, "Bearer old.secret", 0),
        ("/", WORKER, TOKEN, 0),
    ],
)
def test_only_a_worker_that_dials_the_link_is_counted(
    path: str, worker: str, token: str, asks: int
) -> None:
    async def dial() -> None:
        fields = {WORKER_HEADER.lower(): worker, "authorization": token}
        headers = [(name.encode(), text.encode()) for name, text in fields.items()]
        scope: dict[str, Any] = {"type": "websocket", "path": path, "headers": headers}
        scope |= {"query_string": b"", "scheme": "wss", "server": ("rack", 7500)}
        scope["extensions"] = {"websocket.http.response": {}}
        said: list[Any] = []

        async def receive() -> dict[str, str]:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            said.append(message)

        me = BrokerPresence(id=OWN, address="rack:7500")
        candidacy = Candidacy(with_tokens(), me)
        await refusal(candidacy, candidacy.lost_error)(scope, receive, send)
        assert said[0]["status"] == 503
        assert candidacy._asks() == asks

    asyncio.run(dial())
