"""Connections as they are counted: strangers, friends, and how each leaves."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from grass.api import guests
from grass.api.guests import Guest, Guests
from grass.model.token import Token, hash_of

Told = list[str]


def within(story: Callable[[Guests, Told], Coroutine[Any, Any, None]]) -> None:
    """Tell a story with an event loop, and note who was hung up on."""

    async def told() -> None:
        await story(Guests(), [])

    asyncio.run(told())


def come(house: Guests, dropped: Told, host: str, name: str = "") -> Guest:
    guest = house.arrive(host, lambda: dropped.append(name or host))
    assert guest is not None
    return guest


def a_token(name: str = "t", secret: str = "s") -> Token:
    return Token(name, "read", hash_of(secret), 0, "uid:1")


def test_a_crowd_makes_room_among_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guests, "MOST_STRANGERS", 4)

    async def story(house: Guests, dropped: Told) -> None:
        come(house, dropped, "192.0.2.9", "alone")
        for number in range(6):
            come(house, dropped, "192.0.2.1", f"crowd {number}")
        assert dropped == ["crowd 0", "crowd 1", "crowd 2"]
        assert len(house.strangers) == 4
        house.close()

    within(story)


def test_many_addresses_of_one_network_are_one_crowd(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guests, "MOST_STRANGERS", 3)

    async def story(house: Guests, dropped: Told) -> None:
        come(house, dropped, "2001:db8:2::1", "alone")
        for number in range(4):
            come(house, dropped, f"2001:db8:1:1::{number}", f"crowd {number}")
        assert dropped == ["crowd 0", "crowd 1"]
        house.close()

    within(story)


@pytest.mark.parametrize(
    ("host", "shown", "place"),
    [
        ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("2001:db8::7", "2001:db8::7", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::1%eth0", "fe80::/64"),
        ("odd", "odd", "odd"),
    ],
)
def test_an_address_has_a_place(host: str, shown: str, place: str) -> None:
    async def story(house: Guests, dropped: Told) -> None:
        guest = come(house, dropped, host)
        assert (guest.host, guest.place) == (shown, place)
        guest.left()

    within(story)


def test_one_token_has_so_many_connections_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guests, "MOST_OF_ONE", 2)

    async def story(house: Guests, dropped: Told) -> None:
        token = a_token()
        first, second, third = (come(house, dropped, "192.0.2.1") for _ in range(3))
        assert first.identified(token)
        assert second.identified(token)
        assert not third.identified(token)
        assert third.identified(a_token("other"))
        assert first.identified(token)
        assert list(house.known) == [first, second, third]
        for guest in (first, second, third):
            guest.left()

    within(story)


def test_a_sweep_drops_whose_token_is_gone_or_replaced() -> None:
    async def story(house: Guests, dropped: Told) -> None:
        tokens = {name: a_token(name) for name in ("kept", "gone", "replaced")}
        for name, token in tokens.items():
            come(house, dropped, "192.0.2.1", name).identified(token)
        stranger = come(house, dropped, "192.0.2.1", "stranger")
        now = {"kept": tokens["kept"], "replaced": a_token("replaced", "another")}
        house.sweep(now)
        assert dropped == ["gone", "replaced"]
        stranger.left()
        assert not house.strangers

    within(story)


def test_who_has_left_is_neither_dropped_nor_trusted() -> None:
    async def story(house: Guests, dropped: Told) -> None:
        guest = come(house, dropped, "192.0.2.1")
        guest.left()
        guest.left()
        guest.drop()
        guest.identified(a_token())
        assert not dropped
        assert not house.known
        assert not house.strangers

    within(story)


def test_a_full_house_turns_away_whom_no_stranger_makes_room_for() -> None:
    async def story(house: Guests, dropped: Told) -> None:
        house.most_connections = 2
        friend = come(house, dropped, "192.0.2.1", "friend")
        friend.identified(a_token())
        come(house, dropped, "192.0.2.1", "stranger")
        later = come(house, dropped, "192.0.2.1", "later")
        assert dropped == ["stranger"]
        later.identified(a_token())
        assert house.arrive("192.0.2.1", lambda: None) is None
        assert dropped == ["stranger"]

    within(story)
