"""Output of forgotten jobs: to be removed until the worker says that it is gone."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import BOOT, WORKER, units

from grass.broker.core.calls import Enqueue, NewJob, Prune
from grass.broker.core.jobs import bulk_enqueue, removals
from grass.link.messages import Hello, Removed, RemoveOutput, Started
from grass.model.jobs.spec import JobPatch


class Home(Brokerage):
    """A broker whose worker confirms what it removed, as all but the first do."""

    def connect(self, *, confirms: bool = True) -> None:
        found = units(self.found)
        self.hear(
            Hello(WORKER, "desk", BOOT, found, [], [], confirms_removals=confirms)
        )

    def ended(self, size: int, **settings: str) -> int:
        job = self.enqueue("work", **settings)
        self.hear(Started(self.name(job), 7, self.now_us, f"/out/{job}.log"))
        self.exit(job, output_bytes=size)
        return job

    @property
    def asked(self) -> list[RemoveOutput]:
        return self.said(RemoveOutput)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    broker = Home(tmp_path / "grass.db")
    with closing(broker.store):
        broker.connect()
        yield broker


def test_bytes_count_until_the_files_are_gone(home: Home) -> None:
    jobs = [home.ended(5), home.ended(7)]
    assert home.prune(*jobs) == jobs
    assert home.asked == [RemoveOutput(["/out/1.log", "/out/2.log"], 1)]
    assert home.state.totals.output_bytes == 12
    home.hear(Removed(1))
    assert home.state.totals.output_bytes == 0
    assert home.store.removal_paths(1) == []


def test_a_removal_outlives_the_broker(home: Home) -> None:
    home.prune(home.ended(5))
    home.restart()
    assert home.state.totals.output_bytes == 5
    assert removals.due(home.state) == []
    home.connect()
    assert home.asked == [RemoveOutput(["/out/1.log"], 1)]


def test_a_worker_that_is_away_is_asked_when_it_connects(home: Home) -> None:
    first, second = home.ended(5), home.ended(7)
    home.leave()
    home.prune(first)
    home.prune(second)
    assert home.asked == []
    home.connect()
    assert home.asked == [RemoveOutput(["/out/1.log"], 1)]
    home.hear(Removed(1))
    assert home.asked == [RemoveOutput(["/out/2.log"], 2)]


def test_a_worker_is_asked_again_when_its_answer_may_be_lost(home: Home) -> None:
    home.prune(home.ended(5))
    home.connect()
    assert home.asked == [RemoveOutput(["/out/1.log"], 1)]
    home.hear(Removed(1))
    home.hear(Removed(1))
    assert home.state.totals.output_bytes == 0


def test_what_could_not_be_removed_stays_and_holds_up_no_other(home: Home) -> None:
    first, second = home.ended(5), home.ended(7)
    home.prune(first)
    home.hear(Removed(1, left=1, reason="it is busy"))
    assert home.asked == []
    assert home.state.totals.output_bytes == 12
    home.prune(second)
    assert home.asked == [RemoveOutput(["/out/1.log"], 1)]
    home.hear(Removed(1, left=1, reason="it is busy"))
    home.hear(Removed(2))
    assert home.state.totals.output_bytes == 5
    home.connect()
    assert home.asked == [RemoveOutput(["/out/1.log"], 1)]


def test_a_worker_that_confirms_nothing_is_believed(home: Home) -> None:
    home.connect(confirms=False)
    home.prune(home.ended(5))
    assert home.asked == [RemoveOutput(["/out/1.log"], 1)]
    assert home.state.totals.output_bytes == 0
    home.restart()
    assert home.state.totals.output_bytes == 0


def test_nothing_but_what_was_asked_is_believed(home: Home) -> None:
    job = home.ended(5)
    home.join("other", confirms_removals=True)
    home.prune(job)
    home.hear(Removed(1), "other")
    home.hear(Removed(2))
    assert home.state.totals.output_bytes == 5


def test_files_of_the_user_are_not_removed(home: Home) -> None:
    home.prune(home.ended(5, output="/mine"))
    assert home.asked == []
    assert home.state.totals.output_bytes == 0


def test_what_can_be_no_path_is_not_asked_for(home: Home) -> None:
    job = home.enqueue("work")
    home.hear(Started(home.name(job), 7, home.now_us, "/" + "x" * 5000))
    home.exit(job, output_bytes=5)
    home.prune(job)
    assert home.asked == []
    assert home.state.totals.output_bytes == 0


def test_what_lies_on_a_forgotten_worker_is_given_up(home: Home) -> None:
    first, second = home.ended(5), home.ended(7)
    home.leave()
    home.prune(first)
    home.forget("desk")
    assert home.state.totals.output_bytes == 7
    home.prune(second)
    assert home.state.totals.output_bytes == 0
    home.connect()
    assert home.asked == []


def stored(home: Home, table: str) -> list[int]:
    asked = f"SELECT id FROM {table} ORDER BY id"
    reads: Any = home.store
    return [row[0] for row in reads._read(lambda db: db.execute(asked).fetchall())]


def test_specs_and_environments_go_with_their_last_job(home: Home) -> None:
    first, second = home.enqueue("work", cwd="/a"), home.enqueue("work", cwd="/a")
    third = home.enqueue("work", cwd="/b")
    for job in (first, second, third):
        home.exit(job)
    home.prune(first)
    assert stored(home, "specs") == [1, 2]
    home.prune(second, third)
    assert stored(home, "specs") == []
    home.state.daemon.home_worker = WORKER
    job = home.call(Enqueue(ME, [NewJob(("x",), JobPatch())], base_env={"A": "1"}))
    home.exit(job.first)
    assert stored(home, "envs") == [1]
    home.prune(job.first)
    assert stored(home, "envs") == []
    home.call(Enqueue(ME, [NewJob(("x",), JobPatch())], base_env={"A": "1"}))
    assert stored(home, "envs") == [2]


def test_the_spec_that_an_edit_replaces_goes(home: Home) -> None:
    home.pause()
    job, other = home.enqueue("work"), home.enqueue("work", cwd="/a")
    home.edit(job, time_limit_s=5.0)
    assert stored(home, "specs") == [2, 3]
    home.edit(other, priority=3)
    assert stored(home, "specs") == [2, 3]


def test_jobs_that_still_arrive_keep_their_spec(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_enqueue, "SLICE", 2)
    old = home.ended(5)
    home.pause()
    home.step(Enqueue(ME, [NewJob(("work",), JobPatch())] * 5))
    home.step(Prune(ME, [old], wanted=[old]))
    while home.state.bulk.enqueues:
        home.flush()
    home.restart()
    assert len(home.state.jobs) == 5


def test_the_log_tells_once_of_a_worker_that_cannot_remove(home: Home) -> None:
    home.prune(home.ended(5))
    for _ in range(3):
        home.step_hear(Removed(1, left=1, reason="x" * 3000))
        assert len(home.state.batch.log_events) <= 1
        assert all(len(str(event)) < 400 for event in home.state.batch.log_events)
        home.flush()
        home.connect()
    home.step_hear(Removed(1, left=1, reason="x"))
    assert home.state.batch.log_events == []
