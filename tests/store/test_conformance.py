"""What any store must do: it keeps what was committed, all of it, and tells it back."""

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from tests.support.building import a_job, a_spec, an_attempt

from grass.errors import StorageError
from grass.model import selectors
from grass.model.jobs.dependencies import After
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.queue import Queue, View
from grass.model.selectors import combine
from grass.model.worker import Unit, Worker
from grass.store.changes import AnsweredCall, Changes, Env, Event, Removal
from grass.store.interface import JobFilter, Order, Store

Reopen = Callable[[], Store]
NOT_UTF8 = "caf\udce9"


def add_jobs(store: Store, *jobs: Any) -> None:
    store.commit(Changes(jobs={job.id: job for job in jobs}))


def ids(store: Store, limit: int = 100, **wanted: Any) -> list[int]:
    return [found.job.id for found in store.jobs(JobFilter(**wanted), limit)]


def selected(store: Store, *texts: str, union: bool = False) -> list[int]:
    return store.select(combine(map(selectors.read, texts), union=union))


@pytest.fixture
def with_spec(store: Store) -> Store:
    store.commit(Changes(specs={1: a_spec()}))
    return store


def test_a_new_store_is_empty_and_has_a_name(store: Store) -> None:
    loaded = store.load(0)
    assert len(loaded.cluster) == 16
    assert (loaded.last_job, loaded.last_spec, loaded.last_env) == (0, 0, 0)
    assert not loaded.paused
    assert not loaded.jobs
    assert not loaded.queues


def test_the_name_of_a_cluster_never_changes(reopen: Reopen) -> None:
    first = reopen().load(0).cluster
    assert reopen().load(0).cluster == first


def test_everything_reads_back_as_it_was_committed(reopen: Reopen) -> None:
    view = View({"gpu": {"0": 5000}}, ("python", "x.py"), "/data", (("A", "1"),))
    queue = Queue("q1", 7, True, (("gpu", 5000),), 3, {"w1": view})
    worker = Worker(
        "w1", "desk", "boot", {"gpu": {"0": Unit(10_000, {"name": "H200"})}}
    )
    worker.added = {"printer": {"0": 10_000}}
    worker.labels, worker.lease_s, worker.draining = ("a100", "big"), 30.5, True
    worker.address, worker.heard_at = "10.0.0.7", 77
    worker.instance = "home"
    spec = a_spec(
        base_env=1, env=(("B", "2"),), cwd="/tmp", umask=0o77, output="{id}", pin=True
    )
    job = a_job(
        5,
        state=JobState.RUNNING,
        started_at=9,
        attempts=2,
        stopping_since=11,
        priority=-3,
    )
    attempt = an_attempt(
        5,
        2,
        state=AttemptState.RUNNING,
        pid=99,
        output="/o",
        output_offset=4,
        stderr="/e",
    )
    call = AnsweredCall("key", "uid:1", 5, 5, 100)
    changes = Changes(
        meta={"last_job": "5", "paused": "1"},
        envs=[Env(1, "uid:1", '{"PATH":"/bin"}')],
        specs={1: spec},
        queues={"q1": queue},
        views={("q1", "w1"): view},
        workers={"w1": worker},
        jobs={5: job},
        attempts={(5, 1): an_attempt(5, 1, state=AttemptState.LOST), (5, 2): attempt},
        events=[Event(1, "uid:1", "enqueued", 5)],
        calls=[call],
    )
    reopen().commit(changes)
    loaded = reopen().load(0)
    assert loaded.jobs == [job]
    assert loaded.attempts == [attempt]
    assert loaded.specs == {1: spec}
    assert loaded.envs == changes.envs
    assert loaded.queues == [queue]
    assert loaded.workers == [worker]
    assert loaded.calls == [call]
    assert (loaded.last_job, loaded.last_spec, loaded.last_env) == (5, 1, 1)
    assert loaded.paused
    assert loaded.counts == {"running": 1}


