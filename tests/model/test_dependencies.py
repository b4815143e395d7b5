"""Dependencies as people write them, and what an end means for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import UsageError
from grass.model.jobs.dependencies import (
    MAX_DEPENDENCIES,
    NEEDS,
    met,
    needs_of,
    read,
    runs_of,
)
from grass.model.jobs.lifecycle import ENDED, UNFINISHED, JobState

afters = st.tuples(st.integers(1, 60), st.integers(0, 9), st.sampled_from(NEEDS))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["7"], ["7:succeeded"]),
        (["7:succeeded"], ["7:succeeded"]),
        (["7:failed"], ["7:failed"]),
        (["7:any"], ["7:any"]),
        (["7,9"], ["7:succeeded", "9:succeeded"]),
        (["3-5", "4-9", "10"], ["3-10:succeeded"]),
        (["7", "9:any"], ["9:any", "7:succeeded"]),
        ([" 7 , 9:any "], ["9:any", "7:succeeded"]),
        (["3-5:any"], ["3-5:any"]),
        (["last"], ["42:succeeded"]),
        (["last:failed"], ["42:failed"]),
        (["7", "7", "7:any"], ["7:any", "7:succeeded"]),
        ([], []),
    ],
)
def test_dependencies_are_read_as_people_write_them(
    texts: list[str], expected: list[str]
) -> None:
    assert [str(one) for one in read(texts, last_job=42)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "7,",
        "x",
        "all",
        "@project",
        "state:failed",
        "7:",
        "7:cancelled",
        "7:failed:any",
        "-7",
        "3-",
        "5-3",
        "7x",
        "name~a",
    ],
)
def test_what_names_no_job_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read([text], last_job=42)
    assert "\n" not in str(caught.value)


def test_the_last_job_must_exist() -> None:
    with pytest.raises(UsageError):
        read(["last"], last_job=0)


def test_too_many_are_refused_before_they_are_made() -> None:
    assert len(read([f"1-{MAX_DEPENDENCIES}"], 0)[0].jobs) == MAX_DEPENDENCIES
    for texts in (
        [f"1-{MAX_DEPENDENCIES + 1}"],
        ["1-999999999999"],
        [f"1-{MAX_DEPENDENCIES}", "0"],
    ):
        with pytest.raises(UsageError, match="at most"):
            read(texts, 0)


@given(st.lists(afters))
def test_ranges_name_the_same_jobs_as_their_texts(
    wanted: list[tuple[int, int, str]],
) -> None:
    texts = [f"{first}-{first + more}:{need}" for first, more, need in wanted]
    after = read(texts, 0)
    assert after == tuple(sorted(after))
    assert read(map(str, after), 0) == after
    pairs = {
        (job, need)
        for first, more, need in wanted
        for job in range(first, first + more + 1)
    }
    assert [(job, one.need) for one in after for job in one.jobs] == sorted(
        pairs, key=lambda pair: (pair[1], pair[0])
    )
    for job in range(72):
        assert set(needs_of(after, job)) == {
            need for other, need in pairs if other == job
        }
    named = [job for first, last in runs_of(after) for job in range(first, last + 1)]
    assert named == sorted({job for job, _ in pairs})


@pytest.mark.parametrize("need", NEEDS)
@pytest.mark.parametrize("state", JobState)
def test_only_an_end_decides_a_dependency(need: str, state: JobState) -> None:
    decided = met(need, state)
    if state in UNFINISHED:
        assert decided is None
    else:
        assert state in ENDED
        assert decided is (need == "any" or need == state.value)
