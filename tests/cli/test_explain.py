"""`grass explain`: a line for each worker, or for each reason; since when that is."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from grass.cli.printing.explanation import explained, prospects
from grass.cli.printing.quantities import in_local_time
from grass.cli.printing.table import Screen

from .conftest import Call
from .fake_daemon import FakeDaemon

NOW = datetime(2026, 1, 2, 3, 10, tzinfo=UTC)


def prospect(worker: str, reason: str = "busy", why: str = "") -> dict[str, Any]:
    return {"worker": worker, "reason": reason, "why": why or f"is {reason}"}


def test_a_few_workers_have_a_row_each() -> None:
    few = [prospect(f"w{number}") for number in range(8)]
    assert prospects(few) == [[f"w{number}", "is busy"] for number in range(8)]


def test_of_many_workers_the_reasons_are_counted() -> None:
    many = [prospect(f"w{number}") for number in range(12)]
    assert prospects(many) == [["12 workers", "all units busy"]]
    many += [prospect("far", "unreachable"), prospect("new", "of-a-later-version")]
    many += [prospect("a", "drained"), prospect("b", "drained")]
    assert prospects(many) == [
        ["12 workers", "all units busy"],
        ["2 workers", "drained"],
        ["far", "unreachable"],
        ["new", "of-a-later-version"],
    ]


def test_workers_are_shown_below_the_rest(fake_daemon: FakeDaemon, call: Call) -> None:
    told: dict[str, Any] = {"id": 7, "state": "queued", "why": "needs cpu 1"}
    told["workers"] = [prospect("desk"), prospect("rack", "drained")]
    fake_daemon.answers["GET /jobs/7/explain"] = [told, {**told, "workers": []}]
    assert call("explain", "7").out.splitlines() == [
        "job 7 is queued: needs cpu 1",
        "",
        "WORKER  WHY IT DOES NOT START THERE",
        "desk    is busy",
        "rack    is drained",
    ]
    assert call("explain", "7").out == "job 7 is queued: needs cpu 1\n"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("it runs since 2026-01-02T03:04:55Z", "it runs for 5m05s"),
        ("away since 2026-01-02T03:04:55.250Z; wait", "away for 5m04s; wait"),
        ("away since 2026-01-02T03:11:00Z", "away for 0s"),
        ("ill since 2026-99-99T03:04:55Z", "ill since 2026-99-99T03:04:55Z"),
        ("ill since yesterday", "ill since yesterday"),
        ("begins 2026-01-02T03:10:12Z", "begins 11:10:12, in 12s"),
        ("begins 2026-01-02T05:00:00.000Z; held", "begins 13:00, in 1h50m; held"),
        ("again at 2026-01-02T03:10:12Z: full", "again at 11:10:12, in 12s: full"),
        ("begins 2026-01-02T21:00:00Z", "begins 05:00 tomorrow, in 18h"),
        ("begins 2026-01-03T02:09:59Z", "begins 10:09 tomorrow, in 23h"),
        ("begins 2026-01-05T01:00:00Z", "begins 09:00 on Monday, in 3d"),
        ("begins 2026-03-05T01:00:00Z", "begins 2026-03-05 09:00, in 62d"),
        ("it was 2026-01-01T15:59:00Z", "it was 23:59 yesterday, 11h ago"),
    ],
)
def test_times_are_told_in_the_zone_of_the_reader(
    said: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "XYZ-8")
    time.tzset()
    try:
        assert in_local_time(said, NOW) == shown
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_table_of_usage_keeps_its_colours() -> None:
    used = {"what": "cpu", "unit": None, "asked": 1, "given": 1, "now": 0.5, "peak": 1}
    document = {"id": 7, "state": "running", "why": "it runs", "usage": [used]}
    text = explained(document, Screen(80, colours=True))
    assert "\x1b[1;4mUSAGE" in text
    assert "\\x1b" not in text
