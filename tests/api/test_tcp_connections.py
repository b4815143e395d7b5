"""Connections from other machines: counted, limited, and closed."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from grass.api import tcp_connections
from grass.api.tcp_connections import TcpConnection, TcpConnections
from grass.model.access import Token, hash_of

Told = list[str]


def within(story: Callable[[TcpConnections, Told], Coroutine[Any, Any, None]]) -> None:
    """Tell a story with an event loop, and note who was hung up on."""

    async def told() -> None:
        await story(TcpConnections(), [])

    asyncio.run(told())


def come(
    connections: TcpConnections, dropped: Told, host: str, name: str = ""
) -> TcpConnection:
    connection = connections.accept(host, lambda: dropped.append(name or host))
    assert connection is not None
    return connection


def a_token(name: str = "t", secret: str = "s") -> Token:
    return Token(name, "read", hash_of(secret), 0, "uid:1")


def show(connection: TcpConnection, name: str = "t") -> bool:
    token = a_token(name)
    return connection.identify(token, token.hash)


def test_a_crowd_makes_room_among_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_connections, "MOST_UNIDENTIFIED", 4)

    async def story(connections: TcpConnections, dropped: Told) -> None:
        come(connections, dropped, "192.0.2.9", "alone")
        for number in range(6):
            come(connections, dropped, "192.0.2.1", f"crowd {number}")
        assert dropped == ["crowd 0", "crowd 1", "crowd 2"]
        assert len(connections.unidentified) == 4
        connections.close()

    within(story)


def test_many_addresses_of_one_network_are_one_crowd(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcp_connections, "MOST_UNIDENTIFIED", 3)

    async def story(connections: TcpConnections, dropped: Told) -> None:
        come(connections, dropped, "2001:db8:2::1", "alone")
        for number in range(4):
            come(connections, dropped, f"2001:db8:1:1::{number}", f"crowd {number}")
        assert dropped == ["crowd 0", "crowd 1"]
        connections.close()

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
    async def story(connections: TcpConnections, dropped: Told) -> None:
        connection = come(connections, dropped, host)
        assert (connection.host, connection.network) == (shown, place)
        connection.closed()

    within(story)


def test_one_token_has_so_many_connections_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcp_connections, "FEW", 1)
    monkeypatch.setattr(tcp_connections, "RESERVED_PLACES", 0)

    async def story(connections: TcpConnections, dropped: Told) -> None:
        connections.most_connections = 2 * tcp_connections.SHARE_OF_ONE
        token = a_token()
        first, second, third = (
            come(connections, dropped, "192.0.2.1") for _ in range(3)
        )
        assert first.identify(token, token.hash)
        assert second.identify(token, token.hash)
        assert not third.identify(token, token.hash)
        assert show(third, "other")
        assert first.identify(token, token.hash)
        assert list(connections.identified) == [first, second, third]
        for connection in (first, second, third):
            connection.closed()

    within(story)


def test_a_sweep_drops_whose_token_is_gone_or_replaced() -> None:
    async def story(connections: TcpConnections, dropped: Told) -> None:
        tokens = {name: a_token(name) for name in ("kept", "gone", "replaced")}
        for name, token in tokens.items():
            come(connections, dropped, "192.0.2.1", name).identify(token, token.hash)
        unknown = come(connections, dropped, "192.0.2.1", "unknown")
        now = {"kept": tokens["kept"], "replaced": a_token("replaced", "another")}
        connections.drop_revoked(now)
        assert dropped == ["gone", "replaced"]
        unknown.closed()
        assert not connections.unidentified

    within(story)


def test_who_has_left_is_neither_dropped_nor_trusted() -> None:
    async def story(connections: TcpConnections, dropped: Told) -> None:
        connection = come(connections, dropped, "192.0.2.1")
        connection.closed()
        connection.closed()
        connection.drop()
        show(connection)
        assert not dropped
        assert not connections.identified
        assert not connections.unidentified

    within(story)


def test_nothing_counts_of_a_frame_whose_connection_is_over() -> None:
    async def story(connections: TcpConnections, dropped: Told) -> None:
        connection = come(connections, dropped, "192.0.2.1")
        assert connection.reserve(100)
        connection.closed()
        # The server still hands over that it was closed, with a piece in its buffer.
        assert connection.reserve(100)
        assert connections.frames.reserved == 0

    within(story)


def test_without_room_or_unidentified_connections_a_new_one_is_refused() -> None:
    async def story(connections: TcpConnections, dropped: Told) -> None:
        connections.most_connections = 2
        known = come(connections, dropped, "192.0.2.1", "friend")
        show(known)
        come(connections, dropped, "192.0.2.1", "unknown")
        later = come(connections, dropped, "192.0.2.1", "later")
        assert dropped == ["unknown"]
        show(later)
        assert connections.accept("192.0.2.1", lambda: None) is None
        assert dropped == ["unknown"]

    within(story)


def test_several_tokens_together_leave_room_for_the_others() -> None:
    async def story(connections: TcpConnections, dropped: Told) -> None:
        connections.most_connections = 1024
        taken = [
            show(come(connections, dropped, f"192.0.2.{number % 8}"), f"t{number % 8}")
            for number in range(1024)
        ]
        assert sum(taken) == 1024 - tcp_connections.RESERVED_PLACES
        for _ in range(tcp_connections.FEW):
            assert show(come(connections, dropped, "192.0.2.9"), "admin")
        assert not show(come(connections, dropped, "192.0.2.9"), "admin")
        assert show(come(connections, dropped, "192.0.2.9"), "reader")
        for connection in (*connections.identified, *connections.unidentified):
            connection.closed()

    within(story)


def test_a_sweep_leaves_the_former_secret_until_the_new_one_is_used() -> None:
    async def story(connections: TcpConnections, dropped: Told) -> None:
        token = a_token()
        assert show(come(connections, dropped, "192.0.2.1", "former"))
        token.hash = hash_of("new") + hash_of("s")
        newer = come(connections, dropped, "192.0.2.1", "new")
        assert newer.identify(token, hash_of("new"))
        connections.drop_revoked({"t": token})
        assert not dropped
        token.hash = hash_of("new")
        connections.drop_revoked({"t": token})
        assert dropped == ["former"]
        newer.closed()

    within(story)
