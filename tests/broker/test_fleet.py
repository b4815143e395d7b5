"""Several workers: their names, what may run where, and what is left when one goes."""

from collections.abc import Callable

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import BOOT, WORKER, units

from grass.broker.core.calls import CreateQueue, DeleteQueue, ForgetWorker, FromWorker
from grass.broker.core.jobs import eligibility
from grass.broker.core.workers.message_checks import LONGEST_REASON
from grass.errors import Forbidden, NeverFits, NotFound, ProtocolError, Refused
from grass.link.messages import (
    Exited,
    Forget,
    Hello,
    Recall,
    Report,
    Returned,
    Start,
    Started,
    Stop,
    Welcome,
)
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.queue import QueuePatch
from grass.model.resources import capacity_from
from grass.model.worker import Unit

FOUR_CORES = capacity_from("{cpu:4}")

MakeBroker = Callable[[str], Brokerage]


@pytest.fixture
def two(broker: Brokerage) -> Brokerage:
    """A worker `desk` with two cores, and a `farm` with four and a label."""
    broker.join("farm", "{cpu:4}", labels=("a100", "big"))
    return broker


def events(broker: Brokerage, kind: str) -> list[str]:
    return [line.data for line in broker.store.events(0, 1000, None, (kind,))]


# Names.


def test_no_two_workers_share_a_name(broker: Brokerage) -> None:
    broker.join("w2", name="desk")
    broker.join("w3", name="desk")
    names = [worker.name for worker in broker.state.workers.values()]
    assert names == ["desk", "desk-2", "desk-3"]


def test_a_worker_keeps_its_number_while_the_name_is_taken(broker: Brokerage) -> None:
    broker.join("w2", name="desk")
    broker.join("w2", name="desk")
    assert broker.state.workers["w2"].name == "desk-2"
    broker.leave(WORKER)
    broker.forget("desk")
    broker.join("w2", name="desk")
    assert broker.state.workers["w2"].name == "desk"


def test_a_worker_that_is_called_otherwise_now_is_known_by_that(
    broker: Brokerage,
) -> None:
    broker.join("w2", name="old")
    broker.join("w2", name="new")
    assert broker.state.workers["w2"].name == "new"


def test_a_name_with_odd_characters_is_made_plain(broker: Brokerage) -> None:
    broker.join("w2", name="my machine\x1b[31m/..")
    assert broker.state.workers["w2"].name == "my-machine--31m-.."


def test_a_worker_is_remembered_with_all_it_said(broker: Brokerage) -> None:
    broker.join("w2", labels=("big", "a100"), lease_s=30.0)
    broker.restart()
    worker = broker.state.workers["w2"]
    assert (worker.labels, worker.lease_s) == (("a100", "big"), 30.0)
    assert worker.address == "10.0.0.7"
    assert worker.heard_at is not None
    assert not worker.connected


def test_a_welcome_repeats_the_time_of_the_hello(broker: Brokerage) -> None:
    broker.join("w2", at=12.5)
    [welcome] = broker.said(Welcome)
    assert (welcome.cluster, welcome.at) == (broker.state.cluster, 12.5)


# What may run where.


def test_a_job_runs_on_the_worker_it_names_and_waits_for_it(two: Brokerage) -> None:
    jobs = [two.enqueue(worker="farm") for _ in range(5)]
    assert [two.where(job) for job in jobs[:4]] == ["farm"] * 4
    assert two.job_state(jobs[4]) is JobState.QUEUED
    assert two.job(jobs[4]).spec.worker == "farm"


def test_a_job_runs_where_its_labels_are(two: Brokerage) -> None:
    job = two.enqueue(labels=("a100", "big"))
    assert two.where(job) == "farm"
    assert two.job(job).spec.labels == ("a100", "big")


def test_a_label_that_no_worker_has_is_refused(two: Brokerage) -> None:
    with pytest.raises(NeverFits, match="no worker of queue `default` has `h200`"):
        two.enqueue(labels=("h200",))


def test_an_unknown_worker_is_refused(two: Brokerage) -> None:
    with pytest.raises(NotFound, match="there is no worker `moon`"):
        two.enqueue(worker="moon")


def test_more_than_the_named_worker_has_is_refused(two: Brokerage) -> None:
    with pytest.raises(NeverFits, match="cpu: asked 3"):
        two.enqueue(worker="desk", require="{cpu:3}")


def test_a_worker_without_a_part_in_the_queue_is_refused(two: Brokerage) -> None:
    two.create_queue("q", "{cpu:2}")
    with pytest.raises(NeverFits, match="worker `farm` has no part in queue `q`"):
        two.enqueue(worker="farm", queue="q")


