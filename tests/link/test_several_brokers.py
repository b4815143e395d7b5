"""A worker that knows several brokers, of which one leads, over TLS on loopback."""

import json
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

import pytest
import uvloop
from websockets.datastructures import Headers
from websockets.http11 import Response

from grass.errors import LeadLost, Unauthorized, Untrusted
from grass.link import dialer
from grass.link.messages import Hello
from grass.model.addresses import Address
from grass.tls.server import ServerIdentity
from tests.link.dialling import Owner, closed_port, dialling
from tests.link.far_broker import FarBroker, an_identity, far_broker

Story = Callable[[FarBroker, FarBroker], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> ServerIdentity:
    return an_identity(tmp_path_factory.mktemp("brokers"))


def with_two(known: ServerIdentity, story: Story) -> None:
    """Run a test with two brokers of one key."""

    async def whole() -> None:
        context = known.context
        async with far_broker(context) as first, far_broker(context) as second:
            await story(first, second)

    uvloop.run(whole())


def standing_by(leader: Address | None) -> Response:
    """Return what a broker answers that does not lead."""
    problem = {"code": LeadLost.code, "detail": "it stands by"}
    if leader is not None:
        problem["leader"] = str(leader)
    status = HTTPStatus.SERVICE_UNAVAILABLE
    return Response(status, status.phrase, Headers(), json.dumps(problem).encode())


async def lost(broker: FarBroker) -> None:
    """End a broker as SIGKILL does: nobody listens, and connections break."""
    broker.server.close()
    for connection in broker.connections:
        connection.transport.abort()
    await broker.server.wait_closed()


def test_a_broker_names_the_others_as_soon_as_it_welcomes(
    known: ServerIdentity,
) -> None:
    """It may die before the first heartbeat is due."""

    async def story(first: FarBroker, second: FarBroker) -> None:
        first.brokers = (str(first.address), str(second.address))
        told: list[list[Address]] = []
        async with dialling(first.address, pin=known.pin) as owner:
            owner.dialer.on_brokers = told.append
            await first.until_heard(Hello)
            await welcomed(owner)
            await lost(first)
            await second.until_heard(Hello)
        assert told == [[first.address, second.address]]

    with_two(known, story)


def test_an_address_that_works_is_kept_though_no_broker_tells_of_it(
    known: ServerIdentity,
) -> None:
    async def story(first: FarBroker, _: FarBroker) -> None:
        alias, told = Address("localhost", first.address.port), list[list[Address]]()
        others = [closed_port(), closed_port()]
        first.brokers = tuple(map(str, others))
        async with dialling(alias, pin=known.pin) as owner:
            owner.dialer.on_brokers = told.append
            await first.until_heard(Hello)
            await welcomed(owner)
            first.connections[0].transport.abort()
            await first.until(lambda: len(first.requests) > 1)
        assert told == [[alias, *others]]

    with_two(known, story)


def test_brokers_that_a_command_was_told_of_are_dialled(known: ServerIdentity) -> None:
    async def story(first: FarBroker, second: FarBroker) -> None:
        async with dialling(first.address, pin=known.pin) as owner:
            await first.until_heard(Hello)
            owner.dialer.known_brokers = lambda: [second.address]
            await lost(first)
            await second.until_heard(Hello)

    with_two(known, story)


def test_the_leader_that_a_standby_names_is_dialled_at_once(
    known: ServerIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialer, "SHORTEST_PAUSE_S", 1e9)
    monkeypatch.setattr(dialer, "SEVERAL_PAUSE_S", 1e9)

    async def story(first: FarBroker, second: FarBroker) -> None:
        first.refusal = standing_by(second.address)
        async with dialling(first.address, pin=known.pin):
            await second.until_heard(Hello)

    with_two(known, story)


def test_a_leader_that_is_gone_and_still_named_is_no_way_round_the_others(
    known: ServerIdentity,
) -> None:
    async def story(first: FarBroker, second: FarBroker) -> None:
        gone = closed_port()
        first.refusal = standing_by(gone)
        async with dialling(first.address, gone, second.address, pin=known.pin):
            await second.until_heard(Hello)

    with_two(known, story)


def test_only_a_refusal_of_the_leader_is_retried_slowly() -> None:
    places = [Address("desk", 7500), Address("rack", 7500)]
    worker = dialer.Dialer(places, "pin", str, "w1")
    refused = Unauthorized("this token was revoked")
    for failure in (Untrusted("another key"), None, refused):
        worker._pauses.refused()
        is_short = worker._pause_s(failure) <= dialer.SEVERAL_PAUSE_S
        assert is_short is (failure is not refused)


def test_a_standby_is_asked_again_until_it_leads(known: ServerIdentity) -> None:
    async def story(first: FarBroker, second: FarBroker) -> None:
        first.refusal = second.refusal = standing_by(None)
        async with dialling(first.address, second.address, pin=known.pin):
            await first.until(lambda: len(first.requests) > 1)
            second.refusal = None
            await second.until_heard(Hello)

    with_two(known, story)


def test_a_broker_that_accepts_and_says_nothing_is_left_for_another(
    known: ServerIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has just lost the lead, or hangs: its heartbeats are not answered."""
    monkeypatch.setattr(dialer, "SEVERAL_SILENCE_S", 0.3)
    monkeypatch.setattr(dialer, "SEVERAL_HEARTBEAT_S", 0.1)

    async def story(first: FarBroker, second: FarBroker) -> None:
        first.answers = False
        async with dialling(first.address, second.address, pin=known.pin):
            await first.until_heard(Hello)
            await second.until_heard(Hello)

    with_two(known, story)


async def welcomed(owner: Owner) -> None:
    while (await owner.phase())[0] is not dialer.Phase.WELCOMED:
        pass
