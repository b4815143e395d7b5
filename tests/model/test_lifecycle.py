"""The arrows between states: those of the tables, and no others."""

from itertools import product

import pytest

from grass.errors import InvalidTransition
from grass.model.jobs.lifecycle import (
    ATTEMPT_ARROWS,
    ENDED,
    JOB_ARROWS,
    UNFINISHED,
    AttemptState,
    JobState,
    moved_attempt,
    moved_job,
)


def test_every_state_has_its_row_in_the_tables() -> None:
    assert set(JOB_ARROWS) == set(JobState)
    assert set(ATTEMPT_ARROWS) == set(AttemptState)


@pytest.mark.parametrize(("old", "new"), list(product(JobState, JobState)))
def test_a_job_moves_along_the_arrows_and_no_other_way(
    old: JobState, new: JobState
) -> None:
    if new in JOB_ARROWS[old]:
        assert moved_job(old, new) is new
    else:
        with pytest.raises(InvalidTransition, match=f"from {old} to {new}"):
            moved_job(old, new)


@pytest.mark.parametrize(("old", "new"), list(product(AttemptState, AttemptState)))
def test_an_attempt_moves_along_the_arrows_and_no_other_way(
    old: AttemptState, new: AttemptState
) -> None:
    if new in ATTEMPT_ARROWS[old]:
        assert moved_attempt(old, new) is new
    else:
        with pytest.raises(InvalidTransition, match=f"from {old} to {new}"):
            moved_attempt(old, new)


def test_a_job_is_either_unfinished_or_ended() -> None:
    assert {"succeeded", "failed", "cancelled", "lost"} == ENDED
    assert {"held", "waiting", "queued", "running"} == UNFINISHED


def test_only_a_queued_job_starts_and_only_a_running_one_fails() -> None:
    assert [s for s in JobState if JobState.RUNNING in JOB_ARROWS[s]] == ["queued"]
    for end in (JobState.SUCCEEDED, JobState.FAILED, JobState.LOST):
        assert [s for s in JobState if end in JOB_ARROWS[s]] == ["running"]


def test_every_unfinished_job_can_be_cancelled_and_no_ended_one() -> None:
    can = {s for s in JobState if JobState.CANCELLED in JOB_ARROWS[s]}
    assert can == UNFINISHED


def test_an_ended_attempt_stays_as_it_is() -> None:
    assert not ATTEMPT_ARROWS[AttemptState.EXITED]
    assert not ATTEMPT_ARROWS[AttemptState.LOST]