def test_an_ended_attempt_keeps_what_it_used(with_spec: Store) -> None:
    job = a_job(1, state=JobState.FAILED, exit_code=3, finished_at=9, reason="why")
    attempt = an_attempt(
        state=AttemptState.EXITED,
        finished_at=9,
        exit_code=3,
        signal=None,
        reason="why",
        output_bytes=17,
        max_rss=2**40,
        cpu_s=1.25,
    )
    with_spec.commit(Changes(jobs={1: job}, attempts={(1, 1): attempt}))
    (found,) = with_spec.details([1])
    assert (found.job, found.spec, found.attempts) == (job, a_spec(), [attempt])
    assert with_spec.load(0).output_bytes == 17


def test_a_later_version_replaces_the_earlier_one(with_spec: Store) -> None:
    add_jobs(with_spec, a_job(1))
    add_jobs(with_spec, a_job(1, state=JobState.CANCELLED, finished_at=5, reason="r"))
    (found,) = with_spec.details([1])
    assert found.job.state is JobState.CANCELLED
    assert not with_spec.load(0).jobs
    assert with_spec.load(0).counts == {"cancelled": 1}


def test_a_job_is_written_whole_if_more_than_its_state_has_changed(
    with_spec: Store,
) -> None:
    jobs = {number: a_job(number, queue="q") for number in (1, 2)}
    with_spec.commit(Changes(jobs=jobs))
    changes = Changes(jobs=jobs)
    for job in jobs.values():
        changes.before[job.id] = job.state, job.common
        job.state, job.started_at = JobState.RUNNING, 7
    jobs[2].change(name="other", priority=3)
    with_spec.commit(changes)
    read = [one.job for one in with_spec.details([1, 2])]
    assert read == list(jobs.values())
    assert with_spec.counts(JobFilter()) == {JobState.RUNNING: 2}


def test_queues_views_and_workers_are_replaced_and_removed(store: Store) -> None:
    view = View({"gpu": {"0": 1}})
    worker = Worker("w1", "old")
    store.commit(
        Changes(
            queues={"q": Queue("q", 1)},
            views={("q", "w1"): view},
            workers={"w1": worker},
        )
    )
    worker.name = "new"
    paused = Queue("q", 1, paused=True, max_running=2)
    store.commit(Changes(queues={"q": paused}, workers={"w1": worker}))
    loaded = store.load(0)
    paused.views = {"w1": view}
    assert loaded.queues == [paused]
    assert loaded.workers[0].name == "new"
    store.commit(Changes(removed_views=[("q", "w1")], removed_queues=["q"]))
    assert not store.load(0).queues


def test_a_queue_deleted_and_made_anew_in_one_batch_is_there(store: Store) -> None:
    old, new = View({"gpu": {"0": 1}}), View({"gpu": {"1": 1}})
    worker = Worker("w1", "desk")
    queue = Queue("q", 1)
    store.commit(
        Changes(queues={"q": queue}, views={("q", "w1"): old}, workers={"w1": worker})
    )
    store.commit(
        Changes(
            removed_views=[("q", "w1")],
            removed_queues=["q"],
            queues={"q": Queue("q", 2)},
            views={("q", "w1"): new},
        )
    )
    assert store.load(0).queues == [Queue("q", 2, views={"w1": new})]


def test_a_commit_that_fails_leaves_nothing_behind(with_spec: Store) -> None:
    before = with_spec.load(0)
    broken = a_job(2, name="no text: \ud800")
    with pytest.raises(StorageError):
        with_spec.commit(
            Changes(
                meta={"last_job": "2"},
                envs=[Env(1, "uid:1", "{}")],
                jobs={1: a_job(1), 2: broken},
            )
        )
    assert with_spec.load(0) == before
    add_jobs(with_spec, a_job(1))
    assert ids(with_spec) == [1]


def test_a_number_too_large_to_keep_fails_like_any_other_commit(
    with_spec: Store,
) -> None:
    with pytest.raises(StorageError):
        add_jobs(with_spec, a_job(1, priority=2**70))
    add_jobs(with_spec, a_job(1))


