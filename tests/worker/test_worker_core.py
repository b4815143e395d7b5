"""The worker's decisions, between a broker and a keeper that are played by hand."""

from grass.keeper.codec import name_of
from grass.keeper.protocol import ForgetVerb, RecallVerb
from grass.link.messages import (
    Exited,
    Forget,
    Hello,
    Recall,
    Resync,
    Returned,
    Started,
    Stop,
)
from grass.model.amount_text import WHOLE
from grass.worker.core.effects import WorkerEffects
from tests.support.building import typed, units
from tests.worker.lab import FIRST, SECOND, THIRD, Lab, listed, ready, verbs_of


def test_the_broker_hears_nothing_before_the_keeper_has_spoken() -> None:
    lab = Lab()
    assert lab.broker(Resync()).to_broker == []
    effects = lab.keeper("hello", attempts=[])
    (hello,) = effects.to_broker
    assert isinstance(hello, Hello)
    assert (hello.worker, hello.name, hello.boot) == ("w", "desk", "boot")
    assert hello.running == []


def test_a_start_reaches_the_keeper_and_its_life_the_broker() -> None:
    lab = ready()
    (verb,) = lab.start().to_keeper
    assert (name_of(type(verb)), verb.id) == ("start", FIRST)
    effects = lab.keeper("started", id=FIRST, pid=7, ticks=9, at=5, offset=3)
    output = verb.output
    assert effects.to_broker == [Started(FIRST, 7, 5, output, 3, None)]
    assert effects.watch == {FIRST: (7, 9)}
    usage = {"max_rss": 10, "user_s": 1.0, "system_s": 0.5}
    effects = lab.keeper("exited", id=FIRST, at=8, code=3, rusage=usage, output_bytes=4)
    (ended,) = effects.to_broker
    assert ended == Exited(
        FIRST, 8, 3, output_bytes=4, max_rss=10, cpu_s=1.5, output=output
    )
    assert effects.unwatch == [FIRST]


def test_a_start_that_comes_before_the_keeper_waits_for_it() -> None:
    lab = Lab()
    assert lab.start().to_keeper == []
    effects = lab.keeper("hello", attempts=[])
    assert verbs_of(effects.to_keeper) == ["start"]
    (hello,) = effects.to_broker
    assert isinstance(hello, Hello)
    assert [(one.attempt, one.running) for one in hello.running] == [(FIRST, False)]


def test_a_start_that_was_stopped_before_the_keeper_came_does_not_just_run() -> None:
    lab = Lab()
    lab.start()
    lab.broker(Stop(FIRST, 5.0))
    verbs = lab.keeper("hello", attempts=[]).to_keeper
    assert verbs_of(verbs) in ([], ["start", "stop"])


def test_the_same_start_twice_is_harmless() -> None:
    lab = ready()
    lab.start()
    assert lab.start() == WorkerEffects()


def test_no_unit_is_given_out_twice_whatever_the_broker_says() -> None:
    lab = ready()
    lab.start(FIRST)
    effects = lab.start(SECOND)
    assert effects.to_keeper == []
    assert effects.to_broker == [Returned(SECOND, "cpu 0 is given out already")]
    lab.keeper("exited", id=FIRST, at=1, code=0)
    assert lab.start(SECOND).to_keeper


def test_a_unit_that_the_worker_does_not_have_is_not_given_out() -> None:
    lab = ready()
    effects = lab.start(allocation={"gpu": {"0": WHOLE}})
    assert [type(message) for message in effects.to_broker] == [Returned]


def test_a_stop_goes_to_the_keeper_and_an_unknown_one_nowhere() -> None:
    lab = ready()
    lab.start()
    (verb,) = lab.broker(Stop(FIRST, 2.5, 2)).to_keeper
    assert name_of(type(verb)) == "stop"
    assert (verb.signal, verb.grace) == (2, 2.5)
    assert lab.reported().running[0].stopping
    assert lab.broker(Stop(SECOND, 1.0)).to_keeper == []
    lab.keeper("exited", id=FIRST, at=1, code=0)
    assert lab.broker(Stop(FIRST, 1.0)).to_keeper == []


def test_an_exit_is_reported_again_until_it_is_forgotten() -> None:
    lab = ready()
    lab.start()
    (ended,) = lab.keeper("exited", id=FIRST, at=1, code=0).to_broker
    assert lab.reported().exited == [ended]
    assert lab.reported().exited == [ended]
    effects = lab.broker(Forget([FIRST]))
    assert typed(effects.to_keeper) == typed([ForgetVerb([FIRST])])
    assert lab.reported().exited == []


