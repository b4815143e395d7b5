"""The link within one daemon."""

import asyncio

import pytest

from grass.link.channel import LinkEnd, pair
from tests.support.patience import PATIENCE_S


def test_messages_sent_together_arrive_together_and_in_order() -> None:
    async def story() -> None:
        ends: tuple[LinkEnd[int, str], LinkEnd[str, int]] = pair()
        near, far = ends
        batches: list[list[int]] = []
        near.send(1)
        far.listen(batches.append, lambda: None)
        near.send(2)
        assert not batches
        await asyncio.sleep(0)
        assert batches == [[1, 2]]

    asyncio.run(story())


def test_closing_notifies_both_owners_once_after_what_was_sent_before() -> None:
    async def story() -> None:
        ends: tuple[LinkEnd[int, str], LinkEnd[str, int]] = pair()
        near, far = ends
        seen: list[object] = []
        far.listen(seen.extend, lambda: seen.append("far ended"))
        near.listen(seen.extend, lambda: seen.append("near ended"))
        near.send(1)
        near.close()
        near.close()
        far.send("lost")
        await asyncio.sleep(0)
        assert sorted(map(str, seen)) == ["1", "far ended", "near ended"]
        assert seen.index(1) < seen.index("far ended")

    asyncio.run(story())


class FailingOwner:
    """An owner that fails to take the first messages."""

    def __init__(self) -> None:
        self.taken: list[object] = []
        self.fails = True
        self.news = asyncio.Event()

    def take(self, batch: list[int]) -> None:
        if self.fails:
            self.fails = False
            raise RuntimeError("a defect")
        self.taken += batch
        self.news.set()

    def end(self) -> None:
        self.taken.append("ended")
        self.news.set()


@pytest.mark.parametrize("fails", ["near", "far"])
def test_after_a_defect_of_either_owner_the_far_one_is_asked_to_resync(
    fails: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("grass.link.channel.RESYNC_S", 0.01)

    async def story() -> None:
        ends: tuple[LinkEnd[int, int], LinkEnd[int, int]] = pair(-1)
        near, far = ends
        here, there = FailingOwner(), FailingOwner()
        here.fails, there.fails = fails == "near", fails == "far"
        near.listen(here.take, here.end)
        far.listen(there.take, there.end)
        (far if fails == "near" else near).send(7)
        async with asyncio.timeout(PATIENCE_S):
            await there.news.wait()
        assert (here.taken, there.taken) == ([], [-1])
        assert not near.closed

    asyncio.run(story())
    assert "defect" in [one.getMessage().split()[0] for one in caplog.records]


def test_without_a_resync_a_defect_ends_the_link() -> None:
    async def story() -> None:
        ends: tuple[LinkEnd[int, int], LinkEnd[int, int]] = pair()
        near, far = ends
        here, there = FailingOwner(), FailingOwner()
        near.listen(here.take, here.end)
        far.listen(there.take, there.end)
        near.send(7)
        async with asyncio.timeout(PATIENCE_S):
            await here.news.wait()
            await there.news.wait()
        assert (here.taken, there.taken) == (["ended"], ["ended"])

    asyncio.run(story())
