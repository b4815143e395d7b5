"""Taking new jobs in: all or none, once, and only what can run."""

from collections.abc import Callable

import pytest
from tests.support.brokerage import ME, SECOND, Brokerage, memory
from tests.support.building import WORKER

from grass.broker.core.calls import (
    Enqueue,
    Enqueued,
    ForgetWorker,
    NewJob,
    Prune,
    WorkerGone,
)
from grass.broker.shell.new_secrets import new_token_call
from grass.errors import GrassError, NeverFits, NotFound, Refused, UsageError
from grass.link.messages import Start
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import JobPatch

MakeBroker = Callable[[str], Brokerage]
PLAIN = JobPatch()
AN_HOUR = 3600 * SECOND


def jobs(count: int, settings: JobPatch = PLAIN) -> list[NewJob]:
    return [NewJob(("true",), settings) for _ in range(count)]


def test_ids_follow_on_each_other_and_grow_for_ever(broker: Brokerage) -> None:
    assert broker.call(Enqueue(ME, jobs(3))) == Enqueued(1, 3)
    broker.restart()
    broker.hello()
    assert broker.call(Enqueue(ME, jobs(2))) == Enqueued(4, 5)
    broker.cancel(1, 2, 3, 4, 5)
    ended = list(range(1, 6))
    broker.call(Prune(ME, ended, wanted=ended))
    broker.restart()
    assert broker.enqueue("true") == 6


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (NewJob((), PLAIN), UsageError),
        (NewJob(("",), PLAIN), UsageError),
        (NewJob(("A=1",), PLAIN), UsageError),
        (NewJob(("echo", "a\0b"), PLAIN), UsageError),
        (NewJob(("true",), JobPatch(queue="nobody's")), NotFound),
        (NewJob(("true",), JobPatch(request=(("cpu", 99 * 10_000),))), NeverFits),
        (NewJob(("true",), JobPatch(request=(("printer", 1),))), NeverFits),
        (NewJob(("run", "{gpu}"), PLAIN), UsageError),
        (NewJob(("run",), JobPatch(env=(("A", "{gpu}"),))), UsageError),
        (NewJob(("run",), JobPatch(output="{gpu}.log")), UsageError),
    ],
)
def test_one_bad_job_among_good_ones_adds_none(
    broker: Brokerage, bad: NewJob, error: type[GrassError]
) -> None:
    before = memory(broker.state)
    with pytest.raises(error):
        broker.step(Enqueue(ME, [*jobs(2), bad], "key", {"SECRET": "1"}))
    assert memory(broker.state) == before
    assert not broker.core.take().changes
    assert broker.call(Enqueue(ME, jobs(1), "key")) == Enqueued(1, 1)


def test_a_call_without_jobs_is_refused(broker: Brokerage) -> None:
    with pytest.raises(UsageError, match="no jobs"):
        broker.call(Enqueue(ME, []))


def test_a_repeated_key_is_answered_as_before_and_adds_nothing(
    broker: Brokerage,
) -> None:
    first = broker.call(Enqueue(ME, jobs(2), "key"))
    assert broker.call(Enqueue(ME, jobs(2), "key")) == first
    broker.restart()
    assert broker.call(Enqueue(ME, jobs(2), "key")) == first
    assert broker.state.last_job == 2


def test_the_key_of_another_actor_is_refused(broker: Brokerage) -> None:
    broker.call(Enqueue(ME, jobs(1), "key"))
    with pytest.raises(Refused):
        broker.call(Enqueue("uid:7", jobs(1), "key"))


TOKEN = "token:two"


@pytest.mark.parametrize(("first", "then"), [(ME, TOKEN), (TOKEN, ME)])
def test_a_key_of_a_brokers_machine_is_known_whoever_leads(
    broker: Brokerage, first: str, then: str
) -> None:
    broker.call(new_token_call(ME, "x", "broker", "two", is_code=False))
    broker.call(new_token_call(ME, "x", "machine", "rack", is_code=False))
    done = broker.call(Enqueue(first, jobs(1), "key"))
    with pytest.raises(Refused):
        broker.call(Enqueue(then, jobs(1), "key"))
    broker.core.state.daemon.shared = True
    assert broker.call(Enqueue(then, jobs(1), "key")) == done
    for other in ("token:rack", "token:nobody"):
        with pytest.raises(Refused):
            broker.call(Enqueue(other, jobs(1), "key"))