def test_an_exit_told_twice_frees_its_units_once() -> None:
    lab = ready()
    lab.start()
    lab.keeper("exited", id=FIRST, at=1, code=0)
    assert lab.keeper("exited", id=FIRST, at=2, code=1) == WorkerEffects()
    lab.start(SECOND)
    assert lab.start(THIRD).to_keeper == []


def test_lines_about_strangers_are_left_alone() -> None:
    lab = ready()
    assert lab.keeper("exited", id=FIRST, at=1, code=0) == WorkerEffects()
    assert lab.keeper("started", id=FIRST, at=1, pid=7) == WorkerEffects()
    assert lab.keeper("news of tomorrow", id=FIRST) == WorkerEffects()


def test_a_new_daemon_takes_over_what_the_keeper_has() -> None:
    lab = Lab(cores=2)
    effects = lab.keeper(
        "hello",
        attempts=[
            listed(FIRST, "running", offset=4),
            listed(SECOND, "exited", at=6, code=1),
        ],
    )
    (hello,) = effects.to_broker
    assert isinstance(hello, Hello)
    (report,) = hello.running
    assert (report.attempt, report.pid, report.started_at) == (FIRST, 7, 5)
    assert (report.output, report.output_offset) == ("/o", 4)
    assert [(one.attempt, one.exit_code) for one in hello.exited] == [(SECOND, 1)]
    assert effects.watch[FIRST] == (7, 9)
    assert lab.start(THIRD).to_keeper == []


def test_when_the_keeper_is_lost_its_successor_tells_what_became_of_it() -> None:
    lab = ready(cores=2)
    lab.start(FIRST)
    lab.keeper("started", id=FIRST, pid=7, ticks=9, at=5)
    lab.core.keeper_lost()
    assert lab.broker(Resync()).to_broker == []
    lab.start(SECOND, {"cpu": {"1": WHOLE}})
    gone = listed(FIRST, "exited", at=6, code=None, lost=True, reason="killed")
    effects = lab.keeper("hello", attempts=[gone])
    (hello,) = effects.to_broker
    assert isinstance(hello, Hello)
    assert [(one.attempt, one.lost) for one in hello.exited] == [(FIRST, True)]
    assert [verb.id for verb in effects.to_keeper] == [SECOND]


def test_a_started_attempt_that_left_no_trace_is_lost_and_frees_its_units() -> None:
    lab = ready()
    lab.start()
    lab.keeper("started", id=FIRST, pid=7, ticks=9, at=5)
    lab.core.keeper_lost()
    lab.keeper("hello", attempts=[])
    (ended,) = lab.reported().exited
    assert ended.lost
    assert ended.exit_code is None
    assert ended.at > 0
    assert lab.start(SECOND).to_keeper


def test_a_reason_that_is_not_text_is_made_readable() -> None:
    lab = ready()
    lab.start()
    reason = "no program caf\udce9"
    (ended,) = lab.keeper("exited", id=FIRST, at=1, reason=reason).to_broker
    assert isinstance(ended, Exited)
    assert ended.reason == "no program caf?"


def test_a_keeper_that_was_never_told_forgets_on_the_next_hello() -> None:
    lab = ready()
    lab.start()
    lab.keeper("exited", id=FIRST, at=1, code=0)
    lab.core.keeper_lost()
    lab.broker(Forget([FIRST]))
    lab.keeper("hello", attempts=[listed(FIRST, "exited", at=1, code=0)])
    assert [one.attempt for one in lab.reported().exited] == [FIRST]
    assert lab.broker(Forget([FIRST])).to_keeper[-1].ids == [FIRST]


def test_a_start_behind_another_takes_over_its_units_when_that_one_is_gone() -> None:
    lab = ready()
    lab.start(FIRST)
    (verb,) = lab.start(SECOND, after=FIRST).to_keeper
    assert verb.after == FIRST
    assert lab.start(THIRD).to_keeper == []
    lab.keeper("exited", id=FIRST, at=1, code=0)
    assert lab.start(THIRD).to_keeper == []
    lab.keeper("exited", id=SECOND, at=2, code=0)
    assert lab.start(THIRD).to_keeper


def test_a_start_behind_one_that_is_gone_already_needs_free_units() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.keeper("exited", id=FIRST, at=1, code=0)
    lab.start(SECOND)
    refused = lab.start(THIRD, after=FIRST)
    assert [type(message) for message in refused.to_broker] == [Returned]


def test_a_recalled_start_is_returned_and_who_follows_it_moves_up() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.start(SECOND, after=FIRST)
    lab.start(THIRD, after=SECOND)
    (verb,) = lab.broker(Recall([SECOND])).to_keeper
    assert typed([verb]) == typed([RecallVerb([SECOND])])
    effects = lab.keeper("recalled", id=SECOND)
    assert effects.to_broker == [Returned(SECOND, "recalled")]
    assert lab.start(SECOND).to_keeper == []
    lab.keeper("exited", id=FIRST, at=1, code=0)
    assert lab.start(SECOND).to_keeper == []
    lab.keeper("exited", id=THIRD, at=2, code=0)
    assert lab.start(SECOND).to_keeper


