"""What waits for one follower of the feed."""

import asyncio

import pytest

from grass.queries.feed import followers
from grass.queries.feed.followers import Follower, frame, resync
from grass.queries.presentation import Viewer


def follower() -> Follower:
    return Follower(Viewer("uid:1", True), frozenset({"jobs", "overview"}))


async def taken(one: Follower) -> list[bytes] | None:
    return await one.taken(0.001)


def test_frames_are_taken_in_order() -> None:
    async def story() -> None:
        one = follower()
        one.show("overview", b"{}", 2)
        one.add(b"first", 1)
        one.add(b"second", 2)
        # The document has a number, before which no frame may be missing.
        assert await taken(one) == [b"first", b"second", frame("overview", b"{}", 2)]
        assert await taken(one) == []

    asyncio.run(story())


def test_of_a_document_only_the_newest_is_sent_and_once() -> None:
    async def story() -> None:
        one = follower()
        one.show("overview", b"1")
        one.show("overview", b"2")
        assert await taken(one) == [frame("overview", b"2")]
        one.show("overview", b"2")
        assert await taken(one) == []

    asyncio.run(story())


@pytest.mark.parametrize("limit", ["MOST_FRAMES", "MOST_BYTES"])
def test_who_is_too_slow_is_told_to_read_anew(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followers, limit, 3)

    async def story() -> None:
        one = follower()
        for number in range(1, 5):
            one.add(b"x", number)
        assert await taken(one) == [resync(4)]
        one.add(b"y", 5)
        assert await taken(one) == [b"y"]

    asyncio.run(story())


def test_a_closed_follower_takes_only_what_waits() -> None:
    async def story() -> None:
        one = follower()
        one.add(b"x", 1)
        one.close()
        assert await taken(one) == [b"x"]
        assert await taken(one) is None
        assert await taken(one) is None

    asyncio.run(story())