def test_a_worker_that_is_away_counts_for_what_can_be_met(two: Brokerage) -> None:
    two.leave("farm")
    job = two.enqueue(require="{cpu:4}")
    assert two.job_state(job) is JobState.QUEUED
    two.restart()
    with pytest.raises(NeverFits):
        two.enqueue(require="{cpu:5}")
    assert two.enqueue(labels=("a100",))
    two.join("farm", "{cpu:4}", labels=("a100", "big"))
    assert two.where(job) == "farm"


def test_an_edit_and_a_rerun_may_send_a_job_elsewhere(two: Brokerage) -> None:
    two.pause()
    job = two.enqueue(worker="desk")
    two.edit(job, worker="farm", labels=("big",))
    two.resume()
    assert two.where(job) == "farm"
    two.hear(Exited(two.name(job), two.now_us, 0), "farm")
    two.rerun(job, worker=None, labels=())
    spec = two.job(job).spec
    assert (spec.worker, spec.labels) == (None, ())
    with pytest.raises(NeverFits):
        two.edit(two.enqueue(hold=True), labels=("h200",))


def test_one_queue_is_over_all_workers_that_have_it(two: Brokerage) -> None:
    two.create_queue("q", "{cpu:2}", "echo")
    two.call(
        CreateQueue(ME, "q", "farm", QueuePatch(capacity=FOUR_CORES, prefix=("echo",)))
    )
    jobs = [two.enqueue("x", queue="q") for _ in range(6)]
    assert {two.where(job) for job in jobs} == {WORKER, "farm"}


# The environment of a caller stays on its machine.


def test_only_the_brokers_own_worker_gets_the_callers_environment(
    two: Brokerage,
) -> None:
    for worker, told in (("desk", {"SECRET": "1"}), ("farm", None)):
        call = two.new_job(worker=worker, cwd="/data", umask=0o77)
        call.base_env = {"SECRET": "1"}
        two.call(call)
        (start,) = two.said(Start)
        assert start.base_env == told
        assert (start.cwd, start.umask) == ("/data", 0o77)


# Draining a whole worker.


def test_nothing_new_starts_on_a_drained_worker(two: Brokerage) -> None:
    before = two.enqueue(worker="farm")
    assert two.rest("farm").changed
    waiting = two.enqueue(worker="farm")
    other = two.enqueue()
    assert two.job_state(waiting) is JobState.QUEUED
    assert (two.where(before), two.where(other)) == ("farm", WORKER)
    assert not two.rest("farm").changed
    two.restart()
    two.join("farm", "{cpu:4}", running=[two.report(before)])
    assert two.job_state(waiting) is JobState.QUEUED
    two.rest("farm", False)
    assert two.where(waiting) == "farm"


def test_prefetched_jobs_of_a_drained_worker_are_recalled(
    broker: Brokerage,
) -> None:
    broker.join("short", "{cpu:1}")
    _, follower = broker.prefetched("short")
    broker.rest("short")
    (recall,) = broker.said(Recall)
    assert recall.attempts == [broker.name(follower)]
    assert recall.placed_at == [broker.state.attempts[follower].started_at]


# Who may speak for an attempt.


def test_a_report_of_another_workers_attempt_is_ignored(two: Brokerage) -> None:
    job = two.enqueue(worker="desk")
    name = two.name(job)
    two.hear(Started(name, 7, two.now_us), "farm")
    assert two.state.attempts[job].state is AttemptState.STARTING
    two.hear(Returned(name, "full"), "farm")
    two.hear(Exited(name, two.now_us, 0), "farm")
    assert two.running() == [job]
    assert two.sent[0] == ("farm", Forget([name]))
    two.exit(job)
    assert two.job_state(job) is JobState.SUCCEEDED


def test_an_attempt_of_ours_on_a_worker_that_should_not_have_it_is_foreign(
    two: Brokerage,
) -> None:
    job = two.enqueue(worker="desk")
    two.join("farm", "{cpu:4}", running=[two.report(job)])
    assert not any(isinstance(one, Stop) for _, one in two.sent)
    assert [one.name for one in two.state.foreign.of("farm")] == [two.name(job)]
    assert two.where(job) == WORKER


def test_a_worker_whose_id_is_another_s_name_does_not_get_its_jobs(
    two: Brokerage,
) -> None:
    two.join("desk", "{cpu:4}", name="innocent")
    assert two.where(two.enqueue(worker="desk")) == WORKER


def test_no_worker_is_called_like_an_id(two: Brokerage) -> None:
    two.join("third", "{cpu:4}", name="00000000000000f9")
    assert two.state.workers["third"].name == "00000000000000f9-2"