def test_a_start_behind_one_that_was_asked_back_is_returned() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.start(SECOND, after=FIRST)
    lab.broker(Recall([SECOND]))
    effects = lab.start(THIRD, after=SECOND)
    assert effects.to_keeper == []
    assert effects.to_broker == [Returned(THIRD, "recalled")]


def test_a_process_the_keeper_is_not_sure_of_is_not_watched() -> None:
    lab = ready()
    lab.start(FIRST)
    line = {"id": FIRST, "pid": 7, "ticks": 3, "at": 1}
    assert lab.keeper("started", **line, found=True).watch == {}
    assert lab.keeper("started", **line).watch == {FIRST: (7, 3)}


def test_a_recall_of_an_attempt_that_never_came_is_answered() -> None:
    lab = ready()
    assert lab.broker(Recall([FIRST])).to_broker == [Returned(FIRST, "recalled")]
    recall = Recall([FIRST, SECOND], [5, 6])
    assert lab.broker(recall).to_broker == [
        Returned(FIRST, "recalled", 5),
        Returned(SECOND, "recalled", 6),
    ]


def test_whatever_is_returned_tells_when_it_was_placed() -> None:
    lab = ready()
    lab.start(FIRST, placed_at=5)
    lab.start(SECOND, after=FIRST, placed_at=6)
    lab.broker(Recall([SECOND], [6]))
    behind = lab.start(THIRD, after=SECOND, placed_at=7)
    assert behind.to_broker == [Returned(THIRD, "recalled", 7)]
    recalled = lab.keeper("recalled", id=SECOND)
    assert recalled.to_broker == [Returned(SECOND, "recalled", 6)]
    (refused,) = lab.start(SECOND, placed_at=8).to_broker
    assert isinstance(refused, Returned)
    assert refused.placed_at == 8


def test_a_worker_learns_whom_an_attempt_follows_now() -> None:
    lab = Lab()
    waiting = {**listed(THIRD, "waiting"), "after": FIRST}
    waiting["meta"] = {**waiting["meta"], "after": SECOND}
    lab.keeper("hello", attempts=[listed(FIRST, "running"), waiting])
    lab.keeper("exited", id=FIRST, at=1, code=0)
    assert lab.start(SECOND).to_keeper == []
    lab.keeper("exited", id=THIRD, at=2, code=0)
    assert lab.start(SECOND).to_keeper


def test_a_new_keeper_is_told_whom_an_attempt_follows_now() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.keeper("started", id=FIRST, pid=7, ticks=9, at=1)
    lab.start(SECOND, after=FIRST)
    lab.start(THIRD, after=SECOND)
    lab.keeper("recalled", id=SECOND)
    lab.core.keeper_lost()
    again = lab.keeper("hello", attempts=[listed(FIRST, "running")]).to_keeper
    assert [(verb.id, verb.after) for verb in again] == [(THIRD, FIRST)]


def test_a_hello_says_how_long_attempts_have_run_and_what_the_clock_shows() -> None:
    lab = ready()
    lab.core.now_s, lab.core.wall_us = 100.0, 7_000_000
    for id in (FIRST, SECOND):
        lab.start(id, {})
        lab.keeper("started", id=id, pid=7, ticks=9, at=5, offset=0, since=98.0)
    lab.keeper("exited", id=SECOND, at=8, code=0, ran_s=1.5)
    lab.core.now_s = 110.0
    hello = lab.reported()
    assert [one.ran_s for one in hello.running] == [12.0]
    assert [one.ran_s for one in hello.started] == [1.5]
    assert [one.ran_s for one in hello.exited] == [1.5]
    assert hello.wall_at == 7_000_000


def test_units_that_have_changed_are_reported_with_all_attempts() -> None:
    lab = ready()
    lab.start()
    lab.core.units_found(units("{cpu:1}"))
    assert lab.core.take().to_broker == []
    lab.core.units_found(units("{cpu:1, gpu:2}"))
    [hello] = lab.core.take().to_broker
    assert isinstance(hello, Hello)
    assert list(hello.found["gpu"]) == ["0", "1"]
    assert [report.attempt for report in hello.running] == [FIRST]


def test_units_that_changed_before_the_keeper_came_are_in_the_first_hello() -> None:
    lab = Lab()
    lab.core.units_found(units("{cpu:1, gpu:2}"))
    assert lab.core.take().to_broker == []
    [hello] = lab.keeper("hello", attempts=[]).to_broker
    assert list(hello.found["gpu"]) == ["0", "1"]