def test_text_that_is_not_utf8_is_kept_to_the_byte(with_spec: Store) -> None:
    env = Env(3, "uid:1", '{"A":"\\udce9"}')
    spec = a_spec(cwd=f"/{NOT_UTF8}", env=(("A", NOT_UTF8),), output=NOT_UTF8)
    job = a_job(1, spec=2, words=("echo", NOT_UTF8), state=JobState.RUNNING, attempts=1)
    attempt = an_attempt(output=f"/{NOT_UTF8}", stderr=NOT_UTF8)
    with_spec.commit(
        Changes(envs=[env], specs={2: spec}, jobs={1: job}, attempts={(1, 1): attempt})
    )
    loaded = with_spec.load(0)
    assert loaded.jobs[0].words == ("echo", NOT_UTF8)
    assert loaded.specs == {2: spec}
    assert loaded.attempts == [attempt]


def test_only_unfinished_jobs_and_what_they_need_are_loaded(store: Store) -> None:
    store.commit(
        Changes(
            envs=[Env(1, "u", "{}"), Env(2, "u", '{"A":"1"}')],
            specs={1: a_spec(base_env=1), 2: a_spec(base_env=2)},
            jobs={
                1: a_job(1, spec=1, state=JobState.SUCCEEDED, finished_at=3),
                2: a_job(2, spec=2, state=JobState.RUNNING, attempts=1),
            },
            attempts={
                (1, 1): an_attempt(1, state=AttemptState.EXITED),
                (2, 1): an_attempt(2),
            },
        )
    )
    loaded = store.load(0)
    assert [job.id for job in loaded.jobs] == [2]
    assert [attempt.job for attempt in loaded.attempts] == [2]
    assert list(loaded.specs) == [2]
    assert [env.id for env in loaded.envs] == [2]
    assert (loaded.last_spec, loaded.last_env) == (2, 2)


def test_ids_of_specs_and_jobs_never_repeat_after_pruning(store: Store) -> None:
    ended = a_job(7, state=JobState.SUCCEEDED, finished_at=3)
    store.commit(Changes(meta={"last_job": "7"}, specs={1: a_spec()}, jobs={7: ended}))
    store.commit(Changes(removed_jobs=[7]))
    assert store.load(0).last_job == 7
    assert not store.details([7])


def test_pruning_removes_only_what_no_other_job_uses(store: Store) -> None:
    ended: dict[str, Any] = {"state": JobState.SUCCEEDED, "finished_at": 3}
    store.commit(
        Changes(
            envs=[Env(2, "u", '{"A":"1"}'), Env(3, "u", "{}")],
            specs={2: a_spec(base_env=2), 3: a_spec(base_env=3)},
            jobs={
                1: a_job(1, spec=3, **ended),
                2: a_job(2, spec=2, **ended),
                3: a_job(3, spec=2),
            },
            attempts={(1, 1): an_attempt(1), (2, 1): an_attempt(2)},
        )
    )
    store.commit(Changes(removed_jobs=[1, 2], unused_specs=[2, 3], unused_envs=[2, 3]))
    assert ids(store) == [3]
    loaded = store.load(0)
    assert list(loaded.specs) == [2]
    assert [env.id for env in loaded.envs] == [2]
    assert (loaded.last_spec, loaded.last_env) == (2, 2)
    assert loaded.output_bytes == 0


def test_output_to_be_removed_is_kept_until_it_is_gone(reopen: Reopen) -> None:
    store = reopen()
    one = Removal(3, "w", ("/out/1", "/out/\udcff"), 5)
    two = Removal(4, "w", ("/out/2",), 7)
    store.commit(Changes(meta={"last_removal": "4"}, removals=[one, two]))
    store.commit(Changes(removed_removals=[4]))
    again = reopen()
    loaded = again.load(0)
    assert loaded.removals == [(3, "w", 5)]
    assert (loaded.output_bytes, loaded.last_removal) == (5, 4)
    assert again.removal_paths(3) == ["/out/1", "/out/\udcff"]
    assert again.removal_paths(4) == []


def test_pruning_takes_comings_of_workers_from_before_all_jobs(store: Store) -> None:
    ended = {"state": JobState.SUCCEEDED, "finished_at": 3}
    kinds: list[tuple[str, int | None]] = [
        ("paused", None),
        ("worker-connected", None),
        ("enqueued", 1),
        ("worker-disconnected", None),
        ("enqueued", 2),
        ("worker-connected", None),
    ]
    store.commit(
        Changes(
            specs={1: a_spec()},
            jobs={1: a_job(1, **ended), 2: a_job(2)},
            events=[Event(1, "scheduler", kind, job) for kind, job in kinds],
        )
    )
    store.commit(Changes(removed_jobs=[1]))
    left = [(one.kind, one.job) for one in store.events(0, 10, None, ())]
    assert left == [kinds[0], *kinds[4:]]


