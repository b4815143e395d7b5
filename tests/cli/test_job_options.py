"""The options of a job: what is sent for each, and what is refused."""

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.cli.parsing.job_options import moment
from grass.cli.printing.quantities import brief
from grass.errors import UsageError
from grass.model.durations import seconds

from .conftest import Call, Grass
from .fake_daemon import FakeDaemon


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        (["--array", "1-100%8"], {"array": "1-100%8"}),
        (["--after", "7"], {"after": ["7"]}),
        (["--after", "7, 9", "--after=3-4:any"], {"after": ["7", "9", "3-4:any"]}),
        (["--begin", "2030-01-31 08:00Z"], {"begin_at": "2030-01-31T08:00:00+00:00"}),
        (["--hold"], {"hold": True}),
        (["--time-limit", "2h"], {"time_limit_s": 7200.0}),
        (["--grace", "30s"], {"grace_s": 30.0}),
        (["--retries", "3", "--backoff", "1m"], {"retries": 3, "backoff_s": 60.0}),
        (["--retry-on", "1,137,signal"], {"retry_on": ["1", "137", "signal"]}),
        (["--retry-lost", "2"], {"retry_lost": 2}),
        (["--nice", "10"], {"nice": 10}),
        (["--max-fails", "5"], {"max_fails": 5}),
        (["--priority", "-3"], {"priority": -3}),
        ([], {}),
    ],
)
def test_each_option_becomes_a_field(
    fake_daemon: FakeDaemon, call: Call, options: list[str], fields: dict[str, Any]
) -> None:
    fake_daemon.answers["POST /jobs"] = {"first": 7, "last": 7, "hint": ""}
    called = call("enqueue", *options, "--", "ls")
    assert (called.code, called.out, called.err) == (0, "7\n", "")
    [body] = fake_daemon.bodies("POST /jobs")
    assert body["jobs"] == [{"command": ["ls"]}]
    assert body["defaults"] == fields


def test_the_ids_of_an_array_are_printed_compactly(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    reply = {"first": 101, "last": 200, "hint": "look out"}
    fake_daemon.answers["POST /jobs"] = reply
    called = call("enqueue", "--array", "1-100", "--", "ls")
    assert called == (0, "101-200\n", "grass: look out\n")
    assert call("enqueue", "-q", "--array", "1-100", "--", "ls").err == ""
    printed = call("enqueue", "--format=json", "--array", "1-100", "--", "ls").out
    document = json.loads(printed)
    assert (document["first"], document["last"]) == (101, 200)
    assert document["ids"] == list(range(101, 201))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--after", ""], "--after `` names nothing between commas"),
        (["--after", "7,"], "--after `7,` names nothing between commas"),
        (["--retry-on", "1,,2"], "--retry-on `1,,2` names nothing between commas"),
        (["--begin", "later"], "`later` is not a time (write 22:00, 2030-11-20T08:00"),
        (["--begin", "25:00"], "`25:00` is not a time"),
        (["--begin", "+soon"], "`soon` is not a duration"),
        (["--time-limit", "1:30"], "`1:30` is not a duration"),
        (["--grace", "x"], "`x` is not a duration (write 90s, 10m, 2h or 30d)"),
        (["--backoff", "-1"], "`-1` is not a duration"),
        (["--retries", "1.5"], "--retries must be a whole number, not `1.5`"),
        (["--retry-lost", "x"], "--retry-lost must be a whole number"),
        (["--nice", "x"], "--nice must be a whole number"),
        (["--max-fails", "x"], "--max-fails must be a whole number"),
        (["--array"], "--array needs a value: LIST"),
        (["--hold=yes"], "--hold takes no value"),
    ],
)
def test_a_wrong_value_gets_one_line(
    grass: Grass, options: list[str], message: str
) -> None:
    words = [*options] if options == ["--array"] else [*options, "--", "ls"]
    ran = grass("enqueue", *words)
    assert ran.returncode == 2
    assert ran.stderr.startswith("grass enqueue: ")
    assert message in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_an_array_does_not_come_from_a_file(grass: Grass) -> None:
    ran = grass("enqueue", "--array", "1-3", "--from", "-", input="true\n")
    assert ran.returncode == 2
    assert "--array and --from both say how many jobs (give one)" in ran.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 90),
        ("0.5", 0.5),
        ("1:30:00", 5400),
        ("100:00:00.5", 360000.5),
        ("2h30m", 9000),
        ("1-02:00:00", 93600),
        ("1-02:30", 95400),
        ("2-00", 172800),
        ("3m05s", 185),
        ("4d3h", 356400),
        ("2w", 1209600),
    ],
)
def test_durations_are_read_in_many_ways(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("1:30", "1:60:00", "1:00:60", "1.5:00:00", "::", "1h30", "h", "1h-3m", "٣"),
        *("1-", "-1", "1-24:00:00", "1-2-3", "1-1:2:3:4", "1-02:60"),
    ],
)
def test_what_could_mean_two_things_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        seconds(text)


@given(st.integers(0, 10**8))
def test_a_duration_that_grass_writes_can_be_read(duration: int) -> None:
    assert 0 <= duration - seconds(brief(duration)) < 3600


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A zone with summer time, which needs no files."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("22:00", "2030-03-30T22:00:00+01:00"),
        ("22:00:30", "2030-03-30T22:00:30+01:00"),
        ("20:00", "2030-03-31T20:00:00+02:00"),
        ("2030-11-20T08:00", "2030-11-20T08:00:00+01:00"),
        ("2030-07-20 08:00", "2030-07-20T08:00:00+02:00"),
        ("2030-07-20", "2030-07-20T00:00:00+02:00"),
        ("2030-07-20T08:00-05:00", "2030-07-20T08:00:00-05:00"),
        ("+2h", "2030-03-30T22:30:00+01:00"),
    ],
)
def test_a_time_is_meant_where_the_caller_is(text: str, expected: str) -> None:
    """The clocks go forward in the night after this evening."""
    now = datetime(2030, 3, 30, 20, 30).astimezone()
    assert moment(text, now) == expected


@pytest.mark.parametrize("text", ["", "22", "10pm", "2030-13-01", "+", "22:00Z", "-1h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a (time|duration)"):
        moment(text)


def test_jobs_from_a_file_may_have_every_field(
    fake_daemon: FakeDaemon, call: Call, tmp_path: Path
) -> None:
    fake_daemon.answers["POST /jobs"] = {"first": 1, "last": 2, "hint": ""}
    lines = [{"command": "a", "after": ["7"], "retries": 2}, {"command": "b"}]
    file = tmp_path / "jobs"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert call("enqueue", "--hold", "--from", str(file)).out == "1-2\n"
    [body] = fake_daemon.bodies("POST /jobs")
    assert (body["jobs"], body["defaults"]) == (lines, {"hold": True})
