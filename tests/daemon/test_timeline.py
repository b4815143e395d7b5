"""`grass timeline` of real jobs."""

import json
from typing import Any

import pytest

from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon


def test_hours_are_told_by_owner_and_by_unit(shared: GrassHome) -> None:
    id = shared.enqueue("--require", "{cpu:1}", "--", "true")
    shared.wait(id)
    document = json.loads(shared.ok("timeline", "--since", "1h", "--json"))
    (bar,) = [one for one in document["bars"] if one["job"] == id]
    assert (bar["state"], bar["amount"], bar["name"]) == ("succeeded", 1, "true")
    (total,) = {one["owner"] for one in document["totals"]}
    assert total == shared.client.job(id)["owner"]
    header, *rows = shared.ok("timeline").splitlines()
    assert header.split() == ["OWNER", "GPU", "HOURS", "CPU", "HOURS"]
    assert len(rows) == 1
    header, *rows = shared.ok("timeline", "--by", "unit", "--since", "1d").splitlines()
    assert header.split() == ["WORKER", "UNIT", "HOURS", "USED", "BY"]
    assert any(" cpu " in row for row in rows)
    for words in (("--by", "week"), ("--since", "soon")):
        assert shared.run("timeline", *words).returncode == 2


def test_hours_stay_when_jobs_are_pruned(shared: GrassHome) -> None:
    words = ("--require", "{cpu:1}", "--project", "thesis", "--", "sleep", "0.1")
    jobs = [shared.enqueue(*words) for _ in range(3)]
    jobs.append(shared.enqueue("--retries", "1", "--backoff", "0s", "--", "false"))
    shared.wait(*jobs)

    def totals() -> list[dict[str, Any]]:
        reply = json.loads(shared.ok("timeline", "--since", "30d", "--json"))
        return sorted(reply["totals"], key=str)

    before = totals()
    assert before[0]["hours"] > 0
    shared.ok("prune", "--older", "0s", "--yes")
    assert shared.run("show", str(jobs[0])).returncode == 4
    assert totals() == before