# Messages that make no sense.

BAD = [
    Exited("nonsense", 5, 0),
    Started("f.1.1", 5, 5),
    Returned("", "x"),
    Exited(f"{'a' * 16}.1.1", 5, 0, reason="\ud800"),
    *(
        Exited(f"{'a' * 16}.1.1", **{"at": 5, **wrong})  # type: ignore[arg-type]
        for wrong in (
            {"at": -1},
            {"at": 2**63 - 1},
            {"output_bytes": 2**63 - 1},
            {"output_bytes": -1},
            {"exit_code": 256},
            {"exit_code": -1},
            {"signal": 0},
            {"signal": 65},
            {"max_rss": 2**51},
            {"cpu_s": float("nan")},
            {"cpu_s": float("inf")},
            {"cpu_s": -1.0},
            {"ran_s": -1.0},
            {"ran_s": float("nan")},
            {"ran_s": 1e11},
            {"output": "x" * 65537},
        )
    ),
    Started(f"{'a' * 16}.1.1", 0, 5),
    Started(f"{'a' * 16}.1.1", 2**31 + 1, 5),
    Started(f"{'a' * 16}.1.1", 5, 2**62),
    Started(f"{'a' * 16}.1.1", 5, 5, output_offset=-1),
    Started(f"{'a' * 16}.1.1", 5, 5, stderr_offset=2**51),
    Started(f"{'a' * 16}.1.1", 5, 5, stderr="x" * 65537),
    Report(f"{'a' * 16}.1.1", {}, running=True, started_at=2**62),
]


