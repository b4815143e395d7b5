"""After `grass restore`, jobs that are not in the backup run on until a person acts."""

import json
from typing import Any

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.processes import alive, await_end

pytestmark = [pytest.mark.daemon, pytest.mark.sqlite]

STAYS = "trap 'exit 7' TERM; echo $$ > {news}; while :; do sleep 0.05; done"


def foreign(home: GrassHome) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(home.ok("workers", "foreign", "--json"))[
        "foreign"
    ]
    return found


def ends(home: GrassHome) -> list[dict[str, Any]]:
    lines = home.ok("events", "--json", "--kind", "foreign-ended").splitlines()
    return [json.loads(line)["data"] for line in lines]


def restored(home: GrassHome) -> None:
    home.ok("stop")
    home.client.close()
    home.ok("restore", "kept")
    home.ok("start")


def test_a_job_that_is_not_in_the_backup_runs_on_until_a_person_ends_it(
    home: GrassHome, news: Fifo
) -> None:
    home.ok("backup", "kept")
    job = home.enqueue("--name", "train", "--", STAYS.format(news=news.path))
    pid = int(news.hear())
    restored(home)
    (one,) = foreign(home)
    assert (one["attempt"], one["pid"], one["name"]) == (f"{job}.1", pid, "train")
    assert not one["kept"]
    assert alive(pid)
    assert "grass workers foreign" in home.run("workers").stderr
    assert "unknown to the database" in home.run("doctor").stdout
    # Its id is not given to another job.
    assert home.enqueue("--hold", "--", "true") > job
    worker = one["worker"]
    home.ok("workers", "keep", worker, f"{job}.1")
    assert "grass workers foreign" not in home.run("workers").stderr
    refused = home.run("workers", "end", worker, "all")
    assert "this would end 1 foreign attempt" in refused.stderr
    home.ok("workers", "end", "--yes", worker, "all")
    await_end(pid)
    (end,) = until(lambda: ends(home), "the end is not in the journal")
    assert (end["exit_code"], end["attempt"].endswith(f".{job}.1")) == (7, True)
    assert foreign(home) == []


def test_a_job_that_waited_in_the_backup_does_not_start_beside_itself(
    home: GrassHome, news: Fifo
) -> None:
    home.ok("pause")
    job = home.enqueue("--", STAYS.format(news=news.path))
    home.ok("backup", "kept")
    home.ok("resume")
    pid = int(news.hear())
    restored(home)
    home.ok("resume")
    assert home.state(job) == "held"
    assert "knows nothing of" in home.ok("explain", str(job))
    (one,) = foreign(home)
    assert (one["job"], one["pid"]) == (job, pid)
    home.ok("workers", "end", one["worker"], one["attempt"])
    await_end(pid)
    until(lambda: foreign(home), "it is still listed", lambda left: not left)
    home.ok("release", "--yes", str(job))
    assert int(news.hear()) != pid
    home.ok("cancel", "--yes", str(job))
