"""Starts that cannot be: those a keeper refuses, and those it need not be asked."""

import pytest

from grass.keeper.codec import BadMessage, decode_verb, encode
from grass.link.messages import Exited, Hello, Recall, Returned, Start, Stop
from grass.worker.core.effects import WorkerEffects
from tests.worker.lab import FIRST, ONE_CORE, SECOND, THIRD, Lab, ready


def refused(lab: Lab, **changed: object) -> str:
    """Ask the real keeper's reader for a start it cannot read; give its answer."""
    (verb,) = lab.start(FIRST).to_keeper
    with pytest.raises(BadMessage) as error:
        decode_verb(encode(verb._replace(**changed)))
    assert error.value.id == FIRST
    return str(error.value)


def no_command(name: str = FIRST, after: str | None = None) -> Start:
    """Give a start of which nothing is left but the environment."""
    job = int(name.split(".")[1])
    return Start(name, job, 1, "n", "p", ("A=1",), False, ONE_CORE, after=after)


def test_a_start_that_the_keeper_refuses_ends_with_its_words() -> None:
    lab = ready()
    message = refused(lab, argv=[])
    (ended,) = lab.keeper("error", id=FIRST, message=message).to_broker
    reason = "could not start: argv is empty"
    assert ended == Exited(FIRST, 0, reason=reason)
    assert lab.reported().exited == [ended]
    assert lab.core.running == 0
    assert lab.start(SECOND).to_keeper


def test_an_error_names_the_verb_whatever_its_words() -> None:
    lab = ready()
    lab.start(FIRST)
    error = {"id": FIRST, "message": "no space", "verb": "start"}
    (ended,) = lab.keeper("error", **error).to_broker
    assert ended.reason == "could not start: no space"


def test_a_field_that_is_missing_is_named() -> None:
    lab = ready()
    lab.start(FIRST)
    message = "`start` without 'cwd'"
    (ended,) = lab.keeper("error", id=FIRST, message=message).to_broker
    assert isinstance(ended, Exited)
    assert ended.reason == "could not start: without 'cwd'"


def test_a_start_that_is_refused_twice_ends_once() -> None:
    lab = ready()
    message = refused(lab, argv=[])
    lab.keeper("error", id=FIRST, message=message)
    assert lab.keeper("error", id=FIRST, message=message).to_broker == []


def test_an_error_about_something_else_ends_nothing() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.broker(Stop(FIRST, 1.0))
    # It may speak of what had this id before, was asked back and placed again.
    for message in (
        f"no attempt `{FIRST}`",
        "`stop`: no signal 99",
        "unknown verb 'x'",
    ):
        assert lab.keeper("error", id=FIRST, message=message).to_broker == []
    for id in (None, SECOND, 7, ["a"]):
        assert lab.keeper("error", id=id, message="`start`: no").to_broker == []
    assert lab.keeper("error", message="not JSON").to_broker == []
    assert lab.core.running == 1


def test_an_attempt_that_runs_is_not_ended_by_an_error() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.keeper("started", id=FIRST, pid=7, ticks=9, at=1)
    assert lab.keeper("error", id=FIRST, message="`start`: no").to_broker == []
    assert lab.core.running == 1


def test_an_attempt_without_a_program_is_not_even_asked_for() -> None:
    lab = ready()
    effects = lab.broker(no_command())
    assert effects.to_keeper == []
    (ended,) = effects.to_broker
    assert isinstance(ended, Exited)
    assert ended.reason == "could not start: its command names no program"
    assert (ended.exit_code, ended.signal, ended.lost) == (None, None, False)
    assert lab.reported().exited == [ended]
    assert lab.start(SECOND).to_keeper


def test_what_is_over_before_the_keeper_came_is_told_with_the_hello() -> None:
    lab = Lab()
    assert lab.broker(no_command()) == WorkerEffects(unwatch=[FIRST])
    effects = lab.keeper("hello", attempts=[])
    assert effects.to_keeper == []
    (hello,) = effects.to_broker
    assert isinstance(hello, Hello)
    assert [one.attempt for one in hello.exited] == [FIRST]


def test_who_follows_an_attempt_without_a_program_waits_for_the_one_before() -> None:
    lab = ready()
    lab.start(FIRST)
    lab.keeper("started", id=FIRST, pid=7, ticks=9, at=1)
    lab.broker(no_command(SECOND, after=FIRST))
    # The keeper knows nothing of the second: behind it the third would run at once.
    effects = lab.start(THIRD, after=SECOND)
    assert effects.to_keeper == []
    assert [type(message) for message in effects.to_broker] == [Returned]


def test_a_refused_start_is_not_given_back() -> None:
    lab = ready()
    message = refused(lab, argv=[])
    lab.broker(Recall([FIRST]))
    (ended,) = lab.keeper("error", id=FIRST, message=message).to_broker
    assert isinstance(ended, Exited)
    lab.core.keeper_lost()
    assert lab.keeper("hello", attempts=[]).to_keeper == []
    assert lab.reported().exited == [ended]