def test_a_long_reason_is_cut(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.exit(job, 1, reason="x" * 65537)
    assert broker.reason(job) == "x" * LONGEST_REASON


@pytest.mark.parametrize("message", BAD, ids=lambda one: repr(one)[:40])
def test_a_bad_report_changes_nothing(broker: Brokerage, message: Exited) -> None:
    with pytest.raises(ProtocolError):
        broker.step_hear(message)
    assert not broker.state.batch.changes
    assert not broker.state.batch.outbox


@pytest.mark.parametrize(
    "said",
    [
        {"exited": [Exited("nonsense", 5, 0)]},
        {"running": [Report("nonsense", {}, running=True)]},
        {"started": [Started("nonsense", 5, 5)]},
        {"labels": ("a b",)},
        {"labels": ("x",) * 65},
        {"lease_s": 0.0},
        {"lease_s": float("nan")},
        {"boot": "\ud800"},
        {"found": {"gpu": {"0": Unit(-5)}}},
        {"found": {"a b": {"0": Unit(5)}}},
        {"name": "x" * 5000},
    ],
    ids=str,
)
def test_a_bad_hello_changes_nothing(
    broker: Brokerage, said: dict[str, object]
) -> None:
    fields = {"name": "w2", "boot": BOOT, "found": units("{cpu:1}"), **said}
    fields = {"running": [], "exited": [], **fields}
    with pytest.raises(ProtocolError):
        broker.step(FromWorker("w2", Hello("w2", **fields)))  # type: ignore[arg-type]
    assert "w2" not in broker.state.workers
    assert not broker.state.batch.changes
    assert not broker.state.batch.outbox


def test_a_hello_for_another_worker_changes_nothing(broker: Brokerage) -> None:
    hello = Hello("w2", "w2", BOOT, units("{cpu:1}"), [], [])
    with pytest.raises(ProtocolError):
        broker.step(FromWorker(WORKER, hello))
    assert "w2" not in broker.state.workers


# Away, and forgotten.


def test_attempts_of_a_worker_that_is_away_stay_as_they_are(two: Brokerage) -> None:
    job = two.enqueue(worker="farm", retry_lost=3)
    two.leave("farm")
    two.pass_time(10 * 86400)
    assert two.job_state(job) is JobState.RUNNING
    assert two.running() == [job]
    assert len(events(two, "worker-disconnected")) == 1
    two.join("farm", "{cpu:4}", running=[two.report(job)])
    assert two.state.attempts[job].number == 1


def test_a_worker_that_is_connected_cannot_be_forgotten(two: Brokerage) -> None:
    with pytest.raises(Refused, match="worker `farm` is connected"):
        two.forget("farm")


def test_the_brokers_own_worker_cannot_be_forgotten(two: Brokerage) -> None:
    two.state.workers["farm"].address = None
    with pytest.raises(Refused, match="part of the broker's own daemon") as refused:
        two.forget("farm")
    assert "grass restart --no-worker" in refused.value.hint


def test_what_a_forgotten_worker_ran_is_lost_and_runs_again_only_when_told(
    two: Brokerage,
) -> None:
    lost = two.enqueue(worker="farm")
    again = two.enqueue(labels=("big",), retry_lost=1)
    two.leave("farm")
    assert two.forget("farm").jobs == [lost, again]
    assert two.states(lost, again) == ["lost", "held"]
    assert two.reason(lost) == "its worker was forgotten"
    assert list(two.state.workers) == [WORKER]
    two.restart()
    assert list(two.state.workers) == [WORKER]
    assert len(events(two, "worker-forgotten")) == 1
    told = eligibility.why(two.state, two.state.jobs[again])
    assert "may still run it" in told
    assert f"`grass release {again}`" in told
    two.release(again)
    assert two.states(again) == ["queued"]


def test_the_views_of_a_forgotten_worker_go_and_empty_queues_with_them(
    two: Brokerage,
) -> None:
    view = capacity_from("{cpu:1}")
    two.create_queue("shared", "{cpu:1}")
    for name in ("shared", "own", "used"):
        two.call(CreateQueue(ME, name, "farm", QueuePatch(capacity=view)))
    waiting = two.enqueue(queue="used", hold=True)
    two.leave("farm")
    two.forget("farm")
    assert sorted(two.state.queues) == ["default", "shared", "used"]
    assert list(two.state.queues["shared"].views) == [WORKER]
    two.release(waiting)
    assert two.states(waiting) == ["queued"]
    two.create_queue("used", "{cpu:1}")
    assert two.where(waiting) == WORKER


def test_a_forgotten_worker_that_comes_back_is_new_and_stops_what_it_has(
    two: Brokerage,
) -> None:
    job = two.enqueue(worker="farm")
    report = two.report(job)
    two.leave("farm")
    two.forget("farm")
    two.join("farm", "{cpu:4}", running=[report])
    assert [stop.attempt for stop in two.said(Stop)] == [report.attempt]
    assert two.state.workers["farm"].connected


def test_a_worker_may_be_forgotten_and_come_back_in_one_batch(two: Brokerage) -> None:
    two.leave("farm")
    two.step(ForgetWorker(ME, "farm"))
    hello = Hello("farm", "farm", BOOT, units("{cpu:4}"), [], [])
    two.call(FromWorker("farm", hello))
    two.restart()
    assert "farm" in two.state.workers


# Queues on several workers.


def test_a_queue_has_a_command_everywhere_or_nowhere(two: Brokerage) -> None:
    two.create_queue("q", "{cpu:2}", "echo")
    with pytest.raises(Refused, match="queue `q` has a command on desk"):
        two.call(CreateQueue(ME, "q", "farm", QueuePatch(capacity=FOUR_CORES)))


def test_a_second_workers_view_leaves_the_queues_limits_alone(two: Brokerage) -> None:
    two.create_queue("q", "{cpu:2}", max_running=3)
    two.call(CreateQueue(ME, "q", "farm", QueuePatch(capacity=FOUR_CORES)))
    assert two.state.queues["q"].max_running == 3
    two.call(DeleteQueue(ME, "q", "farm"))
    call = CreateQueue(ME, "q", "farm", QueuePatch(capacity=FOUR_CORES, max_running=4))
    with pytest.raises(Refused, match="another limit on running jobs"):
        two.call(call)


def test_deleting_one_of_several_views_leaves_the_queue_and_its_jobs(
    two: Brokerage,
) -> None:
    two.create_queue("q", "{cpu:2}")
    two.call(CreateQueue(ME, "q", "farm", QueuePatch(capacity=FOUR_CORES)))
    running = two.enqueue(queue="q", worker="farm")
    with pytest.raises(Refused, match="1 unfinished job"):
        two.call(DeleteQueue(ME, "q", "farm"))
    two.call(DeleteQueue(ME, "q", WORKER))
    assert list(two.state.queues["q"].views) == ["farm"]
    with pytest.raises(NotFound, match="no part in queue `q`"):
        two.call(DeleteQueue(ME, "q", WORKER))
    two.hear(Exited(two.name(running), two.now_us, 0), "farm")
    two.call(DeleteQueue(ME, "q", "farm"))
    assert "q" not in two.state.queues


def test_a_worker_without_a_token_does_not_come_back(broker: Brokerage) -> None:
    broker.join("farm", "{cpu:4}")
    found = broker.state.workers["farm"].found
    broker.leave("farm")
    broker.forget("farm")
    hello = Hello("farm", "farm", BOOT, found, [], [])
    with pytest.raises(Forbidden, match="no token belongs to this worker"):
        broker.call(FromWorker("farm", hello, "10.0.0.7"))
    assert "farm" not in broker.state.workers