def test_pages_go_both_ways_and_continue_where_they_ended(with_spec: Store) -> None:
    add_jobs(with_spec, *[a_job(number) for number in range(1, 8)])
    assert ids(with_spec, 3) == [7, 6, 5]
    assert ids(with_spec, 3, before=5) == [4, 3, 2]
    assert ids(with_spec, 3, order=Order.OLDEST) == [1, 2, 3]
    assert ids(with_spec, 3, order=Order.OLDEST, after=3) == [4, 5, 6]


def test_pages_can_be_in_the_order_of_ending(with_spec: Store) -> None:
    add_jobs(
        with_spec,
        a_job(1),
        a_job(4, state=JobState.FAILED, finished_at=20),
        a_job(5, state=JobState.SUCCEEDED, finished_at=10),
        a_job(9, state=JobState.LOST, finished_at=20),
        a_job(7, state=JobState.SUCCEEDED, finished_at=20),
    )
    assert ids(with_spec, order=Order.FINISHED) == [9, 7, 4, 5]
    assert ids(with_spec, 2, order=Order.FINISHED) == [9, 7]


def test_pages_can_be_limited_to_states_and_a_queue(with_spec: Store) -> None:
    add_jobs(
        with_spec,
        a_job(1),
        a_job(2, queue="q1"),
        a_job(3, queue="q1", state=JobState.FAILED, finished_at=1),
    )
    assert ids(with_spec, queue="q1") == [3, 2]
    assert ids(with_spec, states=(JobState.FAILED, JobState.LOST)) == [3]
    assert ids(with_spec, queue="q1", states=(JobState.QUEUED,)) == [2]
    assert ids(with_spec, queue="no-such") == []


def test_details_skip_what_does_not_exist(with_spec: Store) -> None:
    add_jobs(with_spec, a_job(1), a_job(2))
    assert [found.job.id for found in with_spec.details([9, 2, 1, 2])] == [1, 2]
    assert with_spec.details([]) == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2"], [2]),
        (["2-3"], [2, 3]),
        (["3-99"], [3, 4]),
        (["77"], []),
        (["last"], [4]),
        (["all"], [1, 2]),
        (["@thesis"], [2]),
        (["name~^tr"], [1, 3]),
        (["name~"], [1, 2, 3, 4]),
        (["state:failed"], [3]),
        (["queue:q1"], [4]),
        (["1", "3-4"], [1, 3, 4]),
        (["state:failed", "state:lost"], [3, 4]),
        (["all", "state:lost"], [1, 2, 4]),
        (["queue:q1", "1", "state:failed"], []),
        (["queue:default", "1-3", "state:failed", "all", "name~^tr"], [1, 3]),
        (["1-4", "@thesis"], [2]),
        (["last", "queue:default"], [3]),
        (["all", "last"], [2]),
        (["last", "state:running"], []),
        ([], [1, 2, 3, 4]),
    ],
)
def test_selectors_of_one_kind_add_up_and_different_kinds_narrow(
    with_spec: Store, texts: list[str], expected: list[int]
) -> None:
    add_four(with_spec)
    assert selected(with_spec, *texts) == expected
    found = ids(with_spec, selection=combine(map(selectors.read, texts)))
    assert sorted(found) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["queue:q1", "1", "state:failed"], [1, 3, 4]),
        (["@thesis", "last"], [2, 4]),
        (["name~^tr", "2"], [1, 2, 3]),
    ],
)
def test_a_union_has_the_jobs_of_any_selector(
    with_spec: Store, texts: list[str], expected: list[int]
) -> None:
    add_four(with_spec)
    assert selected(with_spec, *texts, union=True) == expected


def add_four(store: Store) -> None:
    add_jobs(
        store,
        a_job(1, name="train"),
        a_job(2, name="eval", project="thesis"),
        a_job(3, name="train2", state=JobState.FAILED, finished_at=1),
        a_job(4, name="x", queue="q1", state=JobState.LOST, finished_at=2),
    )


