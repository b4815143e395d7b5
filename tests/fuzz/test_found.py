"""Inputs that once went wrong, each by itself.

The tests with random input found these. What they find next is added here, so that it
is tried every time.
"""

import socket
from pathlib import Path

import pytest

from grass.api.payloads import read_body
from grass.api.routes.request_bodies import AddCapacityBody
from grass.client.json_codec import encoded
from grass.errors import GrassError, UsageError
from grass.keeper.codec import BrokenLine
from grass.keeper.protocol import RecalledEntry
from grass.keeper.system.connections import LINE_LIMIT, DaemonConnection
from grass.model import field_readers
from grass.model.jobs import arrays, dependencies
from grass.model.resources import capacity_from, request_from
from grass.worker.core.hello import WorkerIdentity
from grass.worker.core.prepare import Surroundings
from grass.worker.core.worker_core import WorkerCore
from tests.fuzz.dose import bounded
from tests.fuzz.messages import said_by_keeper
from tests.support.building import units
from tests.support.calling import Api, play
from tests.worker.lab import entry_of

HUGE = "0x" + "f" * 20_000
"""Hex has no limit on digits; writing the number down again has."""


@pytest.mark.parametrize("text", [f"{{gpu:[[{HUGE}]]}}", f"{{gpu:{{'0':[{HUGE}]}}}}"])
def test_a_number_too_long_to_be_written_is_refused_in_words(text: str) -> None:
    with pytest.raises(UsageError, match="gpu must be a number, not this list"):
        capacity_from(text)
    with pytest.raises(UsageError, match="gpu must be a number, not this"):
        request_from(text)


@pytest.mark.parametrize(
    "text", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"]
)
def test_a_time_outside_the_calendar_in_utc_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        field_readers.begin_at(text)


def test_many_ranges_that_overlap_are_refused_at_once() -> None:
    with bounded(1.0, cpu=True), pytest.raises(UsageError, match="at most"):
        arrays.read_array(",".join(["1-100000"] * 5000))
    with bounded(1.0, cpu=True), pytest.raises(UsageError, match="at most"):
        dependencies.read(["1-100000"] * 5000, 1)


def test_a_path_that_is_nearly_right_is_not_found(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        assert (await api.get("/jobs/")).status == 404

    play(tmp_path, story)


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_number_that_cannot_be_sent_is_refused_in_words(number: float) -> None:
    with pytest.raises(GrassError):
        encoded({"require": {"cpu": number}})


def test_an_attempt_that_has_exited_cannot_be_recalled() -> None:
    around = Surroundings("/out", "/home/me", "/bin/sh", {})
    who = WorkerIdentity("w", "desk", "boot", units("{cpu:1}"))
    worker = WorkerCore(who, around)
    hello, *_ = said_by_keeper()
    _, exited = hello["attempts"]
    worker.from_keeper(entry_of({"e": "hello", "attempts": [exited]}))
    worker.from_keeper(RecalledEntry(exited["id"]))


def test_a_body_nested_where_anything_may_stand_is_refused() -> None:
    body = b'{"capacity":' * 2000 + b"1" + b"}" * 2000
    with pytest.raises(UsageError, match="nested too deep"):
        read_body(body, AddCapacityBody)


def test_a_long_line_costs_the_keeper_no_more_than_its_length() -> None:
    near, far = socket.socketpair()
    connection = DaemonConnection(near)
    piece = b"x" * (1 << 16)
    with far, bounded():
        for _ in range(LINE_LIMIT // len(piece)):
            far.sendall(piece)
            assert connection.receive() == []
        far.sendall(piece)
        with pytest.raises(BrokenLine, match="too long"):
            connection.receive()
    connection.close()


def test_lines_are_whole_however_they_come() -> None:
    near, far = socket.socketpair()
    connection = DaemonConnection(near)
    with far:
        heard = []
        for piece in (b"a", b"b\nc", b"", b"\n\nd\ne"):
            far.sendall(piece)
            heard.append(connection.receive() if piece else [])
        assert heard == [[], [b"ab"], [], [b"c", b"d"]]
        far.sendall(b"f\n")
    assert connection.receive() == [b"ef"]
    assert connection.receive() is None
    connection.close()
