"""The link within one daemon."""

import asyncio

import msgspec

from grass.link.messages import (
    Exited,
    Hello,
    Report,
    Start,
    ToBroker,
    ToWorker,
    Units,
)
from grass.link.pair import LinkEnd, pair
from tests.support.building import units


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


def test_closing_tells_both_sides_once_after_what_was_sent_before() -> None:
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


def test_every_message_survives_the_wire_and_unknown_fields_are_ignored() -> None:
    report = Report("a", {"cpu": {"0": 1}}, running=True, pid=7)
    up: list[ToBroker] = [
        Hello("w", "desk", "boot", units("{cpu:1}"), [report], [Exited("b", 1, 0)]),
        Exited("a", 5, None, 9, "killed"),
    ]
    down: list[ToWorker] = [
        Start("a", 1, 1, "n", "p", ("x",), shell=False, allocation={}),
        Units({"cpu": {"0": 1}}),
    ]
    for message in up:
        data = msgspec.msgpack.encode(message)
        assert msgspec.msgpack.decode(data, type=ToBroker) == message
    for order in down:
        document = msgspec.to_builtins(order) | {"of_tomorrow": 1}
        assert msgspec.convert(document, ToWorker) == order