def test_a_selector_that_is_not_text_finds_nothing_and_harms_nothing(
    with_spec: Store,
) -> None:
    add_jobs(with_spec, a_job(1))
    with pytest.raises(StorageError):
        with_spec.select(combine([selectors.Selector(project="\ud800")]))
    assert selected(with_spec, "all") == [1]


def test_a_chain_that_was_cancelled_is_found_by_its_leader(with_spec: Store) -> None:
    waits = [a_spec(after=(After("any", job, job),)) for job in (1, 2, 9)]
    specs = dict(enumerate(waits, 101))
    with_spec.commit(Changes(specs=specs))
    reason = "waited for job 1 to succeed, and it has failed"
    ended = {"state": JobState.CANCELLED, "finished_at": 5, "reason": reason}
    add_jobs(
        with_spec,
        a_job(1, state=JobState.FAILED, finished_at=4),
        a_job(2, spec=101, **ended),
        a_job(3, spec=101, **ended),
        a_job(4, spec=102, **ended),
        a_job(5, spec=103, **ended),
        a_job(6, spec=101, **{**ended, "reason": None}),
        a_job(7, spec=101, state=JobState.WAITING),
    )
    assert with_spec.dependents([1]) == [2, 3, 4]
    assert with_spec.dependents([2, 1]) == [2, 3, 4]
    assert with_spec.dependents([3]) == []
    assert with_spec.dependents([9, 2]) == [4, 5]


def test_jobs_are_told_apart_by_their_owner(with_spec: Store) -> None:
    add_jobs(with_spec, a_job(1, owner="me"), a_job(2, owner="you"), a_job(3))
    add_jobs(with_spec, a_job(4, owner="me"))
    assert with_spec.owned_by("me", [4, 3, 2, 1]) == [1, 4]
    assert with_spec.owned_by("me", [2, 4, 9]) == [4]


def test_jobs_to_prune_come_oldest_first_and_only_ended_ones(with_spec: Store) -> None:
    add_jobs(
        with_spec,
        a_job(1, state=JobState.SUCCEEDED, finished_at=30),
        a_job(2, state=JobState.FAILED, finished_at=10),
        a_job(3),
        a_job(4, state=JobState.LOST, finished_at=99),
    )
    attempt = an_attempt(2, state=AttemptState.EXITED, output_bytes=5)
    with_spec.commit(Changes(attempts={(2, 1): attempt}))
    assert with_spec.finished_before(50, 10) == [2, 1]
    assert with_spec.finished_before(50, 1) == [2]
    assert with_spec.finished_before(50, 5, 1) == [1]
    assert with_spec.usage_before(50) == (2, 5)


def test_keys_are_kept_until_they_expire_and_may_then_be_used_again(
    store: Store,
) -> None:
    old, new = AnsweredCall("old", "u", 1, 2, 10), AnsweredCall("new", "u", 3, 3, 20)
    store.commit(Changes(calls=[old, new]))
    assert store.load(0).calls == [old, new]
    assert store.call(old.key) == old
    assert store.call("no-such") is None
    again = AnsweredCall("old", "u", 8, 9, 30)
    store.commit(Changes(calls=[again]))
    assert store.load(0).calls == [new, again]
    assert store.load(25).calls == [again]
    assert store.load(0).calls == [again]


def test_jobs_that_still_arrive_do_not_exist_yet(reopen: Reopen) -> None:
    store = reopen()
    store.commit(Changes(specs={1: a_spec()}, jobs={1: a_job(1)}))
    store.commit(Changes(arrivals=[(2, 4)], jobs={2: a_job(2), 3: a_job(3)}))
    assert ids(store) == [1]
    assert selected(store, "all") == [1]
    store.commit(Changes(removed_arrivals=[2], jobs={4: a_job(4)}))
    assert ids(store) == [4, 3, 2, 1]
    store.commit(Changes(arrivals=[(5, 6)], jobs={5: a_job(5)}))
    again = reopen()
    assert [job.id for job in again.load(0).jobs] == [1, 2, 3, 4]
    assert ids(again) == [4, 3, 2, 1]