def test_a_key_is_forgotten_when_it_is_old_and_may_be_used_again(
    broker: Brokerage,
) -> None:
    broker.call(Enqueue(ME, jobs(1), "old"))
    broker.now_us += 2 * AN_HOUR
    broker.core.step(Enqueue(ME, jobs(1), "new"), broker.now_us)
    assert list(broker.state.answered.by_key) == ["new"]
    assert broker.core.step(Enqueue(ME, jobs(1), "old"), broker.now_us) == Enqueued(
        3, 3
    )


def test_a_queue_whose_workers_have_not_come_yet_accepts_and_waits(
    broker: Brokerage,
) -> None:
    broker.call(WorkerGone(WORKER))
    broker.call(ForgetWorker(ME, "desk"))
    job = broker.enqueue("true", require="{gpu:64}")
    assert broker.job_state(job) is JobState.QUEUED
    assert not broker.started_jobs()


def test_without_a_request_a_job_takes_one_core(broker: Brokerage) -> None:
    broker.enqueue("true")
    assert broker.job(1).spec.request == (("cpu", 10_000),)


def test_a_queues_default_request_stands_in_and_an_explicit_one_wins(
    broker: Brokerage,
) -> None:
    broker.create_queue("q1", "{slot:4}", default_request=(("slot", 20_000),))
    default = broker.enqueue("true", queue="q1")
    explicit = broker.enqueue("true", queue="q1", require="{slot:1}")
    nothing = broker.enqueue("true", queue="q1", require="{}")
    assert broker.job(default).spec.request == (("slot", 20_000),)
    assert broker.job(explicit).spec.request == (("slot", 10_000),)
    assert broker.job(nothing).spec.request == ()


def test_a_prefix_takes_every_word_as_an_argument(broker: Brokerage) -> None:
    broker.create_queue("py", "{cpu:1}", "python", "/x/main.py", cwd="/x")
    words = ("--fast", "A=1", "two words")
    job = broker.enqueue(*words, queue="py", directory="/home")
    (start,) = broker.said(Start)
    assert (start.prefix, start.words) == (("python", "/x/main.py"), words)
    assert not start.shell
    assert start.cwd == "/x"
    assert broker.job(job).job.name == "main.py"
    broker.exit(job)
    other = broker.enqueue(queue="py", cwd="/mine")
    assert broker.said(Start)[0].cwd == "/mine"
    assert broker.job(other).job.words == ("true",)


def test_jobs_run_where_the_caller_stood_unless_told_otherwise(
    broker: Brokerage,
) -> None:
    broker.enqueue("true", directory="/home")
    assert broker.said(Start)[0].cwd == "/home"
    broker.enqueue("true", directory="/home", cwd="/data")
    assert broker.said(Start)[0].cwd == "/data"


def test_one_word_with_spaces_is_run_by_a_shell(broker: Brokerage) -> None:
    assert broker.job(broker.enqueue("A=1 python train.py")).job.shell
    assert broker.job(broker.enqueue("A=1", "echo a; echo b")).job.shell
    assert not broker.job(broker.enqueue("echo", "a b")).job.shell


def test_a_name_is_given_or_taken_from_the_program(broker: Brokerage) -> None:
    assert broker.job(broker.enqueue("/usr/bin/env", "x")).job.name == "env"
    assert broker.job(broker.enqueue("env", name="mine")).job.name == "mine"
    assert broker.job(broker.enqueue("caf\udce9")).job.name == "caf?"


def test_an_environment_is_stored_once_for_each_owner(broker: Brokerage) -> None:
    for owner in (ME, ME, "uid:7"):
        broker.call(Enqueue(owner, jobs(1), None, {"A": "1", "B": "caf\udce9"}))
    specs = [broker.job(number).spec.base_env for number in (1, 2, 3)]
    assert specs == [1, 1, 2]
    assert len(broker.store.load(0).envs) == 2