def test_what_only_jobs_needed_that_never_arrived_goes_with_them(
    reopen: Reopen,
) -> None:
    store = reopen()
    later = a_spec(cwd="/later", base_env=1)
    store.commit(Changes(specs={1: a_spec()}, jobs={1: a_job(1)}))
    store.commit(
        Changes(
            envs=[Env(1, "u", "{}")],
            specs={2: later},
            jobs={2: a_job(2, spec=2)},
            arrivals=[(2, 3)],
        )
    )
    assert store.environments({1: ""})
    loaded = reopen().load(0)
    assert (loaded.last_spec, loaded.last_env) == (1, 0)
    assert list(loaded.specs) == [1]


def test_reading_goes_on_while_commits_go_on(with_spec: Store) -> None:
    def write() -> None:
        for number in range(1, 60):
            add_jobs(with_spec, a_job(number))

    writing = Thread(target=write)
    writing.start()
    seen = [0]
    while writing.is_alive():
        seen.append(len(ids(with_spec)))
    writing.join()
    assert seen == sorted(seen)
    assert len(ids(with_spec)) == 59


def test_closing_twice_is_fine(store: Store) -> None:
    store.close()
    store.close()


def test_an_attempt_taken_back_is_gone_and_its_number_may_be_used_again(
    with_spec: Store,
) -> None:
    job = a_job(1, state=JobState.RUNNING, attempts=1)
    with_spec.commit(Changes(jobs={1: job}, attempts={(1, 1): an_attempt(after=9)}))
    assert with_spec.load(0).attempts == [an_attempt(after=9)]
    again = an_attempt(allocation={"cpu": {"1": 5}})
    with_spec.commit(Changes(removed_attempts=[(1, 1)], attempts={(1, 1): again}))
    assert with_spec.load(0).attempts == [again]
    with_spec.commit(Changes(removed_attempts=[(1, 1)]))
    assert with_spec.details([1])[0].attempts == []


def test_a_worker_that_was_removed_is_gone_with_its_views(reopen: Reopen) -> None:
    view = View({"gpu": {"0": 5000}})
    workers = {name: Worker(name, name) for name in ("w1", "w2")}
    queue = Queue("q1", 7, views={"w1": view, "w2": view})
    views = {("q1", name): view for name in workers}
    reopen().commit(Changes(queues={"q1": queue}, views=views, workers=workers))
    gone = Changes(removed_workers=["w1"], removed_views=[("q1", "w1")])
    reopen().commit(gone)
    loaded = reopen().load(0)
    assert [worker.id for worker in loaded.workers] == ["w2"]
    assert list(loaded.queues[0].views) == ["w2"]


def test_ends_are_counted_from_an_event_on(with_spec: Store) -> None:
    add_jobs(
        with_spec,
        a_job(1, state=JobState.SUCCEEDED, finished_at=10),
        a_job(2, state=JobState.SUCCEEDED, finished_at=30),
        a_job(3, state=JobState.LOST, finished_at=31),
        a_job(4),
        a_job(5, state=JobState.FAILED, finished_at=40),
    )
    with_spec.commit(Changes(events=[Event(10, "uid:1", "finished", 1, 1, "{}")]))
    last = with_spec.last_event()
    assert with_spec.ends_after(last, 4) == {"succeeded": 1, "lost": 1}
    assert with_spec.ends_after(last, 9) == {"succeeded": 1, "lost": 1, "failed": 1}
    assert with_spec.ends_after(0, 1) == {"succeeded": 1}


def test_a_job_is_found_by_its_own_name_and_keeps_its_parameters(
    with_spec: Store,
) -> None:
    members = [
        a_job(id, name="fit-{index}-{lr}", created_at=5, index=id, params={"lr": lr})
        for id, lr in ((1, "0.1"), (2, "0.2"), (3, NOT_UTF8))
    ]
    add_jobs(with_spec, *members, a_job(4, name="{no}", index=2))
    assert selected(with_spec, "name~^fit-2-0.2$") == [2]
    assert ids(with_spec, name="fit-1-0.1") == [1]
    assert ids(with_spec, name="fit-{index}-{lr}") == []
    assert selected(with_spec, "name~no") == [4]
    loaded = with_spec.load(0).jobs
    assert [job.params for job in loaded] == [job.params for job in members] + [{}]
    assert loaded[0].common == loaded[1].common