def test_raw_jobs_keep_their_braces(broker: Brokerage) -> None:
    broker.enqueue("echo", "{gpu}", raw=True)
    assert broker.said(Start)[0].raw


def test_where_gpus_exist_a_job_without_one_is_given_a_hint(
    broker_of: MakeBroker,
) -> None:
    broker = broker_of("{cpu:2, gpu:1}")
    assert "-g 1" in broker.call(Enqueue(ME, jobs(1))).hint
    with_gpu = JobPatch(request=(("gpu", 5000),))
    assert not broker.call(Enqueue(ME, jobs(1, with_gpu))).hint


def test_higher_priority_starts_first_then_the_earlier_one(broker: Brokerage) -> None:
    broker.pause()
    first, second = broker.enqueue(), broker.enqueue()
    urgent = broker.enqueue(priority=5)
    broker.restart()
    broker.hello()
    broker.resume()
    assert broker.started_jobs() == [urgent, first]
    broker.exit(urgent)
    assert broker.started_jobs() == [second]


def test_a_large_call_arrives_in_slices_and_is_seen_all_at_once(
    broker: Brokerage,
) -> None:
    broker.pause()
    broker.call(Enqueue(ME, jobs(2500), "bulk"))
    assert broker.core.busy
    assert not broker.state.jobs
    arriving = broker.step(Enqueue(ME, jobs(2500), "bulk"))
    while broker.core.busy:
        broker.flush()
    assert (arriving.first, arriving.last) == (1, 2500)
    assert len(broker.state.jobs) == 2500
    assert broker.call(Enqueue(ME, jobs(1), "bulk")) == Enqueued(1, 2500)


def test_a_large_call_that_was_cut_short_leaves_nothing(broker: Brokerage) -> None:
    broker.pause()
    broker.call(Enqueue(ME, jobs(2500), "bulk"))
    broker.restart()
    assert not broker.state.jobs
    assert broker.state.totals.states[JobState.QUEUED] == 0
    first = broker.enqueue()
    assert first == 1


def test_small_calls_pass_a_large_one_that_arrives(broker: Brokerage) -> None:
    broker.pause()
    broker.call(Enqueue(ME, jobs(2500)))
    small = broker.enqueue("true")
    assert small == 2501
    assert broker.job_state(small) is JobState.QUEUED
    while broker.core.busy:
        broker.flush()
    assert broker.cancel(1, 2500, small) == [1, 2500, small]


def test_jobs_cancelled_while_others_are_queued_never_start(
    broker: Brokerage,
) -> None:
    broker.pause()
    broker.call(Enqueue(ME, jobs(2500)))
    while not broker.state.jobs:
        broker.flush()
    assert broker.core.busy
    broker.cancel(*range(1, 2501))
    while broker.core.busy:
        broker.flush()
    broker.resume()
    assert not broker.started_jobs()
    assert broker.state.totals.states[JobState.CANCELLED] == 2500


LONG = "x" * 131_072
MANY = tuple((f"A{number}", LONG[9:]) for number in range(16))


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (("echo", LONG), PLAIN),
        (("echo", "\u00e4" * 65_536), PLAIN),
        (("echo", *("y" * 131_000,) * 17), PLAIN),
        (("echo",), JobPatch(env=(("A", LONG),))),
        (("echo",), JobPatch(env=MANY)),
        (("echo", LONG[1:]), JobPatch(env=MANY[1:])),
    ],
)
def test_what_no_kernel_would_start_is_refused(
    broker: Brokerage, words: tuple[str, ...], settings: JobPatch
) -> None:
    with pytest.raises(UsageError, match=r"too (long|large)") as refused:
        broker.call(Enqueue(ME, [NewJob(words, settings)]))
    assert "file" in (refused.value.hint or "")


def test_a_caller_s_environment_must_fit_too(broker: Brokerage) -> None:
    with pytest.raises(UsageError, match="variable `A` of 131074 bytes"):
        broker.call(Enqueue(ME, jobs(1), base_env={"A": LONG}))
    assert not broker.state.jobs


def test_the_longest_word_is_taken(broker: Brokerage) -> None:
    assert broker.enqueue("echo", LONG[1:]) == 1
